"""Answers and texts that do not say what they are: an error, a denial, colours, a wrapper."""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from doors.inside import run
from recorded_sessions import judged
from session_specimens import CALLS, STARTS, claude_user

from tripod.ledger import MalformedError
from tripod.ledger.words import words_of_text
from tripod.verify.anchors.policy import parse
from tripod.verify.isolation.globs import NeverRule
from tripod.verify.isolation.phrases import ProtectedText
from tripod.verify.sessions.exposure import (
    SessionExposures,
    judge_exposures,
)
from tripod.verify.sessions.items import Call, Gap, Given, SessionRecord
from tripod.verify.sessions.readers import READERS, read_session

KEY = "PASSWORD=correct-horse-battery-staple\n"


def _call(tool: str, asked: object, answer: object, *, is_error: bool = False) -> list[Any]:
    use = {"type": "tool_use", "id": "t", "name": tool, "input": asked}
    result = {"type": "tool_result", "tool_use_id": "t", "content": answer, "is_error": is_error}
    call = claude_user("x") | {"type": "assistant", "message": {"content": [use]}}
    return [call, claude_user([result])]


def _write(folder: Path, *records: dict[str, Any]) -> Path:
    path = folder / "a.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in (claude_user("hi"), *records)))
    return path


def _told(folder: Path, *records: dict[str, Any], protect: dict[str, str] | None = None) -> str:
    return judged(_write(folder, *records), never=".env*", protect=protect)[0].told


def _exposure(folder: Path, *more: str) -> tuple[int, str]:
    done = run(folder, "exposure", *more, "a.jsonl")
    return done.code, done.out.decode() + done.err


def test_without_a_rule_only_protected_text_is_judged(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/key").write_text(KEY)
    _write(tmp_path, *_call("Read", {"file_path": "/w/a"}, "one line"))
    code, out = _exposure(tmp_path, "--protect", "secret/key")
    assert (code, "shown /w/a (read" in out, "clean (" in out) == (0, True, True)
    _write(tmp_path, *_call("Read", {"file_path": "/w/a"}, KEY))
    code, out = _exposure(tmp_path, "--protect", "secret/key")
    assert (code, "shown key (read" in out, "1 exposures" in out) == (1, True, True)
    _write(tmp_path, *_call("Read", {"file_path": "/w/key"}, KEY))
    assert _exposure(tmp_path, "--protect", "secret/key")[0] == 1
    _write(tmp_path, *_call("Bash", {"command": "cat *.md"}, "x"))
    assert _exposure(tmp_path, "--protect", "secret/key")[0] == 0
    _write(tmp_path, *_call("Bash", {"command": "base64 key"}, "UEFTU1dPUkQ9Y29y"))
    assert _exposure(tmp_path, "--protect", "secret/key")[0] == 3


READ = "Read", {"file_path": "/w/.env"}
CAT = "Bash", {"command": "cat .env"}
EDIT = "Edit", {"file_path": "/w/.env"}
SERVER = "mcp__x__read", {"path": "/w/.env"}
NUMBERED = "\n".join(f"{number}\tsome line" for number in range(9))


@pytest.mark.parametrize(
    ("call", "text", "told"),
    [
        (READ, "File does not exist.", "clean"),
        (READ, "<tool_use_error>File does not exist. Did you mean a.env?\nx</tool_use_error>",
         "clean"),
        (READ, "EISDIR: illegal operation on a directory, read", "clean"),
        (READ, "File content (31337 tokens) exceeds maximum allowed tokens (25000).", "clean"),
        (EDIT, "String to replace not found in file.\nString: x", "clean"),
        (SERVER, "<tool_use_error>Error: No such tool available: mcp__x__read</tool_use_error>",
         "clean"),
        (READ, "File does not exist. Note: your current working directory is /w.", "clean"),
        (READ, "ENOENT: no such file or directory, open '/w/.env'", "clean"),
        (READ, "Claude requested permissions to read from /w/.env, but you haven't granted it yet.",
         "clean"),
        (READ, "Error: File not found: /w/.env\n\nDid you mean one of these?\n/w/.envrc", "clean"),
        (READ, "The path /w/.env does not exist. Please provide a valid path.\nfailure", "clean"),
        (READ, "[Operation Cancelled] Reason: User denied execution.", "clean"),
        (EDIT, "apply_patch verification failed: Failed to find expected lines in /w/.env:\nx",
         "clean"),
        (READ, "The read tool was called with invalid arguments: [\n].\nPlease rewrite the input",
         "clean"),
        (READ, "Tool execution denied by policy.", "clean"),
        (READ, KEY, "cannot tell"),
        (EDIT, KEY, "cannot tell"),
        (READ, "the tokens must not be shown to anybody", "cannot tell"),
        (READ, f"# what to do if it failed\n{KEY}", "cannot tell"),
        (READ, f"error: it cannot be\n{KEY}", "cannot tell"),
        (READ, f"File does not exist.\n{KEY}", "cannot tell"),
        (READ, f"File not found: a\n\nDid you mean one of these?\n/w/a\n{KEY}", "cannot tell"),
        (READ, f"error\n{NUMBERED}", "cannot tell"),
        (SERVER, f"<tool_use_error>{KEY}", "cannot tell"),
        (READ, f"<tool_use_error>no</tool_use_error>\n{KEY}", "cannot tell"),
        (READ, f"<tool_use_error>no</tool_use_error>\n{KEY}</tool_use_error>", "cannot tell"),
        (SERVER, f"<tool_use_error>Error: No such tool available: x</tool_use_error>\n{KEY}",
         "cannot tell"),
        (READ, f"PreToolUse:Read hook error: no\n{KEY}", "cannot tell"),
        (READ, f"Permission to read /w/.env has been denied.\n{KEY}", "cannot tell"),
    ],
)  # fmt: skip
def test_an_answer_that_failed_is_an_error_only_by_its_words(
    tmp_path: Path, call: tuple[str, object], text: str, told: str
) -> None:
    assert _told(tmp_path, *_call(*call, text, is_error=True)) == told


@pytest.mark.parametrize(
    ("call", "text", "told"),
    [
        (READ, "The user doesn't want to proceed with this tool use.\nThey said:\nno", "clean"),
        (READ, "Permission to read /w/.env has been denied.", "clean"),
        (CAT, "PreToolUse:Bash hook error: [x]: that is\nno business of yours", "clean"),
        (READ, "Permission denied and could not request permission from user\ndenied", "clean"),
        (READ, "Denied by preToolUse hook: no", "clean"),
        (READ, "the key is correct horse battery", "cannot tell"),
        (READ, KEY, "cannot tell"),
        (CAT, KEY, "cannot tell"),
        (READ, NUMBERED, "cannot tell"),
        (READ, f"<tool_use_error>no</tool_use_error>\n{KEY}", "cannot tell"),
        (READ, f"Permission to read /w/.env has been denied.\n{KEY}", "cannot tell"),
        (READ, f"The user doesn't want to.\n{KEY}\n{KEY}", "cannot tell"),
        (CAT, f"PreToolUse:Bash hook error: no\n{KEY}", "cannot tell"),
        (CAT, f"PreToolUse:Bash hook error: [x]: no\n{NUMBERED}", "cannot tell"),
        (CAT, f"not that\n{KEY}", "cannot tell"),
        (
            ("Bash", {"command": "cat \\\n.env"}),
            "Permission to use Bash with command cat \\\n.env has been denied.",
            "clean",
        ),
    ],
)
def test_a_denial_is_one_only_by_its_words(
    tmp_path: Path, call: tuple[str, object], text: str, told: str
) -> None:
    asks, answer = _call(*call, text, is_error=True)
    assert _told(tmp_path, asks, answer | {"toolDenialKind": "user-rejected"}) == told


BY_HOOK = {"decision": "reject", "source": "hook", "reasonType": "hook"}


@pytest.mark.parametrize(
    ("decision", "text", "told"),
    [
        (BY_HOOK, "use the skill for secrets instead", "clean"),
        (BY_HOOK, KEY, "cannot tell"),
        (BY_HOOK, f"use the skill for secrets\n{KEY}", "cannot tell"),
        (BY_HOOK, "use the skill for " + "x" * 2_000, "cannot tell"),
        ({"decision": "reject", "source": "config"}, "use the skill for secrets instead",
         "cannot tell"),
        ({"decision": "accept"}, "File does not exist.", "clean"),
        ({"decision": "accept"}, "<tool_use_error>Path is denied.</tool_use_error>", "clean"),
        ({"decision": "accept"}, "Permission to read /w/.env has been denied.", "cannot tell"),
        ({"decision": "accept"}, "PreToolUse:Read hook error: no", "cannot tell"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", [{}, {"toolDenialKind": "permission-rule"}])
def test_the_words_of_a_hook_count_where_the_record_says_that_it_denied(
    tmp_path: Path, decision: dict[str, str], text: str, told: str, kind: dict[str, str]
) -> None:
    asks, answer = _call(*READ, text, is_error=True)
    assert _told(tmp_path, asks, answer | {"permissionDecision": decision} | kind) == told


@pytest.mark.parametrize("denied", [{}, {"toolDenialKind": "user-rejected"}])
@pytest.mark.parametrize("call", [READ, CAT, EDIT, SERVER])
def test_the_text_of_an_error_is_searched(
    tmp_path: Path, call: tuple[str, object], denied: dict[str, str]
) -> None:
    """Also where its words say that nothing was read."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/key").write_text(KEY)
    for text in (f"Permission to read it has been denied: {KEY}", f"no\n{KEY}"):
        asks, answer = _call(*call, text, is_error=True)
        _write(tmp_path, asks, answer | denied)
        assert _exposure(tmp_path, "--protect", "secret/key")[0] == 1


@pytest.mark.parametrize("tool", ["exec_command", "mcp__x__read", "exec"])
def test_a_call_that_ran_was_not_denied(tool: str) -> None:
    """A server, or a script, may print what the program says of a call that a hook denied."""
    said = "Command blocked by PreToolUse hook: no"
    asks, answer = CALLS["codex"](tool, {"cmd": "cat chat/a.md"}, said)
    run = {"type": "CommandExecution", "id": "c", "command": ["cat", "chat/a.md"], "cwd": "/w",
           "aggregated_output": "x"}  # fmt: skip
    ran = {"timestamp": "t", "type": "event_msg",
           "payload": {"type": "item_completed", "item": run}}  # fmt: skip
    for records, told in (([asks, answer], "cannot tell" if tool.startswith("mcp") else "clean"),
                          ([asks, ran, answer], "findings")):  # fmt: skip
        one = SessionExposures(NeverRule(["chat/**"]), ProtectedText())
        numbered = enumerate([*STARTS["codex"], *records], 1)
        for item in read_session(READERS["codex"](), (SessionRecord(n, 0, r) for n, r in numbered)):
            one.add(item)
        one.end()
        assert judge_exposures([one], Counter()).told == told


def test_a_call_that_printed_something_is_not_denied_by_its_answer() -> None:
    asked = Call("c", "Bash", {}, 1, "shell", command="cat .env", cwd="/w")
    denial = Given("shell", 3, 0, "Permission to do it has been denied.", call="c", denied=True)
    for ran, told in (((), "clean"), ((asked._replace(ran=True, output="x"),), "cannot tell")):
        one = SessionExposures(NeverRule([".env"]), ProtectedText())
        for item in (asked, *ran, denial):
            one.add(item)
        assert judge_exposures([one], Counter()).told == told


@pytest.mark.parametrize(
    "text",
    [
        "\x1b[01;31m\x1b[KPASSWORD\x1b[m\x1b[K=correct-horse-battery-staple",
        "\x1b[32m12\x1b[m\x1b[36m:\x1b[m\x1b[31mPASSWORD=correct-horse-battery-\x1b[0mstaple",
        "\x1b]8;;file:///w/a\x1b\\PASSWORD\x1b]8;;\x1b\\=correct-horse-battery-staple",
        "\x1b]8;;PASSWORD=correct-horse-battery-staple\x07a link\x1b]8;;\x07",
        "\x1b]0;PASSWORD=correct-horse-battery-staple\x07",
    ],
)
def test_colours_hide_no_text(tmp_path: Path, text: str) -> None:
    call = _call("Bash", {"command": "ls"}, text)
    assert _told(tmp_path, *call, protect={"key": KEY}) == "findings"
    assert _told(tmp_path, *_call("Bash", {"command": "ls"}, KEY), protect={"key": text})


def test_coloured_text_has_the_words_of_plain_text(tmp_path: Path) -> None:
    assert words_of_text("a\x1b[1mb\x1b[0m \x1b(Bc \x1b[38;5;9md") == ["ab", "c", "d"]
    search = _call("Bash", {"command": "sh x.sh | grep -rn K ."}, "")
    listed = "\x1b[35m\x1b[K./.env\x1b[m\x1b[K\x1b[36m:\x1b[m1\x1b[36m:\x1b[mK=1"
    search = _call("Grep", {"pattern": "K", "path": "/w"}, listed)
    assert _told(tmp_path, *search) == "findings"


def _verdict(program: str, never: str, *calls: tuple[str, object], answer: str = "one line") -> str:
    """What the calls of a session of a program come to; each has the same answer."""
    records = [*STARTS[program]]
    for number, call in enumerate(calls):
        made = json.dumps(CALLS[program](*call, answer))
        records += json.loads(made.replace('"c"', f'"c{number}"').replace('"m1"', f'"m{number}"'))
    one = SessionExposures(NeverRule([never]), ProtectedText(), "", frozenset(("home",)))
    numbered = (SessionRecord(number, 0, each) for number, each in enumerate(records, 1))
    for item in read_session(READERS[program](), numbered):
        one.add(item)
    one.end()
    return judge_exposures([one], Counter()).told


@pytest.mark.parametrize(
    ("program", "tool", "field"),
    [
        ("gemini", "run_shell_command", "dir_path"),
        ("gemini", "run_shell_command", "directory"),
    ],
)
@pytest.mark.parametrize("never", ["chat/**", "/w/chat/a.md"])
def test_a_command_runs_in_the_folder_that_its_call_names(
    program: str, tool: str, field: str, never: str
) -> None:
    command = {"command": "cat a.md"}
    assert _verdict(program, never, (tool, command)) == "clean"
    for place in ("chat", "/w/chat", "./src/../chat"):
        assert _verdict(program, never, (tool, {**command, field: place})) == "findings"


def test_a_shell_of_copilot_may_still_be_where_a_command_before_went() -> None:
    cat = "bash", {"command": "cat a.md"}
    assert _verdict("copilot", "chat/**", cat) == "clean"
    for move in ("cd chat", "cd /w/chat && ls", "mkdir x; pushd 'chat'", "cd /tmp; cd /w/chat"):
        assert _verdict("copilot", "chat/**", ("bash", {"command": move}), cat) == "cannot tell"
    assert _verdict("copilot", "chat/**", ("bash", {"command": "cd src && ls"}), cat) == "clean"
    assert _verdict("copilot", "a.md", ("bash", {"command": "cd src"}), cat) == "findings"


@pytest.mark.parametrize(
    "never",
    [
        "C:\\w\\.env", "w\\.env", "\\w\\.env", "secrets\\**", "secrets\\*.env", "a\\", "\\\\h\\a",
        "/", ".", "..", "./", "a/..", "../w/.env", "/..", "!.env", " .env", ".env ", ".env\n",
        ".e\x07nv", "file:///w/.env", "https://x/.env", "", "$HOME/.ssh/**", "${HOME}/.ssh",
        "$HOME", "%USERPROFILE%/.ssh", "~ann/.ssh/**", ".env|.pem", "*.{pem|key}", "@(a|b)",
        ".env,.pem", ".env, .pem", "*.pem;*.key", "secrets/**,chat/**", ".env,id_rsa", "a,/b",
        "{.env", "*.{pem,key", "key}",

        ".env,*.pem", ".env, *.pem", ".env *.pem", ".env;.key", "*.pem|*.key", "'.env*'", '"a"',
        ".env\u200b", "\u202a.env", "^.env", "*.pem$", "[.env", "a/{b,c", "*.pem}", "[[.env",
    ],
)  # fmt: skip
def test_a_glob_that_can_fit_nothing_is_refused_in_words(tmp_path: Path, never: str) -> None:
    _write(tmp_path)
    for option in ("--never", "--except"):
        code, out = _exposure(tmp_path, "--never", "a", option, never)
        assert (code, "cannot be used: it " in out) == (2, True)
    text = f"never:\n  - paths: [{json.dumps(never or ' ')}]\n"
    with pytest.raises(MalformedError, match=r"it |nothing"):
        parse(text.encode())


@pytest.mark.parametrize("never", ["a\\?b", "[.]env", "{a,b}", "C:/w/a", "~/.env", "a b", "a/../b",
    "$id.ts", "a/$X/b", "~$a.docx", "100%", "~x", "a[|]b", ".env[,].pem", "*.{pem,.key,**}", "*,v",
    ".bashrc,v", "Doe, J.pdf", "[{]a", "{{a}}/b",
    "[[]x", "[]]x", "[{]x", "{a,{b,c}}.md",
    "a, b.txt", "*.{pem,key}", "My Notes/a b.md", "it's", "R&D;2/*.md", "*.pem[,]v", "a(1).md",
    "[!a]b c"])  # fmt: skip
def test_a_glob_that_can_fit_something_is_taken(tmp_path: Path, never: str) -> None:
    _write(tmp_path)
    assert _exposure(tmp_path, "--never", never)[0] == 0
    assert parse(f"never:\n  - paths: [{json.dumps(never)}]\n".encode()).never[0].paths == (never,)


@pytest.mark.parametrize(
    ("never", "but", "is_nothing"),
    [
        ([".env"], ["**"], True),
        ([".env"], ["*"], True),
        (["/w/.env", "*.{pem,key}"], ["**/*"], True),
        ([".env*", "chat/**"], [".env*", "chat"], True),
        (["chat/**"], ["chat/*"], True),
        (["*.key"], ["*"], True),
        (["/w/*.key"], ["/w/**"], True),
        (["*.[kp]ey"], ["*.key", "*.pey"], True),
        ([".env*", "*.pem"], [".env*"], False),
        ([".env*"], [".env.*"], False),
        ([".env"], ["/w/**"], False),
        ([".env"], ["*/*"], False),
        (["chat"], ["chat/**"], False),
        (["chat/**"], ["chat/*.md"], False),
        (["*.key"], ["?*.key"], False),
        (["?.key"], ["a.key"], False),
        (["**"], ["a/**", "*.md"], False),
        (["a"], ["[a]"], False),
    ],
)
def test_exceptions_that_leave_nothing_are_refused(
    tmp_path: Path, never: list[str], but: list[str], is_nothing: bool
) -> None:
    _write(tmp_path)
    words = [word for glob in never for word in ("--never", glob)]
    words += [word for glob in but for word in ("--except", glob)]
    code, out = _exposure(tmp_path, *words)
    assert (code == 2, "leaves nothing of --never" in out) == (is_nothing, is_nothing)
    text = f"never:\n  - paths: {json.dumps(never)}\n    except: {json.dumps(but)}\n".encode()
    if is_nothing:
        with pytest.raises(MalformedError, match="line 2: never: the exceptions of a rule leave"):
            parse(text)
    else:
        assert parse(text).never[0].except_ == tuple(but)


@pytest.mark.parametrize(
    ("never", "path", "told"),
    [
        ("C:/w/.env", ".env::$DATA", "cannot tell"),
        ("C:/w/.env", "C:\\w\\.env.", "cannot tell"),
        ("C:/w/.env", "C:\\w\\.env ", "cannot tell"),
        ("secrets/a", "C:\\w\\secrets.\\a", "cannot tell"),
        ("c:/w/secrets/a", "C:\\w\\secrets.\\a", "cannot tell"),
        ("C:/w/.env", "/mnt/c/w/.env", "cannot tell"),
        ("C:/w", "/cygdrive/c/w/a/.env", "cannot tell"),
        ("C:/w/.env", "/c/w/.env", "cannot tell"),
        ("/mnt/c/w/**", "C:\\w\\.env", "cannot tell"),
        ("/c/w/.env", "C:/w/.env", "cannot tell"),
        ("C:/w/.env", "/mnt/d/w/.env", "clean"),
        ("C:/w/.env", "C:\\w\\.env.md", "clean"),
        ("/c/w/.env", "/c/w/.env.", "clean"),
    ],
)
def test_a_path_of_windows_has_many_forms(never: str, path: str, told: str) -> None:
    one = SessionExposures(NeverRule([never]), ProtectedText())
    one.add(Call("c", "Read", {}, 1, "read", (path,), cwd="C:\\w"))
    one.add(Given("read", 2, 0, "x", call="c"))
    one.end()
    assert judge_exposures([one], Counter()).told == told


@pytest.mark.parametrize("text", ["", "K=1\nL=2\n", "\0\1\2"])
def test_a_file_in_which_nothing_can_be_searched_is_named(tmp_path: Path, text: str) -> None:
    _write(tmp_path)
    (tmp_path / "secret").mkdir()
    assert _exposure(tmp_path, "--protect", "secret")[0] == 3
    (tmp_path / "secret/key").write_text(text)
    for path in ("secret/key", "secret"):
        code, out = _exposure(tmp_path, "--protect", path)
        assert (code, f"{path} has no 12 words" in out) == (3, True)
    (tmp_path / "secret/another").write_text(KEY)
    assert _exposure(tmp_path, "--protect", "secret")[0] == 0


@pytest.mark.parametrize(
    ("call", "text", "told"),
    [
        (("Bash", {"command": "cp .env x"}), "", 3),
        (("Bash", {"command": "cat .env > /tmp/x"}), " \n", 3),
        (("Edit", {"file_path": "/w/.env"}), f"updated:\n{KEY}", 3),
        (("Edit", {"file_path": "/w/.env"}), "The file /w/.env has been updated.", 0),
        (("Edit", {"file_path": "/w/.env"}), "Success. Updated the following files:\nM .env\n", 0),
        (("Edit", {"file_path": "/w/.env"}), "Done:\n   12\u2192x = 1\n", 1),
        (("Bash", {"command": "cat .env"}), "K=1", 1),
    ],
)
def test_text_that_went_elsewhere_may_have_been_shown_later(
    tmp_path: Path, call: tuple[str, object], text: str, told: int
) -> None:
    _write(tmp_path, *_call(*call, text))
    assert _exposure(tmp_path, "--never", ".env*", "--shown")[0] == told
    assert _exposure(tmp_path, "--never", ".env*")[0] == 1


@pytest.mark.parametrize(
    ("program", "tool", "field", "answer"),
    [
        ("claude-code", "Write", "file_path", "File created successfully at: /w/.env"),
        ("gemini", "write_file", "file_path", "Successfully created and wrote to new file: .env."),
        ("copilot", "create", "path", "Created file /w/.env with 3 characters"),
    ],
)
def test_a_file_that_a_call_made_was_not_read(
    program: str, tool: str, field: str, answer: str
) -> None:
    call = tool, {field: "/w/.env", "content": "A=1"}
    assert _verdict(program, ".env", call, answer=answer) == "clean"
    assert _verdict(program, ".env", call, answer="The file was updated") == "findings"
    assert _verdict(program, ".env", call, answer=f"{answer}\n1\tA=1") == "findings"


SELECTION = "<ide_selection>The user selected the lines 1 to 2 from /w/{}:\nK=1\n</ide_selection>"
MENTION = (
    '<system-reminder>\nCalled the Read tool with the following input: {{"file_path":"/w/{}"}}\n'
    "</system-reminder>"
)
NOTICE = "<system-reminder>\nNote: /w/{} was modified, either by the user or by a linter.\n1\tK=1"
CONTENTS = "<system-reminder>\n# claudeMd\nContents of /w/{} (project instructions):\n\nK=1"


@pytest.mark.parametrize("text", [SELECTION, MENTION, NOTICE, CONTENTS, "Contents of /w/{}:\n\nK"])
def test_a_file_that_the_program_names_in_a_text_is_not_passed_over(
    tmp_path: Path, text: str
) -> None:
    for wrap in (str, lambda one: [{"type": "text", "text": one}]):
        assert _told(tmp_path, claude_user(wrap(text.format("a.py")))) == "clean"
        assert _told(tmp_path, claude_user(wrap(text.format(".env")))) == "cannot tell"
        told = _told(tmp_path, claude_user(wrap(text.format(".env")), isMeta=True))
        assert told == "findings"
    if "<system-reminder>" in text:
        answer = f"x = 1\n{text.format('.env')}"
        assert _told(tmp_path, *_call("Read", {"file_path": "/w/a"}, answer)) == "cannot tell"


@pytest.mark.parametrize(
    "text",
    [
        "<bash-input>cat x</bash-input><bash-stdout>K=1</bash-stdout>",
        " <bash-stdout>K=1</bash-stdout><bash-stderr></bash-stderr>",
        "<command-name>/x</command-name><local-command-stdout>K=1</local-command-stdout>",
        "<local-command-caveat>x</local-command-caveat><local-command-stdout>K=1",
        "<task-notification><task-id>a1</task-id><result>K=1</result></task-notification>",
        "This session is being continued from a previous conversation that ran out of context. K",
    ],
)
def test_a_text_of_the_program_that_may_be_of_any_file_is_no_persons(
    tmp_path: Path, text: str
) -> None:
    assert _told(tmp_path, claude_user(text)) == "cannot tell"
    assert _told(tmp_path, claude_user(text), protect={"key": KEY}) == "clean"


@pytest.mark.parametrize(
    "text",
    [
        "<bash-input>ls</bash-input>",
        "<bash-stdout></bash-stdout><bash-stderr></bash-stderr>",
        "<command-name>/clear</command-name><local-command-stdout></local-command-stdout>",
        "what is <bash-stdout>x</bash-stdout> for?",
    ],
)
def test_a_wrapper_with_nothing_in_it_hides_nothing(tmp_path: Path, text: str) -> None:
    assert _told(tmp_path, claude_user(text)) == "clean"


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("file:///w/.env", "findings"),
        ("file:///w/%2Eenv", "findings"),
        ("file:///w/a", "clean"),
        ("http://localhost:8000/.env", "cannot tell"),
        ("see http://127.0.0.1/x", "cannot tell"),
        ("https://me@[::1]:80/x", "cannot tell"),
        ("https://example.org/localhost/.env", "clean"),
    ],
)
@pytest.mark.parametrize(
    ("program", "tool"), [("claude-code", "WebFetch"), ("gemini", "web_fetch")]
)
def test_a_page_of_this_machine_may_be_a_file(program: str, tool: str, url: str, told: str) -> None:
    assert _verdict(program, ".env", (tool, {"prompt": url})) == told


def test_the_output_of_what_another_session_began_cannot_be_told(tmp_path: Path) -> None:
    begun = "Command running in background with ID: b1. Output is being written to: /tmp/x"
    start = json.loads(json.dumps(_call("Bash", {"command": "ls"}, begun)).replace('"t"', '"b"'))
    agent = _call("Agent", {"prompt": "x"}, "Async agent launched successfully.\nagentId: b1 (x)")
    for tool, asked in (
        ("TaskOutput", {"task_id": "b1"}),
        ("BashOutput", {"bash_id": "b1"}),
        ("Read", {"file_path": "/w/tasks/b1.output"}),
        ("Bash", {"command": "tail /w/tasks/b1.output"}),
    ):
        assert _told(tmp_path, *start, *_call(tool, asked, "K=1")) == "clean"
        assert _told(tmp_path, *_call(tool, asked, "K=1")) == "cannot tell"
    path = _write(tmp_path, *agent, *_call("TaskOutput", {"task_id": "b1"}, "K=1"))
    assert not any("the call that began" in one for one in judged(path, never=".env*")[0].untold)


def test_what_a_skill_answers_may_be_of_any_file(tmp_path: Path) -> None:
    call = _call("Skill", {"skill": "x"}, "K=1")
    assert _told(tmp_path, *call) == "cannot tell"
    assert _told(tmp_path, *call, protect={"key": KEY}) == "clean"
    failed = _call("Skill", {"skill": "x"}, "Unknown skill: x", is_error=True)
    assert _told(tmp_path, *failed) == "clean"


@pytest.mark.parametrize(
    ("change", "is_second"),
    [({}, False), ({"output": "b"}, True), ({"output": "b", "input": {"filePath": "y"}}, False),
     ({"output": "b", "time": {"start": 2}}, False)],
)  # fmt: skip
def test_a_second_answer_to_a_call_of_opencode_is_a_gap(
    change: dict[str, Any], is_second: bool
) -> None:
    """Ids may be one word for all calls: another input, or another time, is another call."""
    state = {"status": "completed", "input": {"filePath": "x"}, "output": "a", "time": {"start": 1}}
    parts = [
        {"type": "tool", "id": "REDACTED", "callID": "c", "tool": "read", "state": one}
        for one in (state, state | change)
    ]
    record = SessionRecord(1, 0, {"info": {"id": "m", "role": "assistant"}, "parts": parts})
    gaps = [item for item in READERS["opencode"]().read(record) if isinstance(item, Gap)]
    assert [gap.cause for gap in gaps] == ["unknown"] * is_second


@pytest.mark.parametrize(
    ("never", "path", "told"),
    [
        ("/a.env", "/w/a.env", "cannot tell"),
        ("/a.env", "a.env", "cannot tell"),
        ("/secrets/**", "secrets/x/key", "cannot tell"),
        ("/a.env", "/w/src/a.env", "clean"),
        ("/a.env", "/w/b.env", "clean"),
        ("/a.env", "/a.env", "findings"),
        ("/w/a.env", "/w/w/a.env", "cannot tell"),
        ("/w/a.env", "/w/a.env", "findings"),
        ("/v/**", "/w/a.env", "clean"),
    ],
)
def test_a_whole_path_that_was_meant_from_the_project_on_is_not_clean(
    never: str, path: str, told: str
) -> None:
    """In other tools a glob that begins with a slash begins in the project (``.gitignore``)."""
    assert _verdict("claude-code", never, ("Read", {"file_path": path})) == told


@pytest.mark.parametrize(
    ("never", "path", "told"),
    [
        ("a/**", "REDACTED", "cannot tell"),
        ("a/**", "/w/a/REDACTED", "findings"),
        ("/etc/a", "REDACTED", "cannot tell"),
        (".env", "/w/a/[REDACTED_PATH]", "cannot tell"),
        (".env", "/w/a/REDACTED", "cannot tell"),
        (".env", "/w/REDACTED/.env", "findings"),
        (".env", "/w/REDACTED/b.py", "clean"),
        ("a/**", "/w/b/redacted.md", "clean"),
    ],
)
def test_a_name_that_was_taken_out_of_a_record_may_be_any(never: str, path: str, told: str) -> None:
    assert _verdict("claude-code", never, ("Read", {"file_path": path})) == told
    if told != "findings":
        assert _verdict("claude-code", never, ("Bash", {"command": f"cat '{path}'"})) == told


@pytest.mark.parametrize("text", ["REDACTED", "[REDACTED: 40 lines]", "<hidden>\n", "***"])
def test_an_answer_that_was_taken_out_of_a_record_cannot_be_told(tmp_path: Path, text: str) -> None:
    _write(tmp_path, *_call("Read", {"file_path": "/w/a"}, text))
    code, out = _exposure(tmp_path, "--never", ".env")
    assert (code, "a.jsonl:3: a text that was taken out of the record" in out) == (3, True)
    _write(tmp_path, *_call("Read", {"file_path": "/w/a"}, f"the key is {text} here"))
    assert _exposure(tmp_path, "--never", ".env")[0] == 0


def test_a_glob_that_needs_the_extra_is_no_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "wcmatch", None)
    _write(tmp_path)
    code, out = _exposure(tmp_path, "--never", "[.]env")
    assert (code, "need the extra `sessions`" in out) == (2, True)
