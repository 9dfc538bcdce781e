"""The description of a run of a program, and its result. Pure.

Source: spec kernel A-2, A-5, A-9.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from tripod.ledger import format_canonical
from tripod.projections.workers.answers import Answer, Output, Status

BASIC_ENV = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
"""Names of the environment that any program may see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """A tool server that describes itself: a program to run, or an address with headers."""

    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """What a program is asked to use; ``more`` are parameters without a field of their own."""

    model: str | None = None
    effort: str | None = None
    schema: Mapping[str, Any] | None = None
    tools: tuple[str, ...] | None = None
    mcp_servers: Mapping[str, McpServer] | None = None
    more: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnSpec:
    """The order for one run of one program.

    ``argv`` is its command line, word by word; no shell ever reads it. ``stdin`` is its prompt.
    It sees the variables named in ``env`` as they are here, those in ``set_env``, and ``secrets``,
    of which the ledger holds digests alone. ``timeout_s`` None: no limit.

    ``takes`` says by which words the program takes a parameter, ``{}`` standing for the value:
    ``{"model": ("--model", "{}")}``. A parameter that is given and not taken is listed in the
    result's ``unsupported_params``, never dropped in silence. With ``prompt`` in it, the prompt is
    an argument, and standard input is empty.

    ``sealed`` are files in memory that the program inherits: of each the number of the word of
    ``argv`` in whose place its descriptor stands, and its bytes. ``leaves``: the program may write
    to descriptor 9 what it leaves beside its output.
    """

    argv: tuple[str, ...]
    stdin: bytes = b""
    env: tuple[str, ...] = BASIC_ENV
    set_env: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    timeout_s: float | None = 600.0
    output: Output = "text"
    takes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    parameters: Parameters = field(default_factory=Parameters)
    sealed: Mapping[int, bytes] = field(default_factory=dict)
    leaves: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnResult:
    """How a run ended, and its answer.

    ``problem`` says in words what is wrong with any status but ``ok``. ``left`` is what it left
    beside its output; ``altered`` are digest in hex and size of outputs that another program
    changed before they could be read, by name.
    """

    status: Status
    problem: str = ""
    exit_code: int | None = None
    signal: int | None = None
    wall_ms: int = 0
    answer: Answer = field(default_factory=Answer)
    stdout: bytes = b""
    stderr: bytes = b""
    unsupported_params: tuple[str, ...] = ()
    left: bytes = b""
    altered: Mapping[str, tuple[str, int]] = field(default_factory=dict)


def spec_command_line(spec: SpawnSpec, mcp_path: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The command line (its tool servers are in ``mcp_path``), and parameters it cannot take."""
    asked = spec.parameters
    values = {
        "model": asked.model,
        "effort": asked.effort,
        "schema": None if asked.schema is None else format_canonical(dict(asked.schema)).decode(),
        "tools": None if asked.tools is None else ",".join(asked.tools),
        "mcp_servers": None if asked.mcp_servers is None else mcp_path,
    }
    words, unsupported = list(spec.argv), []
    for name, value in [*values.items(), *sorted(asked.more.items())]:
        if value is None:
            continue
        form = spec.takes.get(name)
        if form is None:
            unsupported.append(name)
        else:
            words += [word.replace("{}", value) for word in form]
    if "prompt" in spec.takes:
        text = spec.stdin.decode("utf-8", "replace")
        words += [word.replace("{}", text) for word in spec.takes["prompt"]]
    return tuple(words), tuple(unsupported)


def spec_mcp_config(servers: Mapping[str, McpServer]) -> bytes:
    """The configuration file of tool servers, as coding agents read it."""
    return format_canonical(
        {"mcpServers": {name: _server(one, str) for name, one in servers.items()}}
    )


def _server(server: McpServer, shown: Callable[[str], str]) -> dict[str, Any]:
    """A server for JSON; ``shown`` gives how a value is written that may be secret."""
    if server.url is not None:
        headers = {name: shown(value) for name, value in server.headers.items()}
        return {"type": "http", "url": server.url, "headers": headers}
    env = {name: shown(value) for name, value in server.env.items()}
    return {"command": server.command or "", "args": list(server.args), "env": env}


def described_spec(spec: SpawnSpec) -> bytes:
    """The order as it is recorded: canonical JSON, values of secrets and the prompt as digests."""

    def digest(text: str) -> str:
        return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()

    asked = spec.parameters
    value: dict[str, Any] = {
        "argv": list(spec.argv),
        "env": sorted(spec.env),
        "more": dict(asked.more),
        "output": spec.output,
        "secrets": {name: digest(value) for name, value in spec.secrets.items()},
        "set_env": dict(spec.set_env),
        "stdin": {"sha256": sha256(spec.stdin).hexdigest(), "size": len(spec.stdin)},
        "takes": {name: list(words) for name, words in spec.takes.items()},
    }
    if spec.sealed:
        value["sealed"] = [
            {"sha256": sha256(data).hexdigest(), "size": len(data), "word": word}
            for word, data in sorted(spec.sealed.items())
        ]
    if spec.timeout_s is not None:
        value["timeout_ms"] = round(spec.timeout_s * 1000)
    if asked.schema is not None:
        value["schema"] = format_canonical(dict(asked.schema)).decode()
    if asked.tools is not None:
        value["tools"] = list(asked.tools)
    if asked.mcp_servers is not None:
        value["mcp_servers"] = {n: _server(one, digest) for n, one in asked.mcp_servers.items()}
    plain = {"cwd": spec.cwd, "effort": asked.effort, "model": asked.model}
    return format_canonical(value | {name: one for name, one in plain.items() if one is not None})


def spec_spawn_id(role: str, subject: str, attempt: int, spec: bytes) -> str:
    """The name of a run, from what is done and never from a counter (spec: kernel K-6)."""
    front = b"".join(b"%s\0" % part.encode() for part in (role, subject, str(attempt)))
    return sha256(front + spec).hexdigest()[:32]


def is_spec_spawn_id(name: str) -> bool:
    """Whether this may be a name that ``spec_spawn_id`` gave."""
    return re.fullmatch("[0-9a-f]{32}", name) is not None


def spec_argv_digest(argv: tuple[str, ...]) -> str:
    """SHA-256 in hex of a command line, each word ended by a NUL."""
    return sha256(b"".join(w.encode("utf-8", "surrogateescape") + b"\0" for w in argv)).hexdigest()
