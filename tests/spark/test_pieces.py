"""The parts of `pointstamp.spark` by themselves."""

import itertools
import re
import sys
import threading
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.spark import compat
from pointstamp.spark.job import slots as slots_module
from pointstamp.spark.job import task
from pointstamp.spark.packing import exceptions
from pointstamp.spark.packing.batches import Packed, pack, packed, read
from pointstamp.spark.packing.exceptions import coded, found, raising_in_text
from pointstamp.spark.packing.merging import in_order
from pointstamp.spark.packing.partitioning import dealing
from pointstamp.spark.packing.pickling import arrived
from pointstamp.spark.resident.link import Link


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=8), max_size=6), st.integers(0, 3))
def test_batches_are_merged_in_the_order_of_times(parts: list[list[int]], plain: int) -> None:
    timed = [
        Packed(1, min(times), pa.record_batch({"t": sorted(times), "n": [n] * len(times)}))
        for n, times in enumerate(parts)
    ]
    untimed = [Packed(0, 0, pa.record_batch({"x": [n]})) for n in range(plain)]
    merged = list(in_order(sorted(untimed + timed, key=lambda batch: batch.low), [None, "t"]))
    assert [batch.low for batch in merged] == sorted(batch.low for batch in merged)
    for batch in merged:
        if batch.stream == 1:
            assert set(batch.batch["t"].to_pylist()) == {batch.low}
    timed_rows = [b.batch.to_pylist() for b in merged if b.stream == 1]
    rows = [(row["t"], row["n"]) for batch_rows in timed_rows for row in batch_rows]
    assert sorted(rows) == sorted((t, n) for n, times in enumerate(parts) for t in times)
    assert sum(batch.stream == 0 for batch in merged) == plain


@pytest.mark.parametrize("tasks", [1, 2, 3, 7, 64])
def test_batches_are_dealt_by_turns(tasks: int, spark: Any) -> None:
    from pyspark.sql import functions as sf

    turns = spark.range(0, 3 * tasks, 1, 2).selectExpr("cast(id as int) turn")
    dealt = dealing(turns, tasks).select("turn", sf.spark_partition_id().alias("task"))
    assert sorted(map(tuple, dealt.collect())) == [(turn, turn % tasks) for turn in range(3 * tasks)]


def test_small_batches_are_packed_together() -> None:
    schema = pa.schema([("t", pa.int64())])
    batches = [pa.record_batch({"t": [n] * 1000}, schema=schema) for n in range(100)]
    rows = list(pack(3, "the input", schema, "t", 5, iter(batches)))
    assert [row["turn"][0].as_py() for row in rows] == [5, 6]
    assert [row["low"][0].as_py() for row in rows] == [0, 66]
    back = pa.Table.from_batches([one.batch for one in read(iter(rows))])
    assert back.equals(pa.Table.from_batches(batches))


def test_a_part_of_a_stage_is_not_run_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark would run it so where a stage failed while one of its tasks was ending well."""
    pyspark = pytest.importorskip("pyspark")

    class Context:
        def getTaskInfos(self) -> list[str]:  # noqa: N802 - Spark's name
            return ["127.0.0.1:1"]

    monkeypatch.setattr(pyspark.BarrierTaskContext, "get", Context)
    with pytest.raises(ps.ClusterError, match="1 of 2 tasks of a barrier stage"):
        next(task.run(task.Job(b"", [None], b"", 2, None, None), iter([])))


@pytest.mark.parametrize(("seen", "slots"), [([0, 0, 0, 0, 1, 2, 9], 2), ([0, 1, 1, 1, 1, 9], 1)])
def test_executors_are_awaited(seen: list[int], slots: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # A tick of this clock for each look: the first executor may take three and more, others may not.
    clock = itertools.count()
    monkeypatch.setattr(
        slots_module, "time", SimpleNamespace(monotonic=lambda: next(clock), sleep=lambda _: None)
    )
    monkeypatch.setattr(slots_module, "_STARTING", 10)
    monkeypatch.setattr(slots_module, "_REGISTERING", 3)
    looks = iter(seen)
    monkeypatch.setattr(slots_module, "slots", lambda _: next(looks))
    assert slots_module._awaited(None, 2) == slots  # type: ignore[arg-type]


def test_a_packed_batch_comes_back() -> None:
    batch = pa.record_batch({"a": [1, None], "b": [{"x": "é"}, None]})
    [back] = read(iter([packed(3, 7, batch)]))
    assert (back.stream, back.low) == (3, 7)
    assert back.batch.equals(batch)


@pytest.mark.parametrize("missing", ["pyarrow", "pointstamp"])
def test_an_interpreter_that_lacks_something_says_which_it_is(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ImportError) as raised:
        arrived("m", "f", b"", ps.__version__, "/elsewhere/python")
    said = str(raised.value)
    assert f"runs {sys.executable}, which lacks {missing}; the driver runs /elsewhere/python" in said
    assert "set PYSPARK_PYTHON=/elsewhere/python" in said
    assert f"version, {ps.__version__}, there: {sys.executable} -m pip install '.[spark]', in a clone" in said
    back = exceptions.recovered(f"java.lang.X: Traceback\nImportError: {said}\n at y")
    assert isinstance(back, ImportError)
    assert str(back) == said


def test_another_version_is_refused() -> None:
    with pytest.raises(
        ImportError, match=r"which has pointstamp .*, where the driver has 99\.1; .*pip install"
    ):
        arrived("m", "f", b"", "99.1", sys.executable)


def test_a_python_of_another_version_is_named() -> None:
    from pyspark.errors import PySparkRuntimeError

    theirs = PySparkRuntimeError(
        errorClass="PYTHON_VERSION_MISMATCH",
        messageParameters={"worker_version": "3.99", "driver_version": "3.98"},
    )
    back = exceptions.recovered(f"Traceback\npyspark.errors.PySparkRuntimeError: {theirs}\n", "python9")
    assert isinstance(back, ps.ConfigError)
    words = r"run Python 3\.99 \(python9\), and the driver runs Python 3\.98 .*PYSPARK_PYTHON="
    assert re.search(words, str(back))


def test_an_exception_survives_the_text_it_travels_in() -> None:
    with pytest.raises(Exception, match="<pointstamp:") as raised, raising_in_text():
        raise KeyError("it")
    back = found(f"org.apache.spark.SparkException: {raised.value}\n\tat somewhere")
    assert isinstance(back, KeyError)
    assert back.args == ("it",)
    assert found("nothing in here") is None
    assert isinstance(found(coded(ps.TimeError("t"))), ps.TimeError)


def test_an_exception_that_somebody_else_made_up_is_not_unpickled() -> None:
    """It may stand in a row of a table, which an error of Spark's quotes."""
    ours, key = coded(ps.TimeError("t")), exceptions.key()
    exceptions.adopt(b"another")
    try:
        forged = coded(ps.GraphError("g"))
    finally:
        exceptions.adopt(key)
    assert found(forged) is None
    assert isinstance(found(f"the value '{forged}' of {ours}"), ps.TimeError)


def test_who_failed_is_heard_before_those_that_lost_him() -> None:
    link = Link("127.0.0.1", b"secret", 2)
    try:
        answers = ["", coded(ps.ClusterError("process 1 failed"))]
        later = threading.Timer(0.1, link.fail, [LookupError("it")])
        later.start()
        with link._changed:
            reason = link._reason(answers)
        later.join()
        assert isinstance(reason, LookupError)
        with link._changed:
            assert link._reason([]) is reason
            assert link._reason([coded(LookupError("it"))]) is reason
        with pytest.raises(ps.ClusterError, match="failed earlier, with LookupError: it"):
            link.check()
        with pytest.raises(LookupError, match="it"):
            link.ask("wait", 1, None)  # of a dataflow that was running then
    finally:
        link.close()


def test_nothing_of_spark_comes_with_the_package() -> None:
    import subprocess

    said = subprocess.run(
        [sys.executable, "-c", "import sys, pointstamp; print([m for m in sys.modules if 'spark' in m])"],
        capture_output=True,
        text=True,
        check=True,
        timeout=380,
    )
    assert said.stdout.strip() == "[]"


def test_more_accumulators_do_not_ask_java_for_more_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's scheduler waits meanwhile, and each part of a name is a question to Java."""
    asked = []

    class Name:
        def __getattr__(self, part: str) -> "Name":
            asked.append(part)
            return Name()

        def __call__(self, *_: Any) -> int:
            return 0

    stage = MagicMock()
    monkeypatch.setattr(compat, "_stage", lambda *_: stage)
    context = MagicMock(_jvm=Name())
    looked = []
    for count in (2, 40):
        asked.clear()
        compat.describe_stage(context, 1, "words", {f"count {n}": n for n in range(count)})
        looked.append(len(asked))
    assert stage.latestInfo().accumulables().put.call_count == 42
    assert looked[0] == looked[1]
