"""A log in memory and a witness in a folder, for the tests of both sides.

Run as a program it is a witness that dies: ``python -m witnessing DIR STEP`` serves the folder and
kills itself where STEP says. It prints its URL first.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sealed import LOG, TIME, leaves_of, seal_of

from tripod.ledger.files import replace_file
from tripod.ledger.merkle import consistency_proof, list_nodes
from tripod.ledger.tlog.note import Note
from tripod.ledger.tlog.seal import format_seal, sign_seal
from tripod.ledger.tlog.witness import CosignRequest, format_request
from tripod.witness import folder as folders
from tripod.witness.folder import WitnessFolder
from tripod.witness.server import WitnessServer

__all__ = ["DEATHS", "FORKED", "LEAVES", "NAME", "asked", "begun", "note_of", "served"]

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
    return format_request(CosignRequest(old, tuple(hashes), note_of(leaves)))


def begun(path: Path) -> WitnessFolder:
    """A witness that knows the log of the tests."""
    WitnessFolder.begin(str(path), NAME).trust(LOG.verifier().format())
    return WitnessFolder(str(path), lambda: TIME)


@contextmanager
def served(folder: WitnessFolder, **limits: float) -> Iterator[tuple[WitnessServer, list[str]]]:
    """The witness behind a port of this machine, and the lines that it says."""
    said: list[str] = []
    connections = int(limits.pop("connections", 32))
    with WitnessServer(
        folder, "127.0.0.1", 0, said.append, connections=connections, **limits
    ) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server, said
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
    path, step = sys.argv[1:]
    with WitnessServer(WitnessFolder(path), "127.0.0.1", 0, lambda _: None) as dying:
        sys.stdout.write(f"{dying.url}\n")
        sys.stdout.flush()
        _dies(step)
        dying.serve_forever()
