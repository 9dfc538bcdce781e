"""Walks over the entries for the check ``writers-authorised``: every signature, every lack of one.

Checking a signature takes a hundred times as long as all else about an entry, so where there are
many, two processes each take half of the ledger. The changes of keys are few and are judged first.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import orjson

from tripod.ledger import CHANGE_IDS, Header, LedgerError, MalformedError, actors, tell_over
from tripod.ledger.actors import CHANGES, OBSERVED, Record
from tripod.ledger.sqlite.reader import read_only
from tripod.ledger.tlog.note import VerifierKey
from tripod.verify.check import Finding, Findings, Scanned
from tripod.verify.checks import canonical_bytes, writers_authorised
from tripod.verify.child import child_cores, start_child
from tripod.verify.rows import erasing_row, one_row, row_columns

MANY = 2_000  # signatures: below, a second process costs more than it saves
_NEAR = 4096  # entries: an act that signs a batch appends fewer
_NONE = writers_authorised.Demand()
_BROKEN = (LookupError, TypeError, ValueError, AttributeError, LedgerError)


class KeyChange(NamedTuple):
    """An enrolment or a revocation, as it stands in the ledger."""

    header: Header
    data: dict[str, Any]
    log: VerifierKey | None


TOGETHER = "entries were signed together, and only"
"""What a finding says that stands at an entry because others are not there; that one is good."""


class Batch(NamedTuple):
    """Entries that were signed together: how many, how many were seen, and the last of those."""

    of: int
    seen: int
    last: int


_NO_BATCH = Batch(0, 0, 0)


class SignatureScan(NamedTuple):
    """What a walk over a part of the entries gives: its findings, its counts, its open batches.

    ``batches`` are by what the headers name.
    """

    found: Findings
    signed: int
    unsigned: int
    batches: dict[str, Batch]


def scan_signatures(
    db: sqlite3.Connection, scan: Scanned, demand: writers_authorised.Demand = _NONE
) -> None:
    """Judge who signed what, and add what is found to what the pass over the rows found.

    Without a key on the chain, a signature or a demand there is nothing to walk for. What was
    judged once is not judged again. Where the pass began after a pin, so does this walk.
    """
    if "keys" in scan.coverage:
        return
    found = Findings()
    try:
        changes = list(_changes(db, since=scan.since > 0))
        if not changes and not scan.coverage.get("signed") and not demand.kinds:
            return
        writers = writers_authorised.Writers()
        for change in changes:
            problem = writers.change(*change)
            if problem is not None:
                found.add(_finding(change.header.seq, problem))
        keys = len(writers.force) + len(writers.ended)  # those that were enrolled soundly
        signed = int(scan.coverage.get("signed", 0))
        seen = _walk_all(db, changes, demand, signed, scan.since)
        # Batches of which entries stand before the pin are left out: nothing was looked at there.
        sql = "SELECT header FROM entries WHERE seq < ? ORDER BY seq DESC LIMIT ?"
        before = db.execute(sql, (scan.since, _NEAR)) if scan.since and seen.batches else ()
        for (raw,) in before:
            with suppress(*_BROKEN):
                seen.batches.pop(orjson.loads(raw).get("auth"), None)
    except sqlite3.Error as error:
        found, keys = Findings(), 0
        found.add(_finding(0, f"the signatures cannot be read: {error}"))
        seen = SignatureScan(Findings(), 0, 0, {})
    found.join(seen.found)
    for of, count, last in seen.batches.values():
        if count != of:  # anyone who takes an entry out cannot sign the rest anew
            message = f"{of} {TOGETHER} {count} of them are there"
            found.add(_finding(last, message))
    if found:
        scan.tally.found.setdefault(writers_authorised.NAME, Findings()).join(found)
    scan.coverage |= {"signed": seen.signed, "unsigned": seen.unsigned, "keys": keys}


def _finding(seq: int, message: str) -> Finding:
    check = writers_authorised
    return Finding(check.NAME, message, f"entry {seq}", help=check.HELP, seq=seq)


def _changes(db: sqlite3.Connection, *, since: bool) -> Iterator[KeyChange]:
    """All changes of actors' keys, found by their ids: a ledger without keys is not walked.

    ``since``: the ledger's own table says where the keys stand that sealed it, so that not every
    entry is looked at. That those were put in force soundly, `seals-open` says.
    """
    sql = (
        "SELECT seq, header, body FROM entries WHERE id >= ? AND id < ? AND kind IN (?, ?)"
        " ORDER BY seq"
    )
    rows = db.execute(sql, (*CHANGE_IDS, *CHANGES)).fetchall()
    where = "seq IN (SELECT seq FROM keys) AND " if since else ""
    sql = f"SELECT seq, body FROM entries WHERE {where}kind = 'key.set' ORDER BY seq"
    logs = []
    for seq, body in db.execute(sql).fetchall() if rows else ():
        with suppress(*_BROKEN):
            logs.append((seq, VerifierKey.parse(orjson.loads(body)["vkey"])))
    for seq, raw, body in rows:
        header = canonical_bytes.read_canonical_header(raw)
        try:
            data = orjson.loads(body)
        except _BROKEN:
            continue
        if not isinstance(header, str) and type(data) is dict and header.seq == seq:
            log = [key for at, key in logs if at < seq and key.name == header.ledger][-1:]
            yield KeyChange(header, data, log[0] if log else None)


def _walk_all(
    db: sqlite3.Connection,
    changes: list[KeyChange],
    demand: writers_authorised.Demand,
    signed: int,
    first: int,
) -> SignatureScan:
    row = db.execute("SELECT max(seq) + 1 FROM entries").fetchone()
    stop = row[0] or 0
    path = db.execute("PRAGMA database_list").fetchone()[2]
    if signed < MANY or child_cores() < 2 or not path:
        return _walk(db, changes, demand, first, stop)
    half = (first + stop) // 2
    wait = start_child(lambda: _walk(read_only(path), changes, demand, half, stop))
    lower = _walk(db, changes, demand, first, half)
    upper = wait() or _walk(db, changes, demand, half, stop)
    batches = dict(lower.batches)
    for named, (of, count, last) in upper.batches.items():
        batches[named] = Batch(of, count + batches.get(named, _NO_BATCH).seen, last)
    lower.found.join(upper.found)
    return SignatureScan(
        lower.found, lower.signed + upper.signed, lower.unsigned + upper.unsigned, batches
    )


def _walk(
    db: sqlite3.Connection,
    changes: list[KeyChange],
    demand: writers_authorised.Demand,
    first: int,
    stop: int,
) -> SignatureScan:
    walk = _Walk(db, changes, demand, first)
    sql = f"SELECT seq, {row_columns(db, 'header', 'body', 'auth')} FROM entries"
    rows = db.execute(f"{sql} WHERE seq >= ? AND seq < ? ORDER BY seq", (first, stop))
    for seq, raw, body, record in tell_over(rows, "checking signatures", stop - first):
        walk.entry(seq, raw, body, record)
    return SignatureScan(walk.found, walk.signed, walk.unsigned, walk.batches)


class _Signed(NamedTuple):
    """A batch whose signature was found good: further entries of it need only stand in its list."""

    named: str
    held: writers_authorised.KeyPeriod
    record: Record


class _Walk:
    """One walk over a part of the entries; what their bytes have wrong, other checks name.

    ``batches`` are those of which not all entries were seen.
    """

    def __init__(
        self,
        db: sqlite3.Connection,
        changes: list[KeyChange],
        demand: writers_authorised.Demand,
        first: int,
    ) -> None:
        self.db = db
        self.demand = demand
        self.writers = writers_authorised.Writers()
        self.coming = changes[::-1]
        self.found = Findings()
        self.signed = self.unsigned = 0
        self.batches: dict[str, Batch] = {}
        self.good: _Signed | None = None
        self._go_to(first)

    def _go_to(self, seq: int) -> None:
        """Take in the changes that stand before an entry."""
        while self.coming and self.coming[-1].header.seq < seq:
            self.writers.change(*self.coming.pop())

    def entry(self, seq: int, raw: Any, body: Any, record: Any) -> None:
        """Judge one entry."""
        if self.coming:
            self._go_to(seq)
        try:
            problem = self._problem(seq, orjson.loads(raw), body, record)
        except _BROKEN:
            return
        if problem is not None:
            self.found.add(_finding(seq, problem))

    def _problem(self, seq: int, head: dict[str, Any], body: Any, record: Any) -> str | None:
        actor, kind, named = head["actor"], head["kind"], head.get("auth")
        force = self.writers.force
        if named is not None or record is not None:
            self.signed += 1
            problem = writers_authorised.writer_record_fault(named, record) or self._record_problem(
                seq, head, record
            )
            if problem is not None:
                return problem
        else:
            demanded = kind in self.demand.kinds and seq >= self.demand.first
            if actor in force or demanded:
                self.unsigned += 1
                data = self._data(seq, body)
                problem = writers_authorised.unsigned_writer_problem(
                    self.writers, actor, kind, data, demanded=demanded
                )
                if problem is not None:
                    return problem
        if not force or kind not in writers_authorised.SPEAKERS:
            return None
        if body is not None and writers_authorised.writer_names_itself(kind, actor, body):
            return None
        data = self._data(seq, body)
        name = writers_authorised.shown_writer(kind, actor, data, force)
        if name is None or self._tells(name, head, data):
            return None
        return f"it shows {name!r} as who speaks, and {actor!r} did it"

    def _record_problem(self, seq: int, head: dict[str, Any], data: bytes) -> str | None:
        actor, named, stated = head["actor"], head["auth"], actors.actor_statement(head)
        held, good = self.writers.force.get(actor), self.good
        if good is not None and good.named == named and good.held is held:
            record, known = good.record, actors.message_of(good.record, stated) is not None
        else:
            try:
                record, known = actors.parse_actor_record(data), False
            except MalformedError as error:
                return str(error)
        if not known:
            problem = self.writers.signature_problem(actor, record, stated)
            if problem is not None:
                return problem
        if record.digests and held is not None:
            self.good = _Signed(named, held, record)
            of, count = len(record.digests), self.batches.get(named, _NO_BATCH).seen + 1
            self.batches[named] = Batch(of, count, seq)
            if count == of:
                del self.batches[named]
        return None

    def _data(self, seq: int, body: Any) -> dict[str, Any]:
        """What the body says, or what stands for it; {} where that cannot be read."""
        if body is None:
            said = erasing_row(self.db, seq)
            return {} if said is None else said[1]["keep"]
        data = orjson.loads(body)
        return data if type(data) is dict else {}

    def _tells(self, name: str, head: dict[str, Any], data: dict[str, Any]) -> bool:
        """Whether a tool published an event: of what its actor did, or of what was found."""
        sql = "SELECT header, seq, body FROM entries WHERE id = ? AND seq < ?"
        row = one_row(self.db, sql, (head.get("cause"), head["seq"]))
        if row is None or name not in writers_authorised.TELLS:
            return False
        cause = orjson.loads(row[0])
        if head["actor"] == "tripod" and cause["kind"] in writers_authorised.FOUND.get(
            (name, str(data.get("type"))), ()
        ):
            return OBSERVED in self._data(row[1], row[2])
        return bool(
            (cause["kind"], cause["actor"]) == (writers_authorised.TELLS[name], head["actor"])
        )
