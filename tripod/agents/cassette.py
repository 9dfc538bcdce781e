"""A recorded run, played back as a program: the same answer, without the model.

    python -I -S cassette.py FILE

``FILE`` is JSON: digest of the prompt, what was printed (base64), and how it ended. The player
reads its standard input, and refuses (exit 64) a prompt that it was not recorded with, so that a
test which asks something else does not pass by chance. It is of the standard library alone.

``tripod.agents.jobs.cassette_of`` makes one of a run that the ledger holds.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from base64 import b64decode, b64encode
from hashlib import sha256

OTHER_PROMPT = 64
_FORM = 1


def format_cassette(
    prompt: bytes,
    stdout: bytes,
    stderr: bytes,
    exit_code: int | None,
    signal_: int | None = None,
) -> bytes:
    """Write a cassette; ``signal_`` is the one that killed the program, where one did."""
    value = {
        "exit_code": exit_code,
        "form": _FORM,
        "prompt_sha256": sha256(prompt).hexdigest(),
        "signal": signal_,
        "stderr": b64encode(stderr).decode(),
        "stdout": b64encode(stdout).decode(),
    }
    return json.dumps(value, indent=1, sort_keys=True).encode() + b"\n"


def player(path: str) -> tuple[str, ...]:
    """The command line that plays a cassette."""
    return (sys.executable, "-I", "-S", os.path.abspath(__file__), os.path.abspath(path))


def play(path: str) -> int:
    """Do again what was recorded; give the exit code.

    Raises:
        ValueError: the file is no cassette.
    """
    with open(path, "rb") as file:
        value = json.load(file)
    if not isinstance(value, dict) or value.get("form") != _FORM:
        raise ValueError(f"{path} is no cassette of form {_FORM}")
    if sha256(sys.stdin.buffer.read()).hexdigest() != value["prompt_sha256"]:
        sys.stderr.write("this cassette was recorded with another prompt\n")
        return OTHER_PROMPT
    for stream, name in ((sys.stdout, "stdout"), (sys.stderr, "stderr")):
        stream.buffer.write(b64decode(value[name]))
        stream.flush()
    if value["signal"] is not None:
        os.kill(os.getpid(), value["signal"])
        signal.pause()
    return int(value["exit_code"] or 0)


if __name__ == "__main__":
    sys.exit(play(sys.argv[1]))
