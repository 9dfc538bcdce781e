"""Damaged pages of what is derived: acts say so, and a rebuild writes the database anew."""

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from damaged import ENTRIES, damage, derived
from doors.inside import begin, run
from sample_ledger import opening, said
from specimens import build, copy, database, unguarded

from tripod.bus import events as bus
from tripod.chat import reader as chat_read
from tripod.ledger.errors import LedgerDamagedError, PagesDamagedError, UnwritableError
from tripod.ledger.sqlite.reader import read_only
from tripod.ledger.sqlite.repair import copy_ledger_rows
from tripod.ledger.sqlite.store import SQLiteStore
from tripod.projections.engine import fold_into
from tripod.recovery import rebuild as recover
from tripod.recovery.rebuild import rebuild_database
from tripod.recovery.redaction import RedactionRequest, redact
from tripod.team.access import access_team
from tripod.team.team import Team
from tripod.verify.check import Report
from tripod.verify.evidence import collect
from tripod.verify.run import run as judge_evidence


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A sound team directory, made once, with something redacted in it."""
    root = build(str(tmp_path_factory.mktemp("sound")))
    with Team(root) as team:
        seq = chat_read.messages(team, "live")[0].seq
        assert redact(team, RedactionRequest((seq,), None, "r", "alex")).done
        bus.publish(team, "a", "b", "low", "x" * 40_000)  # a blob
    with closing(sqlite3.connect(database(root))) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return root


@pytest.fixture
def team(sound: str, tmp_path: Path) -> str:
    return copy(sound, str(tmp_path))


def truth(root: str) -> dict[str, list[tuple[object, ...]]]:
    """Every row of the ledger's own tables; of the head what the entries give."""
    with closing(read_only(database(root))) as db:
        head = "SELECT size, origin, last, at, stack FROM head"
        asked = {name: f"SELECT * FROM {name} NOT INDEXED" for name in ("entries", "blobs")}
        return {name: db.execute(sql).fetchall() for name, sql in {**asked, "head": head}.items()}


def judge(root: str) -> Report:
    with collect(root) as evidence:
        return judge_evidence(evidence)


def check(root: str) -> None:
    """SQLite itself finds the file whole, and verify finds nothing."""
    with closing(sqlite3.connect(database(root))) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    report = judge(root)
    assert [f for o in report.outcomes for f in o.findings] == []
    assert report.exit_code == 0


def test_any_derived_table_or_index_is_mended(sound: str, tmp_path: Path) -> None:
    """Some and some, and all at once; the ledger's own rows stay what they were."""
    before = truth(sound)
    every = derived(database(sound))
    assert {"events", "pieces_id", "manifest", "nodes", "sqlite_autoindex_entries_1"} <= {*every}
    each = 1 if "TRIPOD_TRIALS" in os.environ else 4  # `make soak` takes them one by one
    some = (every[at : at + each] for at in range(0, len(every), each))
    for number, lost in enumerate([*some, every]):
        root = copy(sound, str(tmp_path / str(number)))
        damage(database(root), *lost)
        assert truth(root) == before, lost
        kept = rebuild_database(root)
        assert kept == f"{database(root)}.damaged-1"
        assert truth(root) == before, lost
        with Team(root) as opened:
            assert recover.rebuild(opened) == recover.Rebuilt([], 0)
        check(root)
        with Team(root) as opened:
            bus.publish(opened, "a", "b", "low", "goes on")
        check(root)
        left = sorted(name for name in os.listdir(root) if name.startswith("ledger.db."))
        assert left == ["ledger.db.damaged-1", "ledger.db.lock"]


def test_the_damaged_file_is_kept_as_it_was(team: str) -> None:
    damage(database(team), "lines", "events")
    before = Path(database(team)).read_bytes()
    Path(database(team)).chmod(0o640)
    kept = Path(rebuild_database(team))
    size = len(before)
    # But for what a file says of its log, and a count of its changes, in the first page.
    assert kept.read_bytes()[4096:] == before[4096:size]
    assert {path.stat().st_mode & 0o777 for path in (kept, Path(database(team)))} == {0o640}
    damage(database(team), "lines")
    assert rebuild_database(team).endswith(".damaged-2")
    assert kept.exists()


def test_acts_say_what_to_run_and_rebuild_does_it(sound: str, tmp_path: Path) -> None:
    project = begin(tmp_path)
    root = str(project / ".nbs")
    damage(database(root), "events", "lines", "pieces", "manifest")
    acts = (
        ("bus", "publish", "ann", "t", "low"),
        ("bus", "check"),
        ("chat", "send", "live", "ann", "hi"),
        ("scribe", "log", "T", "-p", "a", "-r", "w", "--ref", "live.chat:~L7"),
        ("sync",),
        ("show",),
    )
    size = len(truth(root)["entries"])
    for act in acts:
        done = run(project, *act)
        assert done.code in (1, 3), done
        assert "pages of the file are damaged. Run `tripod rebuild`" in done.err
        assert str(root) in done.err
        assert "Traceback" not in done.err
    assert len(truth(root)["entries"]) == size, "nothing was recorded"
    report = judge(root)
    assert [o.check for o in report.outcomes if o.failures] == ["drift"], "the entries are sound"
    done = run(project, "rebuild")
    assert done.code == 0, done.err
    assert "written anew from its entries" in done.err
    assert "ledger.db.damaged-1" in done.err
    assert run(project, "verify").code == 0
    for act in acts:
        assert run(project, *act).code == 0, act
    assert run(project, "rebuild", "--json").out.startswith(b'{"displaced": 0, "kept": "", ')
    assert b"ledger.db.damaged-1 (a damaged database" in run(project, "sync").out


def test_who_has_the_ledger_open_goes_on_in_the_new_one(team: str) -> None:
    """A file that was renamed away would swallow what they append."""
    with Team(team) as other:
        size = other.store.head().size
        damage(database(team), "events")
        rebuild_database(team)
        bus.publish(other, "a", "b", "low", "from who had it open")
        assert other.store.head().size == size + 1
    assert len(truth(team)["entries"]) == size + 1
    check(team)


# What is not mended ----------------------------------------------------------------------------


@pytest.mark.parametrize("lost", ENTRIES)
def test_lost_entries_are_not_made_up(team: str, lost: str) -> None:
    damage(database(team), lost)
    before = Path(database(team)).read_bytes()
    with pytest.raises(LedgerDamagedError, match="nothing was changed"):
        rebuild_database(team)
    assert Path(database(team)).read_bytes() == before
    assert [name for name in os.listdir(team) if "damaged" in name or "renewing" in name] == []


UNSOUND = {
    "UPDATE entries SET body = CAST('{}' AS BLOB) WHERE seq = 7": "did not commit to",
    "UPDATE entries SET salt = NULL, body = NULL WHERE seq = 7": "lost its body",
    "DELETE FROM entries WHERE seq = 7": "only the next seq",
    "DELETE FROM entries WHERE seq = (SELECT max(seq) FROM entries)": "that can be read differ",
    "UPDATE head SET size = size + 1": "that can be read differ",
    "UPDATE head SET origin = 'other'": "that can be read differ",
    "UPDATE blobs SET bytes = x'00'": "does not hash to its name",
    "INSERT INTO nodes VALUES (1, 0, zeroblob(32))": "not those of the entries",
    "DELETE FROM head": "that can be read differ",
}


@pytest.mark.parametrize("change", UNSOUND)
def test_nothing_false_is_written_anew(team: str, change: str) -> None:
    with unguarded(database(team)) as db:
        db.execute(change)
    damage(database(team), "lines")
    before = Path(database(team)).read_bytes()
    with pytest.raises(LedgerDamagedError, match=UNSOUND[change]):
        rebuild_database(team)
    assert Path(database(team)).read_bytes() == before


def test_stored_nodes_are_made_again_from_the_entries(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger.db")
    store = SQLiteStore(path, create=True, fold=None)
    store.append([opening(), *(said("x", id=f"n{number}") for number in range(1, 600))])
    nodes = store.db.execute("SELECT * FROM nodes").fetchall()
    head = store.head()
    store.close()
    assert len(nodes) == 2
    damage(path, "nodes")
    assert copy_ledger_rows(path, f"{path}.new") == 600
    with closing(SQLiteStore(f"{path}.new", fold=fold_into)) as store:
        assert store.db.execute("SELECT * FROM nodes").fetchall() == nodes
        assert store.head() == head


def test_a_file_that_cannot_be_opened_is_left_and_what_to_do_is_said(team: str) -> None:
    with open(database(team), "r+b") as file:
        file.truncate(os.path.getsize(database(team)) // 2)
    before = Path(database(team)).read_bytes()
    with pytest.raises(LedgerDamagedError, match=r"nothing was changed.*tripod restore FILE"):
        rebuild_database(team)
    assert Path(database(team)).read_bytes() == before


def test_a_full_disk_replaces_nothing(team: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tripod.recovery import rebuild as recover

    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    damage(database(team), "lines")
    before = Path(database(team)).read_bytes()
    for name in ("copy_database_pages", "_write_over"):
        with monkeypatch.context() as patch:
            patch.setattr(recover, name, full)
            with pytest.raises(UnwritableError, match="disk is full"):
                rebuild_database(team)
        assert Path(database(team)).read_bytes() == before
        assert [n for n in os.listdir(team) if "damaged" in n or "renewing" in n] == []


def test_what_a_stopped_renewal_left_is_removed(team: str) -> None:
    for suffix in ("", "-wal", "-shm", "-journal", ".lock"):
        Path(f"{database(team)}.renewing{suffix}").write_bytes(b"half")
    damage(database(team), "lines")
    rebuild_database(team)
    assert [name for name in os.listdir(team) if "renewing" in name] == []
    check(team)


def test_a_command_that_meets_damage_raises_one_kind_of_error(team: str) -> None:
    damage(database(team), "manifest", "events")
    for act in (bus.ack_all, lambda team: team.refresh(), recover.rebuild):
        with pytest.raises(PagesDamagedError), access_team(team) as team_:
            act(team_)


def test_a_whole_database_can_be_written_anew_too(team: str) -> None:
    before = truth(team)
    shutil.copy(database(team), f"{team}/../as-it-was.db")
    rebuild_database(team)
    assert truth(team) == before
    check(team)
