"""The driver's side of what it shows while dataflows run: a bar for each, and what those that stand wait for.

One desk for each `SparkContext`, from the first `run` that wants to be watched until the context is stopped.
It listens where Spark's own driver does, and hears only those who know its secret, which the tasks of watched
dataflows are given.
"""

from __future__ import annotations

import secrets
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pointstamp._errors import ConfigError
from pointstamp.seeing.stalls import say
from pointstamp.spark import compat
from pointstamp.spark.channel import Channel, Server
from pointstamp.spark.watching.stages import packed_rows
from pointstamp.spark.watching.telling import Far, Watched

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from pointstamp.spark.packing.naming import Named

__all__ = ["close", "needs_tqdm", "watched"]

_lock = threading.Lock()
_desks: dict[str, Desk] = {}
"""By Spark's identity of the application."""


def watched(session: SparkSession, progress: bool, stall_report: float | None) -> Watched | None:
    """What the tasks of a dataflow are told of who watches; None where nothing was asked for.

    Raises:
        ConfigError: If it cannot be watched: over Spark Connect, or without what draws the bar.
    """
    if stall_report is not None and not stall_report > 0:
        raise ConfigError(f"stall_report is a number of seconds above 0, and is {stall_report!r}")
    if not progress and stall_report is None:
        return None
    if compat.is_connect(session):
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
        desk = _desks.get(application)
        if desk is None:
            host, bind = compat.driver_address(context)
            desk = _desks[application] = Desk(host, bind)
            compat.when_stopped(context, lambda: close(application))
    return Watched((desk.host, desk.port), desk.secret, progress, stall_report)


def needs_tqdm() -> Any:
    """What draws bars.

    Raises:
        ConfigError: If it is not installed.
    """
    try:
        from tqdm.auto import tqdm
    except ImportError:
        raise ConfigError("a progress bar is drawn by tqdm: pip install tqdm") from None
    return tqdm


def close(application: str | None = None) -> None:
    """Closes the desk of a context, or all of them."""
    with _lock:
        names = list(_desks) if application is None else [application]
        desks = [desk for name in names if (desk := _desks.pop(name, None)) is not None]
    for desk in desks:
        desk.close()


class Desk:
    """Shows what tasks tell."""

    def __init__(self, host: str, bind: str) -> None:
        self.host = host
        self.secret = secrets.token_bytes(32)
        self._server = Server(bind, self.secret, _show, "driver")
        self.port: int = self._server.port

    def close(self) -> None:
        """Hears nothing any more."""
        self._server.close()


def _show(channel: Channel) -> None:
    named, stage, progress = channel.receive()
    with _bar(named) if progress else _nothing() as bar:
        while (told := channel.receive()) is not None:
            if not isinstance(told, Far):
                _say(f"dataflow {named.name}, stage {stage} of Spark: {told}", bar)
            elif bar is not None:
                _advance(bar, named, told)
        if bar is not None:
            bar.n = bar.total = max(bar.total or 0, bar.n)
            bar.refresh()


def _say(text: str, bar: Any) -> None:
    if bar is None:
        say(text)
    else:
        bar.write(f"pointstamp: {text}", file=sys.stderr)


def _advance(bar: Any, named: Named, told: Far) -> None:
    bar.total = max(packed_rows(named.number), told.taken)
    bar.n = told.taken
    time = "" if told.time in (None, 0) else f"time {told.time}, "
    bar.set_postfix_str(f"{time}{told.sent:,} rows out", refresh=True)


@contextmanager
def _bar(named: Named) -> Iterator[Any]:
    # It is refreshed here, and needs no thread of tqdm's for that.
    quiet = type("Bar", (needs_tqdm(),), {"monitor_interval": 0})
    with quiet(total=packed_rows(named.number), desc=named.name, unit=" rows", unit_scale=True) as bar:
        yield bar


@contextmanager
def _nothing() -> Iterator[None]:
    yield None
