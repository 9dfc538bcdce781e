"""The table of commands, from which ``tripod`` and the ``nbs-*`` programs are both built.

Each module of a group has its part of the table as plain text. A command is a section: the line at
the left edge is its name with its arguments, below it are its page of help and its options::

    release EVENT
        Give an event back before its lease ends.

        --by HANDLE  Who has it. [required]
        nbs: DIR EVENT --by=HANDLE
        says: give a claimed event back

- ``[EVENT]`` may be left out, ``[SEQ]...`` and ``--tool TOOL...`` take several values;
- an option has two spaces or more before its help; ``[required]``, ``[default: 10]`` and
  ``[env: NAME]`` at the end of the help are rules, not words;
- what goes on in the next line is indented;
- the kind of a value is that of its option or of its word for the value (see ``command_group``);
- each command has ``--team`` and ``--json``, unless ``without: --team --json`` says otherwise;
- ``looks:`` says when a command changes nothing that was there: ``always``, ``unless --fix`` or
  ``with --dry-run`` (one of several options). A section without it is of a command that acts, which
  ``tripod --read-only`` refuses;
- ``nbs:`` is the usage line in the ``nbs-*`` program, for commands that it has, and ``says:`` the
  line of explanation in that program's help. A section without a page is for that program alone.

``tree`` makes click's commands of it, ``arguments`` reads those of short commands without click,
and ``nbs`` reads the arguments of the original tools by it. The work is written once: it gets a
``CommandCall``, which gives the arguments by name, opens the team, and prints the answer. Nothing
here imports click: scripts call the ``nbs-*`` programs all the time.
"""

from __future__ import annotations

import re
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tripod.errors import BadArgumentError, MalformedError, RefusedError
from tripod.ledger.files import READ_ONLY, is_read_only, read_plain_file
from tripod.output import emit, emit_json, one_line, remark

if TYPE_CHECKING:
    from tripod.ledger.tlog.note import VerifierKey
    from tripod.team.team import Team


READ_ONLY_OPTION = "--read-only"
"""The option before the command's name by which nothing is changed."""
MAX_INPUT = 1024 * 1024  # bytes of a text
MAX_NUMBER = 2**53 - 1  # what canonical JSON can hold, and SQLite and every reader of ours
_SHOWN = 40  # characters of a bad value that a message repeats
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


class ParamKind:
    """Any text; a path may hold bytes that are not UTF-8."""

    def read(self, text: str) -> object:
        """The value of a text (ValueError: it breaks the rule that the message names)."""
        return text


class TextParam(ParamKind):
    """A text that can be written as UTF-8; other bytes reach Python as halves of surrogates."""

    def read(self, text: str) -> object:
        """The text itself."""
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"is not UTF-8 (character {error.start + 1})") from None
        return text


class HandleParam(TextParam):
    """Somebody's name: one word, without what the files of the team use as punctuation.

    ``loose``: an ``nbs-*`` program takes any text that is not empty, and looks for it.
    """

    def __init__(self, *, loose: bool = False) -> None:
        self.loose = loose

    def read(self, text: str) -> object:
        """The handle itself."""
        from tripod.projections.chat.format import valid_chat_handle

        super().read(text)
        problem = valid_chat_handle(text)
        if problem is not None:
            raise ValueError(problem.removeprefix("handle: "))
        return text


class NumberParam(ParamKind):
    """A whole number in decimal digits, from ``least`` to ``most``.

    ``empty`` is the number that an empty value stands for in an ``nbs-*`` program.
    """

    def __init__(self, least: int = 0, most: int = MAX_NUMBER, empty: int | None = None) -> None:
        self.least, self.most, self.empty = least, most, empty

    def read(self, text: str) -> object:
        """The number."""
        number = whole_number_param(text, self.least, self.most)
        if number is None:
            shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
            raise ValueError(f"{shown!r} is no whole number from {self.least} to {self.most}")
        return number


class ChoiceParam(TextParam):
    """One of a few words."""

    def __init__(self, *words: str) -> None:
        self.words = words

    def read(self, text: str) -> object:
        """The word itself."""
        if text not in self.words:
            from tripod.projections.text import text_meant

            raise ValueError(
                f"{text!r} is not one of {', '.join(self.words)}{text_meant(text, self.words)}"
            )
        return text


RAW, TEXT, HANDLE, FLAG = ParamKind(), TextParam(), HandleParam(), ParamKind()


def first_sentence(page: str) -> str:
    """The first sentence of a page of help or a manual, with its full stop."""
    first = " ".join(page.partition("\n\n")[0].split())
    return f"{first.partition('. ')[0].rstrip('.')}."


def whole_number_param(text: str, least: int, most: int) -> int | None:
    """A whole number in decimal digits; None if it is not, or not from ``least`` to ``most``.

    >>> [whole_number_param(text, 0, 1000) for text in ("300", "-1", "1e3")]
    [300, None, None]
    """
    number = int(text) if re.fullmatch("[0-9]{1,16}", text) else -1
    return number if least <= number <= most else None


def text_param(text: str | None, file: str | None, what: str) -> str:
    """A text given as argument, in a file, or on standard input (``--file -``), at most 1 MiB.

    The file may be a link to a regular file. A pipe is refused, since one that nobody writes to
    would keep us waiting: ``--file -`` reads what is piped in. Raises BadArgumentError (both or
    more than 1 MiB are given, or the file cannot be read as UTF-8).
    """
    if file is None:
        return text or ""
    if text is not None:
        raise BadArgumentError(f"{what}: given twice, as argument and by --file; give one of them")
    try:
        data = _input_bytes(file)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        hint = "" if file == "-" else "; `--file -` reads standard input"
        raise BadArgumentError(f"{what}: --file {file!r} cannot be read: {reason}{hint}") from error
    if len(data) > MAX_INPUT:
        raise BadArgumentError(
            f"{what}: --file {file!r} holds more than {MAX_INPUT} bytes; "
            "put it where the others can read it, and send its path"
        )
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        place = f"byte {error.start + 1}"
        raise BadArgumentError(f"{what}: --file {file!r} is not UTF-8 ({place})") from error


def _input_bytes(file: str) -> bytes:
    if file != "-":
        return read_plain_file(file, MAX_INPUT, named=True)
    if sys.stdin is None:
        raise OSError("standard input is closed")
    return sys.stdin.buffer.read(MAX_INPUT + 1)


def moment_param(text: str | None, what: str) -> int | None:
    """Epoch seconds of ``30s 5m 2h 1d`` ago, of an epoch, of ``2026-02-12T14:00:00`` or of a day.

    A time without a zone is in this host's zone, and a day begins there at midnight. None stands
    for None. Raises BadArgumentError (not one of these).
    """
    from tripod.projections import text as moments

    if text is None:
        return None
    ago = re.fullmatch("([0-9]{1,9})([smhd])", text)
    if ago is not None:
        return max(0, time.time_ns() // 1_000_000_000 - int(ago[1]) * _UNITS[ago[2]])
    if re.fullmatch("[0-9]{10,15}", text):
        return int(text)
    if re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        text = f"{text}T00:00:00"
    found = moments.parse(text) if "T" in text else None
    if found is None:
        raise BadArgumentError(
            f"{what}: {text:.40} is no time; give 30s, 5m, 2h or 1d ago, an epoch of ten digits "
            "or more, or 2026-02-12T14:00:00"
        )
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}", text):
        found = int(time.mktime((*time.gmtime(found)[:6], 0, 0, -1)))
    return found


def log_keys_param(vkeys: Sequence[str], option: str = "--key") -> list[VerifierKey]:
    """The keys of logs, as they were given to an option (BadArgumentError: not a log's key)."""
    from tripod.ledger.tlog.note import ED25519

    return [_key(text, option, ED25519, "a witness, and not of a log") for text in vkeys]


def witness_key_param(text: str) -> VerifierKey:
    """The key of a witness, given to ``--key`` (BadArgumentError: not a witness's key)."""
    from tripod.ledger.tlog.note import COSIGNATURE

    hint = "; `tripod witness show` prints it where the witness is"
    return _key(text, "--key", COSIGNATURE, "a log, and not of a witness", hint)


def _key(text: str, option: str, kind: int, other: str, hint: str = "") -> VerifierKey:
    from tripod.ledger.tlog.note import VerifierKey

    try:
        key = VerifierKey.parse(text)
    except MalformedError as error:
        raise BadArgumentError(f"{option}: {error}{hint}") from error
    if key.kind != kind:
        raise BadArgumentError(f"{option}: {key.name} is the key of {other}")
    return key


# Who acts --------------------------------------------------------------------------------------


NOBODY = "unknown"
"""The actor of an entry where nothing says who acts."""


def known_handle() -> str | None:
    """Who acts where no option says it: a variable of the environment, else the user's own file.

    None where neither does. Raises BadArgumentError (what stands there is no handle).
    """
    from tripod.ledger.locator import stated_handle

    said = stated_handle()
    return None if said is None else handle_said(*said)


def handle_said(text: str, place: str) -> str:
    """A handle that was found in a place (BadArgumentError: it breaks its rule)."""
    try:
        HANDLE.read(text)
    except ValueError as error:
        raise BadArgumentError(f"{place}: {error}") from error
    return text


def how_to_be_known() -> str:
    """What somebody does whose handle is not known."""
    from tripod.ledger.locator import ACTOR_ENV, handle_path

    return (
        f"give --as HANDLE, set {ACTOR_ENV[0]}, or write your handle into {one_line(handle_path())}"
    )


# The table -------------------------------------------------------------------------------------


JSON_VERSION = 1
"""The version of what ``--json`` prints: a new field leaves it, another meaning raises it."""

KINDS = {
    "FILE": RAW,
    "FOLDER": RAW,
    "HANDLE": HANDLE,
    "LINES": NumberParam(),
    "N": NumberParam(),
    "PATH": RAW,
    "S": NumberParam(),
    "SEQ": NumberParam(),
    "SIZE": NumberParam(),
}
"""The kinds of values that a word stands for in each command."""

_ITEM = r"(?:(nbs|says|without|looks): ?|(-\S*(?: \S+)*)  +)(.*)"
_RULE = r" \[(required|env|default)(?:: ([^\]]*))?\]"


class Param:
    """An argument or option; ``spelling`` is as in the table, ``name`` what the work calls it."""

    def __init__(self, spelling: str, text: str, kinds: Mapping[str, ParamKind]) -> None:
        self.spelling, text = spelling, text.replace("\n", " ")
        word = spelling.rsplit(maxsplit=1)[-1]
        self.metavar = "" if word.startswith("-") else word.removesuffix("...").strip("[]")
        long = re.findall(r"--([a-z-]+)", spelling)
        self.kind: ParamKind = FLAG
        if self.metavar:
            own = kinds.get(f"--{long[0]}" if long else spelling)
            self.kind = own or kinds.get(self.metavar) or KINDS.get(self.metavar, TEXT)
        self.name = (long[0] if long else self.metavar.lower()).replace("-", "_")
        self.help = re.sub(_RULE, "", text)
        rules = dict(re.findall(_RULE, text))
        self.required = "required" in rules
        self.env: str | None = rules.get("env")
        default = rules.get("default")
        self.default: Any = default if default is None else self.kind.read(default)

    @property
    def names(self) -> list[str]:
        """The spellings of an option, such as ``-n`` and ``--last``; empty for an argument."""
        return [word.rstrip(",") for word in self.spelling.split() if word.startswith("-")]

    @property
    def many(self) -> bool:
        """Whether it takes several values."""
        return self.spelling.endswith("...")


class Verb:
    """A command, read from its section of the table when it is asked for.

    ``work`` does it: it gets the call, and gives the exit code or None for 0.
    """

    def __init__(self, section: str, work: Work, kinds: Mapping[str, ParamKind]) -> None:
        head, *self._body = section.splitlines()
        self.name, *self._arguments = head.split()
        self.work, self._kinds = work, kinds

    @cached_property
    def _parts(self) -> tuple[str, list[tuple[str, str]]]:
        """The page of help, and the options and other items with their texts."""
        page: list[str] = []
        items: list[tuple[str, str]] = []
        for line in (line[4:] for line in self._body):
            match = re.fullmatch(_ITEM, line)
            if match is not None:
                items.append((match[1] or match[2], match[3]))
            elif items and line.startswith("    "):
                items[-1] = (items[-1][0], f"{items[-1][1]}\n{line.strip()}".strip())
            else:
                page.append(line)
        return "\n".join(page).strip(), items

    def item(self, name: str) -> str | None:
        """The text of ``nbs:``, ``says:``, ``looks:`` or ``without:``, with its line breaks."""
        return dict(self._parts[1]).get(name)

    @property
    def page(self) -> str:
        """The page of ``--help``."""
        return self._parts[0]

    @property
    def nbs(self) -> str | None:
        """The usage line in the ``nbs-*`` program, after the name; None if it lacks the command."""
        usage = self.item("nbs")
        return None if usage is None else usage.replace("\n", " ")

    @cached_property
    def params(self) -> tuple[Param, ...]:
        """Arguments and options, ``--team`` and ``--json`` included."""
        without = (self.item("without") or "").split()
        items = [item for item in self._parts[1] if item[0].startswith("-")]
        if "--team" not in without:
            items.insert(0, TEAM)
        if "--json" not in without and "--json" not in dict(items):
            items.append(("--json", "Print JSON: one object a line."))
        items = [*((word, "") for word in self._arguments), *items]
        return tuple(Param(spelling, text, self._kinds) for spelling, text in items)


TEAM = (
    "-C, --team DIR",
    "Project or team directory; by default TRIPOD_LEDGER's, or found upwards from here.",
)


class CommandGroup:
    """A group of commands; ``page`` is its page of help below the line of ``TOP``."""

    def __init__(self, page: str, verbs: tuple[Verb, ...]) -> None:
        self.page, self.verbs = page, verbs


def command_group(
    table: str, works: Sequence[Work], kinds: Mapping[str, ParamKind] | None = None
) -> CommandGroup:
    """A group from its part of the table, whose first section is the page of the group.

    ``works`` are their functions, in the order of the sections. ``kinds`` say how values are read,
    by ``--option``, by an argument's spelling, or by the word that stands for a value.
    """
    first, *sections = re.split(r"\n+(?=\S)", table.strip())
    rows = zip(sections, works, strict=True)
    verbs = tuple(Verb(section, work, kinds or {}) for section, work in rows)
    return CommandGroup(Verb(first, works[0], {}).page, verbs)


def command_verb(table: str, work: Work, kinds: Mapping[str, ParamKind] | None = None) -> Verb:
    """A command of the first level from its part of the table; the line in ``TOP`` comes first."""
    return Verb(table.strip(), work, kinds or {})


def command_usage(first: str, verbs: Iterable[Verb], rest: str) -> str:
    """The page of help of an ``nbs-*`` program, with two lines or more for each command."""
    lines = [f"Usage: {first}"]
    for verb in verbs:
        usage = (verb.item("nbs") or "").replace("\n", "\n      ")
        lines.append(f"  {verb.name} {usage}\n      {verb.item('says')}")
    return "\n".join([*lines, "  help\n      print this", rest])


class NbsProgram:
    """An ``nbs-*`` program; ``ways`` set the attributes below as its original has them."""

    front = ""
    """What of the team its first argument names: ``events``, ``chat`` or ``scribe``; '' if nothing:
    it works on the team of the current folder."""
    asks: tuple[str, ...] = ("help", "--help", "-h")
    """Words that ask for the help in the place of a command."""
    only = ""
    """The usage line that refusals show, for a program that is one command without a name."""
    lost = "names"
    """What happens without a known command: the ``usage`` is printed, the error holds the
    ``help``, or the error lists the ``names``."""
    help_to_stdout = False
    """Whether help is a result; else it goes to standard error."""
    explains = False
    """Whether the help of a command has its line of explanation (``says:``)."""
    by_name = False
    """Whether refusals list the options by name, and not in the order of the usage line."""
    text_at: Mapping[str, int] = {}
    """By command, the place of an argument that is a text also if it looks like an option."""

    def __init__(self, name: str, verbs: tuple[Verb, ...], usage: str, **ways: Any) -> None:
        self.name, self.verbs, self.usage = name, verbs, usage
        vars(self).update(ways)


class CommandCall(ABC):
    """One call of a command: its arguments, the team it works on, and its answer.

    An argument is an attribute, such as ``call.dedup_window``; a trailing underscore is dropped,
    for the names that Python reserves (``call.as_``).
    """

    nbs = False
    """Whether it is a call of an ``nbs-*`` program."""
    place = ""
    """The folder or file that the ``nbs-*`` programs take first."""
    channel: str
    log: str | None
    """The names in the ledger of the chat or decision log that the place is."""
    behind: int | None = None
    """How many words stood behind a ``--`` of the command line; None where there was none."""

    def __init__(self, verb: Verb, values: Mapping[str, Any]) -> None:
        self.verb, self.values = verb, values

    def __getattr__(self, name: str) -> Any:
        try:
            return self.values[name.removesuffix("_")]
        except KeyError:
            raise AttributeError(name) from None

    def get(self, name: str) -> Any:
        """An argument that only some commands have; None where this one does not."""
        return self.values.get(name)

    @property
    def json(self) -> bool:
        """Whether the answer is to be JSON."""
        return bool(self.values.get("json"))

    @property
    def looks(self) -> bool:
        """Whether this call changes nothing that was there."""
        rule, _, options = (self.verb.item("looks") or "with").partition(" ")
        names = (option.removeprefix("--").replace("-", "_") for option in options.split())
        return rule == "always" or any(
            getattr(self, name) not in (None, False, ()) for name in names
        ) == (rule == "with")

    def run(self) -> int | None:
        """Do the work (RefusedError: it would change something, and nothing is to be changed)."""
        if is_read_only() and not self.looks:
            raise RefusedError(
                f"`{self.verb.name}` would change something, and nothing is to be changed "
                f"({READ_ONLY_OPTION} or {READ_ONLY}): nothing was done"
            )
        return self.verb.work(self)

    @abstractmethod
    def team(self, start: str | None = None) -> AbstractContextManager[Team]:
        """The team that the command works on, opened; looked for from ``start`` upwards."""

    @contextmanager
    def fresh(self) -> Iterator[Team]:
        """The team, after what other programs wrote to its files was taken in."""
        with self.team() as team:
            team.refresh()
            yield team

    def known_actor(self, option: str = "as") -> str | None:
        """The handle that acts: the option's, the environment's, the user's own; else None."""
        return self.values.get(option) or known_handle()

    def actor(self, option: str = "as", *, needed: bool = False) -> str:
        """The handle that acts; ``unknown`` where nothing says who, and a remark how to say it.

        ``needed``: the act makes no sense without one (BadArgumentError).
        """
        who = self.known_actor(option)
        if who is None and needed:
            raise BadArgumentError(f"who acts? {how_to_be_known()}")
        if who is None:
            remark(
                f"it counts as done by {NOBODY!r}, since nothing says who acts: {how_to_be_known()}"
            )
        return who or NOBODY

    def progress(self) -> AbstractContextManager[None]:
        """Say at a terminal how far the work inside is, unless the answer is for a machine."""
        from tripod.output import progress_shown

        return progress_shown(quiet=self.json)

    def objects(self, values: Iterable[Mapping[str, Any]]) -> None:
        """Print JSON objects, one a line; ``docs/reference/json.md`` lists their fields."""
        emit_json({"version": JSON_VERSION, **value} for value in values)

    def answer(self, value: Mapping[str, Any], lines: Iterable[str]) -> None:
        """Print what was done or found: one JSON object, or lines for people."""
        self.answers([value], lines)

    def answers(self, values: Iterable[Mapping[str, Any]], lines: Iterable[str]) -> None:
        """Print what was found: JSON objects, or lines for people."""
        if self.json:
            self.objects(values)
        else:
            emit(lines)


Work = Callable[[Any], int | None]


class Top:
    """A command or group of the first level: its section of the help, its module, its line."""

    def __init__(self, row: str) -> None:
        self.section, self.name, self.module, self.line = row.split(maxsplit=3)


SECTIONS = {
    "work": "Work together",
    "look": "Look at what happened",
    "keep": "Keep the ledger and its files well",
    "prove": "Prove it to others",
}
"""The four sections of ``tripod --help``, in their order."""

_TOP = """\
work bus bus Publish events, list and acknowledge them.
work chat chat Send messages to channels, read and search them.
work scribe scribe Log decisions, count and find them.
work decisions decisions Write decisions where reviewers read them: as files, as a summary.
work worker worker Spawn workers, see what became of them, read what they found.
work pythia pythia See which reviews are due, have Pythia give them, show what it found.
work nova nova Have a panel of personas decide a question, step by step.
work push remote Give this replica's record to a remote, and those of peers that were merged.
work pull remote Fetch the records of other replicas from a remote, and merge what is new.
work peer peers List the other replicas of the team; accept and close them.
look log look List what happened: who, when, what kind, and the text.
look query look Ask the ledger in SQL: views with readable columns, opened only to be read.
look diff look Compare two ledgers: where they part, and what the seals prove.
look show show Print entries, or a projection as of any entry.
look verify verify Judge a project, a team directory, a database, an export or a proof (PATH).
look audit audit Say the first bad entry, the last good seal and what is provable; keep evidence.
look accept acceptance Accept a finding of `tripod verify`, with a reason, or take that back.
look report report Write a page for people: the verdict, who saw what, findings, timeline.
look exposure sessions Say which files recorded sessions of agents showed to their model.
look import sessions Take recorded sessions of agents into the ledger: what they say was read.
look where team Say which team directory commands work on here, and why.
look doctor recovery Say what is wrong with a team directory, and how to mend it.
look demo team Tamper with a copy of a real team's files, recover, review; a week over git.
keep init team Begin a ledger in PATH; an existing .nbs/ is taken in whole, without changing it.
keep sync team Take in what other programs wrote to the team's files.
keep adopt-log adoption Take in decisions and messages from files of other forms.
keep rebuild team Make every table and projected file what the ledger says.
keep backup recovery Write a consistent copy of the ledger to FILE, while others go on writing.
keep restore recovery Put this replica's own record, or a backup, in the place of the ledger.
keep redact recovery Erase the bodies of entries everywhere; their headers and proofs stay.
keep hooks hooks Have each commit of the repository remember the ledger's head.
keep completion team Print the script that completes commands and options in a shell.
prove key trust Make, show and replace the key that seals this ledger.
prove seal trust Sign the ledger's head and record that; print the seal.
prove actor trust Give actors keys, with which they sign what they do; end and list such keys.
prove anchor trust Have others remember the newest seal, and log what they answer.
prove witness trust Keep a witness in a folder: it cosigns seals, and refuses forks.
prove prove trust Prove that entry SEQ stands in the sealed log, to somebody who has only its key.
prove export trust Write the sealed ledger into DIRECTORY, as files that any C2SP tool can check.
"""
TOP = {top.name: top for top in map(Top, _TOP.splitlines())}
"""The first level of ``tripod`` by name, in the order of its help."""
