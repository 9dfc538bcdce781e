"""Small team directories with exactly one thing wrong, made by real acts and then by damage.

``build`` makes a sound one; each of ``SPECIMENS`` damages a copy so that one check alone names it:
whatever else would tell (hashes, links, tables, files) is made to fit again by ``forge``.
"""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

from plain_export import files_of, write_files

from ledger import drafts, drafts_agent, drafts_worker
from ledger.canonical import format_value
from ledger.entry import GENESIS, Draft, commit, leaf_hash
from ledger.merkle import Tree
from ledger.note import Note, format_note, parse_note
from ledger.reader import read_entries
from ledger.schema import MIGRATIONS
from ledger.seal import format_seal, parse_seal, sign_seal
from ledger.vkey import SigningKey
from projections import manifest
from projections.disk import Disk
from projections.formats.decision_log import DecisionText, format_decision
from projections.projection import Source
from projections.rebuild import differences, restore
from projections.standins import MARK
from projections.tables import batches, create_tables, drop_tables, fold_into, source_of
from tripod import adopt, bus, chat, copies, keys, redact, scribe, sealing
from tripod.drafting import draft_event
from tripod.team import Team
from tripod.worker_life import step

__all__ = [
    "SPECIMENS",
    "Row",
    "Specimen",
    "build",
    "database",
    "forge",
    "guards",
    "read",
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


def build(folder: str) -> str:
    """Make a sound team of about fifty entries below ``folder``; give its team directory."""
    os.makedirs(f"{folder}/.nbs/events")
    with open(f"{folder}/.nbs/events/config.yaml", "w", encoding="utf-8") as file:
        file.write("pythia-interval: 3\n")
    adopt.init(folder, project="sample", origin="sample.example/1")
    with Team(f"{folder}/.nbs") as team:
        chat.create(team, "live", actor="alex")
        for handle, text in SAID:
            chat.send(team, "live", handle, text)
        chat.send(team, "live", "bench", "The whole table: " + "12 ms, " * 3000)
        for title, people, refs in DECISIONS:
            scribe.log(
                team,
                scribe.Request(
                    title, people, "Agreed in the chat.", refs=refs.split(", "), status="decided"
                ),
            )
        for number in range(6):
            bus.publish(team, "parser", "task-complete", "normal", f"task {number}")
        for pending in list(bus.check(team))[:4]:
            bus.ack(team, pending.name, actor="alex")
        chat.create(team, "side", actor="claude")
        for number in range(4):
            chat.send(team, "side", "claude", f"note {number}")
        bus.ack_all(team, "parser", actor="alex")
    os.makedirs(f"{folder}/.nbs/workers", exist_ok=True)
    _write(f"{folder}/.nbs/workers/parser-a3f1.md", _worker("parser", "Parse the grammar."))
    with Team(f"{folder}/.nbs") as team:
        adopt.sync(team)
    return f"{folder}/.nbs"


def database(root: str) -> str:
    """Path of a team's database."""
    return f"{root}/ledger.db"


# Behind the writer's back ----------------------------------------------------------------------


class Row(NamedTuple):
    """An entry taken apart: header as an object, salt, exact bytes of the body (None: erased)."""

    head: dict[str, Any]
    salt: Any
    body: Any

    @property
    def data(self) -> dict[str, Any]:
        """The body as an object."""
        value: dict[str, Any] = json.loads(self.body or b"{}")
        return value

    def saying(self, **changes: Any) -> "Row":
        """The same entry with other fields in its body."""
        return self._replace(body=format_value(self.data | changes))

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
        for name in triggers:
            db.execute(f"DROP TRIGGER {name}")
        db.execute("BEGIN")
        yield db
        db.execute("COMMIT")
        there = guards(db)
        for name, sql in triggers.items():
            if name not in there:  # a table that was made anew brought its own
                db.execute(sql)


def guards(db: sqlite3.Connection) -> dict[str, str]:
    """Name and SQL of each trigger."""
    return dict(db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall())


def read(path: str) -> list[Row]:
    """All entries of a ledger, taken apart."""
    with closing(sqlite3.connect(path)) as db:
        return [
            Row(json.loads(header), salt, body)
            for header, salt, body in db.execute(
                "SELECT header, salt, body FROM entries ORDER BY seq"
            )
        ]


def forge(root: str, rows: list[Row], **keep: set[int]) -> None:
    """Write a ledger anew from ``rows``, everything that can fit made to fit.

    ``commitment``, ``link`` and ``seq`` name the entries whose field stays as the row has it.
    """
    with unguarded(database(root)) as db:
        for table in ("entries", "nodes", "head"):
            db.execute(f"DELETE FROM {table}")
        _insert(db, rows, keep)
        drop_tables(db)
        create_tables(db)
        for batch in batches(read_entries(db), 1000):
            fold_into(db, batch, lambda _entry, _error: None)
        manifest.forget(db)
    with closing(sqlite3.connect(database(root))) as db:
        source, disk = _unchecked(db), Disk(root)
        wanted = set(_projected(root))
        restore(disk, list(differences(source, disk)))
        for path in wanted - set(_rendered(source)):
            os.unlink(f"{root}/{path}")


def _unchecked(db: sqlite3.Connection) -> Source:
    """What serves renders, also from bodies that were not committed to."""

    def body(seq: int) -> dict[str, Any]:
        return next(read_entries(db, seq, seq + 1)).data

    return Source(db, body, source_of(db).blob, lambda _: {})


def _insert(db: sqlite3.Connection, rows: list[Row], keep: dict[str, set[int]]) -> None:
    prev, tree, header = GENESIS, Tree(), b""
    for seq, row in enumerate(rows):
        head = dict(row.head)
        if seq not in keep.get("commitment", set()) and row.salt is not None and row.body:
            head["body"] = commit(row.salt, head["kind"], row.body)
        if seq not in keep.get("link", set()):
            head["prev"] = prev
        if seq not in keep.get("seq", set()):
            head["seq"] = seq
        header = format_value(head)
        db.execute(
            "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)",
            (seq, head["id"], head["kind"], head["stream"], header, row.salt, row.body),
        )
        leaf = leaf_hash(header)
        prev = leaf.hex()
        tree.append(leaf)
    db.executemany("INSERT INTO nodes VALUES (?, ?, ?)", tree.full)
    last = json.loads(header)
    db.execute(
        "INSERT INTO head VALUES (0, ?, ?, ?, ?, ?, ?, ?)",
        (len(rows), last["ledger"], prev, last["at"], b"".join(tree.stack), len(rows), len(rows)),
    )


def _projected(root: str) -> list[str]:
    folders = ("events", "events/processed", "chat", "scribe")
    names = [f"{folder}/{name}" for folder in folders for name in Disk(root).names(folder)]
    return [name for name in names if name.endswith((".event", ".chat", ".md"))]


def _rendered(source: Any) -> Iterator[str]:
    from projections import PROJECTIONS

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
        forge(root, rows, **{name: {seq} for name in keep})

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
        done = draft_event(act, "mole-0001", "task-complete", "high", "")
        name, run = "mole-0001", "f" * 32
        act.append(_run_of(name, run))
        act.append([drafts_worker.worker_running(name, run, "none.event")])
        ended = drafts_worker.worker_ended(
            name=name, spawn=run, state="completed", logs=(), event=done.body["name"]
        )
        step(act, ended, done)
        act.append([_ended(run)])


def _undead_worker(root: str) -> None:
    """It was sent away before it began, and is said to have done its task."""
    with Team(root) as team, team.act() as act:
        gone = draft_event(act, "nbs-worker", "worker-dismissed", "normal", "")
        done = draft_event(act, "mole-0001", "task-complete", "high", "")
        name, run = "mole-0001", "f" * 32
        act.append(_run_of(name, run))
        step(act, drafts_worker.worker_dismissed(name, gone.body["name"], "alex"), gone)
        ended = drafts_worker.worker_ended(
            name=name, spawn=run, state="completed", logs=(), event=done.body["name"]
        )
        step(act, ended, done)
        act.append([_ended(run)])


def _run_of(name: str, run: str) -> list[Draft]:
    return [
        drafts_worker.worker_spawned(
            name=name, slug="mole", folder="/srv/sample", task="Dig.", actor="alex"
        ),
        drafts_agent.agent_requested(
            spawn=run, role="worker", subject=name, attempt=1, spec=b"{}", actor="alex"
        ),
    ]


def _ended(run: str) -> Draft:
    return drafts_agent.agent_ended(spawn=run, status="ok", wall_ms=1, stdout=b"x", stderr=b"")


def _assess(root: str) -> None:
    text = (
        "## Pythia Checkpoint — 2026-11-21T21:30:00Z\n\n"
        "Decisions reviewed: D-5 through D-9 (5 decisions)\n\n### Hidden Assumptions\n\nNone.\n"
    )
    with Team(root) as team:
        chat.send(team, "live", "pythia", text)


def _far_ref(row: Row) -> Row:
    return row.saying(chat_ref="live.chat:~L4711", refs=[{"file": "live.chat", "line": 4711}])


def _peek(root: str) -> None:
    _write(f"{root}/workers/pythia-a0d7.md", _worker("pythia", "Read .nbs/scribe/log.md."))
    _write(
        f"{root}/workers/pythia-a0d7.log",
        "> Read(.nbs/scribe/log.md)\n> Bash(tail -50 .nbs/chat/live.chat)\n",
    )
    with Team(root) as team:
        adopt.sync(team)


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


def _sealed(root: str) -> None:
    with Team(root) as team:
        sealing.new_key(team)


def _then(first: Callable[[str], None], *rest: Callable[[str], None]) -> Callable[[str], None]:
    def do(root: str) -> None:
        first(root)
        for deed in rest:
            deed(root)
        shutil.rmtree(f"{root}/record", ignore_errors=True)  # it is another check's

    return do


def _rotated(root: str) -> None:
    with Team(root) as team:
        sealing.rotate_key(team, keys.never, None)


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
    return format_value({name: row.data[name] for name in ("v", "vkey")})


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
    return Row(head, row.salt, format_value(draft.body))


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
        redact.redact(team, redact.Request((seq,), None, "r", "alex"))
        size = team.store.head().size
        told = next(e.seq for e in team.store.read() if e.id == f"redacted-{seq}")
    assert told < size
    rows = read(database(root))
    keep = rows[told].data["keep"] | {"rationale": "Nobody said this."}
    rows[told] = rows[told].saying(keep=keep)
    forge(root, rows)


SPECIMENS: tuple[Specimen, ...] = (
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
    Specimen("append-only", "it differs from the ledger at line", _edit_log),
    Specimen(
        "count-from-grep", "grep counts 5 headings", _changed("decision.logged", 1, _smuggled)
    ),
    Specimen("decision-ids-unique", "stands for 2 decisions", _same_id),
    Specimen("checkpoint-preceded", "answers no checkpoint event", _assess),
    Specimen(
        "chat-refs-resolve",
        "live.chat:~L4711 is beyond the end",
        _changed("decision.logged", 1, _far_ref),
    ),
    Specimen("pythia-isolation", "pythia-a0d7 read the chat", _peek),
    Specimen("worker-lifecycle", "no event worker-spawned tells", _silent_worker),
    Specimen("worker-lifecycle", "completed after dismissed", _undead_worker),
    Specimen("record-agrees", "it is not what the ledger holds", _other_record),
    Specimen("drift", "differs from the ledger", _edit_event),
)


def copy(root: str, folder: str) -> str:
    """A copy of a team directory, times included."""
    shutil.copytree(root, f"{folder}/.nbs", copy_function=shutil.copy2)
    return f"{folder}/.nbs"
