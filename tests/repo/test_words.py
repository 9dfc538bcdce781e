"""Words that no tracked file may hold: one machine's paths, package registries, things put off."""

import pytest
from repo.rules import ROOT, forbidden_words, tracked


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
