"""One event loop for each worker that makes calls to the outside.

Owns `EventLoop`: an asyncio loop in a daemon thread, started when the first operator of a worker needs it
and stopped when the last lets go. What an operator has started is cancelled when it lets go. asyncio is
imported then, and not before.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine

__all__ = ["EventLoop"]

_HERE = threading.local()


class EventLoop:
    """The loop of the worker whose thread this is."""

    def __init__(self) -> None:
        import asyncio

        self._loop: asyncio.AbstractEventLoop = asyncio.new_event_loop()
        self._users: dict[int, set[asyncio.Task[Any]]] = {}
        self._thread = threading.Thread(target=self._serve, name="pointstamp calls", daemon=True)
        self._thread.start()

    @classmethod
    def of_this_thread(cls) -> EventLoop:
        """The loop of the worker that runs in this thread; made if there is none."""
        loop: EventLoop | None = getattr(_HERE, "loop", None)
        if loop is None or not loop._thread.is_alive():
            loop = _HERE.loop = cls()
        return loop

    def acquire(self, user: object) -> None:
        """Keeps the loop running for an operator."""
        self._users[id(user)] = set()

    def release(self, user: object) -> None:
        """Cancels what an operator has started; with the last operator, the loop ends."""
        whose = id(user)
        last = len(self._users) == 1
        self._loop.call_soon_threadsafe(self._end, whose, last)
        if last and threading.current_thread() is not self._thread:
            self._thread.join()
        else:
            self._users.pop(whose, None)

    def call(self, function: Callable[[EventLoop], None]) -> None:
        """Calls a function on the loop's thread, soon."""
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

    def _end(self, whose: int, last: bool) -> None:
        for task in list(self._users.pop(whose, ())):
            task.cancel()
        if last:
            self._loop.call_soon(self._loop.stop)

    def _serve(self) -> None:
        import asyncio

        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            if tasks:
                self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            asyncio.set_event_loop(None)
            self._loop.close()
