"""Folders of a team that somebody removes or renames, before an act or in the middle of it.

An act is stopped at a call that it makes, the folder goes, and the act goes on. What is only a
projection comes back by ``rebuild``, and nothing answered is lost. The ledger's own folder does not
come back; where it was renamed, it is put back, and all that was answered is in it.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from torture.children import Child, Ended, within
from torture.faults import Stage
from torture.teams import SECONDS, Case, Result, Scene, act, begin, recovered, remove_team
from torture.tracing import Fault, attached
from tripod.ledger import DATABASE
from tripod.ledger.locator import database_of

__all__ = ["vanishings"]

PLACES = (".nbs", ".nbs/events", ".nbs/chat", ".nbs/scribe", ".git/tripod")
AWAY = "gone-away"
"""The name of a folder that somebody renamed."""


def vanishings(scene: Scene, folder: Path, seed: int) -> Iterator[Case]:
    """Each folder gone before the act, in both ways; then in the middle of it, at calls by lot."""
    stage = Stage(scene, folder)
    places = [place for place in PLACES if (stage.team / place).is_dir()]
    chance = random.Random(seed)
    points = stage.points()
    for place in places:
        for stays in (False, True):
            yield _case(stage, place, stays, None)
    while True:
        yield _case(stage, chance.choice(places), chance.random() < 0.5, chance.choice(points))


def _case(stage: Stage, place: str, stays: bool, point: tuple[str, int] | None) -> Case:  # noqa: FBT001
    how = "renamed" if stays else "removed"
    when = "before it began" if point is None else f"at {point[0]} {point[1]}"
    return Case(f"{place} {how} {when}", partial(_vanish, stage, place, stays, point))


def _vanish(stage: Stage, place: str, stays: bool, point: tuple[str, int] | None) -> Result:  # noqa: FBT001
    team = stage.copy()
    holds_ledger = (team / place) in Path(database_of(str(team / ".nbs"))).parents
    try:
        if point is None:
            _take_away(team / place, team / AWAY, stays=stays)
            ended = begin(stage.command, team, main=stage.main).end(SECONDS)
        else:
            child = begin(stage.command, team, main=stage.main, stopped=True)
            ended = stopped_at(child, point, team / place, team / AWAY, stays=stays)
        wrong = unclear(ended)
        if wrong:
            return Result(wrong, wrong=True)
        back = _put_back(team, place, holds_ledger=holds_ledger)
        if back is not None:
            return back
        warned = len(ended.err.splitlines()) > stage.said[1]
        answered = ended.code == 0 and not warned
        act(("rebuild",), team)
        return recovered(team, stage.holding(answered=answered))
    except TimeoutError:
        return Result("it hangs", wrong=True)
    finally:
        remove_team(team)


def stopped_at(
    child: Child, point: tuple[str, int], place: Path, away: Path, *, stays: bool
) -> Ended:
    """Stop an act behind a call, take the folder away, and let the act go on."""
    # Not the programs that it starts: one that is stopped as well would never go on.
    fault = Fault(*point, "signal=STOP")
    with attached(child, faults=[fault], follows=False), within(SECONDS):
        child.signal(signal.SIGCONT)
        state = os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        assert state is not None
        if state.si_code == os.CLD_STOPPED:
            _take_away(place, away, stays=stays)
            child.signal(signal.SIGCONT)
        return child.end(SECONDS)


def _take_away(place: Path, away: Path, *, stays: bool) -> None:
    if stays:
        place.rename(away)
    else:
        shutil.rmtree(place)


def unclear(ended: Ended) -> str:
    """What is wrong with how a command ended whose team was damaged."""
    err = ended.err.decode("utf-8", "replace")
    if "Traceback" in err:
        return f"traceback: {err}"
    if ended.code < 0:
        return f"died of signal {-ended.code}"
    if ended.code and not err.strip():
        return f"it ended with {ended.code} and said nothing"
    return ""


def _put_back(team: Path, place: str, *, holds_ledger: bool) -> Result | None:
    """Put a renamed folder back where the ledger is in it; what came of the case where it ends."""
    if not holds_ledger:
        return None
    if not (team / AWAY).exists():
        ended = begin(("bus", "check"), team).end(SECONDS)
        wrong = unclear(ended)
        if wrong or ended.code == 0:
            return Result(f"without its ledger: {wrong or ended.out.decode()!r}", wrong=True)
        return Result("refused in words")
    if any((team / place).glob(f"**/{DATABASE}")):
        return Result("a second ledger was begun beside the one that was renamed", wrong=True)
    shutil.rmtree(team / place, ignore_errors=True)
    (team / AWAY).rename(team / place)
    return None
