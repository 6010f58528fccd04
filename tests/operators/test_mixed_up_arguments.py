"""Refusals of the wrong kind of thing: text for a list, a row function for columns.

Each case is a program, and what the message must contain: what was given, and what to write instead.
"""

import re
import warnings
from collections import Counter, namedtuple
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pointstamp as ps
from pointstamp import col, record
from pointstamp.connectors import CSVSource

SCHEMA = pa.schema([("k", pa.string()), ("v", pa.int64())])
TABLE = pa.table({"k": ["a", "b"], "v": [1, 2]}, SCHEMA)
Point = namedtuple("Point", ["x", "y"])

Build = Callable[[Any], Any]


def driven(drive: Callable[[Any], Any]) -> Build:
    """Drives an input of records."""

    def build(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = scope.new_input()
            stream.capture()
        drive(numbers)

    return build


def changed(drive: Callable[[Any], Any], **options: Any) -> Build:
    """Drives an input of a collection."""

    def build(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            words, collection = scope.new_collection(**options)
            collection.capture()
        drive(words)

    return build


def built(build: Callable[[Any], Any]) -> Build:
    """Builds a dataflow, and runs it."""

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            build(scope)
        worker.run()

    return main


def stream(build: Callable[[Any], Any], records: Any = (1, 2)) -> Build:
    return built(lambda scope: build(scope.to_stream(records)))


def pairs(build: Callable[[Any], Any]) -> Build:
    return built(lambda scope: build(scope.collection([("a", 1), ("b", 2), ("a", 3)])))


def columns(build: Callable[[Any], Any]) -> Build:
    return built(lambda scope: build(scope.to_stream(TABLE)))


def table(build: Callable[[Any], Any]) -> Build:
    return built(lambda scope: build(scope.column_collection(TABLE)))


FAMILIES: dict[str, list[tuple[str, Build, list[str]]]] = {
    "one record for many": [
        (
            "send_batch of text",
            driven(lambda i: i.send_batch("abc")),
            ["send_batch", "write ['abc']", "list('abc')"],
        ),
        ("send_batch of bytes", driven(lambda i: i.send_batch(b"ab")), ["send_batch", "write [b'ab']"]),
        (
            "send_batch of a dict",
            driven(lambda i: i.send_batch({"a": 1})),
            ["keys", "write [{'a': 1}]", "items()"],
        ),
        (
            "send_batch of a row",
            driven(lambda i: i.send_batch(Point(1, 2))),
            ["fields", "write [Point(x=1, y=2)]"],
        ),
        ("send_batch of a number", driven(lambda i: i.send_batch(3)), ["not 3", "write [3]"]),
        ("send_batch of a function", driven(lambda i: i.send_batch(lambda: [1])), ["by calling it"]),
        (
            "send_batch of pandas",
            driven(lambda i: i.send_batch(TABLE.to_pandas())),
            ["frame.to_dict('records')"],
        ),
        ("send_batch of Polars", driven(lambda i: i.send_batch(pl.from_arrow(TABLE))), ["frame.to_dicts()"]),
        ("send_batch of a table", driven(lambda i: i.send_batch(TABLE)), ["to_pylist()", "its columns"]),
        ("insert_many of text", changed(lambda i: i.insert_many("tick")), ["insert_many", "write ['tick']"]),
        ("remove_many of text", changed(lambda i: i.remove_many("tick")), ["remove_many", "write ['tick']"]),
        ("update_many of a dict", changed(lambda i: i.update_many({"a": 2})), ["update_many", "items()"]),
        (
            "insert_many of pandas",
            changed(lambda i: i.insert_many(TABLE.to_pandas())),
            ["insert_many", "its columns"],
        ),
        ("to_stream of text", built(lambda s: s.to_stream("abc")), ["to_stream", "write ['abc']"]),
        ("to_stream of a counter", built(lambda s: s.to_stream(Counter("a"))), ["to_stream", "items()"]),
        ("to_stream of a class", built(lambda s: s.to_stream(list)), ["to_stream", "by calling it"]),
        ("to_stream of a stream", built(lambda s: s.to_stream(s.to_stream([1]))), ["the records themselves"]),
        ("collection of text", built(lambda s: s.collection("tick")), ["collection takes", "write ['tick']"]),
        ("collection of pandas", built(lambda s: s.collection(TABLE.to_pandas())), ["column_collection"]),
        (
            "a source of text",
            built(lambda s: s.iterator_source("s", [(0, "ab")])),
            ["source 's'", "write ['ab']"],
        ),
        (
            "a source of a number",
            built(lambda s: s.iterator_source("s", [(0, 5)])),
            ["source 's'", "write [5]"],
        ),
        ("a source without a name", built(lambda s: s.iterator_source([(0, [1])], [])), ["name, a str"]),
    ],
    "many records for one": [
        (
            "send of a generator",
            driven(lambda i: i.send(x for x in "ab")),
            ["send takes one record", "send_batch"],
        ),
        ("send of a map", driven(lambda i: i.send(map(str, [1]))), ["send_batch takes every record"]),
        ("insert of a generator", changed(lambda i: i.insert(x for x in "ab")), ["insert_many takes every"]),
        ("remove of a generator", changed(lambda i: i.remove(x for x in "ab")), ["remove_many takes every"]),
    ],
    "what a function returns": [
        (
            "flat_map that returns text",
            stream(lambda s: s.flat_map(str)),
            ["flat_map returns", "return ['1']"],
        ),
        (
            "flat_map that returns a number",
            stream(lambda s: s.flat_map(abs)),
            ["flat_map returns", "return [1]"],
        ),
        (
            "flat_map that returns None",
            stream(lambda s: s.flat_map(lambda x: None)),
            ["not None", "return a list"],
        ),
        (
            "map_batches that returns a number",
            stream(lambda s: s.map_batches(sum)),
            ["map_batches returns", "[3]"],
        ),
        (
            "map_batches that returns text",
            stream(lambda s: s.map_batches(str)),
            ["map_batches returns", "letters"],
        ),
        (
            "flat_map of a collection",
            pairs(lambda c: c.flat_map(lambda r: r[0])),
            ["flat_map returns", "return ['a']"],
        ),
        (
            "reduce that returns a tuple",
            pairs(lambda c: c.map_groups(lambda k, v: (k, 1))),
            ["return [('a', 1)]"],
        ),
        ("reduce that returns text", pairs(lambda c: c.map_groups(lambda k, v: k)), ["return ['a']"]),
        (
            "reduce that returns a dict",
            pairs(lambda c: c.map_groups(lambda k, v: {k: 1})),
            ["return [{'a': 1}]"],
        ),
        (
            "reduce of columns",
            table(
                lambda c: c.map_groups(
                    lambda k, v: (1, 2), by="k", of="v", schema=pa.schema({"n": pa.int64()})
                )
            ),
            ["return [(1, 2)]"],
        ),
    ],
    "a collection for a stream, a list for a collection": [
        (
            "join with a collection",
            built(lambda s: s.to_stream([(1, 2)]).join(s.collection([(1, 2)]))),
            ["updates()"],
        ),
        ("reclock by a list", stream(lambda s: s.reclock([1])), ["reclock reads streams", "to_stream"]),
        (
            "an operator with a list",
            stream(lambda s: s.binary([], ps.Pipeline(), ps.Pipeline(), "two", print)),
            ["two reads streams"],
        ),
        ("a probe's class", stream(lambda s: s.probe_with(ps.ProbeHandle)), ["write ProbeHandle()"]),
        ("capture_into a path", stream(lambda s: s.capture_into("a.cap")), ["write EventWriter('a.cap')"]),
        (
            "write to a path",
            stream(lambda s: s.write("a.csv")),
            ["write takes a sink, such as connectors.ParquetSink(", "pointstamp.connectors"],
        ),
        ("a vertex that is made", stream(lambda s: s.vertex(ps.Vertex())), ["vertex takes a class"]),
    ],
    "results that are not unpacked": [
        ("try_map", stream(lambda s: s.try_map(int).map(str)), ["`results, failures = ...`", "results.map"]),
        ("branch", stream(lambda s: s.branch(lambda t, x: True).map(str)), ["`no, yes = ...`", "no.map"]),
        ("ok_err", stream(lambda s: s.ok_err(lambda x: (True, x)).map(str)), ["`oks, errors = ...`"]),
        (
            "event_time",
            stream(lambda s: s.event_time(abs).map(str)),
            ["`on_time, late = ...`", "on_time.map"],
        ),
        ("async_map", stream(lambda s: s.async_map(print).map(str)), ["`results, failed = ...`"]),
        ("new_input", built(lambda s: s.new_input().map(str)), ["`handle, stream = ...`", "stream.map"]),
        (
            "new_collection",
            built(lambda s: s.new_collection().insert(1)),
            ["`handle, collection = ...`", "handle.insert"],
        ),
        ("feedback", built(lambda s: s.feedback().map(str)), ["`handle, stream = ...`"]),
    ],
    "a number, a function or a name for another": [
        (
            "top_k of text",
            stream(lambda s: s.top_k("3")),
            ["top_k takes a number of records, an int of at least 1, not '3'"],
        ),
        ("top_k the other way round", stream(lambda s: s.top_k(abs, 3)), ["top_k takes a number of records"]),
        (
            "an expression for a function",
            stream(lambda s: s.map(ps.record[0])),
            ["map needs a function, not record[0], which is an expression: write a function", "collections"],
        ),
        ("sort by a name", stream(lambda s: s.sort("a")), ["sort needs a function, not 'a'"]),
        (
            "partition the other way round",
            stream(lambda s: s.partition(abs, 2)),
            ["partition takes first a number of parts"],
        ),
        ("idle of text", stream(lambda s: s.event_time(abs, idle="1s")), ["idle is a number of seconds"]),
        (
            "a key's sum without windows",
            stream(lambda s: s.key_by(abs).sum()),
            ["window(ps.Tumbling(10)).sum"],
        ),
    ],
    "a row function for columns": [
        (
            "filter by a comparison",
            columns(lambda s: s.filter(lambda r: r["v"] > 1)),
            ["batch", "ps.col('v') > 1"],
        ),
        (
            "filter by an equality",
            columns(lambda s: s.filter(lambda r: r["v"] == 1)),
            ["returned False", "ps.col('v')"],
        ),
        (
            "filter by an attribute",
            columns(lambda s: s.filter(lambda r: r.v > 1)),
            ["batch", "to_records().filter"],
        ),
        (
            "filter by a method of text",
            columns(lambda s: s.filter(lambda r: r["k"].startswith("a"))),
            ["batch"],
        ),
        ("filter by text", columns(lambda s: s.filter("v > 1")), ["pc.field('n') > 1"]),
        (
            "with_columns by an attribute",
            columns(lambda s: s.with_columns(d=lambda r: r.v)),
            ["batch", "ps.col('v') * 2"],
        ),
        (
            "with_columns that returns a number",
            columns(lambda s: s.with_columns(d=lambda r: 3)),
            ["column 'd'", "not a row"],
        ),
        ("with_columns of a constant", columns(lambda s: s.with_columns(d=3)), ["ps.lit(3)"]),
        (
            "with_columns of another length",
            columns(lambda s: s.with_columns(d=lambda r: pa.array([1]))),
            ["column 'd'", "one for each row"],
        ),
        (
            "with_columns of two types",
            columns(
                lambda s: s.with_columns(
                    d=lambda r: pa.array(["x"] * len(r) or [], *[pa.string()] * bool(len(r)) or [pa.int64()])
                )
            ),
            ["with_columns made column 'd' of type string", "int64"],
        ),
        ("map of columns", columns(lambda s: s.map(str)), ["map_batches", "to_records().map"]),
        ("key_by of columns", columns(lambda s: s.key_by(abs)), ["to_records().key_by"]),
        (
            "a collection of columns filtered by a function",
            table(lambda c: c.filter(lambda r: True)),
            ["col('a') > 1"],
        ),
    ],
    "columns that are named otherwise": [
        (
            "filter of no column",
            columns(lambda s: s.filter(pc.field("w") > 1)),
            ["filter", "k: string, v: int64"],
        ),
        (
            "filter of no column, Polars",
            columns(lambda s: s.filter(pl.col("w") > 1)),
            ["filter", "k: string, v: int64"],
        ),
        (
            "with_columns of no column",
            columns(lambda s: s.with_columns(d=pc.field("w"))),
            ["with_columns", "k: string"],
        ),
        ("select of a list", columns(lambda s: s.select(["k", "v"])), ["write select('k', 'v')"]),
        ("select of an expression", columns(lambda s: s.select(pl.col("k"))), ["with_columns"]),
        ("rename of a list", columns(lambda s: s.rename(["a", "b"])), ["{'a': 'b'}"]),
        ("sort by a function", columns(lambda s: s.sort(abs)), ["not a function: add a column"]),
        ("limit of text", columns(lambda s: s.limit("3")), ["limit takes a number of rows"]),
        ("event_time of a function", columns(lambda s: s.event_time(lambda r: r["v"])), ["name of a column"]),
        ("aggregate of text", columns(lambda s: s.aggregate("k", v="sum")), ["v=ps.col('sum').sum()"]),
        (
            "scan of text",
            columns(lambda s: s.event_time("v")[0].running("k", v="sum")),
            ["takes aggregates of"],
        ),
        (
            "window the other way round",
            columns(lambda s: s.event_time("v")[0].window("k", ps.Tumbling(1), n=ps.count())),
            ["name of a column, or several, not Tumbling"],
        ),
        (
            "aggregate of a pair",
            table(lambda c: c.aggregate("k", v=("v", "sum"))),
            ["v=ps.col('price').sum()"],
        ),
        ("select of a list, collection", table(lambda c: c.select(["k"])), ["write select('k')"]),
        (
            "an expression without a meaning",
            table(lambda c: c.select(d=col("k") * 2)),
            ['(col("k") * 2) has no meaning'],
        ),
        ("a condition that is none", table(lambda c: c.filter(col("v"))), ['col("v") is of type Int64']),
        ("an expression over records", table(lambda c: c.filter(record[1] > 1)), ["name them with col(...)"]),
    ],
    "removing what is not there": [
        ("a record", changed(lambda i: i.remove("x"), strict=True), ["1 of 'x'", "at time 0", "strict=True"]),
        (
            "more of it",
            changed(lambda i: [i.insert("x"), i.update("x", -3)], strict=True),
            ["3 of 'x'", "added 1"],
        ),
        (
            "later",
            changed(lambda i: [i.insert("x"), i.advance_to(5), i.remove("x"), i.remove("x")], strict=True),
            ["1 of 'x'", "at time 5", "added 0"],
        ),
        (
            "played",
            changed(lambda i: i.play([("x", 0, 1), ("x", 3, -2)]), strict=True),
            ["2 of 'x'", "at time 3"],
        ),
        (
            "rows",
            changed(
                lambda i: [i.insert(TABLE), i.remove(TABLE.slice(1)), i.remove(TABLE)],
                strict=True,
                schema=SCHEMA,
            ),
            ["1 of ('b', 2)", "at time 0"],
        ),
    ],
}

CASES = [
    pytest.param(main, words, id=f"{family}: {title}")
    for family, cases in FAMILIES.items()
    for title, main, words in cases
]


@pytest.mark.parametrize(("main", "words"), CASES)
def test_a_mix_up_is_refused_with_what_to_write(main: Build, words: list[str]) -> None:
    with pytest.raises((TypeError, ValueError, AttributeError, ps.PointstampError)) as caught:
        ps.execute(main)
    for word in words:
        assert word in str(caught.value)


def test_what_is_meant_is_taken() -> None:
    def build(scope: ps.Scope) -> Any:
        letters = scope.to_stream(list("ab")).concat(scope.to_stream({"c"}), scope.to_stream(("d", "e")))
        return letters.flat_map(lambda letter: (letter, letter)).value_counts().capture()

    assert ps.example(build).extract() == [(0, [(letter, 2) for letter in "abcde"])]


@pytest.mark.parametrize(
    "frame",
    [
        TABLE,
        TABLE.to_batches()[0],
        TABLE.to_pandas(),
        pl.from_arrow(TABLE),
        pd.DataFrame(TABLE.to_pydict(), index=[5, 7]),
    ],
    ids=["table", "batch", "pandas", "Polars", "pandas with an index"],
)
def test_a_frame_is_a_stream_of_its_rows(frame: Any) -> None:
    captured = ps.example(lambda scope: scope.to_stream(frame).to_records().capture())
    assert captured.extract() == [(0, TABLE.to_pylist())]


def test_a_great_frame_comes_in_parts() -> None:
    great = pa.table({"n": range(200_000)})
    captured = ps.example(
        lambda scope: scope.to_stream(great).aggregate([], n_sum=ps.col("n").sum()).to_records().capture()
    )
    assert captured.extract() == [(0, [{"n_sum": sum(range(200_000))}])]


def test_a_series_is_a_stream_of_its_values() -> None:
    assert ps.example(lambda scope: scope.to_stream(pd.Series([2, 1])).capture()).extract() == [(0, [1, 2])]


def test_what_is_there_may_be_removed_from_a_strict_input() -> None:
    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            words, collection = scope.new_collection(strict=True)
            counts = collection.capture()
        words.insert_many(["x", "y", "x"])
        words.remove("x")
        words.advance_to(1)
        with pytest.raises(ValueError, match="2 of 'x'"):
            words.update("x", -2)
        words.remove("x")
        words.close()
        worker.run()
        return counts.extract()

    assert ps.execute(main) == [[(0, [("x", 1), ("y", 1)]), (1, [("x", -1)])]]


SECONDS, MILLISECONDS = 1_700_000_000, 1_700_000_000_000


def warned(times: list[int], operator: Callable[[Any], Any]) -> list[str]:
    """Returns the warnings where records have these event times."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ps.example(lambda scope: operator(scope.to_stream([("a", time) for time in times])))
    assert all(one.category is ps.UsageWarning and one.filename == __file__ for one in caught)
    return [str(one.message) for one in caught]


def late(lateness: Any) -> Callable[[Any], Any]:
    return lambda stream: stream.event_time(lambda r: r[1], lateness=lateness)[0].capture()


def window(window: Any) -> Callable[[Any], Any]:
    return lambda s: s.event_time(lambda r: r[1])[0].key_by(lambda r: r[0]).window(window).count().capture()


def columns_late(lateness: Any) -> Callable[[Any], Any]:
    schema = pa.schema([("k", pa.string()), ("at", pa.int64())])
    return lambda s: s.to_arrow(schema).event_time("at", lateness=lateness)[0].capture()


def columns_window(window: Any) -> Callable[[Any], Any]:
    schema = pa.schema([("k", pa.string()), ("at", pa.int64())])
    return lambda s: (
        s.to_arrow(schema).event_time("at")[0].window(window, "k", at_count=ps.col("at").count()).capture()
    )


def timestamps_late(lateness: Any) -> Callable[[Any], Any]:
    schema = pa.schema([("k", pa.string()), ("at", pa.timestamp("ms"))])
    return lambda s: s.to_arrow(schema).event_time("at", lateness=lateness)[0].capture()


@pytest.mark.parametrize(
    ("time", "operator", "words"),
    [
        (MILLISECONDS, late(5), ["lateness is 5", "milliseconds", "0.005 s", "seconds were meant"]),
        (MILLISECONDS, late(120), ["lateness is 120", "0.12 s"]),
        (
            SECONDS,
            late(5000),
            ["lateness is 5000", "look like seconds", "83.3333 minutes", "milliseconds were meant"],
        ),
        (MILLISECONDS * 1000, late(5000), ["microseconds", "seconds or milliseconds were meant"]),
        (MILLISECONDS, window(ps.Tumbling(60)), ["the length of a window is 60", "milliseconds"]),
        (SECONDS, window(ps.Tumbling(60_000)), ["the length of a window is 60000", "seconds"]),
        (MILLISECONDS, columns_late(30), ["lateness is 30", "milliseconds"]),
        (MILLISECONDS, timestamps_late(30), ["lateness is 30", "the event times are in milliseconds"]),
        (MILLISECONDS, columns_window(ps.Tumbling(60)), ["the length of a window is 60", "milliseconds"]),
    ],
)
def test_a_length_in_another_unit_than_the_times_is_told(time: int, operator: Any, words: list[str]) -> None:
    [message] = warned([time, time + 1000], operator)
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("time", "operator"),
    [
        (MILLISECONDS, late(5000)),
        (MILLISECONDS, late(500)),
        (MILLISECONDS, late(0)),
        (SECONDS, late(5)),
        (SECONDS, late(3600)),
        (SECONDS, late(86_400)),
        (SECONDS, window(ps.Tumbling(7 * 86_400))),
        (3, late(5)),
        (100_000, late(5000)),
        (MILLISECONDS, columns_late(30_000)),
        (MILLISECONDS, timestamps_late(timedelta(milliseconds=30))),
    ],
)
def test_a_length_that_fits_is_not(time: int, operator: Any) -> None:
    assert warned([time, time + 1000], operator) == []


@pytest.mark.parametrize("workers", [1, 2])
def test_extracting_before_the_first_step_is_told(workers: int) -> None:
    def main(worker: ps.Worker) -> list[Any]:
        with worker.dataflow() as scope:
            records = scope.to_stream([1]).capture()
            rows = scope.collection([1]).capture()
        return [records.extract(), rows.extract()]

    with pytest.warns(ps.UsageWarning, match=r"extract\(\) was called before .* worker\.run\(\)") as told:
        assert ps.execute(main, workers=workers) == [[[], []]] * workers
    assert len(told) == 2 * workers
    assert {Path(one.filename).name for one in told} == {Path(__file__).name}


def test_polling_and_dropping_are_no_early_extracts() -> None:
    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            polled = scope.to_stream([1]).capture()
        with worker.dataflow() as scope:
            stepped = scope.to_stream([2]).capture()
        with worker.dataflow() as scope:
            dropped = scope.to_stream([3]).capture()
        worker.drop_dataflow(worker.installed_dataflows()[-1])
        worker.step_while(lambda: not polled.extract())
        while not stepped.extract():
            worker.step()
        return polled.extract(), stepped.extract(), dropped.extract()

    assert ps.execute(main) == [([(0, [1])], [(0, [2])], [])]


def test_a_null_event_time_says_how_to_read_without_it(tmp_path: Path) -> None:
    path = tmp_path / "rain.csv"
    path.write_text("city,at\nUlm,3\nBonn,\nKiel,5\n")
    source = CSVSource(path)

    with pytest.raises(ps.TimeError) as caught:
        ps.example(lambda scope: scope.read(source, event_time="at")[0].capture())
    for word in [
        "in column 'at'",
        "scope.read(source)",
        ".filter(pc.field('at').is_valid())",
        ".event_time('at', ...)",
    ]:
        assert word in str(caught.value)

    def cured(scope: ps.Scope) -> Any:
        rows = scope.read(source)
        on_time, _ = rows.filter(pc.field("at").is_valid()).event_time("at")
        return on_time.to_records().capture()

    assert [time for time, _ in ps.example(cured).extract()] == [3, 5]


def test_messages_name_no_type_of_this_package() -> None:
    with pytest.raises(TypeError) as caught:
        ps.execute(columns(lambda s: s.filter(lambda r: r["v"] > 1)))
    assert type(caught.value) is TypeError
    assert re.search(r"'>' not supported", str(caught.value))
