"""The store's honest in-memory twin: the same contract, no disk; what any other store is held to.

Table projections live in a private in-memory database, so that folds are the same code.
"""

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Unpack

import orjson

from tripod.ledger.chain import Tip, link_all
from tripod.ledger.entry import Draft, Entry, entry_blob_mark, entry_blobs, entry_leaf_hash
from tripod.ledger.errors import ConflictError, LedgerError
from tripod.ledger.ids import fresh_ids, now_at
from tripod.ledger.merkle import Tree
from tripod.ledger.store import Cursors, Fold, Guard, Head, Occurrences, RawEntry, Selection


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
        self._files = 0
        self.is_whole = True

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
        """Time of the newest entry ('' before there is one)."""
        return self._tip.at if self._entries else ""

    @property
    def tables(self) -> sqlite3.Connection:
        """Connection to the table projections."""
        return self.db

    def cursors(self) -> Cursors:
        """The size, and how far the projections are."""
        return Cursors(self.size, self.size, self._files)

    def tables_folded(self) -> None:
        """Each append folds the tables: there is no cursor to be moved."""

    def set_files(self, size: int) -> None:
        """The files show the first ``size`` entries."""
        self._files = max(self._files, min(size, self.size))

    @contextmanager
    def transaction(self) -> Iterator["MemoryStore"]:
        """Leave with an exception and nothing has happened."""
        entries, blobs = list(self._entries), dict(self._blobs)
        old = self._tip
        if self.db.in_transaction:
            raise LedgerError("this store has a transaction open: append within that one")
        self.db.execute("BEGIN")
        try:
            self.is_whole = True
            yield self
            self._check_whole()
            self.db.execute("COMMIT")
        except BaseException:
            self.db.execute("ROLLBACK")
            self._entries, self._by_id = entries, {entry.id: entry for entry in entries}
            self._tip, self._blobs = old, blobs
            raise

    def _check_whole(self) -> None:
        if not self.is_whole:
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
            self.is_whole = False
            self._fold(self.db, fresh, self.blob)
            self.is_whole = True
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
        for digest, _ in entry_blobs(erased.data):
            mark = entry_blob_mark(digest)
            if not any(mark in (other.body or b"") for other in self._entries):
                self._blobs.pop(bytes.fromhex(digest), None)
        return entry

    def head(self) -> Head:
        """Size and root as of now."""
        return Head(self._tip.tree.size, self._tip.tree.root())

    def read(
        self, start: int = 0, stop: int | None = None, **chosen: Unpack[Selection]
    ) -> Iterator[Entry]:
        """Entries [start, stop) of a stream and of some kinds, in either order."""
        stream, kinds = chosen.get("stream"), chosen.get("kinds")
        found = [
            entry
            for entry in self._entries[max(start, 0) : stop]
            if stream in (None, entry.stream) and (not kinds or entry.kind in kinds)
        ]
        return iter(found[:: -1 if chosen.get("newest_first") else 1][: chosen.get("limit")])

    def raw(
        self, start: int = 0, stop: int | None = None, **chosen: Unpack[Selection]
    ) -> Iterator[RawEntry]:
        """What ``read`` gives, undecoded."""
        return map(_raw, self.read(start, stop, **chosen))

    def entry(self, seq: int) -> Entry | None:
        """The entry with this number, or None."""
        return self._entries[seq] if 0 <= seq < self.size else None

    def header(self, seq: int) -> bytes | None:
        """The exact bytes of an entry's header, or None."""
        entry = self.entry(seq)
        return entry and entry.header

    def raw_of(self, seqs: Sequence[int]) -> Iterator[RawEntry]:
        """The entries with these numbers, undecoded."""
        return (_raw(entry) for seq in seqs if (entry := self.entry(seq)) is not None)

    def seq_of(self, entry_id: str) -> int | None:
        """The number of the entry with this id, or None."""
        entry = self._by_id.get(entry_id)
        return None if entry is None else entry.seq

    def raw_by_id(self, start: str, stop: str) -> Iterator[RawEntry]:
        """The entries with ids in [start, stop), undecoded."""
        return (_raw(entry) for entry in self._entries if start <= entry.id < stop)

    def count_by_id(self, start: str, stop: str) -> int:
        """How many entries have ids in [start, stop)."""
        return len(list(self.raw_by_id(start, stop)))

    def last_seq(
        self, *, kind: str | None = None, stream: str | None = None, stop: int | None = None
    ) -> int | None:
        """The number of the newest entry of a kind, of a stream, below ``stop``, or None."""
        kinds = () if kind is None else (kind,)
        last = next(self.read(0, stop, stream=stream, kinds=kinds, newest_first=True), None)
        return None if last is None else last.seq

    def kinds(self, start: int = 0, stop: int | None = None) -> dict[str, Occurrences]:
        """The kinds of the entries of a range, each with how many there are."""
        found: dict[str, Occurrences] = {}
        for entry in self.read(start, stop):
            number, first, _ = found.get(entry.kind, (0, entry.seq, entry.seq))
            found[entry.kind] = Occurrences(number + 1, first, entry.seq)
        return found

    def names_in_body(self, kind: str, text: bytes) -> bool:
        """Whether the stored body of an entry of this kind contains these bytes."""
        return any(text in (entry.body or b"") for entry in self.read(kinds=(kind,)))

    def blob(self, digest: bytes) -> bytes | None:
        """The blob with this SHA-256, or None."""
        return self._blobs.get(digest)

    def hashes(self, level: int, start: int, stop: int) -> list[bytes]:
        """The roots of full subtrees of 256^level entries, numbers [start, stop)."""
        tree = Tree()
        for entry in self._entries:
            tree.append(entry_leaf_hash(entry.header))
        return [h for of, n, h in sorted(tree.full) if of == level and start <= n < stop]

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


def _raw(entry: Entry) -> RawEntry:
    return RawEntry(*entry[:4], *entry[6:9], entry.auth)
