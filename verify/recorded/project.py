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
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import NamedTuple

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

_UPWARDS = frozenset(("opencode",))
"""Programs that also take such files from the folders above, up to the top of the repository."""

_OF_AGENTS = (
    *("agent/**/*.md", "agents/**/*.md", "command/**/*.md", "commands/**/*.md"),
    *("mode/**/*.md", "modes/**/*.md"),
)
_PERHAPS = {
    "opencode": tuple(f".opencode/{each}" for each in _OF_AGENTS),
    "gemini": (".gemini/system.md", ".gemini/agents/*.md", ".gemini/extensions/*/GEMINI.md"),
    "qwen": (".qwen/system.md", ".qwen/agents/*.md", ".qwen/extensions/*/QWEN.md"),
}
"""Files of which only the session could say whether they were used: of agents, of extensions."""

_OPENCODE = ("opencode.json", "opencode.jsonc")
_SETTINGS = {
    "opencode": (*_OPENCODE, *(f".opencode/{name}" for name in _OPENCODE)),
    "gemini": (".gemini/settings.json", ".gemini/extensions/*/gemini-extension.json"),
    "qwen": (".qwen/settings.json", ".qwen/extensions/*/qwen-extension.json"),
}
_PLUGINS = {"opencode": (".opencode/plugin/*", ".opencode/plugins/*")}
"""Programs of a project that a program runs, and that may add any text to the context."""

_AT_HOME = {
    "gemini": (".gemini/GEMINI.md",),
    "qwen": (".qwen/QWEN.md", ".qwen/AGENTS.md"),
    "opencode": (".config/opencode/AGENTS.md", ".claude/CLAUDE.md"),
}
"""Such files in the user's home folder, of programs that leave no record of them."""

_PERHAPS_AT_HOME = _PERHAPS | {
    "opencode": (*(f".config/opencode/{each}" for each in _OF_AGENTS), *_PERHAPS["opencode"])
}
_SETTINGS_AT_HOME = _SETTINGS | {
    "opencode": (
        *(f".config/opencode/{name}" for name in ("config.json", *_OPENCODE)),
        *(f".opencode/{name}" for name in _OPENCODE),
    )
}
_PLUGINS_AT_HOME = {
    "opencode": (".config/opencode/plugin/*", ".config/opencode/plugins/*", *_PLUGINS["opencode"])
}

_FILE_OF_PROMPT = re.compile(r"\{file:([^{}]+)\}")
_NO_JSON = re.compile(r'("(?>(?:\\.|[^"\\])*)(?:"|\Z))|//[^\n]*|/\*(?:.*?\*/|.*)', re.DOTALL)
_LAST_COMMA = re.compile(r'("(?>(?:\\.|[^"\\])*)(?:"|\Z))|,(?=\s*[}\]])', re.DOTALL)
_MAGIC = re.compile(r"[*?\[]")
_FILE = re.compile(r"\.\w{1,8}$|^\.{1,2}/")
_IMPORT = re.compile(r"(?:^|(?<=\s))@([^\s@`][^\s`]*)")
_MAX_FILE = 4 * 1024 * 1024
_MAX_FILES = 20_000
_MAX_WALKED = 200_000  # names in folders that a pattern goes through
_MAX_FOLDERS = 256  # on the way to a folder
_MAX_DEPTH = 5  # an import of an import ...
_MAX_HISTORY = 256 * 1024 * 1024  # bytes of all versions of all files
_MAX_SECONDS = 120.0


class _Named(NamedTuple):
    """A file, or a pattern of some, that settings name, in the project or ``at_home``.

    Not ``sure``: only the session could say whether it was used. ``needed``: it must be there.
    """

    pattern: str
    at_home: bool
    sure: bool = True
    needed: bool = True


@dataclass
class Project:
    """A folder with the files of a project, which stands for the folder that a session ran in.

    ``is_home``: it is the home folder of the user that the agent ran as, and no project.
    ``beside`` is the other of the two, if it is at hand: the settings of each name files of both.
    A snapshot of one moment has no earlier versions: it is made with ``has_history=False``.
    """

    root: str
    is_home: bool = False
    instructions: dict[str, str] = field(default_factory=dict)
    absent: list[str] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    has_history: bool = True
    perhaps: dict[str, str] = field(default_factory=dict)
    beside: Project | None = None
    _former: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    _walked: dict[tuple[str, int], list[str]] = field(default_factory=dict)

    def items(self, program: str, cwds: Iterable[str] = ()) -> Iterator[Item]:
        """What a program would have put into the context, each file as a text by its path.

        ``cwds`` are the folders that the sessions worked in, which may lie below this one.
        """
        self.instructions.clear()
        self.perhaps.clear()
        self.absent.clear()
        channel: Channel = "home" if self.is_home else "instructions"
        usual = (_AT_HOME if self.is_home else _INSTRUCTIONS).get(program, ())
        perhaps = (_PERHAPS_AT_HOME if self.is_home else _PERHAPS).get(program, ())
        named = [_Named(one, self.is_home, needed=False) for one in usual]
        named += [_Named(one, self.is_home, sure=False, needed=False) for one in perhaps]
        for one in (*named, *self._all_settings(program)):
            paths = list(self._matching(one.pattern))
            for path in paths:
                self._take(path, 0, sure=one.sure)
            if not paths and one.needed and one.pattern not in self.absent:
                self.absent.append(one.pattern)
        yield from self._below_it(program, cwds)
        for path, text in sorted(self.instructions.items()):
            yield Given(channel, 0, 0, text, named=path)
        for path, text in self._above(program):
            yield Given(channel, 0, 0, text, named=path)
        for path, text in sorted(self.perhaps.items()):
            if path not in self.instructions:
                yield Given(channel, 0, 0, text, named=path, sure=False)
        yield from () if self.is_home else self._earlier(program)
        for path in self.absent:
            what = f"{path}, which the instructions name, is not in the folder that was given"
            yield Gap("missing", 0, what, channel)
        for pattern in (_PLUGINS_AT_HOME if self.is_home else _PLUGINS).get(program, ()):
            for path in self._matching(pattern):
                yield Gap("opaque", 0, f"what the plugin {path[:80]} adds", channel)
        yield from self.gaps

    def _below_it(self, program: str, cwds: Iterable[str]) -> Iterator[Gap]:
        """Take instruction files on the way from this folder to those below that sessions had.

        OpenCode reads these, too. Of a project that lies elsewhere than the session's did, the ends
        of the paths tell what may have been the same folder.
        """
        if self.is_home or program not in _UPWARDS:
            return
        here = list(filter(None, os.path.realpath(self.root).split("/")))
        for cwd in cwds:
            path = os.path.normpath(cwd.replace("\\", "/"))
            parts = [name for name in path.split("/") if name not in ("", ".")][:_MAX_FOLDERS]
            sure = path.startswith("/") and parts[: len(here)] == here
            ends = (parts[at:] for at in range(len(parts)))
            same = (one for one in ends if os.path.isdir(os.path.join(self.root, *one)))
            end = parts[len(here) :] if sure else next(same, [])
            if ".." in end:
                continue
            for folder in ("/".join(end[:number]) for number in range(1, len(end) + 1)):
                for name in _INSTRUCTIONS[program]:
                    if os.path.isfile(os.path.join(self.root, folder, name)):
                        self._take(f"{folder}/{name}", 0, sure=sure)
                for name in _SETTINGS[program]:
                    if os.path.lexists(os.path.join(self.root, folder, name)):
                        what = f"what {folder}/{name} names, below the folder that was given"
                        yield Gap("missing", 0, what, "instructions")

    def is_of(self, folder: str) -> bool:
        """Whether a session that began in a folder may have worked in this project, by its name.

        A copy may lie anywhere, but has the name of the folder, or of one above it.
        """
        names = map(os.path.basename, (os.path.abspath(self.root), os.path.realpath(self.root)))
        return not {one.casefold() for one in names}.isdisjoint(folder.casefold().split("/"))

    def _above(self, program: str) -> Iterator[tuple[str, str]]:
        """Instruction files above the folder in its repository, which OpenCode reads, too."""
        place = os.path.realpath(self.root)
        top = repository_around(place)
        if self.is_home or not self.has_history or top is None or program not in _UPWARDS:
            return
        up = ""
        while place != top and place != os.path.dirname(place):
            place, up = os.path.dirname(place), f"{up}../"
            for name in _INSTRUCTIONS[program]:
                text = self._text(f"{up}{name}")
                if text is not None:
                    yield f"{up}{name}", text
            for name in _SETTINGS[program]:
                if os.path.lexists(os.path.join(place, name)):
                    self._lacks(f"what {up}{name} names, in a folder above the one that was given")

    def _earlier(self, program: str) -> Iterator[Item]:
        """What other versions of these files would have put there: whether it did is not known."""
        names, settings = _INSTRUCTIONS.get(program, ()), _SETTINGS.get(program, ())
        perhaps = _PERHAPS.get(program, ())
        if program not in self._former:
            ends = tuple(f"*/{name.replace('**/', '')}" for name in (*names, *settings, *perhaps))

            def is_named(path: str) -> bool:
                return any(fnmatchcase(f"/{path}", end) for end in ends)

            self._former[program] = list(self._versions(is_named)) if ends else []
        for path, text in self._former[program]:
            if any(fnmatchcase(path, each) for each in settings):
                found = self._settings(program, path, text)
                named = [one.pattern for one in found if not one.at_home]
            else:
                yield Given("instructions", 0, 0, text, sure=False)
                folder = os.path.dirname(path)
                imported = (one for match in _IMPORT.finditer(text) for one in _imported(match))
                named = [os.path.normpath(os.path.join(folder, one)) for one in imported]
            for one in named:
                if one not in self.instructions:
                    yield Given("instructions", 0, 0, "", named=one, sure=False)

    def _all_settings(self, program: str) -> Iterator[_Named]:
        """What the settings of the project, and those at home, name in this folder."""
        for one in (self, self.beside):
            table = _SETTINGS_AT_HOME if one is not None and one.is_home else _SETTINGS
            for pattern in table.get(program, ()) if one is not None else ():
                assert one is not None
                for name in one._matching(pattern):  # noqa: SLF001  it is another project
                    text = one._text(name)  # noqa: SLF001
                    for named in one._settings(program, name, text or ""):  # noqa: SLF001
                        if named.at_home == self.is_home:
                            yield named
                        elif self.beside is None and named.at_home and named.needed:
                            self.absent.append(f"~/{named.pattern}")

    def _settings(self, program: str, name: str, text: str) -> Iterator[_Named]:
        """What a file of settings, or of an extension, names.

        Source: the configuration pages of OpenCode, Gemini CLI and Qwen Code.
        """
        try:
            value = orjson.loads(_plain_json(text))
        except orjson.JSONDecodeError:
            self.absent.append(f"what {name} says (it is no JSON)")
            return
        value = value if isinstance(value, dict) else {}
        if value.get("plugin"):
            self.absent.append(f"what the plugins add that {name} has")
        folder, here = os.path.dirname(name), self.is_home
        for one in strings_of(value.get("instructions")):
            yield _Named(one.removeprefix("~/"), one.startswith("~/"))
        for one in strings_of([value.get(each) for each in ("agent", "mode", "command")]):
            for file in map(str.strip, _FILE_OF_PROMPT.findall(one)):
                inner = file if os.path.isabs(file) else os.path.join(folder, file)
                at_home = file.startswith("~/")
                yield _Named(file[2:] if at_home else inner, at_home or here, sure=False)
        for names in (value.get("contextFileName"), value.get("context")):
            for one in strings_of(names.get("fileName") if isinstance(names, dict) else names):
                if "/extensions/" in name:
                    yield _Named(f"{folder}/{one}", here, sure=False, needed=False)
                else:
                    yield _Named(f"**/{one}", at_home=False, needed=False)
                    yield _Named(f".{program}/{one}", at_home=True, needed=False)

    def _matching(self, pattern: str) -> Iterator[str]:
        """Paths below the project that a name or a pattern of instructions stands for."""
        parts = pattern.removeprefix("./").split("/")
        if (
            os.path.isabs(pattern)
            or pattern.startswith("~")
            or ".." in os.path.normpath(pattern).split("/")
        ):
            self.absent.append(pattern)
            return
        literal = next((at for at, one in enumerate(parts) if _MAGIC.search(one)), len(parts))
        if literal == len(parts):
            if os.path.lexists(os.path.join(self.root, pattern)):
                yield pattern
            return
        depth = _MAX_WALKED if "**" in parts else len(parts) - literal
        found = self._below("/".join(parts[:literal]), depth)
        found = sorted(path for path in found if _fits(path, parts))
        if len(found) > _MAX_FILES:
            self._lacks(f"more than {_MAX_FILES} files fit {pattern[:80]}")
        yield from found[:_MAX_FILES]

    def _below(self, base: str, depth: int) -> list[str]:
        """Paths of files below a folder, of each real folder once: links may lead in a circle.

        A folder is named by its own path where it has one, and by a link else. What is not read,
        because it is too much or nobody may, is said.
        """
        if (base, depth) in self._walked:
            return self._walked[base, depth]
        found = self._walked[base, depth] = []
        todo, links, seen, count = [(base, depth)], [(base, depth)][:0], set[tuple[int, int]](), 0
        while todo or links:
            folder, left = todo.pop() if todo else links.pop()
            full = os.path.join(self.root, folder)
            try:
                place = os.stat(full)
                if (place.st_dev, place.st_ino) in seen:
                    continue
                seen.add((place.st_dev, place.st_ino))
                entries = sorted(os.scandir(full), key=lambda one: one.name)
            except OSError as error:
                if not isinstance(error, FileNotFoundError | NotADirectoryError):
                    self._lacks(f"the folder {folder[:80]} cannot be read: {error.strerror}")
                continue
            count += len(entries)
            if count > _MAX_WALKED:
                self._lacks(f"below {folder[:80]} are more than {_MAX_WALKED} names")
                break
            for one in entries:
                path = os.path.join(folder, one.name)
                if not os.path.isdir(os.path.join(self.root, path)):
                    found.append(path)
                elif left > 1 and one.name != ".git":
                    (links if one.is_symlink() else todo).append((path, left - 1))
        return found

    def _text(self, path: str) -> str | None:
        try:
            data = read_plain_file(os.path.join(self.root, path), _MAX_FILE)
        except OSError:
            return None
        if len(data) > _MAX_FILE:
            self.absent.append(f"the end of {path}")
        return _decoded(data)

    def _take(self, path: str, depth: int, *, sure: bool) -> None:
        """Take the text of a file, and of those that it imports, which must be there if it is."""
        path = os.path.normpath(path)
        taken = self.instructions if sure else self.perhaps
        if path in taken:
            return
        if depth > _MAX_DEPTH:
            self.absent.append(path)
            return
        text = self._text(path)
        if text is None:
            if not os.path.isdir(os.path.join(self.root, path)):
                self.absent.append(path)
            return
        taken[path] = text
        for match in _IMPORT.finditer(text):
            absent = ""
            for named in _imported(match):
                inner = os.path.normpath(os.path.join(os.path.dirname(path), named))
                outside = named.startswith(("/", "~")) or inner.startswith("..")
                absent = named if outside or _FILE.search(named) else ""
                if not outside and os.path.lexists(os.path.join(self.root, inner)):
                    self._take(inner, depth + 1, sure=sure)
                    absent = ""
                    break
            if absent and sure:
                self.absent.append(absent)

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


def _imported(match: re.Match[str]) -> dict[str, None]:
    """The names that an import may have: an ``@`` may be part of one, or what follows it."""
    named = match[1].rstrip(".,;:)")
    return dict.fromkeys((named, named.split("@")[0].rstrip(".,;:)")))


def _plain_json(text: str) -> str:
    """Settings without the comments and last commas that these programs allow.

    >>> _plain_json('{"a": "//b", /* c */ "d": [1,], } // e').split()
    ['{"a":', '"//b",', '"d":', '[1]', '}']
    """
    text = _NO_JSON.sub(lambda match: match[1] or "", text)
    return _LAST_COMMA.sub(lambda match: match[1] or "", text)


def _fits(path: str, parts: Sequence[str]) -> bool:
    """Whether a path fits the segments of a pattern, of which ``**`` are any number of folders.

    >>> [_fits(path, ["a", "**", "*.md"]) for path in ("a/x.md", "a/b/c/x.md", "a/b/x.py", "x.md")]
    [True, True, False, False]
    """

    def here(places: Iterable[int]) -> set[int]:
        found = set(places)
        for at, part in enumerate(parts):
            if at in found and part == "**":
                found.add(at + 1)
        return found

    places = here([0])
    for name in path.split("/"):
        ahead = (at for at in places if at < len(parts))
        places = here(
            at if parts[at] == "**" else at + 1
            for at in ahead
            if parts[at] == "**" or fnmatchcase(name, parts[at])
        )
    return len(parts) in places
