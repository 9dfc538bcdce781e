"""Checks what is in the database beside the rows: head, nodes, blobs, the index of ids, the schema.

``scan`` makes the pass over the rows and then looks at these; the ledger checks answer from both.

A run that starts at a pin judges only the entries after it, at their cost. It reads the stored
roots of full blocks, one for 256 entries; together with the entries of the last block they must
give the pinned root. Then they are the roots of what was pinned, and the tree continues from them.
The rows before the pin are not read again: a row altered since stays unseen until the next whole
run.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from hashlib import sha256
from typing import NamedTuple

from tripod.ledger import EMPTY_ROOT, Header, Tree, leaf_hash
from tripod.ledger.sqlite.reader import read_only
from tripod.ledger.sqlite.schema import APPLICATION_ID, SCHEMA_VERSION
from tripod.ledger.tlog.seal import Seal
from tripod.projections import TABLES, Disk, folded_before
from tripod.verify.check import Coverage, Finding, Scanned, Tally
from tripod.verify.checks import bodies_present, canonical_bytes, chain_links, sequence
from tripod.verify.fold import Compared, compare_own
from tripod.verify.rows import Schema, one, schema_made, schema_of
from tripod.verify.scan.children import cores, start
from tripod.verify.scan.roots import BLOCK, blocks_before, grown
from tripod.verify.scan.rows import Half, Pass

LARGE = 200_000  # entries: below, a second process costs more than it saves

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


def begin_scan(
    path: str, db: sqlite3.Connection, rows: int, *, folding: bool, disk: Disk | None = None
) -> Beside:
    """Begin to judge a ledger of about ``rows`` entries.

    A large one is judged in two processes. Where the caller is ``folding`` meanwhile, the pass over
    the rows is the child's, and so are the files of ``disk``, as far as they can be compared before
    the fold; else each takes half of the pass. The child opens ``path`` itself.
    """
    if rows < LARGE or cores() < 2:
        return Beside(lambda: scan(db))
    if not folding:
        half = rows // 2 >> 8 << 8
        return Beside(lambda: _scan_halves(path, db, half) or scan(db))
    wait = cache(start(partial(_beside, path, disk)))
    return Beside(lambda: (wait() or (scan(db),))[0], lambda: (wait() or (None, None))[1])


def _beside(path: str, disk: Disk | None) -> tuple[Scanned, Compared | None]:
    # In a process of its own: what it held is given back before the pass begins.
    compared = None if disk is None else start(partial(compare_own, path, disk))()
    return scan(read_only(path)), compared


def scan(db: sqlite3.Connection) -> Scanned:
    """Judge the ledger's rows and what stands beside them, in one pass."""
    passed = new_pass(db)
    passed.run()
    return settle(passed)


def new_pass(db: sqlite3.Connection, first: int = 0, stop: int | None = None) -> Pass:
    """A pass over the entries from ``first`` (a multiple of 256) on, which has seen nothing yet."""
    named = sqlite3.connect("", isolation_level=None)
    named.execute(_NAMED)
    named.execute("BEGIN")
    return Pass(db, Tally(), named, first, stop)


def _scan_halves(path: str, db: sqlite3.Connection, half: int) -> Scanned | None:
    """Both halves at once; None unless the lower one is clean up to where the upper began."""
    wait = start(lambda: _upper_half(path, half))
    lower = new_pass(db, stop=half)
    lower.run()
    upper = wait()
    if upper is None or upper.start_state != lower.state() or lower.tally.found:
        lower.named.close()
        return None
    lower.resume(upper)
    lower.named.executemany("INSERT OR IGNORE INTO named VALUES (?, ?, ?)", upper.names)
    return settle(lower)


def _upper_half(path: str, half: int) -> Half | None:
    db = read_only(path)
    row = db.execute("SELECT header FROM entries WHERE seq = ?", (half - 1,)).fetchone()
    header = None if row is None else canonical_bytes.read_header(row[0])
    if not isinstance(header, Header):
        return None
    passed = new_pass(db, half)
    passed.expected, passed.prev = half, leaf_hash(row[0]).hex()
    passed.at, passed.origin = header.at, header.ledger
    state = passed.state()
    passed.run()
    return passed.half(state, passed.named.execute("SELECT * FROM named").fetchall())


def settle(passed: Pass) -> Scanned:
    """What stands beside the rows, judged by what the pass over them gave.

    Where the pass began after a pin, ids and blobs are those of its own rows alone.
    """
    tally = passed.tally
    root, stack = EMPTY_ROOT, b""
    try:
        tree = _tree(passed)
        root, stack = tree.root(), b"".join(tree.stack)
        for look in (_settle_link, _nodes, _head, _new_ids if passed.start else _ids):
            try:
                look(passed, stack)
            except (sqlite3.Error, TypeError) as error:
                _add(tally, sequence, f"the database cannot be read: {error}", "database")
        blobs = (_new_blobs if passed.start else _blobs)(passed, passed.named)
        _schema(passed.db, tally)
    finally:
        passed.named.close()
    coverage: Coverage = {
        "entries": passed.rows, "bytes": passed.size, "blobs": blobs,
        "nodes": len(passed.blocks) // 32, "redacted": passed.redacted, "signed": passed.signed,
    }  # fmt: skip
    return Scanned(
        tally, passed.rows, (tree.size, root.hex()), coverage,
        passed.origin or "", bytes(passed.blocks), passed.whole, passed.start,
    )  # fmt: skip


def _tree(passed: Pass) -> Tree:
    """The tree over all entries: blocks of 256 as the leaves of a smaller one, and the rest."""
    blocks = passed.blocks
    upper = Tree()
    for at in range(0, len(blocks), 32):
        upper.append(bytes(blocks[at : at + 32]))
    passed.full = upper.full
    rest = passed.leaves & 255
    stack = [*upper.stack, *passed.tree.stack[len(passed.tree.stack) - rest.bit_count() :]]
    return Tree(passed.leaves, stack)


def _settle_link(passed: Pass, _stack: bytes) -> None:
    """The link that still waits, settled by the head row: whether a tree is told depends on it."""
    row = None
    with suppress(sqlite3.Error):  # told where the head is judged
        row = passed.db.execute("SELECT last FROM head").fetchone()
    passed.finish(row[0] if row else None)


def _head(passed: Pass, stack: bytes) -> None:
    heads = passed.db.execute(
        "SELECT only, size, origin, last, at, stack, tables, files FROM head"
    ).fetchall()
    if not passed.rows and not heads:
        return
    if not passed.whole:
        return  # rows are missing or unreadable: what the head should say, nobody can tell
    want = (passed.expected, passed.origin or "", passed.prev, passed.at, stack)
    problems = list(sequence.head_problems(heads, want, torn=passed.torn is not None))
    if chain_links.NAME in passed.tally.found:  # an altered entry is named: the tree follows it
        problems = [problem for problem in problems if "says stack" not in problem]
    fewer = [problem for problem in problems if f" entries, there are {want[0]}: " in problem]
    seq = passed.expected if fewer else max(0, passed.expected - 1)
    for problem in fewer or problems:
        _add(passed.tally, sequence, problem, "head", seq if passed.torn is None else passed.torn)


def _nodes(passed: Pass, _stack: bytes) -> None:
    """The stored roots of full subtrees: of 256 entries, of 65,536, and so on; no others."""
    if not passed.whole or chain_links.NAME in passed.tally.found:
        return
    blocks = passed.blocks
    count = 0
    for number in range(len(blocks) // 32):
        count += _node(passed, 1, number, bytes(blocks[32 * number : 32 * number + 32]))
    for level, number, digest in passed.full:
        count += _node(passed, level + 1, number, digest)
    sql = "SELECT count(*) FROM (SELECT 1 FROM nodes LIMIT ?)"
    have = passed.db.execute(sql, (2 * count + 1000,)).fetchone()[0]
    if have > count:
        _add(passed.tally, sequence, f"{have - count} stored nodes belong to no entries", "nodes")


def _node(passed: Pass, level: int, number: int, digest: bytes) -> int:
    row = passed.db.execute(
        "SELECT hash FROM nodes WHERE level = ? AND number = ?", (level, number)
    ).fetchone()
    if row is None or row[0] != digest:
        what = "is missing" if row is None else "is not the root of its entries"
        first, last = number << 8 * level, (number + 1 << 8 * level) - 1
        message = f"the stored node {number} of level {level} (entries {first} to {last}) {what}"
        _add(passed.tally, sequence, message, "nodes", first)
        if row is not None and passed.torn is None:  # the lowest level and number come first
            passed.torn = first
    return 0 if row is None else 1


def _ids(passed: Pass, _stack: bytes) -> None:
    """No id twice: the index is walked in order, and shown to hold the table's own ids.

    A sum of keyed hashes over the index equals that over the table (an attacker does not know the
    key); so nothing has to be sorted or kept.
    """
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
    if rising and total == passed.ids:
        return
    if not passed.readable:
        return  # the rows themselves have no end that was found
    again = db.execute(
        "SELECT max(seq), min(seq), id FROM entries NOT INDEXED GROUP BY id HAVING count(*) > 1"
        " ORDER BY 1"
    )
    twice = False
    for second, first, id_ in again:
        twice = True
        message = f"the id {id_} stands at entry {first} already"
        _add(passed.tally, sequence, message, f"entry {second}", second)
    if not twice and passed.rows and passed.whole:
        _add(
            passed.tally,
            sequence,
            "the index of ids does not hold the ids of the table",
            "database",
        )


def _new_ids(passed: Pass, _stack: bytes) -> None:
    """No id of the rows that were looked at stands anywhere else."""
    again = passed.db.execute(
        "SELECT new.seq, old.seq, new.id FROM entries AS new JOIN entries AS old"
        " INDEXED BY sqlite_autoindex_entries_1 ON old.id = new.id"
        " WHERE new.seq >= ? AND old.seq < new.seq ORDER BY 1",
        (passed.start,),
    )
    for second, first, id_ in again:
        message = f"the id {id_} stands at entry {first} already"
        _add(passed.tally, sequence, message, f"entry {second}", second)


def _new_blobs(passed: Pass, named: sqlite3.Connection) -> int:
    """Every blob that the rows name is there and hashes to its name."""
    count = 0
    for digest, size, seq in named.execute("SELECT sha256, size, seq FROM named ORDER BY seq"):
        count += 1
        _missing(passed.db, digest, size, seq, passed.tally)
        key = bytes.fromhex(digest) if _DIGEST.fullmatch(digest) else b""
        row = one(passed.db, "SELECT bytes FROM blobs WHERE sha256 = ?", (key,))
        if row is not None and sha256(row[0]).hexdigest() != digest:
            message = f"blob {digest[:12]}… does not hash to its name"
            _add(passed.tally, bodies_present, message, "blobs")
    return count


def _blobs(passed: Pass, named: sqlite3.Connection) -> int:
    """Every blob hashes to its name and is named; every one that is named is there."""
    db, tally, count, gap = passed.db, passed.tally, 0, False
    try:
        number = db.execute("SELECT min(number) FROM blobs").fetchone()[0]
        while number is not None:
            digest, data = db.execute(
                "SELECT sha256, bytes FROM blobs WHERE number = ?", (number,)
            ).fetchone()
            count += 1
            if (number < count or (number != count and not passed.redacted)) and not gap:
                gap = True
                message = f"a blob is numbered {number} where {count} follows"
                _add(tally, bodies_present, message, "blobs")
            name = digest.hex() if type(digest) is bytes else repr(digest)
            if type(data) is not bytes or sha256(data).digest() != digest:
                _add(tally, bodies_present, f"blob {name[:12]}… does not hash to its name", "blobs")
            else:
                _name_of(named, name, len(data), tally)
            row = db.execute("SELECT min(number) FROM blobs WHERE number > ?", (number,)).fetchone()
            number = row[0]
        for digest, size, seq in named.execute("SELECT sha256, size, seq FROM named ORDER BY seq"):
            _missing(db, digest, size, seq, tally)
    except (sqlite3.Error, TypeError) as error:
        _add(tally, bodies_present, f"the blobs cannot be read: {error}", "blobs")
    return count


def _name_of(named: sqlite3.Connection, name: str, size: int, tally: Tally) -> None:
    if not named.execute("SELECT 1 FROM named WHERE sha256 = ?", (name,)).fetchone():
        message = f"blob {name[:12]}… ({size} bytes) is named by no entry"
        _add(tally, bodies_present, message, "blobs")


def _missing(db: sqlite3.Connection, digest: str, size: int, seq: int, tally: Tally) -> None:
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


def _schema(db: sqlite3.Connection, tally: Tally) -> None:
    """Tables, indexes and triggers against those that this version makes; the file's two marks.

    A file of an older version is whole as that version made it, until the next act brings it on.
    """
    try:
        version, application = (
            db.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("user_version", "application_id")
        )
        encoding = db.execute("PRAGMA encoding").fetchone()[0]
        found = schema_of(db)
        problems = _faults(found, SCHEMA_VERSION, older=_folded_before(db, found))
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
            help_ = f"set it back: `sqlite3 ledger.db 'pragma {name}={ours_}'`"
            tally.add(Finding(sequence.NAME, message, "database", help=help_))
    if encoding != "UTF-8":
        message = f"the file's texts are in {encoding}, ours are in UTF-8"
        tally.add(Finding(sequence.NAME, message, "database", help=sequence.HELP))
    for finding in sequence.schema_findings(problems):
        tally.add(finding)


def _folded_before(db: sqlite3.Connection, found: Schema) -> bool:
    """Whether an older version of this program folded the tables, as they say."""
    if ("table", "folds") not in found:
        return False
    rows = db.execute("SELECT versions FROM folds LIMIT 2").fetchall()
    return len(rows) == 1 and folded_before(rows[0][0])


def _faults(found: Schema, version: int, *, older: bool = False) -> list[sequence.Fault]:
    """How a schema differs from that of a version.

    The tables of projections are looked at for this one alone: an older one had others, and so has
    a ledger whose tables an ``older`` program folded.
    """
    wanted = schema_made(version, folded=False)
    whole = schema_made(SCHEMA_VERSION, folded=True)
    if version == SCHEMA_VERSION:
        if older:
            found, whole = _without_folds(found), _without_folds(whole)
        return list(sequence.schema_problems(found, whole))
    folded = whole.keys() - wanted.keys()
    ledger = {key: row for key, row in found.items() if key not in folded}
    return list(sequence.schema_problems(ledger, wanted))


def _without_folds(schema: Schema) -> Schema:
    """A schema without the tables of projections and their indexes."""
    return {
        key: row
        for key, row in schema.items()
        if key[0] not in ("table", "index") or row[0] not in TABLES
    }


def _add(tally: Tally, check: object, message: str, where: str, seq: int | None = None) -> None:
    name, words = check.NAME, check.HELP  # type: ignore[attr-defined]
    tally.add(Finding(name, message, where, help=words, seq=seq))


# Since ------------------------------------------------------------------------------------------

_HEADER = "SELECT header FROM entries WHERE seq = ?"


def scan_since(db: sqlite3.Connection, pin: Seal) -> Scanned | None:
    """Look at the entries after the pin; None where the stored tree does not give its root.

    The block that the pin ends in is looked at again: its rows are what ties the new ones to it.
    """
    start = max(0, pin.size - 1) // BLOCK * BLOCK
    if not start:
        return None  # so few entries are pinned that all are looked at
    try:
        blocks = blocks_before(db, pin.size)
        root = (
            None
            if len(blocks) != pin.size // BLOCK * 32
            else grown(db, _pinned_tree(blocks), pin.size)
        )
        before = one(db, _HEADER, (start - 1,))
    except sqlite3.Error:
        return None
    header = None if before is None else canonical_bytes.read_header(before[0])
    if root != pin.root or before is None or not isinstance(header, Header):
        return None
    passed = new_pass(db, start)
    passed.expected, passed.prev = start, leaf_hash(before[0]).hex()
    passed.at, passed.origin = header.at, header.ledger
    passed.run()
    passed.blocks[:0] = blocks[: start // BLOCK * 32]
    passed.leaves += start
    return settle(passed)


def _pinned_tree(blocks: bytes) -> Tree:
    tree = Tree()
    for at in range(0, len(blocks), 32):
        tree.append(blocks[at : at + 32])
    return tree
