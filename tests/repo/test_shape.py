"""Rules on folders, modules, classes, names and SQL, each tried on a small offending sample."""

import re

import pytest
from repo.rules import (
    CLASS_ATTRIBUTES,
    FOLDER_MODULES,
    OWN_TABLES,
    ROOT,
    SHORT_LINES,
    SHORTER,
    SQL_ALLOWED,
    WIDER,
    crowded_folders,
    foreign_sql,
    glossary_words,
    homonyms,
    is_short,
    lists_its_names,
    sources,
    total_lines,
    unlisted_modules,
    wide_classes,
)


def test_lines_of_all_files_count() -> None:
    assert total_lines({"a.py": "x = 1\ny = 2\n", "b.py": "z = 3"}) == 3


@pytest.mark.parametrize("folder", ["tripod", "tripod/bus"])
def test_a_folder_with_too_many_modules_is_seen_and_its_face_is_not_counted(folder: str) -> None:
    paths = [f"{folder}/m{number}.py" for number in range(FOLDER_MODULES)]
    paths += [f"{folder}/__init__.py", f"{folder}/inner/one.py"]
    assert crowded_folders(paths) == {}
    assert crowded_folders([*paths, f"{folder}/more.py"]) == {folder: FOLDER_MODULES + 1}


def test_a_registry_may_have_any_number_of_modules() -> None:
    many = range(FOLDER_MODULES + 1)
    folders = ("verify/checks", "ledger/kinds", "tripod/cli", "tripod/cli/inner")
    assert crowded_folders(f"{folder}/m{n}.py" for folder in folders for n in many) == {}


def test_a_short_module_is_seen_but_not_a_face_or_a_member_of_a_registry(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert is_short("tripod/a.py", "\n" * (SHORT_LINES - 1))
    assert not is_short("tripod/a.py", "\n" * SHORT_LINES)
    for path in ("tripod/__init__.py", "verify/checks/a.py", "ledger/kinds/a.py"):
        assert not is_short(path, "")
    monkeypatch.setitem(SHORTER, "tripod/a.py", "nothing belongs beside it")
    assert not is_short("tripod/a.py", "")


def test_fields_and_what_methods_assign_are_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = "".join(f"    f{number}: int\n" for number in range(CLASS_ATTRIBUTES - 2))
    text = (
        f"class C:\n    A: ClassVar[int] = 1\n    B = 2\n{fields}"
        "    def m(self, other):\n"
        "        self.x, other.z = 1, 2\n"
        "        self.f0 = self.unset\n"
        "        with other as self.y:\n            self.y += 1\n"
    )
    assert wide_classes("a.py", text) == {}
    wider = f"{text}            self.z: int = 1\n"
    assert wide_classes("a.py", wider) == {"a.py:C": CLASS_ATTRIBUTES + 1}
    monkeypatch.setitem(WIDER, "a.py:C", "a record of a format with so many fields")
    assert wide_classes("a.py", wider) == {}


def test_a_public_name_shared_by_two_classes_is_seen() -> None:
    files = {
        "ledger/a.py": "class Held: ...\nclass _Own: ...\nclass Once: ...",
        "verify/b.py": "class Held: ...\nclass _Own: ...\ndef f():\n    class Once: ...",
    }
    assert homonyms(files) == {"Held": ["ledger/a.py", "verify/b.py"]}


def test_a_module_whose_name_the_glossary_lacks_is_seen() -> None:
    words = glossary_words(
        "| **seal** | a signed head |\n| **look-alike** | x |\n| **child** | y |\n"
    )
    assert words == ["seal", "look-alike", "child"]
    listed = [
        "ledger/seal.py",
        "verify/look_alikes.py",
        "verify/children.py",
        "ledger/child_seals.py",
    ]
    exempt = ["ledger/kept/__init__.py", "verify/checks/usual.py", "ledger/kinds/usual.py"]
    others = {"ledger/sealing.py": "sealing", "verify/seal_usual.py": "seal_usual"}
    assert unlisted_modules([*listed, *exempt, *others], words) == others


def test_the_glossary_defines_each_word_once_in_the_order_of_the_alphabet() -> None:
    page = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    words = glossary_words(page)
    assert words
    assert len(set(words)) == len(words)
    for section in page.split("\n## ")[1:]:
        assert glossary_words(section) == sorted(glossary_words(section))


@pytest.mark.parametrize(
    "text", ["__all__ = ['f']", "__all__: list[str] = []", "__all__ += other.__all__"]
)
def test_all_is_seen_outside_a_package_face(text: str) -> None:
    assert lists_its_names("ledger/a.py", text)
    assert not lists_its_names("ledger/kinds/__init__.py", text)
    assert not lists_its_names("ledger/a.py", "names = other.__all__")


def test_the_tables_are_those_of_the_schema() -> None:
    (schema,) = [text for path, text in sources("ledger").items() if path.endswith("/schema.py")]
    assert set(re.findall(r"CREATE TABLE (\w+)", schema)) == set(OWN_TABLES)


@pytest.mark.parametrize(
    "text",
    [
        "db.execute('SELECT id FROM entries WHERE seq = ?', (seq,))",
        "SQL = 'SELECT 1 FROM lines JOIN blobs ON x = y'",
        "SQL = 'SELECT number'\\\n    ' FROM main.nodes'",
        "SQL = f'UPDATE {x}'\nOTHER = f'SELECT {columns} FROM entries'",
        "SQL = 'SELECT vkey FROM keys AS k, head WHERE k.seq < head.size'",
        "SQL = 'UPDATE head SET files = size'",
        "SQL = 'INSERT OR IGNORE INTO\\n    \"unswept\" VALUES (?)'",
        "SQL = 'PRAGMA table_info(entries)'",
        "SQL = 'CREATE INDEX i ON entries (kind)'",
    ],
)
def test_sql_on_the_ledgers_tables_is_seen(text: str) -> None:
    assert len(foreign_sql("tripod/a.py", text)) == 1
    for pattern in SQL_ALLOWED:
        assert foreign_sql(pattern.replace("*", "a.py"), text) == []


def test_other_tables_words_and_docstrings_are_left_alone() -> None:
    text = (
        '"""SELECT id FROM entries."""\n'
        "class C:\n    'FROM head'\n    def f():\n        'UPDATE head'\n"
        "SQL = 'SELECT head FROM entries_seen'\n"
        "HELP = 'verify entries from head to tail'\n"
    )
    assert foreign_sql("tripod/a.py", text) == []
