"""Commands of tripod run in forks of this process: ten times as many deaths in the same time.

To start an interpreter takes longer than most acts. A fork finds every module imported and does
what the script ``tripod`` does from there on: it calls the entry point, with the same arguments,
variables and folder, and ends where that ends it. It inherits no open file and no signal handler.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import os
import pkgutil
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import entry_points
from pathlib import Path
from types import FrameType
from typing import NamedTuple, NoReturn

import tripod

__all__ = ["Child", "Ended", "adopt_orphans", "import_all", "main_of", "reap_orphans", "within"]

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of prctl(2)
_PIECE = 65536
SPARED: set[int] = set()
"""Children that are none of ours: those of a program that plays a family, such as a test."""


class Ended(NamedTuple):
    """How a child ended (below 0: of which signal), and what it wrote."""

    code: int
    out: bytes
    err: bytes


def import_all() -> None:
    """Import every module of tripod, so that no fork does; what needs an extra stays out."""
    for module in pkgutil.walk_packages(tripod.__path__, "tripod."):
        if not module.name.endswith("__main__"):
            with suppress(ImportError):
                importlib.import_module(module.name)
    gc.collect()
    gc.freeze()  # else each fork copies the pages that its collector writes to


def main_of(program: str) -> Callable[[], object]:
    """What the script ``program`` calls."""
    (found,) = entry_points(group="console_scripts", name=os.path.basename(program))
    called: Callable[[], object] = found.load()
    return called


class Child:
    """A fork in which ``main`` runs as the script ``argv[0]`` would run it.

    It leads a session of its own. ``stopped``: it stops itself first, and `wait_stopped` gives it
    to a tracer. ``largest``: no file that it writes may grow above so many bytes.
    """

    def __init__(
        self,
        argv: Sequence[str],
        folder: Path,
        env: Mapping[str, str],
        main: Callable[[], object],
        *,
        stopped: bool = False,
        largest: int | None = None,
    ) -> None:
        """Fork, and begin."""
        sys.stdout.flush()
        sys.stderr.flush()
        outputs = os.pipe(), os.pipe()
        self.begun = time.monotonic()
        self.pid = os.fork()
        if self.pid == 0:
            _become(argv, folder, env, main, outputs, stopped=stopped, largest=largest)
        self._readers = [reader for reader, _ in outputs]
        for reader, writer in outputs:
            os.close(writer)
            os.set_blocking(reader, False)
        self._ended = os.pidfd_open(self.pid)

    def wait_stopped(self) -> None:
        """Wait until it has stopped itself."""
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            raise RuntimeError(f"a child ended before it began: {status}")

    def signal(self, number: int) -> None:
        """Send it a signal."""
        signal.pidfd_send_signal(self._ended, number)

    def is_over(self, seconds: float) -> bool:
        """Wait for its end, at most so long; whether it came."""
        return bool(select.select([self._ended], [], [], max(0, seconds))[0])

    def end(self, seconds: float) -> Ended:
        """Wait for its end. TimeoutError: it hangs; it and its session are killed then."""
        is_over = self.is_over(seconds)
        if not is_over:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        out, err = (_read(reader) for reader in self._readers)
        for fd in (*self._readers, self._ended):
            os.close(fd)
        if not is_over:
            raise TimeoutError("it hangs")
        return Ended(os.waitstatus_to_exitcode(status), out, err)


def _read(pipe: int) -> bytes:
    """All that a pipe holds now: who still has its other end may never end."""
    parts = []
    with suppress(BlockingIOError):
        while part := os.read(pipe, _PIECE):
            parts.append(part)
    return b"".join(parts)


def _become(
    argv: Sequence[str],
    folder: Path,
    env: Mapping[str, str],
    main: Callable[[], object],
    outputs: Sequence[tuple[int, int]],
    *,
    stopped: bool,
    largest: int | None,
) -> NoReturn:
    """Be the process that the script would be, in the fork."""
    code = 1
    try:
        atexit._clear()  # noqa: SLF001 - what the parent registered is the parent's
        os.setsid()
        for number in (signal.SIGALRM, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, 0)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for target, source in enumerate((nothing, *(writer for _, writer in outputs))):
            os.dup2(source, target)
        os.closerange(3, 4096)
        sys.stdin, sys.stdout, sys.stderr = (
            open(fd, mode, encoding="utf-8", closefd=False)  # noqa: SIM115 - as long as it lives
            for fd, mode in enumerate("rww")
        )
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(env)
        tempfile.tempdir = None
        sys.argv = list(argv)
        sys.modules["__main__"].__file__ = argv[0]
        if largest is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
        if stopped:
            os.kill(os.getpid(), signal.SIGSTOP)
        answer = main()
        code = answer if isinstance(answer, int) else 0
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 0 if left.code is None else 1
        if isinstance(left.code, str):
            print(left.code, file=sys.stderr)
    except BaseException:  # noqa: BLE001 - as the interpreter tells of it
        traceback.print_exc()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


@contextmanager
def within(seconds: float, error: type[BaseException] = TimeoutError) -> Iterator[None]:
    """End what is done inside with ``error`` after so long."""

    def late(_number: int, _frame: FrameType | None) -> NoReturn:
        raise error("it hangs")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def adopt_orphans() -> None:
    """Have what a killed child leaves behind become a child of this process."""
    if ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl: this process cannot adopt orphans")


def running_children() -> set[int]:
    """The children of this process that run; those that ended are waited for."""
    while True:
        told = Path(f"/proc/self/task/{os.getpid()}/children").read_text("ascii").split()
        running = {pid for pid in map(int, told) if os.waitpid(pid, os.WNOHANG)[0] == 0}
        if len(running) == len(told):  # else one that ended may have left us its own
            return running


def reap_orphans(seconds: float) -> list[str]:
    """Wait until no child is left, at most so long; what then still runs, which is killed."""
    until = time.monotonic() + seconds
    while (left := running_children() - SPARED) and time.monotonic() < until:
        time.sleep(0.001)
    told = []
    for pid in left:
        with suppress(ProcessLookupError, FileNotFoundError, ChildProcessError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
            told.append(words.decode("utf-8", "replace").strip())
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return told
