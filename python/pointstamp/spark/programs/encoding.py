"""Values of columns as numbers: codes from 0, in the order of the values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pointstamp.spark.programs.gathering import Array

__all__ = ["encoded"]


def encoded(columns: Sequence[Sequence[pa.Array]], kind: pa.DataType) -> tuple[pa.Array, list[Array]]:
    """The distinct values of some columns in ascending order, and each column as positions among them.

    Args:
        columns: For each column its arrays, integers or strings of type `kind`, without nulls.
        kind: The type of the values.
    """
    arrays = [array for parts in columns for array in parts if len(array)]
    lengths = np.cumsum([sum(map(len, parts)) for parts in columns])[:-1]
    if pa.types.is_integer(kind):
        values, codes = _integers(arrays, kind)
    else:
        values, codes = _others(arrays, kind)
    return values, np.split(codes, lengths)


def _integers(arrays: list[pa.Array], kind: pa.DataType) -> tuple[pa.Array, Array]:
    if not arrays:
        return pa.array([], kind), np.zeros(0, np.int64)
    numbers = np.concatenate([array.to_numpy() for array in arrays]).astype(np.int64, copy=False)
    least, most = int(numbers.min()), int(numbers.max())
    if most - least >= 4 * len(numbers) + 1024:
        return _others([pa.array(numbers)], pa.int64(), kind)
    # Numbers that lie close together are looked up in a table.
    numbers = numbers - least
    there = np.zeros(most - least + 1, bool)
    there[numbers] = True
    table = np.cumsum(there) - 1
    return pa.array(np.flatnonzero(there) + least).cast(kind), table[numbers]


def _others(
    arrays: list[pa.Array], kind: pa.DataType, final: pa.DataType | None = None
) -> tuple[pa.Array, Array]:
    together = pa.chunked_array(arrays, kind).dictionary_encode().unify_dictionaries()
    if not together.num_chunks:
        return pa.array([], final or kind), np.zeros(0, np.int64)
    values = together.chunk(0).dictionary
    codes = np.concatenate([chunk.indices.to_numpy() for chunk in together.chunks])
    order = pc.sort_indices(values)
    ranks = np.empty(len(values), np.int64)
    ranks[order.to_numpy()] = np.arange(len(values))
    return values.take(order).cast(final or kind), ranks[codes]
