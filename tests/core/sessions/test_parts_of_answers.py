"""Protected text in the parts of one record, and written as JSON within a text."""

import json
from itertools import pairwise

import pytest
from session_specimens import STARTS

from tripod.verify.isolation.phrases import ProtectedText
from tripod.verify.sessions.claude_code import ClaudeCode
from tripod.verify.sessions.exposure import SessionExposures
from tripod.verify.sessions.items import Given, SessionRecord, text_of_parts

SECRET = "red fox jumps\nover a lazy\ndog and then\nit sleeps long\nin the sun\n"
WORDS = "\n".join(f"word{number}" for number in range(20))
LINES = 'import os\nprint("loading %s\\n", name_of_it)\nDIR=C:\\temp\\new\\things\\secret\n'


def _protected(text: str) -> ProtectedText:
    found = ProtectedText()
    found.add("secret.md", text)
    return found


def _shown(*texts: str) -> bool:
    """Whether the secret is seen in the texts of one record, judged at once or one by one."""
    found = set()
    for together in (0, 16_384):
        one = SessionExposures(None, _protected(SECRET))
        one._batches._TOGETHER = together
        for text in texts:
            one.add(Given("paste", 3, 0, text))
        one.end()
        found.add(bool(one.found))
    assert len(found) == 1
    return found.pop()


def test_texts_that_meet_within_a_word_and_then_at_a_blank_are_one_text() -> None:
    cuts = [0, 17, 31, 38, None]
    assert _shown(*(SECRET[begin:end] for begin, end in pairwise(cuts)))
    assert _shown("so", SECRET[:17], "", SECRET[17:38], "", SECRET[38:])


def test_texts_may_meet_within_a_character_as_json_has_it_or_the_number_of_a_line() -> None:
    text = json.dumps(SECRET)
    at = text.index("\\n") + 1
    assert _shown(text[:at], text[at:])
    numbered = "".join(f"{9 + n}: {line}\n" for n, line in enumerate(SECRET.splitlines()))
    at = numbered.index("10") + 2
    assert _shown(numbered[:at], numbered[at:])


def test_the_parts_of_an_answer_are_one_text() -> None:
    cuts = [0, 17, 31, 38, None]
    parts = [SECRET[begin:end] for begin, end in pairwise(cuts)]
    for texts in (parts, [parts[0], "", *parts[1:]], SECRET.splitlines()):
        assert [*_protected(SECRET).found_in(text_of_parts(texts))] == ["secret.md"]
        content: list[dict[str, str]] = []
        for kind in ("output_text", "text"):
            content = [{"type": kind, "text": text} for text in texts]
            assert [*_protected(SECRET).found_in(text_of_parts({"content": content}))]
        block = {"type": "tool_result", "tool_use_id": "c1", "content": content}
        record = {**STARTS["claude-code"][0], "message": {"role": "user", "content": [block]}}
        one = SessionExposures(None, _protected(SECRET))
        for item in ClaudeCode().read(SessionRecord(1, 0, record)):
            one.add(item)
        one.end()
        assert one.found


@pytest.mark.parametrize(
    ("secret", "text"),
    [
        (WORDS, "\n".join(f"{n}\t{word}" for n, word in enumerate(WORDS.split()))),
        (WORDS, "\n".join(f"\x1b[32m{n}\x1b[m:{word}" for n, word in enumerate(WORDS.split()))),
        (LINES.splitlines()[1], LINES),
        (LINES.splitlines()[2], LINES),
    ],
)
def test_what_json_writes_in_a_text_may_have_numbers_colours_and_backslashes(
    secret: str, text: str
) -> None:
    assert [*_protected(secret).found_in(json.dumps(text))] == ["secret.md"]
    assert [*_protected(secret).found_in("so it is\n" + json.dumps({"a": text}))]


def test_the_name_before_the_number_of_a_line_may_have_a_drive() -> None:
    text = "\n".join(f"C:\\w\\a.py:{n}:{word}" for n, word in enumerate(WORDS.split()))
    assert [*_protected(WORDS).found_in(text)] == ["secret.md"]
