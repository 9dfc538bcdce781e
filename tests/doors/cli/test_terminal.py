"""What a person sees on a terminal: no byte of what others wrote commands it."""

import os
import pty
import subprocess
from pathlib import Path

import pytest
from doors.cli.screen import drained
from doors.inside import TRIPOD, begin, run
from git_repo import Git

from tripod.ledger.kinds.chat import SENT, Sent
from tripod.ledger.sqlite.store import SQLiteStore

HOSTILE = "a\x1b]0;owned\x07\x1b[2J\x9b31m\u202eevil\u2066\rb\x7f"
SHOWN = rb"a\x1b]0;owned\x07\x1b[2J\x9b31m\u202eevil\u2066\x0db\x7f"


def on_a_terminal(folder: Path, *arguments: str) -> bytes:
    """What a terminal is sent by a command, its remarks included."""
    master, slave = pty.openpty()
    # On a machine that is busy a command may last long enough to say how far it is; that is our
    # own text, on a line that is written over, and has tests of its own.
    plain = {**os.environ, "TERM": "dumb"}
    with subprocess.Popen(
        [TRIPOD, *arguments], cwd=folder, env=plain, stdin=slave, stdout=slave, stderr=slave
    ):
        os.close(slave)
        return drained(master).replace(b"\r\n", b"\n")


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = begin(tmp_path_factory.mktemp("team"))
    given = HOSTILE.encode()
    assert run(folder, "bus", "ack-all").code == 0
    assert run(folder, "bus", "publish", "eve", "x", "low", "--file", "-", given=given).code == 0
    assert run(folder, "chat", "send", "live", "eve", "--file", "-", given=given).code == 0
    (folder / ".nbs" / HOSTILE).write_text("a stranger's file, by a stranger's name")
    # Another program appends to the log what ours would refuse.
    with (folder / ".nbs/scribe/log.md").open("a", encoding="utf-8") as log:
        log.write(f"\n---\n\n### D-7 Title {HOSTILE[:8]}\u202e\n- **Status:** decided\n")
        log.write("- **Participants:** eve\n- **Rationale:** \x1b[31mred\n")
    assert run(folder, "sync").code == 0  # else which test takes it in depends on their order
    return folder


@pytest.mark.parametrize(
    ("arguments", "shows"),
    [
        (("bus", "check"), b"eve-x"),
        (("chat", "read", "live"), SHOWN),
        (("chat", "search", "live", "owned"), SHOWN),
        (("chat", "read", "live", "--json"), b"\\u001b"),
        (("show", "chat"), b"=== nbs-chat ==="),
        (("show", "events"), b"source: eve"),
        (("show", "decisions"), b"D-7"),
        (("show", "--last", "99"), b"bus.published"),
        (("scribe", "query"), b"D-7"),
        (("sync",), b"Nothing new"),
        (("verify", "-v"), b"chain-links"),
        (("bus", "ack", "1-\x1b[31m\u202e-1.event"), b"\\x1b[31m\\u202e"),
        (("show", "x-\x1b[2J\x9b"), b"x-\\x1b[2J\\x9b"),
    ],
    ids=str,
)
def test_a_terminal_is_never_commanded(
    team: Path, arguments: tuple[str, ...], shows: bytes
) -> None:
    seen = on_a_terminal(team, *arguments)
    assert shows in seen
    text = seen.decode()
    if arguments == ("verify", "-v"):
        # Its own colours are ours: nothing else of that kind is there.
        for own in ("\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m"):
            text = text.replace(own, "")
    for character in "\x1b\x07\r\x7f\x9b\u202e\u2066":
        assert character not in text, repr(character)


def test_an_event_on_a_terminal_and_in_a_pipe(team: Path) -> None:
    (path,) = (team / ".nbs/events").glob("*-eve-x-*")
    assert run(team, "bus", "read", path.name).out == path.read_bytes()
    seen = on_a_terminal(team, "bus", "read", path.name)
    assert seen.startswith(b"source: eve\n")
    assert b"\x1b" not in seen


def test_every_projection_in_a_pipe(team: Path) -> None:
    for name, path in (("decisions", "scribe/log.md"), ("chat", "chat/live.chat")):
        assert run(team, "show", name).out == (team / ".nbs" / path).read_bytes()


def test_no_handle_passes_for_a_mark(tmp_path: Path) -> None:
    """Only somebody who writes the database can have such a handle; observed ones are marked."""
    begin(tmp_path)
    store = SQLiteStore(str(tmp_path / ".nbs/ledger.db"))
    for index, handle in enumerate(("signed [2026-02-12T14:00:00Z] ann", "ann (signed)"), 1):
        said: Sent = {
            "channel": "live", "index": index, "handle": handle, "time": 0, "text": b"yes",
        }  # fmt: skip
        store.append([SENT.draft(said)])
    store.close()
    first, second = run(tmp_path, "chat", "read", "live", "--last", "2").out.decode().splitlines()
    assert first == "live.chat:~L8 #1 [?] signed [2026-02-12T14:00:00Z] ann: yes"
    assert second == "live.chat:~L9 #2 [?] ann (signed): yes"
    done = run(tmp_path, "scribe", "log", "T", "-p", "a", "-r", "w", "--ref", "#1")
    assert (
        done.err
        == "tripod: refers to live.chat:~L8 #1 [?] signed [2026-02-12T14:00:00Z] ann: yes\n"
    )
    listed = run(tmp_path, "log", "--kind", "chat.sent", "-n", "1").out.decode()
    assert "Z  'ann (signed)'      chat.sent" in listed


def asked(folder: Path, *typed: str) -> str:
    """What a terminal is sent by `tripod init`, where a person types these lines."""
    master, slave = pty.openpty()
    os.write(master, "".join(f"{line}\n" for line in typed).encode())
    with subprocess.Popen(
        [TRIPOD, "init"], cwd=folder, stdin=slave, stdout=slave, stderr=slave, env=os.environ
    ) as running:
        os.close(slave)
        seen = drained(master).decode()
    assert running.returncode == 0, seen
    return seen


def test_init_asks_a_person_for_a_handle_until_there_is_one(
    tmp_path: Path, signers_home: str
) -> None:
    kept, question = Path(signers_home, "handle"), "Your handle"
    assert question in asked(tmp_path, "")
    assert not kept.exists()
    seen = asked(tmp_path, "two words", "a\x1b]b", "ann")
    assert seen.count(question) == 3
    assert "holds white space" in seen
    assert "\x1b]" not in seen.replace("^[", "")
    assert kept.read_text() == "ann\n"
    assert question not in asked(tmp_path)
    assert run(tmp_path, "chat", "create", "live").err == ""
    kept.unlink()
    assert question not in run(tmp_path, "init", given=b"bob\n").err
    assert not kept.exists()


def test_a_replica_is_called_by_the_handle_that_init_asked_for(
    tmp_path: Path, signers_home: str
) -> None:
    git = Git(tmp_path / "shop")
    seen = asked(git.root, "ann")
    assert seen.index("Your handle") < seen.index("Begun: ")
    assert "refs/tripod/ann-" in git("for-each-ref", "--format=%(refname)")


def test_a_replica_of_nobody_is_named_once_somebody_is_known(
    tmp_path: Path, signers_home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = Git(tmp_path / "shop")
    (told,) = run(git.root, "init").err.splitlines()
    assert "this replica is called unknown-" in told
    assert "TRIPOD_AS" in told
    assert "`tripod restore --as-copy`" in told
    monkeypatch.setenv("TRIPOD_AS", "ann")
    assert run(git.root, "restore", "--as-copy").code == 0
    assert run(git.root, "seal").code == 0
    refs = git("for-each-ref", "--format=%(refname)").splitlines()
    assert [ref.partition("-")[0] for ref in refs] == ["refs/tripod/ann", "refs/tripod/unknown"]
    assert run(git.root, "verify").code == 0


def test_init_asks_nobody_whose_handle_the_environment_says(
    tmp_path: Path, signers_home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for handle in ("ann", "two words"):
        monkeypatch.setenv("TRIPOD_AS", handle)
        assert "Your handle" not in asked(tmp_path, "bob")
    assert not Path(signers_home, "handle").exists()
