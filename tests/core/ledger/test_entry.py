"""An entry's bytes: the header there and back, each refusal, and the commitment to the body."""

import json
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tripod.ledger.chain import Tip, check_link, link
from tripod.ledger.entry import (
    GENESIS,
    MAX_BODY,
    MAX_HEADER,
    MAX_INTEGER,
    Draft,
    Header,
    commit_body,
    entry_leaf_hash,
    format_header,
    header_bytes,
    parse_header,
)
from tripod.ledger.errors import MalformedError, TooLargeError

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
DIGESTS = st.binary(min_size=32, max_size=32).map(bytes.hex)
TIMES = st.datetimes().map(lambda moment: moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ").zfill(27))
HEADERS = st.builds(
    Header,
    actor=TEXTS,
    at=TIMES,
    body=DIGESTS,
    id=TEXTS,
    kind=TEXTS,
    ledger=TEXTS,
    prev=DIGESTS,
    seq=st.integers(0, MAX_INTEGER),
    stream=TEXTS,
    v=st.just(1),
    cause=st.none() | TEXTS,
    auth=st.none() | DIGESTS,
)
SALT = bytes(range(32))
AT = "2026-11-21T20:17:50.123456Z"
HEADER = Header(
    actor="scribe",
    at=AT,
    body="ab" * 32,
    id="0190a9e0-0000-7000-8000-000000000001",
    kind="decision.logged",
    ledger="parser.example",
    prev="cd" * 32,
    seq=41,
    stream="decisions",
    cause="0190a9e0-0000-7000-8000-000000000000",
)
BYTES = (
    b'{"actor":"scribe","at":"2026-11-21T20:17:50.123456Z","body":"' + b"ab" * 32 + b'",'
    b'"cause":"0190a9e0-0000-7000-8000-000000000000",'
    b'"id":"0190a9e0-0000-7000-8000-000000000001","kind":"decision.logged",'
    b'"ledger":"parser.example","prev":"' + b"cd" * 32 + b'","seq":41,"stream":"decisions","v":1}'
)


def changed(**fields: object) -> bytes:
    """The header's bytes with other fields; a field given as None is left out."""
    value = json.loads(BYTES) | fields
    kept = {name: field for name, field in value.items() if field is not None}
    return json.dumps(kept, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def test_a_header_is_written_in_one_way() -> None:
    assert format_header(HEADER) == BYTES
    assert parse_header(BYTES) == HEADER
    assert changed() == BYTES


def test_what_is_not_there_is_left_out() -> None:
    bare = HEADER._replace(cause=None)
    assert b"cause" not in format_header(bare)
    assert b"auth" not in format_header(bare)
    assert parse_header(format_header(bare)) == bare


@given(HEADERS)
def test_there_and_back(header: Header) -> None:
    data = format_header(header)
    assert parse_header(data) == header
    assert format_header(parse_header(data)) == data


@given(st.integers(0, len(BYTES) - 1), st.integers(0, 255))
def test_a_changed_byte_gives_another_header_or_none(position: int, byte: int) -> None:
    data = BYTES[:position] + bytes([byte]) + BYTES[position + 1 :]
    try:
        header = parse_header(data)
    except MalformedError:
        return
    assert format_header(header) == data
    assert (header == HEADER) == (data == BYTES)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b'"text"', "not an object"),
        (b"[]", "not an object"),
        (b"null", "not an object"),
        (b"{}", "lacks actor, at, body, id, kind, ledger, prev, seq, stream, v"),
        (changed(stream=None), "lacks stream"),
        (changed(extra="x", b=1), "unknown fields: b, extra"),
        (changed(actor=1), "actor is not text"),
        (changed(at=0), "at is not text"),
        (changed(id=["x"]), "id is not text"),
        (changed(cause=1), "cause is not text"),
        (changed(auth=False), "auth is not text"),
        (BYTES.replace(b'"scribe"', b"null"), "actor is not text"),
        (changed(seq="41"), "seq is not a count"),
        (changed(seq=-1), "seq is not a count"),
        (changed(seq=True), "seq is not a count"),
        (changed(seq=41.0), "seq is not a count"),
        (changed(v=2), "version 2 is not 1"),
        (changed(v="1"), "version '1' is not 1"),
        (changed(v=True), "version True is not 1"),
        (changed(body="AB" * 32), "body is not 64 hex digits"),
        (changed(body="ab" * 31), "body is not 64 hex digits"),
        (changed(prev="g" * 64), "prev is not 64 hex digits"),
        (changed(prev="0" * 64 + "\n"), "prev is not 64 hex digits"),
        (changed(auth="x"), "auth is not 64 hex digits"),
        (changed(at="2026-11-21T20:17:50Z"), "at is not a UTC time"),
        (changed(at="2026-11-21T20:17:50.123Z"), "at is not a UTC time"),
        (changed(at="2026-11-21T20:17:50.123456+00:00"), "at is not a UTC time"),
        (changed(at=AT + "\n"), "at is not a UTC time"),
        (changed(at=AT.replace("2026", "\u0662\u0660\u0662\u0666")), "at is not a UTC time"),
        (BYTES + b"\n", "not in its canonical spelling"),
        (BYTES.replace(b'"v":1', b'"v": 1'), "not in its canonical spelling"),
        (BYTES.replace(b'"v":1}', b'"v":1,"v":1}'), "not in its canonical spelling"),
        (BYTES.replace(b"scribe", b"\\u0073cribe"), "not in its canonical spelling"),
        (b'{"v":1,' + BYTES[1:].replace(b',"v":1', b""), "not in its canonical spelling"),
        (changed(seq=MAX_INTEGER + 1), "no canonical JSON"),
        (changed(actor="x" * MAX_HEADER), "not in its canonical spelling"),
    ],
)
def test_refused(data: bytes, reason: str) -> None:
    with pytest.raises(MalformedError, match=reason):
        parse_header(data)


def test_the_largest_header() -> None:
    room = MAX_HEADER - len(BYTES)
    full = HEADER._replace(actor="scribe" + "x" * room)
    assert len(format_header(full)) == MAX_HEADER
    assert parse_header(format_header(full)) == full
    with pytest.raises(TooLargeError, match="65536 bytes"):
        format_header(full._replace(actor=full.actor + "x"))
    with pytest.raises(TooLargeError):
        header_bytes({"actor": "x" * MAX_HEADER})


def test_a_leaf_is_hashed_behind_a_zero_byte() -> None:
    assert entry_leaf_hash(BYTES) == sha256(b"\x00" + BYTES).digest()
    assert entry_leaf_hash(b"").hex() == (
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
    )


def test_the_vector_of_the_body_commitment() -> None:
    body = b'{"args":{"command":"pytest -q"},"tool":"bash"}'
    assert commit_body(SALT, "session.tool-called", body) == (
        "224daab7814e6048ba570afb3105a6eb488f022ab65fe5f70c0415469a09fffe"
    )


@given(DIGESTS.map(bytes.fromhex), TEXTS, st.binary())
def test_the_commitment_in_words(salt: bytes, kind: str, body: bytes) -> None:
    expected = sha256(b"\x02" + salt + kind.encode() + b"\x00" + body).hexdigest()
    assert commit_body(salt, kind, body) == expected


# The chain -------------------------------------------------------------------------------------


def opened(**fields: str) -> Draft:
    return Draft("ledger.opened", "ledger", "tripod", {"origin": "o", **fields})


def said(text: str = "x", **fields: Any) -> Draft:
    return Draft("chat.sent", "chat/general", "ann", {"text": text}, **fields)


def test_entries_are_linked_one_to_the_other() -> None:
    tip = Tip.start("o")
    first = link(tip, opened(), AT, "id-0", SALT)
    second = link(tip, said(cause="id-0"), AT, "id-1", SALT)
    head, next_ = parse_header(first.header), parse_header(second.header)
    assert (head.seq, head.prev, head.ledger, head.id) == (0, GENESIS, "o", "id-0")
    assert (next_.seq, next_.prev) == (1, entry_leaf_hash(first.header).hex())
    assert (next_.cause, head.cause) == ("id-0", None)
    assert next_.body == commit_body(SALT, "chat.sent", b'{"text":"x"}')
    assert second[:6] == (1, "id-1", "chat.sent", "chat/general", "ann", AT)
    assert second[7:] == (SALT, b'{"text":"x"}', {"text": "x"}, None)
    assert (tip.last, tip.at, tip.tree.size) == (entry_leaf_hash(second.header).hex(), AT, 2)
    assert check_link(head, 0, GENESIS, "o") is None
    assert check_link(next_, 1, entry_leaf_hash(first.header).hex(), "o") is None


def test_a_clock_that_went_back_repeats_the_time_before() -> None:
    tip = Tip.start("o")
    link(tip, opened(), AT, "a", SALT)
    earlier = link(tip, said(), "2026-11-21T20:17:50.123455Z", "b", SALT)
    later = link(tip, said(), "2026-11-21T20:17:50.123457Z", "c", SALT)
    assert earlier.at == parse_header(earlier.header).at == AT
    assert later.at == parse_header(later.header).at == "2026-11-21T20:17:50.123457Z"


def test_a_body_has_a_limit() -> None:
    tip = Tip.start("o")
    link(tip, opened(), AT, "a", SALT)
    room = MAX_BODY - len(b'{"text":""}')
    full = link(tip, said("x" * room), AT, "b", SALT)
    assert len(full.body or b"") == MAX_BODY
    with pytest.raises(TooLargeError, match=r"chat\.sent takes 65537 bytes"):
        link(tip, said("x" * (room + 1)), AT, "c", SALT)
    assert tip.tree.size == 2


@pytest.mark.parametrize(
    ("draft", "error"),
    [
        (opened(), MalformedError),
        (said("\ud800"), MalformedError),
        (said(cause="\ud800"), MalformedError),
        (said(cause="x" * MAX_HEADER), TooLargeError),
    ],
)
def test_a_refused_draft_leaves_the_tip_where_it_was(draft: Draft, error: type[Exception]) -> None:
    tip = Tip.start("o")
    link(tip, opened(), AT, "a", SALT)
    before = (tip.last, tip.at, tip.tree.size, tip.tree.root())
    with pytest.raises(error):
        link(tip, draft, "2027-01-01T00:00:00.000000Z", "b", SALT)
    assert (tip.last, tip.at, tip.tree.size, tip.tree.root()) == before


def test_nothing_comes_before_the_opening() -> None:
    with pytest.raises(MalformedError, match=r"ledger\.opened is the first"):
        link(Tip.start("o"), said(), AT, "a", SALT)


def test_a_copied_tip_goes_its_own_way() -> None:
    tip = Tip.start("o")
    copy = tip.copy()
    link(copy, opened(), AT, "a", SALT)
    assert (tip.tree.size, tip.last, tip.origin) == (0, GENESIS, "o")
    assert copy.tree.size == 1


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("seq", 42, "says seq 42 where 41 follows"),
        ("prev", "ef" * 32, "prev is efefefefefef…, the entry before hashes to cdcdcdcdcdcd…"),
        ("ledger", "other", "names another ledger: 'other'"),
    ],
)
def test_a_broken_link_is_named(field: str, value: object, complaint: str) -> None:
    header = parse_header(changed(**{field: value}))
    assert check_link(HEADER, 41, HEADER.prev, HEADER.ledger) is None
    assert complaint in (check_link(header, 41, HEADER.prev, HEADER.ledger) or "")
