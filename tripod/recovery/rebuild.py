"""After a crash, a bad edit or a lost disk: make every table and file what the ledger says.

``rebuild`` goes through the same fold and the same renders as daily work. What stood in a file's
place is kept as a blob first. ``past`` shows any projection as of any entry.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice

from tripod.errors import BadArgumentError, NotFoundError, RefusedError, UnwritableError
from tripod.ledger.sqlite.repair import walk
from tripod.projections import (
    BUS,
    PROJECTIONS,
    UNMERGED,
    Conflict,
    Difference,
    Disk,
    File,
    Source,
    UnreadableError,
    batches,
    create_tables,
    differences,
    fold_into,
    source_of,
    text,
)
from tripod.projections.unheld import told, unheld
from tripod.recovery.repair import RENEWING, remove
from tripod.team.act import Act
from tripod.team.team import Team

MAX_REASON = 500  # characters
MAX_READ = 2**30


@dataclass(frozen=True)
class Rebuilt:
    """Paths that were written, and how many of them had held other bytes (kept in the ledger).

    ``triggers`` are those of the database that were missing or altered, and were put back.
    ``kept`` is where a database with damaged pages is kept, '' where it was whole.
    """

    written: list[str]
    displaced: int
    triggers: list[str] = field(default_factory=list)
    kept: str = ""


def rebuild(team: Team, *, evidence: bool = False, discard: str | None = None) -> Rebuilt:
    """Fold all tables anew, put lost triggers back, and write every projected file that differs.

    Args:
        team: the team.
        evidence: also give back kept logs whose files are gone or changed.
        discard: why decisions, messages and events that the files show and no entry holds may go
            from the files; they are kept in the ledger, and ``verify`` goes on to name them.

    Raises:
        BadArgumentError: the reason breaks its rule.
        RefusedError: a file's bytes cannot be kept, or hold such pieces and no reason is given;
            nothing was written.
        UnwritableError: the disk refuses.
    """
    check_reason(discard)
    kept = 0
    with team.act(full=True, anew=True) as act:
        remove(f"{team.store.path}.{RENEWING}")  # of one who was killed after its last step
        walk(team.store.db)
        paths: set[str] = set()
        others: list[
            str
        ] = []  # kept once the list is whole: appending changes what it is read from
        agreed = team.files.agreed
        for difference in differences(
            team.source, team.disk, evidence=evidence, agreed=agreed.keys()
        ):
            paths.add(difference.path)
            if _holds_others(team, act, difference):
                others.append(difference.path)
        paths |= {c.path for c in act.conflicts.values() if _is_ours(team, c)}
        why = dict.fromkeys(others, "differed from the ledger when it was rebuilt")
        for path in sorted(paths & act.conflicts.keys() - why.keys()):
            why[path] = act.conflicts[path].detail
        if act.look.ahead:
            strays = list(strangers(team.source, team.disk))
            why |= dict.fromkeys(strays, "the ledger holds no such event")
            paths.update(strays)
        # Half of a merge is refused in any case, by `displace`.
        stakes = why.keys() - team.files.unmerged.keys()
        lost = at_stake(team.source, team.disk, sorted(stakes))
        if lost and discard is None:
            raise RefusedError(refusal(lost, "rebuild"))
        for path, reason in why.items():
            # Of the pieces only the number: a later redaction of their texts would miss it here.
            count = len(lost.get(path, ()))
            said = f"; with {count} pieces that no entry holds, discarded: {discard}"
            kept += act.displace(path, reason + said if count else reason)
        act.rewrite |= paths
        if not act.conflicts:
            team.warnings.clear()
    if team.files.failed:
        path, problem = next(iter(team.files.failed.items()))
        raise UnwritableError(
            f"{path}: {problem}; {len(team.files.failed)} files could not be written"
        )
    return Rebuilt(sorted(paths), kept, act.look.triggers)


def _holds_others(team: Team, act: Act, difference: Difference) -> bool:
    """Whether a file that differs holds more than what we had written there ourselves before."""
    path, have = difference.path, difference.have
    if have is None or have == difference.want.data:
        return False
    return path in act.conflicts or not team.files.is_accounted(path, sha256(have).hexdigest())


def check_reason(discard: str | None) -> None:
    """Raise BadArgumentError where a reason to discard breaks its rule."""
    problem = None if discard is None else text.line_problem(discard, "--discard", MAX_REASON)
    if problem is not None:
        raise BadArgumentError(problem)


def at_stake(source: Source, disk: Disk, paths: Iterable[str]) -> dict[str, list[str]]:
    """The pieces that no entry holds in those of the files that have any, by path."""
    found = {}
    for path in paths:
        try:
            data = disk.read(path, MAX_READ)
        except UnreadableError:
            continue  # it is not written over: it cannot be kept
        pieces = [] if data is None else unheld(source, path, data)
        if pieces:
            found[path] = pieces
    return found


def refusal(lost: Mapping[str, list[str]], command: str) -> str:
    """Why files are not written that show what no entry holds."""
    count = sum(map(len, lost.values()))
    shown = "; ".join(f"{path}: {told(pieces)}" for path, pieces in lost.items())
    return (
        f"the files show {count} piece{'' if count == 1 else 's'} that no entry of this ledger "
        f"holds, and `{command}` would remove them: {shown}. Nothing was written. Put back the "
        f"ledger that holds them; or `tripod {command} --discard REASON` removes them from the "
        "files, keeps their bytes in the ledger, and `tripod verify` names them from then on"
    )


def strangers(source: Source, disk: Disk) -> Iterator[str]:
    """Event files that a rolled-back ledger does not know: they came after it, so they go."""
    known = set(BUS.paths(source))
    for folder in disk.places.queue_folders():
        for name in disk.names(folder):
            path = f"{folder}/{name}"
            if name.endswith(".event") and path not in known:
                yield path


def _is_ours(team: Team, conflict: Conflict) -> bool:
    """Whether a file that contradicts the ledger stands where only a projection of ours may.

    What could not even be read, or is half of a merge, was never taken in.
    """
    path = conflict.path
    return (
        conflict.what not in ("unreadable", UNMERGED)
        and path.endswith(".event")
        and team.disk.is_file(path)
    )


@contextmanager
def past(team: Team, seq: int | None) -> Iterator[Source]:
    """Tables as of entry ``seq`` (None: now), to render from for the length of a ``with``.

    Raises:
        BadArgumentError: the ledger has no such entry.
    """
    if seq is None:
        yield team.source
        return
    size = team.store.head().size
    if not 0 <= seq < size:
        raise BadArgumentError(f"--at {seq}: the ledger has entries 0 to {size - 1}")
    with closing(sqlite3.connect("", isolation_level=None)) as scratch:
        scratch.execute("BEGIN")
        create_tables(scratch)
        for batch in batches(islice(team.store.read(), seq + 1), 1000):
            fold_into(scratch, batch)
        yield source_of(team.store)._replace(db=scratch)


def rendered(source: Source, name: str) -> list[tuple[str, File]]:
    """Every file of one projection, as (path, file).

    Raises:
        NotFoundError: there is no projection of that name.
    """
    chosen = [projection for projection in PROJECTIONS if projection.name == name]
    if chosen:
        files = ((path, one.render(source, path)) for one in chosen for path in one.paths(source))
        return [(path, file) for path, file in files if file is not None]
    names = ", ".join(dict.fromkeys(projection.name for projection in PROJECTIONS))
    raise NotFoundError(f"no projection {name!r}; there are {names}")
