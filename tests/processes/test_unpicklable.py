"""The variable that keeps a function from another process is named, wherever the function has it."""

import functools
import pickle
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import pointstamp as ps
from pointstamp._unpicklable import unpicklable

LOCK = threading.Lock()


def closed_over() -> Callable[..., Any]:
    lock = threading.Lock()
    return lambda worker: lock


def nested() -> Callable[..., Any]:
    inner = closed_over()
    return lambda worker: inner(worker)


def attribute() -> Callable[..., Any]:
    state = SimpleNamespace(locks=[1, threading.Lock()])
    return lambda worker: state


def default(worker: Any = None, lock: Any = LOCK) -> Any:
    return lock


class Holder:
    def __init__(self) -> None:
        self.lock = threading.Lock()

    def run(self, worker: Any) -> Any:
        return self.lock


CASES: list[tuple[Any, str]] = [
    (closed_over(), "variable 'lock' of closed_over.<locals>.<lambda>, a _thread.lock"),
    (nested(), "variable 'lock' of closed_over.<locals>.<lambda>, a _thread.lock"),
    (lambda worker: LOCK, "global variable 'LOCK' of <lambda>, a _thread.lock"),
    (
        attribute(),
        "item 1 of attribute 'locks' of variable 'state' of attribute.<locals>.<lambda>, a _thread.lock",
    ),
    (default, "a default of default, a _thread.lock"),
    (Holder().run, "attribute 'lock' of the object of method run, a _thread.lock"),
    (functools.partial(print, threading.Lock()), "an argument of a partial, a _thread.lock"),
]


@pytest.mark.parametrize(
    ("function", "described"), CASES, ids=lambda case: case if isinstance(case, str) else ""
)
def test_the_variable_is_named(function: Any, described: str) -> None:
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    cloudpickle.register_pickle_by_value(__import__(__name__))
    try:
        assert unpicklable(function, cloudpickle.dumps) == described
    finally:
        cloudpickle.unregister_pickle_by_value(__import__(__name__))


def test_nothing_is_said_of_what_can_be_pickled() -> None:
    assert unpicklable(print, pickle.dumps) == ""


def test_execute_names_it() -> None:
    pytest.importorskip("cloudpickle")
    with pytest.raises(ps.ConfigError, match=r"because of variable 'lock' of closed_over"):
        ps.execute(closed_over(), processes=2)
