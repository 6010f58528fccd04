"""Running a computation: this process's workers, and its part in the end of all.

With one worker `main` runs in the calling thread, so that a debugger works; with several, each runs on a
thread of its own and the caller waits. The first exception, in `main` or in an operator, stops every worker,
in every process, and is raised here unchanged. No thread or connection outlives the call.
"""

from __future__ import annotations

import sys
import threading
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeVar

from pointstamp._validation import early, main_of
from pointstamp._weak import weakly
from pointstamp.config import Config, both_given, checked_stall_report
from pointstamp.errors import ConfigError, in_words
from pointstamp.observability import diagnostics
from pointstamp.observability.collector import Collector
from pointstamp.observability.exporters import Exporters
from pointstamp.observability.stalls import FORGOTTEN, Report, reporting
from pointstamp.runtime.bootstrap.workers import form
from pointstamp.runtime.checkpoints import checkpoints_of, place_of, recording
from pointstamp.runtime.exit import StoppedAtExit
from pointstamp.runtime.threads import Helper, join, raise_deferred
from pointstamp.runtime.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from socket import socket

    from pointstamp import _core
    from pointstamp.api.scope import Scope
    from pointstamp.restart import Restart

__all__ = ["example", "execute", "execute_from_args"]

R = TypeVar("R")

_LOOK = 0.5
"""Seconds that a wait of the main thread lasts at most. A signal that comes between its last instruction and
the wait does not end the wait, and its handler runs with the next instruction."""

_PATIENCE = 0.1
"""Seconds that a worker has to end by itself when it is stopped, before its Python code is interrupted: that
may strike anywhere, also in a destructor. A worker that catches it is interrupted again after as many."""


def execute(
    main: Callable[[Worker], R],
    *,
    workers: int = 1,
    processes: int | None = None,
    config: Config | None = None,
    listener: socket | None = None,
    stall_report: float | Literal[False] | None = None,
    restart: Restart | None = None,
) -> list[R]:
    """Runs ``main(worker)`` on each local worker and returns their results, in worker order.

    When `main` returns, the inputs that it left open are closed, and the worker steps until its dataflows are
    complete. With one worker, `main` runs in the calling thread. Ctrl-C stops every worker.

    With several processes, each calls it with its own number in the configuration, and otherwise the same; it
    returns in each when the workers of all have ended. It may be called again, for another cluster.

    With `processes`, it starts so many processes of this machine, each with as many workers, and returns the
    results of all. Python functions then run on as many cores. `main` may be any function, also one of a
    script, a notebook or the prompt: where other processes cannot import it, cloudpickle (which must be
    installed) packs it with the objects that it refers to, and each process has its own copy of these.
    Results are pickled. The processes end with this call, and with this program.

    Args:
        main: Builds and drives the dataflows; the same on every worker.
        workers: Worker threads; in place of a configuration.
        processes: Processes to start on this machine. Other settings may be given in a configuration of one
            process.
        config: The number of workers, and the connections between their processes.
        listener: A socket that listens on this process's address already, such as `pointstamp.cluster.bind`
            returns; it is taken over, and closed.
        stall_report: The number of seconds without movement, while something is outstanding, after which the
            reason is reported on standard error. None reports after 10 seconds where `Worker.run`, or a
            `Worker.step_while` of probes, waits only for inputs that `main` has left open, and not where a
            source, an operator or `main` itself may still move something. False never does.
        restart: With `processes` and checkpoints: has all of them started again from the last checkpoint when
            one is lost; left out, as the configuration says.

    Where checkpoints are made, SIGTERM has a last one made; then all workers end, and `SystemExit` is raised.

    Raises:
        ConfigError: If the configuration cannot work, or both `workers` and `config` are given.
        TypeError: If `main` is not a function, is `async def` or yields, or `config` is not a `Config`.
        GraphError: If the workers build different dataflows.
        ClusterError: If the processes do not find each other in time or cannot be in one cluster, and when
            another process fails or is lost: it names that process, its address and its reason.
        BaseException: The first exception of `main` or of an operator on any worker of this process: the
            same object, with a note that names the worker and the operator. Of processes that were started
            here: one like it, with the traceback of its process as its cause.

    Examples:
        >>> import pointstamp as ps
        >>> def main(worker):
        ...     with worker.dataflow() as scope:
        ...         numbers = scope.to_stream(range(worker.index, 10, worker.peers))
        ...         squares = numbers.map(lambda x: x * x).capture()
        ...     worker.run()
        ...     return squares.extract()
        >>> ps.execute(main, workers=2)
        [[(0, [0, 4, 16, 36, 64])], [(0, [1, 9, 25, 49, 81])]]

        On two processes:

        >>> ps.execute(main, processes=2)
        [[(0, [0, 4, 16, 36, 64])], [(0, [1, 9, 25, 49, 81])]]
    """
    if processes is not None:
        return _on_processes(main, processes, workers, config, listener, stall_report, restart)
    if restart is not None:
        raise ConfigError("restart= starts processes again: say with processes= how many there are")
    with listener if listener is not None else nullcontext():  # closed in any case
        main_of("execute", main)
        if config is None:
            config = Config(workers=workers)
        elif not isinstance(config, Config):
            raise TypeError(f"config is a pointstamp.Config, such as Config(workers=2), not {config!r}")
        elif workers != 1:
            raise ConfigError(both_given(workers))
        stall = checked_stall_report(stall_report)
        diagnostics.keep()
        checkpoints = checkpoints_of(config)
        cluster = form(config, listener)
    collector = Collector(cluster, config.process, config.processes, config.workers)
    if stall_report is None:
        collector.patience = FORGOTTEN
    report = Report(collector)
    if checkpoints is not None:
        report.stop = checkpoints.stop
    exporters = Exporters(config, collector)
    with StoppedAtExit(cluster):
        try:
            with (
                reporting(report, stall, alone=config.process == 0),
                exporters,
                recording(checkpoints, cluster),
            ):
                results = _run(cluster, main, config, report, exporters, checkpoints)
                if config.processes > 1:
                    cluster.leave()
                    while not cluster.wait_for_others(_PATIENCE):
                        pass  # where an interruption of this thread is raised
        finally:
            cluster.close()
            diagnostics.pass_on()
        cluster.raise_failure()
    if report.terminated:
        raise SystemExit(0)  # the last checkpoint is made
    return results  # type: ignore[return-value]  # only a failure leaves one out


def _on_processes(
    main: Callable[[Worker], R],
    processes: int,
    workers: int,
    config: Config | None,
    listener: socket | None,
    stall_report: float | Literal[False] | None,
    restart: Restart | None,
) -> list[R]:
    main_of("execute", main)
    if config is None:
        config = Config(workers=workers)
    elif workers != 1:
        raise ConfigError(both_given(workers))
    if listener is not None or config.processes != 1 or config.addresses:
        raise ConfigError(
            "processes= starts the processes itself: leave out listener=, and give no processes or addresses "
            "in the config; or start each process yourself, with a config that says which it is"
        )
    Config(processes=processes)  # checks the number
    from pointstamp.runtime.launcher.spawning import run_on_processes

    run = partial(run_on_processes, main, processes, config, stall_report)
    restart = config.restart if restart is None else restart
    if restart is None:
        return run()
    if config.checkpoint is None:
        raise ConfigError(
            "restart= resumes from the last checkpoint, and none is made: give the config checkpoint="
        )
    from pointstamp.runtime.launcher.restarting import restarting

    return restarting(run, restart)


def _run(
    cluster: _core.Cluster,
    main: Callable[[Worker], R],
    config: Config,
    report: Report,
    exporters: Exporters,
    checkpoints: _core.Checkpoints | None,
) -> list[R | None]:
    if config.workers > 1:
        return _run_on_threads(cluster, main, config, report, exporters, checkpoints)
    signals = threading.current_thread() is threading.main_thread()

    def wrap(core: _core.Worker) -> Worker:
        report.worker = core
        exporters.begins(core)
        return Worker(core, exporters.collector, place_of(config))

    def run() -> list[R | None]:
        ident = threading.get_ident()
        try:
            handler = weakly(report.on_interruption)
            result = cluster.run(0, wrap, main, ident, signals, handler, checkpoints=checkpoints)
            early.warn()
            return [result]
        finally:
            raise_deferred()  # exceptions at the end of its dataflows

    if config.processes == 1:
        return run()
    ended = threading.Event()
    watcher = Helper(partial(_watch, cluster, ended), "pointstamp-watch", daemon=True)
    # Not by a context manager, which an interruption keeps from being left when it comes between the two.
    try:
        watcher.start()
        return run()
    finally:
        try:
            ended.set()
        finally:
            join([watcher], _PATIENCE, ended.set)


def _watch(cluster: _core.Cluster, ended: threading.Event) -> None:
    """Interrupts the one worker of this process when the computation is stopped from elsewhere."""
    stopped = False
    while not ended.wait(_PATIENCE):
        if stopped:
            cluster.interrupt()
        stopped = cluster.stopped


def _run_on_threads(
    cluster: _core.Cluster,
    main: Callable[[Worker], R],
    config: Config,
    report: Report,
    exporters: Exporters,
    checkpoints: _core.Checkpoints | None,
) -> list[R | None]:
    results: list[R | None] = [None] * config.workers
    ended = threading.Semaphore(0)

    def wrap(core: _core.Worker) -> Worker:
        exporters.begins(core)
        return Worker(core, exporters.collector, place_of(config))

    def run(index: int) -> None:
        try:
            ident = threading.get_ident()
            results[index] = cluster.run(index, wrap, main, ident, False, checkpoints=checkpoints)
            early.warn()
        except BaseException as error:  # before `main` began, or after it: the others stop waiting
            cluster.fail(index, error)
        finally:
            ended.release()

    first = config.process * config.workers
    # They are daemons only where this thread is: the user's code may start threads, which inherit that, and
    # the interpreter must wait for those as it does where one worker runs in the main thread.
    threads = [
        Helper(partial(run, index), f"pointstamp-worker-{first + index}") for index in range(config.workers)
    ]
    try:
        for thread in threads:
            thread.start()
        for _ in threads:
            _wait(ended, cluster, alone=config.processes == 1)
    except BaseException as error:
        # An interruption of this thread, or a thread that could not be started: no worker continues alone.
        # Reporting the reason takes a while, and may be interrupted in turn: SIGINT often comes twice, to a
        # whole group and from its leader.
        reason = type(error).__name__
        try:
            try:
                report.on_interruption(error)
                reason = in_words(error, error.__traceback__)
            finally:
                cluster.abandon(reason)
        finally:
            join(threads, _PATIENCE, cluster.interrupt)
        raise
    join(threads, _PATIENCE)
    return results


def _wait(ended: threading.Semaphore, cluster: _core.Cluster, *, alone: bool) -> None:
    """Waits until another worker has ended; interrupts workers that do not stop when they should."""
    while True:
        stopped = cluster.stopped
        # A process all of whose workers were stopped has ended because another process did.
        if ended.acquire(timeout=_LOOK if alone and not stopped else _PATIENCE):
            return
        if stopped:
            cluster.interrupt()


def execute_from_args(main: Callable[[Worker], R], argv: Sequence[str] | None = None) -> list[R]:
    """Runs ``main(worker)`` as the command line says: ``-w 4`` is four workers.

    Args:
        main: As for `execute`.
        argv: The arguments, without the program's name; the command line's by default. Unknown ones are left
            for the program; see `Config.from_args`.

    Raises:
        ConfigError: If the arguments cannot work.

    Examples:
        >>> import pointstamp as ps
        >>> ps.execute_from_args(lambda worker: worker.index, ["-w", "2", "--colour", "red"])
        [0, 1]
    """
    config, _rest = Config.from_args(sys.argv[1:] if argv is None else argv)
    if config.processes > 1:
        _say_who_is_waited_for(config)
    return execute(main, config=config)


def _say_who_is_waited_for(config: Config) -> None:
    import logging

    n, w = config.processes, config.workers
    others = ", ".join(
        f"{number} at {address}"
        for number, address in enumerate(config.addresses)
        if number != config.process
    )
    logging.getLogger("pointstamp.cluster").warning(
        "process %d of %d waits for process %s, for %g s at most: start each with its own -p, or all of them "
        "at once with `python -m pointstamp run -n %d -w %d module:main`",
        *(config.process, n, others, config.connect_timeout, n, w),
    )


def example(build: Callable[[Scope], R], *, dims: int = 1) -> R:
    """Builds one dataflow on one worker in this thread, runs it to completion, returns the result of `build`.

    Args:
        build: Builds the dataflow in the scope that it is given.
        dims: The number of coordinates of timestamps.

    Examples:
        >>> import pointstamp as ps
        >>> ps.example(lambda scope: scope.to_stream(list("ab")).inspect(print)) and None
        a
        b
    """

    def main(worker: Worker) -> R:
        with worker.dataflow(dims=dims) as scope:
            built = build(scope)
        worker.run()
        return built

    return execute(main)[0]
