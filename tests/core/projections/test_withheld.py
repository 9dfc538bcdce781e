"""Old copies of files are kept without what stood at redacted places; nothing else is lost."""

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest
from specimens import build

from tripod.bus import events as bus
from tripod.chat import reader as chat_read
from tripod.projections.erasure import erasure_places, withhold_erased
from tripod.projections.team.tables import redacted_rows_at
from tripod.recovery.redaction import RedactionRequest, redact
from tripod.team import adoption
from tripod.team.team import Team

MARK = b"[redacted]\n"


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    """A team in which one message, its event, a decision and a worker's file were redacted."""
    root = build(str(tmp_path))
    Path(root, "workers/note.md").write_text("a plan\n")
    with Team(root) as team:
        adoption.sync(team)
        before = {p: Path(root, p).read_bytes() for p in ("chat/live.chat", "scribe/log.md")}
        db = team.store.db
        seqs = [chat_read.messages(team, "live")[1].seq]
        seqs.append(db.execute("SELECT seq FROM pieces ORDER BY seq LIMIT 1").fetchone()[0])
        seqs.append(db.execute("SELECT seq FROM files WHERE path LIKE '%note.md'").fetchone()[0])
        redact(team, RedactionRequest(tuple(seqs), None, "asked to", "alex"))
        for path, data in before.items():
            Path(root, f"{path}.old").write_bytes(data)
        yield team


def old(team: Team, path: str) -> bytes:
    return Path(team.root, f"{path}.old").read_bytes()


def now(team: Team, path: str) -> bytes:
    return Path(team.root, path).read_bytes()


def test_an_old_chat_is_kept_without_the_redacted_line(team: Team) -> None:
    path = "chat/live.chat"
    kept, count = withhold_erased(team.source, path, old(team, path))
    assert count == 1
    assert kept.partition(b"\n---\n")[2] == now(team, path).partition(b"\n---\n")[2]
    forged = old(team, path) + b64encode(b"eve|5: forged") + b"\n"
    kept, count = withhold_erased(team.source, path, forged)
    assert (count, kept.endswith(b64encode(b"eve|5: forged") + b"\n")) == (1, True)
    bare = b"\n".join(old(team, path).splitlines()[6:])  # a header that was cut off
    assert withhold_erased(team.source, path, bare)[1] == 1


def test_an_old_archive_of_the_channel_is_known_by_its_name(team: Team) -> None:
    data = old(team, "chat/live.chat")
    assert withhold_erased(team.source, "chat/live-20260212-140000-archive.chat", data)[1] == 1
    assert withhold_erased(team.source, "chat/side.chat", data) == (data, 0)


def test_an_old_log_is_kept_without_the_redacted_decision(team: Team) -> None:
    path = "scribe/log.md"
    kept, count = withhold_erased(team.source, path, old(team, path))
    assert (count, kept) == (1, now(team, path))
    noted = old(team, path) + b"### D- nothing\n"
    assert withhold_erased(team.source, path, noted)[0].endswith(b"### D- nothing\n")


def test_a_whole_file_is_withheld(team: Team) -> None:
    assert withhold_erased(team.source, "workers/note.md", b"a plan\nand more\n") == (MARK, 1)
    assert withhold_erased(team.source, "workers/note.md", MARK) == (MARK, 0)
    assert withhold_erased(team.source, "workers/other.md", b"a plan\n") == (b"a plan\n", 0)
    assert redacted_rows_at(team.source, "workers/note.md")
    assert not redacted_rows_at(team.source, "workers/other.md")


def test_an_event_is_known_by_its_name_in_either_folder(team: Team) -> None:
    db = team.store.db
    sql = "SELECT place FROM redactions WHERE kind = 'bus.published' LIMIT 1"
    name = db.execute(sql).fetchone()[0].removeprefix("events/")
    for folder in ("events", "events/processed"):
        path = f"{folder}/{name}"
        assert redacted_rows_at(team.source, path)
        assert withhold_erased(team.source, path, b"source: x\n")[1] == 1
    bus.publish(team, "a", "b", "low")
    assert not redacted_rows_at(team.source, "events/1-a-b-1.event")
    assert withhold_erased(team.source, "events/1-a-b-1.event", b"x") == (b"x", 0)


def test_places_are_where_it_may_be_shown(team: Team) -> None:
    source = team.source
    assert list(erasure_places(source, "chat.sent", {"channel": "live"})) == ["chat/live.chat"]
    assert list(erasure_places(source, "decision.logged", {})) == ["scribe/log.md"]
    assert list(erasure_places(source, "file.seen", {"path": "a/b"})) == ["a/b"]
    wanted = ["events/1.event", "events/processed/1.event"]
    assert list(erasure_places(source, "bus.published", {"name": "1.event"})) == wanted
