"""The rules of a team on its sessions: which session a rule is about, and what it comes to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from doors.inside import run
from recorded_sessions import BASE
from recorded_sessions import write_session as session

from tripod.ledger.errors import MalformedError
from tripod.verify.anchors.configuration import parse_configuration
from tripod.verify.anchors.policy import Rules, parse, stricter_rules
from tripod.verify.evidence import collect
from tripod.verify.recorded import evidence
from tripod.verify.recorded.files import read_copies
from tripod.verify.run import verify


@pytest.fixture
def team(tmp_path: Path) -> Path:
    assert run(tmp_path, "init").code == 0
    return tmp_path


def policy(team: Path, text: str) -> None:
    (team / ".nbs/policy.yaml").write_text(text)


def told(team: Path) -> tuple[int, dict[str, Any]]:
    """The exit code, and what never-read says."""
    done = run(team, "verify", "--json")
    report = json.loads(done.out)
    return done.code, next(one for one in report["checks"] if one["check"] == "never-read")


def test_without_a_rule_there_is_nothing_to_judge(team: Path) -> None:
    session(team / "s.jsonl", "s", ("/w/.env", "KEY=1"))
    assert run(team, "import", "s.jsonl", "--as", "ann").code == 0
    assert told(team)[1]["verdict"] == "not applicable"


@pytest.mark.parametrize(
    "text",
    [
        "never:\n  - path: [.env]\n",
        "Never:\n  - paths: [.env]\n",
        "never:\n  - paths: [.env]\n    grade: Shown\n",
    ],
)
def test_a_policy_that_is_not_understood_is_not_passed_over(team: Path, text: str) -> None:
    session(team / "s.jsonl", "s", ("/w/.env", "KEY=1"))
    assert run(team, "import", "s.jsonl", "--as", "ann").code == 0
    policy(team, text)
    done = run(team, "verify", "--select", "never-read")
    assert (done.code, b"policy.yaml is not understood" in done.out) == (3, True)
    policy(team, "never:\n  - paths: [.env]\n")
    (team / "tripod.toml").write_text(f"[policy]\n{text.partition(':')[0]} = 1\n")
    assert "tripod.toml is not understood" in told(team)[1]["reason"]


def test_a_rule_without_a_session_cannot_be_told(team: Path) -> None:
    policy(team, "never:\n  - paths: [.env]\n")
    code, one = told(team)
    assert (code, one["verdict"]) == (3, "cannot tell")
    assert "about no session" in one["reason"]


def test_a_session_that_kept_the_rule_is_clean_except_for_its_custody(team: Path) -> None:
    session(team / "s.jsonl", "s", ("/w/a.py", "x = 1"))
    run(team, "import", "s.jsonl", "--as", "ann")
    policy(team, "never:\n  - paths: [.env]\n")
    code, one = told(team)
    assert (code, one["verdict"]) == (0, "clean, except")
    assert "found on disk" in one["exceptions"][0]
    policy(team, "never:\n  - paths: [.env]\nexceptions: cannot-tell\n")
    assert told(team)[0] == 3


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ("paths: [.env]", True),
        ("paths: ['*.py']", False),
        ("paths: [.env]\n    except: [/w/.env]", False),
        ("paths: [.env]\n    session: t*", False),
        ("paths: [.env]\n    session: s", True),
        ("paths: [.env]\n    folder: /w", True),
        ("paths: [.env]\n    folder: /elsewhere/*", False),
        ("paths: [.env]\n    since: 999", False),
        ("paths: [.env]\n    role: reviewer", False),
        ("paths: [.env]\n    grade: shown", True),
    ],
)
def test_a_rule_is_about_the_sessions_that_it_fits(team: Path, rule: str, found: bool) -> None:
    session(team / "s.jsonl", "s", ("/w/.env", "KEY=1"))
    run(team, "import", "s.jsonl", "--as", "ann")
    policy(team, f"never:\n  - {rule}\n")
    code, one = told(team)
    assert (one["verdict"] == "findings") is found
    assert (code == 1) is found


def test_a_subagent_is_bound_by_its_type_and_by_the_session_that_started_it(team: Path) -> None:
    session(team / "p.jsonl", "p", ("/w/a.py", "x"))
    (team / "p/subagents").mkdir(parents=True)
    inner = team / "p/subagents/agent-a1.jsonl"
    more = {"agentId": "a1", "isSidechain": True, "attributionAgent": "reviewer"}
    session(inner, "p", ("/w/.env", "KEY=1"), **more)
    assert run(team, "import", "p.jsonl", "--as", "ann").code == 0
    for rule in ("role: reviewer", "session: p"):
        policy(team, f"never:\n  - paths: [.env]\n    {rule}\n")
        code, one = told(team)
        assert code == 1
        assert "subagent a1 (reviewer) was shown /w/.env" in one["findings"][0]["message"]
        assert one["coverage"]["judged"] == 1 + (rule == "session: p")


def test_text_of_a_forbidden_file_counts_whatever_file_it_came_from(team: Path) -> None:
    secret = "the quick brown fox jumps over the lazy dog and then it sleeps well"
    (team / "answers.txt").write_text(f"{secret}\n")
    session(team / "s.jsonl", "s", ("/w/notes.md", f"somebody wrote: {secret}"))
    run(team, "import", "s.jsonl", "--as", "ann")
    policy(team, "never:\n  - paths: [answers.txt]\n")
    code, one = told(team)
    assert code == 1
    assert "answers.txt" in one["findings"][0]["message"]


def test_words_of_a_chat_whose_file_is_forbidden_count(team: Path) -> None:
    said = "we agreed to move the whole release to friday because of the broken index"
    assert run(team, "chat", "create", "live").code == 0
    assert run(team, "chat", "send", "live", "ann", said).code == 0
    session(team / "s.jsonl", "s", ("/w/notes.md", f"1\t{said}"))
    run(team, "import", "s.jsonl", "--as", "ann")
    policy(team, "never:\n  - paths: ['*.chat']\n")
    code, one = told(team)
    assert code == 1
    assert "live.chat" in one["findings"][0]["message"]
    policy(team, "never:\n  - paths: [other.chat]\n")
    assert told(team)[1]["verdict"] == "clean, except"


def test_words_that_a_log_which_may_be_read_quotes_do_not_count(team: Path) -> None:
    said = "we agreed to move the whole release to friday because of the broken index"
    run(team, "chat", "create", "live")
    run(team, "chat", "send", "live", "ann", said)
    assert run(team, "scribe", "log", "Move it", "-p", "ann", "-r", said, "--ref", "#0").code == 0
    early, late = {"timestamp": "2026-11-20T10:00:00Z"}, {"timestamp": "2200-11-20T10:00:00Z"}
    session(team / "s.jsonl", "s", ("/w/log.md", f"- rationale: {said}"), **late)
    session(team / "t.jsonl", "t", ("/w/log.md", f"- rationale: {said}"), **early)
    policy(team, "never:\n  - paths: ['*.chat']\n")
    run(team, "import", "s.jsonl", "--as", "ann")
    assert told(team)[1]["verdict"] == "clean, except"
    run(team, "import", "t.jsonl", "--as", "ann")  # it ended before the decision was logged
    assert [one["message"][:10] for one in told(team)[1]["findings"]] == ["session t "]
    policy(team, "never:\n  - paths: ['*.chat', '**/scribe/log.md']\n")
    assert told(team)[1]["verdict"] == "findings"


def test_a_session_that_is_gone_can_show_a_breach_and_is_never_clean(team: Path) -> None:
    session(team / "s.jsonl", "s", ("/w/.env", "KEY=1"))
    session(team / "t.jsonl", "t", ("/w/a.py", "x"))
    run(team, "import", "s.jsonl", "t.jsonl", "--as", "ann")
    policy(team, "never:\n  - paths: [.env]\n")
    (team / "t.jsonl").unlink()
    code, one = told(team)
    assert (code, one["verdict"], len(one["findings"])) == (1, "cannot tell", 1)
    (team / "s.jsonl").unlink()
    code, one = told(team)
    assert (code, one["findings"][0]["where"]) == (1, "entry 2")
    policy(team, "never:\n  - paths: [.netrc]\n")
    code, one = told(team)
    assert (code, one["verdict"]) == (3, "cannot tell")
    assert "the file is gone" in one["reason"]


def test_a_file_that_was_changed_since_is_not_what_was_imported(team: Path) -> None:
    session(team / "s.jsonl", "s", ("/w/.env", "KEY=1"))
    run(team, "import", "s.jsonl", "--as", "ann")
    policy(team, "never:\n  - paths: [.netrc]\n")
    session(team / "s.jsonl", "s", ("/w/a", "KEY=1"))
    code, one = told(team)
    assert (code, one["verdict"]) == (1, "cannot tell")  # 1: `sessions-whole` names it
    assert "not what it was" in one["reason"]


def test_a_clone_without_the_sessions_cannot_tell(team: Path, tmp_path: Path) -> None:
    session(team / "s.jsonl", "s", ("/w/a.py", "x"))
    run(team, "import", "--keep", "s.jsonl", "--as", "ann")
    policy(team, "never:\n  - paths: [.env]\n")
    (team / "s.jsonl").unlink()
    assert told(team)[1]["verdict"] == "clean, except"
    for path in (tmp_path / ".nbs/evidence").rglob("*"):
        if path.is_file():
            path.write_bytes(b"?")
    assert told(team)[1]["verdict"] == "cannot tell"


def test_a_role_that_no_session_has_is_said(team: Path) -> None:
    session(team / "s.jsonl", "s", ("/w/a.py", "x = 1"))
    run(team, "import", "s.jsonl", "--as", "ann")
    text = "never:\n  - paths: [.env]\nroles:\n  - role: reviewer\n    folder: "
    for folder, is_said in (("/ww", True), ("/w", False)):
        policy(team, f"{text}{folder}\n")
        one = told(team)[1]
        words = f"the role reviewer is given to no session here (folder {folder})"
        assert (one["verdict"], words in one["exceptions"]) == ("clean, except", is_said)


def parse_project(data: bytes) -> Rules:
    """The policy in a ``tripod.toml``."""
    said = parse_configuration("tripod.toml", data)
    assert said is not None
    return said.policy


def test_the_stricter_of_two_policies_has_the_rules_of_both() -> None:
    one = parse(b"never:\n  - paths: [a]\n")
    two = parse_project(b'[[policy.never]]\npaths = ["b"]\nrole = "rev"\n')
    both = stricter_rules(one, two)
    assert [rule.paths for rule in both.never] == [("a",), ("b",)]
    three = parse_project(b'[[policy.roles]]\nrole = "rev"\nfolder = "/srv/*"\n')
    assert stricter_rules(stricter_rules(both, three), three).roles == three.roles != ()
    assert stricter_rules(both, one) == both


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("never:\n  - role: x\n", "line 2: never.paths: the key is missing"),
        ("never: x\n", "line 1: never: the value is not a list of rules"),
        ("never:\n  - paths: [a]\n    exept: b\n", "did you mean except?"),
        ("never:\n  - paths: []\n", "line 2: never.paths: the value names nothing"),
        ("never:\n  - paths: [a]\n    grade: seen\n", "the value is not opened or shown"),
        ("never:\n  - paths: [a]\n    since: x\n", "never.since"),
        ("roles:\n  - folder: /w\n", "line 2: roles.role: the key is missing"),
        ("roles: pythia\n", "line 1: roles: the value is not a list of roles"),
    ],
)
def test_a_rule_that_is_not_understood_names_line_and_key(text: str, says: str) -> None:
    with pytest.raises(MalformedError) as error:
        parse(text.encode())
    assert says in str(error.value)


# What an outsider found ----------------------------------------------------------------------


def test_a_session_is_read_once_for_all_rules(team: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session(team / "s.jsonl", "s", ("/w/.env", "KEY=1"))
    session(team / "t.jsonl", "t", ("/w/a.py", "x = 1"))
    run(team, "import", "s.jsonl", "t.jsonl", "--as", "ann")
    policy(team, "never:\n  - paths: [.env]\n  - paths: [a.py]\n  - paths: [b]\n    session: t\n")
    read = Mock(wraps=read_copies)
    digested = Mock(wraps=evidence.file_digest)
    monkeypatch.setattr(evidence, "read_copies", read)
    monkeypatch.setattr(evidence, "file_digest", digested)
    one, _ = verify(team, select={"never-read", "sessions-whole"}).outcomes
    assert {found.message.partition(" (")[0] for found in one.findings} == {
        "session s was shown /w/.env",
        "session t was shown /w/a.py",
    }
    assert (one.coverage["judged"], one.coverage["read again"]) == (2, 5)
    assert [Path(each.args[0]).name for each in read.call_args_list] == ["s.jsonl", "t.jsonl"]
    assert not digested.called  # `sessions-whole` takes what was read for whole


def test_the_project_is_looked_at_once(team: Path) -> None:
    with collect(str(team)) as opened:
        assert opened.sessions is opened.sessions


ACCEPT = ("accept", "--check", "never-read", "--reason", "known", "--as", "ann")


def test_an_accepted_finding_leaves_untold_what_is_untold(team: Path) -> None:
    session(team / "r.jsonl", "r", ("/w/.env", "KEY=1"))
    opaque = {"type": "tool_use", "id": "p", "name": "Bash", "input": {"command": "python x.py"}}
    said = [
        {"type": "user", "message": {"role": "user", "content": "go"}},
        {"type": "assistant", "message": {"role": "assistant", "content": [opaque]}},
        {"type": "user", "message": {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "p", "content": "done"}]}},
    ]  # fmt: skip
    (team / "p.jsonl").write_text(
        "".join(json.dumps({"sessionId": "p", **BASE, **one}) + "\n" for one in said)
    )
    run(team, "import", "r.jsonl", "p.jsonl", "--as", "ann")
    policy(team, "never:\n  - paths: [.env]\n")
    assert told(team)[0] == 1
    assert (
        run(team, "accept", "--check", "never-read", "--reason", "known", "--as", "ann").code == 0
    )
    code, one = told(team)
    assert (code, one["verdict"]) == (3, "cannot tell")


def test_a_finding_keeps_its_id_when_the_session_goes_on(team: Path) -> None:
    session(team / "s.jsonl", "s", ("/w/.env", "KEY=1"))
    run(team, "import", "s.jsonl", "--as", "ann")
    policy(team, "never:\n  - paths: [.env]\n")
    assert (
        run(team, "accept", "--check", "never-read", "--reason", "known", "--as", "ann").code == 0
    )
    session(team / "s.jsonl", "s", ("/w/.env", "KEY=1"), ("/w/a", "x"))
    run(team, "import", "s.jsonl", "--as", "ann")
    assert told(team)[0] == 0
    session(team / "s.jsonl", "s", ("/w/.env", "KEY=1"), ("/w/a", "x"), ("/w/.env", "KEY=1"))
    run(team, "import", "s.jsonl", "--as", "ann")
    assert told(team)[0] == 1  # it read it again


def test_a_session_that_went_on_is_named(team: Path) -> None:
    session(team / "s.jsonl", "s", ("/w/a", "x"))
    run(team, "import", "s.jsonl", "--as", "ann")
    policy(team, "never:\n  - paths: [.env]\n")
    session(team / "s.jsonl", "s", ("/w/a", "x"), ("/w/.env", "KEY=1"))
    code, one = told(team)
    assert (code, one["verdict"]) == (0, "clean, except")
    assert "1 session went on after the import: import it again" in one["exceptions"]
    run(team, "import", "s.jsonl", "--as", "ann")
    assert told(team)[0] == 1


def test_a_redacted_session_stays_bound_by_its_folder(team: Path) -> None:
    session(team / "s.jsonl", "s", ("/w/.env", "KEY=1"))
    session(team / "t.jsonl", "t", ("/w/a", "x"))
    run(team, "import", "s.jsonl", "t.jsonl", "--as", "ann")
    policy(team, "never:\n  - paths: [.env]\n    folder: /w/**\n")
    assert told(team)[0] == 1
    assert run(team, "redact", "2", "--reason", "secrets", "--as", "ann").code == 0
    code, one = told(team)
    assert (code, one["coverage"]["judged"]) == (1, 2)
    assert "it was erased" in one["reason"]
    again = run(team, "import", "--keep", "s.jsonl", "--as", "ann")
    assert b"already" in again.out
    assert not (team / ".nbs/evidence").exists()


@pytest.mark.parametrize("folder", ["/w", "/w/", "/w/**", "/?"])
def test_the_folder_is_that_in_which_the_session_began(team: Path, folder: str) -> None:
    first = {"type": "permission-mode", "sessionId": "s"}
    session(team / "s.jsonl", "x", ("/w/.env", "KEY=1"))
    lines = [json.loads(line) for line in (team / "s.jsonl").read_text().splitlines()]
    lines[-1] |= {"version": "2.1.210"}
    lines += [lines[0] | {"version": "2.1.210", "cwd": "/elsewhere"}]
    lines = [first, *(line | {"sessionId": "s"} for line in lines)]
    (team / "s.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    session(team / "t.jsonl", "t", ("/w/a", "x"))
    run(team, "import", "s.jsonl", "t.jsonl", "--as", "ann")
    policy(team, f"never:\n  - paths: [.env]\n    folder: {folder!r}\n")
    assert told(team)[0] == 1


def test_what_sort_a_subagent_is_may_stand_behind_its_first_records_or_beside(team: Path) -> None:
    (team / "p/subagents").mkdir(parents=True)
    session(team / "p.jsonl", "p", ("/w/a", "x"))
    for name in ("a1", "a2"):
        inner = team / f"p/subagents/agent-{name}.jsonl"
        session(inner, "p", ("/w/.env", "KEY=1"), agentId=name, isSidechain=True)
    lines = (team / "p/subagents/agent-a1.jsonl").read_text().splitlines()
    last = json.loads(lines[-1]) | {"attributionAgent": "reviewer"}
    (team / "p/subagents/agent-a1.jsonl").write_text("\n".join([*lines[:-1], json.dumps(last), ""]))
    (team / "p/subagents/agent-a2.meta.json").write_text('{"agentType": "reviewer"}')
    run(team, "import", "p.jsonl", "--as", "ann")
    policy(team, "never:\n  - paths: [.env]\n    role: rev*\n")
    assert len(told(team)[1]["findings"]) == 2


def test_lines_that_other_files_have_as_well_do_not_count(team: Path) -> None:
    common = "from __future__ import annotations"
    (team / "hidden").mkdir()
    (team / "hidden/test_a.py").write_text(f"{common}\nassert answer_of_everything() == 42\n")
    (team / "a.py").write_text(f"{common}\nprint(1)\n")
    session(team / "s.jsonl", "s", ("/w/a.py", f"1\t{common}\n2\tprint(1)"))
    session(team / "t.jsonl", "t", ("/w/b.py", "1\tassert answer_of_everything() == 42"))
    policy(team, "never:\n  - paths: ['hidden/**']\n")
    run(team, "import", "s.jsonl", "--as", "ann")
    assert told(team)[0] == 0
    run(team, "import", "t.jsonl", "--as", "ann")
    assert told(team)[0] == 1


def test_what_lies_behind_a_link_is_protected_and_what_was_kept_is_not(
    team: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "shared"
    elsewhere.write_text("PASSWORD=correct-horse-battery-staple\n")
    (team / ".env").symlink_to(elsewhere)
    session(team / "s.jsonl", "s", ("/w/notes", "PASSWORD=correct-horse-battery-staple"))
    run(team, "import", "--keep", "s.jsonl", "--as", "ann")
    policy(team, "never:\n  - paths: [.env]\n")
    assert told(team)[0] == 1
    policy(team, "never:\n  - paths: ['.nbs/**']\n")
    assert told(team)[0] == 0
