"""Sessions in which a file was read in a way that is seldom: none of them is called clean."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from doors.inside import run
from recorded_sessions import judged, recorded

from tripod.verify.isolation.phrases import overlaps
from tripod.verify.recorded.files import read_session_file, session_time

BASE = {"sessionId": "s1", "version": "2.1.209", "cwd": "/w/a"}
KEYS = "".join(f"{name}=1\n" for name in ("A_KEY", "B_KEY", "C", "D_KEY", "F_KEY", "G_KEY"))
WORDS = "the quick brown fox jumps over the lazy dog and then it sleeps until noon\n"


def _said(role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {**BASE, "type": role, "message": {"role": role, "content": content}, **more}


def _call(name: str, tool: str, answer: str, **asked: str) -> list[dict[str, Any]]:
    use = {"type": "tool_use", "id": name, "name": tool, "input": asked}
    result = {"type": "tool_result", "tool_use_id": name, "content": answer}
    return [_said("assistant", [use]), _said("user", [result])]


def _written(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    return path


def test_what_a_skill_did_that_ran_as_a_subagent_is_seen(tmp_path: Path) -> None:
    asked, answered = _call("c1", "Skill", "Skill completed.", skill="x")
    inner = [
        {
            **BASE,
            "type": "progress",
            "parentToolUseID": "c1",
            "data": {"type": "skill_progress", "agentId": "a1", "message": one},
        }
        for one in _call("c2", "Read", "1\tK=1", file_path="/w/a/.env")
    ]
    path = _written(tmp_path / "s.jsonl", _said("user", "go"), asked, *inner, answered)
    verdict, _ = judged(path, never=".env", protect={".env": WORDS})
    assert verdict.told == "findings"


def test_a_folder_in_which_the_agent_went_on_has_files_of_its_own(tmp_path: Path) -> None:
    calls = _call("c2", "Bash", "TOKEN=1", command="grep -rh TOKEN .")
    moved = [one | {"cwd": "/w/a/pkg"} for one in calls]
    path = _written(tmp_path / "s.jsonl", _said("user", "go"), *moved)
    assert judged(path, never="secrets/**")[0].told == "cannot tell"


def test_two_files_that_a_person_named_may_have_the_same_text(tmp_path: Path) -> None:
    (source,) = (recorded() / "sessions-2026-11/gemini-at-mention").rglob("session-*.jsonl")
    records = [json.loads(line) for line in source.read_text().splitlines()]
    parts = ["compare", "\n--- Content from referenced files ---"]
    for name, text in ((".env.example", "A=1\n"), (".env", "A=1\n"), ("b", "B=2\n")):
        parts += [f"\nContent from @{name}:\n", text]
    asked = next(one for one in records if "displayContent" in one)
    asked["content"] = [{"text": one} for one in (*parts, "\n--- End of content ---")]
    path = _written(tmp_path / "s.jsonl", *records)
    assert judged(path, never=".env", home=tmp_path / "none")[0].told == "findings"


@pytest.mark.parametrize(
    "form",
    [
        *("L{}: {}", "Line {}: {}", "{}. {}", "{}) {}", "{} {}", "{} | {}", "#{} {}", "[{}] {}"),
        *("  {}   \u2502 {}", "a-b.py-{}-{}"),
    ],
)
def test_numbers_of_lines_do_not_part_a_text(form: str, tmp_path: Path) -> None:
    text = "\n".join(form.format(n, line) for n, line in enumerate(KEYS.splitlines(), 1))
    path = _written(tmp_path / "s.jsonl", *_call("c1", "Bash", text, command="cat /tmp/x"))
    assert judged(path, never=".env", protect={".env": KEYS})[0].told == "findings"


def test_a_text_is_found_in_json_that_holds_it(tmp_path: Path) -> None:
    text = '# \u043a\u043b\u044e\u0447\nAPI_KEY="sk-abcdefghijklmnop"\n'
    text += 'NAME_OF_IT="\u0438\u043c\u044f \u0441\u0435\u0440\u0432\u0435\u0440\u0430"\n'
    whole = json.dumps({"content": text})
    for inner in (whole, json.dumps(whole)):
        path = _written(tmp_path / "s.jsonl", *_call("c1", "Bash", inner, command="cat /tmp/x"))
        for line in text.splitlines()[1:]:
            assert judged(path, never=".env", protect={".env": line})[0].told == "findings"


@pytest.mark.parametrize("copied", ["cp chat/lobby.md /tmp/x; echo done", "tee /tmp/x <chat/a.md"])
def test_what_a_script_copied_and_did_not_show_may_be_shown_later(
    copied: str, tmp_path: Path
) -> None:
    (source,) = (recorded() / "sessions-2026-11/codex-codemode-opened-not-shown").rglob(
        "rollout-*.jsonl"
    )
    records = [json.loads(line) for line in source.read_text().splitlines()]
    (ran,) = (
        one for one in records if one["payload"].get("item", {}).get("type") == "CommandExecution"
    )
    told = []
    for command in (ran["payload"]["item"]["command"][-1], copied):
        ran["payload"]["item"] |= {
            "command": ["/bin/bash", "-lc", command],
            "aggregated_output": "many words that no answer has in it\n",
        }
        path = _written(tmp_path / "s.jsonl", *records)
        told.append(_told("--never", "chat/**", "--shown", path))
    assert told == [0, 3]


def _told(*words: object) -> int:
    return run(Path("/"), "exposure", *map(str, words)).code


def test_text_of_another_file_does_not_stand_for_that_of_the_rule(tmp_path: Path) -> None:
    hook = {"type": "hook_additional_context", "content": ["x"], "hookName": "h"}
    path = _written(tmp_path / "s.jsonl", _said("user", "go"), BASE | {
        "type": "attachment", "attachment": hook | {"hookEvent": "Stop", "toolUseID": "c"}
    })  # fmt: skip
    for name in ("other", ".env"):
        (tmp_path / name).write_text(WORDS)
    rule = ("--never", ".env", path, "--protect")
    assert _told(*rule, tmp_path / "other") == 3
    assert _told(*rule, tmp_path / ".env") == 0
    assert _told("--never", "*.pem", *rule, tmp_path / ".env") == 3


@pytest.mark.parametrize(
    ("file", "cwd", "code"),
    [
        ("AGENTS.md", "{}/team", 1),
        ("src/AGENTS.md", "{}/team", 0),
        ("src/AGENTS.md", "{}/team/src", 1),
        ("src/AGENTS.md", "{}/team/src/a/b", 1),
        ("src/AGENTS.md", "{}/team/src/gone", 1),
        ("src/a/CLAUDE.md", "{}/team/src/a/b", 1),
        ("src/b/CLAUDE.md", "{}/team/src/a/b", 0),
        ("src/a/opencode.json", "{}/team/src/a/b", 3),
        ("src/a/opencode.json", "{}/team", 0),
        ("src/a/AGENTS.md", "/elsewhere/team/src/a", 3),
        ("src/a/AGENTS.md", "C:\\team\\src\\a", 3),
        ("src/a/AGENTS.md", "/elsewhere/team/src", 0),
        ("src/a/AGENTS.md", "/elsewhere/../src/../src/a", 3),
        ("src/a/AGENTS.md", "../src/a", 3),
        ("src/a/AGENTS.md", "src/a", 3),
        ("AGENTS.md", "../team", 1),
        ("src/a/AGENTS.md", "/team/a\0", 0),
        ("src/a/AGENTS.md", "/team/\ud800", 0),
        ("src/a/AGENTS.md", "", 0),
    ],
)
def test_opencode_reads_instructions_on_the_way_to_its_folder(
    tmp_path: Path, file: str, cwd: str, code: int
) -> None:
    (tmp_path / "team/src/a/b").mkdir(parents=True)
    (tmp_path / "team/src/b").mkdir()
    (tmp_path / "team" / file).write_text(WORDS)
    (tmp_path / "home").mkdir()
    (tmp_path / "secret.md").write_text(WORDS)
    folder = cwd.format(os.path.realpath(tmp_path))
    info = {"id": "s", "directory": folder, "version": "1.18.33"}
    said = {
        "info": {"id": "m", "role": "user"},
        "parts": [{"id": "p", "type": "text", "text": "x"}],
    }
    (tmp_path / "s.json").write_text(json.dumps({"info": info, "messages": [said]}))
    words = ("--project", "team", "--home", "home", "--protect", "secret.md", "s.json")
    assert run(tmp_path, "exposure", *words).code == code


def test_opencode_reads_instructions_above_its_folder(tmp_path: Path) -> None:
    database = recorded() / "sessions-2026-11/opencode-clean/opencode.db"
    project = tmp_path / "repo/sub"
    project.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", project.parent], check=True)
    (tmp_path / "AGENTS.md").write_text(WORDS)  # in no repository
    around: dict[str, Any] = {
        "project": project,
        "home": tmp_path / "none",
        "protect": {"secret": WORDS},
    }
    assert judged(database, **around)[0].told == "clean"
    (project.parent / "AGENTS.md").write_text(WORDS)
    assert judged(database, **around)[0].told == "findings"


@pytest.mark.parametrize("output", ['PIN="12345"\n', "PIN\t12\n", "a\\b\n"])
def test_a_short_output_that_a_script_gave_as_json_was_shown(output: str) -> None:
    assert overlaps(output, json.dumps({"exit_code": 0, "output": output}))
    assert not overlaps(output, json.dumps({"exit_code": 0, "output": ""}))


def test_a_strange_time_is_not_taken_for_that_of_the_last_record(tmp_path: Path) -> None:
    """OpenCode has no ``timestamp``; what stands there is a field that nobody knows."""
    message = {"id": "m", "sessionID": "s", "role": "user", "time": {"created": 1780000005000}}
    told = {"id": "s", "version": "1.18.33", "directory": "/w"}
    whole = {
        "info": told,
        "timestamp": "2020-01-01T00:00:00Z",
        "messages": [{"info": message, "parts": [{"id": "p", "type": "text", "text": "go"}]}],
    }
    path = tmp_path / "s.json"
    path.write_text(json.dumps(whole))
    assert session_time(read_session_file(str(path))) == 1780000005000000
