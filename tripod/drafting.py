"""The draft of an event, for every act that publishes one."""

from __future__ import annotations

import os

from tripod.errors import BadArgumentError
from tripod.ledger.entry import Draft
from tripod.ledger.kinds import team
from tripod.projections.bus.format import (
    PRIORITIES,
    Event,
    event_name,
    format_event,
    format_time,
    name_problem,
    valid_word,
)
from tripod.team.act import Act

MAX_PAYLOAD = 1024 * 1024  # bytes


def judge_event(source: str, type_: str, priority: str, payload: str) -> None:
    """Refuse what cannot stand in one event.

    Raises:
        BadArgumentError: a field breaks its rule.
    """
    problem = valid_word(source, "source") or valid_word(type_, "type")
    if problem is None and priority not in PRIORITIES:
        problem = f"priority: {priority!r} is none of {', '.join(PRIORITIES)}"
    if problem is None and len(payload.encode("utf-8", "surrogatepass")) > MAX_PAYLOAD:
        problem = f"payload: more than {MAX_PAYLOAD} bytes; put it into a file and send its path"
    if problem is None:
        try:
            payload.encode()
        except UnicodeEncodeError:
            problem = "payload: not valid Unicode text"
    if problem is not None:
        raise BadArgumentError(problem)


def draft_event(
    act: Act,
    source: str,
    type_: str,
    priority: str,
    payload: str,
    *,
    cause: Draft | None = None,
    to: str | None = None,
) -> Draft:
    """The draft of a new event, under a file name that nobody has yet.

    ``cause`` is what it tells of, a draft with its id: who did that does this too, and the source
    is the tool that tells it. ``to`` is the handle that it addresses.

    Raises:
        BadArgumentError: a field breaks its rule.
    """
    judge_event(source, type_, priority, payload)
    us = act.now_us
    while True:
        file = event_name(us, source, type_, os.getpid())
        problem = name_problem(file)
        if problem is not None:
            raise BadArgumentError(problem)
        name = act.queue + file
        taken = act.transaction.tables.execute(
            "SELECT 1 FROM events WHERE acked IS NULL AND priority IN (0, 1, 2, 3)"
            " AND us = ?1 AND name = ?2"
            " UNION ALL SELECT 1 FROM events WHERE acked IS NOT NULL AND us = ?1 AND name = ?2",
            (us, name),
        ).fetchone()
        if taken is None:
            break
        us += 1
    act.now_us = us + 1
    data = format_event(
        Event(source, type_, priority, format_time(us), f"{source}:{type_}", payload)
    )
    draft = team.published(
        name=name,
        us=us,
        source=source,
        type_=type_,
        priority=priority,
        payload=payload,
        size=len(data),
        to=to,
    )
    return draft if cause is None else draft._replace(actor=cause.actor, cause=cause.id)
