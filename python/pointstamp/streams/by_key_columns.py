"""State by key of streams of columns: running functions and first rows, in the order of time.

Owns those methods of `ArrowStream`. The work on rows is done in Rust, when their times are final.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp import _core
from pointstamp._errors import GraphError
from pointstamp._naming import named
from pointstamp.event_times.columns import unit_of, untold
from pointstamp.operators.in_time_columns import Kept, in_time_order, kept_in
from pointstamp.streams.column_arguments import aggregations_of, key_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pointstamp.keyed.state import KeyedState
    from pointstamp.scope import Scope
    from pointstamp.streams.arrow import ArrowStream

__all__ = ["KeyedColumns", "only_row"]


@named
class KeyedColumns:
    """State by key of rows."""

    __slots__ = ()

    scope: Scope

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
        return _by_key(self, "scan", by, wanted, ttl, column, state)

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
        return _by_key(self, "dedup", by, [], ttl, column, state)


def _by_key(
    stream: Any,
    name: str,
    by: str | Sequence[str],
    functions: list[tuple[str, str]],
    ttl: Any,
    column: str | None,
    state: KeyedState[Any, Any] | None,
) -> ArrowStream:
    keys = key_names(by)
    times = column or getattr(stream, "time_column", None)
    if times is None:
        raise untold()
    at = _core.time_column_of(stream.core_schema, times)
    unit = unit_of(stream.schema.field(at).type, stream.scope.lengths_of(stream.core))
    span = None if ttl is None else unit.span("ttl", ttl)
    if span is not None and span <= 0:
        raise ValueError(f"ttl is how long a key is silent before it is forgotten, more than 0, not {ttl}")
    kernel = _core.Kernel.running(stream.core_schema, keys, functions, times, span)
    if state is not None:
        kept = Kept(kernel, [list(range(len(keys)))], only_row)
        kept_in(state, stream.scope, name, kept, by=keys, functions=functions, times=times)
    rows = getattr(stream, "batched", None) or stream.core
    scope: Any = stream.scope
    made, schema = in_time_order(scope, [(rows, stream.core_schema.key(keys), at)], kernel, name, state)
    results: ArrowStream = scope.event_columns_of(made, schema, times)
    return results


def only_row(kinds: tuple[list[Any], ...]) -> Any:
    """The one row of a key."""
    return kinds[0][0]
