"""A report as a hand meets it: by the keyboard alone, on a phone, in the dark, on paper."""

from pathlib import Path

import pytest
from browser import Page

ACTIVE = "document.activeElement"


@pytest.fixture
def opened(page: Page, shop: bytes, tmp_path: Path) -> Page:
    """The page of a team, from a file."""
    page.show(shop, tmp_path)
    return page


def test_all_is_reached_by_the_keyboard_and_seen_where_it_is(opened: Page) -> None:
    opened.press("Tab")
    assert opened.value(f"{ACTIVE}.className") == "skip"
    assert opened.value(f"{ACTIVE}.getBoundingClientRect().left") >= 0
    opened.press("Enter", "\r")
    assert opened.value("location.hash") == "#main"
    reached = set()
    for _ in range(40):
        opened.press("Tab")
        reached.add(opened.value(f"{ACTIVE}.tagName"))
        assert opened.value(f"getComputedStyle({ACTIVE}).outlineStyle") != "none"
    assert {"A", "SUMMARY"} <= reached
    opened.value("document.querySelector('summary').focus()")
    before = opened.value(f"{ACTIVE}.parentElement.open")
    opened.press("Enter", "\r")
    assert opened.value(f"{ACTIVE}.parentElement.open") is not before
    assert opened.complaints == []


def test_words_filter_the_log_and_enter_loses_nothing(opened: Page) -> None:
    rows = "document.querySelectorAll('.log tbody tr:not([hidden])').length"
    whole = opened.value(rows)
    opened.value("document.querySelector('form.find [name=words]').focus()")
    opened.ask("Input.insertText", text="decision")
    opened.press("Enter", "\r")
    opened.wait(f"{rows} < {whole}")
    assert 0 < opened.value(rows) < whole
    opened.value("document.querySelector('form.find').reset()")
    opened.wait(f"{rows} === {whole}")
    assert len(opened.requests) == 1  # nothing was sent


def test_a_phone_scrolls_one_way(opened: Page) -> None:
    for width in (320, 390):
        opened.size(width, 844, is_phone=True)
        assert opened.value("document.documentElement.scrollWidth") <= width


def test_dark_is_dark_and_paper_is_white(opened: Page) -> None:
    def shades() -> tuple[int, int]:
        lit = (
            "getComputedStyle(document.body).{}.match(/[0-9]+/g).slice(0, 3)"
            ".reduce((sum, one) => sum + Number(one), 0)"
        )
        return opened.value(lit.format("backgroundColor")), opened.value(lit.format("color"))

    for scheme, is_dark in (("dark", True), ("light", False)):
        opened.look(scheme)
        ground, ink = shades()
        assert (ground < ink) is is_dark
        assert abs(ground - ink) > 450
    opened.look("dark", "print")
    ground, ink = shades()
    assert ground > ink
