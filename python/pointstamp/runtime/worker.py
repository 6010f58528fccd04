"""A worker, as a program's `main` sees it: it builds dataflows and steps them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, overload

from pointstamp._core import InputHandle, ProbeHandle
from pointstamp._validation import suggesting, warn_usage, without_with
from pointstamp.api.scope import Scope
from pointstamp.errors import CheckpointError, GraphError, StallError
from pointstamp.info import Traffic
from pointstamp.observability.stalls import explained, interrupted, probes_of, say_forgotten, waits_for_probes
from pointstamp.pacts import Broadcast, Exchange
from pointstamp.plan import shape
from pointstamp.runtime.threads import raise_deferred

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from types import TracebackType

    from pointstamp import _core
    from pointstamp._core import Capability
    from pointstamp.api.arrow_stream import ArrowStream
    from pointstamp.capture import Capture
    from pointstamp.checkpoint import CheckpointHandle, Resumed
    from pointstamp.info import OperatorInfo
    from pointstamp.observability.collector import Collector
    from pointstamp.observability.explanation import Explanation
    from pointstamp.observability.log_stream import Log, Logs
    from pointstamp.types import Time

__all__ = ["Sequencer", "Worker"]

T = TypeVar("T")


@suggesting
class Worker:
    """One of the workers that run a computation. `execute` makes it and passes it to `main`.

    Attributes:
        index: Its number, from 0.
        peers: The number of workers in all processes.

    Examples:
        >>> import pointstamp as ps
        >>> ps.execute(lambda worker: (worker.index, worker.peers), workers=2)
        [(0, 2), (1, 2)]
    """

    __slots__ = ("_checkpoints", "_collector", "_continuing", "_engine", "_logs", "index", "peers")

    index: int
    peers: int

    def __init__(self, core: _core.Worker, collector: Collector, checkpoints: Path | None = None) -> None:
        self._engine = core
        self._checkpoints = checkpoints
        self._collector = collector
        self._logs: Logs | None = None
        # The inputs of all dataflows that send new records when the run resumes, and not earlier ones again.
        self._continuing: list[str] = []
        self.index = core.index
        self.peers = core.peers

    def dataflow(self, name: str = "Dataflow", *, dims: int = 1) -> _Building:
        """Builds a dataflow: ``with worker.dataflow() as scope:``.

        It is installed when the block ends, and discarded when the block raises. Every worker must build the
        same graph; workers that differ are found out at installation.

        Args:
            name: For messages.
            dims: The number of coordinates of its timestamps.

        Raises:
            GraphError: At the end of the block, if the graph cannot run or another worker's differs.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow("squares") as scope:
            ...         squares = scope.to_stream(range(3)).map(lambda x: x * x).capture()
            ...     worker.run()
            ...     return squares.extract()
            >>> ps.execute(main)
            [[(0, [0, 1, 4])]]
        """
        if dims < 0:
            raise GraphError(f"a dataflow's times cannot have {dims} coordinates: dims is 0 or more")
        return _Building(self._engine, name, dims, self._checkpoints, self._continuing)

    def step(self) -> bool:
        """Runs every operator that has something to do once.

        Returns:
            False once no dataflow is left.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         probe = scope.to_stream(range(3)).inspect(print).probe()
            ...     while not probe.done():
            ...         worker.step()
            >>> ps.execute(main) and None
            0
            1
            2
        """
        return self._engine.step()

    def step_or_park(self, timeout: float | None = None) -> bool:
        """Steps; where there is nothing to do, sleeps first until there is.

        Args:
            timeout: The maximum number of seconds to sleep; None waits for an event.

        Returns:
            False once no dataflow is left.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         probe = scope.to_stream(range(3)).probe()
            ...     while worker.step_or_park(timeout=1.0):
            ...         pass
            ...     return probe.done()
            >>> ps.execute(main)
            [True]
        """
        return self._engine.step_or_park(timeout)

    def step_while(self, condition: Callable[[], bool], *, timeout: float | None = None) -> None:
        """Steps while the condition holds and a dataflow is left; sleeps while idle, and never spins.

        Args:
            condition: Called before each step.
            timeout: The maximum number of seconds; None for as long as the condition holds.

        Raises:
            StallError: When the condition still holds after that time. The message has the reason: the input,
                operator or worker that holds a time, since when, and the remedy.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         numbers, stream = scope.new_input()
            ...         probe = stream.inspect(lambda n: print("seen:", n)).probe()
            ...     for time in range(2):
            ...         numbers.send(time)
            ...         numbers.advance_to(time + 1)
            ...         worker.step_while(lambda: probe.less_than(time + 1))
            ...         print("complete:", time)
            >>> ps.execute(main) and None
            seen: 0
            complete: 0
            seen: 1
            complete: 1
        """
        try:
            over = self._engine.step_while(condition, timeout, self._lasting(condition))
        except KeyboardInterrupt as error:  # of the condition; one during a sleep has been noted
            interrupted(self._collector, self._engine, error)
            raise
        if not over:
            explanation = explained(self._collector, self._engine, probes_of(condition))
            raise StallError(
                f"the condition of step_while still holds after {timeout:g} s\n{explanation}", explanation
            )

    def explain(self, probe: ProbeHandle, time: Time | None = None) -> Explanation:
        """Explains why a time is still possible at a probe: its holders, their workers, and the remedies.

        All workers are asked, also sleeping ones and those of other processes. A worker that runs the
        program's own code does not answer, and is named with the line that it runs. Call it outside of
        operators.

        Args:
            probe: The probe that waits.
            time: Explains why ``probe.less_than(time)`` holds; by default, the holders of the probe's
                frontier.

        Returns:
            The explanation, whose `str` is for people.

        Raises:
            PointstampError: From inside an operator: its worker answers between two steps.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         numbers, stream = scope.new_input()
            ...         probe = stream.map(lambda x: x + 1).probe()
            ...     numbers.send(1)
            ...     worker.step()
            ...     [cause] = worker.explain(probe, 1).causes
            ...     print(cause.kind, cause.operator, cause.time, cause.way)
            >>> ps.execute(main) and None
            input input 0 ('input', 'map', 'probe')
        """
        return explained(self._collector, self._engine, [(probe, time)])

    def run(self) -> None:
        """Steps until every dataflow is complete. Inputs that are open keep theirs from completing.

        After 10 seconds in which nothing happens, a line on standard error says so if all that is waited for
        are inputs that `main` has left open. `execute` has `stall_report=` for other waits.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         numbers, stream = scope.new_input()
            ...         doubled = stream.map(lambda n: 2 * n).capture()
            ...     numbers.send_batch([1, 2])
            ...     numbers.close()
            ...     worker.run()
            ...     return doubled.extract()
            >>> ps.execute(main)
            [[(0, [2, 4])]]
        """
        if self._logs is not None:
            self._logs.close()
        try:
            self._engine.run(self._lasting(None))
        except KeyboardInterrupt as error:  # of a step; one during a sleep has been noted
            interrupted(self._collector, self._engine, error)
            raise

    def _lasting(self, condition: Callable[[], bool] | None) -> tuple[float, Callable[[], bool]] | None:
        """Returns the seconds after which a wait is examined, and the function that does it.

        Args:
            condition: The condition of `step_while`; None for `run`.
        """
        patience = self._collector.patience
        if patience is None or (condition is not None and not waits_for_probes(condition)):
            return None
        return patience, partial(say_forgotten, self._collector, self._engine, condition)

    def new_log(self, scope: Scope, *, every: float = 0.1, name: str = "log") -> tuple[Log, ArrowStream]:
        """Returns a stream of record batches of this worker's later events, in one of its dataflows.

        `pointstamp.observability.log` describes the columns. Dataflows that were installed before have no
        rows that name their operators. Dataflows that read a log are in none: they would have to read their
        own events for ever. A batch has the events of some `every` seconds; its time counts these.

        The log ends when it was closed, `run` was called, or `main` has returned, and no other dataflow is
        left on this worker.

        Args:
            scope: A scope of a dataflow of this worker, whose times have one coordinate.
            every: The interval in seconds at which events are sent.
            name: The operator's name.

        Returns:
            A handle to close it, and the stream.

        Raises:
            ConfigError: If `every` is not above 0, or pyarrow is not installed.
            GraphError: If the scope's times have another number of coordinates, or checkpoints are made.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow("watches") as scope:
            ...         log, events = worker.new_log(scope)
            ...         rows = events.to_records().filter(lambda row: row["kind"] == "send")
            ...         sent = rows.map(lambda row: row["count"]).capture()
            ...     with worker.dataflow("works") as scope:
            ...         scope.to_stream(range(1000)).map(str).probe()
            ...     worker.run()
            ...     return sum(sum(counts) for _, counts in sent.extract())
            >>> ps.execute(main)
            [2000]
        """
        if self._logs is None:
            from pointstamp.observability.log_stream import Logs

            self._logs = Logs(self._engine)
        return self._logs.add(scope, every, name)

    def installed_dataflows(self) -> list[int]:
        """The numbers of the dataflows that are not complete.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         scope.to_stream(range(3)).probe()
            ...     before = len(worker.installed_dataflows())
            ...     worker.run()
            ...     return before, len(worker.installed_dataflows())
            >>> ps.execute(main)
            [(1, 0)]
        """
        return self._engine.installed_dataflows()

    def drop_dataflow(self, dataflow: int) -> None:
        """Removes a dataflow, complete or not. Every worker must.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         numbers, stream = scope.new_input()
            ...         stream.probe()
            ...     [dataflow] = worker.installed_dataflows()
            ...     worker.drop_dataflow(dataflow)
            ...     return worker.installed_dataflows()
            >>> ps.execute(main)
            [[]]
        """
        self._engine.drop_dataflow(dataflow)
        raise_deferred()  # exceptions at an operator's end

    @property
    def resumed(self) -> Resumed | None:
        """The checkpoint from which this run resumes; None where it starts from the beginning."""
        recording = self._engine.recording
        if recording is None or recording.resumed is None:
            return None
        from datetime import datetime, timezone

        from pointstamp.checkpoint import Resumed

        number, made, workers = recording.resumed
        return Resumed(number, datetime.fromtimestamp(made / 1000, timezone.utc), workers)

    def checkpoint(self, *, stop: bool = False) -> CheckpointHandle:
        """Asks for a checkpoint now, and returns at once. It is made while the worker steps.

        While `main` has yet to build a dataflow of the checkpoint from which the run resumes, that checkpoint
        is the answer: it was made after `main` had come here in the run before.

        Args:
            stop: Ends all workers once the checkpoint is made, without ending sources and inputs: the next
                run takes later records. `main` is left in its next step, and `execute` has None for its
                result.

        Raises:
            CheckpointError: If no checkpoints are made: see `Config`. If `main` has yet to build a dataflow
                of the checkpoint from which the run resumes, and an input sends records that this does not
                have.

        Examples:
            >>> import tempfile
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         numbers, stream = scope.new_input()
            ...         probe = stream.map(lambda n: n + 1).probe()
            ...     numbers.send(1)
            ...     made = worker.checkpoint()
            ...     worker.step_while(lambda: not made.done)
            ...     return made.number > 0
            >>> config = ps.Config(checkpoint=ps.Checkpoint(tempfile.mkdtemp(), every=None))
            >>> ps.execute(main, config=config)
            [True]
        """
        from pointstamp.checkpoint import CheckpointHandle

        recording = self._engine.recording
        if recording is None:
            raise CheckpointError(
                "no checkpoints are made: give execute a config=Config(checkpoint=Checkpoint('state/'))"
            )
        covered = None
        if not stop and recording.resumed is not None and self._engine.unrestored():
            covered = recording.resumed[0]
            if self._continuing:
                raise CheckpointError(
                    f"the run resumes from checkpoint {covered}, which has dataflows that main has yet to "
                    f"build, and records that the input '{self._continuing[0]}' sends now are not in it: "
                    "build all dataflows first, and ask for a checkpoint then"
                )
        return CheckpointHandle(recording, stop=stop, covered=covered)

    def barrier(self) -> None:
        """Returns once every worker has called it as often as this one.

        Examples:
            >>> import pointstamp as ps
            >>> begun = []
            >>> def main(worker):
            ...     begun.append(worker.index)
            ...     worker.barrier()
            ...     return len(begun)
            >>> ps.execute(main, workers=2)
            [2, 2]
        """
        # A dataflow of its own each time: a permanent one would keep `run` from ever returning.
        arrived: InputHandle[Any] = InputHandle()
        probe = ProbeHandle()
        with self.dataflow("Barrier") as scope:
            arrived.to_stream(scope).probe_with(probe)
        arrived.close()
        self.step_while(lambda: not probe.done())

    @overload
    def sequencer(self, *, of: None = None) -> Sequencer[Any]: ...
    @overload
    def sequencer(self, *, of: type[T]) -> Sequencer[T]: ...
    def sequencer(self, *, of: Any = None) -> Sequencer[Any]:
        """One total order, seen by every worker, of the values that any worker pushes; each must make it.

        Args:
            of: The type of the items, as in `Scope.new_input`.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     commands = worker.sequencer(of=str)
            ...     commands.push(f"from worker {worker.index}")
            ...     worker.step_while(lambda: (command := commands.next()) is None or print(command))
            >>> ps.execute(main) and None
            from worker 0
        """
        return Sequencer(self)

    def traffic(self) -> Traffic:
        """Returns the traffic of this process to the others so far; zeros where there are none.

        Examples:
            >>> import pointstamp as ps
            >>> ps.execute(lambda worker: worker.traffic().data_bytes)
            [0]
        """
        return Traffic(*self._engine.traffic())

    def __repr__(self) -> str:
        return f"<Worker {self.index} of {self.peers}>"


class _Building:
    """The block in which a dataflow is built."""

    __slots__ = ("_checkpoints", "_continuing", "_dims", "_ended", "_name", "_scope", "_worker")

    def __init__(
        self, worker: _core.Worker, name: str, dims: int, checkpoints: Path | None, continuing: list[str]
    ) -> None:
        self._worker = worker
        self._checkpoints = checkpoints
        self._continuing = continuing
        self._name = name
        self._dims = dims
        self._scope: Scope | None = None
        self._ended = False  # installed, or given up

    if not TYPE_CHECKING:  # type checkers find out by themselves

        def __getattr__(self, name: str) -> NoReturn:
            without_with("worker.dataflow()", name)

    def __enter__(self) -> Scope:
        if self._scope is not None:
            raise GraphError("this dataflow was built already: call worker.dataflow() again for another")
        self._scope = Scope(self._worker.begin_dataflow(self._name, self._dims), None)
        self._scope._building.checkpoints = self._checkpoints
        self._scope._building.continuing = self._continuing
        return self._scope

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.lower()
            self.install()
        else:
            self.discard()

    def lower(self) -> None:
        """Makes operators of the nodes that the block has appended.

        Raises:
            GraphError: If something is missing, as the other end of a loop: the dataflow is given up.
        """
        assert self._scope is not None
        try:
            self._scope._building.complete()
        except BaseException:
            self.discard()
            raise

    def install(self) -> None:
        """Has the worker run the dataflow from its next step on."""
        assert self._scope is not None
        try:
            described = self._scope._building.described() if self._scope.peers > 1 else []
            self._scope._installed = self._worker.install(self._scope._engine, described)
            if self._worker.recording is not None and self._worker.index == 0:
                self._warn_of_changes()
        except BaseException:
            self._scope._building.end("its dataflow was given up")
            raise
        finally:
            self._ended = True
            self._scope._building.let_go()

    def _warn_of_changes(self) -> None:
        """Warns of operators whose state was made by other functions than those that they have now."""
        changed = self._worker.changed()
        if changed:
            names = ", ".join(repr(identity) for identity in changed)
            warn_usage(
                f"the program has other functions than at the checkpoint in {names}, or other values around "
                "them: the state in the checkpoint is the work of those. Where that is not meant, run the "
                "program of the checkpoint; to begin without its state, give the operators that keep some "
                "another name="
            )

    def discard(self) -> None:
        """Gives the dataflow up; twice does nothing more."""
        assert self._scope is not None
        if not self._ended:
            self._ended = True
            self._scope._building.end("its dataflow was given up")
            try:
                self._scope._building.give_up()
            finally:
                self._worker.discard(self._scope._engine)


@suggesting
class Sequencer(Generic[T]):
    """One total order, seen by every worker, of the values that any worker pushes.

    Worker 0 decides the order and sends it to all. Items arrive while the worker steps; `next` returns them
    one at a time.

    Checkpoints have the order and all items. After a resumption, `main` runs from its beginning: what it
    pushes again is left out, and `next` returns all items from the first, in the same order. The number of
    workers must be the same.

    Examples:
        >>> import pointstamp as ps
        >>> def main(worker):
        ...     sequencer = worker.sequencer()
        ...     sequencer.push(worker.index)
        ...     seen = []
        ...     while len(seen) < worker.peers:
        ...         worker.step_or_park()
        ...         while (item := sequencer.next()) is not None:
        ...             seen.append(item)
        ...     return seen
        >>> first, second = ps.execute(main, workers=2)
        >>> first == second and sorted(first) == [0, 1]
        True
    """

    __slots__ = ("_arrived", "_captured", "_expected", "_input", "_read")

    def __init__(self, worker: Worker) -> None:
        self._input: InputHandle[Any] = InputHandle()
        self._arrived: dict[int, T] = {}
        self._expected = 0
        # With checkpoints: all items, since `main` reads them again after a resumption.
        self._captured: Capture[tuple[int, T]] | None = None
        self._read = 0
        arrived = self._arrived
        with worker.dataflow("Sequencer") as scope:
            numbered = (
                self._input.to_stream(scope)
                .unary(Exchange(_to_worker_zero), "number", _numbering, state=_Order)
                ._forward(shape.BROADCAST, Broadcast(), name="to all")
            )
            if worker._engine.recording is None:
                numbered.inspect(lambda pair: arrived.__setitem__(*pair))
            else:
                self._captured = numbered.capture()

    def push(self, item: T) -> None:
        """Adds an item, which is sent when the worker steps.

        Raises:
            TypeError: If it is None, which from `next` says that nothing has arrived.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     words = worker.sequencer()
            ...     words.push("tick")
            ...     while (word := words.next()) is None:
            ...         worker.step()
            ...     return word
            >>> ps.execute(main)
            ['tick']
        """
        if item is None:
            raise TypeError("a sequencer's item cannot be None: next() returns that when nothing has arrived")
        self._input.send(item)

    def next(self) -> T | None:
        """The next item of the order, or None when it has not arrived yet.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     words = worker.sequencer()
            ...     words.push("tick")
            ...     first = words.next()  # nothing has arrived before the worker steps
            ...     while (word := words.next()) is None:
            ...         worker.step()
            ...     return first, word
            >>> ps.execute(main)
            [(None, 'tick')]
        """
        if self._captured is not None:
            while (event := self._captured._queue.event(self._read)) is not None:
                self._read += 1
                if event[0] is not None:
                    self._arrived.update(event[1])
        if self._expected not in self._arrived:
            return None
        self._expected += 1
        return self._arrived.pop(self._expected - 1)


class _Order:
    """The number of the next item, on worker 0."""

    version = 1

    def __init__(self) -> None:
        self.number = 0

    def snapshot(self) -> list[tuple[str, int]]:
        return [("number", self.number)]

    def restore(self, pairs: Iterable[tuple[str, int]], version: int) -> None:
        self.number = dict(pairs)["number"]


def _numbering(capability: Capability, info: OperatorInfo) -> Callable[[Any, Any], None]:
    capability.drop()
    order: _Order = info.state

    def number(port: Any, output: Any) -> None:
        for held, items in port:
            first = order.number
            order.number += len(items)
            with output.session(held) as session:
                session.give_all(list(zip(range(first, order.number), items, strict=True)))

    return number


def _to_worker_zero(_item: object) -> int:
    return 0
