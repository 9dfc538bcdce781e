"""Tiles: the vectors, which tiles a tree has, their bytes, and the tree read back from them."""

import doctest
from hashlib import sha256

import naive_tree as naive
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sealed import VECTORS, leaves_of

from tripod.ledger.entry import MAX_HEADER
from tripod.ledger.errors import MalformedError, TooLargeError
from tripod.ledger.merkle import (
    EMPTY_ROOT,
    Nodes,
    check_consistency,
    check_inclusion,
    consistency_proof,
    inclusion_proof,
    list_nodes,
    node_hash,
    root_of,
)
from tripod.ledger.tlog import tiles
from tripod.ledger.tlog.note import MAX_SIZE
from tripod.ledger.tlog.tiles import (
    ENTRIES,
    MAX_ENTRY,
    WIDTH,
    ReadTile,
    Tile,
    bundles_of,
    format_bundle,
    format_path,
    format_tile,
    parse_bundle,
    parse_path,
    parse_tile,
    tile_hashes,
    tile_nodes,
    tiles_of,
    tree_from_tiles,
)

VECTOR = VECTORS["tiles"]
LEAVES = leaves_of([b"n%d" % number for number in range(1_100)])
TILES = st.builds(
    Tile,
    st.integers(ENTRIES, 63),
    st.integers(0, 9_999_999) | st.integers(0, MAX_SIZE),
    st.integers(1, WIDTH),
)
SIZES = st.integers(0, 70_000) | st.integers(0, 2**40) | st.sampled_from([256, 65_536, 2**24])


def written(size: int) -> dict[Tile, bytes]:
    """The tiles of a log of the first leaves."""
    nodes = list_nodes(LEAVES)
    return {tile: format_tile(tile_hashes(nodes, tile)) for tile in tiles_of(size)}


def reader(size: int) -> ReadTile:
    return written(size).__getitem__


def test_the_examples_of_the_docstring() -> None:
    assert doctest.testmod(tiles).failed == 0
    assert doctest.testmod(tiles).attempted > 0


# Vectors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "path"), VECTOR["paths"].items())
def test_the_vectors_of_paths(number: str, path: str) -> None:
    tile = Tile(1, int(number), WIDTH)
    assert format_path(tile) == f"tile/1/{path}"
    assert parse_path(f"tile/1/{path}") == tile
    bundle = Tile(ENTRIES, int(number), 3)
    assert format_path(bundle) == f"tile/entries/{path}.p/3"
    assert parse_path(f"tile/entries/{path}.p/3") == bundle


def test_the_vectors_of_seven_entries() -> None:
    vector = VECTOR["e0..e6"]
    entries = [b"e%d" % number for number in range(7)]
    bundle = format_bundle(entries)
    assert bundle.hex() == vector["bundle"]
    assert sha256(bundle).hexdigest() == vector["bundle sha256"]
    assert parse_bundle(bundle, 7) == entries
    (tile,) = tiles_of(7)
    data = format_tile(leaves_of(entries))
    assert sha256(data).hexdigest() == vector[f"{format_path(tile)} sha256"]


def test_the_vectors_of_seventy_thousand_entries() -> None:
    vector = VECTOR["n0..n69999 sha256"]
    leaves = leaves_of([b"n%d" % number for number in range(70_000)])
    # Each level from the level below, as a store keeps them: a root is computed once.
    levels = {0: leaves}
    for level in (1, 2):
        below = levels[level - 1]
        full = range(len(below) // WIDTH)
        levels[level] = [root_of(list_nodes(below), n * WIDTH, (n + 1) * WIDTH) for n in full]
    data = {}
    for tile in tiles_of(70_000):
        first = tile.number * WIDTH
        hashes = levels[tile.level][first : first + tile.width]
        data[tile] = format_tile(hashes)
        assert hashes == parse_tile(data[tile], tile.width)
    paths = {format_path(tile): tile for tile in data}
    assert {path: sha256(data[paths[path]]).hexdigest() for path in vector} == vector
    assert len(paths) == 273 + 1 + 1 + 1 + 1
    assert "tile/0/273.p/112" in paths
    root = "25735e70044e819669e77e020eca1ab493220ca44b5fa7645b024c9f3de59aa7"
    assert tree_from_tiles(data.__getitem__, 70_000).root().hex() == root
    assert root_of(tile_nodes(data.__getitem__, 70_000), 0, 70_000).hex() == root


# Which tiles there are --------------------------------------------------------------------------


def test_the_tiles_of_sizes_at_the_edges() -> None:
    assert list(tiles_of(0)) == list(bundles_of(0)) == []
    assert [format_path(tile) for tile in tiles_of(255)] == ["tile/0/000.p/255"]
    assert [format_path(tile) for tile in tiles_of(256)] == ["tile/0/000", "tile/1/000.p/1"]
    assert [format_path(tile) for tile in bundles_of(257)] == [
        "tile/entries/000",
        "tile/entries/001.p/1",
    ]
    last = [format_path(tile) for tile in tiles_of(70_000)][-4:]
    assert last == ["tile/0/273.p/112", "tile/1/000", "tile/1/001.p/17", "tile/2/000.p/1"]
    assert [format_path(tile) for tile in tiles_of(MAX_SIZE, MAX_SIZE - 1)][-1] == (
        "tile/0/x036/x028/x797/x018/x963/967.p/255"
    )


@given(st.integers(0, 70_000), st.integers(0, 70_000))
@example(256, 256)
@example(512, 256)
@example(65_536, 65_535)
def test_the_tiles_that_change_are_those_that_the_smaller_tree_has_not(a: int, b: int) -> None:
    since, size = sorted((a, b))
    before = set(tiles_of(since))
    assert list(tiles_of(size, since)) == [tile for tile in tiles_of(size) if tile not in before]
    assert list(bundles_of(size, since)) == [
        tile._replace(level=ENTRIES) for tile in tiles_of(size, since) if tile.level == 0
    ]


@given(SIZES, st.integers(0, 1_000))
def test_a_large_log_that_grows_a_little_changes_few_tiles(size: int, more: int) -> None:
    changed = list(tiles_of(size + more, size))
    assert len(changed) <= more // 256 + more // 65_536 + 12
    assert len(set(changed)) == len(changed)
    for level, number, width in changed:
        count = (size + more) >> 8 * level
        assert number * WIDTH + width <= count
        assert width == WIDTH or number * WIDTH + width == count


@pytest.mark.parametrize(("size", "since"), [(-1, 0), (4, -1), (4, 5), (MAX_SIZE + 1, 0)])
def test_no_log_shrinks(size: int, since: int) -> None:
    for listing in (tiles_of, bundles_of):
        with pytest.raises(ValueError, match="no log grows"):
            list(listing(size, since))
    if since == 0:
        with pytest.raises(ValueError, match="no log grows"):
            tree_from_tiles(reader(0), size)


# Paths -----------------------------------------------------------------------------------------


@given(TILES)
def test_a_path_comes_back(tile: Tile) -> None:
    assert parse_path(format_path(tile)) == tile


@given(
    st.from_regex(r"\Atile/(entries|[0-9]{1,2})/(x?[0-9]{1,3}/){0,2}[0-9]{3}(\.p/[0-9]{1,3})?\Z")
)
def test_a_path_that_is_read_is_written_so(path: str) -> None:
    try:
        tile = parse_path(path)
    except MalformedError:
        return
    assert format_path(tile) == path


@pytest.mark.parametrize(
    "path",
    [
        "",
        "checkpoint",
        "tile/0",
        "tile/0/",
        "tile/0/0",
        "tile/0/0000",
        "tile/0/1000",
        "tile/0/000/001",
        "tile/0/x000/001",
        "tile/0/x1/000",
        "tile/0/x001",
        "tile/0/001.p/0",
        "tile/0/001.p/01",
        "tile/0/001.p/256",
        "tile/0/001.p/999",
        "tile/0/001.p",
        "tile/0/001.p/",
        "tile/00/001",
        "tile/64/001",
        "tile/-1/001",
        "tile/Entries/001",
        "tile/8/0/001",
        "/tile/0/001",
        "tile/0/001/",
        "tile/0/001\n",
        "tile/0/../0/001",
        "tile/0/\u0661\u0662\u0663",
        "tile/0/x999/x999/x999/x999/x999/x999/999",
    ],
)
def test_what_is_no_path(path: str) -> None:
    with pytest.raises(MalformedError, match="not the path of a tile"):
        parse_path(path)


@pytest.mark.parametrize(
    "tile", [Tile(-2, 0, 1), Tile(64, 0, 1), Tile(0, -1, 1), Tile(0, 0, 0), Tile(0, 0, 257)]
)
def test_there_is_no_such_tile(tile: Tile) -> None:
    with pytest.raises(ValueError, match="there is no tile"):
        format_path(tile)


# Bytes -----------------------------------------------------------------------------------------


@given(st.lists(st.binary(min_size=32, max_size=32), min_size=1, max_size=WIDTH))
def test_a_tile_comes_back(hashes: list[bytes]) -> None:
    data = format_tile(hashes)
    assert parse_tile(data, len(hashes)) == hashes
    for width in (0, len(hashes) - 1, len(hashes) + 1):
        with pytest.raises(MalformedError, match=f"a tile of {width} hashes takes"):
            parse_tile(data, width)
    with pytest.raises(MalformedError, match="bytes, not"):
        parse_tile(data[:-1], len(hashes))


@pytest.mark.parametrize("hashes", [[], [bytes(32)] * 257, [bytes(31)], [bytes(31), bytes(33)]])
def test_what_is_no_tile(hashes: list[bytes]) -> None:
    with pytest.raises(ValueError, match="a tile holds from 1 to 256 hashes of 32 bytes"):
        format_tile(hashes)


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=WIDTH))
def test_a_bundle_comes_back(entries: list[bytes]) -> None:
    data = format_bundle(entries)
    assert parse_bundle(data, len(entries)) == entries
    for width in (len(entries) - 1, len(entries) + 1):
        with pytest.raises(MalformedError, match=f"a bundle of {width} entries holds"):
            parse_bundle(data, width)
    with pytest.raises(MalformedError, match=r"cut off|holds"):
        parse_bundle(data[:-1], len(entries))


@given(st.binary(max_size=20), st.integers(1, 5))
def test_a_bundle_that_is_read_is_written_so(data: bytes, width: int) -> None:
    try:
        entries = parse_bundle(data, width)
    except MalformedError:
        return
    assert format_bundle(entries) == data


def test_the_caps_of_a_bundle() -> None:
    assert MAX_ENTRY == MAX_HEADER  # every header fits
    largest = [b"", bytes(MAX_ENTRY)]
    assert parse_bundle(format_bundle(largest), 2) == largest
    with pytest.raises(TooLargeError, match="entry 1 of the bundle takes 65536 bytes"):
        format_bundle([b"", bytes(MAX_ENTRY + 1)])
    for count in (0, WIDTH + 1):
        with pytest.raises(ValueError, match="a bundle holds from 1 to 256 entries"):
            format_bundle([b""] * count)
    for data in (b"\0", b"\0\0\0", b"\0\x02a"):
        with pytest.raises(MalformedError, match="of the bundle is cut off"):
            parse_bundle(data, 1)
    with pytest.raises(MalformedError, match="holds more"):
        parse_bundle(bytes(6), 2)
    with pytest.raises(MalformedError, match="holds 0"):
        parse_bundle(b"", 2)


# A tree read from tiles -------------------------------------------------------------------------


def agree(nodes: Nodes, size: int) -> None:
    root = naive.root(LEAVES[:size])
    assert root_of(nodes, 0, size) == root
    for seq in {0, 1, size // 3, size - 1} & set(range(size)):
        proof = inclusion_proof(nodes, seq, size)
        assert proof == inclusion_proof(list_nodes(LEAVES), seq, size)
        assert check_inclusion(LEAVES[seq], seq, size, proof, root)
    for old in {0, min(1, size), size // 2, size}:
        proof = consistency_proof(nodes, old, size)
        assert check_consistency(old, naive.root(LEAVES[:old]), size, root, proof)


@given(st.integers(0, 1_100))
@example(0)
@example(1)
@example(255)
@example(256)
@example(257)
@example(1_024)
def test_tiles_recompute_the_root_and_every_proof(size: int) -> None:
    read = reader(size)
    agree(tile_nodes(read, size), size)
    tree = tree_from_tiles(read, size)
    assert (tree.size, tree.root()) == (size, naive.root(LEAVES[:size]))
    above = [
        digest
        for tile in tiles_of(size)
        if tile.level == 1
        for digest in parse_tile(read(tile), tile.width)
    ]
    assert above == [digest for level, _, digest in tree.full if level == 1]


def test_an_empty_tree_reads_no_tile() -> None:
    assert tree_from_tiles(reader(0), 0).root() == EMPTY_ROOT


def test_a_proof_in_a_large_tree_reads_few_tiles() -> None:
    read: list[Tile] = []

    def zeros(tile: Tile) -> bytes:
        read.append(tile)
        return bytes(32 * tile.width)

    inclusion_proof(tile_nodes(zeros, MAX_SIZE), 12_345_678_901, MAX_SIZE)
    # Seven on the way up from the leaf, and as many at the ragged right edge.
    assert {tile.level for tile in read} == set(range(8))
    assert len(set(read)) <= 16


def test_no_node_beyond_the_tree_and_no_partial_tile_hashed_upward() -> None:
    nodes = tile_nodes(reader(1_000), 1_000)
    assert nodes(8, 2) == root_of(list_nodes(LEAVES), 512, 768)
    assert nodes(9, 0) == node_hash(nodes(8, 0), nodes(8, 1))
    for height, index in [(0, 1_000), (8, 3), (9, 1), (10, 0), (-1, 0), (0, -1)]:
        with pytest.raises(ValueError, match="a tree of 1000 leaves has no node"):
            nodes(height, index)
    # Who hashes a partial tile upward writes one hash too many above, and is found out.
    wrong = written(1_000)
    wrong[Tile(1, 0, 3)] += root_of(list_nodes(LEAVES), 768, 1_000)
    with pytest.raises(MalformedError, match="a tile of 3 hashes takes 96 bytes, not 128"):
        tile_nodes(wrong.__getitem__, 1_000)(8, 0)


def test_a_tile_of_another_width_is_refused() -> None:
    cut = {tile: data[:-32] for tile, data in written(300).items()}
    with pytest.raises(MalformedError, match="a tile of 256 hashes takes 8192 bytes, not 8160"):
        tree_from_tiles(cut.__getitem__, 300)
    with pytest.raises(MalformedError, match="a tile of 44 hashes takes 1408 bytes, not 1376"):
        tile_nodes(cut.__getitem__, 300)(0, 299)


@given(st.integers(1, 300), st.data())
def test_any_byte_of_a_leaf_tile_counts(size: int, data: st.DataObject) -> None:
    damaged = written(size)
    tile = data.draw(st.sampled_from([tile for tile in damaged if tile.level == 0]))
    at = data.draw(st.integers(0, 32 * tile.width - 1))
    changed = bytearray(damaged[tile])
    changed[at] ^= data.draw(st.integers(1, 255))
    damaged[tile] = bytes(changed)
    assert tree_from_tiles(damaged.__getitem__, size).root() != naive.root(LEAVES[:size])
