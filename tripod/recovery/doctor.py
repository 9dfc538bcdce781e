"""Diagnoses a team directory: each trouble, its place, its remedy; and applies the safe remedies.

Troubles are around the ledger (leftover files, dead processes, unanswered events) or in it and its
projections, which are judged as ``tripod verify`` does.

``examine`` only reads, and waits no longer than a moment. ``mend`` uses the acts of ordinary
commands (``sync``, ``rebuild``), under the writer's lock; it never touches evidence: logs of
workers, transcripts, entries.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from tripod.agents.spec import is_spec_spawn_id
from tripod.agents.spool import RUNNING, Look, Spool
from tripod.errors import PagesDamagedError
from tripod.ledger import DATABASE, HOOKS, SPOOL, WORKERS, parse_entry_time
from tripod.ledger.files import hold_file_lock, writers_kept_out
from tripod.ledger.ids import format_at
from tripod.ledger.locator import closed_place_problem, database_of, no_team_problem, team_of
from tripod.projections import (
    BLOCKED,
    BUS,
    FILES,
    LOG,
    OLDER_STATE,
    TEMPORARY,
    UNMERGED,
    UNMERGED_CURE,
    layout,
)
from tripod.recovery import rebuild as recover
from tripod.team import adoption
from tripod.team.access import access_team_at, has_open_runs
from tripod.team.files import PATH, ignore_files, is_ignored
from tripod.team.team import FUTURE_US, Team
from tripod.verify.acceptance import acceptances_in_force, read_acceptances
from tripod.verify.check import Report
from tripod.verify.checks import (
    CHECKS,
    LEDGER_CHECKS,
    drift,
    peers_agree,
    pins_extend,
    trailers_agree,
    worker_lifecycle,
)
from tripod.verify.checks.drift import IN_THE_WAY
from tripod.verify.evidence import (
    OpenEvidence,
    collect,
    evidence_changed,
    judge_until_still,
)
from tripod.verify.finding import FindingNames
from tripod.verify.isolation.runs import EVENT
from tripod.verify.run import judge_refs, run
from tripod.workers.worker import record_ends

SYNC, REBUILD, CLEAR, IGNORE = "sync", "rebuild", "clear", "ignore"
"""What ``--fix`` does: take all in and write what lags, rebuild, remove leftovers, add lines."""

BUSY_S = 2.0  # how long a busy writer is waited for
FEW = 5  # of one sort in one folder are told one by one
NAMED = 3


class Trouble(NamedTuple):
    """``name`` says of what sort it is, for programs; ``cure`` what is to be done, in words.

    ``mends`` is what ``--fix`` does about it; '' where a person must. ``stops``: as long as this
    is so, nothing is mended at all.
    """

    name: str
    where: str
    what: str
    cure: str
    mends: str = ""
    stops: bool = False


def grouped_troubles(found: Iterable[Trouble]) -> Iterator[Trouble]:
    """Put many of one sort in one folder into one, which names the first of them."""
    groups: dict[tuple[str, str, str, bool], list[Trouble]] = {}
    for one in found:
        folder = one.where.rpartition("/")[0]
        groups.setdefault((one.name, folder, one.mends, one.stops), []).append(one)
    for (_, folder, _, _), listed in groups.items():
        if len(listed) <= FEW:
            yield from listed
            continue
        places = {one.where for one in listed}
        if len(places) == 1:
            yield listed[0]._replace(what=f"{listed[0].what}, and {len(listed) - 1} more")
            continue
        first = ", ".join(one.where.rpartition("/")[2] for one in listed[:NAMED])
        what = f"{len(listed)} of them, the first are {first}: {listed[0].what}"
        yield listed[0]._replace(where=folder or ".", what=what)


PATIENCE = 3600  # seconds that a checkpoint event may lie, where ack-timeout says nothing


def _troubles_around(evidence: OpenEvidence) -> Iterator[Trouble]:
    """All that the files and tables tell, besides whether they agree."""
    at = evidence.at(evidence.team.size - 1)
    if at > format_at(evidence.now_us + FUTURE_US):
        what = f"the newest entry is dated {at}, in this host's future"
        cure = (
            "set the clock; until it is there, new entries get that time. To go on with the right "
            "one under another name: `tripod restore --as-copy`"
        )
        yield Trouble("clock", "ledger.db", what, cure)
    rows = evidence.query(
        "SELECT c.name, c.holder, c.until_us FROM claims c JOIN events e ON e.seq = c.event"
        " WHERE e.acked IS NULL AND c.until_us > 0 AND c.until_us <= ? ORDER BY c.event",
        evidence.now_us,
    )
    for name, holder, until in rows:
        what = f"{holder} took it, and the lease ended at {format_at(until)[:19]}Z"
        cure = "`tripod bus claim` gives it to another reader; find out what became of the first"
        yield Trouble("claim-over", f"{BUS.folder}/{name}", what, cure)
    patience = PATIENCE
    for (settings,) in evidence.query(
        "SELECT settings FROM inputs WHERE path = ?", layout.CONFIG.path
    ):
        value = json.loads(settings or "{}").get("ack_timeout")
        patience = (value if type(value) is int else 0) or PATIENCE
    reviews = evidence.query(
        "SELECT e.seq, e.name FROM events e LEFT JOIN claims c ON c.event = e.seq"
        " WHERE e.acked IS NULL AND e.type = ? AND coalesce(c.until_us, 0) <= ? ORDER BY e.seq",
        EVENT,
        evidence.now_us,
    )
    for seq, name in reviews:
        try:
            age = (evidence.now_us - parse_entry_time(evidence.at(seq))) // 1_000_000
        except ValueError:
            continue  # not taken in yet
        if age > patience:
            what = f"the review that it asks for is due for {age} s, and nobody is at it"
            cure = "answer it with `tripod pythia run`; find out why nobody read the queue"
            yield Trouble("checkpoint-unanswered", f"{BUS.folder}/{name}", what, cure)
    yield from _runs(evidence)
    assert evidence.disk is not None
    ignored = is_ignored(evidence.disk)
    if ignored is None:
        what = "it cannot be read as a file, so git may take the team's files in"
        yield Trouble("gitignore", PATH, what, "put a regular file there")
    elif not ignored:
        what = "it lacks the line *: git may take in the team's files, and change them"
        yield Trouble("gitignore", PATH, what, "the line is added", IGNORE)


def _runs(evidence: OpenEvidence) -> Iterator[Trouble]:
    """Programs that the ledger says are at work and that have ended; folders that runs left."""
    folder = f"{evidence.root}/{SPOOL}"
    at_work = evidence.query(
        "SELECT spawn, role, subject FROM agents WHERE state IN ('requested', 'started')"
        " ORDER BY seq"
    )
    for spawn, role, subject in at_work:
        look = _look(f"{folder}/{spawn}")
        if look is None or look.state == RUNNING:
            continue
        ended = "has ended, and nobody recorded how" if look.end else "is gone: it was killed"
        what = f"it is said to be at work, and its program {ended}"
        if role == "worker":
            cure = "the next command records it (what never began is ordered once more)"
            yield Trouble("run-over", f"{WORKERS}/{subject}", what, cure, SYNC)
        else:
            cure = f"the next command that runs this {role} job continues it"
            yield Trouble("run-over", f"{role} {subject}", what, cure)
    spawns = {spawn for spawn, _, _ in at_work}
    names = set(os.listdir(folder)) if os.path.isdir(folder) else set()
    for name in sorted(names - {HOOKS}):
        path = f"{folder}/{name}"
        look = _look(path) if is_spec_spawn_id(name) and not os.path.islink(path) else None
        if look is None:
            what = "no folder of a run that can be read: somebody else put it there"
            yield Trouble("spool", f"{SPOOL}/{name}", what, "it is left alone: move it away")
        elif name not in spawns and look.state != RUNNING:
            what = "the folder of a run that is over, or was never recorded"
            yield Trouble("spool", f"{SPOOL}/{name}", what, "the next command removes it", SYNC)


def _look(path: str) -> Look | None:
    """What became of a run; None where its folder cannot be read as one."""
    try:
        return Spool(path).look()
    except OSError:
        return None


# On the disk ------------------------------------------------------------------------------------


def _leftovers(root: str, evidence: OpenEvidence) -> Iterator[Trouble]:
    """Unfinished files of writers that died; asked for while nobody writes."""
    if os.path.isdir(f"{os.path.dirname(database_of(root))}/joining"):
        what = "files that `tripod init` put aside when it joined the team, and did not end"
        yield Trouble("leftover", "joining", what, "`tripod pull`, then `tripod init` removes it")
    assert evidence.disk is not None
    for folder in evidence.disk.places.folders():
        try:
            names = sorted(os.listdir(evidence.disk.full(folder) if folder else root))
        except OSError:
            continue
        for name in names:
            path = f"{folder}/{name}" if folder else name
            if name.startswith(TEMPORARY):
                what = "left by a command of ours that died before it was done"
                yield Trouble("leftover", path, what, "it is removed", CLEAR)
            elif path == f"{DATABASE}.{recover.RENEWING}":
                what = "left by a `tripod rebuild` that was stopped"
                yield Trouble("leftover", path, what, "it is removed", CLEAR)
            elif path in (f"{DATABASE}.restoring", f"{DATABASE}-restoring"):
                what = "left by a restore that was stopped, or is at work"
                yield Trouble("leftover", path, what, "the next restore removes it")
            elif folder and (name.endswith(".tmp") or name.startswith(".tmp-")):
                what = "left by another program that died, or is at work"
                cure = "no file of ours: remove it once you know that nobody writes it"
                yield Trouble("stray", path, what, cure)


# Stored -----------------------------------------------------------------------------------------


RESTORE = "put it back: `tripod restore` takes this replica's own record, or a backup"
_REMEMBERED = (pins_extend.NAME, peers_agree.NAME, trailers_agree.NAME)
"""Checks that hold the ledger against what is remembered of it elsewhere."""
_NEXT = "the next command that acts makes that good"
_REBUILT = "`tripod rebuild` writes it anew from the ledger, and keeps the bytes that it replaces"
_UNTOUCHED = "evidence is never touched here"
_GIVEN_BACK = f"{_UNTOUCHED}: `tripod rebuild --evidence` gives it back"


def _troubles_in_ledger(evidence: OpenEvidence, report: Report) -> Iterator[Trouble]:
    """All that is wrong with the ledger, its tables and its files."""
    of_ledger = {check.NAME for check in LEDGER_CHECKS}.union(_REMEMBERED)
    for outcome in report.outcomes:
        for finding in outcome.findings if outcome.check in of_ledger else ():
            if finding.where == "schema":
                what = f"{finding.message}: it is what keeps a program from changing entries"
                cure = "`tripod rebuild` puts ours back; find out who wrote to the database"
                yield Trouble("schema", "ledger.db", what, cure, REBUILD)
            elif finding.severity == "failure" and outcome.check in _REMEMBERED:
                what = finding.message.partition("\n")[0]
                yield Trouble(outcome.check, finding.where, what, finding.help, stops=True)
            elif finding.severity == "failure":
                what = f"{outcome.check}: {finding.message}"
                cure = (
                    "rebuild nothing from it: `tripod verify` tells all; put a sound copy back "
                    "(`tripod restore`)"
                )
                yield Trouble("ledger-damaged", finding.where, what, cure, stops=True)
    if evidence.ahead is not None:
        cure = (
            "a backup was restored, or the database swapped: `tripod restore` puts the newer one "
            "back, from this replica's record or a backup; `tripod rebuild` goes on from this one"
        )
        yield Trouble("files-ahead", "counts.json", evidence.ahead, cure, stops=True)
    assert evidence.disk is not None
    for front, full in evidence.disk.places.absent().items():
        what = f"the team keeps its {front} in {full}, and no folder is there"
        cure = "put the folder back, or mount its disk; if it is lost, `tripod rebuild`"
        yield Trouble("place-gone", front, what, cure, stops=True)
    yield from _troubles_in_projections(evidence)
    accepted = acceptances_in_force(evidence, read_acceptances(evidence, CHECKS), report.outcomes)
    names = FindingNames(evidence.entry_name, accepted.counting.get(worker_lifecycle.NAME, {}))
    for found in filter(None, map(names.sort, worker_lifecycle.worker_logs_altered(evidence))):
        yield Trouble("log-altered", found.where, found.message, f"{_UNTOUCHED}: {found.help}")
    # What people write, and was not understood.
    for path, problems in evidence.query("SELECT path, problems FROM inputs ORDER BY path"):
        for problem in json.loads(problems or "[]"):
            where = f"{path}:{problem['line']}" if problem["line"] else path
            what = ": ".join(filter(None, (problem["key"], problem["message"])))
            yield Trouble("config", where, what, "mend the line; until then it counts for nothing")
    for path, odd in evidence.team.found.odd.items():
        yield Trouble("config", path, odd, "put a regular file there")


def _troubles_in_projections(evidence: OpenEvidence) -> Iterator[Trouble]:
    """Tables and files that do not show every entry, or are not what the ledger gives."""
    cure, mends = _REBUILT, REBUILD
    for name, cursor, size in evidence.cursors():
        what = f"the {name} show {cursor} of {size} entries"
        if cursor < size and name == "files":
            cure, mends = _NEXT, SYNC  # that is why files differ
            what = f"{what}: a command died before it wrote them, or is at work"
            yield Trouble("files-behind", "ledger.db", what, _NEXT, SYNC)
        elif cursor < size:
            yield Trouble("tables-behind", "ledger.db", what, "`tripod rebuild`", REBUILD)
    if evidence.unswept():
        what = f"{evidence.unswept()} bodies were erased, and the file may still hold their bytes"
        yield Trouble("unswept", "ledger.db", what, _NEXT, SYNC)
    # Of another version: all else about the tables follows from that.
    if "folds" in dict(evidence.team.tables):
        what = "the tables were folded by another version of tripod"
        yield Trouble("tables-old", "ledger.db", what, _NEXT, SYNC)
    else:
        for table, fault in evidence.table_faults():
            what = f"the table {table}: {fault}"
            fold = "`tripod rebuild` folds it anew; find out who wrote to the database"
            yield Trouble("table", "ledger.db", what, fold, REBUILD)
    kept = set(FILES.evidence(evidence.source))
    told = set()
    for path, what, detail in evidence.team.found.conflicts:
        told.add(path)
        if what == OLDER_STATE:
            yield Trouble("older-state", path, detail, _NEXT, SYNC)
        elif path in kept:
            yield Trouble("evidence", path, f"{what}: {detail}", _GIVEN_BACK)
        elif what == UNMERGED:
            yield Trouble("unmerged", path, detail, UNMERGED_CURE)
        elif what in (BLOCKED, "unreadable"):
            yield Trouble("in-the-way", path, f"{what}: {detail}", IN_THE_WAY)
        elif path.startswith(f"{LOG.folder}/") or what != "missing":
            yield Trouble("drift", path, f"{what}: {detail}", _REBUILT, REBUILD)
        else:
            yield Trouble("drift", path, f"{what}: {detail}", _NEXT, SYNC)
    for path, _, _, problem in evidence.projected():
        if problem is not None and path not in told:
            name = "mode" if problem.startswith("has mode") else "drift"
            yield Trouble(name, path, problem, cure, mends)
    for path in sorted(kept - told):
        if evidence.disk is not None and not evidence.disk.is_file(path):
            yield Trouble("evidence", path, "is missing, and was kept as evidence", _GIVEN_BACK)


def _rules_broken(report: Report) -> Iterator[Trouble]:
    """Rules of the team that its own entries break: nothing that is written anew mends them."""
    told = {check.NAME for check in LEDGER_CHECKS}.union(_REMEMBERED, (drift.NAME,))
    for outcome in report.outcomes:
        for found in outcome.findings if outcome.check not in told else ():
            if found.severity == "failure":
                what = found.message.partition("\n")[0]
                yield Trouble(outcome.check, found.where, what, found.help)
    for name in report.untold:
        yield Trouble("untold", name, "this check cannot tell", "`tripod verify` says why")


class Examined(NamedTuple):
    """What is wrong with the team directory ``root``; ``problem`` says why nothing can be told.

    ``code`` is what ``tripod verify`` exits with, and so the doctor: a lease that ended, or what a
    dead command left, is a trouble that breaks no rule.
    """

    root: str
    troubles: tuple[Trouble, ...]
    problem: str = ""
    code: int = 0


def examine(path: str) -> Examined:
    """Look at everything in a project or team directory; raise nothing for what is wrong.

    Where others work in the team meanwhile, what was read is not of one moment: then what is found
    is looked at anew, as ``tripod verify`` does.
    """
    return judge_until_still(path, lambda left: _examine_once(path, last=not left))


def _examine_once(path: str, *, last: bool) -> Examined | None:
    """What is wrong; None: to be looked at again."""
    root = team_of(path)  # the folder itself may be gone: `git clean`
    by_refs = judge_refs(path)
    if by_refs is not None:
        return _troubles_of_records(path, by_refs)
    closed = closed_place_problem(path)
    if root is None or closed is not None:
        return Examined(path, (), closed or no_team_problem(path), 3)
    with collect(root) as evidence:
        is_empty = not evidence.problem and not evidence.rows
        report = run(evidence)
        if not os.path.lexists(database_of(root)):
            what = "there is no ledger in this team directory"
            cure = f"if there was one, {RESTORE}; if not, `tripod init` begins one"
            none = Trouble("no-ledger", DATABASE, what, cure, stops=True)
            return Examined(root, (none,), code=report.exit_code)
        if is_empty:
            what = "it holds no entry: the command that began it died, or it was emptied"
            cure = f"if a ledger stood here, {RESTORE}; if not, `tripod init` begins it"
            empty = Trouble("empty-ledger", DATABASE, what, cure, stops=True)
            return Examined(root, (empty,), code=report.exit_code)
        if report.problem or evidence.problem:
            return Examined(root, (), report.problem or evidence.problem, 3)
        evidence.fold()
        found = list(_troubles_in_ledger(evidence, report))
        if not any(one.stops or one.mends for one in found):  # many follow from files that differ
            found += _rules_broken(report)
        found += _troubles_around(evidence)
        if (found or report.exit_code) and not last and evidence_changed(evidence):
            return None
        with writers_kept_out(f"{database_of(root)}.lock", BUSY_S) as holder:
            if holder is None:
                found += _leftovers(root, evidence)
            else:
                what = f"{holder} holds the writer's place; every other command waits for it"
                cure = "if it hangs, end it: the place is free at once, and nothing is lost"
                found.append(Trouble("busy", f"{DATABASE}.lock", what, cure, stops=True))
    return Examined(root, tuple(grouped_troubles(found)), code=report.exit_code)


def _troubles_of_records(path: str, report: Report) -> Examined:
    """What is wrong in a clone without a ledger, of which the records on its refs are judged."""
    if report.exit_code == 3:
        said = [report.problem, *(part.problem for part in report.parts)]
        why = next(filter(None, said), "`tripod verify` tells what cannot be judged")
        return Examined(path, (), why, 3)
    troubles = (
        Trouble(outcome.check, found.where, found.message, found.help, stops=True)
        for part in report.parts
        for outcome in part.outcomes
        for found in outcome.findings
        if found.severity == "failure"
    )
    return Examined(path, tuple(troubles), code=report.exit_code)


def mend(found: Examined) -> Examined:
    """Do what existing acts do about it, then look again; what is left is what is given.

    Files that lag are written first, and looked at again before anything is rebuilt. Raises
    LedgerError where the disk refuses, TripodError where an act refuses.
    """
    if found.problem or any(one.stops for one in found.troubles):
        return found
    wanted = {one.mends for one in found.troubles}
    if wanted & {SYNC, CLEAR, IGNORE}:
        with hold_file_lock(f"{database_of(found.root)}.lock"):
            recover.remove_rebuilt_database(f"{database_of(found.root)}.{recover.RENEWING}")
        _act(found.root, adoption.sync)
        with access_team_at(found.root) as team, hold_file_lock(f"{database_of(found.root)}.lock"):
            ignore_files(team)
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
        _act_once(root, act)
    except PagesDamagedError:
        recover.rebuild_database(root)
        _act_once(root, act)


def _act_once(root: str, act: Callable[[Team], object]) -> None:
    with access_team_at(root) as team:
        if has_open_runs(team):
            record_ends(team)
        act(team)
