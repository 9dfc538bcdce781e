"""``tripod init``, ``sync`` and ``rebuild``: the ledger as a whole against the team's files."""

from __future__ import annotations

import os
import re
from dataclasses import replace

import click

from tripod.cli.door import HANDLE, TEXT, Number, team_option
from tripod.cli.progress import shown
from tripod.cli.vkeys import log_keys
from tripod.errors import BadArgumentError
from tripod.ledger.errors import PagesDamagedError
from tripod.ledger.locator import DATABASE, named
from tripod.ledger.places import RECORD
from tripod.output import emit, emit_json, one_line, remark
from tripod.projections import LOG
from tripod.recovery.rebuild import Rebuilt
from tripod.team import adopt
from tripod.team.open import find_team, opened, readable
from tripod.team.team import Team

MAX_TIMEOUT = 2**32  # seconds: more than a century

_EXPLAINED = (
    (
        rf"{re.escape(DATABASE)}\.replaced-[0-9]+",
        "a ledger that `tripod restore` replaced: remove it if you need it no more",
    ),
    (
        rf"{re.escape(DATABASE)}\.damaged-[0-9]+",
        "a damaged database that `tripod rebuild` wrote anew: remove it if you need it no more",
    ),
    (
        rf"{re.escape(DATABASE)}\.re(newing|storing)(-[a-z]+)?",
        "left by a `tripod rebuild` or `restore` that was stopped: the next one removes it",
    ),
    (
        rf"{RECORD}\.replaced-[0-9]+/",
        "the record of the line that `tripod restore` left: remove it if you need it no more",
    ),
    (
        rf"{LOG.folder}/[^/]*\.md",
        "no decision log: it has no title `# Decision Log` and no decision, or is a copy of a log",
    ),
)
"""What is left alone and may be taken for a file of ours: its path, and what it is."""


def _explained(path: str) -> str:
    """A path that is left alone, and what stands there where that is known."""
    what = next((what for pattern, what in _EXPLAINED if re.fullmatch(pattern, path)), None)
    return one_line(path) if what is None else f"{one_line(path)} ({what})"


def _report(found: adopt.Adoption) -> None:
    if found.entries:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(found.kinds.items()))
        emit([f"Taken in from {found.files} files: {found.entries} entries ({kinds})"])
    else:
        emit(["Nothing new to take in"])
    if found.left_alone:
        count = len(found.left_alone)
        emit([f"Left alone: {count} files and folders, of which nothing is taken in"])
        emit(f"  {_explained(path)}" for path in found.left_alone)


def _refuse_options(*given: str | None) -> None:
    """A ledger that comes back is the one that it was."""
    if any(word is not None for word in given):
        raise BadArgumentError(
            "the ledger is restored from its record, which says project, origin and folders: "
            "leave --project, --origin, --events and --chat out"
        )


@click.command()
@click.argument("path", required=False)
@click.option("--project", type=TEXT, help="The project's name; the folder's by default.")
@click.option(
    "--origin", type=TEXT, help="The ledger's own name, unique for ever; made up by default."
)
@click.option("--scribe", type=HANDLE, help="The handle that logs decisions; `scribe` by default.")
@click.option(
    "--events", type=TEXT, metavar="DIR", help="The folder of the events; .nbs/events by default."
)
@click.option(
    "--chat", type=TEXT, metavar="DIR", help="The folder of the chats; .nbs/chat by default."
)
@click.option(
    "--key/--no-key",
    default=None,
    help="Make a key that seals the ledger; by default in a git repository alone.",
)
@click.option(
    "--log-key",
    "vkeys",
    type=TEXT,
    multiple=True,
    metavar="VKEY",
    help="The log's public key, where a ledger is restored from its record.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def init(
    *,
    path: str | None,
    project: str | None,
    origin: str | None,
    scribe: str | None,
    events: str | None,
    chat: str | None,
    key: bool | None,
    vkeys: tuple[str, ...],
    as_json: bool,
) -> None:
    """Begin a ledger in PATH; an existing .nbs/ is taken in whole, without changing it.

    Where there is none, but a record (.nbs/record, as in a clone), the ledger comes back from that.

    Where there is a ledger already, only what is new is taken in, and its names stay as they are.
    Folders that are kept elsewhere (--events, --chat) are recorded for ever, and every command
    finds them. Without PATH it is the directory that TRIPOD_LEDGER names, or the current folder.
    """
    path = path or named() or "."
    if not os.path.lexists(os.path.join(adopt.team_root(path), DATABASE)):
        from tripod.trust import record

        root = adopt.team_root(path)
        if record.has_record(root):
            _refuse_options(project, origin, events, chat)
            with shown(quiet=as_json):
                size, ahead = record.restore(root, log_keys(vkeys, "--log-key"))
            if as_json:
                emit_json([{"root": root, "restored": size}])
            else:
                emit([f"Restored: {root}/{DATABASE} from {root}/{RECORD}, {size} entries"])
            if ahead is not None:
                remark(
                    f"warning: {ahead}: it was made after the record's seal, and is lost but for "
                    "what the files show; `tripod rebuild` goes on from here, and says what goes"
                )
            return
    with readable(os.path.abspath(path)), shown(quiet=as_json):
        found = adopt.init(
            path,
            project=project,
            origin=origin,
            scribe=scribe,
            events=events,
            chat=chat,
            key=key,
        )
    for warning in found.warnings:
        remark(f"warning: {warning}")
    if as_json:
        emit_json([vars(found)])
        return
    emit([f"{'Begun' if found.begun else 'There is already'}: {found.root}/ledger.db"])
    _report(found)
    if found.key:
        emit([f"Sealed by the new key {found.key}", "Keep a copy of it: `tripod key show`"])


@click.command()
@team_option
@click.option("--watch", "stay", is_flag=True, help="Stay, and take in what comes as it comes.")
@click.option(
    "--timeout",
    type=Number(0, MAX_TIMEOUT),
    metavar="S",
    help="Seconds to watch; for ever by default.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object; a line each with --watch.")
def sync(*, team_path: str | None, stay: bool, timeout: int | None, as_json: bool) -> None:
    """Take in what other programs wrote to the team's files.

    With --watch, what is there, and then what comes, one line for each time something was taken in,
    until SIGINT or SIGTERM (exit 0). The system wakes it (inotify); where it does not, and in any
    case, it looks again every `poll-interval` seconds.
    """
    if timeout is not None and not stay:
        raise BadArgumentError("--timeout is for --watch: without it sync does not wait")
    with opened(team_path) as team:
        if stay:
            _watch(team, timeout, as_json=as_json)
            return
        with shown(quiet=as_json):
            found = adopt.sync(team)
        if as_json:
            emit_json([vars(found)])
        else:
            _report(found)


def _watch(team: Team, timeout: int | None, *, as_json: bool) -> None:
    from tripod.team import watch as watching

    def report(found: watching.TakenIn) -> None:
        if as_json:
            emit_json([{"entries": found.entries, "kinds": found.kinds, "size": found.size}])
        else:
            kinds = ", ".join(f"{count} {kind}" for kind, count in found.kinds.items())
            emit([f"Taken in: {found.entries} entries ({kinds})"])

    def ready(is_told: bool) -> None:
        remark("watching" if is_told else "watching, by looking again and again")

    stop = watching.Stop()
    with stop.by_signals():
        watching.watch(
            team,
            report,
            warn=lambda text: remark(f"warning: {text}"),
            ready=ready,
            stop=stop,
            timeout=timeout,
        )


def _rebuilt(team_path: str | None, *, evidence: bool, discard: str | None, quiet: bool) -> Rebuilt:
    from tripod.recovery import rebuild as recover

    with opened(team_path) as team, shown(quiet=quiet):
        return recover.rebuild(team, evidence=evidence, discard=discard)


@click.command()
@team_option
@click.option("--evidence", is_flag=True, help="Also give back kept logs that are gone or changed.")
@click.option(
    "--discard",
    type=TEXT,
    metavar="REASON",
    help="Also remove what the files show and no entry holds; the reason is recorded.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def rebuild(*, team_path: str | None, evidence: bool, discard: str | None, as_json: bool) -> None:
    """Make every table and projected file what the ledger says.

    What stood in a file's place is kept as a blob in the ledger first. Where that holds decisions,
    messages or events that no entry of this ledger holds (another clone's, or those of a newer
    ledger that a backup replaced), nothing is written without --discard; with it, `tripod verify`
    names them from then on.

    Where pages of the database are damaged, its entries are copied into a new one, if they are
    sound; the damaged one is kept beside it.
    """
    try:
        done = _rebuilt(team_path, evidence=evidence, discard=discard, quiet=as_json)
    except PagesDamagedError:
        from tripod.recovery.repair import renew_aloud

        root = find_team(team_path)
        with readable(root), shown(quiet=as_json):
            kept = renew_aloud(root)
        done = _rebuilt(team_path, evidence=evidence, discard=discard, quiet=as_json)
        done = replace(done, kept=kept)
    if as_json:
        emit_json([vars(done)])
        return
    emit(f"  {one_line(path)}" for path in done.written)
    if done.triggers:
        emit([f"Triggers put back: {', '.join(done.triggers)}"])
    emit([f"Rebuilt: {len(done.written)} files written, {done.displaced} had held other bytes"])
