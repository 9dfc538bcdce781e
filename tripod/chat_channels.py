"""Finds the channel or archive that an act or a reader names."""

from __future__ import annotations

from collections.abc import Sequence

from projections import CHAT
from projections.formats import chat as format_
from projections.live_lines import Span, span_of
from tripod.act import Act
from tripod.errors import BadArgumentError, NotFoundError, RefusedError
from tripod.team import Team

_NAMES = "SELECT channel FROM channels WHERE closed = 0 ORDER BY 1"


def channel_name(name: str, fronts: Sequence[str] = ()) -> str:
    """The channel that an argument names, with or without ``.chat``.

    ``fronts`` are the folders that were added, of which it may be: ``<name>/``.

    Raises:
        BadArgumentError: it cannot be a channel.
    """
    channel = name.removesuffix(".chat")
    front = channel[: channel.rfind("/") + 1]
    problem = format_.valid_channel(channel[len(front) :] if front in fronts else channel)
    if problem is not None:
        raise BadArgumentError(problem)
    return channel


def missing(team: Team, channel: str) -> NotFoundError:
    """There is no such channel; names those that there are."""
    known = [name for (name,) in team.store.db.execute(_NAMES)]
    have = f"there are: {', '.join(known)}" if known else "there is none yet"
    return NotFoundError(f"no chat {channel}; {have} (`tripod chat create {channel}` makes it)")


def span(team: Team, name: str) -> Span:
    """What a file shows: the live one of a channel, or an archive.

    Raises:
        BadArgumentError: it can be neither.
        NotFoundError: there is no such file.
    """
    stem = name.removesuffix(".chat")
    found = span_of(team.store.db, stem)
    if found is None:
        if format_.parse_archive_name(stem) is None:
            channel_name(stem, team.disk.places.chats())
        raise missing(team, stem)
    return found


def live_of(act: Act, channel: str) -> Span | None:
    """What a channel's live file shows, in the act; None where there is no such channel."""
    row = act.transaction.tables.execute(
        "SELECT live_from, lines FROM channels WHERE channel = ? AND closed = 0", (channel,)
    ).fetchone()
    return None if row is None else Span(channel, *row)


def _check_folder(team: Team, stem: str) -> None:
    """Refuse to write into an added folder that is not there."""
    front = stem[: stem.rfind("/")] if "/" in stem else ""
    if f"{CHAT.folder}/{front}" in team.disk.places.missing():
        raise RefusedError(
            f"{team.disk.full(f'{CHAT.folder}/{front}')} is no folder that can be read, and {stem} "
            "is kept there: put it back; or, if it is lost, `tripod rebuild` writes it anew"
        )


def writable(team: Team, name: str) -> tuple[str, str]:
    """The channel and its path, for an act on it; nothing is left behind where there is none.

    Raises:
        BadArgumentError: it cannot be a channel.
        NotFoundError: neither the ledger nor the folder has it.
        RefusedError: it is an archive.
    """
    stem = name.removesuffix(".chat")
    _check_folder(team, stem)
    db = team.store.db
    sql = "SELECT 1 FROM channels WHERE channel = ? AND closed = 0"
    if db.execute(sql, (stem,)).fetchone() is None:
        row = db.execute("SELECT channel FROM archives WHERE archive = ?", (stem,)).fetchone()
        if row is not None:
            raise RefusedError(f"{stem} is an archive and never changes; the channel is {row[0]}")
        stem = channel_name(stem, team.disk.places.chats())
        if not team.disk.is_file(f"{CHAT.folder}/{stem}.chat"):
            raise missing(team, stem)
    return stem, f"{CHAT.folder}/{stem}.chat"
