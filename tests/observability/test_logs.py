"""Logs of a worker: logs that a dataflow reads, truncated logs, and the engine's messages."""

import logging
from typing import Any

import pyarrow.compute as pc
import pytest

import pointstamp as ps
from pointstamp import _core
from pointstamp.observability.log import read_log

Row = dict[str, Any]


def rows(capture: Any) -> list[Row]:
    return [row for _, batches in capture.extract() for batch in batches for row in batch.to_pylist()]


def of_work(seen: list[Row]) -> list[Row]:
    """Returns the rows about the dataflow that is watched; two recorders have clocks of their own."""
    return [row | {"at": 0} for row in seen if row["dataflow"] == 2]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_dataflow_reads_the_log_of_another_on_its_worker(workers: int) -> None:
    def main(worker: ps.Worker) -> Any:
        with worker.dataflow("watches") as scope:
            _, events = worker.new_log(scope, every=0.01)
            seen = events.capture()
        with worker.dataflow("watches, too") as scope:
            _, others = worker.new_log(scope, every=0.01)
            also = others.capture()
        with worker.dataflow("works") as scope:
            stream = scope.to_stream(range(worker.index, 10, worker.peers))
            probe = stream.exchange(lambda x: x).map(str, name="shown").probe()
        worker.run()
        assert probe.done()
        return rows(seen), rows(also)

    for index, (seen, also) in enumerate(ps.execute(main, workers=workers)):
        assert {row["worker"] for row in seen} == {index}
        assert {row["dataflow"] for row in seen} <= {2, None}
        # What was made after the log began is in it, and what the other one saw from then on.
        made = {row["operator"]: row["name"] for row in seen if row["kind"] == "operator"}
        assert {"to_stream", "exchange", "shown", "probe"} <= set(made.values())
        kinds = {"scope", "operator", "edge", "begin", "end", "send", "receive", "capability", "shutdown"}
        assert kinds <= {row["kind"] for row in seen}
        assert of_work(also) == of_work(seen)
        taken = [
            row["count"] for row in seen if row["kind"] == "receive" and made[row["operator"]] == "shown"
        ]
        assert sum(taken) == 10 // workers
        assert [row["at"] for row in seen] == sorted(row["at"] for row in seen)


def test_a_log_that_is_closed_ends_with_the_other_dataflows() -> None:
    def main(worker: ps.Worker) -> Any:
        with worker.dataflow("watches") as scope:
            log, events = worker.new_log(scope, every=0.01)
            times: list[Any] = []
            probe = events.inspect_batch(lambda time, batch: times.append(time)).probe()
        with worker.dataflow("works") as scope:
            numbers, _stream = scope.new_input()
        log.close()
        worker.step_or_park(0.05)
        assert not probe.done()
        numbers.close()
        worker.step_while(lambda: not probe.done(), timeout=120)
        return times, repr(log)

    [(times, shown)] = ps.execute(main)
    assert times == sorted(times)
    assert shown == "<log (closed)>"


def test_a_log_refuses_what_it_cannot_be() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow(dims=2) as scope:
            with pytest.raises(ps.GraphError, match="2 coordinates"):
                worker.new_log(scope)
            scope.empty().probe()
        with worker.dataflow() as scope:
            with pytest.raises(ps.ConfigError, match="more than 0"):
                worker.new_log(scope, every=0)
            scope.empty().probe()

    ps.execute(main)


def test_events_that_nobody_took_are_counted_where_they_are_missing() -> None:
    recorder = _core.Recorder(True, 10)

    def main(worker: ps.Worker) -> Any:
        worker._engine.record(recorder)
        with worker.dataflow() as scope:
            scope.to_stream(range(10)).map(str).probe()
        worker.run()
        first = recorder.take(0).to_pylist()
        return first, recorder.take(0).to_pylist()

    [(first, second)] = ps.execute(main)
    assert len(first) == 11
    assert (first[-1]["kind"], first[-1]["count"]) == ("lost", recorder.lost)
    assert recorder.lost > 10
    assert second == []


def test_a_log_in_a_folder_says_what_it_lacks(tmp_path: Any, caplog: Any, monkeypatch: Any) -> None:
    made = _core.Recorder
    monkeypatch.setattr("pointstamp.observability.exporters._core.Recorder", lambda keeps: made(keeps, 10))
    monkeypatch.setattr("pointstamp.observability.log.EVERY", 1e6)

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            scope.to_stream(range(10)).map(str).probe()

    with caplog.at_level(logging.WARNING, "pointstamp"):
        ps.execute(main, config=ps.Config(log=tmp_path / "log"))
    [said] = [record.getMessage() for record in caplog.records]
    table = read_log(tmp_path / "log")
    lost = table.filter(pc.equal(table["kind"], "lost"))["count"].to_pylist()
    assert f"lacks {sum(lost)} events, of worker 0" in said


def test_the_engine_speaks_to_logging_at_the_level_that_it_wants(caplog: Any) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow("spoken of") as scope:
            scope.empty().probe()

    with caplog.at_level(logging.DEBUG, "pointstamp"):
        ps.execute(main, workers=2)
    said = [(record.name, record.levelno, record.getMessage()) for record in caplog.records]
    for worker in (0, 1):
        about = f'dataflow installed (worker={worker}, dataflow=0, name="spoken of")'
        assert ("pointstamp.engine.build.dataflow", logging.DEBUG, about) in said
    caplog.clear()
    with caplog.at_level(logging.INFO, "pointstamp"):
        ps.execute(main, workers=2)
    assert caplog.records == []
    assert _core.take_diagnostics() == ([], 0)
    logger = logging.getLogger("pointstamp")
    level = logger.level
    logger.setLevel(logging.DEBUG)
    logging.disable(logging.DEBUG)
    try:
        ps.execute(main)
        assert _core.take_diagnostics() == ([], 0)
    finally:
        logging.disable(logging.NOTSET)
        logger.setLevel(level)
    assert caplog.records == []


def test_a_handler_that_fails_or_uses_the_package_harms_nothing() -> None:
    logged: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            logged.append(record.getMessage())
            if len(logged) < 5:
                ps.example(lambda scope: scope.empty().capture())
            raise RuntimeError("a handler of the program's")

    logger = logging.getLogger("pointstamp.engine")
    handler = Handler()
    logger.addHandler(handler)
    before = logging.raiseExceptions
    level = logging.getLogger("pointstamp").level
    try:
        logging.getLogger("pointstamp").setLevel(logging.DEBUG)
        assert ps.example(lambda scope: scope.to_stream([1]).capture()).extract() == [(0, [1])]
    finally:
        logging.raiseExceptions = before
        logging.getLogger("pointstamp").setLevel(level)
        logger.removeHandler(handler)
    assert logged
