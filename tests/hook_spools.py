"""What hooks leave of a session, made from recorded events: a folder with a file for each."""

import json
from collections.abc import Iterable
from pathlib import Path
from shutil import copyfile
from typing import Any

from recorded_sessions import recorded

GOLDEN = Path(__file__).parent / "golden/hook-spool"
GOLDEN_ID = "7f399643-026c-4d0c-8618-87938470c143"

SETS = sorted(path.parent.name for path in recorded().glob("sessions/*/hook-stdin.jsonl"))
"""Recordings of Claude Code with what its hooks were given."""


def recorded_events(name: str) -> list[dict[str, Any]]:
    """The events of a recording, in their order."""
    lines = (recorded() / "sessions" / name / "hook-stdin.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def transcripts_of(name: str) -> list[Path]:
    """The files of a recorded session: its own thread first, then its subagents."""
    folder = recorded() / "sessions" / name
    own = next(path for path in folder.glob("*.jsonl") if path.name != "hook-stdin.jsonl")
    return [own, *sorted(folder.glob("*/subagents/*.jsonl"))]


def write_spool(
    folder: Path, events: Iterable[dict[str, Any]], transcripts: Iterable[Path] = ()
) -> Path:
    """Write events with their numbers, and the transcripts that hooks saved."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, event in enumerate(events, 1):
        path = folder / f"{number:04}-{event['hook_event_name']}.json"
        path.write_text(json.dumps(event))
    for path in transcripts:
        inner = path.parent.name == "subagents"
        place = (
            folder / "transcript/subagents" / path.name if inner else folder / "transcript.jsonl"
        )
        place.parent.mkdir(parents=True, exist_ok=True)
        copyfile(path, place)
    return folder


def event_of(kind: str, call: str = "", **more: Any) -> dict[str, Any]:
    """An event of the session ``s``; with ``call``, one of a tool that reads a file."""
    event = {"session_id": "s", "cwd": "/w", "hook_event_name": kind, **more}
    asked = {"tool_name": "Read", "tool_input": {"file_path": "/w/.env"}, "tool_use_id": call}
    if kind == "PostToolBatch":
        return event | {"tool_calls": [asked | {"tool_response": "KEY=1"}]}
    return event | asked if call else event


def events_of(*calls: str, source: str = "startup") -> list[dict[str, Any]]:
    """The events of a session ``s`` that makes these calls, one after the other."""
    inner = [event_of(kind, call) for call in calls for kind in ("PreToolUse", "PostToolBatch")]
    return [event_of("SessionStart", source=source), *inner, event_of("SessionEnd")]
