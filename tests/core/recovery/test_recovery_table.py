"""Each mishap of the recovery table: what every command says of it, and that one mends it."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from docs.recovery_table import MISHAPS, Mishap
from doors.inside import Done, commands
from replicas import Clone, Snapshot, place_in

from tripod.ledger.entry import Draft, Entry
from tripod.ledger.sqlite.store import SQLiteTransaction
from tripod.peers import merge


def _begun(folder: Path) -> Clone:
    """A replica whose record was pushed, and a backup of it from before."""
    ann = Clone(folder, "ann")
    ann.said("init", "--project", "shop")
    ann.said("chat", "create", "live")
    ann.said("chat", "send", "live", "ann", "hello")
    ann.said("backup", str(folder / "monday.db"))
    ann.said("chat", "send", "live", "ann", "more")
    ann.push()
    return ann


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Clone, Snapshot]:
    folder = place_in(tmp_path_factory)
    return _begun(folder), Snapshot(folder)


@pytest.fixture
def place(made: tuple[Clone, Snapshot]) -> Path:
    """The folder of the clone and its remote, as it was made."""
    return made[1].put_back()


@pytest.fixture
def ann(made: tuple[Clone, Snapshot], place: Path) -> Clone:
    assert place.exists()
    return made[0]


def _remove(ann: Clone) -> None:
    for path in ann.database.parent.glob("ledger.db*"):
        path.unlink()


def _gone(ann: Clone, _: Path) -> None:
    shutil.rmtree(ann.database.parent)


def _everything(ann: Clone, _: Path) -> None:
    shutil.rmtree(ann.database.parent)
    shutil.rmtree(ann.root)


def _zero(ann: Clone, _: Path) -> None:
    _remove(ann)
    ann.database.write_bytes(b"")


def _garbage(ann: Clone, _: Path) -> None:
    _remove(ann)
    ann.database.write_bytes(b"garbage" * 1000)


def _older(ann: Clone, folder: Path) -> None:
    _remove(ann)
    shutil.copy(folder / "monday.db", ann.database)


def _older_in_use(ann: Clone, folder: Path) -> None:
    _older(ann, folder)
    assert ann.run("show", "0").code == 1


def _wiped(ann: Clone, folder: Path) -> None:
    _gone(ann, folder)
    (ann.root / "counts.json").unlink()
    done = ann.run("init")
    assert (done.code, "`tripod restore` brings the ledger back" in done.err) == (1, True)


def _begun_anew(ann: Clone, folder: Path) -> None:
    _wiped(ann, folder)
    replica = _ref(ann).rpartition("/")[2]
    told = ann.run("init", "--new").err
    assert f"refs/tripod/{replica} holds the record of a ledger that was here" in told
    assert f"`tripod restore --replica {replica}`" in told


def _ref(ann: Clone) -> str:
    return ann.git("for-each-ref", "--format=%(refname)", "refs/tripod").strip()


def _behind(ann: Clone, _: Path) -> None:
    before = ann.git("rev-parse", _ref(ann))
    ann.said("chat", "send", "live", "ann", "newer")
    ann.keep()
    ann.git("update-ref", _ref(ann), before)
    for path in ann.database.parent.glob("*.size"):
        path.unlink()


def _ahead(ann: Clone, folder: Path) -> None:
    ann.said("backup", str(folder / "tuesday.db"))
    ann.said("bus", "publish", "ann", "done", "low", "x")
    ann.keep()
    (shown,) = (ann.root / "events").glob("*-ann-done-*.event")
    shown.unlink()
    _remove(ann)
    shutil.copy(folder / "tuesday.db", ann.database)
    ann.said("show", "0")


def _key(ann: Clone, _: Path) -> None:
    shutil.rmtree(ann.home / "keys")


def _copied(ann: Clone, folder: Path) -> None:
    copy = ann.copied(folder)
    copy.said("chat", "send", "live", "ann", "theirs")
    copy.push()
    for text in ("mine", "mine as well"):
        ann.said("chat", "send", "live", "ann", text)
    ann.keep()
    ann.fetch()


def _full_joining(_: Clone, folder: Path) -> Clone:
    bob = Clone(folder, "bob")
    bob.fetch()
    _fill(bob, "init", 2)
    return bob


def _full_pulling(ann: Clone, folder: Path) -> Clone:
    bob = Clone(folder, "bob")
    bob.said("init", "--from", "origin")
    for number in range(5):
        ann.said("chat", "send", "live", "ann", f"number {number}")
        ann.said("seal")
    ann.said("push")
    before = len(bob.said("log").splitlines())
    told = _fill(bob, "pull", 3).err
    assert "the next `tripod pull` goes on" in told
    assert before < len(bob.said("log").splitlines()), "a batch came"
    assert "number 4" not in bob.said("chat", "read", "live")
    return bob


def _fill(bob: Clone, command: str, batches: int) -> Done:
    """Run a command; the disk is full when it has merged less than so many batches."""
    append, left = SQLiteTransaction.append, [batches]

    def refuses(self: SQLiteTransaction, drafts: Sequence[Draft], *rest: Any) -> list[Entry]:
        left[0] -= any(draft.kind == "peer.entry" for draft in drafts)
        if left[0] < 1:
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        return append(self, drafts, *rest)

    with mock.patch.object(merge, "BATCH", 2):
        with mock.patch.object(SQLiteTransaction, "append", refuses):
            done = bob.run(command)
        assert done.code == 1, done
        assert "full" in done.err
    return done


DEEDS: dict[str, Callable[[Clone, Path], Clone | None]] = {
    "database gone": _gone,
    "everything gone": _everything,
    "zero bytes": _zero,
    "garbage": _garbage,
    "older backup": _older,
    "older backup in use": _older_in_use,
    "wiped, then init": _wiped,
    "wiped, then init --new": _begun_anew,
    "ref behind": _behind,
    "ref ahead": _ahead,
    "key gone": _key,
    "copied disk": _copied,
    "disk full while joining": _full_joining,
    "disk full while pulling": _full_pulling,
}


def _says(done: Done, said: tuple[int, str]) -> bool:
    return done.code == said[0] and said[1] in done.out.decode() + done.err


def test_every_mishap_has_a_deed() -> None:
    assert [row.name for row in MISHAPS] == list(DEEDS)


@pytest.mark.parametrize("row", MISHAPS, ids=lambda row: row.name)
def test_what_is_said_and_what_mends_it(ann: Clone, place: Path, row: Mishap) -> None:
    replica = _ref(ann).rpartition("/")[2]
    ann = DEEDS[row.name](ann, place) or ann
    for words, said in (
        (("verify",), row.verify),
        (("doctor",), row.doctor),
        (("chat", "send", "live", "ann", "again"), row.act),
    ):
        done = ann.run(*words)
        assert _says(done, said), (words, done)
    out = ann.said(*row.mends.replace("REPLICA", replica).split()[1:])
    assert row.after in out
    for words in (("verify",), ("doctor",)):
        done = ann.run(*words)
        assert done.code == 0, (words, done)
    read = ann.said("chat", "read", "live")
    assert [read.count(text) for text in ("hello", "more")] == [1, 1]


@pytest.mark.parametrize("row", MISHAPS, ids=lambda row: row.name)
def test_what_a_push_says(ann: Clone, place: Path, row: Mishap) -> None:
    ann = DEEDS[row.name](ann, place) or ann
    done = ann.run("push")
    assert _says(done, row.push), done


@pytest.mark.parametrize("row", MISHAPS, ids=lambda row: row.name)
def test_the_doctor_and_the_verifier_agree(row: Mishap) -> None:
    assert row.verify[0] == row.doctor[0]


EVERY = {
    "bus publish": "ann x low y", "bus check": "", "bus read": "1-a-b-2.event",
    "bus ack": "1-a-b-2.event", "bus ack-all": "", "bus prune": "", "bus status": "",
    "bus claim": "--by ann", "bus release": "1-a-b-2.event --by ann", "bus wait": "--timeout 1",
    "bus recover": "--as ann", "chat create": "new", "chat send": "live ann more",
    "chat read": "live", "chat search": "live e", "chat poll": "live ann --timeout 1",
    "chat mentions": "ann", "chat participants": "live", "chat count": "live",
    "chat archive": "live", "chat cursor-set": "live ann 0", "chat delete": "live --after 1d",
    "scribe log": "T -r r -p ann --no-ref x", "scribe query": "", "scribe show": "D-1",
    "scribe inbox": "", "scribe count": "", "scribe summary": "", "scribe export": "../d.md",
    "decisions export": "--madr ../adr", "decisions summary": "",
    "scribe advise": "", "worker spawn": "job . t -- /bin/true", "worker status": "w",
    "worker list": "", "worker results": "w", "worker search": "w x", "worker continue": "w t",
    "worker escalate": "why --name w", "worker dismiss": "w", "worker watch": "--timeout 1",
    "pythia due": "", "pythia run": "-- /bin/true", "pythia record": "--file ../keep",
    "pythia show": "", "nova process": "q -- /bin/true", "nova resume": "r -- /bin/true",
    "nova status": "r", "nova list": "", "nova show": "r", "nova metrics": "",
    "nova replay": "r", "nova fork": "r --at 1 -- /bin/true", "nova compare": "r r",
    "nova decide": "r accept --as ann", "nova cancel": "r --as ann",
    "push": "", "pull": "", "peer list": "", "peer show": "ann",
    "peer accept": "ann --reason x", "peer close": "ann --reason x", "log": "", "query": "",
    "diff": ". .", "show": "", "accept": "abcd --reason x", "where": "", "init": "", "sync": "",
    "adopt-log": "../keep", "rebuild": "", "backup": "../b.db", "redact": "--match e --reason x",
    "hooks install": "", "key new": "", "key rotate": "", "key show": "", "seal": "",
    "actor enrol": "ann", "actor admit": "../keep", "actor revoke": "ann --reason x",
    "actor list": "", "anchor witness": "../w", "anchor tsa": "http://[::1]:9/ --ca ../keep",
    "anchor git": "", "anchor ask": "", "anchor take": "../keep", "anchor list": "",
    "anchor receipt": "1 ../r", "prove": "1", "export": "../e",
    "audit": "", "report": "-o -",
}  # fmt: skip
"""Every command that works on a team, with arguments; those of the table's columns are not here."""
APART = {
    "verify", "doctor", "restore", "demo", "completion", "import", "exposure", "nova personas",
}  # fmt: skip
LOOKS = {"log", "query", "diff", "backup", "decisions summary"}
"""What shows or copies an older ledger as any other: it does not judge."""
ADVICE = (
    "`tripod restore`",
    "`tripod verify",
    "`restore`",
    "  tripod restore\n",
    ">tripod restore",
)


def test_every_command_is_walked() -> None:
    named = {" ".join(words) for words, _ in commands()} - APART
    assert {name for name in named if not name.startswith("witness ")} == EVERY.keys()


@pytest.mark.parametrize(
    "row",
    [row for row in MISHAPS if row.act[0] != 0 and "joining" not in row.name],
    ids=lambda row: row.name,
)
def test_every_command_says_where_the_way_out_is(ann: Clone, place: Path, row: Mishap) -> None:
    """Where the ledger is lost or older, each refuses, and nothing that they do is in the way."""
    (place / "keep").write_text("kept\n")
    DEEDS[row.name](ann, place)
    for name, words in EVERY.items():
        done = ann.run(*name.split(), *words.split())
        told = done.err + done.out.decode()
        if done.code == 0:
            is_readable = row.name.startswith("older")
            assert name in ("where", "hooks install") or (is_readable and name in LOOKS), done
        else:
            assert any(advice in told for advice in ADVICE), (name, done)
        assert "`tripod init` makes one" not in told, (name, done)
    ann.said(*row.mends.split()[1:])
    for command in ("verify", "doctor"):
        done = ann.run(command)
        assert done.code == 0, done
    read = ann.said("chat", "read", "live")
    assert [read.count(text) for text in ("hello", "more")] == [1, 1]


WAY_OUT = ("`tripod restore", "`tripod init --from", "  tripod restore\n", ">tripod restore")
WORKING = [row for row in MISHAPS if row.act[0] == 0]


def _run_every(clone: Clone) -> Iterator[tuple[str, Done]]:
    """Run each command, one after the other."""
    (clone.root.parents[1] / "keep").write_text("kept\n")
    for name, words in EVERY.items():
        yield name, clone.run(*name.split(), *words.split())


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """The code of each command in a team where nothing is wrong."""
    clone = _begun(tmp_path_factory.mktemp("sound"))
    return {name: done.code for name, done in _run_every(clone)}


@pytest.mark.drawn
@pytest.mark.parametrize("row", WORKING, ids=lambda row: row.name)
def test_where_the_ledger_is_in_use_a_command_works_or_names_the_way_out(
    ann: Clone, sound: dict[str, int], place: Path, row: Mishap
) -> None:
    """Each ends as in a team where nothing is wrong, or says which command mends it."""
    lost = DEEDS[row.name](ann, place) or ann
    for name, done in _run_every(lost):
        told = done.err + done.out.decode()
        if done.code not in (0, sound[name]):
            assert any(advice in told for advice in WAY_OUT), (name, done)
        assert "`tripod init` makes one" not in told, (name, done)
