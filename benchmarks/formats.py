"""What a report in four forms costs ``tripod verify`` over a report in one."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter

from benchmarks.commands import TRIPOD, WARM_UP
from benchmarks.measure import Pair, Row, cost_row
from benchmarks.workload import Scale, make_team

__all__ = ["rows"]

ENTRIES = 30_000  # of which a part are events, whose files can be edited
FINDINGS = 10_000
FORMS = ("sarif=r.sarif", "junit=r.xml", "github=r.txt")


def rows(folder: str, rounds: int, say: Callable[[str], None]) -> Iterator[Row]:
    """The rows on a team as it should be, and on one of which ten thousand files were edited."""
    top = os.path.join(folder, "formats")
    os.mkdir(top)
    say(f"a team of {ENTRIES:,} entries")
    root = make_team(top, Scale(ENTRIES, retention=2**40))
    yield from _rows("formats", f"{ENTRIES:,} entries, no findings", root, (0, 3), rounds)
    processed = os.path.join(root, "events", "processed")
    for name in sorted(os.listdir(processed))[:FINDINGS]:
        with open(os.path.join(processed, name), "ab") as file:
            file.write(b"more\n")
    yield from _rows("formats-findings", f"{FINDINGS:,} findings", root, (1,), rounds)


def _rows(name: str, what: str, root: str, codes: tuple[int, ...], rounds: int) -> Iterator[Row]:
    one = partial(_cost, root, codes, ())
    four = partial(_cost, root, codes, FORMS)
    for _ in range(WARM_UP):
        one()
        four()
    both = [(four(), one()) for _ in range(rounds)]
    said = f"`verify` with text, SARIF, JUnit and annotations / text alone, {what}"
    yield cost_row(name, said, [Pair(ours[0], floor[0]) for ours, floor in both], 1.1)
    worked = [Pair(ours[1], floor[1]) for ours, floor in both]
    yield cost_row(f"{name}-processor", "the same in processor time", worked)


def _cost(root: str, codes: tuple[int, ...], forms: tuple[str, ...]) -> tuple[float, float]:
    """Seconds of a run, and of processor time; it must end with one of ``codes``."""
    formats = [f"--format={one}" for one in forms]
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    ended = subprocess.run(
        (TRIPOD, "verify", *formats, root),
        cwd=os.path.dirname(os.path.dirname(root)),
        stdout=subprocess.DEVNULL,
        check=False,
    )
    seconds, after = perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    if ended.returncode not in codes:
        raise RuntimeError(f"verify ended with {ended.returncode}")
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
