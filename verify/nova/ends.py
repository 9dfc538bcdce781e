"""How an agent's run is said to have ended, held against what else its entries say. Pure.

The status follows from the exit code, the signal, the time and the output, as ``spool_result`` in
``tripod.agents`` finds it; an end that contradicts itself was recorded by something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

from tripod.ledger.kinds.agents import KEPT_LIMIT
from tripod.projections.workers.answers import ALTERED, CANCELLED, Answer, read_spec_answer

_BY_ITSELF = ("ok", "empty_output", "bad_output")
"""What a program is said to have ended as whose exit code is 0: its output decides."""

_OUTPUTS = ("stdout", "stderr", "left")
_SOME = [names for many in (1, 2, 3) for names in combinations(_OUTPUTS, many)]
_CHANGED = {ALTERED.format(names=" and ".join(names)): names for names in _SOME}
"""The outputs that another program is said to have changed, by the problem that says so."""


def contradiction(
    end: Mapping[str, Any],
    order: Mapping[str, Any] | None,
    stdout: bytes | None,
    *,
    began: bool,
) -> str:
    """What the end of an agent's run says that cannot be so, '' where all of it can.

    ``stdout`` is None where it was not kept, ``order`` where it cannot be read: then what follows
    from it is not judged. ``began``: an entry says that the program ran.
    """
    answer = None
    if order is not None and stdout is not None:
        form = order.get("output", "text")
        answer = read_spec_answer(form, stdout, wants_structure="schema" in order)
    return _of_process(end, order, began=began) or _of_what_is_kept(end) or _of_answer(end, answer)


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
