"""Runs one program once and writes down how it ended, whatever becomes of who ordered it.

A program of its own, run by path, of the standard library alone (spec: kernel A-4)::

    python -I -S wrapper.py SPOOL LOCK

``LOCK`` is the number of an inherited descriptor: an flock on ``SPOOL/lock``, held from before the
run was recorded until this process ends. So "the lock is free and there is no ``exit.json``" means
that nobody runs the program. The order comes as JSON on standard input: ``argv``, ``cwd``,
``env``, ``timeout``, the descriptor ``stdin`` and further ones that the program inherits
(``sealed``: files in memory that nobody can change), and where its output goes: ``stdout``,
``stderr`` and ``left`` (descriptor 9), each a path or null; ``left`` may be missing. No secret
touches the disk.

Output without a path goes to a file without a name, which no other program can open by a path. When
the program is over the file is copied to the run's folder, and its digest stands in ``exit.json``.
That is signed with ``secret`` (a one-time signature, below), whose public half was recorded before:
so a copy that another program changed, and an ``exit.json`` that it wrote, are known.

What is done in which order, and what it means if we die in between:

1. the order is read whole; this process leaves its parent, which waits until step 3 or the end.
   Dead here: nothing runs, and nothing will.
2. ``exit.json`` stands there already: the run was given up, nothing is run.
3. the program's process is made, in a group of its own; it waits. ``started.json`` is written.
   Dead here: the process that waits sees it and ends; the program never ran.
4. the program is let go. Dead here: it runs on alone, and ``started.json`` names the process.
5. it ends; or the time is over, or we are told to end (SIGTERM): SIGTERM to its group, five
   seconds, SIGKILL (spec: kernel A-7). What is left of its group is killed in any case; where we
   ended it, so is what left the group: a process that loses its parent becomes our child.
6. ``exit.json`` is written; where the disk is full, once it is not, but for a day at most, and
   unless we are told to end. Dead before: as in 4, with nobody left to end.
"""

from __future__ import annotations

import errno
import fcntl
import hmac
import json
import os
import select
import signal
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from typing import Any

GRACE_S = 5.0
RETRY_S = 1.0  # between two tries to write on a full disk
FULL_S = 24 * 60 * 60
SECRETS = "mcp.json"  # the file of the tool servers, the only one that may hold any
MAX_OUTPUT = 64 * 1024 * 1024  # bytes of an output that are kept, and one more to know of the rest
OUTPUTS = ("stdout", "stderr", "left")
LEFT = 9  # the descriptor of what it leaves beside its output
SIGNATURE = "signature"
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER: prctl(2)
_ABOVE = 20  # descriptors of ours that are not to be in the way of the program's
_PART = 1024 * 1024
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
_FULL = (errno.ENOSPC, errno.EDQUOT)
_STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def _write_file(path: str, parts: Iterable[bytes]) -> None:
    """Put a file in its place, whole or not at all; its name is not waited for."""
    temporary = f"{path}.tmp"
    with suppress(FileNotFoundError):
        os.unlink(temporary)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(temporary, flags, 0o600), "wb") as file:
        file.writelines(parts)
        file.flush()
        os.fsync(file.fileno())
    os.rename(temporary, path)


def write_json(path: str, value: dict[str, Any]) -> None:
    """Put a small file in its place, and wait until the disk has it and what was put before."""
    _write_file(path, [json.dumps(value, sort_keys=True).encode()])
    folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def start_time(pid: int) -> int:
    """When a process began, in clock ticks since boot; 0 where the system does not tell."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name in brackets may hold anything: the fields are counted after the last one.
            return int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return 0


# A one-time signature (Lamport 1979) ------------------------------------------------------------
#
# The wrapper has the standard library alone, which knows no signatures. Of 256 pairs of secret
# values, one pair a bit of the digest, the one that the bit chooses is shown; the hashes of all are
# the public half. A second text under the same key would show more of them: a key signs one.


def _pair(secret: bytes, at: int) -> tuple[bytes, bytes]:
    zero, one = (hmac.digest(secret, b"%d %d" % (at, bit), "sha256") for bit in (0, 1))
    return zero, one


def _bits(value: dict[str, Any]) -> list[int]:
    text = json.dumps(
        {name: one for name, one in value.items() if name != SIGNATURE}, sort_keys=True
    )
    number = int.from_bytes(sha256(text.encode()).digest(), "big")
    return [number >> at & 1 for at in range(256)]


def _hashed(data: bytes) -> bytes:
    return sha256(data).digest()


def public_of(secret: bytes) -> str:
    """The public half of a key, in hex."""
    return sha256(
        b"".join(_hashed(one) for at in range(256) for one in _pair(secret, at))
    ).hexdigest()


def sign(secret: bytes, value: dict[str, Any]) -> str:
    """The signature of a record; ``is_signed`` checks it. No key may sign two records."""
    shown = []
    for at, bit in enumerate(_bits(value)):
        pair = _pair(secret, at)
        shown += [pair[bit], _hashed(pair[1 - bit])]
    return b"".join(shown).hex()


def is_signed(public: str, value: dict[str, Any]) -> bool:
    """Whether a record bears the signature of the key of this public half.

    >>> value = {"outcome": "exited"}
    >>> value["signature"] = sign(b"k", value)
    >>> is_signed(public_of(b"k"), value), is_signed(public_of(b"k"), value | {"outcome": "x"})
    (True, False)
    """
    try:
        data = bytes.fromhex(value.get(SIGNATURE, ""))
    except (TypeError, ValueError):
        return False
    hashes = []
    for at, bit in enumerate(_bits(value)):
        chosen, other = data[64 * at : 64 * at + 32], data[64 * at + 32 : 64 * at + 64]
        hashes += [other, _hashed(chosen)] if bit else [_hashed(chosen), other]
    return len(data) == 256 * 64 and sha256(b"".join(hashes)).hexdigest() == public


class WrappedProgram:
    """One program: its process, and what told us to end it."""

    def __init__(self, spool: str, order: dict[str, Any]) -> None:
        self.spool = spool
        self.order = order
        self.began = time.monotonic()
        self.told = False
        self.unnamed: dict[str, int] = {}
        self.wake, write = os.pipe()
        os.set_blocking(write, False)
        os.set_blocking(self.wake, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in _STOPS:
            signal.signal(number, lambda *_: setattr(self, "told", True))

    def end(self, outcome: str, **more: Any) -> None:
        """Say how it ended: step 6. Secrets are gone before."""
        with suppress(OSError):
            os.unlink(f"{self.spool}/{SECRETS}")
        wall_ms = round((time.monotonic() - self.began) * 1000)
        value = {"outcome": outcome, "wall_ms": wall_ms, **more}
        for name, fd in self.unnamed.items():
            hashed, size = sha256(), 0
            for part in _parts(fd, MAX_OUTPUT + 1):
                hashed.update(part)
                size += len(part)
            value[name] = {"bytes": size, "sha256": hashed.hexdigest()}
        if self.order.get("secret"):
            value[SIGNATURE] = sign(bytes.fromhex(self.order["secret"]), value)
        until = time.monotonic() + FULL_S
        while True:
            try:
                for name, fd in self.unnamed.items():
                    _write_file(f"{self.spool}/{name}", _parts(fd, value[name]["bytes"]))
                write_json(f"{self.spool}/exit.json", value)
            except OSError as error:  # where the disk is full, it is tried again
                if error.errno not in _FULL or self.told or time.monotonic() > until:
                    raise
            else:
                return
            if select.select([self.wake], [], [], RETRY_S)[0]:
                os.read(self.wake, 512)

    def start(self) -> int | None:
        """Steps 3 and 4; None where the program could not be started."""
        go, let_go = os.pipe()
        failed, fail = os.pipe()
        try:
            files = self._files()
        except OSError as error:
            self.end("not_started", reason=f"{error.filename}: {error.strerror}")
            return None
        # Become the parent of what the program leaves behind, in whichever session that is.
        # Without it (another system, no ctypes) such processes are the system's, and go on.
        with suppress(ImportError, OSError, AttributeError):
            import ctypes

            ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
        child = os.fork()
        if child == 0:
            os.close(let_go)
            self._become(go, fail, files)
        os.close(fail)
        os.close(go)
        with suppress(OSError):  # the child does it too; the first one wins
            os.setpgid(child, child)
        started = {
            "argv_sha256": self.order["argv_sha256"],
            "child": child,
            "child_start": start_time(child),
            "stderr_from": os.fstat(files[2]).st_size,
            "stdout_from": os.fstat(files[1]).st_size,
            "wrapper": os.getpid(),
            "wrapper_start": start_time(os.getpid()),
        }
        write_json(f"{self.spool}/started.json", started)
        os.write(let_go, b"x")
        reason = os.read(failed, 4096)
        os.close(failed)
        if reason:
            os.waitpid(child, 0)
            self.end("not_started", reason=reason.decode("utf-8", "replace"))
            return None
        return child

    def _files(self) -> dict[int, int]:
        """The program's descriptors, each with ours: its input, outputs, and what it leaves."""
        order, files = self.order, {0: self.order["stdin"]}
        for number, name in zip((1, 2, LEFT), OUTPUTS, strict=True):
            if name not in order:
                continue
            path = order[name]
            if path is None:
                self.unnamed[name] = files[number] = _unnamed(self.spool)
                continue
            files[number] = fd = os.open(path, _APPEND | os.O_NONBLOCK, 0o644)
            if not stat.S_ISREG(os.fstat(fd).st_mode):  # a program would wait at a pipe for ever
                raise OSError(errno.EINVAL, "it is no regular file", path)
            os.set_blocking(fd, True)
        return files

    def _become(self, go: int, fail: int, files: dict[int, int]) -> None:
        """The child: wait to be let go, then be the program."""
        what = ""
        try:
            signal.set_wakeup_fd(-1)
            for caught in (signal.SIGCHLD, *_STOPS, signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(caught, signal.SIG_DFL)
            with suppress(OSError):
                os.setpgid(0, 0)
            if not os.read(go, 1):
                os._exit(0)  # who should let us go is gone
            fail = fcntl.fcntl(fail, fcntl.F_DUPFD_CLOEXEC, _ABOVE)
            for number, fd in files.items():
                os.dup2(fd, number)
            for fd in self.order["sealed"]:
                os.set_inheritable(fd, True)  # noqa: FBT003 - it takes no keyword
            what = self.order["cwd"]
            os.chdir(what)
            argv = self.order["argv"]
            what = argv[0]
            os.execvpe(what, argv, self.order["env"])  # noqa: S606 - no shell, on purpose
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            os.write(fail, f"{what}: {reason}".encode("utf-8", "replace")[:4096])
        finally:
            os._exit(127)

    def wait(self, child: int) -> None:
        """Steps 5 and 6."""
        timeout = self.order["timeout"]
        until = None if timeout is None else self.began + timeout
        outcome = ""
        if not self._wait_until(child, until):
            outcome = "cancelled" if self.told else "timeout"
            _signal_group(child, signal.SIGTERM)
            self._wait_until(child, time.monotonic() + GRACE_S, heed=False)
        # As long as nobody asks for the child's status, the group's number is nobody else's.
        _signal_group(child, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if outcome:
            self._end_orphans()
        if code < 0:
            self.end(outcome or "signalled", signal=-code)
        else:
            self.end(outcome or "exited", exit_code=code)

    def _end_orphans(self) -> None:
        """Kill what left the program's group, level by level: an orphan's children are next."""
        until = time.monotonic() + GRACE_S
        while time.monotonic() < until:
            with suppress(OSError):  # a system without /proc names no process
                for name in filter(str.isdecimal, os.listdir("/proc")):
                    with suppress(OSError, IndexError, ValueError):
                        with open(f"/proc/{name}/stat", "rb") as file:
                            parent = int(file.read().rpartition(b")")[2].split()[1])
                        if parent == os.getpid():
                            os.kill(int(name), signal.SIGKILL)
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                return  # none is left
            select.select([self.wake], [], [], RETRY_S / 10)
            with suppress(BlockingIOError):
                os.read(self.wake, 512)

    def _wait_until(self, child: int, until: float | None, *, heed: bool = True) -> bool:
        """Whether the child ended before the time is over or (``heed``) we are told to end."""
        ended = os.WEXITED | os.WNOHANG | os.WNOWAIT
        while True:
            while (found := os.waitid(os.P_ALL, 0, ended)) is not None:
                if found.si_pid == child:
                    return True
                os.waitpid(found.si_pid, 0)  # an orphan that became ours: nobody else asks for it
            left = None if until is None else until - time.monotonic()
            if (heed and self.told) or (left is not None and left <= 0):
                return False
            if select.select([self.wake], [], [], left)[0]:
                os.read(self.wake, 512)


def _unnamed(folder: str) -> int:
    """A file that has no name, written at its end; in memory where the disk knows no such file."""
    flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
    try:
        fd = os.open(folder, flags | os.O_TMPFILE, 0o600)
    except OSError as error:
        if error.errno in _FULL:
            raise
        fd = os.memfd_create("output", os.MFD_CLOEXEC)
        fcntl.fcntl(fd, fcntl.F_SETFL, os.O_APPEND)
    above = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _ABOVE)
    os.close(fd)
    return above


def _parts(fd: int, most: int) -> Iterator[bytes]:
    """The first bytes of a file of ours."""
    at = 0
    while part := os.pread(fd, min(_PART, most - at), at):
        yield part
        at += len(part)


def _signal_group(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def main(spool: str, lock: int) -> None:
    """Run the program that standard input describes; ``spool`` is the run directory."""
    os.set_inheritable(lock, False)  # noqa: FBT003 - it takes no keyword
    try:
        order = json.loads(sys.stdin.buffer.read())
    except ValueError:
        sys.exit(1)  # who ordered it died while it spoke
    for fd in (order["stdin"], *order["sealed"]):
        os.set_inheritable(fd, False)  # noqa: FBT003
    ready, done = os.pipe()
    if os.fork():
        os.close(done)
        os.close(lock)
        os.read(ready, 1)
        os._exit(0)
    os.close(ready)
    run = WrappedProgram(spool, order)
    if not os.path.exists(f"{spool}/exit.json"):
        child = run.start()
        os.close(done)
        if child is not None:
            run.wait(child)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
