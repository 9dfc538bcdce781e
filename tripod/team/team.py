"""A team directory at work: its ledger, its tables and its files, kept in step.

``Team.act`` is the one way in which anything is done:

1. take the writer's lock and begin the transaction (``tripod.ledger.sqlite.store`` has the order
   of durability in words), and then the original tools' locks of the files that it will write;
2. take in what other programs wrote to the files since, as observed entries: nothing is written
   over that is not in the ledger. What contradicts the ledger is named, and files that vanished
   are written again;
3. the caller decides, over tables that stand at the head, and appends;
4. COMMIT: from here the entries are the truth;
5. write the files that the entries changed (``tripod.team.files``), still under the lock. If
   we die here, or the disk refuses, the cursor ``head.files`` stays behind and the next command
   does it by this same code. Where another program wrote to such a file since step 2, the file is
   left alone, and we begin again at step 1 to take that in;
6. where the team has a key, and a seal is due, the head as it is now is sealed
   (``tripod.trust.seal``). If we die here, the next act does it.

Acts that are done while one is open join it: ``with team.act():`` around a hundred messages makes
one transaction of them, whose files are written once.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from errno import EDEADLK
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Self

from tripod.errors import LedgerDamagedError, NoTeamError, RefusedError, UnwritableError
from tripod.ledger import DATABASE, PLACE_IDS, REDACTED, Draft, Entry, Head
from tripod.ledger.ids import format_at, now_us
from tripod.ledger.locator import (
    FOLDER,
    LEDGER,
    advice_to_begin,
    closed_place_problem,
    database_of,
    has_ledger,
    is_ledger_folder,
    is_only_stored_to,
    named,
    nearest_team,
    team_of,
    unseen_repository_problem,
    work_tree_around,
)
from tripod.ledger.sqlite.reader import read_sound_entries
from tripod.ledger.sqlite.store import ReadOnlyStore
from tripod.projections import (
    BUS,
    CHAT,
    DiskPlaces,
    Looked,
    agreed_chats,
    files_are_quiet,
    manifest,
    recorded,
    refold,
    source_of,
    tables_current,
)
from tripod.team.act import Act, ActContext, digest_of
from tripod.team.files import Files, has_foreign_file_lock, ignore_files, is_live_log_file
from tripod.team.intake import name_pending, refuse_if_ahead, renew_older_positions, take_in

if TYPE_CHECKING:
    from tripod.ledger.sqlite.store import SQLiteTransaction
    from tripod.trust.signature import Signing


MOST_UNSYNCED = 1000
"""Entries whose files nobody waited for: then the disk is, once for all of them."""
FUTURE_US = 300 * 1_000_000  # how far ahead of the clock an entry may be before it is told
MAX_TRIES = 5  # how often we begin again because others write the same file
PAUSES = (0, 0.001, 0.004, 0.016)
"""Seconds before each try to lock a file that another program writes, in the writer's place."""
MOST_MOMENTS = 3
"""How often such a file is waited for and given back before the lock is kept while queueing."""


class _FileIsLockedError(Exception):
    """Another program keeps its lock on a file that an act is to write."""


def find_team(given: str | os.PathLike[str] | None, start: str | None = None) -> str:
    """The team directory to work on, which has a ledger (see ``tripod.ledger.locator``).

    ``given`` is the project's folder (``cafe``) or its team directory (``cafe/.nbs``). Without it
    one is looked for from ``start``, or the current folder. Raises NoTeamError where none is found.
    """
    if given is not None:
        begin = os.path.abspath(given)
        found = team_of(begin)
        problem = f"no ledger in {begin}: `tripod init {os.fspath(given)}` makes one"
    elif (found := named()) is not None:
        problem = f"no ledger in {found}, which {LEDGER} names: name another team directory there"
    else:
        begin = os.path.abspath(start or os.getcwd())
        found = nearest_team(begin)
        next_ = advice_to_begin(begin) or "`tripod init` makes one"
        problem = f"no {FOLDER} here or above {begin}: {next_}"
        if found is not None:
            problem = f"no ledger in {found}: `tripod init {os.path.dirname(found)}` makes one"
    if found is None or not has_ledger(found):
        closed = closed_place_problem(found or os.fspath(given or start or os.getcwd()))
        lost = None if closed else lost_problem(found or start or os.getcwd())
        raise NoTeamError(closed or lost or problem)
    return found


def lost_problem(path: str) -> str | None:
    """What to do where a ledger is lost, or its repository; None: nothing is known of one."""
    tree = work_tree_around(os.path.abspath(path))
    if tree is None:
        problem = unseen_repository_problem(os.path.abspath(path))
        return problem and f"no ledger is found in {path}: {problem}"
    from tripod.verify.peers.refs import named_replicas

    refs = named_replicas(f"{tree.home or tree.top}/{FOLDER}")
    own = next((ref for ref in refs if not ref.startswith("refs/tripod-remotes/")), None)
    if own is not None and not is_only_stored_to(tree.common):
        return (
            f"the ledger of {tree.home or tree.top} is gone, and {own} holds its record: `tripod "
            "restore` brings it back"
        )
    if refs:
        return (
            f"no ledger in {tree.home or tree.top}, and the repository holds records of a team "
            f"({refs[0]}): `tripod init` joins it"
        )
    return None


def open_team(path: str | os.PathLike[str] | None = None) -> Team:
    """Open a team as every command finds it; close it, or use it in a ``with``.

    Args:
        path: the project's folder or its team directory. None: the one that the variable
            ``TRIPOD_LEDGER`` names, else the nearest ``.nbs`` in the current folder or above.

    Raises:
        NoTeamError: there is no team directory, or no ledger in it.
        LedgerError: the ledger is damaged, or cannot be written.
    """
    return Team(find_team(path))


class Team(ActContext):
    """One team directory, opened for work: ``with Team("cafe") as team: ...``.

    A team belongs to the thread that opened it. Any number of processes may have the same team
    open; each act waits until the one before it is done.

    Attributes:
        root: the path of the team directory.
        warnings: what a person should know of the acts so far, one sentence each.
        queue: the queue that acts on events work on: ``""`` the team's own, else ``"<name>/"``.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, create: bool = False, read_only: bool = False
    ) -> None:
        """Open the ledger of a team.

        Args:
            path: the project's folder (``cafe``), or its team directory (``cafe/.nbs``).
            create: begin an empty ledger in the team directory ``path``; ``tripod.init`` does so.
            read_only: change no byte of the team, and refuse each act.

        Raises:
            NoTeamError: ``path`` holds no team directory, or one without a ledger.
            LedgerError: the ledger is not there, is damaged, or cannot be written.
        """
        given = os.fspath(path)
        # A ledger of an earlier version may stand in a folder that holds a .nbs by now as well.
        is_root = (
            create or os.path.basename(os.path.abspath(given)) == FOLDER or is_ledger_folder(given)
        )
        root = given if is_root else find_team(given)
        super().__init__(root, create=create, read_only=read_only)
        try:
            self.settle_places()
            if read_only:
                self._fold_apart()
        except BaseException:
            self.store.close()
            raise
        self.files = Files(self.disk, self.source)
        self.healed = 0
        self._signs: Signing | None = None
        self._open: Act | None = None
        self._folded = -1  # the schema's cookie when the tables were found to be there

    def close(self) -> None:
        """Close the ledger."""
        self.store.close()

    @property
    def is_read_only(self) -> bool:
        """Whether no byte of the team is changed, and each act is refused."""
        return isinstance(self.store, ReadOnlyStore)

    def _fold_apart(self) -> None:
        """Where the tables are those of an earlier version, fold others, in a copy in memory."""
        store = self.store
        if isinstance(store, ReadOnlyStore) and store.size and not tables_current(store):
            store.work_on_copy(lambda copy: refold(copy, copy.read()))
            self.source = source_of(store)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def head(self) -> Head:
        """How many entries the ledger holds, and the root of their Merkle tree (32 bytes).

        Raises:
            LedgerDamagedError: the database cannot be read as a ledger.
        """
        return self.store.head()

    def entries(self, start: int = 0, stop: int | None = None) -> Iterator[Entry]:
        """The entries of the ledger in order, from number ``start`` up to before ``stop``.

        Args:
            start: the number of the first entry, from 0.
            stop: the number after the last entry; None: up to the ledger's end as it is now.

        Raises:
            LedgerDamagedError: an entry cannot be read.
        """
        return self.store.read(start, stop)

    @property
    def scribe(self) -> str | None:
        """The handle that logs decisions; None before the tables are folded."""
        with suppress(sqlite3.OperationalError):
            row = self.store.db.execute("SELECT scribe FROM team").fetchone()
            return row and str(row[0])
        return None

    def settle_places(self) -> None:
        """Look for events and chats where the ledger's entries say that they are."""
        try:
            self.disk.places = DiskPlaces(self.root, recorded(self.store))
        except ValueError as error:
            raise LedgerDamagedError(
                f"{database_of(self.root)}: {error}; `tripod verify` says what else is wrong"
            ) from error

    def _are_more_places(self) -> bool:
        """Whether another process added a folder since we looked."""
        return self.store.count_by_id(*PLACE_IDS) != len(self.disk.places.added)

    def _check_places(self) -> None:
        """A folder elsewhere that is gone may be a disk that is not there: it is not made anew."""
        for front, full in self.disk.places.absent().items():
            what = {BUS.folder: "events", CHAT.folder: "chats"}.get(front.partition("/")[0], "logs")
            cure = "Put it back; or, if it is lost, `tripod rebuild` writes it anew"
            if "/" not in front:
                raise NoTeamError(
                    f"the team keeps its {what} in {full}, and no folder is there (a symbolic link "
                    f"does not count); nothing was recorded. {cure}"
                )
            self.warnings.append(  # the work in the other folders goes on
                f"the team keeps {what} in {full}, and no folder is there: what is in it is "
                f"left as the ledger has it. {cure}"
            )

    @contextmanager
    def act(
        self,
        *,
        locks: Iterable[str] = (),
        full: bool = False,
        anew: bool = False,
        hasty: bool = False,
        joins: bool = False,
        opened: Sequence[Draft] = (),
        by: str | None = None,
        seals: bool = True,
        beyond: str = "",
    ) -> Iterator[Act]:
        """Do something: see the module. All that is appended within is one transaction.

        An act that is done while another one of this team is open joins that one: it gets the
        same ``Act``, and is recorded with it or not at all. Others wait meanwhile.

        Args:
            locks: files whose original tools' lock is to be held meanwhile.
            full: also take in evidence, read positions and what is unknown.
            anew: fold all tables again first, and trust no file unread.
            hasty: do not count a full queue for what came in the very tick of our last write.
            joins: it may join an act that is open: it does nothing but append, and what it
                leaves to be done after the commit.
            opened: the first entries, for a ledger that has none yet.
            beyond: why what the files show beyond a ledger that was rolled back is taken in;
                '' where that is refused.
            by: who acts. Their key, if they have one, is fetched before others have to wait.
            seals: seal after it where a seal is due; else an act that follows at once does.

        Raises:
            NoTeamError: the ledger holds no entry, and none are ``opened``.
            RefusedError: who acts has a key, and it cannot be used here; or this act cannot join
                the one that is open; or one that joined failed half way. Nothing was recorded.
            UnwritableError: the disk refuses; nothing was recorded.
        """
        if self._open is not None:
            with self._joined(self._open, by, joins=joins) as act:
                yield act
            return
        signing = self._signing() if by else None
        if signing is not None and by is not None:
            signing.fetch(by)
        with self._once(
            locks=locks, full=full, anew=anew, hasty=hasty, opened=opened, beyond=beyond
        ) as act:
            self._open = act
            try:
                yield act
            finally:
                self._open = None
            if act.is_broken:
                raise RefusedError(
                    "an act that was a part of this one failed half way, so nothing was recorded"
                )
        if full:  # who asked for that may wait: the database's file is whole without its log then
            self.store.kept_log = 0
        self._conclude(act, seals=seals)

    def _conclude(self, act: Act, *, seals: bool) -> None:
        """After an act: files that others wrote meanwhile, a seal that is due, erased bodies."""
        for _ in range(MAX_TRIES):
            if not self.files.late:
                break
            late = list(self.files.late)
            with self._once(locks=late, late=late):
                pass
        for remark in self.files.remarks(full=act.look.full):
            act.warn(remark)
        if seals and self.store.db.execute("SELECT 1 FROM keys LIMIT 1").fetchone():
            from tripod.trust.schedule import seal_due

            due = seal_due(self, act.entries)
            if due is not None:
                from tripod.trust.seal import seal_after_act

                seal_after_act(self, *due, act.entries)
        if self.store.unswept() and not self.files.failed and not self.files.late:
            from tripod.trust.export import redact_exports

            erased = REDACTED in act.entries.kinds
            self.warnings += redact_exports(self.store, self.root, patient=erased)

    @contextmanager
    def _joined(self, act: Act, by: str | None, *, joins: bool) -> Iterator[Act]:
        """A part of an act that is open; the files that it names are locked when written."""
        if not joins:
            raise RefusedError("an act is open, and this one cannot be a part of it: end it first")
        if act.sign is not None and self._signs is not None and by is not None:
            self._signs.fetch(by)
        act.parts += 1
        act.now_us = max(act.now_us, time.time_ns() // 1000)
        before = act.extent()
        try:
            yield act
        except BaseException:
            # Refused before it did anything, it harms nothing. Half of an act is never recorded.
            act.is_broken = act.is_broken or act.extent() != before
            raise

    def _signing(self) -> Signing | None:
        """What signs for actors, if any actor of this ledger ever had a key."""
        with suppress(sqlite3.OperationalError):  # an older version's tables: about to be folded
            if self.store.db.execute("SELECT 1 FROM actors LIMIT 1").fetchone():
                from tripod.trust.signature import Signing

                self._signs = self._signs or Signing(self.store)
                return self._signs
        return None

    @contextmanager
    def _once(
        self,
        *,
        locks: Iterable[str],
        full: bool = False,
        anew: bool = False,
        hasty: bool = False,
        opened: Sequence[Draft] = (),
        late: Sequence[str] = (),
        beyond: str = "",
    ) -> Iterator[Act]:
        """Steps 1 to 5, once; ``late`` are files that another program wrote in the time before."""
        act: Act
        names = [path for path in sorted(locks) if has_foreign_file_lock(path)]
        write = lambda: self._write_files(act, again=bool(late))  # noqa: E731
        with (
            ExitStack() as held,
            self._transaction(names, write, mends=anew) as transaction,
        ):
            is_weak = self.files.is_weak  # of the file system, so it stays true
            self.files = Files(self.disk, self.source, names)
            self.files.is_weak = is_weak
            act = Act(self, self.files, transaction, full=full)
            act.look.beyond = beyond
            self._begin(act, anew=anew, hasty=hasty, late=late, opened=opened)
            try:
                yield act
                renew_older_positions(act, act.renew_older_states())
                act.refuse_blocked()
                act.keep_displaced()
            except BaseException:
                self.files.moves.give_back()
                raise
            held.push(lambda kind, *_: self._settle_takes(act) if kind else None)

    @contextmanager
    def _transaction(
        self, names: Sequence[str], after: Callable[[], None], *, mends: bool
    ) -> Iterator[SQLiteTransaction]:
        """The writer's place and, while we have it, the original tools' locks of some files.

        Who waits for the place holds no such lock: else another program that adds to a chat would
        wait for all writers before us. Who has the place waits for no such lock longer than a
        moment: one that its holder keeps is waited for outside, and then all is begun again. Where
        other programs lock a file all the time, a moment may never find it free: then we keep the
        lock that we waited for, and take the place with it. Nobody in the place waits for us.
        """
        with ExitStack() as locks:
            for tries in count(1):
                with (
                    suppress(_FileIsLockedError),
                    self.store.transaction(after=after, mends=mends) as transaction,
                ):
                    for path in names:
                        self._lock_file(path, locks)
                    yield transaction
                    return
                locks.close()
                with suppress(_FileIsLockedError):
                    for path in names:
                        self._lock_file(path, locks, wait=True)
                if tries < MOST_MOMENTS:
                    locks.close()

    def _lock_file(self, path: str, locks: ExitStack, *, wait: bool = False) -> None:
        """Lock a file as the original tools do; _FileIsLockedError: another program has the lock.

        Where there is no folder, those tools cannot be at work in it.
        """
        if self.disk.stat(path.rpartition("/")[0]) is None:
            return
        try:
            for pause in PAUSES:
                time.sleep(pause)
                with ExitStack() as lock:
                    if lock.enter_context(self.disk.foreign_lock(path, wait=wait)):
                        locks.push(lock.pop_all())
                        return
        except OSError as error:
            if error.errno != EDEADLK:  # else we have one that its holder waits for: give it back
                raise UnwritableError(
                    f"{self.disk.full(path)}.lock: {error.strerror}; nothing was recorded"
                ) from error
        raise _FileIsLockedError(path)

    def _settle_takes(self, act: Act) -> None:
        """Where a COMMIT failed, events that were taken go back to the queue."""
        if self.files.moves.taken and act.entries.size:
            with suppress(sqlite3.Error):  # nobody knows: then the next command finds them moved
                if self.store.seq_of(act.entries.newest_id) is None:
                    self.files.moves.give_back()

    def refresh(self) -> None:
        """Take in what is new on disk, if anything is; for commands that only read."""
        if self._open is not None:
            return  # it took in what there was as it began
        if self.is_read_only:
            self.warnings += name_pending(self.store, self.source, self.disk)
            return
        db = self.store.db
        now = time.time_ns()
        looked = Looked()
        if self._are_more_places():
            self.settle_places()
        folded = tables_current(self.store)
        known = manifest.NotedFiles(db, self.disk)
        if not folded or self._files_behind() or not files_are_quiet(db, self.disk, known, looked):
            try:
                with self.act():
                    pass
            except UnwritableError as error:
                if not folded:
                    self.store.close()
                    self.store = ReadOnlyStore(self.store.path)
                    self.source = source_of(self.store)
                    self._fold_apart()
                text = f"{error}; what other programs wrote meanwhile is not shown"
                self.warnings.append(text)
            return
        settled = manifest.settle(looked.agreed, now)
        if settled:
            # Where it cannot be written: it only saves the next command a look.
            with suppress(sqlite3.OperationalError), self.store.derived() as tables:
                manifest.save_manifest(tables, settled)

    def _begin(
        self, act: Act, *, anew: bool, hasty: bool, late: Sequence[str], opened: Sequence[Draft]
    ) -> None:
        """Steps 1 and 2, under the writer's lock."""
        transaction = act.transaction
        if transaction.size == 0 and opened:
            refold(transaction, ())
            act.append(opened)
        if opened or self._are_more_places():
            self.settle_places()
        if transaction.size == 0:
            raise NoTeamError(f"{database_of(self.root)} holds no entry: `tripod init` begins it")
        if not anew:
            self._check_places()
        if transaction.at > format_at(now_us() + FUTURE_US):
            self.warnings.append(
                f"the newest entry is dated {transaction.at}, in this host's future: entries are "
                "never dated back, so new ones get that time until the clock is there"
            )
        if anew:
            from tripod.ledger.sqlite.schema import put_triggers_back

            act.look.triggers = put_triggers_back(transaction.tables)
        if anew or not self._are_tables_current(transaction, opened=bool(opened)):
            for path, noted in manifest.load_any_manifest(transaction.tables).items():
                self.files.account(path, noted.digest)
            entries = self.store.read()
            refold(transaction, read_sound_entries(entries) if anew else entries)
        signing = self._signing()
        act.sign = None if signing is None else signing.sign
        act.look.head_beyond = partial(self._head_beyond, act)
        if self._are_files_gone():
            act.look.emptied = True
            act.warn(f"{self.root} was gone (`git clean`?): its files are written again")
            ignore_files(self)
        act.look.ahead = refuse_if_ahead(act, anew=anew)
        if act.look.beyond:  # asked before anything is appended that makes up for the number
            act.look.ahead = act.look.ahead or self._head_beyond(act) is not None
        elif act.look.ahead:
            return
        behind = act.look.full or anew or late or self._files_behind()
        if not behind:
            looked = Looked(hasty=hasty)
            if files_are_quiet(self.store.db, self.disk, self.files.known, looked):
                self.files.looked = looked
                return
        if anew:  # all chats are compared once, for the intake and for who compares after it
            self.files.agreed = agreed_chats(self.source, self.disk)
        take_in(act)
        if act.rewrite:
            ignore_files(self)  # a checkout that takes tracked files away takes it along
        for stream in act.entries.chats:
            self.files.agreed.pop(CHAT.live(stream), None)
        for path in late:  # the intake has looked at them now
            if path not in self.files.unmerged:
                act.rewrite.add(path)
                if not self.files.is_ours(path, digest_of(self.disk, path)):
                    act.displace(path, "another program wrote it while we did")

    def _are_tables_current(self, transaction: SQLiteTransaction, *, opened: bool) -> bool:
        """What ``tables_current`` says; as long as the schema stays, the tables are there.

        ``opened``: this transaction made them, and may still be rolled back.
        """
        if self.store.schema == self._folded and not opened:
            cursors = transaction.cursors()
            return cursors.tables == cursors.size
        current = tables_current(transaction)
        self._folded = self.store.schema if current and not opened else -1
        return current

    @property
    def _gone_mark(self) -> str:
        return f"{self.store.path}.emptied"

    def _are_files_gone(self) -> bool:
        """Whether all files were gone, and are not all written again yet.

        A file marks that until then: an act that is refused or killed leaves some of the files, and
        nobody removed the others. Where the ledger lies among the files none does: it would be gone
        as well, and a program that may remove a file could excuse that by the mark.
        """
        mark = self._gone_mark
        if os.path.abspath(os.path.dirname(mark)) == os.path.abspath(self.root):
            return False
        if not os.path.isdir(self.root):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with suppress(OSError):
                os.close(os.open(mark, flags, 0o666))
            return True
        return os.path.isfile(mark) and not os.path.islink(mark)

    def _head_beyond(self, act: Act) -> str | None:
        """A head of this ledger that is remembered, and that the ledger does not reach."""
        if self.store.db.execute("SELECT 1 FROM keys LIMIT 1").fetchone() is None:
            return None  # nothing was ever sealed
        from tripod.trust.seal import head_beyond

        found = head_beyond(act.transaction, self.disk, git=act.look.full)
        if found is None:
            return None
        size = act.transaction.size
        return f"{found.where} tells of {found.size} entries of this ledger, and it holds {size}"

    def _sync(self, act: Act) -> bool:
        """Wait until the disk has the files of all entries; False where it refuses."""
        try:
            self.disk.sync()
        except OSError as error:
            act.warn(f"{self.root}: recorded, but the disk did not take all files: {error}")
            return False
        return True

    def _files_behind(self) -> bool:
        cursors = self.store.cursors()
        return cursors.files < cursors.size

    def _write_files(self, act: Act, *, again: bool = False) -> None:
        """Step 5: make the files show every entry of the ledger (``again``: the same act's)."""
        cursors = self.store.cursors()
        size, files = cursors.size, cursors.files
        first_new = act.entries.first
        behind = self.store.read(files, first_new) if files < first_new else iter(())
        healed = 0

        def entries() -> Iterator[Entry]:
            nonlocal healed
            for entry in behind:
                told = entry.seq >= cursors.noted and not again  # the others were there, once
                healed += told and "observed" not in entry.data
                yield entry
            yield from act.entries.to_be_written()

        self.files.source = act.entries.at_hand(self.source)
        self.files.apart = set(act.rewrite)
        # Also what others did is shown in the files that are ours alone.
        act.rewrite.update(path for path in act.entries.own if not act.is_older(path))
        late = files < first_new
        self.files.project(entries(), act.rewrite, grows=not late, behind=late or act.parts > 1)
        for work in act.later.values():
            work()
        self.files.source = self.source  # who stays open holds no bodies of its last act
        if healed or cursors.anew or act.look.full:
            self.files.clear()
        noted = self.files.note(act.look.seen_ns, act.conflicts)
        for path in filter(act.is_older, act.conflicts):  # looked at until it is new again
            noted.pop(path.rpartition("/")[0], None)
        shown = files if self.files.late or self.files.failed else size
        if shown < size:  # these entries come again: nothing is to be added after a log then
            noted = {path: known for path, known in noted.items() if not is_live_log_file(path)}
        if shown > files or noted or self.files.settled or cursors.anew:
            many = size - cursors.synced >= MOST_UNSYNCED
            is_due = many or act.look.full or cursors.may_be_cut
            synced = shown == size and is_due and self._sync(act)
            try:
                with self.store.derived() as derived:
                    manifest.save_manifest(derived, noted, self.files.settled)
                    if shown == size:
                        self.store.set_files(shown, synced=synced)
            except sqlite3.DatabaseError as error:
                # The entries are on the disk, and so are the files: only that is not noted.
                act.warn(f"{DATABASE}: recorded, but its cursor could not be moved: {error}")
                return
        if shown == size:
            if act.look.emptied:
                with suppress(OSError):
                    os.unlink(self._gone_mark)
            self.healed += healed
