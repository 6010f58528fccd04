"""Identities of nodes and digests of plans: equal in each run of a program, and different where plans differ."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.seeing.plans import PlanView


def plans_of(build: Callable[[ps.Scope], Any], workers: int = 1) -> list[PlanView]:
    def main(worker: ps.Worker) -> PlanView:
        with worker.dataflow() as scope:
            build(scope)
        return scope.plan()

    return ps.execute(main, config=ps.Config(workers=workers))


def program(scope: ps.Scope) -> None:
    reached = scope.collection([(1, 2)])
    step = scope.collection([(2, 3)])
    longer = reached.iterate(lambda inner, pairs: pairs.concat(step.enter(inner)).distinct())
    scope.to_stream([1]).map(str).map(int).map(str, name="text").capture()
    longer.capture()


def test_identities_are_equal_in_each_run_and_on_each_worker() -> None:
    [one] = plans_of(program)
    identities = [node.identity for node in one.nodes]
    assert len(set(identities)) == len(identities)
    assert {"Dataflow/map", "Dataflow/map#2", "Dataflow/text", "Dataflow/Iterate/distinct"} <= set(identities)
    for again in plans_of(program, workers=3):
        assert (again.nodes, again.digest) == (one.nodes, one.digest)


def columns(scope: ps.Scope, *, value: pa.DataType, named: str | None = None) -> None:
    table = pa.table({"a": pa.array([1], value)})
    scope.to_stream(table).exchange("a", name=named).capture()


@pytest.mark.parametrize("other", [{"value": pa.int32()}, {"value": pa.int64(), "named": "x"}])
def test_a_schema_and_a_name_are_part_of_the_digest(other: dict[str, Any]) -> None:
    [one] = plans_of(lambda scope: columns(scope, value=pa.int64()))
    [same] = plans_of(lambda scope: columns(scope, value=pa.int64()))
    [another] = plans_of(lambda scope: columns(scope, **other))
    assert one.digest == same.digest != another.digest


def test_a_plan_is_printed_and_drawn_before_its_block_has_ended() -> None:
    def main(worker: ps.Worker) -> tuple[str, str, PlanView]:
        with worker.dataflow() as scope:
            scope.to_stream([1]).map(str).filter(bool).capture()
            with pytest.raises(ps.GraphError, match="is lowered when its `with` block ends"):
                scope.plan(lowered=True)
            return str(scope.plan()), scope.plan().to_mermaid(), scope.plan()

    [(text, picture, kept)] = ps.execute(main)
    assert [line.split()[1] for line in text.splitlines()] == ["to_stream", "map", "filter", "capture"]
    assert picture.count("-->") == 3
    assert str(kept) == text  # a view of then
