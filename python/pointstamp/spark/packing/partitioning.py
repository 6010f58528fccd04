"""Partitioning of packed batches: turn N goes to partition N % tasks.

`DataFrame.repartition` also deals rows in turns, but first sorts them by a hash of their contents, so that a
task that runs twice deals the same. For batches of a megabyte, that reads and copies everything once more.
Here each batch has a number for its turn. Spark partitions by the hash of a column, so the column holds a
number whose hash leads to the partition of that turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["dealing", "keys"]

_SEED = 42
"""The seed of the hash by which Spark partitions rows."""


def dealing(packed: DataFrame, tasks: int) -> DataFrame:
    """Repartitions packed batches: turn N goes to partition N modulo the number of tasks."""
    from pyspark.sql import functions as sf

    whose = sf.array(*map(sf.lit, keys(tasks)))
    return packed.repartition(tasks, whose[sf.pmod("turn", sf.lit(tasks))])


def keys(tasks: int) -> tuple[int, ...]:
    """For each of so many tasks, the least number of 32 bits that Spark's hash deals to it."""
    found: dict[int, int] = {}
    number = 0
    while len(found) < tasks:
        found.setdefault(_hash(number) % tasks, number)
        number += 1
    return tuple(found[task] for task in range(tasks))


def _hash(number: int) -> int:
    """Returns Spark's `hash` of an integer column: Murmur3 of its 32 bits."""
    key = _times(_rotated(_times(number, 0xCC9E2D51), 15), 0x1B873593)
    mixed = (_times(_rotated(_SEED ^ key, 13), 5) + 0xE6546B64) & _MASK
    mixed ^= 4  # bytes
    mixed = _times(mixed ^ mixed >> 16, 0x85EBCA6B)
    mixed = _times(mixed ^ mixed >> 13, 0xC2B2AE35)
    mixed ^= mixed >> 16
    return mixed - (1 << 32) if mixed >> 31 else mixed


_MASK = (1 << 32) - 1


def _times(one: int, other: int) -> int:
    return one * other & _MASK


def _rotated(bits: int, by: int) -> int:
    return (bits << by | bits >> (32 - by)) & _MASK
