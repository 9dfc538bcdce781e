"""A large ledger's files are compared by a child, with tables that nobody vouches for yet.

Whatever is wrong, the report is the one that a single process gives.
"""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from specimens import SPECIMENS, copy, database, unguarded

from tripod.bus import events as bus
from tripod.projections.bus.tables import BUS
from tripod.projections.disk import Disk
from tripod.team.team import Team
from tripod.verify.check import Report
from tripod.verify.evidence import OpenEvidence, collect
from tripod.verify.fold import Compared, fold_own
from tripod.verify.run import run
from tripod.verify.scan import database as storage


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


def judged(root: str, monkeypatch: pytest.MonkeyPatch, large: int) -> tuple[Report, OpenEvidence]:
    """The report of one process, or of two where ``large`` is small enough."""
    monkeypatch.setattr(storage, "LARGE", large)
    monkeypatch.setattr(storage, "child_cores", lambda: 2)
    with collect(root) as evidence:
        evidence.now_us = 0  # the seal's age is not what is compared
        return run(evidence), evidence


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
