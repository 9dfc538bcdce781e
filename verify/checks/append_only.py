"""The decision logs only grew: nothing that they ever said was changed or removed.

**What it proves.** What the ledger holds of each log (``scribe/log.md``, ``scribe/live-log.md``) is
a prefix of what its file and its archives show, byte for byte, and the decisions that the ledger
has in it are numbered 1, 2, 3, ... in the order in which they were logged. Where a log is committed
to git, each version is the beginning of the next, over the whole history; a rotation, and a
redaction that an entry tells of, are reported and fail nothing. So is what one commit changed and a
later one put back, byte for byte. (``tripod verify --grow-only FILE`` judges any file so, without a
ledger.)

**Why it matters.** A decision that can be reworded afterwards is no decision. The seeds: the log is
append-only; a change of status is a new entry that refers to the old one.

**What a finding looks like.** ``it differs from the ledger at line 31, in D-1707753600``, with both
versions; ``the log's file is gone``; ``D-1707753600 has number 7 where 6 follows``; ``commit
5a742098bf87 by Ann <ann@example.com>: lines 12 to 14 of the version before it are not as they
were``. A shallow clone, and history that was rewritten, are said.

**What to do.** ``tripod rebuild`` puts the ledger's version back and keeps the edited bytes as an
entry. A log without a ledger is held against its git history alone; without that, too, this check
sees the numbering only. What a commit changed, ``git show COMMIT -- scribe/live-log.md`` tells.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from itertools import chain

from tripod.projections.decisions.format import parse_decision, split_decision_log
from tripod.projections.decisions.tables import LOG
from tripod.projections.layout import LIVE
from tripod.projections.pieces import BLOCKED, OLDER_STATE, UNMERGED, UNMERGED_CURE
from tripod.verify.anchors.growth import STAGED, Break, FileHistory
from tripod.verify.check import (
    TABLES,
    Evidence,
    Finding,
    Outcome,
    Severity,
    cannot_tell,
    fault_of_difference,
    not_applicable,
    outcome,
    shown_difference,
)


def append_only_explanation(
    old: bytes,
    new: bytes,
    archived: Collection[bytes],
    redacted: Collection[str],
    headers: Collection[bytes] = (),
) -> str | None:
    """In words, why ``old`` is not the beginning of ``new``; None where the ledger has no reason.

    The ledger has the pieces ``archived`` in archives, erased texts of the decisions ``redacted``,
    and knows the ``headers`` that stood in front of the first piece of the log and its archives.
    """
    header, before = split_decision_log(old)
    header_now, after = split_decision_log(new)
    # All pieces before the one that is the first now went away from the front.
    first = _id(after[0]) if after else ""
    stays = (n for n, one in enumerate(before) if one in after[:1] or (first and _id(one) == first))
    moved = next(stays, len(before))
    if header != header_now and not (moved and {header, header_now} <= set(headers)):
        return None
    gone = [piece for piece in before[:moved] if piece not in archived]
    kept = before[moved:]
    if len(after) < len(kept):
        return None
    changed = [(was, now) for was, now in zip(kept, after, strict=False) if was != now]
    erased = [_id(was) for was, now in changed if _id(was) == _id(now)] + [_id(was) for was in gone]
    if len(erased) != len(changed) + len(gone) or not set(erased) <= set(redacted):
        return None
    reasons = [f"{moved} pieces went into an archive"] if moved else []
    if erased:
        reasons.append(f"redacted: {', '.join(sorted(set(erased)))}")
    return "; ".join(reasons) or None


def _id(piece: bytes) -> str:
    """The id of a decision's piece; '' if it is not one."""
    decision, _ = parse_decision(piece)
    return "" if decision is None else decision.id


# Why a committed log may not be the beginning of the next one -----------------------------------
#
# Two things change what stands in a log already: a rotation moves its first pieces into an archive
# (and may write a new header), and a redaction puts ``[redacted]`` in the place of a piece's texts.
# Both are entries.


NAME = "append-only"
REQUIRED = True
NEEDS = (TABLES,)
HELP = "`tripod rebuild` puts back what the ledger holds, and keeps these bytes as an entry"
_HELP_GIT = (
    "the version before it is still in git: `git show COMMIT^:PATH`; put back what is missing, and "
    "say in the file itself why it was ever gone"
)
_HELPS = {
    "": "`git diff -- PATH` shows what was changed; put it back, and append instead",
    STAGED: "`git diff --cached -- PATH` shows what was changed; put it back, and append instead",
}


def judge(evidence: Evidence) -> Outcome:
    """Judge the rule that this module's docstring states."""
    logs = evidence.query("SELECT count(*) FROM logs")[0][0]
    pieces = evidence.query("SELECT count(*) FROM pieces")[0][0]
    edited = []
    for conflict in evidence.found.conflicts:
        if conflict.path.startswith(f"{LOG.folder}/") and conflict.what != OLDER_STATE:
            want, have = evidence.rendered(conflict.path), evidence.file(conflict.path)
            message = f"{conflict.what}: {conflict.detail}"
            help_ = UNMERGED_CURE if conflict.what == UNMERGED else HELP
            fault = None  # what stands there was not compared
            if have is not None and conflict.what not in (BLOCKED, UNMERGED):
                fault = f"{conflict.what} {fault_of_difference(want, have)}"
            elif not evidence.is_there(conflict.path) and conflict.what == "missing":
                fault = "missing"
            shown = shown_difference(want, have)
            edited.append(Finding(NAME, message, conflict.path, shown, help_, fault=fault))
    if not logs and not pieces and not edited:
        return not_applicable(NAME, "there is no decision log")
    if not evidence.has_ledger and evidence.untold:
        where, problem = evidence.untold[0]
        reason = f"without a ledger only {where} tells what the log was: {problem}"
        return cannot_tell(NAME, reason)
    found: list[Iterable[Finding]] = [edited, _misnumbered(evidence)]
    seen = {"pieces": pieces, "log files": logs}
    for history in evidence.histories:
        found.append(_committed(evidence, history))
        for word, count in append_only_coverage(history).items() if not history.problem else ():
            seen[word] = seen.get(word, 0) + count
    return outcome(NAME, chain.from_iterable(found), seen)


def _committed(evidence: Evidence, history: FileHistory) -> Iterator[Finding]:
    """A log against its own history in git."""
    name = history.log or LIVE
    if history.problem or history.shallow:
        text = history.problem or append_only_shallow(history.path)
        yield Finding(NAME, text, f"{LOG.folder}/{name}", severity="warning", fault=None)
    if evidence.has_ledger:  # what is on disk is held against the ledger already
        history = history._replace(breaks=tuple(one for one in history.breaks if one.where))
    begun = _begun(evidence, name)
    files = [file for (file,) in evidence.query("SELECT file FROM logs WHERE log = ?", name)]
    archives = [evidence.rendered(f"{LOG.folder}/{file}") for file in files if file != name]
    archived = {piece for data in archives for piece in split_decision_log(data)[1]}
    headers = set()  # a program that splits a log writes a new one
    for file in files:
        with suppress(*evidence.unreadable):
            headers.add(LOG.header(evidence.source, file))
    said = evidence.query("SELECT entry FROM redactions")
    kept = [evidence.body(seq).get("keep") for (seq,) in said]
    redacted = {str(body.get("id", "")) for body in kept if isinstance(body, dict)}
    with evidence.versions(name) as read:

        def explain(one: Break) -> str | None:
            if begun is not None and one.where and one.seconds < begun:
                return "that was before adoption"
            pair = read(one)
            return (
                None
                if pair is None
                else append_only_explanation(*pair, archived, redacted, headers)
            )

        yield from findings(history, explain, ledger=evidence.has_ledger)


def _begun(evidence: Evidence, name: str) -> int | None:
    """When a past of the log ended that was taken in, in seconds since 1970; None: it has none.

    That is when the ledger was begun, or a log in another folder was met. 0: nobody can tell.
    """
    seq = 0 if evidence.adopted(0) else None
    if "/" in name and evidence.ledger is not None:
        begun = [entry.seq for entry in evidence.ledger.raw(kinds=("log.begun",))]
        seq = next((one for one in begun if evidence.body(one).get("file") == name), seq)
    return None if seq is None else (evidence.micros(seq) or 0) // 1_000_000


def _misnumbered(evidence: Evidence) -> Iterator[Finding]:
    follows: dict[str, int] = {}
    for seq, id_, number, log in evidence.source.db.execute(
        "SELECT seq, id, number, log FROM pieces WHERE id IS NOT NULL ORDER BY seq"
    ):
        if number != follows.get(log, 1):
            message = f"{id_} has number {number} where {follows.get(log, 1)} follows in {log}"
            help_ = "a decision was left out or slipped in: compare with a copy of the ledger"
            yield Finding(NAME, message, evidence.where(seq), (), help_, seq=seq)
        follows[log] = number + 1


def findings(
    history: FileHistory,
    explain: Callable[[Break], str | None] = lambda _: None,
    *,
    ledger: bool = False,
) -> Iterator[Finding]:
    """Every break, the oldest first, and history that was rewritten.

    A break that ``explain`` has words for is told as a warning: it fails nothing. So is one that a
    later commit put right. If that took away lines which the break had added, only a ``ledger``
    tells whether they were ever said: without one it is a failure.
    """
    path = history.path
    severity: Severity
    for one in history.breaks:
        message = f"{one.where or 'the work tree (not committed)'}: {one.what}"
        fault = f"{one.what} {one.old} {one.new}" if one.where else None
        explained = None if one.restored else explain(one)
        if one.restored:
            message, severity = f"{message}; restored by {one.restored}", "warning"
            if one.added:
                lines = "line" if one.added == 1 else "lines"
                message += f", which took away {one.added} {lines} that had been added as well"
                severity = "warning" if ledger else "failure"
            yield Finding(NAME, message, path, one.shown, _HELP_GIT, severity, fault=fault)
        elif explained is not None:
            message = f"{message}: {explained}"
            yield Finding(NAME, message, path, severity="warning", fault=fault)
        else:
            help_ = _HELPS.get(one.where, _HELP_GIT)
            yield Finding(NAME, message, path, one.shown, help_, fault=fault)
    for lost in history.lost:
        text = f"history was rewritten: {lost.ref} once named {lost.where}, and does no more"
        if lost.broke:
            text += "; the file as it was there is not the beginning of what it is now"
        help_ = (
            "others may have a clone with that commit; `git reflog` names it here"
            if lost.shared
            else "commits that were never published may be amended; `git reflog` names them here"
        )
        severity = "failure" if lost.broke and lost.shared else "warning"
        yield Finding(NAME, text, path, lost.shown, help_, severity)


def append_only_coverage(history: FileHistory) -> dict[str, int]:
    """What of a file's history was seen."""
    seen = {"versions in git": history.versions}
    restored = sum(bool(one.restored) for one in history.breaks)
    if restored:
        seen["restored"] = restored
    if history.merged:
        seen["merges of two appends"] = history.merged
    return seen


def append_only_shallow(path: str) -> str:
    """Why the history of a shallow clone is no answer."""
    return (
        f"{path}: this clone is shallow, so versions before its first commit were not seen; "
        "`git fetch --unshallow` brings them (in CI: fetch-depth: 0)"
    )
