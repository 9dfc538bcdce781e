"""Whatever a team does: folds split, files rebuilt, tables refolded, all come to the same.

Source: style, "The properties that matter most", 5 and 6; kernel K-7, K-8.
"""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
import story as world
from hypothesis import given
from hypothesis import strategies as st
from story import Step, Story, entries, folder, tables, tree
from strategies import FEWER, blows, gaps, stories

from tripod.projections.disk import Disk
from tripod.projections.engine import (
    TABLES,
    create_tables,
    file_differences,
    fold_into,
    group_operations,
    restore,
)
from tripod.recovery import rebuild as recover
from tripod.team import adoption
from tripod.team.team import Team


@contextmanager
def told(steps: list[Step]) -> Iterator[Story]:
    """A story told in a folder of its own, all files written."""
    with folder() as root:
        story = Story(root)
        story.run([*steps, ("sync",)])
        yield story


@FEWER
@given(st.data(), stories())
def test_any_split_of_the_fold_gives_the_same_rows(data: st.DataObject, steps: list[Step]) -> None:
    with told(steps) as story, story.team() as team:
        live = tables(team)
        everything = list(team.store.read())
        cuts = [0, *data.draw(gaps(len(everything))), len(everything)]
        db = team.store.db
        for table in TABLES:
            db.execute(f"DROP TABLE {table}")
        create_tables(db)
        for start, stop in pairwise(cuts):
            fold_into(db, everything[start:stop], team.store.blob)
        assert tables(team) == live


@FEWER
@given(stories())
def test_a_rebuild_into_an_empty_folder_is_the_live_one_and_a_second_writes_nothing(
    steps: list[Step],
) -> None:
    with told(steps) as story, folder() as other, story.team() as team:
        found = restore(Disk(str(other)), file_differences(team.source, Disk(str(other))))
        assert tree(other) == {
            path: file for path, file in tree(story.root).items() if path != "events/config.yaml"
        }
        assert found == len(tree(other))
        assert list(file_differences(team.source, Disk(str(other)))) == []
        assert recover.rebuild(team) == recover.Rebuilt([], 0)
        assert team.warnings == []


@FEWER
@given(stories())
def test_refolded_tables_are_the_live_ones_and_taking_in_twice_adds_nothing(
    steps: list[Step],
) -> None:
    with told(steps) as story, story.team() as team:
        live, size = tables(team), team.store.head().size
        recover.rebuild(team)
        assert tables(team) == live
        assert adoption.sync(team).entries == 0
        assert adoption.init(str(story.project)).entries == 0
        assert team.store.head().size == size


@FEWER
@given(st.data(), stories(max_size=8))
def test_no_act_starts_from_a_projection(data: st.DataObject, steps: list[Step]) -> None:
    """All files, or all tables, are lost between any two steps: nothing comes out differently."""
    # What others do to a file that is lost is lost as well: they are left out.
    steps = [step for step in steps if not step[0].startswith("they")]
    with told(steps) as undisturbed, told([]) as disturbed:
        story = disturbed
        story.clock.ns = world.BEGIN * 1_000_000_000
        for step in steps:
            story.step(step)
            if data.draw(st.booleans()):
                getattr(story, data.draw(blows())[0])()
                with story.team() as team:
                    team.refresh()
        story.step(("sync",))
        with undisturbed.team() as team, disturbed.team() as other:
            assert _lasting(other) == _lasting(team)
            assert _without_ids(tree(disturbed.root)) == _without_ids(tree(undisturbed.root))
            assert list(file_differences(other.source, other.disk)) == []


NUMBERS = {"seq", "event", "up_to"}
"""Fields of bodies that number an entry, or the newest of those up to which something was done."""


def _lasting(team: Team) -> list[object]:
    """The entries but for the traces of files that were gone, as if those had not been numbered."""
    kept = [entry for entry in entries(team) if entry[0] != "file.displaced"]
    gone = [entry.seq for entry in team.store.read() if entry.kind == "file.displaced"]
    return [_renumbered(entry, gone) for entry in kept]


def _renumbered(value: object, gone: list[int]) -> object:
    if isinstance(value, dict):
        return {
            key: item - sum(seq <= item for seq in gone)
            if key in NUMBERS
            else _renumbered(item, gone)
            for key, item in value.items()
        }
    return [_renumbered(item, gone) for item in value] if isinstance(value, list | tuple) else value


def _without_ids(files: dict[str, tuple[bytes, int]]) -> dict[str, tuple[bytes, int]]:
    """The counts name an entry by its id, which chance gives."""
    return {path: file for path, file in files.items() if path != "counts.json"}


STEPS: list[Step] = [
    ("create", "live"),
    ("say", "live", "söl", "grüße an @ann"),
    ("decide", "Größe", "weil", ("live.chat:~L7",)),
    ("publish", "12:30", "yes", "high", "  lead\n\nü", 0),
    ("they_say", "live", "ann", "x"),
    ("they_configure", 1),
    ("decide", "Zweite", "darum", ()),
    ("ack", 0),
    ("sync",),
]


@pytest.mark.parametrize(
    "surroundings",
    [
        {"TZ": "Asia/Kathmandu", "LANG": "tr_TR.UTF-8", "PYTHONHASHSEED": "1"},
        {"TZ": "America/St_Johns", "LC_ALL": "C", "PYTHONHASHSEED": "4242"},
    ],
    ids=["east", "west"],
)
def test_a_render_knows_nothing_of_where_it_runs(
    tmp_path: Path, surroundings: dict[str, str]
) -> None:
    (tmp_path / "a").mkdir()
    story = Story(tmp_path / "a")
    story.run(STEPS)
    before = tree(story.root)
    moved = tmp_path / "elsewhere" / "deeper"
    moved.parent.mkdir()
    story.project.rename(moved)
    for path in (moved / ".nbs").rglob("*"):
        if path.suffix in {".chat", ".event", ".md"}:
            path.unlink()
    script = (
        "import sys; from tripod.team.team import Team; from tripod.recovery.rebuild import "
        "rebuild\n"
        "with Team(sys.argv[1]) as team: rebuild(team)"
    )
    subprocess.run(
        [sys.executable, "-c", script, str(moved / ".nbs")],
        env=os.environ | surroundings,
        cwd=Path(__file__).parents[3],
        check=True,
    )
    assert tree(moved / ".nbs") == before


_STATEMENTS = (
    "INSERT OR IGNORE INTO rows VALUES (?2, ?1)",
    "UPDATE rows SET said = said || ?1 WHERE name = ?2",
    "DELETE FROM rows WHERE name = ?2",
    "UPDATE rows SET said = said || ?1 WHERE ?2 != ''",  # concerns every row
)


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("abc"))))
def test_statements_that_were_put_together_do_what_each_did_in_turn(
    said: list[tuple[int, str]],
) -> None:
    ops = [
        ("rows", _STATEMENTS[which], (f"{number}.", name), None if which == 3 else name)
        for number, (which, name) in enumerate(said)
    ]
    found = []
    for runs in ([(op[1], [op[2]]) for op in ops], list(group_operations(ops))):
        with closing(sqlite3.connect(":memory:")) as db:
            db.execute("CREATE TABLE rows (name TEXT PRIMARY KEY, said TEXT)")
            for sql, values in runs:
                db.executemany(sql, values)
            found.append(db.execute("SELECT * FROM rows ORDER BY name").fetchall())
    assert found[0] == found[1]
