"""Words that no file may hold: a machine's paths, package registries, things put off, riddles."""

import pytest
from repo.rules import (
    PACKAGES,
    PLAIN_ENOUGH,
    ROOT,
    forbidden_words,
    old_words,
    riddles,
    sources,
    tracked,
)


def test_no_tracked_file_holds_a_forbidden_word() -> None:
    found = []
    for path in tracked():
        if path.startswith("tests/golden/"):
            continue  # stored input, kept as strangers wrote it
        try:
            text = (ROOT / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # no text, no words
        found += forbidden_words(path, text)
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "see " + "/work" + "/x",
        "HOME=" + "/root" + "/",
        "TO" + "DO: later",
        "# FIX" + "ME",
        "https://pypi" + ".org/project",
        "https://files." + "python" + "hosted" + ".org",
    ],
)
def test_each_is_seen(line: str) -> None:
    assert len(forbidden_words("ledger/log.py", line)) == 1


def test_a_temporary_path_is_refused_in_pages_only() -> None:
    line = "cd /tmp" + "/x"
    assert len(forbidden_words("docs/tutorial.md", line)) == 1
    assert forbidden_words("tests/core/test_x.py", line) == []


def test_harmless_neighbours_are_left_alone() -> None:
    assert (
        forbidden_words("docs/a.md", "net/wor" + "k/ framework/ tests/roo" + "t/ method todos")
        == []
    )


def test_no_module_speaks_in_riddles() -> None:
    files = sources(*PACKAGES)
    assert [line for path, text in files.items() for line in riddles(path, text)] == []
    assert PLAIN_ENOUGH.keys() <= files.keys()
    assert all(PLAIN_ENOUGH.values())


@pytest.mark.parametrize(
    "line",
    [
        '    """The same of an archive."""',
        '    """See the module."""',
        "# She is given the log",
        "what is said then, of whatever act",
        "A TEXT that looks like one goes behind a --.",
    ],
)
def test_a_riddle_is_seen(line: str) -> None:
    assert len(riddles("ledger/log.py", line)) == 1
    assert riddles(next(iter(PLAIN_ENOUGH)), line) == []


def test_plain_sentences_are_left_alone() -> None:
    assert riddles("ledger/log.py", "The other side, usher and Cherry are not named here.") == []


def test_words_of_riddles_are_counted() -> None:
    assert old_words({"a.py": "Whoever asks, to whom there is none", "b.py": "the author"}) == 3
