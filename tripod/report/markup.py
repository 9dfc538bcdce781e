r"""Writes what strangers said into HTML: escaped once, and with nothing in it that hides. Pure.

Every value of a template passes ``visible_markup``, as the environment's ``finalize``. So a
template cannot forget it, and no value is escaped twice. Such values stand in text, and never in
an attribute: there, templates write numbers, digests and words of ours alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape as html_escape
from typing import NamedTuple

from tripod.errors import BadArgumentError
from tripod.output import UNSAFE, escape_unsafe

try:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup, escape
except ImportError as missing:
    raise BadArgumentError(
        "a report needs the extra `report`: pip install 'tripod-ledger[report]'"
    ) from missing

_UNSAFE = re.compile(f"{UNSAFE}+")
_BOLD = re.compile(r"\*\*(.+?)\*\*", re.DOTALL)
_CODE = re.compile(r"``(.+?)``|`(.+?)`", re.DOTALL)


class Clipped(NamedTuple):
    """The beginning of a text, and how many characters of it are left out."""

    text: str
    left: int = 0


def clip(text: str, limit: int) -> Clipped:
    """Cut a text, where it is longer than ``limit`` characters.

    >>> clip("abcdef", 4)
    Clipped(text='abcd', left=2)
    """
    return Clipped(text[:limit], max(0, len(text) - limit))


def plural(number: int, one: str, many: str = "") -> str:
    """A number with its noun.

    >>> plural(1, "entry", "entries"), plural(2000, "page")
    ('1 entry', '2,000 pages')
    """
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def visible_markup(value: object) -> object:
    r"""A text as markup, in which control bytes and marks of direction are shown as codes.

    >>> visible_markup("<b>\x1b[31m")
    Markup('&lt;b&gt;<span class="c">\\x1b</span>[31m')
    """
    if type(value) is not str:
        return value
    if value.replace("\n", "").replace("\t", "").isprintable():
        return escape(value)
    parts, end = [], 0
    for match in _UNSAFE.finditer(value):
        codes = "".join(map(escape_unsafe, match[0]))
        parts.append(
            escape(value[end : match.start()]) + Markup('<span class="c">%s</span>') % codes
        )
        end = match.end()
    return Markup().join([*parts, escape(value[end:])])


def visible_html(text: str) -> str:
    """``visible_markup`` for markup that is put together by hand, as it is for each entry."""
    if text.isprintable():
        return html_escape(text)
    return str(visible_markup(text))


def trusted_markup(parts: Iterable[str]) -> Markup:
    """Markup of parts that are escaped already."""
    return Markup("".join(parts))  # noqa: S704 - what `visible_html` gave, within markup of ours


def help_markup(text: str) -> Markup:
    """Words of ours that may quote others, as markup in which a command is code.

    >>> help_markup("`tripod rebuild` writes it <anew>")
    Markup('<code>tripod rebuild</code> writes it &lt;anew&gt;')
    """
    words = _CODE.sub(lambda code: f"<code>{code[1] or code[2]}</code>", str(visible_markup(text)))
    return Markup(words)  # noqa: S704 - escaped above


def manual_markup(text: str) -> Markup:
    """The manual section of a check as markup: its paragraphs, words in bold, and code.

    >>> manual_markup("**Why.** See `verify`.")
    Markup('<p><b>Why.</b> See <code>verify</code>.</p>')
    """
    paragraphs = []
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        words = str(visible_markup(" ".join(paragraph.split())))
        words = _CODE.sub(lambda code: f"<code>{code[1] or code[2]}</code>", words)
        words = _BOLD.sub(r"<b>\1</b>", words)
        paragraphs.append(f"<p>{words}</p>")
    return Markup("".join(paragraphs))  # noqa: S704 - each paragraph was escaped above


def template_environment(folder: str) -> Environment:
    """The environment of the templates in a folder: strict, and each value is made visible."""
    return Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=visible_markup,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
