"""Every story is true, wherever it is told; and every command has its story."""

from pathlib import Path

import pytest
from doors.inside import commands
from doors.stories import HERE, PLACES, StoryError, play, scenes

STORIES = sorted(HERE.rglob("*.txt"), key=lambda story: story.stem)


ABROAD = (
    "bus", "chat", "init", "key", "pythia", "scribe", "seal", "show", "verify", "witness", "worker",
)  # fmt: skip
"""Stories that are told a second time, in another zone and with bytes for text: those that show
every way in which a text or a time is printed. They take long; the others print the same ways."""


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.stem)
def test_story(tmp_path: Path, story: Path) -> None:
    assert play(story, tmp_path, PLACES["utf-8"]) > 0


@pytest.mark.drawn
@pytest.mark.parametrize("story", ABROAD)
def test_story_abroad(tmp_path: Path, story: str) -> None:
    (path,) = HERE.rglob(f"{story}.txt")
    assert play(path, tmp_path, PLACES["ascii"]) > 0


def test_every_command_has_its_story() -> None:
    told = "\n".join(
        line for story in STORIES for scene in scenes(story.read_text()) for line in scene.command
    )
    # The demonstration is a story of its own, told by `make demo`.
    for path, _ in commands():
        assert f"tripod {' '.join(path)}" in told or path == ("demo",)


@pytest.mark.parametrize(
    "untrue",
    [
        "$ echo one\ntwo\n",
        "$ echo one\n",
        "$ echo one >&2\none\n",
        "$ true\n! one\n",
        "$ false\n",
        "$ true\n[exit 1]\n",
        "$ echo one; echo two\none\n",
        "one\n$ true\n",
    ],
)
def test_an_untrue_story_is_found(tmp_path: Path, untrue: str) -> None:
    story = tmp_path / "story.txt"
    story.write_text(untrue)
    with pytest.raises(StoryError):
        play(story, tmp_path, PLACES["utf-8"])


def test_a_true_story(tmp_path: Path) -> None:
    story = tmp_path / "story.txt"
    story.write_text(
        "# Somebody counts.\n$ mkdir a; cd a\n$ basename $PWD; echo 2\na\n2\n"
        "$ echo 1 >&2;\n> echo one day; exit 3\none ...\n! 1\n[exit 3]\n"
    )
    assert play(story, tmp_path, PLACES["ascii"]) == 3
