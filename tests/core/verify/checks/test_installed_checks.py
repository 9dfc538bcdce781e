"""Checks of installed packages: they run beside the built-in ones, replace none and stop none."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from story import Story, folder

from tripod.cli import main
from tripod.verify.check import CANNOT_TELL, CLEAN, TABLES, Outcome, Report
from tripod.verify.checks import CHECKS
from tripod.verify.run import all_checks, check_manual, installed_checks, verify

Install = Callable[..., None]

SOUND = '''
"""Somebody spoke."""
from tripod.verify.check import TABLES
from tripod.verify.check import outcome
NAME, REQUIRED, NEEDS = "spoken", False, (TABLES,)
def judge(evidence):
    lines = evidence.query("SELECT count(*) FROM lines")[0][0]
    return outcome(NAME, [], {"lines": lines}, required=REQUIRED)
'''
BROKEN = {
    "raise ValueError('no tea')": "the check cannot be loaded: ValueError: no tea",
    "raise SystemExit(0)": "the check cannot be loaded: SystemExit: 0",
    "import no_such_module_here": "the check cannot be loaded: ModuleNotFoundError: ",
    "NAME = 'other'": "TypeError: its NAME is 'other', not 'spoken'",
    "NAME = 'spoken'": "it has no function judge(evidence)",
    SOUND.replace("(TABLES,)", "('tables',)"): "its NEEDS are ('tables',), not members",
    SOUND.replace("    lines", "    raise RuntimeError('torn')\n    lines"): (
        "the check broke: RuntimeError: torn"
    ),
    SOUND.replace("    lines", "    raise SystemExit(0)\n    lines"): "broke: SystemExit: 0",
    SOUND.replace("outcome(NAME", "outcome('drift'"): "the check gave no outcome of the name",
    SOUND.replace("return outcome", "outcome"): "the check gave no outcome of the name spoken",
}


@pytest.fixture
def root() -> Iterator[Path]:
    with folder() as path:
        story = Story(path)
        story.run([("sync",), ("create", "live"), ("say", "live", "ann", "hello")])
        yield story.root


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Makes a package with one check, and puts it on the path as an installer would."""
    made: list[str] = []

    def make(package: str, text: str, name: str = "spoken") -> None:
        site, module = tmp_path / package, f"check_of_{package.replace('-', '_')}"
        metadata = site / f"{package.replace('-', '_')}-1.0.dist-info"
        metadata.mkdir(parents=True)
        (site / f"{module}.py").write_text(text, encoding="utf-8")
        head = f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n"
        (metadata / "METADATA").write_text(head, encoding="utf-8")
        points = f"[tripod.checks]\n{name} = {module}\n"
        (metadata / "entry_points.txt").write_text(points, encoding="utf-8")
        monkeypatch.syspath_prepend(str(site))
        made.append(module)

    yield make
    for module in made:
        sys.modules.pop(module, None)


def outcome_of(report: Report, name: str) -> Outcome:
    (found,) = [one for one in report.outcomes if one.check == name]
    return found


def test_without_a_package_there_are_the_built_in_checks() -> None:
    assert all_checks() == CHECKS


def test_a_check_of_a_package_runs_after_the_others(root: Path, install: Install) -> None:
    before = verify(root)
    install("acme-checks", SOUND)
    report = verify(root)
    assert report.outcomes[:-1] == before.outcomes
    assert (report.outcomes[-1].verdict, report.outcomes[-1].coverage) == (CLEAN, {"lines": 1})
    assert [one.check for one in verify(root, select=["spoken"]).outcomes] == ["spoken"]
    assert check_manual("spoken").startswith(
        "spoken (not required, from the package acme-checks)\n\nSom"
    )


def test_the_list_names_the_package(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    install("acme-checks", SOUND)
    with pytest.raises(SystemExit) as left:
        main(["verify", "--list"])
    *others, last = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in others] == [check.NAME for check in CHECKS]
    assert (left.value.code, last) == (0, "spoken (acme-checks) Somebody spoke")


@pytest.mark.parametrize(("text", "says"), BROKEN.items(), ids=BROKEN.values())
def test_a_broken_check_cannot_tell_and_stops_no_other(
    text: str, says: str, root: Path, install: Install
) -> None:
    before = verify(root)
    install("acme-checks", text)
    report = verify(root)
    assert report.outcomes[:-1] == before.outcomes
    told = report.outcomes[-1]
    assert (told.check, told.verdict, told.findings) == ("spoken", CANNOT_TELL, ())
    assert says in told.reason
    assert told.reason.endswith("(package acme-checks)")
    assert report.exit_code == 0
    (root / "policy.yaml").write_text("required: [spoken]\n", encoding="utf-8")
    required = verify(root)
    assert (required.exit_code, required.untold) == (3, ("spoken",))


def test_a_misspelled_name_in_a_policy_is_answered_with_what_is_like_it(root: Path) -> None:
    for line, meant in (
        ("required: [pins-extends]", "'pins-extends', and there is no such check. Did you mean "),
        (
            "signed: [decision.loged]",
            "and there is no such kind of entries. Did you mean decision.",
        ),
    ):
        (root / "policy.yaml").write_text(f"{line}\n", encoding="utf-8")
        report = verify(root)
        assert report.exit_code == 3
        assert meant in report.problem


def test_a_policy_can_require_a_check_of_a_package(root: Path, install: Install) -> None:
    (root / "policy.yaml").write_text("required: [spoken]\n", encoding="utf-8")
    missing = verify(root)
    said = "the policy names 'spoken', and there is no such check"
    assert (missing.exit_code, missing.problem) == (3, said)
    install("acme-checks", SOUND)
    report = verify(root)
    assert (report.exit_code, outcome_of(report, "spoken").required) == (0, True)


@pytest.mark.parametrize("name", ["drift", "spoken"])
def test_no_package_replaces_a_check(name: str, root: Path, install: Install) -> None:
    install("acme-checks", SOUND)
    before = verify(root)
    install("zeta-checks", SOUND.replace('"spoken"', f'"{name}"'), name)
    report = verify(root)
    added = outcome_of(report, f"zeta-checks:{name}")
    assert tuple(one for one in report.outcomes if one is not added) == before.outcomes
    assert added.reason.startswith("there is a check of that name already")


@pytest.mark.parametrize("name", ["Spoken", "spo ken", "x" * 61, "-x", "\u0430-b"])
def test_a_name_that_is_none_is_refused(name: str, install: Install) -> None:
    install("acme-checks", SOUND, name)
    (check,) = installed_checks()
    assert f"acme-checks:{name}" == check.NAME
    assert "lower-case letters" in check.judge(None).reason


def test_a_check_needs_the_tables_unless_it_says_otherwise(install: Install) -> None:
    install("acme-checks", SOUND.replace(", NEEDS =", " =").replace(", (TABLES,)", ""))
    (check,) = installed_checks()
    assert tuple(check.NEEDS) == (TABLES,)


def test_advice_of_a_package_fails_nothing(root: Path, install: Install) -> None:
    text = SOUND.replace("[]", "[Finding(NAME, 'quiet', 'chat')]")
    text = text.replace("import outcome", "import Finding, outcome")
    install("acme-checks", f"{text}\nADVICE = True\n")
    report = verify(root)
    assert (report.exit_code, report.advised) == (0, 1)


def test_verify_refuses_what_makes_no_sense(root: Path) -> None:
    with pytest.raises(ValueError, match="there is no check 'spoken'"):
        verify(root, select=["spoken"])
    with pytest.raises(ValueError, match="new_only needs a pin"):
        verify(root, new_only=True)
    assert verify(root / "nowhere").exit_code == 3


@pytest.mark.parametrize(("said", "can"), [("", True), ("ACCEPTABLE = False\n", False)])
def test_a_package_says_whether_its_findings_can_be_accepted(
    said: str, root: Path, install: Install, *, can: bool
) -> None:
    text = SOUND.replace("[]", "[Finding(NAME, 'gone', 'chat')]")
    install("acme-checks", text.replace("import outcome", "import Finding, outcome") + said)
    (finding,) = outcome_of(verify(root), "spoken").findings
    assert finding.is_acceptable == can
    assert ("nobody can accept" in check_manual("spoken")) != can
