"""Folders kept elsewhere: where a path leads, what is refused, and what links may not do."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tripod.bus import events as bus
from tripod.errors import BadArgumentError, NoTeamError
from tripod.ledger.entry import format_canonical
from tripod.ledger.places import CHAT, LOGS, place_problem, places_problem
from tripod.ledger.sqlite.reader import SQLiteReader
from tripod.ledger.sqlite.schema import migrate_schema
from tripod.projections.disk import Disk, DiskPlaces
from tripod.projections.engine import recorded
from tripod.projections.projection import File
from tripod.team import adoption
from tripod.team.team import Team
from tripod.verify.evidence import collect
from tripod.verify.run import run

PARTS = st.text("ab.é ", min_size=1, max_size=3).filter(lambda part: part.strip("."))
PATHS = st.lists(PARTS, min_size=1, max_size=3).map("/".join)


@given(st.sampled_from(["", "../", "/"]), PATHS, PATHS)
def test_only_the_first_part_is_mapped(front: str, place: str, rest: str) -> None:
    places = DiskPlaces("root", {"events": front + place, "chat": "chat"})
    where = front + place if front == "/" else f"root/{front}{place}"
    assert places.full("events") == where
    assert places.full(f"events/{rest}") == f"{where}/{rest}"
    assert places.full(f"chat/{rest}") is None
    assert places.full(f"eventsx/{rest}") is None


def test_a_log_may_be_kept_below_the_folder_of_logs_and_never_in_its_place() -> None:
    assert place_problem("scribe/side", LOGS) is None
    for place, holds in (("scribe", LOGS), ("scribe/side", CHAT), ("workers/side", LOGS)):
        assert str(place_problem(place, holds)).endswith("/ holds something else of the team")


@given(st.sampled_from(["", "../", "/"]), PATHS)
def test_what_is_in_its_shortest_spelling_is_taken(front: str, path: str) -> None:
    assert place_problem(front + path) is None


@pytest.mark.parametrize(
    "place",
    [
        "", ".", "..", "/", "//", "//a", "a/", "a//b", "./a", "a/./b", "a/../b", "../../a", "../..",
        "../", "/..", "/../a", "/a/..", "a\nb", "a\0", "\x7f", "\ud800", "a" * 4097,
        "scribe", "workers/x", "record",
    ],
)  # fmt: skip
def test_what_we_would_not_have_written_is_refused(place: str) -> None:
    assert place_problem("a" * 4096) is None
    assert place_problem(place)
    assert places_problem(place, "chat")
    assert places_problem("events", place)


@pytest.mark.parametrize("pair", [("a", "a"), ("a", "a/b"), ("../a/b", "../a"), ("/a", "/a/b")])
def test_neither_may_hold_the_other(pair: tuple[str, str]) -> None:
    assert "neither may hold the other" in str(places_problem(*pair))
    assert places_problem(pair[0], pair[1] + "x") is None or pair[1].startswith(pair[0] + "/")


def test_a_disk_reads_writes_and_lists_there(tmp_path: Path) -> None:
    (tmp_path / "team/events").mkdir(parents=True)
    (tmp_path / "team/team-bus").mkdir()
    disk = Disk(str(tmp_path / "team"), places={"events": "team-bus", "chat": "../talk"})
    disk.write("events/processed/1", File(b"x", 0o644))
    disk.write("chat/live", File(b"y", 0o600))
    assert (tmp_path / "team/team-bus/processed/1").read_bytes() == b"x"
    assert (tmp_path / "talk/live").read_bytes() == b"y"
    assert disk.read("events/processed/1", 9) == b"x"
    assert disk.names("events") == ["processed"]
    assert disk.names("chat") == ["live"]
    assert disk.names("") == []
    assert disk.places.unused() == ["events"]
    with pytest.raises(ValueError, match="leaves the team directory"):
        disk.full("events/../ledger.db")


@pytest.mark.parametrize("steady", [False, True])
def test_no_link_is_followed_there(tmp_path: Path, *, steady: bool) -> None:
    (tmp_path / "team").mkdir()
    (tmp_path / "secret/bus").mkdir(parents=True)
    (tmp_path / "secret/bus/1").write_bytes(b"secret")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/1").symlink_to(tmp_path / "secret/bus/1")
    (tmp_path / "mine/processed").symlink_to(tmp_path / "secret/bus")
    (tmp_path / "away").symlink_to(tmp_path / "secret")
    root = str(tmp_path / "team")
    disk = Disk(root, places={"events": "../mine", "chat": "../away/bus"}, steady=steady)
    assert disk.read("events/1", 9) is None
    assert disk.read("events/processed/1", 9) is None
    assert disk.names("events/processed") == []
    assert disk.names("chat") == []
    assert disk.read("chat/1", 9) is None
    with pytest.raises(OSError, match="symbolic link"):
        disk.write("chat/2", File(b"", 0o600))
    assert set(disk.places.absent()) == {"chat"}


# What the first entry says ----------------------------------------------------------------------


def first_entry(body: object) -> sqlite3.Connection:
    db = sqlite3.connect(":memory:")
    migrate_schema(db)
    sql = "INSERT INTO entries VALUES (0, 'first', 'ledger.opened', 'ledger', x'', x'', ?, NULL)"
    db.execute(sql, (body,))
    return db


@pytest.mark.parametrize(
    "body",
    [
        None, b"", b"[]", b"{}", format_canonical({"events": "events", "chat": 1}),
        format_canonical({"events": "../..", "chat": "chat"}),
        format_canonical({"events": "a", "chat": "a/b"}),
    ],
)  # fmt: skip
def test_a_first_entry_that_says_it_otherwise_is_not_followed(body: object) -> None:
    db = first_entry(body)
    with pytest.raises(ValueError, match="entry 0"):
        recorded(SQLiteReader(db))
    db.close()


def damage(root: Path, **fields: str) -> None:
    with sqlite3.connect(root / "ledger.db", isolation_level=None) as db:
        (body,) = db.execute("SELECT body FROM entries WHERE seq = 0").fetchone()
        for (name,) in db.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'entries'"
        ).fetchall():
            db.execute(f"DROP TRIGGER {name}")
        for name, value in fields.items():
            body = body.replace(f'"{name}":"{name}"'.encode(), f'"{name}":"{value}"'.encode())
        db.execute("UPDATE entries SET body = ? WHERE seq = 0", (body,))
    db.close()


def test_the_verifier_is_led_nowhere_by_an_altered_entry(tmp_path: Path) -> None:
    root = Path(adoption.init(str(tmp_path)).root)
    damage(root, events="../../elsewhere")
    with collect(str(root)) as evidence:
        assert evidence.places == {}
        report = run(evidence)
    named = {outcome.check for outcome in report.outcomes if outcome.findings}
    assert "bodies-present" in named


def test_an_altered_value_of_another_shape_stops_work(tmp_path: Path) -> None:
    from tripod.ledger.errors import LedgerDamagedError

    root = Path(adoption.init(str(tmp_path)).root)
    damage(root, chat="/")
    with pytest.raises(LedgerDamagedError, match="entry 0"):
        Team(str(root))


# A team ------------------------------------------------------------------------------------------


def test_a_link_to_a_folder_is_recorded_as_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "project/bus").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "project/bus")
    root = adoption.init(str(tmp_path / "project"), events=str(tmp_path / "link")).root
    with Team(root) as team:
        assert recorded(team.store) == {"events": "../bus", "chat": "chat"}


def test_a_project_may_be_moved_with_its_folders(tmp_path: Path) -> None:
    (tmp_path / "old/bus").mkdir(parents=True)
    adoption.init(str(tmp_path / "old"), events=str(tmp_path / "old/bus"))
    (tmp_path / "old").rename(tmp_path / "new")
    with Team(str(tmp_path / "new/.nbs")) as team:
        name = bus.publish(team, "ann", "x", "low", "")
    assert (tmp_path / "new/bus" / name).is_file()


def test_a_missing_folder_stops_acts_and_no_byte_is_lost(tmp_path: Path) -> None:
    (tmp_path / "bus").mkdir()
    root = adoption.init(str(tmp_path), events=str(tmp_path / "bus")).root
    with Team(root) as team:
        os.rename(tmp_path / "bus", tmp_path / "away")
        before = team.store.head()
        with pytest.raises(NoTeamError, match=r"keeps its events in .*bus"):
            bus.publish(team, "ann", "x", "low", "")
        assert team.store.head() == before
        os.rename(tmp_path / "away", tmp_path / "bus")
        bus.publish(team, "ann", "x", "low", "")


def test_nothing_is_made_where_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadArgumentError, match=r"^--events: .* is no folder"):
        adoption.init(str(tmp_path), events="")
    assert list(tmp_path.iterdir()) == []


def test_reading_the_folder_of_the_chats_elsewhere_is_a_breach(tmp_path: Path) -> None:
    for name in ("talk", "bus"):
        (tmp_path / name).mkdir()
    places: dict[str, Any] = {"chat": str(tmp_path / "talk"), "events": str(tmp_path / "bus")}
    root = adoption.init(str(tmp_path), **places).root
    lines = ["> Bash(ls; grep -r parser ~/shop/talk/)", "> Bash(cat bus/processed/*)", "talk/bus"]
    Path(f"{root}/workers/pythia-1.md").write_text("# Worker: pythia\n\n## Task\n\nReview.\n")
    Path(f"{root}/workers/pythia-1.log").write_text("\n".join(lines))
    with Team(root) as team:
        adoption.sync(team)
    with collect(root) as evidence:
        report = run(evidence, select=["pythia-isolation"])
    (outcome,) = report.outcomes
    assert [finding.where.rpartition(":")[2] for finding in outcome.findings] == ["1", "2"]
