"""Troubles around the ledger: what was left lying, who is not at it, what nobody answered."""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ledger.ids import format_at, parse_at
from ledger.locating import DATABASE
from ledger.places import SPOOL
from ledger.plain import open_plain
from projections import BUS
from projections.disk import TEMPORARY
from projections.intake.others import CONFIG
from projections.workers import FOLDER as WORKERS
from tripod.agents.spec import is_spawn_id
from tripod.agents.spool import RUNNING, Look, Spool
from tripod.doctor.trouble import CLEAR, IGNORE, SYNC, Trouble
from tripod.files import folders_of
from tripod.ignoring import PATH, lacking
from tripod.swapping import RENEWING
from tripod.team import FUTURE_US
from verify.checkpoints import EVENT
from verify.evidence import Evidence

PATIENCE = 3600  # seconds that a checkpoint event may lie, where ack-timeout says nothing
WAIT_S = 2.0  # how long a busy writer is waited for
_US = 1_000_000
_RECORDS = "the next command records it (what never began is ordered once more)"


def around(evidence: Evidence) -> Iterator[Trouble]:
    """All that the files and tables tell, besides whether they agree."""
    yield from _clock(evidence)
    yield from _claims(evidence)
    yield from _checkpoints(evidence)
    yield from _runs(evidence)
    yield from _folders_of_runs(evidence)
    yield from _ignored(evidence)


def _clock(evidence: Evidence) -> Iterator[Trouble]:
    at = evidence.at(evidence.team.size - 1)
    if at > format_at(evidence.now_us + FUTURE_US):
        what = f"the newest entry is dated {at}, in this host's future"
        cure = (
            "set the clock; until it is there, new entries get that time. To go on with the right "
            "one under another name: `tripod backup FILE`, `tripod restore FILE --as-origin NAME`"
        )
        yield Trouble("clock", "ledger.db", what, cure)


def _claims(evidence: Evidence) -> Iterator[Trouble]:
    rows = evidence.query(
        "SELECT c.name, c.holder, c.until_us FROM claims c JOIN events e ON e.seq = c.event"
        " WHERE e.acked IS NULL AND c.until_us > 0 AND c.until_us <= ? ORDER BY c.event",
        evidence.now_us,
    )
    for name, holder, until in rows:
        what = f"{holder} took it, and the lease ended at {format_at(until)[:19]}Z"
        cure = "`tripod bus claim` gives it to whoever comes; find out what became of them"
        yield Trouble("claim-over", f"{BUS.folder}/{name}", what, cure)


def _checkpoints(evidence: Evidence) -> Iterator[Trouble]:
    """Reviews that were asked for and that nobody answers."""
    patience = _ack_timeout(evidence) or PATIENCE
    rows = evidence.query(
        "SELECT e.seq, e.name FROM events e LEFT JOIN claims c ON c.event = e.seq"
        " WHERE e.acked IS NULL AND e.type = ? AND coalesce(c.until_us, 0) <= ? ORDER BY e.seq",
        EVENT,
        evidence.now_us,
    )
    for seq, name in rows:
        try:
            age = (evidence.now_us - parse_at(evidence.at(seq))) // _US
        except ValueError:
            continue  # not taken in yet
        if age > patience:
            what = f"the review that it asks for is due for {age} s, and nobody is at it"
            cure = "`tripod pythia run` has her answer it; find out why nobody read the queue"
            yield Trouble("checkpoint-unanswered", f"{BUS.folder}/{name}", what, cure)


def _ack_timeout(evidence: Evidence) -> int:
    for (settings,) in evidence.query("SELECT settings FROM inputs WHERE path = ?", CONFIG):
        value = json.loads(settings or "{}").get("ack_timeout")
        return value if type(value) is int else 0
    return 0


def _runs(evidence: Evidence) -> Iterator[Trouble]:
    """Programs that are said to run, and that nobody runs any more."""
    rows = evidence.query(
        "SELECT spawn, role, subject FROM agents WHERE state IN ('requested', 'started')"
        " ORDER BY seq"
    )
    for spawn, role, subject in rows:
        look = _look(f"{evidence.root}/{SPOOL}/{spawn}")
        if look is None or look.state == RUNNING:
            continue
        ended = "has ended, and nobody recorded how" if look.end else "is gone: it was killed"
        what = f"it is said to be at work, and its program {ended}"
        if role == "worker":
            yield Trouble("run-over", f"{WORKERS}/{subject}", what, _RECORDS, SYNC)
        else:
            cure = f"whoever has the {role} do its errand next goes on with it"
            yield Trouble("run-over", f"{role} {subject}", what, cure)


def _folders_of_runs(evidence: Evidence) -> Iterator[Trouble]:
    """Folders of runs that are over, or that never came to be recorded."""
    folder = f"{evidence.root}/{SPOOL}"
    at_work = {
        spawn
        for (spawn,) in evidence.query(
            "SELECT spawn FROM agents WHERE state IN ('requested', 'started')"
        )
    }
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        path = f"{folder}/{name}"
        look = _look(path) if is_spawn_id(name) and not os.path.islink(path) else None
        if look is None:
            what = "no folder of a run that can be read: somebody else put it there"
            yield Trouble("spool", f"{SPOOL}/{name}", what, "it is left alone: move it away")
        elif name not in at_work and look.state != RUNNING:
            what = "the folder of a run that is over, or was never recorded"
            yield Trouble("spool", f"{SPOOL}/{name}", what, "the next command removes it", SYNC)


def _look(path: str) -> Look | None:
    """What became of a run; None where its folder cannot be read as one."""
    try:
        return Spool(path).look()
    except OSError:
        return None


def _ignored(evidence: Evidence) -> Iterator[Trouble]:
    assert evidence.disk is not None
    missing = lacking(evidence.disk)
    if missing is None:
        what = "it cannot be read as a file, so git may take the database in"
        yield Trouble("gitignore", PATH, what, "put a regular file there")
    elif missing:
        what = f"it lacks {', '.join(missing)}: git may take in what is no part of the record"
        yield Trouble("gitignore", PATH, what, "the lines are added", IGNORE)


# On the disk ------------------------------------------------------------------------------------


def leftovers(root: str, evidence: Evidence) -> Iterator[Trouble]:
    """Unfinished files of writers that died; asked for while nobody writes."""
    assert evidence.disk is not None
    for folder in folders_of(evidence.disk):
        try:
            names = sorted(os.listdir(evidence.disk.full(folder) if folder else root))
        except OSError:
            continue
        for name in names:
            path = f"{folder}/{name}" if folder else name
            if name.startswith(TEMPORARY):
                what = "left by a command of ours that died before it was done"
                yield Trouble("leftover", path, what, "it is removed", CLEAR)
            elif re.fullmatch(rf"{re.escape(DATABASE)}\.{RENEWING}", path):
                what = "left by a `tripod rebuild` that was stopped"
                yield Trouble("leftover", path, what, "it is removed", CLEAR)
            elif re.fullmatch(rf"{re.escape(DATABASE)}[.-]restoring", path):
                what = "left by a restore that was stopped, or is at work"
                yield Trouble("leftover", path, what, "the next restore removes it")
            elif folder and (name.endswith(".tmp") or name.startswith(".tmp-")):
                what = "left by another program that died, or is at work"
                cure = "no file of ours: remove it once you know that nobody writes it"
                yield Trouble("stray", path, what, cure)


@contextmanager
def busy(root: str) -> Iterator[str | None]:
    """Wait a moment until nobody writes, and keep writers away; who it is where somebody does.

    The lock is a lock of the system and cannot be left behind: if it is held, a process lives that
    holds it.
    """
    try:
        fd = open_plain(f"{root}/{DATABASE}.lock")
    except OSError:
        yield None  # nobody ever wrote, or not here
        return
    try:
        until = time.monotonic() + WAIT_S
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() < until:
                    time.sleep(0.02)
                    continue
                yield _holder(os.fstat(fd).st_ino)
            else:
                yield None
            return
    finally:
        os.close(fd)


def _holder(inode: int) -> str:
    """Which process holds a lock, as far as the system tells."""
    try:
        with open("/proc/locks", encoding="ascii", errors="replace") as file:
            lines = [line.split() for line in file]
    except OSError:
        lines = []
    for words in lines:
        if "FLOCK" in words and len(words) > 5 and words[5].endswith(f":{inode}"):
            return f"process {words[4]}"
    return "another process"
