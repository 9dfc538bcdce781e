"""Heads of the ledger that something outside remembers, and what they vouch for. Pure.

A head comes as a signed seal or, where nothing is signed, as the seal's three lines alone (origin,
size, root). Each is of a method: ``git``, ``pin``, ``witness`` or ``tsa``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ledger.errors import LedgerError, MalformedError
from ledger.note import Note, parse_note
from ledger.policy import Policy, open_under
from ledger.seal import Seal, parse_seal
from ledger.spelling import parse_text
from verify.finding import Anchored
from verify.growth import History
from verify.rules import LEVELS, PINNED, SELF, TIMESTAMPED, WITNESSED, Rules

__all__ = ["MAX_HEAD", "Known", "Outside", "anchored", "level_of", "parse_head"]

MAX_HEAD = 64 * 1024  # bytes of a note with many signatures of witnesses
_METHODS = {"git": PINNED, "pin": PINNED}


class Known(NamedTuple):
    """A head that is remembered: by whom, in words, and when (seconds since 1970, None: unsaid).

    ``note`` is None where nothing is signed. ``stamped``: an authority that is trusted here says
    that it saw it then. ``binding``: the ledger must have all of its entries; a head that only
    another branch of a repository holds may be of a newer state than a copy that is judged.
    ``seq`` is the entry that holds it, where it is a receipt in the ledger itself.
    """

    method: str
    where: str
    seal: Seal
    seconds: int | None = None
    note: Note | None = None
    stamped: bool = False
    binding: bool = True
    seq: int | None = None


@dataclass
class Outside:
    """All that was collected beside the ledger and the team's files.

    ``unread`` says (where, why) of what should hold a head and does not, ``broken`` of a policy of
    the team's that is not understood. ``pin`` is the head to start from where only what is behind
    it is looked at. ``log`` is what git tells of the decision log, where it holds it.
    """

    known: tuple[Known, ...] = ()
    unread: tuple[tuple[str, str], ...] = ()
    broken: tuple[tuple[str, str], ...] = ()
    policy: Policy | None = None
    rules: Rules = field(default_factory=Rules)
    pin: Seal | None = None
    log: History | None = None


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
        message = f"seal: {len(data)} bytes are more than {MAX_HEAD}"
        raise MalformedError(message)
    note = parse_note(data)
    return parse_seal(note.text, extensions=True), note


def level_of(known: Known, policy: Policy | None) -> str:
    """What a head that agrees with the ledger is worth.

    WITNESSED asks for the policy's quorum of cosignatures: whose signatures count, a receipt
    cannot say of itself. A receipt in the ledger that nobody outside signed is worth nothing.
    """
    if known.stamped:
        return TIMESTAMPED
    if known.note is not None and policy is not None and policy.quorum is not None:
        try:
            open_under(policy, known.note, extensions=True)
        except LedgerError:
            pass
        else:
            return WITNESSED
    return _METHODS.get(known.method, SELF)


def anchored(agreeing: list[Known], policy: Policy | None) -> Anchored:
    """The best level and the size up to which each is reached; the tail is not known here."""
    best: dict[str, tuple[int, str]] = {}
    for known in agreeing:
        level = level_of(known, policy)
        for name in LEVELS[1 : LEVELS.index(level) + 1]:
            if known.seal.size > best.get(name, (0, ""))[0]:
                best[name] = (known.seal.size, known.where)
    reached = [name for name in LEVELS if name in best]
    return Anchored(reached[-1] if reached else SELF, {name: best[name] for name in reached})
