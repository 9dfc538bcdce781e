"""What a command tells a person, and with which exit code each door says it.

Every error says what was wrong, where, and what to do next. The class says who must act; the
door (``tripod bus``, ``tripod chat``, ...) turns the class into its documented exit code (design
section 11).
"""

from __future__ import annotations


class TripodError(Exception):
    """Base of what commands report; its text is shown as it is."""


class BadArgumentError(TripodError):
    """An argument breaks a rule; nothing was recorded."""


class MalformedEntryError(BadArgumentError):
    """What was given makes no entry of the decision log; nothing was recorded."""


class NoTeamError(TripodError):
    """There is no team directory, or no ledger in it."""


class NotFoundError(TripodError):
    """The event, chat, decision or entry that was named is not there."""


class DuplicateDroppedError(TripodError):
    """An equal event is pending within the dedup window; nothing was recorded."""


class RefusedError(TripodError):
    """The act is not possible as things stand."""


class UnreachableError(TripodError):
    """A service of others (a witness, a timestamp authority) gave no usable answer."""
