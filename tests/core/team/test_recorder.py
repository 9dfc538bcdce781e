"""A recorder does the acts of many threads: those that wait share a transaction, none is lost."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from children import run_forked

import tripod
from tripod import Recorder, Team, bus, chat
from tripod.chat.writer import ChatMessage
from tripod.errors import NoTeamError, NotFoundError, RefusedError, UnwritableError
from tripod.projections.engine import file_differences

Do = Callable[..., "Future[Any]"]


@pytest.fixture
def cafe(tmp_path: Path) -> str:
    path = str(tmp_path)
    tripod.init(path)
    with Team(path) as team:
        chat.create(team, "live")
    return path


@pytest.fixture
def recorder(cafe: str) -> Iterator[Recorder]:
    with Recorder(cafe) as recorder:
        yield recorder
    with Team(cafe) as team:
        assert (team.healed, team.warnings) == (0, [])
        assert list(file_differences(team.source, team.disk)) == []


@pytest.fixture
def asked(recorder: Recorder) -> list[str]:
    """The statements of the recorder's database."""
    asked: list[str] = []
    recorder.do(lambda team: team.store.db.set_trace_callback(asked.append)).result(60)
    return asked


def together(recorder: Recorder, hand_over: Callable[[], list[Future[Any]]]) -> list[Any]:
    """Have acts wait until all are handed over; give what each returned or raised."""
    gate = threading.Event()
    recorder.do(lambda _: gate.wait(60))
    futures = hand_over()
    gate.set()
    return [future.exception(60) or future.result() for future in futures]


def said(path: str) -> list[str]:
    with Team(path) as team:
        return [message.text for message in chat.messages(team, "live")]


def say(team: Team, text: str) -> object:
    return chat.send(team, "live", "ann", text)


def test_acts_that_wait_are_one_transaction(
    cafe: str, recorder: Recorder, asked: list[str]
) -> None:
    names = together(recorder, lambda: [publish(recorder, number) for number in range(5)])
    with Team(cafe) as team:
        assert [event.name for event in bus.check(team)] == names
    assert asked.count("BEGIN IMMEDIATE") == 2  # the acts, and the cursor of the files


def publish(recorder: Recorder, number: int) -> "Future[str]":
    return recorder.do(bus.publish, f"worker-{number}", "task-complete", "normal")


def test_one_that_is_refused_harms_only_itself(cafe: str, recorder: Recorder) -> None:
    outcomes = together(
        recorder,
        lambda: [
            recorder.do(say, "a"),
            recorder.do(bus.ack, "no.event"),
            recorder.do(say, "b"),
        ],
    )
    assert type(outcomes[1]) is NotFoundError
    assert said(cafe) == ["a", "b"]


def test_one_that_fails_half_way_takes_no_other_along(cafe: str, recorder: Recorder) -> None:
    def fail(team: Team) -> None:
        with team.act(joins=True):
            say(team, "lost")
            raise ArithmeticError

    outcomes = together(recorder, lambda: [recorder.do(say, "a"), recorder.do(fail)])
    assert type(outcomes[1]) is ArithmeticError
    assert said(cafe) == ["a"]


def test_of_one_that_fails_behind_its_first_act_nothing_stands_twice(
    cafe: str, recorder: Recorder
) -> None:
    def say_and_ack(team: Team) -> None:
        say(team, "said")
        bus.ack(team, "no.event")

    outcomes = together(
        recorder,
        lambda: [
            recorder.do(say, "a"),
            recorder.do(say_and_ack),
            recorder.do(say, "b"),
        ],
    )
    assert type(outcomes[1]) is NotFoundError
    assert said(cafe) == ["a", "said", "b"]


def test_one_whose_file_cannot_be_written_harms_only_itself(cafe: str, recorder: Recorder) -> None:
    recorder.do(chat.create, "other").result(60)
    file = Path(cafe, ".nbs/chat/other.chat")
    moved = file.rename(file.with_suffix(".moved"))
    file.symlink_to(moved)
    outcomes = together(
        recorder,
        lambda: [
            recorder.do(say, "a"),
            recorder.do(chat.send, "other", "ann", "lost"),
            recorder.do(say, "b"),
        ],
    )
    file.unlink()
    moved.rename(file)
    assert [type(outcome) for outcome in outcomes] == [ChatMessage, RefusedError, ChatMessage]
    assert said(cafe) == ["a", "b"]


def test_one_that_cannot_be_a_part_of_another_is_done_alone(cafe: str, recorder: Recorder) -> None:
    def alone(team: Team) -> int:
        with team.act() as act:
            return act.parts

    outcomes = together(recorder, lambda: [recorder.do(say, "a"), recorder.do(alone)])
    assert outcomes[1] == 0
    assert said(cafe) == ["a"]


def test_what_fails_after_the_commit_is_told_to_all_and_done_once(
    cafe: str, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def conclude(*_: object, **__: object) -> None:
        raise UnwritableError("no seal")

    monkeypatch.setattr(Team, "_conclude", conclude)
    outcomes = together(recorder, lambda: [recorder.do(say, text) for text in "ab"])
    assert [type(outcome) for outcome in outcomes] == [UnwritableError] * 2
    monkeypatch.undo()
    assert said(cafe) == ["a", "b"]


def test_tasks_await_it(cafe: str, recorder: Recorder) -> None:
    async def talk(name: str) -> None:
        for number in range(3):
            await asyncio.wrap_future(recorder.do(say, f"{name}{number}"))

    async def talk_all() -> None:
        await asyncio.gather(*(talk(name) for name in "abc"))

    asyncio.run(talk_all())
    assert sorted(said(cafe)) == [f"{name}{number}" for name in "abc" for number in range(3)]
    assert [text for text in said(cafe) if text[0] == "b"] == ["b0", "b1", "b2"]


def test_no_task_hangs_on_an_act_that_ran_out_of_values(recorder: Recorder) -> None:
    async def wait() -> object:
        act = recorder.do(lambda team: next(team.entries(10**6)))
        return await asyncio.wait_for(asyncio.wrap_future(act), 60)

    with pytest.raises(RuntimeError, match="StopIteration"):
        asyncio.run(wait())


def test_what_was_cancelled_before_it_began_is_not_done(cafe: str, recorder: Recorder) -> None:
    def hand_over() -> list[Future[Any]]:
        futures = [recorder.do(say, text) for text in "abc"]
        assert futures.pop(1).cancel()
        return futures

    together(recorder, hand_over)
    assert said(cafe) == ["a", "c"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_nobody_waits_for_a_recorder_whose_thread_ended(cafe: str) -> None:
    def leave(_: Future[Any]) -> None:
        raise SystemExit

    with Recorder(cafe) as recorder:
        gate = threading.Event()
        recorder.do(lambda _: gate.wait(60))
        futures = [recorder.do(say, text) for text in "abc"]
        futures[0].add_done_callback(leave)
        gate.set()
        told = [type(future.exception(60)) for future in futures]
        with pytest.raises(RefusedError, match="closed"):
            recorder.do(say, "d")
    assert told == [type(None), RefusedError, RefusedError]


def test_a_recorder_that_closes_finishes_what_it_was_given(cafe: str) -> None:
    with Recorder(cafe) as recorder:
        futures = [recorder.do(say, text) for text in "abc"]
    assert all(future.done() for future in futures)
    assert said(cafe) == ["a", "b", "c"]
    with pytest.raises(RefusedError, match="is closed"):
        recorder.do(say, "d")


def test_no_team_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(NoTeamError):
        Recorder(str(tmp_path))


HELD: list[Recorder] = []
"""Recorders that a fork inherits."""

CHILD = f"""
from {__name__} import HELD, say
try:
    HELD[0].do(say, "inherited")
except Exception as error:
    print(error)
HELD[0].close()
"""


def test_a_child_that_was_forked_is_refused(cafe: str, recorder: Recorder) -> None:
    HELD.append(recorder)
    done = run_forked(CHILD)
    HELD.clear()
    refused = "this recorder was made before this process was forked: make another one\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, refused, "")
    recorder.do(say, "a").result(60)
    assert said(cafe) == ["a"]
