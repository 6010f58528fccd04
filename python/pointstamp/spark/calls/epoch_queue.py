"""The input of a dataflow whose checkpoints have its records, micro-batch by micro-batch.

Checkpoints may be made at any moment, on several workers. So the state is in one operator, that of worker 0:
the micro-batches that were fed and whose outputs are not stored, and the rows that the operator has yet to
send. A micro-batch is put as a whole, in one step; a checkpoint has all of it, or nothing.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from pointstamp import _core
from pointstamp.api.classes import stream_of
from pointstamp.logic.planned import single_output
from pointstamp.spark.packing.naming import INPUT

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from pointstamp._core import Activator, Capability
    from pointstamp.api.arrow_stream import ArrowStream
    from pointstamp.api.scope import Scope
    from pointstamp.info import OperatorInfo
    from pointstamp.logic.declared_state import Division, Restored

__all__ = ["EpochQueue", "Standing"]


class Standing(NamedTuple):
    """The micro-batches that a checkpoint has.

    Attributes:
        query: Spark's identity of the query that feeds them; None where something else does.
        stored: The last micro-batch whose outputs were stored; -1 where there is none.
        fed: Those that were fed later, in order.
    """

    query: str | None
    stored: int
    fed: tuple[int, ...]


class EpochQueue:
    """The input of a dataflow in one process. Rows come in on worker 0.

    Args:
        schema: Of the rows.

    Attributes:
        restored: The input's part of the checkpoint from which the dataflow resumes; None where it begins.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._changed = threading.Lock()
        self._queue: deque[tuple[int, pa.RecordBatch]] = deque()
        self._standing = Standing(None, -1, ())
        self._passed = 0
        self._activator: Activator | None = None
        self.restored: Standing | None = None

    def stream(self, scope: Scope, _stream: int, name: str) -> ArrowStream:
        """Adds the operator of the input to the dataflow of a worker."""
        columns = _core.Schema(self._schema)
        made = single_output(
            scope,
            f"{INPUT}{name}",
            (),
            self._build,
            notify=False,
            start=True,
            schema=columns,
            state=_State(self, scope.index == 0),
        )
        return stream_of(scope, made)  # type: ignore[no-any-return]

    def put(self, epoch: int, batches: list[pa.RecordBatch]) -> None:
        """Puts all rows of a micro-batch, and ends it."""
        with self._changed:
            self._queue.extend((epoch, batch) for batch in batches)
            self._standing = self._standing._replace(fed=(*self._standing.fed, epoch))
            self._passed = epoch + 1
        self.wake()

    def fed_by(self, query: str | None) -> None:
        """Notes the query that feeds it."""
        with self._changed:
            self._standing = self._standing._replace(query=query)

    def stored(self, epoch: int) -> None:
        """Notes that the outputs of a micro-batch are stored."""
        with self._changed:
            fed = tuple(each for each in self._standing.fed if each > epoch)
            self._standing = self._standing._replace(stored=epoch, fed=fed)

    def wake(self) -> None:
        """Has worker 0 take a step."""
        assert self._activator is not None
        self._activator.activate()

    def _build(self, capability: Capability, info: OperatorInfo) -> Callable[[Any], None]:
        if info.index != 0:
            capability.drop()
            return lambda output: None
        time = capability.time
        assert isinstance(time, int)
        with self._changed:
            self._passed = max(self._passed, time)
            self._activator = info.activator

        def send(output: Any) -> None:
            # All at once: at a cut nothing may be here that has no place in the state.
            with self._changed:
                taken, passed = list(self._queue), self._passed
                self._queue.clear()
            for time, batch in taken:
                capability.downgrade(time)
                with output.session(capability) as session:
                    session.give(batch)
            capability.downgrade(passed)

        return send


class _State:
    """The state of the operator of one worker."""

    division: Division = "parts"

    def __init__(self, queue: EpochQueue, leads: bool) -> None:
        self._queue = queue
        self._leads = leads

    def taken(self) -> tuple[Standing, list[tuple[int, pa.RecordBatch]]] | None:
        """See `Waiting`."""
        if not self._leads:
            return None
        with self._queue._changed:
            return self._queue._standing, list(self._queue._queue)

    def give_back(
        self, taken: tuple[Standing, list[tuple[int, pa.RecordBatch]]] | None, _restored: Restored
    ) -> None:
        """See `Waiting`."""
        if taken is None:
            return
        queue = self._queue
        with queue._changed:
            queue._standing, rows = taken
            queue.restored = queue._standing
            queue._queue.extend(rows)
            fed = queue._standing.fed
            queue._passed = max(queue._passed, max(fed, default=queue._standing.stored) + 1)
