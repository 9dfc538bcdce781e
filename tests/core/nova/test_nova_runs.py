"""Whole Nova runs in memory: random panels, borders, ends of programs, cancelling, hostile records.

Two thousand random runs stand here in a hundred cases; each run of the tests draws a fifth of the
cases and plays a quarter of each, ``make soak`` (or TRIPOD_TRIALS) plays all.
"""

import asyncio
import os
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paneled import (
    KINDS,
    ORDER,
    DiedError,
    Driver,
    Reply,
    carry_on,
    check_run,
    paper,
    play,
    rows_of,
    told,
    untold,
)

from tripod.errors import BadArgumentError, RefusedError
from tripod.nova import runner
from tripod.nova.runner import NovaLimits, decide_nova, nova_run
from tripod.projections.nova import files
from tripod.projections.nova.run import NovaRun

RUNS = 20
DRAW = random.Random(1)  # noqa: S311 - where a fold is cut, no key


@pytest.mark.drawn
@pytest.mark.parametrize("case", range(100))
def test_random_runs_end_as_the_rules_say(case: int) -> None:
    drawn = range(RUNS) if "TRIPOD_TRIALS" in os.environ else random.sample(range(RUNS), RUNS // 4)
    for number in drawn:
        seed = case * RUNS + number
        try:
            play(random.Random(seed))  # noqa: S311 - panels, not keys
        except AssertionError as error:
            error.add_note(f"play(random.Random({seed}))")
            raise


# Borders ---------------------------------------------------------------------------------------


def panel(**answers: Any) -> Callable[[str, str, int, int], Reply]:
    """A panel that agrees, except where a role's fields are given."""

    def reply(role: str, persona: str, cycle: int, attempt: int) -> Reply:
        del persona, cycle, attempt
        usual = told(0.8, 0.2) if role in ("unpack", "synthesis", "final") else {}
        return Reply(untold(role, **(usual | answers.get(role, {}))))

    return reply


def ran(
    panel: Callable[[str, str, int, int], Reply],
    limits: NovaLimits | None = None,
    *choices: str,
) -> tuple[NovaRun, list[tuple[str, dict[str, Any]]], Driver]:
    """A run to its end, or to where a person is needed and no choice is left; its entries."""
    driver = Driver(panel)
    with paper(driver) as team:
        name = team.open(limits=limits)
        run = carry_on(team, name)
        for choice in choices:
            decide_nova(team.team, name, choice, "look again", "ann")
            run = carry_on(team, name)
        assert run is not None
        if run.finalized is not None:
            check_run(team, name, DRAW)
        return run, [(kind, body) for _, kind, body in rows_of(team.source, name)], driver


def reasons(entries: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, int]]:
    return [(body["reason"], body["cycle"]) for kind, body in entries if kind == "nova.escalated"]


@pytest.mark.parametrize(("uncertainty", "cycles"), [("0.35", 1), ("0.3501", 5), (0.35001, 5)])
def test_at_the_border_a_synthesis_passes_and_above_it_loops(
    uncertainty: object, cycles: int
) -> None:
    knows = iter(range(9))

    def reply(role: str, persona: str, cycle: int, attempt: int) -> Reply:
        if role == "synthesis":
            return Reply(untold(role, **told(next(knows) / 10, uncertainty)))
        return panel()(role, persona, cycle, attempt)

    run, entries, _ = ran(reply)
    assert run.number == cycles
    assert reasons(entries) == ([] if cycles == 1 else [("max_rounds", 5)])
    assert run.state == ("done" if cycles == 1 else "awaiting_human")


def test_a_missing_state_is_asked_for_once_and_then_fails_closed() -> None:
    run, entries, driver = ran(panel(synthesis={"epistemic": None}))
    turns = [body for kind, body in entries if kind == "nova.turn.recorded"]
    syntheses = [body for body in turns if body["role"] == "synthesis"]
    expected = {"know": "0", "uncertainty": "1", "source": "missing"}
    assert [one["epistemic"] for one in syntheses] == 3 * [expected]
    # Three that say nothing are flat as well.
    assert reasons(entries) == [("converged_unresolved", 3)]
    assert run.state == "awaiting_human"
    orders = {key.partition("/")[2]: count for key, count in driver.orders.items()}
    assert {c for key, c in orders.items() if "synthesis" in key} == {2}
    assert {c for key, c in orders.items() if "synthesis" not in key} == {1}
    second = [data.decode() for data in driver.prompts.values() if b"was refused" in data]
    assert len(second) == 3
    assert all("`know` and `uncertainty`" in text for text in second)


def test_five_critical_critiques_are_left_to_a_person() -> None:
    knows = iter(range(9))

    def reply(role: str, persona: str, cycle: int, attempt: int) -> Reply:
        if role == "synthesis":
            return Reply(untold(role, dissenters=["security"], **told(next(knows) / 10, 0.3)))
        critical = {"issues": [{"severity": "critical", "text": "it leaks"}], "verdict": "solid"}
        return panel(critique=critical)(role, persona, cycle, attempt)

    run, entries, _ = ran(reply)
    assert reasons(entries) == [("max_rounds", 5)]
    (escalated,) = [body for kind, body in entries if kind == "nova.escalated"]
    assert (escalated["critical"], escalated["dissenters"]) == (1, 1)
    assert escalated["turns"] == len(run.turns) == 1 + 5 * 6
    assert [one.flaws for one in run.cycles] == 5 * ["critical"]


def test_three_flat_syntheses_are_left_to_a_person_in_cycle_three() -> None:
    run, entries, _ = ran(panel(synthesis=told("0.5", "0.50")))
    assert reasons(entries) == [("converged_unresolved", 3)]
    assert [one.converged for one in run.cycles] == [False, False, True]
    # A cycle that a person grants goes on from there, and is as flat.
    run, entries, _ = ran(panel(synthesis=told("0.5", "0.50")), None, "redirect", "accept")
    assert reasons(entries) == [("converged_unresolved", 3), ("converged_unresolved", 4)]
    assert run.finalized is not None
    assert run.finalized["outcome"] == "human_accepted"
    assert run.number == 4


def test_a_solid_synthesis_that_is_flat_goes_on_all_the_same() -> None:
    uncertainty = iter(["0.36", "0.355", "0.35"])

    def reply(role: str, persona: str, cycle: int, attempt: int) -> Reply:
        if role == "synthesis":
            return Reply(untold(role, **told("0.5", next(uncertainty))))
        return panel()(role, persona, cycle, attempt)

    run, entries, _ = ran(reply)
    assert "nova.converged" in [kind for kind, _ in entries]
    assert run.finalized is not None
    assert run.finalized["outcome"] == "decided"


def test_what_a_person_asks_reaches_each_expert_of_the_granted_cycle() -> None:
    _, _, driver = ran(panel(synthesis=told(0.5, 0.5)), NovaLimits(rounds=1), "redirect", "close")
    texts = [data.decode() for data in driver.prompts.values()]
    second = [text for text in texts if "This is cycle 2, role expert." in text]
    assert len(second) == 4
    assert all("# What a person asked\n\nlook again\n" in text for text in second)
    assert not [text for text in texts if "cycle 1" in text and "look again" in text]


def test_an_expert_is_given_no_sibling_of_its_cycle() -> None:
    def reply(role: str, persona: str, cycle: int, attempt: int) -> Reply:
        if role == "expert":
            return Reply(untold(role, analysis=f"secret-{cycle}-{persona}"))
        return panel(synthesis=told(cycle / 10, 0.5))(role, persona, cycle, attempt)

    _, _, driver = ran(reply, NovaLimits(rounds=3))
    prompts = [one.decode() for one in driver.prompts.values()]
    experts = [text for text in prompts if ", role expert." in text]
    assert len(experts) == 12
    assert not [text for text in experts if "secret-" in text]
    assert [text for text in prompts if text not in experts and "secret-3" in text]


def test_unknown_experts_are_dropped_and_none_left_are_all() -> None:
    run, _, _ = ran(panel(unpack={"experts": ["Security", "nobody", "security", "dce"]}))
    assert run.selected == ("security",)
    run, _, _ = ran(panel(unpack={"experts": ["nobody"]}))
    assert run.selected == ("architecture", "integration", "performance", "security")


# How programs end ------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["signal", "timeout", "nonzero", "ok"])
def test_a_program_that_fails_twice_has_used_up_its_tries(end: str) -> None:
    """Also one that a signal ends each time: the system kills what takes too much memory."""
    run, entries, driver = ran(lambda *_: Reply(end=end))
    assert run.finalized is not None
    assert (run.finalized["outcome"], run.state) == ("failed", "failed")
    assert list(driver.orders.values()) == [2]
    (missed,) = [body for kind, body in entries if kind == "nova.turn.missed"]
    assert len(missed["spawns"]) == 2


def test_a_program_that_is_lost_twice_has_used_up_its_tries() -> None:
    run, _, driver = ran(lambda *_: Reply(end="lost"))
    assert run.state == "failed"
    assert list(driver.orders.values()) == [2]


def test_a_program_that_we_ended_has_used_up_no_try() -> None:
    ends = iter(["told"] * 5 + ["nonzero"] + ["told"] * 3)

    def reply(role: str, persona: str, cycle: int, attempt: int) -> Reply:
        end = next(ends, "")
        return Reply(end=end) if end else panel()(role, persona, cycle, attempt)

    run, _, driver = ran(reply)
    assert run.finalized is not None
    assert run.finalized["outcome"] == "decided"
    assert max(driver.orders.values()) == 10


def test_silent_experts_are_passed_over_and_none_is_a_failure() -> None:
    def reply(role: str, persona: str, cycle: int, attempt: int) -> Reply:
        if persona in silent:
            return Reply()
        return panel()(role, persona, cycle, attempt)

    silent = {"security", "performance", "architecture"}
    run, _, _ = ran(reply)
    assert run.finalized is not None
    assert run.finalized["outcome"] == "decided"
    assert list(run.cycles[0].missed) == ["architecture", "performance", "security"]
    silent.add("integration")
    run, _, _ = ran(reply)
    assert run.finalized is not None
    assert run.finalized["reason"] == "no_expert_spoke"


def test_what_a_program_says_it_costs_breaks_no_entry() -> None:
    """Each may claim a billion dollars: the sum takes more digits."""
    run, _, _ = ran(lambda *given: panel()(*given)._replace(cost="999999999.9999"))
    assert run.finalized is not None
    assert run.finalized["cost"] == f"{Decimal('999999999.9999') * len(run.turns):.4f}"
    assert len(run.turns) > 6


# Budgets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("turns", range(1, 9))
def test_a_budget_of_turns_that_runs_out_leaves_the_run_to_a_person(turns: int) -> None:
    run, entries, driver = ran(panel(), NovaLimits(turns=turns))
    assert len(run.turns) == min(turns, 8) == driver.orders.total()
    if turns < 8:
        assert [reason for reason, _ in reasons(entries)] == ["budget"]
        assert run.state == "awaiting_human"


def test_a_budget_of_money_is_counted_when_a_turn_is_recorded() -> None:
    def reply(*given: Any) -> Reply:
        return panel()(*given)._replace(cost="0.1000")

    run, entries, driver = ran(reply, NovaLimits(cost="0.3", concurrency=1))
    # With one expert at a time the third is not begun.
    assert (len(run.turns), f"{run.spent:f}") == (3, "0.3000")
    assert reasons(entries) == [("budget", 1)]
    assert driver.orders.total() == 3


@pytest.mark.parametrize("cost", ["0", "0.0000", "000", "nan", "-1", "1e3", "", "12T", "0.00001"])
def test_a_budget_of_nothing_is_refused(cost: str) -> None:
    with paper(Driver(panel())) as team:
        with pytest.raises(BadArgumentError, match="budget"):
            team.open(limits=NovaLimits(cost=cost))
        with pytest.raises(BadArgumentError, match="budget"):
            team.open(limits=NovaLimits(turns=0))
        assert team.store.size == 1


@pytest.mark.parametrize("deaths", range(24))
def test_where_the_budget_runs_out_no_turn_that_was_begun_is_left_out(deaths: int) -> None:
    """A coordinator that is killed while its experts work: the next one takes what they said."""
    steps = iter(range(100))

    def reply(*given: Any) -> Reply:
        return panel()(*given)._replace(cost="0.1000")

    driver = Driver(reply, lambda _: next(steps) == deaths)
    with paper(driver) as team:
        name = team.open(limits=NovaLimits(cost="0.2"))
        run = carry_on(team, name) or carry_on(team, name)
        assert run is not None
        assert run.state == "awaiting_human"
        decide_nova(team.team, name, "close", "", "ann")
        check_run(team, name, DRAW)


# Cancelling ------------------------------------------------------------------------------------


def test_cancelling_ends_what_runs_and_nothing_more_begins() -> None:
    for moment in range(8):
        calls = iter(range(100))

        def between() -> None:
            if next(calls) == moment:  # noqa: B023 - called within this turn
                runner.cancel_nova(team.team, name, "enough", "ann")  # noqa: B023

        driver = Driver(panel(), between=between)
        with paper(driver) as team:
            name = team.open(limits=NovaLimits(concurrency=2))
            run = carry_on(team, name)
            assert run is not None
            assert run.state == "cancelled"
            assert driver.orders.total() == moment
            check_run(team, name, DRAW)
            with pytest.raises(RefusedError, match="is over"):
                runner.cancel_nova(team.team, name, "again", "ann")
            with pytest.raises(RefusedError, match="waits for no person"):
                decide_nova(team.team, name, "accept", "", "ann")


def test_what_a_cancelled_run_left_behind_is_ended_by_cancelling_again() -> None:
    """The command that cancelled it was killed before the programs were told to end."""
    driver = Driver(panel(), lambda step: step == "behind the start")
    with paper(driver) as team:
        name = team.open()
        assert carry_on(team, name) is None
        with mock.patch.object(runner, "_end_agents"):
            runner.cancel_nova(team.team, name, "enough", "ann")
        sql = "SELECT state FROM agents"
        assert team.store.db.execute(sql).fetchall() == [("started",)]
        assert runner.cancel_nova(team.team, name, "again", "ann").state == "cancelled"
        assert team.store.db.execute(sql).fetchall() == [("ended",)]
        assert runner.end_programs(team.team, name) == 0
        with pytest.raises(RefusedError, match="is over"):
            runner.cancel_nova(team.team, name, "again", "ann")


def test_only_one_person_decides() -> None:
    with paper(Driver(panel(synthesis=told(0.5, 0.5)))) as team:
        name = team.open(limits=NovaLimits(rounds=1))
        with pytest.raises(RefusedError, match="waits for no person"):
            decide_nova(team.team, name, "accept", "", "ann")
        carry_on(team, name)
        decide_nova(team.team, name, "close", "", "ann")
        with pytest.raises(RefusedError, match="waits for no person"):
            decide_nova(team.team, name, "accept", "", "bob")


def test_two_runs_are_told_apart_by_name() -> None:
    with paper(Driver(panel())) as team:
        names = [team.open(question) for question in ("Why?", "why", "?", "!", "ö", "A" * 300)]
        assert names == ["why", "why-2", "run", "run-2", "run-3", "a" * 40]
        for name in names:
            carry_on(team, name)
            check_run(team, name, DRAW)


# Files -----------------------------------------------------------------------------------------


def test_events_tell_what_a_gate_and_a_critique_decided() -> None:
    _, entries, _ = ran(panel())
    shown = [files.nova_event(n, kind, body) for n, (kind, body) in enumerate(entries)]
    assert [one for one in shown if '"decision": "proceed"' in one and "gate" in one]
    assert [one for one in shown if '"decision": "solid"' in one and "critique" in one]
    assert not [one for one in shown if "so be it" in one]


# What others may have written -------------------------------------------------------------------


def content_of(body: dict[str, Any]) -> bytes:
    return str(body["text"]).encode()


OPENED: dict[str, Any] = {
    "run": "r",
    "question": {"text": "why?"},
    "config": {"threshold": "0.35", "epsilon": "0.05", "window": 2, "rounds": 2, "concurrency": 1},
    "personas": [
        {"short_name": "dce", "path": "core/DCE.md", "role": "DCE"},
        {"short_name": "cae", "path": "core/CAE.md", "role": "CAE"},
        {"short_name": "a", "path": "experts/a.md", "role": "A"},
    ],
}
ROLES = ("unpack", "expert", "synthesis", "critique", "revision", "final")
CYCLES = st.sampled_from([0, 1, 2, 3, 7, 2**53 - 1])
WHO = {"role": st.sampled_from(ROLES), "persona": st.sampled_from(["dce", "cae", "a", "b"])}
PARSED = st.sampled_from(
    ["{}", "[]", "[redacted]", '{"experts": 3, "issues": 4, "trade_offs": [5]}', '{"decision": 1}',
     '{"experts": ["a"]}', '{"issues": [{"severity": "critical"}]}',
     '{"decision": "yes", "confidence": "0.9"}', "[" * 100_000]
)  # fmt: skip
STATE = st.none() | st.just({"know": "0.5", "uncertainty": "0.5", "source": "stated"})
BODIES: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "nova.turn.recorded": st.fixed_dictionaries(
        {**WHO, "cycle": CYCLES, "turn": CYCLES, "spawn": st.just("s"), "epistemic": STATE,
         "content": st.just({"text": "x"}), "parsed": PARSED.map(lambda text: {"text": text})}
    ),
    "nova.turn.missed": st.fixed_dictionaries(
        {**WHO, "cycle": CYCLES, "problem": st.just("x"), "spawns": st.just([])}
    ),
    "nova.converged": st.fixed_dictionaries({"cycle": CYCLES}),
    "nova.gate.decided": st.fixed_dictionaries(
        {"cycle": CYCLES, "decision": st.sampled_from(["investigate", "proceed"])}
    ),
    "nova.critique.decided": st.fixed_dictionaries(
        {"cycle": CYCLES, "decision": st.sampled_from(["critical", "minor", "solid"])}
    ),
    "nova.escalated": st.fixed_dictionaries({"cycle": CYCLES, "reason": st.just("budget")}),
    "human.decided": st.fixed_dictionaries(
        {"choice": st.sampled_from(["accept", "redirect", "close"]), "note": st.just({"text": ""})}
    ),
    "nova.finalized": st.fixed_dictionaries(
        {"outcome": st.sampled_from(["decided", "closed", "failed", "cancelled"])}
    ),
    "nova.opened": st.just(OPENED),
    "checkpoint.named": st.just({"name": "CKPT-260101-0000", "position": 3}),
}  # fmt: skip
ANY_ENTRY = st.sampled_from(sorted(BODIES)).flatmap(
    lambda kind: BODIES[kind].map(lambda body: (kind, {"run": "r"} | body))
)


@given(st.lists(ANY_ENTRY, max_size=12))
def test_any_record_is_followed_and_shown(entries: list[tuple[str, dict[str, Any]]]) -> None:
    """A ledger may come from somebody else: what the rules do not allow ends no command."""
    assert set(BODIES) == set(KINDS)
    run = NovaRun.begun(0, OPENED, content_of)
    for seq, (kind, body) in enumerate(entries, 1):
        run.apply(seq, kind, body, content_of)
        run.due_entry()
        list(run.due_turns())
        run.turns_left()
        files.render_transcript(run)
        files.nova_json(files.nova_status(run))
        files.nova_event(seq, kind, body)
        if run.finalized is not None:
            files.render_nova_decision(run, "yes", seq)
    assert run.number <= max([0, *(body.get("cycle", 0) for _, body in entries)]) + 2 * len(entries)


def test_a_run_of_ten_thousand_turns_is_folded_with_as_much_work_a_turn() -> None:
    """Counted, not timed: each turn's fields are read once, and each step looks at its rows."""
    counts = {}
    for cycles in (500, 2_000):
        reads = 0

        def content(body: dict[str, Any]) -> bytes:
            nonlocal reads
            reads += 1
            return content_of(body)

        run = NovaRun.begun(0, OPENED | {"config": OPENED["config"] | {"rounds": 10**6}}, content)
        turn: dict[str, Any] = {
            "run": "r", "turn": 1, "cycle": 0, "role": "unpack", "persona": "dce", "spawn": "s",
            "content": {"text": "x"}, "parsed": {"text": '{"experts": ["a"]}'},
        }  # fmt: skip
        state = {"know": "0.5", "uncertainty": "0.5", "source": "stated"}
        run.apply(1, "nova.turn.recorded", turn, content)
        for cycle in range(1, cycles + 1):
            for role, persona in (("expert", "a"), ("synthesis", "dce"), ("critique", "cae")):
                body = turn | {"role": role, "persona": persona, "cycle": cycle, "epistemic": state}
                run.apply(cycle * 9, "nova.turn.recorded", body, content)
                if role == "synthesis":
                    run.apply(cycle * 9, "nova.gate.decided", {"decision": "proceed"}, content)
            run.apply(cycle * 9, "nova.critique.decided", {"decision": "critical"}, content)
        assert run.number == cycles + 1
        counts[cycles] = (reads - 1) / len(run.turns)
    assert counts[500] == counts[2_000] == 2


def test_a_death_is_no_exception_that_code_of_ours_would_stop() -> None:
    assert not issubclass(DiedError, Exception)


# Many at once ----------------------------------------------------------------------------------


def test_many_runs_in_one_ledger_do_not_mix_and_none_starves() -> None:
    """All of them in one process, which goes from one to the next between any two transactions."""
    crowd, order = 100, list[int]()
    driver = Driver(panel(unpack={"experts": ["security"]} | told(0.8, 0.2)))
    with paper(driver) as team:
        names = [team.open(f"Why {number}?") for number in range(crowd)]

        async def all_of_them() -> None:
            both = [*names, *names[: crowd // 10]]  # some have two commands at work
            runs = (runner.advance(team.team, name, lambda _: ORDER) for name in both)
            for run in await asyncio.gather(*runs):
                assert run.state == "done"

        asyncio.run(all_of_them())
        assert driver.orders.total() == crowd * 5
        assert set(driver.orders.values()) == {1}
        ends = {}
        for entry in team.store.read():
            if entry.kind == "nova.turn.recorded":
                order.append(entry.data["turn"])
            if entry.kind == "nova.finalized":
                ends[entry.data["run"]] = entry.seq
        assert sorted(ends) == sorted(names)
        # Nobody is through before everybody has spoken: none waits for the others to end.
        assert order.index(5) > max(place for place, turn in enumerate(order) if turn == 1)
        for name in names[:: crowd // 10]:
            check_run(team, name, DRAW)
        for name in names:
            rows = rows_of(team.source, name)
            assert {body["run"] for _, _, body in rows} == {name}
            run = nova_run(team.source, name)
            assert [turn.number for turn in run.turns] == list(range(1, 6))
