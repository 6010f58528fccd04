"""Names for annotations, in programs and in this package."""

from typing import Protocol, TypeAlias

__all__ = ["Frame", "Summary", "Time"]

Time: TypeAlias = int | tuple[int, ...]
"""A timestamp: ``()``, a plain ``int``, or a flat tuple of two or more."""


class Frame(Protocol):
    """Rows of columns in memory: a `pyarrow.Table` or `RecordBatch`, a data frame of pandas or Polars."""

    @property
    def columns(self) -> object:
        """The columns, or their names."""

    def __arrow_c_stream__(self, requested_schema: object = ...) -> object: ...


Summary: TypeAlias = int | tuple[int, ...]
"""A path summary: the increment of every coordinate, or of the last one."""
