"""A real round through a witness over HTTP, by processes of their own; killed at each step."""

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from http.client import HTTPConnection, RemoteDisconnected
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from doors.inside import Done, begin, run
from sealed import LOG, seal_of
from witnessing import DEATHS, FORKED, LEAVES, NAME, asked, begun

from tripod.ledger.tlog.note import parse_note, verify
from tripod.team.team import Team
from tripod.trust.seal import new_sealing_key
from tripod.trust.witness import WitnessFolder, log_folder


def start(*command: str) -> tuple["subprocess.Popen[str]", str]:
    """Start a witness, and give its URL once it listens."""
    tests = Path(__file__).resolve().parents[2]
    child = subprocess.Popen(
        command,
        env=os.environ | {"PYTHONPATH": os.pathsep.join((str(tests), str(tests.parent)))},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert child.stdout is not None
    return child, child.stdout.readline().split()[-1]


def serve(path: Path) -> tuple["subprocess.Popen[str]", str]:
    return start(sys.executable, "-m", "witnessing", str(path))


def post(url: str, body: bytes) -> tuple[int, bytes]:
    connection = HTTPConnection(urlsplit(url).netloc, timeout=30)
    try:
        connection.request("POST", "/add-checkpoint", body)
        reply = connection.getresponse()
        return reply.status, reply.read()
    finally:
        connection.close()


def stop(child: "subprocess.Popen[str]") -> None:
    child.terminate()
    child.communicate(timeout=30)


@pytest.mark.slow
def test_grow_refuse_a_fork_refuse_a_rollback_and_start_again(tmp_path: Path) -> None:
    begun(tmp_path)
    child, url = serve(tmp_path)
    assert post(url, asked(0, LEAVES[:7]))[0] == 200
    assert post(url, asked(7, LEAVES[:9]))[0] == 200
    assert post(url, asked(9, FORKED[:20]))[0] == 422
    assert post(url, asked(7, LEAVES[:7])) == (409, b"9\n")
    stop(child)
    # Two processes before one folder are one witness.
    (one, first), (two, second) = serve(tmp_path), serve(tmp_path)
    assert post(first, asked(9, FORKED[:20]))[0] == 422
    assert post(first, asked(9, LEAVES[:12]))[0] == 200
    assert post(second, asked(9, LEAVES[:11])) == (409, b"12\n")
    assert post(second, asked(12, LEAVES[:20]))[0] == 200
    stop(one)
    stop(two)


@pytest.mark.slow
@pytest.mark.parametrize("death", DEATHS)
def test_killed_before_it_answered(tmp_path: Path, death: str) -> None:
    witness = begun(tmp_path)
    assert witness.answer(asked(0, LEAVES[:7])).status == 200
    child, url = start(sys.executable, "-m", "witnessing", str(tmp_path), death)
    with pytest.raises((RemoteDisconnected, ConnectionError)):
        post(url, asked(7, LEAVES[:9]))
    child.communicate(timeout=30)
    assert child.returncode == -9
    stored = 9 if death == "before the answer" else 7
    ((_, seal, _),) = witness.seen()
    assert seal == seal_of(LEAVES[:stored])
    # Whatever had happened: a fork from there is refused, and the log itself goes on.
    child, url = serve(tmp_path)
    if stored == 9:
        assert post(url, asked(9, FORKED[:9]))[0] == 422
        assert post(url, asked(7, LEAVES[:9])) == (409, b"9\n")
    assert post(url, asked(stored, FORKED[:20]))[0] == 422
    status, body = post(url, asked(stored, LEAVES[:9]))
    assert status == 200
    stop(child)
    latest = Path(witness.path, "logs", log_folder(LOG.name), "checkpoint").read_bytes()
    assert latest.endswith(body)
    verify(parse_note(latest), [LOG.verifier()])


@pytest.mark.slow
def test_killed_at_any_moment_it_never_cosigns_two_histories(tmp_path: Path) -> None:
    """Two histories race for a witness that is killed again and again; only one ever gets on."""
    begun(tmp_path)
    size, histories = 0, (LEAVES, FORKED)
    cosigned: list[tuple[int, int]] = []
    for attempt in range(8):
        child, url = serve(tmp_path)
        for number in range(attempt % 4 + 1):
            for which, history in enumerate(histories):
                want = min(6 + 4 * attempt + number, 39)
                status, body = post(url, asked(min(size, want), history[:want]))
                if status == 409:
                    size = int(body)
                    status, _ = post(url, asked(size, history[:want]))
                if status == 200:
                    cosigned.append((which, want))
                    size = want
        child.kill()
        child.communicate(timeout=30)
    assert {which for which, _ in cosigned} == {0}
    assert len(cosigned) > 8


# A team --------------------------------------------------------------------------------------


class Host:
    """A team in a project, and the witness that it asks over HTTP."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "project"
        self.project.mkdir()
        begin(self.project)
        with Team(f"{self.project}/.nbs") as team:
            vkey = new_sealing_key(team)
        self.witness = WitnessFolder.begin(str(folder / "w"), NAME)
        self.witness.trust(vkey)

    def work(self, count: int = 1) -> None:
        for _ in range(count):
            assert run(self.project, "bus", "publish", "ann", "done", "low", "more").code == 0

    def ask(self, url: str) -> Done:
        key = self.witness.key().verifier().format()
        return run(self.project, "anchor", "witness", url, "--key", key)

    def logged(self) -> list[int]:
        """How many entries each receipt in the ledger covers."""
        path = f"{self.project}/.nbs/ledger.db"
        with closing(sqlite3.connect(path)) as db:
            return [size for (size,) in db.execute("SELECT size FROM anchors ORDER BY seq")]

    def seen(self) -> int:
        """How many entries the witness has seen."""
        ((_, seal, _),) = self.witness.seen()
        assert seal is not None
        return seal.size


@pytest.mark.slow
def test_a_team_whose_witness_is_killed_between_storing_and_answering(tmp_path: Path) -> None:
    host = Host(tmp_path)
    child, url = serve(Path(host.witness.path))
    assert host.ask(url).code == 0
    stop(child)
    first = host.logged()
    host.work()
    child, url = start(sys.executable, "-m", "witnessing", host.witness.path, "before the answer")
    done = host.ask(url)
    child.communicate(timeout=30)
    assert (done.code, child.returncode) == (3, -9), done.err
    # It was stored and not answered: the witness is ahead, by a seal that is the ledger's.
    assert host.logged() == first
    assert host.seen() > first[0]
    child, url = serve(Path(host.witness.path))
    assert host.ask(url).code == 0
    assert host.logged() == [*first, host.seen()]
    host.work()
    assert host.ask(url).code == 0
    stop(child)
    assert len(host.logged()) == 3
    assert run(host.project, "verify").code == 0


@pytest.mark.slow
def test_a_team_that_is_rolled_back_and_goes_on_is_refused(
    tmp_path: Path, signers_home: str
) -> None:
    host = Host(tmp_path)
    shutil.copytree(host.project / ".nbs", tmp_path / "older")
    shutil.copytree(f"{signers_home}/seals", tmp_path / "memory")
    host.work(5)
    child, url = serve(Path(host.witness.path))
    assert host.ask(url).code == 0
    seen = host.seen()
    # Who owns the host puts everything back, the signer's memory too.
    shutil.rmtree(host.project / ".nbs")
    shutil.copytree(tmp_path / "older", host.project / ".nbs")
    shutil.rmtree(f"{signers_home}/seals")
    shutil.copytree(tmp_path / "memory", f"{signers_home}/seals")
    assert run(host.project, "verify").code == 0
    done = host.ask(url)
    assert (done.code, "ROLLBACK" in done.err) == (1, True), done.err
    host.work(20)
    done = host.ask(url)
    assert (done.code, "FORK" in done.err) == (1, True), done.err
    assert (host.logged(), host.seen()) == ([], seen)
    stop(child)
