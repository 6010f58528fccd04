"""Collections of columns: rows with names and types, which no operator makes objects of."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce as fold
from operator import and_
from typing import TYPE_CHECKING, Any

from pointstamp import _core
from pointstamp._core import Expr, JoinKind, Reduction
from pointstamp._validation import column_name, count_of, function_of, suggesting
from pointstamp.api.classes import stream_of
from pointstamp.api.collection import Collection, Multiset, check_columns, check_scope, iterated
from pointstamp.api.collection_nodes import (
    concatenated,
    distinct_keys,
    joined,
    named_part,
    one,
    reduced,
)
from pointstamp.api.column_arguments import aggregations_of, key_names
from pointstamp.api.column_types import (
    aggregated,
    check_plain,
    check_types,
    columns_of,
    mean_of,
    reduction_of,
    schema_of,
    sum_of,
)
from pointstamp.capture.events import Capture
from pointstamp.errors import GraphError
from pointstamp.expr.expressions import key, left, record, right
from pointstamp.expr.of_batches import is_foreign
from pointstamp.plan import collections, shape
from pointstamp.plan.node import Form, Output

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from pointstamp.api.arrow_stream import ArrowStream
    from pointstamp.api.scope import Scope
    from pointstamp.capture.events import EventWriter
    from pointstamp.plan.node import Kind
    from pointstamp.types import Time

__all__ = ["ColumnCollection"]


@suggesting
class ColumnCollection(Multiset):
    """A multiset of rows with columns, that changes: what `Scope.new_collection` gives for a schema.

    Operators are those of `Collection`, and mean the same; keys are columns by name, and everything
    that is computed of rows is an expression over `col(name)` (see `pointstamp.expr.expressions`). No
    operator calls Python. Rows come in as record batches, and go out so.

    A null is a group and a record like any other value, but a join finds no match for it, a condition or
    calculation with it is unknown, and reductions skip it; the chapter on missing values has a table.

    Attributes:
        scope: The scope that the collection is in.

    Examples:
        >>> import pyarrow as pa
        >>> import pointstamp as ps
        >>> from pointstamp import col
        >>> def main(worker):
        ...     schema = pa.schema({"city": pa.string(), "rain": pa.int64()})
        ...     with worker.dataflow() as scope:
        ...         days, collection = scope.new_collection(schema=schema)
        ...         wet = collection.filter(col("rain") > 0).sum("rain", by="city").capture()
        ...     days.insert(pa.table({"city": ["Ulm", "Bonn", "Ulm"], "rain": [3, 0, 4]}, schema=schema))
        ...     days.advance_to(1)
        ...     days.remove(pa.table({"city": ["Ulm"], "rain": [4]}, schema=schema))
        ...     days.close()
        ...     worker.run()
        ...     return wet.extract()
        >>> [changes] = ps.execute(main)
        >>> for time, batch in changes:
        ...     print(time, batch.to_pylist())
        0 [{'city': 'Ulm', 'rain': 7, 'diff': 1}]
        1 [{'city': 'Ulm', 'rain': 3, 'diff': 1}, {'city': 'Ulm', 'rain': 7, 'diff': -1}]
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<ColumnCollection of {', '.join(self.schema.names)} in {self.scope!r}>"

    @property
    def schema(self) -> pa.Schema:
        """The schema of the columns."""
        schema: pa.Schema = self._columns.to_pyarrow()
        return schema

    def _one(
        self, kind: Kind, name: str | None, *, schema: _core.Schema | None = None, **arguments: Any
    ) -> ColumnCollection:
        """Adds a node that makes rows of the rows, of the same columns unless a schema is given."""
        schema = schema or self._columns
        made = one(self.scope, kind, self._output, schema=schema, name=name, **arguments)
        return ColumnCollection(self.scope, made)

    def _index(self, name: str) -> int:
        return self._columns.key([name])[0]

    # ------------------------------------------------------------ row by row

    def select(self, *columns: str, **fields: Expr | object) -> ColumnCollection:
        """Some of the columns, and others that are computed.

        Args:
            columns: Names of columns, which are kept as they are.
            fields: Expressions over columns (of this package, pyarrow or Polars), or constants, by the names
                that the columns get.

        Raises:
            GraphError: If there is no such column, two have one name, or an expression has no meaning for the
                types of its columns.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> from pointstamp import col
            >>> def build(scope):
            ...     items = scope.column_collection(pa.table({"name": ["tea"], "price": [3], "count": [4]}))
            ...     return items.select("name", total=col("price") * col("count")).capture()
            >>> [(time, batch)] = ps.example(build).extract()
            >>> batch.to_pylist()
            [{'name': 'tea', 'total': 12, 'diff': 1}]
        """
        wanted: dict[str, Any]
        wanted = {name: _core.column_expr(column_name("select", name)) for name in columns}
        both = wanted.keys() & fields.keys()
        if both or len(wanted) < len(columns):
            raise GraphError(f"select would give two columns the name {min(both or columns)!r}")
        wanted |= fields
        if any(is_foreign(expr) for expr in wanted.values()):
            updates = self.updates()
            changes = updates.schema.names[-2:]
            return updates.with_columns(**fields).select(*wanted, *changes).to_collection(diffs=True)
        schema = _core.select_schema(self._columns, list(wanted), list(wanted.values()))
        return self._one(collections.SELECT, None, schema=schema, fields=wanted)

    def rename(self, columns: dict[str, str]) -> ColumnCollection:
        """The same rows, in which columns have other names: ``{"old": "new"}``.

        Raises:
            GraphError: If there is no such column, or two get one name.
        """
        if not isinstance(columns, Mapping):
            raise TypeError(
                f"rename takes the new names by the old ones, as in {{'a': 'b'}}, not {columns!r}"
            )
        for old in columns:
            self._index(old)
        schema = self.schema
        renamed = [columns.get(name, name) for name in schema.names]
        if len(set(renamed)) < len(renamed):
            raise GraphError(f"after this rename two columns would have one name: {', '.join(renamed)}")
        columns_of_result = _typed(schema, [(name, None) for name in renamed])
        return self._one(collections.RENAME, None, schema=columns_of_result)

    def filter(self, condition: Any, *, name: str | None = None) -> ColumnCollection:
        """Keeps the rows of which a condition on the columns is true.

        Args:
            condition: An expression such as ``ps.col("n") > 1``, or one of pyarrow or Polars.
            name: The operator's name.

        Raises:
            GraphError: If there is no such column, or the condition has no meaning for the types.
            TypeError: If it is no expression: Python functions are for `Collection`.
        """
        if is_foreign(condition):
            return self.updates().filter(condition, name=name).to_collection(diffs=True)
        if not isinstance(condition, Expr):
            raise TypeError(
                "a collection of columns is filtered by an expression such as col('a') > 1, not "
                f"{condition!r}"
            )
        _core.check_filter(self._columns, condition)
        return self._one(collections.FILTER_COLUMNS, name, condition=condition)

    # ------------------------------------------------------------ multisets

    def concat(self, *others: ColumnCollection, name: str | None = None) -> ColumnCollection:
        """The rows of this collection and the others, which have its schema.

        Raises:
            GraphError: If another schema or scope differs.
        """
        for other in others:
            check_scope("concat", self.scope, other, ColumnCollection)
            check_columns(self._columns, other, "concat")
        outputs = [self._output, *(other._output for other in others)]
        return ColumnCollection(self.scope, concatenated(self.scope, outputs, name=name))

    def negate(self, *, name: str | None = None) -> ColumnCollection:
        """Negates the counts; `Collection.negate` of columns."""
        return self._one(collections.NEGATE, name)

    def consolidate(self, *, name: str | None = None) -> ColumnCollection:
        """Adds up the updates; `Collection.consolidate` of columns."""
        return self._one(collections.CONSOLIDATE, name)

    def distinct(self, *, name: str | None = None) -> ColumnCollection:
        """Each row that is there once or more, once."""
        kind, reduction = collections.DISTINCT, Reduction.DISTINCT
        once = reduced(self.scope, kind, self._output, reduction, schema=self._columns, name=name)
        return ColumnCollection(self.scope, once)

    def value_counts(self, column: str = "count", *, name: str | None = None) -> ColumnCollection:
        """Each row with how often it is there, in one more column.

        Raises:
            GraphError: If there is a column of that name.
        """
        schema = self.schema
        flat = tuple(record[0][index] for index in range(len(schema)))
        columns = [*((field.name, field.type) for field in schema), (column, "int64")]
        counted = reduced(self.scope, collections.COUNT, self._output, Reduction.COUNT, name=name)
        return self._flat((*flat, record[1]), counted, _typed(schema, columns), name)

    # ------------------------------------------------------------ by key

    def join(
        self,
        other: ColumnCollection,
        on: str | Sequence[str],
        *,
        suffix: str = "_right",
        name: str | None = None,
    ) -> ColumnCollection:
        """Joins rows with equal keys: the key's columns, the others of this side, and those of the other.

        A null in a key matches nothing.

        Args:
            other: The right side.
            on: The key's column, or columns, on both sides.
            suffix: Added to names of the right side that the left side has, too.
            name: The operator's name.

        Raises:
            GraphError: If there is no such column, its type differs between the sides, the result would have
                two columns of one name, or `other` is of another scope.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     ages = scope.column_collection(pa.table({"name": ["ann", "bob"], "age": [41, 7]}))
            ...     towns = scope.column_collection(pa.table({"town": ["Ulm"], "name": ["ann"]}))
            ...     return ages.join(towns, on="name").capture()
            >>> [(time, batch)] = ps.example(build).extract()
            >>> batch.to_pylist()
            [{'name': 'ann', 'age': 41, 'town': 'Ulm', 'diff': 1}]
        """
        by = self._same_key("join", other, on)
        mine, theirs = self._rest(by), other._rest(by)
        taken = {*by, *mine}
        renamed = [name + suffix if name in taken else name for name in theirs]
        parts = (*columns_of(key, by), *columns_of(left, mine), *columns_of(right, theirs))
        here, there = self.schema, other.schema
        own = [(name, here.field(name).type) for name in (*by, *mine)]
        others = [(to, there.field(name).type) for name, to in zip(theirs, renamed, strict=True)]
        schema = _typed(here, [*own, *others])
        pairs = self._with_keys(by, name)._pairs(by, mine, name)
        right_side = other._with_keys(by, name)._pairs(by, theirs, name), Form.BY_KEY
        kind, fields = collections.JOIN, JoinKind.FIELDS
        made = joined(self.scope, kind, pairs, right_side, fields, parts, schema=schema, name=name)
        return ColumnCollection(self.scope, made)

    def semijoin(
        self, other: ColumnCollection, on: str | Sequence[str], *, name: str | None = None
    ) -> ColumnCollection:
        """Keeps the rows whose key the other collection has, however often; a key with a null is in none.

        Raises:
            GraphError: If there is no such column, its type differs, or `other` is of another scope.
        """
        by = self._same_key("semijoin", other, on)
        rest = self._rest(by)
        known = other._with_keys(by, name)
        keys = known._projected(known._part(by), named_part(name, "map"))
        there = distinct_keys(self.scope, keys, named_part(name, "keys"))
        at = dict(zip((*by, *rest), (*columns_of(key, by), *columns_of(left, rest)), strict=True))
        flat = tuple(at[name] for name in self.schema.names)
        pairs = self._with_keys(by, name)._pairs(by, rest, name)
        made = joined(
            self.scope,
            collections.SEMIJOIN,
            pairs,
            there,
            JoinKind.FIELDS,
            flat,
            schema=self._columns,
            name=name,
        )
        return ColumnCollection(self.scope, made)

    def antijoin(
        self, other: ColumnCollection, on: str | Sequence[str], *, name: str | None = None
    ) -> ColumnCollection:
        """Keeps the rows whose key the other collection does not have, and so those whose key has a null.

        Raises:
            GraphError: If there is no such column, its type differs, or `other` is of another scope.
        """
        met = self.semijoin(other, on, name=named_part(name, "semijoin"))
        return self.concat(met.negate(name=named_part(name, "negate")), name=name)

    def min(
        self, of: str | Sequence[str], *, by: str | Sequence[str], name: str | None = None
    ) -> ColumnCollection:
        """Finds the least value of each key: the key's columns, and the value's.

        Nulls are skipped, and so is NaN where a key has other values; of nulls alone there is null.

        Args:
            of: The value's column, or columns, which are compared one after another. A value of several is
                skipped for a null or NaN in the first.
            by: The key's column, or columns.
            name: The operator's name.

        Raises:
            GraphError: If there is no such column, or one is in both.
        """
        return self._reduced(collections.MIN, of, by, name)

    def max(
        self, of: str | Sequence[str], *, by: str | Sequence[str], name: str | None = None
    ) -> ColumnCollection:
        """The greatest value of each key; as `min`."""
        return self._reduced(collections.MAX, of, by, name)

    def top_k(
        self, n: int, order: str | Sequence[str], *, by: str | Sequence[str], name: str | None = None
    ) -> ColumnCollection:
        """Finds the `n` greatest values of each key, of which one that is there twice counts twice.

        A NaN is less than all other numbers here, and a null less than that, as in `ArrowStream.sort`.
        Arguments and errors are those of `min`.
        """
        n = count_of("top_k takes a number of values", n)
        return self._reduced(collections.TOP_K, order, by, name, most=n)

    def sum(self, of: str, *, by: str | Sequence[str], name: str | None = None) -> ColumnCollection:
        """Adds up each key's values: the key's columns, and the value's, of 64 bits.

        Nulls are skipped; of nulls alone there is null.

        Raises:
            GraphError: If there is no such column, or its values are no numbers.
        """
        made = [sum_of(self.schema.field(self._index(of)))]
        return self._reduced(collections.SUM, of, by, name, made=made)

    def mean(self, of: str, *, by: str | Sequence[str], name: str | None = None) -> ColumnCollection:
        """The mean of each key's values, as a double; as `sum`."""
        made = [mean_of(self.schema.field(self._index(of)))]
        return self._reduced(collections.MEAN, of, by, name, made=made)

    def count(
        self, by: str | Sequence[str], column: str = "count", *, name: str | None = None
    ) -> ColumnCollection:
        """Counts the rows of each key: the key's columns, and the count.

        Raises:
            GraphError: If there is no such column, or the key has one of the count's name.
        """
        keys = self._key(by)
        flat = (*columns_of(record[0], keys), record[1])
        schema = self._keyed(keys, [(column, "int64")])
        pairs = self._pairs(keys, [], name)
        counted = reduced(self.scope, collections.COUNT_BY_KEY, pairs, Reduction.COUNT_BY_KEY, name=name)
        return self._flat(flat, counted, schema, name)

    def aggregate(
        self, by: str | Sequence[str], aggregations: Sequence[tuple[str, str]], *, name: str | None = None
    ) -> ColumnCollection:
        """Several aggregations of each key's rows in one: the key's columns, and one for each of them.

        As in `ArrowStream.aggregate`, nulls are skipped; of no value there is null, and a count of 0.

        Args:
            by: The key's column, or columns.
            aggregations: ``(column, function)`` pairs; a function is ``"sum"``, ``"count"``, ``"min"``,
                ``"max"`` or ``"mean"``, and its column is named ``"column_function"``.
            name: The operator's name.

        Raises:
            GraphError: If there is no such column or function, or the function is not defined for the column.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     sales = pa.table({"city": ["Ulm", "Bonn", "Ulm"], "price": [3, 5, 4]})
            ...     wanted = [("price", "sum"), ("price", "max"), ("price", "count")]
            ...     return scope.column_collection(sales).aggregate("city", wanted).capture()
            >>> [(time, batch)] = ps.example(build).extract()
            >>> batch.drop_columns(["diff"]).to_pylist()[1]
            {'city': 'Ulm', 'price_sum': 7, 'price_max': 4, 'price_count': 2}
        """
        keys = self._key(by)
        of, wanted, made = aggregated(self.schema, self._key, aggregations_of(aggregations))
        values = tuple(record[self._index(name)] for name in of)
        flat = (*columns_of(record[0], keys), *(record[1][index] for index in range(len(made))))
        schema = self._keyed(keys, made)
        pairs = self._projected((self._part(keys), values), named_part(name, "map"))
        kind, reduction = collections.AGGREGATE, Reduction.AGGREGATE
        aggregates = reduced(self.scope, kind, pairs, reduction, wanted, name=name)
        return self._flat(flat, aggregates, schema, name)

    def map_groups(
        self,
        fn: Callable[[Any, list[tuple[Any, int]]], Any],
        *,
        by: str | Sequence[str],
        of: str | Sequence[str],
        schema: pa.Schema,
        name: str | None = None,
    ) -> ColumnCollection:
        """Makes results of each key's values by a function: the key's columns, and those of the results.

        Args:
            fn: As in `Collection.map_groups`: called with a key and a list of ``(value, count)``; returns its
                results. A key, a value or a result is that of its column, and of several columns a tuple.
            by: The key's column, or columns.
            of: The value's column, or columns.
            schema: The columns of a result.
            name: The operator's name.

        Raises:
            GraphError: If there is no such column, or one that is neither of integers nor of strings.
        """
        keys, values = self._key(by), self._key(of)
        check_plain("reduce", [*(self.schema.field(name) for name in (*keys, *values)), *schema])
        function = function_of("map_groups", fn)
        flat = (*columns_of(record[0], keys), *columns_of(record[1], schema.names))
        columns = self._keyed(keys, [*zip(schema.names, schema.types, strict=True)])
        pairs = self._pairs(keys, values, name)
        results = reduced(self.scope, collections.REDUCE, pairs, Reduction.REDUCE, function, name=name)
        return self._flat(flat, results, columns, name)

    def _reduced(
        self,
        kind: Kind,
        of: str | Sequence[str],
        by: str | Sequence[str],
        name: str | None,
        *,
        most: int | None = None,
        made: Any = None,
    ) -> ColumnCollection:
        keys, values = self._key(by), self._key(of)
        before = self.schema
        reduction: Reduction
        argument: tuple[Any, int]
        if most is not None:
            reduction, argument = Reduction.TOP_K_OF_COLUMNS, (most, len(values))
        else:
            how = reduction_of(kind.name, before.field(self._index(values[0])))
            reduction, argument = Reduction.OF_COLUMNS, (how, len(values))
        types = made or [before.field(column).type for column in values]
        flat = (*columns_of(record[0], keys), *columns_of(record[1], values))
        schema = self._keyed(keys, [*zip(values, types, strict=True)])
        pairs = self._pairs(keys, values, name)
        results = reduced(self.scope, kind, pairs, reduction, argument, name=name)
        return self._flat(flat, results, schema, name)

    def _key(self, by: str | Sequence[str]) -> list[str]:
        keys = key_names(by)
        self._columns.key(keys)
        return keys

    def _same_key(self, operator: str, other: Any, on: str | Sequence[str]) -> list[str]:
        check_scope(operator, self.scope, other, ColumnCollection)
        by = self._key(on)
        other._key(on)
        check_types(operator, self.schema, other.schema, by)
        return by

    def _with_keys(self, by: list[str], name: str | None) -> ColumnCollection:
        """The rows without those that have a null in the key, which no join matches."""
        schema = self.schema
        known = [~record[self._index(one)].is_null() for one in by if schema.field(one).nullable]
        if not known:
            return self
        part = f"{name}: null keys" if name else "null keys"
        return self._one(collections.FILTER_FIELDS, part, condition=fold(and_, known))

    def _rest(self, by: list[str]) -> list[str]:
        return [name for name in self.schema.names if name not in by]

    def _part(self, columns: list[str]) -> Any:
        """The value of some columns: of one column itself, of several a tuple, and of none None."""
        parts = tuple(record[self._index(name)] for name in columns)
        return parts[0] if len(parts) == 1 else parts or None

    def _projected(self, fields: Any, name: str | None) -> Output:
        """Records that an expression makes of the rows."""
        return one(self.scope, collections.PROJECT, self._output, name=name, fields=fields)

    def _pairs(self, by: list[str], values: list[str], name: str | None) -> Output:
        """Pairs of the values of a key's columns and of others."""
        return self._projected((self._part(by), self._part(values)), named_part(name, "map"))

    def _flat(self, fields: Any, results: Output, schema: _core.Schema, name: str | None) -> ColumnCollection:
        """Rows that an expression makes of records."""
        part = named_part(name, "map")
        rows = one(self.scope, collections.PROJECT, results, schema=schema, name=part, fields=fields)
        return ColumnCollection(self.scope, rows)

    def _keyed(self, keys: list[str], columns: Sequence[tuple[str, Any]]) -> _core.Schema:
        """The schema of a key's columns and of others, by name and type."""
        schema = self.schema
        return _typed(schema, [*((name, schema.field(name).type) for name in keys), *columns])

    # ------------------------------------------------------------ scopes and loops

    def iterate(
        self, fn: Callable[[Scope, ColumnCollection], ColumnCollection], *, name: str = "Iterate"
    ) -> ColumnCollection:
        """Iterates as `Collection.iterate`: the function's result has this collection's schema.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     edges = scope.column_collection(pa.table({"a": [1, 2, 3], "b": [2, 3, 4]}))
            ...     def further(inner, paths):
            ...         first = paths.rename({"b": "over"})
            ...         last = edges.enter(inner).rename({"a": "over"})
            ...         longer = first.join(last, on="over").select("a", "b")
            ...         return longer.concat(edges.enter(inner)).distinct()
            ...     return edges.iterate(further).capture()
            >>> [(time, batch)] = ps.example(build).extract()
            >>> list(zip(*batch.select(["a", "b"]).to_pydict().values()))
            [(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)]
        """
        return iterated(self, fn, name)

    # ------------------------------------------------------------ out

    def to_records(self) -> Collection[tuple[Any, ...]]:
        """The rows as a collection of tuples, for Python functions and for `pointstamp.graphs`.

        Columns of integers and of strings can be taken so. Nothing is copied.

        Raises:
            GraphError: If a column is of another type.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> from pointstamp import graphs
            >>> def build(scope):
            ...     edges = scope.column_collection(pa.table({"from": [1, 3, 4], "to": [2, 2, 5]}))
            ...     return graphs.connected_components(edges.to_records()).capture()
            >>> ps.example(build).extract()
            [(0, [((1, 1), 1), ((2, 1), 1), ((3, 1), 1), ((4, 4), 1), ((5, 4), 1)])]
        """
        check_plain("to_records", self.schema)
        return Collection(self.scope, one(self.scope, collections.TO_RECORDS, self._output))

    @property
    def _columns(self) -> _core.Schema:
        """The extension's schema of the columns."""
        schema = self._output.schema
        assert schema is not None
        return schema

    def updates(self, *, name: str | None = None) -> ArrowStream:
        """The updates, as record batches with a column ``time`` and a column ``diff`` more.

        Each is at its own time in the stream, too; of one row and time there may be several. Times of
        several coordinates are lists. The two are the last columns, also where the collection has one of
        such a name: tell them by their places.
        """
        schema = _core.column_updates_schema(self._columns, self.scope.dims)
        made = Output(Form.COLUMNS, schema)
        self.scope._append(collections.COLUMN_UPDATES, [self._output], made, name=name)
        stream: ArrowStream = stream_of(self.scope, made)
        return stream

    def capture_into(self, writer: EventWriter, *, name: str | None = None) -> None:
        """Writes the `updates`; ``scope.replay(...).to_collection(diffs=True)`` makes a collection of it."""
        self.updates(name=named_part(name, "updates")).capture_into(writer, name=name)

    def capture(self, *, name: str | None = None) -> ColumnCapture:
        """Keeps the updates on this worker in memory."""
        capture = ColumnCapture(self._columns, self.scope.index, self.scope.peers)
        self.scope._append(shape.CAPTURE, [self._output], name=name, queue=capture._queue)
        return capture


class ColumnCapture(Capture[Any]):
    """The updates of a collection of columns on one worker. It may be read from any thread, and after."""

    __slots__ = ("_columns",)

    def __init__(self, columns: _core.Schema, worker: int = 0, peers: int = 1) -> None:
        super().__init__(worker, peers)
        self._columns = columns

    def extract(self) -> list[tuple[Time, Any]]:
        """The changes per time, in the order of times: a record batch with a column ``diff`` more.

        They are added up, without zeros, in the order of rows.
        """
        changes = _core.extract_column_updates(self._queue, self._columns)
        self._check_empty(changes)
        return changes


def _typed(before: pa.Schema, columns: Sequence[tuple[str, Any]]) -> _core.Schema:
    """A schema of names and types; None for the type that the column has in the one before."""
    return _core.Schema(schema_of(before, columns))
