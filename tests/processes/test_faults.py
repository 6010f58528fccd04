"""A cluster fails loudly: whatever happens to one process, or to a connection, ends all with a sentence."""

import os
import random
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from clusters import Cluster, Process, is_free

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of a POSIX system")

SECONDS = 100
"""Seconds that the others may take to end: against hangs, and less than the stall_timeout of `Cluster`."""

# What a process may be at when another one fails. Each says so, and then goes on without end.
BUSY = """
def main(worker):
    numbers = ps.InputHandle()
    with worker.dataflow() as scope:
        probe = (
            scope.input_from(numbers).exchange(lambda x: x).map(lambda x: x + 1).exchange(lambda x: x).probe()
        )
    for round in range(1 << 60):
        numbers.send_batch(range(round, round + 100))
        numbers.advance_to(round + 1)
        worker.step_while(lambda: probe.less_than(round + 1))
        if round == 3:
            say("running")
"""

IDLE = """
def main(worker):
    numbers = ps.InputHandle()
    with worker.dataflow() as scope:
        probe = scope.input_from(numbers).exchange(lambda x: x).probe()
    worker.barrier()
    say("running")
    worker.step_while(lambda: not probe.done())
"""

FLOODING = """
def main(worker):
    with worker.dataflow() as scope:
        scope.to_stream(range(1 << 60)).exchange(lambda x: x).map_batches(lambda batch: [len(batch)])
    worker.barrier()
    say("running")
    worker.run()
"""

IN_A_CLOSURE = """
def main(worker):
    with worker.dataflow() as scope:
        scope.to_stream([worker.index]).exchange(lambda x: x + 1).map(lambda x: time.sleep(0.3)).probe()
    worker.barrier()
    say("running")
    time.sleep(0.3)
    while True:
        worker.barrier()
"""

PROGRAMS = {"busy": BUSY, "idle": IDLE, "flooding": FLOODING, "in a closure": IN_A_CLOSURE}


def assert_lost(cluster: Cluster, victims: set[int], process: Process) -> None:
    """A process has ended with a ClusterError that names a victim and its address."""
    assert process.code == 1, process
    error = re.findall(r"^pointstamp\.ClusterError: (.*)", process.err, re.MULTILINE)
    assert error, process
    named = [victim for victim in victims if f"process {victim} " in error[-1]]
    assert named, process
    assert cluster.addresses[named[0]] in error[-1], process
    assert "panic" not in process.err


# ---------------------------------------------------------------- a process that dies


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_process_is_killed_in_the_middle_of_a_run(program: str) -> None:
    """Fifty times over the programs, each time at another moment of the run."""
    source = random.Random(program)
    for turn in range(50 // len(PROGRAMS) + 1):
        victim = source.randrange(3)
        with Cluster(PROGRAMS[program], 3, workers=source.choice([1, 1, 2])) as cluster:
            cluster.wait_for("running")
            time.sleep(source.expovariate(10))
            cluster.processes[victim].kill()
            cluster.end(SECONDS)
            assert cluster.processes[victim].code == -signal.SIGKILL, turn
            for number in {0, 1, 2} - {victim}:
                assert_lost(cluster, {victim}, cluster.processes[number])
            assert all(map(is_free, cluster.addresses))


def test_two_processes_are_killed_at_once() -> None:
    with Cluster(BUSY, 3) as cluster:
        cluster.wait_for("running")
        for victim in (0, 2):
            cluster.processes[victim].kill()
        cluster.end(SECONDS)
        assert_lost(cluster, {0, 2}, cluster.processes[1])


def test_a_process_that_leaves_without_a_word_is_lost() -> None:
    """`os._exit` in the middle of a run, with exit code 0, is no end of a computation."""
    program = BUSY.replace('say("running")', "worker.index == 1 and os._exit(0)")
    with Cluster(program, 3) as cluster:
        cluster.end()
        for number in (0, 2):
            assert_lost(cluster, {1}, cluster.processes[number])


def test_a_process_that_dies_after_its_work_is_done_is_lost() -> None:
    """The others are at their end, too, but for it."""
    program = """
        def main(worker):
            with worker.dataflow() as scope:
                scope.to_stream([1]).exchange(lambda x: x).probe()
            worker.run()
            say("running")
            if worker.index == 0:
                time.sleep(600)
    """
    with Cluster(program, 3) as cluster:
        cluster.wait_for("running")
        cluster.processes[0].kill()
        cluster.end(SECONDS)
        for number in (1, 2):
            assert_lost(cluster, {0}, cluster.processes[number])


# ---------------------------------------------------------------- an exception, a signal


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("where", ["operator", "main"])
def test_an_exception_is_raised_where_it_was_and_told_everywhere(where: str, workers: int) -> None:
    program = f"""
        def fail(x):
            if x == 7 * {workers} and {where == "operator"}:
                raise KeyError("no such thing")
            return x

        def main(worker):
            numbers = ps.InputHandle()
            with worker.dataflow() as scope:
                probe = scope.input_from(numbers).exchange(lambda x: 1).map(fail, name="careful").probe()
            for round in range(1 << 60):
                numbers.send(round)
                numbers.advance_to(round + 1)
                worker.step_while(lambda: probe.less_than(round + 1))
                if round == 5 and worker.index == 1 and {where == "main"}:
                    raise KeyError("no such thing")
    """
    with Cluster(program, 3, workers=workers) as cluster:
        cluster.end(SECONDS)
        failed = 1 // workers
        for number, process in cluster.processes.items():
            assert process.code == 1
            assert "panic" not in process.err
            if number == failed:
                assert "KeyError: 'no such thing'\n" in process.err
                assert "raised in" in process.err
                assert "ClusterError" not in process.err
            else:
                assert_lost(cluster, {failed}, process)
                assert "KeyError: 'no such thing'" in process.err
                assert "Traceback" in process.err.split("ClusterError:")[1]  # the remote one, as text


def test_ctrl_c_in_one_process_stops_all() -> None:
    with Cluster(IDLE, 3) as cluster:
        cluster.wait_for("running")
        cluster.processes[1].kill(signal.SIGINT)
        cluster.end(SECONDS)
        assert cluster.processes[1].code == -signal.SIGINT
        for number in (0, 2):
            assert_lost(cluster, {1}, cluster.processes[number])


# ---------------------------------------------------------------- a connection that stalls or breaks


@pytest.mark.parametrize("program", ["busy", "idle", "flooding"])
def test_a_process_that_is_stopped_is_lost(program: str) -> None:
    """SIGSTOP: its connections stay open, and nothing comes."""
    with Cluster(PROGRAMS[program], 3, stall_timeout=1.0) as cluster:
        cluster.wait_for("running")
        cluster.processes[2].kill(signal.SIGSTOP)
        cluster.end(1 + SECONDS, [0, 1])
        for number in (0, 1):
            assert_lost(cluster, {2}, cluster.processes[number])
        cluster.processes[2].kill(signal.SIGCONT)
        cluster.end(SECONDS)
        assert_lost(cluster, {0, 1}, cluster.processes[2])


def test_a_pause_shorter_than_the_limit_is_none() -> None:
    program = """
        def main(worker):
            numbers = ps.InputHandle()
            with worker.dataflow() as scope:
                probe = scope.input_from(numbers).exchange(lambda x: x).probe()
            worker.barrier()
            say("running")
            begin = time.monotonic()
            for round in range(1 << 60):
                numbers.send(round)
                numbers.advance_to(round + 1)
                worker.step_while(lambda: probe.less_than(round + 1))
                if time.monotonic() > begin + 1:
                    break
    """
    with Cluster(program, 3, stall_timeout=20.0) as cluster:
        cluster.wait_for("running")
        cluster.processes[2].kill(signal.SIGSTOP)
        time.sleep(0.5)
        cluster.processes[2].kill(signal.SIGCONT)
        assert cluster.results() == [None] * 3


def test_a_closure_that_takes_long_is_no_stall() -> None:
    """Heartbeats do not wait for the interpreter."""
    program = """
        def main(worker):
            with worker.dataflow() as scope:
                out = scope.to_stream([worker.index]).exchange(lambda x: x).map(hold).capture()
            worker.run()
            return [x for _, batch in out.extract() for x in batch]

        def hold(x):
            if x == 0:  # holds on to the interpreter, as a long computation in C does
                import ctypes
                ctypes.PyDLL(None).usleep(3_000_000)
            return x
    """
    with Cluster(program, 2, stall_timeout=1.0) as cluster:
        assert cluster.results() == [[0], [1]]


class Proxy:
    """Passes bytes on between a process and another one's address, until it is cut or falls silent."""

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = "{}:{}".format(*self._server.getsockname())
        self._sockets: list[socket.socket] = []
        self._passing = threading.Event()
        self._passing.set()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._server.accept()
                self._sockets.append(near)
                far = socket.create_connection(self._target)
                self._sockets.append(far)
                for a, b in [(near, far), (far, near)]:
                    self._threads.append(threading.Thread(target=self._pass, args=(a, b)))
                    self._threads[-1].start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if self._passing.is_set():
                    target.sendall(data)

    def silence(self) -> None:
        """Passes nothing on from now on, and keeps the connections."""
        self._passing.clear()

    def cut(self) -> None:
        """Breaks the connections in the middle."""
        for sock in self._sockets:
            with suppress(OSError):  # it may be closed already
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def close(self) -> None:
        """Ends its threads."""
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self.cut()
        for thread in self._threads:
            thread.join()


@pytest.mark.parametrize("program", ["busy", "idle", "flooding"])
@pytest.mark.parametrize("how", [Proxy.cut, Proxy.silence], ids=["cut", "silent"])
def test_a_connection_breaks_in_the_middle(how: Callable[[Proxy], None], program: str) -> None:
    with Cluster(PROGRAMS[program], 3, start=[0, 1], stall_timeout=1.0) as cluster:
        proxy = Proxy(cluster.addresses[0])
        try:
            cluster.start(2, addresses=[proxy.address, *cluster.addresses[1:]])
            cluster.wait_for("running")
            time.sleep(0.1)
            how(proxy)
            cluster.end(1 + SECONDS)
        finally:
            proxy.close()
        # The process that finds out first says so to the rest: 0 has lost 2, or 2 has lost 0.
        cluster.addresses[0] = f"({cluster.addresses[0]}|{proxy.address})"
        for process in cluster.processes.values():
            assert process.code == 1
            assert re.search(r"ClusterError: .*process [02] ", process.err), process
            assert "panic" not in process.err


# ---------------------------------------------------------------- what is left


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="there is no /proc")
@pytest.mark.parametrize(("workers", "fails"), [(1, False), (2, False), (1, True), (2, True)])
def test_nothing_is_left(workers: int, fails: bool) -> None:
    """After a run, a process has as many threads and files as before, also while it keeps the failure."""
    program = f"""
        def count():
            end = time.monotonic() + 60
            while len(os.listdir("/proc/self/task")) > 1 and time.monotonic() < end:
                pass  # the system takes a moment to put away a thread that was joined
            return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))

        def main(worker):
            with worker.dataflow() as scope:
                stream = scope.to_stream([0, 1]).exchange(lambda x: x)
                kept.append(stream.map(lambda x: 1 // (not {fails} or x)).probe())
            worker.run()

        kept = []
        before = count()
        try:
            ps.execute(main, config=config, listener=listener)
        except Exception as error:
            assert {fails}
            kept.append(error)
        after = count()
        assert after[0] == before[0] == 1, (before, after)
        assert after[1] == before[1] - 1, (before, after)  # the listening socket is closed
    """
    with Cluster(program, 3, workers=workers, execute=False) as cluster:
        cluster.end()
        assert all(process.code == 0 for process in cluster.processes.values()), cluster.processes
