"""Nova runs walked through entry by entry, each entry held against what the rules say there. Pure.

The walk follows what is recorded, so that what follows from one wrong entry is not named as well.
Each problem belongs to one check, and several checks ask for the same walk: it is done once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from itertools import chain
from typing import Any, NamedTuple
from weakref import ref

from tripod.ledger import LedgerError
from tripod.projections.nova.rules import SPEAKING
from tripod.projections.nova.run import BEFORE, DueEntry, DueTurn, NovaRun, Opening
from tripod.projections.nova.turns import ROLE, is_of_panel, stand_of_tries
from tripod.verify.check import (
    Evidence,
    Finding,
    Folded,
    Outcome,
    not_applicable,
    outcome,
)
from tripod.verify.isolation.runs import erased_in_run
from tripod.verify.nova.prompts import prompt_given, strange_prompts
from tripod.verify.nova.turns import (
    AgentTry,
    actor_of,
    agent_tries,
    nova_entries,
    read_nova_subject,
)

ORDER, GATE, ROUNDS = "nova-order", "nova-gate", "nova-rounds"
CONVERGENCE, CRITIQUE, RESULT = "nova-convergence", "nova-critique", "nova-result"
PERSONAS, INDEPENDENCE = "nova-personas", "nova-independence"
WALKED = (ORDER, GATE, ROUNDS, CONVERGENCE, CRITIQUE, RESULT)
"""The checks that ask for the walk alone; two others ask for the prompts that it found wrong."""

NO_RUN = "no Nova run was begun"
FEW = 3  # reasons that are told; of more, their number

_CHECKS = {
    "nova.opened": ORDER, "nova.turn.recorded": ORDER, "nova.turn.missed": ORDER,
    "nova.converged": CONVERGENCE, "nova.gate.decided": GATE, "nova.critique.decided": CRITIQUE,
    "nova.escalated": ROUNDS, "human.decided": ROUNDS, "nova.finalized": RESULT,
    "checkpoint.named": RESULT,
}  # fmt: skip
"""The check that judges an entry of a kind, and that names one which is missing."""

_UNFIT = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, LedgerError)
"""What following an entry may raise that fits its kind and nothing else."""

_TURNS = ("nova.turn.recorded", "nova.turn.missed")
_MINUTE = re.compile(r"CKPT-([0-9]{6}-[0-9]{4})(?:-[0-9]+)?")
_LATE = 120 * 10**6  # microseconds by which a checkpoint's minute may differ from its entry's time


class NovaProblem(NamedTuple):
    """What is wrong with an entry of a run, and which check names it."""

    check: str
    seq: int
    message: str


@dataclass(slots=True)
class WalkedRun:
    """What the walk through a run found: problems, and by check what cannot be told.

    ``seen`` counts the entries by kind, ``looked_at`` are the agents' runs that were judged.
    """

    name: str
    problems: list[NovaProblem] = field(default_factory=list)
    untold: list[tuple[str, str]] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    looked_at: set[str] = field(default_factory=set)


# The last walks, for the evidence that they are of: six checks ask for them one after the other.
_last: list[tuple[ref[Folded], list[WalkedRun]]] = []


def walked_nova_runs(evidence: Evidence) -> list[WalkedRun]:
    """Each run of the ledger, walked through."""
    for known, walks in _last[:1]:
        if known() is evidence.team:
            return walks
    names = evidence.query("SELECT run, min(seq) FROM nova_entries GROUP BY run ORDER BY 2")
    walks = [_Walk(evidence, name).result for name, _ in names]
    _last[:] = [(ref(evidence.team), walks)]
    return walks


def judge_walked_runs(
    evidence: Evidence,
    check: str,
    help_: str,
    kinds: Mapping[str, str],
    also: Iterable[Finding] = (),
) -> Outcome:
    """The outcome of a check that asks for the walk; ``kinds`` are counted, each under its word.

    ``also`` are findings beside those of the walk.
    """
    walks = walked_nova_runs(evidence)
    if not walks:
        return not_applicable(check, NO_RUN)
    of_walk = _findings(evidence, walks, check, help_)
    found = outcome(check, chain(of_walk, also), {"runs": len(walks)})
    for word, kind in kinds.items():
        found.coverage[word] = sum(one.seen[kind] for one in walks)
    untold = [f"{one.name}: {why}" for one in walks for of, why in one.untold if of == check]
    return told_nova(found, untold)


def _findings(
    evidence: Evidence, walks: Iterable[WalkedRun], check: str, help_: str
) -> Iterator[Finding]:
    for one in walks:
        for problem in one.problems:
            if problem.check == check:
                message = f"{one.name}: {problem.message}"
                yield evidence.finding(check, problem.seq, message, help_)


def walked_prompts(evidence: Evidence, check: str, known: set[int]) -> Iterator[NovaProblem]:
    """What the walk found wrong with prompts for another check, but for entries that it named."""
    for one in walked_nova_runs(evidence):
        for problem in one.problems:
            if problem.check == check and not {problem.seq, problem.seq - 1} & known:
                yield problem._replace(message=f"{one.name}: {problem.message}")


def untold_prompts(evidence: Evidence, check: str) -> Iterator[str]:
    """Why the walk could not judge prompts for another check."""
    for one in walked_nova_runs(evidence):
        yield from (f"{one.name}: {why}" for of, why in one.untold if of == check)


def told_nova(found: Outcome, untold: Iterable[str]) -> Outcome:
    """An outcome, or *cannot tell* where nothing is broken and something could not be judged."""
    why = list(dict.fromkeys(untold))
    if not why or found.failures:
        return found
    more = [f"and {len(why) - FEW} more"] if len(why) > FEW else []
    return found.cannot_tell("; ".join(why[:FEW] + more))


def differing_fields(
    body: Mapping[str, Any], due: Mapping[str, Any], read: Callable[[Any], bytes]
) -> Iterator[str]:
    """What a body says and what it has to say, in words, for each field in which they differ.

    ``read`` gives the bytes of a content. A field that is None is left out.
    """
    for name in sorted({*body, *due} - {"v"}):
        value, wanted = body.get(name), due.get(name)
        if isinstance(wanted, bytes):
            if value is None or read(value) != wanted:
                yield f"its {name} is not that"
        elif value != wanted:
            yield f"its {name} is {value}, and by the record it is {wanted}"


class _Walk:
    """One run on its way through its entries; ``at`` is the place of the entry that is judged.

    ``used_up`` is the entry with which the budget was used up, ``ended`` the one that ended the
    run, ``named`` that of its checkpoint. ``erased`` are entries whose text is gone. Of a fork,
    ``of_parent`` are its parent's turns, ``inherited`` is how many there were.
    """

    def __init__(self, evidence: Evidence, name: str) -> None:
        self.evidence = evidence
        self.result = WalkedRun(name)
        self.entries = list(nova_entries(evidence, name))
        self.erased = {e.seq for e in self.entries if erased_in_run(evidence, e.seq)}
        self.run: NovaRun | None = None
        self.at = 0
        self.used_up: int | None = None
        self.ended: int | None = None
        self.named: int | None = None
        self.unsaid: set[int] = set()
        self.inherited = 0
        self.of_parent: dict[str, tuple[str, bytes]] = {}
        try:
            self.go()
        except _UNFIT as error:
            seq = self.entries[self.at].seq
            self.cannot_judge(f"entry {seq} cannot be followed ({type(error).__name__})")

    # What is found -----------------------------------------------------------------------------

    def problem(self, check: str, seq: int, message: str) -> None:
        """Note what is wrong with an entry; a check names it once."""
        found = self.result.problems
        if not any((one.check, one.seq) == (check, seq) for one in found[-8:]):
            found.append(NovaProblem(check, seq, message))

    def cannot_judge(self, why: str) -> None:
        """Note that the rest of the run cannot be judged."""
        self.result.untold += ((check, why) for check in WALKED)

    def untold(self, check: str, why: str) -> None:
        """Note what cannot be told for a check."""
        self.result.untold.append((check, why))

    # The walk ----------------------------------------------------------------------------------

    def go(self) -> None:
        """Judge and follow each entry, as far as they can be read."""
        for at, (seq, kind, body) in enumerate(self.entries):
            self.at = at
            self.result.seen[kind] += 1
            if body is None:
                self.cannot_judge(f"entry {seq} cannot be read")
                return
            if kind == "nova.opened":
                self.begin(seq, body)
            elif self.run is None:
                self.problem(_CHECKS[kind], seq, f"{kind}, and no entry before it begins the run")
            elif kind == "checkpoint.named":
                self.checkpoint(seq, body)
            elif self.run.finalized is not None:
                self.problem(
                    _CHECKS[kind], seq, f"{kind}, and the run was over at entry {self.ended}"
                )
            elif not self.step(self.run, seq, kind, body):
                return
        if self.run is not None:
            self.finish(self.run)
            self.strangers(self.run)

    def begin(self, seq: int, body: dict[str, Any]) -> None:
        """Begin the run, once."""
        if self.run is not None:
            self.problem(ORDER, seq, "it begins a second time")
            return
        read = self.evidence.source.content
        self.run = NovaRun.begun(seq, body, read)
        if seq in self.erased:
            self.untold(ORDER, f"its personas (entry {seq}) were erased")
        elif sha256(read(body["question"])).hexdigest() != body["sha256"]:
            self.problem(PERSONAS, seq, "its question is not that of its digest")
        if self.run.opening.parent:
            self.parent(seq, self.run.opening)

    def parent(self, seq: int, opening: Opening) -> None:
        """Judge whether the run exists that a fork goes on from, and keep its turns."""
        turns = {}
        for at, kind, body in nova_entries(self.evidence, opening.parent):
            if kind == "nova.turn.recorded" and body is not None and at < seq:
                key = DueTurn(body["role"], body["persona"], body["cycle"], 0).key
                if at not in self.erased and not erased_in_run(self.evidence, at):
                    turns[key] = body["spawn"], self.evidence.source.content(body["content"])
                self.inherited = max(self.inherited, body["turn"])
        self.of_parent = turns
        if self.inherited < opening.parent_turn:
            message = f"it goes on from turn {opening.parent_turn} of {opening.parent}"
            self.problem(ORDER, seq, f"{message}, which had {self.inherited} turns")

    def step(self, run: NovaRun, seq: int, kind: str, body: dict[str, Any]) -> bool:
        """Judge and follow an entry of an open run; False where the rest cannot be followed."""
        if not (kind == "nova.finalized" and body["outcome"] == "cancelled"):
            self.missing(run, seq, kind)
        if kind in _TURNS:
            return self.turn(run, seq, kind, body)
        judges = {
            "nova.converged": self.converged,
            "nova.gate.decided": self.gate,
            "nova.critique.decided": self.critique,
            "nova.escalated": self.escalated,
            "human.decided": self.human,
            "nova.finalized": self.finalized,
        }
        judges[kind](run, seq, body)
        return True

    def follow(self, run: NovaRun, seq: int, kind: str, body: Mapping[str, Any]) -> None:
        """Let an entry count, and note when the budget is used up."""
        run.apply(seq, kind, body, self.evidence.source.content)
        if run.turns_left() != 0:
            self.used_up = None
        elif self.used_up is None or kind == "human.decided":
            self.used_up = seq

    def due(self, run: NovaRun) -> DueEntry | None:
        """The entry that has to come next, but for a convergence that was missed already."""
        due = run.due_entry()
        if due is not None and due.kind == "nova.converged" and run.number in self.unsaid:
            run.cycles[-1].converged = True
            due = run.due_entry()
            run.cycles[-1].converged = False
        return due

    def missing(self, run: NovaRun, seq: int, kind: str) -> None:
        """Name entries that had to come before this one, and go on as if they had."""
        for _ in range(4):
            due = self.due(run)
            if due is None or due.kind == kind or run.state in SPEAKING:
                return
            if due.kind == "nova.gate.decided" and kind == "nova.converged":
                return
            self.problem(
                _CHECKS[due.kind], seq, f"{due.kind} had to come before it, and is missing"
            )
            if due.kind == "nova.converged":
                self.unsaid.add(run.number)
                if self.counts_as_converged(run):
                    run.cycles[-1].converged = True
            else:
                self.follow(run, -1, due.kind, due.body)

    def counts_as_converged(self, run: NovaRun) -> bool:
        """Whether the record goes on as if the syntheses of this cycle had converged."""
        for _, kind, body in self.entries[self.at :]:
            if kind == "nova.escalated" and body is not None:
                return bool(body["reason"] == "converged_unresolved")
            if kind in _TURNS and body is not None and body["cycle"] > run.number:
                return False
        return False

    def finish(self, run: NovaRun) -> None:
        """Name what had to follow the last entry; on a person's decision the next command acts."""
        seq, kind, _ = self.entries[-1]
        if run.finalized is not None:
            if self.named is None and self.ended is not None:
                message = "it is over, and no checkpoint names the position"
                self.problem(RESULT, self.ended, message)
            return
        self.begun_turns(run, self.evidence.size)
        due = self.due(run)
        if run.state in SPEAKING and self.begun(run, self.evidence.size):
            return  # a person is asked when the turns that were begun are recorded
        if due is not None and kind != "human.decided":
            self.problem(_CHECKS[due.kind], seq, f"{due.kind} has to follow it, and does not")

    def strangers(self, run: NovaRun) -> None:
        """Name agents that were ordered for a turn of this run which was never due."""
        if self.erased:
            return  # nobody knows which were
        name = run.opening.run
        sql = (
            "SELECT spawn, subject, seq FROM agents WHERE role = ? AND subject > ? AND subject < ?"
        )
        for spawn, subject, seq in self.evidence.query(sql, ROLE, f"{name}/", f"{name}0"):
            if spawn not in self.result.looked_at and read_nova_subject(subject) is not None:
                what = f"run {spawn[:8]} was ordered for {subject.partition('/')[2]}"
                self.problem(ORDER, seq, f"{what}, a turn that was never due")

    # Turns -------------------------------------------------------------------------------------

    def turn(self, run: NovaRun, seq: int, kind: str, body: dict[str, Any]) -> bool:
        """Judge a turn, or that one was missed."""
        role, persona, cycle = body["role"], body["persona"], body["cycle"]
        who = f"{persona} ({role}, cycle {cycle})"
        is_known = run.opening.seq not in self.erased  # else its personas were erased
        due = next(run.due_turns(), None)
        fits = due is not None and (due.role, due.persona, due.cycle) == (role, persona, cycle)
        if run.state == "awaiting_human":
            self.problem(ROUNDS, seq, f"{who}, and a person had to decide before")
        elif cycle > run.limit:
            self.problem(ROUNDS, seq, f"{who}, and only {run.limit} cycles were allowed")
        elif not fits and is_known:
            wanted = "no turn" if due is None else f"{due.persona} ({due.role}, cycle {due.cycle})"
            self.problem(ORDER, seq, f"{who}, and {wanted} was due")
        number = len(run.turns) + 1
        if kind == "nova.turn.recorded" and body["turn"] != number:
            self.problem(ORDER, seq, f"{who} has the number {body['turn']}, where {number} follows")
        this = due if due is not None and fits else DueTurn(role, persona, cycle, 0)
        tries = agent_tries(self.evidence, f"{run.opening.run}/{this.key}", seq)
        self.budget(run, seq, who, tries)
        self.prompts(run, this, self.with_later(run, this, seq, tries), is_sure=fits and is_known)
        if kind == "nova.turn.recorded":
            self.inherit(run, seq, this, body)
        self.tried(run, seq, this, tries, is_labelled=fits and is_known)
        if cycle > run.number + 1:
            return False  # named above
        if not fits:
            run.state = BEFORE[role]
            run.escalated = None
        self.follow(run, seq, kind, body)
        if role == "unpack" and kind == "nova.turn.recorded" and seq in self.erased:
            self.untold(ORDER, f"which experts it asks for (entry {seq}) was erased")
            run.selected = self.heard() or run.selected
        elif not is_known:
            run.selected = self.heard()
        return True

    def with_later(
        self, run: NovaRun, due: DueTurn, seq: int, tries: list[AgentTry]
    ) -> list[AgentTry]:
        """The tries at a turn, and those that were ordered after it was recorded in an entry."""
        subject = f"{run.opening.run}/{due.key}"
        sql = "SELECT 1 FROM agents WHERE role = ? AND subject = ? AND seq > ? LIMIT 1"
        is_more = self.evidence.query(sql, ROLE, subject, seq)
        return agent_tries(self.evidence, subject, self.evidence.size) if is_more else tries

    def begun_turns(self, run: NovaRun, before: int) -> None:
        """Judge agents that were ordered before an entry for turns that are due, and not taken."""
        is_known = run.opening.seq not in self.erased
        for turn in run.due_turns():
            tries = agent_tries(self.evidence, f"{run.opening.run}/{turn.key}", before)
            self.prompts(run, turn, tries, is_sure=is_known)

    def prompts(self, run: NovaRun, due: DueTurn, tries: list[AgentTry], *, is_sure: bool) -> None:
        """Name what cannot be so of a turn's agents: how they ended, and what they were asked."""
        who = f"{due.persona} ({due.role}, cycle {due.cycle})"
        for agent in tries:
            if agent.wrong:
                self.problem(ORDER, agent.ended, f"{who}: run {agent.one.spawn[:8]} {agent.wrong}")
        self.result.looked_at |= {agent.one.spawn for agent in tries}
        if not is_sure:
            return  # named or told above: nobody knows what it had to be given
        if self.erased:
            check = INDEPENDENCE if due.role == "expert" else PERSONAS
            self.untold(check, f"what agents had to be given (entry {min(self.erased)} was erased)")
            return
        for one in strange_prompts(self.evidence, run, due, tries):
            is_told = due.role == "expert" and one.is_more
            self.problem(INDEPENDENCE if is_told else PERSONAS, one.seq, one.message)

    def inherit(self, run: NovaRun, seq: int, due: DueTurn, body: Mapping[str, Any]) -> None:
        """Hold a turn of a fork against its parent's: the same prompt has the same answer."""
        number, theirs = len(run.turns) + 1, self.of_parent.get(due.key)
        if theirs is None or number > run.opening.parent_turn or seq in self.erased:
            return
        given = [prompt_given(self.evidence, spawn) for spawn in (body["spawn"], theirs[0])]
        asked = [one.data for one in given if one is not None]
        if asked[:1] == asked[1:] and self.evidence.source.content(body["content"]) != theirs[1]:
            who = f"{due.persona} ({due.role}, cycle {due.cycle})"
            message = f"{who} answers as in no turn of {run.opening.parent}, and was asked the same"
            self.problem(ORDER, seq, message)

    def heard(self) -> tuple[str, ...]:
        """The experts of the first cycle, as the record has them."""
        bodies = (one.body for one in self.entries if one.kind in _TURNS and one.body is not None)
        experts = (b["persona"] for b in bodies if b["role"] == "expert" and b["cycle"] == 1)
        return tuple(dict.fromkeys(experts))

    def budget(self, run: NovaRun, seq: int, who: str, tries: list[AgentTry]) -> None:
        """Name a turn that was ordered when nothing was left to be spent."""
        if self.used_up is None or run.state not in SPEAKING:
            return
        allowed = int(run.opening.config.get("turns", 2**53)) * (1 + len(run.human))
        was_begun = bool(tries) and tries[0].requested < self.used_up
        # Of turns just those are begun that are allowed: one more is too many, whenever begun.
        if len(run.turns) >= allowed or not (was_begun or self.begun(run, self.used_up)):
            message = f"{who} was ordered after the budget was used up at entry {self.used_up}"
            self.problem(ROUNDS, seq, f"{message}, and no person allowed more")

    def begun(self, run: NovaRun, before: int) -> bool:
        """Whether an agent was ordered for a due turn before an entry.

        Turns are recorded in their order: one that was begun waits for those before it.
        """
        name = run.opening.run
        return any(agent_tries(self.evidence, f"{name}/{d.key}", before) for d in run.due_turns())

    def tried(
        self, run: NovaRun, seq: int, due: DueTurn, tries: list[AgentTry], *, is_labelled: bool
    ) -> None:
        """Hold a turn against what its agents answered."""
        _, kind, body = self.entries[self.at]
        assert body is not None
        who = f"{due.persona} ({due.role}, cycle {due.cycle})"
        spawns = [body["spawn"]] if "spawn" in body else body["spawns"]
        strange = [one for one in spawns if one not in [t.one.spawn for t in tries]]
        if strange:
            what = f"no run {strange[0][:8]} of an agent with the role {ROLE} was for this turn"
            self.problem(ORDER, seq, f"{who}: {what}")
            return
        untold = [one.untold for one in tries if one.untold]
        if untold:
            self.untold(ORDER, f"{who}: {untold[0]}")
            return
        if [one.one.attempt for one in tries] != [*range(1, len(tries) + 1)]:
            self.problem(ORDER, seq, f"{who}: its tries are not numbered from 1 on")
        stand = stand_of_tries(run, due, [one.one for one in tries])
        if stand.entry is None:
            self.problem(
                ORDER, seq, f"{who}: none of its agents had answered so, and a try was left"
            )
            return
        if stand.entry.kind != kind:
            gave = "gave this turn" if stand.entry.kind == _TURNS[0] else "gave no turn"
            self.problem(ORDER, seq, f"{who}: its agents {gave}")
            return
        skipped = {"turn"} | (set() if is_labelled else {"mislabelled"})
        if seq in self.erased:
            skipped |= {"content", "parsed", "mislabelled", "problem"}
            self.untold(ORDER, f"{who}: its text (entry {seq}) was erased")
        wrong = [
            name
            for name, wanted in stand.entry.body.items()
            if name not in skipped and not self.is_same(body.get(name), wanted)
        ]
        if wrong:
            message = f"{who}: {', '.join(wrong)} not as its agents' answers give it"
            self.problem(ORDER, seq, message)

    def is_same(self, value: Any, wanted: Any) -> bool:
        """Whether a field holds what it has to hold."""
        if isinstance(wanted, bytes):
            return bool(self.evidence.source.content(value) == wanted)
        return bool(value == wanted)

    # Derived entries ---------------------------------------------------------------------------

    def compare(self, check: str, seq: int, body: dict[str, Any], due: DueEntry, *but: str) -> None:
        """Name the fields of a derived entry that are not what the rules give."""
        left_out = dict.fromkeys(but)
        wrong = differing_fields(body | left_out, due.body | left_out, self.evidence.source.content)
        for problem in wrong:
            self.problem(check, seq, f"cycle {due.body.get('cycle', body.get('cycle'))}: {problem}")

    def converged(self, run: NovaRun, seq: int, body: dict[str, Any]) -> None:
        """Judge that the syntheses are said to have converged."""
        due = self.due(run)
        if due is not None and due.kind == "nova.converged":
            self.compare(CONVERGENCE, seq, body, due)
            self.follow(run, seq, "nova.converged", body)
            return
        last = "its last syntheses differ by more, or are too few"
        self.problem(
            CONVERGENCE, seq, f"cycle {body['cycle']} is said to have converged, and {last}"
        )
        if run.cycles and self.counts_as_converged(run):
            self.follow(run, seq, "nova.converged", body)

    def gate(self, run: NovaRun, seq: int, body: dict[str, Any]) -> None:
        """Judge a gate."""
        due = self.due(run)
        if due is None or due.kind != "nova.gate.decided":
            self.problem(
                GATE, seq, f"a gate of cycle {body['cycle']}, and no synthesis waited for it"
            )
            return
        self.compare(GATE, seq, body, due)
        self.follow(run, seq, "nova.gate.decided", body)

    def critique(self, run: NovaRun, seq: int, body: dict[str, Any]) -> None:
        """Judge the class of a critique."""
        due = self.due(run)
        if due is None or due.kind != "nova.critique.decided":
            self.problem(
                CRITIQUE, seq, f"a class in cycle {body['cycle']}, and no critique waited for it"
            )
            return
        of = due.body["critique"]
        if of in self.erased:
            self.untold(CRITIQUE, f"the critique (entry {of}) was erased")
        self.compare(CRITIQUE, seq, body, due, *(["decision"] if of in self.erased else []))
        self.follow(run, seq, "nova.critique.decided", body)

    def escalated(self, run: NovaRun, seq: int, body: dict[str, Any]) -> None:
        """Judge that a person had to decide, and what that entry says."""
        due = self.due(run)
        if due is None or due.kind != "nova.escalated":
            self.problem(
                ROUNDS, seq, f"{body['reason']}: a person is asked, and the rules do not ask"
            )
        else:
            gone = {"synthesis": "dissenters", "critique": "critical"}
            but = [what for of, what in gone.items() if due.body.get(of) in self.erased]
            if but:
                self.untold(ROUNDS, f"{' and '.join(but)} of entry {seq}: the text was erased")
            self.compare(ROUNDS, seq, body, due, *but)
        after = [one.seq for one in self.entries[self.at + 1 :]]
        is_again = run.state == "finalizing" and after  # the same turn may come to be due again
        self.begun_turns(run, after[0] if is_again else self.evidence.size)
        self.follow(run, seq, "nova.escalated", body)

    def human(self, run: NovaRun, seq: int, body: dict[str, Any]) -> None:
        """Judge that a person decided."""
        if run.state != "awaiting_human" or run.escalated is None:
            self.problem(ROUNDS, seq, f"a person decided ({body['choice']}), and was not asked")
        elif run.escalated not in (-1, body["escalated"]):
            what = f"answers entry {body['escalated']}, and entry {run.escalated} asks"
            self.problem(ROUNDS, seq, f"a person's decision {what}")
        elif is_of_panel(run, who := actor_of(self.evidence, seq)):
            self.problem(ROUNDS, seq, f"{who} decided ({body['choice']}), which is no person")
        self.follow(run, seq, "human.decided", body)

    # The end -----------------------------------------------------------------------------------

    def finalized(self, run: NovaRun, seq: int, body: dict[str, Any]) -> None:
        """Judge how a run ended."""
        due = self.due(run)
        if body["outcome"] == "cancelled":
            spent = {"turns": len(run.turns), "cost": f"{run.spent:f}", "cycles": run.number}
            due = DueEntry(
                "nova.finalized", {"run": run.opening.run, "outcome": "cancelled"} | spent
            )
        if due is None or due.kind != "nova.finalized":
            message = f"it is said to be over ({body['outcome']}), and it is {run.state}"
            self.problem(RESULT, seq, message)
        else:
            # The words of a reason count where they are those of the turn that was missed.
            is_free = seq in self.erased or due.body["outcome"] == "cancelled"
            but = {"reason"} if is_free else set()
            if any(
                one.kind == "nova.turn.missed" and one.seq in self.erased for one in self.entries
            ):
                but.add("reason")
            if seq in self.erased or due.body.get("final") in self.erased:
                but |= {"decision", "stated_confidence"}
                self.untold(RESULT, f"the text of its decision (entry {seq}) was erased")
            left_out = dict.fromkeys(but)
            read = self.evidence.source.content
            for wrong in differing_fields(body | left_out, due.body | left_out, read):
                self.problem(
                    RESULT, seq, wrong.replace("is not that", "is not that of the final turn")
                )
        self.begun_turns(run, self.evidence.size)
        self.ended = seq
        self.follow(run, seq, "nova.finalized", body)

    def checkpoint(self, seq: int, body: dict[str, Any]) -> None:
        """Judge a named position."""
        name = body["name"]
        rows = self.evidence.query("SELECT position, run FROM checkpoints WHERE name = ?", name)
        if self.ended is None or self.named is not None or body["position"] != self.ended:
            where = "has no end" if self.ended is None else f"ended at entry {self.ended}"
            message = f"{name} stands for entry {body['position']}, and the run {where}"
            self.problem(RESULT, seq, message)
        elif rows != [(body["position"], self.result.name)]:
            self.problem(RESULT, seq, f"{name} stands for another position already")
        elif not self.is_of_its_minute(seq, name):
            self.problem(RESULT, seq, f"{name} is not named after the minute of its entry")
        self.named = seq

    def is_of_its_minute(self, seq: int, name: str) -> bool:
        """Whether the minute that a checkpoint is named after is that of its entry."""
        found, at = _MINUTE.fullmatch(name), self.evidence.micros(seq)
        if found is None or at is None:
            return at is None
        try:
            minute = datetime.strptime(found[1], "%y%m%d-%H%M").replace(tzinfo=UTC)
        except ValueError:
            return False
        return abs(int(minute.timestamp()) * 10**6 - at) <= _LATE
