"""Anchoring a team's seals: at a witness, at a timestamp authority, and when they refuse."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from authority import Authority, serving
from doors.inside import begin, keyed, run
from sealed import LOG, WITNESSES
from witnessing import NAME, served

from tripod.bus import events
from tripod.errors import BadArgumentError, NotFoundError, RefusedError, UnreachableError
from tripod.ledger.sqlite.reader import read_only
from tripod.ledger.tlog.note import COSIGNATURE, Note, SigningKey, VerifierKey, parse_note, verify
from tripod.ledger.tlog.receipt import (
    SIZE_TYPE,
    TEXT_TYPE,
    Response,
    format_witness_signatures,
    parse_witness_request,
)
from tripod.ledger.tlog.seal import open_seal
from tripod.team.team import Team
from tripod.trust import anchor as anchoring
from tripod.trust.anchor import anchor_by_timestamp, check_anchor_url
from tripod.trust.seal import new_sealing_key
from tripod.trust.witness import WitnessFolder


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A team at work whose ledger has a key."""
    return keyed(tmp_path, monkeypatch)


@pytest.fixture
def witness(tmp_path: Path, project: Path) -> WitnessFolder:
    """A witness that knows the team's ledger."""
    place = WitnessFolder.begin(str(tmp_path / "w"), NAME)
    place.trust(vkey_of(project))
    return place


def vkey_of(project: Path) -> str:
    with Team(f"{project}/.nbs") as team:
        vkey = team.store.db.execute("SELECT vkey FROM keys").fetchone()[0]
        assert isinstance(vkey, str)
        return vkey


def anchors(project: Path) -> list[tuple[str, str, int]]:
    db = read_only(f"{project}/.nbs/ledger.db")
    try:
        return db.execute("SELECT method, name, size FROM anchors ORDER BY seq").fetchall()
    finally:
        db.close()


def work(project: Path) -> None:
    with Team(f"{project}/.nbs") as team:
        events.publish(team, "ann", "done", "low", "more")


# A witness -------------------------------------------------------------------------------------


def test_rounds_at_a_witness(project: Path, witness: WitnessFolder, tmp_path: Path) -> None:
    vkey = witness.key().verifier().format()
    with served(witness) as server:
        for _ in range(3):
            work(project)
            done = run(project, "anchor", "witness", server.url, "--key", vkey)
            assert (done.code, done.err) == (0, ""), done.err
            assert done.out.startswith(f"Cosigned by {NAME} at 20".encode())
    rounds = anchors(project)
    assert [row[:2] for row in rounds] == [("witness", NAME)] * 3
    # The witness has seen what the ledger says that it has.
    ((_, seal, _),) = witness.seen()
    assert seal is not None
    assert seal.size == rounds[-1][2] > rounds[0][2]
    listed = run(project, "anchor", "list").out.decode().splitlines()
    assert len(listed) == 3
    seq = listed[-1].split()[0]
    assert run(project, "anchor", "receipt", seq, str(tmp_path / "out")).code == 0
    note = parse_note((tmp_path / "out/receipt.note").read_bytes())
    opened = open_seal(note, [VerifierKey.parse(vkey_of(project))], [witness.key().verifier()])
    assert opened.seal == seal
    assert len(opened.cosignatures) == 1
    assert run(project, "verify").code == 0


def test_a_witness_in_a_folder_and_by_files(
    project: Path, witness: WitnessFolder, tmp_path: Path
) -> None:
    done = run(project, "anchor", "witness", witness.path, "--json")
    assert done.code == 0, done.err
    work(project)
    request = run(project, "anchor", "ask", NAME).out
    work(project)
    answer = run(project, "witness", "sign", witness.path, given=request)
    assert answer.code == 0, answer.err
    vkey = witness.key().verifier().format()
    (tmp_path / "answer").write_bytes(answer.out)
    taken = run(project, "anchor", "take", str(tmp_path / "answer"), "--key", vkey)
    assert taken.code == 0, taken.err
    assert [row[2] for row in anchors(project)] == [
        int(line.split()[2]) for line in run(project, "anchor", "list").out.decode().splitlines()
    ]
    assert anchors(project)[-1][2] == parse_witness_request(request).old + 3
    # Asked again with the old size, it says from where.
    again = run(project, "witness", "sign", witness.path, given=request)
    assert again.code == 1
    assert "--old" in again.err


def test_without_a_target_the_policy_is_asked(
    project: Path, witness: WitnessFolder, tmp_path: Path
) -> None:
    key = witness.key().verifier()
    missing = run(project, "anchor", "witness")
    assert (missing.code, "which witness" in missing.err) == (2, True)
    policy = project / ".nbs/policy.tlog"
    with served(witness) as server:
        policy.write_text(f"witness w1 {key.format()} {server.url}/\nquorum none\n")
        assert run(project, "anchor", "witness").code == 0
        assert run(project, "anchor", "witness", server.url).code == 0
        # One that is silent does not keep the others from being asked.
        silent = WITNESSES[1].verifier().format()
        policy.write_text(
            f"witness w2 {silent} http://127.0.0.1:9/\n"
            f"witness w1 {key.format()} {server.url}\nquorum none\n"
        )
        done = run(project, "anchor", "witness")
        assert (done.code, b"Cosigned by" in done.out) == (3, True)
    unknown = run(project, "anchor", "witness", "http://127.0.0.1:19")
    assert (unknown.code, "whose signature" in unknown.err) == (2, True)
    policy.write_text("nonsense\n")
    assert run(project, "anchor", "witness").code == 1
    assert run(project, "anchor", "witness", str(tmp_path / "none")).code == 1


def test_a_rollback_is_told(project: Path, witness: WitnessFolder, tmp_path: Path) -> None:
    shutil.copytree(project / ".nbs", tmp_path / "backup")
    for _ in range(10):
        work(project)
    assert run(project, "anchor", "witness", witness.path).code == 0
    ((_, seen, _),) = witness.seen()
    # The host is in other hands: all files are put back, and the signer's memory wiped.
    shutil.rmtree(project / ".nbs")
    shutil.copytree(tmp_path / "backup", project / ".nbs")
    shutil.rmtree(tmp_path / "home/seals")
    done = run(project, "anchor", "witness", witness.path)
    assert (done.code, "ROLLBACK" in done.err) == (1, True), done.err
    # It goes on, past what the witness saw: now that is a fork.
    for _ in range(20):
        work(project)
    done = run(project, "anchor", "witness", witness.path)
    assert (done.code, "FORK" in done.err) == (1, True), done.err
    assert anchors(project) == []
    assert witness.seen()[0][1] == seen


def test_a_witness_that_does_not_know_the_ledger(project: Path, tmp_path: Path) -> None:
    stranger = WitnessFolder.begin(str(tmp_path / "w"), NAME)
    done = run(project, "anchor", "witness", stranger.path)
    assert (done.code, f"trust DIR {vkey_of(project)}" in done.err) == (1, True)


def test_without_a_seal_it_is_said_how_one_is_made(tmp_path: Path) -> None:
    begin(tmp_path)
    witness = WitnessFolder.begin(str(tmp_path / "w"), NAME)
    done = run(tmp_path, "anchor", "witness", witness.path)
    assert (done.code, "tripod key new" in done.err) == (1, True)


# Answers that a witness should not give --------------------------------------------------------


def lines_by(key: SigningKey, note: Note) -> bytes:
    from tripod.ledger.tlog.note import cosign_note

    return format_witness_signatures([cosign_note(note.text, key, 1_763_757_000)])


@pytest.mark.parametrize(
    ("answer", "error", "says"),
    [
        (Response(200, TEXT_TYPE, b""), RefusedError, "no cosignature"),
        (Response(200, TEXT_TYPE, b"<html>"), RefusedError, "no cosignature"),
        (Response(200, TEXT_TYPE, b"OTHER"), RefusedError, "no cosignature"),
        (Response(200, TEXT_TYPE, b"LATE"), RefusedError, "no cosignature"),
        (Response(409, SIZE_TYPE, b"1\n"), UnreachableError, "409"),
        (Response(409, SIZE_TYPE, b"x\n"), UnreachableError, "decimal"),
        (Response(409, SIZE_TYPE, b"999\n"), RefusedError, "ROLLBACK"),
        (Response(409, TEXT_TYPE, b"1\n"), UnreachableError, "409"),
        (Response(422, TEXT_TYPE, b"no"), RefusedError, "FORK"),
        (Response(403, TEXT_TYPE, b""), RefusedError, "must allow this ledger"),
        (Response(400, TEXT_TYPE, b""), RefusedError, "tlog-witness"),
        (Response(302, TEXT_TYPE, b""), UnreachableError, "302"),
        (Response(500, TEXT_TYPE, b"\xff"), UnreachableError, "500"),
    ],
)
def test_nothing_is_logged_that_was_not_checked(
    project: Path, answer: Response, error: type[Exception], says: str
) -> None:
    def ask(data: bytes) -> Response:
        note = parse_witness_request(data).note
        other = SigningKey(NAME, bytes(range(160, 192)), COSIGNATURE)
        moved = Note(note.text.replace("\n", "\n1", 1), note.signatures)
        made = {b"OTHER": lines_by(other, note), b"LATE": lines_by(WITNESSES[0], moved)}
        return answer._replace(body=made.get(answer.body, answer.body))

    with Team(f"{project}/.nbs") as team:
        size = team.store.head().size
        with pytest.raises(error, match=says):
            anchoring.anchor_at_witness(team, ask, [WITNESSES[0].verifier()], "w1")
        assert team.store.head().size == size


def test_a_clock_that_is_far_off_is_told(project: Path, witness: WitnessFolder) -> None:
    late = WitnessFolder(witness.path, lambda: 5.0)
    with Team(f"{project}/.nbs") as team:
        got = anchoring.anchor_at_witness(team, late.answer, [witness.key().verifier()], "w1")
        assert got.seconds == 5
        assert "clock" in team.warnings[-1]


def test_a_newer_seal_elsewhere_asks_for_a_seal_here(project: Path) -> None:
    with Team(f"{project}/.nbs") as team:
        events.publish(team, "ann", "done", "low", "more")
        size = team.store.head().size

        def ask(_: bytes) -> Response:
            return Response(409, SIZE_TYPE, f"{size}\n".encode())

        with pytest.raises(RefusedError, match="tripod seal"):
            anchoring.anchor_at_witness(team, ask, [WITNESSES[0].verifier()], "w1")


def test_a_seal_that_contradicts_the_ledger_is_not_sent(project: Path) -> None:
    import drafts
    from sealed import seal_of, sealed

    from tripod.ledger.tlog.note import format_note

    note = format_note(sealed(seal_of([bytes(32)] * 3))).decode()
    for bad in (note, "junk"):
        with Team(f"{project}/.nbs") as team:
            with team.act() as act:
                act.append([drafts.seal_made(bad, 3, "asked")])
            with pytest.raises(RefusedError, match="tripod verify"):
                anchoring.seal_to_anchor(team)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--key", "junk"),
        ("--key", LOG.verifier().format()),
    ],
)
def test_keys_that_are_none_of_a_witness(project: Path, arguments: tuple[str, ...]) -> None:
    done = run(project, "anchor", "witness", "http://127.0.0.1:9", *arguments)
    assert done.code == 2
    assert run(project, "anchor", "witness", *arguments).code == 2


def test_what_is_no_receipt(project: Path, tmp_path: Path) -> None:
    done = run(project, "anchor", "receipt", "0", str(tmp_path / "out"))
    assert (done.code, "anchor list" in done.err) == (1, True)
    assert run(project, "anchor", "receipt", "99999", str(tmp_path / "out")).code == 1
    with Team(f"{project}/.nbs") as team, pytest.raises(NotFoundError):
        anchoring.anchor_receipt_files(team, 1)


# The network -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    ["ftp://x", "http://", "x", "http://u:p@x/", "http://x/?k=1", "http://x/#a", "http://x:y/"],
)
def test_urls_that_are_not_asked(url: str) -> None:
    with pytest.raises(BadArgumentError):
        check_anchor_url(url, "the witness")


def test_redirections_long_answers_and_silence(project: Path) -> None:
    vkey = WITNESSES[0].verifier().format()

    def asked(answer: Callable[[bytes], tuple[int, str, bytes]], *more: str) -> tuple[int, str]:
        with serving(answer) as url:
            done = run(project, "anchor", "witness", url, "--key", vkey, *more)
            return done.code, done.err

    code, err = asked(lambda _: (302, "text/plain", b""))
    assert (code, "answered 302" in err) == (3, True)
    code, err = asked(lambda _: (200, "text/plain", b"x" * 100_000))
    assert (code, "more than" in err) == (3, True)
    done = run(project, "anchor", "witness", "http://127.0.0.1:9", "--key", vkey)
    assert (done.code, "Try again" in done.err) == (3, True)


def test_a_witness_that_dawdles(project: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        vkey = WITNESSES[0].verifier().format()
        done = run(project, "anchor", "witness", url, "--key", vkey, "--timeout", "1")
        assert (done.code, "timed out" in done.err) == (3, True)


# A timestamp authority -------------------------------------------------------------------------


def test_a_stamp_that_openssl_verifies(project: Path, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "tsa")
    kind = "application/timestamp-reply"
    with serving(lambda query: (200, kind, authority.reply(query, "-chain", "root.pem"))) as url:
        done = run(project, "anchor", "tsa", url, "--ca", str(authority.roots))
    assert (done.code, done.err) == (0, "")
    ((method, name, size),) = anchors(project)
    assert (method, name) == ("tsa", url)
    assert f"{size} entries".encode() in done.out
    seq = run(project, "anchor", "list").out.split()[0].decode()
    out = authority.folder
    assert run(project, "anchor", "receipt", seq, str(out)).code == 0
    authority.openssl(
        "ts", "-verify", "-in", "receipt.tsr", "-data", "seal.txt", "-CAfile", "root.pem"
    )
    (out / "seal.txt").write_text((out / "seal.txt").read_text().replace(f"\n{size}\n", "\n1\n"))
    with pytest.raises(Exception, match="status 1"):
        authority.openssl(
            "ts", "-verify", "-in", "receipt.tsr", "-data", "seal.txt", "-CAfile", "root.pem"
        )
    assert run(project, "verify").code == 0


def test_stamps_that_are_not_logged(project: Path, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "tsa")
    kind = "application/timestamp-reply"
    once = authority.reply(authority.query(b"something else"))
    for answer, code, says in (
        ((200, kind, once), 1, "authority"),
        ((200, kind, b"junk"), 1, "not a reply"),
        ((200, "text/html", b"<html>"), 3, "text/html"),
        ((503, kind, b""), 3, "503"),
    ):
        with serving(lambda _, answer=answer: answer) as url:  # type: ignore[misc]
            done = run(project, "anchor", "tsa", url, "--ca", str(authority.roots))
        assert (done.code, says in done.err) == (code, True), done.err
    for file in (tmp_path / "none.pem", project / ".nbs/scribe/log.md"):
        assert run(project, "anchor", "tsa", "http://127.0.0.1:9", "--ca", str(file)).code == 2
    assert anchors(project) == []


def test_a_stamp_of_another_time_is_not_taken(project: Path, tmp_path: Path) -> None:
    """An old reply about the very same seal: only the nonce tells that nobody stamped it now."""
    authority = Authority(tmp_path / "tsa")
    kind = "application/timestamp-reply"
    given: list[bytes] = []

    def reply(query: bytes) -> tuple[int, str, bytes]:
        given.append(given[0] if given else authority.reply(query))
        return 200, kind, given[-1]

    with serving(reply) as url, Team(f"{project}/.nbs") as team:
        anchor_by_timestamp(team, url, str(authority.roots), 20)
        with pytest.raises(RefusedError, match="Nothing was recorded"):
            anchor_by_timestamp(team, url, str(authority.roots), 20)
    assert len(given) == 2
    assert len(anchors(project)) == 1


def test_verify_finds_the_cosignature_in_the_receipt(witness: WitnessFolder, project: Path) -> None:
    with Team(f"{project}/.nbs") as team:
        got = anchoring.anchor_at_witness(team, witness.answer, [witness.key().verifier()], "w1")
    assert len(verify(parse_note(got.data), [witness.key().verifier()])) == 1


def test_a_ledger_that_forgot_how_far_the_witness_is_is_told(
    project: Path, witness: WitnessFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(anchoring, "last_anchored_size", lambda *_: 0)
    vkey = witness.key().verifier().format()
    with served(witness) as server:
        for _ in range(2):
            work(project)
            assert run(project, "anchor", "witness", server.url, "--key", vkey).code == 0
    assert [line.split()[-2] for line in server.requests] == ["200", "409", "200"]


def test_answers_that_break_off_or_never_end(project: Path) -> None:
    import socket
    import threading

    vkey = WITNESSES[0].verifier().format()
    head = b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n"

    def asked(*parts: bytes) -> str:
        with socket.create_server(("127.0.0.1", 0)) as listening:

            def answer() -> None:
                caller = listening.accept()[0]
                with caller:
                    heard = b""
                    while not heard.rstrip().endswith(b"="):  # the end of a signature line
                        heard += caller.recv(100_000)
                    for part in parts:
                        caller.sendall(part)
                        over.wait(0.3)

            over = threading.Event()
            thread = threading.Thread(target=answer)
            thread.start()
            url = f"http://127.0.0.1:{listening.getsockname()[1]}"
            done = run(project, "anchor", "witness", url, "--key", vkey, "--timeout", "1")
            over.set()
            thread.join()
        assert done.code == 3
        return done.err

    assert "broke off at byte 3 of 9" in asked(head + b"Content-Length: 9\r\n\r\nabc")
    # Each part comes in time, and all of them do not.
    assert "took too long" in asked(head + b"\r\n", *[b"x"] * 5)
    assert "gave no answer" in asked(b"junk\r\n\r\n")


def test_an_answer_for_none_of_our_seals(
    project: Path, witness: WitnessFolder, tmp_path: Path
) -> None:
    vkey = witness.key().verifier().format()
    file = tmp_path / "answer"
    file.write_bytes(lines_by(witness.key(), Note("another\n", ())))
    done = run(project, "anchor", "take", str(file), "--key", vkey)
    assert (done.code, "no cosignature" in done.err) == (1, True)
    assert run(project, "anchor", "take", str(tmp_path / "none"), "--key", vkey).code == 2


def test_an_authority_whose_clock_is_far_off_is_told(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import time

    authority = Authority(tmp_path / "tsa")
    kind = "application/timestamp-reply"
    now = time.time()
    with (
        serving(lambda query: (200, kind, authority.reply(query))) as url,
        Team(f"{project}/.nbs") as team,
    ):
        monkeypatch.setattr("time.time", lambda: now + 4000)
        anchor_by_timestamp(team, url, str(authority.roots), 20)
        assert "clock" in team.warnings[-1]


def test_a_locked_key_anchors_the_newest_seal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIPOD_HOME", str(tmp_path / "home"))
    begin(tmp_path)
    with Team(f"{tmp_path}/.nbs") as team:
        vkey = new_sealing_key(team, b"secret")
    witness = WitnessFolder.begin(str(tmp_path / "w"), NAME)
    witness.trust(vkey)
    work(tmp_path)
    done = run(tmp_path, "anchor", "witness", witness.path)
    assert (done.code, "not sealed anew" in done.err) == (0, True), done.err


def test_a_restored_ledger_is_another_log_to_the_witness(
    project: Path, witness: WitnessFolder, tmp_path: Path
) -> None:
    assert run(project, "anchor", "witness", witness.path).code == 0
    assert run(project, "backup", str(tmp_path / "copy.db")).code == 0
    work(project)
    assert run(project, "anchor", "witness", witness.path).code == 0
    done = run(project, "restore", str(tmp_path / "copy.db"), "--as-origin", "example.org/again")
    assert done.code == 0, done.err
    run(project, "key", "new")
    unknown = run(project, "anchor", "witness", witness.path)
    assert (unknown.code, "trust DIR example.org/again+" in unknown.err) == (1, True), unknown.err
    words = unknown.err.replace("`", " ").split()
    witness.trust(next(word for word in words if word.startswith("example.org/again+")))
    assert run(project, "anchor", "witness", witness.path).code == 0
    assert len(witness.seen()) == 2
