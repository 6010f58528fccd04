"""`stream.write`: the operators that bring a stream to a sink, each time on all workers or on none.

Two operators share a worker's `SinkWriter`. The first hands batches over, and prepares a time when nothing of
it can come any more; until then it holds the time. So the second sees the time pass when all workers have
prepared it, and commits; it holds the time until then. Its output carries the times that this worker has
committed, and its frontier says which times are committed everywhere.

With checkpoints, the first operator keeps the batches of times that are not whole: they are its state. A time
that all workers have prepared when a checkpoint is made is committed before, as nothing is in flight then. A
time that was committed after the checkpoint comes again, and the sink skips it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp.errors import CheckpointError, add_note
from pointstamp.logic.pickled_state import dumps
from pointstamp.logic.planned import PlannedOperator, scope_records
from pointstamp.pacts import Pipeline, pact_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pointstamp._core import Capability, FrontieredInput, OutputPort, Piece
    from pointstamp.connectors.protocol import Sink, SinkWriter
    from pointstamp.info import OperatorInfo
    from pointstamp.logic.declared_state import Restored
    from pointstamp.lowering.scope import BuildingScope
    from pointstamp.pacts import Pact
    from pointstamp.plan.node import Output
    from pointstamp.types import Time

__all__ = ["Writing", "writing"]

_VERSION = 1
"""The version of the state in checkpoints."""


class Writing:
    """Both operators of one worker."""

    def __init__(self, name: str, sink: Sink) -> None:
        self._name = name
        self._sink = sink
        self._writer: SinkWriter | None = None
        # With checkpoints: the batches of times that are not whole.
        self._batches: dict[Time, list[Any]] | None = None
        self._open: dict[Time, Capability] = {}
        self._prepared: dict[Time, Capability] = {}

    # ------------------------------------------------------------ checkpoints

    def keep(self, restored: Restored | None) -> None:
        """Keeps the batches of times that are not complete, and restores those of a checkpoint."""
        kept = self._batches = {}
        for piece in [] if restored is None else restored.pieces:
            assert restored is not None
            [unfinished] = restored.loads_versioned(piece, _VERSION)
            for time, batches in unfinished.items():
                if time not in self._open:
                    self._open[time] = restored.capability(0, time)
                kept.setdefault(time, []).extend(batches)

    def taken(self) -> list[Piece]:
        """Returns the state for a checkpoint."""
        return [dumps(self._name, (_VERSION, self._batches))]

    def none_prepared(self) -> list[Piece]:
        """Returns the state of the second operator: nothing, as nothing is in flight."""
        if self._prepared:
            raise CheckpointError(
                f"times of '{self._name}' are prepared and not committed, while nothing is in flight: this "
                "is a defect of pointstamp"
            )
        return []

    # ------------------------------------------------------------ the first: write and prepare

    def build_writing(self, capability: Capability, info: OperatorInfo) -> Callable[..., None]:
        """The constructor of the first operator."""
        capability.drop()
        self._writer = self._sink.open(info.index, info.peers)
        return self._write

    def _write(self, port: FrontieredInput[Any], output: OutputPort[Any]) -> None:
        writer = self._writer
        assert writer is not None
        try:
            for message, batch in port:
                if message.time not in self._open:
                    self._open[message.time] = message.retain()
                if self._batches is None:
                    writer.write(message.time, batch)
                else:
                    self._batches.setdefault(message.time, []).append(batch)
            frontier = port.frontier
            for time in sorted(time for time in self._open if not frontier.less_equal(time)):
                if self._batches is not None:
                    for batch in self._batches.pop(time, []):
                        writer.write(time, batch)
                writer.prepare(time)
                with self._open.pop(time) as capability, output.session(capability) as session:
                    session.give(time)
        except BaseException as error:
            self.fail(error)
            raise

    # ------------------------------------------------------------ the second: commit

    def build_committing(self, capability: Capability, info: OperatorInfo) -> Callable[..., None]:
        """The constructor of the second operator."""
        capability.drop()
        return self._commit

    def _commit(self, port: FrontieredInput[Any], output: OutputPort[Any]) -> None:
        writer = self._writer
        if writer is None:
            return
        try:
            for message, times in port:
                for time in times:
                    self._prepared[time] = message.retain()
            frontier = port.frontier
            passed = sorted(time for time in self._prepared if not frontier.less_equal(time))
            if passed:
                writer.commit_all(passed)
            for time in passed:
                with self._prepared.pop(time) as capability, output.session(capability) as session:
                    session.give(time)
            if not frontier and not self._prepared:
                self._writer = None
                writer.close()
        except BaseException as error:
            self.fail(error)
            raise

    def fail(self, because: BaseException | None = None) -> None:
        """Drops uncommitted records, and closes the writer, whatever it raises.

        Args:
            because: The exception that is being raised; an exception of the writer is noted on it.

        Raises:
            BaseException: The writer's first exception, where nothing else is being raised.
        """
        writer, self._writer = self._writer, None
        end_failed(writer, because)

    def __del__(self) -> None:
        self.fail()


def end_failed(writer: SinkWriter | None, because: BaseException | None) -> None:
    """Drops the uncommitted records of a writer, if there is one, and closes it, whatever it raises.

    Args:
        writer: The writer.
        because: The exception that is being raised; an exception of the writer is noted on it.

    Raises:
        BaseException: The writer's first exception, where nothing else is being raised.
    """
    if writer is None:
        return
    errors: list[BaseException] = []
    for end in (writer.abort, writer.close):
        try:
            end()
        except BaseException as error:
            errors.append(error)
    for other in errors:
        if because is None:
            raise other
        add_note(because, f"and when its sink was to end: {type(other).__name__}: {other}")


def writing(scope: BuildingScope, read: Output, sink: Sink, pact: Pact, name: str) -> Output:
    """Appends the two operators that show each time as it ends."""
    made = Writing(name, sink)
    records = scope_records(scope)

    def add(read: Output, pact: Pact, name: str, *, first: bool) -> Output:
        scope._plan_scope.check_reads(read, name)
        route = pact_of(pact, read, name)
        operator = PlannedOperator(scope, name)
        operator.new_input(read, route)
        port, output, capability = operator.new_output()
        if records:
            restored = operator.restored()
            if first:
                made.keep(restored)
            operator.core.keeps("parts", made.taken if first else made.none_prepared)
        build = made.build_writing if first else made.build_committing
        logic = operator.constructed(build, capability)
        del capability
        operator.build(logic, lambda ports: (*ports, port))
        return output

    prepared = add(read, pact, name, first=True)
    return add(prepared, Pipeline(), f"{name}: commit", first=False)
