"""The decision logs: log, read, search, and the Scribe's inbox.

What reads, reads the ledger as it is: call ``team.refresh()`` first to take in what other programs
wrote to the files.
"""

from tripod.face import lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tripod.decisions.reader import (
        Decision,
        DecisionHistory,
        Filters,
        Item,
        Ref,
        Standing,
        count,
        find,
        inbox,
        query,
        standing,
        summary,
    )
    from tripod.decisions.writer import DecisionRequest, LoggedDecision, handled, log

__all__ = [
    "Decision", "DecisionHistory", "DecisionRequest", "Filters", "Item", "LoggedDecision", "Ref",
    "Standing", "count", "find", "handled", "inbox", "log", "query", "standing", "summary",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(__name__, __all__, ("writer", "reader"))
