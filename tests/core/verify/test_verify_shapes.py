"""What the expressions accept is canonical and fits its model; real bodies are accepted."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from specimens import build, database, read

from tripod.ledger.entry import format_canonical, parse_canonical
from tripod.ledger.errors import MalformedError
from tripod.ledger.kinds.models import model_of
from tripod.ledger.kinds.registry import BY_NAME, KINDS
from tripod.verify.scan.rows import TEXT, row_pattern

EXPRESSIONS = {kind.name: row_pattern(model_of(kind)) for kind in KINDS}
SLOW = {"config.changed", "ledger.opened"}
"""Kinds with a field that no expression is written for: they are decoded, and judged as well."""


@pytest.fixture(scope="module")
def bodies(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, bytes]]:
    """Kind and body of every entry of a real story."""
    root = build(str(tmp_path_factory.mktemp("sound")))
    return [(row.head["kind"], row.body) for row in read(database(root))]


def accepts(kind: str, body: bytes) -> bool:
    """What the fast path says of a body."""
    expression = EXPRESSIONS[kind]
    if expression is None or not re.fullmatch(expression, body):
        return False
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def fits(kind: str, body: bytes) -> bool:
    """What the rules say of it."""
    try:
        model_of(BY_NAME[kind]).model_validate(parse_canonical(body))
    except (MalformedError, ValueError):
        return False
    return True


def test_what_real_acts_write_is_accepted(bodies: list[tuple[str, bytes]]) -> None:
    refused = {kind for kind, body in bodies if not accepts(kind, body)}
    assert refused <= SLOW
    assert all(fits(kind, body) for kind, body in bodies)


@given(st.data())
def test_what_is_accepted_fits(bodies: list[tuple[str, bytes]], data: st.DataObject) -> None:
    """A body with a part of it replaced."""
    kind, body = data.draw(st.sampled_from(bodies))
    start = data.draw(st.integers(0, len(body)))
    stop = data.draw(st.integers(start, min(len(body), start + 8)))
    pieces = (
        b"\\",
        b"\\u0041",
        b"\\u001f",
        b"\\/",
        b'"',
        b"0",
        b"-1",
        b"1.5",
        b"null",
        b",",
        b"\xff",
    )
    new = data.draw(st.one_of(st.sampled_from(pieces), st.binary(max_size=3)))
    changed = body[:start] + new + body[stop:]
    if accepts(kind, changed):
        assert fits(kind, changed)


@given(st.text())
def test_every_text_is_accepted_in_its_one_spelling(text: str) -> None:
    try:
        written = format_canonical(text)
    except MalformedError:
        return  # half of a surrogate pair has no spelling
    assert re.fullmatch(TEXT, written)


@given(st.binary(max_size=12))
def test_no_text_is_accepted_in_another_spelling(inner: bytes) -> None:
    written = b'"' + inner + b'"'
    try:
        written.decode()
    except UnicodeDecodeError:
        return
    if re.fullmatch(TEXT, written):
        assert format_canonical(parse_canonical(written)) == written


@given(st.integers(-(2**60), 2**60))
def test_only_counts_are_accepted_as_counts(number: int) -> None:
    body = b'{"count":%d,"v":1}' % number
    if accepts("bus.acked-all", body):
        assert 0 <= number < 2**53
    elif 0 <= number < 9 * 10**15:
        pytest.fail(f"{number} is a count")
