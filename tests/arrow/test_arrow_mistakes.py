"""Arrow streams: data and calls that do not fit raise errors with a reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from arrow_rows import SCHEMA, TABLE, run


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pa.table({"k": [1]}), "field 1 's' .* is missing"),
        (pa.table({"k": [1.5], "s": ["a"]}), "field 'k' is Float64 and should be Int64"),
        (pa.table({"k": [1], "t": ["a"]}), "field 1 is 't' and should be 's'"),
        (pa.table({"k": [1], "s": ["a"], "x": [1]}), "field 2 'x' .* is not in the stream's schema"),
        ([1, 2], "not list"),
        (pa.array([1, 2]), "one array"),
    ],
)
def test_data_of_another_schema(data: Any, message: str) -> None:
    def main(worker: ps.Worker) -> None:
        rows = ps.ArrowInput(SCHEMA)
        with worker.dataflow() as scope:
            rows.to_stream(scope)
        rows.send(data)

    with pytest.raises(TypeError, match=message):
        ps.execute(main)


def test_nulls_in_a_field_without_nulls() -> None:
    schema = pa.schema([pa.field("k", pa.int64(), nullable=False)])

    def main(worker: ps.Worker) -> None:
        rows = ps.ArrowInput(schema)
        with worker.dataflow() as scope:
            rows.to_stream(scope)
        rows.send(pa.table({"k": [1, 2]}))
        rows.send(pa.table({"k": [1, None]}))

    with pytest.raises(TypeError, match="field 'k' holds 1 nulls"):
        ps.execute(main)


def test_a_function_that_returns_another_schema() -> None:
    with pytest.raises(TypeError, match=r"field 1 's' .* is missing") as raised:
        run(lambda rows: rows.map_batches(lambda batch: batch.select(["k"]), name="narrow"))
    assert any("narrow" in note for note in getattr(raised.value, "__notes__", ["narrow"]))
    with pytest.raises(TypeError, match="returned NoneType"):
        run(lambda rows: rows.map_batches(lambda batch: None))


def test_what_a_function_raises_comes_out_unchanged() -> None:
    error = ValueError("mine")

    def fail(batch: pa.RecordBatch) -> pa.RecordBatch:
        raise error

    with pytest.raises(ValueError, match="mine") as raised:
        run(lambda rows: rows.map_batches(fail))
    assert raised.value is error


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda rows: rows.exchange("x"), "no column 'x': the columns are 'k', 's'"),
        (lambda rows: rows.exchange([]), "at least one column"),
        (lambda rows: rows.partition(0, "k"), "at least 1"),
        (lambda rows: rows.distinct(["k", "y"]), "no column 'y'"),
        (lambda rows: rows.aggregate("k", z_sum=ps.col("z").sum()), "no column 'z'"),
        (lambda rows: rows.aggregate("k", s_sum=ps.col("s").sum()), "sum is not defined for column 's'"),
        (lambda rows: rows.join(rows, "w"), "no column 'w'"),
        (lambda rows: rows.join(rows, "k", suffix=""), "two columns named 's'"),
        (lambda rows: rows.unary(ps.Exchange("x"), "own", lambda c, i: lambda *_: None), "no column 'x'"),
    ],
)
def test_errors_when_the_dataflow_is_built(build: Callable[[ps.ArrowStream], Any], message: str) -> None:
    with pytest.raises(ps.GraphError, match=message):
        ps.example(lambda scope: build(scope.empty().to_arrow(SCHEMA)))


MAP = pa.map_(pa.string(), pa.int64())


@pytest.mark.parametrize(
    ("data_type", "name"),
    [
        (MAP, "Map"),
        (pa.list_view(pa.int64()), "ListView"),
        (pa.large_list_view(pa.int64()), "LargeListView"),
        (pa.sparse_union([pa.field("a", pa.int64())]), "Union"),
        (pa.dense_union([pa.field("a", pa.int64())]), "Union"),
        (pa.struct([("m", MAP)]), "Struct"),
        (pa.list_(MAP), "List"),
    ],
)
@pytest.mark.parametrize(
    "use",
    [
        lambda rows: rows.exchange("m"),
        lambda rows: rows.partition(2, "m"),
        lambda rows: rows.aggregate("m", k_sum=ps.col("k").sum()),
        lambda rows: rows.distinct("m"),
        lambda rows: rows.distinct(),
        lambda rows: rows.join(rows, "m"),
        lambda rows: rows.sink(ps.Exchange("m"), "own", lambda info: lambda input: None),
    ],
)
def test_keys_that_cannot_be_hashed(
    data_type: pa.DataType, name: str, use: Callable[[ps.ArrowStream], Any]
) -> None:
    schema = pa.schema([("m", data_type), ("k", pa.int32())])
    with pytest.raises(ps.GraphError, match=rf"column 'm' of type {name}\b.* cannot be hashed: a key column"):
        ps.example(lambda scope: use(ps.ArrowInput(schema).to_stream(scope)))


def test_keys_that_cannot_be_joined() -> None:
    def join(scope: ps.Scope) -> None:
        other = pa.schema([("k", pa.int32())])
        scope.empty().to_arrow(SCHEMA).join(scope.empty().to_arrow(other), "k")

    with pytest.raises(ps.GraphError, match="'k' is Int64 on the left and Int32 on the right"):
        ps.example(join)


def test_streams_of_different_schemas_do_not_mix() -> None:
    other = pa.schema([("k", pa.int32()), ("s", pa.string())])

    def concat(scope: ps.Scope) -> None:
        scope.empty().to_arrow(SCHEMA).concat(scope.empty().to_arrow(other))

    def loop(scope: ps.Scope) -> None:
        handle, _ = scope.feedback(schema=other)
        scope.empty().to_arrow(SCHEMA).connect_loop(handle)

    def loop_of_records(scope: ps.Scope) -> None:
        handle, _ = scope.feedback()
        scope.empty().to_arrow(SCHEMA).connect_loop(handle)

    for build in (concat, loop):
        with pytest.raises(ps.GraphError, match="field 'k' is Int"):
            ps.example(build)
    with pytest.raises(ps.GraphError, match="it carries records"):
        ps.example(loop_of_records)


def test_keys_of_the_other_kind() -> None:
    with pytest.raises(TypeError, match="carries columns"):
        ps.example(
            lambda scope: scope.empty().to_arrow(SCHEMA).sink(ps.Exchange(len), "s", lambda info: print)
        )
    with pytest.raises(TypeError, match="carries records"):
        ps.example(lambda scope: scope.empty().sink(ps.Exchange("k"), "s", lambda info: print))
    with pytest.raises(TypeError, match="not 3"):
        ps.Exchange(3)  # type: ignore[arg-type]


def test_a_session_that_fails_sends_nothing() -> None:
    def build(capability: ps.Capability, info: ps.OperatorInfo) -> Any:
        capability.drop()

        def logic(input: Any, output: Any) -> None:
            for cap, batch in input:
                try:
                    with output.session(cap) as session:
                        session.give(batch)
                        raise KeyError
                except KeyError:
                    pass
                with output.session(cap) as session:
                    session.give(batch.slice(0, 1))
                    with pytest.raises(TypeError, match="is missing"):
                        session.give(batch.select(["k"]))

        return logic

    [(_, rows)] = run(lambda rows: rows.unary(ps.Pipeline(), "careful", build))
    assert rows == TABLE.to_pylist()[:1]
