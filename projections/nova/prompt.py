"""What a persona is given: its own prompt, what it may see of the run, and what is wanted. Pure.

An expert sees the question, how it was unpacked, and from the second cycle on the last synthesis
and the last critique; never a turn of another expert (spec: nova N3.4). The coordinator and the
critic see the whole record (N3.5). ``sources`` of a prompt are the entries whose text is in it.
"""

from __future__ import annotations

from typing import NamedTuple

from tripod.projections.nova.run import DueTurn, NovaRun, NovaTurn

_FORM = """\
Answer with one JSON object, or in Markdown whose first lines are keys between two lines ---:

---
persona: {persona}
turn: {turn}
{keys}---

{text}"""
_EPISTEMIC = "epistemic: {{know: 0.0, uncertainty: 1.0}}   # required; each from 0 to 1\n"
_WANTED = {
    "unpack": (
        "requirements: [...]\nconsiderations: [...]\nexperts: [...]   # of: {experts}\n"
        + _EPISTEMIC,
        "Unpack the question.",
    ),
    "expert": (
        "findings: [...]\nrisk_level: LOW, MEDIUM, HIGH or CRITICAL   # if it is yours to judge\n",
        "Your analysis.",
    ),
    "synthesis": (
        "consensus: [...]\ntrade_offs: [...]\ndissenters: [...]\nopen_questions: [...]\n"
        + _EPISTEMIC,
        "Your proposal.",
    ),
    "critique": (
        """\
issues:   # required; [] where nothing is wrong
  - {{severity: critical or minor, text: ...}}
edge_cases: [...]
""",
        "What you want to add.",
    ),
    "revision": (
        "consensus: [...]\ntrade_offs: [...]\n",
        "The revised proposal, with an answer to each issue of the critique.",
    ),
    "final": (
        "confidence: 0.0   # if you state it apart from what you know\n" + _EPISTEMIC,
        "The decision.",
    ),
}


class NovaPrompt(NamedTuple):
    """The bytes of a prompt, and the entries whose text is in it."""

    data: bytes
    sources: tuple[int, ...]


def prompt_for_turn(run: NovaRun, due: DueTurn, persona: str, problem: str = "") -> NovaPrompt:
    """The prompt of a turn; ``problem`` says what was wrong with the answer before.

    ``persona`` is the persona's own prompt, with which this one begins.
    """
    shown = list(_seen_by_expert(run)) if due.role == "expert" else run.turns
    parts = [persona, f"# The question\n\n{run.opening.question.strip()}"]
    if shown:
        record = "\n\n".join(f"[{turn.persona}]: {turn.text.strip()}" for turn in shown)
        parts.append(f"# The record so far\n\n{record}")
    sources = [run.opening.seq, *(turn.seq for turn in shown)]
    asked = [said for said in run.human if said.note]
    if asked:
        parts.append("# What a person asked\n\n" + "\n\n".join(said.note for said in asked))
        sources += [said.seq for said in asked]
    keys, text = _WANTED[due.role]
    experts = ", ".join(run.opening.experts)
    form = _FORM.format(
        persona=due.persona, turn=due.number, keys=keys.format(experts=experts), text=text
    )
    parts.append(f"# What is wanted now\n\nThis is cycle {due.cycle}, role {due.role}.\n{form}")
    if problem:
        parts.append(f"Your answer before this one was refused: {problem}")
    return NovaPrompt(("\n\n".join(parts) + "\n").encode("utf-8", "replace"), tuple(sources))


def _seen_by_expert(run: NovaRun) -> list[NovaTurn]:
    unpack = [turn for turn in run.turns[:1] if turn.role == "unpack"]
    critique = run.last_critique
    return [*unpack, *run.syntheses[-1:], *([] if critique is None else [critique])]
