"""One event loop for each worker that makes calls to the outside.

Owns `EventLoop`: an asyncio loop in a daemon thread, started when the first operator of a worker takes a seat
and stopped when the last leaves. asyncio is imported then, and not before.

The thread serves until it shuts down, whatever calls do: `SystemExit` and `KeyboardInterrupt`, which tasks
let out of the loop, are reported to every operator, and a loop that a call has stopped continues. Calls of an
operator are cancelled when it leaves. Calls that continue after that have `GRACE` seconds; then they are
abandoned, with a warning.

Threads: an operator enters on its worker's thread, and leaves on any, because the garbage collector may free
it there. Tasks are known to the loop's thread only. Entering and ending exclude each other without a lock,
which a collection in the midst of either could not take: the entering thread writes `_seats` and then reads
`_ending`, the ending one writes `_ending` and then reads `_seats`.
"""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from pointstamp.runtime import threads

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine, Iterable

__all__ = ["EventLoop", "Seat"]

GRACE = 5.0
"""Seconds that calls have to end after they were cancelled."""

LEEWAY = 1.0
"""Further seconds for the loop's thread to end: a thread that a call blocks is abandoned."""

_HERE = threading.local()


class Owner(Protocol):
    """An operator that makes calls. It is called on any thread."""

    def failed(self, error: BaseException) -> None:
        """Ends a task with an exception that no call reports; the worker is to raise it."""

    def unfinished(self) -> str:
        """Describes the calls in flight."""


class Seat:
    """One operator's part of the loop."""

    __slots__ = ("_host", "left", "owner")

    def __init__(self, host: EventLoop, owner: Owner) -> None:
        self._host = host
        self.owner = owner
        self.left = False  # the loop's thread knows that the operator has left

    def call(self, function: Callable[[], None]) -> None:
        """Calls a function on the loop's thread, soon."""
        self._host.soon(function)

    def start(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Starts a task; on the loop's thread."""
        self._host.start(self, coroutine)

    def next(self, function: Callable[[], object]) -> None:
        """Calls a function when the loop has processed everything that is ready now; on the loop's thread."""
        self._host.next(function)

    def leave(self) -> None:
        """Cancels the started calls; with the last operator, waits for the loop to end.

        Raises:
            BaseException: An interruption of the wait, when it is over or has been long.
        """
        self._host.leave(self)


class EventLoop:
    """The loop of a worker."""

    def __init__(self) -> None:
        import asyncio

        self._loop: asyncio.AbstractEventLoop = asyncio.new_event_loop()
        self._seats: set[Seat] = set()
        self._ending = False
        self._over = False
        self._tasks: dict[asyncio.Task[Any], Seat] = {}
        self._thread = threads.Helper(self._serve, "pointstamp calls", daemon=True)
        self._thread.start()

    @classmethod
    def seat(cls, owner: Owner) -> Seat:
        """Returns a seat at the loop of this thread's worker, which is started if there is none."""
        while True:
            host: EventLoop | None = getattr(_HERE, "loop", None)
            if host is None:
                host = _HERE.loop = cls()
            seat = Seat(host, owner)
            host._seats.add(seat)
            if not host._ending:
                return seat
            host._seats.discard(seat)
            with suppress(RuntimeError):
                host.soon(host._end_if_empty)  # which may have seen this seat
            _HERE.loop = None

    # ------------------------------------------------------------ on any thread

    def soon(self, function: Callable[..., None], *arguments: Any) -> None:
        """Calls a function on the loop's thread.

        Raises:
            RuntimeError: If the loop has ended.
        """
        self._loop.call_soon_threadsafe(function, *arguments)

    def leave(self, seat: Seat) -> None:
        """See `Seat`."""
        try:
            self._leave(seat)
        except BaseException:  # an interruption, wherever it came
            self._leave(seat)
            raise

    def _leave(self, seat: Seat) -> None:
        self._seats.discard(seat)
        with suppress(RuntimeError):
            self.soon(self._leaves, seat)
        if self._seats or threading.current_thread() is self._thread:
            return
        if not threads.join([self._thread], 0.05, patience=GRACE + LEEWAY):
            self._warn(set(self._tasks.values()), (), "block the thread that runs them, which is left behind")

    def _warn(self, seats: Iterable[Seat], others: Iterable[asyncio.Task[Any]], what: str) -> None:
        which = [seat.owner.unfinished() for seat in seats]
        which += [f"a task of {getattr(task.get_coro(), '__qualname__', task)}" for task in others]
        logging.getLogger("pointstamp.calls").warning(
            "calls were cancelled %g seconds ago, and %s: %s", GRACE, what, "; ".join(which)
        )

    # ------------------------------------------------------------ on the loop's thread

    def next(self, function: Callable[[], object]) -> None:
        """See `Seat`."""
        self._loop.call_soon(function)

    def start(self, seat: Seat, coroutine: Coroutine[Any, Any, None]) -> None:
        """See `Seat`."""
        if seat.left:
            coroutine.close()
            return
        task = self._loop.create_task(coroutine)
        self._tasks[task] = seat
        task.add_done_callback(self._tasks.pop)

    def _leaves(self, seat: Seat) -> None:
        seat.left = True
        for task, whose in list(self._tasks.items()):
            if whose is seat:
                task.cancel()
        self._end_if_empty()

    def _end_if_empty(self) -> None:
        if self._seats or self._ending:
            return
        self._ending = True
        if self._seats:  # a worker came in: see the module
            self._ending = False
        else:
            self._last = self._loop.create_task(self._wind_up())

    async def _wind_up(self) -> None:
        import asyncio

        try:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            if tasks:
                done, late = await asyncio.wait(tasks, timeout=GRACE)
                for task in done:
                    if not task.cancelled():
                        task.exception()  # has been looked at: asyncio need not log it
                if late:
                    # The loop ends without them; asyncio's message about that is replaced by this one.
                    self._loop.set_exception_handler(lambda _loop, _context: None)
                    own = {self._tasks[task] for task in late if task in self._tasks}
                    others = [task for task in late if task not in self._tasks]
                    self._warn(own, () if own else others, "go on: they are given up")
            await asyncio.wait_for(self._loop.shutdown_asyncgens(), GRACE)
        finally:
            self._over = True
            self._loop.stop()

    def _serve(self) -> None:
        import asyncio

        asyncio.set_event_loop(self._loop)
        try:
            while not self._over:
                try:
                    self._loop.run_forever()  # until it winds up, or a call stops it
                except BaseException as error:
                    for seat in list(self._seats):
                        seat.owner.failed(error)
        finally:
            asyncio.set_event_loop(None)
            self._loop.close()
            self._tasks.clear()
