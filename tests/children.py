"""Starting ``appender.py``, several programs at one moment, and programs that die on their way."""

import os
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn, TextIO

__all__ = ["let_go", "run_forked", "run_together", "start"]

_HERE = Path(__file__).resolve().parent


def start(*arguments: str) -> "subprocess.Popen[str]":
    """Start an appender; its standard input and output are pipes."""
    paths = os.pathsep.join((str(_HERE), str(_HERE.parent)))
    return subprocess.Popen(
        [sys.executable, "-m", "appender", *arguments],
        env=os.environ | {"PYTHONPATH": paths},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def let_go(children: Sequence["subprocess.Popen[str]"], word: str = "go") -> None:
    """Have all of them begin at once: each says when it is ready, and waits for a line."""
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write(f"{word}\n")
        child.stdin.flush()


def run_together(path: str, processes: int, times: int) -> list[list[str]]:
    """Let several append at once, from the same moment; give the ids that each was answered."""
    children = [start(path, f"p{number}", str(times)) for number in range(processes)]
    let_go(children)
    answered = [child.communicate()[0].splitlines() for child in children]
    assert [child.returncode for child in children] == [0] * processes
    return answered


def run_forked(
    program: str, *arguments: str, env: Mapping[str, str] | None = None, seconds: float = 60
) -> "subprocess.CompletedProcess[str]":
    """Run a program as ``python -c`` does, in a fork of this process: our modules are loaded.

    It may change them and be killed in them: that is in the fork alone. After so many seconds the
    system ends it by SIGALRM, and no handler of its own runs.
    """
    memory = os.memfd_create("out"), os.memfd_create("err")
    with os.fdopen(memory[0], "w+") as out, os.fdopen(memory[1], "w+") as err:
        with warnings.catch_warnings():
            # Python warns where other threads run: those of pytest-xdist take no lock of ours.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            os.environ.update(env or {})
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, seconds)
            _become(program, arguments, out, err)
        _, status = os.waitpid(child, 0)
        out.seek(0)
        err.seek(0)
        code = os.waitstatus_to_exitcode(status)
        return subprocess.CompletedProcess(arguments, code, out.read(), err.read())


def _become(program: str, arguments: Sequence[str], out: TextIO, err: TextIO) -> NoReturn:
    """Be the program, and end."""
    code = 1
    try:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        warnings.resetwarnings()
        tempfile.tempdir = None  # the environment may name another
        sys.argv = ["-c", *arguments]
        exec(program, {"__name__": "__main__"})  # noqa: S102 - a test's own program
        code = 0
    except BaseException:  # noqa: BLE001 - whatever it is, this process ends here
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
