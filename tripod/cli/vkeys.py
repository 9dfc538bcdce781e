"""Keys that are given to an option: of logs, which seal, and of witnesses, which cosign."""

from __future__ import annotations

from collections.abc import Sequence

from tripod.errors import BadArgumentError
from tripod.ledger.errors import MalformedError
from tripod.ledger.tlog.note import COSIGNATURE, ED25519, VerifierKey


def log_keys(vkeys: Sequence[str], option: str = "--key") -> list[VerifierKey]:
    """The keys of logs as they were given to an option.

    Raises:
        BadArgumentError: one is no verifier key of a log.
    """
    return [_key(text, option, ED25519, "a witness, and not of a log") for text in vkeys]


def witness_key(text: str) -> VerifierKey:
    """The key of a witness as it was given to ``--key``.

    Raises:
        BadArgumentError: it is none.
    """
    hint = "; `tripod witness show` prints it where the witness is"
    return _key(text, "--key", COSIGNATURE, "a log, and not of a witness", hint)


def _key(text: str, option: str, kind: int, other: str, hint: str = "") -> VerifierKey:
    try:
        key = VerifierKey.parse(text)
    except MalformedError as error:
        raise BadArgumentError(f"{option}: {error}{hint}") from error
    if key.kind != kind:
        raise BadArgumentError(f"{option}: {key.name} is the key of {other}")
    return key
