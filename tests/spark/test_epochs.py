"""Structured Streaming: stopped, restarted and killed, the result is that of a batch run."""

import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from micro_batches import OUTPUTS, ROWS, SUPPORT, Source, first_seen
from pointstamp.spark import Epochs, setup_cluster

SCHEMA = pa.schema([("word", pa.string()), ("n", pa.int64())])


def without_m(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.select(["word", "n"])


@pytest.fixture
def source(spark: Any, tmp_path: Path) -> Iterator[Source]:
    yield Source(spark, tmp_path)
    for query in spark.streams.active:
        query.stop()


def test_stopped_and_restarted(source: Source) -> None:
    source.add(2)
    with source.epochs() as epochs:
        assert epochs.read("words").collect() == []
        source.run(epochs)
        assert epochs.sealed == [0, 1]
        source.check(epochs)
        source.add(1)
        source.run(epochs)  # another query, the same dataflow
        source.check(epochs)
    source.add(2)
    with source.epochs(workers=2) as epochs:
        assert epochs.sealed == [0, 1, 2]
        source.check(epochs)
        source.run(epochs)
        assert epochs.sealed == [0, 1, 2, 3, 4]
        source.check(epochs)


def test_a_sealed_batch_is_skipped(source: Source) -> None:
    source.add(1)
    batch = source.spark.read.schema(ROWS).parquet(str(source.files))
    with source.epochs() as epochs:
        epochs(batch, 0)
        epochs(batch, 0)
        source.check(epochs)
    with source.epochs() as epochs:
        epochs(batch, 0)
        source.check(epochs)
        epochs(batch.where("false"), 3)
        with pytest.raises(
            ps.GraphError, match=r"micro-batch 1 comes after micro-batch 3 was sealed: .*another query"
        ):
            epochs(batch, 1)


KILLED = """
    import os, signal, sys
    from pathlib import Path
    sys.path[:0] = [{tests!r}, {support!r}]
    import conftest, micro_batches
    from pointstamp.spark.calls.store import Store as store

    where = {where!r}

    def die(*_):
        os.kill(os.getpid(), signal.SIGKILL)

    plain = getattr(store, where[0])

    def fails(self, *arguments):
        if arguments[-1] == 1 and where[1] in map(str, arguments):
            if where[2] == "after":
                plain(self, *arguments)
            die()
        return plain(self, *arguments)

    setattr(store, where[0], fails)
    sessions = conftest.Sessions(Path({root!r}))
    source = micro_batches.Source.__new__(micro_batches.Source)
    source.spark, source.root = sessions.get("local[2]"), Path({root!r})
    source.files = source.root / "files"
    with source.epochs() as epochs:
        source.run(epochs)
"""


@pytest.mark.parametrize(
    "where",
    [
        ("write", "output/words", "after"),
        ("seal", "1", "after"),
    ],
    ids=["in the middle of a batch", "between two batches"],
)
def test_killed(source: Source, where: tuple[str, str, str]) -> None:
    source.add(3)
    program = textwrap.dedent(
        KILLED.format(tests=str(Path(__file__).parent), support=SUPPORT, where=where, root=str(source.root))
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=380, check=False
    )
    assert result.returncode == -signal.SIGKILL, result.stderr
    with source.epochs() as epochs:
        assert epochs.sealed == ([0, 1] if where[0] == "seal" else [0])
        source.run(epochs)
        assert epochs.sealed == [0, 1, 2]
        source.check(epochs)


def test_an_operator_that_raises_ends_the_query(source: Source) -> None:
    def build(_scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
        def fail(batch: pa.RecordBatch) -> pa.RecordBatch:
            raise LookupError("no such word")

        return rows.map_batches(fail)

    source.add(2)
    with Epochs(source.spark, ROWS, build, ROWS, str(source.root / "stored")) as epochs:
        with pytest.raises(LookupError, match="no such word"):
            source.run(epochs)
        assert epochs.sealed == []
    with Epochs(source.spark, ROWS, lambda _scope, rows: rows, ROWS, str(source.root / "stored")) as epochs:
        source.run(epochs)
        assert epochs.read().count() == 24


def test_rows_that_are_missing_a_column(source: Source) -> None:
    with source.epochs() as epochs:
        with pytest.raises(Exception, match="word"):
            epochs(source.spark.range(3), 0)
        assert epochs.sealed == []


def test_on_a_resident_cluster_of_several_processes(wide: Any, tmp_path: Path) -> None:
    source = Source(wide, tmp_path)
    source.add(3)
    with setup_cluster(2) as cluster, source.epochs(cluster=cluster) as epochs:
        source.run(epochs)
        assert epochs.sealed == [0, 1, 2]
        source.check(epochs)
        source.add(1)
        source.run(epochs)
        assert epochs.sealed == [0, 1, 2, 3]
        source.check(epochs)


def test_on_the_resident_cluster(source: Source) -> None:
    source.add(2)
    with setup_cluster(1) as cluster:
        with source.epochs(cluster=cluster) as epochs:
            source.run(epochs)
            assert epochs.sealed == [0, 1]
        source.add(1)
        with source.epochs(cluster=cluster) as epochs:
            source.check(epochs)
            source.run(epochs)
            source.check(epochs)
    source.add(1)
    with source.epochs() as epochs:  # what is stored does not depend on where it runs
        source.run(epochs)
        assert epochs.sealed == [0, 1, 2, 3]
        source.check(epochs)


# ---------------------------------------------------------------- whose directory it is


def sealed(source: Source, checkpoint: str = "checkpoint") -> Path:
    """A directory with one micro-batch, which a query has sealed."""
    source.add(1)
    with source.epochs() as epochs:
        source.run(epochs, checkpoint)
        assert epochs.sealed == [0]
    return source.root / "stored"


def test_a_directory_of_another_schema_is_refused(source: Source) -> None:
    stored = sealed(source)

    def refused(words: str, rows: Any = ROWS, build: Any = first_seen, **options: Any) -> None:
        with pytest.raises(ps.GraphError, match=words) as raised:
            Epochs(source.spark, rows, build, directory=str(stored), **options)
        assert "remove both the directory and the query's checkpoint" in str(raised.value)

    refused("output 'words' has word string, n bigint, epoch bigint there, and now has word string, n bigint")
    refused(
        "the outputs words, sums, and build now has words", build=lambda _, rows: {"words": rows.distinct()}
    )
    other = {"words": "word string, n int", "sums": "word string, n_sum bigint"}
    refused("and now has word string, n int, epoch", schema=other, time_column="epoch")
    more = "word string, n bigint, m int"
    refused(
        "the input has word string, n bigint there, and now has word string, n bigint, m int",
        rows=more,
        schema=OUTPUTS,
        build=lambda _, rows: first_seen(_, rows.map_batches(without_m, SCHEMA)),
        time_column="epoch",
    )
    with source.epochs() as epochs:
        source.check(epochs)


def test_the_rows_of_a_fresh_checkpoint_are_not_dropped(source: Source) -> None:
    sealed(source)
    with source.epochs() as epochs:
        with pytest.raises(
            ps.GraphError, match=r"is fed by the query .*, and its sealed micro-batches are of"
        ) as e:
            source.run(epochs, "another")
        assert "and dropped" in str(e.value)
        assert epochs.sealed == [0]
        with pytest.raises(ps.GraphError, match="is fed by no streaming query of Spark's"):
            epochs(source.spark.read.schema(ROWS).parquet(str(source.files)), 0)
        source.run(epochs)
        source.check(epochs)


def test_a_directory_without_a_description_is_refused(source: Source) -> None:
    stored = sealed(source)
    description = stored / "description"
    text = description.read_text(encoding="utf-8")
    description.unlink()
    with pytest.raises(ps.GraphError, match="has sealed micro-batches and no description"):
        source.epochs()
    for damaged, words in (
        (text[:20], "description is damaged"),
        (text.replace('"version": 1', '"version": 2'), "has the form 2 and this version .* up to 1"),
    ):
        description.write_text(damaged, encoding="utf-8")
        (stored / ".description.crc").unlink(missing_ok=True)
        with pytest.raises(ps.GraphError, match=words):
            source.epochs()


def test_what_was_never_sealed_binds_nobody(source: Source) -> None:
    def failing(_scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
        return rows.map_batches(lambda batch: 1 / 0)

    source.add(1)
    with Epochs(source.spark, ROWS, failing, directory=str(source.root / "stored")) as epochs:
        with pytest.raises(ZeroDivisionError):
            source.run(epochs, "another")
    assert (source.root / "stored" / "description").exists()
    with source.epochs() as epochs:
        source.run(epochs)
        source.check(epochs)


def test_a_mistake_in_build_is_raised_by_the_constructor(source: Source) -> None:
    with pytest.raises(ps.GraphError, match="'wrd'"):
        Epochs(
            source.spark, ROWS, lambda _, rows: rows.distinct("wrd"), directory=str(source.root / "stored")
        )
    with pytest.raises(ps.ConfigError, match="directory= is missing"):
        Epochs(source.spark, ROWS, first_seen)
    assert not (source.root / "stored").exists()
