"""References made through the team's own command are bound to a message, and held to it exactly."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from specimens import build, copy, database, forge, read
from team_files import outcome

from verify.evidence import collect
from verify.run import run


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A sound team directory, made once."""
    return build(str(tmp_path_factory.mktemp("sound")))


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
        (lambda ref: ref | {"line": 9}, "the entry resolves other references than"),
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
    (found,) = outcome(report, "chat-refs-resolve").findings
    assert says in found.message
    assert (found.seq, found.severity, report.exit_code) == (seq, "failure", 1)


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
