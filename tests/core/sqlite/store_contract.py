"""What any store must do, whatever it keeps its entries in: ``test_stores.py`` runs it for each.

``StoreContract`` is for every store, ``SharedStoreContract`` for one that several programs open at
once: a networked store has to pass both.
"""

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from hashlib import sha256
from itertools import count
from typing import Any, TypeAlias

import naive_tree
import pytest
from drafts import redacted
from sample_ledger import ORIGIN, faults, opening, said

from tripod.ledger.entry import (
    MAX_BODY,
    MAX_HEADER,
    Draft,
    Entry,
    entry_leaf_hash,
    header_auth,
    parse_header,
)
from tripod.ledger.errors import (
    ConflictError,
    IdReusedError,
    LedgerError,
    MalformedError,
    TooLargeError,
    UnknownCauseError,
)
from tripod.ledger.ids import format_at
from tripod.ledger.merkle import EMPTY_ROOT
from tripod.ledger.store import (
    Blobs,
    Cursors,
    Fold,
    Guard,
    Head,
    LedgerReader,
    Occurrences,
    RawEntry,
    Store,
)

Make: TypeAlias = Callable[[Fold | None], Store]
"""Makes an empty store that keeps its tables by this fold; the fixture closes it."""


class Table:
    """A fold: the texts said so far, in a table; it remembers how it was called."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []

    def __call__(self, tables: Any, entries: Sequence[Entry], _: Blobs) -> None:
        self.calls.append([entry.seq for entry in entries])
        for entry in entries:
            if entry.kind == "ledger.opened":
                tables.execute("CREATE TABLE texts (seq INTEGER, text TEXT)")
                continue
            text = entry.data["text"]["text"]
            tables.execute("INSERT INTO texts VALUES (?, ?)", (entry.seq, text))
            if text == "break the fold":
                raise ArithmeticError(text)


def texts(store: Store) -> list[str]:
    """What the table holds now."""
    with store.transaction() as transaction:
        rows = transaction.tables.execute("SELECT text FROM texts ORDER BY seq").fetchall()
    return [text for (text,) in rows]


def all_of(store: Store) -> tuple[Head, list[Entry]]:
    """Everything that must stay as it was where nothing was appended."""
    return store.head(), list(store.read())


def break_off(store: Store, *batches: list[Draft]) -> None:
    """Append in one transaction, and leave it with an exception."""
    with store.transaction() as transaction:
        for drafts in batches:
            transaction.append(drafts)
        raise KeyboardInterrupt


def append_in_spite_of_errors(store: Store, *batches: list[Draft]) -> None:
    """Append in one transaction, and pass over what fails."""
    with store.transaction() as transaction:
        for drafts in batches:
            with suppress(ArithmeticError, LedgerError):
                transaction.append(drafts)


KEPT = {"channel": "general", "text": {"text": "[redacted]"}, "v": 1}


def erasing(entry: Entry) -> Draft:
    """Says that an entry is erased, and what is kept of it."""
    return redacted(
        seq=entry.seq, kind=entry.kind, cause=entry.id, reason="asked to", by="ann", keep=KEPT
    )


def holding(*blobs: bytes) -> Draft:
    """A message that names blobs."""
    names = [{"sha256": sha256(blob).hexdigest(), "size": len(blob)} for blob in blobs]
    draft = said("long")
    return draft._replace(body=draft.body | {"more": names}, blobs=blobs)


def signed(text: str, **fields: Any) -> Draft:
    """A message with a signature record; whether that is one, a store does not ask."""
    return said(text, **({"id": "signed", "salt": b"s" * 32, "auth": b"record"} | fields))


BLOB = b"a long text" * 1000


def several(store: Store) -> list[Entry]:
    """Fill a ledger with entries of some kinds and streams, one of them erased; all of them."""
    kinds = ("chat.sent", "bus.published", "chat.sent", "decision.logged")
    store.append([said(str(n), "ab"[n % 2], kind=kinds[n % 4], id=f"x-{n:03}") for n in range(300)])
    store.append([holding(BLOB), signed("signed", id="y-1")])
    with store.transaction() as transaction:
        transaction.erase(erasing(next(store.read(7, 8))))
    return list(store.read())


def raw(entry: Entry) -> RawEntry:
    """An entry without what is decoded of it."""
    return RawEntry(*entry[:4], *entry[6:9], entry.auth)


def answers_for(reader: LedgerReader, entries: Sequence[Entry]) -> None:
    """A reader says of each thing that can be asked what a look at all the entries says."""
    size = len(entries)
    assert (reader.origin, reader.size, reader.at) == (ORIGIN, size, entries[-1].at)
    root = naive_tree.root([naive_tree.leaf(entry.header) for entry in entries])
    assert reader.head() == Head(size, root)
    for start, stop, stream, kinds, back, limit in (
        (0, None, None, (), False, None),
        (0, None, None, (), True, None),
        (0, None, None, (), True, 5),
        (size - 9, None, None, (), False, None),
        (size, None, None, (), False, None),
        (-20, 3, None, (), False, None),
        (40, 90, "chat/b", (), True, 4),
        (40, 90, None, ("bus.published",), False, 4),
        (40, None, "chat/a", ("bus.published", "chat.sent"), False, None),
        (0, None, None, ("no.such",), True, 1),
        (3, 9, None, (), False, 0),
    ):
        want = [
            entry
            for entry in entries
            if start <= entry.seq < (size if stop is None else stop)
            and stream in (None, entry.stream)
            and (not kinds or entry.kind in kinds)
        ]
        want = want[:: -1 if back else 1][:limit]
        found = reader.read(start, stop, stream=stream, kinds=kinds, newest_first=back, limit=limit)
        assert list(found) == want
        less = reader.raw(start, stop, stream=stream, kinds=kinds, newest_first=back, limit=limit)
        assert list(less) == list(map(raw, want))
    for seq in (0, 7, size - 1):
        assert reader.entry(seq) == entries[seq]
        assert reader.header(seq) == entries[seq].header
        assert reader.seq_of(entries[seq].id) == seq
    assert (reader.entry(size), reader.header(size), reader.seq_of("unknown")) == (None,) * 3
    chosen = [size - 1, 7, size + 5, 2]
    assert sorted(reader.raw_of(chosen)) == [raw(entries[seq]) for seq in (2, 7, size - 1)]
    assert list(reader.raw_of([])) == []
    with_x = [entry for entry in entries if "x-010" <= entry.id < "x-020"]
    assert list(reader.raw_by_id("x-010", "x-020")) == list(map(raw, with_x))
    assert reader.count_by_id("x-010", "x-020") == len(with_x) == 10
    assert reader.count_by_id("z", "zz") == 0
    assert reader.last_seq() == size - 1
    sent = [entry.seq for entry in entries if entry.kind == "chat.sent"]
    assert reader.last_seq(kind="chat.sent") == sent[-1]
    assert reader.last_seq(kind="chat.sent", stop=sent[-1]) == sent[-2]
    assert reader.last_seq(stream="chat/b", stop=9) == 8
    assert reader.last_seq(kind="decision.logged", stream="chat/a") is None
    assert reader.kinds(0, size)["chat.sent"] == Occurrences(len(sent), sent[0], sent[-1])
    assert dict(reader.kinds(1, 5)) == {
        "chat.sent": Occurrences(2, 1, 3),
        "bus.published": Occurrences(1, 2, 2),
        "decision.logged": Occurrences(1, 4, 4),
    }
    assert reader.names_in_body("decision.logged", b'"text":"3"')
    assert not reader.names_in_body("chat.sent", b'"text":"3"')
    assert reader.blob(sha256(BLOB).digest()) == BLOB
    assert reader.blob(bytes(32)) is None
    block = naive_tree.root([naive_tree.leaf(entry.header) for entry in entries[:256]])
    assert reader.hashes(1, 0, 3) == [block]
    assert reader.hashes(1, 1, 3) == reader.hashes(2, 0, 1) == []


class StoreContract:
    """Subclass it, and give the fixture ``make``."""

    @pytest.fixture
    def store(self, make: Make) -> Store:
        """A ledger that was opened."""
        store = make(None)
        store.append([opening()])
        return store

    @pytest.fixture
    def clock(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """The host's clock: it shows the times of this list, one for each look at it."""
        times: list[int] = []
        monkeypatch.setattr("tripod.ledger.ids.now_us", lambda: times.pop(0))
        return times

    # Opening

    def test_a_new_store_is_empty(self, make: Make) -> None:
        store = make(None)
        assert store.origin == ""
        assert store.head() == Head(0, EMPTY_ROOT)
        assert list(store.read()) == []
        assert store.wait(0, 0) == 0
        assert store.blob(bytes(32)) is None
        with store.transaction() as transaction:
            assert (transaction.size, transaction.at) == (0, "")

    def test_the_first_entry_opens_the_ledger(self, make: Make) -> None:
        store = make(None)
        entries = store.append([opening(), said("one")])
        assert [entry.kind for entry in entries] == ["ledger.opened", "chat.sent"]
        assert store.origin == ORIGIN
        assert parse_header(entries[0].header).ledger == ORIGIN
        assert faults(store) == []

    @pytest.mark.parametrize("drafts", [[said()], [said(), opening()], [opening(), opening()]])
    def test_nothing_else_comes_first_nor_is_it_opened_twice(
        self, make: Make, drafts: list[Draft]
    ) -> None:
        store = make(None)
        with pytest.raises(MalformedError, match=r"ledger\.opened is the first entry"):
            store.append(drafts)
        assert (store.origin, store.head().size) == ("", 0)
        store.append([opening("second try")])
        assert store.origin == "second try"
        assert faults(store) == []

    def test_a_ledger_stays_what_it_was_opened_as(self, store: Store) -> None:
        before = all_of(store)
        with pytest.raises(MalformedError):
            store.append([opening("another")])
        assert all_of(store) == before
        assert store.origin == ORIGIN

    def test_a_ledger_may_be_opened_in_several_steps_of_one_transaction(self, make: Make) -> None:
        store = make(None)
        with store.transaction() as transaction:
            transaction.append([opening()])
            transaction.append([said()] * 300)
            transaction.append([said()] * 300)
        assert store.head().size == 601
        assert faults(store) == []

    # Append and read

    def test_what_is_read_are_the_exact_bytes_that_were_appended(self, store: Store) -> None:
        (first,) = store.read()
        drafts = [
            said('é\u2028😀 \x00 \\ "'),
            said("", cause=first.id, actor="böb", id="chosen"),
            Draft("bus.acked", "bus", "", {"name": "x", "v": 1, "deep": [[], {"a": True}, -1]}),
        ]
        entries = store.append(drafts)
        assert list(store.read(1)) == entries
        for draft, entry in zip(drafts, entries, strict=True):
            header = parse_header(entry.header)
            assert (entry.kind, entry.stream, entry.actor) == (draft[:3])
            assert header.cause == draft.cause
            assert entry.data == draft.body
        assert entries[1].id == "chosen"
        assert faults(store) == []

    def test_a_cause_stands_before_what_follows_from_it(self, store: Store) -> None:
        (first,) = store.append([said("a")])
        # In the ledger, earlier in the batch, earlier in the transaction.
        store.append([said("b", cause=first.id, id="b"), said("c", cause="b")])
        with store.transaction() as transaction:
            (made,) = transaction.append([said("d")])
            transaction.append([said("e", cause=made.id)])
        before = all_of(store)
        for cause, batch in (
            ("nobody", [said("f", cause="nobody")]),
            ("later", [said("g", cause="later"), said("h", id="later")]),
            ("itself", [said("i", cause="itself", id="itself")]),
        ):
            with pytest.raises(UnknownCauseError, match=f"{cause!r} is the id of no entry before"):
                store.append(batch)
            assert all_of(store) == before
        # A retry of what stands there appends nothing, whatever it says that it follows from.
        assert store.append([said("b", cause="nobody", id="b")])[0].seq == 2
        assert faults(store) == []

    def test_ids_and_salts_are_new_for_each_entry(self, store: Store) -> None:
        entries = store.append([said()] * 50)
        assert len({entry.id for entry in entries}) == 50
        assert len({entry.salt for entry in entries}) == 50
        assert len({parse_header(entry.header).body for entry in entries}) == 50

    def test_what_is_stored_does_not_follow_the_callers_dict(self, store: Store) -> None:
        body: dict[str, Any] = {"text": {"text": "then"}}
        store.append([said()._replace(body=body)])
        body["text"]["text"] = "now"
        body["more"] = 1
        assert [entry.data for entry in store.read(1)] == [{"text": {"text": "then"}}]
        assert faults(store) == []

    def test_ranges_and_streams(self, store: Store) -> None:
        store.append([said(channel="ab"[number % 2]) for number in range(10)])

        def seqs(start: int = 0, stop: int | None = None, stream: str | None = None) -> list[int]:
            return [entry.seq for entry in store.read(start, stop, stream=stream)]

        assert seqs() == list(range(11))
        assert seqs(4) == list(range(4, 11))
        assert seqs(4, 7) == [4, 5, 6]
        assert seqs(4, 4) == seqs(7, 4) == seqs(11) == seqs(50) == []
        assert seqs(9, 50) == [9, 10]
        assert seqs(0, None, "chat/a") == [1, 3, 5, 7, 9]
        assert seqs(2, 6, "chat/b") == [2, 4]
        assert seqs(0, None, "chat/") == []
        assert seqs(0, None, "ledger") == [0]

    def test_nothing_to_append(self, store: Store) -> None:
        before = all_of(store)
        assert store.append([]) == []
        with store.transaction() as transaction:
            assert transaction.append([]) == []
        assert all_of(store) == before

    def test_the_head_is_that_of_a_tree_over_the_headers(self, make: Make) -> None:
        store = make(None)
        store.append([opening()])
        for _ in range(33):
            assert faults(store) == []
            store.append([said()])
        store.append([said()] * 600)  # two subtrees of 256 become full
        assert store.head().size == 634
        assert faults(store) == []

    def test_a_transaction_sees_its_own_entries(self, store: Store) -> None:
        with store.transaction() as transaction:
            assert transaction.size == 1
            first = transaction.append([said("one"), said("two")])
            assert transaction.size == 3
            assert transaction.at == first[1].at
            second = transaction.append([said("three")])
        assert [entry.seq for entry in first + second] == [1, 2, 3]
        assert list(store.read(1)) == first + second
        assert faults(store) == []

    # Limits

    def test_a_body_of_64_kib_is_taken_and_one_byte_more_is_not(self, store: Store) -> None:
        room = MAX_BODY - len(b'{"text":""}')
        (entry,) = store.append([said()._replace(body={"text": "x" * room})])
        assert len(entry.body or b"") == MAX_BODY
        before = all_of(store)
        with pytest.raises(TooLargeError, match="long texts go into blobs"):
            store.append([said()._replace(body={"text": "x" * (room + 1)})])
        assert all_of(store) == before

    @pytest.mark.parametrize(
        ("draft", "error"),
        [
            (said(stream="x" * MAX_HEADER), TooLargeError),
            (said("\ud800"), MalformedError),
            (said(actor="\ud800"), MalformedError),
            (said()._replace(body={"number": 2**53}), MalformedError),
        ],
    )
    def test_what_has_no_canonical_bytes_is_refused(
        self, store: Store, draft: Draft, error: type[Exception]
    ) -> None:
        before = all_of(store)
        with pytest.raises(error):
            store.append([said("fine"), draft])
        assert all_of(store) == before
        store.append([said()])
        assert faults(store) == []

    # Guards

    def test_a_guard_holds_while_its_stream_has_not_grown(self, store: Store) -> None:
        store.append([said(channel="a")])
        size = store.head().size
        store.append([said(channel="b")])
        (entry,) = store.append([said(channel="a")], Guard("chat/a", size))
        assert entry.seq == 3
        assert faults(store) == []

    def test_a_guard_fails_when_its_stream_has_grown(self, store: Store) -> None:
        size = store.head().size
        store.append([said(channel="a")])
        store.append([said(channel="b")])
        before = all_of(store)
        with pytest.raises(ConflictError, match="chat/a has grown"):
            store.append([said(channel="a"), said(channel="c")], Guard("chat/a", size))
        with pytest.raises(ConflictError):
            store.append([], Guard("chat/a", size))
        assert all_of(store) == before
        store.append([said(channel="a")], Guard("chat/a", before[0].size))
        assert faults(store) == []

    def test_a_retry_conflicts_with_nothing(self, store: Store) -> None:
        draft, guard = said(channel="a")._replace(id="once"), Guard("chat/a", store.head().size)
        (first,) = store.append([draft], guard)
        assert store.append([draft], guard) == [first]
        with pytest.raises(ConflictError):
            store.append([draft, said(channel="a")], guard)
        assert faults(store) == []

    def test_a_guard_sees_the_transactions_own_entries(self, store: Store) -> None:
        with store.transaction() as transaction:
            size = transaction.size
            transaction.append([said(channel="a")], Guard("chat/a", size))
            with pytest.raises(ConflictError):
                transaction.append([said(channel="a")], Guard("chat/a", size))
            transaction.append([said(channel="a")], Guard("chat/a", size + 1))
        assert store.head().size == 3
        assert faults(store) == []

    # Ids given by the caller

    def test_the_same_id_with_the_same_body_gives_the_first_entry_back(self, store: Store) -> None:
        (first,) = store.append([said("once", id="mine")])
        store.append([said("between")])
        before = all_of(store)
        assert store.append([said("once", id="mine")]) == [first]
        assert store.append([said("once", id="mine", actor="other", stream="else")]) == [first]
        assert all_of(store) == before

    @pytest.mark.parametrize(
        "draft", [said("other", id="mine"), said("once", id="mine", kind="chat.created")]
    )
    def test_the_same_id_with_another_body_is_an_error(self, store: Store, draft: Draft) -> None:
        store.append([said("once", id="mine")])
        before = all_of(store)
        with pytest.raises(IdReusedError, match="id mine stands at entry 1"):
            store.append([said("fine"), draft])
        assert all_of(store) == before

    def test_an_id_counts_within_a_batch_and_a_transaction(self, store: Store) -> None:
        with store.transaction() as transaction:
            one, same, two = transaction.append(
                [said("once", id="mine"), said("once", id="mine"), said("two")]
            )
            assert transaction.append([said("once", id="mine")]) == [one]
            assert one == same
            with pytest.raises(IdReusedError):
                transaction.append([said("new", id="new"), said("other", id="new")])
            with pytest.raises(IdReusedError):
                transaction.append([said("other", id="mine")])
        assert list(store.read(1)) == [one, two]
        assert faults(store) == []

    def test_a_batch_may_be_known_in_part(self, store: Store) -> None:
        (known,) = store.append([said("one", id="id-1")])
        batch = [said("zero", id="id-0"), said("one", id="id-1"), said("two", id="id-2")]
        entries = store.append(batch)
        assert [entry.seq for entry in entries] == [2, 1, 3]
        assert entries[1] == known
        assert store.append(batch) == entries
        assert faults(store) == []

    def test_an_empty_id_is_none(self, store: Store) -> None:
        entries = store.append([said("same", id=""), said("same", id="")])
        assert [entry.seq for entry in entries] == [1, 2]
        assert "" not in {entry.id for entry in entries}

    # All or none

    def test_a_batch_is_taken_whole_or_not_at_all(self, store: Store) -> None:
        before = all_of(store)
        with pytest.raises(TooLargeError):
            store.append([said("fine", id="id", blobs=(b"b",)), said("x" * MAX_BODY)])
        assert all_of(store) == before
        assert store.blob(sha256(b"b").digest()) is None
        (entry,) = store.append([said("another text", id="id")])
        assert entry.seq == 1
        assert faults(store) == []

    def test_a_refused_batch_leaves_the_transaction_as_it_was(self, store: Store) -> None:
        with store.transaction() as transaction:
            transaction.append([said("before")])
            at = transaction.at
            with pytest.raises(TooLargeError):
                transaction.append([said("fine", id="id"), said("x" * MAX_BODY)])
            assert (transaction.size, transaction.at) == (2, at)
            transaction.append([said("after", id="id")])
        assert [e.data["text"]["text"] for e in store.read(1)] == ["before", "after"]
        assert faults(store) == []

    def test_an_exception_in_the_transaction_undoes_it(self, make: Make) -> None:
        store = make(Table())
        store.append([opening(), said("kept")])
        before = all_of(store)
        with pytest.raises(KeyboardInterrupt):
            break_off(store, [said("lost", id="id", blobs=(b"b",))], [said("lost too")])
        assert all_of(store) == before
        assert store.blob(sha256(b"b").digest()) is None
        assert texts(store) == ["kept"]
        store.append([said("new", id="id")])
        assert texts(store) == ["kept", "new"]
        assert faults(store) == []

    def test_an_exception_in_the_first_transaction_leaves_an_unopened_ledger(
        self, make: Make
    ) -> None:
        store = make(None)
        with pytest.raises(KeyboardInterrupt):
            break_off(store, [opening("lost")])
        assert (store.origin, store.head()) == ("", Head(0, EMPTY_ROOT))
        store.append([opening()])
        assert store.origin == ORIGIN
        assert faults(store) == []

    # Tables

    def test_the_fold_sees_what_is_new_and_nothing_else(self, make: Make) -> None:
        table = Table()
        store = make(table)
        store.append([opening()])
        store.append([said("one", id="id-1"), said("two")])
        store.append([said("one", id="id-1")])
        store.append([])
        store.append([said("one", id="id-1"), said("three")])
        assert table.calls == [[0], [1, 2], [3]]
        assert texts(store) == ["one", "two", "three"]

    def test_tables_are_as_of_the_transactions_size(self, make: Make) -> None:
        store = make(Table())
        store.append([opening(), said("one")])
        with store.transaction() as transaction:
            query = "SELECT count(*) FROM texts"
            assert transaction.tables.execute(query).fetchone() == (1,)
            transaction.append([said("two"), said("three")])
            assert transaction.tables.execute(query).fetchone() == (3,)

    def test_an_exception_in_the_fold_undoes_the_append(self, make: Make) -> None:
        store = make(Table())
        store.append([opening(), said("kept")])
        before = all_of(store)
        with pytest.raises(ArithmeticError):
            store.append([said("lost", blobs=(b"b",)), said("break the fold", id="id")])
        assert all_of(store) == before
        assert store.blob(sha256(b"b").digest()) is None
        assert texts(store) == ["kept"]
        store.append([said("new", id="id")])
        assert texts(store) == ["kept", "new"]
        assert faults(store) == []

    def test_a_failed_fold_cannot_be_passed_over(self, make: Make) -> None:
        """Its tables are half changed: going on would leave them, or the head, behind for ever."""
        store = make(Table())
        store.append([opening(), said("kept")])
        before = all_of(store)
        with pytest.raises(LedgerError, match="failed half way"):
            append_in_spite_of_errors(store, [said("lost")], [said("break the fold")])
        assert all_of(store) == before
        with pytest.raises(LedgerError, match="failed half way"):
            append_in_spite_of_errors(store, [said("break the fold")], [said("lost")])
        assert all_of(store) == before
        store.append([said("new")])
        assert texts(store) == ["kept", "new"]
        assert faults(store) == []

    def test_a_transaction_within_a_transaction_is_refused_and_leaves_it_alone(
        self, store: Store
    ) -> None:
        with store.transaction() as transaction:
            transaction.append([said("one")])
            with pytest.raises(LedgerError, match="transaction open"), store.transaction():
                pass
            transaction.append([said("two")])
        assert [entry.data["text"]["text"] for entry in store.read(1)] == ["one", "two"]
        assert faults(store) == []

    # Time

    def test_time_never_goes_back(self, store: Store, clock: list[int]) -> None:
        start = 4_000_000_000_000_000
        ticks = [start, start + 5, start + 4, start - 10**12, start + 5, start + 6]
        for tick in ticks:
            clock.append(tick)
            store.append([said()])
        expected = [start, start + 5, start + 5, start + 5, start + 5, start + 6]
        assert [entry.at for entry in store.read(1)] == [format_at(us) for us in expected]
        assert faults(store) == []

    def test_time_never_goes_back_within_a_transaction(
        self, store: Store, clock: list[int]
    ) -> None:
        down = count(4_000_000_000_000_000, -1)
        with store.transaction() as transaction:
            for _ in range(3):
                clock.append(next(down))
                transaction.append([said(), said()])
            assert transaction.at == format_at(4_000_000_000_000_000)
        assert {entry.at for entry in store.read(1)} == {transaction.at}

    # Blobs

    def test_blobs_are_found_by_their_digest(self, store: Store) -> None:
        blobs = (b"", b"\x00\xff", b"x" * 2**20)
        store.append([said("one", blobs=blobs), said("two", blobs=blobs[:2])])
        store.append([said("three", blobs=(blobs[1], b"new"))])
        for blob in (*blobs, b"new"):
            assert store.blob(sha256(blob).digest()) == blob
        assert store.blob(sha256(b"unknown").digest()) is None
        assert store.blob(b"") is None
        assert faults(store) == []

    # Reading

    def test_every_question_has_the_answer_that_the_entries_give(self, make: Make) -> None:
        store = make(None)
        store.append([opening()])
        answers_for(store, several(store))

    def test_a_transaction_answers_with_its_own_entries(self, make: Make) -> None:
        store = make(None)
        store.append([opening()])
        entries = several(store)
        with store.transaction() as transaction:
            answers_for(transaction, entries)
            more = transaction.append([said(), said(channel="b")])
            answers_for(transaction, [*entries, *more])

    def test_an_empty_ledger_has_no_answers(self, make: Make) -> None:
        store = make(None)
        assert (store.size, store.at, store.cursors()) == (0, "", Cursors(0, 0, 0))
        assert list(store.raw()) == list(store.raw_of([0])) == list(store.raw_by_id("", "z")) == []
        assert (store.entry(0), store.header(0), store.seq_of("x"), store.last_seq()) == (None,) * 4
        assert dict(store.kinds()) == {}
        assert store.hashes(1, 0, 9) == []

    def test_what_is_read_below_a_size_stays(self, store: Store) -> None:
        """Only a body may go; so a reader that remembers a size can go on from it for ever."""
        store.append([said("one"), said("two")])
        head = store.head()
        before = list(store.read(0, head.size))
        tail = store.read(head.size)
        assert list(tail) == []
        store.append([said("three", id="three")])
        assert list(store.read(0, head.size)) == before
        assert [entry.id for entry in store.read(head.size)] == ["three"]

    # Cursors

    def test_the_tables_follow_each_append(self, make: Make) -> None:
        store = make(Table())
        store.append([opening(), said()])
        assert store.cursors()[:2] == (2, 2)
        with store.transaction() as transaction:
            transaction.append([said()])
            assert transaction.cursors()[:2] == (3, 3)
            transaction.tables_folded()
        assert store.cursors()[:2] == (3, 3)

    def test_the_files_follow_when_they_show_the_entries_and_never_go_back(
        self, store: Store
    ) -> None:
        store.append([said(), said()])
        assert store.cursors().files == 0
        store.set_files(2)
        assert store.cursors().files == 2
        for wrong in (1, 4):
            with suppress(sqlite3.IntegrityError):
                store.set_files(wrong)
            assert 2 <= store.cursors().files <= 3

    # Waiting

    def test_waiting_ends_at_once_when_there_is_more(self, store: Store) -> None:
        assert store.wait(0, 600) == 1
        store.append([said()])
        assert store.wait(1, 600) == 2

    def test_waiting_for_nothing_ends_with_the_time(self, store: Store) -> None:
        assert store.wait(1, 0.001) == 1
        assert store.wait(99, 0) == 1

    # Durability

    def test_durability_is_said(self, store: Store) -> None:
        assert store.durability() in {"fsync", "none"}

    # Signature records -------------------------------------------------------------------------

    def test_a_signature_record_lies_beside_its_entry_for_ever(self, store: Store) -> None:
        entries = store.append([said("one"), signed("two", auth=b"record"), said("three")])
        assert [entry.auth for entry in entries] == [None, b"record", None]
        assert list(store.read(1)) == entries
        assert [parse_header(entry.header).auth for entry in entries] == [
            None,
            header_auth(b"record"),
            None,
        ]
        assert (entries[1].id, entries[1].salt) == ("signed", b"s" * 32)
        assert faults(store) == []
        assert store.append([signed("two", auth=b"another")]) == [entries[1]]  # a retry
        with store.transaction() as transaction:
            transaction.erase(erasing(entries[1]))
        (erased,) = store.read(2, 3)
        assert (erased.body, erased.auth) == (None, b"record")
        assert faults(store) == []

    @pytest.mark.parametrize("field", ["id", "salt"])
    def test_a_signed_draft_comes_with_what_was_signed(self, store: Store, field: str) -> None:
        before = all_of(store)
        with pytest.raises(MalformedError, match="the id and the salt that were signed"):
            store.append([signed("one", **{field: None})])
        assert all_of(store) == before

    # Erasing -----------------------------------------------------------------------------------

    def test_an_erased_body_is_read_as_what_is_kept_of_it(self, store: Store) -> None:
        (first,) = store.append([said("a secret", id="first")])
        head = store.head()
        with store.transaction() as transaction:
            entry = transaction.erase(erasing(first))
            assert transaction.size == head.size + 1
        erased, redaction = store.read(first.seq, head.size + 1)
        assert erased == first._replace(salt=None, body=None, data=KEPT)
        assert redaction == entry
        assert redaction.id == f"redacted-{first.seq}"
        assert faults(store) == []
        assert [e.seq for e in store.read(stream="chat/general")] == [first.seq]

    def test_blobs_go_with_it_unless_another_body_names_them(self, store: Store) -> None:
        alone, shared = b"a" * 20_000, b"b" * 20_000
        first, second = store.append([holding(alone, shared), holding(shared)])
        with store.transaction() as transaction:
            transaction.erase(erasing(first))
        assert store.blob(sha256(alone).digest()) is None
        assert store.blob(sha256(shared).digest()) == shared
        with store.transaction() as transaction:
            transaction.erase(erasing(second))
        assert store.blob(sha256(shared).digest()) is None

    def test_a_retry_of_an_erased_entry_brings_nothing_back(self, store: Store) -> None:
        blob = b"c" * 20_000
        draft = holding(blob)._replace(id="first")
        (first,) = store.append([draft])
        with store.transaction() as transaction:
            transaction.erase(erasing(first))
        before = all_of(store)
        assert [entry.body for entry in store.append([draft])] == [None]
        assert all_of(store) == before
        assert store.blob(sha256(blob).digest()) is None

    def test_what_cannot_be_erased_changes_nothing(self, store: Store) -> None:
        (first,) = store.append([said("once")])
        with store.transaction() as transaction:
            transaction.erase(erasing(first))
        before = all_of(store)
        for target in (first, first._replace(seq=4711)):
            with pytest.raises(LedgerError, match="cannot be erased"), store.transaction() as inner:
                inner.erase(erasing(target))
            assert all_of(store) == before

    def test_an_erasure_that_is_left_with_an_exception_did_not_happen(self, store: Store) -> None:
        blob = b"d" * 20_000
        (first,) = store.append([holding(blob)])
        before = all_of(store)

        def stopped() -> None:
            with store.transaction() as transaction:
                transaction.erase(erasing(first))
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            stopped()
        assert all_of(store) == before
        assert store.blob(sha256(blob).digest()) == blob


# Several programs -------------------------------------------------------------------------------


Again: TypeAlias = Callable[[Store], Store]
"""Opens the ledger of a store once more, as another program does; the caller closes it."""

WRITERS, READERS, ROUNDS = 3, 3, 12


class SharedStoreContract(StoreContract):
    """Subclass it, and give the fixtures ``make`` and ``again``."""

    @pytest.fixture
    def other(self, store: Store, again: Again) -> Iterator[Store]:
        """The ledger of ``store``, opened once more."""
        other = again(store)
        yield other
        other.close()

    def test_two_stores_take_turns(self, store: Store, other: Store) -> None:
        for number in range(10):
            (store, other)[number % 2].append([said(str(number), id=str(number))])
        assert store.head() == other.head()
        assert list(store.read()) == list(other.read())
        assert store.append([said("7", id="7")]) == other.append([said("7", id="7")])
        assert faults(store) == []

    def test_an_answer_that_was_lost_is_asked_for_by_id(self, store: Store, other: Store) -> None:
        """The connection breaks behind the commit: who tries again gets the first entry."""
        draft = said("once", id="mine")
        store.append([draft])
        assert other.seq_of("mine") == 1
        other.append([said("between")])
        assert [entry.seq for entry in other.append([draft])] == [1]
        assert other.size == 3
        assert faults(other) == []

    def test_a_guard_sees_what_the_other_appended(self, store: Store, other: Store) -> None:
        size = store.head().size
        other.append([said(channel="a")])
        with pytest.raises(ConflictError):
            store.append([said(channel="a")], Guard("chat/a", size))
        store.append([said(channel="b")], Guard("chat/b", size))
        assert faults(other) == []

    def test_a_reader_is_not_kept_waiting_and_sees_nothing_half_done(
        self, store: Store, other: Store
    ) -> None:
        with store.transaction() as transaction:
            transaction.append([said()])
            assert other.head().size == other.size == 1
            assert len(list(other.read())) == 1
            assert other.last_seq() == 0
        assert other.head().size == 2

    def test_what_is_read_is_of_one_size(self, store: Store, other: Store) -> None:
        store.append([said(str(number)) for number in range(20)])
        head = store.head()
        begun = store.read(0, head.size)
        first = next(begun)
        other.append([said("meanwhile")])
        entries = [first, *begun]
        assert len(entries) == head.size
        assert naive_tree.root([entry_leaf_hash(entry.header) for entry in entries]) == head.root

    def test_waiting_ends_when_the_other_appends(self, store: Store, again: Again) -> None:
        def wait() -> int:
            with closing(again(store)) as reader:
                return reader.wait(1, 60)

        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(wait)
            store.append([said()])
            assert waiting.result(timeout=60) == 2

    def test_writers_at_once_make_one_ledger(self, store: Store, again: Again) -> None:
        """Also where all of them try the same act: it happens once."""

        def write(writer: int) -> list[int]:
            with closing(again(store)) as own:
                seqs = []
                for number in range(ROUNDS):
                    drafts = [said(id=f"{writer}-{number}"), said("all", id=f"all-{number}")]
                    seqs += [entry.seq for entry in own.append(drafts)]
                return seqs

        with ThreadPoolExecutor(WRITERS) as pool:
            made = list(pool.map(write, range(WRITERS), timeout=60))
        assert store.size == 1 + ROUNDS * (WRITERS + 1)
        assert {seq for seqs in made for seq in seqs} == set(range(1, store.size))
        assert len({tuple(seqs[1::2]) for seqs in made}) == 1
        assert faults(store) == []

    def test_of_writers_who_expect_the_same_head_one_wins(self, store: Store, again: Again) -> None:
        """Each takes the next number of a stream; a guard tells who was too late to read again."""

        def take(writer: int) -> None:
            with closing(again(store)) as own:
                taken = 0
                while taken < ROUNDS:
                    size = own.size
                    number = len(list(own.raw(0, size, stream="chat/numbers")))
                    with suppress(ConflictError):
                        draft = said(str(number), "numbers", actor=f"w{writer}")
                        own.append([draft], Guard("chat/numbers", size))
                        taken += 1

        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(take, range(WRITERS), timeout=60))
        texts = [entry.data["text"]["text"] for entry in store.read(1)]
        assert texts == [str(number) for number in range(ROUNDS * WRITERS)]
        assert faults(store) == []

    def test_readers_beside_a_writer_see_each_entry_once_and_in_order(
        self, store: Store, again: Again
    ) -> None:
        total, ready = 1 + sum(range(ROUNDS)), threading.Barrier(READERS + 1)

        def follow() -> list[str]:
            with closing(again(store)) as own:
                ready.wait(60)
                seen: list[Entry] = []
                while len(seen) < total:
                    own.wait(len(seen), 60)
                    head = own.head()
                    seen += own.read(len(seen), head.size)
                    leaves = [entry_leaf_hash(entry.header) for entry in seen]
                    assert naive_tree.root(leaves) == head.root
                    assert [entry.seq for entry in seen] == list(range(head.size))
                return [entry.id for entry in seen]

        with ThreadPoolExecutor(READERS) as pool:
            following = [pool.submit(follow) for _ in range(READERS)]
            ready.wait(60)
            for number in range(ROUNDS):
                store.append([said(str(number))] * number)
            seen = {tuple(one.result(timeout=60)) for one in following}
        assert seen == {tuple(entry.id for entry in store.read())}
