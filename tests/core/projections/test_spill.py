"""What waits outside of memory comes back as it was, in the same order, however little is held."""

import shutil
import sqlite3
import threading
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.adoption import lay
from tripod.bus.events import publish
from tripod.ledger import Draft
from tripod.ledger.errors import UnwritableError
from tripod.projections import spill
from tripod.projections.manifest import Pieces
from tripod.projections.pieces import Piece
from tripod.projections.spill import Spill, SpilledDigests
from tripod.team import act as acts
from tripod.team import adoption, intake
from tripod.team.team import Team

WORDS = st.text(st.characters(exclude_categories=()), max_size=3)  # lone surrogates too
VALUES = st.none() | st.booleans() | st.integers() | WORDS | st.binary(max_size=3)
KEYS = st.tuples(st.integers(-5, 5), st.integers(0, 2))
TIMES = st.integers(0, 9) | st.integers(2**62, 2**70)
DRAFTS = st.builds(
    lambda kind, *fields: Draft(kind[0], kind[1], *fields),
    st.sampled_from(
        (
            ("bus.published", "bus"),
            ("bus.acked", "bus"),
            ("chat.sent", "chat/live"),
            ("decision.logged", "decisions"),
        )
    ),
    WORDS,
    st.dictionaries(st.just("file"), st.sampled_from("ab")),
    st.none() | st.just("id"),
    st.none(),
    st.lists(st.binary(max_size=3), max_size=2).map(tuple),
)


@given(st.lists(st.tuples(KEYS, st.tuples(VALUES)), max_size=8), st.integers(1, 4))
def test_a_spill_is_a_list_that_is_sorted_by_its_keys(
    rows: list[tuple[tuple[int, int], tuple[object]]], held: int
) -> None:
    kept = Spill()
    with mock.patch.object(spill, "HELD", held):
        for key, value in rows:
            kept.append(key, value)
    assert len(kept) == len(rows)
    assert list(kept) == [value for _, value in rows]
    assert list(kept.in_order()) == [value for _, value in sorted(rows, key=lambda row: row[0])]


@given(st.lists(st.builds(Piece, TIMES, DRAFTS), max_size=8), st.integers(1, 4))
def test_pieces_have_the_same_order_however_few_are_held(pieces: list[Piece], held: int) -> None:
    few, many = Pieces(), Pieces()
    for piece in pieces:
        with mock.patch.object(spill, "HELD", held):
            few.append(piece)
        many.append(piece)
    assert list(few) == list(many) == pieces
    assert len(few) == len(pieces)
    ordered = list(few.in_order())
    assert ordered == list(many.in_order())
    for one in {_file_of(draft) for draft in ordered} - {"bus"}:  # each file keeps its own order
        mine = [draft for _, draft in pieces if _file_of(draft) == one]
        assert [draft for draft in ordered if _file_of(draft) == one] == mine


def _file_of(draft: Draft) -> str:
    return draft.stream + str(draft.body.get("file") if draft.stream == "decisions" else "")


def test_any_thread_may_let_a_spill_go() -> None:
    with mock.patch.object(spill, "HELD", 1):
        kept, digests = Spill(), SpilledDigests()
        kept.append((0, 0), "a")
        digests["a"] = "00" * 32
    held: list[object] = [kept, digests]
    del kept, digests
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    assert held == []


def test_the_newest_piece_can_still_get_another_id() -> None:
    pieces = Pieces()
    with pytest.raises(LookupError):
        pieces.identify("none")
    for number in range(3):
        pieces.append(Piece(number, Draft("chat.sent", "chat/live", "alex", {}, id=str(number))))
    pieces.identify("another")
    assert [draft.id for _, draft in pieces] == ["0", "1", "another"]


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 3))), st.integers(1, 3))
def test_digests_are_a_mapping(rows: list[tuple[str, int]], held: int) -> None:
    digests, known = SpilledDigests(), {}
    with mock.patch.object(spill, "HELD", held):
        for path, number in rows:
            known[path] = digests[path] = f"{number:064x}"
    assert {path: digests.get(path) for path in "abcd"} == {
        path: known.get(path) for path in "abcd"
    }


def test_a_full_disk_for_temporary_files_is_told_and_nothing_is_recorded(tmp_path: Path) -> None:
    project = lay(str(tmp_path), 2, 1, 60)

    def small(ddl: str) -> sqlite3.Connection:
        db = made(ddl)
        db.execute("PRAGMA max_page_count = 3")
        return db

    made = spill._temporary_database
    with (
        mock.patch.object(spill, "HELD", 5),
        mock.patch.object(spill, "_temporary_database", small),
        pytest.raises(UnwritableError, match="SQLITE_TMPDIR"),
    ):
        adoption.init(project, key=False)
    assert adoption.init(project, key=False).entries > 60  # what is left there is no hindrance


def test_a_disk_that_is_full_as_the_values_are_put_in_order_is_told_as_well() -> None:
    db = spill._temporary_database(
        "CREATE TABLE waiting (number INTEGER PRIMARY KEY, first, second, value)"
    )
    with (
        mock.patch.object(spill, "HELD", 2),
        mock.patch.object(spill, "_temporary_database", return_value=db),
    ):
        kept = Spill()
        for number in range(4):
            kept.append((number, 0), number)
        db.set_progress_handler(lambda: 1, 1)  # as a disk that refuses, it stops the reading
        with pytest.raises(UnwritableError, match="SQLITE_TMPDIR"):
            list(kept.in_order())


def test_a_past_is_the_same_however_little_of_it_is_held(tmp_path: Path) -> None:
    first = lay(str(tmp_path / "first"), 12, 5, 60)
    second = shutil.copytree(first, tmp_path / "second")
    whole = _adopt(first)
    with (
        mock.patch.object(spill, "HELD", 2),
        mock.patch.object(acts, "MANY", 1),
        mock.patch.object(intake, "BATCH", 3),
    ):
        assert _adopt(str(second)) == whole
    assert len(whole) > 60


def _adopt(project: str) -> list[tuple[object, ...]]:
    """What `init` records of a project, and that all of its files show it."""
    adoption.init(project, project="same", origin="tripod.invalid/same/1", key=False)
    with Team(project) as team:
        entries = list(team.entries(1))
        assert adoption.sync(team).entries == 0
        assert team.store.cursors().files == len(entries) + 1
        assert team.warnings == []
    return [(e.kind, e.stream, e.actor, e.data) for e in entries]


def test_an_act_with_more_entries_than_it_keeps_writes_the_same_files(tmp_path: Path) -> None:
    project = tmp_path / "team"
    project.mkdir()
    adoption.init(str(project), key=False)
    with Team(project) as team:
        with mock.patch.object(acts, "MANY", 3), team.act() as act:
            for number in range(9):
                publish(team, "alex", "task-note", "normal", str(number))
        assert act.entries.kinds == {"bus.published": 9}
        payloads = [entry.data["payload"]["text"] for entry in act.entries.to_be_written()]
        assert payloads == list("012345678")
        assert len(list(project.glob(".nbs/events/*.event"))) == 9
        assert team.store.cursors().files == team.store.size
