"""Inputs of record batches, which `main` drives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp import _core
from pointstamp._core import InputHandle
from pointstamp._validation import suggesting
from pointstamp.api.arrow_stream import ArrowStream
from pointstamp.plan.node import Form, Output

if TYPE_CHECKING:
    import pyarrow as pa

    from pointstamp.api.scope import Scope
    from pointstamp.types import Time

__all__ = ["ArrowInput"]


@suggesting
class ArrowInput:
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

    __slots__ = ("_columns", "_handle")

    def __init__(self, schema: pa.Schema) -> None:
        self._columns = _core.Schema(schema)
        self._handle: InputHandle[Any] = InputHandle()

    @property
    def schema(self) -> pa.Schema:
        """The schema of the batches."""
        return self._columns.to_pyarrow()

    @property
    def time(self) -> Time:
        """The time of the rows sent now."""
        return self._handle.time

    @property
    def closed(self) -> bool:
        """Whether nothing can be sent any more."""
        return self._handle.closed

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"at {self.time}"
        place = self._handle.place
        state = f"{place} {state}" if place or self.closed else "connected to no dataflow"
        return f"<ArrowInput of {', '.join(self.schema.names)}: {state}>"

    def to_stream(self, scope: Scope, *, name: str | None = None) -> ArrowStream:
        """The stream of the input in a scope, from the input's current time on."""
        output = Output(Form.COLUMNS, self._columns)
        return ArrowStream(scope, scope._input_from(self._handle, _core.StreamKind.COLUMNS, output, name))

    def send(self, data: Any) -> None:
        """Sends the rows of a batch or a table at the current time; steps while too much is on its way.

        Args:
            data: A `pyarrow.RecordBatch` or `pyarrow.Table`, a Polars or pandas data frame, or anything else
                with ``__arrow_c_array__`` or ``__arrow_c_stream__``. Strings and bytes may be laid out in
                any way; otherwise the schema must be the input's.

        Raises:
            TypeError: If it is something else, or has another schema; it names the fields that differ.
            PointstampError: If the input is closed, or connected to no dataflow.
        """
        _core.send_columns(self._handle, data, self._columns)

    def advance_to(self, time: Time) -> None:
        """Moves to a later time: nothing will be sent before it any more.

        Raises:
            TimeError: Unless `time` is at or after `self.time`.
        """
        self._handle.advance_to(time)

    def flush(self) -> None:
        """Sends what waits."""
        self._handle.flush()

    def close(self) -> None:
        """Closes the input: nothing will be sent any more. Closing it twice does nothing."""
        self._handle.close()

    def __enter__(self) -> ArrowInput:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
