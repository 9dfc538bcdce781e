"""What a measurement is: pairs of times taken in turn, their ratio, and the target it is held to.

Two things measured at different moments of a shared machine cannot be compared. So ours and its
floor are timed in turn (A B A B), a ratio is made of each pair, and the median of the ratios is
what is reported, with the least and the greatest beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

__all__ = [
    "Pair",
    "Row",
    "Target",
    "cost_row",
    "growth_row",
    "in_turn",
    "rate_row",
    "size_row",
    "time_row",
]

MB = 1_000_000  # bytes


class Pair(NamedTuple):
    """Seconds that ours took, and seconds of the floor measured right after it."""

    ours: float
    floor: float


class Target(NamedTuple):
    """A bound for the median: ``at_most`` or else at least."""

    at_most: bool
    bound: float


@dataclass(frozen=True)
class Row:
    """One line of the table; ``unit`` is that of ``samples`` and of the target's bound."""

    name: str
    what: str
    ours: str
    floor: str
    samples: tuple[float, ...]
    target: Target | None = None
    unit: str = "x"
    more_is_better: bool = False

    @property
    def median(self) -> float:
        """The figure that counts."""
        return median(self.samples)

    @property
    def met(self) -> bool | None:
        """Whether the median keeps the target; None where there is none."""
        if self.target is None:
            return None
        if self.target.at_most:
            return self.median <= self.target.bound
        return self.median >= self.target.bound


def in_turn(
    ours: Callable[[], float], floor: Callable[[], float], rounds: int, turns: int = 1
) -> list[Pair]:
    """Call both in turn; each gives the seconds that it took.

    A round is the sum of so many ``turns``. Where these are short, both meet the same moments of
    the machine, and where they are many, each meets the same work that comes now and then.
    """
    every = [Pair(ours(), floor()) for _ in range(rounds * turns)]
    parts = (every[at : at + turns] for at in range(0, len(every), turns))
    return [Pair(*map(sum, zip(*part, strict=True))) for part in parts]


def rate_row(
    name: str, what: str, pairs: Sequence[Pair], count: int, at_least: float | None = None
) -> Row:
    """Rates of acts: each time is for ``count`` of them, and the ratio is ours to the floor's."""
    return Row(
        name,
        what,
        f"{count / median(pair.ours for pair in pairs):,.0f}/s",
        f"{count / median(pair.floor for pair in pairs):,.0f}/s",
        tuple(pair.floor / pair.ours for pair in pairs),
        None if at_least is None else Target(at_most=False, bound=at_least),
        more_is_better=True,
    )


def cost_row(name: str, what: str, pairs: Sequence[Pair], at_most: float | None = None) -> Row:
    """Times of one act, and the ratio is ours to the floor's."""
    return Row(
        name,
        what,
        _seconds(median(pair.ours for pair in pairs)),
        _seconds(median(pair.floor for pair in pairs)),
        tuple(pair.ours / pair.floor for pair in pairs),
        None if at_most is None else Target(at_most=True, bound=at_most),
    )


def size_row(name: str, what: str, sizes: Sequence[int], at_most: float) -> Row:
    """Sizes in bytes against a bound in MB; they have no floor."""
    mb = tuple(size / MB for size in sizes)
    return Row(
        name, what, f"{median(mb):,.0f} MB", "", mb, Target(at_most=True, bound=at_most), "MB"
    )


def growth_row(
    name: str, what: str, large: Sequence[int], small: Sequence[int], at_most: float
) -> Row:
    """Sizes in bytes at the large and at the small scale, and their ratio."""
    return Row(
        name,
        what,
        f"{median(large) / MB:,.0f} MB",
        f"{median(small) / MB:,.0f} MB",
        tuple(a / b for a, b in zip(large, small, strict=True)),
        Target(at_most=True, bound=at_most),
    )


def time_row(name: str, what: str, seconds: Sequence[float], at_most: float) -> Row:
    """Times of one act against a bound in milliseconds; they have no floor."""
    target = Target(at_most=True, bound=at_most)
    samples = tuple(1000 * value for value in seconds)
    return Row(name, what, _seconds(median(seconds)), "", samples, target, "ms")


def _seconds(value: float) -> str:
    if value < 0.001:
        return f"{value * 1_000_000:,.0f} µs"
    return f"{value:,.2f} s" if value >= 1 else f"{value * 1000:,.1f} ms"
