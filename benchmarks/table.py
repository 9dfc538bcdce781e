"""The one table: for a terminal, for a page of the documentation, for programs."""

from __future__ import annotations

import os
import platform
import sqlite3
from collections.abc import Sequence
from itertools import chain
from time import perf_counter
from typing import Any

from benchmarks.measure import Row

__all__ = ["machine", "markdown", "put_into_page", "sync_seconds", "text", "values"]

TITLES = ("what", "ours", "floor", "ratio (least to greatest)", "target", "met")
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"


def _cells(row: Row) -> tuple[str, ...]:
    places = 0 if row.unit == "MB" else 2 if row.median >= 0.1 else 4
    low, high = min(row.samples), max(row.samples)
    ratio = f"{row.median:,.{places}f} {row.unit} ({low:,.{places}f} to {high:,.{places}f})"
    target = ""
    if row.target is not None:
        sign = "≤" if row.target.at_most else "≥"
        target = f"{sign} {row.target.bound:g} {row.unit}"
    met = {None: "", True: "yes", False: "NO"}[row.met]
    return (row.what, row.ours, row.floor, ratio, target, met)


def text(rows: Sequence[Row]) -> str:
    """Columns of even width."""
    table = [TITLES, *(_cells(row) for row in rows)]
    widths = [max(len(line[at]) for line in table) for at in range(len(TITLES))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in table
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def markdown(rows: Sequence[Row], where: str) -> str:
    """A table of a page, with ``where`` it was measured in front."""
    lines = [where, "", f"| {' | '.join(TITLES)} |", "|" + "---|" * len(TITLES)]
    lines += [f"| {' | '.join(_cells(row))} |" for row in rows]
    return "\n".join(lines)


def put_into_page(page: str, figures: str, *, part: bool = False) -> str:
    """The page with its figures replaced; ValueError where it has no place for them.

    Where only a ``part`` was measured, the rows of the page that are none of these stay.
    """
    before, begin, rest = page.partition(BEGIN)
    old, end, after = rest.partition(END)
    if not begin or not end:
        message = f"the page has no {BEGIN} ... {END}"
        raise ValueError(message)
    if part:
        figures = _joined(old, figures)
    return f"{before}{BEGIN}\n{figures}\n{END}{after}"


def _joined(old: str, new: str) -> str:
    """Two tables as one: what was measured anew in its place, or at the end.

    Where it was measured is said of the whole, as it was when all of it was.
    """
    fresh = _by_name(new)
    fresh.pop(TITLES[0], None)
    rows = [fresh.pop(name, lines) for name, lines in _by_name(old).items() if name != TITLES[0]]
    head = (old.strip() or new).splitlines()[:4]
    return "\n".join([*head, *chain.from_iterable((*rows, *fresh.values()))])


def _by_name(figures: str) -> dict[str, list[str]]:
    """The lines of a table by what they measure; those of "the same" go with the one before."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in figures.splitlines():
        if line.startswith("| "):
            what = line[2:].partition(" | ")[0]
            name = name if what.startswith("the same ") else what
            found.setdefault(name, []).append(line)
    return found


def values(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """What the table says, with every sample, for JSON."""
    return [
        {
            "name": row.name,
            "what": row.what,
            "ours": row.ours,
            "floor": row.floor,
            "samples": list(row.samples),
            "median": row.median,
            "unit": row.unit,
            "target": None if row.target is None else row.target._asdict(),
            "met": row.met,
        }
        for row in rows
    ]


def machine(folder: str) -> str:
    """One line on where this is measured; ``folder`` is on its disk."""
    return (
        f"{os.cpu_count()} cores ({_processor()}), {platform.system()}, "
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}; "
        f"writing and syncing 4 KiB takes {sync_seconds(folder) * 1000:.2f} ms."
    )


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model n")]
    except OSError:
        names = []
    return names[0] if names else platform.machine()


def sync_seconds(folder: str, times: int = 50) -> float:
    """The median of writing 4 KiB and waiting until the disk has them, in seconds."""
    path = os.path.join(folder, "sync")
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    taken = []
    for _ in range(times):
        begin = perf_counter()
        os.write(fd, b"x" * 4096)
        os.fdatasync(fd)
        taken.append(perf_counter() - begin)
    os.close(fd)
    return sorted(taken)[times // 2]
