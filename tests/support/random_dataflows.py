"""Random dataflows with nested loops, and a model of their results.

A program is a list of steps, some of which hold lists of steps: loops, scopes, forks. It is built as a
dataflow and evaluated as a function from records by time to records by time. Every step of the dataflow is
followed by an operator that checks that no record comes at a time which its frontier had passed.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.order import Antichain

Steps = list[tuple[Any, ...]]
Data = dict[tuple[int, ...], Counter[int]]

SIZE = 11  # records are 0 .. SIZE
END = 4  # no record circulates at this turn, or later


def later(time: tuple[int, ...], more: int) -> tuple[int, ...]:
    return (*time[:-1], time[-1] + more)


def coordinates(time: ps.Time) -> tuple[int, ...]:
    return time if isinstance(time, tuple) else (time,)


def written(time: tuple[int, ...]) -> ps.Time:
    return time[0] if len(time) == 1 else time


# ------------------------------------------------------------ programs

simple = st.one_of(
    st.tuples(st.just("map"), st.integers(1, 5), st.integers(0, 5)),
    st.tuples(st.just("filter"), st.integers(2, 4)),
    st.tuples(st.just("spread")),
    st.tuples(st.just("exchange"), st.integers(1, 5)),
    st.tuples(st.just("distinct")),
    st.tuples(st.just("counts")),
    st.tuples(st.just("sums"), st.integers(1, 4)),
    st.tuples(st.just("delay"), st.integers(1, 3)),
    st.tuples(st.just("hold")),
)


def compound(steps: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    body = st.lists(steps, max_size=4)
    return st.one_of(
        st.tuples(st.just("loop"), st.integers(1, 2), body),
        st.tuples(st.just("feedback"), st.integers(1, 2), body),
        st.tuples(st.just("region"), body),
        st.tuples(st.just("fork"), body, body),
    )


programs = st.lists(st.recursive(simple, compound, max_leaves=10), min_size=1, max_size=5)
inputs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, SIZE - 1)), max_size=12)

# ------------------------------------------------------------ as a dataflow


def checked(stream: ps.Stream[int]) -> ps.Stream[int]:
    """Passes records on, and holds the engine to its promise."""

    def build(capability: ps.Capability, info: ps.OperatorInfo) -> Callable[..., None]:
        capability.drop()
        promised: Antichain | None = None

        def logic(port: Any, output: Any) -> None:
            nonlocal promised
            for message, records in port:
                assert promised is None or promised.less_equal(message.time), (promised, message.time)
                with output.session(message) as session:
                    session.give_all(records)
            promised = port.frontier

        return logic

    return stream.unary_frontier(ps.Pipeline(), "check", build, state="none")


class Waiting:
    """Records by time, and their capabilities."""

    def __init__(self) -> None:
        self.ready = ps.FrontierNotificator()
        self.records = defaultdict[ps.Time, list[int]](list)

    def snapshot(self) -> list[tuple[None, Any]]:
        """Returns all of it."""
        return [(None, (dict(self.records), self.ready.held()))]

    def restore(self, pairs: Iterable[tuple[None, Any]], version: int) -> None:
        """Takes it back."""
        for _, (records, capabilities) in pairs:
            self.records.update(records)
            for capability in capabilities:
                self.ready.notify_at(capability)


def held(stream: ps.Stream[int]) -> ps.Stream[int]:
    """Passes records on when their time is closed."""

    def build(capability: ps.Capability, info: ps.OperatorInfo) -> Callable[..., None]:
        capability.drop()
        state: Waiting = info.state
        ready, waiting = state.ready, state.records

        def logic(port: Any, output: Any) -> None:
            for message, records in port:
                waiting[message.time].extend(records)
                ready.notify_at(message.retain())
            for cap in ready.ready(port.frontier):
                with cap, output.session(cap) as session:
                    session.give_all(waiting.pop(cap.time))

        return logic

    return stream.unary_frontier(ps.Exchange(lambda x: x + 1), "hold", build, state=Waiting)


def dataflow(steps: Steps, stream: ps.Stream[int]) -> ps.Stream[int]:
    for step in steps:
        stream = checked(one(step, stream))
    return stream


def one(step: tuple[Any, ...], stream: ps.Stream[int]) -> ps.Stream[int]:
    scope = stream.scope
    match step:
        case ("map", factor, offset):
            return stream.map(lambda x: (factor * x + offset) % SIZE)
        case ("filter", divisor):
            return stream.filter(lambda x: x % divisor != 0)
        case ("spread",):
            return stream.flat_map(lambda x: [x, (x + 1) % SIZE])
        case ("exchange", divisor):
            return stream.exchange(lambda x: x // divisor)
        case ("distinct",):
            return stream.distinct()
        case ("counts",):
            return stream.value_counts().map(lambda item: (item[0] + item[1]) % SIZE)
        case ("sums", divisor):
            pairs = stream.map(lambda x: (x % divisor, x))
            return pairs.aggregate(lambda _k, v, s: s + v, lambda k, s: (k + s) % SIZE, default=int)
        case ("delay", most):
            return stream.delay(lambda x, time: written(later(coordinates(time), x % most)))
        case ("hold",):
            return held(stream)
        case ("region", steps):
            with scope.region() as inner:
                return dataflow(steps, stream.enter(inner)).leave()
        case ("fork", left, right):
            return dataflow(left, stream).concat(dataflow(right, stream))
        case ("loop", summary, steps):
            with scope.iterative() as inner:
                return cycle(stream.enter(inner), summary, steps).leave()
        case ("feedback", summary, steps):
            return cycle(stream, summary, steps)
    raise AssertionError(step)


def cycle(stream: ps.Stream[int], summary: int, steps: Steps) -> ps.Stream[int]:
    """Applies the steps to the distinct records of the stream and of the loop; not beyond the end."""
    handle, again = stream.scope.loop_variable(summary)
    result = dataflow(steps, checked(stream.concat(checked(again))).distinct())
    _, going = result.branch_when(lambda time: coordinates(time)[-1] < END)
    going.connect_loop(handle)
    return result


# ------------------------------------------------------------ as a function


def model(steps: Steps, data: Data) -> Data:
    for step in steps:
        data = model_one(step, data)
    return {time: records for time, records in data.items() if records}


def moved(data: Data, where: Callable[[tuple[int, ...], int], Any]) -> Data:
    """Each record to the times and records that a function returns."""
    result: Data = defaultdict(Counter)
    for time, records in data.items():
        for record, count in records.items():
            for to, new in where(time, record):
                result[to][new] += count
    return result


def model_one(step: tuple[Any, ...], data: Data) -> Data:
    match step:
        case ("map", factor, offset):
            return moved(data, lambda t, x: [(t, (factor * x + offset) % SIZE)])
        case ("filter", divisor):
            return moved(data, lambda t, x: [(t, x)] if x % divisor else [])
        case ("spread",):
            return moved(data, lambda t, x: [(t, x), (t, (x + 1) % SIZE)])
        case ("exchange", _) | ("hold",):
            return data
        case ("distinct",):
            return {time: Counter(set(records)) for time, records in data.items()}
        case ("counts",):
            return {t: Counter((x + count) % SIZE for x, count in some.items()) for t, some in data.items()}
        case ("sums", divisor):
            result = {}
            for time, records in data.items():
                sums: dict[int, int] = defaultdict(int)
                for x, count in records.items():
                    sums[x % divisor] += x * count
                result[time] = Counter((k + s) % SIZE for k, s in sums.items())
            return result
        case ("delay", most):
            return moved(data, lambda t, x: [(later(t, x % most), x)])
        case ("region", steps):
            return model(steps, data)
        case ("fork", left, right):
            return together(model(left, data), model(right, data))
        case ("loop", summary, steps):
            inside = model_cycle(moved(data, lambda t, x: [((*t, 0), x)]), summary, steps)
            return moved(inside, lambda t, x: [(t[:-1], x)])
        case ("feedback", summary, steps):
            return model_cycle(data, summary, steps)
    raise AssertionError(step)


def together(*parts: Data) -> Data:
    result: Data = defaultdict(Counter)
    for part in parts:
        for time, records in part.items():
            result[time].update(records)
    return result


def model_cycle(data: Data, summary: int, steps: Steps) -> Data:
    """Times only advance, so that one more evaluation settles at least one more trip."""
    again: Data = {}
    while True:
        distinct = {time: Counter(set(records)) for time, records in together(data, again).items()}
        result = model(steps, distinct)
        comes = moved(result, lambda t, x: [(later(t, summary), x)] if t[-1] < END else [])
        if comes == again:
            return result
        again = comes
