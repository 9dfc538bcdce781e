"""What a word or a line may hold, for whoever checks arguments; shared by the formats.

Each function gives None where all is well, else the broken rule as a text for people that starts
with what it is about: ``"handle: longer than 63 bytes"``.
"""

from __future__ import annotations

import re

# C0, DEL and C1 (with U+0085), the line and paragraph separators, and halves of surrogate pairs,
# which no UTF-8 file can hold.
_CONTROL = "[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]"
# Characters that are not seen, or that turn the direction of the others: a word that looks like
# another word must be that word.
_HIDDEN = "[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]"

RUN = 12
"""How many words in a row are an echo of the chat (spec: kernel section 3)."""

_LETTERS = r"[^\W_]+"

# Controls that part nothing: they are not seen, wherever they stand. The others are white space.
_SILENT = "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]"
# Characters without a shape of their own that Unicode counts among letters, or to no kind yet
# (Default_Ignorable_Code_Point, beside those of the kinds Cf and Mn).
_BLANK = "\u115f\u1160\u2065\ufff0-\ufff8\U000e0000-\U000e0fff"


def spoken(text: str) -> list[str]:
    """The words of a text as they are compared: what costs nothing to change makes no other word.

    A word is a row of letters and digits. Compatible forms, accents, characters that are not seen
    and case do not count, and any sign parts two words.

    >>> spoken("Don't **pa\u00adnic** -- it's \uff24-17, na\u00efve_caf\u00e9!")
    ['don', 't', 'panic', 'it', 's', 'd', '17', 'naive', 'cafe']
    >>> spoken("te\u0001a or co\u3164ffee")
    ['tea', 'or', 'coffee']
    """
    text = re.sub(_SILENT, "", text)
    if text.isascii():
        return re.findall(_LETTERS, text.lower())
    from unicodedata import category, normalize  # most texts do without

    text = normalize("NFKD", normalize("NFKD", text).casefold())
    # Marks (M*) are the accents, and the vowels of some scripts: both are parts of their word.
    unseen = {ord(c): None for c in set(text) if category(c) == "Cf" or category(c)[0] == "M"}
    return re.findall(_LETTERS, re.sub(f"[{_BLANK}]", "", text.translate(unseen)))


def has_control(text: str) -> bool:
    r"""Tell whether a character breaks a line or commands a terminal (``\t`` counts too)."""
    return not text.isprintable() and re.search(_CONTROL, text) is not None


def size(text: str) -> int:
    """Count the bytes of a text in UTF-8; half a surrogate pair counts as it would be written."""
    return len(text.encode("utf-8", "surrogatepass"))


def line_problem(text: str, what: str, limit: int) -> str | None:
    """Judge one line of text: not blank, no control characters, at most ``limit`` bytes."""
    if not text.strip():
        return f"{what}: empty"
    if has_control(text):
        return f"{what}: holds a line break or another control character; write it as one line"
    if size(text) > limit:
        return f"{what}: longer than {limit} bytes"
    return None


def word_problem(text: str, what: str, limit: int, forbidden: str) -> str | None:
    """Judge one word: a line without white space, hidden characters or any of ``forbidden``."""
    problem = line_problem(text, what, limit)
    if problem is not None:
        return problem
    if any(character.isspace() for character in text):
        return f"{what}: holds white space"
    if not text.isprintable() and re.search(_HIDDEN, text):
        return f"{what}: holds a character that is not seen"
    for character in text:
        if character in forbidden:
            return f"{what}: holds {character!r}"
    return None
