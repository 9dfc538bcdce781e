"""A decision that changes another's status refers to one that exists, earlier, and does it once.

**What it proves.** What a decision says that it supersedes, reverses or mitigates is the id of a
decision that was logged before it: not itself, not a later one, so that no chain of them runs in a
circle. No decision is referred to so twice, unless replicas did it that did not know of each other:
then it is a warning in each until one of theirs at most is left in force. A decision whose status
is ``superseded``, ``reversed`` or ``mitigated`` names in its reference, title or rationale the
decision that it speaks of.

**Why it matters.** Entries are never edited: what holds now is read off these references. One that
leads nowhere leaves an overruled decision in force; of two that replace the same one, nobody knows
which counts.

**What a finding looks like.** ``D-1795294636 supersedes D-1795294600, which is no decision``,
``D-1795294640 supersedes D-1795294631, as D-1795294636 did already``. As a warning:
``D-1795294650 is said to be reversed, and names no decision``, ``D-1795294631 was replaced in
several replicas: by D-1795294636 and by D-1795294641 (ben-.../D-1795294640)``.

**What to do.** The log only grows, so log a decision that says what holds, with ``--supersedes``
and the right id. ``tripod scribe log`` refuses an id that is not there. Of two that replicas put in
the place of one, supersede the one that shall not hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tripod.verify.check import TABLES, Evidence, Finding, Outcome, not_applicable, outcome, shorten

NAME = "supersession"
REQUIRED = False
NEEDS = (TABLES,)
HELP = "log a decision that says what holds, with --supersedes and the id of the one that it means"
_RIVALS = "supersede the one of them that shall not hold, in any replica"
_VERBS = {"superseded": "supersedes", "reversed": "reverses", "mitigated": "mitigates"}
_IDS = re.compile(r"(?<![A-Za-z0-9-])D-[0-9]{1,16}(?![0-9A-Za-z])")


def judge(evidence: Evidence) -> Outcome:
    """Judge the rule that this module's docstring states."""
    rows = evidence.query(
        "SELECT seq, id, status, supersedes, made FROM pieces WHERE id IS NOT NULL ORDER BY seq"
    )
    changes = sum(target is not None or status in _VERBS for _, _, status, target, _ in rows)
    if not changes:
        return not_applicable(NAME, "no decision changes another's status")
    seen = {"decisions": len(rows), "changes of status": changes}
    return outcome(NAME, _judged(evidence, rows), seen)


def _judged(
    evidence: Evidence, rows: list[tuple[int, str, str, str | None, str | None]]
) -> Iterator[Finding]:
    """One pass: ``before`` holds the ids that were logged, ``replaced`` what replaced each."""
    ids = {id_ for _, id_, *_ in rows}
    before: set[str] = set()
    replaced: dict[str, str] = {}
    rivals: dict[str, list[tuple[int, str, str | None]]] = {}
    for seq, id_, status, target, made in rows:
        if target is not None:
            problem = None
            if target == id_ and id_ not in before:
                problem = "which is itself"
            elif target not in before:
                problem = "which is a later one" if target in ids else "which is no decision"
            elif target in replaced:
                problem = f"as {replaced[target]} did already"
            if problem is None or target in replaced:
                rivals.setdefault(target, []).append((seq, id_, made))
            if problem is not None and made is not None:
                pass  # it is judged in its own replica, which may not have known the other
            elif problem is not None:
                verb = _VERBS.get(status, "supersedes")
                message = f"{id_} {verb} {shorten(target)}, {problem}"
                yield evidence.finding(NAME, seq, message, HELP)
            else:
                replaced[target] = id_
        elif status in _VERBS and made is None:
            body = evidence.body(seq)
            text = f"{body.get('title', '')}\n{body.get('rationale', '')}"
            if before.isdisjoint(_IDS.findall(text)):
                message = f"{id_} is said to be {status}, and names no decision"
                yield evidence.finding(NAME, seq, message, HELP, severity="warning")
        before.add(id_)
    for target, several in rivals.items():
        left = [one for one in several if one[1] not in replaced]
        if len(left) > 1 and any(made is not None for *_, made in left):
            names = " and ".join(f"by {id_}" + f" ({made})" * bool(made) for _, id_, made in left)
            message = f"{target} was replaced in several replicas: {names}"
            yield evidence.finding(NAME, left[-1][0], message, _RIVALS, severity="warning")
