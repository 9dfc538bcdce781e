"""The tree: stored vectors, and every proof of every size up to 64, whole and damaged."""

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import naive_tree as naive
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sealed import list_nodes

from tripod.ledger.entry import entry_leaf_hash
from tripod.ledger.merkle import (
    EMPTY_ROOT,
    Tree,
    check_consistency,
    check_inclusion,
    consistency_proof,
    inclusion_proof,
    node_hash,
    root_of,
)

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "golden/vectors/rfc6962.json").read_text(encoding="utf-8")
)
SMALL = ["classic", "e0..e6"]
LIMIT = 64
SIZES = range(LIMIT + 1)
LEAVES = [entry_leaf_hash(b"e%d" % index) for index in range(LIMIT + 2)]
NODES = list_nodes(LEAVES)
ROOTS = [naive.root(LEAVES[:size]) for size in range(len(LEAVES) + 1)]
INCLUSION = {
    (index, size): inclusion_proof(NODES, index, size) for size in SIZES for index in range(size)
}
CONSISTENCY = {
    (old, new): consistency_proof(NODES, old, new) for new in SIZES for old in range(new + 1)
}


def vector_leaves(name: str) -> list[bytes]:
    return [entry_leaf_hash(bytes.fromhex(data)) for data in VECTORS[name]["leaves"]]


def grown(leaves: list[bytes]) -> Tree:
    tree = Tree()
    for leaf in leaves:
        tree.append(leaf)
    return tree


def damaged(proof: list[bytes]) -> Iterator[list[bytes]]:
    """The proof with each hash altered, left out, doubled or swapped, cut short and extended."""
    for at, digest in enumerate(proof):
        yield [*proof[:at], bytes([digest[0] ^ 1]) + digest[1:], *proof[at + 1 :]]
        yield [*proof[:at], digest[:-1] + bytes([digest[-1] ^ 128]), *proof[at + 1 :]]
        yield [*proof[:at], digest[:-1], *proof[at + 1 :]]
        yield proof[:at]
        yield proof[at + 1 :]
        yield [*proof[:at], digest, *proof[at:]]
    for at in range(len(proof) - 1):
        yield [*proof[:at], proof[at + 1], proof[at], *proof[at + 2 :]]
    yield [*proof, EMPTY_ROOT]
    yield [EMPTY_ROOT, *proof]
    yield [*proof, b""]


# Vectors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SMALL)
def test_vector_roots(name: str) -> None:
    leaves = vector_leaves(name)
    for size, root in enumerate(VECTORS[name]["roots"]):
        assert grown(leaves[:size]).root().hex() == root
        assert root_of(list_nodes(leaves), 0, size).hex() == root
        assert naive.root(leaves[:size]).hex() == root


def test_vector_hashes() -> None:
    leaves = vector_leaves("e0..e6")
    assert [leaf.hex() for leaf in leaves] == VECTORS["e0..e6"]["hashes"]
    assert node_hash(leaves[0], leaves[1]).hex() == VECTORS["e0..e6"]["roots"][2]
    assert EMPTY_ROOT.hex() == VECTORS["classic"]["roots"][0]


@pytest.mark.parametrize(
    ("name", "case"), [(name, case) for name in SMALL for case in VECTORS[name]["inclusion"]]
)
def test_vector_inclusion(name: str, case: dict[str, Any]) -> None:
    leaves, index, size = vector_leaves(name), case["index"], case["size"]
    proof = inclusion_proof(list_nodes(leaves), index, size)
    assert [digest.hex() for digest in proof] == case["proof"]
    assert check_inclusion(leaves[index], index, size, proof, grown(leaves[:size]).root())


@pytest.mark.parametrize(
    ("name", "case"), [(name, case) for name in SMALL for case in VECTORS[name]["consistency"]]
)
def test_vector_consistency(name: str, case: dict[str, Any]) -> None:
    leaves, old, new = vector_leaves(name), case["old"], case["new"]
    proof = consistency_proof(list_nodes(leaves), old, new)
    assert [digest.hex() for digest in proof] == case["proof"]
    roots = [bytes.fromhex(root) for root in VECTORS[name]["roots"]]
    assert check_consistency(old, roots[old], new, roots[new], proof)


def test_seventy_thousand_leaves_and_their_full_subtrees() -> None:
    vector = VECTORS["n0..n69999"]
    leaves = [entry_leaf_hash(b"n%d" % index) for index in range(vector["size"])]
    tree = Tree()
    roots = {}
    for leaf in leaves:
        tree.append(leaf)
        if str(tree.size) in vector["roots"]:
            roots[str(tree.size)] = tree.root().hex()
    assert roots == vector["roots"]

    first = [digest for level, _, digest in tree.full if level == 1]
    second = [digest for level, _, digest in tree.full if level == 2]
    assert len(first) + len(second) == len(tree.full)
    assert {
        "count": len(first),
        "sha256 of 0..255": sha256(b"".join(first[:256])).hexdigest(),
        "sha256 of 256..272": sha256(b"".join(first[256:])).hexdigest(),
    } == vector["level 1"]
    assert {
        "count": len(second),
        "sha256 of 0..0": sha256(second[0]).hexdigest(),
    } == vector["level 2"]
    assert second[0].hex() == vector["roots"]["65536"]
    nodes = list_nodes(leaves)
    for level, index, digest in [*tree.full[:3], *tree.full[-3:], tree.full[256]]:
        width = 256**level
        assert root_of(nodes, index * width, (index + 1) * width) == digest
    assert [index for level, index, _ in tree.full if level == 1] == list(range(273))
    assert tree.full[256][:2] == (2, 0)


# Every size up to 64 ---------------------------------------------------------------------------


def test_every_root() -> None:
    tree = Tree()
    for size in SIZES:
        assert tree.size == size
        assert tree.root() == ROOTS[size] == root_of(NODES, 0, size)
        tree.append(LEAVES[size])


def test_every_inclusion_proof_is_the_one_of_the_rfc_and_checks() -> None:
    for (index, size), proof in INCLUSION.items():
        assert proof == naive.inclusion(index, LEAVES[:size])
        assert check_inclusion(LEAVES[index], index, size, proof, ROOTS[size])


def test_no_damaged_inclusion_proof_checks() -> None:
    for (index, size), proof in INCLUSION.items():
        for other in damaged(proof):
            assert not check_inclusion(LEAVES[index], index, size, other, ROOTS[size])


def test_no_inclusion_proof_checks_for_another_place() -> None:
    for (index, size), proof in INCLUSION.items():
        leaf, root = LEAVES[index], ROOTS[size]
        for other in range(-1, size + 2):
            assert check_inclusion(leaf, other, size, proof, root) == (other == index)
        for other in (size - 1, size + 1):
            assert not check_inclusion(leaf, index, other, proof, ROOTS[other])
            # A size alone, under the root of another, is refused unless it asks for the same way
            # up: a head is size and root together, and neither is taken from elsewhere.
            same_way = index < other and naive.directions(index, other) == naive.directions(
                index, size
            )
            assert check_inclusion(leaf, index, other, proof, root) == same_way


def test_no_inclusion_proof_checks_for_another_leaf_or_root() -> None:
    for (index, size), proof in INCLUSION.items():
        assert not check_inclusion(LEAVES[index + 1], index, size, proof, ROOTS[size])
        assert not check_inclusion(LEAVES[index], index, size, proof, ROOTS[size + 1])
        assert not check_inclusion(LEAVES[index], index, size, proof, b"")


def test_every_consistency_proof_is_the_one_of_the_rfc_and_checks() -> None:
    for (old, new), proof in CONSISTENCY.items():
        assert proof == ([] if old == 0 else naive.consistency(old, LEAVES[:new]))
        assert check_consistency(old, ROOTS[old], new, ROOTS[new], proof)


def test_no_damaged_consistency_proof_checks() -> None:
    for (old, new), proof in CONSISTENCY.items():
        for other in damaged(proof):
            assert not check_consistency(old, ROOTS[old], new, ROOTS[new], other)


def test_no_consistency_proof_checks_for_other_heads() -> None:
    for (old, new), proof in CONSISTENCY.items():
        assert not check_consistency(old, ROOTS[old + 1], new, ROOTS[new], proof)
        assert not check_consistency(old, ROOTS[old], new, ROOTS[new + 1], proof) or old == 0
        assert not check_consistency(new, ROOTS[new], old, ROOTS[old], proof) or old == new
        for other in (old - 1, old + 1):
            assert not check_consistency(other, ROOTS[old], new, ROOTS[new], proof)
            if other > 0 and old not in (0, other) and other != new:
                assert not check_consistency(other, ROOTS[other], new, ROOTS[new], proof)
        for other in (new - 1, new + 1):
            if old not in (0, other):
                assert not check_consistency(old, ROOTS[old], other, ROOTS[other], proof)


def test_a_forged_history_is_no_prefix() -> None:
    forged = [LEAVES[1], LEAVES[0], *LEAVES[2:]]
    for (old, new), proof in CONSISTENCY.items():
        if old >= 2:
            assert not check_consistency(old, naive.root(forged[:old]), new, ROOTS[new], proof)


def test_the_empty_tree_is_a_prefix_of_every_tree_and_has_one_root() -> None:
    assert check_consistency(0, EMPTY_ROOT, 5, ROOTS[5], [])
    assert not check_consistency(0, bytes(32), 5, ROOTS[5], [])
    assert not check_consistency(0, EMPTY_ROOT, 0, bytes(32), [])
    assert not check_consistency(-1, EMPTY_ROOT, 5, ROOTS[5], [])


@pytest.mark.parametrize(("index", "size"), [(-1, 4), (4, 4), (0, 0), (5, 4)])
def test_no_proof_of_a_leaf_that_is_not_there(index: int, size: int) -> None:
    with pytest.raises(ValueError, match=f"no leaf {index} in a tree of {size}"):
        inclusion_proof(NODES, index, size)
    assert not check_inclusion(LEAVES[0], index, size, [], ROOTS[size])


@pytest.mark.parametrize(("old", "new"), [(-1, 4), (5, 4)])
def test_no_proof_that_a_larger_tree_is_a_prefix(old: int, new: int) -> None:
    with pytest.raises(ValueError, match="is no prefix"):
        consistency_proof(NODES, old, new)


# Growing ---------------------------------------------------------------------------------------


def test_a_tree_is_continued_from_its_stack() -> None:
    tree = Tree()
    for size in SIZES:
        again = Tree(size, tree.stack)
        assert (again.size, again.stack, again.root()) == (size, tree.stack, tree.root())
        tree.append(LEAVES[size])
        assert again.size == size  # it holds a stack of its own
        again.append(LEAVES[size])
        assert (again.size, again.stack) == (tree.size, tree.stack)


def test_a_stack_that_does_not_fit_is_refused() -> None:
    for size in SIZES:
        for length in range(8):
            if length != size.bit_count():
                with pytest.raises(ValueError, match=f"a tree of {size} leaves has"):
                    Tree(size, LEAVES[:length])


@given(st.lists(st.binary(max_size=4), max_size=600), st.integers(0, 600))
def test_a_tree_grown_in_two_goes_is_the_same_tree(data: list[bytes], cut: int) -> None:
    leaves = [entry_leaf_hash(item) for item in data]
    whole, first = grown(leaves), grown(leaves[:cut])
    second = Tree(first.size, first.stack)
    for leaf in leaves[cut:]:
        second.append(leaf)
    assert second.stack == whole.stack
    assert first.full + second.full == whole.full
    assert whole.root() == naive.root(leaves)


def test_a_root_of_leaves_within() -> None:
    for start, stop in [(0, 0), (4, 4), (8, 12), (32, 64), (16, 19), (48, 61), (7, 8)]:
        assert root_of(NODES, start, stop) == naive.root(LEAVES[start:stop])
