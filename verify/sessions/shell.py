"""Which files a command line of a shell opens, as far as its text tells. Pure.

Parsed by tree-sitter (the extra ``sessions``); without it, a line that is not one plain list of
words tells nothing. What runs a program of its own, or a script, is opaque: it may open any file.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from functools import cache
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any

from tripod.verify.sessions.programs import (
    AFTER_ONE,
    AWK,
    COPIES,
    ENVIRONMENT,
    EXECUTES,
    FILES,
    GIT_BRIEF,
    GIT_LISTS,
    GIT_QUIET,
    GIT_RUNS,
    GIT_SHOWS,
    GIT_TEXT,
    GIT_VALUES,
    GIT_WRITES,
    HARMLESS,
    INTERPRETERS,
    JQ,
    LEDGER,
    MOVES,
    NAMES,
    OURS,
    OURS_QUIET,
    OURS_REFS,
    OURS_SHOW,
    QUIET,
    READING,
    SEARCHES,
    SETTING,
    SHELLS,
    TEAM,
    TREES,
    TRUSTED,
    WRAPPERS,
    OpenedPath,
    ShellReading,
    Word,
    is_plain_sed,
    operands_of,
    plain_commands,
)

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

ANY = "**"
"""What stands in a path for a part that only the shell knew, which may have slashes."""
MAX_COMMAND, MAX_WORD = 256 * 1024, 64 * 1024  # characters
MAX_PARSED = 4096  # characters of a command line without the texts that it gives to programs


_UNKNOWN = Word(ANY, sure=False)
_MAGIC = re.compile(r"[*?\[{]")
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")


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
            for words in plain:
                shell.run([Word(word, sure=True) for word in words])
        elif parser is not None:
            read_syntax(parser, command, shell)
        else:
            found.opaque.append(f"a command line that is not parsed: {short(command)}")
    except RecursionError:
        found.opaque.append("a command line that is nested too deep")
    return found


def read_syntax(parser: Parser, command: str, shell: Shell) -> None:
    """Have a shell take in what a parser makes of a command line."""
    root = syntax_of(parser, command)
    if root is None or root.has_error:
        shell.opaque(f"a command line that cannot be parsed: {short(command)}")
    if root is not None:
        shell.walk(root)


@cache
def _parser() -> Parser | None:
    try:
        import tree_sitter_bash
        from tree_sitter import Language, Parser
    except ImportError:
        return None
    return Parser(Language(tree_sitter_bash.language()))


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


def resolved(named: str, cwd: str) -> str:
    r"""A path in its folder, without ``.`` and ``..``; a home stays ``~``.

    >>> resolved("../chat/a.md", "/w/src"), resolved("~/.env", "/w"), resolved("a", "")
    ('/w/chat/a.md', '~/.env', 'a')
    >>> resolved("chat\\a.md", "C:\\w"), resolved("file:///w/%61", ""), resolved(ANY, "/w")
    ('C:/w/chat/a.md', '/w/a', '/**')
    """
    if _WINDOWS.match(named) or _WINDOWS.match(cwd):
        named, cwd = named.replace("\\", "/"), cwd.replace("\\", "/")
        cwd = "" if _WINDOWS.match(named) else cwd
    if named.startswith(ANY):
        return f"/{posixpath.normpath(named)}"
    if named.startswith("file://"):
        named = path_of_url(named)
    joined = named if named.startswith(("/", "~")) or not cwd else posixpath.join(cwd, named)
    return re.sub("^//", "/", posixpath.normpath(joined))


def path_of_url(url: str) -> str:
    """The path in an address of a file."""
    from urllib.parse import unquote  # most sessions have none

    return unquote(url.removeprefix("file://"))


def short(text: str) -> str:
    """A text as a message quotes it."""
    return text if len(text) <= 80 else f"{text[:77]}..."


class Shell:
    """One shell: its folder and its variables, and what the commands in it open."""

    def __init__(self, found: ShellReading, cwd: str, depth: int = 0) -> None:
        self.found, self.cwd, self.depth = found, cwd, depth
        self.left: set[str] = set()  # folders that it was in: a cd may fail, or run elsewhere
        self.variables: dict[str, list[Word]] = {}
        self._behind: dict[int, list[Node]] = {}  # words of a command that follow a redirect

    def open(self, word: Word, *, recursive: bool = False, lists_names: bool = False) -> None:
        """Note that a file is opened, if the word is one."""
        sure = word.sure and ANY not in self.cwd
        if word.text and word.text != "-":
            path = resolved(word.text, self.cwd)
            self.found.opened.append(OpenedPath(word.text, path, sure, recursive, lists_names))
            for folder in self.left - {self.cwd}:
                path = resolved(word.text, folder)
                self.found.also.append(OpenedPath(word.text, path, sure=False, recursive=recursive))

    def goes(self, word: str) -> None:
        """Go to a folder; which it was stays possible."""
        self.left.add(self.cwd)
        self.cwd = f"/{ANY}" if word.startswith(("-", "+")) else resolved(word, self.cwd)
        if len(self.left) > 16:
            self.left, self.cwd = set(), f"/{ANY}"

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
        elif kind == "redirected_statement":
            self._redirected(node)
        elif kind in ("subshell", "command_substitution", "process_substitution"):
            inner = Shell(self.found, self.cwd, self.depth)
            inner.variables, inner.left = dict(self.variables), set(self.left)
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
        elif kind == "declaration_command" and re.search(r"\s-\w*n", node_text(node)):
            self.opaque("another name for a variable")
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

    def _command(self, node: Node) -> None:
        words: list[Word] = []
        for child in (*node.named_children, *self._behind.pop(node.id, ())):
            if child.type == "variable_assignment":
                self._assign(child)
            elif child.type.endswith("_redirect"):
                self._redirect(child)
            else:
                words += self.words(child)
        if words:
            self.run(words)

    def _assign(self, node: Node) -> None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is not None:
            words = self.words(value) if value is not None else [Word("", sure=True)]
            # A branch, a pipe or one command alone may have had it: what it was stays possible.
            old = self.variables.get(node_text(name), [])
            new = [word._replace(sure=False) for word in words]
            values = list(dict.fromkeys([*old, *new]))
            self.variables[node_text(name)] = values if len(values) <= 16 else [_UNKNOWN]
            self.environment(node_text(name), "".join(word.text for word in words))

    def environment(self, name: str, value: str) -> None:
        """Note that a variable is set, by which a program may run another."""
        harmless = not value if name == "IFS" else HARMLESS.fullmatch(value)
        if ENVIRONMENT.fullmatch(name) and not harmless:
            self.opaque(f"the variable {short(name)} may name any program")

    def _again(self, loop: Node) -> None:
        """Forget what a loop sets: it may be set when its statements are run once more."""
        todo = [loop]
        while todo:
            node = todo.pop()
            name = node.child_by_field_name("name") if "assignment" in node.type else None
            if name is not None:
                self.variables[node_text(name)] = [_UNKNOWN]
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
        if body is not None:
            self.walk(body)

    def _redirect(self, node: Node) -> None:
        for child in node.named_children:
            for word in self.words(child) if child.type != "heredoc_body" else ():
                if node.type == "file_redirect" and node_text(node).lstrip("0123456789").startswith(
                    "<"
                ):
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
            text = re.sub(r"\\(.)", r"\1", node_text(node))
            return [Word(text, sure=not _MAGIC.search(node_text(node)))]
        if kind == "raw_string":
            return [Word(node_text(node)[1:-1], sure=True)]
        if kind == "string_content":
            return [Word(re.sub(r'\\(["\\$`])', r"\1", node_text(node)), sure=True)]
        if kind in ("simple_expansion", "expansion"):
            for child in node.named_children:
                if child.type == "command_substitution":
                    self.walk(child)
            named = [child for child in node.named_children if child.type == "variable_name"]
            known = self.variables.get(node_text(named[0])) if named and kind[0] == "s" else None
            return self._split(node, known) if known else [_UNKNOWN]
        if kind in ("string", "concatenation", "translated_string"):
            found = [Word("", sure=True)]
            for child in node.named_children:
                parts = self.words(child)
                found = [
                    Word(one.text + part.text, one.sure and part.sure)
                    for one in found
                    for part in parts
                ]
                if len(found) > 64 or any(len(one.text) > MAX_WORD for one in found):
                    found = [Word(ANY, sure=False)]
            return found
        if kind in ("command_substitution", "process_substitution"):
            self.walk(node)
            # What a process substitution stands for is what it reads, which was noted.
            return [Word("" if kind[0] == "p" else ANY, sure=kind[0] == "p")]
        for child in node.named_children:
            self.walk(child)
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
        name = posixpath.basename(words[0].text)
        args = list(words[1:])
        if not words[0].sure:
            self.opaque("a program that only the shell knew")
        elif "/" in words[0].text and not TRUSTED.fullmatch(words[0].text):
            self.opaque(f"the program {short(words[0].text)} may open any file")
        else:
            self._known(name, args)

    def _known(self, name: str, args: list[Word]) -> None:
        if name in READING and _is_among(args, READING[name], clusters=name in ("tar", "unzip")):
            self.opaque(f"{name} with these options may open any file")
        if name in ("source", "."):
            self.opaque(f"a script run by {name}")
            for word in args[:1]:
                self.open(word)
        elif name in SETTING and any(word.text in self.variables for word in args):
            self.variables.update({word.text: [_UNKNOWN] for word in args})
        elif name == "alias" and any("=" in word.text for word in args):
            self.opaque("another name for a command")
        elif name == "trap" and len(args) > 1:
            self._script("eval", args[:1])
        elif name == "type":
            for word in args:
                self.may_open(word.text)
        elif name in WRAPPERS or name in ("timeout", "env", "xargs"):
            self._wrapped(name, args)
        elif name in SHELLS or name == "eval":
            self._script(name, args)
        elif name in ("cd", "pushd"):
            known = [word.text for word in args if word.text not in ("-L", "-P", "--")]
            target = known[0] if known else "~"
            self.goes(target)
        elif name == "git":
            self._git(args)
        elif name in OURS:
            self._ours(name, args)
        elif name in INTERPRETERS and len(args) > 1 and args[0].text == "-m":
            self.run(args[1:])
        elif name in AFTER_ONE:
            self._search(name, args)
        elif name in FILES:
            operands = operands_of(name, args)
            if name in COPIES and len(operands) > 1 and not _is_among(args, "-t --target"):
                operands.pop()  # where the copy goes
            for word in operands:
                named = word._replace(sure=word.sure and name not in MOVES)
                self.open(named, recursive=name in TREES)
            for word in args:
                option, equals, value = word.text.partition("=")
                if equals and name == "dd":
                    if option == "if":
                        self.open(Word(value, word.sure))
                elif word.text.startswith("-"):
                    self.may_open(value if equals else word.text[2:])
        elif name == "find" and any(word.text in EXECUTES for word in args):
            self._found(args)
        elif name not in NAMES and name not in QUIET:
            self.opaque(f"the program {short(name)} may open any file")

    def _wrapped(self, name: str, args: list[Word]) -> None:
        while args and (args[0].text.startswith("-") or "=" in args[0].text):
            option, _, value = args.pop(0).text.partition("=")
            self.environment(option, value)
            # Whether an option takes a value depends on the program: a word that is no program, in
            # front of one that is, is a value.
            if len(args) > 1 and _is_program(args[1]):
                if _is_program(args[0]):
                    self.opaque(f"the program that {name} runs, {short(args[0].text)} or not")
                else:
                    args.pop(0)
        if name == "timeout" and args:
            args.pop(0)
        if name == "xargs":
            args = [*(args or [Word("echo", sure=True)]), Word(ANY, sure=False)]
        if args:
            self.run(args)

    def _script(self, name: str, args: list[Word]) -> None:
        inline = name == "eval" or any(word.text in ("-c", "-lc", "-ic") for word in args)
        texts = [word for word in args if name == "eval" or not word.text.startswith("-")]
        parser = _parser()
        if not inline or not texts or parser is None or self.depth > 4:
            self.opaque(f"a script run by {name}")
            for word in texts[:1]:
                self.open(word)
            return
        text = " ".join(word.text for word in texts) if name == "eval" else texts[0].text
        if not all(word.sure for word in texts[:1]):
            self.opaque(f"a script run by {name} that only the shell knew")
        root = syntax_of(parser, text)
        if root is None or root.has_error:
            self.opaque(f"a script run by {name} that cannot be parsed")
        inner = Shell(self.found, self.cwd, self.depth + 1)
        inner.variables, inner.left = dict(self.variables), set(self.left)
        if root is not None:
            inner.walk(root)
        if name == "eval":
            self.variables, self.left, self.cwd = inner.variables, inner.left, inner.cwd

    def _search(self, name: str, args: list[Word]) -> None:
        flags = "".join(w.text[1:] for w in args if re.match(r"-\w", w.text))
        long = {word.text.partition("=")[0] for word in args if word.text.startswith("--")}
        operands = operands_of(name, args)
        given = {"-e", "-f", "--regexp", "--file", "--expression", "--files"}
        if not given & {word.text.partition("=")[0] for word in args}:
            operands = operands[1:]
        for option, word in pairwise(args):
            if option.text in ("-f", "--file"):
                self.open(word)
        for word in args:
            if word.text.startswith("-"):
                self.may_open(word.text.partition("=")[2] or word.text[2:])
        recursive = name in SEARCHES or (
            "grep" in name
            and (not {*"rRd"}.isdisjoint(flags) or _is_among(args, "--r --deref --dir"))
        )
        if not self._is_plain_script(name, args):
            self.opaque(f"a script of {name} that opens files or runs programs")
        silent = "h" in flags or "o" in flags or bool(long & {"--no-filename"})
        if recursive and not operands:
            operands = [Word(".", sure=True)]
        for word in operands:
            self.open(word, recursive=recursive, lists_names=recursive and not silent)

    def _is_plain_script(self, name: str, args: list[Word]) -> bool:
        """Whether what awk, jq or sed is to do opens no file of its own."""
        texts = " ".join(word.text for word in args)
        if name.endswith("awk"):
            return not (AWK.search(texts) or _is_among(args, "-f -i -l -E --f --i --l --e"))
        if name in ("jq", "yq"):
            return not JQ.search(texts)
        if "sed" not in name:
            return True
        scripts = [
            word.text.partition("=")[2] if word.text.startswith("--") else word.text
            for option, word in pairwise([Word("", sure=True), *args])
            if re.fullmatch(r"-\w*e|--expression", option.text)
            or word.text.startswith("--expression=")
        ] or [word.text for word in operands_of(name, args)[:1]]
        return all(map(is_plain_sed, scripts)) and not _is_among(args, "-f --fi")

    def _found(self, args: list[Word]) -> None:
        """``find ... -exec PROGRAM {} ;``: the program may open what lies below the folders."""
        ends = [n for n, word in enumerate(args) if word.text in EXECUTES]
        programs = {args[at + 1].text if at + 1 < len(args) else "" for at in ends}
        if programs <= NAMES | QUIET:
            return
        folders = list(args)
        while folders and re.fullmatch(r"-[HLP]|-O\d", folders[0].text):
            folders.pop(0)
        tests = (n for n, word in enumerate(folders) if word.text.startswith(("-", "(", "!")))
        for word in folders[: next(tests)] or [Word(".", sure=True)]:
            self.open(word._replace(sure=False), recursive=True)
        for program in programs - FILES - AFTER_ONE - NAMES - QUIET:
            self.opaque(f"the program {short(program)} may open any file")

    def _git(self, args: list[Word]) -> None:
        cwd = self.cwd
        while args and args[0].text.startswith("-"):
            option = args.pop(0).text
            if option in GIT_VALUES and args:
                value = args.pop(0)
                cwd = resolved(value.text, cwd) if option == "-C" else cwd
                if option == "-c":
                    self._setting(*value.text.split("=", 1))
            elif option.startswith(("--exec-path=", "--config-env")):
                self.opaque(f"git {short(option)} may run any program")
        verb = args.pop(0).text if args else "help"
        letters, _, words = GIT_SHOWS.get(verb, "").partition(" ")
        if any(
            not {*letters}.isdisjoint(word.text[1:])
            if re.match(r"-\w", word.text)
            else any(_begins(word.text.partition("=")[0], one) for one in words.split())
            for word in args
        ):
            self.opaque(f"git {verb} with these options may show any file")
        if verb == "config":
            self._setting(*[word.text for word in args if word.text[:1] != "-"])
        if verb == "mv":
            for word in args:
                self.open(word._replace(sure=False), recursive=True)
        self._records(verb, args)
        if verb in GIT_QUIET and verb != "reflog":
            return
        if verb not in GIT_TEXT:
            self.opaque(f"git {short(verb)} may open any file")
            return
        rest = [word for word in args if not word.text.startswith("-") or word.text == "--"]
        inner = Shell(self.found, cwd, self.depth)
        inner.left = set(self.left)
        paths: list[Word] = []
        if Word("--", sure=True) in rest:
            paths = rest[rest.index(Word("--", sure=True)) + 1 :]
        briefly = {word.text.partition("=")[0] for word in args} & GIT_BRIEF
        if (verb in ("log", "stash", "bisect", "reflog") or briefly) and all(
            GIT_LISTS.fullmatch(word.text)
            for word in args
            if word.text.startswith("-") and word.text != "--"
        ):
            return  # messages and names of commits alone
        named = 0
        for word in rest if verb != "grep" else ():
            _, colon, path = word.text.partition(":")
            if colon and path:
                paths.append(Word(path, word.sure))
                named += 1
            elif not colon:
                inner.may_open(word.text)  # a commit, or a path
        if verb in ("blame", "annotate") and not paths:
            paths = rest
        for word in paths:
            inner.open(word, recursive=True, lists_names=verb == "grep")
        if not paths or (rest and 0 < named < len(rest) and verb not in ("blame", "annotate")):
            inner.open(Word(".", sure=False), recursive=True, lists_names=verb != "archive")

    def _records(self, verb: str, args: list[Word]) -> None:
        """Our records that a verb of git shows: a ref holds files whose paths do not name it."""
        for word in args if verb in GIT_TEXT or verb in GIT_WRITES else ():
            ref = (word.text.partition("=")[2] or word.text).partition(":")[0]
            if ref.startswith(OURS_REFS):
                self.open(Word(f".git/{ref}", word.sure), recursive=True)
            elif verb == "clone":
                self.may_open(word.text)

    def _ours(self, name: str, args: list[Word]) -> None:
        """A command of ours: which files of the team it shows."""
        operands = operands_of(name, args)
        if name.startswith("nbs-"):
            operands.insert(0, Word(name.removeprefix("nbs-"), sure=True))
        group, verb = [*(word.text for word in operands[:2]), "", ""][:2]
        place = OURS_SHOW.get(f"{group} {verb}") or OURS_SHOW.get(group)
        named = operands[2:] if group in ("bus", "chat") else []
        if place is None:
            if group not in OURS_QUIET:
                self.opaque(f"{name} {short(group)} may show any file of the team")
        elif not named:
            self.open(Word(f"{TEAM}/{place}", sure=True), recursive=place != LEDGER)
        elif group == "bus":
            folder = named[0].text if len(named) > 1 else f"{TEAM}/{place}"
            self.open(Word(f"{folder}/{named[-1].text}", named[-1].sure))
        elif "/" in named[0].text:
            self.open(named[0])
        else:
            chat = named[0].text.removesuffix(".chat")
            self.open(Word(f"{TEAM}/chat/{chat}.chat", named[0].sure))

    def _setting(self, *setting: str) -> None:
        """A setting of git that is made: its name and its value."""
        name, value = (*setting, "", "")[:2]
        if (
            GIT_RUNS.search(" ".join(setting))
            and value
            and not (len(setting) == 2 and HARMLESS.fullmatch(value))
        ):
            self.opaque(f"the setting {short(name)} of git may name any program")


def _begins(word: str, option: str) -> bool:
    """Whether a word is an option, which git takes by any beginning of it."""
    return word == option or (len(word) > 3 and word[:2] == "--" and option.startswith(word))


def _is_among(args: Sequence[Word], options: str, *, clusters: bool = False) -> bool:
    """Whether a word begins as one of some options does; '' is any word at all."""
    begins = tuple(options.split()) or ("",)
    if any(word.text.startswith(begins) for word in args):
        return True
    letters = {one[1] for one in begins if len(one) == 2} if clusters else set[str]()
    words = [word.text for n, word in enumerate(args) if not n or word.text[:1] == "-"]
    return any(letters & {*word} for word in words if word[:2] != "--")


def _is_program(word: Word) -> bool:
    name = posixpath.basename(word.text)
    tables = (FILES, AFTER_ONE, NAMES, QUIET, WRAPPERS, SHELLS)
    return name in ("git", "timeout", "env", "xargs") or any(name in table for table in tables)


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
