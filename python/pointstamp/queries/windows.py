"""Window functions of a query.

Windows of one partition, order and frame are computed together, by `ColumnCollection.over`. They see the
rows after WHERE, GROUP BY and HAVING. Where QUALIFY keeps the rows with the least row numbers alone, the
rows are cut by `top_k` first, so that others never reach the windows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import pyarrow as pa

from pointstamp.api.column_types import is_number
from pointstamp.expr.expressions import col, count, lit
from pointstamp.expr.functions import case, dense_rank, rank, row_number
from pointstamp.queries.parsing import DIALECT, check_parts, key_of, refuse
from pointstamp.queries.places import at
from pointstamp.queries.relations import Relation, fresh, in_common, titled, type_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sqlglot import exp

    from pointstamp._core import Aggregate, Expr
    from pointstamp.queries.scalars import Scalars

__all__ = ["first_rows", "parts_of_window", "push_row_numbers", "windowed", "windows_in", "write_out"]


def windows_in(nodes: Iterable[exp.Expr]) -> list[exp.Window]:
    """The window functions in expressions, without those in queries inside of them; each once."""
    found: dict[str, exp.Window] = {}
    for node in nodes:
        for window in _windows(node):
            found.setdefault(key_of(window), window)
    return list(found.values())


def _windows(node: exp.Expr) -> Iterator[exp.Window]:
    from sqlglot import exp

    if isinstance(node, exp.Query):
        return
    if isinstance(node, exp.Window):
        yield node
        return
    for child in node.iter_expressions():
        yield from _windows(child)


def write_out(windows: Iterable[exp.Window], named: Sequence[exp.Window]) -> None:
    """Writes out windows that are given by the names of a WINDOW clause."""
    definitions = {definition.name: definition for definition in named}
    for window in windows:
        alias = window.args.get("alias")
        if alias is None:
            continue
        definition = definitions.get(alias.name)
        if definition is None or definition.args.get("alias") is not None:
            refuse(
                window,
                f"window {alias.name!r} is not defined by PARTITION BY and ORDER BY in WINDOW: write these",
            )
        for part in ("partition_by", "order", "spec"):
            if not window.args.get(part) and definition.args.get(part):
                given = definition.args[part]
                window.set(part, [one.copy() for one in given] if isinstance(given, list) else given.copy())
        window.set("alias", None)


def parts_of_window(window: exp.Window) -> list[exp.Expr]:
    """The expressions of rows in a window function: its arguments, its partition and its order."""
    from sqlglot import exp

    order, function = window.args.get("order"), window.this
    condition = []
    if isinstance(function, exp.Filter):
        function, condition = function.this, [function.expression.this]
    return [
        *function.iter_expressions(),
        *condition,
        *(window.args.get("partition_by") or []),
        *([] if order is None else [one.this for one in order.expressions]),
    ]


Frame = Literal["range", "rows", "all"]
"""The rows of a partition that an aggregate is computed of."""


class _Over(NamedTuple):
    """The rows that a window function sees, by which functions are computed together."""

    partition: list[exp.Expr]
    order: list[exp.Expr]
    frame: Frame

    def key(self) -> tuple[Any, ...]:
        """Equal for windows that are computed together."""
        return tuple(map(key_of, self.partition)), tuple(map(key_of, self.order)), self.frame


def _over(window: exp.Window) -> _Over:
    check_parts(window, "this", "partition_by", "order", "spec", "over")
    order = window.args.get("order")
    ordered = [] if order is None else list(order.expressions)
    for one in ordered:
        check_parts(one, "this", "desc", "nulls_first")
    return _Over(list(window.args.get("partition_by") or []), ordered, _frame(window))


def _frame(window: exp.Window) -> Frame:
    spec = window.args.get("spec")
    if spec is None:
        return "range"
    check_parts(spec, "kind", "start", "start_side", "end", "end_side")
    kind = str(spec.args.get("kind", "")).upper()
    ends = [str(spec.args.get(part) or "").upper() for part in ("start", "start_side", "end", "end_side")]
    if kind in {"ROWS", "RANGE"} and ends[:2] == ["UNBOUNDED", "PRECEDING"]:
        if ends[2] in {"CURRENT ROW", ""}:
            return "rows" if kind == "ROWS" else "range"
        if ends[2:] == ["UNBOUNDED", "FOLLOWING"]:
            return "all"
    return refuse(
        spec if "line" in spec.meta else window,
        f"frame {spec.sql(DIALECT)} is not covered: frames are ROWS or RANGE from UNBOUNDED PRECEDING to "
        "CURRENT ROW or UNBOUNDED FOLLOWING; lag and lead give single rows around a row",
    )


def _function(window: exp.Window, relation: Relation, values: dict[str, Any], scalars: Scalars) -> Aggregate:
    """The function of a window, over columns that it adds to those that are computed first."""
    from sqlglot import exp

    node, condition = window.this, None
    if isinstance(node, exp.Filter):
        condition, node = scalars.of(node.expression.this), node.this
        if not isinstance(node, (exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Count)):
            refuse(window, "FILTER is of aggregates: write CASE WHEN in the argument")
    places = {exp.RowNumber: row_number, exp.Rank: rank, exp.DenseRank: dense_rank}
    if type(node) in places:
        check_parts(node)
        return places[type(node)]()
    if isinstance(node.this, exp.Distinct):
        refuse(node, "DISTINCT in a window is not covered: group by the partition, and join the results")

    def value(of: Any) -> Expr:
        name = fresh("value")
        values[name] = of if condition is None else case((condition, of))
        return col(name)

    if isinstance(node, (exp.Lag, exp.Lead)):
        check_parts(node, "this", "offset", "default")
        offset, default = node.args.get("offset"), node.args.get("default")
        by = 1 if offset is None else _whole(offset)
        if by is None:
            refuse(node, "lag and lead take a whole number of rows, as in lag(price, 1)")
        column = scalars.of(node.this)
        of, other = value(column), None
        if default is not None:
            other = scalars.of(default)
            with at(default):
                in_common(relation, column, relation, other)
        return of.lag(by, default=other) if isinstance(node, exp.Lag) else of.lead(by, default=other)
    check_parts(node, "this", "expressions", "big_int")
    if isinstance(node, exp.Count):
        of = node.this
        if of is None or isinstance(of, (exp.Star, exp.Literal)):
            return count() if condition is None else value(lit(1)).count()
        return value(scalars.of(of)).count()
    methods: dict[type[exp.Expr], str] = {
        exp.Sum: "sum",
        exp.Avg: "mean",
        exp.Min: "min",
        exp.Max: "max",
        exp.First: "first",
        exp.FirstValue: "first",
        exp.Last: "last",
        exp.LastValue: "last",
    }
    method = methods.get(type(node))
    if method is None:
        refuse(
            node,
            f"window function {node.sql(DIALECT)} is not covered: there are row_number, rank, dense_rank, "
            "lag, lead, first_value, last_value, sum, avg, min, max and count",
        )
    of = scalars.of(node.this)
    found = type_of(relation, of)
    if method in {"mean", "sum"} and not is_number(found):
        refuse(node, f"{node.sql(DIALECT)} adds up numbers, and this is of type {found}: cast it")
    if method == "mean":
        of = of.cast(pa.float64())
    made: Aggregate = getattr(value(of), method)()
    return made


def _whole(node: exp.Expr) -> int | None:
    return int(node.name) if node.key == "literal" and node.name.isdigit() else None


class _Columns(NamedTuple):
    """The columns of a window: those of its partition, those of its order, and how these are ordered."""

    by: list[str]
    order: list[str]
    how: dict[str, Any]


def _columns(over: _Over, correlation: Sequence[str], values: dict[str, Any], scalars: Scalars) -> _Columns:
    by = [*correlation]
    for part in over.partition:
        by.append(fresh("partition"))
        values[by[-1]] = scalars.of(part)
    order = []
    for one in over.order:
        order.append(fresh("order"))
        values[order[-1]] = scalars.of(one.this)
    how = {
        "descending": [bool(one.args.get("desc")) for one in over.order],
        "nulls_first": [bool(one.args.get("nulls_first")) for one in over.order],
    }
    return _Columns(by, order, how)


def windowed(
    relation: Relation, windows: Sequence[exp.Window], correlation: Sequence[str], scalars: Scalars
) -> tuple[Relation, dict[str, str]]:
    """Adds a column for each window function.

    Args:
        relation: The rows.
        windows: The functions.
        correlation: Columns that are a part of each partition.
        scalars: The translation of expressions over the rows.

    Returns:
        The rows, and the columns of the functions by their texts.
    """
    together: dict[tuple[Any, ...], tuple[_Over, list[exp.Window]]] = {}
    for window in windows:
        over = _over(window)
        together.setdefault(over.key(), (over, []))[1].append(window)
    known: dict[str, str] = {}
    for over, own in together.values():
        values: dict[str, Any] = {}
        columns = _columns(over, correlation, values, scalars)
        functions: dict[str, Any] = {
            fresh("window"): _function(window, relation, values, scalars) for window in own
        }
        known |= {key_of(window): name for window, name in zip(own, functions, strict=True)}
        names = relation.names
        title = titled(f"over ({own[0].sql(DIALECT).partition(' OVER (')[2]}")
        rows = relation.rows.with_columns(**values) if values else relation.rows
        made = rows.over(columns.by, columns.order, **columns.how, frame=over.frame, name=title, **functions)
        relation = Relation(made, single=relation.single).only([*names, *functions])
    return relation, known


def first_rows(
    relation: Relation,
    conditions: Sequence[exp.Expr],
    windows: Sequence[exp.Window],
    correlation: Sequence[str],
    scalars: Scalars,
) -> Relation:
    """Cuts the rows before their windows, where a condition bounds a row number that is the only window.

    Args:
        relation: The rows.
        conditions: The conditions of QUALIFY that are all true.
        windows: All window functions of the query.
        correlation: Columns that are a part of each partition.
        scalars: The translation of expressions over the rows.
    """
    from sqlglot import exp

    if len(windows) != 1 or not isinstance(windows[0].this, exp.RowNumber):
        return relation
    wanted = key_of(windows[0])
    least: int | None = None
    for condition in conditions:
        number = _most(condition, wanted)
        if number is not None:
            least = number if least is None else min(least, number)
    over = _over(windows[0])
    if least is None or least < 1 or not over.order:
        return relation
    values: dict[str, Any] = {}
    columns = _columns(over, correlation, values, scalars)
    rows, names = relation.rows.with_columns(**values), relation.names
    others = [name for name in rows.schema.names if name not in {*columns.by, *columns.order}]
    first = rows.top_k(least, columns.order, by=columns.by, **columns.how, others=others)
    return Relation(first).only(names)


def push_row_numbers(source: exp.Expr, conditions: Sequence[exp.Expr]) -> None:
    """Repeats a condition on a row number of a subquery in FROM as its QUALIFY, for `first_rows`.

    Args:
        source: The subquery, or another table.
        conditions: Conditions around it that are all true.
    """
    from sqlglot import exp

    select = source.this.unnest() if isinstance(source, exp.Subquery) else None
    if not isinstance(select, exp.Select) or any(select.args.get(part) for part in _CUTS):
        return
    numbers = {}
    for output in select.expressions:
        window = output.unalias()
        if isinstance(window, exp.Window) and isinstance(window.this, exp.RowNumber):
            numbers[output.alias_or_name] = window
    for condition in conditions:
        for name, window in numbers.items():
            column = exp.column(name, table=source.alias_or_name)
            found = [one for one in condition.find_all(exp.Column) if one.name == name]
            if (
                len(found) == 1
                and found[0].table == column.table
                and _most(condition, key_of(found[0])) is not None
            ):
                own = condition.copy()
                cast("exp.Column", own.find(exp.Column)).replace(window.copy())
                select.set("qualify", exp.Qualify(this=own))
                return


_CUTS = ("distinct", "limit", "offset", "qualify")


def _most(condition: exp.Expr, wanted: str) -> int | None:
    """The greatest row number that a condition lets pass; None for another condition."""
    from sqlglot import exp

    if isinstance(condition, (exp.LTE, exp.LT, exp.EQ)):
        value, bound = condition.this.unnest(), condition.expression
        extra = 1 if isinstance(condition, exp.LT) else 0
    elif isinstance(condition, (exp.GTE, exp.GT)):
        value, bound = condition.expression.unnest(), condition.this
        extra = 1 if isinstance(condition, exp.GT) else 0
    else:
        return None
    number = _whole(bound)
    return None if number is None or key_of(value) != wanted else number - extra
