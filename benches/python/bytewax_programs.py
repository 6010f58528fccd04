"""The same jobs with Bytewax, an optional peer: `pip install bytewax`.

The source hands out batches as ours does, and the sink takes whole batches: what is compared is the engine
and its calls of the user's functions, not how an iterator is wrapped. There is one worker: more threads would
only take the interpreter from one another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import run_main

BATCH = 1024


class _Items(StatelessSourcePartition[Any]):
    def __init__(self, items: Iterable[Any]) -> None:
        self._items = iter(items)

    def next_batch(self) -> list[Any]:
        batch = list(islice(self._items, BATCH))
        if not batch:
            raise StopIteration
        return batch


class _Source(DynamicSource[Any]):
    def __init__(self, items: Iterable[Any]) -> None:
        self._items = items

    def build(self, step_id: str, worker_index: int, worker_count: int) -> _Items:
        return _Items(self._items)


class _Batches(StatelessSinkPartition[Any]):
    def __init__(self, write: Callable[[list[Any]], object]) -> None:
        self._write = write

    def write_batch(self, items: list[Any]) -> None:
        self._write(items)


class _Sink(DynamicSink[Any]):
    def __init__(self, write: Callable[[list[Any]], object]) -> None:
        self._write = write

    def build(self, step_id: str, worker_index: int, worker_count: int) -> _Batches:
        return _Batches(self._write)


def map_filter(count: int, function: Callable[[int], int], predicate: Callable[[int], bool]) -> int:
    """The number of the first numbers that pass the predicate after the function."""
    kept = 0

    def add(batch: list[int]) -> None:
        nonlocal kept
        kept += len(batch)

    flow = Dataflow("map_filter")
    numbers = op.input("numbers", flow, _Source(range(count)))
    op.output("add", op.filter("filter", op.map("map", numbers, function), predicate), _Sink(add))
    run_main(flow)
    return kept


def word_count(lines: list[str]) -> Counter[str]:
    """The number of occurrences of each word in the lines."""
    counts: Counter[str] = Counter()
    flow = Dataflow("word_count")
    stream = op.input("lines", flow, _Source(lines))
    words = op.flat_map("split", stream, lambda line: line.split())
    totals = op.count_final("count", words, lambda word: word)
    op.output("keep", totals, _Sink(lambda pairs: counts.update(dict(pairs))))
    run_main(flow)
    return counts
