"""Holds every head that is remembered outside against the ledger: is it its beginning? Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ledger.vkey import VerifierKey
from verify.finding import Anchored, Finding, Findings, Severity
from verify.known import POLICY, RULES, Known, Outside, opened
from verify.rules import SELF, Rules

NAME = "pins-extend"

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

_FORGED = (
    "a receipt is checked before it is logged, so this was not logged by an anchor's round: find "
    "out who appended it (`tripod show SEQ`), and ask the witness or authority itself"
)
_LEFT = (
    "the entries between are lost here: find who has them. If the line is to end here, the old key "
    "signs that (`tripod restore --sign-fork`), or whoever judges names it under `given-up` in a "
    "policy from outside (`--policy FILE`)"
)
_GIVEN_UP = (
    "the team's own policy gives it up, and that counts only in a policy from outside of the team "
    "directory: whoever judges accepts it with `--policy FILE`"
)
_NOT_BELIEVED = (
    "it binds nothing. Find out who committed it; a key that took the place of the one that you "
    "know is to be named in the policy as well"
)
_UNREAD = (
    "it vouches for nothing here: put back what stood there, or name who made it in the policy"
)


class Fork(NamedTuple):
    """A line that the ledger left, as it says itself: its origin, and the head at the parting.

    ``signers`` are those of the old line's keys that signed it.
    """

    seq: int
    origin: str
    size: int
    signers: Sequence[VerifierKey] = ()


class Ledger(NamedTuple):
    """What heads are held against. ``roots`` lacks a size where rows are missing before it.

    ``keys`` are those that may have sealed it, whatever a policy says; ``given`` those among them
    that do not come from the ledger itself. ``seals`` counts those that it holds. ``bodies``: False
    where it was read from headers alone, so that no key is known.
    """

    origin: str
    size: int
    roots: Mapping[int, bytes]
    forks: Sequence[Fork] = ()
    keys: Sequence[VerifierKey] = ()
    seals: int = 0
    bodies: bool = True
    given: Sequence[VerifierKey] = ()


@dataclass
class Held:
    """What came of it: findings, the heads that agree, and why others could not be held."""

    heads: int = 0
    findings: Findings = field(default_factory=Findings)
    agreeing: list[Known] = field(default_factory=list)
    untold: list[str] = field(default_factory=list)
    anchored: Anchored | None = None

    def add(self, message: str, where: str, help_: str, severity: Severity = "failure") -> None:
        """Add a finding."""
        self.findings.add(Finding(NAME, message, where, (), help_, severity))


def compare(outside: Outside, ledger: Ledger) -> Held:
    """Judge every head that is known; what the policy demands besides is not asked here."""
    told = Held(len(outside.known))
    for where, problem in outside.unread:
        told.add(problem, where, _UNREAD, "warning")
    for where, problem in outside.forged:
        told.add(f"forged: {problem}", where, _FORGED)
    for where, problem in outside.broken:
        told.add(problem, where, "mend it; `--policy FILE` takes one from elsewhere in its place")
    told.untold += [f"{where}: {problem}" for where, problem in outside.untold]
    problems = []
    for known in outside.known:
        keys = trusted(outside, ledger.keys, known.seal.origin)
        one, problem = known, ""
        if keys or ledger.bodies:
            one, problem = opened(known, keys, outside.policy)
        remark = _remark(known, problem, outside, ledger)
        if remark:
            told.add(f"not believed: {remark}", known.where, _NOT_BELIEVED, "warning")
        if remark and not problem.startswith("forged"):
            continue  # the log's own signature is missing or bad: the head binds nothing
        _one(told, one, outside, ledger)
        if problem and not remark and known.seal.origin == ledger.origin:
            problems.append((problem, known.where))
    for problem, where in problems:
        told.add(problem, where, _FORGED if problem.startswith("forged") else _UNSEALED)
    _sealed(told, outside, ledger)
    return told


def trusted(outside: Outside, keys: Iterable[VerifierKey], origin: str) -> list[VerifierKey]:
    """The keys that may have sealed the log ``origin``: the policy's, or else those ``keys``."""
    named = [log.key for log in outside.policy.logs] if outside.policy is not None else []
    ours = [key for key in named if key.name == origin]
    return ours or [key for key in keys if key.name == origin]


def _vouched(outside: Outside, ledger: Ledger, origin: str) -> list[VerifierKey]:
    """The keys of a log that whoever judges brought along; the ledger and its files do not count.

    What is judged can name any key, so nothing that others remember is put aside on its word.
    """
    named = [log.key for log in outside.policy.logs] if outside.policy is not None else []
    named = named if POLICY in outside.given else []
    return [key for key in (*named, *ledger.given) if key.name == origin]


def _remark(known: Known, problem: str, outside: Outside, ledger: Ledger) -> str:
    """Why a head in git binds nothing, or '': anybody who can commit can commit three lines.

    A head that nobody signed counts for a team without a key, where its policy says that such
    heads are kept. In the record's place none was ever kept by a team that has a key.

    A signature by a key that the ledger does not know is no proof of a forgery: a ledger that was
    cut off before a rotation does not know its newer key. Keys that were given decide that.
    """
    if known.method != "git" or (known.note is not None and not problem):
        return ""
    if problem.startswith("forged"):
        return problem  # of a cosignature: the log's own is good
    if known.note is None and known.recorded and ledger.keys:
        return "nobody signed it, and the seal of a record is always signed"
    if not _vouched(outside, ledger, ledger.origin):
        return ""
    return problem or "nobody signed it, and the key of this ledger was given"


def _one(told: Held, known: Known, outside: Outside, ledger: Ledger) -> None:
    seal, where = known.seal, known.where
    left = next((fork for fork in ledger.forks if fork.origin == seal.origin), None)
    given_up = seal.origin in outside.rules.given_up and seal.origin != ledger.origin
    if given_up and RULES in outside.given:
        told.add(
            f"given up: it remembers {seal.origin} with {seal.size} entries, which the policy from "
            "outside gives up",
            where,
            "whoever has that ledger can still show what it held",
            "warning",
        )
        return
    if seal.origin != ledger.origin and left is None:
        told.add(
            f"unknown log: it remembers {seal.origin} with {seal.size} entries, and this ledger is "
            f"{ledger.origin}",
            where,
            _GIVEN_UP if given_up else _UNKNOWN,
        )
        return
    if left is not None and seal.size > left.size:
        told.add(
            f"left behind: it remembers {seal.size} entries of {seal.origin}, and entry {left.seq} "
            f"says that this ledger left that line at {left.size}",
            where,
            _LEFT,
            "warning" if _may_leave(left, known, outside, ledger) else "failure",
        )
        return
    if seal.size > ledger.size:
        told.add(
            f"rollback: it remembers {seal.size} entries, and the ledger has {ledger.size}",
            where,
            _ROLLBACK,
            "failure" if known.binding else "warning",
        )
        return
    root = ledger.roots.get(seal.size)
    if root is None:
        told.untold.append(f"{where}: entries before it are missing here")
    elif root != seal.root:
        told.add(
            f"fork: it remembers root {seal.root.hex()[:16]}… of the first {seal.size} entries, "
            f"and here they have {root.hex()[:16]}…",
            where,
            _FORK,
        )
    else:
        told.agreeing.append(known)


def _may_leave(fork: Fork, known: Known, outside: Outside, ledger: Ledger) -> bool:
    """Whether the old line's own key signed that it ends at the fork.

    It is the key that signed what is remembered, or one that was given: whoever makes a ledger
    anew can put a key of their own in force in it, and sign whatever they like.
    """
    if known.note is not None and not opened(known, fork.signers, None)[1]:
        return True
    given = _vouched(outside, ledger, fork.origin)
    return any(key in given for key in fork.signers)


def _sealed(told: Held, outside: Outside, ledger: Ledger) -> None:
    """A ledger that was sealed once, or whose key the policy names, has a seal.

    One that is kept outside and agrees is as good as one that it holds: a ledger that was restored
    from its record ends where its seal does, before the entry that would tell of it.
    """
    given = _vouched(outside, ledger, ledger.origin)
    force = [key for key in ledger.keys if key.name == ledger.origin][-1:]
    if given and force and force[0] not in given:
        told.add(
            f"unsealed: the key in force is {force[0].format()}, and it is none of those given",
            "ledger",
            _UNSEALED,
        )
    signed = [known for known in outside.known if known.note is not None]
    if ledger.seals or any(known.note is not None for known in told.agreeing):
        return
    if signed:
        told.add(
            "unsealed: this ledger was sealed once, as is remembered outside, and holds no seal",
            "ledger",
            _UNSEALED,
        )
    elif outside.policy is not None and trusted(outside, (), ledger.origin):
        message = "unsealed: the policy names the key of this ledger, which holds no seal"
        told.add(message, "ledger", _UNSEALED)


def wanted_size(rules: Rules, anchored: Anchored) -> int:
    """Up to which size every level that the rules ask for is reached; without one, any level."""
    sizes = {name: size for name, (size, _) in anchored.sizes.items()}
    if not rules.level:
        return max(sizes.values(), default=0)
    return min(_reached(sizes, name) for name in rules.level)


def _reached(sizes: Mapping[str, int], level: str) -> int:
    """Up to which size a level is reached; nobody outside is needed for SELF."""
    return max(sizes.values(), default=0) if level == SELF else sizes.get(level, 0)


def demanded(told: Held, rules: Rules, anchored: Anchored, tail: tuple[int, int]) -> None:
    """Add where the ledger falls short of the levels or the freshness that the rules ask for.

    ``tail`` is what stands behind ``wanted_size``.
    """
    missing = [name for name in rules.level if name != SELF and name not in anchored.sizes]
    if missing:
        told.add(
            f"unanchored: the policy asks for {', '.join(missing)}, and what is known outside "
            f"makes it {anchored.level}",
            "policy",
            _STALE,
        )
        return
    limits = ((rules.tail_entries, "entries"), (rules.tail_seconds, "seconds"))
    for (limit, word), have in zip(limits, tail, strict=True):
        if limit is not None and have > limit:
            level = f" of level {', '.join(rules.level)}" if rules.level else ""
            told.add(
                f"stale anchor: the tail behind the newest head{level} is {have} {word}, and the "
                f"policy allows {limit}",
                "policy",
                _STALE,
            )
