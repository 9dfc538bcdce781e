"""A second process beside this one, for work that another processor can do meanwhile.

It is a fork: it begins with all that this process holds, and shares what neither writes to.
"""

from __future__ import annotations

import fcntl
import gc
import mmap
import os
import pickle
import signal
import threading
import warnings
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Generic, TypeVar

from tripod.ledger.progress import silence_progress

_PIPE = 1024 * 1024  # bytes: what Linux gives to everybody
_BUFFER = 64 * 1024  # bytes: each write wakes the other process

ALONE = 1
"""So many threads does a process have that runs no other; a test's may have some beside its own."""

T = TypeVar("T")
Q = TypeVar("Q")
A = TypeVar("A")


def child_cores() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def start_child(work: Callable[[], T]) -> Callable[[], T | None]:
    """Begin ``work`` in a child; the function given back waits for its value (None: it failed).

    None is begun where other threads run: a lock that one of them holds at this moment, as SQLite's
    own, is held in the child for ever.
    """

    def serve(_: IO[bytes], out: IO[bytes]) -> None:
        out.write(pickle.dumps(work()))

    child = _fork(serve) if threading.active_count() <= ALONE else None
    if child is None:
        return lambda: None
    number, to, source = child
    to.close()

    def wait() -> T | None:
        with source:
            data = source.read()
        _, status = os.waitpid(number, 0)
        # What is read here was written by our own child, from our own memory.
        return pickle.loads(data) if status == 0 else None  # noqa: S301

    return wait


class Helper(Generic[Q, A]):
    """A child that answers questions in their order, while its parent goes on.

    Without a child (none can be started, it died, its answer is long) ``answer`` is asked here.
    """

    _LONGEST = 16_384
    """Bytes of an answer; all that wait must have a place in the pipe, or both would wait."""

    _FEW = 8
    """Questions that keep the child at work."""

    def __init__(self, answer: Callable[[Q], A]) -> None:
        self._answer = answer
        self._asked: deque[tuple[Q, list[A]]] = deque()
        self._sent = self._flushed = 0
        self._done = memoryview(mmap.mmap(-1, 8)).cast("Q")  # that the child counts up
        self._child = _fork(self._serve)
        room = 0 if self._child is None else _room_in(self._child[2])
        self.ahead = room // self._LONGEST

    def _serve(self, source: IO[bytes], sink: IO[bytes]) -> None:
        gc.set_threshold(50_000)  # what is asked and answered has no cycles
        with suppress(EOFError):  # the parent has no more questions, or is gone
            while True:
                data = pickle.dumps(self._answer(pickle.load(source)))  # noqa: S301  our own
                sink.write(data if len(data) <= self._LONGEST else pickle.dumps(None))
                sink.flush()
                self._done[0] += 1

    @property
    def is_behind(self) -> bool:
        """Whether more questions wait for an answer than keep the child at work."""
        return self._sent - self._done[0] > self._FEW

    def ask(self, question: Q) -> Callable[[], A]:
        """Ask; the function given back waits for the answer."""
        if self._child is not None and len(self._asked) >= max(1, self.ahead):
            self._receive()
        if self._child is None:  # since then, it may be
            found = self._answer(question)
            return lambda: found
        answers: list[A] = []
        self._asked.append((question, answers))
        self._sent += 1
        try:
            pickle.dump(question, self._child[1])
        except OSError:
            self.close()

        def wait() -> A:
            while not answers:
                self._receive()
            return answers[0]

        return wait

    def _receive(self) -> None:
        """Take the answer to the oldest question."""
        question, answers = self._asked.popleft()
        answer = None
        try:
            if self._child is not None:
                if self._sent - len(self._asked) > self._flushed:  # it may wait in our buffer
                    self._child[1].flush()
                    self._flushed = self._sent
                answer = pickle.load(self._child[2])  # noqa: S301  from our own child
        except (OSError, EOFError, pickle.UnpicklingError):
            self.close()
        answers.append(self._answer(question) if answer is None else answer)

    def close(self) -> None:
        """End the child; what it has not answered is answered here."""
        child, self._child = self._child, None
        if child is not None:
            number, to, source = child
            os.kill(number, signal.SIGKILL)  # one that somebody stopped would not end, and we wait
            os.waitpid(number, 0)
            source.close()
            with suppress(OSError):
                to.close()


def _room_in(pipe: IO[bytes]) -> int:
    """Bytes that a pipe holds, at least."""
    try:
        return fcntl.fcntl(pipe.fileno(), fcntl.F_GETPIPE_SZ)
    except (OSError, AttributeError):
        return 16_384  # macOS


def _fork(serve: Callable[[IO[bytes], IO[bytes]], None]) -> tuple[int, IO[bytes], IO[bytes]] | None:
    """A child that does one thing, by what it reads and writes; and the other ends of both.

    None where none can be started.
    """
    pipes: list[int] = []
    try:
        pipes += os.pipe()
        pipes += os.pipe()
        for pipe in pipes[1::2]:
            with suppress(OSError, AttributeError):  # Linux alone has it
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE)
        with warnings.catch_warnings():
            # Python warns of threads that it does not know. The child takes no lock that they may
            # hold: it opens files of its own, computes, writes to the pipe and ends.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
    except OSError:
        for one in pipes:
            os.close(one)
        return None
    source, to, back, sink = pipes
    if child == 0:
        # The child ends here in any case: it must not run what its parent would do at its end.
        status = 1
        try:
            silence_progress()
            gc.freeze()  # the collector would write to every page that is the parent's as well
            os.close(to)
            os.close(back)
            with os.fdopen(source, "rb", _BUFFER) as questions, os.fdopen(sink, "wb") as answers:
                serve(questions, answers)
            status = 0
        finally:
            os._exit(status)
    os.close(source)
    os.close(sink)
    return child, os.fdopen(to, "wb", _BUFFER), os.fdopen(back, "rb")
