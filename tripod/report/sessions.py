"""What a page shows of recorded sessions that no ledger knows: plain values, no markup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tripod.verify.isolation.reasons import Exposure

EXPOSURES = 500
"""Exposures of one file that a page lists; the others are counted."""


class FileFacts(NamedTuple):
    """A file of a session; ``exposures`` are the first ones, ``more`` counts the others."""

    path: str
    program: str
    sha256: str
    lines: int
    last: str
    exposures: tuple[Exposure, ...]
    more: int


@dataclass(frozen=True)
class SessionFacts:
    """What was judged: the verdict, '' without a rule, its reasons, and the files.

    ``protected`` names what must not have been read, in words.
    """

    verdict: str
    exit_code: int
    protected: Sequence[str] = ()
    reasons: Sequence[str] = ()
    untold: Sequence[str] = ()
    advice: Sequence[str] = ()
    custody: Sequence[str] = ()
    coverage: dict[str, object] = field(default_factory=dict)
    files: Sequence[FileFacts] = ()
