"""What verify says of bytes that were written over, kept logs that are gone, and a broken past."""

from pathlib import Path

import pytest
from drafts import displaced
from specimens import build, database
from team_files import Decision, Said, outcome, write_chat, write_log

from tripod.projections.bus.format import MAX_FILE
from tripod.team.adoption import init, sync
from tripod.team.team import Team
from tripod.verify.check import Report
from tripod.verify.evidence import collect
from tripod.verify.run import run


def judge(path: str | Path, *, no_ledger: bool = False) -> Report:
    """The report on a path."""
    with collect(str(path), no_ledger=no_ledger) as evidence:
        return run(evidence)


@pytest.fixture
def team(tmp_path: Path) -> str:
    """A sound team directory, to be damaged."""
    return build(str(tmp_path))


def test_bytes_that_were_written_over_are_told(team: str) -> None:
    """Each is a warning."""
    with Team(team) as act, act.act() as deed:
        deed.append([displaced(f"scribe/{n}.md", "not ours", b"x") for n in range(13)])
    report = judge(team)
    found = outcome(report, "drift").findings
    assert (len(found), {f.severity for f in found}, report.exit_code) == (13, {"warning"}, 0)
    says = "bytes that stood in scribe/0.md were kept before they were written over: not ours"
    assert found[0].message == f"entry {found[0].seq}: {says}"
    assert found[0].help == f"`tripod show {found[0].seq}` shows them"


@pytest.mark.parametrize("edit", [None, b"other\n"])
def test_a_kept_log_that_is_gone_or_edited_is_a_failure(team: str, edit: bytes | None) -> None:
    path = Path(team, "workers", "parser-a3f1.log")
    path.write_bytes(b"> Read(src/parser.py)\n")
    with Team(team) as act:
        sync(act)
    assert judge(team).exit_code == 0
    path.unlink()
    if edit is not None:
        path.write_bytes(edit)
    report = judge(team)
    (found,) = outcome(report, "drift").findings
    assert (found.where, report.exit_code) == ("workers/parser-a3f1.log", 1)
    assert found.help == "`tripod rebuild --evidence` gives it back"
    assert judge(database(team)).exit_code == 0


def test_what_was_never_taken_in_is_not_said_to_be_written_anew(team: str) -> None:
    path = Path(team, "events", "1-bob-done-1.event")
    head = b"source: bob\ntype: done\npriority: low\npayload: |\n"
    path.write_bytes(head + b"  x\n" * (MAX_FILE // 4))
    (found,) = outcome(judge(team), "drift").findings
    assert found.where == "events/1-bob-done-1.event"
    assert found.message.startswith("unreadable: ")
    assert found.help.startswith("nothing of it is in the ledger: ")


def test_a_malformed_heading_of_the_past_is_a_warning(tmp_path: Path) -> None:
    root = tmp_path / ".nbs"
    write_chat(root, "live", [Said(1, "alex", "hello")])
    write_log(root, [Decision(9, "live.chat:~L7")])
    with (root / "scribe" / "log.md").open("a") as file:
        file.write("\n### D-12x Nobody decided this\n\nIndeed.\n\n---\n")
    assert outcome(judge(root, no_ledger=True), "count-from-grep").failures == 2
    init(str(tmp_path))
    report = judge(tmp_path)
    found = outcome(report, "count-from-grep").findings
    assert [f.severity for f in found] == ["warning", "warning"]
    assert found[0].message == "grep counts 2 headings in the file, there are 1 decisions"
    assert report.exit_code == 0
    with (root / "scribe" / "log.md").open("a") as file:
        file.write("\n### D-13x Nor this\n\nIndeed.\n\n---\n")
    found = outcome(judge(tmp_path), "count-from-grep").findings
    assert sorted(f.severity for f in found) == ["failure", "failure", "warning"]
