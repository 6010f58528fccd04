"""A leak in a random dataflow: the explanation names it."""

import time
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pointstamp as ps

shapes = st.recursive(
    st.sampled_from(["map", "exchange", "filter", "distinct", "counts", "delay", "hold"]),
    lambda steps: st.tuples(st.sampled_from(["loop", "region", "fork"]), st.lists(steps, max_size=3)),
    max_leaves=8,
)


def leak(stream: ps.Stream[int], kept: list[Any]) -> ps.Stream[int]:
    """Passes records on, and keeps the capability of the first message."""

    def build(capability: ps.Capability, info: ps.OperatorInfo) -> Any:
        capability.drop()

        def logic(port: Any, output: Any) -> None:
            for message, records in port:
                if not kept:  # also not when it was given back, which leaves None
                    kept.append(message.retain())
                with output.session(message) as session:
                    session.give_all(records)

        return logic

    return stream.unary(ps.Pipeline(), "the leak", build)


def later(time: ps.Time) -> ps.Time:
    return (*time[:-1], time[-1] + 1) if isinstance(time, tuple) else time + 1


def grow(stream: ps.Stream[int], steps: list[Any], plan: list[int], kept: list[Any]) -> ps.Stream[int]:
    """Adds the steps; before the one at which the plan counts down to 0, the leak."""
    scope = stream.scope
    for step in [*steps, None]:
        if plan[0] == 0:
            stream = leak(stream, kept)
        plan[0] -= 1
        if step == "map":
            stream = stream.map(lambda x: x + 1)
        elif step == "exchange":
            stream = stream.exchange(lambda x: x)
        elif step == "filter":
            stream = stream.filter(lambda x: x >= 0)
        elif step == "distinct":
            stream = stream.distinct()
        elif step == "counts":
            stream = stream.value_counts().map(lambda pair: pair[0])
        elif step == "delay":
            stream = stream.delay_batch(
                lambda time: (*time[:-1], time[-1] + 1) if isinstance(time, tuple) else time + 1
            )
        elif step == "hold":
            stream = stream.accumulate(list, lambda kept, batch: [*kept, *batch]).flat_map(
                lambda batch: batch
            )
        elif step is not None:
            kind, inner = step
            if kind == "fork":
                stream = stream.concat(grow(stream, inner, plan, kept))
            elif kind == "region":
                with scope.region() as region:
                    stream = grow(stream.enter(region), inner, plan, kept).leave()
            else:
                with scope.iterative("Turns") as turns:
                    handle, back = turns.loop_variable()
                    body = grow(stream.enter(turns).concat(back), inner, plan, kept)
                    again, out = body.branch_when(lambda time: time[-1] >= 2)  # type: ignore[index]
                    again.connect_loop(handle)
                    stream = out.leave()
    return stream


def swelling(steps: list[Any]) -> int:
    """The maximum number of records that one record can become; a loop has three turns."""
    grown = 1
    for step in steps:
        if not isinstance(step, str):
            kind, inner = step
            grown *= {"fork": 1 + swelling(inner), "region": swelling(inner), "loop": swelling(inner) ** 3}[
                kind
            ]
    return grown


def places(steps: list[Any]) -> int:
    """The number of steps before which a leak can be inserted."""
    return 1 + sum(1 if isinstance(step, str) else 1 + places(step[1]) for step in steps)


# Two forks in a loop in a loop make 800,000 records of three, and three forks 400 million: no new leaks.
@settings(max_examples=100, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(shapes, min_size=1, max_size=5).filter(lambda steps: swelling(steps) <= 1000),
    st.integers(0, 99),
    st.sampled_from([1, 1, 1, 2]),
)
def test_a_leak_in_a_random_dataflow_is_named(steps: list[Any], where: int, workers: int) -> None:
    leaking: list[int] = []

    def main(worker: ps.Worker) -> None:
        kept: list[Any] = []
        with worker.dataflow() as scope:
            numbers, stream = scope.new_input()
            probe = grow(stream, steps, [where % places(steps)], kept).probe()
        if worker.index == 0:
            numbers.send_batch(range(3))
        numbers.close()
        until = time.monotonic() + 120
        while not kept and not leaking and time.monotonic() < until:
            worker.step_or_park(0.001)
        if kept:
            leaking.append(worker.index)
        for _ in range(60):
            worker.step_or_park(0.0005)
        worker.barrier()
        found = worker.explain(probe)
        assert {(one.kind, one.operator) for one in found.causes} == {("capability", "the leak")}, found
        worker.barrier()
        kept[:] = [None]
        worker.run()

    ps.execute(main, workers=workers)
    assert leaking
