"""Which files a command line of PowerShell opens, as far as its text tells. Pure.

Parsed by tree-sitter-powershell (the extra ``sessions``); without it, a line that is not one plain
list of words tells nothing. A statement, a type or a cmdlet that is in no table is opaque.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from tripod.verify.sessions.items import fields
from tripod.verify.sessions.programs import NOT_PARSED, ShellReading, Word, short
from tripod.verify.sessions.shell import ANY, MAX_COMMAND, Shell
from tripod.verify.sessions.syntax import node_text, parser_of, syntax_of

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

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

CMDLETS_LISTING = fields("get-childitem gci dir ls get-item gi")
CMDLETS_FILTERING = fields("where-object where ? sort-object select-object select tee-object")
"""Cmdlets that pass on some of the files that they get."""

CMDLETS_GOING = fields("set-location sl cd chdir push-location pushd pop-location popd")
CMDLETS_QUIET = (
    fields(
        """test-path resolve-path split-path join-path convert-path get-location gl pwd
        measure-object measure get-command gcm get-member gm get-process gps ps stop-process spps
        kill get-date start-sleep sleep write-host write-output write echo write-error write-verbose
        write-warning write-information write-debug out-null out-host out-string out-file
        out-default oh set-content sc add-content ac clear-content clc remove-item ri rm rmdir del
        erase rd convertto-json convertto-csv convertto-html convertto-xml convertfrom-json
        convertfrom-csv export-csv epcsv export-clixml format-table ft format-list fl format-wide fw
        format-custom group-object group compare-object compare get-unique gu tee get-random
        get-variable gv set-variable sv set clear-variable get-host get-culture get-service gsv
        get-nettcpconnection test-connection get-psdrive gdr get-module gmo clear-host cls clear
        get-history history h get-acl get-itemproperty gp get-alias gal set-strictmode
        get-computerinfo get-ciminstance get-volume exit md mkdir new-guid get-timezone get-error"""
    )
    | CMDLETS_LISTING
    | CMDLETS_FILTERING
)
"""Cmdlets that show no text of a file that they name."""

CMDLETS_SWITCHES = fields(
    """raw wait force recurse file directory hidden name list simplematch casesensitive quiet
    noemphasis allmatches notmatch asbytestream verbose debug passthru notypeinformation"""
)
"""Parameters that take no value."""

CMDLET_PATHS = fields("path literalpath pspath lp fullname filepath inputfile")
HARMLESS_TYPES = fields(
    """int int32 int64 long string char byte bool boolean double float single decimal xml datetime
    timespan array hashtable ordered object psobject pscustomobject version guid regex switch void
    math convert environment console io.path text.encoding text.utf8encoding consolecolor uri
    io.searchoption io.directory stringcomparison stringsplitoptions"""
)
"""Types, without ``System.``, by which nothing opens a file."""

HARMLESS_METHODS = fields(
    """replace trim trimstart trimend split tolower toupper tolowerinvariant toupperinvariant
    substring startswith endswith contains tostring indexof lastindexof padleft padright
    gettype equals add remove insert count containskey getenumerator tochararray matches match
    ismatch addrange clear toarray sort reverse join compareto getbytes getstring where foreach"""
)
READING_METHODS = fields(
    """readalltext readalllines readallbytes readlines opentext openread open copy move
    readalltextasync readalllinesasync readallbytesasync replace"""
)
"""Methods of ``[IO.File]`` that open the files that they name."""

WRITING_METHODS = fields(
    "exists writealltext writealllines writeallbytes appendalltext appendalllines delete create"
)
CMD_QUIET = fields("dir echo ver cd chdir md mkdir rd rmdir del erase set cls exit vol path")
CMD_READING = fields("type more copy xcopy move ren rename fc comp find findstr sort")
"""Commands of ``cmd /c``."""

_PLAIN = re.compile(r"[\w./\\:~ -]*", re.ASCII)
_FOREIGN = re.compile(
    r"[\u2013-\u2015\u2018-\u201f\u0085\u00a0\u1680\u2000-\u200f\u2028\u2029\u202f\u205f\u3000\ufeff]"
)
"""Signs that PowerShell takes for a quotation mark, a dash or a space, and the parser does not."""

_CMD = re.compile(r"%[^%\s]+%|\^|![^!\s]+!")
_NAME = re.compile(r"[\w.\\/:~*?%@+-]+")
_DRIVE = re.compile(r"[A-Za-z]:/")
_VARIABLE = re.compile(r"\$(?:\{[^}]*\}|(?:\w+:)?\w+|[$?^_])")
_TARGET = re.compile(
    r"(?:\[[\w.\[\]]+\])?\s*\$(?:(?:env|global|script|local):)?\w+(?![\w:])", re.IGNORECASE
)
_SPECIAL = re.compile(r"psdefault|executioncontext|myinvocation|psnative|\$host")
_WORD = re.compile(r"[\w./\\:=+-]+")
_HOMES = fields("$home $env:home $env:userprofile")
_EMPTY = fields("$true $false $null")
_SCOPES = fields("env script global local private using variable")

_WALKED = fields(
    """program statement_list pipeline_chain_tail if_statement elseif_clauses elseif_clause
    else_clause while_statement while_condition do_statement for_statement for_initializer
    for_condition for_iterator foreach_statement foreach_parameter try_statement catch_clauses
    catch_clause finally_clause trap_statement switch_statement switch_condition switch_body
    switch_clauses switch_clause switch_clause_condition switch_parameters switch_parameter
    statement_block script_block script_block_body script_block_expression named_block_list
    named_block block_name param_block parameter_list script_parameter script_parameter_default
    function_statement function_name function_parameter_declaration attribute_list attribute
    attribute_name attribute_arguments attribute_argument flow_control_statement label
    label_expression empty_statement comment pipeline redirections redirection redirected_file_name
    file_redirection_operator merging_redirection_operator command_argument_sep generic_token
    sub_expression array_expression parenthesized_expression hash_literal_expression
    hash_literal_body hash_entry key_expression simple_name element_access member_access member_name
    string_literal verbatim_string_characters verbatim_here_string_characters
    expandable_string_literal expandable_here_string_literal integer_literal decimal_integer_literal
    hexadecimal_integer_literal real_literal comparison_operator format_operator
    assignement_operator type_spec type_name type_identifier array_type_name dimension argument_list
    argument_expression_list expression_with_unary_operator post_increment_expression
    post_decrement_expression pre_increment_expression pre_decrement_expression cast_expression
    left_assignment_expression braced_variable enum_statement enum_member"""
)
"""Parts of the grammar that open nothing by themselves; so is each that ends in ``_expression``."""


def opened_by_powershell(command: str, cwd: str, *, is_named: bool = True) -> ShellReading:
    """Which files a command line of PowerShell opens that begins in the folder ``cwd``.

    Not ``is_named``: the shell may be ``cmd`` as well.
    """
    found = ShellReading()
    shell = _PowerShell(found, cwd)
    if len(command) > MAX_COMMAND:
        found.opaque.append("a command line that is too long to be read")
    elif _FOREIGN.search(command) or not (is_named or not _CMD.search(command)):
        found.opaque.append(f"a command line that another shell reads: {short(command)}")
    elif (parser := _parser()) is not None:
        shell.script(command, parser)
    elif _PLAIN.fullmatch(command) and command.split():
        shell.run([Word(word, sure=True) for word in command.split()])
    else:
        found.opaque.append(NOT_PARSED)
    return found


@cache
def _parser() -> Parser | None:
    return parser_of("tree_sitter_powershell")


class _Piped(NamedTuple):
    """What comes to a cmdlet from the one before it: files in folders, text, or anything."""

    kind: Literal["nothing", "files", "text", "anything"]
    words: tuple[Word, ...] = ()


class _PowerShell(Shell):
    """One PowerShell; names of cmdlets and parameters know no capitals."""

    def script(self, command: str, parser: Parser) -> None:
        """Read a whole script."""
        root = syntax_of(parser, command)
        if root is None or _is_broken(root):
            self.opaque(f"a command line that cannot be parsed: {short(command)}")
        try:
            if root is not None:
                self.walk(root)
        except RecursionError:
            self.opaque("a command line that is nested too deep")

    def open(
        self, word: Word, *, recursive: bool = False, lists_names: bool = False, copied: str = ""
    ) -> None:
        """Note that a file is opened; Windows has several names for one."""
        for path in _places(word):
            if path.text[:1] == "/" and self.cwd[1:2] == ":":  # of the drive that it is on
                path = path._replace(text=f"{self.cwd[:2]}{path.text}")  # noqa: PLW2901
            folder = path.text.removesuffix(f"/{ANY}")  # a file of a folder, in a pipeline
            below = recursive or folder != path.text
            super().open(
                path._replace(text=folder), recursive=below, lists_names=lists_names, copied=copied
            )

    def may_open(self, value: str) -> None:
        """Note a word that may be a file."""
        for path in _places(Word(value, sure=False)):
            super().may_open(path.text)

    # The tree

    def walk(self, node: Node) -> None:
        """Go through a statement and those in it, in their order."""
        kind = node.type
        if kind == "command":
            self._pipe(node, _NOTHING)
        elif kind == "pipeline_chain":
            self._pipeline(node)
        elif kind == "assignment_expression":
            self._assign(node)
        elif kind in ("invokation_expression", "invokation_foreach_expression"):
            self._invoke(node)
        elif kind == "type_literal":
            if _type_name(node) not in HARMLESS_TYPES:
                self.opaque(f"what the type {short(node_text(node))} does")
        elif kind == "variable":
            self._variable(node_text(node))
        elif kind == "switch_filename":
            for word in self.words(node):
                self.open(word)
        elif kind != "catch_type_list":
            if kind not in _WALKED and not kind.endswith("_expression"):
                self.opaque(f"a part of a command line that is not known ({kind})")
            if kind == "file_redirection_operator" and "<" in node_text(node):
                self.opaque("a redirection that is not known")
            for child in node.named_children:
                self.walk(child)

    def _pipeline(self, node: Node) -> None:
        """Commands that give each other what they made; ``$_`` is one of them."""
        piped = _NOTHING
        before = self.variables.get("$_")
        for child in node.named_children:
            if child.type == "command":
                files = [Word(f"{word.text}/{ANY}", sure=False) for word in piped.words]
                if piped.kind != "nothing":
                    self.variables["$_"] = files or [Word(ANY, sure=False)]
                piped = self._pipe(child, piped)
            else:
                self.walk(child)
                piped = _Piped("anything")
        self.variables.pop("$_", None)
        if before is not None:
            self.variables["$_"] = before

    def _pipe(self, node: Node, piped: _Piped) -> _Piped:
        """One command, and what comes to it; what it gives to the next."""
        operator, name, words = "", Word("", sure=True), list[Word]()
        for child in node.named_children:
            if child.type == "command_invokation_operator":
                operator = node_text(child)
            elif child.type in ("command_name", "command_name_expr", "path_command_name"):
                name = self._program(child)
            elif child.type == "command_elements":
                words = self._arguments(child)
            else:
                self.walk(child)
        if operator.strip() == "." and name.text:
            self.opaque("a script run by .")
            self.open(name)
        elif name.text:
            return self._runs(name, words, piped)
        return _Piped("anything")

    def _program(self, node: Node) -> Word:
        """The name of what a command runs, '' for a block of statements."""
        text = node_text(node)
        if _NAME.fullmatch(text):
            return Word(text, sure=True)
        inner = node.named_children
        words = self.words(inner[0]) if len(inner) == 1 else [Word(ANY, sure=False)]
        return words[0] if len(words) == 1 else Word(ANY, sure=False)

    def _arguments(self, node: Node) -> list[Word]:
        """The words of a command; what a colon binds to a parameter is one word with it."""
        found: list[Word] = []
        end, bound = -1, False
        for child in node.named_children:
            if child.type == "command_argument_sep":
                bound = node_text(child).strip() == ":"
                end = -1
                continue
            if _WORD.fullmatch(node_text(child)):
                words = [Word(node_text(child), sure=True)]
            elif child.type == "redirection":
                self.walk(child)
                continue
            else:
                words = self.words(child)
            if bound and found:
                front = found.pop()
                words = [Word(f"{front.text}:{word.text}", word.sure) for word in words]
            elif child.start_byte == end and found:  # one word of several parts
                front = found.pop()
                words = [Word(f"{front.text}{word.text}", sure=False) for word in words]
            found += words
            end, bound = child.end_byte, False
        return found

    def _assign(self, node: Node) -> None:
        left, *right = node.named_children
        target = node_text(left)
        name = target.lower()
        if not _TARGET.match(target) or _SPECIAL.search(name):
            self.opaque(f"what {short(target)} is set to")
        elif name.startswith("$env:"):
            self.environment(name[5:].upper(), node_text(right[-1]).strip("'\""))
        for child in (left, *right):
            self.walk(child)

    def _variable(self, text: str) -> list[Word]:
        """What a variable stands for; one in braces may be a file."""
        name = text.lower()
        scope, colon, rest = text.strip("${}@").partition(":")
        if colon and scope.lower() not in _SCOPES:
            self.opaque(f"what {short(text)} is")
            self.open(Word(f"{scope}:{rest}" if len(scope) == 1 else ANY, sure=False))
        if name in ("$_", "$psitem"):
            return self.variables.get("$_", [Word(ANY, sure=False)])
        if name == "$pwd":
            return [Word(self.cwd, sure=ANY not in self.cwd)]
        if name in _HOMES:
            return [Word("~", sure=True)]
        return [Word("", sure=True)] if name in _EMPTY else [Word(ANY, sure=False)]

    def _invoke(self, node: Node) -> None:
        """A method: of a type, or of what an expression gives."""
        owner, *rest = node.named_children
        members = [node_text(child).lower() for child in rest if child.type == "member_name"]
        method = members[0] if members else ""
        if owner.type == "type_literal" and _type_name(owner) == "io.file":
            if method in READING_METHODS:
                for word in self._given(rest):
                    self.open(word)
            elif method not in WRITING_METHODS:
                self.opaque(f"the method {short(method)} of [IO.File]")
        else:
            self.walk(owner)
            if owner.type != "type_literal" and method not in HARMLESS_METHODS:
                self.opaque(f"the method {short(method)} may open any file")
            if method == "foreach" and "{" not in node_text(node):
                self.opaque("the method foreach may open any file")
        for child in rest:
            self.walk(child)

    def _given(self, nodes: Iterable[Node]) -> Iterator[Word]:
        """The arguments of a method."""
        for node in nodes:
            if node.type in ("argument_list", "argument_expression_list"):
                yield from self._given(node.named_children)
            elif node.type == "argument_expression":
                yield from self.words(node)

    def words(self, node: Node) -> list[Word]:
        """The words that a node stands for: several, where it is a list."""
        kind, text = node.type, node_text(node)
        if kind in ("generic_token", "switch_filename", "command_name"):
            return [self._bare(text)]
        if kind in ("verbatim_string_characters", "integer_literal", "real_literal"):
            text = text[1:-1].replace("''", "'") if kind[0] == "v" else text
            return [Word(text, sure=True)]
        if kind == "expandable_string_literal":
            return [self._expanded(node)]
        if kind == "variable":
            return self._variable(text)
        if kind == "member_access":
            self.walk(node)
            owner = node_text(node.named_children[0]).lower()
            is_path = text.lower().endswith((".fullname", ".pspath", ".path"))
            known = is_path and owner in ("$_", "$psitem")
            return self._variable(owner) if known else [Word(ANY, sure=False)]
        if kind == "array_literal_expression":
            return [word for child in node.named_children for word in self.words(child)]
        single = kind.endswith("_expression") or kind in (
            "string_literal", "statement_list", "pipeline", "pipeline_chain"
        )  # fmt: skip
        if single and len(node.named_children) == 1 and kind not in _ACTING:
            return self.words(node.named_children[0])
        self.walk(node)
        return [Word("" if kind == "script_block_expression" else ANY, kind[:6] == "script")]

    def _bare(self, text: str) -> Word:
        """A word without quotation marks around it."""
        if re.search(r"[$@]\(|`[^\w\s]|`[0abefnrtuv]|\{|[^,],[^,]", text):
            self.opaque(f"a word that is not parsed: {short(text)}")
        text = text.strip(",")
        plain = re.sub(r"[`'\"]", "", text)
        plain = _VARIABLE.sub(lambda found: self._variable(found[0])[0].text, plain)
        return Word(plain, sure=plain == text and not re.search(r"[*?\[]", plain))

    def _expanded(self, node: Node) -> Word:
        """A text in which variables and commands stand."""
        data = node_text(node)[1:-1].replace('""', '"')
        sure = "`" not in data
        for child in node.named_children:
            words = self._variable(node_text(child)) if child.type == "variable" else []
            if not words:
                self.walk(child)
            word = words[0] if len(words) == 1 else Word(ANY, sure=False)
            data, sure = data.replace(node_text(child), word.text, 1), sure and word.sure
        if "$" in data:
            data, sure = ANY, False
        return Word(re.sub("`(.)", r"\1", data), sure)

    # Commands

    def run(self, words: Sequence[Word]) -> None:
        """What a command with its arguments opens."""
        self._runs(words[0], list(words[1:]), _NOTHING)

    def _runs(self, word: Word, args: list[Word], piped: _Piped) -> _Piped:
        """What a command opens, and what it gives to the next in a pipeline."""
        name = re.sub(r"\.exe$", "", word.text.lower())
        if any(_DRIVES.match(one.text) for one in args):
            self.opaque("another meaning of a command")
        if not word.sure:
            self.opaque("a program that only the shell knew")
        elif name in CMDLETS_READING:
            self._reads(CMDLETS_READING[name], args, piped)
            return _Piped("text" if CMDLETS_READING[name] == "get-content" else "anything")
        elif name in CMDLETS_GOING:
            targets = self._paths(args)
            self.goes(_places(targets[0])[0] if targets else Word("-", sure=False))
        elif name in CMDLETS_LISTING:
            folders = self._paths(args)
            return _Piped("files", tuple(folders or [Word(".", sure=True)]))
        elif name in CMDLETS_FILTERING:
            return piped
        elif name in ("foreach-object", "foreach", "%"):
            named = [one.text.lower() for one in args if one.text]
            if not all(one.startswith("-") or one in _PROPERTIES for one in named):
                self.opaque("a method that foreach calls may open any file")
        elif name in ("new-item", "ni"):
            if not all(one.sure and not _LINK.search(one.text) for one in args):
                for one in args:
                    self.open(one._replace(sure=False), recursive=True)
        elif name in ("powershell", "pwsh"):
            self._inner(name, args)
        elif name == "cmd":
            self._cmd(args)
        elif name not in CMDLETS_QUIET:
            if any(one.text == ANY for one in args):  # it may stand for several words
                self.opaque(f"what the program {short(name)} was given")
            super().run(
                [one._replace(text=_slashed(one.text)) for one in (word._replace(text=name), *args)]
            )
            return _Piped("text")
        return _Piped("anything")

    def _paths(self, args: Sequence[Word], *, after_pattern: bool = False) -> list[Word]:
        """The words that are paths, by a parameter or by their place.

        Values of other parameters may be paths. ``after_pattern``: a pattern stands before them,
        unless a parameter has it.
        """
        placed: list[Word] = []
        named: list[Word] = []
        takes = ""
        for word in args:
            value, option = word, _OPTION.fullmatch(word.text)
            if option is not None:
                name = option[1].lower()
                takes = "value"
                if any(one.startswith(name) for one in CMDLET_PATHS):
                    takes = "path"
                elif len(name) > 2 and "pattern".startswith(name):
                    after_pattern = False
                elif any(one.startswith(name) for one in CMDLETS_SWITCHES):
                    takes = ""
                if not option[2]:
                    continue
                value = word._replace(text=option[2])
            if takes == "path":
                named.append(value)  # with those that follow: they may be of its list
            elif takes == "value":
                self.may_open(value.text)
                takes = ""
            elif value.text:
                placed.append(value)
        if after_pattern and placed:
            pattern = placed.pop(0)
            if any(_OPTION.fullmatch(one.text) for one in args):
                self.may_open(pattern.text)
        return [*named, *placed]

    def _reads(self, cmdlet: str, args: Sequence[Word], piped: _Piped) -> None:
        """A cmdlet that opens the files that it names, or those that come to it."""
        searches = cmdlet == "select-string"
        moves = cmdlet in ("copy-item", "move-item")
        paths = self._paths(args, after_pattern=searches)
        for word in paths:
            sure = word.sure and cmdlet != "move-item"
            self.open(word._replace(sure=sure), recursive=moves, lists_names=searches)
        for word in piped.words:
            self.open(word._replace(sure=False), recursive=True, lists_names=searches)
        if piped.kind == "anything" or (piped.kind == "text" and cmdlet == "get-content"):
            self.open(Word(ANY, sure=False))

    def _inner(self, name: str, args: list[Word]) -> None:
        """``powershell -Command TEXT``; what else it may be given is opaque."""
        for at, word in enumerate(args):
            option = word.text.lower().lstrip("-/")
            if option and "command".startswith(option):
                rest = args[at + 1 :]
                parser = _parser()
                text = " ".join(one.text for one in rest)
                if parser is None or self.depth > 4 or not text or not all(w.sure for w in rest):
                    break
                inner = _PowerShell(self.found, self.cwd, self.depth + 1)
                inner.left = set(self.left)
                inner.script(text, parser)
                return
            if option not in ("noprofile", "nop", "nologo", "noninteractive"):
                break
        self.opaque(f"a script run by {name}")

    def _cmd(self, args: list[Word]) -> None:
        """``cmd /c COMMAND``: one plain command of it."""
        texts = [word.text for word in args]
        first = texts[0].lower() if texts else ""
        words = " ".join(texts[1:]).split()
        plain = all(word.sure or "*" in word.text for word in args)
        if first != "/c" or not words or not plain or re.search(r"[&|<>^%!()\"]", " ".join(words)):
            self.opaque("a script run by cmd")
        elif words[0].lower() in CMD_READING:
            for word in words[1:]:
                self.open(Word(word, sure="*" not in word), recursive="/s" in words)
        elif words[0].lower() not in CMD_QUIET:
            super().run([Word(_slashed(word), sure=True) for word in words])


_ACTING = fields(
    """invokation_expression invokation_foreach_expression script_block_expression
    assignment_expression element_access hash_literal_expression
    expression_with_unary_operator cast_expression"""
)
_NOTHING = _Piped("nothing")
_OPTION = re.compile(r"-([A-Za-z]\w*)(?::(.*))?", re.DOTALL)
_DRIVES = re.compile(r"(?:[\w.\\]+::)?(?:function|alias):", re.IGNORECASE)
_LINK = re.compile("link|junction", re.IGNORECASE)
_PROPERTIES = fields("fullname name length count basename extension directory path line key value")


def _is_broken(root: Node) -> bool:
    """Whether the parser did not understand a part; that of a list needs no spaces, it does."""
    todo = [(root, "")]  # with the type of the parent: a node looks for it from the root on
    while todo:
        node, around = todo.pop()
        if node.is_error or (node.is_missing and around != "command_argument_sep"):
            return True
        broken = (child for child in node.children if child.has_error or child.is_missing)
        todo += [(child, node.type) for child in broken]
    return False


def _type_name(node: Node) -> str:
    return re.sub(r"\[\]$", "", node_text(node)[1:-1].strip().lower()).removeprefix("system.")


def _slashed(text: str) -> str:
    r"""A word for a program, with a path of Windows in it as others write it.

    >>> _slashed("chat\\a.md"), _slashed("s/a\\(b/c/")
    ('chat/a.md', 's/a\\(b/c/')
    """
    return text.replace("\\", "/") if re.fullmatch(r"[\w.:~\\/*@-]+", text) else text


def _places(word: Word) -> list[Word]:
    r"""The places that a path of PowerShell may mean.

    >>> [one.text for one in _places(Word("chat\\a.md", True))]
    ['chat/a.md']
    >>> [one.text for one in _places(Word("FileSystem::C:\\w", True))]
    ['**']
    >>> [one.text for one in _places(Word("\\\\host\\c$\\.env.", True))]
    ['c:/.env.', 'c:/.env*']
    """
    path = word.text.replace("\\", "/")
    path = re.sub("^//[?.]/|^//[^/]+/(?=[A-Za-z][$]/)", "", path).replace("$/", ":/", 1)
    if path[:4].lower() == "env:":
        return []
    if ":" in (path[2:] if _DRIVE.match(path) else path) and not path.startswith("file://"):
        return [Word(ANY, sure=False)]
    # A short name, and one that ends in dots or spaces, is another name of a file.
    loose = "/".join(
        "*" if re.search(r"~\d", name) else re.sub(r"(?<=[^.])[. ]+$", "*", name)
        for name in path.split("/")
    )
    sure = word.sure and not re.search(r"[*?\[]", path)
    found = [Word(path, sure)]
    if path.startswith("//"):  # a share, which may be of any folder
        found.append(Word(f"{ANY}/{loose.lstrip('/').partition('/')[2]}", sure=False))
    elif loose != path:
        found.append(Word(loose, sure=False))
    return found
