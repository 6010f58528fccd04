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
        self._rows: list[tuple[int, int, pa.RecordBatch]] = []
        self._failure: BaseException | None = None

    def connect(self, built: Any) -> None:
        """Adds the operators that take the streams of `build`."""
        self._declared.sink(built, self._sink)

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

    def take(self, epoch: int | None) -> list[list[pa.RecordBatch]]:
        """The batches of each output at or before an epoch, which are not kept; None: all."""
        taken: list[list[pa.RecordBatch]] = [[] for _ in self._outputs]
        with self._changed:
            rows, self._rows = self._rows, []
            for time, output, batch in rows:
                if epoch is None or time <= epoch:
                    taken[output].append(batch)
                else:
                    self._rows.append((time, output, batch))
        return taken

    def _passed(self, epoch: int | None) -> bool:
        return all(bound is None or (epoch is not None and bound > epoch) for bound in self._bounds.values())

    def _sink(self, number: int, output: Output) -> Callable[[OperatorInfo], Callable[..., None]]:
        def build(info: OperatorInfo) -> Callable[..., None]:
            worker = info.index % self._workers

            def take(port: Any) -> None:
                rows = [
                    (message.time, number, output.shaped(batch, message.time))
                    for message, batch in port
                    if batch.num_rows
                ]
                bound = min(port.frontier, default=None)
                with self._changed:
                    self._rows += rows
                    self._bounds[worker, number] = bound
                    self._changed.notify_all()

            return take

        return build
