"""The deeds of the attacks in ``docs/attack_table.py``, by the same names.

Each damages a copy of a team, and gives the number of the first entry that is no longer what it
was: a head kept outside that covers it must tell.
"""

import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import drafts
from attacked import ACTOR, KEY, Case, Stage, at_home, fit
from plain_export import read_files
from specimens import Row, database, resigned, unguarded
from story import Clock, Original

from tripod.bus import events as bus
from tripod.chat import writer as chat_send
from tripod.decisions import writer as decisions_log
from tripod.ledger.entry import commit_body, entry_leaf_hash, format_canonical, header_auth
from tripod.ledger.kinds.trust import ACCEPTED
from tripod.ledger.places import RECORD
from tripod.ledger.tlog.note import SigningKey
from tripod.projections.decisions.format import split_decision_log
from tripod.team.team import Team
from tripod.trust import seal as sealing
from tripod.trust.acceptance import AcceptanceRequest, accept_findings
from tripod.verify.run import open_run, run

__all__ = ["DEEDS"]

Deed = Callable[[Case], int]
DEEDS: dict[str, Deed] = {}


def _deed(name: str) -> Callable[[Deed], Deed]:
    def keep(deed: Deed) -> Deed:
        DEEDS[name] = deed
        return deed

    return keep


# Edits ------------------------------------------------------------------------------------------


def _flipped(case: Case, data: bytes) -> bytes:
    """The bytes with a bit flipped, cut, grown, or with a part said in other words."""
    at, how = case.rng.randrange(len(data)), case.rng.random()
    if how < 0.7:
        return data[:at] + bytes([data[at] ^ 1 << case.rng.randrange(8)]) + data[at + 1 :]
    return data[:at] if how < 0.8 else data + case.rng.randbytes(1) if how < 0.9 else data[::-1]


def _edit(column: str) -> Deed:
    def do(case: Case) -> int:
        seq = case.seq(0)
        row = case.rows[seq]
        old = {"header": format_canonical(row.head), "body": row.body, "salt": row.salt}.get(column)
        new: object
        if column == "seq":
            new = case.rng.choice((-1 - seq, len(case.rows) + seq, 2**62 + seq))
        elif old is None:
            text = str(row.head[column])
            new = case.rng.choice((f"{text}x", text[1:], text.swapcase(), "ledger.opened1"))
        elif column != "header" and case.rng.random() < 0.1:
            new = None
        elif case.rng.random() < 0.1:
            other = case.rows[(seq + 1) % len(case.rows)]
            new = {"header": format_canonical(other.head), "body": other.body, "salt": other.salt}[
                column
            ]
        else:
            new = _flipped(case, old)
        with unguarded(database(case.root)) as db:
            db.execute(f"UPDATE entries SET {column} = ? WHERE seq = ?", (new, seq))
        return seq

    return do


for _column in ("seq", "id", "kind", "stream", "header", "salt", "body"):
    DEEDS[f"edit {_column}"] = _edit(_column)


@_deed("edit signature")
def _edit_signature(case: Case) -> int:
    one, other = case.rng.sample(_signed(case.rows), 2)
    record = case.rows[one].auth
    new = case.rng.choice((None, _flipped(case, record), case.rows[other].auth + b"x"))
    with unguarded(database(case.root)) as db:
        db.execute("UPDATE entries SET auth = ? WHERE seq = ?", (new, one))
    return one


def _signed(rows: list[Row]) -> list[int]:
    """Entries that their actor signed."""
    return [seq for seq, row in enumerate(rows) if row.auth is not None]


@_deed("edit blob")
def _blob(case: Case) -> int:
    with unguarded(database(case.root)) as db:
        rows = db.execute("SELECT number, sha256, bytes FROM blobs").fetchall()
        number, digest, data = case.rng.choice(rows)
        column = case.rng.choice(("sha256", "bytes", "number"))
        new = {
            "sha256": _flipped(case, digest),
            "bytes": _flipped(case, data),
            "number": len(rows) + number + case.rng.randrange(1, 99),
        }[column]
        db.execute(f"UPDATE blobs SET {column} = ? WHERE number = ?", (new, number))
    return len(case.rows)


def _lines(case: Case) -> tuple[str, list[bytes]]:
    """A chat or the log, as lines."""
    path = f"{case.root}/{case.rng.choice(('chat/live.chat', 'chat/side.chat', 'scribe/log.md'))}"
    with open(path, "rb") as file:
        return path, file.read().split(b"\n")


def _put(path: str, lines: list[bytes]) -> None:
    with open(path, "wb") as file:
        file.write(b"\n".join(lines))


@_deed("edit file")
def _edit_file(case: Case) -> int:
    root = Path(case.root)
    paths = [*root.glob("*/*.chat"), *root.glob("events/**/*.event"), root / "scribe/log.md"]
    path = case.rng.choice(sorted(paths))
    lines = path.read_bytes().split(b"\n")
    at = case.rng.choice([number for number, line in enumerate(lines) if len(line) > 4])
    lines[at] = lines[at][:-1] + (b"x" if lines[at][-1:] != b"x" else b"y")
    _put(str(path), lines)
    return len(case.rows)


@_deed("edit file among warnings")
def _edit_among_warnings(case: Case) -> int:
    with at_home(case.home), Team(case.root) as team, team.act() as act:
        names = (f"scribe/{number}.md" for number in range(60))
        act.append([drafts.displaced(name, "not ours", b"x") for name in names])
    return _edit_file(case)


@_deed("cut the log")
def _cut_the_log(case: Case) -> int:
    """At a piece's border: the bytes are what the ledger gave as of an earlier entry."""
    path = Path(case.root) / "scribe/log.md"
    header, pieces = split_decision_log(path.read_bytes())
    path.write_bytes(header + b"".join(pieces[: case.rng.randrange(len(pieces))]))
    return len(case.rows)


@_deed("foreign line")
def _foreign_line(case: Case) -> int:
    path, lines = _lines(case)
    at = case.rng.randrange(1, len(lines) - 2)  # not at the end: others may append
    lines.insert(at, case.rng.choice((lines[at], b"bWFsbG9yeTogeWVz", b"### D-1 Nobody decided")))
    _put(path, lines)
    return len(case.rows)


@_deed("edit record")
def _edit_record(case: Case) -> int:
    files = read_files(f"{case.root}/{RECORD}")
    path = case.rng.choice(sorted(files))
    at = case.rng.randrange(len(files[path]))
    data = bytearray(files[path])
    data[at] ^= 1 << case.rng.randrange(8)
    with open(f"{case.root}/{RECORD}/{path}", "wb") as file:
        file.write(data)
    return len(case.rows)


@_deed("foreign line in the record")
def _record_line(case: Case) -> int:
    folder = f"{case.root}/{RECORD}"
    path = f"{folder}/{next(p for p in sorted(read_files(folder)) if p.startswith('bodies/'))}"
    with open(path, "rb") as file:
        lines = file.read().split(b"\n")
    at = case.rng.randrange(len(lines))
    lines.insert(at, case.rng.choice((lines[at - 2], b"", b'{"seq":%d}' % at, b"x")))
    _put(path, lines)
    return len(case.rows)


# Entries that go, come and change places --------------------------------------------------------

_COLUMNS = "seq, id, kind, stream, header, salt, body"
_UPDATE = "UPDATE entries SET header = ?, salt = ?, body = ? WHERE seq = ?"


@_deed("edit and own hash")
def _own_hash(case: Case) -> int:
    seq = case.seq()
    row = _other_text(case, case.rows[seq])
    head = row.head | {"body": commit_body(row.salt, row.head["kind"], row.body)}
    with unguarded(database(case.root)) as db:
        db.execute(_UPDATE, (format_canonical(head), row.salt, row.body, seq))
    return seq


@_deed("delete")
def _delete(case: Case) -> int:
    seq = case.seq(1, len(case.rows) - 1)
    with unguarded(database(case.root)) as db:
        db.execute("DELETE FROM entries WHERE seq = ?", (seq,))
    return seq


@_deed("delete, numbered anew")
def _delete_and_number(case: Case) -> int:
    """Numbers, commitments and the head fit; a link does not."""
    seq = case.seq(1, len(case.rows) - 1)
    with unguarded(database(case.root)) as db:
        db.execute("DELETE FROM entries WHERE seq = ?", (seq,))
        for number, row in enumerate(case.rows[seq + 1 :], seq):
            header = format_canonical(row.head | {"seq": number})
            db.execute(
                "UPDATE entries SET seq = ?, header = ? WHERE seq = ?", (number, header, number + 1)
            )
        db.execute("UPDATE head SET size = size - 1, tables = tables - 1, files = files - 1")
    return seq


@_deed("delete oldest")
def _delete_oldest(case: Case) -> int:
    with unguarded(database(case.root)) as db:
        db.execute("DELETE FROM entries WHERE seq < ?", (case.seq(1, len(case.rows) - 1),))
    return 0


@_deed("truncate")
def _truncate(case: Case) -> int:
    size = case.seq()
    with unguarded(database(case.root)) as db:
        db.execute("DELETE FROM entries WHERE seq >= ?", (size,))
    return size


@_deed("swap")
def _swap(case: Case) -> int:
    one, other = sorted(case.rng.sample(range(len(case.rows)), 2))
    move = "UPDATE entries SET seq = ? WHERE seq = ?"
    with unguarded(database(case.root)) as db:
        for values in ((-9, one), (one, other), (other, -9)):
            db.execute(move, values)
    return one


@_deed("swap, numbered anew")
def _swap_and_number(case: Case) -> int:
    one, other = sorted(case.rng.sample(range(1, len(case.rows)), 2))
    with unguarded(database(case.root)) as db:
        db.execute("UPDATE entries SET seq = -9 WHERE seq = ?", (one,))
        db.execute("UPDATE entries SET seq = ? WHERE seq = ?", (one, other))
        db.execute("UPDATE entries SET seq = ? WHERE seq = -9", (other,))
        for seq, row in ((one, case.rows[other]), (other, case.rows[one])):
            header = format_canonical(row.head | {"seq": seq, "prev": case.rows[seq].head["prev"]})
            db.execute("UPDATE entries SET header = ? WHERE seq = ?", (header, seq))
    return one


@_deed("repeat")
def _repeat(case: Case) -> int:
    with unguarded(database(case.root)) as db:
        db.execute(
            f"INSERT INTO entries ({_COLUMNS}) SELECT ?, id || 'x', kind, stream, header, salt,"
            " body FROM entries WHERE seq = ?",
            (len(case.rows), case.seq(0)),
        )
    return len(case.rows)


def _said(case: Case, handle: str) -> Row:
    """Words that nobody said, as the next entry."""
    last = case.rows[-1]
    time = case.rng.randrange(10**9)
    index = sum(row.head["stream"] == "chat/live" and "index" in row.data for row in case.rows)
    draft = drafts.sent(
        channel="live", index=index, handle=handle, time=time, text=f"I agree with {time}."
    )
    head = {key: value for key, value in last.head.items() if key not in ("auth", "cause")}
    head |= {"actor": handle, "id": f"0192{case.rng.getrandbits(64):016x}"}
    head |= {"kind": draft.kind, "stream": draft.stream}
    return Row(head, case.rng.randbytes(32), format_canonical(draft.body))


@_deed("foreign row")
def _foreign_row(case: Case) -> int:
    row, size = _said(case, "alex"), len(case.rows)
    head = row.head | {"seq": size, "body": commit_body(row.salt, row.head["kind"], row.body)}
    head["prev"] = entry_leaf_hash(format_canonical(case.rows[-1].head)).hex()
    values = (size, head["id"], head["kind"], head["stream"], format_canonical(head))
    with unguarded(database(case.root)) as db:
        sql = f"INSERT INTO entries ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)"
        db.execute(sql, (*values, row.salt, row.body))
    return size


# Redactions and spelling ------------------------------------------------------------------------


@_deed("fake redaction")
def _fake_redaction(case: Case) -> int:
    seq = case.seq()
    with unguarded(database(case.root)) as db:
        db.execute("UPDATE entries SET salt = NULL, body = NULL WHERE seq = ?", (seq,))
    return seq


@_deed("fake redaction, claimed")
def _claimed(case: Case) -> int:
    """A true entry says so, with what a redaction may keep; body and text of the target stay."""
    size = len(case.rows)
    said = [s for s, row in enumerate(case.rows) if row.head["kind"] == "chat.sent"]
    seq = case.rng.choice(said)
    row, last = case.rows[seq], case.rows[-1]
    draft = drafts.redacted(
        seq=seq, kind="chat.sent", cause=row.head["id"], reason="r", by="a", keep=row.data
    )
    head = {key: value for key, value in last.head.items() if key not in ("auth", "cause")}
    head |= {"actor": "a", "id": draft.id, "kind": draft.kind, "stream": draft.stream}
    fit(case.root, [*case.rows, Row(head, case.rng.randbytes(32), format_canonical(draft.body))])
    return size


@_deed("duplicate JSON key")
def _twice(case: Case) -> int:
    seq, rows = case.seq(), case.rows
    if case.rng.random() < 0.5 and rows[seq].head["kind"] != "seal.made":
        rows[seq] = rows[seq]._replace(body=_doubled(case, rows[seq].body))
        fit(case.root, rows, key=True)
    else:
        fit(
            case.root,
            rows,
            key=True,
            spell=lambda at, header: _doubled(case, header) if at == seq else header,
        )
    return seq


def _doubled(case: Case, data: bytes) -> bytes:
    """An object whose first key stands twice: readers take the last, or the first."""
    name = data[1 : data.index(b":")]
    return b'{%b:"mallory",%b' % (name, data[1:])


# Wiping -----------------------------------------------------------------------------------------


@_deed("wipe")
def _wipe(case: Case) -> int:
    tables = ["entries", "nodes", "head", *(["blobs"] if case.rng.random() < 0.5 else [])]
    with unguarded(database(case.root)) as db:
        for table in tables:
            db.execute(f"DELETE FROM {table}")
    return 0


@_deed("wipe the database")
def _wipe_database(case: Case) -> int:
    shutil.rmtree(f"{case.root}/{RECORD}")
    names = [name for name in os.listdir(case.root) if name.startswith("ledger.db")]
    for name in names if case.rng.random() < 0.5 else ["ledger.db"]:
        os.unlink(f"{case.root}/{name}")
    return 0


@_deed("wipe everything")
def _wipe_everything(case: Case) -> int:
    shutil.rmtree(f"{case.root}/{RECORD}")
    for name in os.listdir(case.root):
        if name.startswith("ledger.db") or name in ("counts.json", ".gitignore"):
            os.unlink(f"{case.root}/{name}")
    return 0


# Rewriting, and all made to fit -----------------------------------------------------------------

_PROTECTION = ("seal.made", "key.set", "actor.enrolled")
_TEXTS = {"chat.sent": ("text",), "bus.published": ("payload",), "decision.logged": ("title",)}


def _other_text(case: Case, row: Row) -> Row:
    """The same entry with other words, or another salt where it has none."""
    for name in _TEXTS.get(row.head["kind"], ()):
        old = row.data[name]
        words = f"other words {case.rng.randrange(10**6)}"
        if isinstance(old, str):
            return row.saying(**{name: words})
        if "text" in old:
            return row.saying(**{name: {"text": words}})
    return row._replace(salt=case.rng.randbytes(32))


def _rewritten(case: Case, first: int, stop: int) -> tuple[list[Row], int]:
    """One entry in a range is changed, and sometimes more after it; none that is signed."""
    rows = case.rows
    theirs = [
        seq
        for seq, row in enumerate(rows)
        if row.auth is None and row.head["kind"] not in _PROTECTION
    ]
    at = case.rng.choice([seq for seq in theirs if first <= seq < stop])
    more = [seq for seq in theirs if seq > at]
    for seq in (at, *case.rng.sample(more, min(len(more), case.rng.randrange(3)))):
        rows[seq] = _other_text(case, rows[seq])
    return rows, at


@_deed("rewrite from k on")
def _rewrite(case: Case) -> int:
    rows, at = _rewritten(case, 1, case.world.now.sealed)
    fit(case.root, rows)
    return at


@_deed("rewrite the tail")
def _rewrite_tail(case: Case) -> int:
    rows, at = _rewritten(case, case.world.now.sealed + 1, len(case.rows))
    fit(case.root, rows)
    return at


@_deed("rewrite with the host's key")
def _rewrite_with_key(case: Case) -> int:
    rows, at = _rewritten(case, 1, len(case.rows))
    fit(case.root, rows, key=True)
    return at


@_deed("truncate and side files")
def _cut(case: Case) -> int:
    """Between two acts: of entries that were signed together, the rest would be missed.

    So would a decision's events, of which one asks for a review.
    """
    rows = case.rows
    ends = [n for n in range(2, len(rows)) if "cause" not in rows[n].head]
    size = case.rng.choice([n for n in ends if not rows[n].auth or not rows[n - 1].auth])
    fit(case.root, rows[:size])
    return size


@_deed("strip all protection")
def _strip_all(case: Case) -> int:
    rows, at = _rewritten(case, 1, len(case.rows))
    first = next(seq for seq, row in enumerate(rows) if row.head["kind"] in _PROTECTION)
    fit(case.root, [_bare(row) for row in rows if row.head["kind"] not in _PROTECTION])
    return min(at, first)


def _accepting(case: Case, rows: list[Row]) -> list[Row]:
    """Entries that accept all that verify finds: of the ledger's own checks as well."""
    fit(case.root, rows)
    with open_run(case.root, keys=[KEY.verifier()]) as evidence:
        report = run(evidence)
    last = {key: value for key, value in rows[-1].head.items() if key not in ("auth", "cause")}
    made = []
    for finding in [one for outcome in report.outcomes for one in outcome.findings]:
        head = {"actor": "alex", "id": f"0192{case.rng.getrandbits(64):016x}"}
        fault = finding.fingerprint
        draft = ACCEPTED.draft({"check": finding.check, "fingerprint": fault, "reason": "So."}, "x")
        head |= {"kind": draft.kind, "stream": draft.stream}
        made.append(Row(last | head, case.rng.randbytes(32), format_canonical(draft.body)))
    return made


@_deed("accept a forgery")
def _accept_forgery(case: Case) -> int:
    rows, at = _rewritten(case, 1, case.world.now.sealed)
    made = _accepting(case, rows)
    assert made
    fit(case.root, [*rows, *made])
    return at


@_deed("accept a finding")
def _accept_finding(case: Case) -> int:
    with at_home(case.home), Team(case.root) as team:
        title = f"Nobody said so {case.rng.random()}"
        decision = decisions_log.DecisionRequest(title, ("alex",), "So there.", refs=())
        decisions_log.log(team, decision, actor="alex")
    with at_home(case.home), Team(case.root) as team:
        request = AcceptanceRequest(check="chat-refs-resolve")
        done = accept_findings(team, request, reason="It is so.", actor="alex")
    assert len(done) == 1
    return len(case.rows)


@_deed("forged append")
def _forged(case: Case) -> int:
    fit(case.root, [*case.rows, _said(case, case.rng.choice(("alex", "bench", "mallory")))])
    return len(case.rows)


@_deed("forged append, of an actor with a key")
def _forged_signed(case: Case) -> int:
    """Unsigned, signed with a key of the attacker's, or with a signature of the actor's."""
    row = _said(case, ACTOR)
    record = case.rows[case.rng.choice(_signed(case.rows))].auth
    lent = row._replace(head=row.head | {"auth": header_auth(record)}, auth=record)
    own = resigned(row, SigningKey(ACTOR, case.rng.randbytes(32)))
    fit(case.root, [*case.rows, case.rng.choice((row, own, lent))])
    return len(case.rows)


@_deed("rewrite an actor's words")
def _rewrite_signed(case: Case) -> int:
    rows = case.rows
    seq = case.rng.choice(_signed(rows))
    rows[seq] = _other_text(case, rows[seq])
    if case.rng.random() < 0.5:
        rows[seq] = resigned(rows[seq], SigningKey(ACTOR, case.rng.randbytes(32)))
    fit(case.root, rows, key=True)
    return seq


@_deed("strip an actor's signature")
def _strip_author(case: Case) -> int:
    rows = case.rows
    seq = case.rng.choice(_signed(rows))
    rows[seq] = _bare(rows[seq])
    fit(case.root, rows, key=True)
    return seq


def _bare(row: Row) -> Row:
    """The same entry as if nobody had signed it."""
    head = {name: value for name, value in row.head.items() if name != "auth"}
    return row._replace(head=head, auth=None)


# Older copies -----------------------------------------------------------------------------------


def _replace(case: Case, stage: Stage, *, home: bool) -> None:
    shutil.rmtree(case.root)
    shutil.copytree(stage.root, case.root, copy_function=shutil.copy2)
    if home:
        shutil.rmtree(case.home)
        shutil.copytree(stage.home, case.home)


@_deed("rollback")
def _rollback(case: Case) -> int:
    stage = case.rng.choice(case.world.before)
    _replace(case, stage, home=False)
    return stage.size


@_deed("rollback of the database")
def _rollback_database(case: Case) -> int:
    sealed = case.world.now.sealed
    stage = case.rng.choice([one for one in case.world.before if one.size < sealed])
    for name in os.listdir(case.root):
        if name.startswith("ledger.db"):
            os.unlink(f"{case.root}/{name}")
    shutil.copy2(database(stage.root), database(case.root))
    return stage.size


@_deed("fork")
def _fork(case: Case) -> int:
    """The signer's memory is put back as well: else it refuses to seal."""
    stage = case.rng.choice(case.world.before[1:])
    _replace(case, stage, home=True)
    with at_home(case.home), Team(case.root) as team:
        for number in range(case.rng.randrange(1, 12)):
            if case.rng.random() < 0.5:
                chat_send.send(team, "live", "alex", f"It went otherwise, {number}.")
            else:
                bus.publish(team, "parser", "task-complete", "normal", f"another {number}")
        sealing.seal(team, "asked")
    return stage.size


@_deed("foreign line at the end")
def _observed(case: Case) -> int:
    others = Original(Path(case.root), Clock(int(time.time())))
    if case.rng.random() < 0.5:
        others.say("side", "mallory", f"I was here {case.rng.random()}")
    else:
        others.publish("mallory", "task-complete", payload=f"{case.rng.random()}")
    return len(case.rows)


# The file, and not what it says -----------------------------------------------------------------


def _in_schema(case: Case, *statements: tuple[str, tuple[object, ...]]) -> int:
    with closing(sqlite3.connect(database(case.root), isolation_level=None)) as db:
        db.execute("PRAGMA writable_schema=ON")
        for sql, values in statements:
            db.execute(sql, values)
        cookie = db.execute("PRAGMA schema_version").fetchone()[0]
        db.execute(f"PRAGMA schema_version={cookie + 1}")
    return len(case.rows)


@_deed("hidden trigger")
def _hidden_trigger(case: Case) -> int:
    name, table = f"sqlite_{case.rng.randrange(9)}", case.rng.choice(("entries", "head", "lines"))
    sql = f"CREATE TRIGGER {name} AFTER INSERT ON {table} BEGIN DELETE FROM manifest; END"
    insert = "INSERT INTO sqlite_schema (type, name, tbl_name, rootpage, sql) VALUES (?,?,?,0,?)"
    return _in_schema(case, (insert, ("trigger", name, table, sql)))


@_deed("foreign index")
def _foreign_index(case: Case) -> int:
    what = case.rng.choice(("entries (seq)", "lines (handle)", "events (us) WHERE acked IS NULL"))
    return _in_schema(case, (f"CREATE INDEX theirs ON {what}", ()))


# Protection taken away --------------------------------------------------------------------------


@_deed("strip a signature")
def _strip_signature(case: Case) -> int:
    """Of the newest seal, so that nothing but its own signature tells."""
    rows = case.rows
    seq = max(n for n, row in enumerate(rows) if row.head["kind"] == "seal.made")
    text = rows[seq].data["note"].partition("\n\n")[0]
    older = next(row for row in rows if row.head["kind"] == "seal.made").data["note"]
    note = case.rng.choice((f"{text}\n\n", f"{text}\n\n{older.partition(chr(10) * 2)[2]}"))
    rows[seq] = rows[seq].saying(note=note)
    fit(case.root, rows)
    return seq


@_deed("strip the record's seal")
def _strip_record(case: Case) -> int:
    path = f"{case.root}/{RECORD}/checkpoint"
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if case.rng.random() < 0.3:
        os.unlink(path)
    else:
        front, _, signature = text.partition("\n\n")
        name, _, payload = signature.rpartition(" ")
        other = payload[:20] + payload[20:].swapcase()
        with open(path, "w", encoding="utf-8") as file:
            file.write(case.rng.choice((f"{front}\n\n", f"{front}\n\n{name} {other}")))
    return len(case.rows)
