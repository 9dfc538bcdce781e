"""All errors that a caller of this project meets: one tree, with ``TripodError`` at its root.

Every message says what is wrong, where, and what to do next; the class says who must act. Errors of
the disk that concern no file of the team stay ``OSError``. A program catches what it can handle, or
``TripodError`` for all; a command turns the class into its documented exit code::

    try:
        tripod.bus.ack(team, name)
    except tripod.errors.NotFoundError:
        pass  # another reader acknowledged the event first
"""

from tripod.ledger.errors import *


class MalformedEntryError(BadArgumentError):
    """The arguments make no entry of the decision log; nothing was recorded."""


class NoTeamError(TripodError):
    """There is no team directory, or no ledger in it."""


class DuplicateDroppedError(TripodError):
    """An equal event is pending within the dedup window; nothing was recorded."""


class RefusedError(TripodError):
    """The act is not possible as things stand."""


class UnreachableError(TripodError):
    """A service of others (a witness, a timestamp authority) gave no usable answer."""
