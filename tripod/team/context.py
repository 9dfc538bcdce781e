"""A team directory that is open: its ledger and its files. ``Team`` acts on it.

What needs no more than that, the trust commands first of all, takes a ``Context`` and stands below
``tripod.team.team``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tripod.ledger.entry import Draft, Entry
from tripod.ledger.locator import DATABASE
from tripod.ledger.sqlite.store import SQLiteStore
from tripod.projections.disk import Disk
from tripod.projections.engine import fold_into, source_of
from tripod.projections.projection import Source
from tripod.team.files import Files


class Context:
    """The ledger and the files of one team directory, and the warnings for the command's end.

    ``queue`` is the queue that acts on events work on: '' the team's own, else ``<name>/``.
    """

    def __init__(self, root: str, *, create: bool = False) -> None:
        """Open the ledger in the team directory ``root``.

        Raises:
            LedgerError: it is not there, damaged, or cannot be written.
        """
        self.root = root
        self.store = SQLiteStore(f"{root}/{DATABASE}", fold=fold_into, create=create)
        self.disk = Disk(root)
        self.source: Source = source_of(self.store.db)
        self.files = Files(self.disk, self.store, self.source)
        self.warnings: list[str] = []
        self.queue = ""

    def append_apart(self, make: Callable[[], Sequence[Draft]]) -> list[Entry]:
        """Append what changes no file, without a look at any of them.

        ``make`` gives the drafts; it is called in the writer's place, where the ledger's head is
        the committed one.
        """
        with self.store.transaction() as transaction:
            size = transaction.size
            entries = transaction.append(make())
            if entries:
                transaction.tables.execute("UPDATE head SET files = size WHERE files = ?", (size,))
        return entries
