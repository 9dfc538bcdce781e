"""Each persona of a Nova run was given its own prompt, as it stood in the entry that began the run.

**What it proves.** The beginning of each run holds a coordinator (``core/DCE.md``), a critic
(``core/CAE.md``) and at least one expert, each name once; the stored bytes are those of the digest
and are a persona's file of that name and title. Each agent's run with the role ``nova`` is for a
persona of its run, and its recorded prompt begins with the prompt of that persona's file. Not what
else the prompt says: the rest of it is the record, which ``nova-independence`` judges for experts.

**Why it matters.** A critic that was told to agree, or an expert that was given another's part,
makes a panel of one voice. An edit of a persona's file must not reach a run that has begun.

**What a finding looks like.** ``tea: the prompt of run 3f0c2a81 (1-critique-cae) does not begin
with that of cae``; ``tea: no persona has the file core/CAE.md``; ``tea: two personas are called
security``; ``tea: the bytes of security are not those of their digest``.

**What to do.** Compare the prompt (entry ``delivered``) with the persona in ``nova.opened``. What
the run decided counts as little as who was asked. *Cannot tell*: the personas, or a prompt, were
erased.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

from tripod.ledger.errors import MalformedError
from tripod.ledger.kinds.agents import DELIVERED
from tripod.ledger.kinds.nova import OPENED
from tripod.projections.nova.answers import read_persona
from tripod.projections.nova.run import CAE, DCE
from tripod.projections.nova.turns import ROLE, persona_prompt
from tripod.verify.check import TABLES, Evidence, Finding, Outcome, not_applicable, outcome
from tripod.verify.isolation.runs import erased_in_run
from tripod.verify.nova.runs import NO_RUN, told_nova
from tripod.verify.nova.turns import read_nova_subject, sound_body

NAME = "nova-personas"
REQUIRED = True
NEEDS = (TABLES,)
HELP = "compare the prompt (`delivered`) with the persona in `nova.opened`"


def judge(evidence: Evidence) -> Outcome:
    """Judge the rule that this module's docstring states."""
    runs = evidence.query("SELECT run, seq FROM nova_runs ORDER BY seq")
    agents = evidence.query(
        "SELECT spawn, subject, seq FROM agents WHERE role = ? ORDER BY seq", ROLE
    )
    if not (runs or agents):
        return not_applicable(NAME, NO_RUN)
    untold: list[str] = []
    found: list[Finding] = []
    prompts: dict[str, Mapping[str, str] | None] = {}
    personas = 0
    for run, seq in runs:
        body = sound_body(evidence, seq, OPENED)
        if body is None or erased_in_run(evidence, seq):
            untold.append(f"{run}: its personas (entry {seq}) cannot be read")
            prompts[run] = None
            continue
        personas += len(body["personas"])
        found += (
            evidence.finding(NAME, seq, f"{run}: {problem}", HELP)
            for problem in _problems(evidence, body["personas"])
        )
        prompts[run] = _prompts(evidence, body["personas"])
    for spawn, subject, seq in agents:
        problem, why = _prompt_problem(evidence, spawn, subject, prompts)
        if problem:
            found.append(evidence.finding(NAME, seq, problem, HELP))
        untold += [why] if why else []
    seen = {"runs": len(runs), "personas": personas, "prompts": len(agents)}
    return told_nova(outcome(NAME, found, seen), untold)


def _problems(evidence: Evidence, personas: list[dict[str, Any]]) -> Iterator[str]:
    """What is wrong with the personas that a run began with."""
    paths = [one["path"] for one in personas]
    for path in (DCE, CAE):
        if paths.count(path) != 1:
            count = "no persona has" if path not in paths else "several personas have"
            yield f"{count} the file {path}"
    if not set(paths) - {DCE, CAE}:
        yield "it has no expert"
    for name, times in Counter(one["short_name"] for one in personas).items():
        if times > 1:
            yield f"{times} personas are called {name}"
    for one in personas:
        data = _data(evidence, one)
        if data is None:
            continue  # `bodies-present` names it
        if sha256(data).hexdigest() != one["sha256"]:
            yield f"the bytes of {one['short_name']} are not those of their digest"
            continue
        try:
            known = read_persona(data, one["path"])
        except MalformedError:
            yield f"the bytes of {one['short_name']} are no persona's file"
            continue
        if (known.short_name, known.role) != (one["short_name"], one["role"]):
            yield f"the file of {one['short_name']} is that of {known.short_name} ({known.role})"


def _data(evidence: Evidence, persona: Mapping[str, Any]) -> bytes | None:
    try:
        return evidence.source.content(persona["content"])
    except evidence.unreadable:
        return None


def _prompts(evidence: Evidence, personas: list[dict[str, Any]]) -> dict[str, str]:
    """The prompt of each persona whose bytes can be read."""
    return {
        one["short_name"]: persona_prompt(data)
        for one in personas
        if (data := _data(evidence, one)) is not None
    }


def _prompt_problem(
    evidence: Evidence, spawn: str, subject: str, prompts: Mapping[str, Mapping[str, str] | None]
) -> tuple[str, str]:
    """What is wrong with the prompt of an agent's run, or why nobody can tell; '' for neither."""
    of = read_nova_subject(subject)
    if of is None or of.run not in prompts:
        return f"run {spawn[:8]} is for no turn of a Nova run: {subject[:80]!r}", ""
    known = prompts[of.run]
    if known is None:
        return "", ""  # that is told already
    what = f"run {spawn[:8]} ({subject.partition('/')[2]})"
    if of.persona not in known:
        return f"{of.run}: {what} is for no persona of it", ""
    given = 0
    for (seq,) in evidence.query("SELECT seq FROM handed WHERE spawn = ? ORDER BY seq", spawn):
        body = sound_body(evidence, seq, DELIVERED)
        if body is None or erased_in_run(evidence, seq):
            return "", f"{of.run}: what {what} was given (entry {seq}) cannot be read"
        if body["channel"] != "prompt":
            continue
        given += 1
        data = _data(evidence, body)
        if data is None:
            return "", f"{of.run}: the prompt of {what} (entry {seq}) is not there"
        text = data.decode("utf-8", "replace")
        if not text.startswith(f"{known[of.persona]}\n\n"):
            return f"{of.run}: the prompt of {what} does not begin with that of {of.persona}", ""
    return ("", "") if given else ("", f"{of.run}: no entry holds the prompt of {what}")
