"""What a damaged table, a false body or a swept folder must not do to the next act."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from unittest import mock

import pytest
from specimens import unguarded
from story import Story

from tripod.bus import events as bus
from tripod.chat import reader as chat_read
from tripod.chat import writer as chat_send
from tripod.decisions import writer as decisions_log
from tripod.decisions.writer import DecisionRequest
from tripod.ledger.errors import LedgerDamagedError, UnwritableError
from tripod.ledger.kinds.redaction import REDACTED
from tripod.projections.chat.format import (
    ChatHeader,
    chat_archive_header,
    format_header,
    format_line,
)
from tripod.projections.disk import Disk
from tripod.projections.engine import TABLES
from tripod.projections.erasure import tombstone
from tripod.recovery import rebuild as recover
from tripod.recovery.redaction import erase_within, files_to_redact
from tripod.team import adoption
from tripod.team.team import Team
from tripod.verify.evidence import collect
from tripod.verify.run import run

FREE = ("files", "participants", "events")  # whose rows a fold deletes


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


@pytest.fixture
def busy(story: Story) -> Story:
    """A team with a chat, two decisions and events, pending and processed."""
    with story.team() as team:
        chat_send.create(team, "live")
        chat_send.send(team, "live", "ann", "let us")
        for title in ("One", "Two"):
            decisions_log.log(
                team, DecisionRequest(title, ["ann"], "because", refs=["live.chat:~L7"])
            )
        bus.ack(team, bus.publish(team, "ann", "done", "high"))
    return story


EMPTY = (
    "acks_ahead", "actors", "addressed", "agents", "anchors", "archives", "assessments",
    "checkpoints", "claims", "cursors", "failures", "forks", "inputs", "isolations", "keys",
    "merged", "nova_entries", "nova_runs", "peers", "read_positions", "readers", "redactions",
    "seals", "sessions", "sessions_read", "worker_steps", "workers",
)  # fmt: skip
"""Tables that the story gives no row."""


@pytest.mark.parametrize("table", sorted(set(TABLES) - set(FREE)))
def test_a_table_cannot_be_emptied_by_accident(busy: Story, table: str) -> None:
    with closing(sqlite3.connect(busy.root / "ledger.db")) as db:
        filled = db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        if filled:
            with pytest.raises(sqlite3.IntegrityError, match="folded from the entries"):
                db.execute(f"DELETE FROM {table}")
        else:
            assert table in EMPTY, "nothing was tried"


def test_pending_events_cannot_be_deleted_by_accident(busy: Story) -> None:
    with closing(sqlite3.connect(busy.root / "ledger.db")) as db:
        with pytest.raises(sqlite3.IntegrityError, match="folded from the entries"):
            db.execute("DELETE FROM events WHERE acked IS NULL")
        for column in ("files", "tables"):
            with pytest.raises(sqlite3.IntegrityError, match="only moves forward"):
                db.execute(f"UPDATE head SET {column} = 0")


def test_a_false_body_is_not_spread_into_the_log(busy: Story) -> None:
    with busy.team() as team:
        seq = team.store.db.execute("SELECT min(seq) FROM pieces").fetchone()[0]
    path = busy.root / "scribe/log.md"
    before = path.read_bytes()
    with unguarded(str(busy.root / "ledger.db")) as db:
        db.execute(
            "UPDATE entries SET body = CAST(replace(CAST(body AS TEXT), 'One', 'Own') AS BLOB)"
            " WHERE seq = ?",
            (seq,),
        )
    with busy.team() as team:  # it is added to the file, and nothing else of it is written
        decisions_log.log(team, DecisionRequest("Three", ["ann"], "because"))
    after = path.read_bytes()
    assert after.startswith(before)
    assert b" Three\n" in after
    path.write_bytes(before)
    with busy.team() as team, pytest.raises(LedgerDamagedError, match=f"entry {seq} has a body"):
        decisions_log.log(team, DecisionRequest("Four", ["ann"], "because"))
    assert path.read_bytes() == before
    with busy.team() as team, pytest.raises(LedgerDamagedError):
        recover.rebuild(team)


def test_an_archive_without_a_last_line_break_is_given_back(story: Story) -> None:
    old = b"\n".join(format_line("ann", 1_600_000_000 + n, f"m{n}") for n in range(2))
    new = format_line("bob", 1_600_000_100, "later") + b"\n"
    name = "live-20200913-122642-archive"
    stamp = "2020-09-13T12:26:42+0000"
    story.original.put(f"chat/{name}.chat", chat_archive_header(stamp, len(old)) + old)
    header = ChatHeader("bob", stamp, (("ann", 2), ("bob", 1)))
    story.original.put("chat/live.chat", format_header(header, len(new)) + new)
    files = {p: p.read_bytes() for p in (story.root / "chat").glob("*.chat")}
    with story.team() as team:
        adoption.sync(team)
        assert [m.text for m in chat_read.search(team, "live", "", archives=True)] == [
            "m0",
            "m1",
            "later",
        ]
        assert [m.text for m in chat_read.messages(team, "live")] == ["later"]
        for path in files:
            path.unlink()
        recover.rebuild(team)
    assert {p: p.read_bytes() for p in files} == files


def test_processed_events_that_others_delete_stay_away_whatever_the_limit(busy: Story) -> None:
    """A team deletes them by hand as well as by the original's prune."""
    busy.original.put("events/config.yaml", b"retention-max-bytes: 400\n")
    with busy.team() as team:
        for n in range(6):
            bus.ack(team, bus.publish(team, "ann", f"t{n}", "low", "x" * 50))
        done = sorted((busy.root / "events/processed").iterdir())
        for path in done:
            path.unlink()
        found = adoption.sync(team)
        assert found.kinds == {"bus.pruned": 1}
        assert found.warnings == []
    assert list((busy.root / "events/processed").iterdir()) == []


def test_events_name_the_entry_that_they_tell_of(busy: Story) -> None:
    with busy.team() as team:
        entries = list(team.store.read())
        told = {e.data["name"]: e for e in entries if e.kind == "bus.published"}
        ids = {e.id: e.kind for e in entries}
        causes = {
            e.data["type"]: ids[cause]
            for e in told.values()
            if (cause := _cause(e.header)) is not None
        }
    assert causes == {"chat-message": "chat.sent", "decision-logged": "decision.logged"}
    with collect(str(busy.root)) as evidence:
        assert run(evidence).exit_code == 0


def _cause(header: bytes) -> str | None:
    from tripod.ledger.entry import parse_header

    return parse_header(header).cause


def test_a_clock_that_was_ahead_is_told(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    with story.team() as team:
        monkeypatch.setattr(
            "tripod.ledger.sqlite.store.now_at", lambda: "2999-01-01T00:00:00.000000Z"
        )
        bus.publish(team, "ann", "done", "high")
        monkeypatch.undo()
    with story.team() as team:
        bus.publish(team, "ann", "again", "high")
        assert any("in this host's future" in text for text in team.warnings)


def test_a_workers_file_too_large_to_keep_is_left_alone(tmp_path: Path) -> None:
    workers = tmp_path / ".nbs/workers"
    workers.mkdir(parents=True)
    (workers / "big.md").write_bytes(b"x" * (2 * 1024 * 1024))
    assert adoption.init(str(tmp_path)).left_alone == ["workers/big.md"]
    with collect(str(tmp_path)) as evidence:
        assert run(evidence).exit_code == 0


# A disk that is full or read-only ----------------------------------------------------------------


def test_a_cursor_that_cannot_be_written_takes_nothing_back(tmp_path: Path) -> None:
    adoption.init(str(tmp_path))
    full = sqlite3.OperationalError("database or disk is full")
    with Team(f"{tmp_path}/.nbs") as team:
        with mock.patch.object(team.store, "derived", side_effect=full):
            name = bus.publish(team, "ann", "done", "low")
        assert [item.name for item in bus.check(team)] == [name]
        assert any("could not be moved" in warning for warning in team.warnings)
        assert team.healed == 0
    with Team(f"{tmp_path}/.nbs") as team:
        bus.publish(team, "ann", "more", "low")
        assert team.healed == 1


def test_nothing_is_called_healed_while_its_file_cannot_be_written(tmp_path: Path) -> None:
    adoption.init(str(tmp_path))
    full = OSError(28, "No space left on device")
    with mock.patch.object(Disk, "write", side_effect=full):
        for handle in ("ann", "bob"):
            with Team(f"{tmp_path}/.nbs") as team:
                bus.publish(team, handle, "done", "low")
                assert team.healed == 0
                assert any("is not written yet" in warning for warning in team.warnings)
    with Team(f"{tmp_path}/.nbs") as team:
        team.refresh()
        assert team.healed == 2


def test_who_only_reads_is_served_where_nothing_can_be_written(tmp_path: Path) -> None:
    adoption.init(str(tmp_path))
    with Team(f"{tmp_path}/.nbs") as team:
        name = bus.publish(team, "ann", "done", "low")
    foreign = tmp_path / ".nbs" / "events" / "1700000000000000-bob-ready-1.event"
    foreign.write_bytes(b"source: bob\ntype: ready\npriority: high\n")
    with Team(f"{tmp_path}/.nbs") as team:
        refused = UnwritableError("ledger.db: Read-only file system; nothing was recorded")
        with mock.patch.object(team.store, "transaction", side_effect=refused):
            team.refresh()
        assert [item.name for item in bus.check(team)] == [name]
        assert any("is not shown" in warning for warning in team.warnings)


@pytest.mark.parametrize(
    ("left", "mode"), [("", 0o644), ("cut", 0o644), ("\0", 0o644), ("all", 0o600)]
)
def test_counts_that_a_power_cut_left_in_part_are_written_again(
    busy: Story, left: str, mode: int
) -> None:
    counts = busy.root / "counts.json"
    whole = counts.read_text()
    counts.write_text(
        {"cut": whole[: len(whole) // 2], "\0": "\0" * len(whole), "all": whole}.get(left, left)
    )
    counts.chmod(mode)
    with busy.team() as team:
        bus.publish(team, "ann", "more", "low")  # it changes no count
        assert any("is not whole" in warning for warning in team.warnings)
    assert (counts.read_text(), counts.stat().st_mode & 0o777) == (whole, 0o644)


@pytest.mark.parametrize("mode", [0o644, 0o600])
def test_counts_that_somebody_edited_stay_for_the_verifier_to_tell(busy: Story, mode: int) -> None:
    counts = busy.root / "counts.json"
    edited = counts.read_text().replace('"total": 2', '"total": 3')
    counts.write_text(edited)
    counts.chmod(mode)
    with busy.team() as team:
        bus.publish(team, "ann", "more", "low")
    assert counts.read_text() == edited
    with collect(str(busy.project)) as evidence:
        (found,) = (one for one in run(evidence, select=["drift"]).outcomes)
    assert [finding.where for finding in found.findings] == ["counts.json"]


def test_a_table_that_goes_while_a_team_is_open_is_folded_anew(busy: Story) -> None:
    with busy.team() as team:
        bus.publish(team, "ann", "begun", "low")
        with closing(sqlite3.connect(team.store.path)) as other:
            other.execute("DROP TABLE readers")
        bus.publish(team, "ann", "done", "low")
        assert team.store.db.execute("SELECT count(*) FROM readers").fetchone() == (0,)
        bus.publish(team, "ann", "tested", "low")
        assert {"begun", "done", "tested"} <= {event.type for event in bus.check(team)}


def test_a_table_that_another_program_renamed_is_made_anew(busy: Story) -> None:
    with closing(sqlite3.connect(busy.root / "ledger.db")) as db:
        db.execute("ALTER TABLE events RENAME TO others")  # it takes indexes and triggers along
    with busy.team() as team:
        recover.rebuild(team)
        event = bus.publish(team, "ann", "done", "high")
        assert event in [one.name for one in bus.check(team)]


def test_who_stays_open_holds_no_bodies_of_the_last_act(busy: Story) -> None:
    with busy.team() as team:
        event = bus.publish(team, "ann", "done", "low", "what need not be kept")
        assert team.files.source is team.source
    assert "what need not" in (busy.root / "events" / event).read_text()


def test_the_file_of_an_event_that_its_own_act_erased_does_not_show_it(busy: Story) -> None:
    with busy.team() as team, team.act(full=True, locks=files_to_redact(team)) as act:
        name = bus.publish(team, "ann", "done", "low", "what nobody may read")
        entry = act.transaction.entry(act.transaction.size - 1)
        assert entry is not None
        redaction = REDACTED.draft(
            {
                "seq": entry.seq,
                "kind": entry.kind,
                "reason": "a slip",
                "by": "ann",
                "keep": tombstone(entry.kind, entry.data),
            },
            cause=entry.id,
        )
        erase_within(act, [redaction])
    shown = (busy.root / "events" / name).read_text()
    assert "nobody may read" not in shown
    with busy.team() as team:
        assert recover.rebuild(team).written == []
