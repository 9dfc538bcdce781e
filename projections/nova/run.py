"""A Nova run, folded from its entries, and what has to follow by the rules. Pure.

``NovaRun.apply`` follows what is recorded: a gate that let a synthesis through has let it through,
whatever the rule says. What the rule says are ``due_entry``, the next entry that can be computed,
and ``due_turns``, the turns that personas have to take. The decider appends and orders just these,
and the verifier holds the record against them: both read ``rules.STEPS``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

from tripod.projections.nova.rules import (
    SPEAKING,
    Choice,
    Epistemic,
    Facts,
    Flaws,
    State,
    Verdict,
    converged,
    critique_class,
    gate,
    next_step,
)

DCE, CAE = "core/DCE.md", "core/CAE.md"
"""The files of the coordinator and of the critic; all others are experts."""

Content = Callable[[dict[str, Any]], bytes]
"""Gives the bytes of a body's field."""

_ROLES: dict[State, str] = {
    "unpacking": "unpack", "analyzing": "expert", "synthesizing": "synthesis",
    "critiquing": "critique", "revising": "revision", "finalizing": "final",
}  # fmt: skip
BEFORE: dict[str, State] = {role: state for state, role in _ROLES.items()}
"""The state in which the turn of a role is due."""
_NOTHING = Decimal("0.0000")
_LISTS = (
    "requirements", "considerations", "experts", "findings", "consensus", "trade_offs",
    "dissenters", "open_questions", "edge_cases",
)  # fmt: skip


class Opening(NamedTuple):
    """How a run began: the question, the limits, the personas in the order of their files.

    A fork has the answers of the first ``parent_turn`` turns of its ``parent``.
    """

    run: str
    seq: int
    question: str
    config: Mapping[str, Any]
    personas: tuple[Mapping[str, Any], ...]
    parent: str = ""
    parent_turn: int = 0

    def named(self, path: str) -> str:
        """The short name of the persona with this file ('': no persona has it)."""
        return next((str(p["short_name"]) for p in self.personas if p["path"] == path), "")

    @property
    def experts(self) -> tuple[str, ...]:
        """The short names of all experts."""
        return tuple(str(p["short_name"]) for p in self.personas if p["path"] not in (DCE, CAE))


class NovaTurn(NamedTuple):
    """A turn that was recorded; ``epistemic`` is what it stated, or what counts instead.

    ``is_missing``: it had to state that, and did not so that it could be read.
    """

    number: int
    seq: int
    cycle: int
    role: str
    persona: str
    spawn: str
    text: str
    fields: Mapping[str, Any]
    epistemic: Epistemic | None
    is_missing: bool = False


class HumanChoice(NamedTuple):
    """What a person decided: the entry, the choice, the note; and who it was, '' where unknown."""

    seq: int
    choice: Choice
    note: str
    who: str


class DueTurn(NamedTuple):
    """A turn that a persona has to take; ``number`` is the one that it is told."""

    role: str
    persona: str
    cycle: int
    number: int

    @property
    def key(self) -> str:
        """The name of the turn within its run."""
        return f"{self.cycle}-{self.role}-{self.persona}"


class DueEntry(NamedTuple):
    """An entry that has to come next: its kind, and its body."""

    kind: str
    body: dict[str, Any]


@dataclass(slots=True)
class NovaCycle:
    """A cycle as far as it is recorded; its first turn has the number ``first``."""

    number: int
    first: int
    spoken: dict[str, NovaTurn] = field(default_factory=dict)
    missed: dict[str, str] = field(default_factory=dict)
    synthesis: NovaTurn | None = None
    converged: bool = False
    verdict: Verdict | None = None
    critique: NovaTurn | None = None
    flaws: Flaws | None = None


@dataclass(slots=True)
class NovaRun:
    """A run as far as it is recorded.

    ``selected`` are the experts in the coordinator's order. ``escalated`` is the entry that a
    person has to answer; ``human`` is what people decided so far. ``failure`` says why it
    failed, ``spent`` is what its turns cost.
    """

    opening: Opening
    state: State = "unpacking"
    cycles: list[NovaCycle] = field(default_factory=list)
    selected: tuple[str, ...] = ()
    turns: list[NovaTurn] = field(default_factory=list)
    syntheses: list[NovaTurn] = field(default_factory=list)
    escalated: int | None = None
    human: list[HumanChoice] = field(default_factory=list)
    spent: Decimal = _NOTHING
    failure: str = ""
    finalized: Mapping[str, Any] | None = None

    @classmethod
    def begun(cls, seq: int, body: Mapping[str, Any], content: Content) -> NovaRun:
        """The run that ``nova.opened`` begins."""
        question = content(body["question"]).decode("utf-8", "replace")
        fork = body.get("parent") or "", body.get("parent_turn") or 0
        opened = body["run"], seq, question, body["config"], tuple(body["personas"])
        return cls(Opening(*opened, *fork))

    @property
    def limit(self) -> int:
        """How many cycles there may be: the rounds, and those that people granted."""
        return int(self.opening.config["rounds"]) + sum(
            one.choice == "redirect" for one in self.human
        )

    @property
    def number(self) -> int:
        """The number of the cycle that the run is in; 0 before the first."""
        return self.cycles[-1].number if self.cycles else 0

    @property
    def last_critique(self) -> NovaTurn | None:
        """The newest critique."""
        return next((c.critique for c in reversed(self.cycles) if c.critique is not None), None)

    # What is recorded --------------------------------------------------------------------------

    def apply(
        self, seq: int, kind: str, body: Mapping[str, Any], content: Content, actor: str = ""
    ) -> None:
        """Follow an entry of the run by ``actor``, also one that the rules do not allow."""
        if kind in ("nova.turn.recorded", "nova.turn.missed"):
            self.spent += Decimal(body.get("cost") or 0)
            role, cycle = str(body["role"]), int(body["cycle"])
            if self.number < cycle:  # a record that goes on where it should not
                self._begin_cycle()
            if kind == "nova.turn.missed":
                self._miss(role, str(body["persona"]), str(body["problem"]))
            else:
                self._speak(_turn_of(seq, body, content))
        elif kind == "nova.converged":
            self._here().converged = True
        elif kind == "nova.gate.decided":
            self._here().verdict = body["decision"]
            self._go("gating", "gate")
        elif kind == "nova.critique.decided":
            self._here().flaws = body["decision"]
            self._go("deciding", "class")
        elif kind == "nova.escalated":
            self.escalated = seq
            if self.state != "awaiting_human":
                self._go(self.state, "budget")
        elif kind == "human.decided":
            self.escalated = None
            note = content(body["note"]).decode("utf-8", "replace").strip()
            self.human.append(HumanChoice(seq, body["choice"], note, actor))
            self._go("awaiting_human", "human", body["choice"])
        elif kind == "nova.finalized":
            self.finalized = body
            if body["outcome"] == "cancelled":
                self.state = "cancelled"

    def _speak(self, turn: NovaTurn) -> None:
        self.turns.append(turn)
        role = turn.role
        if role == "expert":
            self._here().spoken[turn.persona] = turn
            self._settle_experts()
            return
        if role == "unpack":
            named = dict.fromkeys(turn.fields.get("experts", ()))
            known = {name.casefold(): name for name in self.opening.experts}
            chosen = [known[one.casefold()] for one in named if one.casefold() in known]
            self.selected = tuple(dict.fromkeys(chosen)) or self.opening.experts
        elif role == "synthesis":
            self.syntheses.append(turn)
            self._here().synthesis = turn
        elif role == "critique":
            self._here().critique = turn
        self._go(BEFORE[role], role)

    def _miss(self, role: str, persona: str, problem: str) -> None:
        if role == "expert":
            self._here().missed[persona] = problem
            self._settle_experts()
        else:
            self.failure = f"{persona}: {problem}"
            self._go(BEFORE[role], "attempts used up")

    def _here(self) -> NovaCycle:
        """The newest cycle; a record that goes on where it should not begins one."""
        if not self.cycles:
            self._begin_cycle()
        return self.cycles[-1]

    def _settle_experts(self) -> None:
        cycle = self._here()
        if all(one in cycle.spoken or one in cycle.missed for one in self.selected):
            self._go("analyzing", "experts")
            if self.state == "failed":
                self.failure = "no_expert_spoke"

    def _go(self, source: State, event: str, choice: Choice = "accept") -> None:
        """Take the step that the table has for an event in a state."""
        step = next_step(source, event, self._facts(choice))
        if step is not None:
            self.state = step.target
            if step.again:
                self._begin_cycle()

    def _begin_cycle(self) -> None:
        self.cycles.append(NovaCycle(self.number + 1, len(self.turns) + 1))

    def _facts(self, choice: Choice = "accept") -> Facts:
        cycle = self.cycles[-1] if self.cycles else NovaCycle(0, 1)
        return Facts(
            cycle.number,
            self.limit,
            len(cycle.spoken),
            cycle.verdict or "proceed",
            cycle.converged,
            cycle.flaws or "solid",
            choice,
        )

    # What has to follow ------------------------------------------------------------------------

    def due_turns(self) -> Iterator[DueTurn]:
        """The turns that personas have to take now, in the order of their numbers."""
        role = _ROLES.get(self.state)
        if role is None or self.finalized is not None:
            return
        if role != "expert":
            persona = self.opening.named(CAE if role == "critique" else DCE)
            yield DueTurn(role, persona, self.number, len(self.turns) + 1)
            return
        cycle = self.cycles[-1]
        for place, persona in enumerate(self.selected):
            if persona not in cycle.spoken and persona not in cycle.missed:
                yield DueTurn(role, persona, cycle.number, cycle.first + place)

    def turns_left(self) -> int | None:
        """How many turns the budget still allows, None if it sets no limit.

        A person who decides allows the budget once more.
        """
        config, times = self.opening.config, 1 + len(self.human)
        if "cost" in config and self.spent >= Decimal(config["cost"]) * times:
            return 0
        if "turns" not in config:
            return None
        return max(0, int(config["turns"]) * times - len(self.turns))

    def due_entry(self) -> DueEntry | None:
        """The entry that has to come next by what is recorded, None where a turn or a person is."""
        if self.finalized is not None:
            return None
        if self.state == "gating":
            return self._due_gate()
        if self.state == "deciding":
            critique = self.cycles[-1].critique
            issues = () if critique is None else critique.fields.get("issues", ())
            decision = critique_class(str(one["severity"]) for one in issues)
            seq = -1 if critique is None else critique.seq
            body = {"cycle": self.number, "critique": seq, "decision": decision}
            return self._due("nova.critique.decided", body)
        if self.state == "awaiting_human":
            if self.escalated is not None:
                return None
            has_converged = bool(self.cycles) and self.cycles[-1].converged
            return self._due_escalation("converged_unresolved" if has_converged else "max_rounds")
        if self.state in SPEAKING:
            return self._due_escalation("budget") if self.turns_left() == 0 else None
        return self._due_end()

    def _due(self, kind: str, body: dict[str, Any]) -> DueEntry:
        return DueEntry(kind, {"run": self.opening.run} | body)

    def _due_gate(self) -> DueEntry:
        config, cycle = self.opening.config, self.cycles[-1]
        window, epsilon = int(config["window"]), Decimal(config["epsilon"])
        last = self.syntheses[-window - 1 :]
        states = [turn.epistemic for turn in last if turn.epistemic is not None]
        if not cycle.converged and converged(states, epsilon, window):
            seqs = [turn.seq for turn in last]
            body = {"cycle": cycle.number, "syntheses": seqs, "epsilon": config["epsilon"]}
            return self._due("nova.converged", body)
        synthesis = cycle.synthesis
        told = None if synthesis is None else synthesis.epistemic
        uncertainty = Decimal(1) if told is None else told.uncertainty
        body = {
            "cycle": cycle.number,
            "synthesis": -1 if synthesis is None else synthesis.seq,
            "uncertainty": share_text(uncertainty),
            "threshold": config["threshold"],
            "decision": gate(uncertainty, Decimal(config["threshold"])),
        }
        return self._due("nova.gate.decided", body)

    def _due_escalation(self, reason: str) -> DueEntry:
        synthesis = self.syntheses[-1] if self.syntheses else None
        critique = self.last_critique
        issues: Sequence[Mapping[str, str]] = (
            () if critique is None else critique.fields.get("issues", ())
        )
        body: dict[str, Any] = {
            "cycle": self.number,
            "reason": reason,
            "dissenters": 0 if synthesis is None else len(synthesis.fields.get("dissenters", ())),
            "critical": sum(one["severity"] == "critical" for one in issues),
            "turns": len(self.turns),
            "cost": f"{self.spent:f}",
        }
        if synthesis is not None:
            body["synthesis"] = synthesis.seq
        if critique is not None:
            body["critique"] = critique.seq
        return self._due("nova.escalated", body)

    def _due_end(self) -> DueEntry:
        final = self.turns[-1] if self.turns and self.turns[-1].role == "final" else None
        body: dict[str, Any] = {"cycles": self.number, "turns": len(self.turns)}
        body["cost"] = f"{self.spent:f}"
        if self.state == "failed":
            body |= {"outcome": "failed", "reason": self.failure}
        elif final is None:
            body |= {"outcome": "closed", "reason": "a person closed it"}
        else:
            accepted = bool(self.human) and self.human[-1].choice == "accept"
            body["outcome"] = "human_accepted" if accepted else "decided"
            body |= {"final": final.seq, "decision": str(final.fields.get("decision", "")).encode()}
            if final.epistemic is not None:
                body["confidence"] = share_text(final.epistemic.know)
            if "confidence" in final.fields:
                body["stated_confidence"] = final.fields["confidence"]
        return self._due("nova.finalized", body)


def share_text(share: Decimal) -> str:
    """A number from 0 to 1 as entries hold it: 0.5, 0.3501, 1."""
    return f"{share:f}"


def _turn_of(seq: int, body: Mapping[str, Any], content: Content) -> NovaTurn:
    try:
        fields = json.loads(content(body["parsed"]))
    except (ValueError, RecursionError):
        fields = {}  # it was erased
    told, is_missing = body.get("epistemic"), False
    if told is not None:
        is_missing = told.get("source") == "missing"
        told = Epistemic(Decimal(told["know"]), Decimal(told["uncertainty"]))
    return NovaTurn(
        int(body["turn"]),
        seq,
        int(body["cycle"]),
        str(body["role"]),
        str(body["persona"]),
        str(body["spawn"]),
        content(body["content"]).decode("utf-8", "replace"),
        _fields_of(fields),
        told,
        is_missing,
    )


def _fields_of(parsed: Any) -> dict[str, Any]:
    """The fields of an answer that have the form which the reader of answers gives them.

    A record may hold others, which only a forger can have made: they count as not there.
    """
    found: dict[str, Any] = {}
    for name, value in parsed.items() if isinstance(parsed, dict) else ():
        if name == "issues":
            issues = value if isinstance(value, list) else []
            found[name] = [one for one in issues if isinstance(one, dict) and _is_issue(one)]
        elif name in _LISTS:
            texts = value if isinstance(value, list) else []
            found[name] = [one for one in texts if isinstance(one, str)]
        elif isinstance(value, str):
            found[name] = value
    return found


def _is_issue(value: dict[str, Any]) -> bool:
    return all(isinstance(value.get(name), str) for name in ("severity", "text"))
