"""Records at times of their own, as streams on event time carry them: counted, moved and written."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from effort import examples
from harness import WORKERS, merged, run, share
from pointstamp import _core
from pointstamp._core import PactKind, StageKind, decode_batch, encode_batch, give_timed
from pointstamp.observability.dashboard_state import state_of
from pointstamp.observability.metrics import prometheus
from pointstamp.plan.node import Form


class Bundle(NamedTuple):
    """A record of a program's own that looks like columns of times and records."""

    times: list[int]
    records: list[Any]


RECORDS = [
    Bundle([at, at + 1, at + 2], ["a", "b", at % 4]) if at % 2 else ([at, at], [at], [at]) for at in range(60)
]
"""Records that look like columns: times that are lists, beside lists."""


def shown(record: Any) -> str:
    return repr(tuple(record))


@pytest.mark.parametrize("workers", WORKERS)
def test_records_that_look_like_columns_are_records(workers: int) -> None:
    def build(scope: ps.Scope) -> Any:
        given = share(scope, RECORDS)
        plain = given.exchange(lambda record: record[0][0]).map(shown)
        on_time, _ = given.event_time(lambda record: record[0][0] // 10)
        moved = on_time.exchange(lambda record: record[0][0])
        keyed = (
            moved.key_by(lambda record: record[0][0] % 3)
            .map_values(shown)
            .scan(lambda _key, now, _: now, default=str)
        )
        return plain.capture(), moved.map(shown).capture(), keyed.capture()

    results = run(workers, build)
    plain, moved, keyed = (merged(captures) for captures in zip(*results, strict=True))
    times: dict[ps.Time, Counter[Any]] = {}
    by_key: dict[ps.Time, Counter[Any]] = {}
    for record in RECORDS:
        at = record[0][0]
        times.setdefault(at // 10, Counter())[shown(record)] += 1
        by_key.setdefault(at // 10, Counter())[at % 3, shown(record)] += 1
    assert plain == {0: Counter(map(shown, RECORDS))}
    assert moved == times
    assert keyed == by_key


def counted(build: Any) -> dict[str, int]:
    """Returns the number of records that each operator took in, by name, of a dataflow on one worker."""

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            open_, _ = scope.new_input()  # so that the dataflow is still there when it is asked
            handle, stream = scope.new_input()
            probe = build(stream).probe()
        handle.send_batch(RECORDS)
        handle.close()
        worker.step_while(lambda: not probe.done())
        asked = prometheus(state_of(worker._collector.data(worker._engine, 60.0)))
        open_.close()
        return asked

    text = ps.execute(main, config=ps.Config(workers=1, dashboard=0))[0]
    found = re.findall(
        r'^pointstamp_operator_records_in_total\{.*operator="([^"]*)".*\} (\d+)', text, re.MULTILINE
    )
    return {name: int(count) for name, count in found}


def test_records_that_look_like_columns_are_counted_one_by_one() -> None:
    taken = counted(lambda stream: stream.exchange(lambda record: record[0][0]).inspect(repr, name="seen"))
    assert [count for name, count in taken.items() if "seen" in name] == [len(RECORDS)]


def test_each_record_of_a_batch_on_event_time_is_counted() -> None:
    def build(stream: Any) -> Any:
        on_time, _ = stream.event_time(lambda record: record[0][0])
        return on_time.flat_map(lambda record: [record, record], name="twice").exchange(
            lambda record: record[0][0], name="moved"
        )

    taken = counted(build)
    found = {name: count for name, count in taken.items() if "moved" in name or "at event times" in name}
    assert len(found) == 2
    assert set(found.values()) == {2 * len(RECORDS)}


def test_functions_that_want_another_form_are_another_operator() -> None:
    """Records keep their times up to `twice`; one reader has them so, and two want each at its time."""
    batches: list[Any] = []

    def build(scope: ps.Scope) -> Any:
        on_time, _ = scope.to_stream([3, 1]).event_time(lambda n: n, lateness=5)
        twice = on_time.map(lambda n: 2 * n, name="twice")
        at_times = twice.inspect_batch(lambda time, some: batches.append((time, some)), name="shown")
        sums = twice.key_by(lambda n: None).window(ps.Tumbling(10)).sum()
        return at_times.capture(), twice.delay(lambda n, _: n).capture(), sums.capture()

    at_times, later, sums = ps.example(build)
    assert sorted(batches) == at_times.extract() == [(1, [2]), (3, [6])]
    assert later.extract() == [(2, [2]), (6, [6])]
    assert [records for _, records in sums.extract()] == [[(None, ps.Window(0, 10), 8)]]

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            build(scope)
        worker.run()
        return [operator.name for operator in scope.graph.operators.values()]

    [names] = ps.execute(main)
    assert {"twice > key_by", "shown"} <= set(names)
    assert names.count("at event times") == 2  # of `twice`, for both readers, and of the sums


def test_an_operator_on_records_does_not_read_columns() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            on_time: Any = scope.to_stream([1, 2]).event_time(lambda n: n)[0]
            timed = scope._building.take(on_time._output, Form.TIMED)
            records = scope._building.take(on_time._output, Form.RECORDS)
            with pytest.raises(
                ps.GraphError, match="records at times of their own came where records are read"
            ):
                _core.chain(timed, [(StageKind.MAP, "map", repr, 1, None)], [])
            with pytest.raises(
                ps.GraphError, match="records at times of their own came where records are read"
            ):
                timed.forward("first", PactKind.EXCHANGE_FIRST)
            with pytest.raises(
                ps.GraphError, match="records came where records at times of their own are read"
            ):
                records.forward("keys", PactKind.EXCHANGE_KEYS)
            with pytest.raises(
                ps.GraphError, match="records came where records at times of their own are read"
            ):
                scope._engine.concatenate([timed, records])

    ps.execute(main)


def test_an_output_takes_what_it_was_made_for() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            core = scope._engine.operator("both")
            records, _, first = core.new_output()
            timed, _, second = core.new_output(timed=True)
            with pytest.raises(
                ps.GraphError, match="records came where records at times of their own are read"
            ):
                timed.session(second)
            with pytest.raises(
                ps.GraphError, match="records at times of their own came where records are read"
            ):
                give_timed(records, first, (0, ["a"]))
            with pytest.raises(ValueError, match="a column of 1 elements lies beside 2 records"):
                give_timed(timed, second, ([0], ["a", "b"]))
            with pytest.raises(ps.TimeError, match="-1 is not a time"):
                give_timed(timed, second, (-1, ["a", "b"]))
            first.drop()
            second.drop()
            core.build(lambda: None, (), False, False)

    ps.execute(main)


columns = st.integers(0, 20).flatmap(
    lambda n: st.tuples(
        st.integers(0, 2**64 - 1) | st.lists(st.integers(0, 2**70), min_size=n, max_size=n),
        st.lists(st.text() | st.integers(), min_size=n, max_size=n),
        st.lists(st.text() | st.binary() | st.lists(st.integers()), min_size=n, max_size=n),
    )
)


@settings(max_examples=examples(100))
@given(columns, st.booleans())
def test_columns_come_back_from_bytes(whole: tuple[Any, ...], keyed: bool) -> None:
    sent = whole if keyed else (whole[0], whole[2])
    assert decode_batch(encode_batch(sent)) == sent


@settings(max_examples=examples(100))
@given(columns, st.integers(0, 400))
def test_bytes_that_are_cut_short_are_refused(whole: tuple[Any, ...], cut: int) -> None:
    encoded = encode_batch(whole)
    if cut < len(encoded):
        with pytest.raises(ps.CodecError):
            decode_batch(encoded[:cut])


def test_what_columns_share_is_written_once() -> None:
    names = ["a name that is long enough to be seen " + str(n) for n in range(100)]
    once, twice = encode_batch((0, names)), encode_batch((0, names, names))
    assert len(twice) < len(once) * 1.2
    _, keys, records = decode_batch(twice)
    assert keys[7] is records[7]


def test_a_record_that_cannot_be_written_is_named_by_its_type() -> None:
    with pytest.raises(ps.CodecError, match="a record of type function cannot be sent"):
        encode_batch(([1, 2], ["a", "b"], ["x", lambda: 1]))


def test_columns_of_another_form_in_bytes_are_refused() -> None:
    encoded = bytearray(encode_batch(([1, 2], ["a", "b"], ["x", "y"])))
    for form in (0, 1, 2, 4, 255):
        encoded[16] = form
        with pytest.raises(ps.CodecError, match="these bytes are not a batch of records"):
            decode_batch(bytes(encoded))
