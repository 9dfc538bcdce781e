"""A file that was being written while it was looked at is no tampering: it is looked at again."""

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from doors.inside import run as door
from story import HELLO, Story, story_of

from tripod.bus import events as bus
from tripod.chat import writer as chat_send
from tripod.decisions import writer as decisions_log
from tripod.recovery import doctor
from tripod.team import intake
from tripod.team.team import Team
from tripod.verify import run as verify_run
from tripod.verify.check import Report
from tripod.verify.evidence import LOOKS, OpenEvidence

CHAT = "chat/live.chat"
SLEEP = "tripod.team.intake.time.sleep"


@pytest.fixture
def story() -> Iterator[Story]:
    """A team with a chat, and an event in the queue and one behind it."""
    with story_of(*HELLO, ("publish", "x", "y", "low", "1", 0), ("ack", 0), ("sync",)) as story:
        yield story


def act(root: Path) -> list[str]:
    """Publish something; give what was warned of."""
    with Team(str(root)) as team:
        bus.publish(team, "bob", "note", "low", "said")
        return list(team.warnings)


def pruned(root: Path) -> list[str]:
    """Delete what was processed, as the original's ``prune`` does."""
    found = sorted((root / "events" / "processed").glob("*.event"))
    for path in found:
        path.unlink()
    return [path.name for path in found]


def test_a_chat_that_is_written_over_meanwhile_is_no_edit(story: Story) -> None:
    file = story.root / CHAT
    whole = file.read_bytes()
    names = pruned(story.root)
    file.write_bytes(b"")  # the original is about to write all of it again

    def finish(_seconds: float) -> None:
        file.write_bytes(whole)

    with mock.patch(SLEEP, finish):
        assert act(story.root) == []
    assert names
    assert list((story.root / "events" / "processed").iterdir()) == []  # nothing came back


def test_a_file_that_was_edited_before_is_told_at_once(story: Story) -> None:
    file = story.root / CHAT
    file.write_bytes(b"edited\n")
    before = time.time() - 60
    os.utime(file, (before, before))
    with mock.patch(SLEEP) as slept:
        assert any(CHAT in said for said in act(story.root))
    slept.assert_not_called()


def test_a_file_that_stays_edited_is_told_after_a_few_looks(story: Story) -> None:
    (story.root / CHAT).write_bytes(b"edited\n")
    with mock.patch(SLEEP) as slept:
        assert any(CHAT in said for said in act(story.root))
    assert slept.call_count == intake.LOOKS - 1


def test_what_others_do_while_verify_reads_is_no_finding(story: Story) -> None:
    real, runs = verify_run.run, 0

    def later(evidence: OpenEvidence, *, select: object = None) -> Report:
        nonlocal runs
        runs += 1
        if runs == 1:
            with Team(str(story.root)) as team:
                chat_send.send(team, "live", "bob", "meanwhile")
        return real(evidence, select=select)  # type: ignore[arg-type]

    with mock.patch.object(verify_run, "run", later):
        done = door(story.root.parent, "verify", "--no-git")
    assert (done.code, runs) == (0, 2), done.out


def test_what_others_do_while_doctor_looks_is_no_trouble(story: Story) -> None:
    real, runs = verify_run.run, 0

    def later(evidence: OpenEvidence, **how: Any) -> Report:
        nonlocal runs
        runs += 1
        if runs == 1:
            with Team(str(story.root)) as team:
                chat_send.send(team, "live", "bob", "meanwhile")
        return real(evidence, **how)

    with mock.patch.object(doctor, "run", later):
        found = doctor.examine(str(story.root))
    assert (found.troubles, runs) == ((), 2)


def test_what_stays_wrong_is_told_where_others_go_on_working(story: Story) -> None:
    real, runs = verify_run.run, 0
    (story.root / "scribe" / "log.md").write_bytes(b"# Decision Log\n\n---\n\n### D-1 x\n")

    def later(evidence: OpenEvidence, *, select: object = None) -> Report:
        nonlocal runs
        runs += 1
        if runs < LOOKS:  # the last look keeps them out
            act(story.root)
        return real(evidence, select=select)  # type: ignore[arg-type]

    (story.root / CHAT).write_bytes(b"edited\n")
    with mock.patch.object(verify_run, "run", later):
        done = door(story.root.parent, "verify", "--no-git")
    assert (done.code, runs) == (1, LOOKS)
    assert b"live.chat" in done.out


@pytest.mark.parametrize("word", ["verify", "doctor"])
def test_a_team_that_is_always_at_work_is_judged_while_it_waits(story: Story, word: str) -> None:
    """In each look somebody says something; the last one has them wait."""
    real, waiting = verify_run.run, list[threading.Thread]()

    def say() -> None:
        with Team(str(story.root)) as team:
            chat_send.send(team, "live", "bob", "meanwhile")

    def later(evidence: OpenEvidence, **how: Any) -> Report:
        waiting.append(threading.Thread(target=say))
        waiting[-1].start()
        waiting[-1].join(timeout=2)
        return real(evidence, **how)

    where = verify_run if word == "verify" else doctor
    with mock.patch.object(where, "run", later):
        done = door(story.root.parent, word, *(["--no-git"] if word == "verify" else []))
    for one in waiting:
        one.join()
    assert (done.code, len(waiting)) == (0, LOOKS), done.out


@pytest.mark.parametrize("replaces", [False, True], ids=["adds to it", "replaces it"])
def test_what_others_add_between_two_readings_is_no_drift(
    story: Story, monkeypatch: pytest.MonkeyPatch, *, replaces: bool
) -> None:
    """The log is taken in first, and compared and counted later."""
    real, numbers = OpenEvidence.projected, iter(range(1_900_000_000, 2_000_000_000))
    with Team(str(story.root)) as team:
        decisions_log.log(team, decisions_log.DecisionRequest("Mine", ["ann"], "because"))
    log = story.root / "scribe/log.md"

    def later(evidence: OpenEvidence) -> Any:
        story.original.log("Meanwhile", number=next(numbers))
        if replaces:
            story.original.put("scribe/log.md", log.read_bytes())
        return real(evidence)

    monkeypatch.setattr(OpenEvidence, "projected", later)
    done = door(story.root.parent, "verify", "--no-git")
    named = [name for name in (b": drift: ", b": count-from-grep: ") if name in done.out]
    assert (done.code, named) == (1, []), done.out  # 1: they have no chat reference


@pytest.mark.parametrize("replaces", [False, True], ids=["writes it again", "replaces it"])
def test_what_others_say_between_two_readings_is_no_drift(
    story: Story, monkeypatch: pytest.MonkeyPatch, *, replaces: bool
) -> None:
    """Their sender writes the whole chat again, in the same file: its header changes as well."""
    real, chat = OpenEvidence.projected, story.root / CHAT
    same = story.root.parent / "the same file"
    story.original.say("live", "bob", "before")  # so the chat is read, not only compared

    def later(evidence: OpenEvidence) -> Any:
        os.link(chat, same)
        story.original.say("live", "bob", "meanwhile")
        if not replaces:
            same.write_bytes(chat.read_bytes())
            same.replace(chat)
        same.unlink(missing_ok=True)
        return real(evidence)

    monkeypatch.setattr(OpenEvidence, "projected", later)
    done = door(story.root.parent, "verify", "--no-git")
    assert (done.code, b": drift: " in done.out) == (0, False), done.out
