"""Group commit: threads that wait share a transaction, and none harms or forgets another."""

import os
import resource
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from children import run_forked
from queued import append_queued
from sample_ledger import faults, opening, said

from tripod.errors import UnwritableError
from tripod.ledger.entry import Draft, Entry
from tripod.ledger.errors import ConflictError, IdReusedError, UnknownCauseError
from tripod.ledger.sqlite import group
from tripod.ledger.sqlite.store import SQLiteStore, Writing
from tripod.ledger.store import Blobs, Guard


def fold(tables: Any, entries: Sequence[Entry], _: Blobs) -> None:
    """Write something, then refuse what says so."""
    tables.execute("CREATE TABLE IF NOT EXISTS folded (seq)")
    tables.executemany("INSERT INTO folded VALUES (?)", [(entry.seq,) for entry in entries])
    for entry in entries:
        if text_of(entry) == "bad":
            raise OverflowError("bad")


def text_of(entry: Entry) -> str:
    return str(entry.data["text"]["text"]) if "text" in entry.data else ""


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "ledger.db")
    with closing(SQLiteStore(path, fold=fold, create=True)) as store:
        store.append([opening()])
    return path


@pytest.fixture
def holder(path: str) -> Iterator[SQLiteStore]:
    with closing(SQLiteStore(path, fold=fold)) as store:
        yield store
        assert faults(store) == []
        folded = [seq for (seq,) in store.db.execute("SELECT seq FROM folded")]
        assert folded == list(range(store.size))


@pytest.fixture(autouse=True)
def _woken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is helped on by the wait for a wake-up that was lost."""
    monkeypatch.setattr(group, "_PATIENCE", 1000)


@pytest.fixture
def asked() -> list[str]:
    """The statements of all stores that ``again`` opened."""
    return []


@pytest.fixture
def again(path: str, asked: list[str]) -> Callable[[], SQLiteStore]:
    def again() -> SQLiteStore:
        store = SQLiteStore(path, fold=fold)
        store.db.set_trace_callback(asked.append)
        return store

    return again


Again = Callable[[], SQLiteStore]


def batches(*texts: str) -> list[tuple[list[Draft], None]]:
    return [([said(text)], None) for text in texts]


def texts(store: SQLiteStore) -> list[str]:
    return [text_of(entry) for entry in store.read(1)]


def test_those_who_wait_share_one_transaction(
    holder: SQLiteStore, again: Again, asked: list[str]
) -> None:
    several = [*batches("a", "b"), ([said("c"), said("d")], None), ([], None), *batches("e")]
    outcomes = append_queued(holder, again, several)
    assert asked.count("COMMIT") == 1
    assert texts(holder) == ["a", "b", "c", "d", "e"]
    assert outcomes == [
        [entry for entry in holder.read(1) if text_of(entry) in part]
        for part in ("a", "b", "cd", "", "e")
    ]


def test_one_that_is_refused_harms_only_itself(
    holder: SQLiteStore, again: Again, asked: list[str]
) -> None:
    size = holder.append([said("before", id="there")])[0].seq + 1
    several = [
        ([said("a", "x")], None),
        ([said("lost"), said("lost", id="there")], None),
        ([said("lost", cause="nothing")], None),
        ([said("b", "y")], Guard("chat/y", size)),
        ([said("lost", "x")], Guard("chat/x", size)),  # it has grown by the first of the group
        ([said("c", "x")], Guard("chat/x", size + 1)),
        ([said("d", cause="there")], None),
    ]
    outcomes = append_queued(holder, again, several)
    assert texts(holder) == ["before", "a", "b", "c", "d"]
    kinds = [type(outcome) for outcome in outcomes]
    assert kinds == [list, IdReusedError, UnknownCauseError, list, ConflictError, list, list]
    assert asked.count("COMMIT") == 1


def test_the_same_act_of_all_happens_once(holder: SQLiteStore, again: Again) -> None:
    one = [said("once", id="one")]
    outcomes = append_queued(holder, again, [(one, None)] * 3)
    assert outcomes == [list(holder.read(1))] * 3
    assert texts(holder) == ["once"]


def test_one_that_fails_half_way_takes_no_other_along(holder: SQLiteStore, again: Again) -> None:
    outcomes = append_queued(holder, again, batches("a", "bad", "b"))
    assert texts(holder) == ["a", "b"]
    assert [type(outcome) for outcome in outcomes] == [list, OverflowError, list]
    entries = list(holder.read(1))
    assert [outcomes[0], outcomes[2]] == [[entries[0]], [entries[1]]]


def test_where_the_commit_fails_each_is_told_so(
    path: str, holder: SQLiteStore, again: Again
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    holder.append([said("before")])

    def fill_the_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(f"{path}-wal"), hard))

    try:
        outcomes = append_queued(holder, again, batches(*"abc"), fill_the_disk)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [type(outcome) for outcome in outcomes] == [UnwritableError] * 3
    assert len({id(outcome) for outcome in outcomes}) == 3
    assert texts(holder) == ["before"]
    append_queued(holder, again, batches(*"de"))
    assert texts(holder) == ["before", "d", "e"]


def test_all_who_wait_are_told_that_another_program_holds_the_database(
    path: str, holder: SQLiteStore, again: Again, asked: list[str]
) -> None:
    """They do not wait for it one after the other."""

    def impatient() -> SQLiteStore:
        store = again()
        store.db.execute("PRAGMA busy_timeout = 50")
        return store

    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    with closing(other):
        # The file lock is ours while they queue; the transaction is another program's.
        lock = holder._lock
        with lock:
            other.execute("BEGIN IMMEDIATE")
            outcomes = append_behind(lock, impatient, batches(*"abc"))
        other.execute("ROLLBACK")
    assert [type(outcome) for outcome in outcomes] == [UnwritableError] * 3
    assert sum(statement.startswith("BEGIN") for statement in asked) == 1
    assert texts(holder) == []


def append_behind(lock: Any, again: Again, several: Any) -> list[Any]:
    """As ``append_queued``, where the place is held by a file lock alone."""

    class Held:
        path = ""

        def transaction(self) -> Any:
            return self

        def __enter__(self) -> None:
            pass

        def __exit__(self, *_: object) -> None:
            lock.release()

    return append_queued(Held(), again, several)  # type: ignore[arg-type]


# Threads that are interrupted --------------------------------------------------------------------


@pytest.mark.parametrize("moment", ["before the commit", "after the commit"])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_a_leader_that_is_interrupted_leaves_nobody_behind(
    path: str,
    holder: SQLiteStore,
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
    kind: type[BaseException],
) -> None:
    """Each of the others is recorded once, and has its own entry."""
    died: list[int] = []

    class Interrupted(SQLiteStore):
        def transaction(
            self, after: Callable[[], None] | None = None, *, mends: bool = False
        ) -> Writing:
            return super().transaction(die if moment == "after the commit" else after, mends=mends)

    def die() -> None:
        if not died:
            died.append(threading.get_ident())
            raise kind

    if moment == "before the commit":
        whole = group._append_all

        def half(*arguments: Any) -> None:
            whole(*arguments)
            die()

        monkeypatch.setattr(group, "_append_all", half)
    outcomes = append_queued(holder, lambda: Interrupted(path, fold=fold), batches(*"abcd"))
    assert type(outcomes[0]) is kind
    entries = {text_of(entry): entry for entry in holder.read(1)}
    assert outcomes[1:] == [[entries[text]] for text in "bcd"]
    assert sorted(texts(holder)) == list("abcd" if moment == "after the commit" else "bcd")


def test_one_who_gives_up_waiting_is_not_recorded(
    holder: SQLiteStore, again: Again, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that is interrupted in the queue takes its append along."""

    class Interrupting(group._Append):
        """Where the second append waits, its thread is interrupted."""

        def __init__(self, drafts: Sequence[Draft], guard: Guard | None) -> None:
            super().__init__(drafts, guard)
            if drafts[0].body["text"]["text"] == "b":
                self.wake = InterruptingLock()  # type: ignore[assignment]

    class InterruptingLock:
        def acquire(self, timeout: float) -> bool:  # noqa: ARG002 - the lock's own
            raise KeyboardInterrupt

    monkeypatch.setattr(group, "_Append", Interrupting)
    outcomes = append_queued(holder, again, batches(*"abc"))
    assert type(outcomes[1]) is KeyboardInterrupt
    assert texts(holder) == ["a", "c"]


def test_a_wake_up_that_is_lost_is_made_up_for(
    holder: SQLiteStore, again: Again, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group, "_PATIENCE", 0.01)
    monkeypatch.setattr(group._Append, "rouse", lambda _: None)
    outcomes = append_queued(holder, again, batches(*"abc"))
    assert [type(outcome) for outcome in outcomes] == [list] * 3
    assert texts(holder) == list("abc")


# Whose queue -------------------------------------------------------------------------------------


def test_a_long_queue_is_served_in_order_by_several_transactions(
    holder: SQLiteStore, again: Again, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group, "LIMIT", 2)
    append_queued(holder, again, batches(*"abcde"))
    assert texts(holder) == list("abcde")
    assert asked.count("COMMIT") == 3


def test_a_store_belongs_to_its_thread(path: str, holder: SQLiteStore) -> None:
    """Also where another one would append for it."""
    with closing(SQLiteStore(path, fold=fold)) as mine, pytest.raises(sqlite3.ProgrammingError):
        raise append_queued(holder, lambda: closed_never(mine), batches("a"))[0]  # type: ignore[misc]
    assert texts(holder) == []


def closed_never(store: SQLiteStore) -> Any:
    class Lent:
        append = store.append
        _group = store._group

        def close(self) -> None:
            pass

    return Lent()


def test_stores_share_a_queue_where_file_and_fold_are_the_same(path: str, tmp_path: Path) -> None:
    os.symlink(path, tmp_path / "link.db")
    with (
        closing(SQLiteStore(path, fold=fold)) as one,
        closing(SQLiteStore(str(tmp_path / "link.db"), fold=fold)) as same,
        closing(SQLiteStore(path)) as unfolded,
    ):
        assert one._group is same._group
        assert one._group is not unfolded._group
        shutil.copy(path, tmp_path / "other.db")
        os.rename(tmp_path / "other.db", path)
        with closing(SQLiteStore(path, fold=fold)) as replaced:
            assert replaced._group is not one._group
    assert not group._groups


HELD: list[SQLiteStore] = []
"""Stores that a fork inherits."""

CHILD = f"""
import sys
from contextlib import closing
from {__name__} import HELD, SQLiteStore, fold, said
for act in (lambda: HELD[0].append([said("inherited")]), HELD[0].transaction):
    try:
        act()
    except Exception as error:
        print(error)
with closing(SQLiteStore(sys.argv[1], fold=fold)) as own:
    own.append([said("own")])
"""


def test_a_child_that_was_forked_has_a_queue_of_its_own(path: str) -> None:
    with closing(SQLiteStore(path, fold=fold)) as store:
        HELD.append(store)
        waiting = store._group._waiting
        with store._group._place:  # a thread leads another, and neither is in the child
            waiting.append(group._Append([said("of a thread")], None))
            done = run_forked(CHILD, path)
        HELD.clear()
        waiting.clear()
        assert (done.returncode, done.stderr) == (0, "")
        refused = f"{path} was opened before this process was forked: open it again here\n"
        assert done.stdout == refused * 2
        assert texts(store) == ["own"]
