"""Progress reports of long work, for a listener that registered; without one they cost nothing.

A command at a terminal registers one (``tripod.output``). No result may depend on a listener.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeAlias, TypeVar

EACH = 1000

Listener: TypeAlias = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and of how much (0: unknown)."""

T = TypeVar("T")

_ears: list[Listener] = []


@contextmanager
def progress_to(listener: Listener) -> Iterator[None]:
    """Call ``listener`` with each report for the length of a ``with``."""
    _ears.append(listener)
    try:
        yield
    finally:
        _ears[:] = [ear for ear in _ears if ear is not listener]


def silence_progress() -> None:
    """Remove all listeners: a child process has no terminal of its own."""
    _ears.clear()


def tell_progress(what: str, done: int = 0, of: int = 0) -> None:
    """Say what is being done now."""
    for listener in _ears:
        listener(what, done, of)


def tell_over(items: Iterable[T], what: str, of: int = 0) -> Iterable[T]:
    """The items as they are; reports to listeners before the first and after each thousand.

    >>> list(tell_over("ab", "reading"))
    ['a', 'b']
    """

    def told() -> Iterator[T]:
        tell_progress(what, 0, of)
        for number, item in enumerate(items, 1):
            yield item
            if not number % EACH:
                tell_progress(what, number, of)

    return told() if _ears else items
