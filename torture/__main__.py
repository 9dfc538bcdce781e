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
from collections.abc import Callable, Iterator
from itertools import chain, islice
from multiprocessing import Pool
from pathlib import Path
from typing import NamedTuple

from torture.corruption import flips
from torture.faults import deaths, refusals
from torture.input import GROUPS, misreadings
from torture.lives import LIVES, lives
from torture.power import cuts
from torture.teams import SCENES, Case, Result, Scene
from torture.tracing import tracer_problem

Family = Callable[[Scene, Path, int], Iterator[Case]]
FAMILIES: dict[str, Family] = {
    "crash": deaths, "power": cuts, "disk": refusals, "corruption": flips, "input": misreadings,
    "model": lives,
}  # fmt: skip
OWN = {"input": GROUPS, "model": LIVES}
"""Families that trace nothing, and take something else than teams."""
OF_FILES = ("power", "corruption")
"""Families that look into the files of a team: what git does with its own is git's."""
WRONG = "went wrong"
TOLD = 5
"""So many of the cases of one family and team that went wrong are printed; all are counted."""


class Outcome(NamedTuple):
    """What came of the cases of one family and team, how often; what went wrong in words."""

    family: str
    scene: str
    cases: Counter[str]
    wrong: list[str]
    seconds: float


def main() -> None:
    """Torture for as long as was asked; exit 1 where anything went wrong."""
    options = _options()
    problem = None if OWN.keys() >= set(options.only) else tracer_problem()
    if problem is not None:
        raise SystemExit(f"torture: {problem}: install strace, and run this where it may trace")
    os.umask(0o022)
    units = [
        (family, scene)
        for family in options.only
        for scene in OWN.get(family, SCENES)
        if scene.name in (options.team or [scene.name])
        if family not in OF_FILES or not scene.git
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
    share = 60 * options.minutes * options.jobs / len(units)
    counts = {family: Counter[str]() for family in options.only}
    work = [(family, scene, options.seed, share) for family, scene in units]
    with Pool(options.jobs, maxtasksperchild=1) as pool:
        for done in pool.imap_unordered(_torture, work):
            counts[done.family] += done.cases
            count = done.cases.total()
            print(f"  {done.family} {done.scene}: {count} in {done.seconds:.0f} s", flush=True)
            for text in done.wrong[:TOLD]:
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
    parser.add_argument(
        "--team", action="append",
        choices=[scene.name for scene in (*SCENES, *chain.from_iterable(OWN.values()))],
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
    begun = time.monotonic()
    came = Counter[str]()
    wrong = []
    with tempfile.TemporaryDirectory(prefix="torture-") as folder:
        for number, case in enumerate(FAMILIES[family](scene, Path(folder, "work"), seed)):
            result = _run(case)
            came[WRONG if result.wrong else result.what] += 1
            if result.wrong:
                again = f"--only {family} --team {scene.name} --seed {seed} --case {number}"
                wrong.append(f"{case.what}: {result.what}\n      again: python -m torture {again}")
            if time.monotonic() - begun > seconds:
                break
    return Outcome(family, scene.name, came, wrong, time.monotonic() - begun)


def _run(case: Case) -> Result:
    """What came of a case; what breaks in the torture itself went wrong as well."""
    try:
        return case.run()
    except Exception:  # noqa: BLE001 - the others go on
        return Result(f"the torture broke: {traceback.format_exc()}", wrong=True)


def _one_case(family: str, scene: Scene, seed: int, number: int) -> str:
    with tempfile.TemporaryDirectory(prefix="torture-") as folder:
        cases = FAMILIES[family](scene, Path(folder, "work"), seed)
        case = next(islice(cases, number, None))
        print(case.what)
        return _run(case).what


if __name__ == "__main__":
    main()
