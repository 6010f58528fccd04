"""What travels to the executors by value: a function that finds the package there, or says how to install it.

Everything else of the package is pickled by reference, so unpickling it where the package is not installed
would end in an ImportError from the depths of cloudpickle. This module imports nothing of the package.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

__all__ = ["ship"]


def ship(entry: str, *arguments: Any) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A function for `mapInArrow` that calls ``pointstamp.spark.entries.<entry>(*arguments, batches)``.

    Args:
        entry: The name of a function of `pointstamp.spark.entries`.
        arguments: What it is called with, before the batches. They are pickled here, so that they are
            unpickled only where the package is known to be installed.
    """
    from pyspark import cloudpickle

    from pointstamp import __version__
    from pointstamp.spark.failures import key

    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    pickled = cloudpickle.dumps((key(), arguments))  # type: ignore[no-untyped-call]
    return shipped(entry, pickled, __version__)


def shipped(entry: str, pickled: bytes, version: str) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The function itself, with all that it needs in its closure."""

    def call(batches: Iterator[Any]) -> Iterator[Any]:
        import socket
        import sys

        advice = (
            f"install the driver's version on every node that runs executors: "
            f'{sys.executable} -m pip install "pointstamp[spark]=={version}"'
        )
        where = f"for the executor's Python on {socket.gethostname()} ({sys.executable})"
        try:
            import pointstamp
            from pointstamp.spark import entries
        except ImportError as error:
            raise ImportError(f"pointstamp cannot be imported {where}: {error}; {advice}") from error
        if pointstamp.__version__ != version:
            raise ImportError(
                f"pointstamp is {version} in the driver and {pointstamp.__version__} {where}; {advice}"
            )
        yield from getattr(entries, entry)(pickled, batches)

    return call
