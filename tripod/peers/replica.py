"""Names this ledger as a replica of its team.

The name holds the handle of who began the replica, and a digest of the key that sealed it then: a
record that another key sealed cannot take it. ``team.named`` records it once, when it is first
needed, in a ledger of an earlier version as well. A fork goes on under a key of its own, and so
under a name of its own in the same team.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Protocol

from tripod.errors import RefusedError
from tripod.ledger import Draft, Entry, LedgerReader, codec
from tripod.ledger.kinds.peers import NAME_IDS, TEAM_NAMED
from tripod.ledger.locator import APART, WorkTree, stated_handle, work_tree_around
from tripod.trust.keys import check_key_here, sealing_key

_UNSAFE = re.compile(r"[^A-Za-z0-9_]+")
_LONGEST = 40  # characters of a handle


class NamedTeam(Protocol):
    """What of an open team is asked here; sealing, which a team imports, imports this."""

    root: str

    @property
    def store(self) -> LedgerReader:
        """The ledger."""

    def append_apart(self, make: Callable[[], Sequence[Draft]]) -> list[Entry]:
        """Append what ``make`` gives under the writer's lock."""


def tree_of_team(root: str) -> WorkTree | None:
    """The work tree of the repository that keeps the record of the team directory ``root``.

    None where it lies in no repository: then the record is a folder of it.
    """
    return work_tree_around(os.path.dirname(os.path.realpath(root)))


def written_path(tree: WorkTree, replica: str) -> str:
    """The file that notes at which size, and by its time when, the replica's ref was written."""
    return f"{tree.common}/{APART}/{replica}.size"


def replica_name(handle: str, vkey: str) -> str:
    """The name of the replica that ``handle`` begins under the key ``vkey``: safe in a ref.

    >>> replica_name("Anna Lee", "example.org/shop+f00d+AAAA")
    'Anna-Lee-390a21a83de98c10'
    """
    front = _UNSAFE.sub("-", handle).strip("-")[:_LONGEST].rstrip("-") or "unknown"
    return f"{front}-{sha256(vkey.encode()).hexdigest()[:16]}"


def replica_of(ledger: LedgerReader) -> tuple[str, str] | None:
    """The team id and the replica's name of a ledger; None: it was not named yet.

    The name of a line that the ledger left by a fork does not count.
    """
    named = list(ledger.raw_by_id(*NAME_IDS))
    for entry in reversed(named):
        found = ledger.entry(entry.seq)
        if found is not None and codec.loads(found.header)["ledger"] == ledger.origin:
            return str(found.data["team"]), str(found.data["replica"])
    return None


def name_team(team: NamedTeam, handle: str | None = None) -> tuple[str, str]:
    """Name the ledger as a replica, unless it is named; give its team id and its name.

    The team id stays that which an earlier line of the ledger had, else it is the ledger's first
    origin. ``handle`` is who begins the replica; by default who acts here, as far as that is known.
    Raises RefusedError where the ledger has no key, or its private part is not on this host: a copy
    of another's ledger has no name before it has a key of its own.
    """
    found = replica_of(team.store)
    if found is not None:
        return found
    who = handle or (stated_handle() or ("",))[0]

    def name() -> Sequence[Draft]:
        vkey = sealing_key(team.store)
        if vkey is None:
            raise RefusedError(
                "this ledger has no key, by which replicas know each other: `tripod key new`"
            )
        if replica_of(team.store) is not None:
            return ()
        check_key_here(vkey)
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
    return ledger.origin if first is None else str(codec.loads(first)["ledger"])
