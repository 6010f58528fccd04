"""A query of a session: its tables, which the program changes, and its result, which follows them."""

from __future__ import annotations

from functools import partial
from html import escape
from threading import TIMEOUT_MAX, Lock
from time import monotonic
from typing import TYPE_CHECKING, Any

from pointstamp.errors import StallError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

    from pointstamp.api.scope import Scope
    from pointstamp.queries.lowering import Query
    from pointstamp.runtime.interactive.handles import Live
    from pointstamp.runtime.interactive.inputs import LiveInput

__all__ = ["LiveQuery", "Prepared"]

RESULT = "result of the query"
"""The name of the output, which no table has."""

SHOWN = 20
"""Rows that a notebook shows."""


class Prepared:
    """A query that is to be built: what its dataflow is, and how its result is read.

    Args:
        query: The text.
        tables: The tables, or their schemas.
        shown: Whether the live page has the result.

    Raises:
        GraphError: If it is not covered.
    """

    __slots__ = ("build", "data", "plan", "query", "result")

    def __init__(self, query: str, tables: Mapping[str, Any], *, shown: bool = False) -> None:
        import pyarrow as pa

        from pointstamp.logic.frames import schema_and_rows
        from pointstamp.runtime.execution import example

        self.query = query
        schemas: dict[str, Any] = {}
        self.data: dict[str, Any] = {}
        for name, given in tables.items():
            if isinstance(given, pa.Schema):
                schemas[name] = given
            else:
                schemas[name], self.data[name] = schema_and_rows(given)
        # Built once with empty tables in this thread, for errors, the order, and the plan.
        made: list[Query] = []

        def build(scope: Scope) -> str:
            made.append(_lowered(query, schemas, scope)[0])
            made[-1].rows.probe()
            return str(scope.plan())

        self.plan = example(build)
        (lowered,) = made
        self.result = lowered.rows.schema, lowered.order, lowered.hidden
        self.build: Callable[[Scope], dict[str, Any]] = partial(_built, query, schemas, shown)


def _lowered(query: str, schemas: Mapping[str, Any], scope: Scope) -> tuple[Query, dict[str, Any]]:
    from pointstamp.queries.lowering import lowered

    inputs, tables = {}, {}
    for name, schema in schemas.items():
        inputs[name], tables[name] = scope.new_collection(schema=schema, name=name)
    return lowered(query, tables), inputs


def _built(query: str, schemas: Mapping[str, Any], shown: bool, scope: Scope) -> dict[str, Any]:
    made, inputs = _lowered(query, schemas, scope)
    if shown:
        columns = [one.column for one in made.order] or list(made.rows.schema.names)
        directions = [(one.descending, one.nulls_first) for one in made.order] or [(False, False)] * len(
            columns
        )
        made.rows._show(" ".join(query.split()), columns, directions, made.hidden, SHOWN)
    return {**inputs, RESULT: made.rows}


class LiveQuery:
    """A query of a session, whose result follows its tables. `Interactive.sql` makes it.

    In a notebook it is shown as the first rows of its result, with their number.

    Attributes:
        query: The text.
        inputs: The tables by name, to insert and remove rows: `LiveInput`.

    Examples:
        >>> import pyarrow as pa
        >>> import pointstamp as ps
        >>> rain = pa.table({"city": ["Ulm", "Bonn"], "mm": [3, 5]})
        >>> with ps.Interactive() as session:
        ...     wettest = session.sql("SELECT * FROM rain ORDER BY mm DESC LIMIT 1", rain=rain)
        ...     print(wettest.table().to_pylist())
        ...     wettest.inputs["rain"].insert(pa.table({"city": ["Ulm"], "mm": [8]}))
        ...     print(wettest.table().to_pylist())
        [{'city': 'Bonn', 'mm': 5}]
        [{'city': 'Ulm', 'mm': 8}]
    """

    def __init__(self, live: Live, prepared: Prepared) -> None:
        self.query = prepared.query
        self.inputs: dict[str, LiveInput] = live.inputs
        self._live, self._plan = live, prepared.plan
        self._schema, self._order, self._hidden = prepared.result
        self._changes: Any = None
        self._taken: list[pa.RecordBatch] = []  # not yet in `_changes`
        self._reading = Lock()
        for name, data in prepared.data.items():
            self.inputs[name].insert(data)

    def table(self, timeout: float | None = None) -> pa.Table:
        """Returns the result of all that was inserted and removed before, in the query's order.

        The tables' inputs advance to a later time. Calls from several threads follow each other.

        Args:
            timeout: The maximum number of seconds, with those for which another thread reads the query; None
                for the session's timeout, behind such a thread.

        Raises:
            StallError: When the time is over; the message has the reason. Nothing is lost.
            BaseException: An exception of the dataflow, such as an overflow.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> with ps.Interactive() as session:
            ...     count = session.sql("SELECT count(*) AS n FROM t", t=pa.schema({"a": pa.int64()}))
            ...     count.table().to_pylist()
            [{'n': 0}]
        """
        from pointstamp.logic.ordered_rows import in_order

        begun = monotonic()
        if not self._reading.acquire(timeout=-1 if timeout is None else min(max(timeout, 0.0), TIMEOUT_MAX)):
            raise StallError(
                f"the query {' '.join(self.query.split())!r} is read by another thread, for longer than "
                f"{timeout:g} s: give table() a longer timeout, or read the query in one thread"
            )
        try:
            self._follow(None if timeout is None else max(timeout - (monotonic() - begun), 0.0))
            batches = [] if self._changes is None else self._changes.to_batches()
        finally:
            self._reading.release()
        return in_order(self._schema, batches, self._order, self._hidden)

    def _follow(self, timeout: float | None) -> None:
        """Advances the inputs, and adds the changes of the result to those before."""
        import pyarrow as pa

        from pointstamp.logic.selection import without_views

        opened = [handle for handle in self.inputs.values() if not handle.closed]
        later = 1 + max((int(handle.time) for handle in opened), default=0)  # type: ignore[arg-type]
        for handle in opened:
            handle.advance_to(later)
        self._live.settle(timeout)
        for _, batches in self._live.outputs[RESULT].take():
            self._taken += batches
        if not self._taken:
            return
        names = [*self._schema.names, "diff"]
        changes = pa.Table.from_batches([without_views(batch) for batch in self._taken])
        changes = changes.remove_column(changes.num_columns - 2)  # the time
        arrays = [column.combine_chunks() for column in changes.columns]
        changes = pa.Table.from_arrays(arrays, names)
        before = [] if self._changes is None else [self._changes]
        self._changes = _added_up(pa.concat_tables([*before, changes]))
        self._taken = []

    def explain(self, *, sizes: bool = False) -> str:
        """Returns the plan of the query: a line for each operation, with what it reads.

        Args:
            sizes: Whether the arrangements follow, the largest first, with their rows and bytes.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> with ps.Interactive() as session:
            ...     many = session.sql("SELECT * FROM rain WHERE mm > 5", rain=pa.schema({"mm": pa.int64()}))
            ...     print(len(many.explain().splitlines()) > 3)
            True
        """
        if not sizes:
            return self._plan
        kept = sorted(self._live._sizes().items(), key=lambda one: (-one[1][1] - one[1][2], one[0]))
        width = max((len(name) for name, _ in kept), default=0)
        lines = [
            f"{name:{width}}  {rows:,} rows, {memory:,} bytes" + (f", {disk:,} on disk" if disk else "")
            for name, (rows, memory, disk) in kept
        ]
        return "\n".join([self._plan, "", "kept:", *(lines or ["nothing"])])

    def close(self) -> None:
        """Ends the dataflow of the query.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> with ps.Interactive() as session:
            ...     count = session.sql("SELECT count(*) AS n FROM t", t=pa.schema({"a": pa.int64()}))
            ...     count.close()
            ...     count.closed
            True
        """
        self._live.close()

    @property
    def closed(self) -> bool:
        """Whether the dataflow of the query has ended."""
        return self._live.closed

    def __repr__(self) -> str:
        state = " (closed)" if self.closed else ""
        return f"<query of {', '.join(self.inputs)}: {' '.join(self.query.split())}{state}>"

    def _repr_html_(self) -> str:
        if self.closed:
            return f"<p>{escape(repr(self))}</p>"
        table = self.table()
        head = "".join(f"<th>{escape(name)}</th>" for name in table.column_names)
        rows = (
            "".join(f"<td>{escape(str(value))}</td>" for value in row.values())
            for row in table.slice(0, SHOWN).to_pylist()
        )
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        shown = f", of which the first {SHOWN} are shown" if table.num_rows > SHOWN else ""
        caption = f"{table.num_rows} rows{shown}"
        return f"<table><caption>{caption}</caption><tr>{head}</tr>{body}</table>"


def _added_up(changes: pa.Table) -> pa.Table:
    """Changes with the sum of the diffs of each row, without rows that cancel."""
    import pyarrow as pa
    import pyarrow.compute as pc

    names = changes.column_names
    if any(pa.types.is_nested(field.type) for field in changes.schema):
        return _added_up_by_text(changes)
    numbered = changes.rename_columns([*map(str, range(len(names) - 1)), "diff"])
    summed = numbered.group_by(numbered.column_names[:-1], use_threads=False).aggregate([("diff", "sum")])
    summed = summed.filter(pc.field("diff_sum") != 0)
    order = [*numbered.column_names[:-1], "diff_sum"]
    return summed.select(order).rename_columns(names)


def _added_up_by_text(changes: pa.Table) -> pa.Table:
    """The result of `_added_up`, of columns that pyarrow does not group by: lists."""
    import pyarrow as pa

    rows = changes.drop_columns("diff")
    totals: dict[str, list[int]] = {}
    for index, (row, diff) in enumerate(zip(rows.to_pylist(), changes["diff"].to_pylist(), strict=True)):
        total = totals.setdefault(repr(row), [index, 0])
        total[1] += diff
    left = [total for total in totals.values() if total[1]]
    found = rows.take(pa.array([index for index, _ in left], pa.int64()))
    return found.append_column("diff", pa.array([diff for _, diff in left], pa.int64()))
