"""Killed at any moment: what was answered is there, what is there is whole, and it goes on."""

import os
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from appender import DEATHS, OPENING
from children import start
from sample_ledger import faults, said

from tripod.ledger.sqlite.store import SQLiteStore


def say_go(child: "subprocess.Popen[str]") -> None:
    """Wait until the child is ready, and let it begin."""
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    child.stdin.write("go\n")
    child.stdin.flush()


def kill(child: "subprocess.Popen[str]") -> list[str]:
    """Kill -9; give the whole lines that it had still said."""
    assert child.stdout is not None
    child.kill()
    rest = child.stdout.read()  # communicate() would pass over what readline() had read ahead
    child.communicate()
    return rest.splitlines() if rest.endswith("\n") else rest.splitlines()[:-1]


@pytest.mark.slow
def test_nothing_answered_is_lost_by_twenty_kills(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger.db")
    answered: list[str] = []
    for attempt in range(20):
        child = start(path, f"p{attempt}", "0")
        say_go(child)
        assert child.stdout is not None
        answered += [child.stdout.readline().strip() for _ in range(attempt * attempt % 41)]
        answered += kill(child)
        with closing(SQLiteStore(path)) as store:
            stored = [entry.id for entry in store.read()]
            assert set(answered) <= set(stored)
            assert [entry_id for entry_id in stored if entry_id in set(answered)] == answered
            # At most the one act that each killed process had under way was not answered.
            assert len(stored) - 1 - len(answered) <= 2 * (attempt + 1)
            assert faults(store) == []
            (entry,) = store.append([said(id=f"goes on {attempt}")])
            assert entry.seq == len(stored)
            answered.append(entry.id)
    assert len(answered) > 200


@pytest.mark.slow
def test_killed_while_it_makes_the_ledger(tmp_path: Path) -> None:
    for attempt in range(5):
        path = str(tmp_path / f"{attempt}.db")
        child = start(path, "p", "0")
        while not os.path.exists(path):
            assert child.poll() is None
        kill(child)
        with closing(SQLiteStore(path, create=True)) as store:
            store.append([OPENING])
            store.append([said()])
            assert store.head().size == 2
            assert faults(store) == []


@pytest.mark.slow
@pytest.mark.parametrize("death", DEATHS)
def test_killed_at_each_step(tmp_path: Path, death: str) -> None:
    path = str(tmp_path / "ledger.db")
    child = start(path, "p", "3", death)
    say_go(child)
    output, _ = child.communicate()
    assert (output.splitlines(), child.returncode) == (["p-0", "p-1", "p-2"], -9)
    done = death == "after the commit"
    with closing(SQLiteStore(path)) as store:
        assert [entry.id for entry in store.read(1)] == ["p-0", "p-1", "p-2"] + ["last"] * done
        assert (
            store.db.execute("SELECT * FROM sqlite_schema WHERE name = 'half_done'").fetchall()
            == []
        )
        assert faults(store) == []
        # A caller who was not answered asks again by the id, and it happens once.
        (entry,) = store.append([said(death, id="last")])
        assert (entry.seq, store.head().size) == (4, 5)
        assert faults(store) == []
