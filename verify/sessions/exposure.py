"""Which files a session showed to its model, or opened, and whether a rule was kept. Pure.

By path: what tool calls and the program name. By content: where text of a protected file stands in
what the model was given. A verdict is *clean* only if nothing was found and nothing is untold.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from tripod.ledger.words import RUN, without_escapes
from tripod.ledger.words import words_of_text as words_of
from tripod.verify.isolation.globs import NeverRule
from tripod.verify.isolation.phrases import LineIndex, PhraseIndex, SeedPairs, VisiblePhrases
from tripod.verify.isolation.reasons import (
    COPY,
    EARLIER,
    FAILED,
    FOLDER,
    FORM,
    MAY_BE_GIVEN,
    NOT_COMPARED,
    PARTLY,
    PATTERN,
    SPELLING,
    TOOL,
    UNANSWERED,
    UNSURE,
    Exposure,
    ExposureList,
    Reason,
    exposure_reason,
    gap_reason,
    said_once,
)
from tripod.verify.sessions.items import (
    Call,
    Channel,
    Gap,
    GapList,
    Given,
    Item,
    Session,
    fields,
    is_error_text,
    is_own_error,
    strings_of,
)
from tripod.verify.sessions.programs import OpenedPath, ShellReading
from tripod.verify.sessions.shell import ANY, opened_by, resolved

Told = Literal["clean", "findings", "cannot tell"]

_OPAQUE = frozenset(("mcp", "tool", "resource", "script"))
_UNNAMED = fields("hook notice background summary mention attachment resource skill")
"""Channels whose text may be of any file, and does not say of which: only its words can tell."""

_MIXED = fields("skill")
"""Channels whose text may hold more than the file that it names: a skill runs commands."""

_READ = frozenset(("read", "search", "shell"))
_NO_FILES = frozenset(("names", "subagent", "web", "skill", "paste", "background"))
_PATHLIKE = re.compile(r"[^\s]*[/.][^\s]*")
_MAGIC = re.compile(r"[*?\[\]{}]")
_ENDS = re.compile("[\x1b\x07]")
"""How what a terminal does not show begins and ends; between them may stand any text."""

_NUMBERS = re.compile(r"\n(?:[^\s:]+:)?[ \t]*[0-9]+[\t:|\u2192-]")
"""What programs put before each line of a file: its number, and where several are, its name.

A line is told by the end of the one before: a search for that takes a tenth of one for ``^``.
"""

_LISTED = re.compile(
    r"""^(?:Output:\ )?(?:
    (?:File:\ )?(\S*[^\s:]):?\n(?=\s*(?:Line\ |L)?\d+[:-])  # a name over numbered lines
    | (?:(?:HEAD|main|master|[0-9a-f]{7,40})[~^0-9]*:)?  # git grep begins with the revision
      ((?:[A-Za-z]:)?[^\s:]++):(?!\d+$|$)  # a line of a file behind the file's name
    | (?:---|\+\+\+)\ (?:[ab]/)?(\S+)
    | diff\ -(?!-git).*[ \t](\S+)$
    | (?P<counted>(?:[A-Za-z]:)?[^\s:]++):\d+$
    | (?P<alone>(?:[A-Za-z]:)?[^\s:]++):?$
    )""",
    re.MULTILINE | re.VERBOSE,
)
"""Where the answer of a search says of which file a text is. A name elsewhere is only a word."""


class ProtectedText:
    """Text that must not reach the model, of numbered files."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.is_searchable = False  # whether there is text, and all of it can be found
        self.searchable = 0  # files of which at least a part can be found
        self._seeds = SeedPairs()
        self._runs, self._lines = PhraseIndex(self._seeds), LineIndex(self._seeds)
        self._allowed, self._allowed_lines = VisiblePhrases(), set[str]()

    def allow(self, text: str) -> None:
        """Take a text that may be read, before those that may not: what both have counts not."""
        self._allowed.add(0, text)
        self._allowed_lines.update(" ".join(words_of(line)) for line in text.splitlines())

    def add(self, path: str, text: str) -> None:
        """Protect the text of a file: 12 words in a row of it, or a shorter line of it whole."""
        words = words_of(text)
        self._runs.add(len(self.paths), words, self._allowed.before(1))
        found = len(words) >= RUN
        if self._allowed_lines:
            lines = (
                line
                for line in text.splitlines()
                if " ".join(words_of(line)) not in self._allowed_lines
            )
            text = "\n".join(lines)
        found = self._lines.add(len(self.paths), text) or found
        self.searchable += found
        self.is_searchable = found and (self.is_searchable or not self.paths)
        self.paths.append(path)

    def found_in(self, text: str) -> Iterator[str]:
        """Files of which text stands in a text, each once."""
        if not self.paths:
            return
        found = set[int]()
        if "\x1b" in text:
            found.update(self._found_in(_ENDS.sub(" ", text)))  # with what a link hides
            text = without_escapes(text)
        found.update(self._found_in(text))
        plain = _NUMBERS.sub("\n", f"\n{text}")
        if len(plain) <= len(text):
            found.update(self._found_in(plain))
        yield from dict.fromkeys(self.paths[number] for number in sorted(found))

    def _found_in(self, text: str) -> Iterator[int]:
        words = words_of(text)
        seeds = self._seeds.of(words)
        yield from (number for number, _ in self._runs.find(words, seeds))
        yield from (number for number, _ in self._lines.find(words, seeds))


@dataclass
class _Open:
    """A call that waits for its answer: what it opened, and what was run for it."""

    call: Call
    exposures: list[Exposure] = field(default_factory=list)
    listed: list[OpenedPath] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    opaque: list[Gap] = field(default_factory=list)
    ran: bool = False


@dataclass(slots=True)
class _CallsOfId:
    """All calls with one id: ids may be one word for all calls. It stays, so it is small.

    ``waiting`` are those without an answer, None where all have one; ``settled`` is one that was
    answered and opened something, ``answers`` the hashes of what they got.
    """

    waiting: deque[_Open] | None = None
    settled: _Open | None = None
    answers: set[int] = field(default_factory=set)


class SessionExposures:
    """Collects what one file of a session exposed; ``add`` each item in the order of the file.

    Without a rule every file counts. ``denied`` has the id of each call that was denied, and
    whether it was for such a file. ``closed`` are channels that other evidence shows whole,
    although the program leaves no record of them. ``each`` gets every exposure as it is found; then
    only the first of each kind is kept.
    """

    def __init__(
        self,
        rule: NeverRule | None,
        protected: ProtectedText,
        file: str = "",
        closed: frozenset[Channel] = frozenset(),
        each: Callable[[Exposure], None] | None = None,
    ) -> None:
        self.rule, self.protected, self.file, self.closed = rule, protected, file, closed
        self.found = ExposureList(each, self._counts)
        self.gaps = GapList()
        self.agents: set[str] = set()
        self.sessions: list[Session] = []
        self.denied: list[tuple[str, bool]] = []
        self._roots: dict[str, None] = {}
        self._calls: dict[str, _CallsOfId] = {}
        self._last: _Open | None = None

    def add(self, item: Item) -> None:
        """Judge one item."""
        if isinstance(item, Call):
            self.agents.add(item.agent)
            self._called(item)
        elif isinstance(item, Given):
            self.agents.add(item.agent)
            self._given(item)
        elif isinstance(item, Gap):
            if not _is_unrecorded(item, self.closed):
                self.gaps.append(item)
        else:
            self._began(item)

    def end(self) -> None:
        """Say what stays open; the last call may be broken off. More may be added, and ended."""
        for calls in self._calls.values():
            self._leave_open(calls)
        self.gaps.close()

    def forget_calls(self) -> None:
        """Forget the calls, after the end: what is judged with many other files stays small."""
        self._calls.clear()
        self._last = None

    def close(self, channel: Channel) -> None:
        """Take a channel for seen: other evidence shows all that came by it."""
        self.closed |= {channel}
        self.gaps[:] = [gap for gap in self.gaps if not _is_unrecorded(gap, {channel})]

    def counted(self) -> Iterator[tuple[Exposure, int]]:
        """The exposures that a verdict counts, and how often: without a rule, of protected text.

        A command that opened a file of that name may have shown its text in another form.
        """
        by_text = {each.named for each in self.found if each.path is None}
        for each in self.found:
            times = 1 + self.found.more[each]
            if self.rule is not None or each.path is None:
                yield each, times
            elif self._counts(each, by_text):
                yield each._replace(sure=False, doubt=FORM), times

    def _counts(self, each: Exposure, but: Container[str | None] = ()) -> bool:
        """Whether a verdict may count an exposure, which is not of a file among ``but``."""
        if self.rule is not None or each.path is None:
            return True
        return (
            each.sure
            and each.channel in ("shell", "script")
            and any(_is_at(each, path) for path in self.protected.paths if path not in but)
        )

    def _began(self, session: Session) -> None:
        self.agents.add(session.id)
        self.sessions.append(session)
        if session.cwd:
            self._roots[resolved(session.cwd, "")] = None

    # Calls

    def _called(self, call: Call) -> None:
        if call.cwd and not self._roots:
            self._roots[resolved(call.cwd, "")] = None
        if call.ran:
            self._ran(call)
            return
        one = _Open(call._replace(input=None))  # it may be large
        self._opens(one, call)
        calls = self._calls_of(call.id)
        if calls.waiting is None:
            calls.waiting = deque()
        calls.waiting.append(one)
        self._last = one

    def _calls_of(self, name: str) -> _CallsOfId:
        """The calls with an id; of very many the older ones are forgotten: memory has a limit."""
        calls = self._calls.get(name)
        if calls is None:
            if len(self._calls) >= _REMEMBERED:
                for old in list(self._calls)[: _REMEMBERED // 2]:
                    self._leave_open(self._calls.pop(old))
            calls = self._calls[name] = _CallsOfId()
        return calls

    def _leave_open(self, calls: _CallsOfId) -> None:
        """Say that calls have no answer; the last call may be broken off."""
        for one in calls.waiting or ():
            if one is not self._last:
                what = f"no answer to {one.call.tool} {one.call.id[:40]} is there"
                self.gaps.append(Gap("unanswered", one.call.line, what, one.call.channel))
            self.gaps.extend(one.opaque)
            self.found += [_doubted(each, UNANSWERED) for each in one.exposures]
        calls.waiting = None

    def _ran(self, call: Call) -> None:
        """What a program says that it ran: it counts before what was asked for."""
        calls = self._calls.get(call.id)
        waiting = calls.waiting if calls is not None else None
        one = waiting[0] if waiting else self._last
        if one is None or not self._calls_of(one.call.id).waiting:
            one = _Open(call)
            self._opens(one, call)
            self._settle(one, None)
            return
        if not one.ran:
            one.opaque.clear()
        if waiting and not one.ran:
            one.exposures.clear()
            one.listed.clear()
        one.ran = True
        self._opens(one, call)
        if call.output is not None:
            one.outputs.append(call.output)

    def _opens(self, one: _Open, call: Call) -> None:
        """Note what a call opens by the paths that it names, or by its command."""
        reading = opened_by_call(call)
        for opened in (*reading.opened, *(reading.also if self.rule is not None else ())):
            self._path(one, call, opened)
        way: Channel = "tool" if call.channel == "web" else "shell"
        one.opaque += [Gap("opaque", call.line, why, way) for why in reading.opaque]
        unnamed = call.channel in _READ and not (call.paths or isinstance(call.command, str))
        if call.channel in _OPAQUE or unnamed:
            what = f"nobody knows what the tool {call.tool[:40]} read"
            one.opaque.append(Gap("opaque", call.line, what, call.channel))

    def _path(self, one: _Open, call: Call, opened: OpenedPath) -> None:
        rule = self.rule
        if len(opened.path) > _MAX_PATH:
            opened = opened._replace(path=f"/{ANY}", sure=False)
        exact = opened.sure and not opened.recursive
        if rule is None or (exact and rule.hits(opened.path)):
            one.exposures.append(_exposure(call, opened, sure=exact))
        elif not (exact and rule.excepts(opened.path)):
            under = opened.sure and opened.recursive and rule.hits(f"{opened.path}/{_BELOW}")
            # A session in very many folders: what is anywhere in them is looked for.
            roots = self._roots if len(self._roots) <= _MAX_ROOTS else ()
            if under or rule.may_hit(opened.path, roots, recursive=opened.recursive):
                doubt = SPELLING if exact else ""
                one.exposures.append(_exposure(call, opened, sure=under, doubt=doubt))
        if opened.lists_names:
            one.listed.append(opened)

    # Texts

    def _given(self, given: Given) -> None:
        one = self._answered(given)
        by_path: list[Exposure] = []
        if one is not None:
            by_path = self._settle(one, given)
        if given.named is not None and not by_path and not (given.failed or given.denied):
            path = resolved(given.named, given.cwd)
            if self.rule is None or self.rule.hits(path):
                by_path = [_of_text(given, path)]
                self.found += by_path
            elif self.rule.excepts(path):
                pass
            elif path.startswith("/") and self.rule.may_hit(path, (), recursive=False):
                self.found.append(_of_text(given._replace(sure=False), path))
        if (
            (given.call is None or (given.channel == "skill" and not given.failed))
            and (given.named is None or given.channel in _MIXED)
            and given.channel in _UNNAMED
            and not self.protected.is_searchable
            and given.text.strip()
        ):
            what = f"text came by {given.channel}, and {NOT_COMPARED}"
            self.gaps.append(Gap("missing", given.line, what, given.channel))
        for path in self.protected.found_in(given.text):
            if self.rule is None or not any(_is_same(each, path) for each in by_path):
                tool = None if one is None else one.call.tool
                self.found.append(_of_text(given, None, named=path, tool=tool))

    def _answered(self, given: Given) -> _Open | None:
        if given.call is None:
            return None
        calls = self._calls_of(given.call)
        text = hash(given.text)
        if not calls.waiting:
            if not calls.answers:
                what = f"the call {given.call[:40]!r} that this answers"
                self.gaps.append(Gap("missing", given.line, what, given.channel))
            elif text not in calls.answers:
                what = f"whose text a second answer to the call {given.call[:40]!r} was"
                self.gaps.append(Gap("unknown", given.line, what, given.channel))
            return calls.settled
        one = calls.waiting.popleft()
        if not calls.waiting:
            calls.waiting = None
        calls.answers.add(text)
        if one.exposures or one.opaque or one.listed:
            calls.settled = one
        return one

    def _settle(self, one: _Open, given: Given | None) -> list[Exposure]:
        """What a call exposed, now that its answer is known: it is shown, opened, or neither."""
        text = "" if given is None else given.text
        if given is not None and given.denied:
            self.denied.append((one.call.id, bool(one.exposures)))
            if not is_error_text(text, denied=True):
                self._doubt(one)
            return []
        shell = one.call.channel in ("shell", "script") or one.ran
        failed = given is not None and given.failed
        if failed and not shell:
            if is_own_error(text, of_server=one.call.channel == "mcp"):
                return []
            if one.call.channel in _OPAQUE or not is_error_text(text):
                self._doubt(one)
            return []  # an error was shown, and no text of a file
        found = []
        for each in () if one.call.channel == "edit" and _MADE.fullmatch(text) else one.exposures:
            sure, shown = each.sure and not failed, bool(text.strip()) and not failed
            if one.outputs:
                shown = shown and any(_overlap(output, text) for output in one.outputs)
            lost = shell and not (shown or any(map(str.strip, one.outputs)))  # in a copy, perhaps
            if each.channel == "edit":  # it may show the lines around what was changed
                lost = shown and "\n" in text.strip() and not text.startswith(_PATCHED)
                shown = shown and _NUMBERS.search(f"\n{text}") is not None
            if not each.sure:
                shown = False
            one_found = each._replace(sure=sure, shown=shown)
            found.append(one_found if sure else _doubted(one_found, FAILED))
            if lost and sure and not shown and self.rule is not None:
                self.found.elsewhere.append(_doubted(one_found, COPY))
        if given is not None and one.listed and self.rule is not None:
            found += self._listed(one.call, given)
        self.found += found
        self.gaps.extend(one.opaque)
        return found

    def _doubt(self, one: _Open) -> None:
        """A call that failed, by the record, and whose answer is no error of the program."""
        self.gaps.extend(one.opaque)
        self.found += [_doubted(each, FAILED) for each in one.exposures]

    def _listed(self, call: Call, given: Given) -> Iterator[Exposure]:
        """Files that the answer of a search names: their lines were shown, or only counted."""
        assert self.rule is not None
        found: dict[str, bool] = {}
        for match in _LISTED.finditer(without_escapes(given.text)):
            named = match[match.lastindex or 0].removeprefix("./")
            if not _PATHLIKE.fullmatch(named):
                continue
            if call.channel == "search":
                found[named] = found.get(named, False) or match.lastgroup is None
            elif match.lastgroup != "alone":  # a command may list names for any reason
                found[named] = True
        for named, shown in found.items():
            path = resolved(named, call.cwd)
            if self.rule.hits(path):
                one = _exposure(call, OpenedPath(named, path), sure=True)
                yield one._replace(line=given.line, shown=shown)


def opened_by_call(call: Call) -> ShellReading:
    """Which files a call opens, by the paths that it names or by its command."""
    if call.channel == "shell" and call.command is not None:
        return _opened_by(call, call.command)
    known = call.channel not in _OPAQUE
    found = ShellReading()
    if call.channel == "web":
        for url in _LOCAL.findall("\n".join(strings_of(call.input))):
            if url.startswith("file:"):
                found.opened.append(OpenedPath(url, resolved(url, call.cwd)))
            else:
                found.opaque.append(f"what a server on this machine gave, {url[:80]},")
    for named in call.paths if call.channel not in _NO_FILES else ():
        if known or _PATHLIKE.fullmatch(named):
            sure = known and not (_MAGIC.search(named) and not call.recursive)
            path = resolved(named, call.cwd)
            found.opened.append(OpenedPath(named, path, sure, call.recursive, call.recursive))
    return found


_LOCAL = re.compile(
    r"""\b(?:file://[^\s"'<>)]+|https?://(?:[^\s/@]*@)?(?:localhost|127\.|0\.0\.0\.0|\[::1?\])[^\s"'<>)]*)""",
    re.IGNORECASE,
)
"""Addresses by which a tool for the web gets files of this machine."""


def _is_unrecorded(gap: Gap, channels: Container[Channel]) -> bool:
    return gap.is_unrecorded and gap.channel in channels


_MAX_PATH, _MAX_ROOTS = 4096, 64
_REMEMBERED = 20_000  # calls; an answer to an older one is of a call that is not there
_SHORT_COMMAND = 4096  # characters
_opened_again = lru_cache(maxsize=512)(opened_by)
"""Programs say a command when they ask for it and when they ran it, and agents repeat many."""
_BELOW = "\ufffd"  # a name that no pattern but a wildcard fits


def _opened_by(call: Call, command: str) -> ShellReading:
    """What a command opens, read by the shell that it is for."""
    is_named = "powershell" in call.tool.lower() or "pwsh" in call.tool.lower()
    if is_named or (call.cwd[1:3] == ":\\" and call.tool != "Bash"):
        from tripod.verify.sessions.powershell import opened_by_powershell

        return opened_by_powershell(command, call.cwd, is_named=is_named)
    return (_opened_again if len(command) <= _SHORT_COMMAND else opened_by)(command, call.cwd)


def _doubted(each: Exposure, why: str) -> Exposure:
    """An exposure that is not sure; what was in doubt before stays the reason."""
    return each._replace(sure=False, shown=False, doubt=each.doubt or why)


def _exposure(call: Call, opened: OpenedPath, *, sure: bool, doubt: str = "") -> Exposure:
    if not sure and not doubt:
        if call.channel in _OPAQUE:
            doubt = TOOL
        elif ANY in opened.path:
            doubt = PARTLY
        elif _MAGIC.search(opened.named):
            doubt = PATTERN
        else:
            doubt = FOLDER if opened.recursive else UNSURE
    return Exposure(
        call.line,
        call.agent,
        call.id or None,
        call.tool,
        call.channel,
        opened.named,
        opened.path,
        sure,
        shown=False,
        doubt=doubt,
    )


def _of_text(
    given: Given, path: str | None, *, named: str | None = None, tool: str | None = None
) -> Exposure:
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
    return exposure.shown and exposure.sure and _is_at(exposure, path)


def _is_at(exposure: Exposure, path: str) -> bool:
    mine = exposure.path or ""
    return mine == path or mine.endswith(f"/{path}")


_MADE = re.compile(
    r"(?:File created successfully at|Successfully created and wrote to new file|Created file)\b"
    r"[^\n]{,400}\n?"
)
"""What programs answer to a call that made a file: there was none to be read."""

_PATCHED = "Success. Updated the following files:"


_SHORT = 8  # characters from which on a line of an output is told from another


def _overlap(output: str, text: str) -> bool:
    """Whether text of an output stands in a text: all of it, or a line or 12 words of it."""
    lines = map(str.strip, (output, *output.splitlines()))
    if any(line in text for line in lines if len(line) >= _SHORT or line == output.strip() != ""):
        return True
    one = ProtectedText()
    one.add("output", output)
    return any(one.found_in(text))


@dataclass
class ExposureVerdict:
    """The answer to "did it read that?", with what it rests on."""

    found: list[Reason]
    unseen: list[Reason]
    """Why the rest cannot be told, also where there are findings."""
    coverage: dict[str, object]

    @property
    def told(self) -> Told:
        """The answer."""
        return "findings" if self.found else "cannot tell" if self.unseen else "clean"

    @property
    def reasons(self) -> list[str]:
        """Each file that was found, or else each reason why nobody can tell."""
        return said_once(self.found or self.unseen)

    @property
    def untold(self) -> list[str]:
        """Words for ``unseen``."""
        return said_once(self.unseen)


_FILELESS = fields("web edit names")


def judge_exposures(
    read: Sequence[SessionExposures],
    counted: Counter[str],
    *,
    shown_only: bool = False,
    needs_parents: bool = True,
) -> ExposureVerdict:
    """One verdict over all files of the sessions; a missing child is one that no file is of.

    So is a missing parent, where ``needs_parents``: what a subagent was told is in its file, and
    what its parent saw is asked of no rule about subagents alone.
    """
    agents = set().union(*(one.agents for one in read)) if read else set()
    gaps = [
        (one.file, gap)
        for one in read
        for gap in one.gaps
        if not (gap.child and gap.child in agents) and gap.channel not in _FILELESS
    ]
    gaps += _orphans(read) if needs_parents else ()
    found = [(one.file, *pair) for one in read for pair in one.counted()]
    breaches = [
        exposure_reason(*one) for one in found if one[1].sure and (one[1].shown or not shown_only)
    ]
    unsure = [exposure_reason(*one) for one in found if not one[1].sure]
    if shown_only:
        unsure += (
            exposure_reason(one.file, each, 1 + one.found.elsewhere.more[each])
            for one in read
            for each in one.found.elsewhere
        )
    causes = Counter(gap.cause for _, gap in gaps)
    for one in read:
        for (cause, channel), number in one.gaps.more.items():
            causes[cause] += number - 1 if channel not in _FILELESS else 0
    coverage: dict[str, object] = {
        **counted,
        "exposures": sum(one.times for one in breaches),
        "unsure": sum(one.times for one in unsure),
        "denied": sum(is_of_file for one in read for _, is_of_file in one.denied),
        "gaps": dict(sorted(causes.items())),
    }
    unseen = unsure + [gap_reason(file, gap) for file, gap in gaps]
    if not read:
        unseen = [Reason("", 0, "no file of a session was read", "missing")]
    return ExposureVerdict(breaches, unseen, coverage)


def _orphans(read: Sequence[SessionExposures]) -> Iterator[tuple[str, Gap]]:
    """Sessions that another one started which no file is of; none starts itself."""
    begun = [(one.file, session) for one in read for session in one.sessions]
    there = {session.id for _, session in begun if session.parent != session.id}
    for file, session in begun:
        if session.parent is not None and session.parent not in there:
            what = f"the session {session.parent[:40]} that started this one"
            yield file, Gap("missing", session.line, what, "subagent")
