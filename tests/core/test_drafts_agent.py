"""Constructors of drafts about agents: what the models of their kinds accept, no more, no less."""

import inspect
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tripod.ledger.canonical import MAX_INTEGER, check_value
from tripod.ledger.entry import Draft
from tripod.ledger.kinds import BY_NAME
from tripod.ledger.kinds import agents as drafts
from tripod.projections.erasure import MARK, stand_in

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
NAMES = TEXTS.filter(bool)
COUNTS = st.integers(0, MAX_INTEGER)
DIGESTS = st.binary(min_size=32, max_size=32).map(bytes.hex)
OUTPUTS = st.binary() | st.just(b"x" * 20_000) | st.tuples(DIGESTS, COUNTS)

CONSTRUCTORS: dict[str, tuple[str, st.SearchStrategy[Draft]]] = {
    "agent_requested": (
        "agent.requested",
        st.builds(
            drafts.agent_requested,
            spawn=NAMES,
            role=NAMES,
            subject=NAMES,
            attempt=COUNTS,
            spec=st.binary(),
            actor=TEXTS,
        ),
    ),
    "agent_started": (
        "agent.started",
        st.builds(drafts.agent_started, NAMES, COUNTS, COUNTS, DIGESTS),
    ),
    "agent_ended": (
        "agent.ended",
        st.builds(
            drafts.agent_ended,
            spawn=NAMES,
            status=st.sampled_from(["ok", "nonzero", "not_started"]),
            wall_ms=COUNTS,
            stdout=OUTPUTS,
            stderr=OUTPUTS,
            unsupported=st.lists(TEXTS),
            problem=st.none() | TEXTS,
            exit_code=st.none() | COUNTS,
            signal=st.none() | COUNTS,
            session=st.none() | TEXTS,
            usage=st.none() | st.dictionaries(st.text("abc_"), COUNTS),
            cost=st.none() | TEXTS,
        ),
    ),
    "agent_abandoned": ("agent.abandoned", st.builds(drafts.agent_abandoned, NAMES, TEXTS)),
    "delivered": (
        "delivered",
        st.builds(
            drafts.delivered,
            NAMES,
            st.sampled_from(["prompt", "tool_result", "file"]),
            st.binary() | st.just(b"x" * 20_000),
            st.lists(COUNTS),
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
    assert (draft.kind, draft.stream) == (kind, f"agents/{draft.body['spawn']}")
    for other in (draft.body | {"unheard-of": "x"}, draft.body | {"v": 2}):
        with pytest.raises(ValidationError):
            model.model_validate(other)


SECRET = "no-one else may read this"
BODIES: dict[str, dict[str, Any]] = {
    "agent.requested": drafts.agent_requested(
        spawn="s", role="r", subject="x", attempt=2, spec=SECRET.encode(), actor="a"
    ).body,
    "agent.ended": drafts.agent_ended(
        spawn="s",
        status="nonzero",
        wall_ms=3,
        stdout=SECRET.encode(),
        stderr=SECRET.encode(),
        unsupported=[SECRET],
        problem=SECRET,
        exit_code=1,
        session=SECRET,
    ).body,
    "delivered": drafts.delivered("s", "prompt", SECRET.encode(), [3, 4]).body,
}


@pytest.mark.parametrize("kind", BODIES)
def test_what_stands_for_an_erased_one_keeps_what_the_rules_need(kind: str) -> None:
    keep = stand_in(kind, BODIES[kind])
    assert SECRET not in str(keep)
    assert MARK in str(keep)
    assert keep["spawn"] == "s"
    assert keep.get("sources", [3, 4]) == [3, 4]
    assert keep.get("status", "nonzero") == "nonzero"
    assert stand_in(kind, keep) == keep
    BY_NAME[kind].model.model_validate(keep)
