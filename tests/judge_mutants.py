"""Mutants of the judge, and the cases by which each that makes a false clean is told.

A mutant is the source of a module of the judge with one thing changed: a statement, or all items
that a function gives back, are gone, a condition is always true or never, a part of it does not
count, ``not`` is gone, a number or a text that is added is not.
"""

import ast
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, NamedTuple

from tripod.verify.isolation import batch, children, refusals
from tripod.verify.isolation.globs import NeverRule
from tripod.verify.isolation.phrases import ProtectedText
from tripod.verify.sessions import exposure
from tripod.verify.sessions.items import Channel, Item

MODULES: tuple[ModuleType, ...] = (children, refusals, batch, exposure)
"""What is mutated; the last one imports the others."""


_SECONDS = 10


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Raise TimeoutError in what takes longer: a mutant may do so for ever."""

    def over(number: int, frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class JudgedFile(NamedTuple):
    """What one file's judge was given, in order: each step is a method with its arguments."""

    closed: frozenset[Channel]
    steps: Sequence[tuple[str, tuple[Any, ...]]]


class JudgeCase(NamedTuple):
    """One or several files that are judged, by a rule and protected text."""

    rule: NeverRule | None
    protected: ProtectedText | Sequence[tuple[str, str]]
    files: Sequence[JudgedFile]
    options: tuple[tuple[str, bool], ...] = ()

    def told_by(self, judge: ModuleType) -> tuple[str, ...]:
        """The verdicts of a judge on what was opened, and on what was shown; or its error."""
        with at_most(_SECONDS):
            return self._told_by(judge)

    def _told_by(self, judge: ModuleType) -> tuple[str, ...]:
        read, protected = [], self.protected
        if not isinstance(protected, ProtectedText):
            protected = judge.ProtectedText()
            for path, text in self.protected:  # type: ignore[union-attr]  # by the line above
                protected.add(path, text)
        try:
            for number, file in enumerate(self.files):
                each = list[object]().append if number == len(self.files) - 1 else None
                title = f"f{number}"  # what `each` is told of is kept shortly, in one of them
                one = judge.SessionExposures(self.rule, protected, title, file.closed, each)
                for name, given in file.steps:
                    getattr(one, name)(*given)
                read.append(one)
            options = dict(self.options)
            return tuple(
                judge.judge_exposures(read, Counter(), **options | {"shown_only": shown}).told
                for shown in (False, True)
            )
        except Exception as error:  # noqa: BLE001  a mutant may raise anything
            return (type(error).__name__,)


def case_of(
    items: Sequence[Item],
    *,
    never: str | None = "chat/**",
    protect: Sequence[tuple[str, str]] = (),
    **options: bool,
) -> JudgeCase:
    """A case of one file, to its end."""
    steps = [*(("add", (item,)) for item in items), ("end", ())]
    file = JudgedFile(frozenset(("instructions", "home")), steps)
    return JudgeCase(NeverRule([never]) if never else None, protect, [file], (*options.items(),))


class Mutant(NamedTuple):
    """A changed module: what was changed at which lines, and its whole source."""

    module: ModuleType
    function: str
    lines: range
    kind: str
    before: str
    source: str

    @property
    def name(self) -> str:
        """Words for it, without a number of a line: these change."""
        return f"{self.function}: {self.kind}: {self.before}"


def mutants_of(module: ModuleType) -> Iterator[Mutant]:
    """Every mutant of the functions of a module."""
    text = Path(module.__file__ or "").read_text(encoding="utf-8")
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    data = text.encode()
    for function, node in _functions(ast.parse(text)):
        for inner, kind, new in _changes(node):
            at = starts[inner.lineno - 1] + inner.col_offset
            end = starts[inner.end_lineno - 1] + inner.end_col_offset
            source = (data[:at] + new.encode() + data[end:]).decode()
            before = " ".join(data[at:end].decode().split())
            first = max(inner.lineno, node.body[0].end_lineno or 0)  # a default: from the body on
            last = inner.end_lineno if inner.lineno == first else node.end_lineno or first
            lines = range(first, last + 1)
            yield Mutant(module, function, lines, kind, before, source)


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from (
                (f"{node.name}.{one.name}", one)
                for one in node.body
                if isinstance(one, ast.FunctionDef)
            )


def _changes(function: ast.FunctionDef) -> Iterator[tuple[Any, str, str]]:
    gives = function.returns is not None and ast.unparse(function.returns).startswith("Iterable[")
    for node in ast.walk(function):
        if isinstance(node, ast.If | ast.IfExp | ast.While):
            yield node.test, "never", "False"
            if not isinstance(node, ast.While):
                yield node.test, "always", "True"
        elif isinstance(node, ast.comprehension):
            for test in node.ifs:
                yield test, "never", "False"
                yield test, "always", "True"
        elif isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant):
            is_yield = isinstance(node.value, ast.Yield | ast.YieldFrom)
            yield node, "gone", "yield from ()" if is_yield else "pass"
        elif isinstance(node, ast.AugAssign):
            yield node, "gone", "pass"
        elif gives and isinstance(node, ast.Return) and ast.unparse(node) != "return ()":
            yield node, "gone", "return ()"
        elif gives and isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "found":
            yield node, "gone", "found = ()"
        elif isinstance(node, ast.BoolOp):
            neutral = "True" if isinstance(node.op, ast.And) else "False"
            for value in node.values:
                yield value, "does not count", neutral
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield node, "without not", f"({ast.unparse(node.operand)})"
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield node, "reversed", str(not node.value)


@contextmanager
def judge_of(mutant: Mutant) -> Iterator[ModuleType]:
    """The judge with a mutant in the place of what it is of."""
    changed = module_of(mutant.module, mutant.source)
    if mutant.module is exposure:
        yield changed
    else:
        name = mutant.module.__name__
        before = sys.modules[name]
        sys.modules[name] = changed
        try:
            whole = module_of(exposure, Path(exposure.__file__ or "").read_text(encoding="utf-8"))
        finally:
            sys.modules[name] = before
        yield whole


def module_of(of: ModuleType, source: str) -> ModuleType:
    """A module of another source, under another name."""
    name = f"{of.__name__}_mutant"
    made = ModuleType(name)
    made.__dict__["__file__"] = of.__file__
    sys.modules[name] = made  # where a dataclass looks for its own module
    try:
        exec(compile(source, str(of.__file__), "exec"), made.__dict__)  # noqa: S102  our own source
    finally:
        del sys.modules[name]
    return made


def lines_of(run: Callable[[], object]) -> set[tuple[str, int]]:
    """The lines of the modules of the judge that something runs through."""
    files = {str(module.__file__) for module in MODULES}
    seen = set[tuple[str, int]]()

    def each(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename not in files:
            return None
        if event == "line":
            seen.add((frame.f_code.co_filename, frame.f_lineno))
        return each

    before = sys.gettrace()
    sys.settrace(each)
    try:
        run()
    finally:
        sys.settrace(before)
    return seen


def survivors(cases: Sequence[JudgeCase], mutants: Sequence[Mutant]) -> list[Mutant]:
    """The mutants of which no case tells: each of them gives every verdict as it was."""
    whole = [case.told_by(exposure) for case in cases]
    touched: dict[tuple[str, int], list[int]] = {}
    for number, case in enumerate(cases):
        for line in lines_of(partial(case.told_by, exposure)):
            touched.setdefault(line, []).append(number)
    found = []
    for mutant in mutants:
        file = str(mutant.module.__file__)
        numbers = {n for line in mutant.lines for n in touched.get((file, line), ())}
        ordered = sorted(numbers, key=lambda n: ("clean" in whole[n], n))
        with judge_of(mutant) as judge:
            if all(cases[number].told_by(judge) == whole[number] for number in ordered):
                found.append(mutant)
    return found


class CaseRecorder:
    """A plugin of pytest: it keeps what tests have judged, each case once."""

    def __init__(self) -> None:
        self.cases: dict[str, JudgeCase] = {}
        self._steps: dict[int, tuple[Any, JudgedFile, list[Any]]] = {}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Keep what is judged meanwhile; whoever takes the names of the judge does it within."""
        one, judge = exposure.SessionExposures, exposure.judge_exposures
        start, methods = (
            one.__init__,
            {name: getattr(one, name) for name in ("add", "end", "close")},
        )

        def started(self: Any, *given: Any, **named: Any) -> None:
            start(self, *given, **named)
            if type(self) is one:
                steps: list[Any] = []
                recorder._steps[id(self)] = self, JudgedFile(self.closed, steps), steps

        def step(name: str) -> Callable[..., None]:
            def done(self: Any, *given: Any) -> None:
                known = recorder._steps.get(id(self))
                if known is not None:
                    known[2].append((name, given))
                methods[name](self, *given)

            return done

        def judged(read: Sequence[Any], counted: Any, **options: bool) -> Any:
            files = [recorder._steps.get(id(each)) for each in read]
            if read and None not in files:
                rule, protected = read[0].rule, read[0].protected
                kept = [JudgedFile(each[1].closed, [*each[2]]) for each in files if each]
                case = JudgeCase(rule, protected, kept, (*options.items(),))
                with suppress(RecursionError):  # what is nested so deep is a case of the readers
                    key = repr((kept, options, rule and vars(rule), protected.paths))
                    recorder.cases.setdefault(key, case)
            return judge(read, counted, **options)

        recorder = self
        changed = {"__init__": started, **{name: step(name) for name in methods}}
        for name, new in changed.items():
            setattr(one, name, new)
        exposure.judge_exposures = judged
        try:
            yield
        finally:
            one.__init__ = start  # type: ignore[method-assign]
            for name, old in methods.items():
                setattr(one, name, old)
            exposure.judge_exposures = judge

    def pytest_runtest_teardown(self) -> None:
        """Forget the judges of a test that has ended."""
        self._steps.clear()


TESTED = (
    "answers ways_around children channels powershell exposure labelled judge_cases rollouts"
    " reader_shapes words shell database_rows"
)
"""Tests whose cases the campaign takes."""

_LONG = 200  # items of a case; longer ones, real sessions, take too much time
MOST_SURVIVORS = 249
"""Mutants that no case tells, each looked at: none makes a false clean.

They change words, the order of what is found, how much is remembered, which process does a part of
the work, or make more doubt. A change of the judge that leaves more of them needs a case, or that
somebody looks.
"""


def main() -> int:
    """Run these tests, and then every mutant through all that they judged: some minutes."""
    import pytest

    recorder, folder = CaseRecorder(), Path(__file__).parent / "core/sessions"
    files = [str(folder / f"test_{name}.py") for name in TESTED.split()]
    with recorder.watching():
        code = pytest.main(["-q", "-n0", "-p", "no:cacheprovider", *files], plugins=[recorder])
    cases = [
        case for case in recorder.cases.values() if sum(len(f.steps) for f in case.files) < 200
    ]
    mutants = [one for module in MODULES for one in mutants_of(module)]
    left = survivors(cases, mutants)
    for one in left:
        print(f"{one.module.__name__}:{one.lines[0]}: {one.name}")  # noqa: T201
    print(f"{len(cases)} cases, {len(mutants)} mutants, {len(left)} survive")  # noqa: T201
    return int(code) or len(left) > MOST_SURVIVORS


if __name__ == "__main__":
    sys.exit(main())
