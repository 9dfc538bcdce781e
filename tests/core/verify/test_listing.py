"""What a list of entries shows: who, when, what, each by itself, however damaged the file is."""

import json
import os
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from damaged import scribble
from doors.inside import run
from hypothesis import given
from hypothesis import strategies as st
from nbs_team import unpack
from specimens import build, copy, database, unguarded
from story import Story

from tripod.ledger.kinds.registry import KINDS
from tripod.ledger.sqlite.reader import SQLiteReader, read_only
from tripod.recovery.backup import backup, restore
from tripod.team.team import Team
from tripod.verify.listing import ListedEntry, ListingFilter, listed_entries
from tripod.verify.rows import RowReader

EVERYTHING = ListingFilter()


def schema_pages(db: sqlite3.Connection) -> set[int]:
    """The numbers of the pages that hold the schema."""
    try:
        found = db.execute("SELECT pageno FROM dbstat WHERE name = 'sqlite_schema'").fetchall()
    except sqlite3.OperationalError:  # built without that table: they are the first ones here
        return set(range(1, 13))
    return {page for (page,) in found}


@contextmanager
def opened(path: str) -> Iterator[RowReader]:
    with closing(read_only(path)) as db:
        yield RowReader(db)


def listed(path: str, wanted: ListingFilter = EVERYTHING, **how: Any) -> list[ListedEntry]:
    with opened(path) as ledger:
        return list(listed_entries(ledger, wanted, **how))


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> str:
    return build(str(tmp_path_factory.mktemp("sound")))


@pytest.fixture
def path(sound: str, tmp_path: Path) -> str:
    return database(copy(sound, str(tmp_path)))


# What is shown ----------------------------------------------------------------------------------


def test_every_entry_is_shown_once_with_what_its_header_says(sound: str) -> None:
    with opened(database(sound)) as ledger:
        entries = list(SQLiteReader(ledger.db).read())
    found = listed(database(sound), newest_first=False)
    assert [(one.seq, one.at, one.actor, one.kind, one.stream, one.id) for one in found] == [
        (one.seq, one.at, one.actor, one.kind, one.stream, one.id) for one in entries
    ]
    assert not any(one.problem or one.last is not None for one in found)
    assert all(one.text for one in found)
    assert found[::-1] == listed(database(sound))


def test_what_another_program_wrote_is_marked_observed(sound: str) -> None:
    with opened(database(sound)) as ledger:
        observed = {one.seq for one in SQLiteReader(ledger.db).read() if "observed" in one.data}
    assert observed
    marked = {one.seq for one in listed(database(sound)) if one.mark == "observed"}
    assert marked == observed


def test_a_text_in_a_blob_is_whole(sound: str) -> None:
    (long,) = [one for one in listed(database(sound)) if one.text.startswith("live: The whole")]
    assert len(long.text) > 16 * 1024


def test_the_line_of_a_kind_names_fields_that_it_has() -> None:
    from tripod.ledger.kinds.models import body_fields
    from tripod.verify.listing import _FIELD

    for kind in KINDS:
        assert set(_FIELD.findall(kind.line)) <= body_fields(kind).keys(), kind


def test_an_erased_text_is_shown_as_erased(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.create("live")
    story.say("live", "ann", "the secret")
    seq = next(one.seq for one in listed(f"{story.root}/ledger.db") if one.kind == "chat.sent")
    story.redact(len(listed(f"{story.root}/ledger.db")) - seq)
    found = {one.seq: one for one in listed(f"{story.root}/ledger.db")}
    assert found[seq].text == "live: [redacted]"
    assert found[seq].problem == ""
    assert f"entry {seq} (chat.sent): asked to" in {one.text for one in found.values()}


GOLDEN = Path(__file__).parents[2] / "golden/team-852efc6.tar.xz"


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A team of an earlier version, which has an entry of each kind that there was."""
    folder = tmp_path_factory.mktemp("golden")
    unpack(GOLDEN, folder)
    return folder


def test_a_team_of_an_earlier_version_is_listed_whole(golden: Path) -> None:
    path = golden / "team/.nbs/ledger.db"
    before = path.read_bytes()
    found = listed(str(path))
    assert [one.seq for one in found] == list(range(340, -1, -1))
    assert len({one.kind for one in found}) > 40
    for one in found:
        assert one.text, one
        assert not one.problem
        assert one.text == one.text.strip(" :")
    assert {one.mark for one in found} == {"", "observed", "signed"}
    assert path.read_bytes() == before


@pytest.mark.parametrize(("folder", "texts"), [("export", True), ("headers", False)])
def test_an_export_is_listed_as_its_team_with_its_bodies_or_without(
    golden: Path, folder: str, *, texts: bool
) -> None:
    team = run(golden, "log", "team", "--json").out.splitlines()
    done = run(golden, "log", folder, "--json")
    assert (done.code, "only the headers" in done.err) == (0, not texts)
    whole = [json.loads(line) for line in team[-len(done.out.splitlines()) :]]
    for one, other in zip(map(json.loads, done.out.splitlines()), whole, strict=True):
        assert "problem" not in one
        if not texts:
            assert one["text"] == ""
            if other["mark"] == "observed":  # that is said in the body, and by some ids
                other["mark"] = one["mark"]
            other["text"] = ""
        assert one == other
    assert len(whole) == 335


# Which ones -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def forked(tmp_path_factory: pytest.TempPathFactory) -> list[ListedEntry]:
    """The entries of a ledger whose clock ran ahead, and that went on as a fork; see its file."""
    folder = tmp_path_factory.mktemp("forked")
    story = Story(folder)
    story.create("live")
    for number in range(20):
        story.clock.move(60)
        story.say("live", ("ann", "bob")[number % 2], f"number {number} of Ann's")
        if number == 12:  # what follows is dated decades ahead
            story.clock.move(10**9)
    story.clock.ns -= 10**9 * 10**9
    with story.team() as team:
        backup(team, str(folder / "copy.db"))
    with story.clock.running():
        restore(str(story.root), str(folder / "copy.db"), "again.example/2")
    for number in range(20, 26):
        story.clock.move(60)
        story.say("live", "ann", f"number {number}")
    FORKED[:] = [f"{story.root}/ledger.db"]
    return listed(FORKED[0])


FORKED: list[str] = []


@given(data=st.data())
def test_filters_give_what_reading_all_gives(forked: list[ListedEntry], data: Any) -> None:
    assert any(one.kind == "ledger.forked-from" for one in forked)
    times = st.none() | st.sampled_from([one.at for one in forked]).map(
        lambda at: data.draw(st.sampled_from([at, at[:-4] + "999Z", at[:-4] + "000Z"]))
    )
    wanted = ListingFilter(
        actors=data.draw(st.sampled_from([(), ("ann",), ("ann", "bob"), ("nobody",), ("tripod",)])),
        kinds=data.draw(st.sampled_from([(), ("chat.sent",), ("chat.sent", "bus.published")])),
        stream=data.draw(st.sampled_from([None, "chat/live", "chat/", "bus", "cha"])),
        since=data.draw(times),
        until=data.draw(times),
        grep=data.draw(st.sampled_from([None, "NUMBER 1", "ann", ""])),
    )
    start = data.draw(st.integers(0, len(forked)))
    newest_first = data.draw(st.booleans())
    naive = [
        one
        for one in forked
        if one.seq >= start
        and (not wanted.actors or one.actor in wanted.actors)
        and (not wanted.kinds or one.kind in wanted.kinds)
        and (
            wanted.stream is None
            or one.stream == wanted.stream
            or (wanted.stream.endswith("/") and one.stream.startswith(wanted.stream))
        )
        and (wanted.since is None or one.at >= wanted.since)
        and (wanted.until is None or one.at < wanted.until)
        and (wanted.grep is None or wanted.grep.casefold() in one.text.casefold())
    ]
    found = listed(FORKED[0], wanted, start=start, newest_first=newest_first)
    assert found == (naive if newest_first else naive[::-1])


def test_the_end_is_read_first_and_nothing_more(
    sound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    kept = RowReader.raw

    def counting(self: RowReader, *values: Any, **chosen: Any) -> Iterator[Any]:
        for row in kept(self, *values, **chosen):
            read.append(row.seq)
            yield row

    monkeypatch.setattr(RowReader, "raw", counting)
    with opened(database(sound)) as ledger:
        found = listed_entries(ledger, EVERYTHING)
        newest = [next(found).seq for _ in range(5)]
        assert newest == read == list(range(ledger.size - 1, ledger.size - 6, -1))


def test_a_time_is_found_by_halving(sound: str, monkeypatch: pytest.MonkeyPatch) -> None:
    at = listed(database(sound))[20].at
    read: list[int] = []
    kept = RowReader.header

    def counting(self: RowReader, seq: int) -> bytes | None:
        read.append(seq)
        return kept(self, seq)

    monkeypatch.setattr(RowReader, "header", counting)
    assert listed(database(sound), ListingFilter(since=at, until=at)) == []
    assert len(read) < 20


def test_what_is_about_a_decision(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.create("live")
    for text in ("first", "second", "third"):
        story.say("live", "ann", text)
    story.decide("One", "why", ("live.chat:~L8",))
    story.decide("Two", "why", ())
    decisions = [one for one in listed(f"{story.root}/ledger.db") if one.kind == "decision.logged"]
    two, one = (entry.text.split()[0] for entry in decisions)
    story.say("live", "bob", f"let us undo {one}, not {one}0")
    story.say("live", "bob", f"nor {one}0")
    found = listed(f"{story.root}/ledger.db", ListingFilter(decision=one))
    texts = [entry.text for entry in found if entry.kind != "bus.published"]
    assert texts == [f"live: let us undo {one}, not {one}0", f"{one} One", "live: second"]
    assert f"normal decision-logged: {one} One" in [entry.text for entry in found]
    assert two not in "".join(entry.text for entry in found)
    with pytest.raises(LookupError):
        listed(f"{story.root}/ledger.db", ListingFilter(decision=f"{one}0"))


# Damage -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("body = CAST('{\"v\":1}' AS BLOB)", "its body is not"),
        ("body = NULL", "its body is not"),
        ("body = NULL, salt = NULL", "its body is missing, and no entry says"),
        ("header = CAST('{}' AS BLOB)", "its header cannot be read"),
        ("header = X'FF00'", "its header cannot be read"),
        (
            "header = CAST(replace(header, '\"seq\":', '\"seq\":9') AS BLOB)",
            "its row has another seq",
        ),
        ("kind = 'chat.read'", "its row has another kind than its header"),
        ("kind = CAST(X'FF' AS TEXT)", "its row has another kind than its header"),
        ("id = 'other'", "its row has another id than its header"),
        ("auth = CAST('{}' AS BLOB)", "its signature record"),
    ],
)
def test_an_altered_entry_is_shown_with_what_is_wrong(path: str, change: str, problem: str) -> None:
    before = listed(path)
    seq = next(one.seq for one in before if one.kind == "chat.sent")
    with unguarded(path) as db:
        db.execute(f"UPDATE entries SET {change} WHERE seq = ?", (seq,))
    found = listed(path)
    (one,) = [entry for entry in found if entry.seq == seq]
    assert problem in one.problem
    assert [entry for entry in found if entry.seq != seq] == [
        entry for entry in before if entry.seq != seq
    ]


def _long(folder: str) -> str:
    """The database of a team with enough entries for many pages, each with its own text."""
    path = database(build(folder))
    with Team(os.path.dirname(path)) as team:
        from tripod.chat import writer

        with team.act():
            for number in range(150):
                writer.send(team, "live", "ann", f"{number} " + "words " * 100)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> str:
    return _long(str(tmp_path_factory.mktemp("long")))


@pytest.mark.parametrize("seed", range(12))
def test_whatever_page_is_ruined_all_that_can_be_read_is_listed(
    long: str, tmp_path: Path, seed: int
) -> None:
    path = database(copy(os.path.dirname(long), str(tmp_path)))
    before = {one.seq: one for one in listed(path)}
    rng = random.Random(seed)  # noqa: S311 - which pages
    with closing(sqlite3.connect(path)) as db:
        pages = db.execute("PRAGMA page_count").fetchone()[0]
        root = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'entries'").fetchone()[0]
        schema = schema_pages(db)  # without it nothing can be read at all
    ruined = {rng.randrange(2, pages + 1) for _ in range(1 + seed % 3)} - {root} - schema
    scribble(path, *ruined)
    each: dict[int, bool] = {}  # whether an entry can be read by itself
    with opened(path) as ledger:
        for seq in before:
            ledger.problem = ""
            list(ledger.raw(seq, seq + 1))
            each[seq] = not ledger.problem
    for newest_first in (True, False):
        found = listed(path, newest_first=newest_first)
        gaps = [one for one in found if one.last is not None]
        shown = {one.seq: one for one in found if one.last is None}
        skipped = [seq for gap in gaps for seq in range(gap.seq, (gap.last or 0) + 1)]
        assert sorted([*shown, *skipped]) == sorted(before)
        assert len(skipped) == len(set(skipped))
        assert not any(each[(gap.last or 0) if newest_first else gap.seq] for gap in gaps)
        # Doubling passes over few that can be read among those that cannot.
        assert sum(each[seq] for seq in skipped) <= len(skipped)
        assert all(one.problem or one == before[seq] for seq, one in shown.items())
        order = [one.seq for one in found]
        assert order == sorted(order, reverse=newest_first)
        chosen = ListingFilter(kinds=("chat.sent",), stream="chat/live")
        wanted = {
            seq
            for seq, one in before.items()
            if one.stream == "chat/live" and one.kind == "chat.sent"
        } - set(skipped)
        some = listed(path, chosen, newest_first=newest_first)
        assert {one.seq for one in some if one.last is None} == wanted


def test_without_the_newest_pages_the_head_says_where_the_end_is(long: str, tmp_path: Path) -> None:
    path = database(copy(os.path.dirname(long), str(tmp_path)))
    before = listed(path)
    found: list[ListedEntry] = []
    with closing(sqlite3.connect(path)) as db:
        pages = db.execute("PRAGMA page_count").fetchone()[0]
    data = Path(path).read_bytes()
    for page in range(pages, 3, -1):
        Path(path).write_bytes(data)
        scribble(path, page)
        with opened(path) as ledger:
            assert ledger.last_seq() is None or ledger.size == len(before)
            if ledger.last_seq() is None:
                found = list(listed_entries(ledger, EVERYTHING))
                break
    assert found[0].last == len(before) - 1
    assert found[1:] == before[-len(found) + 1 :]


def test_rows_that_lead_back_to_each_other_come_to_an_end(
    sound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ruined pages of an index or table may form a circle."""
    kept = RowReader.raw

    def circling(self: RowReader, start: int = 0, stop: Any = None, **chosen: Any) -> Any:
        rows = list(kept(self, start, stop, **chosen))
        yield from rows
        while len(rows) > 10:
            yield from rows[5:10]

    with opened(database(sound)) as ledger:
        size = ledger.size
        monkeypatch.setattr(RowReader, "raw", circling)
        for newest_first in (True, False):
            found = listed_entries(ledger, EVERYTHING, newest_first=newest_first)
            assert {one.seq for one in islice(found, 10 * size)} == set(range(size))
            assert list(found) == []
