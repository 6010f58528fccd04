"""The state of a session's dataflow that its handles share, and the wait for answers of its workers.

Owns the time limits of waits, and the explanation when a limit has passed. The explanation takes part of the
time that there is for waiting, and no more: the workers are asked before it is over.
"""

from __future__ import annotations

import weakref
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any

from pointstamp.errors import PointstampError, StallError, add_note
from pointstamp.observability.stalls import Awaited

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

    from pointstamp.runtime.interactive.cluster import SessionWorkers
    from pointstamp.types import Time

__all__ = ["Flow", "Waiting", "result_of"]

LOOK = 0.2
"""The polling interval of waiters, in seconds: a Ctrl-C that comes just before the main thread waits does
not wake it."""

SAYING = 1.0
"""Seconds at the end of a wait in which the workers are asked for the reason; half of a shorter wait."""


def result_of(
    cluster: SessionWorkers, future: Future[list[Any]], what: str, timeout: float | None
) -> list[Any]:
    """The answers of the workers, once they have come; by default within the session's timeout.

    Raises:
        StallError: When they do not come in time.
        BaseException: An exception of a worker.
    """
    seconds = cluster.timeout if timeout is None else timeout
    return Waiting(what, seconds, lambda seconds: cluster.explain(None, seconds))(future)


class Waiting:
    """Waits for answers of workers, one after the other, for so many seconds altogether.

    Args:
        what: The awaited result.
        timeout: The maximum number of seconds; None without a limit.
        explain: Returns the reason of the wait, in so many seconds at most.
        forget: Is called with an answer that is not awaited any longer.
    """

    def __init__(
        self,
        what: str,
        timeout: float | None,
        explain: Callable[[float], str],
        forget: Callable[[Future[list[Any]]], None] = lambda _: None,
    ) -> None:
        self._what = what
        self._timeout = timeout
        self._explain = explain
        self._forget = forget
        self._until = None if timeout is None else monotonic() + timeout
        self._saying = 0.0 if timeout is None else min(SAYING, max(timeout, 0.0) / 2)

    def __call__(self, future: Future[list[Any]]) -> list[Any]:
        """The answer.

        Raises:
            StallError: When it does not come in time.
            BaseException: An exception of a worker.
        """
        try:
            while True:
                left = self._left(self._saying)
                try:
                    return future.result(min(LOOK, left))
                except (TimeoutError, FutureTimeout):
                    if future.done():
                        return future.result()  # No limit: it has come just now, or is a worker's own error.
                    if left <= LOOK:
                        break
        except KeyboardInterrupt as error:
            if not future.done():
                self._forget(future)
                add_note(error, f"{self._what} was waited for\n{self._explain(SAYING)}")
            raise
        said = self._explain(self._left(0.0))
        try:
            return future.result(self._left(0.0))
        except (TimeoutError, FutureTimeout):
            if future.done():
                return future.result()  # No limit: as before.
        self._forget(future)
        raise StallError(f"{self._what} is not over after {self._timeout:g} s\n{said}")

    def _left(self, less: float) -> float:
        """Returns the remaining time of the wait."""
        if self._until is None:
            return float("inf")
        return max(0.0, self._until - less - monotonic())


CLOSED = "was closed: build it again with session.dataflow(...)"

REPLACED = (
    "was replaced: its function was defined again, and built as a newer dataflow of this name. Use the "
    "inputs and outputs of that one; to keep both, keep the dataflow itself, not only parts of it, or build "
    "one with another name="
)


class Flow:
    """A dataflow on the workers, for as long as something refers to it.

    Attributes:
        cluster: The workers.
        name: Its name.
        times: Where its inputs stand that are open, by name.
        unfinished: The open inputs that were given something at the time where they stand.
        places: The places that watch its outputs, by name: in the form of a probe's places.
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
        self._why = CLOSED
        self._is_held = True
        self._is_old = False
        self._ends = weakref.finalize(self, _drop, cluster, number)
        self._ends.atexit = False  # it ends with the session

    @property
    def over(self) -> bool:
        """Whether it has ended on the workers, or they have."""
        return not self._ends.alive or self.cluster.over

    def end(self, why: str = CLOSED) -> None:
        """Ends it on the workers, unless it has ended. Later calls raise the reason."""
        if not self.over:
            self._why = why
            self._ends()

    def replaced(self) -> None:
        """Notes that there is a newer one in its place: it ends when the program holds but parts of it."""
        self._is_old = True
        self._end_if_replaced()

    def unheld(self) -> None:
        """Notes that the program has released it. It may still hold inputs and outputs."""
        self._is_held = False
        self._end_if_replaced()

    def _end_if_replaced(self) -> None:
        if self._is_old and not self._is_held:
            self.end(REPLACED)

    def ask(self, what: str, *arguments: Any, worker: int | None = None) -> Future[list[Any]]:
        """Sends all workers, or one, a command about this dataflow."""
        self.check()
        return self.cluster.ask(what, self._number, *arguments, worker=worker)

    def post(self, worker: int | None, *arguments: Any) -> None:
        """Sends one worker, or all, a command about an input, without an answer."""
        self.check()
        self.cluster.post("input", self._number, *arguments, worker=worker)

    def waiting(self, what: str, timeout: float | None, names: list[str] | None = None) -> Waiting:
        """Waits for outputs, all or those of these names; reports the holders, where it takes too long.

        No timeout is the session's.
        """
        places = [
            place for name in self.places if names is None or name in names for place in self.places[name]
        ]

        def explain(seconds: float) -> str:
            return self.cluster.explain(Awaited(places, list(self.times.values())), seconds)

        seconds = self.cluster.timeout if timeout is None else timeout
        return Waiting(what, seconds, explain, self.cluster.forget)

    @contextmanager
    def settling(self) -> Iterator[None]:
        """For waiting until nothing is on its way: says so where the dataflow has ended meanwhile.

        Raises:
            BaseException: Exceptions of `check`, and of earlier commands.
        """
        try:
            yield
        except PointstampError:
            self.check()
            raise
        self.check()
        self.cluster.raise_error()

    def check(self) -> None:
        """Checks that the dataflow is there.

        Raises:
            PointstampError: If it was closed or replaced, or the session closed, restarted or interrupted.
            BaseException: The reason why the workers have ended.
        """
        if not self._ends.alive:
            raise PointstampError(f"dataflow {self.name!r} {self._why}")
        if self.cluster.over:
            self.cluster.raise_error()


def _drop(cluster: SessionWorkers, number: int) -> None:
    if not cluster.over:
        cluster.post("drop", number, wait=False)
