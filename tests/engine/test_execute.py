"""Running computations: results, threads, several at once, inside one another, after a fork."""

import threading
from typing import Any

import pytest

import pointstamp as ps
from harness import WORKERS, count_to, script
from pointstamp import Config, ConfigError


@pytest.mark.parametrize("workers", WORKERS)
def test_results_come_in_worker_order(workers: int) -> None:
    assert ps.execute(lambda worker: (worker.index, worker.peers), workers=workers) == [
        (index, workers) for index in range(workers)
    ]
    config = Config(workers=workers)
    assert ps.execute(lambda worker: worker.index, config=config) == list(range(workers))


def test_one_worker_runs_in_the_calling_thread() -> None:
    assert ps.execute(lambda worker: threading.current_thread()) == [threading.current_thread()]
    assert ps.example(lambda scope: threading.current_thread()) is threading.current_thread()


def test_several_workers_have_threads_with_names() -> None:
    names = ps.execute(lambda worker: threading.current_thread().name, workers=3)
    assert names == ["pointstamp-worker-0", "pointstamp-worker-1", "pointstamp-worker-2"]


@pytest.mark.parametrize("mode", ["eager", "demand", "tree"])
@pytest.mark.parametrize("workers", WORKERS)
def test_all_progress_modes_end_with_the_same_result(mode: str, workers: int) -> None:
    def main(worker: ps.Worker) -> int:
        handle: ps.InputHandle[int] = ps.InputHandle()
        seen = 0

        def note(x: int) -> None:
            nonlocal seen
            seen += x

        with worker.dataflow() as scope:
            probe = handle.to_stream(scope).exchange(lambda x: x).inspect(note).broadcast().probe()
        for time in range(50):
            handle.send(time)
            handle.advance_to(time + 1)
            worker.step_while(lambda: probe.less_than(handle.time))
        return seen

    config = Config(workers=workers, progress_mode=mode)
    assert sum(ps.execute(main, config=config)) == workers * sum(range(50))


def test_what_contradicts_itself_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"workers=2 and config= were given: .*Config\(workers=2, \.\.\.\)"):
        ps.execute(lambda worker: None, workers=2, config=Config())
    with pytest.raises(ConfigError, match="at least 1"):
        ps.execute(lambda worker: None, workers=0)


def test_execute_from_args(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ps.execute_from_args(lambda worker: worker.peers, ["-w", "3", "--mine"]) == [3] * 3
    monkeypatch.setattr("sys.argv", ["program", "--workers", "2", "file"])
    assert ps.execute_from_args(lambda worker: worker.index) == [0, 1]
    with pytest.raises(ConfigError, match="at least 1"):
        ps.execute_from_args(lambda worker: None, ["-w", "0"])


def test_execute_may_be_called_again_and_again() -> None:
    for turn in range(60):
        assert count_to(20, 1 + turn % 4) == 20


def test_several_runs_at_once_do_not_meet() -> None:
    found: list[int] = []

    def go(n: int) -> None:
        for _ in range(10):
            found.append(count_to(n, 2) - n)

    threads = [threading.Thread(target=go, args=(100 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [0] * 40


def test_a_run_inside_of_a_worker() -> None:
    def main(worker: ps.Worker) -> Any:
        handle: ps.InputHandle[int] = ps.InputHandle()
        with worker.dataflow() as scope:
            capture = handle.to_stream(scope).exchange(lambda x: x).map(inner).capture()
        handle.send_batch([2, 3])
        nested = ps.example(lambda scope: scope.to_stream([worker.index]).capture()).extract()
        handle.close()
        worker.run()
        return capture.extract(), nested, count_to(10, 2)

    def inner(x: int) -> int:
        return count_to(10 * x, 2)

    results = ps.execute(main, workers=2)
    assert results == [([(0, [20, 20])], [(0, [0])], 10), ([(0, [30, 30])], [(0, [1])], 10)]


def test_a_failure_of_a_run_inside_of_a_worker_is_caught_there() -> None:
    def main(worker: ps.Worker) -> int:
        with pytest.raises(ZeroDivisionError):
            ps.example(lambda scope: scope.to_stream([0]).map(lambda x: 1 / x))
        return count_to(10, 2)

    assert ps.execute(main, workers=2) == [10, 10]


def test_after_a_fork() -> None:
    assert "child: 100 parent: 100" in script("""
        import os, sys
        import pointstamp as ps
        from harness import count_to

        count_to(10, 1)
        pid = os.fork()
        if pid == 0:
            ok = count_to(100, 1) == count_to(100, 2) == count_to(100, 4) == 100
            os._exit(0 if ok else 1)
        _, status = os.waitpid(pid, 0)
        assert status == 0, status
        print("child: 100 parent:", count_to(100, 2))
    """)


def test_a_run_may_end_with_the_interpreter() -> None:
    """Objects of a run that are still there when Python exits do no harm."""
    assert (
        script("""
        import pointstamp as ps

        kept = []

        def main(worker):
            handle = ps.InputHandle()
            with worker.dataflow() as scope:
                stream = handle.to_stream(scope).map(lambda x: kept)
                kept.extend([worker, scope, stream, handle, stream.capture(), stream.probe()])
            handle.send(object())

        ps.execute(main, workers=2)
        ps.execute(main)
        print("end")
    """)
        == "end\n"
    )


def test_what_outlives_a_run_says_so() -> None:
    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            _unordered, cap, stream = scope.new_unordered_input()
        return worker, scope, stream, cap

    for worker, scope, stream, cap in ps.execute(main, workers=2):
        for use in (worker.step, worker.run, worker.barrier):
            with pytest.raises((ps.PointstampError, BaseException)):
                use()
        with pytest.raises(ps.GraphError):
            stream.map(str)
        assert scope.dims == 1
        cap.drop()
