"""Which seal an export or a proof goes under: a given one, or the newest that the ledger holds."""

from __future__ import annotations

import os

import orjson

from ledger.errors import MalformedError
from ledger.note import MAX_NOTE
from ledger.seal import Seal
from tripod.errors import BadArgumentError, RefusedError
from tripod.export import read_seal
from tripod.team import Team

__all__ = ["newest_seal", "seal_from"]


def newest_seal(team: Team) -> str:
    """The newest seal of the ledger, a note.

    Raises:
        RefusedError: the ledger was never sealed.
    """
    row = team.store.db.execute(
        "SELECT body FROM entries WHERE kind = 'seal.made' AND stream = 'ledger'"
        " AND body IS NOT NULL ORDER BY seq DESC LIMIT 1"
    ).fetchone()
    if row is None:
        message = (
            "this ledger was never sealed, and a file that others can check needs a seal: make a "
            "key and a seal first, or give a seal of it with --seal FILE"
        )
        raise RefusedError(message)
    return str(orjson.loads(row[0])["note"])


def seal_from(path: str) -> tuple[str, Seal]:
    """The seal in a file: the whole note, and what it says.

    Raises:
        BadArgumentError: the file cannot be read, or holds no seal.
    """
    try:
        if os.path.isdir(path):
            path = os.path.join(path, "checkpoint")
        with open(path, "rb") as file:
            data = file.read(MAX_NOTE + 1)
        return data.decode(), read_seal(data)
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror}"
        raise BadArgumentError(message) from error
    except (MalformedError, UnicodeDecodeError) as error:
        message = f"{path} holds no seal: {error}"
        raise BadArgumentError(message) from error
