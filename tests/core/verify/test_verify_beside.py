"""A large ledger's files are compared by a child, with tables that nobody vouches for yet.

Whatever is wrong, the report is the one that a single process gives.
"""

import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import drafts
import pytest
from specimens import SPECIMENS, copy, database, forge, read, unguarded

from tripod.bus import events as bus
from tripod.chat import writer as chat_send
from tripod.projections.bus.tables import BUS
from tripod.projections.disk import Disk
from tripod.team.team import Team
from tripod.verify.check import Report
from tripod.verify.child import start_child
from tripod.verify.evidence import OpenEvidence, collect
from tripod.verify.fold import Compared, fold_own
from tripod.verify.run import run, verify
from tripod.verify.scan import database as storage
from tripod.verify.scan.rows import RowPass


def _pending(root: str) -> Path:
    return min(Path(root, "events").glob("*.event"))


def _shown(root: str, mode: int) -> None:
    _pending(root).chmod(mode)


def _longer(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more\n")


def _edited(root: str) -> None:
    path = Path(root, "chat", "side.chat")
    lines = path.read_bytes().split(b"\n")
    lines[-2], lines[-3] = lines[-3], lines[-2]
    path.write_bytes(b"\n".join(lines))


def _sql(root: str, *statements: str) -> None:
    with unguarded(database(root)) as db:
        for statement in statements:
            db.execute(statement)


def _foreign_ack(root: str) -> None:
    path = _pending(root)
    path.rename(path.parent / "processed" / path.name)


def _no_table(root: str) -> None:
    with closing(sqlite3.connect(database(root))) as db:
        db.execute("DROP TABLE events")


def _modes(root: str) -> None:
    """No fault that the files show: the row of each says what the file is."""
    _sql(root, "UPDATE events SET mode = 384")
    for path in Path(root, "events").rglob("*.event"):
        path.chmod(0o600)


def _lost(root: str) -> None:
    _sql(root, f"DELETE FROM events WHERE name = '{_pending(root).name}'")
    _pending(root).unlink()


DAMAGES: dict[str, Callable[[str], object]] = {
    "nothing": lambda _root: None,
    "an event edited": lambda root: _longer(_pending(root)),
    "an event gone": lambda root: _pending(root).unlink(),
    "an event of another mode": lambda root: _shown(root, 0o600),
    "an event acknowledged by another": _foreign_ack,
    "a line added to a chat": lambda root: _longer(Path(root, "chat", "side.chat")),
    "a chat edited": _edited,
    "a chat gone": lambda root: Path(root, "chat", "side.chat").unlink(),
    "a row edited, and its file": _modes,
    "a row gone, and its file": _lost,
    "lines gone": lambda root: _sql(root, "DELETE FROM lines WHERE number = 3"),
    "no table of events": _no_table,
    "a body of another shape": lambda root: _sql(
        root, "UPDATE entries SET body = x'5b5d' WHERE kind = 'bus.published'"
    ),
    **{f"{s.check}: {s.says}": s.do for s in SPECIMENS},
}


HARMLESS = (
    "nothing",
    "an event of another mode",
    "an event acknowledged by another",
    "a line added to a chat",
)


def judged(
    root: str, monkeypatch: pytest.MonkeyPatch, large: int, *select: str
) -> tuple[Report, OpenEvidence]:
    """The report of one process, or of two where ``large`` is small enough."""
    monkeypatch.setattr(storage, "LARGE", large)
    monkeypatch.setattr(storage, "child_cores", lambda: 2)
    with collect(root) as evidence:
        evidence.now_us = 0  # the seal's age is not what is compared
        return run(evidence, select or None), evidence


@pytest.mark.drawn
@pytest.mark.parametrize("damage", DAMAGES)
def test_two_processes_judge_as_one(
    sound: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    root = copy(sound, str(tmp_path))
    DAMAGES[damage](root)
    alone, _ = judged(root, monkeypatch, 2**62)
    beside, _ = judged(root, monkeypatch, 1)
    assert beside == alone
    assert alone.exit_code == (damage not in HARMLESS)


@pytest.fixture
def files_opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that this process (no child of it) reads from now on."""
    opened: list[str] = []
    look = Disk.look

    def noted(self: Disk, path: str, limit: int) -> object:
        opened.append(path)
        return look(self, path, limit)

    monkeypatch.setattr(Disk, "look", noted)
    return opened


def test_what_the_child_compared_is_not_opened_again(
    sound: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files_opened: list[str]
) -> None:
    root = copy(sound, str(tmp_path))
    report, evidence = judged(root, monkeypatch, 1)
    assert report.exit_code == 0
    assert evidence.team.queue_agrees
    assert [path for path in files_opened if path.endswith((".event", ".chat"))] == []


@pytest.mark.parametrize("moved", ["head", "row"])
def test_what_the_child_compared_counts_only_beside_the_same_head_and_tables(
    sound: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moved: str
) -> None:
    root = copy(sound, str(tmp_path))

    def earlier(path: str, disk: Disk) -> Compared | None:
        found = fold_own(path, disk)
        assert found is not None
        assert found.queue
        return found._replace(head=(1, "of another")) if moved == "head" else found

    monkeypatch.setattr(storage, "fold_own", earlier)
    if moved == "row":  # no file shows it
        _sql(root, "UPDATE events SET size = size + 1")
    _, evidence = judged(root, monkeypatch, 1)
    assert not evidence.team.queue_agrees


def test_no_tables_no_comparison(sound: str, tmp_path: Path) -> None:
    root = copy(sound, str(tmp_path))
    assert fold_own(database(root), Disk(root)) is not None
    _no_table(root)
    assert fold_own(database(root), Disk(root)) is None
    os.unlink(database(root))
    assert fold_own(database(root), Disk(root)) is None


def test_the_files_of_the_queue_come_from_the_queue_alone(sound: str) -> None:
    """Leaving out what the queue renders leaves out no other file."""
    from tripod.projections.engine import file_renders

    with Team(sound) as team:
        every = {path for path, _ in file_renders(team.source)}
        others = {path for path, _ in file_renders(team.source, queue=False)}
        assert every - others == set(BUS.paths(team.source)) != set()
        assert len(list(bus.check(team))) > 0


# Of some checks each process judges half of the entries -----------------------------------------

LEDGER = ("chain-links", "sequence", "canonical-bytes", "bodies-present", "kinds-known")


def _many(sound: str, folder: Path) -> str:
    """A team whose entries 256 and later are the upper half."""
    root = copy(sound, str(folder))
    with Team(root) as team, team.act() as act:
        act.append([drafts.displaced(f"scribe/{n}.md", "not ours", b"x") for n in range(480)])
    return root


def _grow(root: str) -> None:
    with Team(root) as team:
        bus.publish(team, "parser", "task-complete", "normal", "late")


@pytest.mark.parametrize("seq", [254, 255, 256, 257])
def test_a_link_that_fails_where_the_halves_meet_is_found(
    sound: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seq: int
) -> None:
    root = _many(sound, tmp_path)
    rows = read(database(root))
    rows[seq] = rows[seq].headed(prev="ab" * 32)
    forge(root, rows, link={seq})
    alone, _ = judged(root, monkeypatch, 2**62, *LEDGER)
    beside, _ = judged(root, monkeypatch, 1, *LEDGER)
    assert beside == alone
    assert [one.check for one in alone.outcomes if one.findings] == ["chain-links"]


@pytest.mark.parametrize("select", [(), LEDGER])
def test_what_is_appended_while_two_processes_read_is_no_fault(
    sound: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, select: tuple[str, ...]
) -> None:
    root, parent, pass_over = _many(sound, tmp_path), os.getpid(), RowPass.run
    with Team(root) as team:
        size = team.store.head().size

    def late(work: Callable[[], object]) -> Callable[[], object]:
        _grow(root)
        return start_child(work)

    def growing(self: RowPass) -> None:
        pass_over(self)
        if os.getpid() != parent:
            _grow(root)

    alone, _ = judged(root, monkeypatch, 2**62, *select)
    monkeypatch.setattr(storage, "start_child", late)
    monkeypatch.setattr(RowPass, "run", growing)
    beside, _ = judged(root, monkeypatch, 1, *select)
    assert (beside.exit_code, beside.failures) == (alone.exit_code, alone.failures)
    with Team(root) as team:
        assert team.store.head().size > size + 1  # the child was at work


@pytest.mark.parametrize("select", [(), LEDGER])
def test_another_ledger_that_comes_into_its_place_is_not_the_one_that_is_judged(
    sound: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, select: tuple[str, ...]
) -> None:
    root, other = _many(sound, tmp_path / "one"), _many(sound, tmp_path / "other")
    rows = read(database(root))
    forge(root, [*rows[:300], rows[300].headed(prev="ab" * 32), *rows[301:]], link={300})
    alone, _ = judged(root, monkeypatch, 2**62, *select)

    def swapped(work: Callable[[], object]) -> Callable[[], object]:
        for end in ("", "-wal", "-shm"):
            if os.path.exists(f"{database(other)}{end}"):
                os.replace(f"{database(other)}{end}", f"{database(root)}{end}")
        return start_child(work)

    monkeypatch.setattr(storage, "start_child", swapped)
    beside, _ = judged(root, monkeypatch, 1, *select)
    assert not os.path.exists(database(other))
    ours = [one for one in beside.outcomes if one.check in LEDGER]
    assert ours == [one for one in alone.outcomes if one.check in LEDGER]


def test_no_child_is_started_where_another_thread_runs() -> None:
    # It might hold a lock of SQLite's at that moment, and no thread of the child gives it back.
    assert start_child(os.getpid)() not in (None, os.getpid())
    over = threading.Event()
    other = threading.Thread(target=over.wait)
    other.start()
    try:
        assert start_child(os.getpid)() is None
    finally:
        over.set()
        other.join()


def test_the_function_looks_again_where_others_wrote(
    sound: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, looks = copy(sound, str(tmp_path)), []

    def beside(evidence: OpenEvidence, *more: Any) -> Report:
        looks.append(evidence)
        if len(looks) == 1:
            with Team(root) as team:
                chat_send.send(team, "live", "ann", "while you look")
        return run(evidence, *more)

    monkeypatch.setattr("tripod.verify.run.run", beside)
    assert verify(root).exit_code == 0
    assert len(looks) == 2
