"""Killed while a damaged database is written anew: nothing is lost, the next rebuild ends it."""

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from children import run_forked
from damaged import damage, scribble
from doors.inside import begin, run

from tripod.ledger.sqlite.reader import read_only

HERE = Path(__file__).resolve().parents[2]

# The child is killed at a step as if the power went: no handler of its own runs.
CHILD = """
import os, sys
sys.path[:0] = sys.argv[3:5]
from pathlib import Path
from tripod.ledger.sqlite import repair as copying
from tripod.recovery import rebuild

root, death = sys.argv[1], sys.argv[2]
die = lambda *_, **__: os._exit(9)

def half(_source, path):
    Path(path).write_bytes(b"SQLite format 3")
    die()

def in_the_middle(database, fresh):
    import sqlite3
    source, target = sqlite3.connect(fresh), sqlite3.connect(database, isolation_level=None)
    source.backup(target, pages=4, progress=die)

patches = {
    "while rows are copied": (copying, "_judged", die),
    "while tables are folded": (rebuild, "rebuilt_copy", die),
    "before the old one is kept": (rebuild, "put_rebuilt_in_place", die),
    "while the old one is kept": (rebuild, "copy_database_pages", half),
    "before its place is taken": (rebuild, "_write_over", die),
    "while its place is taken": (rebuild, "_write_over", in_the_middle),
    "after its place was taken": (rebuild, "sync_name", die),
}
setattr(*patches[death])
rebuild.rebuild_database(root)
"""
DEATHS = (
    "while rows are copied",
    "while tables are folded",
    "before the old one is kept",
    "while the old one is kept",
    "before its place is taken",
    "while its place is taken",
    "after its place was taken",
)


def rows(root: Path) -> list[tuple[object, ...]]:
    with closing(read_only(str(root / "ledger.db"))) as db:
        return [
            *db.execute("SELECT * FROM entries NOT INDEXED").fetchall(),
            *db.execute("SELECT size, origin, last, at, stack FROM head").fetchall(),
        ]


@pytest.mark.slow
@pytest.mark.drawn
@pytest.mark.parametrize("death", DEATHS)
def test_killed_at_each_step(tmp_path: Path, death: str) -> None:
    project = begin(tmp_path)
    root = project / ".nbs"
    damage(str(root / "ledger.db"), "events", "lines", "manifest")
    before = rows(root)
    child = run_forked(CHILD, str(root), death, str(HERE), str(HERE.parent))
    assert child.returncode == 9, child.stderr
    assert rows(root) == before
    taken = death == "after its place was taken"
    done = run(project, "bus", "check")
    assert done.code == (0 if taken else 1), done
    assert taken or "Run `tripod rebuild`" in done.err
    done = run(project, "rebuild")
    assert done.code == 0, done.err
    assert ("written anew from its entries" in done.err) != taken
    assert rows(root) == before
    assert run(project, "verify").code == 0
    assert [name for name in os.listdir(root) if "renewing" in name] == []
    assert [name for name in os.listdir(root) if "damaged" in name]
    done = run(project, "bus", "publish", "ann", "t", "low")
    assert done.code == 0, done.err


@pytest.mark.slow
def test_any_page_that_is_damaged_is_mended_or_nothing_is_changed(tmp_path: Path) -> None:
    """Every second page, one at a time: no entry is lost, and none is made up."""
    (tmp_path / "sound").mkdir()
    project = begin(tmp_path / "sound")
    for number in range(40):
        text = f"a longer payload, of the number {number} " * 12
        assert run(project, "bus", "publish", "ann", "t", "low", text).code == 0
    database = ".nbs/ledger.db"
    with closing(sqlite3.connect(project / database)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        count = db.execute("PRAGMA page_count").fetchone()[0]
    before = rows(project / ".nbs")
    mended = refused = 0
    for page in range(2, count + 1, 2):
        copy = tmp_path / str(page)
        shutil.copytree(project, copy)
        scribble(str(copy / database), page)
        damaged = (copy / database).read_bytes()
        done = run(copy, "rebuild")
        if done.code == 0:
            mended += 1
            assert rows(copy / ".nbs") == before, page
            assert run(copy, "verify").code == 0, page
        else:
            refused += 1
            assert done.code == 3, done
            assert "Traceback" not in done.err
            assert (copy / database).read_bytes() == damaged, page
        shutil.rmtree(copy)
    assert mended > 5
    assert refused > 1
