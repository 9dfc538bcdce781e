r"""An entry's bytes: canonical JSON, the header (a Merkle leaf), the commitment to a body. Pure.

Canonical JSON has one spelling for every value: RFC 8785 in a restricted profile of objects with
ASCII keys, arrays, strings of valid Unicode, booleans, and integers within ±(2^53-1). No floats and
no null: a field without a value is left out. In this profile a plain sorted, compact encoder writes
exactly the bytes of RFC 8785.

>>> format_canonical({"b": 1, "a": ["é", True]})
b'{"a":["\xc3\xa9",true],"b":1}'
>>> parse_canonical(b'{"a": 1}')
Traceback (most recent call last):
    ...
tripod.ledger.errors.MalformedError: not canonical JSON: the same value is written {"a":1}

A header is canonical JSON, hashed and stored as the exact bytes. Its leaf hash serves the chain
(``prev``) and the tree. Body and salt (32 random bytes) lie beside it, so that they can be erased.

Source: design, "An entry, byte for byte"; ``docs/formats/entry.md``. The vector of the commitment
is a test.
"""

import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, NamedTuple, TypeAlias

from tripod.ledger import codec
from tripod.ledger.errors import MalformedError, TooLargeError

HEADER_VERSION = 1
MAX_HEADER = 65_535  # an entry bundle of tlog-tiles gives a length of two bytes
MAX_BODY = 64 * 1024
GENESIS = "0" * 64  # the `prev` of seq 0

_HEX = re.compile(r"[0-9a-f]{64}")
_AT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)
_TEXT_FIELDS = ("actor", "at", "body", "id", "kind", "ledger", "prev", "stream")
_REQUIRED = frozenset((*_TEXT_FIELDS, "seq", "v"))
_OPTIONAL = frozenset(("auth", "cause"))

Value: TypeAlias = "bool | int | str | list[Value] | dict[str, Value]"

MAX_INTEGER = 2**53 - 1
MAX_DEPTH = 32


# Canonical JSON --------------------------------------------------------------------------------


# Expressions for what canonical JSON writes, as texts: those who read by them compile them.
PLAIN_PATTERN = rb'[^"\\\x00-\x1f]'
ESCAPE_PATTERN = rb'\\(?:["\\bfnrt]|u00(?:0[0-7bef]|1[0-9a-f]))'
TEXT_PATTERN = PLAIN_PATTERN + b"*+(?>(?:" + ESCAPE_PATTERN + PLAIN_PATTERN + b"*+)*)"
"""The inside of a string: each character in the one way that it has."""
COUNT_PATTERN = rb"(?:0|[1-9][0-9]{0,14}|[1-8][0-9]{15})"
"""A whole number below 9e15, and so below 2^53."""


def format_canonical(value: object) -> bytes:
    """Write ``value`` in its one canonical spelling (MalformedError: it has none).

    It does not look for floats or null (``check_canonical`` does): the hot path cannot hold any.
    The result is a copy: what ``orjson`` gives holds a page of memory for as long as it is kept.
    """
    try:
        return b"%b" % codec.dumps_sorted(value)
    except TypeError as error:
        raise MalformedError(f"this value has no canonical JSON: {error}") from error


def canonical_object(value: dict[str, object]) -> bytes:
    """Canonical bytes of a flat object whose keys are sorted already: half the price."""
    try:
        return b"%b" % codec.dumps(value)
    except TypeError as error:
        raise MalformedError(f"this value has no canonical JSON: {error}") from error


def parse_canonical(data: bytes) -> Value:
    """Read canonical JSON, and nothing else: ``format_canonical(parse_canonical(b)) == b``.

    Raises:
        MalformedError: not JSON, not canonical, or outside the profile.
    """
    try:
        value = codec.loads(data)
    except ValueError as error:
        raise MalformedError(f"not JSON: {error}") from error
    check_canonical(value)
    again = format_canonical(value)
    if again != data:
        shown = again[:200].decode("utf-8", "replace")
        raise MalformedError(f"not canonical JSON: the same value is written {shown}")
    return value  # type: ignore[no-any-return]


def check_canonical(value: object, depth: int = 0) -> None:
    """Check that ``value`` lies in the profile.

    Raises:
        MalformedError: a float, null, a key that is not ASCII, an integer out of range, or
            more than 32 objects and arrays in each other.
    """
    kind = type(value)
    if kind is str or kind is bool:
        return
    if kind is int:
        if not -MAX_INTEGER <= value <= MAX_INTEGER:  # type: ignore[operator]
            raise MalformedError(f"integer out of ±(2^53-1): {value}")
    elif depth >= MAX_DEPTH and kind in (dict, list):
        raise MalformedError(f"nested deeper than {MAX_DEPTH}")
    elif kind is dict:
        for key, inner in value.items():  # type: ignore[attr-defined]
            if type(key) is not str or not key.isascii():
                raise MalformedError(f"object key is not ASCII text: {key!r}")
            check_canonical(inner, depth + 1)
    elif kind is list:
        for inner in value:  # type: ignore[attr-defined]
            check_canonical(inner, depth + 1)
    else:
        raise MalformedError(
            f"{kind.__name__} has no place in canonical JSON here (no floats, no null)"
        )


class Header(NamedTuple):
    """The small envelope of an entry, and the leaf of the tree (design, section 4)."""

    actor: str
    at: str
    body: str
    id: str
    kind: str
    ledger: str
    prev: str
    seq: int
    stream: str
    v: int = HEADER_VERSION
    cause: str | None = None
    auth: str | None = None


class Draft(NamedTuple):
    """What a caller wants to append; the store adds seq, time, id, salt and links.

    ``blobs`` are long texts that ``body`` names by digest. ``id`` is given by callers whose act
    must happen once however often it is tried; else the store makes a UUIDv7. ``auth`` is the
    signature record of a draft that was signed; it covers ``id`` and ``salt``, so they are given.
    """

    kind: str
    stream: str
    actor: str
    body: dict[str, Any]
    id: str | None = None
    cause: str | None = None
    blobs: tuple[bytes, ...] = ()
    salt: bytes | None = None
    auth: bytes | None = None


class Entry(NamedTuple):
    """One fact in the ledger, as stored; ``data`` is the decoded body.

    ``salt`` and ``body`` are None where they were erased; ``data`` is then what the ``redacted``
    entry keeps in their place (see ``tripod.ledger.sqlite.store``), and empty where no entry says
    so. ``auth`` is the signature record that lies beside a signed one.
    """

    seq: int
    id: str
    kind: str
    stream: str
    actor: str
    at: str
    header: bytes
    salt: bytes | None
    body: bytes | None
    data: dict[str, Any]
    auth: bytes | None = None


def entry_leaf_hash(header: bytes) -> bytes:
    """Hash a header as leaf of the tree and as link of the chain (32 bytes)."""
    return sha256(b"\x00" + header).digest()


def commit_body(salt: bytes, kind: str, body: bytes) -> str:
    """Commit to a body: 64 hex digits. The salt of 32 bytes keeps the parts unambiguous."""
    return sha256(b"\x02" + salt + kind.encode() + b"\x00" + body).hexdigest()


def header_auth(record: bytes) -> str:
    """What the header of a signed entry says of its signature record: 64 hex digits."""
    return sha256(b"\x03" + record).hexdigest()


def format_header(header: Header) -> bytes:
    """Write a header in its canonical bytes (TooLargeError: above 65,535 bytes)."""
    fields = sorted(header._asdict().items())
    return header_bytes({name: value for name, value in fields if value is not None})


def header_bytes(value: dict[str, object]) -> bytes:
    """Write a header whose fields are given in order (TooLargeError: above 65,535 bytes)."""
    data = canonical_object(value)
    if len(data) > MAX_HEADER:
        raise TooLargeError(
            f"the header takes {len(data)} bytes; at most {MAX_HEADER} fit an entry bundle"
        )
    return data


def parse_header(data: bytes) -> Header:
    """Read a header; only bytes of ``format_header`` are accepted (MalformedError: which field)."""
    try:
        value = codec.loads(data)
    except ValueError as error:
        raise MalformedError(f"header is not JSON: {error}") from error
    if type(value) is not dict:
        raise MalformedError("header is not an object")
    keys = value.keys()
    if not keys >= _REQUIRED:
        raise MalformedError(f"header lacks {', '.join(sorted(_REQUIRED - keys))}")
    extra = keys - _REQUIRED
    if extra and not extra <= _OPTIONAL:
        raise MalformedError(f"header has unknown fields: {', '.join(sorted(extra - _OPTIONAL))}")
    for name in (*_TEXT_FIELDS, *extra):
        if type(value[name]) is not str:
            raise MalformedError(f"header field {name} is not text")
    if type(value["seq"]) is not int or value["seq"] < 0:
        raise MalformedError("header field seq is not a count")
    if type(value["v"]) is not int or value["v"] != HEADER_VERSION:
        raise MalformedError(
            f"header version {value['v']!r} is not {HEADER_VERSION}: made by a newer version?"
        )
    for name in ("body", "prev", *extra - {"cause"}):
        if not _HEX.fullmatch(value[name]):
            raise MalformedError(f"header field {name} is not 64 hex digits")
    if not _AT.fullmatch(value["at"]):
        raise MalformedError("header field at is not a UTC time with microseconds")
    header = Header(**value)
    if len(data) > MAX_HEADER or format_canonical(value) != data:
        raise MalformedError("header is not in its canonical spelling")
    return header


def entry_mark(*, observed: bool, signed: bool, peer: bool = False) -> str:
    """How an entry came into the ledger, for listings: ``observed``, ``signed`` or ''.

    ``observed``: it was read from a file that another program wrote, so its actor is a claim,
    whatever lies beside it. ``signed``: a signature of its actor lies beside it. ``peer``: another
    replica recorded it, and it was merged; that word stands in front, and both are its maker's.
    """
    word = "observed" if observed else "signed" if signed else ""
    return f"peer {word}".rstrip() if peer else word


# Ids and times ---------------------------------------------------------------------------------


CHANGE_IDS = ("actor-", "actor.")
"""All that ``actor_entry_id`` gives sorts from the one to the other, and hardly another id does."""
OBSERVED_IDS = "obs-"
"""What the id of each entry begins with that was read from a file of another program."""
REDACTED = "redacted"  # the kind of the entry that says that another was erased
MERGED = "peer.entry"  # the kind of the entry that keeps one of another replica


def redaction_entry_id(seq: int) -> str:
    """The id of the entry that says that ``seq`` was erased.

    >>> redaction_entry_id(41)
    'redacted-41'
    """
    return f"{REDACTED}-{seq}"


def actor_entry_id(handle: str, number: int) -> str:
    """The id of the entry by which the key of the actor ``handle`` changes the ``number``-th time.

    >>> actor_entry_id("ann", 1)
    'actor-1-ann'
    """
    return f"{CHANGE_IDS[0]}{number}-{handle}"


def observed_entry_id(path: str, ordinal: int, data: bytes) -> str:
    """Id of a piece of the file ``path``: the ``ordinal``-th (from 0) of those with equal bytes."""
    digest = sha256(b"%d\x00%s\x00" % (ordinal, path.encode()) + data)
    return OBSERVED_IDS + digest.hexdigest()[:40]


def entry_blobs(value: Any) -> Iterator[tuple[str, int]]:
    """Digest in hex and size of every blob that a decoded body names, at any depth.

    Without recursion: a stranger's body may be nested as deep as its parser lets it.
    """
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if type(one) is dict:
            if one.keys() == {"sha256", "size"}:
                digest, size = one["sha256"], one["size"]
                if type(digest) is str and type(size) is int:
                    yield digest, size
                continue
            waiting += reversed(one.values())
        elif type(one) is list:
            waiting += reversed(one)


def entry_blob_mark(digest: str) -> bytes:
    """What stands in the bytes of a body that names the blob; in a text the quotes are escaped."""
    return b'{"sha256":"' + digest.encode() + b'","size":'


def parse_entry_time(at: str) -> int:
    """Read what ``format_at`` writes: microseconds since 1970 (ValueError: invalid).

    >>> parse_entry_time("2026-11-21T20:57:55.123456Z")
    1795294675123456
    """
    from datetime import datetime

    moment = datetime.strptime(at, "%Y-%m-%dT%H:%M:%S.%f%z")
    return int(moment.timestamp()) * 1_000_000 + moment.microsecond
