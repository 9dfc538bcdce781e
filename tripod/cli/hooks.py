"""``tripod hooks``: heads of the ledger in the commits of the repository around it."""

import os
from contextlib import suppress

from tripod.cli.commands import CommandCall, command_group
from tripod.errors import NoTeamError, RefusedError
from tripod.output import one_line, remark
from tripod.peers.commit import why_no_head
from tripod.peers.hooks import install_hooks, remove_hooks
from tripod.peers.replica import name_team
from tripod.team.access import access_team


def _install(call: CommandCall) -> None:
    here = call.path or os.getcwd()
    if call.remove:
        paths = remove_hooks(here)
        lines = [f"Removed: {one_line(path)}" for path in paths]
        call.answer({"removed": paths}, lines or ["There are no hooks of ours"])
        return
    paths = install_hooks(here)
    with suppress(NoTeamError, RefusedError), access_team(call.path) as team:
        name_team(team)
    lines = [f"Installed: {one_line(path)}" for path in paths]
    call.answer({"installed": paths}, lines)
    without = why_no_head(os.path.abspath(here))
    if without is not None:
        remark(f"commits get no head yet: {without}")


_HOOKS = """\
hooks
    A commit that carries the head of the ledger is a witness of it for everybody who fetches it.

install [PATH]
    Have each commit in the repository of PATH remember the ledger's head.

    The hook commit-msg adds the trailer `Tripod-Head: REPLICA SIZE ROOT SIGNATURE` to the message
    of each commit. The hook post-commit writes the record to the replica's ref. Hooks that the
    repository has already stay, and are called first. The two hooks stop no commit, and print
    nothing unless something is wrong.

    --remove  Remove the two hooks, and put back what was there before.
    without: --team
"""
COMMANDS = {"hooks": command_group(_HOOKS, [_install], {})}
