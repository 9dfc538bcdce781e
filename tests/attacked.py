"""A team at work on which attacks are tried, and what an attacker can do to make damage fit.

The world is built once, by real acts: a database, its files, its record, a key, seals, and copies
from before. An attack works on a copy, behind the back of all that we wrote.
"""

import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from plain_export import files_of, key_of, write_files
from specimens import Row, build, database, forge, read, unguarded

from tripod.bus import events
from tripod.chat import writer as chat_send
from tripod.decisions import writer as decisions_log
from tripod.ledger.entry import GENESIS, commit_body, entry_leaf_hash, format_canonical
from tripod.ledger.merkle import Tree
from tripod.ledger.places import RECORD
from tripod.ledger.tlog.note import Note, format_note
from tripod.ledger.tlog.seal import Seal, format_seal, sign_seal
from tripod.team.team import Team
from tripod.trust import actors, keys
from tripod.trust import seal as sealing

__all__ = [
    "ACTOR",
    "KEY",
    "ORIGIN",
    "Case",
    "Stage",
    "World",
    "at_home",
    "build_world",
    "copied",
    "fit",
]

ORIGIN = "sample.example/1"
KEY = key_of(ORIGIN)
ACTOR = "claude"
"""Who has a key: what they did late is signed."""


class Stage(NamedTuple):
    """The team as it was: its directory and its signer's, how many entries, how many sealed."""

    root: str
    home: str
    size: int
    sealed: int


class World(NamedTuple):
    """The team as it is, as it was before, and its entries taken apart."""

    now: Stage
    before: tuple[Stage, ...]
    rows: tuple[Row, ...]

    def head(self, size: int) -> Seal:
        """What somebody outside remembers who looked when there were so many entries."""
        tree = Tree()
        with closing(sqlite3.connect(database(self.now.root))) as db:
            for (header,) in db.execute("SELECT header FROM entries WHERE seq < ?", (size,)):
                tree.append(entry_leaf_hash(header))
        return Seal(ORIGIN, size, tree.root())


class Case(NamedTuple):
    """A copy to be attacked, with the attacker's choices."""

    root: str
    home: str
    rng: random.Random
    world: World

    @property
    def rows(self) -> list[Row]:
        """All entries, to be changed."""
        return list(self.world.rows)

    def seq(self, first: int = 1, stop: int | None = None) -> int:
        """Some entry."""
        return self.rng.randrange(first, len(self.world.rows) if stop is None else stop)


# The world --------------------------------------------------------------------------------------


@contextmanager
def at_home(home: str) -> Iterator[None]:
    """While this holds, keys and the signer's memory lie there."""
    with mock.patch.dict(os.environ, TRIPOD_HOME=home):
        yield


def build_world(folder: Path) -> World:
    """A team of about a hundred entries, its newest seal some of them back."""
    home, stages = str(folder / "home"), []
    os.makedirs(home)
    with at_home(home):
        root = build(str(folder / "now"))
        stages.append(_kept(folder / "0", root, home))
        keys.store_key(keys.key_path(ORIGIN), KEY, None)
        with Team(root) as team:
            sealing.new_sealing_key(team)
        for number in range(1, 6):
            with Team(root) as team:
                chat_send.send(team, "live", "alex", f"Round {number}: what is next?")
                title = f"What is next in round {number}"
                request = decisions_log.DecisionRequest(
                    title, ("alex",), "It is due.", refs=("live.chat:~L14",)
                )
                decisions_log.log(team, request)
            stages.append(_kept(folder / str(number), root, home))
        with Team(root) as team:
            actors.enrol_actor(team, ACTOR, keys.no_passphrase)
            for number in range(4):
                events.publish(team, "parser", "task-complete", "normal", f"late task {number}")
                chat_send.send(team, "side", "claude", f"late note {number}")
        now = _kept(folder / "last", root, home)
    return World(now, tuple(stages), tuple(read(database(root))))


def _kept(there: Path, root: str, home: str) -> Stage:
    """A copy of the team and of its signer's home as they are."""
    copied(root, home, there)
    with Team(f"{there}/.nbs") as team:
        newest = sealing.newest(team.store.db)
        size = team.store.head().size
        team.store.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return Stage(f"{there}/.nbs", f"{there}/home", size, 0 if newest is None else newest.size)


def copied(root: str, home: str, there: Path) -> None:
    """Copy a team directory and its signer's home into a folder, times included."""
    shutil.copytree(root, there / ".nbs", copy_function=shutil.copy2)
    shutil.copytree(home, there / "home")


# What an attacker makes fit ---------------------------------------------------------------------


def fit(
    root: str,
    rows: Sequence[Row],
    *,
    key: bool = False,
    spell: Callable[[int, bytes], bytes] = lambda _, header: header,
) -> None:
    """Make ``rows`` the ledger, and all that can fit made to fit: links, head, tables, files.

    The record is written anew under the newest seal that is left; where none is, it is removed.
    ``key``: the attacker has the host's key, and seals anew. ``spell`` may misspell a header.
    """
    rows = list(_relinked(rows, key=key, spell=spell))
    forge(root, rows, spell=spell)
    _tidy(root)
    shutil.rmtree(f"{root}/{RECORD}", ignore_errors=True)
    seals = [row.data for row in rows if row.head["kind"] == "seal.made"]
    if seals:
        files = files_of(database(root), seals[-1]["size"])
        write_files(f"{root}/{RECORD}", files | {"checkpoint": seals[-1]["note"].encode()})


def _relinked(
    rows: Sequence[Row], *, key: bool, spell: Callable[[int, bytes], bytes]
) -> Iterator[Row]:
    """The entries with what they say of others, and of the tree, as it is now."""
    tree, prev = Tree(), GENESIS
    now: dict[int, tuple[int, str]] = {}
    for seq, old in enumerate(rows):
        row = old
        if key and old.head["kind"] == "seal.made":
            seal = Seal(ORIGIN, seq, tree.root())
            note = format_note(Note(format_seal(seal), (sign_seal(seal, KEY),)))
            row = old.saying(note=note.decode(), size=seq)
        elif "refs" in old.data:
            refs = [_moved(ref, now) for ref in old.data["refs"]]
            row = old.saying(refs=refs) if refs != old.data["refs"] else old
        head = row.head | {"prev": prev, "seq": seq}
        if row.salt is not None:
            head["body"] = commit_body(row.salt, head["kind"], row.body)
        leaf = entry_leaf_hash(spell(seq, format_canonical(head)))
        now[old.head["seq"]] = (seq, leaf.hex())
        tree.append(leaf)
        prev = leaf.hex()
        yield row


def _moved(ref: dict[str, Any], now: dict[int, tuple[int, str]]) -> dict[str, Any]:
    seq, leaf = now.get(ref["seq"], (ref["seq"], ref["leaf"]))
    return ref | {"leaf": leaf, "seq": seq}


def _tidy(root: str) -> None:
    """Leave no blob behind that only entries named which are gone."""
    bodies = b"".join(row.body or b"" for row in read(database(root)))
    with unguarded(database(root)) as db:
        for number, digest in db.execute("SELECT number, sha256 FROM blobs").fetchall():
            if digest.hex().encode() not in bodies:
                db.execute("DELETE FROM blobs WHERE number = ?", (number,))
