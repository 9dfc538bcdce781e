"""Opens what is to be judged: a team, a database, an export, or a clone that has the record."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from tempfile import TemporaryDirectory

from tripod.ledger import DATABASE, RECORD, LedgerError
from tripod.ledger.sqlite.reader import read_only
from tripod.ledger.tlog.note import VerifierKey
from tripod.ledger.tlog.tiles import SEAL
from tripod.verify.anchors.anchors import USUAL, AnchorOptions
from tripod.verify.evidence import NEARBY, OpenEvidence, begin, collect, look_outside
from tripod.verify.export.files import is_export, load


def open_evidence(
    path: str,
    *,
    no_ledger: bool = False,
    nearby: int = NEARBY,
    keys: Sequence[VerifierKey] = (),
    asked: AnchorOptions = USUAL,
) -> OpenEvidence:
    """Open what stands at ``path``; what cannot be opened is said in ``OpenEvidence.problem``.

    A team directory without its database is judged by its record, if it has one: so it is with
    every clone. ``keys`` may have signed a seal; the rest is as with ``evidence.collect``.
    """
    evidence = collect(path, no_ledger=no_ledger, nearby=nearby, asked=asked)
    evidence.keys = tuple(keys)
    if evidence.root is None:
        if os.path.isdir(path) and is_export(path):
            evidence.problem = ""
            look_outside(evidence, asked)
            _load(evidence, path)
    elif evidence.db is None and not evidence.problem and not no_ledger:
        record = f"{evidence.root}/{RECORD}"
        if os.path.isfile(f"{record}/{SEAL}") and not os.path.islink(record):
            _load(evidence, record)
    return evidence


def _load(evidence: OpenEvidence, directory: str) -> None:
    evidence.scratch = TemporaryDirectory(prefix="tripod-")
    evidence.database = f"{evidence.scratch.name}/{DATABASE}"
    evidence.loaded, evidence.source_of = True, directory
    try:
        loaded = load(directory, evidence.database, evidence.keys)
        evidence.bodies = loaded.bodies
        evidence.record = loaded.judged()
        evidence.db = read_only(evidence.database)
        begin(evidence)
    except (LedgerError, sqlite3.Error, OSError) as error:
        evidence.problem = f"{directory} cannot be read: {error}"
