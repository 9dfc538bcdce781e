"""A decision as a Markdown file: its name is safe, its texts forge nothing and come back."""

import re
from html import unescape

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tripod.decisions.brief import markdown_text
from tripod.ledger import MalformedError
from tripod.projections.decisions.format import DecisionText
from tripod.projections.decisions.madr import parse_madr
from tripod.projections.decisions.madr_file import (
    DecisionPage,
    PageLink,
    decision_page_name,
    escape_markdown,
    format_decision_page,
    unescape_markdown,
    written_page,
)

HOSTILE = (
    "---",
    "--- \nstatus: rejected\n---",
    "# D",
    "## Decision Outcome",
    "Title\n=====\n\n## Decision Outcome\n\nNo.",
    "<!-- -->",
    "<!--",
    "```\n# x",
    "~~~",
    "a\r\nb\rc",
    "\x00\x1b[31m\u202e\u2028\ufeff",
    "    code",
    " ",
    "",
    "\\x0a \\u202e \\\\ \\",
    "1. a",
    "12) b",
    "a #",
    "*none*",
    "[x](http://e) ![y](z) <script> &amp; |a|b| $x$ ~~s~~ _u_ :x:",
    "http://a.org _www.b.org c.d@e.org mailto:f@g.org @h&#8203; @\u200bi",
    "a@-b.org a_@_b.org ann@ ftp://x WwW.x",
    "GH-12 gh-1 !3 &4 ~5 $6 %7 ^8 @a/b#9",
    "\U0001f469\u200d\U0001f52c",
    "x" * 70_000,
)
_ADDRESS = re.compile(r"(?<!\\)://|www\.|[\w.+-]@(?!&#8203;)", re.IGNORECASE)
"""What GitHub makes a link of without any sign."""

texts = st.one_of(
    st.sampled_from(HOSTILE),
    st.text("#-*: \n|<>!`[]()\\x0u\r\tab1.", max_size=30),
    st.text(max_size=40),
)
lists = st.one_of(st.sampled_from(("a, b", "a,b", "", ", ", "none", "\u2014", "a, , b")), texts)
ids = st.integers(0, 10**16 - 1).map(lambda number: f"D-{number}")
decisions = st.builds(
    DecisionText, ids, texts, st.none() | ids | texts, lists, lists, lists, lists, lists, texts
)
links = st.builds(PageLink, st.integers(1, 99_999), texts, st.sampled_from(("decided", "reversed")))
pages = st.builds(
    DecisionPage,
    st.integers(1, 99_999),
    decisions,
    st.none() | texts,
    st.lists(texts, max_size=2),
    st.none() | texts,
    st.none() | links,
    st.lists(links, max_size=2),
)


@given(texts)
@example("a \\#")
def test_a_text_comes_back_and_is_one_paragraph(text: str) -> None:
    shown = escape_markdown(text)
    assert unescape_markdown(shown) == text
    assert shown.replace("\u200c", "").replace("\u200d", "").isprintable()
    assert _is_plain(MarkdownIt("commonmark").enable(["table", "strikethrough"]), shown)
    assert _ADDRESS.search(shown) is None, "a link of GitHub's"
    assert [one.content for one in MarkdownIt().parse(f"# {shown}") if one.content] == (
        [shown] if shown else []
    )


@given(texts)
def test_a_text_of_a_summary_is_one_paragraph_without_links(text: str) -> None:
    shown = markdown_text(text)
    renderer = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    assert _is_plain(renderer, shown)
    seen = renderer.renderInline(shown)
    seen = re.sub("&(?:amp|lt|gt|quot);", lambda one: unescape(one[0]), seen)
    found = re.search(r"[@#!&~$%]\w|\bGH-[0-9]|://", seen, re.IGNORECASE)
    assert found is None, "mentions and numbers are looked for in what is rendered"
    assert re.search(r"://|www\.", shown, re.IGNORECASE) is None, "a link in what is written"


def _is_plain(renderer: MarkdownIt, text: str) -> bool:
    tokens = renderer.parse(text)
    inner = {child.type for token in tokens for child in token.children or ()}
    blocks = [token.type for token in tokens]
    # Spaces at the ends of a paragraph are nobody's sign.
    return blocks in ([], ["paragraph_open", "inline", "paragraph_close"]) and inner <= {
        "text",
        "text_special",
    }


@given(pages)
def test_a_page_reads_back_word_for_word(page: DecisionPage) -> None:
    data = format_decision_page(page)
    found = parse_madr(decision_page_name(page.number, page.decision.title), data)
    assert found.whole is not None
    cut = {name: value for name, value in page.decision._asdict().items() if _is_cut(name, value)}
    assert found.whole._replace(**cut) == page.decision
    assert (found.number, found.time) == (page.number, int(page.decision.id[2:]))
    assert not found.is_waiting
    assert _ADDRESS.search(data.decode()) is None, "a link, also where front matter is not known"
    headings = [line for line in data.decode().split("\n") if line.startswith("#")]
    assert [line for line in headings if line.startswith("##")] == [
        "## Context and Problem Statement",
        "## Decision Outcome",
        "## More Information",
    ]
    assert len(headings) == 5  # with the title, and the mark of the export
    assert data.count(b"\n---\n") == 1
    assert written_page(data) is not None
    assert written_page(data.replace(b"\n", b"\r\n")) == written_page(data)
    assert format_decision_page(page) == data


def _is_cut(name: str, value: str | None) -> bool:
    """Whether a field stands in the front matter and is longer than that takes."""
    return name not in ("title", "rationale") and len(value or "") > 8_000


@given(st.integers(1, 10**8 - 1), texts | st.text(max_size=300))
@example(1, "x" * 300)
@example(7, "../../etc/passwd\x00")
@example(7, "CON")
def test_a_name_is_safe_on_every_file_system(number: int, title: str) -> None:
    name = decision_page_name(number, title)
    assert re.fullmatch(r"[0-9]{4,8}-[a-z0-9]+(-[a-z0-9]+)*\.md", name)
    assert len(name) <= 80
    assert int(name.partition("-")[0]) == number


def test_what_became_of_a_decision_is_its_status() -> None:
    decision = DecisionText("D-5", "T", None, "", "ann", "", "none", "decided", "R")

    def status(*later: str) -> bytes:
        links = [PageLink(at, "x", one) for at, one in enumerate(later, 2)]
        data = format_decision_page(DecisionPage(1, decision, later=links))
        match = re.search(rb'^status: "(.*)"$', data, re.MULTILINE)
        assert match is not None
        return match[1]

    assert status() == b"accepted"
    assert status("decided") == b"superseded by ADR-0002"
    assert status("mitigated") == b"accepted"
    assert status("reversed", "decided", "mitigated") == b"superseded by ADR-0003"
    ended = decision._replace(status="superseded")
    assert b'status: "superseded"' in format_decision_page(DecisionPage(1, ended))


def test_a_change_is_seen_wherever_it_is() -> None:
    decision = DecisionText("D-5", "T", None, "", "ann", "", "none", "decided", "R")
    data = format_decision_page(DecisionPage(1, decision))
    start = data.index(b"status:")
    for at in range(start, len(data)):
        changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        with pytest.raises(ValueError, match="changed since"):
            written_page(changed)
    assert written_page(data[5:]) is None
    assert written_page(b"# Ours\n") is None


def test_what_a_person_made_of_a_page_counts() -> None:
    decision = DecisionText("D-5", "T", None, "\u2014", "ann", "\u2014", "none", "decided", "R")
    data = format_decision_page(DecisionPage(1, decision))
    edited = data.replace(b"\nR\n", b"\nR, and \\*why\\*\nelse.\n").replace(b"# T\n", b"# T\\!\n")
    found = parse_madr("0001-t.md", edited).whole
    assert found is not None
    assert (found.title, found.rationale) == ("T!", "R, and *why* else.")
    with pytest.raises(MalformedError, match="line 8: risk-tags is no text"):
        parse_madr("0001-t.md", data.replace(b'risk-tags: ["none"]', b"risk-tags: [{a: b}]"))
    foreign = data.replace(b'"D-5"', b'"yes"').replace(b'["none"]', b"[{a: b}]")
    assert parse_madr("0001-t.md", foreign).whole is None
