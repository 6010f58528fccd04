"""Processes that are forked from this one, which has imported everything: a cluster starts at once.

Owns the processes of one case: each leads a group of its own, writes its output and its end to files of the
case's directory, and is waited for. The parent must have one thread, as every program that forks.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import pickle
import signal
import sys
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Ended", "Forked", "Hung", "threads_and_files"]


class Hung(Exception):
    """A process that did not end within the time limit."""


@dataclass
class Ended:
    """The end of a process: its function returned or raised, or a signal killed it.

    Args:
        how: ``"returned"``, ``"raised"``, or ``"killed"``, where it ended without a report.
        value: The result; or the name of the exception's class.
        text: The text of the exception.
        kept: Threads and files that it has more of afterwards than before.
        seconds: From when it said that it has begun.
    """

    how: str
    value: Any = None
    text: str = ""
    kept: tuple[int, int] = (0, 0)
    seconds: float = 0.0


def threads_and_files() -> tuple[int, int]:
    """Counts the threads and open files of this process."""
    return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))


class Forked:
    """A process that runs a function.

    Args:
        function: Gets a callback that reports that it has begun; returns something that can be pickled.
        directory: Where its files go.
        name: Of its files.
    """

    def __init__(self, function: Callable[[Callable[[], None]], Any], directory: Path, name: str) -> None:
        self._files = {kind: directory / f"{name}.{kind}" for kind in ("out", "end", "part")}
        self._begun = time.monotonic()
        self._status: int | None = None
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self._be(function)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        with suppress(PermissionError, ProcessLookupError):
            os.setpgid(self.pid, self.pid)  # whichever of the two comes first

    def _be(self, function: Callable[[Callable[[], None]], Any]) -> None:
        os.setpgid(0, 0)
        descriptor = os.open(self._files["out"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        os.close(descriptor)
        sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115  # the process's own
        sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
        faulthandler.enable(2)
        try:
            before = threads_and_files()
            try:
                ended = Ended("returned", function(self._begins), seconds=time.monotonic() - self._begun)
            except BaseException as error:
                ended = Ended("raised", type(error).__qualname__, f"{error}")
            gc.collect()
            ended.kept = self._kept(before)
        except KeyboardInterrupt:  # it came while all was over
            ended = Ended("raised", "KeyboardInterrupt")
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        whole = self._files["part"]
        whole.write_bytes(pickle.dumps(ended))
        whole.rename(self._files["end"])
        os._exit(0)

    @staticmethod
    def _kept(before: tuple[int, int]) -> tuple[int, int]:
        """Counts resources that have increased; the system takes a moment to remove a joined thread."""
        limit = time.monotonic() + 2
        while True:
            after = threads_and_files()
            kept = after[0] - before[0], after[1] - before[1]
            if kept <= (0, 0) or time.monotonic() > limit:
                return kept
            time.sleep(0.01)

    def _begins(self) -> None:
        self._begun = time.monotonic()
        self._files["part"].touch()

    @property
    def has_begun(self) -> bool:
        """Whether it has said so."""
        return self._files["part"].exists() or self._files["end"].exists()

    @property
    def said(self) -> str:
        """Returns the text that it has printed."""
        try:
            return self._files["out"].read_text(errors="replace")
        except FileNotFoundError:
            return ""

    def signal(self, number: int) -> None:
        """Sends it a signal, where it has not been waited for."""
        if self._status is None:
            os.kill(self.pid, number)

    def wait(self, until: float) -> Ended:
        """Waits for its end.

        Args:
            until: By `time.monotonic`, when that is too late.

        Raises:
            Hung: If it has not ended by then; it has printed its position, and was killed.
        """
        pause = 0.001
        while not self._is_over():
            if time.monotonic() > until:
                self.signal(signal.SIGCONT)
                self.signal(signal.SIGABRT)  # faulthandler prints where it is
                time.sleep(0.5)
                self.close()
                raise Hung(self.said)
            time.sleep(pause)
            pause = min(pause * 1.5, 0.05)
        try:
            return pickle.loads(self._files["end"].read_bytes())  # type: ignore[no-any-return]
        except FileNotFoundError:
            return Ended("killed", self._status)

    def _is_over(self) -> bool:
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._status = os.waitstatus_to_exitcode(status)
        return self._status is not None

    def close(self) -> bool:
        """Kills the rest of it and of its group; returns whether it had left a process of the group."""
        if self._status is None:
            os.kill(self.pid, signal.SIGKILL)
            self._status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True
