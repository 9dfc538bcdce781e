"""A project as it was when an agent worked in it: its instruction files, and protected files.

Some programs put files into the context and leave no record of it. Where the project is at hand,
what they would have put there is read instead: instruction files, what these import, and what the
settings name. Files outside of the project are not there, and are named. Of a project in a git
repository every version counts, of any time: which of them were there, only the session's own
record would say.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from glob import glob

import orjson

from tripod.ledger import EVIDENCE, GitError
from tripod.ledger.errors import BadArgumentError
from tripod.ledger.files import read_plain_file
from tripod.ledger.locator import FOLDER, repository_around
from tripod.verify.anchors.git import Repository
from tripod.verify.isolation.globs import NeverRule
from tripod.verify.isolation.phrases import ProtectedText
from tripod.verify.sessions.items import Channel, Gap, Given, Item, strings_of

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
_PLUGINS = {"opencode": (".opencode/plugin/*", ".opencode/plugins/*")}
"""Programs of a project that a program runs, and that may add any text to the context."""

_AT_HOME = {
    "gemini": (".gemini/GEMINI.md",),
    "qwen": (".qwen/QWEN.md",),
    "opencode": (".config/opencode/AGENTS.md", ".claude/CLAUDE.md"),
}
"""Such files in the user's home folder, of programs that leave no record of them."""

_SETTINGS_AT_HOME = {
    "gemini": (".gemini/settings.json",),
    "qwen": (".qwen/settings.json",),
    "opencode": (".config/opencode/opencode.json", ".config/opencode/opencode.jsonc"),
}
_PLUGINS_AT_HOME = {"opencode": (".config/opencode/plugin/*", ".config/opencode/plugins/*")}

_FILE = re.compile(r"\.\w{1,8}$|^\.{1,2}/")
_IMPORT = re.compile(r"(?:^|(?<=\s))@([^\s@`]+)")
_MAX_FILE = 4 * 1024 * 1024
_MAX_FILES = 20_000
_MAX_DEPTH = 5  # an import of an import ...
_MAX_HISTORY = 256 * 1024 * 1024  # bytes of all versions of all files
_MAX_SECONDS = 120.0


@dataclass
class Project:
    """A folder with the files of a project, which stands for the folder that a session ran in.

    ``is_home``: it is the home folder of the user that the agent ran as, and no project.
    A snapshot of one moment has no earlier versions: it is made with ``has_history=False``.
    """

    root: str
    is_home: bool = False
    instructions: dict[str, str] = field(default_factory=dict)
    absent: list[str] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    has_history: bool = True
    _former: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    def items(self, program: str) -> Iterator[Item]:
        """What a program would have put into the context, each file as a text by its path."""
        self.instructions.clear()
        self.absent.clear()
        channel: Channel = "home" if self.is_home else "instructions"
        named = list((_AT_HOME if self.is_home else _INSTRUCTIONS).get(program, ()))
        by_settings: list[str] = []
        for name in (_SETTINGS_AT_HOME if self.is_home else _SETTINGS).get(program, ()):
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
            yield Given(channel, 0, 0, text, named=path)
        yield from () if self.is_home else self._earlier(program)
        for path in self.absent:
            what = f"{path}, which the instructions name, is not in the folder that was given"
            yield Gap("missing", 0, what, channel)
        for pattern in (_PLUGINS_AT_HOME if self.is_home else _PLUGINS).get(program, ()):
            for path in self._matching(pattern):
                yield Gap("opaque", 0, f"what the plugin {path[:80]} adds", channel)
        yield from self.gaps

    def _earlier(self, program: str) -> Iterator[Item]:
        """What other versions of these files would have put there: whether it did is not known."""
        names, settings = _INSTRUCTIONS.get(program, ()), _SETTINGS.get(program, ())
        if program not in self._former:
            ends = tuple(f"*/{name.removeprefix('**/')}" for name in (*names, *settings))

            def is_named(path: str) -> bool:
                return any(fnmatchcase(f"/{path}", end) for end in ends)

            self._former[program] = list(self._versions(is_named)) if ends else []
        for path, text in self._former[program]:
            if path in settings:
                named = list(self._settings(path, text))
            else:
                yield Given("instructions", 0, 0, text, sure=False)
                folder = os.path.dirname(path)
                imported = (match[1].rstrip(".,;:)") for match in _IMPORT.finditer(text))
                named = [os.path.normpath(os.path.join(folder, one)) for one in imported]
            for one in named:
                if one not in self.instructions:
                    yield Given("instructions", 0, 0, "", named=one, sure=False)

    def _settings(self, name: str, text: str) -> Iterator[str]:
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError:
            self.absent.append(f"what {name} says (it is no JSON)")
            return
        value = value if isinstance(value, dict) else {}
        if value.get("plugin"):
            self.absent.append(f"what the plugins add that {name} has")
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
        """Protect each file that the rule names, and each version of it that git has.

        Gives how many files and versions there are. What ``rule`` excepts may be read, so that its
        text does not count. Versions that cannot be read are a gap of every session.
        """
        for path in _files_below(self.root):
            if rule.excepts(path):
                protected.allow(self._text(path) or "")
        protected.allow("\n".join(self._shared_lines(rule)))
        count = protect_files(protected, self.root, rule)
        for path, text in self._versions(rule.hits):
            if text.strip():
                protected.add(path, text)
                count += 1
        return count

    def _shared_lines(self, rule: NeverRule) -> set[str]:
        """Lines of the files that a rule means which other files of the project have as well.

        A licence, an import: who has read such a line need not have read the file.
        """
        forbidden, others = set[str](), []
        for path in _files_below(self.root):
            if rule.hits(path):
                forbidden.update(map(str.strip, _read(os.path.join(self.root, path)).splitlines()))
            else:
                others.append(path)
        shared = set[str]()
        for path in others[:_MAX_FILES] if forbidden else ():
            with suppress(OSError):
                data = read_plain_file(os.path.join(self.root, path), _MAX_FILE)
                shared |= forbidden.intersection(map(str.strip, _decoded(data).splitlines()))
        return shared

    def _versions(self, is_wanted: Callable[[str], bool]) -> Iterator[tuple[str, str]]:
        """Each version that git has of files below the project, but for those that are there now.

        Of every commit that a ref or a reflog names. Nothing of the repository is run.
        """
        if not self.has_history or repository_around(os.path.realpath(self.root)) is None:
            return
        try:
            inside = os.path.join(os.path.realpath(self.root), "a file")
            with Repository(inside, _MAX_SECONDS) as repository:
                yield from self._versions_in(repository, is_wanted)
        except GitError as error:
            self._lacks(f"the versions of files that git has cannot be read: {error}")

    def _versions_in(
        self, repository: Repository, is_wanted: Callable[[str], bool]
    ) -> Iterator[tuple[str, str]]:
        if repository.shallow:
            self._lacks("a shallow clone lacks the earlier versions of files")
        front = repository.place.inside.removesuffix("a file")
        paths = (front.rstrip("/"),) if front else ()
        seen = set[tuple[str, str]]()
        size = 0
        for change in repository.changes(paths, repository.everything()):
            path = change.path.removeprefix(front)
            version = (path, change.new)
            if not change.new or not change.regular or version in seen or not is_wanted(path):
                continue
            seen.add(version)
            data = repository.blob(change.new)
            size += 0 if data is None else len(data)
            if data is None or len(data) > _MAX_FILE:
                self._lacks(f"a version of {path} is not there, or too large to be read")
            elif len(seen) > _MAX_FILES or size > _MAX_HISTORY:
                self._lacks("git has more versions of files than are read")
                return
            elif _decoded(data) != self._text(path):
                yield path, _decoded(data)

    def _lacks(self, what: str) -> None:
        """Note something that every session may have had, and that cannot be seen."""
        gap = Gap("missing", 0, what)
        if gap not in self.gaps:
            self.gaps.append(gap)


def open_project(path: str, *, is_home: bool = False) -> Project:
    """The project in a folder (BadArgumentError: ``path`` is no folder that can be read)."""
    which = "the user's home folder" if is_home else "the folder in which the agent worked"
    try:
        os.listdir(path)
    except OSError as error:
        why = error.strerror or str(error)
        raise BadArgumentError(f"{path} cannot be read ({why}): name {which}") from None
    return Project(path, is_home)


def protect_files(protected: ProtectedText, path: str, rule: NeverRule | None = None) -> int:
    """Protect a file, or each file below a folder that a rule names; give how many there are."""
    if os.path.isfile(path):
        protected.add(os.path.basename(path), _read(path))
        return 1
    if not os.path.isdir(path):
        raise BadArgumentError(
            f"{path} does not exist; name a file or a folder whose text is secret"
        )
    count = 0
    for below in _files_below(path):
        if rule is None or rule.hits(below):
            protected.add(below, _read(os.path.join(path, below)))
            count += 1
            if count > _MAX_FILES:
                raise BadArgumentError(f"{path} has over {_MAX_FILES} files; name fewer")
    return count


def _files_below(root: str) -> Iterator[str]:
    """Paths of files below a folder, by a link too; a link to a folder is not followed."""

    def fail(error: OSError) -> None:
        raise BadArgumentError(f"{error.filename} cannot be read: {error.strerror}") from error

    for folder, inner, names in os.walk(root, onerror=fail):
        left = {".git", EVIDENCE} if os.path.basename(folder) == FOLDER else {".git"}
        inner[:] = sorted(set(inner) - left)  # what was kept of sessions is nobody's secret
        for name in sorted(names):
            full = os.path.join(folder, name)
            if os.path.isfile(full):
                yield os.path.relpath(full, root)


def _read(path: str) -> str:
    try:
        data = read_plain_file(path, _MAX_FILE, named=True)
    except OSError as error:
        raise BadArgumentError(f"{path} cannot be read: {error.strerror}") from None
    if len(data) > _MAX_FILE:
        size = _MAX_FILE // 1024 // 1024
        raise BadArgumentError(f"{path} has over {size} MiB; name smaller files to protect")
    return _decoded(data)


def _decoded(data: bytes) -> str:
    code = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    return data.decode(code, "replace")
