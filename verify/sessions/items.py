"""What a reader makes of a recorded session: four things, in the order of its file. Pure.

A reader gets the records of one file and gives ``Session``, ``Call``, ``Given`` and ``Gap``; what
judges a session knows only these. No reader rebuilds a conversation, sorts by time, merges or
drops: whatever it does not understand is a ``Gap``, and the text of it is searched all the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Literal, NamedTuple

MAIN = "main"
"""The agent of a session's own thread."""

Channel = Literal[
    "read", "search", "names", "shell", "script", "edit", "mcp", "resource", "subagent", "web",
    "tool", "paste", "mention", "instructions", "attachment", "notice", "hook", "summary",
    "background", "queue", "skill", "request", "system", "unknown", "damaged",
]  # fmt: skip
"""A way by which text reaches a model. The first eleven are tool calls."""

Cause = Literal["unknown", "damaged", "opaque", "missing", "order", "unanswered"]
"""Why something cannot be seen."""


class Session(NamedTuple):
    """A session, as its file names it: again with each new id or version.

    ``parent`` is the session that started it; ``role`` the kind of a subagent, '' of no subagent.
    """

    id: str
    program: str
    version: str
    line: int
    parent: str | None = None
    cwd: str = ""
    role: str = ""


class Call(NamedTuple):
    """A tool call: what the model asked for, or, where ``ran``, what the program says that it did.

    ``paths`` are files and folders that the input names, ``command`` a command line of a shell. A
    folder whose whole tree is read is ``recursive``. ``output`` is what the program got of it, None
    where the record does not say. A ``nested`` call is a subagent's, in the file of its parent.
    """

    id: str
    tool: str
    input: Any
    line: int
    channel: Channel
    paths: tuple[str, ...] = ()
    command: str | None = None
    recursive: bool = False
    cwd: str = ""
    agent: str = MAIN
    nested: bool = False
    ran: bool = False
    output: str | None = None


class Given(NamedTuple):
    """A text that the model was given, with the line of its record and where that begins (bytes).

    ``call`` is the call that it answers, None of any other text. ``named`` is the file as the
    record names it, for a text that is a file's. ``failed`` and ``denied`` are the program's own
    words. ``sure``: not, where the record does not say that the text reached the model.
    """

    channel: Channel
    line: int
    offset: int
    text: str
    call: str | None = None
    named: str | None = None
    cwd: str = ""
    agent: str = MAIN
    nested: bool = False
    failed: bool = False
    denied: bool = False
    sure: bool = True


class Gap(NamedTuple):
    """Something that cannot be seen, and why. ``channel`` is what it could have carried.

    A session of its own that a subagent has is ``missing`` until a session or an agent with the id
    ``child`` is read. ``is_unrecorded``: the program never writes down what came by this channel.
    """

    cause: Cause
    line: int
    what: str
    channel: Channel = "unknown"
    child: str = ""
    is_unrecorded: bool = False


Item = Session | Call | Given | Gap


class SessionRecord(NamedTuple):
    """One record: the number of its line, from 1, where that begins in the file, and its value."""

    line: int
    offset: int
    value: dict[str, Any]


class Reader(ABC):
    """Reads the records of one file in their order, and counts them by the program's own types."""

    program: ClassVar[str]
    since: ClassVar[tuple[int, ...]] = ()
    """The oldest version that the reader knows; () where the record names none."""
    until: ClassVar[tuple[int, ...]] = ()
    """The first version that it does not know."""
    unrecorded: ClassVar[Mapping[Channel, tuple[int, ...] | None]] = {}
    """Channels of which the program leaves no record, each with the version that began to."""

    def __init__(self) -> None:
        self.records: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()
        self.sessions: dict[str, Session] = {}
        self._ids: set[int] = set()
        self._before: dict[int, int] = {}

    @abstractmethod
    def read(self, record: SessionRecord) -> Iterator[Item]:
        """What one record holds."""

    def end(self) -> Iterator[Item]:
        """What only the end of the file shows."""
        if self.since and not any(session.version for session in self.sessions.values()):
            yield Gap("unknown", 1, f"no version of {self.program} is named")
        for parent, line in self._before.items():
            if parent not in self._ids:
                yield Gap("order", line, "the record that its parentUuid names is not there")

    def links(self, record: SessionRecord) -> None:
        """Note the id of a record, and the one before it: ``end`` says which is not there."""
        name, parent = record.value.get("uuid"), record.value.get("parentUuid")
        if isinstance(name, str):
            self._ids.add(hash(name))
        if isinstance(parent, str) and hash(parent) not in self._ids:
            self._before.setdefault(hash(parent), record.line)

    def began(self, session: Session) -> Iterator[Item]:
        """The session, where its id or its version was not seen before."""
        old = self.sessions.get(session.id)
        if old is None or old.version != session.version:
            self.sessions[session.id] = session
            yield session
            version = version_of(session.version)
            if session.version and self.since and not self.since <= version < self.until:
                what = f"the version {session.version[:40]!r} of {self.program}"
                yield Gap("unknown", session.line, what)
            for channel, recorded in self.unrecorded.items():
                if recorded is None or (version and version < recorded):
                    what = f"{self.program} {session.version} leaves no record of {channel}"
                    yield Gap("missing", session.line, what, channel, is_unrecorded=True)

    def strange_type(self, record: SessionRecord, name: str, value: object) -> Iterator[Item]:
        """A record of a type that the reader does not know; its texts are searched."""
        self.unknown[name] += 1
        yield Gap("unknown", record.line, f"a record of the type {name[:80]!r}")
        yield from strange_text(record, value)

    def strange_fields(
        self, record: SessionRecord, what: str, value: Mapping[str, Any], known: frozenset[str]
    ) -> Iterator[Item]:
        """Fields of a known record that the reader does not know; their texts are searched."""
        for name in value.keys() - known:
            yield Gap("unknown", record.line, f"the field {name[:80]!r} of {what}")
            yield from strange_text(record, value[name])


def strange_text(record: SessionRecord, value: object) -> Iterator[Given]:
    """The texts of a value that nobody understands, as one that may have reached the model."""
    text = "\n".join(strings_of(value))
    if text:
        yield Given("unknown", record.line, record.offset, text, sure=False)


def strings_of(value: object) -> list[str]:
    """Every text in a JSON value, in its order, without recursion.

    >>> strings_of({"a": ["x", {"b": "y"}], "c": 1, "d": "z"})
    ['x', 'y', 'z']
    """
    found: list[str] = []
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, str):
            found.append(one)
        elif isinstance(one, dict):
            todo += reversed(one.values())
        elif isinstance(one, list):
            todo += reversed(one)
    return found


def version_of(text: str) -> tuple[int, ...]:
    """A version to compare: its numbers up to the first part without one.

    >>> version_of("2.1.330"), version_of("1.18.33-beta"), version_of("x")
    ((2, 1, 330), (1, 18), ())
    """
    found = []
    for part in text.split("."):
        if not (part.isascii() and part.isdigit()) or len(part) > 9:
            break
        found.append(int(part))
    return tuple(found)


def text_at(value: object, *names: str) -> str:
    """A text some levels down in a JSON value, '' if nothing is there.

    >>> text_at({"a": {"b": "x"}}, "a", "b"), text_at({"a": 1}, "a", "b"), text_at([], "a")
    ('x', '', '')
    """
    for name in names:
        if not isinstance(value, dict):
            return ""
        value = value.get(name)
    return value if isinstance(value, str) else ""


def fields(table: str) -> frozenset[str]:
    """The names of a table that is written as words."""
    return frozenset(table.split())


class ToolUse(NamedTuple):
    """What a tool of a program does: its channel, and which fields of its input name what.

    ``paths`` are fields that hold one path or a list; ``command`` is the field of a shell command.
    ``default`` is the path where the input names none.
    """

    channel: Channel
    paths: tuple[str, ...] = ()
    command: str | None = None
    recursive: bool = False
    default: str | None = None


def tool_call(
    tools: Mapping[str, ToolUse], name: str, value: Any, make: Callable[..., Call]
) -> Call:
    """A call with what its input names; of a tool that is in no table, every text may be a path."""
    use = tools.get(name)
    if use is None:
        channel: Channel = "mcp" if name.startswith("mcp__") else "tool"
        named = tuple(text for text in strings_of(value) if text and "\n" not in text)
        return make(channel=channel, paths=named)
    values = value if isinstance(value, dict) else {}
    paths = tuple(_paths(values, use.paths)) or ((use.default,) if use.default else ())
    command = values.get(use.command) if use.command else None
    if isinstance(command, list):
        command = " ".join(map(str, command))
    return make(
        channel=use.channel,
        paths=paths,
        command=command if isinstance(command, str) else None,
        recursive=use.recursive,
    )


def _paths(values: Mapping[str, Any], names: Iterable[str]) -> Iterator[str]:
    for name in names:
        value = values.get(name)
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str) and one:
                yield one
