"""``tripod push`` and ``tripod pull``, as teams use them: bare repositories in between."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from clones import put_back
from doors.inside import TRIPOD
from git_repo import Git
from hostile import Canary, plant
from replicas import Clone, Snapshot, begun, joined_replica, name_of, place_in, replica_in
from schedules import KilledError

from tripod.ledger.files import FileLock, hold_file_lock
from tripod.ledger.kinds.merged import peer_view
from tripod.peers import merge, pull, remote
from tripod.peers import push as pushing
from tripod.peers.roster import read_roster
from tripod.projections.pythia.checkpoint import uncovered_decisions
from tripod.team.team import Team
from tripod.trust.seal import seal
from tripod.verify.anchors import git as git_module
from tripod.verify.anchors.git import Repository
from tripod.verify.peers.refs import OWN, REMOTES


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """The clone in which a team was begun and pushed, and one that joined."""
    folder = place_in(tmp_path_factory)
    begun(Clone(folder, "anna"))
    joined_replica(folder, "ben")
    return Snapshot(folder)


@pytest.fixture
def place(made: Snapshot) -> Path:
    """The folder of the clones and their remote, as it was made."""
    return made.put_back()


@pytest.fixture
def anna(place: Path) -> Clone:
    """The clone in which the team was begun; it was pushed."""
    return Clone(place, "anna")


@pytest.fixture
def ben(place: Path) -> Clone:
    """A clone that joined."""
    return Clone(place, "ben")


def decide(clone: Clone, title: str) -> None:
    clone.said("scribe", "log", title, "-r", "It works.", "-p", clone.name, "--no-ref", "a test")


def remote_refs(clone: Clone) -> dict[str, str]:
    listed = Git(clone.remote, made=False)("for-each-ref", "--format=%(refname) %(objectname)")
    return dict(line.split(" ") for line in listed.splitlines())


def refs(clone: Clone) -> str:
    return clone.git("for-each-ref")


def refs_named(clone: Clone, text: str) -> list[str]:
    names = clone.git("for-each-ref", "--format=%(refname)").split()
    return [name for name in names if text in name]


# The story --------------------------------------------------------------------------------------


def test_two_clones_exchange_what_they_recorded(anna: Clone, ben: Clone) -> None:
    decide(ben, "Serve tea")
    ben.said("chat", "send", "live", "ben", "Tea is ready.")
    ben.said("chat", "send", "live", "ben", "Really.")
    assert ben.said("push").startswith(f"pushed {name_of(ben)}: ")
    told = anna.said("pull")
    assert f"pulled {name_of(ben)}: " in told
    assert "(1 decision, 2 messages" in told
    assert "; a new peer, taken at first use" in told
    assert "Serve tea" in anna.said("scribe", "query")
    assert "Tea is ready." in anna.said("chat", "read", "live")
    size = len(anna.said("log").splitlines())
    assert anna.said("pull") == "nothing new from origin\n"
    assert len(anna.said("log").splitlines()) == size
    decide(anna, "Serve coffee")
    assert ", " in anna.said("push")
    ben.said("pull")
    assert "Serve coffee" in ben.said("scribe", "query")
    for clone in (anna, ben):
        assert clone.git("status", "--porcelain", "--untracked-files=all") == ""
        clone.said("verify")


def test_refs_of_our_own_are_never_a_destination_of_a_pull(anna: Clone, ben: Clone) -> None:
    own = f"{OWN}{name_of(anna)}"
    before = anna.git("rev-parse", own)
    ben.git("push", "--quiet", "--force", "origin", f"HEAD:{own}")
    done = anna.run("pull")
    assert done.code == 1
    assert b"there is no seal" in done.out
    assert anna.git("rev-parse", own) == before


def test_a_push_of_nothing_new_says_so(anna: Clone) -> None:
    assert "nothing new" in anna.said("push")
    before = remote_refs(anna)
    assert "nothing new" in anna.said("push")
    assert remote_refs(anna) == before


def test_json(anna: Clone, ben: Clone) -> None:
    decide(ben, "Serve tea")
    pushed = json.loads(ben.said("push", "--json"))
    assert pushed["replica"] == name_of(ben)
    assert (pushed["remote"], pushed["ref"], pushed["problem"]) == (
        "origin", f"{OWN}{name_of(ben)}", "",
    )  # fmt: skip
    pulled = {
        one["replica"]: one for one in map(json.loads, anna.said("pull", "--json").split("\n")[:-1])
    }
    assert pulled[name_of(ben)]["kinds"]["decision.logged"] == 1
    assert pulled[name_of(ben)]["size"] == pulled[name_of(ben)]["sealed"] == pushed["size"]
    assert pulled[name_of(anna)]["taken"] == 0


def test_a_dry_run_changes_nothing(anna: Clone, ben: Clone) -> None:
    decide(ben, "Serve tea")
    for text in ("one", "two"):
        before = remote_refs(anna), refs(ben)
        planned = ben.said("push", "--dry-run")
        assert (remote_refs(anna), refs(ben)) == before
        assert ben.said("push") == planned.replace("would be ", "")
        assert "nothing new" in ben.said("push", "--dry-run")
        ben.said("chat", "send", "live", "ben", text)
    ben.said("push")
    objects = sorted(Path(anna.git.root, ".git/objects").rglob("*"))
    size, named = len(anna.said("log").splitlines()), refs(anna)
    for words in ((), ("--read-only",)):
        assert f"would pull {name_of(ben)}: " in anna.said(*words, "pull", "--dry-run")
        told = anna.said(*words, "push", "--dry-run")
        assert f"would be pushed {name_of(anna)}: {size - 1} entries, nothing new" in told
    assert (len(anna.said("log").splitlines()), refs(anna)) == (size, named)
    assert sorted(Path(anna.git.root, ".git/objects").rglob("*")) == objects
    assert f"pulled {name_of(ben)}: " in anna.said("pull")


def test_limits_stop_a_peer_by_name(anna: Clone, ben: Clone) -> None:
    decide(ben, "Serve tea")
    ben.said("push")
    done = anna.run("pull", "--max-entries", "1")
    assert done.code == 1
    assert b"--max-entries" in done.out
    anna.said("pull")


# Remotes ----------------------------------------------------------------------------------------


def test_a_remote_is_a_name_a_path_or_the_only_one(anna: Clone, ben: Clone, place: Path) -> None:
    decide(ben, "Serve tea")
    other = Git(place / "other.git", made=False)
    other.root.mkdir()
    other("init", "--quiet", "--bare")
    ben.said("push", str(other.root))
    assert f"pulled {name_of(ben)}" in anna.said("pull", str(other.root))
    assert f"{REMOTES}other-git-" in refs(anna)
    # A record that was merged is passed on to a remote that lacks it, forward only.
    assert f"{OWN}{name_of(ben)}" not in remote_refs(anna)
    anna.git("remote", "rename", "origin", "up")
    assert f"passed on {name_of(ben)}" in anna.said("push")
    assert f"{OWN}{name_of(ben)}" in remote_refs(anna)
    assert "passed on" not in anna.said("push", "up")
    third = Git(place / "third.git", made=False)
    third.root.mkdir()
    third("init", "--quiet", "--bare")
    decide(ben, "Serve cake")
    ben.said("push", str(third.root))
    newest = third("rev-parse", f"{OWN}{name_of(ben)}")
    told = anna.said("push", str(third.root))
    assert f"{name_of(ben)} was not passed on: {third.root} has more of it" in told
    assert third("rev-parse", f"{OWN}{name_of(ben)}") == newest
    # One that was fetched and not merged is not passed on, and neither is one of a closed peer.
    fourth = Git(place / "fourth.git", made=False)
    fourth.root.mkdir()
    fourth("init", "--quiet", "--bare")
    assert anna.run("pull", str(third.root), "--max-entries", "1").code == 1
    for ref in (f"{REMOTES}up/{name_of(ben)}", *refs_named(anna, "other-git-")):
        anna.git("update-ref", "-d", ref)
    assert "passed on" not in anna.said("push", str(fourth.root))
    anna.said("pull", str(third.root))
    anna.said("peer", "close", name_of(ben), "--reason", "Gone")
    assert "passed on" not in anna.said("push", str(fourth.root))
    anna.said("peer", "accept", name_of(ben), "--reason", "Back")
    assert "passed on" in anna.said("push", str(fourth.root))
    anna.git("remote", "add", "down", str(other.root))
    done = anna.run("pull")
    assert (done.code, "down, up" in done.err) == (2, True)
    done = anna.run("pull", "dwon")
    assert (done.code, "(the remotes here: down, up)" in done.err) == (3, True)
    anna.git("remote", "remove", "up")
    anna.git("remote", "remove", "down")
    done = anna.run("push")
    assert (done.code, "has no remote" in done.err) == (1, True)


def test_a_host_that_takes_no_refs_outside_of_branches(anna: Clone, ben: Clone) -> None:
    for ref in remote_refs(anna):
        if ref.startswith(OWN):
            Git(anna.remote, made=False)("update-ref", "-d", ref)
    refuse_other_refs(anna)
    decide(ben, "Serve tea")
    done = ben.run("push")
    assert (done.code, "git config tripod.refs" in done.err) == (1, True), done
    for clone in (anna, ben):
        clone.git("config", "tripod.refs", "refs/heads/tripod/")
    ben.said("push")
    assert f"refs/heads/tripod/{name_of(ben)}" in remote_refs(ben)
    assert f"pulled {name_of(ben)}" in anna.said("pull")


def test_a_remote_that_cannot_store_it_is_not_taken_for_one_of_branches_alone(anna: Clone) -> None:
    host = Git(anna.remote, made=False)
    host("config", "receive.maxInputSize", "1")
    anna.said("chat", "send", "live", "anna", "too much for it")
    done = anna.run("push")
    assert (done.code, "It could not store it" in done.err) == (1, True), done
    assert "tripod.refs" not in done.err
    host("config", "--unset", "receive.maxInputSize")
    assert f"pushed {name_of(anna)}" in anna.said("push")


def test_a_team_among_the_branches_from_its_beginning_to_a_lost_ledger(tmp_path: Path) -> None:
    anna, ben = Clone(tmp_path, "anna"), Clone(tmp_path, "ben")
    refuse_other_refs(anna)
    anna.said("init")
    anna.said("chat", "create", "live")
    where = "git config tripod.refs refs/heads/tripod/"
    assert where in anna.run("push").err
    anna.git("config", "tripod.refs", "refs/heads/tripod/")
    anna.said("push")
    for words in (("init", "--from", "origin"), ("init", "--from", str(anna.remote))):
        done = ben.run(*words)
        assert (done.code, where in done.err) == (1, True), done
    assert not ben.database.exists()
    ben.git("config", "tripod.refs", "refs/heads/tripod/")
    ben.said("init", "--from", "origin")
    decide(ben, "Serve tea")
    ben.said("push")
    ben.git("config", "--unset", "tripod.refs")
    for ref in refs(ben).splitlines():
        if REMOTES in ref:
            ben.git("update-ref", "-d", ref.split("\t")[1])
    done = ben.run("pull")
    assert (done.code, where in done.err) == (1, True), done
    ben.git("config", "tripod.refs", "refs/heads/tripod/")
    anna.said("pull")
    anna.said("hooks", "install")
    with anna.at_home():
        decide(anna, "Serve coffee")
        anna.git("commit", "--allow-empty", "-m", "tea")
    for clone in (anna, ben):
        clone.said("push")
        assert not [ref for ref in refs(clone).splitlines() if OWN in ref]
    assert all(ref.startswith("refs/heads/") for ref in remote_refs(anna))
    ben.said("pull")
    for clone in (anna, ben):
        clone.said("verify")
        assert "Serve coffee" in clone.said("scribe", "query")
        assert clone.git("status", "--porcelain", "--untracked-files=all") == ""
    shutil.rmtree(anna.database.parent)
    shutil.rmtree(anna.root)
    for command in ("verify", "bus check", "init"):
        done = anna.run(*command.split())
        assert done.code, command
        assert "refs/heads/tripod/anna-" in done.err + done.out.decode(), (command, done)
    assert "Restored: " in anna.said("restore")
    anna.said("verify")
    assert "Serve tea" in anna.said("scribe", "query")
    anna.said("push")


def refuse_other_refs(clone: Clone) -> None:
    """Have the remote take branches and nothing else."""
    hook = clone.remote / "hooks/update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text('#!/bin/sh\ncase "$1" in refs/heads/*) ;; *) exit 1;; esac\n', encoding="utf-8")
    hook.chmod(0o755)


def test_a_clone_that_was_fetched_in_part_is_told_how_to_fetch_the_whole(
    anna: Clone, place: Path
) -> None:
    Git(anna.remote, made=False)("config", "uploadpack.allowFilter", "true")
    cleo = anna.elsewhere(place / "cleo", place / "home-c")
    cleo.git.root.mkdir()
    cleo.git("clone", "--quiet", "--filter=blob:none", f"file://{anna.remote}", ".")
    cleo.fetch()
    whole = f"git fetch --refetch --no-filter REMOTE '+{OWN}*:{REMOTES}REMOTE/*'"
    done = cleo.run("verify")
    assert (done.code, f"{REMOTES}origin/{name_of(anna)}: " in done.out.decode()) == (3, True), done
    assert whole in done.out.decode()
    done = cleo.run("init")
    assert (done.code, whole in done.err) == (1, True), done
    assert not cleo.database.exists()
    cleo.git(*whole.replace("REMOTE", "origin").replace("'", "").split()[1:])
    cleo.said("verify")
    cleo.said("init")
    cleo.said("push")
    cleo.said("verify")


def test_without_a_repository_there_is_nothing_to_exchange_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from doors.inside import run

    monkeypatch.setenv("TRIPOD_AS", "anna")
    (tmp_path / "alone").mkdir()
    assert run(tmp_path / "alone", "init", "--key").code == 0
    done = run(tmp_path / "alone", "pull")
    assert "no git repository around it" in done.err
    assert done.code


@pytest.mark.parametrize("command", ["push", "pull", "init"])
def test_the_wait_for_another_exchange_is_none_of_the_remote_s_time(
    anna: Clone, place: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    made: list[git_module._Watch] = []

    class Noted(git_module._Watch):
        def __init__(self, seconds: float) -> None:
            super().__init__(seconds)
            made.append(self)

    @contextmanager
    def wait_long(path: str) -> Iterator[FileLock]:
        made[-1]._expire()
        with hold_file_lock(path) as lock:
            yield lock

    monkeypatch.setattr(git_module, "_Watch", Noted)
    monkeypatch.setattr(remote, "hold_file_lock", wait_long)
    clone = Clone(place, "cleo") if command == "init" else anna
    clone.said(command, *(("--from", "origin") if command == "init" else ()), "--timeout", "86400")
    assert {one.seconds for one in made} >= {86400}


@pytest.mark.parametrize("words", [("push",), ("pull",), ("init", "--from", "origin")])
def test_a_remote_that_hangs_or_is_not_there(
    anna: Clone, place: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    anna.said("chat", "send", "live", "anna", "hello")
    clone = Clone(place, "cleo") if words[0] == "init" else anna
    monkeypatch.setenv("GIT_SSH_COMMAND", "/bin/sleep 600; :")
    clone.git("remote", "set-url", "origin", "ssh://example.invalid/shop")
    done = clone.run(*words, "--timeout", "1")
    assert (done.code, "did not end within 1 s" in done.err) == (3, True), done
    assert "`--timeout S`" in done.err
    clone.git("remote", "set-url", "origin", "../gone.git")
    done = clone.run(*words)
    assert (done.code, "origin: " in done.err) == (3, True), done
    # What was recorded stands, and the next push gives it.
    clone.git("remote", "set-url", "origin", str(anna.remote))
    clone.said(*words)
    clone.said("push")


@pytest.fixture
def verbs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The verbs of git that are run from now on."""
    found: list[str] = []
    start = Repository._start

    def noting(repository: Repository, *words: str, **rest: Any) -> Any:
        found.append(words[0])
        return start(repository, *words, **rest)

    monkeypatch.setattr(Repository, "_start", noting)
    return found


def test_what_is_wrong_with_the_team_is_told_before_what_is_wrong_with_the_remote(
    anna: Clone, verbs: list[str]
) -> None:
    shutil.rmtree(anna.remote)
    done = anna.run("pull")
    assert (done.code, "nothing was taken" in done.err) == (3, True), done
    assert verbs == ["fetch"], "a remote that gives no answer is not asked again"
    for path in anna.database.parent.glob("ledger.db*"):
        path.write_bytes(b"garbage")
    done = anna.run("pull")
    assert str(anna.database) in done.err, done
    assert "nothing was taken" not in done.err


@pytest.mark.parametrize("command", ["push", "pull"])
def test_a_remote_without_an_address_is_named(anna: Clone, command: str) -> None:
    anna.git("config", "remote.origin.url", "")
    done = anna.run(command)
    assert (done.code, "origin has no address" in done.err) == (1, True), done


def test_locks_that_a_killed_git_left_are_named_with_their_path(anna: Clone, ben: Clone) -> None:
    own = f"{OWN}{name_of(anna)}"
    git = anna.git.root / ".git"
    decide(ben, "Serve tea")
    ben.said("push")
    for lock, command in (
        (git / f"{own}.lock", "push"),
        (git / f"{REMOTES}origin/{name_of(anna)}.lock", "push"),
        (git / f"{REMOTES}origin/{name_of(ben)}.lock", "pull"),
        (anna.remote / f"{own}.lock", "push"),
    ):
        anna.said("chat", "send", "live", "anna", "again")
        lock.parent.mkdir(exist_ok=True, parents=True)
        lock.write_bytes(b"")
        done = anna.run(command)
        assert done.code, lock
        named = lock.relative_to(anna.remote) if lock.is_relative_to(anna.remote) else lock
        assert str(named) in done.err, (lock, done)
        assert "hint" not in done.err
        assert "remove" in done.err
        lock.unlink()
        anna.said(command)
    anna.said("verify")


def test_exchanges_of_two_work_trees_wait_for_each_other(
    anna: Clone, ben: Clone, place: Path
) -> None:
    ben.git("worktree", "add", "--quiet", str(place / "other"))
    env = os.environ | {"TRIPOD_HOME": str(ben.home), "TRIPOD_AS": "ben"}
    for number in range(2):
        for clone in (anna, ben):
            clone.said("chat", "send", "live", clone.name, f"Tea number {number}.")
        anna.said("push")
        started = [
            subprocess.Popen([TRIPOD, command], cwd=at, env=env, stderr=subprocess.PIPE)
            for command in ("push", "pull")
            for at in (ben.git.root, place / "other")
        ]
        for one in started:
            told = one.communicate()[1]
            assert one.returncode == 0, told
    anna.said("pull")
    for clone in (anna, ben):
        read = clone.said("chat", "read", "live")
        assert [read.count(f"number {number}.") for number in range(2)] == [2] * 2
        clone.said("verify")


@pytest.mark.parametrize("command", ["push", "pull"])
def test_who_waits_for_another_exchange_says_for_whom_and_can_be_stopped(
    anna: Clone, command: str
) -> None:
    env = os.environ | {"TRIPOD_HOME": str(anna.home), "TRIPOD_AS": "anna"}
    start = partial(subprocess.Popen, [TRIPOD, command], cwd=anna.git.root, env=env, text=True,
                    stderr=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
    with hold_file_lock(f"{anna.database.parent}/exchange.lock") as lock:
        lock.name_holder()
        goes_on, stopped = start(), start()
        for one in (goes_on, stopped):
            assert one.stderr is not None
            told = one.stderr.readline()
            assert f"(process {os.getpid()})" in told
            assert "Ctrl-C" in told
        stopped.send_signal(signal.SIGINT)
        stopped.communicate()
        assert stopped.returncode != 0
        assert goes_on.poll() is None
    said, told = goes_on.communicate()
    assert (goes_on.returncode, told) == (0, ""), told
    assert said
    anna.said("verify")


def _interrupted(running: subprocess.Popen[str]) -> str:
    """Interrupt a program as somebody does who sees no effect: again after some seconds.

    Python drops a KeyboardInterrupt that comes while it runs the callback of a weak reference.
    """
    for _ in range(5):
        running.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            return running.communicate(timeout=10)[1]
    running.kill()
    return running.communicate()[1]


_INTERRUPTED = """
import os, signal, sys

class Interrupts:
    def find_spec(self, name, *_):
        if name == "orjson":
            os.kill(os.getpid(), signal.SIGINT)

from tripod.cli import remote
assert "orjson" not in sys.modules
sys.meta_path.insert(0, Interrupts())
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    remote._import_pull()
except KeyboardInterrupt:
    print("orjson" in sys.modules, "tripod.peers.pull" in sys.modules)
"""


def test_an_interrupt_waits_until_orjson_is_imported() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True False\n", "")


def test_who_is_stopped_in_a_fetch_leaves_nothing_running(anna: Clone, place: Path) -> None:
    pid = place / "pid"
    anna.git("remote", "set-url", "origin", "ssh://example.invalid/shop")
    env = os.environ | {
        "TRIPOD_HOME": str(anna.home),
        "GIT_SSH_COMMAND": f"echo $$ >{pid}.new; mv {pid}.new {pid}; exec sleep 600; :",
    }
    running = subprocess.Popen(
        # A shell that started these tests in the background has it ignore the signal.
        ["env", "--default-signal=INT", TRIPOD, "pull"],
        cwd=anna.git.root, env=env, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    until = time.monotonic() + 30
    while not pid.exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    told = _interrupted(running)
    assert (running.returncode, told.splitlines()[-1:]) == (130, ["tripod: stopped"])
    until = time.monotonic() + 30
    while Path("/proc", pid.read_text(encoding="utf-8").strip()).exists():
        assert time.monotonic() < until, "git goes on"
        time.sleep(0.01)
    anna.git("remote", "set-url", "origin", str(anna.remote))
    anna.said("pull")


# Histories that part ----------------------------------------------------------------------------


def test_a_redaction_replaces_what_the_remote_has(anna: Clone, ben: Clone) -> None:
    anna.said("chat", "send", "live", "anna", "my password is hunter2")
    anna.said("push")
    assert "hunter2" in Git(anna.remote, made=False)("grep", "hunter2", f"{OWN}{name_of(anna)}")
    anna.said("redact", "--match", "hunter2", "--reason", "a secret")
    anna.said("push")
    tip = remote_refs(anna)[f"{OWN}{name_of(anna)}"]
    bare = Git(anna.remote, made=False)
    assert bare("rev-list", "--count", tip) == "1"
    assert anna.git("rev-parse", f"{REMOTES}origin/{name_of(anna)}") == tip
    ben.said("pull")
    ben.said("verify")


def moving(monkeypatch: pytest.MonkeyPatch, clone: Clone, ref: str, to: str, nth: int) -> None:
    """Somebody moves a ref of the remote just before the ``nth`` time that git pushes to it."""
    real = remote.ask_remote
    pushes: list[str] = []

    def ask(repository: Repository, at: remote.Remote, *words: str, **more: Any) -> bytes:
        pushes.extend(words[:1] if words[0] == "push" else ())
        if words[0] == "push" and len(pushes) == nth:
            Git(clone.remote, made=False)("update-ref", ref, to)
        return real(repository, at, *words, **more)

    monkeypatch.setattr(pushing, "ask_remote", ask)


def test_what_somebody_pushed_while_a_ref_was_replaced_stays(
    anna: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna.said("chat", "send", "live", "anna", "my password is hunter2")
    anna.said("push")
    anna.said("redact", "--match", "hunter2", "--reason", "a secret")
    ref, bare = f"{OWN}{name_of(anna)}", Git(anna.remote, made=False)
    theirs = bare("commit-tree", f"{ref}^{{tree}}", "-p", ref, "-m", "meanwhile").strip()
    moving(monkeypatch, anna, ref, theirs, 2)
    assert "Somebody pushed meanwhile: push again" in anna.refused("push")
    assert remote_refs(anna)[ref] == theirs


def test_a_record_that_came_back_meanwhile_is_not_given_back(
    anna: Clone, ben: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ben has an earlier one of Anna's than she pushes while he looks."""
    ref, bare = f"{OWN}{name_of(anna)}", Git(anna.remote, made=False)
    decide(anna, "Serve tea")
    anna.said("push")
    newer = remote_refs(anna)[ref]
    bare("update-ref", "-d", ref)
    moving(monkeypatch, anna, ref, newer, 1)
    ben.said("push")
    assert remote_refs(anna)[ref] == newer
    bare("update-ref", "-d", ref)
    older = ben.git("rev-parse", f"{REMOTES}origin/{name_of(anna)}").strip()
    assert older != newer
    ben.said("push")  # nobody else gives it back
    assert remote_refs(anna)[ref] == older


def test_an_older_backup_and_a_copied_disk_are_named(anna: Clone, ben: Clone, place: Path) -> None:
    old = place / "old.db"
    shutil.copy2(anna.database, old)
    decide(anna, "Serve coffee")
    anna.said("push")
    before = remote_refs(anna)
    shutil.copy2(old, anna.database)
    shutil.rmtree(anna.root)  # its files show more than the older ledger
    anna.git("update-ref", "-d", f"{OWN}{name_of(anna)}")
    os.rename(anna.home / "seals", anna.home / "seals-away")
    done = anna.run("push")
    assert (done.code, "an older database was put back" in done.err) == (1, True), done
    assert remote_refs(anna) == before
    anna.said("chat", "create", "another")  # now the copy goes on by itself
    with anna.team() as team:
        seal(team, "asked")
    done = anna.run("push")
    assert done.code == 1
    assert "holds something else" in done.err
    assert remote_refs(anna) == before
    done = anna.run("pull")
    assert (done.code, b"this very replica" in done.out) == (1, True), done


def test_a_peer_whose_remote_state_is_older_is_no_failure(anna: Clone, ben: Clone) -> None:
    old = remote_refs(anna)[f"{OWN}{name_of(anna)}"]
    decide(anna, "Serve coffee")
    anna.said("push")
    ben.said("pull")
    Git(anna.remote, made=False)("update-ref", f"{OWN}{name_of(anna)}", old)
    assert "older state" in ben.said("pull")
    ben.said("verify")


# Strangers --------------------------------------------------------------------------------------


def push_beside(clone: Clone) -> None:
    """Give a remote of another team this one's record, as git itself does on purpose."""
    clone.said("seal")
    clone.git("push", "--quiet", "origin", f"{OWN}{name_of(clone)}")


def test_a_first_push_to_the_remote_of_another_team_is_refused(
    anna: Clone, ben: Clone, place: Path
) -> None:
    ben.said("push")
    eve = Clone(place, "eve")
    eve.said("init", "--new")
    before, own = remote_refs(anna), refs(eve)
    for option in ([], ["--dry-run"]):
        done = eve.run("push", *option)
        assert done.code == 1, done
        for told in (
            name_of(anna),
            name_of(ben),
            replica_in(anna)[0],
            replica_in(eve)[0],
            "--from origin",
        ):
            assert told in done.err, told
    assert remote_refs(anna) == before
    assert REMOTES not in refs(eve), own
    push_beside(eve)
    assert "nothing new" not in eve.said("push"), "it is there on purpose"
    fay = Clone(place, "fay")
    fay.said("init", "--new")
    for chosen in ([], ["--team-id", "x"]):
        done = fay.run("init", "--from", "origin", *chosen)
        assert done.code == 1, done
        for told in (name_of(anna), replica_in(eve)[0], "`tripod init --team-id ID`"):
            assert told in done.err, told
    told = fay.said("init", "--from", "origin", "--team-id", replica_in(eve)[0][:-1])
    assert f"Joined the team {replica_in(eve)[0]}" in told
    assert replica_in(fay)[0] == replica_in(eve)[0]
    fay.said("push")
    gus = Clone(place, "gus")
    assert "the records here are of the team" in gus.run("init", "--from", "origin").err
    said = gus.said("init", "--from", "origin", "--team-id", replica_in(anna)[0])
    assert f"Joined the team {replica_in(anna)[0]}" in said
    assert name_of(eve) not in said
    assert "the team" not in gus.run("init").err, "what is another team's is passed over"
    gus.said("push")
    ben.said("pull")
    ben.said("verify")


def test_another_team_on_the_same_remote_is_named_and_fails_no_pull(
    anna: Clone, ben: Clone, place: Path
) -> None:
    eve = Clone(place, "eve")
    eve.said("init", "--new")
    push_beside(eve)
    size = size_of(ben)
    said = ben.said("pull")
    assert f"{name_of(eve)}: it is a replica of the team" in said
    assert size_of(ben) == size
    assert ben.run("pull").code == 0, "at every pull"
    lone = eve.run("pull")
    assert lone.code == 1, "of two teams, the one without a peer may have been begun by mistake"
    assert b"tripod init --from" in lone.out
    bare = Git(anna.remote, made=False)
    bare("update-ref", f"{OWN}{name_of(anna)}", remote_refs(anna)[f"{OWN}{name_of(eve)}"])
    assert ben.run("pull").code == 1, "under the name of a replica of this team it is a failure"


def test_refs_that_hold_something_else_are_named_and_left(anna: Clone, ben: Clone) -> None:
    bare = Git(anna.remote, made=False)
    blob = bare("hash-object", "-w", "--stdin", given=b"hello\n")
    link = bare("mktree", given=b"120000 blob %b\tcheckpoint\n" % blob.encode())
    module = bare("mktree", "--missing", given=b"160000 commit %b\ttile\n" % (b"1" * 40))
    dots = bare("hash-object", "-t", "tree", "-w", "--stdin", "--literally",
                given=b"100644 ../checkpoint\0" + bytes.fromhex(blob))  # fmt: skip
    for number, tree in enumerate((link, module, dots)):
        commit = bare("commit-tree", tree, "-m", "x")
        bare("update-ref", f"{OWN}eve-{number:016x}", commit)
    bare("update-ref", f"{OWN}eve-{9:016x}", blob)
    bare("update-ref", f"{OWN}caf\u00e9\u202e", bare("rev-parse", "HEAD"))
    bare("update-ref", f"{OWN}a/b-{0:016x}", bare("rev-parse", "HEAD"))
    decide(ben, "Serve tea")
    ben.said("push")
    done = anna.run("pull")
    told = done.out.decode()
    assert done.code == 1
    assert f"pulled {name_of(ben)}" in told, "the others go on"
    for number in (0, 1, 2, 9):
        assert f"eve-{number:016x}: " in told
    assert "it is no record of a replica" in told
    assert "\u202e" not in told
    assert not (anna.git.root / "checkpoint").exists()
    assert "Serve tea" in anna.said("scribe", "query")


def test_a_huge_seal_is_not_read(anna: Clone) -> None:
    bare = Git(anna.remote, made=False)
    huge = bare("hash-object", "-w", "--stdin", given=b"x" * 2_000_000)
    tree = bare("mktree", given=b"100644 blob %b\tcheckpoint\n" % huge.encode())
    bare("update-ref", f"{OWN}eve-{0:016x}", bare("commit-tree", tree, "-m", "x"))
    done = anna.run("pull")
    assert (done.code, b"it is not read" in done.out) == (1, True), done


def test_no_hook_and_no_program_of_the_repository_is_run(
    anna: Clone, ben: Clone, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = Canary(place / "canary")
    decide(ben, "Serve tea")
    ben.git("config", "remote.origin.uploadpack", str(canary.program))
    with pytest.raises(AssertionError):
        ben.git("fetch", "origin")
    assert canary.fired, "so a canary sings"
    canary.mark.unlink()
    for clone in (anna, ben):
        plant(clone.git, canary, str(clone.remote))
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}")
    ben.said("push")
    anna.said("pull")
    anna.said("pull", "--dry-run")
    anna.said("push")
    assert "Serve tea" in anna.said("scribe", "query")
    assert canary.fired == ""
    plant(anna.git, canary, f"ext::{canary.program}")
    for word in ("pull", "push"):
        assert "names a program" in anna.run(word).err
    assert canary.fired == ""


def test_of_a_remote_s_programs_those_of_the_user_alone_are_run(
    anna: Clone, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user's own configuration counts, and the remote's repository runs its own hooks."""
    canary, users = Canary(place / "canary"), Canary(place / "users")
    plant(anna.git, canary, "ssh://host.invalid/team.git")
    (place / "config").write_text(f"[core]\n\tsshCommand = {users.program}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(place / "config"))
    for word in ("pull", "push"):
        assert anna.run(word).code == 3
    assert users.fired.count("host.invalid git-") == 2, users.fired
    plant(anna.git, canary, str(anna.remote))
    hook = anna.remote / "hooks/post-receive"
    hook.parent.mkdir(exist_ok=True)
    shutil.copy(users.program, hook)
    decide(anna, "Serve tea")
    anna.said("push")
    assert "post-receive" in users.fired
    assert canary.fired == ""


# Rest -------------------------------------------------------------------------------------------


def size_of(clone: Clone) -> int:
    with clone.team() as team:
        return team.store.size


@pytest.mark.drawn
@pytest.mark.parametrize("count", [2, 3, 4])
def test_clones_that_only_push_and_pull_come_to_rest(tmp_path: Path, count: int) -> None:
    clones: list[Clone] = []
    for name in ("anna", "ben", "cleo", "dora")[:count]:
        clone = Clone(tmp_path, name)
        clone.said("init", *(("--from", "origin") if clones else ()))
        clone.said("push")
        clones.append(clone)
    for clone in clones:
        decide(clone, f"{clone.name} decides")
    for _ in range(3):
        for clone in clones:
            clone.said("push")
            clone.said("pull")
    for clone in clones:
        clone.said("push")
    held, sizes = remote_refs(clones[0]), [size_of(clone) for clone in clones]
    for clone in clones:
        assert clone.said("pull") == "nothing new from origin\n"
        assert clone.said("push").count("nothing new") == 1
    assert (remote_refs(clones[0]), [size_of(clone) for clone in clones]) == (held, sizes)
    for clone in clones:
        told = clone.said("scribe", "query")
        assert all(f"{one.name} decides" in told for one in clones)


def test_what_a_peer_merged_vouches_before_it_is_taken(anna: Clone, ben: Clone) -> None:
    ben.said("push")
    anna.said("pull")
    anna.said("peer", "accept", name_of(ben), "--reason", "We met.")
    decide(anna, "Serve tea")
    anna.said("push")
    size = size_of(anna)
    ben.said("pull")
    ben.said("push")
    assert anna.said("pull") == "nothing new from origin\n"
    assert size_of(anna) == size
    told = anna.said("verify", "-v")
    (reach,) = re.findall(f"PEERED by {name_of(ben)} up to entry ([0-9]+)", told)
    assert int(reach) == size - 2, "all but the entry of the seal"
    # With the next entry that Ben makes, what he merged comes along.
    ben.said("chat", "send", "live", "ben", "Tea is ready.")
    ben.said("push")
    assert "(1 message, 1 event)" in anna.said("pull")
    with anna.team() as team:
        kinds = [peer_view(one, team.store.blob).kind for one in team.store.read(size)]
    assert kinds.count("peer.merged") == 2, "one of Ben's, one of Anna's"


def test_bookkeeping_is_read_once(anna: Clone, ben: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    ben.said("push")
    anna.said("pull")
    decide(anna, "Serve tea")
    anna.said("push")
    ben.said("pull")
    ben.said("push")
    assert anna.said("pull") == "nothing new from origin\n"
    monkeypatch.setattr(merge, "merge_record", None)
    assert anna.said("pull") == "nothing new from origin\n"
    # Whom an older ledger knows less of is read again.
    monkeypatch.undo()
    (seen,) = anna.database.parent.glob("*.seen")
    seen.write_bytes(b"0 \n" + seen.read_bytes().partition(b"\n")[2])
    assert anna.said("pull") == "nothing new from origin\n"
    seen.write_bytes(b"\xff")
    assert anna.said("pull") == "nothing new from origin\n"


def test_a_pull_of_nothing_new_runs_git_once(anna: Clone, ben: Clone, verbs: list[str]) -> None:
    def pulls_nothing(*words: str) -> list[str]:
        verbs.clear()
        assert anna.said("pull", *words) == "nothing new from origin\n"
        return list(verbs)

    ben.said("push")
    anna.said("pull")
    assert pulls_nothing() == ["fetch"]
    # What no note says is read, and noted.
    noted = anna.database.parent / "pulled-seals.json"
    held = noted.read_bytes()
    for damaged in (b"\xff", b"[]", b"{}", b'{"a": 1}', b'{"a": "b"}'):
        noted.write_bytes(damaged)
        assert pulls_nothing() == ["fetch", "cat-file"]
        assert pulls_nothing() == ["fetch"]
    assert json.loads(noted.read_bytes()) == json.loads(held)
    noted.unlink()
    assert "cat-file" in pulls_nothing("--dry-run")
    assert not noted.exists()
    # A ref that moved is read.
    decide(ben, "Serve tea")
    ben.said("push")
    assert "1 decision" in anna.said("pull")
    assert pulls_nothing() == ["fetch"]
    # However many refs hold another's record, git is not started for each.
    remote = Git(ben.remote, made=False)
    for number in range(9):
        remote("update-ref", f"{OWN}eve-{number:016x}", remote_refs(ben)[f"{OWN}{name_of(ben)}"])
    verbs.clear()
    assert anna.run("pull").out.count(b"the record on this ref is that of ben-") == 9
    assert len(verbs) <= 4, verbs


def test_an_older_ledger_takes_again_what_it_lacks_of_a_seal_that_was_read(
    anna: Clone, ben: Clone, place: Path
) -> None:
    ben.said("push")
    anna.said("pull")
    old = place / "old.db"
    anna.said("backup", str(old))
    decide(ben, "Serve tea")
    ben.said("push")
    anna.said("pull")
    decide(anna, "Serve coffee")
    anna.said("push")
    ben.said("pull")
    ben.said("push")
    assert anna.said("pull") == "nothing new from origin\n"
    assert list(anna.database.parent.glob("*.seen"))
    noted = (anna.database.parent / "pulled-seals.json").read_bytes()
    put_back(anna.database, old)
    shutil.rmtree(anna.root)  # its files show more than the older ledger
    anna.git("update-ref", "-d", f"{OWN}{name_of(anna)}")
    shutil.rmtree(anna.home / "seals")
    assert (anna.database.parent / "pulled-seals.json").read_bytes() == noted
    done = anna.run("pull")
    assert (done.code, f"pulled {name_of(ben)}: " in done.out.decode()) == (1, True), done
    assert "an older database was put back" in done.out.decode()
    assert "Serve tea" in anna.said("scribe", "query")


def test_long_bookkeeping_is_taken(
    anna: Clone, ben: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    ben.said("push")
    anna.said("pull")
    decide(anna, "Serve tea")
    anna.said("push")
    ben.said("pull")
    ben.said("push")
    monkeypatch.setattr(merge, "_LONG", 5)
    assert f"pulled {name_of(ben)}: 2 new entries" in anna.said("pull")
    for clone in (anna, ben, anna):
        clone.said("push")
        clone.said("pull")
    assert ben.said("pull") == anna.said("pull") == "nothing new from origin\n"


def test_a_peer_that_rewrites_what_was_seen_of_it_is_a_fork(
    anna: Clone, ben: Clone, place: Path
) -> None:
    decide(ben, "Serve soup")
    ben.said("push")
    anna.said("pull")
    before = place / "before.db"
    ben.said("backup", str(before))
    decide(anna, "Serve tea")
    anna.said("push")
    ben.said("pull")
    ben.said("push")
    assert anna.said("pull") == "nothing new from origin\n"
    first = anna.git("rev-parse", f"{REMOTES}origin/{name_of(ben)}").strip()
    put_back(ben.database, before)
    shutil.rmtree(ben.home / "seals")
    ben.git("update-ref", "-d", f"{OWN}{name_of(ben)}")
    ben.said("rebuild", "--take-in", "I begin again")
    decide(ben, "Serve another soup")
    decide(ben, "Serve a third soup")
    ben.push()
    size = size_of(anna)
    done = anna.run("pull")
    assert done.code == 1
    told = "it contradicts itself: its record is another than the one that it sealed before"
    assert f"{name_of(ben)}: {told}" in done.out.decode()
    assert done.out.decode().count(f"{name_of(ben)}: ") == 1
    assert size_of(anna) <= size + 2, "the fork, and a seal"
    shown = anna.said("peer", "show", name_of(ben))
    note = anna.git("show", f"{first}:checkpoint")
    assert note.split("\n")[2] in shown, "the seal that was seen and not merged is the proof"


def test_a_record_is_passed_on_with_bookkeeping_behind_it(
    anna: Clone, ben: Clone, place: Path
) -> None:
    decide(ben, "Serve tea")
    ben.said("push")
    anna.said("pull")
    decide(anna, "Serve coffee")
    anna.said("push")
    ben.said("pull")
    ben.said("push")
    anna.said("pull")
    other = Git(place / "other.git", made=False)
    other.root.mkdir()
    other("init", "--quiet", "--bare")
    assert f"passed on {name_of(ben)}" in anna.said("push", str(other.root))


# Reviews ----------------------------------------------------------------------------------------


def asked(clone: Clone) -> list[str]:
    """The payloads of the checkpoint events that this clone holds, whoever published them."""
    with clone.team() as team:
        sql = "SELECT seq FROM events WHERE type = 'pythia-checkpoint' ORDER BY seq"
        bodies = team.source.each_body_of(sql)
        return [team.source.content(body["payload"]).decode() for body in bodies]


@pytest.fixture
def three(place: Path, anna: Clone, ben: Clone) -> list[Clone]:
    """Clones with an interval of five decisions."""
    cleo = Clone(place, "cleo")
    cleo.said("init", "--from", "origin")
    for clone in (anna, ben, cleo):
        (clone.root / "events/config.yaml").write_text("pythia-interval: 5\n")
        clone.said("sync")
    return [anna, ben, cleo]


def rounds(*clones: Clone) -> str:
    """Each pushes, pulls and pushes by turns; what the pulls said."""
    told = ""
    for clone in clones:
        clone.said("push")
        told += clone.said("pull")
        clone.said("push")
    return told


@pytest.mark.drawn("long")
def test_a_puller_asks_for_the_review_that_no_replica_reached_alone(three: list[Clone]) -> None:
    anna, ben, cleo = three
    for clone in three:
        decide(clone, f"{clone.name} decides")
        decide(clone, f"{clone.name} decides again")
    assert "published" not in rounds(cleo, ben), "Ben has three of Cleo's and his own"
    assert not asked(ben)
    said = rounds(anna)
    assert "no replica's checkpoint covered these decisions" in said
    (payload,) = asked(anna)
    with anna.team() as team:
        origins = [one.origin for one in read_roster(team.store).values()]
        seqs = [seq for (seq,) in team.store.db.execute(
            "SELECT seq FROM pieces WHERE made IS NULL")]  # fmt: skip
        mine = f"{team.store.origin} {', '.join(map(str, seqs))}"
    assert mine in payload
    assert all(origin in payload for origin in origins)
    # Whoever has the event knows that they are covered; everybody comes to rest again.
    for _ in range(3):
        assert "published" not in rounds(ben, cleo, anna)
    assert [len(asked(clone)) for clone in three] == [1, 1, 1]
    for clone in three:
        assert "covered by no replica" not in clone.run("verify").out.decode()
    # One more of each, and two of Ben's: the count began anew.
    for clone in (*three, ben):
        decide(clone, f"{clone.name} decides once more")
    assert "published" not in rounds(ben, cleo, anna, ben, cleo, anna)
    decide(cleo, "the fifth")
    assert rounds(cleo).count("published") == 1, "one was decided here since the last pull"
    assert "published" not in rounds(ben, anna, cleo)
    assert [len(asked(clone)) for clone in three] == [2, 2, 2]


def test_a_checkpoint_of_a_peer_covers_what_the_peer_had(three: list[Clone]) -> None:
    anna, ben, _ = three
    for number in range(3):
        decide(anna, f"Serve tea {number}")
    rounds(anna, ben)
    for number in range(5):
        decide(ben, f"Serve soup {number}")
    assert len(asked(ben)) == 1, "Ben's own fifth decision"
    decide(anna, "Serve coffee")
    assert "published" not in rounds(ben, anna)
    assert len(asked(anna)) == 1
    with anna.team() as team:
        left = uncovered_decisions(team.source, team.store.size)
        titles = [team.source.body(one.seq)["title"] for one in left]
    assert titles == ["Serve coffee"]


def test_a_review_that_no_pull_asked_for_is_a_warning(
    three: list[Clone], monkeypatch: pytest.MonkeyPatch
) -> None:
    anna, ben, cleo = three
    for clone in (cleo, ben):
        for number in range(3):
            decide(clone, f"{clone.name} decides {number}")
    rounds(cleo)
    ben.said("push")
    monkeypatch.setattr(pull, "_ask", lambda _: "")
    rounds(anna)
    done = anna.run("verify")
    assert done.code == 0
    told = done.out.decode()
    assert "6 decisions of 2 replicas are covered by no replica's checkpoint" in told
    monkeypatch.undo()
    decide(anna, "Serve coffee")
    assert "published" in rounds(anna)
    assert "covered by no replica" not in anna.run("verify").out.decode()


def test_a_pull_of_nothing_new_writes_what_a_killed_one_left_unwritten(
    anna: Clone, ben: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna.said("sync")  # its files are copies, which it looks at once
    ben.said("chat", "send", "live", "ben", "Tea is ready.")
    ben.said("push")
    monkeypatch.setattr(Team, "_write_files", mock.Mock(side_effect=KilledError))
    with pytest.raises(KilledError), anna.team() as team:
        pull.pull(team)
    monkeypatch.undo()
    file = anna.root / "chat/live.chat"
    before = file.read_bytes()
    size = size_of(anna)
    assert anna.said("pull") == "nothing new from origin\n"
    assert file.read_bytes() != before
    assert size_of(anna) <= size + 2, "an event of the bus, and a seal at most"
    anna.said("verify")
