"""The event queue: publish, acknowledge, claim, wait.

Each function works on the queue of a team. What reads, reads the ledger as it is: call
``team.refresh()`` first to take in what other programs wrote to the files.
"""

from tripod.face import lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tripod.bus.events import (
        Claim,
        PendingEvent,
        PruneResult,
        Status,
        ack,
        ack_all,
        check,
        prune,
        publish,
        read,
        status,
    )
    from tripod.bus.reader import (
        Recovery,
        Unseen,
        claim,
        held,
        mark_seen,
        recover,
        release,
        unseen,
        wait_claim,
        wait_pending,
        wait_unseen,
    )

__all__ = [
    "Claim", "PendingEvent", "PruneResult", "Recovery", "Status", "Unseen", "ack", "ack_all",
    "check", "claim", "held", "mark_seen", "prune", "publish", "read", "recover", "release",
    "status", "unseen", "wait_claim", "wait_pending", "wait_unseen",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(__name__, __all__, ("events", "reader"))
