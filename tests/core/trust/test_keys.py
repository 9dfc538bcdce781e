"""Private keys: where they lie, who may read them, what opens them."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tripod.errors import RefusedError
from tripod.ledger.locator import user_home
from tripod.ledger.tlog.note import SigningKey
from tripod.trust import keys

ORIGIN = "sample.example/1"
KEY = SigningKey(ORIGIN, bytes(range(32)))


def mode_of(path: str) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def test_a_key_is_stored_for_its_owner_alone_and_read_again(signers_home: str) -> None:
    path = keys.key_path(ORIGIN)
    assert path == f"{signers_home}/keys/45dc85b7444e4440.pem"
    keys.store_key(path, KEY, None)
    assert (mode_of(path), mode_of(os.path.dirname(path))) == (0o600, 0o700)
    assert os.listdir(os.path.dirname(path)) == [os.path.basename(path)]
    assert not keys.is_encrypted_key(path)
    found = keys.load_key(path, ORIGIN)
    assert (found.name, found.seed) == (ORIGIN, KEY.seed)


def test_a_plain_key_is_read_without_what_reads_every_form() -> None:
    key = SigningKey("example.com/ledger", bytes(range(32)))
    path = keys.key_path(key.name)
    keys.store_key(path, key, None)
    code = (
        "import sys; from tripod.trust import keys;"
        f"assert keys.load_key({path!r}, {key.name!r}).seed == bytes(range(32));"
        "print([name for name in sys.modules if name.startswith('cryptography')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    data = Path(path).read_bytes()
    assert keys._plain_seed(data.replace(b"\n", b"\r\n")) is None
    assert keys._plain_seed(data.replace(b"MC4", b"MC5")) is None
    keys.store_key(path, key, b"secret")
    assert keys._plain_seed(Path(path).read_bytes()) is None


def test_an_encrypted_key_opens_with_its_passphrase_alone() -> None:
    path = keys.key_path(ORIGIN)
    keys.store_key(path, KEY, b"correct horse")
    assert keys.is_encrypted_key(path)
    assert KEY.seed not in Path(path).read_bytes()
    assert keys.load_key(path, ORIGIN, lambda: b"correct horse").seed == KEY.seed
    with pytest.raises(RefusedError, match="the passphrase does not open it"):
        keys.load_key(path, ORIGIN, lambda: b"battery staple")
    with pytest.raises(keys.LockedKeyError, match="is encrypted: name a file"):
        keys.load_key(path, ORIGIN)


def test_a_key_that_others_can_read_is_refused() -> None:
    path = keys.key_path(ORIGIN)
    keys.store_key(path, KEY, None)
    os.chmod(path, 0o640)
    with pytest.raises(RefusedError, match=r"has mode 640: .* `chmod 600` it"):
        keys.load_key(path, ORIGIN)


@pytest.mark.parametrize("data", [b"", b"-----BEGIN PRIVATE KEY-----\nAAAA\n", b"\xff" * 200])
def test_what_is_no_key_is_refused(data: bytes) -> None:
    path = keys.key_path(ORIGIN)
    keys.write_private_key(path, data)
    with pytest.raises(RefusedError, match="it holds no private key"):
        keys.load_key(path, ORIGIN)


def test_a_key_of_another_sort_is_refused() -> None:
    from cryptography.hazmat.primitives import serialization as forms
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    data = X25519PrivateKey.generate().private_bytes(
        forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption()
    )
    keys.write_private_key(keys.key_path(ORIGIN), data)
    with pytest.raises(RefusedError, match="another sort of key than Ed25519"):
        keys.load_key(keys.key_path(ORIGIN), ORIGIN)


def test_what_a_stopped_signer_left_is_in_nobodys_way() -> None:
    path = keys.key_path(ORIGIN)
    keys.write_private_key(path, b"old")
    Path(f"{path}.tmp").write_bytes(b"half")
    keys.write_private_key(path, b"new")
    assert Path(path).read_bytes() == b"new"
    assert not os.path.exists(f"{path}.tmp")


# In force --------------------------------------------------------------------------------------


def test_the_key_in_force_is_found_and_a_stopped_rotation_is_finished() -> None:
    path = keys.key_path(ORIGIN)
    after = SigningKey(ORIGIN, b"n" * 32)
    keys.store_key(path, KEY, None)
    keys.store_key(f"{path}.new", after, None)
    assert keys.load_key_in_force(KEY.verifier().format()).seed == KEY.seed
    assert os.path.exists(f"{path}.new")
    assert keys.load_key_in_force(after.verifier().format()).seed == after.seed
    assert not os.path.exists(f"{path}.new")
    assert keys.load_key(path, ORIGIN).seed == after.seed


def test_another_key_than_that_in_force_is_refused() -> None:
    vkey = KEY.verifier().format()
    with pytest.raises(RefusedError, match=r"is not there; in force is sample.example/1\+"):
        keys.load_key_in_force(vkey)
    keys.store_key(keys.key_path(ORIGIN), SigningKey(ORIGIN, b"o" * 32), None)
    with pytest.raises(RefusedError, match="is not the one in force; in force is"):
        keys.load_key_in_force(vkey)


# The home --------------------------------------------------------------------------------------


def test_the_home_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIPOD_HOME", "/one")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/two")
    monkeypatch.setenv("HOME", "/three")
    assert user_home() == "/one"
    monkeypatch.delenv("TRIPOD_HOME")
    assert user_home() == "/two/tripod"
    monkeypatch.delenv("XDG_CONFIG_HOME")
    assert user_home() == "/three/.config/tripod"


def test_a_home_in_the_team_directory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys.check_keys_outside(str(tmp_path / ".nbs"))
    monkeypatch.setenv("TRIPOD_HOME", str(tmp_path / ".nbs" / "home"))
    with pytest.raises(RefusedError, match="lies in the team directory"):
        keys.check_keys_outside(str(tmp_path / ".nbs"))


# Passphrases -----------------------------------------------------------------------------------


def test_a_passphrase_is_the_first_line_of_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRIPOD_PASSPHRASE_FILE", raising=False)
    assert keys.passphrase_from_file() is None
    path = tmp_path / "secret"
    monkeypatch.setenv("TRIPOD_PASSPHRASE_FILE", str(path))
    with pytest.raises(RefusedError, match="cannot be read: No such file"):
        keys.passphrase_from_file()
    path.write_bytes(b" two words \r\nmore\n")
    assert keys.passphrase_from_file() == b" two words "
    path.write_bytes(b"\nsecond\n")
    with pytest.raises(RefusedError, match=r"the first line of .* is empty"):
        keys.passphrase_from_file()
