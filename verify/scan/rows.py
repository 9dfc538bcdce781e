"""One pass over the ledger's rows for all of its checks, flat in memory.

The fast path works on bytes: what *must* stand in the header is written from the row's columns, its
body and the entry before, and compared; expressions tell that the rest is canonical and fits its
models, so nothing is decoded. Only where it does not hold are the rules asked, each by the function
of its own check (a property test holds the two together). After a bad row the pass goes on from
what is stored, so that one damage gives one finding, or few.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

import orjson
from pydantic import BaseModel, StringConstraints

from tripod.ledger import (
    GENESIS,
    MAX_BODY,
    MAX_HEADER,
    MERGED,
    REDACTED,
    Header,
    Tree,
    check_link,
    tell_over,
)
from tripod.ledger.actors import CHANGES
from tripod.ledger.entry import (
    COUNT_PATTERN,
    PLAIN_PATTERN,
    TEXT_PATTERN,
    entry_blobs,
    entry_leaf_hash,
)
from tripod.ledger.kinds.base import Content
from tripod.ledger.kinds.models import model_of, part_model
from tripod.ledger.kinds.registry import BY_NAME
from tripod.verify.check import Finding, FindingTally
from tripod.verify.checks import (
    bodies_present,
    canonical_bytes,
    chain_links,
    clock_forward,
    kinds_known,
    sequence,
    writers_authorised,
)
from tripod.verify.rows import all_rows, erasing_row, one_row

T = TypeVar("T")


# Shapes: bodies by their bytes -------------------------------------------------------------------
#
# ``row_pattern`` reads a model once and writes a regular expression over canonical JSON: sorted
# keys, no spaces, strings in their one spelling, whole numbers. A body that matches, and is UTF-8,
# has exactly one value, and that value fits the model; so nothing is decoded (a million bodies:
# pydantic 4.8 s, decoding and writing them again 1.5 s, matching 0.8 s). It only ever says yes:
# what does not match is decoded and judged by the rules themselves, so a new sort of field costs
# time, not truth. A property test holds it against ``parse_canonical`` and pydantic.

TEXT = b'"' + TEXT_PATTERN + b'"'
"""A string as canonical JSON writes it."""

_COUNT = 2**53 - 1
_SIMPLE = re.compile(r"\^([A-Za-z0-9\[\]{},-]+)\$")


def row_pattern(model: type[BaseModel]) -> bytes | None:
    r"""The expression for a model's canonical bytes; None where it cannot be written.

    >>> from tripod.ledger.kinds.bus import ACKED_ALL
    >>> row_pattern(model_of(ACKED_ALL))[:60]
    b'\\{"count":(?:0|[1-9][0-9]{0,14}|[1-8][0-9]{15})(?:,"queue":"'
    """
    if model is part_model(Content):
        # Bytes as text, as base64, or as a blob: exactly one of the three.
        blob = rb'\{"sha256":"[0-9a-f]{64}","size":' + COUNT_PATTERN + rb"\}"
        return rb'(?:\{"(?:text|base64)":' + TEXT + rb"\}|" + blob + rb")"
    decorators = model.__pydantic_decorators__
    if decorators.model_validators or decorators.field_validators:
        return None
    parts: list[tuple[bytes, bool]] = []
    for name, about in sorted(model.model_fields.items()):
        inner = _field(about.annotation, list(about.metadata))
        if inner is not None:
            parts.append((b'"%b":%b' % (name.encode(), inner), about.is_required()))
        elif about.is_required():
            return None
    first = next((at for at, (_, required) in enumerate(parts) if required), None)
    if first is None:
        return None
    # Commas stand after what comes before the first required field, in front of what comes after.
    before = b"".join(b"(?:%b,)?" % part for part, _ in parts[:first])
    after = b"".join(
        b",%b" % part if required else b"(?:,%b)?" % part for part, required in parts[first + 1 :]
    )
    return rb"\{" + before + parts[first][0] + after + rb"\}"


def _field(annotation: Any, metadata: list[Any]) -> bytes | None:
    """The expression for one field's value."""
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        forms = [form for form in get_args(annotation) if form is not NoneType]
        return _field(forms[0], metadata) if len(forms) == 1 else None
    if hasattr(annotation, "__metadata__"):
        return _field(annotation.__origin__, [*metadata, *annotation.__metadata__])
    if annotation is str:
        return _text(metadata)
    if annotation is int:
        return _integer(metadata)
    if metadata:
        return None
    if origin is Literal:
        values = get_args(annotation)
        written = [f'"{v}"' if isinstance(v, str) else str(v) for v in values]
        simple = all(type(value) in (str, int) for value in values)
        joined = b"|".join(re.escape(text).encode() for text in written)
        return b"(?:%b)" % joined if simple else None
    if origin is list:
        item = _field(get_args(annotation)[0], [])
        return None if item is None else rb"\[(?:%b(?>(?:,%b)*))?\]" % (item, item)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return row_pattern(annotation)
    return None


def _text(metadata: list[Any]) -> bytes | None:
    if not metadata:
        return TEXT
    (rule, *others) = metadata
    if others or not isinstance(rule, StringConstraints):
        return None
    if rule.strip_whitespace or rule.to_lower or rule.to_upper:
        return None
    if rule.pattern is not None:
        simple = _SIMPLE.fullmatch(str(rule.pattern))
        bounded = rule.min_length or rule.max_length
        return b'"%b"' % simple[1].encode() if simple and not bounded else None
    # Counted in bytes and without escapes: never more characters than the model allows.
    low, high = rule.min_length or 0, rule.max_length
    if low > 1:
        return None  # a character may take several bytes
    bound = b"" if high is None else b"%d" % high
    return b'"' + PLAIN_PATTERN + b"{%d,%b}" % (low, bound) + b'"'


def _integer(metadata: list[Any]) -> bytes | None:
    rules = [one for rule in metadata for one in getattr(rule, "metadata", [rule])]
    limits = {type(rule).__name__: rule for rule in rules}
    low = getattr(limits.pop("Ge", None), "ge", None)
    high = getattr(limits.pop("Le", None), "le", None)
    if limits or type(low) is not int or type(high) is not int:
        return None
    if low == high >= 0:
        return b"%d" % high
    if low != 0:
        return None
    if high == _COUNT:
        return COUNT_PATTERN
    # Numbers with fewer digits than the limit has.
    return rb"(?:0|[1-9][0-9]{0,%d})" % (len(str(high)) - 2) if high > 9 else rb"0"


# Usual ------------------------------------------------------------------------------------------

FRONT = re.compile(
    rb'\{"actor":"[^"\\\x00-\x1f]*+","at":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)",'
    rb'(?>(?:"auth":"([0-9a-f]{64})",)?)"body":"([0-9a-f]{64})",(?:"cause":"([^"\\\x00-\x1f]*+)",)?'
).match
"""A header in front of its id, with nothing to escape: time, auth, body, cause."""


class FastPath(NamedTuple):
    """A kind as the fast path needs it."""

    fits: Callable[[bytes], object]
    name: bytes  # with the NUL that stands after it in a commitment
    place: str
    below: bool


def row_stands(kind: str, stream: str, place: str, body: bytes) -> bool:
    """Whether an entry whose body fits its model stands in the stream that the body names."""
    if place == "chat/":
        # Within a text the quotes would be escaped, and no other field has this name.
        return stream[:5] == place and b'"channel":' + orjson.dumps(stream[5:]) in body
    return stream == BY_NAME[kind].stream_of(orjson.loads(body))


class _UsualKinds(dict[object, FastPath | None]):
    """Filled as kinds are met: a ledger holds few of them, and each takes a millisecond."""

    def __missing__(self, name: object) -> FastPath | None:
        kind = BY_NAME.get(name) if isinstance(name, str) else None
        if kind is None:
            return None
        expression = None if kind.is_placed else row_pattern(model_of(kind))
        path = None
        if expression is not None:
            fits = re.compile(expression).fullmatch
            path = FastPath(
                fits, kind.name.encode() + b"\x00", kind.stream, kind.stream[-1:] == "/"
            )
        self[name] = path
        return path


USUAL = _UsualKinds()
"""By the kind's name, by index; None: it is judged by its rules alone."""


# The pass -----------------------------------------------------------------------------------------

_MARK = b'"sha256"'  # only a body that names a blob, or a digest, holds it


@dataclass
class ChainEnd:
    """What the next row is judged by: the number that follows, and what the row before says."""

    expected: int = 0
    prev: str = GENESIS
    at: str = ""
    origin: str | None = None


@dataclass
class RowCounts:
    """What a pass counted; ``ids`` sums a keyed hash of all ids.

    ``redacted`` counts the erased bodies that an entry names as erased, ``signed`` the entries that
    name a signature record, or have one.
    """

    rows: int = 0
    size: int = 0
    ids: int = 0
    redacted: int = 0
    signed: int = 0

    def add(self, later: RowCounts) -> None:
        """Add the counts of a later part of the ledger."""
        for name, count in vars(later).items():
            setattr(self, name, getattr(self, name) + count)


@dataclass
class RangeTree:
    """The tree over the rows of a range, which begins at a multiple of 256.

    ``blocks`` are the roots of its full blocks of 256, ``leaves`` counts the entries of the ledger
    up to here. ``whole`` is False once rows are missing or unreadable, so that there is no tree;
    ``readable`` once the pages could not be walked to their end. Of the stored nodes, ``full`` are
    the larger subtrees, ``torn`` is the first entry below the lowest that is wrong.
    """

    tree: Tree = field(default_factory=Tree)
    blocks: bytearray = field(default_factory=bytearray)
    leaves: int = 0
    whole: bool = True
    readable: bool = True
    full: list[tuple[int, int, bytes]] = field(default_factory=list)
    torn: int | None = None

    def keep_blocks(self) -> None:
        """Keep the root of each block of 256 entries that became full; they are stored too."""
        for level, _, digest in self.tree.full:
            if level == 1:
                self.blocks += digest
        self.tree.full.clear()


class Half(NamedTuple):
    """What a clean pass over the upper half of a ledger gives back to the one over the lower.

    ``begun`` is the end of the chain that it began with, ``names`` are the blobs that bodies name.
    """

    begun: ChainEnd
    end: ChainEnd
    adopted: int | None
    seen: RowCounts
    range: RangeTree
    names: list[tuple[str, int, int]]


@dataclass
class RowPass:
    """The pass over the rows from ``start`` (a multiple of 256) to ``stop``, and what it carries.

    ``named`` has the blobs that bodies name. ``told`` is the id of the newest entry that follows
    from no other: nearly every ``cause`` is that one. ``explained``: the row before is named
    already. ``pending`` is the entry whose link did not fit and is not named yet, ``adopted`` the
    first entry that marks an adoption.
    """

    db: sqlite3.Connection
    tally: FindingTally
    named: sqlite3.Connection
    start: int = 0
    stop: int | None = None
    end: ChainEnd = field(default_factory=ChainEnd)
    seen: RowCounts = field(default_factory=RowCounts)
    range: RangeTree = field(default_factory=RangeTree)
    told: str = ""
    explained: bool = False
    pending: int | None = None
    adopted: int | None = None

    def run(self) -> None:
        """Judge every row of the range."""
        try:
            self._rows()
        except sqlite3.DatabaseError as error:
            self.range.whole = self.range.readable = False
            self.range.leaves = self.range.tree.size  # what was read is a tree of its own
            expected = max(self.end.expected, self.start + self.range.leaves)
            self.end.expected = expected
            self._add(
                sequence, f"the rows from entry {expected} on cannot be read: {error}", expected
            )

    @property
    def is_clean(self) -> bool:
        """Whether nothing is wrong, and no link waits for a row that says which of two it is."""
        return not self.tally.found and self.pending is None

    def resume(self, upper: Half) -> None:
        """Go on after the upper half, which began where this pass ended."""
        self.end = upper.end
        if self.adopted is None:
            self.adopted = upper.adopted
        elif upper.adopted is not None:
            self._add(sequence, sequence.ADOPTED_AGAIN, upper.adopted)
        self.range.blocks += upper.range.blocks
        self.range.tree = upper.range.tree
        self.range.leaves += upper.range.leaves
        self.seen.add(upper.seen)

    def _rows(self) -> None:
        """The fast path; anything unusual goes to ``_slow``."""
        dumps, kinds, tree, end = orjson.dumps, USUAL, self.range.tree, self.end
        expected, prev, origin, at = end.expected, end.prev, end.origin, end.at.encode()
        size = rows = ids = 0
        told, calm = self.told, True
        for row in tell_over(all_rows(self.db, self.start or None, self.stop), "checking entries"):
            seq, id_, kind, stream, header, salt, body, auth = row
            rows += 1
            ids += hash(id_)
            try:
                fits, name, place, below = kinds[kind]  # type: ignore[misc]  # None: judged below
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
                    and (row_stands(kind, stream, place, body) if below else stream == place)
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
                    self.range.keep_blocks()
                if _MARK in body:
                    self._name(seq, orjson.loads(body))
                self.seen.signed += auth is not None or front[2] is not None
                if front.lastindex == 3:  # no cause
                    told = id_
                elif front[4].decode() != told:
                    self._cause(seq, front[4].decode())
            else:
                end.expected, end.prev, end.at = expected, prev, at.decode()
                self.told = told
                self._slow(row)
                told = self.told
                calm = self.pending is None and not self.explained
                expected, prev, origin, at = end.expected, end.prev, end.origin, end.at.encode()
        end.expected, end.prev, end.at = expected, prev, at.decode()
        self.seen.rows, self.seen.ids, self.range.leaves = rows, ids, tree.size
        self.seen.size += size

    # One row by its rules ----------------------------------------------------------------------

    def _slow(self, row: tuple[Any, ...]) -> None:
        """Ask each rule about a row, then go on from what is stored."""
        seq, id_, kind, stream, raw, salt, body, auth = row
        end = self.end
        problem = sequence.sequence_problem(seq, end.expected)
        if problem is not None:
            self._add(sequence, problem, min(seq, end.expected))
            self.range.whole, self.explained = False, True
        header = canonical_bytes.read_canonical_header(raw)
        if isinstance(header, str):
            self._add(canonical_bytes, header, seq)
            self.finish(None)
            self._step(seq, raw, named=True)
            return
        problem = sequence.sequence_column_problem(header, seq, id_, kind, stream)
        named = problem is not None and header.seq != seq
        self._add(sequence, problem, seq)
        if end.origin is None:
            end.origin = header.ledger
        self.explained = self.explained or named
        left = end.origin
        if header.kind == "ledger.forked-from":
            end.origin = header.ledger
        self._link(seq, header)
        if header.kind != "ledger.forked-from" or header.ledger == left:
            self._add(clock_forward, clock_forward.clock_problem(header.at, end.at), seq)
        end.at = header.at if seq >= 0 else ""  # one before the first: entry 0 is not later than it
        self.seen.signed += header.auth is not None or auth is not None
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
        if salt is None and body is None:  # the entry that says so, and what it keeps
            said = erasing_row(self.db, seq)
            problem = bodies_present.body_erasure_problem(seq, header, said)
            if problem is None and said is not None:
                self.seen.redacted += 1
                problem = kinds_known.kind_problem(header.kind, header.stream, said[1]["keep"])
                if problem is None and header.kind == MERGED:
                    problem = kinds_known.kept_problem(header, said[1]["keep"], self._blob)
            self._add(bodies_present, problem, seq)
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
        if problem is None and header.kind == MERGED:
            problem = kinds_known.kept_problem(header, data, self._blob)
        if problem is not None:
            self._add(kinds_known, problem, seq)
        elif header.kind == "ledger.forked-from":
            self._add(chain_links, chain_links.chain_fork_problem(header, data, left), seq)
        elif header.kind in CHANGES:
            self._add(writers_authorised, writers_authorised.writer_id_problem(header, data), seq)
        opening = sequence.sequence_opening_problem(seq, header.kind, data, header.ledger)
        self._add(sequence, opening, seq)
        self._name(seq, data)
        if header.kind == REDACTED and opening is None:
            sql = "SELECT kind, salt IS NULL AND body IS NULL FROM entries WHERE seq = ?"
            with suppress(LookupError, TypeError):  # of another shape: `kinds-known` named it
                target = one_row(self.db, sql, (data["seq"],))
                problem = bodies_present.absent_body_claim_problem(seq, header, data, target)
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
        if self.range.whole:
            self._add(
                sequence, sequence.sequence_cause_problem(cause, row[0] if row else None, seq), seq
            )

    def _link(self, seq: int, header: Header) -> None:
        """Judge the link, and name the right one of the two entries that it joins.

        Where only this link fails, the entry before was altered; where the next one fails as
        well, this entry was. So a failed link waits for the next row.
        """
        problem = check_link(header, header.seq, self.end.prev, self.end.origin or "")
        if self.pending is not None:
            self._blame(intact=problem is None)
        elif problem is not None and not self.explained:
            if seq == 0 or header.prev == self.end.prev:
                self._add(chain_links, problem, seq)
            else:
                self.pending = seq

    def _blame(self, *, intact: bool) -> None:
        """Name one of the two entries at the link that waits."""
        assert self.pending is not None
        waiting, self.pending = self.pending, None
        if intact:
            text = (
                f"entry {waiting - 1} is not the one that entry {waiting} was linked to: it was "
                "altered after it was appended"
            )
            self._add(chain_links, text, waiting - 1)
        else:
            text = f"entry {waiting} does not name the hash of the entry before it"
            self._add(chain_links, text, waiting)

    def _step(self, seq: int, raw: object, *, named: bool) -> None:
        """Go on after this row."""
        self.explained = named
        self.end.expected = max(self.end.expected, seq + 1)
        if type(raw) is bytes:
            leaf = entry_leaf_hash(raw)
            self.end.prev = leaf.hex()
            self.seen.size += len(raw)
            self.range.tree.append(leaf)
            self.range.keep_blocks()
        else:
            self.explained, self.range.whole = True, False

    def finish(self, last: object) -> None:
        """Settle a link that still waits: ``last`` is the last leaf as the head row has it."""
        if self.pending is not None:
            self._blame(intact=last == self.end.prev)

    # Beside the rows ---------------------------------------------------------------------------

    def _blob(self, digest: bytes) -> bytes | None:
        row = one_row(self.db, "SELECT bytes FROM blobs WHERE sha256 = ?", (digest,))
        return row[0] if row is not None and type(row[0]) is bytes else None

    def _name(self, seq: int, data: dict[str, Any]) -> None:
        rows = [(digest, size, seq) for digest, size in entry_blobs(data)]
        if rows:
            self.named.executemany("INSERT OR IGNORE INTO named VALUES (?, ?, ?)", rows)

    def _add(self, check: Any, problem: str | None, seq: int) -> None:
        """Add what is wrong with an entry to the findings of a check; None: nothing is."""
        if problem is not None:
            self.tally.add(Finding(check.NAME, problem, f"entry {seq}", help=check.HELP, seq=seq))
