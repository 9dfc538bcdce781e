"""Which files a session showed to its model, or opened, and whether a rule was kept. Pure.

By path: what tool calls and the program name. By content: where text of a protected file stands in
what the model was given. A verdict is *clean* only if nothing was found and nothing is untold.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from tripod.ledger.words import without_escapes
from tripod.verify.isolation.batch import (
    MAGIC,
    NUL,
    OPAQUE,
    PATHLIKE,
    Asking,
    ItemBatches,
    ReadyItems,
    as_known,
    only_prints,
    opened_by_call,
)
from tripod.verify.isolation.children import SessionTree, missing_children, missing_parents
from tripod.verify.isolation.globs import NeverRule
from tripod.verify.isolation.phrases import IS_NUMBERED, LISTED, NUMBERS, ProtectedText, overlaps
from tripod.verify.isolation.reasons import (
    COPY,
    FAILED,
    FOLDER,
    FORM,
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
    exposure_of_text,
    exposure_reason,
    gap_reason,
    is_at,
    is_shown_at,
    said_once,
)
from tripod.verify.isolation.refusals import MADE, is_denial, is_error_text, is_own_error
from tripod.verify.sessions.items import (
    Call,
    Channel,
    Gap,
    GapList,
    Given,
    Item,
    Part,
    fields,
    is_what_was_asked,
    text_of,
)
from tripod.verify.sessions.programs import OpenedPath, ShellReading
from tripod.verify.sessions.shell import ANY, resolved

Told = Literal["clean", "findings", "cannot tell"]

_UNNAMED = fields("hook notice background summary mention attachment resource skill")
"""Channels whose text may be of any file, and does not say of which: only its words can tell."""

_MIXED = fields("skill resource")
"""Channels whose text may be of more than is named: a skill runs commands, a server may do so."""

_READ = frozenset(("read", "search", "shell"))
_NO_CHANGE = fields("read search names web paste edit")  # they make no folder of a file


@dataclass(slots=True)
class _Open:
    """A call that waits for its answer: what it opened, and what was run for it.

    ``is_shell``: it is a command or a script, or one was run for it. ``is_mixed``: it waited beside
    others with the same id, so that its answer may be theirs. ``outputs`` are what was printed,
    each with its line and the protected files of which text stands in it.
    """

    call: Call
    exposures: list[Exposure] = field(default_factory=list)
    listed: list[OpenedPath] = field(default_factory=list)
    outputs: dict[str, tuple[int, Sequence[str]]] = field(default_factory=dict)
    opaque: list[Gap] = field(default_factory=list)
    ran: bool = False
    is_shell: bool = False
    is_answered: bool = False
    moves: bool = False
    copies: bool = False
    is_mixed: bool = False
    went: set[str] = field(default_factory=set)  # where it left the shell, or one before it


@dataclass(slots=True)
class _CallsOfId:
    """All calls with one id: ids may be one word for all calls. It stays, so it is small.

    ``waiting`` are those without an answer, None where all have one; ``settled`` is one that was
    answered and opened something, ``answers`` the hashes of what they got: mostly one.
    """

    waiting: deque[_Open] | None = None
    settled: _Open | None = None
    answers: tuple[int] | set[int] | None = None


class _OpenCalls(dict[str, _CallsOfId]):
    """The calls of a session by their ids; ``last`` is the last one, ``script`` the last script."""

    last: _Open | None = None
    script: _Open | None = None


class _Roots(dict[str, None]):
    """The folders of a session, and by them which paths a rule means; without one, all."""

    def __init__(self, rule: NeverRule | None) -> None:
        super().__init__()
        self._rule = rule
        self._judged: dict[tuple[str, bool, bool], bool | None] = {}
        self._last = ""
        self.files = set[str]()  # paths that were read as a file, so that nothing lies below

    def add(self, cwd: str) -> None:
        """Take in a folder; of very many only that they are."""
        if cwd == self._last:
            return
        self._last, folder = cwd, resolved(cwd, "")
        if folder not in self and len(self) <= _MAX_ROOTS:
            self[folder] = None
            self._judged.clear()

    def is_hit(self, opened: OpenedPath) -> bool | None:
        """Whether a path is for certain, or may be, one that counts; None if it does not."""
        key = opened.path, opened.sure, opened.recursive
        if key not in self._judged:
            if len(self._judged) >= _MOST_JUDGED:
                self._judged.clear()
            self._judged[key] = self._is_hit(opened)
        return self._judged[key]

    def _is_hit(self, opened: OpenedPath) -> bool | None:
        rule, path = self._rule, opened.path
        exact = opened.sure and not opened.recursive
        if rule is None or (exact and rule.hits(path)):
            return exact
        if exact and rule.excepts(path):
            return None
        under = opened.sure and opened.recursive and rule.hits(f"{path}/{_BELOW}")
        # A session in very many folders: what is anywhere in them is looked for.
        roots = self if len(self) <= _MAX_ROOTS else ()
        return under if under or rule.may_hit(path, roots, recursive=opened.recursive) else None


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
        *,
        helper: Asking | None = None,
    ) -> None:
        self.rule, self.protected, self.file, self.closed = rule, protected, file, closed
        # No method of this: it would be freed only when somebody looks for cycles.
        counts = partial(self._counts, protected.paths if rule is None else None)
        self._found = ExposureList(each, counts)
        self._batches = ItemBatches(rule, protected, helper)
        self._reading: ShellReading | None = None  # of the call that is judged, if there is one
        self._gaps = GapList()
        self._tree = SessionTree()
        self._denied: list[tuple[str, bool]] = []
        self._roots = _Roots(rule)
        self._calls = _OpenCalls()

    @property
    def found(self) -> ExposureList:
        """What was exposed until now, in the order of the file."""
        self._judge_all()
        return self._found

    @property
    def gaps(self) -> GapList:
        """What could not be seen until now."""
        self._judge_all()
        return self._gaps

    @property
    def tree(self) -> SessionTree:
        """The sessions and agents until now."""
        self._judge_all()
        return self._tree

    @property
    def denied(self) -> list[tuple[str, bool]]:
        """Calls that were denied until now."""
        self._judge_all()
        return self._denied

    def add(self, item: Item) -> None:
        """Judge one item, now or with others that come after it."""
        if ready := self._batches.add(item):
            self._judge(ready)

    def _judge_all(self) -> None:
        self._judge(self._batches.end())

    def _judge(self, batches: Iterable[ReadyItems]) -> None:
        for items, paths, readings in batches:
            for at, (item, part) in enumerate(items):
                if isinstance(item, Gap):
                    if item.is_unrecorded and item.channel in self.closed:
                        self._gaps.relied.add(item.channel)
                    else:
                        self._gaps.append(self._tree.of_child(item) if item.child else item)
                    continue
                self._tree.add(item)
                if isinstance(item, Given):
                    self._given(item, part, paths.get(at, ()))
                elif isinstance(item, Call):
                    self._reading = readings.get(at)
                    self._called(item, paths.get(at, ()))
                elif item.cwd:
                    self._roots.add(item.cwd)

    def end(self) -> None:
        """Say what stays open; the last call may be broken off. More may be added, and ended."""
        self._judge_all()
        for calls in self._calls.values():
            self._leave_open(calls)
        self._gaps.close()

    def forget_calls(self) -> None:
        """Forget the calls, after the end: what is judged with many other files stays small."""
        self._calls = _OpenCalls()

    def close(self, channel: Channel) -> None:
        """Take a channel for seen: other evidence shows all that came by it."""
        self._judge_all()
        self.closed |= {channel}
        self._gaps.fill(channel)

    def counted(self) -> Iterator[tuple[Exposure, int]]:
        """The exposures that a verdict counts, and how often: without a rule, of protected text.

        A command that opened a file of that name may have shown its text in another form, and where
        the program names it as given, and the record lacks its text, nothing can be compared.
        """
        by_text = {each.named for each in self.found if each.path is None}
        for each in self.found:
            times = 1 + self.found.more[each]
            if self.rule is not None or each.path is None:
                yield each, times
            elif self._counts(self.protected.paths, each, by_text):
                yield each._replace(sure=False, doubt=FORM), times

    @staticmethod
    def _counts(
        protected: Sequence[str] | None, each: Exposure, but: Container[str | None] = ()
    ) -> bool:
        """Whether a verdict may count an exposure, of a protected file that is not ``but`` some."""
        return (protected is None or each.path is None) or (
            each.sure
            # The program may name a file that it gave, and the record have no text of it.
            and (each.channel in ("shell", "script") or (each.call is None and not each.shown))
            and any(is_at(each, path) for path in protected if path not in but)
        )

    # Calls

    def _called(self, call: Call, printed: Sequence[str] = ()) -> None:
        if call.cwd:
            self._roots.add(call.cwd)
        if call.ran:
            self._ran(call, printed)
            return
        one = _Open(call.without_input())
        if self._roots.files and call.channel not in _NO_CHANGE:
            said = text_of([call.command, call.input])
            self._roots.files = {
                each for each in self._roots.files if each.rpartition("/")[2] not in said
            }
        self._opens(one, call)
        calls = self._calls_of(call.id)
        if calls.waiting is None:
            calls.waiting = deque()
        elif calls.waiting:
            one.is_mixed = calls.waiting[-1].is_mixed = True
        calls.waiting.append(one)
        self._calls.last = one
        if call.channel == "script":
            self._calls.script = one

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
            if one is not self._calls.last:
                what = f"no answer to {one.call.tool} {one.call.id[:40]} is there"
                self._gaps.append(Gap("unanswered", one.call.line, what, one.call.channel))
            self._gaps.extend(one.opaque)
            self._found.extend(_doubted(each, UNANSWERED) for each in one.exposures)
            self._printed(one, [], ())
        calls.waiting = None

    def _ran(self, call: Call, printed: Sequence[str]) -> None:
        """What a program says that it ran: it counts for what was asked for in the same words.

        Where it is something else, both count. What no call with its id waits for is of a script.
        """
        calls = self._calls.get(call.id)
        waiting = calls.waiting if calls is not None else None
        if waiting:
            one = next((one for one in waiting if is_what_was_asked(one.call, call)), waiting[0])
            same = is_what_was_asked(one.call, call)
            if same and not one.ran:
                one.opaque.clear()
                one.exposures.clear()
                one.listed.clear()
            elif same is False and len(waiting) == 1:
                what = f"the call {call.id[:40]} ran something else than it asked for"
                self._gaps.append(Gap("witness", call.line, what, call.channel))
        else:
            script = self._calls.script
            one = _Open(call) if script is None or script.is_answered else script
        one.ran = True
        self._opens(one, call)
        if call.output is not None:
            one.outputs.setdefault(call.output, (call.line, printed))
        if one.call is call:
            self._printed(one, self._settle(one, None), ())

    def _printed(self, one: _Open, by_path: list[Exposure], shown: Sequence[str]) -> None:
        """Files of which text was printed, and none was shown nor named: they were opened."""
        lines = {path: line for line, paths in one.outputs.values() for path in paths}
        for path, line in lines.items():
            if path not in shown and not any(each.sure and is_at(each, path) for each in by_path):
                opened = _exposure(one.call, OpenedPath(path, path), sure=True)
                self._found.append(opened._replace(path=None, line=line))

    def _opens(self, one: _Open, call: Call) -> None:
        """Note what a call opens by the paths that it names, or by its command."""
        reading = self._reading or opened_by_call(call)
        one.moves |= call.channel == "edit" and _MOVES in text_of(call.input)
        one.is_shell |= call.channel in ("shell", "script")
        one.copies |= call.channel == "shell" and not only_prints(call.command or "")
        for opened in reading.opened:
            self._path(one, call, opened)
        if self.rule is not None:
            for opened in reading.also:
                self._path(one, call, opened)
            self._elsewhere(one, call, reading)
        way: Channel = "tool" if call.channel == "web" else "shell"
        one.opaque += [Gap("opaque", call.line, why, way) for why in reading.opaque]
        unnamed = call.channel in _READ and not (call.paths or isinstance(call.command, str))
        polls = call.channel == "script" and call.command == ""  # a program that is told nothing
        if (call.channel in OPAQUE and not polls) or unnamed:
            what = f"nobody knows what the tool {call.tool[:40]} read"
            one.opaque.append(Gap("opaque", call.line, what, call.channel))

    def _elsewhere(self, one: _Open, call: Call, reading: ShellReading) -> None:
        """Note what a command opens where an earlier one went: calls of one message share a shell.

        Their records name the folder in which the first of them began. A record that names another
        folder says where the shell is.
        """
        before = self._calls.last
        if (
            before is not None
            and not before.is_answered
            and (before.call.cwd, before.call.agent) == (call.cwd, call.agent)
        ):
            one.went |= before.went
        if call.channel != "shell":
            return
        for folder in sorted(one.went)[:_MOST_FOLDERS] if one.went else ():
            for opened in opened_by_call(call._replace(cwd=folder)).opened:
                self._path(one, call, opened._replace(sure=False, lists_names=False))
        if reading.ended:
            roots = tuple(f"{root}/" for root in self._roots)
            one.went |= {
                each for each in reading.ended if ANY not in each and f"{each}/".startswith(roots)
            }

    def _path(self, one: _Open, call: Call, opened: OpenedPath) -> None:
        opened = as_known(opened)
        if opened.recursive and opened.path in self._roots.files:
            opened = opened._replace(recursive=False)  # so nothing lies below it
        if opened.copied and self.rule and not self.rule.may_lose(opened.path, opened.copied):
            opened = opened._replace(recursive=False)  # it is named where it is read
        sure = self._roots.is_hit(opened)
        if sure is not None:
            doubt = SPELLING if opened.sure and not opened.recursive else ""
            one.exposures.append(_exposure(call, opened, sure=sure, doubt="" if sure else doubt))
        if opened.lists_names:
            one.listed.append(opened)

    # Texts

    def _given(self, given: Given, part: Part, paths: Sequence[str]) -> None:
        if given.about:
            self._told_of(given, given.about)
        if given.named is not None and "\0" in given.named:
            self._gaps.append(Gap("opaque", given.line, NUL, given.channel))
            given = given._replace(named=given.named.replace("\0", ""))
        one = self._answered(given)
        by_path: list[Exposure] = []
        if one is not None:
            by_path = self._settle(one, given)
            self._printed(one, by_path, paths)
        if given.named is not None and not by_path and not (given.failed or given.denied):
            path = resolved(given.named, given.cwd)
            if self.rule is None or self.rule.hits(path):
                by_path = [exposure_of_text(given, path)]
                self._found.extend(by_path)
                if not by_path[0].shown:
                    self._found.elsewhere.append(by_path[0]._replace(sure=False))
            elif self.rule.excepts(path):
                pass
            elif path.startswith("/") and self.rule.may_hit(path, (), recursive=False):
                self._found.append(exposure_of_text(given._replace(sure=False), path))
        if (
            (given.call is None or (given.channel == "skill" and not given.failed))
            and (given.named is None or given.channel in _MIXED)
            and (given.channel in _UNNAMED or self._may_be_instructions(given, part))
            and given.text.strip()
        ):
            what = f"text came by {given.channel}, and {NOT_COMPARED}"
            if self.protected.is_searchable:
                self._gaps.relied.add(given.channel)
            else:
                self._gaps.append(Gap("missing", given.line, what, given.channel))
        for path in paths:
            if self.rule is None or not any(is_shown_at(each, path) for each in by_path):
                tool = None if one is None else one.call.tool
                self._found.append(exposure_of_text(given, None, named=path, tool=tool))

    def _told_of(self, given: Given, call: str) -> None:
        """A hook has read what a call names, and may tell of it in words that no file has."""
        calls = self._calls.get(call)
        for one in () if calls is None else (*(calls.waiting or ()), calls.settled):
            for each in () if one is None else one.exposures:
                if self.rule is not None or any(is_at(each, p) for p in self.protected.paths):
                    what = f"a hook told in its own words of a call of {each.title[:200]}"
                    self._gaps.append(Gap("missing", given.line, what, given.channel))

    def _may_be_instructions(self, given: Given, part: Part) -> bool:
        """Whether instructions whose files have no names may be a file that the rule means."""
        is_unnamed = given.channel == "instructions" and not part.is_named
        return is_unnamed and self.rule is not None and self.rule.hits_instructions(given.cwd)

    def _answered(self, given: Given) -> _Open | None:
        if given.call is None:
            return None
        calls = self._calls_of(given.call)
        text = hash(given.text)
        if not calls.waiting:
            if not calls.answers:
                what = f"the call {given.call[:40]!r} that this answers"
                self._gaps.append(Gap("missing", given.line, what, given.channel))
            elif text not in calls.answers:
                what = f"whose text a second answer to the call {given.call[:40]!r} was"
                self._gaps.append(Gap("unknown", given.line, what, given.channel))
            return calls.settled
        one = calls.waiting.popleft()
        one.is_answered = True
        if not calls.waiting:
            calls.waiting = None
        if isinstance(calls.answers, set):
            calls.answers.add(text)
        else:
            calls.answers = {*calls.answers, text} if calls.answers else (text,)
        if one.exposures or one.opaque or one.listed:
            calls.settled = one
        return one

    def _settle(self, one: _Open, given: Given | None) -> list[Exposure]:
        """What a call exposed, now that its answer is known: it is shown, opened, or neither."""
        text = "" if given is None else given.text
        if given is not None and given.denied:
            self._denied.append((one.call.id, bool(one.exposures)))
            # What it asked for may have several lines, and the program repeat it.
            said = text.replace(one.call.command or "\0", "")
            by_hook = given.decided == "by hook"
            if one.is_mixed or one.outputs or not is_error_text(said, by_hook=by_hook):
                self._doubt(one)
            return []
        failed = given is not None and given.failed
        if failed and not one.is_shell:
            of_server = one.call.channel == "mcp"
            is_error = is_own_error(text, of_server=of_server) or (
                one.call.channel not in OPAQUE and is_error_text(_HEAD.sub("", text, 1))
            )
            was_allowed = given is not None and given.decided == "allowed"
            if one.is_mixed or not is_error or (was_allowed and is_denial(text)):
                self._doubt(one)
            return []  # an error was shown, and no text of a file
        is_plain = one.call.channel == "read" and not (one.is_mixed or one.call.recursive)
        if is_plain and IS_NUMBERED.match(text) and len(self._roots.files) < _MOST_PLAIN:
            self._roots.files |= {resolved(each, one.call.cwd) for each in one.call.paths}
        if not (one.exposures or one.listed):
            self._gaps.extend(one.opaque)
            return []  # as nearly all
        is_whole = given is not None and not (one.is_mixed or one.call.keeps)  # no more comes later
        if one.call.channel == "script":
            is_whole = is_whole and _COMPLETED.match(text) is not None
        found = []
        for each in () if one.call.channel == "edit" and MADE.fullmatch(text) else one.exposures:
            sure, shown = each.sure and not failed, bool(text.strip()) and not failed
            if one.outputs:
                shown = shown and any(overlaps(output, text) for output in one.outputs)
            # Where it was not printed it may be in a copy.
            kept = is_whole and not one.copies and any(map(str.strip, one.outputs))
            lost = one.is_shell and not (shown or kept)
            if each.channel == "edit":  # it may show the lines around what was changed
                lost = one.moves or (
                    "\n" in text.strip() and not _PATCHED.fullmatch(_HEAD.sub("", text, 1))
                )
                lost &= shown
                shown = shown and NUMBERS.search(f"\n{text}") is not None
            if not each.sure:
                shown = False
            one_found = each._replace(sure=sure, shown=shown)
            found.append(one_found if sure else _doubted(one_found, FAILED))
            if lost and sure and not shown and self.rule is not None:
                self._found.elsewhere.append(_doubted(one_found, COPY))
        if given is not None and one.listed and self.rule is not None:
            found += self._listed(one.call, given)
        self._found.extend(found)
        self._gaps.extend(one.opaque)
        return found

    def _doubt(self, one: _Open) -> None:
        """A call that failed, by the record, and whose answer is no error of the program."""
        self._gaps.extend(one.opaque)
        self._found.extend(_doubted(each, FAILED) for each in one.exposures)

    def _listed(self, call: Call, given: Given) -> Iterator[Exposure]:
        """Files that the answer of a search names: their lines were shown, or only counted."""
        assert self.rule is not None
        found: dict[str, bool] = {}
        if not self.rule.may_be_named(f"{given.text}\n{call.cwd}"):
            return  # as in nearly all answers
        for match in LISTED.finditer(without_escapes(given.text)):
            named = match[match.lastindex or 0].removeprefix("./")
            if not PATHLIKE.fullmatch(named):
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


_MAX_ROOTS, _MOST_FOLDERS, _MOST_PLAIN = 64, 4, 500
_REMEMBERED = 20_000  # calls; an answer to an older one is of a call that is not there
_MOST_JUDGED = 4096  # paths
_BELOW = "\ufffd"  # a name that no pattern but a wildcard fits


def _doubted(each: Exposure, why: str) -> Exposure:
    """An exposure that is not sure; what was in doubt before stays the reason."""
    return each._replace(sure=False, shown=False, doubt=each.doubt or why)


def _exposure(call: Call, opened: OpenedPath, *, sure: bool, doubt: str = "") -> Exposure:
    if not sure and not doubt:
        if call.channel in OPAQUE:
            doubt = TOOL
        elif ANY in opened.path:
            doubt = PARTLY
        elif MAGIC.search(opened.named):
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


_MOVES = "\n*** Move to: "
_HEAD = re.compile(r"Exit code: -?[0-9]+\n(?:(?!Output:)[^\n]*\n){,3}Output:\n")
_PATCHED = re.compile(r"Success\. Updated the following files:\n(?:[AMD] [^\n]*\n?)*")
_COMPLETED = re.compile(r"Script (?:completed|failed|terminated)\b")
"""How programs begin the answer of a script that is over; of one that runs on more may come."""


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
    missing = missing_children([one.tree for one in read], [one.gaps for one in read])
    gaps = [(one.file, gap) for one, some in zip(read, missing, strict=True) for gap in some]
    begun = [(one.file, session) for one in read for session in one.tree.sessions]
    orphans = missing_parents([session for _, session in begun]) if needs_parents else ()
    gaps += [(begun[number][0], gap) for number, gap in orphans]
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
        for (cause, _), number in one.gaps.more.items():
            causes[cause] += number - 1
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
