"""``nbs-scribe-log``: log one decision, with the original's arguments (spec: nbs-compat B10).

Where it differs from the original, and why: ``docs/reference/nbs-scribe.md``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tripod.doors import DOORS
from tripod.dropin.common import leave
from tripod.dropin.decisions import OPTIONS, log
from tripod.dropin.words import asks_for_help, take_apart
from tripod.output import emit

USAGE = """\
Usage: nbs-scribe-log LOG SUMMARY --participants=HANDLES --rationale=TEXT
         [--chat-ref=FILE:~Ln] [--artefacts=LIST] [--risk-tags=LIST] [--status=STATUS]
         [--supersedes=D-N | --reverses=D-N | --mitigates=D-N] [--bus-dir=DIR] [--as=HANDLE]
Logs a decision with its event; its id is printed.
LOG is a decision log in any folder (.nbs/scribe/live-log.md); a new one is begun. Lists have
commas between their items.
STATUS is decided, accepted-risk, mitigated, superseded or reversed.
DIR is the folder of the team's events; it need not be given.
exit codes: 0 ok, 1 error, 4 bad arguments"""


def main() -> None:
    """Run the command, and leave with its exit code."""
    leave(_run, DOORS["nbs-scribe-log"])


def _run(arguments: Sequence[str]) -> int:
    if asks_for_help(arguments):
        sys.stderr.write(f"{USAGE}\n")
        return 0
    emit([log(take_apart(arguments, USAGE.partition("\n")[0][7:], texts=(2, 2), options=OPTIONS))])
    return 0
