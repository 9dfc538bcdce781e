"""What the judge must not pass over: each case turns to clean without one part of its code."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from judge_mutants import MODULES, JudgeCase, Mutant, case_of, judge_of, mutants_of
from session_specimens import SECRET

from tripod.verify.isolation import phrases
from tripod.verify.isolation.globs import NeverRule
from tripod.verify.sessions import exposure
from tripod.verify.sessions.items import Call, Gap, Given, Item, Session

FILE = "/w/chat/a.md"
START = Session("s1", "codex", "0.169.0", 1, cwd="/w")
ANSWER = Given("read", 8, 0, "x", call="c")
DENIED = ANSWER._replace(text="Permission to do it has been denied.", denied=True, failed=True)
FAILED = ANSWER._replace(text="File does not exist.", failed=True)
NAMED = Given("mention", 8, 0, "x", named=FILE)
SPAWNED = Gap("missing", 5, "a child", "subagent", child="a1", call="c")
PASTE = Given("paste", 8, 0, "x")
CUT = SECRET.index(" ", 30)
BOTH = (("chat/a.md", SECRET),)


def _reads(*paths: str, ran: bool = False, line: int = 2, **more: Any) -> Call:
    return Call("c", "Read", {}, line, "read", paths, cwd="/w", ran=ran, **more)


def _runs(command: str, name: str = "c", *, ran: bool = False, output: str | None = None) -> Call:
    line = 5 if ran else 2
    return Call(name, "sh", {}, line, "shell", (), command, cwd="/w", ran=ran, output=output)


def _calls(channel: Any, **more: Any) -> Call:
    return Call("c", "x", {}, 2, channel, cwd="/w", **more)


class Turning(NamedTuple):
    """Items, the verdict on them, and the mutant that makes it clean."""

    items: Sequence[Item]
    mutant: str
    told: str = "findings"
    asked: Mapping[str, Any] = MappingProxyType({})
    shown: bool = False  # whether only what was shown is asked for


TURNING = {
    "an answer that names a file which the folder that was searched did not tell": Turning(
        [START, _runs("grep -rn x sub"), ANSWER._replace(text="sub/chat/a.md:1: x")],
        "SessionExposures._settle: does not count: one.listed",
    ),
    "the first of two calls at once with one id": Turning(
        [_reads(FILE), _reads("/w/a"), ANSWER, ANSWER],
        "SessionExposures._called: always: calls.waiting is None",
    ),
    "a denial that may be of another call of that id": Turning(
        [_reads(FILE), _reads("/w/a"), DENIED, ANSWER],
        "SessionExposures._settle: does not count: one.is_mixed", "cannot tell",
    ),
    "an error that may be of another call of that id": Turning(
        [_reads(FILE), _reads("/w/a"), FAILED, ANSWER],
        "SessionExposures._called: never: calls.waiting", "cannot tell",
    ),
    "a call that ran beside one that was denied": Turning(
        [_calls("edit"), _runs("cat chat/a.md", "x", ran=True), DENIED],
        'SessionExposures._called: always: call.channel == "script"',
    ),
    "a call that ran after the answer of the script": Turning(
        [_calls("script", command=""), ANSWER._replace(text="Script completed"),
         _runs("cat chat/a.md", "x", ran=True, output="zzz")],
        "SessionExposures._ran: does not count: script.is_answered",
    ),
    "two ran of one call": Turning(
        [_reads("/w/a"), _reads("/w/a", FILE, ran=True), _reads("/w/a", ran=True), ANSWER],
        "SessionExposures._ran: does not count: not one.ran",
    ),
    "what ran is not what was asked": Turning(
        [_runs("ls"), _runs("pwd", ran=True), ANSWER],
        'SessionExposures._ran: gone: self._gaps.append(Gap("witness", call.line, what, '
        "call.channel))", "cannot tell",
    ),
    "the last call without an answer is opaque": Turning(
        [_runs("python x.py")],
        "SessionExposures._leave_open: gone: self._gaps.extend(one.opaque)", "cannot tell",
    ),
    "a command that failed with words of an error": Turning(
        [_runs("cat chat/a.md; exit 1"), FAILED],
        "SessionExposures._settle: does not count: not one.is_shell", "cannot tell",
    ),
    "a server that answers with words of an error": Turning(
        [_calls("mcp"), FAILED],
        "SessionExposures._settle: does not count: one.call.channel not in OPAQUE", "cannot tell",
    ),
    "a command that prints what is answered to a new file": Turning(
        [_runs("cat chat/a.md"), ANSWER._replace(text="Created file /w/a")],
        'SessionExposures._settle: does not count: one.call.channel == "edit"',
    ),
    "text that a command printed, and its script did not show": Turning(
        [_calls("script", command=""), _runs("cat l.md", "x", ran=True, output=SECRET),
         ANSWER._replace(text="Script completed")],
        "SessionExposures._given: gone: self._printed(one, by_path, paths)",
        asked={"protect": BOTH},
    ),
    "text that the last command printed, without an answer": Turning(
        [_runs("cat l.md"), _runs("cat l.md", ran=True, output=SECRET)],
        "SessionExposures._leave_open: gone: self._printed(one, [], ())", asked={"protect": BOTH},
    ),
    "text that a command printed of which no call is told": Turning(
        [_runs("cat l.md", "x", ran=True, output=SECRET)],
        "SessionExposures._ran: gone: self._printed(one, self._settle(one, None), ())",
        asked={"protect": BOTH},
    ),
    **{
        f"text in two parts of a record, of which one waits no more: {mutant}": Turning(
            [PASTE._replace(text="word " * 4000 + SECRET[:CUT]), PASTE._replace(text=SECRET[CUT:])],
            f"ItemBatches._ready: {mutant}: not is_whole", asked={"protect": BOTH},
        )
        for mutant in ("does not count", "without not")
    },
    "words for a program that runs": Turning(
        [_calls("script", command="x"), ANSWER._replace(text="Script completed")],
        'SessionExposures._opens: does not count: call.command == ""', "cannot tell",
    ),
    "a tool that nobody knows, with an empty command": Turning(
        [_calls("tool", command=""), ANSWER],
        'SessionExposures._opens: does not count: call.channel == "script"', "cannot tell",
    ),
    "a file named in other letters": Turning(
        [START, NAMED._replace(named="/w/CHAT/a.md")],
        "SessionExposures._given: gone: self._found.append(exposure_of_text("
        "given._replace(sure=False), path))", "cannot tell",
    ),
    "a skill of a named file, and no text to compare": Turning(
        [Given("skill", 8, 0, "x", named="/w/x/SKILL.md")],
        "SessionExposures._given: does not count: given.channel in _MIXED", "cannot tell",
    ),
    "a protected file that is named, and no text of it": Turning(
        [NAMED._replace(text="")],
        "SessionExposures._counts: without not: not each.shown", "cannot tell",
        {"never": None, "protect": BOTH},
    ),
    "a hook that speaks of a call": Turning(
        [_reads(FILE), Given("hook", 4, 0, "x", about="c"), DENIED],
        "SessionExposures._given: gone: self._told_of(given, given.about)", "cannot tell",
        {"protect": BOTH},
    ),
    "one of two protected texts that cannot be searched": Turning(
        [Given("hook", 4, 0, "K=1")],
        "ProtectedText.add: does not count: self.is_searchable or not self.paths", "cannot tell",
        {"protect": (("chat/k", "K=1"), *BOTH)},
    ),
    "a child whose records stand among those of its parent": Turning(
        [START, SPAWNED, _reads("/w/a", agent="a1", nested=True), ANSWER],
        "SessionTree.add: never: item.nested", "cannot tell",
    ),
    "a child of which only a hook speaks": Turning(
        [START, SPAWNED, Given("paste", 0, 0, "x", agent="a1")],
        "SessionTree.add: does not count: item.line", "cannot tell",
    ),
    "a child whose id is one sign": Turning(
        [START, SPAWNED._replace(child="0-0"), Given("paste", 6, 0, "x", agent="0-0")],
        "is_id: does not count: len(signs) > 1", "cannot tell",
    ),
    "a child whose id is one sign, with others between": Turning(
        [START, SPAWNED._replace(child="0-0"), Given("paste", 6, 0, "x", agent="0-0")],
        "is_id: always: sign.isalnum()", "cannot tell",
    ),
    "a child of no session": Turning(
        [SPAWNED, Given("paste", 6, 0, "x", agent="a1")],
        "missing_children: does not count: not gap.parent", "cannot tell",
    ),
    "a child of the parent that a sibling has started too": Turning(
        [Session("p1", "codex", "0.169.0", 1), Session("k1", "codex", "0.169.0", 1, parent="p1"),
         Session("k2", "codex", "0.169.0", 1, parent="p1"), SPAWNED._replace(child="k1")],
        "missing_children: never: gap.call", "cannot tell",
    ),
    "a session whose parent is not there": Turning(
        [Session("k1", "codex", "0.169.0", 1, parent="p1")],
        "judge_exposures: reversed: True", "cannot tell",
    ),
    "a name with a NUL": Turning(
        [NAMED._replace(named="/w/.env\0.txt")],
        'SessionExposures._given: gone: self._gaps.append(Gap("opaque", given.line, NUL, '
        "given.channel))", "cannot tell", {"never": ".env"},
    ),
    "an output that may be of another call of that id": Turning(
        [_runs("cat chat/a.md"), _runs("ls"), _runs("cat chat/a.md", ran=True, output="zzz"),
         ANSWER, ANSWER],
        "SessionExposures._settle: does not count: one.is_mixed", "cannot tell", shown=True,
    ),
    "a denial in no words of the program": Turning(
        [_reads(FILE), DENIED._replace(text="the key is correct horse")],
        "is_error_text: does not count: by_hook", "cannot tell",
    ),
    "an error in no words of the program": Turning(
        [_reads(FILE), FAILED._replace(text="the key is correct horse")],
        "SessionExposures._settle: does not count: not is_error", "cannot tell",
    ),
    "a denial of what was allowed": Turning(
        [_reads(FILE), DENIED._replace(denied=False, decided="allowed")],
        "SessionExposures._settle: does not count: was_allowed and is_denial(text)", "cannot tell",
    ),
    "a server that answers like the program": Turning(
        [_calls("mcp"), FAILED._replace(text="<tool_use_error>KEY=x</tool_use_error>")],
        "is_own_error: does not count: not (of_server and _UNCALLED.match(text) is None)",
        "cannot tell",
    ),
}  # fmt: skip
"""What is asked is ``chat/**``, where a case does not say otherwise."""


def _mutants() -> dict[str, list[Mutant]]:
    found: dict[str, list[Mutant]] = {}
    for module in (*MODULES, phrases):
        for one in mutants_of(module):
            found.setdefault(one.name, []).append(one)
    return found


MUTANTS = _mutants()


@pytest.mark.parametrize(
    ("command", "answer", "told"),
    [
        ("cat l.md", "3", [(5, "chat/a.md", False)]),
        ("cat l.md", SECRET, [(8, "chat/a.md", True)]),
        ("cat chat/a.md", "3", [(5, "chat/a.md", False)]),
        ("cat l.md chat/b.md", "3", [(5, "chat/b.md", False), (5, "chat/a.md", False)]),
    ],
)
def test_text_that_was_printed_is_told_once_and_as_opened(
    command: str, answer: str, told: list[tuple[int, str, bool]]
) -> None:
    protected = phrases.ProtectedText()
    protected.add("chat/a.md", SECRET)
    judged = exposure.SessionExposures(NeverRule(["chat/**"]), protected)
    asked = _runs(command)
    for item in (
        START,
        asked,
        _runs(command, ran=True, output=SECRET),
        ANSWER._replace(text=answer),
    ):
        judged.add(item)
    judged.end()
    assert [(one.line, one.named, one.shown) for one in judged.found] == told


@pytest.mark.parametrize("name", TURNING)
def test_a_case_turns_to_clean_without_what_it_proves(name: str) -> None:
    one = TURNING[name]
    case = case_of(one.items, **one.asked)
    assert case.told_by(exposure)[one.shown] == one.told
    told = set()
    for mutant in MUTANTS[one.mutant]:
        with judge_of(mutant) as judge:
            told.add(case.told_by(judge)[-1 if one.shown else 0])
    assert "clean" in told


def test_without_a_file_nothing_is_clean() -> None:
    case = JudgeCase(None, BOTH, [])
    (mutant,) = MUTANTS["judge_exposures: never: not read"]
    with judge_of(mutant) as judge:
        assert [case.told_by(one)[0] for one in (exposure, judge)] == ["cannot tell", "clean"]
