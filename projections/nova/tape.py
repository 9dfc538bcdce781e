"""The form of a tape: what was answered to each prompt of one turn. Pure.

The player (``tripod.nova.cassette``) reads it where nothing else of tripod is there.
"""

import json
from collections.abc import Mapping


def format_tape(answers: Mapping[str, tuple[int, str]]) -> str:
    """A tape of answers, by the SHA-256 of each prompt in hex: exit code and text.

    >>> format_tape({"e3b0c442": (0, "Tea")})
    '{"e3b0c442": [0, "Tea"]}'
    """
    return json.dumps(answers)
