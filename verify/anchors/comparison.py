"""Compares the ledger with the heads that are remembered outside: roots, receipts, tail, level.

Keys, seals, receipts and forks come from the fold. A run over new entries alone folds nothing: then
the ledger's own tables only show where to look, and each row is computed again from the entry that
it names. A missing row lowers what the ledger can claim; an invented one has no such entry.

A receipt in the ledger (``anchor.received``) counts by the signature in it, of a witness or an
authority whose key came from elsewhere; the ledger's own claims count for nothing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeAlias

import orjson

from tripod.ledger import (
    Entry,
    LedgerError,
    MalformedError,
    MissingExtraError,
    NotVerifiedError,
    Tree,
    entry_leaf_hash,
)
from tripod.ledger.sqlite.reader import SQLiteReader
from tripod.ledger.tlog.note import VerifierKey, parse_note
from tripod.ledger.tlog.receipt import open_timestamp
from tripod.ledger.tlog.seal import Seal, fork_signers, format_seal, parse_seal, seal_fork_text
from tripod.projections import TRUST, Source, source_of
from tripod.verify.anchors import heads
from tripod.verify.check import Anchored, HeadsJudged, Scanned
from tripod.verify.checks import bodies_present, canonical_bytes
from tripod.verify.evidence import OpenEvidence
from tripod.verify.peers.comparison import compare_peers
from tripod.verify.rows import all_rows, entry_of_row, roots_of_rows

TrustRows: TypeAlias = dict[str, list[tuple[Any, ...]]]
"""Rows by the names of the tables of ``tripod.projections.team.tables``; the newest seal alone."""


def trust_rows_to_compare(evidence: OpenEvidence, db: sqlite3.Connection) -> TrustRows:
    """The rows of the trust tables; empty where an export holds headers alone.

    Without a fold they are those that the entries named in a table give for it: others give none.
    """
    tables = {
        "keys": "SELECT seq, vkey FROM keys ORDER BY seq",
        "anchors": "SELECT seq, method, name, size, root FROM anchors ORDER BY seq",
        "forks": "SELECT seq, origin, size, root FROM forks ORDER BY seq",
        "seals": TRUST.newest_seal,
    }
    if evidence.folded is not None:
        return {table: evidence.query(sql) for table, sql in tables.items()}
    found: TrustRows = {}
    for table, sql in tables.items():
        rows: list[tuple[Any, ...]] = []
        try:
            for seq, *_ in db.execute(sql).fetchall():
                entry = entry_to_compare(db, seq)
                with suppress(KeyError, TypeError, ValueError, AttributeError):
                    if entry is not None and entry.kind in TRUST.kinds:
                        rows += [tuple(op[2]) for op in TRUST.fold(entry) if op[0] == table]
        except sqlite3.Error:
            rows = []
        found[table] = rows
    return found


def entry_to_compare(db: sqlite3.Connection, seq: object) -> Entry | None:
    """The entry ``seq`` with the body that it committed to; None if absent (or a sqlite3.Error)."""
    if type(seq) is not int:
        return None
    for row in all_rows(db, seq, seq + 1):
        header = canonical_bytes.read_canonical_header(row[4])
        if isinstance(header, str) or header.seq != seq:
            continue
        if bodies_present.body_problem(header, *row[5:7]) is None:
            return entry_of_row(db, row)
    return None


_MICROS = 1_000_000  # in a second


def compare_receipts(
    evidence: OpenEvidence, db: sqlite3.Connection, told: TrustRows, outside: heads.OutsideHeads
) -> None:
    """Add what the receipts remember to ``outside.known``, and what is wrong with them beside."""
    ledger = SQLiteReader(db)
    source = source_of(ledger) if evidence.folded is None else evidence.source
    for seq, method, name, size, root in told["anchors"]:
        where = f"the receipt of {method} {name} in entry {seq}"
        try:
            seal = Seal(_line(ledger, seq), size, bytes.fromhex(root))
            text = format_seal(seal)
        except (MalformedError, ValueError):
            continue  # `kinds-known` names it
        known = heads.KnownHead("receipt", where, seal, seq=seq)
        try:
            if size > seq:
                raise MalformedError(f"it is of {size} entries, and {seq} were there")
            known = _opened(known, method, _bytes(source, seq), text, outside)
        except LookupError:
            pass  # erased, or gone: `bodies-present` tells
        except (MissingExtraError, NotVerifiedError) as error:
            outside.faults += (("unread", where, f"not believed: {error}"),)
        except LedgerError as error:
            outside.faults += (("forged", where, str(error)),)
            continue
        outside.known += (known,)


def _opened(
    known: heads.KnownHead, method: str, data: bytes, text: str, outside: heads.OutsideHeads
) -> heads.KnownHead:
    """What the bytes of a receipt add; a LedgerError if they are not of this head."""
    if method == "witness":
        note = parse_note(data)
        if note.text != text:
            there = parse_seal(note.text, extensions=True)
            raise MalformedError(
                f"it is of {there.size} entries of {there.origin} with root "
                f"{there.root.hex()[:16]}…, and the entry says {known.seal.size} with root "
                f"{known.seal.root.hex()[:16]}…"
            )
        return known._replace(note=note)
    if method == "tsa" and outside.authorities:
        stamp = open_timestamp(data, text, outside.authorities)
        seconds, rest = divmod(stamp.micros, _MICROS)
        give = -(-(rest + stamp.accuracy) // _MICROS)
        return known._replace(seconds=seconds, stamped=True, give=give)
    return known


def _bytes(source: Source, seq: int) -> bytes:
    try:
        receipt = source.body(seq)["receipt"]
    except (ValueError, TypeError) as error:
        raise LookupError(seq) from error
    try:
        return source.content(receipt)
    except (ValueError, TypeError, LedgerError) as error:  # the blob is gone
        raise LookupError(seq) from error


def _line(ledger: SQLiteReader, seq: int) -> str:
    """The line that an entry belongs to, '' where that cannot be read."""
    try:
        return str(orjson.loads(ledger.header(seq) or b"")["ledger"])
    except (TypeError, ValueError, LookupError):
        return ""


_OF_HEADS = frozenset({"seal.made", "anchor.received"})
"""Seals and receipts say what became of entries before them: no tail of these needs an anchor."""
_KEPT = (
    "SELECT seq FROM seals WHERE seq >= ? UNION ALL SELECT seq FROM anchors WHERE seq >= ?"
    " ORDER BY 1"
)


def compare_heads(evidence: OpenEvidence) -> HeadsJudged | None:
    """Compare the ledger with every head that is known; None where nothing was scanned."""
    db, scan = evidence.db, evidence.scan
    if db is None or scan is None or not scan.head[0]:
        return None
    outside, trust = replace(evidence.outside), trust_rows_to_compare(evidence, db)
    compare_receipts(evidence, db, trust, outside)
    keys = list(dict.fromkeys(_keys(evidence, trust)))
    lines = {row[1]: row[2] for row in trust["forks"]}
    own = {scan.origin, *lines}
    judged = evidence.database.peers - own
    peers, trailers, remembered = compare_peers(
        evidence, scan.origin, lines, keys, outside, judged=judged
    )
    others = (judged | _peers(evidence)) - own  # they were held against the records of these
    others_heads = _heads_of_left_lines(evidence, db, lines, outside.known)
    # A ledger in the place of another one could name it a peer: the pin that was given says so.
    outside.known = tuple(
        one
        for one in outside.known
        if one.seal.origin not in (judged if one.method == "pin" else others)
        and one.seal not in others_heads
    )
    roots = roots_of_rows(db, scan, (known.seal.size for known in outside.known))
    ledger = heads.Ledger(
        scan.origin,
        scan.head[0],
        roots,
        [
            _fork(evidence, db, row, heads.keys_of_heads(outside, keys, row[1]))
            for row in trust["forks"]
        ],
        keys,
        len(trust["seals"]) or int(evidence.loaded),  # what was read from files has the seal there
        evidence.database.bodies,
        evidence.database.keys,
    )
    told = heads.compare(outside, ledger)
    if ledger.given and not ledger.seals and evidence.record is None and not told.findings:
        heads.add_missing_seal(told)
    told.peers, told.trailers = peers, trailers
    reached = heads.anchored_heads([*told.agreeing, *remembered], outside.policy)
    size = max((size for size, _ in reached.sizes.values()), default=0)
    told.anchored = Anchored(reached.level, reached.sizes, *_tail(evidence, db, size, scan))
    wanted = heads.wanted_head_size(outside.rules, reached)
    heads.add_unmet_head_demands(told, outside.rules, reached, _tail(evidence, db, wanted, scan))
    return told


def _peers(evidence: OpenEvidence) -> set[str]:
    """The origins of the peers that the ledger knows."""
    if evidence.folded is None:
        return set()
    return {str(origin) for (origin,) in evidence.query("SELECT origin FROM peers")}


def _heads_of_left_lines(
    evidence: OpenEvidence,
    db: sqlite3.Connection,
    lines: Mapping[str, int],
    known: Sequence[heads.KnownHead],
) -> set[Seal]:
    """Heads of lines that this ledger left, and that go on as peers, if all before them is here.

    Of two copies of one ledger one keeps the name. What it recorded since they parted is kept here
    as its own, and gives the root that is remembered: nothing was lost at the fork.
    """
    ledger, found = SQLiteReader(db), set[Seal]()
    for origin in lines if evidence.folded is not None else ():
        left = [one.seal for one in known if one.seal.origin == origin]
        sizes = {one.size for one in left if one.size > lines[origin]}
        tree, roots = Tree(), dict[int, bytes]()
        for seq in range(max(sizes, default=0)):
            header = _header_of_line(evidence, ledger, origin, seq, own=seq < lines[origin])
            if header is None:
                break
            tree.append(entry_leaf_hash(header))
            tree.full.clear()
            if tree.size in sizes:
                roots[tree.size] = tree.root()
        found |= {one for one in left if roots.get(one.size) == one.root}
    return found


def _header_of_line(
    evidence: OpenEvidence, ledger: SQLiteReader, origin: str, seq: int, *, own: bool
) -> bytes | None:
    """The header of an entry of a line that this ledger left: our own, or the one that is kept."""
    if own:
        return ledger.header(seq)
    sql = "SELECT seq FROM merged WHERE origin = ? AND peer_seq = ?"
    for (at,) in evidence.query(sql, origin, seq):
        entry = entry_to_compare(ledger.tables, at)
        with suppress(LookupError, TypeError, ValueError, LedgerError):
            return None if entry is None else evidence.source.content(entry.data["header"])
    return None


def _fork(
    evidence: OpenEvidence, db: sqlite3.Connection, row: Sequence[Any], keys: Sequence[VerifierKey]
) -> heads.Fork:
    """A row of the forks, with those of ``keys`` that signed that the old line ends there."""
    seq, origin, size, root = row[:4]
    signers: list[VerifierKey] = []
    entry = entry_to_compare(db, seq)
    if entry is not None:
        with suppress(LedgerError, ValueError):  # a bad root: `kinds-known` names it
            new = evidence.database.heads.line(seq)
            text = seal_fork_text(origin, size, bytes.fromhex(root), new)
            signers = fork_signers(str(entry.data.get("note", "")), text, keys)
    return heads.Fork(seq, origin, size, signers)


def agreeing_heads(evidence: OpenEvidence) -> list[heads.KnownHead]:
    """Every head that is known and is this ledger's, by its stored tree: no row is read for it."""
    db, outside = evidence.db, replace(evidence.outside)
    if db is None:
        return []
    trust = trust_rows_to_compare(evidence, db)
    compare_receipts(evidence, db, trust, outside)
    ours = list(_keys(evidence, trust))
    found = []
    for known in outside.known:
        keys = heads.keys_of_heads(outside, ours, known.seal.origin)
        one, problem = heads.open_head(known, keys, outside.policy)
        if not problem and evidence.database.heads.root_at(known.seal.size) == known.seal.root:
            found.append(one)
    return found


def pin_after_comparison(evidence: OpenEvidence) -> bytes | None:
    """What a pin should hold: all that this run has seen; None where there is nothing.

    It is the newest seal, with its signature, where nothing of substance stands after it; else the
    plain head, which covers more.
    """
    db, scan = evidence.db, evidence.scan
    if db is None or scan is None or not scan.head[0]:
        return None
    size, root = scan.head
    trust = trust_rows_to_compare(evidence, db)
    pins = (one.seal.size for one in evidence.outside.known if one.method == "pin")
    before = max(pins, default=0)
    for _, sealed, _, note in trust["seals"]:
        roots = roots_of_rows(db, scan, [sealed]) if before <= sealed <= size else {}
        want = Seal(scan.origin, sealed, roots.get(sealed, b""))
        keys = heads.keys_of_heads(evidence.outside, _keys(evidence, trust), want.origin)
        try:
            seal, signed = heads.parse_head(str(note).encode())
        except (LedgerError, ValueError):
            continue
        _, problem = heads.open_head(heads.KnownHead("pin", "", seal, note=signed), keys, None)
        if seal == want and not problem and not _tail(evidence, db, sealed, scan)[0]:
            return str(note).encode()
    return format_seal(Seal(scan.origin, size, bytes.fromhex(root))).encode()


def is_compared_own_head(evidence: OpenEvidence, seal: Seal) -> bool:
    """Whether a head is one of the ledger's own line, which was judged."""
    db, scan = evidence.db, evidence.scan
    if db is None or scan is None or seal.origin != scan.origin:
        return False
    return roots_of_rows(db, scan, [seal.size]).get(seal.size) == seal.root


def _tail(
    evidence: OpenEvidence, db: sqlite3.Connection, size: int, scan: Scanned
) -> tuple[int, int]:
    """How many entries stand after ``size``, and for how many seconds the first of them has."""
    if evidence.folded is not None:
        kept = [seq for (seq,) in evidence.query(_KEPT, size, size)]
        count, first = scan.head[0] - size - len(kept), size
        for seq in kept:
            if seq != first:
                break
            first += 1
    else:
        try:
            kinds = SQLiteReader(db).kinds(size)
        except (sqlite3.Error, OverflowError):
            count, first = scan.head[0] - size, size
        else:
            others = [found for kind, found in kinds.items() if kind not in _OF_HEADS]
            count = sum(found.number for found in others)
            first = min((found.first for found in others), default=size)
    if count <= 0:
        return 0, 0
    at = evidence.micros(first)
    return count, 0 if at is None else max(0, evidence.now_us - at) // 1_000_000


def _keys(evidence: OpenEvidence, trust: TrustRows) -> Iterator[VerifierKey]:
    """Keys that were given, and those that the ledger says were in force."""
    yield from evidence.database.keys
    for _, vkey in trust["keys"]:
        try:
            yield VerifierKey.parse(vkey)
        except (LedgerError, AttributeError):
            continue  # `seals-open` names it
