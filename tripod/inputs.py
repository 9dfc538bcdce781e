"""What commands are given: numbers, and texts from an argument, a file or standard input."""

from __future__ import annotations

import re
import sys

from tripod.errors import BadArgumentError
from tripod.ledger.files import read_plain

MAX_INPUT = 1024 * 1024


def whole_number(text: str, least: int, most: int) -> int | None:
    """A whole number in decimal digits; None where it is none from ``least`` to ``most``.

    >>> whole_number("300", 0, 1000), whole_number("-1", 0, 1000), whole_number("1e3", 0, 1000)
    (300, None, None)
    """
    number = int(text) if re.fullmatch("[0-9]{1,16}", text) else -1
    return number if least <= number <= most else None


def text_argument(text: str | None, file: str | None, what: str) -> str:
    """A text given as argument, in a file, or on standard input (``--file -``), at most 1 MiB.

    The file may be a link to a regular file. A pipe is refused, since one that nobody writes to
    would keep us waiting: ``--file -`` reads what is piped in.

    Raises:
        BadArgumentError: both or more than 1 MiB are given, or the file cannot be read as UTF-8.
    """
    if file is None:
        return text or ""
    if text is not None:
        raise BadArgumentError(f"{what}: given twice, as argument and by --file; give one of them")
    try:
        data = _input_bytes(file)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        hint = "" if file == "-" else "; `--file -` reads standard input"
        raise BadArgumentError(f"{what}: --file {file!r} cannot be read: {reason}{hint}") from error
    if len(data) > MAX_INPUT:
        raise BadArgumentError(
            f"{what}: --file {file!r} holds more than {MAX_INPUT} bytes; "
            "put it where the others can read it, and send its path"
        )
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BadArgumentError(
            f"{what}: --file {file!r} is not UTF-8 (byte {error.start + 1})"
        ) from error


def _input_bytes(file: str) -> bytes:
    if file != "-":
        return read_plain(file, MAX_INPUT, named=True)
    if sys.stdin is None:
        raise OSError("standard input is closed")
    return sys.stdin.buffer.read(MAX_INPUT + 1)
