"""A scripted Pythia: reads the decision log that it is given, and answers in the template.

    tripod pythia run -- python3 examples/pythia.py

It stands for a model where none is to be had: in the demo, in tests, and for whoever wants to see
what Pythia is given and what it must answer. It names what can be seen from the fields of the
entries alone. It reads standard input and nothing else; of the standard library alone.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from datetime import UTC, datetime
from typing import TypeAlias

ENTRY = re.compile(r"^### (D-[0-9]+) (?:\[SUPERSEDES (D-[0-9]+)\] )?(.*)$")
FIELD = re.compile(r"^- \*\*(Participants|Artefacts|Risk tags|Status|Rationale):\*\* ?(.*)$")
ASKED = re.compile(r"^Decisions reviewed: (D-[0-9]+) through (D-[0-9]+) \(([0-9]+) decisions\)$")
NOTHING = ("", "none", "—")
CLAIM = re.compile(
    r"\b(?:fast|faster|enough|always|never|only|cheap|cheaper|safe|simple)\b", re.IGNORECASE
)
DONE = ("mitigated", "superseded", "reversed")

Decision: TypeAlias = dict[str, str]
"""A decision: its id, its title, the id that it supersedes (''), and its fields by name."""


def read(text: str) -> list[Decision]:
    """The decisions of a log, oldest first."""
    decisions: list[Decision] = []
    for line in text.splitlines():
        entry = ENTRY.match(line)
        field = FIELD.match(line)
        if entry:
            decisions.append({"id": entry[1], "supersedes": entry[2] or "", "title": entry[3]})
        elif field and decisions:
            decisions[-1][field[1]] = field[2].strip()
        elif line.startswith("  ") and decisions and "Rationale" in decisions[-1]:
            decisions[-1]["Rationale"] += " " + line.strip()
    return decisions


def asked(text: str) -> tuple[str, str, int]:
    """The first and the last decision that are to be reviewed, and how many these are."""
    for line in text.splitlines():
        match = ASKED.match(line.strip())
        if match:
            return match[1], match[2], int(match[3])
    sys.exit("nobody said which decisions are to be reviewed")


def items(decision: Decision, field: str) -> list[str]:
    """The items of a field; none where it says that there are none."""
    found = (item.strip() for item in decision.get(field, "").split(","))
    return [item for item in found if item not in NOTHING]


def tagged(decisions: list[Decision], tag: str) -> list[Decision]:
    """The decisions with a risk tag."""
    return [one for one in decisions if tag in items(one, "Risk tags")]


def names(decisions: list[Decision]) -> str:
    """Their ids, as a sentence has them."""
    return ", ".join(one["id"] for one in decisions)


def listed(points: list[str], nothing: str) -> str:
    """A list in markdown, or what is to be said where there is no point."""
    return "\n".join(f"- {point}" for point in points) or nothing


def assumptions(new: list[Decision], latest: str) -> str:
    """What is taken for granted."""
    points = []
    sure = [one for one in new if CLAIM.search(one.get("Rationale", ""))]
    if sure:
        points.append(f"A rationale that names no measurement says how things are: {names(sure)}.")
    alone = [one for one in new if len(items(one, "Participants")) == 1]
    if alone:
        points.append(f"One participant decided alone, so nobody contradicted: {names(alone)}.")
    return listed(points, f"Up to {latest}, each decision names whom it was taken with and why.")


def risks(new: list[Decision], older: list[Decision]) -> str:
    """What follows from decisions together."""
    points = []
    for one in new:
        if one["supersedes"]:
            kept = [other for other in older if other["id"] == one["supersedes"]]
            what = "decided earlier" if kept else "of this range"
            points.append(
                f"{one['id']} supersedes {one['supersedes']} ({what}): what rested on it?"
            )
    for tag, count in sorted(Counter(t for one in new for t in items(one, "Risk tags")).items()):
        if count > 1:
            points.append(f"`{tag}` on {count} decisions, which add up: {names(tagged(new, tag))}.")
    shared = Counter(path for one in new for path in items(one, "Artefacts"))
    for path, count in sorted(shared.items()):
        if count > 1:
            touching = [one for one in new if path in items(one, "Artefacts")]
            points.append(f"{count} decisions change one artefact: {names(touching)}.")
    return listed(
        points, f"No two of these decisions share a tag or an artefact ({names(new[-1:])})."
    )


def validation(new: list[Decision]) -> str:
    """What lacks evidence."""
    points = []
    untested = tagged(new, "untested")
    if untested:
        points.append(f"Tagged untested, and nothing says by whom it will be: {names(untested)}.")
    bare = [
        one for one in new if one.get("Status") == "accepted-risk" and not items(one, "Artefacts")
    ]
    if bare:
        points.append(f"A risk was accepted, and no artefact shows its size: {names(bare)}.")
    loose = [one for one in new if one.get("Status") in DONE and not one["supersedes"]]
    if loose:
        points.append(f"A status of another decision, which none of them names: {names(loose)}.")
    return listed(points, f"Each accepted risk up to {new[-1]['id']} names an artefact.")


def regret(new: list[Decision]) -> str:
    """The most likely bad case."""
    for tag in ("irreversible", "breaking-change", "tech-debt", "scope-creep", "perf-risk"):
        found = tagged(new, tag)
        if found:
            return (
                f"In six months {names(found)} ({tag}) costs more than it saves, and the log says "
                "why it was done but not when it was to be looked at again."
            )
    return f"In six months nobody finds out from {new[-1]['id']} when it stopped being true."


def confidence(new: list[Decision]) -> str:
    """How far this can be relied on, and what would change that."""
    open_ = [one for one in new if items(one, "Risk tags") or one.get("Status") == "accepted-risk"]
    level = "high" if not open_ else "medium" if len(open_) * 2 <= len(new) else "low"
    return (
        f"overall: {level}\n{len(open_)} of {len(new)} decisions carry a risk. A measurement or a "
        "test as artefact of each would raise this; this reviewer reads fields, not sense."
    )


def main() -> None:
    """Read the prompt and the log, and print an assessment."""
    text = sys.stdin.read()
    first, last, count = asked(text)
    decisions = read(text)
    ids = [one["id"] for one in decisions]
    if first not in ids or last not in ids:
        sys.exit(f"the log has no {first}, or no {last}")
    start = ids.index(first)
    older, new = decisions[:start], decisions[start : start + count]
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    sections = {
        "Hidden Assumptions": assumptions(new, last),
        "Second-Order Risks": risks(new, older),
        "Missing Validation": validation(new),
        "Six-Month Regret Scenario": regret(new),
        "Confidence": confidence(new),
    }
    lines = [
        f"## Pythia Checkpoint — {now}",
        f"Decisions reviewed: {first} through {last} ({count} decisions)",
    ]
    lines += [f"### {title}\n\n{body}" for title, body in sections.items()]
    sys.stdout.buffer.write("\n\n".join(lines).encode() + b"\n")


if __name__ == "__main__":
    main()
