"""Advice: entries of the decision log that read like no decision.

**What it proves.** Nothing: it only advises, and changes no exit code. An entry counts if its title
is what the seeds say is no decision (a status report, a greeting, a question, who does what,
debugging), and neither title nor rationale names a choice (``instead of``, ``because``,
``accept``). What changes the status of another decision is never named.

**Why it matters.** The seeds: noise in the log makes Pythia's assessments unfocused, and brings its
review earlier than twenty decisions.

**What a finding looks like.** ``D-1795294623 "All tests pass" reads like a status report``. How
often it is wrong: of the 46 entries of the team that ships with the tests it names none.

**What to do.** Leave the entry, for the log only grows; tell the Scribe what a decision is.
"""

from __future__ import annotations

from tripod.verify import advice, check

NAME = "decision-noise"
REQUIRED = False
NEEDS = (check.TABLES,)
ADVICE = True
HELP = "leave the entry, and tell the Scribe what a decision is"


def judge(evidence: check.Evidence) -> check.Outcome:
    """Judge the rule that this module's docstring states."""
    decisions = evidence.query("SELECT count(*) FROM pieces WHERE id IS NOT NULL")[0][0]
    if not decisions:
        return check.not_applicable(NAME, "no decision was logged")
    found = check.Findings()
    for entry in advice.advise_on_noise(evidence.source):
        message = f'{entry.id} "{check.shorten(entry.title)}" reads like {entry.like}'
        where, past = evidence.where(entry.seq), evidence.adopted(entry.seq)
        found.add(check.Finding(NAME, message, where, (), HELP, "advice", past, entry.seq))
    seen = {"decisions": decisions, "told": found.of("advice")}
    return check.outcome(NAME, found, seen)
