"""Whom a message addresses: by the rule of the original, and without its holes."""

import pytest
from hypothesis import given
from strategies import texts

from tripod.projections.chat.format import EVENTS, chat_mentions


@pytest.mark.parametrize(
    ("text", "handles"),
    [
        ("@alex hello", {"alex": "mention"}),
        ("@alex @bob @alex", {"alex": "mention", "bob": "mention"}),
        ("@bob! @eve? @carl\\! @dan\\?", {"bob": "interrupt", "eve": "query", "carl": "interrupt",
                                          "dan": "query"}),
        ("@bob please, @bob! now", {"bob": "interrupt"}),
        ("@bob! ... @bob? ... @bob", {"bob": "interrupt"}),
        ("@bob, @bob?", {"bob": "query"}),
        ("@@fay and (@eve)", {"fay": "mention", "eve": "mention"}),
        ("@trail- ", {"trail-": "mention"}),
        ("done.@bob a@b x+@y 1@z -@w _@v", {}),
        ("é@bob", {"bob": "mention"}),
        ("@ai and @aiden", {"ai": "mention", "aiden": "mention"}),
        ("@" + "x" * 63, {"x" * 63: "mention"}),
        ("@" + "x" * 64, {}),
        ("@ alone", {}),
        (" ".join(f"@h{n}" for n in range(40)), {f"h{n}": "mention" for n in range(40)}),
    ],
)  # fmt: skip
def test_mentions(text: str, handles: dict[str, str]) -> None:
    assert dict(chat_mentions(text)) == handles
    assert [name for name, _ in chat_mentions(text)] == list(handles)


@given(texts(), texts())
def test_what_is_said_besides_addresses_nobody_else(before: str, after: str) -> None:
    there = {name for name, _ in chat_mentions(f"{before} @zoe! {after}")}
    apart = {name for name, _ in (*chat_mentions(before), *chat_mentions(after))}
    assert there == apart | {"zoe"}
    assert dict(chat_mentions(f"{before} @zoe! {after}"))["zoe"] == "interrupt"


def test_an_interrupt_is_critical_and_nothing_else_is() -> None:
    assert {how: priority for how, (_, priority) in EVENTS.items()} == {
        "mention": "high", "query": "high", "interrupt": "critical",
    }  # fmt: skip
