"""Dies on the way of a merge, where it is told to: for children that are killed there."""

from collections.abc import Callable
from typing import Any

from dying import die

from tripod.ledger.sqlite.store import SQLiteTransaction
from tripod.peers import merge
from tripod.team.files import Files
from tripod.team.team import Team
from tripod.trust import export
from tripod.verify.peers.entries import RecordJudge

__all__ = ["MERGE", "MERGE_PLACES", "die_in_merge"]

MERGE_PLACES: dict[str, tuple[Any, str]] = {
    "while it judges": (RecordJudge, "judge"),
    "before a batch": (merge._Taking, "_flush"),
    "in the act": (merge._Taking, "_append"),
    "while it places": (merge, "_draft"),
    "in the transaction": (SQLiteTransaction, "_insert"),
    "while it erases": (merge, "erase_within"),
    "before the seal is kept": (merge, "_merged"),
    "behind the commit": (Team, "_write_files"),
    "while it writes files": (Files, "project"),
    "behind the files": (Files, "note"),
    "behind an act": (Team, "_conclude"),
    "before erased bytes are swept": (export, "redact_exports"),
}
"""The steps of a merge: what is called at each."""
MERGE = tuple(MERGE_PLACES)


def die_in_merge(step: str, times: int) -> None:
    """Die as a step of ``MERGE`` is begun for the ``times``-th time."""
    owner, name = MERGE_PLACES[step]
    real: Callable[..., Any] = getattr(owner, name)
    left = times

    def patched(*arguments: Any, **options: Any) -> Any:
        nonlocal left
        left -= 1
        if left <= 0:
            die()
        return real(*arguments, **options)

    setattr(owner, name, patched)
