"""One POST to a service of others: bounded in bytes and time, with errors that say what to do.

``urllib`` is imported when something is sent: no hot command pays for it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from tripod.errors import BadArgumentError, UnreachableError

if TYPE_CHECKING:
    from urllib.request import OpenerDirector


class Reply(NamedTuple):
    """What came back: the HTTP status, the type that was claimed for the body, the body."""

    status: int
    content_type: str
    body: bytes


def check_url(url: str, what: str) -> None:
    """Refuse what is no plain http or https URL.

    Raises:
        BadArgumentError: it is not, or it holds a password, which would be recorded for ever.
    """
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good, parts = False, urlsplit("")
    if not good or any(c.isspace() or not c.isprintable() for c in url):
        raise BadArgumentError(f"{what}: {url[:200]!r} is no http or https URL")
    if parts.username is not None or parts.query or parts.fragment:
        raise BadArgumentError(
            f"{what}: the URL holds a name, a password, a ? or a #: it would be recorded in the "
            "ledger for ever; give it without"
        )


def post(
    url: str, data: bytes, *, content_type: str, limit: int, timeout: float, what: str
) -> Reply:
    """Send ``data`` and give what came back, whatever its status is.

    Args:
        url: where to; it has passed ``check_url``. No redirection is followed.
        data: the body.
        content_type: what it is.
        limit: more bytes than these are not read.
        timeout: seconds in which all must be over.
        what: is asked (``the witness``), for messages.

    Raises:
        UnreachableError: no whole answer came.
    """
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import Request

    end = time.monotonic() + timeout
    request = Request(  # noqa: S310 - check_url let http and https pass alone
        url,
        data=data,
        headers={"Content-Type": content_type, "User-Agent": "tripod"},
        method="POST",
    )
    try:
        try:
            with _opener().open(request, timeout=timeout) as reply:
                return _read(reply, limit, end)
        except HTTPError as error:
            with error:
                return _read(error, limit, end)
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise UnreachableError(
            f"{what} at {url} gave no answer ({reason}); nothing was recorded. Try again; what is "
            "sealed stays sealed, only it is not anchored yet"
        ) from error


def _opener() -> OpenerDirector:
    from urllib.request import HTTPRedirectHandler, build_opener

    class Stay(HTTPRedirectHandler):
        """A redirected POST would arrive as a GET, and elsewhere: it is shown as it is instead."""

        def redirect_request(self, *_: Any) -> None:
            """Go nowhere."""

    return build_opener(Stay)


def _read(reply: Any, limit: int, end: float) -> Reply:
    parts: list[bytes] = []
    total = 0
    while part := reply.read1(16 * 1024):
        parts.append(part)
        total += len(part)
        if total > limit:
            raise OSError(f"more than {limit} bytes came back")
        if time.monotonic() > end:
            raise TimeoutError("the answer took too long")
    # Where the length was said, http.client does not miss what read1 did not get.
    length = reply.headers.get("Content-Length", "")
    if length.isdecimal() and int(length) != total:
        raise OSError(f"the answer broke off at byte {total} of {length}")
    return Reply(reply.status, reply.headers.get_content_type(), b"".join(parts))
