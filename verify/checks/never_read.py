"""No agent that a rule is about read a file that the rule forbids.

**What it proves.** For each rule in ``never`` of the policy, and each imported session that it is
about (with the sessions which that one started): no tool call, and nothing that the program itself
put into the context, was one of these files. No 12 consecutive words of them, and no shorter line
of 24 characters or more, stand in what the model was given. A recursive search, a variable or a
script is not taken for harmless: then the check cannot tell. A session that was imported more than
once is judged by its newest state, and by each earlier one that this does not hold. It does not see
a paraphrase, a translation or an encoding. It judges what the program wrote down, and what hooks
saw otherwise; and it says who could have changed that: a file that was *found on disk* was writable
by the user that the agent ran as.

**Why it matters.** A review, a test or a second opinion is worth something only if its author did
not see what it is held against. A prompt that forbids it keeps nobody from it.

**What a finding looks like.** ``session 34b9 (reviewer) was shown chat/live.chat (shell, line
812)``; ``opened`` instead of ``shown`` where the program read the file and its text did not come
through.

**What to do.** Treat what that agent said as the words of one who saw the file. *Cannot tell* names
its reason. The bytes of the session are not here: import it with ``--keep``. A rule is about no
session: import the sessions. The program leaves no record of one way in: see the page on sessions.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tripod.verify.check import (
    TABLES,
    Evidence,
    Finding,
    Findings,
    Outcome,
    cannot_tell,
    fault_of_texts,
    not_applicable,
    outcome,
)
from tripod.verify.isolation.rules import (
    Breach,
    bound_by,
    custody_of_sessions,
    in_no_folder,
    is_taken_by_hook,
    judge_never,
    not_imported,
    roles_of_nobody,
    sights_of_rule,
    team_sessions,
    with_sights,
)
from tripod.verify.isolation.sessions import Sight

NAME = "never-read"
REQUIRED = True
NEEDS = (TABLES,)
HELP = "treat what this agent said as the words of one who saw the file"
FEW = 3  # reasons that are told; of more, their number


def judge(evidence: Evidence) -> Outcome:
    """Judge the rules that this module's docstring describes."""
    faults = evidence.sessions.faults
    if faults and not evidence.sessions.never:
        return cannot_tell(NAME, "; ".join(faults))
    if not evidence.sessions.never:
        return not_applicable(NAME, "the policy has no rule `never`")
    sessions = team_sessions(evidence)
    rules = [(never, bound_by(never, sessions)) for never in evidence.sessions.never]
    judged = {one.seq for _, bound in rules for one in bound}
    found, untold, seen = Findings(), [*faults], Counter[str]()
    every = judge_never(evidence, rules)
    sights = list[Sight]()
    for number, told in enumerate(every):
        never, bound = rules[number]
        sights += sights_of_rule(", ".join(never.paths), bound, told)
        found.extend(_finding(never.paths, one) for one in told.breaches)
        untold += (*told.untold, *not_imported(evidence, never))
        seen.update(told.seen)
        if not bound:
            which = f"rule {number + 1} ({', '.join(never.paths)})"
            untold.append(f"{which} is about no session here")
    taken = sum(is_taken_by_hook(evidence, one) for one in sessions)
    coverage = {
        "rules": len(rules),
        "sessions": len(sessions),
        "judged": len(judged),
        "read again": seen["read again"],
        "that no rule is about": len(sessions) - len(judged),
        "taken by a hook": taken,
        "found on disk": len(sessions) - taken,
    }
    bound = [one for one in sessions if one.seq in judged]
    told_outcome = outcome(NAME, found, coverage)
    others = [one for one in sessions if one.seq not in judged]
    exceptions = (
        *custody_of_sessions(evidence, bound, every),
        *in_no_folder(evidence, evidence.sessions.never, others),
        *roles_of_nobody(evidence, sessions, of_pythia=False),
    )
    told_outcome = with_sights(replace(told_outcome, exceptions=exceptions), sights)
    if not untold:
        return told_outcome
    # Also where there are findings: a person who accepts these has not said that the rest is so.
    untold = list(dict.fromkeys(untold))
    more = [f"and {len(untold) - FEW} more"] if len(untold) > FEW else []
    return told_outcome.cannot_tell("; ".join(untold[:FEW] + more))


def _finding(paths: tuple[str, ...], one: Breach) -> Finding:
    shown = [f"never: {', '.join(paths)}"]
    if one.state is not None:
        shown.append(f"entry {one.state} has it so; the newest state of the session does not")
    fault = fault_of_texts(one.message, *paths)
    first = one.session.first  # so that it keeps its id when the session is imported again
    return Finding(NAME, one.message, f"entry {first}", tuple(shown), HELP, seq=first, fault=fault)
