"""Streams of Arrow record batches: hashed, moved, aggregated and joined without the GIL.

Batches cross between Rust and Python without copying, by Arrow's PyCapsule interface: pyarrow, Polars,
pandas, DuckDB and whatever else speaks it can send them. pyarrow itself is imported the first time that a
batch or a schema goes to Python: the extra ``arrow`` of the package installs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp import _core
from pointstamp._core import PactKind
from pointstamp._validation import count_of, function_of, probe_of, several, stream_of
from pointstamp.api.classes import stream_of as stream_from
from pointstamp.api.column_arguments import aggregations_of, key_names
from pointstamp.api.columnar import ALL, Columnar
from pointstamp.api.typed import ColumnOperators
from pointstamp.errors import GraphError
from pointstamp.logic.planned import single_output
from pointstamp.logic.reclock import reclock
from pointstamp.pacts import Pipeline
from pointstamp.plan import columns, records, shape
from pointstamp.plan.node import Form, Output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pyarrow as pa

    from pointstamp._core import ProbeHandle
    from pointstamp.api.loops import LoopHandle
    from pointstamp.api.scope import Scope
    from pointstamp.api.stream import Stream
    from pointstamp.plan.node import Kind
    from pointstamp.types import Time

__all__ = ["ArrowStream"]


class ArrowStream(ColumnOperators, Columnar):
    """A stream of Arrow record batches of one schema; moved, hashed and partitioned without the GIL.

    Every method adds a node to the dataflow's plan. Batches are of any size, as the stream carries them:
    large ones are sliced and tiny ones merged. The memory of a batch that was sent must not be changed.

    The inputs of operators of your own (`unary`, ...) yield ``(CapabilityRef, pyarrow.RecordBatch)``, and
    their outputs have this stream's schema unless a `schema` says otherwise; None makes a `Stream` of
    records.

    Attributes:
        scope: The scope that the stream is in.

    Examples:
        >>> import pyarrow as pa
        >>> import pointstamp as ps
        >>> def main(worker):
        ...     table = pa.table({"city": ["Ulm", "Bonn", "Ulm"], "rain": [3.0, 1.0, None]})
        ...     rain = ps.ArrowInput(table.schema)
        ...     with worker.dataflow() as scope:
        ...         totals = rain.to_stream(scope).aggregate("city", [("rain", "sum")]).capture()
        ...     rain.send(table)
        ...     rain.close()
        ...     worker.run()
        ...     return totals.extract()
        >>> [[(time, [totals])]] = ps.execute(main)
        >>> totals.to_pylist()
        [{'city': 'Ulm', 'rain_sum': 3.0}, {'city': 'Bonn', 'rain_sum': 1.0}]
    """

    __slots__ = ()

    # ------------------------------------------------------------ columns

    def map_batches(
        self,
        fn: Callable[[pa.RecordBatch], pa.RecordBatch | Iterable[pa.RecordBatch]],
        schema: pa.Schema | None = None,
        *,
        name: str | None = None,
    ) -> ArrowStream:
        """Each batch through a function.

        Args:
            fn: Returns a batch, a table, or an iterable of them; from any library that speaks Arrow.
            schema: Of what it returns. Left out, it is this stream's.
            name: For messages.

        Raises:
            TypeError: When the dataflow runs, for a result of another schema, naming the fields that differ.

        Examples:
            >>> import pyarrow as pa, pyarrow.compute as pc
            >>> import pointstamp as ps
            >>> schema = pa.schema([("n", pa.int64())])
            >>> def build(scope):
            ...     numbers = scope.to_stream([{"n": 1}, {"n": 2}]).to_arrow(schema)
            ...     double = lambda batch: batch.set_column(0, "n", pc.multiply(batch["n"], 2))
            ...     return numbers.map_batches(double).to_records().capture()
            >>> ps.example(build).extract()
            [(0, [{'n': 2}, {'n': 4}])]
        """
        made = Output(Form.COLUMNS, self._columns if schema is None else _core.Schema(schema))
        return self._add(columns.MAP_BATCHES, made, name=name, function=function_of("map_batches", fn))

    def inspect_batch(
        self, fn: Callable[[Time, pa.RecordBatch], Any], *, name: str | None = None
    ) -> ArrowStream:
        """Calls a function with the time and each batch, and passes the batches on."""
        function = function_of("inspect_batch", fn)
        return self._add(columns.INSPECT_BATCH, self._output.like(), name=name, function=function)

    def to_records(self, *, name: str | None = None) -> Stream[dict[str, Any]]:
        """Each row as a `dict`, as `pyarrow.RecordBatch.to_pylist` makes it."""
        return self._records(columns.TO_RECORDS, name)

    def _records(self, kind: Kind, name: str | None) -> Stream[Any]:
        """Adds a node that makes records."""
        node = self.scope._append(kind, [self._output], Output(Form.RECORDS), name=name)
        made: Stream[Any] = stream_from(self.scope, node.output)
        return made

    # ------------------------------------------------------------ by key

    def exchange(self, by: str | Sequence[str], *, name: str | None = None) -> ArrowStream:
        """Moves each row to the worker that its key chooses.

        A key goes where `Stream.exchange` sends the same Python value: an integer to worker ``key % peers``,
        a string or null to ``stable_hash(key) % peers``. A key of several columns goes where the tuple does.

        Args:
            by: The key's column, or columns.
            name: The operator's name.

        Raises:
            GraphError: If there is no such column, or it cannot be hashed.
        """
        key = self._columns.key(key_names(by))
        made = Output(Form.COLUMNS, self._columns, placed=key)
        return self._add(columns.EXCHANGE, made, name=name, key=key)

    def partition(self, parts: int, by: str | Sequence[str], *, name: str | None = None) -> list[ArrowStream]:
        """Splits the rows by their key into several streams, on their worker.

        Args:
            parts: How many streams to make.
            by: The key's column, or columns: as in `exchange`, with parts in place of workers.
            name: The operator's name.

        Raises:
            GraphError: If there is no such column, it cannot be hashed, or `parts` is less than 1.
        """
        parts = count_of("partition takes first a number of parts", parts, error=GraphError)
        key = self._columns.key(key_names(by))
        outputs = [self._output.like() for _ in range(parts)]
        self.scope._append(columns.PARTITION, [self._output], *outputs, name=name, key=key)
        return [self._of(output) for output in outputs]

    def aggregate(
        self, by: str | Sequence[str], aggregations: Sequence[tuple[str, str]], *, name: str | None = None
    ) -> ArrowStream:
        """Per time and key, exchanged by key, sent when the time closes.

        Names, types and rules are those of pyarrow's `group_by`: nulls are skipped, a null is a key like any
        other. Unlike pyarrow's, sums do not wrap: those of integers have 64 bits, those of decimals 38 or 76
        digits, and one that does not fit is an error.

        Args:
            by: The key's column, or columns; none of them, ``[]``, takes all rows together.
            aggregations: ``(column, function)`` pairs; a function is ``"sum"``, ``"count"``, ``"min"``,
                ``"max"`` or ``"mean"``, and its column is named ``"column_function"``. With ``"first"``,
                ``"last"``, ``"list"``, ``"nunique"``, ``"top_3"`` (of any number, the greatest first),
                ``"median"`` or ``"quantile_0.9"`` (of any share, between two values as far along as the
                share says), a time's values are kept until it closes; first and last are of arrival.
            name: The operator's name.

        Raises:
            GraphError: If there is no such column or function, or the function is not defined for the column.
            OverflowError: When the dataflow runs, for a sum that its type cannot hold; it names the column
                and the key. Whether it fits does not depend on the order of the rows.
        """
        wanted, keys = aggregations_of(aggregations), key_names(by)
        if not keys:
            together = self._with_one_key(name)
            whole = together.aggregate(ALL, wanted, name=name)
            return whole._without_one_key(name)
        key = self._columns.key(keys)
        schema = _core.aggregate_schema(self._columns, keys, wanted)
        made = Output(Form.COLUMNS, schema, placed=range(len(key)))
        return self._add(columns.AGGREGATE, made, name=name, by=keys, key=key, aggregations=wanted)

    def distinct(self, by: str | Sequence[str] | None = None, *, name: str | None = None) -> ArrowStream:
        """One row of each key per time, sent when it is first seen; exchanged by key.

        Of a key's rows at a time it is the first that arrives. What has been seen is forgotten when the time
        closes: for a loop that ends when nothing is new, there is `distinct_so_far`.

        Args:
            by: The key's column, or columns; None takes them all.
            name: The operator's name.

        Raises:
            GraphError: If there is no such column, or it cannot be hashed.
        """
        return self._one_of_each(columns.DISTINCT, by, name)

    def distinct_so_far(
        self, by: str | Sequence[str] | None = None, *, name: str | None = None
    ) -> ArrowStream:
        """One row of each key at the first time that has one; exchanged by key. Keys are kept for good.

        At every time, the keys sent at or before it are those that have come at or before it. In a loop times
        are partially ordered, and a key is sent at each of its least times: one that epoch 0 has in round 5
        is sent again when epoch 1 has it in round 2, for round 2 of epoch 1 is not after round 5 of epoch 0.

        Rows wait until nothing before their time can come, so that what a time has does not depend on
        what arrived first: a round of a loop waits for the round before it.

        Args:
            by: The key's column, or columns; None takes them all.
            name: The operator's name.

        Raises:
            GraphError: If there is no such column, or it cannot be hashed.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> schema = pa.schema([("n", pa.int64())])
            >>> def build(scope):
            ...     numbers = scope.to_stream([3, 1, 3, 2]).delay(lambda n, time: n % 2)
            ...     rows = numbers.map(lambda n: {"n": n // 2}).to_arrow(schema)
            ...     return rows.distinct_so_far().to_records().capture()
            >>> ps.example(build).extract()
            [(0, [{'n': 1}]), (1, [{'n': 0}])]
        """
        return self._one_of_each(columns.DISTINCT_SO_FAR, by, name)

    def _one_of_each(self, kind: Kind, by: str | Sequence[str] | None, name: str | None) -> ArrowStream:
        key = self._columns.key(key_names(by) if by is not None else self.schema.names)
        made = Output(Form.COLUMNS, self._columns, placed=key)
        return self._add(kind, made, name=name, key=key, in_place=self._output.placed == key)

    def join(
        self, other: ArrowStream, on: str | Sequence[str], *, suffix: str = "_right", name: str | None = None
    ) -> ArrowStream:
        """Pairs of rows of both streams with equal keys: the inner join.

        Both sides are kept: a pair comes out as soon as both of its rows have arrived, at the least time
        that is not before either's. Null keys match nothing.

        Args:
            other: The right side.
            on: The key's column, or columns, on both sides.
            suffix: Added to names of the right side that the left side has, too. The right side's key
                columns are left out.
            name: The operator's name.

        Raises:
            GraphError: If there is no such column, it cannot be hashed, its type differs between the sides,
                or the result would have two columns of one name.
        """
        if not isinstance(other, ArrowStream):
            raise TypeError(f"an ArrowStream joins another ArrowStream, not {other!r}")
        by = key_names(on)
        ours, theirs = self._output, other._output
        in_place = (ours.placed == self._columns.key(by), theirs.placed == other._columns.key(by))
        schema, key = _core.join_schema(self._columns, other._columns, by, suffix)
        node = self.scope._append(
            columns.JOIN,
            [ours, theirs],
            Output(Form.COLUMNS, schema, placed=key),
            name=name,
            by=by,
            suffix=suffix,
            in_place=in_place,
        )
        return self._of(node.output)

    def count(self, *, name: str | None = None) -> Stream[int]:
        """Counts the rows of each time on this worker; sent when the time closes."""
        return self._records(records.COUNT, name)

    # ------------------------------------------------------------ shape

    def concat(self, *others: ArrowStream, name: str | None = None) -> ArrowStream:
        """The rows of this stream and the others, which have its schema.

        Where all are from `event_time`, of one column, so is what they are together.

        Raises:
            GraphError: If another schema differs; it names the fields.
        """
        for other in others:
            if not isinstance(other, ArrowStream):
                raise TypeError(f"an ArrowStream is concatenated with other ArrowStreams, not {other!r}")
            check_same(self._columns, other._columns, "concat")
        outputs = [stream._output for stream in (self, *others)]
        together = _together(outputs)
        reads = [output.read_as(together.form) for output in outputs]
        return self._of(self.scope._append(shape.CONCATENATE, reads, together, name=name).output)

    def branch_when(
        self, condition: Callable[[Time], bool], *, name: str | None = None
    ) -> tuple[ArrowStream, ArrowStream]:
        """Splits the stream by a condition on the time: (false, true)."""
        function = function_of("branch_when", condition)
        outputs = (self._output.like(), self._output.like())
        self.scope._append(columns.BRANCH_WHEN, [self._output], *outputs, name=name, function=function)
        no, yes = map(self._of, outputs)
        return several("branch_when", "no, yes", (no, yes))

    def broadcast(self, *, name: str | None = None) -> ArrowStream:
        """Sends each batch to every worker."""
        made = Output(Form.COLUMNS, self._columns)
        return self._add(shape.BROADCAST, made, name=name, pact=(PactKind.BROADCAST, None))

    # ------------------------------------------------------------ timestamps, scopes and loops

    def reclock(self, clock: Stream[Any] | ArrowStream, *, name: str | None = None) -> ArrowStream:
        """Holds batches until the clock ticks, and sends them at its time; as `Stream.reclock`."""
        made = single_output(
            self.scope,
            name or "reclock",
            [(self._output, Pipeline()), (stream_of("reclock", clock)._output, Pipeline())],
            reclock,
            notify=True,
            retains_forever=True,  # as of `Stream.reclock`
            schema=self._columns,
        )
        return ArrowStream(self.scope, made)

    def delay_batch(self, fn: Callable[[Time], Time], *, name: str | None = None) -> ArrowStream:
        """Moves batches to a time that depends on their own; as `Stream.delay_batch`."""
        function = function_of("delay_batch", fn)
        return self._add(records.DELAY_BATCH, self._output.like(), name=name, function=function)

    def enter(self, scope: Scope) -> ArrowStream:
        """The same batches in a scope inside the stream's; as `Stream.enter`."""
        return ArrowStream(scope, scope._entered(self._output))

    def leave(self) -> ArrowStream:
        """The same batches in the scope around the stream's; as `Stream.leave`."""
        left = self.scope._left(self._output)
        assert self.scope.parent is not None
        return ArrowStream(self.scope.parent, left)

    def connect_loop(self, handle: LoopHandle[pa.RecordBatch]) -> None:
        """Defines a loop variable, which has this stream's schema; as `Stream.connect_loop`.

        Raises:
            GraphError: If the loop variable is connected already, is of another scope, or has another schema.
        """
        handle._connect(self.scope, self._output)

    # ------------------------------------------------------------ observing

    def probe_with(self, handle: ProbeHandle, *, name: str | None = None) -> ArrowStream:
        """Attaches a handle, which may be attached elsewhere, too, and passes the stream on."""
        return self._of(self._probed(probe_of(handle), name))


def _together(outputs: list[Output]) -> Output:
    """An output for the rows of several; at event times, where one column tells those of all."""
    first = outputs[0]
    if {(output.form, output.time_column) for output in outputs} == {(Form.MIXED, first.time_column)}:
        return Output(Form.MIXED, first.schema, time_column=first.time_column)
    told = {output.time_type for output in outputs}
    alike = all(output.placed == first.placed for output in outputs)
    return Output(
        Form.COLUMNS,
        first.schema,
        placed=first.placed if alike else None,
        time_type=told.pop() if len(told) == 1 else None,
    )


def check_same(expected: _core.Schema, given: _core.Schema, operator: str) -> None:
    """Refuses streams of different schemas.

    Raises:
        GraphError: It names the fields that differ.
    """
    difference = expected.difference(given)
    if difference is not None:
        raise GraphError(f"{operator} takes streams of one schema: {difference}")
