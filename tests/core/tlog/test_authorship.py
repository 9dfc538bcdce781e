"""The record of a signature: its bytes, what is signed, and that nothing else fits."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_ledger import opening, said

from tripod.ledger.actors import (
    MAX_BATCH,
    MAX_RECORD,
    Record,
    actor_record_problem,
    actor_statement,
    format_actor_record,
    message_of,
    parse_actor_record,
    sign_actor_drafts,
    sign_actor_statements,
)
from tripod.ledger.chain import Tip, link_all
from tripod.ledger.entry import MAX_BODY, header_auth, parse_header
from tripod.ledger.errors import MalformedError
from tripod.ledger.tlog.note import COSIGNATURE, SigningKey, VerifierKey
from tripod.ledger.tlog.tiles import (
    MAX_LINES,
    LeafContent,
    format_line,
    parse_body_bundle,
    parse_line,
)

VECTOR: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "golden/vectors/signatures.json").read_text(encoding="utf-8")
)
ANN = SigningKey("ann", bytes.fromhex(VECTOR["seed"]))
BOB = SigningKey("bob", bytes(range(32)))
KEY = ANN.verifier()
AT = "2026-11-21T20:17:50.123456Z"

digests = st.lists(st.binary(min_size=32, max_size=32), min_size=2, max_size=5, unique=True)
records = st.builds(
    Record,
    st.binary(min_size=4, max_size=4),
    st.binary(min_size=64, max_size=64),
    st.just(()) | digests.map(tuple),
)


# The vectors ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["one", "together"])
def test_the_vectors(name: str) -> None:
    vector = VECTOR[name]
    assert KEY.format() == VECTOR["vkey"]
    stated = [actor_statement(json.loads(header)).decode() for header in vector["headers"]]
    assert stated == vector["statements"]
    record = sign_actor_statements([text.encode() for text in stated], ANN)
    assert record.hex() == vector["record"]
    parsed = parse_actor_record(record)
    message = message_of(parsed, stated[0].encode())
    assert message is not None
    assert message.decode() == vector["signed"]
    for header, text in zip(vector["headers"], stated, strict=True):
        assert parse_header(header.encode()).auth == header_auth(record) == vector["auth"]
        assert actor_record_problem(parsed, text.encode(), KEY) is None
        assert sha256(b"\x03" + record).hexdigest() == vector["auth"]


# Records ----------------------------------------------------------------------------------------


@given(records)
def test_what_is_written_is_read(record: Record) -> None:
    data = format_actor_record(record)
    assert parse_actor_record(data) == record
    assert len(data) <= MAX_RECORD


@given(st.binary(max_size=240))
def test_what_is_read_is_what_would_be_written(data: bytes) -> None:
    try:
        record = parse_actor_record(data)
    except MalformedError:
        return
    assert format_actor_record(record) == data


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00" + bytes(68),
        b"\x02" + bytes(68),
        b"\x01" + bytes(67),
        b"\x01" + bytes(69),
        b"\x02" + bytes(68 + 32),
        b"\x02" + bytes(68 + 64),  # twice the same digest
        b"\x01" + bytes(68) + bytes(range(64)),
        b"\x02" + bytes(68) + bytes(range(63)),
        b"\x02" + bytes(68) + b"".join(sha256(b"%d" % n).digest() for n in range(MAX_BATCH + 1)),
    ],
)
def test_what_is_no_record_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedError, match="no signature record"):
        parse_actor_record(data)


def test_the_largest_record_fits_a_line_and_a_bundle() -> None:
    record = sign_actor_statements([b"%d" % number for number in range(MAX_BATCH)], ANN)
    assert len(record) == MAX_RECORD
    line = format_line(2**53 - 1, LeafContent(bytes(32), b"x" * MAX_BODY, record))
    assert len(line) * 256 <= MAX_LINES
    with pytest.raises(MalformedError):
        sign_actor_statements([b"%d" % number for number in range(MAX_BATCH + 1)], ANN)
    with pytest.raises(MalformedError):
        format_actor_record(Record(b"1234", b"s" * 63))


# Signing ----------------------------------------------------------------------------------------


@given(st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=6, unique=True))
def test_what_was_signed_is_good_and_nothing_else_is(stated: list[bytes]) -> None:
    record = parse_actor_record(sign_actor_statements(stated, ANN))
    for one in stated:
        assert actor_record_problem(record, one, KEY) is None
        assert actor_record_problem(record, one, BOB.verifier()) is not None
        assert actor_record_problem(record._replace(key_id=b"1234"), one, KEY) is not None
        other = bytes([record.signature[0] ^ 1]) + record.signature[1:]
        assert actor_record_problem(record._replace(signature=other), one, KEY) is not None
    assert actor_record_problem(record, b"another", KEY) is not None
    if record.digests:
        assert message_of(record, b"another") is None
        swapped = record._replace(digests=record.digests[::-1])
        assert actor_record_problem(swapped, stated[0], KEY) is not None


def test_a_key_for_cosignatures_signs_no_statement() -> None:
    key = SigningKey("ann", ANN.seed, COSIGNATURE)
    record = parse_actor_record(sign_actor_statements([b"x"], key))
    assert actor_record_problem(record, b"x", key.verifier()) is not None
    assert not VerifierKey("ann", COSIGNATURE, KEY.public).verifies(b"x", record.signature)


def test_drafts_are_linked_as_they_were_signed() -> None:
    drafts = [said("one"), said("two", cause="before"), said("three", id="mine", salt=b"s" * 32)]
    minted = [(f"new-{number}", bytes([number]) * 32) for number in range(3)]
    signed = sign_actor_drafts("log", drafts, minted, ANN)
    assert [draft.id for draft in signed] == ["new-0", "new-1", "mine"]
    tip = Tip.start("")
    minted = [("open", bytes(32))]
    first, _, _ = link_all(tip, [opening("log")], AT, minted, lambda _: None, stands=bool)
    assert (tip.origin, first[0].auth) == ("log", None)
    others = [("other", b"o" * 32)] * 3
    linked, _, _ = link_all(
        tip, signed, AT, others, lambda _: None, stands=lambda id_: id_ == "before"
    )
    for entry in linked:
        assert entry.auth == signed[0].auth
        assert entry.auth is not None
        assert parse_header(entry.header).auth == header_auth(entry.auth)
        stated = actor_statement(json.loads(entry.header))
        assert actor_record_problem(parse_actor_record(entry.auth), stated, KEY) is None


def test_many_drafts_of_one_act_take_several_records() -> None:
    drafts = [said(f"{number}") for number in range(MAX_BATCH + 1)]
    minted = [(f"new-{number}", bytes(32)) for number in range(MAX_BATCH + 1)]
    signed = sign_actor_drafts("log", drafts, minted, ANN)
    assert len({draft.auth for draft in signed}) == 2
    assert len(signed[-1].auth or b"") == 69  # the last is signed by itself


# Lines ------------------------------------------------------------------------------------------


@given(
    st.none() | records.map(format_actor_record), st.none() | st.binary(min_size=1), st.integers(0)
)
def test_lines_are_read_as_they_were_written(
    auth: bytes | None, body: bytes | None, seq: int
) -> None:
    said_ = LeafContent(None if body is None else b"s" * 32, body, auth)
    line = format_line(seq, said_)
    assert parse_line(line, seq) == said_
    with pytest.raises(MalformedError):
        parse_line(line, seq + 1)


@pytest.mark.parametrize(
    "line",
    [
        b'{"auth":"","seq":7}',
        b'{"auth":"0","seq":7}',
        b'{"auth":"AB","seq":7}',
        b'{"auth":"01"}',
        b'{"auth":"01","auth":"01","seq":7}',
        b'{"seq":7,"auth":"01"}',
        b'"auth":"01","seq":7}',
    ],
)
def test_a_line_of_another_form_is_refused(line: bytes) -> None:
    with pytest.raises(MalformedError, match="not of the form"):
        parse_body_bundle(line + b"\n", 7, 1)
