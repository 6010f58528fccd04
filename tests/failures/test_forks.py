"""Processes that a program forks while a computation runs: they do not take part in it, and end."""

import subprocess
import sys
import textwrap

import pytest

BEGIN = """
import multiprocessing, os, sys
import pointstamp as ps

def outcome(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""


def run(program: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Returns the output of a program; a process that hangs fails the test."""
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", BEGIN + textwrap.dedent(program), *arguments],
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
    )


WAYS = {
    "steps": "worker.step()",
    "sends": "numbers.send(1)",
    "advances": "numbers.advance_to(1)",
    "builds": "worker.dataflow().__enter__()",
    "explains": "worker.explain(probe, 1)",
}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("way", WAYS)
def test_a_forked_process_is_refused_the_engine(workers: int, way: str) -> None:
    program = f"""
    def main(worker):
        with worker.dataflow() as scope:
            numbers, stream = scope.new_input()
            got = stream.exchange(lambda x: x)
            probe = got.probe()
            got = got.capture()
        pid = os.fork() if worker.index == 0 else None
        if pid == 0:
            try:
                {WAYS[way]}
            except ps.PointstampError as error:
                print("refused:", error, flush=True)
                os._exit(7)
            os._exit(0)
        if worker.index == 0:
            os.write(1, b"ended %d\\n" % outcome(pid))
        numbers.send(worker.index)
        numbers.close()
        worker.run()
        return got.extract()

    print(ps.execute(main, workers={workers}))
    """
    done = run(program)
    refused, ended, results = done.stdout.splitlines()
    assert refused.startswith("refused: this process was forked while a computation ran")
    assert ended == "ended 7"
    assert results == {1: "[[(0, [0])]]", 2: "[[(0, [0])], [(0, [1])]]"}[workers]
    assert done.returncode == 0, done.stderr


RETURNS = {
    "from main": ("main", "return None"),
    "by an exception": ("main", "raise ValueError('of the forked one')"),
    "by what the engine raises": ("main", "worker.run()"),
    "by an exit": ("main", "sys.exit(3)"),
    "from an operator": ("operator", ""),
}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("way", RETURNS)
def test_a_forked_process_that_returns_into_the_engine_says_so_and_ends(workers: int, way: str) -> None:
    where, what = RETURNS[way]
    program = f"""
    def shown(x):
        if {where == "operator"} and x == 1:
            pid = os.fork()
            if pid:
                os.write(1, b"ended %d\\n" % outcome(pid))
        return x

    def main(worker):
        pid = None
        with worker.dataflow() as scope:
            stream = scope.to_stream(range(worker.index, 4, worker.peers))
            marked = stream.map(shown).inspect(lambda x: os.write(1, b"%d\\n" % x))
            seen = marked.exchange(lambda x: 0).capture()
        if {where == "main"} and worker.index == 0:
            pid = os.fork()
            if pid == 0:
                {what or "pass"}
            os.write(1, b"ended %d\\n" % outcome(pid))
        worker.run()
        return sorted(x for _, xs in seen.extract() for x in xs)

    print(ps.execute(main, workers={workers}))
    print("after")
    """
    done = run(program)
    lines = done.stdout.splitlines()
    code = 3 if way == "by an exit" else 1
    assert f"ended {code}" in lines, (done.stdout, done.stderr)
    # The forked one prints none of its own: no record passes twice, and nothing comes after `execute`.
    assert sorted(line for line in lines if line.isdigit()) == ["0", "1", "2", "3"]
    assert lines[-2:] == [str([[0, 1, 2, 3], []][:workers]), "after"]
    if way == "by an exception":
        assert "ValueError: of the forked one" in done.stderr
    elif way != "by an exit":
        assert "this process was forked while a computation ran" in done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_processes_of_multiprocessing_end_and_run_computations_of_their_own(workers: int) -> None:
    program = f"""
    def own(n):
        def main(worker):
            with worker.dataflow() as scope:
                got = scope.to_stream(range(n)).capture()
            worker.run()
            return got.extract()
        return ps.execute(main)

    def main(worker):
        with worker.dataflow() as scope:
            numbers, stream = scope.new_input()
            def squared(x):
                with multiprocessing.get_context("fork").Pool(2) as pool:
                    return pool.map(own, [x])[0]
            got = stream.map(squared).capture()
        numbers.send(worker.index + 1)
        numbers.close()
        worker.run()
        return got.extract()

    print(ps.execute(main, workers={workers}))
    """
    done = run(program)
    one, two = [(0, [[[(0, [0])]]])], [(0, [[[(0, [0, 1])]]])]
    assert done.stdout == f"{[one, two][:workers]}\n", done.stderr
    assert done.returncode == 0


def test_a_forked_process_ends_by_sigterm_and_sigusr1_does_nothing_to_it() -> None:
    program = """
    import signal, time

    def main(worker):
        with worker.dataflow() as scope:
            numbers, stream = scope.new_input()
            stream.probe()
        process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
        process.start()
        os.kill(process.pid, signal.SIGUSR1)
        process.terminate()
        process.join()
        print("ended", process.exitcode)

    ps.execute(main)
    """
    done = run(program)
    assert done.stdout == "ended -15\n", done.stderr
    assert done.stderr == ""
