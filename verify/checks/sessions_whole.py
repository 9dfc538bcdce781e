"""Each imported session only grew, and what was kept or found of it can still be read whole.

**What it proves.** Each state of a session's file begins with the bytes of the state before: the
entry has the digest of as many of its first bytes as the entry before had. What was kept of it, or
the file where it was found, has the digest that its entry gives. A file that is still there begins
with the bytes that were imported, also where these were kept. Of a file that its program writes
anew (one document, a database) the states are not compared; where such a file stands in the place
of one of lines, that was not the program. It does not prove that the record was true when it was
imported: that is what the custody of each session says.

**Why it matters.** What an agent read is judged by what its program wrote down. Who can write that
file can take a line out of it.

**What a finding looks like.** ``session 34b9: entry 12 is not what entry 9 had, grown: its first
8041 bytes are others``; ``session 34b9: entry 12 has 5000 bytes, entry 9 had 8041``; ``session
34b9: entry 12 is one document, in the place of the lines that entry 9 had``; ``session 34b9:
/w/34b9.jsonl was changed: its first 8041 bytes are not what entry 12 has``; ``this kept
part was changed: it has another digest``. A warning is ``no entry
names this part``: an import was interrupted, a redaction did not end, or somebody put a file there.

**What to do.** Compare the two copies: what was kept of the earlier state is in ``.nbs/evidence/``.
*Cannot tell*: the bytes are not here any more, or the program left something out; the reason says
what. A program deletes its transcripts after some weeks, so import with ``--keep``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tripod.verify.check import (
    TABLES,
    Evidence,
    Finding,
    Outcome,
    fault_of_texts,
    not_applicable,
    outcome,
)
from tripod.verify.isolation.rules import TeamSession, since_import, team_sessions
from tripod.verify.isolation.sessions import named_parts, parts_of
from tripod.verify.sessions.items import fields

NAME = "sessions-whole"
REQUIRED = False
NEEDS = (TABLES,)
HELP = "compare the copies: what was kept of the earlier one is in .nbs/evidence/"
STRAY = "remove it, once no import is at work: it may hold secrets"
FEW = 3  # reasons that are told; of more, their number

_STATES = (
    "SELECT session, agent, seq, bytes, sha256, before, form, file FROM sessions"
    " ORDER BY session, agent, seq"
)


def judge(evidence: Evidence) -> Outcome:
    """Judge the rule that this module's docstring states."""
    sessions = team_sessions(evidence)
    strays = list(_strays(evidence))
    if not sessions and not strays:
        return not_applicable(NAME, "no session was imported")
    seen = Counter[str](sessions=len(sessions))
    untold: list[str] = []
    unreadable: tuple[type[Exception], ...] = (OSError, *evidence.unreadable)
    for one in sessions:
        body = evidence.body(one.seq)
        seen.update({word: n for word, n in body.get("coverage", {}).items() if word in _GAPS})
        try:
            evidence.sessions.whole(body, parts_of(evidence.source, body))
            seen["whole"] += 1
        except unreadable as error:
            why = getattr(error, "strerror", None) or "its entry cannot be read"
            untold.append(f"{one.title}, entry {one.seq}: {why}")
    found = *_changed(evidence), *_originals(evidence, sessions), *_altered(evidence), *strays
    told = outcome(NAME, found, dict(seen))
    if told.failures or not untold:
        return told
    more = [f"and {len(untold) - FEW} more"] if len(untold) > FEW else []
    return told.cannot_tell("; ".join(untold[:FEW] + more))


_GAPS = fields("damaged missing opaque order unanswered unknown unparsed witness")
"""What the coverage of an imported session counts that could not be seen."""


def _strays(evidence: Evidence) -> Iterator[Finding]:
    """Files among what was kept that no entry names: an import that ended early, or a stranger."""
    try:
        named = named_parts(evidence.source)
    except evidence.unreadable:
        return  # the files of such an entry cannot be told from others
    for path in evidence.sessions.strays(named):
        yield Finding(NAME, "no entry names this part", path, help=STRAY, severity="warning")


def _altered(evidence: Evidence) -> Iterator[Finding]:
    """Kept parts whose bytes are others."""
    for path in sorted(evidence.sessions.altered):
        yield Finding(NAME, "this kept part was changed: it has another digest", path, help=HELP)


def _originals(evidence: Evidence, sessions: Sequence[TeamSession]) -> Iterator[Finding]:
    """Files that are still where they were found, and do not begin with what was imported."""
    since = since_import(evidence, sessions)
    for one in sessions:
        if since.get(one.seq) == "changed":
            body = evidence.body(one.seq)
            what = f"its first {body['bytes']} bytes are not what entry {one.seq} has"
            message = f"{one.title}: {body['file']} was changed: {what}"
            fault = fault_of_texts(message)
            yield Finding(NAME, message, f"entry {one.seq}", help=HELP, seq=one.seq, fault=fault)


def _changed(evidence: Evidence) -> Iterator[Finding]:
    """States of a file that are not the state before, grown."""
    last: tuple[int, int, str, str] | None = None
    known = None
    for session, agent, seq, size, digest, before, form, file in evidence.query(_STATES):
        if (session, agent) != known:
            known, last = (session, agent), None
        if form != "lines" and (last is None or file != last[3] or file[0] != "/"):
            continue  # it is written anew each time, or it is another copy, or its path was erased
        inner = f", subagent {agent}" if agent else ""
        if last is not None and digest != last[2]:
            if form != "lines":
                what = (
                    f"entry {seq} is one {form}, in the place of the lines that entry {last[0]} had"
                )
            elif size < last[1]:
                what = f"entry {seq} has {size} bytes, entry {last[0]} had {last[1]}"
            elif before != last[2]:
                what = (
                    f"entry {seq} is not what entry {last[0]} had, grown: "
                    f"its first {last[1]} bytes are others"
                )
            else:
                what = ""
            if what:
                message = f"session {session}{inner}: {what}"
                yield Finding(NAME, message, f"entry {seq}", help=HELP, seq=seq)
        last = (seq, size, digest, file) if form == "lines" else last
