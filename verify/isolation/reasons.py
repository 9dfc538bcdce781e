"""What a session exposed, as it is found, and the words for it. Pure.

A session may have the same reason on hundreds of lines, and a folder in hundreds of sessions: it
is said once.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, Self

from tripod.verify.isolation.globs import NeverRule
from tripod.verify.isolation.phrases import PIECE, ProtectedText, search_in_pieces
from tripod.verify.sessions.calls import REMOVED, SHORT_COMMAND, as_known, opened_by_call
from tripod.verify.sessions.items import (
    ALONE,
    Call,
    Channel,
    Gap,
    Given,
    Item,
    Part,
    RecordParts,
    strings_of,
)
from tripod.verify.sessions.programs import OpenedPath, ShellReading

FOLDER = "searches {}, which may be a folder with such files"
PATTERN = "the pattern {} may mean one of these files"
PARTLY = "{}, of which only the shell knew a part, may be one of these files"
SPELLING = "{} may be one of these files, spelled otherwise"
UNSURE = "{} may be one of these files: which folder or value the shell had is not sure"
TOOL = "{} was named to the tool {}, of which nobody knows what it reads"
FAILED = "{} may have been read by a command that failed"
UNANSWERED = "{} was asked for, and no answer is there"
FORM = "{} was opened by a command, which may have shown its text in another form"
COPY = "{} was opened and not shown: its text may be in a copy"
MAY_BE_GIVEN = "text of {} stands in what may have reached the model"
EARLIER = "text of {} stands in an earlier version of the instructions"
"""Why an exposure is not sure, for its path and its tool."""

NOT_COMPARED = "no protected text was there to compare it with"


class Exposure(NamedTuple):
    """A place where text of a file reached the model, or may have.

    ``path`` is None where only the content tells. Not ``sure``: a pattern, a variable, a folder
    that was searched, a command that failed. ``shown``: text of it stands in what the model was
    given; else the program only opened it. ``doubt`` is why it is not sure, ``within`` which other
    file has that text.
    """

    line: int
    agent: str
    call: str | None
    tool: str | None
    channel: Channel
    named: str | None
    path: str | None
    sure: bool
    shown: bool
    doubt: str = ""
    within: str | None = None

    @property
    def title(self) -> str:
        """The path as it stands there; of a folder that is only a dot, which one it is."""
        here = self.path if self.named in (".", "./") else None
        return str(here or self.named or self.path)

    def told(self) -> dict[str, object]:
        """What the ledger and ``--json`` say of it: all but the words for people."""
        return dict(zip(self._fields[:-2], self[:-2], strict=True))


class _FirstExposures(list[Exposure]):
    """Exposures as they are found: all, or, where ``is_short``, the first of each kind.

    ``more`` counts by the one that was kept: memory has a limit.
    """

    LIMIT = 1_000  # kinds that are told apart; of others only that they are

    def __init__(self, *, is_short: bool) -> None:
        super().__init__()
        self.more: Counter[Exposure] = Counter()
        self.is_short = is_short
        self._first: dict[Exposure, Exposure] = {}

    def append(self, one: Exposure) -> None:
        """Keep an exposure, or count it."""
        if self.is_short:
            kind = one._replace(line=0, call=None)
            if kind not in self._first and len(self._first) >= self.LIMIT:
                kind = kind._replace(agent="", tool="", named="", path=one.path and "", within=None)
                one = one._replace(named=f"{one.named or one.path} or another file")
            first = self._first.setdefault(kind, one)
            if first is not one:
                self.more[first] += 1
                return
        super().append(one)

    def extend(self, exposures: Iterable[Exposure]) -> None:
        """Keep or count several."""
        for one in exposures:
            self.append(one)

    def __iadd__(self, exposures: Iterable[Exposure]) -> Self:  # type: ignore[override,misc]
        self.extend(exposures)
        return self


class ExposureList(_FirstExposures):
    """Exposures as they are found; ``elsewhere`` has those of which nobody says where it went.

    Such a file was opened, and its text may stand under another name: in a copy. ``each`` is told
    of every exposure; then those that do not count for a verdict (``counts``) are not kept.
    """

    def __init__(
        self, each: Callable[[Exposure], None] | None, counts: Callable[[Exposure], bool]
    ) -> None:
        super().__init__(is_short=each is not None)
        self.elsewhere = _FirstExposures(is_short=each is not None)
        self._each, self._counts = each, counts

    def append(self, one: Exposure) -> None:
        """Keep an exposure, or count it."""
        if self._each is not None:
            self._each(one)
        if not self.is_short or self._counts(one):
            super().append(one)


class ShellCommand(NamedTuple):
    """A command line, with the tool that it was given to, and its folder."""

    tool: str
    command: str
    cwd: str


Question = tuple[list[str], list[ShellCommand]]
Answer = tuple[list[list[int]], list[ShellReading]]
"""For each text the numbers of protected files, or nothing at all; what each command opens."""


class Asking(Protocol):
    """Somebody who answers while others go on, and how many questions may wait for it."""

    ahead: int

    def ask(self, question: Question) -> Callable[[], Answer]:
        """Ask; the function given back waits for the answer."""


class ReadyItems(NamedTuple):
    """Items that are to be judged, each with what it is beside others.

    By their places among these: ``paths`` are protected files found in one, ``readings`` what a
    command line opens, as far as it was read.
    """

    items: list[tuple[Item, Part]]
    paths: Mapping[int, Sequence[str]]
    readings: Mapping[int, ShellReading]


class _Batch(NamedTuple):
    items: list[tuple[Item, Part]]
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
        part, size = ALONE, self._EACH
        if isinstance(item, Given):
            part = self._parts.add(item)
            size += len(item.text)
        elif isinstance(item, Call):
            size += _size_of(item)
        self._items.append((item, part))
        if isinstance(item, Given) and REMOVED.fullmatch(item.text.strip()):
            what = "a text that was taken out of the record"
            self._items.append((Gap("opaque", item.line, what, item.channel), ALONE))
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
        texts = [
            text
            for item, part in items
            if isinstance(item, Given) and self.protected.paths
            for text in (item.text, *part.texts)
        ]
        commands = {
            at: ShellCommand(item.tool, item.command, item.cwd)
            for at, (item, _) in enumerate(items)
            if isinstance(item, Call)
            and item.channel == "shell"
            and item.command
            and len(item.command) <= SHORT_COMMAND
        }
        asked = list(dict.fromkeys(commands.values()))
        self._asked.append(_Batch(items, commands, self._ask(texts, asked)))
        while len(self._asked) > ahead:
            yield self._judged(self._asked.popleft())

    def _ask(self, texts: list[str], commands: list[ShellCommand]) -> Callable[[], Answer]:
        helper = self.helper
        if helper is not None and sum(map(len, texts)) <= PIECE:
            return helper.ask((texts, commands))

        def search(texts: list[str]) -> list[list[int]]:
            return helper.ask((texts, []))()[0] if helper else self.protected.search(texts)

        return lambda: (
            search_in_pieces(search, texts) if texts else [],
            _read(commands, self.rule),
        )

    def _judged(self, batch: _Batch) -> ReadyItems:
        found, opened = batch.answer()
        paths: dict[int, Sequence[str]] = {}
        numbers = iter(found)
        for at, (item, part) in enumerate(batch.items if found else ()):
            if isinstance(item, Given):
                here = next(numbers)
                # Where it meets the text before it stands what neither has.
                before, *joints = [next(numbers) for _ in part.texts] or [[]]
                both = {number for joint in joints for number in joint}
                every = *here, *sorted(both.difference(here, before))
                paths[at] = list(dict.fromkeys(self.protected.paths[number] for number in every))
        each = dict(zip(dict.fromkeys(batch.commands.values()), opened, strict=False))
        readings = {at: each[one] for at, one in batch.commands.items()} if each else {}
        return ReadyItems(batch.items, paths, readings)


def _size_of(call: Call) -> int:
    """Characters of a call, which waits with others: its input may be large."""
    value = call.input
    texts = value.values() if isinstance(value, dict) else [value]
    size = len(call.command or "") + len(call.output or "")
    for one in texts:
        if isinstance(one, str):
            size += len(one)
        elif isinstance(one, dict | list):
            size += sum(map(len, strings_of(one)))
    return size


def answer(protected: ProtectedText, rule: NeverRule | None, question: Question) -> Answer:
    """What a second process does for the one that judges: all that needs no other item."""
    texts, commands = question
    return protected.search(texts) if texts else [], _read(commands, rule)


def _read(commands: Iterable[ShellCommand], rule: NeverRule | None) -> list[ShellReading]:
    """What each command opens, without paths that are far from what a rule means: nearly all."""
    found = []
    for tool, command, cwd in commands:
        call = Call("", tool, None, 0, "shell", command=command, cwd=cwd)
        reading = opened_by_call(call)
        if rule is not None:
            opened = [one for one in reading.opened if _is_near(one, rule)]
            also = [one for one in reading.also if _is_near(one, rule)]
            reading = ShellReading(opened, also, reading.opaque, reading.ended)
        found.append(reading)
    return found


def _is_near(one: OpenedPath, rule: NeverRule) -> bool:
    is_more = one.recursive or one.lists_names or as_known(one) is not one
    return is_more or not rule.is_far(one.path)


def exposure_of_text(
    given: Given, path: str | None, *, named: str | None = None, tool: str | None = None
) -> Exposure:
    """What a text exposed that a session gave: of the file at a path, or with text of a file."""
    within = given.named if named != given.named else None
    earlier = given.channel == "instructions" and not given.line
    return Exposure(
        given.line,
        given.agent,
        given.call,
        tool,
        given.channel,
        given.named if named is None else named,
        path,
        given.sure,
        shown=bool(given.text.strip()),
        doubt="" if given.sure else EARLIER if earlier else MAY_BE_GIVEN,
        within=within if named is not None else None,
    )


def is_shown_at(exposure: Exposure, path: str) -> bool:
    """Whether an exposure by path is that of a protected file, and says that it was shown."""
    return exposure.shown and exposure.sure and is_at(exposure, path)


def is_at(exposure: Exposure, path: str) -> bool:
    """Whether an exposure is of the file at a path, which may be the end of a longer one."""
    mine = exposure.path or ""
    return mine == path or mine.endswith(f"/{path}")


class Reason(NamedTuple):
    """Something that is to be said of a line of a file; line 0 is of no line.

    ``kind`` is what reasons have in common that say the same of different things; ``times`` counts
    places of which only the first is known. ``gap`` is what cannot be seen, None of an exposure.
    """

    file: str
    line: int
    text: str
    kind: str
    times: int = 1
    gap: Gap | None = None


def exposure_reason(file: str, each: Exposure, times: int) -> Reason:
    """The reason that an exposure is."""
    what = each.title
    if each.sure:
        where = f" in {each.within}" if each.within else ""
        text = f"{what} was {'shown' if each.shown else 'opened'}{where}"
        return Reason(file, each.line, f"{text} ({each.channel})", each.channel, times)
    text = (each.doubt or UNSURE).format(what, each.tool)
    return Reason(file, each.line, f"{text} ({each.channel})", f"not sure, {each.channel}", times)


def gap_reason(file: str, gap: Gap) -> Reason:
    """The reason that a gap is."""
    kind = gap.cause if gap.channel in ("unknown", gap.cause) else f"{gap.cause}, {gap.channel}"
    return Reason(file, gap.line, f"{gap.what} ({kind})", kind, gap=gap)


def said_once(reasons: Iterable[Reason]) -> list[str]:
    """Each text once for each file, with every line that is known."""
    return [_said(same, None) for same in _alike(reasons, "file text")]


def said_shortly(reasons: Iterable[Reason], most: int) -> list[str]:
    """Each text once, and ``most`` texts of each kind; what is left out is counted."""
    said = []
    for same in _alike(reasons, "kind"):
        texts = _alike(same, "text")
        said += [_said(each, most) for each in texts[:most]]
        if texts[most:]:
            said.append(f"and {len(texts) - most} more such reasons ({same[0].kind})")
    return said


def _alike(reasons: Iterable[Reason], names: str) -> list[list[Reason]]:
    """Reasons in groups, each of those that have the same values of some fields."""
    groups: dict[tuple[object, ...], list[Reason]] = {}
    for one in reasons:
        groups.setdefault(tuple(getattr(one, name) for name in names.split()), []).append(one)
    return list(groups.values())


def _said(same: list[Reason], most: int | None) -> str:
    """One text, with where it stands: in one file by lines, of several files by the first."""
    first = same[0]
    places = {(one.file, one.line): one.times for one in same}
    where = f"{first.file}:{first.line}" if first.line else first.file
    words = f"{where}: {first.text}" if where else first.text
    files = {file for file, _ in places}
    times = sum(places.values())
    lines = sorted({line for _, line in places} - {first.line})
    if len(files) > 1:
        return f"{words}; {times} times, in {len(files)} files"
    if times > len(places):
        return f"{words}; {times} times"
    if not lines:
        return words
    rest = "" if most is None or len(lines) <= most else f" and {len(lines) - most} more"
    listed = ", ".join(map(str, lines[:most]))
    return f"{words}; also in line{'s' * (len(lines) > 1)} {listed}{rest}"
