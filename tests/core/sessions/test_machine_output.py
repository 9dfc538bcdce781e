"""What ``import`` and ``exposure`` print for machines: by the schema, and byte for byte."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from doors.inside import run
from jsonschema import Draft202012Validator
from recorded_sessions import recorded
from session_specimens import CALLS, SECRET, SPECIMENS, STARTS, Record

from tripod.verify.sessions.items import Cause, Channel
from tripod.verify.sessions.readers import READERS

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests/golden/exposures"
SCHEMA = json.loads((ROOT / "docs/formats/sessions.schema.json").read_text())
OPENCODE = "sessions-2026-11/opencode-read-grep"
FILES = {
    "claude-code": "sessions/allways",
    "codex": "sessions-2026-11/codex-codemode-opened-not-shown/.codex",
    "copilot": "sessions-2026-11/copilot-read-grep/.copilot",
    "gemini": "sessions-2026-11/gemini-at-mention/.gemini",
    "qwen": "sessions-2026-11/qwen-at-mention/.qwen",
    "opencode": f"{OPENCODE}/opencode.db",
    "opencode-export": f"{OPENCODE}/export-ses_dfc23332fffePUEYs0DUyVQg7L.json",
    "cursor": "cursor.jsonl",
    "atif": "atif.json",
}
"""A recording of each program; the last two were made, and lie in a folder of their own."""

_READS = {"cursor": ("Read", {"path": "chat/a.md"}), "atif": ("cat", {"file": "chat/a.md"})}


def _valid(definition: str, value: Any) -> None:
    of = {**SCHEMA, "anyOf": [{"$ref": f"#/$defs/{definition}"}]}
    Draft202012Validator(of).validate(value)
    known = SCHEMA["$defs"][definition]["properties"]
    assert value.keys() == known.keys()  # a field that is printed is one that the schema has


def _made(program: str, folder: Path) -> None:
    records = [*STARTS[program], *CALLS[program](*_READS[program], SECRET)]
    path = folder / FILES[program]
    if program == "atif":
        path.write_text(json.dumps({**records[0], "steps": records[1:]}))
    else:
        path.write_text("".join(json.dumps(one) + "\n" for one in records))


@pytest.mark.parametrize("name", FILES)
def test_what_is_printed_of_each_program_is_what_was_printed_and_as_the_schema_says(
    name: str, tmp_path: Path
) -> None:
    if name in _READS:
        _made(name, tmp_path)
    folder = tmp_path if name in _READS else recorded()
    counted = run(folder, "import", "--dry-run", "--json", FILES[name])
    judged = run(folder, "exposure", "--never", "chat/**", "--json", FILES[name])
    assert counted.out + judged.out == (GOLDEN / f"{name}.jsonl").read_bytes()
    found = [json.loads(line) for line in judged.out.splitlines()]
    for one in map(json.loads, counted.out.splitlines()):
        _valid("import", one)
        assert one["importer"] == name.removesuffix("-export")
    for one in found[:-1]:
        _valid("exposure", one)
    _valid("verdict", found[-1])
    assert judged.code == {"clean": 0, "findings": 1, "cannot tell": 3}[found[-1]["verdict"]]


def test_every_program_has_such_an_output() -> None:
    assert {name.removesuffix("-export") for name in FILES} == READERS.keys()
    assert {path.stem for path in GOLDEN.iterdir()} == FILES.keys()


def test_the_schema_names_what_the_code_has_and_refuses_what_it_has_not() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    of = SCHEMA["$defs"]
    assert of["import"]["properties"]["importer"]["enum"] == [*READERS]
    assert of["exposure"]["properties"]["channel"]["enum"] == [*get_args(Channel)]
    gaps = of["verdict"]["properties"]["coverage"]["properties"]["gaps"]
    assert gaps["propertyNames"]["enum"] == [*get_args(Cause)]
    valid = Draft202012Validator(SCHEMA).is_valid
    told = {"version": 1, "verdict": "clean", "reasons": []}
    held = {"found on disk": 1, "taken by a hook": 0}
    sums: Record = {"exposures": 0, "unsure": 0, "denied": 0, "gaps": {}, "custody": held}
    assert valid(told | {"coverage": sums})
    assert not valid(told | {"coverage": sums | {"gaps": {"brand new": 1}}})
    assert not valid(told | {"coverage": sums, "verdict": "maybe"})
    assert not valid({})


def test_each_specimen_is_printed_as_the_schema_says(tmp_path: Path) -> None:
    """Every channel, of the programs that write lines: fields that are null, unsure, of a hook."""
    for number, (program, _, records) in enumerate(SPECIMENS):
        if program not in ("opencode", "atif"):
            lines = [json.dumps(one) + "\n" for one in [*STARTS[program], *records]]
            (tmp_path / f"{number}.jsonl").write_text("".join(lines))
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "secret").write_text(SECRET)
    rule = ("--never", "chat/**", "--protect", "secret")
    done = run(tmp_path, "exposure", *rule, "--json", ".")
    found = [json.loads(line) for line in done.out.splitlines()]
    assert {one["channel"] for one in found[:-1]} > {"mcp", "tool", "read", "hook", "skill"}
    for one in found[:-1]:
        _valid("exposure", one)
    _valid("verdict", found[-1])
    for one in run(tmp_path, "import", "--dry-run", "--json", ".").out.splitlines():
        _valid("import", json.loads(one))


@pytest.mark.parametrize("program", sorted(READERS.keys() - {"opencode", "atif"}))
def test_a_type_that_is_not_known_and_a_line_that_is_no_json_are_counted(
    program: str, tmp_path: Path
) -> None:
    (tmp_path / "s.jsonl").write_text(
        "".join(json.dumps(one) + "\n" for one in STARTS[program])
        + '{"type": "brand-new", "sessionId": "s", "x": 1}\n{"broken\n'
    )
    done = run(tmp_path, "import", "--dry-run", "--json", "s.jsonl")
    found = json.loads(done.out)
    assert (done.code, found["unknown"]) == (0, {"brand-new": 1})
    assert found["records"]["brand-new"] == 1
    assert found["unparsed"] == [found["lines"]] == [len(STARTS[program]) + 2]


def test_what_was_found_decides_the_exit_code(tmp_path: Path) -> None:
    """0 clean, 1 findings, 2 usage, 3 cannot tell; of counts 0 where anything could be read."""
    calls = CALLS["claude-code"]("Read", {"file_path": "/w/a.pem"}, "text")
    lines = [json.dumps(one) + "\n" for one in [*STARTS["claude-code"], *calls]]
    (tmp_path / "s.jsonl").write_text("".join(lines))
    (tmp_path / "cut.jsonl").write_text("".join(lines) + '{"broken')
    (tmp_path / "no.jsonl").write_text('{"hello": 1}\n')
    judged = {
        ("--never", "*.key", "s.jsonl"): 0,
        ("--never", "*.pem", "s.jsonl"): 1,
        ("--never", "*.pem", "cut.jsonl"): 1,
        ("--never", "*.pem"): 2,
        ("--never", "", "s.jsonl"): 2,
        ("--never", "*.key", "gone.jsonl"): 2,
        ("--never", "*.key", "cut.jsonl"): 3,
        ("--never", "*.key", "no.jsonl"): 3,
        ("s.jsonl",): 0,
        ("cut.jsonl",): 0,
        ("no.jsonl",): 3,
    }
    for form in ((), ("--json",)):
        assert {words: run(tmp_path, "exposure", *form, *words).code for words in judged} == judged
        for names, code in (("s.jsonl", 0), ("cut.jsonl no.jsonl", 0), ("no.jsonl", 3)):
            assert run(tmp_path, "import", "--dry-run", *form, *names.split()).code == code
