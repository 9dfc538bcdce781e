"""WITNESSED and TIMESTAMPED by real rounds, and what is never believed: our own word, strangers."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import drafts
import pytest
from authority import Authority, serving
from doors.inside import Done, keyed, run
from git_repo import Git
from hypothesis import given
from hypothesis import strategies as st
from sealed import LOG, TIME, WITNESSES
from witnessing import NAME

from tripod.bus import events
from tripod.ledger.kinds.trust import AnchorMethod
from tripod.ledger.tlog.note import Note, format_note, parse_note
from tripod.ledger.tlog.policy import Group, Policy, Witness
from tripod.ledger.tlog.seal import Cosignature, Seal, format_seal, sign_seal
from tripod.team.team import Team
from tripod.trust import anchor as anchoring
from tripod.trust.anchor import Receipt
from tripod.verify.anchors.anchors import AnchorOptions
from tripod.verify.anchors.heads import KnownHead, anchored_heads
from tripod.verify.check import Anchored, Report
from tripod.verify.evidence import collect
from tripod.verify.run import run as judge_all
from tripod.verify.run import verify

Change = Callable[[Receipt], Receipt]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A team at work whose ledger has a key, and what has it anchored."""
    return keyed(tmp_path, monkeypatch)


def done(project: Path, *words: str, code: int = 0) -> Done:
    ended = run(project, *words)
    assert ended.code == code, ended.err
    return ended


def work(project: Path, count: int = 1) -> None:
    with Team(f"{project}/.nbs") as team:
        for number in range(count):
            events.publish(team, "ann", "done", "low", f"more {number}")


@pytest.fixture
def witnesses(project: Path, tmp_path: Path) -> list[str]:
    """Two witnesses that know the ledger: their folders, and a policy that names both beside."""
    vkey = done(project, "key", "show").out.split()[0].decode()
    folders, lines = [], []
    for number in (1, 2):
        folder = str(tmp_path / f"w{number}")
        done(project, "witness", "new", folder, "--name", f"{NAME}{number}")
        done(project, "witness", "trust", folder, vkey)
        key = done(project, "witness", "show", folder).out.split()[0].decode()
        lines.append(f"witness w{number} {key}\n")
        folders.append(folder)
    (tmp_path / "both").write_text("".join(lines), encoding="utf-8")
    return folders


def policy(tmp_path: Path, end: str) -> tuple[str, ...]:
    """A policy from elsewhere that names the two witnesses and ends so."""
    path = tmp_path / "ci.tlog"
    path.write_text((tmp_path / "both").read_text(encoding="utf-8") + end, encoding="utf-8")
    return (str(path),)


def judge(project: Path, *policies: str) -> Report:
    with collect(str(project), asked=AnchorOptions(policies=policies)) as evidence:
        return judge_all(evidence)


def reached(report: Report) -> Anchored:
    assert report.anchored is not None
    return report.anchored


def texts(report: Report) -> list[str]:
    (told,) = [one for one in report.outcomes if one.check == "pins-extend"]
    return [f"{finding.severity}: {finding.message}" for finding in told.findings]


def log(project: Path, method: AnchorMethod, change: Change, receipt: bytes = b"") -> Seal:
    """Log a receipt of the newest seal as an attacker would: by the act, without the asking."""
    with Team(f"{project}/.nbs") as team:
        sealed = anchoring.seal_to_anchor(team)
        data = receipt or format_note(sealed.note)
        anchoring.record_anchor_receipt(team, change(Receipt(method, "w", sealed.seal, 0, data)))
        return sealed.seal


# Witnesses -------------------------------------------------------------------------------------


def test_a_witness_that_the_policy_names_makes_it_witnessed(
    project: Path, tmp_path: Path, witnesses: list[str]
) -> None:
    work(project)
    done(project, "anchor", "witness", witnesses[0])
    size = int(done(project, "anchor", "list").out.split()[2])
    work(project, 3)
    named = judge(project, *policy(tmp_path, "quorum w1\n"))
    assert (named.exit_code, reached(named).level) == (0, "WITNESSED")
    where = f"the receipt of witness {NAME}1 in entry {size + 1}"
    assert reached(named).sizes == dict.fromkeys(("PINNED", "WITNESSED"), (size, where))
    assert reached(named).tail == 3
    # Whom nobody names is nobody: not without a policy, and not with another's.
    for policies in ((), policy(tmp_path, "quorum w2\n")):
        assert (reached(judge(project, *policies)).level, texts(judge(project, *policies))) == (
            "SELF",
            [],
        )


def test_a_policy_that_came_with_the_work_counts_as_the_base_of_the_work_has_it(
    project: Path, tmp_path: Path, witnesses: list[str]
) -> None:
    """A pull request could bring witnesses of its own, which its base does not name."""
    done(project, "anchor", "witness", witnesses[0])
    git, own = Git(project), project / ".nbs/policy.tlog"
    git.commit("tripod.toml", b"[policy]\nlevel = 'WITNESSED'\n")
    git("tag", "base")
    (named,) = policy(tmp_path, "quorum w1\n")
    own.write_bytes(Path(named).read_bytes())
    assert verify(project, policy_from="base").exit_code == 0  # it is this machine's own
    git("add", "--force", str(own))
    git("commit", "--quiet", "-m", "Name a witness")
    report = verify(project, policy_from="base")
    assert report.exit_code == 1
    assert "failure: unanchored: the policy asks for WITNESSED" in texts(report)[0]
    assert verify(project, policy_from="HEAD").exit_code == 0


def test_without_a_quorum_one_witness_is_enough(
    project: Path, tmp_path: Path, witnesses: list[str]
) -> None:
    done(project, "anchor", "witness", witnesses[1])
    assert reached(judge(project, *policy(tmp_path, "quorum none\n"))).level == "WITNESSED"
    both = "group g all w1 w2\nquorum g\n"
    assert reached(judge(project, *policy(tmp_path, both))).level == "SELF"


def test_a_quorum_may_come_in_several_receipts(
    project: Path, tmp_path: Path, witnesses: list[str]
) -> None:
    both = policy(tmp_path, "group g all w1 w2\nquorum g\n")
    done(project, "anchor", "witness", witnesses[0])
    work(project)
    done(project, "anchor", "witness", witnesses[1])
    first, second = (
        int(line.split()[2]) for line in done(project, "anchor", "list").out.splitlines()
    )
    assert first < second
    report = judge(project, *both)
    # The second saw more, and so vouches for what the first saw.
    assert reached(report).sizes["WITNESSED"][0] == first
    assert f"{NAME}1" in reached(report).sizes["WITNESSED"][1]
    assert f"{NAME}2" in reached(report).sizes["WITNESSED"][1]


def test_a_witness_of_a_rewritten_ledger_contradicts_it(
    project: Path, tmp_path: Path, witnesses: list[str]
) -> None:
    from specimens import forge, read

    work(project, 3)
    done(project, "anchor", "witness", witnesses[0])
    root = f"{project}/.nbs"
    rows = read(f"{root}/ledger.db")
    seq = next(n for n, row in enumerate(rows) if row.head["kind"] == "bus.published")
    rows[seq] = rows[seq].saying(payload={"text": "something else"})
    forge(root, rows)
    report = judge(project, *policy(tmp_path, "quorum w1\n"))
    assert report.exit_code == 1
    assert any(text.startswith("failure: fork: it remembers root") for text in texts(report))
    assert reached(report).level == "SELF"


# Receipts that nobody gave ---------------------------------------------------------------------


def test_our_own_word_vouches_for_nothing(project: Path, tmp_path: Path) -> None:
    """The log's own seal as a receipt, and methods that bear no signature."""
    for method in ("witness", "git", "pin", "tsa"):
        log(project, method, lambda one: one)
    report = judge(project)
    assert (reached(report).level, report.exit_code) == ("SELF", 0)
    (tmp_path / "ci.yaml").write_text("level: WITNESSED\n", encoding="utf-8")
    report = judge(project, str(tmp_path / "ci.yaml"))
    assert report.exit_code == 1
    (text,) = texts(report)
    assert text.startswith("failure: unanchored: the policy asks for WITNESSED, and what is known")
    assert text.endswith(" makes it SELF")


def test_a_cosignature_that_is_forged_is_named(
    project: Path, tmp_path: Path, witnesses: list[str]
) -> None:
    named = policy(tmp_path, "quorum w1\n")
    done(project, "anchor", "witness", witnesses[0])
    out = tmp_path / "out"
    seq = done(project, "anchor", "list").out.split()[0].decode()
    done(project, "anchor", "receipt", seq, str(out))
    note = parse_note((out / "receipt.note").read_bytes())
    seal, cosigned = note.signatures
    bad = cosigned._replace(data=cosigned.data[:-1] + bytes([cosigned.data[-1] ^ 1]))
    forged = format_note(Note(note.text, (seal, bad)))
    work(project)
    with Team(f"{project}/.nbs") as team, team.act() as act:
        size, root = anchoring.seal_to_anchor(team).seal[1:3]
        act.append([drafts.anchor_received("witness", size, root, "w", forged)])
    report = judge(project, *named)
    assert report.exit_code == 1
    (text,) = texts(report)
    assert text.startswith("failure: forged: ")
    # The good one still counts.
    assert reached(report).level == "WITNESSED"
    # Whom nobody names may sign as badly as he likes.
    assert texts(judge(project)) == []


def test_a_note_by_another_log_is_no_receipt_of_ours(project: Path) -> None:
    def other(receipt: Receipt) -> Receipt:
        note = Note(
            format_seal(receipt.seal), (sign_seal(receipt.seal._replace(origin=LOG.name), LOG),)
        )
        return receipt._replace(data=format_note(note))

    log(project, "witness", other)
    (text,) = texts(judge(project))
    assert text.startswith("failure: unsealed: ")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda one: one._replace(seal=one.seal._replace(root=b"r" * 32)), "forged: it is of "),
        (
            lambda one: one._replace(seal=one.seal._replace(size=1)),
            "and the entry says 1 with root",
        ),
        (
            lambda one: one._replace(seal=one.seal._replace(size=99)),
            "forged: it is of 99 entries, and ",
        ),
        (lambda one: one._replace(data=b"thank you"), "forged: note: "),
        (lambda one: one._replace(data=b"\xff"), "forged: note: "),
    ],
)
def test_a_receipt_that_is_not_what_its_entry_says_is_named(
    project: Path, change: Change, says: str
) -> None:
    log(project, "witness", change)
    report = judge(project)
    (text,) = texts(report)
    assert says in text
    assert report.exit_code == 1
    assert reached(report).level == "SELF"


def test_a_receipt_of_another_root_is_a_fork(project: Path) -> None:
    def forked(receipt: Receipt) -> Receipt:
        seal = receipt.seal._replace(root=b"r" * 32)
        note = Note(format_seal(seal), parse_note(receipt.data).signatures)
        return receipt._replace(seal=seal, data=format_note(note))

    log(project, "witness", forked)
    report = judge(project)
    assert texts(report)[0].startswith("failure: fork: it remembers root 7272")
    assert report.exit_code == 1


# Timestamps ------------------------------------------------------------------------------------


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "tsa")


def stamp(project: Path, authority: Authority) -> int:
    kind = "application/timestamp-reply"
    with serving(lambda query: (200, kind, authority.reply(query))) as url:
        done(project, "anchor", "tsa", url, "--ca", str(authority.roots))
    return int(done(project, "anchor", "list").out.splitlines()[-1].split()[2])


def test_an_authority_that_is_trusted_makes_it_timestamped(
    project: Path, tmp_path: Path, authority: Authority
) -> None:
    size = stamp(project, authority)
    work(project, 2)
    report = judge(project, str(authority.roots))
    assert (report.exit_code, texts(report)) == (0, [])
    assert list(reached(report).sizes) == ["TIMESTAMPED"]
    assert reached(report).sizes["TIMESTAMPED"][0] == size
    assert (reached(report).level, reached(report).tail) == ("TIMESTAMPED", 2)
    assert reached(judge(project)).level == "SELF"
    # A stranger's root: his word is not believed, and that is said.
    stranger = Authority(tmp_path / "stranger")
    report = judge(project, str(stranger.roots))
    assert (reached(report).level, report.exit_code) == ("SELF", 0)
    assert texts(report)[0].startswith("warning: not believed: timestamp: ")
    # The team's own file of them.
    (project / ".nbs/policy.pem").write_bytes(authority.roots.read_bytes())
    assert reached(judge(project)).level == "TIMESTAMPED"
    (project / ".nbs/policy.pem").write_bytes(b"nothing\n")
    assert "no certificates in PEM form" in texts(judge(project))[0]


def test_a_stamp_does_not_remember_so_it_pins_nothing(
    project: Path, tmp_path: Path, authority: Authority
) -> None:
    stamp(project, authority)
    demands = tmp_path / "ci.yaml"
    for level, missing in (
        ("PINNED", "PINNED"),
        ("[WITNESSED, TIMESTAMPED]", "WITNESSED"),
        ("TIMESTAMPED", None),
    ):
        demands.write_text(f"level: {level}\n", encoding="utf-8")
        report = judge(project, str(authority.roots), str(demands))
        assert report.exit_code == (missing is not None)
        if missing is not None:
            assert texts(report)[0] == (
                f"failure: unanchored: the policy asks for {missing}, and what is known outside "
                "makes it TIMESTAMPED"
            )


def test_a_stamp_of_another_head_or_of_nothing_is_not_believed(
    project: Path, authority: Authority
) -> None:
    other = authority.reply(authority.query(b"something else\n"))
    log(project, "tsa", lambda one: one._replace(data=other))
    report = judge(project, str(authority.roots))
    assert (reached(report).level, report.exit_code) == ("SELF", 0)
    assert texts(report)[0].startswith("warning: not believed: timestamp: ")
    log(project, "tsa", lambda one: one._replace(data=b"no reply"))
    report = judge(project, str(authority.roots))
    assert texts(report)[0].startswith("failure: forged: timestamp: not a reply")


def test_without_the_extra_it_is_said_and_not_passed_over(
    project: Path, tmp_path: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    stamp(project, authority)
    monkeypatch.setitem(sys.modules, "rfc3161_client", None)
    report = judge(project, str(authority.roots))
    assert "pip install" in texts(report)[0]
    (tmp_path / "ci.yaml").write_text("level: TIMESTAMPED\n", encoding="utf-8")
    report = judge(project, str(authority.roots), str(tmp_path / "ci.yaml"))
    assert report.exit_code == 1


# Both, in what people read -----------------------------------------------------------------------


def test_the_reports_say_levels_tail_and_bounds(
    project: Path, tmp_path: Path, witnesses: list[str], authority: Authority
) -> None:
    asked = [f"--policy={path}" for path in (*policy(tmp_path, "quorum w1\n"), authority.roots)]
    work(project)
    stamped = stamp(project, authority)
    done(project, "anchor", "witness", witnesses[0])
    work(project, 2)
    said = done(project, "verify", "-v", *asked).out.decode()
    (line,) = [line for line in said.splitlines() if line.startswith("TIMESTAMPED by ")]
    assert f" up to entry {stamped - 1}; WITNESSED by the receipt of witness {NAME}1 in " in line
    assert "; unanchored tail: 2 entries, " in line
    value = json.loads(done(project, "verify", "--json", *asked).out)["anchored"]
    assert (value["level"], value["tail"]["entries"]) == ("TIMESTAMPED", 2)
    assert set(value["levels"]) == {"PINNED", "WITNESSED", "TIMESTAMPED"}
    newest = value["levels"]["WITNESSED"]["size"]
    bounds = json.loads(done(project, "show", "0", "--bounds", "--json", *asked).out)
    assert bounds["not_before"] is None
    assert bounds["not_after_signed"]["by"].startswith("the ")
    last = json.loads(done(project, "show", f"{newest + 3}", "--bounds", "--json", *asked).out)
    assert last["not_after"] is None
    assert last["not_before_signed"]["seconds"] >= bounds["not_after_signed"]["seconds"] - 5
    plain = json.loads(done(project, "show", "0", "--bounds", "--json").out)
    assert plain["not_after"] is None


def test_a_run_from_a_pin_counts_the_receipts_too(
    project: Path, tmp_path: Path, witnesses: list[str]
) -> None:
    work(project, 300)
    done(project, "anchor", "witness", witnesses[0])
    named = policy(tmp_path, "quorum w1\n")
    pin = str(tmp_path / "pin")
    done(project, "verify", "--pin", pin, "--update-pin", "--policy", *named)
    work(project)
    said = done(
        project, "verify", "-v", "--pin", pin, "--new-only", "--policy", *named
    ).out.decode()
    assert "note: only entries from 256 on" in said
    assert f"WITNESSED by the receipt of witness {NAME}1" in said


# The quorum by itself --------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9)), max_size=6), st.integers(1, 3))
def test_a_quorum_is_what_so_many_have_seen(drawn: list[tuple[int, int]], threshold: int) -> None:
    """By counting: the largest size that enough witnesses have seen, or more."""
    keys = [key.verifier() for key in WITNESSES]
    trusted = Policy(
        (),
        tuple(Witness(f"w{n}", key) for n, key in enumerate(keys)),
        (Group("g", threshold, ("w0", "w1", "w2")),),
        "g",
    )
    heads = [
        KnownHead("receipt", f"{n} at {size}", Seal("x", size, b"r" * 32),
              cosigned=(Cosignature(keys[n], TIME),))
        for n, size in drawn
    ]  # fmt: skip
    want = max(
        (
            size
            for size in range(1, 10)
            if len({n for n, up_to in drawn if up_to >= size}) >= threshold
        ),
        default=None,
    )
    found = anchored_heads(heads, trusted).sizes.get("WITNESSED")
    assert (found and found[0]) == want
