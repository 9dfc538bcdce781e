"""Several processes append to one file: everything is stored, in one chain, each in its order."""

from contextlib import closing
from pathlib import Path

import pytest
from appender import OPENING
from children import run_together
from sample_ledger import faults

from tripod.ledger.sqlite.store import SQLiteStore


@pytest.mark.slow
@pytest.mark.parametrize(("processes", "times"), [(2, 500), (8, 60)])
def test_processes_that_append_at_once(tmp_path: Path, processes: int, times: int) -> None:
    path = str(tmp_path / "ledger.db")
    with closing(SQLiteStore(path, create=True)) as store:
        store.append([OPENING])
    answered = run_together(path, processes, times)
    assert answered == [
        [f"p{process}-{number}" for number in range(times)] for process in range(processes)
    ]
    with closing(SQLiteStore(path)) as store:
        stored = [entry.id for entry in store.read(1)]
        assert sorted(stored) == sorted(entry_id for ids in answered for entry_id in ids)
        for process, ids in enumerate(answered):
            assert [entry_id for entry_id in stored if entry_id.startswith(f"p{process}-")] == ids
        assert faults(store) == []


@pytest.mark.slow
def test_processes_that_make_the_same_ledger_at_once(tmp_path: Path) -> None:
    for attempt in range(4):
        path = str(tmp_path / f"{attempt}.db")
        answered = run_together(path, 4, 2)
        with closing(SQLiteStore(path)) as store:
            assert store.head().size == 1 + sum(map(len, answered)) == 9
            assert faults(store) == []


@pytest.mark.slow
def test_processes_that_try_the_same_acts(tmp_path: Path) -> None:
    """Each act has its id: whoever comes first does it, the others are given what was done."""
    path = str(tmp_path / "ledger.db")
    with closing(SQLiteStore(path, create=True)) as store:
        store.append([OPENING])
        one = store.append([OPENING])
        assert [entry.seq for entry in one] == [0]
    run_together(path, 1, 50)
    run_together(path, 1, 100)
    with closing(SQLiteStore(path)) as store:
        assert [entry.id for entry in store.read(1)] == [f"p0-{number}" for number in range(100)]
        assert faults(store) == []
