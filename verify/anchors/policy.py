r"""What a team demands of its own ledger: the YAML file ``policy.yaml``. Pure.

::

    # missing protection is a failure, not a skip
    level: PINNED                     # or WITNESSED, TIMESTAMPED, [WITNESSED, TIMESTAMPED]
    tail-entries: 256                 # so many entries may stand after the newest such head,
    tail-seconds: 86400               # ... the oldest of them for so long
    required: [pins-extend, drift]    # checks that must have something to judge, and be clean
    signed:                           # kinds of entries that their actor must have signed,
      - decision.logged
    signed-from: 120                  # ... from this entry on
    seals: [SEAL, docs/head.note]     # committed files, besides the record's, that hold seals
    given-up: [example.com/old]       # their heads only warn; counts from outside alone
    exceptions: cannot-tell           # "clean, except" becomes "cannot tell"

A list may also be written as text with commas. Unlike the bus's configuration the whole file is
refused if a part of it is not understood: a misspelled demand would demand nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tripod.projections.settings import Rule, Settings, read_settings, setting_of, whole_setting

SELF, PINNED, WITNESSED, TIMESTAMPED = LEVELS = ("SELF", "PINNED", "WITNESSED", "TIMESTAMPED")
"""Who vouches for the ledger: it alone, a head kept elsewhere, witnesses, a timestamp authority."""

_MOST = 10**15 - 1


def _names(value: object) -> object:
    names = [one.strip() for one in value.split(",")] if isinstance(value, str) else value
    if isinstance(names, list):
        names = [name for name in names if name != ""]
    if not names:
        raise ValueError("the value names nothing")
    return names


Names = Annotated[tuple[str, ...], Rule(_names)]
Level = Annotated[str, setting_of(LEVELS)]
Exceptions = Annotated[str, setting_of(("cannot-tell",))]
Number = Annotated[int | None, whole_setting(0, _MOST)]


@dataclass(frozen=True)
class Rules(Settings):
    """What must be there; None and () ask for nothing. Each of ``level`` must be reached."""

    level: Annotated[tuple[Level, ...], Rule(_names)] = ()
    tail_entries: Number = None
    tail_seconds: Number = None
    required: Names = ()
    seals: Names = ()
    given_up: Names = ()
    signed: Names = ()
    signed_from: Number = None
    exceptions: Annotated[tuple[Exceptions, ...], Rule(_names)] = ()


def parse(data: bytes) -> Rules:
    """Read the file; which checks there are is not asked (MalformedError: which line, and why)."""
    return read_settings(Rules, data)
