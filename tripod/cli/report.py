"""``tripod report``: what a team did and what can be proved of it, as a page for people."""

from __future__ import annotations

import os
from contextlib import suppress

from tripod.cli.commands import CommandCall, command_verb, log_keys_param
from tripod.cli.look import entry_line_writer, opened_ledger
from tripod.errors import RefusedError, UnwritableError
from tripod.ledger.files import replace_file
from tripod.ledger.locator import database_of, team_of, team_to_judge
from tripod.output import emit, emit_bytes, one_line, remark
from tripod.verify.listing import ListingFilter, listed_entries

_TOLD = 50  # entries that a page is told of at once
_LOOKS = 64  # bytes of a file that say whether it is a report


def _report(call: CommandCall) -> int:
    if call.serve:
        return _serve(call)
    from tripod.report.page import WHOLE, render_report
    from tripod.verify.anchors.anchors import AnchorOptions

    target = call.output
    if target != "-":
        _check_target(target)
    with call.progress():
        rendered = render_report(
            team_to_judge(call.path[0] if call.path else None),
            name=target if target != "-" else "",
            keys=log_keys_param(call.key),
            no_ledger=call.no_ledger,
            asked=AnchorOptions(git=not call.no_git),
            whole=2**62 if target == "-" else WHOLE,
        )
    if target == "-":
        emit_bytes(rendered.pages[""])
        return rendered.exit_code
    _write(rendered.pages)
    size = sum(map(len, rendered.pages.values()))
    count = f"{len(rendered.pages)} pages" if len(rendered.pages) > 1 else "1 page"
    emit([f"{rendered.verdict}: written to {one_line(target)} ({count}, {size:,} bytes)"])
    return rendered.exit_code


def _serve(call: CommandCall) -> int:
    """Serve the report until it is stopped; it is judged anew whenever somebody looks."""
    from tripod.report.page import render_report
    from tripod.report.server import LOOPBACK, ReportServer, ServedReport
    from tripod.verify.anchors.anchors import AnchorOptions

    path = team_to_judge(call.path[0] if call.path else None)

    def render() -> dict[str, bytes]:
        return render_report(
            path,
            keys=log_keys_param(call.key),
            no_ledger=call.no_ledger,
            asked=AnchorOptions(git=not call.no_git),
            live=True,
        ).pages

    report = ServedReport(render, lambda: _mark(path))
    with call.progress():
        report.pages()  # what is wrong with the call is said before anything is served
    try:
        server = ReportServer(report, lambda start: _grown(path, start), call.port or 0)
    except OSError as error:
        raise UnwritableError(
            f"port {call.port} of {LOOPBACK} cannot be used: {error.strerror}; give another --port"
        ) from error
    emit([f"Serving {one_line(path)} at", server.address])
    remark("whoever has this address on this machine can read the team; Ctrl-C stops it")
    with server, suppress(KeyboardInterrupt):
        server.serve_forever()
    return 0


def _mark(path: str) -> object:
    """What changes when the ledger at a path does: of its files who they are, size and time."""
    root = team_of(path) if os.path.isdir(path) else None
    database = database_of(root) if root else path
    found = []
    for file in (database, f"{database}-wal"):
        with suppress(OSError):
            seen = os.stat(file)
            found.append((file, seen.st_ino, seen.st_size, seen.st_mtime_ns))
    return tuple(found)


def _grown(path: str, start: int) -> tuple[int, list[str]]:
    """How many entries there are, and a line for each of the newest ones from ``start`` on."""
    with opened_ledger(path) as ledger:
        stop = ledger.end()
        first = max(min(start, stop), stop - _TOLD)
        found = listed_entries(ledger, ListingFilter(), first, stop, newest_first=False)
        return stop, [line.rstrip("\n") for line in map(entry_line_writer(plain=True), found)]


def _check_target(path: str) -> None:
    """RefusedError: there is something at a path that is no report, and would be lost."""
    from tripod.report.page import MARK

    try:
        with open(path, "rb") as file:
            begun = file.read(_LOOKS) if os.path.isfile(path) else b""
    except OSError:
        return  # it is not there; or writing will say what is wrong
    if begun and not begun.startswith(MARK):
        raise RefusedError(
            f"{path} is there, and is no report of tripod: name another file (--output), or remove "
            "that one; nothing was written"
        )


def _write(pages: dict[str, bytes]) -> None:
    """Write each page whole or not at all, the main one last: its links lead somewhere."""
    for path in pages:
        _check_target(path)
    for path, page in reversed(pages.items()):
        full = os.path.realpath(path)  # a link stays one
        try:
            if os.path.exists(full) and not os.path.isfile(full):  # a device or a pipe does, too
                with open(full, "wb") as file:
                    file.write(page)
            else:
                replace_file(full, page, 0o644, foreign_folder=True)
        except OSError as error:
            raise UnwritableError(
                f"the report was not written to {path}: {error.strerror}"
            ) from None


_REPORT = """\
report [PATH]...
    Write one HTML page of what a team did and of what can be proved of it.

    -o, --output FILE  Where the page goes; - for standard output. [default: tripod-report.html]
    --key VKEY...      A log's public key: the seal of an export must be signed by it.
    --no-ledger        Expect no ledger: judge the files alone.
    --no-git           Do not read the history of the git repository.
    --serve            Serve the report on 127.0.0.1 until it is stopped. It is judged anew
        whenever somebody looks, and follows the ledger.
    --port N           The port of --serve; by default one that is free.
    looks: always
    without: --team --json
"""
COMMANDS = {"report": command_verb(_REPORT, _report)}
