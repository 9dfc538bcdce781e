"""Each thing that can be wrong with a team directory is made, told, and mended or explained."""

import fcntl
import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import drafts
import pytest
from doors.inside import run
from specimens import build, database, forge, read, unguarded

from tripod.agents.jobs import newest
from tripod.agents.spool import Spool
from tripod.bus import events as bus
from tripod.bus import reader
from tripod.chat import writer as chat_send
from tripod.decisions import writer as decisions
from tripod.ledger.ids import now_us
from tripod.projections.layout import WORKER_LOG
from tripod.recovery.doctor import FEW, PATIENCE, Examined, Trouble, examine, grouped_troubles, mend
from tripod.team import adoption
from tripod.team.team import Team
from tripod.verify.evidence import collect
from tripod.verify.run import run as judge
from tripod.verify.run import verify
from tripod.workers import worker as workers_run

RUN = "ab" * 16
LOG = "workers/parser-a3f1.log"
Do = Callable[[Path], object]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sound team directory with a worker's log that is kept as evidence, made once."""
    root = Path(build(str(tmp_path_factory.mktemp("sound"))))
    (root / LOG).write_text("> Read(src/parser.py)\n")
    with Team(str(root)) as team:
        for event in list(bus.check(team)):
            if event.type != "pythia-checkpoint":
                bus.ack(team, event.name, actor="alex")
        adoption.sync(team)
    return root


@pytest.fixture
def root(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / ".nbs", copy_function=shutil.copy2))


def evidence_of(root: Path) -> tuple[list[object], dict[str, bytes]]:
    """What may never be touched: the entries as they are, and logs."""
    with closing(sqlite3.connect(database(str(root)))) as db:
        rows = db.execute("SELECT * FROM entries ORDER BY seq").fetchall()
    logs = {str(path): path.read_bytes() for path in (root / "workers").glob("*.log")}
    return rows, logs


def tree(root: Path) -> dict[str, bytes]:
    """Every file that is there, the database's own working files apart."""
    files = (path for path in root.rglob("*") if path.is_file())
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in files
        if not path.name.endswith(("-wal", "-shm"))
    }


def told(found: Examined) -> set[tuple[str, str]]:
    assert found.problem == ""
    return {(one.name, one.where) for one in found.troubles}


def changed(sql: str) -> Do:
    """Something written straight into the database."""

    def do(root: Path) -> None:
        with unguarded(database(str(root))) as db:
            db.execute(sql)

    return do


def _behind(root: Path) -> None:
    with Team(str(root)) as team:
        draft = drafts.sent(channel="side", index=4, handle="bob", time=1_770_904_800, text="Tea")
        team.store.append([draft])


def _old_tables(root: Path) -> None:
    with closing(sqlite3.connect(database(str(root)), isolation_level=None)) as db:
        db.execute("UPDATE folds SET versions = 'decisions:0'")


def _torn_page(root: Path) -> None:
    with closing(sqlite3.connect(database(str(root)))) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'lines'"
        page, size = db.execute(sql).fetchone()[0], db.execute("PRAGMA page_size").fetchone()[0]
    with open(database(str(root)), "r+b") as file:
        file.seek(size * (page - 1))
        file.write(b"\x05" * size)


def _no_trigger(root: Path) -> None:
    with closing(sqlite3.connect(database(str(root)), isolation_level=None)) as db:
        db.execute("DROP TRIGGER entries_no_update")


MENDED: tuple[tuple[str, str, Do], ...] = (
    ("files-behind", "ledger.db", _behind),
    ("tables-old", "ledger.db", _old_tables),
    ("tables-behind", "ledger.db", changed("UPDATE head SET tables = tables - 1")),
    ("table", "ledger.db", changed("UPDATE pieces SET title = 'Other' WHERE number = 1")),
    ("table", "ledger.db", changed("UPDATE manifest SET size = size + 1")),
    ("table", "ledger.db", _torn_page),
    ("schema", "ledger.db", _no_trigger),
    ("drift", "scribe/log.md", lambda root: _edit(root / "scribe/log.md")),
    ("drift", "chat/live.chat", lambda root: _rewrite(root / "chat/live.chat")),
    ("drift", "counts.json", lambda root: (root / "counts.json").unlink()),
    ("drift", "chat/side.chat", lambda root: (root / "chat/side.chat").unlink()),
    ("mode", "chat/live.chat", lambda root: (root / "chat/live.chat").chmod(0o644)),
    ("gitignore", ".gitignore", lambda root: (root / ".gitignore").write_text("ledger.db*\n")),
    ("gitignore", ".gitignore", lambda root: (root / ".gitignore").unlink()),
    ("leftover", "chat/.tripod-new-7", lambda root: (root / "chat/.tripod-new-7").touch()),
    ("leftover", "ledger.db.renewing", lambda root: (root / "ledger.db.renewing").touch()),
    ("spool", f"spool/{RUN}", lambda root: (root / "spool" / RUN).mkdir(parents=True)),
)


def _edit(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"Agreed in", b"Nobody read", 1))


def _rewrite(path: Path) -> None:
    head, body = path.read_bytes().split(b"\n---\n")
    lines = body.split(b"\n")
    path.write_bytes(head + b"\n---\n" + b"\n".join([lines[1], lines[0], *lines[2:]]))


def test_a_sound_team_is_well(root: Path) -> None:
    before = tree(root)
    assert examine(str(root)) == Examined(str(root), ())
    assert examine(str(root.parent)) == Examined(str(root), ())
    assert mend(examine(str(root))).troubles == ()
    assert tree(root) == before


@pytest.mark.parametrize(("name", "where", "do"), MENDED, ids=lambda v: v or "")
def test_what_can_be_mended_is_told_first_and_mended_then(
    root: Path, name: str, where: str, do: Do
) -> None:
    do(root)
    rows, logs = evidence_of(root)
    files = tree(root)
    found = examine(str(root))
    assert tree(root) == files  # to look changes nothing
    assert (name, where) in told(found)
    assert all(one.mends and not one.stops for one in found.troubles)
    assert mend(found).troubles == ()
    after, kept = evidence_of(root)
    assert after[: len(rows)] == rows
    assert kept == logs
    with collect(str(root)) as evidence:
        assert judge(evidence).exit_code == 0


FOR_A_PERSON: tuple[tuple[str, str, Do], ...] = (
    ("no-ledger", "ledger.db", lambda root: (root / "ledger.db").unlink()),
    ("empty-ledger", "ledger.db", lambda root: (root / "ledger.db").write_bytes(b"")),
    ("ledger-damaged", "entry 20", changed("UPDATE entries SET body = x'7b7d' WHERE seq = 20")),
    ("config", "events/config.yaml:1", lambda root: _config(root, "pythia-interval: soon\n")),
    ("config", "events/config.yaml", lambda root: _folder_at(root / "events/config.yaml")),
    ("in-the-way", "scribe/log.md", lambda root: _link_at(root / "scribe/log.md")),
    ("evidence", LOG, lambda root: (root / LOG).unlink()),
    ("evidence", LOG, lambda root: (root / LOG).write_text("> nothing\n")),
    ("stray", "chat/live.chat.tmp", lambda root: (root / "chat/live.chat.tmp").touch()),
    ("stray", "events/.tmp-1-2.event", lambda root: (root / "events/.tmp-1-2.event").touch()),
    ("leftover", "ledger.db.restoring", lambda root: (root / "ledger.db.restoring").touch()),
    ("gitignore", ".gitignore", lambda root: _link_at(root / ".gitignore")),
    ("spool", "spool/mine", lambda root: (root / "spool/mine").mkdir(parents=True)),
    ("spool", f"spool/{RUN}", lambda root: _strange_run(root / "spool")),
    ("clock", "ledger.db", lambda root: _dated(root, "2999")),
)


def _config(root: Path, text: str) -> None:
    (root / "events/config.yaml").write_text(text)


def _folder_at(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _link_at(path: Path) -> None:
    path.rename(path.parent / "elsewhere")
    path.symlink_to("elsewhere")


def _strange_run(folder: Path) -> None:
    folder.mkdir()
    (folder / RUN).symlink_to("/")


def _dated(root: Path, year: str) -> None:
    rows = read(database(str(root)))
    rows[-1] = rows[-1].headed(at=f"{year}{rows[-1].head['at'][4:]}")
    forge(str(root), rows)


@pytest.mark.parametrize(("name", "where", "do"), FOR_A_PERSON, ids=lambda v: v or "")
def test_what_a_person_must_do_is_told_and_left(root: Path, name: str, where: str, do: Do) -> None:
    do(root)
    found = examine(str(root))
    told_ = [one for one in found.troubles if one.name == name]
    assert [(one.where, one.mends) for one in told_] == [(where, "")]
    assert told_[0].cure
    logs = tree(root)
    left = mend(found)
    assert [one for one in left.troubles if one.name == name] == told_
    assert {path: data for path, data in tree(root).items() if path.endswith(".log")} == {
        path: data for path, data in logs.items() if path.endswith(".log")
    }


def _no_reference(root: Path) -> None:
    with Team(str(root)) as team:
        decisions.log(team, decisions.DecisionRequest("Tea", ["ann"], "We like it."))


@pytest.mark.drawn
@pytest.mark.parametrize("do", [do for _, _, do in (*MENDED, *FOR_A_PERSON)] + [_no_reference])
def test_it_ends_as_the_verifier_does(root: Path, do: Do) -> None:
    do(root)
    assert examine(str(root)).code == verify(str(root)).exit_code
    assert run(root.parent, "doctor").code == run(root.parent, "verify").code


def test_a_rule_that_is_broken_is_told_with_what_settles_it(root: Path) -> None:
    _no_reference(root)
    (one,) = examine(str(root)).troubles
    assert (one.name, one.mends, one.stops) == ("chat-refs-resolve", "", False)
    assert "--supersedes" in one.cure
    (root / "counts.json").unlink()  # then what follows from files that differ is not told
    assert told(examine(str(root))) == {("drift", "counts.json")}
    assert told(mend(examine(str(root)))) == {("chat-refs-resolve", one.where)}


@pytest.mark.parametrize("kept", [True, False])
def test_what_was_added_to_a_workers_log_is_for_a_person(
    root: Path, monkeypatch: pytest.MonkeyPatch, *, kept: bool
) -> None:
    if not kept:
        monkeypatch.setattr("tripod.workers.worker.MAX_LOG", 1)
        monkeypatch.setattr("tripod.projections.layout.WORKER_LOG", WORKER_LOG._replace(limit=1))
    with Team(str(root)) as team:
        workers_run.spawn(team, "w", str(root.parent), "x", command=["echo", "x"], name="w-0001")
        run_ = newest(team.store.db, "worker", "w-0001")
        assert run_ is not None
        Spool(f"{root}/spool/{run_.spawn}").wait()
        workers_run.look_after(team)
    assert "log-altered" not in {one.name for one in examine(str(root)).troubles}
    log = root / "workers/w-0001.log"
    log.write_bytes(b"x\nall is well\n")
    (told_,) = (one for one in examine(str(root)).troubles if one.name == "log-altered")
    assert (told_.where, told_.mends) == ("workers/w-0001.log", "")
    assert told_.what == "12 bytes were added after its program ended"
    assert told_.cure.startswith("evidence is never touched here: ")
    assert told_ in mend(examine(str(root))).troubles
    assert log.read_bytes() == b"x\nall is well\n"
    assert run(root, "doctor").code == 1
    log.unlink()
    names = {(one.name, one.where) for one in examine(str(root)).troubles}
    assert ("evidence" if kept else "log-altered", "workers/w-0001.log") in names


def test_a_ledger_that_nobody_can_read_is_no_verdict(root: Path) -> None:
    (root / "ledger.db").write_bytes(b"no database at all, " * 100)
    before = tree(root)
    found = mend(examine(str(root)))
    assert found.troubles == ()
    assert "ledger.db" in found.problem
    assert tree(root) == before


def test_nothing_is_no_team(tmp_path: Path) -> None:
    problem = examine(str(tmp_path)).problem
    assert "is no team directory" in problem
    assert f"`tripod init {tmp_path}`" in problem


@pytest.mark.parametrize("do", [changed("UPDATE entries SET body = x'7b7d' WHERE seq = 20")])
def test_while_the_ledger_is_damaged_nothing_is_mended(root: Path, do: Do) -> None:
    do(root)
    (root / "chat/live.chat").chmod(0o644)
    before = tree(root)
    found = examine(str(root))
    assert mend(found) == found
    assert tree(root) == before


def test_files_that_are_ahead_stop_it(root: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    with closing(sqlite3.connect(database(str(root)))) as db, closing(sqlite3.connect(copy)) as out:
        db.backup(out)
    with Team(str(root)) as team:
        chat_send.send(team, "side", "ann", "Later.")
    for name in ("ledger.db", "ledger.db-wal", "ledger.db-shm"):
        (root / name).unlink(missing_ok=True)
    copy.rename(root / "ledger.db")
    found = examine(str(root))
    assert ("files-ahead", "counts.json") in told(found)
    before = tree(root)
    assert mend(found) == found
    assert tree(root) == before


def test_a_place_that_is_gone_stops_it(tmp_path: Path) -> None:
    (tmp_path / "bus").mkdir()
    (tmp_path / "shop").mkdir()
    adoption.init(str(tmp_path / "shop"), events=str(tmp_path / "bus"))
    shutil.rmtree(tmp_path / "bus")
    found = examine(str(tmp_path / "shop"))
    assert ("place-gone", "events") in told(found)
    assert mend(found) == found
    assert not (tmp_path / "bus").exists()


def test_who_holds_the_writers_place_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tripod.recovery.doctor.BUSY_S", 0.0)
    with open(root / "ledger.db.lock", "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        found = examine(str(root))
        (one,) = found.troubles
        assert (one.name, one.where) == ("busy", "ledger.db.lock")
        assert one.what.startswith((f"process {os.getpid()} ", "another process "))
        assert mend(found) == found  # it does not wait
    assert examine(str(root)).troubles == ()


# The queue and the workers ----------------------------------------------------------------------


def shifted(root: Path, seconds: int, *, monkeypatch: pytest.MonkeyPatch) -> Examined:
    """What is told so much later."""
    monkeypatch.setattr("tripod.verify.evidence.now_us", lambda: now_us() + seconds * 1_000_000)
    return examine(str(root))


def unanswered(found: Examined) -> list[Trouble]:
    """The reviews among what is told: a rule of the team names those that are acknowledged."""
    return [one for one in found.troubles if one.name != "events-processed"]


def test_a_claim_whose_lease_ended_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Team(str(root)) as team:
        name = bus.publish(team, "ann", "task-complete", "low", "")
        reader.claim(team, "ben", name, lease=60)
    assert examine(str(root)).troubles == ()
    (one,) = shifted(root, 61, monkeypatch=monkeypatch).troubles
    assert (one.name, one.where) == ("claim-over", f"events/{name}")
    assert one.what.startswith("ben took it, and the lease ended at 2")
    with Team(str(root)) as team:
        bus.ack(team, name, actor="ben")
    assert shifted(root, 61, monkeypatch=monkeypatch).troubles == ()
    monkeypatch.undo()
    assert examine(str(root)).troubles == ()


@pytest.mark.parametrize(("config", "patience"), [("", PATIENCE), ("ack-timeout: 120\n", 120)])
def test_a_review_that_nobody_answers_is_told(
    root: Path, monkeypatch: pytest.MonkeyPatch, config: str, patience: int
) -> None:
    _config(root, config)
    with Team(str(root)) as team:
        bus.ack_all(team, None, actor="alex")
        name = bus.publish(team, "scribe", "pythia-checkpoint", "high", "")
    assert unanswered(shifted(root, patience - 60, monkeypatch=monkeypatch)) == []
    (one,) = unanswered(shifted(root, patience + 60, monkeypatch=monkeypatch))
    assert (one.name, one.where) == ("checkpoint-unanswered", f"events/{name}")
    with Team(str(root)) as team:
        reader.claim(team, "pythia", name, lease=80_000)
    assert unanswered(shifted(root, patience + 60, monkeypatch=monkeypatch)) == []


def test_a_worker_whose_program_is_gone_is_told_and_recorded(root: Path) -> None:
    with Team(str(root)) as team:
        workers_run.spawn(team, "w", str(root), "Do.", command=["sleep", "600"], name="w-0001")
        found = newest(team.store.db, "worker", "w-0001")
        assert found is not None
        spool = Spool(f"{root}/spool/{found.spawn}")
    assert examine(str(root)).troubles == ()
    spool.cancel()
    spool.wait()
    (one,) = examine(str(root)).troubles
    assert (one.name, one.where) == ("run-over", "workers/w-0001")
    assert "its program has ended, and nobody recorded how" in one.what
    assert mend(examine(str(root))).troubles == ()
    with Team(str(root)) as team:
        assert workers_run.worker_state(team, "w-0001") == "died"


# Many at once -----------------------------------------------------------------------------------


def test_many_of_one_sort_are_told_as_one(root: Path) -> None:
    events = sorted((root / "events/processed").glob("*.event"))
    for path in events:
        path.unlink()
    (one,) = [one for one in examine(str(root)).troubles if one.name == "drift"]
    assert one.where == "events/processed"
    first = ", ".join(path.name for path in events[:3])
    assert one.what.startswith(f"{len(events)} of them, the first are {first}: ")
    assert mend(examine(str(root))).troubles == ()
    assert [path.name for path in sorted((root / "events/processed").glob("*.event"))] == [
        path.name for path in events
    ]


def test_few_are_told_one_by_one() -> None:
    few = [Trouble("drift", f"chat/{n}.chat", "is missing", "", "sync") for n in range(FEW)]
    assert list(grouped_troubles(few)) == few
    top = [Trouble("leftover", f"{n}", "left", "", "clear") for n in range(FEW + 1)]
    (one,) = grouped_troubles(top)
    assert (one.where, one.what) == (".", "6 of them, the first are 0, 1, 2: left")
    same = [Trouble("table", "ledger.db", f"row {n}", "", "rebuild") for n in range(FEW + 1)]
    (one,) = grouped_troubles(same)
    assert (one.where, one.what) == ("ledger.db", "row 0, and 5 more")


def test_what_stops_all_mending_is_not_put_among_what_does_not() -> None:
    many = [Trouble("schema", "a", f"{n}", "") for n in range(FEW + 1)]
    told = list(grouped_troubles([*many, Trouble("schema", "a", "worse", "", stops=True)]))
    assert [(one.what, one.stops) for one in told] == [("0, and 5 more", False), ("worse", True)]


# The command ------------------------------------------------------------------------------------


def test_the_command_leaves_with_its_codes(root: Path) -> None:
    folder = root.parent
    assert run(folder, "doctor").code == 0
    (root / "chat/live.chat").chmod(0o644)
    dry = run(folder, "doctor")
    last = b"1 thing to put in order, of which --fix mends 1"
    assert (dry.code, dry.out.splitlines()[-1]) == (0, last)
    value = json.loads(run(folder, "doctor", "--json").out)
    assert [one["name"] for one in value["troubles"]] == ["mode"]
    assert (value["mended"], value["problem"], value["root"]) == ([], "", str(root))
    fixed = run(folder, "doctor", "--fix", "--json")
    assert fixed.code == 0
    assert [one["name"] for one in json.loads(fixed.out)["mended"]] == ["mode"]
    assert run(folder, "doctor", "--nothing").code == 2
    assert run(folder, "doctor", "-C", "nowhere").code == 2
    (root / "ledger.db").write_bytes(b"no database at all, " * 100)
    assert run(folder, "doctor").code == 3
