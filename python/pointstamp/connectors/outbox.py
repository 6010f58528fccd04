"""`stream.write` with checkpoints: results are shown when a complete checkpoint covers them, each once.

Rows of a time wait until the time is complete, and then in the outbox, which is part of the next checkpoint.
Once it exists, the outbox is written to the target, with its position (lineage, sink, part, number) in the
same transaction. After a recovery it is written again, unless the position says that it is there. A part is
the worker that made the outbox, whoever shows it.

Rows wait in bounded memory: where they exceed `FULL` bytes, and complete times, or a sink elsewhere, have yet
to be shown, the sources of the process pause (`full_outboxes`). The rows of one time wait here however many
they are.
"""

from __future__ import annotations

import pickle
import time as clock
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from pointstamp.connectors.full_outboxes import mark
from pointstamp.connectors.naming import identity_of
from pointstamp.connectors.positions import numbers_of
from pointstamp.connectors.protocol import Position, SinkWriter
from pointstamp.connectors.writing import end_failed
from pointstamp.errors import CheckpointError, GraphError
from pointstamp.logic.pickled_state import dumps
from pointstamp.logic.planned import PlannedOperator
from pointstamp.pacts import pact_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pointstamp import _core
    from pointstamp._core import Capability, FrontieredInput, OutputPort, Piece
    from pointstamp.connectors.protocol import Sink
    from pointstamp.info import OperatorInfo
    from pointstamp.logic.declared_state import Restored
    from pointstamp.lowering.scope import BuildingScope
    from pointstamp.pacts import Pact
    from pointstamp.plan.node import Output
    from pointstamp.types import Time

__all__ = ["outbox"]

_VERSION = 1
"""The version of the state in checkpoints."""

QUIET = 0.05
"""Seconds without new results after which a checkpoint is requested, so that waiting results are shown."""

LARGE = 64 << 20
"""Bytes in an outbox above which a checkpoint is asked for."""

FULL = 2 * LARGE
"""Bytes of rows above which sources pause, until those of complete times are shown."""

SAMPLE = 16
"""Records of a batch by which its size is estimated."""

UNKNOWN = 64
"""Bytes that a record is taken to have where it cannot be pickled: the next checkpoint says so."""


class Outbox:
    """The operator of one worker."""

    def __init__(self, name: str, sink: Sink, identity: str, recording: _core.Recording) -> None:
        self._name = name
        self._sink = sink
        self._identity = identity
        self._recording = recording
        self._lineage = recording.lineage
        self._writer: SinkWriter | None = None
        self._open: dict[Time, tuple[Capability, list[Any]]] = {}
        # The bytes of rows whose times are not complete, and by time.
        self._unfinished = 0
        self._sizes: dict[Time, int] = {}
        # Complete times that are not shown, in order; the first so many are in the last cut.
        self._ready: list[tuple[Time, Capability, list[Any]]] = []
        self._sealed = 0
        self._bytes = 0
        # Where the rows count, if memory is bounded.
        self._disk: _core.Disk | None = None
        # Outboxes of the checkpoint from which the computation resumes: part and rows.
        self._left: list[tuple[int, list[tuple[Time, list[Any]]]]] = []
        self._capabilities: list[tuple[Time, Capability]] = []
        # By part, the last checkpoint whose outbox the target has.
        self._numbers: dict[int, int] = {}
        self._news = 0
        self._looked = 0
        self._since = 0.0
        self._waits = False

    def build(
        self, operator: PlannedOperator, capability: Capability, info: OperatorInfo
    ) -> Callable[..., None]:
        """The constructor of the operator."""
        self._take_back(operator.restored())
        capability.drop()
        operator.core.keeps("parts", self._taken)
        self._disk = operator.core.disk(self._name)
        self._info = info
        self._shows = self._recording.sink(info.activator)
        self._recording.subscribe(info.activator)  # it may not be full any more then
        self._shown = self._shows.committed
        self._writer = self._sink.open(info.index, info.peers)
        try:
            found = self._writer.positions()
            what = f"'{self._name}'"
            self._numbers = numbers_of(found, self._recording.lineage, self._identity, self._shown, what)
        except BaseException as error:
            self.fail(error)
            raise
        return self.run

    # ------------------------------------------------------------ checkpoints

    def _taken(self) -> list[Piece]:
        self._sealed = len(self._ready)
        ready = [(time, batches) for time, _, batches in self._ready]
        unfinished = {time: batches for time, (_, batches) in self._open.items()}
        part = self._info.index
        rows = _pickled(self._name, (ready, unfinished))
        return [dumps(self._name, (_VERSION, part, rows))]

    def _take_back(self, restored: Restored | None) -> None:
        if restored is None:
            return
        for piece in restored.pieces:
            part, rows = restored.loads_versioned(piece, _VERSION)
            ready, unfinished = pickle.loads(rows)
            for time, batches in unfinished.items():
                if time not in self._open:
                    self._open[time] = restored.capability(0, time), []
                self._keep(time, batches)
            if ready:
                self._left.append((part, ready))
                self._capabilities += [(time, restored.capability(0, time)) for time, _ in ready]

    # ------------------------------------------------------------ running

    def run(self, port: FrontieredInput[Any], output: OutputPort[Any]) -> None:
        """Takes waiting batches, and shows the results that a checkpoint covers."""
        try:
            self._run(port, output)
        except BaseException as error:
            self.fail(error)
            raise

    def _run(self, port: FrontieredInput[Any], output: OutputPort[Any]) -> None:
        writer = self._writer
        if writer is None:
            return
        if self._left:
            self._show_left(writer, output)
        for message, batch in port:
            if message.time not in self._open:
                self._open[message.time] = message.retain(), []
            self._keep(message.time, [batch])
        frontier = port.frontier
        for time in sorted(time for time in self._open if not frontier.less_equal(time)):
            capability, batches = self._open.pop(time)
            self._ready.append((time, capability, batches))
            size = self._sizes.pop(time, 0)
            self._bytes += size
            self._unfinished -= size
            self._news += 1
        committed = self._shows.committed
        if committed > self._shown:
            self._mark(is_full=self._is_full())  # for the time that it takes
            self._show(writer, output, committed)
        self._mark(is_full=self._is_full())
        if self._disk is not None:
            self._disk.count(self._bytes + self._unfinished)
        if self._ready:
            self._ask(ended=not frontier)
        elif not frontier and not self._open:
            self._writer = None
            del self._shows  # no checkpoint waits for this worker's part of the sink any more
            writer.close()

    def _mark(self, *, is_full: bool) -> None:
        mark(self._lineage, id(self), is_full=is_full)

    def _is_full(self) -> bool:
        """Whether there are too many rows, and a checkpoint will take some away."""
        if self._bytes + self._unfinished < FULL:
            return False
        return bool(self._ready) or self._recording.covered < self._shows.committed

    def _keep(self, time: Time, batches: list[Any]) -> None:
        """Adds batches to those of a time that is not complete."""
        self._open[time][1].extend(batches)
        size = sum(map(size_of, batches))
        self._sizes[time] = self._sizes.get(time, 0) + size
        self._unfinished += size

    def _ask(self, *, ended: bool) -> None:
        """Asks for a checkpoint where nothing else makes one soon."""
        now, hurries = clock.monotonic(), ended or self._bytes >= LARGE
        if self._looked != self._news and not hurries:
            self._looked, self._since = self._news, now
            self._info.activator.activate_after(QUIET)
        elif now < self._since + QUIET and not hurries:
            pass  # it runs again when it has been quiet for long enough
        elif not self._waits:
            self._waits = True
            self._shows.ask()

    def _show(self, writer: SinkWriter, output: OutputPort[Any], number: int) -> None:
        """Shows the rows that the last cut has."""
        sealed, self._sealed = self._sealed, 0
        rows, self._ready = self._ready[:sealed], self._ready[sealed:]
        if rows:
            position = Position(self._recording.lineage, self._identity, self._info.index, number)
            writer.show(position, [(time, batch) for time, _, batches in rows for batch in batches])
            self._bytes = sum(size_of(batch) for _, _, batches in self._ready for batch in batches)
        self._shown = number
        self._waits = False
        self._tell(output, [(time, capability) for time, capability, _ in rows])
        self._shows.show(number)

    def _show_left(self, writer: SinkWriter, output: OutputPort[Any]) -> None:
        """Shows the results of the checkpoint that the computation resumes from, unless they are shown."""
        lineage, number = self._recording.lineage, self._shown
        left, self._left = self._left, []
        for part, ready in left:
            if self._numbers.get(part, 0) < number:
                rows = [(time, batch) for time, batches in ready for batch in batches]
                writer.show(Position(lineage, self._identity, part, number), rows)
        held, self._capabilities = self._capabilities, []
        self._tell(output, held)

    def _tell(self, output: OutputPort[Any], times: list[tuple[Time, Capability]]) -> None:
        """Sends the times that were shown."""
        for time, capability in times:
            with capability, output.session(capability) as session:
                session.give(time)

    def fail(self, because: BaseException | None = None) -> None:
        """Closes the writer, see `end_failed`."""
        writer, self._writer = self._writer, None
        self._mark(is_full=False)
        end_failed(writer, because)

    def __del__(self) -> None:
        self.fail()


def _pickled(name: str, rows: Any) -> bytes:
    """Pickles rows, which hold no capabilities: so it takes a fraction of the time of `dumps`."""
    try:
        return pickle.dumps(rows, 5)
    except Exception as error:
        raise CheckpointError(
            f"rows that wait for '{name}' cannot be pickled: {type(error).__name__}: {error}. Map them to "
            "plain data before they are written, or write with commit='time'"
        ) from error


def size_of(batch: Any) -> int:
    """Returns the approximate number of bytes of a batch: for records, by the first few."""
    if not isinstance(batch, list):
        return int(batch.nbytes)
    sample = batch[:SAMPLE]
    try:
        size = len(pickle.dumps(sample, 5))
    except Exception:  # the checkpoint reports the error
        size = UNKNOWN * len(sample)
    return size * len(batch) // max(len(sample), 1)


def _name_of(scope: BuildingScope, operator: PlannedOperator) -> str:
    """Returns a short name of a `write`, which is the same in every run and differs from those of others."""
    return blake2b(identity_of(scope, operator).encode(), digest_size=8).hexdigest()


def outbox(
    scope: BuildingScope, read: Output, sink: Sink, pact: Pact, name: str, recording: _core.Recording
) -> Output:
    """Appends the operator that shows the results that checkpoints cover.

    Raises:
        GraphError: If the sink has no positions, and does not say that results may be there twice.
    """
    if not sink.positions and not sink.at_least_once:
        kind = type(sink).__name__
        raise GraphError(
            f"{kind} cannot tell which checkpoints it has shown: after a recovery, rows might come twice. "
            f"Set positions = True in {kind} and give its writers positions() and show(); or say there "
            "at_least_once = True; or write with commit='time'"
        )
    scope._plan_scope.check_reads(read, name)
    route = pact_of(pact, read, name)
    operator = PlannedOperator(scope, name)
    operator.new_input(read, route)
    port, made, capability = operator.new_output()
    made_box = Outbox(name, sink, _name_of(scope, operator), recording)
    logic = operator.constructed(partial(made_box.build, operator), capability)
    del capability
    operator.build(logic, lambda ports: (*ports, port), start=True)
    return made
