"""The made-up team of the benchmarks is one that nothing is wrong with, and its table renders."""

import os
import re
import sqlite3
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from benchmarks import __main__ as command
from benchmarks import adoption as adoption_rows
from benchmarks import appends, child, exports, judging, sessions, table
from benchmarks import evidence as evidence_rows
from benchmarks.adoption import lay
from benchmarks.measure import Pair, Row, cost_row, growth_row, rate_row, size_row, time_row
from benchmarks.workload import Scale, fill_queue, make_team
from tripod.ledger.locator import database_of
from tripod.team import adoption
from tripod.team.team import Team
from tripod.trust.keys import sealing_key
from tripod.verify.check import FINDINGS
from tripod.verify.checks import record_agrees, seals_open
from tripod.verify.evidence import collect
from tripod.verify.recorded.files import read_session_file
from tripod.verify.run import open_run, run
from tripod.verify.sessions.exposure import SessionExposures
from tripod.verify.sessions.items import Call, Gap, Item

SMALL = Scale(2_000, rotate_above=60, rotate_count=30, retention=60_000, configured_every=700)


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_team(str(tmp_path_factory.mktemp("bench")), SMALL)


def test_the_made_up_team_is_clean(team: str) -> None:
    with collect(team) as evidence:
        report = run(evidence)
    assert [outcome for outcome in report.outcomes if outcome.verdict == FINDINGS] == []
    assert report.problem == ""
    assert report.warnings == 0


def test_the_made_up_team_does_all_that_a_team_does(team: str) -> None:
    db = sqlite3.connect(f"file:{team}/ledger.db?mode=ro", uri=True)
    kinds = dict(db.execute("SELECT kind, count(*) FROM entries GROUP BY kind"))
    db.close()
    assert sum(kinds.values()) >= SMALL.entries
    assert kinds.keys() >= {
        "bus.acked", "bus.pruned", "bus.published", "chat.rotated", "chat.sent", "config.changed",
        "decision.logged",
    }  # fmt: skip


def test_the_same_seed_gives_the_same_team(team: str, tmp_path: Path) -> None:
    again = make_team(str(tmp_path), SMALL)
    for path in ("scribe/log.md", "chat/live.chat"):
        assert Path(again, path).read_bytes() == Path(team, path).read_bytes()


def test_the_team_is_the_same_in_a_repository(tmp_path: Path) -> None:
    """The benchmarks work in a folder of a clone by default, where `init` makes a key."""
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    (tmp_path / "bench").mkdir()
    root = make_team(str(tmp_path / "bench"), Scale(300))
    with Team(root) as team:
        assert sealing_key(team.store) is None
        assert database_of(root).startswith(root)


def test_removed_files_come_back(team: str, tmp_path: Path) -> None:
    root = make_team(str(tmp_path), Scale(300))
    before = {path: path.read_bytes() for path in Path(root).rglob("*.event")}
    judging.set_aside(root, f"{root}-gone")
    assert list(Path(root).rglob("*.event")) == []
    child.rebuild(root)
    assert {path: path.read_bytes() for path in Path(root).rglob("*.event")} == before != {}


def test_each_act_of_a_child_runs(team: str) -> None:
    for act in child.ACTS.values():
        act(team)
    assert child.peak() > 1_000_000


def test_exports_grow_beside_a_sealed_team(tmp_path: Path) -> None:
    root = make_team(str(tmp_path), Scale(2_000))
    exports.seal_by_hand(root)
    for act in ("export", "more", "export-bodies", "more-bodies"):
        exports.EXPORTS[act](root)
    with collect(root) as evidence:
        size = evidence.rows
    for folder in ("headers-0", "bodies-0"):
        with open_run(f"{root}-{folder}") as evidence:
            report = run(evidence)
        assert (report.failures, report.head and report.head[0]) == (0, size)
    exports.keep_record(root)
    for check in (seals_open, record_agrees):
        ((added, others),) = evidence_rows._added(root, check, 1)
        assert 0 < added < others
    for row in evidence_rows._proofs(f"{root}/ledger.db", ""):
        assert len(row.samples) == evidence_rows.PROOFS


def test_a_ledger_without_a_tree_takes_the_same_entries(tmp_path: Path) -> None:
    with_, without = (
        evidence_rows.Ledger(str(tmp_path / str(tree)), tree=tree) for tree in (True, False)
    )
    bodies = []
    for ledger in (with_, without):
        assert ledger.append(5, 2) > 0
        bodies.append([entry.body for entry in ledger.store.read()])
    assert bodies[0] == bodies[1]
    assert (
        with_.store.head().size == without.store.db.execute("SELECT size FROM head").fetchone()[0]
    )
    assert without.store.db.execute("SELECT count(*) FROM nodes").fetchone()[0] == 0
    with_.store.close()
    without.store.close()


def test_what_a_fork_holds_for_itself_is_counted() -> None:
    if not Path("/proc/self/smaps_rollup").exists():
        assert judging.own_memory(os.getpid()) == 0
        return
    words = (
        "import sys; held = bytearray(b'x') * 30_000_000; print('.', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        (sys.executable, "-c", words), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        assert process.pid in judging.forked(os.getpid())
        assert judging.own_memory(process.pid) > 30_000_000
        assert judging.resident(process.pid) > judging.own_memory(process.pid)
        process.kill()
    assert judging.own_memory(process.pid) == judging.resident(process.pid) == 0


def test_the_forks_of_a_fork_are_counted() -> None:
    if not Path("/proc/self/smaps_rollup").exists():
        return
    words = "import subprocess, sys; subprocess.run((sys.executable, '-c', sys.argv[1]))"
    inner = "import sys; print('.', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        (sys.executable, "-c", words, inner), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        assert len(judging.forked(process.pid)) == 1
        assert set(judging.forked(process.pid)) < set(judging.forked(os.getpid()))
        process.communicate()


def test_a_queue_is_filled(tmp_path: Path) -> None:
    root = fill_queue(str(tmp_path / "queue"), 25)
    assert len(list(Path(root, "events").glob("*.event"))) == 25


def test_a_team_of_the_original_tools_is_laid_out_for_adoption(tmp_path: Path) -> None:
    project = lay(str(tmp_path / "team"), messages=30, decisions=20, events=60)
    done = adoption.init(project)
    assert (done.warnings, done.files) == ([], 62)
    with Team(f"{project}/.nbs") as opened:
        kinds = Counter(entry.kind for entry in opened.store.read())
    assert (kinds["chat.sent"], kinds["decision.logged"], kinds["bus.published"]) == (30, 20, 60)
    assert len(list(Path(project, ".nbs/events").glob("*.event"))) == 50


@pytest.mark.parametrize("program", sessions.SOURCES)
def test_a_session_is_made_up_that_its_reader_understands(
    tmp_path: Path, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "session.jsonl")
    lines = sessions.make_session(path, program, 1_500_000)
    assert 1_500_000 <= Path(path).stat().st_size < 1_700_000
    items: list[Item] = []
    found = read_session_file(path, items.append)
    assert (found.problem, found.lines, found.counts.unparsed) == ("", lines, [])
    calls = [item for item in items if isinstance(item, Call)]
    assert len({call.id for call in calls}) > len(calls) / 2 > 50
    assert not any(isinstance(item, Gap) and item.cause == "order" for item in items)
    made = []

    def start(*given: Any, **more: Any) -> SessionExposures:
        made.append(SessionExposures(*given, **more))
        return made[-1]

    monkeypatch.setattr(sessions, "SessionExposures", start)
    sessions.expose(path)
    (judged,) = made
    assert {each.sure for each in judged.found} == {True, False}
    assert any(each.shown for each in judged.found)
    assert judged.protected.is_searchable
    assert len(judged.protected.paths) == sessions.LINES // 100


ROWS = [
    rate_row("append", "appends", [Pair(2.0, 1.0), Pair(4.0, 1.0), Pair(2.0, 1.2)], 100, 0.5),
    cost_row("start", "starts", [Pair(0.3, 0.1), Pair(1.5, 0.5)], 1.6),
    cost_row("other", "no target", [Pair(1.5, 0.5)]),
    size_row("memory", "memory", [200_000_000], 300),
    growth_row("growth", "growth", [200_000_000], [100_000_000], 1.3),
    time_row("proof", "proofs", [0.00002, 0.003, 0.00005], 2.0),
]


def test_the_median_of_the_ratios_is_held_against_the_target() -> None:
    assert [(row.median, row.met) for row in ROWS] == [
        (0.5, True), (3.0, False), (3.0, None), (200.0, True), (2.0, False), (0.05, True),
    ]  # fmt: skip


def test_of_a_crowd_more_is_better(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(appends, "CROWD", 4)
    path = database_of(make_team(str(tmp_path), Scale(100), files=False))
    rate, longest = appends._crowd(path, 2, 1, ThreadPoolExecutor, 1.5)
    assert (rate.more_is_better, longest.more_is_better) == (True, False)
    assert "/s; p50" in rate.ours


def test_the_table_renders(tmp_path: Path) -> None:
    lines = table.text(ROWS).splitlines()
    assert re.split(" {2,}", lines[0]) == list(table.TITLES)
    assert re.split(" {2,}", lines[2]) == [
        "appends", "50/s", "100/s", "0.50 x (0.25 to 0.60)", "≥ 0.5 x", "yes",
    ]  # fmt: skip
    assert "≤ 300 MB" in lines[5]
    assert [value["name"] for value in table.values(ROWS)] == [row.name for row in ROWS]
    figures = table.markdown(ROWS, table.machine(str(tmp_path)))
    assert figures.count("\n|") == len(ROWS) + 2


def test_figures_are_put_into_their_place_in_a_page() -> None:
    page = f"before\n{table.BEGIN}\nold\n{table.END}\nafter\n"
    new = table.put_into_page(page, "new")
    assert new == page.replace("old", "new")
    with pytest.raises(ValueError, match="no <!-- figures -->"):
        table.put_into_page("a page", "new")


def test_what_was_not_measured_stays_in_a_page() -> None:
    same = cost_row("other", "the same in processor time", [Pair(4.0, 1.0)])
    before = [ROWS[0], same, *ROWS[1:3], same]
    page = f"{table.BEGIN}\n{table.markdown(before, 'before')}\n{table.END}\n"
    again = [cost_row("start", "starts", [Pair(9.0, 1.0)]), cost_row("x", "new", [Pair(2.0, 1.0)])]
    part = table.put_into_page(page, table.markdown([again[0], same, again[1]], "after"), part=True)
    rows = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| ")]
    names = [row[0] for row in rows]
    assert names == ["what", "appends", same.what, "starts", same.what, "no target", same.what,
                     "new"]  # fmt: skip
    assert rows[3][3].startswith("9.00 x")
    assert ("before" in part, "after" in part) == (True, False)
    whole = table.put_into_page(part, table.markdown(again, "after"))
    assert whole.count("\n| ") == 3


def test_a_row_without_target_is_neither_met_nor_missed() -> None:
    assert Row("x", "x", "", "", (1.0,)).met is None


def test_groups_of_one_run_have_folders_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Several make a team by the name of `few`."""
    seen = []

    def rows(_group: str, folder: str, _options: object) -> list[Row]:
        Path(folder, "few").mkdir()
        seen.append(folder)
        return []

    monkeypatch.setattr(command, "_rows", rows)
    monkeypatch.setattr(
        sys, "argv", ["b", "--dir", str(tmp_path), "--only", "commands", "--only", "judging"]
    )
    command.main()
    assert [Path(folder).name for folder in seen] == ["commands", "judging"]
    assert capsys.readouterr().out


def test_the_memory_of_a_command_is_its_own(tmp_path: Path) -> None:
    """Not that of the process that measures, of which Linux counts it the child."""
    held = bytearray(b"x" * 2**28)
    assert 2**20 < adoption_rows._peak((sys.executable, "-c", "pass"), str(tmp_path)) < 2**27
    assert len(held) == 2**28
