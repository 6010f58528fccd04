"""A dataflow's outputs: the streams that `build` returned, and their batches as the schema declares them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from pointstamp._core import PactKind
from pointstamp.api.arrow_stream import ArrowStream
from pointstamp.api.stream import Stream
from pointstamp.errors import GraphError
from pointstamp.logic.planned import PlannedOperator
from pointstamp.spark.packing.naming import OUTPUT
from pointstamp.spark.packing.schemas import check, conform

if TYPE_CHECKING:
    from collections.abc import Callable

    from pointstamp.info import OperatorInfo
    from pointstamp.logic.declared_state import Waiting

__all__ = ["ONE", "Declared", "Output", "named", "returned", "undeclared"]

ONE = "output"
"""The name of an output that has none, for messages and as an operator's name."""

_LAST = 2**63 - 1
"""The greatest time that a column of Spark holds."""


def named(name: str, single: bool) -> str:
    """Returns the name of an output for messages."""
    return "the output" if single else f"output '{name}'"


class Output(NamedTuple):
    """One output.

    Attributes:
        name: Its name.
        what: The output's name in messages.
        schema: The schema that was declared.
        time_column: The column for each row's time, after the declared ones; None for none.
    """

    name: str
    what: str
    schema: pa.Schema
    time_column: str | None

    @property
    def rows(self) -> pa.Schema:
        """The schema with the column of times."""
        if self.time_column is None:
            return self.schema
        return self.schema.append(pa.field(self.time_column, pa.int64()))

    def shaped(self, batch: pa.RecordBatch, time: int) -> pa.RecordBatch:
        """A batch of the stream, at a time, as rows of the output.

        Raises:
            ValueError: If a value does not fit the declared type.
            OverflowError: If the time does not fit its column.
        """
        batch = conform(batch, self.schema, self.what)
        if self.time_column is None:
            return batch
        if time > _LAST:
            raise OverflowError(f"{self.what} has a row at time {time}, which a bigint column does not hold")
        times = pa.repeat(pa.scalar(time, pa.int64()), batch.num_rows)
        return pa.RecordBatch.from_arrays([*batch.columns, times], schema=self.rows)


class Declared(NamedTuple):
    """The outputs that were declared.

    Attributes:
        schemas: The schema of each, by name.
        single: Whether there is one, without a name of the user's.
        time_column: The column for the times of their rows, or None.
    """

    schemas: dict[str, pa.Schema]
    single: bool
    time_column: str | None

    def outputs(self) -> list[Output]:
        """Each of them."""
        return [
            Output(name, named(name, self.single), schema, self.time_column)
            for name, schema in self.schemas.items()
        ]

    def sink(
        self,
        built: Any,
        taking: Callable[[int, Output], Callable[[OperatorInfo], Any]],
        keeping: Callable[[int, int], Waiting] | None = None,
    ) -> None:
        """Adds the operators that take the streams of `build`.

        Args:
            built: The result of `build`.
            taking: For the number of an output and itself, the constructor of its operator.
            keeping: For the number of an output and of a worker, the state of its operator; None where no
                checkpoints are made.

        Raises:
            GraphError: As `streams`.
        """
        for number, (output, stream) in enumerate(self.streams(built)):
            core = PlannedOperator(stream.scope, f"{OUTPUT}{output.name}")
            core.new_input(stream._output, (PactKind.PIPELINE, None))
            if keeping is not None:
                core.keeps_waiting(keeping(number, stream.scope.index))
            core.build(core.constructed(taking(number, output)), tuple)

    def streams(self, built: Any) -> list[tuple[Output, ArrowStream]]:
        """Returns each output with its stream, from the result of `build`.

        Raises:
            GraphError: If it returned something else, or other outputs than declared.
        """
        if self.single:
            built = dict.fromkeys(self.schemas, _stream(built, "build"))
        if not isinstance(built, dict):
            raise GraphError(
                f"there are schemas for the outputs {', '.join(self.schemas)}, so build must return a dict "
                f"of ArrowStreams by those names, and returned {built!r}"
            )
        if built.keys() != self.schemas.keys():
            raise GraphError(
                f"build must return the outputs that have a schema, {', '.join(self.schemas)}, and "
                f"returned {', '.join(map(str, built)) or 'none'}"
            )
        streams = returned(built, self.single)
        for output in self.outputs():
            check(streams[output.name].schema, output.schema, output.what)
        return [(output, streams[output.name]) for output in self.outputs()]


def returned(built: dict[str, Any], single: bool) -> dict[str, ArrowStream]:
    """The streams that `build` returned, by name.

    Raises:
        GraphError: If one is something else, or has not left its scope.
    """
    for name, stream in built.items():
        output = named(name, single)
        if not isinstance(stream, ArrowStream):
            raise GraphError(f"{output} of build must be an ArrowStream, and is {stream!r}{_hint(stream)}")
        if stream.scope.parent is not None:
            raise GraphError(
                f"{output} is a stream of the scope '{stream.scope.name}': return the stream after leave()"
            )
    return built


def _stream(built: Any, what: str) -> ArrowStream:
    if not isinstance(built, ArrowStream):
        raise GraphError(f"{what} must return an ArrowStream, and returned {built!r}{_hint(built)}")
    return built


def undeclared(built: Any) -> tuple[dict[str, ArrowStream], bool]:
    """Returns the streams of `build` where no schema was given, by name, and whether there is one alone.

    Raises:
        GraphError: If it returned something else.
    """
    if not isinstance(built, dict):
        return returned({ONE: _stream(built, "build")}, True), True
    if not built:
        raise GraphError("build returned an empty dict: a dataflow in Spark has one output or more")
    return returned(built, False), False


def _hint(built: Any) -> str:
    if not isinstance(built, Stream):
        return ""
    return ": records have no schema, so make it one with to_arrow(schema)"
