"""The wheel holds what users need, and nothing of the workshop."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from repo.rules import PACKAGES, ROOT, sources, tracked

_DEMO = {
    "nbs-team.tar.gz": "tests/golden",
    "nbs-team.README.md": "tests/golden",
    "clones-852efc6.tar.xz": "tests/golden",
    "clones-852efc6.README.md": "tests/golden",
    "pythia.py": "examples",
    "nova_panel.py": "examples",
}

_TOOLS = ("audit_bundle.py", "audit_export.py")
"""What each bundle of an audit gets a copy of."""

_MODULES = ("tripod", "tripod.ledger", "tripod.projections", "tripod.verify")

_IMPORT_FROM = """
import importlib, sys
sys.path.insert(0, sys.argv[1])
for name in sys.argv[2:]:
    module = importlib.import_module(name)
    assert module.__file__.startswith(sys.argv[1]), module.__file__
"""


def _installed(path: str) -> str:
    """Where a file of a package goes: all import packages are below ``tripod``."""
    return path if path.startswith("tripod/") else f"tripod/{path}"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of this tree, built as an installer builds it but without the network."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_the_four_packages_and_nothing_else(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    kept = {_installed(path) for path in tracked() if path.split("/")[0] in PACKAGES}
    data = {f"tripod/demo_data/{name}" for name in _DEMO}
    assert names - data - {f"tripod/audit_tools/{name}" for name in _TOOLS} == kept
    assert kept >= {_installed(f"{package}/py.typed") for package in PACKAGES}


def test_the_wheel_carries_licence_command_and_demo(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (info,) = {name.split("/")[0] for name in archive.namelist() if ".dist-info/" in name}
    licence = archive.read(f"{info}/licenses/LICENSE")
    assert licence == (ROOT / "LICENSE").read_bytes()
    assert b"tripod = tripod.cli:main" in archive.read(f"{info}/entry_points.txt")
    for name, folder in _DEMO.items():
        kept = (ROOT / folder / name).read_bytes()
        assert archive.read(f"tripod/demo_data/{name}") == kept
    for name in _TOOLS:
        kept = (ROOT / "tools" / name).read_bytes()
        assert archive.read(f"tripod/audit_tools/{name}") == kept


def test_the_packages_import_from_the_wheel_alone(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path)
    subprocess.run(
        [sys.executable, "-P", "-c", _IMPORT_FROM, str(tmp_path), *_MODULES],
        cwd=tmp_path,
        check=True,
    )


def test_no_group_is_repeated_possessively() -> None:
    """Python before 3.11.5 matches too much by it (gh-106052), and by an atomic group does not."""
    found = [path for path, text in sources(*PACKAGES).items() if re.search(r"\)[*+?]\+", text)]
    assert found == []
