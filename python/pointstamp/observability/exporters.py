"""Exporters of observations: the log, the live page and the metrics that a configuration asks for.

Owns the recorders of this process's workers, and the threads that read them. Where the configuration asks for
nothing, nothing is recorded, no thread runs and no port is open.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Any

from pointstamp import _core
from pointstamp.observability.explanation import explain
from pointstamp.observability.statistics import Statistics

if TYPE_CHECKING:
    from types import TracebackType

    from pointstamp.config import Config
    from pointstamp.observability.collector import Collector

__all__ = ["Exporters"]


Watch = Callable[["Collector"], AbstractContextManager[None]]

WATCHES: list[Watch] = []
"""Observers of each computation of this process from here on, where it is the first: for the command line."""


class Exporters:
    """Shows one computation, for as long as the block runs."""

    def __init__(self, config: Config, collector: Collector) -> None:
        self._config = config
        self.collector = collector
        self._recorders: dict[int, _core.Recorder] = {}
        self._stack = ExitStack()
        self._steady: Any = None

    def begins(self, worker: _core.Worker) -> None:
        """Records a worker, on its thread, where that was asked for."""
        config = self._config
        if config.log is not None or config.dashboard is not None or config.telemetry:
            recorder = _core.Recorder(self._config.log is not None)
            worker.record(recorder)
            self._recorders[worker.index] = recorder

    def __enter__(self) -> Exporters:
        if self._config.dashboard is not None or self._config.telemetry:
            from pointstamp.observability.cache import AnswerCache

            self._steady = AnswerCache(self.collector)
        try:
            self._begin()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    def _begin(self) -> None:
        # A started thread must be ended at any stage: an interruption may come anywhere.
        if self._config.log is not None:
            from pointstamp.observability.log import Writer

            first = self._config.process * self._config.workers
            workers = range(first, first + self._config.workers)
            writer = Writer(self._config.log, self._recorders, workers, self._config.peers)
            self._stack.push(writer)
            writer.__enter__()
        if self._config.dashboard is not None and self._config.process == 0:
            from pointstamp.observability.dashboard import Page, announce, live_answers

            host, port = self._config.dashboard
            page = Page(host, port, live_answers(self._state, self._explanation))
            self._stack.push(page)
            page.__enter__()
            announce(page.url)
        if self._config.telemetry and self._config.process == 0:
            from pointstamp.observability.telemetry import observed

            self._stack.enter_context(observed(self._state))
        if self._config.process == 0:
            for watch in WATCHES:
                self._stack.enter_context(watch(self.collector))

    def _state(self) -> dict[str, Any]:
        from pointstamp.observability.tables import tables

        return {**self._steady.state(), "tables": tables()}  # watchers share one

    def _explanation(self) -> str:
        answers = self.collector.everyone()
        own = next((one.worker for one in answers if isinstance(one, Statistics)), -1)
        return explain(answers, own).text(2)
