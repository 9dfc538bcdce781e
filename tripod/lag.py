"""Lets files fall behind the ledger for a moment, where somebody does very much at once.

What an act says is durable at its COMMIT; its files cost several times that, and a chat that gets a
hundred messages in a moment is written a hundred times to be read once. See ``Team.files_later``.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from tripod.act import Act

__all__ = ["Lag"]


class Lag:
    """When the files were last written, and what else is to be done behind them."""

    def __init__(self, seconds: float) -> None:
        """They may be ``seconds`` behind."""
        self.seconds = seconds
        self.over = False
        self._written = time.monotonic()
        self._later: list[Callable[[], None]] = []

    def puts_off(self, act: Act) -> bool:
        """Whether this act's files can wait; if not, it does what was put off behind its own."""
        now = time.monotonic()
        quick = now - self._written < self.seconds
        if act.may_lag and quick and not self.over and not act.rewrite:
            self._later += act.later
            return True
        act.later[:0] = self._later
        self._later = []
        self._written = now
        return False
