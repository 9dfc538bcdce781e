"""The files that the documents of the original tools show: read, written again, taken in."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from adoption import check_adoption, check_going_on

from tripod.projections.bus import format as bus_format
from tripod.projections.bus.format import Config, Event, event_name_us
from tripod.projections.chat import format as chat_format
from tripod.projections.decisions import format as decisions_format
from tripod.projections.decisions.format import ChatRef, DecisionText
from tripod.projections.team.intake import parse_team_config
from tripod.projections.workers import format as workers_format
from tripod.projections.workers.format import EMPTY_LOG, WorkerText

DOCUMENTS = Path(__file__).parents[2] / "golden" / "documents"
TEAMS = sorted(path.name for path in DOCUMENTS.iterdir())


def of(pattern: str) -> list[Path]:
    found = sorted(DOCUMENTS.glob(pattern))
    assert found, pattern
    return found


def name_of(path: Path) -> str:
    return path.relative_to(DOCUMENTS).as_posix()


# Read, and written again ------------------------------------------------------------------------


@pytest.mark.parametrize("path", of("*/events/**/*.event"), ids=name_of)
def test_an_event_is_written_again_as_it_was(path: Path) -> None:
    data = path.read_bytes()
    read = bus_format.parse_event(data)
    assert read is not None
    assert bus_format.format_event(read) == data
    assert read.dedup_key == f"{read.source}:{read.type}"


def test_the_event_of_the_document_is_what_it_says() -> None:
    (path,) = of("nbs-bus/events/1707753600123456-*")
    text = "Task parser-a3f1 completed successfully.\n467/467 tests pass."
    assert bus_format.parse_event(path.read_bytes()) == Event(
        "parser-worker", "task-complete", "high", "2026-02-12T14:00:00Z",
        "parser-worker:task-complete", text,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "us", "parts"),
    [
        (
            "1707753600123456-parser-worker-task-complete-48291.event",
            1707753600123456,
            ("parser-worker", "task-complete", 48291),
        ),
        (
            "1707760800123456-scribe-pythia-checkpoint-12345.event",
            1707760800123456,
            ("scribe", "pythia-checkpoint", 12345),
        ),
        (
            "1707753500111222-claude-chat-message-48289.event",
            1707753500111222,
            ("claude", "chat-message", 48289),
        ),
        ("1707753600000-parser-worker-task-complete.event", 1707753600000, None),
    ],
)
def test_a_name_of_the_documents(name: str, us: int, parts: tuple[str, str, int] | None) -> None:
    assert len(of(f"*/events/**/{name}")) == 1
    assert bus_format.valid_event_name(name) is None
    assert event_name_us(name) == us
    if parts is not None:
        assert bus_format.event_name(us, *parts) == name


@pytest.mark.parametrize("path", of("*/chat/*.chat"), ids=name_of)
def test_a_chat_is_written_again_as_it_was(path: Path) -> None:
    data = path.read_bytes()
    file = chat_format.split_chat_file(data)
    assert file is not None
    assert file.header is not None
    assert chat_format.join_chat_file(file) == data
    size = len(data) - len(file.header_raw)
    if path.stem.endswith("-archive"):
        assert chat_format.chat_archive_header(file.header.last_write, size) == file.header_raw
    else:
        assert chat_format.format_header(file.header, size) == file.header_raw
    assert chat_format.parse_chat_time(file.header.last_write) is not None
    for line in file.lines:
        read = chat_format.parse_line(line)
        assert read is not None
        if path.parents[1].name == "tripod-architecture":
            assert chat_format.format_line(*read) == line


def test_the_three_forms_of_a_message() -> None:
    file = chat_format.split_chat_file((DOCUMENTS / "tools/chat/live.chat").read_bytes())
    assert file is not None
    assert [chat_format.parse_line(line) for line in file.lines] == [
        ("a", 0, "oldest"),
        ("a", 1770901100, "signed"),
        ("b", 1770901150, "@a! stop"),
        ("a", 1770901200, "two\nlines: of text"),
    ]
    assert chat_format.format_line("b", 1770901150, "@a! stop") == file.lines[2]
    assert chat_format.format_line("a", 1770901200, "two\nlines: of text") == file.lines[3]


def test_the_names_of_archives() -> None:
    (old,) = of("tools/chat/*-archive.chat")
    stem = chat_format.parse_chat_archive_name(old.name)
    assert stem == ("live", "20260212-135500")
    assert chat_format.chat_archive_name("live", 1770904500) == old.stem
    (log,) = of("tools/scribe/*-archive.md")
    assert decisions_format.parse_decision_archive_name(log.name) == ("log", "20260212-130500")
    assert chat_format.chat_archive_name("log", 1770901500) == log.stem


def test_read_positions_are_written_again_as_they_were() -> None:
    (path,) = of("*/chat/*.cursors")
    read = chat_format.parse_chat_cursors(path.read_bytes())
    assert read == {"a": 3, "b": 2}
    assert chat_format.format_chat_cursors(read) == path.read_bytes()


LOGS = of("*/scribe/*.md")


@pytest.mark.parametrize("path", LOGS, ids=name_of)
def test_a_log_is_written_again_as_it_was(path: Path) -> None:
    data = path.read_bytes()
    header, pieces = decisions_format.split_decision_log(data)
    assert header + b"".join(pieces) == data
    assert len(pieces) == decisions_format.count_decision_headings(data)
    for piece in pieces:
        read, problems = decisions_format.parse_decision(piece)
        assert read is not None
        assert problems == ()
        if path.parents[1].name == "tools":  # one line a field, as we write it too
            assert decisions_format.format_decision(read).encode() == piece


def entries_of(name: str) -> list[DecisionText]:
    _, pieces = decisions_format.split_decision_log(
        (DOCUMENTS / name / "scribe/log.md").read_bytes()
    )
    return [read for piece in pieces if (read := decisions_format.parse_decision(piece)[0])]


def test_both_layouts_of_the_log_say_what_they_show() -> None:
    bus, first = entries_of("nbs-scribe")
    assert bus == DecisionText(
        "D-1707753600", "Coordination bus replaces polling", None, "live.chat:~L342",
        "alex, claude", "docs/nbs-bus.md, bin/nbs-bus", "none", "decided",
        "Polling wastes context tokens on empty reads. File-based events are crash-recoverable "
        "and require no daemon.",
    )  # fmt: skip
    assert (first.id, first.artefacts, first.risk_tags) == ("D-1707840000", "—", "scope-creep")
    descent, cost = entries_of("tripod-architecture")
    assert (descent.id, descent.status, descent.artefacts) == (
        "D-1707753600", "decided", "src/parser.c"
    )  # fmt: skip
    assert descent.rationale.endswith("O(n^2) worst case — input bounded at 4KB.")
    assert (cost.risk_tags, cost.status) == ("perf-risk, reversible", "accepted-risk")
    assert decisions_format.parse_decision_refs(cost.chat_ref) == ([ChatRef("live.chat", 4350)], [])
    assert entries_of("nbs-scribe-begun") == []
    assert [one.supersedes for one in entries_of("tools")] == [None, "D-1770901200"]


@pytest.mark.parametrize("path", of("*/workers/*.md"), ids=name_of)
def test_a_task_file_is_written_again_as_it_was(path: Path) -> None:
    data = path.read_bytes()
    read = workers_format.parse_worker(data)
    tips = data.find(b"## Tooling")
    if tips >= 0:  # they belong to no field: we leave them out of ours
        data = data[:tips] + data[data.index(b"## Status") :]
    assert workers_format.format_worker(read) == data
    assert workers_format.valid_worker_name(path.stem) is None


def test_the_task_file_is_what_it_says() -> None:
    assert workers_format.parse_worker(
        (DOCUMENTS / "tools/workers/parser-a3f1.md").read_bytes()
    ) == (
        WorkerText("running", "2026-02-12 14:00:00", "", "Parse the grammar.", EMPTY_LOG, "parser")
    )


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("nbs-bus", Config(300, 16_777_216, 120, 20, "live.chat", "inotifywait", 5)),
        ("tripod-architecture", Config(pythia_interval=20, pythia_channel="live.chat")),
    ],
)
def test_a_configuration_of_the_documents_is_understood(name: str, wanted: Config) -> None:
    data = (DOCUMENTS / name / "events/config.yaml").read_bytes()
    assert parse_team_config(data) == (wanted, ())


# Taken in, and given back -----------------------------------------------------------------------


@pytest.mark.parametrize("name", TEAMS)
@pytest.mark.parametrize("then", [None, check_going_on])
def test_a_team_made_of_them_is_taken_in_and_given_back(
    tmp_path: Path, name: str, then: Callable[[Path], None] | None
) -> None:
    shutil.copytree(DOCUMENTS / name, tmp_path / ".nbs")
    for path in tmp_path.glob(".nbs/chat/*"):
        path.chmod(0o600)
    adoption = check_adoption(tmp_path)
    assert adoption.left_alone == []
    kinds = {
        "nbs-bus": {"bus.published": 6, "bus.acked": 1},
        "nbs-scribe": {"decision.logged": 2},
        "nbs-scribe-begun": {},
        "tripod-architecture": {"decision.logged": 2, "chat.sent": 3, "bus.published": 3},
        "tools": {"decision.logged": 3, "chat.sent": 7},
    }[name]
    assert {kind: adoption.kinds[kind] for kind in kinds} == kinds
    if then is not None:
        then(tmp_path)
