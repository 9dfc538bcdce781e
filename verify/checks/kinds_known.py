"""Each entry is of a kind that this version knows, with the body that the kind prescribes.

**What it proves.** The kind stands in the list of kinds; the stream is the one that the kind
stands in, that of the channel, file, worker or run which it names; the body has exactly the fields
of the kind's model, each of its type and within its bounds. Of an entry of a peer the same holds
for the entry that it keeps, and its body is the one that its header commits to.

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

import orjson
from pydantic import ValidationError

from tripod.ledger import MERGED, Header, LedgerError, header_auth, parse_header
from tripod.ledger.entry import entry_blobs
from tripod.ledger.kinds.base import Kind
from tripod.ledger.kinds.merged import BlobReader, read_kept
from tripod.ledger.kinds.models import model_of
from tripod.ledger.kinds.peers import peer_entry_id
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
    problem = _shape_problem(known, data)
    if problem is not None or kind == MERGED:  # one of a peer stands where its maker put it
        return problem
    place = known.stream_of(data)
    return (
        None if stream == place else f"{kind} stands in the stream {stream}, its place is {place}"
    )


def kept_problem(header: Header, data: dict[str, Any], blob: BlobReader) -> str | None:
    """Whether the entry of a peer that ``data`` keeps is one, and of a kind that stands there.

    Whether its maker signed and sealed it is for other checks.
    """
    if header.id != peer_entry_id(data["origin"], data["seq"]):
        return f"{header.kind}: its id is not that of entry {data['seq']} of {data['origin']}"
    try:
        kept = read_kept(data, blob)
        inner = parse_header(kept.header)
    except (LedgerError, LookupError, TypeError, ValueError) as error:
        return f"{header.kind}: what it keeps cannot be read: {error}"
    # Its header may name another ledger: the line that its maker left later by a fork.
    if inner.seq != data["seq"] or inner.kind == MERGED:
        return f"{header.kind}: it keeps another entry than it says"
    if (None if kept.auth is None else header_auth(kept.auth)) != inner.auth:
        return f"{header.kind}: the signature record is not the one that its header names"
    if inner.stream != header.stream:
        return f"{header.kind} stands in the stream {header.stream}, its place is {inner.stream}"
    body = data.get("keep") if kept.body is None else orjson.loads(kept.body)
    if body is None:
        return f"{header.kind}: it keeps no body, and nothing that stands for one"
    problem = kind_problem(inner.kind, inner.stream, body)
    if problem is None and kept.body is not None:
        named = set(entry_blobs(body)) ^ set(entry_blobs(data.get("blobs")))
        problem = "its blobs are not those that the body which it keeps names" if named else None
    return None if problem is None else f"{header.kind}: {problem}"


def _shape_problem(known: Kind[Any], data: dict[str, Any]) -> str | None:
    """Whether a body has the fields of its kind, and no others."""
    try:
        model_of(known).model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "body"
        return f"{known.name}: {place}: {first['msg']}"
    return None
