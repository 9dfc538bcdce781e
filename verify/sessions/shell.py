"""Which files a command line of a shell opens, as far as its text tells. Pure.

Parsed by tree-sitter (the extra ``sessions``); without it, a line that is not one plain list of
words tells nothing. What runs a program of its own, or a script, is opaque: it may open any file.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from tripod.verify.sessions import syntax
from tripod.verify.sessions.programs import (
    ALIKE,
    FILE_NAME,
    HARMLESS,
    NOT_PARSED,
    UNKNOWN_PART,
    VALUES,
    OpenedPath,
    ShellReading,
    Word,
    has_unknown_option,
    is_among,
    is_option,
    operands_of,
    options_of,
    read_git,
    read_search,
    short,
)
from tripod.verify.sessions.syntax import node_text, plain_commands, syntax_of, without_braces

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

ANY = UNKNOWN_PART
"""What stands in a path for a part that only the shell knew, which may have slashes."""
MAX_COMMAND, MAX_WORD = 256 * 1024, 64 * 1024  # characters


_UNKNOWN = Word(ANY, sure=False)
_FOLDERS = frozenset(("HOME", "PWD", "OLDPWD", "TMPDIR"))
"""Variables that every shell has, whose value is the path of a folder."""

_ONCE_MORE = re.compile(r"\w\[[^\]]*(?:\$\(|`)")
"""A command in the index of a variable, which some commands run though it is quoted."""

_MAGIC = re.compile(r"[*?\[{]")
_TAME = re.compile(r"(?>(?:\.?[\w+@-][\w.+@-]*/)*)\.?[\w+@-][\w.+@-]*+")
"""Names with slashes between them, without anything that stands for another path."""

WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")
"""How a path of Windows begins."""


def opened_by(command: str, cwd: str) -> ShellReading:
    """Which files a command line of a POSIX shell opens that begins in the folder ``cwd``."""
    found = ShellReading()
    if len(command) > MAX_COMMAND:
        found.opaque.append("a command line that is too long to be read")
        return found
    plain = plain_commands(command)
    parser = None if plain is not None and len(plain) == 1 else _parser()
    shell = Shell(found, cwd)
    try:
        if plain is not None and (parser is not None or len(plain) == 1):
            for shell.piped, words in plain:
                shell.run([Word._make((word, True)) for word in words])
        elif parser is not None:
            read_syntax(parser, command, shell)
        else:
            found.opaque.append(NOT_PARSED)
    except RecursionError:
        found.opaque.append("a command line that is nested too deep")
    if shell.left:
        found.ended = {shell.cwd, *shell.left, *shell.others} - {cwd}
    return found


def read_syntax(parser: Parser, command: str, shell: Shell) -> None:
    """Have a shell take in what a parser makes of a command line."""
    root = syntax_of(parser, command)
    if root is None or syntax.is_misread(root):
        shell.opaque(f"a command line that cannot be parsed: {short(command)}")
    if root is not None:
        shell.walk(root)


@cache
def _parser() -> Parser | None:
    return syntax.parser_of("tree_sitter_bash")


def resolved(named: str, cwd: str) -> str:
    r"""A path in its folder, without ``.`` and ``..``; a home stays ``~``.

    >>> resolved("../chat/a.md", "/w/src"), resolved("~/.env", "/w"), resolved("a", "")
    ('/w/chat/a.md', '~/.env', 'a')
    >>> resolved("chat\\a.md", "C:\\w"), resolved("file:///w/%61", ""), resolved(ANY, "/w")
    ('C:/w/chat/a.md', '/w/a', '/**')
    """
    if _TAME.fullmatch(named) and (not cwd or _TAME.fullmatch(cwd, 1)) and cwd[:1] in ("", "/"):
        return f"{cwd}/{named}" if cwd else named  # as nearly all
    if WINDOWS.match(named) or WINDOWS.match(cwd):
        named, cwd = named.replace("\\", "/"), cwd.replace("\\", "/")
        cwd = "" if WINDOWS.match(named) else cwd
    if ".." in named and (ANY in named or ANY in cwd):  # nobody knows of which folder
        parts = re.split(r"(?:^|/)\.\.(?=/|$)", posixpath.join(cwd, named))
        if any(ANY in part for part in parts[:-1]):
            named = f"{ANY}/{parts[-1].lstrip('/')}"
    if named.startswith(ANY):
        return f"/{posixpath.normpath(named)}"
    if named.startswith("file://"):
        named = path_of_url(named)
    joined = named if named.startswith(("/", "~")) or not cwd else posixpath.join(cwd, named)
    path = posixpath.normpath(joined)
    return path[1:] if path.startswith("//") else path


def path_of_url(url: str) -> str:
    """The path in an address of a file."""
    path = url.removeprefix("file://")
    if "%" not in path:
        return path
    from urllib.parse import unquote  # as few have it

    return unquote(path)


class Shell:
    """One shell: its folder and its variables, and what the commands in it open."""

    def __init__(self, found: ShellReading, cwd: str, depth: int = 0) -> None:
        self.found, self.cwd, self.depth = found, cwd, depth
        self.left: set[str] = set()  # folders that it was in: a cd may fail, or run elsewhere
        self.others: set[str] = set()  # folders that it may be in as well
        self.is_sure = True  # of its folder
        self.piped = False
        self.variables: dict[str, list[Word]] = {}
        self._behind: dict[int, list[Node]] = {}  # words of a command that follow a redirect

    def open(
        self, word: Word, *, recursive: bool = False, lists_names: bool = False, copied: str = ""
    ) -> None:
        """Note that a file is opened, if the word is one."""
        sure = word.sure and self.is_sure and ANY not in self.cwd
        if word.text and word.text != "-":
            recursive = recursive and not (word.sure and FILE_NAME.fullmatch(word.text))
            copied = copied and resolved(copied, self.cwd)
            one = OpenedPath(word.text, "", sure, recursive, lists_names, copied)
            self.found.opened.append(one._replace(path=resolved(word.text, self.cwd)))
            one = one._replace(sure=False, lists_names=False)
            for folder in (self.left | self.others) - {self.cwd}:
                self.found.also.append(one._replace(path=resolved(word.text, folder)))

    def goes(self, word: Word, *or_else: Word) -> None:
        """Go to a folder, or to another of some; which it was stays possible."""
        self.left.add(self.cwd)
        here = (self.cwd, *self.others)
        places = [
            f"/{ANY}" if to.text.startswith(("-", "+")) else resolved(to.text, place)
            for to in (word, *or_else)
            for place in here
        ]
        self.cwd, self.others = places[0], set(places[1:])
        self.is_sure = word.sure and (self.is_sure or word.text.startswith("/"))
        if len(self.left) + len(self.others) > 16:
            self.left, self.others, self.cwd = set(), set(), f"/{ANY}"

    def inner(self, depth: int = 0) -> Shell:
        """A shell within this one, which cannot change it."""
        inner = Shell(self.found, self.cwd, self.depth + depth)
        inner.variables, inner.is_sure = dict(self.variables), self.is_sure
        inner.left, inner.others = set(self.left), set(self.others)
        return inner

    def opaque(self, why: str) -> None:
        """Note what cannot be told."""
        if why not in self.found.opaque:
            self.found.opaque.append(why)

    # The tree

    def walk(self, node: Node) -> None:
        """Go through a statement and those in it, in their order."""
        kind = node.type
        if kind == "command":
            self._command(node)
        elif kind == "pipeline":
            self._pipeline(node)
        elif kind == "redirected_statement":
            self._redirected(node)
        elif kind in ("subshell", "command_substitution", "process_substitution"):
            inner = self.inner()
            for child in node.named_children:
                inner.walk(child)
        elif kind == "variable_assignment":
            self._assign(node)
        elif kind == "for_statement":
            self._again(node)
            self._loop(node)
        elif kind in ("while_statement", "c_style_for_statement"):
            self._again(node)
            for child in node.named_children:
                self.walk(child)
        elif kind in ("declaration_command", "unset_command"):
            self._declare(node)
        elif kind in ("expansion", "subscript"):
            self._expand(node)
        elif kind == "test_command" and _ONCE_MORE.search(node_text(node)):
            self.opaque("a command in the index of a variable")
        elif kind in ("file_redirect", "herestring_redirect", "heredoc_redirect"):
            self._redirect(node)
        else:
            for child in node.named_children:
                self.walk(child)

    def _redirected(self, node: Node) -> None:
        """A statement with redirects, among which the parser has words of its last command, too."""
        behind: list[Node] = []
        for child in node.children_by_field_name("redirect"):
            behind += child.children_by_field_name("destination")[1:]
            behind += child.children_by_field_name("argument")
        last = node.child_by_field_name("body")
        while last is not None and last.type in ("pipeline", "list", "negated_command"):
            last = last.named_children[-1]
        if behind and last is not None and last.type == "command":
            self._behind[last.id] = behind
        elif behind:
            self.opaque("words behind a redirect")
        end = node.start_byte
        for child in node.children:
            lost = (node.text or b"")[end - node.start_byte : child.start_byte - node.start_byte]
            if lost.strip():  # as it does with `-`
                self.opaque(f"what the parser left out: {short(lost.decode().strip())}")
            end = child.end_byte
            self.walk(child)

    def _pipeline(self, node: Node) -> None:
        """Commands of which each reads what the one before it writes, unless it has a redirect."""
        first, *others = node.named_children
        self.walk(first)
        for child in others:
            of = node.parent if child == others[-1] else None
            redirects = [child, of] if of and of.type == "redirected_statement" else [child]
            self.piped = not any(map(syntax.takes_input, redirects))
            self.walk(child)
        self.piped = False

    def _command(self, node: Node) -> None:
        piped, self.piped = self.piped, False
        words: list[Word] = []
        set_before = [one for one in node.named_children if one.type == "variable_assignment"]
        for child in (*node.named_children, *self._behind.pop(node.id, ())):
            if child.type == "variable_assignment":
                self._assign(child)
            elif child.type.endswith("_redirect"):
                self._redirect(child)
            else:
                words += self.words(child)
        if words:
            self.piped = piped
            self.run(words)
        for child in set_before if words else ():  # for this command alone
            self.sets(syntax.name_of(child), [_UNKNOWN])

    def _assign(self, node: Node) -> None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is not None:
            self.walk(name)
            words = self.words(value) if value is not None else [Word("", sure=True)]
            plain = name.type == "variable_name" and not any(
                child.type == "+=" for child in node.children
            )
            self.sets(syntax.name_of(node), words if plain else [_UNKNOWN])
            self.environment(syntax.name_of(node), "".join(word.text for word in words))

    def sets(self, name: str, words: Sequence[Word]) -> None:
        """Note that a variable is set.

        A branch, a pipe or one command alone may have had it: what it was stays possible.
        """
        old = self.variables.get(name, [])
        new = [word._replace(sure=False) for word in words]
        values = list(dict.fromkeys([*old, *new]))
        self.variables[name] = values if len(values) <= 16 else [_UNKNOWN]
        if any("[" in word.text and _ONCE_MORE.search(word.text) for word in words):
            self.opaque("a command in the index of a variable")

    def _declare(self, node: Node) -> None:
        """``export``, ``local`` and their kin, whose words may be quoted."""
        unsets = node.type == "unset_command"
        for child in node.named_children:
            if child.type == "variable_assignment":
                self._assign(child)
                continue
            for word in self.words(child):
                name, equals, value = word.text.partition("=")
                if name.startswith("-"):
                    if "n" in name and not unsets:
                        self.opaque("another name for a variable")
                elif word.text.startswith(ANY) and not unsets:
                    self.opaque("a variable that only the shell knew")
                elif equals or unsets:
                    self.sets_any(name)
                    self.environment(name.rstrip("+"), value)

    def sets_any(self, text: str) -> None:
        """Forget the variables whose name may stand at the end of a text, or in it."""
        for name in self.variables if ANY in text else re.findall(r"\w+", text):
            self.variables[name] = [_UNKNOWN]
        if _ONCE_MORE.search(text):
            self.opaque("a command in the index of a variable")

    def _expand(self, node: Node) -> None:
        """What is within an expansion: commands, and a value that it gives to a variable."""
        text = node_text(node)
        for child in node.named_children:
            self.walk(child)
        if "`" in text or re.search(r"@P\W*$", text):
            self.opaque("a command within an expansion")
        if node.type == "expansion" and "=" in text:
            self.sets_any(re.split(r"[:=]", text)[0])

    def environment(self, name: str, value: str) -> None:
        """Note that a variable is set, by which a program may run another."""
        if syntax.STARTS.match(name):
            self.variables.setdefault(name, [_UNKNOWN])
        harmless = not value if name == "IFS" else HARMLESS.fullmatch(value)
        if syntax.ENVIRONMENT.fullmatch(name) and not harmless:
            self.opaque(f"the variable {short(name)} may name any program")

    def _again(self, loop: Node) -> None:
        """Forget what a loop sets: it may be set when its statements are run once more."""
        todo = [loop]
        while todo:
            node = todo.pop()
            kind = node.type
            if kind == "variable_assignment":
                self.variables[syntax.name_of(node)] = [_UNKNOWN]
            elif kind == "for_statement" and node is not loop:
                self.variables[node_text(node.child_by_field_name("variable"))] = [_UNKNOWN]
            elif kind == "declaration_command" or (kind == "expansion" and "=" in node_text(node)):
                self.sets_any(node_text(node))
            elif kind == "command" and syntax.SETS_VARIABLES.match(node_text(node)):
                self.sets_any(f"REPLY {node_text(node)}")
            todo += node.named_children

    def _loop(self, node: Node) -> None:
        variable, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
        words = [
            word._replace(sure=False)
            for child in node.children_by_field_name("value")
            for word in self.words(child)
        ]
        if variable is not None:
            self.variables[node_text(variable)] = words or [Word(ANY, sure=False)]
            self.environment(node_text(variable), ANY)
        if body is not None:
            self.walk(body)

    def _redirect(self, node: Node) -> None:
        is_input = node.type == "file_redirect" and re.match(r"\d*<", node_text(node))
        for child in node.named_children:
            for word in self.words(child) if child.type != "heredoc_body" else ():
                if is_input:
                    self.open(word)
            if child.type == "heredoc_body":
                self.walk(child)
                if "`" in node_text(child) and not re.match(r"\d*<<-?\s*['\"\\]", node_text(node)):
                    self.opaque("a command within a text, in backticks")

    def words(self, node: Node) -> list[Word]:
        """The words that a node stands for: several, where a variable was given several."""
        kind = node.type
        if kind in ("word", "number", "command_name", "variable_name", "special_variable_name"):
            if kind == "command_name" and node.named_children:
                return self.words(node.named_children[0])
            text = re.sub(r"\\\n|\\(.)", r"\1", node_text(node))
            if text.startswith(ANY):  # a pattern, which begins in this folder
                text = f"./{text}"
            return [Word(text, sure=not _MAGIC.search(node_text(node)))]
        if kind == "raw_string":
            return [Word(node_text(node)[1:-1], sure=True)]
        if kind == "string_content":
            return [Word(re.sub(r'\\\n|\\(["\\$`])', r"\1", node_text(node)), sure=True)]
        if kind in ("simple_expansion", "expansion"):
            self.walk(node)
            named = [child for child in node.named_children if child.type == "variable_name"]
            name = node_text(named[0]) if named and kind[0] == "s" else ""
            known = self.variables.get(name)
            if not known and (name in _FOLDERS or node_text(node)[2:-1] in _FOLDERS):
                known = [Word(f"/{ANY}", sure=False)]
            return self._split(node, known) if known else [_UNKNOWN]
        if kind in ("string", "concatenation", "translated_string"):
            found = [Word("", sure=True)]
            for child in node.children:
                parts = self.words(child) if child.is_named else [Word("", sure=True)]
                # Spaces before a part belong to it, for the parser.
                blank = re.match(r"\s*", "" if child.type == "string_content" else node_text(child))
                parts = [one._replace(text=f"{blank[0]}{one.text}") for one in parts if blank]
                found = [
                    Word(one.text + part.text, one.sure and part.sure)
                    for one in found
                    for part in parts
                ]
                if len(found) > 64 or any(len(one.text) > MAX_WORD for one in found):
                    found = [Word(ANY, sure=False)]
            if kind == "concatenation" and "{" in node_text(node):
                texts = [one for word in found for one in without_braces(word.text)]
                if not all(word.sure for word in found):
                    found = [Word(text, sure=False) for text in texts] or [_UNKNOWN]
            return found
        if kind in ("command_substitution", "process_substitution"):
            self.walk(node)
            # What a process substitution stands for is what it reads, which was noted.
            return [Word("" if kind[0] == "p" else ANY, sure=kind[0] == "p")]
        self.walk(node)
        return [Word(ANY, sure=False)]

    def _split(self, node: Node, values: list[Word]) -> list[Word]:
        """The values of a variable, and the words of those that have spaces and are not quoted."""
        around = node.parent.type if node.parent is not None else ""
        spaced = [value for value in values if re.search(r"\s", value.text)]
        if around == "string" or not spaced:
            return values
        if around == "concatenation":
            return [_UNKNOWN]
        return [*values, *(Word(text, sure=False) for one in spaced for text in one.text.split())]

    def may_open(self, value: str) -> None:
        """Note a value of an option, which may be a file."""
        if value:
            path = resolved(value, self.cwd)
            self.found.also.append(OpenedPath(value, path, sure=False))

    # Programs

    def run(self, words: Sequence[Word]) -> None:
        """What a program with its arguments opens."""
        name = words[0].text.rpartition("/")[2]
        args = list(words[1:])
        if not words[0].sure:
            self.opaque("a program that only the shell knew")
        elif "/" in words[0].text and not syntax.TRUSTED.fullmatch(words[0].text):
            self.opaque(f"the program {short(words[0].text)} may open any file")
        else:
            self._known(name, args)

    def _known(self, name: str, args: list[Word]) -> None:
        wraps = name in syntax.WRAPPERS or name in ("timeout", "env", "xargs")
        if name not in syntax.NEVER_CLOSED and self._is_closed(name, args):
            return
        if not wraps:
            self._options(name, args)
        if name in ("source", "."):
            self.opaque(f"a script run by {name}")
            for word in args[:1]:
                self.open(word)
        elif name in syntax.SETTING:
            self._sets(name, args)
        elif name == "alias" and any("=" in word.text for word in args):
            self.opaque("another name for a command")
        elif name == "trap" and len(operands_of(name, args)) > 1:
            self._trap(operands_of(name, args)[:1])
        elif name == "type":
            for word in args:
                self.may_open(word.text)
        elif wraps:
            self._wrapped(name, args)
        elif name in syntax.SHELLS or name == "eval":
            self._script(name, args)
        elif name in ("cd", "pushd"):
            known = [word for word in args if word.text not in ("-L", "-P", "--")]
            self.goes(*known or [Word("~", sure=True)])  # several: a variable had them
        elif name == "git":
            read_git(self, args)
        elif name in syntax.OURS:
            _read_ours(self, name, args)
        elif name in syntax.INTERPRETERS and [word.text for word in args[:2]] == ["-m", "tripod"]:
            self.run(args[1:])
        elif name in syntax.AFTER_ONE:
            read_search(self, name, args)
        elif name in syntax.FILES:
            self._files(name, args)
        elif name == "find" and any(word.text in syntax.EXECUTES for word in args):
            self._found(args)
        elif name in ("test", "[") and _ONCE_MORE.search(" ".join(word.text for word in args)):
            self.opaque("a command in the index of a variable")
        elif name not in syntax.NAMES and name not in syntax.QUIET:
            self.opaque(f"the program {short(name)} may open any file")

    def _is_closed(self, name: str, args: list[Word]) -> bool:
        """Whether a program shows what lies in no file of the project."""
        line = " ".join((name, *(word.text for word in args)))
        if not syntax.CLOSED.fullmatch(line) or any(map(syntax.STARTS.match, self.variables)):
            return False
        for word in args if "{{" not in line else ():
            self.may_open(word.text.partition("=")[2] or word.text)
            self.may_open(word.text[2:])
        return True

    def _files(self, name: str, args: list[Word]) -> None:
        """A program that opens the files that it names, or copies them."""
        operands, copied = operands_of(name, args), ""
        if name in syntax.COPIES:
            last = operands.pop() if len(operands) > 1 else _UNKNOWN
            if is_among(name, args, "-t --target"):
                operands.append(last)
            # In a folder that is called like a file, nobody would look for others.
            elif last.sure and not (name in syntax.TREES and FILE_NAME.fullmatch(last.text)):
                copied = last.text
        recursive = name in syntax.TREES and (
            name not in syntax.DEEP
            or is_among(name, args, syntax.DEEP[name])
            or has_unknown_option(name, args)
        )
        if name == "tar" and args and syntax.UNPACKS.fullmatch(args[0].text):
            recursive = False
        for word in operands:
            named = word._replace(sure=word.sure and name not in syntax.MOVES)
            below = recursive and not (word.sure and FILE_NAME.fullmatch(word.text))
            self.open(named, recursive=below, copied=copied)
        for word in args:
            option, equals, value = word.text.partition("=")
            if equals and name == "dd":
                if option == "if":
                    self.open(Word(value, word.sure))
            elif word.text.startswith("-"):
                self.may_open(value if equals else word.text[2:])

    def _options(self, name: str, args: list[Word]) -> None:
        """Note options with which a program may open what it does not name."""
        if name == "mkdir" and any(FILE_NAME.fullmatch(word.text) for word in args):
            self.opaque("a folder with a name like that of a file")
        if name == "tar" and args and not args[0].text.startswith("-"):
            args = [args[0]._replace(text=f"-{args[0].text}"), *args[1:]]
        table = syntax.READING.get(name)
        if table is not None and is_among(ALIKE.get(name, name), args, table):
            self.opaque(f"{name} with these options may open any file")
        elif table is not None and has_unknown_option(name, args):
            self.opaque(f"{name} with options that only the shell knew")

    def _sets(self, name: str, args: list[Word]) -> None:
        """A program of the shell that sets variables."""
        if name == "printf":
            args = args[:2] if args and args[0].text.startswith("-v") else []
        elif name == "read":
            args = [*args, Word("REPLY", sure=True)]
        if name != "unset" and any(ANY in word.text for word in operands_of(name, args)):
            self.opaque("a variable that only the shell knew")
        for word in args:
            glued = range(2, len(word.text)) if word.text.startswith("-") else ()
            for text in (word.text, *(word.text[at:] for at in glued)):
                self.sets_any(text)
                if name != "unset":
                    self.environment(text, ANY)

    def _trap(self, script: list[Word]) -> None:
        """A script that is run at the end: now, and in any folder with any variables."""
        self.inner()._script("eval", script)  # noqa: SLF001
        later = self.inner()
        later.cwd = f"/{ANY}"
        later.variables = {}
        later._script("eval", script)  # noqa: SLF001

    def _wrapped(self, name: str, args: list[Word]) -> None:
        own: list[Word] = []
        mark: str | None = None
        values = VALUES.get(name, "").split()
        while args and (args[0].text.startswith("-") or "=" in args[0].text):
            own.append(args.pop(0))
            option, equals, value = own[-1].text.partition("=")
            if option[:1] != "-":
                self.environment(option, value)
                if equals and option in self.variables:
                    self.sets(option, [Word(value, own[-1].sure)])
            last, glued = (options_of(name, own[-1]) or [("", "")])[-1]
            if last in values and not glued and not equals:
                own += args[:1]
                glued = args.pop(0).text if args else ""
            # Whether another takes a value depends on the program: a word that is no program, in
            # front of one that is, is a value.
            elif (
                len(args) > 1
                and syntax.is_program(args[1].text)
                and not (name == "timeout" and glued)
            ):
                if syntax.is_program(args[0].text):
                    self.opaque(f"the program that {name} runs, {short(args[0].text)} or not")
                else:
                    own.append(args.pop(0))
            if name == "xargs" and last in ("-I", "-J", "-i", "--replace"):
                mark = glued or "{}"
        if name in syntax.READING:
            self._options(name, own)
        if name == "timeout" and args:
            args.pop(0)
        if name == "xargs":
            self.piped = False
            args = args or [Word("echo", sure=True)]
            args = [
                word._replace(text=word.text.replace(mark, ANY), sure=False)
                if mark is not None and mark in word.text
                else word
                for word in args
            ] + ([_UNKNOWN] if mark is None else [])
        if args:
            self.run(args)

    def _script(self, name: str, args: list[Word]) -> None:
        inline, texts = name == "eval", list(args)
        while name != "eval" and texts and texts[0].text.startswith(("-", "+")):
            option = texts.pop(0).text
            inline = inline or (option[1:2] != "-" and "c" in option)
            if is_option(option, ("--rcfile", "--init-file")):
                self.opaque(f"a script run by {name}")
                del texts[:1]
            elif option[1:2] != "-":
                del texts[: option.lower().count("o")]
                if "s" in option:
                    self.opaque(f"a script run by {name}")
        parser = _parser()
        if not inline or not texts or parser is None or self.depth > 4:
            self.opaque(f"a script run by {name}")
            for word in texts[:1]:
                self.open(word)
            return
        text = " ".join(word.text for word in texts) if name == "eval" else texts[0].text
        if not all(word.sure for word in (texts if name == "eval" else texts[:1])):
            self.opaque(f"a script run by {name} that only the shell knew")
        inner = self.inner(1)
        read_syntax(parser, text, inner)
        if name == "eval":
            self.variables, self.left, self.others = inner.variables, inner.left, inner.others
            self.cwd, self.is_sure = inner.cwd, inner.is_sure

    def _found(self, args: list[Word]) -> None:
        """``find ... -exec PROGRAM {} ;``: the program may open what lies below the folders."""
        folders = list(args)
        while folders and re.fullmatch(r"-[HLP]|-O\d", folders[0].text):
            folders.pop(0)
        tests = (n for n, word in enumerate(folders) if word.text.startswith(("-", "(", "!")))
        folders = folders[: next(tests)] or [Word(".", sure=True)]
        shows = False
        for at in [n for n, word in enumerate(args) if word.text in syntax.EXECUTES]:
            words: list[Word] = []
            for word in args[at + 1 :]:
                if word.text == ";" or (word.text == "+" and words and words[-1].text == "{}"):
                    break
                words.append(word)
            shows = shows or not words or words[0].text not in syntax.NAMES | syntax.QUIET
            for folder in folders if words else ():
                below = f"{folder.text}/{ANY}"
                self.run(
                    [
                        Word(
                            folder.text if one.text == "{}" else one.text.replace("{}", below),
                            one.sure and "{}" not in one.text,
                        )
                        for one in words
                    ]
                )
        for folder in folders if shows else ():
            self.open(folder._replace(sure=False), recursive=True)


def _read_ours(shell: Shell, name: str, args: Sequence[Word]) -> None:
    """A command of ours: which files of the team it shows."""
    operands = operands_of(name, args)
    if name.startswith("nbs-"):
        operands.insert(0, Word(name.removeprefix("nbs-"), sure=True))
    group, verb = [*(word.text for word in operands[:2]), "", ""][:2]
    place = syntax.OURS_SHOW.get(f"{group} {verb}") or syntax.OURS_SHOW.get(group)
    named = operands[2:] if group in ("bus", "chat") else []
    if place is None:
        if group not in syntax.OURS_QUIET:
            shell.opaque(f"{name} {short(group)} may show any file of the team")
    elif not named:
        shell.open(Word(f"{syntax.TEAM}/{place}", sure=True), recursive=place != syntax.LEDGER)
    elif group == "bus":
        folder = named[0].text if len(named) > 1 else f"{syntax.TEAM}/{place}"
        shell.open(Word(f"{folder}/{named[-1].text}", named[-1].sure))
    elif "/" in named[0].text:
        shell.open(named[0])
    else:
        chat = named[0].text.removesuffix(".chat")
        shell.open(Word(f"{syntax.TEAM}/chat/{chat}.chat", named[0].sure))
