"""Reads the history of a git repository by its plumbing, as one reads a stranger's disk.

Git runs in an empty git directory of ours, which borrows the repository's objects alone: there is
no setting, hook, attribute, alias, graft, replacement, reflog or remote that could name a program,
an encoding or another work tree, and the same holds for the environment. HEAD, refs and reflogs we
read ourselves (``tripod.verify.anchors.git_folder``); of the settings a few are read as text.
Answers are bounded and binary, paths are literal and stand after ``--``. Nothing is written by
reading; who writes objects and refs (``tripod.trust.anchor``) runs git in the same place.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from hashlib import sha1, sha256
from typing import IO, TYPE_CHECKING, NamedTuple, Self

from tripod.ledger import GitError
from tripod.ledger.files import make_scratch_folder, open_nameless_file, remove_folder
from tripod.ledger.locator import git_program
from tripod.verify.anchors import git_folder

if TYPE_CHECKING:
    from tripod.ledger.tlog.trailer import Trailer

MAX_BLOB = 256 * 1024 * 1024
_MAX_ANSWER = 256 * 1024 * 1024
_MAX_LINE = 64 * 1024
_MAX_LOGS = 2000  # names of a reflog that are looked at
# Texts, which ``re`` compiles when they are first used: a pull of nothing new uses none of them.
_HEX = "[0-9a-f]{40}|[0-9a-f]{64}"
_ANSWER = rb"([0-9a-f]{40}|[0-9a-f]{64}) (blob|commit|tree|tag) ([0-9]{1,18})\n"
_REVISION = r"([A-Za-z0-9_][A-Za-z0-9_./+-]*)((?:[~^][0-9]{0,6})*)"
_ABBREVIATED = "[0-9a-f]{4,64}"
_PERSON = rb"(?s)(.*?) ?(-?[0-9]+) [-+][0-9]+"
_RECORDS = ("refs/tripod/", "refs/tripod-remotes/")
_KNOWN = ("noop", "noop-v1", "partialclone", "preciousobjects", "worktreeconfig",
          "relativeworktrees", "compatobjectformat")  # fmt: skip
"""Extensions of a repository that change nothing about how its objects and refs are read."""
_ENVIRONMENT = {
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_NO_CONFIGURATION = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "HOME": os.devnull,
}
_CONFIG = """\
[core]
\trepositoryformatversion = 1
\tbare = true
\thooksPath = /dev/null
\tattributesFile = /dev/null
\texcludesFile = /dev/null
\tfsmonitor = false
\tcommitGraph = false
\tmultiPackIndex = false
[extensions]
\tobjectFormat = {format}
"""
# The commit-graph and the index over packs are caches that nothing binds to the objects.


class Commit(NamedTuple):
    """A commit's full name, its parents', its author, and its own time (seconds since 1970)."""

    name: str
    parents: tuple[str, ...]
    author: str
    seconds: int


class FileChange(NamedTuple):
    """How a commit's file differs from that of one of its parents.

    ``old`` and ``new`` name the bytes; '' where there is no such file. ``regular``: the new one is
    a plain file.
    """

    commit: Commit
    path: str
    old: str
    new: str
    regular: bool


class Repository:
    """The git repository that a path lies in; a context, since it keeps a reader of blobs open."""

    def __init__(self, path: str, seconds: float | None = None) -> None:
        """Find it above the folder of ``path``, which need not be there (any more).

        ``seconds`` is the limit, see ``limit``.

        Raises:
            GitError: git is not installed, there is no repository with a work tree, it is another
                user's, or what stands there is not read by us.
        """
        place = git_folder.find(path)
        if place is None:
            raise GitError(f"{path}: there is no git repository around it")
        self.place = place
        self.top = place.top
        self._git = git_program() or ""
        if not self._git:
            raise GitError(
                "git cannot be run: it is on no folder of the PATH; install it, or mend the PATH"
            )
        self._objects = os.path.join(self.place.common, "objects")
        self._reader: subprocess.Popen[bytes] | None = None
        self._watch: _Watch | None = None
        self.is_apart = False
        """Whether git writes objects and refs into our directory alone."""
        self.folder = make_scratch_folder("tripod-git-")
        try:
            self.limit(seconds)
            self._begin()
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        """Make the git directory that git runs in."""
        for name in ("refs", "objects"):
            os.mkdir(os.path.join(self.folder, name))
        self._put("HEAD", b"ref: refs/heads/none\n")
        self._put("config", _CONFIG.format(format="sha1").encode())
        self._own()
        try:
            problem = git_folder.git_store_problem(self.place)
        except (OSError, ValueError) as error:  # a link to itself, a NUL in a name
            problem = f"{self.top}: its objects cannot be looked at: {error}"
        if problem is not None:
            raise GitError(f"{problem}: the repository is not read")
        shallow = git_folder.read_git_shallow(self.place)
        self.shallow = bool(shallow)
        if shallow:
            self._put("shallow", shallow)
        settings = self.settings
        version = settings.get("core.repositoryformatversion", ("0",))[-1]
        kind = "sha1"
        for key, values in settings.items():
            name = key.removeprefix("extensions.")
            value = values[-1].lower()
            if name == key or name in _KNOWN or (name, value) == ("refstorage", "files"):
                continue
            if name == "objectformat" and value in ("sha1", "sha256") and version == "1":
                kind = value
                continue
            message = f"{self.top}: the repository has {name} = {values[-1]}, which is not read"
            raise GitError(f"{message} here: a clone with git's usual format can be judged")
        if version not in ("0", "1"):
            raise GitError(f"{self.top}: its format has version {version}, which is not read here")
        self._put("config", _CONFIG.format(format=kind).encode())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the reader of blobs, and remove what git ran in."""
        self.limit(None)
        with suppress(OSError):  # a git that was ended may still be at work in it
            remove_folder(self.folder)

    # What it names -----------------------------------------------------------------------------

    def lend_refs(self) -> None:
        """Let git in our directory see the repository's refs, and move them with its own locks."""
        common = self.place.common
        if not (self.is_apart or os.path.islink(f"{self.folder}/refs")):
            remove_folder(f"{self.folder}/refs")
            for name in ("refs", "packed-refs", "logs"):
                if os.path.lexists(f"{common}/{name}"):
                    os.symlink(f"{common}/{name}", f"{self.folder}/{name}")

    def forget_refs(self) -> None:
        """Read the refs anew when they are asked for next: git moved some."""
        self.__dict__.pop("refs", None)

    @cached_property
    def refs(self) -> git_folder.Refs:
        """All that the repository names (GitError: it cannot be read)."""
        found = git_folder.read_git_refs(self.place)
        if self.is_apart:
            listed = self.ask("for-each-ref", "--format=%(refname) %(objectname)")
            lines = os.fsdecode(listed).splitlines()
            found.refs.update((name, to) for name, _, to in (line.partition(" ") for line in lines))
        return found

    @cached_property
    def settings(self) -> Mapping[str, tuple[str, ...]]:
        """The repository's own settings as texts, without what they include; none is in force."""
        config = git_folder.read_git_config(self.place)
        if (plain := git_folder.plain_git_settings(config)) is not None:
            return plain
        self._put("theirs", config)
        said = self.ask("config", "--file", "theirs", "--no-includes", "--null", "--list")
        return git_folder.listed_git_settings(said)

    def name_of(self, path: str, *, link: bool = False) -> str:
        """A path, which need not be there, from the repository's top, with forward slashes.

        Raises:
            GitError: it lies outside, or holds a line break; a folder above it is a symbolic link,
                or it is one itself, unless ``link`` allows that.
        """
        here = os.path.join(os.path.realpath(os.path.dirname(os.path.abspath(path))), "")
        top = os.path.join(os.path.realpath(self.top), "")
        if not here.startswith(top) or "\n" in path:
            raise GitError(f"{path} is no path inside the repository {self.top}")
        place = git_folder.find(path)
        if place is None or not os.path.samefile(place.top, self.top):
            raise GitError(f"{path} lies in another repository than {self.top}")
        if os.path.islink(path) and not link:
            raise GitError(f"{path} is a symbolic link: git keeps no history of what it leads to")
        return here[len(top) :] + os.path.basename(os.path.abspath(path))

    def tip(self, revision: str) -> str | None:
        """The commit of HEAD, or of a ref by its full name; None where nothing bears that name.

        GitError: it names an object that is missing.
        """
        name = self.refs.head if revision == "HEAD" else self.refs.refs.get(revision)
        return next(iter(self._commits_of([name], strict=True)), None) if name else None

    def tips(self, names: Iterable[str]) -> dict[str, str]:
        """The commits of refs by their full names; a ref that leads to no commit is left out."""
        refs = {name: self.refs.refs[name] for name in names if name in self.refs.refs}
        given = "".join(f"{named}^{{commit}}\n" for named in refs.values()).encode()
        asked = ("cat-file", "--batch-check=%(objectname) %(objecttype)")
        said = self.ask(*asked, given=given).decode("ascii", "replace") if given else ""
        lines = zip(refs, said.split("\n"), strict=False)
        return {ref: line.split(" ")[0] for ref, line in lines if line.endswith(" commit")}

    def resolve(self, revision: str) -> str | None:
        """The commit that a revision names, as ``main``, ``HEAD~3`` or ``5a74209``; None: none.

        GitError: several refs have that name, and differ; git would take the tag of a stranger.
        """
        if (parts := re.fullmatch(_REVISION, revision)) is None:
            return None
        base, steps = parts[1], parts[2]
        fronts = ("", "refs/", "refs/tags/", "refs/heads/", "refs/remotes/")
        refs = {one + base: to for one in fronts if (to := self.refs.refs.get(one + base))}
        if base == "HEAD" or re.fullmatch(_HEX, base):  # as for git, no ref comes before these
            refs = {base: self.refs.head or "" if base == "HEAD" else base}
        if len({*refs.values()}) > 1:
            raise GitError(f"several refs have this name: {', '.join(refs)}; write one of those")
        object_name = next(iter(refs.values()), base if re.fullmatch(_ABBREVIATED, base) else "")
        with suppress(GitError):  # it is no commit, or several objects begin so
            asked = f"{object_name}{steps}^{{commit}}"
            said = self.ask("rev-parse", "--verify", "--quiet", "--end-of-options", asked)
            return said.decode("ascii", "replace").strip()
        return None

    @property
    def at(self) -> str:
        """Where it stands, in words: the branch and commit that are checked out."""
        head = self.tip("HEAD")
        commit = "nothing committed" if head is None else f"commit {head[:12]}"
        shallow = " (a shallow clone)" if self.shallow else ""
        return f"{self.refs.branch or 'no branch'}, {commit}{shallow}"

    def upstream(self) -> str | None:
        """The full name of the remote branch that this one follows; None if absent."""
        branch = self.refs.branch or ""
        short = branch.removeprefix("refs/heads/")
        remote = "".join(self.settings.get(f"branch.{short}.remote", ())[-1:])
        merge = "".join(self.settings.get(f"branch.{short}.merge", ())[-1:])
        if not merge:
            return None
        fetched = self.settings.get(f"remote.{remote}.fetch", ())
        for spec in ("refs/*:refs/*",) if remote == "." else fetched:
            source, _, target = spec.removeprefix("+").partition(":")
            head, star, tail = source.partition("*")
            if star and merge.startswith(head) and merge.endswith(tail) and "*" in target:
                name = target.replace("*", merge[len(head) : len(merge) - len(tail)], 1)
            elif source == merge:
                name = target
            else:
                continue
            if name in self.refs.refs:
                return name
        return None

    def everything(self) -> list[str]:
        """Every commit that a ref, HEAD or reflog names.

        GitError: a ref or HEAD names an object that is missing; a reflog may.
        """
        refs = self.refs
        found = self._commits_of([*refs.refs.values(), *refs.heads], strict=True)
        logged = [tip for tips in refs.logs.values() for tip in tips]
        return list(dict.fromkeys([*found, *self._commits_of(logged, strict=False)]))

    def folders_but(self, path: str) -> str | None:
        """What HEAD keeps in place of a folder on the way to ``path``, in words; None: nothing."""
        head = self.tip("HEAD")
        parts = path.split("/")
        for count in range(1, len(parts) + 1) if head else ():
            name = "/".join(parts[:count])
            said = self.ask("ls-tree", "-z", "--full-tree", head or "", "--", name)
            mode = said[:6]
            if said and mode != b"040000":
                what = {b"120000": "a symbolic link", b"160000": "a submodule"}.get(mode, "a file")
                return f"{name} is {what} in the commit that is checked out"
        return None

    # History -----------------------------------------------------------------------------------

    def changes(self, paths: Iterable[str], commits: Iterable[str]) -> list[FileChange]:
        """Every change of the files in the history of ``commits``, parents before children.

        Nothing is simplified: both sides of each merge are walked and compared.
        """
        names = tuple(paths)
        given = "".join(f"{name}\n" for name in commits).encode()
        walk = ("rev-list", "--topo-order", "--reverse", "--full-history", "--stdin")
        listed = self.ask(*walk, "--", *names, given=given) if given else b""
        if not listed:
            return []
        said = self.ask(
            "diff-tree", "--stdin", "--always", "-m", "-r", "--root", "--raw", "-z", "--no-abbrev",
            "--no-renames", "--no-ext-diff", "--no-textconv", "--", *names,
            given=listed,
        )  # fmt: skip
        # Fields end in NUL: the name of each commit, and for each of its changes modes and a path.
        rows: list[tuple[str, str, str, str, bool]] = []
        seen: set[str] = set()
        fields = iter(said.split(b"\x00")[:-1])
        commit = ""
        for field in fields:
            if not field.startswith(b":"):
                commit = field.decode("ascii")
                seen.add(commit)
                continue
            _, mode, old, new, _ = field[1:].decode("ascii").split(" ")
            path = next(fields).decode("utf-8", "surrogateescape")
            gone, born = not new.strip("0"), not old.strip("0")
            versions = ("" if born else old, "" if gone else new)
            rows.append((commit, path, *versions, mode.startswith("100")))
        for name in listed.split():
            if name.decode() not in seen:  # git passes over a commit that it cannot believe
                raise _altered(name)
        read = {one: self.commit(one) for one in dict.fromkeys(row[0] for row in rows)}
        return [FileChange(read[row[0]], *row[1:]) for row in rows]

    def commit(self, name: str) -> Commit:
        """One commit by its name (GitError: it is missing, or does not hash to its name)."""
        data = self._object(name, b"commit")
        if data is None:
            raise GitError(f"the commit {name} is missing: run `git fsck`")
        parents, author, seconds = [], "", 0
        for line in data.partition(b"\n\n")[0].split(b"\n"):  # its message stands after these
            key, _, value = line.partition(b" ")
            person = re.fullmatch(_PERSON, value)
            if key == b"parent":
                parents.append(value.decode("ascii", "replace"))
            elif key == b"author" and not author:
                author = (person[1] if person else value).decode("utf-8", "replace")
            elif key == b"committer" and person and not seconds:
                seconds = int(person[2][:20])
        return Commit(name, tuple(parents), author, seconds)

    def trailers(self, commits: Iterable[str] = ()) -> Iterator[tuple[Commit, Trailer]]:
        """The heads in the messages of ``commits`` and of all before them, parents first.

        Without commits they are those that HEAD or any ref but one of a record names.
        """
        from tripod.ledger.tlog.trailer import TRAILER, parse_trailers  # a pull has no use for it

        refs = {ref: name for ref, name in self.refs.refs.items() if not ref.startswith(_RECORDS)}
        named = [*refs.values(), *self.refs.heads]
        tips = list(commits) or self._commits_of(named, strict=False)
        given = "".join(f"{name}\n" for name in tips).encode()
        walk = ("rev-list", "--topo-order", "--reverse", f"--grep=^{TRAILER}: ", "--stdin")
        for name in self.ask(*walk, given=given).decode("ascii").split() if given else ():
            data = self._object(name, b"commit") or b""
            found = list(parse_trailers(data.partition(b"\n\n")[2]))
            commit = self.commit(name) if found else None
            yield from ((commit, one) for one in found if commit is not None)

    def descendants(self, commit: str, head: str) -> list[str]:
        """The commits from ``commit`` on, without it, up to ``head``, that have it behind them."""
        said = self.ask("rev-list", "--ancestry-path", "--stdin",
                         given=f"{head}\n^{commit}\n".encode())  # fmt: skip
        return said.decode("ascii").split()

    def abandoned(self, ref: str) -> list[Commit]:
        """Commits that the ref once named and that left its history; the newest first."""
        logged = list(dict.fromkeys(self.refs.logs.get(ref, ())[: 2 * _MAX_LOGS]))
        tips = self._commits_of(logged, strict=False)
        now = self.tip(ref)
        if not tips or now is None:
            return []
        given = "\n".join([*tips, f"^{now}"]) + "\n"
        gone = set(self.ask("rev-list", "--stdin", given=given.encode()).decode().split())
        return [self.commit(tip) for tip in tips if tip in gone]

    def file_at(self, revision: str, path: str) -> bytes | None:
        """A file at HEAD, a ref by its full name, or a commit by its name; None if absent.

        Raises what ``blob`` raises.
        """
        commit = revision if re.fullmatch(_HEX, revision) else self.tip(revision)
        return None if commit is None or "\n" in path else self._object(f"{commit}:{path}")

    def blob(self, name: str) -> bytes | None:
        """The bytes of a blob by its name; None if absent (GitError: too large, or altered)."""
        assert re.fullmatch(_HEX, name), name
        return self._object(name)

    def limit(self, seconds: float | None) -> None:
        """From now on git has ``seconds`` for all that it is asked; then it is ended (GitError).

        None: as long as it takes.
        """
        self._end_reader()  # it was started under another limit
        if self._watch is not None:
            self._watch.cancel()
        self.seconds, self._watch = seconds, None if seconds is None else _Watch(seconds)

    # For those that write --------------------------------------------------------------------

    def stand_apart(self, below: str) -> None:
        """From now on have git write objects and refs into our directory, and none elsewhere.

        It knows the refs ``below`` a name, and may move them there.
        """
        os.makedirs(f"{self.folder}/objects/info", exist_ok=True)
        self._put("objects/info/alternates", os.fsencode(f"{self._objects}\n"))
        refs = sorted(self.refs.refs.items())
        lines = [f"{to} {name}\n" for name, to in refs if name.startswith(below)]
        self._put("packed-refs", os.fsencode("".join(lines)))
        with open(os.path.join(self.folder, "config"), "ab") as file:
            file.write(b"[core]\n\talternateRefsCommand = true\n")
        self._end_reader()
        self._objects, self.is_apart = f"{self.folder}/objects", True

    def apply(self, keys: re.Pattern[str], allowed: re.Pattern[str] | None = None) -> None:
        """Put settings in force whose whole names match ``keys``, and their values ``allowed``."""
        lines = []
        for key, values in self.settings.items():
            if keys.fullmatch(key):
                section, _, name = key.rpartition(".")
                section, _, below = section.partition(".")
                head = f'[{section} "{_escaped(below)}"]' if below else f"[{section}]"
                lines += [
                    f'{head}\n\t{name} = "{_escaped(value)}"\n'
                    for value in values
                    if allowed is None or allowed.fullmatch(value)
                ]
        with open(os.path.join(self.folder, "config"), "ab") as file:
            file.write(os.fsencode("".join(lines)))

    # Within ------------------------------------------------------------------------------------

    def _object(self, name: str, kind: bytes = b"blob") -> bytes | None:
        """The bytes of an object of a kind, which must hash to its name; None if absent."""
        reader = self._reader or self._start("cat-file", "--batch")
        self._reader = reader
        assert reader.stdin is not None
        assert reader.stdout is not None
        reader.stdin.write(name.encode("utf-8", "surrogateescape") + b"\n")
        reader.stdin.flush()
        line = reader.stdout.readline(_MAX_LINE)
        found = re.fullmatch(_ANSWER, line)
        if found is None:
            if line.endswith((b" missing\n", b" ambiguous\n")):
                return None
            self._end_reader()
            self._check_time()
            raise GitError(
                f"git cannot give {name}: the repository is damaged (`git fsck` says more)"
            )
        words = found.groups()
        size = int(words[2])
        if size > MAX_BLOB:
            self._end_reader()  # what it still says is no answer to a later question
            raise GitError(f"{name} has {size} bytes, more than {MAX_BLOB}: it is not read")
        data = reader.stdout.read(size + 1)[:-1]
        if words[1] != kind:
            return None
        made = sha1 if len(words[0]) == 40 else sha256
        digest = made(b"%b %d\x00" % (kind, len(data)) + data).hexdigest()
        if len(data) != size or digest != words[0].decode():
            raise _altered(words[0])
        return data

    def _end_reader(self) -> None:
        if self._reader is not None:
            self._reader.kill()
            self._reader.communicate()
            self._reader = None

    def _own(self) -> None:
        """Refuse another user's repository, unless the user's own configuration trusts it.

        That of the repository is not asked: it cannot speak for itself.
        """
        other = git_folder.git_owner_differs(self.place)
        if other is None:
            return
        words = ("config", "--includes", "--type=path", "--null", "--get-all", "safe.directory")
        said = b""
        with suppress(GitError):  # nothing is set
            said = self.ask(*words, configured=True)
        trusted: list[str] = []
        for path in os.fsdecode(said).split("\0")[:-1]:
            trusted = [*trusted, path] if path else []
        top = os.path.realpath(self.top)
        for path in trusted:
            if path.endswith("/*"):
                trusts = top.startswith(os.path.realpath(path[:-2]).rstrip("/") + "/")
            else:
                trusts = path == "*" or (os.path.isabs(path) and os.path.realpath(path) == top)
            if trusts:
                break
        else:
            raise GitError(
                f"{other} belongs to another user, and git does not read such a repository: `git "
                f"config --global --add safe.directory {top}` says that you trust it"
            )

    def _put(self, name: str, data: bytes) -> None:
        with open(os.path.join(self.folder, name), "wb") as file:
            file.write(data)

    def _commits_of(self, names: Iterable[str], *, strict: bool) -> list[str]:
        """The commits that objects are, or that tags lead to; other objects are left out.

        ``strict``: a missing object is an error.
        """
        wanted = list(dict.fromkeys(names))
        given = "".join(f"{name}\n{name}^{{commit}}\n" for name in wanted).encode()
        if not given:
            return []
        said = self.ask("cat-file", "--batch-check=%(objectname) %(objecttype)", given=given)
        lines = said.decode("ascii", "replace").split("\n")[:-1]
        if len(lines) != 2 * len(wanted):
            raise GitError(
                f"{self.top}: git gives no answer about {wanted[0]}: `git fsck` says more"
            )
        found = []
        for name, itself, peeled in zip(wanted, lines[::2], lines[1::2], strict=True):
            if strict and itself.endswith(" missing"):
                raise GitError(f"the object {name} that a ref names is missing: run `git fsck`")
            if peeled.endswith(" commit"):
                found.append(peeled.split(" ")[0])
        return list(dict.fromkeys(found))

    def _start(
        self,
        *arguments: str,
        stdin: IO[bytes] | int = subprocess.PIPE,
        errors: IO[bytes] | int = subprocess.DEVNULL,
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        self._check_time()
        try:
            process = subprocess.Popen(
                (self._git, "--no-pager", *arguments),
                cwd=self.folder,
                env={
                    **_ENVIRONMENT,
                    "GIT_DIR": self.folder,
                    "GIT_OBJECT_DIRECTORY": self._objects,
                    "PATH": os.path.dirname(self._git),
                    **(_NO_CONFIGURATION if environment is None else environment),
                },
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=errors,
                # What git starts ends with it, and nothing of it asks at the terminal.
                start_new_session=self._watch is not None,
            )
        except OSError as error:
            raise GitError(
                f"git cannot be run: {error.strerror or error}; install it, or mend the PATH"
            ) from error
        if self._watch is not None:
            self._watch.add(process)
        return process

    def _check_time(self) -> None:
        if self._watch is not None and self._watch.late:
            raise GitError(
                f"{self.top}: git did not end within {self._watch.seconds:g} s: it was stopped"
            )

    def ask(
        self,
        *arguments: str,
        given: bytes | IO[bytes] = b"",
        environment: Mapping[str, str] | None = None,
        configured: bool = False,
        answers: bytes | None = None,
        most: int = _MAX_ANSWER,
        meanwhile: Callable[[], object] | None = None,
    ) -> bytes:
        """What git says on its standard output to ``arguments``, run in the git directory of ours.

        ``given`` is its standard input, ``environment`` adds variables; ``configured``: the
        configuration of the user and the system is in force. GitError: it fails, or says more than
        ``most`` bytes.
        A failure that prints ``answers`` is an answer all the same. ``meanwhile`` is called while
        git runs.
        """
        with open_nameless_file(self.folder) as scratch, open_nameless_file(self.folder) as errors:
            source = scratch if isinstance(given, bytes) else given
            if isinstance(given, bytes):
                source.write(given)
            source.seek(0)
            places = {  # where git finds the configuration of the user and the system
                name: value
                for name, value in os.environ.items()
                if name in ("HOME", "XDG_CONFIG_HOME") or name.startswith("GIT_CONFIG_")
            }
            more = {**(places if configured else _NO_CONFIGURATION), **(environment or {})}
            with self._start(*arguments, stdin=source, errors=errors, environment=more) as process:
                assert process.stdout is not None
                if meanwhile is not None:
                    meanwhile()
                said = process.stdout.read(most + 1)
                if len(said) > most:
                    process.kill()
                    raise GitError(f"git {arguments[0]} says more than {most} bytes: not read")
                status = process.wait()
            self._check_time()
            if status and (answers is None or answers not in said):
                errors.seek(0)
                said_why = errors.read(20_000).decode("utf-8", "replace")
                reason = git_folder.git_failure(said_why.replace(self.folder, self.place.common))
                raise GitError(f"{self.top}: git {arguments[0]}: {reason or f'exit {status}'}")
        return said


class _Watch:
    """Ends what git runs once ``seconds`` are over, with all that it started."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.late = seconds, False
        self._running: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()
        self._timer = threading.Timer(seconds, self._expire)
        self._timer.daemon = True
        self._timer.start()

    def add(self, process: subprocess.Popen[bytes]) -> None:
        """Watch a process that leads a session of its own, in the place of those that ended."""
        with self._lock:
            self._running = [one for one in self._running if one.returncode is None]
            self._running.append(process)
            if self.late:
                self._end(process)

    def cancel(self) -> None:
        """Watch no longer; what still runs is ended."""
        self._timer.cancel()
        self._expire(late=False)

    def _expire(self, *, late: bool = True) -> None:
        with self._lock:
            self.late = self.late or late
            for process in self._running:
                if process.returncode is None:
                    self._end(process)

    @staticmethod
    def _end(process: subprocess.Popen[bytes]) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _escaped(text: str) -> str:
    """A text as it stands between quotation marks in git's configuration."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _altered(name: bytes) -> GitError:
    return GitError(f"the object {name.decode()} does not hash to its name: run `git fsck`")
