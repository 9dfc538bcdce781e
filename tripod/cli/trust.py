"""``tripod key`` and ``tripod seal``: who vouches for the ledger's head, and that somebody does.

The exit codes are those of the other verbs.
"""

from __future__ import annotations

import os

import click

from tripod.cli.door import Door, team_option
from tripod.cli.passphrases import WITH, asked, fresh, once
from tripod.errors import NotFoundError
from tripod.output import emit, emit_json
from tripod.team.open import opened
from tripod.trust import keys
from tripod.trust import seal as sealing


@click.group(cls=Door)
def key() -> None:
    """Make, show and replace the key that seals this ledger.

    Private keys lie outside the team directory, in $TRIPOD_HOME or ~/.config/tripod. Who has one
    can seal any history; keep it where the agents cannot read it if you can.
    """


@key.command()
@team_option
@click.option("--passphrase", is_flag=True, help=WITH)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def new(*, team_path: str | None, passphrase: bool, as_json: bool) -> None:
    """Make the ledger's first key, put it in force and seal the ledger."""
    with opened(team_path) as team:
        with team.act():
            pass
        vkey = sealing.new_key(team, fresh() if passphrase else None)
        _tell(vkey, as_json=as_json)


@key.command()
@team_option
@click.option("--passphrase", is_flag=True, help=WITH)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def rotate(*, team_path: str | None, passphrase: bool, as_json: bool) -> None:
    """Put a new key in the place of the one in force; both sign the change, and it is logged.

    The old private key is gone afterwards.
    """
    with opened(team_path) as team:
        with team.act():
            pass
        secret = fresh() if passphrase else None
        vkey = sealing.rotate_key(team, once(asked), secret)
        _tell(vkey, as_json=as_json)


def _tell(vkey: str, *, as_json: bool) -> None:
    path = keys.key_path(sealing.name_of(vkey))
    if as_json:
        emit_json([{"private": path, "vkey": vkey}])
        return
    emit([vkey, f"The private key is in {path}"])


@key.command()
@team_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def show(*, team_path: str | None, as_json: bool) -> None:
    """Show the key in force, where its private part is, and the newest seal."""
    with opened(team_path) as team:
        team.refresh()
        db = team.store.db
        vkey, last = sealing.in_force(db), sealing.newest(db)
        earlier = [row[0] for row in db.execute("SELECT vkey FROM keys ORDER BY seq")]
    if vkey is None:
        raise NotFoundError("this ledger has no key: `tripod key new` makes one")
    path = keys.key_path(sealing.name_of(vkey))
    here = os.path.exists(path)
    encrypted = here and keys.is_encrypted(path)
    if as_json:
        value: dict[str, object] = {
            "earlier": [other for other in earlier if other != vkey],
            "encrypted": encrypted,
            "private": path if here else None,
            "sealed": None if last is None else last.size,
            "vkey": vkey,
        }
        emit_json([value])
        return
    how = "encrypted" if encrypted else "not encrypted"
    sealed = "Nothing is sealed yet" if last is None else f"Sealed: the first {last.size} entries"
    emit([
        vkey,
        f"The private key is in {path}, {how}" if here else "The private key is not on this host",
        sealed,
    ])  # fmt: skip


@click.command()
@team_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def seal(*, team_path: str | None, as_json: bool) -> None:
    """Sign the ledger's head and record that; print the seal, a note of C2SP's form.

    Where nothing was recorded since the newest seal, that one is printed. Seals are also made at
    each decision and each checkpoint, every 256 entries, and where the newest is an hour old.
    """
    with opened(team_path) as team:
        with team.act():
            pass
        note = sealing.seal_now(team, once(asked))
    if as_json:
        emit_json([{"note": note, "size": int(note.split("\n")[1])}])
        return
    emit(note.removesuffix("\n").split("\n"))
