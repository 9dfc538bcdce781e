"""What any store must do, whatever it keeps its entries in: ``test_stores.py`` runs it for each."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import count
from typing import Any, TypeAlias

import pytest
from drafts import redacted
from sample_ledger import ORIGIN, faults, opening, said

from tripod.ledger.entry import MAX_BODY, MAX_HEADER, Draft, Entry, auth_of, parse_header
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
from tripod.ledger.store import Fold, Guard, Head, Store

Make: TypeAlias = Callable[[Fold | None], Store]
"""Makes an empty store that keeps its tables by this fold; the fixture closes it."""


class Table:
    """A fold: the texts said so far, in a table; it remembers how it was called."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []

    def __call__(self, tables: Any, entries: Sequence[Entry]) -> None:
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
            assert transaction.size == 0

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

        def seqs(*where: Any) -> list[int]:
            return [entry.seq for entry in store.read(*where)]

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
            auth_of(b"record"),
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
        assert [e.seq for e in store.read(0, None, "chat/general")] == [first.seq]

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
        with suppress(KeyboardInterrupt), store.transaction() as transaction:
            transaction.erase(erasing(first))
            raise KeyboardInterrupt
        assert all_of(store) == before
        assert store.blob(sha256(blob).digest()) == blob
