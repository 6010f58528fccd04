"""Common mistakes: each is refused with a message that names the remedy."""

from __future__ import annotations

import functools
import logging
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp._validation import _OF_STREAMS, _OF_STREAMS_OF_RECORDS
from pointstamp.api.column_collection import ColumnCollection

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64())])


async def wait(*_: Any) -> int:
    return 1


async def wait_and_yield(*_: Any) -> Any:
    yield 1


class Waits:
    async def __call__(self, *_: Any) -> int:
        return 1

    async def method(self, *_: Any) -> int:
        return 1


ASYNC = [wait, wait_and_yield, Waits(), Waits().method, functools.partial(wait, 1)]

CALLS: dict[str, Any] = {
    "map": lambda s, f: s.map(f),
    "flat_map": lambda s, f: s.flat_map(f),
    "filter": lambda s, f: s.filter(f),
    "inspect": lambda s, f: s.inspect(f),
    "inspect_batch": lambda s, f: s.inspect_batch(f),
    "partition": lambda s, f: s.partition(2, f),
    "branch": lambda s, f: s.branch(f),
    "try_map": lambda s, f: s.try_map(f),
    "delay": lambda s, f: s.delay(f),
    "delay_batch": lambda s, f: s.delay_batch(f),
    "exchange": lambda s, f: s.exchange(f),
    "accumulate": lambda s, f: s.accumulate(int, f),
    "aggregate": lambda s, f: s.aggregate(f, max, default=int),
    "state_machine": lambda s, f: s.state_machine(f, default=int),
    "logic of unary": lambda s, f: s.unary(ps.Pipeline(), "mine", lambda cap, info: f),
    "constructor of unary": lambda s, f: s.unary(ps.Pipeline(), "mine", f),
    "constructor of sink": lambda s, f: s.sink(ps.Pipeline(), "mine", f),
    "logic of unary_notify": lambda s, f: s.unary_notify(ps.Pipeline(), "mine", [], f),
    "source": lambda s, f: s.scope.source("mine", f),
    "map_batches": lambda s, f: s.to_arrow(SCHEMA).map_batches(f),
    "inspect_batch of columns": lambda s, f: s.to_arrow(SCHEMA).inspect_batch(f),
    "branch_when of columns": lambda s, f: s.to_arrow(SCHEMA).branch_when(f),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("function", ASYNC, ids=["function", "generator", "object", "method", "partial"])
def test_an_async_function_is_refused_when_the_dataflow_is_built(name: str, function: Any) -> None:
    with pytest.raises(TypeError, match=r"is async: .* Give it a plain function"):
        ps.example(lambda scope: CALLS[name](scope.to_stream([1]), function) and None)


def produce(*_: Any) -> Any:
    yield 1


ONE_RESULT: dict[str, Any] = {
    **{
        name: CALLS[name]
        for name in (
            *(
                "map",
                "filter",
                "inspect",
                "inspect_batch",
                "partition",
                "branch",
                "try_map",
                "delay",
                "delay_batch",
            ),
            *("accumulate", "aggregate", "state_machine"),
        )
    },
    "map of a collection": lambda s, f: s.to_collection().map(f),
    "inspect of a collection": lambda s, f: s.to_collection().inspect(f),
    "threshold": lambda s, f: s.to_collection().threshold(f),
    "join": lambda s, f: s.to_collection().join(s.to_collection(), f),
    "branch_when of columns": CALLS["branch_when of columns"],
}


@pytest.mark.parametrize("name", ONE_RESULT)
@pytest.mark.parametrize("function", [produce, functools.partial(produce, 1)], ids=["function", "partial"])
def test_a_function_that_yields_is_refused_where_one_result_is_used(name: str, function: Any) -> None:
    with pytest.raises(TypeError, match=r"which yields: .* Return the result") as raised:
        ps.example(lambda scope: ONE_RESULT[name](scope.to_stream([1]), function) and None)
    assert ("use flat_map" in str(raised.value)) == name.startswith("map")


def test_a_function_may_yield_where_it_has_any_number_of_results() -> None:
    def build(scope: Any) -> Any:
        numbers = scope.to_stream([1, 2])
        pairs = scope.collection([(1, 2)])
        return [
            numbers.flat_map(produce).capture(),
            numbers.map_batches(produce).capture(),
            pairs.flat_map(produce).capture(),
            pairs.map_groups(produce).capture(),
        ]

    assert [c.extract() for c in ps.example(build)] == [
        [(0, [1, 1])],
        [(0, [1])],
        [(0, [(1, 1)])],
        [(0, [((1, 1), 1)])],
    ]


@pytest.mark.parametrize("main", [*ASYNC, produce, 5])
def test_a_main_that_would_not_run_is_refused(main: Any) -> None:
    with pytest.raises(
        TypeError, match=r"^execute (was given .* (is async|yields)|needs a function of a worker)"
    ):
        ps.execute(main)


def test_a_configuration_is_a_config() -> None:
    with pytest.raises(TypeError, match=r"config is a pointstamp\.Config, .*, not {'workers': 2}"):
        ps.execute(lambda _: None, config={"workers": 2})  # type: ignore[arg-type]


def test_what_is_not_a_collection_or_a_trace_is_refused() -> None:
    def build(scope: Any) -> None:
        with pytest.raises(TypeError, match=r"import_trace needs the trace of an arrangement, .*, not 5"):
            scope.import_trace(5)
        with scope.iterative() as inner:
            with pytest.raises(TypeError, match=r"a variable starts from a collection, not \[1\]"):
                inner.variable([1])
            variable = inner.variable()
            with pytest.raises(TypeError, match="a variable is set to a collection, not None"):
                variable.set(None)
            variable.set(variable.collection.distinct())

    ps.example(build)


def test_one_column_is_not_a_table() -> None:
    def main(worker: ps.Worker) -> None:
        rows = ps.ArrowInput(pa.schema([("n", pa.int64())]))
        with worker.dataflow() as scope:
            rows.to_stream(scope).capture()
        for column in (pa.chunked_array([[1]]), pa.array([1])):
            with pytest.raises(TypeError, match=r"make a (table or a data frame|record batch) of it$"):
                rows.send(column)

    ps.execute(main)


def test_rows_are_exchanged_by_the_name_of_a_column() -> None:
    by: Any = max
    with pytest.raises(TypeError, match="the name of a column, or several, not a function"):
        ps.example(lambda s: s.to_stream([]).to_arrow(SCHEMA).exchange(by) and None)  # type: ignore[truthy-bool]


def test_a_fold_that_returns_nothing_is_refused() -> None:
    pairs = [("a", 1), ("a", 2)]

    def forgets(key: str, value: int, seen: list[int]) -> Any:
        seen.append(value)

    with pytest.raises(TypeError, match=r"the fold of aggregate, .*forgets, returned None: it must return"):
        ps.example(lambda s: s.to_stream(pairs).aggregate(forgets, lambda *x: x, default=list).capture())
    with pytest.raises(TypeError, match=r"the fold of accumulate, .* returned None"):
        ps.example(
            lambda s: s.to_stream(pairs).accumulate(list, lambda seen, batch: seen.extend(batch)).capture()
        )

    # Where None is a state like any other, it may come back.
    def last(_key: str, value: int, _state: int | None) -> int | None:
        return None if value == 2 else value

    found = ps.example(
        lambda s: s.to_stream(pairs).aggregate(last, lambda *x: x, default=lambda: None).capture()
    )
    assert found.extract() == [(0, [("a", None)])]


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ((1, "word"), r"returned 'word' as its outputs, .*return \(state, \['word'\]\)"),
        ((1, b"word"), "as its outputs"),
        ((1, ("key", 1)), r"return \(state, \[\('key', 1\)\]\)"),
        ((1, {"a": 1}), "as its outputs"),
        ((1, 5), "returned 5 as its outputs: return a list of records"),
        ((1, None), "returned None as its outputs: return a list"),
        (None, r"must return \(state, outputs\), and returned None"),
        ("ab", r"must return \(state, outputs\), and returned 'ab'"),
    ],
)
def test_outputs_that_are_one_record_are_refused(returned: Any, message: str) -> None:
    def run(machine: Any) -> Any:
        return ps.example(lambda s: s.to_stream([("a", 1)]).state_machine(machine, default=int).capture())

    with pytest.raises(TypeError, match=message):
        run(lambda key, value, state: returned)
    for outputs in ([], (), ["word"], iter(["word"]), {"word"}):
        found = [
            record for _, records in run(lambda *_, out=outputs: (1, out)).extract() for record in records
        ]
        assert found in ([], ["word"])


def test_the_class_of_a_pact_is_refused() -> None:
    def build(cap: ps.Capability, info: ps.OperatorInfo) -> Any:
        cap.drop()
        return lambda input, output: None

    calls: list[tuple[Any, str]] = [
        (
            lambda s: s.unary(ps.Pipeline, "mine", build),
            r"'mine' was given the class Pipeline .*ps.Pipeline\(\)",
        ),
        (lambda s: s.unary(ps.Exchange, "mine", build), r"write ps.Exchange\(key\)"),
        (lambda s: s.sink(ps.Broadcast, "mine", build), r"write ps.Broadcast\(\)"),
        (lambda s: s.binary(s, ps.Pipeline(), ps.Pipeline, "mine", build), r"write ps.Pipeline\(\)"),
        (lambda s: s.scope.operator("mine").new_input(s, ps.Pipeline), r"write ps.Pipeline\(\)"),
        (lambda s: s.unary(len, "mine", build), r"not <built-in function len>: ps.Exchange\(key\)"),
        (lambda s: s.unary("Pipeline", "mine", build), r"needs a pact, .*not 'Pipeline'"),
    ]
    for call, message in calls:

        def build_wrongly(scope: ps.Scope, call: Any = call) -> None:
            call(scope.to_stream([1]))

        with pytest.raises(TypeError, match=message):
            ps.example(build_wrongly)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("v", "sum"), r"total is \('v', 'sum'\): write total=ps.col\('price'\).sum\(\)"),
        ("v", r"total=ps.col\('v'\).sum\(\)"),
        (None, "total is None"),
        (sum, "takes aggregates of expressions"),
        (ps.col("v"), r"has a value for each row: write total=col\(\"v\"\).sum\(\)"),
        (pl.col("v").sum(), "with_columns or select"),
        (
            ps.col("v").top_k("3"),  # type: ignore[arg-type]
            "top_k takes a number of values",
        ),
        (
            ps.col("v").quantile("half"),  # type: ignore[arg-type]
            "quantile takes a share",
        ),
    ],
)
@pytest.mark.parametrize("call", ["aggregate", "running", "window", "collection"])
def test_aggregates_are_aggregates_of_expressions(given: Any, message: str, call: str) -> None:
    def build(scope: ps.Scope) -> Any:
        rows = scope.to_stream([]).to_arrow(SCHEMA)
        if call == "collection":
            return rows.to_collection().aggregate("k", total=given)
        if call == "window":
            return rows.window(ps.Tumbling(1), "k", column="v", total=given)
        if call == "running":
            return rows.running("k", column="v", total=given)
        return rows.aggregate("k", total=given)

    with pytest.raises(TypeError, match=message):
        ps.example(build)


def test_what_an_aggregate_cannot_be_called_or_computed_of() -> None:
    def build(**aggregates: Any) -> Any:
        return lambda scope: scope.to_stream([]).to_arrow(SCHEMA).aggregate("k", **aggregates)

    with pytest.raises(TypeError, match=r"give the column another name, and rename\(\) it"):
        ps.example(build(name=ps.count()))
    with pytest.raises(ps.GraphError, match="running needs an aggregate or more"):
        ps.example(lambda scope: scope.to_stream([]).to_arrow(SCHEMA).running("k", column="v"))
    with pytest.raises(ValueError, match="is not a quantile"):
        ps.example(build(q=ps.col("v").quantile(1.5)))
    with pytest.raises(ValueError, match="top_k"):
        ps.example(build(t=ps.col("v").top_k(0)))
    with pytest.raises(ps.GraphError, match="two columns named 'k'"):
        ps.example(build(k=ps.count()))
    with pytest.raises(ps.GraphError, match="no column 'w'"):
        ps.example(build(t=ps.col("w").sum()))
    with pytest.raises(TypeError, match="is an aggregate"):
        bool(ps.col("v").sum())


def test_a_dataflow_without_with_says_so() -> None:
    def main(worker: ps.Worker) -> None:
        with pytest.raises(AttributeError, match=r"write `with worker.dataflow\(\) as scope:`"):
            worker.dataflow().to_stream([1])  # type: ignore[attr-defined]
        with worker.dataflow() as scope:
            with pytest.raises(AttributeError, match=r"write `with scope.iterative\(\) as scope:`"):
                scope.iterative().loop_variable()  # type: ignore[attr-defined]
            with pytest.raises(AttributeError, match=r"with scope.scoped\(dims=2\) as"):
                scope.to_stream([1]).enter(scope.scoped(dims=2))  # type: ignore[arg-type]

    ps.execute(main)


def test_what_there_is_not_suggests_what_there_is() -> None:
    def build(scope: Any) -> None:
        stream = scope.to_stream([])
        rows = stream.to_arrow(SCHEMA)
        for thing, name, message in [
            (stream, "groupby", "a Stream has no attribute 'groupby': there is key_by and aggregate"),
            (stream, "where", "there is filter$"),
            (stream, "mpa", "there is map$"),
            (stream, "conect_loop", "there is connect_loop$"),
            (rows, "unique", "an ArrowStream has no attribute 'unique': there is distinct"),
            (
                rows,
                "flat_map",
                r"an ArrowStream has no attribute 'flat_map': map_batches .* to_records\(\).flat_map one",
            ),
            (
                stream,
                "arrange",
                r"a Stream has no attribute 'arrange': collections have it, to_collection\(\).arrange$",
            ),
            (
                scope.new_collection(schema=pa.schema([("n", pa.int64())]))[1],
                "map",
                r"a ColumnCollection has no attribute 'map': .* to_records\(\).map$",
            ),
            (
                scope.collection([(1, 2)]).arrange(),
                "map",
                r"an Arranged has no attribute 'map': collections have it, to_collection\(\).map$",
            ),
            (stream, "for_each", "there is inspect$"),
            (
                scope.collection([]),
                "groupby",
                "a Collection has no attribute 'groupby': there is value_counts and map_groups$",
            ),
            (scope.collection([]), "aggregate", "there is map_groups and sum$"),
            (scope.collection([]), "semijoin", "there is join$"),
            (scope, "iterate", "a Scope has no attribute 'iterate': there is iterative"),
            (stream, "_nothing", "a Stream has no attribute '_nothing'$"),
            (
                scope.new_collection()[0],
                "send",
                "CollectionInput has no attribute 'send': there is insert$",
            ),
            (
                scope.new_collection(schema=SCHEMA)[0],
                "send",
                "a ColumnInput has no attribute 'send': there is insert$",
            ),
            (scope.new_collection()[0], "send_batch", "there is insert_many and update_many$"),
        ]:
            with pytest.raises(AttributeError, match=message):
                getattr(thing, name)
            assert not hasattr(thing, name)

    ps.example(build)


@pytest.mark.parametrize("name", sorted(_OF_STREAMS | _OF_STREAMS_OF_RECORDS))
def test_collections_say_what_the_stream_of_their_updates_has(name: str) -> None:
    def build(scope: Any) -> None:
        for thing in (scope.collection([]), scope.new_collection(schema=SCHEMA)[1]):
            advised = rf": the stream of its updates has it, updates\(\).{name}$"
            has = hasattr(thing.updates(), name)
            with pytest.raises(AttributeError, match=advised if has else "has no attribute"):
                getattr(thing, name)
            assert has or isinstance(thing, ColumnCollection)

    ps.example(build)


def test_a_mistake_inside_a_property_is_told_as_it_is() -> None:
    class Totals(ps.Vertex):
        settings: Any = None

        @property
        def limit(self) -> Any:
            return self.settings.limit

    totals = object.__new__(Totals)
    with pytest.raises(AttributeError, match="'NoneType' object has no attribute 'limit'"):
        _ = totals.limit
    with pytest.raises(AttributeError, match="a Totals has no attribute 'limits': there is limit"):
        _ = totals.limits  # type: ignore[attr-defined]


def test_a_slice_of_a_data_frame_can_be_sent() -> None:
    """pandas adds its index to what it hands over."""
    frame = pd.DataFrame({"k": [1, 2, 3], "v": [4, 5, 6]})
    part = frame[frame["k"] > 1]
    assert "__index_level_0__" in pa.table(part).column_names

    def main(worker: ps.Worker) -> Any:
        rows, indexed = ps.ArrowInput(SCHEMA), ps.ArrowInput(pa.table(part).schema)
        with worker.dataflow() as scope:
            captured = [each.to_stream(scope).to_records().capture() for each in (rows, indexed)]
        rows.send(part)
        with pytest.raises(TypeError, match=r"'extra'.* is not in the stream's schema"):
            rows.send(part.assign(extra=1))
        indexed.send(part)
        rows.close()
        indexed.close()
        worker.run()
        return [each.extract() for each in captured]

    [[plain, indexed]] = ps.execute(main)
    assert plain == [(0, [{"k": 2, "v": 5}, {"k": 3, "v": 6}])]
    assert [row["__index_level_0__"] for _, rows in indexed for row in rows] == [1, 2]


def test_a_process_that_is_started_alone_says_whom_it_waits_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    said: list[str] = []

    def execute(main: Any, *, config: ps.Config) -> list[Any]:
        said.extend(caplog.messages)  # before anything is waited for
        return []

    monkeypatch.setattr("pointstamp.runtime.execution.execute", execute)
    with caplog.at_level(logging.WARNING, "pointstamp.cluster"):
        ps.execute_from_args(lambda worker: None, ["-n", "2", "-w", "3"])
        assert len(said) == 1
        assert "process 0 of 2 waits for process 1 at " in said[0]
        assert "`python -m pointstamp run -n 2 -w 3 module:main`" in said[0]
        caplog.clear()
        said.clear()
        ps.execute_from_args(lambda worker: None, ["-w", "3"])
        assert not said
