"""Ends that come from outside: Ctrl-C in one process, and a process that is killed."""

import signal
import sys
import time

import pytest

from processes import Program

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of a POSIX system")

SCRIPT = """
import os, threading

def ready():
    print("ready", flush=True)

def main(worker):
    handle = ps.InputHandle()
    {body}

try:
    ps.execute(main, config=config, listener=listener)
except BaseException as error:
    assert [thread.name for thread in threading.enumerate()] == ["MainThread"]
    assert ps.execute(lambda worker: worker.index) == [0]
    print(type(error).__name__, str(error).split("\\n")[0], flush=True)
    sys.exit(7)
print("nothing was raised")
"""

PARKED = """
    with worker.dataflow() as scope:
        probe = handle.to_stream(scope).exchange(lambda x: x).probe()
    worker.barrier()
    if worker.index % config.workers == 0: ready()
    worker.step_while(lambda: not probe.done())
"""

IN_A_CLOSURE = """
    def forever(x):
        if worker.index % config.workers == 0: ready()
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
    if worker.index % config.workers == 0: ready()
    while True:
        handle.send_batch(range(100))
        handle.advance_to(handle.time + 1)
        worker.step_while(lambda: probe.less_than(handle.time))
"""

AT_THE_END = """
    worker.barrier()
    if worker.index % config.workers == 0: ready()
    while worker.index // config.workers == 0:
        pass
"""

BODIES = {"parked": PARKED, "in a closure": IN_A_CLOSURE, "busy": BUSY}


def started(body: str, processes: int, workers: int) -> Program:
    program = Program(SCRIPT.format(body=body.strip()), processes, workers)
    for number in range(processes):
        line = program.line(number)
        assert line == "ready", (line, program.kill())
    return program


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize(("processes", "workers", "struck"), [(2, 1, 0), (2, 2, 1), (3, 1, 2)])
def test_ctrl_c_in_one_process_ends_all(body: str, processes: int, workers: int, struck: int) -> None:
    with started(body, processes, workers) as program:
        program.processes[struck].send_signal(signal.SIGINT)
        ended = program.ends()
    for number, (code, out, err) in enumerate(ended):
        assert code == 7, (out, err)
        if number == struck:
            assert out.startswith("KeyboardInterrupt"), (out, err)
        else:
            assert out.startswith(f"ClusterError process {struck} ({program.addresses[struck]}) failed: "), (
                out
            )
            assert "KeyboardInterrupt" in out
        assert "panic" not in err


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_process_that_is_killed_ends_all(body: str, workers: int) -> None:
    with started(body, 3, workers) as program:
        program.processes[1].kill()
        ended = program.ends()
    assert ended[1][0] == -signal.SIGKILL
    for number in (0, 2):
        code, out, err = ended[number]
        assert code == 7, (out, err)
        assert out.startswith(f"ClusterError process 1 ({program.addresses[1]}) failed: "), (out, err)
        assert "panic" not in err


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_while_the_others_go_on(workers: int) -> None:
    """A process whose workers have ended waits for the others, and may leave them to their work."""
    with started(AT_THE_END, 2, workers) as program:
        time.sleep(0.3)
        program.processes[1].send_signal(signal.SIGINT)
        program.processes[1].wait(timeout=20)
        program.processes[0].send_signal(signal.SIGINT)
        ended = program.ends()
    assert [out.split()[0] for _, out, _ in ended] == ["KeyboardInterrupt", "KeyboardInterrupt"]


def test_ctrl_c_while_the_cluster_forms() -> None:
    script = """
from pointstamp.cluster import bind
import threading
_, elsewhere = bind()
config = ps.Config(processes=2, process=0, addresses=[addresses[0], elsewhere], secret="x")
print("ready", flush=True)
try:
    ps.execute(lambda worker: None, config=config, listener=listener)
except KeyboardInterrupt:
    assert [thread.name for thread in threading.enumerate()] == ["MainThread"]
    assert listener.fileno() == -1
    print("interrupted")
"""
    with Program(script, 1) as program:
        assert program.line(0) == "ready"
        time.sleep(0.3)
        program.processes[0].send_signal(signal.SIGINT)
        assert program.ends() == [(0, "interrupted\n", "")]


def test_an_end_without_a_word() -> None:
    """As when a process runs out of memory: `os._exit` in the middle of an operator."""
    body = """
    with worker.dataflow() as scope:
        numbers = scope.to_stream(range(worker.peers) if worker.index == 0 else [])
        numbers.exchange(lambda x: x).map(lambda x: os._exit(3) if x == 1 else x)
        probe = handle.to_stream(scope).probe()
    worker.step_while(lambda: not probe.done())
"""
    with Program(SCRIPT.format(body=body.strip()), 3) as program:
        ended = program.ends()
    assert [code for code, _, _ in ended] == [7, 3, 7]
    for number in (0, 2):
        assert ended[number][1].startswith(f"ClusterError process 1 ({program.addresses[1]}) failed: ")
