"""What the commands of the Scribe print, whoever is asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from tripod.decisions.read import Decision, DecisionHistory, Ref
from tripod.output import hanging, one_line
from tripod.projections.bus.format import age, format_time

if TYPE_CHECKING:
    from tripod.decisions.inbox import Item

SHOWN = 160  # characters of a payload
_BEFORE = {"reversed": "reverses", "mitigated": "mitigates"}
_AFTER = {"reversed": "reversed by", "mitigated": "mitigated by"}


def decision_lines(decision: Decision) -> Iterator[str]:
    """A decision in three lines."""
    mark = f"[SUPERSEDES {decision.supersedes}] " if decision.supersedes else ""
    parts = (
        _status(decision),
        decision.participants,
        decision.chat_ref,
        f"tags: {decision.risk_tags}",
        f"artefacts: {decision.artefacts}",
    )
    yield f"{decision.id} {mark}{hanging(decision.title)}"
    yield hanging(f"  {'; '.join(parts)}")
    yield f"  {hanging(decision.rationale)}"


def _status(decision: Decision) -> str:
    if decision.by is None:
        return decision.status
    return f"{decision.stands} by {decision.by} (logged as {decision.status})"


def history_lines(history: DecisionHistory) -> Iterator[str]:
    """A decision, where it comes from, and what became of it."""
    decision = history.decision
    yield from decision_lines(decision)
    how = "taken in" if history.observed else f"logged by {history.actor}"
    place = f"decision {decision.number}, entry {decision.seq}, in {one_line(history.file)}"
    yield f"  {how} at {history.at}: {place}"
    for ref in history.refs:
        yield _ref_line(ref)
    chain = (*history.earlier, decision)
    for old, new in pairwise(chain):
        verb = _BEFORE.get(new.status, "supersedes")
        who = "" if new is decision else f"{new.id} "
        yield f"  {who}{verb} {old.id} {one_line(old.title)}"
    for new in history.later:
        verb = _AFTER.get(new.status, "superseded by")
        who = "" if new.supersedes == decision.id else f"{new.supersedes} "
        yield f"  {who}{verb} {new.id} {one_line(new.title)}"


def _ref_line(ref: Ref) -> str:
    place = one_line(f"{ref.file}:~L{ref.line}")
    if ref.message is None:
        return f"  {place}: bound to no message"
    handle, time, text = ref.message
    return f"  {place}: [{format_time(time * 1_000_000)}] {handle}: {hanging(text)}"


def inbox_lines(items: Iterable[Item], now_us: int) -> Iterator[str]:
    """Two lines an event: its priority, file and age, and what it says."""
    for item in items:
        done = " acknowledged" if item.acked else ""
        yield f"[{item.priority}] {item.name} ({age(now_us, item.us)} ago){done}"
        if item.payload:
            text = item.payload if len(item.payload) <= SHOWN else f"{item.payload[:SHOWN]}..."
            yield f"  {one_line(text)}"
