"""Decisions, messages and events that a command wrote over and no entry holds: never forgotten."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from doors.inside import run_as
from story import FIRST, HELLO, Story, story_of

from tripod.bus import events as bus
from tripod.chat import writer as chat_send
from tripod.decisions import writer as decisions_log
from tripod.errors import BadArgumentError, RefusedError
from tripod.projections.chat.format import format_line
from tripod.projections.erasure import unrecorded_pieces
from tripod.projections.pieces import name_pieces
from tripod.recovery import backup as copies
from tripod.recovery import rebuild as recover
from tripod.recovery.doctor import examine, mend
from tripod.team import adoption
from tripod.team.team import Team
from tripod.verify.check import Finding
from tripod.verify.evidence import collect
from tripod.verify.run import run

THEIRS = (
    b"\n---\n\n### D-%d %b\n- **Chat ref:** \xe2\x80\x94\n- **Participants:** bob\n"
    b"- **Artefacts:** \xe2\x80\x94\n- **Risk tags:** none\n- **Status:** decided\n"
    b"- **Rationale:** %b\n"
)


@pytest.fixture
def story() -> Iterator[Story]:
    """A team with two messages, two decisions and an event."""
    with story_of(
        *HELLO,
        ("say", "live", "bob", "hi"),
        FIRST,
        ("decide", "Second", "so", ("live.chat:~L7",)),
        ("publish", "x", "y", "low", "", 0),
    ) as story:
        yield story


def failures(story: Story) -> list[Finding]:
    with collect(str(story.root)) as evidence:
        found = [f for o in run(evidence).outcomes for f in o.findings]
    return [one for one in found if one.severity == "failure" and one.check == "drift"]


def theirs(story: Story, path: str) -> bytes:
    """A piece of another clone, as it stands in the middle of a file after a merge."""
    if path.endswith(".md"):
        return THEIRS % (story.clock.seconds, b"Theirs", b"they said so")
    return format_line("eve", story.clock.seconds, "from a clone") + b"\n"


def slip_in(story: Story, path: str) -> bytes:
    """Put a piece of others in front of our newest one; give it."""
    data = (story.root / path).read_bytes()
    mark = b"\n---\n\n### D-" if path.endswith(".md") else format_line("bob", 0, "")[:4]
    at = data.rindex(mark)
    piece = theirs(story, path)
    mode = 0o600 if path.endswith(".chat") else 0o644
    story.original.put(path, data[:at] + piece + data[at:], mode)
    return piece


@pytest.mark.parametrize("path", ["scribe/log.md", "chat/live.chat"])
@pytest.mark.parametrize("act", ["sync", "rebuild", "more"])
def test_what_no_entry_holds_is_taken_in_wherever_it_stands(
    story: Story, path: str, act: str
) -> None:
    """A merge of two clones leaves the other's pieces in front of ours."""
    piece = slip_in(story, path)
    with story.team() as team:
        size = team.store.head().size
        if act == "sync":
            adoption.sync(team)
        elif act == "rebuild":
            recover.rebuild(team)
        elif path.endswith(".md"):
            decisions_log.log(team, decisions_log.DecisionRequest("Third", ["ann"], "r"))
        else:
            chat_send.send(team, "live", "ann", "more")
        (first,) = [e for e in team.store.read(size) if e.kind in ("decision.logged", "chat.sent")][
            :1
        ]
        assert "observed" in first.data
        if act == "sync":
            assert any("what no entry held of it was taken in" in one for one in team.warnings)
            assert recover.rebuild(team).displaced == 1
    assert piece.strip().splitlines()[-1] in (story.root / path).read_bytes()
    assert failures(story) == []
    with story.team() as team:
        size = team.store.head().size
        assert recover.rebuild(team).written == []
        assert team.store.head().size == size


def rolled_back(story: Story) -> None:
    roll_back(story)
    slip_in(story, "scribe/log.md")


def test_of_a_ledger_that_was_rolled_back_a_person_says_what_becomes_of_it(story: Story) -> None:
    rolled_back(story)
    paths = ("scribe/log.md", "chat/live.chat")
    before = {path: (story.root / path).read_bytes() for path in paths}
    with story.team() as team:
        for attempt in (lambda: recover.rebuild(team), lambda: adoption.sync(team)):
            with pytest.raises(RefusedError, match="--take-in REASON"):
                attempt()
        with pytest.raises(BadArgumentError, match="give one of them"):
            recover.rebuild(team, take="a", discard="b")
    assert [one.stops for one in mend(examine(str(story.root))).troubles].count(True) == 1
    assert before == {path: (story.root / path).read_bytes() for path in before}
    with story.team() as team:
        recover.rebuild(team, take="the disk broke")
        kinds = [e.kind for e in team.store.read() if "observed" in e.data]
        assert kinds.count("decision.logged") == 2
        assert kinds.count("chat.sent") == 1
    assert failures(story) == []
    with collect(str(story.root)) as evidence:
        found = [f.message for o in run(evidence).outcomes for f in o.findings]
    assert any("that was taken in: the disk broke" in text for text in found)


def test_an_edit_that_was_undone_is_no_lost_piece(story: Story) -> None:
    """What the ledger holds stands again; the altered bytes are kept, and told as before."""
    log, live = story.root / "scribe/log.md", story.root / "chat/live.chat"
    log.write_bytes(log.read_bytes().replace(b"** so", b"** something else"))
    lines = live.read_bytes().split(b"\n")
    altered = [format_line("ann", 1_600_000_001, "bye") if b"YW5u" in x[:4] else x for x in lines]
    live.write_bytes(b"\n".join(altered))
    with story.team() as team:
        assert recover.rebuild(team).displaced == 2
    assert failures(story) == []


def test_another_decision_under_an_id_of_ours_is_one_of_its_own(story: Story) -> None:
    """Two clones log in the same second."""
    log = story.root / "scribe/log.md"
    ours = log.read_bytes()
    which = int(ours[ours.rindex(b"### D-") + 6 :].split(b" ")[0])
    at = ours.rindex(b"\n---\n\n### D-")
    log.write_bytes(ours[:at] + THEIRS % (which, b"Theirs", b"another reason"))
    with story.team() as team:
        recover.rebuild(team)
    assert log.read_bytes().startswith(ours)
    assert log.read_bytes().count(b"### D-%d " % which) == 2
    with collect(str(story.root)) as evidence:
        found = [f.check for o in run(evidence).outcomes for f in o.findings if f.seq]
    assert "decision-ids-unique" in found


def roll_back(story: Story) -> Path:
    """Put an older database back; gives a backup of it."""
    old = story.project / "old"
    with story.team() as team:
        copies.backup(team, str(old))
    story.run([("say", "live", "ann", "later"), ("decide", "Later", "r", ())])
    story.run([("publish", "x", "z", "low", "", 0)])
    for name in ("ledger.db", "ledger.db-wal", "ledger.db-shm"):
        (story.root / name).unlink(missing_ok=True)
    shutil.copy(old, story.root / "ledger.db")
    return old


def test_a_ledger_that_is_behind_its_files_removes_nothing_from_them(story: Story) -> None:
    roll_back(story)
    log = (story.root / "scribe/log.md").read_bytes()
    with story.team() as team:
        with pytest.raises(RefusedError, match="a backup was restored"):
            bus.publish(team, "a", "b", "low")
        with pytest.raises(RefusedError, match="pieces that no entry of this ledger holds"):
            recover.rebuild(team)
    assert (story.root / "scribe/log.md").read_bytes() == log
    with story.team() as team:
        recover.rebuild(team, discard="a test")
    found = failures(story)
    paths = sorted(one.message.partition(" of ")[2].split(" ")[0] for one in found)
    assert paths[0] == "chat/live.chat"
    assert paths[-1] == "scribe/log.md"
    assert len([path for path in paths if path.startswith("events/")]) == 3


def test_a_restore_replaces_nothing_that_would_be_lost(story: Story) -> None:
    old = roll_back(story)
    before = (story.root / "ledger.db").read_bytes(), (story.root / "scribe/log.md").read_bytes()
    with story.clock.running(), pytest.raises(RefusedError, match="restore --discard REASON"):
        copies.restore(str(story.root), str(old))
    after = (story.root / "ledger.db").read_bytes(), (story.root / "scribe/log.md").read_bytes()
    assert after == before
    with story.clock.running():
        copies.restore(str(story.root), str(old), discard="the disk broke")
    assert len(failures(story)) == 5, "a message, a decision, and three events"


def test_a_reason_is_one_line(story: Story) -> None:
    with story.team() as team:
        for reason in ("", " ", "a\nb", "x" * 501):
            with pytest.raises(BadArgumentError, match="--discard"):
                recover.rebuild(team, discard=reason)


def test_pieces_are_counted_each_for_itself(story: Story) -> None:
    """The same words said twice are two messages, of which the ledger may hold one."""
    line = format_line("bob", 5, "again") + b"\n"
    with Team(str(story.root)) as team:
        head = b"=== nbs-chat ===\n---\n"
        found = unrecorded_pieces(team.source, "chat/live.chat", head + line * 5)
        assert len(found) == 5
        assert name_pieces(found).endswith(" and 2 more")
        assert name_pieces(found[:3]) == ", ".join(found[:3])
        data = (story.root / "chat/live.chat").read_bytes()
        assert unrecorded_pieces(team.source, "chat/live.chat", data) == []
        assert len(unrecorded_pieces(team.source, "chat/live.chat", data + line)) == 1
        last = data.splitlines(keepends=True)[-1]  # the ledger holds it, once
        assert len(unrecorded_pieces(team.source, "chat/live.chat", data + last)) == 1
        assert unrecorded_pieces(team.source, "workers/w.md", data) == []


def test_what_no_entry_holds_is_named_in_a_folder_elsewhere_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRIPOD_LEDGER", raising=False)
    adoption.init(str(tmp_path))
    for place in ("talk", "queue"):
        (tmp_path / place).mkdir()
    assert run_as("nbs-chat", tmp_path, "create", "talk/x.chat").code == 0
    for text in ("one", "two"):
        assert run_as("nbs-chat", tmp_path, "send", "talk/x.chat", "ann", text).code == 0
    name = run_as("nbs-bus", tmp_path, "publish", "queue", "ann", "note", "low").out.decode()[:-1]
    ours = (tmp_path / "queue" / name).read_bytes()
    with Team(str(tmp_path / ".nbs")) as team:
        line = format_line("eve", 1_600_000_000, "from a clone") + b"\n"
        data = team.disk.read("chat/talk/x.chat", 1_000_000)
        assert data is not None
        found = [
            unrecorded_pieces(team.source, path, text)
            for path, text in (
                ("chat/talk/x.chat", data),
                ("chat/talk/x.chat", data + line),
                ("chat/talk/x-20200913-122640-archive.chat", data + line),
                (f"events/queue/{name}", ours),
                (f"events/processed/queue/{name}", ours),
                ("events/queue/1-eve-note-7.event", ours),
                ("events/processed/queue/1-eve-note-7.event", ours),
            )
        ]
    message = ["message of eve at 2020-09-13T12:26:40+0000"]
    event = ["event queue/1-eve-note-7.event"]
    assert found == [[], message, message, [], [], event, event]
