"""Joining the output of several processes: whole lines, each marked with its process on request."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pointstamp.observability.status_line import MARK

if TYPE_CHECKING:
    from pointstamp.observability.status_line import Line

LONGEST = 1 << 20
"""The number of bytes that are kept while a line is incomplete; a longer one is passed on in pieces."""


class Lines:
    """Lines that one process writes to one stream, passed on line by line.

    Args:
        out: The file descriptor that the lines go to.
        label: The text before each.
        line: The status line of this terminal, which makes room.
    """

    def __init__(self, out: int, label: bytes, line: Line) -> None:
        self._out = out
        self._label = label
        self._line = line
        self._open = bytearray()

    def feed(self, data: bytes) -> None:
        """Takes bytes, and passes on the lines that have ended."""
        self._open += data
        end = self._open.rfind(b"\n") + 1
        if end == 0 and len(self._open) < LONGEST:
            return
        whole = bytes(self._open[:end] if end else self._open)
        del self._open[: len(whole)]
        self._write(whole)

    def end(self) -> None:
        """Nothing more comes: passes on a line that was not ended, and ends it."""
        if self._open:
            self._write(bytes(self._open) + b"\n")
            self._open.clear()

    def _write(self, whole: bytes) -> None:
        if self._line.is_shown:
            whole = self._without_status(whole)
        if self._label:
            whole = b"".join(self._label + line for line in whole.splitlines(keepends=True))
        if not whole:
            return
        rest = memoryview(whole)
        with self._line.aside():
            while rest:
                rest = rest[os.write(self._out, rest) :]

    def _without_status(self, whole: bytes) -> bytes:
        """Shows a process's status of the computation, and returns the rest."""
        lines = whole.splitlines(keepends=True)
        mark = MARK.encode()
        for line in lines:
            if line.startswith(mark):
                self._line.show(line[len(mark) :].decode(errors="replace").strip())
        return b"".join(line for line in lines if not line.startswith(mark))
