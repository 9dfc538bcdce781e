"""What strangers wrote is escaped once, and nothing of it hides."""

import re
from html import unescape

from hypothesis import given
from hypothesis import strategies as st

from tripod.output import UNSAFE, safe
from tripod.report.markup import clip, manual_markup, visible_markup

_PIECES = (
    "</script>", "-->", "<!--", "<script>", "<img src=x onerror=alert(1)>", '"', "'", "&", "&lt;",
    "\x1b[31m", "\u202e", "\u2066", "\ufeff", "\x00", "\x9b", "\ud800", "]]>", "\\x1b", "\n",
    "\t", "{{ 7 * 7 }}", "{% raw %}", "</style>", "</title>", "ü", "\U0001f9f5", "a",
)  # fmt: skip
HOSTILE = st.lists(st.sampled_from(_PIECES), max_size=12).map("".join) | st.text()
"""Texts that would break out of a page, hide in it, or command who reads it."""


@given(HOSTILE)
def test_a_text_is_escaped_once_and_nothing_of_it_hides(text: str) -> None:
    shown = str(visible_markup(text))
    plain = re.sub(r'<span class="c">((?:\\[xuU][0-9a-f]+)+)</span>', r"\1", shown)
    assert not set(plain) & set("<>\"'")
    assert unescape(plain) == safe(text)
    assert not re.search(UNSAFE, shown)
    assert visible_markup(visible_markup(text)) == visible_markup(text)


@given(HOSTILE, st.integers(0, 20))
def test_what_is_cut_is_counted(text: str, limit: int) -> None:
    shown, left = clip(text, limit)
    assert text.startswith(shown)
    assert len(shown) + left == len(text)
    assert len(shown) <= limit


@given(HOSTILE)
def test_a_manual_of_a_package_brings_no_markup_of_its_own(text: str) -> None:
    plain = re.sub(r'</?(?:p|b|code)>|<span class="c">|</span>', "", str(manual_markup(text)))
    assert not set(plain) & set("<>")
