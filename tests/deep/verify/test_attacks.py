"""Every attack of the documentation's table is found as it says there, or shown not to be.

Each is tried at random on copies of a team: a fresh seed each run, printed where a trial fails;
TRIPOD_SEED repeats one. TRIPOD_TRIALS says how often each is tried (``make soak``: 60 times).
"""

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from attacked import KEY, ORIGIN, Case, World, at_home, build_world, copied
from attacks import DEEDS
from docs.attack_table import ATTACKS, Attack
from git_repo import Git
from specimens import database
from story import folder

from tripod.errors import NotFoundError, RefusedError, TripodError
from tripod.ledger.errors import LedgerError
from tripod.ledger.tlog.note import Note, format_note
from tripod.ledger.tlog.seal import Seal, format_seal, sign_seal
from tripod.team.team import Team
from tripod.trust import anchor, keys
from tripod.trust import seal as sealing
from tripod.trust.proof import prove_growth
from tripod.trust.witness import WitnessFolder, log_folder
from tripod.verify.anchors.anchors import USUAL, AnchorOptions
from tripod.verify.check import Report
from tripod.verify.run import open_run, run

TRIALS = int(os.environ.get("TRIPOD_TRIALS", "1"))
SEED = int(os.environ.get("TRIPOD_SEED", "0")) or random.SystemRandom().randrange(1, 2**32)
UNSEEN = [attack for attack in ATTACKS if not attack.alone]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with folder() as place:
        yield build_world(place)


def trials(attack: Attack, world: World) -> Iterator[tuple[Case, int, str]]:
    """The attack on a new copy each time: the case, the first entry touched, how to repeat it."""
    for trial in range(TRIALS):
        rng = random.Random(f"{attack.name} {SEED + trial}")  # noqa: S311 - attacks, not keys
        with folder() as place:
            copied(world.now.root, world.now.home, place)
            case = Case(f"{place}/.nbs", f"{place}/home", rng, world)
            at = DEEDS[attack.name](case)
            yield case, at, f"TRIPOD_SEED={SEED + trial} TRIPOD_TRIALS=1 {attack.name}, at {at}"


def judge(root: str, asked: AnchorOptions = USUAL) -> Report:
    """What verify says to somebody who knows of no key, and no head but what is ``asked``.

    Who knows the key also finds a ledger that was cut before that came into force.
    """
    with open_run(root, asked=asked) as evidence:
        return run(evidence)


def failed(report: Report) -> set[str]:
    """The checks that fail it."""
    return {
        finding.check
        for outcome in report.outcomes
        for finding in outcome.findings
        if finding.severity == "failure"
    }


def test_the_table_and_the_deeds_are_of_the_same_attacks(world: World) -> None:
    assert sorted(attack.name for attack in ATTACKS) == sorted(DEEDS)
    assert (judge(world.now.root).exit_code, failed(judge(world.now.root))) == (0, set())
    assert 0 < world.now.sealed < world.now.size == len(world.rows)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_is_found_as_the_table_says(world: World, attack: Attack) -> None:
    for case, _, where in trials(attack, world):
        report = judge(case.root)
        if attack.alone:
            assert failed(report) & set(attack.alone), f"{failed(report)} {where}"
            assert report.exit_code == 1
        else:
            untold = "exit 3" in attack.says
            assert (report.exit_code, failed(report)) == (3 if untold else 0, set()), where


# Heads outside ----------------------------------------------------------------------------------


WORDS = {"pins-extend": ("rollback: ", "fork: "), "ledger-missing": ("no ledger.db",)}


def contradicted(report: Report, attack: Attack) -> list[str]:
    """What contradicts the ledger, of that which is remembered outside: all that is said of it."""
    return [
        " ".join((finding.where, finding.message, *finding.evidence))
        for outcome in report.outcomes
        for finding in outcome.findings
        if finding.severity == "failure"
        if outcome.check == attack.outside and finding.message.startswith(WORDS[outcome.check])
    ]


def kept_seal(seal: Seal) -> bytes:
    """A seal that somebody kept, signed."""
    return format_note(Note(format_seal(seal), (sign_seal(seal, KEY),)))


def proof_refused(root: str, seal: Seal) -> bool:
    """Whether `tripod prove --consistency` finds that a kept seal is not of this ledger."""
    try:
        prove_growth(database(root), seal, kept_seal(seal).decode())
    except (LedgerError, TripodError):
        return True
    return False


@pytest.mark.parametrize("attack", UNSEEN, ids=lambda attack: attack.name)
def test_a_pin_tells_what_it_covers_and_no_more(world: World, attack: Attack) -> None:
    sizes = set(range(1, len(world.rows) + 1))
    for case, at, where in trials(attack, world):
        pin = Path(case.home, "pin")
        for size in {case.seq(), len(world.rows), at, at + 1} & sizes:
            pin.write_bytes(format_seal(world.head(size)).encode())
            report = judge(case.root, AnchorOptions(pin=str(pin)))
            covered = attack.outside != "" and at < size
            told = f"a head of {size}: {failed(report)} {where}"
            assert bool(contradicted(report, attack)) == covered, told
            assert report.exit_code == (1 if covered else 0), told
            assert proof_refused(case.root, world.head(size)) == covered, told


@pytest.fixture(scope="module")
def history(world: World, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, int]]:
    """A repository in which the seals of three rounds were committed: where, and its commits."""
    git = Git(tmp_path_factory.mktemp("git"))
    commits = {}
    for stage in world.before[1:4]:
        seal = Path(stage.root, "record/checkpoint").read_bytes()
        commits[git.commit(".nbs/record/checkpoint", seal)[:12]] = stage.sealed
    return f"{git.root}/.git", commits


@pytest.mark.parametrize(
    "attack", [attack for attack in UNSEEN if attack.outside], ids=lambda attack: attack.name
)
def test_git_tells_by_the_commits_whose_seals_are_contradicted(
    world: World, history: tuple[str, dict[str, int]], attack: Attack
) -> None:
    repository, commits = history
    for case, at, where in trials(attack, world):
        shutil.copytree(repository, f"{case.root}/../.git")
        told = contradicted(judge(case.root), attack)
        for commit, size in commits.items():
            found = any(commit in text for text in told)
            assert found == (at < size), f"{commit} of {size}: {told} {where}"


def test_a_policy_from_elsewhere_demands_what_was_stripped(world: World, tmp_path: Path) -> None:
    """Whoever strips all protection cannot strip what they cannot write."""
    (attack,) = [attack for attack in ATTACKS if attack.name == "strip all protection"]
    trusted, demands = tmp_path / "policy.tlog", tmp_path / "policy.yaml"
    trusted.write_text(f"log {KEY.verifier().format()}\nquorum none\n")
    demands.write_text("required: [seals-open, record-agrees]\n")
    for case, _, where in trials(attack, world):
        for policy in (trusted, demands):
            report = judge(case.root, AnchorOptions(policies=(str(policy),)))
            assert report.exit_code, f"{policy.name} {where}"
    for policy in (trusted, demands):
        assert judge(world.now.root, AnchorOptions(policies=(str(policy),))).exit_code == 0


@pytest.fixture(scope="module")
def witness(world: World, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a witness that was asked in the third of five rounds."""
    path = str(tmp_path_factory.mktemp("witness") / "w")
    folder = WitnessFolder.begin(path, "witness.example/w1")
    folder.trust(KEY.verifier().format())
    with Team(world.before[3].root) as team:
        ask(team, path)
    return path


def ask(team: Team, path: str) -> str:
    """What a team is told that has its newest seal cosigned; nothing where it has none."""
    folder = WitnessFolder(path)
    try:
        key = folder.key().verifier()
        anchor.anchor_at_witness(team, folder.answer, [key], "the witness")
    except NotFoundError:
        return "nothing is sealed"
    except RefusedError as error:
        return str(error)
    return ""


REWRITES = [attack for attack in UNSEEN if attack.outside and "wipe" not in attack.name]


@pytest.mark.parametrize("attack", REWRITES, ids=lambda attack: attack.name)
def test_a_witness_refuses_what_it_did_not_see(
    world: World, witness: str, tmp_path: Path, attack: Attack
) -> None:
    seen = world.before[3].sealed
    for number, (case, at, where) in enumerate(trials(attack, world)):
        shutil.copytree(witness, tmp_path / str(number))
        served = f"{witness}/logs/{log_folder(ORIGIN)}/checkpoint"
        told = contradicted(judge(case.root, AnchorOptions(pin=served)), attack)
        assert bool(told) == (at < seen), f"{told} {where}"
        with at_home(case.home), Team(case.root) as team:
            newest = sealing.newest(team.store.db)
            said = ask(team, str(tmp_path / str(number)))
        if newest is None:
            assert said == "nothing is sealed", where
        elif newest.size < seen:
            assert "the witness has cosigned" in said, where
        else:
            assert ("FORK" in said) == (at < seen), f"{said} {where}"


@pytest.mark.parametrize(
    "attack", [one for one in REWRITES if not one.needs], ids=lambda attack: attack.name
)
def test_the_signer_remembers_what_it_sealed(world: World, attack: Attack) -> None:
    """It lies on this host, but not in the team directory: who has not its home cannot reset it."""
    for case, at, where in trials(attack, world):
        with at_home(case.home), Team(case.root) as team:
            vkey = keys.sealing_key(team.store)
            try:
                sealing.seal_now(team, keys.no_passphrase)
                said = ""
            except RefusedError as error:
                said = str(error)
        if vkey is None:
            assert "this ledger has no key" in said, where
        else:
            assert ("the seal that this host made last" in said) == (at < world.now.sealed), where
