"""The passes over a plan, each by itself: plans of a few nodes, without an engine."""

from __future__ import annotations

from typing import Any

from pointstamp.lowering import passes
from pointstamp.plan import columns, shape
from pointstamp.plan.node import Form, Kind, Node, Output
from pointstamp.plan.plan import Plan, PlanScope

SOURCE = Kind("source", "shape")
READER = Kind("reader", "shape")


class Planned:
    """A plan that is written a node at a time."""

    def __init__(self) -> None:
        self.plan = Plan()
        self.scope = PlanScope("dataflow", (0,), 1, None)

    def add(self, kind: Kind, *reads: Any, form: Form = Form.COLUMNS, **arguments: Any) -> Output:
        made = Output(form, placed=arguments.pop("placed", None))
        return self.plan.append(self.scope, kind, reads, [made], arguments).output

    def source(self, placed: list[int] | None = None, form: Form = Form.COLUMNS) -> Output:
        return self.add(SOURCE, placed=placed, form=form)

    def exchange(self, read: Output, key: list[int]) -> Output:
        return self.add(columns.EXCHANGE, read, key=key, placed=key)

    def aggregate(self, read: Output, key: list[int]) -> Output:
        return self.add(columns.AGGREGATE, read, key=key, placed=[0])

    @property
    def left_out(self) -> dict[Output, Output]:
        return passes.left_out(self.plan.nodes)


def test_an_exchange_that_only_aggregates_by_its_key_read_is_left_out() -> None:
    plan = Planned()
    source = plan.source()
    moved = plan.exchange(source, [1])
    plan.aggregate(moved, [1])
    plan.aggregate(moved, [1])
    assert plan.left_out == {moved: source}


def test_an_exchange_that_nothing_reads_is_left_out() -> None:
    plan = Planned()
    source = plan.source()
    moved = plan.exchange(source, [0])
    assert plan.left_out == {moved: source}


def test_an_exchange_with_any_other_reader_is_made() -> None:
    plan = Planned()
    source = plan.source()
    by_another_key = plan.exchange(source, [1])
    plan.aggregate(by_another_key, [0])
    by_several = plan.exchange(source, [0])
    plan.aggregate(by_several, [0, 1])
    read_as_it_is = plan.exchange(source, [0])
    plan.aggregate(read_as_it_is, [0])
    plan.add(READER, read_as_it_is)
    assert plan.left_out == {}


def test_an_exchange_of_rows_that_are_in_place_is_left_out() -> None:
    plan = Planned()
    source = plan.source([1])
    moved = plan.exchange(source, [1])
    again = plan.exchange(moved, [1])
    plan.add(READER, moved)
    plan.add(READER, again)
    assert plan.left_out == {moved: source, again: source}


def test_rows_that_were_moved_by_another_key_are_moved() -> None:
    plan = Planned()
    first = plan.exchange(plan.source([1]), [0])
    second = plan.exchange(first, [1])
    plan.add(READER, second)
    assert plan.left_out == {}


def test_an_exchange_before_one_that_is_left_out_has_its_readers() -> None:
    plan = Planned()
    first = plan.exchange(plan.source(), [1])
    second = plan.exchange(first, [0])
    plan.aggregate(second, [0])
    assert plan.left_out == {second: first}


def test_what_stands_for_an_exchange_is_read_in_the_forms_in_which_it_was() -> None:
    plan = Planned()
    source = plan.source([1], form=Form.MIXED)
    moved = plan.exchange(source, [1])
    reader = plan.add(READER, moved)
    found = passes.wanted(plan.plan.nodes, {}, plan.left_out)
    assert found == {source: {Form.COLUMNS: reader.node}}


def test_what_enters_a_scope_is_read_outside_in_the_forms_in_which_it_is_read_inside() -> None:
    plan = Planned()
    source = plan.source()
    entered = plan.add(shape.ENTER, source)
    inside = plan.add(READER, entered)
    unread = plan.add(shape.ENTER, plan.source())
    found = passes.wanted(plan.plan.nodes, {})
    assert found[source] == {Form.COLUMNS: inside.node}
    assert unread.node.inputs[0].output not in found or not found[unread.node.inputs[0].output]


def test_each_form_is_made_once_for_its_first_reader() -> None:
    plan = Planned()
    mixed = plan.source(form=Form.MIXED)
    window = plan.add(READER, mixed.read_as(Form.MIXED))
    first = plan.add(READER, mixed)
    plan.add(READER, mixed)
    found = passes.wanted(plan.plan.nodes, {})
    assert found[mixed] == {Form.MIXED: window.node, Form.COLUMNS: first.node}


def test_long_plans_are_no_deeper_than_short_ones() -> None:
    plan = Planned()
    source = last = plan.source([0])
    for _ in range(20_000):
        last = plan.exchange(last, [0])
    reader: Node = plan.add(READER, last).node
    instead = plan.left_out
    assert len(instead) == 20_000
    assert set(instead.values()) == {source}
    assert passes.wanted(plan.plan.nodes, {}, instead) == {source: {Form.COLUMNS: reader}}
