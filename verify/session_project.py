"""A project as it was when an agent worked in it: its instruction files, and protected files.

Some programs put files into the context and leave no record of it. Where the project is at hand,
what they would have put there is read instead: instruction files, what these import, and what the
settings name. Files outside of the project are not there, and are named.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from glob import glob

import orjson

from tripod.errors import BadArgumentError, NotFoundError
from tripod.ledger.files import read_plain_file
from tripod.verify.sessions.exposure import NeverRule, ProtectedText
from tripod.verify.sessions.items import Gap, Given, Item, strings_of

_INSTRUCTIONS = {
    "claude-code": ("CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md", ".claude/rules/*.md"),
    "codex": ("AGENTS.md", "AGENTS.override.md"),
    "copilot": ("AGENTS.md", "CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md"),
    "gemini": ("GEMINI.md", "AGENTS.md"),
    "qwen": ("**/QWEN.md", "**/AGENTS.md"),
    "opencode": ("AGENTS.md", "CLAUDE.md", "CONTEXT.md"),
}
"""Files that a program puts into the context without being asked, from the project's folder."""

_SETTINGS = {
    "opencode": (
        "opencode.json",
        "opencode.jsonc",
        ".opencode/opencode.json",
        ".opencode/opencode.jsonc",
    ),
    "qwen": (".qwen/settings.json",),
}
_FILE = re.compile(r"\.\w{1,8}$|^\.{1,2}/")
_IMPORT = re.compile(r"(?:^|(?<=\s))@([^\s@`]+)")
_MAX_FILE = 4 * 1024 * 1024
_MAX_FILES = 20_000
_MAX_DEPTH = 5  # an import of an import ...


@dataclass
class Project:
    """A folder with the files of a project, which stands for the folder that a session ran in."""

    root: str
    instructions: dict[str, str] = field(default_factory=dict)
    absent: list[str] = field(default_factory=list)

    def items(self, program: str) -> Iterator[Item]:
        """What a program would have put into the context, each file as a text by its path."""
        self.instructions.clear()
        self.absent.clear()
        named = list(_INSTRUCTIONS.get(program, ()))
        by_settings: list[str] = []
        for name in _SETTINGS.get(program, ()):
            text = self._text(name)
            if text is not None:
                by_settings += self._settings(name, text)
        for pattern in (*named, *by_settings):
            paths = list(self._matching(pattern))
            for path in paths:
                self._take(path, 0)
            if not paths and pattern in by_settings and pattern not in self.absent:
                self.absent.append(pattern)
        for path, text in sorted(self.instructions.items()):
            yield Given("instructions", 0, 0, text, named=path)
        for path in self.absent:
            what = f"{path}, which the instructions name, is not in the project that was given"
            yield Gap("missing", 0, what, "instructions")

    def _settings(self, name: str, text: str) -> Iterator[str]:
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError:
            self.absent.append(f"what {name} says (it is no JSON)")
            return
        value = value if isinstance(value, dict) else {}
        yield from strings_of(value.get("instructions"))
        for names in (value.get("contextFileName"), value.get("context")):
            yield from strings_of(names.get("fileName") if isinstance(names, dict) else names)

    def _matching(self, pattern: str) -> Iterator[str]:
        """Paths below the project that a name or a pattern of instructions stands for."""
        if os.path.isabs(pattern) or pattern.startswith("~") or ".." in pattern.split("/"):
            self.absent.append(pattern)
            return
        found = glob(pattern, root_dir=self.root, recursive=True, include_hidden=True)
        yield from sorted(found)[:_MAX_FILES]

    def _text(self, path: str) -> str | None:
        try:
            data = read_plain_file(os.path.join(self.root, path), _MAX_FILE)
        except OSError:
            return None
        if len(data) > _MAX_FILE:
            self.absent.append(f"the end of {path}")
        return _decoded(data)

    def _take(self, path: str, depth: int) -> None:
        path = os.path.normpath(path)
        if path in self.instructions:
            return
        if depth > _MAX_DEPTH:
            self.absent.append(path)
            return
        text = self._text(path)
        if text is None:
            if not os.path.isdir(os.path.join(self.root, path)):
                self.absent.append(path)
            return
        self.instructions[path] = text
        for match in _IMPORT.finditer(text):
            named = match[1].rstrip(".,;:)")
            inner = os.path.normpath(os.path.join(os.path.dirname(path), named))
            if named.startswith(("/", "~")) or inner.startswith(".."):
                self.absent.append(named)
            elif os.path.lexists(os.path.join(self.root, inner)):
                self._take(inner, depth + 1)
            elif _FILE.search(named):
                self.absent.append(named)

    def protect(self, protected: ProtectedText, rule: NeverRule) -> int:
        """Protect the text of each file that the rule names; give how many there are."""
        return protect_files(protected, self.root, rule)


def open_project(path: str) -> Project:
    """The project in a folder (NotFoundError: ``path`` is not a folder)."""
    if not os.path.isdir(path):
        raise NotFoundError(f"{path} is not a folder: name the one in which the agent worked")
    return Project(path)


def protect_files(protected: ProtectedText, path: str, rule: NeverRule | None = None) -> int:
    """Protect a file, or each file below a folder that a rule names; give how many there are."""
    if os.path.isfile(path):
        protected.add(os.path.basename(path), _read(path))
        return 1
    if not os.path.isdir(path):
        raise NotFoundError(f"{path} does not exist; name a file or a folder whose text is secret")
    count = 0
    for folder, inner, names in os.walk(path):
        inner[:] = sorted(name for name in inner if name != ".git")
        for name in sorted(names):
            full = os.path.join(folder, name)
            below = os.path.relpath(full, path)
            if os.path.islink(full) or (rule is not None and not rule.hits(below)):
                continue
            if not os.path.isfile(full):
                continue  # it has no text
            protected.add(below, _read(full))
            count += 1
            if count > _MAX_FILES:
                raise NotFoundError(f"{path} has over {_MAX_FILES} files; name fewer")
    return count


def _read(path: str) -> str:
    try:
        data = read_plain_file(path, _MAX_FILE)
    except OSError as error:
        raise BadArgumentError(f"{path} cannot be read: {error.strerror}") from None
    if len(data) > _MAX_FILE:
        size = _MAX_FILE // 1024 // 1024
        raise BadArgumentError(f"{path} has over {size} MiB; name smaller files to protect")
    return _decoded(data)


def _decoded(data: bytes) -> str:
    code = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    return data.decode(code, "replace")
