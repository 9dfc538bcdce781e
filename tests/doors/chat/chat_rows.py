"""Every row of the documentation of ``nbs-chat``, as ``test_nbs_chat.py`` tries it.

Source: spec nbs-compat C1 to C3. A row runs on a copy of one chat of five messages.
"""

from typing import NamedTuple

from doors.chat.dropped_in import FILE
from story import BEGIN

from tripod.cli.chat import PROGRAMS
from tripod.cli.nbs import nbs_grammar

__all__ = [
    "ALL", "ANN", "BOB", "DEV", "GONE", "HELPS", "LAST", "MORE", "OTHERS", "READS", "REFUSED",
    "SEARCHES", "SENDS", "SLIPS", "TAKES", "TWO", "WRITES", "Row",
]  # fmt: skip

ANN = "[2020-09-13T12:26:40Z] ann: Alpha @bob\n"
BOB = "[2020-09-13T12:27:40Z] bob: beta\n"
TWO = "[2020-09-13T12:28:40Z] ann: two\n    lines\n"
DEV = "[2020-09-13T12:29:40Z] dev: ALPHABET\n"
LAST = "[2020-09-13T12:30:40Z] bob: done\n"
ALL = ANN + BOB + TWO + DEV + LAST
GONE = ".nbs/chat/gone.chat"
USAGE = "Usage: nbs-chat {}"


class Row(NamedTuple):
    """Arguments, the code, what is printed, and a part of what is remarked."""

    words: tuple[str, ...]
    code: int
    out: str = ""
    err: str = ""
    given: bytes = b""


READS = (
    Row(("read", FILE), 0, ALL),
    Row(("read", FILE, "--last=2"), 0, DEV + LAST),
    Row(("read", FILE, "--last=99"), 0, ALL),
    Row(("read", FILE, "--last=0"), 0),
    Row(("read", FILE, "--last="), 0),
    Row(("read", "--last=1", FILE), 0, LAST),
    Row(("read", FILE, "--last=-1"), 4, err="--last=-1"),
    Row(("read", FILE, "--last=two"), 4, err="--last=two"),
    Row(("read", FILE, "--last=2147483648"), 4, err="no whole number"),
    Row(("read", FILE, "--since=ann"), 0, DEV + LAST),
    Row(("read", FILE, "--since=bob"), 0),
    Row(("read", FILE, "--since=nobody"), 0, ALL),
    Row(("read", FILE, "--since="), 4, err="--since: empty"),
    Row(("read", FILE, "--unread=ann"), 0, BOB + DEV + LAST),
    Row(("read", FILE, "--unread=new"), 0, ALL),
    Row(("read", FILE, "--unread="), 4, err="--unread: empty"),
    Row(("read", FILE, "--unread=a b"), 4, err="white space"),
    Row(("read", FILE, "--since=a\nb"), 4, err="--since: the value holds a line break"),
    Row(("search", FILE, "a", "--handle=a\nb"), 4, err="--handle: the value holds a line break"),
    Row(("export", FILE, "--handle=a\rb"), 4, err="--handle: the value holds a line break"),
    Row(("read", FILE, "--unread=dev", "--since=nobody", "--last=1"), 0, LAST),
    Row(("read", FILE, "--after=2m"), 0, DEV + LAST),
    Row(("read", FILE, f"--after={BEGIN + 60}"), 0, BOB + TWO + DEV + LAST),
    Row(("read", FILE, "--after=2020-09-13T12:29:40Z"), 0, DEV + LAST),
    Row(("read", FILE, f"--before={BEGIN + 60}"), 0, ANN + BOB),
    Row(("read", FILE, f"--after={BEGIN + 60}", f"--before={BEGIN + 120}"), 0, BOB + TWO),
    Row(("read", FILE, "--after=1d"), 0, ALL),
    Row(("read", FILE, "--after=soon"), 4, err="--after: soon is no time"),
    Row(("read", FILE, "--before="), 4, err="--before:  is no time"),
    Row(("read", FILE, "--offset=4"), 0, ANN),
    Row(("read", FILE, "--last=2", "--offset=1"), 0, TWO + DEV),
    Row(("read", FILE, "--offset=9"), 0),
    Row(("read", FILE, "--offset=x"), 4, err="--offset=x"),
    Row(("read", FILE, f"--before={BEGIN + 180}", "--offset=1", "--last=1"), 0, TWO),
    Row(("read", FILE, "--lst=2"), 4, err="no option --lst"),
    Row(("read", FILE, "more"), 4, err="'more' is one too many"),
    Row(("read",), 4, err=USAGE.format("read")),
    Row(("read", GONE), 2, err="no chat"),
    Row(("read", "nowhere/live.chat"), 2, err="is not there"),
    Row(("read", ".nbs/chat"), 4, err="names no chat"),
    Row(
        ("read", FILE, "--last=1", "--json"),
        0,
        '{"handle": "bob", "mentions": {}, "number": 4, "seq": 12, "text": "done", '
        '"time": 1600000240}\n',
    ),
)
SEARCHES = (
    Row(("search", FILE, "alpha"), 0, f"[0] {ANN}[3] {DEV}"),
    Row(("search", FILE, "ALPHA", "--handle=dev"), 0, f"[3] {DEV}"),
    Row(("search", FILE, "alpha", "--after=2m"), 0, f"[3] {DEV}"),
    Row(("search", FILE, "alpha", f"--before={BEGIN}"), 0, f"[0] {ANN}"),
    Row(("search", FILE, "o\nl"), 0, f"[2] {TWO}"),
    Row(("search", FILE, "al.ha"), 0, "No matches found.\n"),
    Row(("search", FILE, "--done"), 0, "No matches found.\n"),
    Row(("search", FILE, "", "--handle=dev"), 0, f"[3] {DEV}"),
    Row(("search", FILE, "alpha", "--include-archives"), 0, f"[0] {ANN}[3] {DEV}"),
    Row(("search", FILE, "alpha", "--handle="), 4, err="--handle: empty"),
    Row(("search", FILE, "alpha", "--hande=dev"), 4, err="no option --hande"),
    Row(("search", FILE), 4, err=USAGE.format("search")),
    Row(("search", GONE, "x"), 2, err="no chat"),
)
OTHERS = (
    Row(
        ("participants", FILE), 0,
        "ann                      2 messages\nbob                      2 messages\n"
        "dev                      1 messages\n",
    ),
    Row(("participants", GONE), 2, err="no chat"),
    Row(("participants",), 4, err=USAGE.format("participants")),
    Row(("count", FILE), 0, "5\n"),
    Row(("count", GONE), 2, err="no chat"),
    Row(("count", FILE, "--json"), 4, err="no option --json"),
    Row(("export", FILE, "--plain"), 0, ALL),
    Row(("export", FILE, "--plain", "--last=1"), 0, LAST),
    Row(("export", FILE, "--plain", "--from=1", "--to=2"), 0, BOB),
    Row(("export", FILE, "--plain", "--last=4", "--to=2"), 0, BOB),
    Row(("export", FILE, "--plain", "--last=2", "--from=1"), 0, DEV + LAST),
    Row(("export", FILE, "--plain", "--from=1", "--to=1"), 0),
    Row(("export", FILE, "--plain", "--last=3", "--grep=beta"), 0),
    Row(("export", FILE, "--plain", "--handle=bob,dev"), 0, BOB + DEV + LAST),
    Row(("export", FILE, "--plain", "--handle=ann,dev", "--last=2"), 0, DEV),
    Row(("export", FILE, "--plain", "--grep=alpha"), 0, ANN + DEV),
    Row(("export", FILE, "--plain", "--after=2m", "--grep=A"), 0, DEV),
    Row(("export", FILE, "--plain", f"--before={BEGIN}"), 0, ANN),
    Row(
        ("export", FILE, "--to=1"), 0,
        "\x1b[2m[2020-09-13T12:26:40Z]\x1b[0m \x1b[1;36mann\x1b[0m: Alpha @bob\n",
    ),
    Row(("export", FILE, "--to=x"), 4, err="--to=x"),
    Row(("export", GONE), 2, err="no chat"),
    Row(("poll", FILE, "ann", "--timeout=0"), 3),
    Row(("poll", FILE, "ann", "--timeout=x"), 4, err="--timeout=x"),
    Row(("poll", FILE), 4, err=USAGE.format("poll")),
    Row(("poll", GONE, "ann"), 2, err="no chat"),
    Row(("create", FILE), 1, err="Error: File already exists: "),
    Row(("create", "nowhere/new.chat"), 1, err="no folder"),
    Row(("create", ".nbs/chat/new"), 4, err="names no chat"),
    Row(("create", ".nbs/chat/a b.chat"), 4, err="channel: "),
    Row(("create",), 4, err=USAGE.format("create")),
    Row(("delete", FILE), 4, err="--after=T"),
    Row(("delete", FILE, "--after="), 4, err="--after=T"),
    Row(("delete", FILE, "--after=soon"), 4, err="is no time"),
    Row(("delete", FILE, "--after=2m", "--dry-run"), 0, "Would delete 2 message(s) (keeping 3)\n"),
    Row(
        ("delete", FILE, "--after=5s", "--dry-run"), 0,
        "No messages to delete (0 messages since 5s, 5 kept)\n",
    ),
    Row(("delete", FILE, "--after=5s"), 0, "No messages to delete (0 messages since 5s, 5 kept)\n"),
    Row(("delete", GONE, "--after=2m"), 2, err="no chat"),
    Row(("archive", FILE), 0, "No messages to archive\n"),
    Row(("archive", FILE, "--keep=x"), 4, err="--keep=x"),
    Row(("archive", GONE), 2, err="no chat"),
    Row(("cursor-set", FILE, "ann"), 4, err=USAGE.format("cursor-set")),
    Row(("cursor-set", FILE, "ann", "-1"), 4, err="no index from 0 to 2147483646"),
    Row(("cursor-set", FILE, "ann", "2147483647"), 4, err="no index"),
    Row(("cursor-set", FILE, "a=b", "1"), 4, err="holds '='"),
    Row(("cursor-set", GONE, "ann", "1"), 2, err="no chat"),
    Row((), 4, err="which command?"),
    Row(("reed", FILE), 4, err="no command 'reed'"),
)  # fmt: skip
REFUSED = (
    Row(("send", FILE, "ann"), 4, err="text: none given"),
    Row(("send", FILE), 4, err=USAGE.format("send")),
    Row(("send", FILE, "", "x"), 4, err="handle: empty"),
    Row(("send", FILE, "x" * 64, "x"), 4, err="handle: longer than 63"),
    Row(("send", FILE, "[MEDIC-WARNING]", "x"), 4, err="handle: holds '['"),
    *(Row(("send", FILE, f"a{bad}b", "x"), 4, err="handle: holds") for bad in "\n|:,(= "),
    Row(("send", FILE, "ann", "x", "y"), 4, err="'y' is one too many"),
    Row(("send", FILE, "ann", "x", "--as=bob"), 4, err="no option --as"),
    Row(("send", FILE, "ann", "x", "--file=-"), 4, err="given twice"),
    Row(("send", FILE, "ann", "--file=gone"), 4, err="cannot be read"),
    Row(("send", FILE, "ann", "--file=-"), 4, err="more than 1048576", given=b"x" * 1_048_577),
    Row(("send", FILE, "ann", "--file=-"), 4, err="not UTF-8", given=b"\xff"),
    Row(("send", FILE, "ann", "--file=-"), 4, err="NUL", given=b"a\0b"),
    Row(("send", GONE, "ann", "x"), 2, err="no chat"),
    Row(("warn", GONE, "x"), 2, err="no chat"),
    Row(("error", GONE, "x"), 2, err="no chat"),
    Row(("warn", FILE), 4, err=USAGE.format("warn")),
)
SENDS = (
    Row(("send", FILE, "ann", "x"), 0, "x"),
    Row(("send", FILE, "ann", ""), 0, ""),
    Row(("send", FILE, "ann", "--done"), 0, "--done"),
    Row(("send", FILE, "ann", "--done=x y"), 0, "--done=x y"),
    Row(("send", FILE, "ann", "-- a note"), 0, "-- a note"),
    Row(("send", FILE, "ann", "--", "--file=x"), 0, "--file=x"),
    Row(("send", FILE, "ann", "--file=-"), 0, "from a pipe", given=b"from a pipe"),
    Row(("send", "--file=-", FILE, "ann"), 0, "p" * 1_048_576, given=b"p" * 1_048_576),
    Row(("send", FILE, "ann", "--human", "x"), 0, "x"),
    Row(("warn", FILE, "--careful"), 0, "--careful"),
    Row(("error", FILE, "lost it"), 0, "lost it"),
)

JSON = (
    '{"handle": "bob", "mentions": {}, "number": 4, "seq": 12, "text": "done", '
    '"time": 1600000240}\n'
)
MORE = (
    Row(("search", FILE, "done", "--json"), 0, JSON),
    Row(("search", FILE, "alpha", "--after=soon"), 4, err="--after: soon is no time"),
    Row(("search", FILE, "alpha", "--before=soon"), 4, err="--before: soon is no time"),
    Row(("search", FILE, "alpha", "--json=1"), 4, err="--json takes no value"),
    Row(("search", FILE, "alpha", "--include-archives=1"), 4, err="takes no value"),
    Row(("read", FILE, "--json=1"), 4, err="--json takes no value"),
    Row(("export", FILE, "--json", "--last=1"), 0, JSON),
    Row(("export", FILE, "--json", "--grep=DONE"), 0, JSON),
    Row(("export", FILE, "--plain", "--grep=nothing"), 0),
    Row(("export", FILE, "--plain", "--grep="), 0, ALL),
    Row(("export", FILE, "--plain", "--handle="), 4, err="--handle: empty"),
    Row(("export", FILE, "--plain", "--handle=nobody"), 0),
    Row(("export", FILE, "--last=x"), 4, err="--last=x"),
    Row(("export", FILE, "--from=-1"), 4, err="--from=-1"),
    Row(("export", FILE, "--plain", "--from=3", "--to=2"), 0),
    Row(("export", FILE, "--after=soon"), 4, err="--after: soon is no time"),
    Row(("export", FILE, "--before=soon"), 4, err="--before: soon is no time"),
    Row(("poll", FILE, "ann", "--timeout=0", "--json"), 3),
    Row(("poll", FILE, "ann", "--timeout="), 4, err="--timeout="),
    Row(("poll", FILE, "a b", "--timeout=0"), 4, err="white space"),
    Row(("archive", FILE, "--keep=5"), 0, "No messages to archive\n"),
    Row(("archive", FILE, "--keep="), 4, err="--keep="),
    Row(("delete", FILE, "--after=2m", "--as=two words"), 4, err="--as: holds white space"),
    Row(("delete", FILE, "--after=2m", "--as="), 4, err="--as: empty"),
    Row(("delete", FILE, "--after=2m", "--dry-run=1"), 4, err="--dry-run takes no value"),
    Row(("error", GONE), 4, err=USAGE.format("error")),
    Row(("error", FILE, "x" * 1_048_577), 4, err="longer than 1048576"),
)
VERBS = {verb.name: verb.nbs for verb in PROGRAMS[0].verbs if verb.nbs is not None}
TAKES = {name: nbs_grammar(usage) for name, usage in VERBS.items()}
LEAST = {name: (takes.least, len(takes.texts)) for name, takes in TAKES.items()}
SLIPS = (
    *(Row((name, *"x" * (least - 1)), 4, err=f"too few arguments\n  Usage: nbs-chat {name}")
      for name, (least, _) in LEAST.items()),
    *(Row((name, *"x" * most, "more"), 4, err="'more' is one too many")
      for name, (_, most) in LEAST.items()),
    *(Row((name, *"x" * most, "--al"), 4, err="no option --al")
      for name, (_, most) in LEAST.items()),
)  # fmt: skip
"""What each command refuses alike."""
HELPS = tuple(
    Row((name, word), 0, f"Usage: nbs-chat {name} {VERBS[name]}\n")
    for name in LEAST
    for word in ("--help", "-h")
)
WRITES = (
    Row(("create", ".nbs/chat/new.chat"), 0, "Created: ROOT/.nbs/chat/new.chat\n"),
    Row(("archive", FILE, "--keep=2"), 0,
        "Archived 3 message(s) to ROOT/.nbs/chat/live-20200913-123140-archive.chat\n"),
    Row(("archive", FILE, "--keep=0"), 0,
        "Archived 5 message(s) to ROOT/.nbs/chat/live-20200913-123140-archive.chat\n"),
    Row(("cursor-set", FILE, "dev", "0"), 0),
    Row(("cursor-set", FILE, "dev", "2147483646"), 0),
    Row(("delete", FILE, "--after=2m", "--as=ann"), 0, "Deleted 2 message(s) (kept 3)\n"),
    Row(("delete", FILE, "--after=1d"), 0, "Deleted 5 message(s) (kept 0)\n"),
)  # fmt: skip
