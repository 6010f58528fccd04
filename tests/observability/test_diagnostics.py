"""Events of a cluster and of its inputs in Python's `logging`."""

import logging
import re
import socket
import sys
import threading
from typing import Any

import pytest

import pointstamp as ps
import processes_in_threads
from clusters import Cluster

MARK = 1 << 20
RECORDS = 8192


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Any:
    """The texts so far, each with its logger, of all levels."""
    with caplog.at_level(logging.DEBUG, "pointstamp"):
        yield lambda: [f"{record.name}: {record.getMessage()}" for record in caplog.records]


def like(logged: Any, pattern: str) -> list[str]:
    return [text for text in logged() if re.search(pattern, text)]


def test_a_cluster_that_forms(logged: Any) -> None:
    processes_in_threads.execute(lambda worker: worker.barrier(), 2)
    for process in (0, 1):
        here = r"pointstamp\.net\.form: "
        assert like(
            logged, rf"{here}a cluster forms \(process={process}, processes=2, address=127\S+, tls=false\)"
        )
        assert like(logged, rf"{here}a process has joined \(process={process}, address=127\S+\)")
        assert like(logged, rf"{here}the cluster has formed \(process={process}, after=\S+s\)")


def test_a_process_that_is_not_there_is_dialled_again_and_that_is_said_once(logged: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as first, socket.create_server(("127.0.0.1", 0)) as second:
        absent, own = (f"127.0.0.1:{server.getsockname()[1]}" for server in (first, second))
    config = ps.Config(
        processes=2, process=1, addresses=[absent, own], secret="of the tests", connect_timeout=0.5
    )
    with pytest.raises(ps.ClusterError):
        ps.execute(lambda worker: None, config=config)
    [text] = like(logged, "dialled again")
    assert text.startswith("pointstamp.net.dial: a process is not reached yet")
    assert text.endswith(f"(process=0, address={absent}, why=nothing listens there)")
    [text] = like(logged, "the cluster does not form")
    assert "process=1" in text
    assert absent in text


def test_a_process_with_another_secret_is_heard_of(logged: Any) -> None:
    secrets = [{"secret": "of the tests"}, {"secret": "another"}]
    for outcome in processes_in_threads.outcomes(lambda worker: None, 2, each=secrets, connect_timeout=1.0):
        assert isinstance(outcome, ps.ClusterError)
    assert like(logged, r"pointstamp\.cluster: a stranger at 127\S+ was turned away: .*secret")
    assert len(like(logged, "the cluster does not form")) == 2
    assert not like(logged, "another$|has joined")


@pytest.mark.skipif(sys.platform == "win32", reason="signals of a POSIX system")
def test_a_process_that_is_lost() -> None:
    program = """
import logging
logging.basicConfig(level=logging.INFO)

def main(worker):
    with worker.dataflow() as scope:
        _, stream = scope.new_input()
        stream.probe()
    worker.barrier()
    say("begun")
    while True:
        worker.step_or_park(0.05)
"""
    with Cluster(program, 2) as cluster:
        cluster.wait_for("begun")
        cluster.processes[1].kill()
        cluster.end(processes=[0])
        assert re.search(
            r"INFO:pointstamp\.engine\.cluster:a process is lost \(process=1, why=", cluster.processes[0].err
        )


@pytest.mark.parametrize("processes", [1, 2])
def test_pressure_that_comes_and_goes(processes: int, logged: Any) -> None:
    """Worker 1 reads nothing until the source of worker 0 has paused, and continued because nothing moved."""
    read = threading.Event()

    def main(worker: ps.Worker) -> int:
        with worker.dataflow() as scope:
            records = (bytes(1 << 10) for _ in range(RECORDS if worker.index == 0 else 0))
            counted = scope.to_stream(records).exchange(lambda _: 1).value_counts().capture()
        worker.barrier()
        try:
            while worker.index == 0 and not like(logged, "nothing moves"):
                worker.step_or_park(0.05)
        finally:
            if worker.index == 0:
                read.set()
        read.wait(120)
        worker.run()
        return sum(count for _, batch in counted.extract() for _, count in batch)

    if processes == 1:
        counts = ps.execute(main, config=ps.Config(workers=2, high_water=MARK))
    else:
        counts = processes_in_threads.execute(main, 2, high_water=MARK)
    assert sum(counts) == RECORDS
    here = r"pointstamp\.channels\.pressure: "
    [on, *_] = like(logged, rf"{here}sources pause: this process is pressed \(bytes=\d+, high_water={MARK}\)")
    assert int(re.findall(r"bytes=(\d+)", on)[0]) > MARK
    assert like(logged, rf"{here}this process is pressed no more \(bytes=\d+\)")
    assert like(
        logged, rf"{here}nothing moves: the sources go on above the mark \(bytes=\d+, high_water={MARK}\)"
    )
    assert like(
        logged, r"pointstamp\.engine\.run\.subgraph: a source is put aside \(dataflow=0, operator=\d+\)"
    )
    said = like(logged, rf"{here}another process says whether it is pressed \(process=[01], on=true\)")
    assert bool(said) == (processes == 2)


def test_a_dataflow_that_is_dropped(logged: Any) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            _, stream = scope.new_input()
            stream.probe()
        worker.drop_dataflow(0)

    ps.execute(main)
    assert "pointstamp.engine.worker: dataflow dropped (worker=0, dataflow=0)" in logged()
