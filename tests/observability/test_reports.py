"""Reports of a program that waits: when it is interrupted, ended, signalled, or stalled."""

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import sleep
from typing import Any

import pytest

import pointstamp as ps

PROGRAM = """
import sys
import pointstamp as ps

def main(worker):
    with worker.dataflow() as scope:
        numbers, stream = scope.new_input()
        probe = stream.exchange(lambda x: x).map(str).probe()
    said = []

    def waits():
        if not said:
            said.append(sys.stdout.write("ready\\n"))
            sys.stdout.flush()
        return probe.less_than(1)

    worker.step_while(waits)

ps.execute(main, **eval(sys.argv[1]))
"""


@contextmanager
def waiting(**options: Any) -> "Iterator[subprocess.Popen[str]]":
    """A program whose workers all wait for an input that is not advanced."""
    program = textwrap.dedent(PROGRAM)
    with subprocess.Popen(
        [sys.executable, "-c", program, repr(options)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            for _ in range(options.get("workers", 1) * options.get("processes", 1)):
                assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def errors(process: "subprocess.Popen[str]") -> str:
    assert process.stderr is not None
    return process.stderr.read()


def until(process: "subprocess.Popen[str]", words: str) -> str:
    """The lines on standard error up to one with these words."""
    assert process.stderr is not None
    lines = ""
    while words not in lines:
        line = process.stderr.readline()
        assert line, lines
        lines += line
    return lines


EXPLAINED = ("The input 'input'", "stands at time 0", "advance_to()")

PLACES: list[Any] = [{}, {"workers": 2}, {"processes": 2}]


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_an_interruption_says_what_was_waited_for(place: Any) -> None:
    with waiting(**place) as process:
        process.send_signal(signal.SIGINT)
        said = errors(process)
        assert "KeyboardInterrupt" in said
        assert all(words in said for words in EXPLAINED), said


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_a_program_that_is_ended_says_what_it_waited_for_and_ends_by_the_signal(place: Any) -> None:
    with waiting(**place) as process:
        process.send_signal(signal.SIGTERM)
        said = errors(process)
        assert all(words in said for words in EXPLAINED), said
        assert process.wait(120) == -signal.SIGTERM


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_a_program_says_what_it_waits_for_when_asked_from_outside_and_goes_on(place: Any) -> None:
    with waiting(**place) as process:
        for _ in range(2):
            process.send_signal(signal.SIGUSR1)
            said = until(process, "advance_to()")
            assert all(words in said for words in EXPLAINED), said
        assert process.poll() is None


def test_a_standstill_is_reported_once() -> None:
    with waiting(stall_report=0.3) as process:
        said = until(process, "advance_to()")
        assert "nothing has moved for 0.3 s" in said
        assert all(words in said for words in EXPLAINED), said
        process.send_signal(signal.SIGTERM)
        assert "nothing has moved" not in errors(process)


def test_what_moves_is_not_reported(capfd: pytest.CaptureFixture[str]) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = scope.new_input()
            probe = stream.probe()
        for time in range(8):
            numbers.advance_to(time + 1)
            worker.step_while(lambda time=time: probe.less_than(time + 1))  # type: ignore[misc]
            worker.step_or_park(0.05)

    ps.execute(main, stall_report=0.2)
    assert capfd.readouterr().err == ""


def test_handlers_of_the_program_stay_and_ours_go() -> None:
    def mine(number: int, frame: object) -> None: ...

    before = signal.signal(signal.SIGUSR1, mine)
    try:

        def main(worker: ps.Worker) -> Any:
            return signal.getsignal(signal.SIGUSR1), signal.getsignal(signal.SIGTERM)

        [(usr1, term)] = ps.execute(main)
        assert usr1 is mine
        assert term not in (signal.SIG_DFL, signal.SIG_IGN)
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan"), float("inf"), 1e12])
def test_a_report_needs_a_time_that_a_thread_can_wait(seconds: float) -> None:
    with pytest.raises(ps.ConfigError, match="stall_report is a number of seconds above 0"):
        ps.execute(lambda worker: None, stall_report=seconds)


def test_a_process_that_is_stopped_is_named() -> None:
    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            numbers, stream = scope.new_input()
            probe = stream.exchange(lambda x: x).probe()
            pids = scope.to_stream([os.getpid()]).broadcast().capture()
        numbers.advance_to(1)
        worker.step_while(lambda: probe.less_than(1))
        if worker.index == 1:
            os.kill(os.getpid(), signal.SIGSTOP)
            return None
        worker.step_or_park(0.1)
        found = worker.explain(probe, 2)
        for _, (*both,) in pids.extract():
            for pid in both:
                if pid != os.getpid():
                    os.kill(pid, signal.SIGCONT)
        return [(one.kind, one.operator, one.process) for one in found.causes], str(found)

    (causes, text), _ = ps.execute(main, processes=2)
    assert ("worker", "input", 1) in causes, text
    assert "Process 1 has not answered" in text


STUCK = """
import sys, threading
import pointstamp as ps

def stand(where):
    if where == sys.argv[1]:
        threading.Event().wait(8)
    return where != "condition"

def main(worker):
    with worker.dataflow() as scope:
        numbers, stream = scope.new_input()
        probe = stream.exchange(lambda x: 0).map(lambda x: stand("operator"), name="stands").probe()
    numbers.send(1)
    numbers.advance_to(1)
    stand("main")
    worker.step_while(lambda: stand("condition") or probe.less_than(1))

ps.execute(main, workers=int(sys.argv[2]), stall_report=0.3)
"""


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("operator", "runs a function of its operator 'stands'"),
        ("main", "runs the program's own code and does not step"),
        ("condition", "runs the program's own code and does not step"),
    ],
)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_worker_that_stands_still_in_a_function_is_reported(where: str, says: str, workers: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STUCK, where, str(workers)], stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            said = until(process, says)
            assert "nothing has moved for 0.3 s" in said
            assert "it is at <string>:7 in stand" in said
            assert ("async_map" in said) == (where == "operator")
        finally:
            process.kill()


HELD = """
import itertools, mmap, operator, sys, threading
from collections import deque
import pointstamp as ps

with open(sys.argv[3], "r+b") as file:
    ready = map(operator.setitem, [mmap.mmap(file.fileno(), 1)], [0], [1])

def stands():
    if sys.argv[1] == "native":
        # In C, for ever, and the interpreter's lock is kept from before it is said on: no other thread
        # runs Python code, and no instruction comes at which this one hears a signal.
        deque(itertools.chain(ready, itertools.repeat(None)), maxlen=0)
    next(ready)
    threading.Event().wait()

def main(worker):
    with worker.dataflow() as scope:
        numbers, stream = scope.new_input()
        probe = stream.exchange(lambda x: 0).map(lambda x: stands(), name="stands").probe()
    if worker.index == 0:
        numbers.send(1)
    numbers.advance_to(1)
    if sys.argv[1] == "saying":
        # What asks the workers stands still in turn.
        def asked(*arguments):
            sys.stdout.write("asked\\n")
            sys.stdout.flush()
            deque(itertools.repeat(None), maxlen=0)
        stalls.SAYING = 2
        stalls.explained = asked
    worker.step_while(lambda: probe.less_than(1))

import pointstamp.observability.stalls as stalls
if sys.argv[1] == "native":
    stalls.STUCK = 1  # which no answer comes in, however long it is
ps.execute(main, workers=int(sys.argv[2]))
"""


def until_written(ready: Path) -> None:
    while ready.read_bytes() != b"\1":
        sleep(0.01)


@pytest.mark.skipif(sys.platform != "linux", reason="no such timers")
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("how", ["native", "saying"])
def test_a_program_that_keeps_the_interpreter_ends_by_sigterm(how: str, workers: int, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    ready.write_bytes(b"\0")
    with subprocess.Popen(
        [sys.executable, "-c", HELD, how, str(workers), str(ready)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            until_written(ready)
            process.send_signal(signal.SIGTERM)
            assert process.wait(380) == -signal.SIGTERM
            assert process.stdout.read() == ("asked\n" if how == "saying" else "")
            said = errors(process)
            assert ("the main thread could not answer it" in said) == (how == "native"), said
        finally:
            process.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="no such timers")
def test_a_program_that_cannot_answer_ends_also_where_nobody_reads_what_it_says(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    ready.write_bytes(b"\0")
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    while True:
        try:
            os.write(writing, b"x" * 4096)
        except BlockingIOError:
            break
    os.set_blocking(writing, True)
    with subprocess.Popen(
        [sys.executable, "-c", HELD, "native", "1", str(ready)], stderr=writing, text=True
    ) as process:
        try:
            until_written(ready)
            process.send_signal(signal.SIGTERM)
            assert process.wait(380) == -signal.SIGTERM
        finally:
            process.kill()
            os.close(reading)
            os.close(writing)


@pytest.mark.skipif(sys.platform != "linux", reason="no such timers")
def test_who_repeats_sigterm_does_not_put_the_end_off(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    ready.write_bytes(b"\0")
    with subprocess.Popen(
        [sys.executable, "-c", HELD, "native", "1", str(ready)], stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            until_written(ready)
            for _ in range(200):
                process.send_signal(signal.SIGTERM)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(0.5)
                    break
            assert process.poll() == -signal.SIGTERM
            assert "the main thread could not answer it" in errors(process)
        finally:
            process.kill()


def test_a_handler_of_sigterm_is_as_before_when_a_computation_has_ended() -> None:
    program = """
import os, signal, sys
import pointstamp as ps

ps.execute(lambda worker: None)
heard = []
signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
os.kill(os.getpid(), signal.SIGTERM)
ps.execute(lambda worker: os.kill(os.getpid(), signal.SIGTERM))
print(heard == [signal.SIGTERM] * 2, flush=True)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
ps.execute(lambda worker: None)
os.kill(os.getpid(), signal.SIGTERM)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=380, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGTERM, "True\n", "")


STARTING = """
import os, signal
os.kill(os.getpid(), signal.SIGUSR1)

def main(worker):
    print("ran", flush=True)
"""


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_request_that_comes_before_a_program_runs_does_not_end_it(tmp_path: Any, processes: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "class Asks:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'pointstamp._core' and 'run' in sys.argv:\n"  # as it is imported
        "            os.kill(os.getpid(), signal.SIGUSR1)\n"
        "sys.meta_path.insert(0, Asks())\n"
    )
    program = tmp_path / "program.py"
    program.write_text(STARTING)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "pointstamp", "run", "-n", processes, f"{program}:main"]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert (done.returncode, done.stdout) == (0, "ran\n" * int(processes)), done.stderr


FORGOTTEN = """
import sys, threading, time
import pointstamp as ps
import pointstamp.runtime.execution

pointstamp.runtime.execution.FORGOTTEN = 0.3

def ends():
    # A source that is alive: it has nothing to send, and ends after a while.
    def build(capability, info):
        begin = time.monotonic()
        def logic(output):
            if time.monotonic() - begin > 1.5:
                capability.drop()
            else:
                info.activator.activate_after(1.0)
        return logic
    return build

def quiet():
    # A source that another thread wakes.
    def build(capability, info):
        over = threading.Event()
        def wakes():
            over.set()
            info.activator.activate()
        threading.Timer(1.5, wakes).start()
        def logic(output):
            if over.is_set():
                capability.drop()
        return logic
    return build

def main(worker):
    worker._collector.patience = 0.3  # in other processes, too
    with worker.dataflow() as scope:
        numbers, stream = scope.new_input()
        probe = stream.exchange(lambda x: x).probe()
        if "ends" in sys.argv:
            scope.source("ends", ends())
        if "quiet" in sys.argv:
            scope.source("quiet", quiet())
    numbers.send(1)
    if "closes" in sys.argv:
        numbers.close()
    if "thinks" in sys.argv and worker.index == 1:
        time.sleep(1.5)
        numbers.close()
    if "probe" in sys.argv:
        worker.step_while(lambda: probe.less_than(1))
    elif "event" in sys.argv:
        over = threading.Event()
        threading.Timer(1.5, lambda: over.set()).start()
        def waits():
            return probe.less_than(1) and not over.is_set()
        while waits():
            worker.step_or_park(0.1)
    elif "polls" in sys.argv:
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            worker.step_or_park(0.05)
    else:
        worker.run()

ps.execute(main, **eval(sys.argv[1]))
sys.stderr.write("over\\n")
"""


@contextmanager
def forgetting(options: "dict[str, Any]", *how: str) -> "Iterator[subprocess.Popen[str]]":
    """A program that leaves an input open, or does not."""
    command = [sys.executable, "-c", FORGOTTEN, repr(options), *how]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("options", PLACES, ids=str)
@pytest.mark.parametrize(
    ("how", "waits", "cure"),
    [
        ("run", r"worker.run()", "Close it before"),
        ("probe", "worker.step_while(...)", "Advance it, or close it"),
    ],
)
def test_a_forgotten_close_reports_itself_once(options: Any, how: str, waits: str, cure: str) -> None:
    with forgetting(options, how) as process:
        said = until(process, "advance_to()")
        assert f"{waits} waits for an input that main has left open" in said
        assert cure in said
        assert "The input 'input'" in said
        process.send_signal(signal.SIGTERM)
        assert "main has left open" not in errors(process)


@pytest.mark.parametrize(
    ("options", "how"),
    [
        pytest.param({}, ["closes", "ends"], id="a source that is alive"),
        pytest.param({}, ["closes", "quiet"], id="a source that another thread wakes"),
        pytest.param({}, ["event"], id="an event of another thread"),
        pytest.param({}, ["polls"], id="a loop of main"),
        pytest.param({"workers": 2}, ["closes", "thinks", "quiet"], id="another worker's main"),
    ],
)
def test_what_may_still_move_is_not_reported(options: Any, how: list[str]) -> None:
    with forgetting(options, *how) as process:
        assert errors(process) == "over\n"


def test_a_source_beside_a_forgotten_input_is_waited_for_in_silence() -> None:
    with forgetting({}, "quiet") as process:
        said = until(process, "advance_to()")  # when the source has ended, the input alone is left
        assert "worker.run() waits for an input that main has left open" in said


def test_no_report_of_forgotten_inputs_where_none_is_wanted(capfd: pytest.CaptureFixture[str]) -> None:
    def main(worker: ps.Worker) -> None:
        assert worker._collector.patience is None

    ps.execute(main, stall_report=False)
    ps.execute(main, stall_report=60.0)
    assert capfd.readouterr().err == ""
