"""Adds the decisions of Nova runs to the ``decisions.md`` of their work effort, beside the team.

That file is the project's: it lies in git, branches have it in several states, and people write in
it. So it is no projection, which we would write over: a section is added once, between two lines
that name the entry it is of, and ``verify`` holds it against the ledger.

Source: spec nova N8.
"""

from __future__ import annotations

import os
import re
import stat
import time
from errno import EAGAIN, EFBIG, ELOOP

from tripod.errors import BadArgumentError, NotFoundError
from tripod.ledger.files import lock_open_file
from tripod.ledger.kinds.nova import WORK_EFFORT
from tripod.projections.layout import LOG_FILE
from tripod.projections.nova.files import stand_of_section
from tripod.projections.nova.tables import WORK_EFFORTS, work_effort_section_of
from tripod.team.team import Team

_MOMENT_S = 0.02
_PATIENCE_S = 2.0  # what another program may hold the file's lock


def find_work_effort(team: Team, words: str) -> str:
    """The name of a work effort, from that or from the path of its folder in the project.

    Raises:
        BadArgumentError: that is no name of one.
        NotFoundError: its folder is not there.
    """
    name = os.path.normpath(words).removeprefix(f"{WORK_EFFORTS}/")
    if re.fullmatch(WORK_EFFORT, name) is None:
        raise BadArgumentError(
            f"work effort: {words:.120} is no name of a folder in {WORK_EFFORTS}/, such as "
            "WE-261128-ab12 (letters, digits, . _ -)"
        )
    folder = f"{WORK_EFFORTS}/{name}"
    if team.disk.odd(folder) != "a folder" or any(
        map(os.path.islink, team.disk.places.links(folder))
    ):
        there = ", ".join(one for one in team.disk.names(WORK_EFFORTS) if one.startswith("WE-"))
        raise NotFoundError(
            f"work effort: there is no folder {os.path.normpath(team.disk.full(folder))} (a "
            f"symbolic link does not count); {f'there are {there:.300}' if there else 'make it'}"
        )
    return name


def add_to_work_effort(team: Team, name: str) -> None:
    """Add the decision of a run that is over to its work effort, if it is not there yet.

    What others wrote stays. What cannot be added is a warning: the record has it, and ``resume``
    tries again.
    """
    found = work_effort_section_of(team.source, name)
    if found is None:
        return
    path, section = found
    full = os.path.normpath(team.disk.full(path))
    again = f"`tripod nova resume {name}` tries again"
    try:
        team.disk.check_way(path.rpartition("/")[0])
        with os.fdopen(_open_decisions(full), "r+b", buffering=0) as file:
            until = time.monotonic() + _PATIENCE_S
            while not lock_open_file(file.fileno()):
                if time.monotonic() > until:
                    raise BlockingIOError(EAGAIN, "another program holds its lock", full)
                time.sleep(_MOMENT_S)
            have = file.read()
            place = stand_of_section(have, section)
            if place == "edited":
                team.warnings.append(
                    f"{full}: the section of {name} is not what the ledger gives, and "
                    f"stays as it is; take it out, and {again}"
                )
            elif place != "there":
                file.write(_missing_part(have, section))
                os.fsync(file.fileno())
    except OSError as error:
        is_link = error.errno == ELOOP
        why = "a symbolic link stands there, or above it" if is_link else error.strerror
        team.warnings.append(f"{full}: the decision is not added: {why}; {again}")


def _open_decisions(path: str) -> int:
    """Open the decisions of a work effort, made where they are not there, to be read and added to.

    Raises OSError where something else stands there, or far too much.
    """
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    fd = os.open(path, flags, 0o644)  # a named pipe is open at once
    found = os.fstat(fd)
    if stat.S_ISREG(found.st_mode) and found.st_size <= LOG_FILE.limit:
        return fd
    os.close(fd)
    is_file = stat.S_ISREG(found.st_mode)
    what = f"it has more than {LOG_FILE.limit} bytes" if is_file else "no regular file stands there"
    raise OSError(EFBIG, what, path)


def _missing_part(have: bytes, section: bytes) -> bytes:
    """What is to be added behind the bytes of a file so that it holds a section."""
    cut = next((n for n in range(len(section), 0, -1) if have.endswith(section[:n])), 0)
    if cut > section.index(b"\n"):
        return section[cut:]
    gap = b"" if not have else b"\n" if have.endswith(b"\n") else b"\n\n"
    return gap + section
