"""`scope.read`: the operator that plays a source into a dataflow.

Threads read, and the operator sends. A thread takes batches of a partition and puts them on a shelf for the
operator; it waits while a few are there, and the operator sleeps while none are. An error in a thread is
raised by the operator, with the partition and the offset. When the operator is dropped, however the dataflow
ended, it closes the readers and joins the threads.

`Timing` decides the times of records. The operator keeps the offset after each batch, with the latest time of
its records. It reports an offset as durable to the reader when no time up to there is anywhere downstream,
and no operator needs a record of such a time (the engine's `retention`). Where an operator downstream may
need any record for as long as it runs, no offset is durable, and none is kept.
"""

from __future__ import annotations

import json
import logging
import threading
import time as clock
import warnings
from collections import deque
from functools import partial
from hashlib import sha256
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from pointstamp._core import ProbeHandle, worker_of_key
from pointstamp.api.classes import stream_of
from pointstamp.connectors.full_outboxes import PAUSE, are_full
from pointstamp.connectors.journal import Journaled, folder_of
from pointstamp.connectors.naming import identity_of
from pointstamp.connectors.protocol import Sink
from pointstamp.connectors.rejecting import Rejected, is_unreadable
from pointstamp.connectors.timing import Timing
from pointstamp.errors import CheckpointError, GraphError, NotAcknowledged, add_note
from pointstamp.logic.pickled_state import dumps
from pointstamp.logic.planned import PlannedOperator
from pointstamp.observability.held_times import register_explanation
from pointstamp.plan import shape
from pointstamp.runtime.threads import Helper, raised_later

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from pointstamp import _core
    from pointstamp._core import Capability, OutputPort
    from pointstamp.connectors.protocol import PartitionReader, Source
    from pointstamp.lowering.scope import BuildingScope
    from pointstamp.plan.node import Output

__all__ = ["Reading"]

Item = tuple[str, Any, Any, int | None, "Sequence[Rejected]"]
"""A partition, a batch, the offset after it, a watermark, and lines that could not be read with it."""

_VERSION = 2
"""The version of the state in checkpoints."""

_SHOWN = 8
"""The number of partitions that a message names."""

_log = logging.getLogger("pointstamp")

AHEAD = 4
"""Batches of a partition that wait for the operator at most."""

PATIENCE = 10
"""Seconds that the end waits for a thread: one that cannot be woken is abandoned."""

BATCHES = 64
"""Batches that a run of the operator sends at most, so that others get their turn."""

RECORDS = 4096
"""Records after which a run sends nothing more: no frontier moves while they are worked through."""

TIMES = 256
"""Times of records at which a run sends at most. Those that are left of a batch are sent by later runs."""

SLOW = 0.25
"""Seconds of work of the records of a run. With checkpoints, a run sends less where they cause more."""

GENTLY = 10.0
"""Seconds that the error of a line that cannot be read waits for complete times to be written."""

TURNS = 8
"""The minimum number of runs that such an error waits: sent records are processed meanwhile."""

OFFSETS = 4096
"""Offsets of a partition that are remembered at most: of more, every second one is."""


class _Shelf:
    """Holds batches that threads put and the operator takes."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._changed = threading.Condition()
        self._items: deque[Item] = deque()
        self._waiting: dict[str, int] = {}
        self.closed = False

    def put(
        self,
        partition: str,
        batch: Any,
        offset: Any,
        watermark: int | None = None,
        rejected: Sequence[Rejected] = (),
    ) -> bool:
        """Puts a batch there, once there is room; false when none is wanted."""
        with self._changed:
            while not self.closed and self._waiting.get(partition, 0) >= AHEAD:
                # No limit: back-pressure, until the operator takes a batch or closes the shelf.
                self._changed.wait()
            if self.closed:
                return False
            self._waiting[partition] = self._waiting.get(partition, 0) + 1
            self._items.append((partition, batch, offset, watermark, rejected))
        self._wake()
        return True

    def take(self) -> Item | None:
        """The next batch, if there is one."""
        with self._changed:
            if not self._items:
                return None
            item = self._items.popleft()
            self._waiting[item[0]] -= 1
            self._changed.notify_all()
            return item

    def waiting(self) -> set[str]:
        """The partitions that have a batch here."""
        with self._changed:
            return {partition for partition, batches in self._waiting.items() if batches}

    def close(self) -> None:
        with self._changed:
            self.closed = True
            self._changed.notify_all()


class _End:
    """The mark behind the last batch of a partition: nothing, or its error."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


class _Failing:
    """The error of a line that cannot be read, and until when it waits."""

    def __init__(self, error: BaseException, until: int, at_last: float) -> None:
        self.error = error
        self.until = until
        self.at_last = at_last
        self.turns = TURNS


class _Found:
    """The names of all partitions, as the thread that looks for them puts them there."""

    def __init__(self, names: list[str]) -> None:
        self.names = names


class _Threads:
    """The readers of a worker's partitions, and the threads that run them. The operator knows them."""

    def __init__(
        self,
        source: Source[Any],
        partitions: list[str],
        offsets: Mapping[str, Any],
        shelf: _Shelf,
        journal: Callable[[str], Path] | None = None,
    ) -> None:
        self._source = source
        # The folder of the journal of a partition, where records are logged.
        self._journal = journal
        self._offsets = offsets
        self._shelf = shelf
        self._lock = threading.Lock()
        self.readers: dict[str, PartitionReader[Any]] = {}
        self._open: list[tuple[str, PartitionReader[Any]]] = []
        self._groups = [[p] for p in partitions] if source.waits else ([partitions] if partitions else [])
        self._threads: list[Helper] = []
        self._over = threading.Event()

    def begin(self) -> None:
        """Starts the threads of the given partitions. The caller has to end them."""
        for group in self._groups:
            self.start(group)
        if self._source.discover is not None:
            self._begin(self._look, "look for partitions", self._source.discover)

    def start(self, partitions: list[str]) -> None:
        """Starts a thread that reads partitions, one after another."""
        self._begin(self._run, f"read {partitions[0]}", partitions)

    def _begin(self, target: Callable[..., None], name: str, argument: Any) -> None:
        thread = Helper(partial(target, argument), name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _look(self, every: float) -> None:
        while not self._over.wait(every):
            try:
                found: Any = _Found(list(self._source.partitions()))
            except Exception as error:
                add_note(error, "while looking for partitions that were added")
                found = _End(error)
            if not self._shelf.put("", found, None):
                return

    def _run(self, partitions: list[str]) -> None:
        for partition in partitions:
            if not self._read(partition):
                return

    def _read(self, partition: str) -> bool:
        offset = self._offsets.get(partition)
        try:
            reader = self._open_reader(partition)  # which may wait, and is not waited for by others
            with self._lock:
                wanted = not self._shelf.closed
                if wanted:
                    self.readers[partition] = reader
                    self._open.append((partition, reader))
            if not wanted:
                reader.close()
                return False
            if offset is not None:
                reader.seek(offset)
            while (batch := reader.read()) is not None:
                offset = reader.offset
                rejected = reader.take_rejected()
                if not self._shelf.put(partition, batch, offset, reader.watermark, rejected):
                    return False
            end, rejected = reader.offset, reader.take_rejected()
            if not self._source.waits:
                self._close(partition, reader)  # one is open at a time
            return self._shelf.put(partition, _End(), end, None, rejected)
        except BaseException as error:  # it belongs to the caller that runs the dataflow
            where = "the beginning" if offset is None else f"offset {offset}"
            add_note(error, f"while reading partition '{partition}' from {where}")
            self._shelf.put(partition, _End(error), offset)
            return False

    def _open_reader(self, partition: str) -> PartitionReader[Any]:
        open_reader = partial(self._source.open, partition)
        return open_reader() if self._journal is None else Journaled(open_reader, self._journal(partition))

    def _close(self, partition: str, reader: PartitionReader[Any]) -> None:
        with self._lock:
            if (partition, reader) not in self._open:
                return  # the end was first
            self._open.remove((partition, reader))
        reader.close()

    def stop(self) -> list[BaseException]:
        """Ends the threads. Every reader is closed, whatever the others raise; returns their exceptions."""
        self._over.set()
        self._shelf.close()
        with self._lock:
            left, self._open = self._open, []
            self.readers = {}
        errors: list[BaseException] = []
        for partition, reader in left:
            try:
                reader.close()
            except BaseException as error:
                add_note(error, f"while closing partition '{partition}'")
                errors.append(error)
        until = clock.monotonic() + PATIENCE
        for thread in self._threads:
            if thread is not threading.current_thread():  # the collector may run on any
                thread.ends(max(until - clock.monotonic(), 0))
        self._threads.clear()
        return errors


def _has_durable(source: Source[Any]) -> bool:
    """Whether readers of a source may have a `durable` that does something.

    The package's sources declare whether theirs have. A program's subclass may give its own readers one.
    """

    def is_ours(name: str) -> bool:
        kind = next(kind for kind in type(source).__mro__ if name in vars(kind))
        return name not in vars(source) and kind.__module__.startswith("pointstamp.")

    return source.acknowledges or (is_ours("acknowledges") and not is_ours("open"))


class Reading:
    """The operator of one worker."""

    def __init__(
        self,
        name: str,
        source: Source[Any],
        offsets: Mapping[str, Any],
        timing: Timing,
        *,
        past_state: bool = False,
        durable: Callable[[str, Any], None] | None = None,
    ) -> None:
        """A reading that is not part of a dataflow yet.

        Args:
            name: Of the operator.
            source: The source.
            offsets: Where to begin, by partition.
            timing: The times of records.
            past_state: Whether offsets are acknowledged though an operator keeps state of earlier records.
            durable: Is called with a partition and its durable offset; None: only readers are called.
        """
        self._name = name
        self._past_state = past_state
        self._durable = durable
        self._source = source
        self._offsets = offsets
        self._timing = timing
        self._threads: _Threads | None = None
        self._ended = False
        self._names: set[str] = set()
        self._mine: list[str] = []
        # Operators that may need any record: one of them is named, once, if offsets are to be acknowledged.
        self._retaining: _core.Retaining | None = None
        self._refuses: bool | None = None
        # Per partition: offsets that are not durable yet, each with the least time that may hold it back.
        self._pending: dict[str, deque[tuple[Any, int]]] = {}
        # Lines that could not be read: their number, their sink, and the error of one that ends the dataflow.
        self.rejected: int | None = None if source.on_error is None else 0
        # Lines without a later record wait for its time, and no offset behind them is acknowledged.
        self._unplaced: dict[str, list[Rejected]] = {}
        # Per partition: the latest time at which something was sent since its last offset was remembered.
        self._sent: dict[str, int] = {}
        self._rejects: OutputPort[Any] | None = None
        self._may_reject: Capability | None = None
        # The parts of a batch that are not sent yet, and for each the least time of it and those behind it.
        self._unsent: deque[tuple[str, int, Any]] = deque()
        self._least: deque[int] = deque()
        # With checkpoints: the maximum number of records of a run; the number that the last run sent, and the
        # worker's time at its end.
        self._most: int | None = None
        self._before: tuple[int, float] | None = None
        self._shown = ProbeHandle()
        self._failing: _Failing | None = None
        self._tick: float | None = None
        self._capability: Capability | None
        self._beat: Capability | None = None
        self._beats = ProbeHandle()
        self.probe = ProbeHandle()
        self._acknowledges = False
        # With checkpoints: by partition, the offset after the sent records, and the offset at the last cut.
        self._recording: _core.Recording | None = None
        self._identity = ""
        self._lineage = ""
        self._location: Path | None = None
        self._at: dict[str, Any] = {}
        self._covers: dict[str, Any] = {}
        self._covered = 0
        self._asked = False
        self._over: set[str] = set()

    def install(self, scope: BuildingScope, columns: _core.Schema | None) -> Output:
        """Adds the operator to a scope; returns its stream."""
        self._recording = scope._engine.recording
        self._lineage = "" if self._recording is None else self._recording.lineage
        self._check_journal(scope._building.checkpoints)
        self._acknowledges = self._durable is not None or _has_durable(self._source)
        # Checkpoints determine the durable offsets: then no operator tracks the records that it needs.
        acknowledges = self._acknowledges and self._recording is None
        if acknowledges:
            scope._engine.acknowledges()
        core = PlannedOperator(scope, self._name)
        output, stream, self._capability = core.new_output(columns)
        if self._capability._revoked:
            self._capability = None
        # This output is not read: it keeps the dataflow from ending before all offsets are durable.
        _, _, self._unacknowledged = core.new_output()
        lines = None
        if isinstance(self._source.on_error, Sink):
            self._rejects, lines, self._may_reject = core.new_output()
        beats = None
        if self._source.discover is not None:
            # A worker without partitions reads nothing: its frontier follows that of the workers with
            # partitions, as it may get some.
            _, beats, self._beat = core.new_output()
        self.info = core.info
        register_explanation(self.info, self)
        if self._recording is None:
            self._share_out([])
        else:
            self._identity, self._location = identity_of(scope, core), scope._building.checkpoints
            restored = core.restored()
            kept: list[Any] = []
            if restored is not None:
                kept += [restored.loads_versioned(piece, _VERSION)[0] for piece in restored.pieces]
            self._share_out(kept)
            self._take_back(kept)
            core.core.keeps("groups", self._taken)
            self._recording.subscribe(self.info.activator)
        if self._source.discover is None and self.info.peers > 1:
            scope._building.compared.append(_described(self._name, sorted(self._names)))
        core.build(self._run, lambda _: (output,), notify=False, start=True)
        if beats is not None:
            scope._watch(beats, self._beats, self.info.activator)
        if acknowledges:
            scope._watch(stream, self.probe, self.info.activator, retained=True)
            scope._append(shape.RETAINING, [stream], found=self._found_retaining)
        if self._source.on_error == "raise":
            scope._watch(stream, self._shown, self.info.activator)
        if lines is not None:
            if acknowledges:
                scope._watch(lines, self.probe, self.info.activator, retained=True)
            stream_of(scope, lines).write(self._source.on_error, name=f"{self._name}: rejected")
        return stream

    # ------------------------------------------------------------ checkpoints

    def _taken(self) -> list[_core.Piece]:
        """Returns the state for a checkpoint: the offset of sent records, by partition, and the times."""
        self._cover()  # of the last checkpoint, which no cut is made before
        self._covers = dict(self._at)
        self._check_offsets()
        kept = {
            "worker": self.info.index,
            "peers": self.info.peers,
            "names": sorted(self._names),
            "mine": self._mine,
            "offsets": self._at,
            "ended": sorted(self._over if self._threads is None else set(self._mine) - self._left),
            "timing": self._timing.kept(),
            "rejected": self.rejected,
            "unplaced": self._unplaced,
            "sent": self._sent,
            "unsent": list(self._unsent),
        }
        return [dumps(self._name, (_VERSION, kept))]

    def _check_offsets(self) -> None:
        """Checks that offsets are plain JSON data."""
        for partition, offset in self._at.items():
            try:
                same = json.loads(json.dumps(offset)) == offset
            except (TypeError, ValueError):
                same = False
            if not same:
                raise CheckpointError(
                    f"the offset of partition '{partition}' of source '{self._name}' is {offset!r:.200}, "
                    "which is no plain JSON data: let the reader's offset be numbers, texts, lists and dicts"
                )

    def _check_journal(self, folder: Path | None) -> None:
        """Refuses a source whose records would be lost, or whose journal has no location.

        Raises:
            GraphError: If so.
        """
        source, kind = self._source, type(self._source).__name__
        if source.journal and self._recording is None:
            raise GraphError(
                f"source '{self._name}' has a journal, which lies beside checkpoints, and none are made: "
                "give execute a config=Config(checkpoint=Checkpoint('state/')), or leave journal=True out"
            )
        if source.journal and folder is None:
            raise GraphError(
                f"source '{self._name}' has a journal, which lies beside checkpoints in a folder, and these "
                "are kept in a bucket: give Checkpoint a folder that all processes reach"
            )
        if self._recording is not None and not source.rewinds and not source.journal:
            raise GraphError(
                f"source '{self._name}' cannot be read again from an offset, and checkpoints are made: what "
                f"it had read before a failure would be lost. Make the {kind} with journal=True, which logs "
                "records before they are sent"
            )

    def _journal_of(self, partition: str) -> Path | None:
        return None if self._location is None else folder_of(self._location, self._identity, partition)

    def _take_back(self, pieces: list[dict[str, Any]]) -> None:
        """Resumes at the checkpoint, with the partitions that this worker owns now."""
        self._offsets = dict(self._offsets)
        for kept in pieces:
            self._look_for_gone(kept)
            self._timing.restore(kept["timing"])
            mine = [partition for partition in self._mine if partition in kept["offsets"]]
            for partition in mine:
                self._at[partition] = self._offsets[partition] = kept["offsets"][partition]
            for partition in kept["ended"]:
                if partition in self._mine:
                    self._over.add(partition)
                    self._timing.ended(partition)
            self._unplaced.update({name: kept["unplaced"][name] for name in mine if name in kept["unplaced"]})
            self._sent.update({name: kept["sent"][name] for name in mine if name in kept["sent"]})
            if kept["rejected"] is not None and kept["worker"] % self.info.peers == self.info.index:
                self.rejected = (self.rejected or 0) + kept["rejected"]
            # Version 1 had none. The records of a partition that has gone stay with its former worker.
            here = kept["worker"] % self.info.peers == self.info.index
            self._keep_unsent(
                one
                for one in kept.get("unsent", ())
                if one[0] in self._mine or (here and one[0] not in self._names)
            )
        self._covers = dict(self._at)

    def _look_for_gone(self, kept: dict[str, Any]) -> None:
        """Notes partitions that are not there any more, and were not read to their end.

        Raises:
            CheckpointError: If they had an end, which was not reached.
        """
        for partition in sorted(set(kept["mine"]) - set(kept["ended"]) - self._names):
            said = (
                f"source '{self._name}' has no partition '{partition}' any more, which was read up to offset "
                f"{kept['offsets'].get(partition)!r:.200} at the checkpoint"
            )
            if not self._source.waits:
                raise CheckpointError(f"{said}: bring it back, so that its rest is read")
            _log.warning("%s: nothing that came after that is read", said)

    def _cover(self) -> bool:
        """Calls readers with the last checkpoint's offsets; returns whether it covers all sent records."""
        assert self._recording is not None
        number = self._recording.covered
        if number == self._covered or self._threads is None:
            return False
        self._covered = number
        for partition, offset in self._covers.items():
            if (reader := self._threads.readers.get(partition)) is not None:
                reader.durable(offset)
            if self._durable is not None:
                self._durable(partition, offset)
        return self._covers == self._at

    def _found_retaining(self, retaining: _core.Retaining) -> None:
        self._retaining = retaining

    def holding(self) -> tuple[str, str]:
        """See `ExplainsTimes`."""
        kind = type(self._source).__name__
        what = f"It reads a {kind}, which has not ended."
        if callable(getattr(self._source, "close", None)):
            return what, f"Call close() on the {kind} when there is nothing more to come."
        return what, "It ends when the source does; one that goes on for ever has no last time."

    def _share_out(self, pieces: list[dict[str, Any]]) -> None:
        """Finds this worker's partitions.

        With as many workers as at the checkpoint, each keeps its partitions: `pieces` has this worker's
        state. With another number, `pieces` has the state of all, and partitions are assigned anew.
        """
        names = list(self._source.partitions())
        if len(set(names)) < len(names):
            raise GraphError(f"source '{self._name}' names a partition twice: {sorted(names)}")
        self._names = set(names)
        same = [kept for kept in pieces if kept["peers"] == self.info.peers]
        had = [name for kept in same for name in kept["mine"] if name in self._names]
        known = {name for kept in same for name in kept["names"]}
        added = sorted(self._names - known)
        self._mine = sorted([*had, *(name for n, name in enumerate(added) if self._reads(name, n))])
        unknown = sorted(set(self._offsets) - set(names))
        if unknown:
            raise GraphError(f"source '{self._name}' has no partition {unknown[0]!r} to resume")
        self._timing.begin(self._mine)
        for name in self._mine:
            self._take(name)

    def _take(self, partition: str) -> None:
        """Says that this worker reads a partition."""
        self._source.taken(partition)
        if self._recording is not None:
            self._source.recorded(partition, self._journal_of(partition))

    def _reads(self, partition: str, in_turn: int) -> bool:
        peers = self.info.peers
        worker = self._source.worker_of(partition, peers)
        if worker is None:
            # Each worker finds added partitions at moments of its own, so that their order is no agreement.
            worker = in_turn if self._source.discover is None else worker_of_key(partition, peers)
        return worker % peers == self.info.index

    def _run(self, output: OutputPort[Any]) -> None:
        try:
            self._step(output)
        except BaseException as error:
            for other in self._stopped():
                add_note(error, f"and when it was to end: {type(other).__name__}: {other}")
            raise

    def _step(self, output: OutputPort[Any]) -> None:
        if self._threads is None:
            self._shelf = _Shelf(self.info.activator.activate)
            self._left = set(self._mine) - self._over
            to_read = [partition for partition in self._mine if partition in self._left]
            logs = self._source.journal and not self._source.rewinds
            # Not a method: threads must not keep the operator alive, which ends them when it is freed.
            journal = partial(folder_of, self._location, self._identity) if logs and self._location else None
            self._threads = _Threads(self._source, to_read, self._offsets, self._shelf, journal)
            if self._capability is not None:
                self._threads.begin()
        if self._fails():
            self._fail()
        elif self._capability is not None and are_full(self._lineage):
            self.info.activator.activate_after(PAUSE)
        elif self._capability is not None:
            self._send(output)
            self._advance()
        self._acknowledge()

    def _fails(self) -> bool:
        """Whether a line that cannot be read is to end the dataflow."""
        return self._failing is not None

    def _fail(self) -> None:
        """Raises the error of a line that cannot be read, once complete times are written, or it takes long.

        Times of which more may have followed the line are not complete: nothing of them is written.
        """
        failing = self._failing
        assert failing is not None
        assert self._capability is not None
        frontier = self._timing.frontier(self._shelf.waiting())
        if frontier > self._capability.time:  # type: ignore[operator]
            self._capability.downgrade(frontier)
            if self._may_reject is not None:
                self._may_reject.downgrade(frontier)
        failing.turns -= 1
        if failing.turns > 0:
            self.info.activator.activate()
            return
        now = clock.monotonic()
        written = self._capability.time >= failing.until and not self._shown.less_than(failing.until)  # type: ignore[operator]
        if written or now >= failing.at_last:
            self._acknowledge()
            raise failing.error
        self.info.activator.activate_after(min(failing.at_last - now, self._timing.looks_again() or GENTLY))

    def _send(self, output: OutputPort[Any]) -> None:
        """Sends as much as a run may, of the waiting batches; asks for another run where more waits."""
        batches = records = times = 0
        self._adapt()
        limit = RECORDS if self._most is None else min(RECORDS, self._most)
        while not self._fails():
            if records >= limit or times >= TIMES or (batches == BATCHES and not self._unsent):
                self.info.activator.activate()
                break
            if self._unsent:
                partition, time, part = self._unsent.popleft()
                if self._most is not None and len(part) > (room := limit - records):
                    self._unsent.appendleft((partition, time, part[room:]))
                    part = part[:room]
                else:
                    self._least.popleft()
                self._send_part(output, partition, time, part)
                records += len(part)
                times += 1
            elif (item := self._shelf.take()) is not None:
                batches += 1
                self._receive(*item)
            else:
                break
        if records and self._recording is not None:
            self._before = records, self.info.activator._worked

    def _adapt(self) -> None:
        """Limits the records of a run, so that its work takes `SLOW` seconds at most.

        Sources give way to work, so the time between two runs is the time of the work. A checkpoint that
        holds sources waits for the work of the last run alone.
        """
        if self._before is None:
            return
        records, before = self._before
        self._before = None
        took = self.info.activator._worked - before
        if took > SLOW:
            self._most = max(1, int(records * SLOW / 2 / took))
        elif self._most is not None:
            self._most *= 2
            if self._most >= RECORDS:
                self._most = None

    def _keep_unsent(self, parts: Iterable[tuple[str, int, Any]]) -> None:
        """Adds records that are to be sent."""
        self._unsent += parts
        times = (time for _, time, _ in reversed(self._unsent))
        self._least = deque(accumulate(times, min))
        self._least.reverse()

    def _send_part(self, output: OutputPort[Any], partition: str, time: int, part: Any) -> None:
        """Sends records that have one time."""
        assert self._capability is not None
        with self._capability.delayed(time) as capability, output.session(capability) as session:
            try:
                if isinstance(part, list):
                    session.give_all(part)
                else:
                    session.give(part)
            except (TypeError, ValueError) as error:  # no batch of this stream
                add_note(error, f"in partition '{partition}', before offset {self._at[partition]}")
                raise

    def _receive(
        self,
        partition: str,
        batch: Any,
        offset: Any,
        watermark: int | None,
        rejected: Sequence[Rejected],
    ) -> None:
        """Takes a batch of a reader, or the end of a partition. Records are sent afterwards."""
        assert self._capability is not None
        if isinstance(batch, _Found):
            self._join(batch.names)
            return
        if rejected:
            assert self.rejected is not None
            self.rejected += len(rejected)
        if isinstance(batch, _End):
            if batch.error is not None:
                if not is_unreadable(batch.error):
                    raise batch.error
                until = self._timing.complete()
                self._failing = _Failing(batch.error, until, clock.monotonic() + GENTLY)
                self.info.activator.activate()
                return
            if self._rejects is not None and (lines := self._unplaced.pop(partition, []) + list(rejected)):
                sent = self._reject(lines, [self._timing.last_time(partition)] * len(lines))
                self._remember(partition, offset, sent)
            self._left.discard(partition)
            self._timing.ended(partition)
            return
        try:
            last = self._place(partition, batch, rejected)
            parts = list(self._timing.times(partition, batch))
        except Exception as error:
            add_note(error, f"in partition '{partition}', in the batch that ends at offset {offset}")
            raise
        self._keep_unsent((partition, time, part) for time, part in parts)
        if parts:
            latest = max(time for time, _ in parts)
            last = latest if last is None else max(last, latest)
        if watermark is not None:
            self._timing.set_watermark(partition, watermark)
        self._at[partition] = offset
        self._remember(partition, offset, last)

    def _remember(self, partition: str, offset: Any, last: int | None) -> None:
        """Keeps an offset until it is durable. `last` is the latest time of the records sent before it."""
        if self._recording is not None:
            return  # checkpoints have it
        assert self._capability is not None
        if last is None:
            last = self._capability.time  # type: ignore[assignment]  # one coordinate: checked by `read`
        last = max(last, self._sent.pop(partition, 0))  # type: ignore[type-var]
        if self._unplaced.get(partition):
            self._sent[partition] = last  # type: ignore[assignment]
        elif self._hears(partition):
            pending = self._pending.setdefault(partition, deque())
            if pending and pending[-1][1] == last:
                pending.pop()  # the later offset is durable when this one is
            pending.append((offset, last))  # type: ignore[arg-type]
            if len(pending) > OFFSETS:
                self._pending[partition] = _thinned(pending)

    def _place(self, partition: str, batch: Any, rejected: Sequence[Rejected]) -> int | None:
        """Sends lines that could not be read, with the times of the records behind them.

        Lines that no record of the batch follows wait for the next batch.

        Returns:
            The latest time of a line that was sent; None if none was.
        """
        if self._rejects is None:
            return None
        waiting = self._unplaced.pop(partition, [])
        lines = [*waiting, *rejected]
        if not lines:
            return None
        places = [0] * len(waiting) + [line.records for line in rejected]
        times = self._timing.times_before(partition, batch, places)
        sent = self._reject(lines, times)
        if left := [line for line, time in zip(lines, times, strict=True) if time is None]:
            self._unplaced[partition] = left
        return sent

    def _reject(self, lines: Sequence[Rejected], times: Sequence[int | None]) -> int | None:
        """Sends lines that could not be read, each at its time, if it has one; returns the latest."""
        assert self._rejects is not None
        assert self._may_reject is not None
        by_time: dict[int, list[Any]] = {}
        for line, time in zip(lines, times, strict=True):
            if time is not None:
                by_time.setdefault(time, []).append(line.shown())
        for time, some in sorted(by_time.items()):
            with self._may_reject.delayed(time) as capability, self._rejects.session(capability) as session:
                session.give_all(some)
        return max(by_time, default=None)

    def _hears(self, partition: str) -> bool:
        """Returns whether durable offsets of a partition are reported to a reader or a function."""
        assert self._threads is not None
        reader = self._threads.readers.get(partition)
        if self._durable is None and (reader is None or not reader.acknowledges):
            return False
        if not self._acknowledges:
            raise GraphError(
                f"the readers of {type(self._source).__name__} have a durable(), which is not called, as "
                "the source says acknowledges = False: set it to True"
            )
        if self._refuses is None:
            assert self._retaining is not None
            found = [] if self._past_state else self._retaining.operators()
            self._refuses = bool(found)
            if found:
                self._warn(*found[0])
        return not self._refuses

    def _warn(self, operator: str, made: tuple[str, int] | None) -> None:
        where = "" if made is None else f", made at {made[0]}:{made[1]},"
        warnings.warn(
            f"source '{self._name}' acknowledges no offset: operator '{operator}'{where} keeps state in "
            "memory that any record may have changed, and a run that begins behind the record would miss it. "
            "Give keyed state a ttl=, or a state=KeyedState() and take snapshots of it: then offsets follow "
            "these. Or pass acknowledge_past_state=True to read(), if the program restores the state itself, "
            "or can do without it",
            NotAcknowledged,
            stacklevel=2,
        )

    def _join(self, names: list[str]) -> None:
        """Reads partitions that were added."""
        added = sorted(set(names) - self._names)
        self._names.update(added)
        for partition in added:
            if self._reads(partition, 0):
                self._left.add(partition)
                self._mine.append(partition)
                self._timing.begin([partition])
                self._take(partition)
                assert self._threads is not None
                self._threads.start([partition])

    def _advance(self) -> None:
        """Moves the capability on, and sees that the operator runs when the clock does it next."""
        assert self._capability is not None
        if not self._left and not self._unsent and self._source.discover is None:
            self._capability.drop()
            self._capability = None
            if self._may_reject is not None:
                self._may_reject.drop()
                self._may_reject = None
            return
        if not self._left and (others := list(self._beats.frontier)):
            self._timing.follow(others[0])  # type: ignore[arg-type]
        frontier = self._timing.frontier(self._shelf.waiting())
        if self._unsent:
            frontier = min(frontier, self._least[0])
        if frontier > self._capability.time:  # type: ignore[operator]
            self._capability.downgrade(frontier)
            if self._may_reject is not None:
                self._may_reject.downgrade(frontier)
        if self._beat is not None:
            if self._left or not self._names:
                if frontier > self._beat.time:  # type: ignore[operator]
                    self._beat.downgrade(frontier)
            else:
                self._beat.drop()
                self._beat = None
        after = self._timing.looks_again()
        if after is not None:
            due = clock.monotonic() + after
            if self._tick is None or self._tick <= clock.monotonic():
                self._tick = due
                self.info.activator.activate_after(after)

    def _acknowledge(self) -> None:
        """Calls readers, and the given function, with the durable offsets."""
        assert self._threads is not None
        if self._recording is not None:
            covers = self._cover()
            if self._capability is None and not self._ended:
                if not self._acknowledges or covers:
                    self._unacknowledged.drop()
                    self.stop()
                elif not self._asked:
                    self._asked = True
                    self._recording.ask()
            return
        for partition, pending in self._pending.items():
            durable: Any = None
            found = False
            while pending and not self._reaches(pending[0][1]):
                durable, _ = pending.popleft()
                found = True
            if not found:
                continue
            if (reader := self._threads.readers.get(partition)) is not None:
                reader.durable(durable)
            if self._durable is not None:
                self._durable(partition, durable)
        if self._capability is None and not any(self._pending.values()):
            self._unacknowledged.drop()
            self.stop()

    def _reaches(self, time: int) -> bool:
        """Whether anything at a time, or before it, is downstream or may be sent."""
        if self._capability is not None and self._capability.time <= time:  # type: ignore[operator]
            return True
        return self.probe.less_equal(time)

    def stop(self) -> None:
        """Closes the readers and joins the threads.

        Raises:
            BaseException: The first that a reader raised; all are closed.
        """
        errors = self._stopped()
        if errors:
            raise errors[0]

    def _stopped(self) -> list[BaseException]:
        threads, first = self._threads, not self._ended
        self._ended = True
        if threads is not None:
            return threads.stop()
        errors: list[BaseException] = []
        for partition in self._mine if first else []:
            try:
                self._source.unread(partition)
            except BaseException as error:
                errors.append(error)
        return errors

    def __del__(self) -> None:
        with raised_later():
            self.stop()
            for partition in self._names.difference(self._mine):
                self._source.unread(partition)


def _described(source: str, partitions: list[str]) -> str:
    """The partitions of a source, as workers compare them: each is dealt out by its place among them."""
    some = ", ".join(partitions[:_SHOWN]) + (", ..." if len(partitions) > _SHOWN else "")
    digest = sha256("\0".join(partitions).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{len(partitions)} partitions of source '{source}': {some} (sha256 {digest}...)"


def _thinned(pending: deque[tuple[Any, int]]) -> deque[tuple[Any, int]]:
    """Returns every second offset, each with the later of the two times."""
    found: deque[tuple[Any, int]] = deque()
    held = 0
    for number, (offset, time) in enumerate(pending, 1):
        held = max(held, time)
        if number % 2 == 0 or number == len(pending):
            found.append((offset, held))
            held = 0
    return found
