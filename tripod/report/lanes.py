"""Lays out a timeline: a lane an agent, with how much it did in each part of the time. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tripod.report.facts import LogEntry

LANES = 12
"""Agents with a lane of their own, those that did the most; the others share one."""
PARTS = 120
"""Parts into which the time is divided."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class LaneBar(NamedTuple):
    """What an agent did in a part of the time: how much, the first entry, whether one is bad."""

    part: int
    height: int
    acts: int
    seq: int
    bad: bool


class Lane(NamedTuple):
    """The lane of an agent; ``name`` is '' for all others together."""

    name: str
    acts: int
    bars: tuple[LaneBar, ...]


class LaneChart(NamedTuple):
    """A timeline: its lanes, the times of its ends, the lane of each agent by name.

    ``by_order``: what lies side by side are equally many entries, and not equal times. So it is of
    a team whose past was taken in at once.
    """

    lanes: tuple[Lane, ...]
    begin: str
    end: str
    places: dict[str, int]
    others: int
    by_order: bool = False


def lane_chart(entries: Sequence[LogEntry], marked: Collection[int | None]) -> LaneChart:
    """The timeline of entries; ``marked`` are the numbers of those that a finding names."""
    counts = Counter(one.actor for one in entries if one.actor)
    names = [name for name, _ in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))]
    own = names if len(names) <= LANES else names[: LANES - 1]
    places = {name: place for place, name in enumerate(own)}
    times = {one.seq: at for one in entries if (at := _micros(one)) is not None}
    if not times:
        lanes = tuple(Lane(name, counts[name], ()) for name in own)
        return LaneChart(lanes, "", "", places, len(names) - len(own))
    said = {one.seq: f"{one.day} {one.time}" for one in entries}
    ends = [choose(times, key=lambda seq: (times[seq], seq)) for choose in (min, max)]
    begin, end = (said[seq] for seq in ends)
    at_once = max(Counter(at // 1_000_000 for at in times.values()).values())
    by_order = at_once * 2 > len(times) and len(times) > PARTS
    places_at = {seq: n for n, seq in enumerate(times)} if by_order else times
    first = min(places_at.values())
    width = max(places_at.values()) - first + 1
    bars: dict[tuple[int, int], list[int]] = {}
    for one in entries:
        if one.seq in places_at:
            part = (places_at[one.seq] - first) * PARTS // width
            bars.setdefault((places.get(one.actor, len(own)), part), []).append(one.seq)
    most = max(map(len, bars.values()))
    shown = [*own, ""] if len(own) < len(names) else own
    others = sum(counts[name] for name in names[len(own) :])
    lanes = tuple(
        Lane(
            name,
            counts[name] if name else others,
            tuple(
                LaneBar(part, _height(len(seqs), most), len(seqs), seqs[0], _is_any(seqs, marked))
                for (lane, part), seqs in sorted(bars.items())
                if lane == place
            ),
        )
        for place, name in enumerate(shown)
    )
    return LaneChart(lanes, begin, end, places, len(names) - len(own), by_order)


def _micros(one: LogEntry) -> int | None:
    try:
        moment = datetime.fromisoformat(one.at)
        return None if moment.tzinfo is None else round((moment - _EPOCH).total_seconds() * 1e6)
    except (ValueError, OverflowError):  # of a forged entry
        return None


def _height(count: int, most: int) -> int:
    """The height of a bar from 3 to 20: by the root, so that single acts can be seen."""
    return 3 + round(17 * sqrt(count / most))


def _is_any(seqs: Sequence[int], marked: Collection[int | None]) -> bool:
    return any(seq in marked for seq in seqs)
