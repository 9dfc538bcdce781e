"""Names this ledger as a replica of its team, and says which git ref carries its record.

The name holds the handle of who began the replica, and a digest of the key that sealed it then: a
record that another key sealed cannot take it. ``team.named`` records it once, when it is first
needed, in a ledger of an earlier version as well. A fork goes on under a key of its own, and so
under a name of its own in the same team.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256

import orjson

from tripod.errors import MalformedError, RefusedError
from tripod.ledger import Draft, LedgerReader
from tripod.ledger.kinds.peers import NAME_IDS, TEAM_NAMED
from tripod.team.act import ActContext
from tripod.trust.keys import sealing_key

REFS = "refs/tripod/"
"""Below this stand the records of this repository's own replicas, a ref each."""
FETCHED = "refs/tripod-remotes/"
"""Below this, and the name of a remote, stand the records that were fetched from there."""

_UNSAFE = re.compile(r"[^A-Za-z0-9_]+")
_LONGEST = 40  # characters of a handle
_NAME = re.compile(r"[A-Za-z0-9_-]{1,111}-[0-9a-f]{16}")


def replica_name(handle: str, vkey: str) -> str:
    """The name of the replica that ``handle`` begins under the key ``vkey``: safe in a ref.

    >>> replica_name("Anna Lee", "example.org/shop+f00d+AAAA")
    'Anna-Lee-390a21a83de98c10'
    """
    front = _UNSAFE.sub("-", handle).strip("-")[:_LONGEST].rstrip("-") or "unknown"
    return f"{front}-{sha256(vkey.encode()).hexdigest()[:16]}"


def is_replica_name(text: str) -> bool:
    """Whether a text has the form of a replica's name, as the last part of a ref."""
    return _NAME.fullmatch(text) is not None


def ref_of(replica: str) -> str:
    """The ref of this repository that carries the record of its own replica.

    Raises MalformedError where that is no name of a replica.
    """
    if not is_replica_name(replica):
        raise MalformedError(f"{replica!r} is no name of a replica")
    return REFS + replica


def replica_of(ledger: LedgerReader) -> tuple[str, str] | None:
    """The team id and the replica's name of a ledger; None: it was not named yet.

    The name of a line that the ledger left by a fork does not count.
    """
    named = list(ledger.raw_by_id(*NAME_IDS))
    for entry in reversed(named):
        found = ledger.entry(entry.seq)
        if found is not None and orjson.loads(found.header)["ledger"] == ledger.origin:
            return str(found.data["team"]), str(found.data["replica"])
    return None


def name_team(team: ActContext, handle: str | None = None) -> tuple[str, str]:
    """Name the ledger as a replica, unless it is named; give its team id and its name.

    The team id stays that which an earlier line of the ledger had, else it is the ledger's first
    origin. ``handle`` is who begins the replica; by default who acts here, as far as that is known.
    Raises RefusedError where the ledger has no key.
    """
    found = replica_of(team.store)
    if found is not None:
        return found
    from tripod.cli.commands import NOBODY, known_handle

    who = handle or known_handle() or NOBODY

    def name() -> Sequence[Draft]:
        vkey = sealing_key(team.store)
        if vkey is None:
            raise RefusedError(
                "this ledger has no key, by which replicas know each other: `tripod key new`"
            )
        if replica_of(team.store) is not None:
            return ()
        return (
            TEAM_NAMED.draft({"team": _team_id(team.store), "replica": replica_name(who, vkey)}),
        )

    team.append_apart(name)
    found = replica_of(team.store)
    assert found is not None, "it was named just now"
    return found


def _team_id(ledger: LedgerReader) -> str:
    earlier = [entry.seq for entry in ledger.raw_by_id(*NAME_IDS)]
    before = ledger.entry(max(earlier)) if earlier else None
    if before is not None:
        return str(before.data["team"])
    first = ledger.header(0)
    return ledger.origin if first is None else str(orjson.loads(first)["ledger"])
