"""Every row of the documentation of ``nbs-chat``: arguments, outcome, exit code, output.

Source: spec nbs-compat C1 to C3. A row runs on a copy of one chat of five messages.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from doors.dropped_in import FILE, Chat, chat
from doors.inside import state
from story import BEGIN, folder

from tripod.finding import LEDGER

ANN = "[2020-09-13T12:26:40Z] ann: Alpha @bob\n"
BOB = "[2020-09-13T12:27:40Z] bob: beta\n"
TWO = "[2020-09-13T12:28:40Z] ann: two\n    lines\n"
DEV = "[2020-09-13T12:29:40Z] dev: ALPHABET\n"
LAST = "[2020-09-13T12:30:40Z] bob: done\n"
ALL = ANN + BOB + TWO + DEV + LAST
GONE = ".nbs/chat/gone.chat"
USAGE = "usage: nbs-chat {}"


class Row(NamedTuple):
    """Arguments, the code, what is printed, and a part of what is remarked."""

    words: tuple[str, ...]
    code: int
    out: str = ""
    err: str = ""
    given: bytes = b""


READS = (
    Row(("read", FILE), 0, ALL),
    Row(("read", FILE, "--last=2"), 0, DEV + LAST),
    Row(("read", FILE, "--last=99"), 0, ALL),
    Row(("read", FILE, "--last=0"), 0),
    Row(("read", FILE, "--last="), 0),
    Row(("read", "--last=1", FILE), 0, LAST),
    Row(("read", FILE, "--last=-1"), 4, err="--last=-1"),
    Row(("read", FILE, "--last=two"), 4, err="--last=two"),
    Row(("read", FILE, "--last=2147483648"), 4, err="no whole number"),
    Row(("read", FILE, "--since=ann"), 0, DEV + LAST),
    Row(("read", FILE, "--since=bob"), 0),
    Row(("read", FILE, "--since=nobody"), 0, ALL),
    Row(("read", FILE, "--since="), 4, err="--since: empty"),
    Row(("read", FILE, "--unread=ann"), 0, BOB + DEV + LAST),
    Row(("read", FILE, "--unread=new"), 0, ALL),
    Row(("read", FILE, "--unread="), 4, err="--unread: empty"),
    Row(("read", FILE, "--unread=a b"), 4, err="white space"),
    Row(("read", FILE, "--unread=dev", "--since=nobody", "--last=1"), 0, LAST),
    Row(("read", FILE, "--after=2m"), 0, DEV + LAST),
    Row(("read", FILE, f"--after={BEGIN + 60}"), 0, BOB + TWO + DEV + LAST),
    Row(("read", FILE, "--after=2020-09-13T12:29:40Z"), 0, DEV + LAST),
    Row(("read", FILE, f"--before={BEGIN + 60}"), 0, ANN + BOB),
    Row(("read", FILE, f"--after={BEGIN + 60}", f"--before={BEGIN + 120}"), 0, BOB + TWO),
    Row(("read", FILE, "--after=1d"), 0, ALL),
    Row(("read", FILE, "--after=soon"), 4, err="--after: soon is no time"),
    Row(("read", FILE, "--before="), 4, err="--before:  is no time"),
    Row(("read", FILE, "--offset=4"), 0, ANN),
    Row(("read", FILE, "--last=2", "--offset=1"), 0, TWO + DEV),
    Row(("read", FILE, "--offset=9"), 0),
    Row(("read", FILE, "--offset=x"), 4, err="--offset=x"),
    Row(("read", FILE, f"--before={BEGIN + 180}", "--offset=1", "--last=1"), 0, TWO),
    Row(("read", FILE, "--lst=2"), 4, err="no option --lst"),
    Row(("read", FILE, "more"), 4, err="'more' is one too many"),
    Row(("read",), 4, err=USAGE.format("read")),
    Row(("read", GONE), 2, err="no chat"),
    Row(("read", "nowhere/live.chat"), 2, err="is not there"),
    Row(("read", ".nbs/chat"), 4, err="names no chat"),
    Row(
        ("read", FILE, "--last=1", "--json"),
        0,
        '{"handle": "bob", "mentions": {}, "number": 4, "seq": 12, "text": "done", '
        '"time": 1600000240}\n',
    ),
)
SEARCHES = (
    Row(("search", FILE, "alpha"), 0, f"[0] {ANN}[3] {DEV}"),
    Row(("search", FILE, "ALPHA", "--handle=dev"), 0, f"[3] {DEV}"),
    Row(("search", FILE, "alpha", "--after=2m"), 0, f"[3] {DEV}"),
    Row(("search", FILE, "alpha", f"--before={BEGIN}"), 0, f"[0] {ANN}"),
    Row(("search", FILE, "o\nl"), 0, f"[2] {TWO}"),
    Row(("search", FILE, "al.ha"), 0, "No matches found.\n"),
    Row(("search", FILE, "--done"), 0, "No matches found.\n"),
    Row(("search", FILE, "", "--handle=dev"), 0, f"[3] {DEV}"),
    Row(("search", FILE, "alpha", "--include-archives"), 0, f"[0] {ANN}[3] {DEV}"),
    Row(("search", FILE, "alpha", "--handle="), 4, err="--handle: empty"),
    Row(("search", FILE, "alpha", "--hande=dev"), 4, err="no option --hande"),
    Row(("search", FILE), 4, err=USAGE.format("search")),
    Row(("search", GONE, "x"), 2, err="no chat"),
)
OTHERS = (
    Row(
        ("participants", FILE), 0,
        "ann                      2 messages\nbob                      2 messages\n"
        "dev                      1 messages\n",
    ),
    Row(("participants", GONE), 2, err="no chat"),
    Row(("participants",), 4, err=USAGE.format("participants")),
    Row(("count", FILE), 0, "5\n"),
    Row(("count", GONE), 2, err="no chat"),
    Row(("count", FILE, "--json"), 4, err="no option --json"),
    Row(("export", FILE, "--plain"), 0, ALL),
    Row(("export", FILE, "--plain", "--last=1"), 0, LAST),
    Row(("export", FILE, "--plain", "--from=1", "--to=2"), 0, BOB + TWO),
    Row(("export", FILE, "--plain", "--handle=bob,dev"), 0, BOB + DEV + LAST),
    Row(("export", FILE, "--plain", "--handle=bob,dev", "--last=2"), 0, DEV + LAST),
    Row(("export", FILE, "--plain", "--grep=alpha"), 0, ANN + DEV),
    Row(("export", FILE, "--plain", "--after=2m", "--grep=A"), 0, DEV),
    Row(("export", FILE, "--plain", f"--before={BEGIN}"), 0, ANN),
    Row(
        ("export", FILE, "--to=0"), 0,
        "\x1b[2m[2020-09-13T12:26:40Z]\x1b[0m \x1b[1;36mann\x1b[0m: Alpha @bob\n",
    ),
    Row(("export", FILE, "--to=x"), 4, err="--to=x"),
    Row(("export", GONE), 2, err="no chat"),
    Row(("poll", FILE, "ann", "--timeout=0"), 3),
    Row(("poll", FILE, "ann", "--timeout=x"), 4, err="--timeout=x"),
    Row(("poll", FILE), 4, err=USAGE.format("poll")),
    Row(("poll", GONE, "ann"), 2, err="no chat"),
    Row(("create", FILE), 1, err="Error: File already exists: "),
    Row(("create", "nowhere/new.chat"), 1, err="no folder"),
    Row(("create", ".nbs/chat/new"), 4, err="names no chat"),
    Row(("create", ".nbs/chat/a b.chat"), 4, err="channel: "),
    Row(("create",), 4, err=USAGE.format("create")),
    Row(("delete", FILE), 4, err="--after=T"),
    Row(("delete", FILE, "--after="), 4, err="--after=T"),
    Row(("delete", FILE, "--after=soon"), 4, err="is no time"),
    Row(("delete", FILE, "--after=2m", "--dry-run"), 0, "Would delete 2 message(s) (keeping 3)\n"),
    Row(
        ("delete", FILE, "--after=5s", "--dry-run"), 0,
        "No messages to delete (0 messages since 5s, 5 kept)\n",
    ),
    Row(("delete", FILE, "--after=5s"), 0, "No messages to delete (0 messages since 5s, 5 kept)\n"),
    Row(("delete", GONE, "--after=2m"), 2, err="no chat"),
    Row(("archive", FILE), 0, "No messages to archive\n"),
    Row(("archive", FILE, "--keep=x"), 4, err="--keep=x"),
    Row(("archive", GONE), 2, err="no chat"),
    Row(("cursor-set", FILE, "ann"), 4, err=USAGE.format("cursor-set")),
    Row(("cursor-set", FILE, "ann", "-1"), 4, err="no index from 0 to 2147483646"),
    Row(("cursor-set", FILE, "ann", "2147483647"), 4, err="no index"),
    Row(("cursor-set", FILE, "a=b", "1"), 4, err="holds '='"),
    Row(("cursor-set", GONE, "ann", "1"), 2, err="no chat"),
    Row((), 4, err="which command?"),
    Row(("reed", FILE), 4, err="no command 'reed'"),
)  # fmt: skip
REFUSED = (
    Row(("send", FILE, "ann"), 4, err="text: none given"),
    Row(("send", FILE), 4, err=USAGE.format("send")),
    Row(("send", FILE, "", "x"), 4, err="handle: empty"),
    Row(("send", FILE, "x" * 64, "x"), 4, err="handle: longer than 63"),
    Row(("send", FILE, "[MEDIC-WARNING]", "x"), 4, err="handle: holds '['"),
    *(Row(("send", FILE, f"a{bad}b", "x"), 4, err="handle: holds") for bad in "\n|:,(= "),
    Row(("send", FILE, "ann", "x", "y"), 4, err="'y' is one too many"),
    Row(("send", FILE, "ann", "x", "--as=bob"), 4, err="no option --as"),
    Row(("send", FILE, "ann", "x", "--file=-"), 4, err="given twice"),
    Row(("send", FILE, "ann", "--file=gone"), 4, err="cannot be read"),
    Row(("send", FILE, "ann", "--file=-"), 4, err="more than 1048576", given=b"x" * 1_048_577),
    Row(("send", FILE, "ann", "--file=-"), 4, err="not UTF-8", given=b"\xff"),
    Row(("send", FILE, "ann", "--file=-"), 4, err="NUL", given=b"a\0b"),
    Row(("send", GONE, "ann", "x"), 2, err="no chat"),
    Row(("warn", GONE, "x"), 2, err="no chat"),
    Row(("error", GONE, "x"), 2, err="no chat"),
    Row(("warn", FILE), 4, err=USAGE.format("warn")),
)


@pytest.fixture(scope="module")
def template() -> Iterator[Path]:
    with chat() as made:
        for handle, text in (("ann", "Alpha @bob"), ("bob", "beta"), ("ann", "two\nlines"),
                             ("dev", "ALPHABET"), ("bob", "done")):  # fmt: skip
            made.say(handle, text)
        yield made.project


@pytest.fixture
def talk(template: Path) -> Iterator[Chat]:
    with folder() as root:
        made = Chat(root / "copy")
        shutil.rmtree(made.project)
        shutil.copytree(template, made.project)
        made.clock.move(300)
        yield made


@pytest.mark.parametrize("row", [*READS, *SEARCHES, *OTHERS, *REFUSED], ids=lambda row: (
    " ".join(row.words).replace("\n", "_")[:60]))  # fmt: skip
def test_row(talk: Chat, row: Row) -> None:
    before = state(talk.project)
    done = talk(*row.words, given=row.given)
    assert (done.code, done.out.decode()) == (row.code, row.out), done.err
    assert row.err in done.err
    assert bool(done.err) is bool(row.err)
    if "--unread" not in " ".join(row.words) or done.code:
        assert state(talk.project) == before
    assert not talk.file.with_name("gone.chat.lock").exists()


SENDS = (
    Row(("send", FILE, "ann", "x"), 0, "x"),
    Row(("send", FILE, "ann", ""), 0, ""),
    Row(("send", FILE, "ann", "--done"), 0, "--done"),
    Row(("send", FILE, "ann", "--done=x y"), 0, "--done=x y"),
    Row(("send", FILE, "ann", "-- a note"), 0, "-- a note"),
    Row(("send", FILE, "ann", "--", "--file=x"), 0, "--file=x"),
    Row(("send", FILE, "ann", "--file=-"), 0, "from a pipe", given=b"from a pipe"),
    Row(("send", "--file=-", FILE, "ann"), 0, "p" * 1_048_576, given=b"p" * 1_048_576),
    Row(("send", FILE, "ann", "--human", "x"), 0, "x"),
    Row(("warn", FILE, "--careful"), 0, "--careful"),
    Row(("error", FILE, "lost it"), 0, "lost it"),
)


@pytest.mark.parametrize("row", SENDS, ids=lambda row: " ".join(row.words))
def test_what_is_sent_is_silent_and_reads_back(talk: Chat, row: Row) -> None:
    assert talk(*row.words, given=row.given) == (row.code, b"", "")
    handle = {"warn": "[MEDIC-WARNING]", "error": "[SIDECAR-ERROR]"}.get(row.words[0], "ann")
    out = talk("read", FILE, "--last=1").out.decode()
    assert out == f"[2020-09-13T12:31:40Z] {handle}: {row.out}\n"


def test_help_is_a_success_and_names_every_command(talk: Chat) -> None:
    from tripod.dropin.nbs_chat import COMMANDS

    done = talk("help")
    assert (done.code, done.err) == (0, "")
    assert re.findall(r"^  nbs-chat ([a-z-]+)", done.out.decode(), re.MULTILINE) == list(COMMANDS)
    assert talk("--help") == done


def test_create_makes_a_file_that_only_its_owner_reads(talk: Chat) -> None:
    done = talk("create", ".nbs/chat/side.chat")
    made = talk.file.with_name("side.chat")
    assert done == (0, f"Created: {made}\n".encode(), "")
    assert made.stat().st_mode & 0o777 == 0o600
    assert made.read_bytes().splitlines()[4] == b"participants: "


def test_the_path_that_create_prints_is_that_of_the_file(
    talk: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LEDGER, str(talk.file.parents[2] / "kept"))
    done = talk("create", ".nbs/chat/side.chat")
    assert done.out == f"Created: {talk.file.with_name('side.chat')}\n".encode()


def test_a_first_use_begins_the_ledger_and_says_so_in_one_line() -> None:
    with chat() as made:
        made.say("ann", "one")
        shutil.rmtree(made.root / "events")
        for path in made.root.glob("*"):
            if path.is_file():
                path.unlink()
        before = made.file.read_bytes()
        done = made("read", FILE)
        assert done.out.decode().endswith("ann: one\n")
        assert re.fullmatch(r"tripod: began the ledger .*ledger\.db.*\n", done.err)
        assert made.file.read_bytes() == before
        assert made("read", FILE).err == ""


def test_a_chat_that_is_missing_begins_no_ledger(tmp_path: Path) -> None:
    made = Chat(tmp_path / "project")
    assert made("read", FILE).code == 2
    assert made("send", FILE, "ann", "x").code == 2
    assert list(made.root.rglob("*")) == [made.root / "chat"]


def test_an_archive_is_read_and_never_written(talk: Chat) -> None:
    made = talk.lines("archive", FILE, "--keep=2")[0]
    assert made.startswith("Archived 3 message(s) to ")
    archive = made.removeprefix("Archived 3 message(s) to ")
    assert talk("read", archive).out.decode() == ANN + BOB + TWO
    assert talk("read", FILE).out.decode() == DEV + LAST
    assert (talk.lines("count", archive), talk.lines("count", FILE)) == (["3"], ["2"])
    name = Path(archive).name
    found = talk("search", FILE, "alpha", "--include-archives").out.decode()
    assert found == f"[0] {DEV}[{name}] [0] {ANN}"
    assert talk("read", archive, "--unread=eve", "--last=1").out.decode() == LAST
    assert talk("read", FILE, "--unread=eve").out.decode() == ANN + BOB + TWO + DEV
    before = Path(archive).read_bytes()
    assert talk("send", archive, "ann", "x").code == 1
    assert talk("delete", archive, "--after=1d").code == 1
    assert Path(archive).read_bytes() == before


def test_what_is_deleted_is_gone_from_the_file_and_stays_in_the_ledger(talk: Chat) -> None:
    assert talk.lines("delete", FILE, "--after=2m", "--as=ann") == ["Deleted 2 message(s) (kept 3)"]
    assert talk("read", FILE).out.decode() == ANN + BOB + TWO
    head = talk.file.read_text("utf-8").splitlines()[:5]
    assert head[1:3] == ["last-writer: ann", "last-write: 2020-09-13T12:28:40+0000"]
    assert head[4] == "participants: ann(2), bob(1)"
    with talk.team() as team:
        *_, newest = team.store.read()
        assert (newest.kind, newest.actor) == ("chat.deleted", "ann")
        said = [e.data["text"]["text"] for e in team.store.read() if e.kind == "chat.sent"]
        assert said == ["Alpha @bob", "beta", "two\nlines", "ALPHABET", "done"]


def test_a_cursor_is_set_to_a_message_and_what_follows_is_unread(talk: Chat) -> None:
    assert talk("cursor-set", FILE, "dev", "1") == (0, b"", "")
    assert talk.cursors()["dev"] == 1
    assert talk("read", FILE, "--unread=dev").out.decode() == TWO + DEV + LAST
    assert talk.cursors()["dev"] == 4
    assert talk("cursor-set", FILE, "dev", "2147483646").code == 0
    assert talk("read", FILE, "--unread=dev").out == b""
