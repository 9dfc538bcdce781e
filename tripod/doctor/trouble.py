"""One thing that is wrong, where, and what is to be done about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

SYNC, REBUILD, CLEAR, IGNORE = "sync", "rebuild", "clear", "ignore"
"""What ``--fix`` does: take all in and write what lags, rebuild, remove leftovers, add lines."""

FEW = 5  # of one sort in one folder are told one by one
NAMED = 3


class Trouble(NamedTuple):
    """``name`` says of what sort it is, for programs; ``cure`` what is to be done, in words.

    ``mends`` is what ``--fix`` does about it; '' where a person must. ``stops``: as long as this
    is so, nothing is mended at all.
    """

    name: str
    where: str
    what: str
    cure: str
    mends: str = ""
    stops: bool = False


def together(found: Iterable[Trouble]) -> Iterator[Trouble]:
    """Put many of one sort in one folder into one, which names the first of them."""
    groups: dict[tuple[str, str, str, bool], list[Trouble]] = {}
    for one in found:
        folder = one.where.rpartition("/")[0]
        groups.setdefault((one.name, folder, one.mends, one.stops), []).append(one)
    for (_, folder, _, _), listed in groups.items():
        if len(listed) <= FEW:
            yield from listed
            continue
        places = {one.where for one in listed}
        if len(places) == 1:
            yield listed[0]._replace(what=f"{listed[0].what}, and {len(listed) - 1} more")
            continue
        first = ", ".join(one.where.rpartition("/")[2] for one in listed[:NAMED])
        what = f"{len(listed)} of them, the first are {first}: {listed[0].what}"
        yield listed[0]._replace(where=folder or ".", what=what)
