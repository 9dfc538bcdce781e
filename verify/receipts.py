"""Reads the receipts that the ledger holds (``anchor.received``) and asks who signed them.

What the ledger says of itself vouches for nothing: a receipt counts by the signature in it, of a
witness or an authority whose key came from elsewhere. One that is not what its entry says was never
logged by us, for each is checked before that.
"""

from __future__ import annotations

import sqlite3

import orjson

from ledger.errors import LedgerError, MalformedError, MissingExtraError, NotVerifiedError
from ledger.note import parse_note
from ledger.seal import Seal, format_seal, parse_seal
from ledger.timestamp import open_receipt
from projections.projection import Source, content_bytes
from projections.tables import source_of
from verify.evidence import Evidence
from verify.known import Known, Outside
from verify.trust import Trust

_MICROS = 1_000_000  # in a second


def read_receipts(
    evidence: Evidence, db: sqlite3.Connection, told: Trust, outside: Outside
) -> None:
    """Add what the receipts remember to ``outside.known``, and what is wrong with them beside."""
    source = source_of(db) if evidence.folded is None else evidence.source
    for seq, method, name, size, root in told.anchors:
        where = f"the receipt of {method} {name} in entry {seq}"
        try:
            seal = Seal(_line(db, seq), size, bytes.fromhex(root))
            text = format_seal(seal)
        except (MalformedError, ValueError):
            continue  # `kinds-known` names it
        known = Known("receipt", where, seal, seq=seq)
        try:
            if size > seq:
                raise MalformedError(f"it is of {size} entries, and {seq} were there")
            known = _opened(known, method, _bytes(source, seq), text, outside)
        except LookupError:
            pass  # erased, or gone: `bodies-present` tells
        except (MissingExtraError, NotVerifiedError) as error:
            outside.unread += ((where, f"not believed: {error}"),)
        except LedgerError as error:
            outside.forged += ((where, str(error)),)
            continue
        outside.known += (known,)


def _opened(known: Known, method: str, data: bytes, text: str, outside: Outside) -> Known:
    """What the bytes of a receipt add; a LedgerError where they are none of this head."""
    if method == "witness":
        note = parse_note(data)
        if note.text != text:
            there = parse_seal(note.text, extensions=True)
            raise MalformedError(
                f"it is of {there.size} entries of {there.origin} with root "
                f"{there.root.hex()[:16]}…, and the entry says {known.seal.size} with root "
                f"{known.seal.root.hex()[:16]}…"
            )
        return known._replace(note=note)
    if method == "tsa" and outside.authorities:
        stamp = open_receipt(data, text, outside.authorities)
        seconds, rest = divmod(stamp.micros, _MICROS)
        give = -(-(rest + stamp.accuracy) // _MICROS)
        return known._replace(seconds=seconds, stamped=True, give=give)
    return known


def _bytes(source: Source, seq: int) -> bytes:
    try:
        return content_bytes(source, source.body(seq)["receipt"])
    except (ValueError, TypeError) as error:
        raise LookupError(seq) from error


def _line(db: sqlite3.Connection, seq: int) -> str:
    """The line that an entry belongs to, '' where that cannot be read."""
    row = db.execute("SELECT header FROM entries WHERE seq = ?", (seq,)).fetchone()
    try:
        return str(orjson.loads(row[0])["ledger"])
    except (TypeError, ValueError, LookupError):
        return ""
