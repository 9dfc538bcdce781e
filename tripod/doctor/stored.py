"""Troubles of the ledger and of what is made from it: judged as ``tripod verify`` judges."""

from __future__ import annotations

import json
from collections.abc import Iterator

from projections import FILES, LOG
from projections.in_the_way import UNMERGED_CURE
from projections.intake.blocked import BLOCKED
from projections.intake.piece import UNMERGED
from tripod.doctor.trouble import REBUILD, SYNC, Trouble
from verify.checks import LEDGER_CHECKS
from verify.checks.drift import IN_THE_WAY
from verify.checks.worker_lifecycle import logs_altered
from verify.evidence import Evidence
from verify.finding import Report
from verify.run import run

RESTORE = "put it back: `tripod restore` from a backup, `tripod init` from a record"
_DAMAGED = (
    "rebuild nothing from it: `tripod verify` tells all; put a sound copy back (`tripod restore`)"
)
_NEXT = "the next command that acts makes that good"
_REBUILT = "`tripod rebuild` writes it anew from the ledger, and keeps the bytes that it replaces"
_UNTOUCHED = "evidence is never touched here"
_GIVEN_BACK = f"{_UNTOUCHED}: `tripod rebuild --evidence` gives it back"


def judged(evidence: Evidence) -> Report:
    """What the checks of the ledger say; folds the entries for whoever asks next."""
    report = run(evidence, select=[check.NAME for check in LEDGER_CHECKS])
    if not report.problem:
        evidence.fold()
    return report


def stored(evidence: Evidence, report: Report) -> Iterator[Trouble]:
    """All that is wrong with the ledger, its tables and its files."""
    yield from _ledger(evidence, report)
    behind = list(_cursors(evidence))
    yield from behind
    yield from _tables(evidence)
    yield from _files(evidence, lagging=any(one.name == "files-behind" for one in behind))
    yield from _logs(evidence)
    yield from _inputs(evidence)


def _ledger(evidence: Evidence, report: Report) -> Iterator[Trouble]:
    for outcome in report.outcomes:
        for finding in outcome.findings:
            if finding.where == "schema":
                what = f"{finding.message}: it is what keeps a program from changing entries"
                cure = "`tripod rebuild` puts ours back; find out who wrote to the database"
                yield Trouble("schema", "ledger.db", what, cure, REBUILD)
            elif finding.severity == "failure":
                what = f"{outcome.check}: {finding.message}"
                yield Trouble("ledger-damaged", finding.where, what, _DAMAGED, stops=True)
    if evidence.ahead is not None:
        cure = (
            "a backup was restored, or the database swapped: put the newer ledger.db back, or go "
            "on from this one with `tripod restore` or `tripod rebuild`"
        )
        yield Trouble("files-ahead", "counts.json", evidence.ahead, cure, stops=True)
    assert evidence.disk is not None
    for front, full in evidence.disk.places.absent().items():
        what = f"the team keeps its {front} in {full}, and no folder is there"
        cure = "put the folder back, or mount its disk; if it is lost, `tripod rebuild`"
        yield Trouble("place-gone", front, what, cure, stops=True)


def _cursors(evidence: Evidence) -> Iterator[Trouble]:
    for name, cursor, size in evidence.cursors():
        what = f"the {name} show {cursor} of {size} entries"
        if cursor < size and name == "files":
            what = f"{what}: a command died before it wrote them, or is at work"
            yield Trouble("files-behind", "ledger.db", what, _NEXT, SYNC)
        elif cursor < size:
            yield Trouble("tables-behind", "ledger.db", what, "`tripod rebuild`", REBUILD)
    if evidence.unswept():
        what = f"{evidence.unswept()} bodies were erased, and the file may still hold their bytes"
        yield Trouble("unswept", "ledger.db", what, _NEXT, SYNC)


def _tables(evidence: Evidence) -> Iterator[Trouble]:
    faults = dict(evidence.team.tables)
    if "folds" in faults:  # of another version: all else about them follows from that
        what = "the tables were folded by another version of tripod"
        yield Trouble("tables-old", "ledger.db", what, _NEXT, SYNC)
        return
    for table, fault in [*faults.items(), *evidence.notes()]:
        what = f"the table {table}: {fault}"
        cure = "`tripod rebuild` folds it anew; find out who wrote to the database"
        yield Trouble("table", "ledger.db", what, cure, REBUILD)


def _files(evidence: Evidence, *, lagging: bool) -> Iterator[Trouble]:
    """Files that are not what the ledger gives; where it is ahead of them all, that is why."""
    cure, mends = (_NEXT, SYNC) if lagging else (_REBUILT, REBUILD)
    kept = set(FILES.evidence(evidence.source))
    told = set()
    for path, what, detail in evidence.team.found.conflicts:
        told.add(path)
        if path in kept:
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


def _logs(evidence: Evidence) -> Iterator[Trouble]:
    """Logs of workers that are, or at an end were, not what their programs wrote."""
    for found in logs_altered(evidence):
        yield Trouble("log-altered", found.where, found.message, f"{_UNTOUCHED}: {found.help}")


def _inputs(evidence: Evidence) -> Iterator[Trouble]:
    """What people write, and was not understood."""
    for path, problems in evidence.query("SELECT path, problems FROM inputs ORDER BY path"):
        for problem in json.loads(problems or "[]"):
            where = f"{path}:{problem['line']}" if problem["line"] else path
            what = ": ".join(filter(None, (problem["key"], problem["message"])))
            yield Trouble("config", where, what, "mend the line; until then it counts for nothing")
    for path, odd in evidence.team.found.odd.items():
        yield Trouble("config", path, odd, "put a regular file there")
