"""``tripod anchor``: have others remember the newest seal."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from tripod.cli.door import TEXT, Door, Number, team_option
from tripod.errors import BadArgumentError, TripodError, UnreachableError
from tripod.output import emit, emit_bytes, emit_json, format_utc, one_line, remark
from tripod.team.open import opened

if TYPE_CHECKING:
    from tripod.ledger.tlog.note import VerifierKey
    from tripod.team.team import Team
    from tripod.trust.anchor import Ask, Receipt

_TIMEOUT = 20

_key_option = click.option(
    "--key",
    "vkey",
    type=TEXT,
    metavar="VKEY",
    help="The witness's public key; by default what .nbs/policy.tlog says.",
)
_timeout_option = click.option(
    "--timeout",
    type=Number(1, 600),
    default=_TIMEOUT,
    show_default=True,
    help="Seconds to wait for an answer.",
)
_json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")


@click.group(cls=Door)
def anchor() -> None:
    """Have others remember the newest seal, and log what they answer.

    Each round seals first what is not sealed yet. Exit code 1: refused, read why at once (fork,
    rollback). Exit code 3: no usable answer, try again.
    """


@anchor.command()
@team_option
@click.argument("target", type=TEXT, required=False)
@_key_option
@_timeout_option
@_json_option
def witness(
    *, team_path: str | None, target: str | None, vkey: str | None, timeout: int, as_json: bool
) -> None:
    """Have a witness cosign the seal. TARGET is its URL, or its folder on this machine.

    Without, every witness is asked that .nbs/policy.tlog names with a URL.
    """
    from tripod.trust import anchor as anchoring

    with opened(team_path) as team:
        team.refresh()
        asked = _roads(team, target, vkey, timeout)
        _seal_first(team)
        failed: list[TripodError] = []
        for where, ask, keys in asked:
            try:
                _tell(anchoring.witness(team, ask, keys, where), as_json=as_json)
            except TripodError as error:
                failed.append(error)
    # A refusal tells more than a silence, and all are told.
    failed.sort(key=lambda one: isinstance(one, UnreachableError), reverse=True)
    for one in failed[:-1]:
        remark(str(one))
    if failed:
        raise failed[-1]


@anchor.command()
@team_option
@click.argument("url", type=TEXT)
@click.option(
    "--ca",
    "authorities",
    required=True,
    metavar="FILE",
    help="Certificates (PEM) of the authorities that you trust.",
)
@_timeout_option
@_json_option
def tsa(*, team_path: str | None, url: str, authorities: str, timeout: int, as_json: bool) -> None:
    """Have the timestamp authority (RFC 3161) at URL stamp the seal; needs the extra `tsa`."""
    from tripod.trust.tsa import stamp

    with opened(team_path) as team:
        team.refresh()
        _seal_first(team)
        _tell(stamp(team, url, authorities, timeout), as_json=as_json)


@anchor.command()
@team_option
@click.option(
    "--ref",
    "name",
    type=TEXT,
    default="seals",
    show_default=True,
    metavar="NAME",
    help="The seal is committed to refs/tripod/NAME.",
)
@click.option("--push", "remote", type=TEXT, metavar="REMOTE", help="Give the ref to this remote.")
@_json_option
def git(*, team_path: str | None, name: str, remote: str | None, as_json: bool) -> None:
    """Commit the seal to a ref of its own in the repository around the team.

    The record's seal, committed with the work, needs no such ref. This remembers a seal between two
    commits; branches, index and files are left alone. `tripod verify` finds it by itself.
    """
    from tripod.trust import anchor as anchoring

    ref = anchoring.ref_of(name)
    with opened(team_path) as team:
        team.refresh()
        _seal_first(team)
        got = anchoring.remember(team, ref)
        if got is not None:
            _tell(got, as_json=as_json)
        else:
            remark(f"the newest seal stands on {ref} already")
        if remote is not None:
            anchoring.push(team, ref, remote)


@anchor.command()
@team_option
@click.argument("name", type=TEXT, default="")
@click.option("--old", type=Number(), help="How many entries the witness has cosigned.")
def ask(*, team_path: str | None, name: str, old: int | None) -> None:
    """Print what a witness is to be asked, for `tripod witness sign` where it is.

    NAME is the witness's, as in its key: what it cosigned last is looked up in the ledger.
    """
    from tripod.trust import anchor as anchoring

    with opened(team_path) as team:
        team.refresh()
        _seal_first(team)
        sealed = anchoring.newest_seal(team)
        size = anchoring.last_size(team, name) if old is None else old
        emit_bytes(anchoring.request_for(team, sealed, size))


@anchor.command()
@team_option
@click.argument("file")
@_key_option
@_json_option
def take(*, team_path: str | None, file: str, vkey: str | None, as_json: bool) -> None:
    """Take in what a witness answered, from FILE or - for standard input."""
    from tripod.trust import anchor as anchoring

    try:
        with click.open_file(file, "rb") as stream:
            body = stream.read(anchoring.MAX_ANSWER)
    except OSError as error:
        raise BadArgumentError(f"{file}: {error.strerror or error}") from error
    with opened(team_path) as team:
        team.refresh()
        keys = _keys(team, vkey, None)
        _tell(anchoring.take_late(team, body, keys, file), as_json=as_json)


@anchor.command(name="list")
@team_option
@_json_option
def list_(*, team_path: str | None, as_json: bool) -> None:
    """List the receipts that the ledger holds, the newest last."""
    with opened(team_path) as team:
        team.refresh()
        rows = team.store.db.execute(
            "SELECT seq, method, name, size, root FROM anchors ORDER BY seq"
        ).fetchall()
    if as_json:
        names = ("seq", "method", "name", "size", "root")
        emit_json(dict(zip(names, row, strict=True)) for row in rows)
    else:
        emit(
            f"{seq:>7}  {method:<7}  {size:>7} entries  {root[:16]}  {one_line(name)}"
            for seq, method, name, size, root in rows
        )


@anchor.command()
@team_option
@click.argument("seq", type=TEXT)
@click.argument("folder")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def receipt(*, team_path: str | None, seq: str, folder: str, as_json: bool) -> None:
    """Write the receipt of entry SEQ into FOLDER, for other tools to check.

    A witness: receipt.note, the seal with its signatures and the cosignature (C2SP). A timestamp:
    receipt.tsr, and seal.txt, which it is about (`openssl ts -verify -in receipt.tsr -data
    seal.txt -CAfile FILE`).
    """
    from tripod.trust import anchor as anchoring

    number = Number().convert(seq, None, None)
    with opened(team_path) as team:
        team.refresh()
        files = anchoring.receipt_files(team, number)
    os.makedirs(folder, exist_ok=True)
    paths = {os.path.join(folder, name): data for name, data in files.items()}
    for path, data in paths.items():
        with open(path, "wb") as stream:
            stream.write(data)
    if as_json:
        emit_json([{"files": list(paths)}])
    else:
        emit(one_line(path) for path in paths)


# Within ----------------------------------------------------------------------------------------


def _seal_first(team: Team) -> None:
    """Seal what is not sealed yet, where this host has the key."""
    from tripod.trust.keys import LockedKeyError
    from tripod.trust.seal import seal

    try:
        seal(team, "asked")
    except LockedKeyError as error:
        team.warnings.append(f"not sealed anew, the newest seal is anchored: {error}")


def _roads(
    team: Team, target: str | None, vkey: str | None, timeout: int
) -> list[tuple[str, Ask, Sequence[VerifierKey]]]:
    """Where to ask, how, and whose answer counts."""
    from tripod.trust import anchor as anchoring

    if target is None:
        if vkey is not None:
            raise BadArgumentError("--key goes with a URL or a folder")
        known = [w for w in anchoring.known_witnesses(team).witnesses if w.url is not None]
        if not known:
            raise BadArgumentError(
                f"which witness? Give its URL or folder; or name it in {team.root}/"
                f"{anchoring.POLICY} with a line `witness NAME VKEY URL`"
            )
        return [(w.url, anchoring.ask_url(w.url, timeout), [w.key]) for w in known if w.url]
    if "://" in target:
        return [(target, anchoring.ask_url(target, timeout), _keys(team, vkey, target))]
    from tripod.witness.folder import WitnessFolder

    folder = WitnessFolder(target)
    own = folder.key().verifier()
    keys = [own] if vkey is None else _keys(team, vkey, None)
    return [(target, folder.answer, keys)]


def _keys(team: Team, vkey: str | None, url: str | None) -> Sequence[VerifierKey]:
    """Whose cosignature counts: the key that was given, or those that the policy names."""
    from tripod.cli.vkeys import witness_key
    from tripod.trust import anchor as anchoring

    if vkey is not None:
        return [witness_key(vkey)]
    known = anchoring.known_witnesses(team).witnesses
    keys = [w.key for w in known if url is None or (w.url or "").rstrip("/") == url.rstrip("/")]
    if not keys:
        raise BadArgumentError(
            f"whose signature counts? Say --key VKEY, or name the witness in {team.root}/"
            f"{anchoring.POLICY} with a line `witness NAME VKEY URL`"
        )
    return keys


def _tell(got: Receipt, *, as_json: bool) -> None:
    seal = got.seal
    if as_json:
        emit_json(
            [
                {
                    "method": got.method,
                    "name": got.name,
                    "root": seal.root.hex(),
                    "size": seal.size,
                    "time": got.seconds,
                }
            ]
        )
        return
    what = {"git": "Committed to", "tsa": "Stamped by", "witness": "Cosigned by"}[got.method]
    told = f"{what} {one_line(got.name)} at {format_utc(got.seconds)}"
    emit([f"{told}: {seal.size} entries, root {seal.root.hex()}"])
