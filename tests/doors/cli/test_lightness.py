"""Hot commands start light: what they import is what they need (design section 11)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from doors.inside import begin
from replicas import Clone

HEAVY = {
    "asyncio",
    "click.shell_completion",
    "cryptography",
    "hypothesis",
    "importlib.metadata",
    "markdown_it",
    "pathlib",
    "tripod.projections.workers.format",
    "pydantic",
    "rich",
    "sqlite_utils",
    "subprocess",
    "tempfile",
    "tree_sitter",
    "tree_sitter_bash",
    "tripod.sessions",
    "tripod.verify",
    "tripod.verify.sessions",
    "unittest",
    "wcmatch",
    "yaml",
}
"""Modules that cost more than a command may take, or that no hot command has a use for."""

SELDOM = {
    "ast",
    "click",
    "ctypes",
    "dataclasses",
    "difflib",
    "dis",
    "gettext",
    "inspect",
    "locale",
    "logging",
    "orjson",
    "platform",
    "signal",
    "struct",
    "threading",
    "tripod.cli.tree",
    "tripod.ledger.tlog.note",
    "tripod.projections.pythia.format",
    "tripod.trust.seal",
    "uuid",
}
"""Modules that only some calls of a hot command need: click says what is wrong, orjson reads many
bodies. Most other names here come with one of these two."""

CALLED_MOST = {
    ("bus", "publish", "ann", "done", "low"): 66,
    ("bus", "check"): 66,
    ("chat", "read", "live", "--last", "10"): 68,
    ("chat", "send", "live", "ann", "hello"): 68,
    ("scribe", "log", "T", "-p", "ann", "-r", "why", "--ref", "live.chat:~L7"): 69,
}
"""What is called most, and how many modules of ours each imports.

These numbers only fall, but for the tables of a new protocol: each act folds into all tables.
"""

PROGRAM = """
import builtins, importlib, sys
before = set(sys.modules)
compiled = []
compile_ = builtins.compile
builtins.compile = lambda *call, **how: compiled.append(call[0]) or compile_(*call, **how)
module, _, name = sys.argv.pop(1).partition(":")
main = getattr(importlib.import_module(module), name)
try:
    main()
except SystemExit as left:
    code = left.code
names = sorted(set(sys.modules) - before)
import json
print(json.dumps([code, names, list(map(repr, compiled))]))
"""

HOT = pytest.mark.parametrize(
    "arguments",
    [
        ("bus", "publish", "ann", "done", "low"),
        ("bus", "check"),
        ("chat", "send", "live", "ann", "hello @bob"),
    ],
    ids=" ".join,
)
"""The commands that are called most."""


def started(
    folder: Path, *arguments: str, door: str = "tripod.cli:main"
) -> tuple[set[str], list[str]]:
    """The modules that a command brought into a fresh process, and what it had compiled."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, door, *arguments],
        cwd=folder,
        capture_output=True,
        check=True,
        text=True,
        timeout=60,
    )
    code, names, compiled = json.loads(done.stdout.splitlines()[-1])
    assert code == 0, done.stderr
    return set(names), compiled


def imported(folder: Path, *arguments: str, door: str = "tripod.cli:main") -> set[str]:
    """The modules that a command brought into a fresh process."""
    return started(folder, *arguments, door=door)[0]


@pytest.mark.parametrize("words", CALLED_MOST, ids=" ".join)
def test_what_is_called_most_imports_least(tmp_path: Path, words: tuple[str, ...]) -> None:
    begin(tmp_path)
    names, compiled = started(tmp_path, *words)
    roots = {name.partition(".")[0] for name in names}
    assert (names | roots) & (HEAVY | SELDOM) == set()
    assert roots <= {"tripod", *sys.stdlib_module_names}
    ours = sorted(name for name in names if name.startswith("tripod"))
    assert len(ours) <= CALLED_MOST[words], ours
    # The first call of `compile` makes every type of the syntax tree, which takes 2 ms. A named
    # tuple makes it where its annotations are texts: under `from __future__ import annotations`.
    assert compiled == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("bus", "publish", "ann", "done", "low"),
        ("bus", "publish", "ann", "done", "low", "text", "--dedup-window=0"),
        ("bus", "check"),
        ("bus", "ack", "EVENT"),
        ("chat", "send", "live", "ann", "hello @bob"),
        ("chat", "send", "live", "--as", "ann", "hello @bob"),
        ("chat", "read", "live", "--last", "10"),
        ("scribe", "log", "Title", "-p", "ann", "-r", "why", "--ref", "live.chat:~L7"),
        ("scribe", "log", "Title", "-p", "ann", "-r", "why", "--ref", "last"),
    ],
    ids=" ".join,
)
def test_hot_commands_import_little(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    begin(tmp_path)
    (tmp_path / ".nbs/events/config.yaml").write_text("dedup-window: 0\n")
    # The first command after a change reads the configuration, those after it do not.
    assert imported(tmp_path, "bus", "status") >= {"pydantic", "yaml"}
    (event,) = (tmp_path / ".nbs/events").glob("*-ann-task-complete-*")
    names = imported(tmp_path, *(event.name if word == "EVENT" else word for word in arguments))
    roots = {name.partition(".")[0] for name in names} | names
    assert roots & HEAVY == set()
    assert "tripod.projections.intake" not in names


@pytest.mark.parametrize(
    "arguments",
    [
        ("nbs_bus", "publish", "DIR", "ann", "done", "low", "text", "--dedup-window=0"),
        ("nbs_bus", "check", "DIR", "--handle=ann"),
        ("nbs_bus", "ack", "DIR", "EVENT"),
        ("nbs_bus", "ack-all", "DIR"),
        ("nbs_bus", "status", "DIR"),
        ("nbs_chat", "send", "CHAT", "ann", "hello @bob"),
        ("nbs_chat", "read", "CHAT", "--last=10"),
        ("nbs_chat", "read", "CHAT", "--unread=bob"),
        ("nbs_scribe_log", "LOG", "T", "--participants=ann", "--rationale=r", "--chat-ref=REF"),
        ("nbs_scribe_query", "--chat=.nbs/chat/live.chat", "--last=2"),
        ("nbs_scribe", "count", "LOG"),
    ],
    ids=" ".join,
)
def test_a_drop_in_command_does_without_the_parser_too(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    begin(tmp_path)
    (event,) = (tmp_path / ".nbs/events").glob("*-ann-task-complete-*")
    given = {"EVENT": event.name, "DIR": ".nbs/events", "CHAT": ".nbs/chat/live.chat"}
    given |= {"LOG": ".nbs/scribe/log.md", "--chat-ref=REF": "--chat-ref=live.chat:~L7"}
    name, *words = (given.get(word, word) for word in arguments)
    names = imported(tmp_path, *words, door=f"tripod.cli.nbs:{name}")
    roots = {name.partition(".")[0] for name in names} | names
    assert roots & (HEAVY | SELDOM) == set()


@HOT
def test_a_key_weighs_nothing_where_no_seal_is_due(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    begin(tmp_path)
    imported(tmp_path, "key", "new")
    assert imported(tmp_path, *arguments) & HEAVY == set()


def test_a_seal_brings_cryptography_and_nothing_else_that_is_heavy(tmp_path: Path) -> None:
    begin(tmp_path)
    imported(tmp_path, "key", "new")
    log = ("scribe", "log", "Title", "-p", "ann", "-r", "why", "--ref", "live.chat:~L7")
    names = imported(tmp_path, *log)
    assert names & HEAVY == {"cryptography"}


@HOT
def test_the_keys_of_others_weigh_next_to_nothing(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    begin(tmp_path)
    before = imported(tmp_path, *arguments)
    assert not before & {
        "tripod.trust.actors",
        "tripod.ledger.actors",
        "tripod.ledger.tlog.note",
        "tripod.trust.keys",
    }
    imported(tmp_path, "actor", "enrol", "eve")
    names = imported(tmp_path, *arguments)
    assert names & HEAVY == set()
    assert "tripod.trust.keys" not in names


def test_who_signs_brings_cryptography_and_nothing_else_that_is_heavy(tmp_path: Path) -> None:
    begin(tmp_path)
    imported(tmp_path, "actor", "enrol", "ann")
    names = imported(tmp_path, "chat", "send", "live", "ann", "hello @bob")
    assert names & HEAVY == {"cryptography"}


def test_a_pull_of_nothing_new_imports_nothing_of_merging(tmp_path: Path) -> None:
    anna, ben = Clone(tmp_path, "anna"), Clone(tmp_path, "ben")
    anna.said("init")
    anna.said("push")
    ben.said("init", "--from", "origin")
    ben.said("pull")
    with ben.at_home():
        names = imported(ben.git.root, "pull")
    roots = {name.partition(".")[0] for name in names} | names
    assert roots & (HEAVY - {"subprocess", "tripod.verify"}) == set()
    assert not names & {
        "base64",
        "shutil",
        "tripod.ledger.tlog.trailer",
        "tripod.ledger.kinds.decisions",
        "tripod.ledger.kinds.registry",
        "tripod.ledger.tlog.tiles",
        "tripod.peers.merge",
        "tripod.trust.seal",
        "tripod.verify.export_file",
    }


AHEAD = """
import sys
from tripod.verify.anchors.git import Repository

start = Repository._start

def noting(repository, *words, **rest):
    print(words[0], sorted({"tripod.projections", "tripod.team.team"} & sys.modules.keys()))
    return start(repository, *words, **rest)

Repository._start = noting
from tripod.cli import main
main(["pull"])
"""


def test_a_pull_imports_what_its_team_needs_while_git_fetches(tmp_path: Path) -> None:
    anna = Clone(tmp_path, "anna")
    anna.said("init")
    anna.said("push")
    anna.said("pull")
    with anna.at_home():
        done = subprocess.run(
            [sys.executable, "-c", AHEAD],
            cwd=anna.git.root,
            capture_output=True,
            check=True,
            text=True,
            timeout=60,
        )
    assert done.stdout.splitlines() == ["fetch []", "nothing new from origin"]


FORMATS = """
import sys
import tripod.ledger.tlog.note, tripod.ledger.tlog.policy, tripod.ledger.tlog.proof
import tripod.ledger.tlog.seal, tripod.ledger.tlog.tiles
from tripod.ledger.tlog.note import SigningKey, VerifierKey
key = VerifierKey.parse("PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW")
assert "cryptography" not in sys.modules
assert not key.accepts("text", bytes(64))
assert "cryptography" in sys.modules
"""


def test_the_formats_of_seals_import_cryptography_when_they_sign_or_check() -> None:
    subprocess.run([sys.executable, "-c", FORMATS], check=True, timeout=60)


ENDING = """
import atexit, os

class Last:
    def __del__(self, write=os.write):
        write(2, b"taken apart\\n")

last = Last()
atexit.register(os.write, 2, b"registered\\n")
"""


@pytest.mark.parametrize(
    ("called", "words"),
    [
        ("from tripod.cli import main; main()", ("tripod", "bus", "check")),
        ("from tripod.cli.nbs import nbs_bus; nbs_bus()", ("nbs-bus", "check", ".nbs/events")),
    ],
)
def test_a_script_ends_at_once_and_does_what_was_registered(
    tmp_path: Path, called: str, words: tuple[str, ...]
) -> None:
    begin(tmp_path)
    (tmp_path / "sitecustomize.py").write_text(ENDING, encoding="utf-8")
    script = Path(sys.executable).with_name(words[0])
    for program, told in (
        ([str(script)], "registered\n"),
        ([sys.executable, "-c", called], "registered\ntaken apart\n"),
    ):
        done = subprocess.run(
            [*program, *words[1:]],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(tmp_path)},
            capture_output=True,
            check=True,
            text=True,
        )
        assert done.stderr == told


LATE = """
import atexit, sys
atexit.register(lambda: print("registered"))
atexit.register(lambda: sys.stderr.write("no line break"))
"""
THREAD = """
import threading, time
threading.Thread(target=lambda: (time.sleep(1), print("the thread ended"))).start()
"""


@pytest.mark.parametrize("more", [LATE, THREAD])
def test_a_script_that_ends_at_once_loses_no_output_and_no_exit_code(
    tmp_path: Path, more: str
) -> None:
    (tmp_path / "sitecustomize.py").write_text(more, encoding="utf-8")
    for words, code in ((("tripod", "--version"), 0), (("nbs-bus", "no-such-command"), 4)):
        done = subprocess.run(
            [str(Path(sys.executable).with_name(words[0])), *words[1:]],
            env=os.environ | {"PYTHONPATH": str(tmp_path), "PYTHONUNBUFFERED": ""},
            capture_output=True,
            check=False,
            text=True,
            timeout=60,
        )
        assert done.returncode == code
        assert done.stdout.startswith("tripod") == (code == 0)
        assert done.stdout.endswith("registered\n" if more == LATE else "the thread ended\n")
        assert done.stderr.endswith("no line break") == (more == LATE)


OWN_PROGRAM = """
import sys
from tripod.cli import main
from tripod.cli.nbs import nbs_bus

for command in (main, nbs_bus):
    sys.argv[1:] = ["no-such-command"]
    try:
        command()
    except SystemExit as left:
        print("left with", left.code)
"""


def test_a_program_of_ones_own_goes_on_behind_a_command(tmp_path: Path) -> None:
    """Else it would end in the middle, with the command's exit code: a test run among them."""
    program = tmp_path / "nightly.py"
    program.write_text(OWN_PROGRAM, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, check=True, text=True, timeout=60
    )
    assert done.stdout == "left with 2\nleft with 4\n"


def test_the_help_of_the_first_level_imports_no_group_and_no_team(tmp_path: Path) -> None:
    names = imported(tmp_path, "--help")
    assert {name for name in names if name.startswith("tripod.cli.")} == {
        "tripod.cli.arguments",
        "tripod.cli.commands",
        "tripod.cli.tree",
    }
    heavy = {*HEAVY, "sqlite3", "tripod.team", "tripod.ledger.kinds", "tripod.projections"}
    assert names & heavy == set()
