"""What a check may ask of recorded sessions: the rules about them, and their bytes. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from tripod.verify.isolation.globs import NeverRule
from tripod.verify.isolation.hooks import HookLog
from tripod.verify.isolation.phrases import ProtectedText
from tripod.verify.sessions.exposure import SessionExposures
from tripod.verify.sessions.items import MAIN, Call, Gap, Given, Item, Session

if TYPE_CHECKING:
    from tripod.projections.projection import Source

Start = Callable[[Session], SessionExposures]
"""Gives what judges a session."""

Since = Literal["", "went on", "changed"]
"""Whether a file went on after its import, or its first bytes are others; '' where neither is."""


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


SightGrade = Literal["shown", "opened", "cannot tell", "nothing found"]
"""What can be told of a reader and a place; ``shown``: text of it reached the model."""
UNTOLD: SightGrade = "cannot tell"
NOTHING: SightGrade = "nothing found"


class Sight(NamedTuple):
    """Who saw a protected place: ``role`` and ``who`` name the reader, ``place`` is in words.

    ``why`` says what was seen, or why nobody can tell; ``seq`` is the entry of the reader.
    """

    role: str
    who: str
    place: str
    grade: SightGrade
    why: tuple[str, ...] = ()
    seq: int | None = None


class CallsSeen(SessionExposures):
    """The calls of the files of one session, and how each ended; ``judges`` judge them.

    ``again`` has the further calls of an id. Not ``is_noted``: nobody asks for the calls.
    """

    def __init__(self, judges: Sequence[SessionExposures] = (), *, is_noted: bool = True) -> None:
        super().__init__(None, ProtectedText())
        self.judges, self.is_noted = judges, is_noted
        self.agents: set[str] = set()
        self.sessions: list[Session] = []
        self.calls: dict[str, Call] = {}
        self.again: dict[str, list[Call]] = {}
        self.times: Counter[str] = Counter()
        self.answered: set[str] = set()
        self.refused: set[str] = set()
        self.shown: set[str] = set()
        self.witness: list[Gap] = []

    @property
    def main_calls(self) -> dict[str, Call]:
        """The calls of the session's own thread, by id."""
        return {name: call for name, call in self.calls.items() if call.agent == MAIN}

    def add(self, item: Item) -> None:
        """Note a call, or how it was answered, and have each judge judge it."""
        for one in self.judges:
            one.add(item)
        if not self.is_noted:
            return
        if isinstance(item, Call) and not item.ran:
            self.agents.add(item.agent)
            if self.calls.setdefault(item.id, item) is not item:
                self.again.setdefault(item.id, []).append(item)
            self.times[item.id] += 1
        elif isinstance(item, Given):
            self.agents.add(item.agent)
            if item.call is not None:
                self.answered.add(item.call)
                (self.refused if item.denied else self.shown).add(item.call)
                if item.failed:
                    self.shown.discard(item.call)
        elif isinstance(item, Gap) and item.cause == "witness":
            self.witness.append(item)
        elif isinstance(item, Session):
            self.agents.add(item.id)
            self.sessions.append(item)

    def end(self) -> None:
        """Have each judge say what stays open."""
        for one in self.judges:
            one.end()

    def join(self, other: CallsSeen) -> None:
        """Take in the calls of another file of the session; a call may stand in two of them."""
        self.agents |= other.agents
        self.answered |= other.answered
        self.refused |= other.refused
        self.shown |= other.shown
        self.witness += other.witness
        self.sessions += other.sessions
        for name, calls in other.again.items():
            self.again.setdefault(name, []).extend(calls)
        self.calls = self.calls | {k: v for k, v in other.calls.items() if k not in self.calls}
        for name, count in other.times.items():
            self.times[name] = max(self.times[name], count)


class SessionsAtHand(Protocol):
    """Reads sessions again that the ledger has (OSError: why their bytes are not at hand)."""

    never: tuple[Never, ...]
    """The rules of the team's policy."""

    roles: tuple[SessionRole, ...]
    """The roles that the team's policy gives to sessions."""

    faults: tuple[str, ...]
    """Policies that are not understood: they may have rules, and roles."""

    altered: set[str]
    """Paths of kept parts that were read, and had another digest."""

    @property
    def project(self) -> str:
        """The folder of the team's project."""

    def again(
        self, body: Mapping[str, Any], parts: Sequence[str], start: Start
    ) -> SessionExposures:
        """What the session of an entry exposed; ``parts`` are the digests of what was kept."""

    def hooks(self, session: str) -> HookLog | None:
        """What hooks left of a session in the team directory; None where they left nothing."""

    def add_hooks(self, body: Mapping[str, Any], log: HookLog, seen: CallsSeen) -> None:
        """Add what hooks left of the session of an entry to what each judge says it exposed."""

    def whole(self, body: Mapping[str, Any], parts: Sequence[str]) -> None:
        """Check that the bytes are at hand, and are those of the entry."""

    def since(self, body: Mapping[str, Any]) -> Since:
        """What became of a file of lines where it was found."""

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
