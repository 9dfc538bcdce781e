"""How an agent's run is said to have ended, held against what else its entries say. Pure.

The status follows from the exit code, the signal, the time and the output, as ``spool_result`` in
``tripod.agents`` finds it; an end that contradicts itself was recorded by something else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import combinations
from typing import Any, NamedTuple

from tripod.ledger.kinds.agents import KEPT_LIMIT
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


class EndJudged(NamedTuple):
    """What an end says that cannot be so, and why its words cannot be judged; '' where nothing."""

    wrong: str = ""
    untold: str = ""


def judge_end(
    end: Mapping[str, Any],
    order: Mapping[str, Any] | None,
    stdout: bytes | None,
    *,
    began: bool,
) -> EndJudged:
    """Judge how an agent's run is said to have ended.

    ``stdout`` is None where it was not kept, ``order`` where it cannot be read: then what follows
    from it is not judged. ``began``: an entry says that the program ran.
    """
    answer = None
    if order is not None and stdout is not None:
        form = order.get("output", "text")
        answer = read_spec_answer(form, stdout, wants_structure="schema" in order)
    wrong = _of_process(end, order, began=began) or _of_what_is_kept(end) or _of_answer(end, answer)
    return EndJudged(wrong) if wrong else _of_words(end, order, answer)


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
        elif not is_kept and size <= KEPT_LIMIT:
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
) -> EndJudged:
    """Whether its problem is told in the words that follow: they stand in the next prompt."""
    problem = end.get("problem") or ""
    if end["status"] == "not_started":
        return _of_no_start(problem, order)
    wanted = _words_of(end, answer)
    if problem == wanted:
        return EndJudged()
    if wanted.startswith(NO_JSON) and problem.startswith(NO_JSON):
        return EndJudged(untold="what is wrong with its JSON is told in words of another version")
    begins = f"{EXITED.format(code=end.get('exit_code'))}; {FAILED}"
    if answer is None and (end["status"] in _BY_ITSELF or problem.startswith(begins)):
        if problem in _OF_ANSWERS:
            return EndJudged()
        return EndJudged(untold="what it says of itself was not kept, or its order was erased")
    return EndJudged("has a problem in other words than follow from how it ended")


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


def _of_no_start(problem: str, order: Mapping[str, Any] | None) -> EndJudged:
    """Whether the words of a run that never began are those of the system."""
    begins = NOT_STARTED.format(reason="")
    if not problem.startswith(begins):
        return EndJudged("has a problem in other words than follow from how it ended")
    reason = problem.removeprefix(begins)
    argv, cwd = ([], None) if order is None else (order["argv"], order.get("cwd"))
    known = {f"{word}: {error}" for word in (*argv[:1], cwd) for error in _ERRORS}
    if reason in known or _NO_WRAPPER.fullmatch(reason):
        return EndJudged()
    return EndJudged(untold="why it could not be started is told in words that are not known here")
