"""The installed wheel hurts nobody: not another distribution `ledger`, not a user's own module.

Everything is installed from files, without an index. The environment sees the packages of this one
that the wheel needs, and not this checkout.
"""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from repo.rules import ROOT

_USER = '''\
"""A user's program, in strict types."""

import tripod
from tripod.errors import NotFoundError


def talk(project: str) -> list[str]:
    tripod.init(project)
    with tripod.Team(project) as team:
        tripod.chat.create(team, "live")
        message = tripod.chat.send(team, "live", "ann", "Tea?")
        number: int = message.number
        try:
            tripod.bus.ack(team, "1-ann-done-1.event")
        except (NotFoundError, tripod.TripodError) as error:
            print(error)
        assert number == 0 and team.head().size > 0
        return [found.text for found in tripod.chat.messages(team, "live")]


if __name__ == "__main__":
    import sys

    assert talk(sys.argv[1]) == ["Tea?"]
'''

_BOTH = """
import ledger, ledger.verify
assert ledger.OWNER == ledger.verify.OWNER == "somebody else", ledger.__file__
import tripod, tripod.ledger.chain, tripod.verify.run, tripod.projections
assert not hasattr(tripod.ledger, "OWNER")
assert "site-packages" in tripod.__file__, tripod.__file__
"""

_THEIRS_ALONE = """
import importlib.util, ledger.verify
assert ledger.OWNER == ledger.verify.OWNER == "somebody else"
assert importlib.util.find_spec("tripod") is None
"""


def _run(*command: str, cwd: Path) -> str:
    """Run a command outside of the checkout; its output is in the failure."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        command, cwd=cwd, env=clean, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _build(source: Path, folder: Path, *targets: str) -> Path:
    """Build a distribution without the network, and give the file that was built last."""
    for target in targets:
        _run(
            sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder), cwd=source
        )
    return max(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _build(ROOT, tmp_path_factory.mktemp("ours"), "wheel")


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A distribution of somebody else that owns the name ``ledger``, with a module ``verify``."""
    source = tmp_path_factory.mktemp("theirs")
    (source / "ledger").mkdir()
    (source / "ledger/__init__.py").write_text('OWNER = "somebody else"\n')
    (source / "ledger/verify.py").write_text('OWNER = "somebody else"\n')
    (source / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        '[project]\nname = "ledger"\nversion = "1.0"\n'
        '[tool.hatch.build.targets.wheel]\npackages = ["ledger"]\n'
    )
    return _build(source, tmp_path_factory.mktemp("their-wheel"), "wheel")


class Environment:
    """A fresh virtual environment that sees what the wheel depends on, and not this checkout."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = str(folder / "venv/bin/python")
        venv.create(folder / "venv", symlinks=True)
        (site,) = (folder / "venv/lib").glob("python*/site-packages")
        self.site = site
        # The packages of this environment, without what leads to the checkout.
        (folder / "others").mkdir()
        for path in Path(pytest.__file__).parents[1].iterdir():
            if not path.name.startswith(("tripod", "_editable", "__pycache__")):
                (folder / "others" / path.name).symlink_to(path)
        (site / "others.pth").write_text(f"{folder / 'others'}\n")

    def pip(self, *words: str) -> None:
        _run(
            *(sys.executable, "-m", "pip", "--python", self.python, "--isolated"),
            *("--disable-pip-version-check", "--no-input", *words),
            cwd=self.folder,
        )

    def install(self, wheel: Path) -> None:
        self.pip(
            "install", "--no-index", "--no-deps", "--no-compile", "--ignore-installed", str(wheel)
        )

    def run(self, *words: str, cwd: Path | None = None) -> str:
        return _run(self.python, *words, cwd=cwd or self.folder)


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment(tmp_path)


@pytest.mark.slow
def test_both_distributions_work_in_either_order_and_theirs_survives_ours(
    environment: Environment, ours: Path, theirs: Path
) -> None:
    for wheels in ((ours, theirs), (ours,)):  # theirs stays: the second time it is there before
        for wheel in wheels:
            environment.install(wheel)
        environment.run("-c", _BOTH)
        before = {path.name: path.read_bytes() for path in environment.site.glob("ledger/*.py")}
        environment.pip("uninstall", "--yes", "tripod-ledger")
        environment.run("-c", _THEIRS_ALONE)
        after = {path.name: path.read_bytes() for path in environment.site.glob("ledger/*.py")}
        assert after == before
        assert len(before) == 2
        assert not list(environment.site.glob("tripod*"))


@pytest.mark.slow
def test_a_users_program_works_beside_modules_of_the_same_names_and_is_typed(
    environment: Environment, ours: Path, tmp_path: Path
) -> None:
    environment.install(ours)
    project, script = tmp_path / "cafe", tmp_path / "script"
    project.mkdir()
    script.mkdir()
    for name in ("ledger", "projections", "verify"):
        (script / f"{name}.py").write_text("raise RuntimeError('a module of the user')\n")
    (script / "talk.py").write_text(_USER)
    environment.run("talk.py", str(project), cwd=script)
    (script / "wrong.py").write_text('import tripod\n\ntripod.chat.sned("live")\n')
    alone = r'(?s)has no attribute "sned".*Found 1 error in 1 file \(checked 2 source files\)'
    with pytest.raises(AssertionError, match=alone):
        environment.run(
            "-m", "mypy", "--strict", "--cache-dir=cache", "talk.py", "wrong.py", cwd=script
        )


@pytest.mark.slow
def test_a_source_distribution_builds_the_same_wheel(ours: Path, tmp_path: Path) -> None:
    (tmp_path / "sdist").mkdir()
    source = _build(ROOT, tmp_path / "sdist", "sdist")
    subprocess.run(["tar", "xf", str(source), "-C", str(tmp_path)], check=True)
    (unpacked,) = (path.parent for path in tmp_path.glob("*/pyproject.toml"))
    (tmp_path / "wheel").mkdir()
    again = _build(unpacked, tmp_path / "wheel", "wheel")

    def contents(wheel: Path) -> dict[str, bytes]:
        archive = zipfile.ZipFile(wheel)
        return {name: archive.read(name) for name in archive.namelist()}

    assert contents(again) == contents(ours)
