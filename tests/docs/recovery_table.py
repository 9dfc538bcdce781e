"""What can befall a ledger, what each command says of it, and what mends it: the docs' table.

From the page it is ``tests.docs.recovery_table`` (cog runs at the root), from the tests
``docs.recovery_table``; so it imports nothing of its own folder. The walk in
``tests/core/recovery/test_recovery_table.py`` brings each about, and holds every row to what is
said here.
"""

from typing import NamedTuple

__all__ = ["MISHAPS", "Mishap", "table"]


class Mishap(NamedTuple):
    """Something that befalls a ledger in a repository, whose record was pushed.

    ``verify``, ``doctor``, ``act`` and ``push`` are the exit code and a part of what is said:
    ``act`` of a command that acts (`tripod chat send`), ``push`` of `tripod push`. ``mends`` is the
    one command that mends it (REPLICA stands for the replica's name), and ``after`` what that says.
    ``doctor`` fails where ``verify`` does.
    """

    name: str
    what: str
    verify: tuple[int, str]
    doctor: tuple[int, str]
    act: tuple[int, str]
    push: tuple[int, str]
    mends: str
    after: str = "Restored: "


_GONE = "brings it back"
_RUINED = "`tripod restore` keeps this file"
_JOURNAL = "has no write-ahead log"
MISHAPS = (
    Mishap(
        "database gone",
        "`.git/tripod` was removed",
        (1, "no ledger.db, but there was one: refs/tripod/"),
        (1, "`tripod restore` puts this replica's own record"),
        (2, _GONE),
        (1, _GONE),
        "tripod restore",
    ),
    Mishap(
        "everything gone",
        "`.git/tripod` and `.nbs` were removed",
        (1, "no ledger.db, but there was one: refs/tripod/"),
        (1, "`tripod restore` puts this replica's own record"),
        (2, _GONE),
        (1, _GONE),
        "tripod restore",
    ),
    Mishap(
        "zero bytes",
        "the database was emptied",
        (1, "the ledger holds no entry"),
        (1, "`tripod restore` takes this replica's own record"),
        (1, "`tripod restore` puts this replica's record"),
        (3, "`tripod restore` puts this replica's record"),
        "tripod restore",
    ),
    Mishap(
        "garbage",
        "the database was written over",
        (3, _RUINED),
        (3, _RUINED),
        (1, "run `tripod verify"),
        (3, "run `tripod verify"),
        "tripod restore",
    ),
    Mishap(
        "older backup",
        "a backup was put in the database's place by hand",
        (3, _JOURNAL),
        (3, _JOURNAL),
        (1, "`tripod restore` puts the newer one back"),
        (1, "`tripod restore` puts the newer one back"),
        "tripod restore",
    ),
    Mishap(
        "older backup in use",
        "the same, and a command opened it",
        (1, "rollback: it remembers"),
        (1, "rollback: it remembers"),
        (1, "`tripod restore` puts the newer one back"),
        (1, "`tripod restore` puts the newer one back"),
        "tripod restore",
    ),
    Mishap(
        "wiped, then init",
        "`.git/tripod` was removed, and `tripod init` run: it refuses",
        (1, "no ledger.db, but there was one: refs/tripod/"),
        (1, "`tripod restore` puts this replica's own record"),
        (2, _GONE),
        (1, _GONE),
        "tripod restore",
    ),
    Mishap(
        "wiped, then init --new",
        "the same with `--new`: another ledger began, on purpose",
        (0, "checks hold over"),
        (0, "Nothing is wrong"),
        (0, "live.chat:~L"),
        (1, "origin holds records of the team"),
        "tripod restore --replica REPLICA",
    ),
    Mishap(
        "ref behind",
        "the ref of the record was put back",
        (0, "checks hold over"),
        (0, "Nothing is wrong"),
        (0, "live.chat:~L"),
        (0, "pushed"),
        "tripod seal",
        "tripod.invalid/",
    ),
    Mishap(
        "ref ahead",
        "an older database goes on, and the ref has more",
        (1, "`tripod restore` takes the longest record"),
        (1, "`tripod restore` takes the longest record"),
        (0, "live.chat:~L"),
        (1, "this replica's own record: `tripod restore`"),
        "tripod restore",
    ),
    Mishap(
        "key gone",
        "the private key is lost, the database is whole",
        (0, "checks hold over"),
        (0, "Nothing is wrong"),
        (0, "live.chat:~L"),
        (1, "`tripod restore --as-copy` goes on"),
        "tripod restore --as-copy",
        "It goes on as ",
    ),
    Mishap(
        "copied disk",
        "two copies of one replica went on, and one fetched the other's record",
        (1, "fork: it remembers root"),
        (1, "fork: it remembers root"),
        (0, "live.chat:~L"),
        (1, "two copies of one disk both went on"),
        "tripod restore --as-copy",
        "It goes on as ",
    ),
    Mishap(
        "disk full while joining",
        "a clone joined, and the disk was full in its first merge, before the chat came",
        (0, "checks hold over"),
        (0, "Nothing is wrong"),
        (2, "no chat live"),
        (0, "pushed"),
        "tripod init",
        "Merged ",
    ),
    Mishap(
        "disk full while pulling",
        "the disk was full in the middle of what a pull merged",
        (0, "checks hold over"),
        (0, "Nothing is wrong"),
        (0, "live.chat:~L"),
        (0, "pushed"),
        "tripod pull",
        "pulled ",
    ),
)


def table() -> str:
    """The table as Markdown."""
    head = (
        "what happened",
        "`tripod verify`",
        "`tripod doctor`",
        "a command that acts",
        "`tripod push`",
    )
    lines = [f"| {' | '.join((*head, 'what mends it'))} |", "|---|---|---|---|---|---|"]
    for row in MISHAPS:
        said = (
            f"{code}: {text}{'`' * (text.count('`') % 2)}"
            for code, text in (row.verify, row.doctor, row.act, row.push)
        )
        lines.append(f"| **{row.name}**: {row.what} | {' | '.join(said)} | `{row.mends}` |")
    return "\n".join(lines)
