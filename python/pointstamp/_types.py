"""Names for annotations, in programs and in this package."""

from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Frame", "Summary", "Time"]

Time: TypeAlias = int | tuple[int, ...]
"""A timestamp: ``()``, a plain ``int``, or a flat tuple of two or more."""


class _Exports(Protocol):
    """A data frame: it has columns, and exports them by Arrow's C interface."""

    @property
    def columns(self) -> object:
        """Its columns, or their names."""

    def __arrow_c_stream__(self, requested_schema: object = ...) -> object: ...


Frame: TypeAlias = "pa.Table | pa.RecordBatch | _Exports"
"""Rows of columns in memory: a `pyarrow.Table` or `RecordBatch`, a data frame of pandas or Polars."""

Summary: TypeAlias = int | tuple[int, ...]
"""A path summary: what is added to every coordinate, or to the last one."""
