"""`Interactive`: the handle of a notebook or the prompt to a cluster in the background."""

from __future__ import annotations

import dataclasses
import weakref
from contextlib import suppress
from itertools import count
from types import FunctionType
from typing import TYPE_CHECKING, Any

from pointstamp._validation import main_of, suggesting, warn_usage
from pointstamp.checkpoint import Checkpoint
from pointstamp.config import Config, both_given
from pointstamp.errors import CheckpointError, ConfigError, GraphError, PointstampError
from pointstamp.runtime.interactive.commands import in_short
from pointstamp.runtime.launcher.pickling import pack, unpack

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from pointstamp.runtime.interactive.cluster import SessionWorkers
    from pointstamp.runtime.interactive.flow import Flow
    from pointstamp.runtime.interactive.handles import Live
    from pointstamp.runtime.interactive.queries import LiveQuery
    from pointstamp.runtime.interactive.stored import Built

__all__ = ["Interactive"]

PATIENCE = 1.0
"""Seconds that a function has to come back when the cell that runs it was interrupted."""

CLOSED = (
    "the session was closed, and its dataflows ended with it: make another one with "
    "pointstamp.Interactive(...), and build them there"
)

RESTARTED = (
    "the session was restarted, which ended its dataflows: build them again with session.dataflow(...)"
)

INTERRUPTED = (
    "a function that the workers of the session ran was interrupted, and had not come back after "
    f"{PATIENCE:g} s: the workers were ended, with all dataflows. Build them again with session.dataflow(...)"
)


@suggesting
class Interactive:
    """A cluster in the background, for notebooks and the prompt: dataflows that are fed and read meanwhile.

    The workers are threads of this program, or with `processes` processes of this machine, to which functions
    are sent as `execute(main, processes=)` does. They end with the ``with`` block or `close`, when nothing
    refers to the session any more, and with the program.

    An exception of an operator ends the workers, with all their dataflows; it is raised by the next call. The
    next `dataflow` starts new workers. An interrupted wait (Ctrl-C) interrupts nothing else.

    Args:
        workers: Worker threads, in each process; in place of a configuration.
        processes: Processes to start; None for threads of this program.
        config: Other settings, of one process: a dashboard, say.
        timeout: Seconds for which a call without a timeout of its own waits for the workers, before it raises
            `StallError`, with the reason; None without a limit.
        functions: As for `open`.

    With `Config.checkpoint`, the session resumes from a checkpoint, as `open` does.

    Raises:
        ConfigError: If the configuration cannot work.
        CheckpointError: If the checkpoint cannot be resumed.

    Examples:
        >>> import pointstamp as ps
        >>> session = ps.Interactive(workers=2)
        >>> def words(scope):
        ...     lines, stream = scope.new_input()
        ...     return {"lines": lines, "counts": stream.flat_map(str.split).value_counts()}
        >>> flow = session.dataflow(words)
        >>> flow.lines.send("to be or not to be")
        >>> flow.lines.advance_to(1)
        >>> flow.counts.read()
        [(0, [('be', 2), ('not', 1), ('or', 1), ('to', 2)])]
        >>> flow
        <dataflow 'words': <input 'lines' at 1>, <output 'counts': Stream>>
        >>> session.close()
    """

    def __init__(
        self,
        *,
        workers: int = 1,
        processes: int | None = None,
        config: Config | None = None,
        timeout: float | None = None,
        functions: Mapping[str, Callable[..., Any]] | None = None,
    ) -> None:
        if timeout is not None and not timeout > 0:
            raise ConfigError(f"timeout is a number of seconds, more than 0, not {timeout!r}")
        if config is None:
            config = Config(workers=workers)
        elif workers != 1:
            raise ConfigError(both_given(workers))
        if config.processes != 1 or config.addresses:
            raise ConfigError("a session starts its processes itself: give processes= beside the config")
        if processes is not None:
            Config(processes=processes)  # checks the number
        self._config = config
        self._processes = processes
        self._timeout = timeout
        self._numbers = count()
        self._built: dict[tuple[str, str, str], tuple[weakref.ref[Any], weakref.WeakSet[Flow]]] = {}
        # The last are those that work; before them are some that cannot be interrupted and have yet to end.
        self._running: list[SessionWorkers] = []
        # Where checkpoints are made: a dataflow that has a name is held until it is closed.
        self._named: dict[str, Live] = {}
        self._instead = dict(functions or {})
        self._ends = weakref.finalize(self, _close, self._running, CLOSED)
        self._cluster()

    @classmethod
    def open(
        cls,
        location: str | os.PathLike[str] | Checkpoint,
        *,
        workers: int = 1,
        processes: int | None = None,
        config: Config | None = None,
        timeout: float | None = None,
        functions: Mapping[str, Callable[..., Any]] | None = None,
    ) -> Interactive:
        """Opens a session that makes checkpoints, with the dataflows that the last checkpoint has.

        `dataflows` has them by name, with their inputs where these stood and the results that were not read.
        A location without a checkpoint has none. Checkpoints have the functions that built the dataflows: as
        the name of module and function where these can be imported, and else pickled, by cloudpickle.

        All that is sent to an input goes to worker 0.

        Args:
            location: The folder of the checkpoints, or a `Checkpoint`. It is trusted like code.
            workers: As for the class. The number may be another than before.
            processes: As for the class.
            config: As for the class, without a checkpoint.
            timeout: As for the class.
            functions: Functions by the names of dataflows, which are called in place of those in the
                checkpoint: see `docs/recovery.md` on the permitted changes of a program.

        Raises:
            ConfigError: If the configuration cannot work.
            CheckpointError: If the checkpoint cannot be resumed: a function that is not found, a changed
                dataflow, a damaged file.

        Examples:
            >>> import tempfile
            >>> import pointstamp as ps
            >>> location = tempfile.mkdtemp()
            >>> def words(scope):
            ...     lines, stream = scope.new_input()
            ...     return {"lines": lines, "counts": stream.flat_map(str.split).value_counts()}
            >>> with ps.Interactive.open(location) as session:
            ...     flow = session.dataflow(words)
            ...     flow.lines.send("to be")
            >>> with ps.Interactive.open(location) as session:
            ...     flow = session.dataflows["words"]
            ...     flow.lines.send("or not to be")
            ...     flow.lines.advance_to(1)
            ...     flow.counts.read()
            [(0, [('be', 2), ('not', 1), ('or', 1), ('to', 2)])]
        """
        checkpoint = location if isinstance(location, Checkpoint) else Checkpoint(location)
        if config is None:
            config = Config(workers=workers)
        elif workers != 1:
            raise ConfigError(both_given(workers))
        if config.checkpoint is not None:
            raise ConfigError(
                "give the location to open(), or the class a config with a checkpoint, not both"
            )
        config = dataclasses.replace(config, checkpoint=checkpoint)
        return cls(processes=processes, config=config, timeout=timeout, functions=functions)

    @property
    def dataflows(self) -> dict[str, Live]:
        """The open dataflows by name, where the session makes checkpoints. They stay until they are closed.

        Raises:
            CheckpointError: If the session makes none: then nothing holds dataflows but the program.
        """
        self._cluster()
        self._check_recorded()
        self._named = {name: live for name, live in self._named.items() if not live.closed}
        return dict(self._named)

    def checkpoint(self, timeout: float | None = None) -> None:
        """Makes a checkpoint, which has all that was sent before, and waits for it.

        Args:
            timeout: Seconds to wait at most; None for the session's timeout.

        Raises:
            CheckpointError: If the session makes none, or none could be made.
            StallError: When it is not made in time. It is made later.

        Examples:
            >>> import tempfile
            >>> import pointstamp as ps
            >>> with ps.Interactive.open(tempfile.mkdtemp()) as session:
            ...     session.checkpoint()
        """
        from pointstamp.runtime.interactive.flow import result_of

        cluster = self._cluster()
        self._check_recorded()
        result_of(cluster, cluster.ask("reach"), "what was sent before a checkpoint", timeout)
        result_of(cluster, cluster.ask("checkpoint", worker=0), "a checkpoint", timeout)

    def _check_recorded(self) -> None:
        if self._config.checkpoint is None:
            raise CheckpointError(
                "this session makes no checkpoints: make it with pointstamp.Interactive.open('state/')"
            )

    def _cluster(self) -> SessionWorkers:
        """Returns the workers; new ones, where the previous ones have ended."""
        self._check_open()
        from pointstamp.runtime.interactive.cluster import FORCE, SessionWorkers  # with all that it imports

        if not self._running or self._running[-1].over:
            shared = self._config.dashboard is not None or self._config.log is not None
            for old in [old for old in self._running if not old.gone]:
                if not old.wait(FORCE if shared else 0) and shared:
                    raise PointstampError(
                        "the workers of before still run the program's own code, and hold the page's port or "
                        "the files of the log: call again when that has returned"
                    )
            ended = [old for old in self._running if old.gone]
            self._running[:] = [old for old in self._running if not old.gone]
            self._running.append(SessionWorkers(self._config, self._processes, self._timeout))
            _tell_unreported(ended)
            if self._config.checkpoint is not None:
                self._go_on(self._running[-1])
        return self._running[-1]

    def _check_open(self) -> None:
        if not self._ends.alive:
            raise ConfigError("this session is closed: make another one with pointstamp.Interactive(...)")

    def dataflow(self, build: Callable[..., Any], *, name: str | None = None, dims: int = 1) -> Live:
        """Builds a dataflow on every worker: ``flow = session.dataflow(build)``, or ``@session.dataflow``.

        Args:
            build: Called with the scope on each worker. It returns the objects to use from here: inputs,
                streams, collections, probes; one, a tuple, or a `dict` with names for them.
            name: The dataflow's name; left out, the function's.
            dims: The number of coordinates of its timestamps.

        Raises:
            BaseException: An exception of `build` on a worker; then none has the dataflow.

        Examples:
            >>> import pointstamp as ps
            >>> session = ps.Interactive()
            >>> @session.dataflow
            ... def doubles(scope):
            ...     numbers, stream = scope.new_input()
            ...     return {"numbers": numbers, "doubled": stream.map(lambda n: 2 * n)}
            >>> doubles.numbers.send(4)
            >>> doubles.numbers.advance_to(1)
            >>> doubles.doubled.read()
            [(0, [8])]
            >>> session.close()
        """
        main_of("Interactive.dataflow", build)
        cluster = self._cluster()
        if name is None:
            name = getattr(build, "__name__", "Dataflow")
        stored = None
        if cluster.recorded:
            if (there := self._named.get(name)) is not None and not there.closed:
                raise GraphError(
                    f"the session has a dataflow {name!r}, and checkpoints have dataflows by name: use "
                    f"session.dataflows[{name!r}], close() it first, or give this one another name="
                )
            stored = pack(build)
        live = self._built_by(cluster, build, name, dims, stored)
        self._replaces(build, live._flow)
        return live

    def sql(self, query: str, /, **tables: Any) -> LiveQuery:
        """Builds a dataflow of a query, whose result follows its tables.

        Args:
            query: One SELECT, or a combination of such, in DuckDB's dialect.
            tables: The tables that it reads, by name: the rows that they have first, as a table or record
                batch of pyarrow or a data frame of pandas or Polars, or a schema of pyarrow for none.

        Raises:
            GraphError: If the query is not covered, or names what is not there; with the place in its text.
            ImportError: Without sqlglot, which the extra ``pointstamp[sql]`` installs.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> orders = pa.table({"item": ["tea", "rye"], "price": [3, 5]})
            >>> with ps.Interactive() as session:
            ...     dear = session.sql("SELECT item FROM orders WHERE price > 3", orders=orders)
            ...     dear.table().to_pylist()
            [{'item': 'rye'}]
        """
        from pointstamp.runtime.interactive.queries import LiveQuery, Prepared

        ready = Prepared(query, tables, shown=self._config.dashboard is not None)
        return LiveQuery(self.dataflow(ready.build, name=" ".join(query.split())), ready)

    def _built_by(
        self, cluster: SessionWorkers, build: Callable[..., Any], name: str, dims: int, stored: Any
    ) -> Live:
        """Builds a dataflow, of which checkpoints have `stored`."""
        from pointstamp.runtime.interactive.flow import Flow, result_of
        from pointstamp.runtime.interactive.handles import Live

        number = next(self._numbers)
        packed = cluster.pack(build)
        building = None
        # An interruption may come when the workers have received, or executed, all of it.
        try:
            building = cluster.ask("build", number, packed, name, dims)
            reached = result_of(cluster, building, f"building {name!r}", None)[0]
            installing = cluster.ask("install", number, stored)
            graph, places = result_of(cluster, installing, f"building {name!r}", None)[0]
            flow = Flow(cluster, number, name, places)
            live = Live(flow, reached, graph)
            if stored is not None:
                self._named[name] = live
            return live
        except BaseException:
            if not cluster.over:
                cluster.post("discard", number, wait=False)
                if building is not None:
                    self._comes_back(cluster, building)
            raise

    def _go_on(self, cluster: SessionWorkers) -> None:
        """Builds the dataflows of the checkpoint from which the workers resume.

        Raises:
            CheckpointError: If one cannot be built.
        """
        from pointstamp.runtime.interactive.flow import result_of

        self._named.clear()
        try:
            answers = result_of(cluster, cluster.ask("restored"), "the checkpoint", None)
            built = {each.number: each for restored, _, _ in answers for each in restored}
            _, begun, live = answers[0]
            for number in live:
                if number not in built and number != 0:
                    raise CheckpointError(
                        f"the checkpoint has dataflow {number}, which a function of session.run() built: "
                        "sessions that make checkpoints store the functions of session.dataflow() only. Go "
                        "on from an earlier checkpoint, with Checkpoint(at=)"
                    )
            for number in range(1, begun):
                if number not in built:
                    result_of(cluster, cluster.ask("pass_over"), "the checkpoint", None)
                    continue
                self._build_again(cluster, built[number])
        except BaseException as error:
            if cluster.failure is error:
                raise
            cluster.end(f"the session could not be opened: {error}", abandons=True)
            cluster.close()
            raise

    def _build_again(self, cluster: SessionWorkers, built: Built) -> None:
        from pointstamp.runtime.interactive.flow import result_of

        name, stored = built.name, built.function
        build = self._instead.get(name)
        if build is None:
            build = _found(name, stored)
        else:
            stored = pack(build)
        live = self._built_by(cluster, build, name, built.dims, stored)
        [standing, *_] = result_of(cluster, live._flow.ask("standing"), f"building {name!r}", None)
        for each, (time, closed) in standing.items():
            live.inputs[each]._resume(time, closed)

    def _replaces(self, build: Callable[..., Any], flow: Flow) -> None:
        """Notes the newest dataflow of a function that has been defined again, as cells do."""
        if not isinstance(build, FunctionType) or "<" in build.__qualname__:
            return  # functions in functions differ from call to call
        self._built = {key: entry for key, entry in self._built.items() if entry[1]}
        key = (build.__module__, build.__qualname__, flow.name)
        definition, flows = self._built.get(key, (None, None))
        if flows is None or definition is None or definition() is not build:
            for old in list(flows or ()):
                old.replaced()
            flows = weakref.WeakSet()
            self._built[key] = weakref.ref(build), flows
        flows.add(flow)

    def run(self, function: Callable[..., Any], *arguments: Any, timeout: float | None = None) -> list[Any]:
        """Calls ``function(worker, *arguments)`` on every worker; returns the results, in their order.

        Other dataflows of the session run on while it steps the worker.

        Raises:
            StallError: When it is not over after so many seconds; it continues.
            BaseException: An exception on a worker.

        Examples:
            >>> import pointstamp as ps
            >>> with ps.Interactive(workers=2) as session:
            ...     session.run(lambda worker, n: worker.index + n, 10)
            [10, 11]
        """
        from pointstamp.runtime.interactive.flow import result_of

        main_of("Interactive.run", function)
        cluster = self._cluster()
        running = cluster.ask("run", cluster.pack(function), arguments)
        try:
            return result_of(cluster, running, f"{function!r}", timeout)
        except KeyboardInterrupt:
            self._comes_back(cluster, running)
            raise

    def _comes_back(self, cluster: SessionWorkers, running: Any) -> None:
        """Waits a while for a function of a cell that was interrupted; else ends the workers."""
        with suppress(BaseException):
            running.exception(PATIENCE)
        if not running.done():
            cluster.end(INTERRUPTED)
            cluster.interrupt()

    def explain(self) -> str:
        """Explains why the workers wait: the holders of times, and the remedies.

        Examples:
            >>> import pointstamp as ps
            >>> with ps.Interactive() as session:
            ...     flow = session.dataflow(lambda scope: scope.new_input())
            ...     print(session.explain().splitlines()[0])
            What the dataflows wait for:
        """
        return self._cluster().explain()

    def restart(self) -> None:
        """Ends the workers with all dataflows, whatever they do, and starts new ones.

        A session that makes checkpoints resumes from the last one, with its dataflows; earlier handles are
        closed. The workers have a second for a checkpoint before they end.

        Workers that native code holds are waited for at most 2 seconds, and end when that returns; for 5
        seconds more where the configuration has a dashboard or a log, which two computations cannot share.

        Warns:
            UsageWarning: As `close`.

        Raises:
            PointstampError: If the old workers hold the port of the dashboard or the files of the log.

        Examples:
            >>> import pointstamp as ps
            >>> with ps.Interactive() as session:
            ...     flow = session.dataflow(lambda scope: scope.new_input())
            ...     session.restart()
            ...     flow.closed
            True
        """
        self._check_open()
        _close(self._running, RESTARTED, PATIENCE)
        self._cluster()

    def close(self) -> None:
        """Ends the workers with all dataflows. Closing it twice does nothing.

        A session that makes checkpoints makes a last one, and waits for that.

        Raises:
            CheckpointError: If the last checkpoint could not be made. The session is closed all the same.

        Warns:
            UsageWarning: If commands were refused, or an operator has failed, and no call has raised that.

        Examples:
            >>> import pointstamp as ps
            >>> session = ps.Interactive()
            >>> session.close()
            >>> session.closed
            True
        """
        if self._ends.detach() is not None:
            if self._config.checkpoint is None:
                _close(self._running, CLOSED)
                return
            clusters = list(self._running)
            _close(self._running, CLOSED, leave=None)
            for cluster in clusters:
                if cluster.unrecorded is not None:
                    raise cluster.unrecorded

    @property
    def closed(self) -> bool:
        """Whether the session was closed."""
        return not self._ends.alive

    def __enter__(self) -> Interactive:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.closed:
            return "<Interactive session (closed)>"
        workers = self._config.workers
        where = f"{workers} worker{'s' if workers > 1 else ''}"
        if self._processes is not None:
            where += f" in each of {self._processes} processes"
        return f"<Interactive session: {where}>"


def _found(name: str, stored: tuple[bytes, dict[str, bytes]]) -> Callable[..., Any]:
    """Returns the function that built a dataflow.

    Raises:
        CheckpointError: If it is not found.
    """
    try:
        return unpack(*stored, replaces=False)
    except Exception as error:
        raise CheckpointError(
            f"the function that built dataflow {name!r} cannot be loaded: {type(error).__name__}: {error}. "
            "Make its module importable, as it was; or give the function, with "
            f"pointstamp.Interactive.open(location, functions={{{name!r}: function}})"
        ) from error


def _close(
    running: list[SessionWorkers], why: str, force: float | None = None, leave: float | None = 1.0
) -> None:
    clusters = list(running)
    for cluster in clusters:
        cluster.end(why)
    running[:] = [cluster for cluster in clusters if not cluster.close(force, leave)]
    _tell_unreported(clusters)


def _tell_unreported(clusters: list[SessionWorkers]) -> None:
    """Warns of errors of workers that no call has raised, and none will."""
    errors = [error for cluster in clusters for error in cluster.unreported()]
    if errors:
        warn_usage(
            f"the session's workers have ended, with errors that no call has raised: {in_short(errors)}"
        )
