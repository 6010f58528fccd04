"""`pointstamp.progress` against a brute-force reading of could-result-in, on random graphs.

The oracle knows no summaries of paths and no antichains of them: it follows every hop, time by time.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from effort import examples
from pointstamp import GraphError, Summary, Time, TimeError
from pointstamp.order import Antichain
from pointstamp.progress import Graph, Scheduler, Source, Target, Tracker

TOP = 2**64 - 1

Place = Source | Target
Coordinates = tuple[int, ...]


class Plan(NamedTuple):
    """A graph, as data."""

    dims: int
    nodes: list[tuple[int, int, dict[tuple[int, int], list[Coordinates]]]]
    edges: list[tuple[Source, Target]]

    def places(self) -> list[Place]:
        found: list[Place] = []
        for node, (inputs, outputs, _) in enumerate(self.nodes):
            found += [Target(node, port) for port in range(inputs)]
            found += [Source(node, port) for port in range(outputs)]
        return found

    def hops(self, place: Place) -> Iterator[tuple[Place, Coordinates]]:
        """Yields the next places of a time, and the summaries on the way."""
        if isinstance(place, Source):
            yield from ((target, (0,) * self.dims) for source, target in self.edges if source == place)
        else:
            for (port, output), summaries in self.nodes[place.node][2].items():
                if port == place.port:
                    yield from ((Source(place.node, output), summary) for summary in summaries)

    def graph(self) -> Graph:
        graph = Graph(dims=self.dims)
        for index, (inputs, outputs, summaries) in enumerate(self.nodes):
            written = {pair: [outward(s) for s in values] for pair, values in summaries.items()}
            assert graph.add_node(inputs, outputs, written, name=f"n{index}") == index
        for source, target in self.edges:
            graph.add_edge(source, target)
        return graph

    def lazy_cycles(self) -> dict[Place, set[Place]]:
        """The places that a time reaches unchanged from each place, by one hop or more."""
        reached: dict[Place, set[Place]] = {}
        for start in self.places():
            found: set[Place] = set()
            todo = [start]
            while todo:
                for place, summary in self.hops(todo.pop()):
                    if not any(summary) and place not in found:
                        found.add(place)
                        todo.append(place)
            reached[start] = found
        return reached

    def could_result_in(self, time1: Coordinates, start: Place, time2: Coordinates, end: Place) -> bool:
        """Follows every hop, one time after the other, as long as it is not past `time2`."""
        if not before(time1, time2):
            return False
        seen = {(start, time1)}
        todo = [(start, time1)]
        while todo:
            place, time = todo.pop()
            if place == end:
                return True
            for following, summary in self.hops(place):
                state = following, add(time, summary)
                if before(state[1], time2) and state not in seen:
                    seen.add(state)
                    todo.append(state)
        return False

    def frontiers(self, counts: "Counter[tuple[Place, Coordinates]]") -> dict[Place, set[Coordinates]]:
        """The least times that can appear at each place, found by letting every pointstamp travel."""
        least: dict[Place, set[Coordinates]] = {place: set() for place in self.places()}
        todo = [pointstamp for pointstamp, count in counts.items() if count > 0]
        while todo:
            place, time = todo.pop()
            if not any(before(other, time) for other in least[place]):
                least[place] = {t for t in least[place] if not before(time, t)} | {time}
                todo += [(following, add(time, summary)) for following, summary in self.hops(place)]
        return least


def before(a: Coordinates, b: Coordinates) -> bool:
    return all(x <= y for x, y in zip(a, b, strict=True))


def add(a: Coordinates, b: Coordinates) -> Coordinates:
    return tuple(x + y for x, y in zip(a, b, strict=True))


def outward(time: Coordinates) -> Time:
    """Writes a time as Python programs do."""
    return time[0] if len(time) == 1 else time


def inward(time: Time) -> Coordinates:
    return time if isinstance(time, tuple) else (time,)


@st.composite
def plans(draw: st.DrawFn, *, lively: bool = True) -> Plan:
    """A random graph; a lively one has no cycle on which a time may stand still."""
    dims = draw(st.integers(1, 3))
    increments = st.tuples(*[st.integers(0, 2)] * dims)
    nodes = []
    for _ in range(draw(st.integers(1, 5))):
        inputs, outputs = draw(st.integers(0, 2)), draw(st.integers(0, 2))
        pairs = [(i, o) for i in range(inputs) for o in range(outputs)]
        values = st.lists(increments, max_size=3)
        nodes.append((inputs, outputs, {pair: draw(values) for pair in pairs if draw(st.booleans())}))
    sources = [Source(n, o) for n, (_, outputs, _) in enumerate(nodes) for o in range(outputs)]
    targets = [Target(n, i) for n, (inputs, _, _) in enumerate(nodes) for i in range(inputs)]
    edges: list[tuple[Source, Target]] = []
    if sources and targets:
        ends = st.tuples(st.sampled_from(sources), st.sampled_from(targets))
        edges = draw(st.lists(ends, max_size=8))
    plan = Plan(dims, nodes, edges)
    if lively:
        standing = plan.lazy_cycles()
        for start, reached in standing.items():
            if start in reached and isinstance(start, Target):
                for (port, _), summaries in nodes[start.node][2].items():
                    if port == start.port:
                        summaries[:] = [s if any(s) else (*s[:-1], 1) for s in summaries]
    return plan


def places_of(plan: Plan) -> st.SearchStrategy[Place]:
    return st.sampled_from(plan.places() or [Source(0, 0)])


def times_of(plan: Plan) -> st.SearchStrategy[Coordinates]:
    return st.tuples(*[st.integers(0, 3)] * plan.dims)


@settings(max_examples=examples(1000))
@given(st.data())
def test_could_result_in(data: st.DataObject) -> None:
    plan = data.draw(plans())
    graph = plan.graph()
    if not plan.places():
        return
    start, end = data.draw(places_of(plan)), data.draw(places_of(plan))
    time1, time2 = data.draw(times_of(plan)), data.draw(times_of(plan))
    later = tuple(3 * coordinate for coordinate in time2)
    for then in (time2, later):
        expected = plan.could_result_in(time1, start, then, end)
        event(f"could result in: {expected}")
        assert graph.could_result_in(outward(time1), start, outward(then), end) is expected


@settings(max_examples=examples(500))
@given(st.data())
def test_path_summaries_are_the_least_results_of_the_least_time(data: st.DataObject) -> None:
    plan = data.draw(plans())
    if not plan.places():
        return
    graph = plan.graph()
    start, end = data.draw(places_of(plan)), data.draw(places_of(plan))
    expected = plan.frontiers(Counter({(start, (0,) * plan.dims): 1}))[end]
    summaries = graph.path_summaries(start, end)
    assert summaries == [outward(summary) for summary in sorted(expected)]


@settings(max_examples=examples(1000))
@given(plans(lively=False))
def test_a_cycle_that_does_not_advance_time_is_refused_by_name(plan: Plan) -> None:
    standing = plan.lazy_cycles()
    stuck = {place.node for place, reached in standing.items() if place in reached}
    event(f"stuck: {bool(stuck)}")
    for make in (lambda graph: graph.build(), Scheduler):
        if stuck:
            with pytest.raises(GraphError, match="does not advance") as caught:
                make(plan.graph())
            named = {node for node in range(len(plan.nodes)) if f'"n{node}"' in str(caught.value)}
            assert named
            assert named <= stuck
        else:
            make(plan.graph())


@settings(max_examples=examples(1000))
@given(st.data())
def test_tracker(data: st.DataObject) -> None:
    plan = data.draw(plans())
    if not plan.places():
        return
    tracker = plan.graph().build()
    counts: Counter[tuple[Place, Coordinates]] = Counter()
    then = plan.frontiers(counts)
    changes = st.tuples(places_of(plan), times_of(plan), st.integers(-2, 2))
    for batch in data.draw(st.lists(st.lists(changes, max_size=5), max_size=6)):
        for place, time, diff in batch:
            tracker.update(place, outward(time), diff)
            counts[place, time] += diff
        now = plan.frontiers(counts)
        expected = Counter({(place, outward(time)): 1 for place in now for time in now[place]})
        expected.subtract({(place, outward(time)): 1 for place in then for time in then[place]})
        reported = tracker.propagate()
        assert len(reported) == len({(place, time) for place, time, _ in reported})
        assert {(place, time): diff for place, time, diff in reported} == {
            key: diff for key, diff in expected.items() if diff
        }
        for place, times in now.items():
            assert tracker.frontier(place) == Antichain(map(outward, times))
        then = now
    assert tracker.propagate() == []


@settings(max_examples=examples(500))
@given(st.data())
def test_scheduler(data: st.DataObject) -> None:
    plan = data.draw(plans())
    if not plan.places():
        return
    table = Scheduler(plan.graph())
    counts: Counter[tuple[Place, Coordinates]] = Counter()
    changes = st.tuples(places_of(plan), times_of(plan), st.integers(-2, 2))
    for place, time, diff in data.draw(st.lists(changes, max_size=12)):
        table.update(place, outward(time), diff)
        counts[place, time] += diff
    active = [pointstamp for pointstamp, count in counts.items() if count > 0]
    frontier = set()
    for place, time in counts:
        precursors = sum(
            plan.could_result_in(t, p, time, place) for p, t in active if (p, t) != (place, time)
        )
        assert table.occurrence_count(place, outward(time)) == counts[place, time]
        assert table.precursor_count(place, outward(time)) == precursors
        if counts[place, time] > 0 and precursors == 0:
            frontier.add((place, outward(time)))
    found = table.frontier()
    assert set(found) == frontier
    assert len(found) == len(frontier)


def test_the_oracle_is_not_idle() -> None:
    """A loop that adds 1, seen by the oracle alone."""
    nodes: list[Any] = [(1, 1, {(0, 0): [(1,)]})]
    plan = Plan(1, nodes, [(Source(0, 0), Target(0, 0))])
    assert plan.could_result_in((0,), Target(0, 0), (3,), Source(0, 0))
    assert not plan.could_result_in((0,), Target(0, 0), (0,), Source(0, 0))
    counts: Counter[tuple[Place, Coordinates]] = Counter({(Target(0, 0), (2,)): 1, (Source(0, 0), (0,)): -1})
    assert plan.frontiers(counts) == {Target(0, 0): {(2,)}, Source(0, 0): {(3,)}}


def loop(summary: Summary = 1, dims: int = 1) -> Graph:
    graph = Graph(dims=dims)
    graph.add_node(1, 1, {(0, 0): [summary]})
    graph.add_edge(Source(0, 0), Target(0, 0))
    return graph


def test_left_out_summaries_are_the_identity_everywhere() -> None:
    graph = Graph(dims=2)
    graph.add_node(2, 2)
    assert graph.path_summaries(Target(0, 1), Source(0, 0)) == [(0, 0)]
    graph.add_node(2, 2, {(0, 0): [1, (1, 0), (1, 1)], (1, 1): []})
    assert graph.path_summaries(Target(1, 0), Source(1, 0)) == [(0, 1), (1, 0)]
    assert graph.path_summaries(Target(1, 1), Source(1, 1)) == []
    assert graph.path_summaries(Target(1, 0), Source(1, 1)) == []
    assert graph.path_summaries(Target(1, 0), Target(1, 0)) == [(0, 0)]


def test_times_without_coordinates() -> None:
    graph = Graph(dims=0)
    graph.add_node(0, 1)
    graph.add_node(1, 0)
    graph.add_edge(Source(0, 0), Target(1, 0))
    tracker = graph.build()
    tracker.update(Source(0, 0), (), 1)
    assert tracker.propagate() == [(Source(0, 0), (), 1), (Target(1, 0), (), 1)]
    assert graph.path_summaries(Source(0, 0), Target(1, 0)) == [()]


def test_a_coordinate_that_overflows_travels_nowhere() -> None:
    tracker = loop().build()
    tracker.update(Target(0, 0), TOP, 1)
    assert tracker.propagate() == [(Target(0, 0), TOP, 1)]
    assert len(tracker.frontier(Source(0, 0))) == 0


def test_a_tracker_keeps_the_graph_that_it_was_built_from() -> None:
    graph = loop()
    tracker, table = graph.build(), Scheduler(graph)
    graph.add_node(0, 1)
    graph.add_edge(Source(1, 0), Target(0, 0))
    for made in (tracker, table):
        with pytest.raises(GraphError, match="there is no node 1: the graph has 1 nodes"):
            made.update(Source(1, 0), 0, 1)
    assert graph.could_result_in(0, Source(1, 0), 4, Source(0, 0))
    assert isinstance(graph.build(), Tracker)


def test_a_source_is_not_the_target_of_the_same_numbers() -> None:
    places: list[Place] = [Source(0, 1), Target(0, 1)]
    assert places[0] != places[1]
    assert not places[0] == places[1]  # noqa: SIM201
    assert len(set(places)) == 2
    assert Source(0, 1) == Source(0, 1)
    assert Target(0, 1) == Target(0, 1)
    assert hash(Source(0, 1)) == hash(Source(0, 1))
    node, port = Target(2, 3)
    assert (node, port) == (2, 3)


def test_what_is_wrong_is_named() -> None:
    graph = loop((0, 1), dims=2)
    tracker, table = graph.build(), Scheduler(graph)
    here = Target(0, 0)
    anything: Any = here
    cases: list[tuple[Callable[[], object], type[Exception], str]] = [
        (lambda: graph.add_edge(Source(0, 1), here), GraphError, "no output 1 of node 0"),
        (lambda: graph.add_edge(Source(3, 0), here), GraphError, "no node 3: the graph has 1 nodes"),
        (lambda: graph.add_edge(anything, here), TypeError, "from a Source to a Target, not from Target"),
        (lambda: graph.add_node(1, 1, {(0, 1): [1]}), GraphError, '"node 1" has 1 inputs and 1 outputs'),
        (lambda: graph.add_node(1, 1, {(0, 0): [(1, 2, 3)]}), TimeError, "expected 2 coordinates, got 3"),
        (lambda: graph.add_node(1, 1, {(0, 0): [-1]}), TimeError, "-1 is not a path summary"),
        (lambda: graph.add_node(1, 1, {(0, 0): anything.port}), TypeError, r"are a list: write \[0\]"),
        (lambda: graph.add_node(2**40, 1), GraphError, "1099511627776 ports and paths"),
        (lambda: graph.path_summaries(here, Source(9, 0)), GraphError, "no node 9"),
        (lambda: graph.could_result_in(1, here, (1, 1), here), TimeError, "expected 2 .* got 1: 1"),
        (lambda: graph.could_result_in((1, 1), here, (1,), here), TimeError, r"\(1,\) is not a time"),
        (lambda: Graph(dims=256), ValueError, "dims is at most 255, and is 256"),
        (lambda: tracker.update(Target(0, 1), (0, 0), 1), GraphError, "no input 1 of node 0"),
        (lambda: tracker.update(Target(0, -1), (0, 0), 1), GraphError, "port=-1.: .* numbered from 0"),
        (lambda: tracker.update(here, 5, 1), TimeError, "expected 2 coordinates, got 1: 5"),
        (lambda: tracker.update(here, (0, -5), 1), TimeError, "a coordinate cannot be negative"),
        (lambda: tracker.frontier(Source(1, 0)), GraphError, "no node 1"),
        (lambda: tracker.frontier((0, 0)), TypeError, "named by a Source or a Target, not tuple"),  # type: ignore[arg-type]
        (lambda: table.update(Target(0, 1), (0, 0), 1), GraphError, "no input 1 of node 0"),
        (lambda: table.occurrence_count(here, 5), TimeError, "expected 2 coordinates"),
        (lambda: table.precursor_count(Source(0, 2), (5, 5)), GraphError, "no output 2 of node 0"),
        (lambda: loop((0, 0), dims=2).build(), GraphError, 'the cycle through "node 0" does not advance'),
    ]
    for wrong, error, says in cases:
        with pytest.raises(error, match=says):
            wrong()
    assert tracker.propagate() == []
    assert table.frontier() == []
