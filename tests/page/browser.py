"""A headless Chromium for tests, driven through its debugging pipe, which needs nothing but the browser."""

import json
import os
import shutil
import subprocess
from itertools import count
from pathlib import Path
from typing import Any

# Starting a browser on a machine that is busy with other things takes a while.
ANSWER_SECONDS_MAX = 120
DESK = {"width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": False}
PHONE = {"width": 360, "height": 780, "deviceScaleFactor": 2, "mobile": True}
# A sheet of A4 within its margins, at 96 pixels an inch.
SHEET = {"width": 672, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
MODES = {
    "desk": (DESK, "screen", "light"),
    "dark": (DESK, "screen", "dark"),
    "phone": (PHONE, "screen", "light"),
    "phone-dark": (PHONE, "screen", "dark"),
    "print": (SHEET, "print", "dark"),
}


class Browser:
    """A headless Chromium with one page, driven through its debugging pipe."""

    def __init__(self, folder: Path) -> None:
        program = next((name for name in ("chromium", "chromium-browser") if shutil.which(name)), None)
        assert program, "Chromium is missing: apt-get install chromium"
        (their_input, self._out), (self._in, their_output) = os.pipe(), os.pipe()
        command = [
            program,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
        ]
        command += ["--remote-debugging-pipe", f"--user-data-dir={folder}", "about:blank"]
        # The browser expects the pipes at descriptors 3 and 4.
        script = f'exec "$@" 3<&{their_input} 4>&{their_output}'
        self._process = subprocess.Popen(
            ["bash", "-c", script, "bash", *command],
            pass_fds=(their_input, their_output),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(their_input)
        os.close(their_output)
        self._numbers = count(1)
        self._rest = b""
        self.events: list[dict[str, Any]] = []
        self._session: str | None = None
        targets = self._call("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        attached = self._call("Target.attachToTarget", targetId=page, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = os.read(self._in, 1 << 20)
            assert more, "the browser has ended"
            self._rest += more
        text, self._rest = self._rest.split(b"\0", 1)
        message: dict[str, Any] = json.loads(text)
        return message

    def _call(self, method: str, **parameters: object) -> dict[str, Any]:
        number = next(self._numbers)
        message: dict[str, object] = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """Do what a method of the debugging protocol does."""
        return self._call(method, **parameters)

    def evaluate(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def show(self, page: Path, mode: str) -> None:
        """Load a page in one of the modes."""
        metrics, media, scheme = MODES[mode]
        self.call("Emulation.setDeviceMetricsOverride", **metrics)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=media, features=features)
        self.events.clear()
        self.call("Page.navigate", url=page.as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._message())

    def press(self, key: str, code: int) -> None:
        """Press a key and let it go."""
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code)

    def complaints(self) -> list[str]:
        """Return what the page's script or the browser had to say since the page was loaded."""
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [json.dumps(event) for event in self.events if event.get("method") in kinds]

    def requested(self) -> list[str]:
        """Return the addresses that were asked for since the page was loaded."""
        sent = [event for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]

    def close(self) -> None:
        """End the browser."""
        self._process.terminate()
        self._process.wait(timeout=ANSWER_SECONDS_MAX)
        os.close(self._in)
        os.close(self._out)
