"""The rule of the echo, held against a naive reading of the same rule."""

import re
from unicodedata import category, normalize

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tripod.ledger.words import RUN, without_escapes
from tripod.ledger.words import words_of_text as words_of
from tripod.verify.isolation.phrases import (
    LONG,
    LineIndex,
    PhraseIndex,
    VisiblePhrases,
    encoded_lines_in,
    phrase_hashes,
)

WORDS = st.lists(st.sampled_from(["tea", "pot", "cup"]), max_size=40)


def naive(one: list[str], other: list[str], known: list[str]) -> set[str]:
    """Runs of words that stand in two texts, and not in a third."""
    rows = [
        {" ".join(words[at : at + RUN]) for at in range(len(words) - RUN + 1)}
        for words in (one, other, known)
    ]
    return (rows[0] & rows[1]) - rows[2]


@settings(max_examples=300, deadline=None)
@given(one=WORDS, other=WORDS, known=WORDS)
def test_it_finds_what_a_naive_reading_finds(
    one: list[str], other: list[str], known: list[str]
) -> None:
    held, seen = PhraseIndex(), VisiblePhrases()
    seen.add(5, " ".join(known))
    held.add(0, one, seen.before(6))
    assert {run for _, run in held.find(other)} == naive(one, other, known)


@settings(max_examples=300, deadline=None)
@given(texts=st.lists(WORDS, max_size=4), begin=WORDS, end=WORDS, at=st.integers(0, 40))
def test_a_part_of_any_held_text_is_found(
    texts: list[list[str]], begin: list[str], end: list[str], at: int
) -> None:
    """Most texts repeat none of another: here each holds a part of one, between other words."""
    held = PhraseIndex()
    for number, text in enumerate(texts):
        held.add(number, text)
    part = texts[0][at : at + RUN + 2] if texts else []
    words = [*begin, *part, *end]
    assert {run for _, run in held.find(words)} == set().union(
        *(naive(text, words, []) for text in texts)
    )


LINES = st.lists(
    st.lists(st.sampled_from(["tea", "pot", "marmalade", "x" * LONG]), max_size=RUN + 2).map(
        " ".join
    ),
    max_size=5,
)


@settings(max_examples=300, deadline=None)
@given(lines=LINES, others=LINES)
def test_short_lines_are_found_where_a_naive_reading_finds_them(
    lines: list[str], others: list[str]
) -> None:
    held = LineIndex()
    held.add(0, "\n".join(lines))
    words = words_of("\n".join(others))
    short = {line for line in lines if len(line) >= LONG and len(line.split()) < RUN}
    text = f" {' '.join(words)} "
    assert {line for _, line in held.find(words)} == {line for line in short if f" {line} " in text}


def test_twelve_words_are_an_echo_and_eleven_are_none() -> None:
    words = [f"w{number}" for number in range(40)]
    held = PhraseIndex()
    held.add(7, words)
    assert list(held.find(["x", *words[3:14], "x", *words[15:26], "x"])) == []
    assert list(held.find(["x", *words[3:15], "x"])) == [(7, " ".join(words[3:15]))]


def test_a_run_counts_for_the_first_text_that_has_it() -> None:
    words = [f"w{number}" for number in range(12)]
    held = PhraseIndex()
    held.add(1, words)
    held.add(2, [*words, "more"])
    assert {number for number, _ in held.find(words)} == {1}


def test_what_became_known_later_was_not_known() -> None:
    words = [f"w{number}" for number in range(12)]
    known = VisiblePhrases()
    known.add(4, " ".join(words))
    (run,) = phrase_hashes(words)
    assert known.before(5)(run)
    assert not known.before(4)(run)


def test_a_run_across_two_pieces_of_one_text_is_known() -> None:
    words = [f"w{number}" for number in range(20)]
    known = VisiblePhrases()
    known.add(1, " ".join(words[:10]))
    known.add(2, " ".join(words[10:]), follows=True)
    assert all(known.before(3)(run) for run in phrase_hashes(words))
    apart = VisiblePhrases()
    apart.add(1, " ".join(words[:10]))
    apart.add(2, " ".join(words[10:]))
    assert not any(apart.before(3)(run) for run in phrase_hashes(words))


@settings(max_examples=200, deadline=None)
@given(one=WORDS, known=WORDS)
def test_the_longest_row_that_is_not_known(one: list[str], known: list[str]) -> None:
    rows = {" ".join(known[at : at + RUN]) for at in range(len(known) - RUN + 1)}
    covered = [False] * len(one)
    for at in range(len(one) - RUN + 1):
        if " ".join(one[at : at + RUN]) in rows:
            covered[at : at + RUN] = [True] * RUN
    free = "".join("x" if is_known else "." for is_known in covered)
    seen = VisiblePhrases()
    seen.add(1, " ".join(known))
    assert PhraseIndex().add(0, one, seen.before(2)) == max(map(len, free.split("x")))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't!  **panic** -- it's D-17.", ["don", "t", "panic", "it", "s", "d", "17"]),
        ("> quoted\r\n> text", ["quoted", "text"]),
        ("a_b _c_ src/x.py:3", ["a", "b", "c", "src", "x", "py", "3"]),
        ("\uff34\uff25\uff21 \ufb01t \u2460", ["tea", "fit", "1"]),  # other forms of a character
        ("te\u00ada t\u200bea \ufefftea \u2066tea\u2069", ["tea"] * 4),  # what is not seen
        ("th\u00e9 the\u0301 TH\u00c9 caf\u00e9", ["the", "the", "the", "cafe"]),
        ("\u0130stanbul istanbul", ["istanbul", "istanbul"]),
        ("one\u2014two/three,four\u00a0five", ["one", "two", "three", "four", "five"]),
        ("\U0001f130\U0001f131 tea", ["ab", "tea"]),
        ("STRASSE Straße", ["strasse", "strasse"]),
        ("— … ---", []),
        ("", []),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert words_of(text) == words


def simple_words(text: str) -> list[str]:
    """The words of a text by the rule alone: every character is looked up, and none is skipped."""
    text = without_escapes(text)
    text = re.sub("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]", "", text)
    text = normalize("NFKD", normalize("NFKD", text).casefold())
    seen = (char for char in text if category(char) != "Cf" and category(char)[0] != "M")
    blank = "[\u115f\u1160\u2065\ufff0-\ufff8\U000e0000-\U000e0fff]"
    return re.findall(r"[^\W_]+", re.sub(blank, "", "".join(seen)))


@settings(max_examples=500, deadline=None)
@given(
    st.text(
        st.one_of(st.characters(), st.sampled_from("aZ 1_\n\x00\x1c\u0301\u2192ßİ½")), max_size=60
    )
)
def test_words_are_those_of_the_simple_rule(text: str) -> None:
    assert words_of(text) == simple_words(text)


def test_each_character_makes_the_words_of_the_simple_rule() -> None:
    for first in range(0, 0x30000, 64):
        text = " ".join(f"a{chr(code)}b" for code in range(first, first + 64))
        assert words_of(text) == simple_words(text)


def test_a_part_of_a_text_has_words_or_none() -> None:
    assert words_of("-- a --"[0:7])
    assert not words_of("-- a --"[4:7])


def test_a_line_of_a_file_is_found_as_it_stands() -> None:
    line = "YWxleHwxNzcwOTA0ODAwOiBoZWxsbw=="
    assert len(line) >= LONG
    held = PhraseIndex()
    assert not held.codes
    text = f"I read: {line}, and no more"
    held.add(3, words_of(text), codes=encoded_lines_in(text))
    assert held.codes
    assert held.find_code(line) == 3
    assert held.find_code(line[:-6] + "Xbw==") is None
    assert held.find_code("two words") is None
    joined = PhraseIndex()
    joined.add(4, [], codes=encoded_lines_in(f"read=[{line}];"))
    assert joined.find_code(line) == 4


def test_the_time_is_linear_in_signs_without_words() -> None:
    text = "a" + "." * 200_000 + " b" + "-" * 200_000
    assert words_of(text) == ["a", "b"]
    assert re.search("[ab]", text)
