"""Custom operators declare their state, and resume with it."""

import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from resuming import Found, make_checkpoint, run_until_stopped, settings, stop_at_checkpoint

NAMES = [f"name {number}" for number in range(40)]


class ByName:
    """A state for each name."""

    version = 1

    def __init__(self) -> None:
        self.states: dict[str, Any] = {}

    def snapshot(self) -> Iterable[tuple[str, Any]]:
        return self.states.items()

    def restore(self, pairs: Iterable[tuple[str, Any]], version: int) -> None:
        assert version == 1
        self.states.update(pairs)


def name_of(record: tuple[str, int]) -> str:
    return record[0]


def later_by_five(record: Any, time: Any) -> int:
    return int(time) + 5


def all_of(results: list[list[Any]]) -> list[Any]:
    return sorted(one for result in results for one in result)


def totals(capability: ps.Capability, info: ps.OperatorInfo) -> Callable[..., None]:
    """Sends the total of a name after each record."""
    capability.drop()
    states = info.state.states

    def logic(input: Any, output: Any) -> None:
        for cap, records in input:
            with output.session(cap) as session:
                for name, amount in records:
                    states[name] = states.get(name, 0) + amount
                    session.give((name, states[name]))

    return logic


def by_time(capability: ps.Capability, info: ps.OperatorInfo) -> Callable[..., None]:
    """Sends the total of each name and time when the time is over; a state holds its capability."""
    capability.drop()
    states = info.state.states  # by name and time: the capability, and the total

    def logic(input: Any, output: Any) -> None:
        for cap, records in input:
            for name, amount in records:
                times = states.setdefault(name, {})
                held, total = times.get(cap.time) or (cap.retain(), 0)
                times[cap.time] = held, total + amount
        for name, times in list(states.items()):
            for time in sorted(time for time in times if not input.frontier.less_equal(time)):
                held, total = times.pop(time)
                with held, output.session(held) as session:
                    session.give((name, total))
            if not times:
                del states[name]

    return logic


def feed(handle: ps.InputHandle[Any], worker: ps.Worker, amount: int) -> None:
    for name in NAMES[worker.index :: worker.peers]:
        handle.send((name, amount))


def program(add: Callable[[ps.Stream[Any]], ps.Stream[Any]], stops: bool) -> Callable[[ps.Worker], Any]:
    """Sends each name at times 0, 1 and 2; it stops after time 1, or has resumed from there."""

    def main(worker: ps.Worker) -> list[Any]:
        with worker.dataflow() as scope:
            handle: ps.InputHandle[Any]
            handle, stream = scope.new_input(resume="continue")
            made = add(stream)
            probe, found = made.probe(), Found(made)
        if worker.resumed is None:
            for time in range(2):
                handle.advance_to(time)
                feed(handle, worker, 10**time)
            handle.advance_to(2)
        worker.step_while(lambda: probe.less_than(2), timeout=30)
        if stops:
            stop_at_checkpoint(worker)
        feed(handle, worker, 100)
        handle.close()
        worker.run()
        return found.records

    return main


@pytest.mark.parametrize("numbers", [(1, 1), (2, 2), (1, 3), (3, 2)])
def test_state_by_key_goes_on_with_any_number_of_workers(tmp_path: Path, numbers: tuple[int, int]) -> None:
    def add(stream: ps.Stream[Any]) -> ps.Stream[Any]:
        return stream.unary_frontier(ps.ByKey(name_of), "totals", totals, state=ByName)

    before, after = numbers
    run_until_stopped(program(add, stops=True), settings(tmp_path, before))
    results = ps.execute(program(add, stops=False), config=settings(tmp_path, after))
    assert all_of(results) == sorted((2, (name, 111)) for name in NAMES)


COLUMNS = pa.schema([("name", pa.string()), ("place", pa.int64()), ("amount", pa.int64())])


def column_totals(keys: Sequence[str]) -> Callable[[ps.Capability, ps.OperatorInfo], Callable[..., None]]:
    """Sends the total of a key of columns after each row."""

    def build(capability: ps.Capability, info: ps.OperatorInfo) -> Callable[..., None]:
        capability.drop()
        states = info.state.states

        def logic(input: Any, output: Any) -> None:
            for cap, batch in input:
                with output.session(cap) as session:
                    for row in batch.to_pylist():
                        key = tuple(row[name] for name in keys) if len(keys) > 1 else row[keys[0]]
                        states[key] = states.get(key, 0) + row["amount"]
                        session.give((row["name"], states[key]))

        return logic

    return build


@pytest.mark.parametrize("keys", [["name"], ["place"], ["name", "place"]])
@pytest.mark.parametrize("numbers", [(1, 3), (3, 2)])
def test_state_by_columns_goes_on_with_any_number_of_workers(
    tmp_path: Path, keys: list[str], numbers: tuple[int, int]
) -> None:
    def add(stream: ps.Stream[Any]) -> ps.Stream[Any]:
        rows = stream.map(
            lambda record: {"name": record[0], "place": int(record[0][5:]), "amount": record[1]}
        )
        pact = ps.ByKey(keys[0] if len(keys) == 1 else keys)
        return rows.to_arrow(COLUMNS).unary_frontier(
            pact, "totals", column_totals(keys), schema=None, state=ByName
        )

    before, after = numbers
    run_until_stopped(program(add, stops=True), settings(tmp_path, before))
    results = ps.execute(program(add, stops=False), config=settings(tmp_path, after))
    assert all_of(results) == sorted((2, (name, 111)) for name in NAMES)


@pytest.mark.parametrize(
    ("pact", "columns", "why"),
    [
        (ps.ByKey("name"), False, r"names columns, and the stream carries records: give ByKey a function"),
        (
            ps.ByKey(name_of),
            True,
            r"a function of a record, and the stream carries columns: name the columns",
        ),
        (ps.ByKey(), True, r"is for pairs, and the stream carries columns: name the columns"),
    ],
)
def test_a_key_of_another_kind_of_stream_is_refused(pact: ps.Pact, columns: bool, why: str) -> None:
    def build(scope: ps.Scope) -> None:
        stream: Any = scope.to_stream([("ann", 1)])
        if columns:
            stream = stream.map(lambda one: {"name": one[0]}).to_arrow(pa.schema([("name", pa.string())]))
        stream.unary(pact, "totals", totals, schema=None, state=ByName)

    with pytest.raises(TypeError, match=why):
        ps.example(build)


@pytest.mark.parametrize("key", [3, [], [1], ()])
def test_a_key_is_a_function_or_names(key: Any) -> None:
    with pytest.raises(
        TypeError, match=r"the key of ByKey is a function of a record, or the names of columns"
    ):
        ps.ByKey(key)


@pytest.mark.parametrize("numbers", [(1, 1), (2, 2), (1, 3), (3, 2)])
def test_capabilities_in_a_state_come_back(tmp_path: Path, numbers: tuple[int, int]) -> None:
    def main(worker: ps.Worker) -> list[Any]:
        with worker.dataflow() as scope:
            handle, stream = scope.new_input(resume="continue")
            later = stream.delay(later_by_five)
            made = later.unary_frontier(ps.ByKey(name_of), "by time", by_time, state=ByName)
            probe, found = made.probe(), Found(made)
        if worker.resumed is None:
            feed(handle, worker, 1)
            handle.advance_to(5)
            worker.step_while(lambda: probe.less_than(5), timeout=30)
            stop_at_checkpoint(worker)
        handle.advance_to(5)
        worker.step_while(lambda: probe.less_than(5), timeout=30)
        assert probe.less_equal(5)
        feed(handle, worker, 10)
        handle.close()
        worker.run()
        return found.records

    before, after = numbers
    run_until_stopped(main, settings(tmp_path, before))
    results = ps.execute(main, config=settings(tmp_path, after))
    expected = [(5, (name, 1)) for name in NAMES] + [(10, (name, 10)) for name in NAMES]
    assert all_of(results) == sorted(expected)


def longest(input: Any, output: Any, notificator: ps.Notificator, state: ByName) -> None:
    for cap, records in input:
        for name, amount in records:
            times = state.states.setdefault(name, {})
            times[cap.time] = max(times.get(cap.time, 0), amount)
        notificator.notify_at(cap.retain())
    for cap, _ in notificator:
        with output.session(cap) as session:
            for name, times in state.states.items():
                if cap.time in times:
                    session.give((name, times.pop(cap.time)))


class PerTime(ps.Vertex):
    """Counts the records of each time; on another number of workers, it cannot go on."""

    def __init__(self) -> None:
        self.counts: dict[Any, int] = {}

    def on_recv(self, edge: int, messages: list[Any], time: Any) -> None:
        self.counts[time] = self.counts.get(time, 0) + len(messages)
        self.notify_at(time)

    def on_notify(self, time: Any) -> None:
        self.send_by(0, [("all", self.counts.pop(time))], time)

    def snapshot(self) -> Iterable[tuple[Any, Any]]:
        return self.counts.items()

    def restore(self, pairs: Iterable[tuple[Any, Any]], version: int) -> None:
        self.counts.update(pairs)


@pytest.mark.parametrize(("workers", "shape"), [(1, "notify"), (2, "notify"), (1, "vertex"), (2, "vertex")])
def test_notifications_come_back(tmp_path: Path, workers: int, shape: str) -> None:
    def main(worker: ps.Worker) -> list[Any]:
        with worker.dataflow() as scope:
            handle, stream = scope.new_input(resume="continue")
            later = stream.delay(later_by_five)
            if shape == "notify":
                made = later.unary_notify(ps.ByKey(name_of), "longest", [], longest, state=ByName)
            else:
                made = later.vertex(PerTime)
            probe, found = made.probe(), Found(made)
        if worker.resumed is None:
            feed(handle, worker, 1)
            handle.advance_to(5)
            worker.step_while(lambda: probe.less_than(5), timeout=30)
            stop_at_checkpoint(worker)
        handle.advance_to(5)
        feed(handle, worker, 10)
        handle.close()
        worker.run()
        return found.records

    run_until_stopped(main, settings(tmp_path, workers))
    results = all_of(ps.execute(main, config=settings(tmp_path, workers)))
    if shape == "notify":
        expected = [(5, (name, 1)) for name in NAMES] + [(10, (name, 10)) for name in NAMES]
    else:
        expected = [(time, ("all", len(NAMES) // workers)) for time in (5, 10) for _ in range(workers)]
    assert results == sorted(expected)


def test_notifications_go_on_with_another_number_of_workers(tmp_path: Path) -> None:
    def main(worker: ps.Worker) -> list[Any]:
        with worker.dataflow() as scope:
            handle, stream = scope.new_input(resume="continue")
            later = stream.delay(later_by_five)
            made = later.unary_notify(ps.ByKey(name_of), "longest", [7], longest, state=ByName)
            probe, found = made.probe(), Found(made)
        if worker.resumed is None:
            feed(handle, worker, 1)
            handle.advance_to(5)
            worker.step_while(lambda: probe.less_than(5), timeout=30)
            stop_at_checkpoint(worker)
        handle.close()
        worker.run()
        return found.records

    run_until_stopped(main, settings(tmp_path, 2))
    results = ps.execute(main, config=settings(tmp_path, 3))
    assert all_of(results) == sorted((5, (name, 1)) for name in NAMES)


class Place:
    """The last number that a source has sent."""

    def __init__(self) -> None:
        self.at = 0

    def snapshot(self) -> Iterable[tuple[str, int]]:
        return [("at", self.at)]

    def restore(self, pairs: Iterable[tuple[str, int]], version: int) -> None:
        self.at = dict(pairs)["at"]


def test_a_source_goes_on_where_it_was(tmp_path: Path) -> None:
    def numbers(capability: ps.Capability, info: ps.OperatorInfo) -> Callable[..., None]:
        place = info.state

        def logic(output: Any) -> None:
            if capability.time < place.at + 1:
                capability.downgrade(place.at + 1)
            place.at += 1
            with output.session(capability) as session:
                session.give(place.at)
            if place.at == 20:
                capability.drop()
            elif place.at != 10 or goes_on:
                info.activator.activate()

        return logic

    def main(worker: ps.Worker) -> list[Any]:
        with worker.dataflow() as scope:
            made = scope.source("numbers", numbers, state=Place)
            probe, found = made.probe(), Found(made)
        if not goes_on:
            worker.step_while(lambda: probe.less_than(10), timeout=30)
            stop_at_checkpoint(worker)
        worker.run()
        return found.records

    goes_on = False
    run_until_stopped(main, settings(tmp_path))
    goes_on = True
    [results] = ps.execute(main, config=settings(tmp_path))
    assert results == [(number, number) for number in range(11, 21)]


def test_operators_with_several_inputs_have_state(tmp_path: Path) -> None:
    def constructor(capabilities: list[ps.Capability], info: ps.OperatorInfo) -> Callable[..., None]:
        for capability in capabilities:
            capability.drop()
        states = info.state.states

        def logic(inputs: Any, outputs: Any) -> None:
            for number, port in enumerate(inputs):
                for cap, records in port:
                    with outputs[0].session(cap) as session:
                        for name, amount in records:
                            states[name] = states.get(name, 0) + amount * (-1) ** number
                            session.give((name, states[name]))

        return logic

    def add(stream: ps.Stream[Any]) -> ps.Stream[Any]:
        builder = stream.scope.operator("difference", state=ByName)
        builder.new_input(stream, ps.ByKey(name_of))
        builder.new_input(stream.filter(lambda record: record[1] == 1), ps.ByKey(name_of))
        _, made = builder.new_output()
        builder.build(constructor)
        return made

    run_until_stopped(program(add, stops=True), settings(tmp_path, 2))
    results = ps.execute(program(add, stops=False), config=settings(tmp_path, 3))
    assert all_of(results) == sorted((2, (name, 110)) for name in NAMES)


# ---------------------------------------------------------------- what is refused


def passes(capability: ps.Capability, info: ps.OperatorInfo) -> Callable[..., None]:
    capability.drop()

    def logic(input: Any, output: Any) -> None:
        for cap, records in input:
            with output.session(cap) as session:
                session.give_all(records)

    return logic


def built(folder: Path, add: Callable[[ps.Scope, ps.Stream[Any]], Any], workers: int = 1) -> None:
    """Builds a dataflow, and makes a checkpoint of it."""

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.new_input(resume="continue")
            add(scope, stream)
        for name in NAMES:
            handle.send((name, 1))
        make_checkpoint(worker)

    ps.execute(main, config=settings(folder, workers))


def tail(capability: ps.Capability, info: ps.OperatorInfo) -> Callable[..., None]:
    return lambda output: None


def ignores(info: ps.OperatorInfo) -> Callable[..., None]:
    return lambda input: None


def two(builder: ps.OperatorBuilder, stream: ps.Stream[Any]) -> None:
    builder.new_input(stream, ps.Pipeline())
    builder.build(lambda capabilities, info: lambda inputs, outputs: None)


@pytest.mark.parametrize(
    "add",
    [
        lambda scope, stream: stream.unary(ps.Pipeline(), "silent", passes),
        lambda scope, stream: stream.unary_frontier(ps.Pipeline(), "silent", passes),
        lambda scope, stream: stream.unary_notify(ps.Pipeline(), "silent", [], longest),
        lambda scope, stream: stream.binary(stream, ps.Pipeline(), ps.Pipeline(), "silent", passes),
        lambda scope, stream: stream.binary_frontier(stream, ps.Pipeline(), ps.Pipeline(), "silent", passes),
        lambda scope, stream: stream.binary_notify(
            stream, ps.Pipeline(), ps.Pipeline(), "silent", [], longest
        ),
        lambda scope, stream: stream.sink(ps.Pipeline(), "silent", ignores),
        lambda scope, stream: stream.vertex(ps.Vertex, name="silent"),
        lambda scope, stream: scope.source("silent", tail),
        lambda scope, stream: two(scope.operator("silent"), stream),
    ],
)
def test_an_operator_that_says_nothing_is_refused(tmp_path: Path, add: Callable[..., Any]) -> None:
    with pytest.raises(
        ps.GraphError, match=r"'silent' \(.*test_own_operators.py:\d+\) does not say .*state="
    ):
        built(tmp_path, add)


def test_an_operator_without_state_may_hold_no_time(tmp_path: Path) -> None:
    kept: list[ps.Capability] = []

    def hoards(capability: ps.Capability, info: ps.OperatorInfo) -> Callable[..., None]:
        kept.append(capability)
        return lambda input, output: None

    with pytest.raises(ps.CheckpointError, match=r"'hoarder' .*no state, and holds the time .*state="):
        built(tmp_path, lambda scope, stream: stream.unary(ps.Pipeline(), "hoarder", hoards, state="none"))


def test_an_operator_without_state_is_none(tmp_path: Path) -> None:
    built(tmp_path, lambda scope, stream: stream.unary(ps.Pipeline(), "passes", passes, state="none"))


class Elsewhere(ByName):
    """A state that has keys of all workers."""

    def snapshot(self) -> Iterable[tuple[str, Any]]:
        return [(name, 0) for name in NAMES]


class Twice(ByName):
    """A state that has a key twice."""

    def snapshot(self) -> Iterable[tuple[str, Any]]:
        return [*self.states.items(), *self.states.items()]


class Single(ByName):
    """A state that has no pairs."""

    def snapshot(self) -> Any:
        return [*self.states]


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (Elsewhere, r"returned the key 'name \d+', which is worker \d's"),
        (Twice, r"returned the key 'name \d+' twice"),
        (Single, r"returns pairs \(key, state\), and gave 'name \d+'"),
    ],
)
def test_keys_of_a_snapshot_are_checked(tmp_path: Path, state: Any, why: str) -> None:
    with pytest.raises(ps.CheckpointError, match=why):
        built(
            tmp_path,
            lambda scope, stream: stream.unary(ps.ByKey(name_of), "totals", totals, state=state),
            workers=2,
        )


@pytest.mark.parametrize("pact", [ps.Pipeline(), ps.Exchange(name_of)])
def test_state_that_is_not_by_key_needs_as_many_workers(tmp_path: Path, pact: ps.Pact) -> None:
    def add(stream: ps.Stream[Any]) -> ps.Stream[Any]:
        return stream.unary_frontier(pact, "totals", totals, state=ByName)

    run_until_stopped(program(add, stops=True), settings(tmp_path, 2))
    with pytest.raises(ps.CheckpointError, match=r"'totals' .*not divided by key: resume with 2 workers"):
        ps.execute(program(add, stops=False), config=settings(tmp_path, 3))
    results = ps.execute(program(add, stops=False), config=settings(tmp_path, 2))
    assert all_of(results) == sorted((2, (name, 111)) for name in NAMES)


def test_what_is_no_state_is_refused() -> None:
    def build(state: Any) -> None:
        ps.example(lambda scope: scope.to_stream([1]).unary(ps.Pipeline(), "totals", totals, state=state))

    with pytest.raises(TypeError, match="'totals' is a class with snapshot"):
        build(7)
    with pytest.raises(TypeError, match=r"has no snapshot\(\)"):
        build(dict)
    with pytest.raises(TypeError, match="version of the state of operator 'totals' is an int"):
        build(type("Versioned", (ByName,), {"version": "one"}))


def test_without_checkpoints_nothing_need_be_said() -> None:
    def build(scope: ps.Scope) -> Any:
        stream = scope.to_stream([("ann", 1), ("ann", 2)])
        kept = stream.unary(ps.ByKey(name_of), "totals", totals, state=ByName)
        return kept.unary(ps.Pipeline(), "passes", passes).capture()

    assert ps.example(build).extract() == [(0, [("ann", 1), ("ann", 3)])]


# ---------------------------------------------------------------- variables around functions


def counts_by_assignment() -> Callable[[Any], Any]:
    seen = 0

    def count(record: Any) -> Any:
        nonlocal seen
        seen += 1
        return record

    return count


def remembers_in_a_set() -> Callable[[Any], Any]:
    known = set()

    def new(record: Any) -> bool:
        if record in known:
            return False
        known.add(record)
        return True

    return new


def counts_in_a_dict() -> Callable[[Any], Any]:
    counts: dict[Any, int] = {}

    def count(record: Any) -> Any:
        counts[record] = counts.get(record, 0) + 1
        return record

    return count


def looks_up() -> Callable[[Any], Any]:
    prices = {"ann": 1}
    limit = 3
    return lambda record: prices.get(record[0], limit)


@pytest.mark.parametrize(
    ("function", "variable"),
    [
        (counts_by_assignment(), "the variable 'seen'"),
        (remembers_in_a_set(), "the set in the variable 'known'"),
        (counts_in_a_dict(), "the dict in the variable 'counts'"),
        ([].append, r"a list, by its method append\(\)"),
        (looks_up(), None),
        (name_of, None),
    ],
)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_function_that_keeps_something_is_warned_of_once(
    tmp_path: Path, function: Callable[[Any], Any], variable: str | None, workers: int
) -> None:
    def run(method: str) -> list[str]:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            built(
                tmp_path / method,
                lambda scope, stream: getattr(stream, method)(function),
                workers,
            )
        return [str(one.message) for one in heard if issubclass(one.category, ps.UsageWarning)]

    for method in ("map", "filter", "inspect"):
        said = run(method)
        assert len(said) == (variable is not None)
        if variable is not None:
            assert f"the function of {method} changes" in said[0]
            assert variable.replace("\\", "") in said[0]
