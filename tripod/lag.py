"""Lets files fall behind the ledger for a moment, where somebody does very much at once.

What an act says is durable at its COMMIT; its files cost several times that, and a chat that gets a
hundred messages in a moment is written a hundred times to be read once. See ``Team.files_later``.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from tripod.act import Act


class Lag:
    """When the files were last written, and what else is to be done behind them."""

    def __init__(self, seconds: float) -> None:
        """They may be ``seconds`` behind."""
        self.seconds = seconds
        self.over = False
        self._written = time.monotonic()
        self._later: dict[tuple[str, ...], Callable[[], None]] = {}

    def is_fresh(self) -> bool:
        """Whether the files were written, and looked at, so lately that both can wait."""
        return not self.over and time.monotonic() - self._written < self.seconds

    def look(self, act: Act) -> None:
        """Take in the read positions of files that are to be written, perhaps behind this act."""
        from tripod.positions import take_positions

        for channel in {what[1] for what in self._later if what[0] == "cursors"}:
            take_positions(act, channel)

    def puts_off(self, act: Act) -> bool:
        """Whether this act's files can wait; if not, it does what was put off behind its own."""
        if act.blind or (act.may_lag and self.is_fresh() and not act.rewrite):
            self._later |= act.later
            return True
        act.later = self._later | act.later
        self._later = {}
        self._written = time.monotonic()
        return False
