"""What commands print: nothing hostile to a terminal, exact bytes into a pipe, honest failures."""

import errno
import io
import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tripod import output
from tripod.errors import TripodError

HOSTILE = "a\x1b]0;title\x07\x9b2J\u202eevil\u2066\r\x00\x7f\u2028\ufeff\U000e0041\ud800z"


class Stream(io.TextIOWrapper):
    """A standard stream that may be a terminal, and may refuse to be written to."""

    def __init__(self, encoding: str = "utf-8", *, tty: bool = False, refuse: int = 0) -> None:
        self.bytes = io.BytesIO()
        super().__init__(self.bytes, encoding, newline="\n")
        self.tty = tty
        self.refuse = refuse

    def isatty(self) -> bool:
        return self.tty

    def flush(self) -> None:
        super().flush()
        if self.refuse and self.bytes.getvalue():
            error = self.refuse
            raise OSError(error, "refused")


def written(monkeypatch: pytest.MonkeyPatch, stream: Stream) -> Stream:
    monkeypatch.setattr(sys, "stdout", stream)
    return stream


@given(st.text(st.characters(blacklist_categories=[]), max_size=40))
def test_safe_text_cannot_command_a_terminal(text: str) -> None:
    shown = output.safe(text)
    assert output.safe(shown) == shown
    shown.encode()
    for character in shown:
        assert character in "\n\t" or ord(character) >= 0x20
        assert not 0x7F <= ord(character) < 0xA0
    assert "\n" not in output.one_line(text)


def test_ordinary_text_stays_as_it_is() -> None:
    text = "café — naïve 日本語 \u0646\u0645\u06cc\u200c\u062e \U0001f468\u200d\U0001f469\tx\n"
    assert output.safe(text) == text


@pytest.mark.parametrize("tty", [False, True])
def test_lines_are_safe_everywhere(monkeypatch: pytest.MonkeyPatch, *, tty: bool) -> None:
    stream = written(monkeypatch, Stream(tty=tty))
    output.emit([HOSTILE])
    assert stream.bytes.getvalue() == f"{output.safe(HOSTILE)}\n".encode()
    assert b"\x1b" not in stream.bytes.getvalue()


def test_a_file_goes_into_a_pipe_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    data = HOSTILE.encode("utf-8", "surrogatepass") + b"\xff\xfe no newline"
    stream = written(monkeypatch, Stream("ascii"))
    output.emit_bytes(data)
    assert stream.bytes.getvalue() == data


def test_a_file_is_made_safe_for_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = written(monkeypatch, Stream(tty=True))
    output.emit_bytes(b"one\x1b[31m\xff\n")
    assert stream.bytes.getvalue() == "one\\x1b[31m\ufffd\n".encode()


def test_the_locale_changes_no_byte_of_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = written(monkeypatch, Stream("latin-1"))
    output.emit(["café —"])
    assert stream.bytes.getvalue() == "café —\n".encode()


def test_a_terminal_is_told_what_it_can_show(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = written(monkeypatch, Stream("latin-1", tty=True))
    output.emit(["café —"])
    assert stream.bytes.getvalue() == b"caf\xe9 \\u2014\n"


def test_json_is_ascii_and_gives_the_text_back(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = written(monkeypatch, Stream())
    output.emit_json([{"text": HOSTILE}, 2])
    first, second = stream.bytes.getvalue().splitlines()
    assert first.isascii()
    assert b"\x1b" not in first
    assert json.loads(first) == {"text": HOSTILE}
    assert second == b"2"


@given(st.text(st.characters(blacklist_categories=["Cs"]), max_size=40))
def test_pretty_json_is_json_and_safe(text: str) -> None:
    stream = Stream()
    with pytest.MonkeyPatch.context() as monkeypatch:
        written(monkeypatch, stream)
        output.emit_pretty({"text": text})
    shown = stream.bytes.getvalue().decode()
    assert json.loads(shown) == {"text": text}
    assert output.safe(shown) == shown


def test_a_closed_standard_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(TripodError, match="closed; the answer is lost"):
        output.emit(["x"])
    with pytest.raises(TripodError, match="what was recorded stays recorded"):
        output.emit_bytes(b"x")


def test_a_full_disk_below_standard_output(monkeypatch: pytest.MonkeyPatch) -> None:
    silenced: list[object] = []
    monkeypatch.setattr(output, "silence_output", silenced.append)
    stream = written(monkeypatch, Stream(refuse=errno.ENOSPC))
    with pytest.raises(TripodError, match="refused; the answer is lost"):
        output.emit(["x"])
    assert silenced == [stream]
    stream.refuse = 0


def test_a_reader_who_has_seen_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "silence_output", [].append)
    stream = written(monkeypatch, Stream(refuse=errno.EPIPE))
    with pytest.raises(SystemExit) as left:
        output.emit(["x"])
    assert left.value.code == 141
    stream.refuse = 0


def test_remarks_are_safe_and_never_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Stream()
    monkeypatch.setattr(sys, "stderr", stream)
    output.remark(HOSTILE)
    assert stream.bytes.getvalue() == f"tripod: {output.safe(HOSTILE)}\n".encode()
    silenced: list[object] = []
    monkeypatch.setattr(output, "silence_output", silenced.append)
    stream.refuse = errno.EPIPE
    output.remark("x")
    assert silenced == [stream]
    stream.refuse = 0
    monkeypatch.setattr(sys, "stderr", None)
    output.remark("x")
