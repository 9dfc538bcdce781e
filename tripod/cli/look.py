"""``tripod log``, ``tripod query`` and ``tripod diff``: what happened, without changing a byte."""

from __future__ import annotations

import csv
import io
import json
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import islice
from math import inf, isfinite
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from tripod.cli.commands import CommandCall, command_verb, moment_param, text_param
from tripod.errors import (
    BadArgumentError,
    GitError,
    LedgerDamagedError,
    NoTeamError,
    NotFoundError,
    RefusedError,
    UnwritableError,
)
from tripod.ledger import DATABASE, RECORD
from tripod.ledger.files import place_to_write_problem, read_plain_file
from tripod.ledger.ids import format_at
from tripod.ledger.kinds.registry import BY_NAME
from tripod.ledger.locator import (
    FOLDER,
    closed_place_problem,
    database_of,
    team_of,
    team_to_judge,
)
from tripod.ledger.sqlite.reader import read_only
from tripod.ledger.sqlite.schema import check_schema
from tripod.ledger.sqlite.store import is_malformed_sqlite
from tripod.output import LINES, emit, emit_bytes, one_line, paged_output, remark
from tripod.projections.text import text_meant
from tripod.team.access import check_access
from tripod.team.team import lost_problem
from tripod.verify.listing import ListedEntry, ListingFilter, listed_entries, listed_entry
from tripod.verify.rows import RowHeads, RowReader

if TYPE_CHECKING:
    from sqlite_utils import Database

    from tripod.verify.difference import LedgerDifference, LedgerSide

_CELL = 60  # characters of a value in a table
_TEXT = 1_000  # characters of a text that a line shows
_FIRST = 10  # entries that --follow begins with
_TICK_S = 0.2
_GRACE_S = 5  # a query of slow steps ends by itself
_TOO_LONG = "SQL: it took longer than {} s; ask for less, or raise --timeout"
_MICROS = 1_000_000
_LAST = 253_402_300_799  # the last second of the year 9999: times are compared as text


@contextmanager
def opened_ledger(path: str) -> Iterator[RowReader]:
    """The entries of a project, team directory, database, export or record, only to be read."""
    root = team_of(path) if os.path.isdir(path) else None
    database = database_of(root) if root else path
    with check_access(path), _advice_on_damage(root):
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
                if evidence.loaded:
                    raise LedgerDamagedError(
                        evidence.problem
                        or f"{root}: no entry can be read; `tripod verify` says why"
                    )
                closed, missing = (
                    closed_place_problem(path),
                    f"no ledger in {root}: `tripod init` makes one",
                )
                lost = lost_problem(root or path) if os.path.isdir(path) else None
                raise NoTeamError(closed or lost or evidence.problem or missing)
            ledger = RowReader(evidence.db)
            ledger.bodies = evidence.database.bodies
            yield ledger


@contextmanager
def _advice_on_damage(root: str | None) -> Iterator[None]:
    """Say what to run where the database of a team cannot be read."""
    try:
        yield
    except LedgerDamagedError as error:
        if root is None or "`tripod " in str(error):
            raise
        raise LedgerDamagedError(f"{error}; `tripod verify` says what to do") from error


# The log ----------------------------------------------------------------------------------------


def _log(call: CommandCall) -> None:
    wanted = _wanted(call)
    if call.path is not None and call.values["team"] is not None:
        raise BadArgumentError("give PATH or --team, not both")
    if call.timeout is not None and not call.follow:
        raise BadArgumentError("--timeout is for --follow: without it log does not wait")
    path = team_to_judge(call.values["team"] if call.path is None else call.path)
    damaged = 0
    is_paged = not (call.json or call.follow)
    with opened_ledger(path) as ledger, paged_output(wanted=is_paged) as write:
        found = _listed(call, path, ledger, wanted)
        # What is looked for may be far apart: then each is shown as it is found.
        many = LINES if wanted == ListingFilter() and not call.follow else 1
        line = entry_line_writer()
        with suppress(*(KeyboardInterrupt,) if call.follow else ()):
            while entries := list(islice(found, many)):
                damaged += sum(bool(entry.problem) for entry in entries)
                if call.json:
                    call.objects(map(_value, entries))
                else:
                    write("".join(map(line, entries)))
        if not ledger.bodies:
            remark("only the headers of the entries are here, no bodies: texts are not shown")
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
    except ValueError as error:
        raise BadArgumentError(f"--decision: {error}; name one of them so") from error
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
        None if since is None else format_at(min(since, _LAST) * _MICROS),
        None if until is None else format_at(min(until + 1, _LAST) * _MICROS),
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
        with opened_ledger(path) as ledger:
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


def entry_line_writer(*, plain: bool = False) -> Callable[[ListedEntry], str]:
    """Gives the line of an entry, in colours where people look at it on a terminal."""
    out = sys.stdout
    paint: Callable[..., str] = _plain
    if not plain and out is not None and out.isatty() and "NO_COLOR" not in os.environ:
        from click import style

        paint = style

    def line(entry: ListedEntry) -> str:
        seq = paint(f"{entry.seq:>7}", fg="yellow")
        if entry.last is not None:
            to = "" if entry.last == entry.seq else f" to {entry.last}"
            return f"{seq}{to}  {paint(one_line(entry.problem), fg='red')}\n"
        who = one_line(entry.actor)
        who = repr(who) if "(" in who else who  # no handle has one, and a mark must be ours
        who += f" ({entry.mark})" if entry.mark else ""
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
    text. `(signed)` marks an entry that its actor's key signed, `(observed)` one that another
    program wrote to the team's files, `(peer ...)` one that another replica recorded. A damaged
    entry is listed as far as it can be read.

    PATH is a project, a team directory, a database, a backup or an export; without it, it is
    the team as every command finds it. Nothing is written, and nothing is taken in: what other
    programs wrote is listed after `tripod sync`. On a terminal the list is shown by TRIPOD_PAGER,
    else PAGER, else less.

    A TIME is 30s, 5m, 2h or 1d ago, an epoch, 2026-02-12T14:00:00, or a day (2026-02-12), which
    begins at midnight here.

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
    looks: always
"""

# Queries ----------------------------------------------------------------------------------------


def _query(call: CommandCall) -> None:
    from tripod.ledger.sqlite.views import open_views, view_statements

    forms = [name for name in ("csv", "table", "json") if call.values[name]]
    sql = text_param(call.sql, call.file, "SQL")
    if call.save is None and (call.datasette is not None or call.without_texts):
        raise BadArgumentError("--datasette and --without-texts go with --save FILE")
    if len(forms) > 1 or bool(sql) + call.views + (call.save is not None) > 1:
        raise BadArgumentError("give one of SQL, --views and --save, and one form of answer")
    if call.views:
        emit(view_statements())
        return
    path = team_to_judge(call.values["team"])
    with opened_ledger(path) as ledger:
        until = time.monotonic() + call.timeout
        try:
            views = open_views(ledger.db, until)
            if call.save is not None:
                _save(call, views)
            elif sql:
                _answer(call, _watched(lambda: views.query(sql), call.timeout))
            else:
                _answer(call, _listed_views(views))
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
            if isinstance(error, sqlite3.DatabaseError) and is_malformed_sqlite(error):
                raise
            if str(error) == "interrupted":
                if time.monotonic() < until:  # SQLite drops what a signal raises while it works
                    raise KeyboardInterrupt from error
                raise RefusedError(_TOO_LONG.format(call.timeout)) from error
            said = str(error)
            if isinstance(error, ValueError) or said == "not authorized":
                said = "only a query is answered (SELECT), nothing is changed by it"
            raise BadArgumentError(f"SQL: {said}; `tripod query` lists what there is") from error


def _watched(
    query: Callable[[], Iterable[dict[str, Any]]], seconds: int
) -> Iterator[dict[str, Any]]:
    """The rows of a query; the process ends where one call of a function takes longer than that.

    In such a call SQLite looks at no clock, and Python sees no signal. A slow reader is waited for.
    """
    asked: float | None = time.monotonic()  # for the row that SQLite has not given yet
    over = Event()

    def watch() -> None:
        while not over.wait(_TICK_S):
            if asked is not None and time.monotonic() - asked > seconds + _GRACE_S:
                remark(_TOO_LONG.format(seconds))
                os._exit(1)

    watching = Thread(target=watch, daemon=True)
    watching.start()
    try:
        for row in query():
            asked = None
            yield row
            asked = time.monotonic()
    finally:
        over.set()
        watching.join()


def _listed_views(views: Database) -> Iterator[dict[str, Any]]:
    from tripod.ledger.sqlite.views import view_queries

    for name in view_queries():
        columns = ", ".join(row["name"] for row in views.query(f"PRAGMA table_info({name})"))
        yield {"view": name, "columns": columns}


def _save(call: CommandCall, views: Database) -> None:
    from tripod.ledger.sqlite.metadata import datasette_metadata
    from tripod.ledger.sqlite.views import save_views

    written = [call.save, *filter(None, [call.datasette])]
    for path in written:
        problem = place_to_write_problem(path)
        if problem is None and os.path.lexists(path):
            problem = f"{path} is there already: give a new name"
        if problem is not None:
            raise RefusedError(problem)
    with call.progress():
        tables = save_views(views, call.save, texts=not call.without_texts)
    if call.datasette is not None:
        name = os.path.splitext(os.path.basename(call.save))[0]  # as Datasette calls it
        text = json.dumps(datasette_metadata(name, tables), indent=2)
        try:
            with open(call.datasette, "x", encoding="utf-8") as file:
                file.write(f"{text}\n")
        except OSError as error:
            os.unlink(call.save)  # both are written, or none
            raise RefusedError(f"{call.datasette}: {error.strerror or error}") from error
    value = {"file": call.save, "tables": list(tables), "datasette": call.datasette}
    call.answer(value, [f"Written: {one_line(path)}" for path in written])


def _answer(call: CommandCall, rows: Iterable[dict[str, Any]]) -> None:
    """Print rows in the form that was asked for, up to the limit."""
    limit = call.limit or None
    rest = iter(rows)
    shown = ({name: _cell(value) for name, value in row.items()} for row in islice(rest, limit))
    if call.json:
        call.objects(shown)
    elif call.csv:
        for part in _csv_parts(shown):
            emit_bytes(part)
    else:
        emit(_table_lines(shown))
    if next(rest, None) is not None:
        remark(f"there are more rows than {limit}: --limit 0 prints all")


def _cell(value: Any) -> Any:
    """A value of SQLite as JSON can hold it: bytes as text, in hex where they are no UTF-8."""
    if type(value) is float and not isfinite(value):
        return str(value)
    if type(value) is not bytes:
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.hex()


def _csv_parts(rows: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    """The rows as CSV (RFC 4180), names first, some hundred at once."""
    rest = iter(rows)
    is_first = True
    while part := list(islice(rest, LINES)):
        text = io.StringIO()
        writer = csv.writer(text)
        if is_first:
            writer.writerow(part[0])
        writer.writerows(row.values() for row in part)
        is_first = False
        yield text.getvalue().encode("utf-8", "replace")


def _table_lines(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    """The rows in columns of even width, long texts cut."""
    cells: list[list[str]] = []
    for row in rows:
        cells = cells or [[str(name) for name in row]]
        texts = ["" if value is None else str(value) for value in row.values()]
        cells.append([one_line(text[:_CELL]) + "…" * (len(text) > _CELL) for text in texts])
    if not cells:
        return
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    cells.insert(1, ["-" * width for width in widths])
    for line in cells:
        yield "  ".join(map(str.ljust, line, widths)).rstrip()


_QUERY = """query [SQL]
    SQL is a query (SELECT) over the ledger, which is opened only to be read. Without SQL, the
    command lists the views: `log` has every entry, and each kind has a view of its own, with the
    fields of its body as columns (chat_sent, decision_logged, bus_published, ...).

    The tables of the database can be read as well. --team may also name a database, a backup or
    an export.

    --file FILE    Take SQL from a file (- for standard input).
    --csv          Print comma-separated values, names first.
    --table        Print columns of even width, with long texts cut. This is the default.
    --limit N      At most so many rows; 0 for all. [default: 1000]
    --timeout S    Give up after so many seconds. [default: 60]
    --views        Print the statements that make the views, for other programs.
    --save FILE    Write the views as the tables of a new database FILE, for other programs.
    --without-texts  With --save: leave out what was said in chats, events, runs and files. The
        log of decisions stays. A reader of FILE cannot read the chat in it.
    --datasette FILE  With --save: also write metadata for Datasette, with canned queries.
    looks: unless --save
"""

# Differences ------------------------------------------------------------------------------------


def _diff(call: CommandCall) -> int:
    value, lines = difference_told(call, call.a, call.b, call.number)
    call.answer(value, lines)
    return 0 if value["same"] else 1


def difference_told(
    call: CommandCall, a: str, b: str, number: int
) -> tuple[dict[str, Any], list[str]]:
    """Where two ledgers part, as a value of JSON and as lines; ``number`` entries are listed.

    Raises LedgerDamagedError where that cannot be told: the exit code 1 would say that they differ.
    """
    from tripod.verify.difference import compare_ledgers

    if "" in (a, b):  # elsewhere that means the team here: a script's variable is unset
        raise BadArgumentError("A and B name two ledgers, and one of them is empty")
    try:
        with ExitStack() as opened, call.progress():
            one, two = (opened.enter_context(_opened_side(path)) for path in (a, b))
            found = compare_ledgers(one, two, number)
            if found.problem:
                raise LedgerDamagedError(f"it cannot be told whether they differ: {found.problem}")
            proof = list(_proof_lines(found))
            values = [_side_value(found, at) for at in range(2)]
            lines = list(_difference_lines((a, b), number, found, values))
    except (OSError, NoTeamError, UnwritableError) as error:
        raise LedgerDamagedError(str(error)) from error
    value = {
        "a": {"path": a, **values[0]},
        "b": {"path": b, **values[1]},
        "common": found.common,
        "contents": [{"seq": seq, "differs": what} for seq, what in found.contents],
        "contents_count": found.contents_count,
        "differs": found.apart,
        "first": found.first,
        "forked": found.forked is not None,
        "proof": proof,
        "same": found.same,
    }
    return value, [*lines, *proof]


@contextmanager
def _opened_side(path: str) -> Iterator[LedgerSide]:
    """What stands at a path or on a git ref, as of one moment, with the seal beside it."""
    from tripod.ledger.tlog import tiles
    from tripod.ledger.tlog.note import MAX_NOTE
    from tripod.verify.difference import LedgerSide

    if path.startswith("refs/") and not os.path.lexists(path):
        with _opened_ref(path) as (ledger, note):
            yield LedgerSide(ledger, ((tiles.SEAL, note),))
        return
    root = team_of(path) if os.path.isdir(path) else None
    folder = f"{root}/{RECORD}" if root else path
    notes: tuple[tuple[str, bytes], ...] = ()
    with suppress(OSError):  # there is no such file
        notes = ((tiles.SEAL, read_plain_file(f"{folder}/{tiles.SEAL}", MAX_NOTE)),)
    with opened_ledger(path) as ledger:
        if not ledger.db.in_transaction:
            ledger.db.execute("BEGIN")
        yield LedgerSide(ledger, notes)


@contextmanager
def _opened_ref(ref: str) -> Iterator[tuple[RowReader, bytes]]:
    """The record that a ref of the repository around the current folder holds, and its seal."""
    from tempfile import TemporaryDirectory

    from tripod.verify.anchors.git import Repository
    from tripod.verify.export import FileError, load_export
    from tripod.verify.export_file import RefFiles

    with TemporaryDirectory(prefix="tripod-") as scratch:
        try:
            with Repository(os.path.join(os.getcwd(), FOLDER)) as repository:
                commit = repository.tip(ref)
                if commit is None:
                    raise NoTeamError(f"there is no {ref} in {repository.top}")
                files = RefFiles(repository, commit)
                note = files.seal_note()
                loaded = load_export(files, f"{scratch}/{DATABASE}")
        except (GitError, FileError, sqlite3.Error) as error:
            raise LedgerDamagedError(f"{ref} cannot be read as a record: {error}") from error
        with closing(read_only(f"{scratch}/{DATABASE}")) as db:
            if not loaded.entries:
                found = (f"{one.where}: {one.message}" for one in loaded.tally.of("record-agrees"))
                problem = next(found, "it holds no entry")
                raise LedgerDamagedError(f"{ref} cannot be read as a record: {problem}")
            ledger = RowReader(db)
            ledger.bodies = loaded.bodies
            yield ledger, note


def _side_value(found: LedgerDifference, at: int) -> dict[str, Any]:
    side, row = found.sides[at], found.rows[at]
    good, broken = side.good(), side.broken()
    return {
        "broken": None if broken is None else broken.size,
        "entry": None if row is None else _value(listed_entry(side.ledger, row)),
        "only": side.only,
        "origin": RowHeads(side.ledger.db).line(side.size - 1),
        "problem": side.problem,
        "sealed": None if good is None else good.size,
        "size": side.size,
    }


def _difference_lines(
    paths: tuple[str, str],
    number: int,
    found: LedgerDifference,
    values: Sequence[Mapping[str, Any]],
) -> Iterator[str]:
    line = entry_line_writer(plain=True)
    for name, path, value in zip("AB", paths, values, strict=True):
        sealed = "" if value["sealed"] is None else f", sealed up to {value['sealed']}"
        yield one_line(f"{name}  {path}: {value['size']} entries of {value['origin']}{sealed}")
    for name, side in zip("AB", found.sides, strict=True):
        if not side.ledger.bodies:
            yield f"{name} has headers alone, without what was said: only headers are compared"
    if found.same:
        yield f"They are the same: {found.common} entries"
    for seq, what in found.contents[:number]:
        yield f"Entry {seq} has the same header in both, and differs beside it: {what}"
    more = found.contents_count - min(len(found.contents), number)
    if more > 0:
        yield f"... and {more} more differ so"
    for name, side in zip("AB", found.sides, strict=True):
        if side.problem:
            yield f"{name} cannot be read to its end: {one_line(side.problem)}"
    if found.first is None:
        return
    if None in found.rows:
        ended, longer = "AB" if found.rows[0] is None else "BA"
        yield f"{longer} begins with all {found.common} entries of {ended}, and goes on"
    else:
        yield f"The first {found.common} entries are the same"
        yield f"Entry {found.first} differs ({', '.join(found.apart)}):"
        for name, side, row in zip("AB", found.sides, found.rows, strict=True):
            assert row is not None
            yield f"{name}  {line(listed_entry(side.ledger, row)).rstrip()}"
    for name, side in zip("AB", found.sides, strict=True):
        if side.only:
            yield f"Only in {name}: {side.only} of its {side.size} entries"
            for row in side.first_only:
                yield f"   {line(listed_entry(side.ledger, row)).rstrip()}"
        if side.only > len(side.first_only):
            yield f"   ... and {side.only - len(side.first_only)} more"


def _proof_lines(found: LedgerDifference) -> Iterator[str]:
    """What the seals show, in sentences."""
    for at, (name, other) in enumerate((("A", "B"), ("B", "A"))):
        side, good, broken = found.sides[at], found.sides[at].good(), found.sides[at].broken()
        if broken is not None:
            what = "does not fit its entries: they were changed after they were sealed"
            if broken.size > side.size:
                what = f"covers more than its {side.size} entries: the newest are missing"
            yield f"{name}: the seal over {broken.size} entries ({broken.where}) {what}"
        if good is None:
            if broken is None:
                yield f"{name}: no seal by a key that its entries set: nothing proves them"
            continue
        key = one_line(good.key.split("+")[1])  # its id, in hex
        both = " (both have it)" if side.keys.get(good.key, found.common) < found.common else ""
        held = found.sides[1 - at].fits(good)
        has = {True: "has them too", False: "has others in their place", None: "lacks some of them"}
        what = "is another ledger" if found.are_apart else has[held]
        yield (
            f"{name}: its first {good.size} entries are those that the key {key}{both} sealed; "
            f"{other} {what}"
        )
        if found.first is not None and good.size <= found.first < side.size:
            yield f"{name}: no seal covers where it parts from {other}"
    if found.forked is not None:
        one, two = found.forked
        yield (
            f"One key sealed both histories, A's first {one.size} and B's first {two.size} "
            "entries: the two seals prove that against its holder. Keep both"
        )


_DIFF = """\
diff A B
    Compare two ledgers, entry by entry. A and B are projects, team directories, databases, backups
    or exports, or a replica's record on a git ref, by the ref's full name (refs/tripod/...). diff
    prints the first entry at which they part, as each side has it, the entries that only one side
    has, and what the seals prove of each side. It writes nothing.

    Exit codes: 0 they are the same, 1 they differ, 2 usage, 3 could not be compared.

    -n, --number N  List at most so many of the entries that only one side has. [default: 10]
    looks: always
    without: --team
"""

COMMANDS = {
    "log": command_verb(_LOG, _log),
    "query": command_verb(_QUERY, _query),
    "diff": command_verb(_DIFF, _diff),
}
