"""What every test shares: how hypothesis searches, and the fixtures."""

import atexit
import gc
import os
import random
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from itertools import count
from unittest import mock

import pytest
from hypothesis import HealthCheck, settings
from specimens import build
from story import Story, folder

from tripod.ledger.locator import ACTOR_ENV, LEDGER
from tripod.verify import child, run

# A slow machine is no failure, so no profile has a deadline. On CI the same commit gives the same
# examples: what is new each time is looked for by the torture there, and by `make deep`, which goes
# further.
_SLOW_IS_FINE = [HealthCheck.too_slow]
_EXAMPLES = 20
settings.register_profile(
    "dev", deadline=None, max_examples=_EXAMPLES, suppress_health_check=_SLOW_IS_FINE
)
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, print_blob=True)
settings.register_profile(
    "deep", deadline=None, max_examples=2_000, suppress_health_check=_SLOW_IS_FINE
)
# Thousands of tests stay in memory: while they are collected, a collector would look through all of
# them again and again, for most of the time that it takes, and so it would in the tests.
gc.disable()
# A disk makes the tests wait for tens of thousands of syncs; where there is room in memory, their
# folders lie there. Not where programs may not be run from it, as in many containers.
_MEMORY = "/dev/shm"  # noqa: S108 - each folder in it is made by tempfile
if "TMPDIR" not in os.environ and os.access(_MEMORY, os.W_OK):
    _room = os.statvfs(_MEMORY)
    if _room.f_bavail * _room.f_frsize >= 2**31 and not _room.f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = tempfile.tempdir = _MEMORY
# Keys and last seals lie in the signer's home: never in that of whoever runs the tests, and each
# test has one of its own, since a copy of a team must not be sealed after its twin was.
_HOMES = tempfile.mkdtemp(prefix="tripod-home-")
atexit.register(shutil.rmtree, _HOMES, ignore_errors=True)
os.environ["TRIPOD_HOME"] = f"{_HOMES}/shared"
_numbers = count()
# The workers of a run draw the same cases.
_DRAW = os.environ.get("PYTEST_XDIST_TESTRUNUID") or os.urandom(8).hex()


@pytest.fixture(autouse=True)
def signers_home(monkeypatch: pytest.MonkeyPatch) -> str:
    """The folder of this test's keys and seals."""
    home = f"{_HOMES}/{next(_numbers)}"
    monkeypatch.setenv("TRIPOD_HOME", home)
    return home


@pytest.fixture(autouse=True)
def _threads_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads that other tests left (those of a web server) are none of this one's."""
    monkeypatch.setattr(child, "ALONE", threading.active_count())


@pytest.fixture(autouse=True)
def _no_names_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """No ledger and no actor that the person who runs the tests has set."""
    monkeypatch.delenv(LEDGER, raising=False)
    for name in ACTOR_ENV:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True, scope="session")
def _installed_checks_are_looked_up_once() -> Iterator[None]:
    """Each judgement asks every installed package for checks, a fifth of its time.

    A test that brings a package of its own also changes where Python looks.
    """
    usual = list(sys.path)
    points = cache(entry_points)

    def looked_up(group: str) -> object:
        return points(group=group) if sys.path == usual else entry_points(group=group)

    with mock.patch.object(run, "entry_points", looked_up):
        yield


@pytest.fixture
def story() -> Iterator[Story]:
    """A team directory where nothing has happened yet."""
    with folder() as root:
        yield Story(root)


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The team directory of the specimens, made once: tests change copies of it."""
    return build(str(tmp_path_factory.mktemp("sound")))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Slow tests first: begun last, one of them would keep a worker busy while the others wait.

    Of what is marked ``drawn`` a fifth of the cases are tried, others in each run; all of them with
    TRIPOD_TRIALS, or where some are asked for by name. Tests marked ``drawn(group)`` are cases of
    one group.
    """
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
    chosen = (
        config.option.keyword or config.getoption("lf", 0) or config.getoption("failedfirst", 0)
    )
    if "TRIPOD_TRIALS" in os.environ or chosen or any("::" in name for name in config.args):
        return
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        marker = item.get_closest_marker("drawn")
        if marker is not None:
            group = marker.args[0] if marker.args else item.nodeid.partition("[")[0]
            cases.setdefault(group, []).append(item)
    draw = random.Random(_DRAW)  # noqa: S311 - cases, not keys
    left = {item for of_it in cases.values() for item in draw.sample(of_it, len(of_it) * 4 // 5)}
    items[:] = [item for item in items if item not in left]
    config.hook.pytest_deselected(items=[*left])


def pytest_collection_finish() -> None:
    """The collector begins with what the tests make."""
    gc.collect()
    gc.freeze()
    gc.enable()


settings.load_profile("ci" if os.environ.get("CI") else "dev")
