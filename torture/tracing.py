"""Runs a command under ``strace``: what it asked of the file system, and faults put in its way.

The faults come at the system call, not in our code: a death before the third ``rename``, a full
disk at the fifth ``write``. So every step of every library is reached, SQLite's too, which a hook
in our own modules would never see; and the code that people run is the code that is tortured.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import NamedTuple

from torture.children import Child

__all__ = [
    "CHANGING",
    "SYNCING",
    "Call",
    "Fault",
    "Traced",
    "attached",
    "trace",
    "trace_child",
    "tracer_problem",
]

CHANGING = (
    "openat", "write", "pwrite64", "writev", "pwritev", "ftruncate", "truncate", "fallocate",
    "rename", "renameat", "renameat2", "link", "linkat", "unlink", "unlinkat", "mkdir", "mkdirat",
    "rmdir", "symlink", "symlinkat", "fchmod", "chmod", "fchmodat", "copy_file_range", "sendfile",
)  # fmt: skip
"""The calls that change files or their names. An ``openat`` may make or empty a file."""
SYNCING = ("fsync", "fdatasync", "sync", "syncfs", "sync_file_range", "msync")
"""The calls that wait for the disk."""
_PLACING = ("lseek",)

_LEAVING_S = 60
_WHOLE = 64 * 2**20  # bytes of one call's data that are noted
_LINE = re.compile(r"(?:(\d+) +)?(?:(\w+)\((.*)|<\.\.\. (\w+) resumed>(.*))", re.DOTALL)
_END = re.compile(r"(.*)\) += (-?\d+|\?)(?:<((?:\\x..)*)>)?(.*)", re.DOTALL)
_TOKEN = re.compile(
    r'"((?:\\x..)*)"(\.\.\.)?'  # bytes
    r"|(?:(-?\d+)|AT_FDCWD)<((?:\\x..)*)>"  # a descriptor and what it is of
    r"|(-?(?:0x[0-9a-f]+|\d+))"  # a number
    r"|([A-Z][A-Z0-9_|]*)"  # flags
)


class Call(NamedTuple):
    """One system call; ``result`` is -1 where the system refused it.

    ``texts``: its paths or bytes, in order; ``files``: the paths of the descriptors it was given;
    ``numbers``: its other arguments; ``flags``: their names; ``result``: what it gave, and
    ``opened``: the path of a descriptor that it gave.
    """

    pid: int
    name: str
    fd: int
    files: tuple[str, ...]
    texts: tuple[bytes, ...]
    numbers: tuple[int, ...]
    flags: str
    result: int
    opened: str


class Fault(NamedTuple):
    """What is put in the way of the ``number``-th call of a ``name``, counted from 1.

    ``what`` is in ``strace``'s words: ``signal=KILL``, ``error=ENOSPC``. Where it is to stay so,
    ``stays``: each later call of that name meets it as well.
    """

    name: str
    number: int
    what: str
    stays: bool = False

    def __str__(self) -> str:
        """As ``strace`` takes it."""
        return f"inject={self.name}:{self.what}:when={self.number}{'+' if self.stays else ''}"


class Traced(NamedTuple):
    """How a command ended, what it wrote, and what it asked of the file system."""

    code: int
    out: bytes
    err: bytes
    calls: list[Call]


def tracer_problem() -> str | None:
    """Why no command can be traced here; None: it can."""
    if which("strace") is None:
        return "strace is not installed"
    done = subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, check=False)
    return None if done.returncode == 0 else "strace may trace no program here"


def trace(
    command: Sequence[str],
    folder: Path,
    *,
    env: Mapping[str, str] | None = None,
    faults: Sequence[Fault] = (),
    note: bool = True,
    seconds: float = 120,
) -> Traced:
    """Run a command in ``folder`` and note its calls, where ``note``.

    TimeoutExpired: it hangs. ValueError: the tracer itself refuses.
    """
    with tempfile.TemporaryDirectory(prefix="trace-") as scratch:
        log = Path(scratch, "log") if note else None
        how = ["-f", "-qq", *_options(faults, log)]
        if not any("signal" in fault.what for fault in faults):  # with it, none is sent (6.1)
            how.append("--seccomp-bpf")
        with subprocess.Popen(
            ["strace", *how, "--", *command],
            cwd=folder,
            env=None if env is None else dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as child:
            try:
                out, err = child.communicate(timeout=seconds)
            except BaseException:
                os.killpg(child.pid, 9)
                raise
        if err.startswith(b"strace: "):
            raise ValueError(f"the tracer refuses: {err.decode()}")
        return Traced(child.returncode, out, err, _read(log))


def trace_child(
    child: Child,
    *,
    faults: Sequence[Fault] = (),
    note: bool = True,
    follows: bool = True,
    seconds: float = 120,
) -> Traced:
    """Let a child go on that has stopped itself, and note its calls, where ``note``.

    ``follows``: the programs that it starts are traced, too. TimeoutError: it hangs. ValueError:
    the tracer itself refuses.
    """
    with tempfile.TemporaryDirectory(prefix="trace-") as scratch:
        log = Path(scratch, "log") if note else None
        with attached(child, faults=faults, log=log, follows=follows):
            child.signal(signal.SIGCONT)
            ended = child.end(seconds)
        return Traced(*ended, _read(log))


@contextmanager
def attached(
    child: Child, *, faults: Sequence[Fault] = (), log: Path | None = None, follows: bool = True
) -> Iterator[None]:
    """A tracer at a child that has stopped itself; at the end it is waited for."""
    how = [*(["-f"] if follows else []), "-p", str(child.pid), *_options(faults, log)]
    child.wait_stopped()
    with subprocess.Popen(
        ["strace", *how], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as tracer:
        assert tracer.stderr is not None
        said = tracer.stderr.readline()
        if not said.endswith(b" attached\n"):
            child.signal(signal.SIGKILL)
            raise ValueError(f"the tracer refuses: {said.decode()}")
        try:
            yield
        finally:
            try:
                tracer.communicate(timeout=_LEAVING_S)
            except subprocess.TimeoutExpired:  # what it follows goes on, and is not our subject
                tracer.terminate()


def _options(faults: Sequence[Fault], log: Path | None) -> list[str]:
    names = [*CHANGING, *SYNCING, *_PLACING] if log else [fault.name for fault in faults]
    how = ["-e", f"trace={','.join(names) or 'none'}"]
    how += ["-y", "-xx", "-s", str(_WHOLE), "-o", str(log) if log else "/dev/null"]
    for fault in faults:
        how += ["-e", str(fault)]
    return how


def _read(log: Path | None) -> list[Call]:
    return [] if log is None else list(_calls(log.read_text("ascii")))


def _calls(log: str) -> Iterator[Call]:
    """The calls, in the order in which they returned."""
    begun: dict[int, str] = {}
    for line in log.splitlines():
        match = _LINE.fullmatch(line)
        if match is None:  # a signal, an exit
            continue
        pid, name, rest, again, more = int(match[1] or 0), match[2], match[3], match[4], match[5]
        if again:
            name, rest = again, begun.pop(pid, "") + more
        if rest.endswith("<unfinished ...>"):
            begun[pid] = rest.removesuffix("<unfinished ...>")
            continue
        end = _END.fullmatch(rest)
        if end is None or end[2] == "?":  # it did not return: an exit
            continue
        yield _call(pid, name, end[1], int(end[2]), _path(end[3] or ""))


def _call(pid: int, name: str, arguments: str, result: int, opened: str) -> Call:
    files, texts, numbers, flags, first = [], [], [], [], -1
    for token in _TOKEN.finditer(arguments):
        text, cut, fd, path, number, words = token.groups()
        if cut:
            raise ValueError(f"{name} wrote more than {_WHOLE} bytes at once")
        if text is not None:
            texts.append(_bytes(text))
        elif path is not None:
            files.append(_path(path))
            first = int(fd) if fd and first < 0 else first
        elif number is not None:
            numbers.append(_number(number))
        else:
            flags.append(words)
    every = "|".join(flags)
    return Call(pid, name, first, tuple(files), tuple(texts), tuple(numbers), every, result, opened)


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


def _path(text: str) -> str:
    return os.fsdecode(_bytes(text))


def _number(text: str) -> int:
    """A number as ``strace`` writes it; with a leading zero it is octal, as modes are."""
    return int(text, 8) if re.fullmatch(r"0[0-7]+", text) else int(text, 0)
