"""One line at a terminal that says how far long work is; nothing in a pipe or a file."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tripod.ledger.progress import progress_to

DELAY = 1.0  # seconds of silence: what is done by then needs no line
_EVERY = 0.1  # seconds between two looks of the line
_COLUMNS = 80  # where the terminal does not say


@contextmanager
def progress_shown(*, quiet: bool = False) -> Iterator[None]:
    """Show on stderr what the work inside is at, if that is a terminal, and clear it at the end.

    The line is written over in place, by a carriage return, and never goes beyond its width.
    ``quiet``: say nothing in any case, since machine output was asked for.
    """
    out = sys.stderr
    if quiet or out is None or not out.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    due, drawn = time.monotonic() + DELAY, 0

    def draw(text: str, end: str = "") -> None:
        nonlocal drawn
        try:
            columns = os.get_terminal_size(out.fileno()).columns
        except (OSError, ValueError):
            columns = 0
        room = max(1, (columns or _COLUMNS) - 1)  # in the last column some terminals break the line
        text = text[:room]
        # What stood there before is covered with spaces, as far as the line still reaches.
        with suppress(OSError, ValueError):  # nobody looks any more; the work goes on
            out.write(f"\r{text.ljust(min(drawn, room))}{end}")
            out.flush()
            drawn = len(text)

    def tell(what: str, done: int, of: int) -> None:
        nonlocal due
        now = time.monotonic()
        if now >= due:
            due = now + _EVERY
            how_far = f" {100 * done // of} %" if of else f" {done:,}" if done else ""
            draw(f"{what}{how_far}")

    try:
        with progress_to(tell):
            yield
    finally:
        if drawn:
            draw("", end="\r")
