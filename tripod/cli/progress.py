"""One line at a terminal that says how far long work is; nothing in a pipe or a file."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from tripod.ledger.progress import progress_to

DELAY = 1.0  # seconds of silence: what is done by then needs no line
_EVERY = 0.1  # seconds between two looks of the line
_COLUMNS = 80  # where the terminal does not say


@contextmanager
def progress_shown(*, quiet: bool = False, delay: float | None = None) -> Iterator[None]:
    """Show on stderr what the work inside is at, if that is a terminal, and clear it at the end.

    Args:
        quiet: say nothing in any case: machine output was asked for.
        delay: seconds before the first word; ``DELAY`` by default.
    """
    out = sys.stderr
    if quiet or out is None or not out.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    line = _Line(out, DELAY if delay is None else delay)
    try:
        with progress_to(line):
            yield
    finally:
        line.clear()


class _Line:
    """A line that is written over in place: by a carriage return, and never beyond its width."""

    def __init__(self, out: TextIO, delay: float) -> None:
        self._out = out
        self._next = time.monotonic() + delay
        self._drawn = 0

    def __call__(self, what: str, done: int, of: int) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _EVERY
        how_far = f" {100 * done // of} %" if of else f" {done:,}" if done else ""
        self._draw(f"{what}{how_far}")

    def clear(self) -> None:
        """Leave an empty line, and the cursor at its beginning."""
        if self._drawn:
            self._draw("", end="\r")

    def _draw(self, text: str, end: str = "") -> None:
        try:
            columns = os.get_terminal_size(self._out.fileno()).columns
        except (OSError, ValueError):
            columns = 0
        room = max(1, (columns or _COLUMNS) - 1)  # in the last column some terminals break the line
        text = text[:room]
        # What stood there before is covered with spaces, as far as the line still reaches.
        with suppress(OSError, ValueError):  # nobody looks any more; the work goes on
            self._out.write(f"\r{text.ljust(min(self._drawn, room))}{end}")
            self._out.flush()
            self._drawn = len(text)
