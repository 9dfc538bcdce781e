"""Kinds of what lets outsiders trust a ledger: its keys, its seals, its anchors, its forks."""

from __future__ import annotations

from typing import Literal

from ledger.kinds.base import BodyModel, Content, Count, Name, Sha256

__all__ = ["AnchorReceived", "ForkedFrom", "KeySet", "SealMade"]


class KeySet(BodyModel):
    """From here on the ledger is sealed by the key ``vkey``, which bears the origin as its name.

    Where another key was in force, ``note`` is a signed note with the signatures of both, over
    the four lines ``tripod key rotation``, origin, old vkey, new vkey.
    """

    vkey: Name
    note: str | None = None


class SealMade(BodyModel):
    """The head of the first ``size`` entries was signed: ``note`` is the seal, and why it was made.

    The entry itself is the first behind them.
    """

    note: str
    size: Count
    reason: Literal["asked", "checkpoint", "decision", "policy", "export"]


class ForkedFrom(BodyModel):
    """A restored copy goes on here, under the origin that the header names from this entry on.

    ``origin`` is the line that it was a copy of, ``size`` and ``root`` the head at which they
    part: all entries before this one. ``seal`` is the newest seal of the old line that was known,
    which may cover entries that are lost here.
    """

    origin: Name
    size: Count
    root: Sha256
    reason: str
    seal: str | None = None


class AnchorReceived(BodyModel):
    """Something outside this host remembers the head ``size``, ``root``; this is its receipt.

    ``name`` says who or where, in the words of the method.
    """

    method: Literal["git", "pin", "witness", "tsa"]
    size: Count
    root: Sha256
    name: Name
    receipt: Content
