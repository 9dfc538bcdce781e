"""References made through the team's own command are bound to a message, and held to it exactly."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from specimens import copy, database, forge, read
from team_files import outcome

from tripod.chat import writer as chat_send
from tripod.decisions import reader as decisions_read
from tripod.decisions import writer as decisions_log
from tripod.errors import BadArgumentError
from tripod.projections.chat.tables import ref_to_chat_line
from tripod.team.team import Team
from tripod.verify.evidence import collect
from tripod.verify.run import run


def _first(rows: list[Any], kind: str) -> int:
    return next(seq for seq, row in enumerate(rows) if row.head["kind"] == kind)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda ref: ref | {"seq": 3}, "is bound to entry 3, which is not message 1 of live"),
        (lambda ref: ref | {"index": 0}, "which is not message 0 of live"),
        (lambda ref: ref | {"leaf": "ab" * 32}, "as it was: its leaf hash is another now"),
        (lambda ref: ref | {"seq": 45}, "is later than the decision: it is bound to entry 45"),
        (lambda ref: {k: ref[k] for k in ("file", "line", "leaf")}, "is bound to no entry"),
        (lambda ref: ref | {"file": "side.chat"}, "is bound to a message of live: that is another"),
        (lambda ref: {k: ref[k] for k in ("file", "line")}, "is bound to no message, and was made"),
    ],
)
def test_a_bound_ref_that_does_not_fit_is_named(
    sound: str, tmp_path: Path, change: Callable[[dict[str, Any]], dict[str, Any]], says: str
) -> None:
    root = copy(sound, str(tmp_path))
    rows = read(database(root))
    seq = _first(rows, "decision.logged")
    (ref,) = rows[seq].data["refs"]
    rows[seq] = rows[seq].saying(refs=[change(ref)])
    forge(root, rows)
    with collect(root) as evidence:
        report = run(evidence)
    found = outcome(report, "chat-refs-resolve").findings
    (one,) = [finding for finding in found if says in finding.message]
    others = [finding.message for finding in found if finding is not one]
    assert all("the entry resolves other references than" in message for message in others)
    assert (one.seq, one.severity, report.exit_code) == (seq, "failure", 1)


def test_the_line_of_a_bound_ref_is_that_of_its_message(sound: str, tmp_path: Path) -> None:
    """The text and the ref name another line, and the binding stays: line 9 was message 2."""
    root = copy(sound, str(tmp_path))
    rows = read(database(root))
    seq = _first(rows, "decision.logged")
    (ref,) = rows[seq].data["refs"]
    rows[seq] = rows[seq].saying(refs=[ref | {"line": 9}], chat_ref="live.chat:~L9")
    forge(root, rows)
    with collect(root) as evidence:
        (found,) = outcome(run(evidence), "chat-refs-resolve").findings
    assert "live.chat:~L9 is bound to the message of line 8 then" in found.message
    assert found.severity == "failure"


@pytest.fixture
def split(sound: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A copy of it whose chat had its oldest lines moved to an archive."""
    monkeypatch.setattr(chat_send, "ROTATE_ABOVE", 6)
    monkeypatch.setattr(chat_send, "ROTATE_COUNT", 4)
    root = copy(sound, str(tmp_path))
    with Team(root) as team:
        chat_send.send(team, "live", "bench", "one more")
    return root


def test_bound_refs_hold_when_lines_went_to_an_archive(split: str) -> None:
    """Lines are counted as the file stood when the decision was logged."""
    with Team(split) as team:
        request = decisions_log.DecisionRequest(
            "After the split", ("bench",), "Yes.", refs=["live.chat:~L7"]
        )
        decisions_log.log(team, request)
    with collect(split) as evidence:
        assert evidence.db is not None
        assert evidence.db.execute("SELECT count(*) FROM archives").fetchone() == (1,)
        assert outcome(run(evidence), "chat-refs-resolve").findings == ()


def test_a_message_in_an_archive_can_be_referred_to(split: str) -> None:
    """By the file in which it stands, as `scribe advise` gives it."""
    with Team(split) as team:
        (archive,) = team.store.db.execute("SELECT archive FROM archives").fetchone()
        ref = ref_to_chat_line(team.store.db, "live", 2)
        assert ref == f"{archive}.chat:~L9"
        logged = decisions_log.log(
            team, decisions_log.DecisionRequest("Look back", ("bench",), "Yes.", refs=[ref])
        )
        with pytest.raises(BadArgumentError, match="messages in lines 7 to 10"):
            decisions_log.log(
                team,
                decisions_log.DecisionRequest("No", ("bench",), "No.", [f"{archive}.chat:~L11"]),
            )
        (history,) = decisions_read.find(team, logged.id)
        assert history.refs[0].message is not None
    with collect(split) as evidence:
        assert outcome(run(evidence), "chat-refs-resolve").findings == ()
    rows = read(database(split))
    seq = next(n for n, row in reversed(list(enumerate(rows))) if "refs" in row.data)
    (bound,) = rows[seq].data["refs"]
    rows[seq] = rows[seq].saying(refs=[bound | {"line": 8}])
    forge(split, rows)
    with collect(split) as evidence:
        found = outcome(run(evidence), "chat-refs-resolve").findings
    assert any("is bound to the message of line 9 then" in one.message for one in found)


@pytest.mark.parametrize(
    ("said", "accepted"),
    [
        ({"no_ref": "We met."}, True),
        ({"no_ref": ""}, False),
        ({"no_ref": "We met.", "chat_ref": "line 7"}, False),
        ({"no_ref": "We met.", "observed": {"path": "scribe/log.md"}}, False),
    ],
)
def test_a_reason_of_ours_stands_for_a_reference(
    sound: str, tmp_path: Path, said: dict[str, Any], accepted: bool
) -> None:
    root = copy(sound, str(tmp_path))
    rows = read(database(root))
    seq = _first(rows, "decision.logged")
    rows[seq] = rows[seq].saying(**{"refs": [], "chat_ref": "—"} | said)
    forge(root, rows)
    with collect(root) as evidence:
        judged = outcome(run(evidence), "chat-refs-resolve")
    assert (judged.findings == ()) is accepted
    assert judged.coverage.get("no-ref", 0) == ("observed" not in said and bool(said["no_ref"]))


def test_no_ref_after_adoption_is_a_failure(sound: str, tmp_path: Path) -> None:
    root = copy(sound, str(tmp_path))
    rows = read(database(root))
    seq = _first(rows, "decision.logged")
    rows[seq] = rows[seq].saying(refs=[], chat_ref="—")
    forge(root, rows)
    with collect(root) as evidence:
        (found,) = outcome(run(evidence), "chat-refs-resolve").findings
    assert "it has no chat reference (—)" in found.message
    assert found.severity == "failure"
