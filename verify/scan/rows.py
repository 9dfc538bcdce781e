"""One pass over the ledger's rows for all of its checks, flat in memory.

The fast path works on bytes: what *must* stand in the header is written from the row's columns, its
body and the entry before, and compared; expressions tell that the rest of the header and the body
are in their canonical spelling and fit their models, so nothing is decoded.
Only where it does not hold are the rules asked, each by the function of its own check; the fast
path is their conjunction (a property test holds the two together). After a bad row the pass goes
on from what is stored, so that one damage gives one finding, or few.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, NamedTuple, TypeAlias

import orjson

from tripod.ledger import GENESIS, MAX_BODY, MAX_HEADER, REDACTED, Header, Tree, leaf_hash
from tripod.ledger.actors import CHANGES
from tripod.ledger.entry import named_blobs
from tripod.ledger.progress import over
from tripod.verify.check import Finding, Tally
from tripod.verify.checks import (
    bodies_present,
    canonical_bytes,
    chain_links,
    clock_forward,
    kinds_known,
    sequence,
    writers_authorised,
)
from tripod.verify.rows import all_rows, kept_of, one
from tripod.verify.scan.shapes import FRONT, USUAL, stands

_MARK = b'"sha256"'  # only a body that names a blob, or a digest, holds it

State: TypeAlias = tuple[int, str, str, str | None]


class Half(NamedTuple):
    """What a pass over the upper half of a ledger gives back to the one over the lower."""

    start_state: State
    end_state: State
    tally: Tally
    pending: int | None
    whole: bool
    blocks: bytearray
    stack: list[bytes]
    counts: tuple[int, int, int, int, int, int]
    names: list[tuple[str, int, int]]
    adopted: int | None


@dataclass
class Pass:
    """The pass and what it carries from row to row.

    ``start`` and ``stop`` bound the range (``start`` a multiple of 256). ``expected`` is the number
    that follows, ``prev`` and ``at`` are those of the row before. ``explained`` says that the row
    before is named already, ``pending`` is the entry whose link did not fit and is not named yet.
    ``whole`` is False once rows are missing or unreadable, so that no tree can be computed;
    ``readable`` once the table's pages could not be walked to their end.
    ``tree`` is that of the range alone, ``blocks`` the roots of its full blocks of 256. ``ids``
    sums a keyed hash of all ids; blobs that bodies name go into the table ``named``. ``adopted``
    is the first entry that marks an adoption. ``redacted`` counts the bodies that were erased, and
    of which an entry says so. ``told`` is the id of the newest
    entry that follows from no other: nearly every ``cause`` is that one. ``torn`` is the first
    entry below the lowest stored node that is not the root of its entries. ``signed`` counts the
    entries that name a signature record, or have one.
    """

    db: sqlite3.Connection
    tally: Tally
    named: sqlite3.Connection
    start: int = 0
    stop: int | None = None
    expected: int = 0
    prev: str = GENESIS
    at: str = ""
    origin: str | None = None
    tree: Tree = field(default_factory=Tree)
    explained: bool = False
    pending: int | None = None
    whole: bool = True
    readable: bool = True
    blocks: bytearray = field(default_factory=bytearray)
    full: list[tuple[int, int, bytes]] = field(default_factory=list)
    leaves: int = 0
    rows: int = 0
    size: int = 0
    ids: int = 0
    adopted: int | None = None
    redacted: int = 0
    told: str = ""
    torn: int | None = None
    signed: int = 0

    def run(self) -> None:
        """Judge every row of the range."""
        try:
            self._rows()
        except sqlite3.DatabaseError as error:
            self.whole = self.readable = False
            self.leaves = self.tree.size  # what was read is a tree of its own
            self.expected = max(self.expected, self.start + self.leaves)
            message = f"the rows from entry {self.expected} on cannot be read: {error}"
            self._add(sequence, message, self.expected)

    def state(self) -> State:
        """What the next row is judged by."""
        return self.expected, self.prev, self.at, self.origin

    def half(self, begun: State, names: list[tuple[str, int, int]]) -> Half:
        """What the pass over the lower half needs of this one, which began in state ``begun``."""
        counts = (self.leaves, self.rows, self.size, self.ids, self.redacted, self.signed)
        return Half(
            begun, self.state(), self.tally, self.pending, self.whole, self.blocks,
            self.tree.stack, counts, names, self.adopted,
        )  # fmt: skip

    def resume(self, upper: Half) -> None:
        """Go on after the upper half, which began where this pass ended."""
        self.expected, self.prev, self.at, self.origin = upper.end_state
        self.tally, self.pending, self.whole = upper.tally, upper.pending, upper.whole
        self.blocks += upper.blocks
        if self.adopted is None:
            self.adopted = upper.adopted
        elif upper.adopted is not None:
            self._add(sequence, sequence.ADOPTED_AGAIN, upper.adopted)
        leaves, rows, size, ids, redacted, signed = upper.counts
        self.tree = Tree(leaves, upper.stack)
        self.leaves += leaves
        self.rows += rows
        self.size += size
        self.ids += ids
        self.redacted += redacted
        self.signed += signed

    def _rows(self) -> None:
        """The fast path; anything unusual goes to ``_slow``."""
        dumps, kinds, tree = orjson.dumps, USUAL, self.tree
        expected, prev, origin, at = self.expected, self.prev, self.origin, self.at.encode()
        size = rows = ids = 0
        told, calm = self.told, True
        for row in over(all_rows(self.db, self.start or None, self.stop), "checking entries"):
            seq, id_, kind, stream, header, salt, body, auth = row
            rows += 1
            ids += hash(id_)
            try:
                fits, name, place, below = kinds[kind]
                tail = dumps({
                    "id": id_, "kind": kind, "ledger": origin, "prev": prev, "seq": expected,
                    "stream": stream, "v": 1,
                })  # fmt: skip
                inner = sha256(b"\x02" + salt + name + body).hexdigest().encode()
                front = FRONT(header)
                good = (
                    calm
                    and seq == expected
                    and front is not None
                    and front[3] == inner
                    and header[front.end() :] == tail[1:]
                    and front[1] >= at
                    and fits(body) is not None
                    and (stands(kind, stream, place, body) if below else stream == place)
                    and type(id_) is str
                    and len(salt) == 32
                    and len(header) <= MAX_HEADER
                    and len(body) <= MAX_BODY
                    and (header.isascii() or bool(header.decode()))
                    and (body.isascii() or bool(body.decode()))
                )
            except (TypeError, KeyError, ValueError, AttributeError):
                good, front = False, None
            if good and front is not None:
                leaf = sha256(b"\x00" + header).digest()
                tree.append(leaf)
                expected, prev, at = seq + 1, leaf.hex(), front[1]
                size += len(header) + len(body)
                if tree.full:
                    self._nodes()
                if _MARK in body:
                    self._name(seq, orjson.loads(body))
                self.signed += auth is not None or front[2] is not None
                if front.lastindex == 3:  # no cause
                    told = id_
                elif front[4].decode() != told:
                    self._cause(seq, front[4].decode())
            else:
                self.expected, self.prev, self.at = expected, prev, at.decode()
                self.told = told
                self._slow(row)
                told = self.told
                calm = self.pending is None and not self.explained
                expected, prev, origin, at = self.expected, self.prev, self.origin, self.at.encode()
        self.expected, self.prev, self.at = expected, prev, at.decode()
        self.rows, self.ids, self.leaves = rows, ids, tree.size
        self.size += size

    # One row by its rules ----------------------------------------------------------------------

    def _slow(self, row: tuple[Any, ...]) -> None:
        """Ask each rule about a row, then go on from what is stored."""
        seq, id_, kind, stream, raw, salt, body, auth = row
        problem = sequence.order_problem(seq, self.expected)
        if problem is not None:
            self._add(sequence, problem, min(seq, self.expected))
            self.whole, self.explained = False, True
        header = canonical_bytes.read_header(raw)
        if isinstance(header, str):
            self._add(canonical_bytes, header, seq)
            self.finish(None)
            self._step(seq, raw, named=True)
            return
        problem = sequence.column_problem(header, seq, id_, kind, stream)
        named = problem is not None and header.seq != seq
        if problem is not None:
            self._add(sequence, problem, seq)
        if self.origin is None:
            self.origin = header.ledger
        self.explained = self.explained or named
        left = self.origin
        if header.kind == "ledger.forked-from":
            self.origin = header.ledger
        self._link(seq, header)
        anew = header.kind == "ledger.forked-from" and header.ledger != left
        problem = None if anew else clock_forward.time_problem(header.at, self.at)
        if problem is not None:
            self._add(clock_forward, problem, seq)
        self.at = header.at
        if header.auth is not None or auth is not None:
            self.signed += 1
        if header.kind == "ledger.adopted":
            if self.adopted is not None:
                self._add(sequence, sequence.ADOPTED_AGAIN, seq)
            self.adopted = seq if self.adopted is None else self.adopted
        if header.cause is None:
            self.told = header.id
        elif header.cause != self.told:
            self._cause(seq, header.cause)
        self._body(seq, header, salt, body, left)
        self._step(seq, raw, named=named)

    def _body(self, seq: int, header: Header, salt: Any, body: Any, left: str) -> None:
        if salt is None and body is None:
            self._erased(seq, header)
            return
        problem = bodies_present.body_problem(header, salt, body)
        if problem is not None:
            self._add(bodies_present, problem, seq)
            with suppress(orjson.JSONDecodeError, TypeError):
                self._name(seq, orjson.loads(body))  # one damage: its blobs are not astray as well
            return
        problem = canonical_bytes.body_problem(body)
        if problem is not None:
            self._add(canonical_bytes, problem, seq)
            return
        data = orjson.loads(body)
        problem = kinds_known.kind_problem(header.kind, header.stream, data)
        if problem is not None:
            self._add(kinds_known, problem, seq)
        elif header.kind == "ledger.forked-from":
            problem = chain_links.fork_problem(header, data, left)
            if problem is not None:
                self._add(chain_links, problem, seq)
        elif header.kind in CHANGES:
            problem = writers_authorised.id_problem(header, data)
            if problem is not None:
                self._add(writers_authorised, problem, seq)
        problem = sequence.opening_problem(seq, header.kind, data, header.ledger)
        if problem is not None:
            self._add(sequence, problem, seq)
        self._name(seq, data)
        if header.kind == REDACTED and problem is None:
            sql = "SELECT kind, salt IS NULL AND body IS NULL FROM entries WHERE seq = ?"
            target = one(self.db, sql, (data["seq"],))
            problem = bodies_present.claim_problem(seq, header, data, target)
            if problem is not None:
                self._add(bodies_present, problem, seq)

    def _erased(self, seq: int, header: Header) -> None:
        """A body that is not there: the entry that says so, and what it keeps."""
        said = kept_of(self.db, seq)
        problem = bodies_present.erasure_problem(seq, header, said)
        if problem is None and said is not None:
            self.redacted += 1
            problem = kinds_known.kind_problem(header.kind, header.stream, said[1]["keep"])
        if problem is not None:
            self._add(bodies_present, problem, seq)

    def _cause(self, seq: int, cause: str) -> None:
        """Judge a cause that is not the nearest; where rows are missing, it may be one of them.

        Without the index of ids, whose loss is a finding, each of these would walk the table.
        """
        sql = "SELECT seq FROM entries INDEXED BY sqlite_autoindex_entries_1 WHERE id = ?"
        try:
            row = self.db.execute(sql, (cause,)).fetchone()
        except sqlite3.OperationalError:
            return
        problem = sequence.cause_problem(cause, row[0] if row else None, seq)
        if problem is not None and self.whole:
            self._add(sequence, problem, seq)

    def _link(self, seq: int, header: Header) -> None:
        """Judge the link, and name the right one of the two entries that it joins.

        Where only this link fails, the entry before was altered; where the next one fails as
        well, this entry was. So a failed link waits for the next row.
        """
        problem = chain_links.link_problem(header, self.prev, self.origin or "")
        waiting, self.pending = self.pending, None
        if waiting is not None:
            self._blame(waiting, intact=problem is None, by=f"entry {waiting}")
        elif problem is not None and not self.explained:
            if seq == 0 or header.prev == self.prev:
                self._add(chain_links, problem, seq)
            else:
                self.pending = seq

    def _blame(self, waiting: int, *, intact: bool, by: str) -> None:
        if intact:
            self._add(chain_links, chain_links.altered(waiting - 1, by), waiting - 1)
        else:
            text = f"entry {waiting} does not name the hash of the entry before it"
            self._add(chain_links, text, waiting)

    def _step(self, seq: int, raw: object, *, named: bool) -> None:
        """Go on after this row."""
        self.explained = named
        if seq >= self.expected:
            self.expected = seq + 1
        if type(raw) is bytes:
            leaf = leaf_hash(raw)
            self.prev = leaf.hex()
            self.size += len(raw)
            self.tree.append(leaf)
            self._nodes()
        else:
            self.explained, self.whole = True, False

    def finish(self, last: object) -> None:
        """Settle a link that still waits: ``last`` is the last leaf as the head row has it."""
        if self.pending is not None:
            self._blame(self.pending, intact=last == self.prev, by=f"entry {self.pending}")
            self.pending = None

    # Beside the rows ---------------------------------------------------------------------------

    def _nodes(self) -> None:
        """Keep the root of each block of 256 entries that became full; they are stored too."""
        for level, _, digest in self.tree.full:
            if level == 1:
                self.blocks += digest
        self.tree.full.clear()

    def _name(self, seq: int, data: dict[str, Any]) -> None:
        rows = [(digest, size, seq) for digest, size in named_blobs(data)]
        if rows:
            self.named.executemany("INSERT OR IGNORE INTO named VALUES (?, ?, ?)", rows)

    def _add(self, check: Any, message: str, seq: int) -> None:
        self.tally.add(Finding(check.NAME, message, f"entry {seq}", help=check.HELP, seq=seq))
