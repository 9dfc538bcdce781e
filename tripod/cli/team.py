"""``tripod init``, ``sync``, ``rebuild`` and ``demo``: the ledger against the team's files."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from tripod.cli.commands import (
    HANDLE,
    ChoiceParam,
    CommandCall,
    NumberParam,
    command_verb,
    known_handle,
    log_keys_param,
)
from tripod.errors import BadArgumentError, NoTeamError, PagesDamagedError
from tripod.ledger import DATABASE, RECORD
from tripod.ledger.files import replace_file
from tripod.ledger.locator import (
    ACTOR_ENV,
    closed_place_problem,
    database_apart,
    database_of,
    explain_team,
    handle_path,
    has_ledger,
    has_record,
    named,
    nearest_team,
    no_team_problem,
    stated_handle,
    work_tree_around,
)
from tripod.output import emit_report, one_line, remark, safe
from tripod.peers.replica import replica_name, tree_of_team
from tripod.projections import LOG
from tripod.recovery.rebuild import Rebuilt, rebuild, rebuild_database
from tripod.recovery.record import restore_from_record
from tripod.team import adoption, git_index
from tripod.team import watch as watching
from tripod.team.access import check_access
from tripod.team.team import Team, find_team, lost_problem
from tripod.trust.keys import key_path
from tripod.verify.peers.refs import REMOTES, named_replicas

MAX_TIMEOUT = 2**32  # seconds: more than a century
NEXT = "Next: `tripod chat create live` begins a chat, `tripod verify` judges what is there"

if TYPE_CHECKING:
    from tripod.peers.roster import Merged

ASKED = "Your handle, under which your acts are recorded (one word; Enter for none)"

_EXPLAINED = {
    rf"{re.escape(DATABASE)}\.replaced-[0-9]+": (
        "a ledger that `tripod restore` replaced: remove it if you need it no more"
    ),
    rf"{re.escape(DATABASE)}\.damaged-[0-9]+": (
        "a damaged database that `tripod rebuild` wrote anew: remove it if you need it no more"
    ),
    rf"{re.escape(DATABASE)}\.re(newing|storing)(-[a-z]+)?": (
        "left by a `tripod rebuild` or `restore` that was stopped: the next one removes it"
    ),
    rf"{RECORD}\.replaced-[0-9]+/": (
        "the record of the line that `tripod restore` left: remove it if you need it no more"
    ),
    rf"{LOG.folder}/[^/]*\.md": (
        "no decision log: it has no title `# Decision Log` and no decision, or is a copy of a log"
    ),
}
"""What is left alone and may be taken for a file of ours: its path, and what it is."""


def _report(found: adoption.Adoption) -> list[str]:
    lines = ["Nothing new to take in"]
    if found.entries:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(found.kinds.items()))
        lines = [f"Taken in from {found.files} files: {found.entries} entries ({kinds})"]
    if found.left_alone:
        count = len(found.left_alone)
        lines += [f"Left alone: {count} files and folders, of which nothing is taken in"]
        for path in found.left_alone:
            known = [what for pattern, what in _EXPLAINED.items() if re.fullmatch(pattern, path)]
            lines.append(f"  {one_line(path)} ({known[0]})" if known else f"  {one_line(path)}")
    return lines


def _init(call: CommandCall) -> None:
    path = given = call.path or named() or "."
    root = adoption.team_to_adopt(path, new=call.new)
    if call.as_ is not None:
        os.environ[ACTOR_ENV[0]] = call.as_  # what names the replica asks who acts
    if not call.json:
        _ask_handle()  # a replica is called by it, once for ever
    if call.from_ is not None:
        if call.new:
            raise BadArgumentError("--from joins a team, and --new begins another: give one")
        if os.path.lexists(database_of(root)):
            _move(call, root)
            return
        _fetch(call, root)
    if not os.path.lexists(database_of(root)) and not call.new:
        if database_apart(root) is not None and named_replicas(root):
            _join(call, path)
            return
        if has_record(root):
            _restore(call, root)
            return
    full = os.path.abspath(given)
    around = nearest_team(full)
    before = named_replicas(root) if call.new and database_apart(root) is not None else []
    with check_access(os.path.abspath(path)), call.progress():
        found = adoption.init(
            path,
            project=call.project,
            origin=call.origin,
            scribe=call.scribe,
            events=call.events,
            chat=call.chat,
            key=call.key,
            new=call.new,
        )
    begun = "Begun" if found.begun else "There is already"
    lines = [f"{begun}: {database_of(found.root)}", *_report(found)]
    if not found.begun and database_apart(found.root) is not None and named_replicas(found.root):
        lines += _merge_more(found)
    for warning in found.warnings:
        remark(f"warning: {warning}")
    if found.begun:
        _tell_lost(before)
    lines += _key_lines(found)
    if found.begun and around not in (None, found.root):
        lines += [f"Commands here work on it from now on, and no more on {one_line(str(around))}"]
    if full not in (found.root, os.path.dirname(found.root)):
        tree = work_tree_around(full)
        is_linked = tree is not None and tree.git != tree.common
        other = "" if is_linked else "; `tripod init --new` begins another"
        lines += [f"{one_line(full)} belongs to that team{other}"]
    value = {**vars(found), "untracked": _untrack(call, found.root, lines)}
    if found.begun:
        from tripod.cli.adoption import logs_to_adopt

        lines += [*logs_to_adopt(os.path.dirname(found.root)), NEXT]
    call.answer(value, lines)


def _tell_lost(refs: Sequence[str]) -> None:
    """Say how a ledger comes back that was here before another team was begun in its place."""
    for ref in refs:
        if not ref.startswith(REMOTES):
            remark(
                f"{one_line(ref)} holds the record of a ledger that was here: `tripod restore "
                f"--replica {one_line(ref.rpartition('/')[2])}` puts it in the place of this new "
                "one, if its private key is on this host"
            )


def _merge_more(found: adoption.Adoption) -> list[str]:
    """Go on with a join that was stopped."""
    from tripod.peers.join import go_on_joining, settle_aside

    merged = go_on_joining(found.root)
    with Team(found.root) as team:
        found.warnings.extend(
            [*(one.problem for one in merged if one.problem), *settle_aside(team)]
        )
    return _merged_lines(merged)


def _merged_lines(merged: Sequence[Merged]) -> list[str]:
    return [
        f"Merged {one.taken} entries of {one_line(one.replica or one.origin)}"
        for one in merged
        if one.taken
    ]


def _fetch(call: CommandCall, root: str) -> None:
    """Fetch the records of a remote, so that its team is joined."""
    from tripod.peers.join import fetch_records_to_join

    with call.progress():
        fetch_records_to_join(root, call.from_, seconds=call.timeout)


def _move(call: CommandCall, root: str) -> None:
    """Have a ledger that was begun apart go on in the team of a remote."""
    from tripod.peers.join import move_to_team

    with check_access(root), call.progress():
        team, merged = move_to_team(root, call.from_, call.team_id, seconds=call.timeout)
    for one in merged:
        if one.problem:
            remark(f"warning: {one.problem}")
    lines = [f"Joined the team {one_line(team)}: {database_of(root)}", *_merged_lines(merged)]
    lines += ["What was recorded here before is the team's as well: `tripod push` gives it"]
    call.answer({"root": root, "team": team, "peers": [one._asdict() for one in merged]}, lines)


def _join(call: CommandCall, path: str) -> None:
    """Begin a replica of the team whose records the repository holds."""
    from tripod.peers.join import join_team

    if call.key is False:
        raise BadArgumentError("--no-key: a replica needs a key, by which its peers know it")
    with check_access(os.path.abspath(path)), call.progress():
        names = {name: call.values[name] for name in ("project", "origin", "scribe")}
        folders = {"events": call.events, "chat": call.chat}
        done = join_team(path, known_handle() or "", names, folders, call.team_id)
    found = done.adopted
    for warning in found.warnings:
        remark(f"warning: {warning}")
    lines = [f"Joined the team {one_line(done.team)}: {database_of(found.root)}", *_report(found)]
    lines += _merged_lines(done.merged)
    lines += _key_lines(found)
    peers = [one._asdict() for one in done.merged]
    value = {**vars(found), "untracked": _untrack(call, found.root, lines)}
    call.answer({**value, "team": done.team, "peers": peers}, lines)


def _key_lines(found: adoption.Adoption) -> list[str]:
    """Lines on the key that was made, if one was, and a remark where it is nobody's."""
    if not found.key:
        return []
    if tree_of_team(found.root) is not None and stated_handle() is None:
        remark(
            f"nothing says who you are, so this replica is called {replica_name('', found.key)}: "
            f"set {ACTOR_ENV[0]} or write your handle into {one_line(handle_path())}, then `tripod "
            "restore --as-copy` gives it a name with that"
        )
    path = key_path(found.key.partition("+")[0])
    return [f"Sealed by the new key {found.key}", f"Keep a copy of its private part: {path}"]


def _untrack(call: CommandCall, root: str, lines: list[str]) -> list[str]:
    """Say what of the team git tracks; take it out of the index where that was asked for."""
    here = call.path or os.getcwd()
    if call.untrack:
        done = git_index.untrack_files(root, here)
        lines += [f"Untracked: {len(one.paths)} files of {one_line(one.folder)}" for one in done]
        return [path for one in done for path in one.paths]
    for one in git_index.tracked_files(root, here):
        remark(
            f"git tracks {len(one.paths)} files of {one_line(one.folder)}: a switch of branch puts "
            "an older state of them there. `tripod init --untrack` takes them out of git's index, "
            "and leaves them on the disk"
        )
    return []


def _ask_handle() -> None:
    """Ask a person at a terminal for their handle, where none is known yet."""
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr)):
        return
    import click

    def read(text: str) -> str:
        try:
            HANDLE.read(text or "nobody")
        except ValueError as error:
            raise click.UsageError(f"a handle {error}") from error
        return text

    with suppress(BadArgumentError, click.Abort):
        if known_handle() is not None:
            return
        handle = click.prompt(ASKED, default="", show_default=False, value_proc=read, err=True)
        if handle:
            os.makedirs(os.path.dirname(handle_path()), mode=0o700, exist_ok=True)
            replace_file(handle_path(), f"{handle}\n".encode(), 0o644)
            remark(f"{handle} is kept in {one_line(handle_path())}")


def _restore(call: CommandCall, root: str) -> None:
    """Restore the ledger from its record: the same entries, under the same name."""
    if any(word is not None for word in (call.project, call.origin, call.events, call.chat)):
        raise BadArgumentError(
            "the ledger is restored from its record, which says project, origin and folders: "
            "leave --project, --origin, --events and --chat out"
        )
    with call.progress():
        size, origin, ahead = restore_from_record(root, log_keys_param(call.log_key, "--log-key"))
    line = f"Restored: {database_of(root)} from {root}/{RECORD}, {size} entries"
    call.answer({"root": root, "restored": size}, [line])
    if not os.path.exists(key_path(origin)):
        remark(
            "its private key is not on this host, so nothing is sealed here: `tripod restore "
            "--as-copy` goes on as a replica of its own, with a new key"
        )
    if ahead is not None:
        remark(
            f"warning: {ahead}: it was made after the record's seal, and is lost but for "
            "what the files show; `tripod rebuild` goes on from here, and says what goes"
        )


def _where(call: CommandCall) -> None:
    root, why = explain_team(call.values["team"])
    if root is None or not has_ledger(root):
        place = root or os.getcwd()
        closed = closed_place_problem(place)
        raise NoTeamError(closed or lost_problem(place) or no_team_problem(place))
    database = database_of(root)
    lines = [f"team: {one_line(root)} ({why})", f"ledger: {one_line(database)}"]
    call.answer({"team": root, "why": why, "ledger": database}, lines)


def _sync(call: CommandCall) -> None:
    if call.timeout is not None and not call.watch:
        raise BadArgumentError("--timeout is for --watch: without it sync does not wait")
    with call.team() as team:
        if call.watch:
            _watch(call, team)
            return
        with call.progress():
            found = adoption.sync(team)
        call.answer(vars(found), _report(found))


def _watch(call: CommandCall, team: Team) -> None:
    def report(found: dict[str, int], size: int) -> None:
        kinds, entries = ", ".join(f"{n} {kind}" for kind, n in found.items()), sum(found.values())
        value = {"entries": entries, "kinds": found, "size": size}
        call.answer(value, [f"Taken in: {entries} entries ({kinds})"])

    def ready(is_told: bool) -> None:
        remark("watching" if is_told else "watching, by looking again and again")

    def warn(text: str) -> None:
        remark(f"warning: {text}")

    stop, timeout = watching.WatchStop(), call.timeout
    with stop.by_signals():
        watching.watch(team, report, warn=warn, ready=ready, stop=stop, timeout=timeout)


def _completion(call: CommandCall) -> None:
    import click
    from click.shell_completion import get_completion_class

    shell = get_completion_class(call.shell)
    assert shell is not None, "click knows the shells of the table"
    command = click.get_current_context().find_root().command
    emit_report(f"{shell(command, {}, 'tripod', '_TRIPOD_COMPLETE').source()}\n")


def _rebuilt(call: CommandCall) -> Rebuilt:
    with call.team() as team, call.progress():
        return rebuild(team, evidence=call.evidence, discard=call.discard, take=call.take_in)


def _rebuild(call: CommandCall) -> None:
    try:
        done = _rebuilt(call)
    except PagesDamagedError:
        root = find_team(call.values["team"])
        with check_access(root), call.progress():
            kept = rebuild_database(root)
        done = replace(_rebuilt(call), kept=kept)
    lines = [f"  {one_line(path)}" for path in done.written]
    lines += [f"Triggers put back: {', '.join(done.triggers)}"] if done.triggers else []
    count = f"{len(done.written)} files written, {done.displaced} had held other bytes"
    call.answer(vars(done), [*lines, f"Rebuilt: {count}"])


_STYLES: dict[str, tuple[str, dict[str, object]]] = {
    "step": ("\n== ", {"bold": True}),
    "do": ("  $ ", {"fg": "cyan"}),
    "good": ("", {"fg": "green"}),
    "bad": ("", {"fg": "red"}),
    "plain": ("", {}),
}


def _say(style: str, text: str) -> None:
    import click

    prefix, colours = _STYLES[style]
    click.echo(click.style(safe(f"{prefix}{text}"), **colours))  # type: ignore[arg-type]


def _demo(_: CommandCall) -> int:
    from tripod.demo.demo import play

    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tripod-demo-") as folder:
        wrong = play(folder, _say)
    seconds = time.monotonic() - began
    if wrong:
        _say("bad", f"\n{wrong} things went otherwise than they should ({seconds:.1f} s)")
        return 1
    _say("good", f"\nAll went as it should ({seconds:.1f} s). Next: the tutorial in docs/.")
    return 0


_INIT = """\
init [PATH]
    If the repository holds records of replicas on git refs (refs/tripod-remotes, as `tripod pull`
    or --from fetches them), init joins their team: it begins a new replica with a key of its own,
    and merges what the others recorded. --new begins another team on purpose.

    If there is no ledger, but a record that an earlier version committed (.nbs/record), init makes
    the ledger from that record again.

    If there is a ledger already, init takes in what is new, and changes none of its names. Folders
    that are kept elsewhere (--events, --chat) are recorded for ever, and every command finds
    them. The default of PATH is the directory that TRIPOD_LEDGER names, or the current folder.

    At a terminal init asks for your handle, unless it knows it; your acts are recorded under it.
    A repository has one team for all branches and work trees. Its files are in .nbs at the top of
    the main work tree (in a bare repository `tripod where` says where), its ledger is in the
    repository's own directory (.git), where `git clean` does not reach it. A folder inside of a
    project that has a team belongs to that team.

    --as HANDLE        Who you are: the replica is called by it. By default your own handle.
    --project NAME     The project's name; the folder's by default.
    --origin NAME      The ledger's own name, unique for ever; made up by default.
    --scribe HANDLE    The handle that logs decisions; `scribe` by default.
    --events DIR       The folder of the events; .nbs/events by default.
    --chat DIR         The folder of the chats; .nbs/chat by default.
    --from REMOTE      Fetch the records of a remote (a name, a URL or a path), and join its team;
        a ledger that was begun too early, and merged no peer, joins it as well.
    --timeout S        Seconds that the remote may take. [default: 120]
    --team-id ID       The team to join, where the records are of several: how its id begins.
    --untrack          Take files of .nbs that git tracks out of its index; they stay on the disk.
    --new              Begin another team here, although there is one already.
    --key/--no-key     Make a key that seals the ledger; by default in a git repository alone.
    --log-key VKEY...  The log's public key, where a ledger is restored from its record.
    without: --team
"""
_WHERE = """\
where
    It prints the team directory, the rule by which it was found, and where the ledger lies.

    looks: always
"""
_SYNC = """\
sync
    With --watch it takes in what is there, and then what comes, and prints a line each time,
    until SIGINT or SIGTERM (exit 0). The system wakes it (inotify); in any case it looks again
    every `poll-interval` seconds.
    --watch      Stay, and take in what comes as it comes.
    --timeout S  Seconds to watch; for ever by default.
    --json       One JSON object; a line each with --watch.
"""
_REBUILD = """\
rebuild
    The old bytes of a file are first kept as a blob in the ledger. If they hold decisions,
    messages or events that no entry of this ledger holds, rebuild takes these in as observed.
    But if files or seals show that the ledger was rolled back, rebuild writes nothing without
    --take-in or --discard. What --discard removes, `tripod verify` names from then on.

    If pages of the database are damaged, and the entries are sound, rebuild copies the entries
    into a new database, and keeps the damaged one beside it.

    --evidence        Also give back kept logs that are gone or changed.
    --take-in REASON  Take in what the files show and no entry holds, though the ledger was
        rolled back; the reason is recorded.
    --discard REASON  Also remove what the files show and no entry holds; the reason is
        recorded.
"""
_COMPLETION = """\
completion SHELL
    SHELL is bash, zsh or fish. For bash, put `eval "$(tripod completion bash)"` into ~/.bashrc; for
    zsh the same with zsh into ~/.zshrc; for fish write its script to
    ~/.config/fish/completions/tripod.fish.

    looks: always
    without: --team --json
"""

_DEMO = """\
demo
    It adopts a real team's files, tampers with them, crashes, recovers; then Pythia reviews.
    Then four Pythias look for the chat, and are refused or caught. All on temporary copies.
    Exit code 1 if any step did not end as expected.
    without: --team --json
"""

COMMANDS = {
    "init": command_verb(_INIT, _init, {"S": NumberParam(1, 86_400)}),
    "where": command_verb(_WHERE, _where),
    "sync": command_verb(_SYNC, _sync, {"S": NumberParam(0, MAX_TIMEOUT)}),
    "rebuild": command_verb(_REBUILD, _rebuild),
    "demo": command_verb(_DEMO, _demo),
    "completion": command_verb(
        _COMPLETION, _completion, {"SHELL": ChoiceParam("bash", "zsh", "fish")}
    ),
}
