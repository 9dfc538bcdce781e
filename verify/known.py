"""Heads of the ledger that something outside remembers, and what they vouch for. Pure.

A head comes as a signed seal or, where nothing is signed, as the seal's three lines alone (origin,
size, root). Each comes from ``git``, from a ``pin``, or from a ``receipt`` in the ledger.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from ledger.errors import LedgerError, MalformedError
from ledger.note import Note, parse_note
from ledger.policy import Policy
from ledger.seal import Cosignature, Seal, open_seal, parse_seal
from ledger.spelling import parse_text
from ledger.vkey import VerifierKey
from verify.finding import Anchored
from verify.growth import History
from verify.rules import LEVELS, PINNED, SELF, TIMESTAMPED, WITNESSED, Rules

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

MAX_HEAD = 64 * 1024  # bytes of a note with many signatures of witnesses
_METHODS = {"git": PINNED, "pin": PINNED}
POLICY = "policy.tlog"
RULES = "policy.yaml"
"""The files that say whose signatures count, and what must be there."""


class Known(NamedTuple):
    """A head that is remembered: by whom, in words, and when (seconds since 1970, None: unsaid).

    ``note`` is None where nothing is signed. ``stamped``: an authority that is trusted here says
    that it saw it then, give or take ``give`` seconds. ``cosigned`` says which witnesses that the
    policy names did, once ``opened`` looked. ``binding``: the ledger must have all of its entries;
    where a clone is judged by its record, another branch may hold a newer one. ``seq`` is the
    entry that holds it, where it is a receipt in the ledger itself. ``recorded``: it stands where
    the record has its seal, and no record was ever written with one that nobody signed.
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


@dataclass
class Outside:
    """All that was collected beside the ledger and the team's files.

    ``unread`` says (where, why) of what should hold a head and does not, ``untold`` of what may
    hold one and cannot be read, ``forged`` of receipts that are not what they claim, ``broken`` of
    a policy of the team's that is not understood. ``authorities`` are certificates of those whose
    timestamps count. ``given`` has ``POLICY`` and ``RULES`` where that file came from
    outside of the team directory. ``pin`` is the head to start from where only what is behind it
    is looked at. ``logs`` is what git tells of each decision log that it holds. ``repository`` is
    the top of the repository that was asked, ``history`` says in words what of it was looked at.
    """

    known: tuple[Known, ...] = ()
    unread: tuple[tuple[str, str], ...] = ()
    untold: tuple[tuple[str, str], ...] = ()
    forged: tuple[tuple[str, str], ...] = ()
    broken: tuple[tuple[str, str], ...] = ()
    policy: Policy | None = None
    authorities: Sequence[Certificate] = ()
    rules: Rules = field(default_factory=Rules)
    given: frozenset[str] = frozenset()
    pin: Seal | None = None
    logs: tuple[History, ...] = ()
    repository: str | None = None
    history: str = ""


def parse_head(data: bytes) -> tuple[Seal, Note | None]:
    r"""Read a seal, or a plain head: the same three lines, signed by nobody.

    >>> parse_head(b"example.com/log\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n")[0].size
    0

    Raises:
        MalformedError: it is neither.
    """
    if b"\n\n" not in data:
        return parse_seal(parse_text(data, MAX_HEAD, "head")), None
    if len(data) > MAX_HEAD:
        raise MalformedError(f"seal: {len(data)} bytes are more than {MAX_HEAD}")
    note = parse_note(data)
    return parse_seal(note.text, extensions=True), note


def opened(known: Known, logs: Sequence[VerifierKey], policy: Policy | None) -> tuple[Known, str]:
    """Ask who signed a head: it with the cosignatures that count, and what is wrong, or ''.

    Whose cosignatures count, the policy says: no receipt can say it of itself.

    Args:
        known: the head; where nothing is signed, nothing is asked.
        logs: keys that the log may have signed with.
        policy: names the witnesses.
    """
    if known.note is None:
        return known, ""
    keys = [key for key in logs if key.name == known.seal.origin]
    try:
        seal = open_seal(known.note, keys, extensions=True)
    except LedgerError as error:
        return known, f"unsealed: {error}"
    if policy is None or not policy.witnesses:
        return known, ""
    try:
        witnesses = [witness.key for witness in policy.witnesses]
        seal = open_seal(known.note, keys, witnesses, extensions=True)
    except LedgerError as error:
        return known, f"forged: {error}"
    return known._replace(cosigned=seal.cosignatures), ""


def anchored(agreeing: Iterable[Known], policy: Policy | None) -> Anchored:
    """The best level, and the size up to which each is reached; the tail is not known here.

    A witness remembers, so what is WITNESSED is PINNED as well. An authority stamps whatever it is
    shown, and remembers nothing: TIMESTAMPED stands by itself.
    """
    best: dict[str, tuple[int, str]] = {}
    seen: dict[str, tuple[int, str]] = {}
    for known in agreeing:
        levels = [_METHODS[known.method]] if known.method in _METHODS else []
        if known.stamped:
            levels.append(TIMESTAMPED)
        for level in levels:
            _raise(best, level, known)
        for cosignature in known.cosigned:
            _raise(seen, cosignature.key.format(), known)
    witnessed = None if policy is None else _quorum(seen, policy)
    if witnessed is not None:
        best[WITNESSED] = witnessed
        best[PINNED] = max(best.get(PINNED, (0, "")), witnessed, key=lambda one: one[0])
    reached = [name for name in LEVELS if name in best]
    return Anchored(reached[-1] if reached else SELF, {name: best[name] for name in reached})


def _raise(best: dict[str, tuple[int, str]], name: str, known: Known) -> None:
    if known.seal.size > best.get(name, (0, ""))[0]:
        best[name] = (known.seal.size, known.where)


def _quorum(seen: Mapping[str, tuple[int, str]], policy: Policy) -> tuple[int, str] | None:
    """The largest size up to which enough witnesses saw the ledger; they need not come together.

    Who cosigned more entries vouches for fewer as well. Without a quorum one witness is enough.
    """
    sizes = {w.name: seen[w.key.format()] for w in policy.witnesses if w.key.format() in seen}
    for size in sorted({size for size, _ in sizes.values()}, reverse=True):
        names = [name for name, (up_to, _) in sizes.items() if up_to >= size]
        if policy.reached(names):
            return size, "; ".join(dict.fromkeys(sizes[name][1] for name in names))
    return None
