"""How GitHub's runner and other agents read the lines that a step prints: a small model.

The rules are those of ``ActionCommand`` in the sources of github.com/actions/runner: a line that
begins with ``::`` after white space is a command if its word is registered; else ``##[word]``
anywhere in it is one. Azure's agent and TeamCity read ``##vso[`` and ``##teamcity[`` so.
"""

import re
from typing import NamedTuple

WORDS = {
    "error", "warning", "notice", "debug", "group", "endgroup", "echo", "add-mask", "add-matcher",
    "remove-matcher", "add-path", "save-state", "set-env", "set-output", "set-repo-path",
    "stop-commands",
}  # fmt: skip


class Command(NamedTuple):
    """A command: its word, its properties, its data."""

    word: str
    properties: dict[str, str]
    data: str


def runner_command(line: str) -> Command | None:
    """What the runner does with a line of output; None: it prints the line."""
    text = line.lstrip()
    if text.startswith("::") and "::" in text[2:]:
        head, _, data = text[2:].partition("::")
        word, _, rest = head.partition(" ")
        if word.lower() in WORDS:  # the runner does not mind the case
            pairs = (one.split("=", 1) for one in rest.strip().split(",") if one)
            named = {one[0]: _plain(one[1], ":,") for one in pairs if len(one) == 2 and one[1]}
            return Command(word, named, _plain(data, ""))
    old = re.search(r"##(?:\w+)?\[([^\] ]+)[^\]]*\](.*)", line)
    return None if old is None else Command(old[1], {}, old[2])


def _plain(text: str, signs: str) -> str:
    for sign in ("\r", "\n", *signs, "%"):  # the sign of the code itself comes last
        text = text.replace(f"%{ord(sign):02X}", sign)
    return text
