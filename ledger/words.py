"""The words of a text, as two texts are compared: an echo of the chat is a run of them. Pure.

It stands alone: what judges a session needs no projection, and projections count words, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

RUN = 12
"""How many words in a row are an echo of the chat (spec: kernel section 3)."""

_ASCII = bytes(range(128))
_PLAIN = bytes(
    byte if byte >= 128 else ord(chr(byte).lower()) if chr(byte).isalnum() else ord(" ")
    for byte in range(256)
)
"""For each byte of UTF-8 the one that it is compared as: a small letter, or what parts words."""

# Controls that do not part words: they are never seen. The others are white space.
_SILENT = "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]"
_SILENT_ASCII = "".join(re.findall(_SILENT, _ASCII.decode())).encode()
# Characters without a shape of their own that Unicode counts among letters, or to no kind yet
# (Default_Ignorable_Code_Point, beside those of the kinds Cf and Mn).
_BLANK = "\u115f\u1160\u2065\ufff0-\ufff8\U000e0000-\U000e0fff"


def words_of_text(text: str) -> list[str]:
    """The words of a text as they are compared: what costs nothing to change makes no other word.

    A word is a row of letters and digits. Compatible forms, accents, characters that are not seen
    and case do not count, and any sign parts two words.

    >>> words_of_text("Don't **pa\u00adnic** -- it's \uff24-17, na\u00efve_caf\u00e9!")
    ['don', 't', 'panic', 'it', 's', 'd', '17', 'naive', 'cafe']
    >>> words_of_text("te\u0001a or co\u3164ffee")
    ['tea', 'or', 'coffee']
    """
    return words_in_bytes(comparable_text(text)).decode().split()


def words_in_bytes(text: str) -> bytes:
    """The words of a comparable text in UTF-8, with blanks between them."""
    return text.encode().translate(_PLAIN, _SILENT_ASCII)


def comparable_text(text: str, odd: str | None = None) -> str:
    """A text whose words are the same, without what makes a text slow to split into words.

    ``odd`` are all characters in it that are not of ASCII, where they are known.
    """
    if "\x1b" in text:
        text = without_escapes(text)
    return text if text.isascii() else _without_signs(text, odd_in(text) if odd is None else odd)


def without_escapes(text: str) -> str:
    r"""A text without what makes a terminal colour it, move in it, or link from it.

    >>> without_escapes("\x1b[1;31mred\x1b[m and \x1b]8;;file:///a\x1b\\a link\x1b]8;;\x07")
    'red and a link'
    """
    return _compiled(_ESCAPES).sub("", text) if "\x1b" in text else text


# Patterns are texts: compiled here, they would cost `scribe log` a millisecond for nothing.
_ESCAPES = (
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\]8;[^;\s]*;[^\s\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-B]|[=>78])"
)


@lru_cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """The pattern of a text; each is kept, and found faster than by ``re``."""
    return re.compile(pattern)


def readings_of(text: str) -> Iterator[str]:
    r"""Other ways to read a text with characters that are not seen: as blanks, and as erasing.

    >>> list(readings_of("tea\0or")), list(readings_of("tea x\b"))
    (['tea or'], ['tea x ', 'tea '])
    """
    rest = odd_in(text)
    if is_hidden(rest):
        yield _compiled(_HIDDEN).sub(" ", text)
        if "\b" in rest:
            kept: list[str] = []
            for char in text:
                if char != "\b":
                    kept.append(char)
                elif kept:
                    kept.pop()
            yield "".join(kept)


def odd_in(text: str) -> str:
    """The characters of a text that are neither signs nor blanks of ASCII."""
    return text.encode(*_CODE).translate(None, _SEEN).decode(*_CODE)


def is_hidden(odd: str) -> bool:
    """Whether some of such characters are not seen, so that a text has other readings."""
    return odd != "" and _compiled(_HIDDEN).search(odd) is not None


_CODE = "utf-8", "surrogatepass"
_SEEN = _ASCII.translate(None, _SILENT_ASCII)
_HIDDEN = f"{_SILENT[:-1]}\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]"


def _without_signs(text: str, odd: str) -> str:
    """A text with each character beyond ASCII as it is compared: as letters, a blank, or nothing.

    Most texts have few such characters. To replace one after the other takes a fraction of the
    time of looking each of all characters up.
    """
    changed = {
        char: to for char in set(odd) if char > "\x7f" and (to := _compared_as(char)) != char
    }
    if len(changed) <= _FEW and all(map(str.isascii, changed.values())):
        for char, to in changed.items():
            text = text.replace(char, to)
        return text
    return re.sub("[^\x00-\x7f]", lambda found: changed.get(found[0], found[0]), text)


_FEW = 24


@lru_cache(maxsize=4096)
def _compared_as(char: str) -> str:
    from unicodedata import category, normalize  # most texts do without

    if re.match(_SILENT, char):
        return ""
    text = normalize("NFKD", normalize("NFKD", char).casefold())
    # Marks (M*) are the accents, and the vowels of some scripts: both are parts of their word.
    seen = (c for c in text if category(c) != "Cf" and category(c)[0] != "M")
    text = re.sub(f"[{_BLANK}]", "", "".join(seen))
    return re.sub(r"[^\x00-\x7f\w]", " ", text)
