"""What was measured before: figures of earlier runs, kept as JSON, so that a slower one is seen.

A run is kept with its date, its commit and its machine. Only ratios are compared: seconds say more
about the machine than about the tool, and a ratio was taken side by side with its floor.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.measure import Row

__all__ = ["TOLERANCE", "add", "newest", "slower"]

TOLERANCE = 0.2
"""So much worse may a ratio be than it was, as a part of that: noise reaches it seldom."""
Run = dict[str, Any]


def add(path: Path, rows: Sequence[Row], machine: str) -> None:
    """Add a run at the end of the history in ``path``, which may not exist yet."""
    runs = _runs(path)
    figures = {
        row.name: {
            "what": row.what,
            "median": row.median,
            "least": min(row.samples),
            "most": max(row.samples),
            "rounds": len(row.samples),
            "unit": row.unit,
            "met": row.met,
        }
        for row in rows
    }
    when = datetime.now(UTC).date().isoformat()
    runs.append({"date": when, "commit": _commit(), "machine": machine, "figures": figures})
    path.write_text(json.dumps(runs, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def newest(path: Path) -> dict[str, Any]:
    """The newest figure of each name in a history; none where there is no history."""
    found: dict[str, Any] = {}
    for run in _runs(path):
        found |= run["figures"]
    return found


def slower(before: dict[str, Any], rows: Sequence[Row]) -> Iterator[str]:
    """A line for each ratio that is worse than it was by more than the tolerance."""
    for row in rows:
        old = before.get(row.name)
        if old is None or row.unit != "x" or old["unit"] != "x":
            continue
        was = old["median"]
        worse = (was / row.median if row.more_is_better else row.median / was) - 1
        if worse > TOLERANCE:
            yield f"{row.what}: {row.median:.2f} x, and it was {was:.2f} x: {worse:.0%} worse"


def _runs(path: Path) -> list[Run]:
    if not path.exists():
        return []
    runs: list[Run] = json.loads(path.read_text(encoding="utf-8"))
    return runs


def _commit() -> str:
    words = ("git", "rev-parse", "--short=10", "HEAD")
    done = subprocess.run(
        words, cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()
