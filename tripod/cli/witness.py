"""``tripod witness``: run a witness for the ledgers of others. It needs no team and no ledger."""

from __future__ import annotations

import sys

import click

from tripod.cli.door import TEXT, Door, Number
from tripod.errors import RefusedError
from tripod.output import emit, emit_bytes, emit_json, format_utc, one_line, remark
from tripod.witness.folder import WitnessFolder

_PORT = 8459
_DONE = 200


@click.group(cls=Door)
def witness() -> None:
    """Run a witness: it cosigns what continues what it saw, and refuses forks and rollbacks.

    A witness is a FOLDER of its own, kept by somebody whom the teams cannot overrule, best on
    another machine.
    """


@witness.command()
@click.argument("folder")
@click.option(
    "--name",
    required=True,
    type=TEXT,
    help="Its name, unique for ever, as a URL without https://, such as example.org/witness.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def new(*, folder: str, name: str, as_json: bool) -> None:
    """Make a witness with a key of its own in FOLDER, and print the public key (its vkey)."""
    vkey = WitnessFolder.begin(folder, name).key().verifier().format()
    if as_json:
        emit_json([{"vkey": vkey}])
    else:
        emit([vkey])


@witness.command()
@click.argument("folder")
@click.argument("vkey", type=TEXT)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def trust(*, folder: str, vkey: str, as_json: bool) -> None:
    """Have it cosign the log whose key is VKEY (`tripod key show` prints a team's)."""
    key = WitnessFolder(folder).trust(vkey)
    if as_json:
        emit_json([{"origin": key.name, "vkey": key.format()}])
    else:
        emit([f"Known now: {key.name} ({key.key_id.hex()})"])


@witness.command()
@click.argument("folder")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def show(*, folder: str, as_json: bool) -> None:
    """Print its public key, and what it last cosigned for each log that it knows."""
    place = WitnessFolder(folder)
    vkey, seen = place.key().verifier().format(), place.seen()
    if as_json:
        logs = [
            {
                "origin": log.name,
                "root": None if seal is None else seal.root.hex(),
                "size": None if seal is None else seal.size,
                "time": None if seal is None else seconds,
                "vkey": log.format(),
            }
            for log, seal, seconds in seen
        ]
        emit_json([{"logs": logs, "vkey": vkey}])
        return
    emit([vkey])
    for log, seal, seconds in seen:
        told = (
            "nothing cosigned yet"
            if seal is None
            else f"{seal.size} entries, root {seal.root.hex()}, {format_utc(seconds)}"
        )
        emit([f"  {one_line(log.name)} ({log.key_id.hex()}): {told}"])


@witness.command()
@click.argument("folder")
def sign(*, folder: str) -> None:
    """Answer one request: read it from standard input, print the cosignature.

    The same bytes as over HTTP, through a file, a mail or a CI step: `tripod anchor ask` makes
    them, `tripod anchor take` takes the answer in.
    """
    from tripod.ledger.tlog.witness import MAX_REQUEST, SIZE_TYPE

    data = b"" if sys.stdin is None else sys.stdin.buffer.read(MAX_REQUEST + 1)
    answer = WitnessFolder(folder).answer(data)
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


@witness.command()
@click.argument("folder")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=Number(0, 65535),
    default=_PORT,
    show_default=True,
    help="The port; 0 for any free one.",
)
def serve(*, folder: str, host: str, port: int) -> None:
    """Answer requests over HTTP until stopped; one line for each on standard error.

    POST /add-checkpoint, GET /<sha256 of the origin>/checkpoint (C2SP tlog-witness). It may be
    killed at any moment.
    """
    import signal

    from tripod.witness.server import WitnessServer

    place = WitnessFolder(folder)
    vkey, logs = place.key().verifier().format(), place.logs()
    with WitnessServer(place, host, port, remark) as server:
        emit([f"{vkey} listens on {server.url}"])
        if not logs:
            remark(f"it knows no log yet, and refuses all: `tripod witness trust {folder} VKEY`")
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            remark("stopped")
