"""How commands speak and end: result on stdout, remarks on stderr, progress, exit codes.

Nothing hostile reaches a terminal. Long work shows its progress in one line at a terminal, and
nothing in a pipe or a file.
"""

import atexit
import gc
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, NoReturn, TextIO

from tripod import errors
from tripod.errors import TripodError
from tripod.ledger.progress import progress_to

if TYPE_CHECKING:
    from typing import Protocol, TypeVar

    from tripod.ledger import LedgerReader

    class _Entered(Protocol):
        @property
        def seq(self) -> int: ...

    T = TypeVar("T", bound=_Entered)


LINES = 500  # printed at once

# C0 but tab and newline, DEL, C1, and what changes the direction or the lines of a text or is
# not seen. The joiners U+200C and U+200D stay: they belong to the spelling of languages and emoji.
UNSAFE = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def safe(text: str) -> str:
    r"""Show control bytes and direction marks as escapes instead of sending them to a terminal.

    >>> safe("red \x1b[31malert")
    'red \\x1b[31malert'
    """
    # The pattern takes longer to compile than a short command has for its whole answer.
    if text.replace("\n", "").isprintable():
        return text
    return re.sub(UNSAFE, lambda found: escape_unsafe(found[0]), text)


def one_line(text: str) -> str:
    r"""Keep a strange name on its line: ``safe``, and no line break either.

    >>> one_line("a\nb")
    'a\\x0ab'
    """
    return safe(text).replace("\n", "\\x0a")


def hanging(text: str) -> str:
    r"""Indent what follows the first line, so that a text cannot pass for the next item.

    >>> hanging("yes\n[2026-11-21T20:57:55Z] boss: no")
    'yes\n    [2026-11-21T20:57:55Z] boss: no'
    """
    return text.replace("\n", "\n    ")


def escape_unsafe(sign: str) -> str:
    """The code of a character, as ``safe`` shows it."""
    code = ord(sign)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def emit(lines: Iterable[str]) -> None:
    """Print lines, made safe, a few hundred a write: a reader sees the first at once."""
    rest = iter(lines)
    while chunk := list(islice(rest, LINES)):
        _write(safe("".join([f"{line}\n" for line in chunk])).encode())


def emit_bytes(data: bytes) -> None:
    """Print a file's bytes: exactly into a pipe, made safe on a terminal."""
    if sys.stdout is not None and sys.stdout.isatty():
        data = safe(data.decode("utf-8", "replace")).encode()
    _write(data)


def emit_json(values: Iterable[object]) -> None:
    """Print JSON, one value a line, in ASCII."""
    emit(json.dumps(value, sort_keys=True) for value in values)


def emit_pretty(value: object) -> None:
    """Print one JSON value for people; what is unsafe stands there as JSON escapes it."""

    def escape(match: re.Match[str]) -> str:
        return json.dumps(match[0])[1:-1]

    text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)
    _write(re.sub(UNSAFE, escape, text + "\n").encode())


def emit_report(text: str) -> None:
    """Print what a reporter made: it has made its quotations safe, and may have coloured them."""
    _write(text.encode())


def _write(data: bytes) -> None:
    """Write to stdout, as UTF-8 whatever the locale is: our files are.

    Raises TripodError where the disk or the reader refused (the act itself is done), SystemExit
    where the reader has seen enough (141, as a shell says it of SIGPIPE).
    """
    out: TextIO | None = sys.stdout
    if out is None:
        raise _lost("closed")
    try:
        out.flush()
        if out.isatty():
            # A terminal is told what it can show.
            out.write(data.decode().encode(out.encoding, "backslashreplace").decode(out.encoding))
        else:
            out.buffer.write(data)
        out.flush()
    except BrokenPipeError:
        silence_output(out)
        sys.exit(141)
    except OSError as error:
        silence_output(out)
        raise _lost(error.strerror or str(error)) from error


@contextmanager
def paged_output(*, wanted: bool = True) -> Iterator[Callable[[str], None]]:
    """Give what prints text: to the user's pager where stdout is a terminal, else to stdout.

    Where the pager is left before the end, the work inside ends without an error.
    """
    out, words = sys.stdout, []
    if wanted and out is not None and out.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        import shlex

        chosen = os.environ.get("TRIPOD_PAGER", os.environ.get("PAGER", "less"))
        with suppress(ValueError):  # a quotation that is not closed: no pager
            words = shlex.split(chosen)
    if not words or words == ["cat"]:
        yield emit_report
        return
    import subprocess

    environment = {"LESS": "FRSX", **os.environ}  # one screen is not paged, long lines are cut
    try:
        pager = subprocess.Popen(words, stdin=subprocess.PIPE, env=environment)
    except OSError:  # it is not installed
        yield emit_report
        return
    with pager:
        assert pager.stdin is not None
        to = pager.stdin

        def write(text: str) -> None:
            to.write(text.encode())
            to.flush()

        with suppress(BrokenPipeError, KeyboardInterrupt):
            yield write
        with suppress(BrokenPipeError):
            to.close()
        while pager.poll() is None:
            with suppress(KeyboardInterrupt):  # a key of the pager, as with git
                pager.wait()


def _lost(reason: str) -> TripodError:
    return TripodError(
        f"standard output: {reason}; the answer is lost, what was recorded stays recorded "
        "(`tripod show` lists it)"
    )


def silence_output(out: TextIO) -> None:
    """Let the interpreter's own last flush go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())


def remark(text: str) -> None:
    """Say something beside the result; where nobody can hear it, it is no error."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(safe(f"tripod: {text}\n"))
        sys.stderr.flush()
    except OSError:
        silence_output(sys.stderr)


def format_utc(seconds: int) -> str:
    """Write epoch seconds as ``2026-11-21T20:57:55Z``."""
    from tripod.projections.bus.format import format_time

    return format_time(seconds * 1_000_000)


# Marks -----------------------------------------------------------------------------------------


def entry_marks(ledger: "LedgerReader", seqs: Sequence[int]) -> dict[int, str]:
    """The marks of entries by their numbers: ``observed``, ``signed``, ``peer ...`` or ''."""
    from tripod.ledger import MERGED, codec, entry_mark

    marks = {}
    for entry in ledger.raw_of(seqs):
        body, observed = entry.body, False
        if entry.kind == MERGED:
            marks[entry.seq] = _peer_mark(ledger, entry.seq, body)
            continue
        if body is None:  # it was erased: the redaction keeps where it was read
            read = ledger.entry(entry.seq)
            observed = read is not None and "observed" in read.data
        elif b'"observed":' in body:  # few bodies have it: the others need not be decoded
            observed = "observed" in codec.loads(body)
        marks[entry.seq] = entry_mark(observed=observed, signed=entry.auth is not None)
    return marks


def _peer_mark(ledger: "LedgerReader", seq: int, body: bytes | None) -> str:
    from tripod.ledger import codec
    from tripod.ledger.kinds.merged import peer_mark

    if body is not None:
        return peer_mark(codec.loads(body), ledger.blob)
    read = ledger.entry(seq)  # it was erased: the redaction keeps its header
    return peer_mark(read.data, ledger.blob) if read is not None and read.data else "peer"


def each_mark(ledger: "LedgerReader", found: "Iterable[T]") -> "Iterator[tuple[T, str]]":
    """Whatever has the number of its entry as ``seq``, with its mark, a few hundred a request."""
    rest = iter(found)
    while chunk := list(islice(rest, LINES)):
        marks = entry_marks(ledger, [one.seq for one in chunk])
        yield from ((one, marks[one.seq]) for one in chunk)


# Progress --------------------------------------------------------------------------------------


DELAY = 1.0  # seconds of silence: what is done by then needs no line
_EVERY = 0.1  # seconds between two looks of the line
_COLUMNS = 80  # where the terminal does not say


@contextmanager
def progress_shown(*, quiet: bool = False) -> Iterator[None]:
    """Show on stderr what the work inside is at, if that is a terminal, and clear it at the end.

    The line is written over in place, by a carriage return, and never goes beyond its width.
    ``quiet``: say nothing in any case, since machine output was asked for.
    """
    out = sys.stderr
    if quiet or out is None or not out.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    due, drawn = time.monotonic() + DELAY, 0

    def draw(text: str, end: str = "") -> None:
        nonlocal drawn
        try:
            columns = os.get_terminal_size(out.fileno()).columns
        except (OSError, ValueError):
            columns = 0
        room = max(1, (columns or _COLUMNS) - 1)  # in the last column some terminals break the line
        text = text[:room]
        # What stood there before is covered with spaces, as far as the line still reaches.
        with suppress(OSError, ValueError):  # nobody looks any more; the work goes on
            out.write(f"\r{text.ljust(min(drawn, room))}{end}")
            out.flush()
            drawn = len(text)

    def tell(what: str, done: int, of: int) -> None:
        nonlocal due
        now = time.monotonic()
        if now >= due:
            due = now + _EVERY
            how_far = f" {100 * done // of} %" if of else f" {done:,}" if done else ""
            draw(f"{what}{how_far}")

    try:
        with progress_to(tell):
            yield
    finally:
        if drawn:
            draw("", end="\r")


# Exit codes ------------------------------------------------------------------------------------


FAILURES = (errors.TripodError, OSError)
"""What a command may end with: ``report_and_exit_code`` says it."""


class Codes(NamedTuple):
    """Exit codes of a door; every number is in its documentation."""

    general: int
    no_team: int
    not_found: int
    bad_argument: int
    duplicate: int
    damaged: int
    usage: int
    malformed: int


DOORS: dict[str, Codes] = {
    "bus": Codes(1, 2, 3, 4, 5, 1, 4, 4),
    "chat": Codes(1, 2, 2, 4, 1, 1, 4, 4),
    "scribe": Codes(1, 2, 2, 1, 1, 1, 1, 3),
    "worker": Codes(1, 2, 2, 4, 1, 1, 4, 4),
    "": Codes(1, 1, 1, 2, 1, 3, 2, 2),
    "nbs-scribe-log": Codes(1, 1, 1, 4, 1, 1, 4, 4),
    "nbs-scribe-query": Codes(1, 4, 4, 4, 1, 1, 4, 4),
}
"""By the door's name: a command of ``tripod``, or a drop-in whose codes are its own.

'' stands for all other verbs of ``tripod``.
"""


def collect_less_garbage() -> None:
    """Set the collector of reference cycles for a short process; each command calls this first.

    A command's imports make 15,000 objects that stay: 40 looks through them cost 4 to 6 ms of 65.
    A long command still collects.
    """
    gc.set_threshold(20_000, 20, 20)


@contextmanager
def cleaned_up_on_sigterm() -> Iterator[None]:
    """Let SIGTERM end the work inside by an exception, so that its scratch folders are removed.

    Then the process ends by the signal; a second one ends it at once. Nothing is changed outside of
    the main thread, and where a program that calls us handles the signal itself.
    """
    import signal
    from threading import current_thread, main_thread

    if (
        current_thread() is not main_thread()
        or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    ):
        yield
        return
    is_asked = False

    def end(*_: object) -> NoReturn:
        nonlocal is_asked
        is_asked = True
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        raise SystemExit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if is_asked:
            os.kill(os.getpid(), signal.SIGTERM)


def leave(code: int, name: str) -> NoReturn:
    """End the program ``name`` with an exit code; a script that is called so ends at once.

    To take the interpreter apart costs a short command a tenth of its time, and frees what the
    system frees in any case: what must be closed is closed where it was opened. What was registered
    for the end is still done. Who calls a command from a program of their own goes on: it has
    another name, though its first word is its own path, too.
    """
    script = getattr(sys.modules["__main__"], "__file__", None) or ""
    is_ours = script == sys.argv[0] and os.path.basename(script) == name
    threads = sys.modules.get("threading")  # not even imported: this one is alone
    if is_ours and (threads is None or threads.active_count() == 1):
        with suppress(OSError, ValueError):  # the interpreter says what cannot be written
            atexit._run_exitfuncs()  # noqa: SLF001 - nothing public does what was registered
            for stream in (sys.stdout, sys.stderr):  # what was registered may have written, too
                if stream is not None:
                    stream.flush()
            os._exit(code)
    sys.exit(code)


def report_and_exit_code(error: Exception, codes: Codes) -> int:
    """Say why a command ends, and give the exit code; ``error`` is one of ``FAILURES``."""
    if isinstance(error, BrokenPipeError):
        silence_output(sys.stdout)  # who read us has seen enough
        return 141
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        problem = f"{place}{error.strerror or error}"
        try:
            os.getcwd()
        except FileNotFoundError:
            problem = "the current folder was removed: change into one that is there"
        remark(problem)
        return codes.general
    remark(str(error))
    table: tuple[tuple[type[Exception], int], ...] = (
        (errors.MalformedEntryError, codes.malformed),
        (errors.BadArgumentError, codes.bad_argument),
        (errors.TooLargeError, codes.bad_argument),
        (errors.NoTeamError, codes.no_team),
        (errors.NoLedgerError, codes.no_team),
        (errors.NotFoundError, codes.not_found),
        (errors.DuplicateDroppedError, codes.duplicate),
        (errors.LedgerDamagedError, codes.damaged),
        (errors.UnreachableError, codes.damaged),
    )
    return next((code for kind, code in table if isinstance(error, kind)), codes.general)
