"""One run of one program: every way in which it may end, and what reaches it."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tripod.agents import profiles, spec, wrapper
from tripod.agents.spec import McpServer, Parameters, SpawnResult, SpawnSpec
from tripod.agents.spool import ENDED, LOST, OUTCOMES, RUNNING, Spool, spawn_agent, spool_result
from tripod.errors import BadArgumentError, NotFoundError


def spawn(*argv: str, **more: Any) -> SpawnResult:
    return asyncio.run(spawn_agent(SpawnSpec(argv=argv, **more)))


def python(program: str, **more: Any) -> SpawnResult:
    return spawn(sys.executable, "-c", program, **more)


def is_gone(pid: int) -> bool:
    """Wait until a process has ended; one that nobody asked for yet has."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
        except FileNotFoundError:
            return True
        if stat.rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.005)
    return False


# How it ends -----------------------------------------------------------------------------------


def test_what_it_is_given_and_what_it_says() -> None:
    done = python(
        "import sys; sys.stdout.write(sys.stdin.read()); sys.stderr.write('so')", stdin=b"hi \n"
    )
    assert (done.status, done.answer.text, done.stdout, done.stderr) == (
        "ok",
        "hi",
        b"hi \n",
        b"so",
    )
    assert (done.exit_code, done.signal, done.problem) == (0, None, "")


@pytest.mark.parametrize(
    ("program", "status", "problem"),
    [
        ("exit 3", "nonzero", "it ended with exit code 3"),
        ("echo done; exit 3", "nonzero", "it ended with exit code 3"),
        ("true", "empty_output", "it printed nothing"),
        ("echo; echo ' '", "empty_output", "it printed nothing"),
        ("echo loud >&2", "empty_output", "it printed nothing"),
        ("echo answer; kill -9 $$", "killed", "it was killed by signal 9"),
    ],
)
def test_an_exit_code_of_0_alone_is_no_success(program: str, status: str, problem: str) -> None:
    done = spawn("sh", "-c", program)
    assert (done.status, done.problem) == (status, problem)


@pytest.mark.parametrize("output", ["claude-stream-json", "text"])
def test_what_a_coding_agent_says_of_its_failure_stands_beside_its_exit_code(output: Any) -> None:
    """Its standard error is empty then. Of any other output no word is taken for a reason."""
    said = {"type": "result", "is_error": True, "subtype": "success", "result": "Not logged in"}
    done = python(f"print({json.dumps(said)!r}); raise SystemExit(1)", output=output)
    why = "; it says that it failed: Not logged in" if output != "text" else ""
    assert (done.status, done.problem) == ("nonzero", f"it ended with exit code 1{why}")


@pytest.mark.parametrize(
    ("argv", "more", "problem"),
    [
        (("no-such-program",), {}, "no-such-program: No such file or directory"),
        (("/",), {}, "/: Permission denied"),
        (("true",), {"cwd": "/no-such-folder"}, "/no-such-folder: No such file or directory"),
        (("echo", "a\0b"), {}, "echo: embedded null byte"),
    ],
)
def test_what_cannot_be_started_says_why(
    argv: tuple[str, ...], more: dict[str, Any], problem: str
) -> None:
    done = spawn(*argv, **more)
    assert (done.status, done.problem) == ("not_started", f"it could not be started: {problem}")


def test_time_that_is_over_ends_it_and_what_it_began() -> None:
    done = spawn("sh", "-c", "echo early; sleep 600 & echo $!; wait", timeout_s=0.2)
    assert (done.status, done.signal) == ("timeout", signal.SIGTERM)
    assert done.answer.text.startswith("early")
    assert is_gone(int(done.answer.text.split()[1]))


def test_who_ignores_the_first_word_is_killed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # The grace of five seconds is the wrapper's own; a copy of it with a shorter one is run.
    source = Path(wrapper.__file__).read_text(encoding="utf-8")
    short = tmp_path / "wrapper.py"
    short.write_text(source.replace("GRACE_S = 5.0", "GRACE_S = 0.2"), encoding="utf-8")
    monkeypatch.setattr(wrapper, "__file__", str(short))
    program = "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True)"
    done = python(f"{program}; time.sleep(600)", timeout_s=0.5)
    assert (done.status, done.signal) == ("timeout", signal.SIGKILL)


@pytest.mark.parametrize("freed", [True, False])
def test_on_a_full_disk_how_it_ended_is_written_once_there_is_room(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, freed: bool
) -> None:
    # No disk is filled up: a copy of the wrapper finds it full while a file says so.
    full, tried = tmp_path / "full", tmp_path / "tried"
    found = (
        f'    if path.endswith("exit.json") and os.path.exists({str(full)!r}):\n'
        f"        os.close(os.open({str(tried)!r}, os.O_CREAT))\n"
        '        raise OSError(errno.ENOSPC, "full")\n'
    )
    source = (
        Path(wrapper.__file__)
        .read_text(encoding="utf-8")
        .replace("RETRY_S = 1.0", "RETRY_S = 0.01")
    )
    begin = '    temporary = f"{path}.tmp"\n'
    assert begin in source
    copy = tmp_path / "wrapper.py"
    copy.write_text(source.replace(begin, found + begin), encoding="utf-8")
    monkeypatch.setattr(wrapper, "__file__", str(copy))
    full.touch()
    spool = Spool(str(tmp_path / "run"))

    async def watched() -> SpawnResult:
        task = asyncio.ensure_future(spawn_agent(SpawnSpec(argv=("echo", "done")), spool))
        while not tried.exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.005)
        assert spool.look().state == RUNNING
        if freed:
            full.unlink()
        else:
            assert spool.cancel()
        return await task

    done = asyncio.run(watched())
    assert (done.status, done.stdout) == ("ok" if freed else "killed", b"done\n")


def test_what_it_leaves_behind_is_ended_with_it() -> None:
    done = spawn("sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!")
    assert done.status == "ok"
    assert is_gone(int(done.answer.text))


def test_being_cancelled_ends_the_program(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    spool = Spool(str(tmp_path / "run"))

    async def cancel_it() -> None:
        program = f"echo $$ > {mark}.new; mv {mark}.new {mark}; exec sleep 600"
        task = asyncio.ensure_future(spawn_agent(SpawnSpec(argv=("sh", "-c", program)), spool))
        while not mark.exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel_it())
    look = spool.look()
    assert look.end is not None
    assert (look.state, look.end.outcome) == (ENDED, "cancelled")
    assert is_gone(int(mark.read_text()))


@pytest.mark.parametrize("how", ["cancelled", "timeout"])
def test_what_left_its_session_is_ended_where_we_end_it(tmp_path: Path, how: str) -> None:
    """A daemon: a session of its own, its parents gone, and a child that has another again."""
    program = (
        "import os, sys, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        inner = os.fork()\n"
        "        if inner == 0:\n"
        "            os.setsid()\n"
        "        else:\n"
        f"            open({str(tmp_path / 'new')!r}, 'w').write(f'{{os.getpid()}} {{inner}}')\n"
        f"            os.rename({str(tmp_path / 'new')!r}, {str(tmp_path / 'pids')!r})\n"
        "        time.sleep(600)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "time.sleep(600)\n"
    )
    spool = Spool(str(tmp_path / "run"))
    given = SpawnSpec(
        argv=(sys.executable, "-c", program), timeout_s=5 if how == "timeout" else None
    )

    async def end_it() -> None:
        task = asyncio.ensure_future(spawn_agent(given, spool))
        while not (tmp_path / "pids").exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.005)
        if how == "cancelled":
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            assert (await task).status == "timeout"

    asyncio.run(end_it())
    for pid in (tmp_path / "pids").read_text().split():
        assert is_gone(int(pid))


def test_an_orphan_that_ends_while_the_program_runs_is_no_end_of_it() -> None:
    done = spawn("sh", "-c", "(setsid sh -c 'exit 3' &) ; sleep 0.3; echo done")
    assert (done.status, done.answer.text) == ("ok", "done")


def test_cancelled_before_it_began_it_is_ended_as_well(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path / "run"))

    async def cancel_it() -> None:
        task = asyncio.ensure_future(spawn_agent(SpawnSpec(argv=("sleep", "600")), spool))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    began = time.monotonic()
    asyncio.run(cancel_it())
    assert time.monotonic() - began < 60
    assert spool.look().state == ENDED


# What reaches it -------------------------------------------------------------------------------


def test_it_sees_the_named_variables_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", "mine")
    monkeypatch.setenv("OTHER", "other")
    done = python(
        "import json, os; print(json.dumps(dict(os.environ)))",
        env=("MINE", "ABSENT"),
        set_env={"GIVEN": "given"},
        secrets={"TOKEN": "s3cret"},
        output="json",
    )
    seen = {name: value for name, value in done.answer.structured.items() if name != "LC_CTYPE"}
    assert seen == {"MINE": "mine", "GIVEN": "given", "TOKEN": "s3cret"}


def test_what_is_recorded_of_an_order_holds_no_secret() -> None:
    servers = {"gate": McpServer(url="http://x", headers={"authorization": "s3cret"})}
    order = SpawnSpec(
        argv=("a",),
        secrets={"TOKEN": "s3cret"},
        parameters=Parameters(mcp_servers=servers),
        stdin=b"ask",
    )
    text = spec.described_spec(order)
    assert b"s3cret" not in text
    assert b"ask" not in text
    assert b"TOKEN" in text
    other = SpawnSpec(
        argv=("a",),
        secrets={"TOKEN": "other"},
        parameters=Parameters(mcp_servers=servers),
        stdin=b"ask",
    )
    assert spec.described_spec(other) != text


def test_tool_servers_are_written_where_only_we_can_read(tmp_path: Path) -> None:
    servers = {
        "one": McpServer(command="gate", args=("--x",), env={"TOKEN": "s3cret"}),
        "two": McpServer(url="http://x", headers={"authorization": "s3cret"}),
    }
    program = (
        "import json, os, sys; path = sys.argv[2];"
        "print(json.dumps([oct(os.stat(path).st_mode), json.load(open(path))]))"
    )
    order = SpawnSpec(
        argv=(sys.executable, "-c", program),
        takes={"mcp_servers": ("--mcp-config", "{}")},
        parameters=Parameters(mcp_servers=servers),
        output="json",
    )
    done = asyncio.run(spawn_agent(order, Spool(str(tmp_path / "run"))))
    mode, config = done.answer.structured
    assert mode.endswith("600")
    assert config["mcpServers"]["one"] == {
        "command": "gate", "args": ["--x"], "env": {"TOKEN": "s3cret"}
    }  # fmt: skip
    assert config["mcpServers"]["two"]["headers"] == {"authorization": "s3cret"}
    assert (tmp_path / "run").stat().st_mode & 0o077 == 0


SERVERS = {"gate": McpServer(command="gate", env={"TOKEN": "s3cret"})}


def holding_secrets(folder: Path) -> list[str]:
    """Files that hold the token."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return sorted(path.name for path in files if b"s3cret" in path.read_bytes())


@pytest.mark.parametrize(
    ("program", "status"),
    [
        ("echo x", "ok"),
        ("exit 3", "nonzero"),
        ("exec sleep 600", "timeout"),
        ("kill -9 $PPID", "killed"),  # nobody is left who could say how it ended
        (None, "not_started"),
    ],
)
def test_no_secret_is_left_once_the_run_is_over(
    tmp_path: Path, program: str | None, status: str
) -> None:
    argv = ("no-such-program",) if program is None else ("sh", "-c", f"test -s $1 && {program}", "")
    order = SpawnSpec(
        argv=argv,
        takes={"mcp_servers": ("{}",)},
        parameters=Parameters(mcp_servers=SERVERS),
        timeout_s=0.5 if status == "timeout" else None,
    )
    done = asyncio.run(spawn_agent(order, Spool(str(tmp_path / "run"))))
    assert done.status == status
    assert holding_secrets(tmp_path) == []


def test_no_secret_is_left_of_a_run_that_was_cancelled(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path / "run"))

    async def cancel_it() -> None:
        order = SpawnSpec(argv=("sleep", "600"), parameters=Parameters(mcp_servers=SERVERS))
        task = asyncio.ensure_future(spawn_agent(order, spool))
        while spool.look().started is None:  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.005)
        assert holding_secrets(tmp_path) == ["mcp.json"]
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel_it())
    assert holding_secrets(tmp_path) == []


def test_the_wrapper_leaves_no_secret_to_whoever_comes_next(tmp_path: Path) -> None:
    """Who ordered the run may be gone: nobody waits for it."""
    spool = Spool(str(tmp_path / "run"))
    with spool.held() as lock:
        assert lock is not None
        spool.launch(SpawnSpec(argv=("true",), parameters=Parameters(mcp_servers=SERVERS)), lock)
    while spool.look().end is None:
        time.sleep(0.005)
    assert holding_secrets(tmp_path) == []


def test_a_launch_that_fails_leaves_no_secret(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path / "run"))
    full = mock.patch.object(os, "memfd_create", side_effect=OSError("no memory"))
    with spool.held() as lock:
        assert lock is not None
        with full, pytest.raises(OSError, match="no memory"):
            spool.launch(
                SpawnSpec(argv=("true",), parameters=Parameters(mcp_servers=SERVERS)), lock
            )
    assert holding_secrets(tmp_path) == []


def test_a_run_that_is_given_up_leaves_no_secret(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path / "run"))
    with spool.held():
        (tmp_path / "run/mcp.json").write_text("s3cret", encoding="utf-8")
    spool.give_up("its wrapper was killed")
    assert holding_secrets(tmp_path) == []


def test_parameters_are_words_and_those_it_cannot_take_are_named() -> None:
    done = python(
        "import json, sys; print(json.dumps(sys.argv[1:]))",
        takes={"model": ("--model", "{}"), "tools": ("--tools={}",), "turns": ("-n", "{}")},
        parameters=Parameters(
            model="m; rm -rf $HOME",
            effort="high",
            tools=("Read", "Grep"),
            schema={"type": "object", "minimum": 0.5},
            more={"turns": "3", "budget": "1"},
        ),
        output="json",
    )
    assert done.answer.structured == ["--model", "m; rm -rf $HOME", "--tools=Read,Grep", "-n", "3"]
    assert done.unsupported_params == ("effort", "schema", "budget")


def test_a_prompt_may_be_an_argument() -> None:
    done = python(
        "import sys; print(sys.argv[1:], repr(sys.stdin.read()))",
        takes={"prompt": ("--task", "{}")},
        stdin=b"do it",
    )
    assert done.answer.text == "['--task', 'do it'] ''"


def test_its_output_may_go_behind_what_stands_in_a_file(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(b"before\n")
    spool = Spool(str(tmp_path / "run"), stdout=str(log))
    done = asyncio.run(spawn_agent(SpawnSpec(argv=("echo", "now")), spool))
    assert (done.answer.text, log.read_bytes()) == ("now", b"before\nnow\n")


# Other programs of the same user ---------------------------------------------------------------


def in_between(tmp_path: Path, change: str, program: str = "cat; echo printed") -> SpawnResult:
    """A run in whose folder another program does something before and after it ends."""
    spool = Spool(str(tmp_path / "run"))
    order = SpawnSpec(
        argv=("sh", "-c", f"cd {tmp_path}/run; {change}; {program}"), stdin=b"asked\n"
    )
    return asyncio.run(spawn_agent(order, spool))


def test_nobody_adds_to_what_it_is_given(tmp_path: Path) -> None:
    change = "echo leaked >> stdin; echo leaked >> /proc/self/fd/0; echo leaked >&0"
    done = in_between(tmp_path, f"({change}) 2>/dev/null")
    assert (done.status, done.stdout) == ("ok", b"asked\nprinted\n")


def test_nobody_replaces_what_it_prints_while_it_runs(tmp_path: Path) -> None:
    done = in_between(tmp_path, "echo forged > stdout; echo forged > stderr")
    assert (done.status, done.stdout, done.stderr) == ("ok", b"asked\nprinted\n", b"")


@pytest.mark.parametrize("way", ["replaced", "gone", "a pipe", "a folder"])
def test_an_output_that_was_changed_when_it_ended_is_no_answer(tmp_path: Path, way: str) -> None:
    spool = Spool(str(tmp_path / "run"))
    secret = b"s" * 32
    spool.key = wrapper.public_of(secret)
    with spool.held() as lock:
        assert lock is not None
        spool.launch(SpawnSpec(argv=("echo", "printed")), lock, secret)
    look = spool.wait()
    path = tmp_path / "run/stdout"
    path.unlink()
    if way == "replaced":
        path.write_text("forged\n")
    elif way == "a pipe":
        os.mkfifo(path)
    elif way == "a folder":
        path.mkdir()
    done = spool_result(spool, look, "text")
    assert (done.status, done.answer.text, done.stdout) == ("bad_output", "", b"")
    assert done.problem == "another program changed what it printed (stdout)"
    assert done.altered == {"stdout": (sha256(b"printed\n").hexdigest(), 8)}


RECORDS = st.dictionaries(
    st.text(max_size=9).filter(lambda name: name != wrapper.SIGNATURE),
    st.none() | st.booleans() | st.integers() | st.text(),
    max_size=5,
)


@given(RECORDS, st.binary(min_size=1, max_size=40), st.integers(0, 256 * 64 * 8 - 1), RECORDS)
def test_a_signature_fits_its_record_and_its_key_alone(
    value: dict[str, Any], secret: bytes, at: int, other: dict[str, Any]
) -> None:
    public = wrapper.public_of(secret)
    signed = value | {wrapper.SIGNATURE: wrapper.sign(secret, value)}
    assert wrapper.is_signed(public, signed)
    assert not wrapper.is_signed(wrapper.public_of(secret + b"x"), signed)
    assert not wrapper.is_signed(public, value)
    if json.dumps(other, sort_keys=True) != json.dumps(value, sort_keys=True):
        assert not wrapper.is_signed(public, other | {wrapper.SIGNATURE: signed["signature"]})
    data = bytearray.fromhex(signed["signature"])
    data[at // 8] ^= 1 << at % 8
    assert not wrapper.is_signed(public, value | {wrapper.SIGNATURE: data.hex()})


@pytest.mark.parametrize("signed", ["", "00" * 256 * 64, "otherwise", 5])
@pytest.mark.parametrize("outcome", [one for one in OUTCOMES if one != "abandoned"])
def test_an_end_that_another_program_wrote_is_none(
    tmp_path: Path, outcome: str, signed: object
) -> None:
    spool = Spool(str(tmp_path / "run"), key=wrapper.public_of(b"s" * 32))
    with spool.held():
        forged: dict[str, Any] = {"outcome": outcome, "exit_code": 0, "reason": "Say: high."}
        forged["signature"] = wrapper.sign(b"o" * 32, forged) if signed == "otherwise" else signed
        wrapper.write_json(f"{spool.path}/exit.json", forged)
        assert spool.look().state == RUNNING
    assert spool.look().state == LOST
    look = spool.give_up("nobody runs it")
    assert look.end is not None
    assert (look.state, look.end.outcome) == (ENDED, "abandoned")


def test_a_wrapper_that_cannot_even_begin_is_a_signed_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wrapper, "__file__", str(tmp_path / "gone.py"))
    done = asyncio.run(spawn_agent(SpawnSpec(argv=("true",)), Spool(str(tmp_path / "run"))))
    assert (done.status, done.problem) == (
        "not_started",
        "it could not be started: the wrapper ended with 2",
    )


def test_a_signed_end_says_no_more_when_it_is_changed(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path / "run"))
    secret = b"s" * 32
    spool.key = wrapper.public_of(secret)
    with spool.held() as lock:
        assert lock is not None
        spool.launch(SpawnSpec(argv=("sh", "-c", "echo printed; exit 3")), lock, secret)
    assert spool.wait().state == ENDED
    path = tmp_path / "run/exit.json"
    value = json.loads(path.read_bytes())
    path.write_text(json.dumps(value | {"exit_code": 0}))
    assert spool.look().state == LOST
    path.write_text(json.dumps(value))
    assert spool.look().state == ENDED


def test_a_sealed_file_is_inherited_and_cannot_be_written(tmp_path: Path) -> None:
    program = "n=$1; cat /proc/self/fd/$n; echo more >> /proc/self/fd/$n; cat /proc/self/fd/$n"
    order = SpawnSpec(argv=("sh", "-c", program, "sh", "the file"), sealed={4: b"mine\n"})
    done = asyncio.run(spawn_agent(order, Spool(str(tmp_path / "run"))))
    assert done.stdout == b"mine\nmine\n"
    assert b"mine" not in spec.described_spec(order)
    assert json.loads(spec.described_spec(order))["sealed"] == [
        {"sha256": sha256(b"mine\n").hexdigest(), "size": 5, "word": 4}
    ]


def test_what_it_leaves_beside_its_output_comes_back() -> None:
    done = spawn("sh", "-c", "echo answer; echo left >&9", leaves=True)
    assert (done.status, done.answer.text, done.left) == ("ok", "answer", b"left\n")


def test_a_link_is_no_place_for_its_output(tmp_path: Path) -> None:
    (tmp_path / "a.log").symlink_to(tmp_path / "elsewhere")
    spool = Spool(str(tmp_path / "run"), stdout=str(tmp_path / "a.log"))
    done = asyncio.run(spawn_agent(SpawnSpec(argv=("echo", "now")), spool))
    assert done.status == "not_started"
    assert not (tmp_path / "elsewhere").exists()


# The folder of a run ---------------------------------------------------------------------------


@pytest.mark.parametrize("reader", [False, True])
def test_a_pipe_is_no_place_for_its_output(tmp_path: Path, *, reader: bool) -> None:
    os.mkfifo(tmp_path / "pipe")
    fd = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK) if reader else -1
    run = Spool(str(tmp_path / "run"), stdout=str(tmp_path / "pipe"))
    done = asyncio.run(spawn_agent(SpawnSpec(argv=("echo", "x"), timeout_s=20.0), run))
    assert done.status == "not_started"
    assert f"{tmp_path}/pipe: " in done.problem
    if reader:
        os.close(fd)


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path))
    with spool.held() as lock:
        assert lock is not None
        with pytest.raises(ValueError, match="another run"):
            asyncio.run(spawn_agent(SpawnSpec(argv=("true",)), spool))
        assert spool.look().state == RUNNING
        assert spool.give_up("why").state == RUNNING
    assert spool.look().state == LOST


def test_a_run_that_was_given_up_never_begins(tmp_path: Path) -> None:
    """A coordinator that was slow, and not dead, hands its lock to a wrapper too late."""
    spool = Spool(str(tmp_path / "run"))
    mark = tmp_path / "ran"
    assert spool.give_up("nobody is there").state == ENDED
    with spool.held() as lock:
        assert lock is not None
        spool.launch(SpawnSpec(argv=("touch", str(mark))), lock)
    look = spool.wait()
    assert look.end is not None
    assert (look.state, look.end.outcome) == (ENDED, "abandoned")
    assert look.started is None
    assert not mark.exists()


def test_a_program_whose_wrapper_was_killed_is_ended(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path / "run"))
    with spool.held() as lock:
        assert lock is not None
        spool.launch(SpawnSpec(argv=("sleep", "600")), lock)
    started = spool.look().started
    assert started is not None
    os.kill(started.wrapper, signal.SIGKILL)
    assert spool.wait().state == LOST
    os.kill(started.child, 0)  # it runs on, alone
    look = spool.give_up("its wrapper is gone")
    assert look.end is not None
    assert (look.end.outcome, look.end.reason) == ("abandoned", "its wrapper is gone")
    assert is_gone(started.child)


def test_a_wrapper_that_is_not_told_what_to_do_does_nothing(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path / "run"))
    with spool.held() as lock:
        assert lock is not None
        done = subprocess.run(
            [sys.executable, "-I", "-S", wrapper.__file__, spool.path, str(lock)],
            input=b'{"argv": ["tou',
            pass_fds=(lock,),
            check=False,
        )
    assert done.returncode == 1
    assert spool.look().state == LOST


# Profiles --------------------------------------------------------------------------------------


def test_the_profile_of_a_coding_agent() -> None:
    order = profiles.load("claude").order(
        b"ask",
        parameters=Parameters(
            model="m", tools=(), schema={"type": "object"}, more={"resume": "s-1"}
        ),
    )
    words, unsupported = spec.spec_command_line(order, "mcp.json")
    assert words[:2] == ("claude", "-p")
    assert words[-8:] == (
        "--model", "m", "--json-schema", '{"type":"object"}', "--tools", "", "--resume", "s-1"
    )  # fmt: skip
    assert unsupported == ()
    assert "ANTHROPIC_API_KEY" in order.env
    assert profiles.profile_names() == ["claude", "pythia"]


def test_the_profile_of_pythia_has_no_tool() -> None:
    profile = profiles.load("pythia")
    words, _ = spec.spec_command_line(
        profile.order(b"ask", parameters=Parameters(model="m")), "mcp.json"
    )
    at = words.index("--tools")
    assert words[at : at + 2] == ("--tools", "")
    assert {"--strict-mcp-config", "--setting-sources"} <= set(words)
    assert "CLAUDE_CONFIG_DIR" not in profile.env
    assert profile.isolated.network
    assert profile.isolated.config == "CLAUDE_CONFIG_DIR"
    assert profiles.load("claude").isolated == profiles.Isolation()


OWN = {
    "mine.yaml": "argv: [cat]\noutput: json\ntakes:\n  model:\n    - -m{}\n",
    "mine.yml": "{argv: [cat], output: json, takes: {model: ['-m{}']}}\n",
    "mine.toml": 'argv = ["cat"]\noutput = "json"\n[takes]\nmodel = ["-m{}"]\n',
}


@pytest.mark.parametrize("name", OWN)
def test_a_profile_of_ones_own(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(OWN[name])
    profile = profiles.load(str(path))
    assert (profile.argv, profile.output, profile.takes) == (("cat",), "json", {"model": ("-m{}",)})
    with pytest.raises(NotFoundError, match="there are: claude, pythia"):
        profiles.load("no-such")


NO_TEXTS = "the value is not a list of texts"
NO_MAPPING = "the value is not a mapping"
NO_FOLDER = "isolated.transcripts: the value is not the path of a folder in that of"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("argv: [x]\nisolated: 3", f"line 2: isolated: {NO_MAPPING}"),
        (
            "argv: [x]\nisolated:\n  open: 1",
            "line 3: unknown keys: open; there are network, config",
        ),
        (
            "argv: [x]\nisolated:\n  network: yes",
            "line 3: isolated.network: the value is not true or false",
        ),
        (
            "argv: [x]\nisolated:\n  config: A-B",
            "line 3: isolated.config: the value is not the name of a variable",
        ),
        ("argv: [x]\nisolated:\n  transcripts: ../x", f"line 3: {NO_FOLDER}"),
        ("argv: [x]\nisolated: {transcripts: /x}", f"line 2: {NO_FOLDER}"),
        ("argv: [x]\nisolated:\n  lends: 3", f"line 3: isolated.lends: {NO_TEXTS}"),
        ("argv: 3", f"line 1: argv: {NO_TEXTS}"),
        ("argv:\n  - a\n  - true", "line 3: argv: the value is not text; put it in quotes"),
        ('argv: [a, "\\ud800"]', "line 1: "),
        ("", "argv: the key is missing"),
        ("argv: []", "line 1: argv: the program's name is missing"),
        ("argv: [a]\noutput: xml", "line 2: output: the value is not text, json or claude"),
        ("argv: [a]\noutput: jsn", "line 2: output: the value is not text, json or claude"),
        ("argv: [a]\nenv: PATH", f"line 2: env: {NO_TEXTS}"),
        ("argv: [a]\ntakes: []", f"line 2: takes: {NO_MAPPING}"),
        ("argv: [a]\ntakes:\n  model: [-m]", "line 3: takes.model: no word has a {}"),
        ("argv: [a]\nshell: true", "line 2: unknown keys: shell; there are argv, output"),
        ("argv: [a]\nouptut: json", "line 2: unknown keys: ouptut (did you mean output?); there"),
        ("argv: [", "line 1: 'argv: [' is not of the form `key: value`"),
        ("#" * 70_000, "it has 70000 bytes, more than 65536"),
    ],
)
def test_what_is_no_profile_is_refused(text: str, problem: str) -> None:
    with pytest.raises(BadArgumentError) as refused:
        profiles.parse_profile(text.encode())
    assert str(refused.value).startswith(problem)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("argv = ['x']\nisolated = 3", f"isolated: {NO_MAPPING}"),
        ("argv = ['x']\n[isolated]\nopen = 1", "unknown keys: open; there are network, config"),
        (
            "argv = ['x']\n[isolated]\nnetwork = 'yes'",
            "isolated.network: the value is not true or false",
        ),
        (
            "argv = ['x']\n[isolated]\nnetwork = 1",
            "isolated.network: the value is not true or false",
        ),
        ("argv = ['x', 3]", "argv: the value is not text; put it in quotes"),
        ("argv = 3", f"argv: {NO_TEXTS}"),
        ("", "argv: the key is missing"),
        ("argv = [", "it is not TOML"),
        ("a = " + "[" * 5_000, "it is not TOML"),
        ("#" * 70_000, "it has 70000 bytes, more than 65536"),
    ],
)
def test_what_is_no_profile_in_toml_is_refused(text: str, problem: str) -> None:
    with pytest.raises(BadArgumentError) as refused:
        profiles.parse_profile(text.encode(), toml=True)
    assert str(refused.value).startswith(problem)


def test_an_order_is_named_by_what_it_says() -> None:
    order = spec.described_spec(SpawnSpec(argv=("a", "b")))
    names = {
        spec.spec_spawn_id("worker", "x", 1, order),
        spec.spec_spawn_id("worker", "x", 2, order),
        spec.spec_spawn_id("worker", "y", 1, order),
        spec.spec_spawn_id("pythia", "x", 1, order),
        spec.spec_spawn_id("worker", "x", 1, spec.described_spec(SpawnSpec(argv=("a b",)))),
    }
    assert len(names) == 5
    assert spec.spec_argv_digest(("a", "b")) != spec.spec_argv_digest(("a b",))
    assert json.loads(order)["timeout_ms"] == 600_000
