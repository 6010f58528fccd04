"""Returns the memory that a dropped dataflow has freed to the system.

Allocators keep what was freed for later. A process of the resident cluster may wait for hours after a large
dataflow, on a machine where others need the memory.
"""

from __future__ import annotations

import ctypes
import sys
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["give_back_memory"]


def give_back_memory() -> None:
    """Returns freed memory of Arrow and of the C library to the system, where they can."""
    pa.default_memory_pool().release_unused()
    trim = _trim()
    if trim is not None:
        trim(0)


def _trim() -> Callable[[int], int] | None:
    """The function of the GNU C library that returns free memory; None elsewhere."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return None
    return trim
