"""Receipts: what a witness (C2SP tlog-witness) and a timestamp authority (RFC 3161) answer. Pure.

A witness has seen one line of growth of each log that it knows, and cosigns the next seal only if
that continues it. ``decide_witness_request`` is the whole of its judgement, and an HTTP status its
answer. What it says to keep must be on the disk *before* it is answered, and no other request for
this log may be judged in between: that is the caller's work (``tripod.trust.witness``).

An authority says that it saw a seal's text, and when. Its receipt is its whole reply (a
``TimeStampResp`` in DER) over the SHA-256 of the *text* of a seal: origin, size, root, without any
signature. So anyone who has the head has what was stamped. Opening one needs ``rfc3161-client``
(the extra ``tsa``), which is imported then.

Source: spec: tlog-formats 5; ``docs/formats/receipts.md`` has the bytes and each status.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tripod.ledger.errors import MalformedError, MissingExtraError, NotVerifiedError
from tripod.ledger.merkle import EMPTY_ROOT, check_consistency
from tripod.ledger.tlog.note import (
    COSIGNATURE,
    MAX_NOTE,
    MAX_SIZE,
    Note,
    Signature,
    SigningKey,
    VerifierKey,
    format_base64,
    format_lines_and_note,
    format_note,
    hashes_problem,
    note_cosignature_time,
    parse_base64,
    parse_decimal,
    parse_lines_and_note,
    parse_note,
    verify,
)
from tripod.ledger.tlog.seal import Seal, cosign_seal, parse_seal

if TYPE_CHECKING:
    from cryptography.x509 import Certificate


MAX_REQUEST = MAX_NOTE + 8 * 1024  # bytes
SIZE_TYPE = "text/x.tlog.size"
TEXT_TYPE = "text/plain; charset=utf-8"

_OLD = "old "


class CosignRequest(NamedTuple):
    """Asks to cosign the seal in ``note``; ``hashes`` (32 bytes) lead to it from size ``old``."""

    old: int
    hashes: tuple[bytes, ...]
    note: Note


class Response(NamedTuple):
    """What is sent back: an HTTP status, the body's type, the body."""

    status: int
    content_type: str
    body: bytes


class Verdict(NamedTuple):
    """An answer, and the note that must be on the disk before it is given (None: nothing new).

    The note is the seal with the signatures of its log and, last, the witness's own.
    """

    answer: Response
    keep: Note | None = None


def format_witness_request(request: CosignRequest) -> bytes:
    """Write what a log asks (MalformedError: a part is invalid, or there are too many hashes)."""
    _check(request)
    lines = [f"{_OLD}{request.old}", *map(format_base64, request.hashes)]
    return format_lines_and_note(lines, request.note)


def parse_witness_request(data: bytes) -> CosignRequest:
    """Read what a log asks, unjudged; only what ``format_witness_request`` writes is accepted."""
    (first, *rest), note = parse_lines_and_note(data, MAX_REQUEST, "request")
    if not first.startswith(_OLD):
        raise MalformedError("request: line 1 does not say `old` and a size")
    old = parse_decimal(first.removeprefix(_OLD), "request: line 1, the old size")
    hashes = [parse_base64(line, f"request: line {n}") for n, line in enumerate(rest, 2)]
    request = CosignRequest(old, tuple(hashes), parse_note(note))
    _check(request)
    return request


def format_witness_signatures(signatures: Sequence[Signature]) -> bytes:
    """Write signatures as the lines that stand in a note (MalformedError: one is invalid)."""
    # Any text will do: the lines do not depend on it.
    return format_note(Note("\n", tuple(signatures)))[2:]


def parse_witness_signatures(data: bytes) -> tuple[Signature, ...]:
    """Read lines that ``format_witness_signatures`` writes (MalformedError: anything else)."""
    try:
        note = parse_note(b"\n\n" + data)
    except MalformedError as error:
        raise MalformedError(f"not signature lines: {error}") from error
    if note.text != "\n":
        raise MalformedError("not signature lines: a blank line stands among them")
    return note.signatures


def origin_of_witness_request(request: CosignRequest) -> str:
    """Which log asks; whether it really does is for ``decide_witness_request``."""
    return request.note.text.partition("\n")[0]


def decide_witness_request(
    request: CosignRequest,
    logs: Sequence[VerifierKey],
    last: Note | None,
    key: SigningKey,
    seconds: int,
) -> Verdict:
    """Judge one request.

    ``logs`` are the keys of all known logs, ``last`` is the note that ``Verdict.keep`` last named
    for this log, if any, ``key`` the witness's own. ``seconds`` is the time now, since 1970; never
    less is signed than last time.

    Raises:
        MalformedError: ``last`` is not what was kept, so that nothing can be said.
        NotVerifiedError: ``last`` does not bear a good signature by ``key``.
    """
    origin = origin_of_witness_request(request)
    keys = [log for log in logs if log.name == origin]
    if not keys:
        return refuse_witness_request(404, f"the log {origin[:255]!r} is not known here")
    try:
        good = verify(request.note, keys)
    except NotVerifiedError as error:
        return refuse_witness_request(403, str(error))
    try:
        # Extension lines are accepted: a witness vouches only that size and root continue the
        # seal that it cosigned before.
        seal = parse_seal(request.note.text, extensions=True)
    except MalformedError as error:
        empty = request.note.text.split("\n")[1:2] == ["0"]
        return refuse_witness_request(422 if empty else 400, str(error))
    if request.old > seal.size:
        return refuse_witness_request(
            400, f"the old size {request.old} is more than the seal's {seal.size}"
        )
    size, root, since = 0, EMPTY_ROOT, 0
    if last is not None:
        (_, size, root, _), since = kept_witness_seal(last, origin, key.verifier())
    if request.old != size:
        return Verdict(Response(409, SIZE_TYPE, f"{size}\n".encode()))
    if not check_consistency(size, root, seal.size, seal.root, request.hashes):
        problem = f"no proof that {origin} grew from {size} entries, as cosigned, to {seal.size}"
        if size == seal.size:
            problem = f"another root was cosigned at size {size} of {origin}: it forked"
        return refuse_witness_request(422, problem)
    own = cosign_seal(seal, key, max(seconds, since))
    answer = Response(200, TEXT_TYPE, format_witness_signatures([own]))
    return Verdict(answer, Note(request.note.text, (*good, own)))


def refuse_witness_request(status: int, problem: str) -> Verdict:
    """Answer with one line that says why not; nothing is kept."""
    return Verdict(Response(status, TEXT_TYPE, f"{problem}\n".encode(errors="replace")))


def kept_witness_seal(last: Note, origin: str, key: VerifierKey) -> tuple[Seal, int]:
    """Read a note that a witness kept: the seal, and when it was cosigned (seconds since 1970).

    Another log's, or none, is a MalformedError; without ``key``'s signature a NotVerifiedError.
    """
    if key.kind != COSIGNATURE:
        raise MalformedError(f"{key.name} is not a key for cosignatures")
    (own,) = verify(last, [key])
    seal = parse_seal(last.text, extensions=True)
    if seal.origin != origin:
        raise MalformedError(f"what was kept for the log {origin!r} is a seal of {seal.origin!r}")
    return seal, note_cosignature_time(own)


def _check(request: CosignRequest) -> None:
    problem = hashes_problem(request.hashes)
    if not 0 <= request.old <= MAX_SIZE:
        problem = f"the old size {request.old} is not from 0 to 2^63-1"
    if problem is not None:
        raise MalformedError(f"request: {problem}")


# Timestamps ------------------------------------------------------------------------------------


MAX_RECEIPT = 64 * 1024  # bytes; with a chain of certificates usually under 8 KiB

_GRANTED = 0


class Stamp(NamedTuple):
    """The text was there at ``micros`` (µs since 1970), give or take ``accuracy`` (µs).

    ``serial`` is the authority's own number for it. An authority that states no accuracy has 0.
    """

    micros: int
    accuracy: int
    serial: int


def require_timestamp_extra() -> None:
    """Say what to install, where ``rfc3161-client`` is not (MissingExtraError)."""
    try:
        import rfc3161_client  # noqa: F401 - whether it is there is the question
    except ImportError as error:
        raise MissingExtraError(
            "timestamps need rfc3161-client: pip install 'tripod-ledger[tsa]'"
        ) from error


def parse_timestamp_authorities(pem: bytes) -> list[Certificate]:
    """Read the certificates of authorities that are trusted (MalformedError: nothing found)."""
    from cryptography.x509 import load_pem_x509_certificates

    try:
        return load_pem_x509_certificates(pem)
    except ValueError as error:
        raise MalformedError(f"no certificates in PEM form: {error}") from error


def open_timestamp(
    receipt: bytes, text: str, roots: Sequence[Certificate], nonce: int | None = None
) -> Stamp:
    """Check that a trusted authority stamped this text, of a seal; ``receipt`` is its whole reply.

    The order of the certificates that come along is not judged: no signature covers it, and many
    authorities, among them that of ``openssl``, send them in another order than DER demands. The
    ``roots`` must have been valid when it was stamped; ``nonce`` is that of the request, if known.

    Raises:
        MissingExtraError: the extra ``tsa`` is not installed.
        MalformedError: the receipt is no such reply, or the authority refused in it.
        NotVerifiedError: it is about another text, or no trusted authority signed it.
    """
    require_timestamp_extra()
    from rfc3161_client import VerificationError, VerifierBuilder, decode_timestamp_response

    if not roots:
        raise NotVerifiedError("timestamp: no authority is trusted here")
    try:
        response = decode_timestamp_response(_sorted(receipt))
        status = response.status
    except ValueError as error:
        raise MalformedError(f"timestamp: not a reply of an authority: {error}") from error
    if status != _GRANTED:
        words = "; ".join(response.status_string)[:200]
        why = f"status {status}: {words}" if words else f"status {status}"
        raise MalformedError(f"timestamp: the authority did not grant it ({why})")
    builder = VerifierBuilder(roots=list(roots))
    if nonce is not None:
        builder = builder.nonce(nonce)
    try:
        builder.build().verify_message(response, text.encode())
    except (VerificationError, ValueError) as error:
        raise NotVerifiedError(
            f"timestamp: not what a trusted authority stamped for this seal: {error}"
        ) from error
    info = response.tst_info
    # A field that may be missing, which its types do not say.
    accuracy = getattr(info, "accuracy", None)
    micros = 0
    if accuracy is not None:
        seconds, millis = accuracy.seconds or 0, accuracy.millis or 0
        micros = (seconds * 1000 + millis) * 1000 + (accuracy.micros or 0)
    return Stamp(round(info.gen_time.timestamp() * 1_000_000), micros, info.serial_number)


# Just enough DER to find the certificates -------------------------------------------------------


def _sorted(receipt: bytes) -> bytes:
    """A timestamp reply with its certificates in DER order; other bytes unchanged."""
    # TimeStampResp: status, token. The token: its type, [0] { SignedData }. SignedData: version,
    # digests, content, [0] certificates, ...
    tag, start, end = 0, 0, 0
    parts = []
    try:
        for steps in (0, 1, 1, 0, 3):
            for _ in range(steps):
                _, _, start = _element(receipt, start)
            tag, start, end = _element(receipt, start)
        if tag != 0xA0:
            return receipt
        begin = start
        while start < end:
            _, _, stop = _element(receipt, start)
            parts.append(receipt[start:stop])
            start = stop
    except IndexError:
        return receipt
    return receipt[:begin] + b"".join(sorted(parts)) + receipt[end:]


def _element(data: bytes, at: int) -> tuple[int, int, int]:
    """Tag, begin and end of the content of the element at ``at`` (IndexError: not found)."""
    tag, length = data[at], data[at + 1]
    start = at + 2
    if length & 0x80:
        count = length & 0x7F
        length = int.from_bytes(data[start : start + count], "big")
        start += count
    if start + length > len(data):
        raise IndexError
    return tag, start, start + length
