"""A message and a decision that refers to it, written by another program while we read."""

from pathlib import Path

import pytest
from accepting import begin, failures, judge, write

from tripod.chat import writer
from tripod.projections.chat.format import format_line
from tripod.projections.decisions.format import DecisionText, format_decision
from tripod.projections.disk import Disk
from tripod.team import adoption
from tripod.team.team import Team

CHAT, LOG = "chat/side.chat", "scribe/log.md"


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A team with a chat in which nobody said anything yet."""
    root = begin(tmp_path)
    with Team(root) as team:
        writer.create(team, "side", actor="ann")
    return root


def say_and_decide(root: str, line: int = 7) -> None:
    """Append a message to the chat, then a decision to the log, as another program does."""
    with Team(root) as team:
        (newest,) = team.store.db.execute("SELECT max(id) FROM pieces").fetchone()
    id_, ref = f"D-{int(newest[2:]) + 1}", f"side.chat:~L{line}"
    text = DecisionText(id_, "Cake", None, ref, "ann", "—", "none", "decided", "Because.")
    with open(f"{root}/{CHAT}", "ab") as file:
        file.write(format_line("ann", int(newest[2:]), "Cake?") + b"\n")
    with open(f"{root}/{LOG}", "a", encoding="utf-8") as log:
        log.write(format_decision(text))


def test_a_decision_is_not_recorded_before_its_message(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are written between our reads of the log and of the chat."""
    look, is_written = Disk.look, False

    def look_and_write(disk: Disk, path: str, limit: int) -> object:
        nonlocal is_written
        found = look(disk, path, limit)
        if path in (CHAT, LOG) and not is_written:
            is_written = True
            say_and_decide(root)
        return found

    with Team(root) as team, monkeypatch.context() as patched:
        patched.setattr(Disk, "look", look_and_write)
        adoption.sync(team)
    with Team(root) as team:
        adoption.sync(team)
        kinds = [entry.kind for entry in team.store.read()]
    assert is_written
    assert [kind for kind in kinds if "seen" not in kind][-2:] == ["chat.sent", "decision.logged"]
    assert failures(judge(root)) == []


@pytest.mark.parametrize("edited", [(LOG,), (CHAT,), (CHAT, LOG)])
def test_what_is_taken_in_of_edited_files_is_in_order_too(
    root: str, edited: tuple[str, ...]
) -> None:
    """An edited file contradicts the ledger, and what is new in it is taken in all the same."""
    with Team(root) as team:
        writer.send(team, "side", "ann", "hello")
    for path in edited:
        data = Path(f"{root}/{path}").read_bytes()
        write(root, path, data.replace(b"Agreed.", b"Refused.").replace(b"hello", b"jello"))
    say_and_decide(root, line=8)
    with Team(root) as team:
        adoption.sync(team)
    report = judge(root, nearby=0)
    (outcome,) = [one for one in report.outcomes if one.check == "chat-refs-resolve"]
    assert (outcome.findings, outcome.coverage["decisions"]) == ((), 2)
