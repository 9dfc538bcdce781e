"""What a session exposed, as it is found, and the words for it. Pure.

A session may have the same reason on hundreds of lines, and a folder in hundreds of sessions: it
is said once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple, Self

from tripod.verify.sessions.items import Channel, Gap, Given

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
