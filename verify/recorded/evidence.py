"""What is at hand to judge a session that a ledger has: its bytes, and the files that are secret.

The bytes are those that were kept in ``.nbs/evidence/``, else the file itself where it was found.
They count if they have the digest that the entry gives.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from hashlib import sha256
from tempfile import TemporaryDirectory
from typing import IO, Any

from tripod.ledger import EVIDENCE, HOOKS, SPOOL
from tripod.ledger.errors import BadArgumentError, NotFoundError
from tripod.ledger.files import open_plain_file, read_plain_file
from tripod.ledger.kinds.base import MARK
from tripod.ledger.kinds.sessions import session_stream
from tripod.projections.disk import Disk
from tripod.verify.isolation.globs import NeverRule
from tripod.verify.isolation.hooks import HookLog
from tripod.verify.isolation.sessions import Never, SessionRole, Start
from tripod.verify.recorded.files import read_copies
from tripod.verify.recorded.project import Project
from tripod.verify.recorded.spool import add_spool, read_spool
from tripod.verify.sessions.exposure import ProtectedText, SessionExposures
from tripod.verify.sessions.items import MAIN

_MOST = 64 * 1024 * 1024  # bytes of a part
_BLOCK = 1024 * 1024


def part_path(root: str, digest: str) -> str:
    """Where a part of a file that was kept lies in the team directory ``root``."""
    return os.path.join(root, EVIDENCE, digest[:2], digest)


def file_digest(file: IO[bytes], size: int) -> str:
    """The SHA-256 in hex of the next ``size`` bytes of a file, or of as many as there are."""
    digest = sha256()
    while block := file.read(min(_BLOCK, size)):
        digest.update(block)
        size -= len(block)
    return digest.hexdigest()


class RecordedSessions:
    """Reads the sessions of the team directory ``root`` again; without one nothing is at hand."""

    def __init__(
        self, root: str | None, never: tuple[Never, ...], roles: tuple[SessionRole, ...]
    ) -> None:
        self.root, self.never, self.roles = root, never, roles

    @cached_property
    def _project(self) -> Project:
        return Project(self.project)

    @property
    def project(self) -> str:
        """The folder of the team's project."""
        return os.path.dirname(os.path.realpath(self.root or ""))

    def full_path(self, path: str, places: Mapping[str, str]) -> str:
        """Where a file of the team really is; ``places`` are its folders that lie elsewhere."""
        return os.path.normpath(Disk(os.path.realpath(self.root or "."), places=places).full(path))

    def again(
        self, body: Mapping[str, Any], parts: Sequence[str], start: Start
    ) -> SessionExposures:
        """What the session of an entry exposed; ``start`` gives what judges it.

        Raises OSError where its bytes are not at hand; ``strerror`` says why.
        """
        self._check_at_hand(body)
        if not parts:
            return _found(str(body["file"]), body, start)
        try:
            with TemporaryDirectory(prefix="tripod-session-") as folder:
                path = os.path.join(folder, "kept.jsonl")
                with open(path, "xb") as joined:
                    joined.writelines(self._part(digest) for digest in parts)
                return _found(path, body, start)
        except OSError as error:
            with suppress(OSError):
                return _found(str(body["file"]), body, start)
            raise error from None

    def _check_at_hand(self, body: Mapping[str, Any]) -> None:
        if self.root is None:
            raise OSError(0, "no files of the team are at hand")
        if body["file"] == MARK:
            raise OSError(0, "it was erased")

    def hooks(self, session: str) -> HookLog | None:
        """What hooks left of a session in the team directory; None where they left nothing."""
        folder = os.path.join(self.root or "", SPOOL, HOOKS, session_stream(session))
        if self.root is None or not os.path.lexists(folder):
            return None
        return read_spool(folder)

    def add_hooks(self, body: Mapping[str, Any], judged: SessionExposures) -> None:
        """Add what hooks saw and saved of the session of an entry to what it exposed."""
        log = self.hooks(str(body["session"]))
        if log is not None:
            add_spool(log, judged, str(body["program"]), str(body.get("agent") or MAIN))

    def _part(self, digest: str) -> bytes:
        data = read_plain_file(part_path(self.root or "", digest), _MOST)
        if sha256(data).hexdigest() != digest:
            raise OSError(0, f"the part {digest[:12]} that was kept is not what it was")
        return data

    def whole(self, body: Mapping[str, Any], parts: Sequence[str]) -> None:
        """Check that the bytes of a session are at hand (OSError: they are not; why)."""
        self._check_at_hand(body)
        if parts:
            digest = sha256()
            with suppress(OSError):
                for part in parts:
                    digest.update(self._part(part))
                if digest.hexdigest() == body["sha256"]:
                    return
        if body["form"] == "database":
            _found(str(body["file"]), body, lambda _: SessionExposures(None, ProtectedText()))
            return
        with open(open_plain_file(str(body["file"]), named=True), "rb") as file:
            if file_digest(file, int(body["bytes"])) != body["sha256"]:
                raise OSError(0, "the file is not what it was")

    def grown(self, body: Mapping[str, Any]) -> int:
        """How many bytes a file of lines has where it was found, beyond those of the entry."""
        if self.root is None or body.get("form") != "lines":
            return 0
        try:
            with open(open_plain_file(str(body["file"]), named=True), "rb") as file:
                return max(0, os.fstat(file.fileno()).st_size - int(body["bytes"]))
        except (OSError, ValueError):
            return 0

    def strays(self, named: set[str]) -> Iterator[str]:
        """Names of files among the kept parts that no entry names."""
        for _, _, files in os.walk(os.path.join(self.root or "", EVIDENCE)):
            yield from (name for name in sorted(files) if name not in named)

    def protect(self, protected: ProtectedText, rule: NeverRule) -> list[str]:
        """Protect the text of the project's files that a rule means; give why some are not."""
        if self.root is None:
            return ["no files of the project are at hand"]
        try:
            self._project.protect(protected, rule)
        except (BadArgumentError, NotFoundError) as error:
            return [str(error)]
        return [gap.what for gap in self._project.gaps]


def _found(path: str, body: Mapping[str, Any], start: Start) -> SessionExposures:
    """What the session of an entry exposed, by a file (OSError: it is not there, or is another)."""
    if not os.path.lexists(path):
        raise OSError(0, "the file is gone")
    size = int(body["bytes"]) if body["form"] == "lines" else None
    found, copies = read_copies(path, start, is_named=True, size=size)
    for copy in copies:
        if copy.sha256 == body["sha256"]:
            return copy.judged
    raise OSError(0, found.problem or "the file is not what it was")
