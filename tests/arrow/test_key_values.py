"""Values of columns that are the same key: floats, and nulls inside structs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import duck
import pointstamp as ps
from columns import pieces, run


def other_nan(width: int) -> Any:
    """A NaN of other bits."""
    bits = {16: 0xFE01, 32: 0xFFC00001, 64: 0xFFF8000000000001}[width]
    return np.array([bits], f"uint{width}").view(f"float{width}")[0]


FLOATS = [(pa.float16(), 16), (pa.float32(), 32), (pa.float64(), 64)]
NESTED: list[Any] = [
    lambda floats: floats,
    lambda floats: floats.dictionary_encode() if floats.type != pa.float16() else floats,
    lambda floats: pa.StructArray.from_arrays([floats], names=["x"]),
    lambda floats: pa.ListArray.from_arrays(pa.array(range(len(floats) + 1), pa.int32()), floats),
    lambda floats: pa.LargeListArray.from_arrays(pa.array(range(len(floats) + 1)), floats),
    lambda floats: pa.FixedSizeListArray.from_arrays(floats, 1),
    lambda floats: pa.StructArray.from_arrays([NESTED[2](floats), NESTED[3](floats)], names=["a", "b"]),
]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("form", range(len(NESTED)))
@pytest.mark.parametrize(("data_type", "width"), FLOATS)
def test_one_rule_for_all_floats(data_type: pa.DataType, width: int, form: int, workers: int) -> None:
    """-0.0 is 0.0, and a NaN is a NaN: in a join, an aggregate, distinct, and where rows go."""

    def table(values: list[Any], **others: Any) -> pa.Table:
        floats = pa.array(np.array(values, f"float{width}"), data_type)
        return pa.table({"k": NESTED[form](floats), **others})

    left = table([0.0, math.nan, 1.5], left=[0, 1, 2])
    right = table([-0.0, other_nan(width), 1.5, -1.5], right=[0, 1, 2, 3])
    for one, other in ((left, right), (right, left)):
        found = run(lambda a, b: a.join(b, "k"), [(0, one)], [(0, other)], workers=workers)
        assert sorted((row["left"], row["right"]) for row in found[0]) == [(0, 0), (1, 1), (2, 2)]
    both = pa.concat_tables([left.select(["k"]), right.select(["k"])])
    both = both.append_column("n", pa.array([1] * len(both)))
    for sizes in (1, 4):
        feed = [(0, piece) for piece in pieces(both, sizes)]
        found = run(lambda rows: rows.aggregate("k", n_sum=ps.col("n").sum()), feed, workers=workers)
        assert sorted(row["n_sum"] for row in found[0]) == [1, 2, 2, 2]
        assert len(run(lambda rows: rows.distinct("k"), feed, workers=workers)[0]) == 4
        assert len(run(lambda rows: rows.distinct_so_far("k"), feed, workers=workers)[0]) == 4


def test_a_null_inside_a_key_matches_another_and_a_null_key_none() -> None:
    """Matches as DuckDB does."""
    struct = pa.struct([("x", pa.float64()), ("y", pa.string())])
    keys = [{"x": None, "y": "a"}, {"x": 0.0, "y": None}, {"x": None, "y": None}, None]
    left = pa.table({"k": pa.array(keys, struct), "l": range(4)})
    right = pa.table({"k": pa.array(keys[::-1], struct), "r": range(4)})
    pairs = duck.connection().register("a", left).register("b", right)
    expected = pairs.sql("select a.l, b.r from a join b on a.k = b.k").fetchall()
    for workers in (1, 2):
        found = run(lambda a, b: a.join(b, "k"), [(0, left)], [(0, right)], workers=workers)
        assert (
            sorted((row["l"], row["r"]) for row in found[0]) == sorted(expected) == [(0, 3), (1, 2), (2, 1)]
        )
