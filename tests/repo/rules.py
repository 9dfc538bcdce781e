"""The rules of this repository as functions: source text in, complaints out.

Each rule is pure and is tried twice by the tests beside it: on a small offending sample, to show
that it can fail, and on the tree. A complaint is one line, ``place: what is wrong``.
"""

import ast
import graphlib
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("ledger", "projections", "verify", "tripod")
"""The import packages from the bottom up: each may import those before it."""

FUNCTION_LINES = 60
MODULE_LINES = 700

LONGER: dict[str, str] = {}
"""What may be longer, with the reason: ``path`` of a module, or ``path:function``."""

PURE = (
    "ledger/canonical.py",
    "ledger/chain.py",
    "ledger/entry.py",
    "ledger/merkle.py",
    "ledger/note.py",
    "ledger/policy.py",
    "ledger/proof.py",
    "ledger/seal.py",
    "ledger/spelling.py",
    "ledger/tiles.py",
    "ledger/timestamp.py",
    "ledger/vkey.py",
    "ledger/witness.py",
    "projections/formats/*.py",
    "verify/checks/*.py",
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
        "io",
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
        "urllib",
        "uuid",
        "yaml",
        "zoneinfo",
    }
)
_PURE_PATHS = frozenset({"PurePath", "PurePosixPath", "PureWindowsPath"})
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


# Caps ------------------------------------------------------------------------------------------


def over_caps(path: str, text: str) -> list[str]:
    """Modules and functions that are longer than a reader can hold."""
    lines = len(text.splitlines())
    over = lines > MODULE_LINES and path not in LONGER
    found = [f"{path}: {lines} lines, at most {MODULE_LINES}"] if over else []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, _Function):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES and f"{path}:{node.name}" not in LONGER:
                found.append(
                    f"{path}:{node.lineno}: {node.name} has {length} lines, "
                    f"at most {FUNCTION_LINES}"
                )
    return found


# Layers and circles ----------------------------------------------------------------------------


def module_name(path: str) -> str:
    """``ledger/kinds/__init__.py`` is the module ``ledger.kinds``."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _imports(path: str, text: str) -> Iterator[tuple[int, str, str | None]]:
    """Line, module and name of each import, wherever it stands: in functions and guards as well."""
    package = module_name(path).split(".")
    if not path.endswith("/__init__.py"):
        package = package[:-1]
    for node in ast.walk(ast.parse(text)):
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


def import_circle(files: Mapping[str, str]) -> list[str]:
    """The modules of one import circle, first and last the same; empty where there is none."""
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
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def shadowing(paths: Iterable[str]) -> list[str]:
    """Test files in a folder that pytest would import in place of the package of that name."""
    folders = tuple(f"tests/{package}/" for package in PACKAGES)
    return [path for path in paths if path.startswith(folders)]


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
        if root in _IMPURE_MODULES or (root == "pathlib" and name not in _PURE_PATHS):
            found.append(f"{path}:{line}: a pure module imports {module}")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Attribute) and called.attr in _CLOCKS:
                found.append(f"{path}:{node.lineno}: a pure module asks the clock ({called.attr})")
            if isinstance(called, ast.Name) and called.id in _DOORS:
                found.append(f"{path}:{node.lineno}: a pure module calls {called.id}")
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
