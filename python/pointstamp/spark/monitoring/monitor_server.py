"""The driver's server for running dataflows: progress bars, and the reasons of stalled ones.

There is one server for each `SparkContext`, from the first `run` until the context is stopped. It listens
where Spark's own driver does, and accepts only connections that know its secret, which the tasks of dataflows
receive. Each running dataflow has a connection to it, over which it is asked why it waits.
"""

from __future__ import annotations

import itertools
import secrets
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pointstamp.config import checked_stall_report
from pointstamp.errors import ConfigError
from pointstamp.observability.stalls import say
from pointstamp.runtime.message_channel import MessageChannel, Server
from pointstamp.spark import compat
from pointstamp.spark.monitoring.reporter import Explained, Far, Watched
from pointstamp.spark.monitoring.stages import packed_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from pointstamp.spark.packing.naming import Named

__all__ = ["close", "explanations", "needs_tqdm", "sessions", "watched"]

_lock = threading.Lock()
_servers: dict[str, MonitorServer] = {}
"""By Spark's identity of the application."""


def watched(session: SparkSession, progress: bool, stall_report: float | None) -> Watched | None:
    """Returns the monitoring settings of a dataflow's tasks; None over Spark Connect.

    Raises:
        ConfigError: If it cannot be watched: over Spark Connect, or without the package that draws the bar.
    """
    checked_stall_report(stall_report)
    if compat.is_connect(session):
        if not progress and stall_report is None:
            return None
        raise ConfigError(
            "progress= and stall_report= show what the tasks tell the driver, which over Spark Connect is on "
            "the server: leave them out, and see session.registerProgressHandler, which counts tasks; "
            "names and metrics of the dataflow are in the pages of Spark"
        )
    if progress:
        needs_tqdm()
    context = session.sparkContext
    application = str(context.applicationId)
    with _lock:
        server = _servers.get(application)
        if server is None:
            host, bind = compat.driver_address(context)
            server = _servers[application] = MonitorServer(session, host, bind)
            compat.when_stopped(context, lambda: close(application))
    return Watched((server.host, server.port), server.secret, progress, stall_report)


def needs_tqdm() -> Any:
    """Returns tqdm, which draws bars.

    Raises:
        ConfigError: If it is not installed.
    """
    try:
        from tqdm.auto import tqdm
    except ImportError:
        raise ConfigError("a progress bar is drawn by tqdm: pip install tqdm") from None
    return tqdm


def close(application: str | None = None) -> None:
    """Closes the server of a context, or all of them."""
    with _lock:
        names = list(_servers) if application is None else [application]
        servers = [server for name in names if (server := _servers.pop(name, None)) is not None]
    for server in servers:
        server.close()


def sessions() -> list[SparkSession]:
    """The sessions in which dataflows were begun first, one of each context."""
    with _lock:
        return [server.session for server in _servers.values()]


def explanations(seconds: float) -> dict[int, str]:
    """Explains why each running dataflow waits, by its stage.

    Args:
        seconds: The time that they have to answer.
    """
    with _lock:
        servers = list(_servers.values())
    deadline = time.monotonic() + seconds
    asked = [(run.stage, run.ask()) for server in servers for run in server.running()]
    answers = {stage: answer(deadline) for stage, answer in asked}
    return {stage: text for stage, text in answers.items() if text is not None}


class Run:
    """A running dataflow that can be asked why it waits."""

    def __init__(self, named: Named, stage: int, channel: MessageChannel) -> None:
        self.stage = stage
        self.about = f"dataflow {named.name}, stage {stage} of Spark"
        self._channel = channel
        self._numbers = itertools.count()
        self._answers: dict[int, str] = {}
        self._changed = threading.Condition()
        self._ended = False

    def ask(self) -> Callable[[float], str | None]:
        """Asks, and waits for the answer until a time of the monotonic clock. None where it has ended."""
        with self._changed:
            number = next(self._numbers)
            try:
                self._channel.send(number)
            except OSError:
                self._ended = True

        def answer(deadline: float) -> str | None:
            begin = time.monotonic()
            with self._changed:
                self._changed.wait_for(
                    lambda: self._ended or number in self._answers, max(0.0, deadline - begin)
                )
                if number in self._answers:
                    return f"{self.about}: {self._answers.pop(number)}"
                if self._ended:
                    return None
            return (
                f"{self.about}: its first task has not answered within {deadline - begin:.0f} s. Its "
                "executor may be busy, or out of reach"
            )

        return answer

    def take(self, explained: Explained) -> None:
        """Takes an answer."""
        with self._changed:
            self._answers[explained.number] = explained.text
            self._changed.notify_all()

    def end(self) -> None:
        """No more answers come."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()


class MonitorServer:
    """Shows the reports of tasks."""

    def __init__(self, session: SparkSession, host: str, bind: str) -> None:
        self.session = session
        self.host = host
        self.secret = secrets.token_bytes(32)
        self._runs: dict[int, Run] = {}
        self._numbers = itertools.count()
        self._server = Server(bind, self.secret, self._serve, "driver")
        self.port: int = self._server.port

    def running(self) -> list[Run]:
        """The dataflows that run now."""
        return list(self._runs.values())

    def _serve(self, channel: MessageChannel) -> None:
        # No limit: a task sends first, and its end closes the channel.
        named, stage, progress = channel.receive()
        number, run = next(self._numbers), Run(named, stage, channel)
        self._runs[number] = run
        try:
            _show(channel, run, named, progress)
        finally:
            del self._runs[number]
            run.end()

    def close(self) -> None:
        """Stops taking reports."""
        self._server.close()


def _show(channel: MessageChannel, run: Run, named: Named, progress: bool) -> None:
    with _bar(named) if progress else _nothing() as bar:
        # No limit: a task reports now and then, and its end closes the channel.
        while (message := channel.receive()) is not None:
            if isinstance(message, Explained):
                run.take(message)
            elif not isinstance(message, Far):
                _print(f"{run.about}: {message}", bar)
            elif bar is not None:
                _advance(bar, named, message)
        if bar is not None:
            bar.n = bar.total = max(bar.total or 0, bar.n)
            bar.refresh()


def _print(text: str, bar: Any) -> None:
    if bar is None:
        say(text)
    else:
        bar.write(f"pointstamp: {text}", file=sys.stderr)


def _advance(bar: Any, named: Named, message: Far) -> None:
    bar.total = max(packed_rows(named.number), message.taken)
    bar.n = message.taken
    time = "" if message.time in (None, 0) else f"time {message.time}, "
    bar.set_postfix_str(f"{time}{message.sent:,} rows out", refresh=True)


@contextmanager
def _bar(named: Named) -> Iterator[Any]:
    # It is refreshed here, and needs no thread of tqdm's for that.
    quiet = type("Bar", (needs_tqdm(),), {"monitor_interval": 0})
    with quiet(total=packed_rows(named.number), desc=named.name, unit=" rows", unit_scale=True) as bar:
        yield bar


@contextmanager
def _nothing() -> Iterator[None]:
    yield None
