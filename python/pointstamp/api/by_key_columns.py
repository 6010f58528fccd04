"""State by key of streams of columns: running functions and first rows, in the order of time.

Owns those methods of `ArrowStream`. The work on rows is done in Rust, when their times are final.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp import _core
from pointstamp.api.column_arguments import aggregations_of, key_names
from pointstamp.api.column_stream import ColumnStream
from pointstamp.errors import GraphError
from pointstamp.event_time.units import lengths_of, unit_of, untold
from pointstamp.logic.in_time_columns import Kept, in_time_order, kept_in
from pointstamp.plan import columns
from pointstamp.plan.node import Form, Output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pointstamp.api.arrow_stream import ArrowStream
    from pointstamp.logic.state import KeyedState
    from pointstamp.plan.node import Kind

__all__ = ["KeyedColumns", "only_row"]


class KeyedColumns(ColumnStream):
    """State by key of rows."""

    __slots__ = ()

    def scan(
        self,
        by: str | Sequence[str],
        functions: Sequence[tuple[str, str]],
        *,
        ttl: Any = None,
        column: str | None = None,
        state: KeyedState[Any, Any] | None = None,
        name: str | None = None,
    ) -> ArrowStream:
        """Each row with what its key's rows so far add up to, itself among them, in the order of time.

        The columns are the rows' and one for each function, such as ``price_max``. Nulls are skipped.

        Args:
            by: The key's column, or columns.
            functions: Pairs of a column and ``"count"``, ``"sum"``, ``"min"``, ``"max"`` or ``"mean"``.
            ttl: A key is forgotten when no row of it has come for so long, in event time: a row at exactly so
                long after the last finds it forgotten. None: never.
            column: The times; left out: the column of `event_time`.
            state: Where to keep it, to be listed, or restored from a snapshot: of each key a dict with the
                time of its last row and what the functions know.
            name: The operator's name.

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
            ...     best = on_time.scan("pen", [("bid", "max")])
            ...     return best.select("at", "bid_max").to_records().capture()
            >>> [tuple(row.values()) for _, rows in ps.example(build).extract() for row in rows]
            [(1, 3), (2, 5), (4, 5)]
        """
        wanted = aggregations_of(functions, "scan")
        if not wanted:
            raise GraphError("scan takes pairs such as [('price', 'max')], at least one")
        return self._by_key(columns.SCAN, name, by, wanted, ttl, column, state)

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
            ttl: A key is new again when no row of it has come for so long, as in `scan`; None: never.
            column: As in `scan`.
            state: As in `scan`.
            name: The operator's name.
        """
        return self._by_key(columns.DEDUP, name, by, [], ttl, column, state)

    def _by_key(
        self,
        kind: Kind,
        name: str | None,
        by: str | Sequence[str],
        functions: list[tuple[str, str]],
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


def only_row(kinds: tuple[list[Any], ...]) -> Any:
    """The one row of a key."""
    return kinds[0][0]
