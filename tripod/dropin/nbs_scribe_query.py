"""``nbs-scribe-query``: entries of the decision log, as they stand there (spec: nbs-compat B11).

Where it differs from the original, and why: ``docs/reference/nbs-scribe.md``.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence

from tripod.decisions import read as decisions_read
from tripod.decisions.read import Standing
from tripod.doors import DOORS
from tripod.dropin.common import chat_path, known_in, leave, may_have_ledger, team_of
from tripod.dropin.decisions import meet_log
from tripod.dropin.words import Words, asks_for_help, option_number, take_apart
from tripod.errors import BadArgumentError, NotFoundError
from tripod.ledger.locator import home_of, named
from tripod.ledger.places import LOGS as SCRIBE
from tripod.output import emit, remark
from tripod.projections import LOG
from tripod.projections.chat.format import parse_archive_name
from tripod.projections.decisions.format import valid_id
from tripod.projections.decisions.tables import LIVE
from tripod.team.team import Team

SHORT = "nbs-scribe-query --chat=FILE (PATTERN [--regex] | --id=D-N | --last=N | ...)"
USAGE = """\
Usage: nbs-scribe-query --chat=FILE, and one of
  PATTERN [--regex]   entries in which the text stands, or that the regular expression fits
  --id=D-N            the decision of that id
  --last=N            the newest N decisions
  --by=HANDLE         decisions in which HANDLE took part
  --tag=TAG           decisions with the risk tag
  --superseded        entries that took the place of another, and those that are superseded
  --count             how many decisions there are
FILE is a chat of the team (.nbs/chat/live.chat); its log is .nbs/scribe/live-log.md, with its
archives. Where no log is named so, it is the team's log.md, or all that there are.
exit codes: 0 ok, 1 no match or another error, 4 bad arguments, or there is no log"""
MAX_LAST = 2**31 - 1
_OPTIONS = ("chat", "id", "last", "by", "tag")
_FLAGS = ("regex", "count", "superseded")


def main() -> None:
    """Run the command, and leave with its exit code."""
    leave(_run, DOORS["nbs-scribe-query"])


def _run(arguments: Sequence[str]) -> int:
    if asks_for_help(arguments) or not arguments:
        sys.stderr.write(f"{USAGE}\n")
        return DOORS["nbs-scribe-query"].usage if not arguments else 0
    words = take_apart(arguments, SHORT, texts=(0, 1), options=_OPTIONS, flags=_FLAGS)
    which = _which(words)
    fits, last = _fits(words, which), option_number(words, "last", 1, MAX_LAST, SHORT)
    folder = _folder(words.options["chat"])
    there = os.path.lexists(chat_path(words.options["chat"]))
    with team_of("chat", folder, meet=there) as team:
        team.refresh()
        logs = _logs(team, words.options["chat"], os.path.dirname(folder))
        if which == "count":
            emit([str(sum(decisions_read.count(team, log) for log in logs))])
            return 0
        found = [one for one in decisions_read.standing(team, last, logs) if fits(one)]
        emit(_shown(found, named=which not in ("id", "last") and _has_archives(team, logs)))
    if not found:
        remark("no decision fits")
    return 0 if found else 1


def _folder(chat: str) -> str:
    """The folder of a chat, by whose side the team is; a link to the chat is the chat.

    Raises:
        NotFoundError: neither the chat nor a ledger is there: it is nobody's.
    """
    full = chat_path(chat)
    folder = os.path.dirname(full)
    around = os.path.dirname(folder)
    is_team = may_have_ledger(folder) and (named() is not None or home_of(folder) == around)
    strange = os.path.isdir(folder) and not os.path.lexists(full) and not is_team
    if strange and not _has_log(os.path.join(os.path.dirname(folder), SCRIBE)):
        raise NotFoundError(
            f"no chat {full}, and no decision log of its team: give the path of the right one"
        )
    return folder


def _has_log(folder: str) -> bool:
    """Whether a file in the folder has a log's name."""
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    return any(name.endswith(LIVE) and os.path.isfile(f"{folder}/{name}") for name in names)


def _which(words: Words) -> str:
    """The one thing that is asked for; ``text`` for a pattern."""
    if not words.options.get("chat", "").endswith(".chat"):
        message = "--chat=FILE is missing, or names no chat (its file ends in .chat)"
        raise BadArgumentError(f"{message}\n  Usage: {SHORT}")
    asked = [*words.options.keys() - {"chat"}, *words.flags - {"regex"}]
    asked += ["text"] if words.texts else []
    if len(asked) != 1:
        names = ", ".join(sorted(asked)) or "nothing"
        raise BadArgumentError(f"one question at a time, not {names}\n  Usage: {SHORT}")
    if "regex" in words.flags and asked != ["text"]:
        raise BadArgumentError(f"--regex says what PATTERN is; give one\n  Usage: {SHORT}")
    return asked[0]


def _fits(words: Words, which: str) -> Callable[[Standing], bool]:
    """What tells whether a decision is one that is asked for."""
    if which == "id":
        value = words.options[which]
        problem = valid_id(value)
        if problem is not None:
            raise BadArgumentError(f"--id: {problem}")
        return lambda one: one.decision.id == value
    if which in ("by", "tag"):
        value = words.options[which]
        if not value:
            raise BadArgumentError(f"--{which}: empty; say which, or leave it out")
        filters = (
            decisions_read.Filters(by=value) if which == "by" else decisions_read.Filters(tag=value)
        )
        return lambda one: filters.fit(one.decision)
    if which == "superseded":
        return lambda one: (
            one.decision.supersedes is not None or one.decision.stands == "superseded"
        )
    if which == "text":
        return _pattern(words.texts[0], regex="regex" in words.flags)
    return lambda _: True


def _pattern(text: str, *, regex: bool) -> Callable[[Standing], bool]:
    if not regex:
        folded = text.casefold()
        return lambda one: folded in one.text.casefold()
    try:
        wanted = re.compile(text, re.IGNORECASE | re.MULTILINE)
    except (re.error, OverflowError, RecursionError) as error:
        raise BadArgumentError(f"{text!r} is no regular expression: {error}") from error
    return lambda one: wanted.search(one.text) is not None


def _logs(team: Team, chat: str, around: str) -> list[str]:
    """The logs of a chat, as the original finds them: its own, and that of the chat ``live``.

    They are in the folder ``scribe`` beside the chat's, in ``around``. A team whose logs are not
    named after its chats has them for each chat.

    Raises:
        NotFoundError: there is no log.
    """
    stem = os.path.basename(chat).removesuffix(".chat")
    split = parse_archive_name(stem)
    beside = os.path.join(around, SCRIBE)
    names = list(dict.fromkeys((f"{split[0] if split else stem}-{LIVE}", f"live-{LIVE}")))
    for name in names:
        if os.path.isfile(os.path.join(beside, name)):
            meet_log(team, os.path.join(beside, name))
    logs = LOG.live(team.source)
    front = known_in(team, SCRIBE, beside) or ""
    own = [log for log in (front + name for name in names) if log in logs]
    own = own or [log for log in names if log in logs]
    if not logs:
        decisions_read.count(team)
    return list(dict.fromkeys(own)) or ([LIVE] if LIVE in logs else logs)


def _has_archives(team: Team, logs: Sequence[str]) -> bool:
    sql = "SELECT count(*) FROM logs WHERE log IN (SELECT value FROM json_each(?))"
    return int(team.store.db.execute(sql, (json.dumps(logs),)).fetchone()[0]) > 1


def _shown(found: Sequence[Standing], *, named: bool) -> Iterator[str]:
    """The entries with a blank line between; in front of those of a file its name."""
    before = ""
    for number, one in enumerate(found):
        if number:
            yield ""
        if named and one.file != before:
            yield f"[{one.file}]"
        before = one.file
        yield one.text
        if one.decision.by is not None:
            yield f"[{one.decision.stands} by {one.decision.by}]"
