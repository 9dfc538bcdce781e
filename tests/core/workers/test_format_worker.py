"""A worker's task file: there and back, and the state that counts."""

import nbs_team
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tripod.projections.workers import format as workers_format
from tripod.projections.workers.format import WorkerText

LINES = st.text(st.characters(exclude_categories=["Cc", "Cs"])).map(str.strip)
TEXTS = st.lists(LINES | st.sampled_from(["## Notes", "State: failed", "# Worker: x", "```"])).map(
    lambda lines: "\n".join(lines).strip()
)
QUOTED = workers_format.format_worker(
    WorkerText("completed", "2026-01-01 00:00:00", "2026-01-01 00:00:01", "Old.", "Done.", "old")
).decode()


def test_the_example_of_the_format() -> None:
    shown = nbs_team.example(workers_format.__doc__)
    parsed = workers_format.parse_worker(shown)
    assert parsed == WorkerText(
        "running",
        "2026-02-12 14:00:00",
        "",
        "Parse the grammar.",
        workers_format.EMPTY_LOG,
        "parser",
    )
    assert workers_format.format_worker(parsed) == shown


@given(st.builds(WorkerText, LINES, LINES, LINES, TEXTS, TEXTS, LINES))
def test_a_task_file_reads_back(text: WorkerText) -> None:
    assert workers_format.parse_worker(workers_format.format_worker(text)) == text


@given(LINES, TEXTS)
def test_a_quoted_task_file_is_not_the_real_one(state: str, log: str) -> None:
    text = WorkerText(state, "a", "", f"Read this:\n\n{QUOTED}".strip(), log, "new")
    assert workers_format.parse_worker(workers_format.format_worker(text)) == text


@given(st.binary())
def test_any_bytes_are_read(data: bytes) -> None:
    workers_format.parse_worker(data)


def test_tips_belong_to_nothing() -> None:
    data = workers_format.format_worker(WorkerText("running", "a", "", "Do it.", "Log.", "x"))
    with_tips = data.replace(b"## Status", b"## Tooling\n\n- a tip\n\n## Status")
    assert workers_format.parse_worker(with_tips) == workers_format.parse_worker(data)


def test_line_breaks_of_another_system() -> None:
    data = workers_format.format_worker(WorkerText("running", "a", "b", "Do it.", "Log.", "x"))
    assert workers_format.parse_worker(data.replace(b"\n", b"\r\n")) == workers_format.parse_worker(
        data
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", WorkerText("", "", "", "", "")),
        ("State: running\n", WorkerText("", "", "", "", "")),
        ("# Worker: a\n## Task\nDo.\n", WorkerText("", "", "", "Do.", "", "a")),
        ("## Task\nDo.\n## Log\nx\n## Status\n", WorkerText("", "", "", "Do.", "x\n## Status")),
        ("## Status\nState: a\n## Status\nnone\n", WorkerText("a", "", "", "", "")),
        ("## Status\nState: a\nState: b\n", WorkerText("b", "", "", "", "")),
        ("## Task\n## Task\nDo\n## Status\nState: a\n", WorkerText("a", "", "", "## Task\nDo", "")),
    ],
)  # fmt: skip
def test_files_with_parts_missing(text: str, expected: WorkerText) -> None:
    assert workers_format.parse_worker(text.encode()) == expected


@pytest.mark.parametrize(
    ("name", "good"),
    [("pythia-1fac", True), ("p-00000000", True), ("pythia-1FAC", False), ("pythia", False),
     ("a-b-1fac", False), ("pythia-1fac\n", False), ("x" * 58 + "-1fac", True),
     ("x" * 59 + "-1fac", False), ("pythia-12345", False)],
)  # fmt: skip
def test_names(name: str, good: bool) -> None:
    assert (workers_format.valid_worker_name(name) is None) is good


def test_slugs() -> None:
    assert workers_format.valid_worker_slug("pythia") is None
    assert workers_format.valid_worker_name("x" * 54 + "-12345678") is None
    for wrong in ("", "life-cycle", "A", "x" * 55, "a\n"):
        assert "slug" in str(workers_format.valid_worker_slug(wrong))


def test_real_task_files_read_and_are_written_byte_for_byte() -> None:
    files = nbs_team.matching("workers", ".md")
    assert len(files) == 2
    for path, data in files.items():
        parsed = workers_format.parse_worker(data)
        assert parsed.state == "completed"
        assert parsed.log == "Assessment posted."
        assert workers_format.format_worker(parsed) == data
        assert workers_format.valid_worker_name(path.split("/")[-1].removesuffix(".md")) is None
