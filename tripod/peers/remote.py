"""Reaches remotes: the repositories to which refs of ours are pushed, and from which others come.

Git does it, in the git directory of ours (``tripod.verify.anchors.git``), as its user has set it
up: the configuration of the user and the system is in force, with its keys and helpers. Of the
repository's own settings the remote's address counts, and headers for it: no hook of the
repository, and no program that its configuration names, is run. Nothing asks at the terminal.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from threading import Timer
from typing import NamedTuple

from tripod.errors import BadArgumentError, GitError, NotFoundError, UnreachableError
from tripod.ledger.files import hold_file_lock, read_plain_file
from tripod.ledger.locator import APART
from tripod.peers.replica import tree_of_team
from tripod.verify.anchors.git import Repository
from tripod.verify.peers.refs import OWN, REMOTES, REPLICA, refs_folder

TIMEOUT_S = 120  # seconds for the remote
SILENT_S = 1.0  # that an exchange waits for another one before it says so
PUSH = ("--no-verify", "--no-signed", "--no-follow-tags", "--recurse-submodules=no")
"""What ``git push`` is always told: our refs, and no more."""
_FETCH = (
    "--quiet", "--no-tags", "--no-prune", "--no-write-fetch-head", "--no-auto-maintenance",
    "--no-recurse-submodules", "--no-show-forced-updates",
)  # fmt: skip
"""What ``git fetch`` is always told. A ref that is gone there stays here: it is a memory."""

_BRANCHES = "refs/heads/tripod/"
_HEADER = re.compile(r"http\..*\.extraheader")
_HELPED = re.compile(r"[A-Za-z0-9+.-]*::")
_PASSED = ("GIT_SSH", "GIT_CONFIG_", "GIT_ASKPASS", "GIT_ALLOW_PROTOCOL")
_TRANSPORTS = "file:git:http:https:ssh"
_REMOTE = re.compile(r"[A-Za-z0-9+.-]+://|[^/]+:")
_NAMED = re.compile(r"remote\.(.+)\.(?:push)?url")
_PLAIN = re.compile(r"[A-Za-z0-9_-]+(?:[./][A-Za-z0-9_-]+)*(?<!\.lock)")
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


class Remote(NamedTuple):
    """A remote: how it is called in messages and refs, and where it is to be read and written.

    ``is_configured``: the repository's own configuration says where.
    """

    name: str
    address: str
    source: str
    is_configured: bool

    @property
    def folder(self) -> str:
        """Its name as a part of refs; of an address the last part, and a digest."""
        if self.is_configured and _PLAIN.fullmatch(self.name):
            return self.name
        last = _UNSAFE.sub("-", self.source.rstrip("/").rpartition("/")[2]).strip("-")[:40]
        return f"{last or 'remote'}-{sha256(os.fsencode(self.source)).hexdigest()[:8]}"


def open_repository(root: str, seconds: float) -> Repository:
    """The repository that a team directory lies in, with a limit for the remote.

    GitError: no repository is there, or it is not read.
    """
    tree = tree_of_team(root)
    if tree is None:
        raise GitError(
            f"{root}: there is no git repository around it, so there is nothing to exchange "
            "records by; `tripod export DIR` writes the record into a folder"
        )
    return Repository(f"{tree.top}/{OWN}", seconds)


def find_remote(repository: Repository, given: str | None) -> Remote:
    """The remote of a name, a URL or a path; without one ``origin``, or the only one.

    Raises NotFoundError where the repository has no remote, BadArgumentError where several may be
    meant, GitError where the repository names a program in the place of an address.
    """
    settings = repository.settings
    if given is None:
        names = list(dict.fromkeys(m[1] for key in settings if (m := _NAMED.fullmatch(key))))
        if not names:
            raise NotFoundError(
                f"the repository {repository.top} has no remote: `git remote add origin URL` "
                "names one, or give its URL or path"
            )
        if "origin" not in names and len(names) > 1:
            raise BadArgumentError(f"which remote? There are {', '.join(sorted(names))}")
        given = "origin" if "origin" in names else names[0]
    if given.startswith("-") or not given:
        raise BadArgumentError(f"{given[:100]!r} is no remote")
    if _HELPED.match(given):
        raise BadArgumentError(f"{given[:100]!r} names a program: git itself reaches such a remote")
    source = settings.get(f"remote.{given}.url", ())
    target = settings.get(f"remote.{given}.pushurl") or source
    if not target:
        address = _absolute(given, os.getcwd()) if os.path.exists(given) else given
        return Remote(given, address, address, is_configured=False)
    address = _checked(given, target[-1], repository.top)
    from_ = _checked(given, (source or target)[-1], repository.top)
    return Remote(given, address, from_, is_configured=True)


def _checked(name: str, address: str, top: str) -> str:
    if not address:
        raise GitError(f"the remote {name} has no address: `git remote set-url {name} URL`")
    if _HELPED.match(address) or address.startswith("-"):
        raise GitError(
            f"the remote {name} names a program ({address[:100]!r}): it is not asked, and nothing "
            "is given to it"
        )
    return _absolute(address, top)


def _absolute(address: str, base: str) -> str:
    return address if _REMOTE.match(address) else os.path.join(base, address)


def ask_remote(
    repository: Repository,
    remote: Remote,
    *words: str,
    answers: bytes | None = None,
    meanwhile: Callable[[], object] | None = None,
) -> bytes:
    """What ``git push`` or ``git fetch`` with ``words`` prints (GitError: it fails).

    A push that fails for some refs and prints ``answers`` is an answer. ``meanwhile`` is called
    while git runs.
    """
    repository.apply(_HEADER)
    repository.lend_refs()
    # The user's environment without what names another repository. An address must not bring a
    # transport that runs a program, unless the user's environment allows that.
    environment = {"GIT_ALLOW_PROTOCOL": _TRANSPORTS}
    environment |= {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith(_PASSED)
    }
    folders = [name for name in os.get_exec_path() if os.path.isabs(name)]
    environment |= {"GIT_TERMINAL_PROMPT": "0", "PATH": os.pathsep.join(folders)}
    try:
        with ExitStack() as held:
            if not repository.is_apart and words[0] != "ls-remote":  # else nothing moves here
                held.enter_context(_alone(repository))
            return repository.ask(
                *words, environment=environment, configured=True, answers=answers,
                meanwhile=meanwhile,
            )  # fmt: skip
    except GitError as error:
        said = _without_top(str(error), repository.top)
        if not remote.is_configured and not re.search("[/:]", remote.name):
            names = {m[1] for key in repository.settings if (m := _NAMED.fullmatch(key))}
            said += f" (the remotes here: {', '.join(sorted(names)) or 'none'})"
        raise GitError(f"{remote.name}: {said}") from error
    finally:
        repository.forget_refs()


@contextmanager
def _alone(repository: Repository) -> Iterator[None]:
    """Wait for other exchanges of this clone: git does not wait where another one moves a ref."""
    with ExitStack() as held:
        path = f"{repository.place.common}/{APART}/exchange.lock"
        waiting = Timer(SILENT_S, _tell_waiting, (path,))
        with suppress(OSError):  # it may only be read: then nothing moves here
            os.makedirs(os.path.dirname(path), exist_ok=True)
            waiting.start()
            try:
                lock = held.enter_context(hold_file_lock(path))
            finally:
                waiting.cancel()
            lock.name_holder()
        repository.limit(repository.seconds)  # the time of another exchange is not the remote's
        yield


def _tell_waiting(path: str) -> None:
    """Say which process another exchange is, and how to end this one."""
    from tripod.output import remark

    holder = b""
    with suppress(OSError):
        holder = read_plain_file(path, 20).strip()
    whose = f" (process {holder.decode()})" if holder.isdigit() else ""
    remark(
        f"waiting until another push or pull of this repository{whose} ends, which its --timeout "
        "sees to; then this one goes on. Ctrl-C ends this one, and nothing is lost"
    )


def fetch_records(
    repository: Repository,
    remote: Remote,
    only: str = "*",
    then: str = "tripod pull --no-fetch",
    meanwhile: Callable[[], object] | None = None,
) -> None:
    """Fetch the refs of records from a remote (UnreachableError: it gives no answer, or refuses).

    ``then`` is the command that goes on with what git itself fetched; ``meanwhile`` is called while
    git runs.
    """
    folder = refs_folder(repository)
    specs = [f"+{folder}{only}:{REMOTES}{remote.folder}/{only}"]
    if folder == OWN and only == "*":
        specs.append(f"^{OWN}seals")  # `tripod anchor git` keeps seals there
    try:
        words = ("fetch", *_FETCH, remote.source, *specs)
        ask_remote(repository, remote, *words, meanwhile=meanwhile)
    except GitError as error:
        raise UnreachableError(
            f"{error}; nothing was taken. Try again, give it longer (`--timeout S`), or fetch by "
            f"git itself and then `{then}`: `git fetch {remote.name} '{specs[0]}'`"
        ) from error
    repository.forget_refs()


class FetchedRecords(NamedTuple):
    """A fetch that was made already: the repository, and what the remote refused."""

    repository: Repository
    problem: UnreachableError | None


@contextmanager
def fetch_ahead(
    root: str, given: str | None, seconds: float, meanwhile: Callable[[], object]
) -> Iterator[FetchedRecords | None]:
    """Fetch before the team of the directory ``root`` is opened; git runs while ``meanwhile`` does.

    None where nothing can be fetched: who fetches again says why, and what else is wrong first.
    """
    with ExitStack() as opened:
        fetched = None
        with suppress(GitError, NotFoundError, BadArgumentError):
            repository = opened.enter_context(open_repository(root, seconds))
            remote, problem = find_remote(repository, given), None
            try:
                fetch_records(repository, remote, meanwhile=meanwhile)
            except UnreachableError as error:
                problem = error
            repository.limit(None)  # the team may have to be waited for
            fetched = FetchedRecords(repository, problem)
        yield fetched


def records_among_branches(repository: Repository, remote: Remote) -> str | None:
    """What to do where a remote keeps records among its branches, and this clone looks elsewhere.

    None: it holds none there, or they are looked for there.
    """
    if refs_folder(repository) != OWN:
        return None
    said = ask_remote(repository, remote, "ls-remote", "--refs", remote.source, f"{_BRANCHES}*")
    names = [line.rpartition(_BRANCHES)[2] for line in said.decode("utf-8", "replace").splitlines()]
    if not any(map(REPLICA.fullmatch, names)):
        return None
    return (
        f"{remote.name} keeps records among its branches, and they are not looked for there: `git "
        f"config tripod.refs {_BRANCHES}`, then again"
    )


def _without_top(text: str, top: str) -> str:
    return text.removeprefix(f"{top}: ")
