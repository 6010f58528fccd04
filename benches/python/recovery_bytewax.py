"""The work of `recovery.py` with Bytewax, an optional peer: `pip install bytewax`."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.recovery import RecoveryConfig, init_db_dir
from bytewax.testing import cluster_main

BATCH = 1000


class _Feed(StatefulSourcePartition[tuple[str, int], int]):
    def __init__(self, states: int, records: int, loaded: Callable[[], None]) -> None:
        self._states = states
        self._until = states + records
        self._loaded = loaded
        self._draw = random.Random(7).random
        self._next = 0

    def next_batch(self) -> list[tuple[str, int]]:
        first, end = self._next, min(self._next + BATCH, self._until)
        if first == end:
            raise StopIteration
        self._next = end
        if end <= self._states:
            return [(str(key), 1) for key in range(first, end)]
        if first <= self._states:
            self._loaded()
        some = max(1, self._states // 100)
        base = int(time.monotonic()) % 100 * some
        return [(str(base + int(self._draw() * some)), 1) for _ in range(end - first)]

    def snapshot(self) -> int:
        return self._next


class _Source(FixedPartitionedSource[tuple[str, int], int]):
    def __init__(self, *given: Any) -> None:
        self._given = given

    def list_parts(self) -> list[str]:
        return ["feed"]

    def build_part(self, step_id: str, for_part: str, resume_state: int | None) -> _Feed:
        return _Feed(*self._given)


class _Nowhere(StatelessSinkPartition[Any]):
    def write_batch(self, items: list[Any]) -> None:
        pass


class _Sink(DynamicSink[Any]):
    def build(self, step_id: str, worker_index: int, worker_count: int) -> _Nowhere:
        return _Nowhere()


def steady(states: int, records: int, folder: Path | None, every: float) -> float:
    """The seconds that records take once all states are there."""
    begin = 0.0

    def loaded() -> None:
        nonlocal begin
        begin = begin or time.perf_counter()

    flow = Dataflow("states")
    feed = op.input("feed", flow, _Source(states, records, loaded))
    totals = op.stateful_map(
        "states", feed, lambda state, value: ((state or 0) + value, (state or 0) + value)
    )
    op.output("nowhere", totals, _Sink())
    recovery = None
    if folder is not None:
        init_db_dir(folder, 1)
        recovery = RecoveryConfig(folder)
    cluster_main(flow, [], 0, epoch_interval=timedelta(seconds=every), recovery_config=recovery)
    return time.perf_counter() - begin
