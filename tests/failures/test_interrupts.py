"""Ctrl-C ends everything, wherever the workers are."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from functools import partial
from typing import Any

import pytest

import pointstamp as ps
from pointstamp.runtime import execution
from pointstamp.runtime.bootstrap.workers import form
from pointstamp.runtime.threads import Helper, join

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

# A loop of a collection that does not end: nothing of it is Python's.
ENDLESS = """
    from pointstamp import record
    with worker.dataflow() as scope:
        scope.collection([1]).iterate(lambda inner, rows: rows.map(record + 1), name="Grow").probe()
    if worker.index == 0:
        ready()
    worker.run()
"""

BODIES = {
    "parked": PARKED,
    "after main": AFTER_MAIN,
    "in a closure": IN_A_CLOSURE,
    "in main": IN_MAIN,
    "in a loop of steps": IN_A_STEP_LOOP,
    "stubborn": STUBBORN,
    "in a send": IN_A_SEND,
    "in an endless loop": ENDLESS,
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
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
        out, err = process.communicate(timeout=380)
    finally:
        process.kill()
        process.wait()
    assert out == "interrupted\n", out + err
    # Behind the traceback comes what was waited for.
    lines = err.rstrip().splitlines()
    # Notes follow an exception: what it says itself comes right before what was waited for.
    explained = (
        lines.index("What the dataflows wait for:") if "What the dataflows wait for:" in lines else len(lines)
    )
    assert lines[explained - 1].startswith(("KeyboardInterrupt", "raised in")), err
    assert any(line.startswith("KeyboardInterrupt") for line in lines), err
    assert "panic" not in err
    assert process.returncode == -signal.SIGINT
    if body == ENDLESS and workers == 1:
        assert "The loop 'Grow' still turns" in err
        assert "end the turn of a collection with distinct, min or consolidate" in err


class Struck(threading.Event):
    """Raised in place of the word to `Thread.start` that the thread has begun."""

    def wait(self, timeout: float | None = None) -> bool:
        raise KeyboardInterrupt


@pytest.mark.parametrize("begins", [True, False])
@pytest.mark.parametrize("struck", [1, 2, 3])
def test_an_interruption_while_a_thread_is_started(
    struck: int, begins: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may begin or not; none is left, and none runs on alone."""
    original, count = threading.Thread.start, 0

    def start(thread: threading.Thread) -> None:
        nonlocal count
        count += 1
        if count == struck:
            if not begins:
                raise KeyboardInterrupt
            monkeypatch.setattr(thread, "_started", Struck())
        original(thread)

    def main(worker: ps.Worker) -> None:
        while True:
            worker.step_or_park(0.01)

    monkeypatch.setattr(threading.Thread, "start", start)
    before = set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt):
        ps.execute(main, workers=3)
    # One that was kept from beginning may need a moment to find that out.
    end = time.monotonic() + 120
    while set(threading.enumerate()) - before:
        assert time.monotonic() < end, threading.enumerate()
        time.sleep(0.001)
    assert count == struck


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interruption_while_another_one_is_told(when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason is put into words, and sent to other processes; workers are waited for all the same."""

    class Struck:
        """A cluster whose caller is interrupted when it has abandoned it."""

        def __init__(self, cluster: Any) -> None:
            self.cluster = cluster

        def __getattr__(self, name: str) -> Any:
            return getattr(self.cluster, name)

        def abandon(self, reason: str) -> None:
            self.cluster.abandon(reason)
            if when == "after":
                raise KeyboardInterrupt

    def in_words(*_: object) -> str:
        if when == "before":
            raise KeyboardInterrupt
        return ""

    def wait(*_: object, **__: object) -> None:
        ready.wait()
        raise KeyboardInterrupt

    def main(worker: ps.Worker) -> None:
        ready.wait()
        end = time.monotonic() + 20
        while time.monotonic() < end:
            pass

    ready = threading.Barrier(4)
    monkeypatch.setattr(execution, "form", lambda *arguments: Struck(form(*arguments)))
    monkeypatch.setattr(execution, "in_words", in_words)
    monkeypatch.setattr(execution, "_wait", wait)
    with pytest.raises(KeyboardInterrupt):
        ps.execute(main, workers=3)
    assert [thread for thread in threading.enumerate() if thread.name.startswith("pointstamp-")] == []


def test_a_thread_that_comes_late_does_nothing() -> None:
    done: list[str] = []
    late, timely = (Helper(partial(done.append, name), name) for name in ("late", "timely"))
    assert late.ends(0)
    for thread in (late, timely):
        thread.start()
        threading.Thread.join(thread)
        assert thread.ends(0)
    assert done == ["timely"]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, TimeoutError, SystemExit])
def test_an_interruption_of_who_waits_for_threads_is_kept_until_they_have_ended(
    kind: type[BaseException],
) -> None:
    go = threading.Event()

    def strike() -> None:
        if not go.is_set():
            go.set()
            raise kind

    def wait() -> None:
        go.wait(120)

    thread = Helper(wait, "waits")
    thread.start()
    with pytest.raises(kind):
        join([thread], 0.01, strike)
    assert not thread.is_alive()


def test_a_worker_that_cannot_be_interrupted_is_left_to_itself_in_the_end() -> None:
    """It sleeps outside of the interpreter, and the thread that wants to end asks again and again."""
    program = """
import time
import pointstamp as ps

def main(worker):
    if worker.index == 0:
        print("ready", flush=True)
        time.sleep(1000)
    while True:
        worker.step_or_park(0.01)

try:
    ps.execute(main, workers=2)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    raise
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        end = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < end:
            process.send_signal(signal.SIGINT)
            time.sleep(0.3)
        out, err = process.communicate(timeout=380)
    finally:
        process.kill()
        process.wait()
    assert out == "interrupted\n", err
    assert "panic" not in err


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
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=380, check=False
    )
    assert result.stdout == "closed\n", result.stderr
