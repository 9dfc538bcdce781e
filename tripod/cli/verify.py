"""``tripod verify``: the judge's verdict, for people, scripts and CI. It writes nothing."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NamedTuple

import click

from tripod.cli.door import TEXT, Number
from tripod.cli.progress import shown
from tripod.cli.vkeys import log_keys
from tripod.errors import BadArgumentError, RefusedError
from tripod.ledger.locator import subject
from tripod.ledger.tlog.note import VerifierKey
from tripod.output import emit, emit_report, remark
from tripod.verify.anchors.collect import AnchorOptions, OutsideError
from tripod.verify.finding import Report

if TYPE_CHECKING:
    from tripod.verify.evidence import Evidence


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
@click.option(
    "--grow-only",
    type=TEXT,
    metavar="FILE",
    help="Judge one file by git alone: each committed version begins with the one before.",
)
@click.option("--pin", type=TEXT, metavar="FILE", help="Hold the ledger against the head in FILE.")
@click.option(
    "--update-pin", is_flag=True, help="If all is clean, let the pin remember the ledger as it is."
)
@click.option(
    "--new-only", is_flag=True, help="Look only at what is behind the pin, and say what that omits."
)
@click.option(
    "--policy",
    "policies",
    type=TEXT,
    multiple=True,
    metavar="FILE",
    help="A policy from elsewhere (.tlog or .yaml) in place of the team's own.",
)
@click.option("--no-git", is_flag=True, help="Leave the history of the git repository alone.")
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
    grow_only: str | None,
    pin: str | None,
    update_pin: bool,
    new_only: bool,
    policies: tuple[str, ...],
    no_git: bool,
    explain: str | None,
    list_checks: bool,
    as_json: bool,
) -> None:
    """Judge a project, a team directory, a database, an export or a proof (PATH).

    Without PATH it is the team that TRIPOD_LEDGER names; else the nearest one above.

    A clone that has no database is judged by its record, .nbs/record.

    Exit codes: 0 all required checks clean, 1 findings, 2 usage, 3 could not judge.
    """
    from tripod.verify.checks import CHECKS
    from tripod.verify.export.proof import is_proof

    names = [check.NAME for check in CHECKS]
    for name in (*selected, *([explain] if explain else [])):
        if name not in names:
            raise BadArgumentError(f"no check {name!r}; there are {', '.join(names)}")
    if list_checks:
        emit(names)
    elif explain:
        from tripod.verify.run import manual

        emit_report(manual(explain))
    elif grow_only is not None:
        if path is not None or selected or no_ledger or pin or policies or vkeys or old:
            raise BadArgumentError(
                "--grow-only judges one file by git alone: give no PATH and no other option"
            )
        ctx.exit(_grow_only(grow_only, as_json=as_json))
    else:
        if pin is None and (update_pin or new_only):
            raise BadArgumentError("--update-pin and --new-only go with --pin FILE")
        if update_pin and selected:
            raise BadArgumentError(
                "--update-pin remembers what was judged whole: give no --select with it"
            )
        asked = AnchorOptions(pin, update_pin, new_only, policies, not no_git)
        wanted = _Wanted(subject(path), selected, no_ledger, nearby, tuple(log_keys(vkeys)))
        if is_proof(wanted.subject):
            ctx.exit(_proof(wanted, old, asked, as_json=as_json))
        ctx.exit(_judge(wanted, asked, as_json=as_json))


class _Wanted(NamedTuple):
    """What is to be judged, and how."""

    subject: str
    selected: tuple[str, ...]
    no_ledger: bool
    nearby: int
    keys: tuple[VerifierKey, ...]


def _proof(wanted: _Wanted, old: str | None, asked: AnchorOptions, *, as_json: bool) -> int:
    """Judge a proof file; give the exit code."""
    from tripod.trust.prove import seal_from
    from tripod.verify.export.proof import judge_proof

    if asked.pin is not None or asked.policies:
        raise BadArgumentError(
            f"{wanted.subject} is a proof: hold it against keys (--key) and a seal (--old)"
        )
    report = judge_proof(wanted.subject, wanted.keys, seal_from(old)[1] if old else None)
    _say(report, as_json=as_json)
    return report.exit_code


def _judge(wanted: _Wanted, asked: AnchorOptions, *, as_json: bool) -> int:
    """Judge a team, say the report, and keep the pin; give the exit code.

    Where others work in the team meanwhile, what was read is not of one moment: then what is found
    is judged anew, a few times.
    """
    from tripod.team.recheck import TIMES

    left = TIMES
    judged = None
    while judged is None:
        left -= 1
        judged = _judge_once(wanted, asked, last=not left, as_json=as_json)
    report, code, said = judged
    _say(report, as_json=as_json)
    if said:
        remark(said)
    return code


def _judge_once(
    wanted: _Wanted, asked: AnchorOptions, *, last: bool, as_json: bool
) -> tuple[Report, int, str] | None:
    """The report, the exit code, what to say of the pin; None: to be judged again."""
    from tripod.team.recheck import changed_meanwhile
    from tripod.verify.load import open_evidence
    from tripod.verify.run import run

    with (
        shown(quiet=as_json),
        open_evidence(
            wanted.subject,
            no_ledger=wanted.no_ledger,
            nearby=wanted.nearby,
            keys=wanted.keys,
            asked=asked,
        ) as evidence,
    ):
        report = run(evidence, select=wanted.selected or None)
        code, said = report.exit_code, ""
        if code and not last and changed_meanwhile(evidence):
            return None
        if asked.first and asked.pin is not None:
            code, said = _keep_pin(evidence, asked.pin, code)
    return report, code, said


def _keep_pin(evidence: Evidence, path: str, code: int) -> tuple[int, str]:
    """Let the pin go forward where all is clean; give the exit code, and what to say of it."""
    from tripod.trust.prove import write_pin
    from tripod.verify.anchors.compare import agrees, pin_of

    data = None if code else pin_of(evidence)
    if data is None:
        return code, f"the pin {path} was left as it is"
    try:
        moved = write_pin(path, data, lambda seal: agrees(evidence, seal))
    except (RefusedError, OutsideError) as error:
        return 1, str(error)
    return code, f"the pin {path} remembers {_size(data)} entries" if moved else ""


def _size(pin: bytes) -> str:
    """The second line of a seal or a head."""
    return pin.decode().split("\n")[1]


def _grow_only(path: str, *, as_json: bool) -> int:
    from tripod.verify.anchors.growth import grow_only

    with shown(quiet=as_json):
        report = grow_only(path)
    _say(report, as_json=as_json)
    return report.exit_code


def _say(report: Report, *, as_json: bool) -> None:
    """Print a report in the form that was asked for."""
    if as_json:
        from tripod.verify.reporters import json as json_

        emit_report(json_.render(report))
    else:
        from tripod.verify.reporters import text

        colour = sys.stdout is not None and sys.stdout.isatty() and "NO_COLOR" not in os.environ
        emit_report(text.render(report, color=colour))
