"""Logs: all that the workers do, as Arrow streams in a folder, and what is read from them.

A worker's log is `worker-N.arrows`: record batches of the columns

- `at`: nanoseconds since 1970; `worker`; `kind`: what happened;
- `dataflow`, `operator`: the numbers of what it is about;
- `edge`, `port`, `time` (coordinates), `count`, `peer`;
- `text`: the address and name of what is made, the ends of an edge, the place of a pointstamp.

Kinds: `scope`, `operator`, `edge` (made), `begin`, `end` (an operator runs), `send`, `receive` (a batch of
`count` records), `capability` (`count` 1: made, 0: moved to `time`, -1: dropped), `frontier`, `progress
sent`, `progress received` (one row for each change), `held` (a source waits), `park`, `unpark`, `shutdown`,
and `lost` (`count` events before it were not kept: those that waited were not taken, a million of them).
"""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pointstamp._errors import ConfigError, PointstampError
from pointstamp._threads import Helper, join

if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike
    from types import TracebackType

    import pyarrow as pa

    from pointstamp import _core

__all__ = ["Writer", "read_log", "to_perfetto"]

EVERY = 0.2
"""Seconds between two batches of a log."""


class Writer:
    """Writes what recorders have to a folder, for as long as the block runs."""

    def __init__(self, folder: str | PathLike[str], recorders: dict[int, _core.Recorder]) -> None:
        try:
            import pyarrow.ipc
        except ImportError:
            raise ConfigError("a log is written with pyarrow: pip install 'pointstamp[arrow]'") from None
        self._ipc: Any = pyarrow.ipc
        self._folder = Path(folder)
        self._recorders = recorders
        self._writers: dict[int, Any] = {}
        self._ended = threading.Event()
        self._thread = Helper(self._run, "pointstamp-log", daemon=True)

    def __enter__(self) -> Writer:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"the log cannot be written to {str(self._folder)!r}: {error}") from error
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        join([self._thread], 0.1)
        self._take()
        for writer in self._writers.values():
            writer.close()
        lost = {worker: recorder.lost for worker, recorder in self._recorders.items() if recorder.lost}
        if lost:
            import logging

            logging.getLogger("pointstamp.seeing.log").warning(
                "the log in %r lacks %d events, of worker %s: more happened than was written meanwhile. Rows "
                "of the kind 'lost' say where",
                *(str(self._folder), sum(lost.values()), " and ".join(map(str, lost))),
            )

    def _run(self) -> None:
        while not self._ended.wait(EVERY):
            self._take()

    def _take(self) -> None:
        for worker, recorder in list(self._recorders.items()):
            batch = recorder.take(worker)
            if worker not in self._writers:
                path = self._folder / f"worker-{worker}.arrows"
                self._writers[worker] = self._ipc.new_stream(str(path), batch.schema)
            if batch.num_rows:
                self._writers[worker].write_batch(batch)


def read_log(folder: str | PathLike[str]) -> pa.Table:
    """The events of all workers in a folder, in the order of time.

    What was being written when a program was killed may be missing.

    Raises:
        PointstampError: If there is no log.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    batches: list[pa.RecordBatch] = []
    for path in sorted(Path(folder).glob("worker-*.arrows")):
        batches.extend(_batches(path))
    if not batches:
        raise PointstampError(
            f"{str(folder)!r} holds no log of pointstamp: it is written by Config(log=folder)"
        )
    table = pa.Table.from_batches(batches)
    order = pc.sort_indices(table, sort_keys=[("at", "ascending")])  # what a worker says stays in its order
    return table.take(order)


def _batches(path: Path) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    try:
        with pa.ipc.open_stream(str(path)) as reader:
            yield from reader
    except pa.ArrowInvalid:
        return  # the program was killed while it wrote


def to_perfetto(folder: str | PathLike[str], target: str | PathLike[str]) -> int:
    """Writes a log as a trace that ui.perfetto.dev and chrome://tracing open: what ran when on which worker.

    Returns:
        How many events the trace has.
    """
    table = read_log(folder)
    names: dict[tuple[int, int], str] = {}
    trace: list[dict[str, Any]] = []
    for row in table.to_pylist():
        who = (row["dataflow"], row["operator"])
        event = {"ts": row["at"] / 1000, "pid": 0, "tid": row["worker"]}
        kind = row["kind"]
        if kind in ("operator", "scope"):
            names[who] = row["text"].partition(" ")[2]
        elif kind in ("begin", "end"):
            name = names.get(who, f"operator {who[0]}.{who[1]}")
            trace.append({**event, "ph": "B" if kind == "begin" else "E", "name": name})
        elif kind in ("park", "unpark"):
            trace.append({**event, "ph": "B" if kind == "park" else "E", "name": "asleep"})
        elif kind in ("send", "receive"):
            about = {"time": row["time"], "records": row["count"], "edge": row["edge"]}
            trace.append({**event, "ph": "i", "s": "t", "name": kind, "args": about})
    workers = sorted(set(table["worker"].to_pylist()))
    trace.extend(
        {"ph": "M", "pid": 0, "tid": worker, "name": "thread_name", "args": {"name": f"worker {worker}"}}
        for worker in workers
    )
    Path(target).write_text(json.dumps({"traceEvents": trace}), encoding="utf-8")
    return len(trace)
