"""Operators of one's own on streams of either kind give outputs of either kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps

SCHEMA = pa.schema([("n", pa.int64())])
OTHER = pa.schema([("m", pa.int64())])


def numbers(data: Any) -> list[int]:
    """The numbers of a list of records, or of a batch's column."""
    found: list[int] = data.column(0).to_pylist() if isinstance(data, pa.RecordBatch) else data
    return found


def give(cap: Any, found: list[int], output: Any, columns: str | None) -> None:
    with output.session(cap) as session:
        if columns is None:
            session.give_all(found)
        else:
            session.give(pa.record_batch({columns: found}))


class Twice(ps.Vertex):
    """Twice each number."""

    columns: str | None = None

    def on_recv(self, edge: int, messages: Any, time: ps.Time) -> None:
        twice = [2 * n for n in numbers(messages)]
        self.send_by(0, twice if self.columns is None else [pa.record_batch({self.columns: twice})], time)


Stream = Any
Apply = Callable[[Stream, Stream, dict[str, Any], str | None], Stream]


def built(columns: str | None) -> Any:
    """A constructor of logic with any number of inputs."""

    def build(capability: ps.Capability, info: ps.OperatorInfo) -> Any:
        capability.drop()

        def logic(*ports: Any) -> None:
            *inputs, output = ports
            for input in inputs:
                for cap, data in input:
                    give(cap, [2 * n for n in numbers(data)], output, columns)

        return logic

    return build


def notified(columns: str | None) -> Any:
    def logic(*ports: Any) -> None:
        *inputs, output, _notificator = ports
        built(columns)(NoCapability(), None)(*inputs, output)

    return logic


class NoCapability:
    def drop(self) -> None:
        """Nothing to drop."""


def vertex(columns: str | None) -> Callable[[], ps.Vertex]:
    return type("Columns", (Twice,), {"columns": columns})


P = ps.Pipeline()
ONE: dict[str, Apply] = {
    "unary": lambda s, _, kind, c: s.unary(P, "mine", built(c), **kind),
    "unary_frontier": lambda s, _, kind, c: s.unary_frontier(P, "mine", built(c), **kind),
    "unary_notify": lambda s, _, kind, c: s.unary_notify(P, "mine", [], notified(c), **kind),
    "vertex": lambda s, _, kind, c: s.vertex(vertex(c), **kind),
}
TWO: dict[str, Apply] = {
    "binary": lambda s, o, kind, c: s.binary(o, P, P, "mine", built(c), **kind),
    "binary_frontier": lambda s, o, kind, c: s.binary_frontier(o, P, P, "mine", built(c), **kind),
    "binary_notify": lambda s, o, kind, c: s.binary_notify(o, P, P, "mine", [], notified(c), **kind),
}


@pytest.mark.parametrize("method", [*ONE, *TWO])
@pytest.mark.parametrize("from_columns", [False, True])
@pytest.mark.parametrize(
    ("schema", "columns"), [(..., "n"), (None, None), (OTHER, "m")], ids=["same", "records", "columns"]
)
def test_every_method_gives_either_kind(
    method: str, from_columns: bool, schema: Any, columns: str | None
) -> None:
    kind = {} if schema is ... else {"schema": schema}
    if schema is ... and not from_columns:
        columns = None  # an operator on records gives records

    def build(scope: ps.Scope) -> Any:
        records = scope.to_stream([1, 2, 3])
        stream = records.map(lambda n: (n,)).to_arrow(SCHEMA) if from_columns else records
        # the other input is of the other kind
        other = records if from_columns else records.map(lambda n: (n,)).to_arrow(SCHEMA)
        made: Any = {**ONE, **TWO}[method](stream, other, kind, columns)
        assert type(made).__name__ == ("Stream" if columns is None else "ArrowStream")
        if columns is None:
            return made.capture()
        assert made.schema.names == [columns]
        return made.to_records().map(lambda row: row[columns]).capture()

    times = 1 if method in ONE else 2
    assert ps.example(build).extract() == [(0, sorted([2, 4, 6] * times))]


def test_records_are_refused_by_an_output_of_columns() -> None:
    def build(scope: ps.Scope) -> Any:
        return scope.to_stream([1]).unary(P, "mine", built(None), schema=OTHER)

    with pytest.raises(TypeError, match=r"Arrow|RecordBatch"):
        ps.example(build)


def test_columns_of_another_schema_are_refused() -> None:
    def build(scope: ps.Scope) -> Any:
        return scope.to_stream([1]).unary(P, "mine", built("n"), schema=OTHER)

    with pytest.raises(TypeError, match="field 0 is 'n' and should be 'm'"):
        ps.example(build)
