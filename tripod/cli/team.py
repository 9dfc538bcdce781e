"""``tripod init``, ``sync`` and ``rebuild``: the ledger as a whole against the team's files."""

from __future__ import annotations

import os

import click

from tripod import adopt
from tripod.cli.door import HANDLE, TEXT, opened, readable, team_option
from tripod.cli.output import emit, emit_json, one_line, remark
from tripod.cli.progress import shown

__all__ = ["init", "rebuild", "sync"]


def _report(found: adopt.Adoption) -> None:
    if found.entries:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(found.kinds.items()))
        emit([f"Taken in from {found.files} files: {found.entries} entries ({kinds})"])
    else:
        emit(["Nothing new to take in"])
    if found.left_alone:
        emit([f"Left alone: {len(found.left_alone)} files that are none of ours"])
        emit(f"  {one_line(path)}" for path in found.left_alone)


@click.command()
@click.argument("path", default=".")
@click.option("--project", type=TEXT, help="The project's name; the folder's by default.")
@click.option(
    "--origin", type=TEXT, help="The ledger's own name, unique for ever; made up by default."
)
@click.option(
    "--scribe",
    type=HANDLE,
    default="scribe",
    show_default=True,
    help="The handle that logs decisions.",
)
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
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def init(
    *,
    path: str,
    project: str | None,
    origin: str | None,
    scribe: str,
    events: str | None,
    chat: str | None,
    key: bool | None,
    as_json: bool,
) -> None:
    """Begin a ledger in PATH; an existing .nbs/ is taken in whole, without changing it.

    Where there is a ledger already, only what is new is taken in. Folders that are kept elsewhere
    (--events, --chat) are recorded for ever, and every command finds them.
    """
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
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def sync(*, team_path: str | None, as_json: bool) -> None:
    """Take in what other programs wrote to the team's files."""
    with opened(team_path) as team:
        with shown(quiet=as_json):
            found = adopt.sync(team)
        if as_json:
            emit_json([vars(found)])
        else:
            _report(found)


@click.command()
@team_option
@click.option("--evidence", is_flag=True, help="Also give back kept logs that are gone or changed.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def rebuild(*, team_path: str | None, evidence: bool, as_json: bool) -> None:
    """Make every table and projected file what the ledger says.

    What stood in a file's place is kept as a blob in the ledger first.
    """
    from tripod import recover

    with opened(team_path) as team, shown(quiet=as_json):
        done = recover.rebuild(team, evidence=evidence)
    if as_json:
        emit_json([vars(done)])
        return
    emit(f"  {one_line(path)}" for path in done.written)
    emit([f"Rebuilt: {len(done.written)} files written, {done.displaced} had held other bytes"])
