"""The browser that reports are looked at with, and the page of a whole team."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser, Page, opened_browser
from nbs_team import unpack

from tripod.report import page as pages
from tripod.report import render_report

GOLDEN = Path(__file__).parents[2] / "golden/team-852efc6.tar.xz"


@pytest.fixture(scope="session")
def chromium() -> str:
    """The browser; without it these tests say so and are skipped, where nobody demands it."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if found is None:
        message = "chromium is not installed: how a report looks in a browser is NOT tested"
        assert "TRIPOD_NEEDS_CHROMIUM" not in os.environ, message
        pytest.skip(message)
    return found


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The page of the team of the golden archive."""
    folder = tmp_path_factory.mktemp("golden")
    unpack(GOLDEN, folder)
    (folder / "team").rename(folder / "shop")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return render_report("shop").pages[pages.NAME]


@pytest.fixture(scope="session")
def browser(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """That browser, running."""
    with opened_browser(chromium, tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A tab of that browser."""
    page = browser.page()
    yield page
    page.ask("Page.close")
