"""Texts of the things that a program holds, and the names of operators."""

import threading
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps


def test_what_a_program_holds_says_what_it_is() -> None:
    state: ps.KeyedState[Any, Any] = ps.KeyedState()

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow("shop") as scope:
            numbers, collection = scope.new_collection()
            stream = scope.to_stream(range(3))
            captured = stream.capture()
            keyed = stream.key_by(lambda n: n)
            keyed.scan(lambda _, n, total: total + n, default=int, state=state).probe()
            arranged = collection.map(lambda n: (n, n)).arrange()
            trace = arranged.trace()
            kept = collection.capture()
            rows = ps.ArrowInput(pa.schema([("n", pa.int64())]))
            columns = scope.input_from(rows)
            said = [stream, columns, collection, arranged, keyed, trace, numbers, rows, captured]
            building = [repr(one) for one in said]
        numbers.insert(1)
        numbers.close()
        rows.close()
        worker.run()
        after = [repr(one) for one in (numbers, captured, kept, state)]
        trace.close()
        return building, after

    [(building, after)] = ps.execute(main)
    scope = "in <Scope 'shop' (0,)>"
    assert building == [
        f"<Stream {scope}>",
        f"<ArrowStream of n {scope}>",
        f"<Collection {scope}>",
        f"<Arranged {scope}>",
        f"<KeyedStream {scope}>",
        "<Trace of a dataflow that is being built>",
        "<CollectionInput 'input' of 'shop' at 0>",
        "<ArrowInput of n: 'input' of 'shop' at 0>",
        "<Capture: 0 records at 0 times>",
    ]
    assert after == [
        "<CollectionInput 'input' of 'shop' closed>",
        "<Capture: 3 records at 1 times>",
        "<CollectionCapture: 1 records at 1 times>",
        "<KeyedState at the end: 3 keys>",
    ]


def test_inputs_probes_and_loops_say_where_they_are() -> None:
    loose: list[Any] = [ps.InputHandle(), ps.ArrowInput(pa.schema([("n", pa.int64())])), ps.ProbeHandle()]
    assert [repr(one) for one in loose] == [
        "<InputHandle connected to no dataflow>",
        "<ArrowInput of n: connected to no dataflow>",
        "<ProbeHandle attached nowhere>",
    ]
    loose[0].close()
    assert repr(loose[0]) == "<InputHandle closed>"

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow("shop", dims=2) as scope:
            bids, stream = scope.new_input(name="bids")
            prices, capability, _ = scope.new_unordered_input(name="prices")
            handle, back = scope.loop_variable()
            columns, batches = scope.loop_variable(schema=pa.schema([("n", pa.int64())]))
            said = [repr(one) for one in (handle, columns)]
            probe = stream.concat(back).probe()
            stream.connect_loop(handle)
            batches.connect_loop(columns)
            said += [repr(one) for one in (handle, bids, prices, capability, probe)]
        elsewhere: list[str] = []
        other = threading.Thread(target=lambda: elsewhere.append(repr(bids)))
        other.start()
        other.join()
        bids.advance_to((3, 1))
        said += [*elsewhere, repr(bids)]
        worker.step_while(lambda: probe.less_than((3, 0)))
        capability.drop()
        bids.close()
        worker.run()
        return [*said, repr(bids), repr(probe)], bids, handle

    [(said, bids, handle)] = ps.execute(main)
    assert said == [
        "<LoopHandle not connected>",
        "<LoopHandle of record batches not connected>",
        "<LoopHandle connected>",
        "<InputHandle 'bids' of 'shop' at (0, 0)>",
        "<UnorderedInput 'prices' of 'shop'>",
        "<Capability time=(0, 0) output=0>",
        "<ProbeHandle frontier=[(0, 0)]>",
        "<InputHandle 'bids' of 'shop'>",
        "<InputHandle 'bids' of 'shop' at (3, 1)>",
        "<InputHandle 'bids' of 'shop' closed>",
        "<ProbeHandle frontier=[]>",
    ]
    assert repr(bids) == "<InputHandle 'bids' of 'shop' closed>"
    assert repr(handle) == "<LoopHandle connected>"


NAMED: dict[str, Any] = {
    "map_in_place": lambda stream: stream.map_in_place(id, name="mine"),
    "map_batches": lambda stream: stream.map_batches(list, name="mine"),
    "try_map": lambda stream: stream.try_map(str, name="mine")[0],
    "ok_err": lambda stream: stream.ok_err(lambda x: (True, x), name="mine")[0],
    "inspect": lambda stream: stream.inspect(id, name="mine"),
    "inspect_time": lambda stream: stream.inspect_time(lambda x, t: None, name="mine"),
    "inspect_batch": lambda stream: stream.inspect_batch(lambda t, x: None, name="mine"),
    "partition": lambda stream: stream.partition(1, lambda x: (0, x), name="mine")[0],
    "branch": lambda stream: stream.branch(lambda t, x: True, name="mine")[0],
    "branch_when": lambda stream: stream.branch_when(lambda t: True, name="mine")[0],
    "exchange": lambda stream: stream.exchange(int, name="mine"),
    "broadcast": lambda stream: stream.broadcast(name="mine"),
}


@pytest.mark.parametrize("method", NAMED)
def test_an_operator_has_the_name_that_it_was_given(method: str) -> None:
    def main(worker: ps.Worker) -> set[str]:
        with worker.dataflow() as scope:
            NAMED[method](scope.to_stream([1])).probe()
        return {operator.name for operator in scope.graph.operators.values()}

    assert ps.execute(main) == [{"to_stream", "mine", "probe"}]


EVENTS: dict[str, Any] = {
    "map": lambda stream: stream.map(str, name="mine"),
    "filter": lambda stream: stream.filter(bool, name="mine"),
    "flat_map": lambda stream: stream.flat_map(lambda x: [x], name="mine"),
    "inspect": lambda stream: stream.inspect(id, name="mine"),
    "exchange": lambda stream: stream.exchange(int, name="mine"),
}


@pytest.mark.parametrize("method", EVENTS)
def test_an_operator_of_event_times_has_the_name_that_it_was_given(method: str) -> None:
    def main(worker: ps.Worker) -> set[str]:
        with worker.dataflow() as scope:
            EVENTS[method](scope.to_stream([1]).event_time(int)[0]).probe()
        return {operator.name for operator in scope.graph.operators.values()}

    [names] = ps.execute(main)
    assert "mine" in names
    assert method not in names
