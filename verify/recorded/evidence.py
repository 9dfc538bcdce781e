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
from tempfile import TemporaryFile
from typing import IO, Any

from tripod.ledger import EVIDENCE, HOOKS, SPOOL
from tripod.ledger.errors import BadArgumentError, NotFoundError
from tripod.ledger.files import open_plain_file, read_plain_file
from tripod.ledger.kinds.base import MARK
from tripod.ledger.kinds.sessions import session_stream
from tripod.projections.disk import Disk
from tripod.verify.anchors.configuration import PROJECT, PYPROJECT
from tripod.verify.check import RULES
from tripod.verify.isolation.globs import NeverRule
from tripod.verify.isolation.hooks import HookLog
from tripod.verify.isolation.phrases import ProtectedText
from tripod.verify.isolation.sessions import CallsSeen, Never, SessionRole, Since, Start
from tripod.verify.recorded.files import read_copies
from tripod.verify.recorded.project import Project
from tripod.verify.recorded.spool import add_spool, read_spool
from tripod.verify.sessions.exposure import SessionExposures
from tripod.verify.sessions.items import MAIN, Cause, Gap, Session

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
    """Reads the sessions of the team directory ``root`` again.

    Without one, only what was kept is at hand, in the folder ``kept`` of an export.
    """

    def __init__(
        self,
        root: str | None,
        never: tuple[Never, ...],
        roles: tuple[SessionRole, ...],
        kept: str | None = None,
        faults: Sequence[tuple[str, str, str]] = (),
    ) -> None:
        self.root, self.never, self.kept = root, never, kept if root is None else root
        self.roles = roles
        self.faults = tuple(
            f"{where} is not understood: {why}"
            for what, where, why in faults
            if where.endswith((RULES, PROJECT)) or (what == "broken" and where.endswith(PYPROJECT))
        )
        self.altered = set[str]()  # paths of kept parts that have another digest
        self._whole = set[str]()  # digests of sessions that were read to their end
        self._there = set[tuple[str, str]]()  # files that were read where they were found
        self._since: dict[tuple[str, str], Since] = {}

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
        judged = self._again(body, parts, start)
        self._whole.add(str(body["sha256"]))
        return judged

    def _again(
        self, body: Mapping[str, Any], parts: Sequence[str], start: Start
    ) -> SessionExposures:
        self._check_at_hand(body, parts)
        if not parts:
            judged = _found(str(body["file"]), body, start)
            self._there.add(_place(body))
            return judged
        try:
            with TemporaryFile() as joined:  # without a name, so that no kill leaves it behind
                joined.writelines(self._part(digest) for digest in parts)
                joined.flush()
                path = f"/dev/fd/{joined.fileno()}"
                judged = _found(path, body, start, joined)
                if body["form"] == "database":
                    _add_unkept(judged, _found(path, body, _everything, joined), body)
                return judged
        except OSError as error:
            with suppress(OSError):
                if self.root is not None:
                    return _found(str(body["file"]), body, start)
            raise error from None

    def _check_at_hand(self, body: Mapping[str, Any], parts: Sequence[str]) -> None:
        if self.root is None and not (self.kept and parts):
            raise OSError(0, "no files of the team are at hand")
        if body["file"] == MARK:
            raise OSError(0, "it was erased")

    def hooks(self, session: str) -> HookLog | None:
        """What hooks left of a session in the team directory; None where they left nothing."""
        folder = os.path.join(self.root or "", SPOOL, HOOKS, session_stream(session))
        if self.root is None or not os.path.lexists(folder):
            return None
        return read_spool(folder)

    def add_hooks(self, body: Mapping[str, Any], log: HookLog, seen: CallsSeen) -> None:
        """Add what hooks left of the session of an entry to what each judge says it exposed."""
        for judged in seen.judges:
            add_spool(log, judged, seen, str(body["program"]), str(body.get("agent") or MAIN))

    def _part(self, digest: str) -> bytes:
        data = read_plain_file(part_path(self.kept or "", digest), _MOST)
        if sha256(data).hexdigest() != digest:
            self.altered.add(part_path("", digest))
            raise OSError(0, f"the part {digest[:12]} that was kept is not what it was")
        return data

    def whole(self, body: Mapping[str, Any], parts: Sequence[str]) -> None:
        """Check that the bytes of a session are at hand (OSError: they are not; why)."""
        self._check_at_hand(body, parts)
        if body["sha256"] in self._whole:
            return
        if parts:
            digest = sha256()
            try:
                for part in parts:
                    digest.update(self._part(part))
                if digest.hexdigest() == body["sha256"]:
                    return
            except OSError:
                if self.root is None:
                    raise
        if self.root is None:
            raise OSError(0, "the parts that were kept are of other bytes")
        if body["form"] == "database":
            _found(str(body["file"]), body, _everything)
            return
        with open(open_plain_file(str(body["file"]), named=True), "rb") as file:
            if file_digest(file, int(body["bytes"])) != body["sha256"]:
                raise OSError(0, "the file is not what it was")
        self._there.add(_place(body))

    def since(self, body: Mapping[str, Any]) -> Since:
        """What became of a file of lines where it was found."""
        if self.root is None or body.get("form") != "lines":
            return ""
        place = _place(body)
        if place not in self._since:
            is_read = place in self._there
            self._since[place] = _since(*place, int(body["bytes"]), is_read=is_read)
        return self._since[place]

    def strays(self, named: set[str]) -> Iterator[str]:
        """Paths of files among the kept parts that no entry names, in their folder."""
        kept = {part_path("", digest) for digest in named}
        if self.kept is not None:
            for folder, inner, names in os.walk(os.path.join(self.kept, EVIDENCE)):
                inner.sort()
                paths = (os.path.relpath(os.path.join(folder, one), self.kept) for one in names)
                yield from sorted(path for path in paths if path not in kept)

    def protect(self, protected: ProtectedText, rule: NeverRule) -> list[str]:
        """Protect the text of the project's files that a rule means; give why some are not."""
        if self.root is None:
            return ["no files of the project are at hand"]
        try:
            self._project.protect(protected, rule)
        except (BadArgumentError, NotFoundError) as error:
            return [str(error)]
        return [gap.what for gap in self._project.gaps]


def _place(body: Mapping[str, Any]) -> tuple[str, str]:
    """Where the file of an entry was found, and its digest then."""
    return str(body["file"]), str(body["sha256"])


def _since(path: str, digest: str, size: int, *, is_read: bool) -> Since:
    try:
        with open(open_plain_file(path, named=True), "rb") as file:
            there = os.fstat(file.fileno()).st_size
            if there < size or (not is_read and file_digest(file, size) != digest):
                return "changed"
            return "went on" if there > size else ""
    except (OSError, ValueError):
        return ""


def _everything(_: Session) -> SessionExposures:
    return SessionExposures(None, ProtectedText())


_OF_DATABASE: tuple[Cause, ...] = ("damaged", "missing", "order", "unknown", "witness")


def _add_unkept(judged: SessionExposures, kept: SessionExposures, body: Mapping[str, Any]) -> None:
    """Add the gaps that a database had, and that the rows which were kept of it do not show."""
    causes = kept.gaps.causes()
    for cause in _OF_DATABASE:
        number = body["coverage"].get(cause, 0) - causes[cause]
        if number > 0:
            what = f"{number} gaps of the database, which the rows that were kept do not show"
            judged.add(Gap(cause, 0, what))


def _found(
    path: str, body: Mapping[str, Any], start: Start, file: IO[bytes] | None = None
) -> SessionExposures:
    """What the session of an entry exposed, by a file (OSError: it is not there, or is another).

    ``file`` is the open file that the path leads to: on some systems both have one position.
    """
    if file is not None:
        file.seek(0)
    if not os.path.lexists(path):
        raise OSError(0, "the file is gone")
    size = int(body["bytes"]) if body["form"] == "lines" else None
    found, copies = read_copies(path, start, is_named=True, size=size)
    for copy in copies:
        if copy.sha256 == body["sha256"]:
            return copy.judged
    raise OSError(0, found.problem or "the file is not what it was")
