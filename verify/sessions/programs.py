"""What programs open, show or run by their options and arguments; Git, too. Pure.

A program that is in no table may open any file. Versions of a program differ: an option stands here
where any common version reads a file, or runs another program, by it.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple, Protocol


def names(table: str) -> frozenset[str]:
    """The words of a table."""
    return frozenset(table.split())


FILE_NAME = re.compile(
    r"(?s:.*[^/])\.(?:pyi?|tsx?|jsx|go|rs|java|kt|c|cc|cpp|h|hpp|cs|rb|php|swift|sh|md|rst|txt|json"
    r"|ya?ml|toml|cfg|ini|html|css|scss|sql|xml|csv|patch|diff)"
)
"""A name that a file has and no folder, unless a command made it so, which is opaque."""
NOT_PARSED = (
    "a command line, which only the extra `sessions` parses: pip install 'tripod-ledger[sessions]'"
)
"""What is opaque without the extra: a line that is not one list of plain words."""

UNKNOWN_PART = "**"
"""What stands in a word for a part that only the shell knew."""


class Word(NamedTuple):
    """A word of a command: its text, with ``**`` for what only the shell knew."""

    text: str
    sure: bool


class OpenedPath(NamedTuple):
    """A path that a command opens, as named, and resolved in the command's folder.

    Not ``sure``: a pattern, a variable, or something else that only the shell knew. ``recursive``:
    what lies below it is opened as well. ``lists_names``: the output says which file a text is of.
    ``copied``: it shows nothing; what lies below is in that folder, too, by the same names.
    """

    named: str
    path: str
    sure: bool = True
    recursive: bool = False
    lists_names: bool = False
    copied: str = ""


LOCAL_ADDRESS = re.compile(
    r"""\b(?:file://[^\s"'<>)]+
    |https?://(?:[^\s/@]*@)?(?:
      (?:[^\s./:@\[\]"'<>)]+  # a name without a dot, or one number
        |[^\s/:@"'<>)]+\.(?:localhost|local|internal|lan|home\.arpa))(?=[:/?\#\s"'<>)]|$)
      |(?:0\w*|127|10|169\.254|192\.168|172\.(?:1[6-9]|2[0-9]|3[01]))\.[0-9]
      |\[
    )[^\s"'<>)]*)""",
    re.IGNORECASE | re.VERBOSE,
)
"""Addresses by which a tool for the web gets files of this machine, or of one beside it."""


@dataclass
class ShellReading:
    """What a command line opens, and, in words, what of it cannot be told.

    ``also`` may be opened as well: in a folder that a ``cd`` may have left, or by an option.
    ``ended`` are folders in which the shell may be afterwards, where it began in another.
    """

    opened: list[OpenedPath] = field(default_factory=list)
    also: list[OpenedPath] = field(default_factory=list)
    opaque: list[str] = field(default_factory=list)
    ended: set[str] = field(default_factory=set, compare=False)


NOT_SHORTENED = names("--exclude --include --files --check")
"""Options that are whole, although a longer one begins so."""

GLUED = {
    "awk": "FvfilEedDLop",
    "date": "dfIrsvz",
    "doas": "uC",
    "env": "uCS",
    "fd": "tedEcjSC",
    "git": "m",
    "grep": "efmABCdD",
    "history": "d",
    "jq": "L",
    "less": "pjxPbhyztToOkD",
    "mapfile": "dnOsuCc",
    "rg": "ABCefgmtTjEMdrG",
    "sed": "efil",
    "sudo": "ughpCrtTUDRac",
    "tar": "fCbgHKLNVIFTX",
    "xargs": "adEIJLnPsRSile",
}
"""Letters of options that take the rest of their word as a value."""

ALIKE = {
    name: known
    for known, names in {
        "awk": "gawk mawk nawk",
        "fd": "fdfind",
        "grep": "egrep fgrep zgrep",
        "mapfile": "readarray",
        "rg": "ag ack",
        "sed": "gsed",
    }.items()
    for name in names.split()
}
"""Programs with the options of another."""

VALUES = {
    "grep": "-e -f -m -A -B -C -d -D --regexp --file --include --exclude --exclude-dir"
    " --exclude-from --max-count --context --after-context --before-context --binary-files"
    " --devices --directories --label --group-separator",
    "rg": "-e -f -m -A -B -C -g -t -T -d -E -G -j -M -r -W --glob --type --max-count --context"
    " --iglob --regexp --file --after-context --before-context --color --colors --depth"
    " --context-separator --dfa-size-limit --encoding --engine --field-context-separator"
    " --field-match-separator --hostname-bin --hyperlink-format --ignore --ignore-dir"
    " --ignore-file --max-columns --max-depth --max-filesize --output --path-separator"
    " --path-to-ignore --pre --pre-glob --regex-size-limit --replace --sort --sortr --threads"
    " --type-add --type-clear --type-not",
    "head": "-n -c --lines --bytes",
    "tail": "-n -c --lines --bytes",
    "sed": "-e -f --expression --file",
    "awk": "-F -v -f -i -l -E -e --file --source --include --load --exec --assign",
    "jq": "-f --from-file --arg --argjson --indent",
    "cut": "-d -f -c -b",
    "read": "-p -t -n -N -d -i -u",
    "sort": "-k -t -o -S",
    "sudo": "-u -g -h -p -C -r -t -T -U -D -R -a -c --user --group --host --prompt --chdir",
    "doas": "-u -C",
    "env": "-u -C -S --unset --chdir --split-string",
    "nice": "-n --adjustment",
    "ionice": "-c -n -p --class --classdata",
    "stdbuf": "-i -o -e --input --output --error",
    "time": "-f -o --format --output",
    "timeout": "-k -s --kill-after --signal",
    "exec": "-a",
    "find": "-name -iname -path -ipath -wholename -regex -iregex -maxdepth -mindepth -newer -mtime"
    " -mmin -type -size -user -group -perm",
    "xargs": "-a -d -E -I -J -L -n -P -s -R -S --arg-file --delimiter --max-args --max-procs"
    " --max-lines --max-chars --process-slot-var",
    "nbs-bus": "-C --team",
    "nbs-chat": "-C --team -n --last --since --timeout --unread --at",
    "tripod": "-C --team -n --last --since --timeout --unread --at --stream",
}
"""Options that take the next word, of programs whose other words are files."""


_VALUES = {name: names(table) for name, table in VALUES.items()}
_NONE = frozenset[str]()

SEARCHES = names("rg ag ack")  # below the folder, unless a file is named
RECURSIVE = "-r -R -d --recursive --dereference-recursive --directories"

PATTERNS = {
    "awk": ("-f", "-e", "-E", "--file", "--source", "--exec"),
    "grep": ("-e", "-f", "--regexp", "--file"),
    "jq": ("-f", "--from-file"),
    "rg": ("-e", "-f", "--regexp", "--file", "--files", "--match"),
    "sed": ("-e", "-f", "--expression", "--file"),
    "yq": ("--from-file",),
}
"""Options that give the pattern or the script, which no argument is then."""

HARMLESS = re.compile(r"|/dev/null|cat|true|false|:|less|more|vi|vim|nano|[0-9]+|[^\s@]*@[^\s]*")
AWK = re.compile(r"getline|system|\||@|ARGV")
SCRIPTS = {
    "awk": ("-f", "-i", "-l", "-E", "--file", "--include", "--load", "--exec"),
    "jq": ("-f", "--from-file"),
    "sed": ("-f", "--file"),
    "yq": ("--from-file",),
}
"""Options that read a script, or a part of one."""

JQ = re.compile(r"\b(?:import|include|load\w*)\b")
SED = re.compile(  # one command of sed that opens no file and runs no program
    r"[\s;{}]*(?:(?:\d+(?:~\d+)?|\$|/(?:[^/\\]|\\.)*/[IM]*)"
    r"(?:\s*,\s*(?:\d+|\$|[+~]\d+|/(?:[^/\\]|\\.)*/[IM]*))?)?\s*!?\s*"
    r"(?:s([^\w\s\\])(?:(?!\1)[^\\]|\\.)*\1(?:(?!\1)[^\\]|\\.)*\1[gpIM0-9]*"
    r"|y([^\w\s\\])(?:(?!\2)[^\\]|\\.)*\2(?:(?!\2)[^\\]|\\.)*\2"
    r"|[aic](?:\\.|[^\\\n])*|[:btT]\s*\w*|[qQ]\s*\d*|[pdDgGhHlnNPxzF=]|$)\s*(?=[;}\s]|$)",
    re.DOTALL,
)

OURS_REFS = "refs/tripod"
"""Where our records lie in a repository."""


def operands_of(name: str, args: Sequence[Word]) -> list[Word]:
    """The words that are no options, and no values of options."""
    name = ALIKE.get(name, name)
    values = _VALUES.get(name, _NONE)
    found: list[Word] = []
    skip = ends = False
    for word in args:
        text = word.text
        if skip:
            skip = False
        elif ends or text[:1] != "-" or text == "-":
            found.append(word)
        elif text == "--":
            ends = True
        else:
            skip = _takes_next(name, word, values)
    return found


def _takes_next(name: str, word: Word, values: Container[str]) -> bool:
    """Whether an option has its value in the next word."""
    if word.text in values or len(word.text) < 3 or word.text[1] == "-" or name not in GLUED:
        return word.text in values
    option, value = options_of(name, word)[-1]
    return option in values and not value


def has_unknown_option(name: str, args: Sequence[Word]) -> bool:
    """Whether only the shell knew if a word, which is no value of an option, is one."""
    name = ALIKE.get(name, name)
    if all(word.sure for word in args):
        return False
    values = _VALUES.get(name, _NONE)
    skip = False
    for word in args:
        if skip:
            skip = False
        elif word.text == "--" and name != "find":
            return False
        elif may_be_option(word):
            return True
        else:
            skip = word.text[:1] == "-" and _takes_next(name, word, values)
    return False


def options_of(name: str, word: Word) -> list[tuple[str, str]]:
    """The options in a word, each with the value that the word has for it, or ''.

    >>> options_of("grep", Word("-nePASS", True)), options_of("jq", Word("--from-file=a", True))
    ([('-n', ''), ('-e', 'PASS')], [('--from-file', 'a')])
    """
    text = word.text
    if text[:1] != "-" or len(text) == 1:
        return []
    if text[1] == "-":
        option, _, value = text.partition("=")
        return [(option, value)]
    takes = GLUED.get(ALIKE.get(name, name), "")
    found: list[tuple[str, str]] = []
    for at, letter in enumerate(text[1:], 2):
        if letter in takes:
            found.append((f"-{letter}", text[at:]))
            break
        found.append((f"-{letter}", ""))
    return found


def is_option(option: str, options: Sequence[str]) -> bool:
    """Whether an option is one of some, of which long ones may be abbreviated."""
    return option in options or (
        len(option) > 3
        and option not in NOT_SHORTENED
        and any(one.startswith(option) for one in options)
    )


def values_of(name: str, args: Sequence[Word], options: Sequence[str]) -> list[Word]:
    """The values of some options."""
    found: list[Word] = []
    for at, word in enumerate(args):
        for option, value in options_of(name, word):
            if is_option(option, options):
                within = value or "=" in word.text
                found += [Word(value, word.sure)] if within else args[at + 1 : at + 2]
    return found


def is_among(name: str, args: Sequence[Word], options: str) -> bool:
    """Whether a word has one of some options; '' is any word at all."""
    begins = _words_of(options)
    for word in args:
        if word.text.startswith(begins):
            return True
        if word.text[:1] == "-" and any(
            is_option(option, begins) for option, _ in options_of(name, word)
        ):
            return True
    return not begins


@cache
def _words_of(table: str) -> tuple[str, ...]:
    return tuple(table.split())


_RANGE = re.compile(r"\{[^{},/]*\.\.")


def may_be_option(word: Word) -> bool:
    """Whether only the shell knew if a word is an option, or which options it has.

    >>> [may_be_option(Word(text, False)) for text in ("**", "-**", "--max=**", "a**", "{1..3}")]
    [True, True, False, False, True]
    """
    text = word.text
    if word.sure:
        return False
    if text[:1] == "-":
        return UNKNOWN_PART in text.partition("=")[0]
    return text.startswith(UNKNOWN_PART) or _RANGE.match(text) is not None


def is_plain_sed(script: str) -> bool:
    """Whether a script of sed opens no file and runs no program.

    >>> is_plain_sed("1,5p;s/a/b/g"), is_plain_sed("1r x"), is_plain_sed("s/a/b/e")
    (True, False, False)
    """
    at = 0
    while at < len(script):
        command = SED.match(script, at)
        if command is None or command.end() == at:
            return False
        at = command.end()
    return True


def is_plain_script(kind: str, flags: Iterable[str], scripts: Sequence[Word]) -> bool:
    """Whether what awk, jq or sed is to do opens no file of its own."""
    if kind not in SCRIPTS:
        return True
    text = "\n".join(word.text for word in scripts)
    if any(is_option(option, SCRIPTS[kind]) for option in flags):
        return False
    if kind in ("jq", "yq"):
        return not (JQ.search(text) or text.startswith(UNKNOWN_PART))
    if any(not word.sure and UNKNOWN_PART in word.text for word in scripts):
        return False
    return not AWK.search(text) if kind == "awk" else is_plain_sed(text)


def short(text: str) -> str:
    """A text as a message quotes it."""
    return text if len(text) <= 80 else f"{text[:77]}..."


class OpeningShell(Protocol):
    """A shell as git needs it: it notes what is opened, and what cannot be told."""

    piped: bool
    """Whether the command is behind a ``|``, and takes its input from there."""

    def open(
        self, word: Word, *, recursive: bool = False, lists_names: bool = False, copied: str = ""
    ) -> None:
        """Note that a file is opened."""

    def may_open(self, value: str) -> None:
        """Note a word that may be a file."""

    def opaque(self, why: str) -> None:
        """Note what cannot be told."""

    def goes(self, word: Word) -> None:
        """Go to a folder."""

    def inner(self) -> OpeningShell:
        """A shell within this one, which cannot change it."""


def read_search(shell: OpeningShell, name: str, args: Sequence[Word]) -> None:
    """What a program opens whose first argument is a pattern or a script."""
    kind = "grep" if "grep" in name else ALIKE.get(name, name)
    options = [one for word in args for one in options_of(kind, word)]
    flags = {option for option, _ in options}
    operands = operands_of(kind, args)
    scripts = operands if kind == "jq" else operands[:1]  # --arg takes two words
    if any(is_option(option, PATTERNS[kind]) for option in flags):
        scripts = values_of(kind, args, PATTERNS[kind])
        for word in values_of(kind, args, ("-f", "--file", "--from-file")):
            shell.open(word)
    else:
        operands = operands[1:]
    within = [one.text.partition("=")[2] or one.text[2:] for one in args if one.text[:1] == "-"]
    first = [word.text for word in scripts if kind == "yq"]  # a file, where there is one so named
    for value in (*within, *first, *(value for _, value in options)):
        shell.may_open(value)
    recursive = name in SEARCHES or (kind == "grep" and is_among(kind, args, RECURSIVE))
    if not is_plain_script(kind, flags, scripts):
        shell.opaque(f"a script of {name} that opens files or runs programs")
    if has_unknown_option(kind, args):
        shell.opaque(f"{name} with options that only the shell knew")
    silent = not flags.isdisjoint(("-h", "-o", "--no-filename"))
    # rg searches what is piped to it, unless its patterns come from there; --files lists names.
    reads_pipe = shell.piped and not any(is_option(one, ("-f", "--file")) for one in flags)
    if name == "rg" and ("--files" in flags or (reads_pipe and not operands)):
        return
    if recursive and not operands:
        operands = [Word(".", sure=True)]
    for word in operands:
        shell.open(word, recursive=recursive, lists_names=recursive and not silent)


# Git ----------------------------------------------------------------------------------------------

GIT_QUIET = names(
    """status branch remote fetch push add rm mv commit tag rev-parse rev-list ls-files ls-tree
    ls-remote config init clone checkout switch restore reset merge rebase cherry-pick revert
    pull worktree check-ignore for-each-ref symbolic-ref update-ref gc fsck prune describe
    reflog shortlog submodule clean version help notes merge-base name-rev count-objects"""
)
GIT_TEXT = names(
    """show diff log grep cat-file blame annotate archive stash format-patch bundle whatchanged
    range-diff diff-tree diff-index diff-files apply am bisect"""
)
GIT_WRITES = names("checkout restore switch worktree clone merge")
"""Verbs that write the files of a commit into the work tree."""

GIT_VALUES = frozenset(("-C", "-c", "--git-dir", "--work-tree", "--namespace"))
GIT_SHOWS = {
    verb: shows
    for verbs, shows in {
        "annotate blame": "S --contents --ignore-revs-file",
        "archive": " --add-file --add-virtual-file --exec",
        "diff log show": " --ext-diff --textconv",
        "grep": "O --open-files-in-pager",
        "add": "pie --patch --interactive --edit --pathspec-from-file",
        "bisect": " run visualize view replay",
        "cat-file": " --batch --batch-command",
        "checkout reset restore": "p --patch --pathspec-from-file",
        "clone": "uc --upload-pack --config --template",
        "commit": "vpFt --verbose --patch --interactive --file --template --pathspec-from-file",
        "config": "fe --file --blob --edit",
        "fetch pull": " --upload-pack",
        "fsck": " --lost-found",
        "init": " --template",
        "ls-remote": " --upload-pack --exec",
        "merge tag": "F --file",
        "notes": "FCc --file --reuse-message --reedit-message",
        "push": " --receive-pack --exec",
        "rebase": "x --exec --show-current-patch",
        "rm": " --pathspec-from-file",
        "status": "v --verbose",
        "submodule": " foreach",
    }.items()
    for verb in verbs.split()
}
"""For verbs, letters of options, options and words that show text which they do not name."""

GIT_NAMES = names("branch tag update-ref symbolic-ref fetch pull worktree clone remote")
"""Verbs that give a name to a commit, or to a folder."""

GIT_REMOTE = names("clone fetch ls-remote pull push remote submodule")
"""Verbs that speak with another repository, whose address may name a program."""

GIT_BRIEFLY = names(
    "apply show diff log stash whatchanged diff-tree diff-index diff-files range-diff"
)
GIT_COMPARES = names("diff log show whatchanged diff-tree diff-index diff-files")
GIT_FLAGS = names("-p -u -w -b --patch --word-diff --color-words --function-context -W --raw")
"""Verbs that take files behind commits, and their options without a value that show text."""

GIT_TAKES = names(
    "--since --until --after --before --author --committer --grep -S -G -n --max-count --skip"
)
GIT_LOGS = GIT_BRIEFLY | names("format-patch reflog bisect")
GIT_TOLD = names("commit tag merge notes stash")
"""Verbs whose ``-m`` takes a message, and options of ``git log`` and its kin that take a word."""

GIT_PATH = re.compile(r"((?>(?:[@^]\{[^{}]*\}|[^:{}])*)):(?:[0-3]:)?([^/!^(].*)", re.DOTALL)
"""A path in a revision, or in the index; not a message that is looked for, nor an exclusion."""


GIT_RUNS = re.compile(
    r"alias|pager|editor|external|textconv|fsmonitor|hook|filter|driver|command|cmd|helper"
    r"|askpass|program|include|uploadpack|receivepack|packobjects|attributes|browser|proxy|tool"
    r"|protocol\.ext|file|template|skiplist|ignorerevs|commit\.verbose",
    re.IGNORECASE,
)
"""Settings of git that name a program or a file."""

GIT_BRIEF = names("--stat --shortstat --numstat --name-only --name-status --no-patch -s")
GIT_LISTS = re.compile(
    r"-[0-9inqsEFz]+|-n[0-9]+|--(?:oneline|graph|all|no-\w[\w-]*|name-only|name-status|reverse"
    r"|stat|shortstat|numstat|summary|decorate|merges|first-parent|follow|date-order|topo-order"
    r"|branches|tags|remotes|abbrev-commit|color|relative-date|left-right|cherry|"
    r"include-untracked|quiet|cached|staged|(?:max-count|format|pretty|since|until|after|before|author"
    r"|committer|grep|date|decorate|diff-filter|skip|abbrev|color|stat|branches|tags|message)"
    r"=.*)"
)
"""Options with which ``git log`` and its kin show no text of files."""


def read_git(shell: OpeningShell, args: list[Word]) -> None:
    """What a command of git opens, in a shell."""
    inner, elsewhere = shell.inner(), ""
    while args and args[0].text.startswith("-"):
        option = args.pop(0).text
        if option.startswith("--work-tree"):
            elsewhere = option.partition("=")[2] or UNKNOWN_PART
        if option in GIT_VALUES and args:
            value = args.pop(0)
            if option == "-C":
                inner.goes(value)
            elif option == "-c":
                _setting(shell, *value.text.split("=", 1))
        elif option.startswith(("--exec-path=", "--config-env")):
            shell.opaque(f"git {short(option)} may run any program")
    verb = args.pop(0).text if args else "help"
    options, revisions, paths = _parts(verb, args)
    if elsewhere and verb not in GIT_TEXT:
        inner.open(Word(".", sure=False), recursive=True, copied=elsewhere)
    _options(shell, verb, args, [*options, *revisions])
    if verb == "config":
        _setting(shell, *[word.text for word in args if word.text[:1] != "-"])
    if verb == "mv":
        for word in args:
            shell.open(word._replace(sure=False), recursive=True)
    _records(shell, verb, args)
    _copies(inner, verb, revisions)
    _names_like_files(shell, verb, args)
    if verb in ("tag", "update-ref"):  # another name for a file
        for word in revisions:
            if named := GIT_PATH.fullmatch(word.text):
                inner.open(Word(named[2], sure=False), recursive=True)
    if verb in GIT_QUIET and verb != "reflog":
        return
    if verb not in GIT_TEXT:
        shell.opaque(f"git {short(verb)} may open any file")
    elif not _is_brief(verb, options, revisions):
        _shows(inner, verb, args, paths)


def _parts(verb: str, args: Sequence[Word]) -> tuple[list[Word], list[Word], list[Word] | None]:
    """The options, the words that may be revisions, and the paths behind ``--``."""
    options, revisions = list[Word](), list[Word]()
    takes = False
    for at, word in enumerate(args):
        if takes:
            takes = False
        elif word.text == "--":
            return options, revisions, list(args[at + 1 :])
        elif word.text.startswith("-"):
            options.append(word)
            takes = (verb in GIT_LOGS and word.text in GIT_TAKES) or (
                verb in GIT_TOLD and re.fullmatch(r"-[a-z]*m|--message", word.text) is not None
            )
        else:
            revisions.append(word)
    return options, revisions, None


def _options(shell: OpeningShell, verb: str, args: Sequence[Word], given: Sequence[Word]) -> None:
    """Note options with which git may show what it does not name, or run a program."""
    letters, _, table = GIT_SHOWS.get(verb, "").partition(" ")
    words = _words_of(table)
    kind = "git" if verb in GIT_TOLD else ""
    for word in args:
        if _begins(word.text, words) or any(
            option[1:] in letters for option, _ in options_of(kind, word) if len(option) == 2
        ):
            shell.opaque(f"git {verb} with these options may show any file")
        if "%(raw" in word.text or (verb in GIT_REMOTE and "::" in word.text):
            shell.opaque(f"git {verb} with {short(word.text)} may show any file")
    reads = (verb in GIT_SHOWS or verb in GIT_TEXT) and verb not in GIT_REMOTE
    if reads and any(may_be_option(word) for word in given):
        shell.opaque(f"git {short(verb)} with options that only the shell knew")


def _is_brief(verb: str, options: Sequence[Word], revisions: Sequence[Word]) -> bool:
    """Whether messages and names of commits alone are shown, and names of files.

    A file in a revision is shown whole in spite of these options, as is one by its hash; of a hash
    that is shortened we take it that it is that of a commit, as ``git log`` prints it.
    """
    briefly = verb in GIT_BRIEFLY and any(
        word.text.partition("=")[0] in GIT_BRIEF for word in options
    )
    if verb == "grep":
        briefly = any(word.text == "--name-only" for word in options)
    if verb == "show" and any(
        GIT_PATH.fullmatch(word.text) or re.fullmatch("[0-9a-f]{40,}", word.text)
        for word in revisions
    ):
        return False
    return (briefly or verb in ("log", "stash", "bisect", "reflog")) and all(
        GIT_LISTS.fullmatch(word.text)
        or (verb in GIT_LOGS and word.text in GIT_TAKES)
        or (verb in GIT_TOLD and word.text in ("-m", "--message"))
        for word in options
    )


def _shows(
    shell: OpeningShell, verb: str, args: Sequence[Word], behind: Sequence[Word] | None
) -> None:
    """The files that a command shows: those that it names, or all that it may."""
    options, revisions, _ = _parts(verb, args)
    shown: list[Word] = []
    whole = any(_begins(word.text, ("--full-diff",)) for word in options)
    for word in behind or ():
        if word.text[:1] in ("", ":"):  # none, or all but some, or from the top on
            whole = True
            top = word.text.startswith((":/", ":(")) and not word.text.startswith(":(ex")
            shown += [Word(UNKNOWN_PART, sure=False)] if top else []
        else:
            shown.append(word)
    named = 0
    files = _files(args) if verb in GIT_COMPARES else []
    shown += files
    for word in revisions if verb != "grep" else ():
        if found := GIT_PATH.fullmatch(word.text):
            shown.append(Word(found[2], word.sure))
            named += 1
        elif ":" not in word.text:
            shell.may_open(word.text)  # a commit, or a path
    if verb in ("blame", "annotate"):
        shown = shown or list(revisions)
        named = 0
    for word in shown:
        recursive = verb not in ("blame", "annotate")
        shell.open(word, recursive=recursive, lists_names=verb == "grep" or word in files)
    if whole or not shown or (behind is None and not files and 0 < named < len(revisions)):
        shell.open(Word(".", sure=False), recursive=True, lists_names=verb != "archive")


def _files(args: Sequence[Word]) -> list[Word]:
    """Words that are files by their name, and no values: git takes none for a commit as well."""
    found = list[Word]()
    before = ""
    for word in args:
        if word.text == "--":
            break
        is_value = before[:1] == "-" and not (GIT_LISTS.fullmatch(before) or before in GIT_FLAGS)
        if word.sure and not is_value and ":" not in word.text and FILE_NAME.fullmatch(word.text):
            found.append(word)
        before = word.text
    return found


def _records(shell: OpeningShell, verb: str, args: Sequence[Word]) -> None:
    """Our records that a verb of git shows: a ref holds files whose paths do not name it."""
    for word in args if verb in GIT_TEXT or verb in GIT_WRITES else ():
        ref = (word.text.partition("=")[2] or word.text).partition(":")[0]
        if ref.startswith(OURS_REFS):
            shell.open(Word(f".git/{ref}", word.sure), recursive=True)


def _copies(shell: OpeningShell, verb: str, words: Sequence[Word]) -> None:
    """What lies in another folder afterwards, by the same names: in a work tree, or a clone."""
    texts = [word.text for word in words]
    if verb == "worktree" and texts[:1] == ["add"]:
        there = "/".join(texts[1:]) or UNKNOWN_PART
        shell.open(Word(".", sure=False), recursive=True, copied=there)
    for word in words if verb in GIT_REMOTE and verb != "ls-remote" else ():
        # Not the address of a server. A clone takes any folder, by other verbs it is a name first.
        if re.match(r"[./~*]|file:" if verb != "clone" else r"(?!(?!file:)[\w+.@-]+:)", word.text):
            here = Word(".", sure=False) if verb == "push" else word._replace(sure=False)
            shell.open(here, recursive=True, copied="/".join(texts))


def _names_like_files(shell: OpeningShell, verb: str, args: Sequence[Word]) -> None:
    """A branch or a folder that is called like a file: the next command is read as if it were."""
    texts = [word.text for word in args]
    makes = verb in GIT_NAMES or (
        verb in ("checkout", "switch")
        and any(re.match("-[a-zA-Z]*[bBcCt]|--(?:c|force-c|o|t)", text) for text in texts)
    )
    if makes and any(map(FILE_NAME.fullmatch, texts)):
        shell.opaque(f"git {verb} with a name like that of a file")


def _setting(shell: OpeningShell, *setting: str) -> None:
    """A setting of git that is made: its name and its value."""
    name, value = (*setting, "", "")[:2]
    harmless = HARMLESS.fullmatch(value) and len(setting) == 2
    if name.lower() == "commit.verbose":
        harmless = value in ("false", "0", "no", "off")
    if GIT_RUNS.search(" ".join(setting)) and value and not harmless:
        shell.opaque(f"the setting {short(name)} of git may name any program")


def _begins(word: str, options: Sequence[str]) -> bool:
    """Whether a word is an option, which git takes by any beginning of it."""
    option = word.partition("=")[0]
    return option in options or (
        len(option) > 3 and option[:2] == "--" and any(one.startswith(option) for one in options)
    )
