"""Each expert of a Nova run judged without the words of the others: shown so, broken, or untold.

**What it proves.** For each agent's run of an expert, four things. What it was given has no turn
of another expert of the same cycle among its sources; sources of sources are followed, up to a turn
of the coordinator, which distils what it came from. Its prompt is, byte for byte, the one that the
record gives, so a shorter, split or encoded passage in it is named too. Neither a file nor its
order holds 12 consecutive words that another expert of that cycle wrote, in a recorded turn or in
an output that became none; words that the other was itself given, and those that every expert may
see (the question, how it was unpacked, earlier syntheses and critiques, what people asked, the
personas, its own earlier answers), do not count. Its order and its files are those of an agent
that was ordered before any other expert of the cycle was, but for the prompt and the name of its
private folder: nothing that another said can be in them, in whatever spelling. It ran in a
namespace where the team's files, ``nova/`` among them, did not exist; an entry of that time and the
recorded command line show it. What it wrote is compared as well, with what others had written
before; of a stream or a transcript of Claude Code that is what its model and its tools said, since
the rest (settings, the program's own prompt, errors) is the same in every run. What was in its
namespace and cannot be judged (a lent folder, a login, variables, the network) is part of the
verdict: *clean, except*. The check does not see a paraphrase or a translation, nor what the choice
between several earlier orders tells an expert.

In a fork, the tape of an expert has to hold what the record of the parent gives, and no more, and
its turn has to be one of those that the fork has from there. What an expert says as it did in the
parent was known when the fork began: the orders of the others in that cycle have to be among the
parent's, of before another expert was asked there.

**Why it matters.** Three experts who have read one another are one expert. The weight of a
synthesis is that they came to it apart.

**What a finding looks like.** ``tea, cycle 1: performance was given the text of entry 30, a turn of
security``; ``tea, cycle 1: its prompt (run 3f0c2a81, performance) holds 12 words in a row of
security``; ``tea, cycle 1: its output (run 3f0c2a81, performance) repeats 12 words in a row of
security``. The last is a failure where the run could have read the other's output by its path, and
a warning in a namespace, where two experts can only have hit upon the same words. A warning is
``tea-2: its question holds 12 words in a row of security in tea``, too: the experts of the second
run were handed what one of the first had written, which no other persona had said again.

**What to do.** Take the two experts as one, or have the question answered again. *Cannot tell*
names its reason: a run without a namespace (install bubblewrap, ``bwrap``), a text that was erased
or not stored, an order that is like none before. That one names what differs: a variable, a word of
the command line by its place, a file. Read both entries (``tripod show N``). A run that is resumed
amid a cycle with another program, profile or environment (``PATH``, ``TERM``) has such an order,
too: resume it as it was begun, in the same shell. Else have the question asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tripod.ledger.kinds.agents import DELIVERED
from tripod.ledger.places import NOVA
from tripod.ledger.words import RUN
from tripod.ledger.words import words_of_text as words_of
from tripod.projections.nova.turns import ROLE
from tripod.verify.check import (
    TABLES,
    Evidence,
    Finding,
    Findings,
    Outcome,
    Severity,
    not_applicable,
    outcome,
)
from tripod.verify.isolation.phrases import PhraseIndex, VisiblePhrases, phrase_hashes
from tripod.verify.isolation.runs import (
    ERRORS,
    TRANSCRIPT,
    ReviewRun,
    ReviewText,
    review_runs,
)
from tripod.verify.nova.orders import RunOrders
from tripod.verify.nova.runs import (
    NO_RUN,
    told_nova,
    untold_prompts,
    walked_prompts,
)
from tripod.verify.nova.turns import (
    NovaSubject,
    nova_entries,
    read_agent_order,
    read_nova_subject,
    sound_body,
)

NAME = "nova-independence"
REQUIRED = True
NEEDS = (TABLES,)
HELP = "take the two experts as one, or have the question answered again"

OUTPUT = "its output"
STREAM = "claude-stream-json"

Known = Callable[[int], bool]


class _Turn(NamedTuple):
    """A recorded turn of a run: who spoke when, the agent's run that it came from, its text."""

    run: str
    seq: int
    role: str
    persona: str
    cycle: int
    spawn: str
    text: str


@dataclass(slots=True)
class _Panel:
    """What is known of a Nova run: its recorded turns, and by cycle those of experts.

    ``seen`` are the words that every expert may see, ``own`` those of each expert's turns. The
    question stands in the entry ``opened``.
    """

    name: str
    opened: int = 0
    question: list[str] = field(default_factory=list)
    turns: list[_Turn] = field(default_factory=list)
    cycles: dict[int, list[_Turn]] = field(default_factory=dict)
    seen: VisiblePhrases = field(default_factory=VisiblePhrases)
    own: dict[str, VisiblePhrases] = field(default_factory=dict)


@dataclass(slots=True)
class _Sources:
    """What entries are, by their numbers: turns, and ends and deliveries of agents' runs."""

    orders: RunOrders
    turns: dict[int, _Turn] = field(default_factory=dict)
    runs: dict[int, str] = field(default_factory=dict)
    subjects: dict[str, NovaSubject] = field(default_factory=dict)


def judge(evidence: Evidence) -> Outcome:
    """Judge the rule that this module's docstring states."""
    rows = evidence.query(
        "SELECT spawn, subject, ended FROM agents WHERE role = ? ORDER BY seq", ROLE
    )
    runs = evidence.query("SELECT run FROM nova_runs ORDER BY seq")
    if not (rows or runs):
        return not_applicable(NAME, NO_RUN)
    panels = {name: _panel(evidence, name) for (name,) in runs}
    turns = {t.seq: t for panel in panels.values() for t in panel.turns}
    sources = _Sources(RunOrders(evidence), turns)
    cycles: dict[tuple[str, int], None] = {}
    ends: dict[str, int | None] = {}
    for spawn, subject, ended in rows:
        of = read_nova_subject(subject)
        if of is not None:
            sources.subjects[spawn] = of
            ends[spawn] = ended
            sources.runs |= {} if ended is None else {ended: spawn}
            if of.role == "expert" and of.run in panels:
                cycles[of.run, of.cycle] = None
    for spawn in sources.subjects:
        sources.runs |= dict.fromkeys(sources.orders.handed.get(spawn, ()), spawn)
    found, unread, strange, untold = Findings(), list[str](), list[str](), list[str]()
    exceptions: dict[str, set[str]] = {}
    seen = {"runs": len(runs), "runs of experts": 0, "in a namespace": 0, "in a folder": 0}
    for name, number in cycles:
        cycle = _Cycle(evidence, panels[name], number, sources, ends)
        found.extend(cycle.findings())
        unread += cycle.unread()
        strange += cycle.strange()
        untold += cycle.untold()
        seen["runs of experts"] += len(cycle.runs)
        for run in cycle.runs:
            seen["in a namespace"] += run.level == "namespace"
            seen["in a folder"] += run.level == "folder"
            for exception in run.exceptions:
                exceptions.setdefault(exception, set()).add(run.spawn[:8])
    found.extend(_quoted_experts(evidence, list(panels.values())))
    named = {one.seq for one in found if one.seq is not None}
    found.extend(
        evidence.finding(NAME, one.seq, one.message, HELP)
        for one in walked_prompts(evidence, NAME, named)
    )
    untold = [*unread, *strange, *untold, *untold_prompts(evidence, NAME)]
    told = replace(outcome(NAME, found, seen), exceptions=tuple(_exceptions(exceptions)))
    return told_nova(told, untold)


def _quoted_experts(evidence: Evidence, panels: Sequence[_Panel]) -> Iterator[Finding]:
    """Questions that quote an expert of an earlier run, in words that no other turn made public."""
    asked = [panel for panel in panels if len(panel.question) >= RUN]
    index, turns = PhraseIndex(), list[_Turn]()
    for panel in panels if asked else ():
        public = panel.seen.before(2**53)
        for turn in (one for one in panel.turns if one.role == "expert"):
            index.add(len(turns), words_of(turn.text), public)
            turns.append(turn)
    for panel in asked:
        for number, row in index.find(panel.question):
            turn = turns[number]
            if turn.seq < panel.opened:
                message = f"{panel.name}: its question holds {RUN} words in a row of {turn.persona}"
                yield evidence.finding(
                    NAME, panel.opened, f"{message} in {turn.run}", HELP, severity="warning",
                    shown=(row,),
                )  # fmt: skip
                break


def _exceptions(found: Mapping[str, set[str]]) -> Iterator[str]:
    """What the runs had that nobody looked at, each once, with how many had it."""
    for exception, runs in sorted(found.items()):
        yield f"{exception}: {f'run {min(runs)}' if len(runs) == 1 else f'{len(runs)} runs'}"


def _panel(evidence: Evidence, name: str) -> _Panel:
    """What is recorded of a run, and may be seen by all experts, in the order of the entries."""
    panel = _Panel(name)
    for seq, kind, body in nova_entries(evidence, name):
        if body is None:
            continue
        if kind == "nova.opened":
            question = evidence.text(seq, "question") or ""
            panel.opened, panel.question = seq, words_of(question)
            panel.seen.add(seq, question)
            for persona in body["personas"]:
                panel.seen.add(seq, _text(evidence, persona["content"]))
        elif kind == "human.decided":
            panel.seen.add(seq, evidence.text(seq, "note") or "")
        elif kind == "nova.turn.recorded":
            text = _text(evidence, body["content"])
            said = body["role"], body["persona"], body["cycle"], body["spawn"]
            turn = _Turn(name, seq, *said, text)
            panel.turns.append(turn)
            if turn.role != "expert":
                panel.seen.add(seq, text)
            else:
                panel.cycles.setdefault(turn.cycle, []).append(turn)
                panel.own.setdefault(turn.persona, VisiblePhrases()).add(seq, text)
    return panel


def _text(evidence: Evidence, content: dict[str, str]) -> str:
    try:
        return evidence.source.content(content).decode("utf-8", "replace")
    except evidence.unreadable:
        return ""


class _Cycle:
    """The experts of one cycle: their agents' runs, and for each persona what it alone wrote."""

    def __init__(
        self,
        evidence: Evidence,
        panel: _Panel,
        number: int,
        sources: _Sources,
        ends: Mapping[str, int | None],
    ) -> None:
        self.evidence, self.panel, self.number = evidence, panel, number
        self.sources, self.ends = sources, ends
        front = f"{panel.name}/{number}-expert-"
        self.runs = [
            one for one in review_runs(evidence, ROLE, front) if one.spawn in sources.subjects
        ]
        for run in self.runs:
            order = read_agent_order(evidence, run.seq) or {}
            mixed = (TRANSCRIPT, *([OUTPUT] if order.get("output") == STREAM else []))
            run.wrote = [
                replace(one, text=text)
                for one in run.wrote
                for text in (one.messages if one.what in mixed else (one.text,))
            ]
        self.written = {name: _Written() for name in dict.fromkeys(map(self.persona, self.runs))}
        spawns = {run.spawn for run in self.runs}
        gone = {run.spawn for run in self.runs if not run.wrote}
        for run in self.runs:
            given = _hashes(run.given)
            # Errors are words of the program, which all experts share.
            for text in (one for one in run.wrote if one.what != ERRORS):
                self.written[self.persona(run)].add(text.text, text.seq, given.__contains__)
        for turn in panel.cycles.get(number, ()):
            if turn.spawn not in spawns or turn.spawn in gone:  # else it is there, since its end
                known = _hashes(next((r.given for r in self.runs if r.spawn == turn.spawn), ()))
                written = self.written.setdefault(turn.persona, _Written())
                written.add(turn.text, turn.seq, known.__contains__)

    def persona(self, run: ReviewRun) -> str:
        """Whose run it is."""
        return self.sources.subjects[run.spawn].persona

    def findings(self) -> Iterator[Finding]:
        """All that is wrong with the runs of the cycle's experts."""
        front = f"{self.panel.name}, cycle {self.number}"
        for run in self.runs:
            who = self.persona(run)
            for problem in run.false:
                yield self.finding(run.seq, f"{front}: run {run.spawn[:8]}, {who}: {problem}")
            for text in run.given:
                yield from self.sourced(front, who, text)
            known = self.known(run)
            given = _hashes(run.given)
            for text in run.given:
                for name, words, _ in self.echoes(who, text, known):
                    place = f"{text.what} (run {run.spawn[:8]}, {who})"
                    message = f"{front}: {place} holds {RUN} words in a row of {name}"
                    yield self.finding(text.seq, message, "failure", words)
            ended = self.ends.get(run.spawn) or 0
            grade: Severity = "warning" if run.level == "namespace" else "failure"
            told: set[str] = set()
            for text in run.wrote:
                known_too = _either(known, given.__contains__)
                for name, words, since in self.echoes(who, text, known_too):
                    place = f"{text.what} (run {run.spawn[:8]}, {who})"
                    message = f"{front}: {place} repeats {RUN} words in a row of {name}"
                    if since < ended and message not in told:
                        told.add(message)
                        yield self.finding(text.seq, message, grade, words)

    def finding(
        self, seq: int, message: str, severity: Severity | None = None, words: str = ""
    ) -> Finding:
        """A finding about an entry of an agent's run."""
        shown = (words,) if words else ()
        return self.evidence.finding(NAME, seq, message, HELP, severity=severity, shown=shown)

    def echoes(self, who: str, text: ReviewText, known: Known) -> Iterator[tuple[str, str, int]]:
        """For each other expert the first words of it in a text, and since when they were there."""
        words = words_of(text.text)
        for name, written in self.written.items():
            if name == who:
                continue
            hits = (
                (written.since[number], row)
                for number, row in written.index.find(words)
                if not known(hash(tuple(row.split(" "))))
            )
            first = min(hits, default=None)
            if first is not None:
                yield name, first[1], first[0]

    def known(self, run: ReviewRun) -> Known:
        """Whether a run of words stands in what this expert may see, or is its own."""
        who, tried = self.persona(run), VisiblePhrases()
        for other in self.runs:
            if self.persona(other) == who:
                for text in other.wrote:
                    tried.add(text.seq, text.text)
        own = self.panel.own.get(who, VisiblePhrases())
        mine = _either(own.before(run.seq), tried.before(run.seq))
        return _either(self.panel.seen.before(run.seq), mine)

    def sourced(self, front: str, who: str, text: ReviewText) -> Iterator[Finding]:
        """Turns of other experts of the cycle among the sources of a text."""
        todo = list(text.sources or ())
        done = set(todo)
        while todo:
            seq = todo.pop()
            turn = self.sources.turns.get(seq)
            spawn = self.sources.runs.get(seq) if turn is None else turn.spawn
            sibling = self.sibling(turn, spawn)
            if seq >= text.seq:
                message = f"{front}: {who} was given the text of entry {seq}, which came later"
                yield self.finding(text.seq, message)
            elif sibling not in ("", who):
                said = "a turn" if turn is not None else "a run"
                message = f"{front}: {who} was given the text of entry {seq}, {said} of {sibling}"
                yield self.finding(text.seq, message)
            elif turn is None or turn.role in ("expert", "critique"):
                # A turn of the coordinator distils what it came from: the closure ends there.
                more = self.behind(spawn) - done
                todo += more
                done |= more

    def sibling(self, turn: _Turn | None, spawn: str | None) -> str:
        """The expert of this cycle whose turn, or agent's run, that is ('': none of them)."""
        of = self.sources.subjects.get(spawn or "")
        if turn is not None:
            of = NovaSubject(turn.run, turn.cycle, turn.role, turn.persona)
        here = NovaSubject(self.panel.name, self.number, "expert", "")
        return of.persona if of is not None and of._replace(persona="") == here else ""

    def behind(self, spawn: str | None) -> set[int]:
        """The sources of what an agent's run was given."""
        if spawn is None:
            return set()
        found: set[int] = set()
        for seq in self.sources.orders.handed.get(spawn, ()):
            body = sound_body(self.evidence, seq, DELIVERED)
            found.update(() if body is None else body["sources"])
        return found

    def strange(self) -> Iterator[str]:
        """Why nobody can tell that an order holds nothing of what another expert said."""
        for run in self.runs:
            found = self.sources.orders.strange(run.spawn, self.sources.subjects[run.spawn])
            if found:
                yield f"{self.who(run)}: {found}"

    def who(self, run: ReviewRun) -> str:
        """How a run is called in a reason."""
        return f"{self.panel.name}, cycle {self.number}, {self.persona(run)} ({run.spawn[:8]})"

    def unread(self) -> Iterator[str]:
        """What cannot be read of the runs; an order may be strange because of it."""
        return (f"{self.who(run)}: {problem}" for run in self.runs for problem in run.unread)

    def untold(self) -> Iterator[str]:
        """Why nobody can tell of a run whether its expert could read the others' files."""
        for run in self.runs:
            who = self.who(run)
            if not run.level:
                yield f"{who}: no entry says how it was kept apart"
            elif run.level != "namespace":
                why = f" ({run.gap})" if run.gap else ""
                yield (
                    f"{who} ran in a folder, not in a namespace{why}: nothing kept it from reading "
                    "the others' files by their path"
                )
            elif run.gap or not self.hides_panels(run):
                gap = run.gap or NOVA
                yield f"{who}: nothing says that {gap} did not exist where it ran"

    def hides_panels(self, run: ReviewRun) -> bool:
        """Whether the files of Nova runs are said not to have existed where it ran."""
        rows = self.evidence.query("SELECT seq FROM isolations WHERE spawn = ?", run.spawn)
        hidden = [self.evidence.body(seq).get("hidden") for (seq,) in rows]
        return any(isinstance(one, list) and NOVA in one for one in hidden)


class _Written:
    """What one expert wrote in a cycle, but for what it was given, each text with its entry."""

    def __init__(self) -> None:
        self.index = PhraseIndex()
        self.since: list[int] = []

    def add(self, text: str, seq: int, known: Known) -> None:
        """Hold a text."""
        self.index.add(len(self.since), words_of(text), known)
        self.since.append(seq)


def _hashes(texts: Sequence[ReviewText]) -> set[int]:
    """The runs of words of some texts."""
    return {run for text in texts for run in phrase_hashes(words_of(text.text))}


def _either(one: Known, other: Known) -> Known:
    return lambda run: one(run) or other(run)
