"""Programs that command lines call: what each opens, shows or runs by its name and options. Pure.

A program that is in no table may open any file. Versions of a program differ: an option stands here
where any common version reads a file, or runs another program, by it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


def _names(table: str) -> frozenset[str]:
    return frozenset(table.split())


class Word(NamedTuple):
    """A word of a command: its text, with ``**`` for what only the shell knew."""

    text: str
    sure: bool


class OpenedPath(NamedTuple):
    """A path that a command opens, as named, and resolved in the command's folder.

    Not ``sure``: a pattern, a variable, or something else that only the shell knew. ``recursive``:
    what lies below it is opened as well. ``lists_names``: the output says which file a text is of.
    """

    named: str
    path: str
    sure: bool = True
    recursive: bool = False
    lists_names: bool = False


@dataclass
class ShellReading:
    """What a command line opens, and, in words, what of it cannot be told.

    ``also`` may be opened as well: in a folder that a ``cd`` may have left, or by an option.
    """

    opened: list[OpenedPath] = field(default_factory=list)
    also: list[OpenedPath] = field(default_factory=list)
    opaque: list[str] = field(default_factory=list)


_WORD = r"""(?:[\w./:@%+,=~-]|'[^'\n]*'|"[^"$`\\!\n]*")++(?=[ |;&]|\Z)"""
_SEPARATOR = r"\|\||&&|;|\|"
_NOWHERE = r"(?:(?<= )|^)\d?>(?:/dev/null|&[12])(?=[ |;]|\Z)"
_TOKEN = re.compile(rf" *+(?:{_NOWHERE}|({_WORD})|({_SEPARATOR}))")
_PLAIN = re.compile(rf"(?: *+(?:{_NOWHERE}|{_WORD}|{_SEPARATOR}))++ *+")
_NAME = re.compile(r"[\w./~][\w./~+-]*|:")
_QUOTED = re.compile(r"""'([^']*)'|"([^"]*)\"""")
_RESERVED = _names(
    """if then else elif fi for while until do done case esac in select function time coproc
    declare typeset export readonly local unset unsetenv let"""
)
"""Words that begin something else than a program."""


def plain_commands(line: str) -> list[list[str]] | None:
    """The commands of a line of which each word is plain, as words; None if one is not.

    Plain is what every shell takes as it stands: a list of words, quoted or not, without patterns
    and variables. Most lines are so, and need no parser.

    >>> plain_commands("cd src && rg -n 'a b' lib.py 2>/dev/null | head -5")
    [['cd', 'src'], ['rg', '-n', 'a b', 'lib.py'], ['head', '-5']]
    >>> plain_commands("cat *.md") is None, plain_commands("A=1 cat") is None
    (True, True)
    """
    if _PLAIN.fullmatch(line) is None:
        return None
    commands: list[list[str]] = [[]]
    for word, separator in _TOKEN.findall(line):
        if separator:
            commands.append([])
        elif word:
            commands[-1].append(word)
    for words in commands:
        if not words or not _NAME.fullmatch(words[0]) or words[0] in _RESERVED:
            return None
        words[:] = [_QUOTED.sub(r"\1\2", word) for word in words]
    return commands


FILES = _names(
    """cat bat batcat head tail less more most nl tac rev wc sort uniq cut paste join column fold
    fmt pr expand unexpand shuf od xxd hexdump hd strings base64 base32 md5sum sha1sum
    sha256sum sha512sum b2sum cksum sum diff cmp comm sdiff vimdiff zcat zless zmore gzip
    gunzip bzcat bunzip2 xzcat unxz zstdcat vi vim nvim nano view ed emacs open xdg-open
    bc tar zip unzip 7z cp mv install rsync scp ln dd split csplit iconv dos2unix file
    pandoc look tsort ptx"""
)
"""Programs whose arguments are files that they open."""

INTERPRETERS = _names("python python3 perl ruby node deno bun php lua sqlite3 osascript")
"""Programs that run a script, of which only its words tell which files it opens."""

EXECUTES = _names("-exec -execdir -ok -okdir")
COPIES = _names("cp mv install rsync scp ln")
MOVES = _names("mv ln")
"""Programs that show nothing, and after which a file has another name."""

TREES = _names("tar zip 7z cp rsync scp mv ln diff gzip gunzip")
AFTER_ONE = _names("grep egrep fgrep zgrep rg ag ack sed gsed awk gawk mawk nawk jq yq")
"""Programs that open the files behind a first argument, which is a pattern or a script."""

SEARCHES = _names("rg ag ack")  # below the folder, unless a file is named
NAMES = _names(
    """ls ll dir tree find fd fdfind du df stat realpath readlink basename dirname pwd which
    whereis type locate test [ [[ mkdir rmdir touch rm unlink chmod chown chgrp truncate
    mktemp"""
)
"""Programs that show names, sizes and times, or change files, and show no text."""

QUIET = _names(
    """echo printf true false : cd pushd popd export unset set shopt local declare typeset
    readonly alias unalias read exit return break continue shift wait sleep date seq yes
    whoami id groups uname hostname uptime ps kill pkill pgrep jobs fg bg disown trap umask
    ulimit tput clear reset printenv hash history arch nproc free tr expr tee mapfile
    readarray"""
)
"""Programs that open no file of the project."""

SETTING = _names("read mapfile readarray printf getopts let unset")
"""Programs of the shell that set variables."""

READING = {
    name: options
    for names, options in {
        "date": "-f --file",
        "ed": "",
        "env": "-S -C --split-string --chdir",
        "fd fdfind": "-x -X --exec",
        "find du wc tree": "-files0-from --files0-from --fromfile",
        "hash": "-p",
        "history": "-r -n",
        "jobs": "-x",
        "less": "+ -k --lesskey",
        "locate": "-d --database",
        "mapfile readarray": "-C",
        "emacs nvim vi vim view": "- +",
        "rg ag ack": "--pre --pager --ackrc -z --search-zip",
        "rsync": "-e --rs --files-from --include-from --exclude-from --filter",
        "sort split": "--compress-program --files0-from --filter",
        "sudo": "-D -e -i -s -R --chdir --edit --login --shell --chroot",
        "tar": "-T -O -I -F -X --files --to- --use --checkpoint --info-s --exclude-from --rsh",
        "unzip": "-p -c",
        "xargs": "-a --arg-file",
        "7z": "-so @",
    }.items()
    for name in names.split()
}
"""Beginnings of words with which a program reads what it does not name, or runs another."""

TRUSTED = re.compile(r"(?:/usr|/opt/homebrew)?(?:/local)?/s?bin/[^/]+")
ENVIRONMENT = re.compile(
    r"PATH|CDPATH|IFS|ENV|BASH_ENV|PS4|PROMPT_COMMAND|LD_.*|DYLD_.*|GIT_.*|LESS(?:OPEN|CLOSE)"
    r"|.*PAGER|.*EDITOR|VISUAL|SHELLOPTS|BASHOPTS|RIPGREP_CONFIG_PATH|GREP_OPTIONS|TAR_OPTIONS"
)
"""Variables by which a program that is known runs another, or goes elsewhere."""

HARMLESS = re.compile(r"|cat|true|false|:|less|more|vi|vim|nano|[0-9]+|[^\s@]*@[^\s]*")
WRAPPERS = _names("sudo doas nohup nice ionice stdbuf time exec builtin setsid command")
SHELLS = _names("bash sh dash zsh ksh")
GIT_QUIET = _names(
    """status branch remote fetch push add rm mv commit tag rev-parse rev-list ls-files ls-tree
    ls-remote config init clone checkout switch restore reset merge rebase cherry-pick revert
    pull worktree check-ignore for-each-ref symbolic-ref update-ref gc fsck prune describe
    reflog shortlog submodule clean version help notes merge-base name-rev count-objects"""
)
GIT_TEXT = _names(
    """show diff log grep cat-file blame annotate archive stash format-patch bundle whatchanged
    difftool range-diff diff-tree diff-index diff-files apply am bisect"""
)
GIT_WRITES = _names("checkout restore switch worktree clone merge")
"""Verbs that write the files of a commit into the work tree."""

GIT_VALUES = frozenset(("-C", "-c", "--git-dir", "--work-tree", "--namespace"))
GIT_SHOWS = {
    "add": "pie --patch --interactive --edit --pathspec-from-file",
    "bisect": " run visualize view replay",
    "checkout": "p --patch --pathspec-from-file",
    "clone": "uc --upload-pack --config --template",
    "commit": "vpFt --verbose --patch --interactive --file --template --pathspec-from-file",
    "config": "fe --file --blob --edit",
    "fetch": " --upload-pack",
    "init": " --template",
    "ls-remote": " --upload-pack --exec",
    "merge": "F --file",
    "notes": "F --file",
    "push": " --receive-pack --exec",
    "pull": " --upload-pack",
    "rebase": "x --exec --show-current-patch",
    "reset": "p --patch --pathspec-from-file",
    "restore": "p --patch --pathspec-from-file",
    "rm": " --pathspec-from-file",
    "status": "v --verbose",
    "submodule": " foreach",
    "tag": "F --file",
}
"""For verbs that show no text of files: letters of options, options and words that make them."""

GIT_RUNS = re.compile(
    r"alias|pager|editor|external|textconv|fsmonitor|hook|filter|driver|command|cmd|helper"
    r"|askpass|program|include|uploadpack|receivepack|packobjects|attributes|browser|proxy|tool",
    re.IGNORECASE,
)
"""Settings of git that name a program or a file."""

GIT_BRIEF = _names("--stat --shortstat --numstat --name-only --name-status --no-patch -s")
GIT_LISTS = re.compile(
    r"-[0-9inqsEFz]+|-n[0-9]+|--(?:oneline|graph|all|no-\w[\w-]*|name-only|name-status|reverse"
    r"|stat|shortstat|numstat|summary|decorate|merges|first-parent|follow|date-order|topo-order"
    r"|branches|tags|remotes|abbrev-commit|color|relative-date|left-right|cherry|"
    r"include-untracked|quiet|(?:max-count|format|pretty|since|until|after|before|author"
    r"|committer|grep|date|decorate|diff-filter|skip|abbrev|color|stat|branches|tags|message)"
    r"=.*)"
)
"""Options with which ``git log`` and its kin show no text of files."""

VALUES = {
    "grep": "-e -f -m -A -B -C --include --exclude --exclude-dir --max-count --context",
    "rg": "-e -f -m -A -B -C -g -t -T --glob --type --max-count --context --iglob",
    "head": "-n -c --lines --bytes",
    "tail": "-n -c --lines --bytes",
    "sed": "-e -f --expression --file",
    "awk": "-F -v -f",
    "jq": "--arg --argjson --indent",
    "cut": "-d -f -c -b",
    "sort": "-k -t -o -S",
    "timeout": "-k -s",
    "nbs-bus": "-C --team",
    "nbs-chat": "-C --team -n --last --since --timeout --unread --at",
    "tripod": "-C --team -n --last --since --timeout --unread --at --stream",
}
"""Options that take the next word, of programs whose other words are files."""

AWK = re.compile(r"getline|system|\||@|ARGV")
JQ = re.compile(r"\b(?:import|include|load\w*)\b")
SED = re.compile(  # one command of sed that opens no file and runs no program
    r"[\s;{}]*(?:(?:\d+(?:~\d+)?|\$|/(?:[^/\\]|\\.)*/[IM]*)"
    r"(?:\s*,\s*(?:\d+|\$|[+~]\d+|/(?:[^/\\]|\\.)*/[IM]*))?)?\s*!?\s*"
    r"(?:s([^\w\s\\])(?:(?!\1)[^\\]|\\.)*\1(?:(?!\1)[^\\]|\\.)*\1[gpIM0-9]*"
    r"|y([^\w\s\\])(?:(?!\2)[^\\]|\\.)*\2(?:(?!\2)[^\\]|\\.)*\2"
    r"|[aic](?:\\.|[^\\])*|[:btT]\s*\w*|[qQ]\s*\d*|[pdDgGhHlnNPxzF=]|$)\s*(?=[;}\s]|$)",
    re.DOTALL,
)

TEAM, LEDGER = ".nbs", "ledger.db"
"""The folder of a team of ours, and its database in there."""

OURS = _names("tripod nbs-bus nbs-chat nbs-scribe nbs-worker")
OURS_SHOW = {
    "bus read": "events",
    "chat export": "chat",
    "chat mentions": "events",
    "chat poll": "chat",
    "chat read": "chat",
    "chat search": "chat",
    "diff": LEDGER,
    "log": LEDGER,
    "query": LEDGER,
    "scribe advise": "chat",
    "scribe query": "scribe",
    "scribe show": "chat",
    "scribe summary": "scribe",
    "show chat": "chat",
    "show decisions": "scribe",
    "show entries": LEDGER,
    "show events": "events",
    "show workers": "workers",
    "worker results": "workers",
    "worker search": "workers",
}
"""Our own commands that show texts of the team, and in which place of its folder these are."""

OURS_REFS = "refs/tripod"
"""Where our records lie in a repository."""

OURS_QUIET = _names(
    "bus chat scribe worker where key seal actor init sync push pull peer hooks completion"
)
"""Our own groups of commands whose other verbs show no text."""

# PowerShell, in small letters: its names know no others ----------------------------------------

CMDLETS_READING = {
    name: cmdlet
    for cmdlet, names in {
        "get-content": "get-content gc cat type",
        "select-string": "select-string sls",
        "import-csv": "import-csv ipcsv import-clixml import-powershelldatafile",
        "format-hex": "format-hex fhx get-filehash more sort find fc findstr diff",
        "copy-item": "copy-item copy cp cpi compress-archive",
        "move-item": "move-item move mv mi rename-item ren rni",
    }.items()
    for name in names.split()
}
"""Cmdlets and programs of Windows that open the files that they name, with what they are like."""

CMDLETS_LISTING = _names("get-childitem gci dir ls get-item gi")
CMDLETS_FILTERING = _names("where-object where ? sort-object select-object select tee-object")
"""Cmdlets that pass on some of the files that they get."""

CMDLETS_GOING = _names("set-location sl cd chdir push-location pushd pop-location popd")
CMDLETS_QUIET = (
    _names(
        """test-path resolve-path split-path join-path convert-path get-location gl pwd
        measure-object
    measure get-command gcm get-member gm get-process gps ps stop-process spps kill get-date
    start-sleep sleep write-host write-output write echo write-error write-verbose write-warning
    write-information write-debug out-null out-host out-string out-file out-default oh set-content
    sc add-content ac clear-content clc remove-item ri rm rmdir del erase rd convertto-json
    convertto-csv convertto-html convertto-xml convertfrom-json convertfrom-csv export-csv epcsv
    export-clixml format-table ft format-list fl format-wide fw format-custom group-object group
    compare-object compare get-unique gu tee get-random get-variable gv set-variable sv set
    clear-variable get-host get-culture get-service gsv get-nettcpconnection test-connection
    get-psdrive gdr get-module gmo clear-host cls clear get-history history h get-acl
    get-itemproperty gp get-alias gal set-strictmode get-computerinfo get-ciminstance
    get-volume exit md mkdir new-guid get-timezone get-error"""
    )
    | CMDLETS_LISTING
    | CMDLETS_FILTERING
)
"""Cmdlets that show no text of a file that they name."""

CMDLETS_SWITCHES = _names(
    """raw wait force recurse file directory hidden name list simplematch casesensitive quiet
    noemphasis allmatches notmatch asbytestream verbose debug passthru notypeinformation"""
)
"""Parameters that take no value."""

CMDLET_PATHS = _names("path literalpath pspath lp fullname filepath inputfile")
HARMLESS_TYPES = _names(
    """int int32 int64 long string char byte bool boolean double float single decimal xml datetime
    timespan array hashtable ordered object psobject pscustomobject version guid regex switch void
    math convert environment console io.path text.encoding text.utf8encoding consolecolor uri
    io.searchoption io.directory stringcomparison stringsplitoptions"""
)
"""Types, without ``System.``, by which nothing opens a file."""

HARMLESS_METHODS = _names(
    """replace trim trimstart trimend split tolower toupper tolowerinvariant toupperinvariant
    substring startswith endswith contains tostring indexof lastindexof padleft padright
    gettype equals add remove insert count containskey getenumerator tochararray matches match
    ismatch addrange clear toarray sort reverse join compareto getbytes getstring where foreach"""
)
READING_METHODS = _names(
    """readalltext readalllines readallbytes readlines opentext openread open copy move
    readalltextasync readalllinesasync readallbytesasync replace"""
)
"""Methods of ``[IO.File]`` that open the files that they name."""

WRITING_METHODS = _names(
    "exists writealltext writealllines writeallbytes appendalltext appendalllines delete create"
)
CMD_QUIET = _names("dir echo ver cd chdir md mkdir rd rmdir del erase set cls exit vol path")
CMD_READING = _names("type more copy xcopy move ren rename fc comp find findstr sort")
"""Commands of ``cmd /c``."""


def operands_of(name: str, args: Sequence[Word]) -> list[Word]:
    """The words that are no options, and no values of options."""
    values = frozenset(VALUES.get("grep" if "grep" in name else name, "").split())
    found: list[Word] = []
    skip = ends = False
    for word in args:
        if skip:
            skip = False
        elif word.text == "--" and not ends:
            ends = True
        elif not ends and word.text.startswith("-") and len(word.text) > 1:
            skip = word.text in values
        else:
            found.append(word)
    return found


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
