"""In the mount namespace nothing that holds the chat exists, whatever her program tries."""

import asyncio
import fcntl
import io
import json
import os
import socket
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any
from unittest import mock

import pytest
from reviewed import (
    EXAMPLE,
    NOW,
    SCRIPTED,
    SPOKEN,
    check_once,
    event_of,
    folder_alone,
    reviewed_team,
)
from team_files import outcome

from tripod.agents import wrapper
from tripod.agents.folder import IsolatedProgram
from tripod.agents.isolation import isolate, resolve_isolated
from tripod.agents.spool import ENDED, Look, Spool
from tripod.pythia import review as pythia_run
from tripod.team.team import Team
from tripod.verify.check import Outcome
from tripod.verify.evidence import collect
from tripod.verify.run import run as judge

SEARCH = r"""
import os, runpy, socket, subprocess, sys

spoken, project, port, example, *tops = sys.argv[1:]
SPOKEN = bytes.fromhex(spoken).decode()  # a command line that quotes the chat would tell her
found = []

def look(path):
    try:
        with open(path, "rb") as file:
            data = file.read(1 << 22)
        if SPOKEN.encode() in data or path.endswith(".chat"):
            found.append(path)
    except OSError:
        pass

def walk(top, skip=()):
    for folder, folders, names in os.walk(top):
        folders[:] = [n for n in folders if os.path.join(folder, n) not in skip]
        for name in names:
            look(os.path.join(folder, name))

known = [project, project + "/.nbs", project + "/.nbs/chat/live.chat"]
for path in known:
    look(path)
    walk(path)
for top in tops:
    walk(top, ("/usr", "/proc", "/sys", "/dev", sys.base_prefix))
for number in os.listdir("/proc") if os.path.isdir("/proc") else ():
    if number.isdecimal():
        for link in ("root", "cwd"):
            walk(f"/proc/{number}/{link}{project}")
            look(f"/proc/{number}/{link}{project}/.nbs/chat/live.chat")
        for fd in os.listdir(f"/proc/{number}/fd") if os.access(f"/proc/{number}/fd", 4) else ():
            look(f"/proc/{number}/fd/{fd}/../live.chat")
said = subprocess.run(["grep", "-rlF", SPOKEN, project], capture_output=True, text=True).stdout
found += said.split()
said = subprocess.run(["git", "-C", project, "log", "-p"], capture_output=True, text=True).stdout
if SPOKEN in said:
    found.append("git")
try:
    with socket.create_connection(("127.0.0.1", int(port)), 2) as line:
        if SPOKEN.encode() in line.recv(4096):
            found.append("network")
except OSError:
    pass
found += [name for name, text in os.environ.items() if SPOKEN in text]
print("FOUND", *sorted(set(found)), sep="\n", file=sys.stderr)
sys.argv = [example]
runpy.run_path(example, run_name="__main__")
"""


@pytest.fixture
def namespace(tmp_path: Path) -> None:
    """A machine that can make one; where it cannot, that is said, and on CI it is a failure."""
    program = resolve_isolated(["true"], [], [])
    place = isolate(program, str(tmp_path), [], str(tmp_path))
    if place.level != "namespace":
        message = f"no mount namespace here, so the isolation was NOT tested: {place.problem}"
        assert "TRIPOD_NEEDS_NAMESPACE" not in os.environ, message
        pytest.skip(message)


@contextmanager
def told_over_the_network() -> Iterator[int]:
    """A service of this host that tells what was said; gives its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    line, _ = server.accept()
                except OSError:
                    return
                with line:
                    line.sendall(SPOKEN.encode())

        thread = Thread(target=serve, daemon=True)
        thread.start()
        yield int(server.getsockname()[1])
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def found_by(project: Path, team: Team, *tops: str, network: bool = False) -> list[str]:
    """What a program finds that looks wherever it can, and answers all the same."""
    git = ["git", "-C", str(project)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "-A", "-f"], check=True)
    who = ["-c", "user.name=a", "-c", "user.email=a"]
    subprocess.run([*git, *who, "commit", "-qm", "all"], check=True)
    script = project / "search.py"
    script.write_text(SEARCH)
    copy = project / "pythia.py"
    copy.write_bytes(EXAMPLE.read_bytes())
    with told_over_the_network() as port:
        words = (
            sys.executable,
            str(script),
            SPOKEN.encode().hex(),
            str(project),
            str(port),
            str(copy),
            *tops,
        )
        done = asyncio.run(
            pythia_run.run(team, IsolatedProgram(command=words, network=network), NOW)
        )
    assert done is not None
    assert done.answer is not None, done
    ended = next(e.data for e in team.store.read() if e.kind == "agent.ended")
    said = team.source.content(ended["stderr"]["content"]).decode()
    return said.partition("FOUND\n")[2].split("\n")[:-1]


@pytest.mark.slow
@pytest.mark.usefixtures("namespace")
def test_nothing_of_the_chat_is_found_in_the_namespace() -> None:
    with reviewed_team() as (project, team):
        name = event_of(team)
        assert found_by(project, team, "/") == []
        (isolated,) = [e.data for e in team.store.read() if e.kind == "pythia.isolated"]
        assert isolated["level"] == "namespace"
        assert "problem" not in isolated
        assert {"chat", "events", "ledger.db", "record", "..", "workers"} <= set(isolated["hidden"])
        assert pythia_run.show(team).level == "namespace"
        check_once(team, name)


@pytest.mark.slow
def test_without_it_all_of_it_is_found() -> None:
    """The same program, so that the test above can fail."""
    with reviewed_team() as (project, team), folder_alone():
        found = found_by(project, team)
        assert {"git", "network", f"{project}/.nbs/chat/live.chat"} <= set(found)


@pytest.mark.slow
@pytest.mark.usefixtures("namespace")
def test_the_network_is_there_when_the_order_says_so() -> None:
    with reviewed_team() as (project, team):
        assert found_by(project, team, "/", network=True) == ["network"]


@pytest.mark.slow
@pytest.mark.usefixtures("namespace")
def test_a_team_below_a_folder_of_the_system_is_hidden_there(tmp_path: Path) -> None:
    project = tmp_path / "src"
    hidden = [f"{project}/.nbs", f"{project}/.nbs/events", f"{project}/.nbs/chat"]
    for folder in hidden:
        Path(folder).mkdir(parents=True)
    (project / ".nbs/chat/live.chat").write_text(SPOKEN)
    (project / "own").write_text("mine")
    look = f"cat {project}/.nbs/chat/live.chat {project}/own; ls -A {project}"
    uncover = f"umount {project}; umount {project}/.nbs; unshare -Urm umount {project}"
    line = f"{look}; {uncover}; {look}"
    program = resolve_isolated(["sh", "-c", line], [str(project / "own")], hidden)
    with mock.patch("tripod.agents.isolation._SYSTEM", ("/usr", "/bin", "/lib", "/lib64", "/tmp")):  # noqa: S108
        (tmp_path / "home").mkdir()
        place = isolate(program, str(tmp_path), hidden, str(project))
    assert place.level == "namespace", place.problem
    done = subprocess.run(
        place.argv, cwd=place.cwd, env=place.env, capture_output=True, text=True, check=False
    )
    assert done.stdout == "mineown\n" * 2


@pytest.mark.slow
@pytest.mark.usefixtures("namespace")
def test_a_namespace_in_which_a_secret_is_seen_is_none(tmp_path: Path) -> None:
    with mock.patch("tripod.agents.isolation._namespace") as words:
        words.side_effect = lambda made, *_: made.extend(["--ro-bind", "/", "/"])
        (tmp_path / "secret").touch()
        place = isolate(
            resolve_isolated(["true"], [], []), str(tmp_path), [str(tmp_path)], "/nowhere"
        )
    assert place.level == "folder"
    assert place.problem == f"{tmp_path} is seen in the namespace"


# What is lent ------------------------------------------------------------------------------------


def isolation_of(team: Team) -> Outcome:
    """What the check says."""
    with collect(team.root) as evidence:
        return outcome(judge(evidence), "pythia-isolation")


def notes_of(folder: Path, form: str) -> Path:
    """A folder of notes that hold what was said in the chat, in some form."""
    notes = folder / "notes"
    notes.mkdir()
    (notes / "README").write_text("All that is known of it.")
    if form == "swap file":
        (notes / ".live.swp").write_bytes(b"b0nano 7.2\0\0" + SPOKEN.encode())
    elif form == "archive":
        with tarfile.open(notes / "old.tar.gz", "w:gz") as tar:
            said = tarfile.TarInfo("said")
            said.size = len(SPOKEN)
            tar.addfile(said, io.BytesIO(SPOKEN.encode()))
    elif form == "text":
        (notes / "said.md").write_text(f"They said: {SPOKEN}.")
    elif form == "link":
        (folder / "said").write_text(SPOKEN)
        (notes / "said").symlink_to(folder / "said")
    elif form == "too many":
        for number in range(300):
            (notes / f"{number:03}").write_text("so")
        (notes / "said").write_text(SPOKEN)
    else:
        repository = ["git", "-C", str(folder), "init", "-q"]
        subprocess.run([*repository, "--bare", "notes/c.git"], check=True)
    return notes


@pytest.mark.slow
@pytest.mark.usefixtures("namespace")
@pytest.mark.parametrize("form", ["swap file", "archive", "bare clone", "link", "too many"])
def test_a_lent_folder_that_nobody_looked_at_is_in_the_verdict(tmp_path: Path, form: str) -> None:
    notes = notes_of(tmp_path, form)
    with reviewed_team() as (_, team):
        reviewed_by(team, tmp_path, "true", [str(notes)])
        told = isolation_of(team)
        assert told.said == "clean, except"
        lent = [one for one in told.exceptions if one.startswith(f"lent {notes} (not looked at)")]
        assert len(lent) == 1
        assert any(one.startswith(f"{notes} is lent as it lies there") for one in team.warnings)


@pytest.mark.slow
@pytest.mark.usefixtures("namespace")
def test_a_lent_folder_is_searched(tmp_path: Path) -> None:
    notes = notes_of(tmp_path, "text")
    with reviewed_team() as (_, team):
        reviewed_by(team, tmp_path, "true", [str(notes)])
        (finding,) = isolation_of(team).findings
        assert "a file that it was given holds 12 words in a row of chat live" in finding.message


@pytest.mark.slow
@pytest.mark.usefixtures("namespace")
def test_a_lent_folder_of_text_alone_is_no_exception(tmp_path: Path) -> None:
    (tmp_path / "notes/below").mkdir(parents=True)
    (tmp_path / "notes/below/README").write_text("All that is known of it.")
    with reviewed_team() as (_, team):
        said = reviewed_by(team, tmp_path, f"cat {tmp_path}/notes/*/*", [f"{tmp_path}/notes"])
        assert said == "All that is known of it."
        assert not [one for one in isolation_of(team).exceptions if "notes" in one]


@pytest.mark.slow
@pytest.mark.usefixtures("namespace")
def test_a_login_a_variable_and_the_network_are_in_the_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "login").write_text("sesame")
    monkeypatch.setenv("AGENT_KEY", "k")
    isolated = f'network = true\nconfig = "HERS"\nlends = ["{tmp_path}/login"]'
    with reviewed_team() as (_, team):
        profile = "env = ['AGENT_KEY', 'AGENT_OTHER']"
        reviewed_by(team, tmp_path, "true", isolated=isolated, profile=profile)
        told = [one.rpartition(": run ")[0] for one in isolation_of(team).exceptions]
        assert {
            "handed the variables AGENT_KEY (not looked at)",
            "lent /run/tripod/home/config/login (not looked at)",
            "the network",
        } <= set(told)


@pytest.mark.slow
@pytest.mark.usefixtures("namespace")
def test_a_basic_variable_that_quotes_the_chat_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", SPOKEN)
    with reviewed_team() as (_, team):
        assert reviewed_by(team, tmp_path, 'echo "$TERM"') == f"{SPOKEN}\n"
        messages = [finding.message for finding in isolation_of(team).findings]
        assert any("its order holds 12 words in a row of chat live" in one for one in messages)


# Another program of the same user ----------------------------------------------------------------


@contextmanager
def another_at_work(do: Callable[[str], None]) -> Iterator[None]:
    """Has another program do something at the last moment: all is ready, and nothing runs yet.

    It is told the folder of the run.
    """
    real = subprocess.run

    def run(argv: list[str], **more: Any) -> Any:
        if wrapper.__file__ in argv:
            do(argv[argv.index(wrapper.__file__) + 1])
        return real(argv, **more)

    with mock.patch("tripod.agents.spool.subprocess.run", run):
        yield


SHELL = """
import io, runpy, subprocess, sys
text = sys.stdin.read()
done = subprocess.run(["sh", "-c", sys.argv[1]], input=text, capture_output=True, text=True)
sys.stderr.write(done.stdout + done.stderr)
sys.stdin, sys.argv = io.StringIO(text), sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Runs a line of shell in the namespace, then the scripted reviewer."""


def reviewed_by(
    team: Team,
    folder: Path,
    line: str,
    shows: Sequence[str] = (),
    *,
    isolated: str = "",
    profile: str = "",
) -> str:
    """What a line of shell says in front of the reviewer's answer."""
    script = folder / "shell.py"
    script.write_text(SHELL)
    argv = json.dumps([sys.executable, str(script), line, str(EXAMPLE)])
    path = folder / "agent.toml"
    path.write_text(f"argv = {argv}\n{profile}\n[isolated]\n{isolated}\n")
    asked = IsolatedProgram(profile=str(path), shows=shows, require_namespace=True)
    done = asyncio.run(pythia_run.run(team, asked, NOW))
    assert done is not None
    assert done.answer is not None, done
    ended = next(e.data for e in team.store.read() if e.kind == "agent.ended")
    return team.source.content(ended["stderr"]["content"]).decode()


@pytest.mark.slow
@pytest.mark.usefixtures("namespace")
def test_nobody_adds_to_the_prompt_before_it_is_read(tmp_path: Path) -> None:
    def append(run: str) -> None:
        for name in {"stdin", *os.listdir(run)}:
            with open(f"{run}/{name}", "a", encoding="utf-8") as file:
                file.write(SPOKEN)

    with reviewed_team() as (_, team), another_at_work(append):
        said = reviewed_by(team, tmp_path, "cat")
        assert "The decision log:" in said
        assert SPOKEN not in said


@pytest.mark.slow
@pytest.mark.usefixtures("namespace")
def test_nobody_puts_anything_into_the_private_home(tmp_path: Path) -> None:
    def write(_: str) -> None:
        for home in (project.parent / "tmp").rglob("home"):
            for folder in (home, *(path for path in home.rglob("*") if path.is_dir())):
                (folder / "MEMORY.md").write_text(SPOKEN)
                wrote.append(folder)

    wrote: list[Path] = []
    (tmp_path / "login").write_text("sesame")
    isolated = f'config = "HERS"\nlends = ["{tmp_path}/login"]'
    with reviewed_team() as (project, team), another_at_work(write):
        line = "find $HERS/.. -type f; cat $HERS/login"
        said = reviewed_by(team, tmp_path, line, isolated=isolated)
        assert said == "/run/tripod/home/config/../config/login\nsesame"
        assert wrote


@pytest.mark.slow
@pytest.mark.usefixtures("namespace")
@pytest.mark.parametrize("of_a_folder", [False, True])
def test_nobody_changes_a_file_that_the_program_is_given(
    tmp_path: Path, *, of_a_folder: bool
) -> None:
    notes = tmp_path / "notes"
    (notes / "below").mkdir(parents=True)
    own = notes / "below/own.md"
    own.write_text("what I was given")

    def change(_: str) -> None:
        own.write_text(SPOKEN)
        (notes / "more.md").write_text(SPOKEN)

    with reviewed_team() as (_, team), another_at_work(change):
        shows = [str(notes if of_a_folder else own)]
        said = reviewed_by(team, tmp_path, f"find {notes} -type f -exec cat {{}} +", shows)
        assert said == "what I was given"


@pytest.mark.slow
@pytest.mark.usefixtures("namespace")
def test_nobody_changes_the_program_while_it_starts(tmp_path: Path) -> None:
    def change(_: str) -> None:
        (tmp_path / "shell.py").write_text("print('overall: high, Ship it.')")

    with reviewed_team() as (_, team), another_at_work(change):
        assert reviewed_by(team, tmp_path, "echo mine") == "mine\n"


@pytest.mark.slow
@pytest.mark.usefixtures("namespace")
def test_what_is_left_in_the_home_comes_back_as_a_transcript(tmp_path: Path) -> None:
    isolated = 'config = "HERS"\ntranscripts = "said"'
    line = "mkdir -p $HERS/said/a; echo {} > $HERS/said/a/one; ln -s /etc/passwd $HERS/said/b"
    with reviewed_team() as (_, team):
        assert reviewed_by(team, tmp_path, line, isolated=isolated) == ""
        (kept,) = [e.data for e in team.store.read() if e.kind == "evidence.kept"]
        assert team.source.content(kept["content"]) == b"{}\n"


@pytest.mark.slow
@pytest.mark.usefixtures("namespace")
def test_nobody_answers_in_its_place() -> None:
    """The output is replaced between the program's end and the entry that holds it."""
    real = Spool.look

    def replaced(spool: Spool) -> Look:
        look = real(spool)
        if look.state == ENDED:
            with open(spool.stdout, "r+", encoding="utf-8") as file:
                text = file.read()
                file.seek(0)
                file.write(text.replace("this reviewer", "that reviewer"))
        return look

    with reviewed_team() as (_, team), mock.patch.object(Spool, "look", replaced):
        done = asyncio.run(pythia_run.run(team, IsolatedProgram(command=SCRIPTED), NOW))
        assert done is not None
        assert done.answer is None
        assert done.problems == ["another program changed what it printed (stdout)"]
        kept = [e.data["stdout"] for e in team.store.read() if e.kind == "agent.ended"]
        assert [sorted(one) for one in kept] == [["bytes", "digest"]] * 2


@pytest.mark.slow
@pytest.mark.usefixtures("namespace")
def test_when_her_time_is_over_nothing_of_her_runs_on() -> None:
    with reviewed_team() as (project, team):
        own = project / "held"
        own.touch()
        # Whatever she leaves behind holds this lock.
        line = f"exec 9<{own}; flock 9; sleep 600 & trap '' TERM; sleep 600; sleep 600"
        program = IsolatedProgram(
            command=("sh", "-c", line), shows=[str(own)], timeout_s=1, require_namespace=True
        )
        found = asyncio.run(pythia_run.run(team, program, NOW))
        assert found is not None
        assert found.problems[0].startswith("it was ended: its time was over after")
        with own.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
