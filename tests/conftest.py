"""Settings for every test, and what must hold after each."""

import gc
import signal
import threading
from collections.abc import Iterator

import hypothesis
import pytest

import sharing
from effort import examples


def pytest_configure(config: pytest.Config) -> None:
    """Settings for property tests, before the tests are imported.

    Without a seed, a test's examples follow from its text: they are the same in every run, and a change
    elsewhere does not fail by one that is drawn once in a thousand runs. `make check-deep` looks further,
    with a seed. A time limit per test is pytest-timeout's business; one per example only makes slow
    machines fail.
    """
    given = config.getoption("hypothesis_seed") is not None
    hypothesis.settings.register_profile(
        "pointstamp", deadline=None, max_examples=examples(100), derandomize=not given
    )
    hypothesis.settings.load_profile("pointstamp")


def pytest_xdist_auto_num_workers() -> int:
    """Returns the number of workers of `pytest -n auto`."""
    return sharing.workers()


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> sharing.Groups:
    """Returns the scheduler of `pytest -n`."""
    return sharing.Groups(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Checks the limits of tests, and sorts them where several workers share them.

    No test may take longer than the limit at which the whole run ends, which names no test.
    """
    if hasattr(config, "workerinput"):
        sharing.sort(items)
    longest = float(config.getini("faulthandler_timeout"))
    for item in items:
        mark = item.get_closest_marker("timeout")
        if mark is not None and mark.args[0] >= longest > 0:
            raise pytest.UsageError(f"{item.nodeid}: its limit is over faulthandler_timeout, {longest:g}")


# A shell that starts something in the background has it ignore Ctrl-C, and Python leaves it so. Tests
# strike it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_setup() -> None:
    """Takes Hypothesis's function off the collector of garbage, which has it measure collections.

    An interruption that comes to a worker inside of it is lost there until the next attempt, and pytest fails
    the test for an exception that nobody could raise.
    """
    gc.callbacks[:] = [call for call in gc.callbacks if not call.__module__.startswith("hypothesis.")]


@pytest.fixture
def soon_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends the wait of a simulation early, where nothing but its workers can move."""
    monkeypatch.setattr("pointstamp.testing._STILL", 0.1)


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """A run leaves no thread behind, however it ended."""
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) - before == set()
