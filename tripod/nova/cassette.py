"""Gives recorded answers back: a program that reads a prompt, and prints what was answered to it.

    python cassette.py TAPE < prompt

TAPE is a JSON object: for the SHA-256 of each prompt in hex its answer, ``[exit code, text]``. A
prompt that is not on it was never given, and ends with exit code 3. It runs where nothing else of
tripod is there: of the standard library alone.
"""

import json
import sys
from hashlib import sha256

UNKNOWN = 3


def play(tape: str, prompt: bytes) -> tuple[int, str]:
    """The exit code and the text that a tape (JSON) has for a prompt."""
    answer = json.loads(tape).get(sha256(prompt).hexdigest())
    if answer is None:
        return UNKNOWN, ""
    code, text = answer
    return int(code), str(text)


def main(argv: list[str]) -> int:
    """Answer the prompt on standard input from the tape that ``argv`` names."""
    with open(argv[0], encoding="utf-8") as file:
        code, text = play(file.read(), sys.stdin.buffer.read())
    if code == UNKNOWN and not text:
        sys.stderr.write("this prompt was never given in the run that is played\n")
    sys.stdout.write(text)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
