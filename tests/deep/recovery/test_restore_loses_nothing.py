"""Whatever is left of a replica, nothing that any of it holds is lost by what is advised."""

from __future__ import annotations

import shutil
from itertools import combinations
from pathlib import Path

import pytest
from replicas import Clone, begun_replica, joined_replica

LEFT = ("own ref", "fetched", "peer", "files")
"""What may be left. Each holds another beginning of what Ann recorded."""
HOLDS = {
    "fetched": ("pushed",),
    "peer": (),  # what Ann made is taken of her record alone; Bob's ledger still has it
    "own ref": ("pushed", "sealed"),
    "files": ("pushed", "sealed", "said last"),
}


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ann's laptop as it was, and what others have of it."""
    folder = tmp_path_factory.mktemp("before")
    ann = begun_replica(folder, "ann")
    ann.decides("pushed")
    ann.said("push")
    bob = joined_replica(folder, "bob")
    bob.said("push")
    ann.said("pull")
    ann.decides("sealed")
    ann.said("seal")
    shutil.move(ann.home / "keys", folder / "keys")  # what is said last is not sealed
    ann.said("chat", "send", "live", "ann", "shall we: said last")
    words = ("-p", "ann", "-r", "So.", "--ref", "last")
    ann.said("scribe", "log", "said last", *words)
    shutil.move(folder / "keys", ann.home / "keys")
    return folder


def left_of(before: Path, folder: Path, left: tuple[str, ...], *, seals: bool) -> Clone:
    """A copy of Ann's laptop, of which only that is left, and her keys."""
    shutil.copytree(before, folder, dirs_exist_ok=True)
    ann = Clone(folder, "ann")
    shutil.rmtree(ann.database.parent)
    if not seals:
        shutil.rmtree(ann.home / "seals")
    if "files" not in left:
        shutil.rmtree(ann.root)
    kept = ("refs/tripod", "refs/tripod-remotes")
    for ref in ann.git("for-each-ref", "--format=%(refname)", *kept).split():
        name = ref.rpartition("/")[2]
        kind = "own ref" if ref.startswith("refs/tripod/") else "fetched"
        if (kind if name.startswith("ann-") else "peer") not in left:
            ann.git("update-ref", "-d", ref)
    return ann


@pytest.mark.drawn
@pytest.mark.parametrize("seals", [True, False], ids=["seal known", "seal forgotten"])
@pytest.mark.parametrize(
    "left",
    [some for count in range(1, 5) for some in combinations(LEFT, count)],
    ids=lambda some: "+".join(some).replace(" ", "-"),
)
def test_nothing_that_is_left_is_lost(
    before: Path, tmp_path: Path, left: tuple[str, ...], *, seals: bool
) -> None:
    ann = left_of(before, tmp_path, left, seals=seals)
    done = ann.run("restore")
    if done.code:
        advice = ["init"]
        if "fetched" in left:
            advice = ["restore", "--replica", done.err.partition("--replica ")[2].split("`")[0]]
        assert f"`tripod {' '.join(advice)}`" in done.err, done
        done = ann.run(*advice)
    if left == ("files",):
        assert f"move {ann.root}/counts.json away first" in done.err
        (ann.root / "counts.json").unlink()
        done = ann.run("init")
    assert done.code == 0, done
    path = ann.root / "scribe/log.md"
    log = path.read_text() if path.exists() else ""
    read = ann.run("chat", "read", "live").out.decode()
    for title in {title for one in left for title in HOLDS[one]}:
        assert log.count(f" {title}\n") + log.count(f" {title} [") == 1, (title, log)
        assert read.count(f"shall we: {title}\n") == 1, (title, read)
    judged = ann.run("verify")
    assert judged.code == 0, judged
