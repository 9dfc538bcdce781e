"""What vouches for the ledger: the keys in force, the seals made, the anchors, the forks.

Tables alone, no file. A note is not judged here: whether a seal was signed by the right key, over
the right root, is for the check ``seals-open`` to say. So every entry that fits its model gets its
row, and ``root`` is '' where a note holds none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ledger.entry import Entry
from projections.projection import File, Op, Source

__all__ = ["Trust"]

_KEY = "INSERT INTO keys (seq, vkey) VALUES (?, ?)"
_SEAL = "INSERT INTO seals (seq, size, root, note) VALUES (?, ?, ?, ?)"
_ANCHOR = "INSERT INTO anchors (seq, method, name, size, root) VALUES (?, ?, ?, ?, ?)"
_FORK = "INSERT INTO forks (seq, origin, size, root) VALUES (?, ?, ?, ?)"


class Trust:
    """See the module. Roots are 64 hex digits; ``forks.origin`` is the line that was left."""

    name = "trust"
    version = 1
    tables = ("keys", "seals", "anchors", "forks")
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
"""
    kinds = frozenset(("key.set", "seal.made", "anchor.received", "ledger.forked-from"))

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
        return (("forks", _FORK, (seq, body["origin"], body["size"], body["root"]), None),)

    def touched(self, entry: Entry) -> Iterable[str]:  # noqa: ARG002 - the protocol's signature
        """No file."""
        return ()

    def paths(self, source: Source) -> Iterator[str]:  # noqa: ARG002 - the same
        """No file."""
        return iter(())

    def render(self, source: Source, path: str) -> File | None:  # noqa: ARG002 - the same
        """No file."""
        return None


def _root(note: str) -> str:
    """The root that a seal's third line names, in hex."""
    from binascii import Error, a2b_base64

    try:
        root = a2b_base64(note.split("\n", 3)[2])
    except (Error, IndexError, ValueError):
        return ""
    return root.hex() if len(root) == 32 else ""
