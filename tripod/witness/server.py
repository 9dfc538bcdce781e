"""The witness as a small web server: POST /add-checkpoint, GET /<sha256 of the origin>/checkpoint.

It speaks HTTP without TLS, to this machine alone unless told otherwise: for others, a web server
that has a certificate stands before it. What one caller can take of it is limited: bytes, time,
connections.
"""

from __future__ import annotations

import contextlib
import re
import socket
import socketserver
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tripod.errors import TripodError
from tripod.ledger.errors import LedgerError
from tripod.ledger.tlog.witness import MAX_REQUEST, TEXT_TYPE, Response
from tripod.witness.folder import WitnessFolder

MAX_CONNECTIONS = 32
QUIET_SECONDS = 10.0  # in which a caller must say or take something
WHOLE_SECONDS = 30.0  # in which a request must be over

_LENGTH = re.compile("[0-9]{1,9}")
_LATEST = re.compile("/([0-9a-f]{64})/checkpoint")
_BUSY = b"HTTP/1.0 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"


class WitnessServer(ThreadingHTTPServer):
    """Serves one folder; ``say`` is given one line for each request and each fault."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(
        self,
        folder: WitnessFolder,
        host: str,
        port: int,
        say: Callable[[str], None],
        *,
        quiet: float = QUIET_SECONDS,
        whole: float = WHOLE_SECONDS,
        connections: int = MAX_CONNECTIONS,
    ) -> None:
        """Bind to ``host`` and ``port`` (0: any free one); OSError where that is refused."""
        self.folder = folder
        self.say = say
        self.quiet = quiet
        self._whole = whole
        self._free = threading.BoundedSemaphore(connections)
        if ":" in host:
            self.address_family = socket.AF_INET6
        super().__init__((host, port), _Handler)

    @property
    def url(self) -> str:
        """Where it listens."""
        host, port = self.socket.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def server_bind(self) -> None:
        """Bind, without asking the network for our own name as the base class does."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.socket.getsockname()[:2]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Take a connection, if one is free."""
        if not self._free.acquire(blocking=False):
            with contextlib.suppress(OSError):
                request.settimeout(0.5)
                request.sendall(_BUSY)
            self.shutdown_request(request)
            self.say(f"{client_address[0]}: 503, all connections are taken")
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection, and cut it off where it takes too long as a whole."""
        timer = threading.Timer(self._whole, _cut_off, (request,))
        timer.daemon = True
        timer.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            timer.cancel()
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        """A caller that went away in the middle costs one line."""
        import sys

        self.say(f"{client_address[0]}: broken off: {sys.exc_info()[1]!r}")


class _Handler(BaseHTTPRequestHandler):
    """One request; HTTP/1.0, so that a connection ends with it."""

    server: WitnessServer
    server_version = "tripod-witness"
    sys_version = ""

    def setup(self) -> None:
        """Have a caller that says nothing for too long given up."""
        super().setup()
        self.connection.settimeout(self.server.quiet)

    def do_POST(self) -> None:
        """Judge what a log asks."""
        if self.path != "/add-checkpoint":
            self._refuse(404, "POST goes to /add-checkpoint")
            return
        length = self.headers.get("Content-Length")
        if length is None or not _LENGTH.fullmatch(length):
            self._refuse(411, "say in Content-Length how many bytes follow")
            return
        if int(length) > MAX_REQUEST:
            self._refuse(413, f"at most {MAX_REQUEST} bytes are read")
            return
        data = self.rfile.read(int(length))
        if len(data) < int(length):
            self._refuse(400, f"{length} bytes were promised, and {len(data)} came")
            return
        try:
            answer = self.server.folder.answer(data)
        except (TripodError, LedgerError, OSError) as error:
            # What is wrong with our disk is for who runs us, and not for the caller.
            self.server.say(f"cannot judge: {error}")
            answer = _text(500, "this witness cannot judge at the moment; its operator must look")
        self._send(answer)

    def do_GET(self) -> None:
        """Show what was last cosigned for a log."""
        match = _LATEST.fullmatch(self.path)
        data = None if match is None else self.server.folder.latest(match[1])
        if data is None:
            self._refuse(404, "nothing here: GET /<sha256 of the origin, in hex>/checkpoint")
        else:
            self._send(Response(200, TEXT_TYPE, data))

    def _refuse(self, status: int, problem: str) -> None:
        self._send(_text(status, problem))

    def _send(self, answer: Response) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Hand the base class's line on, as one line."""
        line = format % args
        self.server.say(f"{self.address_string()}: {line}".replace("\n", " "))


def _text(status: int, problem: str) -> Response:
    return Response(status, TEXT_TYPE, f"{problem}\n".encode())


def _cut_off(request: socket.socket) -> None:
    with contextlib.suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)
