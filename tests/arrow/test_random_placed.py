"""Random dataflows of columns: what exchanges leave out changes nothing, on any number of workers."""

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pointstamp as ps
from aggregates import named
from effort import examples
from harness import run
from pointstamp.lowering import passes

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string()), ("n", pa.int64())])


def source(scope: ps.Scope, choose: random.Random) -> ps.ArrowStream:
    """Rows at several times, dealt out to the workers otherwise than any key would."""
    rows = [(choose.randrange(5), choose.choice("xyz"), choose.randrange(20)) for _ in range(40)]
    times = [choose.randrange(6) for _ in rows]
    dealt = list(zip(times, rows, strict=True))[scope.index :: scope.peers]
    at_times = scope.to_stream(dealt).delay(lambda pair, time: pair[0])
    return at_times.map(lambda pair: pair[1]).to_arrow(SCHEMA)


def operator(stream: ps.ArrowStream, choose: random.Random, others: list[ps.ArrowStream]) -> ps.ArrowStream:
    """Appends something of which the result does not depend on the order of rows."""
    names = stream.schema.names
    key = choose.choice(names)
    keys = choose.sample(names, min(len(names), 2))
    match choose.randrange(14):
        case 0 | 1 | 2 | 3:
            return stream.exchange(choose.choice([key, keys]))
        case 4 | 5:
            counted = [(choose.choice(names), choose.choice(["count", "min", "max"]))]
            return stream.aggregate(choose.choice([key, keys, []]), **named(counted))
        case 6:
            return choose.choice([stream.distinct, stream.distinct_so_far])()
        case 7:
            return stream.select(*choose.sample(names, choose.randrange(1, len(names) + 1)))
        case 8:
            return stream.concat(choose.choice([each for each in others if each.schema == stream.schema]))
        case 9:
            return stream.branch_when(lambda time: time % 2 == 0)[choose.randrange(2)]  # type: ignore[operator]
        case 10:
            return choose.choice(stream.partition(2, key))
        case 11:
            return stream.filter(pc.is_valid(pc.field(key)))
        case 12:
            with stream.scope.region() as inner:
                inside = stream.enter(inner)
                for _ in range(choose.randrange(4)):
                    inside = choose.choice([inside, inside.exchange(key)])
                    others.append(inside.leave())
                return inside.exchange(key).leave()
        case _:
            with stream.scope.iterative() as inner:
                handle, back = inner.loop_variable(schema=stream.schema)
                turned = stream.enter(inner).exchange(key).concat(back).distinct_so_far().exchange(key)
                turned.connect_loop(handle)
                return turned.leave()


def program(seed: int) -> Any:
    def build(scope: ps.Scope) -> tuple[list[ps.Capture[Any]], str]:
        choose = random.Random(seed)
        made = [source(scope, choose)]
        for _ in range(choose.randrange(4, 14)):
            made.append(operator(choose.choice(made[-4:]), choose, made))
        chosen = [*choose.sample(made, min(3, len(made))), made[-1]]
        return [stream.to_records().capture() for stream in chosen], scope.plan().digest

    return build


def results(seed: int, workers: int) -> tuple[list[Counter[Any]], set[str]]:
    """The results, on all workers together, and the digests of the plans."""
    ran = run(workers, program(seed))
    totals = [
        Counter(
            (time, repr(sorted(row.items())))
            for capture in captures
            for time, rows in capture.extract()
            for row in rows
        )
        for captures in zip(*(captures for captures, _ in ran), strict=True)
    ]
    return totals, {digest for _, digest in ran}


def test_exchanges_that_are_left_out_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(examples(30)):
        with monkeypatch.context() as patched:
            patched.setattr(passes, "left_out", lambda nodes: {})
            expected = results(seed, 1)
        assert len(expected[1]) == 1
        for workers in (1, 2, 4):
            assert results(seed, workers) == expected, (seed, workers)
