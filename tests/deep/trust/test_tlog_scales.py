"""Our bytes against those of tlog-scales, another implementation of the same formats."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from sealed import LOG, OTHER_LOG, TIME, WITNESSES, leaves_of, list_nodes
from tlog_scales.backend import LocalBackend
from tlog_scales.reader import TilesReader
from tlog_scales.signing import PlainEd25519Signer, Vkey, VkeySet
from tlog_scales.tlog import Checkpoint
from tlog_scales.writer import TilesWriter

from tripod.ledger.merkle import Nodes, Tree, consistency_proof, inclusion_proof, root_of
from tripod.ledger.tlog.note import Note, format_note, parse_note
from tripod.ledger.tlog.seal import Seal, cosign_seal, format_seal, open_seal, parse_seal, sign_seal
from tripod.ledger.tlog.tiles import (
    WIDTH,
    Tile,
    bundles_of,
    format_bundle,
    format_tile_path,
    tiles_of,
)

SIZES = [0, 1, 2, 7, 255, 256, 257, 1_000, 70_000]
SIGNER = PlainEd25519Signer(LOG.name, LOG.seed)

pytestmark = pytest.mark.slow


def entries_of(size: int) -> list[bytes]:
    """Entries of many lengths, empty and largest among them."""
    return [b"n%d" % n * (n % 7) if n != 3 else bytes(65_535) for n in range(size)]


def ours(entries: Sequence[bytes]) -> dict[str, bytes]:
    """Path and bytes of each file of a log, and its seal."""
    tree = Tree()
    levels: dict[int, list[bytes]] = {0: leaves_of(entries)}
    for leaf in levels[0]:
        tree.append(leaf)
    for level, _, digest in tree.full:
        levels.setdefault(level, []).append(digest)

    def cut(tile: Tile) -> slice:
        return slice(tile.number * WIDTH, tile.number * WIDTH + tile.width)

    size = len(entries)
    files = {
        format_tile_path(tile): b"".join(levels[tile.level][cut(tile)]) for tile in tiles_of(size)
    }
    files |= {
        format_tile_path(tile): format_bundle(entries[cut(tile)]) for tile in bundles_of(size)
    }
    seal = Seal(LOG.name, size, tree.root())
    return files | {"checkpoint": format_note(Note(format_seal(seal), (sign_seal(seal, LOG),)))}


def theirs(root: Path) -> dict[str, bytes]:
    """Path and bytes of each file in a folder."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file()
    }


def nodes_in(root: Path, size: int) -> Nodes:
    """The tree of the leaves in a folder."""
    leaves = [tile for tile in tiles_of(size) if not tile.level]
    data = b"".join((root / format_tile_path(tile)).read_bytes() for tile in leaves)
    return list_nodes([data[at : at + 32] for at in range(0, len(data), 32)])


@pytest.mark.parametrize("size", SIZES)
def test_a_log_is_the_same_files(tmp_path: Path, size: int) -> None:
    root = tmp_path / "log"
    entries = entries_of(size)
    writer = TilesWriter.create(root, LOG.name)
    for entry in entries:
        writer.add_leaf(entry)
    writer.commit([SIGNER])
    files = theirs(root)
    mine = ours(entries)
    assert sorted(files) == sorted(mine)
    assert [path for path in mine if files[path] != mine[path]] == []

    # And we read what they wrote.
    opened = open_seal(parse_note(files["checkpoint"]), [LOG.verifier()])
    assert opened.seal.size == size
    assert opened.seal.root == root_of(nodes_in(root, size), 0, size)


@pytest.mark.parametrize(
    ("since", "size"), [(0, 7), (7, 255), (255, 256), (256, 257), (1_000, 1_024), (250, 1_500)]
)
def test_a_log_that_grows_gains_the_same_files(tmp_path: Path, since: int, size: int) -> None:
    root = tmp_path / "log"
    entries = entries_of(size)
    writer = TilesWriter.create(root, LOG.name)
    for entry in entries[:since]:
        writer.add_leaf(entry)
    writer.commit([SIGNER], gc=False)
    before = theirs(root)
    for entry in entries[since:]:
        writer.add_leaf(entry)
    writer.commit([SIGNER], gc=False)
    after = theirs(root)
    gained = {path: data for path, data in after.items() if before.get(path) != data}
    smaller = ours(entries[:since])
    assert gained == {
        path: data for path, data in ours(entries).items() if smaller.get(path) != data
    }


@pytest.mark.parametrize("size", SIZES[1:-1])
def test_proofs_are_the_same_hashes(tmp_path: Path, size: int) -> None:
    root = tmp_path / "log"
    writer = TilesWriter.create(root, LOG.name)
    for entry in entries_of(size):
        writer.add_leaf(entry)
    writer.commit([SIGNER])
    reader = TilesReader(LocalBackend(root))
    head = reader.get_checkpoint()
    nodes = nodes_in(root, size)
    leaves = leaves_of(entries_of(size))
    for seq in {0, 1, 254, 255, 256, size // 2, size - 1} & set(range(size)):
        proof = reader.get_inclusion_proof(seq, size)
        assert inclusion_proof(nodes, seq, size) == proof.node_hashes
        proof.check(leaves[seq], head.root_hash)
    for old in {1, 2, 7, 255, 256, size // 2, size - 1, size} & set(range(1, size + 1)):
        between = reader.get_consistency_proof(old, size)
        assert consistency_proof(nodes, old, size) == between.node_hashes
        between.check(root_of(nodes, 0, old), head.root_hash)


def test_keys_and_seals_are_read_by_each_other() -> None:
    seal = Seal(LOG.name, 7, bytes(range(32)))
    cosignatures = [cosign_seal(seal, key, TIME) for key in WITNESSES]
    data = format_note(Note(format_seal(seal), (sign_seal(seal, LOG), *cosignatures)))
    head = Checkpoint.from_text(data.decode())
    assert (head.origin, head.size, head.root_hash) == seal[:3]
    assert head.serialize().encode() == data
    head.verify(Vkey.from_string(LOG.verifier().format()))
    keys = [Vkey.from_string(key.verifier().format()) for key in (LOG, OTHER_LOG, *WITNESSES)]
    assert SIGNER.vkey.key_id == keys[0].key_id == int.from_bytes(LOG.verifier().key_id, "big")
    assert (SIGNER.vkey.sig_type, SIGNER.vkey.pubkey) == LOG.verifier()[1:]
    good = VkeySet(*keys).verify(head.signatures, head)
    assert {key.name for key, _ in good} == {LOG.name, *(key.name for key in WITNESSES)}

    signed = Checkpoint.make_signed(LOG.name, 7, bytes(range(32)), [SIGNER])
    note = parse_note(signed.serialize().encode())
    assert parse_seal(note.text) == seal
    assert note.signatures == (sign_seal(seal, LOG),)
