"""Our wheel, and fresh environments to install it into, without an index and this checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path
from zipfile import Path as ZipPath

import pytest
from packaging.requirements import Requirement


def _run(*command: str, cwd: Path) -> str:
    """Run a command outside of the checkout; its output is in the failure."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        command, cwd=cwd, env=clean, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(source: Path, folder: Path, *targets: str) -> Path:
    """Build a distribution without the network, and give the file that was built last."""
    for target in targets:
        _run(
            sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder), cwd=source
        )
    return max(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)


def needed_by(wheel: Path, *extras: str) -> set[Path]:
    """What of this environment a wheel asks for with these extras, and nothing else of it."""
    (info,) = (one for one in ZipPath(wheel).iterdir() if one.name.endswith(".dist-info"))
    named = metadata.PathDistribution(info)
    return {
        Path(str(one.locate_file(path.parts[0])))
        for one in _needs(named, extras)
        for path in one.files or ()
        if path.parts[0] not in ("..", "__pycache__")
    }


def needed_here(*names: str) -> set[Path]:
    """What distributions of this environment consist of and need; of a checkout, only the need."""
    return {
        Path(str(one.locate_file(path.parts[0])))
        for name in names
        for one in (metadata.distribution(name), *_needs(metadata.distribution(name), ()))
        for path in one.files or ()
        if path.parts[0] not in ("..", "__pycache__")
        and not path.parts[0].startswith(("tripod", "_editable"))
    }


def offline(folder: Path, *names: str) -> dict[str, str]:
    """Variables by which pip builds and installs a checkout without an index.

    What these distributions need counts as installed: they lie linked in ``folder``.
    """
    folder.mkdir()
    for path in needed_here(*names):
        (folder / path.name).symlink_to(path)
    return {
        "PYTHONPATH": str(folder),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # as pip reads it: no isolation, and no compiling
        "PIP_NO_COMPILE": "0",
        "PIP_NO_CACHE_DIR": "1",
    }


def _needs(one: metadata.Distribution, extras: Iterable[str]) -> Iterator[metadata.Distribution]:
    """The distributions that one needs, directly or not, as they are installed here."""
    for extra in ("", *extras):
        for requirement in map(Requirement, one.requires or ()):
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                found = metadata.distribution(requirement.name)
                yield found
                yield from _needs(found, requirement.extras)


class Environment:
    """A fresh virtual environment that sees what the wheel depends on, and not this checkout.

    ``seen`` are files and folders of packages that count as installed there; else all of this
    environment's are, without what leads to the checkout. One of them is pip, with its command: to
    unpack it anew for each environment takes longer than all that it then does.
    """

    def __init__(self, folder: Path, seen: Iterable[Path] | None = None) -> None:
        self.folder = folder
        self.python = str(folder / "venv/bin/python")
        venv.create(folder / "venv", symlinks=True)
        (site,) = (folder / "venv/lib").glob("python*/site-packages")
        self.site = site
        (folder / "others").mkdir()
        all_here = Path(pytest.__file__).parents[1].iterdir()
        for path in all_here if seen is None else {*seen, *needed_here("pip")}:
            if not path.name.startswith(("tripod", "_editable", "__pycache__")):
                (folder / "others" / path.name).symlink_to(path)
        (site / "others.pth").write_text(f"{folder / 'others'}\n")
        pip = folder / "venv/bin/pip"
        pip.write_text(
            f"#!{self.python}\nfrom pip._internal.cli import main\nraise SystemExit(main.main())\n"
        )
        pip.chmod(0o755)

    def pip(self, *words: str) -> None:
        self.run("-m", "pip", "--isolated", "--disable-pip-version-check", "--no-input", *words)

    def install(self, wheel: Path) -> None:
        self.pip(
            "install", "--no-index", "--no-deps", "--no-compile", "--ignore-installed", str(wheel)
        )

    def run(self, *words: str, cwd: Path | None = None) -> str:
        return _run(self.python, *words, cwd=cwd or self.folder)
