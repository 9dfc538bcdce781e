"""Does a piece of work in a child process, beside what this one does. Only for much work.

The child opens what it needs itself and gives back one value. Whatever goes wrong with it (it is
killed, the system refuses another process), the caller does the work itself: same answer, later.
"""

from __future__ import annotations

import gc
import os
import pickle
import warnings
from collections.abc import Callable
from typing import TypeVar

from tripod.ledger.progress import silence_progress

T = TypeVar("T")


def child_cores() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def start_child(work: Callable[[], T]) -> Callable[[], T | None]:
    """Begin ``work`` in a child; the function given back waits for its value (None: it failed)."""
    try:
        source, sink = os.pipe()
        with warnings.catch_warnings():
            # Python warns where other threads run. The child takes no lock that they may hold: it
            # opens files of its own, computes, writes to the pipe and ends.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
    except OSError:
        return lambda: None
    if child == 0:
        # The child ends here in any case: it must not run what its parent would do at its end.
        status = 1
        silence_progress()
        gc.freeze()  # the collector would write to every page that is the parent's as well
        try:
            os.close(source)
            data = pickle.dumps(work())
            with os.fdopen(sink, "wb") as out:
                out.write(data)
            status = 0
        finally:
            os._exit(status)
    os.close(sink)

    def wait() -> T | None:
        with os.fdopen(source, "rb") as pipe:
            data = pipe.read()
        _, status = os.waitpid(child, 0)
        # What is read here was written by our own child, from our own memory.
        return pickle.loads(data) if status == 0 else None  # noqa: S301

    return wait
