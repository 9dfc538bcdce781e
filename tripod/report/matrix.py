"""Who saw what: a row for each role, a column for each place that must not be seen. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from tripod.verify.isolation.sessions import NOTHING, UNTOLD, Sight, SightGrade

_TONES: dict[SightGrade, str] = {"shown": "bad", "opened": "bad", UNTOLD: "warn", NOTHING: "good"}


class SightMark(NamedTuple):
    """A grade in a cell, and how many readers have it."""

    grade: str
    count_of: int
    tone: str


class SightCell(NamedTuple):
    """What the readers of a role saw of a place: their grades, and each of them."""

    marks: tuple[SightMark, ...]
    sights: tuple[Sight, ...]


class SightRow(NamedTuple):
    """A role, and its cell for each place; None where no rule is about it."""

    role: str
    cells: tuple[SightCell | None, ...]


class SightMatrix(NamedTuple):
    """The places, and a row for each role."""

    places: tuple[str, ...]
    rows: tuple[SightRow, ...]


def sight_matrix(sights: Iterable[Sight]) -> SightMatrix:
    """Sort what was seen by role and place; the roles by name, the places as they come."""
    found: dict[tuple[str, str], list[Sight]] = {}
    places: dict[str, None] = {}
    for one in sights:
        found.setdefault((one.role, one.place), []).append(one)
        places.setdefault(one.place)
    roles = sorted({role for role, _ in found}, key=lambda role: (not role, role))
    rows = tuple(
        SightRow(role, tuple(_cell(found.get((role, place), [])) for place in places))
        for role in roles
    )
    return SightMatrix(tuple(places), rows)


def _cell(sights: list[Sight]) -> SightCell | None:
    if not sights:
        return None
    counts = Counter(one.grade for one in sights)
    order = list(_TONES)
    marks = (SightMark(grade, counts[grade], _TONES[grade]) for grade in _TONES if counts[grade])
    ranked = sorted(sights, key=lambda one: order.index(one.grade))
    return SightCell(tuple(marks), tuple(ranked))
