"""What ``import tripod`` offers: the same names to programs, type checkers and readers; lazily."""

import ast
import importlib
import inspect
import json
import os
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from docs.reference_parts import FACES
from repo.rules import PACKAGES, sources

import tripod
from tripod.errors import NoLedgerError, NoTeamError, TripodError

ALL = pytest.mark.parametrize("face", FACES, ids=lambda face: face.__name__)


def _declared(face: ModuleType) -> dict[str, object]:
    """What the imports under ``TYPE_CHECKING`` name, each with the thing at that place."""
    (guard,) = (
        node
        for node in ast.parse(inspect.getsource(face)).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    found: dict[str, object] = {}
    for node in guard.body:
        assert isinstance(node, ast.ImportFrom)
        assert node.module
        for alias in node.names:
            if node.module == face.__name__:
                found[alias.name] = importlib.import_module(f"{node.module}.{alias.name}")
            else:
                found[alias.name] = getattr(importlib.import_module(node.module), alias.name)
    return found


@ALL
def test_programs_get_what_type_checkers_see(face: ModuleType) -> None:
    declared = _declared(face)
    names = [name for name in face.__all__ if name != "__version__"]
    assert sorted(names) == sorted(declared)
    for name in names:
        assert getattr(face, name) is declared[name], name
    assert set(face.__all__) <= set(dir(face))


@ALL
def test_no_name_is_one_of_a_module_that_would_replace_it(face: ModuleType) -> None:
    modules = {module.name for module in pkgutil.iter_modules(face.__path__)}
    assert [
        name
        for name in face.__all__
        if name in modules and not isinstance(getattr(face, name), ModuleType)
    ] == []


@ALL
def test_a_name_that_is_not_there_is_an_attribute_error(face: ModuleType) -> None:
    with pytest.raises(AttributeError, match=rf"{face.__name__!r} has no attribute 'sned'"):
        face.sned  # noqa: B018 - the look is the test


@ALL
def test_all_that_is_public_is_documented_and_typed(face: ModuleType) -> None:
    assert inspect.getdoc(face)
    for name in face.__all__:
        thing = getattr(face, name)
        if isinstance(thing, str | ModuleType) or issubclass(type(thing), type(TripodError)):
            continue
        assert inspect.getdoc(thing), name
        signature = inspect.signature(thing)
        for parameter in signature.parameters.values():
            assert parameter.annotation is not parameter.empty, (name, parameter.name)
        assert signature.return_annotation is not signature.empty, name


def _loaded(program: str) -> set[str]:
    """The modules that a program loads in a fresh process."""
    begin = "import json, sys; before = set(sys.modules)"
    end = "print(json.dumps(sorted(set(sys.modules) - before)))"
    done = subprocess.run(
        [sys.executable, "-c", f"{begin}\n{program}\n{end}"],
        check=True,
        capture_output=True,
        text=True,
    )
    return set(json.loads(done.stdout))


def test_the_import_alone_loads_nothing_else() -> None:
    assert _loaded("import tripod") - {"__future__"} == {"tripod", "tripod.face"}


def test_a_module_does_not_load_its_neighbours_in_the_package() -> None:
    loaded = _loaded("import tripod.bus.events")
    assert "tripod.bus" in loaded
    assert "tripod.bus.reader" not in loaded
    assert "tripod.bus.reader" in _loaded("import tripod\ntripod.bus.wait_pending")


# Errors ----------------------------------------------------------------------------------------


def _exceptions() -> Iterator[type[Exception]]:
    for path, text in sources(*PACKAGES).items():
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef) and node.name.endswith("Error"):
                place = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
                module = importlib.import_module(f"tripod.{place.removeprefix('tripod.')}")
                yield getattr(module, node.name)


def test_all_errors_are_of_one_tree() -> None:
    errors = [error for error in _exceptions() if not error.__name__.startswith("_")]
    assert len(errors) > 20
    assert [error for error in errors if not issubclass(error, TripodError)] == []


# A team ----------------------------------------------------------------------------------------


@pytest.fixture
def cafe(tmp_path: Path) -> Path:
    folder = tmp_path / "cafe"
    folder.mkdir()
    tripod.init(str(folder))
    return folder


def test_a_team_is_found_by_its_project_or_its_own_directory(
    cafe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = str(cafe / ".nbs")
    monkeypatch.chdir(cafe.parent)
    for path in (cafe, str(cafe), cafe / ".nbs", "cafe"):
        with tripod.Team(path) as team:
            assert os.path.realpath(team.root) == os.path.realpath(root)
    (cafe / "below").mkdir()
    monkeypatch.chdir(cafe / "below")
    monkeypatch.delenv("TRIPOD_LEDGER", raising=False)
    with tripod.open_team() as team:
        assert os.path.realpath(team.root) == os.path.realpath(root)
    with tripod.open_team(cafe) as team:
        assert os.path.realpath(team.root) == os.path.realpath(root)


def test_a_ledger_of_another_program_beside_the_team_is_left_alone(cafe: Path) -> None:
    (cafe / "ledger.db").write_bytes(b"somebody's accounts")
    with tripod.Team(cafe) as team:
        assert team.root == str(cafe / ".nbs")


def test_a_folder_without_a_team_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(NoTeamError, match=r"no ledger in .*: `tripod init .*` makes one"):
        tripod.Team(tmp_path)
    (tmp_path / ".nbs").mkdir()
    with pytest.raises(NoLedgerError, match="`tripod init` makes one"):
        tripod.Team(tmp_path / ".nbs")
    assert not list((tmp_path / ".nbs").iterdir())


def test_entries_and_head_are_read(cafe: Path) -> None:
    with tripod.Team(cafe) as team:
        tripod.chat.create(team, "live")
        before = team.head()
        message = tripod.chat.send(team, "live", "ann", "Tea?")
        said, event = team.entries(before.size)
        assert (said.seq, said.stream, said.actor) == (message.seq, "chat/live", "ann")
        assert team.head().size == event.seq + 1 == before.size + 2
        assert [entry.seq for entry in team.entries(1, 3)] == [1, 2]
        assert [message.text for message in tripod.chat.messages(team, "live")] == ["Tea?"]
