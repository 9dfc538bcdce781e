"""Writes the generated parts of the page on Nova from the code; the page's cog blocks call it.

From the page it is ``tests.docs.nova_parts`` (cog runs at the root), from the tests
``docs.nova_parts``; so it imports nothing of its own folder.
"""

from collections.abc import Iterator

from tripod.nova import NovaLimits, runner
from tripod.projections.nova import answers, turns
from tripod.projections.nova.metrics import METRICS
from tripod.projections.nova.rules import CLOSED, STEPS, Step

_ANY = ("cancel", "budget", "attempts used up")
"""Events of many states: the diagram leaves them out, and the table has a row for each."""
_LIMITS = {
    "threshold": "uncertainty with which a synthesis still passes the gate",
    "epsilon": "a step between two syntheses counts as no change below it, in both figures",
    "window": "how many such steps in a row are convergence",
    "rounds": "cycles, those that a person grants not counted",
    "concurrency": "experts that run at once",
    "turns": "turns that may be taken; no limit by default",
    "cost": "US dollars that may be spent; no limit by default",
    "log": "the decision log in which the decision is logged as well; none by default",
    "work_effort": "the work effort to whose `decisions.md` the decision is added; none by default",
}
_OPTIONS = {
    "threshold": "`--threshold`",
    "rounds": "`--max-rounds`",
    "concurrency": "`--concurrency`",
    "turns": "`--budget 12t`",
    "cost": "`--budget 2.50`",
    "log": "`--log`",
    "work_effort": "`--work-effort`",
}


def steps() -> str:
    """The table of steps; a row that is the same in many states names them all."""
    rows: dict[tuple[str, str, str, str], list[str]] = {}
    for step in STEPS:
        where = step.when or "always"
        target = f"{step.target}, cycle + 1" if step.again else step.target
        rows.setdefault((step.rule, step.event, where, target), []).append(step.source)
    lines = ["| rule | state | event | where | next state |", "|---|---|---|---|---|"]
    lines += (
        f"| {rule} | {', '.join(sources)} | {event} | {where} | {target} |"
        for (rule, event, where, target), sources in rows.items()
    )
    return "\n" + "\n".join(lines) + "\n\n"


def diagram() -> str:
    """The steps as a diagram of states in Mermaid."""
    return "\n```mermaid\nstateDiagram-v2\n" + "\n".join(_edges()) + "\n```\n\n"


def _edges() -> Iterator[str]:
    yield "    [*] --> opened"
    for step in STEPS:
        if step.event not in _ANY:
            yield f"    {step.source} --> {step.target}: {_label(step)}"
    for state in CLOSED:
        if state != "cancelled":
            yield f"    {state} --> [*]"


def _label(step: Step) -> str:
    """What stands at an arrow; a second colon or a semicolon would end it."""
    words = f"{step.event}, {step.when}" if step.when else step.event
    return words.replace(":", ",").replace(";", ",")


def limits() -> str:
    """The limits of a run, and those that hold for all."""
    chosen = NovaLimits()
    rows = ["| limit | default | option | meaning |", "|---|---|---|---|"]
    for name, meaning in _LIMITS.items():
        default = getattr(chosen, name)
        shown = "" if default is None else f"`{default}`"
        rows.append(f"| {name} | {shown} | {_OPTIONS.get(name, '')} | {meaning} |")
    rows += ["", "| fixed limit | value |", "|---|--:|"]
    rows += (f"| {what} | {value:,} |" for what, value in _fixed())
    assert set(_LIMITS) == set(NovaLimits.__dataclass_fields__)
    return "\n" + "\n".join(rows) + "\n\n"


def _fixed() -> Iterator[tuple[str, int]]:
    yield "answers that a persona may give for one turn", turns.TRIES
    yield (
        "runs of a turn's program that may be lost with the command that had ordered them",
        turns.MAX_LOST,
    )
    yield "bytes of a question, and of the note of a person who decides", runner.MAX_QUESTION
    yield "experts of a folder", runner.MAX_PERSONAS
    yield "bytes of a persona's file", answers.MAX_PERSONA
    yield "bytes of an answer", answers.MAX_ANSWER
    yield "texts of one list in an answer", answers.MAX_LIST
    yield "characters of one of these texts", answers.MAX_TEXT


def roles() -> str:
    """What an answer of each role holds."""
    rows = [
        "| role | fields | main field | epistemic state |",
        "|---|---|---|---|",
    ]
    for role, (shape, main) in answers.SHAPES.items():
        fields = ", ".join(f"`{name}`" for name in shape.__dataclass_fields__)
        state = "required" if role in answers.NEEDS_EPISTEMIC else "may be stated"
        rows.append(f"| {role} | {fields} | {f'`{main}`' if main else ''} | {state} |")
    return "\n" + "\n".join(rows) + "\n\n"


def metrics() -> str:
    """The metrics with their definitions and targets."""
    rows = ["| metric | definition | target |", "|---|---|---|"]
    rows += (f"| {one.name} | {one.definition} | {one.target} |" for one in METRICS)
    return "\n" + "\n".join(rows) + "\n\n"
