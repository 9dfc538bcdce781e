"""Reading the decision logs, and the Scribe's inbox of events that may hold decisions.

Source: seeds nbs-scribe and tripod-architecture ("Scribe Operations"); spec nbs-compat B11, C6.
Nothing here changes anything.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from tripod.errors import BadArgumentError, NotFoundError
from tripod.ledger import LedgerReader, parse_header
from tripod.projections import LOG, Source, seen_entries
from tripod.projections.bus.format import PRIORITIES
from tripod.projections.chat.format import HEADER_LINES
from tripod.projections.decisions.format import CHANGES, ChatRef, decision_piece_text
from tripod.projections.decisions.tables import Meaning, decisions_meant, render_decision_piece
from tripod.team.team import Team

_WORD = r'"([^"]+)"|(\S+)'


class Change(NamedTuple):
    """What a later decision made of one: its status since, and the later one's id and entry."""

    status: str
    id: str
    seq: int


class Decision(NamedTuple):
    """A decision as read. ``supersedes`` is what it refers to; ``status`` says how.

    ``change`` is what a later decision made of it; None where nothing refers to it.
    """

    seq: int
    number: int
    id: str
    title: str
    status: str
    participants: str
    risk_tags: str
    artefacts: str
    chat_ref: str
    rationale: str
    supersedes: str | None
    change: Change | None = None

    @property
    def stands(self) -> str:
        """Its status today: what became of it, else the one that it was logged with."""
        return self.status if self.change is None else self.change.status

    @property
    def by(self) -> str | None:
        """The id of the decision that changed it."""
        return None if self.change is None else self.change.id

    @property
    def second(self) -> int:
        """When it was logged, as its id says, in epoch seconds."""
        return int(self.id[2:])


class Filters(NamedTuple):
    """Which decisions; None lets all through. ``since`` and ``until`` are epoch seconds.

    ``status`` is the one of today; ``tag``, ``by`` (a participant) and ``artefact`` are whole items
    of their lists.
    """

    tag: str | None = None
    status: str | None = None
    by: str | None = None
    artefact: str | None = None
    since: int | None = None
    until: int | None = None

    def fit(self, decision: Decision) -> bool:
        """Whether a decision passes all of them."""
        return (
            (self.tag is None or self.tag in _items(decision.risk_tags))
            and (self.status is None or self.status == decision.stands)
            and (self.by is None or self.by in _items(decision.participants))
            and (self.artefact is None or self.artefact in _items(decision.artefacts))
            and (self.since is None or decision.second >= self.since)
            and (self.until is None or decision.second <= self.until)
        )


class Ref(NamedTuple):
    """A chat reference. ``message`` (handle, epoch seconds, text) is what it was bound to.

    ``seq`` is that message's entry; None where nothing was bound, as in an adopted log.
    """

    file: str
    line: int
    seq: int | None
    message: tuple[str, int, str] | None


class DecisionHistory(NamedTuple):
    """A decision, how it came into the ledger, and what came before and after it.

    ``earlier`` are the decisions that it took the place of, oldest first; ``later`` those that
    took its place since. ``file`` is the log's file that it stands in; ``at`` when its entry was
    appended, and ``observed`` whether that was taken in from the file. ``no_ref`` is the reason
    that was given for its having no reference.
    """

    decision: Decision
    file: str
    at: str
    actor: str
    observed: bool
    refs: Sequence[Ref]
    earlier: Sequence[Decision]
    later: Sequence[Decision]
    no_ref: str | None = None


def plain_decision(decision: Decision) -> dict[str, object]:
    """A decision for JSON: its status of today, and the one that it was logged with."""
    value = decision._asdict()
    del value["change"]
    return value | {"by": decision.by, "status": decision.stands, "logged_status": decision.status}


def plain_decision_history(history: DecisionHistory) -> dict[str, object]:
    """A decision's history for JSON."""
    refs = [
        {"file": ref.file, "line": ref.line, "seq": ref.seq}
        | (dict(zip(("handle", "time", "text"), ref.message, strict=True)) if ref.message else {})
        for ref in history.refs
    ]
    return {
        **plain_decision(history.decision),
        "actor": history.actor,
        "at": history.at,
        "earlier": [plain_decision(decision) for decision in history.earlier],
        "file": history.file,
        "later": [plain_decision(decision) for decision in history.later],
        "no_ref": history.no_ref,
        "observed": history.observed,
        "refs": refs,
    }


def _decisions(team: Team, seqs: Sequence[int]) -> Iterator[Decision]:
    changes = _changes(team)
    for seq, body in zip(seqs, team.source.each_body(seqs), strict=True):
        yield _decision(seq, body, changes)


def _changes(team: Team) -> dict[str, Change]:
    """Of each decision that a later one refers to: what became of it."""
    rows = team.store.db.execute(
        "SELECT supersedes, status, id, seq, made FROM pieces"
        " WHERE supersedes IS NOT NULL AND id IS NOT NULL ORDER BY seq"
    ).fetchall()

    def own_replica() -> str:
        from tripod.peers.replica import replica_of  # seldom needed

        return (replica_of(team.store) or ("", ""))[1]

    return newest_changes(rows, own_replica)


def newest_changes(
    rows: Sequence[tuple[str, str, str, int, str | None]], own_replica: Callable[[], str]
) -> dict[str, Change]:
    """Of each decision that a later one refers to, by its id: what became of it.

    ``rows`` are the decisions that refer to one, in the order of their entries: the id that each
    refers to, its status, its id and entry, and what its maker calls it. Where several refer to
    one, as in an adopted log, the newest says what stands. Among replicas, which took them in
    different orders, it is the one with the latest id of its maker.
    """
    if any(made is not None for *_, made in rows):
        mine = own_replica()
        rows = sorted(rows, key=lambda row: _as_everywhere(row[2], row[4], mine))
    return {
        target: Change(status if status in CHANGES else "superseded", id_, seq)
        for target, status, id_, seq, _ in rows
    }


def _as_everywhere(here: str, made: str | None, mine: str) -> tuple[int, str]:
    """What orders decisions alike in all replicas: the maker's id, and the maker."""
    replica, _, id_ = (made or f"{mine}/{here}").rpartition("/")
    return int(id_.removeprefix("D-")), replica


def _decision(seq: int, body: dict[str, Any], changes: dict[str, Change]) -> Decision:
    change = changes.get(body["id"])
    if change is not None and change.seq == seq:
        change = None  # a decision that names itself changes nothing
    fields = {name: body[name] for name in Decision._fields[1:-2]}
    return Decision(seq, **fields, supersedes=body.get("supersedes"), change=change)


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",")]


def _has_log(team: Team, log: str | None = None) -> None:
    logs = LOG.live(team.source)
    if not logs:
        raise NotFoundError("no decision log yet: `tripod scribe log` begins it")
    if log is not None and log not in logs:
        raise NotFoundError(f"no decision log {log}; the team's logs are {', '.join(logs)}")


def _decision_entries(
    team: Team, *, log: str | None = None, id_: str | None = None, last: int = -1
) -> list[int]:
    """The entries of decisions in order: of one log, of one id, the newest; of all by default."""
    rows = team.store.db.execute(
        "SELECT seq FROM pieces WHERE id IS NOT NULL AND (?1 IS NULL OR log = ?1)"
        " AND (?2 IS NULL OR id = ?2) ORDER BY seq DESC LIMIT ?3",
        (log, id_, last),
    )
    return [seq for (seq,) in rows][::-1]


def words_of_query(text: str) -> list[str]:
    """The words of a search, folded: what stands in double quotes is one.

    >>> words_of_query('Files "over sockets"')
    ['files', 'over sockets']
    """
    return [(quoted or word).casefold() for quoted, word in re.findall(_WORD, text)]


def folded_decision(decision: Decision) -> str:
    """All that is searched in a decision, in one case."""
    said = (decision.title, decision.rationale, decision.participants, decision.artefacts)
    rest = (decision.risk_tags, decision.status, decision.chat_ref, decision.supersedes or "")
    return "\n".join((decision.id, *said, *rest)).casefold()


def query(
    team: Team, text: str = "", filters: Filters | None = None, log: str | None = None
) -> Iterator[Decision]:
    """Decisions that hold every word of ``text`` in any field and fit the filters, in order.

    Upper and lower case are alike, and a part of a word is found too; what stands in double quotes
    is searched as it is. '' fits all. ``log`` is the file name of one log; None: all. Raises
    NotFoundError (there is no log yet, or none of that name).
    """
    _has_log(team, log)
    words = words_of_query(text)
    filters = filters or Filters()
    seqs: Sequence[int] = _decision_entries(team)
    if words:
        from tripod.decisions.index import likely_by_index

        texts = lambda some: map(folded_decision, _decisions(team, some))  # noqa: E731
        seqs = likely_by_index(team.store, team.store.path, seqs, words, texts)
    if log is not None:
        of_it = set(_decision_entries(team, log=log))
        seqs = [seq for seq in seqs if seq in of_it]
    for decision in _decisions(team, seqs):
        if filters.fit(decision):
            whole = folded_decision(decision) if words else ""
            if all(word in whole for word in words):
                yield decision


def count(team: Team, log: str | None = None) -> int:
    """How many decisions a log holds, or all (None): what ``grep -c "^### D-"`` gives on its files.

    A heading that others left malformed is no decision: `tripod verify` names it. Raises
    NotFoundError (there is no log yet, or none of that name).
    """
    _has_log(team, log)
    sql = "SELECT count(*) FROM pieces WHERE id IS NOT NULL AND (?1 IS NULL OR log = ?1)"
    return int(team.store.db.execute(sql, (log,)).fetchone()[0])


def summary(team: Team, last: int, log: str | None = None) -> list[Decision]:
    """The newest ``last`` decisions of a log or all, oldest first (NotFoundError: no such log)."""
    _has_log(team, log)
    return list(_decisions(team, _decision_entries(team, log=log, last=last)))


class Standing(NamedTuple):
    """A decision, the name of the log's file that it stands in, and what stands there."""

    decision: Decision
    file: str
    text: str


def standing(
    team: Team, last: int | None = None, logs: Sequence[str] | None = None
) -> Iterator[Standing]:
    """Every decision as it stands in the logs' files, archives first; or the newest ``last``.

    ``logs`` are the file names of some logs; None: all. Raises NotFoundError (no log yet).
    """
    _has_log(team)
    rest = "" if last is None else f" LIMIT {last}"
    rows = team.store.db.execute(
        "SELECT seq, file FROM pieces WHERE id IS NOT NULL"
        f" AND (?1 IS NULL OR log IN (SELECT value FROM json_each(?1))) ORDER BY seq DESC{rest}",
        (None if logs is None else json.dumps(logs),),
    ).fetchall()[::-1]
    bodies, changes = team.source.each_body([seq for seq, _ in rows]), _changes(team)
    for (seq, file), body in zip(rows, bodies, strict=True):
        text = decision_piece_text(render_decision_piece(team.source, body))
        yield Standing(_decision(seq, body, changes), file, text)


def meant_decisions(ledger: LedgerReader, text: str) -> list[Meaning]:
    """The decisions that a bare id, or one behind the name of a replica and a slash, means."""
    found = decisions_meant(ledger.tables, text)
    if len(found) < 2 and (found or "/" not in text):
        return found
    from tripod.peers.replica import replica_of

    named = replica_of(ledger)
    ours = named[1] if named is not None else None
    found = decisions_meant(ledger.tables, text, ours)
    if len(found) > 1:
        found = [one._replace(whole=one.whole or f"{ours or 'this'}/{one.id}") for one in found]
    return found


def several_decisions(text: str, meant: Sequence[Meaning]) -> str:
    """That a text means several decisions, and by which names to tell them apart."""
    names = " and ".join(str(one.whole) for one in meant)
    return f"{text} means {len(meant)} decisions, {names}: name one of them so"


def without_own_replica(ledger: LedgerReader, name: str) -> str:
    """A name without that of this replica in front of it, where that stands there."""
    from tripod.peers.replica import replica_of

    named = replica_of(ledger)
    return name if named is None else name.removeprefix(f"{named[1]}/")


def message_of_replica(source: Source, ref: ChatRef) -> tuple[int, int, str] | None:
    """Number, entry and channel of the message that a ``REPLICA/live.chat:~L8`` means.

    It is the one that stood in that line there as long as nothing was split off or deleted. None
    where that replica recorded no such message, or it is not here.
    """
    replica, _, file = ref.file.partition("/")
    channel, index = file.removesuffix(".chat"), ref.line - HEADER_LINES - 1
    rows = source.db.execute(
        "SELECT l.number, l.seq, l.channel FROM lines l JOIN merged m ON m.seq = l.seq"
        " WHERE m.origin IN (SELECT origin FROM peers WHERE replica = ?)"
        " AND l.handle IS NOT NULL ORDER BY m.peer_seq",
        (replica,),
    ).fetchall()
    for row, body in zip(rows, source.each_body([row[1] for row in rows]), strict=True):
        said = body["peer"]["said"]
        if (said.get("channel", body["channel"]), said["index"]) == (channel, index):
            return int(row[0]), int(row[1]), str(row[2])
    return None


def find(team: Team, decision: str) -> list[DecisionHistory]:
    """A decision's history; several if a log used its id twice.

    Raises NotFoundError (no log yet), BadArgumentError (the id means decisions of several
    replicas).
    """
    _has_log(team)
    meant = meant_decisions(team.store, decision)
    if len(meant) > 1:
        raise BadArgumentError(several_decisions(decision, meant))
    shown = meant[0].id if meant else decision
    return [_history(team, seq) for seq in _decision_entries(team, id_=shown)]


def _history(team: Team, seq: int) -> DecisionHistory:
    db, body = team.store.db, team.source.body(seq)
    (entry,) = seen_entries(team.store.read(seq, seq + 1), team.store.blob)
    (file,) = db.execute("SELECT file FROM pieces WHERE seq = ?", (seq,)).fetchone()
    found = _decision(seq, body, _changes(team))
    refs = []
    for ref in body["refs"]:
        bound, message = ref.get("seq"), None
        if bound is not None:
            said = team.source.body(bound)
            text = team.source.content(said["text"]).decode()
            message = (said["handle"], said["time"], text)
        refs.append(Ref(ref["file"], ref["line"], bound, message))
    # The chain of decisions that it took the place of.
    earlier, before = list[int](), found.supersedes
    while before is not None:
        row = db.execute(
            "SELECT seq, supersedes FROM pieces WHERE id = ? ORDER BY seq DESC LIMIT 1", (before,)
        ).fetchone()
        if row is None or row[0] in (*earlier, seq):
            break  # an adopted log may refer to what is not there, or in a circle
        earlier.append(row[0])
        before = row[1]
    # Those that changed it, directly or through others.
    successors: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for target, other, id_ in db.execute(
        "SELECT supersedes, seq, id FROM pieces WHERE supersedes IS NOT NULL ORDER BY seq"
    ):
        successors[target].append((other, id_))
    later, todo = set[int](), [found.id]
    while todo:
        for other, id_ in successors.pop(todo.pop(), ()):
            if other != seq:
                later.add(other)
                todo.append(id_)
    return DecisionHistory(
        found,
        file,
        entry.at,
        entry.actor,
        "observed" in body,
        refs,
        list(_decisions(team, earlier[::-1])),
        list(_decisions(team, sorted(later))),
        body.get("no_ref"),
    )


# The Scribe's inbox ----------------------------------------------------------------------------
#
# What it subscribes to on the bus and has not handled yet (seeds nbs-scribe, "Bus Integration").
# The events stay on the bus for all others, and an acknowledgement by others takes none out of the
# inbox: as a reader of the bus (``tripod.bus.reader``) the Scribe has a place in the ledger, which
# ``tripod.decisions.writer.handled`` moves. A Scribe that stops between reading and logging finds
# the same events again.

SUBSCRIBED = ("chat-message", "chat-mention", "task-complete", "assessment-posted")
"""The types of events that the Scribe subscribes to."""

_ITEMS = """
SELECT seq, priority, name, us, source, type, handle, acked
FROM events LEFT JOIN addressed USING (seq)
WHERE seq > :place AND type IN (SELECT value FROM json_each(:types))
AND (acked IS NULL OR acked > (SELECT coalesce(adopted, -1) FROM team))
ORDER BY priority, handle IS NOT :who, us, name
"""


class Item(NamedTuple):
    """An event of the inbox; ``seq`` is its entry, ``to`` the handle that it addresses.

    ``us`` is the time in its file's name (µs since 1970), ``acked`` whether another reader has
    acknowledged it.
    """

    seq: int
    priority: str
    name: str
    us: int
    source: str
    type: str
    to: str | None
    acked: bool
    payload: str


def inbox(team: Team, who: str | None = None) -> list[Item]:
    """The Scribe's open events: most urgent first, of those what addresses it, then oldest.

    Not in it: what ``handled`` was told of, what the Scribe acknowledged itself, and what was
    acknowledged before the ledger began. ``who`` is whose inbox; by default the team's scribe's.
    """
    who = who or team.scribe or ""
    place = inbox_place(team, who)[1]
    values = {"place": place, "who": who, "types": json.dumps(SUBSCRIBED)}
    rows = team.store.db.execute(_ITEMS, values).fetchall()
    acks = [acked for *_, acked in rows if acked is not None]
    own = {ack.seq for ack in team.store.raw_of(acks) if parse_header(ack.header).actor == who}
    rows = [row for row in rows if row[-1] not in own]
    items = []
    for row, body in zip(rows, team.source.each_body([row[0] for row in rows]), strict=True):
        seq, priority, name, us, source, type_, to, acked = row
        payload = team.source.content(body["payload"]) if "payload" in body else b""
        text = payload.decode("utf-8", "replace")
        rank = PRIORITIES[priority]
        items.append(Item(seq, rank, name, us, source, type_, to, acked is not None, text))
    return items


def inbox_place(team: Team, who: str) -> tuple[str, int]:
    """The reader's name under which an inbox has its place, and the entry up to which it is."""
    # No handle holds a slash: what `bus check --reader` shows the same agent is another matter.
    reader = f"{who}/inbox"
    row = team.store.db.execute("SELECT up_to FROM readers WHERE reader = ?", (reader,)).fetchone()
    return reader, -1 if row is None else int(row[0])
