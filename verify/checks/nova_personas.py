"""Each persona of a Nova run was given its own prompt, the question, and what it is to know.

**What it proves.** The beginning of each run holds a coordinator (``core/DCE.md``), a critic
(``core/CAE.md``) and at least one expert, each name once; the stored bytes are those of the digest
and are a persona's file of that name and title. Each agent's run with the role ``nova`` is for a
persona of its run; its recorded prompt begins with the prompt of that persona's file and holds the
question. The coordinator and the critic were given every turn before, whole and in order; an expert
how the question was unpacked, the last synthesis and the last critique. Nothing else was in it:
each prompt is computed again from the record (a wrong one of an expert is named by
``nova-independence``).

**Why it matters.** A critic that was told to agree, or an expert that was given another's part,
makes a panel of one voice. An edit of a persona's file must not reach a run that has begun. A
coordinator that was shown another record than the one here synthesised something else.

**What a finding looks like.** ``tea: the prompt of run 3f0c2a81 (1-critique-cae) does not begin
with that of its persona``; ``tea: the prompt of run 3f0c2a81 (1-synthesis-dce) lacks turn 3 (entry
30)``; ``tea: no persona has the file core/CAE.md``; ``tea: 2 personas are called security``; ``tea:
the bytes of security are not those of their digest``.

**What to do.** Compare the prompt (entry ``delivered``) with the persona in ``nova.opened``. What
the run decided counts as little as who was asked. *Cannot tell*: the personas, or a prompt, were
erased.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from tripod.ledger.errors import MalformedError
from tripod.ledger.kinds.agents import DELIVERED
from tripod.ledger.kinds.nova import OPENED
from tripod.projections.nova.answers import persona_prompt, read_persona
from tripod.projections.nova.run import CAE, DCE
from tripod.projections.nova.turns import ROLE
from tripod.verify.check import TABLES, Evidence, Finding, Outcome, not_applicable, outcome
from tripod.verify.isolation.runs import erased_in_run
from tripod.verify.nova.runs import (
    NO_RUN,
    told_nova,
    untold_prompts,
    walked_prompts,
)
from tripod.verify.nova.turns import NovaSubject, nova_entries, read_nova_subject, sound_body

NAME = "nova-personas"
REQUIRED = True
NEEDS = (TABLES,)
HELP = "compare the prompt (`delivered`) with the persona in `nova.opened`"


class _Said(NamedTuple):
    """A turn that agents are to be given: its entry, its number, its text."""

    seq: int
    number: int
    text: str


class _Panel(NamedTuple):
    """What a run's agents are to be given: the prompts of its personas, the question, the turns.

    ``turns`` has all of them, ``by_role`` those of each role, in their order. The question is ''
    where it was erased, and turns that were erased are left out.
    """

    prompts: Mapping[str, str]
    question: str
    turns: list[_Said]
    by_role: Mapping[str, list[_Said]]

    def owed(self, of: NovaSubject, before: int) -> Iterator[_Said]:
        """The turns that an agent has to be given which was ordered in an entry."""
        if of.role != "expert":
            yield from self.turns[: bisect_left(self.turns, (before,))]
            return
        for role in ("unpack", "synthesis", "critique"):
            turns = self.by_role.get(role, [])
            at = bisect_left(turns, (before,))
            if at:
                yield turns[at - 1]


def judge(evidence: Evidence) -> Outcome:
    """Judge the rule that this module's docstring states."""
    runs = evidence.query("SELECT run, seq FROM nova_runs ORDER BY seq")
    agents = evidence.query(
        "SELECT spawn, subject, seq FROM agents WHERE role = ? ORDER BY seq", ROLE
    )
    if not (runs or agents):
        return not_applicable(NAME, NO_RUN)
    untold: list[str] = []
    found: list[Finding] = []
    panels: dict[str, _Panel | None] = {}
    personas = 0
    for run, seq in runs:
        body = sound_body(evidence, seq, OPENED)
        if body is None or erased_in_run(evidence, seq):
            untold.append(f"{run}: its personas (entry {seq}) cannot be read")
            panels[run] = None
            continue
        personas += len(body["personas"])
        found += (
            evidence.finding(NAME, seq, f"{run}: {problem}", HELP)
            for problem in _problems(evidence, body["personas"])
        )
        panels[run] = _panel(evidence, run, body)
    for spawn, subject, seq in agents:
        of = read_nova_subject(subject)
        if of is None or of.run not in panels:
            message = f"run {spawn[:8]} is for no turn of a Nova run: {subject[:80]!r}"
            found.append(evidence.finding(NAME, seq, message, HELP))
            continue
        panel = panels[of.run]
        if panel is not None:  # else that is told already
            for is_broken, what in _judged(evidence, spawn, of, seq, panel):
                message = f"{of.run}: {what}"
                if is_broken:
                    found.append(evidence.finding(NAME, seq, message, HELP))
                else:
                    untold.append(message)
    named = {one.seq for one in found if one.seq is not None}
    found += (
        evidence.finding(NAME, one.seq, one.message, HELP)
        for one in walked_prompts(evidence, NAME, named)
    )
    untold += untold_prompts(evidence, NAME)
    seen = {"runs": len(runs), "personas": personas, "prompts": len(agents)}
    return told_nova(outcome(NAME, found, seen), untold)


def _problems(evidence: Evidence, personas: list[dict[str, Any]]) -> Iterator[str]:
    """What is wrong with the personas that a run began with."""
    paths = [one["path"] for one in personas]
    for path in (DCE, CAE):
        if paths.count(path) != 1:
            count = "no persona has" if path not in paths else "several personas have"
            yield f"{count} the file {path}"
    if not set(paths) - {DCE, CAE}:
        yield "it has no expert"
    for name, times in Counter(one["short_name"] for one in personas).items():
        if times > 1:
            yield f"{times} personas are called {name}"
    for one in personas:
        data = _data(evidence, one)
        if data is None:
            continue  # `bodies-present` names it
        if sha256(data).hexdigest() != one["sha256"]:
            yield f"the bytes of {one['short_name']} are not those of their digest"
            continue
        try:
            known = read_persona(data, one["path"])
        except MalformedError:
            yield f"the bytes of {one['short_name']} are no persona's file"
            continue
        if (known.short_name, known.role) != (one["short_name"], one["role"]):
            yield f"the file of {one['short_name']} is that of {known.short_name} ({known.role})"


def _data(evidence: Evidence, persona: Mapping[str, Any]) -> bytes | None:
    try:
        return evidence.source.content(persona["content"])
    except evidence.unreadable:
        return None


def _panel(evidence: Evidence, run: str, opened: Mapping[str, Any]) -> _Panel:
    """What is known of a run's prompts, question and turns."""
    turns: list[_Said] = []
    by_role: dict[str, list[_Said]] = {}
    for seq, kind, body in nova_entries(evidence, run):
        if kind == "nova.turn.recorded" and body is not None and not erased_in_run(evidence, seq):
            data = _data(evidence, body)
            if data is not None:
                said = _Said(seq, body["turn"], data.decode("utf-8", "replace").strip())
                turns.append(said)
                by_role.setdefault(body["role"], []).append(said)
    prompts = {
        one["short_name"]: persona_prompt(data)
        for one in opened["personas"]
        if (data := _data(evidence, one)) is not None
    }
    question = _data(evidence, {"content": opened["question"]}) or b""
    return _Panel(prompts, question.decode("utf-8", "replace").strip(), turns, by_role)


def _judged(
    evidence: Evidence, spawn: str, of: NovaSubject, ordered: int, panel: _Panel
) -> Iterator[tuple[bool, str]]:
    """What is wrong with the prompt of an agent's run (True), or why nobody can tell (False)."""
    who = f"run {spawn[:8]} ({of.cycle}-{of.role}-{of.persona})"
    own = panel.prompts.get(of.persona)
    if own is None:
        yield True, f"{who} is for no persona of it"
        return
    given = 0
    for (seq,) in evidence.query("SELECT seq FROM handed WHERE spawn = ? ORDER BY seq", spawn):
        body = sound_body(evidence, seq, DELIVERED)
        if body is None or erased_in_run(evidence, seq):
            yield False, f"what {who} was given (entry {seq}) cannot be read"
            return
        if body["channel"] != "prompt":
            continue
        given += 1
        data = _data(evidence, body)
        if data is None:
            yield False, f"the prompt of {who} (entry {seq}) is not there"
            return
        text, owed = data.decode("utf-8", "replace"), panel.owed(of, ordered)
        what = _lacking(text, own, panel, owed, in_order=of.role != "expert")
        if what:
            yield True, f"the prompt of {who} {what}"
    if not given:
        yield False, f"no entry holds the prompt of {who}"


def _lacking(
    text: str,
    own: str,
    panel: _Panel,
    owed: Iterable[_Said],
    *,
    in_order: bool,
) -> str:
    """What a prompt has to hold, and does not; '' where it holds all."""
    if not text.startswith(f"{own}\n\n"):
        return "does not begin with that of its persona"
    at = text.find(panel.question, len(own))
    if at < 0:
        return "does not hold the question"
    at += len(panel.question)
    for said in owed:
        place = text.find(said.text, at)
        if place < 0:
            return f"lacks turn {said.number} (entry {said.seq})"
        at = place + len(said.text) if in_order else at
    return ""
