"""A clone without a ledger: the records of all replicas are judged by their refs."""

import json
import shutil
import subprocess
from collections.abc import Callable
from copy import copy
from pathlib import Path

import pytest
from clones import begin, fetch, record, say
from doors.inside import run
from git_repo import Git
from replicas import Snapshot, place_with_home

from tripod.ledger.locator import database_of
from tripod.ledger.tlog.tiles import SEAL
from tripod.peers.hooks import install_hooks
from tripod.verify.check import Report
from tripod.verify.run import verify


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Git, Snapshot]:
    with place_with_home(tmp_path_factory) as folder:
        ann, name, _ = begin(folder / "ann", "example.com/ann")
        say(ann, "Tea!")
        record(ann, name)
        bob, name, _ = begin(folder / "bob", "example.com/bob")
        say(bob, "Coffee!")
        record(bob, name)
        clone = Git(folder / "clone")
        clone.commit("README", b"cafe\n")
        fetch(clone, ann, bob)
    return clone, Snapshot(folder)


@pytest.fixture
def clone(made: tuple[Git, Snapshot], monkeypatch: pytest.MonkeyPatch) -> Git:
    """A clone of a project in which Ann and Bob each have a replica; it has neither's ledger."""
    clone, snapshot = made
    snapshot.put_back(monkeypatch)
    return copy(clone)


def messages(report: Report) -> list[str]:
    return [finding.message for one in report.all_outcomes for finding in one.findings]


def refs(git: Git) -> list[str]:
    return git("for-each-ref", "--format=%(refname)", "refs/tripod-remotes").split()


def test_each_record_is_judged_and_the_worst_decides(clone: Git) -> None:
    before = sorted(str(path) for path in clone.root.rglob("*"))
    report = verify(clone.root)
    assert [part.what for part in report.parts] == refs(clone)
    assert (report.exit_code, messages(report)) == (0, [])
    assert [part.head and part.head[0] for part in report.parts] == [8, 8]
    assert all(part.subject and part.subject.ledger.endswith(part.what) for part in report.parts)
    assert sorted(str(path) for path in clone.root.rglob("*")) == before


def test_a_branch_of_records_and_a_folder_below_serve_as_well(clone: Git) -> None:
    (clone.root / "src").mkdir()
    done = run(clone.root / "src", "verify", "--json")
    assert (done.code, len(json.loads(done.out)["parts"])) == (0, 2)
    assert b"checks hold over 8 entries" in run(clone.root, "verify").out
    ref = refs(clone)[0]
    name = ref.rpartition("/")[2]
    clone("update-ref", f"refs/heads/tripod/{name}", ref)
    for folder in ("refs/heads/tripod/", "refs/heads/tripod"):  # with its slash, or without
        clone("config", "tripod.refs", folder)
        assert verify(clone.root).parts[0].what == f"refs/heads/tripod/{name}"


def test_the_longest_record_of_a_replica_is_judged(clone: Git) -> None:
    ann = Git(clone.root.with_name("ann"), made=False)
    old = refs(clone)[0]
    name = old.rpartition("/")[2]
    clone("update-ref", f"refs/tripod-remotes/fork/{name}", old)
    say(ann, "More tea!")
    record(ann, name)
    fetch(clone, ann)
    report = verify(clone.root)
    assert [part.head and part.head[0] for part in report.parts] == [11, 8]
    assert report.exit_code == 0


def rewrite(clone: Git, ref: str, change: Callable[[dict[str, bytes]], None]) -> None:
    """Make the ref a commit whose tree has other files."""
    listed = clone("ls-tree", "-r", "--format=%(objectname) %(path)", ref).split("\n")
    files = {}
    for line in listed:
        blob, _, path = line.partition(" ")
        files[path] = subprocess.run(
            ["git", "-C", str(clone.root), "cat-file", "blob", blob],
            capture_output=True,
            check=True,
        ).stdout
    change(files)
    said = b"".join(
        b"M 100644 inline %b\ndata %d\n%b\n" % (path.encode(), len(data), data)
        for path, data in files.items()
    )
    front = b"commit %b\ncommitter A <a@b> 0 +0000\ndata 1\nx\n" % ref.encode()
    clone("fast-import", "--quiet", "--force", given=front + said)


def test_a_body_that_was_altered_is_found(clone: Git) -> None:
    def alter(files: dict[str, bytes]) -> None:
        path = next(path for path in files if path.startswith("bodies/"))
        files[path] = files[path].replace(b"Tea!", b"Wine")

    rewrite(clone, refs(clone)[0], alter)
    report = verify(clone.root)
    assert [part.exit_code for part in report.parts] == [1, 0]
    assert report.exit_code == 1
    text = run(clone.root, "verify").out.decode()
    assert refs(clone)[0] in text
    assert "bodies-present" in text


def test_a_ref_under_another_replicas_name_is_named(clone: Git) -> None:
    first, second = refs(clone)
    clone("update-ref", second, first)
    report = verify(clone.root)
    assert [part.exit_code for part in report.parts] == [0, 1]
    assert "this is not its record" in messages(report)[0]


def test_a_ref_by_another_name_than_its_replica_has_is_named(clone: Git) -> None:
    first, _ = refs(clone)
    front, _, digits = first.rpartition("-")
    ref = f"{front.rpartition('/')[0]}/boss-{digits}"
    clone("update-ref", ref, first)
    report = verify(clone.root)
    assert [part.exit_code for part in report.parts] == [0, 0, 1]
    assert report.parts[2].what == ref
    assert "this is not its record" in " ".join(messages(report))
    levels = [part.anchored.level for part in report.parts if part.anchored]
    assert levels[:2] == ["SELF", "SELF"]  # the copy of her own ref vouches for nobody


def test_a_record_without_its_bodies_is_named(clone: Git) -> None:
    """Its seal opens, and nobody can judge what its entries say: not even with its key."""

    def strip(files: dict[str, bytes]) -> None:
        for path in [path for path in files if path.startswith(("bodies/", "blobs/"))]:
            del files[path]

    homes = (clone.root.with_name(name) for name in ("ann", "bob"))
    keys = [run(home, "key", "show").out.decode().split()[0] for home in homes]
    assert verify(clone.root, keys=keys).exit_code == 0
    rewrite(clone, refs(clone)[0], strip)
    report = verify(clone.root, keys=keys)
    assert [part.exit_code for part in report.parts] == [1, 0]
    assert "its bodies were taken away: the record of a replica has them" in messages(report)


def test_a_tree_that_has_a_name_twice_is_not_read(clone: Git) -> None:
    """Git gives the first by its path, and lists both: a seal of one, and entries of another."""
    first, _ = refs(clone)
    tree = subprocess.run(
        ["git", "-C", str(clone.root), "cat-file", "tree", f"{first}^{{tree}}"],
        capture_output=True,
        check=True,
    ).stdout
    at = tree.index(b"100644 checkpoint\0")
    end = at + len(b"100644 checkpoint\0") + 20
    made = clone(
        "hash-object", "-w", "-t", "tree", "--literally", "--stdin", given=tree[:end] + tree[at:]
    )
    clone("update-ref", first, clone("commit-tree", "-m", "x", made.strip()).strip())
    report = verify(clone.root)
    assert [part.exit_code for part in report.parts] == [3, 0]
    assert "has checkpoint twice" in report.parts[0].problem
    assert "has checkpoint twice" in " ".join(messages(report.parts[1]))


@pytest.mark.parametrize("harm", ["no seal", "another tree", "no commit", "a strange file"])
def test_a_ref_that_holds_something_else_is_named(clone: Git, harm: str) -> None:
    first, second = refs(clone)
    if harm == "no seal":
        rewrite(clone, first, lambda files: files.update({SEAL: b""}))
    elif harm == "another tree":
        clone("update-ref", first, "HEAD")
    elif harm == "a strange file":
        rewrite(clone, first, lambda files: files.update({"README": b"x"}))
    else:
        clone("update-ref", first, clone("rev-parse", "HEAD^{tree}"))
    report = verify(clone.root)
    said = " ".join(messages(report))
    if harm == "no commit":
        assert first in report.parts[0].problem
    elif harm == "a strange file":
        assert (report.exit_code, "belongs to no entry" in said) == (0, True)
    else:
        assert "there is no seal to judge the files by" in said
    assert report.exit_code == {"a strange file": 0, "no commit": 3}.get(harm, 1)
    assert report.parts[-1].what == second


def test_folders_of_the_project_that_are_called_as_a_teams_are_no_team(clone: Git) -> None:
    (clone.root / "events").mkdir()
    (clone.root / "chat").mkdir()
    assert len(verify(clone.root).parts) == 2


@pytest.mark.parametrize("place", [".nbs/ledger.db", ".nbs/record", "tile", "checkpoint", "ledger"])
def test_what_lies_in_the_work_tree_takes_no_record_from_the_judge(
    clone: Git, tmp_path: Path, place: str
) -> None:
    """A pull request can add any file: a ledger of its own, for CI to judge in place of all."""
    made, _, _ = begin(tmp_path / "made", "example.com/made")
    root = clone.root / (".nbs" if place.startswith(".nbs") else "")
    root.mkdir(exist_ok=True)
    if "ledger" in place:
        shutil.copytree(made.root / ".nbs", root, dirs_exist_ok=True)
        for path in Path(database_of(f"{made.root}/.nbs")).parent.glob("ledger.db*"):
            shutil.copy(path, root)
    else:
        folder = root / "record" if root.name == ".nbs" else root
        assert run(made.root, "export", str(tmp_path / "record"), "--bodies").code == 0
        chosen = None if folder != root else (lambda _, names: set(names) - {place})
        shutil.copytree(tmp_path / "record", folder, ignore=chosen, dirs_exist_ok=True)
    report = verify(clone.root)
    assert [part.what for part in report.parts][:2] == refs(clone)
    assert all(part.exit_code == 0 for part in report.parts[:2])
    assert len(report.parts) == 2 + (place not in {"tile", "checkpoint"})
    rewrite(clone, refs(clone)[0], lambda files: files.update({SEAL: b""}))
    assert verify(clone.root).exit_code == 1
    assert run(clone.root, "verify").code == 1


@pytest.mark.parametrize("harm", ["link", "repository"])
def test_a_team_directory_that_git_does_not_keep_takes_no_record_from_the_judge(
    clone: Git, tmp_path: Path, harm: str
) -> None:
    """A pull request can make `.nbs` a link or a submodule; a fault on a ref was not looked at."""
    made, _, _ = begin(tmp_path / "made", "example.com/made")
    assert run(made.root, "export", str(tmp_path / "record"), "--bodies").code == 0
    root = clone.root / ("docs" if harm == "link" else ".nbs")
    shutil.copytree(tmp_path / "record", root / "record")
    if harm == "link":
        (clone.root / ".nbs").symlink_to("docs")
    else:
        Git(root).commit("README", b"x\n")
    report = verify(clone.root, select={"chain-links"})
    assert (report.exit_code, report.parts) == (3, ())
    assert "cannot vouch for it" in report.problem
    for ref in refs(clone):
        clone("update-ref", "-d", ref)
    assert verify(clone.root, select={"chain-links"}).exit_code == 0


def test_a_ledger_in_the_work_tree_that_wrote_a_ref_here_is_the_teams(clone: Git) -> None:
    """So an earlier version's team is judged, until its ledger is moved: no file makes a ref."""
    root = clone.root.with_name("ann") / ".nbs"
    shutil.copytree(root, clone.root / ".nbs")
    for path in Path(database_of(str(root))).parent.glob("ledger.db*"):
        shutil.copy(path, clone.root / ".nbs")
    report = verify(clone.root)
    assert [part.what for part in report.parts] == [*refs(clone), str(clone.root)]
    clone("update-ref", refs(clone)[0].replace("-remotes/ann", ""), refs(clone)[0])
    report = verify(clone.root)
    assert (report.parts, report.exit_code) == ((), 0)


def test_of_a_replica_without_a_head_in_the_commits_all_is_new(clone: Git) -> None:
    ann = Git(clone.root.with_name("ann"), made=False)
    install_hooks(str(ann.root))
    ann.commit("x", b"x\n", "with a head")
    clone("fetch", "--quiet", str(ann.root), "main:ann")
    report = verify(clone.root, since="ann")
    first, second = (part.since for part in report.parts)
    assert first is not None
    assert second is not None
    assert (first.size, second.size) == (8, 0)
    assert "holds no seal" in second.why
    assert report.exit_code == 0
    report = verify(clone.root, since="nowhere")
    assert report.exit_code == 3
    assert "there is no such commit" in report.parts[0].problem


def test_a_number_is_no_point_in_several_ledgers(clone: Git) -> None:
    """All that a new replica brought before that number was left out as old."""
    report = verify(clone.root, since=6)
    assert (report.exit_code, report.parts) == (3, ())
    assert "--since 6: the number of an entry is of one ledger, and 2 replicas" in report.problem
    clone("update-ref", "-d", refs(clone)[1])
    (part,) = verify(clone.root, since=6).parts
    assert part.since is not None
    assert part.since.size == 6


def test_a_team_with_a_ledger_is_judged_by_it(tmp_path: Path) -> None:
    ann, name, _ = begin(tmp_path / "ann", "example.com/ann")
    record(ann, name)
    report = verify(ann.root)
    assert report.parts == ()
    assert report.head is not None


def test_a_repository_that_cannot_be_read_is_no_clean_team(clone: Git) -> None:
    (clone.root / ".git/refs/tripod-remotes/x").mkdir()
    (clone.root / ".git/refs/tripod-remotes/x/bad").write_text("no ref\n")
    report = verify(clone.root)
    assert report.exit_code == 3
    assert "is no ref that can be read" in report.problem


def test_a_pin_is_held_against_the_record_that_it_is_of(clone: Git, tmp_path: Path) -> None:
    seal = clone("show", f"{refs(clone)[0]}:{SEAL}") + "\n"
    pin = tmp_path / "ann.pin"
    pin.write_text(seal)
    assert verify(clone.root, pin=pin).exit_code == 0
    lines = seal.split("\n")
    pin.write_text("\n".join([lines[0], str(int(lines[1]) + 1), lines[2], ""]))
    report = verify(clone.root, pin=pin)
    assert [part.exit_code for part in report.parts] == [1, 0]


def test_a_repository_that_others_push_to_lost_no_ledger(clone: Git, tmp_path: Path) -> None:
    store, work = Git(tmp_path / "store.git", made=False), Git(tmp_path / "work")
    store.root.mkdir()
    store("init", "--quiet", "--bare")
    for to in (store, work):
        for ref in refs(clone):
            own = f"refs/tripod/{ref.rpartition('/')[2]}"
            clone("push", "--quiet", str(to.root), f"{ref}:{own}")
    report = verify(store.root)
    assert (report.exit_code, len(report.parts), messages(report)) == (0, 2, [])
    (store.root / "tripod").mkdir()  # a team worked in it
    for to in (store, work):
        assert verify(to.root).exit_code == 1
