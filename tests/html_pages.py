"""Reads a page of a report as a browser's parser does, and holds it against what it may contain."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from itertools import pairwise

_TAGS = """
html head meta link title style body a header p h1 h2 h3 h4 section ol ul li nav main footer div
table caption thead tbody tr th td span b i strong code pre details summary dl dt dd article br
script form label input select option button output svg text line rect
"""
TAGS = frozenset(_TAGS.split())
_ATTRIBUTES = """
lang charset http-equiv content name rel href class id aria-labelledby aria-label aria-live role
tabindex scope data-l hidden type autocomplete value viewbox x y x1 x2 y1 y2 width height
text-anchor open
"""
ATTRIBUTES = frozenset(_ATTRIBUTES.split())
_ADDRESS = re.compile(r"#[A-Za-z0-9-]+|[A-Za-z0-9._%-]+\.html(#[A-Za-z0-9-]+)?|data:,")
_VOID = {"meta", "link", "input", "br"}


class SeenPage(HTMLParser):
    """What a page has: its tags, text, anchors and links. AssertionError: what no page may have."""

    def __init__(self, page: bytes) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.headings: list[tuple[str, str]] = []
        self.code: dict[str, str] = {}
        self.policy = ""
        self.words: list[str] = []
        self._in = ""
        self.feed(page.decode())
        self.close()
        self._check()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS, tag
        self.tags.append(tag)
        if tag in ("td", "th", "br", "li", "p"):
            self.words.append(" ")
        self._in = tag
        for name, value in attrs:
            assert name in ATTRIBUTES, name
            if name == "href":
                assert _ADDRESS.fullmatch(value or ""), value
                self.links.append(value or "")
            if name == "id":
                self.ids.append(value or "")
        named = dict(attrs)
        if named.get("http-equiv") == "Content-Security-Policy":
            self.policy = named["content"] or ""
        if tag in ("h1", "h2", "h3", "h4"):
            self.headings.append((tag, ""))

    def handle_endtag(self, tag: str) -> None:
        assert tag not in _VOID
        self._in = ""

    def handle_data(self, data: str) -> None:
        if self._in in ("style", "script"):
            self.code[self._in] = self.code.get(self._in, "") + data
            return
        self.words.append(data)
        if self._in in ("h1", "h2", "h3", "h4"):
            tag, said = self.headings[-1]
            self.headings[-1] = tag, said + data.strip()

    def handle_comment(self, data: str) -> None:
        assert re.fullmatch(r" tripod report(: a day of [\w.~%-]+)? ", data, re.ASCII), data

    def _check(self) -> None:
        assert self.tags.count("script") == self.tags.count("style") == 1
        for name, source in self.code.items():
            digest = b64encode(sha256(source.encode()).digest()).decode()
            assert f"{name}-src 'sha256-{digest}'" in self.policy
        assert self.policy.startswith("default-src 'none'; ")
        assert not re.search("https?:|unsafe", self.policy)
        assert len(self.ids) == len(set(self.ids)), "an anchor stands twice"
        levels = [int(tag[1]) for tag, _ in self.headings]
        assert levels[0] == 1
        assert all(after - before <= 1 for before, after in pairwise(levels))

    @property
    def text(self) -> str:
        """All text of it."""
        return "".join(self.words)
