"""What a check may ask of recorded sessions: the rules about them, and their bytes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from tripod.projections.projection import Source
from tripod.verify.isolation.globs import NeverRule
from tripod.verify.isolation.hooks import HookLog
from tripod.verify.sessions.exposure import ProtectedText, SessionExposures
from tripod.verify.sessions.items import Session

Start = Callable[[Session], SessionExposures]
"""Gives what judges a session."""


class Never(NamedTuple):
    """Files that agents must not have read: ``paths``, and ``but`` the exceptions, are globs.

    It is about the sessions whose role, folder and id fit these patterns, from the entry ``since``
    on. ``shown``: a file that was merely opened does not break it.
    """

    paths: tuple[str, ...]
    but: tuple[str, ...] = ()
    role: str = "*"
    folder: str = "*"
    session: str = "*"
    shown: bool = False
    since: int = 0


class SessionRole(NamedTuple):
    """A role that a team gives to the sessions whose folder and id fit these patterns."""

    role: str
    folder: str = "*"
    session: str = "*"


class SessionsAtHand(Protocol):
    """Reads sessions again that the ledger has (OSError: why their bytes are not at hand)."""

    never: tuple[Never, ...]
    """The rules of the team's policy."""

    roles: tuple[SessionRole, ...]
    """The roles that the team's policy gives to sessions."""

    faults: tuple[str, ...]
    """Policies that are not understood: they may have rules, and roles."""

    @property
    def project(self) -> str:
        """The folder of the team's project."""

    def again(
        self, body: Mapping[str, Any], parts: Sequence[str], start: Start
    ) -> SessionExposures:
        """What the session of an entry exposed; ``parts`` are the digests of what was kept."""

    def hooks(self, session: str) -> HookLog | None:
        """What hooks left of a session in the team directory; None where they left nothing."""

    def add_hooks(self, body: Mapping[str, Any], judges: Sequence[SessionExposures]) -> None:
        """Add what hooks saw and saved of the session of an entry to what each says it exposed."""

    def whole(self, body: Mapping[str, Any], parts: Sequence[str]) -> None:
        """Check that the bytes are at hand, and are those of the entry."""

    def grown(self, body: Mapping[str, Any]) -> int:
        """How many bytes a file of lines has where it was found, beyond those of the entry."""

    def strays(self, named: set[str]) -> Iterator[str]:
        """Paths of files among the kept parts that no entry names, in their folder."""

    def full_path(self, path: str, places: Mapping[str, str]) -> str:
        """Where a file of the team really is; ``places`` are its folders that lie elsewhere."""

    def protect(self, protected: ProtectedText, rule: NeverRule) -> list[str]:
        """Protect the text of the project's files that a rule means; give why some are not."""


def named_parts(source: Source, stop: int = 2**62) -> set[str]:
    """The digests of the parts that the entries before ``stop`` name."""
    sql = "SELECT seq FROM sessions WHERE kept AND seq < ? ORDER BY seq"
    rows = source.db.execute(sql, (stop,)).fetchall()
    return {digest for (seq,) in rows for digest in parts_of(source, source.body(seq))}


def parts_of(source: Source, body: Mapping[str, Any]) -> list[str]:
    """The digests of the parts that a ``session.imported`` entry names, in their order."""
    return source.content(body["parts"]).decode().split() if "parts" in body else []
