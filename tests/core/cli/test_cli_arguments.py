"""Bad arguments to every command: its documented code, the field and the rule, nothing recorded."""

import os
from pathlib import Path

import click
import pytest
from doors.inside import USAGE, begin, commands, door_of, run, state

from tripod.cli.commands import ChoiceParam
from tripod.cli.tree import TreeParamType

COMMANDS = list(commands())
CONTROL = "control character"
UNSEEN = "not seen"
BAD_WORDS = {
    "": "empty",
    "   ": "empty",
    "a\nb": CONTROL,
    "a\rb": CONTROL,
    "a\tb": CONTROL,
    "a\x1b[31mb": CONTROL,
    "a\x7fb": CONTROL,
    "a\x9bb": CONTROL,
    "a\u2028b": CONTROL,
    "a\u202eb": UNSEEN,
    "a\u200bb": UNSEEN,
    "a b": "white space",
    "a\u00a0b": "white space",
    "a/b": "'/'",
    "x" * 200: "longer than",
    "a\udcffb": "not UTF-8",
}
"""Words that name nobody and nothing, and what is said of them."""


def words_at(*arguments: str, field: str) -> list[tuple[tuple[str, ...], str, str]]:
    """The command with each bad word in place of ``{}``, the field, and the rule that it breaks."""
    return [
        (tuple(word if part == "{}" else part for part in arguments), field, rule)
        for word, rule in BAD_WORDS.items()
    ]


EVENT = "1-a-b-1.event"
FREE = (UNSEEN, "white space")  # what a source or type may hold: it fits one line and one name
WORDS = [
    *(
        case
        for case in (
            *words_at("bus", "publish", "{}", "done", "high", field="source"),
            *words_at("bus", "publish", "ann", "{}", "high", field="type"),
        )
        if case[2] not in FREE
    ),
    *words_at("bus", "ack", EVENT, "--as", "{}", field="--as"),
    *words_at("bus", "ack-all", "--as", "{}", field="--as"),
    *words_at("bus", "prune", "--as", "{}", field="--as"),
    *words_at("chat", "create", "new", "--as", "{}", field="--as"),
    *words_at("chat", "send", "live", "{}", "hello", field="handle"),
    *words_at("chat", "read", "live", "--since", "{}", field="--since"),
    *words_at("chat", "search", "live", "e", "--handle", "{}", field="--handle"),
    *words_at("scribe", "log", "Title", "-r", "why", "-p", "{}", field="--participant"),
    *words_at("scribe", "log", "Title", "-r", "why", "-p", "ann", "--as", "{}", field="--as"),
    *words_at("scribe", "query", "--by", "{}", field="--by"),
    *words_at("init", "--scribe", "{}", field="--scribe"),
]
CHANNELS = [
    (tuple(word if part == "{}" else part for part in arguments), "channel", "")
    for arguments in (
        ("chat", "create", "{}"),
        ("chat", "send", "{}", "ann", "hello"),
        ("chat", "read", "{}"),
        ("chat", "search", "{}", "e"),
        ("chat", "participants", "{}"),
    )
    for word in (*BAD_WORDS, "..", "-x", "x-archive", "../live", "live.chat.lock/")
    if not word.startswith("-")
]
LINES = [
    (("scribe", "log", *given), field, rule)
    for text, rule in {
        "": "empty",
        " \t": "empty",
        "a\nb": CONTROL,
        "a\x1bb": CONTROL,
        "a\x85b": CONTROL,
        "x" * 2048: "longer than",
        "\udcff": "not UTF-8",
    }.items()
    for given, field in (
        ((text, "-p", "ann", "-r", "why"), "title"),
        (("Title", "-p", "ann", "-r", text), "rationale"),
        (("Title", "-p", "ann", "-r", "why", "--artefact", text), "artefact"),
        (("Title", "-p", "ann", "-r", "why", "--risk-tag", text), "risk"),
        (("Title", "-p", "ann", "-r", "why", "--ref", text), "ref"),
    )
]
NUMBERS = [
    ((*command, option, text), option, "no whole number")
    for command, option, least in (
        (("bus", "publish", "ann", "done", "high"), "--dedup-window", 0),
        (("bus", "prune"), "--max-bytes", 1),
        (("chat", "read", "live"), "--last", 0),
        (("scribe", "summary"), "-n", 0),
        (("show", "chat"), "--at", 0),
        (("show",), "--last", 0),
        (("verify",), "--nearby", 0),
    )
    for text in (
        *("-1", "x", "", " 5", "5 ", "1.5", "1e3", "1_000", "+5", "0x10", "\u0663", "\udcff"),
        *("9" * 17, "9" * 30, "9" * 5000),
        *(["0"] if least else []),
    )
]
OTHERS = [
    (
        ("bus", "publish", "ann", "done", "urgent"),
        "priority",
        "not one of critical, high, normal, low",
    ),
    (("bus", "publish", "ann", "done", ""), "priority", "not one of"),
    (("bus", "publish", "ann", "done", "HIGH"), "priority", "not one of"),
    (("bus", "publish", "ann", "done", "high\n"), "priority", "not one of"),
    (("bus", "publish", "s" * 127, "t" * 127, "low"), "source and type", "255 bytes"),
    (("bus", "publish", "ann", "done", "low", "\udcff"), "PAYLOAD", "not UTF-8"),
    (("bus", "publish", "ann", "done", "low", "-- note"), "No such option", "Put -- before"),
    (("bus", "publish", "ann", "done", "low", "- note"), "No such option", "Put -- before"),
    (("bus", "read", ""), "event", "empty"),
    (("bus", "read", "x"), "event", "not the name of an event"),
    (("bus", "read", ".event"), "event", "not the name"),
    (("bus", "read", "..event"), "event", "not the name"),
    (("bus", "ack", "../../x.event"), "event", "give the file name alone"),
    (("bus", "ack", ".tmp-1-a-b-1.event"), "event", "not the name"),
    (("bus", "check", "--handle", ""), "--handle", "empty"),
    (("bus", "check", "--handle", " "), "--handle", "empty"),
    (("bus", "ack-all", "--handle", "a/b"), "--handle", "/"),
    (("bus", "ack-all", "--handel", "ann"), "--handel", "No such option"),
    (("chat", "send", "live", "ann"), "text", "none given behind the handle ann"),
    (("chat", "send", "live", "[BOT]", "hello"), "handle", "'['"),
    (("chat", "send", "live", "a,b", "hello"), "handle", "','"),
    (("chat", "send", "live", "ann", "- hello"), "No such option", "Put -- before"),
    (("scribe", "log", "Title", "-r", "why"), "--participant", "TRIPOD_AS"),
    (("scribe", "log", "Title", "-p", "ann"), "--rationale", "Missing"),
    (("scribe", "log", "Title", "-p", "a,b", "-r", "why"), "--participant", "','"),
    (("scribe", "log", "[SUPERSEDES D-1] T", "-p", "a", "-r", "w"), "title", "[SUPERSEDES"),
    (
        ("scribe", "log", "T", "-p", "a", "-r", "w", "--status", "done"),
        "status",
        "not one of decided",
    ),
    (
        ("scribe", "log", "T", "-p", "a", "-r", "w", "--ref", "last", "--supersedes", "D-1"),
        "supersedes",
        "no decision",
    ),
    (
        ("scribe", "log", "T", "-p", "a", "-r", "w", "--ref", "last", "--supersedes", ""),
        "supersedes",
        "no decision",
    ),
    (("scribe", "log", "T", "-p", "a", "-r", "w", "--no-ref", ""), "no-ref", "empty"),
    (("scribe", "log", "T", "-p", "a", "-r", "w", "--no-ref", "a\nb"), "no-ref", CONTROL),
    (
        ("scribe", "log", "T", "-p", "a", "-r", "w", "--ref", "last", "--no-ref", "x"),
        "no-ref",
        "leave one of them out",
    ),
    (("scribe", "log", "T", "-p", "a", "-r", "w", "--ref", "#1"), "ref", "up to #0"),
    (("scribe", "log", "T", "-p", "a", "-r", "w", "--ref", "no#0"), "ref", "no chat"),
    (("scribe", "log", "T", "-p", "a", "-r", "w", "--ref", f"#{'9' * 15}"), "ref", "up to #0"),
    (("scribe", "log", "T", "-p", "a", "-r", "w", "--ref", "#-1"), "ref", "live.chat:~L7"),
    (("scribe", "query", "--since", "soon"), "--since", "is no time"),
    (("scribe", "query", "--until", "1x"), "--until", "is no time"),
    (("scribe", "inbox", "--done", "99"), "--done", "entries 0 to"),
    (("scribe", "inbox", "--done", "x"), "--done", "no whole number"),
    (("scribe", "inbox", "--as", "a b"), "--as", "white space"),
    (("scribe", "log", "T", "-p", "a", "-r", "w", "--ref", "live.chat"), "ref", "live.chat:~L7"),
    (("scribe", "log", "T", "-p", "a", "-r", "w", "--ref", "live.chat:~L8"), "ref", "lines 7 to 7"),
    (("scribe", "log", "T", "-p", "a", "-r", "w", "--ref", "no.chat:~L7"), "ref", "no chat"),
    (("scribe", "log", "T", "-p", "a", "-r", "w", "--risk-tag", "a,b"), "risk_tags", "comma"),
    (("init", "--project", ""), "project", "empty"),
    (("init", "--project", "a\nb"), "project", CONTROL),
    (("init", "--project", "x" * 201), "project", "longer than"),
    (("init", "--origin", "a b"), "origin", "white space"),
    (("init", "--origin", "a+b"), "origin", "'+'"),
    (("show", "--at", "0"), "--at", "goes with a projection"),
    (("show", "3", "--at", "0"), "--at", "goes with a projection"),
    (("show", "chat", "--last", "3"), "--last", "list of entries"),
    (("show", "chat", "--stream", "bus"), "--stream", "list of entries"),
    (("show", "chat", "--at", "4000"), "--at", "the ledger has entries 0 to"),
    (("redact",), "--match", "numbers of entries"),
    (("redact", "3", "--match", "x"), "--match", "numbers of entries"),
    (("redact", "3", "--by", "ann"), "--reason", "say why"),
    (("redact", "3", "--reason", "r"), "--as", "say who"),
    (("bus", "claim"), "who acts", "TRIPOD_AS"),
    (("bus", "recover"), "who acts", "TRIPOD_AS"),
    (("chat", "send", "live", "two words"), "who acts", "TRIPOD_AS"),
    (("chat", "send", "live", "ann", "hello", "--as", "bob"), "--as bob", "name one of them"),
    (("redact", "3", "--reason", "a\nb", "--by", "ann"), "--reason", CONTROL),
    (("redact", "3", "--reason", "r" * 1001, "--by", "ann"), "--reason", "longer than"),
    (("redact", "--match", "(", "--dry-run"), "--match", "no regular expression"),
    (("redact", "3", "--dry-run", "--export", "no-such"), "--export", "is no folder"),
    (("verify", "--select", "no-such"), "no check 'no-such'", "there are"),
    (("verify", "--explain", "no-such"), "no check 'no-such'", "there are"),
    (("--team", ".", "bus", "check"), "--team", "after the command's name"),
    (("bus", "--team", ".", "check"), "--team", "after the command's name"),
    (("bus",), "which command", "publish"),
    (("chat",), "which command", "send"),
    (("scribe",), "which command", "log"),
    ((), "which command", "init"),
    (("no-such",), "no-such", "No such command"),
    (("bus", "no-such"), "no-such", "No such command"),
    (("scribe", "no-such"), "no-such", "No such command"),
]


MEANT = [
    (("bus", "publish", "ann", "done", "hihg"), "high"),
    (("scribe", "log", "T", "-p", "a", "-r", "w", "--status", "decidet"), "decided"),
    (("show", "decisons"), "decisions"),
    (("show", "agent"), "agents"),
    (("verify", "--select", "sequense"), "sequence"),
    (("verify", "--explain", "sequense"), "sequence"),
    (("completion", "bahs"), "bash"),
    (("chta",), "chat"),
    (("chat", "raed"), "read"),
]
"""A slip in each value of which there is a fixed set, and what was meant."""


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return begin(tmp_path_factory.mktemp("team"))


@pytest.fixture
def new(tmp_path: Path) -> Path:
    return tmp_path


OF_AN_ENTRY = {
    "title", "--participant", "rationale", "artefact", "risk", "risk_tags", "ref", "status",
    "supersedes", "no-ref",
}  # fmt: skip
"""What `scribe log` refuses because it makes no entry of the log."""


def code_of(arguments: tuple[str, ...], field: str, rule: str) -> int:
    """The exit code with which a command refuses a field."""
    unread = rule in ("not UTF-8", "Missing", "requires an argument")
    of_an_entry = field in OF_AN_ENTRY and not unread
    if arguments[:2] == ("scribe", "log") and of_an_entry:
        return 3
    return USAGE.get(door_of(arguments), 2)


def refuses(folder: Path, arguments: tuple[str, ...], field: str, rule: str) -> None:
    """Hold that a command is refused as its door documents it, and that it says why."""
    done = run(folder, *arguments)
    assert done.code == code_of(arguments, field, rule), done
    assert done.out == b""
    assert done.err.startswith("tripod: ")
    assert field.lower() in done.err.lower(), done.err
    assert rule in done.err
    assert len(done.err) < 1000, "an error is read by a person"
    assert done.err.replace("\n", "").isprintable(), "nothing of it commands a terminal"


@pytest.mark.parametrize(
    ("arguments", "field", "rule"), [*WORDS, *CHANNELS, *LINES, *NUMBERS, *OTHERS], ids=str
)
def test_a_bad_argument(
    team: Path, new: Path, arguments: tuple[str, ...], field: str, rule: str
) -> None:
    folder = new if arguments[:1] == ("init",) else team
    before = state(team)
    refuses(folder, arguments, field, rule)
    assert state(team) == before
    assert not (new / ".nbs").exists()


def a_value(param: click.Argument) -> str:
    """A word that the argument takes."""
    assert isinstance(param.type, TreeParamType)
    kind = param.type.kind
    return kind.words[0] if isinstance(kind, ChoiceParam) else "1"


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=str)
def test_options_and_arguments_that_no_command_has(
    team: Path, path: tuple[str, ...], command: click.Command
) -> None:
    before = state(team)
    for option in ("--no-such-option", "--no-such=1", "-Z", "--js", "--HELP"):
        refuses(team, (*path, option), option.partition("=")[0], "No such option")
    texts = [param for param in command.params if isinstance(param, click.Argument)]
    surplus = [*(a_value(param) for param in texts), "1"]
    required = [
        part
        for param in command.params
        if isinstance(param, click.Option) and param.required
        for part in (param.opts[0], "x")
    ]
    if not any(isinstance(p, click.Argument) and p.nargs < 0 for p in command.params):
        refuses(team, (*path, *required, *surplus), "unexpected extra argument", "1")
    for param in command.params:
        if isinstance(param, click.Option) and not param.is_flag:
            refuses(team, (*path, param.opts[0]), param.opts[0], "requires an argument")
        if isinstance(param, click.Argument) and param.required:
            refuses(team, path, "Missing", "--help")
    assert state(team) == before


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=str)
def test_every_command_tells_what_it_is_for(
    team: Path, path: tuple[str, ...], command: click.Command
) -> None:
    done = run(team, *path, "--help")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"Usage: tripod {' '.join(path)} ".encode())
    assert command.help


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("bus", "read", EVENT), 3, "`check` lists"),
        (("bus", "ack", EVENT), 3, "`check` lists"),
        (("chat", "read", "none"), 2, "tripod chat create none"),
        (("chat", "send", "none", "ann", "hello"), 2, "tripod chat create none"),
        (("chat", "search", "none", "x"), 2, "there are: live"),
        (("chat", "participants", "none"), 2, "there are: live"),
        (("chat", "create", "live"), 1, "exists already"),
        (("scribe", "query", "no such text"), 1, "no decision fits"),
        (("show", "4000"), 1, "`tripod show` lists"),
        (("show", "9" * 5000), 1, "`tripod show` lists"),
        (("show", "no-such-id"), 1, "`tripod show` lists"),
        (("show", "no-such\nid"), 1, "no-such\\x0aid"),
        (("show", "nothing"), 1, "there are"),
        (("init", "no/such/folder"), 1, "make the project's folder first"),
    ],
    ids=str,
)
def test_what_is_not_there(team: Path, arguments: tuple[str, ...], code: int, said: str) -> None:
    before = state(team)
    done = run(team, *arguments)
    assert (done.code, done.out) == (code, b"")
    assert said in done.err
    assert len(done.err) < 1000
    assert state(team) == before


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("bus", "check"), 2),
        (("bus", "publish", "ann", "done", "low"), 2),
        (("chat", "read", "live"), 2),
        (("scribe", "count"), 2),
        (("sync",), 1),
        (("rebuild",), 1),
        (("show",), 1),
    ],
    ids=str,
)
def test_no_team(new: Path, arguments: tuple[str, ...], code: int) -> None:
    (new / "file").write_text("none")
    for given, told in (
        ((), "tripod init"),
        (("--team", "file"), "is a file, no folder"),
        (("--team", "no/such"), "is not there"),
        (("-C", ""), "tripod init"),
        (("--team", "x" * 5000), "is not there"),
    ):
        done = run(new, *arguments, *given)
        assert (done.code, done.out) == (code, b""), given
        assert told in done.err
    assert [path.name for path in new.iterdir()] == ["file"]


@pytest.mark.parametrize("command", [("bus", "publish", "ann", "done", "low"),
                                     ("chat", "send", "live", "ann")])  # fmt: skip
def test_texts_in_files(team: Path, new: Path, command: tuple[str, ...]) -> None:
    files = {
        "large": b"x" * (1024 * 1024 + 1),
        "latin": b"caf\xe9",
        "half": b"\xf0\x9f",
        "good": b"good",
    }
    for name, data in files.items():
        (new / name).write_bytes(data)
    bad = {
        "large": "more than 1048576 bytes",
        "latin": "not UTF-8 (byte 4)",
        "half": "not UTF-8 (byte 1)",
        "none": "No such file",
        "": "No such file",
        "../new": "cannot be read",
        "/dev/zero": "no regular file",
        "pipe": "no regular file",
    }
    os.mkfifo(new / "pipe")
    before = state(team)
    for name, rule in bad.items():
        path = name if name in ("", "/dev/zero") else str(new / name)
        refuses(team, (*command, "--file", path), "--file", rule)
    refuses(team, (*command, "text", "--file", str(new / "good")), "--file", "give one of them")
    for data, rule in ((files["large"], "more than"), (files["latin"], "not UTF-8")):
        done = run(team, *command, "--file", "-", given=data)
        assert done.code == 4
        assert rule in done.err
    assert state(team) == before


@pytest.mark.parametrize("text", [b"x" * (1024 * 1024), "\u00e9\n \u202e\x1b".encode(), b"-- x"])
def test_texts_at_the_limit_are_taken(tmp_path: Path, text: bytes) -> None:
    begin(tmp_path)
    done = run(tmp_path, "bus", "publish", "ann", "done", "low", "--file", "-", given=text)
    assert done.code == 0, done.err
    assert run(tmp_path, "chat", "send", "live", "ann", "--file", "-", given=text).code == 0
    shown = run(tmp_path, "chat", "read", "live", "--last", "1", "--json")
    assert shown.code == 0
    assert shown.out.isascii()


@pytest.mark.parametrize(("arguments", "meant"), MEANT, ids=lambda value: " ".join(value)[:40])
def test_a_slip_is_answered_with_did_you_mean(
    team: Path, arguments: tuple[str, ...], meant: str
) -> None:
    done = run(team, *arguments)
    assert done.code != 0
    assert f"Did you mean {meant}" in done.err
