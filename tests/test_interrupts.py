"""Ctrl-C ends everything, wherever the workers are."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of a POSIX system")

PROGRAM = """
import sys, threading, time
import pointstamp as ps

def ready():
    sys.stdout.write("ready\\n")
    sys.stdout.flush()

def main(worker):
    handle = ps.InputHandle()
    {body}

before = threading.enumerate()
try:
    {run}
except KeyboardInterrupt:
    assert threading.enumerate() == before, threading.enumerate()
    assert ps.example(lambda scope: scope.to_stream([1]).capture()).extract() == [(0, [1])]
    print("interrupted")
    raise
print("not interrupted")
"""

PARKED = """
    with worker.dataflow() as scope:
        probe = handle.to_stream(scope).exchange(lambda x: x).probe()
    worker.barrier()
    if worker.index == 0:
        ready()
    worker.step_while(lambda: not probe.done())
"""

AFTER_MAIN = """
    def logic(output):
        if worker.index == 0:
            ready()
    with worker.dataflow() as scope:
        kept = []
        scope.source("holds on", lambda cap, info: kept.append(cap) or logic)
    return kept
"""

IN_A_CLOSURE = """
    def forever(x):
        ready()
        while True:
            pass
    with worker.dataflow() as scope:
        scope.to_stream([0] if worker.index == worker.peers - 1 else []).map(forever)
        handle.to_stream(scope)
    while True:
        worker.step_or_park()
"""

IN_MAIN = """
    with worker.dataflow() as scope:
        handle.to_stream(scope)
    worker.barrier()
    if worker.index == worker.peers - 1:
        ready()
        while True:
            pass
    while True:
        worker.step_or_park()
"""

IN_A_STEP_LOOP = """
    with worker.dataflow() as scope:
        probe = handle.to_stream(scope).exchange(lambda x: x).probe()
    worker.barrier()
    if worker.index == 0:
        ready()
    while True:
        handle.send(1)
        worker.step()
"""

STUBBORN = """
    with worker.dataflow() as scope:
        handle.to_stream(scope)
    worker.barrier()
    if worker.index == 0:
        ready()
    for _ in range(3):
        try:
            while True:
                worker.step_or_park()
        except Exception:
            pass
"""

IN_A_SEND = """
    import itertools
    if worker.index == 0:
        ready()
    other = ps.InputHandle()
    with worker.dataflow() as slow:
        other.to_stream(slow).exchange(lambda _: 0).inspect(lambda _: time.sleep(0.001))
    other.send_batch(itertools.repeat(b"-" * 10_000))
"""


@pytest.mark.parametrize(
    "body",
    [PARKED, AFTER_MAIN, IN_A_CLOSURE, IN_MAIN, IN_A_STEP_LOOP, STUBBORN, IN_A_SEND],
    ids=["parked", "after main", "in a closure", "in main", "in a loop of steps", "stubborn", "in a send"],
)
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_ctrl_c_stops_every_worker(body: str, workers: int) -> None:
    program = PROGRAM.format(
        body=textwrap.dedent(body).replace("\n", "\n    "),
        run=f"ps.execute(main, config=ps.Config(workers={workers}, high_water=1_000_000))",
    )
    process = subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.1)
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=15)
    finally:
        process.kill()
        process.wait()
    assert out == "interrupted\n", out + err
    assert err.rstrip().splitlines()[-1].startswith(("KeyboardInterrupt", "raised in")), err
    assert "panic" not in err
    assert process.returncode == -signal.SIGINT


def test_a_signal_handler_of_ones_own_runs_while_the_worker_sleeps() -> None:
    program = """
import signal, os, threading
import pointstamp as ps

def main(worker):
    handle = ps.InputHandle()
    with worker.dataflow() as scope:
        probe = handle.to_stream(scope).probe()
    signal.signal(signal.SIGUSR1, lambda *_: handle.close())
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1)).start()
    worker.step_while(lambda: not probe.done())
    print("closed")

ps.execute(main)
"""
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=20, check=False
    )
    assert result.stdout == "closed\n", result.stderr
