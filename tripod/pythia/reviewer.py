"""Acts on Pythia: list what is due, run the review, record one from outside, show it.

One checkpoint event gives exactly one assessment (``tripod.pythia.review`` says how). The reviewer
gets the decision log up to the checkpoint's last decision, on standard input, and nothing else of
the team.

Source: seeds tripod-architecture; design sections 7 and 8; spec nbs-compat C6, C10.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from tripod.agents import profiles
from tripod.agents.isolation import Home, given_to, isolate, refuse_secret, resolve
from tripod.agents.jobs import newest
from tripod.agents.spec import BASIC_ENV
from tripod.bus.events import NOBODY, claim_on
from tripod.errors import BadArgumentError, NotFoundError, RefusedError
from tripod.ledger.files import read_plain
from tripod.projections import BUS, CHAT, HIDDEN_BESIDE, LOG, content_bytes
from tripod.projections.pythia.format import INSTRUCTIONS
from tripod.pythia.checkpoints import Point, ask, pending, point_named, point_of, snapshot
from tripod.pythia.folder import CONFIG, Folder
from tripod.pythia.review import HANDLE, ROLE, Order, Stand, judge, post, review, stand_of, tidy
from tripod.team.team import Team
from tripod.verify.isolation.runs import LIMIT

PROFILE = "TRIPOD_PYTHIA_PROFILE"
"""The variable that names the default profile of the reviewer's program; else ``pythia``."""

TIMEOUT = 1800
"""Seconds that the reviewer's program may take by default."""

_SELF = "tripod"  # who asks for a review, where nobody says who it is


class PendingReview(NamedTuple):
    """A checkpoint event that nobody answered: its name, time in µs, and what it asks for.

    ``state`` is waiting, running, or failed (a run gave no assessment); ``claimed`` says who else
    has it. With ``problem`` it cannot be answered as it stands. ``acknowledged``: somebody took it
    out of the queue, which is no review.
    """

    name: str
    us: int
    first: str | None
    last: str | None
    decisions: int
    state: str
    claimed: str | None
    problem: str | None
    acknowledged: bool


class PostedAssessment(NamedTuple):
    """An assessment that was posted: its event, decisions, text, and where it stands.

    ``level`` is how far the run was isolated; None where it came from outside (``recorded``).
    """

    event: str
    first: str
    last: str
    decisions: int
    confidence: str
    cited: list[str]
    origin: str
    level: str | None
    channel: str
    message: int
    text: str


class ReviewOutcome(NamedTuple):
    """What a run came to: an answer, or the problems of the last try. ``stderr`` is its end."""

    event: str
    answer: PostedAssessment | None
    problems: list[str]
    stderr: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerProgram:
    """What is run as Pythia: a command line, or else a profile; see ``tripod pythia run``."""

    command: Sequence[str] = ()
    profile: str | None = None
    model: str | None = None
    effort: str | None = None
    shows: Sequence[str] = ()
    network: bool = False
    timeout_s: float | None = TIMEOUT
    require_namespace: bool = False


# What is due -----------------------------------------------------------------------------------


def due(team: Team, now_us: int) -> list[PendingReview]:
    """The checkpoint events that nobody answered, oldest first; ``now_us`` is the clock."""
    return [_due(team, event, now_us) for event in pending(team)]


def _due(team: Team, event: int, now_us: int) -> PendingReview:
    body = team.source.body(event)
    claim = claim_on(team, event)
    others = claim is not None and claim.until_us > now_us and claim.holder != HANDLE
    last = newest(team.store.db, ROLE, str(event))
    sql = "SELECT max(seq) FROM failures WHERE event = ?"
    failed = team.store.db.execute(sql, (event,)).fetchone()[0]
    state = "waiting"
    if last is not None:
        state = "failed" if failed is not None and failed > last.seq else "running"
    front = (body["name"], body["us"])
    who = claim.holder if claim is not None and others else None
    sql = "SELECT acked IS NOT NULL FROM events WHERE seq = ?"
    acked = bool(team.store.db.execute(sql, (event,)).fetchone()[0])
    try:
        asked = point_of(team, event).asked
    except RefusedError as error:
        return PendingReview(*front, None, None, 0, state, who, str(error), acked)
    return PendingReview(*front, asked.first, asked.last, asked.decisions, state, who, None, acked)


def summon(team: Team, *, actor: str = NOBODY) -> Point | None:
    """Ask for a review of all decisions since the last checkpoint: its event, published first.

    Without new decisions: the newest event that waits for its answer, or None.

    Raises:
        NotFoundError: no decision was logged yet.
    """
    handle = _SELF if actor == NOBODY else actor
    with team.act(by=handle) as act:
        draft = ask(team, act, handle)
        entries = [] if draft is None else act.append([draft])
    if entries:
        return point_of(team, entries[0].seq)
    waiting = pending(team)
    return point_of(team, waiting[-1]) if waiting else None


def _oldest(team: Team, now_us: int) -> Point | None:
    """The oldest event that can be answered; what hinders the others is told."""
    for event in pending(team):
        found = _due(team, event, now_us)
        if found.problem is not None:
            team.warnings.append(found.problem)
        elif found.claimed is not None:
            team.warnings.append(f"{found.name} is claimed by {found.claimed}")
        else:
            return point_of(team, event)
    return None


# Running the reviewer --------------------------------------------------------------------------


async def run(
    team: Team,
    program: ReviewerProgram,
    now_us: int,
    *,
    event: str | None = None,
    manual: bool = False,
    actor: str = NOBODY,
) -> ReviewOutcome | None:
    """Have a checkpoint event answered; None where none is due.

    Being cancelled ends the reviewer's program.

    Args:
        team: the team whose decisions are reviewed.
        program: what is run.
        now_us: the clock.
        event: the name of the event; the oldest by default.
        manual: publish an event first, for all decisions since the last checkpoint.
        actor: who wants it.

    Raises:
        BadArgumentError, NotFoundError: there is no such event, profile or program.
        RefusedError: the event is somebody else's, or the namespace that is required cannot be had.
        LedgerError: nothing could be recorded.
    """
    order = order_for(team, program, actor)
    if order.place.level == "namespace":
        team.warnings += [f"{path} is lent as it lies there: {why}" for path, why in order.lent]
    tidy(team)
    if manual:
        point = summon(team, actor=actor)
    else:
        point = _oldest(team, now_us) if event is None else point_named(team, event)
    if point is None:
        return None
    log = snapshot(team, point)
    stand = await review(team, point, log, replace(order, prompt=instructions(point)))
    tidy(team)
    if stand.answer is not None:
        return ReviewOutcome(point.name, _answer(team, stand.answer), [])
    problems: list[str] = team.source.body(stand.failed)["problems"]
    return ReviewOutcome(point.name, None, problems, _said(team, stand))


def _said(team: Team, stand: Stand) -> str:
    """The last line that the program wrote to standard error."""
    spawns = team.source.body(stand.failed)["spawns"]
    sql = "SELECT ended FROM agents WHERE spawn = ? AND state = 'ended'"
    row = team.store.db.execute(sql, (spawns[-1],)).fetchone() if spawns else None
    kept = {} if row is None else team.source.body(row[0])["stderr"]
    data = content_bytes(team.source, kept["content"]) if "content" in kept else b""
    lines = data.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:200] if lines else ""


def _secret(team: Team) -> tuple[list[str], str]:
    """Folders that the reviewer must not see, and the project around them."""
    root = os.path.realpath(team.root)
    project = os.path.dirname(root)
    added = (one for one in team.disk.places.added if not one.startswith(f"{LOG.folder}/"))
    kept = (BUS.folder, CHAT.folder, *added)  # the reviewer gets the logs
    folders = [root, *map(team.disk.full, kept), f"{project}/.git"]
    return folders, project


def instructions(point: Point) -> str:
    """The instructions for a checkpoint event, which precede the log."""
    asked = point.asked
    words = {"{first}": asked.first, "{last}": asked.last, "{count}": str(asked.decisions)}
    text = INSTRUCTIONS
    for mark, word in words.items():
        text = text.replace(mark, word)
    return text


def order_for(team: Team, program: ReviewerProgram, actor: str) -> Order:
    """How the reviewer's program is run here, isolated as far as this system can.

    Raises:
        BadArgumentError, NotFoundError: there is no such profile or program.
        RefusedError: the namespace that is required cannot be had.
    """
    known = _profile(program)
    needs = known.isolated
    secret, project = _secret(team)
    shows = [*program.shows, *(path for path in needs.shows if os.path.exists(_full(path)))]
    own = resolve(known.argv, shows, secret)
    lends = [full for path in needs.lends if os.path.isfile(full := _full(path))]
    for path in lends:
        refuse_secret(path, secret)
    given = given_to(own, LIMIT)
    place = isolate(
        own,
        Folder.ANY,
        secret,
        project,
        network=program.network or needs.network,
        given=given,
        home=_home(needs, lends),
    )
    if program.require_namespace and place.level != "namespace":
        raise RefusedError(
            f"no mount namespace can be had here: {place.problem}. Nothing was run; install "
            "bubblewrap, or leave out --require-namespace"
        )
    # What a variable says is recorded, so that it can be searched as all else that is given.
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
        model=program.model,
        effort=program.effort,
        sealed=place.sealed,
        leaves=place.leaves,
    )
    return Order(
        spec=spec,
        place=place,
        hidden=() if in_a_folder else HIDDEN_BESIDE,
        prompt="",
        actor=_SELF if actor == NOBODY else actor,
        texts=tuple(data for data, _ in given.files.values()),
        lends=tuple(lends) if needs.config is not None and in_a_folder else (),
        config=needs.config,
        transcripts=needs.transcripts,
        lent=given.lent,
    )


def _home(needs: profiles.Isolation, lends: Sequence[str]) -> Home:
    """The program's private home; a login that is lent to it is read here, once.

    Raises:
        RefusedError: a login cannot be read.
    """
    if needs.config is None:
        return Home()
    files = {}
    for path in lends:
        try:
            files[f"{CONFIG}/{os.path.basename(path)}"] = read_plain(path, LIMIT, named=True)
        except OSError as error:
            raise RefusedError(
                f"{path}: {error.strerror}: a profile's lends must be readable"
            ) from error
    returns = f"{CONFIG}/{needs.transcripts}".rstrip("/") if needs.transcripts else ""
    return Home(files, CONFIG, returns)


def _full(path: str) -> str:
    return os.path.expanduser(path)


def _profile(program: ReviewerProgram) -> profiles.Profile:
    if program.command and program.profile is not None:
        raise BadArgumentError("a program is given twice: by --profile, and by its command line")
    if program.command:
        return profiles.Profile(tuple(program.command))
    return profiles.load(program.profile or os.environ.get(PROFILE) or "pythia")


# From outside ----------------------------------------------------------------------------------


def record(
    team: Team, text: str, now_us: int, *, event: str | None = None, handle: str = HANDLE
) -> PostedAssessment:
    """Post an assessment that came from outside, as the answer to a checkpoint event.

    Nothing is known of what its author had read, and the entry says so.

    Args:
        team: the team that it is for.
        text: the whole assessment; it must follow the template.
        now_us: the clock.
        event: the name of the event; the oldest that waits by default.
        handle: who wrote it.

    Raises:
        NotFoundError: there is no such event, or none waits.
        RefusedError: the assessment does not hold, or the event is answered, or being answered.
    """
    text = text.strip()
    point = _oldest(team, now_us) if event is None else point_named(team, event)
    if point is None:
        raise NotFoundError(
            "no checkpoint event waits for an assessment: `tripod pythia due` lists them"
        )
    log = snapshot(team, point)
    stand = stand_of(team, point, log)
    if stand.answer is None and _due(team, point.event, now_us).state == "running":
        raise RefusedError(
            f"{point.name} is being reviewed by a run: wait for it (`tripod pythia run`)"
        )
    judged = judge(text, point, log)
    if judged.problems and stand.answer is None:
        raise RefusedError(f"the assessment does not hold: {'; '.join(judged.problems)}")
    if stand.answer is not None or not post(team, point, text, judged, handle=handle):
        raise RefusedError(
            f"{point.name} is answered: `tripod pythia show {point.name}` has the assessment"
        )
    return _answer(team, _answered(team, point.event))


# Reading ---------------------------------------------------------------------------------------


def show(team: Team, which: str = "last") -> PostedAssessment:
    """The newest assessment that was posted, or that of a checkpoint event.

    Raises:
        NotFoundError: there is no such event or assessment.
    """
    if which == "last":
        row = team.store.db.execute("SELECT max(seq) FROM assessments").fetchone()
        if row[0] is None:
            raise NotFoundError(
                "no assessment yet: `tripod pythia run` has one made where one is due"
            )
        return _answer(team, row[0])
    return _answer(team, _answered(team, point_named(team, which).event))


def _answered(team: Team, event: int) -> int:
    sql = "SELECT seq FROM assessments WHERE event = ?"
    row = team.store.db.execute(sql, (event,)).fetchone()
    if row is None:
        raise NotFoundError(
            f"{team.source.body(event)['name']} has no assessment: `tripod pythia run`"
        )
    return int(row[0])


def _answer(team: Team, seq: int) -> PostedAssessment:
    body: dict[str, Any] = team.source.body(seq)
    message = team.source.body(body["message"])
    sql = "SELECT level FROM isolations WHERE spawn = ?"
    row = team.store.db.execute(sql, (body.get("spawn"),)).fetchone()
    return PostedAssessment(
        team.source.body(body["event"])["name"],
        body["first"],
        body["last"],
        body["decisions"],
        body["confidence"],
        body["cited"],
        body["origin"],
        None if row is None else row[0],
        message["channel"],
        message["index"],
        content_bytes(team.source, body["content"]).decode(),
    )
