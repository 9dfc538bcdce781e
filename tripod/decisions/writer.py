"""Acts of the Scribe: log a decision with its events, note what was handled of the inbox.

Source: spec nbs-compat B10, C6; seeds: nbs-scribe, tripod-architecture "Flow"; design section 7.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from sqlite3 import OperationalError
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from tripod.errors import BadArgumentError, MalformedEntryError
from tripod.ledger import Draft, codec, entry_leaf_hash
from tripod.ledger.ids import fresh_ids, now_us
from tripod.ledger.kinds.decisions import BEGUN, LOGGED, Decided, Reference
from tripod.ledger.words import RUN, words_of_text
from tripod.projections import LOG, Disk
from tripod.projections.chat.format import HEADER_LINES
from tripod.projections.chat.tables import chat_line_at, last_chat_line, ref_to_chat_line, span_of
from tripod.projections.decisions import format as format_
from tripod.projections.decisions.format import MAX_FIELD, MAX_TITLE, ChatRef
from tripod.projections.decisions.tables import decision_text_of
from tripod.projections.layout import LIVE
from tripod.projections.peers.tables import is_observed_here, made_as
from tripod.projections.pieces import BODY_ROOM, piece_draft
from tripod.projections.text import text_line_problem
from tripod.team.act import Act, draft_event_for_act, settings_of_queue
from tripod.team.team import Team

if TYPE_CHECKING:
    from tripod.projections.decisions.madr import FoundDecision

_NO_REF = (
    "no chat ref: nothing says where this was decided, and `tripod verify` names the decision from "
    "now on (what is recorded cannot be changed); with the next, name the message: live.chat:~L342"
)
_QUOTES = (
    "{} words in a row of it stand in the chat as well: Pythia reads the log, and should not see "
    "what was said there. Say what was decided in words of your own"
)
_LATELY = 500  # entries that are looked at for messages, the newest
_LOOKED_AT = 256 * 1024  # bytes of messages
_SOME_ID = r"\bD-[0-9]"
_BY_NUMBER = r"(?s)(?:(.+)?#(last|[0-9]{1,15})|last)"
_SHOWN_FIELDS = ("participants", "artefacts", "rationale")
_NEWEST = "SELECT coalesce(max(number), 0) FROM pieces WHERE log = ?"
_NO_REFERENCE = (
    "status {}, but of which decision? What is recorded cannot be changed; name it with the next, "
    "by --supersedes, --reverses or --mitigates"
)


class DecisionRequest(NamedTuple):
    """A decision to be logged. Lists hold one item each.

    ``refs`` name messages: by the line of a file (``live.chat:~L342``), by the message's number in
    its chat (``live#14``), or as the newest (``live#last``). ``#14`` and ``last`` mean the team's
    only chat. ``no_ref`` is the reason for having none.

    At most one of ``supersedes``, ``reverses`` and ``mitigates`` names an earlier decision. The
    last two settle the status, which is then not given.
    """

    title: str
    participants: Sequence[str]
    rationale: str
    refs: Sequence[str] = ()
    artefacts: Sequence[str] = ()
    risk_tags: Sequence[str] = ()
    status: str = "decided"
    supersedes: str | None = None
    reverses: str | None = None
    mitigates: str | None = None
    no_ref: str | None = None


class BoundRef(NamedTuple):
    """A reference to a message as it stands in the log, and the message's entry."""

    ref: str
    seq: int


class LoggedDecision(NamedTuple):
    """A logged decision, its number in the file ``log``, and the checkpoint event it caused.

    ``refs`` are the messages that it was bound to.
    """

    id: str
    number: int
    checkpoint: str | None = None
    warnings: Sequence[str] = ()
    log: str = LIVE
    refs: Sequence[BoundRef] = ()


def log(
    team: Team, request: DecisionRequest, *, actor: str | None = None, into: str | None = None
) -> LoggedDecision:
    """Log a decision, with its event, and Pythia's checkpoint where its log's count reaches it.

    ``actor`` is who logs it, by default the team's scribe. ``into`` is the file name of the log,
    which is begun if it is new; by default it is the team's only log, and of several ``log.md``.
    Nothing is recorded where it raises BadArgumentError (``into`` names no log, or there are
    several and none is named) or MalformedEntryError (a field breaks its rule, a ref means no
    message, or the decision that it supersedes, reverses or mitigates is not there or has its
    successor already).
    """
    request = judge_decision(request)
    locks = [f"{LOG.folder}/{name}" for name in _logs_to_lock(team, into)]
    with team.act(locks=locks, joins=True, by=actor or team.scribe) as act:
        db = act.transaction.tables
        file = _log_for(act, into)
        of_team = db.execute("SELECT scribe FROM team").fetchone()[0]
        scribe = actor or of_team
        request, refs, cited = _bind_refs(act, request)
        warnings = [] if refs or request.no_ref else [_NO_REF]
        request, made = _judge_reference(act, request)
        named = None if file == LIVE else file
        begun = _begun(act, file, scribe)
        number = 1 + db.execute(_NEWEST, (file,)).fetchone()[0]
        second = _free_second(act, act.now_us // 1_000_000)
        body = _decision_body(request, f"D-{second}", number, refs)
        if named is not None:
            body["file"] = named
        if made is not None:
            body["supersedes_made"] = made
        decision = LOGGED.draft(body, scribe)._replace(id=fresh_ids(1)[0][0])
        said = ("scribe", "decision-logged", "normal", f"{body['id']} {request.title}")
        event = draft_event_for_act(act, *said, cause=decision)
        due = _checkpoint_due(team, act, decision, file)
        act.append([*begun, decision, event, *due])
        if _quotes_chat(act, request):
            warnings.append(_QUOTES.format(RUN))
    checkpoint = str(due[0].body["name"]) if due else None
    is_change = request.status in format_.CHANGES and not request.supersedes
    if is_change and not re.search(_SOME_ID, f"{request.title} {request.rationale}"):
        warnings.append(_NO_REFERENCE.format(request.status))
    return LoggedDecision(body["id"], number, checkpoint, warnings, file, cited)


def _begun(act: Act, file: str, actor: str) -> list[Draft]:
    """The entry that begins a log, where no log has this name yet."""
    db = act.transaction.tables
    if db.execute("SELECT 1 FROM logs WHERE file = ?", (file,)).fetchone():
        return []
    header = format_.format_decision_log_header(
        *db.execute("SELECT project, created, scribe FROM team").fetchone()
    )
    named = None if file == LIVE else file
    return [BEGUN.draft({"header": {"text": header}, "file": named}, actor)]


class AdoptedDecisions(NamedTuple):
    """What was adopted, or would be: each new decision with its file and line, and the log's name.

    ``known`` are here already. ``changed`` are files with a line, that were adopted before and say
    something else by now; ``waiting`` only propose.
    """

    fresh: list[tuple[str, int, Decided]]
    log: str
    known: int
    changed: list[tuple[str, int]]
    waiting: list[tuple[str, int]]


def adopt_decisions(
    team: Team,
    files: "Mapping[str, Sequence[FoundDecision]]",
    into: str | None = None,
    *,
    dry_run: bool = False,
) -> AdoptedDecisions:
    """Take in decisions of other forms as observed ones, behind those of a log.

    Their ids are of the day that they name, else of now; those of an export keep theirs where they
    are free. What each was taken from stays in its entry. Twice adopted, one is there once. At each
    interval that they reach, a checkpoint event follows as behind any other decision.

    Args:
        team: the team.
        files: the decisions of each file, by its path as the entries are to name it.
        into: the file name of the log; by default as for ``log``.
        dry_run: change nothing.

    Raises:
        BadArgumentError: ``into`` names no log, or there are several and none is named.
        MalformedEntryError: one of them cannot stand in the log; nothing was recorded.
    """
    if dry_run:
        return _planned(team, files, _log_for(team, into), now_us() // 1_000_000)[0]
    locks = [f"{LOG.folder}/{name}" for name in _logs_to_lock(team, into)]
    with team.act(locks=locks, joins=True) as act:
        log = _log_for(act, into)
        found, drafts = _planned(team, files, log, act.now_us // 1_000_000)
        if drafts:
            act.append(_begun(act, log, "scribe"))
            act.rewrite.add(f"{LOG.folder}/{log}")
        for draft in drafts:
            # One after the other: a checkpoint names those before it, which the tables have then.
            act.append([draft, *_checkpoint_due(team, act, draft, log)])
    return found


def _planned(
    team: Team, files: "Mapping[str, Sequence[FoundDecision]]", log: str, now: int
) -> tuple[AdoptedDecisions, list[Draft]]:
    """What is new in files, as bodies and as drafts."""
    db = team.store.db
    before: dict[str, list[dict[str, Any]]] = {}
    for entry in team.store.read(kinds=(LOGGED.name,)):
        before.setdefault(entry.data.get("observed", {}).get("path", ""), []).append(entry.data)
    number = db.execute(_NEWEST, (log,)).fetchone()[0]
    found = AdoptedDecisions([], log, 0, [], [])
    drafts: list[Draft] = []
    known = 0
    taken = set[str]()
    ids: dict[tuple[str, int], str] = {}  # by folder and number
    own: dict[tuple[str, str], str] = {}  # of exported ones: by folder and the id in the file
    exported: list[tuple[str, dict[str, Any]]] = []
    for path, pieces in files.items():
        folder = path.rpartition("/")[0]
        seen: Counter[bytes] = Counter()
        for one in sorted(pieces, key=lambda one: one.time or 0) if _dated(pieces) else pieces:
            earlier, is_same = _earlier(team, before.get(path, ()), one)
            ordinal = seen[one.data]
            seen[one.data] += 1
            draft = _adopted_draft(one, path, ordinal, {"id": "D-0", "number": 1})
            is_here = is_same or is_observed_here(team.source, draft.id)
            if one.whole is not None and earlier:
                own[folder, one.whole.id] = earlier[0]["id"]
            if is_here or earlier:
                if not is_here:
                    found.changed.append((path, one.line))
                known += is_here
                if one.number is not None and earlier:
                    ids[folder, one.number] = earlier[0]["id"]
                continue
            if one.is_waiting:
                found.waiting.append((path, one.line))
                continue
            second = now if one.time is None else one.time
            second = _free_second(team, second, taken)
            number += 1
            new = {"id": f"D-{second}", "number": number, "file": None if log == LIVE else log}
            taken.add(new["id"])
            if one.number is not None:
                ids[folder, one.number] = new["id"]
            drafts.append(_adopted_draft(one, path, ordinal, new))
            if one.whole is not None:
                own[folder, one.whole.id] = new["id"]
                exported.append((folder, drafts[-1].body))
            found.fresh.append((path, one.line, cast("Decided", drafts[-1].body)))
    _name_successors(files, found, ids)
    for folder, body in exported:  # another of its folder may have got another id
        if "supersedes" in body:
            body["supersedes"] = own.get((folder, body["supersedes"]), body["supersedes"])
    return found._replace(known=known), drafts


def _earlier(
    team: Team, adopted: Sequence[dict[str, Any]], one: "FoundDecision"
) -> tuple[Sequence[dict[str, Any]], bool]:
    """What of the file of a decision was ``adopted`` for it, and whether that says the same.

    One that an export wrote may stand here under its id as well, logged or merged.
    """
    from tripod.decisions.reader import meant_decisions
    from tripod.projections.decisions.madr import found_decision_title, is_found_decision

    if one.whole is None:
        return [
            body
            for body in adopted
            if not one.heading or found_decision_title(one) == body["title"]
        ], False
    named = list(adopted)
    for meant in (
        *meant_decisions(team.store, one.made),
        *meant_decisions(team.store, one.whole.id),
    ):
        sql = "SELECT seq FROM pieces WHERE id = ? ORDER BY seq"
        rows = team.store.tables.execute(sql, (meant.id,)).fetchall()
        named += team.source.each_body([seq for (seq,) in rows])
    same = [body for body in named if is_found_decision(one, body)]
    return same or adopted, bool(same)


def _dated(pieces: "Sequence[FoundDecision]") -> bool:
    return all(one.time is not None for one in pieces)


def _name_successors(
    files: "Mapping[str, Sequence[FoundDecision]]",
    found: AdoptedDecisions,
    ids: Mapping[tuple[str, int], str],
) -> None:
    """Where a file names the one that superseded its decision, that one's entry names it, too."""
    bodies = {body["id"]: body for _, _, body in found.fresh}
    order = list(bodies)
    for path, pieces in files.items():
        folder = path.rpartition("/")[0]
        for one in pieces:
            old = ids.get((folder, -1 if one.number is None else one.number))
            new = bodies.get(ids.get((folder, one.successor or -1), ""))
            if old is None or new is None or "supersedes" in new or one.whole is not None:
                continue
            if old not in bodies or order.index(old) < order.index(new["id"]):
                new["supersedes"] = old


def _adopted_draft(one: "FoundDecision", path: str, ordinal: int, own: Mapping[str, Any]) -> Draft:
    """The entry of a decision of another form (MalformedEntryError: it cannot stand in the log)."""
    from tripod.projections.decisions.madr import found_decision_fields  # seldom needed

    shown = path.removeprefix("../")
    fields = found_decision_fields(one)
    body = {
        **fields,
        "artefacts": fields["artefacts"] or shown,
        "chat_ref": format_.NONE_YET,
        "refs": [],
        "no_ref": f"adopted from {shown}",
        "source": one.data,
        **own,
    }
    limits = (MAX_TITLE, MAX_FIELD) if one.whole is None else (BODY_ROOM, BODY_ROOM)
    problem = None
    for name, limit in (("title", limits[0]), *((one, limits[1]) for one in _SHOWN_FIELDS)):
        problem = problem or text_line_problem(body[name], name, limit)
    try:
        format_.format_decision(decision_text_of(body))
    except ValueError:
        problem = problem or "it cannot be written as one entry of the log"
    if problem is not None:
        raise MalformedEntryError(f"{shown}: line {one.line}: {problem}; nothing was recorded")
    claim = "unknown" if one.time is None else "content"
    return piece_draft(LOGGED, body, path, one.data, actor="scribe", ordinal=ordinal, claim=claim)


def _logs_to_lock(team: Team, into: str | None) -> list[str]:
    """The logs of which one will be written, as far as the tables tell before the act begins."""
    if into is not None:
        is_name = format_.decision_log_name_problem(into) is None
        return [into] if is_name and _has_folder(team.disk, into) else []
    with suppress(OperationalError):  # the tables of another version: they are about to be folded
        logs = [log for log in LOG.live(team.source) if _has_folder(team.disk, log)]
        return logs or [LIVE]
    return [LIVE]


def _has_folder(disk: Disk, log: str) -> bool:
    """Whether the folder of a log is the team's, and there."""
    return log[: log.rfind("/") + 1] in disk.places.logs()


def _log_for(act: Act | Team, into: str | None) -> str:
    """The log that a decision is written into (BadArgumentError: none can be told)."""
    # An archive whose log is gone is a log by itself, and never grows.
    logs = [log for log in LOG.live(act.source) if format_.parse_decision_archive_name(log) is None]
    if into is None:
        if LIVE in logs or not logs:
            return LIVE
        ours = [log for log in logs if log not in _logs_of_peers(act)]
        if not ours:
            return LIVE
        if len(ours) == 1:
            return ours[0]
        raise BadArgumentError(f"which log? There are {', '.join(ours)}; name one")
    problem = format_.decision_log_name_problem(into)
    if problem is None and not _has_folder(act.disk, into):
        folder = into.rpartition("/")[0]
        problem = f"{into}: the team has no folder {folder} of logs; `nbs-scribe-log PATH` adds one"
        if f"{LOG.folder}/{folder}" in act.disk.places.added:
            full = act.disk.full(f"{LOG.folder}/{folder}")
            problem = f"{into}: no folder is at {full}; put it back"
    elif into in logs:
        return into
    if problem is None and format_.parse_decision_archive_name(into) is not None:
        problem = f"{into!r} is the name of an archive, which never grows"
    if problem is None and act.disk.stands(f"{LOG.folder}/{into}"):
        problem = f"{LOG.folder}/{into} is there, and is no decision log: give another name"
    if problem is not None:
        raise BadArgumentError(problem)
    return into


def _logs_of_peers(act: Act | Team) -> set[str]:
    """The logs that are here because a peer has them: no decision goes there unless it is asked."""
    sql = "SELECT file FROM logs WHERE seq IN (SELECT seq FROM merged)"
    return {file for (file,) in act.source.db.execute(sql)}


def judge_decision(request: DecisionRequest) -> DecisionRequest:
    """The request as it will be logged, if its fields alone make an entry of the log.

    The log has one mark for an earlier decision, ``supersedes``; the status says what became of
    that. Raises MalformedEntryError (a field breaks its rule).
    """
    named = {"reversed": request.reverses, "mitigated": request.mitigates}
    given = [(status, id_) for status, id_ in named.items() if id_ is not None]
    if len(given) + (request.supersedes is not None) > 1:
        raise MalformedEntryError(
            "supersedes, reverses, mitigates: a decision does one of them; log two decisions"
        )
    for status, target in given:
        if request.status not in ("decided", status):
            raise MalformedEntryError(
                f"status: {request.status!r}, but what it refers to is {status}; leave it out"
            )
        request = request._replace(supersedes=target, status=status, reverses=None, mitigates=None)
    problem = text_line_problem(request.title, "title", MAX_TITLE)
    problem = problem or text_line_problem(request.rationale, "rationale", MAX_FIELD)
    if problem is None and not request.participants:
        problem = "participants: at least one is needed"
    if problem is None and request.status not in format_.STATUSES:
        problem = f"status: {request.status!r} is none of {', '.join(format_.STATUSES)}"
    for name in ("participants", "refs", "artefacts", "risk_tags"):
        items: Sequence[str] = getattr(request, name)
        for item in items:
            problem = problem or text_line_problem(item, name, MAX_FIELD)
            if problem is None and "," in item:
                problem = f"{name}: {item!r} holds a comma; give each one apart"
        if problem is None and len(items) > 1:
            problem = text_line_problem(", ".join(items), name, MAX_FIELD)
    if problem is None and request.no_ref is not None:
        problem = text_line_problem(request.no_ref, "no-ref", MAX_FIELD)
        if problem is None and request.refs:
            problem = "no-ref: a reference is given; leave one of them out"
    if problem is not None:
        raise MalformedEntryError(problem)
    try:
        format_.format_decision(decision_text_of(_decision_body(request, "D-0", 1, [])))
    except ValueError as error:
        raise MalformedEntryError(
            "the decision cannot be written as one entry of the log: a title must not begin with "
            "[SUPERSEDES, and no field may look like another's line"
        ) from error
    return request


def _judge_reference(act: Act, request: DecisionRequest) -> tuple[DecisionRequest, str | None]:
    """Refuse a reference to a decision that does not exist, or has its successor already.

    Gives the request with the id that the decision has here, and what means it everywhere if it is
    a peer's.
    """
    target = request.supersedes
    if target is None:
        return request, None
    from tripod.decisions.reader import meant_decisions, several_decisions

    made = None
    problem = format_.valid_decision_id(target.rpartition("/")[2])
    if problem is None:
        meant = meant_decisions(act.transaction, target)
        problem = f"no decision {target} in the log; `tripod scribe query` finds its id"
        if len(meant) > 1:
            problem = several_decisions(target, meant)
        elif meant:
            problem, (target, made) = None, meant[0]
    if problem is None:
        row = act.transaction.tables.execute(
            "SELECT id, status FROM pieces WHERE supersedes = ? ORDER BY seq LIMIT 1", (target,)
        ).fetchone()
        if row is not None:
            became = row[1] if row[1] in format_.CHANGES else "superseded"
            problem = f"{target} was {became} by {row[0]} already; refer to that one"
    if problem is not None:
        what = {"reversed": "reverses", "mitigated": "mitigates"}.get(request.status, "supersedes")
        raise MalformedEntryError(f"{what}: {problem}")
    return request._replace(supersedes=target), made


def _decision_body(
    request: DecisionRequest, decision: str, number: int, refs: list[Reference]
) -> Decided:
    return {
        "artefacts": ", ".join(request.artefacts) or format_.NONE_YET,
        "chat_ref": ", ".join(request.refs) or format_.NONE_YET,
        "id": decision,
        "number": number,
        "participants": ", ".join(request.participants),
        "rationale": request.rationale,
        "refs": refs,
        "no_ref": request.no_ref,
        "risk_tags": ", ".join(request.risk_tags) or "none",
        "status": request.status,
        "supersedes": request.supersedes,
        "title": request.title,
    }


def _free_second(act: Act | Team, second: int, taken: Collection[str] = ()) -> int:
    """The first second from this one on whose id is free: in no log, and not ``taken``."""
    # In the order of the text the ids of one length are in that of their numbers.
    sql = "SELECT id FROM pieces WHERE id >= ?1 AND length(id) = length(?1) ORDER BY id"
    rows = act.store.tables.execute(sql, (f"D-{second}",))
    there = next(rows, None)
    while True:
        wanted = f"D-{second}"
        while there is not None and there[0] < wanted:  # an id may stand in several logs
            there = next(rows, None)
        if wanted not in taken and (there is None or there[0] != wanted):
            return second
        second += 1


def _bind_refs(
    act: Act, request: DecisionRequest
) -> tuple[DecisionRequest, list[Reference], list[BoundRef]]:
    """Bind each ref to the message that it names now: its number, seq and leaf hash.

    The refs of the request that is given back are those that stand in the log.
    """
    bound: list[Reference] = []
    cited: list[BoundRef] = []
    for text in request.refs:
        named = re.fullmatch(_BY_NUMBER, text)
        stands = text if named is None else _line_of_number(act, text, named[1], named[2])
        refs, malformed = format_.parse_decision_refs(stands)
        if malformed or len(refs) != 1:
            raise MalformedEntryError(
                f"ref: {text!r} is not <file>:~L<line>: give the chat's file and the line that the "
                f"message stands in, such as live.chat:~L{HEADER_LINES + 1} for its first"
            )
        (number, seq, channel), of = _message_at(act, refs[0]), refs[0]
        if "/" in of.file:  # in the words of another replica; it stands where it stands here
            stands = ref_to_chat_line(act.transaction.tables, channel, number) or stands
            refs, _ = format_.parse_decision_refs(stands)
        header = act.transaction.header(seq)
        assert header is not None  # the line was folded from this entry
        leaf, (file, line) = entry_leaf_hash(header).hex(), refs[0]
        one: Reference = {
            "channel": channel, "file": file, "index": number, "leaf": leaf, "line": line,
            "seq": seq,
        }  # fmt: skip
        if (made := made_as(act.transaction.tables, seq)) is not None:
            one["origin"], one["origin_seq"] = made
        bound.append(one)
        cited.append(BoundRef(stands, seq))
    shown = [one.ref for one in cited]
    problem = text_line_problem(", ".join(shown), "refs", MAX_FIELD) if shown else None
    if problem is not None:
        raise MalformedEntryError(problem)
    return request._replace(refs=shown), bound, cited


def _line_of_number(act: Act, text: str, chat: str | None, number: str | None) -> str:
    """The reference by line to a message that is named by its number, or as the newest."""
    db = act.transaction.tables
    if not chat:
        rows = db.execute("SELECT channel FROM channels WHERE closed = 0 ORDER BY 1").fetchall()
        names = [name for (name,) in rows]
        if not names:
            raise MalformedEntryError(f"ref: {text}: no chat exists yet")
        chat = names[0]
        if len(names) > 1:
            raise MalformedEntryError(
                f"ref: {text}: of which chat? There are {', '.join(names)}; give such as "
                f"{chat}#{number or 'last'}"
            )
    span = span_of(db, chat.removesuffix(".chat"))
    if span is None:
        raise MalformedEntryError(f"ref: {text} names no chat of this team")
    last = db.execute(
        "SELECT max(number) FROM lines WHERE channel = ? AND handle IS NOT NULL AND gone IS NULL",
        (span.channel,),
    ).fetchone()[0]
    wanted = last if number is None or number == "last" else int(number)
    stands = None if wanted is None else ref_to_chat_line(db, span.channel, wanted)
    if stands is None:
        have = "has no message" if last is None else f"has messages up to #{last}"
        raise MalformedEntryError(
            f"ref: {text} is no message that a file shows; {span.channel} {have}. Nothing was "
            "recorded"
        )
    return stands


def _message_at(act: Act, ref: ChatRef) -> tuple[int, int, str]:
    """Number, entry and channel of the message in the line that a reference names."""
    db = act.transaction.tables
    stem = ref.file.removesuffix(".chat")
    shown = span_of(db, stem)
    if shown is None and "/" in stem:
        from tripod.decisions.reader import message_of_replica, without_own_replica

        stem = without_own_replica(act.transaction, stem)
        found = message_of_replica(act.source, ref._replace(file=f"{stem}.chat"))
        if found is not None:
            return found
        ref, shown = ref._replace(file=f"{stem}.chat"), span_of(db, stem)
    if shown is None or ref.file != f"{stem}.chat":
        raise MalformedEntryError(
            f"ref: {format_.format_decision_ref(ref)} names no chat file of this team"
        )
    line = chat_line_at(db, shown, ref.line)
    if line is None:
        last = last_chat_line(db, shown)
        have = f"messages in lines {HEADER_LINES + 1} to {last}"
        if last <= HEADER_LINES:
            have = "no message yet"
        raise MalformedEntryError(
            f"ref: {format_.format_decision_ref(ref)} is no message; {ref.file} has {have}. "
            "Nothing was recorded: what leads nowhere could never be mended"
        )
    return *line, shown.channel


def _quotes_chat(act: Act, request: DecisionRequest) -> bool:
    """Whether it holds a dozen words in a row of a message; only the newest are looked at.

    Those among the newest entries, and few enough bytes of them: who logs does not wait.
    `tripod verify` looks at all of them.
    """
    listed = (request.participants, request.artefacts, request.risk_tags)
    texts = (request.title, request.rationale, *map(", ".join, listed))
    ours = {run for text in texts for run in _runs(words_of_text(text))}
    if not ours:
        return False
    start = act.transaction.size - _LATELY
    left = _LOOKED_AT
    for entry in act.transaction.raw(start, kinds=("chat.sent",), newest_first=True):
        left -= len(entry.body or b"")
        if left < 0:
            return False
        text = codec.loads(entry.body or b"{}").get("text", {}).get("text", "")
        if not ours.isdisjoint(_runs(words_of_text(text))):
            return True
    return False


def _runs(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(RUN)), strict=False)


def _checkpoint_due(team: Team, act: Act, decision: Draft, file: str) -> list[Draft]:
    """Ask for Pythia's review at each N-th decision of a log (tripod-architecture, "Flow").

    The seeds count by ``grep`` on the log that the reviewer then reads: each log by itself.
    """
    interval = settings_of_queue(team)["pythia_interval"]
    number, newest = decision.body["number"], decision.body["id"]
    db = act.transaction.tables
    # Those of peers are counted, and reviewed, in their own replicas.
    theirs = "SELECT count(*) FROM pieces INDEXED BY pieces_made WHERE made IS NOT NULL AND log = ?"
    number -= db.execute(theirs, (file,)).fetchone()[0]
    if not interval or number % interval:
        return []
    row = db.execute(
        "SELECT id FROM (SELECT id, number FROM pieces WHERE log = ? AND number IS NOT NULL"
        " AND made IS NULL ORDER BY number DESC LIMIT ?) ORDER BY number LIMIT 1",
        (file, interval - 1),
    ).fetchone()
    from tripod.projections.pythia.format import format_checkpoint_payload  # dear, seldom needed

    payload = format_checkpoint_payload(number, newest if row is None else row[0], newest)
    return [
        draft_event_for_act(act, "scribe", "pythia-checkpoint", "high", payload, cause=decision)
    ]


def handled(team: Team, up_to: int, who: str | None = None) -> None:
    """Note that the Scribe handled its inbox up to the entry ``up_to``; it never moves back.

    Raises BadArgumentError (the ledger has no such entry yet).
    """
    from tripod.decisions.reader import inbox_place
    from tripod.ledger.kinds.bus import SEEN

    who = who or team.scribe or ""
    with team.act(hasty=True, joins=True, by=who) as act:
        size = act.transaction.size
        if up_to >= size:
            raise BadArgumentError(f"--done {up_to}: the ledger has entries 0 to {size - 1}")
        reader, place = inbox_place(team, who)
        if up_to > place:
            act.append([SEEN.draft({"reader": reader, "up_to": up_to}, who)])
