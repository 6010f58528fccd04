"""Workers share the tests by file; a killed worker is replaced, and its last test is not run again."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import sharing

CONFTEST = """
import pytest, sharing

sharing.FIRST = (sharing.TOGETHER, "test_long.py")

def pytest_xdist_make_scheduler(config, log):
    return sharing.Groups(config, log)

def pytest_collection_modifyitems(config, items):
    if hasattr(config, "workerinput"):
        sharing.sort(items)

def pytest_runtest_setup(item):
    with (item.config.rootpath / "begun").open("a") as file:
        print(item.config.workerinput["workerid"], item.nodeid, file=file)
"""

FILE = """
import os, pytest

@pytest.mark.parametrize("n", range({tests}))
def test_one(n):
    if n == {dies}:
        os._exit(3)
"""

FILES = {
    "test_a.py": 3,
    "test_b.py": 9,  # many, and none takes long
    "test_long.py": 3,
    "tests/spark/test_c.py": 3,
    "tests/spark/test_d.py": 3,
}
"""The number of tests of each file."""


def begun(folder: Path, dies: dict[str, int]) -> tuple[int, list[tuple[str, str]]]:
    """Returns the exit status, and the workers and names of tests in the order in which they began."""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")
    (folder / "tests" / "spark").mkdir(parents=True)
    for name, tests in FILES.items():
        (folder / name).write_text(FILE.format(dies=dies.get(name), tests=tests))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "xdist.plugin", "-n", "2"],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": sharing.__file__[: -len("sharing.py")],
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
    )
    lines = (folder / "begun").read_text().splitlines()
    return done.returncode, [(worker, name) for worker, _, name in (line.partition(" ") for line in lines)]


def test_a_group_is_run_by_one_worker_and_long_ones_begin_first(tmp_path: Path) -> None:
    status, tests = begun(tmp_path, {})
    assert status == 0
    assert len(tests) == sum(FILES.values())
    runners: dict[str, set[str]] = {}
    for worker, name in tests:
        runners.setdefault(sharing.group_of(name), set()).add(worker)
    assert all(len(workers) == 1 for workers in runners.values()), tests
    assert runners.keys() == {"test_a.py", "test_b.py", "test_long.py", "tests/spark/"}
    firsts = {
        sharing.group_of(next(name for worker, name in tests if worker == one)) for one in ("gw0", "gw1")
    }
    assert firsts == {"tests/spark/", "test_long.py"}


def test_the_long_groups_are_there() -> None:
    assert all((Path(__file__).parents[2] / group).exists() for group in sharing.FIRST)


@pytest.mark.parametrize("name", FILES)
def test_a_worker_that_dies_is_replaced_and_its_other_tests_are_run(tmp_path: Path, name: str) -> None:
    status, tests = begun(tmp_path, {name: 1})
    assert status == 1
    assert sorted(one for _, one in tests) == sorted(
        f"{file}::test_one[{n}]" for file in FILES for n in range(FILES[file])
    )
