"""``spawn_agent``: run one program once, and say how it ended. No retry, no protocol.

Source: spec kernel A-1, A-5, A-7. What records a run, and goes on after a death, is
``tripod.agents.errands``.
"""

from __future__ import annotations

import asyncio
import os
from hashlib import sha256
from tempfile import TemporaryDirectory

from ledger.plain import open_plain
from tripod.agents import wrapper
from tripod.agents.outputs import Answer, read_answer
from tripod.agents.spec import Output, SpawnResult, SpawnSpec, Status
from tripod.agents.spool import LOST, End, Look, Spool

MAX_OUTPUT = wrapper.MAX_OUTPUT  # bytes of output that are read; more is no answer
_NOBODY = "whoever ran it was killed"
_TRY_AGAIN_S = 0.02  # while a cancelled run is only about to start

_ENDS: dict[str, Status] = {
    "timeout": "timeout",
    "cancelled": "killed",
    "signalled": "killed",
    "not_started": "not_started",
    "abandoned": "killed",
}


async def spawn_agent(spec: SpawnSpec, spool: Spool | None = None) -> SpawnResult:
    """Run one program once; being cancelled ends it (SIGTERM, five seconds, SIGKILL).

    Args:
        spec: what to run, and how.
        spool: where its files lie; in a temporary folder by default. The file with secrets of tool
            servers is gone once the run is over.

    Raises:
        ValueError: another run is going on in that spool.
    """
    if spool is None:
        with TemporaryDirectory(prefix="tripod-") as folder:
            return await spawn_agent(spec, Spool(f"{folder}/run"))
    work = asyncio.ensure_future(asyncio.to_thread(_run, spec, spool))
    try:
        unsupported, look = await asyncio.shield(work)
    except asyncio.CancelledError:
        while not work.done() and not spool.cancel():
            await asyncio.wait([work], timeout=_TRY_AGAIN_S)
        await asyncio.wait([work])
        raise
    return result_of(
        spool, look, spec.output, wants_structure=spec.schema is not None, unsupported=unsupported
    )


def _run(spec: SpawnSpec, spool: Spool) -> tuple[tuple[str, ...], Look]:
    """The blocking core, in a thread of its own."""
    with spool.held() as lock:
        if lock is None:
            raise ValueError(f"{spool.path}: another run is going on there")
        spool.clear()
        secret = os.urandom(32)
        spool.key = wrapper.public_of(secret)
        unsupported = spool.launch(spec, lock, secret)
    look = spool.wait()
    return unsupported, spool.give_up(_NOBODY) if look.state == LOST else look


def result_of(
    spool: Spool,
    look: Look,
    output: Output,
    *,
    wants_structure: bool = False,
    unsupported: tuple[str, ...] = (),
) -> SpawnResult:
    """How a run ended that is over, from what stands in its spool.

    Args:
        spool: where its files are.
        look: what became of it; a lost one was killed.
        output: how the program answers.
        wants_structure: a schema was asked for.
        unsupported: parameters that it cannot take.
    """
    end = look.end or End("abandoned", None, None, _NOBODY, 0, 0)
    altered: dict[str, tuple[str, int]] = {}
    stdout, cut = _printed(spool, look, end, "stdout", altered)
    stderr, _ = _printed(spool, look, end, "stderr", altered)
    left, too_much = _printed(spool, look, end, "left", altered)
    answer = read_answer(output, stdout, wants_structure=wants_structure)
    status, problem = answer.status, answer.problem
    if cut:
        status, problem = "bad_output", f"it printed more than {MAX_OUTPUT} bytes"
    if altered:
        names = " and ".join(altered)
        status, problem = "bad_output", f"another program changed what it printed ({names})"
        answer = Answer(status, problem)
    if end.outcome in _ENDS:
        status, problem = _ENDS[end.outcome], _words(end)
    elif end.exit_code:
        status, problem = "nonzero", f"it ended with exit code {end.exit_code}"
    return SpawnResult(
        status=status,
        problem=problem,
        exit_code=end.exit_code,
        signal=end.signal,
        wall_ms=end.wall_ms,
        text=answer.text,
        structured=answer.structured,
        usage=answer.usage,
        cost=answer.cost,
        session=answer.session,
        stdout=stdout,
        stderr=stderr,
        unsupported_params=unsupported,
        left=b"" if too_much else left,
        altered=altered,
    )


def _printed(
    spool: Spool, look: Look, end: End, name: str, altered: dict[str, tuple[str, int]]
) -> tuple[bytes, bool]:
    """An output's bytes, and whether there are more; those that were changed go to ``altered``."""
    path = getattr(spool, name)
    if spool.elsewhere.get(name):
        first = None if look.started is None else getattr(look.started, f"{name}_from")
        return (b"", False) if first is None else _bytes_of(path, first)
    told = end.outputs.get(name)
    if told is None:
        # Nobody says what it printed. It counts where the run is lost anyway, and in one that an
        # older version began, which has no key.
        counts = look.started is not None and (not spool.key or end.outcome == "abandoned")
        return _bytes_of(path, 0) if counts else (b"", False)
    data = _bytes_of(path, 0, MAX_OUTPUT + 1)[0]
    if sha256(data).hexdigest() != told[0]:
        altered[name] = told
        return b"", False
    return data[:MAX_OUTPUT], len(data) > MAX_OUTPUT


def _words(end: End) -> str:
    words = {
        "timeout": f"it was ended: its time was over after {end.wall_ms / 1000:.1f} s",
        "cancelled": "it was ended because it was told to",
        "signalled": f"it was killed by signal {end.signal}",
        "not_started": f"it could not be started: {end.reason}",
    }
    return words.get(end.outcome, end.reason)


def _bytes_of(path: str, first: int, most: int = MAX_OUTPUT) -> tuple[bytes, bool]:
    """A file's bytes from ``first`` on, and whether there are more than are read."""
    try:
        with open(open_plain(path), "rb") as file:
            file.seek(first)
            data = file.read(most + 1)
    except OSError:
        return b"", False
    return data[:most], len(data) > most
