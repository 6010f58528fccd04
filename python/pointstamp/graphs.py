"""Algorithms on graphs that change, kept up to date.

Each function takes collections and returns a collection that is, at every time, the result of recomputation
from the graph at that time. The work follows the changes: the cost of a change grows with the part of the
result that it changes. For `pagerank` that can be the whole graph; its `rounding` bounds it. The functions
can be used in the scopes of loops, too.

Edges are pairs ``(source, target)`` of nodes, which are records of any kind. None is a node like any other.
The graph is the set of edges, nodes and roots whose count is positive: an edge that was inserted several
times counts once, and an edge that was removed more often than inserted is absent.

A record of another form is a `TypeError` when the dataflow runs, which names the function and the record.
Operators inside of a function have its name in front of theirs, in errors, logs and drawings.
"""

from __future__ import annotations

from functools import wraps
from math import frexp
from numbers import Number
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pointstamp._core import Reduction
from pointstamp._validation import count_of
from pointstamp.api.collection import Collection
from pointstamp.api.collection_nodes import brought_in, one, outside, reduced
from pointstamp.api.column_collection import ColumnCollection
from pointstamp.errors import GraphError
from pointstamp.expr.expressions import key, left, record, right
from pointstamp.plan import collections

if TYPE_CHECKING:
    from collections.abc import Callable

    from pointstamp.api.collection import Variable
    from pointstamp.api.scope import Scope

__all__ = [
    "bfs",
    "clustering_coefficients",
    "connected_components",
    "k_core",
    "label_propagation",
    "pagerank",
    "shortest_paths",
    "strongly_connected_components",
    "triangles",
]

N = TypeVar("N")
F = TypeVar("F", bound="Callable[..., Any]")


def _named(function: F) -> F:
    """Names the operators that a function of graphs makes after it: ``graphs.bfs: join``."""
    title = f"graphs.{function.__name__}"

    @wraps(function)
    def within(edges: Any, *args: Any, **given: Any) -> Any:
        _check_collections(title, edges)
        building = edges.scope._building
        with building.within(title, building.line()):
            return function(edges, *args, **given)

    return cast("F", within)


@_named
def bfs(edges: Collection[tuple[N, N]], roots: Collection[N]) -> Collection[tuple[N, int]]:
    """Counts the edges from the nearest root to each node that can be reached: pairs ``(node, hops)``.

    Args:
        edges: The edges, which are followed from source to target.
        roots: Nodes, of which each is 0 hops away.

    Examples:
        >>> import pointstamp as ps
        >>> from pointstamp import graphs
        >>> def build(scope):
        ...     edges = scope.collection([("a", "b"), ("b", "c"), ("a", "c"), ("d", "a")])
        ...     return graphs.bfs(edges, scope.collection(["a"])).capture()
        >>> ps.example(build).extract()
        [(0, [(('a', 0), 1), (('b', 1), 1), (('c', 1), 1)])]
    """
    roots, edges = _set_of("bfs", roots), _edges("bfs", edges)
    start = roots.map((record, 0), name="roots")
    return _least(start, lambda inner, reached: reached.join(edges.enter(inner), (right, left + 1)))


@_named
def shortest_paths(
    edges: Collection[tuple[N, tuple[N, Any]]], roots: Collection[N]
) -> Collection[tuple[N, Any]]:
    """Computes the length of the shortest path from a root to each node that can be reached.

    Pairs ``(node, distance)``.

    Args:
        edges: Records ``(source, (target, weight))``. Weights are numbers of 0 or more: round a circle of
            less there would always be a shorter path, and the loop would not end. All are of types that
            Python adds up, such as int and float, or int and Decimal.
        roots: Nodes, of which each is at distance 0.

    Raises:
        TypeError: When the dataflow runs, for a record of another form or a weight that is no number.
        ValueError: When the dataflow runs, for a weight that is less than 0 or NaN.

    Examples:
        >>> import pointstamp as ps
        >>> from pointstamp import graphs
        >>> def build(scope):
        ...     edges = scope.collection([("a", ("b", 5)), ("a", ("c", 1)), ("c", ("b", 2))])
        ...     return graphs.shortest_paths(edges, scope.collection(["a"])).capture()
        >>> ps.example(build).extract()
        [(0, [(('a', 0), 1), (('b', 3), 1), (('c', 1), 1)])]
    """
    start = _set_of("shortest_paths", roots).map((record, 0), name="roots")
    # Checked before it is made a set: a record of another form is an error however often it is there.
    edges = edges.filter(_has_weight, name="edges").distinct()
    return _least(start, lambda inner, reached: reached.join(edges.enter(inner), _along))


def _has_weight(edge: Any) -> bool:
    """Returns whether an edge is ``(source, (target, weight))``; raises an error for other records."""
    try:
        source, (target, weight) = edge
    except (TypeError, ValueError):
        raise TypeError(
            f"graphs.shortest_paths: an edge is (source, (target, weight)), and got {edge!r}: map the "
            "edges to that form, such as edges.map(lambda edge: (edge[0], (edge[1], 1)))"
        ) from None
    edge = f"graphs.shortest_paths: the edge from {source!r} to {target!r} has the weight {weight!r}"
    if not isinstance(weight, Number) or isinstance(weight, complex):
        raise TypeError(f"{edge}, of type {type(weight).__name__}: weights are numbers of 0 or more")
    # Of decimals that are NaN, Python refuses a comparison, but not one for being equal.
    if weight != weight or not cast("float", weight) >= 0:
        raise ValueError(f"{edge}: weights are numbers of 0 or more; leave out an edge that cannot be used")
    return True


def _along(source: Any, distance: Any, edge: tuple[Any, Any]) -> tuple[Any, Any]:
    """Extends a distance along an edge."""
    target, weight = edge
    try:
        return target, distance + weight
    except (TypeError, ArithmeticError) as error:
        raise type(error)(
            f"graphs.shortest_paths: the weight {weight!r} of the edge from {source!r} to {target!r} cannot "
            f"be added to the distance {distance!r} ({error}): give all weights one type"
        ) from error


@_named
def connected_components(
    edges: Collection[tuple[N, N]], nodes: Collection[N] | None = None
) -> Collection[tuple[N, N]]:
    """Finds the component of each node, whichever way its edges point: pairs ``(node, least node)``.

    Of nodes whose order a collection does not know, the choice is arbitrary but deterministic.

    Args:
        edges: The edges, in either direction.
        nodes: Nodes that are there also without an edge.

    Examples:
        >>> import pointstamp as ps
        >>> from pointstamp import graphs
        >>> def build(scope):
        ...     edges = scope.collection([(1, 2), (3, 2), (4, 5)])
        ...     return graphs.connected_components(edges).capture()
        >>> ps.example(build).extract()
        [(0, [((1, 1), 1), ((2, 1), 1), ((3, 1), 1), ((4, 4), 1), ((5, 4), 1)])]
    """
    nodes, edges = _more_nodes("connected_components", nodes), _edges("connected_components", edges)
    ways = edges.concat(edges.map(_TURNED))
    # Each node with an edge is the key of a way, and the loop arranges ways by key: nothing else is sorted.
    there: Collection[Any] = ways.count().map(record[0])
    if nodes is not None:
        there = there.concat(nodes).distinct()
    return _least_members(_least_reaching(ways, _labelled(there)))


def _labelled(nodes: Collection[N]) -> Collection[tuple[N, Any]]:
    """Returns each node with its own label: a number that is spread evenly, and the node."""
    return _hashed(nodes, _LABELS).map((record[1], record))


def _hashed(records: Collection[N], numbers: int) -> Collection[tuple[int, N]]:
    """Returns each record behind a number less than `numbers`, which is a function of the record."""
    return Collection(records.scope, one(records.scope, collections.HASHED, records._output, range=numbers))


def _least_reaching(
    edges: Collection[tuple[N, N]], own: Collection[tuple[N, Any]]
) -> Collection[tuple[N, Any]]:
    """Returns the least label of the nodes from which each node can be reached, itself among them.

    The labels with the least numbers begin first. So one has reached most nodes before the many others begin,
    and the loop has not to replace a label by a lesser one in every turn.
    """

    def step(inner: Scope, labels: Collection[tuple[N, Any]]) -> Collection[tuple[N, Any]]:
        return labels.join(edges.enter(inner), (right, left))

    def begin(entered: Collection[tuple[N, Any]]) -> Collection[tuple[N, Any]]:
        scope, number = entered.scope, record[1][0]
        return Collection(scope, one(scope, collections.BY_MAGNITUDE, entered._output, number=number))

    return _least(own, step, _least_of_any, begin)


def _least_members(labels: Collection[tuple[N, Any]]) -> Collection[tuple[N, N]]:
    """Returns each node with the least node of those that have its label.

    A label may have many nodes, and each change of them looks at all values of a key. So a label's nodes are
    in shares: a change looks at those of one, and at the least of each.
    """
    shares = _hashed(labels, _SHARES).map(((record[1][1], record[0]), record[1][0]))
    least = _least_of_any(_least_of_any(shares).map((record[0][0], record[1])))
    return labels.map((record[1], record[0])).join(least, (left, right))


def _least_of_any(pairs: Collection[tuple[N, Any]]) -> Collection[tuple[N, Any]]:
    """Returns one value of each key, as `min`; without a known order, the choice is deterministic."""
    scope = pairs.scope
    return Collection(scope, reduced(scope, collections.MIN, pairs._output, Reduction.MIN, True))


@_named
def strongly_connected_components(
    edges: Collection[tuple[N, N]], nodes: Collection[N] | None = None
) -> Collection[tuple[N, N]]:
    """Finds the strong component of each node: pairs ``(node, least node of its component)``.

    Two nodes are in one component if paths lead from each to the other. Of nodes whose order a collection
    does not know, the least is an arbitrary but deterministic one.

    Args:
        edges: The edges, from source to target.
        nodes: Nodes that are there also without an edge.

    Examples:
        >>> import pointstamp as ps
        >>> from pointstamp import graphs
        >>> def build(scope):
        ...     edges = scope.collection([(1, 2), (2, 1), (2, 3), (3, 3)])
        ...     return graphs.strongly_connected_components(edges).capture()
        >>> ps.example(build).extract()
        [(0, [((1, 1), 1), ((2, 1), 1), ((3, 3), 1)])]
    """
    name = "strongly_connected_components"
    nodes, edges = _more_nodes(name, nodes), _edges(name, edges)
    turned = edges.map(_TURNED)
    # Of all nodes that have an edge, in every turn: a node that has none left is the only one with its label.
    own = _labelled(_nodes(edges))

    def trim(inner: Scope, remaining: Collection[Any]) -> Collection[Any]:
        forward = _within_one_label(inner, remaining, edges, own)
        return _within_one_label(inner, forward.map(_TURNED), turned, own).map(_TURNED)

    cycles = edges.iterate(trim)
    # The remaining edges run inside of components; a node without one is a component of its own.
    within = _nodes(cycles)
    labels = _least_members(_least_reaching(cycles, _labelled(within)))
    alone = _nodes(edges, nodes).map((record, record)).join(within.map((record, None)), how="anti")
    return labels.concat(alone)


def _within_one_label(
    inner: Scope,
    remaining: Collection[tuple[N, N]],
    all_edges: Collection[tuple[N, N]],
    own: Collection[tuple[N, Any]],
) -> Collection[tuple[N, N]]:
    """Returns the edges whose two ends are reached by the same least label, along the remaining edges."""
    labels = _least_reaching(remaining, own.enter(inner))
    by_source = all_edges.enter(inner).join(labels, (left, (key, right)))
    both = by_source.join(labels, (left[0], key, left[1], right))
    return both.filter(record[2] == record[3]).map((record[0], record[1]))


@_named
def pagerank(
    edges: Collection[tuple[N, N]],
    nodes: Collection[N] | None = None,
    *,
    iterations: int = 20,
    damping: float = 0.85,
    rounding: float = 1e-4,
) -> Collection[tuple[N, float]]:
    """Computes PageRank after a number of turns, as Graphalytics defines it: pairs ``(node, rank)``.

    The ranks add up to 1, within the error of `rounding`. A node without edges out of it shares its
    rank among all.

    One edge changes the ranks of nearly all nodes, most of them by next to nothing. So ranks are rounded in
    each turn to multiples of `rounding`, measured in mean ranks, and a change that rounds to nothing is not
    propagated. The result does not depend on the history of the graph: it equals recomputation with the same
    `rounding`.

    A turn rounds each rank twice, each time by half of `rounding` mean ranks at most. A turn multiplies the
    sum of all errors of the turn before by `damping` at most, because it shares out that much of each rank.
    So the absolute errors of all nodes together are at most ``rounding * (1 + damping + damping**2 + ...)``
    with `iterations` terms, where all ranks together are 1: at most ``rounding / (1 - damping)``, which is
    6.7e-4 by default.

    Args:
        edges: The edges, from source to target.
        nodes: Nodes that are there also without an edge.
        iterations: The number of turns, from ranks that are all equal.
        damping: The share of a rank that is passed on along edges.
        rounding: The step to which ranks are rounded, as a share of the mean rank, from 0 to 1. It is taken
            down to a power of 2. A greater one makes changes of the graph cheaper and ranks less exact; with
            0 nothing is rounded, and a change of one edge costs as much as computing anew, or more.

    Raises:
        GraphError: If `iterations` is less than 0, or `damping` or `rounding` not from 0 to 1.

    Examples:
        >>> import pointstamp as ps
        >>> from pointstamp import graphs
        >>> def build(scope):
        ...     edges = scope.collection([(1, 2), (2, 1), (3, 1)])
        ...     ranks = graphs.pagerank(edges, iterations=50)
        ...     return ranks.map(lambda pair: (pair[0], round(pair[1], 2))).capture()
        >>> ps.example(build).extract()
        [(0, [((1, 0.49), 1), ((2, 0.46), 1), ((3, 0.05), 1)])]
    """
    nodes, edges = _more_nodes("pagerank", nodes), _edges("pagerank", edges)
    _check_iterations("pagerank", iterations)
    _check_shares("pagerank", damping=damping, rounding=rounding)
    there = _nodes(edges, nodes)
    targets = edges.arrange()
    degrees = edges.count().arrange()
    sinks = there.map((record, None)).join(edges, how="anti")
    everything: Any = there.map((None, 1)).sum().arrange()
    by_node = there.map((None, record)).arrange()
    # In mean ranks, so that one more node does not change all others: they are 1 at first, and their sum is
    # the number of nodes.
    ranks: Any = there.map((record, 1.0))
    for _ in range(iterations):
        arranged = ranks.arrange()
        passed = arranged.join(degrees, (key, left / right)).join(targets, (right, left))
        lost = arranged.join(sinks, (None, left))
        lost = lost.concat(there.map((None, 0.0))).sum()
        base = everything.join(lost, (None, _rounded(1 - damping + damping * right / left, rounding)))
        base = base.join(by_node, (right, left))
        ranks = passed.map((record[0], record[1] * damping)).concat(base).sum()
        if rounding:
            ranks = ranks.map((record[0], _rounded(record[1], rounding)))
    return ranks.map((None, record)).join(everything, (left[0], left[1] / right))  # type: ignore[no-any-return]


def _rounded(number: Any, rounding: float) -> Any:
    """Rounds an expression to multiples of the greatest power of 2 that is `rounding` at most.

    Floats of the size of `coarse` are the multiples of that power, so that the sum is rounded to one of them.
    """
    if not rounding:
        return number
    coarse = 1.5 * 2.0 ** (52 + frexp(rounding)[1] - 1)
    return number + coarse - coarse


@_named
def label_propagation(
    edges: Collection[tuple[N, N]], nodes: Collection[N] | None = None, *, iterations: int
) -> Collection[tuple[N, N]]:
    """Finds communities by label propagation, as Graphalytics defines it (CDLP): pairs ``(node, label)``.

    Each node begins with itself as its label, and takes in every turn the label that is most frequent among
    its neighbours, the least of several. Edges count in both directions: two nodes with edges both ways are
    neighbours twice.

    Args:
        edges: The edges. Of an undirected graph, each once.
        nodes: Nodes that are there also without an edge.
        iterations: The number of turns.

    Raises:
        GraphError: If `iterations` is less than 0.

    Examples:
        >>> import pointstamp as ps
        >>> from pointstamp import graphs
        >>> def build(scope):
        ...     edges = scope.collection([(1, 2), (2, 3), (1, 3), (4, 5)])
        ...     return graphs.label_propagation(edges, iterations=3).capture()
        >>> ps.example(build).extract()
        [(0, [((1, 1), 1), ((2, 1), 1), ((3, 1), 1), ((4, 5), 1), ((5, 4), 1)])]
    """
    nodes, edges = _more_nodes("label_propagation", nodes), _edges("label_propagation", edges)
    _check_iterations("label_propagation", iterations)
    ways = edges.concat(edges.map(_TURNED)).arrange()
    labels: Any = _nodes(edges).map((record, record))
    for _ in range(iterations):
        seen = ways.join(labels, (left, right))
        labels = seen.map_groups(lambda _, counted: [_most_frequent(counted)])
    if nodes is not None:
        alone = nodes.map((record, record)).join(_nodes(edges).map((record, None)), how="anti")
        labels = labels.concat(alone)
    return labels  # type: ignore[no-any-return]  # of the turns each has another type


def _most_frequent(counted: list[tuple[N, int]]) -> N:
    # Values come in order: the first of the greatest counts is the least.
    return max(counted, key=lambda pair: pair[1])[0]


@_named
def clustering_coefficients(
    edges: Collection[tuple[N, N]], nodes: Collection[N] | None = None
) -> Collection[tuple[N, float]]:
    """Computes the share of the pairs of a node's neighbours that have an edge.

    Pairs ``(node, coefficient)``, for every node, as Graphalytics defines them (LCC). Neighbours are the
    nodes to or from which an edge leads. The ordered pairs of neighbours count for which an edge leads from
    the first to the second. A node with fewer than two neighbours has 0.

    Args:
        edges: The edges. Of an undirected graph, each in both directions.
        nodes: Nodes that are there also without an edge.

    Examples:
        >>> import pointstamp as ps
        >>> from pointstamp import graphs
        >>> def build(scope):
        ...     edges = scope.collection([(1, 2), (1, 3), (2, 3)])
        ...     return graphs.clustering_coefficients(edges).capture()
        >>> ps.example(build).extract()
        [(0, [((1, 0.5), 1), ((2, 0.5), 1), ((3, 0.5), 1)])]
    """
    nodes, edges = _more_nodes("clustering_coefficients", nodes), _edges("clustering_coefficients", edges)
    there = _nodes(edges, nodes)
    edges = edges.filter(record[0] != record[1])
    both = _both_ways(edges)
    neighbours = both.arrange()
    # Each edge as seen from the nodes that are neighbours of both of its ends: (source, target, node) met
    # twice.
    at_source = edges.join(neighbours, ((left, right), key))
    met = at_source.join(both.map((record, None)), how="semi")
    found = met.map((record[0][1], 1)).sum()
    # A node with one neighbour is in no triangle. It may have been in one before: the join is applied to the
    # pairs found then with the present degree, too, and its results are removed again.
    degrees = neighbours.count().filter(record[1] > 1)
    zeros = there.map((record, 0.0))
    some = found.join(degrees, (key, left / (right * (right - 1))))
    return some.concat(zeros).sum()


@_named
def triangles(edges: Collection[tuple[N, N]]) -> Collection[tuple[N, N, N]]:
    """Finds the triangles of an undirected graph, each once: triples of nodes in their order.

    Args:
        edges: The edges, in either direction or in both.

    Examples:
        >>> import pointstamp as ps
        >>> from pointstamp import graphs
        >>> def build(scope):
        ...     return graphs.triangles(scope.collection([(2, 1), (2, 3), (3, 1), (3, 4)])).capture()
        >>> ps.example(build).extract()
        [(0, [((1, 2, 3), 1)])]
    """
    up = _upwards(_edges("triangles", edges))
    arranged = up.arrange()
    wedges: Any = arranged.join(arranged, ((left, right), key))
    closed: Collection[Any] = wedges.join(up.map((record, None)), how="semi")
    return closed.map((record[1], record[0][0], record[0][1]))


@_named
def k_core(edges: Collection[tuple[N, N]], k: int) -> Collection[tuple[N, N]]:
    """Finds the edges among the nodes of the k-core of an undirected graph, each in both directions.

    The k-core is the rest of the graph when nodes with fewer than `k` neighbours are removed until there are
    none.

    Args:
        edges: The edges, in either direction or in both.
        k: The least number of neighbours, 1 or more.

    Raises:
        GraphError: If `k` is less than 1.

    Examples:
        >>> import pointstamp as ps
        >>> from pointstamp import graphs
        >>> def build(scope):
        ...     core = graphs.k_core(scope.collection([(1, 2), (2, 3), (3, 1), (3, 4)]), 2)
        ...     return core.map(lambda edge: edge[0]).distinct().capture()
        >>> ps.example(build).extract()
        [(0, [(1, 1), (2, 1), (3, 1)])]
    """
    if k < 1:
        raise GraphError(f"graphs.k_core takes the least number of neighbours, 1 or more, not {k!r}")
    both = _both_ways(_edges("k_core", edges)).filter(record[0] != record[1])

    def turn(_: Scope, remaining: Collection[Any]) -> Collection[Any]:
        strong = remaining.count().filter(record[1] >= k).map(record[0]).distinct().map((record, None))
        # Both ends are strong: the edge is met by its source, turned round, and met by its target.
        return remaining.join(strong, how="semi").map(_TURNED).join(strong, how="semi").map(_TURNED)

    return both.iterate(turn)


# ------------------------------------------------------------ common parts


_TURNED = (record[1], record[0])

_LABELS = 1 << 31
"""The number of a label's possible numbers: with a node of 32 bits they sort as one integer."""

_SHARES = 512
"""The number of shares of a component's nodes, in which their least is kept."""


def _least(
    start: Collection[tuple[N, Any]],
    step: Callable[[Scope, Collection[tuple[N, Any]]], Collection[tuple[N, Any]]],
    least_of: Callable[[Collection[tuple[N, Any]]], Collection[tuple[N, Any]]] = Collection.min,
    begin: Callable[[Collection[tuple[N, Any]]], Collection[tuple[N, Any]]] = lambda entered: entered,
) -> Collection[tuple[N, Any]]:
    """Returns the least value of each key, among the values at the start and those that steps reach.

    The values that steps reach circulate in the loop, and not the least ones: `step` joins the least ones,
    and a join reads the arrangement of the reduction.
    """
    with start.scope.iterative("Least") as inner:
        led_to: Variable[Collection[Any]] = inner.variable()
        least: Collection[tuple[N, Any]] = least_of(begin(start.enter(inner)).concat(led_to.collection))
        led_to.set(step(inner, least))
        return least.leave()


def _edges(name: str, edges: Collection[tuple[N, N]]) -> Collection[tuple[N, N]]:
    """Returns the graph: each edge with a positive count, once; a record that is no pair is an error."""
    expected = f"graphs.{name}: an edge is a pair (source, target)"
    scope, found, entered = outside(edges.scope, edges._output)  # one set for all scopes
    checked = one(scope, collections.CHECK_PAIRS, found, expected=expected)
    once = reduced(scope, collections.DISTINCT, checked, Reduction.DISTINCT)
    return Collection(edges.scope, brought_in(once, entered))


def _set_of(name: str, given: Collection[N]) -> Collection[N]:
    """Returns each record with a positive count, once, of nodes that a caller gives."""
    _check_collections(f"graphs.{name}", given)
    return given.distinct()


def _more_nodes(name: str, nodes: Collection[N] | None) -> Collection[N] | None:
    """Returns the nodes of `_set_of`, where nodes are given."""
    return None if nodes is None else _set_of(name, nodes)


def _nodes(edges: Collection[tuple[N, N]], nodes: Collection[N] | None = None) -> Collection[N]:
    """Returns the nodes that have an edge, and other nodes, from sets."""
    ends = edges.map(record[0], name="sources").concat(edges.map(record[1], name="targets"))
    return (ends if nodes is None else ends.concat(nodes)).distinct()


def _both_ways(edges: Collection[tuple[N, N]]) -> Collection[tuple[N, N]]:
    """Each edge in both directions, once."""
    return edges.concat(edges.map(_TURNED)).distinct()


def _upwards(edges: Collection[tuple[N, N]]) -> Collection[tuple[N, N]]:
    """Each edge between different nodes once, from the lesser node to the greater."""
    falling = edges.filter(record[0] > record[1]).map(_TURNED)
    return edges.filter(record[0] < record[1]).concat(falling).distinct()


def _check_collections(name: str, *given: Any) -> None:
    """Refuses other things than collections. The operators that read them check their scopes."""
    for collection in given:
        if isinstance(collection, ColumnCollection):
            raise TypeError(
                f"{name} needs collections of records, and {collection!r} is of columns: "
                ".to_records() gives its rows as records"
            )
        if not isinstance(collection, Collection):
            raise TypeError(
                f"{name} needs collections, not {collection!r}: scope.collection(...) makes one of "
                "records, and to_collection() one of a stream"
            )


def _check_iterations(name: str, iterations: int) -> None:
    count_of(f"graphs.{name} takes a number of turns", iterations, least=0, error=GraphError)


def _check_shares(name: str, **shares: float) -> None:
    for what, share in shares.items():
        if not 0 <= share <= 1:
            raise GraphError(f"graphs.{name}: {what} is a share from 0 to 1, not {share!r}")
