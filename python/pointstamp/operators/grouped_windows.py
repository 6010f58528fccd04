"""`ArrowStream.window` with functions that need all rows of a key: first, last, list, nunique, quantiles.

The rows of each window are kept on the worker of their key, and grouped by pyarrow when it closes; a row of
windows that overlap is kept once for each. One capability is held, at or before the last instant of the
first window that is open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp import _core
from pointstamp._core import PactKind
from pointstamp._errors import GraphError
from pointstamp.operators.grouped import aggregation

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from pointstamp._core import Capability, FrontieredInput, OutputPort
    from pointstamp.scope import Scope

__all__ = ["grouped_windows"]

_BOUNDS = ("window_start", "window_end")


def grouped_windows(
    scope: Scope,
    rows: _core.Stream,
    schema: pa.Schema,
    by: list[str],
    wanted: list[tuple[str, str]],
    at: int,
    layout: tuple[int, int, int],
) -> tuple[_core.Stream, _core.Schema]:
    """The aggregations of each key and window, and their schema.

    Args:
        scope: Where it is.
        rows: In batches of mixed times, at a time that is not after any of them.
        schema: Theirs.
        by: The key's columns.
        wanted: Columns with their functions.
        at: The column of times.
        layout: A window's length, how far apart windows are, and where one begins.

    Raises:
        GraphError: If there is no such column, a function is not defined for it, or the result has a column
            of a bound's name already.
    """
    windows = _Windows(schema, by, wanted, at, layout)
    columns = _core.Schema(windows.schema)
    core = scope.core.operator("window")
    keys = [schema.get_field_index(name) for name in by]
    port = core.new_frontiered_input(rows, PactKind.EXCHANGE_COLUMNS, keys)
    output, made, capability = core.new_output(columns)
    capability.drop()
    core.build(windows.run, (port, output), True, False)
    return made, columns


class _Windows:
    """The open windows, by their starts."""

    def __init__(
        self,
        schema: pa.Schema,
        by: list[str],
        wanted: list[tuple[str, str]],
        at: int,
        layout: tuple[int, int, int],
    ) -> None:
        import pyarrow as pa

        self._aggregate = aggregation(schema, by, wanted)
        self._keys = len(by)
        self._at = at
        self._type = schema.field(at).type
        self._length, self._every, offset = layout
        self._base = offset % self._every - self._every  # where one begins that is before every time
        self._open: dict[int, list[pa.RecordBatch]] = {}
        self._held: Capability | None = None
        self._stands = 0
        self.schema = self._closed(0, [pa.RecordBatch.from_pylist([], schema)]).schema
        for bound in _BOUNDS:
            if self.schema.names.count(bound) > 1:
                raise GraphError(f"the result has a column '{bound}' already: rename yours")

    def run(self, port: FrontieredInput[Any], output: OutputPort[Any]) -> None:
        """Keeps what has come, and sends what has closed."""
        for message, batch in port:
            for start, part in self._parts(batch):
                self._open.setdefault(start, []).append(part)
            time: Any = message.time
            if self._held is None or time < self._stands:
                self._held, self._stands = message.retain(), time
        if self._held is None:
            return
        frontier: list[Any] = port.frontier.elements
        for start in sorted(self._open):
            end = start + self._length
            if frontier and frontier[0] < end:
                self._stands = max(self._stands, end - 1)
                self._held.downgrade(self._stands)
                return
            with self._held.delayed(end - 1) as capability, output.session(capability) as session:
                session.give(self._closed(start, self._open.pop(start)))
        self._held.drop()
        self._held = None

    def _parts(self, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows of each window, with its start."""
        import pyarrow as pa
        import pyarrow.compute as pc

        times: Any = batch.column(self._at)
        if pa.types.is_date32(times.type):
            times = times.cast(pa.int32())
        times = times.cast(pa.int64())
        steps = pc.divide(pc.subtract(times, self._base), self._every)
        latest = pc.add(pc.multiply(steps, self._every), self._base)
        for earlier in range(0, self._length, self._every):
            starts: Any = pc.subtract(latest, earlier)
            holds = pc.greater(pc.add(starts, self._length), times)
            for start in pc.unique(starts.filter(holds)).to_pylist():
                yield start, batch.filter(pc.and_(holds, pc.equal(starts, start)))

    def _closed(self, start: int, batches: list[pa.RecordBatch]) -> pa.Table:
        import pyarrow as pa

        made = self._aggregate(pa.Table.from_batches(batches))
        narrow = pa.int32() if pa.types.is_date32(self._type) else pa.int64()
        for place, (name, time) in enumerate(zip(_BOUNDS, (start, start + self._length), strict=True)):
            column = pa.array([time] * made.num_rows, narrow).cast(self._type)
            field = pa.field(name, self._type, nullable=False)
            made = made.add_column(self._keys + place, field, column)
        return made
