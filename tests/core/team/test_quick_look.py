"""A daily act looks at files that grow, as a full look does, and at no archive."""

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import settings as searched
from hypothesis import strategies as st
from story import FIRST, HELLO, Story, folder, story_of

from tripod.bus import events as bus
from tripod.chat import writer as chat
from tripod.decisions import writer as decisions
from tripod.projections import files_are_quiet, manifest, swap
from tripod.projections.bus import intake as bus_intake
from tripod.projections.disk import Disk, DiskStat
from tripod.projections.engine import file_differences
from tripod.projections.intake import take_in
from tripod.team import adoption
from tripod.team.team import Team
from tripod.verify.evidence import collect
from tripod.verify.run import run

ARCHIVES = 5
WARNING = "an archive never changes"
LONG_AGO = 1_600_000_000_000_000_000


@pytest.fixture
def story() -> Iterator[Story]:
    """A team with a chat, a message, a decision, events, and a chat that was split five times."""
    with story_of(*HELLO, FIRST) as story:
        with story.team() as team:
            for number in range(ARCHIVES):
                chat.send(team, "live", "ann", f"and {number}")
                chat.archive(team, "live", 1)
        yield story


def looks(story: Story) -> list[str]:
    """What one act looks at, by path."""
    found: list[str] = []
    stat, names = Disk.stat, Disk.names

    def look(disk: Disk, path: str) -> DiskStat | None:
        found.append(path)
        return stat(disk, path)

    def listing(disk: Disk, path: str) -> list[str]:
        found.append(f"{path}/*")
        return names(disk, path)

    with (
        mock.patch.object(Disk, "stat", look),
        mock.patch.object(Disk, "names", listing),
        story.team() as team,
    ):
        bus.publish(team, "x", "y", "low")
    return found


def settle(root: Path) -> None:
    """Date all files and folders back, and have an act note them so: their stat settles them."""
    for path in (root, *root.rglob("*")):
        os.utime(path, ns=(LONG_AGO, LONG_AGO))
    with Team(root) as team:
        adoption.sync(team)
        bus.publish(team, "x", "y", "low")


def test_an_act_looks_at_no_archive(story: Story) -> None:
    settle(story.root)
    seen = looks(story)
    assert "chat/live.chat" in seen
    # The ledger lies among the files here, so that each process changes the folder of both.
    assert not [path for path in seen if "-archive" in path or path.endswith("t/*")]
    twice = {path for path in seen if seen.count(path) > 1}
    assert twice == {"events", "counts.json"}, "one changed by this act, one as a mark of rollback"


def test_an_edited_archive_is_found_by_a_full_look_and_named_by_each_command_from_then_on(
    story: Story,
) -> None:
    settle(story.root)
    path = next(story.root.glob("chat/*-archive.chat"))
    path.write_bytes(path.read_bytes().replace(b"system", b"nobody"))
    for _ in range(2):
        with story.team() as team:
            bus.publish(team, "x", "y", "low")
            assert not any(WARNING in text for text in team.warnings)
    with collect(str(story.root)) as evidence:
        found = [f for outcome in run(evidence).outcomes for f in outcome.findings]
    assert [f.check for f in found if path.name in str(f)] == ["drift"]
    with story.team() as team:
        assert any(WARNING in text for text in adoption.sync(team).warnings)
    for _ in range(2):
        with story.team() as team:
            bus.publish(team, "x", "y", "low")
            assert any(WARNING in text for text in team.warnings)


def test_an_edited_archive_is_found_by_any_command_that_takes_something_in(story: Story) -> None:
    settle(story.root)
    path = next(story.root.glob("chat/*-archive.chat"))
    path.write_bytes(path.read_bytes().replace(b"system", b"nobody"))
    story.original.say("live", "bob", "hi")
    with story.team() as team:
        team.refresh()
        assert any(WARNING in text for text in team.warnings)


@pytest.mark.parametrize("gone", ["live-*-archive.chat", "live.chat"])
def test_a_file_that_went_is_noticed_by_the_next_command(story: Story, gone: str) -> None:
    settle(story.root)
    path = next((story.root / "chat").glob(gone))
    path.unlink()
    with story.team() as team:
        bus.publish(team, "x", "y", "low")
        assert any("gone" in text for text in team.warnings)
    assert path.exists()


def test_only_a_folder_of_the_queue_that_changed_is_listed(story: Story) -> None:
    story.original.ack(story.original.publish("x", "z"))
    settle(story.root)
    for place in ("events", "events/processed"):
        os.utime(story.root / place, ns=(LONG_AGO, LONG_AGO))
    with story.team() as team:
        team.refresh()
    listed: list[str] = []
    listing = Disk.listed

    def noting(disk: Disk, folder: str) -> list[str]:
        listed.append(folder)
        return listing(disk, folder)

    with mock.patch.object(Disk, "listed", noting):
        story.original.say("live", "bob", "hi")
        with story.team() as team:
            team.refresh()
        assert not [folder for folder in listed if folder.startswith("events")]
        story.original.publish("x", "z")
        with story.team() as team:
            team.refresh()
        assert [folder for folder in listed if folder.startswith("events")] == ["events"]
        with story.team() as team:
            adoption.sync(team)
        assert "events/processed" in listed


# The same changes are found ----------------------------------------------------------------------


def _append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"YW5uOiBoaQ==\n")


def _edit(path: Path) -> None:
    """Change one byte and no size, in the place of the file."""
    data = path.read_bytes()
    path.write_bytes(data[:-2] + bytes([data[-2] ^ 1]) + data[-1:])


def _save(path: Path) -> None:
    """Change it as an editor does that renames."""
    path.with_suffix(".tmp").write_bytes(path.read_bytes() + b"\nmore\n")
    path.with_suffix(".tmp").rename(path)


def _touch(path: Path) -> None:
    os.utime(path)


CHANGES: dict[str, Callable[[Path], object]] = {
    "append": _append, "edit": _edit, "save": _save, "touch": _touch, "remove": Path.unlink,
}  # fmt: skip
GROWING = (
    "chat/live.chat", "scribe/log.md", "workers/other-1a2b.md", "supervisor.md", "policy.yaml",
    "events/config.yaml",
)  # fmt: skip
NEW = (
    "chat/new.chat", "scribe/new-log.md", "workers/new-1a2b.md", "policy.new", "policy",
    "events/1700000000000000-a-b-1.event", "events/processed/1700000000000000-a-b-1.event",
)  # fmt: skip
STEPS = st.lists(
    st.tuples(st.sampled_from(sorted(CHANGES)), st.sampled_from(GROWING))
    | st.tuples(st.just("new"), st.sampled_from(NEW)),
    max_size=3,
)


@pytest.fixture(scope="module")
def template() -> Iterator[Path]:
    """A team with a file of each class that may grow."""
    with story_of(*HELLO, FIRST) as story:
        story.original.put("workers/other-1a2b.md", b"# Worker: other\n\n## Log\nbegun\n")
        story.original.put("supervisor.md", b"ship it\n")
        story.original.put("policy.yaml", b"a: 1\n")
        story.original.put("events/config.yaml", b"retention-max-bytes: 3000\n")
        with story.team() as team:
            adoption.sync(team)
        yield story.root


@searched(max_examples=40)
@given(steps=STEPS, is_old=st.booleans(), acts=st.integers(0, 1))
def test_the_quick_look_misses_nothing_that_the_full_look_finds(
    template: Path, steps: list[tuple[str, str]], *, is_old: bool, acts: int
) -> None:
    with folder() as root:
        shutil.copytree(template, root, dirs_exist_ok=True)
        if is_old:  # what is noted is settled by its stat, else by its bytes
            settle(root)
        for what, name in steps:
            path = root / name
            if what == "new":
                path.write_bytes(b"# Decision Log\nsource: a\ntype: b\npriority: low\n")
            elif path.exists():
                CHANGES[what](path)
        with Team(root) as team:
            for _ in range(acts):  # whatever an act leaves for the next one to look at
                bus.publish(team, "x", "y", "low")
            known = manifest.NotedFiles(team.store.db, team.disk)
            is_quiet = files_are_quiet(team.store.db, team.disk, known)
            found = take_in(team.source, team.disk, {})
            assert not is_quiet or not (found.pieces or found.conflicts)


NAMES = st.sampled_from(
    ("1-a-b-1.event", "2-a-b-1.event", "é-\U0001f600.event", "a,b.event", "x.tmp", ".event")
)
ROWS = NAMES | st.sampled_from(("q/1-a-b-1.event", "2-a-b-1.event/x.tmp", "/", ""))
"""No file has such a name: another queue's event, and what an altered table may hold."""


@given(there=st.sets(NAMES), rows=st.lists(ROWS, max_size=6), queue=st.sampled_from(("", "q/")))
def test_a_listing_is_held_against_the_table_name_by_name(
    there: set[str], rows: list[str], queue: str
) -> None:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE events (name TEXT)")
    db.executemany("INSERT INTO events VALUES (?)", [(name,) for name in rows])
    places = SimpleNamespace(added=["events/q"] if queue else [])
    disk = SimpleNamespace(places=places, listed=lambda _: list(there))
    disk.walk = lambda _: ((name, "file") for name in there)
    reader: Any = SimpleNamespace(source=SimpleNamespace(db=db), disk=disk, full=True)
    known = [name.removeprefix(queue) for name in rows if name.startswith(queue)]
    new, is_whole = bus_intake._new_files(reader, "events", queue, "TRUE")
    found = set(new.in_order())
    fresh = {name for name in there - set(known) if name.endswith(".event") and name[0] != "."}
    assert found == {queue + name for name in fresh}
    assert is_whole == (set(known) <= there)
    db.close()


@pytest.mark.parametrize("back", [True, False])
def test_an_event_that_came_as_another_went_is_seen_and_so_is_what_went(
    story: Story, *, back: bool
) -> None:
    names = [story.original.publish("x", f"t{number}") for number in range(3)]
    with story.team() as team:
        team.refresh()
    path = story.root / "events" / names[1]
    new = path.with_name(names[1].replace("-t1-", "-t9-"))
    path.rename(new)
    if back:  # as many names as before, and one of them was there once
        (story.root / "events" / names[2]).unlink()
        shutil.copy(new, path)
    with story.team() as team:
        team.refresh()
        sql = "SELECT name FROM events WHERE acked IS NULL AND name LIKE '%-x-t%'"
        pending = {name for (name,) in team.store.db.execute(sql)}
    assert pending == {names[0], new.name, names[1] if back else names[2]}


# The decision log --------------------------------------------------------------------------------


@pytest.mark.parametrize("is_old", [True, False])
def test_a_decision_reads_the_log_once(story: Story, *, is_old: bool) -> None:
    """Whether its stat settled it, or the look before the act had to hash it."""
    if is_old:
        settle(story.root)
    reads: list[str] = []
    look = Disk.look

    def noting(disk: Disk, path: str, limit: int) -> tuple[bytes, DiskStat] | None:
        reads.append(path)
        return look(disk, path, limit)

    with mock.patch.object(Disk, "look", noting), story.team() as team:
        decisions.log(team, decisions.DecisionRequest("T", ["ann"], "because", no_ref="none"))
    assert reads.count("scribe/log.md") == 1
    assert (story.root / "scribe/log.md").read_bytes().count(b"### D-") == 2
    with story.team() as team:
        assert adoption.sync(team).entries == 0
        assert list(file_differences(team.source, team.disk)) == []


@pytest.mark.parametrize("when", ["look", "append"])
def test_an_edit_at_the_moment_of_a_decision_is_kept(story: Story, when: str) -> None:
    """Of the same size and at the same time as our own writing: no stat tells it."""
    log = story.root / "scribe/log.md"
    want = log.read_bytes()
    edited = want.replace(b"**Status:** decided", b"**Status:** DECIDED")
    assert edited != want

    def edit() -> None:
        stat = log.stat()
        with log.open("r+b") as file:
            file.write(edited)
        os.utime(log, ns=(stat.st_atime_ns, stat.st_mtime_ns))

    append = swap.append_or_swap

    def edited_first(*args: Any, **more: Any) -> swap.Outcome:
        if when == "look":
            edit()
        done = append(*args, **more)
        if when == "append":
            edit()
        return done

    with mock.patch.object(swap, "append_or_swap", edited_first), story.team() as team:
        decisions.log(team, decisions.DecisionRequest("T", ["ann"], "because", no_ref="none"))
    with story.team() as team:
        bus.publish(team, "x", "y", "low")
        assert any("edited outside the ledger" in text for text in team.warnings)
        decisions.log(team, decisions.DecisionRequest("U", ["ann"], "because", no_ref="none"))
        kept = [e for e in team.store.read(kinds=("file.displaced",)) if "content" in e.data]
        assert any(b"DECIDED" in team.source.content(entry.data["content"]) for entry in kept)


@searched(max_examples=60)
@given(
    there=st.sets(st.integers(0, 12)), taken=st.sets(st.integers(0, 12)), start=st.integers(0, 12)
)
def test_the_next_free_id(there: set[int], taken: set[int], start: int) -> None:
    base = 1_790_000_000
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE pieces (id TEXT)")
    strangers = [("D-5",), ("D-17900000050",), (None,), (f"D-{base + 3}",)]
    rows = [(f"D-{base + one}",) for one in there]
    db.executemany("INSERT INTO pieces VALUES (?)", [*rows, *rows, *strangers])
    act = mock.Mock()
    act.store.tables = db
    free = decisions._free_second(act, base + start, {f"D-{base + one}" for one in taken})
    assert free == next(n for n in count(base + start) if n - base not in {*there, *taken, 3})
    db.close()
