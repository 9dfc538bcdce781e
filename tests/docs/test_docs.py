"""Documentation that can lie is executed: blocks of pages run, links lead somewhere."""

from pathlib import Path

import pytest
from docs.pages import ROOT, PageError, Session, all_pages, broken_links, executed_pages, fits


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", executed_pages(), ids=_name)
def test_what_a_page_shows_is_what_happens(page: Path, tmp_path: Path) -> None:
    Session(tmp_path).follow(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", all_pages(), ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    assert broken_links(page.read_text(encoding="utf-8"), page.parent) == []


def test_a_session_keeps_folder_files_and_names(tmp_path: Path) -> None:
    page = """
```console
$ mkdir team && cd team
$ printf 'a\\nb\\n' > names; cat names
a
b
$ cat <<'END' | tr a-z A-Z
> one
> END
ONE
```

```python
from pathlib import Path
names = Path("names").read_text().split()
```

```text
$ never run
```

```python
assert names == ["a", "b"]
```

```console
$ ls; (exit 3); echo "exit $?"
...
exit 3
```
"""
    assert Session(tmp_path).follow(page) == 4


@pytest.mark.parametrize(
    ("page", "complaint"),
    [
        ("```console\n$ echo a\nb\n```", "line 2: `echo a`"),
        ("```console\n$ true\n$ false\n```", "line 3: `false` ended with 1"),
        ("```console\n$ echo more\n```", "the command says\nmore"),
        ("```console\nfree text\n```", "line 2: a console block starts with"),
        ("```python\nassert 1 == 2\n```", "line 1: the python block raised AssertionError"),
    ],
)
def test_a_page_that_lies_is_caught(page: str, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(PageError) as caught:
        Session(tmp_path).follow(page)
    assert complaint in str(caught.value)


def test_three_dots_stand_for_anything_and_nothing_else_does() -> None:
    assert fits("at ... o'clock\n...\nend", "at 12 o'clock\n1\n2\nend\n")
    assert not fits("a.c", "abc")
    assert not fits("a", "a\nb")


def test_a_broken_link_is_named(tmp_path: Path) -> None:
    (tmp_path / "there.md").touch()
    page = "[a](there.md#part) [b](gone.md) ![c](gone.png) [d](https://example.org) [e](#here)"
    assert broken_links(page, tmp_path) == ["gone.md", "gone.png"]
