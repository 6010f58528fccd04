"""Captures and Spark: read as a format, in batches and as streams, and written from inside `run`."""

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext

import pointstamp as ps
from pointstamp.capture.events import EventReader
from pointstamp.spark import Epochs, capture_into, register_captures, run, setup_cluster
from pointstamp.spark.captures.filters import Condition
from pointstamp.spark.captures.reading import Reach
from pointstamp.spark.captures.source import CaptureSource

WORDS = pa.schema([("word", pa.string()), ("n", pa.int64())])


@pytest.fixture
def reading(spark: Any) -> Any:
    register_captures(spark)
    return spark.read.format("pointstamp")


def write(path: Path, days: list[list[str]]) -> None:
    """A capture of words: those of each list at its time."""

    def build(scope: ps.Scope) -> None:
        rows: list[Any] = [{"word": word, "n": day} for day, words in enumerate(days) for word in words]
        stream = scope.to_stream(rows).delay(lambda row, _: int(row["n"])).to_arrow(WORDS)
        stream.capture_into(ps.EventWriter(path))

    ps.example(build)


def test_a_capture_is_a_table(reading: Any, tmp_path: Path) -> None:
    write(tmp_path / "0.events", [["to", "be"], [], ["or"]])
    rows = reading.option("timeColumn", "day").load(str(tmp_path / "0.events"))
    assert rows.schema.simpleString() == "struct<word:string,n:bigint,day:bigint>"
    assert sorted(map(tuple, rows.collect())) == [("be", 0, 0), ("or", 2, 2), ("to", 0, 0)]


def test_each_of_a_folder_is_a_partition(reading: Any, tmp_path: Path) -> None:
    for number, words in enumerate(["to", "be", "or"]):
        write(tmp_path / f"{number}.events", [[words]])
    (tmp_path / ".hidden").write_bytes(b"no capture")
    (tmp_path / "_run").write_bytes(b"no capture")
    rows = reading.load(str(tmp_path))
    assert rows.rdd.getNumPartitions() == 3
    assert sorted(row.word for row in rows.collect()) == ["be", "or", "to"]
    some = reading.load(f"{tmp_path}/[01].events")
    assert sorted(row.word for row in some.collect()) == ["be", "to"]


def test_what_is_whole_is_read_of_one_that_was_cut(reading: Any, tmp_path: Path) -> None:
    path = tmp_path / "cut.events"
    write(path, [["to", "be"], ["or"]])
    whole = path.read_bytes()
    path.write_bytes(whole[:-200])
    assert 0 < len(reading.load(str(path)).collect()) < 4


def test_damage_names_the_file_and_the_byte(reading: Any, tmp_path: Path) -> None:
    path = tmp_path / "words.events"
    write(path, [["to", "be"], ["or"]])
    data = bytearray(path.read_bytes())
    data[-40] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(ps.CodecError, match=rf"{re.escape(str(path))}: damaged at byte \d+"):
        reading.load(str(path)).collect()
    path.write_bytes(b"something else, which is no capture")
    with pytest.raises(
        ps.CodecError, match=rf"{re.escape(str(path))}: damaged at byte 0: this is not a capture"
    ):
        reading.load(str(path))


def test_what_cannot_be_read(reading: Any, spark: Any, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no capture at"):
        reading.load(str(tmp_path / "nothing"))
    write(tmp_path / "0.events", [["to"]])
    with pytest.raises(ps.GraphError, match=r"lacks 'm'; its columns are \['word', 'n'\]"):
        reading.schema("word string, m bigint").load(str(tmp_path)).collect()
    options = spark.read.format("pointstamp").option("timecolum", "day")
    with pytest.raises(ps.GraphError, match="no option 'timecolum'"):
        options.load(str(tmp_path))


def test_a_schema_with_fewer_columns_reads_only_those(reading: Any, tmp_path: Path) -> None:
    write(tmp_path / "0.events", [["to", "be"]])
    rows = reading.option("timeColumn", "day").schema("day bigint, word string").load(str(tmp_path))
    assert sorted(map(tuple, rows.collect())) == [(0, "be"), (0, "to")]


def test_filters_leave_out_rows_before_spark_gets_them(spark: Any, tmp_path: Path) -> None:
    name = "spark.sql.python.filterPushdown.enabled"
    write(tmp_path / "0.events", [[f"w{n}" for n in range(day + 1)] for day in range(6)])
    conditions = [
        "day = 3",
        "day in (1, 4)",
        "n > 3 and word >= 'w2'",
        "word = 'w1' and day < 3",
        "n is null",
    ]
    conditions += ["n <=> 2", "day > 1 or word = 'w0'", "not (n < 2)", "double(n) > 2.5", "word like 'w%'"]

    def found() -> list[Any]:
        rows = spark.read.format("pointstamp").option("timeColumn", "day").load(str(tmp_path))
        return [sorted(map(tuple, rows.where(condition).collect())) for condition in conditions]

    register_captures(spark)
    expected = found()
    assert [len(rows) for rows in expected] == [4, 7, 7, 2, 0, 3, 20, 18, 15, 21]
    spark.conf.set(name, "true")
    try:
        register_captures(spark)
        assert found() == expected
        rows = spark.read.format("pointstamp").option("timeColumn", "day").load(str(tmp_path))
        reader = CaptureSource({"path": str(tmp_path), "timeColumn": "day"}).captures()
        given = [
            batch.num_rows
            for batch in reader.read(
                Reach(str(tmp_path / "0.events"), None, None),
                rows.schema,
                [Condition("day", "EqualTo", 3), Condition("word", "In", ("w0", "w3"))],
            )
        ]
        assert given == [2]
    finally:
        spark.conf.unset(name)
        register_captures(spark)


def test_a_frame_is_written_and_read_again(reading: Any, spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "rows"
    rows = spark.range(0, 100, 1, 3).selectExpr("id", "concat('w', id % 7) word", "id % 5 day")
    write = rows.sortWithinPartitions("day").write.format("pointstamp").option("timeColumn", "day")
    write.mode("append").save(str(folder))
    again = reading.option("timeColumn", "day").load(str(folder))
    assert again.schema.simpleString() == "struct<id:bigint,word:string,day:bigint>"
    assert sorted(map(tuple, again.collect())) == sorted(map(tuple, rows.collect()))
    write.mode("append").save(str(folder))
    assert reading.load(str(folder)).count() == 200
    write.mode("overwrite").save(str(folder))
    assert len(os.listdir(folder)) == 3
    assert os.listdir(tmp_path) == ["rows"], "nothing is left beside it"

    def replayed(scope: ps.Scope) -> Any:
        return (
            scope.replay([ps.EventReader(path) for path in sorted(folder.iterdir())]).to_records().capture()
        )

    events = ps.example(replayed).extract()
    assert [(day, len(at)) for day, at in events] == [(day, 20) for day in range(5)]


def test_a_frame_without_rows_or_times_is_written(reading: Any, spark: Any, tmp_path: Path) -> None:
    rows = spark.range(0, 10, 1, 2)
    rows.where("id < 0").write.format("pointstamp").mode("append").save(str(tmp_path / "none"))
    assert reading.load(str(tmp_path / "none")).count() == 0
    rows.write.format("pointstamp").mode("append").save(str(tmp_path / "some"))
    timed = reading.option("timeColumn", "t").load(str(tmp_path / "some"))
    assert sorted(map(tuple, timed.collect())) == [(n, 0) for n in range(10)]


def test_a_write_that_fails_leaves_nothing(reading: Any, spark: Any, tmp_path: Path) -> None:
    rows = spark.range(0, 20, 1, 2).selectExpr("id", "10 - id day")
    write = rows.where("id < 10").write.format("pointstamp").option("timeColumn", "day").mode("append")
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    spark.conf.set(name, 2)
    try:
        with pytest.raises(
            ps.TimeError, match=r"'day' is \d+ after \d+: sort it first, .*sortWithinPartitions"
        ):
            write.save(str(tmp_path / "unsorted"))
    finally:
        spark.conf.unset(name)
    late = rows.write.format("pointstamp").option("timeColumn", "day").mode("append")
    with pytest.raises(ps.TimeError, match=r"column 'day' of the DataFrame is a row's time, .* and is -9"):
        late.save(str(tmp_path / "negative"))
    with pytest.raises(ps.GraphError, match="timeColumn names no column of the DataFrame, which has id, day"):
        rows.write.format("pointstamp").option("timeColumn", "t").mode("append").save(str(tmp_path / "none"))
    assert os.listdir(tmp_path) == []


def test_records_are_pickles_and_want_to_be_allowed(reading: Any, spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "records.events"
    pairs = [("to", 1), ("be", None)]
    ps.example(lambda scope: scope.to_stream(pairs).capture_into(ps.EventWriter(path)))
    with pytest.raises(ps.CodecError, match=r'say \.option\("allowPickle", "true"\)'):
        reading.load(str(path))
    allowed = spark.read.format("pointstamp").option("allowPickle", "true")
    with pytest.raises(ps.GraphError, match="no schema: give it, as in"):
        allowed.load(str(path))
    rows = allowed.schema("word string, n int").load(str(path)).collect()
    assert sorted(map(tuple, rows)) == [("be", None), ("to", 1)]
    with pytest.raises(
        ValueError, match=r"has the record \('to', 1\), which is no row of \['word'\]|column 'word'"
    ):
        allowed.schema("word string").load(str(path)).collect()


def test_times_of_several_coordinates(reading: Any, tmp_path: Path) -> None:
    path = tmp_path / "loop.events"

    def main(worker: ps.Worker) -> None:
        with worker.dataflow(dims=2) as scope:
            records: list[Any] = [{"word": "to", "n": 3}]
            rows = scope.to_stream(records).delay(lambda row, _: (1, int(row["n"])))
            rows.to_arrow(WORDS).capture_into(ps.EventWriter(path))

    ps.execute(main)
    [row] = reading.option("timeColumn", "time").load(str(path)).collect()
    assert row.time == [1, 3]


def test_a_stream_follows_captures_that_grow(reading: Any, spark: Any, tmp_path: Path) -> None:
    folder, place = tmp_path / "in", tmp_path / "checkpoint"
    folder.mkdir()
    write(tmp_path / "whole", [[f"w{n}" for n in range(day + 1)] for day in range(12)])
    data = (tmp_path / "whole").read_bytes()
    stream = spark.readStream.format("pointstamp").option("timeColumn", "day")
    words = stream.schema("word string, n bigint, day bigint").load(str(folder))
    table = tmp_path / "out"

    def go_on() -> list[tuple[Any, ...]]:
        query = words.writeStream.format("parquet").option("checkpointLocation", str(place))
        query.trigger(availableNow=True).start(str(table)).awaitTermination()
        return sorted(map(tuple, spark.read.schema(words.schema).parquet(str(table)).collect()))

    expected = sorted((f"w{n}", day, day) for day in range(12) for n in range(day + 1))
    (folder / "a.events").write_bytes(data[: len(data) // 2 + 5])  # within an event
    half = go_on()
    assert 0 < len(half) < len(expected)
    assert set(half) < set(expected)
    with open(folder / "a.events", "ab") as file:
        file.write(data[len(data) // 2 + 5 :])
    (folder / "b.events").write_bytes(b"")  # not yet begun
    assert go_on() == expected
    (folder / "b.events").write_bytes(data)
    assert go_on() == sorted(expected * 2)
    assert go_on() == sorted(expected * 2)


def test_a_capture_that_begins_anew_under_a_stream_is_refused(
    reading: Any, spark: Any, tmp_path: Path
) -> None:
    """Rows of the old capture are out already; those of the new one would go on amid another stream."""
    folder, place = tmp_path / "in", tmp_path / "checkpoint"
    folder.mkdir()
    write(tmp_path / "old", [[f"w{n}" for n in range(day + 1)] for day in range(12)])
    write(tmp_path / "new", [[f"v{n}" for n in range(day + 1)] for day in range(20)])
    old, new = (tmp_path / "old").read_bytes(), (tmp_path / "new").read_bytes()
    stream = spark.readStream.format("pointstamp").schema("word string, n bigint").load(str(folder))

    def go_on() -> None:
        query = stream.writeStream.format("parquet").option("checkpointLocation", str(place))
        query.trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination()

    (folder / "a.events").write_bytes(old[: len(old) // 2])
    go_on()
    (folder / "a.events").write_bytes(new)
    with pytest.raises(ps.CodecError, match=r"a\.events: it was written anew"):
        go_on()


def test_damage_in_a_stream(reading: Any, spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    write(folder / "a.events", [["to"], ["be"]])
    data = bytearray((folder / "a.events").read_bytes())
    data[-40] ^= 1
    (folder / "a.events").write_bytes(bytes(data))
    words = spark.readStream.format("pointstamp").load(str(folder))
    query = (
        words.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    )
    with pytest.raises(ps.CodecError, match=r"a\.events: damaged at byte \d+"):
        query.awaitTermination()


def test_a_stream_is_written_as_captures(reading: Any, spark: Any, tmp_path: Path) -> None:
    """Each micro-batch once, also where Spark does not know that it was written."""
    source, folder, place = tmp_path / "in", tmp_path / "out", tmp_path / "checkpoint"
    rows = spark.range(0, 90, 1, 3).selectExpr("id", "concat('w', id % 7) word", "id % 5 day")
    rows.write.parquet(str(source))
    stream = spark.readStream.schema(rows.schema).option("maxFilesPerTrigger", 1).parquet(str(source))
    write = stream.writeStream.format("pointstamp").option("timeColumn", "day")
    write = write.option("checkpointLocation", str(place)).trigger(availableNow=True)

    def go_on() -> None:
        write.start(str(folder)).awaitTermination()

    def there() -> list[tuple[Any, ...]]:
        return sorted(map(tuple, reading.option("timeColumn", "day").load(str(folder)).collect()))

    expected = sorted(map(tuple, rows.collect()))
    go_on()
    assert there() == expected
    assert sorted(name for name in os.listdir(folder) if not name.startswith((".", "_"))) == [
        f"batch-{number:010}" for number in range(3)
    ]
    (place / "commits" / "2").unlink()  # Spark was killed before it noted the last commit
    (place / "commits" / ".2.crc").unlink()
    go_on()
    assert there() == expected
    rows.write.mode("append").parquet(str(source))
    go_on()
    assert there() == sorted(expected * 2)

    followed = spark.readStream.schema(rows.schema).format("pointstamp").option("timeColumn", "day")
    query = followed.load(str(folder)).writeStream.format("memory").queryName("followed")
    query.trigger(availableNow=True).start().awaitTermination()
    assert sorted(map(tuple, spark.table("followed").collect())) == sorted(expected * 2)

    other = stream.writeStream.format("pointstamp").trigger(availableNow=True)
    with pytest.raises(ps.GraphError, match=r"has the captures of another query, .*: write into another fo"):
        other.option("checkpointLocation", str(tmp_path / "2")).start(str(folder)).awaitTermination()
    assert there() == sorted(expected * 2)


def test_a_stream_that_cannot_be_written(reading: Any, spark: Any, tmp_path: Path) -> None:
    source = tmp_path / "in"
    spark.range(0, 10, 1, 1).selectExpr("id", "5 - id day").write.parquet(str(source))
    stream = spark.readStream.schema("id bigint, day bigint").parquet(str(source))

    def fails(match: str, query: Any, *, checkpoint: str | None = "checkpoint") -> None:
        query = query.format("pointstamp").option("timeColumn", "day").trigger(availableNow=True)
        if checkpoint is not None:
            query = query.option("checkpointLocation", str(tmp_path / checkpoint))
        with pytest.raises(ps.PointstampError, match=match):
            query.start(str(tmp_path / "out")).awaitTermination()

    fails("'day' of the DataFrame is a row's time, which is 0 or more, and is -4", stream.writeStream)
    of_all = "spark.sql.streaming.checkpointLocation"
    spark.conf.set(of_all, str(tmp_path / "of_all"))
    try:
        fails(r'needs .option\("checkpointLocation", folder\)', stream.writeStream, checkpoint=None)
    finally:
        spark.conf.unset(of_all)
    whole = stream.groupBy("day").count().writeStream.outputMode("complete")
    fails('in the output mode "append"', whole, checkpoint="other")
    assert not [name for name in tmp_path.glob("out/**/*") if name.is_file()]


def capturing(folder: Path, *, fails: bool = False) -> Any:
    name = str(folder)

    def build(scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
        def passing(batch: pa.RecordBatch) -> pa.RecordBatch:
            if fails and scope.index == scope.peers - 1:
                raise LookupError("no such word")
            return batch

        counts = rows.exchange("k").map_batches(passing)
        capture_into(counts, name)
        return counts.aggregate("k", id_count=ps.col("id").count())

    return build


@pytest.mark.parametrize("num_workers", [1, 2])
def test_a_run_captures(reading: Any, spark: Any, tmp_path: Path, num_workers: int) -> None:
    folder = tmp_path / "captured"
    rows = spark.range(0, 100, 1, 3).selectExpr("id", "id % 7 k", "id % 3 t")
    out = run(rows, capturing(folder), time="t", num_workers=num_workers)
    assert not folder.exists(), "nothing runs before an action"
    assert out.count() == 7 * 3
    assert len(list(folder.glob("worker-*.events"))) == num_workers
    captured = reading.option("timeColumn", "time").load(str(folder))
    assert sorted((row.id, row.time) for row in captured.collect()) == [(n, n % 3) for n in range(100)]
    assert all(EventReader(path)._begin() for path in folder.glob("*.events"))
    before = {path: path.stat().st_ino for path in folder.iterdir()}
    assert out.count() == 7 * 3, "a second action runs it again"
    assert {path: path.stat().st_ino for path in folder.iterdir()} == before, "and the first capture counts"
    with pytest.raises(FileExistsError, match="a capture replaces nothing"):
        run(rows, capturing(folder), time="t", num_workers=num_workers)
    assert os.listdir(tmp_path) == ["captured"], "nothing is left beside it"


def test_a_run_that_fails_leaves_no_capture(spark: Any, tmp_path: Path) -> None:
    rows = spark.range(0, 100, 1, 3).selectExpr("id", "id % 7 k")
    with pytest.raises(LookupError):
        run(rows, capturing(tmp_path / "captured", fails=True), num_workers=2).count()
    assert os.listdir(tmp_path) == []


def test_another_program_was_faster(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "captured"
    rows = spark.range(0, 100, 1, 3).selectExpr("id", "id % 7 k")
    out = run(rows, capturing(folder), num_workers=1)
    shutil.copytree(Path(__file__).parent, folder)
    with pytest.raises(FileExistsError, match="a capture replaces nothing"):
        out.count()
    assert os.listdir(tmp_path) == ["captured"]


def test_capturing_is_for_run(spark: Any, tmp_path: Path) -> None:
    build = capturing(tmp_path / "captured")
    with setup_cluster(1) as cluster:
        with pytest.raises(ps.ConfigError, match=r"captures a dataflow of pointstamp\.spark\.run"):
            cluster.run(spark.range(3).selectExpr("id", "id k"), build)
        assert cluster.run(spark.range(3), lambda _scope, rows: rows).count() == 3
    with pytest.raises(ps.ConfigError, match=r"captures a dataflow of pointstamp\.spark\.run"):
        Epochs(spark, "id bigint, k bigint", build, directory=str(tmp_path / "epochs"))

    def twice(_scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
        if TaskContext.get() is not None:
            capture_into(rows, tmp_path / "captured")
        capture_into(rows, tmp_path / "captured")
        return rows

    with pytest.raises(ps.GraphError, match="two streams are captured into"):
        run(spark.range(3), twice, num_workers=1).count()
    assert not (tmp_path / "captured").exists()
