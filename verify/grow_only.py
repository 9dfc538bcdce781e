"""Judges one file by its git history alone: no ledger, no team directory (``--grow-only``)."""

from __future__ import annotations

from dataclasses import replace

from verify import growth
from verify.finding import CANNOT_TELL, Report, Subject, outcome
from verify.history import read_history

_CHECK = "append-only"


def grow_only(path: str) -> Report:
    """Whether every committed version of the file at ``path`` is the beginning of the next."""
    history = read_history(path)
    subject = Subject("", "", history.top or None, history.problem or history.seen)
    if history.problem:
        return Report(path, (), problem=history.problem, subject=subject)
    found = growth.findings(history)
    told = outcome(_CHECK, found, growth.coverage(history), required=True)
    if history.shallow and not told.failures:
        told = replace(told, verdict=CANNOT_TELL, reason=growth.shallow(history.path))
    return Report(path, (told,), subject=subject)
