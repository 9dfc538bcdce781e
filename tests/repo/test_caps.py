"""A function has at most 60 lines, a module at most 700, or it says why: cut at a joint."""

import pytest
from repo.rules import FUNCTION_LINES, LONGER, MODULE_LINES, PACKAGES, over_caps, sources


def test_the_tree_keeps_the_caps() -> None:
    files = sources(*PACKAGES, "benchmarks", "torture")
    assert files
    assert [line for path, text in files.items() for line in over_caps(path, text)] == []


def test_at_the_cap_is_fine_and_one_more_is_not() -> None:
    body = "    pass\n"
    assert over_caps("a.py", "def f():\n" + body * (FUNCTION_LINES - 1)) == []
    assert over_caps("a.py", "def f():\n" + body * FUNCTION_LINES) == [
        "a.py:1: f has 61 lines, at most 60"
    ]
    assert over_caps("a.py", "\n" * MODULE_LINES) == []
    assert over_caps("a.py", "\n" * (MODULE_LINES + 1)) == ["a.py: 701 lines, at most 700"]


def test_methods_and_coroutines_count() -> None:
    long = "        pass\n" * FUNCTION_LINES
    assert len(over_caps("a.py", "class C:\n    async def f(self):\n" + long)) == 1


def test_what_may_be_longer_is_longer_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    files = sources(*PACKAGES, "benchmarks", "torture")
    reasons = dict(LONGER)
    LONGER.clear()
    try:
        over = [line for path, text in files.items() for line in over_caps(path, text)]
    finally:
        LONGER.update(reasons)
    assert len(over) == len(reasons)
    assert all(reason.strip() for reason in reasons.values())
    text = "def f():\n" + "    pass\n" * FUNCTION_LINES
    monkeypatch.setitem(LONGER, "a.py:f", "a table")
    assert over_caps("a.py", text) == []
