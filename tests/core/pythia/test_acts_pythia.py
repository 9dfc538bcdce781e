"""Pythia: what is due, how she is run, what she is given, what is posted, what is refused."""

import asyncio
import json
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from reviewed import (
    EXAMPLE,
    NOW,
    PROGRAM,
    SCRIPTED,
    SPOKEN,
    begin,
    check_once,
    decide,
    event_of,
    folder_alone,
    kinds,
    reviewed_team,
)
from team_files import outcome

from tripod.agents import folder, jobs
from tripod.agents.folder import RunFolder
from tripod.agents.jobs import newest
from tripod.bus import events as bus
from tripod.bus import reader as claims
from tripod.chat import reader as chat_read
from tripod.chat import writer as chat_send
from tripod.errors import BadArgumentError, NotFoundError, RefusedError
from tripod.projections.pythia.format import parse_assessment
from tripod.pythia import review as pythia
from tripod.pythia.checkpoints import checkpoint_named, checkpoint_of, checkpoint_snapshot
from tripod.pythia.review import ROLE, review
from tripod.recovery import redaction
from tripod.team import adoption
from tripod.team.team import Team
from tripod.trust import actors, keys
from tripod.verify.evidence import collect
from tripod.verify.isolation.runs import LIMIT
from tripod.verify.run import run as judge


def run(
    team: Team, program: folder.IsolatedProgram = PROGRAM, **more: Any
) -> pythia.ReviewOutcome | None:
    """One review; without a mount namespace, which has tests of its own."""
    with folder_alone():
        return asyncio.run(pythia.run(team, program, NOW, **more))


def answered(
    team: Team, program: folder.IsolatedProgram = PROGRAM, **more: Any
) -> pythia.PostedAssessment:
    """One review, and what came of it."""
    found = run(team, program, **more)
    assert found is not None
    assert found.answer is not None, found
    return found.answer


def shell(line: str, **more: Any) -> folder.IsolatedProgram:
    """A program that runs a line of shell."""
    return folder.IsolatedProgram(command=("sh", "-c", line), **more)


def bodies(team: Team, kind: str) -> list[dict[str, Any]]:
    return [entry.data for entry in team.store.read() if entry.kind == kind]


def prompts(team: Team) -> list[dict[str, Any]]:
    """What was delivered to her on standard input."""
    return [body for body in bodies(team, "delivered") if body["channel"] == "prompt"]


# What is due -----------------------------------------------------------------------------------


def test_each_event_is_due_until_it_is_answered() -> None:
    with reviewed_team() as (_, team):
        decide(team, 3)
        first, second = pythia.due(team, NOW)
        assert (first.decisions, first.state, first.claimed, first.problem) == (
            3, "waiting", None, None,
        )  # fmt: skip
        ids = [id_ for (id_,) in team.store.db.execute("SELECT id FROM pieces ORDER BY seq")]
        assert (first.first, first.last) == (ids[0], ids[2])
        assert (second.first, second.last) == (ids[3], ids[5])
        assert answered(team).event == first.name
        assert [one.name for one in pythia.due(team, NOW)] == [second.name]
        assert answered(team, event=second.name).event == second.name
        assert pythia.due(team, NOW) == []
        assert run(team) is None


def test_an_event_without_a_range_asks_for_what_is_new() -> None:
    with reviewed_team() as (_, team):
        answered(team)
        ids = decide(team, 2)
        bus.publish(team, "sidecar", "pythia-checkpoint", "high", "it is time")
        (due,) = pythia.due(team, NOW)
        assert (due.first, due.last, due.decisions) == (ids[0], ids[1], 2)
        assert answered(team).decisions == 2
        bus.publish(team, "sidecar", "pythia-checkpoint", "high")
        (due,) = pythia.due(team, NOW)
        assert due.problem is not None
        assert "none was logged since" in due.problem
        assert run(team) is None
        assert "none was logged since" in team.warnings[-1]


def test_an_event_that_names_unknown_decisions_cannot_be_answered() -> None:
    with reviewed_team() as (_, team):
        text = "Checkpoint at decision 2. Decisions D-1 through D-2."
        name = bus.publish(team, "ann", "pythia-checkpoint", "high", text)
        assert [one.problem is None for one in pythia.due(team, NOW)] == [True, False]
        with pytest.raises(RefusedError, match="D-1 through D-2: no such decisions"):
            run(team, event=name)
        with pytest.raises(NotFoundError, match="no checkpoint event"):
            run(team, event="1-a-b-1.event")


def test_who_claimed_an_event_has_it_reviewed_or_releases_it() -> None:
    with reviewed_team() as (_, team):
        name = event_of(team)
        claims.claim(team, "supervisor", name)
        now = 0
        assert pythia.due(team, now)[0].claimed == "supervisor"
        with pytest.raises(RefusedError, match="is claimed by supervisor"), folder_alone():
            asyncio.run(pythia.run(team, PROGRAM, now, event=name))
        with folder_alone():
            assert asyncio.run(pythia.run(team, PROGRAM, now)) is None
        claims.release(team, "supervisor", name)
        team.warnings.clear()
        answered(team)
        check_once(team, name)


def findings(team: Team) -> list[str]:
    """What `events-processed` says, with its severity."""
    with collect(team.root) as evidence:
        found = outcome(judge(evidence), "events-processed").findings
    return [f"{one.severity}: {one.message}" for one in found]


def acknowledge(team: Team, how: str, name: str) -> None:
    """Take the event out of the queue, by one way or the other."""
    if how == "ack-all":
        bus.ack_all(team)
    else:
        bus.ack(team, name, actor="ann")


@pytest.mark.parametrize("how", ["ack", "ack-all"])
def test_an_acknowledgement_is_no_review(how: str) -> None:
    with reviewed_team() as (_, team):
        name = event_of(team)
        acknowledge(team, how, name)
        (due,) = pythia.due(team, NOW)
        assert (due.name, due.state, due.acknowledged) == (name, "waiting", True)
        assert findings(team) == [
            f"failure: {name} (pythia-checkpoint) was acknowledged, and no assessment answers it"
        ]
        assert answered(team).event == name
        assert pythia.due(team, NOW) == []
        assert findings(team) == []
        assert [kind for kind in kinds(team) if kind.startswith("bus.acked")] == [
            f"bus.{word}" for word in (["acked"] if how == "ack" else ["acked-all"])
        ]


def test_a_manual_call_has_the_acknowledged_event_answered() -> None:
    with reviewed_team() as (_, team):
        name = event_of(team)
        bus.ack_all(team)
        assert answered(team, manual=True).event == name


ASSESSED = """## Pythia Checkpoint - 2026-02-12T14:00:00Z

Decisions reviewed: {} through {} (3 decisions)

### Confidence

high
"""


@pytest.mark.parametrize("long", [False, True], ids=["short", "in a blob"])
def test_an_assessment_that_was_posted_otherwise_answers_the_event(*, long: bool) -> None:
    with reviewed_team() as (_, team):
        (due,) = pythia.due(team, NOW)
        text = ASSESSED.format(due.first, due.last) + "so it is\n" * (10_000 if long else 1)
        chat_send.send(team, "live", "oracle", text)
        bus.ack(team, due.name, actor="ann")
        assert pythia.due(team, NOW) == []
        assert findings(team) == []
        with pytest.raises(RefusedError, match="is settled"):
            run(team, event=due.name)
        assert "agent.requested" not in kinds(team)


def test_an_assessment_of_other_decisions_or_of_before_answers_nothing() -> None:
    with reviewed_team() as (_, team):
        chat_send.send(team, "live", "oracle", ASSESSED.format("D-1", "D-2"))
        first = pythia.due(team, NOW)[0]
        chat_send.send(team, "live", "oracle", ASSESSED.format(first.first, first.last))
        decide(team, 3)
        chat_send.send(team, "live", "oracle", "Pythia checkpoint: what about it?")
        bus.ack_all(team)
        (second,) = pythia.due(team, NOW)
        assert second.name != first.name
        assert [one.startswith(f"failure: {second.name}") for one in findings(team)] == [True]


def test_what_cannot_be_answered_is_settled_by_an_acknowledgement() -> None:
    with reviewed_team() as (_, team):
        answered(team)
        bus.publish(team, "ann", "pythia-checkpoint", "high")
        text = "Checkpoint at decision 2. Decisions D-1 through D-2."
        bus.publish(team, "ann", "pythia-checkpoint", "high", text)
        assert len(pythia.due(team, NOW)) == 2
        bus.ack_all(team)
        assert pythia.due(team, NOW) == []
        assert findings(team) == []


def test_where_its_file_was_pruned_another_event_asks_again() -> None:
    with reviewed_team() as (_, team):
        (due,) = pythia.due(team, NOW)
        payload = team.source.body(bus.find_pending_event(team, due.name))["payload"]["text"]
        bus.ack_all(team)
        bus.prune(team, 1)
        assert [one.startswith(f"failure: {due.name}") for one in findings(team)] == [True]
        bus.publish(team, "scribe", "pythia-checkpoint", "high", payload)
        answered(team)
        assert findings(team) == []


def test_what_was_acknowledged_before_the_ledger_is_settled_and_told(tmp_path: Path) -> None:
    root = tmp_path / ".nbs"
    with reviewed_team() as (project, team):
        name = event_of(team)
        bus.ack_all(team)
        for folder in ("events", "chat", "scribe"):
            shutil.copytree(project / ".nbs" / folder, root / folder)
    adoption.init(str(tmp_path))
    with Team(str(root)) as team:
        team.refresh()
        assert pythia.due(team, NOW) == []
        assert run(team) is None
        assert findings(team) == [
            f"warning: {name} (pythia-checkpoint) was acknowledged, and no assessment answers it"
        ]
        with pytest.raises(RefusedError, match="before the ledger began"):
            run(team, event=name)


# Running the reviewer --------------------------------------------------------------------------


def test_one_event_gives_one_assessment_all_at_once() -> None:
    with reviewed_team() as (_, team):
        name = event_of(team)
        answer = answered(team)
        check_once(team, name)
        said = parse_assessment(answer.text)
        assert said is not None
        assert (said.first, said.last, said.count) == (answer.first, answer.last, 3)
        assert (answer.origin, answer.level, answer.confidence) == ("run", "folder", "low")
        assert answer.cited
        assert set(answer.cited) <= {
            id_ for (id_,) in team.store.db.execute("SELECT id FROM pieces")
        }
        (message,) = [m for m in chat_read.messages(team, "live") if m.handle == "pythia"]
        assert (message.number, message.text) == (answer.message, answer.text)
        assert pythia.show(team) == pythia.show(team, name) == answer
        tail = [e.kind for e in team.store.read()][-5:]
        assert tail == [
            "chat.sent",
            "bus.published",
            "pythia.assessed",
            "bus.published",
            "bus.acked",
        ]
        posted = bodies(team, "bus.published")[-1]
        assert (posted["source"], posted["type"], posted["priority"]) == (
            "pythia", "assessment-posted", "normal",
        )  # fmt: skip
        again = answered(team, event=name)
        assert again == answer
        assert kinds(team).count("agent.requested") == 1


LOOK = f"pwd >&2; ls -A . $HOME >&2; env >&2; exec {sys.executable} {EXAMPLE}"
"""A program that says where it is and what it sees around it, and answers."""


def test_she_is_given_the_log_and_nothing_else() -> None:
    with reviewed_team() as (project, team):
        decide(team, 1)
        answered(team, shell(LOOK))
        (given,) = prompts(team)
        text = team.source.content(given["content"]).decode()
        seqs = [seq for (seq,) in team.store.db.execute("SELECT seq FROM pieces ORDER BY seq")]
        assert given["sources"] == seqs[:3]
        log = (project / ".nbs/scribe/log.md").read_text()
        kept = log[log.index("\n---\n\n### ") :].rpartition("\n---\n\n### ")[0]
        assert text.endswith(f"The decision log:\n\n# Decision Log\n{kept}")
        assert SPOKEN not in text
        assert ".nbs" not in text
        (ended,) = bodies(team, "agent.ended")
        seen = team.source.content(ended["stderr"]["content"]).decode()
        at, *listed = seen.splitlines()[:4]
        assert at.endswith("/work")
        assert not at.startswith(str(project))
        assert listed == [".:", "", f"{at.removesuffix('work')}home:"]
        assert f"HOME={at.removesuffix('work')}home\n" in seen
        assert "TRIPOD_HOME" not in seen
        assert (ended["stdout"]["bytes"], ended["status"]) == (
            len(pythia.show(team).text.encode()) + 1,
            "ok",
        )
        assert bodies(team, "pythia.isolated") == [
            {
                "spawn": given["spawn"],
                "level": "folder",
                "hidden": [],
                "problem": "no-such-bwrap is not installed",
                "v": 1,
            }
        ]


def test_the_log_of_others_is_given_as_they_wrote_it() -> None:
    with reviewed_team() as (project, team):
        entry = (
            "\n---\n\n### D-1707753600 Wrapped\n\n- **Chat ref:** —\n- **Participants:** ann\n"
            "- **Artefacts:** —\n- **Risk tags:** none\n- **Status:** decided\n"
            "- **Rationale:** Over\n  two lines.\n"
        )
        with (project / ".nbs/scribe/log.md").open("a") as log:
            log.write(entry)
        bus.publish(team, "ann", "pythia-checkpoint", "high")
        team.refresh()
        newest_due = pythia.due(team, NOW)[-1]
        assert newest_due.last == "D-1707753600"
        point = checkpoint_of(team, bus.find_pending_event(team, newest_due.name))
        assert checkpoint_snapshot(team, point).text.endswith(entry)
        assert answered(team, event=newest_due.name).last == "D-1707753600"


def test_of_a_very_long_log_she_is_given_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    with reviewed_team() as (_, team):
        decide(team, 3)
        monkeypatch.setattr("tripod.pythia.checkpoints.MAX_GIVEN", 4)
        first, second = (one.name for one in pythia.due(team, NOW))
        answered(team, event=second)
        (given,) = prompts(team)
        text = team.source.content(given["content"]).decode()
        assert "# Decision Log\n\n(2 older decisions are left out.)\n\n---\n" in text
        assert len(given["sources"]) == 4
        assert text.count("\n### D-") == 4
        monkeypatch.setattr("tripod.pythia.checkpoints.MAX_GIVEN", 2)
        with pytest.raises(RefusedError, match="a review takes 2 at most"):
            run(team, event=first)


def test_who_stops_the_command_stops_her(tmp_path: Path) -> None:
    with reviewed_team() as (project, team):

        async def stopped() -> None:
            work = asyncio.ensure_future(
                pythia.run(team, shell(f"touch {project}/on; exec sleep 600"), NOW)
            )
            while not (project / "on").exists():  # noqa: ASYNC110 - a file tells it
                await asyncio.sleep(0.01)
            work.cancel()
            with pytest.raises(asyncio.CancelledError):
                await work

        name = event_of(team)
        with folder_alone():
            asyncio.run(stopped())
        (ended,) = bodies(team, "agent.ended")
        assert ended["status"] == "killed"
        answered(team)
        check_once(team, name)


def test_she_signs_where_she_has_a_key() -> None:
    with reviewed_team() as (_, team):
        name = event_of(team)
        actors.enrol_actor(team, "pythia", keys.no_passphrase)
        answered(team)
        check_once(team, name)
        signed = {e.kind for e in team.store.read() if e.actor == "pythia" and e.auth is not None}
        assert {"chat.sent", "pythia.assessed", "bus.acked", "bus.claimed"} <= signed


WRONG = "printf 'Looks fine to me.\\n'"


@pytest.mark.parametrize(
    ("first", "problem"),
    [
        (WRONG, "it does not begin with `## Pythia Checkpoint"),
        ("true", "it printed nothing"),
        ("echo no >&2; exit 3", "it ended with exit code 3"),
        ("kill -9 $$", "it was killed by signal 9"),
    ],
)
def test_a_bad_answer_is_tried_once_more_and_she_is_told(first: str, problem: str) -> None:
    with reviewed_team() as (project, team):
        name = event_of(team)
        mark = project / "mark"
        once = f"if [ ! -e {mark} ]; then touch {mark}; {first}; exit; fi"
        line = f"{once}; exec {sys.executable} {EXAMPLE}"
        answered(team, shell(line))
        check_once(team, name)
        one, other = prompts(team)
        before, after = (team.source.content(b["content"]).decode() for b in (one, other))
        assert "refused" not in before
        assert f"refused:\n\n- {problem}" in after
        assert one["sources"] == other["sources"]
        assert [b["attempt"] for b in bodies(team, "agent.requested")] == [1, 2]
        assert [b["attempt"] for b in bodies(team, "bus.claimed")] == [1, 2]


@pytest.mark.parametrize("level", ["folder", "namespace"])
def test_what_an_answer_says_that_could_quote_the_chat_is_not_told_in_a_namespace(
    level: Literal["folder", "namespace"], monkeypatch: pytest.MonkeyPatch
) -> None:
    with reviewed_team() as (project, team), folder_alone():
        point = checkpoint_named(team, event_of(team))
        program = shell(f"cat {project}/.nbs/chat/live.chat")
        real = jobs.run

        async def killed(*words: Any, **more: Any) -> None:
            await real(*words, **more)
            raise InterruptedError

        with monkeypatch.context() as patch:
            patch.setattr(jobs, "run", killed)
            with pytest.raises(InterruptedError):
                run(team, program)
        order = pythia.order_reviewer(team, PROGRAM, "ann")
        again = replace(order, place=order.place._replace(level=level), prompt="Review this.\n")
        stand = asyncio.run(review(team, point, checkpoint_snapshot(team, point), again))
        assert stand.answer is None  # the prompt said of no range
        texts = [team.source.content(b["content"]).decode() for b in prompts(team)]
        assert ["refused" in text for text in texts] == [False, level == "folder"]


@pytest.mark.parametrize("line", [WRONG, "true", "exit 3"])
def test_twice_a_bad_answer_is_a_failure_and_the_event_stays(line: str) -> None:
    with reviewed_team() as (_, team):
        name = event_of(team)
        found = run(team, shell(f"{line}; echo why >&2"))
        assert found is not None
        assert (found.answer, found.event) == (None, name)
        assert found.problems
        (failed,) = bodies(team, "pythia.failed")
        assert failed["problems"] == found.problems
        assert failed["spawns"] == [b["spawn"] for b in bodies(team, "agent.requested")]
        assert len(failed["spawns"]) == 2
        assert kinds(team).count("bus.released") == 1
        assert [(one.name, one.state) for one in pythia.due(team, NOW)] == [(name, "failed")]
        assert [m for m in chat_read.messages(team, "live") if m.handle == "pythia"] == []
        answered(team)
        check_once(team, name)
        assert [b["attempt"] for b in bodies(team, "agent.requested")] == [1, 2, 3]


def test_what_she_says_of_decisions_that_she_was_not_given_is_no_answer() -> None:
    with reviewed_team() as (_, team):
        (later,) = decide(team, 1)
        change = f"s/why it was done/and {later} too/;s/when it/{later}/"
        line = f"{sys.executable} {EXAMPLE} | sed '{change}'"
        found = run(team, shell(line))
        assert found is not None
        assert found.problems == [f"it cites {later}: no decision of the log"]


def test_a_channel_that_is_not_there_is_begun() -> None:
    with reviewed_team() as (project, team):
        name = event_of(team)
        config = project / ".nbs/events/config.yaml"
        config.write_text("pythia-interval: 3\npythia-channel: reviews.chat\n")
        team.refresh()
        assert answered(team).channel == "reviews"
        check_once(team, name)
        assert [m.handle for m in chat_read.messages(team, "reviews")] == ["pythia"]


# A manual call --------------------------------------------------------------------------------


def test_a_manual_call_publishes_its_event_first(tmp_path: Path) -> None:
    assert begin(tmp_path, interval=0) == ""
    with Team(str(tmp_path / ".nbs")) as team:
        team.refresh()
        assert run(team) is None
        answer = answered(team, manual=True, actor="alex")
        check_once(team, answer.event)
        asked = next(b for b in bodies(team, "bus.published") if b["name"] == answer.event)
        assert (asked["source"], asked["type"], asked["priority"]) == (
            "alex", "pythia-checkpoint", "high",
        )  # fmt: skip
        order = kinds(team)
        assert order.index("agent.requested") > order.index("bus.published")
        assert run(team, manual=True) is None
        (new,) = decide(team, 1)
        second = answered(team, manual=True)
        assert (second.first, second.last, second.decisions) == (new, new, 1)


def test_without_a_decision_there_is_nothing_to_review(tmp_path: Path) -> None:
    adoption.init(str(tmp_path))
    with Team(str(tmp_path / ".nbs")) as team:
        team.refresh()
        with pytest.raises(NotFoundError, match="no decision is logged yet"):
            run(team, manual=True)
        with pytest.raises(NotFoundError, match="no assessment yet"):
            pythia.show(team)


# From outside ---------------------------------------------------------------------------------


def text_for(team: Team) -> str:
    """An assessment of what is due, as somebody else may write it."""
    due = pythia.due(team, NOW)[0]
    return (
        f"## Pythia Checkpoint — 2026-02-12T14:00:00Z\n\nDecisions reviewed: {due.first} through "
        f"{due.last} ({due.decisions} decisions)\n\n### Hidden Assumptions\n\n{due.first} has one."
        "\n\n### Second-Order Risks\n\nSome.\n\n### Missing Validation\n\nA test.\n\n"
        "### Six-Month Regret Scenario\n\nIt grows.\n\n### Confidence\n\nhigh\n"
    )


def test_an_assessment_from_outside_is_marked_as_such() -> None:
    with reviewed_team() as (_, team):
        name = event_of(team)
        text = text_for(team)
        answer = pythia.record(team, text, NOW, handle="oracle")
        assert (answer.origin, answer.level, answer.text) == ("recorded", None, text.strip())
        (assessed,) = bodies(team, "pythia.assessed")
        assert "spawn" not in assessed
        assert next(
            m for m in chat_read.messages(team, "live") if m.number == answer.message
        ).handle == ("oracle")
        assert [one.name for one in pythia.due(team, NOW)] == []
        with pytest.raises(RefusedError, match="is answered"):
            pythia.record(team, text, NOW, event=name)
        with pytest.raises(NotFoundError, match="no checkpoint event waits"):
            pythia.record(team, text, NOW)


def test_what_does_not_hold_is_not_recorded() -> None:
    with reviewed_team() as (_, team):
        size = team.store.head().size
        with pytest.raises(RefusedError, match="nothing stands there"):
            pythia.record(team, text_for(team).replace("It grows.", ""), NOW)
        with pytest.raises(RefusedError, match="it is empty"):
            pythia.record(team, " ", NOW)
        assert team.store.head().size == size


# Where she is run -----------------------------------------------------------------------------


def test_a_namespace_that_is_required_and_cannot_be_had_is_refused() -> None:
    with reviewed_team() as (_, team):
        program = folder.IsolatedProgram(command=PROGRAM.command, require_namespace=True)
        size = team.store.head().size
        with pytest.raises(RefusedError, match="no-such-bwrap is not installed"):
            run(team, program)
        assert team.store.head().size == size


@pytest.mark.parametrize(
    ("command", "shows", "error", "problem"),
    [
        (("no-such-program",), (), NotFoundError, "no program 'no-such-program'"),
        (("cat", ".nbs/chat/live.chat"), (), RefusedError, "may not see"),
        (("cat", "x.link"), (), RefusedError, "may not see"),
        (("cat",), (".",), RefusedError, "may not see"),
        (("cat",), (".nbs/scribe",), RefusedError, "may not see"),
        (("cat",), ("nowhere",), NotFoundError, "nothing is there"),
    ],
)
def test_no_path_into_the_team_is_handed_to_her(
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    shows: tuple[str, ...],
    error: type[Exception],
    problem: str,
) -> None:
    with reviewed_team() as (project, team):
        (project / "x.link").symlink_to(project / ".nbs/chat/live.chat")
        monkeypatch.chdir(project)
        size = team.store.head().size
        with pytest.raises(error, match=problem):
            run(team, folder.IsolatedProgram(command=command, shows=shows))
        assert team.store.head().size == size


def test_what_others_said_is_no_file_of_hers_wherever_it_was_put(tmp_path: Path) -> None:
    (tmp_path / "tool/data").mkdir(parents=True)
    (tmp_path / "tool/data/talk.chat").write_text("copied")
    (tmp_path / "link").symlink_to(tmp_path / "tool/data/talk.chat")
    with reviewed_team() as (project, team):
        size = team.store.head().size
        for command, shows in (
            (("cat", str(tmp_path / "tool/data/talk.chat")), ()),
            (("cat", str(tmp_path / "link"), "./link"), ()),
            (("cat",), (str(tmp_path / "tool"),)),
        ):
            with pytest.raises(RefusedError, match="a place of what a team says"):
                run(team, folder.IsolatedProgram(command=command, shows=shows))
        for lent, problem in (
            (project / ".nbs/chat/live.chat", "may not see"),
            (tmp_path / "tool/data/talk.chat", "a place of what a team says"),
        ):
            profile = tmp_path / "agent.toml"
            profile.write_text(f'argv = ["cat"]\n[isolated]\nconfig = "HERS"\nlends = ["{lent}"]\n')
            with pytest.raises(RefusedError, match=problem):
                run(team, folder.IsolatedProgram(profile=str(profile)))
        assert team.store.head().size == size


def test_the_files_of_her_command_line_are_delivered_to_her_and_judged(tmp_path: Path) -> None:
    notes, script = tmp_path / "notes.txt", tmp_path / "review"
    notes.write_text(f"They said: {SPOKEN}")
    script.write_text(f"#!/bin/sh\nexec {sys.executable} {EXAMPLE}\n")
    script.chmod(0o755)
    with reviewed_team() as (_, team):
        answered(team, folder.IsolatedProgram(command=(str(script), str(notes))))
        given = [body for body in bodies(team, "delivered") if body["channel"] == "file"]
        texts = [team.source.content(body["content"]) for body in given]
        assert texts == [script.read_bytes(), notes.read_bytes()]
        with collect(team.root) as evidence:
            found = outcome(judge(evidence), "pythia-isolation").findings
        assert [finding.message.partition(": ")[2] for finding in found] == [
            "a file that it was given holds 12 words in a row of chat live, message 0"
        ]


def test_of_a_file_that_is_too_long_nobody_can_tell_and_one_that_is_unreadable_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("x " * (LIMIT // 2) + "yes")
    program = folder.IsolatedProgram(command=(*SCRIPTED, str(notes)))
    with reviewed_team() as (_, team):
        monkeypatch.setattr("tripod.agents.isolation.open", refusing, raising=False)
        with pytest.raises(RefusedError, match="so it must be readable"):
            run(team, program)
        monkeypatch.undo()
        answered(team, program)
        assert bodies(team, "delivered")[1]["content"]["size"] == LIMIT + 1
        with collect(team.root) as evidence:
            told = outcome(judge(evidence), "pythia-isolation")
        assert told.verdict == "cannot tell"
        assert "is too long to be searched" in told.reason


def refusing(*_: object, **__: object) -> None:
    """An ``open`` that is not allowed to."""
    raise PermissionError(13, "Permission denied")


def test_a_program_and_a_profile_are_one_too_many() -> None:
    with reviewed_team() as (_, team):
        program = folder.IsolatedProgram(command=("cat",), profile="pythia")
        with pytest.raises(BadArgumentError, match="given twice"):
            run(team, program)


def test_a_profile_may_lend_her_a_login_and_keep_what_she_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    login = tmp_path / "login"
    login.write_text("sesame")
    agent = tmp_path / "agent"
    agent.write_text(
        "#!/bin/sh\nset -e\ncat $AGENT_HOME/login >/dev/null\nmkdir -p $AGENT_HOME/sessions/a\n"
        f"echo '{{}}' > $AGENT_HOME/sessions/a/one.jsonl\nexec {sys.executable} {EXAMPLE}\n"
    )
    agent.chmod(0o755)
    profile = tmp_path / "agent.toml"
    profile.write_text(
        f'argv = ["{agent}"]\n[isolated]\nconfig = "AGENT_HOME"\ntranscripts = "sessions"\n'
        f'lends = ["{login}", "{tmp_path}/none"]\n'
    )
    with reviewed_team() as (project, team):
        name = event_of(team)
        monkeypatch.setenv(pythia.PROFILE, str(profile))
        answered(team, folder.IsolatedProgram())
        check_once(team, name)
        (kept,) = bodies(team, "evidence.kept")
        assert team.source.content(kept["content"]) == b"{}\n"
        assert (project / ".nbs" / kept["path"]).read_bytes() == b"{}\n"
        assert "sesame" not in "".join(map(json.dumps, bodies(team, "agent.requested")))
        last = newest(team.store.db, ROLE, str(bodies(team, "pythia.assessed")[0]["event"]))
        assert last is not None
        assert kept["path"] == f"workers/pythia-{last.spawn[:12]}-1.log"
        assert list((project.parent / "tmp").glob("*/*")) == []


def test_a_link_in_place_of_transcripts_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/key").write_text("sesame")
    folder = RunFolder(str(tmp_path / "base/one"))
    (tmp_path / "base").mkdir(mode=0o700)
    folder.make(config=True, lends=())
    own = tmp_path / "base/one/home/config"
    (own / "sessions").mkdir()
    (own / "sessions/mine").write_text("{}")
    (own / "sessions/key").symlink_to(tmp_path / "secret/key")
    (own / "sessions/more").symlink_to(tmp_path / "secret")
    (own / "others").symlink_to(tmp_path / "secret")
    assert list(folder.transcripts("sessions")) == [(str(own / "sessions/mine"), b"{}", False)]
    assert list(folder.transcripts("others")) == []
    assert list(folder.transcripts("none")) == []


def test_others_folder_in_her_place_is_refused() -> None:
    with reviewed_team() as (project, team):
        base = project.parent / f"tmp/tripod-{os.getuid()}"
        base.mkdir(mode=0o755)
        base.chmod(0o755)
        with pytest.raises(RefusedError, match="is not a private folder of yours"):
            run(team)
        assert "agent.requested" not in kinds(team)


def test_an_erased_decision_is_not_given_to_her() -> None:
    with reviewed_team() as (_, team):
        seq = team.store.db.execute("SELECT min(seq) FROM pieces").fetchone()[0]
        redaction.redact(team, redaction.RedactionRequest((seq,), None, "asked to", "ann"))
        answered(team)
        (given,) = prompts(team)
        assert "Number 0" not in team.source.content(given["content"]).decode()


def test_what_she_wrote_can_be_erased_everywhere() -> None:
    secret = "sesame-open-4711"
    said = f"{sys.executable} {EXAMPLE} | sed 's/^overall:/{secret}&/'"
    with reviewed_team() as (project, team):
        run(team, shell(said))
        answered(team, shell(f"{said.replace('^overall:', '^In six')}"))
        held = [path for path in project.rglob("*") if path.is_file()]
        assert any(secret.encode() in path.read_bytes() for path in held)
        done = redaction.redact(team, redaction.RedactionRequest((), secret, "it leaked", "ann"))
        assert {"pythia.assessed", "chat.sent", "agent.ended"} <= {one.kind for one in done.erased}
        assert done.cannot == []
        assert [path for path in held if secret.encode() in path.read_bytes()] == []
        assert pythia.show(team).text == "[redacted]"
        assert pythia.due(team, NOW) == []
        with collect(team.root) as evidence:
            assert judge(evidence).failures == 0


def test_why_no_assessment_came_of_it_can_be_erased() -> None:
    secret = "sesame-open-4711"
    with reviewed_team() as (_, team):
        found = run(team, shell(f"{sys.executable} {EXAMPLE}; echo '### {secret}'"))
        assert found is not None
        assert secret in str(found.problems)
        done = redaction.redact(team, redaction.RedactionRequest((), secret, "it leaked", "ann"))
        assert "pythia.failed" in {one.kind for one in done.erased}
        (failed,) = bodies(team, "pythia.failed")
        assert failed["problems"] == ["[redacted]"]
        assert [one.state for one in pythia.due(team, NOW)] == ["failed"]
