"""``tripod redact``: erase what must not stay, and keep every proof."""

from __future__ import annotations

import click

from tripod.cli.door import HANDLE, TEXT, Number, team_option
from tripod.cli.progress import shown
from tripod.output import emit, emit_json, one_line, remark
from tripod.team.open import opened

LISTED = 20
OUTSIDE = (
    "what is in git history, in backups and with others cannot be erased from here: "
    "a secret that leaked must be revoked"
)


@click.command()
@team_option
@click.argument("seq", type=Number(), nargs=-1)
@click.option("--match", type=TEXT, metavar="REGEX", help="All entries in which this is found.")
@click.option("--reason", type=TEXT, default="", help="Why; it stays in the ledger.")
@click.option("--by", type=HANDLE, help="Who erases it; it stays in the ledger.")
@click.option("--dry-run", is_flag=True, help="Say what would be erased, and change nothing.")
@click.option(
    "--export",
    "exports",
    type=TEXT,
    multiple=True,
    metavar="DIR",
    help="An export whose bodies are erased as well; .nbs/record always is.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_context
def redact(
    ctx: click.Context,
    *,
    team_path: str | None,
    seq: tuple[int, ...],
    match: str | None,
    reason: str,
    by: str | None,
    dry_run: bool,
    exports: tuple[str, ...],
    as_json: bool,
) -> None:
    """Erase the bodies of entries everywhere we hold them; their headers and proofs stay.

    With SEQ, the events that tell of those entries and the bytes that were kept of files are
    erased with them. The entry that says who erased what, and why, stays for ever.

    Exit codes: 0 erased (with --dry-run: all of it can be), 1 something stays, 2 usage.
    """
    from tripod.recovery import redact as act

    with opened(team_path) as team, shown(quiet=as_json):
        request = act.RedactionRequest(seq, match, reason, by or "")
        found = act.redact(team, request, dry_run=dry_run, exports=exports)
    if as_json:
        value = vars(found) | {"erased": [vars(target) for target in found.erased]}
        emit_json([value])
    else:
        emit(f"  {t.seq:>7}  {t.kind:<16}  {one_line(t.stream)}  {t.why}" for t in found.erased)
        verb = "Would be redacted" if dry_run else "Redacted"
        emit([f"{verb}: {len(found.erased)} entries"])
    for line in found.cannot[:LISTED]:
        remark(f"stays: {line}")
    if len(found.cannot) > LISTED:
        remark(f"and {len(found.cannot) - LISTED} more entries in which something stays")
    if found.quoted:
        numbers = " ".join(map(str, found.quoted))
        remark(f"quoted elsewhere: `tripod redact {numbers}` erases that, too")
    for path in found.left:
        remark(f"still says it: {one_line(path)}")
    if not dry_run:
        remark(OUTSIDE)
    if found.cannot or found.left or not (dry_run or found.done):
        ctx.exit(1)
