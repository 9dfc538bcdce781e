"""The calls of every recording are those that agentsview 0.46.1 counts, a viewer by other people.

It runs as a program, on a home folder of its own and without a network. What it is known to lose is
listed here: that is why it counts and does not judge.
"""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from recorded_sessions import items_of, labels, recorded

PROGRAM = Path(sys.executable).with_name("agentsview")
OLD, NEW, PUBLIC = "sessions", "sessions-2026-11", "transcripts"
CODEX = ".codex/sessions/2026/06/17/rollout-2026-06-17T10-06-46-{}.jsonl"
SAID = "SECRETCHAT"


@pytest.fixture(autouse=True)
def program(capsys: pytest.CaptureFixture[str]) -> None:
    """The program; where it is not installed that is said, and on CI it is a failure."""
    if not PROGRAM.exists():
        message = "agentsview is not installed (the extra dev), so our counts were NOT compared"
        assert "TRIPOD_NEEDS_AGENTSVIEW" not in os.environ, message
        with capsys.disabled():
            print(f"\n{message}", file=sys.stderr)  # noqa: T201
        pytest.skip(message)


def _public() -> list[str]:
    return [f"{PUBLIC}/{path.name}" for path in sorted((recorded() / PUBLIC).glob("*.jsonl"))]


RECORDINGS = [*_public(), *(f"{OLD}/{name}" for name in labels(OLD)),
              *(f"{NEW}/{name}" for name in labels(NEW))]  # fmt: skip


def _files(name: str) -> dict[Path, str]:
    """The files of a recording, each with its place in the home of who ran the program."""
    folder = recorded() / name
    if name.startswith(PUBLIC):
        first = json.loads(folder.read_bytes().splitlines()[0])
        is_codex = first["type"] == "session_meta"
        return {folder: CODEX.format(first["payload"]["id"]) if is_codex else _claude(folder.name)}
    found = {}
    for path in folder.rglob("*"):
        below = str(path.relative_to(folder))
        if path.is_dir() or path.name == "hook-stdin.jsonl":
            continue
        if name.startswith(OLD + "/"):
            found[path] = _claude(below)
        elif below.startswith("."):
            found[path] = below
        elif path.name == "opencode.db":
            found[path] = ".local/share/opencode/opencode.db"
    return found


def _claude(below: str) -> str:
    return f".claude/projects/-home-dev-team/{below}"


def _seen_by_agentsview(home: Path, files: dict[Path, str]) -> sqlite3.Connection:
    """Its database, after it took in these files."""
    for path, below in files.items():
        (home / below).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, home / below)
    nowhere = "http://127.0.0.1:9"
    environment = {
        "HOME": str(home),
        "PATH": os.defpath,
        "AGENTSVIEW_DATA_DIR": str(home / "data"),
        "AGENTSVIEW_NO_DAEMON": "1",
        "AGENTSVIEW_DISABLE_UPDATE_CHECK": "1",
        "AGENTSVIEW_TELEMETRY_ENABLED": "0",
        "DO_NOT_TRACK": "1",
        "HTTPS_PROXY": nowhere,
        "HTTP_PROXY": nowhere,
    }
    done = subprocess.run(
        [str(PROGRAM), "sync"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return sqlite3.connect(home / "data/sessions.db")


def _their_calls(db: sqlite3.Connection) -> Counter[str]:
    rows = db.execute("SELECT tool_name, count(*) FROM tool_calls GROUP BY tool_name")
    return Counter(dict(rows.fetchall()))


def _our_calls(files: dict[Path, str]) -> Counter[str]:
    counted = Counter[str]()
    for path in files:
        counted += items_of(path)[0].counts.calls
    return counted


def _says(db: sqlite3.Connection, word: str) -> bool:
    """Whether a word stands in a text that it kept of what the model was given, or asked for."""
    kept = {"messages": "content", "tool_calls": "result_content", "tool_result_events": "content"}
    return any(
        db.execute(f"SELECT 1 FROM {table} WHERE instr({column}, ?)", (word,)).fetchone()
        for table, column in kept.items()
    )


LOST = {
    # text that the program itself put into the context: instructions, files named in a prompt
    *(f"{OLD}/{name}" for name in ("imports", "men_guard")),
    # the answer of a tool that reads a file
    *(f"{OLD}/{name}" for name in ("h_badjson", "h_exit1", "h_missing", "h_timeout")),
    *(f"{NEW}/{name}" for name in ("opencode-read-grep", "qwen-read-grep")),
    # what a hook said
    f"{OLD}/h_ctx",
    # no record of it exists
    f"{NEW}/opencode-instructions-no-record",
}
"""Recordings in which chat text reached the model, and of which its database has none of it."""


def _reached(name: str) -> bool:
    folder, _, label = name.partition("/")
    known: dict[str, Any] = {} if folder == PUBLIC else labels(folder)[label]
    return bool(known.get("any_read_of_chat", known.get("chat_text_reached_model")))


@pytest.mark.drawn
@pytest.mark.slow
@pytest.mark.parametrize("name", RECORDINGS)
def test_it_counts_the_calls_that_we_count(tmp_path: Path, name: str) -> None:
    files = _files(name)
    with closing(_seen_by_agentsview(tmp_path, files)) as db:
        assert _their_calls(db) == _our_calls(files)
        assert db.execute("SELECT count(*) FROM sessions").fetchone() >= (1,)
        if _reached(name):
            assert _says(db, SAID) == (name not in LOST)


@pytest.mark.slow
def test_it_loses_the_calls_of_a_subagent_within_the_file_of_its_parent(tmp_path: Path) -> None:
    source = recorded() / PUBLIC / "claude-2.1.33-entire-small.jsonl"
    use = {"type": "tool_use", "id": "t", "name": "Read", "input": {"file_path": "/w/a"}}
    inner = {"type": "assistant", "message": {"role": "assistant", "content": [use]}}
    data = {"type": "agent_progress", "agentId": "a", "message": inner}
    first = json.loads(source.read_bytes().splitlines()[3])
    more = {"type": "progress", "sessionId": first["sessionId"], "data": data}
    path = tmp_path / "a.jsonl"
    path.write_bytes(source.read_bytes().rstrip() + b"\n" + json.dumps(more).encode() + b"\n")
    ours = items_of(path)[0].counts
    with closing(_seen_by_agentsview(tmp_path / "home", {path: _claude("a.jsonl")})) as db:
        assert _their_calls(db) == ours.calls
        assert ours.nested == {"Read": 1}


@pytest.mark.slow
def test_it_keeps_no_answer_of_a_tool_that_reads(tmp_path: Path) -> None:
    files = _files(f"{PUBLIC}/claude-2.1.33-entire-small.jsonl")
    with closing(_seen_by_agentsview(tmp_path, files)) as db:
        sql = "SELECT count(*), count(nullif(result_content, '')) FROM tool_calls WHERE tool_name ="
        assert db.execute(f"{sql} 'Read'").fetchone() == (2, 0)
