"""The witness's web server: the protocol over HTTP, and what one caller can take of it."""

import socket
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from sealed import LOG
from witnessing import FORKED, LEAVES, asked, begun, served

from tripod.ledger.tlog.witness import MAX_REQUEST, log_folder, parse_signatures
from tripod.witness.server import WitnessServer

Reply = tuple[int, str | None, bytes]


def talk(server: WitnessServer, method: str, path: str, body: bytes | None = None) -> Reply:
    connection = HTTPConnection(urlsplit(server.url).netloc, timeout=10)
    try:
        connection.request(method, path, body)
        reply = connection.getresponse()
        return reply.status, reply.headers["Content-Type"], reply.read()
    finally:
        connection.close()


def raw(server: WitnessServer, data: bytes) -> bytes:
    """What comes back for bytes that no client would send."""
    with socket.create_connection(server.socket.getsockname(), timeout=10) as sock:
        sock.sendall(data)
        parts = []
        while part := sock.recv(65536):
            parts.append(part)
        return b"".join(parts)


def test_the_protocol(tmp_path: Path) -> None:
    path = f"/{log_folder(LOG.name)}/checkpoint"
    with served(begun(tmp_path)) as (server, said):
        assert talk(server, "GET", path)[0] == 404
        status, kind, body = talk(server, "POST", "/add-checkpoint", asked(0, LEAVES[:7]))
        assert (status, kind) == (200, "text/plain; charset=utf-8")
        assert len(parse_signatures(body)) == 1
        assert talk(server, "GET", path)[2].endswith(body)
        old = asked(3, LEAVES[:9])
        assert talk(server, "POST", "/add-checkpoint", old) == (409, "text/x.tlog.size", b"7\n")
        status, _, body = talk(server, "POST", "/add-checkpoint", asked(7, FORKED[:9]))
        assert (status, body[:8]) == (422, b"no proof")
        assert talk(server, "POST", "/add-checkpoint", b"junk")[0] == 400
    assert "/add-checkpoint" in said[1]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/key", 404),
        ("GET", "/../key", 404),
        ("GET", f"/{log_folder(LOG.name)}/lock", 404),
        ("GET", "/add-checkpoint", 404),
        ("POST", "/", 404),
        ("PUT", "/add-checkpoint", 501),
    ],
)
def test_other_paths(tmp_path: Path, method: str, path: str, status: int) -> None:
    with served(begun(tmp_path)) as (server, _):
        assert talk(server, method, path, b"" if method != "GET" else None)[0] == status


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (b"", b"411"),
        (b"Content-Length: -1\r\n", b"411"),
        (b"Content-Length: +5\r\n", b"411"),
        (b"Transfer-Encoding: chunked\r\n", b"411"),
        (b"Content-Length: %d\r\n" % (MAX_REQUEST + 1), b"413"),
        (b"X: " + b"x" * 70_000 + b"\r\n", b"431"),
        (b"X: y\r\n" * 200, b"431"),
    ],
)
def test_sizes_are_limited_before_anything_is_read(
    tmp_path: Path, header: bytes, status: bytes
) -> None:
    with served(begun(tmp_path)) as (server, _):
        reply = raw(server, b"POST /add-checkpoint HTTP/1.0\r\n" + header + b"\r\n")
        assert reply.split()[1] == status


def test_who_sends_less_than_promised_is_refused(tmp_path: Path) -> None:
    with (
        served(begun(tmp_path)) as (server, _),
        socket.create_connection(server.socket.getsockname(), timeout=10) as sock,
    ):
        sock.sendall(b"POST /add-checkpoint HTTP/1.0\r\nContent-Length: 9\r\n\r\nold")
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(100).split()[1] == b"400"


def test_who_says_nothing_is_given_up(tmp_path: Path) -> None:
    with served(begun(tmp_path), quiet=0.1) as (server, _):
        assert raw(server, b"POST /add-ch") == b""


def test_who_takes_too_long_as_a_whole_is_cut_off(tmp_path: Path) -> None:
    with served(begun(tmp_path), quiet=60, whole=0.2) as (server, _):
        assert raw(server, b"POST /add-checkpoint HTTP/1.0\r\nContent-Length: 9\r\n\r\n") == b""


def test_connections_are_limited_and_come_free_again(tmp_path: Path) -> None:
    with served(begun(tmp_path), connections=1, quiet=60) as (server, said):
        with socket.create_connection(server.socket.getsockname(), timeout=10) as first:
            first.sendall(b"P")
            assert b" 503 " in raw(server, b"")
        status = 503
        while status == 503:
            with suppress(ConnectionError):  # refused before it had said all
                status = talk(server, "POST", "/add-checkpoint", asked(0, LEAVES))[0]
        assert status == 200
        assert any("connections" in line for line in said)


def test_a_folder_out_of_order_is_told_its_operator_and_not_the_caller(tmp_path: Path) -> None:
    with served(begun(tmp_path)) as (server, said):
        (tmp_path / "key").chmod(0o644)
        status, _, body = talk(server, "POST", "/add-checkpoint", asked(0, LEAVES))
        assert (status, str(tmp_path).encode() in body) == (500, False)
        assert any("chmod 600" in line for line in said)


def test_it_listens_to_ipv6(tmp_path: Path) -> None:
    with WitnessServer(begun(tmp_path), "::1", 0, lambda _: None) as server:
        assert server.url.startswith("http://[::1]:")
