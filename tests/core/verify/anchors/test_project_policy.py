"""A policy that travels with the work: ``tripod.toml``, and the stricter of it and the team's."""

from pathlib import Path
from typing import Any

import pytest
from git_repo import Git
from hypothesis import given
from hypothesis import strategies as st

from tripod.chat import writer as chat_send
from tripod.ledger.errors import MalformedError
from tripod.ledger.tlog.note import SigningKey
from tripod.team import adoption
from tripod.team.team import Team
from tripod.verify.anchors.configuration import parse_configuration
from tripod.verify.anchors.policy import (
    LEVELS,
    NOBODY,
    Rules,
    parse,
    stricter_rules,
)
from tripod.verify.check import Report
from tripod.verify.run import verify


@pytest.fixture
def shop(tmp_path: Path) -> Git:
    """A repository with a team, in which the first commit demands nothing."""
    git = Git(tmp_path / "shop")
    git.commit("tripod.toml", b"[policy]\n")
    adoption.init(str(git.root), project="shop", origin="example.org/shop", key=False)
    with Team(git.root) as team:
        chat_send.create(team, "live")
    return git


def parse_project(data: bytes) -> Rules:
    """The policy in a ``tripod.toml``."""
    said = parse_configuration("tripod.toml", data)
    assert said is not None
    return said.policy


def demands(git: Git, text: str) -> str:
    return git.write("tripod.toml", f"[policy]\n{text}\n".encode())


def missing(report: Report) -> list[str]:
    """The checks that a policy requires and that have nothing to judge."""
    return [
        finding.check
        for outcome in report.outcomes
        for finding in outcome.findings
        if finding.message.startswith("the policy requires this check")
    ]


def test_the_policy_in_the_work_counts(shop: Git) -> None:
    assert verify(shop.root).exit_code == 0
    demands(shop, "required = ['record-agrees']")
    report = verify(shop.root)
    assert (report.exit_code, missing(report)) == (1, ["record-agrees"])
    (finding,) = [f for outcome in report.outcomes for f in outcome.findings]
    assert finding.file == "tripod.toml"
    assert verify(shop.root / "tripod.toml").exit_code == 3, "it is no team"


def test_a_linked_work_tree_is_judged_by_the_policy_of_the_main_one(shop: Git) -> None:
    shop("worktree", "add", "--quiet", "../fix")
    demands(shop, "required = ['record-agrees']")
    assert missing(verify(f"{shop.root}/../fix")) == ["record-agrees"]


def test_the_stricter_of_the_two_files_holds(shop: Git) -> None:
    (shop.root / ".nbs/policy.yaml").write_text("required: [record-agrees]\nlevel: SELF\n")
    demands(shop, "required = ['pins-extend', 'pythia-isolation']\nlevel = 'PINNED'")
    report = verify(shop.root)
    assert missing(report) == ["record-agrees", "pythia-isolation"]
    said = [finding.message for outcome in report.outcomes for finding in outcome.findings]
    assert any("the policy asks for PINNED" in message for message in said)


def test_a_file_that_was_given_replaces_both(shop: Git, tmp_path: Path) -> None:
    (shop.root / ".nbs/policy.yaml").write_text("required: [record-agrees]\n")
    demands(shop, "required = ['pythia-isolation']")
    given = tmp_path / "ci.yaml"
    given.write_text("required: [drift]\n")
    assert missing(verify(shop.root, policies=[given])) == []


def test_of_a_pull_request_the_base_branch_says_what_is_demanded(shop: Git, tmp_path: Path) -> None:
    """Who opens it cannot take a demand away, and their new one does not count yet."""
    shop.commit("tripod.toml", b'[policy]\nrequired = ["record-agrees"]\n')
    shop("checkout", "--quiet", "-b", "fix")
    shop.commit("tripod.toml", b'[policy]\nrequired = ["pythia-isolation"]\n')
    assert missing(verify(shop.root)) == ["pythia-isolation"]
    assert missing(verify(shop.root, policy_from="main")) == ["record-agrees"]
    assert missing(verify(shop.root, policy_from="HEAD")) == ["pythia-isolation"]
    # The team's own file and one that was given still hold.
    (shop.root / ".nbs/policy.yaml").write_text("required: [pythia-isolation]\n")
    both = ["record-agrees", "pythia-isolation"]
    assert missing(verify(shop.root, policy_from="main")) == both
    given = tmp_path / "ci.yaml"
    given.write_text("required: [drift]\n")
    assert missing(verify(shop.root, policies=[given], policy_from="main")) == ["record-agrees"]


@pytest.mark.parametrize(
    ("revision", "says"),
    [
        ("nowhere", "--policy-from nowhere: there is no such commit in "),
        ("--help", "--policy-from --help: there is no such commit in "),
        ("bare", "holds no tripod.toml, and no [tool.tripod] in pyproject.toml, so nothing"),
        ("broken", "--policy-from broken: tripod.toml: it is no TOML: "),
        ("linked", "--policy-from linked: tripod.toml: it is no TOML: "),
    ],
)
def test_a_revision_without_a_policy_is_no_success(shop: Git, revision: str, says: str) -> None:
    shop.commit("tripod.toml", b"[policy\n")
    shop("tag", "broken")
    (shop.root / "tripod.toml").unlink()
    (shop.root / "tripod.toml").symlink_to(".nbs/policy.yaml")
    shop("commit", "--quiet", "-am", "link")
    shop("tag", "linked")
    shop.commit("tripod.toml", None)
    shop("tag", "bare")
    report = verify(shop.root, policy_from=revision)
    assert (report.exit_code, says in report.problem) == (3, True), report.problem


def test_without_a_repository_no_revision_can_be_asked_for(tmp_path: Path) -> None:
    adoption.init(str(tmp_path), key=False)
    report = verify(tmp_path, policy_from="main")
    assert (report.exit_code, "there is no git repository around it" in report.problem) == (3, True)


def test_what_a_team_gives_up_counts_from_outside_alone(shop: Git) -> None:
    shop("update-ref", "refs/tripod/seals", "HEAD")
    shop.commit("HEAD.note", b"example.org/old\n7\n" + b"A" * 43 + b"=\n")
    text = "seals = ['HEAD.note']\ngiven-up = ['example.org/old']\n"
    demands(shop, text)
    shop.commit("tripod.toml", f"[policy]\n{text}".encode())
    (unknown,) = [f.message for o in verify(shop.root).outcomes for f in o.findings]
    assert unknown.startswith("unknown log: ")
    report = verify(shop.root, policy_from="main")
    (given_up,) = [f.message for o in report.outcomes for f in o.findings]
    assert (report.exit_code, given_up[:8]) == (0, "given up")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"[policy]\nlevle = 'PINNED'\n", "unknown keys: levle (did you mean level?)"),
        (b"[polcy]\nlevel = 'PINNED'\n", "unknown keys: polcy (did you mean policy?)"),
        (b"level = 'PINNED'\n", "unknown keys: level"),
        (b"policy = 3\n", "policy: the value is not a mapping"),
        (b"[policy]\nlevel = 'PINED'\n", "policy.level: the value is not SELF, PINNED"),
        (b"[policy]\nlevel = []\n", "policy.level: the value names nothing"),
        (b"[policy]\ntail-entries = -1\n", "policy.tail-entries: the value is not a whole number"),
        (b"[policy]\ntail-entries = 1.5\n", "policy.tail-entries: the value is not a whole number"),
        (b"[policy]\ntail-entries = true\n", "policy.tail-entries: "),
        (
            b"[policy]\ntail_entries = 3\n",
            "unknown keys: tail_entries (did you mean tail-entries?)",
        ),
        (b"[policy]\nrequired = [1979-05-27]\n", "policy.required: the value is not text"),
        (b"[policy]\nlevel = 'SELF'\nlevel = 'SELF'\n", "it is no TOML: "),
        (b"[policy]\nx = " + b"9" * 5000, "it is no TOML: "),
        (b"[policy]\nx = " + b"[" * 20_000, "it is no TOML: "),
        (b"\xff", "it is no TOML: "),
        (b"#" * 70_000, "it has more than 65536 bytes"),
    ],
)
def test_what_is_not_understood_is_named(data: bytes, says: str) -> None:
    with pytest.raises(MalformedError) as error:
        parse_project(data)
    assert says in str(error.value)


def test_a_broken_file_in_the_work_fails(shop: Git) -> None:
    path = demands(shop, "levle = 'PINNED'")
    report = verify(shop.root, git=False)
    (finding,) = [f for outcome in report.outcomes for f in outcome.findings]
    assert (report.exit_code, finding.where, finding.severity) == (1, path, "failure")
    assert "unknown keys: levle (did you mean level?)" in finding.message
    (shop.root / "tripod.toml").unlink()
    (shop.root / "tripod.toml").symlink_to("elsewhere")
    assert verify(shop.root).exit_code == 3


# The stricter of two -----------------------------------------------------------------------------

NAMES = st.lists(st.sampled_from("abcd"), unique=True, max_size=3).map(tuple)
NUMBERS = st.none() | st.integers(0, 9)
KEYS = [SigningKey("a", bytes([number]) * 32).verifier().format() for number in (1, 2)]
ACTORS = st.lists(st.sampled_from(["a", "b", *KEYS]), unique=True, max_size=3).map(tuple)
RULES = st.builds(
    Rules,
    st.lists(st.sampled_from(LEVELS), unique=True, max_size=3).map(tuple),
    NUMBERS,
    NUMBERS,
    NAMES,
    NAMES,
    NAMES,
    NAMES,
    NUMBERS,
    st.sampled_from([(), ("cannot-tell",)]),
    ACTORS | st.just(NOBODY),
    st.sampled_from(["open", "closed"]),
)


def allows(rules: Rules) -> dict[str, Any]:
    """What a team may do under a policy, as sets: of two policies the stricter has the smaller."""
    most = range(12)
    numbers = {
        name: {n for n in most if limit is None or n <= limit}
        for name, limit in (("tail", rules.tail_entries), ("seconds", rules.tail_seconds))
    }
    unsigned = {
        (kind, seq)
        for kind in "abcd"
        for seq in most
        if kind not in rules.signed or seq < (rules.signed_from or 0)
    }
    return {
        **numbers,
        "levels missed": set(LEVELS) - set(rules.level),
        "checks without a subject": set("abcd") - set(rules.required),
        "files not looked at": set("abcd") - set(rules.seals),
        "given up": set(rules.given_up),
        "unsigned": unsigned,
        "exceptions": {"cannot-tell"} - set(rules.exceptions),
        "who accepts": {
            (who, key)
            for who, key in (("a", KEYS[0]), ("a", KEYS[1]), ("a", "x"), ("b", "x"), ("x", "x"))
            if not rules.accept or {who, key} & {*rules.accepting(who)}
        },
        "peers of first use": {"any"} if rules.peers == "open" else set(),
    }


@given(one=RULES, two=RULES, three=RULES)
def test_the_stricter_of_two_is_never_weaker_than_either(
    one: Rules, two: Rules, three: Rules
) -> None:
    both = stricter_rules(one, two)
    assert both == stricter_rules(two, one)
    assert allows(stricter_rules(one, one)) == allows(one)
    assert stricter_rules(both, both) == both
    assert stricter_rules(both, three) == stricter_rules(one, stricter_rules(two, three))
    for what, may in allows(both).items():
        assert may <= allows(one)[what] & allows(two)[what], what
        # Nor stricter than both together, but for where the demand for signatures begins.
        assert what == "unsigned" or may == allows(one)[what] & allows(two)[what], what


@given(RULES)
def test_both_files_have_the_same_keys(rules: Rules) -> None:
    if rules.accept == NOBODY:
        return  # no file says that
    yaml, toml = [], ["[policy]"]
    for name in Rules.__dataclass_fields__:
        value, key = getattr(rules, name), name.replace("_", "-")
        if value in ((), None):
            continue
        yaml.append(
            f"{key}: [{', '.join(value)}]" if isinstance(value, tuple) else f"{key}: {value}"
        )
        shown = [*value] if isinstance(value, tuple) else value
        toml.append(f"{key} = {shown!r}")
    assert parse("\n".join(yaml).encode()) == rules
    assert parse_project("\n".join(toml).encode()) == rules
