"""The protocol of a store: a handful of methods that every store implements; head and guards.

The caller states a guard on a *stream*; only the store knows the head and queues on it, since
callers that compare-and-swap one global head collapse as soon as several write (spec: store 4.2).
One contract suite (``tests/core/store_contract.py``) runs against every implementation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, TypeAlias

from tripod.ledger.entry import Draft, Entry


class Head(NamedTuple):
    """(size, root) of the ledger at some moment."""

    size: int
    root: bytes


class Guard(NamedTuple):
    """``stream`` has not grown since the caller saw the ledger at ``size`` entries."""

    stream: str
    size: int


# Store ------------------------------------------------------------------------------------------


Fold: TypeAlias = Callable[[Any, Sequence[Entry]], None]
"""Called inside the append's transaction with the table connection and the new entries."""


class Transaction(Protocol):
    """The one place where a decision and its entries are made together.

    ``tables`` is a DB-API connection that sees the table projections as of ``size``.
    """

    @property
    def size(self) -> int:
        """How many entries the ledger holds, those appended in this transaction included."""

    @property
    def at(self) -> str:
        """Time of the newest entry; a new one is never dated earlier."""

    @property
    def tables(self) -> Any:
        """Connection to the table projections, inside this transaction."""

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


class Store(Protocol):
    """What a ledger needs from a database."""

    @property
    def origin(self) -> str:
        """The ledger's own name, unique for ever ('' before ``ledger.opened``)."""

    def head(self) -> Head:
        """Size and root as of now."""

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Take the writer's place; leave with an exception and nothing has happened."""

    def append(self, drafts: Sequence[Draft], guard: Guard | None = None) -> list[Entry]:
        """One transaction that appends ``drafts``; see ``Transaction.append``."""

    def read(
        self, start: int = 0, stop: int | None = None, stream: str | None = None
    ) -> Iterator[Entry]:
        """Entries [start, stop) in order, without gaps, with their exact bytes."""

    def blob(self, digest: bytes) -> bytes | None:
        """The blob with this SHA-256, or None."""

    def wait(self, size: int, timeout: float) -> int:
        """Wait until the ledger holds more than ``size`` entries or ``timeout`` seconds passed.

        Only a hint: the size is returned in either case, and correctness never depends on it.
        """

    def durability(self) -> str:
        """What an acknowledged append survives: ``fsync``, ``none``. Said, never assumed."""

    def close(self) -> None:
        """Give everything back."""
