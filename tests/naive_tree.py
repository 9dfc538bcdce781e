"""The Merkle tree of RFC 6962 section 2.1, word for word and slow: what ours is held against."""

from collections.abc import Sequence
from hashlib import sha256

__all__ = ["consistency", "directions", "inclusion", "leaf", "root"]


def leaf(data: bytes) -> bytes:
    """MTH({d(0)}) = SHA-256(0x00 || d(0))."""
    return sha256(b"\x00" + data).digest()


def root(leaves: Sequence[bytes]) -> bytes:
    """MTH of a list of leaf hashes."""
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    k = _split(len(leaves))
    return sha256(b"\x01" + root(leaves[:k]) + root(leaves[k:])).digest()


def inclusion(m: int, leaves: Sequence[bytes]) -> list[bytes]:
    """PATH(m, D[n])."""
    if len(leaves) == 1:
        return []
    k = _split(len(leaves))
    if m < k:
        return [*inclusion(m, leaves[:k]), root(leaves[k:])]
    return [*inclusion(m - k, leaves[k:]), root(leaves[:k])]


def consistency(m: int, leaves: Sequence[bytes]) -> list[bytes]:
    """PROOF(m, D[n])."""
    return _subproof(m, leaves, whole=True)


def _subproof(m: int, leaves: Sequence[bytes], *, whole: bool) -> list[bytes]:
    if m == len(leaves):
        return [] if whole else [root(leaves)]
    k = _split(len(leaves))
    if m <= k:
        return [*_subproof(m, leaves[:k], whole=whole), root(leaves[k:])]
    return [*_subproof(m - k, leaves[k:], whole=False), root(leaves[:k])]


def directions(m: int, n: int) -> str:
    """The way from leaf m up to the root of n leaves: on which side each sibling stands.

    Two leaves with the same way cannot be told apart by a proof alone, only by the root.
    """
    if n == 1:
        return ""
    k = _split(n)
    return directions(m, k) + "r" if m < k else directions(m - k, n - k) + "l"


def _split(n: int) -> int:
    k = 1
    while k * 2 < n:
        k *= 2
    return k
