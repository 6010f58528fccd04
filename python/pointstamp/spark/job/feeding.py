"""A process's input on its way into the dataflow: bounded queues, and the operators that read them.

One thread puts Spark's batches into the queue, in the order of times, and they are dealt to the workers. Each
worker has one operator for each input, which takes its queued batches, sends them, and gives up the times
that the whole task has passed: so an epoch closes as soon as every task is past it. The thread waits while
more than a fixed number of bytes is queued; operators never wait.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any

from pointstamp import _core
from pointstamp.api.classes import stream_of
from pointstamp.logic.planned import single_output
from pointstamp.spark.packing.naming import INPUT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pyarrow as pa

    from pointstamp._core import Activator, Capability
    from pointstamp.api.arrow_stream import ArrowStream
    from pointstamp.api.scope import Scope
    from pointstamp.info import OperatorInfo
    from pointstamp.logic.declared_state import Waiting
    from pointstamp.spark.packing.batches import Packed

__all__ = ["Feed"]

_BOUND = 32 << 20
"""Bytes that may wait for the operators of one task."""

_TURN = 64
"""Batches that an operator sends in one run; then the others have theirs."""


class Feed:
    """The inputs of a dataflow in one process, for all its workers.

    Args:
        schemas: Of each input.
        workers: The number of workers of the process.

    Attributes:
        failure: The exception that `fill` got in place of a batch.
    """

    def __init__(self, schemas: list[pa.Schema], workers: int) -> None:
        self._schemas = schemas
        self._workers = workers
        self._changed = threading.Condition()
        self._queues: dict[tuple[int, int], deque[Packed]] = {
            (worker, stream): deque() for worker in range(workers) for stream in range(len(schemas))
        }
        self._activators: list[Activator] = []
        self._bytes = 0
        self._passed = 0
        self._turn = 0
        self._ended = False
        self._stopped = False
        self.failure: BaseException | None = None

    def stream(self, scope: Scope, stream: int, name: str) -> ArrowStream:
        """Adds the operator of an input to the dataflow of a worker."""
        columns = _core.Schema(self._schemas[stream])
        made = single_output(
            scope,
            f"{INPUT}{name}",
            (),
            self._source(stream),
            notify=False,
            start=True,
            schema=columns,
            state=self._state(scope.index % self._workers, stream),
        )
        return stream_of(scope, made)  # type: ignore[no-any-return]

    def fill(self, batches: Iterable[Packed]) -> None:
        """Puts batches, which are in the order of their times, until they end; on the thread that reads them.

        Exceptions of reading them are raised in the dataflow instead.
        """
        try:
            for batch in batches:
                self.advance_to(batch.low)
                if not self.put(batch):
                    return
        except BaseException as error:  # raised in the dataflow, where it ends the task
            self.failure = error
        self.end()

    def put(self, batch: Packed) -> bool:
        """Queues a batch for the next of the workers, in turn; waits for space.

        Returns:
            False once nothing is taken any more.
        """
        size = batch.batch.nbytes
        with self._changed:
            while self._bytes and self._bytes + size > _BOUND and not self._stopped:
                # No limit: back-pressure, until the dataflow takes a batch or ends.
                self._changed.wait()
            if self._stopped:
                return False
            queue = self._queues[self._next(batch), batch.stream]
            queue.append(batch)
            self._bytes += size
            first = len(queue) == 1
        if first:
            self._activate()
        return True

    def advance_to(self, time: int) -> None:
        """Nothing will be put before this time any more."""
        if time > self._passed:
            self._passed = time
            self._activate()

    def end(self) -> None:
        """Nothing will be put any more."""
        with self._changed:
            self._ended = True
        self._activate()

    def stop(self) -> None:
        """Nothing will be taken any more: writers do not wait."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _activate(self) -> None:
        with self._changed:
            activators = list(self._activators)
        for activator in activators:
            activator.activate()

    def _next(self, batch: Packed) -> int:
        """The worker whose turn it is."""
        self._turn = (self._turn + 1) % self._workers
        return self._turn

    def _state(self, worker: int, stream: int) -> Waiting | None:
        """The state of the operator of an input on a worker; None where no checkpoints are made."""
        return None

    def _begins(self, worker: int, stream: int, capability: Capability) -> None:
        """An operator begins, with this capability."""

    def _sent(self, worker: int, stream: int, batch: Packed) -> None:
        """An operator has sent a batch."""

    def _passes(self, worker: int, stream: int, time: int) -> None:
        """An operator has passed the times before one."""

    def _ends(self, worker: int, stream: int) -> bool:
        """Whether the operator of an input on a worker has nothing more to send."""
        return self._ended and not self._queues[worker, stream]

    def _take(self, worker: int, stream: int) -> tuple[list[Packed], int, bool]:
        """Returns the batches to send, the time before which nothing follows, and whether it is the end."""
        with self._changed:
            if self.failure is not None:
                raise self.failure
            queue = self._queues[worker, stream]
            taken = [queue.popleft() for _ in range(min(_TURN, len(queue)))]
            self._bytes -= sum(packed.batch.nbytes for packed in taken)
            self._changed.notify_all()
            passed = queue[0].low if queue else self._passed
            return taken, passed, self._ends(worker, stream)

    def _source(self, stream: int) -> Callable[[Capability, OperatorInfo], Callable[[Any], None]]:
        def build(capability: Capability, info: OperatorInfo) -> Callable[[Any], None]:
            worker = info.index % self._workers
            with self._changed:
                self._activators.append(info.activator)
            held: list[Capability] = [] if capability._revoked else [capability]
            self._begins(worker, stream, capability)

            def send(output: Any) -> None:
                if not held:
                    return
                taken, passed, ended = self._take(worker, stream)
                for packed in taken:
                    held[0].downgrade(packed.low)
                    with output.session(held[0]) as session:
                        session.give(packed.batch)
                    self._sent(worker, stream, packed)
                if ended:
                    held.pop().drop()
                elif len(taken) == _TURN:
                    info.activator.activate()
                if held and passed > held[0].time:  # type: ignore[operator]  # one coordinate
                    held[0].downgrade(passed)
                    self._passes(worker, stream, passed)

            return send

        return build
