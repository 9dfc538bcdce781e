"""Private keys: one PEM file a ledger, outside every team directory.

They lie in the folder ``keys`` of the signer's home: ``$TRIPOD_HOME``, else ``tripod`` in
``$XDG_CONFIG_HOME`` or in ``~/.config``. A file is named by 16 hex digits of SHA-256 of the
ledger's origin, has mode 0600, and may be encrypted with a passphrase (PKCS#8). While a key is
replaced, the new one stands beside it under ``.new`` until the ledger has recorded it.
"""

from __future__ import annotations

import os
from binascii import a2b_base64
from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING, TypeAlias

from tripod.errors import RefusedError
from tripod.ledger import LedgerReader
from tripod.ledger.files import make_folder, read_plain_file, rename_file, replace_file
from tripod.ledger.locator import user_home

if TYPE_CHECKING:
    from tripod.ledger.tlog.note import SigningKey

PASSPHRASE_FILE = "TRIPOD_PASSPHRASE_FILE"  # noqa: S105 - the name of a variable
_MAX_KEY = 64 * 1024  # bytes of a key file
_ED25519 = bytes.fromhex("302e020100300506032b657004220420")
"""What stands before the seed of an Ed25519 key in PKCS#8 (RFC 8410)."""

Passphrase: TypeAlias = "Callable[[], bytes | None]"  # noqa: S105 - a type
"""Asked only where a key is encrypted; None: there is no passphrase to be had."""


class LockedKeyError(RefusedError):
    """The private key is encrypted, and no passphrase was given."""


def place_of(origin: str, folder: str, suffix: str) -> str:
    """The path of what is kept for a ledger in ``folder`` of the signer's home."""
    name = sha256(origin.encode()).hexdigest()[:16]
    return os.path.join(user_home(), folder, name + suffix)


def sealing_key(ledger: LedgerReader) -> str | None:
    """The vkey that seals the ledger now; None where it has none, or none since it forked."""
    row = ledger.tables.execute("SELECT vkey FROM keys ORDER BY seq DESC LIMIT 1").fetchone()
    # Another line's key, from before a fork, does not speak for this one.
    return row[0] if row is not None and str(row[0]).startswith(f"{ledger.origin}+") else None


def key_path(origin: str) -> str:
    """Where the private key of a ledger lies."""
    return place_of(origin, "keys", ".pem")


def has_key_here(vkey: str) -> bool:
    """Whether a file for the private key of ``vkey`` is on this host."""
    path = key_path(vkey.partition("+")[0])
    return os.path.exists(path) or os.path.exists(f"{path}.new")


def check_keys_outside(root: str) -> None:
    """Raise RefusedError if the home lies in the team directory: that is committed and shown."""
    inner = os.path.realpath(user_home())
    if f"{inner}/".startswith(f"{os.path.realpath(root).rstrip('/')}/"):
        raise RefusedError(
            f"{inner} lies in the team directory, where a private key must not be: set "
            "TRIPOD_HOME to a folder that only you can read"
        )


def no_passphrase() -> bytes | None:
    """No passphrase."""
    return None


def passphrase_from_file() -> bytes | None:
    """The first line of the file that ``$TRIPOD_PASSPHRASE_FILE`` names, or None (RefusedError)."""
    path = os.environ.get(PASSPHRASE_FILE)
    if not path:
        return None
    try:
        with open(path, "rb") as file:
            line = file.read(4096).split(b"\n", 1)[0].rstrip(b"\r")
    except OSError as error:
        raise RefusedError(f"{PASSPHRASE_FILE}: {path} cannot be read: {error.strerror}") from error
    if not line:
        raise RefusedError(f"{PASSPHRASE_FILE}: the first line of {path} is empty")
    return line


def store_key(path: str, key: SigningKey, passphrase: bytes | None) -> None:
    """Write a private key to ``path``, durably, encrypted where a passphrase is given."""
    from cryptography.hazmat.primitives import serialization as forms
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    how: forms.KeySerializationEncryption = (
        forms.NoEncryption() if passphrase is None else forms.BestAvailableEncryption(passphrase)
    )
    data = Ed25519PrivateKey.from_private_bytes(key.seed).private_bytes(
        forms.Encoding.PEM, forms.PrivateFormat.PKCS8, how
    )
    write_private_key(path, data)


def write_private_key(path: str, data: bytes) -> None:
    """Put a file of mode 0600 in place, whole or not at all, and wait for the disk.

    The folder is made where it is missing, for its owner alone. Dead before the rename: the file
    is what it was.
    """
    make_folder(os.path.dirname(path), 0o700)
    replace_file(path, data, 0o600)


def is_encrypted_key(path: str) -> bool:
    """Whether a key file asks for a passphrase."""
    return b"BEGIN ENCRYPTED PRIVATE KEY" in read_plain_file(path, 100, named=True)


def _plain_seed(data: bytes) -> bytes | None:
    """The seed in a key file as ``store_key`` writes it without a passphrase; None: another form.

    To import what reads every form takes a third of what a short process costs.
    """
    lines = data.strip().split(b"\n")
    if lines[:1] != [b"-----BEGIN PRIVATE KEY-----"] or lines[2:] != [b"-----END PRIVATE KEY-----"]:
        return None
    try:
        held = a2b_base64(lines[1], strict_mode=True)
    except ValueError:
        return None
    return held[16:] if len(held) == 48 and held.startswith(_ED25519) else None


def load_key(path: str, origin: str, passphrase: Passphrase = no_passphrase) -> SigningKey:
    """A ledger's private key (LockedKeyError: no passphrase; RefusedError: it cannot be used)."""
    mode = os.stat(path).st_mode & 0o777
    if mode & 0o077:
        raise RefusedError(
            f"{path} has mode {mode:o}: others can read the private key; `chmod 600` it"
        )
    given = None
    if is_encrypted_key(path):
        given = passphrase()
        if given is None:
            raise LockedKeyError(
                f"{path} is encrypted: name a file that holds its passphrase in "
                f"{PASSPHRASE_FILE}, or run `tripod seal` at a terminal"
            )
    from tripod.ledger.tlog.note import SigningKey  # acts ask for paths alone

    data = read_plain_file(path, _MAX_KEY, named=True)
    seed = _plain_seed(data)
    if seed is not None:
        return SigningKey(origin, seed)
    from cryptography.hazmat.primitives import serialization as forms
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    try:
        found = forms.load_pem_private_key(data, given)
    except (ValueError, TypeError) as error:
        why = "the passphrase does not open it" if given else "it holds no private key"
        raise RefusedError(f"{path}: {why}") from error
    if not isinstance(found, Ed25519PrivateKey):
        raise RefusedError(f"{path}: it holds another sort of key than Ed25519")
    return SigningKey(origin, found.private_bytes_raw())


def load_key_in_force(vkey: str, passphrase: Passphrase = no_passphrase) -> SigningKey:
    """The private key of ``vkey``, which the ledger has in force.

    A rotation that was stopped after its entry is finished: the new file takes its place. Raises
    LockedKeyError where no passphrase was given, RefusedError where the key is not on this host, or
    cannot be used.
    """
    from tripod.ledger.tlog.note import VerifierKey

    origin = VerifierKey.parse(vkey).name
    path = key_path(origin)
    for place in (path, f"{path}.new"):
        if os.path.exists(place):
            key = load_key(place, origin, passphrase)
            if key.verifier().format() == vkey:
                if place != path:
                    rename_file(place, path)
                return key
    raise _not_here(vkey)


def check_key_here(vkey: str) -> None:
    """Raise RefusedError where no file for the private key of ``vkey`` is on this host."""
    if not has_key_here(vkey):
        raise _not_here(vkey)


def _not_here(vkey: str) -> RefusedError:
    path = key_path(vkey.partition("+")[0])
    what = "is not the one in force" if os.path.exists(path) else "is not there"
    return RefusedError(
        f"the private key {path} {what}; in force is {vkey}. Put its file there; or, if it is "
        "lost or this ledger is a copy of another's, `tripod restore --as-copy` goes on as a "
        "replica of its own, with a new key"
    )
