"""What in and around a team directory tells that a ledger was there."""

from __future__ import annotations

import os

from ledger.locating import DATABASE
from ledger.plain import read_plain


def traces(path: str, root: str) -> list[str]:
    """What tells that a ledger was here, in words."""
    found = []
    for name in sorted(os.listdir(root)):
        if name in ("record", "seal", "counts.json") or name.startswith(("policy", "seal.")):
            found.append(f"{name} stands in the team directory")
        elif name.startswith(DATABASE + "-") or name == DATABASE + ".lock":
            found.append(f"{name} was left behind")
    for folder in dict.fromkeys((root, path, os.path.dirname(os.path.abspath(root)))):
        try:
            if DATABASE.encode() in read_plain(os.path.join(folder, ".gitignore"), 65_536):
                found.append(f".gitignore names {DATABASE}")
        except OSError:
            continue
    return list(dict.fromkeys(found))
