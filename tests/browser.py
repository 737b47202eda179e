"""Chromium without a window, driven by its own protocol over a pipe."""

from __future__ import annotations

import base64
import json
import os
import select
import shlex
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.machine import PATIENCE

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)


class Browser:
    """A browser with one tab.

    Attributes:
        failures: the script errors of the page, and what its console and its policy complained of.
        requests: the addresses that the page asked for.
    """

    def __init__(self, folder: Path) -> None:
        commands, self._write = os.pipe()
        self._read, answers = os.pipe()
        words = [
            BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            "--remote-debugging-pipe", f"--user-data-dir={folder}", "about:blank",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            ["bash", "-c", f"exec {shlex.join(words)} 3<&{commands} 4>&{answers}"],
            pass_fds=(commands, answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._pending = b""
        self._number = 0
        self._events: list[dict[str, Any]] = []
        self._session: str | None = None
        self.failures: list[str] = []
        self.requests: list[str] = []
        (tab,) = [
            each for each in self("Target.getTargets")["targetInfos"] if each["type"] == "page"
        ]
        attached = self("Target.attachToTarget", targetId=tab["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._session = None
        self("Browser.close")
        self._process.wait(PATIENCE)
        os.close(self._write)
        os.close(self._read)

    def __call__(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Carry out a command of the protocol; gives its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                found: dict[str, Any] = answer["result"]
                return found

    def _next(self) -> dict[str, Any]:
        """The next message; what the page complains of and asks for is noted."""
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._pending:
            ready, _, _ = select.select([self._read], [], [], max(end - time.monotonic(), 0))
            assert ready, "the browser says nothing"
            data = os.read(self._read, 1 << 20)
            assert data, "the browser has ended"
            self._pending += data
        text, _, self._pending = self._pending.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        method, told = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.failures.append(str(told["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.failures.append(str(told["entry"]))
        elif method == "Runtime.consoleAPICalled":
            self.failures.append(str(told["args"]))
        elif method == "Page.javascriptDialogOpening":
            self.failures.append(f"a dialog: {told['message']}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])
        self._events.append(message)
        return message

    def open(self, file: Path, width: int = 1400, height: int = 900, **media: str) -> None:
        """Open a file in a window of a size; `media` are its features: prefers_color_scheme."""
        features = [{"name": k.replace("_", "-"), "value": v} for k, v in media.items()]
        self("Emulation.setEmulatedMedia", features=features)
        self(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        self._events.clear()
        self("Page.navigate", url=file.as_uri())
        while not any(each.get("method") == "Page.loadEventFired" for each in self._events):
            self._next()

    def run(self, script: str) -> Any:
        """The value of an expression in the page, awaited if it is a promise."""
        found = self("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key of the keyboard and let it go."""
        text = {"text": key} if len(key) == 1 else {}
        self("Input.dispatchKeyEvent", type="keyDown", key=key, code=key, **text)
        self("Input.dispatchKeyEvent", type="keyUp", key=key, code=key)

    def click(self, selector: str) -> None:
        """Press the mouse in the middle of an element that is in view."""
        box = self.run(
            f"(() => {{ const at = document.querySelector({json.dumps(selector)})"
            ".getBoundingClientRect(); return [at.x + at.width / 2, at.y + at.height / 2] })()"
        )
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            button = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
            self("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], **button)

    def picture(self, file: Path) -> None:
        """Write what the window shows to a PNG."""
        shot = self("Page.captureScreenshot", format="png")
        file.write_bytes(base64.b64decode(shot["data"]))
