"""Reads the pages of the documentation: their code blocks, their console sessions, their links."""

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token
from warm import search_path

ROOT = Path(__file__).resolve().parents[2]


class PageError(AssertionError):
    """A page promises what does not happen: place, what was written, what was seen."""


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text and the line of the page that it starts on."""

    language: str
    text: str
    line: int


@dataclass(frozen=True)
class Step:
    """One command of a console block, the output that the page shows, and the command's line."""

    command: str
    expected: str
    line: int


def executed_pages() -> list[Path]:
    """The pages whose blocks run as tests."""
    pages = [ROOT / "README.md"]
    pages += [ROOT / "docs" / name for name in ("index.md", "tutorial.md", "a-teams-day.md")]
    for folder in ("how-to", "formats", "reference"):
        pages += sorted((ROOT / "docs" / folder).glob("*.md"))
    return pages


def all_pages() -> list[Path]:
    """Every page that people read."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page in order, with the first word of each fence as the language."""
    return [
        Block((token.info.split() or [""])[0], token.content, (token.map or [0])[0] + 1)
        for token in MarkdownIt().parse(text)
        if token.type == "fence"
    ]


def steps(block: Block) -> Iterator[Step]:
    """Take a console block apart: ``$ `` starts a command, ``> `` (or ``>``) goes on with it."""
    command: list[str] = []
    expected: list[str] = []
    start = 0
    for number, line in enumerate(block.text.splitlines(), block.line + 1):
        if line.startswith("$ "):
            if command:
                yield Step("\n".join(command), "\n".join(expected), start)
            command, expected, start = [line[2:]], [], number
        elif command and not expected and (line == ">" or line.startswith("> ")):
            command.append(line[2:])
        elif command:
            expected.append(line)
        else:
            raise PageError(f"line {number}: a console block starts with `$ `, not with {line!r}")
    if command:
        yield Step("\n".join(command), "\n".join(expected), start)


def fits(expected: str, seen: str) -> bool:
    """Whether the output is the one written down, where ``...`` stands for anything."""
    pattern = ".*".join(re.escape(part) for part in expected.strip().split("..."))
    plain = "\n".join(line.rstrip() for line in seen.strip().splitlines())
    return re.fullmatch(pattern, plain, re.DOTALL) is not None


class Session:
    """A reader who follows one page in a new folder: commands, files and names stay between blocks.

    The reader has the handle ``me``, as `tripod init` asks for it at a terminal.
    A command that ends with another code than 0 fails the page, unless the page shows the code
    itself (``tripod verify; echo "exit $?"``). ``cd`` is remembered, other shell state is not.
    """

    def __init__(self, folder: Path) -> None:
        self._home = folder
        self._here = folder / "here"
        self._here.mkdir()
        (folder / ".config/tripod").mkdir(parents=True)
        (folder / ".config/tripod/handle").write_text("me\n", encoding="utf-8")
        self._names: dict[str, object] = {"__name__": "__page__"}

    def follow(self, text: str) -> int:
        """Run every block of a page and return how many ran; PageError where one disappoints."""
        ran = 0
        for block in blocks(text):
            if block.language == "console":
                for step in steps(block):
                    self._run(step)
            elif block.language == "python":
                self._execute(block)
            else:
                continue
            ran += 1
        return ran

    def _environment(self) -> dict[str, str]:
        place = {"TZ": "UTC", "LC_ALL": "C.UTF-8"}  # that of the stories: one server for both
        return place | {
            "EXAMPLES": str(ROOT / "examples"),
            "HOME": str(self._home),
            "PATH": search_path(**place),
            "GIT_AUTHOR_NAME": "reader",
            "GIT_AUTHOR_EMAIL": "reader@example.org",
            "GIT_COMMITTER_NAME": "reader",
            "GIT_COMMITTER_EMAIL": "reader@example.org",
            "GIT_CONFIG_NOSYSTEM": "1",
        }

    def _run(self, step: Step) -> None:
        where = self._home / "cwd"
        done = subprocess.run(
            ["bash", "-c", f"trap 'pwd -P >{where}' EXIT\n{step.command}"],
            cwd=self._here,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        self._here = Path(where.read_text(encoding="utf-8").strip())
        if done.returncode:
            raise PageError(
                f"line {step.line}: `{step.command}` ended with {done.returncode}:\n{done.stdout}"
            )
        if not fits(step.expected, done.stdout):
            raise PageError(
                f"line {step.line}: `{step.command}`\n"
                f"--- the page says\n{step.expected}\n--- the command says\n{done.stdout}"
            )

    def _execute(self, block: Block) -> None:
        before = Path.cwd()
        os.chdir(self._here)
        try:
            # The blank lines give tracebacks the line numbers of the page.
            exec(compile("\n" * block.line + block.text, "<page>", "exec"), self._names)  # noqa: S102 - the pages are ours
        except Exception as error:
            raise PageError(f"line {block.line}: the python block raised {error!r}") from error
        finally:
            os.chdir(before)


def broken_links(text: str, folder: Path) -> list[str]:
    """Links to files that are not there; links to other sites are left alone."""
    found = []
    for token in _inline(MarkdownIt().parse(text)):
        target = token.attrGet("href") or token.attrGet("src")
        if not isinstance(target, str) or re.match(r"[a-z]+:|#", target):
            continue
        if not (folder / target.partition("#")[0]).exists():
            found.append(target)
    return found


def _inline(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _inline(token.children or [])
