"""``tripod sync --watch`` stays, takes in what comes, and ends when it is told to."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from story import Story

from tripod.bus import events as bus
from tripod.team import adoption
from tripod.team import watch as watching
from tripod.team.team import Team

HERE = Path(__file__).resolve().parents[3]
MAIN = "from tripod.cli import main; main()"


@contextmanager
def watcher(story: Story, *more: str) -> Iterator["subprocess.Popen[str]"]:
    """A watch that has begun; whatever happens, it is ended."""
    command = [sys.executable, "-c", MAIN, "sync", "--watch", "--team", str(story.root), *more]
    process = subprocess.Popen(
        command, cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        assert process.stderr.readline().startswith("tripod: watching")
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def line(process: "subprocess.Popen[str]") -> dict[str, Any]:
    """The next take-in; waits for it."""
    assert process.stdout is not None
    value: dict[str, Any] = json.loads(process.stdout.readline())
    return value


@pytest.fixture
def story(tmp_path: Path) -> Story:
    story = Story(tmp_path)
    story.run([("create", "live"), ("say", "live", "ann", "hello")])
    return story


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_comes_is_taken_in_until_a_signal(story: Story, number: signal.Signals) -> None:
    with watcher(story, "--json") as process:
        story.original.say("live", "eve", "one")
        assert line(process)["kinds"] == {"chat.sent": 1}
        name = story.original.publish("x", "y")
        assert line(process)["kinds"] == {"bus.published": 1}
        story.original.ack(name)
        found = line(process)
        assert (found["entries"], found["kinds"]) == (1, {"bus.acked": 1})
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out, err) == (0, "", "")
    with Team(str(story.root)) as team:
        assert team.store.head().size == found["size"]


@pytest.mark.slow
def test_a_signal_ends_a_wait_of_minutes(story: Story) -> None:
    story.original.put("events/config.yaml", b"poll-interval: 600\n")
    with story.team() as team:
        team.refresh()
    with watcher(story, "--json") as process:
        story.original.say("live", "eve", "one")
        assert line(process)["kinds"] == {"chat.sent": 1}
        while ") S " not in Path(f"/proc/{process.pid}/stat").read_text():
            pass  # it has printed, and does not wait again yet
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


@pytest.mark.slow
def test_folders_that_go_and_come_back_are_watched_anew(story: Story) -> None:
    folder, aside = story.root / "chat", story.project / "aside"
    with watcher(story, "--json") as process:
        folder.rename(aside)  # whoever acts next writes the files again, into a new folder
        story.original.publish("x", "y")
        assert line(process)["kinds"] == {"bus.published": 1}
        assert (folder / "live.chat").exists()
        story.original.say("live", "eve", "into the new one")
        assert line(process)["kinds"] == {"chat.sent": 1}
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0


def test_it_looks_again_where_nobody_tells(story: Story) -> None:
    story.original.put("events/config.yaml", b"notify: poll\npoll-interval: 1\n")
    found: list[dict[str, int]] = []
    stop = watching.WatchStop()
    told: list[bool] = []

    def ready(is_told: bool) -> None:
        told.append(is_told)
        story.original.say("live", "eve", "one")

    def report(kinds: dict[str, int], _: int) -> None:
        found.append(kinds)
        stop.asked = "chat.sent" in kinds

    with Team(str(story.root)) as team:
        watching.watch(team, report, warn=pytest.fail, ready=ready, stop=stop)
    assert told == [False]
    assert found == [{"config.changed": 1}, {"chat.sent": 1}]


def _watched(story: Story, ready: Callable[[bool], None]) -> tuple[list[dict[str, int]], list[str]]:
    """What is told in a watch that ends after one wait."""
    found: list[dict[str, int]] = []
    said: list[str] = []
    with Team(str(story.root)) as team:
        watching.watch(
            team,
            lambda kinds, _: found.append(kinds),
            warn=said.append,
            ready=ready,
            stop=watching.WatchStop(),
            timeout=0,
        )
    return found, said


def test_what_another_command_took_in_is_told_as_well(story: Story) -> None:
    story.original.say("live", "eve", "one")
    found, said = _watched(story, lambda _: None)
    assert (found, said) == ([{"chat.sent": 1}], [])
    with Team(str(story.root)) as team:
        bus.publish(team, "a", "b", "low")  # ours is no take-in
    assert _watched(story, lambda _: None) == ([], [])


def test_a_team_that_cannot_be_written_is_told_and_waited_for(tmp_path: Path) -> None:
    events = tmp_path / "elsewhere"
    events.mkdir()
    adoption.init(str(tmp_path), events=str(events))
    aside = tmp_path / "aside"
    os.rename(events, aside)
    found: list[dict[str, int]] = []
    said: list[str] = []
    stop = watching.WatchStop()

    def warn(text: str) -> None:
        said.append(text)
        if aside.exists():
            os.rename(aside, events)

    with Team(str(tmp_path / ".nbs")) as team:
        watching.watch(
            team,
            lambda kinds, _: found.append(kinds),
            warn=warn,
            ready=lambda _: None,
            stop=stop,
            timeout=0,
        )
    assert "no folder is there" in said[0]
    assert len(said) == 1
    assert found == []
