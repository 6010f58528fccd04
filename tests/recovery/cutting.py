"""Programs that are cut and resumed, compared with programs that run through.

A program is a function of a stream of records ``{"at": int, "key": str, "n": int}``, in the order of `at`, at
these times. What it returns is what is compared: each record with its time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pointstamp as ps
from pointstamp.connectors import JSONLinesSource
from pointstamp.logic.declared_state import Division, Restored
from pointstamp.logic.planned import single_output
from resuming import Enough, make_checkpoint, settings

Build = Callable[[ps.Stream[Any]], Any]
Records = list[tuple[int, Any, str]]


def records(count: int = 100) -> list[dict[str, Any]]:
    """Records of a few keys. A time has at most one of a key, so that their order there does not count."""
    given = [
        {"at": 3 + number // 4, "key": "abcd"[number % 4], "n": number * 5 % 17} for number in range(count)
    ]
    return [record for number, record in enumerate(given) if number % 7 < 5 and number % 23 > 3]


class _Out:
    """The results on a worker. Those after the checkpoint do not count: the next part makes them again."""

    division: Division = "parts"

    def __init__(self) -> None:
        self.made: Records = []
        self.until = 0

    def taken(self) -> None:
        """Notes where the checkpoint is."""
        self.until = len(self.made)

    def give_back(self, taken: None, restored: Restored) -> None:
        """It begins with nothing."""


class Cut:
    """A program that is run in parts: each part resumes from the checkpoint of the part before.

    Args:
        folder: For its files.
        build: The program.
        files: How many partitions the source has: with one, records come in their order.
    """

    def __init__(self, folder: Path, build: Build, files: int) -> None:
        self.folder = folder
        self.files = files
        self.build = build
        self.out: Records = []
        self.taken = 0
        """How many records the program has taken in."""

    def run(self, until: Sequence[dict[str, Any]], workers: int, *, last: bool) -> None:
        """Runs the program with more records, to a checkpoint behind them or to its end."""
        for number in range(self.files):
            with (self.folder / f"in{number}.jsonl").open("a") as file:
                file.writelines(json.dumps(record) + "\n" for record in until[number :: self.files])
        wanted = self.taken + len(until)
        is_done = False
        found: list[_Out] = []

        def main(worker: ps.Worker) -> None:
            nonlocal is_done
            with worker.dataflow() as scope:
                source = JSONLinesSource(str(self.folder / "in*.jsonl"), follow=not last)
                read = scope.read(source, time=lambda record: record["at"])
                found.extend(outs(self.build(read.inspect(self._took, name="took"))))
            if last:
                return
            while self.taken < wanted:
                worker.step()
            if worker.index == 0:
                make_checkpoint(worker)
                is_done = True
            while not is_done:
                worker.step()
            raise Enough

        try:
            ps.execute(main, config=settings(self.folder, workers))
        except Enough:
            assert not last
        else:
            assert last
        for out in found:
            self.out += out.made if last else out.made[: out.until]

    def _took(self, _record: Any) -> None:
        self.taken += 1


def outs(made: Any) -> list[_Out]:
    """Collects the records of streams."""
    streams = made if isinstance(made, list | tuple) else (made,)
    outs = []
    for number, stream in enumerate(streams):
        plain = stream.to_records() if isinstance(stream, ps.ArrowStream) else stream
        outs.append(out := _Out())
        inputs = [(plain._output, ps.Pipeline())]
        build = partial(_collecting, number, out.made)
        single_output(plain.scope, f"out {number}", inputs, build, notify=False, state=out)
    return outs


def _collecting(number: int, made: Records, capability: Any, _info: Any) -> Callable[..., None]:
    capability.drop()

    def logic(port: Any, _output: Any) -> None:
        for message, records in port:
            made.extend((number, message.time, repr(record)) for record in records)

    return logic


def in_parts(folder: Path, build: Build, workers: Sequence[int], files: int = 1) -> Records:
    """Returns the results of a program whose parts run with so many workers each."""
    given = records()
    folder.mkdir()
    cut = Cut(folder, build, files)
    size = -(-len(given) // len(workers)) + 1  # parts end within a time
    for part, count in enumerate(workers):
        cut.run(given[part * size :][:size], count, last=part == len(workers) - 1)
    return sorted(cut.out, key=repr)
