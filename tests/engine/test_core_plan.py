"""The part of the extension that lowering calls: names and lines, schemas without streams, whole chains."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp import _core, col
from pointstamp._core import CollectionStageKind, EventQueue, How, ProbeHandle, Schema, StageKind, StreamKind
from pointstamp.plan.node import Form

ROWS = pa.schema([("city", pa.string()), ("mm", pa.int64())])


def built(build: Callable[[_core.Scope], Any]) -> tuple[Any, list[tuple[str, str]]]:
    """Builds a dataflow and runs it: what `build` returned, and the operators' names and lines."""

    def main(worker: ps.Worker) -> Any:
        core = worker._engine.begin_dataflow("flow", 1)
        made = build(core)
        installed = worker._engine.install(core)
        worker.run()
        graph = installed.data()
        return made, [(name, line.rpartition("/")[2]) for _, name, _, _, line, _ in graph["operators"]]

    (result,) = ps.execute(main)
    return result  # type: ignore[no-any-return]


def line_of(comment: str) -> int:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    (number,) = (number for number, line in enumerate(lines, 1) if line.endswith(f"# {comment}"))
    return number


def caught(stream: _core.Stream) -> EventQueue:
    queue = EventQueue()
    stream.capture(queue)
    return queue


def records(queue: EventQueue) -> list[Any]:
    events = [queue.event(index) for index in range(len(queue))]
    return [record for event in events if event and event[0] is not None for record in event[1]]


# ------------------------------------------------------------ names and lines


def test_a_line_is_the_one_that_runs() -> None:
    def build(scope: _core.Scope) -> list[_core.Line]:
        return [
            scope.line(),  # the first
            scope.line(),
        ]

    (first, second), _ = built(build)
    assert first.file == __file__
    assert first.number == line_of("the first")
    assert first.text == f"{__file__}:{first.number}"
    assert repr(first) == f"<Line {first.text}>"
    assert second.number == first.number + 1
    assert first != second
    assert hash(first) == hash(first)
    assert first == first


def test_operators_get_the_name_and_the_line_of_the_node_that_is_lowered() -> None:
    def build(scope: _core.Scope) -> _core.Line:
        line = scope.line()
        stream = scope.to_stream([1])
        scope.lowering("count", "how many", line)
        _core.count(stream)
        scope.lowering("count", None, line)
        _core.count(stream)
        scope.lowering("delay", "each", None)
        _core.delay(stream, lambda _, time: time)  # no line of its own
        scope.lowered()
        scope.empty()  # after it
        return line

    line, operators = built(build)
    here = line.text.rpartition("/")[2]
    assert operators[1:] == [
        ("how many", here),
        ("how many: total", here),
        ("count", here),
        ("count: total", here),
        ("each", f"test_core_plan.py:{line_of('no line of its own')}"),
        ("empty", f"test_core_plan.py:{line_of('after it')}"),
    ]


def test_an_operator_that_is_not_called_as_its_node_has_the_given_name_in_front() -> None:
    def build(scope: _core.Scope) -> None:
        scope.lowering("count", "how many", None)
        _core.count(scope.to_stream([1]))
        scope.lowered()
        scope.empty()

    _, operators = built(build)
    assert [name for name, _ in operators] == ["how many: to_stream", "how many", "how many: total", "empty"]


# ------------------------------------------------------------ probes


def test_a_probe_stands_at_the_minimum_time_until_its_operator_is_made() -> None:
    def main(worker: ps.Worker) -> None:
        probe = ProbeHandle()
        assert probe.done()
        assert repr(probe) == "<ProbeHandle attached nowhere>"
        probe._expect(1)
        probe._expect(1)
        assert probe.less_than(1)
        assert not probe.less_than(0)
        assert not probe.done()
        assert repr(probe) == "<ProbeHandle frontier=[0]>"
        probe._unexpect(1)
        assert probe.less_than(1)
        assert not probe.done()
        with worker.dataflow() as scope:
            handle, stream = scope.new_input(of=int)
            scope._building.take(stream._output, Form.RECORDS).probe_with(probe)
        assert probe.less_than(1)
        handle.advance_to(3)
        worker.step_while(lambda: probe.less_than(3))
        assert not probe.less_than(3)
        assert not probe.done()
        handle.close()
        worker.run()
        assert probe.done()

    ps.execute(main)


def test_a_probe_is_expected_at_places_of_several_dimensions() -> None:
    def main(worker: ps.Worker) -> None:
        probe = ProbeHandle()
        probe._expect(2)
        probe._expect(1)
        with worker.dataflow() as scope:
            scope._engine.empty().probe_with(probe)
        worker.step()
        assert not probe.done()
        assert probe.less_than((0, 1))
        probe._unexpect(2)
        worker.run()
        assert probe.done()

    ps.execute(main)


# ------------------------------------------------------------ schemas


def refused_by(build: Callable[[_core.Stream, Schema], Any], schema: pa.Schema) -> tuple[type, str] | None:
    """Returns the error with which a function that makes an operator refuses its arguments."""

    def main(worker: ps.Worker) -> Any:
        core = worker._engine.begin_dataflow("flow", 1)
        given = Schema(schema)
        _, stream = core.feedback(1, given)
        try:
            build(stream, given)
        except Exception as error:
            return type(error), str(error)
        finally:
            worker._engine.discard(core)

    (refused,) = ps.execute(main)
    return refused  # type: ignore[no-any-return]


def said_by(say: Callable[[Schema], Any], schema: pa.Schema) -> tuple[type, str] | None:
    try:
        say(Schema(schema))
    except Exception as error:
        return type(error), str(error)
    return None


def caught_columns(build: Callable[[_core.Stream, Schema], _core.Stream], batch: pa.RecordBatch) -> Any:
    """The schema of what an operator sends for a batch."""

    def main(worker: ps.Worker) -> Any:
        core = worker._engine.begin_dataflow("flow", 1)
        schema = Schema(batch.schema)
        handle: _core.InputHandle[Any] = _core.InputHandle()
        queue = caught(build(core.input_from(handle, StreamKind.COLUMNS), schema))
        worker._engine.install(core)
        _core.send_columns(handle, batch, schema)
        handle.close()
        worker.run()
        events: list[Any] = [queue.event(index) for index in range(len(queue))]
        return [event[1].schema for event in events if event and event[0] is not None]

    ((made,),) = ps.execute(main)
    return made


TIMED = pa.schema([("city", pa.string()), ("at", pa.int64()), ("mm", pa.int64())])
TOLD = Schema(pa.schema([("time", pa.uint64())]))
DAYS = (10, 10, 0)
ROW = pa.record_batch([["Bern"], [3]], schema=ROWS)
TIMED_ROW = pa.record_batch([["Bern"], [4], [3]], schema=TIMED)


@pytest.mark.parametrize("by", [["city"], ["town"], []])
@pytest.mark.parametrize(
    "aggregations", [[("s", "mm", "sum")], [("s", "mm", "median of")], [("s", "city", "sum")]]
)
def test_the_schema_of_aggregations(by: list[str], aggregations: list[tuple[str, str, str]]) -> None:
    def build(stream: _core.Stream, schema: Schema) -> _core.Stream:
        return _core.aggregate_columns(stream, schema, by, aggregations, False, False)

    def say(schema: Schema) -> Schema:
        return _core.aggregate_schema(schema, by, aggregations)

    assert said_by(say, ROWS) == refused_by(build, ROWS)
    if said_by(say, ROWS) is None:
        assert say(Schema(ROWS)).to_pyarrow() == caught_columns(build, ROW)


@pytest.mark.parametrize("on", [["city"], ["town"], ["city", "mm"], []])
@pytest.mark.parametrize("suffix", ["_right", ""])
@pytest.mark.parametrize("how", [How.INNER, How.LEFT, How.RIGHT, How.FULL, How.SEMI, None])
def test_the_schema_and_the_key_of_a_join(on: list[str], suffix: str, how: How | None) -> None:
    def build(stream: _core.Stream, schema: Schema) -> _core.Stream:
        if how is None:
            return _core.join_so_far_columns(stream, schema, stream, schema, on, suffix, (False, False))
        return _core.join_columns(stream, schema, stream, schema, on, suffix, how, (False, False), None)

    def say(schema: Schema) -> tuple[Schema, list[int]]:
        return _core.join_schema(schema, schema, on, suffix, how or How.INNER)

    assert said_by(say, ROWS) == refused_by(build, ROWS)
    if said_by(say, ROWS) is None:
        schema, key = say(Schema(ROWS))
        assert schema.to_pyarrow() == caught_columns(build, ROW)
        assert [schema.to_pyarrow().names[index] for index in key] == on


@pytest.mark.parametrize("column", ["at", "city", "then"])
@pytest.mark.parametrize("by", ["city", "at", "start"])
def test_the_schema_of_windows(column: str, by: str) -> None:
    sums = [("mm_sum", "mm", "sum")]

    def build(stream: _core.Stream, schema: Schema) -> _core.Stream:
        return _core.window_columns(stream, schema, [by], sums, column, DAYS, False)

    def say(schema: Schema) -> Schema:
        return _core.window_schema(schema, [by], sums, column, DAYS)

    assert said_by(say, TIMED) == refused_by(build, TIMED)
    if said_by(say, TIMED) is None:
        assert say(Schema(TIMED)).to_pyarrow() == caught_columns(build, TIMED_ROW)


def test_the_schema_of_rows_with_their_own_times() -> None:
    made = caught_columns(lambda stream, schema: _core.with_own_times(stream, schema, TOLD), ROW)
    assert _core.own_times_schema(Schema(ROWS), TOLD).to_pyarrow() == made
    assert made.names == ["city", "mm", "time"]


@pytest.mark.parametrize("field", [col("mm") * 2, col("town"), col("city") + 1, 7])
def test_the_schema_of_a_selection(field: Any) -> None:
    def build(stream: _core.Stream, schema: Schema) -> _core.Stream:
        rows = _core.collect_columns(stream, schema, False)
        return _core.select_columns(rows, schema, ["x"], [field])

    def say(schema: Schema) -> Schema:
        return _core.select_schema(schema, ["x"], [field])

    assert said_by(say, ROWS) == refused_by(build, ROWS)
    if said_by(say, ROWS) is None:
        assert say(Schema(ROWS)).to_pyarrow() == pa.schema([("x", pa.int64())])


@pytest.mark.parametrize("condition", [col("mm") > 2, col("mm"), col("town") > 2, col("city") > 1])
def test_a_condition_on_columns_is_checked_without_a_stream(condition: Any) -> None:
    def build(stream: _core.Stream, schema: Schema) -> _core.Stream:
        rows = _core.collect_columns(stream, schema, False)
        return _core.filter_columns(rows, schema, condition)

    assert said_by(lambda schema: _core.check_filter(schema, condition), ROWS) == refused_by(build, ROWS)


@pytest.mark.parametrize("schema", [ROWS, pa.schema([("x", pa.list_(pa.int64()))])])
@pytest.mark.parametrize("diffs", [False, True])
def test_the_schema_of_a_collection_and_of_its_updates(schema: pa.Schema, diffs: bool) -> None:
    def build(stream: _core.Stream, schema: Schema) -> _core.Stream:
        return _core.collect_columns(stream, schema, diffs)

    assert said_by(lambda given: _core.collect_schema(given, diffs, 1), schema) == refused_by(build, schema)
    updates = _core.column_updates_schema(Schema(ROWS), 1)
    made = caught_columns(
        lambda stream, given: _core.column_updates(_core.collect_columns(stream, given, False), given), ROW
    )
    assert updates.to_pyarrow() == made
    back = _core.collect_schema(updates, True, 1)
    assert back.to_pyarrow() == ROWS
    with pytest.raises(ps.GraphError, match="no such columns"):
        _core.collect_schema(updates, True, 2)


def test_fields_of_records_are_checked_without_a_stream() -> None:
    from pointstamp import key, left, record

    _core.check_fields(record[0])
    _core.check_join_fields((key, left))
    with pytest.raises(ps.GraphError):
        _core.check_fields(key)
    with pytest.raises(ps.GraphError):
        _core.check_join_fields(record)


def test_loops_take_streams_of_their_own_kind() -> None:
    own, other = Schema(ROWS), Schema(TIMED)
    assert _core.loop_difference(None, None) is None
    assert _core.loop_difference(own, own) is None

    different = _core.loop_difference(own, other)
    assert different is not None
    assert "field 1 is 'at' and should be 'mm'" in different
    assert (
        _core.loop_difference(own, None) == "it carries record batches, and the stream records: use to_arrow"
    )
    assert _core.loop_difference(None, own) == (
        "it carries records, and the stream record batches: give feedback or loop_variable the schema"
    )

    def main(worker: ps.Worker) -> None:
        scope = worker._engine.begin_dataflow("flow", 1)
        (columns, rows), (records, _) = scope.feedback(1, own), scope.feedback(1)
        with pytest.raises(ps.GraphError, match="record batches came where records are read"):
            records.connect(rows)
        columns.connect(rows)
        with pytest.raises(ps.GraphError, match="closed already"):
            columns.connect(rows)
        worker._engine.discard(scope)

    ps.execute(main)


# ------------------------------------------------------------ chains


def test_a_chain_is_one_operator() -> None:
    seen: list[Any] = []

    def build(scope: _core.Scope) -> list[EventQueue]:
        stream = scope.to_stream(range(6))
        stages = [
            (StageKind.MAP, "plus", lambda x: x + 1, 1, None),
            (StageKind.PARTITION, "odd", lambda x: (x % 2, x), 2, (0, 0)),
            (StageKind.FLAT_MAP, "twice", lambda x: [x, -x], 1, (1, 1)),
            (StageKind.INSPECT, "see", seen.append, 1, (2, 0)),
            (StageKind.FILTER, "small", lambda x: x < 3, 1, None),
        ]
        return [caught(made) for made in _core.chain(stream, stages, [(4, 0), (1, 0), (2, 0), (1, 1)])]

    queues, operators = built(build)
    assert [name for name, _ in operators][1] == "plus > odd > twice > see > small"
    assert len(operators) == 1 + 1 + 4
    assert [records(queue) for queue in queues] == [
        [0, 1, 2],
        [2, 4, 6],
        [1, -1, 3, -3, 5, -5],
        [1, 3, 5],
    ]
    assert seen == [1, -1, 3, -3, 5, -5]


def test_a_chain_without_outputs_runs_for_its_effects() -> None:
    seen: list[Any] = []

    def build(scope: _core.Scope) -> Any:
        stage = (StageKind.INSPECT_BATCH, "see", lambda time, batch: seen.append((time, batch)), 1, None)
        return _core.chain(scope.to_stream([1, 2]), [stage], [])

    assert built(build)[0] == []
    assert seen == [(0, [1, 2])]


def test_a_chain_of_any_length_uses_no_recursion() -> None:
    def build(scope: _core.Scope) -> EventQueue:
        stages: list[Any] = [
            (StageKind.MAP, "add", lambda x: x + 1, 1, (at - 1, 0) if at else None) for at in range(5_000)
        ]
        (made,) = _core.chain(scope.to_stream([0]), stages, [(4_999, 0)])
        return caught(made)

    queue, _ = built(build)
    assert records(queue) == [5_000]


def test_what_one_stage_changes_in_its_list_no_other_sees() -> None:
    def build(scope: _core.Scope) -> list[EventQueue]:
        def emptied(batch: list[int]) -> list[int]:
            batch.clear()
            return [7]

        stages = [
            (StageKind.MAP_BATCHES, "empty", emptied, 1, None),
            (StageKind.MAP, "same", lambda x: x, 1, None),
            (StageKind.MAP_BATCHES, "empty again", emptied, 1, (1, 0)),
        ]
        outputs = [(0, 0), (1, 0), (2, 0)]
        return [caught(made) for made in _core.chain(scope.to_stream([1, 2]), stages, outputs)]

    queues, _ = built(build)
    assert [records(queue) for queue in queues] == [[7], [1, 2], [7]]


def test_records_at_times_of_their_own_go_through_a_chain() -> None:
    def build(scope: _core.Scope) -> list[EventQueue]:
        stages = [
            (StageKind.MAP_TIMED, "times", lambda time, records: ([3, 5], records), 1, None),
            (
                StageKind.MAP_TIMED,
                "ten",
                lambda times, records: (times, [10 * x for x in records]),
                1,
                (0, 0),
            ),
        ]
        made = _core.chain(scope.to_stream([1, 2]), stages, [(0, 0), (1, 0)])
        return [caught(_core.at_event_times(stream)) for stream in made]

    queues, _ = built(build)
    assert [records(queue) for queue in queues] == [[1, 2], [10, 20]]


def test_an_error_names_the_stage() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            stages = [
                (StageKind.MAP, "fine", lambda x: x, 1, None),
                (StageKind.MAP, "not so", lambda x: 1 // x, 1, (0, 0)),
            ]
            _core.chain(scope._engine.to_stream([0]), stages, [])
        worker.run()

    with pytest.raises(ZeroDivisionError) as raised:
        ps.execute(main)
    notes = "\n".join(getattr(raised.value, "__notes__", []))
    assert "not so" in notes
    assert "fine" not in notes


MAP = (StageKind.MAP, "map", abs, 1, None)
TIMES = (StageKind.MAP_TIMED, "times", abs, 1, None)


@pytest.mark.parametrize(
    ("stages", "outputs", "says"),
    [
        ([MAP], [(1, 0)], "no part 0 of stage 1"),
        ([MAP], [(0, 1)], "no part 1 of stage 0"),
        ([MAP], [(0, 0), (0, 0)], "two outputs"),
        ([(StageKind.MAP, "map", abs, 1, (0, 0))], [], "no part 0 of stage 0"),
        ([MAP, (StageKind.MAP, "map", abs, 1, (2, 0)), MAP], [], "no part 0 of stage 2"),
        ([TIMES, (StageKind.MAP, "map", abs, 1, (0, 0))], [], "records"),
    ],
)
def test_a_chain_that_is_none_is_refused(stages: Any, outputs: Any, says: str) -> None:
    def main(worker: ps.Worker) -> None:
        core = worker._engine.begin_dataflow("flow", 1)
        try:
            _core.chain(core.to_stream([1]), stages, outputs)
        finally:
            worker._engine.discard(core)

    with pytest.raises(ps.GraphError, match=says):
        ps.execute(main)


def test_a_chain_of_a_collection_is_one_operator() -> None:
    seen: list[Any] = []

    def build(scope: _core.Scope) -> list[EventQueue]:
        given = [((word,), diff) for word, diff in (("a b", 1), ("c", 2), ("c", -1), ("d e", -1))]
        rows = _core.to_collection(scope.to_stream(given), True)
        stages = [
            (CollectionStageKind.MAP, "text", lambda row: row[0], 1, None),
            (CollectionStageKind.FLAT_MAP, "split", str.split, 1, (0, 0)),
            (CollectionStageKind.INSPECT, "see", lambda *update: seen.append(update), 1, (1, 0)),
            (CollectionStageKind.FILTER, "short", lambda row: len(row[0]) < 2, 1, None),
        ]
        made = _core.collection_chain(rows, stages, [(3, 0), (2, 0), (0, 0)])
        return [caught(stream) for stream in made]

    queues, operators = built(build)
    assert [name for name, _ in operators][2] == "text > split > see > short"
    assert [_core.extract_updates(queue) for queue in queues] == [
        [(0, [(("c",), 1)])],
        [(0, [("a", 1), ("b", 1), ("c", 1), ("d", -1), ("e", -1)])],
        [(0, [("a b", 1), ("c", 1), ("d e", -1)])],
    ]
    assert seen == [("a", 0, 1), ("b", 0, 1), ("c", 0, 2), ("c", 0, -1), ("d", 0, -1), ("e", 0, -1)]


def test_a_chain_of_a_collection_reads_collections() -> None:
    def main(worker: ps.Worker) -> None:
        core = worker._engine.begin_dataflow("flow", 1)
        try:
            stage = (CollectionStageKind.MAP, "map", abs, 1, None)
            _core.collection_chain(core.to_stream([1]), [stage], [])
        finally:
            worker._engine.discard(core)

    with pytest.raises(ps.GraphError, match="updates"):
        ps.execute(main)
