"""Chat references: each way in which one can fail, and the lines that archives took away."""

from pathlib import Path

import pytest
from team_files import START, Decision, Said, judge, outcome, write_chat, write_log

from tripod.projections.chat.format import chat_archive_name

SAID = [Said(n, ("alex", "claude", "bench")[n % 3], f"message {n}") for n in range(300)]


def messages(root: Path, *decisions: Decision, nearby: int = 50, archived: int = 0) -> list[str]:
    """What the check says of these decisions, beside a chat of 300 messages, one a second."""
    write_chat(root, "live", SAID, archived=archived, split=200)
    write_log(root, decisions)
    report = judge(root, nearby)
    found = outcome(report, "chat-refs-resolve").findings
    assert all(f.message.startswith("D-17952") for f in found)
    assert bool(report.failures) == any(f.severity == "failure" for f in found)
    return [f"{f.severity}: {f.message.partition(': ')[2]}" for f in found]


@pytest.mark.parametrize("ref", ["live.chat:~L7", "live.chat:~L306", "chat/live.chat:~L100"])
def test_a_ref_to_a_message_that_was_there_resolves(tmp_path: Path, ref: str) -> None:
    assert messages(tmp_path, Decision(400, ref)) == []


@pytest.mark.parametrize(
    ("ref", "says"),
    [
        ("live.chat:~L357", "live.chat:~L357 is beyond the end of the file (line 306)"),
        ("side.chat:~L8", "side.chat:~L8 names no chat of this team"),
        ("notes.md:~L8", "notes.md:~L8 names no chat of this team"),
        ("live.chat L8", "the chat reference 'live.chat L8' is malformed"),
    ],
)
def test_what_does_not_resolve_is_named(tmp_path: Path, ref: str, says: str) -> None:
    assert messages(tmp_path, Decision(400, ref)) == [f"failure: {says}"]


def test_the_distance_can_be_set(tmp_path: Path) -> None:
    ref = Decision(400, "live.chat:~L356", "bench")
    assert messages(tmp_path, ref) == []
    assert "beyond the end" in messages(tmp_path, ref, nearby=49)[0]
    assert messages(tmp_path, Decision(400, "live.chat:~L306", "bench"), nearby=0) == []


def test_a_message_that_came_later_is_no_source(tmp_path: Path) -> None:
    """At second 100 the file ended in line 107; line 157 is within 50 lines of it, line 159 not."""
    later = "failure: live.chat:~L159 is later than the decision"
    assert messages(tmp_path, Decision(100, "live.chat:~L157")) == []
    assert messages(tmp_path, Decision(100, "live.chat:~L159")) == [later]


def test_several_refs_are_judged_one_by_one(tmp_path: Path) -> None:
    found = messages(tmp_path, Decision(400, "live.chat:~L7, live.chat:~L999, here"))
    assert [text.split(": ", 1)[1] for text in found] == [
        "the chat reference 'here' is malformed",
        "live.chat:~L999 is beyond the end of the file (line 306)",
    ]


def test_no_ref_before_there_was_a_ledger_is_a_warning(tmp_path: Path) -> None:
    assert messages(tmp_path, Decision(400, "")) == ["warning: it has no chat reference (—)"]


def test_nobody_of_those_who_decided_spoke_there(tmp_path: Path) -> None:
    found = messages(tmp_path, Decision(400, "live.chat:~L50", "@Zoe, yan"))
    assert found == ["warning: live.chat:~L50: none of the participants nearby (@Zoe, yan)"]
    assert messages(tmp_path, Decision(400, "live.chat:~L50", "@Alex, yan")) == []


def test_lines_count_from_where_the_file_began_then(tmp_path: Path) -> None:
    """150 messages went to an archive at second 200: before, the file showed them all."""
    before, after = "live.chat:~L190", "live.chat:~L20"
    assert messages(tmp_path, Decision(195, before), nearby=0, archived=150) == []
    assert messages(tmp_path, Decision(210, after), nearby=0, archived=150) == []
    gone = messages(tmp_path, Decision(400, before), nearby=0, archived=150)
    assert gone == ["failure: live.chat:~L190 is beyond the end of the file (line 156)"]


def test_a_ref_may_name_an_archive(tmp_path: Path) -> None:
    name = f"{chat_archive_name('live', START + 200)}.chat"
    write_chat(tmp_path, "live", SAID, archived=150, split=200)
    assert (tmp_path / "chat" / name).is_file()
    assert messages(tmp_path, Decision(400, f"{name}:~L156", "bench"), nearby=0, archived=150) == []
    beyond = messages(tmp_path, Decision(400, f"{name}:~L157", "bench"), nearby=0, archived=150)
    assert beyond == [f"failure: {name}:~L157 is beyond the end of the file (line 156)"]
