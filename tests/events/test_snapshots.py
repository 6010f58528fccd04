"""State of every kind of operator by key, written at a frontier and resumed by other workers.

The results before and after the snapshot are together those of one run.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from effort import examples
from event_data import KEYS, Event
from pointstamp import _core

Program = Callable[[ps.KeyedStream[str, Event], ps.KeyedStream[str, Event], Any], ps.Stream[Any]]


def heard(context: Any, event: Event) -> None:
    context.state = (context.state or 0) + event.value
    context.set_timer(event.at + 7)


def silent(context: Any) -> None:
    context.emit((context.key, context.state))
    if context.state is not None and context.state % 2:
        context.state = None  # a later timer of the key finds none


def last(context: Any) -> None:
    context.emit((context.key, context.state))


def later(context: Any, event: Event) -> None:
    """A timer, and no state."""
    context.set_timer(event.at + 9)


def windows(kind: Any, reduced: Callable[[Any], Any], **options: Any) -> Program:
    return lambda left, _, state: reduced(left.window(kind, state=state, **options))


PROGRAMS: dict[str, Program] = {
    "tumbling": windows(ps.Tumbling(10, offset=3), lambda window: window.count()),
    "sliding": windows(ps.Sliding(12, every=5), lambda window: window.sum(lambda event: event.value)),
    "early": windows(ps.Tumbling(20), lambda window: window.mean(lambda event: event.value), early=6),
    "session": windows(ps.Session(gap=6), lambda window: window.collect()),
    "count": windows(ps.Count(3), lambda window: window.distinct_count(lambda event: event.value)),
    "quantiles": windows(
        ps.Tumbling(30), lambda window: window.quantiles([0, 0.5, 1], lambda event: event.value)
    ),
    "window join": lambda left, right, state: left.window(ps.Tumbling(15), state=state).join(
        right.window(ps.Tumbling(15)), how="full"
    ),
    "interval join": lambda left, right, state: left.interval_join(
        right, lower=-4, upper=9, how="full", state=state
    ),
    "as-of join": lambda left, right, state: left.asof_join(right, within=12, state=state),
    "table join": lambda left, right, state: left.table_join(right, how="left", state=state),
    "scan": lambda left, _, state: left.scan(lambda _key, _, n: n + 1, default=int, ttl=8, state=state),
    "state_machine": lambda left, _, state: left.state_machine(
        lambda key, _, n: (None if n == 3 else n + 1, [(key, n)]), default=int, state=state
    ),
    "dedup": lambda left, _, state: left.dedup(ttl=5, state=state),
    "top_k": lambda left, _, state: left.top_k_so_far(2, lambda event: event.value, state=state),
    "timers": lambda left, _, state: left.process(heard, silent, state=state),
    "only timers": lambda left, _, state: left.process(later, last, state=state),
}


def ran(
    program: Program,
    data: list[Event],
    workers: int,
    snapshots: list[bytes],
    start: int,
    end: int | None,
) -> tuple[Counter[Any], list[bytes]]:
    """Returns the results for the events before `end`, and the state then; all results where it is None."""

    def main(worker: ps.Worker) -> Any:
        state: ps.KeyedState[str, Any] = ps.KeyedState.restore(
            snapshots, index=worker.index, peers=worker.peers
        )
        sent: list[Any] = []
        sources = [ps.InputHandle[Event](), ps.InputHandle[Event]()]
        with worker.dataflow() as scope:
            left, right = (source.to_stream(scope).key_by(lambda event: event.key) for source in sources)
            results = program(left, right, state)
            probe = results.inspect_time(lambda record, time: sent.append((time, repr(record)))).probe()
        for source in sources:
            source.advance_to(start)
        for place, event in enumerate(data):
            for source in sources:
                source.advance_to(event.at)
            if place % worker.peers == worker.index:
                sources[event.value % 2].send(event)
        if end is None:
            for source in sources:
                source.close()
            worker.run()
            return sent, b""
        for source in sources:
            source.advance_to(end)
        worker.step_while(lambda: state.frontier != end)
        for _ in range(5):
            worker.step()
        found = list(sent), state.snapshot()
        listed = dict(state.items())
        assert len(state) == len(listed)
        assert all(key in state and state.get(key) is not None for key in listed)
        assert probe is not None
        return found

    results = ps.execute(main, workers=workers)
    return Counter(item for sent, _ in results for item in sent), [snapshot for _, snapshot in results]


@pytest.mark.parametrize(("before", "after"), [(1, 1), (2, 1), (1, 2)])
@pytest.mark.parametrize("name", PROGRAMS)
@settings(max_examples=examples(6))
@given(data=st.data())
def test_a_run_goes_on_from_a_snapshot(name: str, before: int, after: int, data: st.DataObject) -> None:
    times = sorted(data.draw(st.lists(st.integers(0, 50), max_size=25)))
    events = [Event(at, data.draw(KEYS), value) for value, at in enumerate(times)]
    cut = data.draw(st.integers(1, 55))
    program = PROGRAMS[name]
    early = [event for event in events if event.at < cut]
    # Two workers bring the records of a key and time in no order.
    if before == 2 or after == 2:
        early, events = ([e for n, e in enumerate(part) if unique(part, n)] for part in (early, events))
    whole, _ = ran(program, events, 1, [], 0, None)
    first, snapshots = ran(program, early, before, [], 0, cut)
    second, _ = ran(program, [event for event in events if event.at >= cut], after, snapshots, cut, None)
    found = first + second
    if name == "count":  # what is left over has the time that the stream ends at
        found, whole = (Counter(record for _, record in sent.elements()) for sent in (found, whole))
    assert found == whole


def unique(events: list[Event], place: int) -> bool:
    """Whether no event before it is of its key and time."""
    event = events[place]
    return all((other.at, other.key) != (event.at, event.key) for other in events[:place])


def test_a_sketch_is_written_and_read() -> None:
    sketch = _core.Sketch()
    for number in range(-50, 1000):
        sketch.add(number / 7)
    read = pickle.loads(pickle.dumps(sketch))
    shares = [0, 0.01, 0.5, 0.99, 1]
    assert [read.quantile(share) for share in shares] == [sketch.quantile(share) for share in shares]
    read.merge(sketch)
    assert len(read) == 2 * len(sketch)
    with pytest.raises(ps.CodecError, match="no sketch"):
        _core.Sketch.from_bytes(b"nothing")


def test_one_snapshot_is_given_in_a_list() -> None:
    with pytest.raises(TypeError, match=r"restore\(\[snapshot\]\)"):
        ps.KeyedState.restore(b"a snapshot")  # type: ignore[arg-type]
