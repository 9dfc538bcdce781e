"""Any single damage to a ledger is found, with the right entry; what no ledger can see is said."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sample_ledger import opening, said
from specimens import Row, build, copy, database, forge, read, unguarded

from tripod.ledger.chain import check_link
from tripod.ledger.entry import commit_body, entry_leaf_hash, format_canonical, parse_header
from tripod.ledger.sqlite.store import SQLiteStore
from tripod.projections.engine import create_tables
from tripod.verify.check import Finding
from tripod.verify.checks import LEDGER_CHECKS
from tripod.verify.evidence import collect
from tripod.verify.run import run
from tripod.verify.scan import rows as scan

NAMES = [check.NAME for check in LEDGER_CHECKS]
FIELDS = ("header", "salt", "body")
_tmp = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A sound team directory, made once."""
    return build(str(tmp_path_factory.mktemp("sound")))


@pytest.fixture(scope="module")
def sound(team: str) -> bytes:
    """The bytes of its database."""
    with sqlite3.connect(database(team)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    return Path(database(team)).read_bytes()


@pytest.fixture(scope="module")
def rows(team: str) -> list[Row]:
    """Its entries, taken apart."""
    return read(database(team))


@pytest.fixture
def path(sound: bytes, tmp_path: Path) -> str:
    """A copy of the database, alone."""
    (tmp_path / "ledger.db").write_bytes(sound)
    return str(tmp_path / "ledger.db")


def judge(path: str) -> list[Finding]:
    """What the ledger's checks find in a bare database."""
    with collect(path) as evidence:
        report = run(evidence, select=NAMES)
    assert report.problem == ""
    return [f for outcome in report.outcomes for f in outcome.findings]


def first(findings: list[Finding]) -> int:
    """The first bad entry that is named."""
    return min(finding.seq for finding in findings if finding.seq is not None)


def damaged(path: str, sound: bytes, *statements: tuple[str, tuple[object, ...]]) -> list[Finding]:
    """What is found after these statements, behind the triggers' back."""
    Path(path).write_bytes(sound)
    with unguarded(path) as db:
        for sql, values in statements:
            db.execute(sql, values)
    return judge(path)


def test_a_sound_ledger_has_no_finding(path: str) -> None:
    assert judge(path) == []


@_tmp
@given(st.data())
def test_a_flipped_byte_is_found_at_its_entry(
    path: str, sound: bytes, rows: list[Row], data: st.DataObject
) -> None:
    seq = data.draw(st.integers(0, len(rows) - 1))
    field = data.draw(st.sampled_from(FIELDS))
    old = {
        "header": format_canonical(rows[seq].head),
        "salt": rows[seq].salt,
        "body": rows[seq].body,
    }
    at = data.draw(st.integers(0, len(old[field]) - 1))
    bit = data.draw(st.integers(0, 7))
    new = bytearray(old[field])
    new[at] ^= 1 << bit
    sql = f"UPDATE entries SET {field} = ? WHERE seq = ?"
    found = damaged(path, sound, (sql, (bytes(new), seq)))
    assert found
    assert first(found) == seq


def test_any_dropped_entry_is_found_at_its_place(path: str, sound: bytes, rows: list[Row]) -> None:
    for seq in range(len(rows)):
        found = damaged(path, sound, ("DELETE FROM entries WHERE seq = ?", (seq,)))
        assert first(found) == seq
        assert any("missing" in finding.message for finding in found)


@_tmp
@given(st.data())
def test_two_swapped_entries_are_found(
    path: str, sound: bytes, rows: list[Row], data: st.DataObject
) -> None:
    size = len(rows)
    one = data.draw(st.integers(0, size - 2))
    other = data.draw(st.integers(one + 1, size - 1))
    move = "UPDATE entries SET seq = ? WHERE seq = ?"
    found = damaged(path, sound, (move, (-9, one)), (move, (one, other)), (move, (other, -9)))
    assert first(found) == one


def test_any_repeated_entry_is_found(path: str, sound: bytes, rows: list[Row]) -> None:
    sql = (
        "INSERT INTO entries SELECT ?, id || 'x', kind, stream, header, salt, body, auth"
        " FROM entries WHERE seq = ?"
    )
    for seq in range(len(rows)):
        assert first(damaged(path, sound, (sql, (len(rows), seq)))) == len(rows)


@_tmp
@given(st.data())
def test_a_tail_linked_anew_is_found_by_the_head(
    path: str, sound: bytes, rows: list[Row], data: st.DataObject
) -> None:
    """All entries from one on are made again, and the head row is forgotten."""
    seq = data.draw(st.integers(1, len(rows) - 1))
    rows = [*rows[:seq], rows[seq].headed(actor="mallory"), *rows[seq + 1 :]]
    statements = []
    prev = entry_leaf_hash(format_canonical(rows[seq - 1].head)).hex()
    for number in range(seq, len(rows)):
        header = format_canonical(rows[number].head | {"prev": prev})
        prev = entry_leaf_hash(header).hex()
        statements.append(("UPDATE entries SET header = ? WHERE seq = ?", (header, number)))
    found = damaged(path, sound, *statements)
    assert {finding.where for finding in found} == {"head"}


def test_a_truncated_tail_is_found_by_the_head(path: str, sound: bytes, rows: list[Row]) -> None:
    size = len(rows)
    found = damaged(path, sound, ("DELETE FROM entries WHERE seq >= ?", (size - 5,)))
    assert [finding.message for finding in found] == [
        f"the head row says {size} entries, there are {size - 5}: the last ones are missing"
    ]
    assert first(found) == size - 5


@pytest.mark.parametrize(
    ("size", "gone", "head", "nodes"),
    [
        (1000, 300, "the counts differ; the stored nodes tell where", [(1, 256), (2, 512)]),
        (1000, 770, "the counts differ, and not at the end alone", []),
        (1000, 999, "the last ones are missing", []),
    ],
)
def test_an_entry_taken_out_of_a_tail_linked_anew(
    tmp_path: Path, size: int, gone: int, head: str, nodes: list[tuple[int, int]]
) -> None:
    """The stored nodes name the entries that they cover; the head claims no more than it knows."""
    path = str(tmp_path / "ledger.db")
    store = SQLiteStore(path, create=True, fold=lambda db, *_: create_tables(db))
    store.append([opening(), *(said("x", id=f"n{number}") for number in range(1, size))])
    store.close()
    rows = read(path)
    prev = entry_leaf_hash(format_canonical(rows[gone - 1].head)).hex()
    with unguarded(path) as db:
        db.execute("DELETE FROM entries WHERE seq = ?", (gone,))
        for row in rows[gone + 1 :]:
            seq = row.head["seq"] - 1
            header = format_canonical(row.head | {"prev": prev, "seq": seq})
            prev = entry_leaf_hash(header).hex()
            db.execute(
                "UPDATE entries SET seq = ?, header = ? WHERE seq = ?", (seq, header, seq + 1)
            )
    found = [finding for finding in judge(path) if finding.check == "sequence"]
    said_of_nodes = (
        "the stored node {} of level 1 (entries {} to {}) is not the root of its entries"
    )
    assert [(finding.message, finding.seq) for finding in found[:-1]] == [
        (said_of_nodes.format(number, first, first + 255), first) for number, first in nodes
    ]
    assert found[-1].message.startswith(
        f"the head row says {size} entries, there are {size - 1}: {head}"
    )
    assert found[-1].seq == (nodes[0][1] if nodes else size - 1)


@pytest.mark.parametrize(
    "rewrite",
    [
        lambda rows: rows[:-5],
        lambda rows: [*rows[:-5], *[row.headed(actor="mallory") for row in rows[-5:]]],
    ],
    ids=["truncated", "rewritten"],
)
def test_the_limit_a_consistent_other_tail_cannot_be_seen(
    team: str, tmp_path: Path, rewrite: Callable[[list[Row]], list[Row]]
) -> None:
    """Truncation and a rewrite with everything made to fit: only a head kept elsewhere tells."""
    root = copy(team, str(tmp_path))
    with collect(root) as evidence:
        before = run(evidence).head
    forge(root, rewrite(read(database(root))))
    with collect(root) as evidence:
        report = run(evidence)
    assert [f for outcome in report.outcomes for f in outcome.findings] == []
    assert report.head is not None
    assert report.head != before


@_tmp
@given(st.data())
def test_the_fast_path_says_what_the_rules_say(
    path: str, sound: bytes, rows: list[Row], data: st.DataObject
) -> None:
    """A row changed and made to fit in some of its parts: with and without the fast path."""
    seq = data.draw(st.integers(1, len(rows) - 1))
    row = _odd(rows[seq], data)
    head = row.head
    if data.draw(st.booleans()):
        head = head | {"body": commit_body(row.salt, str(head["kind"]), row.body)}
    columns = (str(head["id"]), str(head["kind"]), str(head["stream"]))
    sql = (
        "UPDATE entries SET id = ?, kind = ?, stream = ?, header = ?, salt = ?, body = ?"
        " WHERE seq = ?"
    )
    values = (*columns, format_canonical(head), row.salt, row.body, seq)
    fast = damaged(path, sound, (sql, values))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "USUAL", {})
        slow = judge(path)
    assert fast == slow


def _odd(row: Row, data: st.DataObject) -> Row:
    names = st.sampled_from(("actor", "at", "cause", "auth", "kind", "stream", "id", "v", "ledger"))
    values = st.one_of(
        st.text(max_size=12),
        st.integers(-2, 9),
        st.sampled_from(("ab" * 32, "bus", "chat/live", "chat/side", "live", "a\\b")),
    )
    body = st.sampled_from((b"{}", b'{"v":1}', b'{"v":1.5}', b"[]", b'{"v": 1}', b"\xff", b"null"))
    change = data.draw(st.sampled_from(("head", "body", "field", "salt")))
    if change == "head":
        return row.headed(**{data.draw(names): data.draw(values)})
    if change == "body":
        return row._replace(body=data.draw(body))
    if change == "salt":
        return row._replace(salt=data.draw(st.binary(max_size=40)))
    name = data.draw(st.sampled_from((*row.data, "new")))
    return row.saying(**{name: data.draw(values)})


def test_what_our_acts_write_takes_the_fast_path(
    path: str, rows: list[Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events that follow from a decision name their cause: they cost no more than others."""
    slow: list[int] = []
    original = scan.RowPass._slow

    def noted(passed: scan.RowPass, row: tuple[Any, ...]) -> None:
        slow.append(row[0])
        original(passed, row)

    monkeypatch.setattr(scan.RowPass, "_slow", noted)
    assert judge(path) == []
    assert any("cause" in row.head for row in rows)
    assert {rows[seq].head["kind"] for seq in slow} <= {
        "ledger.opened",
        "ledger.adopted",
        "config.changed",
    }


@pytest.mark.parametrize("fast", [True, False])
def test_a_cause_stands_before_what_follows_from_it(
    team: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, fast: bool
) -> None:
    """Of many entries that follow from another, those are named that follow from none before."""
    root = copy(team, str(tmp_path))
    rows = read(database(root))
    free = [seq for seq, row in enumerate(rows) if "cause" not in row.head and seq > 4]
    far, later, itself, nobody, odd = free[-5:]
    ids = [row.head["id"] for row in rows]
    wrong = {later: ids[-1], itself: ids[itself], nobody: "nobody", odd: 'no\\ "b\u00f6dy'}
    for seq, cause in {**wrong, far: ids[3]}.items():
        rows[seq] = rows[seq].headed(cause=cause)
    forge(root, rows)
    if not fast:
        monkeypatch.setattr(scan, "USUAL", {})
    found = judge(database(root))
    assert [(finding.check, finding.seq) for finding in found] == [
        ("sequence", seq) for seq in sorted(wrong)
    ]
    assert f"it is entry {len(rows) - 1}" in found[0].message


@pytest.mark.parametrize(
    ("kind", "change", "says"),
    [
        ("chat.sent", {"stream": "chat/side"}, "in the stream chat/side, its place is chat/live"),
        ("worker.written", {"stream": "workers/b"}, "its place is workers/parser-a3f1"),
    ],
)
def test_a_header_that_does_not_fit_its_body_is_named(
    team: str, tmp_path: Path, kind: str, change: dict[str, str], says: str
) -> None:
    root = copy(team, str(tmp_path))
    rows = read(database(root))
    seq = next(seq for seq, row in enumerate(rows) if row.head["kind"] == kind)
    rows[seq] = rows[seq].headed(**change)
    forge(root, rows)
    (found,) = judge(database(root))
    assert (found.check, found.seq, found.severity) == ("kinds-known", seq, "failure")
    assert says in found.message


def test_a_second_adoption_excuses_nothing(team: str, tmp_path: Path) -> None:
    """The reference is broken before it; only the first adoption ends a past."""
    root = copy(team, str(tmp_path))
    rows = read(database(root))
    (mark,) = [row for row in rows if row.head["kind"] == "ledger.adopted"]
    seq = next(seq for seq, row in enumerate(rows) if row.head["kind"] == "decision.logged")
    rows[seq] = rows[seq].saying(refs=[], chat_ref="—")
    forge(root, [*rows, mark.headed(id="again", at=rows[-1].head["at"])])
    with collect(root) as evidence:
        report = run(evidence)
    failures = {f.check: f for o in report.outcomes for f in o.findings if f.severity == "failure"}
    assert failures["sequence"].seq == len(rows)
    assert "ledger.adopted stands more than once" in failures["sequence"].message
    assert "it has no chat reference" in failures["chat-refs-resolve"].message


def test_every_header_of_a_sound_ledger_is_linked(path: str) -> None:
    """The helper that takes entries apart and the chain's own rule agree."""
    prev = "0" * 64
    for seq, row in enumerate(read(path)):
        header = format_canonical(row.head)
        assert check_link(parse_header(header), seq, prev, "sample.example/1") is None
        prev = entry_leaf_hash(header).hex()


# Indexes: the checks read tables, and commands find by indexes -----------------------------------


def without_a_row(data: bytes, root: int) -> bytes:
    """A database whose index on the page ``root``, a leaf, lacks its first row."""
    size = int.from_bytes(data[16:18], "big")
    size = 65536 if size == 1 else size
    at = (root - 1) * size
    cells = int.from_bytes(data[at + 3 : at + 5], "big")
    assert data[at] == 10, "the page is no leaf of an index"
    assert cells
    fewer = (cells - 1).to_bytes(2, "big")
    places = data[at + 10 : at + 8 + 2 * cells]
    after = at + 6 + 2 * cells
    return data[: at + 3] + fewer + data[at + 5 : at + 8] + places + data[after:]


def test_an_index_that_lacks_a_row_is_found(path: str, sound: bytes) -> None:
    with sqlite3.connect(path) as db:
        indexes = db.execute(
            "SELECT name, tbl_name, rootpage FROM sqlite_schema WHERE type = 'index'"
            " AND tbl_name != 'entries'"
        ).fetchall()
    db.close()
    tried = []
    size = int.from_bytes(sound[16:18], "big")
    for name, table, root in indexes:
        at = (root - 1) * size
        if sound[at] != 10 or sound[at + 3 : at + 5] == b"\0\0":
            continue  # no row in it, or so many that they take more than a page
        Path(path).write_bytes(without_a_row(sound, root))
        with collect(path) as evidence:
            report = run(evidence)
        findings = [f for outcome in report.outcomes for f in outcome.findings if f.seq is None]
        found = [f for f in findings if "its indexes do not hold its rows" in f.message]
        assert [f.severity for f in found] == ["failure"], (name, findings)
        assert table in f"{found[0].where} {found[0].message}", name
        assert f"index {name}" in found[0].message, "it names the index"
        tried.append(name)
    assert {"events_pending", "pieces_id", "sqlite_autoindex_blobs_1"} <= set(tried), tried


def test_what_an_index_gives_for_a_digest_must_have_it(path: str) -> None:
    with sqlite3.connect(path) as db:
        digest, data = db.execute("SELECT sha256, bytes FROM blobs").fetchone()
    db.close()
    with unguarded(path) as db:
        db.execute("UPDATE blobs SET bytes = ? WHERE sha256 = ?", (data[::-1], digest))
    with collect(path) as evidence:
        evidence.fold()
        with pytest.raises(LookupError, match="other bytes"):
            evidence.source.blob(digest.hex())
