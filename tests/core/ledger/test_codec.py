"""JSON without orjson for the few bodies of a short command: the same values, the same refusals."""

import subprocess
import sys
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tripod.ledger import codec

STRICT = orjson.OPT_STRICT_INTEGER
SORTED = STRICT | orjson.OPT_SORT_KEYS
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner)
        | st.dictionaries(st.text(max_size=4) | st.integers() | st.none(), inner, max_size=4)
    ),
    max_leaves=12,
)
SNIPPETS = (
    "{", "}", "[", "]", ",", ":", '"', '"a"', '"b"', "\\", "\\u00e9", "\\ud800", "\\udc00", "\\n",
    "\n", "\t", " ", "\x00", "\x7f", "\ufeff", "\u2028", "é", "\U0001f600", "0", "-0", "-1", "01",
    "1.5", "1e3", "9007199254740993", "9223372036854775808", "18446744073709551616",
    "999999999999999999",
    "NaN", "Infinity", "-Infinity", "true", "null", "[" * 40, "]" * 40,
)  # fmt: skip
TEXTS = (
    st.lists(st.sampled_from(SNIPPETS), max_size=12).map(lambda parts: "".join(parts).encode())
    | st.lists(st.sampled_from(['"a":1', '"b":"x"', '"a":{}', '"c":[true]']), max_size=4).map(
        lambda parts: f"{{{','.join(parts)}}}".encode()
    )
    | st.binary(max_size=12)
)


def shown(value: object) -> object:
    """A value with its types and the order of its keys; what is equal and not the same differs."""
    if isinstance(value, dict):
        return {"keys": list(value), "values": [shown(one) for one in value.values()]}
    return [shown(one) for one in value] if isinstance(value, list) else (type(value), repr(value))


@settings(max_examples=300)
@given(TEXTS)
@example(b"[" * 1023 + b"]" * 1023)
@example(b"[" * 499 + b"]" * 499)
@example(b'{"a":1,"b":2,"a":3}')
@example(b'{"a":NaN}')
@example(b'"\\ud83d\\ude00"')
@example(b'"\xed\xa0\x80"')
@example('{"a":1}'.encode("utf-16"))
@example(b"\xef\xbb\xbf{}")
@example(b"")
@example(b" {} ")
@example(b"1795806904480923")
@example(b"18446744073709551616")
@example(b"-0")
@example(b'"\\ud800"')
def test_what_is_read_without_orjson_is_what_orjson_reads(data: bytes) -> None:
    try:
        found = codec.read_small(data)
    except (ValueError, RecursionError):
        return  # orjson is asked, whatever it says
    assert shown(found) == shown(orjson.loads(data))


@settings(max_examples=300)
@given(ANY)
@example({"b": 1, "a": {"d": [], "c": True}})
@example({"\U0001f600": 1, "\uffff": 2, "é": 3})
@example({"a": "\ud800"})
@example({"\ud800": "a"})
@example({"a": '\x00\x1f\x7f\u2028"\\/'})
@example({"a": 2**53})
@example({1: "a"})
def test_what_is_written_without_orjson_is_what_orjson_writes(value: Any) -> None:
    for sort, option in ((True, SORTED), (False, STRICT)):
        try:
            found = codec.write_small(value, sort=sort)
        except ValueError:
            continue
        assert found == orjson.dumps(value, option=option)


@pytest.mark.parametrize(
    "body",
    [
        {"name": "1795806904480923-a-b-1.event", "us": 1795806904480923, "v": 1},
        {"text": {"text": 'Tea or coffee? "Tea" it is: C:\\new\n🍵'}, "handle": "ann"},
        {"refs": [{"seq": 3, "hash": "00"}], "observed": {"path": "chat/live.chat"}},
    ],
)
def test_bodies_such_as_acts_write_need_no_orjson(body: dict[str, Any]) -> None:
    data = codec.write_small(body, sort=True)
    assert shown(codec.read_small(data)) == shown(orjson.loads(data))


BULK = """
import sys
from tripod.ledger import codec
from tripod.ledger.entry import format_canonical
for number in range(codec.FEW):
    assert format_canonical({"b": number, "a": "x"}) == b'{"a":"x","b":%d}' % number
assert "orjson" not in sys.modules
assert codec.loads(b'{"a":1.5}') == {"a": 1.5}
import orjson
assert codec.loads is orjson.loads
assert codec.dumps({"b": 1, "a": 2}) == b'{"b":1,"a":2}'
assert format_canonical({"b": 1, "a": 2}) == b'{"a":2,"b":1}'
"""
RARE = """
import sys
from tripod.ledger import codec
assert codec.loads(b"[1]") == [1] and "orjson" not in sys.modules
try:
    codec.loads(b"[NaN]")
except ValueError as error:
    import orjson
    assert type(error) is orjson.JSONDecodeError
assert codec.loads(b"[1]") == [1] and codec.loads is orjson.loads
"""


@pytest.mark.parametrize("program", [BULK, RARE])
def test_orjson_comes_where_it_pays_or_is_needed(program: str) -> None:
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
