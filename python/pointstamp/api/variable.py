"""Collections that are defined by themselves: the variables of a loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pointstamp import _core
from pointstamp._validation import function_of, suggesting
from pointstamp.api.classes import collection_of
from pointstamp.api.collection_nodes import concatenated, named_part, one
from pointstamp.api.collection_outputs import Multiset
from pointstamp.errors import GraphError
from pointstamp.plan import collections
from pointstamp.plan.node import Form, Output

if TYPE_CHECKING:
    from collections.abc import Callable

    from pointstamp.api.scope import Scope

__all__ = ["Variable", "check_columns", "iterated"]

C = TypeVar("C", bound=Multiset)


@suggesting
class Variable(Generic[C]):
    """A collection of a loop: first what it starts from, then in each turn what the turn before set it to.

    Make one with `Scope.variable` in a scope of `iterative()`; several in one scope define each other. The
    loop ends when a turn changes none of them.

    Attributes:
        collection: What the variable is in a turn of the loop: a `Collection`, or a `ColumnCollection`.

    Examples:
        What can be reached from 1, one step further in each turn:

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
        self, scope: Scope, initial: C | None, columns: _core.Schema | None, name: str | None
    ) -> None:
        if initial is not None:
            given: object = initial
            if not isinstance(given, Multiset) or (columns is not None and given._output.schema is None):
                of = "" if columns is None else " of columns"
                raise TypeError(f"a variable{of} starts from a collection{of}, not {initial!r}")
            check_columns(columns, initial, "variable")
            columns = initial._output.schema
        if not scope.in_loop:
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
            loop, stream = _core.follow(scope.core, 1, missing)
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
        """Says what the variable is in the next turn. Call it once.

        Raises:
            GraphError: If the variable is set already, or `result` is of another scope or has other columns.
            TypeError: If it is not a collection, of columns where the variable is of columns.
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
            # What it starts from is there in every turn; the turns after the first take it away again.
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
        given: What should be one of its kind.
        sentence: What is said, with places for ``of columns``.

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


def iterated(start: C, f: Callable[[Scope, C], C], name: str) -> C:
    """Puts a collection through a function until that changes nothing; see `Collection.iterate`."""
    function_of("iterate", f)
    with start.scope.iterative(name) as inner:
        entered = start.enter(inner)
        variable = Variable(inner, entered, None, None)
        result = f(inner, variable.collection)
        check_kind(start, result, "the function given to iterate returns the collection{0} of the next turn")
        check_columns(start._output.schema, result, "iterate")
        variable.set(result)
        return result.leave()
