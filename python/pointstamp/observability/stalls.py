"""Reports of the reasons why a computation waits: on request, on interruption, and when it stalls.

Owns the requests, and the destinations of the answer: an `Explanation` to the program, a note on a
`KeyboardInterrupt`, a text on standard error for signals and for `stall_report=`. Signals are only handled
where the program has no handler of its own.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import contextmanager, suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from pointstamp import _core
from pointstamp._core import ProbeHandle
from pointstamp._interrupts import too_early
from pointstamp.errors import add_note
from pointstamp.observability.collector import PATIENCE
from pointstamp.runtime.threads import Helper, join

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pointstamp.observability.collector import Collector
    from pointstamp.observability.explanation import Explanation
    from pointstamp.observability.statistics import Silent, Statistics
    from pointstamp.types import Time

__all__ = [
    "FORGOTTEN",
    "Awaited",
    "Report",
    "explained",
    "probes_of",
    "reporting",
    "say",
    "say_forgotten",
    "standing",
    "waits_for_probes",
    "what_holds",
]

FORGOTTEN = 10.0
"""Seconds without an event after which a wait for inputs that `main` left open is reported."""

BRIEF = 0.2
"""Seconds that the workers of this process have to answer while a worker waits for them."""

QUICK = 1.0
"""Seconds that workers have to answer when the program is to end."""

STUCK = 5
"""Seconds after SIGTERM in which the main thread has to come to its handler; else the program just ends."""

SAYING = 15
"""Seconds that the handler has for its report."""

STOPPING = 120
"""Seconds that a last checkpoint may take; then the program just ends."""

Asked = list[tuple[ProbeHandle, "Time | None"]]


def explained(
    collector: Collector, worker: _core.Worker | None, probes: Asked, seconds: float | None = None
) -> Explanation:
    """Asks every worker, and explains why probes wait, or without probes why all dataflows do.

    Args:
        collector: The collector.
        worker: The worker on whose thread this is called, whose view counts.
        probes: The probes, and the times that are asked about.
        seconds: The time that the workers of this process have to answer.
    """
    from pointstamp.observability.explanation import explain  # explaining takes more modules than running
    from pointstamp.observability.graph import Place
    from pointstamp.observability.statistics import Statistics

    answers = collector.everyone(worker) if seconds is None else collector.everyone(worker, seconds)
    own = next((one for one in answers if isinstance(one, Statistics)), None)
    if worker is not None:
        own = next(
            (one for one in answers if isinstance(one, Statistics) and one.worker == worker.index), own
        )
    number = -1 if own is None else own.worker
    explanations = []
    for probe, time in probes:
        addresses = [own.numbers.get(place) for place in probe._places()] if own is not None else []
        places = [Place(address, False, 0) for address in addresses if address is not None]
        frontier = list(probe.frontier)
        explanations.append(explain(answers, number, at=places, before=time, frontier=frontier))
    if len(explanations) == 1:
        return explanations[0]
    held = next((explanation for explanation in explanations if explanation), None)
    return held if held is not None else explain(answers, number)


class Awaited(NamedTuple):
    """A wait until nothing is possible at some places but at or after some times.

    Attributes:
        places: The places, from `ProbeHandle.places`.
        times: The times; where there are none, that nothing is possible at all.
    """

    places: list[tuple[int, int]]
    times: list[Time]


def what_holds(
    collector: Collector, worker: _core.Worker | None, awaited: Awaited | None, seconds: float | None = None
) -> Explanation:
    """Asks every worker, and explains why the awaited probes wait, or without them all dataflows.

    Args:
        collector: The collector.
        worker: The worker on whose thread this is called.
        awaited: The awaited probes.
        seconds: The time that the workers of this process have to answer, and then the others; None for the
            usual time.
    """
    from pointstamp.observability.explanation import explain
    from pointstamp.observability.graph import Place
    from pointstamp.observability.statistics import Statistics

    answers = collector.everyone(worker) if seconds is None else collector.everyone(worker, seconds, seconds)
    stats = [one for one in answers if isinstance(one, Statistics)]
    own = stats[0].worker if stats else -1
    if awaited is None:
        return explain(answers, own)
    numbers = stats[0].numbers if stats else {}
    places = [Place(numbers[place], False, 0) for place in awaited.places if place in numbers]
    return explain(answers, own, at=places, beyond=awaited.times)


def probes_of(condition: Callable[[], Any]) -> Asked:
    """Returns the probes that a condition refers to: in its closure, its globals, or attributes of these."""
    found: dict[int, ProbeHandle] = {}
    values: list[Any] = [getattr(condition, "__self__", None)]
    for cell in getattr(condition, "__closure__", None) or ():
        with suppress(ValueError):  # an empty cell
            values.append(cell.cell_contents)
    code = getattr(condition, "__code__", None)
    known = getattr(condition, "__globals__", {})
    values.extend(known[name] for name in getattr(code, "co_names", ()) if name in known)
    for value in list(values):
        values.extend(list(getattr(value, "__dict__", {}).values())[:50])
    for value in values:
        if isinstance(value, ProbeHandle):
            found[id(value)] = value
    return [(probe, None) for probe in found.values()]


def waits_for_probes(condition: Callable[[], Any]) -> bool:
    """Whether a condition depends on probes, and on nothing that another thread or process may change."""
    if not probes_of(condition):
        return False
    names = getattr(getattr(condition, "__code__", None), "co_names", ())
    known = getattr(condition, "__globals__", {})
    values = [known[name] for name in names if name in known]
    for cell in getattr(condition, "__closure__", None) or ():
        with suppress(ValueError):  # an empty cell
            values.append(cell.cell_contents)
    plain = (ProbeHandle, int, tuple, _core.InputHandle)
    return all(
        isinstance(value, plain) or type(value).__module__.startswith("pointstamp") for value in values
    )


def say_forgotten(collector: Collector, worker: _core.Worker, condition: Callable[[], Any] | None) -> bool:
    """Says on standard error that a wait of `main` cannot end, since it has left inputs open.

    With several workers, the first one with such an input reports it. Nothing is reported where the worker
    also waits for something else: a source, an operator, or a worker that runs the program's own code.

    Args:
        collector: Asks the workers.
        worker: The worker of this thread.
        condition: The condition of `step_while`; None for `run`.

    Returns:
        Whether there is nothing to be said any more.
    """
    try:
        explanation = explained(collector, worker, [] if condition is None else probes_of(condition), BRIEF)
    except Exception:  # the computation may have ended meanwhile, and says why itself
        return True
    causes = explanation.causes
    if any(not silent.ended for silent in explanation.silent) or not causes:
        return False
    if any(cause.kind != "input" for cause in causes):
        return False
    if worker.index != min(-1 if cause.worker is None else cause.worker for cause in causes):
        return False
    waits = "worker.run()" if condition is None else "worker.step_while(...)"
    cure = "Close it" if condition is None else "Advance it, or close it,"
    say(
        f"{waits} waits for an input that main has left open, and nothing has happened for "
        f"{collector.patience:g} s. {cure} before {waits}.\n{explanation}"
    )
    return True


def interrupted(collector: Collector, worker: _core.Worker | None, error: BaseException) -> None:
    """Adds a note on Ctrl-C with the reason of the wait, once.

    Args:
        collector: The collector.
        worker: The worker on whose thread this is called; None on any other thread.
        error: The exception that interrupted the wait.
    """
    if isinstance(error, KeyboardInterrupt) and not getattr(error, "__notes__", None):
        note(error, str(explained(collector, worker, [], QUICK)))


class Report:
    """Reports on standard error why a computation waits, when the program has not asked itself.

    Args:
        collector: The collector.
        worker: The worker of the main thread, once there is one; None where workers have threads of their
        own.
    """

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._process = os.getpid()
        self._answering: list[Helper] = []
        self.worker: _core.Worker | None = None
        self.guard: _core.Guard | None = None
        self.stop: Callable[[], None] | None = None  # makes a checkpoint, and ends
        self.terminated = False  # whether it was called

    def text(self, *, here: bool, seconds: float | None = None) -> str:
        """Explains why all dataflows wait; `here` on the thread of a known worker."""
        worker = self.worker if here else None
        return str(explained(self._collector, worker, [], seconds))

    def on_interruption(self, error: BaseException) -> None:
        """Adds a note on Ctrl-C with the reason of the wait."""
        interrupted(self._collector, self.worker, error)

    def on_terminate(self, number: int, frame: object) -> None:
        """Reports why the program waits, and ends it as the signal would have; a second signal ends it now.

        Where checkpoints are made, it has one made after which all workers end.

        So does the guard, where saying takes too long. A process that was forked has nothing to say.
        """
        signal.signal(number, signal.SIG_DFL)
        if self.stop is not None and os.getpid() == self._process:
            if self.guard is not None:
                self.guard.renew(STOPPING)
            self.terminated = True
            self.stop()
            return
        if os.getpid() == self._process:
            if self.guard is not None:
                self.guard.renew(SAYING)
            with suppress(Exception):
                say(self.text(here=True, seconds=QUICK))
        signal.raise_signal(number)

    def on_request(self, number: int, frame: object) -> None:
        """Reports why the program waits, when the workers have reached the end of their steps."""
        if os.getpid() == self._process:
            answering = Helper(self._answer, "pointstamp-report", daemon=True)
            self._answering = [*(one for one in self._answering if one.is_alive()), answering]
            answering.start()

    def _answer(self) -> None:
        with suppress(Exception):  # the computation may have ended meanwhile
            say(self.text(here=False))

    def end(self) -> None:
        """Waits for the threads that answer: none is left to run while the interpreter is taken down."""
        join(self._answering, 0.1)

    def watch(self, seconds: float, ended: threading.Event) -> None:
        """Reports the reason whenever nothing has moved for so long and something is outstanding."""
        from pointstamp.observability.explanation import explain
        from pointstamp.observability.statistics import Statistics

        before: object = None
        since = monotonic()
        said = False
        idle: set[int] = set()
        while not ended.wait(seconds / 4):
            answers = self._collector.everyone(seconds=min(seconds / 4, PATIENCE))
            now = standing(answers, idle)
            if now != before:
                before, since, said = now, monotonic(), False
            elif now and not said and monotonic() - since >= seconds:
                said = True
                own = next((one.worker for one in answers if isinstance(one, Statistics)), -1)
                say(f"nothing has moved for {seconds:g} s. {explain(answers, own)}")


def standing(answers: Sequence[Statistics | Silent], idle: set[int]) -> object:
    """Returns a value that changes whenever something moves; it is empty where nothing is outstanding.

    A worker that does not answer counts as stalled while it is at one line. Its outstanding pointstamps are
    unknown: in an operator there are some, and in `main` there may be, unless there were none at its last
    answer.

    Args:
        answers: The answer of each worker, and the workers without one.
        idle: The workers that had nothing outstanding when they last answered; kept up to date.
    """
    from pointstamp.observability.statistics import Statistics

    parts: list[object] = []
    for one in answers:
        if isinstance(one, Statistics):
            idle.add(one.worker)
            for number, dataflow in one.dataflows.items():
                held = tuple(sorted((stamp, count) for stamp, count in dataflow.pointstamps.items() if count))
                if held:
                    idle.discard(one.worker)
                    parts.append((one.worker, number, held))
        elif one.at and not one.ended and (one.inside or one.worker not in idle):
            parts.append((one.worker, one.at))
    return tuple(parts)


@contextmanager
def reporting(report: Report, stall: float | None, *, alone: bool) -> Iterator[None]:
    """While the block runs, signals are answered, and a standstill is reported.

    Args:
        report: The reporter.
        stall: The seconds without movement after which to report without a request; None for never.
        alone: Whether this is the process that reports for all.
    """
    taken = _take_signals(report)
    ended = threading.Event()
    watcher = None
    try:
        if stall is not None and alone:
            watcher = Helper(partial(report.watch, stall, ended), "pointstamp-stalls", daemon=True)
            watcher.start()
        yield
    finally:
        ended.set()
        for number, before in taken.items():
            signal.signal(number, before)
        if report.guard is not None:
            report.guard.end()
        report.end()
        if watcher is not None:
            join([watcher], 0.1, ended.set)


def _take_signals(report: Report) -> dict[int, Any]:
    """Handles signals that have no handler yet, and restores the previous state afterwards."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    taken: dict[int, Any] = {}
    handlers: list[tuple[str, Any]] = [("SIGTERM", report.on_terminate), ("SIGUSR1", report.on_request)]
    for name, handler in handlers:
        number = getattr(signal, name, None)  # not on every system
        if number is not None and signal.getsignal(number) in (signal.SIG_DFL, too_early):
            taken[number] = signal.signal(number, handler)
    if signal.SIGTERM in taken:
        report.guard = _core.Guard(STUCK)
    return taken


def say(text: str) -> None:
    """Writes a text to standard error."""
    if sys.stderr is not None:
        sys.stderr.write(f"pointstamp: {text}\n")
        sys.stderr.flush()


def note(error: BaseException, text: str) -> None:
    """Adds a note to an exception; where tracebacks do not show notes, it is printed at once."""
    if not add_note(error, text):
        say(text)
