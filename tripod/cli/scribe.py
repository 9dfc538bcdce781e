"""``tripod scribe``: the decision log. Exit codes as the seeds' nbs-scribe documents them."""

from __future__ import annotations

from collections.abc import Iterable

import click

from tripod import scribe as acts
from tripod.cli.advise import advise
from tripod.cli.door import HANDLE, TEXT, Door, Number, opened, team_option
from tripod.output import emit, emit_json, hanging, remark

__all__ = ["scribe"]


@click.group(cls=Door)
def scribe() -> None:
    """Log decisions, count and find them.

    Exit codes: 0 ok, 1 general error (bad arguments, nothing found), 2 no log or team directory.
    """


scribe.add_command(advise)


@scribe.command()
@team_option
@click.argument("title", type=TEXT)
@click.option(
    "--participant",
    "-p",
    "participants",
    type=HANDLE,
    multiple=True,
    required=True,
    metavar="HANDLE",
    help="Who took part; once for each.",
)
@click.option("--rationale", "-r", type=TEXT, required=True, help="Why, in one to three sentences.")
@click.option(
    "--ref",
    "refs",
    type=TEXT,
    multiple=True,
    metavar="FILE:~Ln",
    help="Where in a chat it was decided, such as live.chat:~L342; once for each. No message "
    "there: refused. Left out: logged, and a finding of `tripod verify` for good.",
)
@click.option(
    "--artefact", "artefacts", type=TEXT, multiple=True, help="A file or commit; once for each."
)
@click.option(
    "--risk-tag", "risk_tags", type=TEXT, multiple=True, help="Such as tech-debt; once for each."
)
@click.option(
    "--status",
    type=TEXT,
    default="decided",
    show_default=True,
    help="decided, accepted-risk, mitigated, superseded or reversed.",
)
@click.option("--supersedes", type=TEXT, metavar="D-N", help="The decision that this one replaces.")
@click.option(
    "--as",
    "actor",
    type=HANDLE,
    metavar="HANDLE",
    help="Who logs it; the team's scribe by default.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def log(
    *,
    team_path: str | None,
    title: str,
    participants: tuple[str, ...],
    rationale: str,
    refs: tuple[str, ...],
    artefacts: tuple[str, ...],
    risk_tags: tuple[str, ...],
    status: str,
    supersedes: str | None,
    actor: str | None,
    as_json: bool,
) -> None:
    """Log a decision: its id is printed. At each pythia-interval a checkpoint event follows."""
    request = acts.Request(
        title, participants, rationale, refs, artefacts, risk_tags, status, supersedes
    )
    with opened(team_path) as team:
        logged = acts.log(team, request, actor=actor)
    for warning in logged.warnings:
        remark(f"warning: {warning}")
    if as_json:
        value: dict[str, object] = {"id": logged.id, "number": logged.number}
        emit_json([value | ({"checkpoint": logged.checkpoint} if logged.checkpoint else {})])
        return
    emit([logged.id])
    if logged.checkpoint:
        remark(f"decision {logged.number}: Pythia's review is due ({logged.checkpoint})")


def _show(decisions: Iterable[acts.Decision], *, as_json: bool) -> int:
    found = list(decisions)
    if as_json:
        emit_json(vars(decision) for decision in found)
    for decision in [] if as_json else found:
        mark = f"[SUPERSEDES {decision.supersedes}] " if decision.supersedes else ""
        parts = (
            decision.status,
            decision.participants,
            decision.chat_ref,
            f"tags: {decision.risk_tags}",
            f"artefacts: {decision.artefacts}",
        )
        emit(
            [
                f"{decision.id} {mark}{hanging(decision.title)}",
                hanging(f"  {'; '.join(parts)}"),
                f"  {hanging(decision.rationale)}",
            ]
        )
    return len(found)


@scribe.command()
@team_option
@click.argument("text", type=TEXT, default="")
@click.option("--tag", type=TEXT, help="Only with this risk tag.")
@click.option("--status", type=TEXT, help="Only with this status.")
@click.option("--by", type=HANDLE, metavar="HANDLE", help="Only with this participant.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a decision and line.")
@click.pass_context
def query(
    ctx: click.Context,
    *,
    team_path: str | None,
    text: str,
    tag: str | None,
    status: str | None,
    by: str | None,
    as_json: bool,
) -> None:
    """Print decisions that hold TEXT in any field and fit the filters; 1 if there is none."""
    with opened(team_path) as team:
        team.refresh()
        count = _show(acts.query(team, text, tag=tag, status=status, by=by), as_json=as_json)
    if not count:
        remark("no decision fits")
        ctx.exit(1)


@scribe.command()
@team_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def count(*, team_path: str | None, as_json: bool) -> None:
    """Print how many decisions the log holds."""
    with opened(team_path) as team:
        team.refresh()
        found = acts.count(team)
    if as_json:
        emit_json([{"count": found}])
    else:
        emit([str(found)])


@scribe.command()
@team_option
@click.option("-n", "last", type=Number(), default=10, show_default=True, help="How many.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a decision and line.")
def summary(*, team_path: str | None, last: int, as_json: bool) -> None:
    """Print the newest decisions."""
    with opened(team_path) as team:
        team.refresh()
        _show(acts.summary(team, last), as_json=as_json)
