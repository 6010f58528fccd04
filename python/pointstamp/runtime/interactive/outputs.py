"""An output of a session's dataflow, as a notebook or the prompt holds it."""

from __future__ import annotations

import asyncio
from collections import deque
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pointstamp import _core
from pointstamp._validation import warn_usage
from pointstamp.order import Antichain
from pointstamp.runtime.interactive.commands import Taken

if TYPE_CHECKING:
    from pointstamp.runtime.interactive.flow import Flow, Waiting
    from pointstamp.types import Time

__all__ = ["LiveOutput", "watched_in"]


class LiveOutput:
    """An output of a session's dataflow: a stream, a collection, or a probe.

    Whichever it is, it answers as a `ProbeHandle` does which times may still appear there. The answer comes
    from one worker, behind all that was sent before. A time that is over for it is over for all.

    Attributes:
        name: Its name.
        kind: Its class on the workers, such as ``"Stream"``.

    Examples:
        >>> import pointstamp as ps
        >>> with ps.Interactive() as session:
        ...     flow = session.dataflow(lambda scope: scope.new_input())
        ...     words, stream = flow[0], flow[1]
        ...     words.send("tick")
        ...     words.close()
        ...     stream.read(), stream.done(), stream.kind
        ([(0, ['tick'])], True, 'Stream')
    """

    def __init__(self, flow: Flow, name: str, kind: str) -> None:
        self.name = name
        self.kind = kind
        self._flow = flow
        # The answer to a call that ended before it was returned: the next call returns it.
        self._left: deque[Future[Any]] = deque()

    @property
    def closed(self) -> bool:
        """Whether nothing can be read any more, since its dataflow has ended."""
        return self._flow.over

    @property
    def frontier(self) -> Antichain:
        """The least times that may still appear there; a copy."""
        return Antichain(self._answer("frontier", self.name))

    def less_than(self, time: Time) -> bool:
        """Whether a time strictly less than `time` may still appear there.

        Raises:
            TimeError: If it is no time of the place that is watched.
            BaseException: An exception of the dataflow, or of an earlier command.

        Examples:
            >>> import pointstamp as ps
            >>> with ps.Interactive() as session:
            ...     flow = session.dataflow(lambda scope: scope.new_input())
            ...     flow[0].advance_to(3)
            ...     flow.settle()
            ...     flow[1].less_than(3), flow[1].less_than(4)
            (False, True)
        """
        return bool(self._answer("probe", self.name, "less_than", (time,)))

    def less_equal(self, time: Time) -> bool:
        """Whether `time`, or one less than it, may still appear there.

        Raises:
            TimeError: If it is no time of the place that is watched.
            BaseException: An exception of the dataflow, or of an earlier command.

        Examples:
            >>> import pointstamp as ps
            >>> with ps.Interactive() as session:
            ...     flow = session.dataflow(lambda scope: scope.new_input())
            ...     flow[0].advance_to(3)
            ...     flow.settle()
            ...     flow[1].less_equal(2), flow[1].less_equal(3)
            (False, True)
        """
        return bool(self._answer("probe", self.name, "less_equal", (time,)))

    def done(self) -> bool:
        """Whether nothing appears there any more.

        Examples:
            >>> import pointstamp as ps
            >>> with ps.Interactive() as session:
            ...     flow = session.dataflow(lambda scope: scope.new_input())
            ...     flow[0].close()
            ...     flow.settle()
            ...     flow[1].done()
            True
        """
        return bool(self._answer("probe", self.name, "done", ()))

    def _answer(self, what: str, *arguments: Any) -> Any:
        """Returns the answer of worker 0."""
        return self._waiting(None)(self._flow.ask(what, *arguments, worker=0))[0]

    def _waiting(self, timeout: float | None) -> Waiting:
        what = f"output {self.name!r} of dataflow {self._flow.name!r}"
        return self._flow.waiting(what, timeout, [self.name])

    def read(self, timeout: float | None = None) -> list[tuple[Time, Any]]:
        """Returns the unread records of complete times, once all times are that the inputs have left behind.

        Args:
            timeout: The maximum number of seconds; None without a limit.

        Returns:
            Times in order, each with its records, sorted where they can be; of a collection its changes
            ``(record, diff)``; of columns a list of record batches.

        Warns:
            UsageWarning: If there are no records, and an input has not advanced past the time of sent ones.

        Raises:
            StallError: When the time is over; the message has the reason. Nothing is lost.
            TypeError: If a record cannot be sent from its process. It is lost; the others come with the next
                call.
            BaseException: An exception of the dataflow, or of an earlier command. Nothing is lost.

        Examples:
            >>> import pointstamp as ps
            >>> with ps.Interactive() as session:
            ...     flow = session.dataflow(lambda scope: scope.new_input())
            ...     flow[0].send_batch(["tock", "tick"])
            ...     flow[0].advance_to(1)
            ...     flow[1].read()
            ...     flow[1].read()
            [(0, ['tick', 'tock'])]
            []
        """
        read = self._read(True, timeout)
        if not read and (unfinished := sorted(self._flow.unfinished)):
            name = unfinished[0]
            warn_usage(
                f"read() of output {self.name!r} returns nothing: input {name!r} was given something at time "
                f"{self._flow.times[name]!r}, where it still stands, and only times that all inputs left "
                "are complete. Call advance_to() with a later time, or close(), on the input before read()"
            )
        return read

    def take(self) -> list[tuple[Time, Any]]:
        """Returns the unread records of the times that are complete now, without waiting.

        Examples:
            >>> import pointstamp as ps
            >>> with ps.Interactive() as session:
            ...     flow = session.dataflow(lambda scope: scope.new_input())
            ...     flow[0].send("tick")
            ...     flow[0].advance_to(1)
            ...     flow.settle()
            ...     flow[1].take()
            [(0, ['tick'])]
        """
        return self._read(False, None)

    async def next(self) -> list[tuple[Time, Any]]:
        """Reads as `read`, with `await`. The next call returns the rest of a cancelled one.

        Examples:
            >>> import asyncio
            >>> import pointstamp as ps
            >>> async def first(flow):
            ...     flow[0].send("tick")
            ...     flow[0].advance_to(1)
            ...     return await flow[1].next()
            >>> with ps.Interactive() as session:
            ...     asyncio.run(first(session.dataflow(lambda scope: scope.new_input())))
            [(0, ['tick'])]
        """
        with self._flow.settling():
            await asyncio.wrap_future(self._flow.ask("settle", self._kept()))
        answer = self._flow.ask("frontier", self.name, worker=0)
        frontier = await asyncio.shield(asyncio.wrap_future(answer))
        asked: list[Future[Any]] = []
        try:
            self._ask(frontier[0], asked)
            taken = [await asyncio.shield(asyncio.wrap_future(future)) for future in asked]
            return self._handed([part for all_of_one in taken for part in all_of_one], asked)
        except BaseException:
            self._leave(asked)
            raise

    def _read(self, wait: bool, timeout: float | None) -> list[tuple[Time, Any]]:
        kept, wait_for = self._kept(), self._waiting(timeout)
        if wait:
            with self._flow.settling():  # raises earlier errors before anything is taken
                wait_for(self._flow.ask("settle", kept))
        frontier = wait_for(self._flow.ask("frontier", self.name, worker=0))[0]
        asked: list[Future[Any]] = []
        try:
            self._ask(frontier, asked)
            taken = [wait_for(future) for future in asked]
            return self._handed([part for all_of_one in taken for part in all_of_one], asked)
        except BaseException:
            self._leave(asked)
            raise

    def _ask(self, frontier: list[Time], asked: list[Future[Any]]) -> None:
        """Asks all workers for the records before a frontier, after requests that were not taken.

        One worker has seen the frontier, so that nothing before it is in flight to any: all return the same
        times, each of which is complete.
        """
        asked.append(self._flow.ask("read", self.name, frontier))  # may fail, before anything is taken up
        while self._left:
            asked.append(self._left.popleft())

    def _leave(self, asked: list[Future[Any]]) -> None:
        """Keeps requested records that are not returned, for the next call."""
        failed = (future.done() and (future.cancelled() or future.exception()) for future in asked)
        self._left.extend(future for future, has in zip(asked, failed, strict=True) if not has)

    def _handed(self, taken: list[Taken], asked: list[Future[Any]]) -> list[tuple[Time, Any]]:
        """Returns the records of all workers; if some of them were refused, the rest is left in `asked`."""
        refused = next((part.refused for part in taken if part.refused is not None), None)
        if refused is None:
            return self._joined([part.kept for part in taken])
        rest: Future[list[Taken]] = Future()
        rest.set_result([Taken(part.kept) for part in taken])
        asked[:] = [rest]
        raise refused

    def _kept(self) -> str:
        if self.kind == "ProbeHandle":
            raise TypeError(
                f"output {self.name!r} is a probe, which keeps no records: ask less_than(), or return the "
                "stream itself"
            )
        return self.name

    def _joined(self, parts: list[list[tuple[Time, Any]]]) -> list[tuple[Time, Any]]:
        """Returns the records of all workers, by time."""
        by_time: dict[Time, list[Any]] = {}
        for time, what in (pair for part in parts for pair in part):
            by_time.setdefault(time, []).append(what)
        if self.kind == "Collection":
            by_time = {time: _summed(changes) for time, changes in by_time.items()}
        if "Arrow" not in self.kind and "Column" not in self.kind:
            by_time = {time: _sorted(records) for time, records in by_time.items()}
        return [(time, by_time[time]) for time in sorted(by_time) if by_time[time]]

    def __repr__(self) -> str:
        return f"<output {self.name!r}: {self.kind}{' (closed)' if self.closed else ''}>"


def _summed(changes: list[tuple[Any, int]]) -> list[tuple[Any, int]]:
    sums: dict[Any, int] = {}
    for record, diff in _core.pairs_with_one_nan(changes):
        sums[record] = sums.get(record, 0) + diff
    return [(record, diff) for record, diff in sums.items() if diff != 0]


def _sorted(records: list[Any]) -> list[Any]:
    # Records without an order stay in the order of arrival. They signal it in their own way: comparing arrays
    # raises ValueError.
    with suppress(Exception):
        return sorted(records)
    return records


def watched_in(flow: Flow, output: object) -> str:
    """The name of an output that an input of the same dataflow is to watch.

    Raises:
        TypeError: If it is no output of a session's dataflow.
        ValueError: If it is one of another dataflow.
    """
    if not isinstance(output, LiveOutput):
        raise TypeError(f"the probe is an output of dataflow {flow.name!r}, not {output!r}")
    if output._flow is not flow:
        raise ValueError(f"{output!r} is of another dataflow, and the input of dataflow {flow.name!r}")
    return output.name
