"""The store's honest in-memory twin: the same contract, no disk. For tests and for evidence.

Table projections live in a private in-memory database, so that folds are the same code.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import orjson

from tripod.ledger.chain import Tip, link_all
from tripod.ledger.entry import Draft, Entry
from tripod.ledger.errors import ConflictError, LedgerError
from tripod.ledger.ids import fresh_ids, now_at
from tripod.ledger.sqlite.erase import named_blobs, naming
from tripod.ledger.store import Fold, Guard, Head


class MemoryStore:
    """A ledger in lists; see ``tripod.ledger.store.Store``."""

    def __init__(self, *, fold: Fold | None = None) -> None:
        """Begin an empty ledger."""
        self.db = sqlite3.connect(":memory:", isolation_level=None)
        self._fold = fold
        self._entries: list[Entry] = []
        self._by_id: dict[str, Entry] = {}
        self._blobs: dict[bytes, bytes] = {}
        self._tip = Tip.start("")
        self._whole = True

    @property
    def origin(self) -> str:
        """The ledger's own name ('' before it is opened)."""
        return self._tip.origin

    @property
    def size(self) -> int:
        """How many entries the ledger holds."""
        return len(self._entries)

    @property
    def at(self) -> str:
        """Time of the newest entry."""
        return self._tip.at

    @property
    def tables(self) -> sqlite3.Connection:
        """Connection to the table projections."""
        return self.db

    @contextmanager
    def transaction(self) -> Iterator[MemoryStore]:
        """Leave with an exception and nothing has happened."""
        entries, blobs = list(self._entries), dict(self._blobs)
        old = self._tip
        if self.db.in_transaction:
            raise LedgerError("this store has a transaction open: append within that one")
        self.db.execute("BEGIN")
        try:
            self._whole = True
            yield self
            self._check_whole()
            self.db.execute("COMMIT")
        except BaseException:
            self.db.execute("ROLLBACK")
            self._entries, self._by_id = entries, {entry.id: entry for entry in entries}
            self._tip, self._blobs = old, blobs
            raise

    def _check_whole(self) -> None:
        if not self._whole:
            raise LedgerError(
                "an append of this transaction failed half way: nothing of it was recorded"
            )

    def append(self, drafts: Sequence[Draft], guard: Guard | None = None) -> list[Entry]:
        """Append drafts, all or none; within a transaction or as one."""
        if not self.db.in_transaction:
            with self.transaction():
                return self.append(drafts, guard)
        self._check_whole()
        tip = self._tip.copy()
        entries, fresh, blobs = link_all(
            tip,
            drafts,
            now_at(),
            fresh_ids(len(drafts)),
            self._by_id.get,
            stands=self._by_id.__contains__,
        )
        repeats = bool(drafts) and not fresh  # a retry of what stands there conflicts with nothing
        later = [] if guard is None or repeats else self._entries[guard.size :]
        if guard is not None and any(entry.stream == guard.stream for entry in later):
            raise ConflictError(
                f"{guard.stream} has grown since it was read: read it again and decide again"
            )
        self._tip = tip
        # A caller may change its dict afterwards; what is stored stays what was hashed.
        kept = [entry._replace(data=orjson.loads(entry.body or b"{}")) for entry in fresh]
        self._entries += kept
        self._by_id.update((entry.id, entry) for entry in kept)
        self._blobs.update(blobs)
        if fresh and self._fold is not None:
            self._whole = False
            self._fold(self.db, fresh)
            self._whole = True
        return entries

    def erase(self, redaction: Draft) -> Entry:
        """Append a redaction and carry it out; within a transaction or as one."""
        if not self.db.in_transaction:
            with self.transaction():
                return self.erase(redaction)
        seq = redaction.body["seq"]
        if not 0 <= seq < self.size or self._entries[seq].body is None:
            raise LedgerError(
                f"entry {seq} cannot be erased: it is not there, or was erased before"
            )
        entry = self.append([redaction])[0]
        erased = self._entries[seq]
        keep = orjson.loads(entry.body or b"{}")["keep"]
        self._entries[seq] = erased._replace(salt=None, body=None, data=keep)
        self._by_id[erased.id] = self._entries[seq]
        for digest, _ in named_blobs(erased.data):
            mark = naming(digest)
            if not any(mark in (other.body or b"") for other in self._entries):
                self._blobs.pop(bytes.fromhex(digest), None)
        return entry

    def head(self) -> Head:
        """Size and root as of now."""
        return Head(self._tip.tree.size, self._tip.tree.root())

    def read(
        self, start: int = 0, stop: int | None = None, stream: str | None = None
    ) -> Iterator[Entry]:
        """Entries [start, stop) in order."""
        return iter([e for e in self._entries[start:stop] if stream is None or e.stream == stream])

    def blob(self, digest: bytes) -> bytes | None:
        """The blob with this SHA-256, or None."""
        return self._blobs.get(digest)

    def wait(self, size: int, timeout: float) -> int:
        """Give the size: nobody else can append to this process's memory while we wait."""
        if self.size <= size:
            time.sleep(min(timeout, 0.001))
        return self.size

    def durability(self) -> str:
        """Nothing here survives the process."""
        return "none"

    def close(self) -> None:
        """Forget everything."""
        self.db.close()
