"""A report in headless chromium: no request, no error, whole without script and on phones.

With ``TRIPOD_WRITES_IMAGES=1`` the screenshots of the documentation are written anew; otherwise the
stored ones are held against new ones by their dimensions and, roughly, by their weight.
"""

from __future__ import annotations

import os
import re
import struct
from base64 import b64decode
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from browser import Page

from tripod.report import page as pages
from tripod.report.facts import TEXT, LogEntry, TeamFacts
from tripod.report.markup import clip
from tripod.verify.check import Outcome, Report

ROOT = Path(__file__).parents[3]
IMAGES = ROOT / "docs/images"
MOST = 200_000
"""Bytes of an image of the documentation."""
OUTSIDE = "http://outside.invalid/pixel.png"
HOSTILE = f'</script><img src="{OUTSIDE}"><link rel=stylesheet href="{OUTSIDE}">\x1b]8;;{OUTSIDE}'


@pytest.fixture(scope="module")
def hostile() -> bytes:
    """A page of entries that try to reach out of it."""
    entries = [
        LogEntry(n, "", "2026-11-27", "10:00", HOSTILE, HOSTILE, "", clip(HOSTILE, TEXT), "", None)
        for n in range(3)
    ]
    report = Report(
        HOSTILE, (Outcome("drift", "clean", notes := HOSTILE),), (3, "ab"), notes=(notes,)
    )
    facts = TeamFacts(report, entries, has_ledger=True)
    return pages._render_team(report, [(facts, None)], "r.html", 2**40).pages["r.html"]


def test_a_page_asks_nothing_of_anybody_and_has_no_error(
    page: Page, hostile: bytes, shop: bytes, tmp_path: Path
) -> None:
    for one in (hostile, shop):
        page.show(one, tmp_path)
        assert page.complaints == []
        assert {urlsplit(address).scheme for address in page.requests} == {"file"}
        # The script ran: its digest is that of the policy.
        assert page.value("document.querySelector('form.find').hidden") is False
        assert page.value("document.images.length") == 0
    loose = re.sub(rb'<meta http-equiv="Content-Security-Policy"[^>]*>', b"", shop, count=1)
    page.show(put_in(loose, f'<img src="{OUTSIDE}">'), tmp_path)  # shows that it would be seen
    assert OUTSIDE in page.requests


def test_the_policy_stops_what_would_be_put_in(page: Page, shop: bytes, tmp_path: Path) -> None:
    """Were a text ever not escaped: neither script, style nor image of it would come."""
    markup = f'<script>document.title="ran"</script><img src="{OUTSIDE}">'
    page.show(put_in(shop, markup), tmp_path)
    assert page.value("document.title") != "ran"
    assert len(page.complaints) >= 2
    assert OUTSIDE not in page.requests


def put_in(page: bytes, markup: str) -> bytes:
    """A page with more markup at its end."""
    return page.replace(b"</body>", f"{markup}</body>".encode())


def test_a_page_is_whole_without_script_on_a_phone(page: Page, shop: bytes, tmp_path: Path) -> None:
    page.size(390, 844, is_phone=True)
    page.ask("Emulation.setScriptExecutionDisabled", value=True)
    page.show(shop, tmp_path)
    assert page.value("document.documentElement.scrollWidth") == 390
    assert page.value("document.querySelector('form.find').hidden") is True
    rows = "[...document.querySelectorAll('.log tbody tr')]"
    assert page.value(f"{rows}.length") == 341
    is_seen = "(row) => row.textContent.trim() && row.checkVisibility()"
    assert page.value(f"{rows}.filter({is_seen}).length") == 341


def test_a_keyboard_reaches_everything_in_the_order_of_the_page(
    page: Page, shop: bytes, tmp_path: Path
) -> None:
    page.show(shop, tmp_path)
    page.value("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    every = '\'a[href]:not([tabindex="-1"]), summary, input, select, button, [tabindex="0"]\''
    dead = "one.focus(); return document.activeElement !== one;"
    found = f"[...document.querySelectorAll({every})].filter((one) => {{ {dead} }}).length"
    assert page.value(found) == 0
    up = "[...document.querySelectorAll('[tabindex]')].filter((one) => one.tabIndex > 0).length"
    assert page.value(up) == 0


def test_filters_hide_what_does_not_fit(page: Page, shop: bytes, tmp_path: Path) -> None:
    page.show(shop, tmp_path)
    rows = "document.querySelectorAll('.log tbody tr:not([hidden])').length"
    form = "document.querySelector('form.find')"
    page.value(f"{form}.kind.value = 'decision.logged'; {form}.dispatchEvent(new Event('input'))")
    page.wait(f"{rows} > 0 && {rows} < 341")
    page.value(f"{form}.reset()")
    page.wait(f"{rows} === 341")


def png_size(data: bytes) -> tuple[int, ...]:
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", data[16:24])


@pytest.mark.parametrize(
    "image",
    [
        ("report-light", (1280, 900), "light"),
        ("report-dark", (1280, 900), "dark"),
        ("report-phone", (390, 844), "light"),
    ],
)
def test_the_images_of_the_documentation_are_of_this_page(
    page: Page, shop: bytes, tmp_path: Path, image: tuple[str, tuple[int, int], str]
) -> None:
    name, size, scheme = image
    stored = IMAGES / f"{name}.png"
    page.size(*size)
    page.look(scheme)
    page.show(shop, tmp_path)
    data = b64decode(page.ask("Page.captureScreenshot")["data"])
    if "TRIPOD_WRITES_IMAGES" in os.environ:
        IMAGES.mkdir(exist_ok=True)
        stored.write_bytes(data)
    assert len(data) < MOST
    assert png_size(stored.read_bytes()) == png_size(data) == size
    assert 0.5 < len(data) / stored.stat().st_size < 2  # other fonts, and no other page
