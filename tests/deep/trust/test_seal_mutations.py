"""Every byte of a sealed note and of a proof, changed to another value, is refused."""

import os
from collections.abc import Callable, Iterator

import pytest
from sealed import LOG, POLICY, WITNESSES, leaves_of, proof_of

from tripod.ledger.errors import MalformedError, NotVerifiedError
from tripod.ledger.tlog.note import SigningKey, VerifierKey, format_note, parse_note
from tripod.ledger.tlog.policy import open_under_policy
from tripod.ledger.tlog.proof import format_proof, parse_proof, verify_proof

LEAVES = leaves_of([b"e%d" % number for number in range(7)])
PROOF = proof_of(LEAVES, 6)


def open_note(data: bytes) -> None:
    open_under_policy(POLICY, parse_note(data))


def open_proof(data: bytes) -> None:
    verify_proof(parse_proof(data), LEAVES[6], POLICY)


def accepted(judge: Callable[[bytes], object], data: bytes) -> bool:
    try:
        judge(data)
    except (MalformedError, NotVerifiedError):
        return False
    return True


def mutations(data: bytes) -> Iterator[bytes]:
    """Each byte with a third of the other values, left out, and with some values put before it.

    Three bytes that follow each other meet all values; each does in ``make soak``.
    """
    step = 1 if "TRIPOD_TRIALS" in os.environ else 3
    for at in range(len(data) + 1):
        before, after = data[:at], data[at:]
        put = {*range(0, 256, 23), *b"\r\n +", *data[max(0, at - 1) : at + 1]}
        yield from (before + bytes([value]) + after for value in put)
        if after:
            yield before + after[1:]
            yield from (
                before + bytes([value]) + after[1:] for value in range(at % step, 256, step)
            )


@pytest.mark.drawn("long")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("judge", "data"),
    [(open_note, format_note(PROOF.note)), (open_proof, format_proof(PROOF))],
    ids=["note", "proof"],
)
def test_every_single_byte_counts(judge: Callable[[bytes], None], data: bytes) -> None:
    assert accepted(judge, data)
    survivors = {other for other in mutations(data) if other != data and accepted(judge, other)}
    assert survivors == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (VerifierKey.parse, LOG.verifier().format()),
        (VerifierKey.parse, WITNESSES[0].verifier().format()),
        (SigningKey.parse, LOG.format()),
    ],
    ids=["log", "witness", "private"],
)
def test_every_single_byte_of_a_key_counts(parse: Callable[[str], object], text: str) -> None:
    others = {other.decode("latin-1") for other in mutations(text.encode())} - {text}
    assert [
        other for other in others if accepted(lambda data: parse(data.decode()), other.encode())
    ] == []
