"""Scopes and loops: times in them, streams across their boundaries, and graphs that make no sense."""

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import pytest

import pointstamp as ps
from harness import WORKERS, merged, run, share

LAST = 2**64 - 1


@pytest.mark.parametrize("workers", WORKERS)
def test_scopes_nested_four_deep(workers: int) -> None:
    def build(scope: ps.Scope) -> Any:
        stream = share(scope, range(20))
        with (
            scope.iterative("a") as a,
            a.region("b") as b,
            b.scoped("c", dims=2) as c,
            c.iterative("d") as d,
        ):
            inside = stream.enter(a).enter(b).enter(c).enter(d).exchange(lambda x: x)
            times = inside.capture()
            assert [s.dims for s in (a, b, c, d)] == [2, 2, 4, 5]
            assert d.address[:-1] == c.address
            out = inside.map(lambda x: -x).leave().leave().leave().leave()
        return times, out.capture()

    times, outs = zip(*run(workers, build), strict=True)
    assert merged(times) == {(0, 0, 0, 0, 0): Counter(range(20))}
    assert merged(outs) == {0: Counter(-x for x in range(20))}


def bumped(trips: tuple[int, ...], level: int) -> tuple[int, ...]:
    return tuple(n + (i == level) for i, n in enumerate(trips))


@pytest.mark.parametrize("workers", WORKERS)
def test_loops_nested_three_deep(workers: int) -> None:
    """Each level counts its trips: a record (i, j, k) goes round the loops that many times."""

    def body(scope: ps.Scope, stream: ps.Stream[Any], level: int) -> ps.Stream[Any]:
        with scope.iterative(f"level {level}") as inner:
            handle, again = inner.loop_variable()
            merged_in = stream.enter(inner).concat(again).exchange(hash)
            if level < 2:
                merged_in = body(inner, merged_in, level + 1)
            done, going = merged_in.branch(lambda _t, r: r[0][level] > r[1][level])
            going.map(lambda r: (r[0], bumped(r[1], level))).connect_loop(handle)
            return done.leave()

    wanted = [(i, j, k) for i in range(3) for j in range(3) for k in range(3)]

    def build(scope: ps.Scope) -> Any:
        return body(scope, share(scope, [(w, (0, 0, 0)) for w in wanted]), 0).capture()

    assert merged(run(workers, build)) == {0: Counter((w, w) for w in wanted)}


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize(("dims", "choose"), [(0, lambda x: ()), (1, lambda x: x), (2, lambda x: (x % 2, x))])
def test_enter_at(workers: int, dims: int, choose: Callable[[int], ps.Time]) -> None:
    def build(scope: ps.Scope) -> Any:
        with scope.scoped(dims=dims) as inner:
            entered = share(scope, range(6)).delay(lambda x, _: x // 3).enter_at(inner, choose)
            return entered.capture(), entered.leave().capture()

    inside, outside = zip(*run(workers, build), strict=True)
    expected: dict[ps.Time, Counter[int]] = defaultdict(Counter)
    for x in range(6):
        appended = choose(x)
        coordinates = appended if isinstance(appended, tuple) else (appended,)
        expected[(x // 3, *coordinates) if coordinates else x // 3][x] += 1
    assert merged(inside) == expected
    assert merged(outside) == {0: Counter(range(3)), 1: Counter(range(3, 6))}


@pytest.mark.parametrize("wrong", [-1, (1, 2), LAST + 1])
def test_enter_at_refuses_what_is_no_coordinate(wrong: ps.Time) -> None:
    def build(scope: ps.Scope) -> None:
        with scope.iterative() as inner:
            scope.to_stream(list("x")).enter_at(inner, lambda _: wrong)

    with pytest.raises(ps.TimeError):
        ps.example(build)


@pytest.mark.parametrize("workers", WORKERS)
def test_a_scope_with_sources_of_its_own(workers: int) -> None:
    """Its parent knows them only from the scope's reports, and must wait for them."""

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            with scope.iterative() as inner:
                handle, driven = inner.new_input()
                fixed = share(inner, range(4)).delay(lambda x, _: (x, 1))
                out = driven.concat(fixed).leave()
            probe, captured = out.probe(), out.capture()
        for _ in range(20):
            worker.step()
        assert probe.less_equal(0), "the input inside is still at its first time"
        handle.send(worker.index + 100)
        handle.advance_to((2, 5))
        worker.step_while(lambda: probe.less_than(2))
        assert probe.less_equal(2)
        handle.close()
        worker.run()
        assert probe.done()
        return captured

    found = merged(ps.execute(main, workers=workers))
    expected = {x: Counter([x]) for x in range(4)}
    expected[0].update(range(100, 100 + workers))
    assert found == expected


def test_a_stream_may_enter_often_and_leave_after_the_block() -> None:
    def build(scope: ps.Scope) -> Any:
        stream = scope.to_stream([1, 2])
        with scope.region() as inner:
            both = stream.enter(inner).concat(stream.enter(inner)).map(lambda x: x * 10)
        return both.leave().capture()

    assert ps.example(build).extract() == [(0, [10, 10, 20, 20])]


@pytest.mark.parametrize("workers", WORKERS)
def test_a_stream_may_leave_often_and_leaves_once(workers: int) -> None:
    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            with scope.iterative("inner") as inner:
                stream = share(scope, range(4)).enter(inner).map(lambda x: x * 10)
                first, second = stream.leave(), stream.leave()
            read = first.capture(), second.map(str).capture(), stream.leave().capture()
        left = {
            (edge.source, edge.input)
            for edge in scope.graph.edges
            if edge.scope == inner.address and not edge.target
        }
        assert len(left) == 1, "one port for all who read it outside"
        worker.run()
        return read

    first, second, third = map(merged, zip(*ps.execute(main, workers=workers), strict=True))
    assert first == third == {0: Counter([0, 10, 20, 30])}
    assert second == {0: Counter(["0", "10", "20", "30"])}


@pytest.mark.parametrize(
    ("summary", "expected"),
    [
        ((1, 0), [(0, 0), (1, 0), (2, 0)]),
        ((0, 1), [(0, 0), (0, 1), (0, 2)]),
        ((2, 3), [(0, 0), (2, 3), (4, 6)]),
        (7, [(0, 0), (0, 7), (0, 14)]),
    ],
)
def test_feedback_adds_its_summary(summary: ps.Summary, expected: list[ps.Time]) -> None:
    def build(scope: ps.Scope) -> Any:
        handle, again = scope.feedback(summary)
        trips = scope.to_stream([0]).concat(again)
        trips.map(lambda x: x + 1).filter(lambda x: x < 3).connect_loop(handle)
        return trips.capture()

    assert ps.example(build, dims=2).extract() == [(time, [i]) for i, time in enumerate(expected)]


def test_a_loop_that_passes_the_last_time_is_an_error_and_loses_nothing_before() -> None:
    def build(scope: ps.Scope, turns: int) -> Any:
        handle, again = scope.feedback(1)
        trips = scope.to_stream([(LAST - 2, 0)]).delay(lambda x, _: x[0]).concat(again)
        trips.map(lambda x: (x[0], x[1] + 1)).filter(lambda x: x[1] < turns).connect_loop(handle)
        return trips.capture()

    captured = ps.example(lambda scope: build(scope, 3))
    assert [time for time, _ in captured.extract()] == [LAST - 2, LAST - 1, LAST]
    with pytest.raises(
        ps.TimeError, match=rf"records at the time \(?{LAST}.* loop that advances times by \[1\]"
    ):
        ps.example(lambda scope: build(scope, 4))


@pytest.mark.parametrize("workers", WORKERS)
def test_several_loop_variables_and_mutual_recursion(workers: int) -> None:
    """Even numbers are halved by one variable, odd ones tripled by another, which feeds the first."""

    def build(scope: ps.Scope) -> Any:
        with scope.iterative() as inner:
            evens_handle, evens = inner.loop_variable(1)
            odds_handle, odds = inner.loop_variable(2)
            halves = evens.map(lambda x: x // 2).exchange(lambda x: x)
            tripled = odds.map(lambda x: 3 * x + 1).exchange(lambda x: x)
            numbers = share(scope, range(1, 12)).enter(inner).concat(halves, tripled).filter(lambda x: x != 1)
            odd, even = numbers.branch(lambda _t, x: x % 2 == 0)
            odd.connect_loop(odds_handle)
            even.connect_loop(evens_handle)
            return numbers.capture()

    expected: dict[ps.Time, Counter[int]] = defaultdict(Counter)
    for n in range(1, 12):
        trip = 0
        while n != 1:
            expected[(0, trip)][n] += 1
            n, trip = (n // 2, trip + 1) if n % 2 == 0 else (3 * n + 1, trip + 2)
    assert merged(run(workers, build)) == expected


def mapped(scope: ps.Scope) -> ps.Stream[Any]:
    return scope.to_stream([1]).map(str, name="to text")


def outer_stream_inside(scope: ps.Scope) -> None:
    stream = mapped(scope)
    with scope.iterative("inner") as inner:
        inner.concatenate([stream])


def inner_stream_outside(scope: ps.Scope) -> None:
    with scope.iterative("inner") as inner:
        stream = mapped(inner)
    scope.to_stream([2]).concat(stream)


def sibling_stream(scope: ps.Scope) -> None:
    with scope.region("first") as first:
        stream = mapped(first)
    with scope.region("second") as second:
        second.to_stream([2]).binary(stream, ps.Pipeline(), ps.Pipeline(), "join", lambda *_: lambda *_: None)


def entering_past_a_scope(scope: ps.Scope) -> None:
    with scope.region("first") as first, first.region("second") as second:
        mapped(scope).enter(second)


def entering_the_root(scope: ps.Scope) -> None:
    mapped(scope).enter(scope)


def leaving_the_root(scope: ps.Scope) -> None:
    mapped(scope).leave()


def adding_after_the_block(scope: ps.Scope) -> None:
    with scope.iterative("inner") as inner:
        stream = mapped(inner)
    stream.map(int)


def block_without_end(scope: ps.Scope) -> None:
    mapped(scope.iterative("inner").__enter__())


def block_entered_twice(scope: ps.Scope) -> None:
    block = scope.region("inner")
    with block:
        pass
    with block:
        pass


def never_connected(scope: ps.Scope) -> None:
    with scope.iterative("inner") as inner:
        inner.loop_variable()


def connected_twice(scope: ps.Scope) -> None:
    handle, again = scope.loop_variable()
    again.connect_loop(handle)
    again.connect_loop(handle)


def connected_from_inside(scope: ps.Scope) -> None:
    handle, again = scope.loop_variable()
    with scope.region("inner") as inner:
        again.enter(inner).map(str, name="to text").connect_loop(handle)


def standing_still(scope: ps.Scope) -> None:
    with scope.iterative("inner") as inner:
        handle, again = inner.loop_variable(0)
        moving_handle, moving = inner.loop_variable(1)
        mapped(inner).concat(again, moving).map(str, name="to and fro").connect_loop(handle)
        again.connect_loop(moving_handle)


def standing_still_through_a_scope(scope: ps.Scope) -> None:
    handle, again = scope.feedback(0)
    with scope.region("the region") as inner:
        out = again.enter(inner).map(str).leave()
    out.connect_loop(handle)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (outer_stream_inside, ["'to text'", "'inner'", "'Dataflow'", ".enter(scope)"]),
        (inner_stream_outside, ["'to text'", "'inner'", "'Dataflow'", ".leave()"]),
        (sibling_stream, ["'to text'", "'join'", "'first'", "'second'"]),
        (entering_past_a_scope, ["'to text'", "'first'", "'Dataflow'"]),
        (entering_the_root, ["'Dataflow' is a root scope"]),
        (leaving_the_root, ["'to text'", "root scope 'Dataflow'"]),
        (adding_after_the_block, ["'inner'", "its block has ended"]),
        (block_without_end, ["'inner'", "still open"]),
        (block_entered_twice, ["'inner'", "built already"]),
        (never_connected, ["loop variable", "'inner'", "never connected"]),
        (connected_twice, ["loop variable", "connected already"]),
        (connected_from_inside, ["'to text'", "'inner'", "'Dataflow'"]),
        (standing_still, ['"feedback"', '"to and fro"', "does not advance"]),
        (standing_still_through_a_scope, ['"feedback"', '"the region"', "does not advance"]),
    ],
)
@pytest.mark.parametrize("workers", WORKERS[:2])
def test_graphs_that_make_no_sense_are_refused(
    workers: int, build: Callable[[ps.Scope], None], words: list[str]
) -> None:
    with pytest.raises(ps.GraphError) as caught:
        run(workers, build)
    assert [word for word in words if word not in str(caught.value)] == [], str(caught.value)


def test_a_cycle_is_refused_for_the_operators_on_it_alone() -> None:
    with pytest.raises(ps.GraphError) as caught:
        run(1, standing_still)
    assert "to text" not in str(caught.value)


@pytest.mark.parametrize("dims", [-1, 17])
def test_scopes_of_odd_sizes_are_refused(dims: int) -> None:
    with pytest.raises(ps.GraphError, match="coordinates"):
        run(1, lambda scope: scope.scoped(dims=dims).__enter__())


@pytest.mark.parametrize("summary", [(1,), (1, 2, 3), -1, (0, -1), LAST + 1])
def test_summaries_of_other_scopes_are_refused(summary: ps.Summary) -> None:
    with pytest.raises(ps.TimeError):
        ps.example(lambda scope: scope.feedback(summary), dims=2)
