"""Plans as text and as pictures: as the program wrote them, and as they were lowered."""

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps


def shown(build: Callable[[ps.Scope], Any]) -> tuple[Any, Any, ps.Scope]:
    """A plan as written and as lowered, and its scope."""

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            build(scope)
            written = scope.plan()
        worker.run()
        return written, scope.plan(lowered=True), scope

    [result] = ps.execute(main)
    return result  # type: ignore[no-any-return]


def rows(plan: Any) -> list[str]:
    """The rows that are printed, without lines of the program, and with one space between words."""
    return [" ".join(re.sub(r"\S+\.py:\d+", "", row).split()) for row in str(plan).splitlines()]


def test_functions_that_follow_one_another_are_one_step() -> None:
    def build(scope: ps.Scope) -> None:
        mapped = scope.to_stream([1, 2]).map(str).filter(str.isdigit, name="digits")
        mapped.exchange(hash).probe()
        mapped.inspect(str)

    written, lowered, _ = shown(build)
    assert rows(written) == [
        "1 to_stream",
        "2 map reads 1",
        "3 digits reads 2",
        "4 exchange reads 3",
        "5 probe reads 4",
        "6 inspect reads 3",
    ]
    assert rows(lowered) == [
        "1 to_stream",
        "2 map > digits > inspect reads 1",
        "3 exchange reads 2",
        "4 probe reads 3",
    ]


def test_arrangements_stand_once_where_they_are_made() -> None:
    def build(scope: ps.Scope) -> None:
        pairs = scope.collection([(1, 2)])
        pairs.join(pairs).capture()
        pairs.count().capture()

    written, lowered, _ = shown(build)
    assert "arranged" not in str(written)
    assert rows(lowered)[:4] == [
        "1 to_stream",
        "2 to_collection reads 1",
        "3 arranged by key reads 2",
        "4 join reads 3, 3",
    ]
    assert sum("arranged" in row for row in rows(lowered)) == 1


def test_exchanges_that_move_nothing_are_gone() -> None:
    table = pa.table({"city": ["Ulm"], "sum": [1]})

    def build(scope: ps.Scope) -> None:
        moved = scope.to_stream(table).exchange("city").exchange("city")
        moved.aggregate("city", sum_max=ps.col("sum").max()).probe()

    written, lowered, _ = shown(build)
    assert rows(written)[1:3] == ["2 exchange reads 1", "3 exchange reads 2"]
    assert rows(lowered) == ["1 to_stream", "2 exchange reads 1", "3 aggregate reads 2", "4 probe reads 3"]


def test_loops_and_scopes() -> None:
    def build(scope: ps.Scope) -> None:
        with scope.iterative("turns") as inner:
            handle, back = inner.loop_variable()
            around = scope.to_stream([3]).enter(inner).concat(back)
            around.map(lambda x: x - 1).filter(bool).connect_loop(handle)
            left = around.leave()
        left.capture(name="out")

    written, lowered, _ = shown(build)
    assert rows(written) == [
        "1 feedback in turns",
        "2 to_stream",
        "3 enter reads 2 in turns",
        "4 concatenate reads 3, 1 in turns",
        "5 map reads 4 in turns",
        "6 filter reads 5 in turns",
        "7 connect_loop reads 6, closes 1 in turns",
        "8 leave reads 4",
        "9 out reads 8",
    ]
    assert "6 connect_loop reads 5, closes 1 in turns" in rows(lowered)


def test_each_row_has_the_line_that_appended_it() -> None:
    def build(scope: ps.Scope) -> None:
        stream = scope.to_stream([1])
        texts = stream.map(str)
        texts.capture()

    written, lowered, _ = shown(build)
    first = build.__code__.co_firstlineno
    lines = [f"{__file__}:{first + at}" for at in (1, 2, 3)]
    assert [row.split()[-1] for row in str(written).splitlines()] == lines
    assert [row.split()[-1] for row in str(lowered).splitlines()] == lines
    assert [node.line for node in written.nodes] == lines


def test_pictures_of_a_plan_have_its_nodes() -> None:
    def build(scope: ps.Scope) -> None:
        with scope.region("inside") as inner:
            left = scope.to_stream([1]).enter(inner).map(str, name="to text").leave()
        left.filter(bool).capture(name="out")

    for plan in shown(build)[:2]:
        for picture in (plan.to_dot(), plan.to_mermaid(), plan._repr_html_()):
            for word in ("to_stream", "inside", "to text", "filter", "out"):
                assert word in picture


def test_states_are_those_of_the_operators() -> None:
    def build(scope: ps.Scope) -> None:
        stream = scope.to_stream([1])
        stream.map(abs).count()
        scope.collection([(1, 2)]).map_groups(lambda k, v: [1])

    written, _, _ = shown(build)
    states = {node.kind: node.state for node in written.nodes}
    assert states["map"] == "none"
    assert states["count"] == "by time, until the time closes"
    assert states["to_stream"] == "how far it has read or sent"
    assert states["map_groups"] == "an arrangement"


def test_a_plan_is_shown_while_it_is_written_and_after() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow("shop") as scope:
            assert str(scope.plan()) == ""
            assert rows(scope.plan()) == []
            stream = scope.to_stream([1])
            early = scope.plan()
            stream.map(abs)
            assert (rows(early), rows(scope.plan())) == (["1 to_stream"], ["1 to_stream", "2 map reads 1"])
            assert repr(early) == "<PlanView of 1 nodes>"
            with pytest.raises(ps.GraphError, match="'shop' is lowered when its `with` block ends"):
                scope.plan(lowered=True)
        assert rows(scope.plan(lowered=True)) == ["1 to_stream", "2 map reads 1"]
        with pytest.raises(KeyError), worker.dataflow() as given_up:
            given_up.to_stream([1])
            raise KeyError
        assert rows(given_up.plan()) == ["1 to_stream"]
        worker.run()

    ps.execute(main)


def test_nothing_is_dropped_for_want_of_a_reader() -> None:
    seen: list[int] = []

    def sees(number: int, then: Any) -> Any:
        seen.append(number)
        return then

    def build(scope: ps.Scope) -> None:
        scope.to_stream([1]).map(seen.append)
        scope.to_stream([2]).exchange(lambda x: sees(x, 0))
        pairs = scope.collection([(1, 2)])
        pairs.map_groups(lambda key, values: sees(3, [1]))
        pairs.map(lambda pair: sees(4, pair))

    _, lowered, _ = shown(build)
    assert {"2 map reads 1", "4 exchange reads 3"} < set(rows(lowered))
    assert set(seen) == {1, 2, 3, 4}


def late_operator(scope: ps.Scope) -> Callable[[], None]:
    """Makes an operator whose output is read before it is built, and returns a function that builds it."""
    builder = scope.operator("late")
    _, stream = builder.new_output()
    stream.map(str).probe()

    def build() -> None:
        builder.new_input(scope.to_stream([1]), ps.Pipeline())
        builder.build(lambda capabilities, info: lambda inputs, outputs: None)

    return build


@pytest.mark.parametrize("shown", ["before it is built", "written", "lowered"])
def test_an_operator_that_is_read_before_it_is_built(shown: str) -> None:
    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            build = late_operator(scope)
            before = scope.plan()
            build()
            written = scope.plan()
        worker.drop_dataflow(scope.address[0])
        assert scope.plan().digest == written.digest
        return {"before it is built": before, "written": written}.get(shown) or scope.plan(lowered=True)

    [plan] = ps.execute(main)
    assert [node.identity for node in plan.nodes if node.kind == "operator"] == ["Dataflow/late"]
    assert {"Dataflow/late"} in [set(node.reads) for node in plan.nodes if node.kind == "map"]
    rows = str(plan).splitlines()
    [number] = [row.split()[0] for row in rows if " late " in row]
    [reads] = [row.split()[3] for row in rows if " map " in row]
    assert reads == number
    assert f"n0_{number} --> n0_1" in plan.to_mermaid()


def test_a_dataflow_without_operators_is_lowered() -> None:
    def main(worker: ps.Worker) -> str:
        with worker.dataflow() as scope:
            pass
        return str(scope.plan(lowered=True))

    assert ps.execute(main) == [""]


def test_what_was_given_up_says_so() -> None:
    def main(worker: ps.Worker) -> None:
        with pytest.raises(KeyError), worker.dataflow("given up") as scope:
            scope.to_stream([1]).probe()
            raise KeyError
        with pytest.raises(ps.GraphError, match="'given up' was not lowered: its dataflow was given up"):
            scope.plan(lowered=True)
        with pytest.raises(ps.GraphError, match="'given up' cannot be drawn: its dataflow was given up"):
            scope.to_dot()
        with pytest.raises(ps.GraphError), worker.dataflow("half") as scope:
            handle, back = scope.feedback(0)
            back.map(abs).connect_loop(handle)
        with pytest.raises(ps.GraphError, match="'half' cannot be drawn: its dataflow was given up"):
            scope.to_dot()

    ps.execute(main)
