"""A headless Chromium, driven by its DevTools protocol over two pipes: real keys, real time, pictures, measured pages."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from select import select
from time import monotonic, sleep
from types import TracebackType
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE = 60.0  # for one answer of the browser [s]
BETWEEN = 0.005  # two looks at a page that is waited for [s]
KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39,
        "ArrowDown": 40}  # fmt: skip
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--remote-debugging-pipe")  # fmt: skip
VIEWS = {"wide": (1280, False), "phone": (390, False), "dark": (1280, True)}  # name -> width of the window [px], dark or not
HEIGHT = 900  # of a window [px]
MEASURES = Path(__file__).with_name("measures.js")
SERIOUS = ("serious", "critical")  # impacts of what axe finds
# Runs a program whose descriptors 3 and 4 are two that this one has.
START = """import os, sys
from fcntl import F_DUPFD, fcntl
told, tell = (fcntl(int(one), F_DUPFD, 10) for one in sys.argv[1:3])
os.dup2(told, 3)
os.dup2(tell, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
# What a page says that went wrong, from its first script on.
WATCH = """window.failed = [];
["error", "unhandledrejection", "securitypolicyviolation"].forEach(function (kind) {
  window.addEventListener(kind, function (event) {
    failed.push(kind + " " + (event.message || event.violatedDirective || event.reason));
  });
});"""


class Browser:
    """One window of a browser with a profile of its own in `folder`."""

    def __init__(self, folder: Path) -> None:
        told, self._write = os.pipe()
        self._read, tell = os.pipe()
        # The browser reads commands from descriptor 3 and answers on descriptor 4; each message ends with a zero byte.
        flags = [*FLAGS, f"--user-data-dir={folder}"]
        command = [sys.executable, "-c", START, str(told), str(tell), str(CHROMIUM), *flags, "about:blank"]
        self._process = subprocess.Popen(command, pass_fds=(told, tell), stderr=subprocess.DEVNULL)
        os.close(told)
        os.close(tell)
        self._count, self._rest, self._session, self.log = 0, b"", "", list[str]()
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE)
        os.close(self._write)
        os.close(self._read)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """A command of the protocol and its answer. Raises RuntimeError for an error."""
        self._count += 1
        told = {"id": self._count, "method": method, "params": params, **({"sessionId": self._session} if self._session else {})}
        os.write(self._write, json.dumps(told).encode() + b"\0")
        while True:
            heard = self._heard()
            if heard.get("id") == self._count:
                if "error" in heard:
                    raise RuntimeError(f"{method}: {heard['error']}")
                answer: dict[str, Any] = heard["result"]
                return answer

    def _heard(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            if not select([self._read], [], [], PATIENCE)[0]:
                raise TimeoutError("the browser does not answer")
            piece = os.read(self._read, 1 << 20)
            if not piece:
                raise RuntimeError("the browser has ended")
            self._rest += piece
        one, _, self._rest = self._rest.partition(b"\0")
        heard: dict[str, Any] = json.loads(one)
        self._keep(heard)
        return heard

    def _keep(self, heard: dict[str, Any]) -> None:
        """What the console says."""
        if heard.get("method") == "Log.entryAdded" and heard["params"]["entry"]["level"] == "error":
            self.log.append(heard["params"]["entry"]["text"])
        if heard.get("method") == "Runtime.exceptionThrown":
            self.log.append(heard["params"]["exceptionDetails"]["text"])
        if heard.get("method") == "Runtime.consoleAPICalled" and heard["params"]["type"] == "error":
            self.log.append(" ".join(str(one.get("value", one.get("description"))) for one in heard["params"]["args"]))

    def view(self, name: str, height: int = HEIGHT) -> None:
        """A window of `VIEWS`."""
        width, dark = VIEWS[name]
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, address: str, view: str = "wide") -> float:
        """Load a page in a view; the time until all of it has been loaded and drawn [s]. The log begins anew."""
        self.view(view)
        self.run("new Promise(function (done) { setTimeout(done, 50); })")  # in which the last page's words arrive
        self.log.clear()
        begun = monotonic()
        self.call("Page.navigate", url=address)
        self.wait("document.readyState === 'complete'")
        self.run("new Promise(function (done) { requestAnimationFrame(function () { setTimeout(done); }); })")
        return monotonic() - begun

    def run(self, code: str) -> Any:
        """The value of an expression of the page; a promise is waited for."""
        answer = self.call("Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"].get("exception", {}).get("description", answer)))
        return answer["result"].get("value")

    def wait(self, condition: str) -> None:
        """Until an expression is true. Raises TimeoutError."""
        until = monotonic() + PATIENCE
        while not self.run(f"Boolean({condition})"):
            if monotonic() > until:
                raise TimeoutError(condition)
            sleep(BETWEEN)

    def faults(self) -> list[str]:
        """What `measures.js` finds wrong with the page that is open, and errors of its scripts; opens all of its details."""
        measured = self.run(MEASURES.read_text("utf-8"))
        found = [f"{measure}: {element} {text!r}: {numbers}" for measure, element, text, numbers in measured]
        return found + [f"console: {said}" for said in (*self.log, *self.run("failed"))]

    def faults_in_views(self, address: str) -> list[str]:
        """The faults of a page in each of `VIEWS`."""
        found = []
        for view in VIEWS:
            self.open(address, view)
            found += [f"{view}: {fault}" for fault in self.faults()]
        return found

    def serious(self) -> list[list[str]]:
        """What axe holds for serious: impact, rule, element. Contrast is left to `faults`."""
        self.run(files("axe_core_python").joinpath("axe.min.js").read_text("utf-8"))
        found: list[list[str]] = self.run("""
          axe.run({ resultTypes: ["violations"], rules: { "color-contrast": { enabled: false } } }).then(function (told) {
            return told.violations.map(function (one) { return [one.impact, one.id, one.nodes[0].html.slice(0, 200)]; });
          })""")
        return [one for one in found if one[0] in SERIOUS]

    def press(self, key: str, times: int = 1, *, shift: bool = False) -> None:
        """Keys of `KEYS`, or single letters."""
        code = KEYS.get(key, ord(key[0].upper()))
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        for _ in range(times):
            told = {"key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
            self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **told)
            self.call("Input.dispatchKeyEvent", type="keyUp", **told)

    def picture(self, file: Path) -> None:
        """The window as a PNG."""
        shown = self.call("Page.captureScreenshot")
        file.write_bytes(base64.b64decode(shown["data"]))
