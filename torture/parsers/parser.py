"""A parser as it is tortured, and how parsers of texts are given bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Parser", "as_list", "as_text", "as_unicode", "golden", "words_of"]

GOLDEN = Path(__file__).resolve().parents[2] / "tests/golden"
"""Files as they are in the world, from which the inputs grow."""


@dataclass(frozen=True)
class Parser:
    """A parser, as it is tortured.

    ``read`` takes bytes and gives what they mean, or raises one of ``errors``: all else is wrong.
    It raises AssertionError itself where a verifier took what none may take. ``covers`` are the
    functions that are called. ``seeds`` are inputs that it takes, ``words`` mean something in the
    format. ``write`` gives the bytes of what was read: those very bytes where the format has one
    spelling (``is_strict``), else bytes that mean the same.
    """

    name: str
    read: Callable[[bytes], object]
    covers: tuple[Callable[..., object], ...]
    seeds: tuple[bytes, ...]
    errors: tuple[type[Exception], ...] = ()
    words: tuple[bytes, ...] = ()
    write: Callable[[Any], bytes] | None = None
    is_strict: bool = False


def as_text(read: Callable[[str], object]) -> Callable[[bytes], object]:
    """A reader of texts, given bytes: what is no UTF-8 comes as halves of surrogates."""
    return lambda data: read(data.decode("utf-8", "surrogateescape"))


def as_unicode(read: Callable[[str], object]) -> Callable[[bytes], object]:
    """A reader of texts that are whole, given bytes: what is no UTF-8 is replaced."""
    return lambda data: read(data.decode("utf-8", "replace"))


def as_list(read: Callable[[Any], Iterable[Any]]) -> Callable[[Any], list[Any]]:
    """A reader whose answer is read to its end."""
    return lambda value: list(read(value))


def golden(*patterns: str) -> tuple[bytes, ...]:
    """The first bytes of each golden file that fits one of the globs."""
    found = [path for pattern in patterns for path in sorted(GOLDEN.glob(pattern))]
    if not found:
        raise FileNotFoundError(f"{GOLDEN} has no {patterns}")
    return tuple(path.read_bytes()[:6000] for path in found)


def words_of(text: str) -> tuple[bytes, ...]:
    """The words between the dots of a text."""
    return tuple(word.encode() for word in text.split("·"))
