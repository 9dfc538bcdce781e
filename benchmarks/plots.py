"""``python -m benchmarks.plots HISTORY FOLDER``: draw the newest figures of a history as SVG.

Needs matplotlib (``pip install 'tripod-ledger[bench]'``), which nothing else here does. Each plot
is a table below of lines: the names of the rows that it goes through, at each size.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.history import newest

__all__ = ["PLOTS", "Plot", "points"]


class Plot(NamedTuple):
    """One picture; ``lines`` are the beginnings of the names of rows that end in a number."""

    file: str
    title: str
    across: str
    up: str
    lines: Mapping[str, str]


PLOTS = (
    Plot(
        "judging", "Judging and rebuilding", "entries", "seconds",
        {
            "scale-all-": "verify, all checks",
            "scale-rebuild-": "rebuild",
            "scale-ledger-": "verify, ledger checks",
            "scale-floor-": "reading and hashing each row",
        },
    ),
    Plot(
        "memory", "Peak memory", "entries", "MB",
        {"scale-all-memory-": "verify, all checks", "scale-rebuild-memory-": "rebuild"},
    ),
    Plot(
        "latency", "One act in a running process", "entries", "milliseconds",
        {
            f"scale-{act}-{part}-": f"{act}, {part}"
            for act in ("publish", "send", "log") for part in ("p50", "p99")
        },
    ),
)  # fmt: skip


def points(figures: Mapping[str, Any], name: str) -> list[tuple[int, float]]:
    """Number and median of each row whose name is ``name`` and a number, in order."""
    found = []
    for row, figure in figures.items():
        number = re.fullmatch(re.escape(name) + r"(\d+)", row)
        if number is not None:
            found.append((int(number[1]), float(figure["median"])))
    return sorted(found)


def draw(figures: Mapping[str, Any], folder: Path) -> None:
    """Write each plot that there are figures for."""
    import matplotlib as mpl

    mpl.use("svg")
    # The same figures give the same bytes.
    mpl.rcParams.update({"svg.hashsalt": "tripod", "svg.fonttype": "none"})
    from matplotlib import pyplot as plt

    for plot in PLOTS:
        lines = {label: points(figures, name) for name, label in plot.lines.items()}
        if not any(lines.values()):
            continue
        figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
        for label, line in lines.items():
            if line:
                axes.plot(*zip(*line, strict=True), marker="o", label=label)
        axes.set(xscale="log", yscale="log", xlabel=plot.across, ylabel=plot.up, title=plot.title)
        axes.grid(visible=True, alpha=0.3)
        axes.legend(frameon=False)
        figure.savefig(folder / f"bench-{plot.file}.svg", metadata={"Date": None})
        plt.close(figure)


def main() -> None:
    """Draw."""
    draw(newest(Path(sys.argv[1])), Path(sys.argv[2]))


if __name__ == "__main__":
    main()
