"""``tripod export`` and ``prove``: files that others can check without us."""

from __future__ import annotations

import os

import click

from tripod.cli.door import TEXT, Number, team_option
from tripod.cli.progress import shown
from tripod.errors import BadArgumentError
from tripod.output import emit, emit_bytes, emit_json
from tripod.projections.disk import Disk
from tripod.projections.projection import File
from tripod.team.open import opened


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
    from tripod.trust import export as exports
    from tripod.trust.prove import fresh_seal, seal_from

    with opened(team_path) as team, shown(quiet=as_json):
        note = fresh_seal(team) if seal is None else seal_from(seal)[0]
        done = exports.export(team.store.path, directory, note, bodies=bodies)
    if as_json:
        emit_json([done._asdict()])
        return
    files = f"{done.written} files written, {done.removed} removed"
    emit([f"Exported: {done.size} entries to {os.path.join(directory, '')} ({files})"])


@click.command()
@click.argument("seq", type=Number(), required=False)
@team_option
@click.option("--body", is_flag=True, help="Also show what the entry said, and its salt.")
@click.option(
    "--consistency",
    "old",
    type=TEXT,
    metavar="OLD",
    help="Prove instead that the log only grew since the seal in this file or export.",
)
@click.option(
    "--seal", type=TEXT, metavar="FILE", help="The seal to go under; the newest by default."
)
@click.option("--out", type=TEXT, metavar="FILE", help="Write the proof to a file.")
def prove(
    *,
    seq: int | None,
    team_path: str | None,
    body: bool,
    old: str | None,
    seal: str | None,
    out: str | None,
) -> None:
    """Prove that entry SEQ stands in the sealed log, to somebody who has nothing but its key.

    The file holds the entry's header; `tripod verify FILE --key VKEY` checks it, and so does any
    other program for C2SP proofs.
    """
    from tripod.trust import prove as proofs
    from tripod.trust.prove import fresh_seal, seal_from

    if (seq is None) == (old is None) or (body and seq is None):
        raise BadArgumentError(
            "give the number of an entry (with --body, if you like), or --consistency OLD"
        )
    with opened(team_path) as team:
        note = fresh_seal(team) if seal is None else seal_from(seal)[0]
        if old is not None:
            data = proofs.prove_growth(team.store.path, seal_from(old)[1], note)
        else:
            data = proofs.prove_entry(team.store.path, seq or 0, note, body=body)
    if out is None:
        emit_bytes(data)
        return
    folder, name = os.path.split(os.path.abspath(out))
    Disk(folder).write(name, File(data, 0o600 if body else 0o644))
