"""Of what a command line consists: words, names of programs, or what a parser makes of it. Pure."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_WORD = r"""(?>(?:[\w./:@%+,=~-]|'[^'\n]*'|"[^"$`\\!\n]*")+)(?=[ |;&]|\Z)"""
_SEPARATOR = r"\|\||&&|;|\|"
_NOWHERE = r"(?:(?<= )|^)\d?>(?:/dev/null|&[12])(?=[ |;]|\Z)"
_TOKEN = re.compile(rf"(?s: *+(?:{_NOWHERE}|({_WORD})|({_SEPARATOR})|(.+)))")
_NAME = re.compile(r"[\w./~][\w./~+-]*|:")
_QUOTED = re.compile(r"""'([^']*)'|"([^"]*)\"""")
_RESERVED = re.compile(
    "if|then|else|elif|fi|for|while|until|do|done|case|esac|in|select|function|time|coproc|declare"
    "|typeset|export|readonly|local|unset|unsetenv|let"
)
"""Words that begin something else than a program."""


def plain_commands(line: str) -> list[tuple[bool, list[str]]] | None:
    """The commands of a line of which each word is plain, as words; None if one is not.

    Each with whether it is behind a ``|``.

    Plain is what every shell takes as it stands: a list of words, quoted or not, without patterns
    and variables. Most lines are so, and need no parser.

    >>> plain_commands("cd src && rg -n 'a b' lib.py 2>/dev/null | head -5")
    [(False, ['cd', 'src']), (False, ['rg', '-n', 'a b', 'lib.py']), (True, ['head', '-5'])]
    >>> plain_commands("cat *.md") is None, plain_commands("A=1 cat") is None
    (True, True)
    """
    words: list[str] = []
    commands = [(False, words)]
    for word, separator, other in _TOKEN.findall(line):
        if word:
            words.append(word)
        elif separator:
            words = []
            commands.append((separator == "|", words))
        elif other:
            return None
    for _, words in commands:
        if not words or not _NAME.fullmatch(words[0]) or _RESERVED.fullmatch(words[0]):
            return None
        words[:] = [
            _QUOTED.sub(r"\1\2", word) if "'" in word or '"' in word else word for word in words
        ]
    return commands


MAX_PARSED = 4096  # characters of a command line without the texts that it gives to programs
_MAX_STEPS = 4_000
"""Looks at how far a parser is, each about 0.2 ms; a line of 4 KiB takes some 300."""

_PLAIN_PART = r"[\w./ >&|;=~:@+,-]*"
_HEREDOC = re.compile(
    rf"((?:{_PLAIN_PART}\n)*{_PLAIN_PART}<<-? *(['\"])(\w+)\2{_PLAIN_PART}\n)"
    r"(?s:.*?\n)??(\t*\3(?:\n|\Z))"
)
"""A text to the next program, before which nothing is quoted, so that it is one for certain."""


def syntax_of(parser: Parser, command: str) -> Node | None:
    """What a command line consists of; None where it is too long, or takes too long.

    The parsers try to mend what they do not understand: 8 KB of a hostile line took 2 s and 460 MB,
    64 KB ended the process. So the length is limited, without the texts that are given to programs,
    and steps are counted. (Steps and not time: the answer stays the same.)
    """
    short_enough, at = [], 0
    while found := _HEREDOC.match(command, at):
        short_enough.append(found[1] + found[4])
        at = found.end()
    text = _in_ascii("".join([*short_enough, command[at:]]))
    if len(text) > MAX_PARSED:
        return None
    steps = count(1)
    try:
        parser.parse(
            lambda at, _: text[at : at + MAX_PARSED],
            progress_callback=lambda *_: next(steps) > _MAX_STEPS,
        )
    except ValueError:
        parser.reset()  # else it goes on with this line at the next
        return None
    # Once more: the texts of nodes of the first tree, whose source is a function, crash at times.
    return parser.parse(text).root_node


def parser_of(package: str) -> Parser | None:
    """A parser with the grammar of a package; None where one of the two is not installed.

    The package would import a tenth of what a short command imports, to read files that nobody asks
    for here. So its library is loaded without it, where it lies as it does today.
    """
    try:
        from tree_sitter import Language, Parser

        whole = find_spec(package)
        folders = None if whole is None else whole.submodule_search_locations
        inner = PathFinder.find_spec(f"{package}._binding", folders) if folders else None
        if inner is None or inner.loader is None:
            grammar = import_module(package)
        else:
            grammar = module_from_spec(inner)
            inner.loader.exec_module(grammar)
        return Parser(Language(grammar.language()))
    except ImportError:
        return None


_ESCAPED = re.compile("_u([0-9a-f]{6})_")


def _in_ascii(text: str) -> bytes:
    """A command line for the parser, whose scanner crashes on characters beyond a byte."""
    if text.isascii() and "_u" not in text:
        return text.encode()
    return re.sub(
        r"[^\0-\x7f]|_u(?=[0-9a-f]{6}_)",
        lambda found: "".join(f"_u{ord(one):06x}_" for one in found[0]),
        text,
    ).encode()


def node_text(node: Any) -> str:
    """The text of a node as it stood in the command line."""
    data = node.text
    text = data.decode() if isinstance(data, bytes) else ""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if "_u" in text else text


def name_of(assignment: Node) -> str:
    """The variable that an assignment sets, without an index."""
    return re.split(r"[\[+=]", node_text(assignment), maxsplit=1)[0]


def takes_input(node: Node) -> bool:
    """Whether a statement has its input from elsewhere, or is of several commands."""
    if node.type not in ("command", "redirected_statement"):
        return True
    return any(
        child.type in ("herestring_redirect", "heredoc_redirect")
        or (child.type == "file_redirect" and "<" in node_text(child))
        for child in node.named_children
    )


_GLUED = re.compile(rb"[^\s\\;&|(](?:\\\\)*(\\\n)(?=[^\s;&|)<>])")
_MARK = re.compile(rb"""(?<!<)<<(?!<)(-?)\s*['"\\]?([^\s'"\\;&|<>()]+)""")


def is_misread(root: Node) -> bool:
    """Whether a parser did not understand a line, or not as a shell does.

    It takes a word on two lines for two, and ends a text at its mark with blanks around it.
    """
    whole, begins = root.text or b"", root.start_byte
    marks = {mark: dash for dash, mark in _MARK.findall(whole)}
    for line in whole.split(b"\n") if marks else ():
        mark = line.strip()
        if mark in marks and line.lstrip(b"\t" if marks[mark] else b"\n") != mark:
            return True
    glued = (begins + found.start(1) for found in _GLUED.finditer(whole))
    between = [root.descendant_for_byte_range(at, at + 2) for at in glued]
    return root.has_error or any(node is None or node.child_count > 0 for node in between)


_BRACES = re.compile(r"\{([^{},]*,[^{}]*)\}")


def without_braces(word: str) -> list[str]:
    """A word, and what it is when the braces in it are written out; [] if too many.

    >>> without_braces("src{/../.env,}")
    ['src{/../.env,}', 'src/../.env', 'src']
    """
    found, todo = [word], [word]
    while todo and len(found) < 64:
        text = todo.pop()
        braces = _BRACES.search(text)
        if braces is not None:
            head, tail = text[: braces.start()], text[braces.end() :]
            todo += [f"{head}{one}{tail}" for one in reversed(braces[1].split(","))]
        elif text != word:
            found.append(text)
    return [] if todo else found


# Programs --------------------------------------------------------------------------------------


def _names(table: str) -> frozenset[str]:
    return frozenset(table.split())


FILES = _names(
    """cat bat batcat head tail less more most nl tac rev wc sort uniq cut paste join column fold
    fmt pr expand unexpand shuf od xxd hexdump hd strings base64 base32 md5sum sha1sum sha256sum
    sha512sum b2sum cksum sum diff cmp comm sdiff vimdiff zcat zless zmore gzip gunzip bzcat bunzip2
    xzcat unxz zstdcat vi vim nvim nano view ed emacs open xdg-open bc tar zip unzip 7z cp mv
    install rsync scp ln dd split csplit iconv dos2unix file look tsort ptx gofmt"""
)
"""Programs whose arguments are files that they open."""

INTERPRETERS = _names("python python3 perl ruby node deno bun php lua sqlite3 osascript")
"""Programs that run a script, of which only its words tell which files it opens."""

EXECUTES = _names("-exec -execdir -ok -okdir")
COPIES = _names("cp mv install rsync scp ln")
MOVES = _names("mv ln")
"""Programs that show nothing, and after which a file has another name."""

TREES = _names("tar zip 7z cp rsync scp mv ln diff gzip gunzip gofmt")
"""Programs that take a folder with all that lies in it."""

DEEP = {
    "cp": "-r -R -a --recursive --archive",
    "gzip": "-r --recursive",
    "gunzip": "-r --recursive",
    "rsync": "-r -a --recursive --archive",
    "scp": "-r",
}
"""Options without which some of these take no folder."""

UNPACKS = re.compile(r"-?[^-ACcru]*[xt][^ACcru]*|--(?:extract|get|list)")
"""The first word of ``tar`` by which it reads an archive, and no folder."""

CLOSED = re.compile(
    r"(?:python3?|pip3?|uv|ruff|mypy|rustc|cargo|rustup) (?:--version|-V)"
    r"|(?:node|npm|npx|ruby|perl|php|gcc|g\+\+|clang|tsc) (?:--version|-v)"
    r"|(?:go|docker|kubectl|gh) (?:version|--version)|javac? -?-version"
    r"|(?:cmake|make|ninja|pytest|black|deno|bun|rustfmt|jq|bash|zsh) --version"
    r"|command -[pvV]*[vV]\b.*|(?:docker (?:ps|images|version|info)|npm (?:ls|list)"
    r"|pip3? (?:list|show)|gh (?:auth status|(?:run|repo|release|label|workflow) list"
    r"|(?:pr|issue) (?:list|view|status|checks|create|edit|merge|comment|close|ready)))\b.*"
)
"""Commands that show versions, or what lies in no file of the project: where a program is, what is
installed or runs, what people wrote on a server."""

STARTS = re.compile("(?i:PYTHON|NODE|NPM|PIP|UV|GH|DOCKER|PERL5|RUBY|JAVA|CARGO|RUST)")
"""Variables by which these run, or read, something else."""

AFTER_ONE = _names("grep egrep fgrep zgrep rg ag ack sed gsed awk gawk mawk nawk jq yq")
"""Programs that open the files behind a first argument, which is a pattern or a script."""

NAMES = _names(
    """ls ll dir tree find fd fdfind du df stat realpath readlink basename dirname pwd which whereis
    type locate test [ [[ mkdir rmdir touch rm unlink chmod chown chgrp truncate mktemp"""
)
"""Programs that show names, sizes and times, or change files, and show no text."""

QUIET = _names(
    """echo printf true false : cd pushd popd export unset set shopt local declare typeset
    readonly alias unalias read exit return break continue shift wait sleep date seq yes
    whoami id groups uname hostname uptime ps kill pkill pgrep jobs fg bg disown trap umask
    ulimit tput clear reset printenv hash history arch nproc free tr expr tee mapfile
    readarray lsof netstat lscpu lsb_release nvidia-smi"""
)
"""Programs that open no file of the project."""

SETTING = _names("read mapfile readarray printf getopts let unset")
"""Programs of the shell that set variables."""

SETS_VARIABLES = re.compile(rf"(?:\S*/)?(?:{'|'.join(sorted(SETTING))})\b")
WRAPPERS = _names("sudo doas nohup nice ionice stdbuf time exec builtin setsid command")
SHELLS = _names("bash sh dash zsh ksh")
TRUSTED = re.compile(r"(?:/usr|/opt/homebrew)?(?:/local)?/s?bin/[^/]+")
ENVIRONMENT = re.compile(
    r"PATH|CDPATH|IFS|HISTFILE|ENV|BASH_ENV|PS4|PROMPT_COMMAND|LD_.*|DYLD_.*|GIT_.*|LESS(?:OPEN|CLOSE)"
    r"|.*PAGER|.*EDITOR|VISUAL|SHELLOPTS|BASHOPTS|RIPGREP_CONFIG_PATH|GREP_OPTIONS|TAR_OPTIONS"
    r"|VIMINIT|EXINIT|RSYNC_.*|BC_ENV_ARGS|(?:UN)?ZIP(?:OPT)?|HOME|XDG_CONFIG_HOME"
)
"""Variables by which a program that is known runs another, or goes elsewhere."""

READING = {
    name: options
    for names, options in {
        "bat batcat": "--pager --config",
        "date": "-f --file",
        "doas": "-s -C",
        "ed emacs nvim vi vim view vimdiff": "",
        "env": "-S -C --split-string --chdir",
        "fd fdfind": "-x -X --exec",
        "find du wc tree": "-files0-from --files0-from --fromfile --hintro --houtro",
        "hash": "-p",
        "history": "-r -n",
        "install": "--strip-program",
        "jobs": "-x",
        "less": "+ -k --lesskey",
        "locate": "-d --database",
        "mapfile readarray": "-C",
        "rg ag ack": "--pre --pager --ackrc --hostname-bin -z --search-zip",
        "rsync": "-e -f --rs --files-from --include-from --exclude-from --filter",
        "scp": "-S -o -F",
        "sort split": "--compress-program --files0-from --filter",
        "strings": "@",
        "sudo": "-D -e -i -s -R --chdir --edit --login --shell --chroot",
        "tar": "-T -O -I -F -X --files --to- --use --checkpoint --info-s --exclude-from --rsh",
        "unzip": "-p -c",
        "xargs": "-a --arg-file",
        "zcat bzcat xzcat zstdcat": "-r --recursive",
        "zip": "-T -@ --unzip-command",
        "7z": "-so @",
    }.items()
    for name in names.split()
}
"""Options with which a program reads what it does not name, or runs another.

A letter counts in a cluster, too, and a long one where it is abbreviated; what is neither is the
beginning of a word. '' is any word at all.
"""

TEAM, LEDGER = ".nbs", "ledger.db"
"""The folder of a team of ours, and its database in there."""

OURS = _names("tripod nbs-bus nbs-chat nbs-scribe nbs-worker")
OURS_SHOW = {
    command: place
    for place, commands in {
        "chat": "chat export,chat poll,chat read,chat search,scribe advise,scribe show,show chat",
        "events": "bus read,chat mentions,show events",
        "scribe": "scribe query,scribe summary,show decisions",
        "workers": "show workers,worker results,worker search",
        LEDGER: "diff,log,query,show entries",
    }.items()
    for command in commands.split(",")
}
"""Our own commands that show texts of the team, and in which place of its folder these are."""

OURS_QUIET = _names(
    "bus chat scribe worker where key seal actor init sync push pull peer hooks completion"
)
"""Our own groups of commands whose other verbs show no text."""

NEVER_CLOSED = {"git", *FILES, *NAMES, *QUIET, *AFTER_ONE} - {"jq"}
"""Programs that begin no line which ``CLOSED`` fits: nearly all that are run."""

_PROGRAMS = (
    {"git", "timeout", "env", "xargs"} | FILES | AFTER_ONE | NAMES | QUIET | WRAPPERS | SHELLS
)


def is_program(word: str) -> bool:
    """Whether a word is a program of these tables, by its name or its path."""
    return word.rpartition("/")[2] in _PROGRAMS
