"""Timestamps (RFC 3161): an authority says that it saw a seal's text, and when. Pure.

A receipt is the authority's whole reply (a ``TimeStampResp`` in DER) over the SHA-256 of the *text*
of a seal, without any signature: anyone who has the head has what was stamped, and other tools
check it too (``docs/formats/receipts.md``).

It needs ``rfc3161-client`` (the extra ``tsa``), and imports it when something is opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tripod.ledger.errors import MalformedError, MissingExtraError, NotVerifiedError

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

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
