"""`pointstamp.spark.calls.running`: inputs, outputs, and a comparison with Spark itself."""

import datetime
import os
import resource
import sys
import time
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import functions as sf

import pointstamp as ps
from harness import notes
from pointstamp.spark import run

TASKS = [1, 2]

tasks = pytest.mark.parametrize("num_workers", TASKS)


def identity(_scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
    return rows


def counted(_scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
    return rows.aggregate("word", n_sum=ps.col("n").sum())


@pytest.fixture
def words(spark: Any) -> Any:
    return spark.range(0, 20_000, 1, 4).select(
        sf.concat(sf.lit("w"), (sf.col("id") * sf.col("id") % 91).cast("string")).alias("word"),
        (sf.col("id") % 5).alias("n"),
        (sf.col("id") * 7 % 4).alias("day"),
    )


@tasks
def test_word_count_is_what_group_by_says(words: Any, num_workers: int, same: Any) -> None:
    counts = run(words, counted, "word string, n_sum bigint", num_workers=num_workers)
    same(counts, words.groupBy("word").agg(sf.sum("n").alias("n_sum")))


@tasks
def test_of_each_time_by_itself(words: Any, num_workers: int, same: Any) -> None:
    counts = run(
        words, counted, "word string, n_sum bigint", time="day", time_column="day", num_workers=num_workers
    )
    same(counts, words.groupBy("word", "day").agg(sf.sum("n").alias("n_sum")).select("word", "n_sum", "day"))


def test_an_epoch_closes_before_later_ones_come(spark: Any) -> None:
    # One row a time, and a source that would queue them all: counts that left out of order would show it.
    rows = spark.range(0, 500, 1, 3).select((499 - sf.col("id")).alias("t"))

    def build(_scope: ps.Scope, times: ps.ArrowStream) -> ps.ArrowStream:
        seen: list[int] = []

        def note(port: Any, output: Any, notificator: Any) -> None:
            for message, batch in port:
                assert set(batch["t"].to_pylist()) == {message.time}
                notificator.notify_at(message.retain())
            for capability, _ in notificator:
                seen.append(capability.time)
                with output.session(capability) as session:
                    session.give(pa.record_batch({"t": [capability.time], "turn": [len(seen)]}))

        schema = pa.schema([("t", pa.int64()), ("turn", pa.int64())])
        return times.unary_notify(ps.Pipeline(), "turns", [], note, schema=schema)  # type: ignore[no-any-return]

    turns = run(rows, build, "t bigint, turn bigint", time="t", num_workers=1).collect()
    assert sorted((row.t, row.turn) for row in turns) == [(t, t + 1) for t in range(500)]


@tasks
def test_times_of_several_inputs(spark: Any, num_workers: int) -> None:
    left = spark.range(0, 40, 1, 3).select((sf.col("id") % 4).alias("when"), sf.col("id").alias("k"))
    right = spark.range(0, 40, 1, 2).select((sf.col("id") % 3).cast("smallint").alias("then"), "id")
    plain = spark.range(0, 5).select(sf.col("id").alias("n"))

    def build(_scope: ps.Scope, left: Any, right: Any, plain: Any) -> dict[str, Any]:
        return {"left": left, "right": right, "plain": plain}

    outputs = run(
        {"left": left, "right": right, "plain": plain},
        build,
        {"left": "k bigint, when bigint", "right": "id bigint, then smallint", "plain": "n bigint"},
        time={"left": "when", "right": "then"},
        time_column="time",
        num_workers=num_workers,
    )
    assert {(row.k, row.time) for row in outputs["left"].collect()} == {(k, k % 4) for k in range(40)}
    assert {(row.id, row.time) for row in outputs["right"].collect()} == {(k, k % 3) for k in range(40)}
    assert {(row.n, row.time) for row in outputs["plain"].collect()} == {(n, 0) for n in range(5)}
    outputs.unpersist()


@tasks
def test_several_inputs_and_outputs_of_one_run(spark: Any, num_workers: int, tmp_path: Path) -> None:
    people = spark.createDataFrame([(n, f"p{n}") for n in range(50)], "id int, name string")
    visits = spark.createDataFrame([(n % 60, n) for n in range(300)], "id int, day int")
    runs = str(tmp_path)

    def build(scope: ps.Scope, people: Any, visits: Any) -> dict[str, Any]:
        import tempfile

        if scope.index == 0 and TaskContext.get() is not None:
            tempfile.mkstemp(dir=runs)
        return {
            "joined": people.join(visits, "id"),
            "days": visits.aggregate("id", day_max=ps.col("day").max()),
        }

    outputs = run(
        {"people": people, "visits": visits},
        build,
        {"joined": "id int, name string, day int", "days": "id int, day_max int"},
        num_workers=num_workers,
    )
    assert sorted(outputs) == ["days", "joined"]
    assert list(tmp_path.iterdir()) == [], "a run before an action asks for it"
    joined = {(row.id, row.name, row.day) for row in outputs["joined"].collect()}
    assert joined == {(n % 60, f"p{n % 60}", n) for n in range(300) if n % 60 < 50}
    days = {row.id: row.day_max for row in outputs["days"].collect()}
    assert days == {n: 240 + n for n in range(60)}
    assert outputs["days"].count() == 60
    assert len(list(tmp_path.iterdir())) == 1, "one run for all outputs and actions"
    outputs.unpersist()
    assert outputs["days"].count() == 60
    assert len(list(tmp_path.iterdir())) == 2


BERLIN = datetime.timezone(datetime.timedelta(hours=1))
NESTED = "array<struct<name: string, at: timestamp, parts: map<string, decimal(9,3)>>>"
TYPES: dict[str, Any] = {
    "boolean": True,
    "tinyint": -128,
    "smallint": 32767,
    "int": -(2**31),
    "bigint": 2**63 - 1,
    "float": 0.5,
    "double": -1e300,
    "decimal(10,2)": Decimal("12345678.90"),
    "decimal(38,18)": Decimal("-12345678901234567890.123456789012345678"),
    "string": "naïve ✓",
    "binary": b"\x00\xff",
    "date": datetime.date(1969, 12, 31),
    "timestamp": datetime.datetime(2024, 10, 27, 2, 30, 0, 123456),
    "timestamp_ntz": datetime.datetime(1900, 1, 1, 0, 0, 0, 1),
    "interval day to second": datetime.timedelta(days=-3, microseconds=7),
    "array<int>": [1, None, 3],
    "map<string, int>": {"a": 1, "b": None},
    "struct<a: int, b: struct<c: string>>": (1, ("x",)),
    NESTED: [("n", datetime.datetime(2020, 1, 1), {"p": Decimal("1.500")}), None],
}


@tasks
def test_every_type_survives(spark: Any, num_workers: int, same: Any) -> None:
    schema = ", ".join(f"c{n} {kind}" for n, kind in enumerate(TYPES))
    values = tuple(TYPES.values())
    some = [tuple(v if (n + k) % 3 else None for k, v in enumerate(values)) for n in range(6)]
    rows = spark.createDataFrame([values, (None,) * len(values), *some], schema)
    out = run(rows, identity, rows.schema, num_workers=num_workers)
    assert out.schema == rows.schema
    same(out, rows)


def test_columns_are_ordered_and_cast_by_name(spark: Any) -> None:
    rows = spark.createDataFrame([(1, "x", 2.0), (2, None, 3.0)], "a int, b string, c double")

    def build(_scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
        kinds = {
            "u": pa.uint32(),
            "d": pa.dictionary(pa.int32(), pa.string()),
            "t": pa.timestamp("ns"),
            "i": pa.int32(),
        }
        schema = pa.schema(kinds.items())

        def refused_by_spark(batch: pa.RecordBatch) -> pa.RecordBatch:
            n = batch.num_rows
            return pa.record_batch(
                [
                    pa.array([7] * n, kinds["u"]),
                    batch["b"].dictionary_encode(),
                    pa.array([1_000_000] * n, kinds["t"]),
                    batch["a"],
                ],
                schema=schema,
            )

        return rows.map_batches(refused_by_spark, schema)

    out = run(rows, build, "i bigint, t timestamp_ntz, d string, u bigint", num_workers=1)
    at = datetime.datetime(1970, 1, 1, 0, 0, 0, 1000)
    assert sorted(map(tuple, out.collect())) == [(1, at, "x", 7), (2, at, None, 7)]


def test_a_schema_that_is_left_out(spark: Any) -> None:
    kinds = {
        "a": pa.int64(),
        "u": pa.uint16(),
        "d": pa.dictionary(pa.int32(), pa.string()),
        "t": pa.timestamp("ms"),
        "l": pa.list_(pa.struct([("x", pa.uint32()), ("y", pa.large_string())])),
        "h": pa.float16(),
    }
    schema = pa.schema(list(kinds.items()))
    row = {
        "a": 1,
        "u": 65535,
        "d": "x",
        "t": datetime.datetime(2026, 1, 1),
        "l": [{"x": 7, "y": "z"}],
        "h": 0.5,
    }

    def build(_scope: ps.Scope, rows: ps.ArrowStream) -> dict[str, ps.ArrowStream]:
        made = rows.map_batches(lambda _: pa.RecordBatch.from_pylist([row], schema), schema)
        return {"rows": rows, "made": made}

    out = run(spark.range(1), build, time_column="when", num_workers=1)
    assert out["rows"].schema.simpleString() == "struct<id:bigint,when:bigint>"
    inner = "array<struct<x:bigint,y:string>>"
    expected = f"struct<a:bigint,u:int,d:string,t:timestamp_ntz,l:{inner},h:float,when:bigint>"
    assert out["made"].schema.simpleString() == expected
    [got] = out["made"].collect()
    assert got.asDict(recursive=True) == {**row, "when": 0}
    out.unpersist()
    words = "time_column adds the column 'id' to the output"
    with pytest.raises(ps.GraphError, match=words):
        run(spark.range(1), identity, time_column="id")


def test_the_trial_in_the_driver_leaves_no_trace(spark: Any) -> None:
    calls: list[int] = []

    def build(_scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
        calls.append(1)
        found = len(calls)
        schema = pa.schema([("calls", pa.int64())])
        return rows.map_batches(lambda _: pa.record_batch({"calls": [found]}), schema)

    out = run(spark.range(1), build, num_workers=1)
    assert calls == []
    assert [row.calls for row in out.collect()] == [1]


def test_a_module_that_only_the_executors_may_have(spark: Any) -> None:
    def build(_scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
        if TaskContext.get() is None:
            raise ModuleNotFoundError("No module named 'theirs'", name="theirs")
        return rows

    assert run(spark.range(3), build, "id bigint", num_workers=1).count() == 3
    with pytest.raises(ModuleNotFoundError, match="theirs") as raised:
        run(spark.range(3), build, num_workers=1)
    assert any("give the schema" in note for note in notes(raised.value))


@tasks
def test_no_rows_at_all(spark: Any, num_workers: int) -> None:
    for nothing in (spark.createDataFrame([], "word string, n bigint"), spark.range(10).where("id < 0")):
        out = run(nothing, identity, nothing.schema, num_workers=num_workers)
        assert out.collect() == []

    def greets(scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
        mine = [{"n": scope.index}]
        return scope.to_stream(mine).to_arrow(pa.schema([("n", pa.int64())]))

    out = run(spark.range(0), greets, "n bigint", num_workers=num_workers)
    assert sorted(row.n for row in out.collect()) == list(range(num_workers))


@tasks
def test_one_empty_input_and_empty_partitions(spark: Any, num_workers: int) -> None:
    some = spark.range(0, 1000, 1, 16).where("id = 3 or id = 999")
    none = spark.createDataFrame([], "id bigint")

    def build(_scope: ps.Scope, some: Any, none: Any) -> ps.ArrowStream:
        both: ps.ArrowStream = some.concat(none)
        return both

    out = run({"some": some, "none": none}, build, "id bigint", num_workers=num_workers)
    assert sorted(row.id for row in out.collect()) == [3, 999]


@tasks
def test_skew(spark: Any, num_workers: int) -> None:
    # Nearly all rows in one partition, of one key.
    rows = spark.range(0, 60_000, 1, 1).select(sf.lit("w").alias("word"), sf.lit(1).alias("n"))
    rows = rows.union(spark.createDataFrame([("v", 5)], "word string, n int"))
    out = run(rows, counted, "word string, n_sum bigint", num_workers=num_workers)
    assert {row.word: row.n_sum for row in out.collect()} == {"w": 60_000, "v": 5}


def test_actions_that_spark_refuses_on_a_barrier_stage(words: Any) -> None:
    out = run(words, counted, "word string, n_sum bigint", num_workers=1)
    everything = {tuple(row) for row in out.collect()}
    assert {tuple(row) for row in out.limit(3).collect()} < everything
    assert {tuple(row) for row in out.take(2)} < everything
    assert {tuple(row) for row in out.coalesce(1).collect()} == everything
    assert tuple(out.first()) in everything
    assert out.union(out).count() == 2 * len(everything)


def test_a_result_is_an_input(words: Any) -> None:
    once = run(words, counted, "word string, n_sum bigint", num_workers=2)
    again = once.select("word", sf.col("n_sum").alias("n"))
    twice = run(again, counted, "word string, n_sum bigint", num_workers=1)
    assert Counter(map(tuple, twice.collect())) == Counter(map(tuple, once.collect()))


def test_runs_leave_nothing_to_each_other(spark: Any) -> None:
    # Spark's Python processes are used again, one run after the other.
    schema = pa.schema([("pid", pa.int64()), ("threads", pa.int64()), ("files", pa.int64())])
    driver = os.getpid()

    def build(scope: ps.Scope, rows: ps.ArrowStream) -> dict[str, ps.ArrowStream]:
        def count() -> tuple[int, int]:
            threads, files = (len(os.listdir(f"/proc/self/{what}")) for what in ("task", "fd"))
            return threads, files

        # A thread that has ended may be listed for a moment. The driver, which builds the dataflow to see
        # its outputs, has threads of Spark, and waits for none.
        first = sys.__dict__.setdefault("counted at first", count())
        until = time.monotonic() + (0 if os.getpid() == driver else 60)
        while (found := count()) > first and time.monotonic() < until:
            time.sleep(0.02)
        threads, files = found
        here = [{"pid": os.getpid(), "threads": threads, "files": files}]
        return {"rows": rows, "here": scope.to_stream(here).to_arrow(schema)}

    schemas = {"rows": "id bigint", "here": "pid bigint, threads bigint, files bigint"}
    seen: dict[int, list[tuple[int, int]]] = {}
    for n in range(5):
        outputs = run(spark.range(0, 10 + n), build, schemas, num_workers=2)
        assert sorted(row.id for row in outputs["rows"].collect()) == list(range(10 + n))
        for row in outputs["here"].collect():
            seen.setdefault(row.pid, []).append((row.threads, row.files))
        outputs.unpersist()
    assert len(seen) < 10, "no process was used again"
    assert all(max(found) <= found[0] for found in seen.values()), seen


@tasks
def test_threads_follow_the_cpus_of_a_task(wide: Any, num_workers: int) -> None:
    def build(scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
        found = [{"process": os.getpid(), "worker": scope.index, "peers": scope.peers}]
        schema = pa.schema([("process", pa.int64()), ("worker", pa.int64()), ("peers", pa.int64())])
        return scope.to_stream(found).to_arrow(schema)

    schema = "process bigint, worker bigint, peers bigint"
    rows = run(wide.range(1), build, schema, num_workers=num_workers).collect()
    assert sorted(row.worker for row in rows) == list(range(2 * num_workers))
    assert {row.peers for row in rows} == {2 * num_workers}
    assert len({row.process for row in rows}) == num_workers


def test_rows_reach_all_threads_of_all_tasks(wide: Any, same: Any) -> None:
    words = wide.range(0, 20_000, 1, 5).select(
        (sf.col("id") * sf.col("id") % 91).cast("string").alias("word"), (sf.col("id") % 5).alias("n")
    )
    counts = run(words, counted, "word string, n_sum bigint")  # the three tasks that fit
    same(counts, words.groupBy("word").agg(sf.sum("n").alias("n_sum")))


@pytest.mark.executors
def test_modules_of_the_user(executors: Any, tmp_path: Path) -> None:
    module = tmp_path / "of_yours.py"
    module.write_text(
        "import pointstamp as ps\n"
        "def build(scope, rows):\n    return rows.aggregate('k', n_sum=ps.col('n').sum())\n",
        encoding="utf-8",
    )
    rows = executors.range(0, 100).selectExpr("id % 3 k", "id n")
    executors.sparkContext.addPyFile(str(module))
    import of_yours  # type: ignore[import-not-found]

    out = run(rows, of_yours.build, "k bigint, n_sum bigint")
    assert {row.k: row.n_sum for row in out.collect()} == {k: sum(range(k, 100, 3)) for k in range(3)}


@pytest.mark.executors
def test_python_has_little_memory(executors: Any) -> None:
    def build(_scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        assert TaskContext.get() is None or limit == 1 << 30
        return rows.aggregate("k", id_count=ps.col("id").count())

    rows = executors.range(0, 200_000, 1, 8).select((sf.col("id") % 1000).alias("k"), "id")
    out = run(rows, build, "k bigint, id_count bigint").collect()
    assert sorted(map(tuple, out)) == [(k, 200) for k in range(1000)]


@tasks
@pytest.mark.parametrize(
    ("value", "data_type"),
    [("9223372036854775807", "Int64"), ("cast(repeat('9', 38) as decimal(38, 0))", r"Decimal128\(38, 0\)")],
)
def test_sums_that_do_not_fit_are_errors(spark: Any, num_workers: int, value: str, data_type: str) -> None:
    """Sums raise as in Spark, whose ANSI mode does not wrap either."""
    rows = spark.sql(f"select {value} as amount, id % 2 as half from range(4)")
    words = rf"aggregate: the sum of column 'amount' for the key half=[01] is beyond {data_type}: cast"
    made = run(
        rows,
        lambda _, rows: rows.aggregate("half", amount_sum=ps.col("amount").sum()),
        num_workers=num_workers,
    )
    with pytest.raises(OverflowError, match=words):
        made.collect()
