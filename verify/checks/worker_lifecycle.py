"""Each worker that we ran went its legal way, told of each step, and left its log as it was.

**What it proves.** The states of each worker follow each other as they may (pending, running,
completed, failed or died; escalated; dismissed for good; continued); after each step stands the
event that the team was to hear of it, once; a worker is at work if and only if its run is not over;
the logs that it left are there, and hold what they held when its program ended; where it was
continued, each log begins with what it held at the end before. (Of a log that is too large to be
kept, and of one whose bytes were erased, only the length is compared.) Not that what a worker says
is true; of workers that other tools ran there are files alone, which prove nothing.

**Why it matters.** A state that anybody can write, an end that nobody was told of and a log that
can be tidied up afterwards are how a failed worker comes to be called done.

**What a finding looks like.** ``parser-a3f1: completed after dismissed``, ``parser-a3f1: no event
task-failed tells that it failed``, ``workers/parser-a3f1.log: 120 bytes were added after its
program ended``, ``workers/parser-a3f1.log: does not begin with the 120 bytes that entry 31 says``,
``… was gone when its program ended``. As a warning: a task file that claims another state than the
ledger has.

**What to do.** Entries that were made by other means are named by their number; ``tripod rebuild
--evidence`` gives a kept log back, and ``tripod worker continue`` refuses until it is what its
program left. What a log held at each end stands in its ``evidence.kept`` entries. A worker that
cannot go on says so by ``tripod worker escalate``, not by what it writes into its file.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from itertools import chain

from tripod.projections.team.tables import FILES
from tripod.projections.workers.format import parse_worker
from tripod.projections.workers.tables import FOLDER
from tripod.verify.check import (
    TABLES,
    Evidence,
    Finding,
    Outcome,
    fault_of_file,
    not_applicable,
    outcome,
)

NAME = "worker-lifecycle"
REQUIRED = False
NEEDS = (TABLES,)
HELP = "`tripod show` has the entries; the actor of an entry made by other means is a claim"
LOG_HELP = "`tripod rebuild --evidence` gives a kept log back; what was added is for a person"
PAST_HELP = "`tripod show` has what was kept at each end: find out who changed the log between"
CLAIM_HELP = "the ledger's state counts; a worker that is stuck runs `tripod worker escalate`"

_OVER = ("completed", "failed", "died")
_BEFORE = {
    "worker.spawned": ("",),
    "worker.continued": (*_OVER, "escalated"),
    "worker.running": ("pending",),
    "worker.escalated": ("running",),
    "worker.dismissed": ("pending", "running", "escalated", *_OVER),
}
_BEFORE_END = {
    "completed": ("running",),
    "failed": ("running", "pending"),
    "died": ("running", "pending"),
    "escalated": ("escalated",),
    "dismissed": ("dismissed",),
}
_EVENTS = {
    "running": "worker-spawned",
    "completed": "task-complete",
    "failed": "task-failed",
    "died": "worker-died",
    "escalated": "task-blocked",
    "dismissed": "worker-dismissed",
}


def worker_step_problem(before: str, kind: str, state: str) -> str | None:
    """Whether a worker may go from one state to another by such an entry; '' stands for none.

    >>> worker_step_problem("pending", "worker.running", "running")
    >>> worker_step_problem("dismissed", "worker.ended", "completed")
    'completed after dismissed'
    """
    legal = _BEFORE_END[state] if kind == "worker.ended" else _BEFORE[kind]
    if before in legal:
        return None
    return f"{state} after {before or 'nothing'}"


def judge(evidence: Evidence) -> Outcome:
    """Judge the rule that this module's docstring states."""
    workers = evidence.query("SELECT name, state, open, changed, noted FROM workers ORDER BY name")
    steps = evidence.query("SELECT count(*) FROM worker_steps")[0][0]
    if not steps:
        return not_applicable(NAME, "no worker was run by us")
    claims = []
    for name, state, _, changed, noted in workers:
        if noted is None or noted <= changed:
            continue
        path = f"{FOLDER}/{name}.md"
        claimed = parse_worker(evidence.rendered(path)).state
        if claimed != state:  # an earlier state than that, which it did not write, is not rendered
            message = f"claims the state {claimed!r}, and the ledger has {state}"
            claims.append(Finding(NAME, message, path, (), CLAIM_HELP, "warning", seq=noted))
    found = chain(_steps(evidence), _runs(evidence), worker_logs_altered(evidence), claims)
    at_work = sum(row[2] for row in workers)
    seen = {"workers": len(workers), "steps": steps, "at work": at_work}
    seen["logs of"] = len(workers) - at_work
    return outcome(NAME, found, seen)


def _steps(evidence: Evidence) -> Iterator[Finding]:
    """Steps that a worker may not take, and those of which no event tells."""
    now: dict[str, str] = {}
    rows = evidence.query("SELECT seq, name, kind, state, event FROM worker_steps ORDER BY seq")
    for seq, name, kind, state, event in rows:
        before = now.get(name, "")
        problem = worker_step_problem(before, kind, state)
        now[name] = state
        if problem is not None:
            yield _finding(f"{name}: {problem}", f"entry {seq}", seq)
        wanted = None if state in ("pending", before) else _EVENTS[state]
        told = evidence.body(seq + 1) if event is not None else {}
        if wanted is not None and (told.get("name"), told.get("type")) != (event, wanted):
            message = f"{name}: no event {wanted} tells that it is {state}"
            yield _finding(message, f"entry {seq}", seq)


def _runs(evidence: Evidence) -> Iterator[Finding]:
    """Workers whose run is over while they are at work, or goes on while they are not."""
    rows = evidence.query(
        "SELECT w.name, w.state, w.open, w.changed, max(a.attempt), a.state FROM workers w"
        " LEFT JOIN agents a ON a.role = 'worker' AND a.subject = w.name GROUP BY w.name"
    )
    for name, state, is_open, changed, _, run in rows:
        goes_on = run in ("requested", "started")
        lost = run == "abandoned" and state == "pending"  # the next command orders it once more
        if run is None:
            message = f"{name}: no run of its program is recorded"
        elif bool(is_open) != goes_on and not lost:
            message = f"{name} is {state}, and its run is {run}"
        else:
            continue
        yield _finding(message, f"entry {changed}", changed)


def worker_logs_altered(evidence: Evidence) -> Iterator[Finding]:
    """Logs of workers that hold something else than their programs wrote, now or at an end."""
    for name, is_open in evidence.query("SELECT name, open FROM workers ORDER BY name"):
        yield from _past(evidence, name)
        if not is_open:
            yield from _logs(evidence, name)


def _past(evidence: Evidence, name: str) -> Iterator[Finding]:
    """Logs that did not only grow from one end of the program to the next; the ledger alone."""
    sql = "SELECT seq FROM worker_steps WHERE name = ? AND kind = 'worker.ended' ORDER BY seq"
    before: dict[str, tuple[int, int, str]] = {}
    last = -1
    for (seq,) in evidence.query(sql, name):
        now = {log["path"]: log for log in evidence.body(seq).get("logs", ())}
        begun = (
            "SELECT 1 FROM worker_steps WHERE name = ? AND kind = 'worker.running'"
            " AND seq > ? AND seq < ?"
        )
        both = (f"{FOLDER}/{name}.log", f"{FOLDER}/{name}.err.log")
        for path in both if evidence.query(begun, name, last, seq) else ():
            if path not in now and (path not in before or before[path][1] == 0):
                yield _finding("was gone when its program ended", path, seq, PAST_HELP)
        last = seq
        for path, (first, size, digest) in before.items():
            log = now.get(path, {"bytes": 0, "digest": ""})
            if log["digest"] == digest or _erased(evidence, path, first, seq):
                continue
            data = _kept(evidence, path, seq, log["digest"])
            if log["bytes"] < size:
                message = f"held {size} bytes at entry {first}, and {log['bytes']} at entry {seq}"
                yield _finding(message, path, seq, PAST_HELP)
            elif data is not None and sha256(data[:size]).hexdigest() != digest:
                message = f"does not begin with the {size} bytes that entry {first} says"
                yield _finding(message, path, seq, PAST_HELP)
        before |= {path: (seq, log["bytes"], log["digest"]) for path, log in now.items()}


def _erased(evidence: Evidence, path: str, after: int, before: int) -> bool:
    """Whether bytes of a log were erased between two entries: its file shows that since then."""
    sql = (
        "SELECT 1 FROM redactions WHERE place = ? AND kind = 'evidence.kept'"
        " AND entry > ? AND entry < ?"
    )
    return bool(evidence.query(sql, path, after, before))


def _kept(evidence: Evidence, path: str, seq: int, digest: str) -> bytes | None:
    """The bytes of a log as they were kept for an end; None where they were not, or erased."""
    if evidence.ledger is None:
        return None
    kept = evidence.ledger.last_seq(kind="evidence.kept", stream=f"files/{path}", stop=seq)
    try:
        body = {} if kept is None else evidence.source.body(kept)
        return evidence.source.content(body["content"]) if body["sha256"] == digest else None
    except evidence.unreadable:
        return None  # the ledger's checks name that


def _logs(evidence: Evidence, name: str) -> Iterator[Finding]:
    """Logs that are not what they were when the program last ended.

    ``drift`` names a kept log that is gone or was rewritten; here are those that grew, and those
    that were too large to be kept.
    """
    sql = "SELECT max(seq) FROM worker_steps WHERE name = ? AND kind = 'worker.ended'"
    seq = evidence.query(sql, name)[0][0]
    if seq is None or evidence.root is None:
        return
    drifted = {conflict.path for conflict in evidence.found.conflicts}
    kept = set(FILES.evidence(evidence.source))
    for log in evidence.body(seq).get("logs", ()):
        path, size = log["path"], log["bytes"]
        if path in drifted or _erased(evidence, path, seq, 2**62):
            continue
        try:
            found = evidence.measured(path, size)
        except OSError as error:
            message = f"cannot be read ({error.strerror}), so what it holds cannot be told"
            yield _finding(message, path, seq, LOG_HELP, fault=None)
            continue
        if found is None:
            if path not in kept:
                yield _finding("is gone, and only its digest was kept", path, seq, LOG_HELP)
        elif found[0] != log["digest"]:
            message, fault = "does not hold what its program wrote", fault_of_file(evidence, path)
            yield _finding(message, path, seq, LOG_HELP, fault=fault)
        elif found[1] > size:
            message = f"{found[1] - size} bytes were added after its program ended"
            fault = fault_of_file(evidence, path)
            yield _finding(message, path, seq, LOG_HELP, fault=fault)


def _finding(
    message: str, where: str, seq: int, help_: str = HELP, *, fault: str | None = ""
) -> Finding:
    return Finding(NAME, message, where, (), help_, seq=seq, fault=fault)
