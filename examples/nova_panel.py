"""A scripted Nova panel: reads what a persona is given, and answers in its place.

    tripod nova process "OAuth2 or custom JWT?" -- python3 examples/nova_panel.py

It replaces a model in the demo and in tests, and shows what a persona is given and has to answer.
It finds in the prompt which persona it is and what is wanted of it, and answers as SCRIPT says;
``--script FILE`` gives another script as JSON, whose keys are ``role`` or ``persona``, or
``cycle-role-persona``. With ``--digest`` each expert adds the digest of its prompt, which no other
can know. It reads standard input and nothing else; of the standard library alone.
"""

from __future__ import annotations

import json
import re
import sys
from hashlib import sha256
from typing import Any

CYCLE = re.compile(r"^This is cycle ([0-9]+), role ([a-z]+)\.$", re.MULTILINE)
LABELS = re.compile(r"^persona: (\S+)\nturn: ([0-9]+)$", re.MULTILINE)

SCRIPT: dict[str, dict[str, Any]] = {
    "unpack": {
        "requirements": ["third-party login", "mobile clients"],
        "considerations": ["breach cost", "latency", "time to integrate"],
        "experts": ["security", "performance", "integration"],
        "epistemic": {"know": 0.40, "uncertainty": 0.70},
    },
    "security": {
        "analysis": "OAuth2 is more secure: tokens are short-lived and can be revoked.",
        "findings": ["a home-made JWT has no revocation"],
        "risk_level": "MEDIUM",
    },
    "performance": {
        "analysis": "Custom JWT is faster by one lookup a request, which nobody will notice.",
        "findings": ["the lookup can be cached"],
    },
    "integration": {
        "analysis": "OAuth2 is easier to integrate: each provider that we need speaks it.",
        "findings": ["three providers publish libraries"],
    },
    "synthesis": {
        "proposal": "OAuth2 with PKCE",
        "consensus": ["OAuth2 fits what is needed"],
        "trade_offs": ["one lookup a request for revocable tokens"],
        "dissenters": [],
        "open_questions": ["which provider first?"],
        "epistemic": {"know": 0.75, "uncertainty": 0.35},
    },
    "critique": {
        "issues": [{"severity": "minor", "text": "What about mobile apps?"}],
        "edge_cases": ["an app that is offline for a week"],
    },
    "revision": {
        "proposal": "OAuth2 with PKCE, for mobile apps as well: they hold no secret of ours.",
        "trade_offs": ["one lookup a request for revocable tokens"],
    },
    "final": {
        "decision": "OAuth2 with PKCE + mobile PKCE",
        "confidence": 0.92,
        "epistemic": {"know": 0.90, "uncertainty": 0.15},
    },
}


def asked(prompt: str) -> tuple[str, str, str, int]:
    """The cycle, the role, the persona and the turn that a prompt asks for."""
    cycle, labels = list(CYCLE.finditer(prompt)), list(LABELS.finditer(prompt))
    if not cycle or not labels:
        raise ValueError("nothing on standard input asks for a turn")
    return cycle[-1][1], cycle[-1][2], labels[-1][1], int(labels[-1][2])


def answered(prompt: str, script: dict[str, dict[str, Any]] = SCRIPT) -> dict[str, Any]:
    """What the script answers to a prompt; ValueError where it has no answer."""
    cycle, role, persona, turn = asked(prompt)
    for key in (f"{cycle}-{role}-{persona}", persona, role):
        if key in script:
            return {"persona": persona, "turn": turn, **script[key]}
    raise ValueError("the script has no answer for this turn")


def digest_in_words(prompt: str) -> str:
    """What nobody else can have written: the digest of a prompt, as 16 words."""
    digits = sha256(prompt.encode()).hexdigest()
    return " ".join(digits[at : at + 4] for at in range(0, 64, 4))


def main(argv: list[str]) -> int:
    """Answer the turn that standard input asks for."""
    script = SCRIPT
    if argv[:1] == ["--script"]:
        with open(argv[1], encoding="utf-8") as file:
            script = json.load(file)
    prompt = sys.stdin.read()
    try:
        said = answered(prompt, script)
    except ValueError as error:
        sys.stderr.write(f"nova_panel: {error}\n")
        return 1
    if "--digest" in argv and "analysis" in said:
        said["analysis"] += f" I was given {digest_in_words(prompt)}."
    sys.stdout.write(json.dumps(said) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
