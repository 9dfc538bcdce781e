"""A report in headless chromium: no request, no error, whole without script and on phones.

With ``TRIPOD_WRITES_IMAGES=1`` the screenshots of the documentation are written anew; otherwise the
stored ones are held against new ones by their dimensions and, roughly, by their weight.
"""

from __future__ import annotations

import html
import os
import re
import struct
import subprocess
from pathlib import Path

import pytest

from tripod.report import page as pages
from tripod.report.facts import TEXT, LogEntry, TeamFacts
from tripod.report.markup import clip
from tripod.verify.check import Outcome, Report

ROOT = Path(__file__).parents[3]
IMAGES = ROOT / "docs/images"
DARK, LIGHT = "--blink-settings=preferredColorScheme=0", "--blink-settings=preferredColorScheme=1"
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


@pytest.fixture
def screen(chromium: str, shop: bytes, tmp_path: Path) -> tuple[str, bytes, Path]:
    """The browser, that page, and a folder to work in."""
    return chromium, shop, tmp_path


def browse(chromium: str, folder: Path, page: bytes, *options: str) -> tuple[str, str]:
    """What is on standard output and on standard error after a page was looked at."""
    file = folder / "page.html"
    file.write_bytes(page)
    words = (
        chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
        "--disable-background-networking", "--disable-component-update", "--no-first-run",
        "--enable-logging=stderr", f"--user-data-dir={folder}/profile", *options, file.as_uri(),
    )  # fmt: skip
    done = subprocess.run(words, capture_output=True, check=True, timeout=120)
    return done.stdout.decode(), done.stderr.decode(errors="replace")


def loose(page: bytes, markup: str) -> bytes:
    """A page without its policy, and with more markup at its end."""
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.decode(), count=1)
    return text.replace("</body>", f"{markup}</body>").encode()


def framed(page: bytes, width: int, script: str, sandbox: str) -> bytes:
    """A page in a frame of a width, and a script of the frame's owner that looks into it."""
    source = html.escape(page.decode(), quote=True)
    return (
        f'<!DOCTYPE html><meta charset="utf-8"><style>body{{margin:0}}</style>'
        f'<iframe {sandbox} style="border:0" width="{width}" height="844" srcdoc="{source}">'
        "</iframe>"
        f"<script>const frame = document.querySelector('iframe');"
        f"frame.addEventListener('load', () => {{ const page = frame.contentDocument; {script} }});"
        "</script>"
    ).encode()


def requests(log: Path) -> str:
    return log.read_text("utf-8", errors="replace")


def test_a_page_asks_nothing_of_anybody_and_has_no_error(
    chromium: str, hostile: bytes, shop: bytes, tmp_path: Path
) -> None:
    log = tmp_path / "net.json"
    for page in (hostile, shop):
        dom, said = browse(chromium, tmp_path, page, "--dump-dom", f"--log-net-log={log}")
        assert "CONSOLE" not in said
        assert "outside.invalid" not in requests(log)
        assert '<form class="find">' in dom  # the script ran: its digest is that of the policy
        assert "<img" not in dom
    asking = loose(shop, f'<img src="{OUTSIDE}">')  # shows that the log would tell
    browse(chromium, tmp_path, asking, "--dump-dom", f"--log-net-log={log}")
    assert "outside.invalid" in requests(log)


def test_the_policy_stops_what_would_be_put_in(chromium: str, shop: bytes, tmp_path: Path) -> None:
    """Were a text ever not escaped: neither script, style nor image of it would come."""
    text = f'<script>document.title="ran"</script><img src="{OUTSIDE}"></body>'
    log = tmp_path / "net.json"
    page = shop.replace(b"</body>", text.encode())
    dom, said = browse(chromium, tmp_path, page, "--dump-dom", f"--log-net-log={log}")
    assert "<title>ran" not in dom
    assert said.count("CONSOLE") >= 2
    assert "outside.invalid" not in requests(log)


def test_a_page_is_whole_without_script_on_a_phone(
    chromium: str, shop: bytes, tmp_path: Path
) -> None:
    script = (
        "const wide = page.documentElement.scrollWidth, form = page.querySelector('form.find');"
        "const rows = [...page.querySelectorAll('.log tbody tr')];"
        "const seen = rows.filter((row) => row.textContent.trim()).length;"
        "document.title = [wide, form.hidden, rows.length, seen].join();"
    )
    page = framed(shop, 390, script, 'sandbox="allow-same-origin"')
    dom, _ = browse(chromium, tmp_path, page, "--dump-dom")
    assert "<title>390,true,341,341</title>" in dom


def test_a_keyboard_reaches_everything_in_the_order_of_the_page(
    chromium: str, shop: bytes, tmp_path: Path
) -> None:
    script = (
        "<script>for (const one of document.querySelectorAll('details')) one.open = true;"
        "const all = [...document.querySelectorAll("
        '\'a[href]:not([tabindex="-1"]), summary, input, select, button, [tabindex="0"]\')];'
        "const dead = all.filter((one) => { one.focus(); return document.activeElement !== one; });"
        "all[0].focus(); const skip = getComputedStyle(all[0]);"
        "const up = [...document.querySelectorAll('[tabindex]')].filter((one) => one.tabIndex > 0);"
        "document.title = [dead.length, up.length, all[0].className, skip.left].join();</script>"
    )
    dom, _ = browse(chromium, tmp_path, loose(shop, script), "--dump-dom")
    assert "<title>0,0,skip,16px</title>" in dom


def test_filters_hide_what_does_not_fit(chromium: str, shop: bytes, tmp_path: Path) -> None:
    script = (
        "<script>const form = document.querySelector('form.find');"
        "const count = () => document.querySelectorAll('.log tbody tr:not([hidden])').length;"
        "form.kind.value = 'decision.logged'; form.dispatchEvent(new Event('input'));"
        "setTimeout(() => { const some = count(); form.reset();"
        "setTimeout(() => { document.title = [some, count()].join(); }, 300); }, 300);</script>"
    )
    dom, _ = browse(
        chromium, tmp_path, loose(shop, script), "--dump-dom", "--virtual-time-budget=3000"
    )
    found = re.search(r"<title>(\d+),(\d+)</title>", dom)
    assert found is not None
    assert 0 < int(found[1]) < int(found[2]) == 341


def png_size(data: bytes) -> tuple[int, ...]:
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", data[16:24])


@pytest.mark.parametrize(
    ("name", "size", "option"),
    [
        ("report-light", (1280, 900), LIGHT),
        ("report-dark", (1280, 900), DARK),
        ("report-phone", (390, 844), LIGHT),
    ],
)
def test_the_images_of_the_documentation_are_of_this_page(
    screen: tuple[str, bytes, Path], name: str, size: tuple[int, int], option: str
) -> None:
    chromium, shop, folder = screen
    page = shop if size[0] > 500 else framed(shop, size[0], "", "")  # no window is narrower
    made, stored = folder / "made.png", IMAGES / f"{name}.png"
    window = f"--window-size={size[0]},{size[1]}"
    browse(chromium, folder, page, option, window, f"--screenshot={made}")
    data = made.read_bytes()
    if "TRIPOD_WRITES_IMAGES" in os.environ:
        IMAGES.mkdir(exist_ok=True)
        stored.write_bytes(data)
    assert len(data) < MOST
    assert png_size(stored.read_bytes()) == png_size(data) == size
    assert 0.5 < len(data) / stored.stat().st_size < 2  # other fonts, and no other page
