"""Operators over records: what they do, and how often their functions run."""

from collections import Counter
from typing import Any

import pytest

import pointstamp as ps
from harness import WORKERS, Seen, merged, passing, run, share

pytestmark = pytest.mark.parametrize("workers", WORKERS)

N = 1000


def test_map_flat_map_and_filter(workers: int) -> None:
    def build(scope: ps.Scope) -> Any:
        numbers = share(scope, range(N))
        return (
            numbers.map(lambda x: 2 * x).capture(),
            numbers.flat_map(lambda x: [x] * (x % 3)).capture(),
            numbers.filter(lambda x: x % 7 == 0).capture(),
        )

    doubled, repeated, sevens = zip(*run(workers, build), strict=True)
    assert merged(doubled) == {0: Counter(2 * x for x in range(N))}
    assert merged(repeated) == {0: Counter(x for x in range(N) for _ in range(x % 3))}
    assert merged(sevens) == {0: Counter(range(0, N, 7))}


def test_records_keep_their_order_on_a_worker(workers: int) -> None:
    def build(scope: ps.Scope) -> list[int]:
        seen: list[int] = []
        scope.to_stream(range(20_000)).map(lambda x: x + 1).filter(lambda x: x % 2 == 1).inspect(seen.append)
        return seen

    for seen in run(workers, build):
        assert seen == list(range(1, 20_000, 2))


def test_flat_map_takes_any_iterable_lazily(workers: int) -> None:
    most = 50_000

    def build(scope: ps.Scope) -> Any:
        sizes: list[int] = []
        stream = share(scope, [most, 0, 3]).flat_map(range)
        stream.inspect_batch(lambda _time, records: sizes.append(len(records)))
        return stream.capture(), sizes

    captures, sizes = zip(*run(workers, build), strict=True)
    assert merged(captures)[0].total() == most + 3
    assert max(size for some in sizes for size in some) < most / 2, "batches are bounded"


def test_map_in_place_changes_the_records(workers: int) -> None:
    def build(scope: ps.Scope) -> Any:
        stream = share(scope, [[x] for x in range(10)]).map_in_place(lambda record: record.append(-1))
        return stream.map(tuple).capture()

    assert merged(run(workers, build)) == {0: Counter((x, -1) for x in range(10))}


def test_map_batch_gets_every_record_once(workers: int) -> None:
    def build(scope: ps.Scope) -> Any:
        stream = share(scope, range(N))
        return (
            stream.map_batches(lambda records: [sum(records)]).capture(),
            stream.map_batches(lambda records: (x for x in records if x < 0)).capture(),
        )

    sums, nothing = zip(*run(workers, build), strict=True)
    assert sum(sum(records) for capture in sums for _, records in capture.extract()) == sum(range(N))
    assert merged(nothing) == {}


def test_try_map_and_ok_err(workers: int) -> None:
    def build(scope: ps.Scope) -> Any:
        words = share(scope, ["1", "x", "2", "y", "3"])
        numbers, failures = words.try_map(int)
        even, odd = numbers.ok_err(lambda x: (x % 2 == 0, f"n{x}"))
        return (
            numbers.capture(),
            failures.map(lambda f: (f[0], type(f[1]).__name__)).capture(),
            even.capture(),
            odd.capture(),
        )

    numbers, failures, even, odd = map(merged, zip(*run(workers, build), strict=True))
    assert numbers == {0: Counter([1, 2, 3])}
    assert failures == {0: Counter([("x", "ValueError"), ("y", "ValueError")])}
    assert even == {0: Counter(["n2"])}
    assert odd == {0: Counter(["n1", "n3"])}


def test_try_map_lets_through_what_is_no_exception(workers: int) -> None:
    class Stop(BaseException):
        pass

    def stop(record: object) -> None:
        raise Stop

    with pytest.raises(Stop):
        run(workers, lambda scope: scope.to_stream([1]).try_map(stop))


def test_inspecting(workers: int) -> None:
    records: Seen[int] = Seen()
    times: Seen[tuple[ps.Time, int]] = Seen()
    batches: Seen[tuple[ps.Time, list[int]]] = Seen()

    def main(worker: ps.Worker) -> ps.Capture[int]:
        handle: ps.InputHandle[int] = ps.InputHandle()
        with worker.dataflow() as scope:
            stream = handle.to_stream(scope).inspect(records.note)
            stream = stream.inspect_time(lambda x, time: times.note((time, x)))
            stream = stream.inspect_batch(lambda time, xs: batches.note((time, xs)))
            capture = stream.capture()
        for time in range(3):
            handle.advance_to(time)
            handle.send_batch([10 * time, 10 * time + worker.index])
        return capture

    expected = {t: Counter(10 * t + d for w in range(workers) for d in (0, w)) for t in range(3)}
    assert merged(ps.execute(main, workers=workers)) == expected
    assert Counter(records) == sum(expected.values(), Counter())
    assert Counter(times) == Counter((t, x) for t, some in expected.items() for x in some.elements())
    assert Counter((t, x) for t, xs in batches for x in xs) == Counter(times)


def test_partition(workers: int) -> None:
    def build(scope: ps.Scope) -> Any:
        parts = share(scope, range(N)).partition(3, lambda x: (x % 3, -x))
        return [part.capture() for part in parts], scope.concatenate(parts).capture()

    parts, together = zip(*run(workers, build), strict=True)
    for part in range(3):
        assert merged(captures[part] for captures in parts) == {0: Counter(-x for x in range(part, N, 3))}
    assert merged(together) == {0: Counter(-x for x in range(N))}


@pytest.mark.parametrize(
    ("result", "error", "says"),
    [
        ((3, "x"), IndexError, "3 parts, numbered from 0, and its function returned part 3"),
        ((-1, "x"), IndexError, "returned part -1"),
        (("a", "x"), IndexError, "returned part 'a'"),
        ((1 << 70, "x"), IndexError, "numbered from 0"),
        (7, TypeError, r"must return \(part, record\), and returned 7"),
        ((1, 2, 3), TypeError, "must return"),
    ],
)
def test_partition_refuses_what_is_no_part(
    workers: int, result: Any, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        run(workers, lambda scope: scope.to_stream([0]).partition(3, lambda x: result))


def test_partition_needs_a_part(workers: int) -> None:
    with pytest.raises(ps.GraphError, match="at least 1"):
        run(workers, lambda scope: scope.to_stream([0]).partition(0, lambda x: (0, x)))


def test_branch_and_branch_when(workers: int) -> None:
    def main(worker: ps.Worker) -> Any:
        handle: ps.InputHandle[int] = ps.InputHandle()
        with worker.dataflow() as scope:
            stream = handle.to_stream(scope)
            no, yes = stream.branch(lambda time, x: x > time)  # type: ignore[operator]
            before, after = stream.branch_when(lambda time: time >= 2)  # type: ignore[operator]
            captures = [branch.capture() for branch in (no, yes, before, after)]
        for time in range(4):
            handle.advance_to(time)
            handle.send_batch(range(5))
        return captures

    no, yes, before, after = map(merged, zip(*ps.execute(main, workers=workers), strict=True))
    for time in range(4):
        assert no[time] == Counter({x: workers for x in range(time + 1)})
        assert yes[time] == Counter({x: workers for x in range(time + 1, 5)})
    assert set(before) == {0, 1}
    assert set(after) == {2, 3}
    assert all(
        some == Counter({x: workers for x in range(5)}) for some in (*before.values(), *after.values())
    )


def test_a_function_runs_once_however_many_read_its_result(workers: int) -> None:
    calls: Seen[int] = Seen()

    def double(x: int) -> int:
        calls.note(x)
        return 2 * x

    def build(scope: ps.Scope) -> Any:
        doubled = share(scope, range(100)).map(double)
        plus = doubled.map(lambda x: x + 1)
        halves = doubled.partition(2, lambda x: (x // 2 % 2, x))
        elsewhere = doubled.exchange(lambda x: x)
        sent = doubled.unary(ps.Pipeline(), "pass", passing)
        return [s.capture() for s in (doubled, plus, *halves, elsewhere, sent, plus.concat(doubled))]

    doubled, plus, even, odd, elsewhere, sent, both = map(merged, zip(*run(workers, build), strict=True))
    assert Counter(calls) == Counter(range(100))
    expected = Counter(range(0, 200, 2))
    assert doubled[0] == elsewhere[0] == sent[0] == even[0] + odd[0] == expected
    assert set(even[0]) == set(range(0, 200, 4))
    assert plus[0] == Counter(range(1, 200, 2))
    assert both[0] == expected + plus[0]


def test_readers_of_a_stream_do_not_see_what_others_do_to_its_batches(workers: int) -> None:
    def spoil(_time: ps.Time, records: list[int]) -> None:
        records.clear()

    def cleared(records: list[int]) -> list[None]:
        records.clear()
        return [None]

    def spoiling(cap: ps.Capability, info: ps.OperatorInfo) -> Any:
        cap.drop()

        def logic(port: ps.InputPort[int], output: ps.OutputPort[int]) -> None:
            for message, records in port:
                with output.session(message) as session:
                    session.give_all(records)
                records[:] = [None]  # type: ignore[list-item]  # it is ours

        return logic

    def build(scope: ps.Scope) -> Any:
        stream = share(scope, range(N)).broadcast()
        return [
            stream.inspect_batch(spoil).capture(),
            stream.map_batches(cleared).capture(),
            stream.unary(ps.Pipeline(), "spoiling", spoiling).capture(),
            stream.unary(ps.Pipeline(), "spoiling", spoiling).map(lambda x: x).capture(),
            stream.inspect_batch(spoil)
            .unary(ps.Broadcast(), "spoiling", spoiling)
            .filter(lambda _: False)
            .capture(),
            stream.map(lambda x: x).capture(),
            stream.capture(),
        ]

    everything = Counter({x: workers for x in range(N)})
    results = [merged(captures) for captures in zip(*run(workers, build), strict=True)]
    for i in (0, 2, 3, 5, 6):
        assert results[i] == {0: everything}, i
    assert set(results[1][0]) == {None}
    assert results[4] == {}


def test_extracting_a_capture_leaves_it_as_it_is(workers: int) -> None:
    for capture in run(workers, lambda scope: scope.to_stream([3, 1, 2]).capture()):
        capture.extract()[0][1].clear()
        for event in capture:
            if isinstance(event, ps.capture.Messages):
                event.data.clear()
        assert capture.extract() == [(0, [1, 2, 3])]


def test_concatenating_nothing_and_empty_streams(workers: int) -> None:
    def build(scope: ps.Scope) -> Any:
        nothing: ps.Stream[int] = scope.concatenate([])
        probe = scope.empty().probe()
        return nothing.capture(), nothing.concat(scope.empty(), scope.to_stream([1])).capture(), probe

    nothing, one, probes = zip(*run(workers, build), strict=True)
    assert merged(nothing) == {}
    assert merged(one) == {0: Counter({1: workers})}
    assert all(probe.done() for probe in probes)


@pytest.mark.parametrize("method", ["map", "filter", "flat_map", "inspect", "map_in_place", "exchange"])
def test_what_is_no_function_is_refused_where_it_is_given(workers: int, method: str) -> None:
    with pytest.raises(TypeError, match="function"):
        run(workers, lambda scope: getattr(scope.to_stream([1]), method)(7))


def test_to_stream_is_lazy_and_at_the_minimum_time(workers: int) -> None:
    def main(worker: ps.Worker) -> Any:
        taken = 0

        def count() -> Any:
            nonlocal taken
            for taken in range(1, 100_001):  # noqa: UP028  # it is counted
                yield taken

        with worker.dataflow(dims=2) as scope:
            probe = scope.to_stream(count()).map(lambda x: x).probe()
        worker.step()
        after_one_step = taken
        assert probe.less_equal((0, 0))
        worker.run()
        return after_one_step, taken

    for after_one_step, taken in ps.execute(main, workers=workers):
        assert 0 < after_one_step < 50_000
        assert taken == 100_000
