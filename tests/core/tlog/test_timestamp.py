"""RFC 3161 receipts: what a trusted authority stamped is opened, and nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest
from authority import Authority
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tripod.ledger.errors import LedgerError, MalformedError, MissingExtraError, NotVerifiedError
from tripod.ledger.tlog.receipt import (
    Stamp,
    _sorted,
    open_timestamp,
    parse_timestamp_authorities,
    require_timestamp_extra,
)

TEXT = "example.com/ledger\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tsa") / "one")


@pytest.fixture(scope="module")
def receipt(authority: Authority) -> bytes:
    return authority.reply(authority.query(TEXT.encode()))


def test_a_stamp_is_opened(authority: Authority, receipt: bytes) -> None:
    roots = parse_timestamp_authorities(authority.roots.read_bytes())
    stamp = open_timestamp(receipt, TEXT, roots)
    (told,) = [
        line
        for line in authority.openssl("ts", "-reply", "-in", "reply.tsr", "-text").splitlines()
        if line.startswith("Time stamp:")
    ]
    assert stamp.accuracy == 1_500_000
    assert isinstance(stamp, Stamp)
    from datetime import UTC, datetime

    when = datetime.strptime(told, "Time stamp: %b %d %H:%M:%S %Y GMT").replace(tzinfo=UTC)
    assert stamp.micros == int(when.timestamp()) * 1_000_000


def test_certificates_in_any_order(authority: Authority) -> None:
    roots = parse_timestamp_authorities(authority.roots.read_bytes())
    query = authority.query(TEXT.encode())
    receipt = authority.reply(query, "-chain", "root.pem")
    assert len(_sorted(receipt)) == len(receipt)
    assert sorted(_sorted(receipt)) == sorted(receipt)
    assert open_timestamp(receipt, TEXT, roots).serial > 0
    (authority.folder / "data").write_bytes(TEXT.encode())
    verify = ("ts", "-verify", "-in", "reply.tsr", "-data", "data", "-CAfile", "root.pem")
    authority.openssl(*verify)
    (authority.folder / "data").write_bytes(TEXT.encode() + b"x")
    with pytest.raises(subprocess.CalledProcessError):
        authority.openssl(*verify)


def test_what_is_not_about_this_seal_or_not_by_whom_we_trust(
    authority: Authority, receipt: bytes, tmp_path: Path
) -> None:
    roots = parse_timestamp_authorities(authority.roots.read_bytes())
    others = parse_timestamp_authorities(Authority(tmp_path / "two").roots.read_bytes())
    with pytest.raises(NotVerifiedError):
        open_timestamp(receipt, TEXT.replace("\n0\n", "\n1\n"), roots)
    with pytest.raises(NotVerifiedError):
        open_timestamp(receipt, TEXT, others)
    with pytest.raises(NotVerifiedError):
        open_timestamp(receipt, TEXT, roots, nonce=7)
    with pytest.raises(NotVerifiedError, match="no authority"):
        open_timestamp(receipt, TEXT, [])


def test_an_authority_that_refuses(authority: Authority) -> None:
    roots = parse_timestamp_authorities(authority.roots.read_bytes())
    query = authority.query(TEXT.encode())
    sha512 = query.replace(bytes.fromhex("608648016503040201"), bytes.fromhex("608648016503040203"))
    with pytest.raises(MalformedError, match="status 2"):
        open_timestamp(authority.reply(sha512), TEXT, roots)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_damage_is_opened(authority: Authority, receipt: bytes, data: st.DataObject) -> None:
    """A damaged receipt is refused; or, where no signature covers the byte, says the same."""
    roots = parse_timestamp_authorities(authority.roots.read_bytes())
    whole = open_timestamp(receipt, TEXT, roots)
    at = data.draw(st.integers(0, len(receipt) - 1))
    byte = data.draw(st.integers(0, 255))
    damaged = receipt[:at] + bytes([byte]) + receipt[at + 1 :]
    try:
        stamp = open_timestamp(damaged, TEXT, roots)
    except LedgerError:
        return
    assert stamp == whole


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_with_a_word(authority: Authority, junk: bytes) -> None:
    roots = parse_timestamp_authorities(authority.roots.read_bytes())
    with pytest.raises(LedgerError):
        open_timestamp(junk, TEXT, roots)


def test_what_holds_no_certificate() -> None:
    with pytest.raises(MalformedError, match="PEM"):
        parse_timestamp_authorities(b"junk")


def test_without_the_extra_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rfc3161_client", None)
    with pytest.raises(MissingExtraError, match=r"tripod-ledger\[tsa\]"):
        require_timestamp_extra()
