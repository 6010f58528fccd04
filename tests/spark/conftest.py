"""One Spark session at a time, shared by the tests that want the same kind."""

import os
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

import py4j_connection
from pointstamp.spark.monitoring import monitor_server

# The executors' Python is the one that runs the tests, with this package in it.
os.environ["PYSPARK_PYTHON"] = sys.executable

LOCAL = "local[2]"
WIDE = "local[6]"
EXECUTORS = "local-cluster[2,1,1024]"

_SETTINGS = {
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "Europe/Berlin",
    "spark.scheduler.barrier.maxConcurrentTasksCheck.interval": "1s",
    "spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures": "3",
}

# All for each: what the first session of a process has is what later ones have by default. The second limits
# the address space of Python, and so what may be reserved of it. The pages are read by a test.
_MORE = {
    LOCAL: {
        "spark.task.cpus": "1",
        "spark.executor.pyspark.memory": "8g",
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
    },
    WIDE: {
        "spark.task.cpus": "2",
        "spark.executor.pyspark.memory": "8g",
        "spark.ui.enabled": "false",
    },
    EXECUTORS: {
        "spark.task.cpus": "1",
        "spark.executor.pyspark.memory": "1g",
        "spark.ui.enabled": "false",
    },
}


class Sessions:
    """Starts the requested session, and stops the one before: a process has one at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._master: str | None = None
        self._session: Any = None

    def get(self, master: str) -> Any:
        from pyspark.sql import SparkSession

        if master != self._master:
            self.stop()
            builder = SparkSession.builder.master(master).appName("pointstamp tests")
            for name, value in {**_SETTINGS, **_MORE[master]}.items():
                builder = builder.config(name, value)
            builder = builder.config("spark.local.dir", str(self._folder))
            if "PYTHONPATH" in os.environ:
                builder = builder.config("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"])
            self._session = builder.getOrCreate()
            self._session.sparkContext.setLogLevel("OFF")
            self._master = master
        return self._session

    def stop(self) -> None:
        if self._session is not None:
            self._session.stop()
            self._session = self._master = None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Renews the connection to Java after a test that its limit has ended, for the others of the session."""
    report = yield
    if call.excinfo is not None and isinstance(call.excinfo.value, pytest.fail.Exception):
        py4j_connection.renew()
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sorts the tests of this directory by the session that they want, so that each is started once."""
    here = [n for n, item in enumerate(items) if item.path.parent == Path(__file__).parent]
    kinds = ["spark", "wide", "executors"]

    def kind(item: pytest.Item) -> int:
        names = getattr(item, "fixturenames", ())
        return max((n for n, name in enumerate(kinds) if name in names), default=0)

    for n, item in zip(here, sorted([items[n] for n in here], key=kind), strict=True):
        items[n] = item


@pytest.fixture(scope="session")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sessions]:
    made = Sessions(tmp_path_factory.mktemp("spark"))
    yield made
    made.stop()


@pytest.fixture
def spark(sessions: Sessions) -> Any:
    """Spark in this process, with two slots."""
    return sessions.get(LOCAL)


@pytest.fixture
def wide(sessions: Sessions) -> Any:
    """Spark in this process, with three slots of two cores each."""
    return sessions.get(WIDE)


@pytest.fixture
def executors(sessions: Sessions) -> Any:
    """Spark with two executors of one slot each, in processes of their own."""
    return sessions.get(EXECUTORS)


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """A run leaves no thread of ours behind; Spark has its own.

    Except the thread that receives reports of dataflows, until Spark is stopped; and the one that
    looks for a stage to be named ends soon after the job.
    """
    yield
    monitor_server.close()
    for thread in threading.enumerate():
        if thread.name == "pointstamp-names":
            thread.join(20)
    assert [thread for thread in threading.enumerate() if thread.name.startswith("pointstamp")] == []


@pytest.fixture(autouse=True)
def functions_travel(request: pytest.FixtureRequest) -> None:
    """A test module's functions are pickled by value: executors cannot import it."""
    from pyspark import cloudpickle

    import micro_batches

    cloudpickle.register_pickle_by_value(micro_batches)  # type: ignore[no-untyped-call]
    cloudpickle.register_pickle_by_value(request.module)  # type: ignore[no-untyped-call]


Same = Callable[[Any, Any], None]


@pytest.fixture
def same() -> Same:
    """Compares two DataFrames as bags of rows."""

    def check(got: Any, expected: Any) -> None:
        assert sorted(map(repr, got.collect())) == sorted(map(repr, expected.collect()))

    return check
