r"""Makes hostile text harmless for a terminal and for one line: the only way into a report. Pure.

Control bytes, characters that turn the direction of text, and those that are not seen come out as
``\x1b``, ``\u202e``; so a finding cannot imitate another, hide, or command the reader's terminal.

>>> escape("red\x1b[31m\u202etxt")
'red\\x1b[31m\\u202etxt'
"""

from __future__ import annotations

import re

_HOSTILE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def escape(text: str) -> str:
    """Write ``text`` so that it stays on its line and shows what it is."""
    return _HOSTILE.sub(_code, text)


def shorten(text: str, limit: int = 160) -> str:
    """Cut a text for one line of evidence."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _code(match: re.Match[str]) -> str:
    point = ord(match[0])
    if point < 0x100:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"
