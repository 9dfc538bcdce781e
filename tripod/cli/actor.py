"""``tripod actor``: keys with which actors sign what they do. Exit codes as of the other verbs."""

from __future__ import annotations

import os

import click

from tripod.cli.door import HANDLE, TEXT, Door, team_option
from tripod.cli.passphrases import WITH, asked, fresh, once
from tripod.inputs import text_argument
from tripod.output import emit, emit_json
from tripod.team.open import opened
from tripod.trust import actors as authors


@click.group(cls=Door)
def actor() -> None:
    """Give actors keys, with which they sign what they do; end such keys, and list them.

    From its enrolment to its revocation every entry of the handle must be signed, and is, by the
    commands that act as it where the private key is. Private keys lie outside the team directory,
    in $TRIPOD_HOME or ~/.config/tripod.
    """


@actor.command()
@team_option
@click.argument("handle", type=HANDLE)
@click.option("--passphrase", is_flag=True, help=WITH)
@click.option(
    "--request",
    "asking",
    is_flag=True,
    help="Record nothing; print a note for `admit`, by whoever may put the key in force.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def enrol(
    *, team_path: str | None, handle: str, passphrase: bool, asking: bool, as_json: bool
) -> None:
    """Make a key for HANDLE and put it in force, in the place of an older one.

    It is vouched for by the handle's key before it, or by the one that seals the ledger. Where the
    handle never had one and the ledger has none either, the first to come has the handle.
    """
    with opened(team_path) as team:
        with team.act():
            pass
        secret = fresh() if passphrase else None
        if asking:
            note = authors.request(team, handle, secret)
            if as_json:
                emit_json([{"note": note}])
            else:
                emit(note.removesuffix("\n").split("\n"))
            return
        vkey = authors.enrol(team, handle, once(asked), secret)
    _tell(vkey, as_json=as_json)


@actor.command()
@team_option
@click.argument("file", type=TEXT)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def admit(*, team_path: str | None, file: str, as_json: bool) -> None:
    """Put the key in force that the note in FILE (- for stdin) asks for: see `enrol --request`.

    The one who asks should have told you the key's digits by another way: the note proves that
    they have the key, and not that they are who they say.
    """
    note = text_argument(None, file, "note")
    with opened(team_path) as team:
        with team.act():
            pass
        vkey = authors.admit(team, note, once(asked))
    _tell(vkey, as_json=as_json)


def _tell(vkey: str, *, as_json: bool) -> None:
    path = authors.key_path(vkey)
    here = os.path.exists(path)
    if as_json:
        emit_json([{"private": path if here else None, "vkey": vkey}])
        return
    emit([vkey, f"The private key is in {path}" if here else "The private key is not on this host"])


@actor.command()
@team_option
@click.argument("handle", type=HANDLE)
@click.option("--reason", type=TEXT, required=True, help="Why; it stays in the ledger.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def revoke(*, team_path: str | None, handle: str, reason: str, as_json: bool) -> None:
    """End the key of HANDLE: what it signs from here on is a finding.

    Nobody has to sign as HANDLE from then on; to keep others from using the handle, enrol anew.
    """
    with opened(team_path) as team:
        with team.act():
            pass
        vkey = authors.revoke(team, handle, reason, once(asked))
    if as_json:
        emit_json([{"vkey": vkey}])
        return
    emit([f"Revoked: {vkey}"])


@actor.command(name="list")
@team_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object a handle and line.")
def list_(*, team_path: str | None, as_json: bool) -> None:
    """List the handles that have or had a key."""
    with opened(team_path) as team:
        team.refresh()
        found = authors.listed(team.store.db)
    here = {one.vkey: os.path.exists(authors.key_path(one.vkey)) for one in found}
    if as_json:
        emit_json(one._asdict() | {"here": here[one.vkey]} for one in found)
        return
    for one in found:
        state = f"{'revoked at' if one.revoked else 'in force since'} entry {one.since}"
        where = "on this host" if here[one.vkey] else "not on this host"
        emit([f"{one.handle:<24} {state}, private key {where}", f"  {one.vkey}"])
    if not found:
        emit(["No actor has a key: `tripod actor enrol HANDLE` makes one"])
