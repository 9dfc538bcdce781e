"""The prompts of a Nova run, computed again: what an agent was given has to be just that. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tripod.ledger.kinds.agents import DELIVERED
from tripod.projections.nova.answers import persona_prompt
from tripod.projections.nova.prompt import prompt_for_turn
from tripod.projections.nova.run import DueTurn, NovaRun
from tripod.projections.nova.turns import stand_of_tries
from tripod.verify.check import Evidence
from tripod.verify.isolation.runs import erased_in_run
from tripod.verify.nova.turns import AgentTry, sound_body


class GivenPrompt(NamedTuple):
    """A prompt that an agent was given: its entry, its bytes, and the sources that it names."""

    seq: int
    data: bytes
    sources: tuple[int, ...]


def prompt_given(evidence: Evidence, spawn: str) -> GivenPrompt | None:
    """The prompt of an agent's run; None where it had none, or it cannot be read."""
    for (seq,) in evidence.query("SELECT seq FROM handed WHERE spawn = ? ORDER BY seq", spawn):
        body = sound_body(evidence, seq, DELIVERED)
        if body is None or body["channel"] != "prompt" or erased_in_run(evidence, seq):
            continue
        try:
            data = evidence.source.content(body["content"])
        except evidence.unreadable:
            return None
        return GivenPrompt(seq, data, tuple(body["sources"]))
    return None


class StrangePrompt(NamedTuple):
    """A prompt that is not what the record gives; ``is_more``: it holds all of that, and more."""

    seq: int
    message: str
    is_more: bool


def strange_prompts(
    evidence: Evidence, run: NovaRun, due: DueTurn, tries: Sequence[AgentTry]
) -> Iterator[StrangePrompt]:
    """The prompts of the tries at a due turn that are not those which the record gives.

    ``run`` stands as it did when the turn was due. The problems of earlier tries stand in a prompt,
    so one behind a try that cannot be read is passed.
    """
    personas = run.opening.personas
    own = next((one for one in personas if one["short_name"] == due.persona), None)
    if own is None:
        return  # `nova-order` names it
    try:
        text = persona_prompt(evidence.source.content(own["content"]))
    except evidence.unreadable:
        return  # `bodies-present` names it
    for place, one in enumerate(tries):
        before = tries[:place]
        if any(earlier.untold for earlier in before):
            return
        problem = stand_of_tries(run, due, [earlier.one for earlier in before]).problem
        given = prompt_given(evidence, one.one.spawn)
        if given is None:
            continue  # `nova-personas` says so
        wanted = prompt_for_turn(run, due, text, problem)
        who = f"{due.persona} ({due.role}, cycle {due.cycle})"
        if given.data != wanted.data:
            is_more = _holds(given.data, wanted.data)
            what = "more in its prompt than" if is_more else "another prompt than"
            yield StrangePrompt(given.seq, f"{who} was given {what} the record gives", is_more)
        elif given.sources != wanted.sources:
            message = f"{who} was given a prompt whose sources are said to be others"
            yield StrangePrompt(given.seq, message, is_more=True)


def _holds(given: bytes, wanted: bytes) -> bool:
    """Whether a prompt has all lines of another one, in their order."""
    lines = iter(given.split(b"\n"))
    return all(any(line in own for own in lines) for line in wanted.strip().split(b"\n"))
