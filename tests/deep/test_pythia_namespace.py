"""In the mount namespace nothing that holds the chat exists, whatever her program tries."""

import asyncio
import fcntl
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from unittest import mock

import pytest
from reviewed import EXAMPLE, NOW, SPOKEN, check_once, event_of, folder_alone, reviewed_team

from projections.projection import content_bytes
from tripod import pythia
from tripod.agents.isolated import isolate, resolve
from tripod.team import Team

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
    program = resolve(["true"], [], [])
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
        done = asyncio.run(pythia.run(team, pythia.Program(command=words, network=network), NOW))
    assert done is not None
    assert done.answer is not None, done
    ended = next(e.data for e in team.store.read() if e.kind == "agent.ended")
    said = content_bytes(team.source, ended["stderr"]["content"]).decode()
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
        assert pythia.show(team).level == "namespace"
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
    program = resolve(["sh", "-c", line], [str(project / "own")], hidden)
    with mock.patch("tripod.agents.isolated._SYSTEM", ("/usr", "/bin", "/lib", "/lib64", "/tmp")):  # noqa: S108
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
    with mock.patch("tripod.agents.isolated._namespace") as words:
        words.return_value = ["--ro-bind", "/", "/"]
        (tmp_path / "secret").touch()
        place = isolate(resolve(["true"], [], []), str(tmp_path), [str(tmp_path)], "/nowhere")
    assert place.level == "folder"
    assert place.problem == f"{tmp_path} is seen in the namespace"


@pytest.mark.slow
@pytest.mark.usefixtures("namespace")
def test_when_her_time_is_over_nothing_of_her_runs_on() -> None:
    with reviewed_team() as (project, team):
        own = project / "held"
        own.touch()
        # Whatever she leaves behind holds this lock.
        line = f"exec 9<{own}; flock 9; sleep 600 & trap '' TERM; sleep 600; sleep 600"
        program = pythia.Program(
            command=("sh", "-c", line), shows=[str(own)], timeout_s=1, require_namespace=True
        )
        found = asyncio.run(pythia.run(team, program, NOW))
        assert found is not None
        assert found.problems[0].startswith("it was ended: its time was over after")
        with own.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
