"""A cache of the workers' answers: a worker's last answer replaces one that does not arrive.

Owns the cache, one for each computation that is observed. Without it a counter, which is a sum over the
workers, would go down while one of them runs the program's own code, and a rate would jump.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from pointstamp.observability.dashboard_state import state_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pointstamp.observability.collector import Collector

__all__ = ["AnswerCache"]

Said = dict[str, Any]


class AnswerCache:
    """The states of a computation."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._one = threading.Lock()
        self._lock = threading.Lock()
        self._next: Future[dict[str, Any]] | None = None
        self._last: dict[tuple[int, int], Said] = {}

    def state(self) -> dict[str, Any]:
        """Returns the present state, see `state_of`; for threads that are no worker's. It is read-only.

        The workers are asked once at a time: else an earlier answer could replace a later one in the cache.
        All callers that come meanwhile share the next answer, so that each waits for two at most.
        """
        with self._lock:
            answer, first = self._next, self._next is None
            if answer is None:
                answer = self._next = Future()
        if first:
            try:
                with self._one:
                    self._close(answer)
                    answer.set_result(state_of(self.remembered(self._collector.data())))
            except BaseException as error:
                self._close(answer)
                answer.set_exception(error)
        # No limit: the first caller asks the workers, which has a limit of its own, and passes errors on.
        return answer.result()

    def _close(self, answer: Future[dict[str, Any]]) -> None:
        """Ends the sharing of this answer: later calls ask again."""
        with self._lock:
            if self._next is answer:
                self._next = None

    def remembered(self, data: Sequence[Said]) -> list[Said]:
        """Returns the workers' answers; for workers that did not answer, their last answers, as ``last``."""
        for one in data:
            if "silent" not in one:
                self._last[one["process"], one["worker"]] = one
        return [{**one, "last": self._of(one)} if "silent" in one else one for one in data]

    def _of(self, silent: Said) -> list[Said]:
        """Returns the last answers of a worker, or of all workers of a process."""
        process, worker = silent["process"], silent["worker"]
        return [said for (of, each), said in self._last.items() if of == process and worker in (None, each)]
