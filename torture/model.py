"""What a user expects of a team: events, claims, messages, what each has read, decisions. Pure.

It knows nothing of entries, tables and files. An answer of the tool that is another is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["Channel", "Decided", "Expected", "Pending"]

PRIORITIES = ("critical", "high", "normal", "low")
INTERVAL = 20
"""So many decisions later a review is asked for."""


@dataclass(eq=False)
class Pending:
    """An event in the queue; ``holder`` has claimed it."""

    priority: str
    source: str
    kind: str
    holder: str | None = None
    name: str | None = None


@dataclass
class Said:
    """A message, and who has read it."""

    handle: str
    text: str
    read_by: set[str]
    is_erased: bool = False


@dataclass
class Channel:
    """A channel: all that was said in it, and how much of that its file no longer shows."""

    said: list[Said] = field(default_factory=list)
    archived: int = 0

    def shown(self) -> list[tuple[str, str]]:
        """Who said what in the channel's file."""
        return [(one.handle, one.text) for one in self.said[self.archived :]]

    def unread(self, handle: str) -> list[int]:
        """The numbers of the messages of others that ``handle`` has not read."""
        return [
            number
            for number, one in enumerate(self.said)
            if one.handle != handle and handle not in one.read_by
        ]

    def found(self, pattern: str) -> list[int]:
        """The numbers of all messages with these letters."""
        return [n for n, one in enumerate(self.said) if pattern.lower() in one.text.lower()]


@dataclass
class Decided:
    """A decision, and what became of it; a peer's may be called otherwise here."""

    id: str | None
    title: str
    fate: str = "stands"


class Expected:
    """The team, as somebody remembers it who wrote down each act."""

    def __init__(self) -> None:
        self.queue: list[Pending] = []
        self.channels: dict[str, Channel] = {}
        self.decisions: list[Decided] = []

    # The bus -----------------------------------------------------------------------------------

    def publish(self, priority: str, source: str, kind: str, name: str | None = None) -> None:
        """One more event."""
        self.queue.append(Pending(priority, source, kind, None, name))

    def pending(self) -> list[Pending]:
        """The queue in its order: by priority, and in each the oldest first."""
        return sorted(self.queue, key=lambda one: PRIORITIES.index(one.priority))

    def is_double(self, source: str, kind: str) -> bool:
        """Whether an equal event is pending."""
        return any((one.source, one.kind) == (source, kind) for one in self.queue)

    def ack(self, number: int) -> Pending:
        """Take the event of this place out of the queue."""
        gone = self.pending()[number]
        self.queue.remove(gone)
        return gone

    def ack_all(self, source: str | None) -> int:
        """Take all out, or those of one source; how many."""
        before = len(self.queue)
        self.queue = [one for one in self.queue if source not in (None, one.source)]
        return before - len(self.queue)

    def claim(self, holder: str) -> Pending | None:
        """Have somebody take the most urgent event that nobody has."""
        free = next((one for one in self.pending() if one.holder is None), None)
        if free is not None:
            free.holder = holder
        return free

    # The chat ----------------------------------------------------------------------------------

    def send(self, channel: str, handle: str, text: str, told: Sequence[str] = ()) -> None:
        """Say something by a command: others are told by events, urgently where it is ``told``."""
        self.say(channel, handle, text)
        self.publish("normal", "nbs-chat", "chat-message")
        for how in told:
            priority = "critical" if how == "chat-interrupt" else "high"
            self.publish(priority, "nbs-chat", how)

    def say(self, channel: str, handle: str, text: str) -> None:
        """Say something, as other programs do: without events."""
        self.channels[channel].said.append(Said(handle, text, set()))

    def read(self, channel: str, handle: str, numbers: list[int]) -> None:
        """Note who was shown what."""
        for number in numbers:
            self.channels[channel].said[number].read_by.add(handle)

    def archive(self, channel: str, keep: int) -> None:
        """Have the file show the newest messages alone."""
        one = self.channels[channel]
        one.archived = max(one.archived, len(one.said) - keep)

    # Decisions ---------------------------------------------------------------------------------

    def decide(self, id_: str, title: str, earlier: str | None = None, change: str = "") -> None:
        """Log a decision, which may change an earlier one."""
        self.note(id_, title)
        for one in self.decisions:
            if earlier is not None and one.id == earlier:
                one.fate = change
        self.publish("normal", "scribe", "decision-logged")
        if len(self.decisions) % INTERVAL == 0:
            self.publish("high", "scribe", "pythia-checkpoint")

    def note(self, id_: str | None, title: str) -> None:
        """A decision that another program logged: without events."""
        self.decisions.append(Decided(id_, title))
