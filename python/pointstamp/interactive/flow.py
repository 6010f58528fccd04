"""A dataflow of a session, as its handles share it, and waiting for what its workers answer.

Owns how long is waited, and what is said when that was not enough. What is said takes part of the time that
there is for waiting, and no more: the workers are asked before it is over.
"""

from __future__ import annotations

import weakref
from concurrent.futures import TimeoutError as FutureTimeout
from time import monotonic
from typing import TYPE_CHECKING, Any

from pointstamp._errors import PointstampError, StallError
from pointstamp.seeing.stalls import Awaited

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from pointstamp._types import Time
    from pointstamp.interactive.cluster import SessionWorkers

__all__ = ["Flow", "Waiting", "result_of"]

LOOK = 0.2
"""Seconds after which who waits looks again: a Ctrl-C that comes just before the main thread waits does not
wake it."""

SAYING = 1.0
"""Seconds at the end of a wait in which the workers are asked what holds it up; half of a shorter wait."""


def result_of(
    cluster: SessionWorkers, future: Future[list[Any]], what: str, timeout: float | None
) -> list[Any]:
    """The answers of the workers, once they have come.

    Raises:
        StallError: When they do not come in time.
        BaseException: What a worker raised.
    """
    return Waiting(what, timeout, lambda seconds: cluster.explain(None, seconds))(future)


class Waiting:
    """Waits for answers of workers, one after the other, for so many seconds altogether.

    Args:
        what: What is waited for.
        timeout: For how many seconds at most; None for as long as it takes.
        explain: Says in so many seconds at most what holds it up.
    """

    def __init__(self, what: str, timeout: float | None, explain: Callable[[float], str]) -> None:
        self._what = what
        self._timeout = timeout
        self._explain = explain
        self._until = None if timeout is None else monotonic() + timeout
        self._saying = 0.0 if timeout is None else min(SAYING, max(timeout, 0.0) / 2)

    def __call__(self, future: Future[list[Any]]) -> list[Any]:
        """The answer.

        Raises:
            StallError: When it does not come in time.
            BaseException: What a worker raised.
        """
        while True:
            left = self._left(self._saying)
            try:
                return future.result(min(LOOK, left))
            except (TimeoutError, FutureTimeout):
                if future.done():
                    return future.result()  # it has come just now, or is a worker's own error
                if left <= LOOK:
                    break
        said = self._explain(self._left(0.0))
        try:
            return future.result(self._left(0.0))
        except (TimeoutError, FutureTimeout):
            if future.done():
                return future.result()
        raise StallError(f"{self._what} is not over after {self._timeout:g} s\n{said}")

    def _left(self, less: float) -> float:
        """For how long it may still be waited."""
        if self._until is None:
            return float("inf")
        return max(0.0, self._until - less - monotonic())


class Flow:
    """A dataflow on the workers, for as long as something refers to it.

    Attributes:
        times: Where its inputs stand that are open, by name.
        unfinished: The open inputs that were given something at the time where they stand.
        places: Where its outputs are watched, by name: as a probe tells its places.
    """

    def __init__(
        self, cluster: SessionWorkers, number: int, name: str, places: dict[str, list[tuple[int, int]]]
    ) -> None:
        self.cluster = cluster
        self.name = name
        self.times: dict[str, Time] = {}
        self.unfinished: set[str] = set()
        self.places = places
        self._number = number
        self.ends = weakref.finalize(self, _drop, cluster, number)
        self.ends.atexit = False  # it ends with the session

    def ask(self, what: str, *arguments: Any, worker: int | None = None) -> Future[list[Any]]:
        """Tells all workers something of this dataflow, or asks one."""
        self._check()
        return self.cluster.ask(what, self._number, *arguments, worker=worker)

    def tell(self, worker: int | None, *arguments: Any) -> None:
        """Tells one worker, or all, something of an input, without an answer."""
        self._check()
        self.cluster.tell("input", self._number, *arguments, worker=worker)

    def waiting(self, what: str, timeout: float | None, names: list[str] | None = None) -> Waiting:
        """Waits for outputs, all or those of these names; says what holds them, where it takes too long."""
        places = [
            place for name in self.places if names is None or name in names for place in self.places[name]
        ]

        def explain(seconds: float) -> str:
            return self.cluster.explain(Awaited(places, list(self.times.values())), seconds)

        return Waiting(what, timeout, explain)

    def _check(self) -> None:
        if not self.ends.alive:
            raise PointstampError(
                f"dataflow {self.name!r} is closed: build it again with session.dataflow(...)"
            )


def _drop(cluster: SessionWorkers, number: int) -> None:
    if not cluster.ended:
        cluster.tell("drop", number, wait=False)
