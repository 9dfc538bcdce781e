"""Takes in replaced files that came back with more in them than we knew.

In every act that looks at the team's files at all. What they hold is in the ledger before they go,
and they go only when nobody can write into them any more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ledger.entry import Draft, Entry
from projections import BUS
from projections.disk import KEPT, Disk
from projections.projection import Source
from tripod.files import Files, folders_of


class _Act(Protocol):
    """What this needs of an act; ``tripod.act``, which uses this, is above."""

    source: Source
    disk: Disk
    writer: Files
    full: bool
    rewrite: set[str]
    later: dict[tuple[str, ...], Callable[[], None]]

    def append(self, drafts: Sequence[Draft]) -> list[Entry]:
        """Append."""

    def warn(self, text: str) -> None:
        """Have something said at the end of the command."""


def take_strays(act: _Act) -> None:
    """Look at every kept file; those of events, which are replaced seldom, in a full look only."""
    known = [path for path in act.writer.known if f"/{KEPT}" in path]
    folders = folders_of(act.disk)
    if not act.full and not any(path.startswith(f"{BUS.folder}/") for path in known):
        folders = [folder for folder in folders if not folder.startswith(BUS.folder)]
    there = {path for folder in folders for path in act.disk.kept(folder)}
    act.writer.settled.update(path for path in known if path not in there)
    if not there:
        return
    from projections.intake.strays import find_strays, take_stray

    for stray in find_strays(act.source, act.disk, folders, act.warn):
        taken = take_stray(act.source, act.disk, stray)
        act.append(taken.drafts)
        if taken.is_news:
            act.rewrite.add(stray.path)
        if taken.is_done:
            act.later["drop", stray.kept] = lambda kept=stray.kept: act.writer.drop(kept)  # type: ignore[misc]
        else:
            act.writer.keep_open(stray.kept, stray.data)
            if act.full:
                act.warn(
                    f"{stray.path}: another program still has the file open that we replaced; what "
                    f"it writes there is taken in when a command finds it ({stray.kept})"
                )
