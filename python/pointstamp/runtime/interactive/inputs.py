"""An input of a session's dataflow, as a notebook or the prompt holds it.

Records go to the workers in turn, without an answer; all of a strict input go to one worker, which counts its
records. Changes with their own times go in portions, each to one worker, which answers the time that it has
reached; then the others follow.
"""

from __future__ import annotations

from itertools import groupby, islice
from typing import TYPE_CHECKING, Any

from pointstamp import _core
from pointstamp.errors import PointstampError, TimeError
from pointstamp.runtime.interactive.outputs import watched_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from concurrent.futures import Future
    from types import TracebackType

    from pointstamp.checkpoint import Position
    from pointstamp.runtime.interactive.flow import Flow
    from pointstamp.runtime.interactive.outputs import LiveOutput
    from pointstamp.types import Time

__all__ = ["LiveInput"]

PORTION = 4096
"""Changes that are played at once by one worker."""

DIFFS = {"insert_many": 1, "remove_many": -1, "update_many": None}
"""The diff of each record that a method takes; None where the records are pairs with their diffs."""


class LiveInput:
    """An input of a session's dataflow. Records go to the workers in turn; times are the same on all.

    The records of a strict input of a collection all go to worker 0, which counts them, because inserted
    records may be removed. An input has the methods of its object on the workers: an `InputHandle`, an
    `ArrowInput`, a `CollectionInput` or a `ColumnInput`. An error of a worker is raised by the next call of
    the session, with a note of other errors meanwhile.

    Attributes:
        name: Its name.
        kind: Its class on the workers, such as ``"InputHandle"``.
        time: The time of records that are sent now.

    Examples:
        >>> import pointstamp as ps
        >>> with ps.Interactive() as session:
        ...     flow = session.dataflow(lambda scope: scope.new_input())
        ...     flow[0].send("tick")
        ...     flow[0].advance_to(1)
        ...     flow[0].send("tock")
        ...     flow[0].close()
        ...     flow[1].read()
        [(0, ['tick']), (1, ['tock'])]
    """

    def __init__(self, flow: Flow, name: str, kind: str, dims: int, strict: bool) -> None:
        self.name = name
        self.kind = kind
        self.time: Time = 0 if dims == 1 else (0,) * dims
        self._closed = False
        self._flow = flow
        # Of several workers, each would stand elsewhere at a checkpoint.
        self._workers = 1 if strict or flow.cluster.recorded else flow.cluster.workers
        self._turn = -1
        # A portion of `play` whose answer was not waited for, because the wait was interrupted.
        self._played: tuple[int, Future[list[Any]]] | None = None
        flow.times[name] = self.time

    @property
    def position(self) -> Position:
        """The position of the input, as its time and the number of records that were sent at that time.

        After a session was opened again, it is the position in the checkpoint: send the rest.

        Raises:
            PointstampError: If the session makes no checkpoints.
            BaseException: An exception of the dataflow, or of an earlier command.

        Examples:
            >>> import tempfile
            >>> import pointstamp as ps
            >>> with ps.Interactive.open(tempfile.mkdtemp()) as session:
            ...     flow = session.dataflow(lambda scope: scope.new_input(), name="words")
            ...     flow[0].advance_to(3)
            ...     flow[0].send("tick")
            ...     flow[0].position
            Position(time=3, sent=1)
        """
        self._catch_up()
        position: Position = self._wait(self._flow.ask("position", self.name, worker=0), "the position")
        return position

    def _resume(self, time: Time, closed: bool) -> None:
        """Continues at the position of worker 0; the others follow."""
        if closed:
            del self._flow.times[self.name]
            self._closed = True
        else:
            self._stand(time)

    @property
    def closed(self) -> bool:
        """Whether nothing can be sent any more, because it was closed or its dataflow has ended."""
        return self._closed or self._flow.over

    def _check(self, method: str, *kinds: str) -> None:
        """Checks that there is such a method, and that the input is open."""
        if self.kind not in kinds:
            other = "insert" if "Collection" in self.kind or "Column" in self.kind else "send"
            kind = f"{'an' if self.kind[0] in 'AI' else 'a'} {self.kind}"
            raise TypeError(f"input {self.name!r} is {kind}: use {other}(), not {method}()")
        self._check_open()

    def _check_open(self) -> None:
        if self._closed:
            raise PointstampError(f"input {self.name!r} is closed: nothing can be sent any more")
        self._flow.check()

    def _next(self) -> int:
        """Returns the worker whose turn it is."""
        self._turn = (self._turn + 1) % self._workers
        return self._turn

    def _tell(self, worker: int | None, method: str, *arguments: Any) -> None:
        """Sends a command to one worker or all."""
        self._catch_up()
        self._flow.post(worker, self.name, method, arguments)
        if worker is not None:
            self._flow.unfinished.add(self.name)

    def send(self, record: Any) -> None:
        """Sends a record, or for columns the rows of a batch, table or data frame, at the current time.

        Examples:
            >>> import pointstamp as ps
            >>> with ps.Interactive() as session:
            ...     flow = session.dataflow(lambda scope: scope.new_input())
            ...     flow[0].send("tick")
            ...     flow[0].close()
            ...     flow[1].read()
            [(0, ['tick'])]
        """
        self._check("send", "InputHandle", "ArrowInput")
        _core.check_record("send", "send_batch", record)
        self._tell(self._next(), "send", record)

    def send_batch(self, records: Iterable[Any]) -> None:
        """Sends each record of an iterable, so many to each worker.

        Examples:
            >>> import pointstamp as ps
            >>> with ps.Interactive() as session:
            ...     flow = session.dataflow(lambda scope: scope.new_input())
            ...     flow[0].send_batch(range(3))
            ...     flow[0].close()
            ...     flow[1].read()
            [(0, [0, 1, 2])]
        """
        self._check("send_batch", "InputHandle")
        self._spread("send_batch", records)

    def insert(self, record: Any) -> None:
        """Adds a record to a collection, or to one of columns every row of the data.

        Examples:
            >>> import pointstamp as ps
            >>> with ps.Interactive() as session:
            ...     flow = session.dataflow(lambda scope: scope.new_collection())
            ...     flow[0].insert("tick")
            ...     flow[0].close()
            ...     flow[1].read()
            [(0, [('tick', 1)])]
        """
        self._check("insert", "CollectionInput", "ColumnInput")
        _core.check_record("insert", "insert_many", record)
        self._tell(self._next(), "insert", record)

    def insert_many(self, records: Iterable[Any]) -> None:
        """Adds each record of an iterable to a collection; after an error, none of them.

        Examples:
            >>> import pointstamp as ps
            >>> with ps.Interactive() as session:
            ...     flow = session.dataflow(lambda scope: scope.new_collection())
            ...     flow[0].insert_many(["tick", "tock", "tick"])
            ...     flow[0].close()
            ...     flow[1].read()
            [(0, [('tick', 2), ('tock', 1)])]
        """
        self._check("insert_many", "CollectionInput")
        self._spread("insert_many", records)

    def remove(self, record: Any) -> None:
        """Takes a record away from a collection, or from one of columns every row of the data.

        Examples:
            >>> import pointstamp as ps
            >>> with ps.Interactive() as session:
            ...     flow = session.dataflow(lambda scope: scope.new_collection())
            ...     flow[0].insert("tick")
            ...     flow[0].advance_to(1)
            ...     flow[0].remove("tick")
            ...     flow[0].close()
            ...     flow[1].read()
            [(0, [('tick', 1)]), (1, [('tick', -1)])]
        """
        self._check("remove", "CollectionInput", "ColumnInput")
        _core.check_record("remove", "remove_many", record)
        self._tell(self._next(), "remove", record)

    def remove_many(self, records: Iterable[Any]) -> None:
        """Takes each record of an iterable away from a collection; after an error, none of them.

        Examples:
            >>> import pointstamp as ps
            >>> with ps.Interactive() as session:
            ...     flow = session.dataflow(lambda scope: scope.new_collection())
            ...     flow[0].insert_many(["tick", "tock"])
            ...     flow[0].remove_many(["tock"])
            ...     flow[0].close()
            ...     flow[1].read()
            [(0, [('tick', 1)])]
        """
        self._check("remove_many", "CollectionInput")
        self._spread("remove_many", records)

    def update(self, record: Any, diff: int) -> None:
        """Adds so many of a record to a collection, or takes them away.

        Examples:
            >>> import pointstamp as ps
            >>> with ps.Interactive() as session:
            ...     flow = session.dataflow(lambda scope: scope.new_collection())
            ...     flow[0].update("tick", 3)
            ...     flow[0].close()
            ...     flow[1].read()
            [(0, [('tick', 3)])]
        """
        self._check("update", "CollectionInput", "ColumnInput")
        self._tell(self._next(), "update", record, diff)

    def update_many(self, updates: Iterable[tuple[Any, int]]) -> None:
        """Makes every change of an iterable of ``(record, diff)`` in a collection; after an error, none.

        Examples:
            >>> import pointstamp as ps
            >>> with ps.Interactive() as session:
            ...     flow = session.dataflow(lambda scope: scope.new_collection())
            ...     flow[0].update_many([("tick", 3), ("tock", 1)])
            ...     flow[0].close()
            ...     flow[1].read()
            [(0, [('tick', 3), ('tock', 1)])]
        """
        self._check("update_many", "CollectionInput")
        self._spread("update_many", updates)

    def _spread(self, method: str, records: Iterable[Any]) -> None:
        self._refuse_frames(method, records)
        _core.check_records(method, records)
        given = list(records)
        if self._workers > 1 and method in DIFFS:  # one worker refuses the call as a whole itself
            _core.check_updates(given, DIFFS[method])
        share = max(1, -(-len(given) // self._workers))
        for first in range(0, len(given), share):
            self._tell(self._next(), method, given[first : first + share])

    def _refuse_frames(self, method: str, records: Iterable[Any]) -> None:
        if hasattr(records, "__dataframe__") or hasattr(records, "__arrow_c_stream__"):
            raise TypeError(
                f"{method}() of input {self.name!r} takes records, and a {type(records).__name__} gives the "
                "names of its columns: make the input with a schema and use insert(), or give its rows"
            )

    def play(
        self, changes: Any, *, time: str = "time", diff: str | None = "diff", probe: LiveOutput | None = None
    ) -> None:
        """Makes changes that bring their times along, in the order of times, and waits for them to be made.

        Plays as `CollectionInput.play` does with triples ``(record, time, diff)``, or `ColumnInput.play` with
        columns. A worker makes at most 4,096 changes, or a batch of columns, in one step.

        Args:
            changes: The changes.
            time: The column of times, of columns.
            diff: The column of diffs, of columns; None where each row is inserted once.
            probe: The output of this dataflow that each time has to pass before the next is fed.

        Raises:
            TypeError: If a change is none, or a collection cannot keep its record; and if the probe is no
                output of a session.
            TimeError: If a time is not at or after the one before it and `self.time`, or the probe's times
                have another number of coordinates.
            ValueError: If a diff is 0, or the probe is of another dataflow.
            PointstampError: If the input is closed. After each of these, the changes before are made.

        Examples:
            >>> import pointstamp as ps
            >>> with ps.Interactive() as session:
            ...     flow = session.dataflow(lambda scope: scope.new_collection())
            ...     flow[0].play([("tick", 0, 1), ("tock", 2, 1)])
            ...     flow[0].close()
            ...     flow[1].read()
            [(0, [('tick', 1)]), (2, [('tock', 1)])]
        """
        self._check("play", "CollectionInput", "ColumnInput")
        watched = None if probe is None else watched_in(self._flow, probe)
        columns: dict[str, Any] = {}
        if self.kind == "ColumnInput":
            columns = {"time": time, "diff": diff}
            portions: Iterator[Any] = batches_of(changes)
        elif (time, diff) != ("time", "diff"):
            raise TypeError(
                f"input {self.name!r} has no columns: its changes are triples (record, time, diff)"
            )
        else:
            self._refuse_frames("play", changes)
            portions = portions_of(changes)
        self._catch_up()
        for portion in portions:
            if watched is None:
                self._play(portion, columns)
                continue
            for at, run in rows_by_time(portion, time) if columns else changes_by_time(portion):
                if at != self.time and self._is_ahead(at):  # its worker checks other times
                    self.advance_to(at)
                    self._wait(self._flow.ask("pass", watched, at, worker=0), f"the probe {watched!r}")
                self._play(run, columns)

    def _play(self, changes: Any, columns: dict[str, Any]) -> None:
        worker = self._next()
        playing = self._flow.ask("play", self.name, changes, columns, worker=worker)
        self._played = (worker, playing)
        self._catch_up()

    def _catch_up(self) -> None:
        """Follows the worker that plays a portion, when it has come to the end of that."""
        if self._played is None:
            return
        worker, playing = self._played
        failure = None
        try:
            time = self._wait(playing, "play")
        except Exception as error:
            failure = error
            time = self._wait(self._flow.ask("time", self.name, worker=worker), "play")
        self._played = None
        if time != self.time:
            self._stand(time)
        if failure is not None:
            raise failure

    def _wait(self, future: Future[list[Any]], what: str) -> Any:
        return self._flow.waiting(f"{what} of input {self.name!r}", None)(future)[0]

    def advance_to(self, time: Time) -> None:
        """Moves to a later time on every worker: nothing will be sent before it any more.

        Raises:
            TimeError: Unless `time` is at or after `self.time`.
            PointstampError: If the input is closed.

        Examples:
            >>> import pointstamp as ps
            >>> with ps.Interactive() as session:
            ...     flow = session.dataflow(lambda scope: scope.new_input())
            ...     flow[0].send("tick")
            ...     flow[0].advance_to(5)
            ...     flow[1].read(), flow[0].time
            ([(0, ['tick'])], 5)
        """
        self._check_open()
        self._catch_up()
        if not is_time(time):
            raise TimeError(f"a time is an int from 0 to 2**64 - 1, or a tuple of such, not {time!r}")
        if not self._is_ahead(time):
            raise TimeError(f"input {self.name!r} stands at {self.time!r} and cannot move to {time!r}")
        self._stand(time)

    def _is_ahead(self, time: Any) -> bool:
        """Whether something is a time at or after the current one."""
        if not is_time(time):
            return False
        now, then = coordinates(self.time), coordinates(time)
        return len(now) == len(then) and all(one <= other for one, other in zip(now, then, strict=True))

    def _stand(self, time: Time) -> None:
        self._flow.post(None, self.name, "advance_to", (time,))
        if time != self.time:
            self._flow.unfinished.discard(self.name)
        self.time = self._flow.times[self.name] = time

    def flush(self) -> None:
        """Sends the waiting records, on every worker.

        Examples:
            >>> import pointstamp as ps
            >>> with ps.Interactive() as session:
            ...     flow = session.dataflow(lambda scope: scope.new_input())
            ...     flow[0].send("tick")
            ...     flow[0].flush()
            ...     flow[1].done()
            False
        """
        self._check_open()
        self._tell(None, "flush")

    def close(self) -> None:
        """Ends the input on every worker. Closing it twice does nothing.

        Examples:
            >>> import pointstamp as ps
            >>> with ps.Interactive() as session:
            ...     flow = session.dataflow(lambda scope: scope.new_input())
            ...     flow[0].close()
            ...     flow[0].closed
            True
        """
        if not self.closed:
            self._tell(None, "close")
            self._closed = True
            self._flow.unfinished.discard(self.name)
            del self._flow.times[self.name]

    def __enter__(self) -> LiveInput:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<input {self.name!r} {'closed' if self.closed else f'at {self.time!r}'}>"


def coordinates(time: Any) -> tuple[Any, ...]:
    """A time as its coordinates."""
    return time if isinstance(time, tuple) else (time,)


def is_time(time: Any) -> bool:
    """Whether something is a time, of any number of coordinates."""
    return all(isinstance(each, int) and 0 <= each < 2**64 for each in coordinates(time))


def portions_of(changes: Iterable[Any]) -> Iterator[list[Any]]:
    """Yields lists of so many changes; where the iterable fails, the earlier ones are the last portion."""
    waiting, failure = iter(changes), None
    while failure is None:
        portion: list[Any] = []
        try:
            portion.extend(islice(waiting, PORTION))  # it keeps the items before an error
        except BaseException as error:
            failure = error
        if portion:
            yield portion
        elif failure is None:
            return
    raise failure


def changes_by_time(portion: list[Any]) -> Iterator[tuple[Any, list[Any]]]:
    """Yields the changes of a portion, one time after the other; other items have the time None."""

    def time_of(change: Any) -> Any:
        return change[1] if isinstance(change, tuple | list) and len(change) == 3 else None

    return ((time, list(run)) for time, run in groupby(portion, time_of))


def batches_of(data: Any) -> Iterator[Any]:
    """Yields data in columns as record batches; other data stays as it is, for the worker to refuse."""
    import pyarrow as pa

    if hasattr(data, "__arrow_c_stream__"):
        yield from pa.RecordBatchReader.from_stream(data)
    elif hasattr(data, "__arrow_c_array__"):
        yield pa.record_batch(data)
    else:
        yield data


def rows_by_time(batch: Any, column: str) -> Iterator[tuple[Any, Any]]:
    """Yields the rows of a batch, one time after the other; without the column, at the time None."""
    if column not in getattr(getattr(batch, "schema", None), "names", ()):
        yield None, batch
        return
    first = 0
    for time, run in groupby(batch.column(column).to_pylist()):
        end = first + sum(1 for _ in run)
        yield tuple(time) if isinstance(time, list) else time, batch.take(list(range(first, end)))
        first = end
