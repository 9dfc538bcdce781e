"""Sessions of a Pythia that ran outside of ours, judged by `pythia-isolation`."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import drafts
import pytest
from doors.inside import run
from recorded_review import review
from recorded_sessions import BASE, write_session
from specimens import build

from tripod.chat import writer as chat
from tripod.team.team import Team

SAID = "we agreed to move the whole release to friday because of the broken index"
CHAT, LOG = "/w/.nbs/chat/live.chat", ("/w/.nbs/scribe/log.md", "# Decision Log")
ASSESSMENT = (
    "PYTHIA CHECKPOINT — Assessment #1\n\n**Hidden assumption:** none.\n"
    "**Second-order risk:** none.\n**Missing validation:** nobody measured what it costs.\n"
    "**Six-month regret:** none.\n**Confidence:** high\n"
)
SUBAGENT = {"agentId": "a1", "isSidechain": True}


@pytest.fixture
def team(tmp_path: Path) -> Path:
    assert run(tmp_path, "init").code == 0
    assert run(tmp_path, "chat", "create", "live").code == 0
    assert run(tmp_path, "chat", "send", "live", "ann", SAID).code == 0
    return tmp_path


def policy(team: Path, text: str) -> None:
    (team / ".nbs/policy.yaml").write_text(text)


def taken(team: Path, *names: str) -> None:
    done = run(team, "import", *names, "--as", "ann")
    assert done.code == 0, done.err


def told(team: Path, check: str = "pythia-isolation") -> tuple[int, dict[str, Any]]:
    """The exit code, and what a check says."""
    done = run(team, "verify", "--json")
    report = json.loads(done.out)
    return done.code, next(one for one in report["checks"] if one["check"] == check)


def messages(one: dict[str, Any]) -> list[str]:
    return [found["message"] for found in one["findings"]]


def subagent(
    team: Path, *reads: tuple[str, str], role: str = "pythia", name: str = "p", **more: Any
) -> None:
    """Import a session that starts one subagent, which reads files."""
    write_session(team / f"{name}.jsonl", name, ("/w/a.py", "x"))
    (team / name / "subagents").mkdir(parents=True, exist_ok=True)
    write_session(team / name / "subagents/agent-a1.jsonl", name, *reads, **SUBAGENT | more)
    (team / name / "subagents/agent-a1.meta.json").write_text(json.dumps({"agentType": role}))
    taken(team, f"{name}.jsonl")


# Whose session is one of Pythia's


@pytest.mark.parametrize("role", ["pythia", "Pythia-reviewer", "nbs:pythia"])
def test_a_subagent_of_that_type_is_pythia(team: Path, role: str) -> None:
    subagent(team, (CHAT, "x"), role=role)
    code, one = told(team)
    assert (code, one["verdict"]) == (1, "findings")
    names = ", ".join(sorted({role, "pythia"}))
    assert messages(one) == [f"session p, subagent a1 ({names}) was shown {CHAT} (read, line 2)"]
    assert (one["coverage"]["sessions"], one["coverage"]["read again"]) == (1, 1)
    assert told(team, "never-read")[1]["verdict"] == "not applicable"


@pytest.mark.parametrize("key", ["folder: /w*", "session: 's?'", "folder: /w\n    session: s1"])
def test_a_policy_gives_the_role_by_folder_and_by_id(team: Path, key: str) -> None:
    write_session(team / "s.jsonl", "s1", (CHAT, "x"))
    write_session(team / "t.jsonl", "t", (CHAT, "x"), cwd="/elsewhere")
    taken(team, "s.jsonl", "t.jsonl")
    assert told(team)[1]["verdict"] == "not applicable"
    policy(team, f"roles:\n  - role: pythia\n    {key}\n")
    code, one = told(team)
    assert (code, messages(one)) == (1, [f"session s1 (pythia) was shown {CHAT} (read, line 2)"])


def test_a_role_of_the_policy_counts_for_the_teams_own_rules_too(team: Path) -> None:
    write_session(team / "s.jsonl", "s", ("/w/.env", "KEY=1"))
    taken(team, "s.jsonl")
    rule = "never:\n  - paths: [.env]\n    role: reviewer\n"
    policy(team, rule)
    assert told(team, "never-read")[1]["verdict"] == "cannot tell"
    policy(team, f"{rule}roles:\n  - role: reviewer\n    folder: /w\n")
    assert messages(told(team, "never-read")[1]) == [
        "session s (reviewer) was shown /w/.env (read, line 2)"
    ]
    assert told(team)[1]["verdict"] == "not applicable"


@pytest.mark.parametrize(("name", "task"), [("pythia-a0d7", "Judge."), ("w1", "You are Pythia.")])
def test_the_worker_that_ran_a_session_says_whose_it_is(team: Path, name: str, task: str) -> None:
    with Team(team) as opened, opened.act() as act:
        act.append(
            [
                drafts.worker_spawned(name=name, slug="w", folder="/w", task=task, actor="ann"),
                drafts.worker_running(name, "r1", "1-a-worker-b-1.event"),
                drafts.agent_requested(
                    spawn="r1", role="worker", subject=name, attempt=1, spec=b"{}", actor="ann"
                ),
                drafts.agent_ended(
                    spawn="r1", status="ok", wall_ms=1, stdout=b"", stderr=b"", session="s"
                ),
            ]
        )
    write_session(team / "s.jsonl", "s", (CHAT, "x"))
    assert told(team)[1]["verdict"] == "cannot tell"
    taken(team, "s.jsonl")
    code, one = told(team)
    assert code == 1
    assert [text for text in messages(one) if f"was shown {CHAT} (read, line 2)" in text]


def test_what_a_session_of_pythia_started_is_judged_with_it(team: Path) -> None:
    subagent(team, (CHAT, "x"), role="explorer")
    assert told(team)[1]["verdict"] == "not applicable"
    policy(team, "roles:\n  - role: pythia\n    session: p\n")
    assert messages(told(team)[1]) == [
        f"session p, subagent a1 (explorer, pythia) was shown {CHAT} (read, line 2)"
    ]


# What it may see


def test_a_session_that_read_the_log_alone_is_clean_except_for_its_custody(team: Path) -> None:
    subagent(team, LOG, ("/w/.nbs/events/1-scribe-pythia-checkpoint-7.event", "range: D-1 to D-2"))
    code, one = told(team)
    assert (code, one["verdict"]) == (0, "clean, except"), one
    assert "1 session was found on disk" in one["exceptions"][0]


@pytest.mark.parametrize(
    "path",
    [
        "/w/.nbs/chat/live.chat",
        "/w/.nbs/chat/live-20260212-140000-archive.chat",
        "/w/.nbs/events/processed/1-nbs-chat-chat-message-3.event",
        "/w/.nbs/record/tile/0/000",
        "/w/.git/tripod/ledger.db",
    ],
)
def test_what_holds_the_chat_counts_by_its_path(team: Path, path: str) -> None:
    subagent(team, LOG, (path, "x"))
    assert messages(told(team)[1]) == [
        f"session p, subagent a1 (pythia) was shown {path} (read, line 4)"
    ]


def test_words_of_the_chat_count_wherever_they_come_from(team: Path) -> None:
    subagent(team, ("/w/notes.md", f"somebody wrote: {SAID}"))
    code, one = told(team)
    assert code == 1
    (message,) = messages(one)
    assert message.startswith("session p, subagent a1 (pythia) was shown ")
    assert message.endswith("/live.chat (read, line 3)")


def test_words_that_an_event_alone_quotes_count(team: Path) -> None:
    other = "the customer asked for his money back and nobody had an answer for him"
    done = run(team, "bus", "publish", "nbs-chat", "human-input", "high", f"bob: {other}")
    assert done.code == 0, done.err
    subagent(team, ("/w/notes.md", other))
    (message,) = messages(told(team)[1])
    assert "human-input" in message


def test_words_of_a_chat_file_that_was_put_aside_count(team: Path) -> None:
    """Somebody changed a line of the file: what it said then is in no message."""
    file, other = team / ".nbs/chat/live.chat", SAID.replace("friday", "monday morning at nine")
    lines = file.read_bytes().split(b"\n")
    at = next(n for n, line in enumerate(lines) if SAID.encode() in _decoded(line))
    lines[at] = b64encode(_decoded(lines[at]).replace(SAID.encode(), other.encode()))
    file.write_bytes(b"\n".join(lines))
    assert run(team, "chat", "send", "live", "ann", "so be it").code == 0
    subagent(team, ("/w/notes.md", other))
    (message,) = messages(told(team)[1])
    assert ".nbs/chat/live.chat (read, line 3)" in message


def _decoded(line: bytes) -> bytes:
    try:
        return b64decode(line, validate=True)
    except ValueError:
        return b""


def test_a_rule_of_the_teams_own_is_judged_beside_it(team: Path) -> None:
    subagent(team, (CHAT, "x"))
    policy(team, "never:\n  - paths: ['*.chat']\n    role: pythia\n")
    assert messages(told(team)[1]) == messages(told(team, "never-read")[1]) != []


def test_words_that_a_decision_quotes_do_not_count(team: Path) -> None:
    subagent(team, ("/w/.nbs/scribe/log.md", f"- rationale: {SAID}"))
    assert told(team)[0] == 1  # nobody had logged it
    done = run(team, "scribe", "log", "Move it", "-p", "ann", "-r", SAID, "--ref", "#0")
    assert done.code == 0, done.err
    late = {"timestamp": "2200-11-20T10:00:00Z"}
    subagent(team, ("/w/.nbs/scribe/log.md", f"- rationale: {SAID}"), name="q", **late)
    one = told(team)[1]
    assert one["coverage"]["read again"] == 2
    assert {message.partition(",")[0] for message in messages(one)} == {"session p"}


def test_a_rule_of_the_team_means_by_pythia_whom_the_check_means(team: Path) -> None:
    subagent(team, ("/w/.env", "KEY=1"), role="nbs:pythia")
    write_session(team / "q.jsonl", "q", ("/w/a", "x"), cwd="/q")
    taken(team, "q.jsonl")
    rule = "never:\n  - paths: [.env]\n    role: pythia\n"
    policy(team, f"{rule}roles:\n  - role: pythia\n    folder: /q\n")
    assert messages(told(team, "never-read")[1]) == [
        "session p, subagent a1 (nbs:pythia, pythia) was shown /w/.env (read, line 2)"
    ]


# What nobody can tell


def test_a_role_of_pythia_that_no_session_has_cannot_be_told(team: Path) -> None:
    write_session(team / "s.jsonl", "s1", (CHAT, "x"))
    taken(team, "s.jsonl")
    policy(team, "roles:\n  - role: pythia\n    folder: /ww\n")
    code, one = told(team)
    assert (code, one["verdict"]) == (3, "cannot tell")
    assert one["reason"] == "the role pythia is given to no session here (folder /ww)"


def test_a_call_that_hides_what_it_read_cannot_be_told(team: Path) -> None:
    subagent(team, LOG)
    use = {"type": "tool_use", "id": "o", "name": "Bash", "input": {"command": "python x.py"}}
    result = {"type": "tool_result", "tool_use_id": "o", "content": "done"}
    more = [
        {"type": "assistant", "message": {"role": "assistant", "content": [use]}},
        {"type": "user", "message": {"role": "user", "content": [result]}},
    ]
    with (team / "p/subagents/agent-a1.jsonl").open("a") as file:
        file.writelines(
            json.dumps({"sessionId": "p", **BASE, **SUBAGENT} | one) + "\n" for one in more
        )
    taken(team, "p.jsonl")
    code, one = told(team)
    assert (code, one["verdict"]) == (3, "cannot tell")
    assert "session p, subagent a1 (pythia):4: " in one["reason"]


def test_a_session_that_is_gone_shows_a_breach_by_its_entries_alone(team: Path) -> None:
    subagent(team, LOG)
    (team / "p/subagents/agent-a1.jsonl").unlink()
    code, one = told(team)
    assert (code, one["verdict"]) == (3, "cannot tell")
    assert "the file is gone" in one["reason"]
    subagent(team, (CHAT, "x"))
    (team / "p/subagents/agent-a1.jsonl").unlink()
    code, one = told(team)
    assert (code, one["verdict"], len(one["findings"])) == (1, "cannot tell", 1)


def test_a_finding_that_is_accepted_leaves_untold_what_is_untold(team: Path) -> None:
    subagent(team, (CHAT, "x"), ("/w/.nbs/chat/*", "x"))
    assert told(team)[0] == 1
    reason = ("--reason", "known", "--as", "ann")
    assert run(team, "accept", "--check", "pythia-isolation", *reason).code == 0
    code, one = told(team)
    assert (code, one["verdict"]) == (3, "cannot tell")


def test_a_message_that_was_erased_cannot_be_compared(team: Path) -> None:
    done = run(team, "redact", "--match", "broken index", "--reason", "x", "--as", "ann")
    assert done.code == 0, done.err
    subagent(team, LOG)
    code, one = told(team)
    assert (code, one["verdict"]) == (3, "cannot tell")
    assert "1 message was erased, and cannot be compared" in one["reason"]


def test_an_assessment_from_outside_is_bound_to_no_session(team: Path) -> None:
    subagent(team, ("/w/answer.md", ASSESSMENT))
    assert run(team, "chat", "send", "live", "pythia", ASSESSMENT).code == 0
    one = told(team)[1]
    assert (one["verdict"], one["findings"]) == ("cannot tell", [])  # its own words are its own
    assert "nothing says which session of Pythia they are from" in one["reason"]


# Runs of ours


@pytest.mark.parametrize("level", ["namespace", "folder"])
def test_the_imported_session_of_a_run_counts_beside_the_run(tmp_path: Path, level: str) -> None:
    """In a namespace a path of the chat is no file of the team; its words are words of the chat."""
    root = Path(build(str(tmp_path)))
    with Team(root) as opened:
        chat.send(opened, "live", "alex", SAID)
    review(root, level=level, session="s")
    before = told(root.parent)[1]
    write_session(root.parent / "s.jsonl", "s", LOG)
    taken(root.parent, "s.jsonl")
    after = told(root.parent)[1]
    assert after["findings"] == before["findings"] == []
    assert after["verdict"] == ("clean, except" if level == "namespace" else "cannot tell")
    write_session(root.parent / "s.jsonl", "s", LOG, (CHAT, "x"), ("/w/.nbs/chat/*", "x"))
    taken(root.parent, "s.jsonl")
    after = told(root.parent)[1]
    (found,) = after["findings"]
    assert ("session s" in after.get("reason", "")) is (level == "folder")
    assert found["severity"] == ("warning" if level == "namespace" else "failure")
    write_session(root.parent / "s.jsonl", "s", LOG, ("/w/a", SAID))
    taken(root.parent, "s.jsonl")
    assert "failure" in {found["severity"] for found in told(root.parent)[1]["findings"]}
