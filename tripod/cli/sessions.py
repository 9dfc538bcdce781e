"""``tripod exposure`` and ``tripod import``: what recorded sessions of agents show."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tripod.cli.commands import CommandCall, command_verb
from tripod.errors import BadArgumentError
from tripod.ledger.errors import MissingExtraError
from tripod.ledger.ids import now_us
from tripod.output import emit, one_line, remark
from tripod.verify.isolation.globs import NeverRule, refusal_of
from tripod.verify.isolation.phrases import ProtectedText
from tripod.verify.isolation.sessions import CallsSeen
from tripod.verify.recorded.files import (
    SessionFile,
    custody_of_files,
    read_session_file,
    session_files,
    session_time,
)
from tripod.verify.recorded.spool import add_spool, read_spool, spool_of
from tripod.verify.sessions.exposure import (
    Exposure,
    ExposureVerdict,
    SessionExposures,
    judge_exposures,
)
from tripod.verify.sessions.items import Channel, Gap

if TYPE_CHECKING:
    from tripod.sessions.imports import ImportedSession
    from tripod.verify.recorded.project import Project

_CANNOT_TELL = 3
_CODES = {"clean": 0, "findings": 1, "cannot tell": _CANNOT_TELL}
_DAY_US = 86_400_000_000
_SHOWN = 20  # reasons that the text names; JSON has all


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


# Import -----------------------------------------------------------------------------------------


def _import(call: CommandCall) -> int | None:
    if call.dry_run:
        return _counts(call)
    from tripod.sessions.imports import import_session_file

    values, lines = [], []
    actor = call.actor()  # once: it says so where nothing names the actor
    with call.team() as team:
        for path, is_named in _named_files(call.path):
            found, imported = import_session_file(
                team, path, actor=actor, keep=call.keep, is_named=is_named
            )
            if not imported:
                remark(f"{one_line(path)}: {one_line(found.problem)}")
            for one in imported:
                values.append(asdict(one))
                lines.append(_imported(one))
    call.answers(values, lines)
    return None if values else _CANNOT_TELL


def _imported(one: ImportedSession) -> str:
    who = f", subagent {one_line(one.agent)}" if one.agent else ""
    kept = ", bytes kept" if one.is_kept else ""
    what = f"entry {one.seq}" if one.is_new else f"in entry {one.seq} already"
    line = f"{one_line(one.file)}: session {one_line(one.session)}{who}: {what}{kept}"
    if one.is_changed and one.is_new:
        line += "; it is not what the entry before had, grown: `tripod verify` says so"
    return line


def _counts(call: CommandCall) -> int | None:
    values, lines = [], []
    for path, is_named in _named_files(call.path):
        found = read_session_file(path, is_named=is_named)
        if found.program is None:
            remark(f"{one_line(path)}: {one_line(found.problem)}")
            continue
        values.append(_counted(found))
        calls = sum(found.counts.calls.values())
        lines.append(
            f"{one_line(path)}: {found.program}, {sum(values[-1]['records'].values())} records, "
            f"{calls} calls, {found.counts.results} answered, {found.counts.gaps} gaps"
        )
    call.answers(values, lines)
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
        "sessions": list(reader.sessions),
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

    Exit codes: 0 at least one file was read, 2 usage, 3 no file could be read.

    --keep         Keep the bytes as well. `tripod redact` erases them.
    --dry-run      Write nothing, and need no team: say what the files hold, and what was not
        understood.
    --as HANDLE    Who imports them; by default your own handle.
    looks: with --dry-run
"""


# Exposure ---------------------------------------------------------------------------------------


def _exposure(call: CommandCall) -> int | None:
    for one in (*call.never, *call.values["except"]):
        why = refusal_of(one)
        if why:
            raise BadArgumentError(f"the GLOB {one_line(one)!r} cannot be used: {why}")
    rule = NeverRule(call.never, call.values["except"]) if call.never else None
    if rule is not None:
        try:
            rule.hits("/")
        except MissingExtraError:
            raise
        except Exception as error:  # noqa: BLE001  wcmatch exports no name of what it raises
            raise BadArgumentError(f"a GLOB cannot be used: {error}") from None
    if call.values["except"] and rule is None:
        raise BadArgumentError("--except needs --never: it names exceptions from it")
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
        if project is not None and rule is not None:
            project.protect(protected, rule)
    read: list[SessionExposures] = []
    counted: Counter[str] = Counter()
    files: list[SessionFile] = []
    for path, is_named in _named_files(call.path):
        seen = counted, files
        one = _exposures_of(path, rule, protected, (project, home), seen, is_named=is_named)
        if one is not None:
            one.gaps += blind
            read.append(one)
            _print(call, one)
    if rule is None and not call.protect:
        return None if counted["files"] else _CANNOT_TELL
    verdict = judge_exposures(read, counted, shown_only=call.shown)
    verdict.coverage["custody"] = custody_of_files(one.path for one in files)
    _say(call, verdict, files)
    return _CODES[verdict.told]


def _exposures_of(
    path: str,
    rule: NeverRule | None,
    protected: ProtectedText,
    around: tuple[Project | None, Project | None],
    seen: tuple[Counter[str], list[SessionFile]],
    *,
    is_named: bool,
) -> SessionExposures | None:
    """What one file exposed. None, after a remark, if the file is not the record of a session."""
    counted, files = seen
    channels: tuple[Channel, ...] = ("instructions", "home")
    closed = {name: one for name, one in zip(channels, around, strict=True) if one is not None}
    one = SessionExposures(rule, protected, path, frozenset(closed))
    if os.path.isdir(path):  # of what hooks saw, and saved no transcript of
        add_spool(read_spool(path), one, CallsSeen(), "")
        one.add(Gap("missing", 0, "hooks saved no transcript of the session"))
        return one
    spool = spool_of(path)
    calls = CallsSeen([one], is_noted=spool is not None)
    found = read_session_file(path, calls.add, is_named=is_named)
    if found.program is None:
        remark(f"{one_line(path)}: {one_line(found.problem)}")
        if found.is_foreign and not (is_named or spool):
            return None
        one.add(Gap("missing", found.lines, f"the file was not read: {found.problem}"))
        if spool is not None:
            add_spool(read_spool(spool[0]), one, calls, "", spool[1])
        return one
    for folder in closed.values():
        for item in folder.items(found.program):
            one.add(item)
    one.end()
    if spool is not None:
        add_spool(read_spool(spool[0]), one, calls, found.program, spool[1])
    files.append(found)
    counted["files"] += 1
    counted["sessions"] += len(found.reader.sessions) if found.reader else 0
    counted["calls"] += sum(found.counts.calls.values()) + sum(found.counts.nested.values())
    counted["results"] += found.counts.results
    return one


def _print(call: CommandCall, one: SessionExposures) -> None:
    values = ({"file": one.file, **each._asdict()} for each in one.found)
    call.answers(values, (_line(one.file, each) for each in one.found))


def _line(file: str, each: Exposure) -> str:
    how = "shown" if each.shown else "opened"
    how = how if each.sure else "may be"
    tool = "" if each.tool is None else f", {one_line(each.tool)}"
    who = "" if each.agent == "main" else f", subagent {one_line(each.agent)}"
    named = one_line(str(each.named or each.path))
    return f"{one_line(file)}:{each.line}: {how} {named} ({each.channel}{tool}{who})"


def _say(call: CommandCall, verdict: ExposureVerdict, files: list[SessionFile]) -> None:
    if call.json:
        told = {"verdict": verdict.told, "reasons": verdict.reasons}
        call.objects([{**told, "coverage": verdict.coverage}])
        return
    lines = []
    if verdict.told == "cannot tell":
        lines += [f"  {one_line(reason)}" for reason in verdict.reasons[:_SHOWN]]
        if len(verdict.reasons) > _SHOWN:
            lines.append(f"  and {len(verdict.reasons) - _SHOWN} more: --json names each")
    sums = ", ".join(
        f"{count} {name}" for name, count in verdict.coverage.items() if type(count) is int
    )
    emit([f"{verdict.told} ({sums})", *lines, *_custody(files)])


def _custody(files: list[SessionFile]) -> Iterator[str]:
    """Who could have changed the evidence, in words: *clean* rests on it."""
    held = custody_of_files(one.path for one in files)
    if held["taken by a hook"]:
        yield f"custody: {held['taken by a hook']} taken by a hook of tripod as the session ended"
    if held["found on disk"]:
        times = [time for time in map(session_time, files) if time is not None]
        days = sorted({max(0, now_us() - time) // _DAY_US for time in times})
        span = " to ".join(map(str, days[:1] + days[1:][-1:]))
        when = f" {span} day{'s' * (span != '1')} after the last record" if days else ""
        yield (
            f"custody: {held['found on disk']} found on disk{when}; "
            "the user that the agent ran as could write there"
        )


_EXPOSURE = """\
exposure PATH...
    List which files recorded sessions of agents showed to their model, or opened, each with its
    line. PATH is a file of a session, a folder of them, or what hooks left of one (events, the
    transcript, a snapshot of the project); no team is needed, and nothing is written. With --never
    or --protect it judges: clean, findings or cannot tell. Clean means that nothing was found and
    that every way in leaves a record which was read.

    A GLOB without a slash is a file's name in any folder; one with a slash is the end of a path;
    one that begins with a slash is a whole path. One that fits a folder means all that lies in it.

    Exit codes: 0 clean, 1 findings, 2 usage, 3 cannot tell.

    --never GLOB...  Files that no agent may have read.
    --except GLOB...  Files that --never does not mean.
    --protect PATH...  A file, or a folder of files, whose text must not have reached the model.
    --project DIR  The project as it was then: its instruction files are searched, and the text
        of files that --never names is protected, with each version that git has of them. Text
        that files of --except have as well does not count.
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
