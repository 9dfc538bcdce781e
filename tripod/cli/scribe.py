"""``tripod scribe``: the decision log. Exit codes as the seeds' nbs-scribe documents them."""

from __future__ import annotations

import time
from collections.abc import Iterable

import click

from tripod.cli.advise import advise
from tripod.cli.door import HANDLE, TEXT, Door, Number, team_option
from tripod.decisions import read as decisions_read
from tripod.decisions import writer as acts
from tripod.errors import MalformedEntryError
from tripod.output import emit, emit_json, remark
from tripod.scribe_lines import decision_lines, history_lines, inbox_lines
from tripod.team.open import opened


@click.group(cls=Door)
def scribe() -> None:
    """Log decisions, count and find them.

    Exit codes: 0 ok, 1 general error (bad arguments, nothing found), 2 no log or team directory,
    3 what was given makes no entry of the log.
    """


scribe.add_command(advise)

_log_option = click.option(
    "--log",
    "log_name",
    type=TEXT,
    metavar="NAME",
    help="Only of this log, such as live-log.md; of all logs by default.",
)


def _once(_: click.Context, param: click.Parameter, values: tuple[str, ...]) -> str | None:
    """The one value of an option; click would take the last, and drop the others in silence."""
    if len(set(values)) > 1:
        raise MalformedEntryError(
            f"--{param.name}: given {len(values)} times, and an entry of the log has room for one; "
            "log a decision for each"
        )
    return values[0] if values else None


@scribe.command()
@team_option
@click.argument("title", type=TEXT)
@click.option(
    "--participant",
    "-p",
    "participants",
    type=TEXT,
    multiple=True,
    required=True,
    metavar="HANDLE",
    help="Who took part; once for each.",
)
@click.option(
    "--rationale",
    "-r",
    type=TEXT,
    multiple=True,
    callback=_once,
    required=True,
    help="Why, in one to three sentences.",
)
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
@click.option(
    "--supersedes",
    type=TEXT,
    multiple=True,
    callback=_once,
    metavar="D-N",
    help="The decision that this one replaces; one alone.",
)
@click.option(
    "--reverses",
    type=TEXT,
    multiple=True,
    callback=_once,
    metavar="D-N",
    help="The decision that this one undoes; one alone.",
)
@click.option(
    "--mitigates",
    type=TEXT,
    multiple=True,
    callback=_once,
    metavar="D-N",
    help="The decision whose risk this one addresses; one alone.",
)
@click.option(
    "--as",
    "actor",
    type=HANDLE,
    metavar="HANDLE",
    help="Who logs it; the team's scribe by default.",
)
@click.option(
    "--log",
    "log_name",
    type=TEXT,
    metavar="NAME",
    help="The log that it goes into, such as live-log.md; a new name begins a log. By default the "
    "only one; of several log.md.",
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
    reverses: str | None,
    mitigates: str | None,
    actor: str | None,
    log_name: str | None,
    as_json: bool,
) -> None:
    """Log a decision: its id is printed. At each pythia-interval a checkpoint event follows.

    Entries are never changed: what becomes of a decision is a new one that names it, by
    --supersedes, --reverses or --mitigates. The last two settle the status.
    """
    request = acts.DecisionRequest(
        title,
        participants,
        rationale,
        refs,
        artefacts,
        risk_tags,
        status,
        supersedes,
        reverses,
        mitigates,
    )
    _judge_participants(participants)
    with opened(team_path) as team:
        logged = acts.log(team, request, actor=actor, into=log_name)
    for warning in logged.warnings:
        remark(f"warning: {warning}")
    if as_json:
        value: dict[str, object] = {"id": logged.id, "number": logged.number}
        emit_json([value | ({"checkpoint": logged.checkpoint} if logged.checkpoint else {})])
        return
    emit([logged.id])
    if logged.checkpoint:
        remark(f"decision {logged.number}: Pythia's review is due ({logged.checkpoint})")


def _judge_participants(participants: tuple[str, ...]) -> None:
    """Each is a handle here; the logs of others may name people in other ways."""
    from tripod.projections.chat.format import valid_handle

    for handle in participants:
        problem = valid_handle(handle)
        if problem is not None:
            raise MalformedEntryError(f"--participant: {problem.removeprefix('handle: ')}")


def _show(decisions: Iterable[decisions_read.Decision], *, as_json: bool) -> int:
    found = list(decisions)
    if as_json:
        emit_json(decisions_read.plain(decision) for decision in found)
    else:
        emit(line for decision in found for line in decision_lines(decision))
    return len(found)


def _time(_: click.Context, param: click.Parameter, value: str | None) -> int | None:
    if value is None:
        return None
    from tripod.when import moment

    return moment(value, f"--{param.name}")


@scribe.command()
@team_option
@click.argument("text", type=TEXT, default="")
@click.option("--tag", type=TEXT, help="Only with this risk tag.")
@click.option("--status", type=TEXT, help="Only with this status today, such as superseded.")
@click.option("--by", type=HANDLE, metavar="HANDLE", help="Only with this participant.")
@click.option("--artefact", type=TEXT, help="Only with this artefact.")
@click.option(
    "--since",
    type=TEXT,
    callback=_time,
    metavar="T",
    help="Only those logged since: 30s, 5m, 2h or 1d ago, an epoch, or 2026-02-12T14:00:00.",
)
@click.option(
    "--until", type=TEXT, callback=_time, metavar="T", help="Only those logged up to then."
)
@_log_option
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
    artefact: str | None,
    since: int | None,
    until: int | None,
    log_name: str | None,
    as_json: bool,
) -> None:
    """Print decisions that hold every word of TEXT and fit the filters; 1 if there is none.

    Words may stand in any field, and upper and lower case are alike; what is in double quotes
    within TEXT is one word.
    """
    filters = decisions_read.Filters(tag, status, by, artefact, since, until)
    with opened(team_path) as team:
        team.refresh()
        count = _show(decisions_read.query(team, text, filters, log_name), as_json=as_json)
    if not count:
        remark("no decision fits")
        ctx.exit(1)


@scribe.command()
@team_option
@click.argument("decision", type=TEXT, metavar="D-N")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a decision of that id.")
@click.pass_context
def show(ctx: click.Context, *, team_path: str | None, decision: str, as_json: bool) -> None:
    """Print one decision, the messages that it refers to, and what came before and after it.

    Exit code 1 if there is none of that id.
    """
    with opened(team_path) as team:
        team.refresh()
        found = decisions_read.find(team, decision)
    if as_json:
        emit_json(decisions_read.as_plain(history) for history in found)
    else:
        emit(line for history in found for line in history_lines(history))
    if not found:
        remark(f"no decision {decision}: `tripod scribe query` finds its id")
        ctx.exit(1)


@scribe.command()
@team_option
@click.option(
    "--done",
    type=Number(),
    metavar="N",
    help="Note that all up to entry N is handled, instead of listing anything.",
)
@click.option(
    "--as",
    "who",
    type=HANDLE,
    metavar="HANDLE",
    help="Whose inbox; the team's scribe's by default.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def inbox(*, team_path: str | None, done: int | None, who: str | None, as_json: bool) -> None:
    """List the events that the Scribe subscribes to and has not handled, most urgent first.

    They are chat-message, chat-mention, task-complete and assessment-posted. Looking handles
    nothing: once what is worth it is logged, --done with the number that is told does.
    """
    from tripod.decisions import inbox as scribe_inbox

    with opened(team_path) as team:
        if done is not None:
            scribe_inbox.handled(team, done, who)
            left = len(scribe_inbox.inbox(team, who))
            if as_json:
                emit_json([{"done": done, "left": left}])
            return
        team.refresh()
        items = scribe_inbox.inbox(team, who)
    if as_json:
        emit_json(item._asdict() for item in items)
        return
    emit(inbox_lines(items, time.time_ns() // 1000))
    if items:
        newest = max(item.seq for item in items)
        remark(f"{len(items)} to handle; then: tripod scribe inbox --done {newest}")


@scribe.command()
@team_option
@_log_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def count(*, team_path: str | None, log_name: str | None, as_json: bool) -> None:
    """Print how many decisions the team's logs hold."""
    with opened(team_path) as team:
        team.refresh()
        found = decisions_read.count(team, log_name)
    if as_json:
        emit_json([{"count": found}])
    else:
        emit([str(found)])


@scribe.command()
@team_option
@click.option("-n", "last", type=Number(), default=10, show_default=True, help="How many.")
@_log_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object a decision and line.")
def summary(*, team_path: str | None, last: int, log_name: str | None, as_json: bool) -> None:
    """Print the newest decisions."""
    with opened(team_path) as team:
        team.refresh()
        _show(decisions_read.summary(team, last, log_name), as_json=as_json)
