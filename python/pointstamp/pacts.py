"""Parallelization contracts: how an operator's input moves records between workers.

The idea and the name are timely dataflow's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

__all__ = ["Broadcast", "Exchange", "Pact", "Pipeline"]


class Pact:
    """How records reach the workers. Use `Pipeline`, `Exchange` or `Broadcast`."""

    __slots__ = ()

    _kind: str
    _key: Callable[[Any], Hashable] | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Pipeline(Pact):
    """Records stay on their worker."""

    __slots__ = ()
    _kind = "pipeline"


class Exchange(Pact):
    """Each record goes to the worker that its key chooses.

    An `int` key goes to worker ``key % peers`` (its value modulo 2**64); any other key to
    ``stable_hash(key) % peers``, which is the same worker in every process and every run.

    Args:
        key: Called with each record, on the sending worker, also where there is only one.

    Raises:
        TypeError: If the key is not callable.
    """

    __slots__ = ("_key",)
    _kind = "exchange"

    def __init__(self, key: Callable[[Any], Hashable]) -> None:
        if not callable(key):
            raise TypeError(f"the key of an exchange is a function of a record, not {key!r}")
        self._key = key

    def __repr__(self) -> str:
        return f"Exchange({self._key!r})"


class Broadcast(Pact):
    """Each record goes to every worker."""

    __slots__ = ()
    _kind = "broadcast"


class ByKey(Pact):
    """An exchange of ``(key, value)`` records by their keys, for the library's own operators."""

    __slots__ = ()
    _kind = "exchange first"
