"""Every row of the documentation of ``nbs-bus``, as ``test_nbs_bus.py`` tries it.

``D`` stands for the events' folder, ``E`` for the name of a pending event; in what is told ``...``
stands for anything. Source: seed nbs-bus; spec nbs-compat B1 to B8.
"""

from typing import NamedTuple

from tripod.cli.bus import PROGRAMS

__all__ = ["BUSY", "OTHERS", "OURS", "PAST", "PUBLISH", "SLIPS", "TEXT", "USAGES", "Row"]

USAGE = PROGRAMS[0].usage
USAGES = {verb.name: verb.nbs or "" for verb in PROGRAMS[0].verbs}
PAST = "1600000000000001-ann-task-complete-7.event"
TEXT = (
    "source: ann\ntype: task-complete\npriority: high\ntimestamp: 2020-09-13T12:26:40Z\n"
    "dedup-key: ann:task-complete\npayload: |\n  467/467 tests pass.\n"
)
NAME = "...-ann-note-....event\n"
BUSY = ("queue",)
LOGGED = ("window", "logged")


class Row(NamedTuple):
    """Words of a command, its exit code, what it prints, and what it says on stderr."""

    words: tuple[str, ...]
    code: int
    out: str = ""
    err: str = ""
    given: tuple[str, ...] = BUSY


def row(
    words: str | tuple[str, ...],
    code: int,
    out: str = "",
    err: str = "",
    *given: str,
) -> Row:
    split = tuple(words.split(" ")) if isinstance(words, str) else words
    return Row(split, code, out, err, given or BUSY)


LISTED = (
    "[critical] ...-bob-task-blocked-8.event (...d ago)\n"
    "[high] ...-ann-task-complete-7.event (...d ago)\n"
    "[normal] ...-ann-chat-message-9.event (...d ago)\n"
    "[low] ...-cy-heartbeat-6.event (...d ago)\n"
)
MANY = "...too few arguments...Usage: nbs-bus "

PUBLISH = [
    row("publish D ann note normal", 0, NAME),
    row("publish D/ ann note normal", 0, NAME),
    *(row(f"publish D ann note {p} text", 0, NAME) for p in ("critical", "high", "normal", "low")),
    row("publish D ann any-type-at-all low", 0, "...-ann-any-type-at-all-....event\n"),
    row(("publish", "D", "ann", "note", "low", "two\nlines"), 0, NAME),
    row(("publish", "D", "ann", "note", "low", ""), 0, NAME),
    row("publish D ann note low text --dedup-window=300", 0, NAME),
    row("publish D ann note low --dedup-window=300 text", 0, NAME),
    row("publish D ann task-complete low --dedup-window=0", 0, "...-ann-task-complete-....event\n"),
    row("publish D ann task-complete low --dedup-window=", 0, "...-ann-task-complete-....event\n"),
    row(
        "publish D ann task-complete low --dedup-window=4294967296", 5, "", "...dropped: ... within"
    ),
    row("publish D ann task-complete low", 5, "", "...is pending within 4000000000 s...", "window"),
    row(
        "publish D ann task-complete low --dedup-window=0",
        0,
        "...-ann-task-complete-....event\n",
        "",
        "window",
    ),
    row("publish D ann task-complete low --dedup-window=5", 0, "....event\n", "", "window"),
    *(
        line
        for type_ in ("decision-logged", "pythia-checkpoint")
        for line in (
            row(f"publish D scribe {type_} low", 0, f"...-scribe-{type_}-...\n", "", *LOGGED),
            row(
                f"publish D scribe {type_} low --dedup-window=4000000000",
                5,
                "",
                "...dropped: ...",
                *LOGGED,
            ),
            row(f"publish D ann {type_} low", 5, "", "...dropped: ...", *LOGGED),
        )
    ),
    row("publish D ann note low --file=D/config.yaml", 0, NAME, "", "window"),
    row("publish D ann note low --file=none", 4, "", "...payload: --file 'none' cannot be read"),
    row("publish D ann note low text --file=none", 4, "", "...payload: given twice"),
    *(
        row((name, word), 0, "", f"Usage: nbs-bus {name} {words}...")
        for name, words in USAGES.items()
        for word in ("--help", "-h")
    ),
    row(("check", "D", "--handle=a\nb"), 4, "", "...--handle: the value holds a line break"),
    row("publish", 4, "", MANY),
    row("publish D", 4, "", MANY),
    row("publish D ann note", 4, "", MANY),
    row("publish D ann note low text more", 4, "", "...'more' is one too many"),
    row(("publish", "D", "", "note", "low"), 4, "", "...source: empty"),
    row(("publish", "D", " \t", "note", "low"), 4, "", "...source: empty"),
    row(("publish", "D", "ann", "", "low"), 4, "", "...type: empty"),
    row(("publish", "D", "a\nb", "note", "low"), 4, "", "...source: holds a line break"),
    row(("publish", "D", "a/b", "note", "low"), 4, "", "...source: holds '/'"),
    row(("publish", "D", "a" * 127, "note", "low"), 0, "....event\n"),
    row(("publish", "D", "a" * 128, "note", "low"), 4, "", "...source: longer than 127 bytes"),
    row(("publish", "D", "ann", "a" * 128, "low"), 4, "", "...type: longer than 127 bytes"),
    row(("publish", "D", "a" * 127, "b" * 127, "low"), 4, "", "...file name over 255 bytes"),
    row("publish D ann note urgent", 4, "", "...priority: 'urgent' is none of critical, high"),
    row("publish D ann note HIGH", 4, "", "...priority: 'HIGH' is none of"),
    row("publish D ann note low --dedup-window=-1", 4, "", "...--dedup-window=-1: no whole number"),
    row("publish D ann note low --dedup-window=soon", 4, "", "...--dedup-window=soon: no whole"),
    row("publish D ann note low --dedup-window=99999999999999999999", 4, "", "...no whole number"),
    row("publish D ann note low --dedup-window", 4, "", "...--dedup-window takes a value"),
    row("publish D ann note low --dedup-windw=9", 4, "", "...no option --dedup-windw"),
    row("publish none ann note low", 2, "", "...none is not there: make the folder first"),
    row("publish D/config.yaml ann note low", 2, "", "...is no folder", "window"),
    # Where two are wrong, the one that the original looks at first decides.
    row("publish none", 4, "", MANY),
    row(("publish", "none", "", "note", "low"), 4, "", "...source: empty"),
    row("publish none ann note urgent", 2, "", "...none is not there"),
    row("publish none ann note low --dedup-window=soon", 2, "", "...none is not there"),
    row("publish D ann note urgent --dedup-window=soon", 4, "", "...priority: "),
]

OTHERS = [
    row("check D", 0, LISTED),
    row("check D", 0, "", "", "empty"),
    row("check D --handle=ann", 0, "[high] ... ago)\n[normal] ... ago)\n"),
    row("check D --handle=an", 0, ""),
    row("check D --handle=", 4, "", "...--handle: "),
    row(("check", "D", "--handle= "), 4, "", "...--handle: "),
    row("check D --handle=a/b", 4, "", "...--handle: "),
    row("check none --handle=", 2, "", "...none is not there"),
    row("check none", 2, "", "...none is not there"),
    row("check", 4, "", MANY),
    row("check D more", 4, "", "...'more' is one too many"),
    row("check D --handel=ann", 4, "", "...no option --handel"),
    row("check D --reader=bob", 0, LISTED),
    row("check D --reader=", 4, "", "...--reader: "),
    row("check D --reader=bob --handle=ann", 4, "", "...--handle and --reader"),
    row("read D E", 0, TEXT),
    row("read D gone.event", 3, "", "...no pending event gone.event"),
    row("read D 1600000000000001-ann-task-complete-8.event", 3, "", "...no pending event"),
    row("read D", 4, "", MANY),
    row("read D E more", 4, "", "...'more' is one too many"),
    *(
        row(("read", folder, name), 4, "", "...event: ...")
        for folder in ("D", "none")
        for name in ("", ".", "..", "a/b.event", "..x.event", "x.txt", ".event", ".tmp-1-2.event")
    ),
    row("read none E", 2, "", "...none is not there"),
    row("read D E --processed", 0, TEXT),
    row("ack D E", 0),
    row("ack D E --as=bob", 0),
    row("ack D gone.event", 3, "", "...no pending event gone.event: ..."),
    row("ack D", 4, "", MANY),
    row(("ack", "D", ".tmp-1-2.event"), 4, "", "...not the name of an event"),
    row(("ack", "none", "x.txt"), 4, "", "...not the name of an event"),
    row("ack none E", 2, "", "...none is not there"),
    row(("ack", "D", "E", "--as=two words"), 4, "", "...--as: holds white space"),
    row("ack-all D", 0, "Acknowledged 4 events\n"),
    row("ack-all D", 0, "Acknowledged 0 events\n", "", "empty"),
    row("ack-all D --as=bob", 0, "Acknowledged 4 events\n"),
    row("prune D --as=bob", 0, "Pruned 0 events (no processed directory)\n"),
    row("ack-all D --handle=bob", 0, "Acknowledged 1 event\n"),
    row("ack-all D --handle=nobody", 0, "Acknowledged 0 events\n"),
    row("ack-all D --handle=", 4, "", "...--handle: "),
    row("ack-all D --handel=x", 4, "", "...no option --handel; the options are --as=..., --handle"),
    row("ack-all D x", 4, "", "...'x' is one too many"),
    row("ack-all none", 2, "", "...none is not there"),
    row("ack-all", 4, "", MANY),
    row("prune D", 0, "Pruned 0 events (no processed directory)\n"),
    row("prune D", 0, "Pruned 0 events (0.4 KB / 16384.0 KB limit)\n", "", "processed"),
    row(
        "prune D --max-bytes=1",
        0,
        "Pruned 4 events (0.0 KB remaining, 0.0 KB limit)\n",
        "",
        "processed",
    ),
    row(
        "prune D --max-bytes=400",
        0,
        "Pruned 1 event (0.4 KB remaining, 0.4 KB limit)\n",
        "",
        "processed",
    ),
    row("prune D", 0, "Pruned 4 events (0.0 KB ...)\n", "", "processed", "limit"),
    row("prune D --max-bytes=9999", 0, "Pruned 0 events (0.4 KB / 9.8 KB limit)\n", "",
        "processed", "limit"),
    *(row(f"prune D --max-bytes={n}", 4, "", "...no whole number from 1")
      for n in ("0", "-1", "x", "")),
    row("prune none --max-bytes=0", 2, "", "...none is not there"),
    row(
        "status D",
        0,
        "Pending: 4 total (critical=1, high=1, normal=1, low=1)\n"
        "Oldest pending: 2020-09-13T12:26:40Z\nProcessed: 0 events (0.0 KB)\n",
    ),
    row("status D", 0, "Pending: 0 total\nProcessed: 0 events (0.0 KB)\n", "", "empty"),
    row("status D", 0, "Pending: 0 total\nProcessed: 4 events (0.4 KB)\n", "", "processed"),
    row("status D", 0, "...\nWARNING: 4 stale events (unacked > 120s)\n", "", "stale"),
    row("status none", 2, "", "...none is not there"),
    row("status D more", 4, "", "...'more' is one too many"),
    row("help", 0, "", USAGE),
    row((), 4, "", USAGE),
    row("--help", 4, "", f"...no command '--help'\n{USAGE}"),
    row("publsh D ann note low", 4, "", f"...no command 'publsh'\n{USAGE}"),
]  # fmt: skip

OURS = [
    row("claim D --by=dee", 0, "...-bob-task-blocked-8.event\n"),
    row("claim D E --by=dee --lease=5", 0, f"{PAST}\n"),
    row("claim D --by=dee", 3, "", "...no event to take", "empty"),
    row("claim D --by=dee --wait=0", 3, "", "...no event to take", "empty"),
    row("claim D --by=dee --wait=1", 3, "", "...nothing came within 1 s", "empty"),
    row("claim D gone.event --by=dee", 3, "", "...no pending event"),
    row("claim D", 4, "", "...--by=HANDLE is missing"),
    row("claim D --by=dee --lease=0", 4, "", "...--lease=0: no whole number from 1"),
    row("claim D x.txt --by=dee", 4, "", "...not the name of an event"),
    row("claim none --by=dee", 2, "", "...none is not there"),
    row("release D E --by=dee", 3, "", "...is not claimed by dee"),
    row("claim D --by=dee --wait=5", 0, "...-bob-task-blocked-8.event\n"),
    row("claim D --by=dee --wait=x", 4, "", "...--wait=x: no whole number"),
    row("claim D --by=dee --lease=x", 4, "", "...--lease=x: no whole number"),
    row("claim D --by=", 4, "", "...--by: "),
    row("claim D --by=a/b", 4, "", "...--by: "),
    row("claim D E --by=dee --wait=1", 4, "", "...--wait"),
    row("release D E --by=dee", 0, "", "", "claimed"),
    row("release D E --by=bob", 3, "", "...is not claimed by bob", "claimed"),
    row("release D gone.event --by=dee", 3, "", "...gone.event"),
    row("release D x.txt --by=dee", 4, "", "...not the name of an event"),
    row(("release", "D", "E", "--by=two words"), 4, "", "...--by: holds white space"),
    row("release none E --by=dee", 2, "", "...none is not there"),
    row("ack D E --as=dee", 0, "", "", "claimed"),
    row("ack D E", 0, "", "", "claimed"),
    row("ack D E --as=bob", 1, "", "...claimed by dee", "claimed"),
    row("ack-all D", 0, "Acknowledged 4 events\n", "", "claimed"),
    row("check D", 0, LISTED, "", "claimed"),
    row("claim D --by=bob", 0, "...-bob-task-blocked-8.event\n", "", "claimed"),
    row("claim D E --by=bob", 3, "", "...dee...", "claimed"),
    row("read D E --processed", 0, TEXT, "", "processed"),
    row("read D E", 3, "", "...no pending event", "processed"),
    row("read D gone.event --processed", 3, "", "...gone.event"),
    row("read D x.txt --processed", 4, "", "...not the name of an event"),
    row("ack D E", 3, "", "...", "processed"),
    row("wait D --handle=", 4, "", "...--handle: "),
    row("wait D --reader=", 4, "", "...--reader: "),
    row("wait D --handle=nobody --timeout=0", 3, "", "...nothing came within 0 s"),
    row("wait D --reader=bob --handle=ann", 4, "", "...--handle and --reader"),
    row(
        "recover D --as=dee",
        0,
        LISTED,
        "...heartbeat ...\ntripod: given back: 1600000000000001-ann-...",
        "claimed",
    ),
    row("recover D --as=a/b", 4, "", "...--as: "),
    row("ack-all D --as=a/b", 4, "", "...--as: "),
    row("prune D --as=a/b", 4, "", "...--as: "),
    row("check none --reader=bob", 2, "", "...none is not there"),
    row("release D E", 4, "", "...--by=HANDLE is missing"),
    row("wait D --timeout=5", 0, LISTED),
    row("wait D --handle=bob", 0, "[critical] ...\n"),
    row("wait D --reader=dee", 0, LISTED),
    row("wait D --timeout=0", 3, "", "...nothing came within 0 s", "empty"),
    row("wait D --timeout=x", 4, "", "...--timeout=x: no whole number"),
    row("wait none --timeout=0", 2, "", "...none is not there"),
    row("recover D --as=dee", 0, LISTED, "...last activity ...; heartbeat ...-dee-heartbeat-..."),
    row("recover D", 4, "", "...--as=HANDLE is missing"),
    row("recover none --as=dee", 2, "", "...none is not there"),
]

SLIPS = [
    *(row((name, "D", *"xyzw", *"more"), 4, "", "...is one too many") for name in USAGES),
    *(row((name, "D", "--al"), 4, "", "...no option --al; ") for name in USAGES),
    *(row((name,), 4, "", MANY) for name in USAGES),
    row("read none", 4, "", MANY),
]
"""What each command refuses alike."""
