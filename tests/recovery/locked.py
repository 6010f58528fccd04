"""A program that may stop itself in the middle of a transaction of its sink, and keeps a database locked.

Run as ``python locked.py FOLDER sqlite|duckdb [stops]``.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pointstamp as ps
from pointstamp.connectors import DuckDBSink, JSONLinesSource, SQLiteSink

PATIENCE = 0.5
"""Seconds for which SQLite's lock is waited for."""


class Row(dict[str, Any]):
    """A row that stops the process when it is inserted, where that was asked for."""

    def __getitem__(self, name: str) -> Any:
        if "stops" in sys.argv:
            sys.argv.remove("stops")
            os.kill(os.getpid(), signal.SIGSTOP)
        return super().__getitem__(name)


def main(worker: ps.Worker) -> None:
    """Writes each line of a file as a row."""
    folder, kind = Path(sys.argv[1]), sys.argv[2]
    sink: ps.connectors.Sink
    if kind == "sqlite":
        sink = SQLiteSink(folder / "out.sqlite", "rows", columns=["n"], patience=PATIENCE)
    else:
        sink = DuckDBSink(folder / "out.duckdb", "rows", columns=["n"])
    with worker.dataflow() as scope:
        lines = scope.read(JSONLinesSource(str(folder / "in.jsonl")), time=lambda line: line["n"] // 10)
        lines.map(Row).write(sink)


if __name__ == "__main__":
    checkpoint = ps.Checkpoint(f"{sys.argv[1]}/state", every=0.01)
    ps.execute(main, config=ps.Config(checkpoint=checkpoint))
