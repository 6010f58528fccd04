"""Ends that come from outside: Ctrl-C in one process, and a process that is killed."""

import signal
import subprocess
import sys
import textwrap
import time
from typing import Any

import pytest

import pointstamp as ps
from clusters import Cluster, Process
from pointstamp.runtime.launcher.spawning import ends

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of a POSIX system")

SCRIPT = """
import os, threading

def main(worker):
    handle = ps.InputHandle()
    {body}

try:
    ps.execute(main, config=config, listener=listener)
except BaseException as error:
    assert [thread.name for thread in threading.enumerate()] == ["MainThread"]
    assert ps.execute(lambda worker: worker.index) == [0]
    say(type(error).__name__, str(error).split("\\n")[0])
    sys.exit(7)
say("nothing was raised")
"""

PARKED = """
with worker.dataflow() as scope:
    probe = handle.to_stream(scope).exchange(lambda x: x).probe()
worker.barrier()
if worker.index % config.workers == 0: say("ready")
worker.step_while(lambda: not probe.done())
"""

IN_A_CLOSURE = """
def forever(x):
    if worker.index % config.workers == 0: say("ready")
    while True:
        pass
with worker.dataflow() as scope:
    scope.to_stream(range(worker.peers) if worker.index == 0 else []).exchange(lambda x: x).map(forever)
worker.run()
"""

BUSY = """
with worker.dataflow() as scope:
    probe = handle.to_stream(scope).exchange(lambda x: x).probe()
worker.barrier()
if worker.index % config.workers == 0: say("ready")
while True:
    handle.send_batch(range(100))
    handle.advance_to(handle.time + 1)
    worker.step_while(lambda: probe.less_than(handle.time))
"""

AT_THE_END = """
worker.barrier()
if worker.index % config.workers == 0: say("ready")
while worker.index // config.workers == 0:
    pass
"""

BODIES = {"parked": PARKED, "in a closure": IN_A_CLOSURE, "busy": BUSY}


def cluster(body: str, processes: int, workers: int = 1) -> Cluster:
    program = SCRIPT.format(body=textwrap.indent(body, "    ").strip())
    return Cluster(program, processes, workers=workers, execute=False)


def raised(process: Process) -> str:
    """The exception, and the first line of its text."""
    assert process.code == 7, process
    assert "panic" not in process.err
    return process.out.splitlines()[-1]


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize(("processes", "workers", "struck"), [(2, 1, 0), (2, 2, 1), (3, 1, 2)])
def test_ctrl_c_in_one_process_ends_all(body: str, processes: int, workers: int, struck: int) -> None:
    with cluster(body, processes, workers) as all_:
        all_.wait_for("ready")
        all_.processes[struck].kill(signal.SIGINT)
        all_.end()
        for number, process in all_.processes.items():
            if number == struck:
                assert raised(process).startswith("KeyboardInterrupt")
            else:
                failed = f"ClusterError process {struck} ({all_.addresses[struck]}) failed: KeyboardInterrupt"
                assert raised(process).startswith(failed)


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_process_that_is_killed_ends_all(body: str, workers: int) -> None:
    with cluster(body, 3, workers) as all_:
        all_.wait_for("ready")
        all_.processes[1].kill()
        all_.end()
        assert all_.processes[1].code == -signal.SIGKILL
        for number in (0, 2):
            failed = f"ClusterError process 1 ({all_.addresses[1]}) failed: "
            assert raised(all_.processes[number]).startswith(failed)


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_while_the_others_go_on(workers: int) -> None:
    """A process whose workers have ended waits for the others, and may leave them to their work."""
    with cluster(AT_THE_END, 2, workers) as all_:
        all_.wait_for("ready")
        time.sleep(0.3)
        all_.processes[1].kill(signal.SIGINT)
        all_.end(20, [1])
        all_.processes[0].kill(signal.SIGINT)
        all_.end()
        for process in all_.processes.values():
            assert raised(process).startswith("KeyboardInterrupt")


def test_ctrl_c_while_the_cluster_forms() -> None:
    script = """
        import threading
        say("ready")
        try:
            ps.execute(lambda worker: None, config=config, listener=listener)
        except KeyboardInterrupt:
            assert [thread.name for thread in threading.enumerate()] == ["MainThread"]
            assert listener.fileno() == -1
            say("interrupted")
    """
    with Cluster(script, 2, start=[0], execute=False) as all_:
        all_.wait_for("ready")
        time.sleep(0.3)
        all_.processes[0].kill(signal.SIGINT)
        all_.end()
        assert all_.processes[0].code == 0
        assert all_.processes[0].out == "ready\ninterrupted\n"


def test_an_end_without_a_word() -> None:
    """Ends a process by `os._exit` in the middle of an operator, as when it runs out of memory."""
    body = """
with worker.dataflow() as scope:
    numbers = scope.to_stream(range(worker.peers) if worker.index == 0 else [])
    numbers.exchange(lambda x: x).map(lambda x: os._exit(3) if x == 1 else x)
    probe = handle.to_stream(scope).probe()
worker.step_while(lambda: not probe.done())
"""
    with cluster(body, 3) as all_:
        all_.end()
        assert all_.processes[1].code == 3
        for number in (0, 2):
            failed = f"ClusterError process 1 ({all_.addresses[1]}) failed: "
            assert raised(all_.processes[number]).startswith(failed)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere Python looks now and then")
def test_a_process_that_ends_is_not_looked_for_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float | None] = []
    wait = subprocess.Popen.wait

    def counted(process: Any, timeout: float | None = None) -> Any:
        waited.append(timeout)
        return wait(process, timeout)

    monkeypatch.setattr(subprocess.Popen, "wait", counted)
    assert ps.execute(lambda worker: worker.index, processes=2) == [0, 1]
    assert waited
    assert set(waited) <= {0.0, None}, "Popen.wait with a limit sleeps between its looks"


def test_a_process_that_does_not_end_is_not_waited_for_beyond_its_time() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            ends(process, 0.01)
        process.kill()
        ends(process, 60.0)
        ends(process, 60.0)  # it is known
        assert process.returncode == -signal.SIGKILL
