"""A finding that was accepted fails nothing; nothing else can hide behind it."""

from base64 import b64encode
from pathlib import Path

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
    report_as_json,
    say,
    write,
)

from tripod.bus import events as bus
from tripod.chat import writer as chat_send
from tripod.errors import BadArgumentError, NotFoundError, RefusedError
from tripod.ledger import MalformedError
from tripod.ledger.tlog.note import COSIGNATURE, SigningKey
from tripod.team import adoption
from tripod.team.team import Team
from tripod.trust.acceptance import (
    AcceptanceRequest,
    accept_findings,
    revoke_acceptances,
)
from tripod.verify.anchors.policy import parse
from tripod.verify.check import Finding
from tripod.verify.reporters import text


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> str:
    return begin(tmp_path_factory.mktemp("sound"))


@pytest.fixture
def root(built: str, tmp_path: Path) -> str:
    return copied(built, tmp_path)


def accept(root: str, *ids: str, actor: str = "ann", **request: object) -> list[str]:
    """Accept; give the fingerprints."""
    with Team(root) as team:
        asked = AcceptanceRequest(ids, **request)  # type: ignore[arg-type]
        done = accept_findings(team, asked, reason="we know", actor=actor)
    return [one.fingerprint for one in done]


# Back to green ------------------------------------------------------------------------------------


def test_a_team_that_is_red_gets_green_again(root: str) -> None:
    decide(root)
    (found,) = failures(judge(root))
    assert found.is_acceptable
    assert found.fingerprint[:12] in text.render(judge(root))
    accept(root, found.fingerprint[:12])
    report = judge(root)
    assert (report.exit_code, report.failures, report.accepted) == (0, 0, 1)
    (told,) = [one for one in report.outcomes if one.accepted_count]
    assert (told.check, told.said, told.findings) == ("chat-refs-resolve", "clean, except", ())
    ((same, by),) = told.accepted
    assert (same, by.actor, by.reason) == (found, "ann", "we know")


def test_every_way_of_reporting_says_the_same(root: str) -> None:
    decide(root)
    accept_all(root)
    report = judge(root)
    assert report.head is not None
    brief, whole = text.brief_text(report), text.render(report)
    assert brief.endswith("; 1 finding is accepted\n")
    assert brief.count("\n") == 1
    assert "0 findings, 0 warnings, 1 accepted; head" in whole
    assert "clean, except   chat-refs-resolve    1 accepted; decisions 2" in whole
    assert ": known" not in whole
    for shown in (text.brief_text(report, accepted=True), text.render(report, accepted=True)):
        assert f"{BAD} is beyond the end" in shown
        assert f"  accepted by ann in entry {report.head[0] - 1}: known" in shown
    value = report_as_json(report)
    assert (value["exit_code"], value["failures"], value["accepted"]) == (0, 0, 1)
    (check,) = [one for one in value["checks"] if one["verdict"] == "clean, except"]
    (one,) = check["accepted"]["findings"]
    assert (check["accepted"]["count"], check["findings"]) == (1, [])
    assert one["accepted"] | {"at": ""} == {
        "entry": report.head[0] - 1, "actor": "ann", "at": "", "reason": "known",
    }  # fmt: skip


def test_an_acceptance_is_taken_back_by_an_entry(root: str) -> None:
    decide(root)
    accept_all(root)
    (found,) = [one.accepted[0][0] for one in judge(root).outcomes if one.accepted]
    with Team(root) as team:
        (done,) = revoke_acceptances(team, [found.fingerprint[:6]], reason="no", actor="bob")
        assert team.store.entry(done.seq).kind == "acceptance.revoked"  # type: ignore[union-attr]
    assert failures(judge(root)) == [found]
    with Team(root) as team, pytest.raises(NotFoundError, match=r"no finding .* is accepted"):
        revoke_acceptances(team, [found.fingerprint], reason="no", actor="bob")
    accept(root, found.fingerprint)
    assert judge(root).exit_code == 0


def test_all_of_a_check_from_before_a_time(root: str) -> None:
    for _ in range(3):
        decide(root)
    assert accept(root, check="chat-refs-resolve", before=1_000_000_000) == []
    assert len(accept(root, check="chat-refs-resolve", before=4_000_000_000)) == 3
    assert judge(root).exit_code == 0
    with pytest.raises(BadArgumentError, match="no check 'chat-refs'"):
        accept(root, check="chat-refs")
    with pytest.raises(RefusedError, match="wrong with the ledger itself: nobody can accept"):
        accept(root, check="sequence")


def test_a_baseline_is_the_failures_of_a_report_that_are_still_there(
    root: str, tmp_path: Path
) -> None:
    import json

    decide(root)
    decide(root)
    value = report_as_json(judge(root))
    decide(root)
    baseline = tmp_path / "report.json"
    baseline.write_text(json.dumps(value), encoding="utf-8")
    old = {one["fingerprint"] for check in value["checks"] for one in check["findings"]}
    assert set(accept(root, report=str(baseline))) == old
    (new,) = failures(judge(root))
    assert new.fingerprint not in old
    for text_ in ("{}", "[]", "no JSON", '{"checks": [{"check": 1, "findings": 2}]}', "[" * 99999):
        baseline.write_text(text_, encoding="utf-8")
        with pytest.raises(BadArgumentError, match="is no report"):
            accept(root, report=str(baseline))
    with pytest.raises(BadArgumentError, match="No such file"):
        accept(root, report=str(tmp_path / "none"))


def test_a_baseline_may_be_the_report_of_a_clone_that_was_judged_by_its_refs(
    root: str, tmp_path: Path
) -> None:
    """Then there is a part for each replica; nothing of it was accepted, with exit code 0."""
    import json

    decide(root)
    (found,) = failures(judge(root))
    value = {"checks": [], "parts": [{"checks": []}, report_as_json(judge(root))]}
    baseline = tmp_path / "report.json"
    baseline.write_text(json.dumps(value), encoding="utf-8")
    assert accept(root, report=str(baseline)) == [found.fingerprint]


def test_more_findings_than_a_report_keeps_are_accepted(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tripod.verify import finding

    for _ in range(5):
        decide(root)
    monkeypatch.setattr(finding, "KEPT", 2)
    assert len(accept(root, check="chat-refs-resolve")) == 5
    report = judge(root)
    assert (report.exit_code, report.accepted) == (0, 5)
    assert sum(len(one.accepted) for one in report.outcomes) == 2
    assert "chat-refs-resolve: and 3 more accepted" in text.render(report, accepted=True)
    decide(root)
    assert (judge(root).exit_code, judge(root).failures) == (1, 1)


def test_what_is_no_id_of_a_finding_is_refused(root: str) -> None:
    decide(root)
    (found,) = failures(judge(root))
    for id_ in ("", "3f", "xyz1", f"{found.fingerprint}0", "../../x"):
        with pytest.raises(BadArgumentError, match="is no finding's id"):
            accept(root, id_)
    with pytest.raises(NotFoundError, match="there is no finding"):
        accept(root, ("0" if found.fingerprint[0] != "0" else "1") * 12)
    for reason in ("", "two\nlines", "x" * 1001):
        with Team(root) as team, pytest.raises(BadArgumentError, match="--reason"):
            accept_findings(team, AcceptanceRequest((found.fingerprint,)), reason=reason, actor="a")
    accept(root, found.fingerprint)
    with pytest.raises(RefusedError, match="is accepted already, by ann in entry"):
        accept(root, found.fingerprint)


def test_lines_that_turn_up_later_are_no_reason_for_a_reference(root: str) -> None:
    """They claim a time before the decision; the ledger took them in after it."""
    decide(root)
    (found,) = failures(judge(root))
    lines = [b64encode(b"ann|1000000000: no. %d" % n) + b"\n" for n in range(1200)]
    with Path(root, "chat/live.chat").open("ab") as file:
        file.writelines(lines)
    with Team(root) as team:
        adoption.sync(team)
    (later,) = failures(judge(root))
    assert "is later than the decision" in later.message
    assert later.fingerprint == found.fingerprint


# What a finding's id depends on -------------------------------------------------------------------


def test_an_id_stays_when_lines_move_and_the_team_goes_on(root: str) -> None:
    decide(root, id_="D-1000")  # before anybody said anything
    (found,) = failures(judge(root))
    say(root, 30)
    decide(root, GOOD)
    log = Path(root, "scribe/log.md")
    with log.open("a", encoding="utf-8") as file:
        file.write("\nA note by hand.\n")
    (later,) = failures(judge(root))
    assert later.fingerprint == found.fingerprint
    assert later.message != found.message, "the end of the file is another"
    say(root, 60)
    (passed,) = failures(judge(root))
    assert "is later than the decision" in passed.message
    assert passed.fingerprint == found.fingerprint


def test_an_id_stays_when_a_chat_of_the_missing_name_begins(root: str) -> None:
    decide(root, "old.chat:~L5")
    (found,) = failures(judge(root))
    assert "names no chat of this team" in found.message
    with Team(root) as team:
        chat_send.create(team, "old")
    for expected in ("is beyond the end of the file", "is later than the decision"):
        (later,) = failures(judge(root))
        assert expected in later.message
        assert later.fingerprint == found.fingerprint
        with Team(root) as team:
            chat_send.send(team, "old", "ann", "hello")


def test_an_id_stays_when_an_event_comes_after_its_assessment(root: str) -> None:
    """The event is published by hand, as `pythia-fires` asks for it."""
    ids = decide(root, GOOD), decide(root, GOOD)
    text_ = "## Pythia Checkpoint\n\nDecisions reviewed: {} through {} (2 decisions)\n".format(*ids)
    with Team(root) as team:
        chat_send.send(team, "live", "pythia", text_)

    def told() -> Finding:
        (found,) = (one for one in failures(judge(root)) if one.check == "checkpoint-preceded")
        return found

    found = told()
    with Team(root) as team:
        payload = "Checkpoint at decision 2. Decisions {} through {}.".format(*ids)
        bus.publish(team, "scribe", "pythia-checkpoint", "high", payload)
    later = told()
    assert later.message == f"{found.message}: the one of its range came after it"
    assert later.fingerprint == found.fingerprint


def test_an_id_does_not_depend_on_how_the_team_is_named(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, "chat/live.chat", Path(root, "chat/live.chat").read_bytes().replace(b"\n", b" ", 1))
    decide(root)
    ids = {one.fingerprint for one in failures(judge(root))}
    assert len(ids) > 1
    monkeypatch.chdir(root)
    for path in (".", "..", f"{root}/../.nbs"):
        assert {one.fingerprint for one in failures(judge(path))} == ids


def test_what_is_not_in_the_ledger_yet_cannot_be_accepted(root: str) -> None:
    log = Path(root, "scribe/log.md")
    piece = log.read_text(encoding="utf-8").partition("### D-")[2]
    text_ = piece.replace(GOOD, BAD)
    log.write_text(f"{log.read_text(encoding='utf-8')}\n### D-1{text_}", encoding="utf-8")
    found = [one for one in failures(judge(root)) if one.check == "chat-refs-resolve"]
    assert [one.is_acceptable for one in found] == [False]


# A decision that takes the place of another -------------------------------------------------------


def test_a_successor_with_a_right_reference_settles_the_finding(root: str) -> None:
    bad = decide(root)
    assert judge(root).exit_code == 1
    with Team(root) as team:
        from tripod.decisions import writer

        writer.log(
            team,
            writer.DecisionRequest("Tea", ("ann",), "Agreed.", refs=[GOOD], supersedes=bad),
        )
    report = judge(root)
    assert report.exit_code == 0
    (told,) = [one for one in report.outcomes if one.check == "chat-refs-resolve"]
    assert told.coverage["settled by a successor"] == 1


@pytest.mark.parametrize(
    ("ref", "status"), [(BAD, "decided"), (None, "decided"), (GOOD, "reversed")]
)
def test_no_other_successor_settles_it(root: str, ref: str | None, status: str) -> None:
    bad = decide(root)
    (found,) = failures(judge(root))
    decide(root, ref, supersedes=bad, status=status)
    assert found in failures(judge(root))


def test_a_second_decision_of_the_id_is_not_settled(root: str) -> None:
    bad = decide(root)
    (found,) = failures(judge(root))
    with Team(root) as team:
        from tripod.decisions import writer

        request = writer.DecisionRequest("T", ("ann",), "A.", refs=[GOOD], supersedes=bad)
        writer.log(team, request)
    assert judge(root).exit_code == 0
    decide(root, id_=bad)
    told = failures(judge(root))
    assert found in told
    assert len([one for one in told if one.check == "chat-refs-resolve"]) == 2


# Who may accept -----------------------------------------------------------------------------------


def test_a_policy_says_who_may_accept(root: str) -> None:
    from tripod.trust import actors, keys

    decide(root)
    (found,) = failures(judge(root))
    write(root, "policy.yaml", b"accept: [bob]\n")
    seq = forge_acceptance(root, found)
    report = judge(root)
    assert (report.exit_code, report.accepted) == (1, 0)
    (note,) = report.notes
    assert note.startswith(f"entry {seq} accepts a finding of chat-refs-resolve, and ann may not")
    seq = forge_acceptance(root, found, "bob")
    assert any(f"entry {seq} accepts" in one and "did not sign" in one for one in judge(root).notes)
    with pytest.raises(RefusedError, match="the policy lets bob accept findings, and not ann"):
        accept(root, found.fingerprint)
    with pytest.raises(RefusedError, match="bob has no key"):
        accept(root, found.fingerprint, actor="bob")
    with Team(root) as team:
        actors.enrol_actor(team, "bob", keys.no_passphrase)
    accept(root, found.fingerprint, actor="bob")
    with Team(root) as team:
        assert next(iter(team.store.raw(kinds=("finding.accepted",), newest_first=True))).auth
    assert judge(root).exit_code == 0
    write(root, "policy.yaml", b"accept: [carol]\n")
    assert judge(root).exit_code == 1


def test_a_policy_binds_a_name_to_a_key(root: str, tmp_path: Path) -> None:
    """Another replica can enrol an ann of its own: the handle alone would count there, too."""
    from tripod.trust import actors, keys

    decide(root)
    (found,) = failures(judge(root))
    with Team(root) as team:
        vkey = actors.enrol_actor(team, "ann", keys.no_passphrase)
    other = SigningKey("ann", bytes(32)).verifier().format()
    write(root, "policy.yaml", f"accept: [bob, {other}]\n".encode())
    with pytest.raises(RefusedError, match="ann signs with another key: "):
        accept(root, found.fingerprint)
    write(root, "policy.yaml", f"accept: [{vkey}, {other}]\n".encode())
    accept(root, found.fingerprint)
    assert judge(root).exit_code == 0
    write(root, "policy.yaml", f"accept: [bob, {other}]\n".encode())
    report = judge(root)
    assert (report.exit_code, report.accepted) == (1, 0)
    (note,) = report.notes
    assert "and ann signed it with another key (accept in policy.yaml)" in note
    write(root, "policy.yaml", f"accept: {vkey}\n".encode())
    assert forge_acceptance(root, found)
    assert any("ann did not sign it" in one for one in judge(root).notes)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("ann+1f2e3d4c+AQ", "is not a verifier key"),
        ("ann+", "is not a verifier key"),
        (SigningKey("ann", bytes(32), COSIGNATURE).verifier().format(), "its type is 4"),
    ],
)
def test_a_misspelled_key_of_a_policy_is_refused(name: str, why: str) -> None:
    with pytest.raises(MalformedError, match=why):
        parse(f"accept: [bob, {name}]\n".encode())


def test_an_acceptance_is_signed_where_the_actor_has_a_key(root: str) -> None:
    from tripod.trust import actors, keys

    decide(root)
    with Team(root) as team:
        actors.enrol_actor(team, "ann", keys.no_passphrase)
    accept_all(root)
    with Team(root) as team:
        (entry,) = team.store.raw(kinds=("finding.accepted",))
    assert entry.auth is not None
