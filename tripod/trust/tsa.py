"""Asks a timestamp authority (RFC 3161) when it saw the newest seal; the extra ``tsa``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tripod.errors import BadArgumentError, RefusedError, UnreachableError
from tripod.ledger.errors import LedgerError, MalformedError
from tripod.ledger.files import read_plain
from tripod.ledger.tlog.seal import format_seal
from tripod.ledger.tlog.timestamp import MAX_RECEIPT, open_receipt, parse_authorities, require_extra
from tripod.team.team import Team
from tripod.trust import anchor
from tripod.trust.anchor import APART, Receipt, newest_seal, record

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

_QUERY = "application/timestamp-query"
_REPLY = "application/timestamp-reply"
_MAX_AUTHORITIES = 4 * 1024 * 1024  # bytes; the list of a whole system has about 200,000


def stamp(team: Team, url: str, authorities: str, timeout: float) -> Receipt:
    """Have the newest seal stamped, check that, and log the reply.

    Args:
        team: whose seal it is.
        url: where the authority answers.
        authorities: a PEM file with the certificates that are trusted.
        timeout: seconds in which it must answer.

    Raises:
        MissingExtraError: the extra ``tsa`` is not installed.
        BadArgumentError: no URL, or no certificates.
        UnreachableError: no answer came.
        RefusedError: what came is no stamp of this seal by one of ``authorities``.
    """
    import time

    require_extra()
    from rfc3161_client import HashAlgorithm, TimestampRequestBuilder

    anchor.check_url(url, "the authority")
    roots = _roots(authorities)
    sealed = newest_seal(team)
    text = format_seal(sealed.seal)
    request = (
        TimestampRequestBuilder()
        .data(text.encode())
        .hash_algorithm(HashAlgorithm.SHA256)
        .cert_request(cert_request=True)
        .build()
    )
    reply = anchor.post(
        url,
        request.as_bytes(),
        content_type=_QUERY,
        limit=MAX_RECEIPT,
        timeout=timeout,
        what="the timestamp authority",
    )
    if reply.status != 200 or reply.content_type != _REPLY:
        raise UnreachableError(
            f"{url} answered {reply.status} with {reply.content_type}, not with a timestamp; "
            "nothing was recorded. Is it the address of a timestamp authority?"
        )
    try:
        stamped = open_receipt(reply.body, text, roots, request.nonce)
    except LedgerError as error:
        raise RefusedError(
            f"{url}: {error}. Nothing was recorded; is {authorities} its authority?"
        ) from error
    seconds = stamped.micros // 1_000_000
    apart = abs(seconds - int(time.time()))
    if apart > APART:
        team.warnings.append(f"the clock of {url} and ours differ by {apart} s")
    return record(team, Receipt("tsa", url, sealed.seal, seconds, reply.body))


def _roots(path: str) -> list[Certificate]:
    try:
        return parse_authorities(read_plain(path, _MAX_AUTHORITIES, named=True))
    except OSError as error:
        raise BadArgumentError(f"--ca {path}: {error.strerror}") from error
    except MalformedError as error:
        raise BadArgumentError(f"--ca {path}: {error}") from error
