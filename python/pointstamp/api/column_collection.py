"""Collections of columns: rows with names and types, which no operator makes objects of."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce as fold
from operator import or_
from typing import TYPE_CHECKING, Any, Literal

from pointstamp import _core
from pointstamp._core import Expr, Reduction
from pointstamp._validation import choice_of, column_name, count_of, function_of, suggesting
from pointstamp.api.classes import stream_of
from pointstamp.api.collection import (
    Collection,
    Multiset,
    check_columns,
    check_scope,
    iterated,
)
from pointstamp.api.collection_nodes import (
    brought_in,
    concatenated,
    named_part,
    one,
    reduced,
)
from pointstamp.api.column_arguments import OF_COLLECTIONS, Aggregates, for_each, key_names
from pointstamp.api.column_join import ColumnJoin
from pointstamp.api.column_types import (
    accumulates,
    aggregated,
    check_plain,
    check_types,
    columns_of,
    mean_of,
    reduction_of,
    schema_of,
    sum_of,
)
from pointstamp.api.column_windows import FRAMES, Windows
from pointstamp.capture.events import Capture
from pointstamp.errors import GraphError
from pointstamp.expr.batch_functions import is_foreign
from pointstamp.expr.expressions import count, record
from pointstamp.logic.join_kinds import check_how, one_sided, outer_sides
from pointstamp.pacts import Gather
from pointstamp.plan import collections, shape
from pointstamp.plan.node import Form, Output

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from pointstamp._core import Aggregate
    from pointstamp.api.arrow_stream import ArrowStream
    from pointstamp.api.scope import Scope
    from pointstamp.capture.events import EventWriter
    from pointstamp.logic.join_kinds import How, OneSided
    from pointstamp.plan.node import Kind
    from pointstamp.types import Time

__all__ = ["ColumnCollection"]


@suggesting
class ColumnCollection(Multiset):
    """A multiset of rows with columns that changes: the result of `Scope.new_collection` with a schema.

    Operators are those of `Collection`, with the same meaning; keys are columns by name, and functions of
    rows are expressions over `col(name)` (see `pointstamp.expr.expressions`). No operator calls Python. Input
    and output are record batches.

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

    def select(self, *columns: str, **exprs: Expr | object) -> ColumnCollection:
        """Some of the columns, and others that are computed.

        Args:
            columns: Names of columns, which are kept as they are.
            exprs: Expressions over columns (of this package, pyarrow or Polars), or constants, by the names
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
        both = wanted.keys() & exprs.keys()
        if both or len(wanted) < len(columns):
            raise GraphError(f"select would give two columns the name {min(both or columns)!r}")
        return self._selected(wanted | exprs, exprs)

    def with_columns(self, **exprs: Expr | object) -> ColumnCollection:
        """The rows with further columns, which replace columns of the same names.

        Args:
            exprs: As in `select`.

        Raises:
            GraphError: If an expression has no meaning for the types of its columns.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     items = scope.column_collection(pa.table({"price": [3], "count": [4]}))
            ...     total = ps.col("price") * ps.col("count")
            ...     return items.with_columns(price=ps.col("price") + 1, total=total).capture()
            >>> [(time, batch)] = ps.example(build).extract()
            >>> batch.to_pylist()
            [{'price': 4, 'count': 4, 'total': 12, 'diff': 1}]
        """
        kept = {name: _core.column_expr(name) for name in self.schema.names}
        return self._selected(kept | exprs, exprs)

    def _selected(self, wanted: dict[str, Any], exprs: dict[str, Any]) -> ColumnCollection:
        """The columns that expressions compute, some of which may be of pyarrow or Polars."""
        if any(is_foreign(expr) for expr in exprs.values()):
            updates = self.updates()
            changes = updates.schema.names[-2:]
            return updates.with_columns(**exprs).select(*wanted, *changes).to_collection(diffs=True)
        schema = _core.select_schema(self._columns, list(wanted), list(wanted.values()))
        return self._one(collections.SELECT, None, schema=schema, fields=wanted)

    def rename(self, names: Mapping[str, str]) -> ColumnCollection:
        """The same rows, with new names for some columns.

        Args:
            names: The new name of each column that gets one.

        Raises:
            GraphError: If there is no such column, or two get one name.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     return scope.column_collection(pa.table({"n": [1]})).rename({"n": "number"}).capture()
            >>> [changes.to_pylist() for _, changes in ps.example(build).extract()]
            [[{'number': 1, 'diff': 1}]]
        """
        if not isinstance(names, Mapping):
            raise TypeError(f"rename takes the new names by the old ones, as in {{'a': 'b'}}, not {names!r}")
        for old in names:
            self._index(old)
        schema = self.schema
        renamed = [names.get(column, column) for column in schema.names]
        if len(set(renamed)) < len(renamed):
            raise GraphError(f"after this rename two columns would have one name: {', '.join(renamed)}")
        columns_of_result = _typed(schema, [(column, None) for column in renamed])
        return self._one(collections.RENAME, None, schema=columns_of_result)

    def filter(self, condition: Any, *, name: str | None = None) -> ColumnCollection:
        """Keeps the rows of which a condition on the columns is true.

        Args:
            condition: An expression such as ``ps.col("n") > 1``, or one of pyarrow or Polars.
            name: The operator's name.

        Raises:
            GraphError: If there is no such column, or the condition has no meaning for the types.
            TypeError: If it is no expression: Python functions are for `Collection`.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     rows = scope.column_collection(pa.table({"n": [1, 2, 3]}))
            ...     return rows.filter(ps.col("n") > 1).capture()
            >>> [changes.to_pylist() for _, changes in ps.example(build).extract()]
            [[{'n': 2, 'diff': 1}, {'n': 3, 'diff': 1}]]
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

    def concat(self, *more: ColumnCollection, name: str | None = None) -> ColumnCollection:
        """The rows of this collection and the others, which have its schema.

        Raises:
            GraphError: If another schema or scope differs.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     first = scope.column_collection(pa.table({"n": [1, 2]}))
            ...     return first.concat(scope.column_collection(pa.table({"n": [2]}))).capture()
            >>> [changes.to_pylist() for _, changes in ps.example(build).extract()]
            [[{'n': 1, 'diff': 1}, {'n': 2, 'diff': 2}]]
        """
        for other in more:
            check_scope("concat", self.scope, other, ColumnCollection)
            check_columns(self._columns, other, "concat")
        outputs = [self._output, *(other._output for other in more)]
        return ColumnCollection(self.scope, concatenated(self.scope, outputs, name=name))

    def negate(self, *, name: str | None = None) -> ColumnCollection:
        """Negates the counts; `Collection.negate` of columns.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     everyone = scope.column_collection(pa.table({"name": ["ann", "bob"]}))
            ...     gone = scope.column_collection(pa.table({"name": ["bob"]}))
            ...     return everyone.concat(gone.negate()).capture()
            >>> [changes.to_pylist() for _, changes in ps.example(build).extract()]
            [[{'name': 'ann', 'diff': 1}]]
        """
        return self._one(collections.NEGATE, name)

    def consolidate(self, *, name: str | None = None) -> ColumnCollection:
        """Adds up the updates; `Collection.consolidate` of columns.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     rows = scope.column_collection(pa.table({"n": [1]}))
            ...     nothing = rows.concat(rows.negate()).consolidate()
            ...     return nothing.updates().count().capture()
            >>> ps.example(build).extract()
            []
        """
        return self._one(collections.CONSOLIDATE, name)

    def distinct(self, *, name: str | None = None) -> ColumnCollection:
        """Each row that is there once or more, once.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     return scope.column_collection(pa.table({"n": [1, 2, 1]})).distinct().capture()
            >>> [changes.to_pylist() for _, changes in ps.example(build).extract()]
            [[{'n': 1, 'diff': 1}, {'n': 2, 'diff': 1}]]
        """
        kind, reduction = collections.DISTINCT, Reduction.DISTINCT
        once = reduced(self.scope, kind, self._output, reduction, schema=self._columns, name=name)
        return ColumnCollection(self.scope, once)

    def union(
        self, other: ColumnCollection, *, distinct: bool = True, name: str | None = None
    ) -> ColumnCollection:
        """Rows of this collection or another one, each once; SQL's UNION.

        Args:
            other: A collection of the same columns.
            distinct: Whether each row is there once; otherwise counts are added up, as by `concat`.
            name: The operator's name.

        Raises:
            GraphError: If the other's schema or scope differs.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     first = scope.column_collection(pa.table({"n": [1, 2]}))
            ...     return first.union(scope.column_collection(pa.table({"n": [2, 3]}))).capture()
            >>> [changes["n"].to_pylist() for _, changes in ps.example(build).extract()]
            [[1, 2, 3]]
        """
        both = self.concat(other, name=named_part(name, "concat") if distinct else name)
        return both.distinct(name=name) if distinct else both

    def intersect(
        self, other: ColumnCollection, *, distinct: bool = True, name: str | None = None
    ) -> ColumnCollection:
        """Rows that this collection and another one have, each once; SQL's INTERSECT.

        Args:
            other: A collection of the same columns.
            distinct: Whether each row is there once; otherwise as often as in the side that has fewer of it.
            name: The operator's name.

        Raises:
            GraphError: If the other's schema or scope differs.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     first = scope.column_collection(pa.table({"n": [1, 2, 2, 2]}))
            ...     other = scope.column_collection(pa.table({"n": [2, 2, 3]}))
            ...     return first.intersect(other, distinct=False).capture()
            >>> [changes.to_pylist() for _, changes in ps.example(build).extract()]
            [[{'n': 2, 'diff': 2}]]
        """
        here = self.distinct(name=named_part(name, "distinct")) if distinct else self
        rest = self.except_(other, distinct=distinct, name=named_part(name, "except"))
        return here.concat(rest.negate(name=named_part(name, "negate")), name=name)

    def except_(
        self, other: ColumnCollection, *, distinct: bool = True, name: str | None = None
    ) -> ColumnCollection:
        """Rows of this collection that another one does not have, each once; SQL's EXCEPT.

        Args:
            other: A collection of the same columns.
            distinct: Whether each row is there once; otherwise each row of the other takes one away.
            name: The operator's name.

        Raises:
            GraphError: If the other's schema or scope differs.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     first = scope.column_collection(pa.table({"n": [1, 2, 2]}))
            ...     other = scope.column_collection(pa.table({"n": [2, 3]}))
            ...     return first.except_(other, distinct=False).capture()
            >>> [changes.to_pylist() for _, changes in ps.example(build).extract()]
            [[{'n': 1, 'diff': 1}, {'n': 2, 'diff': 1}]]
        """
        check_scope("except_", self.scope, other, ColumnCollection)
        part, negated = named_part(name, "distinct"), named_part(name, "negate")
        here, there = (self.distinct(name=part), other.distinct(name=part)) if distinct else (self, other)
        less = here.concat(there.negate(name=negated), name=named_part(name, "concat"))
        if distinct:
            return less.distinct(name=name)
        kind, reduction = collections.THRESHOLD, Reduction.THRESHOLD
        positive = reduced(
            self.scope,
            kind,
            less._output,
            reduction,
            schema=self._columns,
            name=named_part(name, "threshold"),
        )
        return ColumnCollection(self.scope, positive)

    def value_counts(self, into: str = "count", *, name: str | None = None) -> ColumnCollection:
        """Each row with its count, in one more column.

        Args:
            into: The name of the column.
            name: The operator's name.

        Raises:
            GraphError: If there is a column of that name.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     return scope.column_collection(pa.table({"n": [1, 2, 1]})).value_counts().capture()
            >>> [changes.to_pylist() for _, changes in ps.example(build).extract()]
            [[{'n': 1, 'count': 2, 'diff': 1}, {'n': 2, 'count': 1, 'diff': 1}]]
        """
        schema = self.schema
        flat = tuple(record[0][index] for index in range(len(schema)))
        columns = [*((field.name, field.type) for field in schema), (into, "int64")]
        counted = reduced(self.scope, collections.COUNT, self._output, Reduction.COUNT, name=name)
        return self._flat((*flat, record[1]), counted, _typed(schema, columns), name)

    # ------------------------------------------------------------ by key

    def join(
        self,
        other: ColumnCollection,
        on: str | Sequence[str],
        *,
        how: How | OneSided = "inner",
        suffix: str = "_right",
        nulls_equal: bool = False,
        name: str | None = None,
    ) -> ColumnCollection:
        """Joins rows with equal keys: the key's columns, the others of this side, and the other side's.

        A null in a key matches nothing, unless nulls are equal.

        Args:
            other: The right side.
            on: The key's column, or columns, on both sides.
            how: The sides whose rows without a match are in the result, with nulls in the other side's
                columns: this side (``"left"``), the other (``"right"``), both (``"full"``), or none
                (``"inner"``). ``"semi"`` keeps the rows of this side that have a match, unchanged and with
                their counts; ``"anti"`` keeps those that have none.
            suffix: Added to names of the right side that the left side has, too.
            nulls_equal: Whether a null in a key equals a null in the same column of the other side.
            name: The operator's name.

        Raises:
            GraphError: If there is no such column, its type differs between the sides, the result would have
                two columns of one name, or `other` is of another scope.
            ValueError: If `how` is another text.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     ages = scope.column_collection(pa.table({"name": ["ann", "bob"], "age": [41, 7]}))
            ...     towns = scope.column_collection(pa.table({"town": ["Ulm"], "name": ["ann"]}))
            ...     return ages.join(towns, on="name", how="left").capture()
            >>> [(time, batch)] = ps.example(build).extract()
            >>> for row in batch.to_pylist():
            ...     print(row)
            {'name': 'ann', 'age': 41, 'town': 'Ulm', 'diff': 1}
            {'name': 'bob', 'age': 7, 'town': None, 'diff': 1}
        """
        check_how(how)
        by = self._same_key("join", other, on)
        joins = ColumnJoin(self, other, by, name, nulls_equal=nulls_equal)
        if one_sided(how):
            met = joins.semi(name if how == "semi" else named_part(name, "matched"))
            if how == "semi":
                return met
            return self.concat(met.negate(name=named_part(name, "negate")), name=name)
        left, right = outer_sides(how)
        return joins.pairs(suffix, left=left, right=right)

    def min(
        self, of: str | Sequence[str], *, by: str | Sequence[str], name: str | None = None
    ) -> ColumnCollection:
        """Finds the least value of each key: the key's columns, and the value's.

        Nulls are skipped; of nulls alone there is null. NaN is the greatest number.

        Args:
            of: The value's column, or columns, which are compared one after another. A value of several is
                skipped for a null in the first.
            by: The key's column, or columns.
            name: The operator's name.

        Raises:
            GraphError: If there is no such column, or one is in both.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> rain = pa.table({"city": ["Ulm", "Ulm"], "mm": [3, 4]})
            >>> def build(scope):
            ...     return scope.column_collection(rain).min("mm", by="city").capture()
            >>> captured = ps.example(build)
            >>> [changes.to_pylist() for _, changes in captured.extract()]
            [[{'city': 'Ulm', 'mm': 3, 'diff': 1}]]
        """
        return self._reduced(collections.MIN, of, by, name)

    def max(
        self, of: str | Sequence[str], *, by: str | Sequence[str], name: str | None = None
    ) -> ColumnCollection:
        """The greatest value of each key; as `min`.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> rain = pa.table({"city": ["Ulm", "Ulm"], "mm": [3, 4]})
            >>> def build(scope):
            ...     return scope.column_collection(rain).max("mm", by="city").capture()
            >>> captured = ps.example(build)
            >>> [changes.to_pylist() for _, changes in captured.extract()]
            [[{'city': 'Ulm', 'mm': 4, 'diff': 1}]]
        """
        return self._reduced(collections.MAX, of, by, name)

    def top_k(
        self,
        n: int | None,
        order: str | Sequence[str],
        *,
        by: str | Sequence[str],
        descending: bool | Sequence[bool] = True,
        nulls_first: bool | Sequence[bool] = False,
        offset: int = 0,
        others: str | Sequence[str] = (),
        name: str | None = None,
    ) -> ColumnCollection:
        """Keeps the first `n` rows of each key in an order; a row with count 2 counts twice.

        Rows that are alike in all columns of the order follow each other by the other columns. NaN is the
        greatest number.

        Args:
            n: The number of rows of a key; None for all but those that `offset` skips.
            order: The columns that the rows are ordered by.
            by: The key's column, or columns; an empty list takes all rows together.
            descending: Whether the greatest values come first, of all columns of the order or of each.
            nulls_first: Whether nulls come before all values, of all columns of the order or of each; by
                default they come last, whatever the direction.
            offset: The number of rows that are skipped first.
            others: Further columns that the result has.
            name: The operator's name.

        Raises:
            GraphError: If there is no such column, or two have one name.
            ValueError: If `n` is less than 1, `offset` is negative, or there are not as many directions as
                columns.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> rain = pa.table({"city": ["Ulm", "Ulm", "Ulm"], "mm": [3, 4, 9], "day": [1, 2, 3]})
            >>> def build(scope):
            ...     days = scope.column_collection(rain)
            ...     return days.top_k(2, "mm", by="city", others="day").capture()
            >>> captured = ps.example(build)
            >>> for time, changes in captured.extract():
            ...     print(changes.drop_columns(["diff"]).to_pylist())
            [{'city': 'Ulm', 'mm': 4, 'day': 2}, {'city': 'Ulm', 'mm': 9, 'day': 3}]
        """
        if n is not None:
            n = count_of("top_k takes a number of values", n)
        if offset < 0:
            raise ValueError(f"top_k skips a number of rows that is 0 or more, not {offset!r}")
        columns = self._key(order)
        directions = _directions(columns, descending, nulls_first)
        places = [(index, *direction) for index, direction in enumerate(directions)]
        values = [*columns, *(self._key(others) if key_names(others) else [])]
        keys = self._key(by) if key_names(by) else []
        values_of = tuple(record[self._index(value)] for value in values)
        flat = (*columns_of(record[0], keys), *(record[1][index] for index in range(len(values))))
        before = self.schema
        schema = self._keyed(keys, [(value, before.field(value).type) for value in values])
        pairs = self._projected((self._part(keys), values_of), named_part(name, "map"))
        kind, argument = collections.TOP_K, (n, offset, places)
        ranked = reduced(self.scope, kind, pairs, Reduction.RANKED, argument, name=name)
        return self._flat(flat, ranked, schema, name)

    def collect(
        self,
        of: str,
        *,
        by: str | Sequence[str],
        order: str | Sequence[str] = (),
        descending: bool | Sequence[bool] = False,
        nulls_first: bool | Sequence[bool] = False,
        into: str | None = None,
        name: str | None = None,
    ) -> ColumnCollection:
        """Lists the values of each key in an order: the key's columns, and the list; SQL's ``array_agg``.

        Nulls are elements like others. Rows that are alike in all columns of the order follow each other by
        their values. A change makes the list of its key again.

        Args:
            of: The column whose values are listed.
            by: The key's column, or columns; an empty list takes all rows together.
            order: The columns that the values are ordered by; without any, by themselves.
            descending: Whether the greatest values come first, of all columns of the order or of each.
            nulls_first: Whether nulls come before all values, of all columns of the order or of each; by
                default they come last, whatever the direction.
            into: The name of the column of lists; None for that of the values.
            name: The operator's name.

        Raises:
            GraphError: If there is no such column, or two have one name.
            ValueError: If there are not as many directions as columns.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> rain = pa.table({"city": ["Ulm", "Ulm", "Ulm"], "mm": [3, 4, 9], "day": [2, 3, 1]})
            >>> def build(scope):
            ...     return scope.column_collection(rain).collect("mm", by="city", order="day").capture()
            >>> [changes.to_pylist() for _, changes in ps.example(build).extract()]
            [[{'city': 'Ulm', 'mm': [9, 3, 4], 'diff': 1}]]
        """
        import pyarrow as pa

        columns = self._key(order) if key_names(order) else self._key(of)
        directions = _directions(columns, descending, nulls_first)
        [value] = self._key(of)
        values = [value, *(column for column in columns if column != value)]
        places = [
            (values.index(column), *direction) for column, direction in zip(columns, directions, strict=True)
        ]
        keys = self._key(by) if key_names(by) else []
        element = self.schema.field(value).type
        schema = self._keyed(keys, [(into or value, pa.list_(element))])
        values_of = tuple(record[self._index(column)] for column in values)
        pairs = self._projected((self._part(keys), values_of), named_part(name, "map"))
        argument = _core.Schema(pa.schema([pa.field("item", element)])), 0, places
        lists = reduced(self.scope, collections.COLLECT, pairs, Reduction.COLLECTED, argument, name=name)
        return self._flat((*columns_of(record[0], keys), record[1]), lists, schema, name)

    def over(
        self,
        by: str | Sequence[str],
        order: str | Sequence[str] = (),
        *,
        descending: bool | Sequence[bool] = False,
        nulls_first: bool | Sequence[bool] = False,
        frame: Literal["range", "rows", "all"] = "range",
        name: str | None = None,
        **exprs: Aggregate,
    ) -> ColumnCollection:
        """The rows with further columns: functions of the rows around each of them that have its key.

        Rows that are alike in all columns of the order follow each other by the other columns. A row with
        count 2 is two rows. A change computes the functions of all rows with its key again.

        Args:
            by: The key's column, or columns; an empty list takes all rows together.
            order: The columns that the rows of a key are ordered by. Without any, aggregates are of all rows.
            descending: Whether the greatest values come first, of all columns of the order or of each.
            nulls_first: Whether nulls come before all values, of all columns of the order or of each; by
                default they come last, whatever the direction.
            frame: The rows that aggregates are computed of: up to the last row that is alike in the order
                (``"range"``), up to the row itself (``"rows"``), or all rows of the key (``"all"``).
            name: The operator's name.
            exprs: By the names of their columns: ``ps.row_number()``, ``ps.rank()``, ``ps.dense_rank()``,
                ``lag`` and ``lead`` of an expression, and the aggregates ``sum``, ``mean``, ``min``, ``max``,
                ``count``, ``first``, ``last`` and ``ps.count()``.

        Raises:
            GraphError: If there is no such column, two have one name, or a function is not defined for its
                type.
            TypeError: If something is no function of rows.
            ValueError: If there are not as many directions as columns, or `frame` is another text.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> rain = pa.table({"city": ["Ulm", "Ulm", "Bonn"], "day": [1, 2, 1], "mm": [3, 4, 9]})
            >>> def build(scope):
            ...     days = scope.column_collection(rain)
            ...     return days.over("city", "day", total=ps.col("mm").sum(), place=ps.row_number()).capture()
            >>> for _, changes in ps.example(build).extract():
            ...     for row in changes.to_pylist():
            ...         print(row)
            {'city': 'Bonn', 'day': 1, 'mm': 9, 'total': 9, 'place': 1, 'diff': 1}
            {'city': 'Ulm', 'day': 1, 'mm': 3, 'total': 3, 'place': 1, 'diff': 1}
            {'city': 'Ulm', 'day': 2, 'mm': 4, 'total': 7, 'place': 2, 'diff': 1}
        """
        choice_of("frame", frame, tuple(FRAMES))
        keys, columns = ((self._key(names) if key_names(names) else []) for names in (by, order))
        directions = _directions(columns, descending, nulls_first)
        return Windows(self, exprs, name).over(keys, columns, directions, FRAMES[frame])

    def sum(self, of: str, *, by: str | Sequence[str], name: str | None = None) -> ColumnCollection:
        """Adds up each key's values: the key's columns, and the value's, of 64 bits.

        Nulls are skipped; of nulls alone there is null.

        Raises:
            GraphError: If there is no such column, or its values are no numbers.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> rain = pa.table({"city": ["Ulm", "Ulm"], "mm": [3, 4]})
            >>> def build(scope):
            ...     return scope.column_collection(rain).sum("mm", by="city").capture()
            >>> captured = ps.example(build)
            >>> [changes.to_pylist() for _, changes in captured.extract()]
            [[{'city': 'Ulm', 'mm': 7, 'diff': 1}]]
        """
        made = [sum_of(self.schema.field(self._index(of)))]
        return self._reduced(collections.SUM, of, by, name, made=made)

    def mean(self, of: str, *, by: str | Sequence[str], name: str | None = None) -> ColumnCollection:
        """The mean of each key's values, as a double; as `sum`.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> rain = pa.table({"city": ["Ulm", "Ulm"], "mm": [3, 4]})
            >>> def build(scope):
            ...     return scope.column_collection(rain).mean("mm", by="city").capture()
            >>> captured = ps.example(build)
            >>> [changes.to_pylist() for _, changes in captured.extract()]
            [[{'city': 'Ulm', 'mm': 3.5, 'diff': 1}]]
        """
        made = [mean_of(self.schema.field(self._index(of)))]
        return self._reduced(collections.MEAN, of, by, name, made=made)

    def count(
        self, by: str | Sequence[str], into: str = "count", *, name: str | None = None
    ) -> ColumnCollection:
        """Counts the rows of each key: the key's columns, and the count.

        Args:
            by: The key's column, or columns.
            into: The name of the column of counts.
            name: The operator's name.

        Raises:
            GraphError: If there is no such column, or the key has one of the count's name.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> rain = pa.table({"city": ["Ulm", "Bonn", "Ulm"], "mm": [3, 5, 4]})
            >>> captured = ps.example(lambda scope: scope.column_collection(rain).count("city").capture())
            >>> [changes.to_pylist() for _, changes in captured.extract()]
            [[{'city': 'Bonn', 'count': 1, 'diff': 1}, {'city': 'Ulm', 'count': 2, 'diff': 1}]]
        """
        keys = self._key(by)
        flat = (*columns_of(record[0], keys), record[1])
        schema = self._keyed(keys, [(into, "int64")])
        pairs = self._pairs(keys, [], name)
        counted = reduced(self.scope, collections.COUNT_BY_KEY, pairs, Reduction.COUNT_BY_KEY, name=name)
        return self._flat(flat, counted, schema, name)

    def aggregate(
        self, by: str | Sequence[str], *, name: str | None = None, **exprs: Aggregate
    ) -> ColumnCollection:
        """Aggregates each key's rows: the key's columns, and one for each aggregate.

        As in `ArrowStream.aggregate`, nulls are skipped; of no value there is null, and a count of 0.

        Args:
            by: The key's column, or columns. None of them, ``[]``, takes all rows together, and makes one
                row also of none.
            name: The operator's name.
            exprs: By the names of their columns, such as ``total=ps.col("price").sum()``: ``sum``,
                ``mean``, ``min``, ``max``, ``count``, ``distinct_count``, ``var``, ``std``, and
                ``ps.count()`` for the number of rows.

        Raises:
            GraphError: If there is no such column, or a function is not defined for its type.
            TypeError: If something is no aggregate.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> from pointstamp import col
            >>> def build(scope):
            ...     table = pa.table({"city": ["Ulm", "Bonn", "Ulm"], "price": [3, 5, 4]})
            ...     sales, price = scope.column_collection(table), col("price")
            ...     return sales.aggregate("city", total=price.sum(), most=price.max()).capture()
            >>> [(time, batch)] = ps.example(build).extract()
            >>> batch.drop_columns(["diff"]).to_pylist()[1]
            {'city': 'Ulm', 'total': 7, 'most': 4}
        """
        keys = self._key(by) if key_names(by) else []
        given = Aggregates("aggregate", exprs, self.schema.names, name, beside=OF_COLLECTIONS)
        given.check_any()
        if given.computed:
            kept = [column for column in self.schema.names if column not in given.computed]
            rows = self.select(*kept, **given.computed)
            return rows._aggregated(keys, given.columns, name)
        return self._aggregated(keys, given.columns, name)

    def _aggregated(
        self, keys: list[str], aggregates: list[tuple[str, str, str]], name: str | None
    ) -> ColumnCollection:
        of, wanted, made = aggregated(self.schema, self._key, aggregates)
        values = tuple(1 if column is None else record[self._index(column)] for column in of)
        results = tuple(record[1][index] for index in range(len(made)))
        flat = (*columns_of(record[0], keys), *results)
        schema = self._keyed(keys, made)
        kind, reduction = collections.AGGREGATE, Reduction.AGGREGATE
        sums: frozenset[int] | None = None
        if accumulates(wanted):
            reduction = Reduction.ACCUMULATED
            sums = frozenset(part for how, part in wanted if how != Reduction.COUNT)
        pairs = self._values(self._output, self._part(keys), values, sums, name)
        if not keys:
            # A record of nulls, which aggregates skip, keeps the one group there when no row is.
            nulls = self._constant((None, (None,) * len(of)))
            if sums is not None:
                parts = tuple(record[1][index] for index in range(len(of)))
                nulls = self._values(nulls, record[0], parts, sums, name)
            pairs = concatenated(self.scope, [pairs, nulls], name=named_part(name, "concat"))
        aggregates_of_keys = reduced(self.scope, kind, pairs, reduction, wanted, name=name)
        return self._flat(flat, aggregates_of_keys, schema, name)

    def _values(
        self, of: Output, key: Any, values: tuple[Any, ...], sums: frozenset[int] | None, name: str | None
    ) -> Output:
        """Pairs of a key and the tuple of its values, or, with the indices of sums, accumulated records."""
        if sums is None:
            return one(
                self.scope, collections.PROJECT, of, name=named_part(name, "map"), fields=(key, values)
            )
        marked = [(value, index in sums) for index, value in enumerate(values)]
        part = named_part(name, "accumulate")
        return one(self.scope, collections.ACCUMULATE, of, name=part, key=key, values=marked)

    def _constant(self, record: Any) -> Output:
        """A collection of one record at every time, in this collection's scope."""
        scope = self.scope
        entered: list[Any] = []
        while scope.parent is not None:
            entered.insert(0, scope)
            scope = scope.parent
        constant = scope.collection([record] if scope.index == 0 else [])
        return brought_in(constant._output, entered)

    def map_groups(
        self,
        fn: Callable[[Any, list[tuple[Any, int]]], Any],
        *,
        by: str | Sequence[str],
        of: str | Sequence[str],
        schema: pa.Schema,
        name: str | None = None,
    ) -> ColumnCollection:
        """Makes results of each key's values by a function: the key's columns, and the results' columns.

        Args:
            fn: As in `Collection.map_groups`: called with a key and a list of ``(value, count)``; returns its
                results. A key, a value or a result is the value of its column, and of several columns a
                tuple.
            by: The key's column, or columns.
            of: The value's column, or columns.
            schema: The columns of a result.
            name: The operator's name.

        Raises:
            GraphError: If there is no such column, or one that is neither of integers nor of strings.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> rain = pa.table({"city": ["Ulm", "Bonn", "Ulm"], "mm": [3, 5, 4]})
            >>> def build(scope):
            ...     spread = lambda city, values: [max(values)[0] - min(values)[0]]
            ...     schema = pa.schema({"spread": pa.int64()})
            ...     rows = scope.column_collection(rain)
            ...     return rows.map_groups(spread, by="city", of="mm", schema=schema).capture()
            >>> [changes.to_pylist() for _, changes in ps.example(build).extract()]
            [[{'city': 'Bonn', 'spread': 0, 'diff': 1}, {'city': 'Ulm', 'spread': 1, 'diff': 1}]]
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
        made: Any = None,
    ) -> ColumnCollection:
        keys, values = self._key(by), self._key(of)
        before = self.schema
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

    def _null_in(self, by: list[str]) -> Expr | None:
        """The condition that a column of a key is null; None where none can be."""
        nulls = [record[self._index(one)].is_null() for one in by if self.schema.field(one).nullable]
        return fold(or_, nulls) if nulls else None

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
        self,
        fn: Callable[[Scope, ColumnCollection], ColumnCollection],
        *,
        iterations: int | None = None,
        name: str = "Iterate",
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
        return iterated(self, fn, name, iterations)

    # ------------------------------------------------------------ out

    def show(
        self,
        name: str,
        order: str | Sequence[str] = (),
        *,
        descending: bool | Sequence[bool] = False,
        nulls_first: bool | Sequence[bool] = False,
        rows: int = 20,
    ) -> None:
        """Shows the first rows of the collection and their number on the live page (`Config(dashboard=)`).

        The table changes with the collection. It costs a `top_k` and a count of the whole collection.

        Args:
            name: The table's name.
            order: The columns that the rows are ordered by; without any, all in turn.
            descending: Whether the greatest values come first, of all columns of the order or of each.
            nulls_first: Whether nulls come before all values, of all columns of the order or of each.
            rows: The number of rows.

        Raises:
            GraphError: If there is no such column.
            ValueError: If `rows` is less than 1, or there are not as many directions as columns.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     rain = scope.column_collection(pa.table({"city": ["Ulm", "Bonn"], "mm": [3, 4]}))
            ...     rain.show("rain", "mm", descending=True)
            >>> ps.example(build)
        """
        columns = self._key(order) if key_names(order) else list(self.schema.names)
        self._show(name, columns, _directions(columns, descending, nulls_first), [], rows)

    def _show(
        self, name: str, columns: list[str], directions: list[tuple[bool, bool]], hidden: list[str], rows: int
    ) -> None:
        from pointstamp.logic.ordered_rows import Ordered
        from pointstamp.observability.tables import Kept, ShownTable

        part = f"show {name}"
        others = [column for column in self.schema.names if column not in columns]
        descending, nulls_first = [[each[index] for each in directions] for index in (0, 1)]
        how: dict[str, Any] = {"descending": descending, "nulls_first": nulls_first, "others": others}
        first = self.top_k(rows, columns, by=[], name=f"{part}: top_k", **how).select(*self.schema.names)
        number = self.aggregate([], name=f"{part}: count", rows=count())
        ordered = [Ordered(column, *each) for column, each in zip(columns, directions, strict=True)]
        table = ShownTable(name, first.schema, ordered, hidden)
        for rows_of, counts in ((first, False), (number, True)):
            construct = table.constructor(counts)
            rows_of.updates(name=f"{part}: updates").sink(Gather(), part, construct, state=Kept)

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

        Each is at its own time in the stream, too; there may be several of one row and time. Times of several
        coordinates are lists. The two are the last columns, also where the collection has one of such a name:
        distinguish them by position.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     return scope.column_collection(pa.table({"n": [1, 2]})).updates().to_records().capture()
            >>> ps.example(build).extract()
            [(0, [{'n': 1, 'time': 0, 'diff': 1}, {'n': 2, 'time': 0, 'diff': 1}])]
        """
        schema = _core.column_updates_schema(self._columns, self.scope.dims)
        made = Output(Form.COLUMNS, schema)
        self.scope._append(collections.COLUMN_UPDATES, [self._output], made, name=name)
        stream: ArrowStream = stream_of(self.scope, made)
        return stream

    def capture_into(self, writer: EventWriter, *, name: str | None = None) -> None:
        """Writes the `updates`; ``scope.replay(...).to_collection(diffs=True)`` makes a collection of it.

        Examples:
            >>> import io
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> kept = io.BytesIO()
            >>> def build(scope):
            ...     scope.column_collection(pa.table({"n": [1, 1]})).capture_into(ps.EventWriter(kept))
            >>> ps.example(build)
            >>> def again(scope):
            ...     kept.seek(0)
            ...     return scope.replay([ps.EventReader(kept)]).to_collection(diffs=True).capture()
            >>> [changes.to_pylist() for _, changes in ps.example(again).extract()]
            [[{'n': 1, 'diff': 2}]]
        """
        self.updates(name=named_part(name, "updates")).capture_into(writer, name=name)

    def capture(self, *, name: str | None = None) -> ColumnCapture:
        """Keeps the updates on this worker in memory.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     return scope.column_collection(pa.table({"n": [1, 1]})).capture()
            >>> captured = ps.example(build)
            >>> [(time, changes.to_pylist()) for time, changes in captured.extract()]
            [(0, [{'n': 1, 'diff': 2}])]
        """
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

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     return scope.column_collection(pa.table({"n": [2, 1, 2]})).capture()
            >>> captured = ps.example(build)
            >>> [(time, changes.to_pylist()) for time, changes in captured.extract()]
            [(0, [{'n': 1, 'diff': 1}, {'n': 2, 'diff': 2}])]
        """
        changes = _core.extract_column_updates(self._queue, self._columns)
        self._check_empty(changes)
        return changes


def _directions(
    columns: Sequence[str], descending: bool | Sequence[bool], nulls_first: bool | Sequence[bool]
) -> list[tuple[bool, bool]]:
    """Whether each column of an order descends, and whether its nulls come first."""
    downward = for_each("descending", descending, columns)
    return [*zip(downward, for_each("nulls_first", nulls_first, columns), strict=True)]


def _typed(before: pa.Schema, columns: Sequence[tuple[str, Any]]) -> _core.Schema:
    """A schema of names and types; None for the type that the column has in the one before."""
    return _core.Schema(schema_of(before, columns))
