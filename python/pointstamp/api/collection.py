"""Collections, with every operator as a method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, TypeVar, overload

from pointstamp import _core
from pointstamp._core import Expr, JoinKind, ProbeHandle, Reduction
from pointstamp._validation import (
    check_reached,
    count_of,
    function_of,
    suggesting,
    unknown_attribute,
)
from pointstamp.api.classes import collection_of, stream_of
from pointstamp.api.collection_nodes import (
    brought_in,
    concatenated,
    distinct_keys,
    joined,
    named_part,
    one,
    outside,
    reduced,
    unmatched_keys,
)
from pointstamp.capture.events import Capture
from pointstamp.errors import GraphError, PointstampError
from pointstamp.expr.expressions import record
from pointstamp.logic.join_kinds import check_join, one_sided
from pointstamp.plan import collections, shape
from pointstamp.plan.node import Form, Output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType

    from typing_extensions import Self

    from pointstamp.api.scope import Scope
    from pointstamp.api.stream import Stream
    from pointstamp.capture.events import EventWriter
    from pointstamp.logic.join_kinds import How, OneSided
    from pointstamp.plan.node import Kind
    from pointstamp.plan.plan import PlanScope
    from pointstamp.types import Time

__all__ = ["Collection"]

T = TypeVar("T")
C = TypeVar("C", bound="Multiset")
U = TypeVar("U")
K = TypeVar("K")
V = TypeVar("V")
V2 = TypeVar("V2")


class Multiset:
    """Updates of records, or of rows with columns, which a method of a scope or a collection has made.

    Attributes:
        scope: The scope that the collection is in.
    """

    __slots__ = ("_output", "scope")

    def __init__(self, scope: Scope, output: Output) -> None:
        self.scope = scope
        self._output = output

    def probe(self, *, name: str | None = None) -> ProbeHandle:
        """A handle that reports at which times the collection may still change.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         words, collection = scope.new_collection()
            ...         probe = collection.distinct().probe()
            ...     words.insert("tick")
            ...     words.advance_to(1)
            ...     worker.step_while(lambda: probe.less_than(1))
            ...     return probe.frontier.elements
            >>> ps.execute(main)
            [[1]]
        """
        handle = ProbeHandle()
        node = self.scope._append(shape.PROBE, [self._output], self._output.like(), name=name, handle=handle)
        self.scope._building.expect(node, handle)
        return handle

    def enter(self, scope: Scope) -> Self:
        """The same collection in a scope inside the collection's; it is there in every turn of a loop.

        A join in the scope uses the arrangement of the collection outside: it is built once, and kept once.

        Raises:
            GraphError: If `scope` is not directly inside the collection's scope.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     with scope.iterative() as inner:
            ...         return scope.collection([1, 2]).enter(inner).capture()
            >>> ps.example(build).extract()
            [((0, 0), [(1, 1), (2, 1)])]
        """
        return type(self)(scope, scope._entered(self._output))

    def leave(self) -> Self:
        """The same collection in the scope around its own; for a loop, the result of its last turn.

        Raises:
            GraphError: If the collection is in a root scope.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     with scope.region() as inner:
            ...         return scope.collection([-1, 2]).enter(inner).map(abs).leave().capture()
            >>> ps.example(build).extract()
            [(0, [(1, 1), (2, 1)])]
        """
        left = self.scope._left(self._output)
        assert self.scope.parent is not None
        return type(self)(self.scope.parent, left)


class CollectionCapture(Capture[tuple[T, int]]):
    """The updates of a collection on one worker. It may be read from any thread, and after the run.

    Iterating gives the events as they came: the data of `Messages` are updates ``(record, time, diff)``.

    Examples:
        >>> import pointstamp as ps
        >>> captured = ps.example(lambda scope: scope.collection([2, 1, 2]).capture())
        >>> captured.extract()
        [(0, [(1, 1), (2, 2)])]
    """

    __slots__ = ()

    def extract(self) -> list[tuple[Time, list[tuple[T, int]]]]:
        """The changes per time, in the order of times: ``(record, diff)``, added up, in the order of records.

        Times that are not ordered come in the order of their coordinates, first coordinate first.

        Examples:
            >>> import pointstamp as ps
            >>> ps.example(lambda scope: scope.collection(["b", "a", "b"]).capture()).extract()
            [(0, [('a', 1), ('b', 2)])]
        """
        changes = _core.extract_updates(self._queue)
        self._check_empty(changes)
        return changes


class Collection(Multiset, Generic[T]):
    """A multiset that changes: updates ``(record, time, diff)``.

    Every method adds nodes to the dataflow's plan.

    The contents of a collection at a time are the sum of all updates at that time and before. The result of
    an operator is, at every time, the result of recomputation from the collection at that time; the work
    follows the changes.

    A record is a value that can be hashed: numbers, strings, tuples of them, dates, enums, named tuples,
    frozen dataclasses. Records that are equal are one record (``1 == 1.0``), in one of their forms.

    A function that is called with records must give equal results for equal records, at any time: a record
    that is removed goes through the function again, and removes its first result.

    Attributes:
        scope: The scope that the collection is in.

    Examples:
        >>> import pointstamp as ps
        >>> def main(worker):
        ...     with worker.dataflow() as scope:
        ...         words, collection = scope.new_collection()
        ...         lengths = collection.map(len).distinct().capture()
        ...     words.insert_many(["to", "be", "not"])
        ...     words.advance_to(1)
        ...     words.remove("not")
        ...     words.close()
        ...     worker.run()
        ...     return lengths.extract()
        >>> ps.execute(main)
        [[(0, [(2, 1), (3, 1)]), (1, [(3, -1)])]]
    """

    __slots__ = ()

    if not TYPE_CHECKING:  # type checkers find out by themselves

        def __getattr__(self, name: str) -> NoReturn:
            unknown_attribute(self, "a Collection", name)

    def __repr__(self) -> str:
        return f"<Collection in {self.scope!r}>"

    def _one(self, kind: Kind, name: str | None, **arguments: Any) -> Collection[Any]:
        """Adds a node that makes updates of the updates."""
        return Collection(self.scope, one(self.scope, kind, self._output, name=name, **arguments))

    def _stage(self, kind: Kind, function: Callable[..., Any], name: str | None) -> Collection[Any]:
        return self._one(kind, name, function=function_of(kind.name, function))

    def _reduced(
        self, kind: Kind, reduction: Reduction, argument: Any = None, *, name: str | None
    ) -> Collection[Any]:
        made = reduced(self.scope, kind, self._output, reduction, argument, name=name)
        return Collection(self.scope, made)

    # ------------------------------------------------------------ record by record

    @overload
    def map(self, fn: Callable[[T], U], *, name: str | None = None) -> Collection[U]: ...
    @overload
    def map(self, fn: Expr | tuple[Any, ...], *, name: str | None = None) -> Collection[Any]: ...
    def map(self, fn: Any, *, name: str | None = None) -> Collection[Any]:
        """Each record through a function, or an expression over its parts.

        An expression (see `pointstamp.expr.expressions`) is applied without Python.

        Raises:
            TypeError: When the dataflow runs, for a record without a part that the expression reads.

        Examples:
            >>> import pointstamp as ps
            >>> build = lambda scope: scope.collection([-1, 1, 2]).map(abs).capture()
            >>> ps.example(build).extract()
            [(0, [(1, 2), (2, 1)])]
            >>> from pointstamp import record
            >>> def build(scope):
            ...     return scope.collection([("a", 2), ("b", 3)]).map((record[1] * 10, record[0])).capture()
            >>> ps.example(build).extract()
            [(0, [((20, 'a'), 1), ((30, 'b'), 1)])]
        """
        if isinstance(fn, (Expr, tuple)):
            _core.check_fields(fn)
            return self._one(collections.PROJECT, name, fields=fn)
        return self._stage(collections.MAP, fn, name)

    def flat_map(self, fn: Callable[[T], Iterable[U]], *, name: str | None = None) -> Collection[U]:
        """Each record through a function that returns any number of records.

        Examples:
            >>> import pointstamp as ps
            >>> ps.example(lambda scope: scope.collection(["ab", "b"]).flat_map(list).capture()).extract()
            [(0, [('a', 1), ('b', 2)])]
        """
        return self._stage(collections.FLAT_MAP, fn, name)

    def filter(self, fn: Callable[[T], bool] | Expr, *, name: str | None = None) -> Collection[T]:
        """The records for which a function is true, or a condition on their parts.

        A condition (see `pointstamp.expr.expressions`) is decided without Python.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     stock = scope.collection([("tea", 3), ("rye", 0)])
            ...     there, gone = stock.filter(ps.record[1] > 0), stock.filter(lambda row: row[1] == 0)
            ...     return there.capture(), gone.capture()
            >>> [captured.extract() for captured in ps.example(build)]
            [[(0, [(('tea', 3), 1)])], [(0, [(('rye', 0), 1)])]]
        """
        if isinstance(fn, Expr):
            _core.check_fields(fn)
            return self._one(collections.FILTER_FIELDS, name, condition=fn)
        return self._stage(collections.FILTER, fn, name)

    def inspect(self, fn: Callable[[T, Time, int], Any], *, name: str | None = None) -> Collection[T]:
        """Calls a function with the record, the time and the diff of each update, and passes the updates on.

        Updates come as operators send them: of one record and time there may be several.

        Examples:
            >>> import pointstamp as ps
            >>> ps.example(lambda scope: scope.collection(["a", "b"]).inspect(print)) and None
            a 0 1
            b 0 1
        """
        return self._stage(collections.INSPECT, fn, name)

    # ------------------------------------------------------------ multisets

    def concat(self, *more: Collection[T], name: str | None = None) -> Collection[T]:
        """Returns the records of this collection and the others; counts of equal records are added up.

        Raises:
            GraphError: If one of them is of another scope.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     return scope.collection([1, 2]).concat(scope.collection([2, 3])).capture()
            >>> ps.example(build).extract()
            [(0, [(1, 1), (2, 2), (3, 1)])]
        """
        for other in more:
            check_scope("concat", self.scope, other, Collection)
        outputs = [self._output, *(other._output for other in more)]
        return Collection(self.scope, concatenated(self.scope, outputs, name=name))

    def negate(self, *, name: str | None = None) -> Collection[T]:
        """The records with their counts negated: concatenated with others, they are taken away from them.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     everyone, gone = scope.collection(["ann", "bob"]), scope.collection(["bob"])
            ...     return everyone.concat(gone.negate()).capture()
            >>> ps.example(build).extract()
            [(0, [('ann', 1)])]
        """
        return self._one(collections.NEGATE, name)

    def consolidate(self, *, name: str | None = None) -> Collection[T]:
        """Adds up each time's updates, so that updates which cancel are not sent on.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     numbers = scope.collection([1, 2])
            ...     nothing = numbers.concat(numbers.negate())
            ...     return nothing.consolidate().inspect(print).capture()
            >>> ps.example(build).extract()
            []
        """
        return self._one(collections.CONSOLIDATE, name)

    def distinct(self, *, name: str | None = None) -> Collection[T]:
        """Each record that is there once or more, once.

        Examples:
            >>> import pointstamp as ps
            >>> ps.example(lambda scope: scope.collection(list("banana")).distinct().capture()).extract()
            [(0, [('a', 1), ('b', 1), ('n', 1)])]
        """
        return self._reduced(collections.DISTINCT, Reduction.DISTINCT, name=name)

    def threshold(self, fn: Callable[[T, int], int], *, name: str | None = None) -> Collection[T]:
        """Each record as often as a function of it and its count says.

        Args:
            fn: Called with a record and its count, which is not 0; returns its count in the result.
            name: The operator's name.

        Examples:
            >>> import pointstamp as ps
            >>> halve = lambda letter, n: n // 2
            >>> build = lambda scope: scope.collection(list("banana")).threshold(halve).capture()
            >>> ps.example(build).extract()
            [(0, [('a', 1), ('n', 1)])]
        """
        function = function_of("threshold", fn)
        return self._reduced(collections.THRESHOLD, Reduction.THRESHOLD, function, name=name)

    def value_counts(self, *, name: str | None = None) -> Collection[tuple[T, int]]:
        """Each record with its count: pairs ``(record, count)``.

        Examples:
            >>> import pointstamp as ps
            >>> ps.example(lambda scope: scope.collection(list("banana")).value_counts().capture()).extract()
            [(0, [(('a', 3), 1), (('b', 1), 1), (('n', 2), 1)])]
        """
        return self._reduced(collections.COUNT, Reduction.COUNT, name=name)

    # ------------------------------------------------------------ by key

    @overload
    def join(
        self: Collection[tuple[K, V]],
        other: Collection[tuple[K, V2]] | Arranged[K, V2],
        fn: None = None,
        *,
        how: Literal["inner"] = "inner",
        name: str | None = None,
    ) -> Collection[tuple[K, tuple[V, V2]]]: ...
    @overload
    def join(
        self: Collection[tuple[K, V]],
        other: Collection[tuple[K, V2]] | Arranged[K, V2],
        fn: None = None,
        *,
        how: How,
        name: str | None = None,
    ) -> Collection[tuple[K, tuple[V | None, V2 | None]]]: ...
    @overload
    def join(
        self: Collection[tuple[K, V]],
        other: Collection[tuple[K, V2]] | Arranged[K, V2],
        fn: None = None,
        *,
        how: OneSided,
        name: str | None = None,
    ) -> Collection[tuple[K, V]]: ...
    @overload
    def join(
        self: Collection[tuple[K, V]],
        other: Collection[tuple[K, V2]] | Arranged[K, V2],
        fn: Callable[[K, V, V2], U],
        *,
        how: How = "inner",
        name: str | None = None,
    ) -> Collection[U]: ...
    @overload
    def join(
        self: Collection[tuple[K, V]],
        other: Collection[tuple[K, V2]] | Arranged[K, V2],
        fn: Expr | tuple[Any, ...],
        *,
        how: How = "inner",
        name: str | None = None,
    ) -> Collection[Any]: ...
    def join(
        self: Collection[Any],
        other: Any,
        fn: Any = None,
        *,
        how: How | OneSided = "inner",
        name: str | None = None,
    ) -> Collection[Any]:
        """Pairs of records with equal keys, of two collections of pairs ``(key, value)``.

        Args:
            other: The other collection, or an arrangement.
            fn: Called with the key and the two values; returns a record, always the same one for the same
                arguments. Or an expression over `key`, `left` and `right` (`pointstamp.expr.expressions`),
                which is applied without Python. The default is ``(key, (value, other value))``. It may be
                applied to values that are never present together, such as the old value of one side and the
                new value of the other where both change. The result is removed again, and the function must
                not fail.
            how: The sides whose records without a match are in the result, with None in place of the other
                value: this side (``"left"``), the other (``"right"``), both (``"full"``), or none
                (``"inner"``). ``"semi"`` returns this side's records ``(key, value)`` that have a match, as
                often as they are there, and ``"anti"`` those that have none. A collection of keys without
                values is the other side as ``keys.map((ps.record, None))``.
            name: The operator's name.

        Raises:
            GraphError: If `other` is of another scope.
            ValueError: If `how` is none of these.
            TypeError: If `how` is ``"semi"`` or ``"anti"`` and `fn` is given; when the dataflow runs, for a
                record that is not a pair.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     ages = scope.collection([("ann", 41), ("bob", 7)])
            ...     towns = scope.collection([("ann", "Ulm"), ("eve", "Rom")])
            ...     return ages.join(towns).capture(), ages.join(towns, how="left").capture()
            >>> pairs, with_all_ages = ps.example(build)
            >>> pairs.extract()
            [(0, [(('ann', (41, 'Ulm')), 1)])]
            >>> with_all_ages.extract()
            [(0, [(('ann', (41, 'Ulm')), 1), (('bob', (7, None)), 1)])]
            >>> def build(scope):
            ...     ages, known = scope.collection([("ann", 41), ("bob", 7)]), scope.collection(["bob"])
            ...     return ages.join(known.map((ps.record, None)), how="anti").capture()
            >>> ps.example(build).extract()
            [(0, [(('ann', 41), 1)])]
        """
        return Collection(self.scope, joined_with(self, other, fn, how, name))

    def map_groups(
        self: Collection[tuple[K, V]],
        fn: Callable[[K, list[tuple[V, int]]], Iterable[U]],
        *,
        name: str | None = None,
    ) -> Collection[tuple[K, U]]:
        """Calls a function with all values of a key. The records are pairs ``(key, value)``.

        Args:
            fn: Called with a key and its values, in order, each with its count; returns any number of
                results. Values whose count is not positive are left out. It is called for keys whose values
                have changed; a key without values has no results.
            name: The operator's name.

        Raises:
            TypeError: When the dataflow runs, for a record that is not a pair.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     words = scope.collection(["ape", "bee", "bear", "ant"])
            ...     initials = words.map(lambda word: (word[0], word))
            ...     return initials.map_groups(lambda key, words: [[word for word, _ in words][-1]]).capture()
            >>> ps.example(build).extract()
            [(0, [(('a', 'ape'), 1), (('b', 'bee'), 1)])]
        """
        return self._reduced(collections.REDUCE, Reduction.REDUCE, function_of("map_groups", fn), name=name)

    def min(self: Collection[tuple[K, V]], *, name: str | None = None) -> Collection[tuple[K, V]]:
        """The least value of each key: pairs ``(key, value)``.

        No Python runs for it, as for the operators that follow up to `count`. Values of one type are compared
        as in Python; values of unlike types are ordered by their types. Of values that are kept as pickles
        (see the book) the types that Python orders are refused, and others have any order.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     return scope.collection([("a", 3), ("a", 1), ("b", 2)]).min().capture()
            >>> ps.example(build).extract()
            [(0, [(('a', 1), 1), (('b', 2), 1)])]
        """
        return self._reduced(collections.MIN, Reduction.MIN, name=name)

    def max(self: Collection[tuple[K, V]], *, name: str | None = None) -> Collection[tuple[K, V]]:
        """The greatest value of each key: pairs ``(key, value)``.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     return scope.collection([("a", 3), ("a", 1), ("b", 2)]).max().capture()
            >>> ps.example(build).extract()
            [(0, [(('a', 3), 1), (('b', 2), 1)])]
        """
        return self._reduced(collections.MAX, Reduction.MAX, name=name)

    def sum(self: Collection[tuple[K, V]], *, name: str | None = None) -> Collection[tuple[K, V]]:
        """The sum of the values of each key, as often as they are there: pairs ``(key, sum)``.

        Values are numbers: ints, floats, bools, `Decimal`, `Fraction` and complex numbers, and of one key not
        both decimals and floats. Sums of ints are exact; floats are added in the order of their
        values.

        Raises:
            TypeError: When the dataflow runs, for a value that is not a number.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     return scope.collection([("a", 3), ("a", 1), ("b", 2)]).sum().capture()
            >>> ps.example(build).extract()
            [(0, [(('a', 4), 1), (('b', 2), 1)])]
        """
        return self._reduced(collections.SUM, Reduction.SUM, name=name)

    def mean(self: Collection[tuple[K, V]], *, name: str | None = None) -> Collection[tuple[K, float]]:
        """The mean of the values of each key, which are as for `sum`: pairs ``(key, mean)``.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     return scope.collection([("a", 3), ("a", 1), ("b", 2)]).mean().capture()
            >>> ps.example(build).extract()
            [(0, [(('a', 2.0), 1), (('b', 2.0), 1)])]
        """
        return self._reduced(collections.MEAN, Reduction.MEAN, name=name)

    def top_k(
        self: Collection[tuple[K, V]],
        n: int,
        order: Callable[[V], Any] | None = None,
        *,
        name: str | None = None,
    ) -> Collection[tuple[K, V]]:
        """The `n` greatest values of each key; a value with count 2 counts twice.

        Args:
            n: The number of values.
            order: Returns what a value is compared by; values of which it returns equals are compared
                themselves. None: the values themselves.
            name: The operator's name.

        Raises:
            TypeError: If `n` is no int.
            ValueError: If it is less than 1.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     return scope.collection([("a", 3), ("a", 1), ("a", 5)]).top_k(2).capture()
            >>> ps.example(build).extract()
            [(0, [(('a', 3), 1), (('a', 5), 1)])]
        """
        n = count_of("top_k takes a number of values", n)
        if order is None:
            return self._reduced(collections.TOP_K, Reduction.TOP_K, n, name=name)
        rank = function_of("top_k", order)
        ranked = self.map(lambda pair: (pair[0], (rank(pair[1]), pair[1])), name=named_part(name, "order"))
        best = ranked._reduced(collections.TOP_K, Reduction.TOP_K, n, name=name)
        return best.map((record[0], record[1][1]), name=named_part(name, "map"))

    def count(self: Collection[tuple[K, V]], *, name: str | None = None) -> Collection[tuple[K, int]]:
        """Counts the records of each key: pairs ``(key, count)``.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     return scope.collection([("a", 3), ("a", 1), ("b", 2)]).count().capture()
            >>> ps.example(build).extract()
            [(0, [(('a', 2), 1), (('b', 1), 1)])]
        """
        return self._reduced(collections.COUNT_BY_KEY, Reduction.COUNT_BY_KEY, name=name)

    def arrange(self: Collection[tuple[K, V]], *, name: str | None = None) -> Arranged[K, V]:
        """The records ``(key, value)`` sorted by key, indexed and kept, for any number of joins and reduces.

        Raises:
            TypeError: When the dataflow runs, for a record that is not a pair.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     ages = scope.collection([("ann", 41), ("bob", 7)]).arrange()
            ...     towns, pets = scope.collection([("ann", "Ulm")]), scope.collection([("bob", "cat")])
            ...     return ages.join(towns).capture(), ages.join(pets).capture()
            >>> [captured.extract() for captured in ps.example(build)]
            [[(0, [(('ann', (41, 'Ulm')), 1)])], [(0, [(('bob', (7, 'cat')), 1)])]]
        """
        return arranged(self.scope, self._output, name)

    # ------------------------------------------------------------ scopes and loops

    def iterate(
        self,
        fn: Callable[[Scope, Collection[T]], Collection[T]],
        *,
        iterations: int | None = None,
        name: str = "Iterate",
    ) -> Collection[T]:
        """Puts the collection through a function again and again, until that changes nothing.

        Each turn must bring the collection closer to what does not change. A turn must end with an operator
        that adds up (`distinct`, `min`, `map_groups`, `consolidate`): without one, updates that cancel
        circulate for ever, unless `iterations` bounds the loop.

        Args:
            fn: Called once, with the loop's scope and the collection in a turn; returns the collection of the
                next.
            iterations: The number of turns of the loop: the result is what so many calls one after another
                give. Without it, the loop ends when a turn changes nothing.
            name: The name of the loop's scope.

        Returns:
            The collection that the function does not change, at every time.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     def halve(inner, numbers):
            ...         return numbers.map(lambda n: n // 2 if n % 2 == 0 else n).consolidate()
            ...     return scope.collection([12, 40, 7]).iterate(halve).capture()
            >>> ps.example(build).extract()
            [(0, [(3, 1), (5, 1), (7, 1)])]

            Powers of 2, which have no end:

            >>> def build(scope):
            ...     def double(inner, numbers):
            ...         return numbers.map(lambda n: 2 * n)
            ...     return scope.collection([1, 5]).iterate(double, iterations=3).capture()
            >>> ps.example(build).extract()
            [(0, [(8, 1), (40, 1)])]
        """
        return iterated(self, fn, name, iterations)

    def updates(self, *, name: str | None = None) -> Stream[tuple[T, Time, int]]:
        """The updates, as a stream of records ``(record, time, diff)``.

        Each is at its own time in the stream, too; of one record and time there may be several.

        Examples:
            >>> import pointstamp as ps
            >>> ps.example(lambda scope: scope.collection(["a", "b"]).updates().capture()).extract()
            [(0, [('a', 0, 1), ('b', 0, 1)])]
        """
        node = self.scope._append(collections.UPDATES, [self._output], Output(Form.RECORDS), name=name)
        stream: Stream[Any] = stream_of(self.scope, node.output)
        return stream

    def capture(self, *, name: str | None = None) -> CollectionCapture[T]:
        """Keeps the updates on this worker in memory.

        Examples:
            >>> import pointstamp as ps
            >>> ps.example(lambda scope: scope.collection([2, 1, 2]).capture()).extract()
            [(0, [(1, 1), (2, 2)])]
        """
        capture: CollectionCapture[T] = CollectionCapture(self.scope.index, self.scope.peers)
        self.scope._append(shape.CAPTURE, [self._output], name=name, queue=capture._queue)
        return capture

    def capture_into(self, writer: EventWriter, *, name: str | None = None) -> None:
        """Writes the updates as pairs ``(record, diff)``.

        ``scope.replay(...).to_collection(diffs=True)`` makes a collection of them again.

        Examples:
            >>> import io
            >>> import pointstamp as ps
            >>> kept = io.BytesIO()
            >>> ps.example(lambda scope: scope.collection([2, 1, 2]).capture_into(ps.EventWriter(kept)))
            >>> def again(scope):
            ...     kept.seek(0)
            ...     pairs = scope.replay([ps.EventReader(kept, allow_pickle=True)])
            ...     return pairs.to_collection(diffs=True).capture()
            >>> ps.example(again).extract()
            [(0, [(1, 1), (2, 2)])]
        """
        updates = self.updates(name=named_part(name, "updates"))
        pairs = updates.map(lambda update: (update[0], update[2]), name=named_part(name, "map"))
        pairs.capture_into(writer, name=name)


@suggesting
class Variable(Generic[C]):
    """A collection of a loop: first its initial value, then in each turn the value set in the turn before.

    Make one with `Scope.variable` in a scope of `iterative()`; several in one scope define each other. The
    loop ends when a turn changes none of them.

    Attributes:
        collection: The variable in a turn of the loop: a `Collection`, or a `ColumnCollection`.

    Examples:
        The numbers that can be reached from 1, one step further in each turn:

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     edges = scope.collection([(1, 2), (2, 3), (3, 1), (4, 5)])
        ...     with scope.iterative() as inner:
        ...         reached = inner.variable(scope.collection([1]).enter(inner))
        ...         steps = reached.collection.map(lambda node: (node, None)).join(edges.enter(inner))
        ...         nodes = steps.map(lambda step: step[1][1])
        ...         result = nodes.concat(reached.collection).distinct()
        ...         reached.set(result)
        ...         return result.leave().capture()
        >>> ps.example(build).extract()
        [(0, [(1, 1), (2, 1), (3, 1)])]

        The same of columns, of paths from every node:

        >>> import pyarrow as pa
        >>> def build(scope):
        ...     edges = scope.column_collection(pa.table({"a": [1, 2, 3], "b": [2, 3, 4]}))
        ...     with scope.iterative() as inner:
        ...         paths = inner.variable(edges.enter(inner))
        ...         first = paths.collection.rename({"b": "over"})
        ...         last = edges.enter(inner).rename({"a": "over"})
        ...         longer = first.join(last, on="over").select("a", "b")
        ...         paths.set(longer.concat(edges.enter(inner)).distinct())
        ...         return paths.collection.leave().distinct().capture()
        >>> [(time, batch)] = ps.example(build).extract()
        >>> list(zip(*batch.select(["a", "b"]).to_pydict().values()))
        [(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)]
    """

    __slots__ = ("_initial", "_name", "_node", "_scope", "collection")

    collection: C

    def __init__(
        self,
        scope: Scope,
        initial: C | None,
        columns: _core.Schema | None,
        name: str | None,
        turns: int | None = None,
    ) -> None:
        if initial is not None:
            given: object = initial
            if not isinstance(given, Multiset) or (columns is not None and given._output.schema is None):
                of = "" if columns is None else " of columns"
                raise TypeError(f"a variable{of} starts from a collection{of}, not {initial!r}")
            check_columns(columns, initial, "variable")
            columns = initial._output.schema
        if not scope._in_loop:
            raise GraphError(
                f"scope '{scope.name}' has no coordinate that could count the turns of a loop: make the "
                "variable in a scope of iterative()"
            )
        if initial is not None and initial.scope is not scope:
            raise GraphError(
                f"a variable of scope '{scope.name}' cannot start from a collection of scope "
                f"'{initial.scope.name}': bring it in with enter(scope) first"
            )
        missing = (
            f"a variable of scope {scope._plan_scope} is never set: call set() with the "
            "collection that it is in the next turn of the loop"
        )
        scope._plan_scope.check_building()
        building = scope._building
        with building.making(collections.VARIABLE.name, name):
            loop, stream = _core.follow(scope._engine, 1, missing, turns)
        made = Output(Form.UPDATES, columns)
        self._node = scope._append(collections.VARIABLE, [], made, name=name, loop=loop)
        building.reserve(self._node, stream)
        building.plan.require(self._node, missing)
        self._scope = scope
        self._name = name
        self._initial = None if initial is None else initial._output
        if self._initial is not None:
            part = named_part(name, "concatenate")
            made = concatenated(scope, [self._initial, made], name=part)
        self.collection = collection_of(scope, made)

    def set(self, result: C) -> None:
        """Sets the variable for the next turn. Call it once.

        Raises:
            GraphError: If the variable is set already, or `result` is of another scope or has other columns.
            TypeError: If it is not a collection, of columns where the variable is of columns.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     numbers = scope.collection([12, 7])
            ...     with scope.iterative() as inner:
            ...         variable = inner.variable(numbers.enter(inner))
            ...         halved = variable.collection.map(lambda n: n // 2 if n % 2 == 0 else n).distinct()
            ...         variable.set(halved)
            ...         return halved.leave().capture()
            >>> ps.example(build).extract()
            [(0, [(3, 1), (7, 1)])]
        """
        check_kind(self.collection, result, "a variable{0} is set to a collection{0}")
        scope, plan = self._scope, self._scope._building.plan
        if result.scope is not scope:
            raise GraphError(
                f"a variable of scope '{scope.name}' cannot be set to a collection of scope "
                f"'{result.scope.name}': it comes round in its own scope only"
            )
        check_columns(self.collection._output.schema, result, "variable")
        if self._node not in plan.missing:
            raise GraphError(
                "this variable is set already: it has one definition; concat the collections first"
            )
        change = result._output
        if self._initial is not None:
            # The initial value is present in every turn; the turns after the first remove it again.
            name = self._name
            less = one(
                scope,
                collections.NEGATE,
                self._initial,
                schema=self._initial.schema,
                name=named_part(name, "negate"),
            )
            change = concatenated(scope, [change, less], name=named_part(name, "concatenate"))
        scope._append(collections.SET, [change], closes=self._node)
        plan.fulfil(self._node)


def check_kind(expected: C, given: Any, sentence: str) -> None:
    """Refuses another thing than a collection of the same kind.

    Args:
        expected: A collection.
        given: The object that should be one of its kind.
        sentence: The message, with places for ``of columns``.

    Raises:
        TypeError: If it is another thing.
    """
    if not isinstance(given, type(expected)):
        of = " of columns" if expected._output.schema is not None else ""
        raise TypeError(f"{sentence.format(of)}, not {given!r}")


def check_columns(mine: _core.Schema | None, given: Multiset, operator: str) -> None:
    """Refuses a collection of other columns.

    Raises:
        GraphError: It names the fields that differ.
    """
    theirs = given._output.schema
    if mine is not None and theirs is not None and (difference := mine.difference(theirs)) is not None:
        raise GraphError(f"{operator} takes collections of one schema: {difference}")


def iterated(start: C, f: Callable[[Scope, C], C], name: str, iterations: int | None) -> C:
    """Puts a collection through a function until that changes nothing; see `Collection.iterate`."""
    function_of("iterate", f)
    if iterations is not None:
        iterations = count_of("iterate takes a number of iterations", iterations)
    with start.scope.iterative(name) as inner:
        entered = start.enter(inner)
        variable = Variable(inner, entered, None, None, iterations)
        result = f(inner, variable.collection)
        check_kind(start, result, "the function given to iterate returns the collection{0} of the next turn")
        check_columns(start._output.schema, result, "iterate")
        variable.set(result)
        return result.leave()


@suggesting
class Arranged(Generic[K, V]):
    """A collection of pairs ``(key, value)``, sorted by key and kept. `Collection.arrange` makes it.

    Every join and reduce on it uses the same index: it is built once, and kept once.

    Attributes:
        scope: The scope that it is in.

    Examples:
        >>> import pointstamp as ps
        >>> def build(scope):
        ...     ages = scope.collection([("ann", 41), ("ann", 7), ("bob", 7)]).arrange()
        ...     return ages.max().capture(), ages.count().capture()
        >>> [captured.extract() for captured in ps.example(build)]
        [[(0, [(('ann', 41), 1), (('bob', 7), 1)])], [(0, [(('ann', 2), 1), (('bob', 1), 1)])]]
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
        """Gives the engine's object to it, and to the trace that was taken during construction."""
        self._built = built
        if self._trace is not None:
            self._trace._bind(built)

    def trace(self) -> Trace[K, V]:
        """Keeps this worker's share of the arrangement readable while the dataflow runs.

        It stays so until the trace is closed or released. Take it while the dataflow is being built: a trace
        that is taken later, or after the one before was closed, begins where the arrangement is then. It can
        be read when the dataflow's block has ended.

        Raises:
            GraphError: If the arrangement has entered this scope: the trace belongs to the scope around. If
                it is taken later, and no join, reduce or other trace reads the arrangement: it keeps nothing.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         ages = scope.collection([("ann", 41), ("bob", 7)]).arrange()
            ...         trace, probe = ages.trace(), ages.to_collection().probe()
            ...     worker.step_while(lambda: not probe.done())
            ...     return list(trace.items())
            >>> ps.execute(main)
            [[('ann', 41, 1), ('bob', 7, 1)]]
        """
        if self._trace is None or self._trace.closed:
            if _has_entered(self._output):
                raise GraphError(
                    "this arrangement is of the scope around and only entered this one: take the trace of "
                    "the arrangement there"
                )
            trace: Trace[K, V] = Trace(self.scope._plan_scope.root)
            if self.scope._engine.recording is not None:
                trace._behind = self.scope._engine.behind
            if self._built is not None:
                trace._bind(self._built)
            self._trace = trace
        return self._trace

    def enter(self, scope: Scope, *, name: str | None = None) -> Arranged[K, V]:
        """The same arrangement in a scope inside its own, for joins and reduces in every turn of a loop.

        It is neither copied nor built again: changes outside are visible in the scope. (A collection that
        enters a scope does the same with its arrangement.)

        Raises:
            GraphError: If `scope` is not directly inside the arrangement's scope.

        Examples:
            >>> import pointstamp as ps
            >>> from pointstamp import left, right
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

    def to_collection(self, *, name: str | None = None) -> Collection[tuple[K, V]]:
        """The collection of pairs; each change comes when its time is complete.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     return scope.collection([("ann", 41), ("bob", 7)]).arrange().to_collection().capture()
            >>> ps.example(build).extract()
            [(0, [(('ann', 41), 1), (('bob', 7), 1)])]
        """
        node = self.scope._append(
            collections.ARRANGED_UPDATES, [self._output.read_as(Form.BY_KEY)], Output(Form.UPDATES), name=name
        )
        return self._collection(node.output)

    @overload
    def join(
        self,
        other: Collection[tuple[K, V2]] | Arranged[K, V2],
        fn: None = None,
        *,
        how: Literal["inner"] = "inner",
        name: str | None = None,
    ) -> Collection[tuple[K, tuple[V, V2]]]: ...
    @overload
    def join(
        self,
        other: Collection[tuple[K, V2]] | Arranged[K, V2],
        fn: None = None,
        *,
        how: How,
        name: str | None = None,
    ) -> Collection[tuple[K, tuple[V | None, V2 | None]]]: ...
    @overload
    def join(
        self,
        other: Collection[tuple[K, V2]] | Arranged[K, V2],
        fn: None = None,
        *,
        how: OneSided,
        name: str | None = None,
    ) -> Collection[tuple[K, V]]: ...
    @overload
    def join(
        self,
        other: Collection[tuple[K, V2]] | Arranged[K, V2],
        fn: Callable[[K, V, V2], U],
        *,
        how: How = "inner",
        name: str | None = None,
    ) -> Collection[U]: ...
    @overload
    def join(
        self,
        other: Collection[tuple[K, V2]] | Arranged[K, V2],
        fn: Expr | tuple[Any, ...],
        *,
        how: How = "inner",
        name: str | None = None,
    ) -> Collection[Any]: ...
    def join(
        self,
        other: Collection[tuple[K, V2]] | Arranged[K, V2],
        fn: Callable[[K, V, V2], Any] | Expr | tuple[Any, ...] | None = None,
        *,
        how: How | OneSided = "inner",
        name: str | None = None,
    ) -> Collection[Any]:
        """Joins as `Collection.join`; the other side is an arrangement, or is arranged.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     ages = scope.collection([("ann", 41), ("bob", 7)]).arrange()
            ...     towns = scope.collection([("ann", "Ulm")])
            ...     return ages.join(towns, lambda name, age, town: (name, town, age)).capture()
            >>> ps.example(build).extract()
            [(0, [(('ann', 'Ulm', 41), 1)])]
        """
        return self._collection(joined_with(self, other, fn, how, name))

    def map_groups(
        self, fn: Callable[[K, list[tuple[V, int]]], Iterable[U]], *, name: str | None = None
    ) -> Collection[tuple[K, U]]:
        """Calls a function with all values of a key, as `Collection.map_groups`.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     ages = scope.collection([("ann", 41), ("ann", 7), ("bob", 7)]).arrange()
            ...     return ages.map_groups(lambda name, ages: [len(ages)]).capture()
            >>> ps.example(build).extract()
            [(0, [(('ann', 2), 1), (('bob', 1), 1)])]
        """
        return self._reduced(collections.REDUCE, Reduction.REDUCE, function_of("map_groups", fn), name=name)

    def min(self, *, name: str | None = None) -> Collection[tuple[K, V]]:
        """The least value of each key: `Collection.min` on this arrangement.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     return scope.collection([("a", 3), ("a", 1)]).arrange().min().capture()
            >>> ps.example(build).extract()
            [(0, [(('a', 1), 1)])]
        """
        return self._reduced(collections.MIN, Reduction.MIN, name=name)

    def max(self, *, name: str | None = None) -> Collection[tuple[K, V]]:
        """The greatest value of each key: `Collection.max` on this arrangement.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     return scope.collection([("a", 3), ("a", 1)]).arrange().max().capture()
            >>> ps.example(build).extract()
            [(0, [(('a', 3), 1)])]
        """
        return self._reduced(collections.MAX, Reduction.MAX, name=name)

    def sum(self, *, name: str | None = None) -> Collection[tuple[K, V]]:
        """The sum of each key's values: `Collection.sum` on this arrangement.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     return scope.collection([("a", 3), ("a", 1)]).arrange().sum().capture()
            >>> ps.example(build).extract()
            [(0, [(('a', 4), 1)])]
        """
        return self._reduced(collections.SUM, Reduction.SUM, name=name)

    def mean(self, *, name: str | None = None) -> Collection[tuple[K, float]]:
        """The mean of each key's values: `Collection.mean` on this arrangement.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     return scope.collection([("a", 3), ("a", 1)]).arrange().mean().capture()
            >>> ps.example(build).extract()
            [(0, [(('a', 2.0), 1)])]
        """
        return self._reduced(collections.MEAN, Reduction.MEAN, name=name)

    def top_k(self, n: int, *, name: str | None = None) -> Collection[tuple[K, V]]:
        """The greatest values of each key: `Collection.top_k` on this arrangement.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     return scope.collection([("a", 3), ("a", 1), ("a", 5)]).arrange().top_k(2).capture()
            >>> ps.example(build).extract()
            [(0, [(('a', 3), 1), (('a', 5), 1)])]
        """
        n = count_of("top_k takes a number of values", n)
        return self._reduced(collections.TOP_K, Reduction.TOP_K, n, name=name)

    def count(self, *, name: str | None = None) -> Collection[tuple[K, int]]:
        """The number of records of each key: `Collection.count` on this arrangement.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     return scope.collection([("a", 3), ("a", 1)]).arrange().count().capture()
            >>> ps.example(build).extract()
            [(0, [(('a', 2), 1)])]
        """
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
    """Whether an arrangement belongs to a scope around its own."""
    while output.node.kind is collections.ARRANGE:
        output = output.node.inputs[0].output
    return output.node.kind is shape.ENTER


@suggesting
class Trace(Generic[K, V]):
    """This worker's share of an arrangement, which `main` reads while the dataflow runs.

    A trace keeps history from being merged, so that it can be read at every time from `since` on: release
    unneeded times with `allow_merging_before`, and all of it with `close`.

    Examples:
        >>> import pointstamp as ps
        >>> def main(worker):
        ...     with worker.dataflow() as scope:
        ...         ages, collection = scope.new_collection()
        ...         arranged = collection.arrange()
        ...         trace, probe = arranged.trace(), arranged.to_collection().probe()
        ...     ages.insert(("ann", 41))
        ...     ages.advance_to(1)
        ...     ages.update_many([(("ann", 41), -1), (("ann", 42), 1)])
        ...     ages.advance_to(2)
        ...     worker.step_while(lambda: probe.less_than(2))
        ...     return trace.get("ann"), trace.get("ann", at=0), trace.get("bob")
        >>> ps.execute(main)
        [([(42, 1)], [(41, 1)], [])]
    """

    __slots__ = ("_behind", "_bound", "_closed", "_dataflow")

    def __init__(self, dataflow: PlanScope) -> None:
        self._dataflow = dataflow
        self._behind: Callable[[], str | None] | None = None
        self._bound: _core.Trace | None = None
        self._closed = False

    def _bind(self, built: _core.Arrangement) -> None:
        """Begins to read an arrangement, unless it was closed before.

        Raises:
            GraphError: If the arrangement has kept none of its updates.
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
        """The values of a key, each with its count, in order.

        Only keys that belong to this worker are found: a key is on one of the workers.

        Args:
            key: The key.
            at: The time; None for the latest that is complete.

        Raises:
            TimeError: If the trace is not complete at `at`, or does not reach back to it.
            CheckpointError: After a resumption, before the worker's inputs have come to where they stood.
            PointstampError: If the trace is closed.
            GraphError: If its dataflow is still being built, or was never built.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         ages = scope.collection([("ann", 41), ("ann", 7)]).arrange()
            ...         trace, probe = ages.trace(), ages.to_collection().probe()
            ...     worker.step_while(lambda: not probe.done())
            ...     return trace.get("ann"), trace.get("bob")
            >>> ps.execute(main)
            [([(7, 1), (41, 1)], [])]
        """
        check_reached(self._behind)
        return self._reads.get(key, at)

    def items(self, *, at: Time | None = None) -> Iterator[tuple[K, V, int]]:
        """Every ``(key, value, count)`` of this worker's share, in the order of keys and values.

        Args:
            at: The time; None for the latest that is complete.

        Raises:
            TimeError: If the trace is not complete at `at`, or does not reach back to it.
            CheckpointError: After a resumption, before the worker's inputs have come to where they stood.
            PointstampError: If the trace is closed.
            GraphError: If its dataflow is still being built, or was never built.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         ages = scope.collection([("ann", 41), ("bob", 7)]).arrange()
            ...         trace, probe = ages.trace(), ages.to_collection().probe()
            ...     worker.step_while(lambda: not probe.done())
            ...     return list(trace.items())
            >>> ps.execute(main)
            [[('ann', 41, 1), ('bob', 7, 1)]]
        """
        check_reached(self._behind)
        return iter(self._reads.items(at))

    def allow_merging_before(self, time: Time) -> None:
        """Gives up reading at times that are not at or after `time`; earlier history can be merged.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         ages, collection = scope.new_collection()
            ...         arranged = collection.arrange()
            ...         trace, probe = arranged.trace(), arranged.to_collection().probe()
            ...     ages.insert(("ann", 41))
            ...     ages.advance_to(5)
            ...     worker.step_while(lambda: probe.less_than(5))
            ...     trace.allow_merging_before(3)
            ...     return trace.since, trace.get("ann", at=4)
            >>> ps.execute(main)
            [([3], [(41, 1)])]
        """
        self._reads.allow_merging_before(time)

    def close(self) -> None:
        """Gives up reading. Closing it twice does nothing.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         trace = scope.collection([("ann", 41)]).arrange().trace()
            ...     trace.close()
            ...     return trace.closed
            >>> ps.execute(main)
            [True]
        """
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
    f: Callable[[Any, Any, Any], Any] | Expr | tuple[Any, ...] | None,
    how: How | OneSided,
    name: str | None,
) -> Output:
    """Appends a join of pairs ``(key, value)``; see `Collection.join`.

    An outer join is the inner join, and joins of a side with the keys that only it has, whose value is None.
    A one-sided join reads the other side's keys, each once.
    """
    check_scope("join", left.scope, other, (Arranged, Collection))
    check_join(how, f)
    if one_sided(how):
        return _one_sided(left, _keys_of(other, name), how == "semi", name)
    result = JoinKind.PAIRS
    if isinstance(f, (Expr, tuple)):
        _core.check_join_fields(f)
        result = JoinKind.FIELDS
    elif f is not None:
        result, f = JoinKind.FUNCTION, function_of("join", f)
    scope = left.scope

    def join(here: Output, there: Output, name: str | None) -> Output:
        return joined(scope, here, (there, Form.BY_KEY), result, f, name=name)

    if how == "inner":
        return join(left._output, other._output, name)
    part = named_part(name, "unmatched")
    parts = [join(left._output, other._output, named_part(name, "matched"))]
    keys = [_keys_of(side, name) for side in (left, other)]
    if how in {"left", "full"}:
        parts.append(join(left._output, _without_value(scope, keys[0], keys[1], name), part))
    if how in {"right", "full"}:
        parts.append(join(_without_value(scope, keys[1], keys[0], name), other._output, part))
    return concatenated(scope, parts, name=name)


def _one_sided(
    left: Collection[Any] | Arranged[Any, Any], keys: tuple[Output, Form], met: bool, name: str | None
) -> Output:
    """Appends a join of pairs with distinct keys: the pairs with a match, or all without these."""
    scope = left.scope
    part = name if met else named_part(name, "matched")
    found = joined(scope, left._output, keys, JoinKind.LEFT, name=part)
    if met:
        return found
    if isinstance(left, Arranged):
        left = left.to_collection(name=named_part(name, "to_collection"))
    away = one(scope, collections.NEGATE, found, name=named_part(name, "negate"))
    return concatenated(scope, [left._output, away], name=name)


def _keys_of(side: Collection[Any] | Arranged[Any, Any], name: str | None) -> tuple[Output, Form]:
    """Each key of a side once. Those of ``keys.map((record, None))`` are `keys`, which may be arranged."""
    if isinstance(side, Arranged):
        side = side.to_collection(name=named_part(name, "to_collection"))
    _, found, entered = outside(side.scope, side._output)
    fields = found.node["fields"] if found.node.kind is collections.PROJECT else None
    if isinstance(fields, tuple) and fields and fields[0] is record:
        keys = brought_in(found.node.inputs[0].output, entered)
        return distinct_keys(side.scope, keys, named_part(name, "keys"))
    keys = one(side.scope, collections.PROJECT, side._output, name=named_part(name, "map"), fields=record[0])
    return distinct_keys(side.scope, keys, named_part(name, "keys"))


def _without_value(
    scope: Scope, keys: tuple[Output, Form], others: tuple[Output, Form], name: str | None
) -> Output:
    """Pairs of None and each key of one side that the other does not have."""
    alone, _ = unmatched_keys(scope, keys, others, name)
    return one(scope, collections.PROJECT, alone, name=named_part(name, "map"), fields=(record, None))


def check_scope(operator: str, scope: Scope, other: Any, kinds: Any) -> None:
    """Refuses arguments that are no collections, or collections of another scope."""
    if not isinstance(other, kinds):
        cure = ": call to_collection() on it" if hasattr(other, "to_collection") else ""
        raise TypeError(f"{operator} needs a collection, not {other!r}{cure}")
    if other.scope.address[:1] != scope.address[:1]:
        raise GraphError(
            f"{operator} needs collections of one dataflow, and the other is of another: arrange it there, "
            "and bring its trace in here with scope.import_trace(arranged.trace())"
        )
    if other.scope is not scope:
        raise GraphError(
            f"{operator} needs collections of one scope: one is of scope '{scope.name}' {scope.address}, the "
            f"other of '{other.scope.name}' {other.scope.address}; bring it in with enter(scope), or "
            "out with leave()"
        )
