"""The run directory of one run (its lock, its files, how it ended), and ``spawn_agent``.

The caller takes the lock *before* the run is recorded, and passes it on to the wrapper; so a later
command can tell three states apart, also after any crash:

- ``exit.json`` exists: the run ended, and the file says how;
- else the lock is held: the program runs, or is about to;
- else it does not run and never will: the run is lost. ``give_up`` makes that final.

Other programs of the same user can write here. So the program's input never lies here, and
``exit.json`` is signed by the wrapper (``key``) and holds the digests of the output. The directory
is private (0700) and no projection; secrets are in the file of the tool servers alone, which goes
with the run.

Source: spec kernel A-1, A-3 to A-5, A-7 to A-9.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from tripod.agents import wrapper
from tripod.agents.isolation import isolated_files, with_isolated_files
from tripod.agents.spec import (
    SpawnResult,
    SpawnSpec,
    spec_argv_digest,
    spec_command_line,
    spec_mcp_config,
)
from tripod.ledger.files import lock_open_file, open_plain_file, read_plain_file
from tripod.projections.workers.answers import (
    ALTERED,
    CANCELLED,
    EXITED,
    FAILED,
    NOT_STARTED,
    SIGNALLED,
    TOO_MUCH,
    TOO_SLOW,
    Answer,
    Output,
    Status,
    read_spec_answer,
)

ENDED, RUNNING, LOST = "ended", "running", "lost"
_FILE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
_LOCK = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_SMALL = 64 * 1024
_SHA256 = re.compile("[0-9a-f]{64}")
MOST = 2**53 - 1
FIRST_PID = 2  # 0, -1 and 1 would mean whole groups, everybody, and the system's first process
_UNSIGNED = "abandoned"  # who gives a run up has no key; of such a run nothing counts
OUTCOMES = ("exited", "signalled", "timeout", "cancelled", "not_started", "abandoned")


class Started(NamedTuple):
    """The program's process and the wrapper's, each with when it began in clock ticks since boot.

    ``argv_sha256`` is the digest of its command line; ``stdout_from`` and ``stderr_from`` are how
    many bytes stood in the files of its output before it.
    """

    argv_sha256: str
    child: int
    child_start: int
    wrapper: int
    wrapper_start: int
    stderr_from: int
    stdout_from: int


class End(NamedTuple):
    """How a run ended.

    ``outcome`` is exited, signalled, timeout, cancelled, not_started or abandoned. ``outputs`` are
    digest in hex and size of what it printed, by name, of each that went to the run's own folder.
    """

    outcome: str
    exit_code: int | None
    signal: int | None
    reason: str
    wall_ms: int
    outputs: dict[str, tuple[str, int]] = {}  # noqa: RUF012 - nobody changes it


class Look(NamedTuple):
    """The state of a run: ``state`` is ended, running or lost; ``end`` where it ended."""

    state: str
    started: Started | None
    end: End | None


class Spool:
    """The folder ``path`` of one run. ``stdout`` and ``stderr`` may be files elsewhere.

    ``key`` is the public half of the key that signs how the run ends, '' where none does.
    """

    def __init__(
        self, path: str, *, stdout: str | None = None, stderr: str | None = None, key: str = ""
    ) -> None:
        self.path = os.path.abspath(path)
        self.key = key
        self.elsewhere = {"stdout": stdout is not None, "stderr": stderr is not None}
        self.stdout = os.path.abspath(stdout) if stdout else f"{self.path}/stdout"
        self.stderr = os.path.abspath(stderr) if stderr else f"{self.path}/stderr"
        self.left = f"{self.path}/left"

    @contextmanager
    def held(self) -> Iterator[int | None]:
        """Hold the lock for the length of a ``with``: its descriptor; None where another has it.

        It is given back by closing alone: a wrapper that inherited it goes on holding it.
        """
        while True:
            os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
            os.makedirs(self.path, mode=0o700, exist_ok=True)
            try:
                fd = os.open(f"{self.path}/lock", _LOCK, 0o600)
            except FileNotFoundError:
                continue  # who is done with this folder removed it just now
            if not lock_open_file(fd):
                os.close(fd)
                yield None
                return
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(fd), os.stat(f"{self.path}/lock")):
                    break
            os.close(fd)  # the folder was removed in between
        try:
            yield fd
        finally:
            os.close(fd)

    def launch(self, spec: SpawnSpec, lock: int, secret: bytes = b"") -> tuple[str, ...]:
        """Have the program run; give the names of parameters that it cannot take.

        Back when it runs, or when it is known that it does not; ``look`` says which. ``lock`` is
        the descriptor that ``held`` gave, ``secret`` the secret half of ``key``.
        """
        mcp = f"{self.path}/{wrapper.SECRETS}"
        argv, unsupported = spec_command_line(spec, mcp)
        env = {name: os.environ[name] for name in spec.env if name in os.environ}
        order: dict[str, Any] = {
            "argv_sha256": spec_argv_digest(argv),
            "cwd": os.path.abspath(spec.cwd or os.getcwd()),
            "env": env | dict(spec.set_env) | dict(spec.secrets),
            "secret": secret.hex(),
            "stderr": self.stderr if self.elsewhere["stderr"] else None,
            "stdout": self.stdout if self.elsewhere["stdout"] else None,
            "timeout": spec.timeout_s,
        }
        if spec.leaves:
            order["left"] = None
        given = b"" if "prompt" in spec.takes else spec.stdin
        try:
            if spec.parameters.mcp_servers is not None:
                with os.fdopen(os.open(mcp, _FILE, 0o600), "wb") as file:
                    file.write(spec_mcp_config(spec.parameters.mcp_servers))
            with isolated_files([given, *spec.sealed.values()]) as (stdin, *sealed):
                words = with_isolated_files(argv, dict(zip(spec.sealed, sealed, strict=True)))
                order |= {"argv": words, "sealed": sealed, "stdin": stdin}
                done = subprocess.run(
                    [sys.executable, "-I", "-S", wrapper.__file__, self.path, str(lock)],
                    input=json.dumps(order).encode(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=(lock, stdin, *sealed),
                    start_new_session=True,
                    cwd="/",
                    check=False,
                )
        except Exception:  # not an interrupt: the wrapper may be at work
            self._forget()
            raise
        if done.returncode:
            self._forget()
            value = {
                "outcome": "not_started",
                "reason": f"the wrapper ended with {done.returncode}",
            }
            if secret:
                value[wrapper.SIGNATURE] = wrapper.sign(secret, value)
            wrapper.write_json(f"{self.path}/exit.json", value)
        return unsupported

    def _forget(self) -> None:
        """Remove the secrets of a run that is over; for who holds the lock."""
        with suppress(OSError):
            os.unlink(f"{self.path}/{wrapper.SECRETS}")

    def look(self) -> Look:
        """See whether the run goes on, and how it ended."""
        end = self._end()
        if end is None:
            with self._shared(wait=False) as free:
                end = self._end()
                state = ENDED if end is not None else LOST if free else RUNNING
                return Look(state, self._started(), end)
        return Look(ENDED, self._started(), end)

    def wait(self) -> Look:
        """Wait until the program ends, without polling; another process may have started it."""
        with self._shared(wait=True):
            return Look(LOST if (end := self._end()) is None else ENDED, self._started(), end)

    @contextmanager
    def _shared(self, *, wait: bool) -> Iterator[bool]:
        """Whether nobody holds the lock (with ``wait``: once nobody does)."""
        try:
            fd = os.open(f"{self.path}/lock", os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            yield True
            return
        try:
            yield lock_open_file(fd, shared=True, wait=wait)
        finally:
            os.close(fd)

    def _started(self) -> Started | None:
        value = _read(f"{self.path}/started.json")
        digest = value.pop("argv_sha256", None)
        if value.keys() != set(Started._fields[1:]) or not all(map(_is_count, value.values())):
            return None
        if min(value["child"], value["wrapper"]) < FIRST_PID or not _SHA256.fullmatch(str(digest)):
            return None
        return Started(argv_sha256=str(digest), **value)

    def _end(self) -> End | None:
        value = _read(f"{self.path}/exit.json")
        outcome = value.get("outcome")
        if outcome not in OUTCOMES:
            return None
        if self.key and outcome != _UNSIGNED and not wrapper.is_signed(self.key, value):
            return None  # another program wrote it: nobody knows yet how the run ended
        code, number, wall_ms = (
            value[name] if _is_count(value.get(name)) else None
            for name in ("exit_code", "signal", "wall_ms")
        )
        outputs = {}
        for name in wrapper.OUTPUTS:
            if isinstance(told := value.get(name), dict) and _is_count(told.get("bytes")):
                digest = told.get("sha256")
                if isinstance(digest, str) and _SHA256.fullmatch(digest):
                    outputs[name] = digest, told["bytes"]
        reason = str(value.get("reason", ""))
        return End(outcome, code, number, reason, wall_ms or 0, outputs)

    def cancel(self) -> bool:
        """Have a running program ended: SIGTERM, five seconds, SIGKILL. Back at once.

        Gives whether its wrapper was told so: it cannot be while it is only about to run.
        """
        look = self.look()
        if look.state != RUNNING or look.started is None:
            return False
        pid, began = look.started.wrapper, look.started.wrapper_start
        if wrapper.start_time(pid) == began:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        return True

    def give_up(self, reason: str) -> Look:
        """Make it final that a lost run is lost: a program that is left over is killed.

        Its secrets are removed. Where it turns out to run, nothing is done, and where it has ended,
        nothing else; the look says which.
        """
        with self.held() as lock:
            if lock is None:
                return Look(RUNNING, self._started(), None)
            self._forget()
            look = Look(ENDED if (end := self._end()) else LOST, self._started(), end)
            if look.state == ENDED:
                return look
            left = look.started
            if left is not None and 0 < left.child_start == wrapper.start_time(left.child):
                with suppress(ProcessLookupError):
                    os.killpg(left.child, signal.SIGKILL)
            wrapper.write_json(f"{self.path}/exit.json", {"outcome": "abandoned", "reason": reason})
            return Look(ENDED, left, self._end())

    def clear(self) -> None:
        """Forget an earlier run in this folder; for who holds the lock."""
        for name in ("exit.json", "started.json", *wrapper.OUTPUTS, wrapper.SECRETS):
            with suppress(FileNotFoundError):
                os.unlink(f"{self.path}/{name}")

    def remove(self) -> None:
        """Remove the folder, once all of it is in the ledger."""
        shutil.rmtree(self.path, ignore_errors=True)


def _read(path: str) -> dict[str, Any]:
    """A small file of the wrapper's; nothing if absent, and where others wrote it."""
    try:
        value = json.loads(read_plain_file(path, _SMALL))
        json.dumps(value, ensure_ascii=False).encode()
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= MOST


# Spawn ------------------------------------------------------------------------------------------


MAX_OUTPUT = wrapper.MAX_OUTPUT  # bytes of output that are read; more is no answer
_NOBODY = "the process that ran it was killed"
_TRY_AGAIN_S = 0.02  # while a cancelled run is only about to start

_ENDS: dict[str, tuple[Status, str]] = {
    "timeout": ("timeout", TOO_SLOW),
    "cancelled": ("killed", CANCELLED),
    "signalled": ("killed", SIGNALLED),
    "not_started": ("not_started", NOT_STARTED),
    "abandoned": ("killed", "{reason}"),
}
"""The status and the problem of a run that did not end by itself."""


async def spawn_agent(spec: SpawnSpec, spool: Spool | None = None) -> SpawnResult:
    """Run one program once; being cancelled ends it (SIGTERM, five seconds, SIGKILL).

    Its files lie in ``spool``, by default in a temporary folder (ValueError: another run is going
    on there). The file with secrets of tool servers is gone once the run is over.
    """
    if spool is None:
        with TemporaryDirectory(prefix="tripod-") as folder:
            return await spawn_agent(spec, Spool(f"{folder}/run"))
    work = asyncio.ensure_future(asyncio.to_thread(_run_blocking, spec, spool))
    try:
        unsupported, look = await asyncio.shield(work)
    except asyncio.CancelledError:
        while not work.done() and not spool.cancel():
            await asyncio.wait([work], timeout=_TRY_AGAIN_S)
        await asyncio.wait([work])
        raise
    return spool_result(
        spool,
        look,
        spec.output,
        wants_structure=spec.parameters.schema is not None,
        unsupported=unsupported,
    )


def _run_blocking(spec: SpawnSpec, spool: Spool) -> tuple[tuple[str, ...], Look]:
    """The blocking core, in a thread of its own."""
    with spool.held() as lock:
        if lock is None:
            raise ValueError(f"{spool.path}: another run is going on there")
        spool.clear()
        secret = os.urandom(32)
        spool.key = wrapper.public_of(secret)
        unsupported = spool.launch(spec, lock, secret)
    look = spool.wait()
    return unsupported, spool.give_up(_NOBODY) if look.state == LOST else look


def spool_result(
    spool: Spool,
    look: Look,
    output: Output,
    *,
    wants_structure: bool = False,
    unsupported: tuple[str, ...] = (),
) -> SpawnResult:
    """How a run ended that is over, from what stands in its spool; a lost one was killed.

    ``output`` is how the program answers, ``unsupported`` are parameters that it cannot take.
    ``wants_structure``: a schema was asked for.
    """
    end = look.end or End("abandoned", None, None, _NOBODY, 0)
    altered: dict[str, tuple[str, int]] = {}
    (stdout, cut), (stderr, _), (left, too_much) = (
        _output_bytes(spool, look, end, name, altered) for name in wrapper.OUTPUTS
    )
    answer = read_spec_answer(output, stdout, wants_structure=wants_structure)
    status, problem = answer.status, answer.problem
    if cut:
        status, problem = "bad_output", TOO_MUCH.format(most=MAX_OUTPUT)
    if altered:
        names = " and ".join(altered)
        status, problem = "bad_output", ALTERED.format(names=names)
        answer = Answer(status, problem)
    if end.outcome in _ENDS:
        status, words = _ENDS[end.outcome]
        problem = words.format(seconds=end.wall_ms / 1000, signal=end.signal, reason=end.reason)
    elif end.exit_code:
        # A coding agent says in its stream why it failed, and nothing on standard error.
        told = f"; {problem}" if problem.startswith(FAILED) else ""
        status, problem = "nonzero", f"{EXITED.format(code=end.exit_code)}{told}"
    return SpawnResult(
        status=status,
        problem=problem,
        exit_code=end.exit_code,
        signal=end.signal,
        wall_ms=end.wall_ms,
        answer=answer,
        stdout=stdout,
        stderr=stderr,
        unsupported_params=unsupported,
        left=b"" if too_much else left,
        altered=altered,
    )


def _output_bytes(
    spool: Spool, look: Look, end: End, name: str, altered: dict[str, tuple[str, int]]
) -> tuple[bytes, bool]:
    """An output's bytes, and whether there are more; those that were changed go to ``altered``."""
    path = getattr(spool, name)
    if spool.elsewhere.get(name):
        first = None if look.started is None else getattr(look.started, f"{name}_from")
        return (b"", False) if first is None else _read_output(path, first)
    told = end.outputs.get(name)
    if told is None:
        # Nobody says what it printed. It counts where the run is lost anyway, and in one that an
        # older version began, which has no key.
        counts = look.started is not None and (not spool.key or end.outcome == "abandoned")
        return _read_output(path, 0) if counts else (b"", False)
    data = _read_output(path, 0, MAX_OUTPUT + 1)[0]
    if sha256(data).hexdigest() != told[0]:
        altered[name] = told
        return b"", False
    return data[:MAX_OUTPUT], len(data) > MAX_OUTPUT


def _read_output(path: str, first: int, most: int = MAX_OUTPUT) -> tuple[bytes, bool]:
    """A file's bytes from ``first`` on, and whether there are more than are read."""
    try:
        with open(open_plain_file(path), "rb") as file:
            file.seek(first)
            data = file.read(most + 1)
    except OSError:
        return b"", False
    return data[:most], len(data) > most
