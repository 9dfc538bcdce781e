r"""One decision as a Markdown file of its own (MADR 4), which reads back word for word. Pure.

::

    ---
    # `tripod decisions export` wrote this copy; sha256 of the lines below: 5f0c...
    status: "superseded by ADR-0007"
    date: 2026-02-12
    decision-makers: ["alex", "claude"]
    decision: "D-1770900000"
    logged-status: "decided"
    ---

    # Use SQLite

    ## Context and Problem Statement

    Decided in this message of the team's chat:

    - live#14: entry 31 of ledger.example/shop, leaf hash 09af...

    ## Decision Outcome

    It is one file.

    ## More Information

    - Superseded by [ADR-0007: Use Postgres](0007-use-postgres.md)

Title and rationale are texts of strangers. Each stands on one line, in which every sign of Markdown
has a backslash in front, and every character that is not seen is an escape (``\x0a``, ``\u202e``).
So no text begins a heading, a comment, a fence or another decision, and ``unescape_markdown`` gives
each back word for word. ``tripod.projections.decisions.madr`` reads the file.

Source: https://adr.github.io/madr (MADR 4.0.0), CommonMark 0.31 (backslash escapes).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

from tripod.ledger.ids import format_at
from tripod.projections.decisions.format import DecisionText

NAME_PATTERN = r"(?i)([0-9]{4,8})-.*\.(?:md|markdown)"
"""How files of decisions are named; the number is the first group."""

_FIRST = "# `tripod decisions export` wrote this copy; sha256 of the lines below: "
_FRONT = re.compile(rb"---\n%b([0-9a-f]{64})\n" % re.escape(_FIRST.encode()))
_OWN = re.compile(r"^(?:decision|made): .*$", re.MULTILINE)
_SIGNS = re.compile(r"[^ -~]|[\\`*_\[\]<>&~$|]")
_JOINERS = "\u200c\u200d"  # they belong to the spelling of languages and emoji
_ESCAPED = re.compile(
    r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|([!-/:-@\[-`{-~]))|(?<=@)&#8203;"
)
_LONGEST_SLUG = 60  # characters
_LONGEST_VALUE = 8_000  # bytes of a value in the front matter; the reader takes 64 KiB of them all
_MOST_ITEMS = 100  # of a list in the front matter
_LAST_SECOND = 253_402_300_799  # of the year 9999
_NONE = "*none*"
"""Stands for a title or a rationale that is empty. No text is written so: stars are escaped."""

_VERBS = {"reversed": ("Reverses", "Reversed by"), "mitigated": ("Mitigates", "Mitigated by")}


class PageLink(NamedTuple):
    """Another decision that a page links to; ``status`` says what the later made of the earlier."""

    number: int
    title: str
    status: str


class DecisionPage(NamedTuple):
    """What a page says of a decision.

    ``number`` is its place in the ledger, from 1. ``made`` is the replica and the id by which its
    maker knows it, None where this ledger made it. ``messages`` name what it refers to, ``no_ref``
    says why nothing. ``earlier`` is the decision that it changes, ``later`` are those that change
    it, oldest first.
    """

    number: int
    decision: DecisionText
    made: str | None = None
    messages: Sequence[str] = ()
    no_ref: str | None = None
    earlier: PageLink | None = None
    later: Sequence[PageLink] = ()


def decision_page_name(number: int, title: str) -> str:
    r"""The name of a decision's file: its number, and what of the title any file system takes.

    >>> decision_page_name(7, "Über ../../etc: use \x00Café")
    '0007-uber-etc-use-cafe.md'
    >>> decision_page_name(12345, "決める")
    '12345-decision.md'
    """
    plain = unicodedata.normalize("NFKD", title[: 10 * _LONGEST_SLUG])
    plain = plain.encode("ascii", "ignore").decode().lower()
    slug = re.sub("[^a-z0-9]+", "-", plain).strip("-")
    if len(slug) > _LONGEST_SLUG:
        slug = slug[: _LONGEST_SLUG + 1].rpartition("-")[0] or slug[:_LONGEST_SLUG]
    return f"{number:04}-{slug or 'decision'}.md"


def escape_markdown(text: str) -> str:
    r"""A text on one line of Markdown, where nothing of it is a sign; it shows as it is.

    >>> escape_markdown("# no <b> *x*\n---")
    '\\# no \\<b\\> \\*x\\*\\x0a---'
    >>> print(escape_markdown("http://a.org www.b.org c@d.org"))
    http\://a.org www\.b.org c@&#8203;d.org
    """
    shown = _SIGNS.sub(_escape_sign, text)
    # GitHub makes links of addresses without any sign; of those of mail after the signs were read.
    shown = re.sub(r":(?=//)", r"\\:", shown)
    shown = re.sub(r"(?i)(www)\.", r"\1\\.", shown)
    shown = re.sub(r"(?<=[\w.+-])@", "@&#8203;", shown)
    shown = re.sub(r"^([#>+=:-])|^([0-9]{1,9})(?=[.)])", r"\2\\\1", shown)
    shown = re.sub(r"^ | $", r"\\x20", shown)
    return re.sub(r"#$", r"\\#", shown) if not shown.endswith("\\#") else shown


def _escape_sign(match: re.Match[str]) -> str:
    sign = match[0]
    if sign.isascii() and sign.isprintable():
        return f"\\{sign}"
    return sign if sign.isprintable() or sign in _JOINERS else _escape_character(sign)


def _escape_character(sign: str) -> str:
    code = ord(sign)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def unescape_markdown(text: str) -> str:
    r"""The text of a line that ``escape_markdown`` wrote, or a person by the rules of Markdown.

    >>> unescape_markdown("\\# no \\\\x0a \\*x\\*\\x0a---")
    '# no \\x0a *x*\n---'
    """

    def plain(match: re.Match[str]) -> str:
        code = match[1] or match[2] or match[3]
        if code is None:
            return match[4] or ""
        number = int(code, 16)
        is_text = number < 0x110000 and not 0xD800 <= number < 0xE000
        return chr(number) if is_text else match[0]

    return _ESCAPED.sub(plain, text)


def format_decision_page(page: DecisionPage) -> bytes:
    """The file of a decision: its bytes follow from what the page says alone."""
    one = page.decision
    title = escape_markdown(one.title) or _NONE
    lines = [*_front(page), "---", "", f"# {title}", "", "## Context and Problem Statement", ""]
    if page.messages:
        what = "this message" if len(page.messages) == 1 else "these messages"
        lines += [f"Decided in {what} of the team's chat:", ""]
        lines += [f"- {escape_markdown(message)}" for message in page.messages]
    elif page.no_ref:
        lines += [f"It refers to no message: {escape_markdown(page.no_ref)}"]
    else:
        lines += ["It refers to no message."]
    rationale = escape_markdown(one.rationale) or _NONE
    lines += ["", "## Decision Outcome", "", rationale, "", "## More Information", ""]
    lines += [f"- Decision {escape_markdown(page.made or one.id)}, logged as {_word(one.status)}"]
    if page.earlier is not None:
        lines += [f"- {_VERBS.get(one.status, ('Supersedes',))[0]} {_link(page.earlier)}"]
    for later in page.later:
        verb = _VERBS.get(later.status, ("", "Superseded by"))[1]
        lines += [f"- {verb} {_link(later)}"]
    for label, text in (("Risk tags", one.risk_tags), ("Artefacts", one.artefacts)):
        lines += [f"- {label}: {escape_markdown(text)}"]
    below = "".join(f"{line}\n" for line in lines).encode()
    return f"---\n{_FIRST}{sha256(below).hexdigest()}\n".encode() + below


def _word(status: str) -> str:
    return escape_markdown(status) or "decided"


def _link(to: PageLink) -> str:
    name = decision_page_name(to.number, to.title)
    return f"[ADR-{to.number:04}: {escape_markdown(to.title)}]({name})"


def _front(page: DecisionPage) -> list[str]:
    """The lines of the front matter, without its rules."""
    one = page.decision
    ended = [later for later in page.later if later.status != "mitigated"]
    status = f"superseded by ADR-{ended[-1].number:04}" if ended else "accepted"
    if one.status in ("superseded", "reversed") and one.supersedes is None and not page.later:
        status = "superseded"  # by what, no reference says
    values: dict[str, str] = {"status": _quoted(status)}
    second = int(one.id[2:])
    if second <= _LAST_SECOND:
        values["date"] = format_at(second * 1_000_000)[:10]
    values["decision-makers"] = _list(one.participants)
    values["decision"] = _quoted(one.id)
    values |= {} if page.made is None else {"made": _quoted(page.made)}
    values["logged-status"] = _quoted(one.status)
    values |= {} if one.supersedes is None else {"supersedes": _quoted(one.supersedes)}
    values["risk-tags"] = _list(one.risk_tags)
    values["artefacts"] = _list(one.artefacts)
    values["chat-refs"] = _list(one.chat_ref)
    return [f"{key}: {value}" for key, value in values.items()]


def _list(text: str) -> str:
    """A list as the log has it, with commas; as one text where its items would not give it back."""
    items = text.split(", ")
    if len(items) > _MOST_ITEMS or not all(items):
        return _quoted(text)
    return f"[{', '.join(map(_quoted, items))}]" if len(text) < _LONGEST_VALUE else _quoted(text)


def _quoted(text: str) -> str:
    r"""A text of YAML in double quotes, on one line; one that is far too long is cut.

    A reader that knows no front matter takes it for Markdown, and finds no image, HTML or address.

    >>> _quoted('a "b"\n\u202e')
    '"a \\"b\\"\\x0a\\u202e"'
    >>> print(_quoted("[a](b) <i> http://a.org www.b.org c@d.org"))
    "\x5ba](b) \x3ci> http\x3a//a.org www\x2eb.org c\x40d.org"
    """

    def sign(match: re.Match[str]) -> str:
        one = match[0]
        if one in '\\"':
            return f"\\{one}"
        is_shown = (one.isprintable() and not one.isascii()) or one in _JOINERS
        return one if is_shown else _escape_character(one)

    shown = re.sub(r'[^ -~]|[\\"\[<@]|:(?=//)|(?i:(?<=www))\.', sign, text)
    if len(shown.encode()) > _LONGEST_VALUE:
        return _quoted(f"{text[: _LONGEST_VALUE // 12]}…")
    return f'"{shown}"'


def written_page(data: bytes) -> bytes | None:
    """What of a file stands below its first lines as an export wrote it; None: no export wrote it.

    Line breaks may have become those of another system, as git makes them.

    Raises:
        ValueError: an export wrote it, and it was changed since.
    """
    data = data.replace(b"\r\n", b"\n")
    first = _FRONT.match(data)
    if first is None:
        return None
    rest = data[first.end() :]
    if sha256(rest).hexdigest() != first[1].decode():
        raise ValueError("it was changed since an export wrote it")
    return rest


def named_decision(page: bytes) -> list[str]:
    """The lines of a page that say which decision it holds, here and at its maker."""
    front = page.partition(b"\n---\n")[0].decode("utf-8", "replace")
    return _OWN.findall(front)


def read_page_line(line: str) -> str:
    """The title or the rationale of the line that stands for it."""
    return "" if line == _NONE else unescape_markdown(line)
