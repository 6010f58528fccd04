"""Arrangements: pairs that are kept sorted by key, for any number of joins and reduces, and for reading."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pointstamp import _core
from pointstamp._core import Field, JoinKind, Reduction
from pointstamp._validation import count_of, function_of, suggesting
from pointstamp.api.classes import collection_of
from pointstamp.api.collection_nodes import joined, reduced
from pointstamp.api.collection_outputs import CollectionOutputs
from pointstamp.errors import GraphError, PointstampError
from pointstamp.plan import collections, shape
from pointstamp.plan.node import Form, Output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType

    from typing_extensions import Self

    from pointstamp.api.collection import Collection
    from pointstamp.api.scope import Scope
    from pointstamp.plan.node import Kind
    from pointstamp.plan.plan import PlanScope
    from pointstamp.types import Time

__all__ = ["Arranged", "Trace"]

K = TypeVar("K")
V = TypeVar("V")
V2 = TypeVar("V2")
U = TypeVar("U")


@suggesting
class Arranged(Generic[K, V]):
    """A collection of pairs ``(key, value)``, sorted by key and kept. `Collection.arrange` makes it.

    Every join and reduce on it uses the same index: it is built once, and kept once.

    Attributes:
        scope: The scope that it is in.
    """

    __slots__ = ("_built", "_output", "_trace", "scope")

    def __init__(self, scope: Scope, output: Output) -> None:
        self.scope = scope
        self._output = output
        self._built: _core.Arrangement | None = None
        self._trace: Trace[K, V] | None = None

    def __repr__(self) -> str:
        return f"<Arranged in {self.scope!r}>"

    def _bind(self, built: _core.Arrangement) -> None:
        """Gives it, and the trace that was taken while it was being built, what the engine has made of it."""
        self._built = built
        if self._trace is not None:
            self._trace._bind(built)

    @property
    def trace(self) -> Trace[K, V]:
        """This worker's share of the arrangement, for reading while the dataflow runs.

        Ask for it while the dataflow is being built: one that is taken later, or after the one before was
        closed, begins where the arrangement is then. It can be read when the dataflow's block has ended.

        Raises:
            GraphError: If the arrangement has entered this scope: the trace is that of the scope around. If
                it is taken later, and no join, reduce or other trace reads the arrangement: it keeps nothing.
        """
        if self._trace is None or self._trace.closed:
            if _has_entered(self._output):
                raise GraphError(
                    "this arrangement is of the scope around and only entered this one: take the trace of "
                    "the arrangement there"
                )
            trace: Trace[K, V] = Trace(self.scope._plan_scope.root)
            if self._built is not None:
                trace._bind(self._built)
            self._trace = trace
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
        return Arranged(scope, scope._entered(self._output, name=name))

    def as_collection(self, *, name: str | None = None) -> Collection[tuple[K, V]]:
        """The collection of pairs; each change comes when its time is complete."""
        node = self.scope._append(
            collections.ARRANGED_UPDATES, [self._output.read_as(Form.BY_KEY)], Output(Form.UPDATES), name=name
        )
        return self._collection(node.output)

    def join(
        self,
        other: Collection[tuple[K, V2]] | Arranged[K, V2],
        f: Callable[[K, V, V2], Any] | Field | tuple[Any, ...] | None = None,
        *,
        name: str | None = None,
    ) -> Collection[Any]:
        """Joins as `Collection.join`; the other side is an arrangement, or is arranged."""
        return self._collection(joined_with(self, other, f, name))

    def reduce(
        self, f: Callable[[K, list[tuple[V, int]]], Iterable[U]], *, name: str | None = None
    ) -> Collection[tuple[K, U]]:
        """Reduces as `Collection.reduce`, on this arrangement."""
        return self._reduced(collections.REDUCE, Reduction.REDUCE, function_of("reduce", f), name=name)

    def min(self, *, name: str | None = None) -> Collection[tuple[K, V]]:
        """The least value of each key: `Collection.min` on this arrangement."""
        return self._reduced(collections.MIN, Reduction.MIN, name=name)

    def max(self, *, name: str | None = None) -> Collection[tuple[K, V]]:
        """The greatest value of each key: `Collection.max` on this arrangement."""
        return self._reduced(collections.MAX, Reduction.MAX, name=name)

    def sum(self, *, name: str | None = None) -> Collection[tuple[K, V]]:
        """The sum of each key's values: `Collection.sum` on this arrangement."""
        return self._reduced(collections.SUM, Reduction.SUM, name=name)

    def mean(self, *, name: str | None = None) -> Collection[tuple[K, float]]:
        """The mean of each key's values: `Collection.mean` on this arrangement."""
        return self._reduced(collections.MEAN, Reduction.MEAN, name=name)

    def top_k(self, n: int, *, name: str | None = None) -> Collection[tuple[K, V]]:
        """The greatest values of each key: `Collection.top_k` on this arrangement."""
        n = count_of("top_k takes a number of values", n)
        return self._reduced(collections.TOP_K, Reduction.TOP_K, n, name=name)

    def count_by_key(self, *, name: str | None = None) -> Collection[tuple[K, int]]:
        """The number of records of each key: `Collection.count_by_key` on this arrangement."""
        return self._reduced(collections.COUNT_BY_KEY, Reduction.COUNT_BY_KEY, name=name)

    def _reduced(
        self, kind: Kind, reduction: Reduction, argument: Any = None, *, name: str | None
    ) -> Collection[Any]:
        return self._collection(reduced(self.scope, kind, self._output, reduction, argument, name=name))

    def _collection(self, output: Output) -> Collection[Any]:
        made: Collection[Any] = collection_of(self.scope, output)
        return made


def arranged(scope: Scope, output: Output, name: str | None) -> Arranged[Any, Any]:
    """Appends an arrangement by key, which is made whether anything reads it or not."""
    node = scope._append(collections.ARRANGE, [output.read_as(Form.BY_KEY)], Output(Form.BY_KEY), name=name)
    made: Arranged[Any, Any] = Arranged(scope, node.output)
    assert node.arguments is not None
    node.arguments["arranged"] = made
    return made


def _has_entered(output: Output) -> bool:
    """Whether an arrangement is that of a scope around its own."""
    while output.node.kind is collections.ARRANGE:
        output = output.node.inputs[0].output
    return output.node.kind is shape.ENTER


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

    __slots__ = ("_bound", "_closed", "_dataflow")

    def __init__(self, dataflow: PlanScope) -> None:
        self._dataflow = dataflow
        self._bound: _core.Trace | None = None
        self._closed = False

    def _bind(self, built: _core.Arrangement) -> None:
        """Begins to read an arrangement, unless it was closed before.

        Raises:
            GraphError: If the arrangement has kept nothing of what has come.
        """
        if not self._closed:
            self._bound = _core.trace_of(built)

    @property
    def _reads(self) -> _core.Trace:
        """The extension's reader.

        Raises:
            GraphError: If there is none yet, or will be none.
            PointstampError: If it was closed before there was one.
        """
        if self._bound is not None:
            return self._bound
        if self._closed:
            raise PointstampError(
                "this trace is closed: take another from the arrangement, or close it later"
            )
        if self._dataflow.complete is not None:
            raise GraphError(
                "this trace reads nothing: its dataflow was never built, since its block has failed"
            )
        raise GraphError(
            "this trace is of a dataflow whose `with` block has not ended: read it, and import it into "
            "others, after that"
        )

    def __repr__(self) -> str:
        if self.closed:
            return "<Trace closed>"
        if self._bound is None:
            being = "is being" if self._dataflow.complete is None else "was never"
            return f"<Trace of a dataflow that {being} built>"
        return f"<Trace since {self.since} and before {self.upper}>"

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed if self._bound is None else self._bound.closed

    @property
    def since(self) -> list[Time]:
        """Reads are exact at the times that are at or after one of these."""
        return self._reads.since

    @property
    def upper(self) -> list[Time]:
        """The trace is complete at the times that are not at or after one of these."""
        return self._reads.upper

    def get(self, key: K, *, at: Time | None = None) -> list[tuple[V, int]]:
        """The values of a key, each with how often it is there, in order.

        Only keys that belong to this worker are found: a key is on one of the workers.

        Args:
            key: The key.
            at: The time; None for the latest that is complete.

        Raises:
            TimeError: If the trace is not complete at `at`, or does not reach back to it.
            PointstampError: If the trace is closed.
            GraphError: If its dataflow is still being built, or was never built.
        """
        return self._reads.get(key, at)

    def items(self, *, at: Time | None = None) -> Iterator[tuple[K, V, int]]:
        """Every ``(key, value, count)`` of this worker's share, in the order of keys and values.

        Args:
            at: The time; None for the latest that is complete.

        Raises:
            TimeError: If the trace is not complete at `at`, or does not reach back to it.
            PointstampError: If the trace is closed.
            GraphError: If its dataflow is still being built, or was never built.
        """
        return iter(self._reads.items(at))

    def allow_merging_before(self, time: Time) -> None:
        """Gives up reading at times that are not at or after `time`; what happened before can be merged."""
        self._reads.allow_merging_before(time)

    def close(self) -> None:
        """Gives up reading. Closing it twice does nothing."""
        self._closed = True
        if self._bound is not None:
            self._bound.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def joined_with(
    left: Collection[Any] | Arranged[Any, Any],
    other: Collection[Any] | Arranged[Any, Any],
    f: Callable[[Any, Any, Any], Any] | Field | tuple[Any, ...] | None,
    name: str | None,
) -> Output:
    """Appends a join of pairs ``(key, value)``; see `Collection.join`."""
    check_scope("join", left.scope, other, (Arranged, CollectionOutputs))
    result = JoinKind.PAIRS
    if isinstance(f, (Field, tuple)):
        _core.check_join_fields(f)
        result = JoinKind.FIELDS
    elif f is not None:
        result, f = JoinKind.FUNCTION, function_of("join", f)
    right = other._output, Form.BY_KEY
    return joined(left.scope, collections.JOIN, left._output, right, result, f, name=name)


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
