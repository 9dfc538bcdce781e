"""What the ledger holds of the agents that took a turn of a Nova run. Pure.

A text that was erased, or was not kept, says nothing for a turn and nothing against it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from tripod.ledger import LedgerError, parse_header
from tripod.ledger.kinds import agents as kinds
from tripod.ledger.kinds.base import Kind
from tripod.ledger.kinds.models import model_of
from tripod.ledger.kinds.registry import BY_NAME
from tripod.projections.nova.turns import ROLE, TurnTry, told_problem
from tripod.projections.workers.answers import CANCELLED, read_spec_answer
from tripod.verify.check import Evidence
from tripod.verify.isolation.runs import erased_in_run
from tripod.verify.nova.ends import EndJudged, judge_end

_SUBJECT = re.compile(
    r"([a-z0-9][a-z0-9-]{0,63})/(0|[1-9][0-9]{0,14})-"
    r"(unpack|expert|synthesis|critique|revision|final)-([a-z][a-z0-9_-]{0,31})"
)
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
    judged = EndJudged()  # of an end that was erased nothing can be
    if not erased_in_run(evidence, ended):
        is_kept = body["stdout"].get("content") is not None
        judged = judge_end(body, order, data if is_kept else None, began=began)
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
