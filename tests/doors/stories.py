"""Runs a story: a text file of commands with what each prints and the code it leaves with.

::

    # A comment, or a sentence of the story.
    $ tripod bus publish ann done urgent
    ! tripod: priority: 'urgent' is not one of critical, high, normal, low
    [exit 4]

``$ `` starts a command and ``> `` goes on with it. Below stand the lines of its standard output,
then those of its standard error (``! ``), then its code where it is not 0. ``...`` stands for
anything, line breaks too. A comment stands at the beginning or below an empty line. Each command is
run by bash in the folder where the one before left off; ``$GOLDEN`` is the folder of golden files.
Who acts has the handle ``me``, as `tripod init` asks for it at a terminal.
"""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from docs.pages import fits
from warm import search_path

__all__ = ["HERE", "PLACES", "Scene", "StoryError", "play", "scenes"]

HERE = Path(__file__).resolve().parent
PLACES: dict[str, dict[str, str]] = {
    "utf-8": {"TZ": "UTC", "LC_ALL": "C.UTF-8"},
    # Neither the clock's zone nor a terminal of another century changes a byte of what is told.
    "ascii": {
        "TZ": "Asia/Kathmandu",
        "LC_ALL": "C",
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONUTF8": "0",
    },
}


class StoryError(AssertionError):
    """A command did not do what the story tells."""


@dataclass
class Scene:
    """One command and what the story tells of it; ``line`` is where it starts."""

    line: int
    command: list[str]
    out: list[str] = field(default_factory=list)
    err: list[str] = field(default_factory=list)
    code: int = 0


def scenes(text: str) -> Iterator[Scene]:
    """Take a story apart."""
    scene: Scene | None = None
    before = ""
    for number, line in enumerate(text.splitlines(), 1):
        is_comment = line.startswith("# ") and (not before or before.startswith("# "))
        before = line
        if line.startswith("$ "):
            if scene is not None:
                yield scene
            scene = Scene(number, [line[2:]])
        elif is_comment:
            continue
        elif scene is None:
            if line:
                raise StoryError(f"line {number}: a story starts with a command or a comment")
        elif line.startswith("> "):
            scene.command.append(line[2:])
        elif line.startswith("!"):
            scene.err.append(line[2:])
        elif line.startswith("[exit ") and line.endswith("]"):
            scene.code = int(line[6:-1])
        else:
            scene.out.append(line)
    if scene is not None:
        yield scene


def play(story: Path, folder: Path, place: dict[str, str]) -> int:
    """Run a story in a new folder and return how many commands it had.

    Raises:
        StoryError: a command printed or returned something else than what is told.
    """
    here = folder / "here"
    here.mkdir()
    settings = folder / ".config/tripod"
    settings.mkdir(parents=True)
    (settings / "handle").write_text("me\n", encoding="utf-8")
    environment = place | {
        "GOLDEN": str(HERE.parent / "golden"),
        "HOME": str(folder),
        "PATH": search_path(**place),
    }
    told = list(scenes(story.read_text(encoding="utf-8")))
    for scene in told:
        where = folder / "cwd"
        command = "\n".join([f"trap 'pwd -P >{where}' EXIT", *scene.command])
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=here,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
            check=False,
        )
        here = Path(where.read_text(encoding="utf-8").strip())
        out, err = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
        wanted_out, wanted_err = "\n".join(scene.out), "\n".join(scene.err)
        true = done.returncode == scene.code and fits(wanted_out, out) and fits(wanted_err, err)
        if not true:
            raise StoryError(
                f"{story.name}:{scene.line}: {scene.command[0]}\n"
                f"--- told (exit {scene.code})\n{wanted_out}\n--- stderr\n{wanted_err}\n"
                f"--- seen (exit {done.returncode})\n{out}\n--- stderr\n{err}"
            )
    return len(told)
