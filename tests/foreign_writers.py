"""Programs that write a team's files and know nothing of us, as real ones do it.

Each write has a mark that occurs nowhere else, and is noted in a journal once it is done: there a
test reads what has to be found afterwards. Writers of whole files keep out of each other's way by a
lock of their own, and note the marks that they wrote over themselves: those are nobody's loss.
"""

import ctypes
import fcntl
import os
import random
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from story import Clock, Original

from tripod.projections.chat.format import format_line

__all__ = ["KINDS", "Writer", "free"]

SECOND = 1_600_000_000
_MARK = rb"<[a-z0-9-]+>"
_EXCHANGE = 2


class Writer:
    """One foreign program, or several kinds of them; ``name`` is in all its marks."""

    def __init__(self, root: Path, journal: Path, name: str) -> None:
        self.root = root
        self.journal = journal
        self.name = name
        self.count = 0
        self._held: tuple[int, bytes, str] | None = None
        self._log = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def _mark(self) -> str:
        self.count += 1
        return f"<{self.name}-{self.count}>"

    def _note(self, what: str, mark: str) -> None:
        os.write(self._log, f"{what} {mark}\n".encode())

    # Those that add at the end, without a lock -------------------------------------------------

    def open_to_append(self, path: str) -> None:
        """Open a chat or the log; what is added is written by ``append_to_it``."""
        mark = self._mark()
        if path.endswith(".chat"):
            data = format_line("eve", SECOND, mark) + b"\n"
        else:
            data = (
                f"\n---\n\n### D-{SECOND + self.count} {mark}\n- **Chat ref:** —\n"
                "- **Participants:** eve\n- **Artefacts:** —\n- **Risk tags:** none\n"
                "- **Status:** decided\n- **Rationale:** because\n"
            ).encode()
        fd = os.open(self.root / path, os.O_WRONLY | os.O_APPEND)
        self._held = (fd, data, mark)

    def append_to_it(self) -> None:
        """One write, as ``echo ... >> file`` does it."""
        assert self._held is not None
        fd, data, mark = self._held
        os.write(fd, data)
        os.close(fd)
        self._held = None
        self._note("added", mark)

    def append(self, path: str) -> None:
        self.open_to_append(path)
        self.append_to_it()

    # Those that write the whole file -----------------------------------------------------------

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """No other editor is at it (the projector does not know this lock)."""
        with (self.journal.with_suffix(".lock")).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _edited(self, data: bytes, mark: str) -> bytes:
        """The first message says something else."""
        header, _, body = data.partition(b"\n---\n")
        _, _, rest = body.partition(b"\n")
        first = format_line("eve", SECOND, mark)
        return header + b"\n---\n" + first + b" " + mark.encode() + b"\n" + rest

    def _over(self, data: bytes) -> None:
        for mark in re.findall(_MARK, data):
            self._note("over", mark.decode())

    def edit(self, path: str) -> None:
        """By temporary name and rename; an exchange, so that it is known what was written over."""
        full = self.root / path
        with self._alone():
            mark = self._mark()
            temporary = full.with_name(f"{self.name}.tmp")
            temporary.write_bytes(self._edited(full.read_bytes(), mark))
            temporary.chmod(0o600)
            libc = ctypes.CDLL(None, use_errno=True)
            names = (os.fsencode(temporary), -100, os.fsencode(full), _EXCHANGE)
            assert libc.renameat2(-100, *names) == 0
            self._over(temporary.read_bytes())
            self._note("edited", mark)
            temporary.unlink()

    def rewrite(self, path: str) -> None:
        """In place: open, read, cut to nothing, write."""
        with self._alone():
            fd = os.open(self.root / path, os.O_RDWR)
            data = os.read(fd, 1 << 20)
            mark = self._mark()
            self._over(data)
            os.lseek(fd, 0, os.SEEK_SET)
            os.truncate(fd, 0)
            os.write(fd, self._edited(data, mark))
            os.close(fd)
            self._note("edited", mark)

    def say(self, path: str) -> None:
        """As the original's chat tool: the whole file anew, under its own lock."""
        with (self.root / f"{path}.lock").open("w") as lock:
            fcntl.lockf(lock, fcntl.LOCK_EX)
            mark = self._mark()
            channel = path.removeprefix("chat/").removesuffix(".chat")
            Original(self.root, Clock()).say(channel, "bob", mark)
            self._note("added", mark)


KINDS = ("append", "log", "edit", "rewrite", "say")


def free(writer: Writer, kind: str, tokens: int, seed: int) -> None:
    """One write for each byte that is read from ``tokens``, at any moment after it, to the end."""
    chance = random.Random(seed)  # noqa: S311 - it is to be the same again
    while os.read(tokens, 1):
        time.sleep(chance.random() * 0.004)
        if kind == "append":
            writer.append("chat/live.chat")
        elif kind == "log":
            writer.append("scribe/log.md")
        elif kind == "say":
            writer.say("chat/old.chat")
        elif kind == "edit":
            writer.edit("chat/edited.chat")
        else:
            writer.rewrite("chat/edited.chat")
