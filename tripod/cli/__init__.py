"""The command ``tripod``: thin doors to the acts. Errors become exit codes here, nowhere else."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from tripod.cli.door import LazyGroup
from tripod.doors import DOORS, FAILURES, end_at_once, report
from tripod.output import remark

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(
    cls=LazyGroup,
    context_settings=SETTINGS,
    commands_at={
        "init": "tripod.cli.team:init",
        "bus": "tripod.cli.bus:bus",
        "chat": "tripod.cli.chat:chat",
        "scribe": "tripod.cli.scribe:scribe",
        "worker": "tripod.cli.worker:worker",
        "pythia": "tripod.cli.pythia:pythia",
        "show": "tripod.cli.show:show",
        "sync": "tripod.cli.team:sync",
        "rebuild": "tripod.cli.team:rebuild",
        "verify": "tripod.cli.verify:verify",
        "doctor": "tripod.cli.doctor:doctor",
        "key": "tripod.cli.trust:key",
        "seal": "tripod.cli.trust:seal",
        "actor": "tripod.cli.actor:actor",
        "anchor": "tripod.cli.anchor:anchor",
        "witness": "tripod.cli.witness:witness",
        "backup": "tripod.cli.backup:backup",
        "restore": "tripod.cli.backup:restore",
        "prove": "tripod.cli.export:prove",
        "export": "tripod.cli.export:export",
        "redact": "tripod.cli.redact:redact",
        "demo": "tripod.cli.demo:demo",
    },
)
@click.version_option(package_name="tripod-ledger", prog_name="tripod")
def cli() -> None:
    """Keep one tamper-evident ledger of what a team of agents does, and prove its rules."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code."""
    end_at_once()
    words = list(sys.argv[1:] if arguments is None else arguments)
    codes = DOORS.get(words[0] if words else "", DOORS[""])
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
        code = report(error, codes)
    sys.exit(code)
