"""The functions that Spark's tasks enter the package by; `shipped` calls them.

Each unpickles its arguments, and sees to it that what goes wrong reaches the driver as the exception it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pointstamp.spark import packing, resident, task
from pointstamp.spark.failures import adopt, told

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    import pyarrow as pa

__all__ = ["deliver", "fetch", "pack", "reside", "run", "unpack"]


def _entered(
    function: Callable[..., Iterator[Any]],
) -> Callable[[bytes, Iterator[pa.RecordBatch]], Iterator[Any]]:
    def entry(pickled: bytes, batches: Iterator[pa.RecordBatch]) -> Iterator[Any]:
        from pyspark import cloudpickle

        key, arguments = cloudpickle.loads(pickled)
        adopt(key)
        with told():
            yield from function(*arguments, batches)

    return entry


pack = _entered(packing.pack)
"""The first stage: rows of an input to packed batches."""

run = _entered(task.run)
"""The barrier stage: packed batches of every input to those of every output."""

unpack = _entered(packing.unpack)
"""The last stage: packed batches of an output to its rows."""

reside = _entered(resident.reside)
"""The barrier stage of a resident cluster."""

deliver = _entered(resident.deliver)
"""A task that brings packed batches to the resident cluster."""

fetch = _entered(resident.fetch)
"""A task that fetches an output of the resident cluster."""
