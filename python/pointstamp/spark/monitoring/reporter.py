"""A task's reporter to the driver: the progress of the dataflow, and the reasons why it waits.

The first process reports for all processes. It opens one connection to the driver and answers the requests on
it. Where a bar or a report was requested, it also asks every worker twice a second for its state, and sends
the changes. A driver that cannot be reached is named in the task's log, and the dataflow continues.
"""

from __future__ import annotations

import logging
import math
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pointstamp.errors import ClusterError
from pointstamp.observability.collector import answer_of
from pointstamp.observability.dashboard_state import state_of
from pointstamp.observability.explanation import explain
from pointstamp.observability.stalls import standing
from pointstamp.observability.statistics import Statistics
from pointstamp.runtime.message_channel import connect
from pointstamp.runtime.threads import Helper, join
from pointstamp.spark.packing.naming import INPUT, OUTPUT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pointstamp.observability.collector import Collector
    from pointstamp.observability.statistics import Silent
    from pointstamp.runtime.message_channel import MessageChannel
    from pointstamp.spark.packing.naming import Named

__all__ = ["Explained", "Far", "Reporter", "Reporting", "Stalls", "Watched", "explained"]

_LOOK = 0.5
"""Seconds from one look at the workers to the next."""

_LEAVING = 1.0
"""Seconds that a dataflow that has ended waits for its connection to be asked for."""

_log = logging.getLogger("pointstamp.spark")


class Watched(NamedTuple):
    """The monitoring settings of a task.

    Attributes:
        driver: Where the driver listens.
        secret: The secret that both ends share.
        progress: Whether it shows a bar.
        stall_report: The seconds without movement after which it reports the reason, or None.
    """

    driver: tuple[str, int]
    secret: bytes
    progress: bool
    stall_report: float | None


class Far(NamedTuple):
    """The progress of a dataflow.

    Attributes:
        taken: Rows that it has taken from Spark.
        sent: Rows that it has given to Spark.
        time: The least time that may still come out; None where nothing may.
    """

    taken: int
    sent: int
    time: Any


class Explained(NamedTuple):
    """The answer to the driver's question why a dataflow waits.

    Attributes:
        number: The question's.
        text: The answer.
    """

    number: int
    text: str


def explained(collector: Collector, ignored: frozenset[str] = frozenset()) -> str:
    """Explains why the dataflows of a computation wait.

    Args:
        collector: The collector that asks the workers.
        ignored: Names of dataflows that stand by.
    """
    answers = [without(one, ignored) for one in collector.everyone()]
    own = next((one.worker for one in answers if isinstance(one, Statistics)), -1)
    return str(explain(answers, own))


def without(reported: Statistics | Silent, ignored: frozenset[str]) -> Statistics | Silent:
    """Returns a worker's answer without dataflows of these names."""
    if not ignored or not isinstance(reported, Statistics):
        return reported
    dataflows = {
        number: dataflow
        for number, dataflow in reported.dataflows.items()
        if next(iter(dataflow.graph.scopes.values())).name not in ignored
    }
    return reported._replace(dataflows=dataflows)


class Stalls:
    """Finds out that nothing moves although something is outstanding.

    Args:
        seconds: The time that they have.
        ignored: Names of dataflows that stand by.
    """

    def __init__(self, seconds: float, ignored: frozenset[str] = frozenset()) -> None:
        self._seconds = seconds
        self._ignored = ignored
        self._before: object = None
        self._idle: set[int] = set()
        self._still = 0.0

    def look(self, answers: Sequence[Statistics | Silent], passed: float) -> str | None:
        """Returns the text that is to be said now, once for each standstill.

        Args:
            answers: The answers of the workers.
            passed: Seconds since the last look.
        """
        seen = [without(one, self._ignored) for one in answers]
        now = standing(seen, self._idle)
        before, self._before = self._before, now
        was = self._still
        self._still = self._still + passed if now == before else 0.0
        if not now or not was < self._seconds <= self._still:
            return None
        own = next((one.worker for one in seen if isinstance(one, Statistics)), -1)
        return f"nothing has moved for {self._seconds:g} s. {explain(seen, own)}"


def far(state: Mapping[str, Any]) -> Far:
    """Returns the progress of the first dataflow of a state."""
    taken = sent = 0
    times: list[Any] = []
    for dataflow in state["dataflows"][:1]:
        readers: dict[tuple[int, ...], int] = {}
        for source, _, _ in dataflow["links"]:
            readers[tuple(source)] = readers.get(tuple(source), 0) + 1
        for operator in dataflow["operators"]:
            if operator["name"].startswith(INPUT):  # its output is counted for each of its readers
                taken += operator["records_out"] // max(1, readers.get(tuple(operator["address"]), 0))
            elif operator["name"].startswith(OUTPUT):
                sent += operator["records_in"]
                times += [time[0] for _, frontier in operator["frontiers"] for time in frontier if time]
    return Far(taken, sent, min(times, default=None))


class Reporting:
    """Reports why dataflows wait, whenever they have stalled for a while, as long as the block runs.

    Args:
        collector: The collector that asks the workers.
        seconds: The time without movement.
        ignored: Names of dataflows that stand by.
        wanted: Whether a caller waits for them now; otherwise no worker is asked.
        send: The receiver of the text.
    """

    def __init__(
        self,
        collector: Collector,
        seconds: float,
        ignored: frozenset[str],
        wanted: Callable[[], bool],
        send: Callable[[str], None],
    ) -> None:
        self._collector = collector
        self._seconds = seconds
        self._ignored = ignored
        self._wanted = wanted
        self._send = send
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pointstamp-stalls", daemon=True)

    def __enter__(self) -> Reporting:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._ended.set()
        # No limit: it should end, and waits for nothing else.
        self._thread.join()

    def _run(self) -> None:
        every = min(_LOOK, self._seconds / 4)
        stalls = Stalls(self._seconds, self._ignored)
        try:
            while not self._ended.wait(every):
                said = stalls.look(self._collector.everyone(), every) if self._wanted() else None
                if said is not None:
                    self._send(said)
        except OSError:
            pass  # the requester has ended


class Reporter:
    """Reports a dataflow to the driver while the block runs."""

    def __init__(self, watched: Watched, named: Named, stage: int, collector: Collector) -> None:
        self._watched = watched
        self._named = named
        self._stage = stage
        self._collector = collector
        self._ended = threading.Event()
        self._thread = Helper(self._run, "pointstamp-reporter", daemon=True)

    def __enter__(self) -> Reporter:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._ended.set()
        wanted = self._watched.progress or self._watched.stall_report is not None
        join([self._thread], 0.1, patience=math.inf if wanted else _LEAVING)

    def _run(self) -> None:
        level = logging.WARNING if self._watched.progress or self._watched.stall_report else logging.INFO
        try:
            with connect(self._watched.driver, self._watched.secret, "driver") as channel:
                if self._ended.is_set():
                    return
                channel.send((self._named, self._stage, self._watched.progress))
                answering = Helper(partial(self._answer, channel), "pointstamp-answers", daemon=True)
                answering.start()
                try:
                    self._tell(channel)
                finally:
                    channel.close()
                    join([answering], 0.1, patience=_LEAVING)
        except (ClusterError, OSError) as error:
            _log.log(level, "the driver gets no report of dataflow %s: %s", self._named.name, error)

    def _answer(self, channel: MessageChannel) -> None:
        """Answers the driver's questions."""
        try:
            while True:
                # No limit: the driver asks when somebody wants to know; its end closes the channel.
                number = channel.receive()
                channel.send(Explained(number, explained(self._collector)))
        except (OSError, EOFError):
            pass  # the end of the dataflow, or the driver's

    def _tell(self, channel: MessageChannel) -> None:
        stall, progress = self._watched.stall_report, self._watched.progress
        if stall is None and not progress:
            # No limit: the end of the dataflow ends this.
            self._ended.wait()
        else:
            every = _LOOK if stall is None else min(_LOOK, stall / 4)
            stalls = None if stall is None else Stalls(stall)
            while not self._ended.wait(every):
                data = self._collector.data()
                if progress:
                    channel.send(far(state_of(data)))
                said = None if stalls is None else stalls.look([answer_of(one) for one in data], every)
                if said is not None:
                    channel.send(said)
        channel.send(None)
