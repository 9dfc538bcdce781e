"""Others write a projected file at the very moment when it is replaced: nothing of it is lost.

What happens in a run is in ``exchange_runs``, what others do in ``foreign_writers``.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from exchange_runs import POINTS
from story import folder

HERE = Path(__file__).resolve().parents[2]
RUNS = int(os.environ.get("TRIPOD_TRIALS", "25"))  # of each of two processes


def begin(where: Path, seed: int, runs: int, how: str) -> "subprocess.Popen[str]":
    """Let a process run the projector that often."""
    place = where / f"{how}-{seed}"
    place.mkdir()
    return subprocess.Popen(
        [sys.executable, "-m", "exchange_runs", str(place), str(seed), str(runs), how],
        env=os.environ | {"PYTHONPATH": os.pathsep.join((str(HERE), str(HERE.parent)))},
        stdout=subprocess.PIPE,
        text=True,
    )


def outcome(process: "subprocess.Popen[str]") -> dict[str, Any]:
    """What came of its runs."""
    out = process.communicate()[0]
    assert process.returncode == 0
    found: dict[str, Any] = json.loads(out)
    return found


@pytest.mark.drawn("long")
@pytest.mark.slow
def test_killed_anywhere_while_others_write_loses_nothing() -> None:
    with folder() as where:
        both = [outcome(process) for process in [begin(where, n, RUNS, "exchange") for n in (1, 2)]]
    for name in ("lost", "twice", "left", "differ"):
        assert [item for found in both for item in found[name]] == [], name
    assert all(found["same"] for found in both)
    kills: Counter[str] = Counter()
    for found in both:
        kills.update(found["kills"])
    assert set(kills) == set(POINTS)
    assert kills.total() >= 1.3 * RUNS
    assert sum(found["runs"] for found in both) >= 1.8 * RUNS
    assert sum(found["writes"] for found in both) >= 9 * RUNS
    assert sum(found["evidence"] for found in both) >= 0.4 * RUNS


@pytest.mark.drawn("long")
@pytest.mark.slow
def test_a_blind_rename_does_lose_them() -> None:
    with folder() as where:
        found = outcome(begin(where, 1, 25, "blind"))
    assert len(found["lost"]) >= 5
    assert found["writes"] >= 70
