"""The head of a ledger, and the guard by which a caller states what it has seen."""

from __future__ import annotations

from typing import NamedTuple


class Head(NamedTuple):
    """(size, root) of the ledger at some moment."""

    size: int
    root: bytes


class Guard(NamedTuple):
    """``stream`` has not grown since the caller saw the ledger at ``size`` entries."""

    stream: str
    size: int
