"""``tripod verify``: the judge's verdict, for people, scripts and CI. It writes nothing."""

from __future__ import annotations

import os
import sys

import click

from tripod.cli.door import TEXT, Number
from tripod.cli.output import emit, emit_report
from tripod.cli.progress import shown
from tripod.errors import BadArgumentError
from tripod.team import FOLDER
from verify.finding import Report

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
    "--grow-only",
    type=TEXT,
    metavar="FILE",
    help="Judge one file by git alone: each committed version begins with the one before.",
)
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
    grow_only: str | None,
    explain: str | None,
    list_checks: bool,
    as_json: bool,
) -> None:
    """Judge a project, a team directory, or a bare database file (PATH; found upwards).

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
    if grow_only is not None:
        if path is not None or selected or no_ledger:
            message = "--grow-only judges one file by git alone: give no PATH and no other option"
            raise BadArgumentError(message)
        from verify.grow_only import grow_only as judge

        with shown(quiet=as_json):
            report = judge(grow_only)
        _say(report, as_json=as_json)
        ctx.exit(report.exit_code)
    from verify.evidence import collect

    with shown(quiet=as_json):
        evidence = collect(_subject(path), no_ledger=no_ledger, nearby=nearby)
        report = run(evidence, select=selected or None)
    _say(report, as_json=as_json)
    ctx.exit(report.exit_code)


def _say(report: Report, *, as_json: bool) -> None:
    """Print a report in the form that was asked for."""
    if as_json:
        from verify.reporters import json_

        emit_report(json_.render(report))
    else:
        from verify.reporters import text

        colour = sys.stdout is not None and sys.stdout.isatty() and "NO_COLOR" not in os.environ
        emit_report(text.render(report, color=colour))
