"""Small team directories with exactly one thing wrong, made by real acts and then by damage.

``build`` makes a sound one; each of ``SPECIMENS`` damages a copy so that one check alone names it
(``ADVISED``: advises on it); whatever else would tell (hashes, links, tables, files) is made to fit
again by ``forge``.
"""

import atexit
import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import drafts
import recorded_panel as panels
from git_repo import Git
from plain_export import files_of, write_files
from recorded_review import answer, asked_for, review

from tripod.agents.spec import Parameters
from tripod.bus import events as bus
from tripod.chat import writer as chat_send
from tripod.decisions import writer as decisions_log
from tripod.ledger import actor_entry_id
from tripod.ledger.actors import (
    actor_statement,
    parse_actor_record,
    sign_actor_change,
    sign_actor_statements,
)
from tripod.ledger.entry import (
    GENESIS,
    Draft,
    commit_body,
    entry_leaf_hash,
    format_canonical,
    header_auth,
)
from tripod.ledger.kinds.base import MARK
from tripod.ledger.kinds.peers import PEER_FORKED, PEER_MERGED
from tripod.ledger.kinds.team import team_evidence_kept
from tripod.ledger.locator import database_of, repository_around
from tripod.ledger.merkle import Tree
from tripod.ledger.sqlite.reader import SQLiteReader
from tripod.ledger.sqlite.schema import MIGRATIONS
from tripod.ledger.tlog.note import Note, SigningKey, VerifierKey, format_note, parse_note
from tripod.ledger.tlog.seal import Seal, format_seal, parse_seal, sign_seal
from tripod.ledger.tlog.trailer import format_trailer, key_digits
from tripod.projections.decisions.format import DecisionText, format_decision
from tripod.projections.disk import Disk
from tripod.projections.engine import (
    create_tables,
    drop_tables,
    file_differences,
    fold_batches,
    fold_into,
    restore,
    source_of,
)
from tripod.projections.nova import run as nova_run
from tripod.projections.nova.run import DueTurn, NovaRun
from tripod.projections.projection import Source
from tripod.recovery import backup as copies
from tripod.recovery import redaction
from tripod.sessions.imports import import_session_file
from tripod.team import adoption
from tripod.team.act import draft_event_for_act
from tripod.team.team import Team
from tripod.trust import actors as authors
from tripod.trust import keys, signature
from tripod.trust import seal as sealing
from tripod.workers.worker import worker_step

__all__ = [
    "ADVISED",
    "SPECIMENS",
    "Row",
    "Specimen",
    "authored",
    "build",
    "database",
    "forge",
    "guards",
    "private",
    "read",
    "resigned",
    "unguarded",
]

SAID = (
    ("alex", "Do we keep polling the folder, or move to events?"),
    ("claude", "Polling wastes context on empty reads. I would move the bus to events."),
    ("alex", "Then say how a late reader catches up."),
    ("bench", "I measured it: 12 ms for a check with ten thousand pending."),
    ("claude", "A late reader reads the queue from its oldest event."),
    ("alex", "Good. @bench please keep the figures."),
)
DECISIONS = (
    ("Coordination bus replaces polling", ("alex", "claude"), "live.chat:~L8"),
    ("Figures are kept beside the code", ("alex", "bench"), "live.chat:~L12"),
    ("Late readers start at the oldest event", ("claude",), "live.chat:~L11"),
    ("Queue is pruned by size alone", ("alex", "claude"), "live.chat:~L7, live.chat:~L9"),
)

OTHER = SigningKey("other.example/1", bytes(range(32)))
"""The key of another replica."""


@cache
def _built() -> str:
    """A project with the sound team: most others are copies of it, for a twentieth of the time."""
    folder = tempfile.mkdtemp(prefix="tripod-built-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _build(folder)
    return folder


def build(folder: str, *, new: bool = False) -> str:
    """Make a sound team of about fifty entries below ``folder``; give its team directory.

    It has the history of all others in this process, but where it is to be ``new`` or where it lies
    in a repository, and so gets a key.
    """
    if new or repository_around(folder) is not None:
        return _build(folder)
    shutil.copytree(f"{_built()}/.nbs", f"{folder}/.nbs", copy_function=shutil.copy2)
    return f"{folder}/.nbs"


def _build(folder: str) -> str:
    os.makedirs(f"{folder}/.nbs/events")
    with open(f"{folder}/.nbs/events/config.yaml", "w", encoding="utf-8") as file:
        file.write("pythia-interval: 3\n")
    adoption.init(folder, project="sample", origin="sample.example/1")
    with Team(f"{folder}/.nbs") as team:
        chat_send.create(team, "live", actor="alex")
        for handle, text in SAID:
            chat_send.send(team, "live", handle, text)
        chat_send.send(team, "live", "bench", "The whole table: " + "12 ms, " * 3000)
        for title, people, refs in DECISIONS:
            decisions_log.log(
                team,
                decisions_log.DecisionRequest(
                    title, people, "Agreed in the chat.", refs=refs.split(", "), status="decided"
                ),
            )
        for number in range(6):
            bus.publish(team, "parser", "task-complete", "normal", f"task {number}")
        work = [event for event in bus.check(team) if event.type != "pythia-checkpoint"]
        for pending in work[:4]:
            bus.ack(team, pending.name, actor="alex")
        chat_send.create(team, "side", actor="claude")
        for number in range(4):
            chat_send.send(team, "side", "claude", f"note {number}")
        bus.ack_all(team, "parser", actor="alex")
    os.makedirs(f"{folder}/.nbs/workers", exist_ok=True)
    _write(f"{folder}/.nbs/workers/parser-a3f1.md", _worker("parser", "Parse the grammar."))
    with Team(f"{folder}/.nbs") as team:
        adoption.sync(team)
    return f"{folder}/.nbs"


def database(root: str) -> str:
    """Path of a team's database."""
    return database_of(root)


# Behind the writer's back ----------------------------------------------------------------------


class Row(NamedTuple):
    """An entry taken apart: header as an object, salt, exact bytes of the body (None: erased)."""

    head: dict[str, Any]
    salt: Any
    body: Any
    auth: Any = None

    @property
    def data(self) -> dict[str, Any]:
        """The body as an object."""
        value: dict[str, Any] = json.loads(self.body or b"{}")
        return value

    def saying(self, **changes: Any) -> "Row":
        """The same entry with other fields in its body."""
        return self._replace(body=format_canonical(self.data | changes))

    def headed(self, **changes: Any) -> "Row":
        """The same entry with other fields in its header."""
        return self._replace(head=self.head | changes)


@contextmanager
def unguarded(path: str) -> Iterator[sqlite3.Connection]:
    """The database without its triggers, which are there again afterwards."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA ignore_check_constraints=ON")
        db.execute("PRAGMA synchronous=OFF")  # damage needs not outlive a power cut
        triggers = guards(db)
        db.execute("BEGIN")
        for name in triggers:
            db.execute(f"DROP TRIGGER {name}")
        yield db
        there = guards(db)
        for name, sql in triggers.items():
            if name not in there:  # a table that was made anew brought its own
                db.execute(sql)
        db.execute("COMMIT")


def guards(db: sqlite3.Connection) -> dict[str, str]:
    """Name and SQL of each trigger."""
    return dict(db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall())


def read(path: str) -> list[Row]:
    """All entries of a ledger, taken apart."""
    with closing(sqlite3.connect(path)) as db:
        return [
            Row(json.loads(header), salt, body, auth)
            for header, salt, body, auth in db.execute(
                "SELECT header, salt, body, auth FROM entries ORDER BY seq"
            )
        ]


def forge(
    root: str,
    rows: list[Row],
    *,
    spell: Callable[[int, bytes], bytes] = lambda _, header: header,
    **keep: set[int],
) -> None:
    """Write a ledger anew from ``rows``, everything that can fit made to fit.

    ``commitment``, ``link`` and ``seq`` name the entries whose field stays as the row has it;
    ``spell`` may spell a header in another way than the canonical one.
    """
    with unguarded(database(root)) as db:
        for table in ("entries", "nodes", "head"):
            db.execute(f"DELETE FROM {table}")
        _insert(db, rows, keep, spell)
        drop_tables(db)
        create_tables(db)
        for batch in fold_batches(SQLiteReader(db).read(), 1000):
            fold_into(db, batch, SQLiteReader(db).blob, lambda _entry, _error: None)
        db.execute("DELETE FROM manifest")
    with closing(sqlite3.connect(database(root))) as db:
        source, disk = _unchecked(db), Disk(root)
        wanted = set(_projected(root))
        restore(disk, list(file_differences(source, disk)))
        for path in wanted - set(_rendered(source)):
            os.unlink(f"{root}/{path}")


def write_rows(root: str, rows: list[Row]) -> None:
    """Make ``rows`` the ledger's entries, links and head with them; tables and files stay."""
    with unguarded(database(root)) as db:
        for table in ("entries", "nodes", "head"):
            db.execute(f"DELETE FROM {table}")
        _insert(db, rows, {}, lambda _, header: header)


def _unchecked(db: sqlite3.Connection) -> Source:
    """What serves renders, also from bodies that were not committed to."""

    def body(seq: int) -> dict[str, Any]:
        return next(SQLiteReader(db).read(seq, seq + 1)).data

    ledger = SQLiteReader(db)
    return Source(db, body, source_of(ledger).blob, lambda _: {}, ledger)


def _insert(
    db: sqlite3.Connection,
    rows: list[Row],
    keep: dict[str, set[int]],
    spell: Callable[[int, bytes], bytes],
) -> None:
    prev, tree, header = GENESIS, Tree(), b""
    for seq, row in enumerate(rows):
        head = dict(row.head)
        if seq not in keep.get("commitment", set()) and row.salt is not None and row.body:
            head["body"] = commit_body(row.salt, head["kind"], row.body)
        if seq not in keep.get("link", set()):
            head["prev"] = prev
        if seq not in keep.get("seq", set()):
            head["seq"] = seq
        header = spell(seq, format_canonical(head))
        db.execute(
            "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (seq, head["id"], head["kind"], head["stream"], header, *row[1:]),
        )
        leaf = entry_leaf_hash(header)
        prev = leaf.hex()
        tree.append(leaf)
    db.executemany("INSERT INTO nodes VALUES (?, ?, ?)", tree.full)
    last = json.loads(header)
    db.execute(
        "INSERT INTO head VALUES (0, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, '')",
        (len(rows), last["ledger"], prev, last["at"], b"".join(tree.stack), len(rows), len(rows)),
    )


def _projected(root: str) -> list[str]:
    folders = ("events", "events/processed", "chat", "scribe")
    names = [f"{folder}/{name}" for folder in folders for name in Disk(root).names(folder)]
    return [name for name in names if name.endswith((".event", ".chat", ".md"))]


def _rendered(source: Any) -> Iterator[str]:
    from tripod.projections.engine import PROJECTIONS

    for projection in PROJECTIONS:
        yield from projection.paths(source)


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _worker(title: str, task: str) -> str:
    return (
        f"# Worker: {title}\n\n## Task\n\n{task}\n\n## Status\n\nState: running\n"
        "Started: 2026-11-21 20:57:25\nCompleted:\n\n## Log\n\n[Worker appends findings here]\n"
    )


# The specimens ---------------------------------------------------------------------------------


class Specimen(NamedTuple):
    """A damage: the check that alone names it, a part of what it says, and the deed."""

    check: str
    says: str
    do: Callable[[str], None]


def _find(rows: list[Row], kind: str, nth: int = 0) -> int:
    return [seq for seq, row in enumerate(rows) if row.head["kind"] == kind][nth]


def _changed(
    kind: str, nth: int, change: Callable[[Row], Row], *keep: str
) -> Callable[[str], None]:
    def do(root: str) -> None:
        rows = read(database(root))
        seq = _find(rows, kind, nth)
        rows[seq] = change(rows[seq])
        fields: Any = {name: {seq} for name in keep}
        forge(root, rows, **fields)

    return do


def _other_column(root: str) -> None:
    with unguarded(database(root)) as db:
        db.execute("UPDATE entries SET kind = 'bus.acked' WHERE seq = 20")


def _twice(root: str) -> None:
    """The same id twice needs a table without its index: as an attacker would make it."""
    rows = read(database(root))
    with unguarded(database(root)) as db:
        db.execute("DROP TABLE entries")
        script = MIGRATIONS[0].replace("id TEXT NOT NULL UNIQUE", "id TEXT NOT NULL")
        db.execute(script.split(";")[0])
        db.execute("ALTER TABLE entries ADD COLUMN auth BLOB")
    seq = _find(rows, "bus.published", -1)
    rows[seq] = rows[seq].headed(id=rows[4].head["id"])
    forge(root, rows)


def _spaced(row: Row) -> Row:
    return row._replace(body=row.body.replace(b'":', b'": ', 1))


def _before(row: Row) -> Row:
    return row.headed(at="2020-01-01T00:00:00.000000Z")


def _gone(root: str) -> None:
    for name in os.listdir(root):
        if name.startswith("ledger.db"):
            os.unlink(f"{root}/{name}")


def _smuggled(row: Row) -> Row:
    data = row.data
    text = format_decision(
        DecisionText(
            data["id"],
            data["title"],
            None,
            data["chat_ref"],
            data["participants"],
            data["artefacts"],
            data["risk_tags"],
            data["status"],
            data["rationale"],
        )
    )
    raw = text + "\n### D-1 Nobody decided this\n"
    return row.saying(observed={"path": "scribe/log.md", "raw": {"text": raw}})


def _same_id(root: str) -> None:
    rows = read(database(root))
    first, second = (_find(rows, "decision.logged", nth) for nth in (0, 1))
    rows[second] = rows[second].saying(id=rows[first].data["id"])
    forge(root, rows)


def _silent_worker(root: str) -> None:
    """It ran and did its task, and nobody was told that it had begun."""
    with Team(root) as team, team.act() as act:
        done = draft_event_for_act(act, "mole-0001", "task-complete", "high", "")
        name, run = "mole-0001", "f" * 32
        act.append(_run_of(name, run))
        act.append([drafts.worker_running(name, run, "none.event")])
        ended = drafts.worker_ended(
            name=name, spawn=run, state="completed", logs=(), event=done.body["name"]
        )
        worker_step(act, ended, done)
        act.append([_ended(run)])


def _undead_worker(root: str) -> None:
    """It was sent away before it began, and is said to have done its task."""
    with Team(root) as team, team.act() as act:
        gone = draft_event_for_act(act, "nbs-worker", "worker-dismissed", "normal", "")
        done = draft_event_for_act(act, "mole-0001", "task-complete", "high", "")
        name, run = "mole-0001", "f" * 32
        act.append(_run_of(name, run))
        worker_step(act, drafts.worker_dismissed(name, gone.body["name"], "alex"), gone)
        ended = drafts.worker_ended(
            name=name, spawn=run, state="completed", logs=(), event=done.body["name"]
        )
        worker_step(act, ended, done)
        act.append([_ended(run)])


def _tidied_worker(root: str) -> None:
    """It failed, somebody wrote its log over, and it was continued: its end kept the new log."""
    name, log = "mole-0001", "workers/mole-0001.log"
    for attempt, said in enumerate((b"I read the chat\n", b"ok\n")):
        run = f"{attempt}" * 32
        digest = sha256(said).hexdigest()
        with Team(root) as team, team.act() as act:
            if attempt:
                act.append([drafts.worker_continued(name, "More.", "alex")])
                act.append([_requested(name, run, 2)])
            else:
                act.append(_run_of(name, run))
            end = draft_event_for_act(act, name, "task-failed", "high", "")
            _write(f"{root}/{log}", said.decode())
            act.append([team_evidence_kept(log, said, 1, None)])
            ended = drafts.worker_ended(
                name=name,
                spawn=run,
                state="failed",
                logs=[(log, digest, len(said))],
                event=end.body["name"],
            )
            worker_step(act, ended, end)
            act.append([_ended(run)])


def _run_of(name: str, run: str) -> list[Draft]:
    return [
        drafts.worker_spawned(
            name=name, slug="mole", folder="/srv/sample", task="Dig.", actor="alex"
        ),
        _requested(name, run, 1),
    ]


def _requested(name: str, run: str, attempt: int) -> Draft:
    return drafts.agent_requested(
        spawn=run, role="worker", subject=name, attempt=attempt, spec=b"{}", actor="alex"
    )


def _ended(run: str) -> Draft:
    return drafts.agent_ended(spawn=run, status="ok", wall_ms=1, stdout=b"x", stderr=b"")


def _assess(root: str) -> None:
    with Team(root) as team:
        asked = asked_for(team)
        later = asked._replace(ids=("D-5", "D-9"))
        text = answer(later).replace("That D-5 is", "That it is").replace("measured D-9", "did")
        chat_send.send(team, "live", "pythia", text)


def _far_ref(row: Row) -> Row:
    return row.saying(chat_ref="live.chat:~L4711", refs=[{"file": "live.chat", "line": 4711}])


def _unasked(root: str) -> None:
    """The event at the interval asks for something else."""
    rows = read(database(root))
    events = (seq for seq, row in enumerate(rows) if row.data.get("type") == "pythia-checkpoint")
    seq = next(events)
    rows[seq] = rows[seq].saying(type="pythia-reminder")
    forge(root, rows)


def _left_lying(root: str) -> None:
    """A checkpoint event is published, and a day later somebody speaks."""
    _write(f"{root}/events/config.yaml", "pythia-interval: 3\nack-timeout: 120\n")
    with Team(root) as team:
        for number in range(2):
            decisions_log.log(
                team,
                decisions_log.DecisionRequest(
                    f"Rule {number}", ("alex",), "Agreed.", refs=("live.chat:~L8",)
                ),
            )
        chat_send.send(team, "side", "claude", "Anybody here?")
    rows = read(database(root))
    later = f"2999{rows[-1].head['at'][4:]}"
    rows[-2:] = [row.headed(at=later) for row in rows[-2:]]
    forge(root, rows)


def _waved_through(root: str) -> None:
    """Somebody acknowledges all that is there, and a checkpoint event is among it."""
    with Team(root) as team:
        bus.ack_all(team)


def _unlogged(root: str) -> None:
    """Something is settled in the chat, and nobody logs it while the talk goes on."""
    with Team(root) as team:
        chat_send.send(
            team, "side", "alex", "Right. We'll use sqlite for the index, not flat files."
        )
        for number in range(20):
            chat_send.send(team, "side", "claude", f"note {number}")


def _no_decision(root: str) -> None:
    with Team(root) as team:
        decisions_log.log(
            team,
            decisions_log.DecisionRequest(
                "All tests pass", ("alex",), "Seen.", refs=("live.chat:~L8",)
            ),
        )


_SESSION = [
    {"type": "user", "message": {"role": "user", "content": "go"}},
    {
        "type": "assistant",
        "message": {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "c", "name": "Read", "input": {"file_path": "/w/.env"}}
            ],
        },
    },
    {
        "type": "user",
        "message": {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c", "content": "KEY=1"}],
        },
    },
]


def _import_session(root: str, *names: str, policy: str = "") -> None:
    """Import states of one session: each name is the text that stands for KEY=1 in it."""
    path = f"{root}/evidence.jsonl"
    for name in names:
        said = {"sessionId": "s", "version": "2.1.209", "cwd": "/w"}
        lines = (json.dumps(said | one).replace("KEY=1", name) + "\n" for one in _SESSION)
        Path(path).write_text("".join(lines))
        with Team(root) as team:
            import_session_file(team, path, actor="ann", keep=True)
    os.unlink(path)
    if policy:
        Path(f"{root}/policy.yaml").write_text(policy)


def _forbidden(root: str) -> None:
    _import_session(root, "KEY=1", policy="never:\n  - paths: [.env]\n")


def _changed_session(root: str) -> None:
    _import_session(root, "KEY=1", "KEY=2")


def _unknown_to_the_transcript(root: str) -> None:
    """Hooks saw a call that is not in the session that was imported."""
    _import_session(root, "KEY=1")
    event = {"session_id": "s", "cwd": "/w", "tool_name": "Read", "tool_input": {}}
    kinds = {"SessionStart": "", "PreToolUse": "d", "PostToolUse": "c", "SessionEnd": ""}
    os.makedirs(f"{root}/spool/hooks/s")
    for number, (kind, call) in enumerate(kinds.items(), 1):
        said = event | {"hook_event_name": kind} | ({"tool_use_id": call} if call else {})
        _write(f"{root}/spool/hooks/s/{number}-{kind}.json", json.dumps(said))


def _peek(root: str) -> None:
    _write(f"{root}/workers/pythia-a0d7.md", _worker("pythia", "Read .nbs/scribe/log.md."))
    _write(
        f"{root}/workers/pythia-a0d7.log",
        "> Read(.nbs/scribe/log.md)\n> Bash(tail -50 .nbs/chat/live.chat)\n",
    )
    with Team(root) as team:
        adoption.sync(team)


def _quoted_to_her(root: str) -> None:
    """What bench said in the chat stands in her prompt, and she answers as if it did not."""
    (said,) = (text for handle, text in SAID if handle == "bench")
    review(root, extra=f"\nWhat is known: {said}")


def _chat_as_source(root: str) -> None:
    with Team(root) as team:
        seqs = asked_for(team).seqs
        said = team.store.db.execute("SELECT min(seq) FROM lines").fetchone()[0]
    review(root, sources=[*seqs, said])


def _half_an_answer(root: str) -> None:
    with Team(root) as team:
        text = answer(asked_for(team))
    review(root, text=text.replace("It is slow, and nobody knows why.", ""))


def _panel_with(persona: str, **odd: Any) -> Callable[[str], None]:
    """A run of Nova in which one persona's agent is odd."""

    def script(turn: DueTurn, attempt: int) -> panels.Agent:
        usual = panels.usual_agent(turn, attempt)
        return usual._replace(**odd) if turn.persona == persona else usual

    return lambda root: _panel(root, script)


def _panel(root: str, script: panels.Script = panels.usual_agent, **limits: Any) -> None:
    panels.panel(root, script, **limits)


def _unsure(turn: DueTurn, attempt: int) -> panels.Agent:
    """The coordinator knows little, and no more from cycle to cycle."""
    if turn.role == "synthesis":
        return panels.Agent(panels.said("synthesis", epistemic={"know": 0.5, "uncertainty": 0.6}))
    return panels.usual_agent(turn, attempt)


def _flawed(turn: DueTurn, attempt: int) -> panels.Agent:
    """The critic finds what must not be."""
    if turn.role == "critique":
        return panels.Agent(
            panels.said("critique", issues=[{"severity": "critical", "text": "Events are lost."}])
        )
    return panels.usual_agent(turn, attempt)


def _by_other_rules(
    script: panels.Script, where: Any, name: str, rule: Any, **limits: Any
) -> Callable[[str], None]:
    """A run that was carried on by a coordinator with a rule of its own."""

    def do(root: str) -> None:
        with mock.patch.object(where, name, rule):
            panels.panel(root, script, **limits)

    return do


def _panel_then(kind: str, **changes: Any) -> Callable[[str], None]:
    """A run of Nova, one entry of which is reworded."""
    return _then(_panel, _changed(kind, 0, lambda row: row.saying(**changes)))


def _edit_event(root: str) -> None:
    names = [name for name in os.listdir(f"{root}/events") if name.endswith(".event")]
    path = f"{root}/events/{min(names)}"
    with open(path, encoding="utf-8") as file:
        text = file.read()
    _write(path, text.replace("priority: ", "priority:  "))


def _edit_log(root: str) -> None:
    path = f"{root}/scribe/log.md"
    with open(path, encoding="utf-8") as file:
        text = file.read()
    _write(path, text.replace("Agreed in the chat.", "Nobody asked us.", 1))


def _remembered(root: str) -> Git:
    """A head of the ledger, committed where its policy says that heads are."""
    rows = read(database(root))
    leaves = Tree()
    with closing(sqlite3.connect(database(root))) as db:
        for (header,) in db.execute("SELECT header FROM entries ORDER BY seq"):
            leaves.append(entry_leaf_hash(header))
    _write(f"{root}/policy.yaml", "seals: [SEAL]\n")
    git = Git(Path(root).parent)
    head = format_seal(Seal(rows[0].head["ledger"], leaves.size, leaves.root()))
    git.commit("SEAL", head.encode(), "remember the ledger")
    return git


def _rewritten(root: str) -> None:
    _remembered(root)
    _changed("bus.published", -1, lambda row: row.saying(payload={"text": "something else"}))(root)


def _rolled_back(root: str) -> None:
    _remembered(root)
    forge(root, read(database(root))[:-1])


def _stripped(root: str) -> None:
    _write(f"{root}/policy.yaml", "level: PINNED\n")


def _peer_forked(root: str) -> None:
    seals = [format_note(_note_of(OTHER, 7, root_)) for root_ in (b"1" * 32, b"2" * 32)]
    body = {"origin": OTHER.name, "ours": seals[0], "theirs": seals[1], "problem": "another root"}
    with Team(root) as team:
        team.append_apart(lambda: [PEER_FORKED.draft(body)])  # type: ignore[arg-type]


def _merged_otherwise(root: str) -> None:
    note = format_note(_note_of(OTHER, 7, b"1" * 32))
    body = {"origin": OTHER.name, "size": 8, "root": "31" * 32, "seal": note}
    with Team(root) as team:
        team.append_apart(lambda: [PEER_MERGED.draft(body)])  # type: ignore[arg-type]


def _note_of(key: SigningKey, size: int, root: bytes) -> Note:
    seal = Seal(key.name, size, root)
    return Note(format_seal(seal), (sign_seal(seal, key),))


def _committed_otherwise(root: str) -> None:
    """A commit says another root than the ledger has, under its own key."""
    _sealed(root)
    with Team(root) as team:
        vkey = keys.sealing_key(team.store)
        assert vkey is not None
        key = keys.load_key_in_force(vkey)
    note = _note_of(key, 7, b"1" * 32)
    line = format_trailer(
        f"ann-{key_digits(vkey)}", Seal(key.name, 7, b"1" * 32), note.signatures[0]
    )
    git = Git(Path(root).parent)
    git("commit", "--quiet", "--allow-empty", "-m", f"Say\n\n{line.decode()}")


def _sealed(root: str) -> None:
    with Team(root) as team:
        sealing.new_sealing_key(team)


def _then(first: Callable[[str], None], *rest: Callable[[str], None]) -> Callable[[str], None]:
    def do(root: str) -> None:
        first(root)
        for deed in rest:
            deed(root)
        shutil.rmtree(f"{root}/record", ignore_errors=True)  # it is another check's

    return do


def _rotated(root: str) -> None:
    with Team(root) as team:
        sealing.rotate_sealing_key(team, keys.no_passphrase, None)


def _forked(root: str) -> None:
    with Team(root) as team:
        copies.backup(team, f"{root}/ledger.db.copy")
    copies.restore(root, f"{root}/ledger.db.copy", "sample.example/2")


def _signed_by_another(row: Row) -> Row:
    seal = parse_seal(parse_note(row.data["note"].encode()).text)
    other = SigningKey(seal.origin, b"x" * 32)
    note = format_note(Note(format_seal(seal), (sign_seal(seal, other),)))
    return row.saying(note=note.decode())


def _unsigned_by_the_old(row: Row) -> Row:
    text, _, rest = row.data["note"].partition("\n\n")
    return row.saying(note=f"{text}\n\n{rest.partition(chr(10))[2]}")


def _without_note(row: Row) -> bytes:
    return format_canonical({name: row.data[name] for name in ("v", "vkey")})


def _other_record(root: str) -> None:
    """A record of another body in the place of one of ours, sealed and whole in itself."""
    files = files_of(database(root))
    path = next(path for path in files if path.startswith("bodies/"))
    files[path] = files[path].replace(b"I measured it: 12 ms", b"I measured it: 11 ms")
    write_files(f"{root}/record", files)


def _untrue(row: Row, named: int = 3) -> Row:
    """A redaction that was never carried out, in the place of an entry."""
    keep = {
        "channel": "live",
        "handle": "alex",
        "index": 0,
        "text": {"text": MARK},
        "time": 1,
        "v": 1,
    }
    draft = drafts.redacted(
        seq=named, kind="chat.sent", cause=row.head["id"], reason="r", by="a", keep=keep
    )
    head = {key: value for key, value in row.head.items() if key != "cause"}
    head |= {"actor": "a", "id": draft.id, "kind": draft.kind, "stream": draft.stream}
    return Row(head, row.salt, format_canonical(draft.body))


def _vanished(root: str) -> None:
    """The body of an acknowledgement, which no table shows: its fold is made to fit."""
    with unguarded(database(root)) as db:
        db.execute(
            "UPDATE entries SET salt = NULL, body = NULL WHERE seq ="
            " (SELECT max(seq) FROM entries WHERE kind = 'ledger.adopted')"
        )
        db.execute("UPDATE team SET adopted = NULL")


def _keeps_more(root: str) -> None:
    """A decision is erased, and the entry that says so keeps a text in its place."""
    with Team(root) as team:
        seq = team.store.db.execute("SELECT min(seq) FROM pieces").fetchone()[0]
        redaction.redact(team, redaction.RedactionRequest((seq,), None, "r", "alex"))
        size = team.store.head().size
        told = next(e.seq for e in team.store.read() if e.id == f"redacted-{seq}")
    assert told < size
    rows = read(database(root))
    keep = rows[told].data["keep"] | {"rationale": "Nobody said this."}
    rows[told] = rows[told].saying(keep=keep)
    forge(root, rows)


# Who signed what --------------------------------------------------------------------------------


def authored(root: str) -> None:
    """Two actors have keys and act; the ledger has none of its own."""
    with Team(root) as team:
        for handle in ("bench", "alex"):
            authors.enrol_actor(team, handle, keys.no_passphrase)
        chat_send.send(team, "side", "bench", "Three figures, @alex.")
        bus.publish(team, "alex", "task-complete", "normal", "read")
        bus.publish(team, "bench", "task-complete", "normal", "measured")


def _rotated_actor(root: str) -> None:
    with Team(root) as team:
        authors.enrol_actor(team, "bench", keys.no_passphrase)


def _revoked_actor(root: str) -> None:
    with Team(root) as team:
        authors.revoke_actor(team, "bench", "stolen", keys.no_passphrase)


def _signed(**where: str) -> Callable[[list[Row]], int]:
    """The last signed entry with these fields in its header."""

    def find(rows: list[Row]) -> int:
        fits = [row.auth is not None and row.head | where == row.head for row in rows]
        return max(seq for seq, fit in enumerate(fits) if fit)

    return find


def resigned(row: Row, key: SigningKey) -> Row:
    """The same entry, signed anew by itself."""
    head = row.head | {"body": commit_body(row.salt, row.head["kind"], row.body)}
    record = sign_actor_statements([actor_statement(head)], key)

    return row._replace(head=head | {"auth": header_auth(record)}, auth=record)


def _bare(row: Row) -> Row:
    head = {name: value for name, value in row.head.items() if name != "auth"}
    return row._replace(head=head, auth=None)


def _authored_then(
    find: Callable[[list[Row]], int], change: Callable[[Row], Row | None], *deeds: Any
) -> Callable[[str], None]:
    """A team with actors' keys, then ``deeds``, then an entry that is changed (None: taken out)."""

    def damage(root: str) -> None:
        rows = read(database(root))
        seq = find(rows)
        changed = change(rows[seq])
        rows[seq : seq + 1] = [] if changed is None else [changed]
        forge(root, rows)

    return _then(authored, *deeds, damage)


def private(root: str, handle: str, *, since: int = -1) -> SigningKey:
    """The private key of an actor, by the number of its enrolment."""
    with Team(root) as team:
        sql = "SELECT vkey FROM actors WHERE handle = ? AND NOT revoked ORDER BY number"
        vkey = team.store.db.execute(sql, (handle,)).fetchall()[since][0]
    return keys.load_key(signature.actor_key_path(vkey), handle)


def _by(handle: str, **where: str) -> Callable[[str], None]:
    """An entry that another actor's key signs."""

    def do(root: str) -> None:
        rows = read(database(root))
        seq = _signed(**where)(rows)
        rows[seq] = resigned(rows[seq], private(root, handle))
        forge(root, rows)

    return do


def _with_kept_key(deed: Callable[[str], None]) -> Callable[[str], None]:
    """What bench publishes behind a deed is signed with the key from before it."""

    def do(root: str) -> None:
        key = private(root, "bench")
        deed(root)
        with Team(root) as team:
            bus.publish(team, "bench", "task-complete", "low", "once more")
        rows = read(database(root))
        seq = max(s for s, row in enumerate(rows) if row.head["actor"] == "bench")
        rows[seq] = resigned(rows[seq], key)
        forge(root, rows)

    return do


def _stranger(number: int, *, sealed: bool) -> Callable[[str], None]:
    """Somebody puts a key of their own in force for bench, without whoever may."""

    def do(root: str) -> None:
        key = SigningKey("bench", b"s" * 32)
        with Team(root) as team:
            if sealed:
                sealing.new_sealing_key(team)
            vkey = key.verifier()
            note = sign_actor_change(team.store.origin, number, vkey, (key,))
            team.append_apart(lambda: (drafts.enrolled("bench", number, vkey.format(), note),))

    return do


def _speaks_as(row: Row) -> Row:
    """Something that bench says, and alex did; no key of alex is asked."""
    return _bare(row).headed(actor="claude")


def _unknown_key(root: str) -> None:
    rows = read(database(root))
    seq = _find(rows, "bus.published", -1)
    rows[seq] = resigned(rows[seq], SigningKey("parser", b"u" * 32))
    forge(root, rows)


def _other_id(row: Row) -> Row:
    assert row.head["id"] == actor_entry_id("alex", 1)
    return row.headed(id="0192f0c1-5a7e-7000-8000-000000000000")


def _foreign_record(row: Row) -> Row:
    """A record that alex signed for something else, in the place of this one."""
    key = VerifierKey.parse("PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW")
    record = parse_actor_record(row.auth)._replace(key_id=key.key_id)
    data = b"\x01" + record.key_id + record.signature
    return row._replace(head=row.head | {"auth": header_auth(data)}, auth=data)


def _together(rows: list[Row]) -> int:
    """An event that was signed together with the message that it tells of."""
    return _find(rows, "chat.sent", -1) + 2


_ALEX = _signed(actor="alex")

SPECIMENS: tuple[Specimen, ...] = (
    Specimen("pins-extend", "fork: it remembers root", _rewritten),
    Specimen("pins-extend", "rollback: it remembers", _rolled_back),
    Specimen("pins-extend", "unanchored: the policy asks for PINNED", _stripped),
    Specimen("peers-agree", "contradicts what it sealed before: another root", _peer_forked),
    Specimen("peers-agree", "it says that 8 entries of other.example/1 were", _merged_otherwise),
    Specimen("trailers-agree", "fork: it remembers root 3131", _committed_otherwise),
    Specimen("ledger-missing", "no ledger.db, but there was one", _gone),
    Specimen("sequence", "the column kind says 'bus.acked'", _other_column),
    Specimen("sequence", "stands at entry 4 already", _twice),
    Specimen(
        "sequence",
        "it follows from an entry that does not stand before it: no entry has its id",
        _changed("bus.published", -1, lambda row: row.headed(cause="nobody")),
    ),
    Specimen("canonical-bytes", "not canonical JSON", _changed("bus.published", -1, _spaced)),
    Specimen(
        "chain-links",
        "it was altered after it was appended",
        _changed("bus.published", -1, lambda row: row.headed(prev="ab" * 32), "link"),
    ),
    Specimen(
        "bodies-present",
        "the body is not the one that the header commits to",
        _changed("bus.published", -1, lambda row: row._replace(salt=b"s" * 32), "commitment"),
    ),
    Specimen(
        "bodies-present",
        "body and salt are missing, and no entry says that they were erased",
        _vanished,
    ),
    Specimen(
        "bodies-present", "was erased, and its body is there", _changed("bus.acked", -1, _untrue)
    ),
    Specimen(
        "bodies-present",
        "was erased, and no such entry stands before it",
        _changed("bus.acked", -1, lambda row: _untrue(row, 4711)),
    ),
    Specimen("bodies-present", "it keeps more of entry", _keeps_more),
    Specimen(
        "kinds-known",
        "bus.published: extra",
        _changed("bus.published", -1, lambda row: row.saying(extra=1)),
    ),
    Specimen("clock-forward", "dated 2020", _changed("bus.published", -1, _before)),
    Specimen(
        "append-only",
        "has number 7 where 2 follows",
        _changed("decision.logged", 1, lambda row: row.saying(number=7)),
    ),
    Specimen(
        "chain-links",
        "it forks from 'x', the entries before it are of 'sample.example/1'",
        _then(_forked, _changed("ledger.forked-from", 0, lambda row: row.saying(origin="x"))),
    ),
    Specimen(
        "seals-open",
        "they were rewritten, or the seal is of another ledger",
        _then(_sealed, _changed("bus.published", -1, lambda row: row.saying(priority="low"))),
    ),
    Specimen(
        "seals-open",
        "signed by no key that is trusted here",
        _then(_sealed, _changed("seal.made", 0, _signed_by_another)),
    ),
    Specimen(
        "seals-open",
        "one of the two keys did not sign",
        _then(_sealed, _rotated, _changed("key.set", 1, _unsigned_by_the_old)),
    ),
    Specimen(
        "seals-open",
        "was replaced, and did not sign that",
        _then(
            _sealed,
            _rotated,
            _changed("key.set", 1, lambda row: row._replace(body=_without_note(row))),
        ),
    ),
    Specimen(
        "seals-open",
        "it forks at another root",
        _then(_forked, _changed("ledger.forked-from", 0, lambda row: row.saying(root="ab" * 32))),
    ),
    Specimen(
        "writers-authorised",
        "nobody signed it, and the key of 'alex' is in force",
        _authored_then(_ALEX, _bare),
    ),
    Specimen(
        "writers-authorised",
        "names a signature record, and none is there: it was stripped",
        _authored_then(_ALEX, lambda row: row._replace(auth=None)),
    ),
    Specimen(
        "writers-authorised",
        "a signature record lies beside it, and its header names none",
        _authored_then(_ALEX, lambda row: _bare(row)._replace(auth=row.auth)),
    ),
    Specimen(
        "writers-authorised",
        "is not the one that its header names",
        _authored_then(_ALEX, lambda row: row._replace(auth=row.auth[:-1] + b"x")),
    ),
    Specimen(
        "writers-authorised",
        "its signature is not by the key of 'alex'",
        _authored_then(_ALEX, lambda row: row.saying(priority="low")),
    ),
    Specimen(
        "writers-authorised",
        "its signature is not by the key of 'alex'",
        _authored_then(_ALEX, _foreign_record),
    ),
    Specimen(
        "writers-authorised",
        "its signature record is another entry's",
        _authored_then(_together, lambda row: row.saying(priority="low")),
    ),
    Specimen(
        "writers-authorised",
        "it says that 'bench' did it, and the key of 'alex' signed it",
        _then(authored, _by("alex", actor="bench", kind="bus.published")),
    ),
    Specimen(
        "writers-authorised",
        "signed with a key of 'bench' that was replaced at entry",
        _then(authored, _with_kept_key(_rotated_actor)),
    ),
    Specimen(
        "writers-authorised",
        "signed with a key of 'bench' that was revoked at entry",
        _then(authored, _with_kept_key(_revoked_actor)),
    ),
    Specimen("writers-authorised", "signed with a key that nobody enrolled", _unknown_key),
    Specimen(
        "writers-authorised",
        "it shows 'bench' as who speaks, and 'claude' did it",
        _authored_then(_signed(actor="bench", kind="bus.published"), _speaks_as),
    ),
    Specimen(
        "writers-authorised",
        "3 entries were signed together, and only 2 of them are there",
        _authored_then(_together, lambda _: None),
    ),
    Specimen(
        "writers-authorised",
        "the key of 'bench' was changed: sample.example/1+",
        _stranger(1, sealed=True),
    ),
    Specimen(
        "writers-authorised",
        "the key of 'bench' was changed: bench+",
        _then(authored, _stranger(2, sealed=False)),
    ),
    Specimen(
        "writers-authorised",
        "it is change 5 of the key of 'bench', where 2 follows",
        _then(authored, _stranger(5, sealed=False)),
    ),
    Specimen(
        "writers-authorised",
        "its id is not actor-1-alex, so it changes no key",
        _authored_then(lambda rows: _find(rows, "actor.enrolled", 1), _other_id),
    ),
    Specimen("append-only", "it differs from the ledger at line", _edit_log),
    Specimen(
        "count-from-grep", "grep counts 5 headings", _changed("decision.logged", 1, _smuggled)
    ),
    Specimen("decision-ids-unique", "stands for 2 decisions", _same_id),
    Specimen(
        "supersession",
        "supersedes D-1, which is no decision",
        _changed("decision.logged", 1, lambda row: row.saying(supersedes="D-1")),
    ),
    Specimen("pythia-fires", "reached the interval of 3, and no pythia-checkpoint", _unasked),
    Specimen("events-processed", "s, ack-timeout is 120 s", _left_lying),
    Specimen("events-processed", "was acknowledged, and no assessment answers", _waved_through),
    Specimen("checkpoint-preceded", "answers no checkpoint event", _assess),
    Specimen(
        "chat-refs-resolve",
        "live.chat:~L4711 is beyond the end",
        _changed("decision.logged", 1, _far_ref),
    ),
    Specimen("pythia-isolation", "pythia-a0d7 read the chat", _peek),
    Specimen("pythia-isolation", "its prompt holds 12 words in a row of chat live", _quoted_to_her),
    Specimen("pythia-isolation", "was given the text of entry", _chat_as_source),
    Specimen("never-read", "session s was shown /w/.env (read, line 2)", _forbidden),
    Specimen(
        "nova-order",
        "dce (unpack, cycle 0): parsed not as its agents' answers give it",
        _panel_then("nova.turn.recorded", parsed={"text": '{"requirements":["none"]}'}),
    ),
    Specimen(
        "nova-independence",
        "performance) holds 12 words in a row of security",
        _panel_with("performance", extra=f"A colleague says: {panels.ANALYSES['security']}"),
    ),
    Specimen(
        "nova-gate",
        "its decision is proceed, and by the record it is investigate",
        _by_other_rules(_unsure, nova_run, "gate", lambda *_: "proceed"),
    ),
    Specimen(
        "nova-rounds",
        "nova.escalated had to come before it, and is missing",
        _by_other_rules(_flawed, NovaRun, "limit", property(lambda _: 2), rounds=1),
    ),
    Specimen(
        "nova-convergence",
        "nova.converged had to come before it, and is missing",
        _by_other_rules(_unsure, nova_run, "converged", lambda *_: False, rounds=3),
    ),
    Specimen(
        "nova-critique",
        "its decision is solid, and by the record it is critical",
        _by_other_rules(_flawed, nova_run, "critique_class", lambda _: "solid"),
    ),
    Specimen("nova-result", "its confidence is 1", _panel_then("nova.finalized", confidence="1")),
    Specimen(
        "nova-personas",
        "(1-critique-cae) does not begin with that of its persona",
        _panel_with("cae", prompt="You agree with everything that is said."),
    ),
    Specimen(
        "nova-no-tools",
        "/1-critique-cae) was granted the tools Bash",
        _panel_with("cae", order={"parameters": Parameters(tools=("Bash",))}),
    ),
    Specimen("sessions-whole", "is not what entry", _changed_session),
    Specimen("witnesses-agree", "hooks saw the call Read d, and", _unknown_to_the_transcript),
    Specimen("assessment-complete", "Scenario: nothing stands there", _half_an_answer),
    Specimen("worker-lifecycle", "no event worker-spawned tells", _silent_worker),
    Specimen("worker-lifecycle", "completed after dismissed", _undead_worker),
    Specimen("worker-lifecycle", "held 16 bytes at entry", _tidied_worker),
    Specimen("record-agrees", "it is not what the ledger holds", _other_record),
    Specimen("drift", "differs from the ledger", _edit_event),
)


ADVISED: tuple[Specimen, ...] = (
    Specimen("decision-missed", "We'll use sqlite for the index", _unlogged),
    Specimen("decision-noise", "reads like a status report", _no_decision),
)
"""What no rule forbids, and a check that only advises names."""


def copy(root: str, folder: str) -> str:
    """A copy of a team directory, times included."""
    shutil.copytree(root, f"{folder}/.nbs", copy_function=shutil.copy2)
    return f"{folder}/.nbs"
