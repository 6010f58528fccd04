"""Names for annotations, in programs and in this package."""

from typing import TypeAlias

__all__ = ["Summary", "Time"]

Time: TypeAlias = int | tuple[int, ...]
"""A timestamp: ``()``, a plain ``int``, or a flat tuple of two or more."""

Summary: TypeAlias = int | tuple[int, ...]
"""A path summary: what is added to every coordinate, or to the last one."""
