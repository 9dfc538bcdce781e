"""Holds every head that is remembered outside against the ledger: is it its beginning? Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ledger.errors import LedgerError
from ledger.seal import open_seal
from ledger.vkey import VerifierKey
from verify.finding import Anchored, Finding, Severity
from verify.known import Known, Outside
from verify.rules import LEVELS, PINNED

__all__ = ["NAME", "Compared", "Fork", "Ledger", "compare", "demanded"]

NAME = "pins-extend"
LISTED = 20

_ROLLBACK = (
    "the ledger was rolled back or cut off, or this is an old copy: find the newest one. A "
    "restored backup goes on under a new origin (`tripod restore --as-origin`), and says so"
)
_FORK = (
    "entries before this size were rewritten, or two ledgers go on under one name: compare with "
    "the copy that the head comes from, entry by entry"
)
_UNKNOWN = (
    "another ledger stands in this one's place, or the head belongs elsewhere: give the pin of "
    "this ledger, and find out where the one that it remembers is"
)
_UNSEALED = (
    "a signature that was there is gone or is somebody else's: compare the key with the one that "
    "you know (`tripod key show`), and with a copy of the ledger"
)
_STALE = (
    "have the newest head remembered: `tripod seal` and commit the record, run `verify` with a pin "
    "and --update-pin where the team cannot write, or ask a witness"
)


class Fork(NamedTuple):
    """A line that the ledger left, as it says itself: its origin, and the head at the parting."""

    seq: int
    origin: str
    size: int


class Ledger(NamedTuple):
    """What heads are held against. ``roots`` lacks a size where rows are missing before it."""

    origin: str
    size: int
    roots: Mapping[int, bytes]
    forks: Sequence[Fork] = ()
    keys: Sequence[VerifierKey] = ()
    seals: int = 0


@dataclass
class Compared:
    """What came of it: findings, the heads that agree, and those that could not be compared."""

    heads: int = 0
    findings: list[Finding] = field(default_factory=list)
    agreeing: list[Known] = field(default_factory=list)
    untold: int = 0
    anchored: Anchored | None = None

    def add(self, message: str, where: str, help_: str, *, warning: bool = False) -> None:
        """Keep a finding of this check."""
        severity: Severity = "warning" if warning else "failure"
        if len(self.findings) < LISTED:
            self.findings.append(Finding(NAME, message, where, (), help_, severity))


def compare(outside: Outside, ledger: Ledger) -> Compared:
    """Judge every head that is known; what the policy demands besides is not asked here."""
    told = Compared(len(outside.known))
    for where, problem in outside.unread:
        told.add(f"unreadable: {problem}", where, "put back what stood there", warning=True)
    for where, problem in outside.broken:
        told.add(problem, where, "mend it; `--policy FILE` takes one from elsewhere in its place")
    for known in outside.known:
        _one(told, known, ledger)
    _signatures(told, outside, ledger)
    return told


def _one(told: Compared, known: Known, ledger: Ledger) -> None:
    seal, where = known.seal, known.where
    left = next((fork for fork in ledger.forks if fork.origin == seal.origin), None)
    if seal.origin != ledger.origin and left is None:
        told.add(
            f"unknown log: it remembers {seal.origin} with {seal.size} entries, and this ledger is "
            f"{ledger.origin}",
            where,
            _UNKNOWN,
        )
        return
    if left is not None and seal.size > left.size:
        told.add(
            f"left behind: it remembers {seal.size} entries of {seal.origin}, and entry {left.seq} "
            f"says that this ledger left that line at {left.size}",
            where,
            "the entries between are lost here; whoever has them can still show them",
            warning=True,
        )
        return
    if seal.size > ledger.size:
        told.add(
            f"rollback: it remembers {seal.size} entries, and the ledger has {ledger.size}",
            where,
            _ROLLBACK,
            warning=not known.binding,
        )
        return
    root = ledger.roots.get(seal.size)
    if root is None:
        told.untold += 1
    elif root != seal.root:
        told.add(
            f"fork: it remembers root {seal.root.hex()[:16]}… of the first {seal.size} entries, "
            f"and here they have {root.hex()[:16]}…",
            where,
            _FORK,
        )
    else:
        told.agreeing.append(known)


def _signatures(told: Compared, outside: Outside, ledger: Ledger) -> None:
    """Where a signature is to be had, it must be there, and be that of a key that is known."""
    logs = [log.key for log in outside.policy.logs] if outside.policy is not None else []
    for known in outside.known:
        if known.note is None or known.seal.origin != ledger.origin:
            continue
        keys = [key for key in (logs or ledger.keys) if key.name == ledger.origin]
        try:
            open_seal(known.note, keys, extensions=True)
        except LedgerError as error:
            told.add(f"unsealed: {error}", known.where, _UNSEALED)
    sealed = any(known.note is not None for known in outside.known)
    if ledger.seals:
        return
    if sealed:
        told.add(
            "unsealed: this ledger was sealed once, as is remembered outside, and holds no seal",
            "ledger",
            _UNSEALED,
        )
    elif any(key.name == ledger.origin for key in logs):
        message = "unsealed: the policy names the key of this ledger, which holds no seal"
        told.add(message, "ledger", _UNSEALED)


def demanded(outside: Outside, level: str, tail: tuple[int, int]) -> list[Finding]:
    """Where the ledger falls short of the level or the freshness that the rules ask for.

    ``tail`` is what stands behind the newest head of at least the rules' level.
    """
    rules, found = outside.rules, []
    wanted = rules.level or PINNED
    if rules.level is not None and LEVELS.index(level) < LEVELS.index(rules.level):
        message = (
            f"unanchored: the policy asks for {rules.level}, and what is known outside makes it "
            f"{level}"
        )
        found.append(Finding(NAME, message, "policy", (), _STALE))
        return found
    limits = ((rules.tail_entries, "entries"), (rules.tail_seconds, "seconds"))
    for (limit, word), have in zip(limits, tail, strict=True):
        if limit is not None and have > limit:
            message = (
                f"stale anchor: the tail behind the newest head of level {wanted} is {have} "
                f"{word}, and the policy allows {limit}"
            )
            found.append(Finding(NAME, message, "policy", (), _STALE))
    return found
