"""One long measurement in a process of its own: ``python -m benchmarks.child ACT TEAM``.

It prints one JSON object: the seconds that the act took, by the clock and of processor time (the
start of Python and what it imports before are left out), and the most memory that the process ever
held, in bytes.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Callable
from hashlib import sha256
from time import perf_counter

from tripod.ledger import DATABASE
from tripod.ledger.sqlite.reader import read_only
from tripod.ledger.tlog.seal import Seal
from tripod.recovery import rebuild as recover
from tripod.team.team import Team
from tripod.verify.anchors.heads import KnownHead
from tripod.verify.checks import LEDGER_CHECKS
from tripod.verify.evidence import collect
from tripod.verify.run import run

__all__ = ["ACTS", "peak"]


def read_and_hash(root: str) -> None:
    """The floor of all verifying: every row read once, its header and its body hashed once."""
    db = read_only(f"{root}/{DATABASE}")
    rows = db.execute("SELECT seq, id, kind, stream, header, salt, body FROM entries ORDER BY seq")
    for _, _, _, _, header, _, body in rows:
        sha256(header).digest()
        sha256(body).digest()
    db.close()


def judge_ledger(root: str) -> None:
    """The checks of the ledger alone."""
    with collect(root) as evidence:
        _clean(run(evidence, select=LEDGER_NAMES).exit_code)


def judge_all(root: str) -> None:
    """Every check, files included."""
    with collect(root) as evidence:
        _clean(run(evidence).exit_code)


def judge_new(root: str) -> None:
    """Only the newest entries, from a pin that remembers those before."""
    with collect(root) as evidence:
        size = evidence.rows - NEW
        pinned = evidence.database.heads.root_at(size)
        assert pinned is not None
        seal = Seal(evidence.database.heads.line(0), size, pinned)
        evidence.outside.pin = seal
        evidence.outside.known = (KnownHead("pin", "a pin", seal),)
        report = run(evidence)
    assert "were looked at" in report.notes[0]
    _clean(report.exit_code)


def rebuild(root: str) -> None:
    """Fold all tables anew and make every file what the ledger says."""
    with Team(root) as team:
        recover.rebuild(team)


NEW = 1_000  # entries behind the pin
LEDGER_NAMES = tuple(check.NAME for check in LEDGER_CHECKS)
ACTS: dict[str, Callable[[str], object]] = {
    "floor": read_and_hash,
    "ledger": judge_ledger,
    "all": judge_all,
    "new": judge_new,
    "rebuild": rebuild,
}


def _clean(exit_code: int) -> None:
    """A figure for a ledger with findings would be one of another workload (3: cannot tell)."""
    if exit_code not in (0, 3):
        message = f"verify ended with {exit_code} on a made-up team that has nothing wrong"
        raise SystemExit(message)


def peak() -> int:
    """The most memory this process held at one time, in bytes.

    Linux counts what the *starting* process held into ``ru_maxrss``; the high-water mark of the
    process itself stands in its status.
    """
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            mark = next(line for line in status if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return int(mark.split()[1]) * 1024


def _worked() -> float:
    """Seconds of processor time, of all threads, and of children that have ended."""
    return sum(os.times()[:4])


def main() -> None:
    """Do the act and report."""
    act, root = sys.argv[1:]
    if act not in ACTS:
        from benchmarks.exports import EXPORTS  # their imports are no part of any other act
        from benchmarks.sessions import SESSIONS

        ACTS.update(EXPORTS | SESSIONS)
    begin, worked = perf_counter(), _worked()
    ACTS[act](root)
    cost = {"seconds": perf_counter() - begin, "processor": _worked() - worked}
    print(json.dumps(cost | {"peak": peak()}))


if __name__ == "__main__":
    main()
