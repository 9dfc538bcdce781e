"""``tripod scribe advise``: what the checks that only advise have to say, for a person."""

from __future__ import annotations

from collections.abc import Iterator

import click

from tripod.cli.door import team_option
from tripod.output import emit, emit_json, one_line, remark
from tripod.team.open import opened
from tripod.team.team import Team


@click.command()
@team_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object a piece of advice and line.")
def advise(*, team_path: str | None, as_json: bool) -> None:
    """Print passages that sound like a decision with no entry near, and entries like none.

    For a person to judge: the checks decision-missed and decision-noise say how it is told, and how
    often it is wrong. Marked `fresh` is what the Scribe may be about to log.
    """
    with opened(team_path) as team:
        team.refresh()
        found = list(_found(team))
    if as_json:
        emit_json(found)
        return
    for one in found:
        if one["advice"] == "missed":
            more = f" (and {one['more']} more close by)" if one["more"] else ""
            fresh = " (fresh)" if one["fresh"] else ""
            where = one["ref"] or f"{one['channel']} message {one['number']}"
            emit(
                [
                    one_line(f"{where} {one['handle']}: {one['sentence']}{more}"),
                    f"  sounds like {one['sign']}, and no decision is near{fresh}",
                ]
            )
        else:
            emit([one_line(f"{one['id']} {one['title']}"), f"  reads like {one['like']}"])
    if not found:
        remark("nothing to advise")


def _found(team: Team) -> Iterator[dict[str, object]]:
    """All of it, the chat first, each as an object."""
    from tripod.projections.chat.tables import ref_to
    from tripod.verify import advice

    db = team.store.db
    rows = db.execute("SELECT seq FROM lines WHERE handle IS NOT NULL ORDER BY seq").fetchall()
    silent = advice.silent(team.source)
    for passage in advice.missed(team.source, (seq for (seq,) in rows), silent):
        ref = ref_to(db, passage.channel, passage.number)
        yield {"advice": "missed", "ref": ref, **passage._asdict()}
    for entry in advice.noise(team.source):
        yield {"advice": "noise", **entry._asdict()}
