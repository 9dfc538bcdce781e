"""``tripod show``: entries, and any projection as of any entry."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from tripod.cli.door import TEXT, Number, team_option
from tripod.errors import BadArgumentError, NotFoundError
from tripod.ledger.entry import Entry, leaf_hash
from tripod.ledger.sqlite.erase import redaction_id
from tripod.output import emit, emit_bytes, emit_json, emit_pretty, format_utc, one_line
from tripod.team.open import opened
from tripod.team.team import Team

if TYPE_CHECKING:
    from tripod.verify.anchors.collect import AnchorOptions
    from tripod.verify.anchors.heads import Bound

LISTED = 20


@click.command()
@team_option
@click.argument("what", type=TEXT, default="")
@click.option("--at", type=Number(), metavar="SEQ", help="The projection as of entry SEQ.")
@click.option("--last", type=Number(), help=f"How many entries to list.  [default: {LISTED}]")
@click.option("--stream", type=TEXT, help="List only entries of this stream, such as chat/live.")
@click.option(
    "--bounds", is_flag=True, help="Between which moments entry WHAT was appended, as others say."
)
@click.option(
    "--pin", type=TEXT, metavar="FILE", help="With --bounds: a head that is kept elsewhere."
)
@click.option(
    "--policy",
    "policies",
    type=TEXT,
    multiple=True,
    metavar="FILE",
    help="With --bounds: a policy from elsewhere (.tlog or .pem) in place of the team's own.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def show(
    *,
    team_path: str | None,
    what: str,
    at: int | None,
    last: int | None,
    stream: str | None,
    bounds: bool,
    pin: str | None,
    policies: tuple[str, ...],
    as_json: bool,
) -> None:
    """Print entries, or a projection.

    WHAT is nothing (the newest entries), an entry's number or id, or a projection: decisions,
    chat, events, workers, counts.
    """
    is_entry = "-" in what or re.fullmatch("[0-9]+", what) is not None
    if at is not None and (is_entry or not what):
        raise BadArgumentError(
            "--at goes with a projection: decisions, chat, events, workers, counts"
        )
    if what and (last is not None or stream is not None):
        raise BadArgumentError(
            "--last and --stream go with the list of entries, where WHAT is left out"
        )
    if bounds and re.fullmatch("[0-9]+", what) is None:
        raise BadArgumentError("--bounds goes with the number of an entry")
    if (pin is not None or policies) and not bounds:
        raise BadArgumentError("--pin and --policy go with --bounds")
    with opened(team_path) as team:
        team.refresh()
        if bounds:
            from tripod.verify.anchors.collect import AnchorOptions

            _bounds(team, int(what), AnchorOptions(pin, policies=policies), as_json=as_json)
        elif not what:
            _list(team, LISTED if last is None else last, stream, as_json=as_json)
        elif is_entry:
            _entry(team, what, as_json=as_json)
        else:
            _projection(team, what, at, as_json=as_json)


def _value(entry: Entry) -> dict[str, Any]:
    value: dict[str, Any] = {
        "actor": entry.actor,
        "at": entry.at,
        "id": entry.id,
        "kind": entry.kind,
        "leaf": leaf_hash(entry.header).hex(),
        "seq": entry.seq,
        "stream": entry.stream,
    }
    if entry.body is not None:
        value["body"] = entry.data
    elif entry.data:
        value["redacted"] = {"keep": entry.data, "said_by": redaction_id(entry.seq)}
    return value


def _list(team: Team, last: int, stream: str | None, *, as_json: bool) -> None:
    size = team.store.head().size
    where, values = ("", ()) if stream is None else (" WHERE stream = ?", (stream,))
    rows = team.store.db.execute(
        f"SELECT seq FROM entries{where} ORDER BY seq DESC LIMIT ?",
        (*values, last),
    ).fetchall()
    entries = [next(team.store.read(seq, seq + 1)) for (seq,) in rows[::-1]]
    if as_json:
        emit_json(_value(entry) for entry in entries)
        return
    emit(f"{e.seq:>7}  {e.at[:19]}Z  {e.kind:<16}  {e.stream}  {e.actor}" for e in entries)
    emit([f"{size} entries, root {team.store.head().root.hex()}"])


def _entry(team: Team, what: str, *, as_json: bool) -> None:
    # No ledger has an entry whose number takes more digits than these.
    column, value = ("id", what) if "-" in what else ("seq", what.lstrip("0")[:18] or "0")
    row = team.store.db.execute(
        f"SELECT seq FROM entries WHERE {column} = ?",
        (value,),
    ).fetchone()
    if row is None:
        raise NotFoundError(f"no entry {one_line(what[:80])}; `tripod show` lists the newest")
    entry = next(team.store.read(row[0], row[0] + 1))
    if as_json:
        emit_json([_value(entry)])
    else:
        emit_pretty(_value(entry))


def _bounds(team: Team, seq: int, asked: AnchorOptions, *, as_json: bool) -> None:
    """What the host claims, and what others say of the time of an entry."""
    from tripod.verify.anchors.compare import agreeing
    from tripod.verify.anchors.heads import bounds
    from tripod.verify.evidence import collect

    if seq >= team.store.head().size:
        raise NotFoundError(f"no entry {seq}; `tripod show` lists the newest")
    with collect(team.root, asked=asked) as evidence:
        if evidence.problem:
            raise BadArgumentError(evidence.problem)
        found = bounds(seq, agreeing(evidence))
        at = evidence.at(seq)
    if as_json:
        shown = {name: bound and bound._asdict() for name, bound in found._asdict().items()}
        emit_json([{"at": at, "seq": seq, **shown}])
        return
    emit([f"entry {seq}: {at}, says this host"])
    emit(
        f"{side}: {_bound(best)}"
        for side, claimed, signed in (
            ("not before", found.not_before, found.not_before_signed),
            ("not after", found.not_after, found.not_after_signed),
        )
        for best in dict.fromkeys((signed, claimed) if signed else (claimed,))
    )


def _bound(bound: Bound | None) -> str:
    if bound is None:
        return "nobody outside says"
    worth = "signed by a key that the policy knows" if bound.signed else "a claim"
    return f"{format_utc(bound.seconds)} by {one_line(bound.by)} ({worth})"


def _projection(team: Team, what: str, at: int | None, *, as_json: bool) -> None:
    from tripod.recovery.rebuild import past, rendered

    with past(team, at) as source:
        files = rendered(source, what)
    if as_json:
        emit_json(
            {"mode": oct(file.mode), "path": path, "text": file.data.decode("utf-8", "replace")}
            for path, file in files
        )
        return
    for path, file in files:
        if len(files) > 1:
            emit([f"==> {one_line(path)} <=="])
        emit_bytes(file.data)
