"""Operators that wait for all of their inputs and then compute once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pointstamp as ps
    from pointstamp.pacts import Pact

__all__ = ["Array", "Batches", "column", "gathered", "pieces"]

Array = np.ndarray[Any, np.dtype[Any]]

Batches = list[pa.RecordBatch]

PIECE = 1 << 18
"""Rows of a batch that is sent: a batch is a message, and messages have a size that they may not exceed."""


def gathered(
    scope: ps.Scope,
    name: str,
    inputs: Sequence[tuple[ps.ArrowStream, Pact]],
    outputs: Sequence[pa.Schema],
    compute: Callable[..., Sequence[Iterable[pa.RecordBatch]]],
) -> list[ps.ArrowStream]:
    """Adds an operator that collects its inputs and computes its outputs when nothing more can arrive.

    Args:
        scope: The scope of the inputs.
        name: The operator's name.
        inputs: Streams at one time, each with its pact.
        outputs: The schema of each output.
        compute: Called on every worker, with its `OperatorInfo` and for each input a list of its batches.
            Returns the batches of each output.
    """
    builder = scope.operator(name)
    for stream, pact in inputs:
        builder.new_input(stream, pact)
    streams = [builder.new_output(schema)[1] for schema in outputs]

    def constructor(capabilities: list[Any], info: ps.OperatorInfo) -> Callable[..., None]:
        held = list(capabilities)
        arrived: list[Batches] = [[] for _ in inputs]

        def logic(ports: list[Any], sending: list[Any]) -> None:
            for batches, port in zip(arrived, ports, strict=True):
                batches += (batch for _, batch in port if batch.num_rows)
            if not held or any(len(port.frontier) for port in ports):
                return
            given, arrived[:] = list(arrived), [[] for _ in inputs]
            for capability, output, results in zip(held, sending, compute(info, *given), strict=True):
                with output.session(capability) as session:
                    for batch in results:
                        if batch.num_rows:
                            session.give(batch)
            while held:
                held.pop().drop()

        return logic

    builder.build(constructor)
    return streams


def pieces(schema: pa.Schema, *columns: Any) -> Iterator[pa.RecordBatch]:
    """Columns of one length as batches of a schema, of `PIECE` rows at most."""
    for start in range(0, len(columns[0]), PIECE):
        parts = [column[start : start + PIECE] for column in columns]
        yield pa.record_batch(
            [
                part if isinstance(part, pa.Array) else pa.array(part, field.type)
                for part, field in zip(parts, schema, strict=True)
            ],
            schema=schema,
        )


def column(batches: Batches, name: str, kind: Any = np.int64) -> Array:
    """A column of numbers without nulls, of some batches, as one array."""
    if not batches:
        return np.zeros(0, kind)
    return np.concatenate([batch[name].to_numpy() for batch in batches])
