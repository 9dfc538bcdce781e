"""``tripod adopt-log``: decisions and messages out of files of other forms."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tripod.chat.writer import adopt_messages
from tripod.cli.commands import CommandCall, command_verb
from tripod.decisions.writer import AdoptedDecisions, adopt_decisions
from tripod.errors import BadArgumentError, MalformedError
from tripod.ledger.files import read_plain_file
from tripod.ledger.locator import FOLDER
from tripod.output import one_line, remark
from tripod.projections.chat.jsonl import FIELDS, FoundMessage, FoundMessages, parse_jsonl_messages
from tripod.projections.decisions import madr
from tripod.projections.decisions.madr_file import written_page

if TYPE_CHECKING:
    from tripod.team.team import Team

_MOST_FILES = 100_000  # of a folder
_NO_TEXT = re.compile("[\ud800-\udfff]")  # how Python shows bytes of a name that are no UTF-8
_MOST_BYTES = 256 * 1024 * 1024  # of a file
_LISTED = 20
_PAGES, _LINES = (".md", ".markdown"), (".jsonl", ".ndjson")
_NUMBERED = r"[0-9]{1,8}[-_. ].*\.(?:md|markdown)$"


_FOLDERS = (
    "docs/decisions", "docs/adr", "docs/adrs", "docs/architecture/decisions", "doc/adr", "adr",
    "adrs", "decisions",
)  # fmt: skip
_AROUND = ("", "docs", "chat", "chats", "logs", FOLDER, f"{FOLDER}/chat", f"{FOLDER}/scribe")
_NAMED = r"(?i)(?:decisions?|decision[-_ ]?logs?|adrs?)\.(?:md|markdown)|.*\.(?:jsonl|ndjson)"
"""Where teams keep decisions and messages, and how such files are called."""
_FEW = 5


def logs_to_adopt(project: str) -> list[str]:
    """Lines on files of decisions and messages around that are of another form than the team's."""
    found = []
    for folder in _FOLDERS:
        numbered = [name for name in _names(project, folder) if re.match(_NUMBERED, name)]
        count = len(numbered)
        if count and not _is_exported(os.path.join(project, folder, numbered[0])):
            found.append((folder, f"{_counted(count, 'file')} of a decision each"))
    for folder in _AROUND:
        for name in _names(project, folder):
            path = os.path.join(folder, name)
            if re.fullmatch(_NAMED, name) is None:
                continue
            what = "JSON lines, for `--channel NAME`"
            if not name.endswith(_LINES):
                files = _Files()
                files.read(os.path.join(project, path), {})
                pages = [*files.pages.values(), []][0]
                what = f"{_counted(len(pages), 'decision')} below headings"
                if files.problems:
                    what = f"not understood: line {files.problems[0].rpartition(name)[2][1:]}"
            found.append((path, what))
    if not found:
        return []
    lines = [f"  {one_line(path)} ({one_line(what)})" for path, what in found[:_FEW]]
    more = len(found) - _FEW
    lines += [f"  and {more} more"] if more > 0 else []
    return ["Of other forms, so not taken in; `tripod adopt-log FILE...` does it:", *lines]


def _is_exported(path: str) -> bool:
    """Whether `tripod decisions export` wrote a file, which a person may have changed since.

    Its decisions are in a ledger, and come with that: by `tripod pull`, not out of the copies.
    """
    try:
        return written_page(read_plain_file(path, madr.MAX_PAGE)) is not None
    except ValueError:
        return True
    except OSError:
        return False


def _names(project: str, folder: str) -> list[str]:
    """The names of the regular files in a folder; empty where it is not there."""
    try:
        with os.scandir(os.path.join(project, folder)) as entries:
            return sorted(one.name for one in entries if one.is_file(follow_symlinks=False))
    except OSError:
        return []


class _Files:
    """What was read of the files that were named, by their full paths; ``problems`` of the rest."""

    def __init__(self) -> None:
        self.pages: dict[str, list[madr.FoundDecision]] = {}
        self.chats: dict[str, FoundMessages] = {}
        self.problems: list[str] = []

    def read(self, full: str, fields: dict[str, str]) -> None:
        """Read a file whole, or say what is wrong with it."""
        shown = one_line(os.path.relpath(full))
        if _NO_TEXT.search(os.path.relpath(full)):
            self.problems.append(f"{shown}: its name is not UTF-8, and entries hold it: rename it")
            return
        try:
            data = read_plain_file(full, _MOST_BYTES)  # a link that a person named is resolved
            if len(data) > _MOST_BYTES:
                self.problems.append(f"{shown}: it has more than {_MOST_BYTES} bytes")
            elif full.endswith(_LINES):
                found = parse_jsonl_messages(data, fields)
                self.problems += [f"{shown}:{line}: {what}" for line, what in found.problems]
                if not found.problems:
                    self.chats[full] = found
            elif madr.is_madr(os.path.basename(full), data):
                self.pages[full] = [madr.parse_madr(os.path.basename(full), data)]
            else:
                self.pages[full] = madr.parse_decision_page(os.path.basename(full), data)
        except MalformedError as error:
            self.problems.append(f"{shown}:{one_line(str(error)).removeprefix('line ')}")
        except OSError as error:
            self.problems.append(f"{shown}: {error.strerror or error}")


def _adopt_log(call: CommandCall) -> int:
    """Take decisions and messages in from files of other forms; each file whole, or not at all."""
    fields, files = _fields(call.map), _Files()
    for full in _named_files(call.file, files.problems):
        files.read(full, fields)
    if files.chats and call.channel is None:
        raise BadArgumentError("--channel NAME: which chat do the messages belong to?")
    with call.fresh() as team, call.progress():
        done, sent = _adopted(call, team, files, dry_run=True)  # or refused, before it is recorded
        if not call.dry_run:
            done, sent = _adopted(call, team, files, dry_run=False)
    value: dict[str, Any] = {"dry_run": call.dry_run, "problems": files.problems}
    value["decisions"] = [
        {"file": path, "id": body["id"], "line": line, "title": body["title"]}
        for path, line, body in done.fresh
    ]
    value["messages"] = {full: len(new) for full, (new, _) in sent.items()}
    call.answer(value, _lines(call, files, done, sent))
    _remarks(files, done)
    return 1 if files.problems else 0


def _adopted(
    call: CommandCall, team: Team, files: _Files, *, dry_run: bool
) -> tuple[AdoptedDecisions, dict[str, tuple[list[FoundMessage], int]]]:
    """What of the files is new here, and by file how many of its messages are not."""
    sent = {
        full: adopt_messages(
            team, call.channel, _path_to_record(team.root, full), found.messages, dry_run=dry_run
        )
        for full, found in files.chats.items()
    }
    pages = {_path_to_record(team.root, full): found for full, found in files.pages.items()}
    if not pages:
        return AdoptedDecisions([], "", 0, [], []), sent
    return adopt_decisions(team, pages, call.log, dry_run=dry_run), sent


def _lines(
    call: CommandCall,
    files: _Files,
    done: AdoptedDecisions,
    sent: dict[str, tuple[list[FoundMessage], int]],
) -> Iterator[str]:
    verb = "Would be taken in" if call.dry_run else "Taken in"
    for path, line, body in done.fresh:
        yield one_line(f"  {body['id']}  {body['title']}  ({path.removeprefix('../')}:{line})")
    if files.pages:
        what = _counted(len(done.fresh), "decision")
        yield f"{verb}: {what} into {one_line(done.log)}{_already(done.known)}"
    for full, (new, known) in sent.items():
        for one in new[:_LISTED] if call.dry_run else ():
            yield one_line(f"  {one.line}: {one.handle}: {one.text[:80]}")
        what = f"{_counted(len(new), 'message')} of {one_line(os.path.relpath(full))}"
        yield f"{verb}: {what} into {one_line(call.channel)}{_already(known)}"
        unmapped = sorted(files.chats[full].unmapped)
        if unmapped:
            yield one_line(f"  Left out of each: {', '.join(unmapped[:_LISTED])}")


def _already(known: int) -> str:
    return f"; {known} {'is' if known == 1 else 'are'} there already" if known else ""


def _remarks(files: _Files, done: AdoptedDecisions) -> None:
    for full, found in files.chats.items():
        if found.is_torn:
            remark(
                f"{one_line(os.path.relpath(full))}: its last line is not whole yet, and is left"
            )
    said = [(place, "only proposed, so it is left") for place in done.waiting]
    changed = "it was adopted, and says something else by now: log that as a decision of its own"
    said += [(place, changed) for place in done.changed]
    for (path, line), what in said[:_LISTED]:
        remark(f"{one_line(path.removeprefix('../'))}:{line}: {what}")
    for problem in files.problems[:_LISTED]:
        remark(problem)
    if files.problems:
        more = len(files.problems) - _LISTED
        remark(
            f"{f'and {more} more problems: ' if more > 0 else ''}nothing was taken in from the "
            "files that these are in"
        )


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _fields(given: Sequence[str]) -> dict[str, str]:
    """Which field of an object is text, handle and time of a message."""
    fields = {name: name for name in FIELDS}
    for word in given:
        name, equals, path = word.partition("=")
        if not equals or name not in fields or (not path and name != "time"):
            known = ", ".join(f"{one}=NAME" for one in FIELDS)
            raise BadArgumentError(f"--map: {word!r} is not one of {known}")
        fields[name] = path
    return fields


def _named_files(given: Sequence[str], problems: list[str]) -> Iterator[str]:
    """The full paths of files, and of the numbered files in folders."""
    for path in given:
        full, shown = os.path.realpath(path), one_line(path)
        if not os.path.isdir(full):
            if full.endswith((*_PAGES, *_LINES)):
                yield full
            elif not os.path.lexists(path):
                problems.append(f"{shown}: there is no such file or folder")
            else:
                problems.append(f"{shown}: its name ends in none of {', '.join(_PAGES + _LINES)}")
            continue
        try:
            names = sorted(filter(re.compile(_NUMBERED).match, os.listdir(full)), key=_by_number)
        except OSError as error:
            problems.append(f"{shown}: {error.strerror}")
            continue
        if 0 < len(names) <= _MOST_FILES:
            yield from (f"{full}/{name}" for name in names)
        elif names:
            problems.append(f"{shown}: {len(names)} decisions; name at most {_MOST_FILES} files")
        else:
            problems.append(f"{shown}: no file in it is named as 0001-title.md is")


def _by_number(name: str) -> tuple[int, str]:
    """Sorts numbered names in the order of their numbers: 9999 stands before 10000."""
    return int(re.split("[^0-9]", name, maxsplit=1)[0]), name


def _path_to_record(root: str, full: str) -> str:
    """How entries name a file: as seen from the team directory where it is in the project."""
    root = os.path.realpath(root)
    inside = full.startswith(f"{os.path.dirname(root)}/")
    return os.path.relpath(full, root) if inside else full


_PAGE = """\
adopt-log FILE...
    FILE is a folder of decisions, one a file (MADR 2 to 4, or Nygard's form: docs/decisions/
    0001-title.md), or one of these; a page with a decision below each heading (DECISIONS.md); or
    JSON lines of messages (.jsonl), which go to --channel.

    Decisions and messages become observed entries, at the end of the log or the channel. The files
    stay as they are. A decision or a message that was adopted before is not added again, so that a
    file that grew adds what is new. If a line of a file cannot be read, nothing of that file is
    taken in, the line is named, and the exit code is 1.

    --dry-run       Say what would be taken in, and change nothing.
    --channel NAME  The channel of the messages; `tripod chat create` makes one.
    --map FIELD=NAME...  Which field of an object is text, handle or time of a message, such as
        text=body or handle=author.name; time= where no field has it.
    --log NAME      The log of the decisions; by default the only log, or log.md.
    looks: with --dry-run
"""

COMMANDS = {"adopt-log": command_verb(_PAGE, _adopt_log)}
