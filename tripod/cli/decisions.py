"""``tripod decisions``: what was decided, where reviewers read it."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from tripod.cli.commands import CommandCall, NumberParam, command_group
from tripod.errors import (
    BadArgumentError,
    GitError,
    LedgerDamagedError,
    NoTeamError,
    RefusedError,
    UnwritableError,
)
from tripod.ledger import LedgerError
from tripod.ledger.files import is_read_only
from tripod.ledger.kinds.decisions import LOGGED
from tripod.ledger.locator import (
    FOLDER,
    closed_place_problem,
    has_ledger,
    is_only_stored_to,
    team_of,
    team_to_judge,
)
from tripod.ledger.tlog.seal import Seal
from tripod.output import emit_report, one_line, remark
from tripod.team.team import lost_problem
from tripod.verify.anchors.anchors import AnchorOptions
from tripod.verify.anchors.git import Repository
from tripod.verify.checks import record_agrees
from tripod.verify.evidence import OpenEvidence
from tripod.verify.export import is_export
from tripod.verify.peers.refs import (
    REPLICA,
    ReplicaRef,
    longest_records,
    replica_refs,
    team_judged_by_refs,
)
from tripod.verify.run import open_ref, open_run

if TYPE_CHECKING:
    from tripod.decisions.brief import BriefPart
    from tripod.decisions.entries import LedgerDecisions

_NAMED = 3  # of what a refusal names
_LOST = "the ledger that wrote {} is not here: `tripod restore` brings it back from that record"


# Which ledger -----------------------------------------------------------------------------------


@contextmanager
def _opened(path: str, since: str | None = None) -> Iterator[list[OpenEvidence]]:
    """The ledgers at a path, only to be read: one's own, a backup, an export, a ref, several refs.

    As `tripod verify` takes them: a clone without a ledger has the record of each replica on its
    refs.
    """
    asked = AnchorOptions(git=since is not None, since=since)
    is_ref = path.startswith("refs/") and not os.path.lexists(path)
    is_apart = is_export(path) and not os.path.lexists(f"{path}/.git")
    root = f"{os.getcwd()}/{FOLDER}" if is_ref else None
    if not is_ref and not is_apart and os.path.isdir(path):
        root = team_judged_by_refs(path)
    with ExitStack() as opened:
        if root is not None:
            try:
                repository = opened.enter_context(Repository(root))
                refs = _refs_meant(repository, path if is_ref else None)
                found = [
                    open_ref(OpenEvidence(one.ref), repository, one, root, asked) for one in refs
                ]
                if not is_ref and not is_only_stored_to(repository.place.common):
                    for ref, evidence in zip(refs, found, strict=True):
                        if ref.remote is None:  # a ledger here wrote it
                            evidence.problem = lost_problem(root) or _LOST.format(ref.ref)
            except GitError as error:
                if is_ref:
                    raise LedgerDamagedError(f"{path} cannot be read: {error}") from error
                found = []
            if found:
                yield [opened.enter_context(one) for one in found]
                return
        yield [opened.enter_context(open_run(path, asked=asked))]


def _refs_meant(repository: Repository, named: str | None) -> list[ReplicaRef]:
    """The ref that was named, or of each replica the one whose record is the longest."""
    if named is None:
        return [ref for ref, _ in longest_records(repository, replica_refs(repository))]
    commit = repository.tip(named)
    if commit is None:
        raise NoTeamError(f"there is no {named} in {repository.top}")
    replica = named.rpartition("/")[2]
    return [ReplicaRef(named, replica if REPLICA.fullmatch(replica) else "", commit)]


def _read(evidence: OpenEvidence) -> LedgerDecisions:
    """What a ledger holds of decisions (LedgerDamagedError, NoTeamError: nothing can be read)."""
    from tripod.decisions.entries import read_decisions

    ledger, path = evidence.ledger, evidence.root or evidence.what
    if ledger is None and not evidence.loaded:
        lost = lost_problem(path) if os.path.isdir(path) else None
        missing = f"no ledger in {path}, and no record of one: `tripod init` makes one"
        raise NoTeamError(closed_place_problem(path) or lost or evidence.problem or missing)
    if evidence.problem or ledger is None or not evidence.rows:
        raise LedgerDamagedError(
            evidence.problem or f"{path}: no entry can be read; `tripod verify` says why"
        )
    record = evidence.record
    for finding in () if record is None else record.tally.of(record_agrees.NAME):
        if finding.severity == "failure":
            raise LedgerDamagedError(
                f"{finding.where}: {finding.message}; `tripod verify` names all that is wrong"
            )
    ledger.bodies = evidence.database.bodies
    return read_decisions(ledger)


# Export -----------------------------------------------------------------------------------------


def _export(call: CommandCall) -> None:
    from tripod.decisions.entries import decision_pages
    from tripod.decisions.folder import write_decision_folder

    given = call.values["team"]
    path = team_to_judge(given)
    root = team_of(path) if os.path.isdir(path) else None
    if root is not None and has_ledger(root):
        with call.fresh():
            pass  # what others wrote into the log is taken in
    with call.progress(), _opened(path) as ledgers:
        if len(ledgers) > 1:
            names = " and ".join(one_line(one.what) for one in ledgers[:_NAMED])
            raise RefusedError(
                f"{len(ledgers)} replicas have records here, and each numbers its decisions by "
                f"itself: name one by --team, such as {names}"
            )
        (evidence,) = ledgers
        found = _read(evidence)
        if found.problems:
            raise LedgerDamagedError(
                f"not exported: {'; '.join(found.problems[:_NAMED])}: `tripod verify` judges it"
            )
        size = evidence.rows
        head = evidence.root_at(size)
        try:
            done = write_decision_folder(list(decision_pages(found)), call.madr, root)
        except OSError as error:
            at = error.filename or call.madr
            raise RefusedError(f"{one_line(str(at))}: {error.strerror or error}") from error
    count = len(found.decisions)
    what = f"{count} decision{'' if count == 1 else 's'} of {size} entries"
    files = "file" if done.written == 1 else "files"
    did = f"{done.written} {files} written, {done.removed} removed, {done.unchanged} as they were"
    value = {**done._asdict(), "decisions": count, "size": size}
    value["root"] = None if head is None else head.hex()
    call.answer(value, [f"Exported: {one_line(done.path)}, {what}: {did}"])


# Summary ----------------------------------------------------------------------------------------


def _summary(call: CommandCall) -> int:
    from tripod.decisions.brief import render_brief

    if call.path is not None and call.values["team"] is not None:
        raise BadArgumentError("give PATH or --team, not both")
    path = team_to_judge(call.values["team"] if call.path is None else call.path)
    waiting = _waiting(call, path)
    with call.progress(), _opened(path, call.since) as ledgers:
        names = [one.line(one.rows - 1) if one.db is not None else "" for one in ledgers]
        read = [_read_or_problem(one) for one in ledgers]
        told = [
            (name, found)
            for name, found in zip(names, read, strict=True)
            if not isinstance(found, str)
        ]
        made = frozenset(leaf for _, found in told for leaf in found.made())
        origins = {name for name, _ in told}
        parts = [
            replace(_part(one, found, origins - {own}), apart=made)
            for one, own, found in zip(ledgers, names, read, strict=True)
        ]
    if waiting:
        parts = [replace(one, problem=one.problem or waiting) for one in parts]
    if call.json:
        call.objects(map(_value, parts))
    else:
        emit_report(render_brief(parts, call.last))
    for part in parts:  # standard output goes to a file in CI, and the log is what people see
        damaged = () if part.found is None else part.found.problems
        for reason in (*filter(None, (part.problem,)), *damaged[:_NAMED]):
            remark(f"could not tell: {one_line(f'{part.name}: {reason}')}")
    return 0 if all(part.is_told for part in parts) else 3


def _waiting(call: CommandCall, path: str) -> str:
    """Why decisions in the files of a team here may not be in its ledger; '' where all are.

    What others wrote into the team of this call is taken in first, as by other commands that look.
    """
    from tripod.team.access import check_access
    from tripod.team.intake import PENDING
    from tripod.team.team import Team

    root = team_of(path) if os.path.isdir(path) else None
    if root is None or not has_ledger(root):
        return ""
    try:
        if call.path is None and not is_read_only():
            with call.fresh():
                pass
        with check_access(root), Team(root, read_only=True) as team:
            known = len(team.warnings)
            team.refresh()
            said = "; ".join(team.warnings[known:])
    except (LedgerError, NoTeamError, RefusedError, UnwritableError, OSError) as error:
        return f"what its files hold cannot be told: {error}"
    is_quiet = said.startswith(PENDING) and LOGGED.name not in said
    return "" if not said or is_quiet else f"{said}: `tripod sync` takes it in"


def _read_or_problem(evidence: OpenEvidence) -> LedgerDecisions | str:
    try:
        return _read(evidence)
    except (LedgerError, NoTeamError) as error:
        return str(error)


def _part(
    evidence: OpenEvidence, found: LedgerDecisions | str, others: Collection[str]
) -> BriefPart:
    from tripod.decisions.brief import BriefPart
    from tripod.verify.acceptance import size_before

    what = evidence.what
    if isinstance(found, str):
        return BriefPart(what, None, problem=found)
    before = size_before(evidence)
    if not isinstance(before, str):
        start, why = before or (0, "")
        return BriefPart(what, found, start, why)
    point = evidence.database.since and evidence.database.since[0]
    if isinstance(point, Seal) and point.origin in others:  # all of this one may be new
        return BriefPart(what, found, 0, f"the beginning of {what}")
    return BriefPart(what, found, problem=before)


def _value(part: BriefPart) -> dict[str, object]:
    decisions = [
        {**one.text._asdict(), "seq": one.listed.seq, "made": one.made or None}
        | {"mark": one.listed.mark}
        for one in part.decisions
    ]
    assessments = [
        {"first": one.first, "last": one.last, "decisions": one.decisions, "seq": one.listed.seq}
        | {"confidence": one.confidence, "cited": list(one.cited)}
        for one in part.assessments
    ]
    damaged = [] if part.found is None else list(part.found.problems)
    return {
        "ledger": part.name,
        "since": part.why or None,
        "start": part.start,
        "decisions": decisions,
        "assessments": assessments,
        "problems": [*([part.problem] if part.problem else []), *damaged],
    }


_DECISIONS = """\
decisions

export
    Write each decision into a Markdown file of its own (MADR 4), for reviewers.

    The files are copies, named 0001-title.md by the decision's number in the ledger, which never
    changes. They link to each other where one supersedes another, and `tripod adopt-log DIR` reads
    them again. Where nothing is new, no file is touched. A file that a person changed, or that no
    export wrote, is never overwritten: then nothing is written, and the file is named.

    --team may also name a database, a backup, an export, or a record's ref (refs/tripod/...). A
    clone without a ledger uses the record on its refs.

    --madr DIR  The folder of the files; it is made where it is missing. [required]

summary [PATH]
    Print the new decisions, risk tags and assessments as Markdown, for a pull request.

    All that people wrote is escaped. What another program wrote into the log is taken in first,
    unless PATH is given; then it is said that it waits. PATH is as in `tripod verify`: a clone
    without a ledger is read by the records on its refs. Exit codes: 0 told (also where nothing is
    new), 3 could not tell all of it, and the summary says why.

    --since POINT  Only what is new since an entry (its number), or since a git revision that holds
        a head of the ledger, as in `tripod verify --since`. Without it, everything.
    -n, --last N   List at most so many, the newest; the rest is counted. [default: 50]
    looks: always

"""
COMMANDS = {
    "decisions": command_group(_DECISIONS, [_export, _summary], {"--last": NumberParam(1, 10_000)})
}
