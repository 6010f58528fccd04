"""Programs over single records: plain Python, pointstamp, and Bytewax where it is installed."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from ratios import Program

import pointstamp as ps

try:
    import bytewax_programs as bytewax
except ImportError:
    bytewax = None  # type: ignore[assignment]  # an optional peer


# ---------------------------------------------------------------- map and filter


def _plain_map_filter(count: int, function: Callable[[int], int], predicate: Callable[[int], bool]) -> int:
    kept = 0
    for x in range(count):
        y = function(x)
        if predicate(y):
            kept += 1
    return kept


def our_map_filter(
    workers: int, count: int, function: Callable[[int], int], predicate: Callable[[int], bool]
) -> int:
    """The loop as a dataflow; each worker takes its share of the numbers."""

    def main(worker: ps.Worker) -> int:
        kept = 0

        def add(_time: ps.Time, batch: list[int]) -> None:
            nonlocal kept
            kept += len(batch)

        with worker.dataflow() as scope:
            numbers = scope.to_stream(range(worker.index, count, worker.peers))
            numbers.map(function).filter(predicate).inspect_batch(add)
        worker.run()
        return kept

    return sum(ps.execute(main, workers=workers))


def map_filter(count: int) -> list[Program]:
    """Integers through a `map` and a `filter`, both lambdas."""
    functions = (lambda x: x * 3 + 1), (lambda x: x % 2 == 0)
    programs = [
        Program("plain Python, a loop", partial(_plain_map_filter, count, *functions)),
        Program("pointstamp, 1 worker", partial(our_map_filter, 1, count, *functions), aim=1.2),
        Program("pointstamp, 2 workers", partial(our_map_filter, 2, count, *functions), aim=1.2),
    ]
    if bytewax is not None:
        programs.append(Program("Bytewax", partial(bytewax.map_filter, count, *functions)))
    return programs


# ---------------------------------------------------------------- word count


def make_lines(count: int) -> list[str]:
    """Lines of ten words, some words far more frequent than others, as in a language."""
    source = random.Random(20131103)
    letters = "abcdefghijklmnopqrstuvwxyz"
    vocabulary = ["".join(source.choices(letters, k=source.randint(2, 10))) for _ in range(20_000)]
    weights = [1 / rank for rank in range(1, len(vocabulary) + 1)]
    words = iter(source.choices(vocabulary, weights, k=10 * count))
    return [" ".join(line) for line in zip(*[words] * 10, strict=True)]


def _plain_word_count(lines: list[str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(line.split())
    return counts


def _count_each(
    counts: dict[str, int],
) -> Callable[[ps.Capability, ps.OperatorInfo], Callable[..., None]]:
    def build(capability: ps.Capability, _info: ps.OperatorInfo) -> Callable[..., None]:
        capability.drop()

        def logic(input: ps.InputPort[str], _output: ps.OutputPort[Any]) -> None:
            for _, words in input:
                for word in words:
                    counts[word] = counts.get(word, 0) + 1

        return logic

    return build


def _our_word_count(workers: int, lines: list[str]) -> Counter[str]:
    def main(worker: ps.Worker) -> dict[str, int]:
        counts: dict[str, int] = {}
        with worker.dataflow() as scope:
            share = scope.to_stream(lines[worker.index :: worker.peers])
            words = share.flat_map(lambda line: line.split())
            words.unary(ps.Exchange(lambda word: word), "count", _count_each(counts))
        worker.run()
        return counts

    totals: Counter[str] = Counter()
    for counts in ps.execute(main, workers=workers):
        totals.update(counts)
    return totals


def _on_one_core(run: Callable[[], Counter[str]]) -> Counter[str]:
    """A run whose threads share a core, and its cache."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        return run()
    finally:
        os.sched_setaffinity(0, cores)


def _our_aggregate(workers: int, lines: list[str]) -> Counter[str]:
    def main(worker: ps.Worker) -> Counter[str]:
        counts: Counter[str] = Counter()
        with worker.dataflow() as scope:
            share = scope.to_stream(lines[worker.index :: worker.peers])
            pairs = share.flat_map(lambda line: line.split()).map(lambda word: (word, 1))
            totals = pairs.aggregate(
                lambda _word, one, total: total + one, lambda word, total: (word, total), default=int
            )
            totals.inspect_batch(lambda _time, batch: counts.update(dict(batch)))
        worker.run()
        return counts

    return sum(ps.execute(main, workers=workers), Counter())


def word_count(count: int) -> list[Program]:
    """Words counted one record at a time, by Python closures: `split`, the key, and the count."""
    lines = make_lines(count)
    programs = [
        Program("Counter.update(line.split()) per line", partial(_plain_word_count, lines)),
        Program("pointstamp, 1 worker", partial(_our_word_count, 1, lines), aim=2.5),
        Program("pointstamp, 2 workers", partial(_our_word_count, 2, lines), aim=2.5),
    ]
    if hasattr(os, "sched_setaffinity"):  # Linux
        alone = partial(_on_one_core, partial(_our_word_count, 2, lines))
        programs.append(Program("pointstamp, 2 workers, on one core", alone))
    if hasattr(ps.Stream, "aggregate"):
        programs.append(Program("pointstamp, aggregate, 1 worker", partial(_our_aggregate, 1, lines)))
        programs.append(Program("pointstamp, aggregate, 2 workers", partial(_our_aggregate, 2, lines)))
    if bytewax is not None:
        programs.append(Program("Bytewax, count_final", partial(bytewax.word_count, lines)))
    return programs
