"""The installed wheel hurts nobody: not another distribution `ledger`, not a user's own module.

Everything is installed from files, without an index.
"""

import subprocess
import zipfile
from pathlib import Path

import pytest
from repo.rules import ROOT
from repo.wheels import Environment, build

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


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("ours"), "wheel")


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
    return build(source, tmp_path_factory.mktemp("their-wheel"), "wheel")


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment(tmp_path)


@pytest.mark.drawn("long")
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


@pytest.mark.drawn("long")
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
    source = build(ROOT, tmp_path / "sdist", "sdist")
    subprocess.run(["tar", "xf", str(source), "-C", str(tmp_path)], check=True)
    (unpacked,) = (path.parent for path in tmp_path.glob("*/pyproject.toml"))
    (tmp_path / "wheel").mkdir()
    again = build(unpacked, tmp_path / "wheel", "wheel")

    def contents(wheel: Path) -> dict[str, bytes]:
        archive = zipfile.ZipFile(wheel)
        return {name: archive.read(name) for name in archive.namelist()}

    assert contents(again) == contents(ours)
