"""Every parser is tortured, what was kept is read again, and a parser that errs is found."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from torture import input as inputs
from torture.input import corpus, misreadings, tried
from torture.parsers import Parser, parsers
from torture.teams import Scene

ROOT = Path(__file__).resolve().parents[3]
ROOMS = ("ledger", "projections", "verify", "tripod")
BEGINS = ("parse", "read_", "split_", "calls_in", "opened_by", "listed_", "plain_")
TAKES = ("bytes", "str", "object", "Iterable[bytes]", "Sequence[str]")
LEFT_OUT = {
    "ledger.files:read_plain_file": "opens a file, and reads nothing of what is in it",
    "ledger.sqlite.reader:read_only": "opens a database; the family `corruption` damages it",
    "projections.swap:split_for_swap": "cuts at a line, and reads nothing",
    "verify.anchors.anchors:read_pin": "is `parse_head` over a file",
    "verify.anchors.anchors:read_since": "is a number, or a revision that git resolves",
    "verify.anchors.git_growth:read_growth": "asks git for the versions of a file",
    "verify.peers.seals:SealedRecord.read_blob": "finds a blob by its digest",
    "verify.recorded.files:read_copies": "is `read_session_file` for each session of a file",
    "verify.sessions.syntax:parser_of": "loads a parser",
}
"""Public functions with the name of a parser that are none, or are tortured by another's name."""


def public_parsers() -> set[str]:
    """The functions of the four rooms that read what others wrote, by their names."""
    found = set()
    for path in (path for room in ROOMS for path in (ROOT / room).rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        text = path.read_text("utf-8")
        if re.search(rf"def ({'|'.join(BEGINS)})", text) is None:
            continue
        tree = ast.parse(text)
        for node in (tree, *tree.body):
            owner = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
            for one in getattr(node, "body", ()) if owner or isinstance(node, ast.Module) else ():
                if isinstance(one, ast.FunctionDef) and one.name.startswith(BEGINS):
                    names = [a for a in one.args.args if a.arg not in ("self", "cls")]
                    taken = (
                        ast.unparse(names[0].annotation) if names and names[0].annotation else ""
                    )
                    if taken in TAKES:
                        found.add(f"{module}:{owner}{one.name}")
    return found


def test_every_parser_is_tortured() -> None:
    tortured = {
        f"{one.__module__.removeprefix('tripod.')}:{one.__qualname__}"
        for group in parsers().values()
        for parser in group.values()
        for one in parser.covers
    }
    tortured |= {f"tripod.{name}" for name in tortured}  # the commands' own room keeps its name
    public = public_parsers()
    assert public - tortured - LEFT_OUT.keys() == set()
    assert LEFT_OUT.keys() <= public - tortured


def test_what_was_kept_is_read_as_it_should_be() -> None:
    known = {name: parser for group in parsers().values() for name, parser in group.items()}
    assert corpus().keys() <= known.keys()
    assert inputs.CORPUS.stat().st_size <= 2**20
    for name, parser in known.items():
        for data in (*parser.seeds, *corpus().get(name, ())):
            result = tried(parser, data)
            assert not result.wrong, f"{name}: {data!r}: {result.what}"


def _parser(read: Callable[[bytes], object], **more: Any) -> Parser:
    return Parser("x", read, (ast.parse,), (b"a(b)c" * 3,), (ValueError,), **more)


def _raises(data: bytes) -> object:
    return data.split(b"(")[2]


def _believes(data: bytes) -> object:
    assert data.count(b")") < 4
    return data


def _hangs(data: bytes) -> object:
    while b"\0" in data:
        pass
    return data


ERRING = {
    "raises": _parser(_raises),
    "false clean": _parser(_believes),
    "read back": _parser(bytes.lower, write=bytes, is_strict=True),
    "hangs": _parser(_hangs),
    "cannot be written": _parser(bytes.decode, write=lambda text: text.encode("ascii")),
}


@pytest.mark.parametrize("what", ERRING)
def test_a_parser_that_errs_is_found(
    what: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(inputs, "parsers", lambda: {"x": {"x": ERRING[what]}})
    monkeypatch.setattr(inputs, "FOUND", tmp_path / "found")
    monkeypatch.setattr(inputs, "PATIENCE", 0.05)
    cases = (case.run() for case in islice(misreadings(Scene("x", (), ()), tmp_path, 7), 400))
    wrong = next(result.what for result in cases if result.wrong)
    assert what in wrong or (what == "false clean" and "AssertionError" in wrong), wrong
    assert list((tmp_path / "found").iterdir())


def test_the_same_seed_gives_the_same_inputs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    note = parsers()["sealed"]["note"]
    monkeypatch.setattr(inputs, "parsers", lambda: {"x": {"note": note}})
    scene = Scene("x", (), ())
    runs = [
        [case.run().what for case in islice(misreadings(scene, tmp_path, 3), 300)] for _ in "12"
    ]
    assert runs[0] == runs[1]
    assert len(set(runs[0])) > 1
