"""The line that `python -m pointstamp run` shows on a terminal: the time that it runs, and its progress.

The workers are asked twice a second, between their steps; nothing is recorded. `tqdm` draws the line, and
removes it at the end. Where a launcher joins the output of several processes, the first of them sends it the
text, on a line of standard error that begins with `MARK`, and the launcher draws.
"""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import TYPE_CHECKING, Any

from pointstamp.runtime.threads import Helper, join

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pointstamp.observability.collector import Collector

__all__ = ["MARK", "Line", "following", "status"]

EVERY = 0.5
"""Seconds between two looks."""

MARK = "\x1epointstamp-status "
"""Begins a line of a process that is for the launcher."""

MOST = 3
"""Dataflows that are named."""


def status(data: Sequence[Mapping[str, Any]]) -> str:
    """Describes `Collector.data` in a few words: each dataflow with the least time that is possible in it.

    >>> standing = {"graph": {"scopes": [((0,), "days", 1, 0, 0, "")]}, "frontiers": [((0, 1), 0, [(3,)])]}
    >>> status([{"worker": 0, "dataflows": [(0, standing)], "in_flight": 5 << 20}, {"silent": True}])
    "'days' at 3, 5.0 MiB on their way, 1 worker of 2 busy with the program's code"
    """
    reports = [said for said in data if "silent" not in said]
    dataflows: dict[int, str] = {}
    for said in reports:
        for number, dataflow in said["dataflows"]:
            times = [time for _, _, frontier in dataflow["frontiers"] for time in frontier]
            name = dataflow["graph"]["scopes"][0][1]
            firsts = [time[0] for time in times if time]
            dataflows[number] = f"{name!r} at {min(firsts)}" if firsts else f"{name!r}"
    parts = list(dataflows.values())[-MOST:]
    if len(dataflows) > MOST:
        parts.insert(0, f"{len(dataflows) - MOST} dataflows and")
    bytes_ = sum({said.get("process"): said["in_flight"] for said in reports}.values())
    if bytes_:
        parts.append(f"{bytes_ / (1 << 20):.1f} MiB on their way")
    rejected = sum(count for said in reports for _, count in said.get("rejected", ()))
    if rejected:
        parts.append(f"{rejected} line{'s' if rejected > 1 else ''} left out")
    silent = sum("silent" in said and not said.get("ended", False) for said in data)
    if silent:
        workers = f"{silent} worker{'s' if silent > 1 else ''} of {len(data)}"
        parts.append(f"{workers} busy with the program's code")
    return ", ".join(parts)


class Line:
    """The line on a terminal; nothing where standard error is none, or tqdm is not installed."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._lock = threading.RLock()
        if sys.stderr is None or not sys.stderr.isatty():
            return
        with suppress(ImportError):
            from tqdm import tqdm

            # It is refreshed here, and needs no thread of tqdm's for that.
            quiet = type("Status", (tqdm,), {"monitor_interval": 0})
            self._bar = quiet(bar_format="{elapsed} {desc}", leave=False, dynamic_ncols=True, file=sys.stderr)

    def show(self, text: str) -> None:
        """Shows another text."""
        with self._lock:
            if self._bar is not None:
                self._bar.set_description_str(text)

    @property
    def is_shown(self) -> bool:
        """Whether there is one."""
        return self._bar is not None

    @contextmanager
    def aside(self) -> Iterator[None]:
        """While the block runs, the line is not there: something else is written to the terminal."""
        with self._lock:
            if self._bar is not None:
                self._bar.clear()
            yield
            if self._bar is not None:
                self._bar.refresh()

    @contextmanager
    def beside(self) -> Iterator[None]:
        """While the block runs, whole lines that this program writes go above the line."""
        if self._bar is None:
            yield
            return
        out, errors = _Above(sys.stdout, self), _Above(sys.stderr, self)
        try:
            with redirect_stdout(out), redirect_stderr(errors):
                yield
        finally:
            out.end()
            errors.end()

    def close(self) -> None:
        """Takes it away."""
        if self._bar is not None:
            self._bar.close()


class _Above:
    """A stream of this program on the terminal of the line; lines are written when they have ended."""

    def __init__(self, stream: Any, line: Line) -> None:
        self._stream = stream
        self._line = line
        self._open = ""

    def write(self, text: str) -> int:
        whole, newline, self._open = (self._open + text).rpartition("\n")
        if newline:
            with self._line.aside():
                self._stream.write(whole + newline)
                self._stream.flush()
        return len(text)

    def end(self) -> None:
        """Writes the remaining incomplete line."""
        self._stream.write(self._open)
        self._open = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def following(show: Callable[[str], None], collector: Collector) -> Iterator[None]:
    """While the block runs, a computation is asked now and then, and its status shown."""
    ended = threading.Event()

    def follow() -> None:
        while not ended.wait(EVERY):
            show(status(collector.data()))

    thread = Helper(follow, "pointstamp-status", daemon=True)
    try:
        thread.start()
        yield
    finally:
        ended.set()
        join([thread], 0.1, ended.set)
