"""Tiles: the vectors, which tiles a tree has, their bytes, and the tree read back from them."""

import doctest
from hashlib import sha256

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sealed import VECTORS, leaves_of, list_nodes

from tripod.ledger.entry import MAX_HEADER
from tripod.ledger.errors import MalformedError, TooLargeError
from tripod.ledger.merkle import root_of
from tripod.ledger.tlog import tiles
from tripod.ledger.tlog.note import MAX_SIZE
from tripod.ledger.tlog.tiles import (
    ENTRIES,
    MAX_ENTRY,
    WIDTH,
    Tile,
    bundles_of,
    format_bundle,
    format_tile_path,
    parse_bundle,
    parse_tile_path,
    tiles_of,
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


def test_the_examples_of_the_docstring() -> None:
    assert doctest.testmod(tiles).failed == 0
    assert doctest.testmod(tiles).attempted > 0


# Vectors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "path"), VECTOR["paths"].items())
def test_the_vectors_of_paths(number: str, path: str) -> None:
    tile = Tile(1, int(number), WIDTH)
    assert format_tile_path(tile) == f"tile/1/{path}"
    assert parse_tile_path(f"tile/1/{path}") == tile
    bundle = Tile(ENTRIES, int(number), 3)
    assert format_tile_path(bundle) == f"tile/entries/{path}.p/3"
    assert parse_tile_path(f"tile/entries/{path}.p/3") == bundle


def test_the_vectors_of_seven_entries() -> None:
    vector = VECTOR["e0..e6"]
    entries = [b"e%d" % number for number in range(7)]
    bundle = format_bundle(entries)
    assert bundle.hex() == vector["bundle"]
    assert sha256(bundle).hexdigest() == vector["bundle sha256"]
    assert parse_bundle(bundle, 7) == entries
    (tile,) = tiles_of(7)
    data = b"".join(leaves_of(entries))
    assert sha256(data).hexdigest() == vector[f"{format_tile_path(tile)} sha256"]


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
        data[tile] = b"".join(hashes)
    paths = {format_tile_path(tile): tile for tile in data}
    assert {path: sha256(data[paths[path]]).hexdigest() for path in vector} == vector
    assert len(paths) == 273 + 1 + 1 + 1 + 1
    assert "tile/0/273.p/112" in paths
    root = "25735e70044e819669e77e020eca1ab493220ca44b5fa7645b024c9f3de59aa7"
    assert root_of(list_nodes(leaves), 0, 70_000).hex() == root


# Which tiles there are --------------------------------------------------------------------------


def test_the_tiles_of_sizes_at_the_edges() -> None:
    assert list(tiles_of(0)) == list(bundles_of(0)) == []
    assert [format_tile_path(tile) for tile in tiles_of(255)] == ["tile/0/000.p/255"]
    assert [format_tile_path(tile) for tile in tiles_of(256)] == ["tile/0/000", "tile/1/000.p/1"]
    assert [format_tile_path(tile) for tile in bundles_of(257)] == [
        "tile/entries/000",
        "tile/entries/001.p/1",
    ]
    last = [format_tile_path(tile) for tile in tiles_of(70_000)][-4:]
    assert last == ["tile/0/273.p/112", "tile/1/000", "tile/1/001.p/17", "tile/2/000.p/1"]
    largest = Tile(0, MAX_SIZE // WIDTH, MAX_SIZE % WIDTH)
    assert format_tile_path(largest) == "tile/0/x036/x028/x797/x018/x963/967.p/255"


@given(SIZES)
@example(65_535)
def test_the_tiles_of_a_level_hold_what_is_full_below(size: int) -> None:
    size %= 2**21
    found = list(tiles_of(size))
    assert [tile._replace(level=ENTRIES) for tile in found if not tile.level] == list(
        bundles_of(size)
    )
    for level in range(9):
        widths = [tile.width for tile in found if tile.level == level]
        assert sum(widths) == size >> 8 * level
        assert set(widths[:-1]) <= {WIDTH}


@pytest.mark.parametrize("size", [-1, MAX_SIZE + 1])
def test_no_log_has_such_a_size(size: int) -> None:
    for listing in (tiles_of, bundles_of):
        with pytest.raises(ValueError, match="no log has"):
            list(listing(size))


# Paths -----------------------------------------------------------------------------------------


@given(TILES)
def test_a_path_comes_back(tile: Tile) -> None:
    assert parse_tile_path(format_tile_path(tile)) == tile


@given(
    st.from_regex(r"\Atile/(entries|[0-9]{1,2})/(x?[0-9]{1,3}/){0,2}[0-9]{3}(\.p/[0-9]{1,3})?\Z")
)
def test_a_path_that_is_read_is_written_so(path: str) -> None:
    try:
        tile = parse_tile_path(path)
    except MalformedError:
        return
    assert format_tile_path(tile) == path


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
        parse_tile_path(path)


@pytest.mark.parametrize(
    "tile", [Tile(-2, 0, 1), Tile(64, 0, 1), Tile(0, -1, 1), Tile(0, 0, 0), Tile(0, 0, 257)]
)
def test_there_is_no_such_tile(tile: Tile) -> None:
    with pytest.raises(ValueError, match="there is no tile"):
        format_tile_path(tile)


# Bytes -----------------------------------------------------------------------------------------


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
