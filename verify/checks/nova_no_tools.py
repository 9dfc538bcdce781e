"""No agent of a Nova run was granted a tool, and none is seen to have used one.

**What it proves.** The order of each run with the role ``nova`` names no tool server and grants no
tool. Where its output is a stream of a coding agent, and in the transcripts that it left, no call
of a tool is seen, but for the one by which such a program gives an answer in a shape that was asked
for. A program that prints its answer alone shows no calls: the coverage counts these runs. Nor does
the check see what a program does without telling.

**Why it matters.** Personas talk; they do not act. A tool call could read what an expert must not
see, or change what the panel only advises on.

**What a finding looks like.** ``run 3f0c2a81 (tea/1-expert-security) used the tool Bash``; ``run
3f0c2a81 (tea/1-expert-security) was granted the tools Read, Grep``; ``... had the tool server
wiki``.

**What to do.** Take the tools out of the profile that the personas are run by, and have the
question answered again. *Cannot tell*: the order or the output was erased.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

from tripod.ledger.kinds.agents import ENDED
from tripod.projections.nova.turns import ROLE
from tripod.verify.check import TABLES, Evidence, Finding, Outcome, not_applicable, outcome
from tripod.verify.isolation.breach import calls_in_stream, stream_value
from tripod.verify.isolation.runs import erased_in_run, transcripts_of_run
from tripod.verify.nova.runs import NO_RUN, told_nova
from tripod.verify.nova.turns import read_agent_order, read_agent_output, sound_body

NAME = "nova-no-tools"
REQUIRED = True
NEEDS = (TABLES,)
HELP = "take the tools out of the profile that the personas are run by"
STREAM = "claude-stream-json"
ANSWERING = "StructuredOutput"
"""The tool by which a coding agent gives an answer in the shape that its order asks for."""


def judge(evidence: Evidence) -> Outcome:
    """Judge the rule that this module's docstring states."""
    rows = evidence.query(
        "SELECT spawn, subject, seq, state, ended FROM agents WHERE role = ? ORDER BY seq", ROLE
    )
    if not rows:
        return not_applicable(NAME, NO_RUN)
    found: list[Finding] = []
    untold: list[str] = []
    seen = {"runs of agents": len(rows), "with a stream": 0, "transcripts": 0}
    for spawn, subject, seq, state, ended in rows:
        who = f"run {spawn[:8]} ({subject[:100]})"
        order = read_agent_order(evidence, seq)
        if order is None:
            untold.append(f"{who}: its order (entry {seq}) cannot be read")
            continue
        found += (evidence.finding(NAME, seq, f"{who} {what}", HELP) for what in _granted(order))
        texts = [
            data if data is not None and sha256(data).hexdigest() == digest else None
            for _, data, digest in transcripts_of_run(evidence, ROLE, spawn)
        ]
        seen["transcripts"] += len(texts)
        if state == "ended" and order.get("output") == STREAM:
            seen["with a stream"] += 1
            texts.append(_stream(evidence, ended))
        if None in texts:
            untold.append(f"{who}: its stream or its transcript cannot be read")
        used = dict.fromkeys(tool for text in texts for tool in _used(text or b"", order))
        at = seq if ended is None else ended
        found += (evidence.finding(NAME, at, f"{who} used the tool {tool}", HELP) for tool in used)
    return told_nova(outcome(NAME, found, seen), untold)


def _granted(order: Mapping[str, Any]) -> Iterator[str]:
    """What an order grants, in words."""
    tools, servers = order.get("tools"), order.get("mcp_servers")
    if tools:
        names = tools if isinstance(tools, list) else [tools]
        yield f"was granted the tools {', '.join(map(str, names))[:200]}"
    if servers:
        yield f"had the tool servers {', '.join(map(str, servers))[:200]}"


def _stream(evidence: Evidence, ended: int) -> bytes | None:
    """What a program streamed; None where that cannot be read, or was too much to keep."""
    body = sound_body(evidence, ended, ENDED)
    if body is None or erased_in_run(evidence, ended) or "content" not in body["stdout"]:
        return None
    return read_agent_output(evidence, ended, body["stdout"])


def _used(text: bytes, order: Mapping[str, Any]) -> Iterator[str]:
    """The tools of which a stream or a transcript shows a call.

    The result repeats the answer, which may speak of calls; the lines before it are what was done.
    """
    for line in text.decode("utf-8", "replace").split("\n"):
        value = stream_value(line)
        if value is None or (isinstance(value, dict) and value.get("type") == "result"):
            continue
        for call in calls_in_stream(value):
            if not (call.tool == ANSWERING and "schema" in order):
                yield call.tool[:80] or "without a name"
