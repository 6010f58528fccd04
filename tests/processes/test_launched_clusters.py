"""Clusters that `python -m pointstamp run` starts: they form, and fail as one."""

import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from launching import SECONDS, Write, run, start, until, written
from pointstamp.cluster import bind

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of a POSIX system")


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Write]:
    with written(tmp_path) as write:
        yield write


ROUNDS = """
class Record:
    def __init__(self, number):
        self.number = number

def rounds(worker, count):
    numbers = ps.InputHandle()
    seen = []
    with worker.dataflow() as scope:
        stream = scope.input_from(numbers).exchange(lambda record: record.number)
        probe = stream.inspect(lambda record: seen.append(record.number)).probe()
    for round in range(count):
        if worker.index == 0:
            numbers.send_batch([Record(round * worker.peers + i) for i in range(worker.peers)])
        numbers.advance_to(round + 1)
        worker.step_while(lambda: probe.less_than(round + 1))
        if round == 3:
            turn()
    return seen

import pointstamp as ps
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_processes_form_a_cluster(program: Write, workers: int) -> None:
    directory = program(
        ROUNDS
        + """
def main(worker):
    seen = rounds(worker, 5)
    print(f"worker {worker.index} of {worker.peers} has seen {seen}\\n", end="")
"""
    )
    code, out, err = run(directory, "-n", "2", "-w", str(workers), "--label", "program.py:main")
    assert (code, err) == (0, "")
    peers = 2 * workers
    assert sorted(out.splitlines()) == [
        f"[{i // workers}] worker {i} of {peers} has seen {list(range(i, 5 * peers, peers))}"
        for i in range(peers)
    ]


@pytest.mark.parametrize("first", ["0", "1"])
@pytest.mark.parametrize("hostfile", [False, True])
def test_processes_are_started_by_hand(program: Write, first: str, hostfile: bool) -> None:
    directory = program(ROUNDS + "def main(worker): print(rounds(worker, 3))")
    how = ["-n", "2"]
    if hostfile:
        bound = [bind() for _ in range(2)]
        (directory / "hosts").write_text("\n".join(address for _, address in bound))
        for listener, _ in bound:
            listener.close()
        how = ["--hostfile", "hosts"]
    second = "1" if first == "0" else "0"
    with start(directory, *how, "-p", first, "program:main") as process:
        time.sleep(0.3)
        code, out, err = run(directory, *how, "-p", second, "program:main")
        assert (code, out, err) == (0, "[1, 3, 5]\n" if second == "1" else "[0, 2, 4]\n", "")
        out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, out, err) == (0, "[1, 3, 5]\n" if first == "1" else "[0, 2, 4]\n", "")


@pytest.mark.parametrize("failing", [0, 2])
def test_the_process_that_failed_is_the_one_that_counts(program: Write, failing: int) -> None:
    """The others end because of it: with a sentence, and whatever their exit codes are."""
    directory = program(
        ROUNDS
        + f"""
def main(worker):
    rounds(worker, 5)
    if worker.index == {failing}:
        print("on purpose", file=sys.stderr)
        raise SystemExit(3)
    worker.barrier()
"""
    )
    code, out, err = run(directory, "-n", "3", "--label", "program:main")
    assert (code, out) == (3, "")
    lines = sorted(err.splitlines())
    assert lines.pop(failing) == f"[{failing}] on purpose"
    for line, number in zip(lines, [n for n in range(3) if n != failing], strict=True):
        assert line.startswith(f"[{number}] pointstamp: process {number} stops: ")
        assert f"process {failing} (127.0.0.1:" in line


def test_an_exception_is_shown_once(program: Write) -> None:
    directory = program(
        ROUNDS
        + """
def main(worker):
    rounds(worker, 5)
    1 // (1 - worker.index)
    worker.barrier()
"""
    )
    code, out, err = run(directory, "-n", "2", "program:main")
    assert (code, out) == (1, "")
    assert err.count("Traceback") == 1
    assert err.count("\nZeroDivisionError: ") == 1


def test_a_process_that_is_killed_ends_all(program: Write) -> None:
    directory = program(
        ROUNDS
        + """
def main(worker):
    rounds(worker, 5)
    if worker.index == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    worker.barrier()
"""
    )
    code, out, err = run(directory, "-n", "3", "program:main")
    assert (code, out) == (128 + 9, "")
    assert "pointstamp: process 1 was killed by SIGKILL\n" in err
    for number in (0, 2):
        assert f"pointstamp: process {number} stops: " in err
    assert "still ran" not in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_a_cluster(program: Write, number: signal.Signals) -> None:
    directory = program(ROUNDS + "def main(worker): rounds(worker, 1 << 60)")
    with start(directory, "-n", "2", "-w", "2", "program:main") as process:
        until(lambda: len(list(directory.glob("turn-*"))) == 4)
        process.send_signal(number)
        out, err = process.communicate(timeout=SECONDS)
        assert (process.returncode, out) == (-number, "")
        assert "still ran" not in err
    # The fixture sees that no process is left.


def test_what_crosses_is_counted(program: Write) -> None:
    directory = program(
        ROUNDS
        + """
def main(worker):
    before = worker.traffic()
    rounds(worker, 5)
    now = worker.traffic()
    assert before.data_messages <= now.data_messages
    print(now.data_messages > 0, now.data_bytes > 0, now.progress_messages > 0, now.progress_bytes > 0)
"""
    )
    assert run(directory, "-n", "1", "program:main") == (0, "False False False False\n", "")
    code, out, err = run(directory, "-n", "2", "--label", "program:main")
    assert (code, err) == (0, "")
    # Only worker 0 sends records, and both tell each other of progress.
    assert sorted(out.splitlines()) == ["[0] True True True True", "[1] False False True True"]
