"""Constructors of drafts about workers: what the models of their kinds accept, no more, no less."""

import inspect
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tripod.ledger.canonical import MAX_INTEGER, check_value
from tripod.ledger.entry import Draft
from tripod.ledger.kinds import BY_NAME
from tripod.ledger.kinds import workers as drafts
from tripod.projections.erasure import MARK, stand_in
from tripod.verify.checks.kinds_known import stream_of

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
NAMES = TEXTS.filter(bool)
SLUGS = st.from_regex(r"[a-z]{1,5}-[0-9a-f]{4}", fullmatch=True)
COUNTS = st.integers(0, MAX_INTEGER)
DIGESTS = st.binary(min_size=32, max_size=32).map(bytes.hex)
STATES = st.sampled_from(["completed", "failed", "died", "escalated", "dismissed"])

CONSTRUCTORS: dict[str, tuple[str, st.SearchStrategy[Draft]]] = {
    "worker_spawned": (
        "worker.spawned",
        st.builds(
            drafts.worker_spawned, name=SLUGS, slug=NAMES, folder=NAMES, task=TEXTS, actor=TEXTS
        ),
    ),
    "worker_continued": (
        "worker.continued",
        st.builds(drafts.worker_continued, SLUGS, TEXTS | st.just("x" * 20_000), TEXTS),
    ),
    "worker_running": (
        "worker.running",
        st.builds(drafts.worker_running, SLUGS, NAMES, NAMES),
    ),
    "worker_escalated": (
        "worker.escalated",
        st.builds(drafts.worker_escalated, SLUGS, TEXTS, NAMES, TEXTS),
    ),
    "worker_ended": (
        "worker.ended",
        st.builds(
            drafts.worker_ended,
            name=SLUGS,
            spawn=NAMES,
            state=STATES,
            logs=st.lists(st.tuples(NAMES, DIGESTS, COUNTS)),
            problem=st.none() | TEXTS,
            event=st.none() | NAMES,
        ),
    ),
    "worker_dismissed": (
        "worker.dismissed",
        st.builds(drafts.worker_dismissed, SLUGS, NAMES, TEXTS),
    ),
    "evidence_kept": (
        "evidence.kept",
        st.builds(
            drafts.evidence_kept,
            NAMES,
            st.binary() | st.just(b"x" * 20_000),
            COUNTS,
            st.none() | st.integers(0, 0o7777),
        ),
    ),
}


def test_every_constructor_is_tried_here() -> None:
    public = inspect.getmembers(drafts, inspect.isfunction)
    made = [name for name, function in public if function.__annotations__["return"] == "Draft"]
    ours = [name for name in made if getattr(drafts, name).__module__ == drafts.__name__]
    assert sorted(name for name in ours if not name.startswith("_")) == sorted(CONSTRUCTORS)


@pytest.mark.parametrize("name", CONSTRUCTORS)
@given(data=st.data())
def test_the_model_accepts_the_body_and_nothing_else(name: str, data: st.DataObject) -> None:
    kind, strategy = CONSTRUCTORS[name]
    draft = data.draw(strategy)
    check_value(draft.body)
    model = BY_NAME[kind].model
    assert model.model_validate(draft.body).model_dump(exclude_none=True) == draft.body
    assert (draft.kind, draft.stream) == (kind, stream_of(kind, draft.body))
    for other in (draft.body | {"unheard-of": "x"}, draft.body | {"v": 2}):
        with pytest.raises(ValidationError):
            model.model_validate(other)


SECRET = "no-one else may read this"
BODIES: dict[str, dict[str, Any]] = {
    "worker.spawned": drafts.worker_spawned(
        name="w-1", slug="w", folder="/x", task=SECRET, actor="a"
    ).body,
    "worker.continued": drafts.worker_continued("w-1", SECRET, "a").body,
    "worker.escalated": drafts.worker_escalated("w-1", SECRET, "e", "a").body,
    "worker.ended": drafts.worker_ended(
        name="w-1", spawn="s", state="failed", logs=[], problem=SECRET, event="e"
    ).body,
}


@pytest.mark.parametrize("kind", BODIES)
def test_what_stands_for_an_erased_one_keeps_what_the_rules_need(kind: str) -> None:
    keep = stand_in(kind, BODIES[kind])
    assert SECRET not in str(keep)
    assert MARK in str(keep)
    assert keep["name"] == "w-1"
    assert keep.get("state", "failed") == "failed"
    assert stand_in(kind, keep) == keep
    BY_NAME[kind].model.model_validate(keep)
