"""A regression is seen against the history; other packages are set to work as they say."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import appends, contestant, history, peers, plots, scale
from benchmarks.measure import Pair, Row, cost_row, rate_row, time_row


def rows(cost: float, rate: float, ms: float) -> list[Row]:
    return [
        cost_row("start", "a start / its floor", [Pair(cost, 1.0)]),
        rate_row("append", "an append / its floor", [Pair(1.0, rate)], 100),
        time_row("proof", "a proof", [ms / 1000], 2),
    ]


@pytest.mark.parametrize(
    ("cost", "rate", "ms", "worse"),
    [
        (1.0, 0.5, 1.0, []),
        (1.19, 0.42, 1.0, []),
        (0.5, 2.0, 1.0, []),
        (1.3, 0.5, 1.0, ["a start / its floor: 1.30 x, and it was 1.00 x: 30% worse"]),
        (1.0, 0.4, 1.0, ["an append / its floor: 0.40 x, and it was 0.50 x: 25% worse"]),
        (1.0, 0.5, 9.0, []),  # milliseconds say more about the machine
    ],
)
def test_a_ratio_that_is_a_fifth_worse_is_told(
    tmp_path: Path, cost: float, rate: float, ms: float, worse: list[str]
) -> None:
    path = tmp_path / "history.json"
    assert list(history.slower(history.newest(path), rows(1, 1, 1))) == []
    history.add(path, rows(9.0, 9.0, 9.0), "an older machine")
    history.add(path, rows(1.0, 0.5, 1.0), "a machine")
    assert len(json.loads(path.read_text())) == 2
    assert list(history.slower(history.newest(path), rows(cost, rate, ms))) == worse


def test_a_run_of_some_rows_leaves_the_others_in_the_history(tmp_path: Path) -> None:
    path = tmp_path / "history.json"
    history.add(path, rows(1.0, 0.5, 1.0), "a machine")
    history.add(path, rows(2.0, 0.5, 1.0)[:1], "a machine")
    found = history.newest(path)
    assert found["start"]["median"] == 2
    assert found["append"]["median"] == 0.5


def test_a_plot_goes_through_the_sizes_in_order() -> None:
    figures = {
        "scale-all-100000": {"median": 5.0},
        "scale-all-20000": {"median": 1.0},
        "scale-all-memory-20000": {"median": 60.0},
    }
    assert plots.points(figures, "scale-all-") == [(20_000, 1.0), (100_000, 5.0)]
    assert plots.points(figures, "scale-all-memory-") == [(20_000, 60.0)]
    assert plots.points(figures, "scale-rebuild-") == []


def test_every_line_of_a_plot_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "SMALLEST", 400)
    monkeypatch.setattr(scale, "ACTS", 3)
    monkeypatch.setattr(appends, "ONE_BY_ONE", 3)
    found = scale.rows(str(tmp_path), 400, 1, lambda _: None)
    names = {row.name.removesuffix("400") for row in found}
    for plot in plots.PLOTS:
        assert plot.lines.keys() <= names


def test_each_peer_is_set_up_by_its_name() -> None:
    assert {peer.name for peer in peers.PEERS} == contestant.CONTESTANTS.keys()


def test_a_peer_does_what_it_is_told_in_a_process_of_its_own(tmp_path: Path) -> None:
    lines = (["append", ["one", "two"]], ["batch", ["three"] * 3], ["append", ["last"]])
    told = "".join(json.dumps(line) + "\n" for line in (*lines, ["verify", ["6"]], ["fly", []]))
    program = Path(contestant.__file__)
    done = subprocess.run(
        [sys.executable, program, "git", tmp_path],
        input=told, capture_output=True, text=True, check=True,
    )  # fmt: skip
    *took, none = map(json.loads, done.stdout.splitlines())
    assert none is None
    assert len(took) == 4
    assert all(seconds > 0 for seconds in took)
    said = subprocess.run(
        ["git", "log", "--reverse", "--format=%s", "notes"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert said.split() == ["one", "two", "three", "three", "three", "last"]
    wrong = subprocess.run(
        [sys.executable, program, "git", tmp_path],
        input=json.dumps(["verify", ["7"]]), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "the package finds its own ledger wrong" in wrong.stderr
