"""Workers, programs that work on a task for the team: start, end, read.

``look_after`` records what became of programs that ended; commands call it, and so should a
program that waits for a worker. ``watch`` does it by itself.
"""

from __future__ import annotations

from tripod.face import lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tripod.workers.worker import (
        About,
        about,
        answer,
        continue_,
        dismiss,
        escalate,
        every,
        findings,
        look_after,
        named,
        search,
        session,
        spawn,
        watch,
    )

__all__ = [
    "About", "about", "answer", "continue_", "dismiss", "escalate", "every", "findings",
    "look_after", "named", "search", "session", "spawn", "watch",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(__name__, __all__, ("worker",))
