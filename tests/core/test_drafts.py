"""Each constructor builds exactly what the model of its kind accepts: no more, no less."""

import inspect
import json
from base64 import b64decode
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from tripod.ledger.canonical import MAX_INTEGER, check_value, format_value
from tripod.ledger.entry import MAX_BODY, Draft
from tripod.ledger.kinds import BY_NAME, KINDS, team
from tripod.ledger.kinds import bus as drafts_bus
from tripod.ledger.kinds import chat as drafts_chat
from tripod.ledger.kinds import pythia as drafts_pythia
from tripod.ledger.kinds.base import Content
from tripod.ledger.kinds.team import INLINE_LIMIT, content
from tripod.ledger.places import place_problem, places_problem

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
NAMES = TEXTS.filter(bool)
COUNTS = st.integers(0, MAX_INTEGER)
LONG = st.integers(INLINE_LIMIT - 2, INLINE_LIMIT + 2).flatmap(
    lambda size: st.sampled_from(["x" * size, "é" * (size // 2), "x" + "é" * (size // 2)])
)
CONTENTS = TEXTS | LONG
PLACES = st.tuples(
    st.sampled_from(["", "../", "/"]),
    st.lists(st.text("abc-é ", min_size=1, max_size=4), min_size=1, max_size=3).map("/".join),
).map("".join)
PAIRS = st.tuples(PLACES, PLACES).filter(lambda pair: places_problem(*pair) is None)
PRIORITIES = st.sampled_from(["critical", "high", "normal", "low"])
ROOTS = st.binary(min_size=32, max_size=32)
DIGESTS = ROOTS.map(bytes.hex)


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with any of the optional fields."""
    return st.fixed_dictionaries({}, optional=fields)


REFERENCES = st.builds(
    dict,
    st.fixed_dictionaries({"file": TEXTS, "line": COUNTS}),
).flatmap(
    lambda place: some(channel=NAMES, index=COUNTS, seq=COUNTS, leaf=DIGESTS).map(
        lambda more: place | more
    )
)
DECISION_IDS = st.integers(0, 10**16 - 1).map("D-{}".format)
DECISIONS = st.fixed_dictionaries(
    {
        "id": DECISION_IDS,
        "number": COUNTS,
        "title": TEXTS,
        "chat_ref": TEXTS,
        "participants": TEXTS,
        "artefacts": TEXTS,
        "risk_tags": TEXTS,
        "status": TEXTS,
        "rationale": TEXTS,
        "refs": st.lists(REFERENCES, max_size=3),
    },
    optional={"supersedes": TEXTS},
)

CONSTRUCTORS: dict[str, tuple[str, st.SearchStrategy[Draft]]] = {
    "opened": (
        "ledger.opened",
        PAIRS.flatmap(
            lambda pair: st.builds(
                team.opened,
                project=TEXTS,
                origin=NAMES,
                created=TEXTS,
                scribe=TEXTS,
                events=st.just(pair[0]),
                chat=st.just(pair[1]),
            )
        ),
    ),
    "adopted": ("ledger.adopted", st.builds(team.adopted, COUNTS, st.lists(TEXTS))),
    "displaced": (
        "file.displaced",
        st.builds(team.displaced, NAMES, TEXTS, st.none() | st.binary() | CONTENTS.map(str.encode)),
    ),
    "published": (
        "bus.published",
        st.builds(
            team.published,
            name=NAMES,
            us=COUNTS,
            source=TEXTS,
            type_=TEXTS,
            priority=PRIORITIES,
            payload=CONTENTS,
            size=COUNTS,
            to=st.none() | NAMES,
        ),
    ),
    "acked": ("bus.acked", st.builds(team.acked, NAMES, TEXTS)),
    "acked_all": (
        "bus.acked-all",
        st.builds(team.acked_all, COUNTS, TEXTS, st.none() | TEXTS, st.just("") | NAMES),
    ),
    "place_added": (
        "place.added",
        st.builds(
            team.place_added,
            st.sampled_from(["chat", "events"]),
            st.text("abcXYZ019", min_size=1, max_size=40),
            PLACES.filter(lambda place: place_problem(place) is None)
            | st.sampled_from([".", ".."]),
        ),
    ),
    "pruned": ("bus.pruned", st.builds(team.pruned, st.lists(NAMES), COUNTS, TEXTS)),
    "channel_created": (
        "chat.created",
        st.builds(team.channel_created, NAMES, TEXTS, st.none() | COUNTS),
    ),
    "sent": (
        "chat.sent",
        st.builds(
            team.sent,
            channel=NAMES,
            index=COUNTS,
            handle=TEXTS,
            time=COUNTS,
            text=CONTENTS,
            mentions=st.lists(
                st.tuples(TEXTS, st.sampled_from(["mention", "query", "interrupt"])), max_size=3
            ),
        ),
    ),
    "read": (
        "chat.read",
        st.builds(
            drafts_chat.read,
            channel=NAMES,
            handle=NAMES,
            upto=COUNTS,
            beyond=st.lists(st.tuples(COUNTS, COUNTS), max_size=3),
            lines=COUNTS,
        ),
    ),
    "deleted": (
        "chat.deleted",
        st.builds(
            drafts_chat.deleted,
            channel=NAMES,
            first=COUNTS,
            count=COUNTS,
            size=COUNTS,
            after=COUNTS,
            last_writer=TEXTS,
            last_time=COUNTS,
            removed=st.lists(st.tuples(TEXTS, COUNTS), max_size=3),
            actor=TEXTS,
        ),
    ),
    "rotated": (
        "chat.rotated",
        st.builds(
            team.rotated,
            channel=NAMES,
            count=COUNTS,
            size=COUNTS,
            archive=NAMES,
            header=st.binary() | CONTENTS.map(str.encode),
            stop=st.none() | COUNTS,
        ),
    ),
    "log_begun": ("log.begun", st.builds(team.log_begun, TEXTS, TEXTS)),
    "decided": ("decision.logged", st.builds(team.decided, DECISIONS, TEXTS)),
    "key_set": ("key.set", st.builds(team.key_set, NAMES, st.none() | TEXTS)),
    "seal_made": (
        "seal.made",
        st.builds(
            team.seal_made,
            NAMES,
            COUNTS,
            st.sampled_from(["asked", "checkpoint", "decision", "policy", "export"]),
        ),
    ),
    "anchor_received": (
        "anchor.received",
        st.builds(
            team.anchor_received,
            st.sampled_from(["git", "pin", "witness", "tsa"]),
            COUNTS,
            ROOTS,
            NAMES,
            st.binary() | CONTENTS.map(str.encode),
        ),
    ),
    "forked_from": (
        "ledger.forked-from",
        st.builds(
            team.forked_from,
            NAMES,
            COUNTS,
            ROOTS,
            TEXTS,
            st.none() | NAMES,
            note=st.none() | TEXTS,
        ),
    ),
    "claimed": (
        "bus.claimed",
        st.builds(
            drafts_bus.claimed,
            name=NAMES,
            event=COUNTS,
            by=NAMES,
            until=COUNTS,
            attempt=COUNTS.filter(bool),
        ),
    ),
    "released": (
        "bus.released",
        st.builds(drafts_bus.released, name=NAMES, event=COUNTS, actor=NAMES),
    ),
    "seen": ("bus.seen", st.builds(drafts_bus.seen, NAMES, COUNTS)),
    "pythia_isolated": (
        "pythia.isolated",
        st.builds(
            drafts_pythia.pythia_isolated,
            NAMES,
            st.sampled_from(["namespace", "folder"]),
            st.lists(NAMES, max_size=3),
            st.none() | TEXTS,
        ),
    ),
    "pythia_assessed": (
        "pythia.assessed",
        st.builds(
            drafts_pythia.pythia_assessed,
            event=COUNTS,
            spawn=st.none() | NAMES,
            first=DECISION_IDS,
            last=DECISION_IDS,
            decisions=COUNTS,
            confidence=st.sampled_from(["high", "medium", "low"]),
            cited=st.lists(DECISION_IDS, max_size=3),
            text=CONTENTS,
            message=COUNTS,
            actor=NAMES,
        ),
    ),
    "pythia_failed": (
        "pythia.failed",
        st.builds(
            drafts_pythia.pythia_failed,
            COUNTS,
            st.lists(NAMES, max_size=3),
            st.lists(TEXTS, max_size=3),
        ),
    ),
    "enrolled": ("actor.enrolled", st.builds(team.enrolled, NAMES, COUNTS, NAMES, TEXTS)),
    "revoked": ("actor.revoked", st.builds(team.revoked, NAMES, COUNTS, NAMES, NAMES, TEXTS)),
    "redacted": (
        "redacted",
        st.builds(
            team.redacted,
            seq=COUNTS,
            kind=st.just("decision.logged"),
            cause=NAMES,
            reason=NAMES,
            by=NAMES,
            keep=DECISIONS.map(lambda body: body | {"v": 1}),
        ),
    ),
}


MODULES = (team, drafts_bus, drafts_chat, drafts_pythia)


def constructors() -> list[str]:
    """The functions that the modules offer and that give a draft."""
    return [
        name
        for module in MODULES
        for name, made in inspect.getmembers(module, inspect.isfunction)
        if made.__module__ == module.__name__ and not name.startswith("_")
        if made.__annotations__.get("return") == "Draft"
    ]


def test_every_constructor_is_tried_here() -> None:
    assert sorted(constructors()) == sorted(CONSTRUCTORS)


@pytest.mark.parametrize("name", CONSTRUCTORS)
@given(data=st.data())
def test_the_model_accepts_the_body_and_gives_it_back(name: str, data: st.DataObject) -> None:
    kind, strategy = CONSTRUCTORS[name]
    draft = data.draw(strategy)
    assert draft.kind == kind
    check_value(draft.body)
    model = BY_NAME[kind].model.model_validate(draft.body)
    assert model.model_dump(exclude_none=True) == draft.body
    stream = BY_NAME[kind].stream
    assert draft.stream.startswith(stream) if stream.endswith("/") else draft.stream == stream
    # The id says which entry is erased, or which change of which key it is: each once.
    named = name in ("redacted", "enrolled", "revoked", "place_added")
    assert (draft.id is not None, draft.cause is not None) == (named, name == "redacted")


@pytest.mark.parametrize("name", CONSTRUCTORS)
@given(data=st.data())
def test_the_model_takes_nothing_else(name: str, data: st.DataObject) -> None:
    kind, strategy = CONSTRUCTORS[name]
    draft = data.draw(strategy)
    model = BY_NAME[kind].model
    for other in (
        draft.body | {"unheard-of": "x"},
        draft.body | {"v": 2},
        draft.body | {"v": "1"},
        {field: value for field, value in draft.body.items() if field != "v"},
        {field: 1.5 if type(value) is int else value for field, value in draft.body.items()},
    ):
        with pytest.raises(ValidationError):
            model.model_validate(other)


DECISION = {"id": "D-1", "number": 1, "title": "t", "rationale": "because", "refs": []}


@pytest.mark.parametrize(
    ("draft", "stream", "actor", "body"),
    [
        (
            team.opened(project="p", origin="o", created="then", scribe="s", events="e", chat="c"),
            "ledger",
            "tripod",
            {
                "project": "p",
                "origin": "o",
                "created": "then",
                "scribe": "s",
                "events": "e",
                "chat": "c",
            },
        ),
        (
            team.adopted(2, ("a", "b")),
            "ledger",
            "tripod",
            {"files": 2, "left_alone": ["a", "b"]},
        ),
        (
            team.displaced("a/b", "why", b"x"),
            "files/a/b",
            "tripod",
            {"path": "a/b", "reason": "why", "content": {"text": "x"}},
        ),
        (
            team.displaced("a/b", "why", None),
            "files/a/b",
            "tripod",
            {"path": "a/b", "reason": "why"},
        ),
        (
            team.published(
                name="n", us=1, source="ann", type_="t", priority="low", payload="p", size=9
            ),
            "bus",
            "ann",
            {
                "name": "n",
                "us": 1,
                "source": "ann",
                "type": "t",
                "priority": "low",
                "payload": {"text": "p"},
                "size": 9,
            },
        ),
        (team.acked("n", "ann"), "bus", "ann", {"name": "n"}),
        (team.acked_all(3, "ann", "bob"), "bus", "ann", {"count": 3, "source": "bob"}),
        (team.acked_all(3, "ann", None), "bus", "ann", {"count": 3}),
        (
            drafts_bus.claimed(name="n", event=3, by="ann", until=9, attempt=2),
            "bus",
            "ann",
            {"name": "n", "event": 3, "by": "ann", "until": 9, "attempt": 2},
        ),
        (
            drafts_bus.released(name="n", event=3, actor="ann"),
            "bus",
            "ann",
            {"name": "n", "event": 3},
        ),
        (drafts_bus.seen("ann", 5), "bus", "ann", {"reader": "ann", "up_to": 5}),
        (
            drafts_pythia.pythia_isolated("r", "folder", ["chat"], "no bwrap"),
            "pythia",
            "tripod",
            {"spawn": "r", "level": "folder", "hidden": ["chat"], "problem": "no bwrap"},
        ),
        (
            drafts_pythia.pythia_assessed(
                event=3,
                spawn=None,
                first="D-1",
                last="D-2",
                decisions=2,
                confidence="low",
                cited=["D-2"],
                text="x",
                message=9,
                actor="ann",
            ),
            "pythia",
            "ann",
            {
                "event": 3,
                "origin": "recorded",
                "first": "D-1",
                "last": "D-2",
                "decisions": 2,
                "confidence": "low",
                "cited": ["D-2"],
                "content": {"text": "x"},
                "sha256": "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881",
                "message": 9,
            },
        ),
        (
            drafts_pythia.pythia_failed(3, ["r", "s"], ["it printed nothing"]),
            "pythia",
            "tripod",
            {"event": 3, "spawns": ["r", "s"], "problems": ["it printed nothing"]},
        ),
        (team.pruned(("a", "b"), 7, "ann"), "bus", "ann", {"names": ["a", "b"], "bytes": 7}),
        (team.channel_created("c", "ann"), "chat/c", "ann", {"channel": "c"}),
        (
            team.sent(channel="c", index=4, handle="ann", time=5, text="hi"),
            "chat/c",
            "ann",
            {"channel": "c", "index": 4, "handle": "ann", "time": 5, "text": {"text": "hi"}},
        ),
        (
            team.rotated(channel="c", count=3, size=9, archive="c-1", header=b"h"),
            "chat/c",
            "tripod",
            {"channel": "c", "count": 3, "size": 9, "archive": "c-1", "header": {"text": "h"}},
        ),
        (
            team.sent(
                channel="c",
                index=4,
                handle="ann",
                time=5,
                text="@bob!",
                mentions=[("bob", "interrupt")],
            ),
            "chat/c",
            "ann",
            {
                "channel": "c",
                "index": 4,
                "handle": "ann",
                "time": 5,
                "text": {"text": "@bob!"},
                "mentions": [{"handle": "bob", "how": "interrupt"}],
            },
        ),
        (
            drafts_chat.read(channel="c", handle="ann", upto=3, beyond=[(5, 7)], lines=9),
            "chat/c",
            "ann",
            {
                "channel": "c",
                "handle": "ann",
                "upto": 3,
                "beyond": [{"first": 5, "stop": 7}],
                "lines": 9,
            },
        ),
        (
            drafts_chat.deleted(
                channel="c",
                first=3,
                count=2,
                size=9,
                after=5,
                last_writer="bob",
                last_time=4,
                removed=[("ann", 2)],
                actor="eve",
            ),
            "chat/c",
            "eve",
            {
                "channel": "c",
                "first": 3,
                "count": 2,
                "size": 9,
                "after": 5,
                "last_writer": "bob",
                "last_time": 4,
                "removed": [{"handle": "ann", "count": 2}],
            },
        ),
        (team.log_begun("h", "ann"), "decisions", "ann", {"header": {"text": "h"}}),
        (team.decided(DECISION, "ann"), "decisions", "ann", DECISION),
        (team.key_set("o+1+k", None), "ledger", "tripod", {"vkey": "o+1+k"}),
        (team.key_set("o+1+k", "n"), "ledger", "tripod", {"vkey": "o+1+k", "note": "n"}),
        (
            team.seal_made("n", 7, "asked"),
            "ledger",
            "tripod",
            {"note": "n", "size": 7, "reason": "asked"},
        ),
        (
            team.anchor_received("git", 7, bytes(32), "origin/main", b"x"),
            "ledger",
            "tripod",
            {
                "method": "git",
                "size": 7,
                "root": "00" * 32,
                "name": "origin/main",
                "receipt": {"text": "x"},
            },
        ),
        (
            team.forked_from("o", 7, bytes(32), "why", "n", note="s"),
            "ledger",
            "tripod",
            {
                "origin": "o",
                "size": 7,
                "root": "00" * 32,
                "reason": "why",
                "seal": "n",
                "note": "s",
            },
        ),
    ],
)
def test_what_is_given_is_what_the_draft_says(
    draft: Draft, stream: str, actor: str, body: dict[str, Any]
) -> None:
    assert draft == Draft(draft.kind, stream, actor, body | {"v": 1})


def test_every_kind_is_listed_once() -> None:
    assert len(BY_NAME) == len(KINDS)
    assert len({kind.model for kind in KINDS}) == len(KINDS)
    for kind in KINDS:
        assert kind.model.__doc__
        assert BY_NAME[kind.name] is kind


# Contents --------------------------------------------------------------------------------------


def test_a_text_over_16_kib_is_long() -> None:
    assert INLINE_LIMIT == 16_384


@given(st.binary(max_size=64) | CONTENTS.map(str.encode))
@example(b"\0" * INLINE_LIMIT)
@example(b"\0" * (INLINE_LIMIT // 3))
@example(b"\0" * (INLINE_LIMIT // 3 + 1))
@example(b"\n" * INLINE_LIMIT)
@example(b"\xff" * INLINE_LIMIT)
@example(b"\xff" * (INLINE_LIMIT + 1))
@example(b"x" * INLINE_LIMIT)
@example(b"x" * (INLINE_LIMIT + 1))
def test_contents_hold_the_bytes_exactly(data: bytes) -> None:
    blobs: list[bytes] = []
    body = content(data, blobs)
    Content.model_validate(body)
    if len(data) > INLINE_LIMIT:
        assert body == {"sha256": sha256(data).hexdigest(), "size": len(data)}
        assert blobs == [data]
    else:
        assert blobs == []
        read = body["text"].encode() if "text" in body else b64decode(body["base64"])
        assert read == data
        assert ("text" in body) == is_text(data)
    assert len(format_value(body)) < MAX_BODY * 5 // 8


def is_text(data: bytes) -> bool:
    """Whether bytes are UTF-8, and at most twice as long as JSON writes them."""
    try:
        return len(json.dumps(data.decode(), ensure_ascii=False).encode()) - 2 <= 2 * INLINE_LIMIT
    except UnicodeDecodeError:
        return False


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"text": "a", "base64": "YQ=="},
        {"text": "a", "size": 1},
        {"sha256": "ab" * 32},
        {"size": 1},
        {"sha256": "AB" * 32, "size": 1},
        {"sha256": "ab" * 32 + "\n", "size": 1},
        {"sha256": "ab" * 32, "size": -1},
        {"sha256": "ab" * 32, "size": 2**53},
        {"text": b"a"},
        {"sha256": "ab" * 32, "size": 1, "text": "a"},
    ],
)
def test_contents_are_one_of_three(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Content.model_validate(body)


@pytest.mark.parametrize(
    "make",
    [
        lambda text: team.published(
            name="n", us=1, source="s", type_="t", priority="low", payload=text, size=1
        ),
        lambda text: team.sent(channel="c", index=0, handle="h", time=1, text=text),
        lambda text: team.displaced("path", "reason", text.encode()),
        lambda text: team.rotated(
            channel="c", count=1, size=1, archive="c-1", header=text.encode()
        ),
    ],
)
def test_a_long_text_travels_as_a_blob_with_its_draft(make: Callable[[str], Draft]) -> None:
    assert make("x" * INLINE_LIMIT).blobs == ()
    assert make("é" * INLINE_LIMIT).blobs == (("é" * INLINE_LIMIT).encode(),)


def test_an_event_without_payload_has_none() -> None:
    draft = team.published(
        name="n", us=1, source="s", type_="t", priority="low", payload="", size=0
    )
    assert "payload" not in draft.body
