"""``tripod key``, ``seal``, ``actor``, ``export`` and ``prove``: what vouches for the ledger."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from tripod.cli.commands import CommandCall, command_group, command_verb
from tripod.cli.params import text_param
from tripod.errors import BadArgumentError, NotFoundError
from tripod.output import emit_bytes
from tripod.projections import Disk, File
from tripod.team.team import Team
from tripod.trust import actors as authors
from tripod.trust import export as exports
from tripod.trust import keys, signature
from tripod.trust import proof as proofs
from tripod.trust import seal as sealing


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
        vkey, last = sealing.sealing_key(team.store), sealing.newest(db)
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
    with call.team() as team, call.progress():
        note = (
            proofs.seal_to_prove(team) if call.seal is None else proofs.seal_of_proof(call.seal)[0]
        )
        done = exports.export(team.store.path, call.directory, note, bodies=call.bodies)
    files = f"{done.written} files written, {done.removed} removed"
    line = f"Exported: {done.size} entries to {os.path.join(call.directory, '')} ({files})"
    call.answer(done._asdict(), [line])


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
"""
_SEAL = """\
seal
    The seal is a note of C2SP's form. Where nothing was recorded since the newest seal, that
    one is printed. Seals are also made at each decision and each checkpoint, every 256 entries,
    and where the newest is an hour old.
"""
_ACTOR = """\
actor
    From its enrolment to its revocation every entry of the handle must be signed, and is, by the
    commands that act as it where the private key is. Private keys lie outside the team directory,
    in $TRIPOD_HOME or ~/.config/tripod.

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
"""
_EXPORT = """\
export DIRECTORY
    An export that is in DIRECTORY is grown by what is new. Without --bodies only headers and
    hashes are written: who did something of which kind, and when, but nothing of what was said.
    --bodies     Also what was said: bodies, salts and blobs.
    --seal FILE  The seal to go under; the newest by default.
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
    without: --json
"""
COMMANDS = {
    "key": command_group(_KEY, [_new, _rotate, _show]),
    "seal": command_verb(_SEAL, _seal),
    "export": command_verb(_EXPORT, _export),
    "prove": command_verb(_PROVE, _prove),
    "actor": command_group(_ACTOR, [_enrol, _admit, _revoke, _list]),
}
