"""Which seal an export or a proof goes under: a given one, or the newest that the ledger holds."""

from __future__ import annotations

import os

from ledger.errors import MalformedError
from ledger.note import MAX_NOTE
from ledger.plain import read_plain
from ledger.seal import Seal
from tripod import sealing
from tripod.errors import BadArgumentError, RefusedError
from tripod.export import read_seal
from tripod.team import Team


def fresh_seal(team: Team) -> str:
    """A seal over all that the ledger holds, a note; without its key here, the newest there is.

    Raises:
        RefusedError: the ledger was never sealed, or its key cannot be used.
    """
    note = sealing.seal(team, "export")
    last = sealing.newest(team.store.db)
    if note is not None:
        return note
    if last is None:
        raise RefusedError(
            "this ledger was never sealed, and a file that others can check needs a seal: make a "
            "key with `tripod key new`, or give a seal of it with --seal FILE"
        )
    return last.note


def seal_from(path: str) -> tuple[str, Seal]:
    """The seal in a file: the whole note, and what it says.

    Raises:
        BadArgumentError: the file cannot be read, or holds no seal.
    """
    try:
        if os.path.isdir(path):
            path = os.path.join(path, "checkpoint")
        data = read_plain(path, MAX_NOTE, named=True)
        return data.decode(), read_seal(data)
    except OSError as error:
        raise BadArgumentError(f"{path} cannot be read: {error.strerror}") from error
    except (MalformedError, UnicodeDecodeError) as error:
        raise BadArgumentError(f"{path} holds no seal: {error}") from error
