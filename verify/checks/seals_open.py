"""Every seal of the ledger opens: the key in force signed it, over the tree of that size.

**What it proves.** Each key was put in force properly (the first of a line by itself, each later
one with the signatures of the key before it and its own), and bears the name of the ledger. Each
seal was signed by the key in force at its size, and its root is that of the ledger's first
entries. Where a restored copy went on under another name, the head at which it left is the one
that it says, and no name is used twice. (The record's seal is for ``record-agrees``.)

**Why it matters.** A seal says that the ledger had exactly these entries when it was made. Without
the key a rewritten ledger cannot be sealed. With the key it can; then every copy of an older seal
that was kept elsewhere contradicts it.

**What a finding looks like.** ``the seal of 48 entries has another root than the first 48 entries
have``; ``the seal of 48 entries: signed by no key that is trusted here``; ``the key was replaced,
and one of the two keys did not sign``.

**What to do.** Find an older copy of the ledger (a clone, a backup, the record in git) and compare:
entries before the newest seal that opens are those that were sealed. If the key itself may be in
other hands, `tripod key rotate`, and look at the seals that others kept.

A seal that covers entries altered as ``chain-links`` or ``sequence`` name it is not named again.
The stored subtree roots serve to compute a root fast; ``sequence`` holds them against the entries.
That a ledger *has* a key is for a policy to demand: one without is passed over here.
"""

from __future__ import annotations

from typing import NamedTuple

from tripod.ledger import MalformedError, NotVerifiedError
from tripod.ledger.tlog.note import VerifierKey
from tripod.ledger.tlog.seal import open_seal, rotation_problem
from tripod.verify.check import (
    LEDGER,
    TABLES,
    Evidence,
    Finding,
    Findings,
    Outcome,
    not_applicable,
    outcome,
)

NAME = "seals-open"
REQUIRED = True
NEEDS = (LEDGER, TABLES)
ACCEPTABLE = False
HELP = "compare with an older copy of the ledger: a clone, a backup, the record in git"


class _Key(NamedTuple):
    seq: int
    key: VerifierKey


def judge(evidence: Evidence) -> Outcome:
    """Judge the rule that this module's docstring states."""
    keys = evidence.query("SELECT seq, vkey FROM keys ORDER BY seq")
    seals = evidence.query("SELECT seq, size, note FROM seals ORDER BY seq")
    forks = evidence.query("SELECT seq, size, root FROM forks ORDER BY seq")
    if not keys and not seals and not forks:
        return not_applicable(NAME, "the ledger has no key")
    found = Findings()
    good = _keys(evidence, keys, found)
    for seq, size, note in seals:
        problem = _seal_problem(evidence, good, note, size, seq)
        if problem is not None:
            found.add(_finding(problem, seq))
    names = {evidence.line(0)} if forks else set()
    for seq, size, root in forks:
        name = evidence.line(seq)
        if name in names:
            message = f"it goes on as {name!r}, which was this ledger's name before"
            found.add(_finding(message, seq))
        names.add(name)
        there = None if evidence.altered_below(size) else evidence.root_at(size)
        if there is not None and there.hex() != root:
            message = f"it forks at another root than the first {size} entries have"
            found.add(_finding(message, seq))
    seen = {"seals": len(seals), "keys": len(keys)}
    return outcome(NAME, found, seen)


def _finding(message: str, seq: int) -> Finding:
    return Finding(NAME, message, f"entry {seq}", help=HELP, seq=seq)


def _keys(evidence: Evidence, rows: list[tuple[int, str]], found: Findings) -> list[_Key]:
    """The keys that were put in force properly; what is wrong with the others is added."""
    good: list[_Key] = []
    for seq, vkey in rows:
        try:
            key = VerifierKey.parse(vkey)
        except MalformedError as error:
            found.add(_finding(f"the key is invalid: {error}", seq))
            continue
        if evidence.altered_below(seq + 1):
            good.append(_Key(seq, key))  # what was altered is named
            continue
        origin = evidence.line(seq)
        note = evidence.body(seq).get("note")
        before = _in_force(good, seq, origin)
        if key.name != origin:
            problem: str | None = f"the key is named {key.name!r}, the ledger {origin!r}"
        elif before is None:
            problem = None if note is None else "no key was in force that it could replace"
        elif note is None:
            problem = f"the key {before.format()} was replaced, and did not sign that"
        else:
            problem = rotation_problem(note, origin, before, key)
            if problem is not None:
                problem = f"the key {before.format()} was replaced: {problem}"
        if problem is not None:
            found.add(_finding(problem, seq))
        else:
            good.append(_Key(seq, key))
    return good


def _in_force(keys: list[_Key], size: int, origin: str) -> VerifierKey | None:
    """The key that seals the first ``size`` entries of the line ``origin``."""
    for seq, key in reversed(keys):
        if seq < size:
            return key if key.name == origin else None
    return None


def _seal_problem(
    evidence: Evidence, keys: list[_Key], note: str, size: int, seq: int
) -> str | None:
    """Whether the key in force signed ``note``, and it is the seal of the first entries."""
    what = f"the seal of {size} entries"
    if size > seq:
        return f"{what} stands at entry {seq}, and covers more than was there"
    try:
        data = note.encode()
    except ValueError:
        return f"{what}: its note is no text"
    if evidence.altered_below(size):
        return None  # what was altered is named, and this seal was over what it was
    origin = evidence.line(size - 1)
    key = _in_force(keys, size, origin)
    if key is None:
        return f"{what}: no key of {origin!r} was in force"
    try:
        seal = open_seal(data, [key]).seal
    except (MalformedError, NotVerifiedError) as error:
        return f"{what}: {error}"
    if seal.size != size:
        return f"{what}: its note is that of {seal.size} entries"
    root = evidence.root_at(seal.size)
    if root is None or root == seal.root:
        return None  # rows that are gone are named as well
    return (
        f"{what}: its root is {seal.root.hex()[:12]}…, and the first {seal.size} entries have "
        f"{root.hex()[:12]}…: they were rewritten, or the seal is of another ledger"
    )
