"""``tripod backup``, ``restore``, ``doctor`` and ``redact``: when something is wrong."""

import os

from tripod.cli.commands import TEXT, CommandCall, command_verb
from tripod.errors import BadArgumentError
from tripod.ledger.locator import database_of, team_to_judge
from tripod.output import one_line, remark
from tripod.recovery import backup as copies
from tripod.recovery import redaction as act
from tripod.recovery.doctor import Trouble, examine, mend
from tripod.recovery.record import restore_as_copy, restore_own_record
from tripod.team.access import check_access, refuse_copy_within

LISTED = 20
OUTSIDE = (
    "what is in git history, in backups and with others cannot be erased from here: "
    "a secret that leaked must be revoked"
)


def _backup(call: CommandCall) -> None:
    with call.team() as team, call.progress():
        refuse_copy_within(team, call.file)
        done = copies.backup(team, call.file)
    root = done.root.hex()
    line = f"{one_line(call.file)}: {done.size} entries, root {root}"
    call.answer({"file": call.file, "root": root, "size": done.size}, [line])


def _restore(call: CommandCall) -> None:
    is_record = call.file is None and not call.as_copy
    root = copies.restore_root(call.values["team"], anew=is_record)
    given = (call.file is not None, call.as_copy, call.replica is not None)
    if given.count(True) > 1:
        raise BadArgumentError("give FILE, --as-copy or --replica NAME, and one of them only")
    if call.file is None and (call.sign_fork or call.discard is not None):
        raise BadArgumentError("--sign-fork and --discard go with FILE")
    kinds: dict[str, int] = {}
    source = call.file
    with check_access(os.path.abspath(root)), call.progress():
        if call.as_copy:
            done, source, kinds = restore_as_copy(root, call.as_origin)
        elif call.file is not None:
            done = copies.restore(
                root,
                call.file,
                call.as_origin,
                sign_fork=call.sign_fork,
                discard=call.discard,
                take=call.take_in,
            )
        else:
            done, source, kinds = restore_own_record(root, call.replica)
    for warning in done.warnings:
        remark(f"warning: {warning}")
    lines = []
    if source:
        database = one_line(database_of(done.root))
        lines.append(f"Restored: {database}, {done.size} entries of {one_line(source)}")
    if done.forked:
        lines.append(f"It goes on as {done.origin}, forked from {done.old}")
    if done.kept:
        lines.append(f"The database that stood there is kept as {one_line(done.kept)}")
    if call.file is not None:
        lines.append(f"{done.written} files written, {done.displaced} had held other bytes")
    elif kinds:
        counts = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        lines.append(f"Taken in from the files: {sum(kinds.values())} entries ({counts})")
    call.answer({**vars(done), "source": source, "kinds": kinds}, lines)


def _doctor(call: CommandCall) -> int:
    given = call.values["team"]
    if given is not None and not os.path.isdir(given):
        raise BadArgumentError(
            f"--team: {given!r} is no folder: give the project or its team directory"
        )
    path = os.path.abspath(team_to_judge(given))  # without a ledger, the doctor says so
    with check_access(path), call.progress():
        before = examine(path)
        after = mend(before) if call.fix else before
    still = {(one.name, one.where) for one in after.troubles}
    mended = [one for one in before.troubles if (one.name, one.where) not in still]
    value = {
        "root": after.root,
        "problem": after.problem,
        "mended": [one._asdict() for one in mended],
        "troubles": [one._asdict() for one in after.troubles],
    }
    lines = [f"mended: {_trouble_line(one)}" for one in mended]
    for one in after.troubles:
        lines += [_trouble_line(one), f"  {'--fix' if one.mends else 'you'}: {one_line(one.cure)}"]
    if after.troubles and not after.problem:
        count, mends = len(after.troubles), sum(bool(one.mends) for one in after.troubles)
        rest = ", left for you" if call.fix else f", of which --fix mends {mends}"
        stops = [one.name for one in after.troubles if one.stops]
        if stops:
            rest = f"; nothing is mended as long as there is {stops[0]}"
        what = "wrong" if after.code else "to put in order"  # `tripod verify` fails on none
        lines.append(f"{count} thing{'' if count == 1 else 's'} {what}{rest}")
    elif not after.problem:
        lines.append("Nothing is wrong any more" if mended else "Nothing is wrong")
    call.answer(value, lines)
    if after.problem and not call.json:
        remark(f"cannot judge: {after.problem}")
    return after.code


def _trouble_line(one: Trouble) -> str:
    return f"{one_line(one.where)}: {one.name}: {one_line(one.what)}"


def _redact(call: CommandCall) -> int:
    with call.team() as team, call.progress():
        request = act.RedactionRequest(
            call.seq, call.match, call.reason or "", call.known_actor() or ""
        )
        found = act.redact(team, request, dry_run=call.dry_run, exports=call.export)
    verb = "Would be redacted" if call.dry_run else "Redacted"
    lines = [f"  {t.seq:>7}  {t.kind:<16}  {one_line(t.stream)}  {t.why}" for t in found.erased]
    lines.append(f"{verb}: {len(found.erased)} entries")
    call.answer(vars(found) | {"erased": [vars(target) for target in found.erased]}, lines)
    for line in found.cannot[:LISTED]:
        remark(f"stays: {line}")
    if len(found.cannot) > LISTED:
        remark(f"and {len(found.cannot) - LISTED} more entries in which something stays")
    if found.quoted:
        numbers = " ".join(map(str, found.quoted))
        remark(f"quoted elsewhere: `tripod redact {numbers}` erases that, too")
    for path in found.left:
        remark(f"still says it: {one_line(path)}")
    if not call.dry_run:
        remark(OUTSIDE)
    return 1 if found.cannot or found.left or not (call.dry_run or found.done) else 0


_BACKUP = """\
backup FILE
    The copy is one database file that `tripod verify FILE` judges; others go on writing
    meanwhile. It holds no private key.
    looks: always
"""
_RESTORE = """\
restore [FILE]
    Without FILE, restore takes this replica's own record: the longest that git knows of, on the
    replica's ref or fetched from a remote. Its private key must be on this host. What the team's
    files show beyond the record is taken in as observed. If a peer, or this host's last seal,
    remembers more entries than the record has, the ledger goes on under a new name.

    With FILE, restore takes that backup, and writes the team's files as the backup has them. The
    ledger keeps its name only if FILE holds all of the ledger that it replaces, and --as-origin is
    not given. Otherwise it goes on under a new name, and its first new entry says so, so that no
    seal of the new line contradicts one of the old. The replaced database is kept beside the new
    one. If the files show decisions, messages or events that FILE does not hold, nothing is
    replaced without --take-in or --discard. What --discard removes is kept in the ledger, and
    `tripod verify` names it from then on.

    If a pin or a commit remembers more entries of the old line than FILE has, `verify` fails
    (`left behind`) until --sign-fork, or a policy from outside, says that this is wanted.

    --as-copy         Restore nothing: give this ledger a new name and a new key, as a replica of
        its own. For a copied disk, a clone of a committed record, and a lost key.
    --replica NAME    The replica to restore, where its record was fetched from a remote.
    --as-origin NAME  The new line's name; made up by default.
    --sign-fork       Sign with the old line's key that it ends here, though newer heads of it
        are known.
    --take-in REASON  Take in as observed what the files show and FILE does not hold; the reason
        is recorded.
    --discard REASON  Also remove what the files show and FILE does not hold; the reason is
        recorded.
"""
_DOCTOR = """\
doctor
    Also says what breaks no rule and is to be put in order: what a dead command left, a lease
    that ended.

    Exit codes, those of `tripod verify`: 0 no rule is broken, or all was mended; 1 a rule is,
    2 usage, 3 could not judge.
    --fix  Carry out the repairs that are named; evidence is never touched.
    looks: unless --fix
"""
_REDACT = """\
redact [SEQ]...
    With SEQ, the events that tell of those entries and the bytes that were kept of files are
    erased with them. The entry that says who erased what, and why, stays for ever.

    Exit codes: 0 erased (with --dry-run: all of it can be), 1 something stays, 2 usage.

    --match REGEX      All entries in which this is found.
    --reason TEXT      Why; it stays in the ledger.
    --as, --by HANDLE  Who erases it; it stays in the ledger.
    --dry-run          Say what would be erased, and change nothing.
    --export DIR...    An export whose bodies are erased as well; .nbs/record always is.
    looks: with --dry-run
"""
COMMANDS = {
    "backup": command_verb(_BACKUP, _backup, {"FILE": TEXT}),
    "restore": command_verb(_RESTORE, _restore, {"FILE": TEXT}),
    "doctor": command_verb(_DOCTOR, _doctor),
    "redact": command_verb(_REDACT, _redact),
}
