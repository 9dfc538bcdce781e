"""A stand-in for the endpoint of a coding agent's model, on the loopback address.

It speaks as much of the Messages API as Claude Code asks for: an answer as a stream of events or as
one object, a count of tokens, errors. ``answer`` says what it answers to a request; ``as_a_panel``
is the scripted panel, which finds in the prompt that the request holds who is asked for what.
"""

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType
from typing import Any, NamedTuple

from worked import panel_module

__all__ = [
    "Answering",
    "Asked",
    "ModelEndpoint",
    "Reply",
    "as_a_panel",
    "error",
    "says",
    "served_model",
]

MESSAGES = "/v1/messages"
COUNT = f"{MESSAGES}/count_tokens"
_EVENTS = "text/event-stream"
_JSON = "application/json"


class Asked(NamedTuple):
    """A request as it came: ``key`` is the key or the token by which its sender is logged in."""

    path: str
    key: str
    body: dict[str, Any]
    raw: str

    @property
    def prompt(self) -> str:
        """What the program was given, as it passed it on."""
        said = self.body["messages"][0]["content"]
        return said if isinstance(said, str) else "".join(part["text"] for part in said)


class Reply(NamedTuple):
    """An answer over HTTP."""

    code: int
    data: bytes
    form: str = _JSON


Answering = Callable[[Asked], Reply]


@cache
def _panel() -> ModuleType:
    return panel_module()


def as_a_panel(asked: Asked) -> Reply:
    """Answer as the scripted panel does; a request without a turn is the fault of who asks."""
    try:
        return says(asked, json.dumps(_panel().answered(asked.prompt)))
    except ValueError as problem:
        return error(400, "invalid_request_error", str(problem))


def says(asked: Asked, text: str, stop_reason: str = "end_turn") -> Reply:
    """An answer in words, in the form that is asked for; '' is a message without a block."""
    usage = {"input_tokens": len(asked.prompt) // 4 + 1, "output_tokens": len(text) // 4 + 1}
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": asked.body.get("model", ""),
        "content": [{"type": "text", "text": text}] if text else [],
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": usage,
    }
    if not asked.body.get("stream"):
        return Reply(200, json.dumps(message).encode())
    begun = message | {"content": [], "stop_reason": None, "usage": usage | {"output_tokens": 1}}
    events: list[tuple[str, dict[str, Any]]] = [("message_start", {"message": begun})]
    if text:
        middle, block = len(text) // 2, {"type": "text", "text": ""}
        events.append(("content_block_start", {"index": 0, "content_block": block}))
        for part in (text[:middle], text[middle:]):
            delta = {"type": "text_delta", "text": part}
            events.append(("content_block_delta", {"index": 0, "delta": delta}))
        events.append(("content_block_stop", {"index": 0}))
    end = {"stop_reason": stop_reason, "stop_sequence": None}
    events += [("message_delta", {"delta": end, "usage": usage}), ("message_stop", {})]
    lines = (f"event: {k}\ndata: {json.dumps({'type': k, **data})}\n\n" for k, data in events)
    return Reply(200, "".join(lines).encode(), _EVENTS)


def error(code: int, kind: str, message: str) -> Reply:
    """An error as the API gives it."""
    value = {"type": "error", "error": {"type": kind, "message": message}}
    return Reply(code, json.dumps(value).encode())


class ModelEndpoint(ThreadingHTTPServer):
    """The endpoint; ``answer`` may be changed while it serves.

    ``asked`` are the requests for an answer in the order in which they came, ``strange`` the lines
    of those that no endpoint of a model needs to know.
    """

    daemon_threads = True

    def __init__(self, answer: Answering) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.asked: list[Asked] = []
        self.strange: list[str] = []
        self.changed = threading.Condition()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A program that was ended asks no more, and no thread has to say so."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def wait_for(self, requests: int, seconds: float = 30) -> bool:
        """Whether so many requests for an answer came in time."""
        with self.changed:
            return self.changed.wait_for(lambda: len(self.asked) >= requests, seconds)

    def take(self, path: str, key: str, raw: bytes) -> Reply:
        """Note a request, and answer it."""
        asked = Asked(path.partition("?")[0], key, json.loads(raw), raw.decode())
        if asked.path == COUNT:
            return Reply(200, json.dumps({"input_tokens": len(asked.raw) // 4}).encode())
        with self.changed:
            self.asked.append(asked)
            self.changed.notify_all()
        return self.answer(asked)


class _Handler(BaseHTTPRequestHandler):
    server: ModelEndpoint
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.path.partition("?")[0] in (MESSAGES, COUNT):
            token = self.headers.get("authorization", "").removeprefix("Bearer ")
            key = self.headers.get("x-api-key", token)
            self._send(self.server.take(self.path, key, raw))
        else:
            self._strange()

    def do_GET(self) -> None:
        self._strange()

    do_HEAD = do_PUT = do_GET  # noqa: N815 - so the base class calls them

    def _strange(self) -> None:
        self.server.strange.append(self.requestline)
        self._send(error(404, "not_found_error", "not found"))

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.code)
        self.send_header("content-type", reply.form)
        self.send_header("content-length", str(len(reply.data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply.data)

    def log_message(self, *_: object) -> None:
        """Say nothing: the requests are noted."""


@contextmanager
def served_model(answer: Answering = as_a_panel) -> Iterator[ModelEndpoint]:
    """An endpoint that answers as long as the ``with`` lasts."""
    with ModelEndpoint(answer) as endpoint:
        thread = threading.Thread(target=endpoint.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield endpoint
        finally:
            endpoint.shutdown()
            thread.join()
