"""What a projection is: entries folded into tables, and files rendered from them.

A fold is pure: it turns one entry into row operations on the projection's own tables, and looks
at nothing else, so that any split of the fold gives the same rows. A render is pure as well: rows
(and the bodies they point to) in, bytes out. No clock, locale, host name, absolute path or dict
order reaches a rendered byte.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from tripod.ledger.entry import Entry
from tripod.ledger.store import LedgerReader

TOGETHER = 500
"""How many bodies are fetched at once."""


Op: TypeAlias = tuple[str, str, tuple[Any, ...], str | None]
"""One statement: the table that it works on, its SQL, its values, and the row that it concerns.

The row is named by the values that tell rows of the table apart: operations on different rows
commute, and the runner puts equal statements together. None: it may concern any row. (A plain
tuple: a fold of a million entries makes two million of them.)
"""


class File(NamedTuple):
    """A rendered file: its bytes and its permission bits."""

    data: bytes
    mode: int


Tables: TypeAlias = Any
"""A DB-API connection to a ledger's database; named by no type, so that this module is pure."""


Render: TypeAlias = Callable[[], File | None]
"""Gives the bytes of one path; None where there is to be no file."""


class Source(NamedTuple):
    """Where a render finds what it needs: the tables, bodies by seq, blobs by digest in hex.

    ``ledger`` answers what is asked of the entries themselves. ``bodies`` fetches many at once, for
    a fraction of the price: it gives those that can be had, and ``body`` says of each of the others
    why it cannot.
    """

    db: Tables
    body: Callable[[int], dict[str, Any]]
    blob: Callable[[str], bytes]
    bodies: Callable[[Sequence[int]], dict[int, dict[str, Any]]]
    ledger: LedgerReader

    def each_body_of(self, sql: str, *values: object) -> Iterator[dict[str, Any]]:
        """The bodies of the entries whose seqs a query of the tables gives, in its order."""
        return self.each_body([seq for (seq,) in self.db.execute(sql, values)])

    def each_body(self, seqs: Sequence[int]) -> Iterator[dict[str, Any]]:
        """The bodies of entries, one after the other; raises as ``body`` does."""
        for start in range(0, len(seqs), TOGETHER):
            part = seqs[start : start + TOGETHER]
            found = self.bodies(part)
            for seq in part:
                yield found[seq] if seq in found else self.body(seq)

    def content(self, content: dict[str, Any]) -> bytes:
        """The exact bytes that a body's content field holds."""
        if "text" in content:
            return content["text"].encode()  # type: ignore[no-any-return]
        if "base64" in content:
            from base64 import b64decode

            return b64decode(content["base64"])
        return self.blob(content["sha256"])


class Projection:
    """One projection: its tables, and the files that it renders from them.

    A projection of tables alone leaves ``touched``, ``paths`` and ``render`` as they are.
    """

    name: str
    """Commands and findings call it so."""
    version: int
    """Raised when its tables or bytes change for the same entries: then it is folded anew."""
    ddl: str
    """SQL that makes its tables."""
    tables: tuple[str, ...]
    kinds: frozenset[str]
    """Kinds of entries that it folds; all others leave it as it is."""

    def fold(self, entry: Entry) -> Iterable[Op]:
        """The row operations of one entry (KeyError, TypeError for a body of another shape)."""
        raise NotImplementedError

    def touched(self, entry: Entry) -> Iterable[str]:  # noqa: ARG002 - for those that have files
        """Paths within the team directory whose bytes this entry may change."""
        return ()

    def paths(self, source: Source) -> Iterator[str]:  # noqa: ARG002 - for those that have files
        """Every path that this projection renders now, in a fixed order."""
        return iter(())

    def render(self, source: Source, path: str) -> File | None:  # noqa: ARG002 - for those with files
        """The file at ``path``, or None where there is to be none."""
        return None
