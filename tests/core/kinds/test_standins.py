"""What stands for an erased body: of its kind, the same again when asked again, without texts."""

import json
from typing import Any

import pytest
from drafts import pythia_assessed, pythia_failed
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from story import Step, Story, folder
from strategies import FEWER, stories

from tripod.ledger.entry import Draft, check_canonical
from tripod.ledger.kinds.base import MARK
from tripod.ledger.kinds.models import model_of
from tripod.ledger.kinds.redaction import REDACTED
from tripod.ledger.kinds.registry import BY_NAME, KINDS
from tripod.projections.chat.format import parse_line
from tripod.projections.decisions.format import parse_decision
from tripod.projections.erasure import is_erasable, tombstone

TEXT = "no-one else may read this"


ERASABLE = {
    "bus.published", "chat.sent", "chat.unreadable", "chat.header-seen", "chat.rotated",
    "log.begun", "decision.logged", "log.noted", "log.rotated", "config.changed", "worker.written",
    "evidence.kept", "file.seen", "file.displaced", "agent.requested", "agent.ended", "delivered",
    "pythia.assessed", "pythia.failed", "worker.spawned", "worker.continued", "worker.escalated",
    "worker.ended", "peer.entry", "session.imported", "session.read",
    "nova.opened", "nova.turn.recorded", "nova.turn.missed", "human.decided", "nova.finalized",
}  # fmt: skip


def test_bodies_that_hold_texts_can_be_erased_and_no_others() -> None:
    assert {kind.name for kind in KINDS if is_erasable(kind.name)} == ERASABLE
    for kind in KINDS:
        body = {"seq": 1, "kind": kind.name, "reason": "r", "by": "b", "keep": {}, "v": 1}
        with pytest.raises(ValidationError, match=None if kind.name in ERASABLE else "be erased"):
            model_of(REDACTED).model_validate(body)


@FEWER
@given(stories())
def test_whatever_was_said_its_stand_in_fits_and_stands_for_itself(steps: list[Step]) -> None:
    with folder() as root:
        story = Story(root)
        story.run([*steps, ("sync",)])
        with story.team() as team:
            for entry in team.store.read():
                if is_erasable(entry.kind):
                    keep = tombstone(entry.kind, entry.data)
                    check_canonical(keep)
                    model_of(BY_NAME[entry.kind]).model_validate(keep)
                    assert tombstone(entry.kind, keep) == keep


OBSERVED = {"path": "a/b", "mode": 0o600, "raw": {"text": TEXT}}
BODIES: dict[str, dict[str, Any]] = {
    "chat.header-seen": {
        "channel": "live",
        "last_writer": "ann",
        "last_write": "now",
        "participants": [{"handle": "ann", "count": 2}],
        "raw": {"text": TEXT},
    },
    "chat.rotated": {
        "archive": "live-1-archive",
        "channel": "live",
        "count": 3,
        "size": 99,
        "header": {
            "text": f"=== nbs-chat ===\nlast-write: 2026-02-12T14:00:00+0000\n{TEXT}\n---\n"
        },
    },
    "log.begun": {"header": {"text": TEXT}},
    "log.rotated": {
        "archive": "log-1-archive.md",
        "archive_header": {"text": TEXT},
        "count": 2,
        "header": {"text": TEXT},
    },
    "log.noted": {"problem": TEXT},
    "chat.unreadable": {"channel": "live", "index": 4},
    "file.seen": {
        "content": {"text": TEXT},
        "path": "a/b",
        "problem": TEXT,
        "sha256": "0" * 64,
        "size": 3,
    },
    "config.changed": {
        "content": {"text": TEXT},
        "path": "policy.md",
        "problems": [{"line": 1, "key": "k", "message": TEXT}],
        "sha256": "0" * 64,
    },
    "decision.logged": {
        "artefacts": TEXT,
        "chat_ref": f"live.chat:~L7, {TEXT}",
        "id": "D-7",
        "number": 2,
        "participants": TEXT,
        "rationale": TEXT,
        "refs": [{"file": "live.chat", "line": 7}, {"file": f"{TEXT},x", "line": 1}],
        "risk_tags": TEXT,
        "status": TEXT,
        "supersedes": TEXT,
        "title": TEXT,
    },
}


@pytest.mark.parametrize("kind", BODIES)
def test_nothing_of_the_text_is_kept(kind: str) -> None:
    body = BODIES[kind] | {"observed": OBSERVED, "v": 1}
    keep = tombstone(kind, body)
    assert TEXT not in json.dumps(keep)
    assert keep["observed"]["path"] == "a/b"
    assert tombstone(kind, keep) == keep
    model_of(BY_NAME[kind]).model_validate(keep)


@pytest.mark.parametrize(
    "draft",
    [
        pythia_assessed(
            event=3, spawn="a", first="D-1", last="D-2", decisions=2, confidence="low",
            cited=["D-1"], text=TEXT, message=9, actor="pythia",
        ),
        pythia_failed(3, ["a", "b"], [TEXT, TEXT]),
    ],
)  # fmt: skip
def test_nothing_of_what_she_said_is_kept(draft: Draft) -> None:
    keep = tombstone(draft.kind, draft.body)
    assert TEXT not in json.dumps(keep)
    assert keep["event"] == 3
    assert tombstone(draft.kind, keep) == keep
    model_of(BY_NAME[draft.kind]).model_validate(keep)


def test_what_the_rules_need_is_kept() -> None:
    decided = tombstone("decision.logged", BODIES["decision.logged"] | {"v": 1})
    assert (decided["id"], decided["number"]) == ("D-7", 2)
    assert decided["chat_ref"] == "live.chat:~L7"
    rotated = tombstone("chat.rotated", BODIES["chat.rotated"] | {"v": 1})
    assert "last-write: 2026-02-12T14:00:00+0000\n" in rotated["header"]["text"]


def test_the_mark_is_no_message_and_no_decision() -> None:
    assert parse_line(MARK.encode()) is None
    assert parse_decision(f"\n{MARK}\n".encode())[0] is None


@given(st.sampled_from(["bus.acked", "ledger.opened", "redacted", "chat.created", "no.such"]))
def test_names_and_numbers_are_never_erased(kind: str) -> None:
    assert not is_erasable(kind)
    with pytest.raises(KeyError):
        tombstone(kind, {"v": 1})
