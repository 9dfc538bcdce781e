"""Replicas of one team in memory, and random schedules of what happens to them.

The judgement, the places and the tables are our own code; only the disk is not there.
"""

import random
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from types import SimpleNamespace
from typing import Any
from unittest import mock

from memory_store import MemoryStore
from peering import MemoryFiles, record_of

from tripod.ledger import Draft, Entry, parse_header
from tripod.ledger.entry import entry_leaf_hash
from tripod.ledger.kinds.bus import ACKED, ACKED_ALL, PUBLISHED
from tripod.ledger.kinds.chat import CREATED, SENT
from tripod.ledger.kinds.decisions import LOGGED
from tripod.ledger.kinds.merged import peer_view
from tripod.ledger.kinds.peers import PEER_ENTRY, PEER_MERGED, TEAM_NAMED
from tripod.ledger.kinds.team import OPENED
from tripod.ledger.kinds.trust import KEY_SET, SEAL_MADE
from tripod.ledger.merkle import node_hash
from tripod.ledger.sqlite.store import SQLiteStore
from tripod.ledger.tlog.note import SigningKey
from tripod.ledger.tlog.tiles import SEAL, bundle_blobs
from tripod.peers import merge
from tripod.peers.merge import merge_record
from tripod.peers.replica import replica_name
from tripod.peers.roster import Merged, read_roster
from tripod.projections.bus.format import event_name
from tripod.projections.engine import create_tables, fold_into, source_of
from tripod.projections.projection import Source

__all__ = ["BOOKKEEPING", "KilledError", "Twin", "World", "kept_by", "random_schedule", "states_of"]

TEAM = "example.org/0"


@cache
def _empty() -> bytes:
    """A database with all tables of the projections."""
    db = sqlite3.connect(":memory:")
    create_tables(db)
    db.commit()
    data = db.serialize()
    db.close()
    return data


class KilledError(BaseException):
    """As if the power went."""


class TwinStore(MemoryStore):
    """The store's twin with tables that are there already, and nodes for proofs."""

    def __init__(self) -> None:
        super().__init__(fold=fold_into)
        self.db.deserialize(_empty())

    def node(self, height: int, index: int) -> bytes:
        if height == 0:
            header = self.header(index)
            assert header is not None
            return entry_leaf_hash(header)
        return node_hash(self.node(height - 1, 2 * index), self.node(height - 1, 2 * index + 1))


class Twin:
    """A replica in memory; it stands for a ``Team`` where one merges."""

    def __init__(self, number: int) -> None:
        self.origin = f"example.org/{number}"
        self.key = SigningKey(self.origin, bytes([number]) * 32)
        self.name = replica_name(f"r{number}", self.key.verifier().format())
        self.handle = f"r{number}"
        self.root = "/nowhere"
        self.store = TwinStore()
        self.source = source_of(self.store)
        self.disk = SimpleNamespace(places=SimpleNamespace(added={}))
        self.transaction = self.store
        self.sealed: tuple[int, MemoryFiles] | None = None
        opened: Any = {"origin": self.origin, "project": "p", "created": "c", "scribe": "s"}
        self.store.append(
            [
                OPENED.draft(opened | {"events": "events", "chat": "chat"}),
                KEY_SET.draft({"vkey": self.key.verifier().format()}),
                TEAM_NAMED.draft({"team": TEAM, "replica": self.name}),
                CREATED.draft({"channel": "live"}, self.handle),
            ]
        )

    @contextmanager
    def act(self, **_: object) -> Iterator["Twin"]:
        with self.store.transaction():
            yield self

    def append(self, drafts: Sequence[Draft]) -> list[Entry]:
        return self.store.append(drafts)

    def close(self) -> None:
        self.store.close()

    # What happens to it ------------------------------------------------------------------------

    def _one(self, sql: str) -> Any:
        return self.store.db.execute(sql).fetchone()[0]

    def say(self, text: str) -> None:
        index = self._one("SELECT lines FROM channels WHERE channel = 'live'")
        said: Any = {"channel": "live", "index": index, "handle": self.handle, "time": 7}
        self.append([SENT.draft(said | {"text": text.encode()})])

    def decide(self, title: str) -> None:
        number = self._one("SELECT 1 + coalesce(max(number), 0) FROM pieces")
        taken = {id_ for (id_,) in self.store.db.execute("SELECT id FROM pieces")}
        free = next(f"D-{n}" for n in range(100, 9999) if f"D-{n}" not in taken)
        said: Any = {"id": free, "number": number, "title": title, "chat_ref": "—", "refs": []}
        said |= {"participants": self.handle, "artefacts": "—", "risk_tags": "none"}
        self.append([LOGGED.draft(said | {"status": "decided", "rationale": "r"}, self.handle)])

    def publish(self, us: int, type_: str) -> None:
        name = event_name(us, self.handle, type_, 1)
        if name in {here for (here,) in self.store.db.execute("SELECT name FROM events")}:
            return
        said: Any = {"name": name, "us": us, "source": self.handle, "type": type_}
        self.append([PUBLISHED.draft(said | {"priority": "normal", "size": 9})])

    def pending(self) -> list[str]:
        sql = "SELECT name FROM events WHERE acked IS NULL ORDER BY name"
        return [name for (name,) in self.store.db.execute(sql)]

    def ack(self, number: int) -> None:
        names = self.pending()
        if names:
            self.append([ACKED.draft({"name": names[number % len(names)]}, self.handle)])

    def ack_all(self) -> None:
        self.append([ACKED_ALL.draft({"count": len(self.pending())}, self.handle)])

    def record(self) -> MemoryFiles:
        """Its record, sealed; the one before where nothing came after it."""
        if self.sealed is not None and self.sealed[0] == self.store.size:
            return self.sealed[1]
        rows = list(self.store.raw())
        named = {digest for row in rows for digest in bundle_blobs(row.body)}
        blobs = [self.store.blob(bytes.fromhex(digest)) or b"" for digest in named]
        files = record_of(rows, blobs, self.key)
        note = files.files[SEAL].decode()
        self.append([SEAL_MADE.draft({"note": note, "size": len(rows), "reason": "asked"})])
        self.sealed = self.store.size, files
        return files

    def merge(self, files: MemoryFiles) -> Merged:
        with mock.patch.object(merge, "is_closed", return_value=False):  # it has no files
            return merge_record(self, files)  # type: ignore[arg-type]

    # What it shows -----------------------------------------------------------------------------

    def kept(self) -> dict[tuple[str, int], bytes]:
        return kept_by(self.store, self.origin)

    def states(self) -> tuple[object, ...]:
        return states_of(self.store, self.source, self.origin, self.name)


def kept_by(store: MemoryStore | SQLiteStore, origin: str) -> dict[tuple[str, int], bytes]:
    """Everything in a replica's ledger, by who recorded it where."""
    found = {}
    for entry in store.read():
        if entry.kind == PEER_ENTRY.name:
            inner = peer_view(entry, store.blob)
            header = parse_header(inner.header)
            found[header.ledger, header.seq] = inner.header
        else:
            found[origin, entry.seq] = entry.header
    return found


def states_of(
    store: MemoryStore | SQLiteStore, source: Source, origin: str, name: str
) -> tuple[object, ...]:
    """What the team knows at a replica: messages, decisions, and which events are done."""
    lines = store.db.execute("SELECT seq FROM lines").fetchall()
    said = sorted(str(source.body(seq)["text"]) for (seq,) in lines)
    pieces = store.db.execute("SELECT id, title, made FROM pieces").fetchall()
    decided = sorted((made or f"{name}/{id_}", title) for id_, title, made in pieces)
    events = store.db.execute("SELECT name, origin, made, acked IS NOT NULL FROM events")
    done = sorted((of or origin, made or name, acked) for name, of, made, acked in events)
    return said, decided, done


class World:
    """Some replicas, and the remote where each leaves its record."""

    def __init__(self, count: int) -> None:
        self.twins = [Twin(number) for number in range(count)]
        self.remote: dict[str, MemoryFiles] = {}
        self.offline: set[str] = set()

    def close(self) -> None:
        for twin in self.twins:
            twin.close()

    def push(self, twin: Twin) -> None:
        if twin.origin not in self.offline:
            self.remote[twin.origin] = twin.record()

    def pull(self, twin: Twin) -> None:
        if twin.origin in self.offline:
            return
        for origin, files in self.remote.items():
            done = twin.merge(files)
            assert not done.problem or done.is_older, done
            assert done.is_own == (origin == twin.origin), done

    def killed_pull(self, twin: Twin, after: int) -> None:
        """A pull that dies as it is about to place, or to end, something for the n-th time."""
        left = after

        def dying(real: Any) -> Any:
            def patched(*arguments: Any, **options: Any) -> Any:
                nonlocal left
                left -= 1
                if left < 0:
                    raise KilledError
                return real(*arguments, **options)

            return patched

        names = ("_draft", "_merged", "_erase", "read_roster")
        dead = {name: dying(getattr(merge, name)) for name in names}
        with mock.patch.multiple(merge, **dead), suppress(KilledError):
            self.pull(twin)
        sizes = {origin: peer.size for origin, peer in read_roster(twin.store).items()}
        for origin, seq in twin.kept():
            assert origin == twin.origin or seq < sizes[origin], "an act ended behind a seal"

    def settle(self) -> None:
        """Everybody is back, leaves its record, and takes those of all others."""
        self.offline.clear()
        for twin in self.twins:
            self.push(twin)
        for twin in self.twins:
            self.pull(twin)

    def rest(self) -> int:
        """How often all pushed and pulled by turns until nobody had anything new."""
        rounds = 0
        while rounds < 10:
            before = [one.store.size for one in self.twins]
            for twin in self.twins:
                self.pull(twin)
                self.push(twin)
            if [one.store.size for one in self.twins] == before:
                return rounds
            rounds += 1
        raise AssertionError("replicas that only push and pull record for ever")

    def check(self) -> None:
        """All have the same of each record, and know the same; merging again adds nothing."""
        sizes = {one.origin: 0 for one in self.twins}
        for origin, files in self.remote.items():
            sealed_size = int(files.files[SEAL].split(b"\n")[1])
            (of,) = (one for one in self.twins if one.origin == origin)
            # Behind what somebody made there may be bookkeeping, which comes with what is next.
            made = [one.seq for one in of.store.read(0, sealed_size) if one.kind not in BOOKKEEPING]
            sizes[origin] = made[-1] + 1
        all_kept = [one.kept() for one in self.twins]
        sealed = [
            {key: header for key, header in kept.items() if key[1] < sizes[key[0]]}
            for kept in all_kept
        ]
        own = [
            {(one.origin, seq): head for (of, seq), head in kept.items() if of == one.origin}
            for one, kept in zip(self.twins, all_kept, strict=True)
        ]
        for one, kept in zip(self.twins, sealed, strict=True):
            for mine in own:
                want = {
                    key: head
                    for key, head in mine.items()
                    if key[1] < sizes[key[0]] and b'"kind":"peer.entry"' not in head
                }
                assert kept.items() >= want.items(), one.origin
        states = [one.states() for one in self.twins]
        assert all(state == states[0] for state in states), states
        before = [one.store.size for one in self.twins]
        for twin in self.twins:
            self.pull(twin)
        assert [one.store.size for one in self.twins] == before


def random_schedule(seed: int, longest: int = 60, replicas: int = 3) -> None:
    """One schedule of acts, pushes, pulls, kills and partitions; then all of them settle."""
    rng = random.Random(seed)  # noqa: S311 - the same schedule for the same seed
    world = World(rng.randint(2, replicas))
    try:
        with mock.patch.object(merge, "BATCH", rng.choice((1, 2, 5, 1000))):
            for step in range(rng.randint(1, longest)):
                twin = rng.choice(world.twins)
                match rng.choice(_ACTS):
                    case "say":
                        twin.say(f"{twin.handle} says {step}")
                    case "decide":
                        twin.decide(f"{twin.handle} decides {step}")
                    case "publish":
                        twin.publish(rng.randint(1, 4), rng.choice("xy"))
                    case "ack":
                        twin.ack(rng.randrange(8))
                    case "ack-all":
                        twin.ack_all()
                    case "push":
                        world.push(twin)
                    case "pull":
                        world.pull(twin)
                    case "kill":
                        world.killed_pull(twin, rng.randrange(12))
                    case "part":
                        world.offline ^= {twin.origin}
            world.settle()
            world.check()
            assert world.rest() <= 3
            world.check()
    finally:
        world.close()


BOOKKEEPING = (PEER_ENTRY.name, PEER_MERGED.name, SEAL_MADE.name)
_ACTS = (
    *("say",) * 3, *("decide",) * 2, *("publish",) * 3, *("ack",) * 3, "ack-all",
    *("push",) * 4, *("pull",) * 4, *("kill",) * 2, "part",
)  # fmt: skip
