"""Reads what commands are given: words, handles, numbers, times, keys, and texts from files.

A ``ParamKind`` says how the value of a parameter is read. Both command lines read by it: ``tripod``
before a command begins, an ``nbs-*`` program when the command asks for the value, since its
original judges arguments in that order.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tripod.errors import BadArgumentError, MalformedError
from tripod.ledger.files import read_plain_file

if TYPE_CHECKING:
    from tripod.ledger.tlog.note import VerifierKey

MAX_INPUT = 1024 * 1024  # bytes of a text
MAX_NUMBER = 2**53 - 1  # what canonical JSON can hold, and SQLite and every reader of ours
_SHOWN = 40  # characters of a bad value that a message repeats
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


class ParamKind:
    """Any text; a path may hold bytes that are not UTF-8."""

    def read(self, text: str) -> object:
        """The value of a text (ValueError: it breaks the rule that the message names)."""
        return text


class TextParam(ParamKind):
    """A text that can be written as UTF-8; other bytes reach Python as halves of surrogates."""

    def read(self, text: str) -> object:
        """The text itself."""
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"is not UTF-8 (character {error.start + 1})") from None
        return text


class HandleParam(TextParam):
    """Somebody's name: one word, without what the files of the team use as punctuation.

    ``loose``: an ``nbs-*`` program takes any text that is not empty, and looks for it.
    """

    def __init__(self, *, loose: bool = False) -> None:
        self.loose = loose

    def read(self, text: str) -> object:
        """The handle itself."""
        from tripod.projections.chat.format import valid_chat_handle

        super().read(text)
        problem = valid_chat_handle(text)
        if problem is not None:
            raise ValueError(problem.removeprefix("handle: "))
        return text


class NumberParam(ParamKind):
    """A whole number in decimal digits, from ``least`` to ``most``.

    ``empty`` is the number that an empty value stands for in an ``nbs-*`` program.
    """

    def __init__(self, least: int = 0, most: int = MAX_NUMBER, empty: int | None = None) -> None:
        self.least, self.most, self.empty = least, most, empty

    def read(self, text: str) -> object:
        """The number."""
        number = whole_number_param(text, self.least, self.most)
        if number is None:
            shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
            raise ValueError(f"{shown!r} is no whole number from {self.least} to {self.most}")
        return number


class ChoiceParam(TextParam):
    """One of a few words."""

    def __init__(self, *words: str) -> None:
        self.words = words

    def read(self, text: str) -> object:
        """The word itself."""
        if text not in self.words:
            from tripod.projections.text import text_meant

            raise ValueError(
                f"{text!r} is not one of {', '.join(self.words)}{text_meant(text, self.words)}"
            )
        return text


RAW, TEXT, HANDLE, FLAG = ParamKind(), TextParam(), HandleParam(), ParamKind()


def first_sentence(page: str) -> str:
    """The first sentence of a page of help or a manual, with its full stop."""
    first = " ".join(page.partition("\n\n")[0].split())
    return f"{first.partition('. ')[0].rstrip('.')}."


def whole_number_param(text: str, least: int, most: int) -> int | None:
    """A whole number in decimal digits; None if it is not, or not from ``least`` to ``most``.

    >>> [whole_number_param(text, 0, 1000) for text in ("300", "-1", "1e3")]
    [300, None, None]
    """
    number = int(text) if re.fullmatch("[0-9]{1,16}", text) else -1
    return number if least <= number <= most else None


def text_param(text: str | None, file: str | None, what: str) -> str:
    """A text given as argument, in a file, or on standard input (``--file -``), at most 1 MiB.

    The file may be a link to a regular file. A pipe is refused, since one that nobody writes to
    would keep us waiting: ``--file -`` reads what is piped in. Raises BadArgumentError (both or
    more than 1 MiB are given, or the file cannot be read as UTF-8).
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
        place = f"byte {error.start + 1}"
        raise BadArgumentError(f"{what}: --file {file!r} is not UTF-8 ({place})") from error


def _input_bytes(file: str) -> bytes:
    if file != "-":
        return read_plain_file(file, MAX_INPUT, named=True)
    if sys.stdin is None:
        raise OSError("standard input is closed")
    return sys.stdin.buffer.read(MAX_INPUT + 1)


def moment_param(text: str | None, what: str) -> int | None:
    """Epoch seconds of ``30s 5m 2h 1d`` ago, of an epoch, or of ``2026-02-12T14:00:00``.

    A moment without a zone is one of this host's. None stands for None. Raises BadArgumentError (it
    is not one of these).
    """
    from tripod.projections import text as moments

    if text is None:
        return None
    ago = re.fullmatch("([0-9]{1,9})([smhd])", text)
    if ago is not None:
        return max(0, time.time_ns() // 1_000_000_000 - int(ago[1]) * _UNITS[ago[2]])
    if re.fullmatch("[0-9]{10,15}", text):
        return int(text)
    found = moments.parse(text) if "T" in text else None
    if found is None:
        raise BadArgumentError(
            f"{what}: {text:.40} is no time; give 30s, 5m, 2h or 1d ago, an epoch of ten digits "
            "or more, or 2026-02-12T14:00:00"
        )
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}", text):
        found = int(time.mktime((*time.gmtime(found)[:6], 0, 0, -1)))
    return found


def log_keys_param(vkeys: Sequence[str], option: str = "--key") -> list[VerifierKey]:
    """The keys of logs, as they were given to an option (BadArgumentError: one is not such)."""
    from tripod.ledger.tlog.note import ED25519

    return [_key(text, option, ED25519, "a witness, and not of a log") for text in vkeys]


def witness_key_param(text: str) -> VerifierKey:
    """The key of a witness, as it was given to ``--key`` (BadArgumentError: it is not such)."""
    from tripod.ledger.tlog.note import COSIGNATURE

    hint = "; `tripod witness show` prints it where the witness is"
    return _key(text, "--key", COSIGNATURE, "a log, and not of a witness", hint)


def _key(text: str, option: str, kind: int, other: str, hint: str = "") -> VerifierKey:
    from tripod.ledger.tlog.note import VerifierKey

    try:
        key = VerifierKey.parse(text)
    except MalformedError as error:
        raise BadArgumentError(f"{option}: {error}{hint}") from error
    if key.kind != kind:
        raise BadArgumentError(f"{option}: {key.name} is the key of {other}")
    return key
