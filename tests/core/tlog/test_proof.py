"""Proof files: one spelling, and no entry is proven that is not there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sealed import LOG, OTHER_LOG, POLICY, VECTORS, leaves_of, list_nodes, proof_of, seal_of, sealed

from tripod.ledger.errors import MalformedError, NotVerifiedError
from tripod.ledger.merkle import inclusion_proof
from tripod.ledger.tlog.note import MAX_HASHES, MAX_SIZE, Note, Signature, format_note
from tripod.ledger.tlog.policy import Policy, TrustedLog
from tripod.ledger.tlog.proof import (
    MAX_PROOF,
    Proof,
    format_proof,
    parse_proof,
    verify_proof,
)

LEAVES = leaves_of([b"e%d" % number for number in range(7)])
PROOF = proof_of(LEAVES, 2)
NOTE = VECTORS["note"]["note"]
ZERO = "A" * 43 + "=\n"
PROOFS = st.builds(
    Proof,
    st.integers(0, MAX_SIZE),
    st.lists(st.binary(min_size=32, max_size=32), max_size=MAX_HASHES).map(tuple),
    st.just(PROOF.note),
    st.none() | st.binary(min_size=1, max_size=100),
)


def test_the_file() -> None:
    lines = format_proof(PROOF).decode().split("\n")
    assert lines[:2] == ["c2sp.org/tlog-proof@v1", "index 2"]
    assert [len(line) for line in lines[2:6]] == [44, 44, 44, 0]
    assert "\n".join(lines[6:]) == NOTE
    extra = format_proof(PROOF._replace(extra=b"\0")).decode().split("\n")
    assert extra == [lines[0], "extra AA==", *lines[1:]]


@given(PROOFS)
def test_a_proof_comes_back(proof: Proof) -> None:
    assert parse_proof(format_proof(proof)) == proof


@given(st.integers(1, 300), st.data())
def test_every_entry_is_proven_as_itself_alone(size: int, data: st.DataObject) -> None:
    leaves = leaves_of([b"n%d" % number for number in range(size)])
    seq, other = data.draw(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)))
    proof = parse_proof(format_proof(proof_of(leaves, seq)))
    assert verify_proof(proof, leaves[seq], POLICY).seal == seal_of(leaves)
    if other != seq:
        for leaf, place in [(leaves[other], seq), (leaves[seq], other)]:
            with pytest.raises(NotVerifiedError, match=f"this entry is not number {place} of"):
                verify_proof(proof._replace(seq=place), leaf, POLICY)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "no blank line"),
        (f"index 2\n\n{NOTE}", "the first line is not c2sp.org/tlog-proof@v1"),
        (f"c2sp.org/tlog-proof@v2\nindex 2\n\n{NOTE}", "another version"),
        (f"c2sp.org/tlog-proof@v1\n\n{NOTE}", "line 2 does not say `index`"),
        (f"c2sp.org/tlog-proof@v1\nindex\n\n{NOTE}", "line 2 does not say `index`"),
        (f"c2sp.org/tlog-proof@v1\nindex 02\n\n{NOTE}", "line 2, the index: not a decimal"),
        (f"c2sp.org/tlog-proof@v1\nindex +2\n\n{NOTE}", "line 2, the index: not a decimal"),
        (f"c2sp.org/tlog-proof@v1\nindex  2\n\n{NOTE}", "line 2, the index: not a decimal"),
        (f"c2sp.org/tlog-proof@v1\nindex {2**63}\n\n{NOTE}", "line 2, the index: not a decimal"),
        (f"c2sp.org/tlog-proof@v1\r\nindex 2\r\n\r\n{NOTE}", r"line 1 holds '\\r'"),
        (f"c2sp.org/tlog-proof@v1\nextra AA==\n\n{NOTE}", "line 3 does not say `index`"),
        (f"c2sp.org/tlog-proof@v1\nextra AA\nindex 2\n\n{NOTE}", "line 2, the extra bytes: not b"),
        (f"c2sp.org/tlog-proof@v1\nextra \nindex 2\n\n{NOTE}", "the extra bytes are empty"),
        (f"c2sp.org/tlog-proof@v1\nindex 2\nextra AA==\n\n{NOTE}", "line 3: not base64"),
        (f"c2sp.org/tlog-proof@v1\nindex 2\nAAAA\n\n{NOTE}", "a hash has not 32 bytes"),
        (f"c2sp.org/tlog-proof@v1\nindex 2\n{'A' * 42}B=\n\n{NOTE}", "line 3: base64 in another"),
        (f"c2sp.org/tlog-proof@v1\nindex 2\n{'A' * 43}\n\n{NOTE}", "line 3: not base64"),
        (f"c2sp.org/tlog-proof@v1\nindex 2\n{ZERO * 64}\n{NOTE}", "64 hashes, at most"),
        ("c2sp.org/tlog-proof@v1\nindex 2\n\nno note\n", "note: no blank line"),
        (f"c2sp.org/tlog-proof@v1\nindex 2\n\n{NOTE}\n", "note: 0 signatures"),
        ("a" * (MAX_PROOF + 1), "at most 1310720 are read"),
    ],
)
def test_what_is_no_proof(text: str, complaint: str) -> None:
    with pytest.raises(MalformedError, match=complaint):
        parse_proof(text.encode())


@pytest.mark.parametrize(
    "proof",
    [
        PROOF._replace(seq=-1),
        PROOF._replace(seq=MAX_SIZE + 1),
        PROOF._replace(hashes=(bytes(31),)),
        PROOF._replace(hashes=(bytes(32),) * 64),
        PROOF._replace(extra=b""),
        PROOF._replace(extra=bytes(MAX_PROOF)),
        PROOF._replace(note=Note("a", ())),
    ],
)
def test_what_is_not_written(proof: Proof) -> None:
    with pytest.raises(MalformedError):
        format_proof(proof)


def test_hashes_of_another_width_prove_nothing() -> None:
    first, *rest = PROOF.hashes
    with pytest.raises(MalformedError, match="a hash has not 32 bytes"):
        verify_proof(PROOF._replace(hashes=(first[:-1], *rest)), LEAVES[2], POLICY)
    with pytest.raises(ValueError, match="a leaf hash has 32 bytes, not 3"):
        verify_proof(PROOF, b"e2\n", POLICY)


def test_the_seal_alone_says_the_size() -> None:
    # Proven in the tree of five leaves, shown under the seal of seven: the way up is another.
    smaller = tuple(inclusion_proof(list_nodes(LEAVES), 2, 5))
    with pytest.raises(NotVerifiedError, match=r"number 2 of example.com/ledger at size 7"):
        verify_proof(PROOF._replace(hashes=smaller), LEAVES[2], POLICY)
    with pytest.raises(NotVerifiedError, match=r"number 6 of example.com/ledger at size 5"):
        verify_proof(
            proof_of(LEAVES, 6)._replace(note=sealed(seal_of(LEAVES[:5]))), LEAVES[6], POLICY
        )
    lied = seal_of(LEAVES)._replace(size=8)
    with pytest.raises(NotVerifiedError, match="this entry is not number 6"):
        verify_proof(proof_of(LEAVES, 6)._replace(note=sealed(lied)), LEAVES[6], POLICY)


def test_nothing_is_proven_under_a_seal_that_the_policy_does_not_believe() -> None:
    stranger = Policy((TrustedLog(OTHER_LOG.verifier()),))
    with pytest.raises(NotVerifiedError, match="signed by no key"):
        verify_proof(PROOF, LEAVES[2], stranger)
    unseen = PROOF._replace(note=sealed(seal_of(LEAVES), witnesses=0))
    with pytest.raises(NotVerifiedError, match="not the quorum"):
        verify_proof(unseen, LEAVES[2], POLICY)
    assert verify_proof(unseen, LEAVES[2], Policy((TrustedLog(LOG.verifier()),))).cosignatures == ()


def believed(data: bytes) -> bool:
    """Whether bytes are read as a proof of the entry, and as one that the policy believes."""
    try:
        verify_proof(parse_proof(data), LEAVES[2], POLICY)
    except (MalformedError, NotVerifiedError):
        return False
    return True


def test_no_bit_of_a_proof_can_change() -> None:
    data = format_proof(PROOF)
    assert believed(data)
    for at in range(len(data)):
        for bit in range(8):
            other = bytearray(data)
            other[at] ^= 1 << bit
            assert not believed(bytes(other)), (at, bit)


def test_no_byte_of_a_proof_can_be_dropped_doubled_or_added() -> None:
    data = format_proof(PROOF)
    for at in range(len(data)):
        assert not believed(data[:at])
        if data[at : at + 1] != data[at + 1 : at + 2]:
            assert not believed(data[:at] + data[at + 1 :])
        assert not believed(data[: at + 1] + data[at:])


def test_what_is_not_vouched_for_can_change() -> None:
    # The limit: extra bytes, and signatures by keys that the policy does not know.
    data = format_proof(PROOF._replace(extra=b"\0\0"))
    assert believed(data)
    assert believed(data.replace(b"extra AAA=", b"extra AAE="))
    stranger = Signature("stranger", bytes(4), bytes(64))
    note = PROOF.note._replace(signatures=(stranger, *PROOF.note.signatures))
    assert believed(format_proof(PROOF._replace(note=note)))
    assert format_note(note) != format_note(PROOF.note)
