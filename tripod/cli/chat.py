"""``tripod chat``: the channels. Exit codes as documented for it (spec: nbs-compat C1)."""

from __future__ import annotations

import click

from tripod import chat as acts
from tripod.cli.door import HANDLE, TEXT, Door, Number, opened, team_option, text_argument
from tripod.cli.output import emit, emit_json, format_utc, hanging
from tripod.errors import BadArgumentError

__all__ = ["chat"]


@click.group(cls=Door)
def chat() -> None:
    """Send messages to channels, read and search them.

    Exit codes: 0 ok, 1 general error, 2 no such chat or team directory, 4 bad arguments.
    """


@chat.command()
@team_option
@click.argument("channel", type=TEXT)
@click.option("--as", "actor", type=HANDLE, metavar="HANDLE", help="Who begins it.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def create(*, team_path: str | None, channel: str, actor: str, as_json: bool) -> None:
    """Begin a channel; its file's path is printed."""
    with opened(team_path) as team:
        path = acts.create(team, channel, actor=actor or "unknown")
    if as_json:
        emit_json([{"path": path}])
    else:
        emit([f"Created: {path}"])


@chat.command()
@team_option
@click.argument("channel", type=TEXT)
@click.argument("handle", type=TEXT)
@click.argument("text", type=TEXT, required=False)
@click.option("--file", metavar="FILE", help="Read the text from FILE, or - for stdin.")
@click.option("--human", is_flag=True, help="A person says it: publish human-input as well.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def send(
    *,
    team_path: str | None,
    channel: str,
    handle: str,
    text: str | None,
    file: str | None,
    human: bool,
    as_json: bool,
) -> None:
    """Say TEXT in CHANNEL as HANDLE. A TEXT that begins with -- goes behind a --."""
    if text is None and file is None:
        message = "text: none given (as argument, or by --file)"
        raise BadArgumentError(message)
    said = text_argument(text, file, "text")
    with opened(team_path) as team:
        sent = acts.send(team, channel, handle, said, human=human)._asdict()
    if as_json:
        del sent["text"]  # who sent it has it
        emit_json([sent])


def _lines(messages: list[acts.Message], *, numbered: bool) -> list[str]:
    lines = []
    for message in messages:
        when = f"[{format_utc(message.time)}] " if message.time else ""
        number = f"[{message.number}] " if numbered else ""
        lines.append(f"{number}{when}{message.handle}: {hanging(message.text)}")
    return lines


@chat.command()
@team_option
@click.argument("channel", type=TEXT)
@click.option("--last", type=Number(), metavar="N", help="Only the newest N messages.")
@click.option(
    "--since", type=HANDLE, metavar="HANDLE", help="Only those after HANDLE's newest message."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a message and line.")
def read(
    *, team_path: str | None, channel: str, last: int | None, since: str | None, as_json: bool
) -> None:
    """Print a channel's messages, oldest first."""
    with opened(team_path) as team:
        team.refresh()
        found = acts.messages(team, channel, last=last, since=since)
    if as_json:
        emit_json(message._asdict() for message in found)
    else:
        emit(_lines(found, numbered=False))


@chat.command()
@team_option
@click.argument("channel", type=TEXT)
@click.argument("pattern", type=TEXT)
@click.option("--handle", type=HANDLE, metavar="HANDLE", help="Only messages of HANDLE.")
@click.option("--include-archives", is_flag=True, help="Also what was split off into archives.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a message and line.")
def search(
    *,
    team_path: str | None,
    channel: str,
    pattern: str,
    handle: str | None,
    include_archives: bool,
    as_json: bool,
) -> None:
    """Print messages that hold PATTERN as text; upper and lower case are alike."""
    with opened(team_path) as team:
        team.refresh()
        found = list(acts.search(team, channel, pattern, handle=handle, archives=include_archives))
    if as_json:
        emit_json(message._asdict() for message in found)
    else:
        emit(_lines(found, numbered=True) or ["No matches found."])


@chat.command()
@team_option
@click.argument("channel", type=TEXT)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a handle and line.")
def participants(*, team_path: str | None, channel: str, as_json: bool) -> None:
    """Print who spoke, and how many messages each sent."""
    with opened(team_path) as team:
        team.refresh()
        found = acts.participants(team, channel)
    if as_json:
        emit_json({"count": count, "handle": handle} for handle, count in found)
    else:
        emit(f"{handle:<24} {count} messages" for handle, count in found)
