"""The resident cluster: jobs and streams that come to it, and how it ends."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import functions as sf

import pointstamp as ps
from harness import notes
from pointstamp.spark import Cluster, Epochs, run, setup_cluster, shutdown_cluster


@pytest.fixture
def cluster(spark: Any) -> Iterator[Cluster]:
    with setup_cluster(1) as made:
        yield made


def identity(_scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
    return rows


def exchanged(_scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
    """Needs processes of its own: rows move between them."""
    return rows.exchange("id")


def failing(error: Callable[[ps.Scope], Exception]) -> Callable[[ps.Scope, ps.ArrowStream], ps.ArrowStream]:
    """Builds a dataflow whose operator raises an exception."""

    def build(scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
        def fail(batch: pa.RecordBatch) -> pa.RecordBatch:
            raise error(scope)

        return rows.map_batches(fail)

    return build


def test_jobs_one_after_the_other(cluster: Cluster, spark: Any) -> None:
    def build(_scope: ps.Scope, left: Any, right: Any) -> dict[str, Any]:
        return {
            "joined": left.join_so_far(right, "id"),
            "days": right.aggregate("day", id_count=ps.col("id").count()),
        }

    for size in (100, 0, 40):
        left = spark.range(0, size, 1, 3).select("id", (sf.col("id") * 2).alias("double"))
        right = spark.range(0, 60, 1, 2).select("id", (sf.col("id") % 4).alias("day"))
        out = cluster.run(
            {"left": left, "right": right},
            build,
            {"joined": "id bigint, double bigint, day bigint", "days": "day bigint, id_count bigint"},
            time={"right": "day"},
            time_column="when",
        )
        joined = {tuple(row) for row in out["joined"].collect()}
        assert joined == {(n, 2 * n, n % 4, n % 4) for n in range(min(size, 60))}
        assert sorted(map(tuple, out["days"].collect())) == [(day, 15, day) for day in range(4)]


def test_a_result_stays_when_the_cluster_is_gone(spark: Any) -> None:
    with setup_cluster(1) as cluster:
        out = cluster.run(spark.range(10), identity, "id bigint")
    assert sorted(row.id for row in out.collect()) == list(range(10))
    shutdown_cluster()  # once more does nothing


def test_there_is_one_at_a_time(cluster: Cluster) -> None:
    with pytest.raises(ps.ConfigError, match="there is a resident cluster already"):
        setup_cluster(1)


def test_too_few_slots(spark: Any) -> None:
    with pytest.raises(ps.ConfigError, match=r"3 tasks needs as many slots at once, and Spark has 2"):
        setup_cluster(2)


def test_an_operator_that_raises_ends_it(spark: Any, tmp_path: Path) -> None:
    with setup_cluster(1) as cluster:
        with pytest.raises(LookupError, match="no such word") as raised:
            cluster.run(spark.range(10), failing(lambda _: LookupError("no such word")), "id bigint")
        assert any("operator 'map_batches'" in note for note in notes(raised.value))
        with pytest.raises(ps.ClusterError, match="failed earlier, with LookupError: no such word") as later:
            cluster.run(spark.range(10), identity, "id bigint")
        assert later.value.__cause__ is raised.value
        with pytest.raises(ps.ClusterError, match="failed earlier"):
            Epochs(spark, "id bigint", identity, directory=str(tmp_path), cluster=cluster)
    with setup_cluster(1) as cluster:
        assert cluster.run(spark.range(10), identity, "id bigint").count() == 10


def test_a_call_right_after_a_failure_knows_of_it(spark: Any) -> None:
    # The thread that ends the process is slow to tell the driver of it; the one that answers is not.
    class Slow(LookupError):
        def __reduce__(self) -> Any:
            if threading.current_thread() is threading.main_thread() and TaskContext.get() is not None:
                time.sleep(1)
            return (LookupError, self.args)

    with setup_cluster(1) as cluster:
        with pytest.raises(LookupError, match="no such word") as raised:
            cluster.run(spark.range(10), failing(lambda _: Slow("no such word")), "id bigint")
        assert cluster.closed
        with pytest.raises(ps.ClusterError, match="failed earlier, with LookupError: no such word") as later:
            cluster.run(spark.range(10), identity, "id bigint")
        assert later.value.__cause__ is raised.value


def test_a_mistake_in_build_does_not_end_it(cluster: Cluster, spark: Any) -> None:
    with pytest.raises(ps.GraphError, match="'nme'"):
        cluster.run(spark.range(10), lambda _scope, rows: rows.exchange("nme"))
    out = cluster.run(spark.range(10), lambda _scope, rows: {"a": rows, "b": rows})
    assert out["a"].count() == out["b"].count() == 10


def test_a_build_that_raises_on_a_worker_ends_it(spark: Any) -> None:
    def build(_scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
        return rows if TaskContext.get() is None else rows.exchange("nme")

    with setup_cluster(1) as cluster, pytest.raises(ps.GraphError, match="'nme'"):
        cluster.run(spark.range(10), build)


def test_rows_that_are_refused_do_not_end_it(cluster: Cluster, spark: Any) -> None:
    rows = spark.range(3).selectExpr("id", "id - 1 t")
    with pytest.raises(ps.TimeError, match="is -1 in the row"):
        cluster.run(rows, identity, time="t")
    assert cluster.run(spark.range(10), identity).count() == 10


def test_it_outlives_the_daemon_of_sparks_python_processes(spark: Any) -> None:
    # Spark itself ends it, and starts another, when a task is killed while its Python process starts.
    def end_the_daemon(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        os.kill(os.getppid(), signal.SIGTERM)
        yield from batches
        time.sleep(30)  # until the daemon ends this process

    def printing(_scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
        return rows.map_batches(lambda batch: (print("a batch", flush=True), batch)[1])

    with setup_cluster(1) as cluster:
        with pytest.raises(Exception, match="exited unexpectedly"):
            spark.range(1).mapInArrow(end_the_daemon, "id bigint").collect()
        # Spark may still tell the old daemon to end a process, which fails a task of one more job.
        for _ in range(20):
            try:
                spark.range(0, 2, 1, 2).mapInArrow(lambda batches: batches, "id bigint").collect()
                break
            except Exception:
                time.sleep(0.5)
        for _ in range(2):
            assert cluster.run(spark.range(10), printing).count() == 10


def test_run_says_who_holds_the_slots(spark: Any) -> None:
    other = spark.newSession()  # of the same context, and so of the same slots
    before = run(other.range(10), exchanged)
    words = r"2 tasks needs .* of Spark's 2 the resident cluster holds 1 .*own run\(\).*num_workers=1 or less"
    with setup_cluster(1, session=spark):
        for session in (spark, other):
            with pytest.raises(ps.ConfigError, match=words):
                run(session.range(10), exchanged)
        assert run(other.range(10), exchanged, num_workers=1).count() == 10
        for _ in range(2):  # planned when the slots were free; the second stage is there already
            with pytest.raises(ps.ConfigError, match=words):
                before.count()
    assert before.count() == 10


def test_barrier_stages_of_others_are_left_alone(spark: Any) -> None:
    rows: list[Any] = []

    def of_a_table() -> None:
        table = spark.range(0, 2, 1, 2).mapInArrow(lambda batches: batches, "id bigint", barrier=True)
        rows.append(sorted(row.id for row in table.collect()))

    def of_a_list() -> None:
        rows.append(spark.sparkContext.parallelize(range(2), 2).barrier().mapPartitions(list).collect())

    threads = [threading.Thread(target=one) for one in (of_a_table, of_a_list)]
    with setup_cluster(1):
        for thread in threads:
            thread.start()
        time.sleep(4)  # the watcher looks every second, and cancels what it has seen twice
        assert rows == [], "they have to wait for a slot"
    for thread in threads:
        thread.join()
    assert rows == [[0, 1], [0, 1]]


def test_another_follows_one_that_failed(spark: Any) -> None:
    def build(_scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
        return rows.map_batches(lambda batch: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        setup_cluster(1, session=spark).run(spark.range(10), build)
    assert setup_cluster(1, session=spark).run(spark.range(10), identity).count() == 10
    shutdown_cluster()


def test_of_several_processes(wide: Any) -> None:
    def build(_scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
        return rows.aggregate("k", id_count=ps.col("id").count())

    with setup_cluster() as cluster:
        assert cluster.num_workers == 2
        for size in (1000, 10):
            rows = wide.range(0, size, 1, 5).select("id", (sf.col("id") % 7).alias("k"))
            out = cluster.run(rows, build, "k bigint, id_count bigint")
            expected = {k: len(range(k, size, 7)) for k in range(7)}
            assert {row.k: row.id_count for row in out.collect()} == expected

        fails = failing(lambda scope: LookupError(f"worker {scope.index}"))
        with pytest.raises(LookupError, match=r"worker [0-3]"):
            cluster.run(wide.range(10), fails, "id bigint")
