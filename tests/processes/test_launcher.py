"""`python -m pointstamp run` starts processes, joins their output, passes signals on, and leaves none."""

import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from launching import SECONDS, Write, alive, run, start, until, written
from pointstamp.__main__ import TAKES_A_VALUE, parsers, split

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of a POSIX system")


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Write]:
    with written(tmp_path) as write:
        yield write


@pytest.fixture
def hangups() -> Iterator[None]:
    """Hangups are not ignored, also where the tests run after `nohup`."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


# ---------------------------------------------------------------- what is run


@pytest.mark.parametrize("target", ["program:main", "program.py:main", "./program.py:main"])
def test_one_process_calls_the_function_on_every_worker(program: Write, target: str) -> None:
    code, out, err = run(program(), "-w", "2", target, "-w", "3", "--", "x")
    assert (code, err) == (0, "")
    for worker in range(2):
        assert f"worker {worker} of 2 has ['-w', '3', '--', 'x']" in out.splitlines()


def test_one_process_runs_in_the_launcher_itself(program: Write) -> None:
    with start(program("def main(worker): print(os.getpid())"), "program:main") as process:
        out, _ = process.communicate(timeout=SECONDS)
    assert int(out) == process.pid


def test_a_function_may_be_in_a_package_or_in_a_class(program: Write) -> None:
    directory = program()
    package = directory / "some" / "package"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "job.py").write_text("class Job:\n    @staticmethod\n    def main(worker): print('here')\n")
    assert run(directory, "some.package.job:Job.main") == (0, "here\n", "")


def test_a_class_of_a_file_has_the_file_for_its_module(program: Write) -> None:
    """Its objects can then be unpickled in every process."""
    directory = program(
        "class Record: pass\ndef main(worker): print(Record, Record.__module__ in sys.modules)"
    )
    assert run(directory.parent, f"{directory}/program.py:main") == (0, "<class 'program.Record'> True\n", "")


def test_an_exception_of_the_function_is_shown(program: Write) -> None:
    code, out, err = run(program("def main(worker): raise SystemExit(7)"), "program:main")
    assert (code, out, err) == (7, "", "")
    code, out, err = run(program("def main(worker): 1 / 0"), "program:main")
    assert code == 1
    assert "ZeroDivisionError" in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["program:mian"], "program has no function 'mian'; did you mean 'main'?"),
        (["program.py:x"], "program.py has no function 'x'"),
        (["progam:main"], "there is no module 'progam': it is not on Python's path"),
        (["email.progam:main"], "there is no module 'email.progam': the package 'email' has no such module"),
        (["program.part:main"], "there is no module 'program.part': 'program' is not a package"),
        (["progam.py:main"], "there is no file 'progam.py'"),
        (["wrong.py:main"], "SyntaxError"),
        (["json.py:main"], "json.py has the name of the module 'json', which others import: rename it"),
        (["program"], "'program' names no function: write \"program:main\""),
        (["program:"], "'program:' names no function: write \"program:main\""),
        ([":main"], "'' is neither a module nor a file"),
        ([], "say what to run: module:main, or path/to/file.py:main"),
        (["-n", "0", "program:main"], "processes must be at least 1, and is 0"),
        (["-n", "2", "-p", "2", "program:main"], "number them from 0 to 1"),
        (["-n", "2", "-p", "1", "--label", "program:main"], "--label marks the lines of processes"),
        (["--hostfile", "missing", "program:main"], "the host file cannot be read"),
        (["--hostfile", "hosts", "program:main"], "say with -p which of the 2 processes this is"),
    ],
)
def test_what_cannot_be_run_is_said_before_anything_is_started(
    program: Write, arguments: list[str], says: str
) -> None:
    directory = program("turn()")
    (directory / "wrong.py").write_text("def main(:")
    (directory / "json.py").write_text("def main(worker): pass")
    (directory / "hosts").write_text("localhost:2101\nlocalhost:2102\n")
    code, out, err = run(directory, *(arguments if "-n" in arguments else ["-w", "1", *arguments]))
    assert (code, out) == (2, "")
    assert says in err
    assert "Traceback" not in err
    assert not (directory / "turn-0").exists()


@pytest.mark.parametrize("processes", ["1", "2"])
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("def made(): touch()", "too many positional arguments"),
        ("def made(worker, other): touch()", "missing a required argument: 'other'"),
        ("class made: pass", "too many positional arguments"),
    ],
)
def test_a_function_that_takes_no_worker_is_said(program: Write, text: str, why: str, processes: str) -> None:
    directory = program("def touch(): raise SystemExit('called')\n" + text)
    code, out, err = run(directory, "-n", processes, "program:made")
    assert (code, out) == (2, "")
    assert f"program:made cannot be run, which is to call it with a worker alone: {why}. A program has" in err
    assert "Traceback" not in err


def test_a_module_that_another_puts_there_is_found(program: Write) -> None:
    _, _, err = run(program("turn()"), "os.path:join")
    assert "there is no module" not in err
    assert "not Worker" in err


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("from os.path import *", "join"),
        ("globals()['made'] = main", "made"),
        ("def define():\n    global made\n    made = main\ndefine()", "made"),
        ("def __getattr__(name):\n    return main", "made"),
        ("for made in [main]: pass", "made"),
        ("import os as made", "made"),
    ],
)
def test_a_name_that_may_be_there_is_not_refused_unseen(program: Write, text: str, name: str) -> None:
    _, _, err = run(program("touched = turn()\n" + text), f"program:{name}")
    assert "has no function" not in err


def test_a_name_that_turns_out_not_to_be_there_is_a_sentence(program: Write) -> None:
    for arguments in (["program:made"], ["-n", "2", "program:made"]):
        code, out, err = run(program("globals()"), *arguments)
        assert (code, out) == (2, "")
        assert "program has no function 'made'" in err
        assert "Traceback" not in err
    code, _, err = run(program("number = 5"), "program:number")
    assert code == 2
    assert "program:number is of type int, not a function" in err


def test_every_option_of_a_configuration_is_told_from_what_is_run() -> None:
    assert {"-w", "--workers", "-n", "--processes", "-p", "--hostfile"} <= TAKES_A_VALUE
    argv = ["run", "-w", "2", "--processes=3", "-p1", "--hostfile", "hosts", "--label", "a:b", "-w", "c:d"]
    assert split(argv) == (argv[:8], "a:b", ["-w", "c:d"])
    options = parsers()[0].parse_args(argv[:8])
    assert (options.workers, options.processes, options.process, options.label) == (2, 3, 1, True)


# ---------------------------------------------------------------- output


def test_output_is_joined_in_whole_lines_and_marked(program: Write) -> None:
    directory = program("""
        number = turn()
        for line in range(500):
            sys.stdout.write(f"{number}-{line} ")
            sys.stdout.write("x" * 3000 + "\\n")
        sys.stderr.write("a last line")
        raise SystemExit(0)
    """)
    code, out, err = run(directory, "-n", "3", "--label", "program:main")
    assert code == 0, err
    lines = [re.fullmatch(r"\[([012])\] (\d)-(\d+) x{3000}", line) for line in out.splitlines()]
    assert len(lines) == 1500
    by_process: dict[str, list[tuple[str, int]]] = {}
    for line in lines:
        assert line is not None
        by_process.setdefault(line[1], []).append((line[2], int(line[3])))
    assert sorted(by_process) == ["0", "1", "2"]
    for found in by_process.values():
        assert found == [(found[0][0], line) for line in range(500)]
    assert sorted(err.splitlines()) == [f"[{number}] a last line" for number in range(3)]


def test_output_is_not_marked_unless_asked(program: Write) -> None:
    assert run(program("print('here')\nraise SystemExit(0)"), "-n", "2", "program:main") == (
        0,
        "here\nhere\n",
        "",
    )


def test_lines_come_out_as_they_are_printed(program: Write) -> None:
    directory = program("print('early')\nwait_for('go')\nraise SystemExit(0)")
    with start(directory, "-n", "2", "program:main") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "early\n"
        (directory / "go").touch()
        assert process.stdout.read() == "early\n"  # `communicate` would not see what is buffered


def test_what_is_left_running_with_the_output_open_holds_nothing_up(program: Write) -> None:
    directory = program("""
        forever = "while True: print('x' * 10_000, flush=True)"
        left = subprocess.Popen([sys.executable, "-c", forever], start_new_session=True)
        (here / f"left-{left.pid}").touch()
        os._exit(0)
    """)
    try:
        assert run(directory, "-n", "2", "program:main")[0] == 0
    finally:
        left = list(directory.glob("left-*"))
        for path in left:
            os.kill(int(path.name[5:]), signal.SIGKILL)
    assert len(left) == 2


def test_the_processes_end_with_the_reader_of_their_output(program: Write) -> None:
    directory = program("turn()\nwhile True:\n    print('on and on')")
    with start(directory, "-n", "2", "program:main") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(SECONDS) == -signal.SIGPIPE


# ---------------------------------------------------------------- ends


def test_the_first_failures_exit_code_is_returned(program: Write) -> None:
    directory = program("""
        number = turn()
        if number == 1:
            raise SystemExit(3)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        wait_for("never")
    """)
    code, out, err = run(directory, "-n", "3", "program:main")
    assert (code, out) == (3, "")
    sentence = (
        r"pointstamp: process [012] still ran 5 seconds after process [012] had failed, and is killed\n"
    )
    assert re.fullmatch(f"({sentence}){{2}}", err)


def test_a_process_that_is_killed_is_named(program: Write) -> None:
    directory = program("if turn() == 1: os.kill(os.getpid(), signal.SIGKILL)\nraise SystemExit(0)")
    code, _, err = run(directory, "-n", "2", "program:main")
    assert code == 128 + signal.SIGKILL
    assert re.fullmatch(r"pointstamp: process [01] was killed by SIGKILL\n", err)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.usefixtures("hangups")
def test_a_signal_is_passed_on(program: Write, number: signal.Signals) -> None:
    directory = program(f"""
        def caught(*_):
            print("caught")
            raise SystemExit(0)
        signal.signal({int(number)}, caught)
        turn()
        wait_for("never")
    """)
    with start(directory, "-n", "2", "program:main") as process:
        until(lambda: len(list(directory.glob("pid-*"))) == 2)
        process.send_signal(number)
        out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, out, err) == (0, "caught\n" * 2, "")


def test_a_request_is_passed_on_to_one_and_ends_none(program: Write) -> None:
    """A signal ends neither the program while it is loaded, nor the processes that it has started."""
    directory = program("""
        os.kill(os.getpid(), signal.SIGUSR1)
        helper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])

        def main(worker):
            with worker.dataflow() as scope:
                numbers, stream = scope.new_input()
                stream.probe()
            turn()
            while not (here / "go").exists():
                worker.step_or_park(0.02)
            numbers.close()
            if helper.poll() is None:
                helper.kill()
                sys.stdout.write("alive\\n")
    """)
    with start(directory, "-n", "2", "program:main") as process:
        until(lambda: len(list(directory.glob("pid-*"))) == 2)
        process.send_signal(signal.SIGUSR1)
        assert process.stderr is not None
        said = process.stderr.readline() + process.stderr.readline()
        (directory / "go").touch()
        out, err = process.communicate(timeout=SECONDS)
    assert "The input 'input'" in said
    assert (process.returncode, out) == (0, "alive\n" * 2), err
    assert "The input 'input'" not in err.partition("It is the same on")[2]


def test_a_signal_that_ends_the_processes_ends_the_launcher(program: Write) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        directory = program("turn()\nwait_for('never')")
        for path in directory.glob("pid-*"):
            path.unlink()
        with start(directory, "-n", "2", "program:main") as process:
            until(lambda: len(list(directory.glob("pid-*"))) == 2)
            process.send_signal(number)
            process.communicate(timeout=SECONDS)
        assert process.returncode == -number


def test_a_signal_that_was_ignored_stays_ignored(program: Write) -> None:
    """Starts the launcher with the signal ignored, as `nohup` does."""
    directory = program("turn()\nwait_for('go')\nraise SystemExit(0)")
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with start(directory, "-n", "2", "program:main") as process:
            until(lambda: len(list(directory.glob("pid-*"))) == 2)
            process.send_signal(signal.SIGHUP)
            (directory / "go").touch()
            process.communicate(timeout=SECONDS)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert process.returncode == 0


@pytest.mark.parametrize("stubborn", [False, True])
def test_no_orphan_is_left_when_the_launcher_is_killed(program: Write, stubborn: bool) -> None:
    directory = program(f"""
        if {stubborn}:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        helper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        (here / f"pid-{{helper.pid}}").touch()
        turn()
        wait_for("never")
    """)
    with start(directory, "-n", "2", "program:main") as process:
        until(lambda: len(list(directory.glob("pid-*"))) == 4)
        pids = [int(path.name[4:]) for path in directory.glob("pid-*")]
        assert all(map(alive, pids))
        process.kill()
        until(lambda: not any(map(alive, pids)))


def test_processes_do_not_see_what_was_handed_down(program: Write) -> None:
    directory = program("""
        print([name for name in os.environ if name.startswith("POINTSTAMP")])
        raise SystemExit(0)
    """)
    assert run(directory, "-n", "2", "program:main") == (0, "[]\n" * 2, "")


def test_the_first_process_has_the_standard_input(program: Write) -> None:
    directory = program("""
        print("nothing" if os.path.samestat(os.fstat(0), os.stat(os.devnull)) else sys.stdin.read())
        raise SystemExit(0)
    """)
    with start(directory, "-n", "3", "--label", "program:main") as process:
        out, err = process.communicate("a line", timeout=SECONDS)
    assert sorted(out.splitlines()) == ["[0] a line", "[1] nothing", "[2] nothing"]
    assert (process.returncode, err) == (0, "")
