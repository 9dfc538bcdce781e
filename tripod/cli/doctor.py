"""``tripod doctor``: what is wrong with a team directory, and ``--fix``."""

from __future__ import annotations

import os
from collections.abc import Iterable

import click

from tripod.cli.door import team_option
from tripod.cli.progress import shown
from tripod.errors import BadArgumentError
from tripod.ledger.locator import subject
from tripod.output import emit, emit_json, one_line, remark
from tripod.recovery.doctor import Trouble
from tripod.team.open import readable


@click.command()
@team_option
@click.option("--fix", is_flag=True, help="Do what is said to be done; evidence is never touched.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_context
def doctor(ctx: click.Context, *, team_path: str | None, fix: bool, as_json: bool) -> None:
    """Say what is wrong with a team directory, and what --fix or a person would do about it.

    Exit codes: 0 nothing is wrong, or all was mended; 1 something is, 2 usage, 3 could not judge.
    """
    from tripod.recovery.doctor import examine, mend

    path = _subject(team_path)
    with readable(path), shown(quiet=as_json):
        before = examine(path)
        after = mend(before) if fix else before
    still = {(one.name, one.where) for one in after.troubles}
    mended = [one for one in before.troubles if (one.name, one.where) not in still]
    if as_json:
        left = [one._asdict() for one in after.troubles]
        emit_json(
            [
                {
                    "root": after.root,
                    "problem": after.problem,
                    "mended": [one._asdict() for one in mended],
                    "troubles": left,
                }
            ]
        )
    else:
        emit(_lines("mended", mended))
        emit(_lines("", after.troubles))
        if after.problem:
            remark(f"cannot judge: {after.problem}")
        elif not after.troubles:
            emit(["Nothing is wrong" if not mended else "Nothing is wrong any more"])
        else:
            emit([_sum(after.troubles, fix=fix)])
    ctx.exit(3 if after.problem else 1 if after.troubles else 0)


def _subject(given: str | None) -> str:
    """The directory to look at; where there is no ledger, that is for the doctor to say."""
    if given is not None and not os.path.isdir(given):
        raise BadArgumentError(
            f"--team: {given!r} is no folder: give the project or its team directory"
        )
    return os.path.abspath(subject(given))


def _lines(front: str, troubles: Iterable[Trouble]) -> Iterable[str]:
    for one in troubles:
        words = [front] if front else []
        words += [one_line(one.where), one.name, one_line(one.what)]
        yield ": ".join(words)
        if not front:
            who = "--fix" if one.mends else "you"
            yield f"  {who}: {one_line(one.cure)}"


def _sum(troubles: tuple[Trouble, ...], *, fix: bool) -> str:
    count, mends = len(troubles), sum(bool(one.mends) for one in troubles)
    words = f"{count} thing{'' if count == 1 else 's'} wrong"
    stops = next((one for one in troubles if one.stops), None)
    if stops is not None:
        return f"{words}; nothing is mended as long as there is {stops.name}"
    if fix:
        return f"{words}, left for you"
    return f"{words}, of which --fix mends {mends}"
