"""Bodies and tables of another shape than ours: named by who looks, and no reason to stop."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tripod import bus
from tripod.ledger import Entry
from tripod.projections.bus.tables import render_event
from tripod.projections.chat.tables import chat_line_size, render_chat_line
from tripod.projections.decisions.tables import render_decision_piece
from tripod.projections.engine import create_tables, fold_into
from tripod.team.adoption import init
from tripod.team.team import Team

NO_SOURCE: Any = None


@pytest.mark.parametrize("observed", [0, False])
@pytest.mark.parametrize("render", [render_event, render_chat_line, render_decision_piece])
def test_what_is_no_observation_is_not_taken_for_none(
    render: Callable[[Any, dict[str, Any]], bytes], observed: object
) -> None:
    body = {"observed": observed, "text": {"text": "x"}, "time": 1, "handle": "ann"}
    with pytest.raises(TypeError, match="not iterable"):
        render(NO_SOURCE, body)
    with pytest.raises(TypeError, match="not iterable"):
        chat_line_size(body)


def test_a_further_column_of_the_manifest_stops_no_command(tmp_path: Path) -> None:
    init(str(tmp_path))
    with closing(sqlite3.connect(tmp_path / ".nbs" / "ledger.db")) as db:
        db.execute("ALTER TABLE manifest ADD COLUMN more INTEGER")
        db.commit()
    with Team(str(tmp_path)) as team:
        bus.publish(team, "ann", "note", "low", "goes on")
        assert team.warnings == []


def test_a_name_that_is_a_list_does_not_stop_the_fold_of_other_entries() -> None:
    asked = {"role": "worker", "subject": "x", "attempt": 1}
    entries = [
        Entry(seq, f"id{seq}", kind, "agents/x", "ann", "", b"", b"", b"", asked | {"spawn": spawn})
        for seq, (kind, spawn) in enumerate(
            [
                ("agent.requested", "one"),
                ("agent.requested", ["two"]),
                ("agent.started", "one"),
                ("agent.requested", "three"),
            ]
        )
    ]
    refused: list[int] = []
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        create_tables(db)
        fold_into(db, entries, lambda _: None, lambda entry, _: refused.append(entry.seq))
        agents = db.execute("SELECT spawn, state FROM agents ORDER BY seq").fetchall()
    assert (refused, agents) == ([1], [("one", "started"), ("three", "requested")])
