"""``nbs-worker`` row by row: arguments, outcome, exit code, output (spec: nbs-compat C5).

Each row is a command in a copy of one project, whose workers stand for every state that there is.
In what is told ``...`` stands for anything.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from docs.pages import fits
from doors.inside import Done, run, run_as, state
from story import folder

from tripod.cli.worker import PROGRAMS as TABLE
from tripod.ledger.locator import LEDGER
from tripod.projections.workers.format import EMPTY_LOG
from tripod.team import adoption
from tripod.team.team import Team
from tripod.workers import worker as workers_run

USAGE = TABLE[0].usage
USAGES = {verb.name: f"nbs-worker {verb.name} {verb.nbs}".rstrip() for verb in TABLE[0].verbs}
PAGE = Path(__file__).parents[3] / "docs/reference/nbs-worker.md"
PROFILE = 'argv = ["sh", "-c", "cat"]\n'
SESSION = """\
argv = ["sh", "-c", "cat >/dev/null; cat answer.json"]
output = "claude-stream-json"
[takes]
model = ["{}"]
"""
ANSWER = '{"type":"result","session_id":"s-7","result":"yes"}\n'

LINES = "printf 'one\\ntwo \\033[31mred\\033[0m\\nthree\\nfour\\nfive\\n'; echo loud >&2"
PROGRAMS = (
    ("done-0001", LINES, "completed"),
    ("fail-0002", "exit 3", "failed"),
    ("dead-0003", "echo last words; kill -9 $$", "died"),
    ("sent-0004", "echo so far", "dismissed"),
    ("ask-0005", "until [ -e go ]; do sleep 0.01; done; echo stuck", "escalated"),
)
"""Each worker with the shell line that it runs, and what became of it."""

THEIRS = """\
# Worker: old

## Task

Look for `State: running` in the sources.

## Tooling

- Post to chat.

## Status

State: {state}
Started: 2026-02-12 14:00:00
Completed:

## Log

{log}
"""


class Row(NamedTuple):
    """Words of a command, its exit code, what it prints, and what it says on stderr."""

    words: tuple[str, ...]
    code: int
    out: str = ""
    err: str = ""


def row(words: str | tuple[str, ...], code: int, out: str = "", err: str = "") -> Row:
    return Row(tuple(words.split(" ")) if isinstance(words, str) else words, code, out, err)


def status(name: str, state: str, said: str = "") -> str:
    return (
        f"Worker: {name}\n  tmux session: no\n  task state:   {state}\n"
        f"  status:       {said or state}\n"
    )


MANY = "tripod: too few arguments\n  Usage: nbs-worker "
NONE = "tripod: no worker none-0009: `tripod worker list` shows those that are there\n"
THEIR = "tripod: old-0007 is run by another tool: we know its files alone\n"
PARSER = "parser-....\n"

SPAWN = [
    row(("spawn", "parser", ".", "Parse it."), 0, PARSER),
    row(("spawn", "parser", "sub", "Parse it."), 0, PARSER, "tripod: began the ledger ..."),
    row(("spawn", "--skill=skill.md", "parser", ".", "Parse it."), 0, PARSER),
    row(("spawn", "parser", ".", "Parse it.", "--skill=skill.md"), 0, PARSER),
    row(("spawn", "parser", ".", "two\n## Status\n\nState: completed\n"), 0, PARSER),
    row(("spawn", "parser", ".", "-- note"), 0, PARSER),
    row(("spawn", "parser", ".", "--", "--skill=x"), 0, PARSER),
    row(("spawn", "p" * 54, ".", "x"), 0, f"{'p' * 54}-....\n"),
    row(("spawn", "p" * 55, ".", "x"), 4, "", "tripod: slug: 1 to 54 of a-z 0-9 are allowed\n"),
    *(
        row(("spawn", slug, ".", "x"), 4, "", "tripod: slug: 1 to 54 of a-z 0-9 are allowed\n")
        for slug in ("", "Parser", "par-ser", "par ser", "é", "../x", "a/b", "a\n", "a_b")
    ),
    row(("spawn", "parser", ".", ""), 4, "", "tripod: task: it is empty..."),
    row(("spawn", "parser", ".", " \n"), 4, "", "tripod: task: it is empty..."),
    row(("spawn", "parser", ".", "x" * 1_048_577), 4, "", "tripod: task: more than 1048576..."),
    row("spawn parser nowhere x", 4, "", "tripod: nowhere is no folder: give the one where..."),
    row("spawn parser skill.md x", 4, "", "tripod: skill.md is no folder..."),
    row("spawn --skill=none.md parser . x", 4, "", "tripod: skill: ... 'none.md' cannot..."),
    row("spawn --skill=sub parser . x", 4, "", "tripod: skill: ... 'sub' cannot be read..."),
    row("spawn --skill= parser . x", 4, "", "tripod: skill: ..."),
    row("spawn --skill parser . x", 4, "", "tripod: --skill takes a value: --skill=......"),
    row("spawn --skill=skill.md --skill=sub parser . x", 4, "", "tripod: --skill is given..."),
]  # fmt: skip

READING = [
    row("status done-0001", 0, status("done-0001", "completed")),
    row("status fail-0002", 0, status("fail-0002", "failed")),
    row("status dead-0003", 0, status("dead-0003", "died", "died (session exited unexpectedly)")),
    row("status sent-0004", 0, status("sent-0004", "dismissed")),
    row("status ask-0005", 0, status("ask-0005", "escalated")),
    row("status old-0007", 0, status("old-0007", "done")),
    row("status bare-0008", 0, status("bare-0008", "unknown")),
    row("status none-0009", 2, "", NONE),
    *(
        row(words.replace("NAME", name), 2, "", f"tripod: no worker {name[:80]}: `tripod ...")
        for words in ("status NAME", "search NAME x", "results NAME", "continue NAME x",
                      "dismiss NAME")
        for name in ("../../etc/passwd", "/etc/passwd", "a/b", "n" * 300)
    ),
    row(("status", "a\x1b[2J"), 2, "", "tripod: no worker a\\x1b[2J: ..."),
    row(("status", ""), 2, "", "tripod: no worker : ..."),
    row("search done-0001 one", 0, "one\ntwo red\nthree\nfour\nfive\n"),
    row("search done-0001 t --context=0", 0, "two red\nthree\n"),
    row("search --context=0 done-0001 ^(one|five)$", 0, "one\n--\nfive\n"),
    row("search done-0001 four --context=1", 0, "three\nfour\nfive\n"),
    row("search done-0001 two.red --context=0", 0, "two red\n"),
    row("search done-0001 loud --context=9", 0, "loud\n"),
    row("search done-0001 ONE", 1),
    row("search dead-0003 words", 0, "last words\n"),
    row("search sent-0004 far", 0, "so far\n"),
    row("search fail-0002 x", 1),
    row("search old-0007 their", 0, "their words\n"),
    row("search done-0001 (", 4, "", "tripod: '(' is no regular expression: ..."),
    row("search done-0001 x --context=-1", 4, "", "tripod: --context=-1: no whole number ..."),
    row("search done-0001 x --context=two", 4, "", "tripod: --context=two: no whole number..."),
    row("search done-0001 x --context=", 4, "", "tripod: --context=: no whole number..."),
    row("search done-0001 x --context=99999999999", 4, "", "tripod: --context=99999999999: no..."),
    row("search done-0001 x --contxt=1", 4, "", "tripod: no option --contxt; the options are..."),
    row("search none-0009 x", 2, "", "tripod: none-0009 has no log: `tripod worker list`..."),
    row("search bare-0008 x", 2, "", "tripod: bare-0008 has no log: ..."),
    row("search none-0009 (", 4, "", "tripod: '(' is no regular expression: ..."),
    row("results done-0001", 0, "## Log\n\nFound: a leak.\n"),
    row("results fail-0002", 0, f"## Log\n\n{EMPTY_LOG}\n"),
    row("results old-0007", 0, "## Log\n\nTheir findings.\n"),
    row("results none-0009", 2, "", NONE),
    row("session sess-0006", 0, "s-7\n"),
    row("session sess", 0, "s-7\n"),
    row("session done-0001", 2, "", "tripod: done-0001: its program named no session\n"),
    row("session old-0007", 2, "", "tripod: old-0007: its program named no session\n"),
    row("session none-0009", 2, "", "tripod: none-0009: its program named no session\n"),
    row(
        "list", 0,
        "  ask-0005                  escalated    tmux:no    log:6B\n"
        "  bare-0008                 unknown      tmux:no    log:no-log\n"
        "  dead-0003                 died         tmux:no    log:11B\n"
        "  done-0001                 completed    tmux:no    log:37B\n"
        "  fail-0002                 failed       tmux:no    log:0B\n"
        "  old-0007                  done         tmux:no    log:12B\n"
        "  sent-0004                 dismissed    tmux:no    log:7B\n"
        "  sess-0006                 completed    tmux:no    log:52B\n",
    ),
]  # fmt: skip

GOING_ON = [
    row(("continue", "done-0001", "And that."), 0),
    row(("continue", "fail-0002", "And that."), 0),
    row(("continue", "dead-0003", "-- and that"), 0),
    row(("continue", "ask-0005", "--", "--that"), 0),
    row("continue done-0001", 0),
    row("continue done Also", 0),
    row(("continue", "sess", "Also", "--model=small"), 0),
    row(("continue", "done", "Also", "--model=small"), 4, "", "tripod: done-0001: ... no model..."),
    row("continue sent x", 1, "", "tripod: sent-0004 is dismissed: ..."),
    row("continue sent-0004 x", 1, "", "tripod: sent-0004 is dismissed: only one that ended..."),
    row("continue old-0007 x", 2, "", THEIR),
    row("continue none-0009 x", 2, "", NONE),
    row(("continue", "done-0001", ""), 4, "", "tripod: message: it is empty..."),
    row(("continue", "done-0001", "x" * 1_048_577), 4, "", "tripod: message: ...1048576 bytes..."),
    *(row(f"dismiss {name}", 0, f"Dismissed: {name}\n")
      for name in ("done-0001", "fail-0002", "dead-0003", "sent-0004", "ask-0005")),
    row("dismiss old-0007", 2, "", THEIR),
    row("dismiss none-0009", 2, "", NONE),
]  # fmt: skip

OTHERS = [
    row("help", 0, "", USAGE),
    row("--help", 0, "", USAGE),
    row("-h", 0, "", USAGE),
    row((), 4, "", "tripod: which command? There are spawn, status, search, ..., help.\n"),
    row("spwan parser . x", 4, "", "tripod: which command? ..."),
    *(
        row((verb, word), 0, "", f"Usage: {usage}\n")
        for verb, usage in USAGES.items()
        for word in ("--help", "-h")
    ),
]

TAKES = {verb: len(re.findall(r" \[?[A-Z]+", usage)) for verb, usage in USAGES.items()}
"""How many texts each command takes at most."""
LEAST = {verb: len(re.findall(r" [A-Z]+", usage)) for verb, usage in USAGES.items()}

SLIPS = [
    *(row((verb, *"x" * (texts - 1)), 4, "", f"{MANY}{verb} ...")
      for verb, texts in LEAST.items() if texts),
    *(row((verb, *"x" * texts, "more"), 4, "", "tripod: 'more' is one too many\n  Usage: ...")
      for verb, texts in TAKES.items()),
    *(row((verb, *"x" * texts, "--al"), 4, "", "tripod: no option --al; ...")
      for verb, texts in TAKES.items()),
]  # fmt: skip
ROWS = [*SPAWN, *READING, *GOING_ON, *OTHERS, *SLIPS]


# The project ------------------------------------------------------------------------------------


def lay_out(project: Path) -> None:
    """A project whose workers are in every state that needs no program at work."""
    (project / "sub").mkdir()
    (project / "agent.toml").write_text(PROFILE)
    (project / "session.toml").write_text(SESSION)
    (project / "answer.json").write_text(ANSWER)
    (project / "skill.md").write_text("Be brief.\n")
    adoption.init(str(project))
    with Team(str(project / ".nbs")) as team:
        for name, line, _ in PROGRAMS:
            given = ("sh", "-c", line)
            workers_run.spawn(team, name[:-5], str(project), "Do it.", command=given, name=name)
        session = str(project / "session.toml")
        workers_run.spawn(team, "sess", str(project), "Do it.", profile=session, name="sess-0006")
        workers_run.escalate(team, "ask-0005", "Which one?")
    (project / "go").touch()
    watch(project)
    with Team(str(project / ".nbs")) as team:
        workers_run.dismiss(team, "sent-0004")
        assert {name: workers_run.worker_state(team, name) for name, _, _ in PROGRAMS} == {
            name: became for name, _, became in PROGRAMS
        }
    workers = project / ".nbs/workers"
    found = workers / "done-0001.md"
    found.write_text(found.read_text("utf-8").replace(EMPTY_LOG, "Found: a leak."), "utf-8")
    (workers / "old-0007.md").write_text(THEIRS.format(state="done", log="Their findings."))
    (workers / "old-0007.log").write_text("their words\n")
    (workers / "bare-0008.md").write_text("# Worker: bare\n\n## Task\n\nNone.\n")
    assert run(project, "sync").code == 0


def watch(project: Path) -> None:
    """Wait until the last program has ended."""
    done = run(project, "worker", "watch", "--timeout", "60")
    assert done.code == 0, done


@pytest.fixture(scope="module")
def template() -> Iterator[Path]:
    with folder() as root:
        lay_out(root)
        yield root


@pytest.fixture
def project(template: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.delenv(LEDGER, raising=False)
    monkeypatch.delenv("NBS_HANDLE", raising=False)
    with folder() as root:
        copy = root / "copy"
        shutil.copytree(template, copy)
        monkeypatch.setenv(workers_run.PROFILE, str(copy / "agent.toml"))
        yield copy


def told(project: Path, *words: str) -> Done:
    return run_as("nbs-worker", project, *words)


# The rows ---------------------------------------------------------------------------------------


def name_of(one: Row) -> str:
    return " ".join(one.words).replace("\n", "_")[:60]


@pytest.mark.parametrize("one", ROWS, ids=name_of)
def test_each_row(project: Path, one: Row) -> None:
    before = state(project)
    done = told(project, *one.words)
    shown = re.sub(r"-[0-9a-f]{4}\n", "-....\n", done.out.decode())
    out = shown if one.words[:1] == ("spawn",) else done.out.decode()
    assert (done.code, out) == (one.code, one.out), done
    assert fits(one.err, done.err), done
    if one in (*SPAWN, *GOING_ON) and done.code == 0:
        watch(project / "sub" if "sub" in one.words else project)
    else:
        assert state(project) == before
        assert not (project / "sub/.nbs").exists()


def test_every_verb_option_and_code_of_the_page_has_its_rows() -> None:
    page = PAGE.read_text("utf-8")
    documented = re.findall(r"^\| `([a-z]+)([^`]*)` \| .* \| ([^|]*) \|$", page, re.MULTILINE)
    assert {verb for verb, _, _ in documented} == {*USAGES, "help"}
    for verb, usage, codes in documented:
        rows = [one for one in ROWS if one.words[:1] == (verb,)]
        refused = {4} if verb != "help" else set()
        anyway = {1, 2} if verb == "spawn" else set()  # a ledger, a profile: below
        wanted = {int(code) for code in re.findall(r"\b[0-9]\b", codes)}
        assert {one.code for one in rows} | anyway == wanted | refused | anyway, verb
        options = set(re.findall(r"--[a-z]+", usage))
        assert options == set(re.findall(r"--[a-z]+", USAGES.get(verb, "")))
        for option in options:
            given = [one for one in rows for word in one.words if word.startswith(f"{option}=")]
            assert {one.code for one in given} >= {0, 4}, option


@pytest.mark.parametrize("verb", USAGES)
def test_a_damaged_ledger_is_1_and_no_team_is_2(project: Path, verb: str) -> None:
    words = {"spawn": ("spawn", "parser", ".", "x"), "list": ("list",)}.get(
        verb, (verb, "done-0001", "x")[: TAKES[verb] + 1]
    )
    (project / ".nbs/ledger.db").write_bytes(b"no database" * 1000)
    done = told(project, *words)
    assert (done.code, done.out) == (1, b""), done
    assert done.err.startswith("tripod: ")
    shutil.rmtree(project / ".nbs")
    if verb != "spawn":
        done = told(project, *words)
        assert (done.code, done.out) == (2, b""), done
        assert "no .nbs here or above" in done.err
        assert not (project / ".nbs").exists()


# What is running --------------------------------------------------------------------------------


def test_one_at_work_is_shown_told_to_wait_and_sent_away(project: Path) -> None:
    (project / "agent.toml").write_text('argv = ["sh", "-c", "echo begun; exec sleep 600"]\n')
    done = told(project, "spawn", "parser", ".", "Parse it.")
    name = done.out.decode().strip()
    assert told(project, "status", name).out.decode() == status(name, "running").replace(
        "session: no", "session: yes"
    )
    listed = told(project, "list").out.decode()
    assert re.search(rf"^  {name} +running +tmux:yes   log:[0-9]+B$", listed, re.MULTILINE)
    refused = told(project, "continue", name, "x")
    assert (refused.code, refused.out) == (1, b"")
    assert "its program is at work: wait for it, or dismiss it" in refused.err
    assert told(project, "session", name).code == 2
    assert told(project, "dismiss", name) == (0, f"Dismissed: {name}\n".encode(), "")
    assert told(project, "status", name).out.decode() == status(name, "dismissed")
    assert told(project, "dismiss", name) == (0, f"Dismissed: {name}\n".encode(), "")
    assert told(project, "continue", name, "x").code == 1


def test_one_that_asked_and_still_runs_is_shown_as_such(project: Path) -> None:
    (project / "agent.toml").write_text('argv = ["sh", "-c", "exec sleep 600"]\n')
    name = told(project, "spawn", "parser", ".", "Parse it.").out.decode().strip()
    assert run(project, "worker", "escalate", "Which?", "--name", name).code == 0
    assert told(project, "status", name).out.decode().splitlines()[1:] == [
        "  tmux session: yes",
        "  task state:   escalated",
        "  status:       escalated (session still open)",
    ]
    assert told(project, "dismiss", name).code == 0


def test_a_skill_stands_in_front_of_the_task_that_the_program_reads(project: Path) -> None:
    done = told(project, "spawn", "--skill=skill.md", "parser", ".", "Parse it.")
    name = done.out.decode().strip()
    watch(project)
    log = (project / f".nbs/workers/{name}.log").read_text("utf-8")
    assert log.startswith("Be brief.\n\nParse it.\n")
    assert f".nbs/workers/{name}.md" in log
    told(project, "continue", name, "And that.")
    watch(project)
    again = (project / f".nbs/workers/{name}.log").read_text("utf-8")
    assert again.startswith(log)
    assert again.endswith("And that.")


def test_a_profile_that_is_not_there_is_2_and_one_that_is_none_is_4(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = state(project)
    for profile, code, problem in (
        ("no-such", 2, "no profile 'no-such'"),
        ("none.toml", 2, "no profile 'none.toml'"),
        (str(project / "skill.md"), 4, "skill.md"),
    ):
        monkeypatch.setenv(workers_run.PROFILE, profile)
        done = told(project, "spawn", "parser", ".", "x")
        assert (done.code, done.out) == (code, b""), done
        assert problem in done.err
    assert state(project) == before


# Who acts, and where ----------------------------------------------------------------------------


def test_who_acts_is_recorded(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBS_HANDLE", "ann")
    name = told(project, "spawn", "parser", ".", "Parse it.").out.decode().strip()
    watch(project)
    told(project, "continue", name, "And that.")
    watch(project)
    told(project, "dismiss", name)
    with Team(str(project / ".nbs")) as team:
        who = {e.kind: e.actor for e in team.store.read() if e.stream == f"workers/{name}"}
    kinds = ("worker.spawned", "worker.continued", "worker.dismissed")
    assert [who[kind] for kind in kinds] == ["ann"] * 3
    monkeypatch.setenv("NBS_HANDLE", "two words")
    done = told(project, "spawn", "parser", ".", "x")
    assert (done.code, done.err) == (4, "tripod: NBS_HANDLE: holds white space\n")


def test_below_the_project_it_is_the_same_team(project: Path) -> None:
    assert told(project / "sub", "list").out == told(project, "list").out


def test_the_program_says_the_same_as_a_process(project: Path) -> None:
    program = Path(sys.executable).with_name("nbs-worker")
    for words, code in (
        (("list",), 0),
        (("status", "dead-0003"), 0),
        (("search", "done-0001", "absent"), 1),
        (("results", "none-0009"), 2),
        (("status",), 4),
        (("help",), 0),
    ):
        done = subprocess.run(
            [program, *words], cwd=project, capture_output=True, timeout=60, check=False,
            env={key: value for key, value in os.environ.items() if key != LEDGER},
        )  # fmt: skip
        again = told(project, *words)
        assert (done.returncode, done.stdout) == (code, again.out)
        assert done.stderr.decode() == again.err
