"""Collections, with every operator as a method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, overload

from pointstamp import _core
from pointstamp._core import Field, JoinKind, Reduction
from pointstamp._validation import count_of, function_of, unknown_attribute
from pointstamp.api.arranged import arranged, check_scope, joined_with
from pointstamp.api.collection_nodes import (
    concatenated,
    distinct_keys,
    joined,
    named_part,
    one,
    reduced,
)
from pointstamp.api.collection_outputs import CollectionOutputs
from pointstamp.api.variable import iterated
from pointstamp.plan import collections

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pointstamp.api.arranged import Arranged
    from pointstamp.api.scope import Scope
    from pointstamp.plan.node import Kind
    from pointstamp.types import Time

__all__ = ["Collection"]

T = TypeVar("T")
U = TypeVar("U")
K = TypeVar("K")
V = TypeVar("V")
V2 = TypeVar("V2")


class Collection(CollectionOutputs[T]):
    """A multiset that changes: updates ``(record, time, diff)``.

    Every method adds nodes to the dataflow's plan.

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
            _core.check_fields(f)
            return self._one(collections.PROJECT, name, fields=f)
        return self._stage(collections.MAP, f, name)

    def flat_map(self, f: Callable[[T], Iterable[U]], *, name: str | None = None) -> Collection[U]:
        """Each record through a function that returns any number of records."""
        return self._stage(collections.FLAT_MAP, f, name)

    def filter(self, f: Callable[[T], bool] | Field, *, name: str | None = None) -> Collection[T]:
        """The records for which a function is true, or a condition on their parts.

        A condition (see `pointstamp.fields`) is decided without Python.
        """
        if isinstance(f, Field):
            _core.check_fields(f)
            return self._one(collections.FILTER_FIELDS, name, condition=f)
        return self._stage(collections.FILTER, f, name)

    def inspect(self, f: Callable[[T, Time, int], Any], *, name: str | None = None) -> Collection[T]:
        """Calls a function with the record, the time and the diff of each update, and passes the updates on.

        Updates come as operators send them: of one record and time there may be several.
        """
        return self._stage(collections.INSPECT, f, name)

    # ------------------------------------------------------------ multisets

    def concat(self, *others: Collection[T], name: str | None = None) -> Collection[T]:
        """The records of this collection and the others; what is in several is there so much more often.

        Raises:
            GraphError: If one of them is of another scope.
        """
        for other in others:
            check_scope("concat", self.scope, other, Collection)
        outputs = [self._output, *(other._output for other in others)]
        return Collection(self.scope, concatenated(self.scope, outputs, name=name))

    def negate(self, *, name: str | None = None) -> Collection[T]:
        """The records with their counts negated: concatenated with others, they are taken away from them."""
        return self._one(collections.NEGATE, name)

    def consolidate(self, *, name: str | None = None) -> Collection[T]:
        """The same records, of which each time's updates are added up: what cancels is not sent on."""
        return self._one(collections.CONSOLIDATE, name)

    def distinct(self, *, name: str | None = None) -> Collection[T]:
        """Each record that is there once or more, once.

        Examples:
            >>> import pointstamp as ps
            >>> ps.example(lambda scope: scope.collection(list("banana")).distinct().capture()).extract()
            [(0, [('a', 1), ('b', 1), ('n', 1)])]
        """
        return self._reduced(collections.DISTINCT, Reduction.DISTINCT, name=name)

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
        function = function_of("threshold", f)
        return self._reduced(collections.THRESHOLD, Reduction.THRESHOLD, function, name=name)

    def count(self, *, name: str | None = None) -> Collection[tuple[T, int]]:
        """Each record with how often it is there: pairs ``(record, count)``.

        Examples:
            >>> import pointstamp as ps
            >>> ps.example(lambda scope: scope.collection(list("banana")).count().capture()).extract()
            [(0, [(('a', 3), 1), (('b', 1), 1), (('n', 2), 1)])]
        """
        return self._reduced(collections.COUNT, Reduction.COUNT, name=name)

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
        return Collection(self.scope, joined_with(self, other, f, name))

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
        there = distinct_keys(self.scope, keys._output, named_part(name, "keys"))
        kind, result = collections.SEMIJOIN, JoinKind.LEFT
        return Collection(self.scope, joined(self.scope, kind, self._output, there, result, name=name))

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
        met = self.semijoin(keys, name=named_part(name, "semijoin")).negate(name=named_part(name, "negate"))
        return self.concat(met, name=name)

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
        return self._reduced(collections.REDUCE, Reduction.REDUCE, function_of("reduce", f), name=name)

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
        return self._reduced(collections.MIN, Reduction.MIN, name=name)

    def max(self: Collection[tuple[K, V]], *, name: str | None = None) -> Collection[tuple[K, V]]:
        """The greatest value of each key: pairs ``(key, value)``."""
        return self._reduced(collections.MAX, Reduction.MAX, name=name)

    def sum(self: Collection[tuple[K, V]], *, name: str | None = None) -> Collection[tuple[K, V]]:
        """The sum of the values of each key, as often as they are there: pairs ``(key, sum)``.

        Values are numbers: ints, floats, bools, `Decimal`, `Fraction` and complex numbers, and of one key not
        both decimals and floats. Sums of ints are exact; floats are added in the order of their
        values.

        Raises:
            TypeError: When the dataflow runs, for a value that is not a number.
        """
        return self._reduced(collections.SUM, Reduction.SUM, name=name)

    def mean(self: Collection[tuple[K, V]], *, name: str | None = None) -> Collection[tuple[K, float]]:
        """The mean of the values of each key, which are as for `sum`: pairs ``(key, mean)``."""
        return self._reduced(collections.MEAN, Reduction.MEAN, name=name)

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
        n = count_of("top_k takes a number of values", n)
        return self._reduced(collections.TOP_K, Reduction.TOP_K, n, name=name)

    def count_by_key(self: Collection[tuple[K, V]], *, name: str | None = None) -> Collection[tuple[K, int]]:
        """Counts the records of each key: pairs ``(key, count)``."""
        return self._reduced(collections.COUNT_BY_KEY, Reduction.COUNT_BY_KEY, name=name)

    def arrange(self: Collection[tuple[K, V]], *, name: str | None = None) -> Arranged[K, V]:
        """The records ``(key, value)`` sorted by key, indexed and kept, for any number of joins and reduces.

        Raises:
            TypeError: When the dataflow runs, for a record that is not a pair.
        """
        return arranged(self.scope, self._output, name)

    # ------------------------------------------------------------ scopes and loops

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
        return iterated(self, f, name)
