"""Every command has a machine's answer; those that have none say why."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from docs.pages import ROOT
from doors.inside import begin, commands, run
from reviewed import EXAMPLE

from tripod.cli.commands import JSON_VERSION

PAGE = (ROOT / "docs/reference/json.md").read_text("utf-8")
ALREADY = {
    "prove": "a proof is a file of C2SP's form",
    "anchor ask": "a request is of C2SP's form",
    "witness sign": "an answer is of C2SP's form",
    "completion": "a script is for the shell",
    "demo": "it is told to people",
    "report": "it is a page for people: `verify --json` has the same verdict",
}
"""Commands without --json: what they print is for another program already, or for people alone."""


def test_every_command_answers_machines() -> None:
    without = {
        " ".join(words)
        for words, command in commands()
        if not any("--json" in param.opts for param in command.params)
    }
    assert without == ALREADY.keys()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return begin(tmp_path)


def answer(
    folder: Path, *words: str, given: bytes = b"", program: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The one object that a command prints."""
    done = run(folder, *words, "--json", *(("--", *program) if program else ()), given=given)
    assert done.code == 0, done.err
    (line,) = done.out.splitlines()
    return checked(words, line)


def checked(words: tuple[str, ...], line: bytes) -> dict[str, Any]:
    """An object that a command printed, without its version; the page has each of its fields."""
    value: dict[str, Any] = json.loads(line)
    assert value.pop("version") == JSON_VERSION
    fields = fields_of(" ".join(words[:2])) or fields_of(words[0])
    assert value.keys() <= fields, (words, value.keys() - fields)
    return value


def fields_of(command: str) -> set[str]:
    """The fields that the page gives for a command; '' where it has none of that name."""
    row = re.search(rf"^\| `{command}` \| [^|]* \| ([^|]*) \|$", PAGE, re.MULTILINE)
    found = set() if row is None else set(re.findall(r"`([a-z_]+)\??`", row[1]))
    other = None if row is None else re.search(r"as `([a-z -]+)`", row[1])
    return found | (set() if other is None else fields_of(other[1]))


def test_the_page_has_every_command_and_no_other() -> None:
    rows = set(re.findall(r"^\| `([a-z -]+)` \|", PAGE, re.MULTILINE))
    with_json = {
        " ".join(words)
        for words, command in commands()
        if any("--json" in param.opts for param in command.params)
    }
    assert rows == with_json


def test_what_the_bus_did(folder: Path) -> None:
    published = answer(folder, "bus", "publish", "ann", "task-complete", "low", "two\nlines")
    assert published.keys() == {"name"}
    read = answer(folder, "bus", "read", published["name"])
    assert read.pop("timestamp").endswith("Z")
    assert read == {
        "dedup_key": "ann:task-complete",
        "name": published["name"],
        "payload": "two\nlines",
        "priority": "low",
        "source": "ann",
        "type": "task-complete",
    }
    assert answer(folder, "bus", "ack", published["name"], "--as", "bob") == published
    assert answer(folder, "bus", "ack-all", "--handle", "nobody") == {"count": 0}
    assert answer(folder, "bus", "ack-all")["count"] == 3
    pruned = answer(folder, "bus", "prune", "--max-bytes", "1")
    assert pruned == {"files": 4, "folder": True, "left": 0, "limit": 1}


def test_what_the_workers_did(folder: Path) -> None:
    name = {"name": "w-0001"}
    task = ("worker", "spawn", "w", ".", "Say it.", "--name", "w-0001")
    assert answer(folder, *task, program=("echo", "said")) == name
    assert run(folder, "worker", "watch").code == 0
    assert answer(folder, "worker", "status", "w-0001")["state"] == "completed"
    answered = answer(folder, "worker", "results", "w-0001", "--answer")
    assert answered == {**name, "text": "said"}
    (line,) = run(folder, "worker", "search", "w-0001", "said", "--json").out.splitlines()
    assert checked(("worker", "search"), line) == {"line": "said"}
    assert answer(folder, "worker", "continue", "w-0001", "And again.") == name
    run(folder, "worker", "watch")
    assert answer(folder, "worker", "dismiss", "w-0001") == {**name, "dismissed": True}
    assert answer(folder, "worker", "dismiss", "w-0001") == {**name, "dismissed": False}
    task = ("worker", "spawn", "w", ".", "Wait.", "--name", "w-0002")
    answer(folder, *task, program=("sleep", "60"))
    escalated = answer(folder, "worker", "escalate", "No key.", "--name", "w-0002")
    assert escalated == {"name": "w-0002", "reason": "No key."}
    answer(folder, "worker", "dismiss", "w-0002")


def test_what_the_chat_and_the_scribe_did(folder: Path) -> None:
    made = answer(folder, "chat", "create", "side", "--as", "ann")
    assert made == {"path": str(folder / ".nbs/chat/side.chat")}
    sent = answer(folder, "chat", "send", "side", "ann", "--file", "-", given=b"hello")
    read = checked(("chat", "read"), run(folder, "chat", "read", "side", "--json").out)
    assert read == {**sent, "mark": "", "mentions": {}, "text": "hello"}
    assert (sent["ref"], sent["number"]) == ("side.chat:~L7", 0)
    assert answer(folder, "chat", "count", "side") == {"count": 1}
    seek = answer(folder, "chat", "cursor-set", "side", "bob", "0")
    assert seek == {"handle": "bob", "unread": 0}
    split = answer(folder, "chat", "archive", "side", "--keep", "0")
    assert (split["archived"], split["path"].endswith("-archive.chat")) == (1, True)
    assert answer(folder, "chat", "delete", "side", "--after", "1h") == {"deleted": 0, "kept": 0}
    assert answer(folder, "scribe", "count") == {"count": 1}


def test_what_a_witness_did(folder: Path) -> None:
    assert run(folder, "key", "new").code == 0
    vkey = answer(folder, "key", "show")["vkey"]
    made = answer(folder, "witness", "new", "w", "--name", "witness.example/w")
    assert made == {"vkey": answer(folder, "witness", "show", "w")["vkey"]}
    known = answer(folder, "witness", "trust", "w", vkey)
    assert known == {"origin": vkey.partition("+")[0], "vkey": vkey}
    answer(folder, "anchor", "witness", "w", "--key", made["vkey"])
    (receipt,) = run(folder, "anchor", "list", "--json").out.splitlines()
    written = answer(folder, "anchor", "receipt", str(json.loads(receipt)["seq"]), "out")
    assert written == {"files": ["out/receipt.note"]}
    assert (folder / "out/receipt.note").is_file()


PANEL = ROOT / "examples/nova_panel.py"


def test_what_nova_did(folder: Path) -> None:
    program = (sys.executable, str(PANEL))
    done = answer(folder, "nova", "process", "Tea?", program=program)
    shown = answer(folder, "nova", "status", "tea")
    whole = answer(folder, "nova", "show", "tea")
    turns = whole.pop("record")
    assert done == shown == whole
    assert [one["role"] for one in turns] == [
        "unpack", "expert", "expert", "expert", "synthesis", "critique", "revision", "final",
    ]  # fmt: skip
    assert shown["decision"] == turns[-1]["fields"]["decision"] == "OAuth2 with PKCE + mobile PKCE"
    assert shown["changes"] == {"know": "+0.50", "uncertainty": "-0.55"}
    assert (shown["outcome"], shown["turns"], shown["agents"], shown["next"]) == (
        "decided", 8, [], "",
    )  # fmt: skip
    assert answer(folder, "nova", "list").items() <= shown.items()
    figures = [
        checked(("nova", "metrics"), line)
        for line in run(folder, "nova", "metrics", "--json").out.splitlines()
    ]
    assert {one["name"]: one["value"] for one in figures}["turns per decision"] == "8.0000"
    later = run(folder, "nova", "metrics", "--since", "2100-01-01", "--json").out.splitlines()
    assert {json.loads(line)["value"] for line in later} == {None}
    stopped = run(folder, "nova", "process", "Oat?", "--budget", "1t", "--json", "--", *program)
    assert stopped.code == 1
    waits = checked(("nova", "process"), stopped.out)
    assert (waits["state"], waits["reason"], waits["turns_left"]) == (
        "awaiting_human", "budget", 0,
    )  # fmt: skip
    told = [
        json.loads(row)
        for row in run(folder, "nova", "compare", "tea", "oat", "--json").out.splitlines()
    ]
    assert all(checked(("nova", "compare"), json.dumps(row).encode()) for row in told)
    closed = answer(folder, "nova", "decide", "oat", "close", "--as", "ann")
    assert (closed["outcome"], closed["reason"]) == ("closed", "a person closed it")
    made = answer(folder, "nova", "personas", "init", "panel")
    assert made["written"][0] == "panel/core/DCE.md"
    listed = run(folder, "nova", "personas", "list", "panel", "--json").out.splitlines()
    assert [checked(("nova", "personas"), line)["short_name"] for line in listed[:2]] == [
        "dce", "cae",
    ]  # fmt: skip


def test_what_pythia_did(folder: Path) -> None:
    assert run(folder, "pythia", "due", "--json").out == b""
    program = (sys.executable, str(EXAMPLE))
    done = run(folder, "pythia", "run", "--manual", "--json", "--", *program)
    assert done.code == 0, done.err
    told = checked(("pythia", "run"), done.out)
    shown = answer(folder, "pythia", "show")
    assert told == {"answer": shown, "event": shown["event"], "problems": []}
    assert shown.keys() == {
        "channel", "cited", "confidence", "decisions", "event", "first", "last", "level",
        "message", "origin", "text",
    }  # fmt: skip
    ref = ("--ref", "live.chat:~L7")
    assert run(folder, "scribe", "log", "More", "-p", "ann", "-r", "why", *ref).code == 0
    assert run(folder, "bus", "publish", "ann", "pythia-checkpoint", "high").code == 0
    due = answer(folder, "pythia", "due")
    assert due.pop("us") > 0
    assert due == {
        "acknowledged": False, "claimed": None, "decisions": 1, "first": due["last"],
        "last": due["last"], "name": due["name"], "problem": None, "state": "waiting",
    }  # fmt: skip
    done = run(folder, "pythia", "run", "--json", "--", "echo", "no")
    told = checked(("pythia", "run"), done.out)
    assert (done.code, told["answer"], told["event"]) == (1, None, due["name"])
    assert told["problems"]
    assert answer(folder, "pythia", "due")["state"] == "failed"
    text = shown["text"].replace(shown["first"], due["first"])
    recorded = answer(folder, "pythia", "record", "--file", "-", given=text.encode())
    assert (recorded["origin"], recorded["level"]) == ("recorded", None)
