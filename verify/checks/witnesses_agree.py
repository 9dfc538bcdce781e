"""The witnesses of a session tell of the same calls.

**What it proves.** For each imported session that has a second witness: each call that a hook saw
stands in the transcript with the same tool and input, whichever event tells of it, and each call of
the transcript was seen by the hook. What a hook saw done was not denied there. Each call in what a
run of ours wrote, or kept of its own session, stands in the imported transcript, and a call that
the run lists as denied has no answer there. Where a program writes each call or its result twice
(Codex from 0.169, Gemini, Qwen Code, OpenCode), both are there. It cannot see what all witnesses
leave out: one user wrote them all, unless a hook took the transcript.

**Why it matters.** A transcript lies where the agent could write. A call that was taken out of it
leaves no trace there, and one in each other witness.

**What a finding looks like.** ``session 34b9: hooks saw the call Read toolu_01, and the transcript
lacks it``; ``session 34b9: hooks (event 4) and the transcript (line 12) differ in 'file_path' of
the call Read toolu_01: '/w/.env' and '/w/a.py'``.

**What is not compared.** What calls answered; members of an input that only one of the two has, as
programs add some for hooks, unless a tool of Claude Code finds a file or a command there; what a
run asked for; calls of tools that no event names, where hooks watch some tools alone. Paths count
as one where they lead to the same file, texts without the blanks around them, numbers however they
are written. Of another program than Claude Code the names of tools are not compared, and another
input is *cannot tell*; so are another folder of a file with the same name, an id that stands twice,
and an input of which no ``PreToolUse`` is there, since a hook may change it later.

**What to do.** Find out who changed the transcript, and look for another copy of it. *Cannot tell*
names its reason. The session was imported before it ended: import it again. Only one witness speaks
of a call that was denied: the program may refuse a call before its hooks run. Numbers are missing
among the files of a hook: events were lost or taken out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from tripod.verify.check import (
    TABLES,
    Evidence,
    Finding,
    Findings,
    Outcome,
    not_applicable,
    outcome,
)
from tripod.verify.isolation.rules import HOOKS_GONE, TeamSession, is_heard, team_sessions
from tripod.verify.isolation.sessions import CallsSeen, parts_of
from tripod.verify.isolation.witnesses import (
    Disagreement,
    RunCalls,
    compare_hooks,
    compare_run,
    read_run,
)
from tripod.verify.sessions.items import Gap, version_of

NAME = "witnesses-agree"
REQUIRED = False
NEEDS = (TABLES,)
HELP = "find out who changed the transcript, and look for another copy of it"
FEW = 3  # reasons that are told; of more, their number

_SECOND = ("with hooks", "with runs", "written twice")
"""What coverage counts: sessions by the second witness that they have."""

_TWICE = {"codex": (0, 169), "gemini": (), "opencode": (1, 18, 33), "qwen": (0, 24, 4)}
"""Programs that write each call, or each result, twice, with the version that recordings show."""


def judge(evidence: Evidence) -> Outcome:
    """Judge the rule that this module's docstring describes."""
    sessions = sorted(team_sessions(evidence), key=lambda one: (one.session, one.seq))
    runs = _runs_of_sessions(evidence)
    seen = Counter[str](dict.fromkeys(("sessions", *_SECOND, "calls"), 0))
    found, untold = Findings(), list[str]()
    for name, files in groupby(sessions, key=lambda one: one.session):
        copies = list(files)
        first = next((one for one in copies if not one.agent), copies[0])
        seen["sessions"] += 1
        for one in _compared(evidence, first, copies, runs.get(name, []), seen):
            message = f"{first.title}: {one.what}"
            if one.is_sure:
                found.add(Finding(NAME, message, f"entry {first.seq}", help=HELP, seq=first.seq))
            else:
                untold.append(message)
    if not any(seen[word] for word in _SECOND):
        return not_applicable(NAME, "no imported session has a second witness")
    told = outcome(NAME, found, dict(seen))
    if found.of("failure") or not untold:
        return told
    more = [f"and {len(untold) - FEW} more"] if len(untold) > FEW else []
    return told.cannot_tell("; ".join(untold[:FEW] + more))


def _compared(
    evidence: Evidence,
    first: TeamSession,
    copies: list[TeamSession],
    runs: list[RunCalls],
    seen: Counter[str],
) -> Iterator[Disagreement]:
    """Hold the files of one session against what else tells of it; ``first`` is its own thread."""
    log = evidence.sessions.hooks(first.session)
    is_gone = log is None and any(map(is_heard, copies))
    seen["with hooks"] += log is not None or is_gone
    seen["with runs"] += bool(runs)
    seen["written twice"] += first.program in _TWICE
    if is_gone:
        yield Disagreement(HOOKS_GONE, is_sure=False)
    if log is None and not runs and first.program not in _TWICE:
        return
    calls = CallsSeen()
    unreadable: tuple[type[Exception], ...] = (OSError, *evidence.unreadable)
    for one in copies:
        try:
            calls.join(_calls(evidence, one))
        except unreadable as error:
            why = getattr(error, "strerror", None) or "its entry cannot be read"
            yield Disagreement(f"entry {one.seq}: {why}", is_sure=False)
            return
    seen["calls"] += len(calls.calls)
    version = str(evidence.body(first.seq).get("version", ""))
    for gap in calls.witness:
        proved = version_of(version) >= _TWICE.get(first.program, (math.inf,))
        yield Disagreement(f"{gap.what} (line {gap.line})", is_sure=proved)
    if log is not None:
        taken = min(evidence.micros(one.seq) or 0 for one in copies)
        whole = log.events.is_over and (taken > log.ended_us or first.custody == "hook")
        yield from compare_hooks(
            log.events, calls, program=first.program, version=version, is_whole=whole
        )
        for item in log.items:
            if isinstance(item, Gap) and not item.child:
                yield Disagreement(item.what, is_sure=False)
    for run in runs:
        yield from compare_run(run, calls, is_whole=min(one.seq for one in copies) > run.ended)


def _calls(evidence: Evidence, one: TeamSession) -> CallsSeen:
    """The calls of one file of a session; what ``again`` raises where it is not at hand."""
    body = evidence.body(one.seq)
    calls = evidence.sessions.again(body, parts_of(evidence.source, body), lambda _: CallsSeen())
    assert isinstance(calls, CallsSeen)  # by the line above
    return calls


_ENDED = "SELECT spawn, ended FROM agents WHERE ended IS NOT NULL ORDER BY ended"
_KEPT = "SELECT seq FROM files WHERE path GLOB ? AND seq < ? ORDER BY path"


def _runs_of_sessions(evidence: Evidence) -> dict[str, list[RunCalls]]:
    """The runs whose output can be read and names calls or denials, by the session of each."""
    found: dict[str, list[RunCalls]] = {}
    for spawn, ended in evidence.query(_ENDED):
        body = evidence.body(ended)
        session = body.get("session")
        if not isinstance(session, str):
            continue
        run = RunCalls(spawn, ended)
        kept = body.get("stdout")
        read_run(
            run, session, _content(evidence, kept.get("content") if kept else None), "session_id"
        )
        pattern = f"workers/*-{spawn[:12]}-[0-9]*.log"
        for (seq,) in evidence.query(_KEPT, pattern, evidence.size):
            data = _content(evidence, evidence.body(seq).get("content"))
            read_run(run, session, data, "sessionId")
        if run.is_stream or run.calls or run.denied:
            found.setdefault(session, []).append(run)
    return found


def _content(evidence: Evidence, content: Any) -> bytes:
    try:
        return evidence.source.content(content)
    except evidence.unreadable:
        return b""  # it was erased, or was too much to keep
