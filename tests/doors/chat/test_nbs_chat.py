"""Every row of the documentation of ``nbs-chat``: arguments, outcome, exit code, output.

Source: spec nbs-compat C1 to C3. A row, of ``chat_rows.py``, runs on a copy of one chat of five
messages.
"""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from doors.chat.chat_rows import (
    ANN,
    BOB,
    DEV,
    HELPS,
    LAST,
    MORE,
    OTHERS,
    READS,
    REFUSED,
    SEARCHES,
    SENDS,
    SLIPS,
    TAKES,
    TWO,
    WRITES,
    Row,
)  # fmt: skip
from doors.chat.dropped_in import FILE, Chat, chat
from doors.inside import state
from story import folder

from tripod.bus.reader import QueueWatch
from tripod.ledger.locator import LEDGER

ROWS = (*READS, *SEARCHES, *OTHERS, *REFUSED, *MORE, *SLIPS, *HELPS)


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


def name_of(row: Row) -> str:
    return " ".join(row.words).replace("\n", "_")[:60]


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_row(talk: Chat, row: Row) -> None:
    before = state(talk.project)
    done = talk(*row.words, given=row.given)
    assert (done.code, done.out.decode()) == (row.code, row.out), done.err
    assert row.err in done.err
    assert bool(done.err) is bool(row.err)
    if "--unread" not in " ".join(row.words) or done.code:
        assert state(talk.project) == before
    assert not talk.file.with_name("gone.chat.lock").exists()


@pytest.mark.parametrize("row", SENDS, ids=lambda row: " ".join(row.words))
def test_what_is_sent_is_silent_and_reads_back(talk: Chat, row: Row) -> None:
    assert talk(*row.words, given=row.given) == (row.code, b"", "")
    handle = {"warn": "[MEDIC-WARNING]", "error": "[SIDECAR-ERROR]"}.get(row.words[0], "ann")
    out = talk("read", FILE, "--last=1").out.decode()
    assert out == f"[2020-09-13T12:31:40Z] {handle}: {row.out}\n"


@pytest.mark.parametrize("row", WRITES, ids=name_of)
def test_what_changes_the_chat_says_so(talk: Chat, row: Row) -> None:
    before = state(talk.project)[0]
    done = talk(*row.words)
    told = done.out.decode().replace(str(talk.project), "ROOT")
    assert (done.code, told, done.err) == (row.code, row.out, "")
    assert state(talk.project)[0][: len(before)] == before
    assert len(state(talk.project)[0]) > len(before)


@pytest.mark.parametrize("more", [(), ("--json",), ("--timeout=60",)])
def test_poll_prints_what_comes(talk: Chat, more: tuple[str, ...]) -> None:
    def wait(_watch: QueueWatch, _seconds: float) -> None:
        if talk.original.pid == 40_000:
            talk.original.pid += 1
            talk.original.say("live", "eve", "here")

    with mock.patch.object(QueueWatch, "wait", wait):
        done = talk("poll", FILE, "ann", *more)
    assert (done.code, done.err) == (0, "")
    if "--json" in more:
        assert json.loads(done.out)["text"] == "here"
    else:
        assert done.out.decode() == "[2020-09-13T12:31:40Z] eve: here\n"


CODES = {
    "create": {0, 1, 4},
    "poll": {0, 2, 3, 4},
    "help": {0},
    "send": {0, 1, 2, 4},
    "delete": {0, 1, 2, 4},
}
"""With what each command may end, where that is other than 0, 2 and 4."""


def test_every_command_option_and_code_has_its_rows() -> None:
    elsewhere = {"poll": {0}, "help": {0}, "send": {1}, "delete": {1}}  # tests of their own
    rows = [*ROWS, *SENDS, *WRITES]
    for name, command in TAKES.items():
        mine = [row for row in rows if row.words[:1] == (name,)]
        codes = {row.code for row in mine} | elsewhere.get(name, set())
        assert codes == CODES.get(name, {0, 2, 4}), name
        for option in (*command.options, *command.flags):
            given = {
                row.code for row in mine for word in row.words
                if word.partition("=")[0] == f"--{option}"
            }  # fmt: skip
            good = {3} if name == "poll" else {0}
            free = option in ("grep", *command.flags)  # any text will do; there is no value
            assert given >= (good if free else {*good, 4}), (name, option)


def test_help_is_a_success_and_names_every_command(talk: Chat) -> None:
    done = talk("help")
    assert (done.code, done.err) == (0, "")
    assert re.findall(r"^  nbs-chat ([a-z-]+)", done.out.decode(), re.MULTILINE) == [*TAKES, "help"]
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


def test_a_link_to_a_chat_is_the_chat(talk: Chat) -> None:
    outside = talk.project / "talk.chat"
    inside = talk.file.with_name("alias.chat")
    outside.symlink_to(FILE)
    inside.symlink_to("live.chat")
    for link, text in ((outside, "from outside"), (inside, "from beside it")):
        assert talk("send", str(link), "ann", text) == (0, b"", "")
        assert talk.texts("read", str(link), "--last=1") == [text]
        assert link.is_symlink()
    assert talk.texts("read", FILE, "--last=2") == ["from outside", "from beside it"]
    assert talk("create", str(outside)).code == 1
    assert [path.name for path in talk.project.parent.glob("ledger.db")] == []


def test_a_chat_whose_place_a_link_has_taken_is_read_from_the_ledger(talk: Chat) -> None:
    talk.file.rename(talk.project / "moved.chat")
    talk.file.symlink_to("../../moved.chat")
    done = talk("read", FILE, "--last=1")
    assert (done.code, done.out.decode()) == (0, LAST)
    assert "it is a symbolic link to" in done.err
    assert talk("send", FILE, "ann", "x").code == 1


def test_a_link_to_no_chat_begins_no_ledger(tmp_path: Path) -> None:
    made = Chat(tmp_path / "project")
    link = made.project / "talk.chat"
    link.symlink_to(FILE)
    assert made("send", str(link), "ann", "x").code == 2
    assert list(tmp_path.rglob("ledger.db")) == []


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
