"""The chats: send, read, keep.

Each function works on one chat (a channel) of a team, by its name. What reads, reads the ledger as
it is: call ``team.refresh()`` first to take in what other programs wrote to the files.
"""

from tripod.face import lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tripod.chat.reader import (
        Addressed,
        Hit,
        Window,
        addressed,
        count,
        hits,
        messages,
        participants,
        search,
        unread,
    )
    from tripod.chat.writer import (
        ERROR,
        WARNING,
        ChatMessage,
        Deletion,
        archive,
        create,
        delete,
        mark_read,
        post,
        send,
        set_position,
    )

__all__ = [
    "ERROR", "WARNING", "Addressed", "ChatMessage", "Deletion", "Hit", "Window", "addressed",
    "archive", "count", "create", "delete", "hits", "mark_read", "messages", "participants",
    "post", "search", "send", "set_position", "unread",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(__name__, __all__, ("writer", "reader"))
