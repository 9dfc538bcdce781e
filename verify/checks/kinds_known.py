"""Each entry is of a kind that this version knows, with the body that the kind prescribes.

**What it proves.** The kind stands in the list of kinds; the stream is the one that the kind
stands in, that of the channel, file, worker or run which it names; the body has exactly the fields
of the kind's model, each of its type and within its bounds.

**Why it matters.** Projections read bodies by their kind. A body of another shape would be passed
over in silence, or show something that nobody recorded.

**What a finding looks like.** ``unknown kind bus.deleted``, ``bus.published stands in the stream
decisions``, ``chat.sent stands in the stream chat/side, its place is chat/live``,
``decision.logged: id: String should match pattern``.

**What to do.** If the ledger was written by a newer version, verify it with that one. Else the
entry was not made by this project.
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from tripod.ledger.kinds.models import model_of
from tripod.ledger.kinds.registry import BY_NAME
from tripod.verify.check import BODIES, ROWS, Evidence, Outcome

NAME = "kinds-known"
REQUIRED = True
NEEDS = (ROWS, BODIES)
ACCEPTABLE = False
HELP = "if a newer version wrote this ledger, verify it with that one; else nothing of ours made it"


def judge(evidence: Evidence) -> Outcome:
    """What the pass over the rows found; see the module."""
    return evidence.ledger_outcome(NAME, "entries")


def kind_problem(kind: str, stream: str, data: dict[str, Any]) -> str | None:
    """Whether the kind is known, may stand there, and has such a body."""
    known = BY_NAME.get(kind)
    if known is None:
        return f"unknown kind {kind}"
    try:
        model_of(known).model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "body"
        return f"{kind}: {place}: {first['msg']}"
    place = known.stream_of(data)
    return (
        None if stream == place else f"{kind} stands in the stream {stream}, its place is {place}"
    )
