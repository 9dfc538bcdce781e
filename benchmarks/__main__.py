"""``python -m benchmarks``: measure, and print one table of ours beside the floors."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import (
    adoption,
    appends,
    chats,
    commands,
    commits,
    evidence,
    formats,
    growth,
    history,
    judging,
    looking,
    merging,
    panels,
    peers,
    remotes,
    reports,
    scale,
    sessions,
    signing,
    table,
)
from benchmarks.measure import Row

ENTRIES = 100_000
FEW = 20_000
SIGNED = 20_000  # entries: checking a signature costs the same in a ledger of any size
GROUPS = (
    "appends",
    "commands",
    "chats",
    "growth",
    "adoption",
    "judging",
    "evidence",
    "signing",
    "looking",
    "merging",
    "commits",
    "remotes",
    "sessions",
    "formats",
    "reports",
    "panels",
    "peers",
    "scale",
)
ROUNDS = {
    "appends": 7,
    "commands": 21,
    "chats": 21,
    "growth": 21,
    "adoption": 5,
    "judging": 3,
    "evidence": 3,
    "signing": 7,
    "looking": 21,
    "merging": 3,
    "commits": 15,
    "remotes": 15,
    "sessions": 5,
    "formats": 7,
    "reports": 5,
    "panels": 7,
    "peers": 7,
    "scale": 1,
}


def main() -> None:
    """Measure what was asked for."""
    options = _options()
    # An installed program has its bytecode. Where this variable is set, a tree that was edited has
    # none, and each process that is measured compiles it: twice as long as all its imports.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # Programs are started in folders below it, and are told of others by their paths.
    with tempfile.TemporaryDirectory(prefix="bench-", dir=options.dir.absolute()) as folder:
        # Where it lies within a repository, git is not to see it.
        Path(folder, ".gitignore").write_text("*\n", encoding="utf-8")
        where = table.machine(folder)
        rows = []
        for group in options.only or GROUPS:
            own = Path(folder, group)
            own.mkdir()
            for row in _rows(group, str(own), options):
                _say(f"{row.name}: {row.median:.2f} {row.unit}")
                rows.append(row)
    figures = table.markdown(rows, where)
    print(figures if options.markdown else f"{where}\n\n{table.text(rows)}")
    if options.against:
        for line in history.slower(history.newest(options.against), rows):
            _say(f"warning: {line}")
    if options.history:
        history.add(options.history, rows, where)
    if options.json:
        options.json.write_text(json.dumps(table.values(rows), indent=1) + "\n", encoding="utf-8")
    if options.page:
        page = options.page.read_text(encoding="utf-8")
        page = table.put_into_page(page, figures, part=options.only is not None)
        options.page.write_text(page, encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--entries", type=int, default=ENTRIES, metavar="N",
        help="entries to verify and rebuild (default: %(default)s; the targets are for 1000000)",
    )  # fmt: skip
    parser.add_argument(
        "--few", type=int, default=FEW, metavar="N",
        help="entries of the small ledger that is judged beside that one (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--only", action="append", choices=GROUPS, help="a group of rows; once for each"
    )
    parser.add_argument("--rounds", type=int, metavar="N", help="pairs a row (default: by group)")
    parser.add_argument(
        "--dir", type=Path, default=Path(), metavar="DIR",
        help="where to work: a folder on the disk to be measured (default: this folder)",
    )  # fmt: skip
    parser.add_argument("--markdown", action="store_true", help="print the table of a page")
    parser.add_argument("--page", type=Path, metavar="FILE", help="put the figures into this page")
    parser.add_argument(
        "--history", type=Path, metavar="FILE", help="add the figures to the history in FILE"
    )
    parser.add_argument(
        "--against", type=Path, metavar="FILE",
        help="warn of each ratio that is a fifth worse than the newest in the history in FILE",
    )  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every sample to FILE")
    return parser.parse_args()


def _rows(group: str, folder: str, options: argparse.Namespace) -> Iterator[Row]:
    entries: int = options.entries
    rounds: int = options.rounds or ROUNDS[group]
    run: dict[str, Callable[[], Iterator[Row]]] = {
        "appends": lambda: appends.rows(folder, rounds),
        "commands": lambda: commands.rows(folder, rounds, _say),
        "chats": lambda: chats.rows(folder, rounds, _say),
        "growth": lambda: growth.rows(folder, rounds, _say),
        "adoption": lambda: adoption.rows(folder, rounds, _say),
        "judging": lambda: judging.rows(folder, entries, options.few, rounds, _say),
        "evidence": lambda: evidence.rows(folder, entries, rounds, _say),
        "looking": lambda: looking.rows(folder, entries, rounds, _say),
        "merging": lambda: merging.rows(folder, entries, rounds, _say),
        "commits": lambda: commits.rows(folder, entries, rounds, _say),
        "remotes": lambda: remotes.rows(folder, entries, rounds, _say),
        "formats": lambda: formats.rows(folder, rounds, _say),
        "sessions": lambda: sessions.rows(folder, rounds, _say),
        "reports": lambda: reports.rows(folder, rounds, _say),
        "scale": lambda: scale.rows(folder, entries, rounds, _say),
        "panels": lambda: panels.rows(folder, rounds, _say),
        "peers": lambda: peers.rows(folder, rounds, _say),
        "signing": lambda: signing.rows(folder, min(entries, SIGNED), rounds, _say),
    }
    return run[group]()


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main()
