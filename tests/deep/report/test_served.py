"""``tripod report --serve`` in a browser: live, from one origin, without a complaint."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from browser import Page
from doors.inside import TRIPOD, begin, run


@pytest.fixture
def team(tmp_path: Path) -> Path:
    return begin(tmp_path)


@pytest.fixture
def address(team: Path) -> Iterator[str]:
    words = [TRIPOD, "report", "--serve"]
    with subprocess.Popen(words, cwd=team, stdout=subprocess.PIPE, text=True) as serving:
        assert serving.stdout is not None
        try:
            assert "until Ctrl-C" in serving.stdout.readline()
            yield serving.stdout.readline().strip()
            serving.send_signal(signal.SIGINT)
            assert serving.wait(20) == 0
        finally:
            serving.kill()


def texts(page: Page, selector: str) -> list[str]:
    found = page.value(
        f"[...document.querySelectorAll({selector!r})].map((one) => one.textContent)"
    )
    return [str(one) for one in found]


def test_an_open_page_follows_the_ledger(team: Path, address: str, page: Page) -> None:
    page.open(address)
    page.wait("document.getElementById('live').textContent === 'Live'")
    assert texts(page, "h1") == ["clean"]
    run(team, "chat", "send", "live", "ann", "While it is open <img src=x>")
    page.wait("document.getElementById('told').children.length > 1")
    page.wait("document.getElementById('timeline').parentElement.textContent.includes('While it')")
    page.wait("document.getElementById('live').textContent === 'Live'")
    assert any("While it is open <img src=x>" in line for line in texts(page, "#told li"))
    # What somebody edits by hand does not grow the ledger, and is told all the same.
    page.value("document.forms[0].words.value = 'open'")
    chat = team / ".nbs/chat/live.chat"
    chat.write_bytes(b"".join(chat.read_bytes().splitlines(keepends=True)[:-1]))
    page.wait("document.querySelector('h1').textContent === 'findings'")
    assert page.value("document.body.className") == "bad"
    assert page.value("document.forms[0].words.value") == "open"
    assert page.complaints == []
    assert {urlsplit(one).netloc for one in page.requests} == {urlsplit(address).netloc}


def test_a_page_whose_server_is_gone_shows_no_verdict(
    team: Path, tmp_path: Path, page: Page
) -> None:
    words = [TRIPOD, "report", "--serve"]
    with subprocess.Popen(words, cwd=team, stdout=subprocess.PIPE, text=True) as serving:
        assert serving.stdout is not None
        serving.stdout.readline()
        page.open(serving.stdout.readline().strip())
        page.wait("document.getElementById('live').textContent === 'Live'")
        serving.kill()
    page.wait("document.querySelector('h1').textContent === 'not live'")
    assert page.value("document.body.className") == "warn"
    assert page.value("document.title").startswith("not live")


def test_what_the_browser_may_ask_is_this_origin_alone(address: str, page: Page) -> None:
    page.open(address)
    asks = "fetch({!r}).then(() => 'asked', () => 'refused')"
    assert page.value(asks.format(address)) == "asked"
    port = urlsplit(address).port
    for other in (
        address.replace("127.0.0.1", "localhost"),
        f"http://127.0.0.1:{(port or 0) - 1}/",
    ):
        assert page.value(asks.format(other)) == "refused"
    page.open("data:text/html,<title>another site</title>")
    assert page.value(asks.format(address)) == "refused"
