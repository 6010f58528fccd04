"""Tests of programs: executions that repeat.

The order in which workers run and in which their messages arrive differs from one execution to the next, and
some programs go wrong in few of those orders. `simulate` draws the order from a seed, so that such an
execution is a test like any other. The idea is deterministic simulation, by which FoundationDB is tested; the
uneven draw follows "A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs" (Burckhardt and
others, 2010).
"""

from __future__ import annotations

import random
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from pointstamp import _core
from pointstamp._validation import main_of
from pointstamp._weak import weakly
from pointstamp.config import Config
from pointstamp.errors import CheckpointError, ClusterError, ConfigError, StallError
from pointstamp.observability.collector import DISTANCE, PATIENCE, Collector
from pointstamp.observability.stalls import explained, note
from pointstamp.runtime.bootstrap.workers import cluster_of
from pointstamp.runtime.checkpoints import begin
from pointstamp.runtime.exit import StoppedAtExit
from pointstamp.runtime.threads import Helper, join
from pointstamp.runtime.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable

    from pointstamp.checkpoint import Checkpoint

__all__ = ["simulate"]

R = TypeVar("R")

_PATIENCE = 0.1
"""Seconds between two attempts to interrupt workers that are to end."""

_STILL = 5.0
"""Seconds in which nothing happens, before it is an error: a thread may have something to do."""

_ANSWERS = 60.0
"""The seconds that workers have to report why they wait, where none can continue."""


def simulate(
    main: Callable[[Worker], R],
    *,
    workers: int,
    seed: int,
    processes: int | None = None,
    lose_process: bool = False,
    checkpoint: Checkpoint | None = None,
    kill_at: int | None = None,
    progress_mode: str = "demand",
) -> list[R]:
    """Runs ``main(worker)`` on simulated workers, in an order that is determined by the seed alone.

    One worker runs at a time, from one step to the next. Which is next, and which message between two
    processes arrives before it, is drawn. Links between processes keep their order, and are otherwise as slow
    as the draw has it. Two calls with the same arguments do the same, as long as `main` depends on nothing
    else: no clock, no other thread, no random numbers without a seed. The engine is the real one.

    A worker gives up its turn only where it steps: `main` must not wait for another worker by other means.
    Times in seconds, such as the timeout of `Worker.step_or_park`, are real.

    Args:
        main: As for `execute`.
        workers: The number of workers in all processes.
        seed: Any integer from 0 on.
        processes: 1, or as many as there are workers; by default, the seed draws one of the two. Processes
            are simulated, too: messages between them are pickled, and all of them run in this one.
        lose_process: At some moment one process is lost, if the computation lasts so long; this raises the
            `ClusterError` of the others then. Needs two workers and more.
        checkpoint: The location of checkpoints. Where `every` is not None, the seed draws when one is made.
            Each process takes turns in which it writes.
        kill_at: The step at which all processes are killed at once: a step is a turn, a message that arrives,
            or a call that changes the location. The computation then runs again, in another order, and
            resumes from its last checkpoint to its end. Where it has fewer steps, nothing is killed.
        progress_mode: As for `Config`. With ``"tree:2"``, the seed also draws when a process that adds up the
            progress of its group waits no longer for the rest of it.

    Returns:
        The results of `main` on each worker, in their order; where all were killed, those of the second run.

    Raises:
        ConfigError: If the arguments cannot work.
        StallError: If every worker waits, and no message or timer that could end it is pending; the work of
            other threads, such as the calls of `async_map`, has 5 seconds. The error names the holders of the
            time, as `Worker.explain` does, and has the explanation.
        BaseException: The first exception of `main` or of an operator, with a note of the call that repeats
            it; on standard error, where tracebacks have no notes (Python 3.10).

    Examples:
        >>> from pointstamp.testing import simulate
        >>> def main(worker):
        ...     seen = []
        ...     with worker.dataflow() as scope:
        ...         scope.to_stream([worker.index]).broadcast().inspect(seen.append)
        ...     worker.run()
        ...     return seen
        >>> [sorted(seen) for seen in simulate(main, workers=3, seed=1)]
        [[0, 1, 2], [0, 1, 2], [0, 1, 2]]

        The record of either of the other two workers may arrive first:

        >>> sorted({tuple(simulate(main, workers=3, seed=seed)[0]) for seed in range(20)})
        [(0, 1, 2), (0, 2, 1)]
    """
    if kill_at is not None and (checkpoint is None or isinstance(kill_at, bool) or kill_at < 1):
        raise ConfigError(f"kill_at is a step from 1 on, and needs a checkpoint=, and is {kill_at!r}")
    main_of("simulate", main)
    config = Config(workers=workers, progress_mode=progress_mode)  # checks both
    given: object = seed
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        raise ConfigError(f"seed is an integer from 0 on, not {seed!r}")
    given_processes = processes is not None
    if processes is None:
        processes = workers if lose_process or random.Random(seed).random() < 0.5 else 1
    if processes not in (1, workers):
        raise ConfigError(f"processes is 1 or the number of workers, {workers}, not {processes!r}")
    if lose_process and processes == 1:
        asked = ["give two workers or more"] if workers == 1 else []
        asked += ["leave out processes=1"] if given_processes else []
        raise ConfigError(f"lose_process needs two processes and more: {', and '.join(asked)}")
    try:
        if kill_at is not None:
            try:
                return _Simulated(main, config, processes, seed, lose_process, checkpoint, kill_at).run()
            except _Killed:
                seed += 1
        return _Simulated(main, config, processes, seed, lose_process, checkpoint, None).run()
    except BaseException as error:
        how = f"workers={workers}, seed={seed}, processes={processes}, lose_process={lose_process}"
        if progress_mode != "demand":
            how += f", progress_mode={progress_mode!r}"
        if checkpoint is not None:
            how += f", checkpoint=..., kill_at={kill_at}"
        note(error, f"to repeat this: pointstamp.testing.simulate(main, {how})")
        raise


class _Killed(BaseException):
    """All processes of a simulation were killed."""


class _Simulated:
    """The workers of one call, on threads that take turns."""

    def __init__(
        self,
        main: Callable[[Worker], R],
        config: Config,
        processes: int,
        seed: int,
        loses: bool,
        checkpoint: Checkpoint | None,
        kill_at: int | None,
    ) -> None:
        self._main = main
        self._here = config.workers // processes
        """The number of workers of each process."""
        self._simulation = _core.Simulation(
            processes, self._here, seed % 2**64, loses, _STILL, weakly(self._stalled)
        )
        self._results: list[R | None] = [None] * config.workers
        self._checkpoints: list[_core.Checkpoints] = []
        if checkpoint is not None:
            self._simulation.records(kill_at)
            try:
                for process in range(processes):
                    self._checkpoints.append(begin(checkpoint, process, self._simulation.turns(process)))
            except CheckpointError:
                self._check_killed()
                raise
        self._clusters = [
            cluster_of(self._here, config, self._simulation.connections(process) if processes > 1 else None)
            for process in range(processes)
        ]
        self._entered: set[int] = set()
        """The workers whose threads have begun."""
        self._begun: list[int] = []
        self._collector = [
            _Together(self._simulation, self._clusters, process, self._here, self._begun)
            for process in range(processes)
        ]
        self._workers: list[_core.Worker | None] = [None] * config.workers
        self._left = [self._here] * processes
        self.steps = 0
        """The number of steps of a run that was not killed, without the last checkpoint."""

    def run(self) -> list[R]:
        with StoppedAtExit(*self._clusters):
            return self._run()

    def _run(self) -> list[R]:
        threads = [
            Helper(partial(self._worker, index), f"pointstamp-simulated-{index}")
            for index in range(len(self._results))
        ]
        whole = False
        try:
            try:
                for cluster, checkpoints in zip(self._clusters, self._checkpoints, strict=False):
                    cluster.records(checkpoints)
                for thread in threads:
                    thread.start()
                while not all(thread.ends(_PATIENCE) for thread in threads):
                    pass  # where an interruption of this thread is raised
            except BaseException as error:
                try:
                    for cluster in self._clusters:
                        cluster.abandon(type(error).__name__)
                finally:
                    join(threads, _PATIENCE, partial(self._end, threads))
                raise
            whole = not any(cluster.stopped for cluster in self._clusters)
            self.steps = self._simulation.steps
        finally:
            try:
                self._end_checkpoints(whole)
            finally:
                for cluster in self._clusters:
                    cluster.close()
        self._check_killed()
        self._raise_failure()
        return self._results  # type: ignore[return-value]  # only a failure leaves one out

    def _end_checkpoints(self, whole: bool) -> None:
        """Ends the writers; the first makes the last checkpoint, where the computation has ended."""
        for checkpoints in reversed(self._checkpoints):
            try:
                checkpoints.end(whole)
            except CheckpointError:
                if not self._simulation.killed:
                    raise

    def _check_killed(self) -> None:
        if self._simulation.killed:
            raise _Killed

    def _worker(self, index: int) -> None:
        self._entered.add(index)
        process, number = divmod(index, self._here)
        cluster = self._clusters[process]
        self._simulation.enter(index)
        try:
            self._results[index] = cluster.run(
                number,
                self._wrap,
                self._main,
                threading.get_ident(),
                False,
                simulation=self._simulation,
                checkpoints=self._checkpoints[process] if self._checkpoints else None,
            )
        except BaseException as error:  # before `main` began, or after it
            cluster.fail(number, error)
        finally:
            self._workers[index] = None
            self._left[process] -= 1
            if self._left[process] == 0:
                cluster.leave()
            self._simulation.leave(index)

    def _wrap(self, core: _core.Worker) -> Worker:
        self._begun.append(core.index)
        self._workers[core.index] = core
        return Worker(core, self._collector[core.index // self._here])

    def _stalled(self, index: int) -> None:
        """Raises the reason why every worker waits, or that all are killed; called on the thread of one."""
        self._check_killed()
        explanation = explained(
            self._collector[index // self._here], self._workers[index], [], seconds=_ANSWERS
        )
        raise StallError(
            "every worker waits, none has anything to do, and nothing is on its way between them\n"
            f"{explanation}",
            explanation,
        )

    def _end(self, threads: list[Helper]) -> None:
        """Interrupts the workers. A worker whose thread never begins leaves: its turn would have no end."""
        for cluster in self._clusters:
            cluster.interrupt()
        for index, thread in enumerate(threads):
            if thread.ends(0) and index not in self._entered:
                self._simulation.leave(index)

    def _raise_failure(self) -> None:
        """Raises the first error of the computation; after a loss, that of the surviving processes."""
        failures = []
        lost = self._simulation.lost()
        for process, cluster in enumerate(self._clusters):
            try:
                cluster.raise_failure()
            except BaseException as error:
                is_lost = isinstance(error, ClusterError) and error.process is not None
                failures.append((is_lost, process == lost, error))
        if failures:
            raise min(failures, key=lambda failure: failure[:2])[2]


class _Together(Collector):
    """Asks the workers of all simulated processes at once, in whatever order they take turns."""

    def __init__(
        self,
        simulation: _core.Simulation,
        clusters: list[_core.Cluster],
        process: int,
        workers: int,
        begun: list[int],
    ) -> None:
        processes = len(clusters)
        self._begun = begun
        self._peers = processes * workers
        super().__init__(clusters[process], process, processes, workers)
        self._simulation = simulation
        self._each = [Collector(one, number, processes, workers) for number, one in enumerate(clusters)]
        self._own = process

    def data(
        self, worker: _core.Worker | None = None, seconds: float = PATIENCE, distance: float = DISTANCE
    ) -> list[dict[str, Any]]:
        if len(self._begun) == self._peers:  # each answers or has ended, however busy the machine is
            seconds = max(seconds, _ANSWERS)
        self._simulation.ask()
        try:
            return [
                one
                for process, collector in enumerate(self._each)
                for one in collector.here(worker if process == self._own else None, seconds)
            ]
        finally:
            self._simulation.asked()
