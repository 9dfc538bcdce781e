"""Lazy package faces (PEP 562): a public name is imported when a program first asks for it.

Python runs the face of a package, its ``__init__.py``, before any module of the package: a face
that imported its modules would load all of them for every command.

A face states its names twice, and a test compares both with what a program gets: in imports under
``TYPE_CHECKING``, which type checkers and editors follow, and in ``__all__``, which ``lazy`` looks
the names up for. No face may offer a name that one of its modules has: the import system would
replace it by that module (hence ``tripod.chat.send`` lives in ``tripod.chat.writer``).
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # type checkers take the name for true; `import tripod` loads no `typing`
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_ABSENT = object()


def lazy(
    package: str, names: Sequence[str], modules: Sequence[str], packages: Sequence[str] = ()
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Make the functions ``__getattr__`` and ``__dir__`` of a face.

    ``package`` is the dotted name of the face, ``names`` its ``__all__``; ``packages`` are those of
    them that are packages or modules themselves. ``modules``, below the package, are searched in
    their order for the others.
    """

    def find(name: str) -> object:
        from importlib import import_module

        if name in packages:
            return import_module(f"{package}.{name}")
        for module in modules if name in names else ():
            found = getattr(import_module(f"{package}.{module}"), name, _ABSENT)
            if found is not _ABSENT:
                setattr(sys.modules[package], name, found)
                return found
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find, lambda: sorted({*vars(sys.modules[package]), *names})
