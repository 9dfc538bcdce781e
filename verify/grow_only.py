"""Judges one file by its git history alone: no ledger, no team directory (``--grow-only``)."""

from __future__ import annotations

from verify import growth
from verify.finding import Report, cannot_tell, outcome
from verify.history import read_history

__all__ = ["grow_only"]

_CHECK = "append-only"


def grow_only(path: str) -> Report:
    """Whether every committed version of the file at ``path`` is the beginning of the next."""
    history = read_history(path)
    if history.problem:
        return Report(path, (), problem=history.problem)
    found = growth.findings(history)
    failed = any(finding.severity == "failure" for finding in found)
    if history.shallow and not failed:
        told = cannot_tell(_CHECK, growth.shallow(history.path), required=True)
    else:
        told = outcome(_CHECK, found, growth.coverage(history), required=True)
    return Report(path, (told,))
