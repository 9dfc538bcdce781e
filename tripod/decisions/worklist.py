"""The Scribe's inbox: what it subscribes to on the bus and has not handled yet.

Source: seeds nbs-scribe, "Bus Integration". The events stay on the bus for everybody else, and
an acknowledgement by others takes none out of the inbox: as a reader of the bus
(``tripod.bus.reader``) the Scribe has a place in the ledger. The place is moved when it says so,
and not by looking: a Scribe that stops between reading and logging finds the same events again.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from tripod.errors import BadArgumentError
from tripod.ledger import parse_header
from tripod.ledger.kinds.bus import SEEN
from tripod.projections import content_bytes
from tripod.projections.bus.format import PRIORITIES
from tripod.team.team import Team

TYPES = ("chat-message", "chat-mention", "task-complete", "assessment-posted")
"""What the Scribe subscribes to."""

_ITEMS = """
SELECT seq, priority, name, us, source, type, handle, acked
FROM events LEFT JOIN addressed USING (seq)
WHERE seq > :place AND type IN (SELECT value FROM json_each(:types))
AND (acked IS NULL OR acked > (SELECT coalesce(adopted, -1) FROM team))
ORDER BY priority, handle IS NOT :who, us, name
"""


class Item(NamedTuple):
    """An event of the inbox; ``seq`` is its entry, ``to`` the handle that it addresses.

    ``us`` is the time in its file's name (µs since 1970), ``acked`` whether somebody else has
    acknowledged it.
    """

    seq: int
    priority: str
    name: str
    us: int
    source: str
    type: str
    to: str | None
    acked: bool
    payload: str


def inbox(team: Team, who: str | None = None) -> list[Item]:
    """What the Scribe has not handled: most urgent first, of those what addresses it, then oldest.

    Handled is what ``handled`` was told of, what it acknowledged itself, and what was acknowledged
    before the ledger began.

    Args:
        team: the team whose bus it is.
        who: whose inbox; the team's scribe by default.
    """
    who = who or team.scribe or ""
    values = {"place": _place(team, who), "who": who, "types": json.dumps(TYPES)}
    rows = team.store.db.execute(_ITEMS, values).fetchall()
    acks = [acked for *_, acked in rows if acked is not None]
    own = {ack.seq for ack in team.store.raw_of(acks) if parse_header(ack.header).actor == who}
    rows = [row for row in rows if row[-1] not in own]
    bodies = team.source.each_body([seq for seq, *_ in rows])
    items = []
    for row, body in zip(rows, bodies, strict=True):
        seq, priority, name, us, source, type_, to, acked = row
        payload = content_bytes(team.source, body["payload"]) if "payload" in body else b""
        text = payload.decode("utf-8", "replace")
        rank = PRIORITIES[priority]
        items.append(Item(seq, rank, name, us, source, type_, to, acked is not None, text))
    return items


def _reader(who: str) -> str:
    # No handle holds a slash: what `bus check --reader` shows the same agent is another matter.
    return f"{who}/inbox"


def _place(team: Team, who: str) -> int:
    row = team.store.db.execute(
        "SELECT up_to FROM readers WHERE reader = ?", (_reader(who),)
    ).fetchone()
    return -1 if row is None else int(row[0])


def handled(team: Team, up_to: int, who: str | None = None) -> None:
    """Note that all up to the entry ``up_to`` is handled; the place never moves back.

    Raises:
        BadArgumentError: the ledger has no such entry yet.
    """
    who = who or team.scribe or ""
    with team.act(hasty=True, joins=True, by=who) as act:
        size = act.transaction.size
        if up_to >= size:
            raise BadArgumentError(f"--done {up_to}: the ledger has entries 0 to {size - 1}")
        if up_to > _place(team, who):
            act.append([SEEN.draft({"reader": _reader(who), "up_to": up_to}, who)])
