"""The reference mentions everything that there is; its generated parts are those of the code."""

import re
import subprocess
import sys
from types import ModuleType

import pytest
from docs.attack_table import ATTACKS
from docs.pages import ROOT
from docs.reference_parts import FACES, config_keys, verbs

from tripod import errors
from tripod.ledger.kinds.models import model_of
from tripod.ledger.kinds.registry import KINDS
from tripod.output import DOORS
from tripod.projections.nova.rules import STEPS
from tripod.verify.checks import CHECKS

PAGES = ROOT / "docs" / "reference"
NAMES = (
    *("cli", "kinds", "checks", "attacks", "recovery", "exit-codes", "configuration"),
    *("nbs-bus", "nbs-scribe", "api", "nova"),
)


def _page(name: str) -> str:
    return (PAGES / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_the_generated_parts_are_those_of_the_code(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cogapp", "--check", f"docs/reference/{name}.md"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"run `make docs`:\n{done.stdout}{done.stderr}"


def test_every_command_and_option_is_there() -> None:
    page = _page("cli")
    for name, command in verbs():
        assert f" {name}\n" in page, name
        section = page.partition(f" {name}\n")[2].partition("\n#")[0]
        for parameter in command.params:
            shown = parameter.opts[-1] if parameter.opts[-1].startswith("-") else parameter.name
            assert shown is not None
            assert shown.strip("_").lower() in section.lower(), f"{name}: {shown}"


def test_the_page_on_python_has_what_the_faces_offer_and_nothing_else() -> None:
    headings = re.findall(r"^##+ (tripod[.\w]*)$", _page("api"), re.MULTILINE)
    offered = {"tripod.errors"}
    for face in FACES:
        offered.add(face.__name__)
        for name in face.__all__:
            is_heading = name != "__version__" and not isinstance(getattr(face, name), ModuleType)
            offered |= {f"{face.__name__}.{name}"} if is_heading else set()
    assert len(headings) == len(set(headings))
    assert set(headings) == offered


def test_every_error_stands_in_the_tree_of_errors() -> None:
    page = _page("api")
    for error in vars(errors).values():
        if isinstance(error, type) and issubclass(error, Exception):
            assert re.search(rf"^ *- `{error.__name__}`: ", page, re.MULTILINE), error


def test_every_kind_and_field_is_there() -> None:
    page = _page("kinds")
    for kind in KINDS:
        section = page.partition(f"\n### {kind.name}\n")[2].partition("\n### ")[0]
        assert section, kind.name
        for field in model_of(kind).model_fields:
            assert f"| `{field}` |" in section, f"{kind.name}: {field}"


def test_every_check_has_a_manual_of_four_parts() -> None:
    page = _page("checks")
    for check in CHECKS:
        section = page.partition(f"\n## {check.NAME}\n")[2].partition("\n## ")[0]
        parts = ("What it proves", "Why it matters", "What a finding looks like", "What to do")
        assert [part for part in parts if f"**{part}.**" not in section] == [], check.NAME


def test_each_step_of_nova_is_a_row_of_its_page_and_an_arrow_of_the_diagram() -> None:
    page = _page("nova")
    table = page.partition("| rule | state | event |")[2].partition("\n\n")[0].splitlines()
    rows = [[cell.strip() for cell in row.strip("| ").split(" | ")] for row in table[2:]]
    shown = {
        (rule, source, event, where, target.removesuffix(", cycle + 1"))
        for rule, sources, event, where, target in rows
        for source in sources.split(", ")
    }
    steps = {(one.rule, one.source, one.event, one.when or "always", one.target) for one in STEPS}
    assert shown == steps
    drawn = set(re.findall(r"^    (\w+) --> (\w+): ", page, re.MULTILINE))
    left_out = ("cancel", "budget", "attempts used up")
    assert drawn == {(one.source, one.target) for one in STEPS if one.event not in left_out}


def test_every_exit_code_is_there() -> None:
    rows = _page("exit-codes").splitlines()
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows if "|" in row]
    names = next(row for row in cells if "what happened" in row)
    for at, (door, codes) in enumerate(DOORS.items(), 1):
        other = f"`{door}`" if door.startswith("nbs-") else f"`tripod {door}`"
        assert names[at] == (other if door else "other verbs")
        shown = [row[at] for row in cells if len(row) == len(names) and row[at].isdecimal()]
        assert shown == [str(code) for code in (0, *codes)], door


def test_every_key_of_the_configuration_is_explained() -> None:
    page = _page("configuration")
    for key in config_keys():
        assert f"| [`{key}`](#{key}) |" in page
        assert page.partition(f"\n## {key}\n")[2].partition("\n## ")[0].strip(), key


def test_the_checks_of_the_attacks_are_checks() -> None:
    named = {name for attack in ATTACKS for name in (*attack.alone, attack.outside)}
    assert named <= {check.NAME for check in CHECKS} | {""}


def test_each_test_that_the_page_on_attacks_names_is_there() -> None:
    page = (ROOT / "docs/reference/attacks.md").read_text("utf-8")
    named = re.findall(r"`(tests/[a-z_/]+\.py)::(test_\w+)`", page)
    assert len(named) > 5
    for path, name in named:
        assert f"def {name}(" in (ROOT / path).read_text("utf-8"), (path, name)
