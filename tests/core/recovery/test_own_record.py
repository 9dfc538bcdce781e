"""A lost ledger comes back from this replica's own record, the longest that git knows of."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import closing
from pathlib import Path

import pytest
from doors.inside import run
from replicas import Clone, Snapshot, place_in, pushed_replica
from specimens import unguarded

from tripod.ledger.kinds.peers import PEER_MERGED
from tripod.ledger.sqlite.reader import read_only
from tripod.trust.seal import newest


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """A clone with a replica that said something, and pushed its record."""
    folder = place_in(tmp_path_factory)
    pushed_replica(folder, "ann")
    return Snapshot(folder)


@pytest.fixture
def place(made: Snapshot) -> Path:
    """The folder of the clone and its remote, as it was made."""
    return made.put_back()


@pytest.fixture
def ann(place: Path) -> Clone:
    """A clone with a replica that said something, and pushed its record."""
    return Clone(place, "ann")


def lose(clone: Clone) -> None:
    """The database and its lock are gone."""
    shutil.rmtree(clone.database.parent)


def origin(clone: Clone) -> str:
    with clone.team() as team:
        return team.store.origin


def test_the_ledger_comes_back_under_its_name_and_seals_go_on(ann: Clone) -> None:
    name, before = origin(ann), ann.said("log", "--json")
    lose(ann)
    out = ann.said("restore")
    assert f"Restored: {ann.database}, " in out
    assert "of refs/tripod/ann-" in out
    assert "goes on as" not in out
    assert origin(ann) == name
    after = ann.said("log", "--json").splitlines()
    assert set(after) <= set(before.splitlines()), "the seal's own entry is not in the record"
    assert len(after) >= len(before.splitlines()) - 1
    ann.said("chat", "send", "live", "ann", "again")
    ann.said("seal")
    ann.said("verify")


def test_what_the_files_show_beyond_the_record_is_taken_in_as_observed(ann: Clone) -> None:
    ann.said("chat", "send", "live", "ann", "after the push")
    ann.said("scribe", "log", "Keep it", "--rationale", "It works.", "-p", "ann", "--ref", "last")
    lose(ann)
    out = ann.said("restore")
    assert "1 chat.sent, 1 decision.logged" in out.splitlines()[-1]
    read = ann.said("chat", "read", "live")
    assert read.count("after the push") == 1
    assert ann.said("scribe", "query").count("Keep it") == 1
    ann.said("verify")


def test_with_the_files_gone_too_they_are_written_again(ann: Clone) -> None:
    before = (ann.root / "chat/live.chat").read_bytes()
    lose(ann)
    shutil.rmtree(ann.root)
    ann.said("restore")
    assert (ann.root / "chat/live.chat").read_bytes() == before
    assert ann.git("status", "--porcelain", "--untracked-files=all") == ""
    ann.said("verify")


def test_the_longest_of_all_records_is_taken(ann: Clone) -> None:
    ref = ann.git("for-each-ref", "--format=%(refname)", "refs/tripod").strip()
    old = ann.git("rev-parse", ref)
    ann.said("chat", "send", "live", "ann", "newer")
    ann.push()
    ann.fetch()
    ann.git("update-ref", ref, old)
    lose(ann)
    assert "of refs/tripod-remotes/origin/ann-" in ann.said("restore")
    assert "newer" in ann.said("chat", "read", "live")


def test_a_lost_laptop_is_restored_by_name_where_its_key_was_saved(ann: Clone, place: Path) -> None:
    name = ann.push()
    again = Clone(place, "new", home=ann.home)
    again.fetch()
    done = again.run("restore")
    assert done.code == 1
    assert f"`tripod restore --replica {name}`" in done.err
    assert "`tripod init`" in done.err
    done = again.run("restore", "--replica", "nobody")
    assert (
        done.code,
        f"no record here is of a replica 'nobody'; there are {name}" in done.err,
    ) == (
        1,
        True,
    )
    again.said("restore", "--replica", name.partition("-")[0])
    assert "hello" in again.said("chat", "read", "live")
    again.said("verify")


def test_without_the_key_nothing_is_restored(ann: Clone, place: Path) -> None:
    shutil.rmtree(ann.home / "keys")
    lose(ann)
    done = ann.run("restore")
    assert done.code == 1
    assert "the private key of none of the records here (ann-" in done.err
    assert "`tripod init` joins" in done.err
    assert not ann.database.exists()


def two_talk(ann: Clone, folder: Path) -> Clone:
    """A clone that joined ann's team, and pushed a message and a decision of its own."""
    bob = Clone(folder, "bob")
    bob.said("init", "--from", "origin")
    bob.said("chat", "send", "live", "bob", "Tea at ten.")
    bob.said("scribe", "log", "Drink tea", "-r", "It is good.", "-p", "bob", "--ref", "last")
    bob.said("push")
    return bob


@pytest.mark.parametrize("later", ["nothing", "a message", "a decision"])
def test_what_a_pull_merged_comes_back_and_the_replica_goes_on(
    ann: Clone, place: Path, later: str
) -> None:
    bob, name = two_talk(ann, place), origin(ann)
    ann.said("pull")
    with ann.team() as team:
        merged = team.store.size
    if later == "a message":  # in the middle of a day: nothing of this is sealed
        ann.said("chat", "send", "live", "ann", "Without milk.")
    if later == "a decision":  # it is sealed at once, and not on the ref yet
        ann.said(
            "scribe", "log", "Without milk.", "-r", "It is good.", "-p", "ann", "--ref", "last"
        )
    lose(ann)
    out = ann.said("restore")
    assert ("goes on as" in out) == (later == "a decision")
    assert ("1 chat.sent" in out) == (later == "a message")
    assert ("1 decision.logged" in out) == (later == "a decision")
    assert (origin(ann) == name) == (later != "a decision")
    with ann.team() as team:
        assert team.store.size >= merged - 1, "all but the entry of the newest seal"
    ann.said("verify")
    ann.said("push")
    assert "nothing new" in ann.said("pull")
    bob.said("pull")
    for clone in (ann, bob):
        read = clone.said("chat", "read", "live")
        read += clone.said("scribe", "query")
        texts = ("hello", "Tea at ten.", "Drink tea", "Without milk.")
        assert [read.count(text) for text in texts] == [1, 1, 1, later != "nothing"]
        clone.said("verify")


@pytest.mark.parametrize("how", ["init", "init again", "move"])
def test_who_joined_comes_back_as_the_same_replica(ann: Clone, place: Path, how: str) -> None:
    ann.said("scribe", "log", "Drink tea", "-r", "It is good.", "-p", "ann", "--ref", "last")
    ann.push()
    bob = Clone(place, "bob")
    if how == "move":
        bob.said("init", "--key")
    bob.said("init", "--from", "origin")
    if how == "init again":
        ann.said("scribe", "log", "Eat cake", "-r", "It is good.", "-p", "ann", "--ref", "last")
        ann.push()
        bob.fetch()
        bob.said("init")
    name = origin(bob)
    lose(bob)
    assert "goes on as" not in bob.said("restore")
    assert origin(bob) == name
    assert bob.said("chat", "read", "live").count("hello") == 1
    bob.said("verify")
    bob.said("push")


def test_what_a_seal_or_a_peer_remembers_more_of_is_a_line_of_its_own(ann: Clone) -> None:
    name = origin(ann)
    ann.said("chat", "send", "live", "ann", "sealed, and never pushed")
    ann.said("seal")
    for ref in ann.git("for-each-ref", "--format=%(refname)", "refs/tripod").split():
        ann.git("update-ref", "-d", ref)
    ann.fetch()  # what was pushed before
    replica = ann.git("for-each-ref", "--format=%(refname)", "refs/tripod-remotes").rpartition("/")[
        2
    ]
    lose(ann)
    out = ann.said("restore", "--replica", replica)
    assert f"It goes on as {name}/fork/" in out
    assert "sealed, and never pushed" in ann.said("chat", "read", "live")
    done = ann.run("verify")
    assert done.code == 0, done


def test_a_peer_s_memory_counts_as_a_seal_does(ann: Clone, place: Path) -> None:
    ann.said("chat", "send", "live", "ann", "only bob saw it")
    with ann.team() as team:
        made = newest(team.store.db)
        assert made is not None
        head, name = team.store.head(), team.store.origin
    bob = Clone(place, "bob")
    bob.said("init")
    with bob.team() as team:
        body = {"origin": name, "size": head.size, "root": head.root.hex(), "seal": b"a note"}
        team.store.append([PEER_MERGED.draft(body)])  # type: ignore[arg-type]
    bob.push()
    ann.fetch()
    lose(ann)
    shutil.rmtree(ann.home / "seals")
    out = ann.said("restore")
    assert f"It goes on as {name}/fork/" in out
    (fork,) = (
        json.loads(line)
        for line in ann.said("log", "--json", "--kind", "ledger.forked-from").splitlines()
    )
    assert "the peer bob-" in json.dumps(fork)


def test_a_ledger_that_holds_all_of_the_record_is_left_alone(ann: Clone) -> None:
    before = ann.database.read_bytes()
    done = ann.run("restore")
    assert done.code == 1
    assert "there is nothing to restore" in done.err
    assert ann.database.read_bytes() == before


def test_bodies_that_were_changed_come_back_and_what_is_newer_stays(ann: Clone) -> None:
    """The record has the true words, the ledger more entries: neither alone is the whole."""
    ann.said("chat", "send", "live", "ann", "a secret")
    ann.push()
    ref = ann.git("for-each-ref", "--format=%(refname)", "refs/tripod").strip()
    before_redaction = ann.git("rev-parse", ref)
    sent = ann.said("log", "--json", "--kind", "chat.sent").splitlines()
    seq = max(json.loads(line)["seq"] for line in sent)
    ann.said("redact", str(seq), "--reason", "it was a secret")
    ann.said("chat", "send", "live", "ann", "newer")
    before = ann.said("log", "--json")
    ann.git("update-ref", ref, before_redaction)  # a record that still has what was erased
    with unguarded(str(ann.database)) as db:
        db.execute(
            "UPDATE entries SET body = CAST(replace(CAST(body AS TEXT), 'hello', 'never') AS BLOB)"
            " WHERE kind = 'chat.sent'"
        )
    assert b"bodies-present" in ann.run("verify").out
    assert b"tripod restore" in ann.run("doctor").out
    out = ann.said("restore")
    assert ", what is newer from the database that stood there\n" in out
    assert "is kept as" in out
    assert set(before.splitlines()) <= set(ann.said("log", "--json").splitlines())
    read = ann.said("chat", "read", "live")
    assert "hello" in read
    assert "newer" in read
    assert "a secret" not in read
    with closing(read_only(str(ann.database))) as db:
        (kept,) = db.execute("SELECT body FROM entries WHERE seq = ?", (seq,)).fetchone()
    assert kept is None, "what was erased since the record was made stays erased"
    ann.said("verify")


@pytest.mark.parametrize("body", ["garbage", "{}", '{"seq":"x"}'])
def test_a_body_that_is_none_any_more_comes_back_as_well(ann: Clone, body: str) -> None:
    ann.push()
    with unguarded(str(ann.database)) as db:
        db.execute("UPDATE entries SET body = CAST(? AS BLOB) WHERE kind = 'chat.sent'", (body,))
    ann.said("restore")
    assert "hello" in ann.said("chat", "read", "live")
    ann.said("verify")
    assert not list(ann.database.parent.glob("*restoring*"))


def test_a_blob_that_was_changed_comes_back_or_is_told(ann: Clone) -> None:
    ann.said("chat", "send", "live", "ann", "long " * 40_000)
    kept = ann.database.read_bytes
    for pushed in (False, True):
        if pushed:
            ann.push()
        with unguarded(str(ann.database)) as db:
            (blob,) = db.execute("SELECT bytes FROM blobs").fetchone()
            db.execute("UPDATE blobs SET bytes = ?", (b"never " * 1000,))
        before, done = kept(), ann.run("restore")
        assert done.code == (0 if pushed else 1), done
        if not pushed:
            assert "a blob that is not its own" in done.err
            assert kept() == before
            with unguarded(str(ann.database)) as db:
                db.execute("UPDATE blobs SET bytes = ?", (blob,))
    assert "long long" in ann.said("chat", "read", "live")
    ann.said("verify")


def test_a_body_that_no_record_has_is_told_and_nothing_is_replaced(ann: Clone) -> None:
    ann.said("chat", "send", "live", "ann", "newer")
    with unguarded(str(ann.database)) as db:
        db.execute(
            "UPDATE entries SET body = CAST(replace(CAST(body AS TEXT), 'newer', 'never') AS BLOB)"
        )
    before = ann.database.read_bytes()
    done = ann.run("restore")
    assert done.code == 1
    assert "has a body that it did not commit to" in done.err
    assert "tripod restore FILE" in done.err
    assert ann.database.read_bytes() == before


@pytest.mark.parametrize("data", [b"", b"garbage" * 1000])
def test_a_database_that_is_none_any_more_is_replaced_and_kept(ann: Clone, data: bytes) -> None:
    for path in ann.database.parent.glob("ledger.db*"):
        path.unlink()
    ann.database.write_bytes(data)
    out = ann.said("restore")
    assert "is kept as" in out
    assert ann.database.with_name("ledger.db.replaced-1").exists()
    assert "hello" in ann.said("chat", "read", "live")
    ann.said("verify")


def test_two_records_that_contradict_each_other_are_refused_with_both_names(
    ann: Clone, place: Path
) -> None:
    """A copied disk: the same replica went on twice, with the same key."""
    copy = ann.copied(place)
    copy.said("chat", "send", "live", "ann", "on the copy")
    copy.push()
    ann.said("chat", "send", "live", "ann", "on the original")
    ann.said("chat", "send", "live", "ann", "and again")
    ann.keep()
    ann.fetch()
    lose(ann)
    done = ann.run("restore")
    assert done.code == 1
    assert "contradict each other" in done.err
    assert "refs/tripod/ann-" in done.err
    assert "refs/tripod-remotes/origin/ann-" in done.err
    assert not ann.database.exists()


def test_a_record_that_does_not_verify_is_not_restored(ann: Clone) -> None:
    (ref,) = ann.git("for-each-ref", "--format=%(refname)", "refs/tripod").split()
    tree = ann.git("rev-parse", f"{ref}^{{tree}}")
    entries = ann.git("ls-tree", "-r", tree).splitlines()
    bodies = next(line for line in entries if "\tbodies/" in line)
    blob = bodies.split()[2]
    text = ann.git("cat-file", "-p", blob).replace("hello", "hullo") + "\n"
    other = ann.git("hash-object", "-w", "--stdin", given=text.encode())
    index = {"GIT_INDEX_FILE": str(ann.git.root / ".git/other-index")}
    os.environ.update(index)
    try:
        ann.git("read-tree", tree)
        path = bodies.partition("\t")[2]
        ann.git("update-index", "--cacheinfo", f"100644,{other},{path}")
        made = ann.git("write-tree")
    finally:
        del os.environ["GIT_INDEX_FILE"]
    ann.git("update-ref", ref, ann.git("commit-tree", made, "-m", "x"))
    lose(ann)
    done = ann.run("restore")
    assert done.code == 1
    assert "does not verify" in done.err
    assert not ann.database.exists()


@pytest.mark.parametrize(
    "words",
    [("x.db", "--as-copy"), ("--as-copy", "--replica", "x"), ("--discard", "x"), ("--sign-fork",)],
)
def test_one_way_to_restore_at_a_time(ann: Clone, words: tuple[str, ...]) -> None:
    assert ann.run("restore", *words).code == 2


def test_outside_of_a_repository_the_record_is_the_folder(tmp_path: Path) -> None:
    for words in (("init", "--key"), ("chat", "create", "live")):
        assert run(tmp_path, *words).code == 0
    assert run(tmp_path, "chat", "send", "live", "ann", "hello").code == 0
    assert run(tmp_path, "seal").code == 0
    for path in (tmp_path / ".nbs").glob("ledger.db*"):
        path.unlink()
    done = run(tmp_path, "restore")
    assert done.code == 0, done
    assert f"of {tmp_path}/.nbs/record" in done.out.decode()
    assert b"hello" in run(tmp_path, "chat", "read", "live").out
    assert run(tmp_path, "verify").code == 0


def test_a_database_of_zero_bytes_is_not_begun_anew(ann: Clone) -> None:
    for path in ann.database.parent.glob("ledger.db*"):
        path.unlink()
    ann.database.write_bytes(b"")
    done = ann.run("init")
    assert done.code == 1
    assert "`tripod restore` brings a lost ledger back" in done.err
    assert "hello" in ann.said("restore") + ann.said("chat", "read", "live")


def test_refs_that_hold_something_else_are_passed_over(ann: Clone) -> None:
    """A commit of the work, a tag of nothing, a tree with a link in the place of the seal."""
    head = ann.git("rev-parse", "HEAD")
    ann.git("update-ref", "refs/tripod/eve-0123456789abcdef", head)
    link = ann.git("hash-object", "-w", "--stdin", given=b"/etc/passwd")
    tree = ann.git("mktree", given=f"120000 blob {link}\tcheckpoint\n".encode())
    odd = ann.git("commit-tree", tree, "-m", "x")
    ann.git("update-ref", "refs/tripod-remotes/origin/eve-0123456789abcdee", odd)
    lose(ann)
    assert "of refs/tripod/ann-" in ann.said("restore")
    assert "hello" in ann.said("chat", "read", "live")


# A replica that went on under a newer name ------------------------------------------------------


def lose_what_was_sealed(clone: Clone) -> None:
    """More was sealed than the ref has, so that the ledger is restored under a newer name."""
    clone.said("chat", "send", "live", "ann", "sealed here alone")
    clone.said("scribe", "log", "Keep it", "--rationale", "It works.", "-p", "ann", "--ref", "last")
    lose(clone)


def test_it_is_restored_again_and_again_by_the_same_words(ann: Clone) -> None:
    names = [origin(ann)]
    for _ in range(3):
        lose_what_was_sealed(ann)
        assert f"forked from {names[-1]}" in ann.said("restore")
        names.append(origin(ann))
        ann.push()
    lose(ann)
    ann.said("restore")
    assert origin(ann) == names[-1]
    assert ann.said("chat", "read", "live").count("sealed here alone") == 3
    ann.said("verify")


def test_a_line_that_the_ledger_goes_on_from_is_not_put_in_its_place(ann: Clone) -> None:
    old = ann.push()
    lose_what_was_sealed(ann)
    ann.said("restore")
    before = origin(ann)
    done = ann.run("restore", "--replica", old)
    assert (done.code, "there is nothing to restore" in done.err) == (1, True), done
    assert origin(ann) == before


def test_a_clone_that_joined_again_is_not_replaced_by_what_it_was(ann: Clone) -> None:
    old = ann.push()
    lose(ann)
    shutil.rmtree(ann.root)
    ann.git("update-ref", "-d", f"refs/tripod/{old}")
    ann.said("init", "--from", "origin")
    ann.said("chat", "send", "live", "ann", "as another replica")
    done = ann.run("restore", "--replica", old)
    assert (done.code, "is the ledger of another replica" in done.err) == (1, True), done
    assert ann.said("chat", "read", "live").count("hello") == 1
    ann.said("verify")
