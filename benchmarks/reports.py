"""What a page of a team costs: beside judging it alone, in bytes, and until a browser shows it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import perf_counter

from benchmarks.commands import TRIPOD
from benchmarks.measure import Row, cost_row, in_turn, size_row, time_row
from benchmarks.sessions import SOURCES, make_session
from benchmarks.workload import Scale, make_team

__all__ = ["rows"]

MESSAGES, DECISIONS, SESSIONS = 13_000, 2_600, 50
ENTRIES, DECIDED = 67_000, 0.065  # so that there are at least so many of each
SESSION = 100_000  # bytes of a session
POLICY = "never:\n  - paths: [.env*, '*.pem']\n"
_PAINTED = (
    "<script>new PerformanceObserver((seen) => { document.title = "
    "`painted ${seen.getEntriesByName('first-contentful-paint')[0].startTime}`; })"
    ".observe({type: 'paint', buffered: true});</script>"
)


def rows(folder: str, rounds: int, say: Callable[[str], None]) -> Iterator[Row]:
    """The rows on ``tripod report``; ``rounds`` pairs."""
    say(f"a team of {ENTRIES:,} entries and {SESSIONS} sessions")
    project = os.path.join(folder, "reported")
    os.mkdir(project)
    make_team(project, Scale(ENTRIES, decided=DECIDED))
    recorded = os.path.join(project, "recorded")
    os.mkdir(recorded)
    for number in range(SESSIONS):
        program = list(SOURCES)[number % len(SOURCES)]
        make_session(os.path.join(recorded, f"{number}.jsonl"), program, SESSION)
    command = (TRIPOD, "import", recorded, "--keep", "--as", "alex", "-C", project)
    subprocess.run(command, check=True, capture_output=True)
    Path(project, ".nbs/policy.yaml").write_text(POLICY, encoding="utf-8")
    page = os.path.join(folder, "report.html")
    report = partial(_seconds, (TRIPOD, "report", project, "-o", page))
    verify = partial(_seconds, (TRIPOD, "verify", project, "-q"))
    report()
    verify()
    pairs = in_turn(report, verify, rounds)
    size = f"{MESSAGES:,} messages, {DECISIONS:,} decisions, {SESSIONS} sessions"
    yield cost_row("report", f"`tripod report` / `tripod verify`, {size}", pairs, 2.0)
    yield time_row("report-time", f"`tripod report`, {size}", [one.ours for one in pairs], 5_000)
    pages = Path(folder).glob("report*.html")
    yield size_row("report-size", f"its largest page, {size}", [max(map(_bytes, pages))], 8)
    painted = [_first_paint(page, folder) for _ in range(rounds)]
    if None not in painted:
        seconds = [one for one in painted if one is not None]
        yield time_row("report-paint", "its first paint in headless chromium", seconds, 1_000)


def _bytes(page: Path) -> int:
    return page.stat().st_size


def _seconds(command: tuple[str, ...]) -> float:
    begin = perf_counter()
    subprocess.run(command, capture_output=True, check=False)  # what it finds is its own affair
    return perf_counter() - begin


def _first_paint(page: str, folder: str) -> float | None:
    """Seconds until something of a page is shown; None where no chromium is installed."""
    chromium = shutil.which("chromium")
    if chromium is None:
        return None
    text = Path(page).read_text(encoding="utf-8")
    loose = re.sub('<meta http-equiv="Content-Security-Policy"[^>]*>', "", text, count=1)
    file = Path(folder, "painted.html")
    file.write_text(loose.replace("</body>", f"{_PAINTED}</body>"), encoding="utf-8")
    words = (
        chromium, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
        f"--user-data-dir={folder}/profile", file.as_uri(),
    )  # fmt: skip
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    found = re.search("<title>painted ([0-9.]+)", done.stdout)
    return None if found is None else float(found[1]) / 1_000
