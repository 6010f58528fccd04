"""Streams of Arrow record batches: hashed, moved, aggregated and joined without the GIL.

Batches cross between Rust and Python without copying, by Arrow's PyCapsule interface: pyarrow, Polars,
pandas, DuckDB and other libraries with this interface can send them. pyarrow itself is imported the first
time that a batch or a schema goes to Python: the extra ``arrow`` of the package installs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from pointstamp import _core
from pointstamp._core import InputHandle, PactKind
from pointstamp._validation import (
    column_name,
    count_of,
    function_of,
    probe_of,
    several,
    stream_given,
    suggesting,
)
from pointstamp.api.classes import collection_of, stream_of
from pointstamp.api.column_arguments import Aggregates, key_names, part_name
from pointstamp.api.driven_input import DrivenInput
from pointstamp.api.typed import ColumnOperators
from pointstamp.errors import GraphError
from pointstamp.event_time.clock import not_ahead
from pointstamp.event_time.units import ends_of, layout_of, lengths_of, split_columns, unit_of, untold
from pointstamp.expr.batch_functions import checked_columns, checked_condition, filtering, with_columns
from pointstamp.expr.windows import Count, Session
from pointstamp.logic.event_time import event_times
from pointstamp.logic.in_time_columns import Kept, in_time_order, kept_in
from pointstamp.logic.in_time_order import root_only
from pointstamp.logic.join_kinds import check_how, left_or_inner
from pointstamp.logic.planned import single_output
from pointstamp.logic.reclock import Held, reclock
from pointstamp.logic.rows import limited, sorted_per_time
from pointstamp.pacts import Gather, Pipeline
from pointstamp.plan import columns as kinds
from pointstamp.plan import records, shape
from pointstamp.plan.least_time import IN_COLUMNS, never_meet
from pointstamp.plan.node import Form, Output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import timedelta
    from typing import TypeAlias

    import pyarrow as pa

    from pointstamp._core import Aggregate, ProbeHandle
    from pointstamp.api.column_collection import ColumnCollection
    from pointstamp.api.loops import LoopHandle
    from pointstamp.api.scope import Scope
    from pointstamp.api.stream import Stream
    from pointstamp.event_time.units import Unit
    from pointstamp.expr.windows import WindowKind
    from pointstamp.logic.declared_state import Waiting
    from pointstamp.logic.join_kinds import How, OneSided
    from pointstamp.logic.state import KeyedState
    from pointstamp.plan.node import Kind, Node, Read
    from pointstamp.types import Time

    Column: TypeAlias = Any

__all__ = ["ArrowInput", "ArrowStream"]

Terms = tuple[_core.Schema, _core.Schema, list[str], tuple[str, str], _core.How, str, str | None]

ALL = "all rows"
"""A column that is added where rows have no key, so that they have one and the same."""

JOINS = {"inner": _core.How.INNER, "left": _core.How.LEFT, "right": _core.How.RIGHT}
JOINS |= {"full": _core.How.FULL, "semi": _core.How.SEMI, "anti": _core.How.ANTI}
"""The extension's names of the joins of rows of one time."""

OWN_TIME = "own time"
"""The column for the times of rows that have none: no column of a program's own."""


class ArrowStream(ColumnOperators):
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
        ...         totals = rain.to_stream(scope).aggregate("city", rain=ps.col("rain").sum()).capture()
        ...     rain.send(table)
        ...     rain.close()
        ...     worker.run()
        ...     return totals.extract()
        >>> [[(time, [totals])]] = ps.execute(main)
        >>> totals.to_pylist()
        [{'city': 'Ulm', 'rain': 3.0}, {'city': 'Bonn', 'rain': 1.0}]
    """

    __slots__ = ("_output", "scope")

    scope: Scope
    _output: Output

    def __init__(self, scope: Scope, output: Output) -> None:
        self.scope = scope
        self._output = output

    @property
    def schema(self) -> pa.Schema:
        """The schema of the batches."""
        return self._columns.to_pyarrow()

    def __repr__(self) -> str:
        return f"<ArrowStream of {', '.join(self.schema.names)} in {self.scope!r}>"

    @property
    def _columns(self) -> _core.Schema:
        """The schema of the batches, as the extension knows it."""
        assert self._output.schema is not None
        return self._output.schema

    @property
    def _mixed(self) -> Read:
        """The rows as they travel: in batches of mixed times where they are at event times."""
        return self._output.read_as(self._output.form)

    def _of(self, output: Output) -> ArrowStream:
        """A stream of an output that is in the same scope."""
        stream: Any = type(self)(self.scope, output)
        return stream  # type: ignore[no-any-return]

    def _add(self, kind: Kind, output: Output, *, name: str | None, **arguments: Any) -> ArrowStream:
        """Adds a node that reads this stream, and makes another of columns."""
        return self._of(self.scope._append(kind, [self._output], output, name=name, **arguments).output)

    def _add_in_time(self, kind: Kind, sides: list[Read], output: Output, **arguments: Any) -> ArrowStream:
        """Adds a node that reads rows in batches of mixed times."""
        node: Node = self.scope._append(kind, sides, output, **arguments)
        return self._of(node.output)

    def _map_each(
        self,
        kind: Kind,
        function: Callable[[Any], Any],
        schema: _core.Schema,
        *,
        name: str | None,
        changes: Iterable[str] = (),
    ) -> ArrowStream:
        """Each batch through a function that leaves rows at their times.

        `changes` are the columns whose values it may change.
        """
        output, column = self._output, self._output.time_column
        keeps = column is not None and column not in changes and column in schema.to_pyarrow().names
        if keeps and output.form is Form.MIXED:
            made = Output(Form.MIXED, schema, time_column=column)
            return self._add_in_time(kind, [self._mixed], made, name=name, function=function)
        made = Output(Form.COLUMNS, schema, time_type=output.time_type)
        return self._add(kind, made, name=name, function=function)

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
            schema: Of the result. By default, it is this stream's.
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
        return self._add(kinds.MAP_BATCHES, made, name=name, function=function_of("map_batches", fn))

    def inspect_batch(
        self, fn: Callable[[Time, pa.RecordBatch], Any], *, name: str | None = None
    ) -> ArrowStream:
        """Calls a function with the time and each batch, and passes the batches on.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     rain = scope.to_stream(pa.table({"city": ["Ulm", "Bonn"], "mm": [3, 5]}))
            ...     rain.inspect_batch(lambda time, batch: print(time, batch.num_rows))
            >>> ps.example(build)
            0 2
        """
        function = function_of("inspect_batch", fn)
        return self._add(kinds.INSPECT_BATCH, self._output.like(), name=name, function=function)

    def to_records(self, *, name: str | None = None) -> Stream[dict[str, Any]]:
        """Each row as a `dict`, as `pyarrow.RecordBatch.to_pylist` makes it.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> rain = pa.table({"city": ["Ulm", "Bonn"], "mm": [3, 5]})
            >>> ps.example(lambda scope: scope.to_stream(rain).to_records().capture()).extract()
            [(0, [{'city': 'Ulm', 'mm': 3}, {'city': 'Bonn', 'mm': 5}])]
        """
        return self._records(kinds.TO_RECORDS, name)

    def _records(self, kind: Kind, name: str | None) -> Stream[Any]:
        """Adds a node that makes records."""
        node = self.scope._append(kind, [self._output], Output(Form.RECORDS), name=name)
        made: Stream[Any] = stream_of(self.scope, node.output)
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

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> numbers = pa.table({"n": [0, 1, 2, 3]})
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         rows = scope.to_stream(numbers if worker.index == 0 else numbers.slice(0, 0))
            ...         here = rows.exchange("n").to_records().capture()
            ...     worker.run()
            ...     return here.extract()
            >>> ps.execute(main, workers=2)
            [[(0, [{'n': 0}, {'n': 2}])], [(0, [{'n': 1}, {'n': 3}])]]
        """
        key = self._columns.key(key_names(by))
        made = Output(Form.COLUMNS, self._columns, placed=key)
        return self._add(kinds.EXCHANGE, made, name=name, key=key)

    def partition(self, parts: int, by: str | Sequence[str], *, name: str | None = None) -> list[ArrowStream]:
        """Splits the rows by their key into several streams, on their worker.

        Args:
            parts: The number of streams to make.
            by: The key's column, or columns: as in `exchange`, with parts in place of workers.
            name: The operator's name.

        Raises:
            GraphError: If there is no such column, it cannot be hashed, or `parts` is less than 1.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     rows = scope.to_stream(pa.table({"n": [0, 1, 2, 3]}))
            ...     return [part.to_records().capture() for part in rows.partition(2, "n")]
            >>> [captured.extract() for captured in ps.example(build)]
            [[(0, [{'n': 0}, {'n': 2}])], [(0, [{'n': 1}, {'n': 3}])]]
        """
        parts = count_of("partition takes first a number of parts", parts, error=GraphError)
        key = self._columns.key(key_names(by))
        outputs = [self._output.like() for _ in range(parts)]
        self.scope._append(kinds.PARTITION, [self._output], *outputs, name=name, key=key)
        return [self._of(output) for output in outputs]

    def aggregate(
        self, by: str | Sequence[str], *, name: str | None = None, **exprs: Aggregate
    ) -> ArrowStream:
        """Aggregates the rows of each time and key; exchanged by key, sent when the time closes.

        Types and rules are those of pyarrow's `group_by`: nulls are skipped, a null is a key like any other.
        Unlike pyarrow's, sums do not wrap: those of integers have 64 bits, those of decimals 38 or 76 digits,
        and one that does not fit is an error. NaN is the greatest number of `min` and `max`, not skipped.

        Args:
            by: The key's column, or columns; none of them, ``[]``, takes all rows together.
            name: The operator's name.
            exprs: By the names of their columns, such as ``total=ps.col("price").sum()`` or
                ``n=ps.count()``. With ``first``, ``last``, ``collect``, ``distinct_count``, ``top_k``,
                ``median`` and ``quantile``, a time's values are kept until it closes; first and last are of
                arrival. A quantile is interpolated between two values by its share.

        Raises:
            GraphError: If there is no such column, or a function is not defined for its type.
            TypeError: If something is no aggregate.
            OverflowError: When the dataflow runs, for a sum that its type cannot hold; it names the column
                and the key. Whether it fits does not depend on the order of the rows.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     sales = scope.to_stream(pa.table({"city": ["Ulm", "Ulm"], "price": [3, 4], "n": [2, 1]}))
            ...     value = ps.col("price") * ps.col("n")
            ...     return sales.aggregate("city", total=value.sum(), n=ps.count()).to_records().capture()
            >>> ps.example(build).extract()
            [(0, [{'city': 'Ulm', 'total': 10, 'n': 2}])]
        """
        keys = key_names(by)
        rows, wanted = self._with_values("aggregate", exprs, name)
        if not keys:
            together = rows._with_one_key(name)
            whole = together._aggregated([ALL], wanted, name)
            return whole._without_one_key(name)
        return rows._aggregated(keys, wanted, name)

    def _aggregated(
        self, keys: list[str], wanted: list[tuple[str, str, str]], name: str | None
    ) -> ArrowStream:
        key = self._columns.key(keys)
        schema = _core.aggregate_schema(self._columns, keys, wanted)
        made = Output(Form.COLUMNS, schema, placed=range(len(key)))
        return self._add(kinds.AGGREGATE, made, name=name, by=keys, key=key, aggregations=wanted)

    def _with_values(
        self, call: str, given: Mapping[str, Any], name: str | None
    ) -> tuple[ArrowStream, list[tuple[str, str, str]]]:
        """The rows with the columns that aggregates are computed of, and the aggregates for the extension."""
        aggregates = Aggregates(call, given, self.schema.names, name)
        if call == "running":
            aggregates.check_any()
        computed = aggregates.computed
        if not computed:
            return self, aggregates.columns
        title = part_name(name, kinds.WITH_COLUMNS.name)
        rows = self._mapped(kinds.WITH_COLUMNS, with_columns(computed), name=title, changes=computed)
        return rows, aggregates.columns

    def distinct(self, by: str | Sequence[str] | None = None, *, name: str | None = None) -> ArrowStream:
        """One row of each key per time, sent when it is first seen; exchanged by key.

        Of a key's rows at a time it is the first that arrives. The seen keys are forgotten when the time
        closes: for a loop that ends when nothing is new, there is `distinct_so_far`.

        Args:
            by: The key's column, or columns; None takes them all.
            name: The operator's name.

        Raises:
            GraphError: If there is no such column, or it cannot be hashed.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     rain = scope.to_stream(pa.table({"city": ["Ulm", "Bonn", "Ulm"], "mm": [3, 5, 4]}))
            ...     return rain.distinct("city").to_records().capture()
            >>> ps.example(build).extract()
            [(0, [{'city': 'Ulm', 'mm': 3}, {'city': 'Bonn', 'mm': 5}])]
        """
        return self._one_of_each(kinds.DISTINCT, by, name)

    def distinct_so_far(
        self, by: str | Sequence[str] | None = None, *, name: str | None = None
    ) -> ArrowStream:
        """One row of each key at the first time that has one; exchanged by key. Keys are kept for good.

        At every time, the keys sent at or before it are the keys that have come at or before it. In a loop
        times are partially ordered, and a key is sent at each of its least times: a key that epoch 0 has in
        round 5 is sent again when epoch 1 has it in round 2, for round 2 of epoch 1 is not after round 5 of
        epoch 0.

        Rows wait until nothing before their time can come, so that the result of a time does not depend on
        the order of arrival: a round of a loop waits for the round before it.

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
        return self._one_of_each(kinds.DISTINCT_SO_FAR, by, name)

    def _one_of_each(self, kind: Kind, by: str | Sequence[str] | None, name: str | None) -> ArrowStream:
        key = self._columns.key(key_names(by) if by is not None else self.schema.names)
        made = Output(Form.COLUMNS, self._columns, placed=key)
        return self._add(kind, made, name=name, key=key, in_place=self._output.placed == key)

    def join(
        self,
        other: ArrowStream,
        on: str | Sequence[str],
        *,
        how: How | OneSided = "inner",
        suffix: str = "_right",
        name: str | None = None,
    ) -> ArrowStream:
        """Per time, pairs of rows of both streams with equal keys; sent when the time closes.

        Rows of different times are no pair, such as events and a table that is read once: for these there is
        `join_so_far`. `table_join` has the row that is valid at the time of an event, and
        `ColumnCollection.join` follows rows that change. A null in a key matches nothing, so that such a row
        has no match.

        Args:
            other: The right side.
            on: The key's column, or columns, on both sides.
            how: The rows without a match that come, too, with nulls in the other side's columns: this
                stream's (``"left"``), the other's (``"right"``), both (``"full"``), or none (``"inner"``).
                ``"semi"`` returns this stream's rows that have a match, each once, and ``"anti"`` those
                that have none, both with this stream's columns.
            suffix: Added to names of the right side that the left side has, too. The right side's key
                columns are left out.
            name: The operator's name.

        Raises:
            ValueError: If `how` is another text.
            GraphError: If there is no such column, it cannot be hashed, its type differs between the sides,
                or the result would have two columns of one name.

        Warns:
            UsageWarning: If all rows of one side are at the least time, as far as the plan shows, and those
                of the other have times of their own; when the dataflow runs, for the first later row of an
                input of `main`.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     rain = scope.to_stream(pa.table({"city": ["Ulm", "Bonn"], "mm": [3, 5]}))
            ...     sun = scope.to_stream(pa.table({"city": ["Ulm", "Rom"], "hours": [2, 9]}))
            ...     both = rain.join(sun, on="city").to_records().capture()
            ...     return both, rain.join(sun, on="city", how="anti").to_records().capture()
            >>> both, without_sun = ps.example(build)
            >>> both.extract()
            [(0, [{'city': 'Ulm', 'mm': 3, 'hours': 2}])]
            >>> without_sun.extract()
            [(0, [{'city': 'Bonn', 'mm': 5}])]
        """
        check_how(how)
        made = self._joined_by_key(kinds.JOIN, other, on, JOINS[how], suffix, name)
        unmet = never_meet(self._output, other._output)
        if unmet is not None and not unmet.driven:
            unmet.warn(IN_COLUMNS)
        return made

    def join_so_far(
        self, other: ArrowStream, on: str | Sequence[str], *, suffix: str = "_right", name: str | None = None
    ) -> ArrowStream:
        """Pairs of rows of both streams with equal keys, across times: the inner join of all rows so far.

        Both sides are kept: a pair comes out as soon as both of its rows have arrived, at the least time
        that is not before either's. A null in a key matches nothing. When one side has ended, nothing of the
        other is kept for it.

        Args:
            other: The right side.
            on: The key's column, or columns, on both sides.
            suffix: As in `join`.
            name: The operator's name.

        Raises:
            GraphError: As in `join`.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     rain = scope.to_stream(pa.table({"city": ["Ulm", "Bonn"], "day": [1, 4]})).delay("day")
            ...     sun = scope.to_stream(pa.table({"city": ["Ulm", "Rom"], "hours": [2, 9]}))
            ...     return rain.join_so_far(sun, on="city").to_records().capture()
            >>> ps.example(build).extract()
            [(1, [{'city': 'Ulm', 'day': 1, 'hours': 2}])]
        """
        return self._joined_by_key(kinds.JOIN_SO_FAR, other, on, _core.How.INNER, suffix, name)

    def _joined_by_key(
        self,
        kind: Kind,
        other: ArrowStream,
        on: str | Sequence[str],
        how: _core.How,
        suffix: str,
        name: str | None,
    ) -> ArrowStream:
        """Appends a join by key, per time or across times."""
        if not isinstance(other, ArrowStream):
            raise TypeError(f"an ArrowStream joins another ArrowStream, not {other!r}")
        by = key_names(on)
        ours, theirs = self._output, other._output
        in_place = (ours.placed == self._columns.key(by), theirs.placed == other._columns.key(by))
        schema, key = _core.join_schema(self._columns, other._columns, by, suffix, how)
        made = Output(Form.COLUMNS, schema, placed=key)
        terms: dict[str, Any] = {"by": by, "suffix": suffix, "how": how, "in_place": in_place}
        return self._of(self.scope._append(kind, [ours, theirs], made, name=name, **terms).output)

    def count(self, *, name: str | None = None) -> Stream[int]:
        """Counts the rows of each time, of all workers; sent on the first worker when the time closes.

        Times without rows send nothing.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     return scope.to_stream(pa.table({"n": [4, 5, 6]})).count().capture()
            >>> ps.example(build).extract()
            [(0, [3])]
        """
        return self._records(records.COUNT, name)

    # ------------------------------------------------------------ shape

    def concat(self, *more: ArrowStream, name: str | None = None) -> ArrowStream:
        """The rows of this stream and the others, which have its schema.

        Where all are from `event_time`, of one column, so is the result.

        Raises:
            GraphError: If another schema differs; it names the fields.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     first = scope.to_stream(pa.table({"n": [1]}))
            ...     second = scope.to_stream(pa.table({"n": [2]}))
            ...     return first.concat(second).sort("n").to_records().capture()
            >>> ps.example(build).extract()
            [(0, [{'n': 1}, {'n': 2}])]
        """
        for other in more:
            if not isinstance(other, ArrowStream):
                raise TypeError(f"an ArrowStream is concatenated with other ArrowStreams, not {other!r}")
            check_same(self._columns, other._columns, "concat")
        outputs = [stream._output for stream in (self, *more)]
        together = _together(outputs)
        reads = [output.read_as(together.form) for output in outputs]
        return self._of(self.scope._append(shape.CONCATENATE, reads, together, name=name).output)

    def branch_when(
        self, fn: Callable[[Time], bool], *, name: str | None = None
    ) -> tuple[ArrowStream, ArrowStream]:
        """Splits the stream by a function of the time: (false, true).

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     days = scope.to_stream(pa.table({"day": [1, 6]})).delay("day")
            ...     early, late = days.branch_when(lambda time: time >= 5)
            ...     return early.to_records().capture(), late.to_records().capture()
            >>> [captured.extract() for captured in ps.example(build)]
            [[(1, [{'day': 1}])], [(6, [{'day': 6}])]]
        """
        function = function_of("branch_when", fn)
        outputs = (self._output.like(), self._output.like())
        self.scope._append(kinds.BRANCH_WHEN, [self._output], *outputs, name=name, function=function)
        no, yes = map(self._of, outputs)
        return several("branch_when", "no, yes", (no, yes))

    def broadcast(self, *, name: str | None = None) -> ArrowStream:
        """Sends each batch to every worker.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> numbers = pa.table({"n": [7]})
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         rows = scope.to_stream(numbers if worker.index == 0 else numbers.slice(0, 0))
            ...         here = rows.broadcast().to_records().capture()
            ...     worker.run()
            ...     return here.extract()
            >>> ps.execute(main, workers=2)
            [[(0, [{'n': 7}])], [(0, [{'n': 7}])]]
        """
        made = Output(Form.COLUMNS, self._columns)
        return self._add(shape.BROADCAST, made, name=name, pact=(PactKind.BROADCAST, None))

    # ------------------------------------------------------------ timestamps, scopes and loops

    def reclock(self, clock: Stream[Any] | ArrowStream, *, name: str | None = None) -> ArrowStream:
        """Holds batches until the clock ticks, and sends them at its time; as `Stream.reclock`.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     days = scope.to_stream(pa.table({"day": [0, 1, 2]})).delay("day")
            ...     clock = scope.to_stream([1, 3]).delay(lambda n, time: n)
            ...     return days.reclock(clock).to_records().capture()
            >>> for time, rows in ps.example(build).extract():
            ...     print(time, rows)
            1 [{'day': 0}, {'day': 1}]
            3 [{'day': 2}]
        """
        held = Held()
        made = single_output(
            self.scope,
            name or "reclock",
            [(self._output, Pipeline()), (stream_given("reclock", clock)._output, Pipeline())],
            partial(reclock, held),
            notify=True,
            retains_forever=True,  # as of `Stream.reclock`
            schema=self._columns,
            state=held,
        )
        return ArrowStream(self.scope, made)

    def delay_batch(self, fn: Callable[[Time], Time], *, name: str | None = None) -> ArrowStream:
        """Moves batches to a time that depends on their own; as `Stream.delay_batch`.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     rows = scope.to_stream(pa.table({"n": [1]}))
            ...     return rows.delay_batch(lambda time: time + 7).to_records().capture()
            >>> ps.example(build).extract()
            [(7, [{'n': 1}])]
        """
        function = function_of("delay_batch", fn)
        return self._add(records.DELAY_BATCH, self._output.like(), name=name, function=function)

    def enter(self, scope: Scope) -> ArrowStream:
        """The same batches in a scope inside the stream's; as `Stream.enter`.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     with scope.iterative() as inner:
            ...         return scope.to_stream(pa.table({"n": [1]})).enter(inner).to_records().capture()
            >>> ps.example(build).extract()
            [((0, 0), [{'n': 1}])]
        """
        return ArrowStream(scope, scope._entered(self._output))

    def leave(self) -> ArrowStream:
        """The same batches in the scope around the stream's; as `Stream.leave`.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     with scope.region() as inner:
            ...         rows = scope.to_stream(pa.table({"n": [1, 2]})).enter(inner)
            ...         return rows.filter(ps.col("n") > 1).leave().to_records().capture()
            >>> ps.example(build).extract()
            [(0, [{'n': 2}])]
        """
        left = self.scope._left(self._output)
        assert self.scope.parent is not None
        return ArrowStream(self.scope.parent, left)

    def connect_loop(self, handle: LoopHandle[pa.RecordBatch]) -> None:
        """Defines a loop variable, which has this stream's schema; as `Stream.connect_loop`.

        Raises:
            GraphError: If the loop variable is connected already, is of another scope, or has another schema.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     with scope.iterative() as inner:
            ...         handle, again = inner.loop_variable(schema=pa.schema({"n": pa.int64()}))
            ...         numbers = scope.to_stream(pa.table({"n": [3]})).enter(inner).concat(again)
            ...         numbers.select(n=ps.col("n") - 1).filter(ps.col("n") > 0).connect_loop(handle)
            ...         return numbers.leave().to_records().capture()
            >>> [row["n"] for _, rows in ps.example(build).extract() for row in rows]
            [3, 2, 1]
        """
        handle._connect(self.scope, self._output)

    # ------------------------------------------------------------ observing

    def probe_with(self, handle: ProbeHandle, *, name: str | None = None) -> ArrowStream:
        """Attaches a handle, which may be attached elsewhere, too, and passes the stream on.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     probe = ps.ProbeHandle()
            ...     with worker.dataflow() as scope:
            ...         scope.to_stream(pa.table({"n": [1]})).probe_with(probe)
            ...     worker.step_while(lambda: not probe.done())
            ...     return probe.done()
            >>> ps.execute(main)
            [True]
        """
        return self._of(self._probed(probe_of(handle), name))

    def running(
        self,
        by: str | Sequence[str],
        *,
        ttl: Any = None,
        column: str | None = None,
        state: KeyedState[Any, Any] | None = None,
        name: str | None = None,
        **exprs: Aggregate,
    ) -> ArrowStream:
        """Each row with aggregates of its key's rows so far, itself among them, in the order of time.

        The columns are the rows' and one for each aggregate. Nulls are skipped.

        Args:
            by: The key's column, or columns.
            ttl: A key is forgotten when no row of it has come for so long, in event time: a row at exactly so
                long after the last finds it forgotten. None: never.
            column: The times; left out: the column of `event_time`.
            state: The `KeyedState` that lists the state and restores it from a snapshot: for each key a dict
                with the time of its last row and the states of the functions.
            name: The operator's name.
            exprs: By the names of their columns, as in `aggregate`: ``sum``, ``mean``, ``min``, ``max``,
                ``count``, and ``ps.count()``.

        Raises:
            GraphError: If there is no such column or function, or no column of times is known.
            OverflowError: When the dataflow runs, for a sum so far that its 64 bits cannot hold.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> schema = pa.schema([("at", pa.int64()), ("pen", pa.string()), ("bid", pa.int64())])
            >>> def build(scope):
            ...     bids = scope.to_stream([(1, "a", 3), (4, "a", 2), (2, "a", 5)]).to_arrow(schema)
            ...     on_time, late = bids.event_time("at", lateness=9)
            ...     best = on_time.running("pen", best=ps.col("bid").max())
            ...     return best.select("at", "best").to_records().capture()
            >>> [tuple(row.values()) for _, rows in ps.example(build).extract() for row in rows]
            [(1, 3), (2, 5), (4, 5)]
        """
        rows, wanted = self._with_values("running", exprs, name)
        made = rows._by_key(kinds.SCAN, name, by, wanted, ttl, column, state)
        if rows is self:
            return made
        return made._selected([*self.schema.names, *exprs], part_name(name, kinds.SELECT.name))

    def dedup(
        self,
        by: str | Sequence[str],
        *,
        ttl: Any = None,
        column: str | None = None,
        state: KeyedState[Any, Any] | None = None,
        name: str | None = None,
    ) -> ArrowStream:
        """The first row of each key, in the order of time.

        Args:
            by: The key's column, or columns.
            ttl: A key is new again when no row of it has come for so long, as in `running`; None: never.
            column: As in `running`.
            state: As in `running`.
            name: The operator's name.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     clicks = pa.table({"at": [1, 2, 3], "user": ["ann", "ann", "bob"]})
            ...     on_time, late = scope.to_stream(clicks).event_time("at")
            ...     return on_time.dedup("user").to_records().capture()
            >>> for time, rows in ps.example(build).extract():
            ...     print(time, rows)
            1 [{'at': 1, 'user': 'ann'}]
            3 [{'at': 3, 'user': 'bob'}]
        """
        return self._by_key(kinds.DEDUP, name, by, [], ttl, column, state)

    def _by_key(
        self,
        kind: Kind,
        name: str | None,
        by: str | Sequence[str],
        functions: list[tuple[str, str, str]],
        ttl: Any,
        column: str | None,
        state: KeyedState[Any, Any] | None,
    ) -> ArrowStream:
        keys = key_names(by)
        times = column or self._output.time_column
        if times is None:
            raise untold()
        at = _core.time_column_of(self._columns, times)
        unit = unit_of(self.schema.field(at).type, lengths_of(self._output))
        span = None if ttl is None else unit.span("ttl", ttl)
        if span is not None and span <= 0:
            raise ValueError(
                f"ttl is how long a key is silent before it is forgotten, more than 0, not {ttl}"
            )
        kernel = _core.Kernel.running(self._columns, keys, functions, times, span)
        if state is not None:
            kept = Kept(kernel, [list(range(len(keys)))], only_row)
            kept_in(state, self.scope, kind.name, kept, by=keys, functions=functions, times=times)
        made = Output(Form.MIXED, kernel.output(), time_column=times)
        sides = [(self._mixed, self._columns.key(keys), at)]
        return self._of(in_time_order(self.scope, kind, sides, kernel, made, state, name=name))

    def interval_join(
        self,
        other: ArrowStream,
        on: str | Sequence[str],
        *,
        lower: Any,
        upper: Any,
        how: How | OneSided = "inner",
        suffix: str = "_right",
        joined_at: str = "joined_at",
        column: str | tuple[str, str] | None = None,
        state: KeyedState[Any, Any] | None = None,
        name: str | None = None,
    ) -> ArrowStream:
        """Pairs of rows with one key, the other's time in ``[time + lower, time + upper]``.

        The columns are this stream's, the other's except its key, and one with the later of the two times,
        which is the time of the pair: an int64 where the times are integers. Rows without a match are sent,
        where requested, when nothing can match them any more, with nulls in the other's columns. A null in a
        key matches nothing.

        Args:
            other: The right side; its column of times has the type of ours, or both are of integers.
            on: The key's column, or columns, on both sides.
            lower: An int in the unit of the times, or for timestamps a timedelta; may be negative.
            upper: Not less than `lower`.
            how: The sides whose rows without a match are sent all the same. ``"semi"`` sends this stream's
                rows that have a match, each once, at the time of its first pair, and ``"anti"`` those that
                have none, both with this stream's columns and the time.
            suffix: Added to names of the right side that the left side has, too.
            joined_at: The name of the column with the time of the pair.
            column: The times of both, or of each; left out: the columns of `event_time`.
            state: The `KeyedState` that lists the rows that can still be matched, and restores them from a
                snapshot: for each key the rows of the left and of the right as a pair of lists of dicts, in
                which ``matched`` says whether a row has been.
            name: The operator's name.

        Raises:
            GraphError: If there is no such column, or the columns of times or keys differ in type.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     orders = scope.to_stream(pa.table({"at": [1, 9], "who": ["ann", "ann"]}))
            ...     orders, late = orders.event_time("at")
            ...     paid, _ = scope.to_stream(pa.table({"paid": [3], "who": ["ann"]})).event_time("paid")
            ...     return orders.interval_join(paid, "who", lower=0, upper=5).to_records().capture()
            >>> ps.example(build).extract()
            [(3, [{'at': 1, 'who': 'ann', 'paid': 3, 'joined_at': 3}])]
        """
        times = _times(self, other, column)
        unit = _unit_of(self, times[0])
        low, high = unit.span("lower", lower), unit.span("upper", upper)
        if low > high:
            raise ValueError(f"no time is between {lower} and {upper} after another: lower is at most upper")
        given = _terms(self, other, on, times, how, suffix, joined_at)
        kernel = _core.Kernel.interval_join(given, low, high)
        made = (kinds.INTERVAL_JOIN, name, self, other, given[2], kernel, times, joined_at, _both, 2, state)
        return _joined(*made, lower=low, upper=high)

    def window_join(
        self,
        other: ArrowStream,
        on: str | Sequence[str],
        window: WindowKind,
        *,
        how: How | OneSided = "inner",
        suffix: str = "_right",
        column: str | tuple[str, str] | None = None,
        state: KeyedState[Any, Any] | None = None,
        name: str | None = None,
    ) -> ArrowStream:
        """Every pair of both streams' rows with one key in one window, when the window is final.

        The columns are this stream's, the other's except its key, and ``window_start`` and ``window_end``
        (exclusive), as in `window`; results are at the window's last instant. Sessions are sessions of both
        streams' rows together. A null in a key matches nothing, and is a session of its own.

        Args:
            other: The right side; its column of times has the type of ours, or both are of integers.
            on: The key's column, or columns, on both sides.
            window: `Tumbling`, `Sliding` or `Session`; lengths are ints in the unit of the times, or for
                timestamps timedeltas.
            how: The sides whose rows without any on the other side of their window are sent all the same,
                with nulls in the other's columns. ``"semi"`` sends this stream's rows that have a match,
                once for each window, and ``"anti"`` those that have none, both with this stream's columns
                and the window.
            suffix: As in `interval_join`.
            column: As in `interval_join`.
            state: The `KeyedState` that lists the rows of open windows, and restores them from a snapshot:
                for each key the rows of the left and of the right as a pair of lists of dicts.
            name: The operator's name.

        Raises:
            GraphError: As in `interval_join`.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     def rows(name, records):
            ...         schema = pa.schema([("at", pa.int64()), ("user", pa.string()), (name, pa.string())])
            ...         return scope.to_stream(records).to_arrow(schema).event_time("at", lateness=99)[0]
            ...     clicks = rows("page", [(3, "ann", "home"), (12, "ann", "shop")])
            ...     views = rows("ad", [(7, "ann", "shoes"), (31, "bob", "hats")])
            ...     both = clicks.window_join(views, "user", ps.Tumbling(10))
            ...     return both.select("page", "ad", "window_start").to_records().capture()
            >>> ps.example(build).extract()
            [(9, [{'page': 'home', 'ad': 'shoes', 'window_start': 0}])]
        """
        times = _times(self, other, column)
        unit = _unit_of(self, times[0])
        if isinstance(window, Count):
            raise ValueError(
                "a window join of columns is over tumbling or sliding windows or sessions, not "
                f"{window}: join to_records() in such windows"
            )
        silence = unit.span("gap", window.gap) if isinstance(window, Session) else 0
        layout = None if isinstance(window, Session) else layout_of(window, unit)
        given = _terms(self, other, on, times, how, suffix, None)
        kernel = _core.Kernel.window_join(given, layout, silence)
        made = (kinds.WINDOW_JOIN, name, self, other, given[2], kernel, times, None, _both, 2, state)
        return _joined(*made, hidden=2, window=layout or silence, kind=type(window).__name__)

    def asof_join(
        self,
        other: ArrowStream,
        on: str | Sequence[str],
        *,
        within: Any = None,
        how: Literal["left", "inner"] = "left",
        suffix: str = "_right",
        column: str | tuple[str, str] | None = None,
        state: KeyedState[Any, Any] | None = None,
        name: str | None = None,
    ) -> ArrowStream:
        """Each row with the latest of the other stream at or before its time, by key.

        The columns are this stream's and the other's except its key, null where there is no such row; the
        time of a result is the time of this stream's row.

        Args:
            other: The right side; of each key its latest row is kept.
            on: The key's column, or columns, on both sides.
            within: The maximum distance back in time; an int or a timedelta. An older row of the other side
                is freed.
            how: ``"inner"`` leaves out rows without a match.
            suffix: As in `interval_join`.
            column: As in `interval_join`.
            state: As in `interval_join`: of each key the latest row of the other stream, as a dict.
            name: The operator's name.

        Raises:
            GraphError: As in `interval_join`.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     def rows(at, name, records):
            ...         schema = pa.schema([(at, pa.int64()), ("stock", pa.string()), (name, pa.int64())])
            ...         return scope.to_stream(records).to_arrow(schema).event_time(at, lateness=9)[0]
            ...     trades = rows("at", "amount", [(3, "A", 10), (7, "A", 20)])
            ...     quotes = rows("quoted", "price", [(2, "A", 5), (6, "A", 8)])
            ...     priced = trades.asof_join(quotes, "stock").select("at", "amount", "price")
            ...     return priced.to_records().capture()
            >>> [row for _, rows in ps.example(build).extract() for row in rows]
            [{'at': 3, 'amount': 10, 'price': 5}, {'at': 7, 'amount': 20, 'price': 8}]
        """
        times = _times(self, other, column)
        span = None if within is None else _unit_of(self, times[0]).span("within", within)
        if span is not None and span < 0:
            raise ValueError(f"within is how long before a row the other may be, at least 0, not {within}")
        left_or_inner("asof_join", how)
        given = _terms(self, other, on, times, how, suffix, None)
        kernel = _core.Kernel.asof_join(given, span, None)
        made = (kinds.ASOF_JOIN, name, self, other, given[2], kernel, times, times[0], _only, 1, state)
        return _joined(*made, hidden=1, within=span)

    def table_join(
        self,
        table: ArrowStream,
        on: str | Sequence[str],
        *,
        ends: str | None = None,
        ttl: Any = None,
        how: Literal["inner", "left"] = "inner",
        suffix: str = "_right",
        column: str | tuple[str, str] | None = None,
        state: KeyedState[Any, Any] | None = None,
        name: str | None = None,
    ) -> ArrowStream:
        """Each row with its key's row of a table, as of the row's time.

        Args:
            table: The table's changes: a row is the new row of its key from its time on.
            on: The key's column, or columns, on both sides.
            ends: A column of booleans of the table: where it is true, the row ends its key's row, and is
                none.
            ttl: A row of the table ends when there has been no new one of its key for this long, in event
                time: at exactly this time after its own it is removed. None: never.
            how: ``"inner"``: a row without a row of the table is left out; ``"left"``: it has nulls instead.
            suffix: As in `interval_join`.
            column: As in `interval_join`.
            state: As in `interval_join`: of each key the row of the table, as a dict.
            name: The operator's name.

        Raises:
            GraphError: As in `interval_join`.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     rides = scope.to_stream(pa.table({"at": [3, 7], "tariff": ["city", "city"]}))
            ...     rides, late = rides.event_time("at")
            ...     tariffs = pa.table({"since": [1, 5], "tariff": ["city", "city"], "cents": [10, 12]})
            ...     table, _ = scope.to_stream(tariffs).event_time("since")
            ...     return rides.table_join(table, "tariff").select("at", "cents").to_records().capture()
            >>> for time, rows in ps.example(build).extract():
            ...     print(time, rows)
            3 [{'at': 3, 'cents': 10}]
            7 [{'at': 7, 'cents': 12}]
        """
        times = _times(self, table, column)
        span = None if ttl is None else _unit_of(self, times[0]).span("ttl", ttl)
        if span is not None and span <= 0:
            raise ValueError(f"ttl is how long a row of the table lasts, more than 0, not {ttl}")
        left_or_inner("table_join", how)
        given = _terms(self, table, on, times, how, suffix, None)
        within = None if span is None else span - 1  # times are whole units
        kernel = _core.Kernel.asof_join(given, within, ends)
        made = (kinds.TABLE_JOIN, name, self, table, given[2], kernel, times, times[0], _only, 1, state)
        return _joined(*made, hidden=1, ttl=span, ends=ends)

    # ------------------------------------------------------------ columns

    def _mapped(
        self,
        kind: Kind,
        function: Callable[[Any], Any],
        schema: pa.Schema | None = None,
        *,
        name: str | None,
        changes: Iterable[str] = (),
    ) -> ArrowStream:
        """Applies to each batch a function that changes some columns; an empty batch gives the schema."""
        import pyarrow as pa

        operator = kind.name
        if schema is None:
            before = self.schema
            found = checked_columns(function, operator, before).schema
            # A column of the same name keeps its type where the two differ in layout only.
            schema = pa.schema([_as_before(field, before) for field in found])
        made = schema
        return self._map_each(
            kind,
            lambda batch: _cast(function(batch), made, operator),
            _core.Schema(made),
            name=name,
            changes=changes,
        )

    def filter(self, condition: Column, *, name: str | None = None) -> ArrowStream:
        """The rows for which a condition is true.

        Args:
            condition: An expression (``ps.col("n") > 1``), also one of pyarrow or Polars, or a function of a
                batch that returns a column of booleans.
            name: The operator's name.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     numbers = scope.to_stream([(1,), (2,), (3,)]).to_arrow(pa.schema([("n", pa.int64())]))
            ...     return numbers.filter(ps.col("n") > 1).to_records().capture()
            >>> ps.example(build).extract()
            [(0, [{'n': 2}, {'n': 3}])]
        """
        function = filtering(condition)
        checked_condition(function, condition, self.schema)
        return self._mapped(kinds.FILTER, function, self.schema, name=name)

    def select(self, *columns: str, **exprs: Column) -> ArrowStream:
        """Selects columns by name, in this order, and adds columns that expressions compute.

        Args:
            columns: Names of columns, which are kept as they are.
            exprs: As in `with_columns`, by the names that the columns get.

        Raises:
            GraphError: If there is no such column, one is named twice, or an expression cannot be evaluated.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     items = scope.to_stream(pa.table({"name": ["tea"], "price": [3], "count": [4]}))
            ...     items = items.select("name", total=ps.col("price") * ps.col("count"))
            ...     return items.to_records().capture()
            >>> ps.example(build).extract()
            [(0, [{'name': 'tea', 'total': 12}])]
        """
        for column in columns:
            self._has(column_name("select", column))
        names = [*columns, *exprs]
        _differ(names, names)
        if not exprs:
            return self._selected(names, None)
        computed = with_columns(exprs)
        return self._mapped(
            kinds.SELECT, lambda batch: computed(batch).select(names), name=None, changes=exprs
        )

    def _selected(self, names: list[str], name: str | None) -> ArrowStream:
        return self._mapped(kinds.SELECT, lambda batch: batch.select(names), name=name)

    def rename(self, names: Mapping[str, str], *, name: str | None = None) -> ArrowStream:
        """The same rows, with new names for some columns.

        Args:
            names: The new name of each column that gets one.
            name: The operator's name.

        Raises:
            GraphError: If there is no such column, or two get one name.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     rows = scope.to_stream(pa.table({"n": [1]}))
            ...     return rows.rename({"n": "number"}).to_records().capture()
            >>> ps.example(build).extract()
            [(0, [{'number': 1}])]
        """
        if not isinstance(names, Mapping):
            raise TypeError(f"rename takes the new names by the old ones, as in {{'a': 'b'}}, not {names!r}")
        for column in names:
            self._has(column)
        new = [names.get(column, column) for column in self.schema.names]
        _differ(names.values(), new)
        moved = {*names, *names.values()}
        return self._mapped(kinds.RENAME, lambda batch: batch.rename_columns(new), name=name, changes=moved)

    def with_columns(self, **exprs: Column) -> ArrowStream:
        """The rows with further columns, which replace columns of the same names.

        Args:
            exprs: For each name an expression (``ps.col("n") * 2``), also one of pyarrow or Polars, or a
                function of a batch that returns a column.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     numbers = scope.to_stream([(1,), (2,)]).to_arrow(pa.schema([("n", pa.int64())]))
            ...     return numbers.with_columns(double=ps.col("n") * 2).to_records().capture()
            >>> ps.example(build).extract()
            [(0, [{'n': 1, 'double': 2}, {'n': 2, 'double': 4}])]
        """
        return self._mapped(kinds.WITH_COLUMNS, with_columns(exprs), name=None, changes=exprs)

    def _has(self, name: str) -> None:
        if name not in self.schema.names:
            raise GraphError(f"there is no column '{name}': the columns are {', '.join(self.schema.names)}")

    # ------------------------------------------------------------ rows of a time

    def sort(
        self, order: str | Sequence[str], *, descending: bool = False, name: str | None = None
    ) -> ArrowStream:
        """The rows of each time, of all workers, in order, on one worker; sent when the time closes.

        Args:
            order: The column, or columns, that they are compared by. NaN is the greatest number, and nulls
                are last. None of them, ``[]``, leaves the rows in the order in which they came.
            descending: The greatest first.
            name: The operator's name.

        Raises:
            GraphError: If there is no such column, or its values have no order.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     rain = scope.to_stream(pa.table({"city": ["Ulm", "Bonn"], "mm": [3, 5]}))
            ...     return rain.sort("city").to_records().inspect(print)
            >>> ps.example(build) and None
            {'city': 'Bonn', 'mm': 5}
            {'city': 'Ulm', 'mm': 3}
        """
        places = _core.order_columns(self._columns, key_names(order))
        return self._on_one_worker(name or "sort", *sorted_per_time(places, descending))

    def limit(self, n: int, *, name: str | None = None) -> ArrowStream:
        """The first `n` rows of each time to come, of all workers; after `sort`, the first in order.

        Args:
            n: The maximum number.
            name: The operator's name.

        Raises:
            TypeError: If `n` is no int.
            ValueError: If it is less than 0.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     rain = scope.to_stream(pa.table({"city": ["Ulm", "Bonn", "Rom"], "mm": [3, 5, 1]}))
            ...     return rain.sort("mm", descending=True).limit(2).to_records().inspect(print)
            >>> ps.example(build) and None
            {'city': 'Bonn', 'mm': 5}
            {'city': 'Ulm', 'mm': 3}
        """
        n = count_of("limit takes a number of rows", n, least=0)
        return self._on_one_worker(name or "limit", *limited(n))

    def _with_one_key(self, name: str | None) -> ArrowStream:
        """Adds a column with the same value in all rows, so that operators by key take them together."""
        import pyarrow as pa

        schema = self.schema.append(pa.field(ALL, pa.int8()))
        return self._mapped(
            kinds.WITH_ONE_KEY,
            lambda batch: _with(batch, pa.array([0] * batch.num_rows, pa.int8()), schema),
            schema,
            name=part_name(name, kinds.WITH_ONE_KEY.name),
        )

    def _without_one_key(self, name: str | None) -> ArrowStream:
        """The rows without the column of `_with_one_key`."""
        names = [column for column in self.schema.names if column != ALL]
        return self._selected(names, part_name(name, kinds.SELECT.name))

    def _on_one_worker(self, name: str, build: Callable[..., Any], state: Waiting) -> ArrowStream:
        """An operator of all workers' rows, with state by time."""
        inputs, columns = [(self._output, Gather())], self._columns
        made = single_output(self.scope, name, inputs, build, notify=True, schema=columns, state=state)
        return ArrowStream(self.scope, made)

    # ------------------------------------------------------------ event time

    def event_time(
        self,
        column: str,
        *,
        lateness: Any = 0,
        idle: float | None = 10.0,
        ahead: timedelta | None = None,
        name: str | None = None,
    ) -> tuple[ArrowStream, ArrowStream]:
        """Moves rows to the times in a column; returns also the late ones; as `Stream.event_time`.

        Args:
            column: Of integers, timestamps or dates, none of them null or before 0 (1970). A time is the
                column's own number, in its unit.
            lateness: The maximum distance of a row behind the latest one: an int in the column's unit, or for
                timestamps a timedelta.
            idle: As in `Stream.event_time`.
            ahead: As in `Stream.event_time`, of timestamps.
            name: The operator's name.

        Raises:
            GraphError: If there is no such column, or it holds no times.
            TimeError: When the dataflow runs, for a time that is null, or below 0.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     clicks = scope.to_stream(pa.table({"at": [5, 3, 1, 6]}))
            ...     on_time, late = clicks.event_time("at", lateness=2)
            ...     return on_time.to_records().capture(), late.to_records().capture()
            >>> on_time, late = ps.example(build)
            >>> [time for time, _ in on_time.extract()]
            [3, 5, 6]
            >>> [rows for _, rows in late.extract()]
            [[{'at': 1}]]
        """
        at = _core.time_column_of(self._columns, column_name("event_time", column))
        unit = unit_of(self.schema.field(at).type)
        units = unit.span("lateness", lateness)
        if units < 0:
            raise ValueError(f"lateness is at least 0, not {lateness}")
        on_time, late = event_times(
            self.scope,
            self._output,
            split_columns(at, not_ahead(ahead, unit.span), unit.lengths),
            unit.clock(),
            lateness=units,
            idle=idle,
            name=name,
            time_column=column,
        )
        return several("event_time", "on_time, late", (self._of(on_time), self._of(late)))

    def delay(self, column: str, *, name: str | None = None) -> ArrowStream:
        """Moves each row to the time in a column, which is not before the row's own; nothing is held.

        Raises:
            GraphError: If there is no such column, or it holds no times.
            TimeError: When the dataflow runs, for a time that is null, or before the row's.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     return scope.to_stream(pa.table({"day": [2, 1]})).delay("day").to_records().capture()
            >>> ps.example(build).extract()
            [(1, [{'day': 1}]), (2, [{'day': 2}])]
        """
        root_only(self.scope, "delay")
        at = _core.time_column_of(self._columns, column_name("delay", column))
        return self._add(kinds.DELAY, Output(Form.COLUMNS, self._columns), name=name, at=at)

    def to_collection(self, *, diffs: bool = False, name: str | None = None) -> ColumnCollection:
        """The rows as a collection of columns: each is there once, from its time on.

        Args:
            diffs: The last two columns are ``time`` and ``diff``, as `ColumnCollection.updates` gives them,
                and are no part of the rows: from that time on so many more of the row are there.
            name: The operator's name.

        Raises:
            GraphError: If a collection cannot keep a column, or there are no two such columns.
            TimeError: When the dataflow runs, for an update whose time is before that of its batch.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     rows = scope.to_stream([{"n": 1}, {"n": 2}]).to_arrow(pa.schema([("n", pa.int64())]))
            ...     return rows.to_collection().value_counts().to_records().capture()
            >>> ps.example(build).extract()
            [(0, [((1, 1), 1), ((2, 1), 1)])]
        """
        schema = _core.collect_schema(self._columns, diffs, self.scope.dims)
        made = Output(Form.UPDATES, schema)
        node = self.scope._append(kinds.TO_COLLECTION, [self._output], made, name=name, diffs=diffs)
        collection: ColumnCollection = collection_of(self.scope, node.output)
        return collection

    def window(
        self,
        window: WindowKind,
        by: str | Sequence[str],
        *,
        column: str | None = None,
        early: Any = None,
        state: KeyedState[Any, Any] | None = None,
        name: str | None = None,
        **exprs: Aggregate,
    ) -> ArrowStream:
        """Aggregates per key and window of event time, sent when the window is final, at its last instant.

        The columns are the key's, ``window_start`` and ``window_end`` (exclusive), and the aggregates'. The
        bounds have the type of the times, and int64 where those are integers; a window that reaches beyond
        the greatest time ends there, and contains it. Rows are added up as they come, in Rust; a window that
        closes leaves nothing.

        Windows of the results, also after a `filter`, `with_columns` and the like, are by the instants at
        which these are sent, so that a window of windows falls into the same place. ``column="window_end"``
        takes the instants after, which are in the next window.

        Args:
            window: `Tumbling`, `Sliding`, `Session` or `Count`; its lengths are ints in the unit of the
                times, or for timestamps timedeltas. Of the last two rows wait until their times are final.
            by: The key's column, or columns; none of them, ``[]``, takes all rows together.
            column: The times; by default the column of `event_time`, or for results of windows the instants
                at which they are sent.
            early: Results so far at every multiple of this length, for the keys that have changed since; an
                int or a timedelta, of tumbling and sliding windows. None: only final ones.
            state: The `KeyedState` that lists the open windows, and restores them from a snapshot: for each
                key a pair of lists of dicts, of its panes, the intervals of time that windows are made of,
                and of the rows since the last early results; for sessions and counted windows a dict with
                ``first``, ``last`` and ``rows``, and the states of the aggregates. Rows then wait until their
                times are final.
            name: The operator's name.
            exprs: By the names of their columns, as in `aggregate`. Values that are kept until the
                window closes are in the order of time in sessions and counted windows.

        Raises:
            GraphError: If there is no such column or function, or no column of times is known.
            OverflowError: When the dataflow runs, for a sum that its type cannot hold, as in `aggregate`.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     calls = pa.table({"at": [1, 2, 12], "who": ["ann", "bob", "ann"]})
            ...     on_time, late = scope.to_stream(calls).event_time("at")
            ...     return on_time.window(ps.Tumbling(10), "who", n=ps.count()).to_records().capture()
            >>> for time, rows in ps.example(build).extract():
            ...     print(time, sorted((row["who"], row["n"]) for row in rows))
            9 [('ann', 1), ('bob', 1)]
            19 [('ann', 1)]
        """
        root_only(self.scope, "window")
        keys = key_names(by)
        rows, times = self, column or self._output.time_column
        if times is None and self._output.time_type is not None:
            rows, times = self._with_own_times(name), OWN_TIME
        if times is None:
            raise untold()
        rows, wanted = rows._with_values("window", exprs, name)
        if not keys:
            together = rows._with_one_key(name)
            whole = together._windows(window, [ALL], wanted, times, early, state, name)
            return whole._without_one_key(name)
        return rows._windows(window, keys, wanted, times, early, state, name)

    def _windows(
        self,
        window: WindowKind,
        keys: list[str],
        wanted: list[tuple[str, str, str]],
        times: str,
        early: Any,
        state: KeyedState[Any, Any] | None,
        name: str | None,
    ) -> ArrowStream:
        """Windows over the times in a column, by a key of at least one column."""
        at = _core.time_column_of(self._columns, times)
        unit = unit_of(self.schema.field(at).type, lengths_of(self._output))
        if early is not None or state is not None or isinstance(window, Session | Count):
            return self._windows_in_order(window, keys, wanted, times, unit, early, state, name)
        layout = layout_of(window, unit)
        schema = _core.window_schema(self._columns, keys, wanted, times, layout)
        return self._add_in_time(
            kinds.WINDOW,
            [self._mixed],
            results_of_windows(schema, schema.to_pyarrow().names[len(keys)]),
            name=name,
            by=keys,
            aggregations=wanted,
            column=times,
            layout=layout,
            in_place=self._output.placed == self._columns.key(keys),
        )

    def _with_own_times(self, name: str | None) -> ArrowStream:
        """Adds a column with the times of the results of windows."""
        import pyarrow as pa

        times = _core.Schema(pa.schema([pa.field(OWN_TIME, self._output.time_type)]))
        made = Output(Form.COLUMNS, _core.own_times_schema(self._columns, times))
        return self._add(kinds.OWN_TIMES, made, name=part_name(name, kinds.OWN_TIMES.name), times=times)

    def _windows_in_order(
        self,
        window: WindowKind,
        keys: list[str],
        wanted: list[tuple[str, str, str]],
        times: str,
        unit: Unit,
        early: Any,
        state: KeyedState[Any, Any] | None,
        name: str | None,
    ) -> ArrowStream:
        """Appends windows whose rows wait for final times: runs, early results, or a listed state."""
        follows = isinstance(window, Session | Count)
        tick = None if early is None else unit.span("early", early)
        if tick is not None and (tick <= 0 or follows):
            raise ValueError(
                f"early results come at every multiple of a length of more than 0, of tumbling and "
                f"sliding windows, "
                f"not of {early} and {window}"
            )
        terms = (self._columns, keys, wanted, times)
        bounds: Any
        if isinstance(window, Session | Count):
            bounds = ends_of(window, unit)
            kernel = _core.Kernel.window_runs(*terms, bounds)
        else:
            bounds = layout_of(window, unit)
            kernel = _core.Kernel.windows(*terms, bounds, tick)
        key = self._columns.key(keys)
        if state is not None:
            first = list(range(len(keys)))
            kept = Kept(kernel, [first] if follows else [first, key], only_row if follows else tuple)
            given = {"window": bounds, "by": keys, "aggregations": wanted, "times": times, "early": tick}
            kept_in(state, self.scope, f"window {type(window).__name__}", kept, **given)
        at = _core.time_column_of(self._columns, times)
        schema = kernel.output()
        made = results_of_windows(schema, schema.to_pyarrow().names[len(keys)])
        sides = [(self._mixed, None if self._output.placed == key else key, at)]
        counted = isinstance(window, Count)
        kind = kinds.WINDOW_IN_ORDER
        return self._of(
            in_time_order(self.scope, kind, sides, kernel, made, state, name=name, sends_at_end=counted)
        )


@suggesting
class ArrowInput(DrivenInput):
    """Introduces record batches at its current time: an `InputHandle` for columns.

    ``ArrowInput(schema)``, then `to_stream`. Batches that are tiny wait until there are enough rows, the time
    advances, `flush()` is called, or the worker steps.

    Args:
        schema: A `pyarrow.Schema`, or another object with ``__arrow_c_schema__``.

    Examples:
        >>> import pyarrow as pa
        >>> import pointstamp as ps
        >>> rows = ps.ArrowInput(pa.schema([("n", pa.int64())]))
        >>> rows.schema.names
        ['n']
        >>> rows.time
        0
    """

    __slots__ = ("_columns",)

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__(InputHandle())
        self._columns = _core.Schema(schema)

    @property
    def schema(self) -> pa.Schema:
        """The schema of the batches."""
        return self._columns.to_pyarrow()

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"at {self.time}"
        place = self._handle.place
        state = f"{place} {state}" if place or self.closed else "connected to no dataflow"
        return f"<ArrowInput of {', '.join(self.schema.names)}: {state}>"

    def to_stream(
        self, scope: Scope, *, name: str | None = None, resume: Literal["repeat", "continue"] = "repeat"
    ) -> ArrowStream:
        """The stream of the input in a scope, from the input's current time on.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     rain = ps.ArrowInput(pa.schema({"mm": pa.int64()}))
            ...     with worker.dataflow() as scope:
            ...         rows = rain.to_stream(scope).to_records().capture()
            ...     rain.send(pa.table({"mm": [3, 5]}))
            ...     rain.close()
            ...     worker.run()
            ...     return rows.extract()
            >>> ps.execute(main)
            [[(0, [{'mm': 3}, {'mm': 5}])]]
        """
        output = Output(Form.COLUMNS, self._columns)
        return ArrowStream(
            scope, scope._input_from(self._handle, _core.StreamKind.COLUMNS, output, name, resume)
        )

    def send(self, data: Any) -> None:
        """Sends the rows of a batch or a table at the current time; steps while too much is on its way.

        Args:
            data: A `pyarrow.RecordBatch` or `pyarrow.Table`, a Polars or pandas data frame, or anything else
                with ``__arrow_c_array__`` or ``__arrow_c_stream__``. Strings and bytes may be laid out in
                any way; otherwise the schema must be the input's.

        Raises:
            TypeError: If it is something else, or has another schema; it names the fields that differ.
            PointstampError: If the input is closed, or connected to no dataflow.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     rain = ps.ArrowInput(pa.schema({"mm": pa.int64()}))
            ...     with worker.dataflow() as scope:
            ...         rows = scope.input_from(rain).to_records().capture()
            ...     rain.send(pa.table({"mm": [3]}))
            ...     rain.advance_to(1)
            ...     rain.send(pa.record_batch({"mm": [5]}))
            ...     rain.close()
            ...     worker.run()
            ...     return rows.extract()
            >>> ps.execute(main)
            [[(0, [{'mm': 3}]), (1, [{'mm': 5}])]]
        """
        _core.send_columns(self._handle, data, self._columns)


def _together(outputs: list[Output]) -> Output:
    """An output for the rows of several streams; at event times, where all have one column of times."""
    first = outputs[0]
    if {(output.form, output.time_column) for output in outputs} == {(Form.MIXED, first.time_column)}:
        return Output(Form.MIXED, first.schema, time_column=first.time_column)
    types = {output.time_type for output in outputs}
    alike = all(output.placed == first.placed for output in outputs)
    return Output(
        Form.COLUMNS,
        first.schema,
        placed=first.placed if alike else None,
        time_type=types.pop() if len(types) == 1 else None,
    )


def check_same(expected: _core.Schema, given: _core.Schema, operator: str) -> None:
    """Refuses streams of different schemas.

    Raises:
        GraphError: It names the fields that differ.
    """
    difference = expected.difference(given)
    if difference is not None:
        raise GraphError(f"{operator} takes streams of one schema: {difference}")


def only_row(kinds: tuple[list[Any], ...]) -> Any:
    """The one row of a key."""
    return kinds[0][0]


def _times(left: Any, right: Any, column: Any) -> tuple[str, str]:
    """The columns of times of both sides.

    Raises:
        TypeError: If the other side is no stream of columns.
        GraphError: If a column is not known, or they are of different types, not all integers, or scopes.
    """
    if not isinstance(right, ArrowStream):
        raise TypeError(f"an ArrowStream joins another ArrowStream, not {right!r}")
    if left.scope is not right.scope:
        raise GraphError("a join needs both streams in one scope: enter() or leave() it first")
    if isinstance(column, str) or column is None:
        ours, theirs = column, column
    elif isinstance(column, tuple | list) and len(column) == 2:
        ours, theirs = column
    else:
        raise TypeError(f"column is the name of the times of both sides, or a pair of names, not {column!r}")
    names: list[Any] = [ours or left._output.time_column, theirs or right._output.time_column]
    if None in names:
        side = ("left", "right")[names.index(None)]
        raise untold(f" of the {side} side")
    types = [_type_of(side, name) for side, name in zip((left, right), names, strict=True)]
    import pyarrow as pa

    if types[0] != types[1] and not all(pa.types.is_integer(each) for each in types):
        raise GraphError(
            f"the times of both sides need one type, and '{names[0]}' is {types[0]} and '{names[1]}' is "
            f"{types[1]}: cast one of them before event_time"
        )
    return names[0], names[1]


def _unit_of(stream: Any, times: str) -> Unit:
    """The unit of a stream's column of times."""
    return unit_of(_type_of(stream, times), lengths_of(stream._output))


def _type_of(stream: Any, column: str) -> Any:
    at = _core.time_column_of(stream._columns, column)
    return stream.schema.field(at).type


def _terms(
    left: Any,
    right: Any,
    on: str | Sequence[str],
    times: tuple[str, str],
    how: How | OneSided,
    suffix: str,
    joined_at: str | None,
) -> Terms:
    check_how(how)
    keys = [on] if isinstance(on, str) else list(on)
    return (left._columns, right._columns, keys, times, JOINS[how], suffix, joined_at)


def _joined(
    kind: Kind,
    name: str | None,
    left: Any,
    right: Any,
    keys: list[str],
    kernel: _core.Kernel,
    times: tuple[str, str],
    time_column: str | None,
    shown: Any,
    kinds: int,
    state: KeyedState[Any, Any] | None,
    /,
    *,
    hidden: int = 0,
    **terms: Any,
) -> ArrowStream:
    """Appends a join, whose results have their times in a column, or come at the times of windows.

    Of the state, which is so many kinds of rows, the last `hidden` columns are not listed.
    """
    both = (left, right)
    places = [stream._columns.key(keys) for stream in both]
    at = [_core.time_column_of(side._columns, column) for side, column in zip(both, times, strict=True)]
    rows = [stream._mixed for stream in both]
    if state is not None:
        kept = Kept(kernel, places if kinds == 2 else places[1:], shown, hidden=hidden)
        kept_in(state, left.scope, kind.name, kept, on=keys, times=times, **terms)
    schema = kernel.output()
    made = (
        results_of_windows(schema, "window_end")
        if time_column is None
        else Output(Form.MIXED, schema, time_column=time_column)
    )
    sides = list(zip(rows, places, at, strict=True))
    joined: ArrowStream = left._of(in_time_order(left.scope, kind, sides, kernel, made, state, name=name))
    return joined


def results_of_windows(schema: _core.Schema, bound: str) -> Output:
    """An output for results of windows: rows at the windows' last instants, which are in no column.

    `window_end` is the instant after. Windows of such rows use their own times, so that they are the same as
    windows of results as records.

    Args:
        schema: Of the results.
        bound: A column that is a bound of windows.
    """
    return Output(Form.COLUMNS, schema, time_type=schema.to_pyarrow().field(bound).type)


def _both(kinds: tuple[list[Any], ...]) -> Any:
    return kinds


def _only(kinds: tuple[list[Any], ...]) -> Any:
    [[row]] = kinds
    return row


def _differ(given: Iterable[str], names: Sequence[str]) -> None:
    """Refuses names that are given to several columns: rows as records would lose all of these but one."""
    for name in given:
        if names.count(name) > 1:
            raise GraphError(f"there would be {names.count(name)} columns named '{name}'")


def _as_before(field: Any, schema: Any) -> Any:
    at = schema.get_field_index(field.name)
    if at >= 0 and _texts(field.type, schema.field(at).type):
        return schema.field(at)
    return field


def _texts(one: Any, other: Any) -> bool:
    """Whether two types hold texts, or bytes, and differ at most in their layout."""
    import pyarrow as pa

    texts = (pa.string(), pa.large_string(), pa.string_view())
    raw = (pa.binary(), pa.large_binary(), pa.binary_view())
    return any(one in kind and other in kind for kind in (texts, raw))


def _cast(table: Any, schema: Any, operator: str) -> Any:
    """Converts columns to the types of a schema. Columns that differ in layout only are converted on arrival.

    Raises:
        TypeError: If a column is not of its type and cannot be cast; it names the operator and the column.
    """
    import pyarrow as pa

    if table.schema.equals(schema):
        return table
    columns = []
    for column, field in zip(table.columns, schema, strict=True):
        if column.type != field.type and not _texts(column.type, field.type):
            try:
                column = column.cast(field.type)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise TypeError(
                    f"{operator} made column '{field.name}' of type {column.type}, and of a batch without "
                    f"rows {field.type}: let it return one type, as in pa.array(values, type). {error}"
                ) from error
        columns.append(column)
    return pa.table(columns, names=schema.names)


def _with(batch: Any, column: Any, schema: Any) -> Any:
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([*batch.columns, column], schema=schema)
