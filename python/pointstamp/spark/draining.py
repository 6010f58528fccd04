"""A dataflow's outputs on their way to Spark: operators that fill a bounded queue, and who empties it.

Batches are cast to the declared schema by the worker that has them, and gathered until they are worth a row
of their own. Only whole runs can be seen in the end, so nothing is gained by sending a small batch early.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pointstamp._errors import GraphError
from pointstamp.pacts import Pipeline
from pointstamp.spark.packing import packed
from pointstamp.spark.schemas import check, conform

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pointstamp.arrow import ArrowStream
    from pointstamp.info import OperatorInfo

__all__ = ["Drain", "outputs"]

_BOUND = 32 << 20
"""Bytes of an output that may wait for Spark."""

_ROWS = 1 << 16
"""Rows that are gathered into one batch,"""

_BYTES = 4 << 20
"""or bytes, whichever is more."""

_LAST = 2**63 - 1
"""The greatest time that a column of Spark holds."""


class Stopped(Exception):
    """The task has ended: nobody takes its output any more."""


def outputs(built: Any, declared: dict[str, pa.Schema], single: bool) -> list[ArrowStream]:
    """The streams that `build` returned, in the order of the schemas.

    Raises:
        GraphError: If it returned something else, or they are not those that were declared.
    """
    from pointstamp.arrow import ArrowStream

    if single:
        if not isinstance(built, ArrowStream):
            hint = ": make it one with to_arrow(schema)" if type(built).__name__ == "Stream" else ""
            raise GraphError(f"build must return an ArrowStream, and returned {built!r}{hint}")
        streams = dict.fromkeys(declared, built)
    else:
        if not isinstance(built, dict):
            raise GraphError(
                f"there are schemas for the outputs {', '.join(declared)}, so build must return a dict of "
                f"ArrowStreams by those names, and returned {built!r}"
            )
        if built.keys() != declared.keys():
            raise GraphError(
                f"build must return the outputs that have a schema, {', '.join(declared)}, and returned "
                f"{', '.join(map(str, built)) or 'none'}"
            )
        for name, stream in built.items():
            if not isinstance(stream, ArrowStream):
                raise GraphError(f"output '{name}' of build must be an ArrowStream, and is {stream!r}")
        streams = built
    for name, stream in streams.items():
        what = "the output" if single else f"output '{name}'"
        if stream.scope._parent is not None:
            raise GraphError(f"{what} is a stream of the scope '{stream.scope.name}': return what leaves it")
        check(stream.schema, declared[name], what)
    return [streams[name] for name in declared]


class Drain:
    """The outputs of one task, from all its workers.

    Args:
        declared: The schema of each output, by name.
        single: Whether there is one output, without a name of the user's.
        time_column: The column for each row's time, after the declared ones; None for none.
    """

    def __init__(self, declared: dict[str, pa.Schema], single: bool, time_column: str | None) -> None:
        self._declared = declared
        self._single = single
        self._time_column = time_column
        self._changed = threading.Condition()
        self._queue: deque[tuple[int, pa.RecordBatch]] = deque()
        self._bytes = 0
        self._ended = False
        self._stopped = False

    def connect(self, built: Any) -> None:
        """Adds the operators that take what `build` returned."""
        for number, stream in enumerate(outputs(built, self._declared, self._single)):
            name, schema = list(self._declared.items())[number]
            stream.sink(Pipeline(), f"output {name}", self._sink(number, name, schema))

    def end(self) -> None:
        """Nothing will be put any more."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def stop(self) -> None:
        """Nothing will be taken any more: who puts something is stopped."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Packed batches, until `end`."""
        schemas = list(self._declared.values())
        gathered: list[list[pa.RecordBatch]] = [[] for _ in schemas]
        while (taken := self._get()) is not None:
            number, batch = taken
            waiting = gathered[number]
            waiting.append(batch)
            if sum(b.num_rows for b in waiting) >= _ROWS or sum(b.nbytes for b in waiting) >= _BYTES:
                yield _gathered(number, waiting)
        for number, waiting in enumerate(gathered):
            if waiting:
                yield _gathered(number, waiting)

    def _get(self) -> tuple[int, pa.RecordBatch] | None:
        with self._changed:
            while not self._queue:
                if self._ended:
                    return None
                self._changed.wait()
            number, batch = self._queue.popleft()
            self._bytes -= batch.nbytes
            self._changed.notify_all()
            return number, batch

    def _put(self, number: int, batch: pa.RecordBatch) -> None:
        with self._changed:
            while self._bytes > _BOUND and not self._stopped:
                self._changed.wait()
            if self._stopped:
                raise Stopped
            self._queue.append((number, batch))
            self._bytes += batch.nbytes
            self._changed.notify_all()

    def _sink(
        self, number: int, name: str, schema: pa.Schema
    ) -> Callable[[OperatorInfo], Callable[..., None]]:
        what = "the output" if self._single else f"output '{name}'"

        def build(_info: OperatorInfo) -> Callable[..., None]:
            def take(port: Any) -> None:
                for message, batch in port:
                    if batch.num_rows:
                        self._put(number, self._timed(conform(batch, schema, what), message.time, what))

            return take

        return build

    def _timed(self, batch: pa.RecordBatch, time: int, what: str) -> pa.RecordBatch:
        if self._time_column is None:
            return batch
        if time > _LAST:
            raise OverflowError(f"{what} has a row at time {time}, which a bigint column does not hold")
        times = pa.repeat(pa.scalar(time, pa.int64()), batch.num_rows)
        return pa.RecordBatch.from_arrays(
            [*batch.columns, times],
            schema=batch.schema.append(pa.field(self._time_column, pa.int64())),
        )


def _gathered(number: int, waiting: list[pa.RecordBatch]) -> pa.RecordBatch:
    """One packed batch of several; they are taken off the list."""
    whole = waiting[0] if len(waiting) == 1 else pa.concat_batches(waiting)
    waiting.clear()
    return packed(number, 0, whole)
