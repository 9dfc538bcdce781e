"""Heads of the ledger that are remembered outside, and whether it extends them. Pure.

A head comes as a signed seal or, unsigned, as the seal's three lines alone (origin, size, root).
Its source is ``git``, a ``pin``, or a ``receipt`` in the ledger.

Heads bound the time of an entry from both sides:

- *not before*: the newest receipt that stands in the ledger before the entry and names a time. It
  bears a signature that could not be known in advance, so later entries were written later.
- *not after*: the oldest head outside that covers the entry and names a time. The entries that it
  covers existed by then.

The host's own ``at`` lies between the bounds, or it is false. The value of a bound is that of its
source: a witness whose key the policy knows, or a commit, whose date is its author's claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from tripod.ledger import LedgerError, MalformedError
from tripod.ledger.tlog.note import Note, VerifierKey, parse_note, parse_note_text
from tripod.ledger.tlog.policy import Policy
from tripod.ledger.tlog.seal import Cosignature, Seal, open_seal, parse_seal
from tripod.verify.anchors.growth import FileHistory
from tripod.verify.anchors.policy import (
    LEVELS,
    PEERED,
    PINNED,
    SELF,
    TIMESTAMPED,
    UNCONFIGURED,
    WITNESSED,
    Configured,
    Rules,
)
from tripod.verify.check import POLICY, RULES, Anchored, Finding, HeadsJudged, Severity

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

# Heads -----------------------------------------------------------------------------------------


MAX_HEAD = 64 * 1024  # bytes of a note with many signatures of witnesses
_NOTHING = (0, "")
_size = itemgetter(0)


class KnownHead(NamedTuple):
    """A head that is remembered: where, in words, and when (seconds since 1970, None: unsaid).

    ``note`` is None where nothing is signed. ``stamped``: a trusted authority saw it then, give or
    take ``give`` seconds. ``cosigned`` are the cosignatures that count, after ``open_head``.
    ``binding``: the ledger must have all of its entries; of a clone, another branch may hold a
    newer one. ``seq`` is the entry of a receipt. ``recorded``: it stands where the record has its
    seal, which is always signed.
    """

    method: str
    where: str
    seal: Seal
    seconds: int | None = None
    note: Note | None = None
    stamped: bool = False
    binding: bool = True
    seq: int | None = None
    give: int = 0
    cosigned: tuple[Cosignature, ...] = ()
    recorded: bool = False


Fault: TypeAlias = Literal["unread", "forged", "broken"]
"""What should hold a head and does not; a receipt that is not what it claims; a bad policy."""


@dataclass
class OutsideHeads:
    """All that was collected beside the ledger and the team's files.

    ``faults`` are findings, each with where and why; ``untold`` says (where, why) of what may hold
    a head and cannot be read. ``given`` names the policy files from outside of the team directory.
    ``settings`` is what the project's files say besides ``rules``, and where all of it was read.
    ``pin`` is the head to start from where only what is after it is looked at. ``logs`` is what git
    tells of each decision log. ``history`` says in words what of the repository was looked at.
    """

    known: tuple[KnownHead, ...] = ()
    faults: tuple[tuple[Fault, str, str], ...] = ()
    untold: tuple[tuple[str, str], ...] = ()
    policy: Policy | None = None
    authorities: Sequence[Certificate] = ()
    rules: Rules = field(default_factory=Rules)
    settings: Configured = UNCONFIGURED
    given: frozenset[str] = frozenset()
    pin: Seal | None = None
    logs: tuple[FileHistory, ...] = ()
    repository: str | None = None
    history: str = ""

    def keys_of(self, origin: str) -> list[VerifierKey]:
        """The keys that the policy names for a log."""
        logs = self.policy.logs if self.policy is not None else ()
        return [log.key for log in logs if log.key.name == origin]


def parse_head(data: bytes) -> tuple[Seal, Note | None]:
    r"""Read a seal, or a plain head: the same three lines, unsigned (MalformedError: neither).

    >>> parse_head(b"example.com/log\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n")[0].size
    0
    """
    if b"\n\n" not in data:
        return parse_seal(parse_note_text(data, MAX_HEAD, "head")), None
    if len(data) > MAX_HEAD:
        raise MalformedError(f"seal: {len(data)} bytes are more than {MAX_HEAD}")
    note = parse_note(data)
    return parse_seal(note.text, extensions=True), note


def open_head(
    known: KnownHead, logs: Sequence[VerifierKey], policy: Policy | None
) -> tuple[KnownHead, str]:
    """Check who signed a head; give it with the cosignatures that count, and what is wrong, or ''.

    ``logs`` are keys that the log may have signed with. The ``policy`` names the witnesses: no
    receipt can say it of itself.
    """
    if known.note is None:
        return known, ""
    keys = [key for key in logs if key.name == known.seal.origin]
    problem = "unsealed"
    try:
        open_seal(known.note, keys, extensions=True)
        if policy is None or not policy.witnesses:
            return known, ""
        problem = "forged"
        witnesses = [witness.key for witness in policy.witnesses]
        seal = open_seal(known.note, keys, witnesses, extensions=True)
    except LedgerError as error:
        return known, f"{problem}: {error}"
    return known._replace(cosigned=seal.cosignatures), ""


def anchored_heads(agreeing: Iterable[KnownHead], policy: Policy | None) -> Anchored:
    """The best level, and the size up to which each is reached; the tail is not known here.

    A witness remembers, so what is WITNESSED is PINNED as well. An authority stamps any head that
    it is shown, and remembers none: TIMESTAMPED stands by itself.
    """
    best: dict[str, tuple[int, str]] = {}
    seen: dict[str, tuple[int, str]] = {}
    peers: dict[str, int] = {}
    for known in agreeing:
        reach = (known.seal.size, known.where)
        levels = [PINNED] if known.method in {"git", "pin"} else []
        if known.method == "peer":
            peers[known.where] = max(peers.get(known.where, 0), known.seal.size)
        for level in [*levels, TIMESTAMPED] if known.stamped else levels:
            best[level] = max(best.get(level, _NOTHING), reach, key=_size)
        for cosignature in known.cosigned:
            name = cosignature.key.format()
            seen[name] = max(seen.get(name, _NOTHING), reach, key=_size)
    if peers:
        most = max(peers.values())
        best[PEERED] = most, ", ".join(sorted(name for name in peers if peers[name] == most))
    # Up to the largest size that enough witnesses saw. They need not come together: a cosignature
    # of more entries vouches for fewer as well. Without a quorum one witness is enough.
    witnesses = policy.witnesses if policy is not None else ()
    sizes = {w.name: seen[w.key.format()] for w in witnesses if w.key.format() in seen}
    for size in sorted({size for size, _ in sizes.values()}, reverse=True):
        names = [name for name, (up_to, _) in sizes.items() if up_to >= size]
        if policy is not None and policy.reached(names):
            witnessed = size, "; ".join(dict.fromkeys(sizes[name][1] for name in names))
            best[WITNESSED] = witnessed
            best[PINNED] = max(best.get(PINNED, _NOTHING), witnessed, key=_size)
            break
    reached = [name for name in LEVELS if best.get(name, _NOTHING) != _NOTHING]
    return Anchored(reached[-1] if reached else SELF, {name: best[name] for name in reached})


NAME = "pins-extend"

_ROLLBACK = (
    "the ledger was rolled back or cut off, or this is an old copy: find the newest one. A "
    "restored backup, or a copy of another's ledger, goes on under a name of its own, and says so: "
    "`tripod restore --as-copy`"
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
    "the entries between are not here: `tripod pull` takes them where another copy goes on with "
    "that line; else find who has them. If the line is to end here, the old key signs that "
    "(`tripod restore --sign-fork`), or the verifier names it under `given-up` in a policy from "
    "outside (`--policy FILE`)"
)
_GIVEN_UP = (
    "the team's own policy gives it up, and that counts only in a policy from outside of the team "
    "directory: accept it with `--policy FILE`"
)
_NOT_BELIEVED = (
    "it binds nothing. Find out who committed it; a key that took the place of the one that you "
    "know is to be named in the policy as well"
)
_UNREAD = (
    "it vouches for nothing here: put back what stood there, or name who made it in the policy"
)
_BROKEN = "mend it; `--policy FILE` takes one from elsewhere in its place"
_FAULTS: dict[Fault, tuple[str, str, Severity]] = {
    "unread": ("", _UNREAD, "warning"),
    "forged": ("forged: ", _FORGED, "failure"),
    "broken": ("", _BROKEN, "failure"),
}


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

    ``keys`` are those that may have sealed it, before any policy; ``given`` those that do not
    come from the ledger itself. ``seals`` counts those that it holds. ``bodies``: False where it
    was read from headers alone, so that no key is known.
    """

    origin: str
    size: int
    roots: Mapping[int, bytes]
    forks: Sequence[Fork] = ()
    keys: Sequence[VerifierKey] = ()
    seals: int = 0
    bodies: bool = True
    given: Sequence[VerifierKey] = ()


def _add(
    told: HeadsJudged, message: str, where: str, help_: str, severity: Severity = "failure"
) -> None:
    told.findings.add(Finding(NAME, message, where, (), help_, severity))


def compare(outside: OutsideHeads, ledger: Ledger) -> HeadsJudged:
    """Judge every head that is known; what the policy demands besides is not asked here.

    A ledger that was sealed once, or whose key the policy names, must have a seal.
    """
    told = HeadsJudged(len(outside.known))
    for fault, (front, help_, severity) in _FAULTS.items():
        for what, where, problem in outside.faults:
            if what == fault:
                _add(told, front + problem, where, help_, severity)
    told.untold += [f"{where}: {problem}" for where, problem in outside.untold]
    problems = []
    for known in outside.known:
        keys = keys_of_heads(outside, ledger.keys, known.seal.origin)
        one, problem = known, ""
        if keys or ledger.bodies:
            one, problem = open_head(known, keys, outside.policy)
        doubt = _doubt(known, problem, outside, ledger)
        if doubt:
            _add(told, f"not believed: {doubt}", known.where, _NOT_BELIEVED, "warning")
        if doubt and not problem.startswith("forged"):
            continue  # the log's own signature is missing or bad: the head binds nothing
        _compare_one(told, one, outside, ledger)
        if problem and not doubt and known.seal.origin == ledger.origin:
            problems.append((problem, known.where))
    for problem, where in problems:
        _add(told, problem, where, _FORGED if problem.startswith("forged") else _UNSEALED)
    given = _vouched(outside, ledger, ledger.origin)
    force = [key for key in ledger.keys if key.name == ledger.origin][-1:]
    if ledger.given and not any(key.name == ledger.origin for key in ledger.given):
        problem = f"no key was given of this ledger, whose name is {ledger.origin}"
        _add(told, f"unsealed: {problem}", "ledger", _UNSEALED)
    elif given and force and force[0] not in given:
        problem = f"the key in force is {force[0].format()}, and it is not among those given"
        _add(told, f"unsealed: {problem}", "ledger", _UNSEALED)
    # A seal kept outside that agrees is as good as one in the ledger: a ledger restored from its
    # record ends where its seal does, before the entry that would tell of it.
    if ledger.seals or any(known.note is not None for known in told.agreeing):
        return told
    if any(known.note is not None for known in outside.known):
        problem = "this ledger was sealed once, as is remembered outside, and holds no seal"
        _add(told, f"unsealed: {problem}", "ledger", _UNSEALED)
    elif outside.policy is not None and keys_of_heads(outside, (), ledger.origin):
        problem = "the policy names the key of this ledger, which holds no seal"
        _add(told, f"unsealed: {problem}", "ledger", _UNSEALED)
    return told


def add_missing_seal(told: HeadsJudged) -> None:
    """Add that a key was given for a ledger that nothing sealed: anybody can write such a one."""
    _add(told, "unsealed: a key was given, and this ledger holds no seal", "ledger", _UNSEALED)


def keys_of_heads(
    outside: OutsideHeads, keys: Iterable[VerifierKey], origin: str
) -> list[VerifierKey]:
    """The keys that may have sealed the log ``origin``: the policy's, or else those ``keys``."""
    return outside.keys_of(origin) or [key for key in keys if key.name == origin]


def _vouched(outside: OutsideHeads, ledger: Ledger, origin: str) -> list[VerifierKey]:
    """The keys of a log from the caller's policy; the ledger and its files do not count.

    A ledger can name any key, so a head remembered outside is never set aside on its word.
    """
    named = outside.keys_of(origin) if POLICY in outside.given else []
    return named + [key for key in ledger.given if key.name == origin]


def _doubt(known: KnownHead, problem: str, outside: OutsideHeads, ledger: Ledger) -> str:
    """Why a head in git binds nothing, or '': anybody who can commit can commit three lines.

    A head that nobody signed counts for a team without a key, where its policy says that such
    heads are kept. A signature by a key that the ledger does not know is no proof of a forgery: a
    ledger cut off before a rotation does not know its newer key. Keys that were given decide that.
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


def _compare_one(
    told: HeadsJudged, known: KnownHead, outside: OutsideHeads, ledger: Ledger
) -> None:
    seal, where = known.seal, known.where
    left = next((fork for fork in ledger.forks if fork.origin == seal.origin), None)
    given_up = seal.origin in outside.rules.given_up and seal.origin != ledger.origin
    root = ledger.roots.get(seal.size)
    severity: Severity = "failure"
    if given_up and RULES in outside.given:
        what = (
            f"given up: it remembers {seal.origin} with {seal.size} entries, which the policy from "
            "outside gives up"
        )
        help_, severity = "a copy of that ledger can still show what it held", "warning"
    elif seal.origin != ledger.origin and left is None:
        what = (
            f"unknown log: it remembers {seal.origin} with {seal.size} entries, and this ledger is "
            f"{ledger.origin}"
        )
        help_ = _GIVEN_UP if given_up else _UNKNOWN
    elif left is not None and seal.size > left.size:
        what = (
            f"left behind: it remembers {seal.size} entries of {seal.origin}, and entry {left.seq} "
            f"says that this ledger left that line at {left.size}"
        )
        help_ = _LEFT
        # The old line's own key may sign that it ends at the fork: the key that signed what is
        # remembered, or one that was given. A ledger made anew can put any key in force.
        own = known.note is not None and not open_head(known, left.signers, None)[1]
        given = _vouched(outside, ledger, left.origin)
        severity = "warning" if own or any(key in given for key in left.signers) else "failure"
    elif seal.size > ledger.size:
        what = f"rollback: it remembers {seal.size} entries, and the ledger has {ledger.size}"
        help_, severity = _ROLLBACK, "failure" if known.binding else "warning"
        told.disagreeing += [known] if known.binding else []
    elif root is None:
        told.untold.append(f"{where}: entries before it are missing here")
        told.uncompared.append(known)
        return
    elif root != seal.root:
        what = (
            f"fork: it remembers root {seal.root.hex()[:16]}… of the first {seal.size} entries, "
            f"and here they have {root.hex()[:16]}…"
        )
        help_ = _FORK
        told.disagreeing.append(known)
    else:
        told.agreeing.append(known)
        return
    _add(told, what, where, help_, severity)


def wanted_head_size(rules: Rules, anchored: Anchored) -> int:
    """Up to which size every level that the rules ask for is reached; without one, any level."""
    sizes = {name: size for name, (size, _) in anchored.sizes.items()}
    most = max(sizes.values(), default=0)  # nobody outside is needed for SELF
    reached = (most if name == SELF else sizes.get(name, 0) for name in rules.level)
    return min(reached, default=most)


def add_unmet_head_demands(
    told: HeadsJudged, rules: Rules, anchored: Anchored, tail: tuple[int, int]
) -> None:
    """Add where the ledger falls short of the levels, or the freshness (``tail``), asked for."""
    missing = [name for name in rules.level if name != SELF and name not in anchored.sizes]
    if missing:
        _add(
            told,
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
            _add(
                told,
                f"stale anchor: the tail after the newest head{level} is {have} {word}, and the "
                f"policy allows {limit}",
                "policy",
                _STALE,
            )


class Bound(NamedTuple):
    """A moment (seconds since 1970), who names it, and whether a key that is trusted signed it."""

    seconds: int
    by: str
    signed: bool


class Bounds(NamedTuple):
    """The best of each side, of signed times and of claims; None if absent."""

    not_before: Bound | None
    not_before_signed: Bound | None
    not_after: Bound | None
    not_after_signed: Bound | None


def times_of_head(known: KnownHead) -> list[Bound]:
    """Every moment that a head names: its own date, and the cosignatures that count."""
    found = []
    if known.seconds is not None:
        found.append(Bound(known.seconds, known.where, known.stamped))
    for cosigned in known.cosigned:
        by = f"the witness {cosigned.key.name} ({known.where})"
        found.append(Bound(cosigned.seconds, by, signed=True))
    return found


def bounds_by_heads(seq: int, agreeing: Iterable[KnownHead]) -> Bounds:
    """The bounds of the entry ``seq``; ``agreeing`` are heads that are those of this ledger.

    What a source's clock may be off by, as it says itself, widens them.
    """
    before: list[Bound] = []
    after: list[Bound] = []
    for known in agreeing:
        if known.seq is not None and known.seq < seq:
            before += [
                one._replace(seconds=one.seconds - known.give) for one in times_of_head(known)
            ]
        if known.seal.size > seq:
            after += [
                one._replace(seconds=one.seconds + known.give) for one in times_of_head(known)
            ]
    return Bounds(
        max(before, default=None),
        max((bound for bound in before if bound.signed), default=None),
        min(after, default=None),
        min((bound for bound in after if bound.signed), default=None),
    )
