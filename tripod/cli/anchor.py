"""``tripod anchor`` and ``witness``: have others remember the newest seal, and remember theirs."""

import os
import sys
from collections.abc import Sequence

from tripod.cli.commands import CommandCall, command_group
from tripod.cli.params import NumberParam, witness_key_param
from tripod.errors import BadArgumentError, LedgerError, RefusedError, TripodError, UnreachableError
from tripod.ledger.tlog.note import VerifierKey
from tripod.ledger.tlog.witness import MAX_REQUEST, SIZE_TYPE
from tripod.output import emit_bytes, format_utc, one_line, remark
from tripod.team.team import Team
from tripod.trust import anchor as anchoring
from tripod.trust.keys import LockedKeyError
from tripod.trust.seal import seal
from tripod.trust.witness import WitnessFolder

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
    "anchor": command_group(_ANCHOR, _WORKS, {"S": NumberParam(1, 600)}),
    "witness": command_group(_WITNESS, _WITNESS_WORKS),
}
