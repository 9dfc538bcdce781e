"""The witness protocol: its bytes, and the judgement of a witness over every small history."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sealed import LOG, OTHER_LOG, TIME, WITNESSES, leaves_of, list_nodes, seal_of

from tripod.ledger.errors import MalformedError, NotVerifiedError
from tripod.ledger.merkle import consistency_proof
from tripod.ledger.tlog.note import (
    MAX_HASHES,
    Note,
    Signature,
    SigningKey,
    note_cosignature_time,
    sign,
    verify,
)
from tripod.ledger.tlog.receipt import (
    SIZE_TYPE,
    CosignRequest,
    Verdict,
    decide_witness_request,
    format_witness_request,
    format_witness_signatures,
    kept_witness_seal,
    origin_of_witness_request,
    parse_witness_request,
    parse_witness_signatures,
)
from tripod.ledger.tlog.seal import Seal, format_seal, open_seal, sign_seal
from tripod.trust.witness import log_folder

KEY = WITNESSES[0]
LOGS = (LOG.verifier(), OTHER_LOG.verifier())
LEAVES = leaves_of([f"e{n}".encode() for n in range(40)])
FORKED = [*LEAVES[:5], *leaves_of([f"f{n}".encode() for n in range(5, 40)])]


def note_of(leaves: list[bytes], key: SigningKey = LOG) -> Note:
    seal = seal_of(leaves, key.name)
    return Note(format_seal(seal), (sign_seal(seal, key),))


def asked(old: int, leaves: list[bytes]) -> CosignRequest:
    """An honest request of a log with these leaves."""
    hashes = consistency_proof(list_nodes(leaves), min(old, len(leaves)), len(leaves))
    return CosignRequest(old, tuple(hashes), note_of(leaves))


def judged(request: CosignRequest, last: Note | None = None, seconds: int = TIME) -> Verdict:
    return decide_witness_request(request, LOGS, last, KEY, seconds)


def kept(leaves: list[bytes], seconds: int = TIME) -> Note:
    """What the witness keeps once it has seen these leaves."""
    note = judged(asked(0, leaves), None, seconds).keep
    assert note is not None
    return note


# The bytes -------------------------------------------------------------------------------------


def test_the_request_as_the_protocol_spells_it() -> None:
    data = format_witness_request(asked(5, LEAVES[:7]))
    head, _, note = data.decode().partition("\n\n")
    first, *hashes = head.split("\n")
    assert (first, note[: len(LOG.name) + 3]) == ("old 5", f"{LOG.name}\n7\n")
    assert [len(line) for line in hashes] == [44] * 4


@given(st.integers(0, 40), st.integers(0, 40))
def test_requests_come_back(old: int, size: int) -> None:
    request = asked(old, LEAVES[:size])
    data = format_witness_request(request)
    assert parse_witness_request(data) == request
    assert format_witness_request(parse_witness_request(data)) == data


@given(st.data())
def test_what_is_accepted_is_what_we_would_write(data: st.DataObject) -> None:
    whole = bytearray(format_witness_request(asked(3, LEAVES[:9])))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    try:
        request = parse_witness_request(bytes(whole))
    except MalformedError:
        return
    assert format_witness_request(request) == bytes(whole)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (b"old 3\n", b"old 03\n", "line 1"),
        (b"old 3\n", b"old +3\n", "line 1"),
        (b"old 3\n", b"Old 3\n", "`old`"),
        (b"old 3\n", b"", "`old`"),
        (b"old 3\n", b"old 3\nAAAA\n", "32 bytes"),
        (b"old 3\n", b"old 3\n=\n", "line 2"),
        (b"old 3\n", b"old 3\n" + (b"A" * 43 + b"=\n") * MAX_HASHES, "hashes"),
        (b"\n\n", b"\n", "line 7"),
    ],
)
def test_what_no_log_asks(old: bytes, new: bytes, says: str) -> None:
    data = format_witness_request(asked(3, LEAVES[:9]))
    with pytest.raises(MalformedError, match=says):
        parse_witness_request(data.replace(old, new, 1))


def test_too_many_hashes() -> None:
    request = CosignRequest(1, (bytes(32),) * MAX_HASHES, note_of(LEAVES))
    assert parse_witness_request(format_witness_request(request)) == request
    with pytest.raises(MalformedError, match="64 hashes"):
        format_witness_request(request._replace(hashes=(bytes(32),) * (MAX_HASHES + 1)))
    with pytest.raises(MalformedError, match="old size"):
        format_witness_request(request._replace(old=-1))


def test_signature_lines_come_back() -> None:
    signatures = (sign("a\n", LOG), sign("a\n", OTHER_LOG))
    data = format_witness_signatures(signatures)
    assert data.count(b"\n") == 2
    assert parse_witness_signatures(data) == signatures
    for bad in (b"", b"\n" + data, data + b"\n", data[:-1], b"x" + data, data + b"\n" + data):
        with pytest.raises(MalformedError, match="signature lines"):
            parse_witness_signatures(bad)


def test_where_a_log_is_served() -> None:
    # By sha256sum.
    assert log_folder("example.com/ledger") == (
        "73826dca82ed66c4795d39dd9277cbb931bf5ade81fa0895e7f3b32a63a7a9ca"
    )
    assert origin_of_witness_request(asked(0, LEAVES)) == LOG.name


# The judgement ---------------------------------------------------------------------------------


def test_growth_is_cosigned_and_kept() -> None:
    last = None
    for old, size in ((0, 0), (0, 1), (1, 5), (5, 5), (5, 33)):
        decision = judged(asked(old, LEAVES[:size]), last)
        assert decision.answer.status == 200
        (line,) = parse_witness_signatures(decision.answer.body)
        assert decision.keep is not None
        assert decision.keep.signatures[-1] == line
        opened = open_seal(decision.keep, LOGS, [KEY.verifier()])
        assert opened.seal == seal_of(LEAVES[:size])
        assert [c.seconds for c in opened.cosignatures] == [TIME]
        last = decision.keep


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
def test_only_the_size_that_was_last_cosigned_goes_on(seen: int, old: int, size: int) -> None:
    decision = judged(asked(old, LEAVES[:size]), kept(LEAVES[:seen]))
    status, content_type, body = decision.answer
    if old > size:
        assert status == 400
    elif old != seen:
        assert (status, content_type, body) == (409, SIZE_TYPE, f"{seen}\n".encode())
    else:
        assert status == 200
    assert (decision.keep is not None) == (status == 200)


@given(st.integers(6, 40), st.integers(6, 40))
def test_a_fork_is_refused(seen: int, size: int) -> None:
    size = max(seen, size)
    decision = judged(asked(seen, FORKED[:size]), kept(LEAVES[:seen]))
    assert (decision.answer.status, decision.keep) == (422, None)
    assert (b"forked" in decision.answer.body) == (size == seen)


def test_a_rollback_is_refused() -> None:
    last = kept(LEAVES[:20])
    assert judged(asked(7, LEAVES[:7]), last).answer.status == 409
    assert judged(asked(20, LEAVES[:7]), last).answer.status == 400


@given(st.data())
def test_a_proof_with_a_false_hash_is_refused(data: st.DataObject) -> None:
    old = data.draw(st.integers(1, 38))
    request = asked(old, LEAVES[:39])
    hashes = list(request.hashes)
    at = data.draw(st.integers(0, len(hashes) - 1))
    hashes[at] = data.draw(st.binary(min_size=32, max_size=32).filter(lambda h: h != hashes[at]))
    assert judged(request._replace(hashes=tuple(hashes)), kept(LEAVES[:old])).answer.status == 422
    shorter = request._replace(hashes=request.hashes[:-1])
    assert judged(shorter, kept(LEAVES[:old])).answer.status == 422


def test_a_proof_from_nothing_is_empty() -> None:
    request = asked(0, LEAVES[:3])._replace(hashes=(bytes(32),))
    assert judged(request).answer.status == 422


def test_whom_a_witness_does_not_know() -> None:
    stranger = SigningKey("example.com/stranger", bytes(range(160, 192)))
    assert judged(CosignRequest(0, (), note_of(LEAVES, stranger))).answer.status == 404
    # The right name, another key: with the right key ID it is a forgery, with its own unknown.
    impostor = SigningKey(LOG.name, bytes(range(160, 192)))
    assert judged(CosignRequest(0, (), note_of(LEAVES, impostor))).answer.status == 403
    note = note_of(LEAVES, impostor)
    false = Signature(LOG.name, LOG.verifier().key_id, note.signatures[0].data)
    assert judged(CosignRequest(0, (), note._replace(signatures=(false,)))).answer.status == 403
    # A good signature by one log's key does not speak for another log.
    crossed = Note(note_of(LEAVES).text, note_of(LEAVES, OTHER_LOG).signatures)
    assert judged(CosignRequest(0, (), crossed)).answer.status == 403


def test_other_signatures_are_not_kept() -> None:
    note = note_of(LEAVES)
    more = (*note.signatures, sign(note.text, OTHER_LOG), Signature("x", b"1234", b"junk"))
    keep = judged(CosignRequest(0, (), note._replace(signatures=more))).keep
    assert keep is not None
    assert [signature.name for signature in keep.signatures] == [LOG.name, KEY.name]


def test_an_empty_log_has_the_root_of_nothing() -> None:
    for text, status in (
        (f"{LOG.name}\n0\n{'A' * 43}=\n", 422),
        (f"{LOG.name}\n07\n{'A' * 43}=\n", 400),
        (f"{LOG.name}\n7\n", 400),
    ):
        assert judged(CosignRequest(0, (), Note(text, (sign(text, LOG),)))).answer.status == status


def test_extension_lines_are_cosigned_with_the_rest() -> None:
    seal = seal_of(LEAVES)
    text = format_seal(Seal(*seal[:3], ("more",)))
    keep = judged(CosignRequest(0, (), Note(text, (sign(text, LOG),)))).keep
    assert keep is not None
    verify(keep, [KEY.verifier()])
    again = judged(asked(40, LEAVES), keep)
    assert again.answer.status == 200


def test_time_never_goes_back() -> None:
    last = kept(LEAVES[:3], TIME)
    decision = judged(asked(3, LEAVES[:4]), last, TIME - 100)
    (line,) = parse_witness_signatures(decision.answer.body)
    assert note_cosignature_time(line) == TIME


def test_what_was_kept_is_believed_only_with_our_own_signature() -> None:
    request = asked(3, LEAVES[:4])
    with pytest.raises(NotVerifiedError):
        judged(request, note_of(LEAVES[:3]))
    good = kept(LEAVES[:3])
    moved = Note(format_seal(seal_of(LEAVES[:2])), good.signatures)
    with pytest.raises(NotVerifiedError):
        judged(request, moved)
    other = decide_witness_request(
        CosignRequest(0, (), note_of(LEAVES[:3], OTHER_LOG)), LOGS, None, KEY, TIME
    ).keep
    with pytest.raises(MalformedError, match=OTHER_LOG.name):
        judged(request, other)
    with pytest.raises(MalformedError, match="cosignatures"):
        kept_witness_seal(good, LOG.name, LOG.verifier())
    assert kept_witness_seal(good, LOG.name, KEY.verifier()) == (seal_of(LEAVES[:3]), TIME)
