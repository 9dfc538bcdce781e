"""Shows where two files part, in a few lines. Pure; linear in their size, whatever differs."""

from __future__ import annotations

from verify.escape import shorten

LINES = 6


def difference(want: bytes, have: bytes | None) -> tuple[str, ...]:
    r"""The first lines in which ``have`` differs from ``want``, as a unified diff would show them.

    >>> difference(b"a\nb\n", b"a\nc\n")
    ('@@ line 2 @@', '-b', '+c')
    """
    if have is None:
        return ()
    ours, theirs = want.split(b"\n"), have.split(b"\n")
    shortest = min(len(ours), len(theirs))
    start = 0
    while start < shortest and ours[start] == theirs[start]:
        start += 1
    tail = 0
    while tail < shortest - start and ours[-1 - tail] == theirs[-1 - tail]:
        tail += 1
    shown = [f"@@ line {start + 1} @@"]
    for sign, lines in (("-", ours), ("+", theirs)):
        changed = lines[start : len(lines) - tail]
        shown += [sign + shorten(line.decode("utf-8", "replace")) for line in changed[:LINES]]
        if len(changed) > LINES:
            shown.append(f"{sign}… {len(changed) - LINES} more lines")
    return tuple(shown)
