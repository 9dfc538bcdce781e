"""The record: the ledger as plain files in the team directory, for git, clones and CI.

Each seal updates it (``tripod.trust.export.update``). A ledger that is gone comes back
from it (``restore``): the same entries, byte for byte, to the seal's head.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from tripod.errors import LedgerDamagedError, RefusedError
from tripod.ledger.files import rename_file, sync_path
from tripod.ledger.locator import DATABASE
from tripod.ledger.places import RECORD
from tripod.ledger.sqlite.reader import read_only
from tripod.ledger.tlog.note import VerifierKey
from tripod.projections.engine import differences, refold
from tripod.projections.team.tables import ahead_of
from tripod.team.team import Team
from tripod.trust.export import SEAL
from tripod.verify.checks import LEDGER_CHECKS, record_agrees
from tripod.verify.evidence import Evidence, begin
from tripod.verify.export.files import judged, load
from tripod.verify.run import run

_RESTORING = f"{DATABASE}-restoring"


def has_record(root: str) -> bool:
    """Whether a team directory holds a record that a ledger may be restored from."""
    return os.path.isfile(f"{root}/{RECORD}/{SEAL}") and not os.path.islink(f"{root}/{RECORD}")


class RestoredRecord(NamedTuple):
    """How many entries came back; and what the files show beyond them, None where they do not."""

    size: int
    ahead: str | None


def restore(root: str, keys: Sequence[VerifierKey] = ()) -> RestoredRecord:
    """Make the ledger of a team directory from its record.

    No entry is added, and of the files only modes are set. Nobody but the log's own key vouches
    for the seal unless ``keys`` are given.

    Raises:
        RefusedError: the record does not verify, or holds no bodies; nothing was made.
    """
    scratch, database = f"{root}/{_RESTORING}", f"{root}/{DATABASE}"
    _clear(scratch)
    try:
        _load(root, scratch, keys)
        sync_path(scratch)
        rename_file(scratch, database)
    finally:
        _clear(scratch)
    with Team(root) as team:
        with team.store.transaction() as transaction:
            refold(transaction.tables, team.store.read())
        # Git keeps no such modes: what has the ledger's bytes gets the ledger's mode again.
        for apart in differences(team.source, team.disk):
            if apart.have == apart.want.data:
                team.disk.set_mode(apart.path, apart.want.mode)
        return RestoredRecord(team.store.head().size, ahead_of(team.store.db, team.disk))


def _load(root: str, scratch: str, keys: Sequence[VerifierKey]) -> None:
    loaded = load(f"{root}/{RECORD}", scratch, keys)
    if loaded.seal is not None and not loaded.bodies:
        raise RefusedError(
            f"{root}/{RECORD} holds headers alone: no ledger can be restored from it"
        )
    evidence = Evidence(root, database=scratch, loaded=True, record=judged(loaded))
    with evidence:
        evidence.db = read_only(scratch)
        begin(evidence)
        chosen = {record_agrees.NAME, *(check.NAME for check in LEDGER_CHECKS)}
        report = run(evidence, select=chosen)
    found = [f for o in report.outcomes for f in o.findings if f.severity == "failure"]
    if found or not loaded.entries:
        first = f"{found[0].where}: {found[0].message}" if found else "it holds no entry"
        raise RefusedError(
            f"{root}/{RECORD} does not verify ({first}): nothing was restored; "
            f"`tripod verify {root}/{RECORD}` tells all"
        )
    if report.problem:
        raise LedgerDamagedError(report.problem)


def _clear(path: str) -> None:
    for name in (path, f"{path}-wal", f"{path}-shm", f"{path}-journal"):
        with suppress(FileNotFoundError):
            os.unlink(name)
