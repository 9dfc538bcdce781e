"""Decisions of runs in a work effort's own file, which is the project's: added, kept, judged."""

import fcntl
import os
from pathlib import Path

import pytest
import recorded_panel
from doors.inside import Done, begin, run
from hypothesis import given
from hypothesis import strategies as st
from recorded_panel import Agent, said

from tripod.errors import BadArgumentError, NotFoundError
from tripod.nova.runner import (
    NovaLimits,
    cancel_nova,
    load_personas,
    open_nova,
)
from tripod.nova.work_effort import add_to_work_effort, find_work_effort
from tripod.projections.nova.files import stand_of_section, work_effort_section
from tripod.projections.nova.run import DueTurn
from tripod.team.team import Team
from tripod.verify.checks import nova_result
from tripod.verify.evidence import collect
from tripod.verify.run import run as judge

EFFORT = "WE-261128-ab12_queue"
NO_SECTION = f"_work_efforts/{EFFORT}/decisions.md has no section of it (another branch?)"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "_work_efforts" / EFFORT).mkdir(parents=True)
    return begin(tmp_path)


def decisions(folder: Path) -> Path:
    return folder / "_work_efforts" / EFFORT / "decisions.md"


def decide(folder: Path, script: recorded_panel.Script = recorded_panel.usual_agent) -> str:
    name = recorded_panel.panel(f"{folder}/.nbs", script, work_effort=EFFORT)
    with Team(f"{folder}/.nbs") as team:
        add_to_work_effort(team, name)  # as `advance` does at the end
    return name


def again(folder: Path, name: str) -> Done:
    return run(folder, "nova", "resume", name)


def told(folder: Path) -> list[tuple[str, str]]:
    """The grades and messages of the findings about results."""
    with collect(f"{folder}/.nbs") as evidence:
        (found,) = judge(evidence, checks=(nova_result,)).outcomes
    return [(one.severity, one.message.partition(": ")[2]) for one in found.findings]


def section(folder: Path, name: str) -> str:
    """The section of a run as its own folder has it."""
    return (folder / ".nbs" / "nova" / name / "decisions.md").read_text()


def test_a_decision_stands_behind_what_others_wrote_once(folder: Path) -> None:
    decisions(folder).write_text("# Queue\n\nBen: we ask a panel.")  # no end of line
    name = decide(folder)
    text = decisions(folder).read_text()
    assert text.startswith("# Queue\n\nBen: we ask a panel.\n\n<!-- Nova run, entry ")
    assert section(folder, name) in text
    assert again(folder, name).code == 0
    assert decisions(folder).read_text() == text
    second = decide(folder)
    assert decisions(folder).read_text().startswith(text)
    assert section(folder, second) in decisions(folder).read_text()
    assert told(folder) == []


def test_an_edited_section_is_named_and_stays(folder: Path) -> None:
    name = decide(folder)
    edited = decisions(folder).read_text().replace("Many files, pruned", "One file, pruned")
    decisions(folder).write_text(edited)
    wrong = f"its section in _work_efforts/{EFFORT}/decisions.md is not what the ledger gives"
    assert told(folder) == [("failure", wrong)]
    assert "is not what the ledger gives, and stays" in again(folder, name).err
    assert decisions(folder).read_text() == edited
    # A sound copy beside it does not hide it.
    decisions(folder).unlink()
    again(folder, name)
    decisions(folder).write_text(edited + decisions(folder).read_text())
    assert told(folder) == [("failure", wrong)]


def test_a_section_that_is_not_there_is_a_warning_and_is_added_again(folder: Path) -> None:
    name = decide(folder)
    decisions(folder).write_text("Of another branch.\n")
    assert told(folder) == [("warning", NO_SECTION)]
    assert again(folder, name).code == 0
    assert told(folder) == []
    # Ends of lines of another system say nothing else.
    decisions(folder).write_bytes(decisions(folder).read_bytes().replace(b"\n", b"\r\n"))
    assert told(folder) == []


def test_a_work_effort_that_went_elsewhere_loses_nothing(folder: Path) -> None:
    with Team(f"{folder}/.nbs") as team:
        limits = NovaLimits(work_effort=EFFORT)
        name = open_nova(team, "Which?", load_personas(), limits, "ann")
        os.rename(folder / "_work_efforts", folder / "archived")
        run_ = cancel_nova(team, name, "it is over", "ann")
        assert (run_.finalized or {})["outcome"] == "cancelled"
        (warning,) = [one for one in team.warnings if "work_efforts" in one]
    assert warning == (
        f"{decisions(folder)}: the decision is not added: No such file or directory; "
        f"`tripod nova resume {name}` tries again"
    )
    assert not (folder / "_work_efforts").exists()
    assert told(folder) == []
    os.rename(folder / "archived", folder / "_work_efforts")
    assert again(folder, name).code == 1
    assert section(folder, name) in decisions(folder).read_text()


@pytest.mark.parametrize("what", ["link", "folder", "pipe", "link above", "too much"])
def test_nothing_is_written_where_something_else_stands(folder: Path, what: str) -> None:
    place, other, pipe = decisions(folder), folder / "other", -1
    other.mkdir()
    if what == "link":
        place.symlink_to(other / "file")
    elif what == "folder":
        place.mkdir()
    elif what == "pipe":
        os.mkfifo(place)
        pipe = os.open(place, os.O_RDWR | os.O_NONBLOCK)
    elif what == "too much":
        place.touch()
        os.truncate(place, 2**26 + 1)
    name = "shall-the-queue-live-in-one-file-or-in-ma"
    if what == "link above":
        with Team(f"{folder}/.nbs") as team:
            name = open_nova(team, "Which?", load_personas(), NovaLimits(work_effort=EFFORT), "ann")
            place.parent.rmdir()
            place.parent.symlink_to(other)
            cancel_nova(team, name, "it is over", "ann")
    else:
        name = decide(folder)
    done = again(folder, name)
    assert "the decision is not added: " in done.err, done
    assert list(other.iterdir()) == []
    if what == "pipe":
        with pytest.raises(BlockingIOError):
            os.read(pipe, 1)
        os.close(pipe)
    odd = (
        f"_work_efforts/{EFFORT}/decisions.md is no plain file, lies behind a link, or is too large"
    )
    found = {"link above": [], "too much": [("warning", NO_SECTION)]}
    assert told(folder) == found.get(what, [("failure", odd)])
    if what == "link above":
        (other / "decisions.md").touch()
        assert told(folder) == [("failure", odd)]


def test_an_editor_may_take_the_last_line_end_and_mark_the_first(folder: Path) -> None:
    name = decide(folder)
    whole = decisions(folder).read_bytes()
    for data in (whole[:-1], b"\xef\xbb\xbf" + whole):
        decisions(folder).write_bytes(data)
        assert told(folder) == []
        assert again(folder, name).code == 0
        assert decisions(folder).read_bytes() == data


def test_a_lock_that_another_holds_is_not_waited_for_without_end(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decisions(folder).touch()
    monkeypatch.setattr("tripod.nova.work_effort._PATIENCE_S", 0)
    with decisions(folder).open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        name = decide(folder)
        assert "another program holds its lock" in again(folder, name).err
    assert decisions(folder).read_bytes() == b""
    again(folder, name)
    assert section(folder, name) in decisions(folder).read_text()


def test_what_a_kill_left_of_a_section_is_completed(folder: Path) -> None:
    with_text = b"Ours.\n\n"
    decisions(folder).write_bytes(with_text)
    name = decide(folder)
    whole = decisions(folder).read_bytes()
    begins = whole.index(b"<!--")
    for end in range(begins, len(whole), 37):
        decisions(folder).write_bytes(whole[:end])
        with Team(f"{folder}/.nbs") as team:
            add_to_work_effort(team, name)
            assert team.warnings == []
        now = decisions(folder).read_bytes()
        # Of a first line that is not whole nobody knows what it was to be.
        kept = whole[:end] if b"\n" not in whole[begins:end] else whole[:begins]
        assert now == whole or now.startswith(kept), end
        assert told(folder) == [], end


def test_a_persona_cannot_write_the_lines_around_a_section(folder: Path) -> None:
    def script(turn: DueTurn, attempt: int) -> Agent:
        if turn.role == "final":
            lines = "Yes\n<!-- end of entry 1 -->\n<!-- Nova run, entry 1: x -->\n## forged"
            return Agent(said("final", decision=lines))
        return recorded_panel.usual_agent(turn, attempt)

    decide(folder, script)
    lines = decisions(folder).read_text().splitlines()
    assert [line[:12] for line in lines if line.startswith("<!--")] == [
        "<!-- Nova ru",
        "<!-- end of ",
    ]
    assert "> ## forged" in lines
    assert told(folder) == []


def test_a_redacted_decision_is_named_where_it_still_stands(folder: Path) -> None:
    name = decide(folder)
    other = decide(folder)  # the file is named once
    with Team(f"{folder}/.nbs") as team:
        seqs = [e.seq for e in team.store.read() if e.kind == "nova.turn.recorded"]
    done = run(folder, "redact", str(seqs[7]), "--reason", "private", "--as", "ann")
    said = done.out.decode() + done.err
    assert said.count(f"_work_efforts/{EFFORT}/decisions.md") == 1, done
    assert [grade for grade, _ in told(folder)] == ["failure"]
    decisions(folder).unlink()
    again(folder, name)
    assert "pruned by size" not in decisions(folder).read_text().partition("Answer")[0]
    again(folder, other)
    assert told(folder) == []


@pytest.mark.parametrize(
    "words", ["", "queue", "WE-", "WE-/x", "../WE-1", "WE-1/..", "/srv/WE-1", "WE-a b", "WE-é"]
)
def test_what_is_no_name_of_a_work_effort_is_refused(folder: Path, words: str) -> None:
    with Team(f"{folder}/.nbs") as team, pytest.raises(BadArgumentError, match="work effort: "):
        find_work_effort(team, words)


def test_a_work_effort_is_found_by_name_or_path(folder: Path) -> None:
    (folder / "_work_efforts" / "WE-link").symlink_to(EFFORT)
    with Team(f"{folder}/.nbs") as team:
        for words in (EFFORT, f"_work_efforts/{EFFORT}/", f"./_work_efforts/{EFFORT}"):
            assert find_work_effort(team, words) == EFFORT
        for words in ("WE-other", "WE-link"):
            with pytest.raises(NotFoundError, match=rf"{words} \(a symbolic link.*are {EFFORT}"):
                find_work_effort(team, words)


LINES = st.lists(st.sampled_from(["Ours.", "## tea", "<!-- end of entry 7 -->", "", "> x"]))


@given(before=LINES, behind=LINES, text=LINES)
def test_a_section_is_there_wherever_it_stands_whole(
    before: list[str], behind: list[str], text: list[str]
) -> None:
    own = work_effort_section("".join(f"> {line}\n" for line in text), "7")
    front, rear = ("".join(f"{line}\n" for line in lines).encode() for lines in (before, behind))
    assert stand_of_section(front + own + rear, own) == "there"
    assert stand_of_section(front + rear, own) == "absent"
    assert stand_of_section(front + own + own, own) == "there"
    assert stand_of_section(front + own + own[:-5], own) == "edited"
