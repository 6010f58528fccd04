"""A dataflow's outputs by epoch: kept until the epoch is complete on every worker of the process.

The operators that take the outputs see their input's frontier. Once it has passed an epoch on each of them,
the process has all that it will ever get of that epoch.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from pointstamp.info import OperatorInfo
    from pointstamp.logic.declared_state import Division, Restored
    from pointstamp.spark.job.outputs import Declared, Output

__all__ = ["Results"]


class Results:
    """The outputs of a dataflow in one process, from all its workers.

    Args:
        declared: The outputs.
        workers: The number of workers of the process.
    """

    def __init__(self, declared: Declared, workers: int) -> None:
        self._outputs = declared.outputs()
        self._declared = declared
        self._workers = workers
        self._changed = threading.Condition()
        # Of each worker and output, the least time that may still come; None: there is none.
        self._bounds: dict[tuple[int, int], int | None] = {
            (worker, output): 0 for worker in range(workers) for output in range(len(self._outputs))
        }
        # Of each worker and output, the batches with their times.
        self._rows: dict[tuple[int, int], list[tuple[int, pa.RecordBatch]]] = {
            place: [] for place in self._bounds
        }
        self._failure: BaseException | None = None

    def connect(self, built: Any) -> None:
        """Adds the operators that take the streams of `build`."""
        self._declared.sink(built, self._sink, self._state)

    def fail(self, error: BaseException) -> None:
        """The dataflow has ended with an error, which waiting callers get."""
        with self._changed:
            self._failure = error
            self._changed.notify_all()

    def wait(self, epoch: int | None) -> None:
        """Returns once nothing more can come at or before an epoch; None: nothing at all.

        Raises:
            BaseException: The exception that ended the dataflow before.
        """
        with self._changed:
            while not self._passed(epoch):
                if self._failure is not None:
                    raise self._failure
                # No limit: an epoch takes as long as its computation; the end of the dataflow ends this.
                self._changed.wait()

    def batches(self, epoch: int | None) -> list[list[pa.RecordBatch]]:
        """The batches of each output at or before an epoch; None: all."""
        with self._changed:
            return [
                [
                    batch
                    for worker in range(self._workers)
                    for time, batch in self._rows[worker, output]
                    if epoch is None or time <= epoch
                ]
                for output in range(len(self._outputs))
            ]

    def forget(self, epoch: int | None) -> None:
        """Forgets the batches at or before an epoch; None: all."""
        with self._changed:
            for place, rows in self._rows.items():
                self._rows[place] = [row for row in rows if epoch is not None and row[0] > epoch]

    def take(self, epoch: int | None) -> list[list[pa.RecordBatch]]:
        """The batches of each output at or before an epoch, which are not kept; None: all."""
        taken = self.batches(epoch)
        self.forget(epoch)
        return taken

    def _passed(self, epoch: int | None) -> bool:
        return all(bound is None or (epoch is not None and bound > epoch) for bound in self._bounds.values())

    def _sink(self, number: int, output: Output) -> Callable[[OperatorInfo], Callable[..., None]]:
        def build(info: OperatorInfo) -> Callable[..., None]:
            worker = info.index % self._workers

            def take(port: Any) -> None:
                rows = [
                    (message.time, output.shaped(batch, message.time))
                    for message, batch in port
                    if batch.num_rows
                ]
                bound = min(port.frontier, default=None)
                with self._changed:
                    self._rows[worker, number] += rows
                    self._bounds[worker, number] = bound
                    self._changed.notify_all()

            return take

        return build

    def _state(self, number: int, worker: int) -> _Rows:
        return _Rows(self, (worker % self._workers, number))


class _Rows:
    """The batches that the operator of one worker and output has taken: its state."""

    division: Division = "parts"

    def __init__(self, results: Results, place: tuple[int, int]) -> None:
        self._results = results
        self._place = place

    def taken(self) -> list[tuple[int, pa.RecordBatch]]:
        """See `Waiting`."""
        with self._results._changed:
            return list(self._results._rows[self._place])

    def give_back(self, taken: list[tuple[int, pa.RecordBatch]], _restored: Restored) -> None:
        """See `Waiting`."""
        with self._results._changed:
            self._results._rows[self._place] += taken
