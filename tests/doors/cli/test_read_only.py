"""``tripod --read-only``, and disks that cannot be written: looking changes no byte anywhere."""

import ctypes
import importlib
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from doors.inside import TRIPOD, Done, commands, run, run_as
from git_repo import Git
from hostile import Canary, plant
from nbs_team import unpack

from tripod.cli.commands import (
    FLAG,
    TOP,
    ChoiceParam,
    CommandGroup,
    NbsProgram,
    NumberParam,
    Param,
    Verb,
)
from tripod.cli.nbs import nbs_grammar
from tripod.ledger.files import READ_ONLY
from tripod.ledger.sqlite.reader import SQLiteReader, read_only
from tripod.ledger.sqlite.store import SQLiteStore
from tripod.output import DOORS
from tripod.team.team import Team

PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1
GOLDEN = Path(__file__).resolve().parents[2] / "golden"
ELSEWHERE = "ELSEWHERE"
"""Stands in a command for a folder that is no part of the team."""

LOOKING = {
    "bus check": ["--reader", "bob"],
    "bus read": ["EVENT"],
    "bus status": [],
    "chat read": ["live", "--unread", "bob"],
    "chat search": ["live", "hello"],
    "chat mentions": ["bob"],
    "chat participants": ["live"],
    "chat count": ["live"],
    "chat delete": ["live", "--after", "1d", "--dry-run"],
    "scribe query": ["files"],
    "scribe show": ["DECISION"],
    "scribe inbox": [],
    "scribe count": [],
    "scribe summary": [],
    "decisions summary": [],
    "scribe advise": [],
    "worker status": ["WORKER"],
    "worker list": [],
    "worker results": ["WORKER", "--answer"],
    "worker search": ["WORKER", "."],
    "peer list": [],
    "peer show": ["ann"],
    "pythia due": [],
    "pythia show": [],
    "nova list": [],
    "nova status": ["which"],
    "nova metrics": [],
    "nova show": ["which"],
    "nova compare": ["which", "which"],
    "log": [],
    "query": ["SELECT count(*) FROM log"],
    "diff": [".", "."],
    "show": [],
    "verify": [],
    "adopt-log": ["DECISIONS.md", "--dry-run"],
    "push": ["../remote.git", "--dry-run"],
    "pull": ["../remote.git", "--dry-run"],
    "import": ["--dry-run", "../session.jsonl"],
    "audit": ["--bundle", f"{ELSEWHERE}/bundle"],
    "report": ["--output", f"{ELSEWHERE}/report.html"],
    "exposure": ["../session.jsonl"],
    "where": [],
    "doctor": [],
    "completion": ["bash"],
    "redact": ["--match", "hello", "--dry-run", "--reason", "why"],
    "backup": [f"{ELSEWHERE}/copy.db"],
    "key show": [],
    "actor list": [],
    "anchor list": [],
    "witness show": ["../witness"],
    "prove": ["1"],
    "export": [f"{ELSEWHERE}/export"],
}
"""Every command that looks, with arguments by which it has something to do."""
NOT_ZERO = {"pythia show": 1, "peer show": 1}
"""There is no assessment, and no peer."""
MORE = [
    ["show", "1"],
    ["show", "chat", "--at", "3"],
    ["show", "1", "--bounds"],
    ["verify", ".git/tripod/ledger.db"],
    ["log", "--json"],
    ["bus", "check", "--json"],
]


class Place(NamedTuple):
    """A project with a team at work, all of whose parts have something to show."""

    root: Path
    words: dict[str, str]
    """What stands in a command for the name of something in the team."""

    def arguments(self, words: list[str], elsewhere: Path) -> list[str]:
        names = self.words | {ELSEWHERE: str(elsewhere)}
        return [names.get(word, word.replace(ELSEWHERE, str(elsewhere))) for word in words]


def made(folder: Path) -> Place:
    """A team with a key, a worker that ended, a witness, and bytes of another program."""
    os.environ["TRIPOD_HOME"] = str(folder / "home")  # the fixture of each test sets it back
    project = folder / "project"
    git = Git(project)

    def done(*arguments: str) -> str:
        ended = run(project, *arguments)
        assert ended.code == 0, ended.err
        return ended.out.decode().strip()

    (folder / "session.jsonl").write_text('{"type": "summary", "summary": "Tea"}\n')
    done("init", "--scribe", "ann", "--key")
    done("chat", "create", "live")
    done("chat", "send", "live", "ann", "@bob hello, let us use files")
    done("chat", "read", "live", "--unread", "bob")
    done("chat", "send", "live", "ann", "and more")
    decision = done("scribe", "log", "Files", "-p", "ann", "-r", "They last", "--ref", "live#0")
    event = done("bus", "publish", "ann", "task", "high", "all of it")
    done("bus", "check", "--reader", "bob")
    done("bus", "publish", "eve", "task", "high", "more of it")
    worker = done("worker", "spawn", "job", ".", "a task", "--", "/bin/cat").split()[-1]
    done("worker", "watch", "--timeout", "60")
    assert run(project, "nova", "process", "Which?", "--", "/bin/false").code == 1
    done("actor", "enrol", "ann")
    witness = done("witness", "new", str(folder / "witness"), "--name", "example.org/w")
    assert witness
    done("witness", "trust", str(folder / "witness"), done("key", "show").splitlines()[0])
    done("anchor", "witness", str(folder / "witness"))
    bare = Git(folder / "remote.git", made=False)
    bare.root.mkdir()
    bare("init", "--quiet", "--bare")
    done("push", str(bare.root))
    done("seal")
    (project / "DECISIONS.md").write_text("## Serve tea\n\nNobody asked for coffee.\n")
    git("commit", "--quiet", "--allow-empty", "--message", "work")
    chat = project / ".nbs/chat/live.chat"
    with chat.open("ab") as file:
        file.write(b"Ym9iOiBmcm9tIGFub3RoZXIgcHJvZ3JhbQ==\n")
    (project / ".nbs/chat/live.chat.cursors").write_text("bob=0\n")
    name = decision.split()[0]
    return Place(project, {"EVENT": event, "DECISION": name, "WORKER": worker})


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Place:
    home = os.environ["TRIPOD_HOME"]
    try:
        return made(tmp_path_factory.mktemp("built"))
    finally:
        os.environ["TRIPOD_HOME"] = home


@pytest.fixture
def place(built: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A copy of it, with the home and the witness beside."""
    shutil.copytree(built.root.parent, tmp_path / "all", symlinks=True)
    monkeypatch.setenv("TRIPOD_HOME", str(tmp_path / "all/home"))
    return Place(tmp_path / "all/project", built.words)


def snapshot(folder: Path) -> dict[str, tuple[object, ...]]:
    """Names, kinds, modes, times and bytes of all that lies in a folder."""
    found: dict[str, tuple[object, ...]] = {}
    for path in (folder, *sorted(folder.rglob("*"))):
        stat = path.lstat()
        data = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        name = str(path.relative_to(folder))
        found[name] = (stat.st_mode, stat.st_ino, stat.st_size, stat.st_mtime_ns, data)
    return found


def changed(folder: Path, before: dict[str, tuple[object, ...]]) -> list[str]:
    after = snapshot(folder)
    return sorted(n for n in after.keys() | before.keys() if after.get(n) != before.get(n))


def verbs() -> Iterator[tuple[str, Verb]]:
    """Every command of ``tripod`` by its words."""
    for name, top in TOP.items():
        found = importlib.import_module(f"tripod.cli.{top.module}").COMMANDS[name]
        if isinstance(found, CommandGroup):
            yield from ((f"{name} {verb.name}", verb) for verb in found.verbs if verb.page)
        else:
            yield name, found


VERBS = dict(verbs())


def test_each_command_is_classed() -> None:
    assert set(VERBS) == {" ".join(words) for words, _ in commands()}
    assert {name for name, verb in VERBS.items() if verb.item("looks")} - {"chat export"} == {
        *LOOKING
    }
    for verb in VERBS.values():
        rule, _, options = (verb.item("looks") or "with").partition(" ")
        names = {name for param in verb.params for name in param.names}
        assert rule in ("always", "unless", "with")
        assert set(options.split()) <= names, verb.name


def test_looking_changes_no_byte(place: Place, tmp_path: Path) -> None:
    """With the option: of the team, its repository and the user's own folder."""
    before = snapshot(place.root.parent)
    pending = 0
    for words in [[*name.split(), *rest] for name, rest in LOOKING.items()] + MORE:
        done = run(place.root, "--read-only", *place.arguments(words, tmp_path))
        assert changed(place.root.parent, before) == [], words
        assert done.code == NOT_ZERO.get(" ".join(words[:2]), NOT_ZERO.get(words[0], 0)), done
        assert done.err.count("\n") <= 3, done.err
        pending += "pending, and left as it is: 1 " in done.err
    assert pending > 10
    assert (tmp_path / "copy.db").exists()
    assert (tmp_path / "export/checkpoint").exists()
    assert not set(tmp_path.iterdir()) - {
        tmp_path / n for n in ("all", "bundle", "copy.db", "export", "report.html")
    }


VERIFY = [
    [], ["--json"], ["-v"], ["--no-git"], ["--since", "HEAD"], ["--policy-from", "HEAD"],
    ["--grow-only", ".nbs/scribe/log.md"], ["--accepted"], ["--select", "append-only"],
]  # fmt: skip
"""The forms of ``verify``; git is asked in most of them."""


def test_nothing_that_a_repository_names_is_run_by_looking(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by its configuration, attributes, hooks and files, whatever the command."""
    canary = Canary(tmp_path / "canary")
    git = Git(place.root, made=False)
    git("config", "core.fsmonitor", str(canary.program))
    git("status")
    assert canary.fired, "so a canary sings"
    canary.mark.unlink()
    replica = git("for-each-ref", "--format=%(refname)", "refs/tripod")
    git("update-ref", f"{replica}".replace("refs/tripod/", "refs/tripod-remotes/x/"), replica)
    plant(git, canary, str(tmp_path / "nowhere"))
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}")
    codes = {}
    forms = [["verify", *words] for words in VERIFY] + [["diff", replica, "."], *MORE]
    for words in [[*name.split(), *rest] for name, rest in LOOKING.items()] + forms:
        done = run(place.root, *place.arguments(words, tmp_path))
        codes[" ".join(words)] = done.code
        assert canary.fired == "", words
    assert sum(not code for code in codes.values()) > 45, codes
    assert 2 not in codes.values(), codes
    (place.root / ".git/tripod/ledger.db").unlink()
    for words in (["verify"], ["doctor"], ["where"], ["log"], ["chat", "read", "live"]):
        run(place.root, *words)  # by the refs, and what there is to do
        assert canary.fired == "", words


def test_what_is_pending_is_said_and_taken_in_later(place: Place) -> None:
    shown = run(place.root, "--read-only", "chat", "read", "live")
    assert b"from another program" not in shown.out
    assert "pending, and left as it is: 1 chat.header-seen, 1 chat.sent\n" in shown.err
    assert b"from another program" in run(place.root, "chat", "read", "live").out
    assert run(place.root, "--read-only", "chat", "read", "live").err == ""


def test_what_is_shown_does_not_count_as_read(place: Place) -> None:
    first = run(place.root, "--read-only", "chat", "read", "live", "--unread", "bob")
    again = run(place.root, "--read-only", "chat", "read", "live", "--unread", "bob")
    assert first.out == again.out != b""
    assert "not noted as read by bob" in again.err


def value(param: Param) -> str:
    if isinstance(param.kind, NumberParam):
        return str(max(1, param.kind.least))
    return param.kind.words[0] if isinstance(param.kind, ChoiceParam) else "x"


def needed(verb: Verb) -> list[str]:
    """Arguments without which a command is a wrong one."""
    words = []
    for param in verb.params:
        if not param.names and not param.spelling.startswith("["):
            words.append(value(param))
        elif param.names and param.required:
            words += [param.names[0], value(param)]
    return words


def acting() -> Iterator[tuple[str, list[str]]]:
    """Every call that acts: commands, and the options by which a command that looks acts."""
    for name, verb in VERBS.items():
        rule, _, options = (verb.item("looks") or "with").partition(" ")
        if rule == "with":
            yield name, needed(verb)
        for option in options.split() if rule == "unless" else ():
            (param,) = (one for one in verb.params if option in one.names)
            yield name, [*needed(verb), option, *([] if param.kind is FLAG else [value(param)])]


def is_refused(done: Done, code: int) -> bool:
    said = done.err.splitlines()
    return (
        done.code == code and done.out == b"" and len(said) == 1 and "nothing was done" in said[0]
    )


def test_acting_is_refused_before_anything_is_touched(place: Place) -> None:
    before = snapshot(place.root.parent)
    for name, arguments in acting():
        done = run(place.root, "--read-only", *name.split(), *arguments)
        code = DOORS.get(name.split()[0], DOORS[""]).general
        assert is_refused(done, code), (name, arguments, done)
    assert changed(place.root.parent, before) == []
    nowhere = place.root.parent
    assert is_refused(run(nowhere, "--read-only", "init"), 1)
    assert changed(place.root.parent, before) == []


def test_a_copy_is_written_elsewhere_alone(place: Place) -> None:
    before = snapshot(place.root.parent)
    for words in (["backup", "copy.db"], ["backup", ".nbs/copy.db"], ["export", ".nbs/record"]):
        done = run(place.root, "--read-only", *words)
        assert done.code == 1
        assert "write the copy elsewhere" in done.err
    assert changed(place.root.parent, before) == []


NBS_TEXTS = {
    "nbs-bus": {"dir": ".nbs/events", "event": "EVENT"},
    "nbs-chat": {"file": ".nbs/chat/live.chat", "pattern": "hello", "handle": "bob"},
    "nbs-scribe": {"log": ".nbs/scribe/log.md"},
    "nbs-scribe-log": {"log": ".nbs/scribe/log.md"},
    "nbs-worker": {"name": "WORKER"},
}


def nbs_calls(program: NbsProgram) -> Iterator[tuple[Verb, list[str]]]:
    """Every command of an ``nbs-*`` program, with a value for each text that it needs."""
    known = NBS_TEXTS.get(program.name, {})
    for verb in program.verbs:
        if verb.nbs is None:
            continue
        takes = nbs_grammar(verb.nbs)
        words = [known.get(text, "1") for text in takes.texts]
        yield verb, words if program.only else [verb.name, *words]


def test_the_original_tools_obey_the_variable(
    place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(READ_ONLY, "1")
    before = snapshot(place.root.parent)
    looked = 0
    for module in ("bus", "chat", "scribe", "worker"):
        for program in importlib.import_module(f"tripod.cli.{module}").PROGRAMS:
            for verb, words in nbs_calls(program):
                done = run_as(program.name, place.root, *place.arguments(words, tmp_path))
                assert changed(place.root.parent, before) == [], (program.name, words)
                rule = (verb.item("looks") or "with").split()[0]
                if rule == "with":
                    assert "nothing was done" in done.err, (program.name, words, done)
                else:
                    looked += done.code == 0
    query = run_as("nbs-scribe-query", place.root, "--chat=.nbs/chat/live.chat", "--count")
    assert query.code == 0, query.err
    assert looked > 10
    assert changed(place.root.parent, before) == []


def test_the_variable_may_be_switched_off(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for said in ("", "0"):
        monkeypatch.setenv(READ_ONLY, said)
        assert run(place.root, "bus", "ack-all").code == 0


def test_the_option_is_over_with_its_command(place: Place) -> None:
    assert run(place.root, "--read-only", "where").code == 0
    assert READ_ONLY not in os.environ


# Disks -------------------------------------------------------------------------------------------


def _bow_to_modes() -> None:
    """Let the next program obey the permission bits even where root runs the tests."""
    ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0)


def judged_script(place: Place, elsewhere: Path) -> str:
    """All commands in one process: what starts a process for each is slow."""
    calls = [
        [name, *place.arguments(rest, elsewhere)]
        for name, rest in LOOKING.items()
        if name != "completion"
    ]
    return (
        "import os, sys\n"
        "from tripod.cli import main\n"
        "if os.access('.nbs', os.W_OK): sys.exit('it can be written')\n"
        f"allowed = {NOT_ZERO!r}\n"
        f"for name, *rest in {calls!r}:\n"
        "    try:\n"
        "        main([*name.split(), *rest])\n"
        "    except SystemExit as left:\n"
        "        if left.code != allowed.get(name, 0): sys.exit(f'{name}: {left.code}')\n"
    )


def judge_looking(place: Place, elsewhere: Path, wrapped: list[str], **how: object) -> str:
    before = snapshot(place.root.parent)
    elsewhere.mkdir()
    done = subprocess.run(  # type: ignore[call-overload]
        [*wrapped, sys.executable, "-c", judged_script(place, elsewhere)],
        cwd=place.root,
        capture_output=True,
        check=False,
        text=True,
        timeout=300,
        **how,
    )
    if "it can be written" in done.stderr:
        pytest.skip("no way to take the permission to write from a program here: NOT TESTED")
    assert done.returncode == 0, (done.stdout[-1000:], done.stderr[-1000:])
    assert changed(place.root.parent, before) == []
    return str(done.stdout + done.stderr)


def close_all(folder: Path) -> list[Path]:
    """Take every permission to write away."""
    closed = [path for path in (folder, *folder.rglob("*")) if not path.is_symlink()]
    for path in closed:
        path.chmod(path.stat().st_mode & ~0o222)
    return closed


def test_a_tree_that_nobody_may_write(place: Place, tmp_path: Path) -> None:
    closed = close_all(place.root.parent)
    try:
        said = judge_looking(place, tmp_path / "elsewhere", [], preexec_fn=_bow_to_modes)
    finally:
        for path in closed:
            path.chmod(path.stat().st_mode | 0o200)
    assert "cannot be written; the team is only read" in said
    assert "pending, and left as it is" in said
    assert "scribe/log.md: mode: has mode 444" in said, "the doctor names what was taken away"


def test_a_read_only_mount(place: Place, tmp_path: Path) -> None:
    folder = place.root.parent
    script = f'mount --bind "{folder}" "{folder}" && mount -o remount,ro,bind "{folder}" || exit 97'
    wrapped = ["unshare", "-rm", "sh", "-c", f'{script}; cd "{place.root}" && exec "$@"', "sh"]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*wrapped, "true"], check=False).returncode
    ):
        pytest.skip("no mount namespace can be had here: a read-only mount is NOT TESTED")
    said = judge_looking(place, tmp_path / "elsewhere", wrapped)
    assert "cannot be written; the team is only read" in said


def test_a_ledger_of_an_earlier_version_is_not_folded_anew(tmp_path: Path) -> None:
    unpack(GOLDEN / "team-852efc6.tar.xz", tmp_path)
    root = next(tmp_path.rglob(".nbs")).parent
    with sqlite3.connect(root / ".nbs/ledger.db") as db:
        db.execute("UPDATE folds SET versions = replace(versions, ':', ':0')")
    db.close()
    before = snapshot(root)
    for words in (["bus", "status"], ["scribe", "summary"], ["show"], ["worker", "list"]):
        done = run(root, "--read-only", *words)
        assert done.code == 0, done.err
        assert done.out
        assert changed(root, before) == []
    shown = run(root, "--read-only", "scribe", "summary").out
    assert shown == run(root, "scribe", "summary").out


# The write-ahead log -----------------------------------------------------------------------------


def rows(path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setenv(READ_ONLY, "1")
    db = read_only(str(path))
    try:
        return SQLiteReader(db).size
    finally:
        db.close()
        monkeypatch.delenv(READ_ONLY)


def test_a_live_log_counts(place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Entries that are in the log alone are read, whoever left it, and no byte is changed."""
    with Team(place.root) as team:
        path = Path(team.store.path)
        size = team.head().size
        run(place.root, "bus", "publish", "ann", "t", "low", "in the log")
        new = team.head().size
        assert new > size
        assert path.with_name("ledger.db-wal").stat().st_size
        before = snapshot(place.root.parent)
        assert rows(path, monkeypatch) == new  # a live writer
        assert b"-ann-t-" in run(place.root, "--read-only", "bus", "check").out
        assert changed(place.root.parent, before) == []
        for name, ends in {"whole": ("", "-wal", "-shm"), "no-index": ("", "-wal")}.items():
            copy = tmp_path / name
            copy.mkdir()
            for end in ends:
                shutil.copyfile(f"{path}{end}", copy / f"ledger.db{end}")
            before = snapshot(copy)
            assert rows(copy / "ledger.db", monkeypatch) == new, name
            assert changed(copy, before) == []


def test_a_log_whose_copy_cannot_be_made(
    place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with Team(place.root) as team:
        run(place.root, "bus", "publish", "ann", "t", "low", "in the log")
        for end in ("", "-wal"):
            shutil.copyfile(f"{team.store.path}{end}", tmp_path / f"ledger.db{end}")
    monkeypatch.setattr("tempfile.mkdtemp", lambda *_, **__: "/nowhere/at/all")
    done = run(tmp_path, "--read-only", "log", "ledger.db")
    assert done.code == 1
    assert "copy both files to where you may write, or set TMPDIR" in done.err


def test_a_writer_that_comes_and_goes_does_not_change_what_is_read(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Team(place.root) as team:
        path = Path(team.store.path)
    assert not path.with_name("ledger.db-wal").exists()
    monkeypatch.setenv(READ_ONLY, "1")
    db = read_only(str(path))
    monkeypatch.delenv(READ_ONLY)
    size = SQLiteReader(db).size
    child = subprocess.run(
        [TRIPOD, "bus", "publish", "ann", "t", "low", "meanwhile"], cwd=place.root, check=False
    )
    assert child.returncode == 0
    assert SQLiteReader(db).size == size
    db.close()  # nothing to say: the file is what it was
    with Team(place.root) as team:
        assert team.head().size > size


def test_a_file_that_is_written_over_is_named(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Team(place.root) as team:
        path = team.store.path
    monkeypatch.setenv(READ_ONLY, "1")
    db = read_only(path)
    with open(path, "r+b") as file:
        file.write(file.read(16))
    os.utime(path)
    with pytest.raises(Exception, match="not of one moment: ask again"):
        db.close()
    db.close()


def test_nothing_is_opened_to_be_written(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last guard: a command that forgets to look is refused where it would begin."""
    with Team(place.root) as team:
        path = team.store.path
    monkeypatch.setenv(READ_ONLY, "1")
    with pytest.raises(Exception, match="not opened to be written"):
        SQLiteStore(path)
    with Team(place.root, read_only=True) as team:
        for write in (
            lambda: team.store.append([]),
            team.store.sweep,
            lambda: team.store.derived().__enter__(),
            lambda: team.act().__enter__(),
        ):
            with pytest.raises(Exception, match="only read here"):
                write()
