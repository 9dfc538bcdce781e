"""ATIF, the Agent Trajectory Interchange Format 1.0 to 1.8: one document, a step at a time. Pure.

Converters of other programs write it, so it holds what they kept: what a program itself put into
the context is not in it, and no session of it can be called clean.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tripod.verify.sessions.items import (
    Call,
    Channel,
    Gap,
    Given,
    Item,
    Reader,
    SessionRecord,
    fields,
    text_at,
    ways_in,
)

_WITHIN = "subagent_trajectories"
_VERSION = re.compile(r"ATIF-v1\.[0-8]")
_HEADER = fields(
    """schema_version session_id trajectory_id agent notes final_metrics extra
    continued_trajectory_ref subagent_trajectories"""
)
_STEP = fields(
    """step_id timestamp source model_name reasoning_effort message reasoning_content tool_calls
    observation metrics is_copied_context llm_call_count extra"""
)
_CALL = fields("tool_call_id function_name arguments extra")
_OBSERVATION = fields("results extra")
_RESULT = fields("source_call_id content subagent_trajectory_ref extra")


class Atif(Reader):
    """Reads a trajectory: its header, then its steps."""

    program = "atif"
    ways = ways_in(
        recorded="tool mcp paste system",
        within={"tool": "read search names shell script edit resource web"},
        not_known="""subagent mention attachment instructions notice hook summary background queue
            skill request home""",
    )

    def read(self, record: SessionRecord) -> Iterator[Item]:
        """The header of a document, or a step."""
        value = record.value
        if "schema_version" in value:
            yield from self._header(record, value)
        else:
            yield from self._step(record, value)

    def _step(self, record: SessionRecord, value: dict[str, Any]) -> Iterator[Item]:
        source = text_at(value, "source")
        self.records[source] += 1
        if source not in ("system", "user", "agent"):
            yield from self.strange_type(record, source, value)
            return
        yield from self.strange_fields(record, value, _STEP, "a step")
        if source != "agent":
            channel: Channel = "system" if source == "system" else "paste"
            yield from self._text(record, channel, value.get("message"))
        for call in (yield from self.list_of(record, value.get("tool_calls"), "tool_calls")):
            yield from self._call(record, call)
        observed = yield from self.object_of(record, value.get("observation"), "observation")
        yield from self.strange_fields(record, observed, _OBSERVATION, "an observation")
        for result in (yield from self.list_of(record, observed.get("results"), "results")):
            yield from self._result(record, result)

    def _header(self, record: SessionRecord, value: dict[str, Any]) -> Iterator[Item]:
        self.records["trajectory"] += 1
        version = text_at(value, "schema_version")
        if not _VERSION.fullmatch(version):
            yield Gap("unknown", record.line, f"the version {version[:40]!r} of the format")
        yield from self.strange_fields(record, value, _HEADER, "the document")
        name = text_at(value, "session_id") or text_at(value, "trajectory_id")
        by = f"{text_at(value, 'agent', 'name')} {text_at(value, 'agent', 'version')}".strip()
        yield from self.began(record, name, version, role=by)
        if value.get("continued_trajectory_ref"):
            yield Gap("missing", record.line, "it goes on in another document", "subagent")
        yield from self._embedded(record, value)

    def _embedded(self, record: SessionRecord, value: dict[str, Any]) -> Iterator[Item]:
        """The steps of subagents that stand in the document of their parent, and of theirs."""
        todo = [value]
        while todo:
            for one in (yield from self.list_of(record, todo.pop().get(_WITHIN), _WITHIN)):
                if not isinstance(one, dict):
                    yield from self.strange_type(record, _WITHIN, one)
                    continue
                todo.append(one)
                yield from self.strange_fields(record, one, _HEADER | {"steps"}, "a subagent")
                agent = text_at(one, "trajectory_id") or text_at(one, "session_id") or "subagent"
                for step in (yield from self.list_of(record, one.get("steps"), "steps")):
                    for item in self._step(record, step if isinstance(step, dict) else {"": step}):
                        if isinstance(item, Call | Given):
                            yield item._replace(agent=agent, nested=True)
                        else:
                            yield item

    def _text(self, record: SessionRecord, channel: Channel, message: object) -> Iterator[Item]:
        for part in message if isinstance(message, list) else [message]:
            if isinstance(part, str):
                yield self.given(record, channel, part)
            elif text_at(part, "type") == "text":
                yield self.given(record, channel, text_at(part, "text"))
            else:
                yield Gap("opaque", record.line, "a part of a message that is no text", channel)

    def _call(self, record: SessionRecord, value: object) -> Iterator[Item]:
        if not isinstance(value, dict):
            yield from self.strange_type(record, "tool_call", value)
            return
        yield from self.strange_fields(record, value, _CALL, "a call")
        name, tool = text_at(value, "tool_call_id"), text_at(value, "function_name")
        # Every program has its own tools: each text of the input may be a path or a command.
        yield self.called(record, name, tool, value.get("arguments"))

    def _result(self, record: SessionRecord, value: object) -> Iterator[Item]:
        if not isinstance(value, dict):
            yield from self.strange_type(record, "result", value)
            return
        yield from self.strange_fields(record, value, _RESULT, "a result")
        if value.get("subagent_trajectory_ref"):
            yield Gap("missing", record.line, "the trajectory of a subagent", "subagent")
        name = text_at(value, "source_call_id")
        if name:
            yield self.answered(record, name, value.get("content"))
        else:
            yield self.given(record, "tool", value.get("content"))
