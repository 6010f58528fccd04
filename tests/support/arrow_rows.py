"""A table of two columns, and the results of a dataflow on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

import pointstamp as ps

__all__ = ["SCHEMA", "TABLE", "run"]

SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string())])
TABLE = pa.table({"k": range(12), "s": [f"s{i % 5}" for i in range(12)]}, schema=SCHEMA)


def run(
    build: Callable[[ps.ArrowStream], Any], table: pa.Table = TABLE, *, workers: int = 1
) -> list[tuple[Any, list[dict[str, Any]]]]:
    """Returns the rows per time, of all workers, of a dataflow's result for a table that worker 0 sends."""

    def main(worker: ps.Worker) -> list[tuple[Any, list[pa.RecordBatch]]]:
        rows = ps.ArrowInput(table.schema)
        with worker.dataflow() as scope:
            captured = build(rows.to_stream(scope)).capture()
        if worker.index == 0:
            rows.send(table)
        rows.close()
        worker.run()
        found: list[tuple[Any, list[pa.RecordBatch]]] = captured.extract()
        return found

    merged: dict[Any, list[dict[str, Any]]] = {}
    for result in ps.execute(main, workers=workers):
        for time, batches in result:
            for batch in batches:
                merged.setdefault(time, []).extend(batch.to_pylist())
    return sorted(merged.items())
