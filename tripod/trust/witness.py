"""The folder of a witness: its key, the logs that it knows, and what it last cosigned for each.

::

    key                          its private key, in one line; 0600
    policy.tlog                  the logs that it knows: `log <vkey>` lines, `quorum none`
    logs/<sha256 of the origin>/checkpoint      the last seal that it cosigned, with its cosignature
    logs/<sha256 of the origin>/lock            held while a request for this log is judged

The order of durability: take the log's lock; read what was kept; judge; write the new note to a
file of another name, and wait until the disk has it; rename; wait until the disk has the name;
answer. Dead before the rename: nothing happened. Dead after it: the log was not answered, asks
again with its old size, is told the new one, and asks for the same seal from there.

Several processes may use one folder: the lock is between them, too. It knows nothing of teams: it
can stand on another machine, without any ledger.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from hashlib import sha256

from tripod.errors import BadArgumentError, LedgerError, MalformedError, NotFoundError, RefusedError
from tripod.ledger.files import (
    hold_file_lock,
    open_plain_file,
    read_plain_file,
    replace_file,
    sync_path,
)
from tripod.ledger.tlog.note import (
    COSIGNATURE,
    MAX_NOTE,
    Note,
    SigningKey,
    VerifierKey,
    format_note,
    parse_note,
)
from tripod.ledger.tlog.policy import MAX_POLICY, Policy, parse_policy
from tripod.ledger.tlog.receipt import (
    Response,
    decide_witness_request,
    kept_witness_seal,
    origin_of_witness_request,
    parse_witness_request,
    refuse_witness_request,
)
from tripod.ledger.tlog.seal import Seal

_LATEST = "checkpoint"  # as the protocol calls it
_BEGUN = "# The logs that this witness cosigns: one `log <vkey>` a line.\nquorum none\n"
_MAX_KEY = 1024  # bytes


class WitnessFolder:
    """One witness, by its folder. Everything is read anew for each request.

    ``now`` gives the seconds since 1970.
    """

    def __init__(self, path: str, now: Callable[[], float] = time.time) -> None:
        self.path = path
        self._now = now

    @classmethod
    def begin(cls, path: str, name: str) -> WitnessFolder:
        """Make a witness with a fresh key.

        Raises BadArgumentError where no key can have this name, RefusedError where there is one
        already.
        """
        try:
            key = SigningKey(name, os.urandom(32), COSIGNATURE)
        except MalformedError as error:
            raise BadArgumentError(
                f"{error}; name it as a URL without its https://, such as example.org/witness"
            ) from error
        os.makedirs(path, mode=0o700, exist_ok=True)
        file = os.path.join(path, "key")
        if os.path.lexists(file):
            raise RefusedError(
                f"{file} is there already: a witness keeps its key; choose another folder"
            )
        replace_file(f"{path}/policy.tlog", _BEGUN.encode(), 0o644)
        os.makedirs(os.path.join(path, "logs"), exist_ok=True)
        # Last: now it is a witness.
        replace_file(file, f"{key.format()}\n".encode(), 0o600)
        return cls(path)

    def key(self) -> SigningKey:
        """The private key (NotFoundError: no witness is here; RefusedError: the key is unsafe)."""
        file = os.path.join(self.path, "key")
        try:
            with open(open_plain_file(file, named=True), "rb") as stream:
                mode, data = os.fstat(stream.fileno()).st_mode, stream.read(_MAX_KEY)
        except FileNotFoundError as error:
            raise NotFoundError(
                f"no witness in {self.path}: `tripod witness new {self.path}` makes one"
            ) from error
        if mode & 0o077:
            raise RefusedError(
                f"{file} can be read by others: `chmod 600 {file}`, or make a new witness"
            )
        try:
            key = SigningKey.parse(data.decode("utf-8", "replace").removesuffix("\n"))
        except MalformedError as error:
            raise RefusedError(f"{file}: {error}; put the file back from its backup") from error
        if key.kind != COSIGNATURE:
            raise RefusedError(
                f"{file}: not a key for cosignatures; put the file back from its backup"
            )
        return key

    def logs(self) -> tuple[VerifierKey, ...]:
        """The keys of the logs that it knows (RefusedError: the list cannot be read)."""
        return tuple(log.key for log in self._policy()[1].logs)

    def trust(self, vkey: str) -> VerifierKey:
        """Trust a log, or another key of it (BadArgumentError: not a log's key, or known)."""
        self.key()
        with hold_file_lock(os.path.join(self.path, "lock")):
            text, _ = self._policy()
            separate = b"" if text.endswith(b"\n") else b"\n"
            more = text + separate + f"log {vkey}\n".encode()
            try:
                key = VerifierKey.parse(vkey)
                parse_policy(more)
            except MalformedError as error:
                raise BadArgumentError(
                    f"{error}; `tripod key show` says a log's key, and nothing was changed"
                ) from error
            replace_file(f"{self.path}/policy.tlog", more, 0o644)
        return key

    def _policy(self) -> tuple[bytes, Policy]:
        """The list of the logs that it knows: its bytes, and what they say."""
        path = os.path.join(self.path, "policy.tlog")
        text = read_plain_file(path, MAX_POLICY, named=True)
        try:
            return text, parse_policy(text)
        except MalformedError as error:
            raise RefusedError(f"{path}: {error}") from error

    def answer(self, data: bytes) -> Response:
        """Judge a request, keep what must be kept, and only then give the answer.

        Raises TripodError where the folder is not in order, OSError where the disk refuses; then
        nothing was answered.
        """
        key, logs = self.key(), self.logs()
        try:
            request = parse_witness_request(data)
        except MalformedError as error:
            return refuse_witness_request(400, str(error)).answer
        origin = origin_of_witness_request(request)
        if all(log.name != origin for log in logs):
            # Nothing of it is written to our disk.
            return decide_witness_request(request, logs, None, key, 0).answer
        folder = self._folder(origin)
        if not os.path.isdir(folder):
            os.makedirs(folder, exist_ok=True)
            # Its name is on the disk before anything is kept in it.
            sync_path(os.path.dirname(folder))
            sync_path(self.path)
        with hold_file_lock(os.path.join(folder, "lock")):
            last = self._kept(folder)
            try:
                decision = decide_witness_request(request, logs, last, key, int(self._now()))
            except LedgerError as error:
                raise _damaged(folder, error) from error
            if decision.keep is not None:
                replace_file(f"{folder}/{_LATEST}", format_note(decision.keep), 0o644)
        return decision.answer

    def seen(self) -> list[tuple[VerifierKey, Seal | None, int]]:
        """Each key that it knows, its log's last seal, and when that was cosigned (TripodError)."""
        own, found = self.key().verifier(), []
        for log in self.logs():
            folder = self._folder(log.name)
            last = self._kept(folder)
            try:
                seal, seconds = (
                    (None, 0) if last is None else kept_witness_seal(last, log.name, own)
                )
            except LedgerError as error:
                raise _damaged(folder, error) from error
            found.append((log, seal, seconds))
        return found

    def _folder(self, origin: str) -> str:
        return os.path.join(self.path, "logs", log_folder(origin))

    def _kept(self, folder: str) -> Note | None:
        try:
            return parse_note(read_plain_file(os.path.join(folder, _LATEST), MAX_NOTE, named=True))
        except FileNotFoundError:
            return None
        except MalformedError as error:
            raise _damaged(folder, error) from error


def _damaged(folder: str, error: Exception) -> RefusedError:
    return RefusedError(
        f"{folder}/{_LATEST} is not what this witness kept ({error}); it signs nothing for this "
        "log until the file is back from a backup that is not older than its last cosignature"
    )


def log_folder(origin: str) -> str:
    """The name under which a witness serves what it last cosigned for a log: 64 hex digits."""
    return sha256(origin.encode()).hexdigest()
