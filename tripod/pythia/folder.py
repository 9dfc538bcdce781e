"""The folder of a review run: an empty one to work in, and a private home; outside the project.

Each attempt has one folder, in the system's temporary folder, private to the user who runs it. What
the program leaves in its own folder there (transcripts) becomes evidence before the folder goes.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from typing import ClassVar

from tripod.errors import RefusedError
from tripod.ledger.files import open_plain
from tripod.ledger.kinds.team import evidence_kept
from tripod.projections import WORKER_LOG, File
from tripod.team.act import Act
from tripod.team.team import Team

CONFIG = "config"
"""The folder, within the private home, where the reviewer's program keeps its own files."""

MAX_TRANSCRIPT = 16 * 1024 * 1024  # bytes; of a longer one the end is left out
MAX_TRANSCRIPTS = 20


class Folder:
    """The folder at ``path``; ``work`` and ``home`` are in it."""

    ANY: ClassVar[str] = "/\0any\0"
    """Stands for the path where an order is made before the attempt has its number."""

    def __init__(self, path: str) -> None:
        """Nothing is made yet."""
        self.at = path

    @staticmethod
    def _base() -> str:
        return f"{tempfile.gettempdir()}/tripod-{os.getuid()}"

    @staticmethod
    def _team(team: Team) -> str:
        return sha256(os.path.realpath(team.root).encode()).hexdigest()[:16]

    @classmethod
    def path(cls, team: Team, event: int, attempt: int) -> str:
        """Where the folder of an attempt is, also for a command that continues it."""
        return f"{cls._base()}/{cls._team(team)}-{event}-{attempt}"

    @classmethod
    def sweep(cls, team: Team) -> None:
        """Remove the folders of attempts that are over."""
        front = f"{cls._team(team)}-"
        try:
            names = os.listdir(cls._base())
        except FileNotFoundError:
            return
        for name in names:
            event, _, attempt = name.removeprefix(front).partition("-")
            if not name.startswith(front) or not attempt.isdecimal():
                continue
            sql = "SELECT state FROM agents WHERE role = 'pythia' AND subject = ? AND attempt = ?"
            row = team.store.db.execute(sql, (event, int(attempt))).fetchone()
            if row is not None and row[0] in ("ended", "abandoned"):
                shutil.rmtree(f"{cls._base()}/{name}", ignore_errors=True)

    def make(self, *, config: bool, lends: Iterable[str]) -> None:
        """Make it, empty but for what is lent to the program.

        Raises:
            RefusedError: something of others stands in its place.
        """
        base = os.path.dirname(self.at)
        os.makedirs(base, mode=0o700, exist_ok=True)
        found = os.lstat(base)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise RefusedError(
                f"{base} is not a private folder of yours: remove it, or set TMPDIR elsewhere"
            )
        shutil.rmtree(self.at, ignore_errors=True)
        for path in (self.at, f"{self.at}/work", f"{self.at}/home"):
            os.mkdir(path, 0o700)
        if config:
            os.mkdir(f"{self.at}/home/{CONFIG}", 0o700)
        for path in lends:
            full = os.path.expanduser(path)
            if os.path.isfile(full):
                self._lend(full)

    def _lend(self, full: str) -> None:
        to = f"{self.at}/home/{CONFIG}/{os.path.basename(full)}"
        with open(open_plain(full, named=True), "rb") as file:
            fd = os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "wb") as copy:
                shutil.copyfileobj(file, copy)

    def transcripts(self, within: str) -> Iterator[tuple[str, bytes, bool]]:
        """Files that the program left in its own folder: path, bytes, whether there is more.

        In the order of their paths; of each as many bytes as are kept.
        """
        top = os.path.join(os.path.realpath(self.at), "home", CONFIG, within).rstrip("/")
        if os.path.realpath(top) != top:
            return  # the program made it a link: the target is not its own
        for folder, folders, names in os.walk(top):
            folders.sort()
            for name in sorted(names):
                path = f"{folder}/{name}"
                if os.path.isfile(path) and not os.path.islink(path):
                    with open(open_plain(path), "rb") as file:
                        yield path, file.read(MAX_TRANSCRIPT), bool(file.read(1))


def transcripts_in(archive: bytes) -> Iterator[tuple[str, bytes, bool]]:
    """Files of a transcript archive (tar) from the namespace; a truncated one ends early."""
    import io  # other commands of Pythia's read no archive
    import tarfile

    with (
        suppress(tarfile.TarError, EOFError, ValueError),
        tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tar,
    ):
        files = sorted((one for one in tar if one.isreg()), key=lambda one: one.name)
        for one in files:
            file = tar.extractfile(one)
            if file is not None:
                yield one.name, file.read(MAX_TRANSCRIPT), one.size > MAX_TRANSCRIPT


def keep_transcripts(act: Act, files: Iterable[tuple[str, bytes, bool]], spawn: str) -> None:
    """Store what the program wrote of its own session, beside the logs of workers."""
    for number, (path, data, is_longer) in enumerate(files, 1):
        if number > MAX_TRANSCRIPTS:
            act.warn(f"of the reviewer's transcripts only the first {MAX_TRANSCRIPTS} are stored")
            return
        if is_longer:
            act.warn(f"{path} is longer than {MAX_TRANSCRIPT} bytes: its beginning is kept")
        kept = f"{WORKER_LOG.folder}/pythia-{spawn[:12]}-{number}.log"
        written = act.disk.write(kept, File(data, WORKER_LOG.mode))
        assert written is not None
        act.append([evidence_kept(kept, data, written.mtime_us, None)])
        act.writer.account(kept, sha256(data).hexdigest())
