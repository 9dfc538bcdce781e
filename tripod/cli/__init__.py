"""The command lines: ``tripod`` and the ``nbs-*`` programs. Errors become exit codes here."""

import sys
from collections.abc import Sequence

from tripod.output import DOORS, FAILURES, collect_less_garbage, leave, remark, report_and_exit_code

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run ``tripod`` and leave with its exit code."""
    collect_less_garbage()
    import click

    from tripod.cli.commands import READ_ONLY_OPTION
    from tripod.cli.tree import cli

    words = list(sys.argv[1:] if arguments is None else arguments)
    first = next((word for word in words if word != READ_ONLY_OPTION), "")
    codes = DOORS.get(first, DOORS[""])
    try:
        result = cli.main(args=words, prog_name="tripod", standalone_mode=False)
        code = result if isinstance(result, int) else 0
    except click.exceptions.Exit as left:
        code = left.exit_code
    except click.UsageError as error:
        context = error.ctx
        hint = f"\n  try `{context.command_path} --help`" if context is not None else ""
        remark(f"{error.format_message()}{hint}")
        code = codes.usage
    except click.Abort:
        remark("stopped")
        code = 130
    except FAILURES as error:
        code = report_and_exit_code(error, codes)
    leave(code, "tripod")
