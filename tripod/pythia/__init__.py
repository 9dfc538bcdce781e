"""Pythia, the independent reviewer: which reviews are due, their run, their record.

``run`` is a coroutine: ``asyncio.run(tripod.pythia.run(team, program, tripod.now_us()))``.
"""

from __future__ import annotations

from tripod.face import lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tripod.pythia.checkpoints import Point
    from tripod.pythia.review import (
        PendingReview,
        PostedAssessment,
        ReviewerProgram,
        ReviewOutcome,
        due,
        record,
        run,
        show,
        summon,
    )

__all__ = [
    "PendingReview", "Point", "PostedAssessment", "ReviewOutcome", "ReviewerProgram", "due",
    "record", "run", "show", "summon",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(__name__, __all__, ("review", "checkpoints"))
