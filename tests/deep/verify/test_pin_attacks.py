"""What no ledger can see by itself: rewritten or cut off, and all made to fit. A pin sees it.

Each attack is tried at random places, with a pin of a random size. It is found if, and only if, it
touched what the pin covers; without the pin the ledger's own checks find nothing.
"""

import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from specimens import Row, database, forge, read, unguarded

from tripod.ledger.entry import entry_leaf_hash
from tripod.ledger.merkle import Tree
from tripod.ledger.tlog.seal import Seal, format_seal
from tripod.verify.anchors.anchors import AnchorOptions
from tripod.verify.check import RECORD, TABLES, Report, needs
from tripod.verify.checks import CHECKS
from tripod.verify.evidence import collect
from tripod.verify.run import run

TRIALS = 25
NAMES = tuple(check.NAME for check in CHECKS if not needs(check, TABLES, RECORD))

pytestmark = pytest.mark.slow


def _head(root: str, size: int) -> Seal:
    tree = Tree()
    with closing(sqlite3.connect(database(root))) as db:
        rows = db.execute("SELECT header FROM entries ORDER BY seq LIMIT ?", (size,))
        for (header,) in rows:
            tree.append(entry_leaf_hash(header))
    return Seal("sample.example/1", size, tree.root())


def _rewritten(rows: list[Row], at: int) -> list[Row]:
    """Another salt is enough: a new commitment, a new leaf, and all behind it linked anew."""
    return [*rows[:at], rows[at]._replace(salt=b"s" * 32), *rows[at + 1 :]]


def _tidy(root: str) -> None:
    """Leave no blob behind that only entries named which are gone."""
    bodies = b"".join(row.body for row in read(database(root)))
    with unguarded(database(root)) as db:
        for number, digest in db.execute("SELECT number, sha256 FROM blobs").fetchall():
            if digest.hex().encode() not in bodies:
                db.execute("DELETE FROM blobs WHERE number = ?", (number,))


def _judge(root: str, asked: AnchorOptions) -> Report:
    with collect(root, asked=asked) as evidence:
        return run(evidence, select=NAMES)


@pytest.mark.drawn("long")
@pytest.mark.parametrize("attack", ["rewrite", "truncate"])
def test_a_pin_finds_what_it_covers_and_nothing_else_does(
    sound: str, tmp_path: Path, attack: str
) -> None:
    chance = random.Random(attack)  # noqa: S311 - places to attack, the same in every run
    rows = read(database(sound))
    root, pin = str(tmp_path / ".nbs"), tmp_path / "pin"
    outcomes = set()
    for _ in range(TRIALS):
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(sound, root)
        at, size = chance.randrange(1, len(rows)), chance.randrange(1, len(rows) + 1)
        pin.write_text(format_seal(_head(sound, size)), encoding="utf-8")
        forge(root, _rewritten(rows, at) if attack == "rewrite" else rows[:at])
        _tidy(root)
        assert _judge(root, AnchorOptions()).exit_code == 0, "without an anchor nothing can tell"
        found = _judge(root, AnchorOptions(str(pin))).exit_code == 1
        assert found == (at < size)
        outcomes.add(found)
    assert outcomes == {True, False}
