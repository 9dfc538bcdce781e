"""``tripod log``, ``tripod query`` and ``tripod diff``: what happened, without changing a byte."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import islice
from math import inf
from typing import Any

from tripod.cli.commands import CommandCall, command_verb, moment_param
from tripod.errors import BadArgumentError, LedgerDamagedError, NotFoundError
from tripod.ledger import DATABASE
from tripod.ledger.ids import format_at
from tripod.ledger.kinds.registry import BY_NAME
from tripod.ledger.locator import no_team_problem, team_of, team_to_judge
from tripod.ledger.sqlite.reader import read_only
from tripod.ledger.sqlite.schema import check_schema
from tripod.output import LINES, one_line, paged_output, remark
from tripod.projections.text import text_meant
from tripod.team.access import check_access
from tripod.verify.listing import ListedEntry, ListingFilter, listed_entries
from tripod.verify.rows import RowReader

_TEXT = 1_000  # characters of a text that a line shows
_FIRST = 10  # entries that --follow begins with
_TICK_S = 0.2
_MICROS = 1_000_000


@contextmanager
def _opened(path: str) -> Iterator[RowReader]:
    """The entries of a project, team directory, database, export or record, only to be read."""
    root = team_of(path) if os.path.isdir(path) else None
    database = f"{root}/{DATABASE}" if root else path
    with check_access(path):
        if os.path.isfile(database):
            with closing(read_only(database)) as db:
                if not check_schema(db):
                    raise LedgerDamagedError(f"{database} holds no entry")
                yield RowReader(db)
            return
        from tripod.verify.anchors.anchors import AnchorOptions
        from tripod.verify.run import open_run

        with open_run(path, asked=AnchorOptions(git=False)) as evidence:
            if evidence.problem or evidence.db is None:
                raise LedgerDamagedError(evidence.problem or no_team_problem(path))
            yield RowReader(evidence.db)


# The log ----------------------------------------------------------------------------------------


def _log(call: CommandCall) -> None:
    wanted = _wanted(call)
    if call.path is not None and call.values["team"] is not None:
        raise BadArgumentError("give PATH or --team, not both")
    if call.timeout is not None and not call.follow:
        raise BadArgumentError("--timeout is for --follow: without it log does not wait")
    path = team_to_judge(call.path or call.values["team"])
    damaged = 0
    is_paged = not (call.json or call.follow)
    with _opened(path) as ledger, paged_output(wanted=is_paged) as write:
        found = _listed(call, path, ledger, wanted)
        # What is looked for may be far apart: then each is shown as it is found.
        many = LINES if wanted == ListingFilter() and not call.follow else 1
        line = _line_writer()
        with suppress(*(KeyboardInterrupt,) if call.follow else ()):
            while entries := list(islice(found, many)):
                damaged += sum(bool(entry.problem) for entry in entries)
                if call.json:
                    call.objects(map(_value, entries))
                else:
                    write("".join(map(line, entries)))
    if damaged:
        what = "1 entry listed here is" if damaged == 1 else f"{damaged} entries listed here are"
        remark(f"warning: {what} damaged: `tripod verify` names what is wrong")


def _listed(
    call: CommandCall, path: str, ledger: RowReader, wanted: ListingFilter
) -> Iterator[ListedEntry]:
    """The entries that a call asks for, in its order."""
    number, stop = call.number, ledger.end()
    backwards = not call.reverse or call.follow or number is not None
    try:
        found = listed_entries(ledger, wanted, stop=stop, newest_first=backwards)
    except LookupError as error:
        raise NotFoundError(f"no decision {error}; `tripod scribe query` lists them") from error
    if call.follow:
        first = list(islice(found, _FIRST if number is None else number))
        return _followed(path, wanted, first[::-1], stop, call.timeout)
    if number is None:
        return found
    found = islice(found, number)
    return iter(list(found)[::-1]) if call.reverse else found


def _wanted(call: CommandCall) -> ListingFilter:
    kinds = []
    for word in call.kind:
        found = [name for name in BY_NAME if name == word or name.startswith(f"{word}.")]
        if not found:
            known = f"there are {', '.join(BY_NAME)}{text_meant(word, list(BY_NAME))}"
            raise BadArgumentError(f"--kind: no kind {word!r}; {known}")
        kinds += found
    since, until = moment_param(call.since, "--since"), moment_param(call.until, "--until")
    return ListingFilter(
        call.values["actor"],  # `call.actor` is the method
        tuple(kinds),
        call.stream,
        None if since is None else format_at(since * _MICROS),
        None if until is None else format_at((until + 1) * _MICROS),
        call.grep,
        call.decision,
    )


def _followed(
    path: str, wanted: ListingFilter, first: Iterable[ListedEntry], start: int, timeout: int | None
) -> Iterator[ListedEntry]:
    """What is there, then what comes; the database is opened anew each time, it may be replaced."""
    until = inf if timeout is None else time.monotonic() + timeout
    yield from first
    while time.monotonic() < until:
        with _opened(path) as ledger:
            stop = ledger.end()
            yield from listed_entries(ledger, wanted, start, stop, newest_first=False)
        start = stop
        time.sleep(_TICK_S)


def _value(entry: ListedEntry) -> dict[str, Any]:
    """An entry as JSON; of a range that cannot be read its numbers and why."""
    if entry.last is not None:
        return {"seq": entry.seq, "last": entry.last, "problem": entry.problem}
    value = entry._asdict()
    del value["last"]
    if not entry.problem:
        del value["problem"]
    return value


def _line_writer() -> Callable[[ListedEntry], str]:
    """Gives the line of an entry, in colours where people look at it on a terminal."""
    out = sys.stdout
    paint: Callable[..., str] = _plain
    if out is not None and out.isatty() and "NO_COLOR" not in os.environ:
        from click import style

        paint = style

    def line(entry: ListedEntry) -> str:
        seq = paint(f"{entry.seq:>7}", fg="yellow")
        if entry.last is not None:
            to = "" if entry.last == entry.seq else f" to {entry.last}"
            return f"{seq}{to}  {paint(one_line(entry.problem), fg='red')}\n"
        who = one_line(entry.actor) + (f" ({entry.mark})" if entry.mark else "")
        text, _, more = entry.text.partition("\n")
        shown = one_line(text[:_TEXT]) + (" ..." if more or len(text) > _TEXT else "")
        at, kind = one_line(entry.at[:19]), one_line(entry.kind)
        parts = [seq, paint(f"{at:<19}Z", dim=True), paint(f"{who:<18}", fg="cyan"), f"{kind:<16}"]
        parts += [paint(f"[{one_line(entry.problem)}]", fg="red")] if entry.problem else []
        return "  ".join([*parts, shown]).rstrip() + "\n"

    return line


def _plain(text: str, **_: object) -> str:
    return text


_LOG = """\
log [PATH]
    A line for each entry, the newest first: its number, its time (UTC), who, what kind, and its
    text. `(signed)` marks what its actor's key signed, `(observed)` what another program wrote
    to the team's files. An entry that is damaged is listed as far as it can be read.

    PATH is a project, a team directory, a database, a backup or an export; without it, it is
    the team as every command finds it. Nothing is written, and nothing is taken in: what other
    programs wrote is listed after `tripod sync`. On a terminal the list is shown by TRIPOD_PAGER,
    else PAGER, else less.

    A TIME is 30s, 5m, 2h or 1d ago, an epoch, or 2026-02-12T14:00:00.

    -n, --number N     At most so many entries.
    --actor HANDLE...  Only what this handle did.
    --kind KIND...     Only this kind, or all that begin so: `chat.sent`, or `chat`.
    --stream NAME      Only this stream, such as chat/live; all that begin so, with a slash at
        the end.
    --since TIME       Only from this time on.
    --until TIME       Only up to this time.
    --grep TEXT        Only where the text holds this; upper and lower case are alike.
    --decision ID      Only what is about this decision: its entry, the messages that it refers
        to, and what names it or follows from it.
    --reverse          The oldest first.
    -f, --follow       List the last 10 (or N), then what comes, until it is stopped (exit 0).
    --timeout S        Seconds to follow; for ever by default.
"""

COMMANDS = {"log": command_verb(_LOG, _log)}
