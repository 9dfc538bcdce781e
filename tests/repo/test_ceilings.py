"""The tree stays within the figures and tables of ``ceilings.py``, which may only shrink."""

import ast
from functools import cache

import pytest
from repo import ceilings
from repo.rules import PACKAGES, SHORTER, WIDER, measured_numbers, measured_sets, risen, sources

_files = cache(lambda: sources(*PACKAGES))
_numbers = cache(lambda: measured_numbers(_files()))
_sets = cache(lambda: measured_sets(_files()))


def test_no_figure_is_above_its_ceiling() -> None:
    assert _files()
    over = {
        what: f"{number:g}, at most {ceilings.NUMBERS[what].ceiling:g}"
        for what, number in _numbers().items()
        if number > ceilings.NUMBERS[what].ceiling
    }
    assert over == {}, over


def test_each_figure_has_a_ceiling_a_target_and_a_source() -> None:
    assert ceilings.NUMBERS.keys() == _numbers().keys()
    assert all(ceiling.source for ceiling in ceilings.NUMBERS.values())


@pytest.mark.parametrize("table", measured_sets({}))
def test_no_table_needs_a_new_entry(table: str) -> None:
    joined = risen(_sets()[table], getattr(ceilings, table))
    assert joined == [], "\n".join(joined)


def test_each_permanent_exception_exists_and_has_a_reason() -> None:
    classes = {
        f"{path}:{node.name}"
        for path, text in _files().items()
        if any(name.startswith(f"{path}:") for name in WIDER)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef)
    }
    assert SHORTER.keys() <= _files().keys()
    assert WIDER.keys() <= classes
    assert all(reason.strip() for reason in [*SHORTER.values(), *WIDER.values()])


def test_a_new_entry_and_a_higher_number_are_named() -> None:
    assert risen({"a.py": ["x"], "b.py": ["y"]}, frozenset({"a.py"})) == ["b.py: ['y']"]
    assert risen({"a": 3, "b": 2}, {"a": 2, "b": 2}) == ["a: 3"]
    assert risen({"A": ["a.py", "b.py"]}, {"A": 2}) == []
    assert risen({"A": ["a.py", "b.py", "c.py"]}, {"A": 2}) == ["A: ['a.py', 'b.py', 'c.py']"]
    assert risen({}, {"gone": 2}) == []
