"""The protocol of a store: what it must do, so that no other module asks its tables.

A ``Store`` answers ``LedgerReader``, and so does an open ``Transaction`` (with its own entries), a
connection that may only read, and an export that was loaded into a database. SQL above this package
asks the tables of projections only.

The caller states a guard on a *stream*; only the store knows the head and queues on it, since
callers that compare-and-swap one global head collapse as soon as several write (spec: store 4.2).
One contract suite (``tests/core/sqlite/store_contract.py``) runs against every implementation.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, TypeAlias, TypedDict, Unpack

from tripod.ledger.entry import Draft, Entry


class Head(NamedTuple):
    """(size, root) of the ledger at some moment."""

    size: int
    root: bytes


class Guard(NamedTuple):
    """``stream`` has not grown since the caller saw the ledger at ``size`` entries."""

    stream: str
    size: int


class Cursors(NamedTuple):
    """How far the projections are, beside the ledger's ``size``; each counts entries from 0.

    The store moves ``tables`` itself, in each append's transaction; the team moves ``files``, once
    they show that many entries.
    """

    size: int
    tables: int
    files: int


class RawEntry(NamedTuple):
    """An entry as it is stored, nothing decoded: for programs that judge or copy its bytes.

    ``salt`` and ``body`` are None where they were erased, ``auth`` where nobody signed.
    """

    seq: int
    id: str
    kind: str
    stream: str
    header: bytes
    salt: bytes | None
    body: bytes | None
    auth: bytes | None


class Occurrences(NamedTuple):
    """How many entries of a kind there are in a range, and the first and the last of them."""

    number: int
    first: int
    last: int


class Selection(TypedDict, total=False):
    """Which entries of a range are read, and how; by default all, in the order of ``seq``."""

    stream: str | None
    """Of this stream only."""
    kinds: Collection[str]
    """Of these kinds only."""
    newest_first: bool
    """Backwards."""
    limit: int | None
    """At most so many."""


class LedgerReader(Protocol):
    """What can be asked of a ledger's entries.

    An entry never changes, except that its body may be erased; so all entries below a size
    that was read before are the same for every reader, however many follow them meanwhile.
    A digest is 32 bytes, a ``seq`` counts from 0, a range is ``[start, stop)``; without ``stop`` it
    goes up to the newest entry.

    Raises:
        LedgerDamagedError: from any method, where the ledger's database is damaged.
    """

    @property
    def tables(self) -> Any:
        """DB-API connection to the tables of the projections, for their own SQL."""

    @property
    def origin(self) -> str:
        """The ledger's own name, unique for ever ('' before ``ledger.opened``)."""

    @property
    def size(self) -> int:
        """How many entries the ledger holds."""

    @property
    def at(self) -> str:
        """Time of the newest entry ('' before there is one)."""

    def head(self) -> Head:
        """Size and root as of now."""

    def cursors(self) -> Cursors:
        """The size, and how far the projections are; all of one moment."""

    def read(
        self, start: int = 0, stop: int | None = None, **chosen: Unpack[Selection]
    ) -> Iterator[Entry]:
        """Entries of a range, without gaps, with their exact bytes and their decoded bodies."""

    def raw(
        self, start: int = 0, stop: int | None = None, **chosen: Unpack[Selection]
    ) -> Iterator[RawEntry]:
        """What ``read`` gives, undecoded: where the bytes are judged, or most are passed over."""

    def entry(self, seq: int) -> Entry | None:
        """The entry with this number, or None."""

    def header(self, seq: int) -> bytes | None:
        """The exact bytes of an entry's header, or None."""

    def raw_of(self, seqs: Sequence[int]) -> Iterator[RawEntry]:
        """Those entries of these numbers that exist, undecoded, in any order, by one query."""

    def seq_of(self, entry_id: str) -> int | None:
        """The number of the entry with this id, or None."""

    def raw_by_id(self, start: str, stop: str) -> Iterator[RawEntry]:
        """The entries with ids in ``[start, stop)``, undecoded, by ``seq``, found by an index."""

    def count_by_id(self, start: str, stop: str) -> int:
        """How many entries have ids in ``[start, stop)``."""

    def last_seq(
        self, *, kind: str | None = None, stream: str | None = None, stop: int | None = None
    ) -> int | None:
        """The number of the newest entry of a kind, of a stream, below ``stop``, or None."""

    def kinds(self, start: int = 0, stop: int | None = None) -> Mapping[str, Occurrences]:
        """The kinds of the entries of a range, each with how many there are."""

    def names_in_body(self, kind: str, text: bytes) -> bool:
        """Whether the stored body of an entry of this kind contains these bytes."""

    def blob(self, digest: bytes) -> bytes | None:
        """The blob with this SHA-256, or None."""

    def hashes(self, level: int, start: int, stop: int) -> list[bytes]:
        """Stored roots of full subtrees of 256^level entries, numbers [start, stop), in order."""


Blobs: TypeAlias = Callable[[bytes], bytes | None]
"""Gives the blob with a digest, or None."""

Fold: TypeAlias = Callable[[Any, Sequence[Entry], Blobs], None]
"""Called inside the append's transaction with the table connection, the new entries, the blobs."""


class Transaction(LedgerReader, Protocol):
    """The one place where a decision and its entries are made together.

    What it reads includes the entries that were appended in it, and ``tables`` shows the table
    projections as of ``size``. A new entry is never dated before ``at``.
    """

    @property
    def is_whole(self) -> bool:
        """Whether it can go on: no append of it failed half way, and nothing rolled it back."""

    def append(self, drafts: Sequence[Draft], guard: Guard | None = None) -> list[Entry]:
        """Append drafts, all or none.

        A draft whose id stands in the ledger with the same body appends nothing and gives the
        first entry back. The record of a signed draft is kept beside its entry for ever. A refused
        batch leaves the transaction as it was; where an append failed half way (in the fold, on the
        disk), nothing of the transaction is recorded any more.

        Raises:
            ConflictError: the guard's stream has grown.
            IdReusedError: the id stands there with another body.
            UnknownCauseError: a cause is the id of no entry that stands before.
        """

    def erase(self, redaction: Draft) -> Entry:
        """Append a ``redacted`` draft, and erase the body, salt and blobs of the entry it names.

        Blobs that another body names stay. From now on the erased entry is read with what the
        draft keeps. The tables are the caller's to fold anew: they show what was erased.

        Raises:
            LedgerError: there is no such entry, or it was erased before; nothing was changed.
        """

    def tables_folded(self) -> None:
        """The caller folded the tables anew, up to the newest entry: the cursor says so."""


class Store(LedgerReader, Protocol):
    """What a ledger needs from a database."""

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Take the writer's place; leave with an exception and nothing has happened."""

    def append(self, drafts: Sequence[Draft], guard: Guard | None = None) -> list[Entry]:
        """Append ``drafts`` in a transaction; see ``Transaction.append``.

        It may hold appends of other threads, which have a store each; none harms another.
        """

    def set_files(self, size: int) -> None:
        """The files show the first ``size`` entries: move that cursor, which never moves back."""

    def wait(self, size: int, timeout: float) -> int:
        """Wait up to ``timeout`` s for more than ``size`` entries; give the size, only a hint."""

    def durability(self) -> str:
        """What an acknowledged append survives: ``fsync``, ``none``. Said, never assumed."""

    def close(self) -> None:
        """Give everything back."""
