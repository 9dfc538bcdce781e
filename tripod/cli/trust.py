"""``tripod key``, ``seal``, ``actor``, ``export``, ``prove``, ``anchor`` and ``witness``: trust."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache

from tripod.cli.commands import (
    CommandCall,
    NumberParam,
    command_group,
    command_verb,
    text_param,
    witness_key_param,
)
from tripod.errors import (
    BadArgumentError,
    LedgerError,
    NotFoundError,
    RefusedError,
    TripodError,
    UnreachableError,
)
from tripod.ledger.tlog.note import VerifierKey
from tripod.ledger.tlog.receipt import MAX_REQUEST, SIZE_TYPE
from tripod.output import emit_bytes, format_utc, one_line, remark
from tripod.projections import Disk, File
from tripod.team.access import refuse_copy_within
from tripod.team.team import Team
from tripod.trust import actors as authors
from tripod.trust import anchor as anchoring
from tripod.trust import export as exports
from tripod.trust import keys, signature
from tripod.trust import proof as proofs
from tripod.trust import seal as sealing
from tripod.trust.keys import LockedKeyError
from tripod.trust.seal import seal
from tripod.trust.witness import WitnessFolder


@contextmanager
def _taken_in(call: CommandCall) -> Iterator[Team]:
    """The team, after what others wrote was taken in: its head is to be signed."""
    with call.team() as team:
        with team.act():
            pass
        yield team


def _new(call: CommandCall) -> None:
    with _taken_in(call) as team:
        vkey = sealing.new_sealing_key(team, _new_passphrase(call))
    _say_key(call, vkey, keys.key_path(sealing.origin_sealed_by(vkey)))


def _rotate(call: CommandCall) -> None:
    with _taken_in(call) as team:
        vkey = sealing.rotate_sealing_key(team, cache(_passphrase), _new_passphrase(call))
    _say_key(call, vkey, keys.key_path(sealing.origin_sealed_by(vkey)))


def _say_key(call: CommandCall, vkey: str, path: str) -> None:
    here = os.path.exists(path)
    where = f"in {path}" if here else "not on this host"
    value = {"private": path if here else None, "vkey": vkey}
    call.answer(value, [vkey, f"The private key is {where}"])


def _show(call: CommandCall) -> None:
    with call.fresh() as team:
        db = team.store.db
        vkey, last = keys.sealing_key(team.store), sealing.newest(db)
        earlier = [row[0] for row in db.execute("SELECT vkey FROM keys ORDER BY seq")]
    if vkey is None:
        raise NotFoundError("this ledger has no key: `tripod key new` makes one")
    path = keys.key_path(sealing.origin_sealed_by(vkey))
    here = os.path.exists(path)
    encrypted = here and keys.is_encrypted_key(path)
    value: dict[str, object] = {
        "earlier": [other for other in earlier if other != vkey],
        "encrypted": encrypted,
        "private": path if here else None,
        "sealed": None if last is None else last.size,
        "vkey": vkey,
    }
    how = f"in {path}, {'encrypted' if encrypted else 'not encrypted'}"
    private = f"The private key is {how if here else 'not on this host'}"
    sealed = "Nothing is sealed yet" if last is None else f"Sealed: the first {last.size} entries"
    call.answer(value, [vkey, private, sealed])


def _seal(call: CommandCall) -> None:
    with _taken_in(call) as team:
        note = sealing.seal_now(team, cache(_passphrase))
    size = int(note.split("\n")[1])
    call.answer({"note": note, "size": size}, note.removesuffix("\n").split("\n"))


def _enrol(call: CommandCall) -> None:
    with _taken_in(call) as team:
        secret = _new_passphrase(call)
        if call.request:
            note = authors.request_actor_key(team, call.handle, secret)
            call.answer({"note": note}, note.removesuffix("\n").split("\n"))
            return
        vkey = authors.enrol_actor(team, call.handle, cache(_passphrase), secret)
    _say_key(call, vkey, signature.actor_key_path(vkey))


def _admit(call: CommandCall) -> None:
    note = text_param(None, call.file, "note")
    with _taken_in(call) as team:
        vkey = authors.admit_actor(team, note, cache(_passphrase))
    _say_key(call, vkey, signature.actor_key_path(vkey))


def _revoke(call: CommandCall) -> None:
    with _taken_in(call) as team:
        vkey = authors.revoke_actor(team, call.handle, call.reason, cache(_passphrase))
    call.answer({"vkey": vkey}, [f"Revoked: {vkey}"])


def _list(call: CommandCall) -> None:
    with call.fresh() as team:
        found = authors.list_actors(team.store.db)
    here = {one.vkey: os.path.exists(signature.actor_key_path(one.vkey)) for one in found}
    lines = []
    for one in found:
        state = f"{'revoked at' if one.revoked else 'in force since'} entry {one.since}"
        where = "on this host" if here[one.vkey] else "not on this host"
        lines += [f"{one.handle:<24} {state}, private key {where}", f"  {one.vkey}"]
    call.answers(
        (one._asdict() | {"here": here[one.vkey]} for one in found),
        lines or ["No actor has a key: `tripod actor enrol HANDLE` makes one"],
    )


def _passphrase(
    what: str = "Passphrase of the private key", *, again: bool = False
) -> bytes | None:
    """The passphrase of a file, else asked for at a terminal; None where there is neither."""
    given = keys.passphrase_from_file()
    if given is not None or sys.stdin is None or not sys.stdin.isatty():
        return given
    import click

    text: str = click.prompt(what, hide_input=True, confirmation_prompt=again, err=True)
    return text.encode()


def _new_passphrase(call: CommandCall) -> bytes | None:
    """A new passphrase, asked for twice; None where the call has no ``--passphrase``."""
    secret = _passphrase("New passphrase", again=True) if call.passphrase else None
    if call.passphrase and secret is None:
        raise BadArgumentError(
            "--passphrase: there is no terminal to ask at; write it into a file of your own and "
            "name that in TRIPOD_PASSPHRASE_FILE"
        )
    return secret


def _export(call: CommandCall) -> None:
    if call.evidence and not call.bodies:
        raise BadArgumentError("--evidence needs --bodies: they name the parts of each session")
    with call.team() as team, call.progress():
        refuse_copy_within(team, call.directory)
        note = (
            proofs.seal_to_prove(team) if call.seal is None else proofs.seal_of_proof(call.seal)[0]
        )
        done = exports.export(team.store.path, call.directory, note, bodies=call.bodies)
        from tripod.sessions.evidence import export_parts, remove_unnamed_parts

        remove_unnamed_parts(team.source, call.directory)  # they were erased since
        parts = None
        if call.evidence:
            parts = export_parts(team.source, team.root, call.directory, done.size)
    files = f"{done.written} files written, {done.removed} removed"
    value = done._asdict()
    lines = [f"Exported: {done.size} entries to {os.path.join(call.directory, '')} ({files})"]
    if parts is not None:
        value |= {"parts": parts[0], "parts_missing": parts[1]}
        lines.append(f"Parts of kept sessions: {parts[0]} in it, {parts[1]} missing here")
    call.answer(value, lines)


def _prove(call: CommandCall) -> None:
    seq, old = call.seq, call.consistency
    if (seq is None) == (old is None) or (call.body and seq is None):
        raise BadArgumentError(
            "give the number of an entry (with --body, if you like), or --consistency OLD"
        )
    with call.team() as team:
        note = (
            proofs.seal_to_prove(team) if call.seal is None else proofs.seal_of_proof(call.seal)[0]
        )
        if old is not None:
            data = proofs.prove_growth(team.store.path, proofs.seal_of_proof(old)[1], note)
        else:
            data = proofs.prove_entry(team.store.path, seq or 0, note, body=call.body)
    if call.out is None:
        emit_bytes(data)
        return
    folder, name = os.path.split(os.path.abspath(call.out))
    Disk(folder).write(name, File(data, 0o600 if call.body else 0o644))


_KEY = """\
key
    Private keys lie outside the team directory, in $TRIPOD_HOME or ~/.config/tripod. Anyone who
    has one can seal any history; keep it where the agents cannot read it if you can.

new
    Make the ledger's first key, put it in force and seal the ledger.
    --passphrase  Encrypt it, with the passphrase in $TRIPOD_PASSPHRASE_FILE or asked for here.

rotate
    Put a new key in the place of the one in force; both sign the change, and it is logged.

    The old private key is gone afterwards.

    --passphrase  Encrypt it, with the passphrase in $TRIPOD_PASSPHRASE_FILE or asked for here.

show
    Show the key in force, where its private part is, and the newest seal.
    looks: always
"""
_SEAL = """\
seal
    The seal is a note of C2SP's form. Where nothing was recorded since the newest seal, that
    one is printed. Seals are also made at each decision and each checkpoint, every 256 entries,
    and where the newest is ten minutes old.
"""
_ACTOR = """\
actor
    From its enrolment to its revocation every entry of the handle must be signed. The commands
    that act under it sign, if the private key is on this host. Private keys lie outside the
    team directory, in $TRIPOD_HOME or ~/.config/tripod.

enrol HANDLE
    Make a key for HANDLE and put it in force, in the place of an older one.

    It is vouched for by the handle's key before it, or by the one that seals the ledger. Where
    the handle never had one and the ledger has none either, the first to come has the handle.

    --passphrase  Encrypt it, with the passphrase in $TRIPOD_PASSPHRASE_FILE or asked for here.
    --request     Record nothing; print a note for `admit`, which puts the key in force.

admit FILE
    Put the key in force that the note in FILE (- for stdin) asks for: see `enrol --request`.

    First compare the key's digits with its owner over another channel: the note proves that its
    author has the key, and not who that is.

revoke HANDLE
    End the key of HANDLE: what it signs from here on is a finding.

    Nobody has to sign as HANDLE from then on; to keep others from using the handle, enrol anew.

    --reason TEXT  Why; it stays in the ledger. [required]

list
    List the handles that have or had a key.
    looks: always
"""
_EXPORT = """\
export DIRECTORY
    An export that is in DIRECTORY is grown by what is new. Without --bodies only headers and
    hashes are written: who did something of which kind, and when, but nothing of what was said.
    --bodies     Also what was said: bodies, salts and blobs.
    --evidence   With --bodies, also the sessions that `import --keep` kept, in evidence/, by
        digest. They may hold secrets.
    --seal FILE  The seal to go under; the newest by default.
    looks: always
"""
_PROVE = """\
prove [SEQ]
    The proof is for somebody who has nothing but the log's key. It holds the header of entry
    SEQ; `tripod verify FILE --key VKEY` checks it, and so does any other program for C2SP
    proofs.
    --body             Also show what the entry said, and its salt.
    --consistency OLD  Prove instead that the log only grew since the seal in this file or
        export.
    --seal FILE        The seal to go under; the newest by default.
    --out FILE         Write the proof to a file.
    looks: unless --out
    without: --json
"""


# Anchors and witnesses -------------------------------------------------------------------------


_DONE = 200


def _witness(call: CommandCall) -> None:
    with call.fresh() as team:
        target, vkey, timeout = call.target, call.key, call.timeout
        asked: list[tuple[str, anchoring.Ask, Sequence[VerifierKey]]]
        if target is None:
            if vkey is not None:
                raise BadArgumentError("--key goes with a URL or a folder")
            known = [w for w in anchoring.read_anchor_policy(team).witnesses if w.url is not None]
            if not known:
                raise BadArgumentError(
                    f"which witness? Give its URL or folder; or name it in {team.root}/"
                    f"{anchoring.POLICY} with a line `witness NAME VKEY URL`"
                )
            asked = [
                (w.url, anchoring.ask_anchor_url(w.url, timeout), [w.key]) for w in known if w.url
            ]
        elif "://" in target:
            keys = _keys(team, vkey, target)
            asked = [(target, anchoring.ask_anchor_url(target, timeout), keys)]
        else:
            folder = WitnessFolder(target)
            own = folder.key().verifier()
            asked = [(target, folder.answer, [own] if vkey is None else _keys(team, vkey, None))]
        _seal_first(team)
        failed: list[TripodError] = []
        for where, ask, keys in asked:
            try:
                _say_receipt(call, anchoring.anchor_at_witness(team, ask, keys, where))
            except LedgerError:  # no other witness can help
                raise
            except TripodError as error:
                failed.append(error)
    # A refusal tells more than a silence, and all are told.
    failed.sort(key=lambda one: isinstance(one, UnreachableError), reverse=True)
    for one in failed[:-1]:
        remark(str(one))
    if failed:
        raise failed[-1]


def _tsa(call: CommandCall) -> None:
    with call.fresh() as team:
        _seal_first(team)
        _say_receipt(call, anchoring.anchor_by_timestamp(team, call.url, call.ca, call.timeout))


def _git(call: CommandCall) -> None:
    ref = anchoring.anchor_ref(call.ref)
    with call.fresh() as team:
        _seal_first(team)
        got = anchoring.anchor_in_git(team, ref)
        if got is not None:
            _say_receipt(call, got)
        else:
            remark(f"the newest seal stands on {ref} already")
        if call.push is not None:
            anchoring.push_anchor_ref(team, ref, call.push)


def _ask(call: CommandCall) -> None:
    with call.fresh() as team:
        _seal_first(team)
        sealed = anchoring.seal_to_anchor(team)
        size = anchoring.last_anchored_size(team, call.name or "") if call.old is None else call.old
        emit_bytes(anchoring.anchor_request(team, sealed, size))


def _take(call: CommandCall) -> None:
    try:
        if call.file == "-":
            body = b"" if sys.stdin is None else sys.stdin.buffer.read(anchoring.MAX_ANSWER)
        else:
            with open(call.file, "rb") as stream:
                body = stream.read(anchoring.MAX_ANSWER)
    except OSError as error:
        raise BadArgumentError(f"{call.file}: {error.strerror or error}") from error
    with call.fresh() as team:
        keys = _keys(team, call.key, None)
        _say_receipt(call, anchoring.record_late_anchor(team, body, keys, call.file))


def _list_receipts(call: CommandCall) -> None:
    with call.fresh() as team:
        rows = team.store.db.execute(
            "SELECT seq, method, name, size, root FROM anchors ORDER BY seq"
        ).fetchall()
    names = ("seq", "method", "name", "size", "root")
    lines = []
    for seq, method, name, size, root in rows:
        lines.append(f"{seq:>7}  {method:<7}  {size:>7} entries  {root[:16]}  {one_line(name)}")
    call.answers((dict(zip(names, row, strict=True)) for row in rows), lines)


def _receipt(call: CommandCall) -> None:
    with call.fresh() as team:
        files = anchoring.anchor_receipt_files(team, call.seq)
    os.makedirs(call.folder, exist_ok=True)
    paths = {os.path.join(call.folder, name): data for name, data in files.items()}
    for path, data in paths.items():
        with open(path, "wb") as stream:
            stream.write(data)
    call.answer({"files": list(paths)}, (one_line(path) for path in paths))


def _seal_first(team: Team) -> None:
    """Seal what is not sealed yet, where this host has the key."""
    try:
        seal(team, "asked")
    except LockedKeyError as error:
        team.warnings.append(f"not sealed anew, the newest seal is anchored: {error}")


def _keys(team: Team, vkey: str | None, url: str | None) -> Sequence[VerifierKey]:
    """Whose cosignature counts: the key that was given, or those that the policy names."""
    if vkey is not None:
        return [witness_key_param(vkey)]
    known = anchoring.read_anchor_policy(team).witnesses
    keys = [w.key for w in known if url is None or (w.url or "").rstrip("/") == url.rstrip("/")]
    if not keys:
        raise BadArgumentError(
            f"whose signature counts? Say --key VKEY, or name the witness in {team.root}/"
            f"{anchoring.POLICY} with a line `witness NAME VKEY URL`"
        )
    return keys


def _say_receipt(call: CommandCall, got: anchoring.Receipt) -> None:
    root, size = got.seal.root.hex(), got.seal.size
    value = {"method": got.method, "name": got.name, "time": got.seconds}
    what = {"git": "Committed to", "tsa": "Stamped by", "witness": "Cosigned by"}[got.method]
    when = f"{what} {one_line(got.name)} at {format_utc(got.seconds)}"
    call.answer(value | {"root": root, "size": size}, [f"{when}: {size} entries, root {root}"])


def _witness_new(call: CommandCall) -> None:
    vkey = WitnessFolder.begin(call.folder, call.name).key().verifier().format()
    call.answer({"vkey": vkey}, [vkey])


def _witness_trust(call: CommandCall) -> None:
    key = WitnessFolder(call.folder).trust(call.vkey)
    known = f"Known now: {key.name} ({key.key_id.hex()})"
    call.answer({"origin": key.name, "vkey": key.format()}, [known])


def _witness_show(call: CommandCall) -> None:
    place = WitnessFolder(call.folder)
    vkey = place.key().verifier().format()
    logs, lines = [], [vkey]
    for log, last, seconds in place.seen():
        found: dict[str, object] = {"root": None, "size": None, "time": None}
        cosigned = "nothing cosigned yet"
        if last is not None:
            found = {"root": last.root.hex(), "size": last.size, "time": seconds}
            cosigned = f"{last.size} entries, root {last.root.hex()}, {format_utc(seconds)}"
        logs.append({"origin": log.name, "vkey": log.format(), **found})
        lines.append(f"  {one_line(log.name)} ({log.key_id.hex()}): {cosigned}")
    call.answer({"logs": logs, "vkey": vkey}, lines)


def _witness_sign(call: CommandCall) -> None:
    data = b"" if sys.stdin is None else sys.stdin.buffer.read(MAX_REQUEST + 1)
    answer = WitnessFolder(call.folder).answer(data)
    if answer.status == _DONE:
        emit_bytes(answer.body)
        return
    text = answer.body.decode("utf-8", "replace").strip()
    if answer.content_type == SIZE_TYPE:
        text = (
            f"the seal that it last cosigned for this log has {text} entries, and the request "
            f"starts from another size: `tripod anchor ask --old {text}`"
        )
    raise RefusedError(f"not cosigned ({answer.status}): {text}")


_ANCHOR = """\
anchor
    Each command first seals what is not sealed yet. Exit code 1: refused, read why at once (fork,
    rollback). Exit code 3: no usable answer, try again.

witness [TARGET]
    Have a witness cosign the seal.

    TARGET is its URL, or its folder on this machine. Without, every witness is asked that
    .nbs/policy.tlog names with a URL.

    --key VKEY   The witness's public key; by default what .nbs/policy.tlog says.
    --timeout S  Seconds to wait for an answer. [default: 20]

tsa URL
    Have the timestamp authority (RFC 3161) at URL stamp the seal; needs the extra `tsa`.
    --ca FILE    Certificates (PEM) of the authorities that you trust. [required]
    --timeout S  Seconds to wait for an answer. [default: 20]

git
    Commit the seal to a ref of its own in the repository around the team.

    The record's seal, committed with the work, needs no such ref. This remembers a seal between
    two commits; branches, index and files are left alone. `tripod verify` finds it by itself.

    --ref NAME     The seal is committed to refs/tripod/NAME. [default: seals]
    --push REMOTE  Give the ref to this remote.

ask [NAME]
    Print the request for a witness, which `tripod witness sign` answers on its machine.

    NAME is the witness's, as in its key: what it cosigned last is looked up in the ledger.

    --old SIZE  How many entries the witness has cosigned.
    without: --json

take FILE
    Take in what a witness answered, from FILE or - for standard input.
    --key VKEY  The witness's public key; by default what .nbs/policy.tlog says.

list
    List the receipts that the ledger holds, the newest last.
    looks: always

receipt SEQ FOLDER
    Write the receipt of entry SEQ into FOLDER, for other tools to check.

    A witness: receipt.note, the seal with its signatures and the cosignature (C2SP). A
    timestamp: receipt.tsr, and seal.txt, which it is about (`openssl ts -verify -in receipt.tsr
    -data seal.txt -CAfile FILE`).
"""
_WITNESS = """\
witness
    A witness is a FOLDER of its own, kept by somebody the teams cannot overrule, best on
    another machine.

new FOLDER
    Make a witness with a key of its own in FOLDER, and print the public key (its vkey).
    --name NAME  Its name, unique for ever, as a URL without https://, such as
        example.org/witness. [required]
    without: --team

trust FOLDER VKEY
    Have it cosign the log whose key is VKEY (`tripod key show` prints a team's).
    without: --team

show FOLDER
    Print its public key, and what it last cosigned for each log that it knows.
    looks: always
    without: --team

sign FOLDER
    Answer one request: read it from standard input, print the cosignature.

    These are the bytes that a witness gets over HTTP, here by a file, a mail or a CI step:
    `tripod anchor ask` makes them, `tripod anchor take` takes the answer in.

    without: --team --json
"""
_WORKS = [_witness, _tsa, _git, _ask, _take, _list_receipts, _receipt]
_WITNESS_WORKS = [_witness_new, _witness_trust, _witness_show, _witness_sign]
COMMANDS = {
    "key": command_group(_KEY, [_new, _rotate, _show]),
    "seal": command_verb(_SEAL, _seal),
    "export": command_verb(_EXPORT, _export),
    "prove": command_verb(_PROVE, _prove),
    "actor": command_group(_ACTOR, [_enrol, _admit, _revoke, _list]),
    "anchor": command_group(_ANCHOR, _WORKS, {"S": NumberParam(1, 600)}),
    "witness": command_group(_WITNESS, _WITNESS_WORKS),
}
