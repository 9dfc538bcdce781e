"""``python -m torture``: have accidents happen to teams for some minutes, and count what was lost.

Each family takes each team in turn. A line a family says how many cases there were and how many
went wrong; whatever went wrong is printed with the words that try just that case again.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from multiprocessing import Pool
from pathlib import Path
from typing import NamedTuple, TypeAlias

from torture.children import adopt_orphans, import_all
from torture.clock import APART, CLOCK, clocks
from torture.corruption import flips
from torture.crowd import CROWD, crowds
from torture.faults import deaths, refusals
from torture.input import GROUPS, misreadings
from torture.lives import LIVES, lives
from torture.power import cuts
from torture.scenes import SCENES
from torture.teams import Case, Result, Scene
from torture.tracing import tracer_problem
from torture.vanishing import vanishings

Cases: TypeAlias = Callable[[Scene, Path, int], Iterator[Case]]


class Family(NamedTuple):
    """A kind of accident: its cases, the teams to which it comes, and its part of the time."""

    cases: Cases
    scenes: Sequence[Scene]
    weight: int = 1


FILES = [scene for scene in SCENES if not scene.git and scene.settle is None]
"""Teams into whose files a family may look: what git does with its own is git's."""
OLD = [scene for scene in SCENES if not scene.fresh]
"""Teams that there are before the first act."""
FAMILIES = {
    "crash": Family(deaths, SCENES, 4),
    "power": Family(cuts, FILES),
    "disk": Family(refusals, SCENES),
    "vanish": Family(vanishings, [scene for scene in OLD if scene.settle is None]),
    "corruption": Family(flips, [scene for scene in OLD if scene in FILES]),
    "concurrency": Family(crowds, [CROWD], 6),
    "clock": Family(clocks, [CLOCK, APART], 2),
    "input": Family(misreadings, GROUPS),
    "model": Family(lives, LIVES),
}
WRONG = "went wrong"
TOLD = 5
"""So many of the cases of one family and team that went wrong are printed; all are counted."""


class Outcome(NamedTuple):
    """What came of the cases of one family and team, how often; what went wrong, in words.

    ``told`` are lines that a reader wants to see in any case.
    """

    family: str
    scene: str
    cases: Counter[str]
    wrong: list[str]
    told: list[str]
    seconds: float


def main() -> None:
    """Torture for as long as was asked; exit 1 where anything went wrong."""
    options = _options()
    problem = None if {"input", "model"} >= set(options.only) else tracer_problem()
    if problem is not None:
        raise SystemExit(f"torture: {problem}: install strace, and run this where it may trace")
    os.umask(0o022)
    import_all()
    units = [
        (family, scene)
        for family in options.only
        for scene in FAMILIES[family].scenes
        if scene.name in (options.team or [scene.name])
    ]
    if options.case is not None:
        (family, scene), *more = units
        if more:
            raise SystemExit("torture: --case needs one --only and one --team")
        print(_one_case(family, scene, options.seed, options.case))
        return
    print(
        f"seed {options.seed}: {len(units)} pairs of family and team, {options.minutes:g} minutes"
    )
    parts = sum(FAMILIES[family].weight for family, _ in units)
    share = 60 * options.minutes * options.jobs / parts
    counts = {family: Counter[str]() for family in options.only}
    work = [
        (family, scene, options.seed, share * FAMILIES[family].weight) for family, scene in units
    ]
    work.sort(key=lambda one: -one[-1])  # the longest first, so that none is left alone at the end
    with Pool(options.jobs, maxtasksperchild=1) as pool:
        for done in pool.imap_unordered(_torture, work):
            counts[done.family] += done.cases
            count = done.cases.total()
            print(f"  {done.family} {done.scene}: {count} in {done.seconds:.0f} s", flush=True)
            for text in (*done.told, *done.wrong[:TOLD]):
                print(f"    {text}", flush=True)
    for family, came in counts.items():
        told = ", ".join(f"{count:,} {what}" for what, count in sorted(came.items()))
        print(f"{family}: {came.total():,} cases: {told}")
    sys.exit(any(came[WRONG] for came in counts.values()))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m torture", description=__doc__)
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--minutes", type=float, default=10.0, metavar="N", help="default: 10")
    length.add_argument("--hours", type=float, metavar="N", help="longer")
    parser.add_argument(
        "--only", action="append", choices=FAMILIES, help="a family; once for each (default: all)"
    )
    names = {scene.name for family in FAMILIES.values() for scene in family.scenes}
    parser.add_argument(
        "--team", action="append", choices=sorted(names),
        help="a team; once for each (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--seed", type=int, default=secrets.randbelow(10**6), help="default: by lot"
    )
    parser.add_argument("--case", type=int, metavar="N", help="try this case alone")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="default: a processor"
    )
    options = parser.parse_args()
    options.only = options.only or list(FAMILIES)
    if options.hours is not None:
        options.minutes = 60 * options.hours
    return options


def _torture(work: tuple[str, Scene, int, float]) -> Outcome:
    """Try the cases of one family on one team until the time is over."""
    family, scene, seed, seconds = work
    adopt_orphans()
    begun = time.monotonic()
    came = Counter[str]()
    wrong, told = [], []
    with tempfile.TemporaryDirectory(prefix="torture-") as folder:
        cases = enumerate(_begun(family, scene, Path(folder, "work"), seed))
        for number, case in cases:
            result = _run(case)
            came[WRONG if result.wrong else result.what] += 1
            told += result.told.splitlines()
            if result.wrong:
                again = f"--only {family} --team {scene.name} --seed {seed} --case {number}"
                wrong.append(f"{case.what}: {result.what}\n      again: python -m torture {again}")
            if time.monotonic() - begun > seconds:
                break
    return Outcome(family, scene.name, came, wrong, told, time.monotonic() - begun)


def _begun(family: str, scene: Scene, folder: Path, seed: int) -> Iterator[Case]:
    """The cases of a family; where a team cannot even be made, that is a case that went wrong."""
    try:
        yield from FAMILIES[family].cases(scene, folder, seed)
    except (Exception, SystemExit):  # noqa: BLE001 - a pool waits for ever for who left
        broke = Result(f"the torture broke: {traceback.format_exc()}", wrong=True)
        yield Case("prepared", lambda: broke)


def _run(case: Case) -> Result:
    """What came of a case; what breaks in the torture itself went wrong as well."""
    try:
        return case.run()
    except (Exception, SystemExit):  # noqa: BLE001 - the others go on
        return Result(f"the torture broke: {traceback.format_exc()}", wrong=True)


def _one_case(family: str, scene: Scene, seed: int, number: int) -> str:
    adopt_orphans()
    with tempfile.TemporaryDirectory(prefix="torture-") as folder:
        cases = FAMILIES[family].cases(scene, Path(folder, "work"), seed)
        case = next(islice(cases, number, None))
        print(case.what)
        result = _run(case)
        return f"{result.told}\n{result.what}".strip()


if __name__ == "__main__":
    main()
