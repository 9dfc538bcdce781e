"""Heads that are remembered outside: pins, seals in git, policies, and what they say."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from git_repo import Git
from sealed import LOG, TIME, WITNESSES, format_policy
from specimens import Row, database, forge, read
from story import BEGIN, Clock

from tripod.bus import events
from tripod.chat import writer as chat_send
from tripod.cli import main
from tripod.ledger.entry import entry_leaf_hash
from tripod.ledger.errors import MalformedError
from tripod.ledger.merkle import Tree
from tripod.ledger.tlog.note import Note, format_note
from tripod.ledger.tlog.policy import Group, Policy, TrustedLog, Witness
from tripod.ledger.tlog.seal import Seal, cosign_seal, format_seal, sign_seal
from tripod.team import adoption
from tripod.team.team import Team
from tripod.trust import seal as sealing
from tripod.verify.anchors.anchors import AnchorOptions
from tripod.verify.anchors.heads import MAX_HEAD, parse_head
from tripod.verify.check import Outcome, Report
from tripod.verify.evidence import collect
from tripod.verify.run import run

ORIGIN = LOG.name


@pytest.fixture
def clock() -> Iterator[Clock]:
    clock = Clock(BEGIN)
    with clock.running():
        yield clock


@pytest.fixture
def root(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> str:
    """A team of some entries, without a key."""
    monkeypatch.setenv("TRIPOD_HOME", str(tmp_path / "home"))
    (tmp_path / "team").mkdir()
    adoption.init(str(tmp_path / "team"), project="sample", origin=ORIGIN)
    root = str(tmp_path / "team/.nbs")
    with Team(root) as team:
        chat_send.create(team, "live", actor="ann")
    say(root, 3)
    clock.move(60)
    return root


def say(root: str, count: int) -> None:
    with Team(root) as team:
        for number in range(count):
            events.publish(team, "ann", "note", "normal", f"note {number}")


def head(root: str, size: int | None = None, origin: str = ORIGIN) -> Seal:
    """The head of the first ``size`` entries, by a tree of the test's own."""
    tree = Tree()
    with closing(sqlite3.connect(database(root))) as db:
        for (header,) in db.execute("SELECT header FROM entries ORDER BY seq").fetchall()[:size]:
            tree.append(entry_leaf_hash(header))
    return Seal(origin, tree.size, tree.root())


def pin(tmp_path: Path, seal: Seal, *signatures: object) -> AnchorOptions:
    path = tmp_path / "pin"
    if signatures:
        path.write_bytes(format_note(Note(format_seal(seal), signatures)))  # type: ignore[arg-type]
    else:
        path.write_text(format_seal(seal), encoding="utf-8")
    return AnchorOptions(str(path))


def judge(
    root: str, asked: AnchorOptions | None = None, select: tuple[str, ...] | None = None
) -> Report:
    with collect(root, asked=asked or AnchorOptions()) as evidence:
        return run(evidence, select)


def told(report: Report) -> Outcome:
    return next(outcome for outcome in report.outcomes if outcome.check == "pins-extend")


def texts(report: Report) -> list[str]:
    return [finding.message for finding in told(report).findings]


def rewrite(root: str, seq: int) -> None:
    """Make the ledger anew from ``seq`` on, consistent in itself."""
    rows = read(database(root))
    rows[seq] = rows[seq].saying(payload={"text": "something else"})
    forge(root, rows)


def cut(root: str, size: int) -> None:
    forge(root, read(database(root))[:size])


# Pins ------------------------------------------------------------------------------------------


def test_without_anything_outside_it_says_self(root: str) -> None:
    report = judge(root)
    assert told(report).verdict == "not applicable"
    assert report.exit_code == 0
    assert report.anchored is not None
    assert (report.anchored.level, report.anchored.sizes) == ("SELF", {})


def test_a_ledger_that_grew_from_its_pin_is_pinned(root: str, tmp_path: Path, clock: Clock) -> None:
    asked = pin(tmp_path, head(root))
    size = head(root).size
    clock.move(10)
    say(root, 2)
    clock.move(200)
    report = judge(root, asked)
    assert report.exit_code == 0
    assert told(report).coverage == {"heads": 1, "agree": 1}
    assert report.anchored is not None
    assert report.anchored.level == "PINNED"
    assert report.anchored.sizes["PINNED"] == (size, f"the pin {asked.pin}")
    assert (report.anchored.tail, report.anchored.seconds) == (2, 200)


def test_each_contradiction_has_its_own_word(root: str, tmp_path: Path) -> None:
    now = head(root)
    asked = pin(tmp_path, now._replace(size=now.size + 5))
    assert texts(judge(root, asked))[0].startswith(f"rollback: it remembers {now.size + 5} entries")
    asked = pin(tmp_path, now._replace(root=b"r" * 32))
    assert texts(judge(root, asked))[0].startswith("fork: it remembers root 7272")
    asked = pin(tmp_path, now._replace(origin="example.com/other"))
    assert texts(judge(root, asked))[0].startswith("unknown log: it remembers example.com/other")
    asked = pin(tmp_path, now, sign_seal(now, LOG))
    assert texts(judge(root, asked))[0].startswith("unsealed: ")
    assert judge(root, asked).exit_code == 1


@pytest.mark.parametrize("damage", ["rewrite", "cut"])
def test_what_no_log_can_see_by_itself_a_pin_sees(root: str, tmp_path: Path, damage: str) -> None:
    asked = pin(tmp_path, head(root))
    size = head(root).size
    if damage == "rewrite":
        rewrite(root, size - 2)
    else:
        cut(root, size - 2)
    assert judge(root, select=("sequence", "chain-links", "bodies-present")).exit_code == 0
    report = judge(root, asked)
    assert report.exit_code == 1
    assert texts(report)[0].startswith({"rewrite": "fork:", "cut": "rollback:"}[damage])


def test_what_is_behind_the_pin_it_does_not_see(root: str, tmp_path: Path) -> None:
    """The limit: nobody outside remembers the tail."""
    asked = pin(tmp_path, head(root))
    size = head(root).size
    say(root, 3)
    rewrite(root, size + 1)
    assert judge(root, asked).exit_code == 0
    cut(root, size)
    assert told(judge(root, asked)).verdict == "clean"


def test_a_pin_that_is_missing_or_unreadable_is_no_success(root: str, tmp_path: Path) -> None:
    report = judge(root, AnchorOptions(str(tmp_path / "none")))
    assert (report.exit_code, "--update-pin" in report.problem) == (3, True)
    bad = tmp_path / "bad"
    for data in (b"", b"x\n", b"example.com/ledger\n07\nx\n", b"\xff" * 100, b"x" * 300_000):
        bad.write_bytes(data)
        assert judge(root, AnchorOptions(str(bad))).exit_code == 3
    assert judge(root, AnchorOptions(str(tmp_path))).exit_code == 3
    os.mkfifo(tmp_path / "pipe")
    report = judge(root, AnchorOptions(str(tmp_path / "pipe")))
    assert (report.exit_code, "no regular file" in report.problem) == (3, True)


def test_rows_that_are_missing_leave_a_head_untold(root: str, tmp_path: Path) -> None:
    from specimens import unguarded

    asked = pin(tmp_path, head(root, 4))
    with unguarded(database(root)) as db:
        db.execute("DELETE FROM entries WHERE seq = 2")
    report = judge(root, asked)
    assert report.exit_code == 1
    assert told(report).verdict == "cannot tell"


# The command -----------------------------------------------------------------------------------


def command(*words: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["verify", *words])
    assert isinstance(left.value.code, int)
    return left.value.code


def test_the_pin_goes_forward_and_only_from_a_clean_run(
    root: str, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = tmp_path / "ci.pin"
    assert command(root, "--pin", str(path)) == 3
    assert command(root, "--pin", str(path), "--update-pin") == 0
    assert path.read_text(encoding="utf-8") == format_seal(head(root))
    assert b"remembers" in capsysbinary.readouterr().err
    say(root, 2)
    assert command(root, "--pin", str(path), "--update-pin", "--new-only") == 0
    kept = path.read_bytes()
    assert kept == format_seal(head(root)).encode()
    rewrite(root, head(root).size - 1)
    assert command(root, "--pin", str(path), "--update-pin") == 1
    assert path.read_bytes() == kept
    assert b"was left as it is" in capsysbinary.readouterr().err


@pytest.mark.parametrize(
    "words",
    [("--update-pin",), ("--new-only",), ("--pin", "x", "--update-pin", "--select", "drift")],
)
def test_options_that_make_no_sense_alone_are_refused(root: str, words: tuple[str, ...]) -> None:
    assert command(root, *words) == 2


def test_a_sealed_ledger_gives_its_seal_as_the_pin(root: str, tmp_path: Path) -> None:
    with Team(root) as team:
        sealing.new_sealing_key(team)
    path = tmp_path / "ci.pin"
    assert command(root, "--pin", str(path), "--update-pin") == 0
    assert f"— {ORIGIN} " in path.read_text(encoding="utf-8")
    report = judge(root, AnchorOptions(str(path)))
    assert told(report).verdict == "clean"
    assert report.anchored is not None
    assert report.anchored.tail == 0
    say(root, 1)
    assert command(root, "--pin", str(path), "--update-pin") == 0
    assert "—" not in path.read_text(encoding="utf-8")


def test_a_pin_never_goes_back_to_a_seal_behind_it(root: str, tmp_path: Path) -> None:
    with Team(root) as team:
        sealing.new_sealing_key(team)
    path = Path(pin(tmp_path, head(root)).pin or "")
    kept = path.read_text(encoding="utf-8")
    assert command(root, "--pin", str(path), "--update-pin") == 0
    assert path.read_text(encoding="utf-8") == kept


def test_a_seal_that_is_not_the_ledgers_becomes_no_pin(root: str, tmp_path: Path) -> None:
    """Signed by its key, over what it never was; the run that says so keeps no pin anyway."""
    from tripod.verify.anchors.comparison import pin_after_comparison

    with Team(root) as team:
        sealing.new_sealing_key(team)
    rows = read(database(root))
    seq = next(n for n, row in enumerate(rows) if row.head["kind"] == "seal.made")
    other = Seal(ORIGIN, seq, b"r" * 32)
    rows[seq] = rows[seq].saying(
        note=format_note(Note(format_seal(other), (sign_seal(other, LOG),))).decode()
    )
    forge(root, rows)
    with collect(root) as evidence:
        assert run(evidence).exit_code == 1
        assert pin_after_comparison(evidence) == format_seal(head(root)).encode()


# Git -------------------------------------------------------------------------------------------


@pytest.fixture
def git(root: str) -> Git:
    git = Git(Path(root).parent)
    (Path(root) / "policy.yaml").write_text("seals: [SEAL]\n", encoding="utf-8")
    git.commit("README", b"x\n")
    return git


def remember(git: Git, seal: Seal) -> str:
    return git.commit("SEAL", format_seal(seal).encode(), "remember")


def test_every_seal_that_git_ever_held_is_compared(root: str, git: Git) -> None:
    first = remember(git, head(root))
    size = head(root).size
    say(root, 2)
    remember(git, head(root))
    git.commit("SEAL", None)
    report = judge(root)
    assert told(report).coverage == {"heads": 2, "agree": 2}
    assert report.anchored is not None
    assert report.anchored.level == "PINNED"
    rewrite(root, size - 1)
    findings = told(judge(root)).findings
    assert [finding.message[:5] for finding in findings] == ["fork:", "fork:"]
    assert findings[0].where.startswith(f"commit {first[:12]} by Ann <ann@example.com>, ")
    assert findings[0].where.endswith(", SEAL")


def test_a_seal_in_the_record_is_compared_without_being_asked_for(root: str, git: Git) -> None:
    now = head(root)
    git.commit(".nbs/record/checkpoint", format_seal(now._replace(size=now.size + 1)).encode())
    assert texts(judge(root))[0].startswith("rollback:")


def test_history_that_was_rewritten_still_remembers(root: str, git: Git) -> None:
    """Amended, reset, on a branch that is gone: the reflog names it for a while."""
    remember(git, head(root))
    git("reset", "--quiet", "--hard", "HEAD~1")
    (Path(root) / "policy.yaml").write_text("seals: [SEAL]\n", encoding="utf-8")
    rewrite(root, head(root).size - 1)
    assert texts(judge(root))[0].startswith("fork:")


def test_a_newer_seal_of_another_branch_binds_the_database(root: str, git: Git) -> None:
    git("checkout", "--quiet", "-b", "ahead")
    now = head(root)
    remember(git, now._replace(size=now.size + 1))
    git("checkout", "--quiet", "main")
    report = judge(root)
    assert texts(report)[0].startswith("rollback:")
    assert report.exit_code == 1


def test_a_branch_that_nothing_was_committed_to_hides_no_other(root: str, git: Git) -> None:
    now = head(root)
    remember(git, now._replace(size=now.size + 1))
    git("symbolic-ref", "HEAD", "refs/heads/unborn")
    assert texts(judge(root))[0].startswith("rollback:")


def test_a_wiped_ledger_begun_anew_is_another_log(root: str, git: Git) -> None:
    now = head(root)
    remember(git, now._replace(origin="example.com/before"))
    assert texts(judge(root))[0].startswith("unknown log:")


def test_a_seal_that_is_none_is_said(root: str, git: Git) -> None:
    git.commit("SEAL", b"not a seal\n")
    report = judge(root)
    assert texts(report)[0].startswith("unreadable:")
    assert report.exit_code == 0


def test_git_is_left_alone_where_that_is_asked_or_there_is_none(root: str, git: Git) -> None:
    remember(git, head(root))
    assert told(judge(root, AnchorOptions(git=False))).verdict == "not applicable"
    assert command(root, "--no-git", "--select", "pins-extend") == 3


def test_a_seal_signed_by_another_key_is_named(root: str, git: Git) -> None:
    with Team(root) as team:
        sealing.new_sealing_key(team)
    now = head(root)
    note = Note(format_seal(now), (sign_seal(now, LOG),))
    git.commit("SEAL", format_note(note))
    assert texts(judge(root))[0].startswith("unsealed: note: signed by no key that is trusted")


# Policies --------------------------------------------------------------------------------------


def policy(quorum: str | None) -> bytes:
    return format_policy(
        Policy(
            (TrustedLog(LOG.verifier()),),
            tuple(Witness(f"w{n}", key.verifier()) for n, key in enumerate(WITNESSES)),
            (Group("two", 2, ("w0", "w1", "w2")),),
            quorum,
        )
    )


def demand(root: str, text: str) -> None:
    (Path(root) / "policy.yaml").write_text(text, encoding="utf-8")


def test_a_quorum_of_cosignatures_makes_it_witnessed(root: str, tmp_path: Path) -> None:
    now = head(root)
    (Path(root) / "policy.tlog").write_bytes(policy("two"))
    for count, level in ((1, "PINNED"), (2, "WITNESSED")):
        cosigned = [cosign_seal(now, key, TIME) for key in WITNESSES[:count]]
        report = judge(root, pin(tmp_path, now, sign_seal(now, LOG), *cosigned))
        assert report.anchored is not None
        assert report.anchored.level == level
        assert texts(report) == []
    # Without that seal there is none, though the policy names the ledger's key.
    assert texts(judge(root, pin(tmp_path, now))) == [
        "unsealed: the policy names the key of this ledger, which holds no seal"
    ]


def test_what_the_policy_demands_is_there_or_fails(root: str, tmp_path: Path, clock: Clock) -> None:
    demand(root, "level: PINNED\ntail-entries: 3\ntail-seconds: 100\n")
    assert texts(judge(root)) == [
        "unanchored: the policy asks for PINNED, and what is known outside makes it SELF"
    ]
    asked = pin(tmp_path, head(root))
    assert judge(root, asked).exit_code == 0
    say(root, 2)  # and the policy itself, which is an entry as well
    assert judge(root, asked).exit_code == 0
    clock.move(101)
    (text,) = texts(judge(root, asked))
    assert text.startswith("stale anchor: the tail after the newest head of level PINNED is 101 s")
    say(root, 1)
    assert len(texts(judge(root, asked))) == 2


def test_a_required_check_must_have_something_to_judge(root: str) -> None:
    demand(root, "required: [pins-extend]\n")
    report = judge(root)
    assert report.exit_code == 1
    assert texts(report)[0].startswith("the policy requires this check, and it has nothing")
    demand(root, "required: [no-such-check]\n")
    assert "no such check" in judge(root).problem
    demand(root, "signed: [bus.publishd]\n")
    assert "no such kind of entries" in judge(root).problem


def test_the_policy_says_what_must_be_signed(root: str) -> None:
    demand(root, "signed: [bus.published]\n")
    (told,) = [o for o in judge(root).outcomes if o.check == "writers-authorised"]
    assert told.failures == 3
    assert "the policy demands that of each bus.published" in told.findings[0].message
    last = head(root).size
    demand(root, f"signed: [bus.published]\nsigned-from: {last}\n")
    assert judge(root).exit_code == 0
    newest = max(
        seq for seq, row in enumerate(read(database(root))) if row.head["kind"] == "bus.published"
    )
    for first, code in ((newest, 1), (newest + 1, 0)):
        demand(root, f"signed: [bus.published]\nsigned-from: {first}\n")
        assert judge(root).exit_code == code


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "level: HIGH\n",
            "line 1: level: the value is not SELF, PINNED, PEERED, WITNESSED or TIMESTAMPED",
        ),
        (
            "\nlevels: SELF\n",
            "line 2: unknown keys: levels (did you mean level?); there are level, ",
        ),
        ("tail-entries: many\n", "line 1: tail-entries: the value is not a whole number"),
        ("level: SELF\nlevel: SELF\n", "line 2: level stands above already"),
        ("nothing\n", "is not of the form `key: value`"),
        ("#" * 70_000, "more than 65536"),
    ],
)
def test_a_policy_that_is_not_understood_fails(
    root: str, tmp_path: Path, text: str, says: str
) -> None:
    demand(root, text)
    assert says in texts(judge(root))[0]
    given = tmp_path / "given.yaml"
    given.write_text(text, encoding="utf-8")
    report = judge(root, AnchorOptions(policies=(str(given),)))
    assert (report.exit_code, says in report.problem) == (3, True)


def test_a_policy_from_elsewhere_wins_over_the_teams_own(root: str, tmp_path: Path) -> None:
    demand(root, "level: SELF\n")
    given = tmp_path / "ci.yaml"
    given.write_text("# ours\nlevel: TIMESTAMPED   # no less\n", encoding="utf-8")
    assert "asks for TIMESTAMPED" in texts(judge(root, AnchorOptions(policies=(str(given),))))[0]
    assert judge(root, AnchorOptions(policies=(str(tmp_path / "none.tlog"),))).exit_code == 3
    twice = AnchorOptions(policies=(str(given), str(given)))
    assert "give one of them" in judge(root, twice).problem


def test_a_broken_trust_policy_fails_too(root: str) -> None:
    (Path(root) / "policy.tlog").write_text("log nobody\n", encoding="utf-8")
    assert "line 1" in texts(judge(root))[0]


# Receipts in the ledger, and forks that it tells of itself ---------------------------------------


def test_a_receipt_must_be_of_this_ledger_and_vouches_by_its_signature_alone(root: str) -> None:
    from drafts import anchor_received

    now = head(root)
    (Path(root) / "policy.tlog").write_bytes(policy("w0"))
    signed = Note(format_seal(now), (sign_seal(now, LOG), cosign_seal(now, WITNESSES[0], TIME)))
    with Team(root) as team:
        team.append_apart(
            lambda: (
                anchor_received("git", now.size, now.root, "main", b"commit"),
                anchor_received("witness", now.size, now.root, "w0", format_note(signed)),
            )
        )
    report = judge(root)
    assert told(report).coverage == {"heads": 2, "agree": 2}
    assert report.anchored is not None
    assert list(report.anchored.sizes) == ["PINNED", "WITNESSED"]
    with Team(root) as team:
        team.append_apart(lambda: (anchor_received("git", now.size, b"r" * 32, "x", b"y"),))
    assert any(text.startswith("fork:") for text in texts(judge(root)))


def test_a_line_that_was_left_is_known_and_what_it_lost_is_said(root: str, tmp_path: Path) -> None:
    from tripod.recovery import backup as copies

    before = head(root)
    with Team(root) as team:
        copies.backup(team, f"{tmp_path}/copy.db")
    say(root, 2)
    lost = head(root)
    copies.restore(root, f"{tmp_path}/copy.db", "example.com/second")
    assert told(judge(root, pin(tmp_path, before))).verdict == "clean"
    report = judge(root, pin(tmp_path, lost))
    assert texts(report)[0].startswith("left behind: it remembers")
    assert told(report).failures == 1  # nobody but this ledger says that the line ended there
    given = tmp_path / "given.yaml"
    given.write_text(f"given-up: [{ORIGIN}]\n", encoding="utf-8")
    accepted = judge(root, pin(tmp_path, lost)._replace(policies=(str(given),)))
    assert told(accepted).failures == 0


def test_a_signed_head_has_a_limit() -> None:
    front = b"example.com/log\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n\n"
    line = "\u2014 w {}\n".format("A" * 90).encode()
    count = (MAX_HEAD - len(front)) // len(line)
    whole = front + line * count
    whole += line[: MAX_HEAD - len(whole)]
    for more, says in ((b"", "^note: "), (b"\n", f"^seal: {MAX_HEAD + 1} bytes are more than")):
        with pytest.raises(MalformedError, match=says):
            parse_head(whole + more)


def test_rows_are_taken_apart_here_as_the_ledger_has_them(root: str) -> None:
    """The helper that rewrites does rewrite: another root at the same size."""
    before = head(root)
    rewrite(root, before.size - 1)
    after = head(root)
    assert (before.size, before.root == after.root) == (after.size, False)
    assert isinstance(read(database(root))[0], Row)
    assert os.path.exists(database(root))
