"""The lives of a sound team end well, and an answer that is not as expected is found."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import pytest

from torture import lives
from torture.lives import LIVES, Life
from torture.teams import Result
from tripod.bus import events
from tripod.chat import reader


def _lived(*steps: Callable[[Life], None], seed: int = 1) -> Result:
    """What comes of the first life of a seed that has only these steps to choose from."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lives, "ACTS", steps)
        patch.setattr(lives, "STEPS", 5)
        (case,) = islice(lives.lives(LIVES[0], Path(), seed), 1)
        return case.run()


def test_a_life_with_each_act_ends_well() -> None:
    waiting = iter(lives.ACTS)

    def next_act(life: Life) -> None:
        next(waiting)(life)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lives, "STEPS", len(lives.ACTS))
        patch.setattr(lives, "ACTS", (next_act,))
        (case,) = islice(lives.lives(LIVES[0], Path(), 8), 1)
        result = case.run()
    assert not result.wrong, result.what


def test_a_message_that_nobody_is_shown_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "unread", lambda *_: [])
    result = _lived(Life.send)
    assert result.wrong
    assert "unread of" in result.what


def test_an_event_that_is_lost_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "publish", lambda *_, **__: "")
    result = _lived(Life.publish)
    assert result.wrong
    assert "pending: []" in result.what


def test_a_verifier_that_sees_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lives, "verify", lambda *_, **__: SimpleNamespace(outcomes=()))
    told = (_lived(Life.send, seed=seed) for seed in range(20))
    assert any(result.wrong and "false clean" in result.what for result in told)
