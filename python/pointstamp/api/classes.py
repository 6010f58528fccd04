"""Streams and collections of outputs of nodes.

A class is imported when the first stream of its kind is made: programs over records have no use for columns.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pointstamp.plan.node import Form

if TYPE_CHECKING:
    from pointstamp.lowering.scope import BuildingScope
    from pointstamp.plan.node import Output

__all__ = ["collection_of", "stream_of"]


_STREAMS = {
    Form.RECORDS: ("pointstamp.api.stream", "Stream"),
    Form.TIMED: ("pointstamp.api.stream", "Stream"),
    Form.COLUMNS: ("pointstamp.api.arrow_stream", "ArrowStream"),
    Form.MIXED: ("pointstamp.api.arrow_stream", "ArrowStream"),
}


def stream_of(scope: BuildingScope, output: Output) -> Any:
    """A stream of an output: of records or of columns, at the times of the dataflow or at their own."""
    return _class(*_STREAMS[output.form])(scope, output)


def collection_of(scope: BuildingScope, output: Output) -> Any:
    """A collection of an output: of records, or with a schema of columns."""
    if output.schema is None:
        return _class("pointstamp.api.collection", "Collection")(scope, output)
    return _class("pointstamp.api.column_collection", "ColumnCollection")(scope, output)


_loaded: dict[str, Any] = {}


def _class(module: str, name: str) -> Any:
    """A class by name: the modules of streams refer to this one, and not the other way round."""
    if name not in _loaded:
        _loaded[name] = getattr(import_module(module), name)
    return _loaded[name]
