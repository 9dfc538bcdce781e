"""Rules, and real transcripts with one thing planted in each: it is named with its line."""

import doctest
import fnmatch
import json
import posixpath
import re
import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded_sessions import judged, recorded
from wcmatch import glob

from tripod.ledger.errors import MissingExtraError
from tripod.ledger.words import RUN
from tripod.ledger.words import words_of_text as words_of
from tripod.verify.isolation import batch, children, globs, phrases, refusals
from tripod.verify.isolation.globs import NeverRule, _meet
from tripod.verify.isolation.phrases import ProtectedText
from tripod.verify.isolation.reasons import Exposure
from tripod.verify.recorded.files import read_session_file
from tripod.verify.sessions import codex, exposure, items, jsonl, shell
from tripod.verify.sessions.exposure import (
    SessionExposures,
    judge_exposures,
)
from tripod.verify.sessions.items import Call, Gap, GapList, Given, Session

SECRET = (
    "ann: we ship the seventh release on friday, unless bob finds another fault in it\nshort one\n"
)
LINE = SECRET.splitlines()[0]
NAMES = st.lists(
    st.sampled_from(["a", "b", "ab", "*", "a*", "?", "**", ".env", "*.md"]), min_size=1
)
PATHS = st.lists(st.sampled_from(["a", "b", "ab", ".env", "x.md"]), min_size=1, max_size=4)


@given(one=NAMES, other=NAMES, path=PATHS)
def test_two_patterns_meet_wherever_one_path_fits_both(
    one: list[str], other: list[str], path: list[str]
) -> None:
    flags = glob.GLOBSTAR | glob.DOTGLOB | glob.FORCEUNIX
    patterns = ["/" + "/".join(parts) for parts in (one, other)]
    if all(glob.globmatch("/" + "/".join(path), pattern, flags=flags) for pattern in patterns):
        assert _meet(*patterns)


@given(
    never=st.lists(NAMES.map("/".join), min_size=1, max_size=3),
    path=PATHS.map("/".join),
)
def test_a_path_is_hit_where_the_library_says_so(never: list[str], path: str) -> None:
    """A path without the plain part of any glob is not looked at further."""
    never = [*never, "a{b,c}/x[.]md"]
    flags = glob.GLOBSTAR | glob.DOTGLOB | glob.BRACE | glob.FORCEUNIX
    anywhere = [f"/**/{posixpath.normpath(one)}" for one in never]
    patterns = [*anywhere, *(f"{one}/**" for one in anywhere)]
    rule = NeverRule(never)
    assert rule.hits(path) == glob.globmatch(f"/{path}", patterns, flags=flags)
    if rule.hits(path):
        assert rule.may_hit(path, ["/w"], recursive=False)


NUMBERED = re.compile(r"^(?:[^\s:]+:)?[ \t]*[0-9]+[\t:|\u2192-]", re.MULTILINE)
PIECES = st.lists(
    st.sampled_from(
        [
            "one",
            "two",
            "three",
            "marmalade",
            " ",
            " ",
            " ",
            "\n",
            "\n",
            "12\t",
            "  7\u2192",
            "a.md:3:",
            "4-",
        ]
    ),
    max_size=80,
).map("".join)


@settings(max_examples=300, deadline=None)
@given(protected=PIECES, text=PIECES, at=st.integers(0, 200))
def test_protected_text_is_found_where_a_naive_reading_finds_it(
    protected: str, text: str, at: int
) -> None:
    """With and without the numbers of lines, which a program puts before them."""
    held = ProtectedText()
    held.add("a.md", protected)
    text += protected[at:]
    lines = [
        "".join(
            "".join(run) if sign.isalnum() or sign == "_" else sign for sign, run in groupby(one)
        )
        for one in protected.splitlines()
    ]
    wanted = [words_of(line) for line in lines if len(line.strip()) >= phrases.LONG]
    wanted = [line for line in wanted if 0 < len(line) < RUN]
    words = words_of(protected)
    wanted += [words[n : n + RUN] for n in range(len(words) - RUN + 1)]
    forms = [f" {' '.join(words_of(one))} " for one in (text, NUMBERED.sub("", text))]
    expected = any(f" {' '.join(one)} " in form for one in wanted for form in forms)
    assert list(held.found_in(text)) == (["a.md"] if expected else [])


@given(never=st.lists(NAMES, min_size=1, max_size=3), path=PATHS, whole=st.booleans())
def test_a_simple_glob_fits_what_it_fits_for_the_library(
    never: list[list[str]], path: list[str], whole: bool
) -> None:
    """Such globs are compared without the library, which may not be installed."""
    named = "/" + "/".join(path)
    patterns = ["/" * whole + "/".join(parts) for parts in never]
    anywhere = [each if whole else f"/**/{each}" for each in patterns]
    flags = glob.GLOBSTAR | glob.DOTGLOB | glob.FORCEUNIX
    fits = glob.globmatch(named, [*anywhere, *(f"{each}/**" for each in anywhere)], flags=flags)
    assert NeverRule(patterns).hits(named) is fits


@pytest.mark.parametrize("pattern", ["*.{pem,key}", "[a-c].md", "a\\*"])
def test_other_globs_need_the_extra(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wcmatch", None)
    assert NeverRule([".env*"]).hits("/w/.env")
    with pytest.raises(MissingExtraError, match="need the extra `sessions`"):
        NeverRule([pattern]).hits("/w/a.key")


@pytest.mark.parametrize(
    ("never", "path", "hit"),
    [
        ("chat/**", "/w/chat/a.md", True),
        ("chat/**", "/w/other/chat/deep/a.md", True),
        ("chat/**", "/w/chatter/a.md", False),
        (".env*", "/w/sub/.env.local", True),
        (".env*", "/w/env", False),
        ("/w/secret", "/w/secret", True),
        ("/w/secret", "/v/w/secret", False),
        ("*.{pem,key}", "/w/a.key", True),
        (".env*", "~/.env", True),
    ],
)
def test_a_glob_is_of_a_name_of_an_end_or_of_a_whole_path(never: str, path: str, hit: bool) -> None:
    assert NeverRule([never]).hits(path) is hit


def test_a_command_that_is_given_as_words_is_read_as_its_words() -> None:
    called = {"command": ["bash", "-lc", "cat chat/a.md"]}
    item = {"type": "function_call", "name": "shell", "arguments": json.dumps(called)}
    record = {"type": "response_item", "payload": item}
    (call,) = codex.Codex().read(items.SessionRecord(1, 0, record))
    assert isinstance(call, Call)
    (opened,) = batch.opened_by_call(call).opened
    assert (opened.path, opened.sure) == ("chat/a.md", True)


@pytest.mark.parametrize("command", ["cat .env.example", "cat .env.example .env"])
def test_what_is_excepted_may_be_read_and_its_neighbour_may_not(command: str) -> None:
    one = SessionExposures(NeverRule([".env*"], ["*.example"]), ProtectedText())
    one.add(Call("c", "Bash", {}, 1, "shell", command=command, cwd="/w"))
    one.add(Given("shell", 2, 0, "KEY=1", call="c", named="/w/.env.example"))
    one.end()
    assert [(each.path, each.sure) for each in one.found] == [("/w/.env", True)] * (
        " .env " in f"{command} "
    )


@pytest.mark.parametrize(
    "module", [children, globs, items, jsonl, phrases, refusals, shell], ids=str
)
def test_the_examples_of_the_docstrings_hold(module: ModuleType) -> None:
    done = doctest.testmod(module)
    assert (done.failed, bool(done.attempted)) == (0, True)


# Planted ----------------------------------------------------------------------------------------

CLAUDE = "transcripts/claude-2.1.209-ohmyposh-with-file-attachment.jsonl"
PLACE = "/home/dev/p/chat/a.md"
CODEX = "transcripts/codex-0.14x-agentv-small.jsonl"
USER = {"type": "user", "sessionId": "s"}
START = USER | {
    "version": "2.1.209",
    "cwd": "/home/dev/p",
    "agentId": "a1",
    "message": {"role": "user", "content": "look"},
}


def _claude_call(
    tool: str, asked: dict[str, Any], answer: str, **more: Any
) -> list[dict[str, Any]]:
    """A call and its answer as Claude Code writes them."""
    common = {"sessionId": "s", "version": "2.1.209", "cwd": "/home/dev/p", "isSidechain": False}
    use = {"type": "tool_use", "id": "toolu_planted", "name": tool, "input": asked}
    result = {"type": "tool_result", "tool_use_id": "toolu_planted", "content": answer}
    message = {"role": "assistant", "content": [use]}
    return [
        common | {"type": "assistant", "message": message} | more,
        common | {"type": "user", "message": {"role": "user", "content": [result]}} | more,
    ]


def _attached(kind: str, **fields: Any) -> list[dict[str, Any]]:
    attachment = {"type": kind, **fields}
    return [
        {"type": "attachment", "sessionId": "s", "cwd": "/home/dev/p", "attachment": attachment}
    ]


def _bash(command: str, answer: str = LINE, **more: Any) -> list[dict[str, Any]]:
    return _claude_call("Bash", {"command": command}, answer, **more)


def _nested() -> list[dict[str, Any]]:
    inner = _claude_call("Read", {"file_path": "/home/dev/p/chat/a.md"}, LINE)
    return [
        {"type": "progress", "sessionId": "s", "data": {"type": "agent_progress", "agentId": "a1",
         "message": {"type": one["type"], "message": one["message"]}}}
        for one in inner
    ]  # fmt: skip


def _code_mode(answer: str) -> list[dict[str, Any]]:
    run = {"type": "CommandExecution", "id": "exec-1", "command": ["bash", "-lc", "cat chat/a.md"],
           "cwd": "file:///home/dev/p", "aggregated_output": SECRET, "exit_code": 0}  # fmt: skip
    call = {"type": "custom_tool_call", "call_id": "c", "name": "exec", "input": "text(1)"}
    done = {"type": "custom_tool_call_output", "call_id": "c", "output": answer}
    return [
        {"timestamp": "t", "type": "response_item", "payload": call},
        {"timestamp": "t", "type": "event_msg", "payload": {"type": "item_completed", "item": run}},
        {"timestamp": "t", "type": "response_item", "payload": done},
    ]


class Planted(NamedTuple):
    """Records to put into a real transcript, and what is to be said of them.

    ``after`` is how many lines after the first of them the exposure is: it stands where the path is
    named, or else where the text is. Not ``sure``: nobody knows whether the model was given it.
    """

    records: list[dict[str, Any]]
    after: int
    channel: str
    sure: bool = True
    shown: bool = True
    into: str = CLAUDE


PLANTED = {
    "read": Planted(_claude_call("Read", {"file_path": PLACE}, f"1\t{LINE}"), 0, "read"),
    "pasted": Planted([USER | {"message": {"role": "user", "content": LINE}}], 0, "paste"),
    "git show": Planted(_bash("git show HEAD:chat/a.md"), 0, "shell"),
    "recursive grep": Planted(_bash("grep -rn friday .", f"./chat/a.md:1:{LINE}"), 1, "shell"),
    "subagent": Planted(_nested(), 0, "read"),
    "symbolic link": Planted(
        _claude_call("Read", {"file_path": "/home/dev/p/src/link.md"}, f"1\t{LINE}"), 1, "read"
    ),
    "built path": Planted(_bash("python3 -c \"print(open('ch'+'at/a.md').read())\""), 1, "shell"),
    "cd, then a relative path": Planted(_bash("cd chat && cat a.md"), 0, "shell"),
    "cd in a call before": Planted(_bash("cat a.md", cwd="/home/dev/p/chat"), 0, "shell"),
    "heredoc into python": Planted(
        _bash("python3 <<'E'\nprint(open('chat/a.md').read())\nE"), 1, "shell"
    ),
    "tar": Planted(_bash("tar -cO chat", f"chat/a.md\0\0{LINE}\n\0\0"), 0, "shell"),
    "background": Planted(
        _attached("queued_command", prompt=f"<task-notification>{LINE}"), 0, "background"
    ),
    "edited file": Planted(
        _attached("edited_text_file", filename=PLACE, snippet=LINE), 0, "notice"
    ),
    "hook": Planted(_attached("hook_additional_context", content=[LINE], hookName="x"), 0, "hook"),
    "import of instructions": Planted(
        _attached("instructions", files=[{"path": PLACE, "content": LINE}]), 0, "instructions"
    ),
    "mention": Planted(
        _attached("file", filename=PLACE, content={"file": {"content": LINE}}), 0, "mention"
    ),
    "summary": Planted(
        [USER | {"isCompactSummary": True, "message": {"content": f"They said: {LINE}"}}],
        0,
        "summary",
    ),
    "mcp": Planted(_claude_call("mcp__x__get", {"uri": "notes://all"}, LINE), 1, "mcp"),
    "rendered": Planted(
        [_attached("date", date="x")[0] | {"rendered": [{"content": LINE}]}], 0, "system"
    ),
    "unknown record": Planted(
        [{"type": "brand-new", "sessionId": "s", "deep": [{"text": LINE}]}],
        0,
        "unknown",
        sure=False,
    ),
    "unknown field": Planted(
        [USER | {"brandNew": LINE, "message": {"content": "hi"}}], 0, "unknown", sure=False
    ),
    "unknown attachment": Planted(_attached("brand_new", words=LINE), 0, "unknown", sure=False),
    "code mode, shown": Planted(_code_mode(f"Output:\n{LINE}\n"), 1, "shell", into=CODEX),
    "code mode, not shown": Planted(_code_mode("Output:\n82"), 1, "shell", shown=False, into=CODEX),
}


def _plant(tmp_path: Path, name: str, records: list[dict[str, Any]]) -> tuple[Path, range]:
    """A copy of a real transcript with records in its middle, and the lines of these."""
    lines = (recorded() / name).read_bytes().splitlines(keepends=True)
    at = len(lines) // 2
    planted = [json.dumps(one).encode() + b"\n" for one in records]
    path = tmp_path / "planted.jsonl"
    path.write_bytes(b"".join([*lines[:at], *planted, *lines[at:]]))
    return path, range(at + 1, at + 1 + len(planted))


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_planted_in_a_real_transcript_is_named_with_its_line(
    tmp_path: Path, name: str
) -> None:
    one = PLANTED[name]
    path, lines = _plant(tmp_path, one.into, one.records)
    before, (whole,) = judged(recorded() / one.into, protect={"chat/a.md": SECRET})
    verdict, (found,) = judged(path, protect={"chat/a.md": SECRET})
    assert before.told == "cannot tell"
    assert verdict.told == ("findings" if one.sure else "cannot tell")
    moved = [each._replace(line=each.line + len(lines) * (each.line >= lines[0]))
             for each in whole.found]  # fmt: skip
    assert moved == [each for each in found.found if each.line not in lines]
    new = [each for each in found.found if each.line == lines[one.after]]
    assert (one.channel, one.sure, one.shown) in {(e.channel, e.sure, e.shown) for e in new}
    place = f"{path}:{lines[one.after]}: "
    assert any(reason.startswith(place) for reason in verdict.reasons)


def test_what_is_planted_in_the_file_of_a_subagent_is_named_with_its_line(tmp_path: Path) -> None:
    started = _claude_call("Agent", {"prompt": "look"}, "It is done.")
    started[1]["toolUseResult"] = {"status": "completed", "agentId": "a1"}
    path, lines = _plant(tmp_path, CLAUDE, started)
    assert any(f":{lines[1]}: the session of subagent a1" in why for why in judged(path)[0].reasons)
    read = _claude_call("Read", {"file_path": PLACE}, LINE, agentId="a1", isSidechain=True)
    inner = tmp_path / "agent-a1.jsonl"
    inner.write_text("".join(json.dumps(one) + "\n" for one in (START, *read)))
    verdict, (main, agent) = judged(path, inner)
    assert verdict.reasons == [f"{inner}:2: {PLACE} was shown (read)"]
    assert [(each.line, each.agent) for each in agent.found] == [(2, "a1")]
    assert main.tree.whole == set()
    assert agent.tree.whole == {(START["sessionId"], "a1")}


@pytest.mark.parametrize("text", ["YW5uOiB3ZSBzaGlwIHRoZSBzZXZlbnRo", "The release is on Friday."])
def test_what_is_encoded_or_told_in_other_words_is_out_of_reach_and_not_clean(
    tmp_path: Path, text: str
) -> None:
    path, lines = _plant(tmp_path, CLAUDE, _bash("python3 encode.py", text))
    verdict, (one,) = judged(path, protect={"chat/a.md": SECRET})
    assert verdict.told == "cannot tell"
    assert not [each for each in one.found if each.line in lines]
    assert any(f":{lines[0]}: the program python3 may open any file" in r for r in verdict.reasons)


PUBLIC = (CLAUDE, CODEX, "transcripts/claude-2.1.33-entire-small.jsonl")


@cache
def _foreign() -> tuple[dict[str, str], ProtectedText]:
    """Text of this project, which no transcript has: 100 of its modules and pages.

    Those about sessions have words of the programs that wrote them.
    """
    root = Path(__file__).parents[3]
    paths = [path for folder in ("docs", "verify", "ledger") for path in (root / folder).rglob("*")]
    paths = [path for path in paths if "sessions" not in str(path.relative_to(root))]
    files = sorted(path for path in paths if path.suffix in (".md", ".py"))[:: len(paths) // 100]
    texts = {str(path.relative_to(root)): path.read_text() for path in files}
    protected = ProtectedText()
    for name, text in texts.items():
        protected.add(name, text)
    return texts, protected


def _by_content(path: Path, never: str) -> set[tuple[int, str | None]]:
    one = SessionExposures(NeverRule([never]), _foreign()[1])
    read_session_file(str(path), one.add)
    return {(each.line, each.named) for each in one.found if each.path is None}


def test_a_ruler_makes_no_line_of_a_word() -> None:
    protected = ProtectedText()
    protected.add("a.py", "# Setup " + "-" * 60 + "\n| name          | value |\n")
    assert not protected.is_searchable
    assert not list(protected.found_in("Setup: it has a name, a value"))
    protected.add("b.py", "# Setup of the whole machine " + "-" * 60)
    assert list(protected.found_in("> # setup of the whole machine ---")) == ["b.py"]


@pytest.mark.parametrize("never", ["*.go", "**/*.sh", ".git/hooks/*", "settings.json", "*.png"])
def test_of_text_that_is_not_there_nothing_is_found_by_content(never: str) -> None:
    assert len(_foreign()[0]) > 50
    for name in PUBLIC:
        assert _by_content(recorded() / name, never) == set()


def test_the_search_that_finds_nothing_there_finds_what_is_planted(tmp_path: Path) -> None:
    for number, (name, text) in enumerate(_foreign()[0].items()):
        line = max(text.splitlines(), key=lambda line: len(words_of(line)))
        if len(words_of(line)) < RUN or number % 5:
            continue
        into = PUBLIC[number % 3]
        turn: dict[str, Any] = USER | {"message": {"content": f"> {line}"}}
        if into == CODEX:
            part = {"type": "input_text", "text": f"{line} --"}
            said = {"type": "message", "role": "user", "content": [part]}
            turn = {"timestamp": "t", "type": "response_item", "payload": said}
        path, lines = _plant(tmp_path, into, [turn])
        found = {one for at, one in _by_content(path, "*.go") if at == lines[0]}
        assert any(line in _foreign()[0][str(one)] for one in found), (into, name, line)


def _named(value: dict[str, Any]) -> str:
    """What a record names: inputs of calls, files beside a prompt, files of a search or a skill."""
    payload, attached = value.get("payload", {}), value.get("attachment", {})
    content = value.get("message", {}).get("content")
    blocks = content if isinstance(content, list) else []
    asked = [block.get("input") for block in blocks] + [payload.get("arguments")]
    files = [attached.get("filename"), attached.get("path")]
    files += [file["path"] for file in attached.get("files", [])]
    answers = [block.get("content") for block in blocks if block["type"] == "tool_result"]
    listed = re.findall(r"^([^:\n]+):\d+:", "\n".join(map(str, answers)), re.MULTILINE)
    texts = [str(block.get("text")) for block in blocks]
    skills = [f"{text.splitlines()[0]}/SKILL.md" for text in texts if text.startswith("Base dir")]
    agents = re.findall(r"# (AGENTS\.md) instructions for", json.dumps(payload.get("content")))
    return json.dumps([asked, files, listed, skills, agents])


@pytest.mark.parametrize(
    ("never", "count"),
    [("*.md", 3), ("*_test.go", 7), (".gitignore", 1), ("post-*", 2), ("prepare-*", 1),
     (".env*", 0), ("*.png", 0)],
)  # fmt: skip
def test_findings_by_path_are_those_of_an_independent_count(never: str, count: int) -> None:
    found = 0
    for name in PUBLIC:
        values = [json.loads(line) for line in (recorded() / name).read_bytes().splitlines()]
        lines = {n for n, value in enumerate(values, 1)
                 if fnmatch.filter(re.split(r"[\s\"'\\/]+", _named(value)), never)}  # fmt: skip
        _, (one,) = judged(recorded() / name, never=never)
        assert {each.line for each in one.found if each.sure} == lines
        found += len(lines)
    assert found == count


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("chat/a.md:3:friday", True),
        ("./chat/a.md:friday", True),
        ("D:\\w\\chat\\a.md:3:friday", True),
        ("Found 1 match\n---\nFile: chat/a.md\nL3: friday", True),
        ("Found 1 matches\n/w/chat/a.md:\n  Line 3: friday", True),
        ("chat/a.md\n3:friday", True),
        ("Found 1 file\nchat/a.md", False),
        ("chat/a.md:3", False),
        ('src/x.py:1:open("chat/a.md")', None),
        ("src/x.md:1:see chat/a.md: it says all", None),
        ("?? chat/a.md", None),
        ("x" * 100 + "." * 100_000, None),
    ],
)
def test_an_answer_shows_the_files_that_it_lists_and_not_those_that_a_line_names(
    answer: str, *, shown: bool | None
) -> None:
    one = SessionExposures(NeverRule(["chat/**"]), ProtectedText())
    one.add(Call("c", "Grep", {}, 1, "search", paths=(".",), recursive=True, cwd="/w"))
    one.add(Given("search", 2, 0, answer, call="c"))
    one.end()
    found = [each.shown for each in one.found if each.sure]
    assert found == ([] if shown is None else [shown])
    assert [each.line for each in one.found if not each.sure] == [1]  # the search may have read it


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("chat/a.md:3:friday", True),
        ("Output: chat/a.md:3:friday", True),
        ("HEAD~2:chat/a.md:friday", True),
        ("chat/a.md:3", True),
        ("--- a/chat/a.md\n+++ b/chat/a.md\n-friday", True),
        ("diff -r old/chat/a.md chat/a.md\n1c1\n< friday", True),
        ("chat/a.md", False),
        (" M chat/a.md", False),
    ],
)
def test_of_a_command_only_lines_behind_a_name_are_of_that_file(
    answer: str, *, shown: bool
) -> None:
    one = SessionExposures(NeverRule(["chat/**"]), ProtectedText())
    one.add(Call("c", "Bash", {}, 1, "shell", command="git status; grep -rn friday .", cwd="/w"))
    one.add(Given("shell", 2, 0, answer, call="c"))
    one.end()
    assert [each.shown for each in one.found if each.sure] == [True] * shown


def _kinds(found: list[Exposure], test: Callable[[Exposure], bool]) -> int:
    return sum(map(test, found))


def test_an_answer_that_never_came_leaves_it_untold_unless_it_is_the_last(tmp_path: Path) -> None:
    start = {"type": "user", "sessionId": "s", "version": "2.1.209", "cwd": "/w",
             "message": {"role": "user", "content": "go"}}  # fmt: skip
    asked, answered = _claude_call("Read", {"file_path": "/w/src/a"}, "x", cwd="/w")
    path = tmp_path / "a.jsonl"

    def told(*records: dict[str, Any]) -> str:
        path.write_text("".join(json.dumps(one) + "\n" for one in (start, *records)))
        return judged(path, protect={"x": "x"})[0].told

    assert told(asked, answered) == "clean"
    assert told(asked) == "clean"
    other = json.loads(json.dumps(asked).replace("toolu_planted", "toolu_2"))
    assert told(asked, other) == "cannot tell"
    chat = json.loads(json.dumps(asked).replace("src/a", "chat/a"))
    assert told(chat) == "cannot tell"
    assert _kinds(judged(path)[1][0].found, lambda each: not each.sure) == 1


def test_gaps_are_counted_where_they_are_too_many_to_be_kept() -> None:
    """Each is a reason, and what is left out is one too; subagents are still found elsewhere."""
    one, child = SessionExposures(NeverRule(["x"]), ProtectedText()), Gap("missing", 1, "c", "tool")
    one.add(Session("s", "claude-code", "2.1.209", 1))
    for line in range(3 * GapList.LIMIT):
        one.add(Gap("unknown", line, "a record of the type 'new'"))
        one.add(child._replace(line=line, child=f"child-{line}"))
    one.end()
    assert len(one.gaps) == 4 * GapList.LIMIT + 1
    others = SessionExposures(NeverRule(["x"]), ProtectedText())
    for line in range(3 * GapList.LIMIT):
        others.add(Session(f"child-{line}", "codex", "0.169.0", 1, parent="s"))
    verdict = judge_exposures([one, others], Counter())
    assert verdict.told == "cannot tell"
    assert verdict.coverage["gaps"] == {"unknown": 3 * GapList.LIMIT}
    assert len(verdict.unseen) == GapList.LIMIT + 1
    said, left = verdict.reasons  # one text, with all its lines
    assert said.endswith(f"lines {', '.join(map(str, range(1, GapList.LIMIT)))}")
    assert "1000 more that are not listed" in left


def test_a_subagent_beyond_the_limit_is_never_taken_for_found() -> None:
    one = SessionExposures(NeverRule(["x"]), ProtectedText())
    one.add(Session("s", "codex", "0.169.0", 1))
    for line in range(GapList.CHILDREN + 1):
        one.add(Gap("missing", line, "a subagent", "subagent", child=f"child-{line}"))
    one.end()
    for line in range(GapList.CHILDREN + 1):
        one.add(Session(f"child-{line}", "codex", "0.169.0", 1, parent="s"))
    verdict = judge_exposures([one], Counter())
    assert (verdict.told, verdict.coverage["gaps"]) == ("cannot tell", {"missing": 1})


def test_a_very_long_session_is_judged_in_little_memory_and_forgets_no_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exposure, "_REMEMBERED", 10)
    judging = SessionExposures(NeverRule([".env"]), ProtectedText())
    for number in range(1, 200):
        path = "/w/.env" if number == 1 else "/w/a"
        judging.add(Call(f"c{number}", "Read", {}, number, "read", (path,), cwd="/w"))
        if number > 1:
            judging.add(Given("read", number, 0, "text", call=f"c{number}"))
        assert len(judging._calls) <= 10
    judging.add(Given("read", 200, 0, "late", call="c1"))
    judging.end()
    assert [(one.line, one.sure) for one in judging.found] == [(1, False)]
    assert [(gap.line, gap.cause) for gap in judging.gaps] == [(1, "unanswered"), (200, "missing")]


def test_a_record_far_behind_another_still_has_it_as_its_parent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(items, "_REMEMBERED", 20)
    start = {"type": "user", "sessionId": "s", "version": "2.1.209", "cwd": "/w"}
    said = start | {"message": {"role": "user", "content": "hi"}}
    lines = [json.dumps(said | {"uuid": f"u{n}", "parentUuid": f"u{n - 9}"}) for n in range(9, 90)]
    first = [json.dumps(said | {"uuid": f"u{n}"}) for n in range(9)]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join([*first, *lines]))
    assert judged(path)[0].told == "clean"
    path.write_text("\n".join([*first, *lines, json.dumps(said | {"parentUuid": "u3"})]))
    verdict = judged(path)[0]
    assert verdict.told == "cannot tell"  # it is forgotten, and is not taken for there
