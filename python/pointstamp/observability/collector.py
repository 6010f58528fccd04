"""Collects the statistics of every worker, in this process and in the others.

Owns `Collector`, one for each computation of this process. A worker answers between two steps, and also while
it sleeps. A worker that runs the program's own code cannot answer; the collector then finds the line that
runs. Other processes are asked over the cluster's own connections, and answer for all their workers.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from pointstamp._weak import weakly
from pointstamp.observability.held_times import answers as answers_of
from pointstamp.observability.held_times import rejected

if TYPE_CHECKING:
    from types import FrameType

    from pointstamp import _core
    from pointstamp.observability.statistics import Silent, Statistics

__all__ = ["Collector", "answer_of"]

PATIENCE = 1.0
"""Seconds that a worker of this process has to answer."""

DISTANCE = 1.0
"""Seconds more that the other processes have."""

_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")

_EXECUTION = os.path.join(_PACKAGE, "runtime", "execution.py")

_WORKER = os.path.join(_PACKAGE, "runtime", "worker.py")

_NOT_THEIRS = (_PACKAGE, threading.__file__.rpartition("threading")[0], "<frozen ")


class Collector:
    """Asks the workers of a computation.

    Args:
        cluster: The workers of this process.
        process: Its number.
        processes: The number of processes.
        workers: The number of workers of each process.

    Attributes:
        patience: Seconds after which a wait of `main` for inputs that it left open itself is reported; None
            where it is not.
    """

    def __init__(self, cluster: _core.Cluster, process: int, processes: int, workers: int) -> None:
        self.patience: float | None = None
        self._cluster = cluster
        self._process = process
        self._processes = processes
        self._workers = workers
        self._numbers = itertools.count()
        self._answers: dict[int, dict[int, list[dict[str, Any]]]] = {}
        self._arrived = threading.Condition()
        if processes > 1:
            cluster.listen(weakly(self._receive))

    def wake(self, worker: int) -> None:
        """Wakes a worker of this process, by its number in the cluster, where it sleeps."""
        self._cluster.wake(worker - self._process * self._workers)

    def stop(self, reason: str) -> None:
        """Ends the computation, the program's own code in it included; to be called until it has ended."""
        if not self._cluster.stopped:
            self._cluster.abandon(reason)
        self._cluster.interrupt()

    def everyone(
        self, worker: _core.Worker | None = None, seconds: float = PATIENCE, distance: float = DISTANCE
    ) -> list[Statistics | Silent]:
        """Asks every worker; returns the answers in the workers' order.

        Args:
            worker: The worker on whose thread this is called; None on any other thread.
            seconds: The time that the workers of this process have to answer.
            distance: The additional seconds for workers of other processes.
        """
        return [answer_of(one) for one in self.data(worker, seconds, distance)]

    def data(
        self, worker: _core.Worker | None = None, seconds: float = PATIENCE, distance: float = DISTANCE
    ) -> list[dict[str, Any]]:
        """Returns the answers of `everyone` as data: for JSON."""
        number = next(self._numbers)
        if self._processes > 1:
            import json

            with self._arrived:
                self._answers[number] = {}
            self._cluster.say(json.dumps({"ask": number, "seconds": seconds}).encode())
        data = self.here(worker, seconds)
        if self._processes > 1:
            data += self._elsewhere(number, worker, seconds + distance)
        return sorted(data, key=lambda one: (one["process"], one["worker"] or 0))

    def here(self, worker: _core.Worker | None, seconds: float) -> list[dict[str, Any]]:
        """Returns the answers of the workers of this process; as for `data`."""
        begin = time.monotonic()
        answers = self._cluster.ask(seconds) if worker is None else worker.ask(self._cluster, seconds)
        waited = time.monotonic() - begin
        at_work = self._cluster.at_work()
        memory = resident()
        running = self._cluster.running()
        data = []
        for index, (answer, thread, line) in enumerate(zip(answers, running, _lines(running), strict=True)):
            who = {"worker": self._process * self._workers + index, "process": self._process}
            at, inside = line
            about = {"at": at, "waited": waited}
            if isinstance(answer, dict):
                about["memory"] = memory
                # Whether a thread lives can only be said here.
                ran = [(*entry, name, _is_alive(ident, name)) for *entry, ident, name in answer["ran"]]
                own = answers_of(who["worker"], thread)
                left_out = rejected(who["worker"], thread)
                data.append({**answer, **about, "ran": ran, "own": own, "rejected": left_out})
            else:
                name = (at_work[index] or "") if inside else ""
                silent = {"silent": True, "ended": answer == "ended", "inside": inside, "operator": name}
                data.append({**who, **about, **silent})
        return data

    def _elsewhere(self, number: int, worker: _core.Worker | None, seconds: float) -> list[dict[str, Any]]:
        """Returns the answers of the other processes, and names processes that have not answered."""
        end = time.monotonic() + seconds
        with self._arrived:
            answers = self._answers[number]
            while len(answers) < self._processes - 1 and time.monotonic() < end:
                self._arrived.wait(0.01)
                if worker is not None:
                    self._arrived.release()
                    try:
                        worker.answer()  # another worker may wait for this one in turn
                    finally:
                        # No limit: its lock is held for a few instructions.
                        self._arrived.acquire()
            del self._answers[number]
        data = [one for said in answers.values() for one in said]
        for process in range(self._processes):
            if process != self._process and process not in answers:
                silent = {"worker": None, "process": process, "at": "", "waited": seconds}
                data.append({**silent, "silent": True, "ended": False, "inside": False, "operator": ""})
        return data

    def _receive(self, process: int, what: bytes) -> None:
        """Takes a message of another process; on a thread of its own."""
        import json

        said = json.loads(what)
        if "ask" in said:
            data = self.here(None, said["seconds"])
            answer = {"to": process, "answer": said["ask"], "data": data}
            self._cluster.say(json.dumps(answer).encode())
        elif said["to"] == self._process:
            with self._arrived:
                if said["answer"] in self._answers:  # else it comes too late
                    self._answers[said["answer"]][process] = said["data"]
                    self._arrived.notify_all()


def resident() -> int:
    """The bytes of memory that this process holds; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def answer_of(data: dict[str, Any]) -> Statistics | Silent:
    """Reads one worker's answer from data."""
    from pointstamp.observability.statistics import (  # asking takes more modules than running
        Silent,
        Statistics,
    )

    if "silent" in data:
        keys = ("worker", "process", "waited", "at", "ended", "inside", "operator")
        return Silent(*(data[key] for key in keys))
    return Statistics.from_data(data, data["at"])


def _lines(threads: list[int | None]) -> list[tuple[str, bool]]:
    """The `_line` of each thread."""
    frames = sys._current_frames()
    try:
        return [_line(None if thread is None else frames.get(thread)) for thread in threads]
    finally:
        frames.clear()  # this frame is one of them: the frames of all threads would stay until a collection


def _line(frame: FrameType | None) -> tuple[str, bool]:
    """Returns the innermost line of the program on a thread, and whether a step called it.

    The line is empty where there is none. Code of this package or an installed one was called from there.
    Beyond `execute` is its caller.
    """
    at, called = "", None
    while frame is not None and frame.f_code.co_filename != _EXECUTION:
        file = frame.f_code.co_filename
        if at and file == _WORKER:
            condition = getattr(frame.f_locals.get("condition"), "__code__", None)  # of step_while
            return at, called is not condition
        if not at and not file.startswith(_NOT_THEIRS) and "site-packages" not in file:
            at = f"{file}:{frame.f_lineno} in {frame.f_code.co_name}"
        called, frame = frame.f_code, frame.f_back
    return at, False


def _is_alive(number: int | None, name: str) -> bool:
    """Whether a thread of this process still runs."""
    return any(thread.ident == number and thread.name == name for thread in threading.enumerate())
