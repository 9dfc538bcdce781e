"""Figures over several Nova runs (spec: nova N9), from their folds alone. Pure.

``METRICS`` is the table of them: the definition, the target of the design, how it is computed. All
count runs that are over. A figure names how many runs (or turns of experts) it is computed from,
and nothing to compute from gives no figure: a share of nothing has no value. Targets are shown, and
nothing enforces them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from statistics import median
from typing import Literal, NamedTuple

from tripod.ledger.words import words_of_text
from tripod.projections.nova.run import NovaRun, NovaTurn

Unit = Literal["share", "number", "seconds", "change"]
_PLACES = Decimal("0.0001")
_MILLION = 1_000_000


class TimedRun(NamedTuple):
    """A run with its time: ``worked_us`` from its beginning to its end, people's time left out.

    It is None where the run is not over.
    """

    run: NovaRun
    worked_us: int | None


class MetricValue(NamedTuple):
    """A figure: ``value``, of ``counted`` runs or turns; None where nothing was counted.

    ``meets`` says whether it reaches the target; None where there is no figure or no target.
    """

    name: str
    value: Decimal | None
    unit: Unit
    counted: int
    of: str
    meets: bool | None
    target: str
    definition: str


class NovaMetric(NamedTuple):
    """A row of the table: ``values`` are the single figures, of which ``middle`` makes one.

    ``of`` says what they are counted in, ``meets`` whether a figure reaches the ``target``.
    """

    name: str
    definition: str
    unit: Unit
    of: str
    values: Callable[[Sequence[TimedRun]], Iterable[Decimal]]
    target: str = ""
    meets: Callable[[Decimal], bool] | None = None
    middle: Callable[[Sequence[Decimal]], Decimal] | None = None


def worked_time(entries: Iterable[tuple[str, int]]) -> int | None:
    """Microseconds from the first entry of a run to its last, without those a person took.

    ``entries`` are the kinds and times of its entries in order; None where none of them ends it.

    >>> worked_time([("nova.opened", 10), ("nova.escalated", 20), ("human.decided", 90),
    ...              ("nova.finalized", 95)])
    15
    """
    begun: int | None = None
    waits: int | None = None
    waited = 0
    for kind, us in entries:
        if begun is None:
            begun = us
        if kind in ("human.decided", "nova.finalized") and waits is not None:
            waited += max(0, us - waits)
            waits = None
        if kind == "nova.escalated":
            waits = us
        elif kind == "nova.finalized":
            return max(0, us - begun - waited)
    return None


def nova_metrics(runs: Iterable[TimedRun]) -> list[MetricValue]:
    """Each metric over the runs that are over; the others are passed over."""
    over = [one for one in runs if one.run.finalized is not None]
    return [_figure(metric, over) for metric in METRICS]


def _figure(metric: NovaMetric, runs: Sequence[TimedRun]) -> MetricValue:
    found = list(metric.values(runs))
    value: Decimal | None = None
    if found:
        middle = metric.middle or _mean
        value = middle(found)
    meets = None if value is None or metric.meets is None else metric.meets(value)
    shown = None if value is None else value.quantize(_PLACES)
    return MetricValue(
        metric.name, shown, metric.unit, len(found), metric.of, meets, metric.target,
        metric.definition,
    )  # fmt: skip


def _mean(values: Sequence[Decimal]) -> Decimal:
    return sum(values, Decimal(0)) / len(values)


def _middle(values: Sequence[Decimal]) -> Decimal:
    return Decimal(median(values))


# The single figures ----------------------------------------------------------------------------


def _agreed(runs: Sequence[TimedRun]) -> Iterator[Decimal]:
    for run, _ in runs:
        synthesis = run.syntheses[-1] if run.syntheses else None
        critique = run.last_critique
        agree = (
            synthesis is not None
            and not synthesis.fields.get("dissenters")
            and critique is not None
            and not any(one["severity"] == "critical" for one in critique.fields.get("issues", ()))
        )
        yield Decimal(agree)


def _criticised(runs: Sequence[TimedRun]) -> Iterator[Decimal]:
    for run in _critiqued(runs):
        found = (cycle.critique.fields.get("issues") for cycle in run.cycles if cycle.critique)
        yield Decimal(any(found))


def _revised(runs: Sequence[TimedRun]) -> Iterator[Decimal]:
    for run in _critiqued(runs):
        answered = any(turn.role == "revision" for turn in run.turns)
        looped = any(cycle.critique is not None for cycle in run.cycles[:-1])
        yield Decimal(answered or looped)


def _critiqued(runs: Sequence[TimedRun]) -> Iterator[NovaRun]:
    return (run for run, _ in runs if run.last_critique is not None)


def _final(run: NovaRun) -> NovaTurn | None:
    """The final turn of a run that came to a decision."""
    decided = run.finalized is not None and run.finalized["outcome"] in _DECIDED
    return run.turns[-1] if decided and run.turns and run.turns[-1].role == "final" else None


_DECIDED = ("decided", "human_accepted")


def _confidence(runs: Sequence[TimedRun]) -> Iterator[Decimal]:
    for run, _ in runs:
        final = _final(run)
        if final is not None and final.epistemic is not None:
            yield final.epistemic.know


def _seconds(runs: Sequence[TimedRun]) -> Iterator[Decimal]:
    for run, worked_us in runs:
        if worked_us is not None and _final(run) is not None:
            yield Decimal(worked_us) / _MILLION


def _turns(runs: Sequence[TimedRun]) -> Iterator[Decimal]:
    return (Decimal(len(run.turns)) for run, _ in runs if _final(run) is not None)


def _experts(runs: Sequence[TimedRun]) -> Iterator[Decimal]:
    for run, _ in runs:
        for cycle in run.cycles:
            yield from (Decimal(name in cycle.spoken) for name in run.selected)


def _changes(at: int) -> Callable[[Sequence[TimedRun]], Iterator[Decimal]]:
    def changes(runs: Sequence[TimedRun]) -> Iterator[Decimal]:
        for run, _ in runs:
            first = next((turn for turn in run.turns if turn.role == "unpack"), None)
            final = _final(run)
            if first is not None and final is not None and first.epistemic and final.epistemic:
                yield final.epistemic[at] - first.epistemic[at]

    return changes


def _findings(runs: Sequence[TimedRun]) -> Iterator[Decimal]:
    for run, _ in runs:
        if len(run.selected) >= 3 or run.number >= 2:
            found = {
                " ".join(words_of_text(text))
                for turn in run.turns
                for text in turn.fields.get("findings", ())
            }
            yield Decimal(len(found))


METRICS = (
    NovaMetric(
        "consensus rate",
        "runs whose last synthesis names no dissenter and whose last critique has no critical "
        "issue, of all; a run without either has no consensus",
        "share", "runs", _agreed, "80 % or more", lambda value: value >= Decimal("0.8"),
    ),
    NovaMetric(
        "critique rate", "runs in which the critic found an issue, of those that were criticised",
        "share", "runs", _criticised, "60 % or more", lambda value: value >= Decimal("0.6"),
    ),
    NovaMetric(
        "revision rate",
        "runs that were revised, or went into another cycle after a critique, of those that were "
        "criticised",
        "share", "runs", _revised,
    ),
    NovaMetric(
        "confidence", "mean of `know` of the final turn",
        "share", "runs", _confidence, "90 % or more", lambda value: value >= Decimal("0.9"),
    ),
    NovaMetric(
        "time to decision",
        "median of the time from the first entry to the last, without the time in which a person "
        "had to decide",
        "seconds", "runs", _seconds, "below 300 s", lambda value: value < 300, _middle,
    ),
    NovaMetric(
        "turns per decision", "mean number of turns",
        "number", "runs", _turns, "below 10", lambda value: value < 10,
    ),
    NovaMetric(
        "expert utilization",
        "turns that experts gave, of those that selected experts had to give; each cycle counts",
        "share", "turns", _experts, "above 70 %", lambda value: value > Decimal("0.7"),
    ),
    NovaMetric(
        "learning delta", "mean of `know` of the final turn less that of the unpack",
        "change", "runs", _changes(0), "+0.20 or more", lambda value: value >= Decimal("0.2"),
    ),
    NovaMetric(
        "uncertainty reduction",
        "mean of `uncertainty` of the final turn less that of the unpack",
        "change", "runs", _changes(1), "-0.30 or less", lambda value: value <= Decimal("-0.3"),
    ),
    NovaMetric(
        "finding yield",
        "mean number of different findings of the experts; of runs with three experts or two "
        "cycles at least",
        "number", "runs", _findings, "3 or more", lambda value: value >= 3,
    ),
)  # fmt: skip
"""All metrics. Confidence, times, turns and changes are of runs that came to a decision."""


def metric_text(value: MetricValue) -> str:
    """A figure as people read it.

    >>> metric_text(MetricValue("a", None, "share", 0, "runs", None, "", ""))
    'no figure: of 0 runs'
    """
    if value.value is None:
        return f"no figure: of 0 {value.of}"
    number = value.value
    if value.unit == "share":
        text = f"{number * 100:.1f} %"
    elif value.unit == "change":
        text = f"{number:+.2f}"
    elif value.unit == "seconds":
        text = f"{number:.1f} s"
    else:
        text = f"{number:.1f}"
    one = value.of.removesuffix("s") if value.counted == 1 else value.of
    return f"{text}, of {value.counted} {one}"
