"""Reading the decision logs: find decisions, count them, show one with its whole history.

Source: seeds nbs-scribe and tripod-architecture ("Scribe Operations"); spec nbs-compat B11, C6.
Nothing here changes anything.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tripod.errors import NotFoundError
from tripod.projections import LOG, content_bytes
from tripod.projections.decisions.format import entry_text
from tripod.projections.decisions.tables import piece_bytes
from tripod.team.team import Team

CHANGES = ("mitigated", "superseded", "reversed")
"""Statuses that say what became of another decision."""

_WORD = r'"([^"]+)"|(\S+)'


class Decision(NamedTuple):
    """A decision as read. ``supersedes`` is what it refers to; ``status`` says how.

    ``became`` is what a later decision made of it, ``by`` is the id of that one; both are None
    where nothing refers to it.
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
    became: str | None = None
    by: str | None = None

    @property
    def stands(self) -> str:
        """Its status today: what became of it, else the one that it was logged with."""
        return self.became or self.status

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
    appended, and ``observed`` whether that was taken in from the file.
    """

    decision: Decision
    file: str
    at: str
    actor: str
    observed: bool
    refs: Sequence[Ref]
    earlier: Sequence[Decision]
    later: Sequence[Decision]


def plain(decision: Decision) -> dict[str, object]:
    """What JSON says of a decision: its status of today, and the one that it was logged with."""
    value = decision._asdict()
    value.pop("became")
    return value | {"status": decision.stands, "logged_status": decision.status}


def as_plain(history: DecisionHistory) -> dict[str, object]:
    """What JSON says of a decision's history."""
    refs = [
        {"file": ref.file, "line": ref.line, "seq": ref.seq}
        | (dict(zip(("handle", "time", "text"), ref.message, strict=True)) if ref.message else {})
        for ref in history.refs
    ]
    return {
        **plain(history.decision),
        "actor": history.actor,
        "at": history.at,
        "earlier": [plain(decision) for decision in history.earlier],
        "file": history.file,
        "later": [plain(decision) for decision in history.later],
        "observed": history.observed,
        "refs": refs,
    }


def _decisions(team: Team, seqs: Sequence[int]) -> Iterator[Decision]:
    became = _became(team)
    for seq, body in zip(seqs, team.source.each_body(seqs), strict=True):
        yield _decision(seq, body, became)


def _became(team: Team) -> dict[str, tuple[str, str, int]]:
    """Of each decision that a later one refers to: what became of it, by which, and its entry.

    Where several refer to one, as in an adopted log, the newest says what stands.
    """
    rows = team.store.db.execute(
        "SELECT supersedes, status, id, seq FROM pieces"
        " WHERE supersedes IS NOT NULL AND id IS NOT NULL ORDER BY seq"
    )
    return {
        target: (status if status in CHANGES else "superseded", id_, seq)
        for target, status, id_, seq in rows
    }


def _decision(seq: int, body: dict[str, Any], became: dict[str, tuple[str, str, int]]) -> Decision:
    what, by, later = became.get(body["id"], (None, None, seq))
    return Decision(
        seq,
        body["number"],
        body["id"],
        body["title"],
        body["status"],
        body["participants"],
        body["risk_tags"],
        body["artefacts"],
        body["chat_ref"],
        body["rationale"],
        body.get("supersedes"),
        what if later != seq else None,  # a decision that names itself changes nothing
        by if later != seq else None,
    )


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",")]


def _has_log(team: Team, log: str | None = None) -> None:
    logs = LOG.live(team.source)
    if not logs:
        raise NotFoundError("no decision log yet: `tripod scribe log` begins it")
    if log is not None and log not in logs:
        raise NotFoundError(f"no decision log {log}; the team's logs are {', '.join(logs)}")


def _seqs(team: Team, rest: str = "ORDER BY seq", values: Sequence[object] = ()) -> list[int]:
    rows = team.store.db.execute(f"SELECT seq FROM pieces WHERE id IS NOT NULL {rest}", values)
    return [seq for (seq,) in rows]


def words_of(text: str) -> list[str]:
    """The words of a search, folded: what stands in double quotes is one.

    >>> words_of('Files "over sockets"')
    ['files', 'over sockets']
    """
    return [(quoted or word).casefold() for quoted, word in re.findall(_WORD, text)]


def folded(decision: Decision) -> str:
    """All that is searched in a decision, in one case."""
    said = (decision.title, decision.rationale, decision.participants, decision.artefacts)
    rest = (decision.risk_tags, decision.status, decision.chat_ref, decision.supersedes or "")
    return "\n".join((decision.id, *said, *rest)).casefold()


def query(
    team: Team, text: str = "", filters: Filters | None = None, log: str | None = None
) -> Iterator[Decision]:
    """Decisions that hold every word of ``text`` in any field and fit the filters, in order.

    Upper and lower case are alike, and a part of a word is found too; what stands in double
    quotes is searched as it is. '' fits all. ``log`` is the file name of one log; None: all.

    Raises:
        NotFoundError: there is no log yet, or none of that name.
    """
    _has_log(team, log)
    words = words_of(text)
    filters = filters or Filters()
    seqs: Sequence[int] = _seqs(team)
    if words:
        from tripod.decisions.index import likely

        texts = lambda some: map(folded, _decisions(team, some))  # noqa: E731
        seqs = likely(team.store, team.store.path, seqs, words, texts)
    if log is not None:
        of_it = set(_seqs(team, "AND log = ?", (log,)))
        seqs = [seq for seq in seqs if seq in of_it]
    for decision in _decisions(team, seqs):
        if filters.fit(decision):
            whole = folded(decision) if words else ""
            if all(word in whole for word in words):
                yield decision


def count(team: Team, log: str | None = None) -> int:
    """How many decisions a log holds, or all (None): what ``grep -c "^### D-"`` gives on its files.

    A heading that others left malformed is no decision: `tripod verify` names it.

    Raises:
        NotFoundError: there is no log yet, or none of that name.
    """
    _has_log(team, log)
    sql = "SELECT count(*) FROM pieces WHERE id IS NOT NULL"
    if log is None:
        return int(team.store.db.execute(sql).fetchone()[0])
    return int(team.store.db.execute(f"{sql} AND log = ?", (log,)).fetchone()[0])


def summary(team: Team, last: int, log: str | None = None) -> list[Decision]:
    """The newest ``last`` decisions of a log, or of all (None), oldest of them first.

    Raises:
        NotFoundError: there is no log yet, or none of that name.
    """
    _has_log(team, log)
    of_it, values = ("", ()) if log is None else ("AND log = ? ", (log,))
    seqs = _seqs(team, f"{of_it}ORDER BY seq DESC LIMIT ?", (*values, last))
    return list(_decisions(team, seqs[::-1]))


class Standing(NamedTuple):
    """A decision, the name of the log's file that it stands in, and what stands there."""

    decision: Decision
    file: str
    text: str


def standing(
    team: Team, last: int | None = None, logs: Sequence[str] | None = None
) -> Iterator[Standing]:
    """Every decision as it stands in the logs' files, archives first; or the newest ``last``.

    ``logs`` are the file names of some logs; None: all.

    Raises:
        NotFoundError: there is no log yet.
    """
    _has_log(team)
    rest = "" if last is None else f" LIMIT {last}"
    rows = team.store.db.execute(
        "SELECT seq, file FROM pieces WHERE id IS NOT NULL"
        f" AND (?1 IS NULL OR log IN (SELECT value FROM json_each(?1))) ORDER BY seq DESC{rest}",
        (None if logs is None else json.dumps(logs),),
    ).fetchall()[::-1]
    bodies, became = team.source.each_body([seq for seq, _ in rows]), _became(team)
    for (seq, file), body in zip(rows, bodies, strict=True):
        yield Standing(
            _decision(seq, body, became), file, entry_text(piece_bytes(team.source, body))
        )


# One decision ----------------------------------------------------------------------------------


def find(team: Team, decision: str) -> list[DecisionHistory]:
    """A decision with its whole history; several where an adopted log used an id twice.

    Raises:
        NotFoundError: there is no log yet.
    """
    _has_log(team)
    return [_history(team, seq) for seq in _seqs(team, "AND id = ? ORDER BY seq", (decision,))]


def _history(team: Team, seq: int) -> DecisionHistory:
    body = team.source.body(seq)
    (entry,) = team.store.read(seq, seq + 1)
    (file,) = team.store.db.execute("SELECT file FROM pieces WHERE seq = ?", (seq,)).fetchone()
    found = _decision(seq, body, _became(team))
    return DecisionHistory(
        found,
        file,
        entry.at,
        entry.actor,
        "observed" in body,
        [_ref(team, ref) for ref in body["refs"]],
        list(_decisions(team, _earlier(team, found))),
        list(_decisions(team, _later(team, found))),
    )


def _ref(team: Team, ref: dict[str, Any]) -> Ref:
    seq = ref.get("seq")
    if seq is None:
        return Ref(ref["file"], ref["line"], None, None)
    body = team.source.body(seq)
    text = content_bytes(team.source, body["text"]).decode()
    return Ref(ref["file"], ref["line"], seq, (body["handle"], body["time"], text))


def _earlier(team: Team, decision: Decision) -> list[int]:
    """What a decision refers to, what that refers to, and so on; the oldest first."""
    found: list[int] = []
    before = decision.supersedes
    while before is not None:
        row = team.store.db.execute(
            "SELECT seq, supersedes FROM pieces WHERE id = ? ORDER BY seq DESC LIMIT 1", (before,)
        ).fetchone()
        if row is None or row[0] in (*found, decision.seq):
            break  # an adopted log may refer to what is not there, or in a circle
        found.append(row[0])
        before = row[1]
    return found[::-1]


def _later(team: Team, decision: Decision) -> list[int]:
    """What refers to a decision, what refers to that, and so on; in the log's order."""
    successors: dict[str, list[tuple[int, str]]] = defaultdict(list)
    rows = team.store.db.execute(
        "SELECT supersedes, seq, id FROM pieces WHERE supersedes IS NOT NULL ORDER BY seq"
    )
    for target, seq, id_ in rows:
        successors[target].append((seq, id_))
    found: set[int] = set()
    todo = [decision.id]
    while todo:
        for seq, id_ in successors.pop(todo.pop(), ()):
            if seq != decision.seq:
                found.add(seq)
                todo.append(id_)
    return sorted(found)
