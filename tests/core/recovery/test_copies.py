"""Backups while others write, and restores that are honest about where they come from."""

import os
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from specimens import SAID, build, read

from tripod.bus import events
from tripod.chat import writer as chat_send
from tripod.decisions import writer as decisions_log
from tripod.errors import BadArgumentError, NoTeamError, RefusedError
from tripod.ledger.entry import parse_header
from tripod.ledger.places import RECORD
from tripod.ledger.sqlite.reader import SQLiteReader, read_only
from tripod.ledger.sqlite.store import SQLiteStore
from tripod.projections.engine import tables_current
from tripod.recovery import backup as copies
from tripod.team.team import Team
from tripod.trust import keys
from tripod.trust import seal as sealing
from tripod.verify.check import Report
from tripod.verify.evidence import collect
from tripod.verify.run import run

FIRST, SECOND = "sample.example/1", "sample.example/2"


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A team of about fifty entries, with a backup beside it: ``copy.db``."""
    root = build(str(tmp_path))
    with Team(root) as team:
        sealing.new_sealing_key(team)
        copies.backup(team, str(tmp_path / "copy.db"))
    return root


def backup_of(root: str) -> str:
    return f"{os.path.dirname(root)}/copy.db"


def judge(path: str) -> Report:
    with collect(path) as evidence:
        return run(evidence)


def failures(path: str) -> list[str]:
    """What fails."""
    return [
        finding.message
        for outcome in judge(path).outcomes
        for finding in outcome.findings
        if finding.severity == "failure"
    ]


def kinds(root: str) -> list[str]:
    return [row.head["kind"] for row in read(f"{root}/ledger.db")]


# Out -------------------------------------------------------------------------------------------


def test_a_backup_is_one_file_for_its_owner_that_verifies(root: str, tmp_path: Path) -> None:
    path = backup_of(root)
    assert sorted(os.listdir(tmp_path)) == [".nbs", "copy.db"]
    assert os.stat(path).st_mode & 0o777 == 0o600
    with closing(read_only(path)) as db, Team(root) as team:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert tables_current(SQLiteReader(db))
        assert copies.backup(team, str(tmp_path / "again.db")) == team.store.head()
    assert failures(path) == []
    assert judge(path).head == judge(root).head


def test_a_backup_replaces_nothing(root: str) -> None:
    before = Path(backup_of(root)).read_bytes()
    with Team(root) as team, pytest.raises(RefusedError, match="is there already"):
        copies.backup(team, backup_of(root))
    assert Path(backup_of(root)).read_bytes() == before


def test_a_backup_that_cannot_be_written_leaves_nothing(root: str, tmp_path: Path) -> None:
    with Team(root) as team, pytest.raises(Exception, match="the backup cannot be written: No "):
        copies.backup(team, str(tmp_path / "no" / "folder" / "x.db"))


def test_a_backup_is_of_one_moment_while_others_write(root: str, tmp_path: Path) -> None:
    stop = threading.Event()

    def write() -> None:
        with Team(root) as team:
            while not stop.is_set():
                events.publish(team, "ann", "task-complete", "low", "x")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with Team(root) as team:
            for number in range(5):
                path = str(tmp_path / f"{number}.db")
                head = copies.backup(team, path)
                assert judge(path).head == (head.size, head.root.hex())
                assert failures(path) == []
    finally:
        stop.set()
        writer.join()


# Back ------------------------------------------------------------------------------------------


def go_on(root: str) -> None:
    """Entries that the backup does not hold, sealed."""
    with Team(root) as team:
        chat_send.send(team, "live", *SAID[0])
        request = decisions_log.DecisionRequest(
            "Later", ("alex",), "Because.", refs=("live.chat:~L7",)
        )
        decisions_log.log(team, request)


def only_discarded(root: str) -> bool:
    """Whether nothing is wrong but that pieces were discarded, which is told for good."""
    found = failures(root)
    return bool(found) and all("no entry holds them" in text for text in found)


def test_an_older_state_goes_on_under_another_name_and_says_so(root: str) -> None:
    before = read(f"{root}/ledger.db")
    go_on(root)
    there = kinds(root)
    sealed = sealing.last_seal_note(FIRST)
    done = copies.restore(root, backup_of(root), discard="lost")
    assert (done.forked, done.old, done.size) == (True, FIRST, len(before))
    assert done.origin.startswith(f"{FIRST}/fork/")
    rows = read(f"{root}/ledger.db")
    assert rows[: len(before)] == before
    fork = rows[len(before)]
    assert fork.head["kind"] == "ledger.forked-from"
    assert fork.data["origin"] == FIRST
    assert fork.data["size"] == len(before)
    assert fork.data["seal"] == sealed
    assert f"is of {len(there) - 1} entries, and the ledger holds" in fork.data["reason"]
    assert {row.head["ledger"] for row in rows[len(before) :]} == {done.origin}
    assert only_discarded(root)
    # What the files showed beyond the backup is kept, and so is the database.
    assert "file.displaced" in kinds(root)
    with closing(read_only(done.kept)) as db:
        assert db.execute("SELECT count(*) FROM entries").fetchone()[0] == len(there)
    assert not [name for name in os.listdir(root) if "restoring" in name]


def test_the_new_line_has_a_key_of_its_own(root: str) -> None:
    go_on(root)
    old = sealing.last_seal_note(FIRST)
    done = copies.restore(root, backup_of(root), discard="lost")
    with Team(root) as team:
        vkey = keys.sealing_key(team.store)
        assert vkey is not None
        assert sealing.origin_sealed_by(vkey) == done.origin
        newest = sealing.newest(team.store.db)
        assert newest is not None
        assert newest.note == sealing.last_seal_note(done.origin)
        decisions_log.log(
            team, decisions_log.DecisionRequest("On", ("alex",), "x", refs=("live.chat:~L7",))
        )
        assert team.warnings == []
    assert sealing.last_seal_note(FIRST) == old
    assert kinds(root)[-1] == "seal.made"
    assert only_discarded(root)


def test_a_record_from_before_the_fork_is_still_of_this_ledger(root: str) -> None:
    shutil.copytree(f"{root}/{RECORD}", f"{root}/../older")
    go_on(root)
    done = copies.restore(root, backup_of(root), discard="lost")
    assert done.forked
    shutil.rmtree(f"{root}/{RECORD}")
    shutil.copytree(f"{root}/../older", f"{root}/{RECORD}")
    (told,) = [one for one in judge(root).outcomes if one.check == "record-agrees"]
    assert (told.verdict, told.findings) == ("clean", ())


def test_an_encrypted_key_is_followed_by_an_encrypted_one(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Team(root) as team:
        sealing.rotate_sealing_key(team, keys.no_passphrase, b"secret")
        copies.backup(team, str(tmp_path / "later.db"))
    done = copies.restore(root, str(tmp_path / "later.db"), SECOND)
    assert any("the old key was encrypted" in text for text in done.warnings)
    assert not os.path.exists(keys.key_path(SECOND))
    (tmp_path / "pass").write_text("secret\n")
    monkeypatch.setenv("TRIPOD_PASSPHRASE_FILE", str(tmp_path / "pass"))
    copies.restore(root, str(tmp_path / "later.db"), "sample.example/3")
    assert keys.is_encrypted_key(keys.key_path("sample.example/3"))
    assert failures(root) == []


def test_where_nothing_is_lacking_the_name_stays(root: str) -> None:
    size = len(kinds(root))
    with Team(root) as team:
        events.publish(team, "ann", "task-complete", "low", "x")
        copies.backup(team, f"{os.path.dirname(root)}/newer.db")
    done = copies.restore(root, f"{os.path.dirname(root)}/newer.db")
    assert (done.forked, done.origin) == (False, FIRST)
    assert len(kinds(root)) == size + 1
    assert failures(root) == []


def test_a_copy_put_back_by_hand_is_known_by_what_the_files_count(root: str) -> None:
    size = len(kinds(root))
    os.unlink(sealing.seal_path(FIRST))
    go_on(root)
    os.unlink(sealing.seal_path(FIRST))
    for suffix in ("", "-wal", "-shm"):
        Path(f"{root}/ledger.db{suffix}").unlink(missing_ok=True)
    Path(f"{root}/ledger.db").write_bytes(Path(backup_of(root)).read_bytes())
    done = copies.restore(root, backup_of(root), discard="lost")
    assert (done.forked, done.size) == (True, size)
    reason = read(f"{root}/ledger.db")[size].data["reason"]
    assert reason.startswith("counts.json counts entry")
    assert only_discarded(root)


def test_a_name_can_be_asked_for_and_is_used_once(root: str) -> None:
    done = copies.restore(root, backup_of(root), SECOND)
    assert done.origin == SECOND
    with Team(root) as team:
        copies.backup(team, f"{os.path.dirname(root)}/two.db")
    for name in (FIRST, SECOND):
        with pytest.raises(BadArgumentError, match="was this ledger's name already"):
            copies.restore(root, f"{os.path.dirname(root)}/two.db", name)
    with pytest.raises(BadArgumentError, match="--as-origin"):
        copies.restore(root, backup_of(root), "two words")
    assert failures(root) == []


def test_forks_of_forks_keep_their_names_short(root: str) -> None:
    names = [copies.restore(root, backup_of(root)).origin]
    for number in range(3):
        path = f"{os.path.dirname(root)}/{number}.db"
        with Team(root) as team:
            copies.backup(team, path)
            events.publish(team, "ann", "task-complete", "low", "lost")
        names.append(copies.restore(root, path).origin)
    assert names[0] == FIRST
    assert all(name.count("/fork/") == 1 for name in names[1:])
    assert len(set(names)) == 4
    assert failures(root) == []


@pytest.mark.parametrize("how", ["gone", "damaged", "no database"])
def test_a_lost_ledger_is_restored_under_another_name(root: str, how: str) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{root}/ledger.db{suffix}").unlink(missing_ok=True)
    if how == "damaged":
        data = Path(backup_of(root)).read_bytes()
        Path(f"{root}/ledger.db").write_bytes(data[:4096] + bytes(len(data) - 4096))
        Path(f"{root}/ledger.db-wal").write_bytes(b"of another file")
    elif how == "no database":
        Path(f"{root}/ledger.db").write_bytes(b"no database at all, but bytes")
    done = copies.restore(root, backup_of(root))
    assert done.forked
    assert (done.kept != "") == (how != "gone")
    assert failures(root) == []
    reason = next(r for r in read(f"{root}/ledger.db") if r.head["kind"] == "ledger.forked-from")
    assert "nobody knows what came after it" in reason.data["reason"]


def test_who_has_the_ledger_open_goes_on_in_the_restored_one(root: str) -> None:
    go_on(root)
    with Team(root) as early:
        done = copies.restore(root, backup_of(root), discard="lost")
        name = events.publish(early, "ann", "task-complete", "low", "after")
        with closing(SQLiteStore(f"{root}/ledger.db")) as store:
            last = list(store.read())[-1]
        assert last.data["name"] == name
        assert parse_header(last.header).ledger == done.origin
    assert only_discarded(root)


def test_the_ledger_of_another_team_is_not_replaced(root: str, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = build(str(tmp_path / "other"), new=True)
    before = kinds(other)
    for name in (None, SECOND):
        with pytest.raises(RefusedError, match="and the backup is of another one"):
            copies.restore(other, backup_of(root), name)
    assert kinds(other) == before
    assert not [name for name in os.listdir(other) if "restoring" in name]


def test_what_does_not_verify_is_not_restored(root: str, tmp_path: Path) -> None:
    before = Path(f"{root}/counts.json").read_bytes()
    with closing(sqlite3.connect(backup_of(root), isolation_level=None)) as db:
        db.execute("DROP TRIGGER entries_no_update")
        db.execute("UPDATE entries SET body = x'7b7d' WHERE seq = 9")
    for path, says in (
        (backup_of(root), "the body is not the one that the header commits to"),
        (str(tmp_path / "nothing.db"), "no ledger at"),
        (f"{root}/counts.json", "file is not a database"),
    ):
        with pytest.raises(RefusedError, match=says):
            copies.restore(root, path)
    assert Path(f"{root}/counts.json").read_bytes() == before
    assert "ledger.forked-from" not in kinds(root)


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[Path]:
    """A project without a ledger, entered."""
    (tmp_path / "p/.nbs/chat").mkdir(parents=True)
    before = Path.cwd()
    os.chdir(tmp_path / "p/.nbs/chat")
    yield tmp_path
    os.chdir(before)


def test_the_place_needs_no_ledger_but_its_folder(folders: Path) -> None:
    here = str(folders / "p/.nbs")
    for given in (None, str(folders / "p"), here):
        assert copies.restore_root(given) == here
    with pytest.raises(NoTeamError, match=r"no folder \.nbs in"):
        copies.restore_root(str(folders))


# The clock -------------------------------------------------------------------------------------


def test_a_new_line_is_the_way_back_from_a_clock_that_ran_ahead(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead = "2999-01-01T00:00:00.000000Z"
    with Team(root) as team, monkeypatch.context() as patch:
        patch.setattr("tripod.ledger.sqlite.store.now_at", lambda: ahead)
        chat_send.send(team, "live", "ann", "from the future")
    with Team(root) as team:
        chat_send.send(team, "live", "ann", "dated there as well")
        copies.backup(team, str(tmp_path / "now.db"))
    assert read(f"{root}/ledger.db")[-1].head["at"] == ahead
    copies.restore(root, str(tmp_path / "now.db"), SECOND)
    with Team(root) as team:
        chat_send.send(team, "live", "ann", "back again")
    heads = [row.head for row in read(f"{root}/ledger.db")]
    fork = next(at for at, head in enumerate(heads) if head["kind"] == "ledger.forked-from")
    assert heads[fork - 1]["at"] == ahead
    assert all(head["at"] < ahead for head in heads[fork:])
    found = [o for o in judge(root).outcomes if o.check == "clock-forward"]
    assert [(o.verdict, len(o.findings)) for o in found] == [("clean", 0)]
