"""``tripod report --serve``: whom it answers, and what it tells of a ledger that goes on."""

import http.client
import json
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPResponse
from threading import Thread
from urllib.parse import urlsplit

import pytest

from tripod.errors import LedgerDamagedError
from tripod.report.server import ReportServer, ServedReport, _Request


class _Team:
    """What is served: pages, lines of entries, and what tells that both changed."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.mark = 0
        self.rendered = 0
        self.problem = ""

    def pages(self) -> dict[str, bytes]:
        if self.problem:
            raise LedgerDamagedError(self.problem)
        self.rendered += 1
        main = f"<p>{len(self.lines)} entries, {self.rendered}</p>"
        return {"report.html": main.encode(), "report-2026-01-01.html": b"a day"}

    def entries(self, start: int) -> tuple[int, list[str]]:
        if self.problem:
            raise LedgerDamagedError(self.problem)
        return len(self.lines), self.lines[start:]

    def add(self, line: str) -> None:
        self.lines.append(line)
        self.mark += 1


@pytest.fixture
def team() -> _Team:
    return _Team()


@pytest.fixture
def server(team: _Team) -> Iterator[ReportServer]:
    report = ServedReport(team.pages, lambda: team.mark)
    with ReportServer(report, team.entries) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@contextmanager
def asked(
    server: ReportServer, path: str | None = None, method: str = "GET", **headers: str
) -> Iterator[HTTPResponse]:
    """The answer to a request; a header's ``_`` stands for a ``-``."""
    path = urlsplit(server.address).path if path is None else path
    with closing(http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)) as line:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        line.putrequest(method, path, skip_host="Host" in named)
        for name, value in named.items():
            line.putheader(name, value)
        line.endheaders()
        yield line.getresponse()


def status(server: ReportServer, path: str | None = None, **headers: str) -> int:
    with asked(server, path, **headers) as answer:
        return answer.status


def test_the_pages_are_given_to_who_has_the_address(server: ReportServer) -> None:
    with asked(server) as answer:
        assert (answer.status, answer.read()) == (200, b"<p>0 entries, 1</p>")
    day = urlsplit(server.address).path + "report-2026-01-01.html"
    with asked(server, day) as answer:
        assert (answer.status, answer.read()) == (200, b"a day")
    with asked(server, method="HEAD") as answer:
        assert (answer.status, answer.read()) == (200, b"")
    assert status(server, f"http://127.0.0.1:{server.server_port}{day}") in (200, 404)


def test_nothing_is_kept_framed_or_sent_on(server: ReportServer) -> None:
    with asked(server) as answer:
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Content-Security-Policy"] == "frame-ancestors 'none'"
        assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "Access-Control-Allow-Origin" not in answer.headers


def test_it_listens_on_the_loopback_address_alone(server: ReportServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert server.address.startswith(f"http://127.0.0.1:{server.server_port}/")
    assert len(urlsplit(server.address).path) > 40


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/report.html",
        "/{short}/",
        "/{token}x/",
        "/{token}/../report.html",
        "/{token}/%2e%2e/{token}/",
        "/{token}/..%2fetc%2fpasswd",
        "/{token}/nothing.html",
        "/?{token}",
        "/%ff/{token}",
        "/\N{SNOWMAN}/",
        "*",
        "http://[/{token}/",
    ],
)
def test_without_the_token_or_a_page_there_is_nothing(server: ReportServer, path: str) -> None:
    with socket.create_connection(("127.0.0.1", server.server_port), 20) as line:
        asks = path.format(token=server.token, short=server.token[:-1])
        line.sendall(
            f"GET {asks} HTTP/1.0\r\nHost: 127.0.0.1:{server.server_port}\r\n\r\n".encode()
        )
        said = b"".join(iter(lambda: line.recv(65_536), b""))
    assert b" 404 " in said.partition(b"\r\n")[0]
    assert server.token.encode() not in said


def test_a_name_that_leads_here_is_not_answered(server: ReportServer) -> None:
    port = server.server_port
    assert status(server, Host=f"localhost:{port}") == 200
    for host in (
        "attacker.example",
        f"attacker.example:{port}",
        "127.0.0.1",
        f"127.0.0.1:{port + 1}",
        "",
    ):
        assert status(server, Host=host) == 421


def test_two_hosts_or_none_are_not_answered(server: ReportServer) -> None:
    path = urlsplit(server.address).path
    for head in ("", f"Host: 127.0.0.1:{server.server_port}\r\nHost: attacker.example\r\n"):
        with socket.create_connection(("127.0.0.1", server.server_port), 20) as line:
            line.sendall(f"GET {path} HTTP/1.0\r\n{head}\r\n".encode())
            assert b" 421 " in line.recv(100)


def test_another_site_is_not_answered(server: ReportServer) -> None:
    own = f"http://127.0.0.1:{server.server_port}"
    assert status(server, Origin=own, Sec_Fetch_Site="same-origin") == 200
    assert status(server, Sec_Fetch_Site="none") == 200
    assert status(server, Origin="http://attacker.example") == 403
    assert status(server, Origin="null") == 403
    assert status(server, Sec_Fetch_Site="cross-site") == 403
    assert status(server, Sec_Fetch_Site="same-site") == 403


def test_nothing_but_reading_is_known(server: ReportServer) -> None:
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        with asked(server, method=method) as answer:
            assert answer.status == 501


def test_a_ledger_that_changed_is_judged_again(team: _Team, server: ReportServer) -> None:
    with asked(server) as answer:
        assert answer.read() == b"<p>0 entries, 1</p>"
    with asked(server) as answer:
        assert answer.read() == b"<p>0 entries, 1</p>"
    team.add("a line")
    with asked(server) as answer:
        assert answer.read() == b"<p>1 entries, 2</p>"


def test_what_cannot_be_judged_is_said_and_no_old_page_is_given(
    team: _Team, server: ReportServer
) -> None:
    assert status(server) == 200
    team.problem, team.mark = "<b>page 3</b> cannot be read", 1
    with asked(server) as answer:
        body = answer.read()
        assert answer.status == 503
        assert b"cannot be judged now: &lt;b&gt;page 3&lt;/b&gt; cannot be read" in body
    team.problem = ""
    assert status(server) == 200


def events(answer: HTTPResponse) -> Iterator[tuple[str, int, list[str]]]:
    while True:
        part = b"".join(iter(answer.readline, b"\n")).decode()
        if part.startswith(":"):
            continue
        name, number, data = (line.partition(": ")[2] for line in part.splitlines())
        told = json.loads(data)
        assert told["size"] == int(number)
        yield name, told["size"], told["entries"]


def test_a_page_is_told_what_the_ledger_takes_in(team: _Team, server: ReportServer) -> None:
    team.lines = ["one", "two"]
    path = urlsplit(server.address).path + "entries?since=1"
    with asked(server, path) as answer:
        assert answer.headers["Content-Type"] == "text/event-stream"
        told = events(answer)
        assert next(told) == ("entries", 2, ["two"])
        team.add("<three>")
        assert next(told) == ("entries", 3, ["<three>"])
        team.lines, team.mark = ["another"], 9
        assert next(told) == ("again", 1, [])
        team.problem, team.mark = "gone", 10
        assert next(told) == ("again", 1, [])
        team.problem = ""
        team.add("back")
        assert next(told) == ("entries", 2, ["back"])


def test_a_page_that_comes_back_misses_nothing(team: _Team, server: ReportServer) -> None:
    team.lines = ["one", "two", "three"]
    path = urlsplit(server.address).path + "entries?since=0"
    with asked(server, path, Last_Event_ID="2") as answer:
        assert next(events(answer)) == ("entries", 3, ["three"])
    for since in ("", "-1", "1e9", "\N{ARABIC-INDIC DIGIT ONE}", "9" * 16):
        with asked(server, f"{path[:-1]}{since.encode().hex()}") as answer:
            assert answer.status == 200


def test_an_error_that_nobody_foresaw_is_no_silence(team: _Team, server: ReportServer) -> None:
    def render() -> dict[str, bytes]:
        raise ZeroDivisionError("<of a table>")

    server.report._render = render
    with asked(server) as answer:
        assert answer.status == 503
        assert b"ZeroDivisionError: &lt;of a table&gt;" in answer.read()


def test_a_slow_line_gets_the_whole_page(
    team: _Team, server: ReportServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Request, "timeout", 1.0)
    page = b"x" * 12_000_000  # more than the system takes before anybody reads
    server.report._render = lambda: {"report.html": page}
    with closing(socket.socket()) as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        line.settimeout(20)
        line.connect(("127.0.0.1", server.server_port))
        path = urlsplit(server.address).path
        host = f"Host: 127.0.0.1:{server.server_port}"
        line.sendall(f"GET {path} HTTP/1.0\r\n{host}\r\n\r\n".encode())
        got, begun = 0, time.monotonic()
        while more := line.recv(1_000_000):
            got += len(more)
            if time.monotonic() - begun < 1.5:  # slow, and never silent for a second
                time.sleep(0.05)
    assert got > len(page)


def test_a_page_that_was_closed_frees_its_stream(server: ReportServer) -> None:
    path = urlsplit(server.address).path + "entries?since=0"
    for _ in range(3 * 16):  # thrice as many as may be open at once
        for _ in range(100):
            with asked(server, path) as answer:
                if answer.status == 200:
                    break
        else:
            pytest.fail("streams of pages that were closed stay taken")


def test_too_many_open_pages_are_refused_in_words(server: ReportServer) -> None:
    taken = 0
    while server.streams.acquire(blocking=False):
        taken += 1
    assert taken == 16
    path = urlsplit(server.address).path + "entries"
    with asked(server, path) as answer:
        assert (answer.status, b"close some" in answer.read()) == (503, True)


def test_a_port_that_is_taken_is_an_error(team: _Team, server: ReportServer) -> None:
    report = ServedReport(team.pages, lambda: 0)
    with pytest.raises(OSError, match="in use"):
        ReportServer(report, team.entries, server.server_port)
