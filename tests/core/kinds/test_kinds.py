"""Each kind is declared once: its drafts and its model take the same bodies, and no others."""

import json
import re
from base64 import b64decode
from collections.abc import Callable, Mapping
from functools import cache
from hashlib import sha256
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, is_typeddict

import drafts
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tripod.ledger.entry import MAX_BODY, Draft, check_canonical, format_canonical
from tripod.ledger.kinds import (
    agents,
    bus,
    chat,
    decisions,
    nova,
    peers,
    pythia,
    redaction,
    sessions,
    team,
    trust,
    workers,
)
from tripod.ledger.kinds.base import INLINE_LIMIT, MARK, Content, Kind, Limits, Observed, content
from tripod.ledger.kinds.models import body_fields, fields_of, model_of, part_model
from tripod.ledger.kinds.registry import BY_NAME, KINDS
from tripod.ledger.places import added_place_problem, places_problem
from tripod.projections.engine import PROJECTIONS
from tripod.projections.erasure import is_erasable, tombstone

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
LONG = st.integers(INLINE_LIMIT - 2, INLINE_LIMIT + 2).flatmap(
    lambda size: st.sampled_from(["x" * size, "é" * (size // 2), "x" + "é" * (size // 2)])
)
CONTENTS = TEXTS | LONG
CONTENT_OBJECTS = (st.binary() | CONTENTS.map(str.encode)).map(lambda data: content(data, []))
PLACES = st.tuples(
    st.sampled_from(["", "../", "/"]),
    st.lists(st.text("abc-é ", min_size=1, max_size=4), min_size=1, max_size=3).map("/".join),
).map("".join)
FEW = settings(max_examples=max(10, settings().max_examples // 5))
"""For what is tried with each kind."""
KIND = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


# Bodies, made from the declaration -------------------------------------------------------------


@cache
def values(hint: Any) -> st.SearchStrategy[Any]:
    """What a field of a declared type may hold, as an act gives it."""
    if hint is Content:
        return CONTENT_OBJECTS
    if is_typeddict(hint):
        return objects(fields_of(hint))
    if hasattr(hint, "__metadata__"):
        (rule,) = hint.__metadata__
        return bounded(hint.__origin__, rule)
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return st.one_of([values(one) for one in inner if one is not NoneType])
    if origin is Literal:
        return st.sampled_from(inner)
    if origin is list:
        return st.lists(values(inner[0]), max_size=3)
    if origin is dict:
        return st.dictionaries(st.text("abc_-"), values(inner[1]), max_size=3)
    simple: dict[Any, st.SearchStrategy[Any]] = {
        str: TEXTS,
        int: st.integers(0, 9),
        bytes: st.binary() | CONTENTS.map(str.encode),
        object: TEXTS,
    }
    return simple[hint]


def bounded(type_: type[object], rule: Limits) -> st.SearchStrategy[Any]:
    """Integers or texts within bounds."""
    if type_ is int:
        return st.integers(rule.low, rule.high)
    if rule.pattern is None:
        return st.text(st.characters(exclude_categories=["Cs"]), min_size=rule.low or 0)
    if rule.pattern == r"^[0-9a-f]{64}$":  # of a regex each letter is drawn for itself
        return st.text("0123456789abcdef", min_size=64, max_size=64)
    short = TEXTS if rule.high is None else TEXTS.filter(lambda text: len(text) <= 200)
    made = st.from_regex(rule.pattern.replace("$", r"\Z"), alphabet=st.characters(codec="utf-8"))
    return (
        made
        if rule.high is None
        else made.filter(lambda text: len(text) <= 200)
        | short.filter(
            lambda text: re.search(str(rule.pattern).replace("$", r"\Z"), text) is not None
        )
    )


def objects(fields: Mapping[str, tuple[Any, bool]]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with the required fields and any of the others."""
    made = {name: (values(hint), is_required) for name, (hint, is_required) in fields.items()}
    return st.fixed_dictionaries(
        {name: value for name, (value, is_required) in made.items() if is_required},
        optional={name: value for name, (value, is_required) in made.items() if not is_required},
    )


PAIRS = st.tuples(PLACES, PLACES).filter(lambda pair: places_problem(*pair) is None)
ADDED = st.tuples(
    st.sampled_from(["chat", "events"]),
    st.text("abcXYZ019", min_size=1, max_size=40),
    PLACES | st.sampled_from([".", ".."]),
).filter(lambda place: added_place_problem(*place) is None)


def held(body: dict[str, Any]) -> dict[str, Any]:
    """A body as an entry holds it: of bytes the content."""
    made = {name: content(of, []) if type(of) is bytes else of for name, of in body.items()}
    return made | {"v": 1}


RULED: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "ledger.opened": PAIRS.map(lambda pair: {"events": pair[0], "chat": pair[1]}),
    "place.added": ADDED.map(
        lambda place: dict(zip(("holds", "name", "path"), place, strict=True))
    ),
    "redacted": objects(body_fields(decisions.LOGGED)).map(
        lambda keep: {"kind": "decision.logged", "keep": held(keep)}
    ),
}
"""What a kind asks of several fields together."""


@cache
def bodies(kind: Kind[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Bodies of a kind, as acts give them."""
    made = objects(fields_of(kind.body))
    if kind.name not in RULED:
        return made
    return st.builds(lambda body, more: body | more, made, RULED[kind.name])


@st.composite
def drafted(draw: st.DrawFn, kind: Kind[Any]) -> Draft:
    """Drafts of a kind, observed where they may be."""
    observed = None
    if kind.observed or (kind.observed is False and draw(st.booleans())):
        observed = draw(values(Observed))
    return kind.draft(draw(bodies(kind)), observed=observed)


@KIND
@FEW
@given(data=st.data())
def test_the_model_accepts_what_is_drafted_and_nothing_else(
    kind: Kind[Any], data: st.DataObject
) -> None:
    draft = data.draw(drafted(kind))
    check_canonical(draft.body)
    model = model_of(kind).model_validate(draft.body)
    assert model.model_dump(exclude_none=True) == draft.body
    assert (draft.kind, draft.stream) == (kind.name, kind.stream_of(draft.body))
    assert draft.stream.startswith(kind.stream) if kind.within else draft.stream == kind.stream
    required = [name for name, (_, is_required) in body_fields(kind).items() if is_required]
    for other in (
        draft.body | {"unheard-of": "x"},
        draft.body | {"v": 2},
        draft.body | {"v": "1"},
        draft.body | {"v": True},
        {name: 1.5 if type(value) is int else value for name, value in draft.body.items()},
        *(
            {name: value for name, value in draft.body.items() if name != gone}
            for gone in (*required, "v")
        ),
    ):
        with pytest.raises(ValidationError):
            model_of(kind).model_validate(other)


@KIND
@FEW
@given(data=st.data())
def test_fields_that_are_none_are_left_out(kind: Kind[Any], data: st.DataObject) -> None:
    body = data.draw(bodies(kind))
    some = {name: None for name, (_, needed) in fields_of(kind.body).items() if not needed}
    assert kind.draft(some | body) == kind.draft(body)
    assert kind.draft(body | some).body.keys() & some.keys() == set()


@KIND
@FEW
@given(data=st.data())
def test_what_stands_for_an_erased_body_fits_and_stands_for_itself(
    kind: Kind[Any], data: st.DataObject
) -> None:
    body = data.draw(drafted(kind)).body
    assert is_erasable(kind.name) == (kind.erasure is not None)
    if kind.erasure is None:
        with pytest.raises(KeyError):
            tombstone(kind.name, body)
        return
    if kind is bus.PUBLISHED:  # its file names these: they are words
        body |= {"source": "ann", "type": "task-done"}
    if kind is chat.HEADER_SEEN:  # and its header is lines
        body |= {"last_writer": "ann", "last_write": "now", "participants": []}
    keep = tombstone(kind.name, body)
    check_canonical(keep)
    model_of(kind).model_validate(keep)
    assert tombstone(kind.name, keep) == keep
    assert kind.erasure.place(keep) == kind.erasure.place(body)
    assert {name: keep[name] for name in keep if name not in {*kind.erasure.marks, "observed"}} == {
        name: body[name] for name in body if name not in {*kind.erasure.marks, "observed"}
    }


def test_what_is_declared_of_an_erasure_are_fields_of_the_body() -> None:
    for kind in KINDS:
        if kind.erasure is not None:
            names = set(fields_of(kind.body))
            assert {*kind.erasure.marks, *kind.erasure.texts} <= names | {"observed.raw"}
            assert kind.erasure.texts or {"problem", "problems", "observed.raw"} & {
                *kind.erasure.marks
            }


def test_every_kind_is_listed_once_and_told_of() -> None:
    assert len(BY_NAME) == len(KINDS)
    assert (
        len({model_of(kind) for kind in KINDS}) == len({kind.body for kind in KINDS}) == len(KINDS)
    )
    for kind in KINDS:
        assert kind.body.__doc__ == model_of(kind).__doc__
        assert kind.body.__doc__
        assert BY_NAME[kind.name] is kind
        assert kind.actor is None or kind.actor in fields_of(kind.body)
        assert kind.stream.endswith("/") == (kind.within is not None)


def test_what_the_folds_read_is_declared() -> None:
    for projection in PROJECTIONS:
        assert projection.kinds <= BY_NAME.keys()


# Each kind, literally ---------------------------------------------------------------------------


HASH = "ab" * 32
TEXT = {"text": "x"}
FILE = {"path": "a/b.md", "sha256": HASH, "size": 1, "content": TEXT}
DECISION = {
    "id": "D-1", "number": 1, "title": "t", "chat_ref": "none yet", "participants": "ann",
    "artefacts": "none yet", "risk_tags": "none", "status": "decided", "rationale": "because",
    "refs": [],
}  # fmt: skip
KEPT = {"digest": HASH, "bytes": 1}
# Kind, its stream, who does it where nobody is named, the id, and a body.
LITERALLY: list[tuple[Kind[Any], str, str, str | None, dict[str, Any]]] = [
    (team.OPENED, "ledger", "tripod", None, {
        "origin": "o", "project": "p", "created": "then", "scribe": "s", "events": "e", "chat": "c",
    }),
    (team.ADOPTED, "ledger", "tripod", None, {"files": 2, "left_alone": ["a"]}),
    (team.PLACE_ADDED, "ledger", "tripod", "place-chat/n",
     {"holds": "chat", "name": "n", "path": "../c"}),
    (team.CONFIG_CHANGED, "config", "tripod", None, {"path": "policy.md", "sha256": ""}),
    (team.EVIDENCE_KEPT, "files/a/b.md", "tripod", None, FILE),
    (team.FILE_SEEN, "files/a/b.md", "tripod", None, FILE | {"problem": "p"}),
    (team.DISPLACED, "files/a/b.md", "tripod", None, {"path": "a/b.md", "reason": "why"}),
    (bus.PUBLISHED, "bus", "ann", None, {
        "name": "n", "us": 1, "source": "ann", "type": "t", "priority": "low", "size": 9,
        "payload": TEXT, "to": "bob",
    }),
    (bus.ACKED, "bus", "tripod", None, {"name": "n"}),
    (bus.ACKED_ALL, "bus", "tripod", None, {"count": 3, "source": "bob", "queue": "q"}),
    (bus.PRUNED, "bus", "tripod", None, {"names": ["n"], "bytes": 9}),
    (bus.CLAIMED, "bus", "ann", None,
     {"name": "n", "event": 3, "by": "ann", "until": 9, "attempt": 2}),
    (bus.RELEASED, "bus", "tripod", None, {"name": "n", "event": 3}),
    (bus.SEEN, "bus", "ann", None, {"reader": "ann", "up_to": 5}),
    (chat.CREATED, "chat/c", "tripod", None, {"channel": "c", "first": 4}),
    (chat.SENT, "chat/c", "ann", None, {
        "channel": "c", "index": 4, "handle": "ann", "time": 5, "text": TEXT,
        "mentions": [{"handle": "bob", "how": "interrupt"}],
    }),
    (chat.UNREADABLE, "chat/c", "tripod", None, {"channel": "c", "index": 4}),
    (chat.HEADER_SEEN, "chat/c", "tripod", None, {
        "channel": "c", "last_writer": "ann", "last_write": "now",
        "participants": [{"handle": "ann", "count": 2}], "raw": TEXT,
    }),
    (chat.ROTATED, "chat/c", "tripod", None,
     {"channel": "c", "count": 3, "size": 9, "archive": "c-1", "header": TEXT, "stop": 7}),
    (chat.DELETED, "chat/c", "tripod", None, {
        "channel": "c", "first": 3, "count": 2, "size": 9, "after": 5, "last_writer": "bob",
        "last_time": 4, "removed": [{"handle": "ann", "count": 2}],
    }),
    (chat.READ, "chat/c", "ann", None, {
        "channel": "c", "handle": "ann", "upto": 3, "beyond": [{"first": 5, "stop": 7}], "lines": 9,
    }),
    (chat.CURSORS_SEEN, "chat/c", "tripod", None, {
        "channel": "c", "lines": 9, "moved": [{"handle": "ann", "upto": 3}], "sha256": HASH,
        "content": TEXT,
    }),
    (decisions.BEGUN, "decisions", "tripod", None, {"header": TEXT, "file": "l.md"}),
    (decisions.LOGGED, "decisions", "tripod", None, DECISION),
    (decisions.NOTED, "decisions", "tripod", None, {"problem": "p"}),
    (decisions.ROTATED, "decisions", "tripod", None,
     {"count": 3, "archive": "a", "archive_header": TEXT, "header": TEXT}),
    (pythia.ISOLATED, "pythia", "tripod", None,
     {"spawn": "r", "level": "folder", "hidden": ["chat"], "problem": "no bwrap"}),
    (pythia.ASSESSED, "pythia", "tripod", None, {
        "event": 3, "origin": "recorded", "first": "D-1", "last": "D-2", "decisions": 2,
        "confidence": "low", "cited": ["D-2"], "content": TEXT, "sha256": HASH, "message": 9,
    }),
    (pythia.FAILED, "pythia", "tripod", None, {"event": 3, "spawns": ["a"], "problems": ["p"]}),
    (workers.WRITTEN, "workers/b", "tripod", None, FILE),
    (workers.SPAWNED, "workers/w-1", "tripod", None,
     {"name": "w-1", "slug": "w", "folder": "/x", "task": TEXT}),
    (workers.CONTINUED, "workers/w-1", "tripod", None, {"name": "w-1", "message": TEXT}),
    (workers.RUNNING, "workers/w-1", "tripod", None, {"name": "w-1", "spawn": "s", "event": "e"}),
    (workers.ESCALATED, "workers/w-1", "tripod", None,
     {"name": "w-1", "reason": TEXT, "event": "e"}),
    (workers.ENDED, "workers/w-1", "tripod", None, {
        "name": "w-1", "spawn": "s", "state": "died", "logs": [{"path": "l", **KEPT}], "event": "e",
    }),
    (workers.DISMISSED, "workers/w-1", "tripod", None, {"name": "w-1", "event": "e"}),
    (trust.KEY_SET, "ledger", "tripod", None, {"vkey": "o+1+k", "note": "n"}),
    (trust.SEAL_MADE, "ledger", "tripod", None, {"note": "n", "size": 7, "reason": "asked"}),
    (trust.ANCHOR_RECEIVED, "ledger", "tripod", None,
     {"method": "git", "size": 7, "root": HASH, "name": "origin/main", "receipt": TEXT}),
    (trust.ACTOR_ENROLLED, "ledger", "tripod", "actor-2-ann",
     {"handle": "ann", "vkey": "k", "number": 2, "note": "n"}),
    (trust.ACTOR_REVOKED, "ledger", "tripod", "actor-3-ann",
     {"handle": "ann", "vkey": "k", "number": 3, "reason": "why", "note": "n"}),
    (trust.FORKED_FROM, "ledger", "tripod", None,
     {"origin": "o", "size": 7, "root": HASH, "reason": "why", "seal": "n", "note": "s"}),
    (trust.ACCEPTED, "findings", "tripod", None,
     {"check": "drift", "fingerprint": HASH, "reason": "why"}),
    (trust.REVOKED, "findings", "tripod", None,
     {"check": "drift", "fingerprint": HASH, "reason": "why"}),
    (redaction.REDACTED, "ledger", "eve", "redacted-7", {
        "seq": 7, "kind": "decision.logged", "reason": "why", "by": "eve",
        "keep": DECISION | {"v": 1},
    }),
    (peers.TEAM_NAMED, "ledger", "tripod", "replica-ann-0123456789abcdef",
     {"team": "o", "replica": "ann-0123456789abcdef"}),
    (peers.PEER_ADDED, "peers", "tripod", None, {
        "origin": "o", "replica": "ann-0123456789abcdef", "key": "k", "how": "first-use",
    }),
    (peers.PEER_ENTRY, "peers", "tripod", peers.peer_entry_id("o", 7), {
        "origin": "o", "seq": 7, "header": TEXT, "auth": TEXT, "content": TEXT,
        "blobs": [TEXT], "keep": {"v": 1}, "place": {"actor": "ann@bob", "index": 3},
    }),
    (peers.PEER_MERGED, "peers", "tripod", None,
     {"origin": "o", "size": 7, "root": HASH, "seal": TEXT}),
    (peers.PEER_FORKED, "peers", "tripod", None,
     {"origin": "o", "ours": TEXT, "theirs": TEXT, "problem": "p"}),
    (peers.PEER_ACCEPTED, "peers", "tripod", None, {"origin": "o", "key": "k", "reason": "why"}),
    (peers.PEER_CLOSED, "peers", "tripod", None, {"origin": "o", "reason": "why"}),
    (agents.REQUESTED, "agents/s", "tripod", None, {
        "spawn": "s", "role": "r", "subject": "x", "attempt": 2, "spec": TEXT, "sha256": HASH,
        "key": HASH,
    }),
    (agents.STARTED, "agents/s", "tripod", None,
     {"spawn": "s", "pid": 3, "start_time": 4, "argv_sha256": HASH}),
    (agents.ENDED, "agents/s", "tripod", None, {
        "spawn": "s", "status": "ok", "wall_ms": 3, "stdout": KEPT | {"content": TEXT},
        "stderr": KEPT, "unsupported": [], "cost": "0.0100",
    }),
    (agents.ABANDONED, "agents/s", "tripod", None, {"spawn": "s", "reason": "why"}),
    (agents.DELIVERED, "agents/s", "tripod", None,
     {"spawn": "s", "channel": "file", "content": TEXT, "sha256": HASH, "sources": [3]}),
    (agents.ISOLATED, "agents/s", "tripod", None,
     {"spawn": "s", "level": "namespace", "hidden": ["chat"],
      "bwrap": {"path": "b", "sha256": HASH}}),
    (sessions.IMPORTED, "sessions/s", "tripod", None, {
        "session": "s", "agent": "a", "program": "codex", "file": "/w/s.jsonl", "form": "lines",
        "sha256": HASH, "bytes": 3, "lines": 1, "custody": "disk", "coverage": {"calls": 1},
        "before": HASH, "parts": TEXT,
    }),
    (sessions.READ, "sessions/s", "tripod", None,
     {"session": "s", "sha256": HASH, "exposures": TEXT}),
    (nova.OPENED, "nova/r", "tripod", None, {
        "run": "r", "question": TEXT, "sha256": HASH,
        "config": {"threshold": "0.35", "epsilon": "0.05", "window": 2, "rounds": 5,
                   "concurrency": 4, "cost": "1.0000"},
        "personas": [{"short_name": "dce", "role": "DCE", "path": "core/DCE.md",
                      "content": TEXT, "sha256": HASH}],
    }),
    (nova.TURN, "nova/r", "tripod", None, {
        "run": "r", "turn": 1, "cycle": 0, "role": "unpack", "persona": "dce", "spawn": "s",
        "content": TEXT, "parsed": TEXT, "parsed_by": "json",
        "epistemic": {"know": "0.4", "uncertainty": "0.7", "source": "stated"},
    }),
    (nova.MISSED, "nova/r", "tripod", None, {
        "run": "r", "cycle": 1, "role": "expert", "persona": "a", "spawns": ["s"], "problem": "p",
    }),
    (nova.CONVERGED, "nova/r", "tripod", None,
     {"run": "r", "cycle": 3, "syntheses": [3, 5, 7], "epsilon": "0.05"}),
    (nova.GATE, "nova/r", "tripod", None, {
        "run": "r", "cycle": 1, "synthesis": 5, "uncertainty": "0.35", "threshold": "0.35",
        "decision": "proceed",
    }),
    (nova.CRITIQUE, "nova/r", "tripod", None,
     {"run": "r", "cycle": 1, "critique": 6, "decision": "minor"}),
    (nova.ESCALATED, "nova/r", "tripod", None, {
        "run": "r", "cycle": 5, "reason": "max_rounds", "synthesis": 5, "dissenters": 0,
        "critique": 6, "critical": 1, "turns": 9, "cost": "0.0000",
    }),
    (nova.HUMAN, "nova/r", "tripod", None,
     {"run": "r", "escalated": 9, "choice": "accept", "note": TEXT}),
    (nova.FINALIZED, "nova/r", "tripod", None, {
        "run": "r", "outcome": "decided", "final": 9, "decision": TEXT, "confidence": "0.9",
        "cycles": 1, "turns": 8, "cost": "0.0000",
    }),
    (nova.CHECKPOINT, "nova/r", "tripod", None,
     {"name": "CKPT-261128-0930", "position": 9, "run": "r"}),
]  # fmt: skip


def test_each_kind_stands_here_literally() -> None:
    assert [kind for kind, *_ in LITERALLY] == list(KINDS)


@pytest.mark.parametrize(
    ("kind", "stream", "actor", "id_", "body"), LITERALLY, ids=[one[0].name for one in LITERALLY]
)
def test_what_is_given_is_what_the_draft_says(
    kind: Kind[Any], stream: str, actor: str, id_: str | None, body: dict[str, Any]
) -> None:
    seen: Observed = {"path": "a/b", "claim": "mtime"}
    observed = seen if kind.observed else None
    whole = body | {"v": 1} | ({"observed": observed} if observed else {})
    assert kind.draft(body, observed=observed) == Draft(kind.name, stream, actor, whole, id_)
    model_of(kind).model_validate(whole)
    named = kind.draft(body, "zoe", cause="c", blobs=[b"x"], observed=observed)
    assert named == Draft(kind.name, stream, "zoe", whole, id_, "c", (b"x",))


SECRET = "no-one else may read this"


@pytest.mark.parametrize(
    ("draft", "said"),
    [
        (
            drafts.agent_requested(
                spawn="s", role="r", subject="x", attempt=2, spec=SECRET.encode(), actor="a"
            ),
            {"spawn": "s", "role": "r", "subject": "x", "attempt": 2},
        ),
        (
            drafts.agent_ended(
                spawn="s",
                status="nonzero",
                wall_ms=3,
                stdout=SECRET.encode(),
                stderr=SECRET.encode(),
                problem=SECRET,
                session=SECRET,
                exit_code=1,
            ),
            {"spawn": "s", "status": "nonzero", "wall_ms": 3, "exit_code": 1},
        ),
        (
            drafts.delivered("s", "prompt", SECRET.encode(), [3, 4]),
            {"spawn": "s", "channel": "prompt", "sources": [3, 4]},
        ),
        (
            drafts.worker_spawned(name="w-1", slug="w", folder="/x", task=SECRET, actor="a"),
            {"name": "w-1", "slug": "w", "folder": "/x"},
        ),
        (drafts.worker_continued("w-1", SECRET, "a"), {"name": "w-1"}),
        (
            workers.ESCALATED.draft({"name": "w-1", "reason": SECRET.encode(), "event": "e"}),
            {"name": "w-1", "event": "e"},
        ),
        (
            drafts.worker_ended(
                name="w-1", spawn="s", state="failed", logs=[], problem=SECRET, event="e"
            ),
            {"name": "w-1", "spawn": "s", "state": "failed", "logs": [], "event": "e"},
        ),
    ],
)
def test_what_stands_for_an_erased_body_keeps_what_the_rules_need(
    draft: Draft, said: dict[str, Any]
) -> None:
    keep = tombstone(draft.kind, draft.body)
    assert SECRET not in str(keep)
    assert MARK in str(keep)
    assert said.items() <= keep.items()


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
    part_model(Content).model_validate(body)
    if len(data) > INLINE_LIMIT:
        assert body == {"sha256": sha256(data).hexdigest(), "size": len(data)}
        assert blobs == [data]
    else:
        assert blobs == []
        read = body["text"].encode() if "text" in body else b64decode(body["base64"])
        assert read == data
        assert ("text" in body) == is_text(data)
    assert len(format_canonical(body)) < MAX_BODY * 5 // 8


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
        part_model(Content).model_validate(body)


@pytest.mark.parametrize(
    "make",
    [
        lambda text: drafts.published(
            name="n", us=1, source="s", type_="t", priority="low", payload=text, size=1
        ),
        lambda text: drafts.sent(channel="c", index=0, handle="h", time=1, text=text),
        lambda text: drafts.displaced("path", "reason", text.encode()),
        lambda text: drafts.rotated(
            channel="c", count=1, size=1, archive="c-1", header=text.encode()
        ),
    ],
)
def test_a_long_text_travels_as_a_blob_with_its_draft(make: Callable[[str], Draft]) -> None:
    assert make("x" * INLINE_LIMIT).blobs == ()
    assert make("é" * INLINE_LIMIT).blobs == (("é" * INLINE_LIMIT).encode(),)


def test_an_event_without_payload_has_none() -> None:
    draft = drafts.published(
        name="n", us=1, source="s", type_="t", priority="low", payload="", size=0
    )
    assert "payload" not in draft.body
