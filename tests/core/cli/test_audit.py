"""``tripod audit`` as a command: its words, its JSON, its exit codes, two copies side by side."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from doors.inside import Done, run
from replicas import Clone, begun_replica
from specimens import SPECIMENS, copy, database, unguarded


def audit(folder: Path, *words: str) -> Done:
    return run(folder, "audit", *words)


def value(folder: Path, *words: str) -> tuple[int, dict[str, Any]]:
    """The exit code, and what is printed as JSON."""
    done = audit(folder, *words, "--json")
    assert done.err == ""
    return done.code, json.loads(done.out)


def spoiled(root: str, says: str) -> None:
    """Damage a team as the specimen does that is named by a part of what it says."""
    (specimen,) = (one for one in SPECIMENS if one.says == says)
    specimen.do(root)


@pytest.fixture
def team(sound: str, tmp_path: Path) -> Path:
    """A project with a sound team."""
    copy(sound, str(tmp_path))
    return tmp_path


# Incidents --------------------------------------------------------------------------------------


def test_a_sound_team_ends_with_0(team: Path) -> None:
    done = audit(team)
    assert (done.code, done.err) == (0, "")
    assert b"nothing bad was found: all required checks are clean\n" in done.out
    assert b"no head is known: no seal was made" in done.out  # nobody ever sealed it


def test_a_rewritten_entry_is_told_with_what_it_says(team: Path) -> None:
    with unguarded(database(f"{team}/.nbs")) as db:
        db.execute("UPDATE entries SET body = ? WHERE seq = 5", (b'{"channel":"live"}',))
    done = audit(team)
    said = done.out.decode()
    assert done.code == 1
    assert ": the ledger is damaged: entry 5 is the first bad one\n" in said
    assert "  entry 5 (bodies-present): " in said
    assert "  here: 5  " in said
    assert "its body is not the one that its header commits to" in said
    assert f"tripod audit {team}/.nbs --bundle DIR\n" in said
    code, found = value(team)
    assert code == found["exit_code"] == 1
    assert (found["first_bad"]["seq"], found["first_bad"]["last"]) == (5, 5)
    assert [side["name"] for side in found["sides"]] == ["unsealed", "bad", "after"]
    assert {one["check"] for one in found["findings"]["altered"]} == {"bodies-present"}


def test_a_tail_that_was_linked_anew_is_bounded_by_what_vouches_for_it(team: Path) -> None:
    """The head row tells that the newest entry is another, and not that those before are not."""
    said = ["chat", "send", "live", "alex", "And cake."]
    for words in (["key", "new"], ["seal"], said):
        assert run(team, *words).code == 0
    with unguarded(database(f"{team}/.nbs")) as db:
        sql = "SELECT seq, header FROM entries ORDER BY seq DESC LIMIT 1"
        last, header = db.execute(sql).fetchone()
        header = header.replace(b'"stream":"', b'"stream":"x')
        db.execute(
            "UPDATE entries SET header = ?, stream = 'x' || stream WHERE seq = ?", (header, last)
        )
    code, found = value(team)
    first, good = found["first_bad"], max(one["size"] for one in found["heads"] if one["fits"])
    assert code == 1
    assert (first["seq"], first["last"]) == (good, last)
    assert good < last


def test_a_forged_assessment_is_told(team: Path) -> None:
    spoiled(f"{team}/.nbs", "answers no checkpoint event")
    done = audit(team)
    assert done.code == 1
    said = done.out.decode()
    assert "\nReviews\n" in said
    assert "answers no checkpoint event" in said
    assert "nothing bad was found in the ledger itself" in said


def test_a_reviewer_that_read_the_chat_is_told_with_what_it_saw(team: Path) -> None:
    spoiled(f"{team}/.nbs", "pythia-a0d7 read the chat")
    done = audit(team)
    assert done.code == 1
    said = done.out.decode()
    assert "\nWho saw what\n" in said
    assert "\nProtected texts that were read\n" in said
    assert "pythia-a0d7 read the chat" in said
    assert "tail -50 .nbs/chat/live.chat" in said


def test_a_ledger_that_is_no_ledger_cannot_be_judged(team: Path) -> None:
    Path(database(f"{team}/.nbs")).write_bytes(b"no ledger")
    done = audit(team)
    assert done.code == 3
    assert b"the ledger cannot be judged: " in done.out
    assert audit(team, "nothing-there").code == 3


def test_where_nothing_is_nothing_is_said_to_be_clean(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for words in ((), ("nothing-there",)):
        done = audit(tmp_path / "empty", *words, "--bundle", f"{tmp_path}/b")
        assert (done.code, done.out) == (3, b"")
        assert "nothing was audited: " in done.err
        assert "--bundle" not in done.err
        assert not (tmp_path / "b").exists()
    done = audit(tmp_path / "empty")
    assert "Give the project's folder, or begin a ledger in this one" in done.err


def test_what_is_ours_and_no_ledger_is_called_by_its_name(team: Path) -> None:
    assert audit(team, ".", "--bundle", "a b").code == 0
    done = audit(team, "a b")
    assert (done.code, done.out) == (3, b"")
    assert "`python3 -I -S 'a b'/verify.py` judges it" in done.err
    done = audit(team, "refs/tripod/ann")
    assert done.code == 3
    assert "give the folder of its repository" in done.err


def test_an_empty_path_is_no_path(team: Path) -> None:
    """A variable of a script that is not set: here is a team, and it is not what was meant."""
    for words in (
        ["audit", ""],
        ["verify", ""],
        ["decisions", "summary", ""],
        ["log", ""],
        ["audit", "", "--bundle", "../b"],
    ):
        done = run(team, *words)
        assert (done.code, done.out) == (2, b""), words
        assert "the path is empty" in done.err


def test_what_strangers_wrote_does_not_reach_the_terminal(team: Path) -> None:
    with unguarded(database(f"{team}/.nbs")) as db:
        db.execute("UPDATE entries SET kind = ? WHERE seq = 5", ("\x1b[31mred\n",))
    for words in ((), ("--json",)):
        done = audit(team, *words)
        assert done.code == 1
        assert b"\x1b" not in done.out


def test_names_that_are_no_utf8_are_named(sound: str, tmp_path: Path) -> None:
    place = os.fsencode(tmp_path) + b"/a\xff"
    os.mkdir(place)
    copy(sound, os.fsdecode(place))
    name = os.fsdecode(place)
    done = audit(tmp_path, name, "--bundle", f"{tmp_path}/b")
    assert done.code == 0, done
    assert audit(tmp_path, name, "--json").code == 0


# Records, exports and copies --------------------------------------------------------------------


@pytest.fixture
def ann(tmp_path: Path) -> Clone:
    """A replica whose record was pushed, with messages."""
    clone = begun_replica(tmp_path, "ann")
    for number in range(3):
        clone.said("chat", "send", "live", "ann", f"message {number}")
    clone.push()
    return clone


def test_a_clone_that_forked_is_told_with_both_readings(ann: Clone, tmp_path: Path) -> None:
    twin = ann.copied(tmp_path / "twin")
    ann.said("chat", "send", "live", "ann", "as it was")
    twin.said("chat", "send", "live", "ann", "as it was not")
    for clone in (ann, twin):
        clone.keep()
    done = ann.run("audit", str(ann.git.root), str(twin.git.root))
    said = done.out.decode()
    assert done.code == 1, done
    assert ": as it was\n" in said
    assert ": as it was not\n" in said
    assert "One key sealed both histories" in said
    assert "A by itself: nothing bad was found" in said
    done = ann.run("audit", str(ann.git.root), str(twin.git.root), "--json")
    found = json.loads(done.out)
    assert found["forked"] is True
    assert found["a"]["entry"]["text"] != found["b"]["entry"]["text"]
    assert found["a"]["exit_code"] == 0
    same = ann.run("audit", str(ann.git.root), str(ann.git.root))
    assert same.code == 0
    assert ann.run("audit", str(ann.git.root), str(twin.git.root), "--bundle", "b").code == 2
    # By itself the fork is told too, once each side sees what the other sealed.
    twin.git("push", "--quiet", "--force", "origin", "refs/tripod/*:refs/tripod/*")
    ann.fetch()
    code, alone = value(ann.git.root)
    assert code == 1
    assert alone["first_bad"] is not None
    assert alone["first_bad"]["was"]["text"] != alone["first_bad"]["entry"]["text"]
    assert any(one["source"] == "peer" and one["fits"] is False for one in alone["heads"])


def test_of_two_copies_one_that_cannot_be_read_does_not_hide_the_other(team: Path) -> None:
    with unguarded(database(f"{team}/.nbs")) as db:
        db.execute("UPDATE entries SET body = ? WHERE seq = 5", (b'{"channel":"live"}',))
    (team / "malformed.db").write_bytes(b"no ledger")
    for one, two in ((".", "malformed.db"), ("malformed.db", ".")), ((".", "gone"), ("gone", ".")):
        for words in (one, two):
            done = audit(team, *words)
            assert done.code == 1, done
            said = done.out.decode()
            assert said.startswith("where they part cannot be told: ")
            good = "AB"[words.index(".")]
            assert f"{good} by itself: the ledger is damaged: entry 5 is the first bad one" in said
    code, found = value(team, ".", "malformed.db")
    assert (code, found["a"]["exit_code"], found["b"]["exit_code"]) == (1, 1, 3)
    assert found["problem"]
    assert audit(team, "malformed.db", "gone").code == 3


def test_a_clone_is_audited_by_the_records_on_its_refs(ann: Clone, tmp_path: Path) -> None:
    """An auditor's clone has no ledger; each replica's record is a part, and a bundle by itself."""
    eve = Clone(tmp_path, "eve")
    eve.fetch()
    code, found = value(eve.git.root, ".", "--bundle", f"{tmp_path}/b")
    assert code == 0
    assert found["verdict"] == "nothing bad was found: all required checks are clean"
    assert found["what"].startswith("refs/tripod-remotes/origin/ann-")
    assert found["bundle"]["path"] == f"{tmp_path}/b"
    assert (tmp_path / "b/verify.py").exists()
    bob = begun_replica(tmp_path / "other", "bob")
    bob.keep()
    bob.git("push", "--quiet", str(ann.remote), "refs/tripod/*:refs/tripod/*")
    eve.fetch()
    code, found = value(eve.git.root, ".", "--bundle", f"{tmp_path}/two")
    assert [part["size"] > 0 for part in found["parts"]] == [True, True]
    assert code == found["exit_code"]
    assert len(list((tmp_path / "two").glob("part-*/verify.py"))) == 2


def test_an_export_is_audited(team: Path, tmp_path: Path) -> None:
    for words in (["key", "new"], ["seal"], ["export", "../out", "--bodies"]):
        assert run(team, *words).code == 0
    out = team.parent / "out"
    try:
        code, found = value(tmp_path, str(out))
        assert (code, found["first_bad"]) == (0, None)
        assert next(one["source"] for one in found["heads"] if one["fits"]) == "record"
        assert audit(tmp_path, str(out), "--bundle", str(out / "b")).code == 1  # not into it
        done = audit(tmp_path, str(out), "--bundle", str(tmp_path / "b"))
        assert done.code == 0, done
        (page,) = out.glob("bodies/**/*.jsonl")
        page.write_bytes(page.read_bytes().replace(b"task 3", b"task 4"))
        code, found = value(tmp_path, str(out))
        assert code == 1
        assert found["first_bad"]["by"] == "bodies-present"
    finally:
        shutil.rmtree(out)


def test_its_own_ref_is_not_outside_of_a_replica(ann: Clone) -> None:
    """The replica moves that ref itself: who has its key and writes to it makes both anew."""
    _, told = value(ann.git.root, "--no-git")
    assert {one["source"] for one in told["heads"]} == {"seal"}
    _, told = value(ann.git.root)
    (own,) = (one for one in told["heads"] if one["where"].startswith("refs/tripod/"))
    assert (own["fits"], own["source"], own["outside"]) == (True, "record", False)


def test_a_pin_that_is_not_there_is_no_damage(team: Path) -> None:
    """Nothing is wrong with the ledger, so nothing is advised that would replace it."""
    for words in ((), (".",)):
        done = audit(team, *words, "--pin", "nofile")
        assert (done.code, done.out) == (2, b"")
        assert "no pin at nofile" in done.err
