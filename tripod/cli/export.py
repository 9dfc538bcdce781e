"""``tripod export`` and ``prove``: files that others can check without us."""

from __future__ import annotations

import os

import click

from tripod.cli.door import TEXT, opened, team_option
from tripod.cli.output import emit, emit_json
from tripod.cli.progress import shown

__all__ = ["export"]


@click.command()
@click.argument("directory", type=TEXT)
@team_option
@click.option("--bodies", is_flag=True, help="Also what was said: bodies, salts and blobs.")
@click.option(
    "--seal", type=TEXT, metavar="FILE", help="The seal to go under; the newest by default."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def export(
    *, directory: str, team_path: str | None, bodies: bool, seal: str | None, as_json: bool
) -> None:
    """Write the sealed ledger into DIRECTORY, as files that any C2SP tool can check.

    An export that is there is grown by what is new. Without --bodies only headers and hashes are
    written: who did something of which kind, and when, but nothing of what was said.
    """
    from tripod import export as exports
    from tripod.newest_seal import newest_seal, seal_from

    with opened(team_path) as team, shown(quiet=as_json):
        note = newest_seal(team) if seal is None else seal_from(seal)[0]
        done = exports.export(team.store.path, directory, note, bodies=bodies)
    if as_json:
        emit_json([done._asdict()])
        return
    files = f"{done.written} files written, {done.removed} removed"
    emit([f"Exported: {done.size} entries to {os.path.join(directory, '')} ({files})"])
