"""Collections, with every operator as a method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, overload

from pointstamp import _core
from pointstamp._core import CollectionStageKind, Field, JoinKind, Reduction
from pointstamp._mistakes import function_of, unknown_attribute
from pointstamp._naming import named, named_later
from pointstamp.collections.arranged import Arranged, check_scope
from pointstamp.collections.outputs import CollectionOutputs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

    from pointstamp._core import Stream as CoreStream
    from pointstamp._types import Time
    from pointstamp.scope import Scope

__all__ = ["Collection"]

T = TypeVar("T")
U = TypeVar("U")
K = TypeVar("K")
V = TypeVar("V")
V2 = TypeVar("V2")


@named
class Collection(CollectionOutputs[T]):
    """A multiset that changes: updates ``(record, time, diff)``.

    Every method adds operators to the collection's scope.

    At a time the collection is what all updates at that time and before add up to. What an operator makes of
    it is, at every time, what computing it anew from the collection at that time would give; the work follows
    the changes.

    A record is a value that can be hashed: numbers, strings, tuples of them, dates, enums, named tuples,
    frozen dataclasses. Records that are equal are one record (``1 == 1.0``), in one of their forms.

    A function that is called with records must give equal results for equal records, at any time: a record
    that is removed goes through the function again, and takes away what it gave when it was inserted.

    Attributes:
        scope: The scope that the collection is in.
    """

    __slots__ = ("_arrangement", "_by_key", "_counted", "_is_distinct", "_name", "_outer", "_stream", "scope")

    def __init__(
        self,
        scope: Scope,
        core: CoreStream | _core.Arrangement | None,
        *,
        counted: tuple[_core.Arrangement, Reduction] | None = None,
        outer: Collection[T] | None = None,
        name: str | None = None,
    ) -> None:
        self.scope = scope
        # A reduction is an arrangement, of which updates are made where another operator than a join reads
        # them.
        self._arrangement = core if isinstance(core, _core.Arrangement) else None
        self._stream = None if isinstance(core, _core.Arrangement) else core
        # What counts records outside of loops is made when it is read: updates, or an arrangement.
        self._counted = counted
        self._name = name  # of what is made later
        # The collection that entered this scope, whose arrangement is used here, too.
        self._outer = outer
        self._by_key: _core.Arrangement | None = None
        # Whether each record is there once: then the reduction is that of its keys, too.
        self._is_distinct = False

    if not TYPE_CHECKING:  # type checkers find out by themselves

        def __getattr__(self, name: str) -> NoReturn:
            unknown_attribute(self, "a Collection", name)

    def __repr__(self) -> str:
        return f"<Collection in {self.scope!r}>"

    @property
    def core(self) -> CoreStream:
        """The extension's stream of updates."""
        if self._stream is None:
            with self._own_naming():
                if self._arrangement is not None:
                    self._stream = _core.arrangement_updates(self._arrangement)
                elif self._counted is not None:
                    arranged, kind = self._counted
                    self._stream = _core.total_updates(arranged, kind, kind.label)
                else:
                    assert self._outer is not None
                    self._stream = self.scope.core.enter(self._outer.core)
        return self._stream

    def _own_naming(self) -> AbstractContextManager[None]:
        """Names an operator that is made when it is first read, whatever the name of its reader."""
        title = "" if self._counted is None else self._counted[1].label
        return named_later(self.scope, title, self._name)

    def _reduction(self) -> _core.Arrangement | None:
        """The arrangement that the collection is, if it is the result of a reduction."""
        if self._arrangement is None and self._counted is not None:
            arranged, kind = self._counted
            with self._own_naming():
                self._arrangement = _core.reduce_arranged(arranged, kind, None, kind.label)
        return self._arrangement

    def _arranged_by_key(self, name: str = "arrange") -> _core.Arrangement:
        """The arrangement by key, of which there is one for all that ask for it."""
        if self._by_key is None:
            of_records = self._counted is not None and self._counted[1] is Reduction.DISTINCT
            reduction = None if of_records else self._reduction()
            if reduction is not None and reduction.is_by_key():
                self._by_key = reduction
            elif self._outer is not None:
                outside = self._outer._arranged_by_key(name)
                self._by_key = _core.enter_arrangement(outside, self.scope.core)
            else:
                self._by_key = _core.arrange(self.core, True, name)
        return self._by_key

    def _stage(
        self, kind: CollectionStageKind, function: Callable[..., Any], name: str | None
    ) -> Collection[Any]:
        checked = function_of(kind.label, function)
        core = _core.collection_stage(self.core, kind, checked, name or kind.label)
        return Collection(self.scope, core)

    # ------------------------------------------------------------ record by record

    @overload
    def map(self, f: Callable[[T], U], *, name: str | None = None) -> Collection[U]: ...
    @overload
    def map(self, f: Field | tuple[Any, ...], *, name: str | None = None) -> Collection[Any]: ...
    def map(self, f: Any, *, name: str | None = None) -> Collection[Any]:
        """Each record through a function, or an expression over its parts.

        An expression (see `pointstamp.fields`) is applied without Python.

        Raises:
            TypeError: When the dataflow runs, for a record without a part that the expression reads.

        Examples:
            >>> import pointstamp as ps
            >>> build = lambda scope: scope.collection([-1, 1, 2]).map(abs).capture()
            >>> ps.example(build).extract()
            [(0, [(1, 2), (2, 1)])]
            >>> from pointstamp.fields import record
            >>> def build(scope):
            ...     return scope.collection([("a", 2), ("b", 3)]).map((record[1] * 10, record[0])).capture()
            >>> ps.example(build).extract()
            [(0, [((20, 'a'), 1), ((30, 'b'), 1)])]
        """
        if isinstance(f, (Field, tuple)):
            return Collection(self.scope, _core.project(self.core, f, name or "map"))
        return self._stage(CollectionStageKind.MAP, f, name)

    def flat_map(self, f: Callable[[T], Iterable[U]], *, name: str | None = None) -> Collection[U]:
        """Each record through a function that returns any number of records."""
        return self._stage(CollectionStageKind.FLAT_MAP, f, name)

    def filter(self, f: Callable[[T], bool] | Field, *, name: str | None = None) -> Collection[T]:
        """The records for which a function is true, or a condition on their parts.

        A condition (see `pointstamp.fields`) is decided without Python.
        """
        if isinstance(f, Field):
            return Collection(self.scope, _core.filter_fields(self.core, f, name or "filter"))
        return self._stage(CollectionStageKind.FILTER, f, name)

    def inspect(self, f: Callable[[T, Time, int], Any], *, name: str | None = None) -> Collection[T]:
        """Calls a function with the record, the time and the diff of each update, and passes the updates on.

        Updates come as operators send them: of one record and time there may be several.
        """
        return self._stage(CollectionStageKind.INSPECT, f, name)

    # ------------------------------------------------------------ multisets

    def concat(self, *others: Collection[T], name: str | None = None) -> Collection[T]:
        """The records of this collection and the others; what is in several is there so much more often.

        Raises:
            GraphError: If one of them is of another scope.
        """
        for other in others:
            check_scope("concat", self.scope, other, Collection)
        streams = [self.core, *(other.core for other in others)]
        return Collection(self.scope, self.scope.core.concatenate(streams))

    def negate(self, *, name: str | None = None) -> Collection[T]:
        """The records with their counts negated: concatenated with others, they are taken away from them."""
        return Collection(self.scope, _core.negate(self.core))

    def consolidate(self, *, name: str | None = None) -> Collection[T]:
        """The same records, of which each time's updates are added up: what cancels is not sent on."""
        return Collection(self.scope, _core.consolidate(self.core))

    def distinct(self, *, name: str | None = None) -> Collection[T]:
        """Each record that is there once or more, once.

        Examples:
            >>> import pointstamp as ps
            >>> ps.example(lambda scope: scope.collection(list("banana")).distinct().capture()).extract()
            [(0, [('a', 1), ('b', 1), ('n', 1)])]
        """
        result = self._reduce_records(Reduction.DISTINCT, name=name)
        result._is_distinct = True
        return result

    def threshold(self, f: Callable[[T, int], int], *, name: str | None = None) -> Collection[T]:
        """Each record as often as a function of it and its count says.

        Args:
            f: Called with a record and how often it is there, which is not 0; returns how often it is in
                the result.
            name: The operator's name.

        Examples:
            >>> import pointstamp as ps
            >>> halve = lambda letter, n: n // 2
            >>> build = lambda scope: scope.collection(list("banana")).threshold(halve).capture()
            >>> ps.example(build).extract()
            [(0, [('a', 1), ('n', 1)])]
        """
        return self._reduce_records(Reduction.THRESHOLD, function_of("threshold", f))

    def count(self, *, name: str | None = None) -> Collection[tuple[T, int]]:
        """Each record with how often it is there: pairs ``(record, count)``.

        Examples:
            >>> import pointstamp as ps
            >>> ps.example(lambda scope: scope.collection(list("banana")).count().capture()).extract()
            [(0, [(('a', 3), 1), (('b', 1), 1), (('n', 2), 1)])]
        """
        return self._reduce_records(Reduction.COUNT, name=name)

    def _reduce_records(
        self, kind: Reduction, argument: Any = None, *, name: str | None = None
    ) -> Collection[Any]:
        arranged = _core.arrange(self.core, False, f"{kind.label}: arrange")
        if self.scope.dims == 1 and kind in {Reduction.DISTINCT, Reduction.COUNT}:
            return Collection(self.scope, None, counted=(arranged, kind), name=name)
        return Collection(self.scope, _core.reduce_arranged(arranged, kind, argument, kind.label))

    # ------------------------------------------------------------ by key

    @overload
    def join(
        self: Collection[tuple[K, V]],
        other: Collection[tuple[K, V2]] | Arranged[K, V2],
        f: None = None,
        *,
        name: str | None = None,
    ) -> Collection[tuple[K, tuple[V, V2]]]: ...
    @overload
    def join(
        self: Collection[tuple[K, V]],
        other: Collection[tuple[K, V2]] | Arranged[K, V2],
        f: Callable[[K, V, V2], U],
        *,
        name: str | None = None,
    ) -> Collection[U]: ...
    @overload
    def join(
        self: Collection[tuple[K, V]],
        other: Collection[tuple[K, V2]] | Arranged[K, V2],
        f: Field | tuple[Any, ...],
        *,
        name: str | None = None,
    ) -> Collection[Any]: ...
    def join(self: Collection[Any], other: Any, f: Any = None, *, name: str | None = None) -> Collection[Any]:
        """Pairs of records with equal keys, of two collections of pairs ``(key, value)``.

        Args:
            other: The other collection, or an arrangement.
            f: Called with the key and the two values; returns a record, always the same one for the same
                arguments. Or an expression over `key`, `left` and `right` of `pointstamp.fields`, which is
                applied without Python. The default is ``(key, (value, other value))``. It may be applied to
                values that are never there together, such as the old value of one side and the new value of
                the other where both change. What comes of that is taken away again, and it must not fail.
            name: The operator's name.

        Raises:
            GraphError: If `other` is of another scope.
            TypeError: When the dataflow runs, for a record that is not a pair.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     ages = scope.collection([("ann", 41), ("bob", 7)])
            ...     towns = scope.collection([("ann", "Ulm"), ("eve", "Rom")])
            ...     return ages.join(towns).capture()
            >>> ps.example(build).extract()
            [(0, [(('ann', (41, 'Ulm')), 1)])]
        """
        return self.arrange().join(other, f)

    def semijoin(
        self: Collection[tuple[K, V]], keys: Collection[K], *, name: str | None = None
    ) -> Collection[tuple[K, V]]:
        """The records ``(key, value)`` whose key is in the other collection, however often it is there.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     ages = scope.collection([("ann", 41), ("bob", 7)])
            ...     return ages.semijoin(scope.collection(["bob", "eve"])).capture()
            >>> ps.example(build).extract()
            [(0, [(('bob', 7), 1)])]
        """
        check_scope("semijoin", self.scope, keys, Collection)
        pairs = self._arranged_by_key("semijoin: arrange")
        there = distinct_keys(keys, name).core
        return Collection(self.scope, _core.join_arranged(pairs, there, JoinKind.LEFT, None, "semijoin"))

    def antijoin(
        self: Collection[tuple[K, V]], keys: Collection[K], *, name: str | None = None
    ) -> Collection[tuple[K, V]]:
        """The records ``(key, value)`` whose key is not in the other collection.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     ages = scope.collection([("ann", 41), ("bob", 7)])
            ...     return ages.antijoin(scope.collection(["bob", "eve"])).capture()
            >>> ps.example(build).extract()
            [(0, [(('ann', 41), 1)])]
        """
        return self.concat(self.semijoin(keys).negate(), name=name)

    def reduce(
        self: Collection[tuple[K, V]],
        f: Callable[[K, list[tuple[V, int]]], Iterable[U]],
        *,
        name: str | None = None,
    ) -> Collection[tuple[K, U]]:
        """Calls a function with all values of a key. The records are pairs ``(key, value)``.

        Args:
            f: Called with a key and its values, in order, each with its count; returns any number of results.
                Values whose count is not positive are left out. It is called for keys whose values have
                changed; one without values has no results.
            name: The operator's name.

        Raises:
            TypeError: When the dataflow runs, for a record that is not a pair.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     words = scope.collection(["ape", "bee", "bear", "ant"])
            ...     initials = words.map(lambda word: (word[0], word))
            ...     return initials.reduce(lambda key, words: [[word for word, _ in words][-1]]).capture()
            >>> ps.example(build).extract()
            [(0, [(('a', 'ape'), 1), (('b', 'bee'), 1)])]
        """
        return self.arrange().reduce(f)

    def min(self: Collection[tuple[K, V]], *, name: str | None = None) -> Collection[tuple[K, V]]:
        """The least value of each key: pairs ``(key, value)``.

        No Python runs for it, as for the operators that follow up to `count_by_key`.
        Values of one type are compared as Python does; values of unlike types are ordered by their types.
        Of values that are kept as pickles (see the book) those that Python orders are refused, and others
        have any order.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     return scope.collection([("a", 3), ("a", 1), ("b", 2)]).min().capture()
            >>> ps.example(build).extract()
            [(0, [(('a', 1), 1), (('b', 2), 1)])]
        """
        return self.arrange().min()

    def max(self: Collection[tuple[K, V]], *, name: str | None = None) -> Collection[tuple[K, V]]:
        """The greatest value of each key: pairs ``(key, value)``."""
        return self.arrange().max()

    def sum(self: Collection[tuple[K, V]], *, name: str | None = None) -> Collection[tuple[K, V]]:
        """The sum of the values of each key, as often as they are there: pairs ``(key, sum)``.

        Values are numbers: ints, floats, bools, `Decimal`, `Fraction` and complex numbers, and of one key not
        both decimals and floats. Sums of ints are exact; floats are added in the order of their
        values.

        Raises:
            TypeError: When the dataflow runs, for a value that is not a number.
        """
        return self.arrange().sum()

    def mean(self: Collection[tuple[K, V]], *, name: str | None = None) -> Collection[tuple[K, float]]:
        """The mean of the values of each key, which are as for `sum`: pairs ``(key, mean)``."""
        return self.arrange().mean()

    def top_k(self: Collection[tuple[K, V]], n: int, *, name: str | None = None) -> Collection[tuple[K, V]]:
        """The `n` greatest values of each key; one that is there twice counts twice.

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
        return self.arrange().top_k(n)

    def count_by_key(self: Collection[tuple[K, V]], *, name: str | None = None) -> Collection[tuple[K, int]]:
        """Counts the records of each key: pairs ``(key, count)``."""
        return self.arrange().count_by_key(name=name)

    def arrange(self: Collection[tuple[K, V]], *, name: str | None = None) -> Arranged[K, V]:
        """The records ``(key, value)`` sorted by key, indexed and kept, for any number of joins and reduces.

        Raises:
            TypeError: When the dataflow runs, for a record that is not a pair.
        """
        return Arranged(self.scope, self._arranged_by_key(), Collection)

    # ------------------------------------------------------------ scopes and loops

    def enter(self, scope: Scope) -> Collection[T]:
        """The same collection in a scope inside the collection's; it is there in every turn of a loop.

        A join in the scope uses the arrangement of the collection outside: it is built once, and kept once.

        Raises:
            GraphError: If `scope` is not directly inside the collection's scope.
        """
        if scope.parent is not self.scope:
            return Collection(scope, scope.core.enter(self.core))  # which says what is wrong
        return Collection(scope, None, outer=self)

    def leave(self) -> Collection[T]:
        """The same collection in the scope around its own; of a loop, what its last turn gives.

        Raises:
            GraphError: If the collection is in a root scope.
        """
        left = self.core.leave()
        assert self.scope.parent is not None
        return Collection(self.scope.parent, left)

    def iterate(
        self, f: Callable[[Scope, Collection[T]], Collection[T]], *, name: str = "Iterate"
    ) -> Collection[T]:
        """Puts the collection through a function again and again, until that changes nothing.

        Each turn must bring the collection closer to what does not change. A turn must end with an operator
        that adds up (`distinct`, `min`, `reduce`, `consolidate`): without one, updates that cancel circulate
        for ever.

        Args:
            f: Called once, with the loop's scope and the collection in a turn; returns the collection of the
                next.
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
        """
        function_of("iterate", f)
        with self.scope.iterative(name) as inner:
            variable = inner.variable(self.enter(inner))
            result = f(inner, variable.collection)
            if not isinstance(result, Collection):
                raise TypeError(
                    f"the function given to iterate returns the collection of the next turn, not {result!r}"
                )
            variable.set(result)
            return result.leave()


def distinct_keys(keys: Collection[K], name: str | None = None) -> Arranged[K, None]:
    """Each of the records once, as a key without a value; the result of `distinct` is arranged so already."""
    if keys._outer is not None:
        return distinct_keys(keys._outer, name).enter(keys.scope)
    once = keys if keys._is_distinct else keys.distinct(name=name and f"{name}: keys")
    there = once._reduction()
    assert there is not None
    return Arranged(keys.scope, there, Collection)
