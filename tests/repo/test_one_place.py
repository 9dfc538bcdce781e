"""What is written down, or done, in one place alone."""

import ast
import re

import pytest
from repo.rules import PACKAGES, sources

_LOCK = re.compile(r"\bfcntl\.(?:flock|lockf)\(")
_CONSTANTS = {
    "ledger/files.py": _LOCK,
    "projections/team/tables.py": re.compile(r"FROM seals ORDER BY seq DESC LIMIT 1"),
}


def _outside(place: str, pattern: "re.Pattern[str]") -> list[str]:
    files = sources(*PACKAGES)
    assert pattern.search(files[place])
    return [path for path, text in files.items() if path != place and pattern.search(text)]


@pytest.mark.parametrize("place", _CONSTANTS)
def test_nothing_else_takes_a_lock_or_looks_up_the_newest_seal(place: str) -> None:
    assert _outside(place, _CONSTANTS[place]) == []


def test_modes_and_limits_of_the_team_s_files_are_in_the_layout_alone() -> None:
    """No projection, intake or act on the team's files gives such a number of its own."""
    own = [
        f"{path}: {ast.unparse(node)}"
        for path, text in sources("projections", "tripod").items()
        if path.startswith(("projections/", "tripod/team/"))
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign)
        and re.fullmatch(r"MODE|_?(?:EVIDENCE|TEXT|COUNTS)_LIMIT", ast.unparse(node.targets[0]))
        and any(isinstance(one, ast.Constant) for one in ast.walk(node.value))
    ]
    assert own == []
