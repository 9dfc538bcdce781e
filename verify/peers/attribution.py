"""Judges who an entry of a peer is shown as here. Pure.

A ledger says in ``place`` what it calls an entry of a peer. Its owner could show it as somebody
else's: the maker's header and body say who it is by, and a signature whether a handle that has a
key here wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import orjson

from tripod.ledger import Header, MalformedError
from tripod.ledger.actors import actor_record_problem, actor_statement, parse_actor_record
from tripod.ledger.kinds.bus import ACKED_ALL
from tripod.ledger.kinds.merged import KeptEntry
from tripod.ledger.kinds.registry import BY_NAME
from tripod.ledger.tlog.note import VerifierKey
from tripod.ledger.tlog.trailer import KEY_DIGITS

_SPEAKERS = {"handle", "source"}
_LONGEST = 46  # characters of a handle that cannot be shown as it is
# What a merge knew of keys when it appended the entry: later changes say nothing of it.
_HAS_KEY = "SELECT 1 FROM actors WHERE handle = ? AND seq < ?"
_KEYS = "SELECT vkey FROM actors WHERE handle = ? AND seq < ? GROUP BY vkey HAVING NOT max(revoked)"


def misattribution(
    kept: KeptEntry,
    head: Header,
    data: Mapping[str, Any],
    name: str | None,
    query: Callable[..., Sequence[tuple[Any, ...]]],
    *,
    at: int,
) -> str | None:
    """Whether entry ``at``, of the replica ``name``, is shown as somebody's who did not make it.

    Without the mark of the replica it is shown only where a key of its actor signed it that was
    enrolled in this ledger before entry ``at``, and not revoked before it. ``data`` is the body of
    entry ``at``, ``name`` is None where no entry says it; ``query`` asks the tables.
    """
    kind = BY_NAME.get(head.kind)
    if kind is None or kind.merge != "shared":
        return None
    who, part = name or kept.origin, (kind.is_speech and kind.actor) or ""
    place = data.get("place") or {}
    body = data.get("keep") or {} if kept.body is None else orjson.loads(kept.body)
    speaker = str(body.get(part, head.actor))
    for member, handle in (("actor", head.actor), (part, speaker)):
        if member in place and name and not is_marked(str(place[member]), handle, name):
            return f"it shows an entry of {who} as one by {place[member]!r}"
    # Of the kinds that say who speaks each has a member of its own: another one would keep that
    # from being marked.
    if head.kind != ACKED_ALL.name and place.keys() & _SPEAKERS - {part}:
        return f"it shows an entry of {who} as one by {head.actor!r}, and by somebody else"
    is_other = speaker != head.actor and part not in place
    if is_other and ("actor" in place or query(_HAS_KEY, speaker, at)):
        return f"it shows {speaker!r} as who speaks, and {head.actor!r} of {who} did it"
    if "actor" in place:
        return None
    with suppress(MalformedError):
        record = parse_actor_record(kept.auth or b"")
        stated = actor_statement(orjson.loads(kept.header))
        for (vkey,) in query(_KEYS, head.actor, at):
            key = VerifierKey.parse(vkey)
            if actor_record_problem(record, stated, key) is None:
                return None
    return f"it shows an entry of {who} as one by {head.actor!r}, whose key did not sign it"


def is_marked(shown: str, handle: str, replica: str) -> bool:
    """Whether ``shown`` is the handle with the mark of the replica."""
    if shown == f"{handle}@{replica}":
        return True
    plain = re.sub(r"[^A-Za-z0-9._+-]", "_", handle)[:_LONGEST] or "_"
    return shown == f"{plain}@{replica[-KEY_DIGITS:]}"
