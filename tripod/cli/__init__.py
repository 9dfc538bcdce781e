"""The command lines: ``tripod`` and the ``nbs-*`` programs. Errors become exit codes here."""

import sys
from collections.abc import Sequence

from tripod.output import (
    DOORS,
    FAILURES,
    Codes,
    cleaned_up_on_sigterm,
    collect_less_garbage,
    leave,
    remark,
    report_and_exit_code,
)

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run ``tripod`` and leave with its exit code."""
    collect_less_garbage()
    from tripod.cli.commands import READ_ONLY_OPTION

    words = list(sys.argv[1:] if arguments is None else arguments)
    first = next((word for word in words if word != READ_ONLY_OPTION), "")
    codes = DOORS.get(first, DOORS[""])
    # The groups of short commands make no scratch folder, and would import ``signal`` for nothing.
    # A reviewer's program goes on where `tripod pythia` is ended; an exception would end it, too.
    if first in DOORS or first == "pythia":
        code = _run(words, codes)
    else:
        with cleaned_up_on_sigterm():
            code = _run(words, codes)
    leave(code, "tripod")


def _run(words: Sequence[str], codes: Codes) -> int:
    from tripod.cli.arguments import read_tripod_call

    try:
        call = read_tripod_call(words)
        return _run_by_click(words, codes) if call is None else call.run() or 0
    except (EOFError, KeyboardInterrupt):
        if sys.stderr is not None:
            sys.stderr.write("\n")  # behind the ^C that the terminal shows; click does so, too
        remark("stopped")
        return 130
    except FAILURES as error:
        return report_and_exit_code(error, codes)


def _run_by_click(words: Sequence[str], codes: Codes) -> int:
    import click

    from tripod.cli.tree import cli

    try:
        result = cli.main(args=words, prog_name="tripod", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as left:
        return left.exit_code
    except click.UsageError as error:
        context = error.ctx
        hint = f"\n  try `{context.command_path} --help`" if context is not None else ""
        remark(f"{error.format_message()}{hint}")
        return codes.usage
    except click.Abort:
        remark("stopped")
        return 130
