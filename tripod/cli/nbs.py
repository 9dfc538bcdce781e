"""The ``nbs-*`` programs: the arguments, output and exit codes that their documents promise.

They do the work of the same table as ``tripod``. Their originals ignored what they did not know, so
that a slip in ``--handle=ann`` acknowledged everything, and a text that began with ``--`` was lost
(spec: nbs-compat B1, B12.5). Here nothing is ignored:

- ``--name=value`` is an option, ``--name`` a flag, wherever they stand; one that the command does
  not have is refused, and so is one that is given twice with two values;
- a word that begins with ``--`` and has not that form (``-- a note``) is a text, and after a ``--``
  every word is one; more texts than the command takes are refused;
- a handle that an option gives is one line: a line break in it is refused.

What a command takes is read from its usage line. click is not imported: it would cost such a
program a sixth of its time, and reads another grammar.
"""

import importlib
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from tripod.cli.commands import (
    FLAG,
    NOBODY,
    RAW,
    TEXT,
    CommandCall,
    HandleParam,
    NbsProgram,
    NumberParam,
    Param,
    Verb,
    handle_said,
    known_handle,
    whole_number_param,
)
from tripod.errors import BadArgumentError
from tripod.output import (
    DOORS,
    FAILURES,
    Codes,
    begin,
    collect_less_garbage,
    emit,
    emit_json,
    leave,
    remark,
    report_and_exit_code,
)

if TYPE_CHECKING:
    from tripod.team.team import Team

_OPTION = r"(?s)--([a-z][a-z0-9-]*)(?:=(.*))?"
_HANDLES = ("as", "by", "handle", "reader", "since", "unread")


class Grammar(NamedTuple):
    """What a command takes: the names of its texts, how many it needs, its options and flags."""

    texts: list[str]
    least: int
    options: list[str]
    flags: list[str]


class Words(NamedTuple):
    """The texts in their order, the options' values by name, and the flags that were given."""

    texts: list[str]
    options: dict[str, str]
    flags: frozenset[str]


def nbs_grammar(usage: str) -> Grammar:
    """Read a usage line; a text in brackets, or before a ``|``, may be left out.

    >>> nbs_grammar("DIR [EVENT] --by=HANDLE [--processed]")
    Grammar(texts=['dir', 'event'], least=1, options=['by'], flags=['processed'])
    """
    parts = re.sub(r"\([^)]*\)", "", usage).split()
    found = [part for part in parts if part != "|"]
    before_bar = {part for part, after in pairwise(parts) if after == "|"}
    texts = [part for part in found if "--" not in part]
    options = [part.strip("[]").removeprefix("--") for part in found if "--" in part]
    return Grammar(
        [part.strip("[]").lower() for part in texts],
        sum(part[0] != "[" and part not in before_bar for part in texts),
        [option.partition("=")[0] for option in options if "=" in option],
        [option for option in options if "=" not in option],
    )


def take_nbs_words_apart(words: Sequence[str], usage: str, takes: Grammar) -> Words:
    """Take the words after a command's name apart (BadArgumentError, with the usage line)."""
    found: list[str] = []
    values: dict[str, str] = {}
    given: set[str] = set()
    only_texts = False
    for word in words:
        match = None if only_texts else re.fullmatch(_OPTION, word)
        if word == "--" and not only_texts:
            only_texts = True
        elif match is None:
            _refuse_bytes(word, "an argument", usage)
            found.append(word)
        else:
            name, value = match.groups()
            problem = None
            if name not in (*takes.options, *takes.flags):
                known = [
                    *(f"--{one}=..." for one in takes.options),
                    *(f"--{one}" for one in takes.flags),
                ]
                has = f"{'the options' if known else 'there'} are {', '.join(known) or 'none'}"
                problem = f"no option --{name}; {has}. A text that looks like one goes behind a --"
            elif value is None and name in takes.options:
                problem = f"--{name} takes a value: --{name}=..."
            elif value is None:
                given.add(name)
            elif values.setdefault(name, value) != value:
                problem = f"--{name} is given twice, with two values"
            elif name in takes.flags:
                problem = f"--{name} takes no value"
            elif name in _HANDLES and re.search(r"[\n\r]", value):
                problem = f"--{name}: the value holds a line break; give it on one line"
            if problem is not None:
                raise nbs_refusal(problem, usage)
    if not takes.least <= len(found) <= len(takes.texts):
        few = len(found) < takes.least
        what = "too few arguments" if few else f"{found[len(takes.texts)]!r} is one too many"
        raise nbs_refusal(what, usage)
    return Words(found, values, frozenset(given))


def nbs_refusal(what: str, usage: str) -> BadArgumentError:
    """The error that says what is wrong, and shows the usage line."""
    return BadArgumentError(f"{what}\n  Usage: {usage}")


def _refuse_bytes(word: str, what: str, usage: str) -> None:
    try:
        TEXT.read(word)
    except ValueError as error:
        raise nbs_refusal(f"{what} {error}", usage) from error


class NbsCall(CommandCall):
    """One call of a command of an ``nbs-*`` program.

    The value of an option is judged when the work asks for it, in the original's order; the texts
    are given as they are.
    """

    nbs = True

    def __init__(
        self, program: NbsProgram, verb: Verb, usage: str, words: Words, takes: Grammar
    ) -> None:
        texts = dict(zip(takes.texts, words.texts, strict=False))
        super().__init__(verb, texts)
        self.program, self.usage, self.words, self.takes = program, usage, words, takes
        self.place = words.texts[0] if words.texts else ""

    def __getattr__(self, name: str) -> Any:
        option = name.removesuffix("_").replace("_", "-")
        if option in self.takes.flags:
            return option in self.words.flags
        if option in self.takes.options:
            return self._value(option)
        if option in self.takes.texts:
            return self.values.get(option)
        if option in self._params():  # tripod alone has it
            return False if self._params()[option].kind is FLAG else None
        raise AttributeError(name)

    def _params(self) -> dict[str, Param]:
        return {param.name.replace("_", "-"): param for param in self.verb.params}

    def _value(self, option: str) -> Any:
        text, param = self.words.options.get(option), self._params().get(option)
        kind = None if param is None else param.kind
        if text is None:
            return None if param is None else param.default
        if kind is not None and kind is not RAW:  # the path of a file may be any bytes
            _refuse_bytes(text, f"--{option}", self.usage)
        if isinstance(kind, NumberParam):
            number = whole_number_param(text, kind.least, kind.most) if text else kind.empty
            if number is None:
                what = f"--{option}={text:.40}: no whole number from {kind.least} to {kind.most}"
                raise nbs_refusal(what, self.usage)
            return number
        if isinstance(kind, HandleParam) and kind.loose:
            if not text:
                raise BadArgumentError(f"--{option}: empty; name a handle, or leave it out")
        elif isinstance(kind, HandleParam):
            handle_said(text, f"--{option}")
        return text

    def get(self, name: str) -> Any:
        """The value of an option that only some commands have; None where this one does not."""
        option = name.replace("_", "-")
        return self._value(option) if option in self.takes.options else None

    @property
    def json(self) -> bool:
        """Whether the answer is to be JSON."""
        return "json" in self.words.flags

    def team(self, start: str | None = None) -> "AbstractContextManager[Team]":
        """The team whose files the program is given, or around the current folder."""
        from tripod.cli.nbs_team import nbs_team_for

        del start
        return nbs_team_for(self)

    def known_actor(self, option: str = "as") -> str | None:
        """The handle that acts: the option's, the environment's, the user's own; else None."""
        given = self.words.options.get(option)
        return known_handle() if given is None else handle_said(given, f"--{option}")

    def actor(self, option: str = "as", *, needed: bool = False) -> str:
        """The handle that acts; ``unknown`` where nothing says who, without a remark.

        Scripts of the original tools take what stands on standard error for an error.
        """
        who = self.known_actor(option)
        if who is None and needed:
            raise nbs_refusal(f"--{option}=HANDLE is missing: say who it is", self.usage)
        return who or NOBODY

    def objects(self, values: Iterable[Mapping[str, Any]]) -> None:
        """Print JSON objects, one a line, as the original does."""
        emit_json(values)


def _main(module: str, at: int = 0) -> NoReturn:
    """Run the program of a module of the table, and leave with its exit code."""
    collect_less_garbage()
    program: NbsProgram = importlib.import_module(f"tripod.cli.{module}").PROGRAMS[at]
    begin(program.name)
    codes = _codes(program)
    try:
        code = _run(program, sys.argv[1:]) or 0
    except FAILURES as error:
        code = report_and_exit_code(error, codes)
    except KeyboardInterrupt:
        remark("stopped")
        code = 130
    leave(code, program.name)


def _codes(program: NbsProgram) -> Codes:
    """Its own row of exit codes, or that of the command group."""
    return DOORS.get(program.name) or DOORS[program.name.removeprefix("nbs-")]


nbs_bus = partial(_main, "bus")
nbs_chat = partial(_main, "chat")
nbs_scribe = partial(_main, "scribe", 0)
nbs_scribe_log = partial(_main, "scribe", 1)
nbs_scribe_query = partial(_main, "scribe", 2)
nbs_worker = partial(_main, "worker")


def _run(program: NbsProgram, words: Sequence[str]) -> int | None:
    name, rest = (words[0], words[1:]) if words else ("", ())
    asks = name in program.asks
    if program.only:  # a single command; --help may stand anywhere before a --
        name, rest = program.verbs[0].name, words
        before = words[: words.index("--")] if "--" in words else words
        asks = "--help" in before or "-h" in before
    if asks:
        return _tell(program, program.usage)
    verb = next((verb for verb in program.verbs if verb.name == name), None)
    if verb is None or verb.nbs is None or (not words and program.lost == "usage"):
        # No command that is known: each program ends as its original does.
        what = f"no command {words[0]!r}" if words else "which command?"
        if program.lost == "help":
            raise BadArgumentError(f"{what}\n{program.usage}")
        if program.lost == "names":
            known = ", ".join(verb.name for verb in program.verbs if verb.nbs is not None)
            raise BadArgumentError(f"which command? There are {known}, help.")
        if words and words[0]:
            remark(what)
        _tell(program, program.usage)
        return _codes(program).usage
    usage = program.only or f"{program.name} {name} {verb.nbs}".rstrip()
    if rest and rest[0] in ("--help", "-h"):  # elsewhere it is a text: `send FILE ann --help`
        says = f"\n    {verb.item('says')}" if program.explains else ""
        return _tell(program, f"Usage: {usage}{says}")
    takes = nbs_grammar(verb.nbs)
    if program.by_name:
        takes = takes._replace(options=sorted(takes.options))
    place = program.text_at.get(name, len(rest))
    if place < len(rest) and "--" not in rest[: place + 1]:
        # A message or pattern in its place is a text, unless it is an option of the command. The
        # original takes it as it stands, and scripts rely on that: ``send FILE ann --done``.
        option, equals, _ = rest[place].partition("=")
        names = takes.options if equals else takes.flags
        if option.startswith("--") and option[2:] not in names:
            rest = [*rest[:place], *rest[place + 1 :], "--", rest[place]]
    return NbsCall(program, verb, usage, take_nbs_words_apart(rest, usage, takes), takes).run()


def _tell(program: NbsProgram, text: str) -> int:
    if program.help_to_stdout:
        emit([text])
    elif sys.stderr is not None:
        sys.stderr.write(f"{text.rstrip(chr(10))}\n")
    return 0
