"""Blocks that are nested, fail, import traces and are built while others run, on workers of any speed.

Every worker does the same in the same order. How often each steps meanwhile is its own, and changes nothing.
"""

import random
from collections import Counter
from typing import Any

import pytest

import pointstamp as ps
from effort import examples

ROUNDS = 8
"""Blocks, besides those inside others, and times."""


def main_of(seed: int) -> Any:
    def main(worker: ps.Worker) -> Counter[Any]:
        alike, own = random.Random(seed), random.Random(f"{seed} {worker.index}")
        flows: list[tuple[Any, ps.ProbeHandle, bool]] = []
        traces: list[ps.Trace[int, int]] = []
        found: Counter[Any] = Counter()

        def steps() -> None:
            for _ in range(own.randrange(4)):
                worker.step()

        def changes(scope: ps.Scope) -> tuple[Any, ps.ProbeHandle, Any]:
            handle, collection = scope.new_collection()
            number, arranged = scope.address[0], collection.arrange()
            trace: Any = arranged.trace()
            if traces and alike.random() < 0.6:
                imported: Any = scope.import_trace(alike.choice(traces))
                out: Any = imported.join(arranged, lambda key, one, other: (key, one, other))
                trace = None  # of what it reads itself, no more is imported
            else:
                out = collection.value_counts()
            steps()
            out.inspect(lambda record, _, diff: found.update({(number, record): diff}))
            return handle, out.probe(), trace

        def rounds(scope: ps.Scope) -> tuple[Any, ps.ProbeHandle, None]:
            handle, stream = scope.new_input()
            number = scope.address[0]
            with scope.iterative() as inner:
                loop, back = inner.loop_variable()
                turned = stream.enter(inner).concat(back).filter(lambda x: x < 5).exchange(lambda x: x)
                turned = turned.map(lambda x: x + 1)
                turned.connect_loop(loop)
                steps()
                out = turned.leave().inspect(lambda record: found.update([(number, record)]))
            return handle, out.probe(), None

        def block(depth: int) -> None:
            how = alike.choice(["well"] * 9 + ["raises", "never connected", "without a step"])
            try:
                with worker.dataflow() as scope:
                    steps()
                    handle, probe, trace = alike.choice([changes, rounds])(scope)
                    if depth < 2 and alike.random() < 0.3:
                        block(depth + 1)
                    steps()
                    if how == "raises":
                        raise KeyError
                    if how == "never connected":
                        scope.feedback()
                    if how == "without a step":
                        loop, back = scope.feedback(0)
                        back.map(lambda x: x).connect_loop(loop)
            except (KeyError, ps.GraphError):
                assert how != "well"
                return
            assert how == "well"
            flows.append((handle, probe, hasattr(handle, "insert")))
            if trace is not None:
                traces.append(trace)

        for time in range(ROUNDS):
            block(0)
            steps()
            for handle, _, is_collection in flows:
                if worker.index == 0:
                    for key in range(3):
                        if is_collection:
                            handle.insert((key, time))
                        else:
                            handle.send(key + time % 2)
                handle.advance_to(time + 1)
            steps()
        for trace in traces:
            trace.close()
        for handle, *_ in flows:
            handle.close()
        worker.run()
        assert all(probe.done() for _, probe, _ in flows)
        return found

    return main


@pytest.mark.parametrize("place", [{"workers": 2}, {"workers": 4}, {"processes": 2}], ids=str)
def test_blocks_do_the_same_on_workers_of_any_speed(place: Any) -> None:
    for seed in range(examples(8)):
        [alone] = ps.execute(main_of(seed))
        totals: Counter[Any] = Counter()
        for found in ps.execute(main_of(seed), **place):
            totals.update(found)
        assert +totals == +alone, seed
        assert +alone
