"""Orders an isolated run of any role, and makes the private folder that the run works in.

Each attempt has one folder in the system's temporary folder, outside the project and private to the
user: an empty folder to work in, and a home. What the program leaves in its home (transcripts)
becomes evidence before the folder goes.

Source: design sections 7 and 8; spec evidence-and-reports 1.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, ClassVar

from tripod.agents import profiles
from tripod.agents.isolation import (
    Home,
    Isolated,
    files_for_isolated,
    isolate,
    refuse_to_show,
    resolve_isolated,
)
from tripod.agents.jobs import Attempt, Job, JobHooks
from tripod.agents.spec import BASIC_ENV, Parameters, SpawnResult, SpawnSpec
from tripod.errors import RefusedError
from tripod.ledger.files import open_plain_file, read_plain_file
from tripod.ledger.kinds.agents import DELIVERED
from tripod.ledger.kinds.base import Kind
from tripod.ledger.kinds.team import team_evidence_kept
from tripod.ledger.locator import database_of, work_tree_around
from tripod.projections import BUS, CHAT, LOG, File, layout
from tripod.team.act import Act
from tripod.team.team import Team
from tripod.verify.isolation.runs import LIMIT

TIMEOUT = 1800  # seconds that the program may take by default
_OLD_ROLE = "pythia"  # of earlier versions' folders, whose names hold no role
CONFIG = "config"  # the folder, within the private home, with the program's own files
MAX_TRANSCRIPT = 16 * 1024 * 1024  # bytes; of a longer one the end is left out
MAX_TRANSCRIPTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolatedProgram:
    """A program to run: a command line, or else a profile; see ``tripod pythia run``."""

    command: Sequence[str] = ()
    profile: str | None = None
    model: str | None = None
    effort: str | None = None
    shows: Sequence[str] = ()
    network: bool = False
    timeout_s: float | None = TIMEOUT
    require_namespace: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """How an isolated program is run. ``spec`` has all but the prompt; ``place`` the isolation.

    ``hidden`` are names of what does not exist for the program, ``texts`` the files that its
    command line names, ``transcripts`` the folder of its transcripts within its home ('' for none),
    ``lent`` paths that it sees as they lie on the disk, each with why.
    """

    spec: SpawnSpec
    place: Isolated
    hidden: tuple[str, ...]
    prompt: str = ""
    actor: str
    texts: tuple[bytes, ...]
    lends: tuple[str, ...]
    config: str | None
    transcripts: str
    lent: tuple[tuple[str, str], ...]


def order_isolated(
    team: Team, program: IsolatedProgram, actor: str, variable: str, default: str
) -> Order:
    """How a program is run here, isolated as far as this system can.

    Without a command or a profile the variable ``variable`` names the profile, else ``default``.

    Raises:
        BadArgumentError, NotFoundError: there is no such profile or program.
        RefusedError: the namespace that is required cannot be had.
    """
    known = profiles.chosen_profile(program.command, program.profile, variable, default)
    needs = known.isolated
    secret, project = _secret(team)
    shown = [path for path in needs.shows if os.path.exists(os.path.expanduser(path))]
    own = resolve_isolated(known.argv, [*program.shows, *shown], secret)
    lends = [full for path in needs.lends if os.path.isfile(full := os.path.expanduser(path))]
    for path in lends:
        refuse_to_show(path, secret)
    given = files_for_isolated(own, LIMIT)
    network, home = program.network or needs.network, _home(needs, lends)
    place = isolate(own, RunFolder.ANY, secret, project, network=network, given=given, home=home)
    if program.require_namespace and place.level != "namespace":
        raise RefusedError(
            f"no mount namespace can be had here: {place.problem}. Nothing was run; install "
            "bubblewrap, or leave out --require-namespace"
        )
    # The value of a variable is recorded, so that it can be searched as all else that is given.
    env = {name: os.environ[name] for name in BASIC_ENV if name in os.environ} | place.env
    if needs.config is not None:
        env[needs.config] = f"{env['HOME']}/{CONFIG}"
    in_a_folder = place.level == "folder"
    spec = known.order(
        b"",
        argv=place.argv,
        env=tuple(name for name in known.env if name in os.environ),
        set_env=env,
        timeout_s=program.timeout_s,
        parameters=Parameters(model=program.model, effort=program.effort),
        sealed=place.sealed,
        leaves=place.leaves,
    )
    return Order(
        spec=spec,
        place=place,
        hidden=() if in_a_folder else layout.HIDDEN_BESIDE,
        actor=actor,
        texts=tuple(data for data, _ in given.files.values()),
        lends=tuple(lends) if needs.config is not None and in_a_folder else (),
        config=needs.config,
        transcripts=needs.transcripts,
        lent=given.lent,
    )


def _secret(team: Team) -> tuple[list[str], str]:
    """Folders that no isolated program may see, and the project around them."""
    root = os.path.realpath(team.root)
    project = os.path.dirname(root)
    added = (one for one in team.disk.places.added if not one.startswith(f"{LOG.folder}/"))
    kept = (BUS.folder, CHAT.folder, *added)  # the logs may be given to it
    # The ledger lies in the repository's common directory, and the objects of its refs, the records
    # of all replicas, hold the chat as well. That directory may be elsewhere.
    tree = work_tree_around(project)
    repository = () if tree is None else (tree.git, tree.common)
    database = os.path.dirname(database_of(root))
    places = [root, *map(team.disk.full, kept), f"{project}/.git", *repository, database]
    return list(dict.fromkeys(places)), project


def _home(needs: profiles.Isolation, lends: Sequence[str]) -> Home:
    """The program's private home; a login that is lent to it is read here, once."""
    if needs.config is None:
        return Home()
    files = {}
    for path in lends:
        try:
            files[f"{CONFIG}/{os.path.basename(path)}"] = read_plain_file(path, LIMIT, named=True)
        except OSError as error:
            raise RefusedError(
                f"{path}: {error.strerror}: a profile's lends must be readable"
            ) from error
    returns = f"{CONFIG}/{needs.transcripts}".rstrip("/") if needs.transcripts else ""
    return Home(files, CONFIG, returns)


def _base() -> str:
    return f"{tempfile.gettempdir()}/tripod-{os.getuid()}"


def _front(team: Team) -> str:
    """How the names of the folders of a team's runs begin."""
    return f"{sha256(os.path.realpath(team.root).encode()).hexdigest()[:16]}-"


class RunFolder:
    """The folder at the path ``at``; ``work`` and ``home`` are in it."""

    ANY: ClassVar[str] = "/\0any\0"
    """Stands for the path where an order is made before the attempt has its number."""

    def __init__(self, path: str) -> None:
        self.at = path

    @classmethod
    def of(cls, team: Team, role: str, subject: str, attempt: int) -> RunFolder:
        """The folder of an attempt, also for a command that continues it."""
        name = f"{role}-{subject}".replace("/", "+")
        return cls(f"{_base()}/{_front(team)}{name}-{attempt}")

    @classmethod
    def left(cls, team: Team, role: str, subject: str, attempt: int) -> RunFolder:
        """The folder of an attempt that is there, also one that an earlier version made."""
        folder = cls.of(team, role, subject, attempt)
        old = f"{_base()}/{_front(team)}{subject}-{attempt}"
        is_old = role == _OLD_ROLE and subject.isdecimal() and not os.path.isdir(folder.at)
        return cls(old) if is_old and os.path.isdir(old) else folder

    def make(self, *, config: bool, lends: Iterable[str]) -> None:
        """Make it, with lent files alone (RefusedError: its place is another's, or public)."""
        base = os.path.dirname(self.at)
        os.makedirs(base, mode=0o700, exist_ok=True)
        found = os.lstat(base)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise RefusedError(
                f"{base} is not a private folder of yours: remove it, or set TMPDIR elsewhere"
            )
        shutil.rmtree(self.at, ignore_errors=True)
        for path in (self.at, f"{self.at}/work", f"{self.at}/home"):
            os.mkdir(path, 0o700)
        if config:
            os.mkdir(f"{self.at}/home/{CONFIG}", 0o700)
        for path in filter(os.path.isfile, map(os.path.expanduser, lends)):
            to = f"{self.at}/home/{CONFIG}/{os.path.basename(path)}"
            fd = os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "wb") as copy, open(open_plain_file(path, named=True), "rb") as file:
                shutil.copyfileobj(file, copy)

    def transcripts(self, within: str) -> Iterator[tuple[str, bytes, bool]]:
        """Files that the program left, by path: path, bytes that are kept, whether it has more."""
        top = os.path.join(os.path.realpath(self.at), "home", CONFIG, within).rstrip("/")
        if os.path.realpath(top) != top:
            return  # the program made it a link: the target is not its own
        for folder, folders, names in os.walk(top):
            folders.sort()
            for name in sorted(names):
                path = f"{folder}/{name}"
                if os.path.isfile(path) and not os.path.islink(path):
                    with open(open_plain_file(path), "rb") as file:
                        yield path, file.read(MAX_TRANSCRIPT), bool(file.read(1))


def sweep_run_folders(team: Team) -> None:
    """Remove the folders of attempts that are over."""
    base, front = _base(), _front(team)
    try:
        names = os.listdir(base)
    except FileNotFoundError:
        return
    for name in names:
        job, _, attempt = name.removeprefix(front).rpartition("-")
        role, _, subject = (_OLD_ROLE, "", job) if job.isdecimal() else job.partition("-")
        if not name.startswith(front) or not attempt.isdecimal():
            continue
        sql = "SELECT state FROM agents WHERE role = ? AND subject = ? AND attempt = ?"
        of = (role, subject.replace("+", "/"), int(attempt))
        row = team.store.db.execute(sql, of).fetchone()
        if row is not None and row[0] in ("ended", "abandoned"):
            shutil.rmtree(f"{base}/{name}", ignore_errors=True)


def transcripts_in(archive: bytes) -> Iterator[tuple[str, bytes, bool]]:
    """Files of a transcript archive (tar) from the namespace; a truncated one ends early."""
    import io  # most commands read no archive
    import tarfile

    with (
        suppress(tarfile.TarError, EOFError, ValueError),
        tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tar,
    ):
        files = sorted((one for one in tar if one.isreg()), key=lambda one: one.name)
        for one in files:
            file = tar.extractfile(one)
            if file is not None:
                yield one.name, file.read(MAX_TRANSCRIPT), one.size > MAX_TRANSCRIPT


def _keep_transcripts(act: Act, files: Iterable[tuple[str, bytes, bool]], run: Attempt) -> None:
    """Store the transcripts that the program wrote, beside the logs of workers."""
    for number, (path, data, is_longer) in enumerate(files, 1):
        if number > MAX_TRANSCRIPTS:
            act.warn(f"of {run.role}'s transcripts only the first {MAX_TRANSCRIPTS} are stored")
            return
        if is_longer:
            act.warn(f"{path} is longer than {MAX_TRANSCRIPT} bytes: its beginning is kept")
        kept = f"{layout.WORKER_LOG.folder}/{run.role}-{run.spawn[:12]}-{number}.log"
        written = act.disk.write(kept, File(data, layout.WORKER_LOG.mode))
        assert written is not None
        act.append([team_evidence_kept(kept, data, written.mtime_us, None)])
        act.writer.account(kept, sha256(data).hexdigest())


def keep_left(act: Act, run: Attempt, result: SpawnResult) -> bool:
    """Store the transcripts that came back from the namespace; whether any did."""
    if result.left:
        _keep_transcripts(act, transcripts_in(result.left), run)
    return bool(result.left)


# Jobs ------------------------------------------------------------------------------------------


def isolated_job(
    team: Team, role: str, subject: str, order: Order, *, prompt: bytes, sources: tuple[int, ...]
) -> Job:
    """A job that runs as ordered, each attempt in a folder of its own.

    ``sources`` are the entries whose text stands in the prompt.
    """

    def spec(number: int) -> SpawnSpec:
        at = RunFolder.of(team, role, subject, number).at
        # The order was made for a folder without a number: each attempt has one of its own.
        argv = tuple(word.replace(RunFolder.ANY, at) for word in order.spec.argv)
        env = {name: text.replace(RunFolder.ANY, at) for name, text in order.spec.set_env.items()}
        cwd = order.place.cwd.replace(RunFolder.ANY, at)
        return replace(order.spec, argv=argv, set_env=env, cwd=cwd, stdin=prompt)

    return Job(role, subject, spec, sources, order.actor)


class IsolatedHooks(JobHooks):
    """Records how far a run is isolated and what files it is given, and keeps its transcripts.

    ``kind`` is the kind of the entry that says how far.
    """

    def __init__(self, team: Team, order: Order, kind: Kind[Any]) -> None:
        self.team = team
        self.order = order
        self.kind = kind

    def requested(self, act: Act, run: Attempt) -> tuple[int, ...]:
        """Record the isolation and the files that the program gets, and make its folder."""
        order, place = self.order, self.order.place
        isolated = self.kind.draft(
            {
                "spawn": run.spawn,
                "level": place.level,
                "hidden": list(order.hidden),
                "problem": place.problem,
                "bwrap": place.bwrap and {"path": place.bwrap[0], "sha256": place.bwrap[1]},
            }
        )
        texts = [
            DELIVERED.draft(
                {
                    "spawn": run.spawn,
                    "channel": "file",
                    "content": data,
                    "sha256": sha256(data).hexdigest(),
                    "sources": [],
                }
            )
            for data in order.texts
        ]
        act.append([isolated, *texts])
        folder = RunFolder.of(self.team, run.role, run.subject, run.attempt)
        folder.make(config=order.config is not None, lends=order.lends)
        return ()

    def ended(self, act: Act, run: Attempt, result: SpawnResult) -> None:
        """Store what the program left in its own folder."""
        if not keep_left(act, run, result) and self.order.transcripts:
            folder = RunFolder.left(self.team, run.role, run.subject, run.attempt)
            _keep_transcripts(act, folder.transcripts(self.order.transcripts), run)
