"""Where commands get passphrases: from the file that a variable names, else at a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable

import click

from tripod.errors import BadArgumentError
from tripod.trust import keys

WITH = "Encrypt it, with the passphrase in $TRIPOD_PASSPHRASE_FILE or asked for here."


def asked() -> bytes | None:
    """Of the file, else asked for at a terminal; None where there is neither."""
    given = keys.from_file()
    if given is not None or not _at_terminal():
        return given
    text: str = click.prompt("Passphrase of the private key", hide_input=True, err=True)
    return text.encode()


def fresh() -> bytes:
    """A new one, asked for twice (BadArgumentError: there is nowhere to ask)."""
    given = keys.from_file()
    if given is not None:
        return given
    if not _at_terminal():
        raise BadArgumentError(
            "--passphrase: there is no terminal to ask at; write it into a file of your own and "
            "name that in TRIPOD_PASSPHRASE_FILE"
        )
    text: str = click.prompt("New passphrase", hide_input=True, confirmation_prompt=True, err=True)
    return text.encode()


def _at_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def once(ask: Callable[[], bytes | None]) -> Callable[[], bytes | None]:
    """Ask one time at most, however often the key is used."""
    answers: list[bytes | None] = []

    def answer() -> bytes | None:
        if not answers:
            answers.append(ask())
        return answers[0]

    return answer
