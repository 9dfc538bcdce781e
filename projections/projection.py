"""What a projection is: entries folded into tables, and files rendered from them.

A fold is pure: it turns one entry into row operations on the projection's own tables, and looks
at nothing else, so that any split of the fold gives the same rows. Operations on different tables
commute; the runner (``projections.tables``) uses that to write a batch statement by statement.
A render is pure as well: rows (and the bodies they point to) in, bytes out. No clock, locale,
host name, absolute path or dict order reaches a rendered byte.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

from ledger.entry import Entry

__all__ = ["File", "Op", "Projection", "Source", "content_bytes"]


class Op(NamedTuple):
    """One statement on one table of the projection, with its values."""

    table: str
    sql: str
    values: tuple[Any, ...]


class File(NamedTuple):
    """A rendered file: its bytes and its permission bits."""

    data: bytes
    mode: int


class Source(NamedTuple):
    """Where a render finds what it needs: the tables, bodies by seq, blobs by digest in hex."""

    db: sqlite3.Connection
    body: Callable[[int], dict[str, Any]]
    blob: Callable[[str], bytes]


class Projection(Protocol):
    """One projection; ``projections.PROJECTIONS`` lists them."""

    @property
    def name(self) -> str:
        """Its name, as commands and findings use it."""

    @property
    def version(self) -> int:
        """Raised when its tables or bytes change for the same entries: then it is rebuilt."""

    @property
    def ddl(self) -> str:
        """SQL that makes its tables."""

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of its tables."""

    @property
    def kinds(self) -> frozenset[str]:
        """Kinds of entries that it folds; all others leave it as it is."""

    def fold(self, entry: Entry) -> Iterable[Op]:
        """The row operations of one entry (KeyError, TypeError for a body of another shape)."""

    def touched(self, entry: Entry) -> Iterable[str]:
        """Paths within the team directory whose bytes this entry may change."""

    def paths(self, source: Source) -> Iterator[str]:
        """Every path that this projection renders now, in a fixed order."""

    def render(self, source: Source, path: str) -> File | None:
        """The file at ``path``, or None where there is to be none."""


def content_bytes(source: Source, content: dict[str, Any]) -> bytes:
    """The exact bytes that a body's content field holds."""
    if "text" in content:
        return content["text"].encode()  # type: ignore[no-any-return]
    if "base64" in content:
        from base64 import b64decode

        return b64decode(content["base64"])
    return source.blob(content["sha256"])
