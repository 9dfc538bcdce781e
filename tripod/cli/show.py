"""``tripod show``: entries, and any projection as of any entry."""

import re
from typing import Any

from tripod.cli.commands import CommandCall, command_verb
from tripod.errors import BadArgumentError, NotFoundError
from tripod.ledger import MERGED, Entry, entry_leaf_hash, entry_mark, redaction_entry_id
from tripod.output import emit, emit_bytes, emit_pretty, format_utc, hanging, one_line
from tripod.projections import seen_entries
from tripod.projections.text import text_meant
from tripod.team.team import Team

LISTED = 20


def _show(call: CommandCall) -> None:
    what: str = call.what or ""
    is_entry = "-" in what or re.fullmatch("[0-9]+", what) is not None
    if call.at is not None and (is_entry or not what):
        raise BadArgumentError(
            "--at goes with a projection: decisions, chat, events, workers, counts"
        )
    if what and (call.last is not None or call.stream is not None):
        raise BadArgumentError(
            "--last and --stream go with the list of entries, where WHAT is left out"
        )
    if call.bounds and re.fullmatch("[0-9]+", what) is None:
        raise BadArgumentError("--bounds goes with the number of an entry")
    if (call.pin is not None or call.policy) and not call.bounds:
        raise BadArgumentError("--pin and --policy go with --bounds")
    with call.fresh() as team:
        if call.bounds:
            _bounds(call, team, int(what))
        elif not what:
            _list(call, team)
        elif is_entry:
            _entry(call, team)
        elif what in ("agents", "pythia") and call.at is None:
            _runs(call, team)
        else:
            _projection(call, team)


def _value(team: Team, entry: Entry) -> dict[str, Any]:
    """An entry for JSON; of one of a peer also what it keeps, as ``inner``."""
    value = _plain(entry)
    for inner in seen_entries((entry,), team.store.blob):
        if inner is not entry:
            value["inner"] = _plain(inner)
    return value


def _plain(entry: Entry) -> dict[str, Any]:
    value: dict[str, Any] = {
        "actor": entry.actor,
        "at": entry.at,
        "id": entry.id,
        "kind": entry.kind,
        "leaf": entry_leaf_hash(entry.header).hex(),
        "mark": _mark(entry),
        "seq": entry.seq,
        "stream": entry.stream,
    }
    if entry.body is not None:
        value["body"] = entry.data
    elif entry.data:
        value["redacted"] = {"keep": entry.data, "said_by": redaction_entry_id(entry.seq)}
    return value


def _mark(entry: Entry) -> str:
    return entry_mark(
        observed="observed" in entry.data,
        signed=entry.auth is not None,
        peer="peer" in entry.data or entry.kind == MERGED,
    )


def _list(call: CommandCall, team: Team) -> None:
    head = team.store.head()
    last = LISTED if call.last is None else call.last
    newest = team.store.read(0, head.size, stream=call.stream, newest_first=True, limit=last)
    entries = list(newest)[::-1]
    lines = [
        f"{e.seq:>7}  {e.at[:19]}Z  {_mark(e):<8}  {e.kind:<16}  {e.stream}  {e.actor}"
        for e in seen_entries(entries, team.store.blob)
    ]
    lines.append(f"{head.size} entries, root {head.root.hex()}")
    call.answers((_value(team, entry) for entry in entries), lines)


def _entry(call: CommandCall, team: Team) -> None:
    # No ledger has an entry whose number takes more digits than these.
    what = call.what
    seq = team.store.seq_of(what) if "-" in what else int(what.lstrip("0")[:18] or "0")
    entry = None if seq is None else team.store.entry(seq)
    if entry is None:
        raise NotFoundError(f"no entry {one_line(what[:80])}; `tripod show` lists the newest")
    if call.json:
        call.objects([_value(team, entry)])
    else:
        emit_pretty(_value(team, entry))


def _runs(call: CommandCall, team: Team) -> None:
    """What each run of a program was given, and what it answered; ``pythia``: of the reviewer."""
    role, values = (" WHERE role = ?", ("pythia",)) if call.what == "pythia" else ("", ())
    names = ("seq", "spawn", "role", "subject", "attempt", "state")
    rows = team.store.db.execute(
        f"SELECT {', '.join(names)} FROM agents{role} ORDER BY seq", values
    ).fetchall()
    runs, lines = list[dict[str, Any]](), list[str]()
    for row in rows:
        given: list[dict[str, Any]] = []
        run = {**dict(zip(names, row, strict=True)), "given": given, "status": None, "answer": None}
        for entry in team.store.read(stream=f"agents/{run['spawn']}"):
            seq, body = entry.seq, entry.data
            if entry.kind == "delivered":
                text = _text(team, body.get("content")) if entry.body is not None else None
                given.append({"channel": body.get("channel"), "seq": seq, "text": text})
            elif entry.kind == "agent.ended":
                kept = body.get("stdout", {}).get("content") if entry.body is not None else None
                run |= {"status": body.get("status"), "answer": _text(team, kept)}
        runs.append(run)
        state = run["state"] if run["status"] is None else f"{run['state']}, {run['status']}"
        what = f"{run['role']} {run['subject']}, attempt {run['attempt']}: {state}"
        lines.append(one_line(f"entry {run['seq']}: {what}"))
        texts = [(f"given ({one['channel']}, entry {one['seq']})", one["text"]) for one in given]
        for label, text in [*texts, ("answered", run["answer"])]:
            lines.append(f"  {label}: {'not kept' if text is None else hanging(text.rstrip())}")
    call.answers(runs, lines)


def _text(team: Team, content: dict[str, Any] | None) -> str | None:
    data = None if content is None else team.source.content(content)
    return None if data is None else data.decode(errors="replace")


def _bounds(call: CommandCall, team: Team, seq: int) -> None:
    """What the host claims, and what others say of the time of an entry."""
    from tripod.verify.anchors.anchors import AnchorOptions
    from tripod.verify.anchors.comparison import agreeing_heads
    from tripod.verify.anchors.heads import bounds_by_heads
    from tripod.verify.evidence import collect

    if seq >= team.store.head().size:
        raise NotFoundError(f"no entry {seq}; `tripod show` lists the newest")
    with collect(team.root, asked=AnchorOptions(call.pin, policies=call.policy)) as evidence:
        if evidence.problem:
            raise BadArgumentError(evidence.problem)
        found = bounds_by_heads(seq, agreeing_heads(evidence))
        at = evidence.at(seq)
    shown = {name: bound and bound._asdict() for name, bound in found._asdict().items()}
    lines = []
    for side, claimed, signed in (
        ("not before", found.not_before, found.not_before_signed),
        ("not after", found.not_after, found.not_after_signed),
    ):
        for best in dict.fromkeys((signed, claimed) if signed else (claimed,)):
            said = "nobody outside says"
            if best is not None:
                worth = "signed by a key that the policy knows" if best.signed else "a claim"
                said = f"{format_utc(best.seconds)} by {one_line(best.by)} ({worth})"
            lines.append(f"{side}: {said}")
    call.answer({"at": at, "seq": seq, **shown}, [f"entry {seq}: {at}, says this host", *lines])


def _projection(call: CommandCall, team: Team) -> None:
    from tripod.projections import PROJECTIONS
    from tripod.recovery.rebuild import rebuild_past, rebuilt_files

    names = list(dict.fromkeys(projection.name for projection in PROJECTIONS))
    if call.what not in names:
        known = f"there are {', '.join(names)}{text_meant(call.what, names)}"
        raise NotFoundError(f"no projection {call.what!r}; {known}")
    with rebuild_past(team, call.at) as source:
        files = rebuilt_files(source, call.what)
    for path, file in files:
        if call.json:
            text = file.data.decode("utf-8", "replace")
            call.objects([{"mode": oct(file.mode), "path": path, "text": text}])
            continue
        if len(files) > 1:
            emit([f"==> {one_line(path)} <=="])
        emit_bytes(file.data)


_SHOW = """\
show [WHAT]
    Without WHAT the newest entries are listed. WHAT is an entry's number or id, or a projection:
    decisions, chat, events, workers, counts. `agents` and `pythia` print what each run of a
    program, or of the reviewer, was given and what it answered.

    `observed` marks an entry that was read from a file of another program: its actor is a claim.
    `signed` marks one that has its actor's signature, which `tripod verify` opens.

    --at SEQ          The projection as of entry SEQ.
    --last N          How many entries to list; 20 by default.
    --stream NAME     List only entries of this stream, such as chat/live.
    --bounds          Earliest and latest time at which entry WHAT can have been appended, from
        outside evidence.
    --pin FILE        With --bounds: a head that is kept elsewhere.
    --policy FILE...  With --bounds: a policy from elsewhere (.tlog or .pem) in place of the
        team's own.
    looks: always
"""
COMMANDS = {"show": command_verb(_SHOW, _show)}
