"""Methods of `ArrowStream` for its columns and for event time.

Owns the methods that are not of the engine's own kind: expressions, selecting, sorting and limiting rows,
and those that lead to event time and windows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pointstamp import _core
from pointstamp._validation import column_name, count_of, several
from pointstamp.api.by_key_columns import KeyedColumns, only_row
from pointstamp.api.classes import collection_of
from pointstamp.api.column_arguments import aggregations_of, key_names, part_name
from pointstamp.api.joining import JoinsInTime, results_of_windows
from pointstamp.errors import GraphError
from pointstamp.event_time.clock import not_ahead
from pointstamp.event_time.units import ends_of, layout_of, lengths_of, split_columns, unit_of, untold
from pointstamp.expr.of_batches import checked_columns, checked_condition, filtering, with_columns
from pointstamp.expr.windows import Count, Session
from pointstamp.logic.event_time import event_times
from pointstamp.logic.in_time_columns import Kept, in_time_order, kept_in
from pointstamp.logic.in_time_order import root_only
from pointstamp.logic.rows import limited, sorted_per_time
from pointstamp.pacts import Exchange
from pointstamp.plan import columns as kinds
from pointstamp.plan.node import Form, Output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import timedelta
    from typing import TypeAlias

    import pyarrow as pa

    from pointstamp.api.arrow_stream import ArrowStream
    from pointstamp.api.column_collection import ColumnCollection
    from pointstamp.event_time.units import Unit
    from pointstamp.expr.windows import WindowKind
    from pointstamp.logic.state import KeyedState
    from pointstamp.plan.node import Kind

    Column: TypeAlias = Any

__all__ = ["ALL", "Columnar"]

ALL = "all rows"
"""A column that is added where rows have no key, so that they have one and the same."""

OWN_TIME = "own time"
"""The column for the times of rows that have none: no column of a program's own."""


class Columnar(JoinsInTime, KeyedColumns):
    """Expressions, rows in order, and event time, of streams of columns."""

    __slots__ = ()

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
        """Each batch through a function that changes some columns; an empty one tells the schema."""
        import pyarrow as pa

        operator = kind.name
        if schema is None:
            before = self.schema
            found = checked_columns(function, operator, before).schema
            # What has a column's name keeps its type where the two differ in layout only.
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
            condition: An expression of pyarrow (``pc.field("n") > 1``) or Polars (``pl.col("n") > 1``),
                which is evaluated a batch at a time, or a function of a batch that returns a column of
                booleans.
            name: The operator's name.

        Examples:
            >>> import pyarrow as pa, pyarrow.compute as pc
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     numbers = scope.to_stream([(1,), (2,), (3,)]).to_arrow(pa.schema([("n", pa.int64())]))
            ...     return numbers.filter(pc.field("n") > 1).to_records().capture()
            >>> ps.example(build).extract()
            [(0, [{'n': 2}, {'n': 3}])]
        """
        function = filtering(condition)
        checked_condition(function, condition, self.schema)
        return self._mapped(kinds.FILTER, function, self.schema, name=name)

    def select(self, *columns: str, name: str | None = None) -> ArrowStream:
        """These columns, in this order.

        Raises:
            GraphError: If there is no such column, or one is named twice.
        """
        for column in columns:
            self._has(column_name("select", column))
        _differ(columns, columns)
        return self._mapped(kinds.SELECT, lambda batch: batch.select(list(columns)), name=name)

    def rename(self, names: Mapping[str, str], *, name: str | None = None) -> ArrowStream:
        """The same rows, with new names for some columns.

        Args:
            names: The new name of each column that gets one.
            name: The operator's name.

        Raises:
            GraphError: If there is no such column, or two get one name.
        """
        if not isinstance(names, Mapping):
            raise TypeError(f"rename takes the new names by the old ones, as in {{'a': 'b'}}, not {names!r}")
        for column in names:
            self._has(column)
        new = [names.get(column, column) for column in self.schema.names]
        _differ(names.values(), new)
        moved = {*names, *names.values()}
        return self._mapped(kinds.RENAME, lambda batch: batch.rename_columns(new), name=name, changes=moved)

    def with_columns(self, **columns: Column) -> ArrowStream:
        """The rows with further columns, or others in the place of those of the same names.

        Args:
            columns: For each name an expression of pyarrow or Polars, or a function of a batch that returns a
                column; as in `filter`.

        Examples:
            >>> import pyarrow as pa, pyarrow.compute as pc
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     numbers = scope.to_stream([(1,), (2,)]).to_arrow(pa.schema([("n", pa.int64())]))
            ...     return numbers.with_columns(double=pc.field("n") * 2).to_records().capture()
            >>> ps.example(build).extract()
            [(0, [{'n': 1, 'double': 2}, {'n': 2, 'double': 4}])]
        """
        return self._mapped(kinds.WITH_COLUMNS, with_columns(columns), name=None, changes=columns)

    def _has(self, name: str) -> None:
        if name not in self.schema.names:
            raise GraphError(f"there is no column '{name}': the columns are {', '.join(self.schema.names)}")

    # ------------------------------------------------------------ rows of a time

    def sort(
        self, by: str | Sequence[str], *, descending: bool = False, name: str | None = None
    ) -> ArrowStream:
        """The rows of each time, of all workers, in order, on one worker; sent when the time closes.

        Args:
            by: The column, or columns, that they are compared by; NaNs come after numbers, and nulls last.
                None of them, ``[]``, leaves the rows in the order in which they came.
            descending: The greatest first.
            name: The operator's name.

        Raises:
            GraphError: If there is no such column, or its values have no order.
        """
        places = _core.order_columns(self._columns, key_names(by))
        return self._on_one_worker(kinds.SORT, sorted_per_time(places, descending), name)

    def limit(self, rows: int, *, name: str | None = None) -> ArrowStream:
        """The first rows of each time to come, of all workers; after `sort`, the first in order.

        Args:
            rows: How many, at most.
            name: The operator's name.

        Raises:
            TypeError: If `rows` is no int.
            ValueError: If it is less than 0.
        """
        rows = count_of("limit takes a number of rows", rows, least=0)
        return self._on_one_worker(kinds.LIMIT, limited(rows), name)

    def _with_one_key(self, name: str | None) -> ArrowStream:
        """The rows with one more column, which is the same in all: what goes by key takes them together."""
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
        return self.select(*names, name=part_name(name, kinds.SELECT.name))

    def _on_one_worker(self, kind: Kind, build: Callable[..., Any], name: str | None) -> ArrowStream:
        names, schema = self.schema.names, self._columns
        together = self._with_one_key(name).unary_frontier(Exchange(ALL), name or kind.name, build)
        made = Output(Form.COLUMNS, schema)
        shaped: ArrowStream = together._add(kind, made, name=name, function=lambda batch: batch.select(names))
        return shaped

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
        """The rows at the times that a column tells, and those that came too late; as `Stream.event_time`.

        Args:
            column: Of integers, timestamps or dates, none of them null or before 0 (1970). A time is the
                column's own number, in its unit.
            lateness: How far behind the latest a row may be: an int in the column's unit, or for timestamps a
                timedelta.
            idle: As in `Stream.event_time`.
            ahead: As in `Stream.event_time`, of timestamps.
            name: The operator's name.

        Raises:
            GraphError: If there is no such column, or it tells no times.
            TimeError: When the dataflow runs, for a time that is null, or below 0.
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
        """Each row at the time that a column tells, which is not before the row's own; nothing is held.

        Raises:
            GraphError: If there is no such column, or it tells no times.
            TimeError: When the dataflow runs, for a time that is null, or before the row's.
        """
        root_only(self.scope, "delay")
        at = _core.time_column_of(self._columns, column_name("delay", column))
        return self._add(kinds.DELAY, Output(Form.COLUMNS, self._columns), name=name, at=at)

    def as_collection(self, *, diffs: bool = False, name: str | None = None) -> ColumnCollection:
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
            ...     return rows.as_collection().count().to_records().capture()
            >>> ps.example(build).extract()
            [(0, [((1, 1), 1), ((2, 1), 1)])]
        """
        schema = _core.collect_schema(self._columns, diffs, self.scope.dims)
        made = Output(Form.UPDATES, schema)
        node = self.scope._append(kinds.AS_COLLECTION, [self._output], made, name=name, diffs=diffs)
        collection: ColumnCollection = collection_of(self.scope, node.output)
        return collection

    def window(
        self,
        window: WindowKind,
        by: str | Sequence[str],
        aggregations: Sequence[tuple[str, str]],
        *,
        column: str | None = None,
        early: Any = None,
        state: KeyedState[Any, Any] | None = None,
        name: str | None = None,
    ) -> ArrowStream:
        """Aggregations per key and window of event time, sent when the window is final, at its last instant.

        The columns are those of the key, ``window_start`` and ``window_end`` (exclusive), and the
        aggregations'. The bounds are of the type of the times, and int64 where those are integers; a window
        that reaches beyond the greatest time ends there, and holds it. Rows are added up as they come, in
        Rust; a window that closes leaves nothing.

        Windows of the results, also after a `filter`, `with_columns` and the like, are by the instants at
        which these are sent, so that a window of windows falls into the same place. ``column="window_end"``
        takes the instants after, which are in the next window.

        Args:
            window: `Tumbling`, `Sliding`, `Session` or `Count`; its lengths are ints in the unit of the
                times, or for timestamps timedeltas. Of the last two rows wait until their times are final.
            by: The key's column, or columns; none of them, ``[]``, takes all rows together.
            aggregations: As in `aggregate`: ``"sum"``, ``"count"``, ``"min"``, ``"max"``, ``"mean"``, and
                those for which values are kept until the window closes, in the order of time in sessions and
                counted windows.
            column: The times; left out: the column of `event_time`, or for results of windows the instants at
                which they are sent.
            early: Results so far at every multiple of this length, for the keys that have changed since; an
                int or a timedelta, of tumbling and sliding windows. None: only final ones.
            state: Where to keep what is open, to be listed, or restored from a snapshot: of each key a pair
                of
                lists of dicts, of its panes, the stretches of time that windows are made of, and of the rows
                since the last early results; of sessions and counted windows a dict with ``first``, ``last``
                and ``rows``, and what the aggregations know. Rows then wait until their times are final.
            name: The operator's name.

        Raises:
            GraphError: If there is no such column or function, or no column of times is known.
            OverflowError: When the dataflow runs, for a sum that its type cannot hold, as in `aggregate`.
        """
        root_only(self.scope, "window")
        times = column or self._output.time_column
        if times is None and self._output.time_type is not None:
            told = self._with_own_times(name)
            return told.window(window, by, aggregations, column=OWN_TIME, early=early, state=state, name=name)
        if times is None:
            raise untold()
        at = _core.time_column_of(self._columns, times)
        unit = unit_of(self.schema.field(at).type, lengths_of(self._output))
        keys = key_names(by)
        if not keys:
            together = self._with_one_key(name)
            whole = together.window(
                window, ALL, aggregations, column=times, early=early, state=state, name=name
            )
            return whole._without_one_key(name)
        wanted = aggregations_of(aggregations, "window")
        if early is None and state is None and not isinstance(window, Session | Count):
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
        return self._windows_in_order(window, keys, wanted, times, unit, early, state, name)

    def _with_own_times(self, name: str | None) -> ArrowStream:
        """The results of windows with one more column, which tells their times."""
        import pyarrow as pa

        told = _core.Schema(pa.schema([pa.field(OWN_TIME, self._output.time_type)]))
        made = Output(Form.COLUMNS, _core.own_times_schema(self._columns, told))
        return self._add(kinds.OWN_TIMES, made, name=part_name(name, kinds.OWN_TIMES.name), told=told)

    def _windows_in_order(
        self,
        window: WindowKind,
        keys: list[str],
        wanted: list[tuple[str, str]],
        times: str,
        unit: Unit,
        early: Any,
        state: KeyedState[Any, Any] | None,
        name: str | None,
    ) -> ArrowStream:
        """Windows whose rows wait until their times are final: runs, early results, or a listed state."""
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
        return self._of(
            in_time_order(self.scope, kinds.WINDOW_IN_ORDER, sides, kernel, made, state, name=name)
        )


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
    """Whether two types hold texts, or bytes, and differ at most in how they lay them out."""
    import pyarrow as pa

    texts = (pa.string(), pa.large_string(), pa.string_view())
    raw = (pa.binary(), pa.large_binary(), pa.binary_view())
    return any(one in kind and other in kind for kind in (texts, raw))


def _cast(table: Any, schema: Any, operator: str) -> Any:
    """The columns of the types of a schema. What differs in layout only is made so when it is taken in.

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
