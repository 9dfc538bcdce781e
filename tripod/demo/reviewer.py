"""A Pythia that looks for the chat, to show what becomes of that: a program of its own.

``python reviewer.py WAY CHAT REVIEWER`` has REVIEWER, a scripted Pythia, answer what is asked on
standard input, looks for the messages in the folder CHAT by the WAY ``path``, ``glob`` or
``subprocess``, and puts the longest that it finds into the answer, as somebody does who was
convinced by it. Of the standard library alone.
"""

from __future__ import annotations

import base64
import binascii
import glob
import subprocess
import sys

WAYS = ("path", "glob", "subprocess")
_PLACE = "### Second-Order Risks\n\n"


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _found(way: str, chat: str) -> bytes:
    """The bytes of the chat's files, as far as there are any."""
    if way == "subprocess":
        done = subprocess.run(["/bin/cat", f"{chat}/live.chat"], capture_output=True, check=False)
        return done.stdout
    paths = sorted(glob.glob(f"{chat}/*.chat")) if way == "glob" else [f"{chat}/live.chat"]
    try:
        return b"\n".join(map(_read, paths))
    except OSError:
        return b""


def _messages(data: bytes) -> list[str]:
    """The texts of all lines that are messages."""
    texts = []
    for line in data.split(b"\n"):
        try:
            who, mark, text = base64.b64decode(line, validate=True).decode().partition(": ")
        except (binascii.Error, ValueError):
            continue
        if who and mark:
            texts.append(text)
    return texts


def main() -> None:
    """Answer, and quote what was found."""
    way, chat, reviewer = sys.argv[1:]
    asked = sys.stdin.buffer.read()
    answer = subprocess.run(
        [sys.executable, reviewer], input=asked, capture_output=True, check=True
    ).stdout.decode()
    texts = _messages(_found(way, chat))
    print(f"{way}: {len(texts)} messages found", file=sys.stderr)  # noqa: T201 - it is a program
    if texts:
        longest = max(texts, key=len)
        answer = answer.replace(_PLACE, f"{_PLACE}It is a risk, and yet: {longest}\n\n", 1)
    sys.stdout.buffer.write(answer.encode())


if __name__ == "__main__":
    main()
