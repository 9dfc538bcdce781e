"""Checks what is in the database beside the rows: head, nodes, blobs, the index of ids, the schema.

A run that starts at a pin judges only the entries after it, at their cost. The stored roots of full
blocks, one for 256 entries, must together with the entries of the last block give the pinned root;
then the tree continues from them. The rows before the pin are not read again: a row altered since
stays unseen until the next whole run.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache, partial
from hashlib import sha256
from typing import Any, NamedTuple

from tripod.ledger import Header, Tree, entry_leaf_hash
from tripod.ledger.sqlite.reader import SYNCED, read_only
from tripod.ledger.sqlite.schema import APPLICATION_ID, SCHEMA_VERSION
from tripod.ledger.tlog.seal import Seal
from tripod.projections import TABLES, Disk, folded_before
from tripod.verify.check import Coverage, Finding, FindingTally, Scanned
from tripod.verify.checks import bodies_present, canonical_bytes, chain_links, sequence
from tripod.verify.child import child_cores, start_child
from tripod.verify.fold import Compared, fold_own
from tripod.verify.rows import (
    BLOCK,
    Schema,
    block_rows_before,
    index_fault,
    made_schema_rows,
    one_row,
    root_of_rows,
    schema_rows,
)
from tripod.verify.scan.rows import ChainEnd, Half, RowPass

LARGE = 10_000  # entries: below, a second process costs more than it saves

_NAMED = """
CREATE TABLE named (sha256 TEXT, size INTEGER, seq INTEGER, PRIMARY KEY (sha256, size))
WITHOUT ROWID
"""
_DIGEST = re.compile("[0-9a-f]{64}")


class Beside(NamedTuple):
    """Work that was begun: each function waits for its outcome.

    ``compared`` gives None where nobody compared the files meanwhile.
    """

    scanned: Callable[[], Scanned]
    compared: Callable[[], Compared | None] = lambda: None


def begin_database_scan(
    path: str, db: sqlite3.Connection, rows: int, *, folding: bool, disk: Disk | None = None
) -> Beside:
    """Begin to judge a ledger of about ``rows`` entries; a large one is judged in two processes.

    Where the caller is ``folding`` meanwhile, the child makes the pass over the rows, and compares
    the files of ``disk`` as far as that can be done before the fold; else each takes half of the
    pass. The child opens ``path`` itself: others may have appended since, or put another ledger in
    its place, and of that one it says nothing.
    """
    newest = one_row(db, "SELECT seq, header FROM entries ORDER BY seq DESC LIMIT 1")
    if rows < LARGE or newest is None or child_cores() < 2:
        return Beside(lambda: scan_database(db))
    if not folding:
        return Beside(lambda: _scan_halves(path, db, newest) or scan_database(db))
    wait = cache(start_child(partial(_beside, path, newest, disk)))
    return Beside(lambda: (wait() or (scan_database(db),))[0], lambda: (wait() or (None, None))[1])


def _beside(
    path: str, newest: tuple[Any, ...], disk: Disk | None
) -> tuple[Scanned, Compared | None] | None:
    # In a process of its own: what it held is given back before the pass begins.
    compared = None if disk is None else start_child(partial(fold_own, path, disk))()
    db = _open_same(path, newest)
    return None if db is None else (scan_database(db), compared)


def _open_same(path: str, newest: tuple[Any, ...]) -> sqlite3.Connection | None:
    """Hold one state of a ledger, while others append; None where it is not the one that is meant.

    ``newest`` is the number and the header of its newest entry, to which the chain ties all others.
    """
    db = read_only(path)
    db.execute("BEGIN")
    row = one_row(db, "SELECT seq, header FROM entries WHERE seq = ?", newest[:1])
    return db if row == newest else None


def scan_database(db: sqlite3.Connection) -> Scanned:
    """Judge the ledger's rows and what stands beside them, in one pass."""
    passed = _new_pass(db)
    passed.run()
    return _settle(passed)


def _new_pass(db: sqlite3.Connection, first: int = 0, stop: int | None = None) -> RowPass:
    """A pass over the entries from ``first`` (a multiple of 256) on, which has seen nothing yet."""
    named = sqlite3.connect("", isolation_level=None)
    named.execute(_NAMED)
    named.execute("BEGIN")
    return RowPass(db, FindingTally(), named, first, stop)


def _pass_after(db: sqlite3.Connection, first: int, stop: int | None = None) -> RowPass | None:
    """A pass that trusts the entry before ``first``; None where that cannot be read."""
    row = one_row(db, "SELECT header FROM entries WHERE seq = ?", (first - 1,))
    header = None if row is None else canonical_bytes.read_canonical_header(row[0])
    if row is None or not isinstance(header, Header):
        return None
    passed = _new_pass(db, first, stop)
    passed.end = ChainEnd(first, entry_leaf_hash(row[0]).hex(), header.at, header.ledger)
    return passed


def _scan_halves(path: str, db: sqlite3.Connection, newest: tuple[Any, ...]) -> Scanned | None:
    """Both halves at once; None unless both are clean, and the upper one begins where it should."""
    half = newest[0] // 2 >> 8 << 8
    wait = start_child(lambda: _upper_half(path, newest, half))
    lower = _new_pass(db, stop=half)
    lower.run()
    upper = wait()
    if upper is None or upper.begun != lower.end or not lower.is_clean:
        lower.named.close()
        return None
    lower.resume(upper)
    lower.named.executemany("INSERT OR IGNORE INTO named VALUES (?, ?, ?)", upper.names)
    return _settle(lower)


def _upper_half(path: str, newest: tuple[Any, ...], half: int) -> Half | None:
    db = _open_same(path, newest)
    passed = None if db is None else _pass_after(db, half, newest[0] + 1)
    if passed is None:
        return None
    begun = replace(passed.end)
    passed.run()
    if not passed.is_clean:
        return None
    names = passed.named.execute("SELECT * FROM named").fetchall()
    return Half(begun, passed.end, passed.adopted, passed.seen, passed.range, names)


def _settle(passed: RowPass) -> Scanned:
    """What stands beside the rows, judged by what the pass over them gave.

    Where the pass began after a pin, ids and blobs are those of its own rows alone.
    """
    tally, range_, seen = passed.tally, passed.range, passed.seen
    try:
        # The tree over all entries: blocks of 256 as the leaves of a smaller one, and the rest.
        upper = _over_blocks(bytes(range_.blocks))
        range_.full = upper.full
        rest = (range_.leaves & 255).bit_count()
        below = range_.tree.stack[len(range_.tree.stack) - rest :]
        tree = Tree(range_.leaves, [*upper.stack, *below])
        root, stack = tree.root(), b"".join(tree.stack)
        # A link that still waits is settled by the head row; `_head` names one that cannot be read.
        head = one_row(passed.db, "SELECT last FROM head")
        passed.finish(head[0] if head else None)
        for look in (_nodes, partial(_head, stack), _ids):
            try:
                look(passed)
            except (sqlite3.Error, TypeError) as error:
                _add(tally, sequence, f"the database cannot be read: {error}", "database")
        blobs = (_new_blobs if passed.start else _blobs)(passed, passed.named)
        _schema(passed.db, tally)
    finally:
        passed.named.close()
    coverage: Coverage = {
        "entries": seen.rows, "bytes": seen.size, "blobs": blobs,
        "nodes": len(range_.blocks) // 32, "redacted": seen.redacted, "signed": seen.signed,
    }  # fmt: skip
    return Scanned(
        tally, seen.rows, (tree.size, root.hex()), coverage,
        passed.end.origin or "", bytes(range_.blocks), range_.whole, passed.start,
    )  # fmt: skip


def _over_blocks(blocks: bytes) -> Tree:
    tree = Tree()
    for at in range(0, len(blocks), 32):
        tree.append(blocks[at : at + 32])
    return tree


def _head(stack: bytes, passed: RowPass) -> None:
    sql = "SELECT only, size, origin, last, at, stack, tables, files{} FROM head"
    try:
        heads = passed.db.execute(sql.format(f", {SYNCED}")).fetchall()
    except sqlite3.OperationalError:  # the file of an older version, or no such table at all
        heads = passed.db.execute(sql.format(", files, ''")).fetchall()
    if not passed.seen.rows and not heads:
        return
    if not passed.range.whole:
        return  # rows are missing or unreadable: what the head should say, nobody can tell
    end, torn = passed.end, passed.range.torn
    want = (end.expected, end.origin or "", end.prev, end.at, stack)
    problems = list(sequence.sequence_head_problems(heads, want, torn=torn is not None))
    if chain_links.NAME in passed.tally.found:  # an altered entry is named: the tree follows it
        problems = [problem for problem in problems if "says stack" not in problem]
    fewer = [problem for problem in problems if f" entries, there are {want[0]}: " in problem]
    seq = end.expected if fewer else max(0, end.expected - 1)
    for problem in fewer or problems:
        _add(passed.tally, sequence, problem, "head", seq if torn is None else torn)


def _nodes(passed: RowPass) -> None:
    """The stored roots of full subtrees: of 256 entries, of 65,536, and so on; no others."""
    if not passed.range.whole or chain_links.NAME in passed.tally.found:
        return
    blocks = passed.range.blocks
    count = 0
    for number in range(len(blocks) // 32):
        count += _node(passed, 1, number, bytes(blocks[32 * number : 32 * number + 32]))
    for level, number, digest in passed.range.full:
        count += _node(passed, level + 1, number, digest)
    sql = "SELECT count(*) FROM (SELECT 1 FROM nodes LIMIT ?)"
    have = passed.db.execute(sql, (2 * count + 1000,)).fetchone()[0]
    if have > count:
        _add(passed.tally, sequence, f"{have - count} stored nodes belong to no entries", "nodes")


def _node(passed: RowPass, level: int, number: int, digest: bytes) -> int:
    row = passed.db.execute(
        "SELECT hash FROM nodes WHERE level = ? AND number = ?", (level, number)
    ).fetchone()
    if row is None or row[0] != digest:
        what = "is missing" if row is None else "is not the root of its entries"
        first, last = number << 8 * level, (number + 1 << 8 * level) - 1
        message = f"the stored node {number} of level {level} (entries {first} to {last}) {what}"
        _add(passed.tally, sequence, message, "nodes", first)
        if row is not None and passed.range.torn is None:  # the lowest come first
            passed.range.torn = first
    return 0 if row is None else 1


def _ids(passed: RowPass) -> None:
    """No id twice: the index is walked in order, and shown to hold the table's own ids.

    A sum of keyed hashes over the index equals that over the table (an attacker does not know the
    key); so nothing has to be sorted or kept. Where the pass began after a pin, only its own rows
    are looked for.
    """
    if passed.start:
        again = passed.db.execute(
            "SELECT new.seq, old.seq, new.id FROM entries AS new JOIN entries AS old"
            " INDEXED BY sqlite_autoindex_entries_1 ON old.id = new.id"
            " WHERE new.seq >= ? AND old.seq < new.seq ORDER BY 1",
            (passed.start,),
        )
        _named_twice(passed, again)
        return
    db, total, rising = passed.db, 0, True
    before: str | None = None  # an id may be any text, the empty one too
    try:
        for (id_,) in db.execute(
            "SELECT id FROM entries INDEXED BY sqlite_autoindex_entries_1 ORDER BY id"
        ):
            total += hash(id_)
            rising = before is None or id_ > before
            if not rising:
                break  # pages of an index that lead back to each other would never end
            before = id_
    except (sqlite3.Error, TypeError):
        rising = False
    if rising and total == passed.seen.ids:
        return
    if not passed.range.readable:
        return  # the rows themselves have no end that was found
    again = db.execute(
        "SELECT max(seq), min(seq), id FROM entries NOT INDEXED GROUP BY id HAVING count(*) > 1"
        " ORDER BY 1"
    )
    if not _named_twice(passed, again) and passed.seen.rows and passed.range.whole:
        message = "the index of ids does not hold the ids of the table"
        _add(passed.tally, sequence, message, "database")


def _named_twice(passed: RowPass, again: Iterable[tuple[int, int, str]]) -> bool:
    """Name each id that stands twice, by both entries; give whether there is one."""
    twice = False
    for second, first, id_ in again:
        twice = True
        message = f"the id {id_} stands at entry {first} already"
        _add(passed.tally, sequence, message, f"entry {second}", second)
    return twice


def _new_blobs(passed: RowPass, named: sqlite3.Connection) -> int:
    """Every blob that the rows name is there and hashes to its name."""
    count = 0
    for digest, size, seq in named.execute("SELECT sha256, size, seq FROM named ORDER BY seq"):
        count += 1
        _missing(passed.db, digest, size, seq, passed.tally)
        key = bytes.fromhex(digest) if _DIGEST.fullmatch(digest) else b""
        row = one_row(passed.db, "SELECT bytes FROM blobs WHERE sha256 = ?", (key,))
        if row is not None and sha256(row[0]).hexdigest() != digest:
            message = f"blob {digest[:12]}… does not hash to its name"
            _add(passed.tally, bodies_present, message, "blobs")
    return count


def _blobs(passed: RowPass, named: sqlite3.Connection) -> int:
    """Every blob hashes to its name and is named; every one that is named is there."""
    db, tally, count, gap = passed.db, passed.tally, 0, False
    try:
        number = db.execute("SELECT min(number) FROM blobs").fetchone()[0]
        while number is not None:
            digest, data = db.execute(
                "SELECT sha256, bytes FROM blobs WHERE number = ?", (number,)
            ).fetchone()
            count += 1
            if (number < count or (number != count and not passed.seen.redacted)) and not gap:
                gap = True
                message = f"a blob is numbered {number} where {count} follows"
                _add(tally, bodies_present, message, "blobs")
            name = digest.hex() if type(digest) is bytes else repr(digest)
            if type(data) is not bytes or sha256(data).digest() != digest:
                _add(tally, bodies_present, f"blob {name[:12]}… does not hash to its name", "blobs")
            else:
                known = named.execute("SELECT 1 FROM named WHERE sha256 = ?", (name,)).fetchone()
                if not known:
                    message = f"blob {name[:12]}… ({len(data)} bytes) is named by no entry"
                    _add(tally, bodies_present, message, "blobs")
            row = db.execute("SELECT min(number) FROM blobs WHERE number > ?", (number,)).fetchone()
            number = row[0]
        for digest, size, seq in named.execute("SELECT sha256, size, seq FROM named ORDER BY seq"):
            _missing(db, digest, size, seq, tally)
        fault = index_fault(db, "blobs", schema_rows(db))
        if fault is not None:
            tally.add(Finding(bodies_present.NAME, fault, "blobs", help=bodies_present.REINDEX))
    except (sqlite3.Error, TypeError) as error:
        _add(tally, bodies_present, f"the blobs cannot be read: {error}", "blobs")
    return count


def _missing(db: sqlite3.Connection, digest: str, size: int, seq: int, tally: FindingTally) -> None:
    try:
        key = bytes.fromhex(digest)
    except ValueError:
        key = b""
    row = db.execute("SELECT length(bytes) FROM blobs WHERE sha256 = ?", (key,)).fetchone()
    if row is None:
        message = f"blob {digest[:12]}… that it names is not there"
    elif row[0] != size:
        message = f"blob {digest[:12]}… has {row[0]} bytes, the body says {size}"
    else:
        return
    _add(tally, bodies_present, message, f"entry {seq}", seq)


def _schema(db: sqlite3.Connection, tally: FindingTally) -> None:
    """Tables, indexes and triggers against those that this version makes; the file's two marks.

    A file of an older version is whole as that version made it, until the next act brings it on.
    """
    try:
        version, application = (
            db.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("user_version", "application_id")
        )
        encoding = db.execute("PRAGMA encoding").fetchone()[0]
        found = schema_rows(db)
        folds: list[tuple[Any, ...]] = []
        if ("table", "folds") in found:
            folds = db.execute("SELECT versions FROM folds LIMIT 2").fetchall()
        older = len(folds) == 1 and folded_before(folds[0][0])
        problems = _faults(found, SCHEMA_VERSION, older=older)
        if 0 < version < SCHEMA_VERSION and not _faults(found, version):
            problems, version = [], SCHEMA_VERSION
    except sqlite3.Error as error:
        _add(tally, sequence, f"the schema cannot be read: {error}", "schema")
        return
    for name, have, ours_, words in (
        ("user_version", version, SCHEMA_VERSION, "schema version"),
        ("application_id", application, APPLICATION_ID, "application id"),
    ):
        if have != ours_:
            message = f"the file's {words} was changed: it is {have}, ours is {ours_}"
            help_ = (
                f"set it back: `sqlite3 LEDGER 'pragma {name}={ours_}'`, LEDGER being the file "
                "that stands behind `judged`"
            )
            tally.add(Finding(sequence.NAME, message, "database", help=help_))
    if encoding != "UTF-8":
        message = f"the file's texts are in {encoding}, ours are in UTF-8"
        tally.add(Finding(sequence.NAME, message, "database", help=sequence.HELP))
    for finding in sequence.sequence_schema_findings(problems):
        tally.add(finding)


def _faults(found: Schema, version: int, *, older: bool = False) -> list[sequence.Fault]:
    """How a schema differs from that of a version.

    An older one had other tables of projections, and so has a ledger that an ``older`` program
    folded: those are looked at for this one alone.
    """
    wanted = made_schema_rows(version, folded=False)
    whole = made_schema_rows(SCHEMA_VERSION, folded=True)
    if version == SCHEMA_VERSION:
        if older:
            # A table that the older program did not have has no guard to lose.
            new = {name for name in TABLES if ("table", name) not in found}
            whole = {key: row for key, row in whole.items() if row[0] not in new}
            found, whole = _without_folds(found), _without_folds(whole)
        return list(sequence.sequence_schema_problems(found, whole))
    folded = whole.keys() - wanted.keys()
    ledger = {key: row for key, row in _without_folds(found).items() if key not in folded}
    return list(sequence.sequence_schema_problems(ledger, wanted))


def _without_folds(schema: Schema) -> Schema:
    """A schema without the tables of projections and their indexes."""
    return {
        key: row
        for key, row in schema.items()
        if key[0] not in ("table", "index") or row[0] not in TABLES
    }


def _add(
    tally: FindingTally, check: object, message: str, where: str, seq: int | None = None
) -> None:
    name, words = check.NAME, check.HELP  # type: ignore[attr-defined]
    tally.add(Finding(name, message, where, help=words, seq=seq))


def scan_database_since(db: sqlite3.Connection, pin: Seal) -> Scanned | None:
    """Look at the entries after the pin; None where the stored tree does not give its root.

    The block that the pin ends in is looked at again: its rows are what ties the new ones to it.
    """
    start = max(0, pin.size - 1) // BLOCK * BLOCK
    if not start:
        return None  # so few entries are pinned that all are looked at
    try:
        blocks = block_rows_before(db, pin.size)
        if len(blocks) != pin.size // BLOCK * 32:
            return None
        root = root_of_rows(db, _over_blocks(blocks), pin.size)
    except sqlite3.Error:
        return None
    passed = _pass_after(db, start) if root == pin.root else None
    if passed is None:
        return None
    passed.run()
    passed.range.blocks[:0] = blocks[: start // BLOCK * 32]
    passed.range.leaves += start
    return _settle(passed)
