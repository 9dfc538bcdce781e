"""``tripod backup`` and ``tripod restore``: a copy of the ledger while it is in use, and back."""

from __future__ import annotations

import os

import click

from tripod.cli.door import TEXT, team_option
from tripod.cli.progress import shown
from tripod.output import emit, emit_json, one_line, remark
from tripod.team.open import opened, readable


@click.command()
@team_option
@click.argument("file", type=TEXT)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def backup(*, team_path: str | None, file: str, as_json: bool) -> None:
    """Write a consistent copy of the ledger to FILE, while others go on writing.

    The copy is one database file that `tripod verify FILE` judges. It holds no private key.
    """
    from tripod.recovery import backup as copies

    with opened(team_path) as team, shown(quiet=as_json):
        done = copies.backup(team, file)
    if as_json:
        emit_json([{"file": file, "root": done.root.hex(), "size": done.size}])
        return
    emit([f"{one_line(file)}: {done.size} entries, root {done.root.hex()}"])


@click.command()
@team_option
@click.argument("file", type=TEXT)
@click.option(
    "--as-origin", type=TEXT, metavar="NAME", help="The new line's name; made up by default."
)
@click.option(
    "--sign-fork",
    is_flag=True,
    help="Sign with the old line's key that it ends here, though newer heads of it are known.",
)
@click.option(
    "--discard",
    type=TEXT,
    metavar="REASON",
    help="Also remove what the files show and FILE does not hold; the reason is recorded.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def restore(
    *,
    team_path: str | None,
    file: str,
    as_origin: str | None,
    sign_fork: bool,
    discard: str | None,
    as_json: bool,
) -> None:
    """Put a backup in the place of the ledger, and write the team's files as it has them.

    What may lack entries goes on under a new name, and says so in its first entry: a seal of the
    new line never contradicts one of the old. The name stays only where the ledger that is
    replaced is wholly contained in FILE, and --as-origin is not given. The replaced database is
    kept beside the new one. Where the files show decisions, messages or events that FILE does not
    hold, nothing is replaced without --discard; with it they are kept in the ledger, and `tripod
    verify` names them from then on.


    Where a pin or a commit remembers more entries of the old line than FILE has, `verify` fails
    (`left behind`) until --sign-fork says that this is wanted, or a policy from outside does.
    """
    from tripod.recovery import backup as copies

    root = copies.place(team_path)
    with readable(os.path.abspath(root)), shown(quiet=as_json):
        done = copies.restore(root, file, as_origin, sign_fork=sign_fork, discard=discard)
    for warning in done.warnings:
        remark(f"warning: {warning}")
    if as_json:
        emit_json([vars(done)])
        return
    emit([f"Restored: {one_line(done.root)}/ledger.db, {done.size} entries of {one_line(file)}"])
    if done.forked:
        emit([f"It goes on as {done.origin}, forked from {done.old}"])
    if done.kept:
        emit([f"The database that stood there is kept as {one_line(done.kept)}"])
    emit([f"{done.written} files written, {done.displaced} had held other bytes"])
