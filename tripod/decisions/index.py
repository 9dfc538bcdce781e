"""An index over the texts of decisions, for logs so long that reading them all takes a while.

A part of any word is found, as by reading: the index has every run of three characters (SQLite's
FTS5, trigrams), and says which decisions may hold a word; each of those is read all the same.

It is a file of its own beside the database, since logging must not pay for a search. A search
catches it up once ``MANY`` decisions are not in it, and reads the newest itself. It can be deleted
at any time; a redaction deletes it. Where it cannot be written, or SQLite lacks FTS5, all is read.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from tripod.ledger import SEARCH, LedgerReader, entry_leaf_hash

if TYPE_CHECKING:
    from sqlite_utils import Database

MANY = 2_000
"""So many decisions are read in less than a tenth of a second."""

_LEAST = 3  # characters of a word that the index can look for
_VERSION = 1
_WAIT_S = 0.2
# Without the texts themselves, which sqlite-utils would keep beside their index.
_SCHEMA = (
    "CREATE VIRTUAL TABLE said USING fts5 (text, content='', tokenize='trigram case_sensitive 1')"
)

Texts = Callable[[Sequence[int]], Iterable[str]]
"""Gives of each of some entries what is searched in it, in one case."""


def likely_by_index(
    ledger: LedgerReader, database: str, seqs: Sequence[int], words: Sequence[str], texts: Texts
) -> Sequence[int]:
    """The decisions that may hold all the words, in order; all if the index cannot tell.

    ``database`` is the path of the ledger's file, ``seqs`` are the entries of all decisions in
    order, ``words`` what is looked for, in one case; ``texts`` gives what is searched in an entry.
    """
    phrases = ['"{}"'.format(word.replace('"', '""')) for word in words if len(word) >= _LEAST]
    if len(seqs) <= MANY or not phrases:
        return seqs
    from sqlite_utils import Database

    path = f"{os.path.dirname(database)}/{SEARCH}"
    try:
        # A user who may not read the ledger may not read this either.
        mode = os.stat(database).st_mode & 0o777
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, mode))
        with closing(sqlite3.connect(path, _WAIT_S, isolation_level=None)) as connection:
            index = Database(connection, execute_plugins=False)
            upto = _caught_up(index, ledger, seqs, texts)
            found = index.query("SELECT rowid FROM said WHERE said MATCH ?", [" ".join(phrases)])
            hits = {row["rowid"] for row in found}
    except (OSError, sqlite3.OperationalError):
        return seqs  # no FTS5, a full or read-only disk, another who is just writing it
    except sqlite3.DatabaseError:  # it is not an index (any more)
        with suppress(OSError):
            drop_index(database)
        return seqs
    return [seq for seq in seqs if seq > upto or seq in hits]


def _caught_up(index: Database, ledger: LedgerReader, seqs: Sequence[int], texts: Texts) -> int:
    """Bring the index up to date if it lacks much; give the last entry that it holds.

    The file is there before any text is read for it: a redaction that comes meanwhile takes it
    away from under us, and nothing is left of what it erased.
    """
    upto = _upto(index, ledger)
    missing = [seq for seq in seqs if seq > upto]
    if len(missing) <= MANY:
        return upto
    index.execute("BEGIN IMMEDIATE")
    upto = _upto(index, ledger)
    if upto < 0:
        index.table("said").drop(ignore=True)
        index.execute(_SCHEMA)
        index.execute(f"PRAGMA user_version = {_VERSION}")
    missing = [seq for seq in seqs if seq > upto]
    rows = zip(missing, texts(missing), strict=True)
    index.table("said").insert_all({"rowid": seq, "text": text} for seq, text in rows)
    leaf = {"seq": missing[-1], "leaf": _leaf(ledger, missing[-1])}
    index.table("cursor").drop(ignore=True)
    index.table("cursor").insert(leaf)
    index.commit()
    return missing[-1]


def _upto(index: Database, ledger: LedgerReader) -> int:
    """The last entry that the index holds; -1 where it is not one of this ledger."""
    if next(index.query("PRAGMA user_version"))["user_version"] != _VERSION:
        return -1
    row = next(index.table("cursor").rows_where(limit=1), None)
    return int(row["seq"]) if row is not None and _leaf(ledger, row["seq"]) == row["leaf"] else -1


def _leaf(ledger: LedgerReader, seq: int) -> bytes | None:
    """The leaf hash of an entry: the chain in it says that all before it are the same too."""
    header = ledger.header(seq)
    return None if header is None else entry_leaf_hash(header)


def drop_index(database: str) -> None:
    """Delete the index beside the ledger at ``database`` (OSError: the system refuses)."""
    folder = os.path.dirname(database)
    for path in (f"{folder}/{SEARCH}-journal", f"{folder}/{SEARCH}"):
        with suppress(FileNotFoundError):
            os.unlink(path)
