r"""The rule for a file that only grows, and what its history in git tells. Pure.

A version follows another if it begins with it: no line was removed, changed or inserted. Two people
may append at once, on two branches. Then the merge begins with one side, and after that keeps every
line of the other in order:

>>> is_growth(b"a\n", b"a\nb\n"), is_growth(b"a\nb\n", b"a\nc\n")
(True, False)
>>> is_growth_in_between(b"a\nx\ny\n", b"a\nb\nx\ny\n"), is_growth_in_between(b"a\nx\n", b"a\nb\n")
(True, False)

``tripod.verify.anchors.git_growth`` walks the versions that git holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

STAGED = "what is staged"
"""Where a break is that the next commit would make."""


class Break(NamedTuple):
    """A version that does not follow the one before it.

    ``where`` names the commit in words ('' for the file as it stands now, or ``STAGED``), ``what``
    says what is wrong, ``shown`` where the versions part. ``old`` and ``new`` are git's names of
    the two versions ('': no file, no plain one, or the file as it stands now), ``seconds`` is the
    commit's time. ``restored`` names the later commit that put back what was there, and ``added``
    how many lines it took away that the break had added. The bytes are not kept: they would be
    many.
    """

    where: str
    what: str
    shown: tuple[str, ...]
    old: str
    new: str
    seconds: int = 0
    restored: str = ""
    added: int = 0


class Lost(NamedTuple):
    """History that a ref once had and has no more, and the commit.

    ``broke``: the file as it was there is not the beginning of what it is now; ``shown`` says where
    they part. ``shared``: others had it already, for the ref is a remote's.
    """

    ref: str
    where: str
    broke: bool
    shown: tuple[str, ...]
    shared: bool


class FileHistory(NamedTuple):
    """All that git tells about one file. ``problem`` says why it tells nothing.

    ``merged`` counts the merges that kept what was appended on both sides. ``top`` is the
    repository's, ``seen`` says which commit was looked at, ``log`` is the team's name for a log.
    ``unstaged``: only what is staged was asked for, and that changes nothing of the file.
    """

    path: str = ""
    versions: int = 0
    merged: int = 0
    breaks: tuple[Break, ...] = ()
    lost: tuple[Lost, ...] = ()
    shallow: bool = False
    problem: str = ""
    top: str = ""
    seen: str = ""
    log: str = ""
    unstaged: bool = False


ReadVersions: TypeAlias = Callable[[Break], tuple[bytes, bytes] | None]


def shared_start(ours: Sequence[object], theirs: Sequence[object]) -> int:
    """How many items two sequences have in common from their beginning."""
    apart = (at for at, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b)
    return next(apart, min(len(ours), len(theirs)))


def is_growth(old: bytes, new: bytes | None) -> bool:
    """Whether ``old`` is the beginning of ``new``."""
    return new is not None and new.startswith(old)


def is_growth_in_between(old: bytes, new: bytes) -> bool:
    """Whether all lines of ``old`` stand in ``new``, in order, after those that both begin with.

    The last line of either may lack its line break.
    """
    wanted, there = old.split(b"\n"), new.split(b"\n")
    at = shared_start(wanted, there)
    rest = iter(there[at:])
    return all(line in rest for line in wanted[at:] if line)


def unconverted_growth(data: bytes, committed: bytes) -> bytes:
    r"""Bytes of a work tree as git would store them where its checkout wrote ``\r\n``.

    >>> unconverted_growth(b"a\r\nb\r\n", b"a\n")
    b'a\nb\n'
    """
    if b"\r\n" in data and b"\r" not in committed:
        return data.replace(b"\r\n", b"\n")
    return data


def growth_break(old: bytes, new: bytes | None) -> str:
    """In which lines a version departs from the one before it."""
    wanted = old.split(b"\n")
    at = shared_start(wanted, (new or b"").split(b"\n"))
    last = len(wanted) - (not wanted[-1])
    if at + 1 >= last:
        return f"line {at + 1} of the version before it is not as it was"
    return f"lines {at + 1} to {last} of the version before it are not as they were"
