"""The RFC 6962 tree: compact ranges, roots, inclusion and consistency proofs. Pure.

Where the hashes come from is the caller's: a ``Nodes`` function answers for the root of any
*perfect* subtree. Source: RFC 6962 section 2.1; spec: tlog-formats 1; ``docs/formats/tree.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from typing import TypeAlias

EMPTY_ROOT = sha256(b"").digest()

Nodes: TypeAlias = Callable[[int, int], bytes]
"""``nodes(height, index)``: root of the perfect subtree over leaves [index<<height, +1<<height)."""


def node_hash(left: bytes, right: bytes) -> bytes:
    """Hash two children into their parent."""
    return sha256(b"\x01" + left + right).digest()


class Tree:
    """A compact range: the roots of the perfect subtrees of a growing tree, largest first.

    ``size`` leaves are held in as many hashes as ``size`` has one-bits; appending is O(1)
    amortised. ``full`` collects (level, index, hash) of each subtree of 256^level leaves as it
    becomes full: what a store keeps so that proofs need not read all leaves.
    """

    __slots__ = ("full", "size", "stack")

    def __init__(self, size: int = 0, stack: Iterable[bytes] = ()) -> None:
        """Continue a tree of ``size`` leaves with its ``stack`` (ValueError: they disagree)."""
        self.size = size
        self.stack = list(stack)
        self.full: list[tuple[int, int, bytes]] = []
        if len(self.stack) != size.bit_count():
            raise ValueError(
                f"a tree of {size} leaves has {size.bit_count()} subtrees, not {len(self.stack)}"
            )

    def append(self, leaf: bytes) -> None:
        """Add one leaf hash."""
        stack = self.stack
        size = self.size = self.size + 1
        count = size
        digest = leaf
        height = 0
        while not count & 1:
            digest = sha256(b"\x01" + stack.pop() + digest).digest()
            count >>= 1
            height += 1
            if not height & 7:
                self.full.append((height >> 3, (size >> height) - 1, digest))
        stack.append(digest)

    def root(self) -> bytes:
        """Root of the tree as it stands (32 bytes)."""
        if not self.stack:
            return EMPTY_ROOT
        digest = self.stack[-1]
        for left in reversed(self.stack[:-1]):
            digest = sha256(b"\x01" + left + digest).digest()
        return digest


def root_of(nodes: Nodes, start: int, stop: int) -> bytes:
    """Root over the leaves [start, stop); ``start`` is a multiple of the split (RFC 6962 MTH)."""
    count = stop - start
    if count == 0:
        return EMPTY_ROOT
    if count & (count - 1) == 0 and start % count == 0:
        height = count.bit_length() - 1
        return nodes(height, start >> height)
    split = start + _split(count)
    return node_hash(root_of(nodes, start, split), root_of(nodes, split, stop))


def inclusion_proof(nodes: Nodes, index: int, size: int) -> list[bytes]:
    """Proof that leaf ``index`` lies in the tree of ``size``: sibling first, root's child last."""
    if not 0 <= index < size:
        raise ValueError(f"no leaf {index} in a tree of {size}")
    proof: list[bytes] = []
    start, stop = 0, size
    while stop - start > 1:
        split = start + _split(stop - start)
        if index < split:
            proof.append(root_of(nodes, split, stop))
            stop = split
        else:
            proof.append(root_of(nodes, start, split))
            start = split
    proof.reverse()
    return proof


def check_inclusion(
    leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes
) -> bool:
    """Whether ``proof`` leads from ``leaf`` at ``index`` to ``root`` of the tree of ``size``."""
    if not 0 <= index < size:
        return False
    last, digest = size - 1, leaf
    for sibling in proof:
        if last == 0:
            return False
        if index & 1 or index == last:
            digest = node_hash(sibling, digest)
            while not index & 1 and index:
                index >>= 1
                last >>= 1
        else:
            digest = node_hash(digest, sibling)
        index >>= 1
        last >>= 1
    return last == 0 and digest == root


def consistency_proof(nodes: Nodes, old: int, new: int) -> list[bytes]:
    """Proof that the tree of ``old`` leaves is a prefix of the tree of ``new`` (RFC 6962 2.1.2)."""
    if not 0 <= old <= new:
        raise ValueError(f"a tree of {old} leaves is no prefix of one of {new}")
    if old in (0, new):
        return []
    proof: list[bytes] = []
    start, stop, whole = 0, new, True
    while old != stop:
        split = start + _split(stop - start)
        if old <= split:
            proof.append(root_of(nodes, split, stop))
            stop = split
        else:
            proof.append(root_of(nodes, start, split))
            start = split
            whole = False
    if not whole:
        proof.append(root_of(nodes, start, stop))
    proof.reverse()
    return proof


def check_consistency(
    old: int, old_root: bytes, new: int, new_root: bytes, proof: Sequence[bytes]
) -> bool:
    """Whether ``proof`` shows that the tree (old, old_root) is a prefix of (new, new_root)."""
    if not 0 <= old <= new:
        return False
    if old == new:
        return not proof and old_root == new_root
    if old == 0:
        return not proof and old_root == EMPTY_ROOT
    path = list(proof)
    index, last = old - 1, new - 1
    while index & 1:
        index >>= 1
        last >>= 1
    if index == 0:
        path.insert(0, old_root)  # old is a perfect subtree: its root is not in the proof
    if not path:
        return False
    first = second = path[0]
    for digest in path[1:]:
        if last == 0:
            return False
        if index & 1 or index == last:
            first, second = node_hash(digest, first), node_hash(digest, second)
            while index and not index & 1:
                index >>= 1
                last >>= 1
        else:
            second = node_hash(second, digest)
        index >>= 1
        last >>= 1
    return last == 0 and first == old_root and second == new_root


def _split(count: int) -> int:
    """Largest power of two below ``count`` (count > 1)."""
    return 1 << (count - 1).bit_length() - 1
