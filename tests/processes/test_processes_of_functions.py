"""`execute(main, processes=)`: closures on several processes of this machine."""

import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import pointstamp as ps
from harness import notes, script
from launching import alive, until


def routed(worker: ps.Worker) -> list[tuple[ps.Time, list[int]]]:
    """A function that other processes could not import: tests are not on their path under this name."""
    with worker.dataflow() as scope:
        numbers = scope.to_stream(range(worker.index, 12, worker.peers))
        captured = numbers.exchange(lambda x: x).map(lambda x: x * x).capture()
    worker.run()
    return captured.extract()


def test_results_come_in_the_order_of_the_workers_for_closures_too() -> None:
    offset = 100

    def main(worker: ps.Worker) -> Any:
        return worker.index, worker.peers, os.getpid(), offset, routed(worker)

    results = ps.execute(main, processes=2, workers=2)
    assert [result[:2] for result in results] == [(index, 4) for index in range(4)]
    pids = [result[2] for result in results]
    assert pids[0] == pids[1] != pids[2] == pids[3]
    assert os.getpid() not in pids
    assert {result[3] for result in results} == {100}
    assert [result[4] for result in results] == ps.execute(routed, workers=4)
    assert not any(map(alive, set(pids)))


def has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.mark.parametrize("processes", [None, 2])
@pytest.mark.parametrize(
    ("dashboard", "host"),
    [
        (0, "127.0.0.1"),
        ("localhost:0", "localhost"),
        pytest.param("[::1]:0", "[::1]", marks=pytest.mark.skipif(not has_ipv6(), reason="no IPv6 here")),
    ],
)
def test_the_live_page_of_a_free_port(
    dashboard: int | str, host: str, processes: int | None, capfd: pytest.CaptureFixture[str]
) -> None:
    def main(worker: ps.Worker) -> int:
        return worker.index

    config = ps.Config(dashboard=dashboard)
    assert ps.execute(main, processes=processes, config=config) == list(range(processes or 1))
    with ps.Interactive(processes=processes, config=config) as session:
        assert session.run(main) == list(range(processes or 1))
    said = capfd.readouterr().err
    assert len(re.findall(rf"http://{re.escape(host)}:[1-9]\d*", said)) == 2, said


def test_a_script_needs_no_guard_and_its_classes_travel_as_records() -> None:
    program = """
        import pointstamp as ps

        class Word:
            def __init__(self, text): self.text = text
            def __reduce__(self): return Word, (self.text,)

        def shout(word):
            return Word(word.text.upper())

        def main(worker):
            with worker.dataflow() as scope:
                words = scope.to_stream([Word("a"), Word("b")] if worker.index == 0 else [])
                routed = words.exchange(lambda word: ord(word.text)).map(shout).capture()
            worker.run()
            return [word for _, words in routed.extract() for word in words]

        for words in ps.execute(main, processes=2):
            print([(type(word) is Word, word.text) for word in words])
    """
    expected = "[(True, 'B')]\n[(True, 'A')]\n"
    assert script(program) == expected
    piped = subprocess.run(
        [sys.executable, "-"], input=textwrap.dedent(program), capture_output=True, text=True, timeout=380
    )
    assert (piped.stdout, piped.stderr) == (expected, "")


def test_a_function_of_a_module_needs_no_cloudpickle(tmp_path: Path) -> None:
    (tmp_path / "words.py").write_text("def main(worker):\n    return worker.index\n")
    (tmp_path / "program.py").write_text(
        textwrap.dedent("""
            import sys
            sys.modules["cloudpickle"] = None
            import pointstamp as ps, words
            print(ps.execute(words.main, processes=2))
            try:
                ps.execute(lambda worker: 1, processes=2)
            except ps.ConfigError as error:
                print(error)
        """)
    )
    ran = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=380
    )
    first, second = ran.stdout.splitlines()
    assert first == "[0, 1]"
    assert "pip install cloudpickle" in second
    assert "<lambda>" in second


def test_an_exception_that_takes_no_cause_is_the_programs_all_the_same() -> None:
    program = """
        import pointstamp as ps

        class Stubborn(Exception):
            def __setattr__(self, name, value):
                if name == "__cause__":
                    raise AttributeError(name)
                super().__setattr__(name, value)

        def main(worker):
            raise Stubborn("as it is")

        try:
            ps.execute(main, processes=2)
        except Stubborn as error:
            print(error)
    """
    assert script(program) == "as it is\n"


def test_the_users_exception_ends_all_with_its_note_and_its_traceback() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            scope.to_stream([worker.index]).map(lambda x: 6 // (x - 1), name="divide")
        worker.run()

    with pytest.raises(ZeroDivisionError) as caught:
        ps.execute(main, processes=3)
    assert notes(caught.value) == ["raised in operator 'divide' on worker 1"]
    assert "in process 1" in str(caught.value.__cause__)
    assert "lambda" in str(caught.value.__cause__)
    assert type(caught.value.__cause__) is ps.ClusterError  # a name that the program has


def test_an_exception_that_cannot_travel_is_told_in_words() -> None:
    def main(worker: ps.Worker) -> None:
        class Local(Exception):
            def __init__(self, lock: object) -> None:
                super().__init__("it is locked")
                self.lock = lock

        raise Local(threading.Lock())

    with pytest.raises(ps.ClusterError, match=r"(?s)process \d failed: .*it is locked.*Traceback"):
        ps.execute(main, processes=2)


def test_a_result_that_cannot_travel_names_its_worker() -> None:
    def main(worker: ps.Worker) -> Any:
        return threading.Lock() if worker.index == 1 else 1

    with pytest.raises(TypeError, match=r"the result of worker 1, of type lock, .*plain data"):
        ps.execute(main, processes=2)


def test_a_function_that_cannot_be_sent_is_refused() -> None:
    lock = threading.Lock()
    with pytest.raises(ps.ConfigError, match=r"main cannot be sent .* inside the function"):

        def main(worker: ps.Worker) -> None:
            with lock:
                pass

        ps.execute(main, processes=2)


def test_what_processes_cannot_be() -> None:
    with pytest.raises(ps.ConfigError, match="processes must be at least 1"):
        ps.execute(routed, processes=0)
    with pytest.raises(ps.ConfigError, match="starts the processes itself"):
        ps.execute(routed, processes=2, config=ps.Config(processes=2))
    with pytest.raises(ps.ConfigError, match="workers=2 and config= were given"):
        ps.execute(routed, processes=2, workers=2, config=ps.Config())


def test_a_process_that_is_killed_is_named() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            scope.new_input()
        if worker.index == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        worker.run()

    with pytest.raises(ps.ClusterError, match="process 1, of 2, was killed by SIGKILL"):
        ps.execute(main, processes=2)


WAITING = """
    import os, sys, time
    import pointstamp as ps

    def main(worker):
        with worker.dataflow() as scope:
            numbers, stream = scope.new_input()
            probe = stream.exchange(lambda x: x).probe()
        print("pid", os.getpid(), flush=True)
        worker.step_while(lambda: probe.less_than(1))

    ps.execute(main, processes=2)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_the_program(number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WAITING)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        try:
            assert program.stdout is not None
            assert program.stderr is not None
            pids = [int(program.stdout.readline().split()[1]) for _ in range(2)]
            assert all(map(alive, pids))
            program.send_signal(number)
            assert program.wait(120) != 0
            until(lambda: not any(map(alive, pids)))
            if number == signal.SIGINT:
                assert "KeyboardInterrupt" in program.stderr.read()
        finally:
            program.kill()


BUSY = """
    import os, signal, sys
    import pointstamp as ps

    def end(number, frame):
        print("SIGTERM", flush=True)

    def main(worker):
        signal.signal(signal.SIGTERM, end)
        print("pid", os.getpid(), flush=True)
        for left in range(10**9):  # without the interpreter's lock for anybody else
            sum(range(10**9))

    ps.execute(main, processes=2)
"""


def kill_with_its_processes(program: subprocess.Popen[str]) -> None:
    """Kills a program that has said the numbers of its two processes, and waits until these have ended."""
    assert program.stdout is not None
    pids = [int(program.stdout.readline().split()[1]) for _ in range(2)]
    try:
        program.kill()
        until(lambda: not any(map(alive, pids)))
    finally:
        for pid in filter(alive, pids):
            os.kill(pid, signal.SIGKILL)


def test_processes_end_at_once_with_a_program_that_is_killed() -> None:
    """Also where they handle SIGTERM, and where the interpreter is busy: the next run finds no locks."""
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(BUSY)], stdout=subprocess.PIPE, text=True
    ) as program:
        kill_with_its_processes(program)
        assert program.stdout is not None
        assert program.stdout.read() == ""


def test_no_process_outlives_a_program_that_is_killed_while_they_import(tmp_path: Path) -> None:
    """The user's module waits, in the processes, for what does not come."""
    (tmp_path / "slow_to_import.py").write_text(
        textwrap.dedent(
            """
            import os, time

            if "PROGRAM" in os.environ:
                print("pid", os.getpid(), flush=True)
                time.sleep(600)

            def main(worker):
                return worker.index
            """
        )
    )
    program = "import os, slow_to_import, pointstamp as ps; os.environ['PROGRAM'] = '1'; "
    with subprocess.Popen(
        [sys.executable, "-c", program + "ps.execute(slow_to_import.main, processes=2)"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    ) as running:
        kill_with_its_processes(running)


def test_lines_of_several_processes_are_whole_without_buffers() -> None:
    source = """
        import pointstamp as ps

        def main(worker):
            for number in range(3000):
                print("process", worker.index, "line", number)

        ps.execute(main, processes=2)
    """
    written = subprocess.run(
        [sys.executable, "-u", "-c", textwrap.dedent(source)],
        capture_output=True,
        text=True,
        timeout=380,
        check=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ).stdout
    lines = Counter(written.splitlines())
    assert lines == Counter(f"process {p} line {n}" for p in range(2) for n in range(3000))


def test_what_processes_write_goes_where_this_program_prints(capsys: pytest.CaptureFixture[str]) -> None:
    def main(worker: ps.Worker) -> None:
        print("worker", worker.index)

    ps.execute(main, processes=2)
    assert sorted(capsys.readouterr().out.splitlines()) == ["worker 0", "worker 1"]
