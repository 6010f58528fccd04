"""The same programs on several processes: the results are those of one worker."""

import gc
import os
import re
import shutil
import socket
import subprocess
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from hypothesis import given, settings

import pointstamp as ps
import processes_in_threads as several
import programs
from effort import examples
from harness import merged, notes, passing, share
from pointstamp.cluster import bind
from pools import Failure, Pool
from processes_in_threads import SHAPES, outcomes
from random_dataflows import Data, Steps, dataflow, inputs, model, written
from random_dataflows import programs as any_steps

# ------------------------------------------------------------ outputs


@settings(max_examples=examples(25))
@given(steps=any_steps, data=inputs)
@pytest.mark.parametrize(("processes", "workers"), SHAPES)
def test_a_dataflow_is_the_function_that_it_says(
    processes: int, workers: int, steps: Steps, data: list[tuple[int, int]]
) -> None:
    def main(worker: ps.Worker) -> ps.Capture[int]:
        with worker.dataflow() as scope:
            stream = share(scope, data).delay(lambda item, _: item[0]).map(lambda item: item[1])
            capture = dataflow(steps, stream).capture()
        worker.run()
        return capture

    given_data: Data = defaultdict(Counter)
    for time, record in data:
        given_data[(time,)][record] += 1
    expected = {written(time): records for time, records in model(steps, given_data).items()}
    assert merged(several.execute(main, processes, workers)) == expected


@pytest.fixture(scope="module", params=[2, 3])
def real(request: pytest.FixtureRequest) -> Iterator[Pool]:
    with Pool(request.param) as pool:
        yield pool


def together(results: list[Any]) -> Any:
    """Returns the records that several workers extracted, per time."""
    counted: dict[Any, Counter[Any]] = defaultdict(Counter)
    for extracted in results:
        for time, records in extracted:
            counted[time].update(records)
    return dict(counted)


def columns_together(results: list[Any]) -> Any:
    return [sorted(row for result in results for row in result[i]) for i in range(2)]


def the_same(results: list[Any]) -> Any:
    assert all(result == results[0] for result in results)
    return results[0] if isinstance(results[0][0], list) else sorted(results[0])


def objects_together(results: list[Any]) -> Any:
    return [together([result[i] for result in results]) for i in range(2)]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("program", "sum_of"),
    [
        (programs.word_count, together),
        (programs.reach, together),
        (programs.sequence, the_same),
        (programs.own_classes, objects_together),
        (programs.arrays, together),
        (programs.columns, columns_together),
        (programs.broadcasts, the_same),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_processes_give_what_one_worker_gives(
    real: Pool, workers: int, program: Callable[..., Any], sum_of: Callable[[list[Any]], Any]
) -> None:
    expected = sum_of(ps.execute(program))
    found = real.run(program, workers=workers)
    assert not any(isinstance(results, Failure) for results in found), found
    assert sum_of([result for results in found for result in results]) == expected


def test_workers_are_numbered_over_all_processes(real: Pool) -> None:
    count = len(real.addresses)
    found = real.run(programs.place, workers=2)
    assert found == [[(2 * p, 2 * count), (2 * p + 1, 2 * count)] for p in range(count)]


@pytest.mark.parametrize("mode", ["eager", "demand", "tree", "tree:2"])
def test_all_progress_modes(real: Pool, mode: str) -> None:
    expected = together(ps.execute(programs.word_count))
    found = real.run(programs.word_count, progress_mode=mode)
    assert together([result for results in found for result in results]) == expected


@pytest.fixture(scope="module")
def four() -> Iterator[Pool]:
    with Pool(4) as pool:
        yield pool


@pytest.mark.parametrize("group", [2, 3, 4])
@pytest.mark.parametrize(
    ("program", "sum_of"),
    [
        (programs.word_count, together),
        (programs.reach, together),
        (programs.sequence, the_same),
        (programs.columns, columns_together),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_progress_by_relays_gives_what_one_worker_gives(
    four: Pool, group: int, program: Callable[..., Any], sum_of: Callable[[list[Any]], Any]
) -> None:
    expected = sum_of(ps.execute(program))
    found = four.run(program, progress_mode=f"tree:{group}")
    assert not any(isinstance(results, Failure) for results in found), found
    assert sum_of([result for results in found for result in results]) == expected


def test_relays_send_for_the_others_of_their_group() -> None:
    def main(worker: ps.Worker) -> list[int]:
        handle: ps.InputHandle[int] = ps.InputHandle()
        with worker.dataflow() as scope:
            probe = handle.to_stream(scope).broadcast().probe()
        sent = []
        for time in range(2):
            for turn in range(50):
                handle.advance_to(50 * time + turn + 1)
                worker.step_while(lambda: probe.less_than(handle.time))
            sent.append(worker.traffic().progress_messages)
        return sent

    each = [last - first for first, last in several.execute(main, 5, progress_mode="tree:2")]
    # Processes 0, 2 and 4 relay: to each other, and the first two to a member. Each round has one frame of
    # each member, and more where a process is late.
    straight = several.execute(main, 5)
    assert all(50 <= sent < 150 for sent in (each[1], each[3])), each
    assert all(sent >= 100 for sent in (each[0], each[2], each[4])), each
    assert sum(each) < sum(last - first for first, last in straight), each


# ------------------------------------------------------------ failures


@pytest.mark.parametrize("where", range(4))
def test_each_process_says_what_happened_in_a_group(four: Pool, where: int) -> None:
    found = four.run(programs.divides, where, progress_mode="tree:2")
    for process, outcome in enumerate(found):
        assert isinstance(outcome, Failure)
        assert outcome.kind == ("ZeroDivisionError" if process == where else "ClusterError")
        if process != where:
            assert outcome.text.startswith(f"process {where} ({four.addresses[where]}) failed: ZeroDivision")


def test_each_process_says_what_happened(real: Pool) -> None:
    for where in range(len(real.addresses)):
        found = real.run(programs.divides, where)
        for process, outcome in enumerate(found):
            assert isinstance(outcome, Failure)
            if process == where:
                assert outcome.kind == "ZeroDivisionError"
                assert outcome.notes == [f"raised in operator 'map' on worker {where}"]
                continue
            assert outcome.kind == "ClusterError"
            first, _, trace = outcome.text.partition("\n\n")
            assert first.startswith(f"process {where} ({real.addresses[where]}) failed: ZeroDivisionError: ")
            assert first.endswith(f", raised in operator 'map' on worker {where}")
            assert trace.startswith("Traceback (most recent call last):\n")
            assert 'programs.py", line ' in trace
            assert "in <lambda>" in trace


def test_the_exception_is_the_one_that_was_raised() -> None:
    mine = ValueError("mine")

    def main(worker: ps.Worker) -> None:
        worker.barrier()
        if worker.index == 3:
            raise mine
        worker.barrier()

    first, second = outcomes(main, 2, 2)
    assert second is mine
    assert notes(mine) == ["raised in main on worker 3"]
    assert isinstance(first, ps.ClusterError)
    assert "failed: ValueError: mine, raised in main on worker 3\n\nTraceback" in str(first)


def test_what_cannot_be_pickled_is_refused_with_the_operator() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            numbers = scope.to_stream([1] if worker.index == 0 else [])
            numbers.map(lambda x: lambda: x).unary(ps.Exchange(lambda _: 1), "takes functions", passing)
        worker.run()

    first, second = outcomes(main, 2)
    assert isinstance(first, ps.CodecError)
    assert str(first).startswith("a record of type function cannot be sent to a worker of another process")
    assert notes(first) == ["raised in operator 'takes functions' on worker 0"]
    assert isinstance(second, ps.ClusterError)
    assert "raised in operator 'takes functions' on worker 0" in str(second)


def test_what_stays_in_its_process_need_not_be_pickled() -> None:
    def main(worker: ps.Worker) -> int:
        with worker.dataflow() as scope:
            made = scope.to_stream(range(10)).map(lambda x: lambda: x + worker.index // 2)
            kept = made.exchange(lambda _: worker.index // 2 * 2 + 1).map(lambda f: f()).capture()
        worker.run()
        return sum(x for _, records in kept.extract() for x in records)

    assert several.execute(main, 2, 2) == [0, 90, 0, 110]


@pytest.mark.parametrize(("processes", "workers"), SHAPES)
def test_a_main_that_differs_is_told_everywhere(processes: int, workers: int) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow("of one", dims=1) as scope:
            numbers = scope.to_stream([worker.index])
            if worker.index == worker.peers - 1:
                numbers = numbers.map(abs, name="another")
            numbers.exchange(hash).capture()
        worker.run()

    for outcome in outcomes(main, processes, workers):
        assert isinstance(outcome, ps.GraphError)
        assert "the workers built different dataflows: of dataflow 0, worker " in str(outcome)
        assert "'another'" in str(outcome)


def test_a_main_that_builds_less_is_told_everywhere() -> None:
    def main(worker: ps.Worker) -> None:
        if worker.index > 0:
            with worker.dataflow("only here") as scope:
                scope.to_stream([1]).exchange(hash)

    for outcome in outcomes(main, 3):
        assert isinstance(outcome, ps.GraphError)
        assert "'only here'" in str(outcome)


def test_a_failure_after_others_have_ended_is_raised_in_all() -> None:
    def main(worker: ps.Worker) -> int:
        worker.barrier()
        if worker.index == 1:
            sleep(0.3)
            raise LookupError("late")
        return worker.index

    first, second = outcomes(main, 2)
    assert isinstance(second, LookupError)
    assert isinstance(first, ps.ClusterError)
    assert "LookupError: late" in str(first)


def test_python_code_that_runs_elsewhere_is_interrupted() -> None:
    """The only worker of a process runs in the thread that called `execute`."""

    def main(worker: ps.Worker) -> None:
        if worker.index == 0:
            assert all(event.wait(120) for event in running)
            raise LookupError("now")
        running[worker.index - 1].set()
        while True:
            pass

    for workers in (1, 2):
        running = [threading.Event() for _ in range(2 * workers - 1)]
        found = outcomes(main, 2, workers)
        assert isinstance(found[0], LookupError)
        assert isinstance(found[1], ps.ClusterError)


# ------------------------------------------------------------ forming


def test_who_is_missing() -> None:
    (mine, address), (listener, elsewhere) = bind(), bind()
    listener.close()
    config = ps.Config(processes=2, addresses=[address, elsewhere], secret="x", connect_timeout=0.3)
    with pytest.raises(ps.ClusterError, match=rf"missing process 1 \({elsewhere}\)"):
        ps.execute(lambda worker: None, config=config, listener=mine)
    assert mine.fileno() == -1


def test_an_address_that_is_taken() -> None:
    listener, address = bind()
    other, elsewhere = bind()
    other.close()
    with listener:
        config = ps.Config(processes=2, addresses=[address, elsewhere], secret="x", connect_timeout=5)
        with pytest.raises(ps.ClusterError, match=f"process 0 cannot listen at its address {address}: "):
            ps.execute(lambda worker: None, config=config)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"workers": [1, 2]}, "(2 there and 1|1 there and 2) here"),
        ({"progress_mode": ["eager", "demand"]}, "the progress mode is (eager|demand) there"),
        ({"progress_mode": ["tree:2", "tree"]}, "the progress mode is (tree:2|tree) there"),
        ({"stall_timeout": [5, 7]}, "the stall timeout is [57] s there"),
    ],
)
def test_processes_that_are_configured_differently(options: dict[str, list[Any]], says: str) -> None:
    for outcome in different(options):
        assert isinstance(outcome, ps.ClusterError)
        assert re.search(says, str(outcome))


def test_processes_with_different_secrets() -> None:
    found = different({"secret": ["one", "two"], "connect_timeout": [1, 1]})
    assert all(isinstance(outcome, ps.ClusterError) for outcome in found)
    assert "its secret is not this process's" in str(found[1])
    assert "missing process 1" in str(found[0])


def different(options: dict[str, list[Any]]) -> list[Any]:
    """Returns the errors of two processes whose configurations differ."""
    each = [{name: values[number] for name, values in options.items()} for number in range(2)]
    return outcomes(lambda worker: None, 2, each=each)


def test_a_listener_is_closed_where_none_is_needed() -> None:
    listener, _ = bind()
    assert ps.execute(lambda worker: worker.index, listener=listener) == [0]
    assert listener.fileno() == -1
    listener, _ = bind()
    with pytest.raises(ps.ConfigError):
        ps.execute(lambda worker: None, workers=2, config=ps.Config(), listener=listener)
    assert listener.fileno() == -1


def test_strangers_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    (first, address), (second, elsewhere) = bind(), bind()
    with socket.create_connection(first.getsockname()) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n" * 20)
        first_config, second_config = (
            ps.Config(processes=2, process=p, addresses=[address, elsewhere], secret="x") for p in range(2)
        )
        other = threading.Thread(
            target=ps.execute,
            args=(lambda worker: None,),
            kwargs={"config": second_config, "listener": second},
        )
        threading.Timer(0.5, other.start).start()
        ps.execute(lambda worker: None, config=first_config, listener=first)
        other.join()
    assert [record.name for record in caplog.records] == ["pointstamp.cluster"]
    assert caplog.records[0].levelname == "WARNING"


# ------------------------------------------------------------ certificates


def openssl(where: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=where, check=True, capture_output=True, timeout=380)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority, and a certificate of it for this host; and one of another authority."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make certificates")
    where = tmp_path_factory.mktemp("certificates")
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    for name in ("authority", "another"):
        files = ["-keyout", f"{name}.key", "-out", f"{name}.pem"]
        openssl(where, "req", "-x509", *key, "-subj", f"/CN={name}", *files)
        files = ["-keyout", f"of-{name}.key", "-out", f"of-{name}.pem"]
        signed = ["-CA", f"{name}.pem", "-CAkey", f"{name}.key"]
        extensions = ["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=CA:FALSE"]
        openssl(where, "req", "-x509", *key, "-subj", "/CN=host", *signed, *extensions, *files)
    return where


def tls(where: Path, authority: str, own: str) -> ps.TLS:
    return ps.TLS(
        certificate=where / f"of-{own}.pem", key=where / f"of-{own}.key", authority=where / f"{authority}.pem"
    )


def test_processes_with_certificates(certificates: Path) -> None:
    given = tls(certificates, "authority", "authority")
    expected = together(ps.execute(programs.word_count))
    assert together(several.execute(programs.word_count, 3, 2, tls=given)) == expected
    assert several.execute(programs.arrays, 2, tls=given)


def test_certificates_of_another_authority_are_refused(certificates: Path) -> None:
    good = tls(certificates, "authority", "authority")
    for bad in (tls(certificates, "authority", "another"), None):
        found = different({"tls": [good, bad], "connect_timeout": [2, 2]})
        assert all(isinstance(outcome, ps.ClusterError) for outcome in found), found


def test_a_certificate_without_its_key(certificates: Path) -> None:
    wrong = ps.TLS(
        certificate=certificates / "of-authority.pem",
        key=certificates / "of-another.key",
        authority=certificates / "authority.pem",
    )
    for outcome in outcomes(programs.word_count, 2, tls=wrong):
        assert isinstance(outcome, ps.ConfigError)
        assert "the TLS certificate and key do not go together" in str(outcome)


# ------------------------------------------------------------ again and again


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs Linux to count")
def test_nothing_is_left_behind() -> None:
    def fine(worker: ps.Worker) -> None:
        worker.barrier()

    def fails(worker: ps.Worker) -> None:
        worker.barrier()
        if worker.index == 0:
            raise LookupError
        worker.barrier()

    outcomes(fine, 2, 2)
    outcomes(fails, 2, 2)
    gc.collect()
    before = programs.resources()
    for _ in range(5):
        outcomes(fine, 3, 2)
        outcomes(fails, 3, 1)
        different({"workers": [1, 2]})
    gc.collect()
    assert programs.resources() == before


def test_clusters_one_after_another_at_the_same_addresses(real: Pool) -> None:
    before = real.call(programs.resources)
    for turn in range(8):
        if turn % 2:
            real.run(programs.divides, 0)
        else:
            assert not any(isinstance(results, Failure) for results in real.run(programs.sequence, workers=2))
    assert real.call(programs.resources) == before
