"""What vouches for the ledger: keys of log and actors, the seals made, the anchors, the forks.

Tables alone, no file. A note is not judged here: whether a seal was signed by the right key, over
the right root, is for the check ``seals-open`` to say, and whether an actor's key was put in force
soundly for ``writers-authorised``. So every entry that fits its model gets its
row, and ``root`` is '' where a note holds none.
"""

from __future__ import annotations

from collections.abc import Iterable

from ledger.entry import Entry
from projections.projection import Op, TableAlone

_KEY = "INSERT INTO keys (seq, vkey) VALUES (?, ?)"
_SEAL = "INSERT INTO seals (seq, size, root, note) VALUES (?, ?, ?, ?)"
_ANCHOR = "INSERT INTO anchors (seq, method, name, size, root) VALUES (?, ?, ?, ?, ?)"
_ACTOR = "INSERT INTO actors (seq, handle, number, vkey, revoked) VALUES (?, ?, ?, ?, ?)"
_FORK = "INSERT INTO forks (seq, origin, size, root) VALUES (?, ?, ?, ?)"


class Trust(TableAlone):
    """See the module. Roots are 64 hex digits; ``forks.origin`` is the line that was left."""

    name = "trust"
    version = 2
    tables = ("keys", "seals", "anchors", "forks", "actors")
    ddl = """
CREATE TABLE keys (
    seq INTEGER PRIMARY KEY,
    vkey TEXT NOT NULL
) STRICT;
CREATE TABLE seals (
    seq INTEGER PRIMARY KEY,
    size INTEGER NOT NULL,
    root TEXT NOT NULL,
    note TEXT NOT NULL
) STRICT;
CREATE TABLE anchors (
    seq INTEGER PRIMARY KEY,
    method TEXT NOT NULL,
    name TEXT NOT NULL,
    size INTEGER NOT NULL,
    root TEXT NOT NULL
) STRICT;
CREATE TABLE forks (
    seq INTEGER PRIMARY KEY,
    origin TEXT NOT NULL,
    size INTEGER NOT NULL,
    root TEXT NOT NULL
) STRICT;
CREATE TABLE actors (
    seq INTEGER PRIMARY KEY,
    handle TEXT NOT NULL,
    number INTEGER NOT NULL,
    vkey TEXT NOT NULL,
    revoked INTEGER NOT NULL
) STRICT;
"""
    kinds = frozenset(
        (
            "key.set",
            "seal.made",
            "anchor.received",
            "ledger.forked-from",
            "actor.enrolled",
            "actor.revoked",
        )
    )

    def fold(self, entry: Entry) -> Iterable[Op]:
        """One row an entry."""
        seq, body = entry.seq, entry.data
        if entry.kind == "seal.made":
            row = (seq, body["size"], _root(body["note"]), body["note"])
            return (("seals", _SEAL, row, None),)
        if entry.kind == "key.set":
            return (("keys", _KEY, (seq, body["vkey"]), None),)
        if entry.kind == "anchor.received":
            anchor = (seq, body["method"], body["name"], body["size"], body["root"])
            return (("anchors", _ANCHOR, anchor, None),)
        if entry.kind in ("actor.enrolled", "actor.revoked"):
            gone = entry.kind == "actor.revoked"
            change = (seq, body["handle"], body["number"], body["vkey"], gone)
            return (("actors", _ACTOR, change, None),)
        return (("forks", _FORK, (seq, body["origin"], body["size"], body["root"]), None),)


def _root(note: str) -> str:
    """The root that a seal's third line names, in hex."""
    from binascii import Error, a2b_base64

    try:
        root = a2b_base64(note.split("\n", 3)[2])
    except (Error, IndexError, ValueError):
        return ""
    return root.hex() if len(root) == 32 else ""
