"""The rules of a Nova run: what follows on what, the gate, convergence, critiques. Pure.

``STEPS`` is the one table of them. The decider asks it what comes next, the checks ask it what had
to come, the reference page and the diagram are written from it, and a property test walks it. Each
row names its rule in the specification (spec: nova N3 to N6).

A run goes in **cycles**: the experts analyse, each for itself; the coordinator (DCE) puts their
analyses together; the gate lets the synthesis through or sends it back; the critic (CAE) looks for
flaws. Numbers are decimals with at most four places, and are compared as such: 0.35 passes a gate
of 0.35, and 0.3501 does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Literal, NamedTuple

State = Literal[
    "opened", "unpacking", "analyzing", "synthesizing", "gating", "critiquing", "deciding",
    "revising", "finalizing", "done", "awaiting_human", "failed", "cancelled",
]  # fmt: skip
CLOSED: tuple[State, ...] = ("done", "failed", "cancelled")
Flaws = Literal["critical", "minor", "solid"]
Choice = Literal["accept", "redirect", "close"]
Verdict = Literal["investigate", "proceed"]


class Epistemic(NamedTuple):
    """What a persona says of its own knowledge: each from 0 to 1."""

    know: Decimal
    uncertainty: Decimal


UNTOLD = Epistemic(Decimal(0), Decimal(1))
"""What counts where a persona had to say it and did not, twice: the gate stays shut (N2.7)."""


def gate(uncertainty: Decimal, threshold: Decimal) -> Verdict:
    """Whether a synthesis goes on to the critic; strictly above the threshold it does not."""
    return "investigate" if uncertainty > threshold else "proceed"


def converged(syntheses: Sequence[Epistemic], epsilon: Decimal, window: int) -> bool:
    """Whether each of the last ``window`` steps changed both figures by less than ``epsilon``."""
    last = syntheses[-window - 1 :]
    return len(last) == window + 1 and all(
        abs(after.know - before.know) < epsilon
        and abs(after.uncertainty - before.uncertainty) < epsilon
        for before, after in pairwise(last)
    )


def critique_class(severities: Iterable[str]) -> Flaws:
    """The class of a critique by its issues; what the critic says of it does not decide (N6.2)."""
    found = list(severities)
    if "critical" in found:
        return "critical"
    return "minor" if found else "solid"


class Facts(NamedTuple):
    """What a step depends on, beside the state and the event.

    ``cycle`` counts from 1, ``limit`` is how many cycles may be (the rounds of the run and those
    that a person granted), ``spoken`` how many of the selected experts spoke in this cycle.
    """

    cycle: int = 1
    limit: int = 1
    spoken: int = 1
    verdict: Verdict = "proceed"
    converged: bool = False
    flaws: Flaws = "solid"
    choice: Choice = "accept"

    @property
    def may_go_on(self) -> bool:
        """Whether another cycle may begin."""
        return self.cycle < self.limit and not self.converged


class Step(NamedTuple):
    """A row of the table: in ``source``, at ``event``, where ``holds``, the run goes to ``target``.

    ``rule`` is its number in the specification, ``when`` says in words when it holds ('': always).
    ``again``: a new cycle begins.
    """

    rule: str
    source: State
    event: str
    target: State
    when: str = ""
    holds: Callable[[Facts], bool] = lambda _: True
    again: bool = False


_OPEN: tuple[State, ...] = (
    "opened", "unpacking", "analyzing", "synthesizing", "gating", "critiquing", "deciding",
    "revising", "finalizing", "awaiting_human",
)  # fmt: skip
SPEAKING: tuple[State, ...] = (
    "unpacking", "analyzing", "synthesizing", "critiquing", "revising", "finalizing",
)  # fmt: skip
"""States in which a persona's turn is due."""


def _steps() -> Iterator[Step]:
    yield Step("N3", "opened", "question", "unpacking")
    yield Step("N3.1", "unpacking", "unpack", "analyzing", again=True)
    spoke = "an expert spoke"
    yield Step("N3.7", "analyzing", "experts", "synthesizing", spoke, lambda f: f.spoken > 0)
    yield Step("N3.7", "analyzing", "experts", "failed", "none spoke", lambda f: f.spoken == 0)
    yield Step("N3.4", "synthesizing", "synthesis", "gating")
    over = "uncertainty above the threshold"
    yield Step(
        "N4.1", "gating", "gate", "analyzing", f"{over}, and another cycle may begin",
        lambda f: f.verdict == "investigate" and f.may_go_on, again=True,
    )  # fmt: skip
    yield Step(
        "N5.3", "gating", "gate", "awaiting_human", f"{over}, and no other cycle may begin",
        lambda f: f.verdict == "investigate" and not f.may_go_on,
    )  # fmt: skip
    yield Step(
        "N4.1", "gating", "gate", "critiquing", "uncertainty at the threshold or below",
        lambda f: f.verdict == "proceed",
    )  # fmt: skip
    yield Step("N3.6", "critiquing", "critique", "deciding")
    yield Step(
        "N6.1", "deciding", "class", "analyzing", "a critical flaw, and another cycle may begin",
        lambda f: f.flaws == "critical" and f.may_go_on, again=True,
    )  # fmt: skip
    yield Step(
        "N5.4", "deciding", "class", "awaiting_human",
        "a critical flaw, and no other cycle may begin",
        lambda f: f.flaws == "critical" and not f.may_go_on,
    )  # fmt: skip
    yield Step(
        "N6.1", "deciding", "class", "revising", "minor issues alone", lambda f: f.flaws == "minor"
    )
    yield Step("N6.1", "deciding", "class", "finalizing", "no issue", lambda f: f.flaws == "solid")
    yield Step("N6.3", "revising", "revision", "finalizing")
    yield Step("N7.1", "finalizing", "final", "done")
    yield Step(
        "N5.6", "awaiting_human", "human", "finalizing", "accept", lambda f: f.choice == "accept"
    )
    yield Step(
        "N5.6", "awaiting_human", "human", "analyzing", "redirect: one more cycle is granted",
        lambda f: f.choice == "redirect", again=True,
    )  # fmt: skip
    yield Step("N5.6", "awaiting_human", "human", "done", "close", lambda f: f.choice == "close")
    for state in _OPEN:
        yield Step("N3", state, "cancel", "cancelled")
    for state in SPEAKING:
        yield Step("N5.5", state, "budget", "awaiting_human")
        if state != "analyzing":  # an expert that fails is silent (N3.7): the others go on
            yield Step("N3", state, "attempts used up", "failed")


STEPS = tuple(_steps())


def next_step(state: State, event: str, facts: Facts) -> Step | None:
    """The row that holds; None: that event cannot be in this state."""
    rows = (row for row in STEPS if (row.source, row.event) == (state, event))
    return next((row for row in rows if row.holds(facts)), None)
