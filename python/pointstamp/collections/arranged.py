"""Arrangements: pairs that are kept sorted by key, for any number of joins and reduces, and for reading."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pointstamp import _core
from pointstamp._core import Field, JoinKind, Reduction
from pointstamp._errors import GraphError
from pointstamp._mistakes import count_of, function_of, suggesting
from pointstamp._naming import named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType

    from typing_extensions import Self

    from pointstamp._types import Time
    from pointstamp.collections.collection import Collection
    from pointstamp.scope import Scope

__all__ = ["Arranged", "Trace"]

K = TypeVar("K")
V = TypeVar("V")
V2 = TypeVar("V2")
U = TypeVar("U")


@suggesting
@named
class Arranged(Generic[K, V]):
    """A collection of pairs ``(key, value)``, sorted by key and kept. `Collection.arrange` makes it.

    Every join and reduce on it uses the same index: it is built once, and kept once.

    Attributes:
        scope: The scope that it is in.
    """

    __slots__ = ("_collection", "_trace", "core", "scope")

    def __init__(self, scope: Scope, core: _core.Arrangement, collection: type[Collection[Any]]) -> None:
        self.scope = scope
        self.core = core
        self._collection = collection
        self._trace: Trace[K, V] | None = None

    def __repr__(self) -> str:
        return f"<Arranged in {self.scope!r}>"

    @property
    def trace(self) -> Trace[K, V]:
        """This worker's share of the arrangement, for reading while the dataflow runs.

        Ask for it while the dataflow is being built: one that is taken later, or after the one before was
        closed, begins where the arrangement is then.

        Raises:
            GraphError: If the arrangement has entered this scope: the trace is that of the scope around. If
                it is taken later, and no join, reduce or other trace reads the arrangement: it keeps nothing.
        """
        if self._trace is None or self._trace.core.closed:
            self._trace = Trace(_core.trace_of(self.core), self.scope.address[0])
        return self._trace

    def enter(self, scope: Scope, *, name: str | None = None) -> Arranged[K, V]:
        """The same arrangement in a scope inside its own, for joins and reduces in every turn of a loop.

        It is neither copied nor built again: what changes outside changes it there. (A collection that
        enters a scope does the same with its arrangement.)

        Raises:
            GraphError: If `scope` is not directly inside the arrangement's scope.

        Examples:
            >>> import pointstamp as ps
            >>> from pointstamp.fields import left, right
            >>> def build(scope):
            ...     edges = scope.collection([("a", "b"), ("b", "c")]).arrange()
            ...     def turn(inner, hops):
            ...         further = edges.enter(inner).join(hops, (left, right + 1))
            ...         return further.concat(hops).min()
            ...     return scope.collection([("a", 0)]).iterate(turn).capture()
            >>> ps.example(build).extract()
            [(0, [(('a', 0), 1), (('b', 1), 1), (('c', 2), 1)])]
        """
        core = _core.enter_arrangement(self.core, scope.core)
        return Arranged(scope, core, self._collection)

    def as_collection(self, *, name: str | None = None) -> Collection[tuple[K, V]]:
        """The collection of pairs; each change comes when its time is complete."""
        return self._collection(self.scope, _core.arrangement_updates(self.core))

    def join(
        self,
        other: Collection[tuple[K, V2]] | Arranged[K, V2],
        f: Callable[[K, V, V2], Any] | Field | tuple[Any, ...] | None = None,
        *,
        name: str | None = None,
    ) -> Collection[Any]:
        """Joins as `Collection.join`; the other side is an arrangement, or is arranged."""
        check_scope("join", self.scope, other, (Arranged, self._collection))
        right = other if isinstance(other, Arranged) else other.arrange()
        kind = JoinKind.PAIRS
        if isinstance(f, (Field, tuple)):
            kind = JoinKind.FIELDS
        elif f is not None:
            kind, f = JoinKind.FUNCTION, function_of("join", f)
        return self._collection(self.scope, _core.join_arranged(self.core, right.core, kind, f, "join"))

    def reduce(
        self, f: Callable[[K, list[tuple[V, int]]], Iterable[U]], *, name: str | None = None
    ) -> Collection[tuple[K, U]]:
        """Reduces as `Collection.reduce`, on this arrangement."""
        return self._reduced(Reduction.REDUCE, function_of("reduce", f))

    def min(self, *, name: str | None = None) -> Collection[tuple[K, V]]:
        """The least value of each key: `Collection.min` on this arrangement."""
        return self._reduced(Reduction.MIN)

    def max(self, *, name: str | None = None) -> Collection[tuple[K, V]]:
        """The greatest value of each key: `Collection.max` on this arrangement."""
        return self._reduced(Reduction.MAX)

    def sum(self, *, name: str | None = None) -> Collection[tuple[K, V]]:
        """The sum of each key's values: `Collection.sum` on this arrangement."""
        return self._reduced(Reduction.SUM)

    def mean(self, *, name: str | None = None) -> Collection[tuple[K, float]]:
        """The mean of each key's values: `Collection.mean` on this arrangement."""
        return self._reduced(Reduction.MEAN)

    def top_k(self, n: int, *, name: str | None = None) -> Collection[tuple[K, V]]:
        """The greatest values of each key: `Collection.top_k` on this arrangement."""
        n = count_of("top_k takes a number of values", n)
        return self._reduced(Reduction.TOP_K, n)

    def count_by_key(self, *, name: str | None = None) -> Collection[tuple[K, int]]:
        """The number of records of each key: `Collection.count_by_key` on this arrangement."""
        if self.scope.dims == 1:
            return self._collection(self.scope, None, counted=(self.core, Reduction.COUNT_BY_KEY), name=name)
        return self._reduced(Reduction.COUNT_BY_KEY)

    def _reduced(self, kind: Reduction, argument: Any = None) -> Collection[Any]:
        return self._collection(self.scope, _core.reduce_arranged(self.core, kind, argument, kind.label))


def least_of_any(arranged: Arranged[K, V]) -> Collection[tuple[K, V]]:
    """One value of each key, as `min`; of values whose order is not known it is always the same one."""
    return arranged._reduced(Reduction.MIN, True)


@suggesting
class Trace(Generic[K, V]):
    """This worker's share of an arrangement, which `main` reads while the dataflow runs.

    A trace holds history back from being merged, so that it can be read at every time from `since` on: let go
    of what is not needed with `allow_merging_before`, and of all with `close`.

    Examples:
        >>> import pointstamp as ps
        >>> def main(worker):
        ...     with worker.dataflow() as scope:
        ...         ages, collection = scope.new_collection()
        ...         arranged = collection.arrange()
        ...         trace, probe = arranged.trace, arranged.as_collection().probe()
        ...     ages.insert(("ann", 41))
        ...     ages.advance_to(1)
        ...     ages.update_many([(("ann", 41), -1), (("ann", 42), 1)])
        ...     ages.advance_to(2)
        ...     worker.step_while(lambda: probe.less_than(2))
        ...     return trace.get("ann"), trace.get("ann", at=0), trace.get("bob")
        >>> ps.execute(main)
        [([(42, 1)], [(41, 1)], [])]
    """

    __slots__ = ("core", "dataflow")

    def __init__(self, core: _core.Trace, dataflow: int) -> None:
        self.core = core
        self.dataflow = dataflow  # the number of its dataflow

    def __repr__(self) -> str:
        if self.closed:
            return "<Trace closed>"
        return f"<Trace since {self.since} and before {self.upper}>"

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self.core.closed

    @property
    def since(self) -> list[Time]:
        """Reads are exact at the times that are at or after one of these."""
        return self.core.since

    @property
    def upper(self) -> list[Time]:
        """The trace is complete at the times that are not at or after one of these."""
        return self.core.upper

    def get(self, key: K, *, at: Time | None = None) -> list[tuple[V, int]]:
        """The values of a key, each with how often it is there, in order.

        Only keys that belong to this worker are found: a key is on one of the workers.

        Args:
            key: The key.
            at: The time; None for the latest that is complete.

        Raises:
            TimeError: If the trace is not complete at `at`, or does not reach back to it.
            PointstampError: If the trace is closed.
        """
        return self.core.get(key, at)

    def items(self, *, at: Time | None = None) -> Iterator[tuple[K, V, int]]:
        """Every ``(key, value, count)`` of this worker's share, in the order of keys and values.

        Args:
            at: The time; None for the latest that is complete.

        Raises:
            TimeError: If the trace is not complete at `at`, or does not reach back to it.
            PointstampError: If the trace is closed.
        """
        return iter(self.core.items(at))

    def allow_merging_before(self, time: Time) -> None:
        """Gives up reading at times that are not at or after `time`; what happened before can be merged."""
        self.core.allow_merging_before(time)

    def close(self) -> None:
        """Gives up reading. Closing it twice does nothing."""
        self.core.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def check_scope(operator: str, scope: Scope, other: Any, kinds: Any) -> None:
    """Refuses what an operator in a scope cannot read: other things than collections, or of another scope."""
    if not isinstance(other, kinds):
        raise TypeError(f"{operator} needs a collection, not {other!r}")
    if other.scope.address[:1] != scope.address[:1]:
        raise GraphError(
            f"{operator} needs collections of one dataflow, and the other is of another: arrange it there, "
            "and bring its trace in here with scope.import_trace(arranged.trace)"
        )
    if other.scope is not scope:
        raise GraphError(
            f"{operator} needs collections of one scope: one is of scope '{scope.name}' {scope.address}, the "
            f"other of '{other.scope.name}' {other.scope.address}; bring it in with enter(scope), or "
            "out with leave()"
        )
