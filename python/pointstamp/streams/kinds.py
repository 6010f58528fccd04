"""Streams and collections of outputs of nodes.

A class is imported when the first stream of its kind is made: programs over records have no use for columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp.plan.node import Form

if TYPE_CHECKING:
    from pointstamp.plan.node import Output
    from pointstamp.scope import Scope

__all__ = ["clock_of", "collection_of", "stream_of"]


def stream_of(scope: Scope, output: Output) -> Any:
    """A stream of an output: of records or of columns, at the times of the dataflow or at their own."""
    if output.form is Form.RECORDS or output.form is Form.TIMED:
        from pointstamp.streams.records import Stream

        return Stream(scope, output)
    from pointstamp.streams.arrow import ArrowStream

    return ArrowStream(scope, output)


def collection_of(scope: Scope, output: Output) -> Any:
    """A collection of an output: of records, or with a schema of columns."""
    if output.schema is None:
        from pointstamp.collections.collection import Collection

        return Collection(scope, output)
    from pointstamp.collections.columns import ColumnCollection

    return ColumnCollection(scope, output)


def clock_of(output: Output) -> Any:
    """The unit of the times of an output: that of what it comes from, through any operators.

    Raises:
        TypeError: If it comes from streams with times of different kinds.
    """
    from pointstamp.event_times.clock import Clock

    clocks = output.clocks or ()
    if not clocks:
        return Clock(False, teller="nothing")
    for other in clocks[1:]:
        clocks[0].join(other)
    return clocks[0]
