"""A headless chromium that is asked over a pipe: what it shows, asks for and complains of."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class Page:
    """One tab. ``events`` are what it told so far: requests, lines of the console, faults."""

    def __init__(self, ask: "Browser", session: str) -> None:
        self._browser, self._session = ask, session
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **params: Any) -> Any:
        """Ask DevTools, and wait for the answer."""
        return self._browser.ask(method, self._session, **params)

    @property
    def events(self) -> list[dict[str, Any]]:
        """What this tab told, in order."""
        return [one for one in self._browser.events if one.get("sessionId") == self._session]

    @property
    def requests(self) -> list[str]:
        """The addresses that it asked for, without those that a policy kept it from asking for."""
        asked = {}
        for one in self.events:
            told = one["params"]
            if one["method"] == "Network.requestWillBeSent":
                asked[told["requestId"]] = told["request"]["url"]
            if one["method"] == "Network.loadingFailed" and told.get("blockedReason") == "csp":
                del asked[told["requestId"]]
        return list(asked.values())

    @property
    def complaints(self) -> list[str]:
        """Faults and warnings in its console."""
        found = []
        for one in self.events:
            if one["method"] == "Log.entryAdded" and one["params"]["entry"]["level"] != "info":
                found.append(one["params"]["entry"]["text"])
            if one["method"] == "Runtime.exceptionThrown":
                found.append(json.dumps(one["params"]["exceptionDetails"]))
            if one["method"] == "Runtime.consoleAPICalled":
                found.append(json.dumps(one["params"]["args"]))
        return found

    def open(self, address: str) -> None:
        """Go to an address, and wait until all of it is there."""
        before = len(self._browser.events)
        self.ask("Page.navigate", url=address)
        self._browser.wait_for(
            lambda one: (
                one["method"] == "Page.loadEventFired" and one.get("sessionId") == self._session
            ),
            before,
        )

    def show(self, page: bytes, folder: Path) -> None:
        """Open a page that is given, from a file in a folder."""
        file = folder / "page.html"
        file.write_bytes(page)
        self.open(file.as_uri())

    def size(self, width: int, height: int, *, is_phone: bool = False) -> None:
        """Give the tab a size in pixels, of a screen or of a phone."""
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=is_phone,
        )  # fmt: skip

    def look(self, scheme: str, media: str = "") -> None:
        """Show it to somebody who likes a scheme, ``light`` or ``dark``, on a medium."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.ask("Emulation.setEmulatedMedia", media=media, features=features)

    def value(self, script: str) -> Any:
        """What an expression gives; a promise is waited for."""
        told = self.ask(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def press(self, key: str, text: str = "") -> None:
        """Press a key and let it go; ``text`` is what it writes."""
        code = {"Tab": 9, "Enter": 13, " ": 32}.get(key, 0)
        told = {"key": key, "code": key.strip() or "Space", "windowsVirtualKeyCode": code}
        self.ask("Input.dispatchKeyEvent", type="keyDown", text=text, **told)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **told)

    def wait(self, script: str) -> None:
        """Wait until an expression is true, at most 20 s."""
        told = self.value(
            "new Promise((done) => { let left = 400; const look = () => { "
            f"if ({script}) done(true); else if (left-- === 0) done(false); "
            "else setTimeout(look, 50); }; look(); })"
        )
        assert told, f"it never came true: {script}"


class Browser:
    """The process; messages end in a NUL byte."""

    def __init__(self, reading: int, writing: int) -> None:
        self._in, self._out = os.fdopen(reading, "rb"), os.fdopen(writing, "wb")
        self._number = 0
        self._waiting = b""
        self.events: list[dict[str, Any]] = []

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._waiting:
            more = self._in.read1(65_536)
            assert more, "chromium ended"
            self._waiting += more
        message, _, self._waiting = self._waiting.partition(b"\0")
        told: dict[str, Any] = json.loads(message)
        if "id" not in told:
            self.events.append(told)
        return told

    def ask(self, method: str, session: str = "", **params: Any) -> Any:
        """Ask DevTools, and wait for the answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        message |= {"sessionId": session} if session else {}
        self._out.write(json.dumps(message).encode() + b"\0")
        self._out.flush()
        while (told := self._read()).get("id") != self._number:
            pass
        assert "error" not in told, told
        return told["result"]

    def wait_for(self, wanted: Any, start: int) -> None:
        """Wait for an event that came after the first ``start``."""
        while True:
            if any(map(wanted, self.events[start:])):
                return
            self._read()

    def page(self) -> Page:
        """A new tab."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        return Page(self, session)

    def close(self) -> None:
        """Close both pipes."""
        self._in.close()
        self._out.close()


@contextmanager
def opened_browser(program: str, folder: Path) -> Iterator[Browser]:
    """A browser whose profile lies in a folder, and which reaches no network but loopback."""
    ask_out, ask_in = os.pipe()
    told_out, told_in = os.pipe()

    # DevTools reads descriptor 3 and writes descriptor 4.
    words = [
        "bash", "-c", f'exec "$@" 3<&{ask_out} 4>&{told_in}', "bash",
        program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        "--remote-debugging-pipe", "--no-first-run", "--disable-background-networking",
        "--disable-component-update", "--disable-extensions", "--hide-scrollbars",
        "--force-device-scale-factor=1", f"--user-data-dir={folder}",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    ]  # fmt: skip
    with subprocess.Popen(
        words,
        pass_fds=(ask_out, told_in),
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    ) as process:
        os.close(ask_out)
        os.close(told_in)
        browser = Browser(told_out, ask_in)
        try:
            yield browser
        finally:
            process.kill()
            browser.close()
