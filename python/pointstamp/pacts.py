"""Parallelization contracts: how an operator's input moves records between workers.

The idea and the name are timely dataflow's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pointstamp._core import PactKind
from pointstamp._validation import refuse_async

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from pointstamp.plan.node import Output

__all__ = ["Broadcast", "Exchange", "Pact", "Pipeline", "pact_of"]


class Pact:
    """The way of records to the workers. Use `Pipeline`, `Exchange` or `Broadcast`."""

    __slots__ = ()

    kind: ClassVar[PactKind]

    def route(self, output: Output) -> tuple[PactKind, Any]:
        """Returns the extension's kind of moving this output's records, and the key where it has one."""
        return self.kind, None

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Pipeline(Pact):
    """Records stay on their worker."""

    __slots__ = ()
    kind = PactKind.PIPELINE


class Exchange(Pact):
    """Each record goes to the worker that its key chooses.

    An `int` key goes to worker ``key % peers`` (its value modulo 2**64); any other key to
    ``stable_hash(key) % peers``, which is the same worker in every process and every run.

    Args:
        key: Called with each record, on the sending worker, also where there is only one. On an
            `ArrowStream`, the name of the key's column, or a sequence of names; the key is then hashed
            without the GIL.

    Raises:
        TypeError: If the key is neither callable nor names.
    """

    __slots__ = ("_columns", "_key")
    kind = PactKind.EXCHANGE

    def __init__(self, key: Callable[[Any], Hashable] | str | Sequence[str]) -> None:
        self._key: Callable[[Any], Hashable] | None = None
        self._columns: list[str] | None = None
        if callable(key):
            refuse_async("Exchange", key)
            self._key = key
            return
        try:
            columns = [key] if isinstance(key, str) else list(key)
        except TypeError:
            columns = []
        if not columns or not all(isinstance(name, str) for name in columns):
            raise TypeError(
                f"the key of an exchange is a function of a record, or the names of columns, not {key!r}"
            )
        self._columns = columns

    def route(self, output: Output) -> tuple[PactKind, Any]:
        """By the function, or by the columns that the names stand for in the stream's schema.

        Rows that are on the key's worker already stay there.
        """
        schema = output.schema
        if schema is None:
            if self._columns is not None:
                raise TypeError(
                    f"{self!r} names columns, and the stream carries records: exchange records by a function"
                )
            return self.kind, self._key
        if self._columns is None:
            raise TypeError(
                f"{self!r} has a function of a record, and the stream carries columns: exchange them by names"
            )
        key = schema.key(self._columns)
        if output.placed == key:
            return PactKind.PIPELINE, None  # the rows are there already
        return PactKind.EXCHANGE_COLUMNS, key

    def __repr__(self) -> str:
        return f"Exchange({self._key if self._columns is None else self._columns!r})"


class Broadcast(Pact):
    """Each record goes to every worker."""

    __slots__ = ()
    kind = PactKind.BROADCAST


class ByKey(Pact):
    """An exchange of ``(key, value)`` records by their keys, for the library's own operators."""

    __slots__ = ()
    kind = PactKind.EXCHANGE_FIRST


class Gather(Pact):
    """Everything goes to the first worker, records and columns alike, for the library's own operators."""

    __slots__ = ()
    kind = PactKind.GATHER


def pact_of(pact: Any, output: Output, operator: str) -> tuple[PactKind, Any]:
    """A pact's kind and key for an operator's input that reads an output.

    Raises:
        TypeError: If it is no pact; where it is the class of one, it says to make one.
    """
    if isinstance(pact, Pact):
        return pact.route(output)
    if isinstance(pact, type) and issubclass(pact, Pact):
        call = "Exchange(key)" if issubclass(pact, Exchange) else f"{pact.__name__}()"
        raise TypeError(
            f"operator '{operator}' was given the class {pact.__name__} as its pact: write ps.{call}"
        )
    hint = ": ps.Exchange(key) moves records by a function" if callable(pact) else ""
    raise TypeError(
        f"operator '{operator}' needs a pact, such as ps.Pipeline() or ps.Exchange(key), not {pact!r}{hint}"
    )
