"""Each entry is of a kind that this version knows, with the body that the kind prescribes.

**What it proves.** The kind stands in the list of kinds and is not reserved; the stream is one that
the kind may stand in; the body has exactly the fields of the kind's model, each of its type and
within its bounds.

**Why it matters.** Projections read bodies by their kind. A body of another shape would be passed
over in silence, or show something that nobody recorded.

**What a finding looks like.** ``unknown kind bus.deleted``, ``bus.published stands in the stream
decisions``, ``decision.logged: id: String should match pattern``.

**What to do.** If the ledger was written by a newer version, verify it with that one. Else the
entry was not made by this project.
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from ledger.kinds import BY_NAME
from verify.evidence import Evidence
from verify.finding import Outcome

__all__ = ["HELP", "NAME", "REQUIRED", "judge", "kind_problem", "stream_fits"]

NAME = "kinds-known"
REQUIRED = True
HELP = "if a newer version wrote this ledger, verify it with that one; else nothing of ours made it"


def judge(evidence: Evidence) -> Outcome:
    """What the pass over the rows found; see the module."""
    return evidence.ledger_outcome(NAME, "entries")


def stream_fits(rule: str, stream: str) -> bool:
    """Whether an entry may stand in a stream: one of that name, or any below ``chat/``."""
    if rule.endswith("/"):
        return stream.startswith(rule) and len(stream) > len(rule)
    return stream == rule


def kind_problem(kind: str, stream: str, data: dict[str, Any]) -> str | None:
    """Whether the kind is known, may stand there, and has such a body."""
    known = BY_NAME.get(kind)
    if known is None:
        return f"unknown kind {kind}"
    if known.reserved:
        return f"the kind {kind} is reserved, no version writes it yet"
    if not stream_fits(known.stream, stream):
        return f"{kind} stands in the stream {stream}, its place is {known.stream}"
    try:
        known.model.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "body"
        return f"{kind}: {place}: {first['msg']}"
    return None
