r"""The rule for a file that only grows, and what breaks of it in a history mean. Pure.

A version follows another if it begins with it: no line was removed, changed or inserted. Two people
may append at once, on two branches. Then the merge begins with one side, and after that keeps every
line of the other in order:

>>> follows(b"a\n", b"a\nb\n"), follows(b"a\nb\n", b"a\nc\n")
(True, False)
>>> keeps(b"a\nx\ny\n", b"a\nb\nx\ny\n"), keeps(b"a\nx\n", b"a\nb\n")
(True, False)

``tripod.verify.anchors.git_growth`` walks the versions that git holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from tripod.verify.finding import Coverage, Finding, Severity

_NAME = "append-only"
_HELP = (
    "the version before it is still in git: `git show COMMIT^:PATH`; put back what is missing, and "
    "say in the file itself why it was ever gone"
)
_WORK = "`git diff -- PATH` shows what was changed; put it back, and append instead"


class Break(NamedTuple):
    """A version that does not follow the one before it.

    ``where`` names the commit in words ('' for the file as it stands now), ``what`` says what is
    wrong, ``shown`` where the versions part. ``old`` and ``new`` are git's names of the two
    versions ('': no file, no plain one, or the file as it stands now), ``seconds`` is the commit's
    own time. ``restored`` names the later commit, in words, that put back what was there, and
    ``added`` how many lines it took away that the break had added. The bytes are not kept: of a
    history with many breaks they are many.
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
    repository's, ``seen`` says in words which commit was looked at. ``log`` is the team's name for
    a decision log.
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


ReadVersions: TypeAlias = Callable[[Break], tuple[bytes, bytes] | None]


def follows(old: bytes, new: bytes | None) -> bool:
    """Whether ``old`` is the beginning of ``new``."""
    return new is not None and new.startswith(old)


def keeps(old: bytes, new: bytes) -> bool:
    """Whether all lines of ``old`` stand in ``new``, in order, after those that both begin with.

    The last line of either may lack its line break.
    """
    wanted, there = old.split(b"\n"), new.split(b"\n")
    at = 0
    while at < min(len(wanted), len(there)) and wanted[at] == there[at]:
        at += 1
    rest = iter(there[at:])
    return all(line in rest for line in wanted[at:] if line)


def unconverted(data: bytes, committed: bytes) -> bytes:
    r"""Bytes of a work tree as git would store them where its checkout wrote ``\r\n``.

    >>> unconverted(b"a\r\nb\r\n", b"a\n")
    b'a\nb\n'
    """
    if b"\r\n" in data and b"\r" not in committed:
        return data.replace(b"\r\n", b"\n")
    return data


# What a history says ---------------------------------------------------------------------------


def findings(
    history: FileHistory,
    explain: Callable[[Break], str | None] = lambda _: None,
    *,
    ledger: bool = False,
) -> Iterator[Finding]:
    """Every break, the oldest first, and history that was rewritten.

    A break that ``explain`` has words for is told as a warning: it fails nothing. So is one that a
    later commit put right. If that took away lines which the break had added, only a ``ledger``
    tells whether they were ever said: without one it is a failure.
    """
    for one in history.breaks:
        if one.restored:
            yield _restored(history.path, one, ledger=ledger)
        else:
            yield _broken(history.path, one, explain(one))
    yield from _rewritten(history)


def coverage(history: FileHistory) -> Coverage:
    """What of a file's history was seen."""
    seen: Coverage = {"versions in git": history.versions}
    restored = sum(bool(one.restored) for one in history.breaks)
    if restored:
        seen["restored"] = restored
    if history.merged:
        seen["merges of two appends"] = history.merged
    return seen


def shallow(path: str) -> str:
    """Why the history of a shallow clone is no answer."""
    return (
        f"{path}: this clone is shallow, so versions before its first commit were not seen; "
        "`git fetch --unshallow` brings them (in CI: fetch-depth: 0)"
    )


def _broken(path: str, one: Break, explained: str | None) -> Finding:
    place = one.where or "the work tree (not committed)"
    message = f"{place}: {one.what}"
    if explained is not None:
        return Finding(_NAME, f"{message}: {explained}", path, severity="warning")
    return Finding(_NAME, message, path, one.shown, _HELP if one.where else _WORK)


def _restored(path: str, one: Break, *, ledger: bool) -> Finding:
    """A break that a later commit put right: it stays to be seen."""
    message = f"{one.where}: {one.what}; restored by {one.restored}"
    severity: Severity = "warning"
    if one.added:
        lines = "line" if one.added == 1 else "lines"
        message += f", which took away {one.added} {lines} that had been added as well"
        severity = "warning" if ledger else "failure"
    return Finding(_NAME, message, path, one.shown, _HELP, severity)


def departs(old: bytes, new: bytes | None) -> str:
    """In which lines a version departs from the one before it."""
    wanted, there = old.split(b"\n"), (new or b"").split(b"\n")
    at = 0
    while at < min(len(wanted), len(there)) and wanted[at] == there[at]:
        at += 1
    last = len(wanted) - (not wanted[-1])
    if at + 1 >= last:
        return f"line {at + 1} of the version before it is not as it was"
    return f"lines {at + 1} to {last} of the version before it are not as they were"


def _rewritten(history: FileHistory) -> Iterator[Finding]:
    for lost in history.lost:
        text = f"history was rewritten: {lost.ref} once named {lost.where}, and does no more"
        if lost.broke:
            text += "; the file as it was there is not the beginning of what it is now"
        help_ = (
            "others may have a clone with that commit; `git reflog` names it here"
            if lost.shared
            else "commits that were never published may be amended; `git reflog` names them here"
        )
        severity: Severity = "failure" if lost.broke and lost.shared else "warning"
        yield Finding(_NAME, text, history.path, lost.shown, help_, severity)
