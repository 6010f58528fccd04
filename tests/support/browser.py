"""A headless Chromium that a test drives: pages, keys, and the content of pages.

Owns the browser's process and its pipe (`--remote-debugging-pipe`): commands and answers are JSON, each ended
by a null byte.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Browser", "needs_browser"]

needs_browser = pytest.mark.skipif(
    shutil.which("chromium") is None, reason="there is no chromium: apt-get install chromium"
)

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)

LONG = 120.0
"""Seconds for events that come in any case."""

START = """
import fcntl, os, sys
reads, writes = (fcntl.fcntl(int(pipe), fcntl.F_DUPFD, 20) for pipe in sys.argv[1:3])
os.dup2(reads, 3)
os.dup2(writes, 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""
"""Chromium reads commands from its file 3, and writes answers to its file 4."""


class Browser:
    """A browser with one page, for as long as the block runs.

    Args:
        folder: An empty folder for its profile.
    """

    def __init__(self, folder: Path) -> None:
        reads, self._commands = os.pipe()
        self._answers, writes = os.pipe()
        command = [sys.executable, "-c", START, str(reads), str(writes), "chromium", *FLAGS]
        command += [f"--user-data-dir={folder}", "--window-size=1200,800", "about:blank"]
        self._process = subprocess.Popen(
            command, pass_fds=(reads, writes), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(reads)
        os.close(writes)
        self._number = 0
        self._read = b""
        self._session: str | None = None

    def __enter__(self) -> Browser:
        try:
            [page] = [one for one in self._call("Target.getTargets")["targetInfos"] if one["type"] == "page"]
            attached = self._call("Target.attachToTarget", targetId=page["targetId"], flatten=True)
            self._session = attached["sessionId"]
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._commands)
        os.close(self._answers)

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        command: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            command["sessionId"] = self._session
        os.write(self._commands, json.dumps(command).encode() + b"\0")
        while True:
            while b"\0" not in self._read:
                more = os.read(self._answers, 1 << 16)
                assert more, "the browser has ended"
                self._read += more
            text, _, self._read = self._read.partition(b"\0")
            answer = json.loads(text)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def open(self, url: str) -> None:
        """Opens a page, and waits until it has drawn something."""
        self._call("Page.navigate", url=url)
        self.until("document.body?.dataset.ready === 'yes'")

    def says(self, expression: str) -> Any:
        """Returns the value of an expression of JavaScript there, as data."""
        result = self._call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def until(self, expression: str) -> Any:
        """Waits until an expression is true; returns its value."""
        end = time.monotonic() + LONG
        while not (found := self.says(expression)):
            assert time.monotonic() < end, f"never true: {expression}"
            time.sleep(0.02)
        return found

    def press(self, *keys: str) -> None:
        """Presses keys, one after the other, as JavaScript names them."""
        for key in keys:
            text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
            code = {"Tab": 9, "Enter": 13, "Escape": 27}.get(key, 0)
            about = {"key": key, "windowsVirtualKeyCode": code}
            self._call("Input.dispatchKeyEvent", type="keyDown", text=text, **about)
            self._call("Input.dispatchKeyEvent", type="keyUp", **about)
