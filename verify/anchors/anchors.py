"""Collects what lies outside the ledger and vouches for it: pins, seals in git, policies.

It reads files and git's history, and judges nothing. What is given by option wins over what stands
in the team directory, since anyone who can write the ledger can write that, too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import NamedTuple

from tripod.ledger import RECORD, SEAL, GitError, LedgerError, MalformedError, TripodError
from tripod.ledger.files import read_plain_file
from tripod.ledger.locator import APART, FOLDER, is_bare, work_tree_around
from tripod.ledger.tlog.note import VerifierKey
from tripod.ledger.tlog.policy import parse_policy
from tripod.ledger.tlog.receipt import parse_timestamp_authorities
from tripod.ledger.tlog.seal import Seal, open_seal
from tripod.ledger.tlog.trailer import trailer_seal
from tripod.projections.decisions.format import is_decision_log, parse_decision_archive_name
from tripod.projections.decisions.tables import LOG
from tripod.projections.layout import LIVE
from tripod.verify.anchors.configuration import (
    PROJECT,
    PROJECT_FILES,
    PYPROJECT,
    Configuration,
    Said,
    join_configurations,
    parse_configuration,
)
from tripod.verify.anchors.git import Repository
from tripod.verify.anchors.git_folder import find
from tripod.verify.anchors.git_growth import describe_growth_commit, read_growth
from tripod.verify.anchors.heads import MAX_HEAD, KnownHead, OutsideHeads, parse_head
from tripod.verify.anchors.policy import Forbidden, Rules
from tripod.verify.anchors.policy import parse as parse_rules
from tripod.verify.check import AUTHORITIES, POLICY, RULES

_SHALLOW = (
    "this clone is shallow: seals before its first commit are not known here; `git fetch "
    "--unshallow` brings them (in CI: fetch-depth: 0)"
)
_MAX_FILE = 4 * 1024 * 1024  # the certificates of a whole system; each form has its own limit


class OutsideError(TripodError):
    """Something that was asked for cannot be read, so nothing may be called clean."""


class NoHeadError(OutsideError):
    """A revision holds no head of this ledger."""


class AnchorOptions(NamedTuple):
    """What the caller wants looked at besides.

    ``pin``: a file with a head, or a folder with one for each replica; ``first``: it need not be
    there yet. ``new_only``: look only at what is after it. ``policies``: files that replace the
    team's own. ``git``: whether to walk the history of the repository around the team directory.
    ``since``: the number of an entry, or a git revision, from which on what is found is new.
    ``policy_from``: the git revision whose ``tripod.toml`` and ``pyproject.toml`` count, and not
    those of the work tree. ``never``: a rule besides those of the policy.
    """

    pin: str | None = None
    first: bool = False
    new_only: bool = False
    policies: tuple[str, ...] = ()
    git: bool = True
    since: str | None = None
    policy_from: str | None = None
    never: Forbidden | None = None


USUAL = AnchorOptions()
"""No pin, the team's own policies, the history of the repository that it lies in."""


def gather_anchors(
    root: str | None,
    asked: AnchorOptions,
    *,
    live: bool = True,
    logs: Mapping[str, str] = MappingProxyType({}),
    into: OutsideHeads | None = None,
) -> OutsideHeads:
    """Everything that is known outside of the ledger of the team directory ``root``.

    ``logs`` are the paths of decision logs in other folders than its own, by their names. ``live``:
    its database is there, and git does not keep that, so every seal in git is of its own past, on
    whichever branch. A record is as old as the commit that is checked out.

    Raises:
        OutsideError: the pin or a policy that was given cannot be read. ``into`` has what was read
            before it, above all which reports the project asks for.
    """
    outside = OutsideHeads() if into is None else into
    _policies(outside, root, asked)
    if asked.pin is not None:
        pin = read_pin(asked.pin)
        if pin is None and not asked.first:
            raise OutsideError(
                f"no pin at {asked.pin}: --update-pin makes the first one, from a ledger that you "
                "believe"
            )
        if pin is not None:
            outside.known += (pin,)
            outside.pin = pin.seal if asked.new_only else None
    if not asked.git:
        outside.history = "left alone, as was asked"
    elif root is not None:
        _walk(outside, root, {} if asked.new_only else logs, log=not asked.new_only, live=live)
    return outside


def read_pin(path: str) -> KnownHead | None:
    """The head that a pin file holds; None if absent (OutsideError: it cannot be read as one)."""
    if path.endswith("/") or os.path.isdir(path):
        raise OutsideError(
            f"{path} is a folder, of a pin for each replica whose record is on a ref, and no such "
            "records are judged here: fetch them into a clone without a ledger (`git fetch REMOTE "
            "'+refs/tripod/*:refs/tripod-remotes/REMOTE/*'`), or give a file for the one ledger"
        )
    data = _read(path, named=True)
    if data is None:
        return None
    try:
        seal, note = parse_head(data)
    except LedgerError as error:
        raise OutsideError(
            f"{path} holds neither a seal nor a head: {error}; nothing was compared with it"
        ) from error
    return KnownHead("pin", f"the pin {path}", seal, int(os.stat(path).st_mtime), note)


def read_since(
    since: str,
    root: str | None,
    seals: tuple[str, ...],
    keys: Sequence[VerifierKey] = (),
    *,
    git: bool,
) -> tuple[Seal | int, str]:
    """From where on something is new: an entry's number, or the head in a revision; and its name.

    A revision holds a head as the commit of a record's ref, in a record that is committed with the
    work, in the files ``seals`` of the repository, or in the trailers of its history that one of
    the ledger's own ``keys`` signed. The largest counts.

    Raises:
        OutsideError: there is no such revision; a NoHeadError: it holds no head.
    """
    if re.fullmatch("[0-9]{1,15}", since):
        return int(since), f"entry {since}"
    if root is None or not git:
        raise OutsideError(
            f"--since {since}: a revision is one of the git repository of a team, which is not "
            "looked at here; give the number of an entry"
        )
    try:
        with Repository(root) as repository:
            commit = repository.resolve(since)
            if commit is None:
                raise OutsideError(
                    f"--since {since}: there is no such commit in {repository.top}, and it is no "
                    "number of an entry (in CI: fetch-depth: 0)"
                )
            paths = [f"{root}/{RECORD}/{SEAL}"]
            paths += [os.path.join(repository.top, name) for name in seals]
            found = []
            for name in (SEAL, *map(repository.name_of, paths)):
                data = repository.file_at(commit, name)
                if data is not None:
                    seal, _ = parse_head(data[: MAX_HEAD + 1])
                    found.append((seal, f"the head in commit {commit[:12]} ({since})"))
            found += _trailers(repository, commit, keys)
            if found:
                return max(found, key=lambda one: one[0].size)
    except (GitError, LedgerError) as error:
        raise OutsideError(f"--since {since}: {error}; give the number of an entry") from error
    raise NoHeadError(
        f"--since {since}: commit {commit[:12]} holds no seal of this team's record, and no commit "
        "up to it carries a head of this ledger (`tripod hooks install`): what was known there is "
        "not known; give the number of an entry"
    )


def _trailers(
    repository: Repository, commit: str, keys: Sequence[VerifierKey]
) -> Iterator[tuple[Seal, str]]:
    """The heads that commits up to this one carry, and that one of the keys signed."""
    for one, trailer in repository.trailers([commit]) if keys else ():
        for key in keys:
            seal, note = trailer_seal(trailer, key)
            with suppress(LedgerError):
                open_seal(note, [key])
                yield seal, f"the head that commit {one.name[:12]} carries"


def _policies(outside: OutsideHeads, root: str | None, asked: AnchorOptions) -> None:
    """The files given, by the ends of their names; the team's own for each kind not given."""
    given = asked.policies
    found: list[Said] = []
    demands = [path for path in given if path.endswith((".yaml", ".yml"))]
    stamping = [path for path in given if path.endswith(".pem")]
    trusted = [path for path in given if path not in (*demands, *stamping)]
    kinds = (
        (trusted, POLICY, "whose signatures count"),
        (demands, RULES, "what must be there"),
        (stamping, AUTHORITIES, "whose timestamps count"),
    )
    for paths, name, what in kinds:
        if len(paths) > 1:
            raise OutsideError(
                f"--policy: {paths[0]} and {paths[1]} both say {what}; give one of them"
            )
        path = paths[0] if paths else None if root is None else f"{root}/{name}"
        data = None if path is None else _read(path, named=bool(paths))
        if data is not None and path is not None and not paths and asked.policy_from is not None:
            data = _as_committed(asked.policy_from, path, data)
        if path is None or data is None:
            if paths:
                raise OutsideError(f"--policy: there is no file {path}")
            continue
        try:
            if name == POLICY:
                outside.policy = parse_policy(data)
            elif name == RULES:
                said = Configuration(policy=parse_rules(data))
                found.append(Said(path, path if paths else "", said, is_outside=False))
            else:
                outside.authorities = parse_timestamp_authorities(data)
        except MalformedError as error:
            message = f"{error}; a policy that is not understood is not passed over"
            if paths:
                raise OutsideError(f"{path}: {message}") from error
            outside.faults += (("broken", path, message),)
            continue
        # What stands in the team directory is the team's own word, even if the caller names it.
        top = "" if root is None else f"{os.path.realpath(root).rstrip('/')}/"
        if paths and not (top and f"{os.path.realpath(path)}/".startswith(top)):
            outside.given |= {name}
    if found and RULES in outside.given:
        found = [found[0]._replace(is_outside=True)]
    if asked.policy_from is not None:
        found += _committed_settings(asked.policy_from, root)
    elif root is not None and not demands:
        found += _project_settings(outside, root)
    if asked.never is not None:
        rule = Configuration(policy=Rules(never=(asked.never,)))
        found.append(Said("--never", "", rule, is_outside=False))
    outside.rules, outside.settings, problem = join_configurations(found)
    if problem and asked.policy_from is not None:
        raise OutsideError(f"--policy-from {asked.policy_from}: {problem}")
    if problem:
        outside.faults += (("broken", PROJECT, problem),)
    if any(one.is_outside for one in found):
        outside.given |= {RULES}


def _project(root: str) -> str:
    """The project's folder: the one that holds ``.nbs``; a team directory by another name is it.

    For the team of a bare repository it is the repository, if the team directory lies in it.
    """
    above, name = os.path.split(os.path.abspath(root))
    around, last = os.path.split(above)
    if name == FOLDER and last == APART and is_bare(around):
        return around
    return above if name == FOLDER else root


def _project_settings(outside: OutsideHeads, root: str) -> Iterator[Said]:
    """What the project's files in the work tree say.

    A bare repository has several or none: there those of the commit that its HEAD names count.
    """
    folder = _project(root)
    files = {name: _read_beside(outside, f"{folder}/{name}") for name in PROJECT_FILES}
    absent = [name for name, data in files.items() if data is None]
    try:
        tree = work_tree_around(folder) if absent else None
        if tree is not None and is_bare(tree.common):
            with Repository(f"{folder}/{PROJECT}") as git:
                files |= {name: git.file_at("HEAD", name) for name in absent}
    except GitError as error:
        outside.faults += (("unread", f"{folder}/{PROJECT}", str(error)),)
    for name, data in files.items():
        path = f"{folder}/{name}"
        try:
            said = None if data is None else parse_configuration(name, data)
        except MalformedError as error:
            message = f"{error}; a policy that is not understood is not passed over"
            outside.faults += (("broken", path, message),)
            continue
        if said is not None:
            yield Said(path, path, said, is_outside=False)


def _read_beside(outside: OutsideHeads, path: str) -> bytes | None:
    """A file of the project; None if it is absent.

    A ``pyproject.toml`` that is no plain file is other programs' business: a warning says that it
    was not read. The other file is ours alone, and then nothing can be judged (OutsideError).
    """
    if path.endswith(f"/{PYPROJECT}") and (
        os.path.islink(path) or (os.path.exists(path) and not os.path.isfile(path))
    ):
        problem = f"it is a link, or no file, and was not read: settings can stand in {PROJECT}"
        outside.faults += (("unread", path, problem),)
        return None
    return _read(path, named=False)


def _committed_settings(revision: str, root: str | None) -> list[Said]:
    """What the project's files say as committed (OutsideError: that cannot be read)."""
    asked, found = f"--policy-from {revision}", []
    name = PROJECT
    try:
        with Repository(f"{os.getcwd() if root is None else _project(root)}/{PROJECT}") as git:
            commit = git.resolve(revision)
            if commit is None:
                raise OutsideError(
                    f"{asked}: there is no such commit in {git.top} (in CI: fetch-depth: 0)"
                )
            folder = git.top if root is None else _project(root)
            for name in PROJECT_FILES:
                path = f"{folder}/{name}"
                data = git.file_at(commit, git.name_of(path, link=True))
                said = None if data is None else parse_configuration(name, data)
                if said is not None:
                    shown = f"{name} in commit {commit[:12]}"
                    found.append(Said(shown, path, said, is_outside=True))
    except (GitError, MalformedError) as error:
        raise OutsideError(f"{asked}: {name}: {error}") from error
    if not found:
        raise OutsideError(
            f"{asked}: commit {commit[:12]} holds no {PROJECT}, and no [tool.tripod] in "
            f"{PYPROJECT}, so nothing is demanded there: commit one, or leave the option out"
        )
    return found


def _as_committed(revision: str, path: str, data: bytes) -> bytes | None:
    """A policy of the team directory: as a revision has it, where it was checked out.

    git ignores these files, so one that HEAD holds came with the work: a pull request could bring
    the witnesses that vouch for it. One that git does not hold is of this machine.

    Raises:
        OutsideError: git cannot tell.
    """
    try:
        with Repository(path) as git:
            name, commit, head = git.name_of(path), git.resolve(revision), git.tip("HEAD")
            if head is None or git.file_at(head, name) is None:
                return data
            return None if commit is None else git.file_at(commit, name)
    except GitError as error:
        raise OutsideError(f"--policy-from {revision}: {path}: {error}") from error


def _walk(
    outside: OutsideHeads, root: str, others: Mapping[str, str], *, log: bool, live: bool
) -> None:
    """Every seal that the repository ever held, on any branch, and the history of the logs."""
    try:
        place = find(root)
        if place is None and os.path.islink(root):
            root = os.path.realpath(root)  # a link outside of any repository may lead into one
            place = find(root)
        if place is None:
            outside.history = "no git repository is around it"
            return
        outside.repository = place.top
        with Repository(root) as repository:
            _vouch(repository, root)
            # Nothing may be committed to the branch that is checked out, and much to others.
            head = repository.tip("HEAD")
            here = () if head is None else (head,)
            tips = repository.everything()
            paths = [f"{root}/{RECORD}/{SEAL}"]
            paths += [os.path.join(repository.top, name) for name in outside.rules.seals]
            names = [repository.name_of(path) for path in paths]
            outside.known += tuple(_seals(outside, repository, names, here, tips, live=live))
            if repository.shallow and outside.known:
                outside.faults += (("unread", "git", _SHALLOW),)
            if log and here:
                own = _logs(repository, root, here)
                named = {name: f"{root}/{LOG.folder}/{name}" for name in own}
                named |= _committed(repository, others, here)
                outside.logs = tuple(
                    read_growth(path)._replace(log=name) for name, path in named.items()
                )
            outside.history = f"{repository.at}; {len(tips)} tips of refs and reflogs"
            if place.outer is not None:
                outside.history += f"; {place.outer}, a repository around it, was not looked at"
    except GitError as error:
        outside.history = f"not read: {error}"
        outside.untold += (("git", f"{error}; --no-git leaves the history alone"),)


def _vouch(repository: Repository, root: str) -> None:
    """Refuse a team directory that the repository does not keep as one (GitError)."""
    if not repository.place.inside:  # the team directory is the work tree itself
        return
    other = repository.folders_but(repository.name_of(root))
    if other is not None:
        raise GitError(
            f"{other}, and a folder here: the history of {repository.top} cannot vouch for it; "
            "commit what stands there as a folder"
        )


def _logs(repository: Repository, root: str, here: tuple[str, ...]) -> list[str]:
    """Files of the Scribe's folder that were a log in their first or newest committed version."""
    folder = repository.name_of(f"{root}/{LOG.folder}")
    versions: dict[str, list[str]] = {}
    for change in repository.changes((folder,), here):
        above, _, name = change.path.rpartition("/")
        if above == folder and name.endswith(".md") and parse_decision_archive_name(name) is None:
            versions.setdefault(name, []).extend([change.new] if change.new else [])
    logs = []
    for name, blobs in sorted(versions.items()):
        ends = dict.fromkeys([*blobs[:1], *blobs[-1:]])
        if name == LIVE or any(
            is_decision_log(name, repository.blob(blob) or b"") for blob in ends
        ):
            logs.append(name)
    return logs


def _committed(
    repository: Repository, others: Mapping[str, str], here: tuple[str, ...]
) -> dict[str, str]:
    """Those of the logs in other folders that the repository has, or had, a version of."""
    top = f"{os.path.realpath(repository.top)}/"
    inside = {
        name: path
        for name, path in others.items()
        if f"{os.path.realpath(os.path.dirname(path))}/".startswith(top)
    }
    names = {name: repository.name_of(path) for name, path in inside.items()}
    if not names:
        return {}
    versions = {change.path for change in repository.changes(tuple(names.values()), here)}
    return {name: path for name, path in inside.items() if names[name] in versions}


def _seals(
    outside: OutsideHeads,
    repository: Repository,
    names: list[str],
    here: tuple[str, ...],
    tips: list[str],
    *,
    live: bool,
) -> Iterator[KnownHead]:
    """Each seal once, by the first commit that has it (``gather_anchors`` says which bind)."""
    mine = {change.new for change in (repository.changes(names, here) if here else ())}
    seen: set[str] = set()
    for change in repository.changes(names, dict.fromkeys((*tips, *here))):
        if not change.new or change.new in seen:
            continue
        seen.add(change.new)
        where = f"{describe_growth_commit(change.commit)}, {change.path}"
        if not change.regular:
            outside.faults += (("unread", where, "unreadable: it is no plain file there"),)
            continue
        data = repository.blob(change.new)
        if data is None:
            message = f"the object {change.new} is missing: run `git fsck`, or fetch it"
            outside.untold += ((where, message),)
            continue
        try:
            seal, note = parse_head(data[: MAX_HEAD + 1])
        except LedgerError as error:
            outside.faults += (("unread", where, f"unreadable: {error}"),)
            continue
        binding = live or change.new in mine
        recorded = change.path == names[0]
        yield KnownHead(
            "git", where, seal, change.commit.seconds, note, binding=binding, recorded=recorded
        )


def _read(path: str, *, named: bool) -> bytes | None:
    """A small file; None if absent (OutsideError: it cannot be read).

    A path from the caller may be a link; one of the team may not: it would let the team's files
    choose which file of this host is read.
    """
    try:
        data = read_plain_file(path, _MAX_FILE, named=named)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OutsideError(f"{path} cannot be read: {error.strerror or error}") from error
    if len(data) > _MAX_FILE:
        raise OutsideError(f"{path} has more than {_MAX_FILE} bytes")
    return data
