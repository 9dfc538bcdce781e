"""A log in memory, a witness in a folder, and a small web server for it, for tests of both sides.

Run as a program it serves a witness: ``python -m witnessing DIR [STEP]`` prints its URL, and kills
itself where STEP says.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from sealed import LOG, TIME, leaves_of, list_nodes, seal_of

from tripod.ledger.files import replace_file
from tripod.ledger.merkle import consistency_proof
from tripod.ledger.tlog.note import Note
from tripod.ledger.tlog.receipt import CosignRequest, format_witness_request
from tripod.ledger.tlog.seal import format_seal, sign_seal
from tripod.trust import witness as folders
from tripod.trust.witness import WitnessFolder

__all__ = [
    "DEATHS",
    "FORKED",
    "LEAVES",
    "NAME",
    "WitnessServer",
    "asked",
    "begun",
    "note_of",
    "served",
]

NAME = "witness.example/w1"
LEAVES = leaves_of([f"e{n}".encode() for n in range(40)])
FORKED = [*LEAVES[:5], *leaves_of([f"f{n}".encode() for n in range(5, 40)])]
DEATHS = ("before the file", "before the name", "before the answer")


def note_of(leaves: list[bytes]) -> Note:
    """The seal of a log with these leaves."""
    seal = seal_of(leaves)
    return Note(format_seal(seal), (sign_seal(seal, LOG),))


def asked(old: int, leaves: list[bytes]) -> bytes:
    """What a log asks that has these leaves, and believes that the witness has seen ``old``."""
    hashes = consistency_proof(list_nodes(leaves), min(old, len(leaves)), len(leaves))
    return format_witness_request(CosignRequest(old, tuple(hashes), note_of(leaves)))


def begun(path: Path) -> WitnessFolder:
    """A witness that knows the log of the tests."""
    WitnessFolder.begin(str(path), NAME).trust(LOG.verifier().format())
    return WitnessFolder(str(path), lambda: TIME)


class WitnessServer(ThreadingHTTPServer):
    """A witness behind HTTP: POST /add-checkpoint alone. ``requests`` are the lines it got."""

    daemon_threads = True

    def __init__(self, folder: WitnessFolder) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.requests: list[str] = []

    @property
    def url(self) -> str:
        """The address on this machine."""
        return f"http://127.0.0.1:{self.socket.getsockname()[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: WitnessServer

    def do_POST(self) -> None:
        """Answer what a log asks, as the folder judges it."""
        assert self.path == "/add-checkpoint"
        answer = self.server.folder.answer(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Note the request."""
        self.server.requests.append(format % args)


@contextmanager
def served(folder: WitnessFolder) -> Iterator[WitnessServer]:
    """The witness behind a port of this machine."""
    with WitnessServer(folder) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def _dies(step: str) -> None:
    """Have this process killed at a step of its next answer."""

    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    if step == "before the file":
        os.fsync = die  # type: ignore[assignment]
    elif step == "before the name":
        os.rename = die  # type: ignore[assignment]
    else:

        def write_and_die(path: str, data: bytes, mode: int) -> None:
            replace_file(path, data, mode)
            die()

        vars(folders)["replace_file"] = write_and_die


if __name__ == "__main__":
    path, *steps = sys.argv[1:]
    with WitnessServer(WitnessFolder(path)) as serving:
        sys.stdout.write(f"{serving.url}\n")
        sys.stdout.flush()
        for step in steps:
            _dies(step)
        serving.serve_forever()
