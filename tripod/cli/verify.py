"""``tripod verify``: the judge's verdict, for people, scripts and CI. It writes nothing."""

from __future__ import annotations

import os
import sys

import click

from tripod.cli.door import TEXT, Number
from tripod.cli.output import emit, emit_report
from tripod.cli.progress import shown
from tripod.cli.vkeys import log_keys
from tripod.errors import BadArgumentError
from tripod.team import FOLDER

__all__ = ["verify"]


def _subject(path: str | None) -> str:
    """What to judge: the path given, or the nearest folder upwards that holds a team directory."""
    if path is not None:
        return path
    start = here = os.getcwd()
    while not os.path.isdir(os.path.join(here, FOLDER)):
        parent = os.path.dirname(here)
        if parent == here:
            return start
        here = parent
    return here


@click.command()
@click.argument("path", required=False)
@click.option("--no-ledger", is_flag=True, help="No ledger is expected: judge the files alone.")
@click.option(
    "--select", "selected", type=TEXT, multiple=True, metavar="CHECK", help="Only this check."
)
@click.option(
    "--nearby",
    type=Number(),
    default=50,
    show_default=True,
    metavar="LINES",
    help="How far an approximate chat ref may be off.",
)
@click.option(
    "--key",
    "vkeys",
    type=TEXT,
    multiple=True,
    metavar="VKEY",
    help="A log's public key: the seal of an export or proof must be signed by it.",
)
@click.option("--old", type=TEXT, metavar="FILE", help="The older seal, for a proof of growth.")
@click.option("--explain", type=TEXT, metavar="CHECK", help="Print the manual section of a check.")
@click.option("--list", "list_checks", is_flag=True, help="Print the names of all checks.")
@click.option("--json", "as_json", is_flag=True, help="The whole report as one JSON object.")
@click.pass_context
def verify(
    ctx: click.Context,
    *,
    path: str | None,
    no_ledger: bool,
    selected: tuple[str, ...],
    nearby: int,
    vkeys: tuple[str, ...],
    old: str | None,
    explain: str | None,
    list_checks: bool,
    as_json: bool,
) -> None:
    """Judge a project, a team directory, a database, an export or a proof (PATH; found upwards).

    A clone that has no database is judged by its record, .nbs/record.

    Exit codes: 0 all required checks clean, 1 findings, 2 usage, 3 could not judge.
    """
    from verify.checks import CHECKS
    from verify.run import run

    names = [check.NAME for check in CHECKS]
    for name in (*selected, *([explain] if explain else [])):
        if name not in names:
            message = f"no check {name!r}; there are {', '.join(names)}"
            raise BadArgumentError(message)
    if list_checks:
        emit(names)
        return
    if explain:
        from verify.explain import manual

        emit_report(manual(explain))
        return
    from verify.opening import open_evidence
    from verify.proofs import is_proof, judge_proof

    keys, subject = log_keys(vkeys), _subject(path)
    if is_proof(subject):
        from tripod.export_seal import seal_from

        report = judge_proof(subject, keys, seal_from(old)[1] if old else None)
    else:
        with (
            shown(quiet=as_json),
            open_evidence(subject, no_ledger=no_ledger, nearby=nearby, keys=keys) as evidence,
        ):
            report = run(evidence, select=selected or None)
    if as_json:
        from verify.reporters import json_

        emit_report(json_.render(report))
    else:
        from verify.reporters import text

        colour = sys.stdout is not None and sys.stdout.isatty() and "NO_COLOR" not in os.environ
        emit_report(text.render(report, color=colour))
    ctx.exit(report.exit_code)
