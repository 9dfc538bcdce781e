"""What a session exposed, as it is found, and the words for it. Pure.

A session may have the same reason on hundreds of lines, and a folder in hundreds of sessions: it
is said once.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import NamedTuple, Self

from tripod.verify.isolation.globs import NeverRule
from tripod.verify.isolation.phrases import ProtectedText
from tripod.verify.sessions.items import Channel, Gap, Given, Part

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


_TOGETHER = 16_384
"""Characters of texts that are searched together, or a little more: nearly none has protected text.

Alone each costs some 10 µs more; more of them have more words than a processor keeps at hand.
"""


_LONG = 4 * _TOGETHER
"""Characters of which nobody goes ahead while they are searched: memory has a limit."""


class _Waiting(NamedTuple):
    """A text that is to be searched: with what was found by path of it, and the tool."""

    given: Given
    part: Part
    by_path: list[Exposure]
    tool: str | None


class TextSearch:
    """Searches texts, and keeps what is ``found`` in the order of the file.

    What is found by path while texts wait waits behind them. Texts may be searched by another
    process, and some wait for that.
    """

    def __init__(
        self, rule: NeverRule | None, protected: ProtectedText, found: ExposureList
    ) -> None:
        self.rule, self.protected, self.found = rule, protected, found
        self._waiting: list[_Waiting | Exposure] = []
        self._size = 0
        self._asked = deque[tuple[list[_Waiting | Exposure], Callable[[], list[list[int]]]]]()

    def add(self, given: Given, part: Part, by_path: list[Exposure], tool: str | None) -> None:
        """Take in a text, with what was found by path of it, and the tool that gave it."""
        self._waiting.append(_Waiting(given, part, by_path, tool))
        self._size += len(given.text)
        if self._size > _TOGETHER:
            self._ask(self.protected.ahead if self._size < _LONG else 0)

    def extend(self, exposures: Iterable[Exposure]) -> None:
        """Take in what was found by path."""
        if self._waiting or self._asked:
            self._waiting += exposures
        else:
            self.found += exposures

    def end(self) -> ExposureList:
        """Search the texts that wait; give all that was found until now."""
        self._ask(0)
        return self.found

    def _ask(self, ahead: int) -> None:
        """Have the texts that wait searched, and take what was found but of the last searches."""
        waiting, self._waiting, self._size = self._waiting, [], 0
        texts = [one for one in waiting if isinstance(one, _Waiting)]
        each = [text for one in texts for text in (one.given.text, *one.part.texts)]
        self._asked.append((waiting, self.protected.ask(each) if each else list))
        while len(self._asked) > ahead:
            self._take(*self._asked.popleft())

    def _take(
        self, waiting: list[_Waiting | Exposure], answer: Callable[[], list[list[int]]]
    ) -> None:
        found = iter(answer())
        for one in waiting:
            if isinstance(one, Exposure):
                self.found.append(one)
                continue
            here = next(found, None)
            if here is None:
                continue
            # Where it meets the text before it, what stands in neither.
            before, *joints = [next(found) for _ in one.part.texts] or [[]]
            both = {number for joint in joints for number in joint}
            numbers = *here, *sorted(both.difference(here, before))
            self.found += [
                exposure_of_text(one.given, None, named=path, tool=one.tool)
                for path in dict.fromkeys(self.protected.paths[number] for number in numbers)
                if self.rule is None or not any(_is_same(each, path) for each in one.by_path)
            ]


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


def _is_same(exposure: Exposure, path: str) -> bool:
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
