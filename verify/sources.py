"""Bodies and blobs for renders, out of a ledger that nobody vouches for. For the verifier alone.

Whether a body is the one that its entry committed to is judged by the pass over the rows.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import orjson

from ledger.entry import Draft
from ledger.errors import LedgerError
from projections.projection import Source
from verify.rows import kept_of, one

RENDER_ERRORS = (LedgerError, LookupError, TypeError, ValueError, AttributeError, sqlite3.Error)

_BODIES = (
    "SELECT seq, body FROM entries"
    " WHERE seq IN (SELECT value FROM json_each(?)) AND body IS NOT NULL"
)


def source_over(
    tables: sqlite3.Connection,
    db: sqlite3.Connection | None,
    drafts: dict[int, Draft],
    blobs: dict[str, bytes],
) -> Source:
    """Serve renders from ``tables``, which need not be those of the ledger ``db``.

    Bodies and blobs come from the ledger and from what was found on disk: ``drafts`` by the seq
    that they would get, ``blobs`` by digest. What is not there is a LookupError.
    """

    def body(seq: int) -> dict[str, Any]:
        if seq in drafts:
            return drafts[seq].body
        row = None if db is None else one(db, "SELECT body FROM entries WHERE seq = ?", (seq,))
        said = kept_of(db, seq) if db is not None and row is not None and row[0] is None else None
        if said is not None:
            return said[1]["keep"]  # type: ignore[no-any-return]
        if row is None or row[0] is None:
            raise LookupError(f"entry {seq} has no body")
        return orjson.loads(row[0])  # type: ignore[no-any-return]

    def bodies(seqs: Sequence[int]) -> dict[int, dict[str, Any]]:
        if db is None or not drafts.keys().isdisjoint(seqs):
            return {}
        try:
            rows = db.execute(_BODIES, (orjson.dumps(seqs).decode(),))
            return {seq: orjson.loads(data) for seq, data in rows}
        except (sqlite3.Error, orjson.JSONDecodeError, TypeError):
            return {}

    def blob(digest: str) -> bytes:
        if digest in blobs:
            return blobs[digest]
        sql = "SELECT bytes FROM blobs WHERE sha256 = ?"
        row = None if db is None else one(db, sql, (bytes.fromhex(digest),))
        if row is None or type(row[0]) is not bytes:
            raise LookupError(f"blob {digest[:12]}… is not there")
        return row[0]

    return Source(tables, body, blob, bodies)
