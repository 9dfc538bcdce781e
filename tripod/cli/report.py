"""``tripod report``: what a team did and what can be proved of it, as a page for people."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain, islice
from typing import TYPE_CHECKING

from tripod.cli.commands import CommandCall, NumberParam, command_verb, log_keys_param
from tripod.cli.look import entry_line_writer, opened_ledger
from tripod.errors import BadArgumentError, RefusedError, TripodError, UnwritableError
from tripod.ledger.files import replace_file
from tripod.ledger.locator import (
    database_of,
    nearest_team,
    team_of,
    team_to_judge,
    work_tree_around,
)
from tripod.output import emit, emit_bytes, one_line, remark
from tripod.verify.listing import ListingFilter, listed_entries

if TYPE_CHECKING:
    from tripod.report.page import RenderedReport

_LAST_PORT = 65_535
_TOLD = 50  # entries that a page is told of at once
_WATCHED = 20_000  # files of a team whose change an open page is told of at once
_NOISE = frozenset({"ledger.db-shm", "ledger.db.lock"})  # who only reads changes these
_OF_DAY = r"(?:r\d+-)?(?:\d{4}-\d\d-\d\d|without-a-date)(?:-\d+)?\.html"  # a name's end
_LOOKS = 2_048  # bytes of a file that say whether it is a page, and of which report


_OF_SESSIONS = ("protect", "project", "home", "shown")
_OF_TEAM = (
    "select", "key", "pin", "policy", "policy_from", "since", "no_ledger", "no_git"
)  # fmt: skip


def _report(call: CommandCall) -> int:
    if call.port is not None and not call.serve:
        raise BadArgumentError("--port needs --serve")
    target = call.output
    others = _OF_TEAM if call.session else _OF_SESSIONS
    for name in others:
        if call.values[name] not in (None, False, ()):
            option = f"--{name.replace('_', '-')}"
            goes = "is about a team: give no --session" if call.session else "needs --session"
            raise BadArgumentError(f"{option} {goes}")
    if call.serve:
        return _serve(call)
    path = _subject(call)
    if target != "-":
        _check_target(call, path, target)
    with call.progress():
        rendered = _of_sessions(call) if call.session else _of_team(call, path)
    verdict = rendered.verdict or "not judged"
    try:
        _write(call, path, rendered.pages)
    except TripodError as error:  # on a full disk the verdict is told all the same
        remark(one_line(f"{verdict}: {error}"))
        return rendered.exit_code or 1
    if not call.quiet and target != "-":
        size = _size_words(rendered.pages)
        more = "" if call.session or not rendered.exit_code else "; `tripod verify` says why"
        emit([f"{verdict}: written to {one_line(target)} ({size}){more}"])
        if rendered.problem:  # in a wrong folder nobody need open the page to see it
            remark(one_line(rendered.problem))
    return rendered.exit_code


def _subject(call: CommandCall) -> str:
    """What is judged. It is looked for once: no other team takes the place of one that is gone."""
    if len(call.path) > 1 and not call.session:
        raise BadArgumentError("give one PATH; several are for --session")
    return team_to_judge(call.path[0] if call.path else None)


def _is_alone(target: str) -> bool:
    """Whether no other page can lie beside it: it is standard output, a pipe or a link."""
    return target == "-" or os.path.islink(target) or _is_stream(target)


def _is_stream(target: str) -> bool:
    return os.path.exists(target) and not os.path.isfile(target)


def _size_words(pages: dict[str, bytes]) -> str:
    """How many pages there are, and how large they are together."""
    size = sum(map(len, pages.values()))
    return f"{len(pages)} page{'s' * (len(pages) != 1)}, {size:,} bytes"


def _serve(call: CommandCall) -> int:
    """Serve the report until it is stopped; it is judged anew whenever somebody looks."""
    from tripod.report.server import LOOPBACK, ReportServer, ServedReport

    if call.session or call.output == "-":
        raise BadArgumentError(
            "--serve is for a team, and writes no file: give no --session and no -"
        )
    path = _subject(call)
    report = ServedReport(lambda: _of_team(call, path, live=True).pages, lambda: _mark(call, path))
    with call.progress():
        report.pages()  # what is wrong with the call is said before anything is served
    try:
        server = ReportServer(report, lambda start: _grown(path, start), call.port or 0)
    except OSError as error:
        raise UnwritableError(
            f"port {call.port} of {LOOPBACK} cannot be used: {error.strerror}; give another --port"
        ) from error
    emit([f"Serving {one_line(path)} until Ctrl-C, at", server.address])
    remark("who knows this address on this machine can read the team")
    with server, suppress(KeyboardInterrupt):
        server.serve_forever()
    return 0


def _mark(call: CommandCall, path: str) -> object:
    """What changes when the evidence at a path does: which files they are, their sizes and times.

    It is the ledger, the files of the team, the rules about it, and the refs of its repository.
    """
    from tripod.verify.anchors.configuration import PROJECT_FILES
    from tripod.verify.export import is_export

    root = team_of(path) if os.path.isdir(path) else None
    around = os.path.dirname(os.path.realpath(root or path))
    tree = work_tree_around(os.path.realpath(path) if root is None else around)
    database = database_of(root) if root else path
    top = around if tree is None else tree.top
    files = [database, f"{database}-wal", *(f"{top}/{name}" for name in PROJECT_FILES)]
    files += [*call.policy, *([call.pin] if call.pin else ())]
    folders = [] if tree is None else [f"{tree.common}/refs", f"{tree.git}/logs"]
    folders += _folders_apart(path, root) if root and os.path.isfile(database) else []
    folders += [root or path] if root or is_export(path) else []
    files += [] if tree is None else [f"{tree.git}/HEAD", f"{tree.common}/packed-refs"]
    walked = map(os.walk, folders)
    files += islice(
        (f"{at}/{name}" for at, _, names in chain(*walked) for name in names if name not in _NOISE),
        _WATCHED,
    )
    found = set()
    for file in files:
        with suppress(OSError):
            seen = os.stat(file)
            if seen.st_size or not file.endswith("-wal"):  # who only reads may leave an empty one
                found.add((file, seen.st_ino, seen.st_size, seen.st_ctime_ns))  # nobody sets it
    return frozenset(found)


def _folders_apart(path: str, root: str) -> list[str]:
    """Folders of a team that lie elsewhere, as its ledger records them; none if it is not read."""
    from tripod.verify.anchors.anchors import AnchorOptions
    from tripod.verify.run import open_run

    # The report itself says what is wrong with the evidence.
    with (
        suppress(TripodError, OSError, ValueError, sqlite3.Error),
        open_run(path, asked=AnchorOptions(git=False)) as evidence,
    ):
        disk = evidence.disk
        found = map(disk.full, disk.places.folders()) if disk is not None else ()
        return [one for one in found if not f"{one}/".startswith(f"{root}/")]
    return []


def _grown(path: str, start: int) -> tuple[int, list[str]]:
    """How many entries there are, and a line for each of the newest ones from ``start`` on."""
    with opened_ledger(path) as ledger:
        stop = ledger.end()
        first = max(min(start, stop), stop - _TOLD)
        found = listed_entries(ledger, ListingFilter(), first, stop, newest_first=False)
        return stop, [line.rstrip("\n") for line in map(entry_line_writer(plain=True), found)]


def _of_team(call: CommandCall, path: str, *, live: bool = False) -> RenderedReport:
    from tripod.cli.verify import rule_besides
    from tripod.report.page import NAME, WHOLE, render_report
    from tripod.verify.anchors.anchors import AnchorOptions
    from tripod.verify.export import is_proof
    from tripod.verify.run import all_checks

    names = [check.NAME for check in all_checks()] if call.select else []
    for name in call.select:
        if name not in names:
            raise BadArgumentError(f"no check {name!r}; `tripod verify --list` lists them")
    if is_proof(path) and any((call.pin, call.policy, call.since, call.policy_from, call.never)):
        raise BadArgumentError(f"{path} is a proof: hold it against keys (--key)")
    return render_report(
        path,
        name=NAME if live else call.output,
        select=call.select or None,
        keys=log_keys_param(call.key),
        no_ledger=call.no_ledger,
        asked=AnchorOptions(
            call.pin,
            policies=call.policy,
            git=not call.no_git,
            since=call.since,
            policy_from=call.policy_from,
            never=rule_besides(call),
        ),
        whole=WHOLE if live or not _is_alone(call.output) else 2**62,
        live=live,
    )


def _of_sessions(call: CommandCall) -> RenderedReport:
    from tripod.cli.sessions import advice_of_verdict, judge_named_files, rule_of_call
    from tripod.report.page import render_sessions
    from tripod.report.sessions import ExposureSample, gather_sessions

    samples: list[ExposureSample] = []

    def sample(path: str) -> ExposureSample:
        samples.append(ExposureSample(path))
        return samples[-1]

    rule = rule_of_call(call)
    found = judge_named_files(call, [*call.session, *call.path], rule, sample)
    words = [*call.never, *(f"but not {glob}" for glob in call.values["except"])]
    words += [f"the text of {path}" for path in call.protect]
    told = found.verdict
    facts = gather_sessions(
        found.read,
        found.judged,
        samples,
        told,
        ", ".join(words),
        advice=list(advice_of_verdict(call, told)) if told and told.unseen else [],
        shown_only=call.shown,
    )
    return render_sessions(facts, name=call.output)


def _check_target(call: CommandCall, subject: str, path: str, front: bytes = b"") -> None:
    """RefusedError: a page there would replace what is no such page, or lie in what is judged.

    A page of a day, which begins with ``front``, takes the place of one of the same report alone.
    """
    from tripod.cli.verify import problem_of_place
    from tripod.report.page import MARK

    near = nearest_team(os.path.dirname(os.path.realpath(path)))
    subjects = [*([] if call.session else [subject]), *([near] if near else [])]
    problem = problem_of_place(path, subjects, call.pin, call.policy)
    if problem:
        raise RefusedError(f"no report is put at {path}: {problem}; nothing was written")
    if not os.path.isfile(path):  # to look into a pipe would take from it, or wait for ever
        return
    begun = _begin_of(path)
    if begun and not begun.startswith(front or MARK):
        what = "page of a day of this report" if front else "report of tripod"
        raise RefusedError(
            f"{path} is there, and is no {what}: name another file (--output), or remove that one; "
            "nothing was written"
        )


def _begin_of(path: str) -> bytes:
    """How a file begins; b"" where it is not there, or writing will say what is wrong with it."""
    with suppress(OSError), open(path, "rb") as file:
        return file.read(_LOOKS)
    return b""


def _write(call: CommandCall, subject: str, pages: dict[str, bytes]) -> None:
    """Write each page whole or not at all, the main one last: its links lead somewhere.

    Pages of days that an earlier report had, and this one has not, are removed: nobody is to read
    them as what is so now.
    """
    from tripod.report.page import day_mark

    main = next(iter(pages))
    if main == "-":
        emit_bytes(pages[main])
        return
    front = day_mark(main)
    for path in pages:
        _check_target(call, subject, path, b"" if path == main else front)
    for path, page in reversed(pages.items()):
        with _disk(f"the report was not written to {path}"):
            # A device or a pipe does, too: that of /dev/stdout has no other name than this.
            if _is_stream(path):
                with open(path, "wb") as file:
                    file.write(page)
            else:  # a link stays one
                replace_file(os.path.realpath(path), page, 0o644, foreign_folder=True)
    if _is_alone(main):
        return
    with _disk(f"the report was written to {main}, and a page of an earlier one beside it stays"):
        folder, name = os.path.split(main)
        names = re.compile(f"{re.escape(name.removesuffix('.html'))}-{_OF_DAY}")
        for one in filter(names.fullmatch, os.listdir(folder or os.curdir)):
            path = os.path.join(folder, one)
            if path not in pages and _begin_of(path).startswith(front):
                with suppress(FileNotFoundError):
                    os.remove(path)


@contextmanager
def _disk(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UnwritableError(f"{what}: {error.strerror}") from None


_REPORT = """\
report [PATH]...
    Write one HTML page for people who were not there: the verdict of `tripod verify` with what it
    rests on, who saw what, each finding with its lines and what to do, decisions, a timeline. It
    asks nothing of the network, and is whole without script. The default of PATH is as for
    `tripod verify`.

    Above 6 MB each day has a page of its own beside FILE, unless that is a link, a device or a
    pipe. A FILE that is there and is no report is left as it is, and refused; pages of days that
    an earlier report left beside it are removed.

    With --session the page is about recorded sessions of agents, without a ledger; PATHs are
    more of them. It judges as `tripod exposure`, which explains GLOB and these options. For a
    team, --never and --except are a rule besides those of its policy, as for `tripod verify`.

    Exit codes are those of `tripod verify`, and the page is written in each case: 0 clean,
    1 findings, 2 usage, 3 could not judge. Without a rule, a page of sessions is 0.

    -o, --output FILE  Where the page goes; - for standard output. [default: tripod-report.html]
    -q, --quiet        Print nothing: the exit code is the verdict.
    --select CHECK...  Only this check.
    --key VKEY...      A log's public key: the seal of an export or proof must be signed by it.
    --pin FILE         Hold the ledger against the head in FILE.
    --policy FILE...   A policy from elsewhere in place of the team's own.
    --policy-from REV  The policy in tripod.toml as committed in REV.
    --since POINT      Report only the findings that are new since an entry, or a git revision.
    --no-ledger        Expect no ledger: judge the files alone.
    --no-git           Do not read the history of the git repository.
    --session PATH...  A file of a session, a folder of them, or what hooks left of one.
    --never GLOB...    Files that no agent may have read.
    --except GLOB...   Files that --never does not mean.
    --protect PATH...  A file, or a folder of files, whose text must not have reached the model.
    --project DIR      The project as it was then.
    --home DIR         The home folder of the user that the agent ran as.
    --shown            Judge only what the model was shown, not what was merely opened.
    --serve            Write nothing: serve the report on 127.0.0.1, at an address that cannot be
        guessed. It is judged anew whenever somebody looks, and an open page follows the ledger.
    --port N           The port of --serve; by default one that is free.
    looks: always
    without: --team --json
"""
COMMANDS = {"report": command_verb(_REPORT, _report, {"N": NumberParam(0, _LAST_PORT)})}
