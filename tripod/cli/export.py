"""``tripod export`` and ``prove``: files that others can check without us."""

from __future__ import annotations

import os

from tripod.cli.commands import Call, verb_of
from tripod.errors import BadArgumentError
from tripod.output import emit_bytes
from tripod.projections import Disk, File


def _export(call: Call) -> None:
    from tripod.trust import export as exports
    from tripod.trust.proof import seal_for_export, seal_from

    with call.team() as team, call.progress():
        note = seal_for_export(team) if call.seal is None else seal_from(call.seal)[0]
        done = exports.export(team.store.path, call.directory, note, bodies=call.bodies)
    files = f"{done.written} files written, {done.removed} removed"
    line = f"Exported: {done.size} entries to {os.path.join(call.directory, '')} ({files})"
    call.answer(done._asdict(), [line])


def _prove(call: Call) -> None:
    from tripod.trust import proof as proofs
    from tripod.trust.proof import seal_for_export, seal_from

    seq, old = call.seq, call.consistency
    if (seq is None) == (old is None) or (call.body and seq is None):
        raise BadArgumentError(
            "give the number of an entry (with --body, if you like), or --consistency OLD"
        )
    with call.team() as team:
        note = seal_for_export(team) if call.seal is None else seal_from(call.seal)[0]
        if old is not None:
            data = proofs.prove_growth(team.store.path, seal_from(old)[1], note)
        else:
            data = proofs.prove_entry(team.store.path, seq or 0, note, body=call.body)
    if call.out is None:
        emit_bytes(data)
        return
    folder, name = os.path.split(os.path.abspath(call.out))
    Disk(folder).write(name, File(data, 0o600 if call.body else 0o644))


# The table -------------------------------------------------------------------------------------

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
COMMANDS = {"export": verb_of(_EXPORT, _export), "prove": verb_of(_PROVE, _prove)}
