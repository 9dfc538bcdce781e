"""Advice: passages of the chat that sound like a decision, and no entry of the log is near them.

**What it proves.** Nothing: it only advises, and changes no exit code. A message counts if a
sentence of it commits (a choice, an accepted risk, a changed architecture or scope, a reversal: the
seeds' own list) and neither asks nor weighs; quotes, code, texts over 16 KiB, and what the Scribe
and Pythia say are passed over. It is settled by a later decision whose chat reference is at most 5
lines away, or by one that was logged within the channel's next 20 messages and shares two words
with it. Younger passages are not told here: the Scribe may be at it.

**Why it matters.** The seeds: the Scribe misses a decision, and three compactions later nobody
knows why. Only somebody who reads the chat beside the log would see the gap.

**What a finding looks like.** ``alex: "We'll use file-based events, not sockets." sounds like a
choice, and no decision is near``. How often it is wrong, measured on the team that ships with the
tests: 46 of its 668 messages sound like a decision, and they are the 46 that its log refers to, so
none is told. How much it misses: with every second decision taken out of that log it tells 10 of
the 23, since a decision about something else stands within 5 lines of the others.

**What to do.** Read the passage. If it was a decision, log it with ``tripod scribe log`` and a chat
reference there; if not, leave it. ``tripod scribe advise`` shows the same, and the younger ones.
"""

from __future__ import annotations

from tripod.verify import advice, check

NAME = "decision-missed"
REQUIRED = False
NEEDS = (check.TABLES,)
ADVICE = True
HELP = "read it; if it was a decision, `tripod scribe log` it with a chat reference there"


def judge(evidence: check.Evidence) -> check.Outcome:
    """Judge the rule that this module's docstring states."""
    messages = evidence.query("SELECT count(*) FROM lines WHERE handle IS NOT NULL")[0][0]
    if not messages:
        return check.not_applicable(NAME, "nobody said anything")
    found = check.Findings()
    fresh = 0
    seqs = (seq for (seq,) in evidence.source.db.execute("SELECT seq FROM decisive ORDER BY seq"))
    for passage in advice.advise_on_missed(
        evidence.source, seqs, advice.advised_handles(evidence.source)
    ):
        if passage.fresh:
            fresh += 1
            continue
        message = (
            f'{passage.handle}: "{check.shorten(passage.sentence)}" sounds like {passage.sign}, '
            "and no decision is near"
        )
        where = f"chat {passage.channel}, message {passage.number}"
        where = f"{where}, {evidence.where(passage.seq)}"
        past = evidence.adopted(passage.seq)
        found.add(check.Finding(NAME, message, where, (), HELP, "advice", past, passage.seq))
    seen = {"messages": messages, "told": found.of("advice"), "too fresh to tell": fresh}
    return check.outcome(NAME, found, seen)
