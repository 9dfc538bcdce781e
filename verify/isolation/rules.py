"""Judges the sessions of a team by its rules on files that an agent must not have read.

A session is known by the entries that imported it. Its newest state is read again, and judged by
what it was given; so is each earlier one that the newest does not hold. Where its bytes are not at
hand, what its entries say of its paths can show a breach, and nothing can show that there was none.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import orjson

from tripod.ledger.errors import MissingExtraError
from tripod.ledger.kinds.base import MARK
from tripod.projections.chat.format import QUOTES, parse_line
from tripod.projections.chat.tables import render_chat_line
from tripod.projections.decisions.tables import LOG, render_decision_piece
from tripod.verify.check import Evidence, Outcome, shorten
from tripod.verify.isolation.globs import NeverRule
from tripod.verify.isolation.phrases import ProtectedText
from tripod.verify.isolation.reasons import Exposure
from tripod.verify.isolation.runs import ROLE, reviewer_workers
from tripod.verify.isolation.sessions import (
    NOTHING,
    UNTOLD,
    CallsSeen,
    Never,
    SessionRole,
    Sight,
    SightGrade,
    Since,
    parts_of,
)
from tripod.verify.sessions.exposure import SessionExposures, judge_exposures
from tripod.verify.sessions.items import Session

_STATES = (
    "SELECT session, agent, seq, parent, program, role, cwd, custody, form, sha256, before, file,"
    " kept FROM sessions ORDER BY seq"
)
_FEW = 3  # entries that are named
HOOKS_GONE = "what hooks saw of it is not at hand any more"
"""Of a session that was imported from the folder of hooks: what else lay there may show a call."""
_RUNS = "SELECT spawn, role, ended FROM agents WHERE ended IS NOT NULL"
_WORKERS = "SELECT DISTINCT name FROM worker_steps WHERE spawn = ?"


class SessionState(NamedTuple):
    """A state of a session's file, as an entry has it."""

    seq: int
    parent: str
    program: str
    role: str
    cwd: str
    custody: str
    form: str
    sha256: str
    before: str
    file: str
    kept: int


@dataclass
class TeamSession:
    """A session of the team, or a subagent's part of one, in its newest state.

    ``names`` are what a rule may call it: the role of the run that it is of, the name of the
    worker, the type of the subagent. ``first`` is the entry that imported it first. ``states`` are
    all that were imported of it: what any of them names stays so, whatever a later one lacks.
    """

    seq: int
    first: int
    session: str
    agent: str
    parent: str
    program: str
    role: str
    cwd: str
    custody: str
    names: set[str] = field(default_factory=set)
    states: Sequence[SessionState] = ()

    @property
    def title(self) -> str:
        """Words for it."""
        inner = f", subagent {self.agent}" if self.agent else ""
        called = f" ({', '.join(sorted(self.names))})" if self.names else ""
        return f"session {self.session}{inner}{called}"


class Breach(NamedTuple):
    """A file that a session read although a rule forbids it; ``read_again``: by its bytes.

    ``state`` is the entry of an earlier state of it, where the newest does not have that.
    """

    session: TeamSession
    exposure: Exposure
    read_again: bool
    state: int | None = None

    @property
    def message(self) -> str:
        """Words for it, with the line of the session's record."""
        session, each = self.session, self.exposure
        how = "was shown" if each.shown else "opened"
        named = shorten(str(each.named or each.path))
        inner = f", subagent {each.agent}" if each.agent not in ("main", session.agent) else ""
        place = f", line {each.line}" if each.line else f", in {each.within}" * bool(each.within)
        return f"{session.title}{inner} {how} {named} ({each.channel}{place})"


@dataclass
class RuleJudged:
    """What one rule came to: breaches, why the rest cannot be told, and what was looked at.

    ``why`` has the reasons again by the session's title; '' stands for all of them.
    """

    breaches: list[Breach] = field(default_factory=list)
    untold: list[str] = field(default_factory=list)
    relied: set[int] = field(default_factory=set)
    """Entries of sessions of which a snapshot shows what their program leaves no record of."""
    seen: Counter[str] = field(default_factory=Counter)
    why: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SightedOutcome(Outcome):
    """The outcome of a check that also says who saw what, for people who look at a report."""

    sights: tuple[Sight, ...] = ()


def with_sights(told: Outcome, sights: Iterable[Sight]) -> Outcome:
    """An outcome that says what ``told`` says, and who saw what."""
    known = {one.name: getattr(told, one.name) for one in fields(told)}
    return SightedOutcome(**known, sights=tuple(sights))


def sights_of(told: Outcome) -> tuple[Sight, ...]:
    """Who saw what, where an outcome says it."""
    return told.sights if isinstance(told, SightedOutcome) else ()


def sights_of_rule(place: str, bound: Iterable[TeamSession], told: RuleJudged) -> Iterator[Sight]:
    """What each session that a rule is about saw of its files; accepted findings count as well."""
    for one in bound:
        of = [breach for breach in told.breaches if breach.session is one]
        why = [breach.message for breach in of]
        why = why or [*told.why.get("", ()), *told.why.get(one.title, ())]
        grade: SightGrade = UNTOLD if why else NOTHING
        if of:
            grade = "shown" if any(breach.exposure.shown for breach in of) else "opened"
        role = ", ".join(sorted(one.names))
        yield Sight(role, one.title, place, grade, tuple(dict.fromkeys(why)), one.seq)


def team_sessions(evidence: Evidence) -> list[TeamSession]:
    """The sessions that the ledger has, each with what rules may call it."""
    states: dict[tuple[str, str], list[SessionState]] = {}
    for session, agent, *row in evidence.query(_STATES):
        states.setdefault((session, agent), []).append(SessionState(*row))
    found = sorted((_team_session(*key, of) for key, of in states.items()), key=lambda one: one.seq)
    runs = _runs(evidence)
    for one in found:
        one.names |= runs.get(one.session, set())
        one.names.update(given.role for given in evidence.sessions.roles if _is_given(one, given))
    workers = {worker.name for worker in reviewer_workers(evidence)} if found else set()
    for one in found:
        if any(map(_CALLED.search, one.names)) or one.names & workers:
            one.names.add(ROLE)
    return found


_CALLED = re.compile(rf"(?:^|:){ROLE}", re.IGNORECASE)
"""A name of Pythia; the type of a subagent may begin with the name of the plugin that has it."""


def _is_given(one: TeamSession, given: SessionRole) -> bool:
    return _is_any_folder(one, given.folder) and fnmatchcase(one.session, given.session)


def roles_of_nobody(
    evidence: Evidence, sessions: Sequence[TeamSession], *, of_pythia: bool
) -> Iterator[str]:
    """Where the policy gives a role, Pythia's or another, to no session here, in words."""
    for given in evidence.sessions.roles:
        is_asked = (_CALLED.search(given.role) is not None) is of_pythia
        if is_asked and not any(_is_given(one, given) for one in sessions):
            parts = {"folder": given.folder, "session": given.session}
            which = ", ".join(f"{key} {part}" for key, part in parts.items() if part != "*")
            yield f"the role {given.role} is given to no session here" + f" ({which})" * bool(which)


def _team_session(session: str, agent: str, states: Sequence[SessionState]) -> TeamSession:
    new = states[-1]
    told = (new.parent, new.program, new.role, new.cwd, new.custody)
    names = {state.role for state in states} - {""}
    return TeamSession(new.seq, states[0].seq, session, agent, *told, names, states)


def is_heard(one: TeamSession) -> bool:
    """Whether a state of a session lay in the folder of hooks, beside what they saw of it."""
    return any(state.custody == "hook" for state in one.states)


def _not_continued(states: Sequence[SessionState]) -> dict[int, bool]:
    """The entries of states before the newest that no later one holds.

    That is another form of it, or what was there before it was changed. False of one that its
    program wrote anew, which may be gone.
    """
    left: dict[int, tuple[SessionState, bool]] = {}
    last: SessionState | None = None
    for state in states:
        for seq, (old, _) in list(left.items()):
            is_grown = old is last and state.form == "lines" and state.before == old.sha256
            is_anew = "lines" not in (old.form, state.form) and old.file in (state.file, MARK)
            if is_grown or old.sha256 == state.sha256:
                del left[seq]
            elif is_anew and old.kept and old.file != MARK:
                left[seq] = old, False
            elif is_anew:
                del left[seq]
        left[state.seq] = state, True
        last = state if state.form == "lines" else last
    return {seq: is_whole for seq, (_, is_whole) in left.items() if seq != states[-1].seq}


def sessions_of_runs(evidence: Evidence) -> Iterator[tuple[str, str, str]]:
    """The session that each run of ours names: its id, the run, and the run's role."""
    for spawn, role, ended in evidence.query(_RUNS):
        session = evidence.body(ended).get("session")
        if isinstance(session, str):
            yield session, spawn, role


def _runs(evidence: Evidence) -> dict[str, set[str]]:
    """By the session that a run of ours names: the run's role, and the worker that it was for."""
    names: dict[str, set[str]] = {}
    for session, spawn, role in sessions_of_runs(evidence):
        workers = [name for (name,) in evidence.query(_WORKERS, spawn)]
        names.setdefault(session, set()).update((role, *workers))
    return names


def bound_by(never: Never, sessions: Sequence[TeamSession]) -> list[TeamSession]:
    """The sessions that a rule is about, and those that they started: what these saw came back."""
    bound = {
        (one.session, one.agent)
        for one in sessions
        if one.seq >= never.since
        and (never.role == "*" or any(fnmatchcase(name, never.role) for name in one.names))
        and _is_any_folder(one, never.folder)
        and fnmatchcase(one.session, never.session)
    }
    size = -1
    while size != len(bound):
        size = len(bound)
        parents = {session for session, agent in bound if not agent}
        bound |= {
            (one.session, one.agent)
            for one in sessions
            if any(state.parent in parents for state in one.states)
            or (one.agent and one.session in parents)
        }
    return [one for one in sessions if (one.session, one.agent) in bound]


def in_no_folder(
    evidence: Evidence, nevers: Sequence[Never], sessions: Sequence[TeamSession]
) -> Iterator[str]:
    """How many of the sessions name no folder, where a rule or a role goes by it, in words."""
    by_folder: list[Never | SessionRole] = [*nevers, *evidence.sessions.roles]
    count = sum(not any(state.cwd for state in one.states) for one in sessions)
    if count and not all(_is_folder("", each.folder) for each in by_folder):
        name = "1 session names" if count == 1 else f"{count} sessions name"
        yield f"{name} no folder, so that no rule or role which goes by folders is about that"


def _is_any_folder(one: TeamSession, pattern: str) -> bool:
    return any(_is_folder(state.cwd, pattern) for state in one.states)


def _is_folder(cwd: str, pattern: str) -> bool:
    """Whether a folder fits a pattern; one that ends in ``/`` or ``/**`` means the folder too."""
    cwd = re.sub("^/+", "/", posixpath.normpath(cwd)) if cwd else ""
    pattern = pattern.rstrip("/") or pattern
    return fnmatchcase(cwd, pattern) or cwd == pattern.removesuffix("/**")


class _Rule:
    """A rule as it is judged: what it forbids, the sessions that it is about, what it came to."""

    def __init__(
        self,
        evidence: Evidence,
        never: Never,
        bound: Sequence[TeamSession],
        allowed: Iterable[str] | None,
    ) -> None:
        self.never, self.globs = never, NeverRule(never.paths, never.but)
        self.bound = {one.seq for one in bound}
        self.read: list[SessionExposures] = []
        self.told = RuleJudged()
        self.told.seen["sessions"] = len(bound)
        try:
            self.globs.hits("")  # they are compiled as soon as a path is held against them
        except MissingExtraError as error:
            self.told.untold.append(str(error))
            self.bound = set()
            self.told.why[""] = list(self.told.untold)
            return
        self.forbidden = _ForbiddenText(evidence, self.globs, allowed)
        self.told.untold += self.forbidden.untold
        erased = sum(seq < max(self.bound, default=0) for seq in self.forbidden.erased)
        if erased:
            were = "1 message was" if erased == 1 else f"{erased} messages were"
            self.told.untold.append(f"{were} erased, and cannot be compared")
        self.told.why[""] = list(self.told.untold)


def judge_never(
    evidence: Evidence,
    rules: Sequence[tuple[Never, Sequence[TeamSession]]],
    allowed: Iterable[str] | None = None,
) -> list[RuleJudged]:
    """Judge for each rule the sessions that it is about; each session is read once.

    ``allowed`` are texts that they may see, of rules that forbid the chat and no other text: then
    the project's files are not searched for.
    """
    judging = [_Rule(evidence, never, bound, allowed) for never, bound in rules]
    sessions = {one.seq: one for _, bound in rules for one in bound}
    for _, one in sorted(sessions.items()):
        about = [rule for rule in judging if one.seq in rule.bound]
        if about:
            _judge_session(evidence, one, about)
    for rule in judging:
        if rule.read:
            verdict = judge_exposures(
                rule.read, Counter(), shown_only=rule.never.shown, needs_parents=False
            )
            rule.told.untold += verdict.untold
            for reason in verdict.unseen:
                rule.told.why.setdefault(reason.file, []).append(reason.text)
    return [rule.told for rule in judging]


def _judge_session(evidence: Evidence, one: TeamSession, rules: Sequence[_Rule]) -> None:
    """Judge a session by the rules that are about it: its newest state, and what that lost."""
    found: list[list[Exposure]] = [[] for _ in rules]
    for seq, is_whole in ((one.seq, True), *_not_continued(one.states).items()):
        judges = _read_again(evidence, one, seq, rules if is_whole else (), of=rules)
        for number, (rule, judge) in enumerate(zip(rules, judges, strict=False)):
            if is_whole:
                rule.read.append(judge)
            rule.told.relied |= {one.seq} if judge.gaps.filled else set()
            known = {_known_by(each) for each in found[number]}
            new = [
                each
                for each in judge.found
                if _breaks(each, rule.never) and _known_by(each) not in known
            ]
            found[number] += new
            state = None if seq == one.seq else seq
            rule.told.breaches += (Breach(one, each, read_again=True, state=state) for each in new)
        if seq == one.seq and judges:
            for rule in rules:
                rule.told.seen["read again"] += 1
    said = list(said_to_be_read(evidence, one))
    for number, rule in enumerate(rules):
        # An earlier state of it may have said more: a document is written anew.
        paths = {each.path for each in found[number]}
        rule.told.breaches += (
            Breach(one, each, read_again=False)
            for each in said
            if _breaks(each, rule.never)
            and each.path not in paths
            and rule.globs.hits(each.path or "")
        )


def _known_by(each: Exposure) -> tuple[object, ...]:
    """By what an exposure is the same in two states of a session."""
    return each.line, each.agent, each.channel, each.path or each.named, each.shown


def not_imported(evidence: Evidence, never: Never) -> Iterator[str]:
    """Runs of ours that a rule is about by their role, and whose session nobody imported."""
    there = {session for (session,) in evidence.query("SELECT DISTINCT session FROM sessions")}
    for session, names in sorted(_runs(evidence).items()) if never.role != "*" else ():
        if session not in there and any(fnmatchcase(name, never.role) for name in names):
            yield f"session {session} ({', '.join(sorted(names))}) was not imported"


def _breaks(exposure: Exposure, never: Never) -> bool:
    return exposure.sure and (exposure.shown or not never.shown)


def _read_again(
    evidence: Evidence, one: TeamSession, seq: int, telling: Sequence[_Rule], of: Sequence[_Rule]
) -> Sequence[SessionExposures]:
    """What a state of a session exposed by each rule ``of`` these; none where it is not at hand.

    The rules ``telling`` say why it is not.
    """
    body = evidence.body(seq)
    ended = body.get("ended_us")
    ended = ended if isinstance(ended, int) else None
    unreadable: tuple[type[Exception], ...] = (OSError, *evidence.unreadable)
    log = evidence.sessions.hooks(str(body["session"]))

    def start(_: Session) -> SessionExposures:
        texts = ((rule.globs, rule.forbidden.before(seq, ended)) for rule in of)
        judges = [SessionExposures(*pair, one.title) for pair in texts]
        return CallsSeen(judges, is_noted=log is not None)

    try:
        judged = evidence.sessions.again(body, parts_of(evidence.source, body), start)
    except unreadable as error:
        why = getattr(error, "strerror", None) or "its entry cannot be read"
        for rule in telling:
            rule.told.untold.append(f"{one.title}, entry {seq}: {why}")
            rule.told.why.setdefault(one.title, []).append(f"entry {seq}: {why}")
        return ()
    assert isinstance(judged, CallsSeen)  # by `start`
    if log is None and is_heard(one):
        for rule in telling:
            rule.told.untold.append(f"{one.title}: {HOOKS_GONE}")
            rule.told.why.setdefault(one.title, []).append(HOOKS_GONE)
    if log is not None:
        evidence.sessions.add_hooks(body, log, judged)
    return judged.judges


def said_to_be_read(evidence: Evidence, one: TeamSession) -> Iterator[Exposure]:
    """What the entries of a session say that it read, as it was when it was imported."""
    sql = "SELECT seq FROM sessions_read WHERE session = ? AND agent = ? ORDER BY seq"
    for (seq,) in evidence.query(sql, one.session, one.agent):
        for line in (evidence.text(seq, "exposures") or "").splitlines():
            try:
                yield Exposure(**orjson.loads(line))
            except (ValueError, TypeError):
                continue  # it was erased, or nobody of ours wrote it


class _ForbiddenText(ProtectedText):
    """The text that a rule forbids, kept to be indexed again for what one session could see.

    A decision may quote what it distils. So what stood in a log before a session ended, and may be
    read, does not count for that session; what was logged later does.
    """

    def __init__(self, evidence: Evidence, rule: NeverRule, allowed: Iterable[str] | None) -> None:
        super().__init__()
        self._texts: list[tuple[str, str]] = []
        self._readable = list(allowed or ())
        self._logged = list(_logged(evidence, rule))
        self._last: tuple[int, ProtectedText] | None = None
        self.untold = evidence.sessions.protect(self, rule) if allowed is None else []
        self.erased = _protect_chats(evidence, self, rule)

    def allow(self, text: str) -> None:
        """Keep a text that may be read."""
        self._readable.append(text)

    def add(self, path: str, text: str) -> None:
        """Keep a text that may not be read."""
        self._texts.append((path, text))

    def before(self, seq: int, ended: int | None) -> ProtectedText:
        """The text that counts for a session that entry ``seq`` took in and that ended then."""
        seen = [
            text for at, time, text in self._logged if at < seq and (ended is None or time <= ended)
        ]
        if self._last is None or self._last[0] != len(seen):
            protected = ProtectedText()
            for text in (*self._readable, *seen):
                protected.allow(text)
            for path, text in self._texts:
                protected.add(path, text)
            self._last = len(seen), protected
        return self._last[1]


def _logged(evidence: Evidence, rule: NeverRule) -> Iterator[tuple[int, int, str]]:
    """The pieces of the logs that a rule does not mean: entry, time of its append, text."""
    sql = "SELECT seq, file FROM pieces WHERE seq < ? ORDER BY seq"
    forbidden = {
        path
        for path in LOG.paths(evidence.source)
        if rule.hits(evidence.sessions.full_path(path, evidence.places))
    }
    for seq, file in evidence.query(sql, evidence.size):
        if f"{LOG.folder}/{file}" not in forbidden:
            try:
                text = render_decision_piece(evidence.source, evidence.body(seq))
            except evidence.unreadable:
                continue  # a body of another shape: `kinds-known` and `bodies-present` name it
            yield seq, evidence.micros(seq) or 0, text.decode("utf-8", "replace")


def _protect_chats(evidence: Evidence, protected: ProtectedText, rule: NeverRule) -> list[int]:
    """Protect what was said in the chats whose file a rule means; give the erased messages of it.

    So are files of these chats that were put aside, and what events whose file it means quote.
    """
    said: dict[str, list[str]] = {}
    erased = {seq for (seq,) in evidence.query("SELECT seq FROM redactions")}
    gone: list[int] = []
    for (channel,) in evidence.query("SELECT channel FROM channels ORDER BY channel"):
        path = evidence.sessions.full_path(f"chat/{channel}.chat", evidence.places)
        if rule.hits(path):
            said[channel] = [_place(evidence, path)]
    rows = evidence.query("SELECT seq FROM lines ORDER BY seq") if said else []
    for (seq,) in rows:
        body = evidence.body(seq)
        texts = said.get(str(body.get("channel")))
        if texts is not None and seq in erased:
            gone.append(seq)
        elif texts is not None:
            try:
                texts += _said(evidence, body)
            except evidence.unreadable:
                continue  # a body of another shape: `kinds-known` and `bodies-present` name it
    _add_beside(evidence, said, rule)
    for path, *texts in said.values():
        protected.add(path, "\n".join(texts))
    return gone


def _add_beside(evidence: Evidence, said: dict[str, list[str]], rule: NeverRule) -> None:
    """Add what others than the lines of a chat hold of it, each text once, by its file."""
    known = {text for _, *texts in said.values() for text in texts}
    for (seq,) in evidence.query("SELECT seq FROM displaced ORDER BY seq"):
        body = evidence.body(seq)
        path = evidence.sessions.full_path(str(body.get("path")), evidence.places)
        if str(body.get("path")).startswith("chat/") and rule.hits(path):
            lines = (evidence.text(seq, "content") or "").splitlines()
            messages = (parse_line(line.encode()) for line in lines)
            texts = [*lines, *(one.text for one in messages if one is not None)]
            texts = [one for one in texts if one not in known]
            said.setdefault(path, [_place(evidence, path)]).extend(texts)
    marks = ", ".join("?" * len(QUOTES))
    events = evidence.query(f"SELECT seq, name FROM events WHERE type IN ({marks})", *QUOTES)
    for seq, name in events:
        path = evidence.sessions.full_path(f"events/{name}", evidence.places)
        payload = (evidence.text(seq, "payload") or "") if rule.hits(path) else ""
        if payload and not {payload, payload.partition(": ")[2]} & known:
            said[path] = [_place(evidence, path), payload]


def _place(evidence: Evidence, path: str) -> str:
    """A path as it is in the project, wherever that lies; of a file elsewhere the whole path."""
    return path.removeprefix(f"{evidence.sessions.project}/")


def _said(evidence: Evidence, body: dict[str, Any]) -> Iterator[str]:
    """A line of a chat: what was said, and how it stands in the file."""
    if "text" in body:
        yield evidence.source.content(body["text"]).decode("utf-8", "replace")
        yield render_chat_line(evidence.source, body).decode("utf-8", "replace")
    else:
        yield evidence.source.content(body["observed"]["raw"]).decode("utf-8", "replace")


def since_import(evidence: Evidence, sessions: Sequence[TeamSession]) -> dict[int, Since]:
    """By its entry, what became of the file of a session where it was found.

    A place from which another session was imported later is that one's.
    """
    last = {seq for (seq,) in evidence.query("SELECT max(seq) FROM sessions GROUP BY file")}
    mine = (one.seq for one in sessions if one.seq in last)
    return {seq: evidence.sessions.since(evidence.body(seq)) for seq in mine}


_DAY_US = 86_400_000_000
_AT_ONCE_US = 300_000_000  # a hook that runs as a session ends may wait for other commands


def is_taken_by_hook(evidence: Evidence, one: TeamSession) -> bool:
    """Whether a session was taken from the folder of hooks as it ended, by the entry's time."""
    ended, taken = evidence.body(one.seq).get("ended_us"), evidence.micros(one.seq)
    if one.custody != "hook" or not isinstance(ended, int) or taken is None:
        return False
    return 0 <= taken - ended <= _AT_ONCE_US


def custody_of_sessions(
    evidence: Evidence, sessions: Sequence[TeamSession], told: Iterable[RuleJudged] = ()
) -> Iterator[str]:
    """Who could have changed what sessions are judged by, in words; ``told`` is what came of it.

    Nobody but that user has to write to the folder of hooks either: what an entry of that time
    shows is that nothing was changed since.
    """
    writer = "the user that the agent ran as could write there"
    days, dateless, taken = [], 0, list[int]()
    for one in sessions:
        ended, time = evidence.body(one.seq).get("ended_us"), evidence.micros(one.seq)
        if is_taken_by_hook(evidence, one):
            taken.append(one.seq)
        elif isinstance(ended, int) and time is not None:
            days.append(max(0, time - ended) // _DAY_US)
        else:
            dateless += 1
    if taken:
        entries = ", ".join(map(str, taken[:_FEW])) + ", …" * (len(taken) > _FEW)
        which = f"entr{'ies' if len(taken) > 1 else 'y'} {entries}"
        were = "1 session was" if len(taken) == 1 else f"{len(taken)} sessions were"
        yield f"{were} taken from the folder of hooks at the end, {which}, and until then {writer}"
    if days or dateless:
        count = len(days) + dateless
        span = " to ".join(map(str, sorted({min(days), max(days)}))) if days else ""
        when = f" {span} day{'s' * (span != '1')} after the last record" if days else ""
        were = "1 session was" if count == 1 else f"{count} sessions were"
        yield f"{were} found on disk{when}, and {writer}"
    relied = set[int]().union(*(one.relied for one in told))
    if relied:
        of = "1 session" if len(relied) == 1 else f"{len(relied)} sessions"
        yield f"instruction files of {of} are judged by a snapshot of hooks, and {writer}"
    since = Counter(since_import(evidence, sessions).values())
    if since["went on"]:
        went = "1 session went" if since["went on"] == 1 else f"{since['went on']} sessions went"
        yield f"{went} on after the import: import it again"
    if since["changed"]:
        many = f"{since['changed']} session{'s' * (since['changed'] > 1)}"
        yield f"the file of {many} was changed after the import: `sessions-whole` says which"
    sql = "SELECT count(DISTINCT origin) FROM merged WHERE kind = 'session.imported'"
    ((peers,),) = evidence.query(sql)
    if peers:
        yield f"sessions that {peers} peer{'s' * (peers > 1)} imported are judged there"
