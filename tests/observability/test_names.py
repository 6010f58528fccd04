"""Every operator takes `name=`, and is called by it in drawings, metrics and messages."""

import importlib
import inspect
import io
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pointstamp as ps
from pointstamp import col

N = "the given name"

MADE = (
    "Stream",
    "Collection",
    "Arranged",
    "ProbeHandle",
    "Capture",
    "ColumnCapture",
    "Variable",
    "LoopHandle",
)
"""Results of methods that make an operator."""

NO_OPERATOR = {
    # The border of a scope is no operator; a collection's arrangement enters with it.
    *((kind, method) for kind in ("Stream", "ArrowStream") for method in ("enter", "leave")),
    *((kind, method) for kind in ("Collection", "ColumnCollection") for method in ("enter", "leave")),
    # What is made of these is made by their own methods.
    ("Stream", "window"),
    ("KeyedStream", "window"),
    # Other names for the same.
    ("ColumnCollection", "rename"),
    ("ColumnCollection", "to_records"),
    # Keywords are the names of columns: map_batches takes a name, and `fields` of collections in a tuple do.
    ("ArrowStream", "with_columns"),
    ("ArrowStream", "select"),
    ("ColumnCollection", "select"),
    ("ColumnCollection", "with_columns"),
    # For this package.
    ("Served", "probe"),  # one that is there
}


INTERNAL = ("pointstamp.spark", "pointstamp.__main__", "pointstamp.connectors", "pointstamp.logic")
"""Modules whose classes have no methods that make operators; `Collection` is `collections.abc`'s in some."""


def classes() -> Iterator[type]:
    """The classes of the package that have operators as methods."""
    for module in pkgutil.walk_packages(ps.__path__, "pointstamp."):
        if module.name.startswith(INTERNAL):
            continue
        loaded = importlib.import_module(module.name)
        for kind in vars(loaded).values():
            if inspect.isclass(kind) and kind.__module__ == module.name and not kind.__name__.startswith("_"):
                yield kind


def operators() -> Iterator[tuple[type, str, inspect.Signature]]:
    for kind in classes():
        for method, function in vars(kind).items():
            if method.startswith("_") or not inspect.isfunction(function):
                continue
            signature = inspect.signature(function)
            returned = str(signature.return_annotation).replace("tuple[", "").replace("list[", "")
            if any(returned.startswith(made) for made in MADE) or method in (
                "sink",
                "capture_into",
                "replay",
            ):
                yield kind, method, signature


def test_every_method_that_makes_an_operator_takes_a_name() -> None:
    found = list(operators())
    assert len(found) > 100
    unnamed = {
        (kind.__name__, method) for kind, method, signature in found if "name" not in signature.parameters
    }
    assert unnamed <= NO_OPERATOR, unnamed - NO_OPERATOR


# ------------------------------------------------------------ the name that was given is that of an operator

SCHEMA = pa.schema([("n", pa.int64()), ("m", pa.int64())])
SUM = {"m_sum": ps.col("m").sum()}


def pairs(scope: ps.Scope) -> Any:
    return scope.to_stream([(1, 2)])


def rows(scope: ps.Scope) -> Any:
    return pairs(scope).to_arrow(SCHEMA)


def keyed(scope: ps.Scope) -> Any:
    return pairs(scope).key_by(lambda pair: pair[0])


def windows(scope: ps.Scope) -> Any:
    return keyed(scope).window(ps.Tumbling(3))


def changes(scope: ps.Scope) -> Any:
    return scope.collection([(1, 2)])


def columns(scope: ps.Scope) -> Any:
    return scope.column_collection(pa.table({"n": [1], "m": [2]}))


async def called(record: Any) -> Any:
    return record


def first(pair: Any) -> Any:
    return pair[0]


def loop(scope: ps.Scope, make: Callable[[ps.Scope], Any]) -> None:
    with scope.iterative() as inner:
        handle, back = make(inner)
        inner.to_stream([]).concat(back).connect_loop(handle)


def variable(scope: ps.Scope) -> None:
    with scope.iterative() as inner:
        made: ps.Variable[Any] = inner.variable(name=N)
        made.set(made.collection.distinct())


def imported(scope: ps.Scope, trace: ps.Trace[Any, Any]) -> None:
    scope.import_trace(trace, name=N)


def entered(scope: ps.Scope) -> Any:
    arranged = changes(scope).arrange()
    with scope.iterative() as inner:
        return arranged.enter(inner, name=N).join(changes(inner)).leave()


def entered_at(scope: ps.Scope) -> Any:
    with scope.iterative() as inner:
        return pairs(scope).enter_at(inner, first, name=N).leave()


def called_on(
    make: Callable[[ps.Scope], Any], method: str, *given: Any, **named: Any
) -> Callable[[ps.Scope], Any]:
    return lambda scope: getattr(make(scope), method)(*given, name=N, **named)


# What a case returns is captured, because it may be made in another form for a reader.
CASES: dict[str, Callable[..., Any]] = {
    "Scope.new_input": lambda s: s.new_input(name=N)[1],
    "Scope.input_from": lambda s: s.input_from(ps.InputHandle(), name=N),
    "InputHandle.to_stream": lambda s: ps.InputHandle().to_stream(s, name=N),
    "ArrowInput.to_stream": lambda s: ps.ArrowInput(SCHEMA).to_stream(s, name=N),
    "Scope.new_unordered_input": lambda s: s.new_unordered_input(name=N)[2],
    "Scope.to_stream": lambda s: s.to_stream([], name=N),
    "Scope.empty": lambda s: s.empty(name=N),
    "Scope.concatenate": lambda s: s.concatenate([pairs(s), pairs(s)], name=N),
    "Scope.feedback": lambda s: loop(s, lambda inner: inner.feedback(name=N)),
    "Scope.loop_variable": lambda s: loop(s, lambda inner: inner.loop_variable(name=N)),
    "Scope.replay": lambda s: s.replay([], name=N),
    "Scope.new_collection": lambda s: s.new_collection(name=N)[1],
    "Scope.collection": lambda s: s.collection([1], name=N),
    "Scope.column_collection": lambda s: s.column_collection(pa.table({"n": [1]}), name=N),
    "Scope.variable": variable,
    "Scope.import_trace": imported,
    "CustomOperators.probe": lambda s: pairs(s).probe(name=N),
    "CustomOperators.capture": lambda s: pairs(s).capture(name=N),
    "CustomOperators.capture_into": lambda s: pairs(s).capture_into(ps.EventWriter(io.BytesIO()), name=N),
    "Stream.probe_with": lambda s: pairs(s).probe_with(ps.ProbeHandle(), name=N),
    "Stream.concat": lambda s: pairs(s).concat(pairs(s), name=N),
    "Stream.delay": lambda s: pairs(s).delay(lambda x, t: t, name=N),
    "Stream.delay_batch": lambda s: pairs(s).delay_batch(lambda t: t, name=N),
    "Stream.reclock": lambda s: pairs(s).reclock(pairs(s), name=N),
    "Stream.enter_at": entered_at,
    "Stream.count": lambda s: pairs(s).count(name=N),
    "Stream.accumulate": lambda s: pairs(s).accumulate(int, lambda a, b: a, name=N),
    "Stream.aggregate": lambda s: pairs(s).aggregate(lambda k, v, a: a, lambda k, a: a, default=int, name=N),
    "Stream.state_machine": lambda s: pairs(s).state_machine(lambda k, v, a: (a, []), default=int, name=N),
    "Stream.distinct": lambda s: pairs(s).distinct(name=N),
    "Stream.value_counts": lambda s: pairs(s).value_counts(name=N),
    "Stream.to_collection": lambda s: pairs(s).to_collection(name=N),
    "Stream.to_arrow": lambda s: pairs(s).to_arrow(SCHEMA, name=N),
    "Stream.event_time": lambda s: pairs(s).event_time(first, name=N)[0],
    "Stream.key_by": lambda s: pairs(s).key_by(first, name=N).reduce(max),
    "Stream.async_map": lambda s: pairs(s).async_map(called, name=N)[0],
    "Stream.join": lambda s: pairs(s).join(pairs(s), name=N),
    "Stream.reduce": lambda s: pairs(s).reduce(max, name=N),
    "Stream.top_k": lambda s: pairs(s).top_k(1, name=N),
    "Stream.sort": lambda s: pairs(s).sort(name=N),
    "Stream.concat, at event times": lambda s: (
        pairs(s).event_time(first)[0].concat(pairs(s).event_time(first)[0], name=N).key_by(first).reduce(max)
    ),
    "KeyedStream.map_values": lambda s: keyed(s).map_values(str, name=N).reduce(max),
    "KeyedStream.reduce": lambda s: keyed(s).reduce(max, name=N),
    "KeyedStream.aggregate": lambda s: keyed(s).aggregate(max, default=int, name=N),
    "KeyedStream.scan": lambda s: keyed(s).scan(lambda _, n, most: max(most, n), default=int, name=N),
    "KeyedStream.running": lambda s: keyed(s).running("max", name=N),
    "ArrowStream.interval_join": lambda s: rows(s).interval_join(
        rows(s), "n", lower=0, upper=1, column="m", name=N
    ),
    "ArrowStream.window_join": lambda s: rows(s).window_join(
        rows(s), "n", ps.Tumbling(5), column="m", name=N
    ),
    "ArrowStream.asof_join": lambda s: rows(s).asof_join(rows(s), "n", column="m", name=N),
    "ArrowStream.table_join": lambda s: rows(s).table_join(rows(s), "n", column="m", name=N),
    "ArrowStream.running": lambda s: rows(s).running("n", m_max=ps.col("m").max(), column="m", name=N),
    "ArrowStream.dedup": lambda s: rows(s).dedup("n", column="m", name=N),
    "KeyedStream.state_machine": lambda s: keyed(s).state_machine(
        lambda k, a, b: (a, []), default=int, name=N
    ),
    "KeyedStream.dedup": lambda s: keyed(s).dedup(name=N),
    "KeyedStream.top_k_so_far": lambda s: keyed(s).top_k_so_far(1, name=N),
    "KeyedStream.process": lambda s: keyed(s).process(lambda c, r: None, name=N),
    "KeyedStream.join": lambda s: keyed(s).join(keyed(s), how="full", name=N),
    "KeyedStream.interval_join": lambda s: keyed(s).interval_join(keyed(s), lower=0, upper=1, name=N),
    "KeyedStream.asof_join": lambda s: keyed(s).asof_join(keyed(s), name=N),
    "KeyedStream.table_join": lambda s: keyed(s).table_join(keyed(s), name=N),
    "WindowedStream.aggregate": lambda s: windows(s).aggregate(max, default=int, name=N),
    "WindowedStream.reduce": lambda s: windows(s).reduce(max, name=N),
    "WindowedStream.quantiles": lambda s: windows(s).quantiles([0.5], name=N),
    "WindowedStream.join": lambda s: windows(s).join(windows(s), name=N),
    **{
        f"WindowedStream.{method}": called_on(windows, method)
        for method in ("count", "sum", "min", "max", "mean", "collect", "distinct_count")
    },
    "WindowedStream.top_k": lambda s: windows(s).top_k(1, name=N),
    "ArrowStream.map_batches": lambda s: rows(s).map_batches(lambda b: b, name=N),
    "ArrowStream.inspect_batch": lambda s: rows(s).inspect_batch(lambda t, b: None, name=N),
    "ArrowStream.to_records": lambda s: rows(s).to_records(name=N),
    "ArrowStream.exchange": lambda s: rows(s).exchange("n", name=N),
    "ArrowStream.partition": lambda s: rows(s).partition(2, "n", name=N)[0],
    "ArrowStream.aggregate": lambda s: rows(s).aggregate("n", name=N, **SUM),
    "ArrowStream.aggregate, of all": lambda s: rows(s).aggregate([], name=N, **SUM),
    "ArrowStream.aggregate, kept": lambda s: rows(s).aggregate("n", m_list=ps.col("m").collect(), name=N),
    "ArrowStream.distinct": lambda s: rows(s).distinct(name=N),
    "ArrowStream.distinct_so_far": lambda s: rows(s).distinct_so_far(name=N),
    "ArrowStream.join": lambda s: rows(s).join(rows(s), "n", how="full", name=N),
    "ArrowStream.join_so_far": lambda s: rows(s).join_so_far(rows(s), "n", name=N),
    "ArrowStream.count": lambda s: rows(s).count(name=N),
    "ArrowStream.concat": lambda s: rows(s).concat(rows(s), name=N),
    "ArrowStream.branch_when": lambda s: rows(s).branch_when(lambda t: True, name=N)[0],
    "ArrowStream.broadcast": lambda s: rows(s).broadcast(name=N),
    "ArrowStream.reclock": lambda s: rows(s).reclock(pairs(s), name=N),
    "ArrowStream.delay_batch": lambda s: rows(s).delay_batch(lambda t: t, name=N),
    "ArrowStream.probe_with": lambda s: rows(s).probe_with(ps.ProbeHandle(), name=N),
    "ArrowStream.filter": lambda s: rows(s).filter(pc.field("n") > 0, name=N),
    "ArrowStream.rename": lambda s: rows(s).rename({"n": "k"}, name=N),
    "ArrowStream.sort": lambda s: rows(s).sort("n", name=N),
    "ArrowStream.limit": lambda s: rows(s).limit(1, name=N),
    "ArrowStream.to_collection": lambda s: rows(s).to_collection(name=N).value_counts(),
    "ArrowStream.delay": lambda s: rows(s).delay("n", name=N),
    "ArrowStream.event_time": lambda s: rows(s).event_time("n", name=N)[0],
    "ArrowStream.window": lambda s: rows(s).window(ps.Tumbling(3), "n", column="n", name=N, **SUM),
    "ArrowStream.window, of all": lambda s: rows(s).window(ps.Tumbling(3), [], column="n", name=N, **SUM),
    "ArrowStream.window, sessions": lambda s: rows(s).window(
        ps.Session(gap=3), "n", column="n", name=N, **SUM
    ),
    "ArrowStream.window, kept": lambda s: rows(s).window(
        ps.Tumbling(3), "n", m_list=ps.col("m").collect(), column="n", name=N
    ),
    "Collection.map": lambda s: changes(s).map(first, name=N),
    "Collection.filter": lambda s: changes(s).filter(bool, name=N),
    "Collection.concat": lambda s: changes(s).concat(changes(s), name=N),
    "Collection.negate": lambda s: changes(s).negate(name=N),
    "Collection.consolidate": lambda s: changes(s).consolidate(name=N),
    "Collection.distinct": lambda s: changes(s).distinct(name=N),
    "Collection.threshold": lambda s: changes(s).threshold(lambda r, n: n, name=N),
    "Collection.value_counts": lambda s: changes(s).value_counts(name=N),
    "Collection.join": lambda s: changes(s).join(changes(s), name=N),
    "Collection.join, semi": lambda s: changes(s).join(changes(s), how="semi", name=N),
    "Collection.join, anti": lambda s: changes(s).join(changes(s), how="anti", name=N),
    "Arranged.join, anti": lambda s: changes(s).arrange().join(changes(s), how="anti", name=N),
    "Collection.map_groups": lambda s: changes(s).map_groups(lambda k, v: [1], name=N),
    "Collection.top_k": lambda s: changes(s).top_k(1, name=N),
    **{
        f"Collection.{method}": called_on(changes, method)
        for method in ("min", "max", "sum", "mean", "count")
    },
    "Collection.updates": lambda s: changes(s).updates(name=N),
    "Collection.arrange": lambda s: changes(s).arrange(name=N).to_collection(),
    "Collection.iterate": lambda s: changes(s).iterate(lambda inner, c: c.consolidate(), name=N),
    "Collection.capture": lambda s: changes(s).capture(name=N),
    "Collection.capture_into": lambda s: changes(s).capture_into(ps.EventWriter(io.BytesIO()), name=N),
    "Multiset.probe": lambda s: changes(s).probe(name=N),
    "Arranged.enter": entered,
    "Arranged.to_collection": lambda s: changes(s).arrange().to_collection(name=N),
    "Arranged.join": lambda s: changes(s).arrange().join(changes(s), name=N),
    "Arranged.map_groups": lambda s: changes(s).arrange().map_groups(lambda k, v: [1], name=N),
    "Arranged.top_k": lambda s: changes(s).arrange().top_k(1, name=N),
    **{
        f"Arranged.{method}": called_on(lambda s: changes(s).arrange(), method)
        for method in ("min", "max", "sum", "mean", "count")
    },
    "ColumnCollection.filter": lambda s: columns(s).filter(col("n") > 0, name=N),
    "ColumnCollection.concat": lambda s: columns(s).concat(columns(s), name=N),
    "ColumnCollection.join": lambda s: columns(s).join(columns(s), "n", name=N),
    "ColumnCollection.join, semi": lambda s: columns(s).join(columns(s), "n", how="semi", name=N),
    "ColumnCollection.join, anti": lambda s: columns(s).join(columns(s), "n", how="anti", name=N),
    "ColumnCollection.join, full": lambda s: columns(s).join(columns(s), "n", how="full", name=N),
    "ColumnCollection.top_k": lambda s: columns(s).top_k(1, "m", by="n", name=N),
    "ColumnCollection.collect": lambda s: columns(s).collect("m", by="n", name=N),
    "ColumnCollection.over": lambda s: columns(s).over("n", "m", place=ps.row_number(), name=N),
    "ColumnCollection.union": lambda s: columns(s).union(columns(s), name=N),
    "ColumnCollection.intersect": lambda s: columns(s).intersect(columns(s), name=N),
    "ColumnCollection.except_": lambda s: columns(s).except_(columns(s), name=N),
    **{
        f"ColumnCollection.{method}": called_on(columns, method, "m", by="n")
        for method in ("min", "max", "sum", "mean")
    },
    **{
        f"ColumnCollection.{method}": called_on(columns, method)
        for method in ("negate", "consolidate", "distinct", "value_counts")
    },
    **{f"ColumnCollection.{method}": called_on(columns, method) for method in ("updates", "capture")},
    "ColumnCollection.capture_into": lambda s: columns(s).capture_into(ps.EventWriter(io.BytesIO()), name=N),
    "ColumnCollection.count": lambda s: columns(s).count("n", name=N),
    "ColumnCollection.aggregate": lambda s: columns(s).aggregate("n", name=N, **SUM),
    "ColumnCollection.map_groups": lambda s: columns(s).map_groups(
        lambda k, v: [1], by="n", of="m", schema=pa.schema([("o", pa.int64())]), name=N
    ),
    "ColumnCollection.iterate": lambda s: columns(s).iterate(lambda inner, c: c.consolidate(), name=N),
}


def made_by(build: Callable[..., Any]) -> tuple[list[str], str]:
    """The names of what a function builds, and the drawing. It may take a trace of another dataflow, too."""

    def main(worker: ps.Worker) -> tuple[list[str], str]:
        given = []
        if build is imported:
            with worker.dataflow() as before:
                given.append(changes(before).arrange().trace())
        with worker.dataflow() as scope:
            made = build(scope, *given)
            if hasattr(made, "capture"):
                made.capture()
        for number in worker.installed_dataflows():
            worker.drop_dataflow(number)
        graph = scope.graph
        names = [operator.name for operator in graph.operators.values()]
        return names + [inner.name for inner in graph.scopes.values()], scope.to_dot()

    [result] = ps.execute(main)
    return result


@pytest.mark.parametrize("case", CASES)
def test_the_operator_has_the_name(case: str) -> None:
    names, drawn = made_by(CASES[case])
    parts = {part for name in names for part in name.split(" > ")}
    assert N in parts, names
    assert N in drawn


def test_a_case_for_each_method_that_takes_a_name() -> None:
    """Methods that make an operator here, and have not been named before (`test_reprs`), have a case."""
    ours = {f"{kind.__name__}.{method}" for kind, method, signature in operators()}
    cased = {case.split(",")[0] for case in CASES}
    others = {
        name
        for name in ours - cased
        if tuple(name.split(".")) not in NO_OPERATOR and not name.startswith(("CustomOperators.", "Scope."))
    }
    assert others <= {
        *(f"Stream.{method}" for method in NAMED_BEFORE),
        "Collection.flat_map",
        "Collection.inspect",
    }, others


NAMED_BEFORE = (
    "map",
    "flat_map",
    "filter",
    "map_in_place",
    "map_batches",
    "try_map",
    "ok_err",
    "inspect",
    "inspect_time",
    "inspect_batch",
    "partition",
    "branch",
    "branch_when",
    "exchange",
    "broadcast",
    "forwarded",
)


def test_a_name_stays_with_its_operator() -> None:
    """An operator that is made late, when another first reads it, does not get that operator's name."""
    names, _ = made_by(lambda s: rows(s).exchange("n").map_batches(lambda b: b, name=N))
    assert sorted(names) == ["Dataflow", "capture", "exchange", N, "to_arrow", "to_stream"]
    names, _ = made_by(lambda s: changes(s).value_counts(name="counted").map(str, name=N))
    assert {"counted", "counted: arrange", N} < set(names)
    names, _ = made_by(lambda s: pairs(s).event_time(first)[0].delay_batch(lambda t: t, name=N))
    assert [name for name in names if N in name] == [N]


def test_parts_of_an_operator_are_named_for_it() -> None:
    names, _ = made_by(lambda s: changes(s).join(changes(s), name="pairs"))
    assert sorted(name for name in names if "pairs" in name) == ["pairs", "pairs: arrange", "pairs: arrange"]


def test_a_name_is_forgotten_when_its_method_fails() -> None:
    def build(scope: ps.Scope) -> Any:
        with pytest.raises(ps.GraphError):
            rows(scope).aggregate("nowhere", name=N)
        return rows(scope).distinct()

    names, _ = made_by(build)
    assert not [name for name in names if N in name]


def test_metrics_and_explanations_use_the_name() -> None:
    def main(worker: ps.Worker) -> str:
        with worker.dataflow("shop") as scope:
            bids, stream = scope.new_input(name="bids")
            probe = stream.probe(name="all of it")
        bids.advance_to(1)
        text = str(worker.explain(probe, 2))
        bids.close()
        return f"{text}\n{bids!r}\n{probe!r}"

    [said] = ps.execute(main)
    assert "'bids'" in said
    assert "all of it" in said
    assert "<InputHandle 'bids' of 'shop' closed>" in said
