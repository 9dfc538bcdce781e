"""Globs of paths that are not to be read, and whether a path, or a pattern of one, fits. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING
from unicodedata import category, normalize

from tripod.ledger.errors import MissingExtraError
from tripod.verify.sessions.programs import UNKNOWN_PART as ANY
from tripod.verify.sessions.programs import names as words

if TYPE_CHECKING:
    from wcmatch.glob import WcMatcher

    _Matcher = re.Pattern[str] | WcMatcher[str]


class NeverRule:
    """Paths that are not to be read, as globs; ``but`` are those that may be all the same.

    A glob without a slash is of a file's name, wherever it lies. One with a slash is of the end of
    a path, from any folder on; one that begins with a slash, of a whole path. A glob that fits a
    folder means all that lies in it.

    >>> rule = NeverRule(["chat/**", ".env*"], ["*.example"])
    >>> [rule.hits(path) for path in ("/w/chat/a.md", "/w/.env.example", "/w/.env", "/w/a/chat")]
    [True, False, True, False]
    """

    def __init__(self, never: Sequence[str], but: Sequence[str] = ()) -> None:
        self.never, self.but = tuple(map(_plain, never)), tuple(map(_plain, but))
        self._instructions: dict[str, bool] = {}
        drives = map(_with_drive, self.never)
        self._of_drives = [one for one in drives if _DRIVE.match(one)]
        self._has_whole = any(one.startswith("/") for one in self.never)
        self._has_colon = any(_DRIVE.match(one.lstrip("/")) for one in self.never)

    @cached_property
    def _compiled(self) -> tuple[_Matcher, _Matcher | None]:
        one, *others = (_compiled(patterns) for patterns in (self.never, self.but) if patterns)
        return one, others[0] if others else None

    @cached_property
    def _literals(self) -> tuple[list[str], list[str]]:
        """What a path has at least of one of the globs, to be hit; and folded, to be hit maybe."""
        return list(map(_literal, self.never)), [_literal(_folded(one)) for one in self.never]

    def hits(self, path: str) -> bool:
        """Whether a path is one that is not to be read."""
        if not self.may_be_named(path):
            return False  # as nearly all are
        never, but = self._compiled
        path = path if path.startswith("/") else f"/{path}"
        return bool(never.match(path)) and not (but is not None and but.match(path))

    def may_be_named(self, text: str) -> bool:
        """Whether a text has what each path has that is not to be read."""
        return any(literal in text for literal in self._literals[0])

    def excepts(self, path: str) -> bool:
        """Whether an exact path is one that may be read although ``never`` means it."""
        but = self._compiled[1]
        return but is not None and bool(but.match(path if path.startswith("/") else f"/{path}"))

    def hits_instructions(self, cwd: str) -> bool:
        """Whether a program that works in a folder may take such a file for instructions.

        They lie in that folder, in one above it, or in the user's home folder.
        """
        if cwd in self._instructions:
            return self._instructions[cwd]
        names = {glob.rpartition("/")[2] for glob in self.never if glob.endswith(_SCOPED)}
        names = {f".github/instructions/{name}" for name in (*names, f"\ufffd{_SCOPED}")}
        paths, folder = list(_INSTRUCTIONS_AT_HOME), f"{posixpath.normpath(cwd) if cwd else ''}/"
        while folder:
            folder = folder.rpartition("/")[0]
            paths += [f"{folder}/{name}" for name in (*_INSTRUCTIONS, *names)]
        found = any(
            self.may_hit(path, (), recursive=False) and not self.excepts(path) for path in paths
        )
        if len(self._instructions) < _MAX_FOLDERS:
            self._instructions[cwd] = found
        return found

    def may_lose(self, folder: str, copied: str) -> bool:
        """Whether a file below a folder may be hit there and not in a copy of the folder.

        The copy has the same names below it. So a glob misses it only if it begins with a name on
        the way to the folder, or an exception with one on the way to the copy.
        """
        return any(
            _begins_within(glob, path)
            for globs, path in ((self.never, folder), (self.but, f"{folder}/{copied}"))
            for glob in globs
        )

    def is_far(self, path: str) -> bool:
        """Whether a path has nothing of what each has that may be hit: nearly all are so.

        An accent behind a name makes another letter of its last one when both are folded, and a
        glob that is held against the path as it stands may end between the two.
        """
        if self._of_drives or self.may_be_named(path) or _ODD.search(path):
            return False
        folded = _folded(path)
        return not any(literal in folded for literal in self._literals[1])

    def may_hit(self, path: str, roots: Iterable[str], *, recursive: bool) -> bool:
        """Whether a pattern, or what lies below a folder, may be a path that is not to be read.

        ``roots`` are folders that globs with a slash begin in; without one, they begin anywhere.
        """
        if not recursive and self.is_far(path):
            return False  # as nearly all are
        inner = (path[len(root) :] for root in roots if _lies_in(path, root))
        if self._has_whole and any(map(self.hits, inner)):
            return True  # in other tools such a glob begins in the project
        has_colon = ":" in path[:3]
        if has_colon and _UNSEEN.search(path):
            path = _UNSEEN.sub("", path)
            if self.hits(path):
                return True
        if self._of_drives and (self._has_colon or has_colon) and self._may_be_of_drive(path):
            return True
        tilde, _, rest = path.partition("/")
        homes = [f"/*/{rest}", f"/*/*/{rest}"] if tilde == "~" else []
        if tilde[:1] == "~":
            path = f"/~/{rest}" if homes else f"/{ANY}/{rest}"
        path, *roots = (f"/{one}" if one[1:3] == ":/" else one for one in (path, *roots))
        path = _PROC.sub(f"/{ANY}", path if path.startswith("/") else f"/{ANY}/{path}")
        path = path.rstrip("/")
        if recursive and not all("/" in pattern for pattern in self.never):
            return True  # a name may lie in any folder
        wanted = [path, "/".join(_spread(name) for name in path.split("/"))]
        wanted += [f"{each}/**" for each in wanted] if recursive else []
        wanted = list(map(_folded, dict.fromkeys(wanted)))
        homes = [f"{each.rstrip('/')}/**" for each in homes] if recursive else homes
        near = recursive and any(_lies_in(root, path) or _lies_in(path, root) for root in roots)
        for pattern in self.never:
            if pattern[0] == "/" and any(
                _meet(each, _folded(one)) for each in _below(pattern) for one in homes
            ):
                return True
            places = [_anywhere(pattern)]
            if "/" in pattern and not pattern.startswith("/") and near and "*" not in path:
                places = [posixpath.join(root, pattern) for root in roots]
            if any(
                _meet(each, one) for place in places for each in _below(place) for one in wanted
            ):
                return True
        return False

    def _may_be_of_drive(self, path: str) -> bool:
        """Whether a path is, on a drive of Windows, one that a glob means: written otherwise."""
        other = _with_drive(path)
        return bool(_DRIVE.match(other)) and any(
            _meet(each, _folded(other)) for glob in self._of_drives for each in _below(glob)
        )


_INSTRUCTIONS = words(
    """AGENTS.md AGENTS.override.md CLAUDE.md CLAUDE.local.md GEMINI.md QWEN.md CONTEXT.md
    .agents.md .claude/CLAUDE.md .github/copilot-instructions.md"""
)
_INSTRUCTIONS_AT_HOME = words(
    """~/.codex/AGENTS.md ~/.codex/AGENTS.override.md ~/.copilot/copilot-instructions.md
    ~/.claude/CLAUDE.md ~/.gemini/GEMINI.md ~/.qwen/QWEN.md ~/.config/opencode/AGENTS.md"""
)
_MAX_FOLDERS = 1_000
_SCOPED = ".instructions.md"
"""Files that programs take for instructions; of Copilot, those for some files end so."""

_ODD = re.compile(r"[*?\[{\\(:]|^~|^[^/]|^/(?:proc|dev)/")
"""What makes a path another than it is written, or a pattern of several."""


def _literal(pattern: str) -> str:
    """The longest plain part of a glob, which stands in each path that it fits.

    >>> _literal("**/secrets/*.json"), _literal(".env*"), _literal("*.{pem,key}")
    ('secrets', '.env', '')
    """
    if re.search(r"[\[{\\(]", pattern):
        return ""
    return max(re.split(r"[*?/]+", pattern), key=len)


def _compiled(patterns: Sequence[str]) -> _Matcher:
    """What matches any of some globs, or what lies below it, against a whole path."""
    if all(map(_SIMPLE.fullmatch, patterns)):  # then it needs no extra, and no import
        whole = [_expression(each[1:]) for each in patterns if each.startswith("/")]
        ends = [_expression(each) for each in patterns if not each.startswith("/")]
        whole += [f"(?:[^/]+/)*(?:{'|'.join(ends)})"] if ends else []
        return re.compile(rf"(?s:/(?:{'|'.join(whole)})(?:/.+)?)\Z")
    try:
        from wcmatch import glob
    except ImportError:
        raise MissingExtraError(
            "globs with [, { or a backslash need the extra `sessions`:"
            " pip install 'tripod-ledger[sessions]'"
        ) from None
    parts = [part for each in map(_anywhere, patterns) for part in (each, f"{each}/**")]
    flags = glob.GLOBSTAR | glob.DOTGLOB | glob.BRACE | glob.FORCEUNIX
    return glob.compile(parts, flags=flags, limit=1000 + 2 * len(patterns))


_SIMPLE = re.compile(r"[^\\\[{]*")
_STARS = {"*": "[^/]*", "?": "[^/]"}


def _expression(pattern: str) -> str:
    """A regular expression for a glob of ``*``, ``?`` and names ``**``.

    >>> _expression("**/a*/**")
    '(?:[^/]+/)*a[^/]*/.+'
    """
    *names, last = pattern.split("/")
    each = "".join("(?:[^/]+/)*" if name == ANY else f"{_name(name)}/" for name in names)
    return f"{each}{'.+' if last == ANY else _name(last)}"


def _name(name: str) -> str:
    return "".join(_STARS.get(letter) or re.escape(letter) for letter in name)


_PROC = re.compile(r"^/(?:proc/[^/]+/(?:cwd|root|fd)|dev/fd)(?=/|$)")


def _plain(pattern: str) -> str:
    """A glob as paths are written: without ``~/``, ``./``, ``..``, and slashes too many.

    >>> _plain("./chat//"), _plain("~/.ssh/**"), _plain("/w/x/../chat")
    ('chat', '.ssh/**', '/w/chat')
    """
    return re.sub("^//", "/", posixpath.normpath(pattern.removeprefix("~/")))


_DRIVE = re.compile("[A-Za-z]:(?=/|$)")
_MOUNT = re.compile("^/(?:mnt/|cygdrive/)?([A-Za-z])(?=/|$)")
_UNSEEN = re.compile(r"(?::[^/:]*)?:\$DATA$|[. ]+(?=/|$)", re.IGNORECASE)
"""What Windows takes off a name: the stream that has a file's text, dots and blanks at the end."""


def _with_drive(path: str) -> str:
    """A path with its drive, as two shells for Windows write it without a colon.

    >>> _with_drive("/mnt/c/w/.env"), _with_drive("/C:/w"), _with_drive("/src/c")
    ('c:/w/.env', 'C:/w', '/src/c')
    """
    return path[1:] if _DRIVE.match(path, 1) else _MOUNT.sub(r"\1:", path, count=1)


def refusal_of(pattern: str) -> str:
    """Why a glob fits no path, or perhaps not the paths that it was written for; '' if it may do.

    >>> refusal_of("chat/**"), refusal_of(" .env")
    ('', 'it begins or ends with a blank')
    """
    if not pattern or pattern != pattern.strip():
        return "it begins or ends with a blank" if pattern else "it is empty"
    if any(category(char) in ("Cc", "Cf") and char not in _JOINERS for char in pattern):
        return "it has a character that nobody sees: type it anew"
    if pattern[0] == "!":
        return "it begins with !; name exceptions on their own"
    if _ADDRESS.match(pattern):
        return "it is the address of a page or a file; write a path"
    if _BACKSLASHES.search(pattern):
        return "it has a backslash: write slashes, and [*] for a star that is part of a name"
    if pattern[0] == pattern[-1] and pattern[0] in "'\"`":
        return (
            "it has quotes of its own: write it without, or in the quotes that your shell takes off"
        )
    if pattern[0] == "^" or pattern[-1] == "$":
        return "it is written as a regular expression: write a glob (*.pem)"
    bare = _ANY_CLASS.sub("", pattern)
    if "[" in bare or bare.count("{") != bare.count("}"):
        return (
            "it has a [, { or } without its other half: write [[], [{] or [}] for the sign itself"
        )
    flat = _PICK.sub("", bare)
    parts = _LIST.split(flat)
    is_list = len(parts) > 1 and all(map(_LIKE_A_GLOB.search, parts))
    if "|" in bare or is_list or _SEVERAL.search(flat):
        return "it seems to be several: give each on its own; [ ] and [,] are part of a name"
    if _UNREPLACED.match(pattern):
        return "it begins with a variable or a user's name, which stay as they are: write ~/ or /"
    plain = _plain(pattern)
    if plain in (".", "/", ".."):
        return "it names no file: write ** for every file"
    if plain.startswith(("../", "/../")):
        return "it begins with ..: write the path from the folder of the project, or from /"
    return ""


def is_excepted(never: Sequence[str], but: Sequence[str]) -> bool:
    """Whether exceptions leave nothing of globs, so far as exceptions without a choice tell that.

    >>> is_excepted([".env*", "*.{pem,key}"], ["*"]), is_excepted([".env*"], [".env.*"])
    (True, False)
    """
    but = [one for one in but if _SIMPLE.fullmatch(one)]
    paths = (path for one in never for each in _expanded(_plain(one)) for path in _like(each))
    return bool(but) and all(map(NeverRule(but).hits, paths))


def _like(glob: str) -> Iterator[str]:
    """Paths that a glob fits, with nothing for each star or with much, in few folders or in many.

    >>> [path.replace(_OTHER, "o") for path in _like("/a/**/*.?")][0]
    '/a/.o'
    """
    long = _OTHER * 40
    for star, folders in (("", ""), (long, f"{long}/" * 9)):
        *above, last = (
            name if name == ANY else name.replace("*", star).replace("?", _OTHER) or _OTHER
            for name in glob.removeprefix("/").split("/")
        )
        path = "".join(folders if name == ANY else f"{name}/" for name in above)
        path += long if last == ANY else last
        places = ("/",) if glob[0] == "/" else ("/", f"/{long}/", f"/{long}/{long}/{long}/")
        yield from (f"{place}{path}" for place in places)


_OTHER = "\ufffd"  # a letter that only a wildcard fits


_JOINERS = "\u200c\u200d"  # parts of words and of pictures
_ADDRESS = re.compile(r"(?:[A-Za-z][\w+.-]*:/|file:|mailto:)/")
_UNREPLACED = re.compile(r"(?:\$[A-Z_]+|\$\{\w+\}|%[A-Z_]+%)(?:/|$)|~[A-Za-z][\w.-]*/")
_ANY_CLASS = re.compile(r"\[[!^]?\]?[^\]/]*\]")
_PICK = re.compile(r"\{(?:[^{}]|\{[^{}]*\})*\}")
_SEVERAL = re.compile(r"[,;]\s*~?/|(?:^|/)\*?\.[\w*?.-]+[,;]\s*\w\w")  # but .bashrc,v is of RCS
_LIST = re.compile(r"\s*[\s,;|]\s*")
_LIKE_A_GLOB = re.compile(r"[*?]|^\.\w|\.\w{1,8}$")
_BACKSLASHES = re.compile(r"[A-Za-z]:\\|\\[\w.*~\\-]|\\$")


def _folded(path: str) -> str:
    """A path as a file system sees it that takes capitals, and forms of an accent, for the same."""
    return path if path.isascii() and path.islower() else normalize("NFC", path).casefold()


def _lies_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _spread(name: str) -> str:
    """A name in which only the shell knew a part, as the path that this may have been."""
    return name if name == ANY else name.replace(ANY, f"*/{ANY}/*")


def _anywhere(pattern: str) -> str:
    return pattern if pattern.startswith("/") else f"/**/{pattern}"


@lru_cache(maxsize=1024)
def _below(place: str) -> tuple[str, ...]:
    """A place as patterns, and all that lies below it."""
    places = _braces(place)
    return tuple(map(_folded, (*places, *(f"{each}/**" for each in places))))


@lru_cache(maxsize=4096)
def _meet(one: str, other: str) -> bool:
    """Whether some path fits both patterns; a class or a choice counts as anything.

    >>> _meet("/w/chat/**", "/w/**"), _meet("/**/.env*", "/w/*/.env"), _meet("/w/a", "/w/b*")
    (True, True, False)
    """
    parts, others = _parts(one), _parts(other)
    reached = {(0, 0)}
    todo = [(0, 0)]
    while todo:
        at, beside = todo.pop()
        if at == len(parts) and beside == len(others):
            return True
        mine = parts[at] if at < len(parts) else None
        yours = others[beside] if beside < len(others) else None
        steps = []
        if mine == "**":
            steps += [(at + 1, beside)] + ([(at, beside + 1)] if yours is not None else [])
        if yours == "**":
            steps += [(at, beside + 1)] + ([(at + 1, beside)] if mine is not None else [])
        if mine is not None and yours is not None and "**" not in (mine, yours):
            steps += [(at + 1, beside + 1)] if _names_meet(mine, yours) else []
        todo += [step for step in steps if step not in reached]
        reached.update(steps)
    return False


def _begins_within(glob: str, path: str) -> bool:
    """Whether the first name of a glob may be one of a path, so that it fits below it by that.

    >>> [_begins_within(glob, "/w/src") for glob in ("chat/**", "src/a", "/w/chat", "*/a", ".env*")]
    [False, True, True, True, False]
    """
    first, *_ = _folded(glob.removeprefix(f"{ANY}/")).split("/")
    names = _parts(_folded(path))
    return first in ("", ANY) or any(
        name == ANY or _names_meet(_loose(first), name) for name in names if name
    )


def _braces(pattern: str) -> set[str]:
    """A pattern for each choice, or each letter of a class.

    >>> sorted(_braces("/{a,b}/[xy]")), sorted(_braces("/{a/b,c}"))
    (['/a/x', '/a/y', '/b/x', '/b/y'], ['/a/b', '/c'])
    """
    found = set[str]()
    for each in _expanded(pattern):
        names = each.split("/")
        found.add("/".join(name if name == ANY else name.replace(ANY, "*") for name in names))
        found.add("/".join(map(_spread, names)))
    return found


def _expanded(pattern: str) -> list[str]:
    """A pattern without its choices and plain classes; with anything for what is no plain choice.

    >>> _expanded("{a,{b,c}}.[ch]"), _expanded("x{1..9}{a,b}")
    (['a.c', 'a.h', 'b.c', 'b.h', 'c.c', 'c.h'], ['x**'])
    """
    found, todo = dict[str, None](), [_CLASS.sub(_choice, pattern)]
    while todo and len(todo) + len(found) <= _MOST and not _ESCAPED.search(pattern):
        one = todo.pop()
        choice = _CHOICE.search(one)
        if choice is None:
            found[one] = None
            continue
        ways = choice[0][1:-1].split(",")
        if len(ways) == 1:
            break
        todo += [f"{one[: choice.start()]}{way}{one[choice.end() :]}" for way in ways]
    else:
        if not todo and not any("{" in one or "}" in one for one in found):
            return sorted(found)
    old = ""
    while old != pattern:
        old, pattern = pattern, _CHOICE.sub(lambda m: ANY if "/" in m[0] else "*", pattern)
    return [pattern]


def _choice(found: re.Match[str]) -> str:
    """The letters of a class as a choice.

    >>> _CLASS.sub(_choice, "*.[ch]"), _CLASS.sub(_choice, "[0-3a]"), _CLASS.sub(_choice, "[!a]")
    ('*.{c,h}', '{0,1,2,3,a}', '[!a]')
    """
    letters: list[str] = []
    for first, last in _RANGE.findall(found[1]):
        letters += map(chr, range(ord(first), ord(last or first) + 1))
    return f"{{{','.join(letters)}}}" if len(letters) > 1 else found[1]


_MOST = 200  # patterns of one glob; of more, a choice counts as anything
_ESCAPED = re.compile(r"[\\$]")
_CLASS = re.compile(r"\[((?:[a-z]-[a-z]|[A-Z]-[A-Z]|[0-9]-[0-9]|[A-Za-z0-9._])+)\]")
_RANGE = re.compile(r"(.)(?:-(.))?")
_CHOICE = re.compile(r"\{[^{}]*\}")


def _loose(name: str) -> str:
    name = re.sub(r"\\.", "?", name)
    return re.sub(
        r"\*+",
        "*",
        re.sub(
            r"\[[!^]?\]?(?:\[([:.=]).{,24}?\1\]|[^\]])*\]?|\{[^}]*\}?|[@!+]\([^)]*\)?", "*", name
        ),
    )


@lru_cache(maxsize=1024)
def _parts(pattern: str) -> list[str]:
    """The names of a path, and ``**``, in which a class or a choice is ``*``."""
    return [name if name == ANY else _loose(name) for name in pattern.split("/")]


def _names_meet(one: str, other: str) -> bool:
    """Whether some name fits both patterns of ``*`` and ``?``."""
    if one == other or not ("*" in one or "*" in other or "?" in one or "?" in other):
        return one == other
    reached = {(0, 0)}
    todo = [(0, 0)]
    while todo:
        at, beside = todo.pop()
        if at == len(one) and beside == len(other):
            return True
        mine = one[at] if at < len(one) else ""
        yours = other[beside] if beside < len(other) else ""
        steps = []
        if mine == "*":
            steps += [(at + 1, beside)] + ([(at, beside + 1)] if yours else [])
        if yours == "*":
            steps += [(at, beside + 1)] + ([(at + 1, beside)] if mine else [])
        if mine and yours and "*" not in (mine, yours):
            steps += [(at + 1, beside + 1)] if mine == yours or "?" in (mine, yours) else []
        todo += [step for step in steps if step not in reached]
        reached.update(steps)
    return False
