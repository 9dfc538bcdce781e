"""``tripod exposure`` and ``tripod import``: what recorded sessions of agents show."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from tripod.cli.commands import CommandCall, command_verb
from tripod.errors import BadArgumentError
from tripod.ledger.errors import MissingExtraError
from tripod.ledger.files import read_plain_file
from tripod.ledger.ids import now_us
from tripod.output import LINES, emit, one_line, remark
from tripod.verify.isolation.globs import NeverRule, is_excepted, refusal_of
from tripod.verify.isolation.phrases import ProtectedText
from tripod.verify.isolation.reasons import FOLDER, NOT_COMPARED, Exposure, said_shortly
from tripod.verify.isolation.sessions import CallsSeen
from tripod.verify.recorded.files import (
    SessionFile,
    judged_beside,
    read_session_file,
    session_files,
    session_time,
)
from tripod.verify.recorded.spool import add_spool, read_spool, spool_of
from tripod.verify.sessions.exposure import ExposureVerdict, SessionExposures, judge_exposures
from tripod.verify.sessions.items import Channel, Gap
from tripod.verify.sessions.programs import NOT_PARSED
from tripod.verify.sessions.readers import PLACES

if TYPE_CHECKING:
    from tripod.sessions.imports import ImportedSession
    from tripod.verify.recorded.project import Project

_CANNOT_TELL = 3
_CODES = {"clean": 0, "findings": 1, "cannot tell": _CANNOT_TELL}
_DAY_US = 86_400_000_000
_LISTED = {True: 200, False: 20}  # exposures of a file that the text lists: sure ones, and others
_NOT_OF_PROJECT = "--project {} is named otherwise than {}, the folder of the session"
_SHOWN, _OF_A_KIND = 40, 3  # reasons that the text has, and those alike; JSON has all


def _named_files(paths: list[str]) -> Iterator[tuple[str, bool]]:
    """Each file once, with whether the user named it; of a session also those of its subagents."""
    seen = set()
    for path in paths:
        single = not os.path.isdir(path)
        for file in session_files(path):
            beside = f"{file.removesuffix('.jsonl')}/subagents"
            more = session_files(beside) if single and os.path.isdir(beside) else ()
            for one in (file, *more):
                if os.path.realpath(one) not in seen:
                    seen.add(os.path.realpath(one))
                    yield one, single and one == file


@dataclass
class _FilesRead:
    """What was read, and what was left out of it as nobody's session."""

    files: list[SessionFile] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    has_said_why: bool = False
    counted: Counter[str] = field(default_factory=Counter)

    def leave_out(self, found: SessionFile, *, is_named: bool) -> None:
        """Say that a file was not read; those of other programs in a folder are said at the end."""
        if found.is_foreign and not is_named:
            self.foreign.append(found.path)
        else:
            self.has_said_why |= not found.is_foreign
            remark(f"{one_line(found.path)}: {one_line(found.problem)}")

    def say_left_out(self, paths: Sequence[str], *, is_empty: bool) -> None:
        """Say which files are no session's, and, if nothing was read, where sessions lie."""
        if self.foreign:
            named = ", ".join(map(one_line, self.foreign[:3])) + ", ..." * bool(self.foreign[3:])
            remark(
                f"left out, as no program is known that wrote it: {named}"
                + (f" ({len(self.foreign)} files)" if self.foreign[1:] else "")
            )
        if is_empty and not self.has_said_why:
            where = "".join(f"\n  {name}: {place}" for name, place in PLACES.items())
            named = ", ".join(map(one_line, paths))
            remark(f"no file of a session was read in {named}. Sessions lie in:{where}")


# Import -----------------------------------------------------------------------------------------


def _import(call: CommandCall) -> int | None:
    if call.dry_run:
        return _counts(call)
    from tripod.sessions.imports import import_session_file

    values, lines, read = [], [], _FilesRead()
    actor = call.actor()  # once: it says so where nothing names the actor
    with call.team() as team:
        for path, is_named in _named_files(call.path):
            found, imported = import_session_file(
                team, path, actor=actor, keep=call.keep, is_named=is_named
            )
            if not imported:
                read.leave_out(found, is_named=is_named)
            for one in imported:
                values.append(asdict(one))
                lines.append(_imported(one))
        policy = _policy_without_rules(team.root)
    call.answers(values, lines)
    read.say_left_out(call.path, is_empty=not values)
    if values and policy:
        remark(f"no rule says what these must not have read: `never` in {policy} would")
    return None if values else _CANNOT_TELL


def _policy_without_rules(root: str) -> str:
    """The path of a team's policy, if neither it nor the project's can have a rule on sessions."""
    from tripod.projections.settings import MAX_SIZE
    from tripod.verify.anchors.policy import PROJECT
    from tripod.verify.check import RULES

    policy = os.path.join(root, RULES)
    for path in (policy, os.path.join(os.path.dirname(root), PROJECT)):
        with suppress(OSError):
            if b"never" in read_plain_file(path, MAX_SIZE):
                return ""
    return policy


def _imported(one: ImportedSession) -> str:
    who = f", subagent {one_line(one.agent)}" if one.agent else ""
    kept = ", bytes kept" if one.is_kept else ""
    what = f"entry {one.seq}" if one.is_new else f"in entry {one.seq} already"
    line = f"{one_line(one.file)}: session {one_line(one.session)}{who}: {what}{kept}"
    if one.is_changed and one.is_new:
        line += "; it is not what the entry before had, grown: `tripod verify` says so"
    return line


def _counts(call: CommandCall) -> int | None:
    values, lines, read = [], [], _FilesRead()
    for path, is_named in _named_files(call.path):
        found = read_session_file(path, is_named=is_named)
        if found.program is None:
            read.leave_out(found, is_named=is_named)
            continue
        values.append(_counted(found))
        calls = sum(found.counts.calls.values())
        lines.append(
            f"{one_line(path)}: {found.program}, {sum(values[-1]['records'].values())} records, "
            f"{calls} calls, {found.counts.results} answered, {found.counts.gaps} gaps"
        )
    call.answers(values, lines)
    read.say_left_out(call.path, is_empty=not values)
    return None if values else _CANNOT_TELL


def _counted(found: SessionFile) -> dict[str, Any]:
    reader, counts = found.reader, found.counts
    assert reader is not None  # a program is known
    return {
        "importer": found.program,
        "file": found.path,
        "sha256": found.sha256,
        "bytes": found.bytes,
        "lines": found.lines,
        "unparsed": counts.unparsed,
        "records": dict(reader.records),
        "unknown": dict(reader.unknown),
        "sessions": list(filter(None, reader.sessions)),
        "calls": dict(counts.calls),
        "nested_calls": dict(counts.nested),
        "results": counts.results,
        "unanswered": counts.unanswered,
        "failed": counts.failed,
    }


_IMPORT = """\
import PATH...
    Take recorded sessions of agents into the ledger: program, digest, counts, and what their
    records say they read, by path and line. PATH is a file of a session or a folder of them.
    Sessions of Claude Code, Codex, Copilot, Gemini, Qwen Code, OpenCode, Cursor, and of ATIF
    documents are known. Importing the same file again adds nothing. A longer copy of it is a new
    entry, and one that was changed is a finding of `tripod verify`.

    The bytes of a transcript are not in the ledger: they may hold secrets. With --keep they are
    kept in .nbs/evidence/, which is in no commit or record, and in no export without --evidence.

    Exit codes: 0 at least one file was read, 1 an error (the ledger refused, the disk is full),
    2 usage, 3 no file could be read.

    --keep         Keep the bytes as well. `tripod redact` erases them.
    --dry-run      Write nothing, and need no team: say what the files hold, and what was not
        understood.
    --as HANDLE    Who imports them; by default your own handle.
    looks: with --dry-run
"""


# Exposure ---------------------------------------------------------------------------------------


class Listing(Protocol):
    """Is given what one file exposed, as it is found, and told when that is all."""

    def add(self, each: Exposure) -> None:
        """Take an exposure."""

    def end(self) -> None:
        """Take note that there are no more."""


@dataclass
class SessionsJudged:
    """What the named files came to; no ``verdict`` where no rule was given."""

    read: list[SessionFile]
    judged: list[SessionExposures]
    verdict: ExposureVerdict | None
    relied: list[Channel] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """0 clean, or read where nothing was to be judged; 1 findings; 3 cannot tell."""
        if self.verdict is None:
            return 0 if self.read else _CANNOT_TELL
        return _CODES[self.verdict.told]


def _exposure(call: CommandCall) -> int | None:
    rule = rule_of_call(call)
    found = judge_named_files(
        call, call.path, rule, lambda path: _Listing(call, path, is_judged=rule is not None)
    )
    if found.verdict is None:
        if any(NOT_PARSED in gap.what for one in found.judged for gap in one.gaps):
            remark(f"not listed is what opened {NOT_PARSED}")
        return found.exit_code or None
    _say(call, found.verdict, found.read, found.relied)
    return found.exit_code


def judge_named_files(
    call: CommandCall,
    paths: list[str],
    rule: NeverRule | None,
    list_of: Callable[[str], Listing],
) -> SessionsJudged:
    """Judge the files that were named; ``list_of`` a path is given what it exposed.

    The call has the options of ``tripod exposure``.
    """
    protected, blind = ProtectedText(), list[Gap]()
    project = home = None
    if call.project or call.home or call.protect:
        from tripod.verify.recorded.project import open_project, protect_files

        project = open_project(call.project) if call.project else None
        home = open_project(call.home, is_home=True) if call.home else None
        if project is not None and home is not None:
            project.beside, home.beside = home, project
        for path in call.protect:
            before = protected.searchable
            protect_files(protected, path)
            if protected.searchable == before:
                blind.append(Gap("missing", 0, f"{path} has no 12 words and no line to look for"))
        of_rule = False
        if project is not None and rule is not None:
            of_rule = project.protect(protected, rule) > 0
        if rule is not None and not (of_rule or _is_of_each(call.never, call.protect)):
            protected.is_searchable = False  # other files may be searched, and not those
    judged: list[SessionExposures] = []
    read = _FilesRead()
    files = list(_named_files(paths))
    with judged_beside(protected, rule, (path for path, _ in files)) as helper:
        for path, is_named in files:
            listing = list_of(path)
            one = SessionExposures(rule, protected, path, each=listing.add, helper=helper)
            if _read_exposures(one, (project, home), read, is_named=is_named):
                one.gaps.extend(blind)
                one.forget_calls()
                judged.append(one)
                listing.end()
    read.say_left_out(paths, is_empty=not read.files)
    if rule is None and not call.protect:
        return SessionsJudged(read.files, judged, None)
    verdict = judge_exposures(judged, read.counted, shown_only=call.shown)
    relied = sorted({channel for one in judged for channel in one.gaps.filled})
    snapshots = {"by a snapshot": sum(bool(one.gaps.filled) for one in judged)} if relied else {}
    # What hooks left is no better: only an entry of that time could say that a hook took it.
    verdict.coverage["custody"] = {
        "taken by a hook": 0,
        "found on disk": len(read.files),
        **snapshots,
    }
    return SessionsJudged(read.files, judged, verdict, relied)


def _is_of_each(globs: Sequence[str], paths: Sequence[str]) -> bool:
    """Whether for each glob there is a file, among some that are named, which it means."""
    files = [os.path.abspath(file) for path in paths for file in _files_in(path)]
    return all(any(map(NeverRule([glob]).hits, files)) for glob in globs)


def _files_in(path: str) -> Iterator[str]:
    yield path
    for folder, _, names in os.walk(path):
        yield from (os.path.join(folder, name) for name in names)


def rule_of_call(call: CommandCall) -> NeverRule | None:
    """The rule that ``--never`` and ``--except`` give (BadArgumentError: they give none)."""
    for one in (*call.never, *call.values["except"]):
        why = refusal_of(one)
        if why:
            raise BadArgumentError(f"the GLOB {one_line(one)!r} cannot be used: {why}")
    if call.shown and not (call.never or call.protect):
        raise BadArgumentError("--shown needs --never or --protect: it says what they count")
    if call.values["except"] and not call.never:
        raise BadArgumentError("--except needs --never: it names exceptions from it")
    if not call.never:
        return None
    if is_excepted(call.never, call.values["except"]):
        raise BadArgumentError("--except leaves nothing of --never: narrow the exceptions")
    rule = NeverRule(call.never, call.values["except"])
    try:
        rule.hits("/")
    except MissingExtraError as error:  # 1 would be findings
        raise BadArgumentError(str(error)) from None
    except Exception as error:  # noqa: BLE001  wcmatch exports no name of what it raises
        raise BadArgumentError(f"a GLOB cannot be used: {error}") from None
    return rule


def _read_exposures(
    one: SessionExposures,
    around: tuple[Project | None, Project | None],
    read: _FilesRead,
    *,
    is_named: bool,
) -> bool:
    """Add what one file exposed. False, if it is not the record of a session."""
    path = one.file
    channels: tuple[Channel, ...] = ("instructions", "home")
    closed = {name: each for name, each in zip(channels, around, strict=True) if each is not None}
    one.closed = frozenset(closed)
    spool = spool_of(path)
    one.found.is_short = not (spool or os.path.isdir(path))  # what hooks saw is compared with each
    if os.path.isdir(path):  # of what hooks saw, and saved no transcript of
        add_spool(read_spool(path), one, CallsSeen(), "")
        one.add(Gap("missing", 0, "hooks saved no transcript of the session"))
        return True
    calls = CallsSeen([one], is_noted=spool is not None)
    found = read_session_file(path, calls.add, is_named=is_named)
    if found.program is None:
        read.leave_out(found, is_named=is_named)
        if found.is_foreign and not (is_named or spool):
            return False
        one.add(Gap("missing", found.lines, f"the file was not read: {found.problem}"))
        if spool is not None:
            add_spool(read_spool(spool[0]), one, calls, "", spool[1])
        return True
    cwds = dict.fromkeys(session.cwd for session in one.tree.sessions) if closed else ()
    for folder in closed.values():
        for item in folder.items(found.program, cwds):
            one.add(item)
    one.end()
    project, began = around[0], next((each.cwd for each in one.tree.sessions if each.cwd), "")
    if project is not None and began and one.gaps.relied - {"home"} and not project.is_of(began):
        what = _NOT_OF_PROJECT.format(project.root, began[:200])
        one.gaps.append(Gap("missing", 0, what, "instructions"))
    if spool is not None:
        add_spool(read_spool(spool[0]), one, calls, found.program, spool[1])
    read.files.append(found)
    counted = read.counted
    counted["files"] += 1
    counted["sessions"] += len(found.reader.sessions) if found.reader else 0
    counted["calls"] += sum(found.counts.calls.values()) + sum(found.counts.nested.values())
    counted["results"] += found.counts.results
    return True


class _Listing:
    """Prints what one file exposed, as it is found: all of it as JSON, some of it for people."""

    def __init__(self, call: CommandCall, file: str, *, is_judged: bool) -> None:
        self._call, self._file, self._is_judged = call, file, is_judged
        self._waiting: list[Exposure] = []
        self._seen: Counter[bool] = Counter()
        self._last: Exposure | None = None

    def add(self, each: Exposure) -> None:
        """Print an exposure, with others at once."""
        is_told = self._last == each  # programs write some things twice
        if self._is_judged:  # what is not sure is a reason of the verdict
            is_told |= not each.sure
        if is_told and not self._call.json:
            return
        self._last = each
        self._seen[each.sure] += 1
        if self._call.json or self._seen[each.sure] <= _LISTED[each.sure]:
            self._waiting.append(each)
            if len(self._waiting) >= LINES:
                self._print()

    def end(self) -> None:
        """Print the rest, and how many are not listed."""
        self._print()
        left = sum(max(0, number - _LISTED[sure]) for sure, number in self._seen.items())
        if left and not self._call.json:
            emit([f"{one_line(self._file)}: and {left} more: --json lists each"])

    def _print(self) -> None:
        values = ({"file": self._file, **each.told()} for each in self._waiting)
        self._call.answers(values, (_line(self._file, each) for each in self._waiting))
        self._waiting = []


def _line(file: str, each: Exposure) -> str:
    how = "shown" if each.shown else "opened"
    how = how if each.sure else "searched" if each.doubt == FOLDER else "may be"
    more = [each.channel, each.tool, None if each.agent == "main" else f"subagent {each.agent}"]
    more += [f"in {each.within}" if each.within else None]
    where = f"{file}:{each.line}" if each.line else file
    inner = one_line(", ".join(one for one in more if one))
    return f"{one_line(where)}: {how} {one_line(each.title)} ({inner})"


def _say(
    call: CommandCall, verdict: ExposureVerdict, files: list[SessionFile], relied: list[Channel]
) -> None:
    if call.json:
        told = {"verdict": verdict.told, "reasons": verdict.reasons}
        call.objects([{**told, "coverage": verdict.coverage}])
        return
    lines = []
    if verdict.told == "cannot tell":
        lines = [f"  {one_line(reason)}" for reason in said_shortly(verdict.unseen, _OF_A_KIND)]
        if len(lines) > _SHOWN:
            lines[_SHOWN:] = [f"  and {len(lines) - _SHOWN} more: --json names each"]
        lines += [f"  to do: {one}" for one in advice_of_verdict(call, verdict)]
    sums = ", ".join(
        f"{count} {name}" for name, count in verdict.coverage.items() if type(count) is int
    )
    emit([f"{verdict.told} ({sums})", *lines, *_custody(files, relied)])


def advice_of_verdict(call: CommandCall, verdict: ExposureVerdict) -> Iterator[str]:
    """What the user can give, so that more can be told."""
    gaps = [one.gap for one in verdict.unseen if one.gap is not None]
    unrecorded = {gap.channel for gap in gaps if gap.is_unrecorded}
    if "instructions" in unrecorded:
        yield "give --project DIR, the folder in which the agent worked, as it was then"
    if any(gap.what.startswith("--project ") for gap in gaps):
        yield "give as --project the folder of that name: of a copy, a link that has it will do"
    if "home" in unrecorded:
        yield "give --home DIR, the home folder of the user that the agent ran as"
    if any(gap.what.endswith(NOT_COMPARED) for gap in gaps) and not call.protect:
        what = "" if call.project else "--project DIR, or "
        yield f"give {what}--protect PATH: the text of files that must not have been read"
    if any(gap.child for gap in gaps):
        yield "name the files of the subagents as well, or the folder that has all sessions"
    if any(NOT_PARSED in gap.what for gap in gaps):
        yield "install the extra: pip install 'tripod-ledger[sessions]'"


def _custody(files: list[SessionFile], relied: list[Channel]) -> Iterator[str]:
    """Who could have changed the evidence, in words: *clean* rests on it."""
    writer = "the user that the agent ran as could write there"
    if files:
        times = [time for time in map(session_time, files) if time is not None]
        days = sorted({max(0, now_us() - time) // _DAY_US for time in times})
        span = " to ".join(map(str, days[:1] + days[1:][-1:]))
        when = f" {span} day{'s' * (span != '1')} after the last record" if days else ""
        yield f"custody: {len(files)} found on disk{when}; {writer}"
    if relied:
        what = " and ".join(relied)
        yield f"custody: what came by {what} is judged by a snapshot among these; {writer}"


_EXPOSURE = """\
exposure PATH...
    List which files recorded sessions of agents showed to their model, or opened, each with its
    line. PATH is a file of a session, a folder of them, or what hooks left of one (events, the
    transcript, a snapshot of the project); no team is needed, and nothing is written. With --never
    or --protect it judges: clean, findings or cannot tell. Clean means that nothing was found and
    that every way in leaves a record which was read.

    A GLOB without a slash is a file's name in any folder; one with a slash is the end of a path;
    one that begins with a slash is a whole path. One that fits a folder means all that lies in it.
    Quote it, or the shell puts names in its place. --never, --except and --protect may be repeated.

    Exit codes: 0 clean, 1 findings, 2 usage, 3 cannot tell. Without --never and --protect: 0 at
    least one file was read, 2 usage, 3 no file could be read.

    --never GLOB...  Files that no agent may have read.
    --except GLOB...  Files that --never does not mean.
    --protect PATH...  A file, or a folder of files, whose text must not have reached the model.
    --project DIR  The project as it was then, under its own name: its instruction files are
        searched, and the text of files that --never names is protected, with each version that git
        has of them. Text that files of --except have as well does not count.
    --home DIR  The home folder of the user that the agent ran as: its instruction files are
        searched, of which Gemini, Qwen Code and OpenCode leave no record.
    --shown           Judge only what the model was shown, not what was merely opened.
    looks: always
    without: --team
"""

COMMANDS = {
    "import": command_verb(_IMPORT, _import),
    "exposure": command_verb(_EXPOSURE, _exposure),
}
