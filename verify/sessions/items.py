"""What a reader makes of a recorded session: four things, in the order of its file. Pure.

A reader gets the records of one file and gives ``Session``, ``Call``, ``Given`` and ``Gap``; what
judges a session knows only these. No reader rebuilds a conversation, sorts by time, merges or
drops: whatever it does not understand is a ``Gap``, and the text of it is searched all the same.
"""

from __future__ import annotations

import re
import shlex
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping
from itertools import pairwise
from posixpath import join, normpath
from typing import Any, ClassVar, Literal, NamedTuple

MAIN = "main"
"""The agent of a session's own thread."""

Channel = Literal[
    "read", "search", "names", "shell", "script", "edit", "mcp", "resource", "subagent", "web",
    "tool", "paste", "mention", "instructions", "attachment", "notice", "hook", "summary",
    "background", "queue", "skill", "request", "system", "home", "unknown", "damaged",
]  # fmt: skip
"""A way by which text reaches a model. The first eleven are tool calls."""

CHANNELS: dict[Channel, str] = {
    "read": "a tool that reads files",
    "search": "a tool that searches files and shows lines of them",
    "names": "a tool that lists names of files",
    "shell": "a command line, and what it prints",
    "script": "a program that the model wrote, or words for a program that runs",
    "edit": "a tool that changes files, or shows none",
    "mcp": "a tool of an MCP server",
    "resource": "a resource of an MCP server",
    "subagent": "what a subagent read, and its report",
    "web": "a page of the web",
    "tool": "any other tool",
    "paste": "a person's words, and what that person pasted",
    "mention": "a file that a person named in the prompt",
    "instructions": "instruction files, and what they import",
    "attachment": "a file, or a selection in an editor, that comes with the prompt",
    "notice": "the program's notice that a file was changed, with its text",
    "hook": "the output of a hook or a plugin",
    "summary": "a summary of what came before",
    "background": "the report of a command or an agent in the background",
    "queue": "a prompt that waited",
    "skill": "the text of a skill or a command",
    "request": "the request to the model, as the program keeps it",
    "system": "the program's own words: its prompt, its settings, lists of names",
    "home": "instruction files in the user's home folder, for all projects",
}
"""What comes by each channel that a program may have; two more are of records, not of programs."""


class Way(NamedTuple):
    """Whether a program writes down what comes by a channel.

    It is recorded from the version ``since`` on (() in each version that the reader knows), it
    never is, nobody has looked (``not known``), or the program has no such way in. What comes
    ``within`` another channel is recorded as that one is.
    """

    recorded: Literal["recorded", "never", "not known", "no way in"]
    since: tuple[int, ...] = ()
    within: Channel | None = None


def ways_in(
    *,
    recorded: str = "",
    later: Mapping[tuple[int, ...], str] | None = None,
    never: str = "",
    not_known: str = "",
    no_way_in: str = "",
    within: Mapping[Channel, str] | None = None,
) -> dict[Channel, Way]:
    """The table of a reader: each channel once, by what is recorded of it.

    ``later`` has channels by the version that began to record them, ``within`` by the channel
    that they come by. Any other argument is names with blanks between them.
    """
    rows = [(name, Way("recorded")) for name in recorded.split()]
    rows += [(name, Way("never")) for name in never.split()]
    rows += [(name, Way("not known")) for name in not_known.split()]
    rows += [(name, Way("no way in")) for name in no_way_in.split()]
    for since, names in (later or {}).items():
        rows += [(name, Way("recorded", since)) for name in names.split()]
    found = dict(rows)
    for channel, names in (within or {}).items():
        others = [(name, found[channel]._replace(within=channel)) for name in names.split()]
        rows += others
    assert sorted(name for name, _ in rows) == sorted(CHANNELS), "each channel stands there once"
    table = dict(rows)
    return {channel: table[channel] for channel in CHANNELS}


Cause = Literal["unknown", "damaged", "opaque", "missing", "order", "unanswered", "witness"]
"""Why something cannot be seen; ``witness``: two parts of the record tell different stories."""


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
    What a script got that ``keeps`` it may be shown by a later call.
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
    keeps: bool = False

    def without_input(self) -> Call:
        """The call as it waits for its answer: its input may be large."""
        return made(Call, (*self[:2], None, *self[3:]))


class Given(NamedTuple):
    """A text that the model was given, with the line of its record and where that begins (bytes).

    ``call`` is the call that it answers, None of any other text. ``named`` is the file as the
    record names it, for a text that is a file's. ``failed`` and ``denied`` are the program's own
    words. ``sure``: not, where the record does not say that the text reached the model. ``about``
    is the call that a hook said it of, beside its answer. ``decided`` is what else the record says
    of whether a call that failed might run: it was allowed, or a hook denied it in its own words.
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
    about: str | None = None
    decided: Literal["", "allowed", "by hook"] = ""


class Part(NamedTuple):
    """A text that is one of several of a record.

    ``before`` is the end of those before it, ``joints`` are what stands where that meets this: a
    reader sees a message whole. ``is_named``: one before it named its file.
    """

    before: str = ""
    joints: tuple[str, ...] = ()
    is_named: bool = False


class RecordParts:
    """What the texts of one record make together; ``add`` each in its order."""

    SIZE = 1_000
    """Characters on each side of the place where two texts meet."""

    def __init__(self) -> None:
        self._line = 0
        self._apart = self._joined = ""
        self._is_named = self._is_cut = False

    def add(self, given: Given) -> Part:
        """Take a text, and give what it is beside those before it."""
        text, size = given.text, self.SIZE
        if given.line != self._line or not given.line:
            self._line, self._is_named, self._is_cut = given.line, given.named is not None, False
            self._apart = self._joined = text[-size:]
            return _ALONE
        before, head = self._joined, text[:size]
        joints: tuple[str, ...] = (f"{self._apart}\n{head}",)
        self._is_cut |= _is_cut(before, head)
        if self._is_cut:  # here, or before: a run of words may go over several cuts
            joints += (before + head,)
        self._is_cut &= len(text) < size
        part = Part(self._apart, joints, self._is_named)
        self._apart = f"{self._apart}\n{text[-size:]}"[-size:]
        self._joined = (self._joined + text[-size:])[-size:]
        self._is_named |= given.named is not None
        return part


def _is_cut(before: str, after: str) -> bool:
    """Whether two texts may meet within a word, a character as JSON has it, or a line's number."""
    ends = _PARTS_WORDS.match(before[-1:])
    begins = _PARTS_WORDS.match(after) and not before[-1:].isdigit()
    return after != "" and (not (ends or begins) or "\x1b" in before)


_ALONE = Part()
_PARTS_WORDS = re.compile(r"[ \t-\r!-/:-@\[\]-`{-~]")


class Gap(NamedTuple):
    """Something that cannot be seen, and why. ``channel`` is what it could have carried.

    The session ``child`` of a subagent, which ``parent`` started, is ``missing`` until it is read.
    ``call`` began it, '' where a record tells of it again. What judges a file names the parent.
    ``calls`` are those that the child made, as its parent was told: with fewer it is not whole.
    ``is_unrecorded``: the program never writes down what came by this channel.
    """

    cause: Cause
    line: int
    what: str
    channel: Channel = "unknown"
    child: str = ""
    is_unrecorded: bool = False
    parent: str = ""
    call: str = ""
    calls: int = 0


class GapList(list[Gap]):
    """Gaps as they are found: the first of each cause and channel, so that memory has a limit.

    ``more`` counts those that were left out. ``close`` adds a gap for each such cause and channel,
    which no session that is found fills. ``filled`` are channels that other evidence shows, and
    ``relied`` those of which it alone told: it closed them, or only its words were looked for.
    """

    LIMIT = 500
    CHILDREN = 5_000
    """How many sessions of subagents may be missing: each of them may be found in another file."""

    def __init__(self) -> None:
        super().__init__()
        self.more: Counter[tuple[Cause, Channel]] = Counter()
        self.filled: set[Channel] = set()
        self.relied: set[Channel] = set()
        self._kept: Counter[tuple[Cause, Channel, bool]] = Counter()
        self._sums: list[Gap] = []

    def append(self, gap: Gap) -> None:
        """Keep a gap, or count it."""
        kind = gap.cause, gap.channel, bool(gap.child)
        if self._kept[kind] < (self.CHILDREN if gap.child else self.LIMIT):
            self._kept[kind] += 1
            super().append(gap)
        else:
            self.more[gap.cause, gap.channel] += 1

    def extend(self, gaps: Iterable[Gap]) -> None:
        """Keep or count several."""
        for gap in gaps:
            self.append(gap)

    def fill(self, channel: Channel) -> None:
        """Drop what a program never writes down of a channel: other evidence shows all of it."""
        kept = [gap for gap in self if not (gap.is_unrecorded and gap.channel == channel)]
        if len(kept) < len(self):
            self.filled.add(channel)
            self[:] = kept

    def close(self) -> None:
        """Say what was left out; it is said anew if more was left out since."""
        for gap in self._sums:
            self.remove(gap)
        self._sums = [
            Gap(cause, 0, f"{number} more that are not listed", channel)
            for (cause, channel), number in self.more.items()
        ]
        super().extend(self._sums)

    def causes(self) -> Counter[Cause]:
        """How many gaps there are of each cause; it is asked after ``close``."""
        found = Counter(gap.cause for gap in self)
        for (cause, _), number in self.more.items():
            found[cause] += number - 1
        return found


Item = Session | Call | Given | Gap

made = tuple.__new__


"""Makes a named tuple of the tuple of all its fields: for what is made for each record."""

_REMEMBERED = 100_000  # calls, and records, whose ids a reader keeps


class SessionRecord(NamedTuple):
    """One record: the number of its line, from 1, where that begins in the file, and its value."""

    line: int
    offset: int
    value: dict[str, Any]


class ToolUse(NamedTuple):
    """What a tool of a program does: its channel, and which fields of its input name what.

    ``paths`` are fields that hold one path or a list; ``command`` is the field of a shell command.
    ``default`` is the path where the input names none, ``folders`` are fields of which the first
    that is there names the folder in which a command runs.
    """

    channel: Channel
    paths: tuple[str, ...] = ()
    command: str | None = None
    recursive: bool = False
    default: str | None = None
    folders: tuple[str, ...] = ()


class Reader(ABC):
    """Reads the records of one file in their order, and counts them by the program's own types."""

    program: ClassVar[str]
    since: ClassVar[tuple[int, ...]] = ()
    """The oldest version that the reader knows; () where the record names none."""
    until: ClassVar[tuple[int, ...]] = ()
    """The first version that it does not know."""
    tools: ClassVar[Mapping[str, ToolUse]] = {}
    """What each tool does. Tools that show no file and run nothing count as ``edit``."""
    has_many: ClassVar[bool] = False
    """Whether a file of this program holds many sessions."""
    ways: ClassVar[Mapping[Channel, Way]]
    """For each channel, whether the program leaves a record of what comes by it."""

    def __init__(self) -> None:
        self.records: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()
        self.sessions: dict[str, Session] = {}
        self.cwd = ""
        self.time: object = None  # that the last record claims which has one, as it stands there
        self.channels: dict[str, Channel] = {}
        self._ids: set[int] = set()  # hashes of ids of records
        self._older: set[int] = set()
        self._before: dict[int | None, int] = {}

    @abstractmethod
    def read(self, record: SessionRecord) -> Iterable[Item]:
        """What one record holds."""

    def end(self) -> Iterator[Item]:
        """What only the end of the file shows."""
        if not self.sessions:
            yield Gap("missing", 1, f"the record by which {self.program} names the session")
        if self.since and not any(session.version for session in self.sessions.values()):
            yield Gap("unknown", 1, f"no version of {self.program} is named")
        for parent, line in self._before.items():
            if parent not in self._ids and parent not in self._older:
                what = "the record that its parentUuid names is not there, or is the same"
                yield Gap("order", line, what)

    def links(self, record: SessionRecord) -> None:
        """Note the id of a record, and the one before it: ``end`` says which is not there.

        Of very many records the older ones are forgotten: memory has a limit.
        """
        value, ids = record.value, self._ids
        name, parent = value.get("uuid"), value.get("parentUuid")
        if isinstance(name, str):
            if len(ids) >= _REMEMBERED:
                self._older, self._ids = ids, set()
                ids = self._ids
            ids.add(hash(name))
        if isinstance(parent, str):
            before = None if parent == name else hash(parent)
            there = before in ids or before in self._older
            if not there and len(self._before) < _REMEMBERED:
                self._before.setdefault(before, record.line)

    def began(
        self, record: SessionRecord, name: str, version: str = "", **more: Any
    ) -> Iterator[Item]:
        """The session ``name``, where its id or its version was not seen before."""
        old = self.sessions.get(name)
        if old is None or old.version != version:
            session = Session(name, self.program, version, record.line, cwd=self.cwd, **more)
            if old is None and self.sessions and not self.has_many:
                yield Gap("order", record.line, f"a second session in one file, {name[:40]!r}")
            self.sessions[name] = session
            yield session
            known = version_of(version)
            if version and self.since and not self.since <= known < self.until:
                what = f"the version {version[:40]!r} of {self.program}"
                yield Gap("unknown", record.line, what)
            yield from self._ceiling(record, version)

    def _ceiling(self, record: SessionRecord, version: str) -> Iterator[Gap]:
        """What this version of the program does not write down, and of what nobody knows."""
        known, who = version_of(version), f"{self.program} {version}".rstrip()
        for channel, way in self.ways.items():
            if way.within is not None:
                continue  # the other channel has its gap
            name = f"{channel}: {CHANNELS[channel]}"
            if way.recorded == "not known":
                what = f"nobody has looked whether {self.program} leaves a record of {name}"
                yield Gap("unknown", record.line, what, channel)
            elif way.recorded == "never" or (known and known < way.since):
                what = f"{who} leaves no record of {name}"
                yield Gap("missing", record.line, what, channel, is_unrecorded=True)

    def given(
        self,
        record: SessionRecord,
        channel: Channel,
        value: object,
        *,
        call: str | None = None,
        named: str | None = None,
        agent: str = MAIN,
        nested: bool = False,
        failed: bool = False,
        denied: bool = False,
        sure: bool = True,
    ) -> Given:
        """All texts of a value, which the model was given."""
        text = value if isinstance(value, str) else text_of(value)
        line, offset, _ = record
        # By place, and as a tuple: each text of each session comes through here, and ``Given(...)``
        # costs twice as much.
        return made(
            Given,
            (channel, line, offset, text, call, named, self.cwd, agent, nested, failed, denied,
             sure, None, ""),
        )  # fmt: skip

    def answered(self, record: SessionRecord, name: str, value: object, **more: Any) -> Given:
        """The answer to the call ``name``, which comes by the channel of that call."""
        return self.given(record, self.channels.get(name, "tool"), value, call=name, **more)

    def called(
        self,
        record: SessionRecord,
        name: str,
        tool: str,
        value: Any,
        *,
        command: str | None = None,
        cwd: str | None = None,
        agent: str = MAIN,
        nested: bool = False,
        ran: bool = False,
        output: str | None = None,
    ) -> Call:
        """A call, with what its input names; of a tool in no table, every text may be a path.

        ``command`` is the command line, where the record has it elsewhere than in the input.
        """
        use = self.tools.get(tool)
        cwd = self.cwd if cwd is None else cwd
        recursive = False
        if use is None:
            channel: Channel = "mcp" if tool.startswith("mcp__") else "tool"
            paths = tuple(text for text in strings_of(value) if text and "\n" not in text)
        else:
            channel, named, line, recursive, default, folders = use
            values = value if isinstance(value, dict) else {}
            paths = tuple(_paths(values, named)) if named else ()
            if default and not paths:
                paths = (default,)
            if tool in ("apply_patch", "patch"):
                paths += tuple(_UPDATED.findall(text_of(value)))
            if command is None and line:
                said = values.get(line)
                said = command_line(said) if isinstance(said, list) else said
                command = said if isinstance(said, str) else None
            if folders:
                cwd = _folder(cwd, next(iter(_paths(values, folders)), ""))
        if len(self.channels) > _REMEMBERED:
            for old in list(self.channels)[: _REMEMBERED // 2]:
                del self.channels[old]
        if ran:
            self.channels.setdefault(name, channel)
        else:
            self.channels[name] = channel
        return made(
            Call,
            (name, tool, value, record[0], channel, paths, command, recursive, cwd, agent, nested,
             ran, output, False),
        )  # fmt: skip

    def list_of(
        self, record: SessionRecord, value: object, name: str
    ) -> Generator[Item, None, list[Any]]:
        """A value that is a list, or missing, in each record; of another type it is a gap.

        Its texts are searched then, and nothing is in the list that is returned.
        """
        if value is not None and not isinstance(value, list):
            yield from self.strange_type(record, name, value)
        return value if isinstance(value, list) else []

    def object_of(
        self, record: SessionRecord, value: object, name: str
    ) -> Generator[Item, None, dict[str, Any]]:
        """A value that is an object, or missing, in each record; else as ``list_of`` does it."""
        if value is not None and not isinstance(value, dict):
            yield from self.strange_type(record, name, value)
        return value if isinstance(value, dict) else {}

    def strange_type(self, record: SessionRecord, name: str, value: object) -> Iterator[Item]:
        """A record of a type that the reader does not know; its texts are searched."""
        self.unknown[name] += 1
        yield Gap("unknown", record.line, f"a record of the type {name[:80]!r}")
        yield from strange_text(record, value)

    def strange_fields(
        self,
        record: SessionRecord,
        value: Mapping[str, Any],
        known: frozenset[str],
        what: str,
        kind: object = None,
    ) -> Iterable[Item]:
        """Fields of a known record that the reader does not know; their texts are searched."""
        if known.issuperset(value):
            return ()
        found: list[Item] = []
        for name in [name for name in value if name not in known]:
            of = what if kind is None else f"{what} {kind!r}"
            found.append(Gap("unknown", record.line, f"the field {name[:80]!r} of {of}"))
            found += strange_text(record, value[name])
        return found


def strange_text(record: SessionRecord, value: object) -> Iterator[Given]:
    """The texts of a value that nobody understands, as one that may have reached the model."""
    text = text_of(value)
    if text:
        yield Given("unknown", record.line, record.offset, text, sure=False)


def text_of(value: object) -> str:
    """Every text in a JSON value, each on a line of its own."""
    return "\n".join(strings_of(value))


def text_of_parts(value: object) -> str:
    """Every text in the parts of an answer, and whole each word that is cut between two.

    >>> text_of_parts(["one tw", "o three"]).splitlines()
    ['one tw', 'o three', 'one two three']
    """
    texts = [text for text in strings_of(value) if text]
    if any(_is_cut(one[-RecordParts.SIZE :], other) for one, other in pairwise(texts)):
        texts.append("".join(texts))
    return "\n".join(texts)


def strings_of(value: object) -> list[str]:
    """Every text in a JSON value, in its order, without recursion; not that a part is a text.

    >>> strings_of({"a": ["x", {"type": "text", "text": "y"}], "c": 1, "d": "z"})
    ['x', 'y', 'z']
    """
    found: list[str] = []
    outer: list[Iterator[Any]] = []
    inner: Iterator[Any] = iter((value,))
    while True:
        for one in inner:
            kind = type(one)  # JSON has no other sorts, and this costs less to ask
            if kind is str:
                found.append(one)
            elif kind is list or kind is dict:
                outer.append(inner)
                if kind is list:
                    inner = iter(one)
                elif one.get("type") in ("text", "input_text", "output_text"):
                    inner = iter([one[name] for name in one if name != "type"])
                else:
                    inner = iter(one.values())
                break
        else:
            if not outer:
                return found
            inner = outer.pop()


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


def command_line(words: list[Any]) -> str:
    """The words of a command as one line for a shell; of a word that is no text, its texts.

    >>> command_line(["cat", "a b", 7, ["c"]])
    "cat 'a b' 7 c"
    """
    plain = (str(one) if isinstance(one, str | int | float) else text_of(one) for one in words)
    return shlex.join(plain)


def text_at(value: object, name: str, *below: str) -> str:
    """A text some levels down in a JSON value, '' if nothing is there.

    >>> text_at({"a": {"b": "x"}}, "a", "b"), text_at({"a": 1}, "a", "b"), text_at([], "a")
    ('x', '', '')
    """
    if type(value) is not dict:  # JSON has no other sort, and this costs less to ask
        return ""
    found = value.get(name)
    for one in below:
        if type(found) is not dict:
            return ""
        found = found.get(one)
    return found if type(found) is str else ""


def fields(table: str) -> frozenset[str]:
    """The names of a table that is written as words."""
    return frozenset(table.split())


def is_what_was_asked(asked: Call, ran: Call) -> bool | None:
    """Whether what was run is what was asked for; None where that, or a part of it, may be so."""
    one, other = (asked.command or "").strip(), (ran.command or "").strip()
    if asked.channel == ran.channel == "shell" and one and other:
        if one == other:
            return True if asked.cwd == ran.cwd else None
        return None if one.endswith(other) or other.endswith(one) else False
    mine, theirs = (
        {normpath(join(each.cwd, path)) for path in each.paths} for each in (asked, ran)
    )
    if mine <= theirs and one == other:
        return True
    is_told = asked.channel == ran.channel and asked.channel in ("read", "search", "edit")
    return False if is_told and mine and theirs and not mine & theirs else None


_UPDATED = re.compile(r"^\*\*\* Update File: (.*\S)", re.MULTILINE)
"""Files that a patch changes, and must know; what it adds or deletes it does not read."""


def _folder(cwd: str, named: str) -> str:
    if named.startswith(("/", "~")) or named[1:2] == ":" or not (cwd and named):
        return named or cwd
    return f"{cwd}/{named}"


def _paths(values: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    found = []
    for name in names:
        value = values.get(name)
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, list):
            found += [one for one in value if isinstance(one, str)]
    # Programs take blanks off: the file may be either.
    return [path for path in found if path] + [
        path.strip() for path in found if path.strip() != path
    ]
