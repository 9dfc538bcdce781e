"""What the ledger holds of the agents that took a turn of a Nova run. Pure.

A text that was erased, or was not kept, says nothing for a turn and nothing against it. How a run
is said to have ended follows from its exit code, signal, time and output, as ``spool_result`` in
``tripod.agents`` finds it; an end that contradicts itself was recorded by something else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from itertools import combinations
from typing import Any, NamedTuple

from tripod.ledger import LedgerError, parse_header
from tripod.ledger.kinds import agents as kinds
from tripod.ledger.kinds.base import Kind
from tripod.ledger.kinds.models import model_of
from tripod.ledger.kinds.registry import BY_NAME
from tripod.projections.nova.turns import ROLE, TurnTry, told_problem
from tripod.projections.workers.answers import (
    ALTERED,
    CANCELLED,
    CUT_OFF,
    EMPTY_RESULT,
    EXITED,
    FAILED,
    NO_JSON,
    NOT_STARTED,
    PRINTED_NOTHING,
    SIGNALLED,
    TOO_MUCH,
    TOO_SLOW,
    UNSHAPED,
    Answer,
    read_spec_answer,
)
from tripod.verify.check import Evidence
from tripod.verify.isolation.runs import erased_in_run

_SUBJECT = re.compile(
    r"([a-z0-9][a-z0-9-]{0,63})/(0|[1-9][0-9]{0,14})-"
    r"(unpack|expert|synthesis|critique|revision|final)-([a-z][a-z0-9_-]{0,31})"
)
_BY_ITSELF = ("ok", "empty_output", "bad_output")
"""What a program is said to have ended as whose exit code is 0: its output decides."""

_OF_ANSWERS = ("", PRINTED_NOTHING, CUT_OFF, UNSHAPED, EMPTY_RESULT)
"""The words of what is wrong with an answer, but for those that say more of the output."""

_ERRORS = (
    "Argument list too long", "Cannot allocate memory", "Exec format error", "File name too long",
    "Input/output error", "Is a directory", "No space left on device", "No such file or directory",
    "Not a directory", "Operation not permitted", "Permission denied", "Read-only file system",
    "Resource temporarily unavailable", "Text file busy", "Too many levels of symbolic links",
    "Too many open files", "Too many open files in system",
)  # fmt: skip
"""Words of the system why a program cannot be started."""

_NO_WRAPPER = re.compile(r"the wrapper ended with -?[0-9]{1,3}")

_OUTPUTS = ("stdout", "stderr", "left")
_SOME = [names for many in (1, 2, 3) for names in combinations(_OUTPUTS, many)]
_CHANGED = {ALTERED.format(names=" and ".join(names)): names for names in _SOME}
"""The outputs that another program is said to have changed, by the problem that says so."""
_COST = re.compile(r"[0-9]{1,10}\.[0-9]{4}")


class NovaSubject(NamedTuple):
    """What an agent's run is for: the turn of a role and a persona, in a cycle of a Nova run."""

    run: str
    cycle: int
    role: str
    persona: str


def read_nova_subject(subject: str) -> NovaSubject | None:
    """The turn that the subject of an agent's run names; None where it names no turn.

    >>> read_nova_subject("tea-or-coffee/2-expert-cost-and_time")
    NovaSubject(run='tea-or-coffee', cycle=2, role='expert', persona='cost-and_time')
    """
    found = _SUBJECT.fullmatch(subject)
    return None if found is None else NovaSubject(found[1], int(found[2]), found[3], found[4])


class NovaEntry(NamedTuple):
    """An entry of a run; the body is None where it cannot be read, or does not fit its kind."""

    seq: int
    kind: str
    body: dict[str, Any] | None


class AgentTry(NamedTuple):
    """A run of an agent as it stood at an entry; ``requested`` is the entry of its order.

    ``untold`` says why its answer cannot be read, '' where it can; ``wrong`` what cannot be so of
    its end, which stands in the entry ``ended``.
    """

    requested: int
    one: TurnTry
    untold: str
    wrong: str = ""
    ended: int = -1


def sound_body(evidence: Evidence, seq: int, kind: Kind[Any]) -> dict[str, Any] | None:
    """The body of an entry; None where it cannot be read, or does not fit this kind."""
    body = evidence.body(seq)
    try:
        model_of(kind).model_validate(body)
    except ValueError:
        return None
    return body


def nova_entries(evidence: Evidence, run: str) -> Iterator[NovaEntry]:
    """The entries of a run in their order."""
    rows = evidence.query("SELECT seq, kind FROM nova_entries WHERE run = ? ORDER BY seq", run)
    return (NovaEntry(seq, kind, sound_body(evidence, seq, BY_NAME[kind])) for seq, kind in rows)


def actor_of(evidence: Evidence, seq: int) -> str:
    """Who an entry is attributed to, '' where no ledger holds it, or it cannot be read."""
    header = None if evidence.ledger is None else evidence.ledger.header(seq)
    try:
        return "" if header is None else parse_header(header).actor
    except (LedgerError, TypeError):
        return ""


def agent_tries(evidence: Evidence, subject: str, before: int) -> list[AgentTry]:
    """The runs of agents for a turn, the first of them first, as they stood before an entry."""
    rows = evidence.query(
        "SELECT spawn, attempt, seq, state, started, ended FROM agents"
        " WHERE role = ? AND subject = ? AND seq < ? ORDER BY attempt",
        ROLE, subject, before,
    )  # fmt: skip
    found = []
    for spawn, attempt, seq, state, started, ended in rows:
        if ended is None or ended > before:
            found.append(AgentTry(seq, TurnTry(spawn, attempt, "requested"), ""))
        elif state == "ended":
            one = TurnTry(spawn, attempt, state)
            found.append(_ended(evidence, one, seq, ended, began=started is not None))
        else:
            found.append(AgentTry(seq, TurnTry(spawn, attempt, state), ""))
    return found


def _ended(
    evidence: Evidence, one: TurnTry, requested: int, ended: int, *, began: bool
) -> AgentTry:
    body = sound_body(evidence, ended, kinds.ENDED)
    cost = None if body is None else body.get("cost")
    if body is None or (cost is not None and _COST.fullmatch(cost) is None):
        return AgentTry(requested, one, f"entry {ended} cannot be read")
    order = read_agent_order(evidence, requested)
    data = read_agent_output(evidence, ended, body["stdout"])
    judged = _EndJudged()  # of an end that was erased nothing can be
    if not erased_in_run(evidence, ended):
        is_kept = body["stdout"].get("content") is not None
        judged = _judge_end(body, order, data if is_kept else None, began=began)
    problem = body.get("problem") or ""
    one = one._replace(status=body["status"], problem=problem, cost=cost)
    why = judged.untold and f"entry {ended}: {judged.untold}"
    found = AgentTry(requested, one, why, judged.wrong, ended)
    if one.status != "ok":
        is_gone = one.status == "killed" and erased_in_run(evidence, ended)
        untold = f"why its agent was killed (entry {ended}) was erased" if is_gone else why
        said = read_agent_output(evidence, ended, body["stderr"])
        if said is None and not untold:
            untold = f"what its agent said at last (entry {ended}) cannot be read"
        told = told_problem(problem, said or b"")
        one = one._replace(is_cancelled=problem == CANCELLED, problem=told)
        if is_gone or not one.is_cancelled:
            return found._replace(one=one, untold=untold)
    if order is None:
        untold = f"the order in entry {requested} cannot be read"
        return found._replace(one=one, untold=untold)
    if data is None:
        return found._replace(one=one, untold=f"the output in entry {ended} cannot be read")
    answer = read_spec_answer(order.get("output", "text"), data, wants_structure="schema" in order)
    return found._replace(one=one._replace(answer=answer))


def read_agent_order(evidence: Evidence, seq: int) -> dict[str, Any] | None:
    """The order of an agent's run; None where it was erased, or is not what its digest says."""
    body = sound_body(evidence, seq, kinds.REQUESTED)
    if body is None or erased_in_run(evidence, seq):
        return None
    try:
        data = evidence.source.content(body["spec"])
        value = json.loads(data)
    except evidence.unreadable:
        return None
    except RecursionError:
        return None
    fits = sha256(data).hexdigest() == body["sha256"]
    return value if fits and isinstance(value, dict) else None


def read_agent_output(evidence: Evidence, seq: int, kept: Mapping[str, Any]) -> bytes | None:
    """What an agent printed, as its end in an entry holds it; b'' where it was too much to keep.

    None: it was erased, or is not what its digest says.
    """
    if erased_in_run(evidence, seq):
        return None
    if kept.get("content") is None:
        return b""  # as the runner reads it
    try:
        data = evidence.source.content(kept["content"])
    except evidence.unreadable:
        return None
    return data if sha256(data).hexdigest() == kept["digest"] else None


# How a run ended -------------------------------------------------------------------------------


class _EndJudged(NamedTuple):
    """What an end says that cannot be so, and why its words cannot be judged; '' where nothing."""

    wrong: str = ""
    untold: str = ""


def _judge_end(
    end: Mapping[str, Any],
    order: Mapping[str, Any] | None,
    stdout: bytes | None,
    *,
    began: bool,
) -> _EndJudged:
    """Judge how an agent's run is said to have ended.

    ``stdout`` is None where it was not kept, ``order`` where it cannot be read: then what follows
    from it is not judged. ``began``: an entry says that the program ran.
    """
    answer = None
    if order is not None and stdout is not None:
        form = order.get("output", "text")
        answer = read_spec_answer(form, stdout, wants_structure="schema" in order)
    wrong = _of_process(end, order, began=began) or _of_what_is_kept(end) or _of_answer(end, answer)
    return _EndJudged(wrong) if wrong else _of_words(end, order, answer)


def _of_process(end: Mapping[str, Any], order: Mapping[str, Any] | None, *, began: bool) -> str:
    """What exit code, signal and time say against the status."""
    status, code, number = end["status"], end.get("exit_code"), end.get("signal")
    if status == "not_started":
        is_there = code is not None or number is not None or end["stdout"]["bytes"]
        return "never began, and has an exit code, a signal or an output" if is_there else ""
    if not began:
        return f"is said to have ended ({status}), and no entry says that it began"
    if (code is None) == (not number):
        return "has an exit code and a signal" if number else "has no exit code and no signal"
    if status in _BY_ITSELF and code != 0:
        how = f"exit code {code}" if code else f"signal {number}"
        return f"is said to have ended by itself ({status}), and by {how}"
    if status == "nonzero" and not code:
        return "is said to have failed, and has no exit code but 0"
    if status == "killed" and not number and end.get("problem") != CANCELLED:
        return "is said to have been killed, and by no signal"
    if status == "timeout" and order is not None:
        allowed = order.get("timeout_ms")
        if not isinstance(allowed, int):
            return "is said to have been too slow, and its order sets no time"
        if end["wall_ms"] + 1 < allowed:  # both are rounded
            return f"is said to have been too slow after {end['wall_ms']} of {allowed} ms"
    return ""


def _of_what_is_kept(end: Mapping[str, Any]) -> str:
    """What an output that was not kept says against its size: all is kept, but what is too much."""
    changed: tuple[str, ...] = ()
    if end["status"] == "bad_output":
        changed = _CHANGED.get(end.get("problem") or "", ())
    for name in ("stdout", "stderr"):
        is_kept, size = end[name].get("content") is not None, end[name]["bytes"]
        if name in changed:
            if is_kept:
                return f"has {name} that another program is said to have changed"
        elif not is_kept and size <= kinds.KEPT_LIMIT:
            return f"lacks its {name} of {size} bytes, and so much is kept"
    return ""


def _of_answer(end: Mapping[str, Any], answer: Answer | None) -> str:
    """What the output says against the status, and against what the run is said to have cost."""
    status, cost = end["status"], end.get("cost")
    if status == "bad_output" and end.get("problem") in _CHANGED:
        answer = Answer(status)  # nothing of it counts
    if answer is None:
        return ""
    if status in _BY_ITSELF and answer.status != status:
        return f"is said to have ended as {status}, and by its output that is {answer.status}"
    if cost != answer.cost:
        return f"is said to have cost {cost}, and its output says {answer.cost}"
    return ""


def _of_words(
    end: Mapping[str, Any], order: Mapping[str, Any] | None, answer: Answer | None
) -> _EndJudged:
    """Whether its problem is told in the words that follow: they stand in the next prompt."""
    problem = end.get("problem") or ""
    if end["status"] == "not_started":
        return _of_no_start(problem, order)
    wanted = _words_of(end, answer)
    if problem == wanted:
        return _EndJudged()
    if wanted.startswith(NO_JSON) and problem.startswith(NO_JSON):
        return _EndJudged(untold="what is wrong with its JSON is told in words of another version")
    begins = f"{EXITED.format(code=end.get('exit_code'))}; {FAILED}"
    if answer is None and (end["status"] in _BY_ITSELF or problem.startswith(begins)):
        if problem in _OF_ANSWERS:
            return _EndJudged()
        return _EndJudged(untold="what it says of itself was not kept, or its order was erased")
    return _EndJudged("has a problem in other words than follow from how it ended")


def _words_of(end: Mapping[str, Any], answer: Answer | None) -> str:
    """The problem of an end whose status is right; of one that ended by itself what is known."""
    status, said = end["status"], "" if answer is None else answer.problem
    if status == "timeout":
        return TOO_SLOW.format(seconds=end["wall_ms"] / 1000)
    if status == "killed":
        is_told = end.get("problem") == CANCELLED
        return CANCELLED if is_told else SIGNALLED.format(signal=end["signal"])
    if status == "nonzero":
        told = f"; {said}" if said.startswith(FAILED) else ""
        return f"{EXITED.format(code=end['exit_code'])}{told}"
    if status == "bad_output":
        much = TOO_MUCH.format(most=end["stdout"]["bytes"])
        is_cut = end["stdout"].get("content") is None and end.get("problem") == much
        if is_cut or end.get("problem") in _CHANGED:
            return str(end["problem"])
    return said


def _of_no_start(problem: str, order: Mapping[str, Any] | None) -> _EndJudged:
    """Whether the words of a run that never began are those of the system."""
    begins = NOT_STARTED.format(reason="")
    if not problem.startswith(begins):
        return _EndJudged("has a problem in other words than follow from how it ended")
    reason = problem.removeprefix(begins)
    argv, cwd = ([], None) if order is None else (order["argv"], order.get("cwd"))
    known = {f"{word}: {error}" for word in (*argv[:1], cwd) for error in _ERRORS}
    if reason in known or _NO_WRAPPER.fullmatch(reason):
        return _EndJudged()
    return _EndJudged(untold="why it could not be started is told in words that are not known here")
