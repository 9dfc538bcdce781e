"""Every module says what it is for; everything public is documented and typed."""

from repo.rules import PACKAGES, ROOT, modules_without_a_row, sources, undocumented


def test_the_tree_is_documented_and_typed() -> None:
    files = sources(*PACKAGES, "benchmarks", "torture")
    assert files
    assert [line for path, text in files.items() for line in undocumented(path, text)] == []


def test_the_glossary_says_what_each_module_holds() -> None:
    page = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    assert modules_without_a_row(page, sources(*PACKAGES)) == []
    row = next(line for line in page.splitlines() if line.startswith("| `peers/refs` |"))
    paths = [*sources(*PACKAGES), "verify/new.py"]
    paths.remove("verify/peers/seals.py")
    assert modules_without_a_row(page.replace(row, f"{row}\n{row}"), paths) == [
        "verify/new.py: no row",
        "verify/peers/seals.py: no such module",
        "verify/peers/refs.py: two rows",
    ]


def test_each_omission_is_named() -> None:
    text = "def f(a, *b, c: int, **d):\n    pass\nclass C:\n    def m(self) -> None: ...\n"
    assert undocumented("a.py", text) == [
        "a.py: the module has no docstring",
        "a.py:1: f has no docstring",
        "a.py:1: f leaves a without a type",
        "a.py:1: f leaves b without a type",
        "a.py:1: f leaves d without a type",
        "a.py:1: f leaves its result without a type",
        "a.py:3: C has no docstring",
        "a.py:4: m has no docstring",
    ]


def test_private_magic_and_overloaded_things_need_no_docstring() -> None:
    text = (
        '"""Doc."""\n'
        "def _f(a): ...\n"
        'class C:\n    """Doc."""\n    def __len__(self) -> int: ...\n'
        "    @overload\n    def g(self) -> int: ...\n"
    )
    assert undocumented("a.py", text) == []
