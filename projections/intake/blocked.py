"""Projected files in whose place something else stands: told, and never written over."""

from __future__ import annotations

from projections import BUS, PROJECTIONS
from projections.in_the_way import in_the_way
from projections.intake.piece import Reader

BLOCKED = "blocked"


def take_blocked(reader: Reader) -> None:
    """Look at the place of each file that grows; an event's file is replaced by none of ours."""
    for projection in PROJECTIONS:
        for path in () if projection is BUS else projection.paths(reader.source):
            odd = in_the_way(reader.disk, path)
            if odd is not None:
                reader.conflict(path, BLOCKED, f"it is {odd}, and no file")
