"""A team with several decision logs: each grows, counts and is judged by itself; ids are shared."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from doors.inside import run, run_as
from git_repo import Git
from nbs_team import files
from story import BEGIN, Clock, Story, folder
from team_files import START, Decision, Said, outcome, write_chat, write_event, write_log

from tripod.bus import events as bus
from tripod.decisions import reader as decisions_read
from tripod.decisions import writer as decisions_log
from tripod.errors import BadArgumentError, NotFoundError
from tripod.ledger.entry import Entry
from tripod.ledger.kinds.models import model_of
from tripod.ledger.kinds.registry import BY_NAME
from tripod.projections.decisions.format import count_decision_headings
from tripod.projections.engine import file_differences
from tripod.pythia import checkpoints
from tripod.recovery import rebuild as recover
from tripod.recovery import redaction
from tripod.team import adoption
from tripod.team.team import Team
from tripod.verify.check import Report
from tripod.verify.evidence import collect
from tripod.verify.run import run as verify

HEADER = "# Decision Log\n\nProject: x\nCreated: 2020-01-01T00:00:00Z\nScribe: scribe\n"
LATER = BEGIN + 10
LIVE_HEADER = f"{HEADER}Chat: live.chat\nDecision count: 0\n\n---\n"

OLD_TABLES = """
CREATE TABLE pieces (
    seq INTEGER PRIMARY KEY, file TEXT NOT NULL, id TEXT, number INTEGER, title TEXT, status TEXT,
    supersedes TEXT
) STRICT;
CREATE INDEX pieces_id ON pieces (id);
CREATE TABLE logs (file TEXT PRIMARY KEY, seq INTEGER NOT NULL, mode INTEGER NOT NULL)
    STRICT, WITHOUT ROWID
"""
"""The tables of the projection's first version."""


@pytest.fixture
def story() -> Iterator[Story]:
    with folder() as root:
        story = Story(root)
        story.run(
            [("create", "live"), ("say", "live", "ann", "one"), ("say", "live", "bob", "two")]
        )
        story.clock.ns = BEGIN * 1_000_000_000
        yield story


def entry(second: int, title: str, mark: str = "") -> str:
    """An entry as the original's Scribe appends it to a log of a chat."""
    return (
        f"\n### D-{second} {mark}{title}\n- **Chat ref:** live.chat:~L7\n- **Participants:** ann\n"
        "- **Artefacts:** —\n- **Risk tags:** none\n- **Status:** decided\n"
        "- **Rationale:** because\n\n---\n"
    )


def log(
    story: Story, title: str, into: str | None = None, **fields: str
) -> decisions_log.LoggedDecision:
    with story.team() as team:
        request = decisions_log.DecisionRequest(
            title, ["ann"], "because", ["live.chat:~L7"], **fields
        )
        return decisions_log.log(team, request, into=into)


def judge(root: Path, *, no_ledger: bool = False) -> Report:
    with collect(str(root), no_ledger=no_ledger) as evidence:
        return verify(evidence)


def entries(story: Story) -> list[Entry]:
    with story.team() as team:
        return list(team.store.read())


def titles(team: Team, name: str | None) -> list[str]:
    return [one.title for one in decisions_read.summary(team, 99, name)]


def clean(report: Report) -> None:
    told = [one for check in report.outcomes for one in check.findings]
    assert [one for one in told if one.severity != "advice"] == []
    assert report.exit_code == 0


def headings(root: Path, *names: str) -> list[int]:
    return [count_decision_headings((root / "scribe" / name).read_bytes()) for name in names]


# Adoption ------------------------------------------------------------------------------------


def test_a_log_by_the_name_of_its_chat_is_taken_in(tmp_path: Path) -> None:
    """The original's present tools name a log after its chat: none of it is invisible."""
    for path, data in files().items():
        full = tmp_path / ".nbs" / path.replace("scribe/log", "scribe/live-log")
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_bytes(data)
    taken = adoption.init(str(tmp_path), key=False)
    assert taken.kinds["decision.logged"] == 46
    assert not any(path.startswith("scribe/") for path in taken.left_alone)
    root = tmp_path / ".nbs"
    live = (root / "scribe/live-log.md").read_bytes()
    told = {one.check: one for one in judge(root).outcomes}
    assert told["count-from-grep"].coverage["decisions"] == 46
    assert told["append-only"].verdict == "clean"
    with Team(str(root)) as team:
        assert decisions_read.count(team) == decisions_read.count(team, "live-log.md") == 46
        assert list(file_differences(team.source, team.disk)) == []
        (root / "scribe/live-log.md").unlink()
        recover.rebuild(team)
    assert (root / "scribe/live-log.md").read_bytes() == live
    words = ("--participants=ann", "--rationale=because", "--chat-ref=live.chat:~L7")
    done = run_as("nbs-scribe-log", tmp_path, ".nbs/scribe/live-log.md", "Go on", *words)
    assert done.code == 0, done.err
    assert headings(root, "live-log.md") == [47]
    assert not (root / "scribe/log.md").exists()


def test_several_logs_are_taken_in_side_by_side(story: Story) -> None:
    story.original.put("scribe/live-log.md", (LIVE_HEADER + entry(LATER + 0, "A")).encode())
    story.original.put(
        "scribe/ops-log.md",
        (
            LIVE_HEADER
            + entry(LATER + 1, "B")
            + entry(LATER + 3, "D", f"[SUPERSEDES D-{LATER + 2}] ")
        ).encode(),
    )
    story.original.put("scribe/decisions.md", entry(LATER + 2, "C").encode())  # a heading, no title
    story.original.put("scribe/notes.md", b"# Notes\n\n### D-day\n")
    with story.team() as team:
        taken = adoption.sync(team)
        assert taken.left_alone == ["scribe/notes.md"]
        assert titles(team, None) == ["A", "B", "C", "D"]
        assert [titles(team, f"{name}.md") for name in ("live-log", "ops-log", "decisions")] == [
            ["A"], ["B", "D"], ["C"],
        ]  # fmt: skip
        (found,) = decisions_read.find(team, f"D-{LATER + 2}")
        assert [one.id for one in found.later] == [f"D-{LATER + 3}"]
    counts = json.loads((story.root / "counts.json").read_text())["decisions"]
    assert counts["total"] == 4
    assert counts["by_log"] == {"decisions.md": 1, "live-log.md": 1, "ops-log.md": 2}
    clean(judge(story.root))
    for one in entries(story):
        model_of(BY_NAME[one.kind]).model_validate(one.data)


@pytest.mark.parametrize("name", ["live-log-{}-archive.md", "live-log-archive-{}.md"])
def test_the_originals_splits_of_a_named_log_are_read(story: Story, name: str) -> None:
    """The programs and the shell tool of the original give an archive two forms of a name."""
    path = story.root / "scribe/live-log.md"
    old = LIVE_HEADER + "".join(entry(LATER + 0 + n, f"T{n}") for n in range(5))
    story.original.put("scribe/live-log.md", old.encode())
    story.original.put("scribe/ops-log.md", (LIVE_HEADER + entry(LATER + 1000, "Other")).encode())
    with story.team() as team:
        team.refresh()
    archive = path.with_name(name.format("20200913-130000"))
    path.rename(archive)
    with story.team() as team:  # between the two steps of the split
        team.refresh()
        assert not team.warnings
    assert not path.exists()
    path.write_text(f"{LIVE_HEADER}\n### ARCHIVE-LINK\n- **Previous log:** x\n\n---\n", "utf-8")
    with story.team() as team:
        taken = adoption.sync(team)
        assert taken.kinds == {"log.rotated": 1}
        assert decisions_read.count(team, "live-log.md") == 5
    logged = log(story, "On", "live-log.md")
    assert logged.number == 6
    assert headings(story.root, archive.name, "live-log.md", "ops-log.md") == [5, 1, 1]
    clean(judge(story.root))


def test_a_copy_of_a_log_under_an_archives_name_is_not_taken_in_twice(story: Story) -> None:
    log(story, "One", "live-log.md")
    path = story.root / "scribe/live-log.md"
    shutil.copy(path, path.with_name("live-log-20200913-130000-archive.md"))
    with story.team() as team:
        taken = adoption.sync(team)
        assert (taken.entries, decisions_read.count(team)) == (0, 1)
        assert taken.left_alone == ["scribe/live-log-20200913-130000-archive.md"]
    clean(judge(story.root))


@pytest.mark.parametrize("cut", [1, 30, 90])
def test_a_copy_that_is_only_half_written_is_not_taken_in(story: Story, cut: int) -> None:
    log(story, "One", "live-log.md")
    log(story, "Two", "live-log.md")
    path = story.root / "scribe/live-log.md"
    half = path.read_bytes()[:-cut].replace(b"Project: ", b"Project: copy of ")
    path.with_name("live-log-20200913-130000-archive.md").write_bytes(half)
    with story.team() as team:
        assert adoption.sync(team).entries == 0
    clean(judge(story.root))


@pytest.mark.parametrize("name", ["live-log-{}-archive.md", "live-log-archive-{}.md"])
@pytest.mark.parametrize("change", ["altered", "more"])
def test_what_is_no_copy_of_a_log_is_a_log_under_an_archives_name_too(
    story: Story, name: str, change: str
) -> None:
    log(story, "One", "live-log.md")
    log(story, "Two", "live-log.md")
    path = story.root / "scribe/live-log.md"
    text = path.read_text("utf-8")
    text = text.replace("One", "Won") if change == "altered" else text + entry(LATER, "Three")
    path.with_name(name.format("20200913-130000")).write_text(text, "utf-8")

    def twice() -> int:
        (told,) = [o for o in judge(story.root).outcomes if o.check == "decision-ids-unique"]
        return told.failures

    assert twice() == 2
    with story.team() as team:
        adoption.sync(team)
        assert decisions_read.count(team) == (4 if change == "altered" else 5)
        assert decisions_read.count(team, "live-log.md") == 2
    assert twice() == 2
    logged = log(story, "On", "live-log.md")
    assert (logged.number, logged.log) == (3, "live-log.md")


# Acts ----------------------------------------------------------------------------------------


def test_each_log_is_numbered_by_itself_and_ids_are_unique_over_all(story: Story) -> None:
    names = [None, "live-log.md", "ops-log.md", "live-log.md", None]
    logged = [log(story, f"T{n}", name) for n, name in enumerate(names)]
    assert [one.id for one in logged] == [f"D-{BEGIN + n}" for n in range(5)]
    assert [one.number for one in logged] == [1, 1, 1, 2, 2]
    assert headings(story.root, "log.md", "live-log.md", "ops-log.md") == [2, 2, 1]
    bodies = [one.data for one in entries(story) if one.kind == "decision.logged"]
    assert [body.get("file") for body in bodies] == names
    clean(judge(story.root))


def test_a_team_with_log_md_alone_says_nothing_of_files(story: Story) -> None:
    """Entries of such a team are what they were before there were several logs."""
    log(story, "One")
    log(story, "Two", "log.md")
    kinds = ("log.begun", "decision.logged")
    assert all("file" not in one.data for one in entries(story) if one.kind in kinds)
    assert "by_log" not in json.loads((story.root / "counts.json").read_text())["decisions"]


def test_the_only_log_is_the_default_and_of_several_log_md(story: Story) -> None:
    log(story, "One", "live-log.md")
    assert log(story, "Two").log == "live-log.md"
    log(story, "Three", "ops-log.md")
    with pytest.raises(BadArgumentError, match=r"which log\? There are live-log.md, ops-log.md"):
        log(story, "Four")
    log(story, "Five", "log.md")
    assert log(story, "Six").log == "log.md"


def test_an_archive_whose_log_is_gone_is_read_and_never_written(story: Story) -> None:
    name = "old-log-20200101-000000-archive.md"
    story.original.put(f"scribe/{name}", (LIVE_HEADER + entry(LATER, "Old")).encode())
    story.original.put("scribe/live-log.md", LIVE_HEADER.encode())
    assert log(story, "New").log == "live-log.md"
    with pytest.raises(BadArgumentError, match="which never grows"):
        log(story, "T", name)
    assert headings(story.root, name, "live-log.md") == [1, 1]


BAD = ["notes.md", "log.txt", "../log.md", ".x.md", "a\nb.md", "x-20200913-000000-archive.md"]


@pytest.mark.parametrize("name", BAD)
def test_a_name_that_is_no_logs_begins_none(story: Story, name: str) -> None:
    story.original.put("scribe/notes.md", b"# Notes\n")
    with pytest.raises(BadArgumentError):
        log(story, "T", name)
    assert (story.root / "scribe/notes.md").read_bytes() == b"# Notes\n"
    assert not [one for one in entries(story) if one.kind == "decision.logged"]


def test_a_decision_takes_the_place_of_one_in_another_log(story: Story) -> None:
    first = log(story, "One", "live-log.md")
    second = log(story, "Two", "ops-log.md", supersedes=first.id)
    with story.team() as team:
        (found,) = decisions_read.find(team, first.id)
        assert [one.id for one in found.later] == [second.id]
        assert found.file == "live-log.md"
    clean(judge(story.root))


def test_an_interval_is_reached_in_each_log_by_itself(story: Story) -> None:
    """The seeds count by grep on the log that the reviewer reads."""
    story.original.put("events/config.yaml", b"pythia-interval: 2\n")
    asked = [
        (name, bool(log(story, f"T{n}", name).checkpoint))
        for n, name in enumerate(["a-log.md", "b-log.md", "a-log.md", "b-log.md", "b-log.md"])
    ]
    assert [name for name, is_due in asked if is_due] == ["a-log.md", "b-log.md"]
    assert outcome(judge(story.root), "pythia-fires").coverage == {
        "intervals reached": 2,
        "checkpoint events": 2,
    }
    assert judge(story.root).failures == 0
    with story.team() as team:
        points = [
            checkpoints.checkpoint_of(team, seq) for seq in checkpoints.pending_checkpoints(team)
        ]
        assert [(point.log, point.asked.decisions) for point in points] == [
            ("a-log.md", 2), ("b-log.md", 2),
        ]  # fmt: skip
        given = checkpoints.checkpoint_snapshot(team, points[1])
    assert [word in given.text for word in ("T0", "T1", "T2", "T3", "T4")] == [
        False, True, False, True, False,
    ]  # fmt: skip


def test_an_interval_of_a_named_log_without_an_event_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "scribe").mkdir()
    write_chat(tmp_path, "live", [Said(0, "ann", "hi")])
    for name in ("a-log.md", "b-log.md"):
        start = 100 if name == "b-log.md" else 1
        write_log(tmp_path, [Decision(start + n, "live.chat:~L7", "ann") for n in range(21)])
        (tmp_path / "scribe/log.md").rename(tmp_path / "scribe" / name)
    payload = f"Checkpoint at decision 20. Decisions D-{START + 100} through D-{START + 119}."
    write_event(tmp_path, 130, "pythia-checkpoint", payload)
    told = outcome(judge(tmp_path, no_ledger=True), "pythia-fires")
    (finding,) = told.findings
    assert finding.message.startswith(f"decision 20 (D-{START + 20}) reached the interval")


def test_what_a_review_without_a_range_gets_is_all_that_is_new_of_all_logs(story: Story) -> None:
    log(story, "One", "a-log.md")
    log(story, "Two", "b-log.md")
    with story.team() as team:
        published = bus.publish(team, "ann", "pythia-checkpoint", "high", "")
        (seq,) = checkpoints.pending_checkpoints(team)
        point = checkpoints.checkpoint_of(team, seq)
        assert published
        assert (point.log, point.asked.decisions) == (None, 2)
        assert "One" in checkpoints.checkpoint_snapshot(team, point).text


# Judging -------------------------------------------------------------------------------------


def test_each_file_is_counted_by_itself(story: Story) -> None:
    """One heading too many in a log, and one too few in another, do not settle each other."""
    log(story, "One", "a-log.md")
    log(story, "Two", "b-log.md")
    paths = [story.root / "scribe" / name for name in ("a-log.md", "b-log.md")]
    paths[0].write_bytes(paths[0].read_bytes() + paths[1].read_bytes().rpartition(b"\n---\n")[2])
    paths[1].write_bytes(paths[1].read_bytes().replace(b"### D-", b"## D-"))
    found = outcome(judge(story.root), "count-from-grep").findings
    assert "scribe/b-log.md" in {one.where for one in found if one.severity == "failure"}


@pytest.mark.parametrize("change", ["edit", "remove"])
def test_an_edit_of_any_log_is_a_failure(story: Story, change: str) -> None:
    log(story, "One", "a-log.md")
    log(story, "Two", "b-log.md")
    path = story.root / "scribe/b-log.md"
    if change == "edit":
        path.write_bytes(path.read_bytes().replace(b"because", b"no reason"))
    else:
        path.unlink()
    told = outcome(judge(story.root), "append-only")
    assert [one.where for one in told.findings if one.severity == "failure"] == ["scribe/b-log.md"]
    with story.team() as team:
        assert "scribe/b-log.md" in recover.rebuild(team).written
    assert headings(story.root, "a-log.md", "b-log.md") == [1, 1]


def test_the_history_of_each_log_in_git_is_judged(tmp_path: Path) -> None:
    clock = Clock(BEGIN)
    with clock.running():
        git = Git(tmp_path / "team")
        git.seconds = BEGIN + 100
        adoption.init(str(git.root), project="sample", origin="example.com/logs", key=False)
        path = ".nbs/scribe/ops-log.md"
        with Team(str(git.root / ".nbs")) as team:
            for title in ("One", "Two"):
                clock.move(5)
                request = decisions_log.DecisionRequest(title, ("ann",), "Because.")
                decisions_log.log(team, request, into="ops-log.md")
        data = (git.root / path).read_bytes()
        git.commit(path, data)
        git.commit(".nbs/scribe/notes.md", b"# Notes\n\nold\n")
        git.commit(".nbs/scribe/notes.md", b"# Notes\n\nnew\n")
        told = outcome(judge(git.root), "append-only")
        assert not [one for one in told.findings if one.severity == "failure"]
        assert told.coverage["versions in git"] == 1
        git.commit(path, data.replace(b"Because", b"Nobody asked"))
        told = outcome(judge(git.root), "append-only")
    assert path in {one.where for one in told.findings if one.severity == "failure"}


def test_numbers_of_one_log_do_not_stand_in_for_those_of_another(story: Story) -> None:
    for name in ("a-log.md", "b-log.md", "a-log.md"):
        log(story, "T", name)
    with story.team() as team:
        rows = team.store.db.execute("SELECT log, number FROM pieces ORDER BY seq").fetchall()
    assert rows == [("a-log.md", 1), ("b-log.md", 1), ("a-log.md", 2)]


def test_what_is_no_part_of_the_team_is_named_by_verify(story: Story) -> None:
    story.original.put("scribe/notes.md", b"# Notes\n")
    (story.root / "minutes").write_text("a1b2\n")
    for name in ("project-id", "control-registry-ann", "pythia-last-run"):
        (story.root / name).write_text("the original's own\n")
    (story.root / "pids").mkdir()
    told = outcome(judge(story.root), "drift")
    assert told.coverage["not understood"] == "2 files"
    (one,) = told.findings
    assert (one.severity, one.evidence) == ("advice", ("minutes", "scribe/notes.md"))
    shutil.rmtree(story.root / "scribe")
    (story.root / "ledger.db").unlink()
    told = outcome(judge(story.root, no_ledger=True), "drift")
    assert told.coverage["not understood"] == "1 file"


# Time travel, erasure, copies ------------------------------------------------------------------


def test_a_log_is_shown_as_of_any_entry(story: Story) -> None:
    log(story, "One", "a-log.md")
    with story.team() as team:
        seq = team.store.head().size - 1
    log(story, "Two", "b-log.md")
    with story.team() as team, recover.rebuild_past(team, seq) as source:
        assert [path for path, _ in recover.rebuilt_files(source, "decisions")] == [
            "scribe/a-log.md"
        ]
        paths = [path for path, _ in recover.rebuilt_files(team.source, "decisions")]
    assert paths == ["scribe/a-log.md", "scribe/b-log.md"]


def test_what_is_erased_in_one_log_stays_in_no_file(story: Story) -> None:
    log(story, "Secret plan", "a-log.md")
    log(story, "Other", "b-log.md")
    before = (story.root / "scribe/b-log.md").read_bytes()
    with story.team() as team:
        pattern = redaction.RedactionRequest(match="Secret", reason="a name", by="ann")
        done = redaction.redact(team, pattern)
        assert {one.kind for one in done.erased} >= {"decision.logged"}
    assert b"Secret" not in (story.root / "scribe/a-log.md").read_bytes()
    assert (story.root / "scribe/b-log.md").read_bytes() == before
    with story.team() as team:
        old = (story.root / "scribe/a-log.md").read_bytes().replace(b"[redacted]", b"Secret plan")
        (story.root / "scribe/a-log.md").write_bytes(old)
        recover.rebuild(team)
        kept = [e.data for e in team.store.read() if e.kind == "file.displaced"]
        assert "Secret" not in json.dumps(kept)
        assert decisions_read.count(team, "a-log.md") == 1
    told = judge(story.root)
    assert told.failures == 0


def test_the_scribes_commands_take_one_log_or_all(story: Story) -> None:
    project = story.root.parent
    log(story, "First thing", "a-log.md")
    log(story, "Second thing", "b-log.md")
    team = ("--team", str(story.root))
    assert run(project, "scribe", "count", *team).out == b"2\n"
    assert run(project, "scribe", "count", *team, "--log", "a-log.md").out == b"1\n"
    assert run(project, "scribe", "query", *team, "thing", "--log", "b-log.md").out.startswith(
        f"D-{BEGIN + 1} Second".encode()
    )
    assert run(project, "scribe", "summary", *team, "--log", "c-log.md").code == 2
    with story.team() as opened, pytest.raises(NotFoundError, match=r"a-log\.md, b-log\.md"):
        decisions_read.count(opened, "c-log.md")


def test_the_log_of_a_chat_is_the_one_that_is_asked(tmp_path: Path) -> None:
    root = tmp_path / ".nbs"
    for chat in ("live", "ops", "new"):
        write_chat(root, chat, [Said(0, "ann", "hi")])
    (root / "scribe").mkdir()
    for name in ("live", "ops"):
        text = LIVE_HEADER + entry(LATER + 0 + len(name), f"Of {name}")
        (root / f"scribe/{name}-log.md").write_text(text, "utf-8")

    def ask(chat: str, *words: str) -> bytes:
        return run_as("nbs-scribe-query", tmp_path, f"--chat=.nbs/chat/{chat}.chat", *words).out

    assert ask("live", "--count") == b"1\n"
    assert ask("ops", "--count") == b"2\n"  # as the original: its own, and that of live
    assert ask("new", "--count") == b"1\n"
    assert b"Of ops" not in ask("live", "of")
    assert b"[ops-log.md]" in ask("ops", "of")
    for name in ("live", "ops"):
        path = f".nbs/scribe/{name}-log.md"
        assert run_as("nbs-scribe", tmp_path, "count", path).out == b"1\n"


def test_a_ledger_of_one_log_that_an_older_version_folded_is_sound(story: Story) -> None:
    """Its tables lack the columns of several logs: the judge says so, and nothing is red."""
    log(story, "One")
    with closing(sqlite3.connect(story.root / "ledger.db", isolation_level=None)) as db:
        sql = "SELECT sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name IN (?, ?)"
        triggers = [text for (text,) in db.execute(sql, ("pieces", "logs"))]
        for table in ("pieces", "logs"):
            db.execute(f"DROP TABLE {table}")
        for statement in (*OLD_TABLES.split(";"), *triggers):
            db.execute(statement)
        db.execute("UPDATE folds SET versions = replace(versions, 'decisions:3', 'decisions:1')")
    report = judge(story.root)
    assert (report.exit_code, report.failures) == (0, 0)
    assert "an older version" in outcome(report, "drift").findings[0].message
    assert log(story, "Two").number == 2
    clean(judge(story.root))


@pytest.mark.parametrize("text", ["decisions:4", "decisions:0", "chat:1 decisions:1", "other:1"])
def test_tables_of_no_version_of_ours_are_a_failure(story: Story, text: str) -> None:
    with closing(sqlite3.connect(story.root / "ledger.db", isolation_level=None)) as db:
        db.execute("UPDATE folds SET versions = ?", (text,))
    assert outcome(judge(story.root), "drift").failures == 1
