"""Programs that end while computations run on daemon threads: they end by themselves, and not by a signal."""

import subprocess
import sys
import textwrap

import pytest

BEGIN = """
import os, sys, tempfile, threading, time, warnings
from multiprocessing.pool import ThreadPool
import pointstamp as ps

began = threading.Event()

def steps(worker):
    with worker.dataflow() as scope:
        numbers, stream = scope.new_input()
        stream.map(lambda x: x + 1)
    began.set()
    while True:
        numbers.send(1)
        worker.step()

def parks(worker):
    with worker.dataflow() as scope:
        numbers, stream = scope.new_input()
        stream.map(lambda x: x + 1)
    began.set()
    worker.step_while(lambda: True)

def sleeps(worker):
    def wait(x):
        began.set()
        time.sleep(0.01)
    with worker.dataflow() as scope:
        scope.to_stream(range(10**9)).map(wait)
    worker.run()

def blocks(worker):
    def wait(x):
        began.set()
        threading.Event().wait()
    with worker.dataflow() as scope:
        scope.to_stream([1]).map(wait)
    worker.run()

def pipes(worker):
    path = os.path.join(tempfile.mkdtemp(), "pipe")
    os.mkfifo(path)
    began.set()
    with worker.dataflow() as scope:
        scope.to_stream(range(10)).capture_into(ps.EventWriter(path))
    worker.run()

def goes_on(worker):
    while True:
        try:
            steps(worker)
        except Exception:
            pass

def on_a_thread(function, *arguments, **named):
    threading.Thread(target=function, args=arguments, kwargs=named, daemon=True).start()
"""

THREADED = [
    (main, workers) for main in ("steps", "parks", "sleeps", "pipes", "goes_on") for workers in (1, 2)
]


def run(program: str, first: str = "") -> "subprocess.CompletedProcess[str]":
    """Runs a program, which begins before the package is imported; one that hangs fails the test."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(first) + BEGIN + textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
    )


def ends_well(program: str, first: str = "") -> str:
    """Runs a program, which has a minute to stop what it runs; what it has printed."""
    done = run(
        "from pointstamp.runtime import exit as _exit; _exit.PATIENCE = 60\n" + textwrap.dedent(program),
        first,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize(("main", "workers"), THREADED)
def test_a_computation_on_a_daemon_thread_ends_with_the_program(main: str, workers: int) -> None:
    program = f"""
    on_a_thread(ps.execute, {main}, workers={workers})
    began.wait()
    print("the program ends")
    """
    assert ends_well(program) == "the program ends\n"


@pytest.mark.parametrize("main", ["steps", "sleeps"])
def test_a_computation_on_a_pool_of_threads_ends_with_the_program(main: str) -> None:
    program = f"""
    pool = ThreadPool(2)
    pool.apply_async(ps.execute, [{main}])
    pool.apply_async(ps.execute, [{main}], {{"workers": 2}})
    began.wait()
    print("the program ends")
    """
    assert ends_well(program) == "the program ends\n"


def test_a_simulated_computation_ends_with_the_program() -> None:
    program = """
    from pointstamp.testing import simulate
    on_a_thread(simulate, steps, workers=2, seed=1)
    began.wait()
    print("the program ends")
    """
    assert ends_well(program) == "the program ends\n"


@pytest.mark.parametrize("processes", ["", "workers=2", "processes=2"])
def test_a_session_that_was_not_closed_ends_with_the_program(processes: str) -> None:
    program = f"""
    def build(scope):
        numbers, stream = scope.new_input()
        return {{"numbers": numbers, "out": stream.map(lambda x: x + 1)}}

    session = ps.Interactive({processes})
    flow = session.dataflow(build)
    flow.numbers.send(1)
    flow.numbers.advance_to(1)
    print(flow.out.read(60))
    print("the program ends")
    """
    assert ends_well(program) == "[(0, [2])]\nthe program ends\n"


def test_what_is_stopped_by_the_programs_end_has_no_result() -> None:
    first = """
    import atexit, threading
    heard, found = threading.Event(), []
    # Registered before the package is imported, and so called last.
    atexit.register(lambda: (heard.wait(60), print(found)))
    """
    program = """
    def compute():
        try:
            found.append(ps.execute(parks))
        except BaseException as error:
            found.append(error)
        heard.set()

    on_a_thread(compute)
    began.wait()
    """
    assert (
        ends_well(program, first) == "[SystemExit('the program has ended, and its computations with it')]\n"
    )


def test_a_function_of_the_programs_that_is_registered_before_its_computations_may_end_them() -> None:
    program = """
    import atexit
    ends, over = threading.Event(), threading.Event()

    def end():
        ends.set()
        over.wait(60)

    def main(worker):
        with worker.dataflow() as scope:
            numbers, stream = scope.new_input()
            sums = stream.map(lambda x: x + 1).capture()
        numbers.send(1)
        began.set()
        ends.wait(60)
        numbers.close()
        worker.run()
        print("complete", sums.extract())

    def compute():
        try:
            ps.execute(main)
        finally:
            over.set()

    atexit.register(end)
    on_a_thread(compute)
    began.wait()
    """
    assert ends_well(program) == "complete [(0, [2])]\n"


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="no thread is started at the program's end")
def test_what_begins_after_the_programs_end_is_refused() -> None:
    first = """
    import atexit, threading

    def compute():
        try:
            ps.execute(lambda worker: print("runs"))
        except SystemExit as error:
            print("late:", error)

    def at_the_end():
        thread = threading.Thread(target=compute)
        thread.start()
        thread.join()

    atexit.register(at_the_end)
    """
    program = """
    on_a_thread(ps.execute, parks)
    began.wait()
    """
    assert ends_well(program, first) == "late: the program has ended, and its computations with it\n"


def test_a_thread_that_stays_in_native_code_holds_the_end_up_for_a_bounded_time_only() -> None:
    program = """
    from pointstamp.runtime import exit as _exit
    _exit.PATIENCE = 0.3
    on_a_thread(ps.execute, blocks)
    began.wait()
    print("the program ends")
    """
    done = run(program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "the program ends\n", "")


def test_a_forked_process_does_not_wait_for_computations_of_its_parent() -> None:
    program = """
    on_a_thread(ps.execute, parks)
    began.wait()
    warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks of threads
    pid = os.fork()
    if pid == 0:
        print("forked", flush=True)
        sys.exit(3)
    print("ended", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
    """
    assert ends_well(program).splitlines() == ["forked", "ended 3"]
