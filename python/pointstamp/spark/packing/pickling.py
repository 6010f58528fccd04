"""Pickling of functions by value for the executors, where the package may be missing.

Other objects of the package are pickled by reference; unpickling them where the package is not installed
would end in an ImportError inside cloudpickle. This module imports nothing of the package when it is loaded.
A pickled function is checked as soon as it is unpickled, before PySpark's worker needs PyArrow: only there is
it known which interpreter lacks a package.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

__all__ = ["Shipped", "arrived", "ship"]


def ship(
    name: str, function: Callable[..., Iterator[Any]], *arguments: Any
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A function for `mapInArrow` that calls ``function(*arguments, batches)`` in a task.

    Errors there reach the driver as the original exceptions.

    Args:
        name: The name in plans and Spark's pages.
        function: A function of this package.
        arguments: The arguments before the batches. They are pickled here, so that they are unpickled only
            where the package is known to be installed.
    """
    from pyspark import cloudpickle

    from pointstamp import __version__
    from pointstamp.spark.packing.exceptions import key

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
    pickled = cloudpickle.dumps((key(), arguments))  # type: ignore[no-untyped-call]
    shipped = Shipped(function.__module__, function.__name__, pickled, __version__, sys.executable)

    def call(batches: Iterator[Any]) -> Iterator[Any]:
        return shipped.call(batches)

    call.__name__ = call.__qualname__ = name
    return call


class Shipped:
    """A function of the package by its name, and its arguments.

    Args:
        module: The module that has it.
        name: Its name there.
        pickled: The driver's key and the arguments.
        version: The driver's version of the package.
        driver: The driver's interpreter.
    """

    def __init__(self, module: str, name: str, pickled: bytes, version: str, driver: str) -> None:
        self.module = module
        self.name = name
        self.pickled = pickled
        self.version = version
        self.driver = driver

    def __reduce__(self) -> Any:
        return arrived, (self.module, self.name, self.pickled, self.version, self.driver)

    def call(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Called by Spark."""
        from importlib import import_module

        from pyspark import cloudpickle

        from pointstamp.spark.packing.exceptions import adopt, raising_in_text

        key, arguments = cloudpickle.loads(self.pickled)
        adopt(key)
        with raising_in_text():
            yield from getattr(import_module(self.module), self.name)(*arguments, batches)


def arrived(module: str, name: str, pickled: bytes, version: str, driver: str) -> Shipped:
    """The function, in a task's interpreter, which has all that it takes.

    Raises:
        ImportError: If it has not; the message names the interpreter, the missing package and the setting.
    """
    import socket
    import sys
    from importlib import import_module

    reason = ""
    for needed in ("pyarrow", "pointstamp"):
        try:
            found = import_module(needed)
        except ModuleNotFoundError as error:
            reason = f"lacks {error.name or needed}"
        except ImportError as error:
            reason = f"cannot import {needed} ({error})"
        else:
            if needed != "pointstamp" or found.__version__ == version:
                continue
            reason = f"has pointstamp {found.__version__}, where the driver has {version}"
        advice = (
            f"install the driver's version, {version}, there: {sys.executable} -m pip install '.[spark]', in "
            "a clone of pointstamp's repository"
        )
        if sys.executable != driver:
            advice = (
                f"the driver runs {driver}: where the executors have that too, set PYSPARK_PYTHON={driver} "
                f"(or spark.pyspark.python) before the session is made; else {advice}"
            )
        raise ImportError(
            f"Spark's executor on {socket.gethostname()} runs {sys.executable}, which {reason}; {advice}"
        )
    return Shipped(module, name, pickled, version, driver)
