"""One event loop for each worker that makes calls to the outside.

Owns `EventLoop`: an asyncio loop in a daemon thread, started when the first operator of a worker needs it
and stopped when the last lets go. What an operator has started is cancelled when it lets go; what takes no
notice of that for `GRACE` seconds is left behind in its thread, with a warning. asyncio is imported then, and
not before.
"""

from __future__ import annotations

import threading
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine

__all__ = ["EventLoop"]

GRACE = 5.0
"""Seconds that calls have for their own ends when they are cancelled."""

_HERE = threading.local()


class EventLoop:
    """The loop of the worker whose thread this is."""

    def __init__(self) -> None:
        import asyncio

        self._loop: asyncio.AbstractEventLoop = asyncio.new_event_loop()
        self._users: dict[int, set[asyncio.Task[Any]]] = {}
        # Told when the loop has ended of its own.
        self._wakes: dict[int, Callable[[], object]] = {}
        self.has_ended = False
        self._thread = threading.Thread(target=self._serve, name="pointstamp calls", daemon=True)
        self._thread.start()

    @classmethod
    def of_this_thread(cls) -> EventLoop:
        """The loop of the worker that runs in this thread; made if there is none."""
        loop: EventLoop | None = getattr(_HERE, "loop", None)
        if loop is None or loop.has_ended or not loop._users:
            loop = _HERE.loop = cls()
        return loop

    def acquire(self, user: object, wake: Callable[[], object]) -> None:
        """Keeps the loop running for an operator, which is woken where the loop ends all the same."""
        self._users[id(user)] = set()
        self._wakes[id(user)] = wake

    def release(self, user: object) -> None:
        """Cancels what an operator has started; with the last operator, the loop ends."""
        whose = id(user)
        self._wakes.pop(whose, None)
        tasks = self._users.pop(whose, set())
        last = not self._users
        with suppress(RuntimeError):  # the loop has ended of its own
            self._loop.call_soon_threadsafe(self._end, tasks, last)
        if last and threading.current_thread() is not self._thread:
            self._thread.join(2 * GRACE)
            if self._thread.is_alive():
                warnings.warn(
                    f"a call of async_map has not ended {2 * GRACE:g} seconds after it was cancelled: it is "
                    "left behind in its thread. A coroutine waits by await, and passes CancelledError on",
                    ResourceWarning,
                    stacklevel=1,
                )

    def call(self, function: Callable[[EventLoop], None]) -> None:
        """Calls a function on the loop's thread, soon; not at all where the loop has ended."""
        with suppress(RuntimeError):  # `has_ended` says so
            self._loop.call_soon_threadsafe(function, self)

    def start(self, user: object, coroutine: Coroutine[Any, Any, None]) -> None:
        """Starts a task for an operator; on the loop's thread."""
        task = self._loop.create_task(coroutine)
        tasks = self._users.get(id(user))
        if tasks is None:
            task.cancel()
            return
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    def _end(self, tasks: set[asyncio.Task[Any]], last: bool) -> None:
        for task in list(tasks):
            task.cancel()
        if last:
            self._loop.call_soon(self._loop.stop)

    def _serve(self) -> None:
        import asyncio

        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            self.has_ended = True
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            if tasks:
                self._loop.run_until_complete(asyncio.wait(tasks, timeout=GRACE))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self.has_ended = True
            asyncio.set_event_loop(None)
            self._loop.close()
            for wake in list(self._wakes.values()):
                wake()
