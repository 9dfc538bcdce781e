"""Writes a folder of decisions, one Markdown file each, which reviewers read beside the code.

The files are copies: their bytes follow from the ledger alone, and each has a digest of itself in
its second line. A file is replaced or removed only where that digest is right, so that nothing is
lost that a person wrote. Each file is put in place whole; a run that is stopped is run again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tripod.errors import RefusedError
from tripod.ledger.files import place_to_write_problem, read_plain_file, replace_file
from tripod.output import one_line
from tripod.projections.decisions.madr_file import (
    NAME_PATTERN,
    DecisionPage,
    decision_page_name,
    format_decision_page,
    named_decision,
    written_page,
)

_MODE = 0o644
_MAX = 16 * 1024 * 1024  # bytes of a file
_NAMED = 10  # files that a refusal names


class DecisionFolder(NamedTuple):
    """What an export did in a folder: how many files it wrote, removed, and left as they were."""

    path: str
    written: int
    removed: int
    unchanged: int


def write_decision_folder(
    pages: Sequence[DecisionPage], folder: str, inside: str | None
) -> DecisionFolder:
    """Write a file for each decision into ``folder``, which is made where it is missing.

    ``pages`` are all decisions of a ledger, in the order of their numbers from 1. ``inside`` is the
    team directory, into which nothing is written.

    Raises:
        RefusedError: the folder is in the team directory or git's, or files in it are not of this
            export; nothing was written.
        OSError: the disk refuses. Files that were written are whole.
    """
    _check_folder(folder, inside)
    data = [format_decision_page(page) for page in pages]
    names = [decision_page_name(page.number, page.decision.title) for page in pages]
    stale, known, problems = list[str](), dict[str, bytes](), list[str]()
    for number, name, old in _numbered_files(folder, len(pages)):
        try:
            rest = written_page(old)
        except ValueError as error:
            problems.append(f"{name}: {error}: move it away, or take the change back")
            continue
        if rest is None:
            if number <= len(pages):
                problems.append(f"{name}: it has the number of a decision, and no export wrote it")
        elif number > len(pages):
            problems.append(f"{name}: this ledger has {len(pages)} decisions: is it an older copy?")
        elif named_decision(rest) != named_decision(written_page(data[number - 1]) or b""):
            problems.append(
                f"{name}: it is of another ledger, where its number is another decision"
            )
        elif name == names[number - 1]:
            known[name] = old.replace(b"\r\n", b"\n")
        else:
            stale.append(name)
    if problems:
        more = len(problems) - _NAMED
        listed = [*problems[:_NAMED], *([f"and {more} more"] if more > 0 else [])]
        raise RefusedError(
            "\n  ".join([f"{one_line(folder)}: nothing was written", *map(one_line, listed)])
        )
    fresh = [at for at, name in enumerate(names) if known.get(name) != data[at]]
    if fresh:
        os.makedirs(folder, exist_ok=True)
    for at in fresh:
        replace_file(os.path.join(folder, names[at]), data[at], _MODE, foreign_folder=True)
    for name in stale:
        os.unlink(os.path.join(folder, name))
    return DecisionFolder(folder, len(fresh), len(stale), len(pages) - len(fresh))


def _check_folder(folder: str, inside: str | None) -> None:
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise RefusedError(f"{one_line(folder)} is no folder: give one for the files of decisions")
    if problem := place_to_write_problem(folder, inside):
        raise RefusedError(problem)


def _numbered_files(folder: str, count: int) -> Iterator[tuple[int, str, bytes]]:
    """Number, name and bytes of what stands in a folder where a decision's file may stand.

    What cannot be read as a plain file, such as a link, has no bytes: it is nobody's of ours.
    """
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return
    for name in names:
        match = re.fullmatch(NAME_PATTERN, name)
        if match is None or int(match[1]) == 0:
            continue
        path = os.path.join(folder, name)
        try:
            plain = not os.path.islink(path)
            data = read_plain_file(path, _MAX) if plain else b""
        except (IsADirectoryError, FileNotFoundError):
            data = b""
        except OSError:
            if int(match[1]) > count:
                continue
            raise
        yield int(match[1]), name, data
