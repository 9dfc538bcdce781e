"""What a command leaves with: one row of exit codes a command group or program."""

import atexit
import gc
import sys
from typing import NamedTuple

from tripod import errors
from tripod.output import remark, silence_output

FAILURES = (errors.TripodError, OSError)
"""What a command may end with: ``report_and_exit_code`` says it."""


class Codes(NamedTuple):
    """Exit codes of a door; every number is in its documentation."""

    general: int
    no_team: int
    not_found: int
    bad_argument: int
    duplicate: int
    damaged: int
    usage: int
    malformed: int


DOORS: dict[str, Codes] = {
    "bus": Codes(1, 2, 3, 4, 5, 1, 4, 4),
    "chat": Codes(1, 2, 2, 4, 1, 1, 4, 4),
    "scribe": Codes(1, 2, 2, 1, 1, 1, 1, 3),
    "worker": Codes(1, 2, 2, 4, 1, 1, 4, 4),
    "": Codes(1, 1, 1, 2, 1, 3, 2, 2),
    "nbs-scribe-log": Codes(1, 1, 1, 4, 1, 1, 4, 4),
    "nbs-scribe-query": Codes(1, 4, 4, 4, 1, 1, 4, 4),
}
"""By the door's name: a command of ``tripod``, or a drop-in whose codes are its own.

'' stands for all other verbs of ``tripod``.
"""


def collect_less_garbage() -> None:
    """Set the collector of reference cycles for a short process; each command calls this first.

    A command's imports make 15,000 objects that stay: 40 looks through them cost 4 to 6 ms of 65.
    A long command still collects. The look at the end, a tenth of a short command, finds nothing
    that matters: what must be closed is closed where it was opened.
    """
    gc.set_threshold(20_000, 20, 20)
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)


def report_and_exit_code(error: Exception, codes: Codes) -> int:
    """Say why a command ends, and give the exit code; ``error`` is one of ``FAILURES``."""
    if isinstance(error, BrokenPipeError):
        silence_output(sys.stdout)  # who read us has seen enough
        return 141
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        remark(f"{place}{error.strerror or error}")
        return codes.general
    remark(str(error))
    table: tuple[tuple[type[Exception], int], ...] = (
        (errors.MalformedEntryError, codes.malformed),
        (errors.BadArgumentError, codes.bad_argument),
        (errors.TooLargeError, codes.bad_argument),
        (errors.NoTeamError, codes.no_team),
        (errors.NoLedgerError, codes.no_team),
        (errors.NotFoundError, codes.not_found),
        (errors.DuplicateDroppedError, codes.duplicate),
        (errors.LedgerDamagedError, codes.damaged),
        (errors.UnreachableError, codes.damaged),
    )
    return next((code for kind, code in table if isinstance(error, kind)), codes.general)
