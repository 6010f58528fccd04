"""Parallelization contracts: the ways in which an operator's input moves records between workers.

The idea and the name are timely dataflow's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pointstamp._core import PactKind
from pointstamp._validation import refuse_async

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from pointstamp.plan.node import Output

__all__ = ["Broadcast", "ByKey", "Exchange", "Pact", "Pipeline", "pact_of"]


class Pact:
    """The way of records to the workers. Use `Pipeline`, `Exchange`, `ByKey` or `Broadcast`.

    Examples:
        >>> import pointstamp as ps
        >>> isinstance(ps.Pipeline(), ps.Pact), isinstance(ps.Exchange(len), ps.Pact)
        (True, True)
    """

    __slots__ = ()

    _kind: ClassVar[PactKind]

    def _route(self, output: Output) -> tuple[PactKind, Any]:
        """Returns the extension's kind of moving this output's records, and the key where it has one."""
        return self._kind, None

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _names(of: str, key: Any) -> list[str]:
    """Returns the names of the columns of a key.

    Raises:
        TypeError: If it has none.
    """
    try:
        columns = [key] if isinstance(key, str) else list(key)
    except TypeError:
        columns = []
    if not columns or not all(isinstance(name, str) for name in columns):
        raise TypeError(f"the key of {of} is a function of a record, or the names of columns, not {key!r}")
    return columns


class Pipeline(Pact):
    """Records stay on their worker.

    Examples:
        >>> import pointstamp as ps
        >>> def show(info):
        ...     return lambda input: [print(records) for cap, records in input]
        >>> ps.example(lambda scope: scope.to_stream([1, 2]).sink(ps.Pipeline(), "show", show))
        [1, 2]
    """

    __slots__ = ()
    _kind = PactKind.PIPELINE


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

    Examples:
        Each number goes to the worker that it names:

        >>> import pointstamp as ps
        >>> def copy(input, output, notificator):
        ...     for cap, records in input:
        ...         with output.session(cap) as session:
        ...             session.give_all(records)
        >>> def main(worker):
        ...     with worker.dataflow() as scope:
        ...         numbers = scope.to_stream(range(4) if worker.index == 0 else [])
        ...         here = numbers.unary_notify(ps.Exchange(int), "by number", [], copy).capture()
        ...     worker.run()
        ...     return here.extract()
        >>> ps.execute(main, workers=2)
        [[(0, [0, 2])], [(0, [1, 3])]]
    """

    __slots__ = ("_columns", "_key")
    _kind = PactKind.EXCHANGE

    def __init__(self, key: Callable[[Any], Hashable] | str | Sequence[str]) -> None:
        self._key: Callable[[Any], Hashable] | None = None
        self._columns: list[str] | None = None
        if callable(key):
            refuse_async("Exchange", key)
            self._key = key
            return
        self._columns = _names("an exchange", key)

    def _route(self, output: Output) -> tuple[PactKind, Any]:
        """By the function, or by the columns that the names stand for in the stream's schema.

        Rows that are on the key's worker already stay there.
        """
        schema = output.schema
        if schema is None:
            if self._columns is not None:
                raise TypeError(
                    f"{self!r} names columns, and the stream carries records: exchange records by a function"
                )
            return self._kind, self._key
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
    """Each record goes to every worker.

    Examples:
        >>> import pointstamp as ps
        >>> def copy(input, output, notificator):
        ...     for cap, records in input:
        ...         with output.session(cap) as session:
        ...             session.give_all(records)
        >>> def main(worker):
        ...     with worker.dataflow() as scope:
        ...         words = scope.to_stream(["a"] if worker.index == 0 else [])
        ...         here = words.unary_notify(ps.Broadcast(), "to all", [], copy).capture()
        ...     worker.run()
        ...     return here.extract()
        >>> ps.execute(main, workers=2)
        [[(0, ['a'])], [(0, ['a'])]]
    """

    __slots__ = ()
    _kind = PactKind.BROADCAST


class ByKey(Pact):
    """Each record goes to the worker that has the key group of its key.

    There are 4,096 key groups, and each worker has a range of them. State by key behind this pact can be
    divided between any number of workers when a computation resumes from a checkpoint; state behind
    `Exchange` needs as many workers as before.

    Args:
        key: Called with each record, on the sending worker, also where there is only one. Left out, records
            are pairs ``(key, value)``. On an `ArrowStream`, the name of the key's column, or a sequence of
            names; a key of several columns is the tuple of their values.

    Raises:
        TypeError: If the key is neither callable nor names.

    Examples:
        >>> import pointstamp as ps
        >>> ps.ByKey(lambda sale: sale["name"])  # doctest: +ELLIPSIS
        ByKey(<function ...>)
        >>> ps.ByKey("name")  # of columns
        ByKey(['name'])
    """

    __slots__ = ("_columns", "_key")
    _kind = PactKind.EXCHANGE_FIRST

    def __init__(self, key: Callable[[Any], Hashable] | str | Sequence[str] | None = None) -> None:
        self._key: Callable[[Any], Hashable] | None = None
        self._columns: list[str] | None = None
        if callable(key):
            refuse_async("ByKey", key)
            self._key = key
        elif key is not None:
            self._columns = _names("ByKey", key)

    def _route(self, output: Output) -> tuple[PactKind, Any]:
        """By the function, the columns, or the first of the two things in each record."""
        schema = output.schema
        if self._columns is not None:
            if schema is None:
                raise TypeError(
                    f"{self!r} names columns, and the stream carries records: give ByKey a function of a "
                    "record"
                )
            return PactKind.EXCHANGE_COLUMN_GROUPS, schema.key(self._columns)
        if schema is not None:
            what = "pairs" if self._key is None else "a function of a record"
            raise TypeError(
                f"{self!r} is for {what}, and the stream carries columns: name the columns of the key, as in "
                "ps.ByKey('name')"
            )
        if self._key is None:
            return self._kind, None
        return PactKind.EXCHANGE_GROUP, self._key

    def __repr__(self) -> str:
        by = self._columns if self._key is None else self._key
        return "ByKey()" if by is None else f"ByKey({by!r})"


class ByRecord(Pact):
    """Each record goes to the worker that has its own key group, for the library's own operators."""

    __slots__ = ()
    _kind = PactKind.EXCHANGE_GROUP


class Gather(Pact):
    """Everything goes to the first worker, records and columns alike, for the library's own operators."""

    __slots__ = ()
    _kind = PactKind.GATHER


def pact_of(pact: Any, output: Output, operator: str) -> tuple[PactKind, Any]:
    """A pact's kind and key for an operator's input that reads an output.

    Raises:
        TypeError: If it is no pact; where it is the class of one, it says to make one.
    """
    if isinstance(pact, Pact):
        return pact._route(output)
    if isinstance(pact, type) and issubclass(pact, Pact):
        keyed = issubclass(pact, Exchange | ByKey)
        call = f"{pact.__name__}(key)" if keyed else f"{pact.__name__}()"
        raise TypeError(
            f"operator '{operator}' was given the class {pact.__name__} as its pact: write ps.{call}"
        )
    hint = ": ps.Exchange(key) moves records by a function" if callable(pact) else ""
    raise TypeError(
        f"operator '{operator}' needs a pact, such as ps.Pipeline() or ps.Exchange(key), not {pact!r}{hint}"
    )
