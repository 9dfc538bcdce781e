"""Ways to hide a later, different fault behind one that was accepted: all fail.

Each way begins with faults that a person accepts, so that the team is green. Then something else is
wrong, mostly of the same check and at the same place. `verify` must fail, and name it.
"""

import json
import os
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import drafts
import pytest
from accepting import (
    BAD,
    GOOD,
    accept_all,
    begin,
    copied,
    decide,
    failures,
    forge_acceptance,
    judge,
    lines_of,
    say,
    write,
)
from specimens import Row, _ended, _run_of, database, forge, read, unguarded

from tripod.bus import events as bus
from tripod.errors import RefusedError
from tripod.ledger.kinds.team import team_evidence_kept
from tripod.ledger.kinds.trust import ACCEPTED
from tripod.recovery.doctor import examine
from tripod.team.act import draft_event_for_act
from tripod.team.team import Team
from tripod.trust import actors, keys
from tripod.trust.acceptance import AcceptanceRequest, accept_findings, revoke_acceptances
from tripod.verify import finding
from tripod.verify.check import (
    HEADS,
    RECORD,
    ROWS,
    Finding,
    fault_of_difference,
    lets_accept,
    needs,
)
from tripod.verify.checks import CHECKS
from tripod.verify.finding import Acceptance, FindingNames
from tripod.verify.run import verify
from tripod.workers.worker import worker_step

LOG, CHAT, WORKER = "scribe/log.md", "chat/live.chat", "workers/mole-0001.log"
Deed = Callable[[str], object]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = begin(tmp_path_factory.mktemp("sound"))
    with Team(root) as team:
        bus.publish(team, "parser", "task-complete", "low", "0\n" * 40 + "wide " * 100)
    return root


@pytest.fixture
def root(built: str, tmp_path: Path) -> str:
    return copied(built, tmp_path)


# Deeds --------------------------------------------------------------------------------------------


def event(root: str) -> str:
    """The path of the pending event's file."""
    (name,) = (name for name in os.listdir(f"{root}/events") if "parser-task" in name)
    return f"events/{name}"


def edit(old: bytes, new: bytes, path: str = "") -> Deed:
    """Change a file of the team, of the pending event by default; its mode stays."""

    def do(root: str) -> None:
        name = path or event(root)
        before = Path(root, name).read_bytes()
        assert old in before
        write(root, name, before.replace(old, new, 1))

    return do


def again(first: Deed, second: Deed) -> Deed:
    def do(root: str) -> None:
        first(root)
        second(root)

    return do


def another_in_its_place(root: str) -> None:
    """The ledger is made anew, with another decision under the number of the accepted one."""
    rows = read(database(root))
    (seq,) = (n for n, row in enumerate(rows) if row.data.get("title") == "More tea")
    raw = rows[seq].data["observed"].get("raw")
    assert raw is None
    rows[seq] = rows[seq].saying(title="Less tea")
    forge(root, rows)


def refers_elsewhere(root: str) -> None:
    """The accepted decision refers to another line that is not there, and the chain fits."""
    rows = read(database(root))
    (seq,) = (n for n, row in enumerate(rows) if row.data.get("chat_ref") == BAD)
    rows[seq] = rows[seq].saying(chat_ref="live.chat:~L121")
    forge(root, rows)


def said(old: bytes, new: bytes) -> Deed:
    """Change what the last line of the chat says."""

    def do(root: str) -> None:
        lines = lines_of(root, CHAT)
        lines[-2] = b64encode(b64decode(lines[-2]).replace(old, new))
        write(root, CHAT, b"\n".join(lines))

    return do


def cut(root: str) -> None:
    """Cut the last message off the chat."""
    write(root, CHAT, b"\n".join([*lines_of(root, CHAT)[:-2], b""]))


def signed(deed: Deed) -> Deed:
    """Who accepts has a key, so the acceptance is signed."""

    def do(root: str) -> None:
        with Team(root) as team:
            actors.enrol_actor(team, "ann", keys.no_passphrase)
        deed(root)

    return do


def altered_body(root: str) -> None:
    with unguarded(database(root)) as db:
        db.execute(
            "UPDATE entries SET body = CAST(replace(CAST(body AS TEXT), 'More', 'Less') AS BLOB)"
            " WHERE kind = 'decision.logged'"
        )


def altered_table(root: str) -> None:
    with unguarded(database(root)) as db:
        db.execute("UPDATE pieces SET title = 'Other' WHERE id IS NOT NULL")


def link_in_its_place(root: str) -> None:
    path = f"{root}/chat/live.chat"
    os.rename(path, f"{root}/../live.chat")
    os.symlink("../../live.chat", path)


def broken_link(root: str) -> None:
    rows = read(database(root))
    rows[9] = rows[9].headed(prev="0" * 64)
    forge(root, rows, link={9})


def accepting(deed: Deed) -> Deed:
    """What follows is accepted as well, by an entry that no command made."""

    def do(root: str) -> None:
        deed(root)
        found = failures(judge(root))
        assert found
        rows = read(database(root))
        last = rows[-1]
        for one in found:
            body = {"check": one.check, "fingerprint": one.fingerprint, "reason": "fine", "v": 1}
            head = last.head | {
                "id": f"{last.head['id']}{len(rows)}", "kind": ACCEPTED.name, "stream": "findings",
                "actor": "ann", "cause": None,
            }  # fmt: skip
            head = {name: value for name, value in head.items() if value is not None}
            head.pop("auth", None)
            rows.append(
                Row(
                    head,
                    b"s" * 32,
                    json.dumps(body, sort_keys=True, separators=(",", ":")).encode(),
                )
            )
        kept = {n for n, row in enumerate(rows) if row.head.get("prev") == "0" * 64 and n}
        forge(root, rows, link=kept)

    return do


def forged_by(actor: str, **other: str) -> Deed:
    """Another decision without a right reference, accepted by an entry of somebody else's."""

    def do(root: str) -> None:
        decide(root, title="Last tea")
        (found,) = failures(judge(root))
        forge_acceptance(root, found, actor, **other)

    return do


def heading(name: bytes) -> Deed:
    def do(root: str) -> None:
        with open(f"{root}/{LOG}", "ab") as file:
            file.write(b"\n### D-nope %b decided this\n" % name)
        say(root)

    return do


def worker(root: str) -> None:
    """A worker that failed, and a log that grew afterwards."""
    run = "a" * 32
    os.makedirs(f"{root}/workers", exist_ok=True)
    write(root, WORKER, b"ok\n")
    with Team(root) as team, team.act() as act:
        act.append(_run_of("mole-0001", run))
        end = draft_event_for_act(act, "mole-0001", "task-failed", "high", "")
        act.append([team_evidence_kept(WORKER, b"ok\n", 1, None)])
        logs = [(WORKER, sha256(b"ok\n").hexdigest(), 3)]
        ended = drafts.worker_ended(
            name="mole-0001", spawn=run, state="failed", logs=logs, event=end.body["name"]
        )
        worker_step(act, ended, end)
        act.append([_ended(run)])
    write(root, WORKER, b"ok\nfine\n")


def late_event(root: str) -> None:
    """A checkpoint event lies there for a thousand years."""
    write(root, "events/config.yaml", b"pythia-interval: 0\nack-timeout: 1\n")
    with Team(root) as team:
        (id_,) = team.store.db.execute("SELECT id FROM pieces WHERE id IS NOT NULL").fetchone()
        payload = f"Checkpoint at decision 1. Decisions {id_} through {id_}."
        bus.publish(team, "scribe", "pythia-checkpoint", "high", payload)
    say(root)
    rows = read(database(root))
    rows[-1] = rows[-1].headed(at=f"2999{rows[-1].head['at'][4:]}")
    forge(root, rows)


def acknowledge_all(root: str) -> None:
    with Team(root) as team:
        bus.ack_all(team)


def revoke(root: str) -> None:
    accepted = [one.accepted for one in judge(root).outcomes if one.accepted]
    ids = [one.fingerprint for pairs in accepted for one, _ in pairs]
    with Team(root) as team:
        revoke_acceptances(team, ids, reason="no", actor="bob")


def settled(root: str) -> None:
    """A decision whose successor has a right reference; and one that is accepted."""
    bad = decide(root)
    decide(root, GOOD, supersedes=bad)
    decide(root, title="Accepted tea")


def settled_twice(root: str) -> None:
    with Team(root) as team:
        sql = "SELECT supersedes FROM pieces WHERE supersedes IS NOT NULL"
        (bad,) = team.store.db.execute(sql).fetchone()
    decide(root, id_=bad)


def place(found: Finding) -> tuple[str, str]:
    """The check, and the entry or the file."""
    return found.check, found.where.partition(":")[0]


class Way(NamedTuple):
    """What is accepted, what is done then, and the check that must name it."""

    name: str
    first: Deed
    then: Deed
    check: str


REF = "chat-refs-resolve"
SIX = edit(b"  0\n" * 20, b"  1\n" * 20)
AT_THE_SAME_PLACE = [
    Way("another decision in its place, all made to fit", decide, another_in_its_place, REF),
    Way("another in its place, the acceptance signed", signed(decide), another_in_its_place, REF),
    Way("another edit of the same line", edit(b"0\n", b"1\n"), edit(b"1\n", b"2\n"), "drift"),
    Way(
        "the same edit elsewhere, the first undone",
        edit(b"0\n", b"1\n"),
        again(edit(b"1\n", b"0\n"), edit(b"0\n  0\n  wide", b"0\n  1\n  wide")),
        "drift",
    ),
    Way("one more edit below the first six lines", SIX, edit(b"1\n  0\n", b"1\n  2\n"), "drift"),
    Way(
        "another edit inside of a large one",
        SIX,
        edit(b"  1\n" * 20, b"  1\n" * 10 + b"  3\n" + b"  1\n" * 9),
        "drift",
    ),
    Way(
        "an edit at the end of a long line",
        edit(b"wide wide", b"long wide"),
        edit(b" wide \n", b" tail \n"),
        "drift",
    ),
    Way(
        "another mode beside other bytes",
        edit(b"0\n", b"1\n"),
        lambda root: os.chmod(f"{root}/{event(root)}", 0o600),
        "drift",
    ),
    Way(
        "another edit of the log",
        edit(b"Agreed.", b"Nobody agreed.", LOG),
        edit(b"Nobody agreed.", b"Everybody agreed.", LOG),
        "append-only",
    ),
    Way("one more heading", heading(b"Nobody"), heading(b"Nobody"), "count-from-grep"),
    Way(
        "another heading",
        heading(b"Nobody"),
        edit(b"### D-nope Nobody", b"### D-nope Anybody", LOG),
        "count-from-grep",
    ),
    Way("bytes that are no text", edit(b"wide", b"\xff"), edit(b"\xff", b"\xfe"), "drift"),
    Way(
        "characters that nobody sees",
        edit(b"wide", "wi\u200bde".encode()),
        edit("\u200b".encode(), "\u200c".encode()),
        "drift",
    ),
    Way("one more space", edit(b"wide \n", b"wide  \n"), edit(b"  \n", b"   \n"), "drift"),
    Way("an end of a line", edit(b"0\n", b"0\r\n"), edit(b"0\r\n", b"0\r\r\n"), "drift"),
    Way("an empty file", edit(b"0\n", b"1\n"), lambda root: write(root, event(root), b""), "drift"),
    Way("another message in the chat", said(b"message 7", b"no"), said(b"no", b"yes"), "drift"),
    Way("one more message cut off", cut, cut, "drift"),
    Way(
        "another decision taken out of the log",
        edit(b"Agreed.", b"Nobody agreed.", LOG),
        edit(b"Nobody agreed.", b"", LOG),
        "append-only",
    ),
    Way("another wrong reference in its place, all made to fit", decide, refers_elsewhere, REF),
    Way("other bytes behind a log", worker, edit(b"fine", b"done", WORKER), "worker-lifecycle"),
    Way("a late event, then never answered", late_event, acknowledge_all, "events-processed"),
]
"""The new fault is one of the same check, about the same entry or file."""
WAYS = [
    *AT_THE_SAME_PLACE,
    Way("another decision with the same reference", decide, decide, REF),
    Way(
        "a second decision of the same id and words",
        decide,
        lambda root: decide(root, id_=_newest(root)),
        REF,
    ),
    Way("other words in the accepted entry", decide, altered_body, "bodies-present"),
    Way(
        "a changed table, and that accepted",
        decide,
        again(accepting(altered_table), altered_table),
        "drift",
    ),
    Way("a broken link, and that accepted", decide, accepting(broken_link), "chain-links"),
    Way("an acceptance in another's name", signed(decide), forged_by("ann"), "writers-authorised"),
    Way(
        "the acceptance of another check",
        decide,
        forged_by("ann", check="append-only"),
        REF,
    ),
    Way("the acceptance of some digits", decide, forged_by("ann", fingerprint="0" * 64), REF),
    Way("other bytes in a log", worker, edit(b"ok", b"no", WORKER), "drift"),
    Way("the acceptance taken back", decide, revoke, REF),
    Way("a settled decision's id once more", settled, settled_twice, REF),
]


def _newest(root: str) -> str:
    with Team(root) as team:
        sql = "SELECT max(id) FROM pieces"
        return str(team.store.db.execute(sql).fetchone()[0])


def test_there_are_at_least_twenty() -> None:
    assert len({way.name for way in WAYS}) == len(WAYS)
    assert len(AT_THE_SAME_PLACE) >= 20


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_nothing_hides(way: Way, root: str) -> None:
    way.first(root)
    before = failures(judge(root))
    assert before
    accept_all(root)
    way.then(root)
    report = judge(root)
    assert report.exit_code == 1
    named = [one for one in failures(report) if one.check == way.check]
    assert named
    if way in AT_THE_SAME_PLACE:
        assert {place(one) for one in named} & {place(one) for one in before}


def test_an_acceptance_of_what_nobody_can_accept_is_named_and_ignored(root: str) -> None:
    accepting(broken_link)(root)
    report = judge(root)
    assert {one.check for one in failures(report)} == {"chain-links"}
    (note,) = [one for one in report.notes if "chain-links" in one]
    assert note.endswith("accepts a finding of chain-links, and nobody can accept what is wrong "
                         "there: it is ignored")  # fmt: skip


def test_acceptances_count_in_a_ledger_that_verifies_alone(root: str) -> None:
    decide(root)
    accept_all(root)
    for selected in (None, ["chat-refs-resolve"]):
        assert judge(root, select=selected).accepted == 1
    altered_body(root)
    for selected in (None, ["chat-refs-resolve"]):
        report = judge(root, select=selected)
        assert (report.accepted, report.exit_code) == (0, 1)
        (note,) = [one for one in report.notes if "acceptance" in one]
        assert note == "1 acceptance does not count: the ledger does not verify (bodies-present)"


def test_nothing_is_accepted_in_a_ledger_that_does_not_verify(root: str) -> None:
    decide(root)
    broken_link(root)
    every = failures(judge(root))
    assert {one.is_acceptable for one in every} == {True, False}
    for one in every:
        with Team(root) as team, pytest.raises(RefusedError, match="does not verify"):
            accept_findings(team, AcceptanceRequest((one.fingerprint,)), reason="x", actor="ann")


@pytest.mark.parametrize(
    "deed",
    [altered_table, link_in_its_place, edit(b"Agreed.", b"\n<<<<<<< a\n=======\n>>>>>>> b\n", LOG)],
    ids=["a table", "a link in the place of a file", "a file that is half merged"],
)
def test_what_was_not_compared_cannot_be_accepted(deed: Deed, root: str) -> None:
    deed(root)
    found = failures(judge(root))
    assert [one.is_acceptable for one in found] == [False] * len(found) != []


def test_a_log_that_is_cut_further_beside_a_chat_that_is_cut_as_before(root: str) -> None:
    chat = "chat/live.chat"
    logs = [Path(root, LOG).read_bytes()]
    for _ in range(2):
        decide(root, GOOD)
        logs.append(Path(root, LOG).read_bytes())
    say(root)
    cut = Path(root, chat).read_bytes()
    say(root)

    def put(log: bytes) -> Finding:
        write(root, LOG, log)
        write(root, chat, cut)
        (found,) = failures(judge(root))
        return found

    accepted = put(logs[1])
    with Team(root) as team:
        request = AcceptanceRequest((accepted.fingerprint,))
        accept_findings(team, request, reason="x", actor="ann")
    assert put(logs[0]).fingerprint != accepted.fingerprint


def test_the_doctor_agrees_about_what_is_accepted(root: str) -> None:
    def told() -> list[str]:
        return [one.name for one in examine(root).troubles if one.name == "log-altered"]

    worker(root)
    assert told() == ["log-altered"]
    accept_all(root)
    assert told() == []
    edit(b"fine", b"done", WORKER)(root)
    assert told() == ["log-altered"]


def test_a_message_that_was_rewritten_under_a_reference_is_neither_accepted_nor_settled(
    root: str,
) -> None:
    rows = read(database(root))
    (seq,) = (n for n, row in enumerate(rows) if row.data.get("text") == {"text": "message 1"})
    rows[seq] = rows[seq].saying(text={"text": "message one"})
    forge(root, rows)
    (found,) = failures(judge(root))
    assert "its leaf hash is another now" in found.message
    assert not found.is_acceptable
    (id_,) = [row.data["id"] for row in rows if row.data.get("title") == "Tea"]
    decide(root, GOOD, supersedes=id_)
    assert failures(judge(root)) == [found]


def test_old_acceptances_in_any_number_hide_nothing(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finding, "KEPT", 2)
    for _ in range(2):
        decide(root)
        decide(root)
        accept_all(root)
    decide(root)
    report = judge(root)
    assert (report.failures, report.accepted) == (1, 4)
    (one,) = failures(report)
    assert one.seq is not None
    assert report.head is not None
    assert one.seq == report.head[0] - 1


# One by one ---------------------------------------------------------------------------------------


def names(*accepted: Acceptance, **more: Any) -> FindingNames:
    return FindingNames(
        lambda seq: f"o {seq} leaf" if seq < 50 else None,
        {one.fingerprint: one for one in accepted},
        **more,
    )


def by(found: Finding, seq: int = 60) -> Acceptance:
    named = names().sort(found)
    assert named is not None
    return Acceptance(seq, found.check, named.fingerprint, "ann", "", "")


ONE = Finding("a", "it is bad", "entry 7", ("shown",), seq=7)


def test_a_fingerprint_is_what_its_page_says() -> None:
    parts = ["tripod finding v1", "a", "failure", "o 7 leaf", "", "it is bad\nshown"]
    assert by(ONE).fingerprint == sha256(json.dumps(parts).encode()).hexdigest()
    moved = Finding("a", "x", "chat/live.chat:9", fault="f")
    parts = ["tripod finding v1", "a", "failure", "", "chat/live.chat", "f"]
    assert by(moved).fingerprint == sha256(json.dumps(parts).encode()).hexdigest()


@pytest.mark.parametrize(
    "other",
    [
        {"check": "b"}, {"message": "it is worse"}, {"where": "entry 8"}, {"evidence": ("s",)},
        {"severity": "warning"}, {"seq": 8}, {"seq": None}, {"fault": "f"},
    ],
)  # fmt: skip
def test_another_fault_has_another_fingerprint(other: dict[str, Any]) -> None:
    assert names(by(ONE)).sort(ONE) is None
    named = names(by(ONE)).sort(replace(ONE, **other))
    assert named is not None
    assert named.fingerprint not in ("", by(ONE).fingerprint)


def test_a_line_that_is_gone_is_no_line_that_is_empty() -> None:
    want = b"a\n\nb\n"
    assert fault_of_difference(want, b"\nb\n") != fault_of_difference(want, b"\n\nb\n")
    assert fault_of_difference(b"\nb\n", want) != fault_of_difference(b"\n\nb\n", want)


def test_two_files_are_not_one_whose_name_has_two_lines(root: str) -> None:
    for name in "ab":
        write(root, name, b"?")
    (two,) = _drift(root)
    os.remove(f"{root}/a")
    os.rename(f"{root}/b", f"{root}/a\nb")
    (one,) = _drift(root)
    assert one.fingerprint != two.fingerprint


def _drift(path: str | Path) -> tuple[Finding, ...]:
    return next(one for one in verify(path).outcomes if one.check == "drift").findings


def test_an_id_is_the_same_wherever_it_is_asked_from(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, "stranger.txt", b"?")
    (before,) = _drift(root)
    monkeypatch.chdir(root)
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for path in (".", "..", os.path.dirname(root)):
        (found,) = _drift(path)
        assert (found.fingerprint, found.file) == (before.fingerprint, before.file)
    os.rename(root, moved / ".nbs")
    (found,) = _drift(moved)
    assert found.fingerprint == before.fingerprint


def test_nobody_accepts_what_comes_later() -> None:
    assert names(by(ONE, 8)).sort(ONE) is None
    assert names(by(ONE, 7)).sort(ONE) is not None
    assert names(by(ONE, 3)).sort(ONE) is not None


def test_of_several_that_are_alike_each_is_accepted_by_itself() -> None:
    first, second, third = names(), names(by(ONE)), names()
    assert len({n.fingerprint for n in (first.sort(ONE), first.sort(ONE)) if n}) == 2
    assert second.sort(ONE) is None
    later = second.sort(ONE)
    assert later is not None
    assert (second.accepted, later.is_acceptable) == (1, True)
    assert third.sort(ONE) != later


def test_a_check_of_the_ledger_lets_nothing_be_accepted() -> None:
    named = names(by(ONE), is_acceptable=False).sort(ONE)
    assert named is not None
    assert (named.fingerprint, named.is_acceptable) == (by(ONE).fingerprint, False)
    for blind in (replace(ONE, fault=None), replace(ONE, seq=99)):
        named = names(by(blind)).sort(blind)
        assert named is not None
        assert not named.is_acceptable


def test_very_many_findings_take_no_more_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "NAMED", 2)
    all_of = names()
    found = [all_of.sort(replace(ONE, message=str(n))) for n in range(4)]
    assert [one is not None and one.is_acceptable for one in found] == [True, True, False, False]
    warning = all_of.sort(replace(ONE, severity="warning"))
    assert warning is not None
    assert warning.is_acceptable


def test_the_checks_of_the_ledger_are_those_that_nobody_can_accept() -> None:
    assert {one.NAME for one in CHECKS if not lets_accept(one)} == {
        "ledger-missing", "sequence", "canonical-bytes", "chain-links", "bodies-present",
        "kinds-known", "clock-forward", "writers-authorised", "seals-open", "record-agrees",
        "pins-extend", "peers-agree", "trailers-agree",
    }  # fmt: skip
    assert all(not lets_accept(one) for one in CHECKS if needs(one, ROWS, RECORD, HEADS))
