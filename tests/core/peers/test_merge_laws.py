"""Whatever replicas do and merge of each other: any split of the fold, and both stores, agree."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from memory_store import MemoryStore
from merging import Replica, findings, pull
from story import Step, folder, tables
from strategies import FEWER, gaps, our_steps, their_steps

from tripod.ledger.entry import Draft, Entry, entry_blobs
from tripod.ledger.store import Blobs, LedgerReader
from tripod.projections.disk import Disk
from tripod.projections.engine import (
    TABLES,
    create_tables,
    file_differences,
    fold_into,
)
from tripod.recovery import rebuild as recover
from tripod.recovery.rebuild import Rebuilt
from tripod.team import adoption

NAMES = ("ann", "ben", "cid")
Act = tuple[str, Step]


def acts() -> st.SearchStrategy[list[Act]]:
    """What each of three replicas does, pulls among it."""
    pulls = st.tuples(st.just("pull"), st.sampled_from(NAMES), st.sampled_from([1, 2, 1000]))
    steps = st.one_of(our_steps(), our_steps(), their_steps(), pulls, pulls)
    return st.lists(st.tuples(st.sampled_from(NAMES), steps), max_size=16)


def lived(root: Path, done: list[Act]) -> dict[str, Replica]:
    """Three replicas after that, each of which merged the two others at the end."""
    found = {name: Replica(root / name, name) for name in NAMES}
    for replica in found.values():
        replica.create("live")
    ends: list[Act] = [
        (one, ("pull", other, 1000)) for _ in "12" for one in NAMES for other in NAMES
    ]
    for name, (what, *arguments) in [*done, *ends]:
        replica = found[name]
        if what != "pull":
            replica.step((what, *arguments))
        elif arguments[0] != name:
            pull(replica, found[arguments[0]], batch=arguments[1])
            replica.clock.move()
    for replica in found.values():
        replica.sync()
    return found


def draft_of(ledger: LedgerReader, entry: Entry) -> Draft:
    """The draft that an entry was made of."""
    blobs = (ledger.blob(bytes.fromhex(digest)) for digest, _ in entry_blobs(entry.data))
    held = tuple(blob for blob in blobs if blob is not None)
    return Draft(entry.kind, entry.stream, entry.actor, entry.data, entry.id, blobs=held)


FEW = settings(
    FEWER, max_examples=max(6, FEWER.max_examples // 4), suppress_health_check=list(HealthCheck)
)


@FEW
@given(st.data(), acts())
def test_any_split_of_the_fold_and_both_stores_give_the_same_rows(
    data: st.DataObject, done: list[Act]
) -> None:
    with folder() as root, lived(root, done)["ann"].team() as team:
        live = tables(team)
        everything = list(team.store.read())
        cuts = [0, *data.draw(gaps(len(everything))), len(everything)]
        db = team.store.db
        for table in TABLES:
            db.execute(f"DROP TABLE {table}")
        create_tables(db)
        for start, stop in pairwise(cuts):
            fold_into(db, everything[start:stop], team.store.blob)
        assert tables(team) == live

        def fold(db: sqlite3.Connection, fresh: Sequence[Entry], blob: Blobs) -> None:
            """As of the time at which the entries were made."""
            fold_into(db, [e._replace(at=everything[e.seq].at) for e in fresh], blob)

        with closing(MemoryStore(fold=fold)) as twin:
            create_tables(twin.db)
            for start, stop in pairwise(cuts):
                twin.append([draft_of(team.store, one) for one in everything[start:stop]])
            for table in TABLES:
                rows = twin.db.execute(f"SELECT * FROM {table}").fetchall()
                assert sorted(rows, key=repr) == live[table]


REACHED_TOGETHER = [("ann", ("they_configure", 1)), ("ben", ("they_log", "### D-9"))]


@FEW
@example(REACHED_TOGETHER)
@given(acts())
def test_files_are_what_the_tables_say_and_nothing_is_found(done: list[Act]) -> None:
    with folder() as root:
        for replica in lived(root, done).values():
            with replica.team() as team:
                assert list(file_differences(team.source, Disk(str(replica.root)))) == []
                assert recover.rebuild(team) == Rebuilt([], 0)
                assert adoption.sync(team).entries == 0
                merged = {seq for (seq,) in team.store.db.execute("SELECT seq FROM merged")}
            found = findings(replica)
            assert [one for one in found if one.check in ("drift", "kinds-known")] == []
            # What replicas reached together has no maker: each finds it, at the newest decision.
            alone = [one for one in found if "covered by no replica's" not in one.message]
            assert [one for one in alone if one.seq in merged] == [], "found once, at its maker"
