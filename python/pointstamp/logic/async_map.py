"""`Stream.async_map`: calls that wait, many of them at a time.

Owns the operator. Coroutines run on the worker's event loop (`eventloop`), in a thread of its own; the worker
continues with the dataflow, and is woken when calls are done. A record's time stays open during its call, by
one capability for each time with calls.

At most `capacity` calls are in flight. As many records again are read ahead, so that a call that ends is
followed by the next without the worker. Beyond that the operator leaves its input alone, and holds the
sources of the computation back until half of its records are done: everything that feeds it waits, including
programs that send with an `InputHandle`. Where the dataflow ends early, calls in flight are cancelled; a call
that ignores cancellation, or its time limit, is abandoned. `SystemExit` and `KeyboardInterrupt` of a call are
raised on the worker, also out of a task that the call has made.

Cost: `capacity` tasks take records in turn, so that no call makes a task. The worker is woken when the loop
has processed everything that was ready, so that calls that end together are passed on together, and the two
threads do not need the interpreter at the same time.
"""

from __future__ import annotations

import inspect
import threading
import time
from collections import deque
from contextvars import Context, copy_context
from functools import partial
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from pointstamp._core import PactKind
from pointstamp._validation import count_of
from pointstamp.logic.eventloop import EventLoop, Seat
from pointstamp.logic.planned import PlannedOperator
from pointstamp.observability.held_times import register_explanation
from pointstamp.runtime.threads import raised_later

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pointstamp._core import Capability, CapabilityRef, FrontieredInput, OutputPort, Sources
    from pointstamp.logic.declared_state import Division, Restored
    from pointstamp.lowering.scope import BuildingScope
    from pointstamp.plan.node import Output

__all__ = ["Terms", "async_map"]


class Terms:
    """The settings of calls, as `Stream.async_map` was given them.

    Raises:
        TypeError: For a number of things that is not whole.
        ValueError: For a number that makes no sense.
    """

    __slots__ = ("backoff", "batch", "capacity", "linger", "ordered", "retry", "timeout")

    def __init__(
        self,
        *,
        ordered: bool,
        capacity: int,
        timeout: float | None,
        retry: int,
        backoff: float,
        batch: int | None,
        linger: float,
    ) -> None:
        capacity = count_of("capacity is a number of calls", capacity)
        retry = count_of("retry is a number of calls", retry, least=0)
        if batch is not None:
            batch = count_of("batch is a number of records", batch)
        if timeout is not None and not timeout > 0:
            raise ValueError(f"timeout is a number of seconds, more than 0, not {timeout}")
        for name, seconds in (("backoff", backoff), ("linger", linger)):
            if not 0 <= seconds <= threading.TIMEOUT_MAX:
                raise ValueError(f"{name} is a number of seconds, at least 0, not {seconds}")
        self.ordered = ordered
        self.capacity = capacity
        self.timeout = timeout
        self.retry = retry
        self.backoff = backoff
        self.batch = batch
        self.linger = linger


class _Time:
    """A time that has calls: it is open as long as there are any."""

    __slots__ = ("calls", "letters", "results")

    def __init__(self, results: Capability, letters: Capability) -> None:
        self.results = results
        self.letters = letters
        self.calls = 0


class _Call:
    """A call: its record and time, or a batch of them, and its outcome."""

    __slots__ = ("done", "error", "given", "result", "when")

    def __init__(self, when: Any, given: Any) -> None:
        self.when = when
        self.given = given
        self.done = False
        self.result: Any = None
        self.error: BaseException | None = None


def async_map(
    scope: BuildingScope, read: Output, function: Callable[[Any], Awaitable[Any]], terms: Terms, name: str
) -> tuple[Output, Output]:
    """Appends the operator; returns its results, and the dead letters."""
    core = PlannedOperator(scope, name)
    core.new_input(read, (PactKind.PIPELINE, None))
    results, results_made, capability = core.new_output()
    letters, letters_made, other = core.new_output()
    info = core.info
    calls = _Calls(function, terms, info.activator, core.core.sources())
    # A restored operator's capabilities are these two: calls in flight take theirs before they are dropped.
    core.keeps_waiting(calls)
    capability.drop()
    other.drop()
    register_explanation(info, calls)
    core.build(_Operator(calls), lambda ports: (*ports, results, letters))
    return results_made, letters_made


class _NoCoroutine(TypeError):
    """The function returned something that cannot be awaited."""


class _Operator:
    """The operator's logic, which tasks do not refer to: they end when it is freed."""

    __slots__ = ("_calls",)

    def __init__(self, calls: _Calls) -> None:
        self._calls = calls

    def __call__(self, *ports: Any) -> None:
        try:
            self._calls.run(*ports)
        except BaseException:
            self._calls.close()  # now: an exception that is kept keeps this frame
            raise

    def __del__(self) -> None:
        with raised_later():
            self._calls.close()


class _Calls:
    """Calls in flight, calls that are done, and records that wait.

    Checkpoints have the records whose results were not sent. After a restart their calls are made again.
    """

    division: Division = "parts"

    def __init__(self, function: Any, terms: Terms, activator: Any, sources: Sources) -> None:
        self._function = function
        self._terms = terms
        self._activator = activator
        self._sources = sources
        self._times: dict[Any, _Time] = {}
        self._held = 0  # records that were read, and not sent on
        # Calls whose results were not sent, in the order of their records.
        self._open: dict[_Call, None] = {}
        # From a checkpoint: the records whose calls are made again, with their times.
        self._again: list[tuple[Any, Any]] = []
        # Shared with the loop's thread: the calls to make, and the finished ones.
        self._queue: deque[_Call] = deque()
        self._done: deque[_Call] = deque()
        self._out: set[_Call] = set()
        self._failure: BaseException | None = None
        self._told = False
        self._runners = 0
        # In the order of their records, where results keep it.
        self._in_order: deque[_Call] = deque()
        # An incomplete batch, and the time at which it is sent anyway.
        self._batch: list[tuple[Any, Any]] = []
        self._goes_at: float | None = None
        self._seat: Seat | None = None

    def close(self) -> None:
        """Cancels the calls in flight."""
        self._queue.clear()
        self._sources.let_go()
        if self._seat is not None:
            try:
                self._seat.leave()
            finally:
                self._seat = None

    def failed(self, error: BaseException) -> None:
        """See `Owner`."""
        self._failure = error
        self._activator.activate()

    def unfinished(self) -> str:
        """See `Owner`."""
        out = list(self._out)
        name = getattr(self._function, "__qualname__", repr(self._function))
        shown = [f"{call.given!r:.100}" for call in out[:3]]
        return f"async_map of {name}, {len(out)} call(s), with {', '.join(shown + ['...'] * (len(out) > 3))}"

    def holding(self) -> tuple[str, str]:
        """See `ExplainsTimes`."""
        terms, out = self._terms, len(self._out)
        calls = "1 call is" if out == 1 else f"{out} calls are"
        what = f"{calls} out; records that wait for one, or for their turn: {max(0, self._held - out)}."
        if terms.timeout is None:
            return (
                what,
                "Nothing bounds a call but async_map(timeout=), after which its record is a dead letter.",
            )
        tries = f", and is made {terms.retry + 1} times at most" if terms.retry else ""
        return what, f"A call has {terms.timeout:g} s{tries}: then its record is a dead letter."

    # ------------------------------------------------------------ for checkpoints

    def taken(self) -> tuple[list[tuple[Capability, Capability]], list[tuple[Any, Any]]]:
        """See `Waiting`."""
        records = [record for call in self._open for record in self._asked(call)]
        times = [(moment.results, moment.letters) for moment in self._times.values()]
        return times, [*records, *self._batch, *self._again]

    def give_back(
        self, taken: tuple[list[tuple[Capability, Capability]], list[tuple[Any, Any]]], _restored: Restored
    ) -> None:
        """See `Waiting`."""
        times, records = taken
        for results, letters in times:
            self._times.setdefault(results.time, _Time(results, letters))
        for when, _ in records:
            self._times[when].calls += 1
        self._held += len(records)
        self._again += records

    # ------------------------------------------------------------ on the worker

    def run(self, port: FrontieredInput[Any], results: OutputPort[Any], letters: OutputPort[Any]) -> None:
        """Sends finished results, and starts further calls."""
        self._told = False
        if self._failure is not None:
            raise self._failure
        self._send(results, letters)
        asked: list[_Call] = []
        limit = 2 * self._terms.capacity * (self._terms.batch or 1)
        if self._again:
            again, self._again = self._again, []
            self._ask(again, asked)
        while self._held < limit and (message := port.next()) is not None:
            self._read(*message, asked)
        self._flush(asked, everything=not port.frontier)
        if self._held >= limit:
            self._sources.hold()
        elif self._held <= limit // 2:
            self._sources.let_go()
        if asked:
            self._open.update(dict.fromkeys(asked))
            if self._seat is None:
                self._seat = EventLoop.seat(self)
            if self._terms.ordered:
                self._in_order.extend(asked)
            self._queue.extend(asked)
            self._seat.call(partial(self._spawn, self._seat))
        if not port.frontier and not self._held:
            self.close()

    def _read(self, message: CapabilityRef, records: list[Any], asked: list[_Call]) -> None:
        time_of = message.time
        moment = self._times.get(time_of)
        if moment is None:
            moment = self._times[time_of] = _Time(message.retain(0), message.retain(1))
        moment.calls += len(records)
        self._held += len(records)
        if self._terms.batch is None:
            asked += [_Call(time_of, record) for record in records]
        else:
            self._batch.extend((time_of, record) for record in records)

    def _ask(self, records: list[tuple[Any, Any]], asked: list[_Call]) -> None:
        """Calls again for the records of a checkpoint."""
        if self._terms.batch is None:
            asked += [_Call(when, record) for when, record in records]
        else:
            self._batch += records

    def _flush(self, asked: list[_Call], *, everything: bool) -> None:
        """Makes calls of batches that are full, or have waited long enough."""
        size = self._terms.batch
        if size is None or not self._batch:
            return
        now = time.monotonic()
        due = everything or (self._goes_at is not None and now >= self._goes_at)
        while len(self._batch) >= size or (due and self._batch):
            part, self._batch = self._batch[:size], self._batch[size:]
            asked.append(_Call([when for when, _ in part], [record for _, record in part]))
            self._goes_at = None
        if self._batch and self._goes_at is None:
            self._goes_at = now + self._terms.linger
            self._activator.activate_after(self._terms.linger)

    def _send(self, results: OutputPort[Any], letters: OutputPort[Any]) -> None:
        finished = []
        while self._done:  # the loop's thread keeps appending
            finished.append(self._done.popleft())
        if self._terms.ordered:
            finished = []
            while self._in_order and self._in_order[0].done:
                finished.append(self._in_order.popleft())
        good: dict[Any, list[Any]] = {}
        bad: dict[Any, list[Any]] = {}
        for call in finished:
            del self._open[call]
            error = call.error
            if error is None:
                if self._terms.batch is None:
                    if call.when in good:
                        good[call.when].append(call.result)
                    else:
                        good[call.when] = [call.result]
                    continue
                for when, result in zip(call.when, self._results(call), strict=True):
                    good.setdefault(when, []).append(result)
            elif isinstance(error, _NoCoroutine):
                raise TypeError(str(error))
            elif isinstance(error, Exception) or type(error).__name__ == "CancelledError":
                for when, record in self._asked(call):
                    bad.setdefault(when, []).append((record, error))
            else:
                raise error
        for when, records in good.items():
            with results.session(self._times[when].results) as session:
                session.give_all(records)
        for when, records in bad.items():
            with letters.session(self._times[when].letters) as session:
                session.give_all(records)
        for part in (good, bad):
            for when, records in part.items():
                self._over(when, len(records))

    def _asked(self, call: _Call) -> list[tuple[Any, Any]]:
        """The records of a call, each with its time."""
        if self._terms.batch is None:
            return [(call.when, call.given)]
        return list(zip(call.when, call.given, strict=True))

    def _results(self, call: _Call) -> list[Any]:
        """Returns the results of a call of a batch."""
        if not isinstance(call.result, list | tuple) or len(call.result) != len(call.given):
            raise TypeError(
                f"the function of async_map was called with {len(call.given)} records, and must return "
                f"a list of as many results, not {call.result!r:.100}"
            )
        return list(call.result)

    def _over(self, when: Any, count: int) -> None:
        self._held -= count
        moment = self._times[when]
        moment.calls -= count
        if not moment.calls:
            del self._times[when]
            moment.results.drop()
            moment.letters.drop()

    # ------------------------------------------------------------ on the loop's thread

    def _spawn(self, seat: Seat) -> None:
        """Has as many tasks at work as there are calls to make, up to the capacity."""
        try:
            self._start(seat)
        except Exception as error:  # the dataflow would wait for ever
            self.failed(error)

    def _start(self, seat: Seat) -> None:
        wanted = min(len(self._queue), self._terms.capacity - self._runners)
        for _ in range(wanted):
            self._runners += 1
            seat.start(self._runner(seat))

    async def _runner(self, seat: Seat) -> None:
        """Makes one call after another. Context variables that a call sets are not visible to the next."""
        fresh = copy_context()
        queue, out, terms, function = self._queue, self._out, self._terms, self._function
        batched, simple = terms.batch is not None, terms.timeout is None and terms.retry == 0
        try:
            while queue:
                try:
                    call = queue.popleft()
                except IndexError:  # the worker has just cleared it
                    return
                out.add(call)
                try:
                    if simple:
                        made = function(list(call.given) if batched else call.given)
                        call.result = await (made if made.__class__ is CoroutineType else _awaitable(made))
                    else:
                        call.result = await self._attempts(call.given, batched=batched)
                except BaseException as error:
                    call.error = error
                out.discard(call)
                call.done = True
                self._done.append(call)
                if not self._told:
                    self._told = True
                    seat.next(self._activator.activate)
                if queue and _differs(fresh):
                    self._runners += 1
                    fresh.run(seat.start, self._runner(seat))
                    return
        except Exception as error:  # the dataflow would wait for ever
            self.failed(error)
        finally:
            self._runners -= 1

    async def _attempts(self, records: Any, *, batched: bool) -> Any:
        import asyncio

        terms = self._terms
        for attempt in range(terms.retry + 1):
            given = list(records) if batched else records  # the function may change its list
            try:
                if terms.timeout is None:
                    return await _awaitable(self._function(given))
                return await _within(terms.timeout, _awaitable(self._function(given)))
            except _NoCoroutine:
                raise
            except Exception:
                if attempt == terms.retry:
                    raise
                await asyncio.sleep(terms.backoff * 2**attempt)
        raise AssertionError("the last attempt returns or raises")


def _awaitable(made: Any) -> Awaitable[Any]:
    """Returns the result of the function, which is awaited.

    Raises:
        _NoCoroutine: If it cannot be.
    """
    if hasattr(made, "__await__") or inspect.isawaitable(made):
        awaitable: Awaitable[Any] = made
        return awaitable
    raise _NoCoroutine(f"async_map awaits what its function returns: {made!r:.100} is no coroutine")


def _differs(fresh: Context) -> bool:
    """Whether a variable of this context differs from `fresh`. Values need not be comparable."""
    now = copy_context()
    if not len(now):
        return False
    return len(now) != len(fresh) or any(fresh.get(var, now) is not now[var] for var in now)


async def _within(timeout: float, call: Awaitable[Any]) -> Any:
    """Returns the result of a call within so many seconds; one that ignores its end is abandoned.

    Raises:
        TimeoutError: If it takes longer.
    """
    import asyncio

    task = asyncio.ensure_future(call)
    try:
        await asyncio.wait({task}, timeout=timeout)
        if task.done():
            # No limit: it is done.
            return task.result()
        raise TimeoutError(f"no answer in {timeout} seconds")
    finally:
        task.cancel()
