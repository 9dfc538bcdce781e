"""Records that others push into a clone itself, beside the ref of its own replica."""

import sqlite3
from pathlib import Path
from unittest import mock

import pytest
from git_repo import Git
from replicas import Clone, begun, name_of

from tripod.ledger.kinds.trust import SEAL_MADE
from tripod.ledger.sqlite.store import SQLiteTransaction
from tripod.peers import record
from tripod.trust import keys
from tripod.trust import seal as sealing
from tripod.verify.peers.refs import OWN


@pytest.fixture
def anna(tmp_path: Path) -> Clone:
    """The clone in which the team was begun, and into which others push."""
    return begun(Clone(tmp_path, "anna"))


@pytest.fixture
def ben(tmp_path: Path, anna: Clone) -> Clone:
    """A colleague who joined, said something, and pushed it into Anna's clone."""
    ben = Clone(tmp_path, "ben")
    ben.said("init", "--from", "origin")
    ben.said("chat", "send", "live", "ben", "Tea at ten.")
    ben.said("push", str(anna.git.root))
    return ben


def test_a_record_that_was_pushed_here_is_merged_and_passed_on(anna: Clone, ben: Clone) -> None:
    listed = anna.said("peer", "list")
    assert f"{name_of(ben)}  waiting" in listed
    assert "`tripod pull`" in listed, "how it ends is said"
    assert "would pull ben-" in anna.said("pull", "--dry-run")
    assert "pulled ben-" in anna.said("pull")
    assert anna.said("chat", "read", "live").count("Tea at ten.") == 1
    assert "waiting" not in anna.said("peer", "list")
    assert "passed on ben-" in anna.said("push")
    assert anna.said("pull") == "nothing new from origin\n"
    # What ben pushes to the remote is newer than what still stands here.
    ben.said("chat", "send", "live", "ben", "Cake at noon.")
    ben.said("push")
    assert "pulled ben-" in anna.said("pull")
    assert anna.said("pull") == "nothing new from origin\n"
    anna.said("verify")


def test_what_is_no_record_or_another_team_s_is_named_with_what_to_do(
    anna: Clone, ben: Clone, tmp_path: Path
) -> None:
    eve = Clone(tmp_path, "eve")
    eve.said("init", "--new")
    eve.said("seal")
    eve.git("push", "--quiet", str(anna.git.root), f"{OWN}{name_of(eve)}")
    done = anna.run("pull")
    assert (done.code, f"{name_of(eve)}: it is a replica of the team" in done.out.decode()) == (
        0,
        True,
    )
    ref = f"{OWN}mallory-{7:016x}"
    anna.git("update-ref", ref, "HEAD")
    done = anna.run("pull")
    assert done.code == 1
    assert f"`git update-ref -d {ref}` removes it" in done.out.decode()
    anna.git("update-ref", "-d", ref)
    anna.said("pull")
    assert ben.said("chat", "read", "live").count("Tea") == 1


def test_another_s_record_on_the_own_ref_is_named_with_what_to_do(anna: Clone, ben: Clone) -> None:
    ref = f"{OWN}{name_of(anna)}"
    for held in ("HEAD", f"{OWN}{name_of(ben)}"):
        anna.git("update-ref", ref, held)
        anna.said("chat", "send", "live", "anna", f"Held by {held[:4]}.")
        done = anna.run("push")
        assert done.code == 1
        assert f"`git update-ref -d {ref}`" in done.err, done
        assert f"`git update-ref -d {ref}`" in anna.run("seal").err
        anna.git("update-ref", "-d", ref)
        anna.said("push")
        assert anna.said("log", "--kind", "peer.forked") == ""
        anna.said("verify")


# What a pull leaves on the own ref ----------------------------------------------------------------


def test_a_pull_that_takes_nothing_writes_no_ref(anna: Clone, ben: Clone) -> None:
    ben.said("push")
    before = anna.git("for-each-ref", OWN)
    anna.said("pull")
    after = anna.git("for-each-ref", OWN)
    assert after != before
    anna.said("push")
    ben.said("pull")
    ben.said("push")
    with mock.patch.object(record, "keep_record", None):
        assert anna.said("pull") == "nothing new from origin\n"
        assert anna.said("pull") == "nothing new from origin\n"
    assert anna.git("for-each-ref", OWN) == after


@pytest.mark.parametrize("decided", [False, True])
def test_a_key_that_is_locked_is_said_once_behind_what_came(
    anna: Clone, ben: Clone, decided: bool
) -> None:
    with anna.team() as team:
        sealing.rotate_sealing_key(team, keys.no_passphrase, b"secret")
    if decided:
        ben.said("scribe", "log", "Drink tea", "-r", "It is good.", "-p", "ben", "--ref", "last")
    ben.said("push")
    done = anna.run("pull")
    assert (done.code, done.err.count("but not sealed: "), done.err.count("encrypted")) == (0, 1, 1)
    assert anna.run("pull").err == "", "nothing came"


@pytest.mark.parametrize("what", ["the seal", "the ref"])
def test_a_disk_that_is_full_behind_what_came_loses_nothing(
    anna: Clone, ben: Clone, what: str
) -> None:
    ben.said("push")
    append = SQLiteTransaction.append

    def refuses(self: SQLiteTransaction, drafts: list[object], *rest: object) -> object:
        if [draft.kind for draft in drafts] == [SEAL_MADE.name]:  # type: ignore[attr-defined]
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        return append(self, drafts, *rest)  # type: ignore[arg-type]

    full = OSError(28, "No space left on device")
    with (
        mock.patch.object(record, "stage_export", side_effect=full)
        if what == "the ref"
        else mock.patch.object(SQLiteTransaction, "append", refuses)
    ):
        done = anna.run("pull")
    assert done.code == 0, done
    assert "pulled ben-" in done.out.decode()
    assert "not up to date" in done.err if what == "the ref" else "but not sealed" in done.err
    anna.said("verify")
    ref = f"{OWN}{name_of(anna)}"
    anna.said("seal")
    Git(anna.git.root, made=False)("fsck", "--no-dangling")
    with anna.team() as team:
        assert f"Record of {team.store.size - 1} entries" in anna.git("log", "-1", ref)
