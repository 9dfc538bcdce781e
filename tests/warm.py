"""Our programs without the time that each takes to start: a server forks them, all modules loaded.

``search_path()`` is a ``PATH`` that begins with a folder of small programs, ``tripod`` and the
``nbs-*`` commands. Each hands its words, folder, environment and open files to the server and waits
for the exit code. What the start of a process decides (locale, encoding), the environment of the
server decides. A command with a closed file or a ``PYTHONPATH`` starts the installed program, which
other tests try as well.
"""

import atexit
import gc
import importlib
import io
import os
import pkgutil
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import redirect_stderr, redirect_stdout, suppress
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from unittest import mock

__all__ = ["search_path"]

PROGRAM = """#!{python} -IS
import os, sys, _socket
try:
    for number in range(3):
        os.fstat(number)
    server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    server.connect({address!r})
    warm = "PYTHONPATH" not in os.environ
except OSError:
    warm = False
if not warm:
    os.execv({program!r}, [{program!r}, *sys.argv[1:]])
words = [{name!r}, *sys.argv[1:]]
parts = [os.getcwdb(), b"%d" % len(words), *map(os.fsencode, words)]
parts += [name + b"=" + value for name, value in os.environb.items()]
files = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
text = b"\\0".join(parts)
server.sendmsg([b"%10d" % len(text)], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
while text:
    text = text[server.send(text):]
for number in range(3):
    os.close(number)
os._exit(int(server.recv(3) or b"70"))
"""

USUAL = (
    "init", "bus publish ann done high text", "bus check", "chat create live", "chat read live",
    "chat send live ann text", "scribe log Files -p ann -r last --no-ref none", "worker list",
    "show", "verify", "report -o report.html", "rebuild", "log", "--help",
)  # fmt: skip
"""Commands that every server has run before it forks."""


def search_path(**environment: str) -> str:
    """A ``PATH`` that begins with our programs, as they are when they start in this environment."""
    folders = (_programs(tuple(environment.items())), Path(sys.executable).parent)
    return os.pathsep.join((*map(str, folders), os.environ["PATH"]))


@cache
def _programs(environment: tuple[tuple[str, str], ...]) -> Path:
    """The folder; it is gone when the tests end."""
    folder = Path(tempfile.mkdtemp(prefix="tripod-programs-"))
    address = str(folder / "server")
    listening = socket.socket(socket.AF_UNIX)  # who asks before the server is ready waits
    listening.bind(address)
    listening.listen(64)
    server = subprocess.Popen(
        [sys.executable, "-P", __file__, str(listening.fileno())],
        cwd=folder,
        env={"TRIPOD_HOME": str(folder), "TRIPOD_AS": "ann", **dict(environment)},
        pass_fds=[listening.fileno()],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    listening.close()

    def end() -> None:
        server.kill()
        server.wait()
        shutil.rmtree(folder)

    atexit.register(end)
    tools = Path(sys.executable).parent
    for program in (tools / "tripod", *tools.glob("nbs-*")):
        path = folder / program.name
        words = {"name": path.name, "program": str(program)}
        path.write_text(PROGRAM.format(python=sys.executable, address=address, **words))
        path.chmod(0o755)
    return folder


def _serve(listening: socket.socket) -> None:
    """Fork for each request; only the child that is to be the program returns."""
    ended, signalled = socket.socketpair()
    signalled.settimeout(0)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(signalled.fileno(), warn_on_full_buffer=False)
    starter = os.getppid()
    waiting: dict[int, socket.socket] = {}  # who waits for which program
    while True:
        ready, _, _ = select.select([listening, ended], [], [], 5)
        if not ready and os.getppid() != starter:
            os._exit(0)
        if ended in ready:
            ended.recv(4096)
            for program in list(waiting):
                done, status = os.waitpid(program, os.WNOHANG)
                if done:
                    code = os.waitstatus_to_exitcode(status)
                    with waiting.pop(program) as asked, suppress(OSError):
                        asked.send(b"%d" % (code if code >= 0 else 128 - code))
        if listening in ready:
            asked, _ = listening.accept()
            head, files, _, _ = socket.recv_fds(asked, 10, 3)
            size, text = int(head or 0), b""
            while part := asked.recv(size - len(text)) if len(text) < size else b"":
                text += part
            program = os.fork() if text and len(text) == size else -1  # else it was killed
            if program == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for one in (listening, ended, signalled, asked, *waiting.values()):
                    one.close()
                _become(text, files)
                return
            if program > 0:
                waiting[program] = asked
            for number in files:
                os.close(number)


def _become(request: bytes, files: list[int]) -> None:
    """Take the words, the folder, the environment and the open files of who asks."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    folder, count, *parts = request.split(b"\0")
    os.chdir(folder)
    os.environb.clear()
    for part in parts[int(count) :]:
        name, _, value = part.partition(b"=")
        os.environb[name] = value
    sys.argv = list(map(os.fsdecode, parts[: int(count)]))


def _load() -> None:
    """Load our code and run a few commands in this folder: what a process makes once is made."""
    import tripod
    from tripod.cli import main
    from tripod.ledger import codec
    from tripod.verify import run

    for module in pkgutil.walk_packages(tripod.__path__, "tripod."):
        importlib.import_module(module.name)
    mock.patch.object(run, "entry_points", cache(entry_points)).start()
    out = io.TextIOWrapper(io.BytesIO())
    # Each command counts anew how many values it writes until orjson is worth its import.
    with mock.patch.dict(vars(codec)), redirect_stdout(out), redirect_stderr(out):
        for words in USUAL:
            with suppress(SystemExit):
                main(words.split())


def _main() -> None:
    """Load our code, serve, and in the child go on as the program that was asked for."""
    # A thread has memory of its own. The holes that loading leaves in it are not filled by each
    # child, which would copy a page for each hole: a thousand pages for a short command.
    loading = threading.Thread(target=_load)
    loading.start()
    loading.join()
    from tripod.cli import main, nbs

    gc.collect()
    gc.freeze()
    _serve(socket.socket(fileno=int(sys.argv[1])))
    time.tzset()
    program = sys.argv[0]
    try:
        if program == "tripod":
            main()
        else:
            getattr(nbs, program.replace("-", "_"))()
    except SystemExit as end:
        if not isinstance(end.code, int) or threading.active_count() > 1:
            raise
        # To take apart all that was loaded costs more than most commands.
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(end.code)


if __name__ == "__main__":
    _main()
