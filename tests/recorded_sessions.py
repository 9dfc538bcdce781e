"""Recorded sessions of ``tests/golden/sessions.tar.xz``, unpacked once, and how they are judged."""

import atexit
import json
import shutil
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from nbs_team import unpack

from tripod.verify.isolation.globs import NeverRule
from tripod.verify.isolation.phrases import ProtectedText
from tripod.verify.recorded.files import SessionFile, read_session_file, session_files
from tripod.verify.recorded.project import Project
from tripod.verify.sessions.exposure import (
    ExposureVerdict,
    SessionExposures,
    judge_exposures,
)
from tripod.verify.sessions.items import Item

ARCHIVE = Path(__file__).parent / "golden/sessions.tar.xz"
CHAT = "chat/**"


@cache
def recorded() -> Path:
    """The folder with the recordings; nobody may change it."""
    folder = tempfile.mkdtemp(prefix="tripod-recorded-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    unpack(ARCHIVE, folder)
    return Path(folder)


def labels(folder: str) -> dict[str, dict[str, Any]]:
    """The ground truth of a set of recordings, by session."""
    found: dict[str, dict[str, Any]] = json.loads((recorded() / folder / "labels.json").read_text())
    return found


def transcripts() -> list[Path]:
    """Every file of a session in the archive."""
    return [
        Path(path)
        for path in session_files(str(recorded()))
        if path.endswith(".jsonl") and "hook-stdin" not in path
    ]


def items_of(path: Path) -> tuple[SessionFile, list[Item]]:
    """A file as it was read, with all that it holds in its order."""
    items: list[Item] = []
    return read_session_file(str(path), items.append), items


def judged(
    *paths: Path,
    never: str = CHAT,
    project: Path | None = None,
    home: Path | None = None,
    protect: dict[str, str] | None = None,
) -> tuple[ExposureVerdict, list[SessionExposures]]:
    """The verdict over files of a session, with what each of them exposed."""
    rule, protected = NeverRule([never]), ProtectedText()
    for name, text in (protect or {}).items():
        protected.add(name, text)
    known = None if project is None else Project(str(project))
    if known is not None:
        known.protect(protected, rule)
    read, counted = [], Counter[str]()
    for path in paths:
        around = {} if known is None else {"instructions": known}
        around |= {} if home is None else {"home": Project(str(home), is_home=True, beside=known)}
        if known is not None:
            known.beside = around.get("home")
        one = SessionExposures(rule, protected, str(path), frozenset[Any](around))
        found = read_session_file(str(path), one.add)
        for folder in around.values():
            for item in folder.items(found.program or ""):
                one.add(item)
        one.end()
        if found.program is not None:
            read.append(one)
    return judge_exposures(read, counted), read


ATIF: dict[str, Any] = {
    "schema_version": "ATIF-v1.4",
    "session_id": "s",
    "agent": {"name": "a", "version": "1"},
    "steps": [{"step_id": 1, "source": "user", "message": "go"}],
}
BASE = {"version": "2.1.209", "cwd": "/w", "timestamp": "2026-11-20T10:00:00Z"}


def write_session(path: Path, name: str, *reads: tuple[str, str], **more: Any) -> Path:
    """Write a session of Claude Code that reads files; each has a text."""
    base = {"sessionId": name, **BASE, **more}
    said: list[dict[str, Any]] = [{"type": "user", "message": {"role": "user", "content": "go"}}]
    for number, (file, text) in enumerate(reads):
        use = {"type": "tool_use", "id": f"c{number}", "name": "Read", "input": {"file_path": file}}
        result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": text}
        said.append({"type": "assistant", "message": {"role": "assistant", "content": [use]}})
        said.append({"type": "user", "message": {"role": "user", "content": [result]}})
    path.write_text("".join(json.dumps(base | one) + "\n" for one in said))
    return path
