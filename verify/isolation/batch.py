"""What is told of each item of a session alone: files that a call opens, protected text in a text.

Items wait for one another, and are judged some at a time: that costs less, and another process can
do this part of it meanwhile. Pure.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

from tripod.verify.isolation.globs import NeverRule
from tripod.verify.isolation.phrases import PIECE, ProtectedText, search_in_pieces
from tripod.verify.sessions.items import Call, Gap, Given, Item, Part, RecordParts, strings_of
from tripod.verify.sessions.programs import LOCAL_ADDRESS, OpenedPath, ShellReading
from tripod.verify.sessions.programs import UNKNOWN_PART as ANY
from tripod.verify.sessions.shell import WINDOWS, opened_by, resolved

OPAQUE = frozenset(("mcp", "tool", "resource", "script"))
"""Channels of tools of which nobody knows what they read."""

NUL = "a file that is named with a NUL"
PATHLIKE = re.compile(r"[^\s/.]*[/.]\S*")
MAGIC = re.compile(r"[*?\[\]{}]")

REMOVED = re.compile(
    r"REDACTED|[\[<({]+(?i:redacted)[^/\])>}]{0,60}[\])>}]+|[\[<](?:removed|hidden|masked|omitted)[\]>]"
    r"|\*{3,}|\u2588+"
)
"""What stands in a record where somebody took a name or a text out."""

_BEGINS = frozenset("R[<({*\u2588")
"""The first characters that ``REMOVED`` can match."""

_NO_FILES = frozenset(("names", "subagent", "web", "skill", "paste", "background"))
_IS_POWERSHELL = re.compile("powershell|pwsh", re.IGNORECASE)
_PRINTS = re.compile(
    r"""\s*(?:cd\ [^;&|<>`$\n]+&&\ *)?(?:(?:cat|head|tail|nl|wc|grep|rg|ls|cut|od|sed\ -n)\b
    [^;&|<>`$\n]*+)(?:\|\ *(?:cat|head|tail|nl|wc|grep|rg|cut|od|sed\ -n)\b[^;&|<>`$\n]*+)*\s*""",
    re.VERBOSE,
)
"""A command that only prints: all that it opened stands in its output, and in no copy."""

only_prints = lru_cache(maxsize=512)(lambda command: _PRINTS.fullmatch(command) is not None)
MAX_PATH = SHORT_COMMAND = 4096  # characters


def opened_by_call(call: Call) -> ShellReading:
    """Which files a call opens. Programs in C end a path at a NUL, shells drop it: both may be."""
    texts = call.command or "", call.cwd, *call.paths
    if "\0" not in "".join(texts):
        return _opened_by_call(call)
    found = ShellReading(opaque=[NUL])
    for form in (lambda text: text.partition("\0")[0], lambda text: text.replace("\0", "")):
        command, cwd, *paths = map(form, texts)
        said = call._replace(command=call.command and command, cwd=cwd, paths=tuple(paths))
        one = _opened_by_call(said)
        found.opened += [each._replace(sure=False) for each in (*one.opened, *one.also)]
        found.opaque += one.opaque
    return found


_ALONE = Part()
_REMOVED = 200  # characters: what stands for a text is no longer


def as_known(opened: OpenedPath) -> OpenedPath:
    """A path that was opened; one whose last name was taken out of the record may be any there.

    >>> as_known(OpenedPath("a/REDACTED", "/w/a/REDACTED")).path
    '/w/a'
    """
    folder, _, name = opened.path.rpartition("/")
    is_plain = name[:1] not in _BEGINS and opened.named[:1] not in _BEGINS
    if is_plain and len(opened.path) <= MAX_PATH:
        return opened  # as nearly all
    if len(opened.path) > MAX_PATH or REMOVED.fullmatch(opened.named):
        return opened._replace(path=f"/{ANY}", sure=False)
    if REMOVED.fullmatch(name):  # a folder is mostly the home of somebody, whose name was taken out
        return opened._replace(path=folder or "/", recursive=True)
    return opened


def _opened_by_call(call: Call) -> ShellReading:
    if call.channel == "shell" and call.command is not None:
        return _opened_by(call, call.command)
    known = call.channel not in OPAQUE
    found = ShellReading()
    if call.channel == "web":
        for url in LOCAL_ADDRESS.findall("\n".join(strings_of(call.input))):
            if url.startswith("file:"):
                found.opened.append(OpenedPath(url, resolved(url, call.cwd)))
            else:
                found.opaque.append(f"what a server on this machine, or near it, gave, {url[:80]},")
    for named in call.paths if call.channel not in _NO_FILES else ():
        if known or PATHLIKE.fullmatch(named):
            sure = known and not (MAGIC.search(named) and not call.recursive)
            path = resolved(named, call.cwd)
            found.opened.append(OpenedPath(named, path, sure, call.recursive, call.recursive))
    return found


def _opened_by(call: Call, command: str) -> ShellReading:
    """What a command opens, read by the shell that it is for."""
    is_named = _IS_POWERSHELL.search(call.tool) is not None
    if is_named or (WINDOWS.match(call.cwd) and call.tool != "Bash"):
        from tripod.verify.sessions.powershell import opened_by_powershell

        return opened_by_powershell(command, call.cwd, is_named=is_named)
    return opened_by(command, call.cwd)


class ShellCommand(NamedTuple):
    """A command line, with the tool that it was given to, and its folder."""

    tool: str
    command: str
    cwd: str


Question = tuple[list[str], list[str], list[ShellCommand]]
"""Texts in their order, what stands where two of them meet, and command lines."""

Answer = tuple[list[list[int]], list[ShellReading]]
"""For each text the numbers of protected files, or nothing at all; what each command opens."""


class Asking(Protocol):
    """Somebody who answers while others go on, and how many questions may wait for it."""

    ahead: int

    @property
    def is_behind(self) -> bool:
        """Whether who asks does well to do a part of the work."""

    def ask(self, question: Question) -> Callable[[], Answer]:
        """Ask; the function given back waits for the answer."""


class ReadyItems(NamedTuple):
    """Items that are to be judged, each with what it is beside others.

    By their places among these: ``paths`` are protected files found in a text, or in what a call
    printed, ``readings`` what a command line opens, as far as it was read.
    """

    items: list[tuple[Item, Part]]
    paths: Mapping[int, Sequence[str]]
    readings: Mapping[int, ShellReading]


class _Batch(NamedTuple):
    """Items that wait, and the places of those of which each text and each joint is."""

    items: list[tuple[Item, Part]]
    texts: list[int]
    joints: list[int]
    commands: dict[int, ShellCommand]
    answer: Callable[[], Answer]


class ItemBatches:
    """Items as they come, and as they are ready to be judged: several at a time, in their order.

    Texts that are searched together cost less: nearly none has protected text. And what a processor
    did last it has at hand. A ``helper`` searches texts and reads command lines meanwhile.
    """

    _TOGETHER = 16_384  # characters, or a little more: more have more words than are at hand
    _EACH = 64  # as many count for an item of none
    _AHEAD = 4 * _TOGETHER  # nobody goes ahead of more: memory has a limit

    def __init__(
        self, rule: NeverRule | None, protected: ProtectedText, helper: Asking | None
    ) -> None:
        self.rule, self.protected, self.helper = rule, protected, helper
        self._parts = RecordParts()
        self._items: list[tuple[Item, Part]] = []
        self._size = 0
        self._asked = deque[_Batch]()

    def add(self, item: Item) -> Iterable[ReadyItems]:
        """Take an item in; give those that are ready."""
        part, size = _ALONE, self._EACH
        if isinstance(item, Given):
            part = self._parts.add(item)
            size += len(item.text)
        elif isinstance(item, Call):
            size += _size_of(item)
        self._items.append((item, part))
        if isinstance(item, Given) and size < _REMOVED and REMOVED.fullmatch(item.text.strip()):
            what = "a text that was taken out of the record"
            self._items.append((Gap("opaque", item.line, what, item.channel), _ALONE))
        self._size += size
        if self._size <= self._TOGETHER:
            return ()
        return self._ready(self.helper.ahead if self.helper and self._size <= self._AHEAD else 0)

    def end(self) -> Iterable[ReadyItems]:
        """Give all that are left."""
        return self._ready(0) if self._items or self._asked else ()

    def _ready(self, ahead: int) -> Iterator[ReadyItems]:
        """All that are ready, but for so many of the last batches."""
        items, self._items, self._size = self._items, [], 0
        is_whole = False
        texts: dict[int, str] = {}
        apart: list[tuple[int, str]] = []
        within: list[tuple[int, str]] = []
        printed: dict[int, str] = {}
        for at, (item, part) in enumerate(items) if self.protected.paths else ():
            if isinstance(item, Call) and item.output:
                printed[at] = item.output
            elif isinstance(item, Given):
                # Where it meets those before it is told by them, if all of its record are here.
                is_whole |= not part.joints
                for number, joint in enumerate(part.joints):
                    (apart if number or not is_whole else within).append((at, joint))
                texts[at] = item.text
        commands = {
            at: ShellCommand(item.tool, item.command, item.cwd)
            for at, (item, _) in enumerate(items)
            if isinstance(item, Call)
            and item.channel == "shell"
            and item.command
            and len(item.command) <= SHORT_COMMAND
        }
        asked = list(dict.fromkeys(commands.values()))
        every = [*texts.values(), *printed.values(), *(joint for _, joint in apart)]
        answer = self._ask(every, [joint for _, joint in within], asked)
        joints = [at for at, _ in (*apart, *within)]
        self._asked.append(_Batch(items, [*texts, *printed], joints, commands, answer))
        while len(self._asked) > ahead:
            yield self._judged(self._asked.popleft())

    def _ask(
        self, texts: list[str], joints: list[str], commands: list[ShellCommand]
    ) -> Callable[[], Answer]:
        helper, question = self.helper, (texts, joints, commands)
        if sum(map(len, texts)) > PIECE:
            every = [*texts, *joints]
            return lambda: (search_in_pieces(self._search, every), _read(commands, self.rule))
        if helper is None:
            return lambda: answer(self.protected, self.rule, question)
        if not (helper.is_behind and texts):
            return helper.ask(question)
        found = helper.ask((texts, joints, []))
        readings = _read(commands, self.rule)
        return lambda: (found()[0], readings)

    def _search(self, texts: list[str]) -> list[list[int]]:
        if self.helper is not None:
            return self.helper.ask((texts, [], []))()[0]
        return self.protected.search(texts)

    def _judged(self, batch: _Batch) -> ReadyItems:
        found, opened = batch.answer()
        numbers = dict(zip(batch.texts, found, strict=False))
        # Where a text meets the one before it stands what neither has.
        for at, both in zip(batch.joints, found[len(batch.texts) :], strict=bool(found)):
            if both:
                before = self._search([batch.items[at][1].before])
                numbers[at] += sorted({*both}.difference(numbers[at], *before))
        names = self.protected.paths
        paths = {at: list(dict.fromkeys(map(names.__getitem__, numbers[at]))) for at in numbers}
        each = dict(zip(dict.fromkeys(batch.commands.values()), opened, strict=False))
        readings = {at: each[one] for at, one in batch.commands.items()} if each else {}
        return ReadyItems(batch.items, paths, readings)


def _size_of(call: Call) -> int:
    """Characters of a call, which waits with others: its input may be large."""
    return sum(map(len, (call.command or "", call.output or "", *strings_of(call.input))))


def answer(protected: ProtectedText, rule: NeverRule | None, question: Question) -> Answer:
    """What a second process does for the one that judges: all that needs no other item."""
    texts, joints, commands = question
    return protected.search(texts, joints), _read(commands, rule)


def _read(commands: Iterable[ShellCommand], rule: NeverRule | None) -> list[ShellReading]:
    """What each command opens, without paths that are far from what a rule means: nearly all."""
    return [_near(command, rule) for command in commands]


@lru_cache(maxsize=512)
def _near(command: ShellCommand, rule: NeverRule | None) -> ShellReading:
    # Programs say a command when they ask for it and when they ran it, and agents repeat many.
    tool, line, cwd = command
    reading = opened_by_call(Call("", tool, None, 0, "shell", command=line, cwd=cwd))
    if rule is None:
        return reading
    opened = [one for one in reading.opened if _is_near(one, rule)]
    also = [one for one in reading.also if _is_near(one, rule)]
    if opened or also or reading.opaque or reading.ended:
        return ShellReading(opened, also, reading.opaque, reading.ended)
    return _NOTHING


_NOTHING = ShellReading()
"""What most commands open that a rule means: one object, which another process gets once."""


def _is_near(one: OpenedPath, rule: NeverRule) -> bool:
    is_more = one.recursive or one.lists_names or as_known(one) is not one
    return is_more or not rule.is_far(one.path)
