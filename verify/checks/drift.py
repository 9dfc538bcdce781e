"""Every projected file and table is what the ledger gives.

**What it proves.** Each file that is folded from the ledger has exactly the bytes and permission
bits that the ledger renders, after what other programs legitimately appended was taken into
account; a log that was kept as evidence is still there and only grew; each row of each table in
the database is the one that the entries fold to; the notes about files are whole. The decision
log's own edits are named by ``append-only``.

**Why it matters.** People and tools read the files and the tables, not the ledger. A projection
that says something else than the ledger is a lie that nobody signed. Files that are ahead of the
ledger tell that it was rolled back or swapped.

**What a finding looks like.** ``chat/live.chat: message line 12 differs from the ledger`` with
both versions; ``events/… is missing``; ``the table events: in the row of seq 31: acked is 40,
folded None``; ``the table events: its indexes do not hold its rows``, by which commands find. A
file whose bytes are right and whose mode is not is a warning: git and editors change modes. The
files' cursor may stay behind the head: that is what a command leaves that died
between its COMMIT and its files, so it is a warning, and the next command makes it good. The
tables' cursor moves in the transaction of the entries themselves; no crash leaves it behind, so
``the tables show 40 of 41 entries`` is a failure. (One that is ahead of the head is named by
``sequence``.)

``entry 60: 2 pieces of scribe/log.md were written over, and no entry holds them: decision
D-1795294626 (Use TLS), …`` names decisions, messages and events that a rebuild, or any other
command, put the ledger's version in the place of. It is a failure until an entry holds them.

``4 files show an older state, as of entry 41: scribe/log.md, ...`` names files whose bytes are what
the ledger gave as of that entry: a checkout, a stash or a backup put them there. Nothing of them is
taken in, the ledger holds it all, and the next act writes the newest state. It is a warning; where
a log or a chat lacks its end alone, and ``counts.json`` is the newest, it was cut by hand, and that
is a failure.

``3 files are as a power cut leaves what was not synced: chat/live.chat, ...`` names files of the
newest entries that are missing, or lack a part, after the host was started anew. Acts do not wait
for the disk to have these files. It is a warning: nothing of others is in them but what the ledger
holds, and the next command writes them. Where such a file, or the folder from which one is gone,
was changed after that start, somebody may have done it: then it is a failure, and the command that
writes it records that.

``unmerged: line 4 is a conflict marker of a merge that is not finished`` names a file that no
command takes in or writes: a log, a chat, an event, a worker's file, the configuration, a policy. A
text that quotes markers (a message, a field of a decision, a fenced block) is no conflict.

**What to do.** Finish a merge: keep this ledger's lines first and the other side's after them, and
remove the marker lines. ``tripod rebuild`` writes all else anew from the ledger and keeps the bytes
that it replaces as entries; ``tripod rebuild --evidence`` gives kept logs back. Told here as
warnings: a line of ``config.yaml`` that was not understood, a ``config.yaml`` that is no regular
file, a name such as ``policy.yml`` that no policy is read from, each file whose bytes were written
over (``tripod show`` has them), and each that vanished and was written anew by a later command (of
many in one folder, the folder). What lies in the team directory and is no file of the team's is
named as advice: it is not judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

from tripod.projections.decisions.tables import LOG
from tripod.projections.erasure import unrecorded_pieces
from tripod.projections.layout import REPLACED
from tripod.projections.pieces import (
    BLOCKED,
    OLDER_STATE,
    UNMERGED,
    UNMERGED_CURE,
    Conflict,
    name_pieces,
)
from tripod.projections.team.tables import COUNTS, FILES
from tripod.verify.check import (
    OLDER,
    POLICIES,
    TABLES,
    Coverage,
    Evidence,
    Finding,
    Findings,
    Outcome,
    Severity,
    fault_of_difference,
    fault_of_file,
    fault_of_texts,
    not_applicable,
    outcome,
    shorten,
    shown_difference,
)

NAME = "drift"
REQUIRED = False
NEEDS = (TABLES,)
HELP = "`tripod rebuild` writes it anew from the ledger, and keeps the bytes that it replaces"
AHEAD = (
    "a backup was restored, or the database swapped, or ledger.db was copied without the "
    "ledger.db-wal beside it (copy both): `tripod restore` puts the newer one back, "
    "from this replica's record or a backup; or go on from this one with `tripod rebuild`"
)
REFOLD = "the next command that acts folds them anew; until then they are not compared"
UNSEALED = "the record ends at its seal: what came after it is judged by the files alone"
IN_THE_WAY = "put a regular file there that can be read, or move what stands there away"
UNREAD = "nothing of it is in the ledger: put a file there that can be read, or move it away"
EVIDENCE = "`tripod rebuild --evidence` gives it back"
CUT = "the next command that acts writes them again; the ledger holds all that they lack"
STRANGERS = 20


def judge(evidence: Evidence) -> Outcome:
    """Judge the rule that this module's docstring states."""
    found = Findings()
    if not evidence.has_ledger:
        found.extend(_config(evidence))
        for one in evidence.found.conflicts:
            if one.what == UNMERGED:
                message = f"{one.what}: {one.detail}"
                found.add(Finding(NAME, message, one.path, help=UNMERGED_CURE))
        found.extend(_strangers(evidence))
        if found:
            return outcome(NAME, found, _left(evidence))
        return not_applicable(NAME, "there is no ledger to hold the files against")
    seen: Coverage = {"tables": "all"}
    weight: tuple[str, Severity]
    if evidence.ahead is not None:
        message = f"the files are ahead of the ledger: {evidence.ahead}"
        weight = (UNSEALED, "warning") if evidence.loaded else (AHEAD, "failure")
        found.add(Finding(NAME, message, "counts.json", (), weight[0], weight[1], fault=None))
    for table, fault in evidence.table_faults():
        message = f"the table {table}: {fault}"
        weight = (REFOLD, "warning") if fault == OLDER else (HELP, "failure")
        # Of each table the first difference alone is named.
        found.add(Finding(NAME, message, "database", (), weight[0], weight[1], fault=None))
    found.extend(_cursor(evidence))
    found.extend(_config(evidence))
    found.extend(_displaced(evidence))
    deleted = evidence.query("SELECT count(*) FROM deleted")[0][0]
    if deleted:
        seen["events deleted by others"] = deleted
    if evidence.root is not None:
        seen["files"] = _files(evidence, found)
        found.extend(_cut(sorted(_by_a_cut(evidence))))
        found.extend(_strangers(evidence))
        seen["not taken in yet"] = len(evidence.team.drafts)
        seen |= _left(evidence)
    return outcome(NAME, found, seen)


def _absent(evidence: Evidence) -> Iterator[Finding]:
    """Folders of the team that are not there, or cannot be read."""
    for front, full in evidence.absent_folders():  # the first entry records them
        message = f"{full} is no folder: the team keeps its {front} there"
        help_ = (
            "put the folder back, or mount its disk; if it is lost, `tripod rebuild` writes it anew"
        )
        if not full:
            message = "cannot be read: what stands in this folder was not looked at"
            help_ = "run `tripod verify` as a user who may read it"
        yield Finding(NAME, message, front, help=help_, fault="" if full else None)


def _files(evidence: Evidence, found: Findings) -> int:
    """Add what is wrong with the files and their folders; give how many were looked at."""
    found.extend(_absent(evidence))
    conflicts = {conflict.path: conflict for conflict in evidence.found.conflicts}
    older = {one.path: one.detail for one in conflicts.values() if one.what == OLDER_STATE}
    found.extend(_older(evidence, older))
    for part, why in evidence.team.unread:
        message = f"{part} could not be compared: {why}"
        found.add(Finding(NAME, message, part, help="see the ledger's checks", fault=None))
    files, cut = 0, _by_a_cut(evidence)
    for path, want, have, problem in evidence.projected():
        files += 1
        conflict = conflicts.pop(path, None)
        if problem is None or path in older or path in cut:
            continue
        if conflict is not None and path.startswith(f"{LOG.folder}/"):
            continue
        shown = shown_difference(want, have) if want != have else ()
        help_ = HELP if conflict is None else _help(conflict, IN_THE_WAY)
        message = problem if conflict is None else f"{conflict.what}: {conflict.detail}"
        fault: str | None = problem
        if _is_unseen(conflict) or "rendered" in problem:
            fault = None  # what it holds was not compared
        elif have is not None and want != have:
            fault = f"{problem} {fault_of_difference(want, have)}"
        # A checkout or an editor gives a file another mode: git keeps none. All its bytes are ours.
        only_mode = conflict is None and problem.startswith("has mode")
        found.add(
            Finding(
                NAME,
                message,
                path,
                shown,
                help_,
                "warning" if only_mode else "failure",
                fault=fault,
            )
        )
    kept = set(FILES.evidence(evidence.source))
    for c in conflicts.values():
        if not c.path.startswith(f"{LOG.folder}/") and c.what != OLDER_STATE:
            help_ = EVIDENCE if c.path in kept else _help(c, UNREAD)
            holds = None if _is_unseen(c) else fault_of_file(evidence, c.path)
            fault = None if holds is None else f"{c.what} {holds}"
            found.add(Finding(NAME, f"{c.what}: {c.detail}", c.path, (), help_, fault=fault))
    for path in sorted(kept - conflicts.keys()):
        if not evidence.is_there(path):
            message = "is missing, and was kept as evidence"
            found.add(Finding(NAME, message, path, (), EVIDENCE))
    sql = "SELECT path, seq FROM files WHERE class = 'seen' ORDER BY path"
    for path, seq in evidence.source.db.execute(sql):
        message = f"kept as it is in entry {seq}: {evidence.body(seq).get('problem')}"
        help_ = "repair it, or move it away; the ledger keeps its bytes"
        found.add(Finding(NAME, message, path, (), help_, "warning", seq=seq))
    help_ = "`tripod sync` takes in what is new in it; it goes when nobody has it open any more"
    for path in evidence.replaced():
        message = "was replaced, and may hold what others wrote"
        fault = fault_of_file(evidence, path)
        found.add(Finding(NAME, message, path, (), help_, "warning", fault=fault))
    return files


def _by_a_cut(evidence: Evidence) -> set[str]:
    """The files that a power cut left so, and that nobody can have changed since."""
    return {path for path, one in evidence.team.remnants.items() if not one.doubtful}


def _cut(paths: list[str]) -> Iterator[Finding]:
    """Files that a power cut left in part, or took: nobody edited them."""
    if paths:
        count = "1 file is" if len(paths) == 1 else f"{len(paths)} files are"
        message = f"{count} as a power cut leaves what was not synced: {name_pieces(paths)}"
        yield Finding(NAME, message, ".", (), CUT, "warning", fault=fault_of_texts(*paths))


def _older(evidence: Evidence, states: dict[str, str]) -> Iterator[Finding]:
    """Files that are as they were as of an earlier entry, by path: one finding for all of them.

    A checkout, a stash or a copy of the folder puts the counts back with the logs and chats, since
    each decision and message moves them. A log or chat alone that lacks its end was cut by hand.
    """
    if not states:
        return
    shown, paths = evidence.found.shown or 0, list(states)
    count = "1 file shows" if len(paths) == 1 else f"{len(paths)} files show"
    message = f"{count} an older state, as of entry {shown - 1}: {name_pieces(paths)}"
    help_ = (
        "a checkout, a stash or a backup put it there, and the ledger holds it all: the next act "
        "writes the newest state, and so does `tripod sync`"
    )
    severity: Severity = "warning"
    if COUNTS.path not in paths and any(path.endswith((".chat", ".md")) for path in paths):
        message += f", and {COUNTS.path} the newest"
        severity = "failure"
    fault = fault_of_texts(*(f"{path}: {state}" for path, state in sorted(states.items())))
    yield Finding(NAME, message, ".", (), help_, severity, fault=fault)


def _left(evidence: Evidence) -> Coverage:
    """How much lies in the team directory that no part of the team's files is."""
    count = len(_alone(evidence))
    return {"not understood": f"{count} file{'' if count == 1 else 's'}"}


def _alone(evidence: Evidence) -> list[str]:
    """What is left alone, less what has a finding of its own, and what we put aside ourselves."""
    if evidence.root is None:
        return []
    named = {conflict.path for conflict in evidence.found.conflicts}
    alone = evidence.found.left_alone
    return [path for path in alone if path not in named and not re.fullmatch(REPLACED, path)]


def _strangers(evidence: Evidence) -> Iterator[Finding]:
    """Files and folders in the team directory that are no part of anything, by their names."""
    alone = _alone(evidence)
    if not alone:
        return
    shown = [shorten(path) for path in alone[:STRANGERS]]
    if len(alone) > STRANGERS:
        shown.append(f"and {len(alone) - STRANGERS} more")
    count = _left(evidence)["not understood"]
    message = f"not understood: {count}, of which nothing is taken in or judged"
    help_ = "find out what they are; what belongs to no tool of the team is kept better elsewhere"
    fault = fault_of_texts(*alone)
    yield Finding(NAME, message, ".", tuple(shown), help_, "advice", fault=fault)


def _displaced(evidence: Evidence) -> Iterator[Finding]:
    """Files that differed from the ledger and were written over, or were gone.

    Decisions, messages and events in them that no entry holds are a failure.
    """
    for (seq,) in evidence.query("SELECT seq FROM displaced ORDER BY seq"):
        body, where = evidence.body(seq), f"entry {seq}"
        path, reason = body.get("path"), body.get("reason")
        lost: list[str] = []
        with suppress(*evidence.unreadable):  # it has none, or was erased: `bodies-present` tells
            data = evidence.source.content(body["content"])
            lost = unrecorded_pieces(evidence.source, str(body["path"]), data)
        if lost:
            count = f"{len(lost)} piece{'' if len(lost) == 1 else 's'}"
            message = f"{where}: {count} of {path} were written over, and no entry holds them: "
            help_ = (
                f"`tripod show {seq}` has the bytes; add the pieces to the file again and "
                "`tripod sync`"
            )
            fault = fault_of_texts("written over", *lost)
            yield Finding(NAME, message + name_pieces(lost), where, (), help_, seq=seq, fault=fault)
        message = (
            f"{where}: bytes that stood in {path} were kept before they were written over: {reason}"
        )
        help_ = f"`tripod show {seq}` shows them"
        if body and "content" not in body:
            message = f"{where}: {path} was written anew: {reason}"
            help_ = "nothing recorded is lost: find out who removed it"
        yield Finding(NAME, message, where, (), help_, "warning", seq=seq)


def _is_unseen(conflict: Conflict | None) -> bool:
    """Whether nothing is known of what stands there."""
    return conflict is not None and conflict.what in (BLOCKED, UNMERGED, "unreadable")


def _help(conflict: Conflict, unread: str) -> str:
    """What to do: what is no file, unreadable or half of a merge is never written over."""
    if conflict.what == UNMERGED:
        return UNMERGED_CURE
    return unread if conflict.what in (BLOCKED, "unreadable") else HELP


def _cursor(evidence: Evidence) -> Iterator[Finding]:
    """Cursors that stay behind the head: the files' after a crash, the tables' by no accident."""
    for name, cursor, size in evidence.cursors():
        behind = f"the {name} show {cursor} of {size} entries"
        if cursor < size and name == "files":
            message = f"{behind}: a command died, or is at work"
            help_ = "the next command that acts finishes it"
            yield Finding(NAME, message, "head", (), help_, "warning", fault=None)
        elif cursor < size:
            message = f"{behind}, and each append moves both at once: the head row was altered"
            help_ = "`tripod rebuild` folds them anew; find out who wrote to the database"
            yield Finding(NAME, message, "head", (), help_, fault=None)
    count = evidence.unswept()
    if count:
        message = f"{count} bodies were erased, and the file may still hold their bytes"
        help_ = "the next command that acts finishes it, once nobody reads the old pages any more"
        yield Finding(NAME, message, "database", (), help_, "warning", fault=None)


def _config(evidence: Evidence) -> Iterator[Finding]:
    """Lines of the configuration that were not taken, or why none of them was."""
    for seq, path in evidence.query("SELECT seq, path FROM inputs ORDER BY path"):
        problems = evidence.body(seq).get("problems")
        for problem in problems if isinstance(problems, list) else ():
            key = problem.get("key") or "line"
            message = f"{key}: {problem.get('message')}"
            help_ = "mend the line; until then it counts as not written"
            where = f"{path}:{problem.get('line')}"
            yield Finding(NAME, message, where, (), help_, "warning")
    if evidence.root is not None:
        for path, odd in evidence.found.odd.items():
            help_ = "put a regular file there"
            yield Finding(NAME, odd, path, (), help_, "warning", fault=None)
    for name in evidence.names():
        if name.startswith("policy") and name not in POLICIES:
            message = f"no policy is read from it: the names are {', '.join(POLICIES)}"
            yield Finding(
                NAME, message, name, (), "give it that name, or keep it elsewhere", "warning"
            )
