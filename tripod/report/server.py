"""Serves a report on the loopback address, and tells open pages what the ledger took in meanwhile.

A browser that has the address may read, so it holds a random token, which no page can guess. A
request is answered only if its ``Host`` names this server (a name that an attacker points at
127.0.0.1 does not) and if no other origin asked for it. Nothing is ever changed by a request.

Each page is judged anew: none is given that is older than the ledger, or than a moment. Where it
cannot be judged now, the page says why.
"""

from __future__ import annotations

import re
import selectors
import time
from collections.abc import Callable, Iterator, Mapping
from hmac import compare_digest
from html import escape
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from secrets import token_urlsafe
from threading import BoundedSemaphore, Lock
from urllib.parse import parse_qs, unquote

import orjson

from tripod.errors import TripodError
from tripod.output import one_line

LOOPBACK = "127.0.0.1"
_FRESH_S = 2.0  # a page that was judged so lately is given again, if the ledger is the same
_TICK_S = 0.5  # between two looks at the ledger
_SHARE = 20  # of so many parts of the time, one is spent on these looks
_QUIET_S = 15.0  # after which an open stream says that it is there
_STREAMS = 16  # open pages that are told of entries
_PART = 65_536  # bytes of a page that are sent at once
_WAIT_S = 30  # a client that sends or takes nothing for so long is left

Pages = Mapping[str, bytes]
"""The pages of a report by file name, the main one first."""
Entries = Callable[[int], tuple[int, list[str]]]
"""From a number of entries on: how many there are now, and a line for each new one."""


class ServedReport:
    """A report that is rendered when somebody asks, by one thread at a time."""

    def __init__(self, render: Callable[[], Pages], mark: Callable[[], object]) -> None:
        self._render, self._mark = render, mark
        self._lock, self._look = Lock(), Lock()
        self._seen: tuple[float, object] = float("-inf"), None
        self._pages: Pages = {}
        self._of: object = None
        self._at = -_FRESH_S

    def mark(self) -> object:
        """What changes when the evidence does, of a moment ago: many streams ask for it."""
        with self._look:
            begun = time.monotonic()
            if begun > self._seen[0]:
                mark = self._mark()
                took = time.monotonic() - begun
                self._seen = begun + max(_TICK_S / 2, _SHARE * took), mark
            return self._seen[1]

    def pages(self) -> Pages:
        """The pages of this moment (any error: it cannot be judged now)."""
        with self._lock:
            mark = self._mark()
            if not self._pages or mark != self._of or time.monotonic() - self._at > _FRESH_S:
                self._pages, self._of = self._render(), mark
                self._at = time.monotonic()
            return self._pages

    def page(self, name: str) -> bytes | None:
        """A page by its name; '' is the main one, and None says that there is no such page."""
        pages = self.pages()
        return next(iter(pages.values())) if not name else pages.get(name)


class ReportServer(ThreadingHTTPServer):
    """Answers on the loopback address alone; ``address`` is what a browser opens."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, report: ServedReport, entries: Entries, port: int = 0) -> None:
        self.report, self.entries = report, entries
        self.token = token_urlsafe(32)
        self.streams = BoundedSemaphore(_STREAMS)
        super().__init__((LOOPBACK, port), _Request)

    @property
    def address(self) -> str:
        """The address of the main page, with the token."""
        return f"http://{LOOPBACK}:{self.server_port}/{self.token}/"

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a client that left is no fault."""


class _Request(BaseHTTPRequestHandler):
    """One request. No line of it is logged: each would hold the token."""

    server: ReportServer
    server_version, sys_version = "tripod", ""
    protocol_version = "HTTP/1.1"
    timeout = _WAIT_S

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name is http's
        """Log nothing."""

    def do_HEAD(self) -> None:
        """Answer with the headers that GET gives, and no page."""
        self.do_GET()

    def do_GET(self) -> None:
        """Answer with a page, or with the stream of entries."""
        refused = self._refusal()
        if refused is not None:
            self._answer(*refused)
            return
        name = unquote(self.path.partition("?")[0])[len(self.server.token) + 2 :]
        if name == "entries":
            self._stream()
            return
        try:
            page = self.server.report.page(name)
        except Exception as error:  # noqa: BLE001 - no old page and no silence is a verdict
            is_ours = isinstance(error, (TripodError, OSError))
            why = str(error) if is_ours else f"{type(error).__name__}: {error}"
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, f"It cannot be judged now: {why}")
            return
        if page is None:
            self._answer(HTTPStatus.NOT_FOUND, "There is no such page. Open the main page again")
            return
        self._answer(HTTPStatus.OK, page)

    def _refusal(self) -> tuple[HTTPStatus, str] | None:
        """Why a request is not answered; None: it is."""
        port = self.server.server_port
        own = (f"{LOOPBACK}:{port}", f"localhost:{port}")
        if self.headers.get_all("Host", []) not in ([one] for one in own):
            return HTTPStatus.MISDIRECTED_REQUEST, "The address has another host than this server"
        origin = self.headers.get("Origin")
        site = self.headers.get("Sec-Fetch-Site", "none")
        if site not in ("none", "same-origin") or origin not in (
            None,
            *(f"http://{one}" for one in own),
        ):
            return HTTPStatus.FORBIDDEN, "Another site asked for it"
        token = unquote(self.path.partition("?")[0]).split("/")[1:2]
        if not compare_digest("".join(token).encode(), self.server.token.encode()):
            return HTTPStatus.NOT_FOUND, "The address lacks the token that `tripod report` printed"
        return None

    def _answer(self, status: HTTPStatus, body: bytes | str) -> None:
        if isinstance(body, str):
            page = '<!DOCTYPE html>\n<meta charset="utf-8"><title>tripod</title><p>{}.</p>\n'
            body = page.format(escape(one_line(body))).encode()
        self.send_response(status)
        self._headers("text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            for begin in range(0, len(body), _PART):  # each may take _WAIT_S: slow lines get all
                self.wfile.write(body[begin : begin + _PART])

    def _headers(self, kind: str) -> None:
        for name, value in {
            "Content-Type": kind,
            "Cache-Control": "no-store",
            "Content-Security-Policy": "frame-ancestors 'none'",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
        }.items():
            self.send_header(name, value)

    def _stream(self) -> None:
        """Tell what the ledger takes in, until the page is closed."""
        if not self.server.streams.acquire(blocking=False):
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, "Too many pages are open: close some")
            return
        try:
            self.close_connection = True
            self.send_response(HTTPStatus.OK)
            self._headers("text/event-stream")
            self.end_headers()
            if self.command != "HEAD":
                with selectors.DefaultSelector() as asked:
                    asked.register(self.connection, selectors.EVENT_READ)
                    for part in self._parts():
                        self.wfile.write(part)
                        if asked.select(_TICK_S):  # it was closed: a page sends nothing more
                            break
        finally:
            self.server.streams.release()

    def _parts(self) -> Iterator[bytes]:
        """Server-sent events, one for each look at the evidence; empty where nothing is new.

        ``entries`` has new ones; ``again``: other entries stand there now, or another file changed.
        """
        asked = parse_qs(self.path.partition("?")[2]).get("since", [""])[-1]
        word = self.headers.get("Last-Event-ID", asked)
        size = int(word) if re.fullmatch("[0-9]{1,15}", word) else 0
        mark: object = None
        said_at = time.monotonic()
        while True:
            now = self.server.report.mark()
            if now != mark:
                new, found = self._grown(size)
                if mark is not None or new != size:
                    said_at = time.monotonic()
                    yield _event("entries" if new > size else "again", new, found)
                size, mark = new, now
            elif time.monotonic() - said_at > _QUIET_S:
                said_at = time.monotonic()
                yield b":\n\n"
            yield b""

    def _grown(self, size: int) -> tuple[int, list[str]]:
        """How many entries there are, and those after ``size``; unchanged if it cannot be read."""
        try:
            return self.server.entries(size)
        except Exception:  # noqa: BLE001 - the page says why
            return size, []


def _event(name: str, size: int, entries: list[str]) -> bytes:
    data = orjson.dumps({"size": size, "entries": entries})
    return b"event: %s\nid: %d\ndata: %s\n\n" % (name.encode(), size, data)
