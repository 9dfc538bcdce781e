"""The rules of this repository as functions: source text in, complaints out.

Each rule is pure and is tried twice by the tests beside it: on a small offending sample, to show
that it can fail, and on the tree. A complaint is one line, ``place: what is wrong``.
"""

import ast
import graphlib
import re
import subprocess
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatch
from functools import cache, lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("ledger", "projections", "verify", "tripod")
"""The import packages from the bottom up: each may import those before it."""

_INNER_PACKAGES = PACKAGES[:-1]
"""Packages that may be imported as ``ledger`` or as ``tripod.ledger``; rules use the short name."""

FUNCTION_LINES = 60
MODULE_LINES = 700

SHORT_LINES = 40
FOLDER_MODULES = 15
CLASS_ATTRIBUTES = 12

LONGER: dict[str, str] = {
    "torture/parsers/outside.py:commands_of_shells": "a table of parsers, a row for each",
    "torture/parsers/files.py:team": "a table of parsers, a row for each",
    "torture/parsers/files.py:decisions": "a table of parsers, a row for each",
    "torture/parsers/outside.py:settings_files": "a table of parsers, a row for each",
    "torture/parsers/sealed.py:notes": "a table of parsers, a row for each",
    "torture/parsers/sealed.py:entries": "a table of parsers, a row for each",
}
"""What may be longer, with the reason: ``path`` of a module, or ``path:function``."""

SHORTER: dict[str, str] = {
    "tripod/errors.py": "one tree; those that lower packages raise stand in ledger/errors",
}
"""Modules that may be short for good, with the reason."""

WIDER: dict[str, str] = {
    "ledger/kinds/decisions.py:Decided": "a released body, which grew by an optional field",
    "ledger/kinds/peers.py:Place": "an optional field for each thing that has another name here",
    "ledger/kinds/sessions.py:SessionImported": "all that one entry says of a file, in one place",
    "ledger/kinds/base.py:Kind": "all that one declaration of a kind says, in one place",
    "verify/anchors/policy.py:Rules": "an attribute for each key of a policy file",
    "verify/sessions/items.py:Call": "all that a record says of one call, in one place",
    "verify/sessions/items.py:Given": "all that a record says of one text, in one place",
}
"""Classes that may have more attributes for good, with the reason: ``path:class``."""

REGISTRIES = frozenset({"checks", "kinds", "cli"})
"""Folders with one module for each check, kind or command group: any number, of any length."""

OWN_TABLES = ("entries", "blobs", "nodes", "head", "unswept")
"""The tables of ``ledger/schema.py``; a test compares this list with the schema."""

SQL_ALLOWED = (
    "ledger/*",
    "verify/rows.py",
    "verify/scan/*",
)
"""Modules that may name the ledger's own tables in SQL."""

PURE = (
    "ledger/chain.py",
    "ledger/entry.py",
    "ledger/merkle.py",
    "ledger/tlog/note.py",
    "ledger/tlog/policy.py",
    "ledger/tlog/proof.py",
    "ledger/tlog/seal.py",
    "ledger/tlog/tiles.py",
    "ledger/tlog/receipt.py",
    "projections/*/format.py",
    "projections/*/tables.py",
    "projections/erasure.py",
    "projections/layout.py",
    "projections/pieces.py",
    "projections/projection.py",
    "projections/text.py",
    "verify/checks/*.py",
    "verify/isolation/phrases.py",
    "verify/sessions/*.py",
    "ledger/words.py",
)
"""Where there is no clock, disk, network or randomness."""

_IMPURE_MODULES = frozenset(
    {
        "asyncio",
        "builtins",
        "click",
        "fcntl",
        "getpass",
        "glob",
        "http",
        "locale",
        "logging",
        "mmap",
        "multiprocessing",
        "os",
        "platform",
        "random",
        "rich",
        "secrets",
        "select",
        "shutil",
        "signal",
        "socket",
        "sqlite3",
        "sqlite_utils",
        "ssl",
        "subprocess",
        "sys",
        "tempfile",
        "threading",
        "time",
        "uuid",
        "zoneinfo",
    }
)
_PURE_NAMES = {
    "io": frozenset({"BytesIO", "StringIO"}),  # in memory alone
    "urllib": frozenset({"unquote"}),
    # What reads YAML into events and nodes. Loaders that make values may call what a file names.
    "yaml": frozenset(
        {
            "CollectionEndEvent",
            "CollectionStartEvent",
            "MappingNode",
            "MarkedYAMLError",
            "Node",
            "NodeEvent",
            "ReaderError",
            "SafeLoader",
            "compose",
            "parse",
        }
    ),
    "pathlib": frozenset({"PurePath", "PurePosixPath", "PureWindowsPath"}),
}
_CLOCKS = frozenset({"now", "utcnow", "today", "fromtimestamp"})
_DOORS = frozenset({"open", "input", "print", "__import__", "exec", "eval"})

_Function = ast.FunctionDef | ast.AsyncFunctionDef


# What to look at -------------------------------------------------------------------------------


def tracked() -> list[str]:
    """Paths from the root of every file that git keeps or would add, in order."""
    listing = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z", "-c", "-o", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    ).stdout.decode()
    return sorted(path for path in set(listing.split("\0")) if path and (ROOT / path).is_file())


def sources(*folders: str) -> dict[str, str]:
    """Path and text of each Python file under the named top folders."""
    return {
        path: (ROOT / path).read_text(encoding="utf-8")
        for path in tracked()
        if path.endswith(".py") and path.split("/")[0] in folders
    }


@lru_cache(maxsize=1)
def _nodes(text: str) -> tuple[ast.AST, ...]:
    """All nodes of a module, kept for the next rule that looks at this text.

    The trees of all modules at once would be half a million objects for the collector to visit.
    """
    return tuple(ast.walk(ast.parse(text)))


# Caps ------------------------------------------------------------------------------------------


def over_caps(path: str, text: str) -> list[str]:
    """Modules and functions that are longer than a reader can hold."""
    lines = len(text.splitlines())
    over = lines > MODULE_LINES and path not in LONGER
    found = [f"{path}: {lines} lines, at most {MODULE_LINES}"] if over else []
    found += [
        f"{path}:{line}: {name} has {length} lines, at most {FUNCTION_LINES}"
        for line, name, length in _long_functions(text)
        if f"{path}:{name}" not in LONGER
    ]
    return found


@cache
def _long_functions(text: str) -> tuple[tuple[int, str, int], ...]:
    """Line, name and length of each function that is too long."""
    return tuple(
        (node.lineno, node.name, length)
        for node in _nodes(text)
        if isinstance(node, _Function)
        and (length := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES
    )


# Layers and circles ----------------------------------------------------------------------------


def _one_spelling(module: str) -> str:
    """``tripod.ledger.chain`` and ``ledger.chain`` are the same module; this gives the second."""
    inner = module.removeprefix("tripod.")
    return inner if inner.split(".")[0] in _INNER_PACKAGES else module


def module_name(path: str) -> str:
    """``ledger/kinds/__init__.py`` is the module ``ledger.kinds``."""
    return _one_spelling(path.removesuffix(".py").removesuffix("/__init__").replace("/", "."))


@cache
def _imports(path: str, text: str) -> tuple[tuple[int, str, str | None], ...]:
    """Line, module and name of each import, wherever it stands: in functions and guards as well.

    A module of this project has one name, however it is imported: ``import ledger``,
    ``import tripod.ledger`` and ``from tripod import ledger`` all give the module ``ledger``.
    """
    return tuple(
        (line, name, None)
        if module == "tripod" and name in _INNER_PACKAGES
        else (line, _one_spelling(module), name)
        for line, module, name in _spelled_imports(path, text)
    )


def _spelled_imports(path: str, text: str) -> Iterator[tuple[int, str, str | None]]:
    package = module_name(path).split(".")
    if not path.endswith("/__init__.py"):
        package = package[:-1]
    # Relative imports count their dots from the installed package: tripod, tripod.ledger, ...
    package = package if package[:1] == ["tripod"] else ["tripod", *package]
    for node in _nodes(text):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, None
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                yield node.lineno, module, alias.name
        elif isinstance(node, ast.Call) and node.args:
            called = node.func.attr if isinstance(node.func, ast.Attribute) else None
            called = node.func.id if isinstance(node.func, ast.Name) else called
            target = node.args[0]
            if called == "import_module" and isinstance(target, ast.Constant):
                yield node.lineno, str(target.value), None


def upward_arrows(path: str, text: str) -> list[str]:
    """Imports of a package that stands above the importing one."""
    room = path.split("/", maxsplit=1)[0]
    above = PACKAGES[PACKAGES.index(room) + 1 :]
    return sorted(
        {
            f"{path}:{line}: {room} imports {module}, which stands above it"
            for line, module, _ in _imports(path, text)
            if module.split(".")[0] in above
        }
    )


def import_graph(files: Mapping[str, str]) -> dict[str, set[str]]:
    """Each module of these files with the others of them that it imports.

    An import of ``ledger.kinds.bus`` is one edge, to that module. Python also runs the faces of
    ``ledger`` and ``ledger.kinds``; an edge to a face is counted only where it is imported itself.
    """
    modules = {module_name(path) for path in files}
    graph: dict[str, set[str]] = {}
    for path, text in files.items():
        name = module_name(path)
        targets = graph.setdefault(name, set())
        for _, module, imported in _imports(path, text):
            inner = f"{module}.{imported}"
            target = inner if imported and inner in modules else module
            if target in modules and target != name:
                targets.add(target)
    return graph


def import_circle(files: Mapping[str, str]) -> list[str]:
    """The modules of one import circle, first and last the same; empty where there is none."""
    try:
        graphlib.TopologicalSorter(import_graph(files)).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def longest_chain(files: Mapping[str, str]) -> list[str]:
    """The modules on one longest path of imports, the importer first.

    Raises:
        graphlib.CycleError: the imports go in a circle.
    """
    graph = import_graph(files)
    chains: dict[str, list[str]] = {}
    for name in graphlib.TopologicalSorter(graph).static_order():
        below = [chains[target] for target in sorted(graph[name])]
        chains[name] = [name, *max(below, key=len, default=[])]
    return max(chains.values(), key=len, default=[])


def edges_a_module(files: Mapping[str, str]) -> float:
    """How many of the other modules a module imports, on average.

    What a lazy face imports for type checkers is not counted: it lists what the package offers, and
    no program loads it (``tripod/face.py``). Circles and chains do count it.
    """
    graph = import_graph({path: _loaded_part(path, text) for path, text in files.items()})
    return sum(map(len, graph.values())) / len(graph)


def _loaded_part(path: str, text: str) -> str:
    """A module as a program loads it, where it is a lazy face; every other module whole."""
    if not _is_face(path) or "tripod.face" not in text:
        return text
    tree = ast.parse(text)
    for node in tree.body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    return ast.unparse(ast.fix_missing_locations(tree))


def shadowing(paths: Iterable[str]) -> list[str]:
    """Test files in a folder that pytest would import in place of the package of that name."""
    folders = tuple(f"tests/{package}/" for package in PACKAGES)
    return [path for path in paths if path.startswith(folders)]


# Shape -----------------------------------------------------------------------------------------


def total_lines(files: Mapping[str, str]) -> int:
    """Lines of all these files."""
    return sum(len(text.splitlines()) for text in files.values())


def _is_face(path: str) -> bool:
    return path.endswith("__init__.py")


def _in_registry(path: str) -> bool:
    return not REGISTRIES.isdisjoint(path.split("/")[:-1])


def crowded_folders(paths: Iterable[str]) -> dict[str, int]:
    """Folders with too many modules, and how many; a package's face is not counted."""
    counts = Counter(
        path.rpartition("/")[0] for path in paths if not _is_face(path) and not _in_registry(path)
    )
    return {folder: count for folder, count in sorted(counts.items()) if count > FOLDER_MODULES}


def is_short(path: str, text: str) -> bool:
    """Whether a module is too short for a file of its own; faces and registries are exempt."""
    exempt = _is_face(path) or _in_registry(path) or path in SHORTER
    return len(text.splitlines()) < SHORT_LINES and not exempt


def wide_classes(path: str, text: str) -> dict[str, int]:
    """Classes with too many attributes as ``path:name``, and how many.

    Counted are annotated fields and what methods assign to ``self``; a ``ClassVar`` is not.
    """
    found = {}
    for node in _nodes(text):
        if isinstance(node, ast.ClassDef):
            count = len(_attributes(node))
            if count > CLASS_ATTRIBUTES and f"{path}:{node.name}" not in WIDER:
                found[f"{path}:{node.name}"] = count
    return found


def _attributes(scope: ast.ClassDef) -> set[str]:
    names = set()
    for node in scope.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            if "ClassVar" not in ast.unparse(node.annotation):
                names.add(node.target.id)
        elif isinstance(node, _Function):
            names |= {
                inner.attr
                for inner in ast.walk(node)
                if isinstance(inner, ast.Attribute)
                and isinstance(inner.ctx, ast.Store)
                and ast.unparse(inner.value) == "self"
            }
    return names


def homonyms(files: Mapping[str, str]) -> dict[str, list[str]]:
    """Public names that several classes share, each with the paths of the classes."""
    places: dict[str, list[str]] = {}
    for path, text in sorted(files.items()):
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(path)
    return {name: paths for name, paths in sorted(places.items()) if len(paths) > 1}


_GLOSSARY_WORD = re.compile(r"^\| \*\*(.+?)\*\* \|", re.MULTILINE)
_PLURALS = {"children": "child"}


def glossary_words(page: str) -> list[str]:
    """The words that the page of the glossary defines, in its order."""
    return _GLOSSARY_WORD.findall(page)


def unlisted_modules(paths: Iterable[str], words: Collection[str]) -> dict[str, str]:
    """Modules whose name is no word of the glossary, in the singular or the plural, each with it.

    A name of several words counts where the glossary has the whole or each part. Faces and the
    modules of registries are exempt: a check's file has the name of its rule.
    """
    found = {}
    for path in paths:
        name = path.rpartition("/")[2].removesuffix(".py")
        if not (_is_face(path) or _in_registry(path)) and not (
            _is_listed(name.replace("_", "-"), words)
            or name.replace("_", " ") in words
            or all(_is_listed(part, words) for part in name.split("_"))
        ):
            found[path] = name
    return found


def _is_listed(name: str, words: Collection[str]) -> bool:
    singular = _PLURALS.get(name) or re.sub(r"(?<=ss)es$|(?<!s)s$", "", re.sub("ies$", "y", name))
    return name in words or singular in words


_OF_DOMAINS = ("/format.py", "/intake.py")
_HELD = re.compile(r"^\| (`[^|]+`) \|", re.MULTILINE)


def modules_without_a_row(page: str, paths: Iterable[str]) -> list[str]:
    """What the last section of the glossary leaves out, names twice, or names and is not there.

    Registries have a row for all of their modules. So have formats and intakes of domains.
    """
    rows: Counter[str] = Counter()
    for room, text in zip(PACKAGES, page.split("\n### ")[-len(PACKAGES) :], strict=True):
        for cell in _HELD.findall(text):
            first, *more = re.findall(r"`([^`]+)`", cell)
            folder = first.rpartition("/")[0]
            rows.update(
                f"{room}/{name}.py" for name in (first, *(f"{folder}/{one}" for one in more))
            )
    faces = {path.replace("/__init__.py", ".py") for path in paths}
    there = {path for path in paths if not (_is_face(path) or _in_registry(path))}
    missing = {path for path in there - rows.keys() if not path.endswith(_OF_DOMAINS)}
    named = {path for path in rows if "<" not in path and "." not in path.removesuffix(".py")}
    gone = {path for path in named - there - faces if not _in_registry(path)}
    twice = {path for path, count in rows.items() if count > 1}
    return [
        *(f"{path}: no row" for path in sorted(missing)),
        *(f"{path}: no such module" for path in sorted(gone)),
        *(f"{path}: two rows" for path in sorted(twice)),
    ]


def lists_its_names(path: str, text: str) -> bool:
    """Whether a module has an ``__all__`` and is not a package's face."""
    return (
        "__all__" in text
        and not _is_face(path)
        and any(
            isinstance(target, ast.Name) and target.id == "__all__"
            for node in ast.parse(text).body
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        )
    )


# SQL on the ledger's own tables ----------------------------------------------------------------

_TABLE = rf"[\"`\[]?\b(?:{'|'.join(OWN_TABLES)})\b"
_OWN_SQL = re.compile(
    rf"\b(?:FROM|JOIN)\s+(?:[\w.]+(?:\s+AS)?(?:\s+\w+)?\s*,\s*)*(?:main\.)?{_TABLE}"
    rf"|\b(?:INTO|UPDATE|TABLE|ON)\s+(?:main\.)?{_TABLE}"
    rf"|\bPRAGMA\s+(?:main\.)?\w+\(\s*{_TABLE}"
)


def foreign_sql(path: str, text: str) -> list[str]:
    """SQL on the ledger's own tables in a module that should ask the store instead.

    The rule looks for a keyword in capitals, as this project writes SQL, and a table's name after
    it in the same string. It does not see a table's name that the program fills in.
    """
    if any(fnmatch(path, pattern) for pattern in SQL_ALLOWED):
        return []
    found = set()
    for line, string in _strings(_nodes(text)):
        if match := _OWN_SQL.search(string):
            found.add((line, " ".join(match[0].split())))
    return [f"{path}:{line}: SQL on a table of the ledger: {sql}" for line, sql in sorted(found)]


def _strings(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Line and text of each string that is no docstring; ``{}`` for what an f-string fills in."""
    skipped = {
        id(statement.value)
        for node in nodes
        if isinstance(node, ast.Module | ast.ClassDef | _Function)
        for statement in node.body
        if isinstance(statement, ast.Expr)
    }
    for node in nodes:
        if id(node) in skipped:
            continue
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in node.values}
            parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
            yield node.lineno, "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


# Documentation and types -----------------------------------------------------------------------


def undocumented(path: str, text: str) -> list[str]:
    """Modules and public things without a docstring, public functions not wholly annotated."""
    tree = ast.parse(text)
    found = [] if ast.get_docstring(tree) else [f"{path}: the module has no docstring"]
    for node in _public(tree):
        magic = node.name.startswith("__")
        if not magic and not ast.get_docstring(node):
            found.append(f"{path}:{node.lineno}: {node.name} has no docstring")
        if isinstance(node, _Function):
            found += [
                f"{path}:{node.lineno}: {node.name} leaves {what} without a type"
                for what in _untyped(node)
            ]
    return found


def _public(scope: ast.Module | ast.ClassDef) -> Iterator[_Function | ast.ClassDef]:
    for node in scope.body:
        if not isinstance(node, _Function | ast.ClassDef):
            continue
        magic = node.name.startswith("__") and node.name.endswith("__")
        if node.name.startswith("_") and not magic:
            continue
        if not (isinstance(node, _Function) and _is_overload(node)):
            yield node
        if isinstance(node, ast.ClassDef):
            yield from _public(node)


def _is_overload(node: _Function) -> bool:
    return any(ast.unparse(decorator).endswith("overload") for decorator in node.decorator_list)


def _untyped(node: _Function) -> list[str]:
    given = node.args
    everything = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    everything += [star for star in (given.vararg, given.kwarg) if star]
    missing = [
        argument.arg
        for argument in everything
        if argument.annotation is None and argument.arg not in {"self", "cls"}
    ]
    return missing if node.returns else [*missing, "its result"]


# Purity ----------------------------------------------------------------------------------------


def is_pure(path: str) -> bool:
    """Whether the rule of purity holds for this file."""
    return any(fnmatch(path, pattern) for pattern in PURE)


def impurities(path: str, text: str) -> list[str]:
    """Imports and calls by which a clock, a disk, a network or randomness could come in."""
    found = []
    for line, module, name in _imports(path, text):
        root = module.split(".")[0]
        if root in _IMPURE_MODULES or name not in _PURE_NAMES.get(root, {name}):
            found.append(f"{path}:{line}: not pure: imports {module}")
    for node in _nodes(text):
        if isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Attribute) and called.attr in _CLOCKS:
                found.append(f"{path}:{node.lineno}: not pure: asks the clock ({called.attr})")
            if isinstance(called, ast.Name) and called.id in _DOORS:
                found.append(f"{path}:{node.lineno}: not pure: calls {called.id}")
    return found


def impure_chains(files: Mapping[str, str]) -> dict[str, str]:
    """Pure modules that import something impure through others, each with a shortest chain.

    A pure module's own imports are judged by ``impurities``.
    """
    graph = import_graph(files)
    paths = {module_name(path): path for path in files}
    faults = cache(lambda name: impurities(paths[name], files[paths[name]]))
    found = {}
    for path in sorted(filter(is_pure, files)):
        start = module_name(path)
        before: dict[str, str] = {start: ""}
        waiting = deque([start])
        while waiting:
            name = waiting.popleft()
            if name != start and faults(name):
                chain = [name]
                while before[chain[0]]:
                    chain.insert(0, before[chain[0]])
                found[path] = f"{' -> '.join(chain)}: {faults(name)[0]}"
                break
            for target in sorted(graph[name] - before.keys()):
                before[target] = name
                waiting.append(target)
    return found


# Words -----------------------------------------------------------------------------------------


# Put together here, so that this file names no registry itself.
_REGISTRIES = tuple(
    f"{name}.{end}"
    for name, end in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("crates", "io"),
        ("rubygems", "org"),
        ("proxy.golang", "org"),
    )
)
_PUT_OFF = "|".join(("TO" + "DO", "FIX" + "ME"))
_ANYWHERE = {
    "a path of one machine": re.compile(r"(?<![\w.\-/])/(?:work|root|farm)" + "/"),
    "a package registry": re.compile("|".join(re.escape(host) for host in _REGISTRIES)),
    "something put off": re.compile(rf"\b(?:{_PUT_OFF})\b"),
}
_IN_PAGES = {"a temporary path": re.compile(r"(?<![\w.\-/])/tmp" + "/")}


def forbidden_words(path: str, text: str) -> list[str]:
    """Lines that name a machine's paths or a registry, or that put something off."""
    rules = _ANYWHERE | _IN_PAGES if path.endswith(".md") else _ANYWHERE
    return [
        f"{path}:{number}: {what}: {line.strip()[:100]}"
        for number, line in enumerate(text.splitlines(), 1)
        for what, pattern in rules.items()
        if pattern.search(line)
    ]


_RIDDLES = {
    "a docstring that depends on its neighbour": re.compile(r'''"""(?:The same|As |See the )'''),
    "a person's pronoun for a program": re.compile(r"\b(?:she|hers?|herself)\b", re.IGNORECASE),
    "a riddle": re.compile(
        r"\bwhat is said (?:then|so)\b|\bsomebody who (?:appends|judges)\b|\bis its maker's word\b"
        r"|\bwould stay; say\b|\bgoes behind an? --(?! or)"
    ),
}
_OLD_WORDS = re.compile(r"\b(?:[Ww]hom|[Ww]hoever|is none|are none|what is said)\b")

PLAIN_ENOUGH = {
    "verify/advice.py": "lists the words of a language, among them pronouns",
    "tripod/cli/bus.py": "prints the help of nbs-bus, whose words are settled",
    "tripod/cli/nbs.py": "prints what nbs-* say, whose words are settled",
}
"""Modules in which the rule against riddles does not look, with the reason."""


def riddles(path: str, text: str) -> list[str]:
    """Lines of a module that are not plain declarative English, as far as a pattern can tell."""
    if path in PLAIN_ENOUGH:
        return []
    return [
        f"{path}:{number}: {what}: {line.strip()[:100]}"
        for number, line in enumerate(text.splitlines(), 1)
        for what, pattern in _RIDDLES.items()
        if pattern.search(line)
    ]


def old_words(files: Mapping[str, str]) -> int:
    """How often words stand in these files that a plain sentence does not need."""
    return sum(len(_OLD_WORDS.findall(text)) for text in files.values())


# Changelog and decisions -----------------------------------------------------------------------

_SECTIONS = frozenset({"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"})
_RELEASE = re.compile(r"\[(\d+\.\d+\.\d+)\] - \d{4}-\d{2}-\d{2}")


def changelog_faults(text: str, version: str) -> list[str]:
    """Where a changelog leaves the form of Keep a Changelog, or misses the version we are at."""
    releases = re.findall(r"^## (.*)$", text, re.MULTILINE)
    found = [] if releases[:1] == ["[Unreleased]"] else ["the first release is not [Unreleased]"]
    found += [f"not a release: {name}" for name in releases[1:] if not _RELEASE.fullmatch(name)]
    sections = re.findall(r"^### (.*)$", text, re.MULTILINE)
    found += [f"not a section: {name}" for name in sections if name not in _SECTIONS]
    released = [match[1] for name in releases if (match := _RELEASE.fullmatch(name))]
    if released and released[0] != version:
        found.append(f"the version is {version}, the newest release is {released[0]}")
    return found


def decision_faults(files: Mapping[str, str]) -> list[str]:
    """Decision records (name and text) that are misnumbered or lack a part of the template."""
    found = []
    for number, (name, text) in enumerate(sorted(files.items())):
        if not re.fullmatch(rf"{number:04}-[a-z0-9-]+\.md", name):
            found.append(f"{name}: expected number {number:04}")
        headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
        if headings != ["Status", "Context", "Decision", "Considered", "Consequences"]:
            found.append(f"{name}: the parts are {headings}")
    return found


# Ceilings --------------------------------------------------------------------------------------


def measured_numbers(files: Mapping[str, str]) -> dict[str, float]:
    """The figures that ``NUMBERS`` in ``ceilings.py`` limits, by the same names."""
    return {
        "modules": len(files),
        "lines": total_lines(files),
        "imports a module": edges_a_module(files),
        "longest import chain": len(longest_chain(files)),
        "whom, whoever, is none": old_words(files),
        "modules with __all__": sum(lists_its_names(path, text) for path, text in files.items()),
    }


def _glossary() -> list[str]:
    return glossary_words((ROOT / "docs/glossary.md").read_text(encoding="utf-8"))


def measured_sets(files: Mapping[str, str]) -> dict[str, Mapping[str, object]]:
    """What breaks a rule, by the name of the table in ``ceilings.py`` that allows it today."""
    wide: dict[str, int] = {}
    sql: dict[str, list[str]] = {}
    for path, text in files.items():
        wide |= wide_classes(path, text)
        if found := foreign_sql(path, text):
            sql[path] = found
    return {
        "CROWDED_FOLDERS": crowded_folders(files),
        "SHORT_MODULES": {
            path: len(text.splitlines()) for path, text in files.items() if is_short(path, text)
        },
        "WIDE_CLASSES": wide,
        "HOMONYMS": homonyms(files),
        "UNLISTED_MODULES": unlisted_modules(files, _glossary()),
        "SQL_ON_THE_LEDGER": sql,
        "IMPURE_CHAINS": impure_chains(files),
    }


def risen(found: Mapping[str, object], allowed: Collection[str]) -> list[str]:
    """A line for each thing that a table does not allow, or not in this number."""
    return [
        f"{name}: {what}"
        for name, what in found.items()
        if name not in allowed or (isinstance(allowed, Mapping) and _how_many(what) > allowed[name])
    ]


def _how_many(what: object) -> int:
    return what if isinstance(what, int) else len(what) if isinstance(what, list) else 1
