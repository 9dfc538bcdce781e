"""Judging from a pin onward: the same verdict on what is new, and a word on what is not."""

import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from drafts import sent
from specimens import database, forge, read, unguarded
from story import Clock

from tripod.bus import events
from tripod.chat import writer as chat_send
from tripod.ledger.entry import entry_leaf_hash
from tripod.ledger.merkle import Tree
from tripod.ledger.tlog.note import Note, SigningKey, format_note, parse_note
from tripod.ledger.tlog.seal import Seal, format_seal, sign_seal
from tripod.team import adoption
from tripod.team.team import Team
from tripod.trust import actors, keys
from tripod.trust import seal as sealing
from tripod.verify.anchors.anchors import AnchorOptions
from tripod.verify.anchors.comparison import pin_after_comparison
from tripod.verify.anchors.heads import KnownHead
from tripod.verify.check import RECORD, TABLES, Outcome, Report, needs
from tripod.verify.checks import CHECKS
from tripod.verify.evidence import collect
from tripod.verify.run import run

ORIGIN = "example.com/long"
SIZE = 800
PINS = (257, 300, 511, 512, 513, 767, 768, 799, 800)
KEY = SigningKey(ORIGIN, bytes(32))
NAMES = tuple(check.NAME for check in CHECKS if not needs(check, TABLES, RECORD))


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A team of 800 entries, whose texts are long enough for blobs here and there."""
    folder = tmp_path_factory.mktemp("long")
    adoption.init(str(folder), project="long", origin=ORIGIN, key=False)
    with Team(f"{folder}/.nbs") as team:
        chat_send.create(team, "live", actor="ann")
        missing = SIZE - team.store.head().size
        texts = [f"text {n}" for n in range(missing - 1)] + ["long " * 5000]
        drafts = [
            sent(channel="live", index=n, handle="ann", time=1_700_000_000, text=text)
            for n, text in enumerate(texts)
        ]
        team.store.append(drafts)
    return folder


@pytest.fixture
def root(long: Path, tmp_path: Path) -> str:
    shutil.copytree(long / ".nbs", tmp_path / ".nbs")
    return str(tmp_path / ".nbs")


def heads(root: str, sizes: tuple[int, ...]) -> dict[int, Seal]:
    tree, found = Tree(), {}
    with closing(sqlite3.connect(database(root))) as db:
        for (header,) in db.execute("SELECT header FROM entries ORDER BY seq"):
            tree.append(entry_leaf_hash(header))
            if tree.size in sizes:
                found[tree.size] = Seal(ORIGIN, tree.size, tree.root())
    return found


def judge(root: str, seal: Seal, *, new_only: bool = True) -> Report:
    pin = Path(root).parent / "pin"
    pin.write_text(format_seal(seal), encoding="utf-8")
    with collect(root, asked=AnchorOptions(str(pin), new_only=new_only)) as evidence:
        return run(evidence, select=NAMES)


def failing(report: Report) -> set[tuple[str, int | None]]:
    return {
        (outcome.check, finding.seq)
        for outcome in report.outcomes
        for finding in outcome.findings
        if finding.severity == "failure"
    }


def test_a_sound_ledger_is_clean_from_every_pin_and_has_the_same_head(root: str) -> None:
    for size, seal in heads(root, PINS).items():
        new, whole = judge(root, seal), judge(root, seal, new_only=False)
        assert (failing(new), new.exit_code) == (set(), 0)
        assert new.head == whole.head
        assert new.anchored is not None
        assert whole.anchored is not None
        assert new.anchored.sizes == whole.anchored.sizes
        assert new.anchored.tail == whole.anchored.tail
        start = (size - 1) // 256 * 256
        entries = next(o for o in new.outcomes if o.check == "chain-links").coverage["entries"]
        assert entries == SIZE - start
        assert new.notes[0].startswith(f"only entries from {start} on were looked at")
        assert "not looked at again" in new.notes[0]
        assert "drift" in new.notes[1]


def test_a_seal_alone_is_no_tail_however_old_it_is(root: str) -> None:
    with Team(root) as team:
        sealing.new_sealing_key(team)
    rows = read(database(root))
    assert [row.head["kind"] for row in rows[SIZE:]] == ["key.set", "seal.made"]
    seal = heads(root, (SIZE + 1,))[SIZE + 1]
    for new_only in (True, False):
        with Clock(int(time.time()) + 1000).running():
            anchored = judge(root, seal, new_only=new_only).anchored
        assert anchored is not None
        assert (anchored.tail, anchored.seconds) == (0, 0)


def test_a_pin_so_small_that_all_is_looked_at(root: str) -> None:
    report = judge(root, heads(root, (256,))[256])
    assert report.notes[0] == (
        "everything was looked at: the ledger cannot be taken up at the pin (size 256)"
    )
    assert report.exit_code == 0


_DAMAGES = {
    "header": "UPDATE entries SET header ="
    " CAST(replace(CAST(header AS TEXT), 'ann', 'bob') AS BLOB) WHERE seq = 700",
    "body": "UPDATE entries SET body = CAST(replace(CAST(body AS TEXT), 'text', 'test') AS BLOB)"
    " WHERE seq = 700",
    "salt": "UPDATE entries SET salt = zeroblob(32) WHERE seq = 700",
    "gone": "DELETE FROM entries WHERE seq = 700",
    "column": "UPDATE entries SET kind = 'bus.acked' WHERE seq = 700",
    "blob": "UPDATE blobs SET bytes = zeroblob(length(bytes))",
    "no blob": "DELETE FROM blobs",
    "head": "UPDATE head SET size = 799",
    "node": "UPDATE nodes SET hash = zeroblob(32) WHERE number = 2",
}


@pytest.mark.parametrize("damage", _DAMAGES)
def test_damage_to_what_is_new_is_found_as_in_a_whole_run(root: str, damage: str) -> None:
    seal = heads(root, (600,))[600]
    with unguarded(database(root)) as db:
        db.execute(_DAMAGES[damage])
    new = failing(judge(root, seal))
    assert new
    assert new == failing(judge(root, seal, new_only=False))


def test_an_id_of_an_old_entry_is_not_used_again(root: str) -> None:
    seal = heads(root, (600,))[600]
    with unguarded(database(root)) as db:
        # As an attacker would: without the unique index, which a whole run misses as well.
        db.execute("CREATE TABLE copy AS SELECT * FROM entries")
        db.execute("DROP TABLE entries")
        db.execute(
            "CREATE TABLE entries (seq INTEGER PRIMARY KEY, id TEXT NOT NULL, kind TEXT NOT NULL,"
            " stream TEXT NOT NULL, header BLOB NOT NULL, salt BLOB, body BLOB, auth BLOB)"
            " STRICT"
        )
        db.execute("INSERT INTO entries SELECT * FROM copy")
        db.execute("DROP TABLE copy")
    assert ("sequence", None) in failing(judge(root, seal))


def test_the_rows_before_the_pin_are_not_looked_at_and_that_is_the_limit(root: str) -> None:
    seal = heads(root, (600,))[600]
    with unguarded(database(root)) as db:
        db.execute("UPDATE entries SET salt = zeroblob(32) WHERE seq = 100")
    assert judge(root, seal).exit_code == 0
    assert failing(judge(root, seal, new_only=False)) == {("bodies-present", 100)}


@pytest.mark.parametrize("seq", [10, 300, 590])
def test_a_ledger_made_anew_before_the_pin_is_a_fork(root: str, seq: int) -> None:
    """With new nodes the pin's root is missed; with the old ones they are not those of the rows."""
    seal = heads(root, (600,))[600]
    with closing(sqlite3.connect(database(root))) as db:
        nodes = db.execute("SELECT * FROM nodes").fetchall()
    rows = read(database(root))
    rows[seq] = rows[seq].saying(text={"text": "other"})
    forge(root, rows)
    report = judge(root, seal)
    assert "everything was looked at" in report.notes[0]
    assert ("pins-extend", None) in failing(report)
    with unguarded(database(root)) as db:
        db.execute("DELETE FROM nodes")
        db.executemany("INSERT INTO nodes VALUES (?, ?, ?)", nodes)
    assert judge(root, seal, new_only=False).exit_code == 1


def test_a_ledger_shorter_than_its_pin_is_a_rollback(root: str) -> None:
    seal = heads(root, (800,))[800]
    forge(root, read(database(root))[:-3])
    report = judge(root, seal)
    assert any("rollback" in f.message for o in report.outcomes for f in o.findings)
    assert report.exit_code == 1


# What the ledger's own tables say, which no fold holds against the entries here ------------------


def forged(root: str, sql: str, *values: object) -> None:
    with unguarded(database(root)) as db:
        db.execute(sql, values)


def remembered(root: str, *known: KnownHead) -> Report:
    """A run from the pin at 600, with heads that are known besides."""
    seal = heads(root, (600,))[600]
    with collect(root) as evidence:
        evidence.outside.pin = seal
        evidence.outside.known = (KnownHead("pin", "the pin", seal), *known)
        return run(evidence, select=NAMES)


def test_a_fork_that_no_entry_tells_of_excuses_no_rollback(root: str) -> None:
    newer = KnownHead("git", "a commit", heads(root, (800,))[800])
    forge(root, read(database(root))[:-3])
    forged(root, "INSERT INTO forks VALUES (700, ?, 600, ?)", ORIGIN, "00" * 32)
    report = remembered(root, newer)
    (text,) = [f.message for o in report.outcomes for f in o.findings]
    assert text.startswith("rollback: it remembers 800 entries")


def test_a_key_or_receipt_that_no_entry_holds_counts_for_nothing(root: str) -> None:
    seal = heads(root, (700,))[700]
    note = parse_note(format_note(Note(format_seal(seal), (sign_seal(seal, KEY),))))
    forged(root, "INSERT INTO keys VALUES (5, ?)", KEY.verifier().format())
    report = remembered(root, KnownHead("git", "a commit", seal, note=note))
    assert any("unsealed" in f.message for o in report.outcomes for f in o.findings)
    forged(root, "INSERT INTO anchors VALUES (9, 'tsa', 'x', 700, ?)", "ab" * 32)
    report = remembered(root)
    assert report.exit_code == 0
    told = {one.check: one for one in report.outcomes}
    assert told["pins-extend"].coverage == {"heads": 1, "agree": 1}


def test_a_seal_that_no_entry_holds_becomes_no_pin(root: str) -> None:
    seal = heads(root, (800,))[800]
    note = format_note(Note(format_seal(seal), (sign_seal(seal, KEY),))).decode()
    for size, entry in ((800, 799), (3, 4)):
        forged(root, "DELETE FROM seals")
        forged(root, "INSERT INTO seals VALUES (?, ?, ?, ?)", entry, size, "ab" * 32, note)
        pinned = heads(root, (600,))[600]
        with collect(root) as evidence:
            evidence.outside.pin = pinned
            evidence.outside.known = (KnownHead("pin", "the pin", pinned),)
            assert run(evidence, select=NAMES).exit_code == 0
            assert pin_after_comparison(evidence) == format_seal(seal).encode()


# Signatures ------------------------------------------------------------------------------------


@pytest.fixture
def signed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A sealed ledger in which ann signs her acts, one of them on both sides of entry 256."""
    monkeypatch.setenv("TRIPOD_HOME", str(tmp_path / "home"))
    root = adoption.init(str(tmp_path), project="long", origin=ORIGIN, key=True).root
    with Team(root) as team:
        chat_send.create(team, "live", actor="bob")
        actors.enrol_actor(team, "ann", keys.no_passphrase)
        while team.store.head().size < 255:
            events.publish(team, "bob", "note", "low", "more")
        chat_send.send(team, "live", "ann", "across")
        for number in range(20):
            chat_send.send(team, "live", "ann", f"note {number}")
    rows = read(database(root))
    assert rows[255].head["auth"] == rows[256].head["auth"]
    return root


def writers(report: Report) -> Outcome:
    return next(o for o in report.outcomes if o.check == "writers-authorised")


def test_signatures_are_judged_from_the_pin_on(signed: str) -> None:
    seal = heads(signed, (260,))[260]
    new, whole = judge(signed, seal), judge(signed, seal, new_only=False)
    assert (new.exit_code, whole.exit_code) == (0, 0)
    assert "only entries from 256 on" in new.notes[0]
    assert 0 < int(writers(new).coverage["signed"]) < int(writers(whole).coverage["signed"])
    with unguarded(database(signed)) as db:
        db.execute("UPDATE entries SET auth = NULL WHERE seq = 270")
    new, whole = judge(signed, seal), judge(signed, seal, new_only=False)
    assert [f.seq for f in writers(new).findings] == [f.seq for f in writers(whole).findings]
    assert writers(new).findings[0].seq == 270
