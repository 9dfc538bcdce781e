"""Examine a team directory, and mend what may be mended."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ledger.errors import PagesDamagedError
from ledger.locating import DATABASE, team_of
from ledger.lock import FileLock
from tripod import adopt, recover
from tripod.doctor.around import around, busy, leftovers
from tripod.doctor.stored import RESTORE, judged, stored
from tripod.doctor.trouble import CLEAR, IGNORE, REBUILD, SYNC, Trouble, together
from tripod.ignoring import ignore
from tripod.opening import opened_at
from tripod.swapping import RENEWING, remove
from tripod.team import Team
from verify.evidence import collect
from verify.outside import Asked


class Examined(NamedTuple):
    """What is wrong with the team directory ``root``; ``problem`` says why nothing can be told."""

    root: str
    troubles: tuple[Trouble, ...]
    problem: str = ""


def examine(path: str) -> Examined:
    """Look at everything and change nothing; nothing is raised for what is wrong.

    Args:
        path: the project, or its team directory.
    """
    root = team_of(path) if os.path.isdir(path) else None
    if root is None:
        return Examined(path, (), f"{path} is no team directory: it holds neither .nbs nor chat")
    database = f"{root}/{DATABASE}"
    if not os.path.lexists(database):
        what = "there is no ledger in this team directory"
        cure = f"if there was one, {RESTORE}; if not, `tripod init` begins one"
        return Examined(root, (Trouble("no-ledger", DATABASE, what, cure, stops=True),))
    with collect(root, asked=Asked(git=False)) as evidence:
        if not evidence.problem and not evidence.rows:
            what = "it holds no entry: whoever began it died, or it was emptied"
            cure = f"if a ledger stood here, {RESTORE}; if not, `tripod init` begins it"
            return Examined(root, (Trouble("empty-ledger", DATABASE, what, cure, stops=True),))
        report = judged(evidence)
        if report.problem or evidence.problem:
            return Examined(root, (), report.problem or evidence.problem)
        found = [*stored(evidence, report), *around(evidence)]
        with busy(root) as holder:
            if holder is None:
                found += leftovers(root, evidence)
            else:
                what = f"{holder} holds the writer's place; every other command waits for it"
                cure = "if it hangs, end it: the place is free at once, and nothing is lost"
                found.append(Trouble("busy", f"{DATABASE}.lock", what, cure, stops=True))
    return Examined(root, tuple(together(found)))


def mend(found: Examined) -> Examined:
    """Do what existing acts do about it, then look again; what is left is what is given.

    Files that lag are written first, and looked at again before anything is rebuilt.

    Raises:
        LedgerError: the disk refuses, or the ledger changed under our hands.
        TripodError: an act refuses; its message says why.
    """
    if found.problem or any(one.stops for one in found.troubles):
        return found
    wanted = {one.mends for one in found.troubles}
    if wanted & {SYNC, CLEAR, IGNORE}:
        with _alone(found.root):
            remove(f"{found.root}/{DATABASE}.{RENEWING}")
        _act(found.root, adopt.sync)
        with opened_at(found.root) as team, _alone(found.root):
            ignore(team)
        found = examine(found.root)
    if REBUILD in {one.mends for one in found.troubles}:
        if found.problem or any(one.stops for one in found.troubles):
            return found
        _act(found.root, recover.rebuild)
        found = examine(found.root)
    return found


def _act(root: str, act: Callable[[Team], object]) -> None:
    """Have an act done; where pages of the database are damaged, on one written anew."""
    try:
        with opened_at(root) as team:
            act(team)
    except PagesDamagedError:
        from tripod.renew import renew_aloud

        renew_aloud(root)
        with opened_at(root) as team:
            act(team)


@contextmanager
def _alone(root: str) -> Iterator[None]:
    """Hold the writer's place for what no act does."""
    lock = FileLock(f"{root}/{DATABASE}.lock")
    try:
        with lock:
            yield
    finally:
        lock.close()
