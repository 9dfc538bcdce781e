"""``tripod chat``: the channels. Exit codes as documented for it (spec: nbs-compat C1)."""

from __future__ import annotations

import time

import click

from tripod import chat_lines as shown
from tripod.bus.waiting import Watch
from tripod.chat import keep as chat_keep
from tripod.chat import read as chat_read
from tripod.chat import writer as acts
from tripod.cli.door import HANDLE, TEXT, Door, Number, team_option
from tripod.errors import BadArgumentError
from tripod.inputs import text_argument
from tripod.output import emit, emit_done, emit_json, hanging
from tripod.projections import CHAT
from tripod.team.open import opened
from tripod.when import moment

MAX_INDEX = 2**31 - 2
MAX_WAIT = 10_000_000  # seconds
LOOK = 1.0  # seconds, where nothing tells that something happened


@click.group(cls=Door)
def chat() -> None:
    """Send messages to channels, read and search them.

    Exit codes: 0 ok, 1 general error, 2 no such chat or team directory, 3 nothing came in time,
    4 bad arguments.
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
        raise BadArgumentError("text: none given (as argument, or by --file)")
    said = text_argument(text, file, "text")
    with opened(team_path) as team:
        sent = acts.send(team, channel, handle, said, human=human)._asdict()
    if as_json:
        del sent["text"]  # who sent it has it
        emit_json([sent])


@chat.command()
@team_option
@click.argument("channel", type=TEXT)
@click.option("--last", type=Number(), metavar="N", help="Only the newest N messages.")
@click.option(
    "--since", type=HANDLE, metavar="HANDLE", help="Only those after HANDLE's newest message."
)
@click.option(
    "--unread", type=HANDLE, metavar="HANDLE", help="Only what HANDLE has not read; then it has."
)
@click.option("--after", type=TEXT, metavar="TIME", help="Only those of TIME or later.")
@click.option("--before", type=TEXT, metavar="TIME", help="Only those of TIME or earlier.")
@click.option("--offset", type=Number(), metavar="N", help="Without the newest N.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a message and line.")
def read(
    *,
    team_path: str | None,
    channel: str,
    last: int | None,
    since: str | None,
    unread: str | None,
    after: str | None,
    before: str | None,
    offset: int | None,
    as_json: bool,
) -> None:
    """Print a channel's messages, oldest first.

    A TIME is 30s, 5m, 2h or 1d ago, an epoch, or 2026-02-12T14:00:00. What is unread is shown from
    archives as well; only what was shown is read then. --unread goes before --since, and of what
    they leave TIME, --offset and --last choose in this order.
    """
    window = chat_read.Window(last, _moment(after, "after"), _moment(before, "before"), offset or 0)
    with opened(team_path) as team:
        team.refresh()
        if unread is None:
            found = chat_read.messages(team, channel, window=window, since=since)
        else:
            found = chat_read.unread(team, channel, unread, window)
            _show(found, as_json=as_json)  # what cannot be shown is not read
            chat_keep.mark_read(team, channel, unread, [message.number for message in found])
    if unread is None:
        _show(found, as_json=as_json)


def _moment(text: str | None, option: str) -> int | None:
    return None if text is None else moment(text, f"--{option}")


def _show(found: list[chat_read.ChatMessage], *, as_json: bool) -> None:
    if as_json:
        emit_json(shown.as_json(found))
    else:
        emit(shown.as_lines(found))


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
        found = list(
            chat_read.search(team, channel, pattern, handle=handle, archives=include_archives)
        )
    if as_json:
        emit_json(shown.as_json(found))
    else:
        lines = zip(found, shown.as_lines(found), strict=True)
        emit([f"[{at.number}] {line}" for at, line in lines] or ["No matches found."])


@chat.command()
@team_option
@click.argument("channel", type=TEXT)
@click.argument("handle", type=HANDLE)
@click.option(
    "--timeout", type=Number(0, MAX_WAIT), default=10, metavar="SECONDS", show_default=True,
    help="How long to wait.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="One JSON object a message and line.")
@click.pass_context
def poll(
    ctx: click.Context,
    *,
    team_path: str | None,
    channel: str,
    handle: str,
    timeout: int,
    as_json: bool,
) -> None:
    """Wait until others than HANDLE send messages, and print all that came.

    Exit code 3 if nothing came in time. What was there before is not waited for: read --unread.
    """
    until = time.monotonic() + timeout
    with opened(team_path) as team, Watch([team.disk.full(CHAT.folder)], every=LOOK) as watch:
        found = chat_read.poll(team, channel, handle, lambda: until - time.monotonic(), watch.wait)
    _show(found, as_json=as_json)
    if not found:
        ctx.exit(3)


@chat.command()
@team_option
@click.argument("handle", type=HANDLE)
@click.option("--json", "as_json", is_flag=True, help="One JSON object an event and line.")
def mentions(*, team_path: str | None, handle: str, as_json: bool) -> None:
    """Print pending events that address HANDLE, most urgent first; `tripod bus ack` ends them."""
    with opened(team_path) as team:
        team.refresh()
        found = chat_read.addressed(team, handle)
    if as_json:
        emit_json(event._asdict() for event in found)
    else:
        emit(f"[{event.priority}] {event.event}\n    {hanging(event.payload)}" for event in found)


@chat.command()
@team_option
@click.argument("channel", type=TEXT)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a handle and line.")
def participants(*, team_path: str | None, channel: str, as_json: bool) -> None:
    """Print who spoke, and how many messages each sent."""
    with opened(team_path) as team:
        team.refresh()
        found = chat_read.participants(team, channel)
    if as_json:
        emit_json({"count": count, "handle": handle} for handle, count in found)
    else:
        emit(f"{handle:<24} {count} messages" for handle, count in found)


@chat.command()
@team_option
@click.argument("channel", type=TEXT)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def count(*, team_path: str | None, channel: str, as_json: bool) -> None:
    """Print how many messages a channel's file shows."""
    with opened(team_path) as team:
        team.refresh()
        number = chat_read.count(team, channel)
    emit_done({"count": number}, [str(number)], as_json=as_json)


@chat.command()
@team_option
@click.argument("channel", type=TEXT)
@click.option("--keep", type=Number(), metavar="N", default=chat_keep.ROTATE_COUNT,
show_default=True,
              help="How many of the newest lines stay.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def archive(*, team_path: str | None, channel: str, keep: int, as_json: bool) -> None:
    """Split a channel's older messages off into an archive now."""
    with opened(team_path) as team:
        number, path = chat_keep.archive(team, channel, keep)
    said = f"Archived {number} message(s) to {path}" if number else "No messages to archive"
    emit_done({"archived": number} | ({"path": path} if number else {}), [said], as_json=as_json)


@chat.command("cursor-set")
@team_option
@click.argument("channel", type=TEXT)
@click.argument("handle", type=HANDLE)
@click.argument("index", type=Number(0, MAX_INDEX))
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def cursor_set(
    *, team_path: str | None, channel: str, handle: str, index: int, as_json: bool
) -> None:
    """Say that HANDLE has read the file up to its message INDEX, counted from 0, and no more."""
    with opened(team_path) as team:
        chat_keep.set_position(team, channel, handle, index)
        left = len(chat_read.unread(team, channel, handle))
    if as_json:
        emit_json([{"handle": handle, "unread": left}])


@chat.command()
@team_option
@click.argument("channel", type=TEXT)
@click.option("--after", type=TEXT, required=True, metavar="TIME", help="From when on.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("--as", "actor", type=HANDLE, metavar="HANDLE", help="Who asks for it.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def delete(
    *,
    team_path: str | None,
    channel: str,
    after: str,
    dry_run: bool,
    actor: str | None,
    as_json: bool,
) -> None:
    """Have a channel's file forget its messages from TIME on.

    The ledger forgets nothing, and says who asked for it (`tripod redact` erases a text).
    """
    since = moment(after, "--after")
    with opened(team_path) as team:
        done = chat_keep.delete(team, channel, since, actor=actor or "unknown", dry_run=dry_run)
    said = shown.deletion_line(done, after, dry_run=dry_run)
    emit_done(done._asdict(), [said], as_json=as_json)
