"""The shortcut of the fold gives the tables that the folds of the projections give."""

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import FEWER

from tripod.projections.bus.tables import PUBLISH
from tripod.projections.engine import _FOLDS, TABLES
from tripod.verify import fold as folding
from tripod.verify.rows import ACTOR_AND_TIME
from tripod.verify.scan import shortcut
from tripod.verify.scan.shortcut import Shortcut

Row = tuple[Any, ...]
NAMES = ["1-ann-done-7.event", "2-bob-note-7.event", "3-é.event"]
ODD_NAMES = [
    "007-z.event",
    "bus/5-q.event",
    "nodash.event",
    "9007199254740993-a.event",
    "1-a\0.event",
    5,
]
HANDLES = ["ann", "bob", "zoé", 'q"x', "a\\b", "", "nul\0"]
TEXTS = [
    "plain", "We decided to use files, not sockets.", "PYTHIA Checkpoint 4", 'say "sha256"',
    "two\nlines\t\x7f", "é😀", "", "\0", "x" * 50,
]  # fmt: skip
COUNTS = st.sampled_from(
    [0, 1, 2, 3, 7, 10**15, 9 * 10**15, 2**53, 2**63, -1, 1.0, True, "1", None]
)
SMALL = st.integers(0, 4)
MOSTLY = st.sampled_from([True] * 6 + [False])


@st.composite
def bodies(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A kind, and a body that is mostly of its shape."""
    is_usual = draw(MOSTLY)
    count: st.SearchStrategy[Any] = SMALL if is_usual else COUNTS
    name = draw(st.sampled_from(NAMES if is_usual else NAMES + ODD_NAMES))
    handle, text = draw(st.sampled_from(HANDLES)), draw(st.sampled_from(TEXTS))
    channel = draw(st.sampled_from(["live", "side"]))
    us = str(name).partition("-")[0]
    more: dict[str, Any] = {}
    if not is_usual and draw(st.booleans()):
        places = [f"events/{name}", f"events/processed/{name}"]
        more = {"observed": {"path": draw(st.sampled_from(places)), "mode": draw(SMALL)}}
    content = (
        {"text": text}
        if is_usual
        else draw(st.sampled_from([{"text": text}, {"base64": "eA=="}, text]))
    )
    published = {
        "name": name, "us": int(us) if is_usual and us.isdecimal() else draw(count),
        "source": handle, "type": draw(st.sampled_from(["done", "pythia-checkpoint"])),
        "priority": draw(st.sampled_from(["low", "high"] if is_usual else ["urgent", "low"])),
        "size": draw(count), "payload": content,
    }  # fmt: skip
    sent = {"channel": channel, "handle": handle, "text": content}
    sent |= {"index": draw(count), "time": draw(count)}
    seen = {"path": f"events/processed/{name}", "sha256": "00", "size": 1, "observed": {"mode": 1}}
    kinds: st.SearchStrategy[tuple[str, dict[str, Any]]] = (
        st.sampled_from(
            [
                ("bus.published", published),
                ("bus.published", published | {"to": "bob"}),
                ("bus.acked", {"name": name}),
                ("bus.acked", {"name": name}),
                ("bus.acked-all", {"count": 1}),
                ("bus.acked-all", {"count": 1, "source": handle}),
                ("bus.pruned", {"bytes": 1, "names": [name]}),
                ("chat.sent", sent),
                ("chat.sent", sent),
                ("chat.sent", sent | {"mentions": []}),
                ("chat.created", {"channel": channel}),
                ("chat.rotated", {"channel": channel, "count": 1, "size": 4, "archive": "old"}),
                ("chat.deleted", {"channel": channel, "first": 1, "size": 4, "last_writer": handle,
                                  "last_time": 3, "removed": [{"handle": handle, "count": 1}]}),
                ("file.seen", seen),
            ]
        )
    )  # fmt: skip
    kind, body = draw(kinds)
    return kind, body | more | {"v": 1}


SPOILT: list[Callable[[bytes], Any]] = [
    lambda raw: raw,
    lambda raw: raw.replace(b"{", b'{"v":2,', 1),
    lambda raw: raw.replace(b":1}", b":1.0}"),
    lambda raw: raw.replace(b":1}", b":1e0}"),
    lambda raw: raw.replace(b'","', b'", "', 1),
    lambda raw: raw.replace(b"a", b"\xff"),
    lambda raw: raw.replace(b"a", b"\\u0061"),
    lambda raw: raw.replace(b":1", b":NaN", 1),
    lambda raw: raw.replace(b'"name":', b'"name":"1-x.event","name":'),
    lambda raw: raw[:-1],
    lambda raw: raw + b"\n",
    lambda raw: raw.decode("latin-1"),
    lambda _: b"[]",
    lambda _: b"",
    lambda _: None,
    lambda _: 7,
]


@st.composite
def rows(draw: st.DrawFn) -> list[Row]:
    """Rows of a ledger, some of them damaged."""
    found: list[Row] = []
    for seq in range(draw(st.integers(0, 30))):
        kind, data = draw(bodies())
        body: Any = orjson.dumps(data, option=orjson.OPT_SORT_KEYS)
        actor, column, told, id_ = b"ann", kind, kind, f"id{seq}"
        if not draw(MOSTLY):
            body = draw(st.sampled_from(SPOILT))(body)
            actor = draw(st.sampled_from([b"ann", b'a\\"n', b"\xff", b"\xc3\xa9"]))
            told = draw(st.sampled_from([kind, "bus.acked", "chat.sent", "odd"]))
        header = (
            b'{"actor":"%b","at":"2026-01-01T00:00:00.000000Z","body":"00","id":"%b","kind":"%b",'
            b'"ledger":"l","prev":"p","seq":%d,"stream":"s","v":1}'
            % (actor, id_.encode(), told.encode(), seq)
        )
        found.append((seq, id_, column, "s", header, b"s", body, None))
    return found


@contextmanager
def ledger(found: list[Row]) -> Iterator[sqlite3.Connection]:
    """A database of these rows, without the tables of projections."""
    with closing(sqlite3.connect(":memory:")) as db:
        columns = "id, kind, stream, header, salt, body, auth"
        db.execute(f"CREATE TABLE entries (seq INTEGER PRIMARY KEY, {columns})")
        db.executemany("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?)", found)
        yield db


def folded(found: list[Row]) -> dict[str, list[Row]]:
    """Every table that the fold of the evidence makes of these rows."""
    with ledger(found) as db:
        made = folding.fold_evidence(db, None, lambda: None, derived=False)
        with closing(made.source.db) as scratch:
            names = (*TABLES, *folding._NOTED, "handed")
            told = {name: scratch.execute(f"SELECT * FROM {name}").fetchall() for name in names}
        return told | {"unfolded": [(made.unfolded,)]}


def plain(kind: str, body: dict[str, Any], seq: int) -> Row:
    header = (
        b'{"actor":"a","at":"2026-01-01T00:00:00.000000Z","body":"00","id":"i%d","kind":"%b",'
        % (seq, kind.encode())
    )
    raw = orjson.dumps(body | {"v": 1}, option=orjson.OPT_SORT_KEYS)
    return (seq, f"i{seq}", kind, "s", header + b'"ledger":"l"}', b"", raw, None)


EVENT = {"name": NAMES[0], "us": 1, "source": "ann", "type": "done", "priority": "low", "size": 9}
ACK = {"name": NAMES[0]}
LINE = {"channel": "live", "handle": "ann", "index": 0, "text": {"text": "x"}, "time": 5}


SEEN = {"observed": {"path": f"events/processed/{NAMES[0]}", "mode": 0o600}}
ROTATED = {"channel": "live", "count": 1, "size": 4, "archive": "old"}
CUT = {
    "channel": "live", "first": 0, "size": 13, "last_writer": "system", "last_time": 0,
    "removed": [{"handle": "ann", "count": 1}],
}  # fmt: skip
LONG = {"sha256": "00", "size": 2**63 - 20}
MANY = {"handle": "ann", "count": 2**63 - 2}
STORIES: list[list[tuple[str, dict[str, Any]]]] = [
    [  # two events of one name
        ("bus.published", EVENT), ("bus.published", EVENT), ("bus.acked", ACK),
        ("bus.published", EVENT), ("bus.acked", ACK), ("bus.acked", ACK),
    ],
    [  # another program has a part in it
        ("bus.published", EVENT), ("bus.published", EVENT | SEEN), ("bus.acked", ACK | SEEN),
        ("bus.published", EVENT), ("bus.acked", ACK | SEEN), ("bus.acked", ACK),
        ("bus.published", EVENT), ("bus.published", EVENT | SEEN), ("bus.acked", ACK),
    ],
    [  # another program's of that name came first
        ("bus.published", EVENT | SEEN), ("bus.published", EVENT), ("bus.acked", ACK),
    ],
    [  # acknowledged together
        ("bus.published", EVENT), ("bus.acked-all", {"count": 1}), ("bus.acked", ACK),
    ],
    [  # pruned
        ("bus.published", EVENT), ("bus.acked", ACK),
        ("bus.published", EVENT), ("bus.pruned", {"bytes": 1, "names": [NAMES[0]]}),
    ],
    [  # an unreadable file stood where the event goes
        ("file.seen", SEEN["observed"] | SEEN | {"sha256": "00", "size": 1}),
        ("bus.published", EVENT), ("bus.acked", ACK),
    ],
    [
        ("chat.created", {"channel": "live"}), ("chat.sent", LINE), ("chat.rotated", ROTATED),
        ("chat.sent", LINE | {"index": 1, "handle": "bob"}), ("chat.sent", LINE | {"index": 2}),
        ("chat.sent", LINE | SEEN | {"index": 3}), ("chat.sent", LINE | {"index": 4}),
    ],
    [  # another program's line is said to be so long that a sum with it fails
        ("chat.created", {"channel": "live"}),
        ("chat.unreadable", {"channel": "live", "index": 0, "observed": {"raw": LONG}}),
        ("chat.sent", LINE | {"index": 1}), ("chat.sent", LINE | {"index": 2}),
    ],
    [
        ("chat.created", {"channel": "live"}),
        ("chat.header-seen", {"channel": "live", "participants": [MANY]}),
        ("chat.sent", LINE), ("chat.sent", LINE | {"index": 1}),
    ],
    [  # lines were cut off
        ("chat.created", {"channel": "live"}), ("chat.sent", LINE), ("chat.deleted", CUT),
        ("chat.sent", LINE | {"index": 1}),
    ],
]  # fmt: skip


def told(story: list[tuple[str, dict[str, Any]]]) -> list[Row]:
    return [plain(kind, body, seq) for seq, (kind, body) in enumerate(story)]


def both(found: list[Row], batch: int, waiting: int, stored: int) -> tuple[Any, Any]:
    """The tables by the shortcut, and those by the folds alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folding, "BATCH", batch)
        patch.setattr(shortcut, "_WAITING", waiting)
        patch.setattr(shortcut, "_STORED", stored)
        short = folded(found)
        patch.setattr(Shortcut, "take", lambda *_: False)
        return short, folded(found)


@pytest.mark.parametrize("story", STORIES)
def test_the_shortcut_tells_these_stories_as_the_folds_do(
    story: list[tuple[str, dict[str, Any]]],
) -> None:
    for batch in (1, 2, 99):
        for waiting in (0, 99):
            short, whole = both(told(story), batch, waiting, 99)
            assert short == whole


@FEWER
@given(rows(), st.integers(1, 8), st.integers(0, 3), st.integers(0, 3))
def test_the_shortcut_gives_the_tables_that_the_folds_give(
    found: list[Row], batch: int, waiting: int, stored: int
) -> None:
    short, whole = both(found, batch, waiting, stored)
    assert short == whole


def test_what_a_team_mostly_does_takes_the_shortcut(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[bool] = []
    take = Shortcut.take

    def counted(self: Shortcut, *them: Any) -> bool:
        taken.append(take(self, *them))
        return taken[-1]

    monkeypatch.setattr(Shortcut, "take", counted)
    made = folded(told([("bus.published", EVENT), ("bus.acked", ACK), ("chat.sent", LINE)]))
    assert taken == [True, True, True]
    assert made["events"] == [(0, NAMES[0], 1, 3, "ann", "done", 9, 0o644, 1, None, None, None)]
    assert made["lines"] == [("live", 0, 2, "ann", 5, 13, None)]


def test_the_names_of_pending_events_are_forgotten_where_they_are_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shortcut, "_STORED", 3)
    monkeypatch.setattr(shortcut, "_WAITING", 2)
    short = Shortcut(ACTOR_AND_TIME, folding.note_message)
    ops: shortcut.Ops = defaultdict(list)
    for seq in range(20):
        own = EVENT | {"name": f"{seq + 1}-a.event", "us": seq + 1}
        theirs = ("events", PUBLISH, (seq, f"{seq}-b.event"), f"{seq}-b.event")
        assert short.take(plain("bus.published", own, seq), ops, defaultdict(list))
        short.add(theirs, ops)
        assert len(short._stored) <= 3
        assert len(short._waiting) <= 2
    short.finish(ops)
    assert sorted(values[1] for _, _, values, _ in ops["events"]) == sorted(
        f"{seq + shift}-{who}.event" for seq in range(20) for shift, who in ((1, "a"), (0, "b"))
    )


def test_no_other_projection_folds_what_takes_the_shortcut() -> None:
    # The shortcut writes what these do, of a body that has no further fields.
    folds = {str(kind): _FOLDS[str(kind)] for kind in shortcut._COMMON}
    assert {kind: [fold.__self__.name for fold in one] for kind, one in folds.items()} == {  # type: ignore[attr-defined]
        "bus.published": ["events", "workers", "reading"],
        "bus.acked": ["events", "workers"],
        "chat.sent": ["chat", "counts"],
    }
