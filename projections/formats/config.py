"""The team's ``events/config.yaml``: ``key: value`` lines, and a warning for all else. Pure.

::

    # Deduplication window in seconds
    dedup-window: 300
    pythia-channel: "live.chat"   # quotes and comments are allowed

People write this file and it is never written by us, so there is one direction only. It is read as
lines, not as YAML: nothing is expanded, merged, nested or executed. The last valid value of a key
wins; a line that is not understood leaves the value that holds, and says so.

Source: seeds nbs-bus and tripod-architecture, "Configuration"; spec nbs-compat B6.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from projections.formats.moments import MAX_EPOCH

MAX_SIZE = 64 * 1024

# Kept as text: a publish asks for the defaults alone, and compiles none of them.
_LINE = r"([A-Za-z0-9_.-]+)[ \t]*:(.*)"
_QUOTED = r"""(?:"([^"\\]*)"|'([^']*)')[ \t]*(?:[ \t]#.*)?"""
_COMMENT = r"(?:^|[ \t])#.*"
_INTEGER = r"0|[1-9][0-9]{0,15}"
_FILE_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,104}"
_LEAST = {
    "dedup-window": 0,
    "retention-max-bytes": 1,
    "ack-timeout": 0,
    "pythia-interval": 0,
    "poll-interval": 1,
}
_WORDS = {"notify": ("inotifywait", "poll"), "deleted-events": ("acked", "restore")}


class Config(NamedTuple):
    """The settings with their documented defaults; windows and timeouts in seconds, 0 is off."""

    dedup_window: int = 0
    retention_max_bytes: int = 16_777_216
    ack_timeout: int = 0
    pythia_interval: int = 20
    pythia_channel: str = "live.chat"
    notify: str = "inotifywait"
    poll_interval: int = 5
    deleted_events: str = "acked"


class ConfigWarning(NamedTuple):
    """A line that was not taken: its number from 1 (0: the whole file), its key if any, and why."""

    line: int
    key: str
    message: str


def _plain(rest: str) -> str:
    """Give the value of a line, without its comment, its quotes and the blanks around it."""
    rest = rest.strip(" \t\r")
    quoted = re.fullmatch(_QUOTED, rest)
    if quoted:
        return str(quoted[1] if quoted[1] is not None else quoted[2])
    return re.sub(_COMMENT, "", rest).rstrip(" \t")


def _value(key: str, text: str) -> int | str | None:
    """Read the value of a known key; None where it is not one of its values."""
    if key in _WORDS:
        return text if text in _WORDS[key] else None
    if key == "pythia-channel":
        return text if re.fullmatch(_FILE_NAME, text) else None
    number = int(text) if re.fullmatch(_INTEGER, text) else -1
    return number if _LEAST[key] <= number <= MAX_EPOCH else None


def _expected(key: str) -> str:
    if key in _WORDS:
        return " or ".join(_WORDS[key])
    if key == "pythia-channel":
        return "the file name of a chat, such as live.chat"
    return f"a whole number from {_LEAST[key]} up"


def parse_config(data: bytes) -> tuple[Config, tuple[ConfigWarning, ...]]:
    r"""Read the file's bytes into the settings and what was wrong with it; never raises.

    >>> parse_config(b"dedup-window: 300 # five minutes\n")[0].dedup_window
    300
    """
    if len(data) > MAX_SIZE:
        message = f"the file is larger than {MAX_SIZE} bytes; the defaults hold"
        return Config(), (ConfigWarning(0, "", message),)
    values: dict[str, Any] = {}
    first: dict[str, int] = {}
    warnings: list[ConfigWarning] = []
    text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip() or line.lstrip(" \t").startswith("#"):
            continue
        match = re.fullmatch(_LINE, line.rstrip("\r"))
        if match is None:
            warnings.append(ConfigWarning(number, "", "not a line of the form `key: value`"))
            continue
        key = match[1]
        if key not in _LEAST and key not in _WORDS and key != "pythia-channel":
            warnings.append(ConfigWarning(number, key, "unknown key"))
            continue
        if key in first:
            message = f"stands on line {first[key]} already; the last valid value holds"
            warnings.append(ConfigWarning(number, key, message))
        first.setdefault(key, number)
        value = _value(key, _plain(match[2]))
        if value is None:
            message = f"the value is not {_expected(key)}; the line is passed over"
            warnings.append(ConfigWarning(number, key, message))
        else:
            values[key.replace("-", "_")] = value
    return Config(**values), tuple(warnings)
