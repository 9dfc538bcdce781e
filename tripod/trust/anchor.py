"""Anchoring: something outside this host's reach remembers the newest seal, and that is logged.

There are three such places: a witness (C2SP tlog-witness), a timestamp authority (RFC 3161, the
extra ``tsa``), and a ref of a git repository. Each is asked about the same few lines, the text of a
seal. A receipt counts once it has been checked against a key or certificate that came from
elsewhere; only then it is logged. What was asked for and not logged does no harm: the next round
begins where the other side stands.

The record's seal is remembered by git once it is committed with the work. A ref of its own
remembers each seal at once: a chain of commits that hold nothing but the seal, under the path of
the record's, so a walk through the repository's history finds it there. No branch, index or work
tree is touched.

1. Blob, trees and commit are written: loose objects that nothing names. Dead here: git drops them.
2. The ref is moved from what it named when we looked; somebody else's move in between is refused.
3. The receipt, the commit's own bytes, is logged. Dead here: the next round finds the seal there.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import orjson

from tripod.errors import (
    BadArgumentError,
    GitError,
    LedgerError,
    MalformedError,
    NotFoundError,
    NotVerifiedError,
    RefusedError,
    UnreachableError,
)
from tripod.ledger import RECORD, SEAL, consistency_proof, root_of
from tripod.ledger.files import read_plain_file
from tripod.ledger.kinds.trust import ANCHOR_RECEIVED, AnchorMethod
from tripod.ledger.sqlite.reader import read_block_nodes
from tripod.ledger.tlog.note import (
    Note,
    VerifierKey,
    format_note,
    note_cosignature_time,
    parse_decimal,
    parse_note,
    verify,
)
from tripod.ledger.tlog.policy import MAX_POLICY, Policy, parse_policy
from tripod.ledger.tlog.receipt import (
    MAX_RECEIPT,
    SIZE_TYPE,
    TEXT_TYPE,
    CosignRequest,
    Response,
    format_witness_request,
    open_timestamp,
    parse_timestamp_authorities,
    parse_witness_signatures,
    require_timestamp_extra,
)
from tripod.ledger.tlog.seal import Seal, format_seal, parse_seal
from tripod.peers.remote import PUSH, ask_remote, find_remote
from tripod.team.team import Team
from tripod.trust.keys import sealing_key
from tripod.verify.anchors.git import Repository

POLICY = "policy.tlog"
ROUNDS = 4  # how often we begin again because others of this team are witnessed meanwhile
MAX_ANSWER = 64 * 1024  # bytes; a cosignature takes under 4,000
APART = 300  # seconds by which two clocks may differ before it is told

# What stands before a fork is about another line, under another origin.
_OURS = "seq > (SELECT coalesce(max(seq), -1) FROM forks)"
_SEALS = f"SELECT note FROM seals WHERE {_OURS} ORDER BY seq DESC"


class Sealed(NamedTuple):
    """A seal of this ledger: the signed note, and what it says."""

    note: Note
    seal: Seal


class Receipt(NamedTuple):
    """What an anchor gave: for which head, when (seconds since 1970), its bytes, its entry."""

    method: AnchorMethod
    name: str
    seal: Seal
    seconds: int
    data: bytes


Ask = Callable[[bytes], Response]
"""Brings a request to a witness, and its answer back."""


def seal_to_anchor(team: Team) -> Sealed:
    """The newest seal (NotFoundError: no seal yet; RefusedError: it contradicts the ledger)."""
    row = team.store.db.execute(f"{_SEALS} LIMIT 1").fetchone()
    if row is None:
        raise NotFoundError("nothing is sealed yet: `tripod key new`, then `tripod seal`")
    return _opened(team, row[0])


def _opened(team: Team, text: str) -> Sealed:
    try:
        note = parse_note(text.encode())
        seal = parse_seal(note.text)
    except MalformedError as error:
        raise RefusedError(f"the newest seal is invalid ({error}): see `tripod verify`") from error
    db = team.store.db
    if seal.size > team.store.head().size or seal.root != root_of(
        read_block_nodes(db), 0, seal.size
    ):
        raise RefusedError(
            f"the newest seal, over {seal.size} entries, is not over what the ledger holds: "
            "nothing is anchored; see `tripod verify`"
        )
    return Sealed(note, seal)


# Witnesses -------------------------------------------------------------------------------------


def read_anchor_policy(team: Team) -> Policy:
    """The team's policy, which names its witnesses (RefusedError: the file is invalid)."""
    try:
        return parse_policy(read_plain_file(f"{team.root}/{POLICY}", MAX_POLICY))
    except FileNotFoundError:
        return Policy(())
    except (MalformedError, OSError) as error:
        raise RefusedError(
            f"{team.root}/{POLICY}: {getattr(error, 'strerror', None) or error}"
        ) from error


def ask_anchor_url(url: str, timeout: float) -> Ask:
    """Ask a witness over HTTP at ``url`` + ``/add-checkpoint`` (BadArgumentError: no URL).

    The function that it gives raises UnreachableError.
    """
    check_anchor_url(url, "the witness")
    full = f"{url.rstrip('/')}/add-checkpoint"
    return lambda data: post(
        full, data, content_type=TEXT_TYPE, limit=MAX_ANSWER, timeout=timeout, what="the witness"
    )


def last_anchored_size(team: Team, name: str) -> int:
    """How many entries the witness of this name has cosigned, as far as the ledger knows."""
    row = team.store.db.execute(
        f"SELECT max(size) FROM anchors WHERE method = 'witness' AND name = ? AND {_OURS}", (name,)
    ).fetchone()
    return row[0] or 0


def anchor_request(team: Team, sealed: Sealed, old: int) -> bytes:
    """The request to a witness that cosigned ``old`` entries (RefusedError: the seal has fewer)."""
    seal = sealed.seal
    if old > seal.size:
        size = team.store.head().size
        if old <= size:
            raise RefusedError(
                f"the witness has cosigned {old} entries of {seal.origin}, and the newest seal "
                f"here covers {seal.size} of {size}: `tripod seal`, then try again"
            )
        raise RefusedError(
            f"ROLLBACK: the witness has cosigned {old} entries of {seal.origin}, and this ledger "
            f"holds {size}. A backup was put back, entries were cut off, or a copy goes on "
            "elsewhere. Do not go on with this one: find the newer ledger.db; if it is lost, "
            "`tripod restore --as-origin` goes on honestly"
        )
    hashes = consistency_proof(read_block_nodes(team.store.db), old, seal.size)
    return format_witness_request(CosignRequest(old, tuple(hashes), sealed.note))


def anchor_at_witness(team: Team, ask: Ask, keys: Sequence[VerifierKey], where: str) -> Receipt:
    """Have the newest seal cosigned by one of ``keys``, and log the receipt.

    ``ask`` sends a request to the witness, ``where`` names it in messages. Raises UnreachableError
    where no usable answer came, RefusedError where the witness refuses or another key signed.
    """
    sealed = seal_to_anchor(team)
    old = min(max(last_anchored_size(team, key.name) for key in keys), sealed.seal.size)
    answer = ask(anchor_request(team, sealed, old))
    for _ in range(ROUNDS):
        if answer.status != 409 or answer.content_type != SIZE_TYPE:
            break
        try:
            old = parse_decimal(answer.body.decode("ascii", "replace").rstrip("\n"), where)
        except MalformedError as error:
            raise UnreachableError(f"{error}; nothing was recorded") from error
        answer = ask(anchor_request(team, sealed, old))
    if answer.status == 200:
        return _take(team, sealed, answer.body, keys, where)
    said = answer.body[:300].decode("utf-8", "replace").strip()
    told = f"{where} answered {answer.status}" + (f" ({said})" if said else "")
    if answer.status == 422:
        raise RefusedError(
            f"FORK: {told}. It has cosigned another history of {sealed.seal.origin} than the one "
            "that is here: this ledger was rewritten, or two copies go on under one origin. Keep "
            "both; `tripod verify` with the seal that the witness serves says from where"
        )
    if answer.status in {403, 404}:
        vkey = sealing_key(team.store) or "VKEY"
        raise RefusedError(
            f"{told}. If that is the right address, its operator must allow this "
            f"ledger: `tripod witness trust DIR {vkey}`"
        )
    if answer.status == 400:
        raise RefusedError(f"{told}; nothing was recorded. Does it speak tlog-witness?")
    raise UnreachableError(f"{told}; nothing was recorded. Try again")


def _take(
    team: Team, sealed: Sealed, body: bytes, keys: Sequence[VerifierKey], where: str
) -> Receipt:
    """Check the signature lines of a witness, and log them with the seal as its receipt."""
    names = ", ".join(f"{key.name} ({key.key_id.hex()})" for key in keys)
    try:
        good = verify(Note(sealed.note.text, parse_witness_signatures(body)), keys)
    except LedgerError as error:
        raise RefusedError(
            f"{where}: the answer is no cosignature by {names}: {error}. Nothing was recorded; "
            "compare the key with the one that `tripod witness show` prints there"
        ) from error
    seconds = note_cosignature_time(good[0])
    data = format_note(Note(sealed.note.text, (*sealed.note.signatures, *good)))
    return record_anchor_receipt(team, Receipt("witness", good[0].name, sealed.seal, seconds, data))


def record_late_anchor(team: Team, body: bytes, keys: Sequence[VerifierKey], where: str) -> Receipt:
    """Log an answer that came by another road, to a request about any seal of this ledger.

    Raises RefusedError where it is about none of them, or not by one of ``keys``.
    """
    for (text,) in team.store.db.execute(_SEALS).fetchall():
        try:
            note = parse_note(text.encode())
            parse_seal(note.text)
            verify(Note(note.text, parse_witness_signatures(body)), keys)
        except (MalformedError, NotVerifiedError):
            continue
        return _take(team, _opened(team, text), body, keys, where)
    return _take(team, seal_to_anchor(team), body, keys, where)  # says what is wrong with it


# Timestamps ------------------------------------------------------------------------------------


_MAX_AUTHORITIES = 4 * 1024 * 1024  # bytes; the list of a whole system has about 200,000


def anchor_by_timestamp(team: Team, url: str, authorities: str, timeout: float) -> Receipt:
    """Have the newest seal stamped by the authority at ``url``, check that, and log the reply.

    ``authorities`` is a PEM file with the certificates that are trusted, ``timeout`` is in seconds.
    Raises MissingExtraError without the extra ``tsa``, BadArgumentError where there is no URL or no
    certificate, UnreachableError where no answer came, and RefusedError where what came is no stamp
    of this seal by one of ``authorities``.
    """
    require_timestamp_extra()
    from rfc3161_client import HashAlgorithm, TimestampRequestBuilder

    check_anchor_url(url, "the authority")
    try:
        roots = parse_timestamp_authorities(
            read_plain_file(authorities, _MAX_AUTHORITIES, named=True)
        )
    except (OSError, MalformedError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise BadArgumentError(f"--ca {authorities}: {reason}") from error
    sealed = seal_to_anchor(team)
    text = format_seal(sealed.seal)
    request = (
        TimestampRequestBuilder()
        .data(text.encode())
        .hash_algorithm(HashAlgorithm.SHA256)
        .cert_request(cert_request=True)
        .build()
    )
    data, query = request.as_bytes(), "application/timestamp-query"
    what = "the timestamp authority"
    reply = post(url, data, content_type=query, limit=MAX_RECEIPT, timeout=timeout, what=what)
    if reply.status != 200 or reply.content_type != "application/timestamp-reply":
        raise UnreachableError(
            f"{url} answered {reply.status} with {reply.content_type}, not with a timestamp; "
            "nothing was recorded. Is it the address of a timestamp authority?"
        )
    try:
        stamped = open_timestamp(reply.body, text, roots, request.nonce)
    except LedgerError as error:
        raise RefusedError(
            f"{url}: {error}. Nothing was recorded; is {authorities} its authority?"
        ) from error
    seconds = stamped.micros // 1_000_000
    return record_anchor_receipt(team, Receipt("tsa", url, sealed.seal, seconds, reply.body))


def record_anchor_receipt(team: Team, receipt: Receipt) -> Receipt:
    """Log a receipt that was checked; warn where the clock of another host differs from ours."""
    apart = abs(receipt.seconds - int(time.time()))
    if receipt.method != "git" and apart > APART:
        team.warnings.append(f"the clock of {receipt.name} and ours differ by {apart} s")
    draft = ANCHOR_RECEIVED.draft(
        {
            "method": receipt.method,
            "size": receipt.seal.size,
            "root": receipt.seal.root.hex(),
            "name": receipt.name,
            "receipt": receipt.data,
        }
    )
    with team.act() as act:
        act.append([draft])
    return receipt


def anchor_receipt_files(team: Team, seq: int) -> dict[str, bytes]:
    """What other tools check the receipt of entry ``seq`` with, by file name.

    Raises NotFoundError where the entry is no receipt, or its bytes were erased.
    """
    entry = team.store.entry(seq) if seq < team.store.size else None
    if entry is None or entry.kind != "anchor.received" or entry.body is None:
        raise NotFoundError(
            f"entry {seq} holds no receipt: `tripod anchor list` names those that do"
        )
    body = entry.data
    data = team.source.content(body["receipt"])
    if body["method"] != "tsa":
        return {"receipt.note": data}
    line = orjson.loads(entry.header)["ledger"]
    text = format_seal(Seal(line, body["size"], bytes.fromhex(body["root"])))
    return {"receipt.tsr": data, "seal.txt": text.encode()}


# Git ref ----------------------------------------------------------------------------------------


_FOLDER = "refs/tripod/"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_PERSONS = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE", "GIT_COMMITTER_NAME",
            "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_DATE", "EMAIL")  # fmt: skip
_WHO = re.compile(r"(user|author|committer)\.(name|email)")
_SHARED = re.compile(r"core\.sharedrepository")
_WITH_WHOM = re.compile(
    r"group|all|world|everybody|umask|true|false|0[0-7]{3}|[012]", re.IGNORECASE
)
"""Of the repository's settings: no more than these are in force when git writes."""


def anchor_ref(name: str) -> str:
    """The full name of a ref for seals (BadArgumentError: that is no name)."""
    if _NAME.fullmatch(name) is None:
        raise BadArgumentError(
            f"--ref: {name[:100]!r} is no name of letters, digits, - and _ (below {_FOLDER})"
        )
    return _FOLDER + name


def anchor_in_git(team: Team, ref: str) -> Receipt | None:
    """Commit the newest seal to ``ref`` and log that; None where it stands there already.

    Raises NotFoundError where nothing was sealed yet, RefusedError where there is no repository,
    git refuses, or the ref was moved meanwhile.
    """
    sealed = seal_to_anchor(team)
    data = format_note(sealed.note)
    try:
        with Repository(team.root) as repository:
            path = repository.name_of(f"{team.root}/{RECORD}/{SEAL}")
            tip = repository.tip(ref)
            blob = repository.ask("hash-object", "-w", "--stdin", given=data).decode().strip()
            if tip and repository.file_at(tip, path) == data:
                return None
            repository.apply(_WHO)
            repository.apply(_SHARED, _WITH_WHOM)
            # The trees that hold this one file at its path from the repository's top.
            tree, mode = blob, b"100644 blob"
            for part in reversed(path.encode("utf-8", "surrogateescape").split(b"/")):
                line = b"%b %b\t%b\0" % (mode, tree.encode(), part)
                tree = repository.ask("mktree", "-z", given=line).decode().strip()
                mode = b"040000 tree"
            # Git takes the commit's author from the user's configuration and variables.
            message = f"Seal of {sealed.seal.size} entries of {sealed.seal.origin}"
            persons = {name: os.environ[name] for name in _PERSONS if name in os.environ}
            words = ("--no-gpg-sign", tree, *(("-p", tip) if tip else ()), "-m", message)
            said = repository.ask("commit-tree", *words, environment=persons, configured=True)
            commit = said.decode().strip()
            repository.lend_refs()
            repository.ask("update-ref", ref, commit, tip or "0" * len(commit))
            written = repository.ask("cat-file", "commit", commit)
            seconds = repository.commit(commit).seconds
    except GitError as error:
        raise RefusedError(str(error)) from error
    return record_anchor_receipt(team, Receipt("git", ref, sealed.seal, seconds, written))


def push_anchor_ref(team: Team, ref: str, remote: str) -> None:
    """Give the ref to a remote, which is where it binds (UnreachableError: it was not taken)."""
    try:
        with Repository(team.root) as repository:
            where = find_remote(repository, remote)
            ask_remote(repository, where, "push", "--quiet", *PUSH, where.address, f"{ref}:{ref}")
    except GitError as error:
        raise UnreachableError(
            f"{error}; the ref stands here, and nobody else has it yet"
        ) from error


# Web --------------------------------------------------------------------------------------------


def check_anchor_url(url: str, what: str) -> None:
    """Refuse what is no plain http or https URL, or holds a password (BadArgumentError)."""
    from urllib.parse import urlsplit  # here, as below: no hot command pays for it

    try:
        parts = urlsplit(url)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good, parts = False, urlsplit("")
    if not good or any(c.isspace() or not c.isprintable() for c in url):
        raise BadArgumentError(f"{what}: {url[:200]!r} is no http or https URL")
    if parts.username is not None or parts.query or parts.fragment:
        raise BadArgumentError(
            f"{what}: the URL holds a name, a password, a ? or a #: it would be recorded in the "
            "ledger for ever; give it without"
        )


def post(
    url: str, data: bytes, *, content_type: str, limit: int, timeout: float, what: str
) -> Response:
    """Send ``data`` and give the response, of any status; no redirection is followed.

    ``url`` has passed ``check_anchor_url``. At most ``limit`` bytes are read, within ``timeout``
    seconds. ``what`` names the service in messages. Raises UnreachableError where no whole answer
    came.
    """
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import HTTPRedirectHandler, Request, build_opener

    class Stay(HTTPRedirectHandler):
        """A redirected POST would arrive as a GET, and elsewhere: it is shown as it is instead."""

        def redirect_request(self, *_: Any) -> None:
            """Go nowhere."""

    end = time.monotonic() + timeout
    headers = {"Content-Type": content_type, "User-Agent": "tripod"}
    # check_url let http and https pass alone
    request = Request(url, data=data, headers=headers, method="POST")  # noqa: S310
    try:
        try:
            with build_opener(Stay).open(request, timeout=timeout) as reply:
                return _read(reply, limit, end)
        except HTTPError as error:
            with error:
                return _read(error, limit, end)
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise UnreachableError(
            f"{what} at {url} gave no answer ({reason}); nothing was recorded. Try again; what is "
            "sealed stays sealed, only it is not anchored yet"
        ) from error


def _read(reply: Any, limit: int, end: float) -> Response:
    parts: list[bytes] = []
    total = 0
    while part := reply.read1(16 * 1024):
        parts.append(part)
        total += len(part)
        if total > limit:
            raise OSError(f"more than {limit} bytes came back")
        if time.monotonic() > end:
            raise TimeoutError("the answer took too long")
    # Where the length was said, http.client does not miss what read1 did not get.
    length = reply.headers.get("Content-Length", "")
    if length.isdecimal() and int(length) != total:
        raise OSError(f"the answer broke off at byte {total} of {length}")
    return Response(reply.status, reply.headers.get_content_type(), b"".join(parts))
