"""A test that fails once is run again and named; what fails twice, or in numbers, fails the run."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "once_more.py"

SUPPORT = Path(__file__).parents[1] / "support"

PYTEST = ("pytest", "-p", "xdist.plugin", "-q")

SHARED = """
import sharing

def pytest_xdist_make_scheduler(config, log):
    return sharing.Groups(config, log)
"""

WORKERS = pytest.mark.parametrize("workers", ["0", "2"])
"""The number of workers that share the tests of the first run; 0 is the process of pytest itself."""

SUITE = """
import pathlib, pytest

@pytest.mark.parametrize("number", range({tests}))
def test_of(number):
    runs = pathlib.Path(__file__).parent / f"runs-{{number}}"
    runs.write_text(runs.read_text() + "x" if runs.exists() else "x")
    assert number >= {failing} or len(runs.read_text()) > {times}
"""

OTHERS = """
import os, pathlib

def test_that_passes():
    with pathlib.Path(__file__).with_name("workers").open("a") as file:
        print(os.environ.get("PYTEST_XDIST_WORKER_COUNT"), file=file)
"""

CARGO = """#!/bin/sh
echo "$@" >>calls
echo running tests
case "$*" in
  *--no-fail-fast*)
    echo 'error: test failed, to rerun pass `-p some-crate --test races`' >&2
    echo 'error: doctest failed, to rerun pass `-p other-crate --doc`' >&2
    exit 101;;
  *) exit {again};;
esac
"""


def once_more(folder: Path, *arguments: str, cargo: str = "cargo") -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(SHARED)
    return subprocess.run(
        [sys.executable, TOOL, *arguments],
        cwd=folder,
        env={
            "PATH": "/usr/bin:/bin",
            "CARGO": cargo,
            "PYTHONPATH": str(SUPPORT),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
    )


@WORKERS
@pytest.mark.parametrize(
    ("failing", "times", "status", "runs"),
    [
        pytest.param(0, 0, 0, 1, id="none fails"),
        pytest.param(3, 1, 0, 2, id="a few fail once"),
        pytest.param(1, 2, 1, 2, id="one fails twice"),
        pytest.param(21, 1, 1, 1, id="many fail"),
    ],
)
def test_what_fails_in_pytest(
    tmp_path: Path, failing: int, times: int, status: int, runs: int, workers: str
) -> None:
    (tmp_path / "test_races.py").write_text(SUITE.format(tests=23, failing=failing, times=times))
    (tmp_path / "test_others.py").write_text(OTHERS)
    result = once_more(tmp_path, *PYTEST, "-n", workers, "test_races.py", "test_others.py")
    assert result.returncode == status, result.stdout + result.stderr
    assert len((tmp_path / "runs-0").read_text()) == runs
    assert (tmp_path / "runs-22").read_text() == "x"
    assert (tmp_path / "workers").read_text().split() == ([workers] if workers != "0" else ["None"])
    named = "failed once and passed when run again" in result.stdout
    assert named is (status == 0 and failing > 0)
    if named:
        assert result.stdout.splitlines()[-1].strip() == "test_races.py::test_of[2]"


@WORKERS
def test_a_run_that_has_no_end_is_not_repeated(tmp_path: Path, workers: str) -> None:
    (tmp_path / "test_ends.py").write_text(
        "import os\n\ndef test_fails():\n    assert False\n\ndef test_ends():\n    os._exit(1)\n"
    )
    result = once_more(tmp_path, *PYTEST, "-n", workers, "test_ends.py")
    assert result.returncode == 1
    assert "run once more" not in result.stdout


HANGS = """
import ctypes, pathlib

def count(name):
    runs = pathlib.Path(__file__).parent / name
    runs.write_text(runs.read_text() + "x" if runs.exists() else "x")
    return len(runs.read_text())

def test_before():
    count("before")

def test_fails():
    assert count("fails") > 1

def test_hangs():
    if count("hangs") <= {times}:
        ctypes.PyDLL(None).sleep(100)  # holds the interpreter: no signal is seen

def test_after():
    count("after")

def test_after_fails():
    assert count("after_fails") > 1
"""


@pytest.mark.parametrize(
    ("workers", "times", "status", "after"),
    [("0", 1, 0, "x"), ("0", 2, 1, ""), ("2", 1, 0, "x"), ("2", 2, 1, "x")],
)
def test_a_run_goes_on_after_a_test_that_hangs(
    tmp_path: Path, workers: str, times: int, status: int, after: str
) -> None:
    (tmp_path / "test_hangs.py").write_text(HANGS.format(times=times))
    (tmp_path / "test_others.py").write_text(OTHERS)
    (tmp_path / "after").touch()
    limit = ["-o", "faulthandler_timeout=1", "-o", "faulthandler_exit_on_timeout=true"]
    result = once_more(tmp_path, *PYTEST, "-n", workers, *limit, "test_others.py", "test_hangs.py")
    assert result.returncode == status, result.stdout + result.stderr
    assert (tmp_path / "before").read_text() == "x"
    assert (tmp_path / "hangs").read_text() == "xx"
    assert (tmp_path / "after").read_text() == after
    assert len((tmp_path / "workers").read_text().split()) == 1
    last = "\n".join(result.stdout.splitlines()[-24:])
    assert "hung: test_hangs.py::test_hangs" in last
    assert " in test_hangs" in last
    assert "_pytest" not in last
    if status == 0:
        failed = ["test_fails", "test_hangs", "test_after_fails"]
        assert last.splitlines()[-3:] == [f"  test_hangs.py::{name}" for name in failed]


@pytest.mark.parametrize(("again", "status"), [(0, 0), (101, 101)])
def test_what_fails_in_cargo(tmp_path: Path, again: int, status: int) -> None:
    cargo = tmp_path / "cargo"
    cargo.write_text(CARGO.format(again=again))
    cargo.chmod(0o755)
    result = once_more(tmp_path, "cargo", "--workspace", cargo=str(cargo))
    assert result.returncode == status, result.stdout + result.stderr
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls[:2] == ["test --no-fail-fast --workspace", "test --locked -p some-crate --test races"]
    assert calls[2:] == (["test --locked -p other-crate --doc"] if status == 0 else [])
    assert ("failed once and passed" in result.stdout) is (status == 0)
