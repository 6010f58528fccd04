"""`python -m pointstamp run --dashboard --log --stall-report`: what a configuration may show, without one."""

import re
import signal
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from launching import Write, run, start, written
from pointstamp.observability.log import read_log

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of a POSIX system")

STANDS = """
def main(worker):
    with worker.dataflow("shown") as scope:
        numbers, stream = scope.new_input()
        probe = stream.exchange(lambda x: x).map(str, name="stands here").probe()
    while probe.less_than(1) and not (here / "go on").exists():
        worker.step_or_park(0.1)
"""


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Write]:
    with written(tmp_path) as write:
        yield write


@pytest.mark.parametrize(("processes", "workers"), [(1, 1), (1, 2), (2, 1)])
def test_a_program_is_shown_logged_and_explained(program: Write, processes: int, workers: int) -> None:
    directory = program(STANDS)
    size = ["-n", str(processes), "-w", str(workers)]
    seeing = ["--dashboard", "0", "--log=log", "--stall-report", "0.2"]
    with start(directory, *size, *seeing, "program:main") as process:
        assert process.stderr is not None
        said = ""
        while "advance_to()" not in said or "http" not in said:
            line = process.stderr.readline()
            assert line, said
            said += line
        assert "nothing has moved for 0.2 s" in said
        [page] = re.findall(r"http://127\.0\.0\.1:\d+", said)
        with urllib.request.urlopen(f"{page}/metrics", timeout=60) as answer:
            assert '"stands here"' in answer.read().decode()
        (directory / "go on").touch()
        process.communicate(timeout=380)
        assert process.returncode == 0
    table = read_log(directory / "log")
    assert set(table["worker"].to_pylist()) == set(range(processes * workers))
    assert any("stands here" in name for name in table["name"].to_pylist() if name)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--stall-report", "0"], "--stall-report is a number of seconds above 0"),
        (["--stall-report", "inf"], "--stall-report is a number of seconds above 0"),
        (["--stall-report", "1e12"], "--stall-report is a number of seconds above 0"),
        (["--stall-report", "nan"], "--stall-report is a number of seconds above 0"),
        (["--stall-report", "soon"], "--stall-report"),
        (["--log", ""], "log is a folder, and is empty"),
        (["--dashboard", "here"], "'here' is not an address"),
        (["--dashboard", "70000"], "from 0 to 65535"),
    ],
)
def test_what_cannot_be_is_refused(program: Write, arguments: list[str], says: str) -> None:
    code, out, err = run(program(), *arguments, "program:main")
    assert (code, out) == (2, "")
    assert says in err
    assert "Traceback" not in err


IMPORTS = """
import threading
print("imports", flush=True)
threading.Event().wait()

def main(worker):
    pass
"""


@pytest.mark.parametrize(
    "before", ["", "import signal; signal.signal(signal.SIGTERM, lambda *_: exit('mine'))"]
)
def test_a_termination_while_the_program_is_imported_is_answered(program: Write, before: str) -> None:
    with start(program(before + IMPORTS), "program:main") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "imports\n"
        process.terminate()
        _, err = process.communicate(timeout=380)
    if before:
        assert (process.returncode, err) == (1, "mine\n")
    else:
        assert process.returncode == -signal.SIGTERM
        assert "pointstamp: SIGTERM came while program:main was imported, at " in err
        assert "Traceback" not in err


@pytest.mark.parametrize("processes", [1, 2])
def test_a_folder_with_the_log_of_what_runs_is_refused_in_a_sentence(program: Write, processes: int) -> None:
    fcntl = pytest.importorskip("fcntl")
    directory = program()
    (directory / "log").mkdir()
    with (directory / "log" / "worker-0.arrows").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        code, _, err = run(directory, "-n", str(processes), "--log", "log", "program:main")
    assert code != 0
    assert "'log' has the log of a computation that runs: give each a folder of its own" in err
    assert "Traceback" not in err


REFUSED = """
import pointstamp as ps

def main(worker):
    ps.Config(workers=0)
"""


def test_what_the_program_refuses_itself_has_a_traceback(program: Write) -> None:
    code, _, err = run(program(REFUSED), "program:main")
    assert code == 1
    assert "Traceback" in err
    assert "ps.Config(workers=0)" in err


def test_the_options_are_the_launchers_and_not_the_programs(program: Write) -> None:
    code, out, err = run(program(), "program:main", "--log", "mine", "--dashboard", "too")
    assert (code, err) == (0, "")
    assert out == "worker 0 of 1 has ['--log', 'mine', '--dashboard', 'too']\n"
