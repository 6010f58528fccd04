"""Commands on their way from a session to its workers, and the answers.

Owns the one order of commands that all workers see: a command is added in one step, for one worker or for
all, so that an interruption leaves no worker without a command that the others have. Each worker reads at its
own pace; commands that all have read are removed. A caller that adds a command waits while `MOST` are unread;
a question, whose answer is waited for anyway, does not.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from pointstamp.types import Time

__all__ = ["Command", "Commands", "Replies", "Taken", "in_short"]

SHOWN = 3
"""The number of errors that are quoted where there are many."""

MOST = 1024
"""Commands that wait for the slowest worker at most."""

LOOK = 0.5
"""The polling interval of waiters, in seconds."""


class Command(NamedTuple):
    """A command to a worker.

    Attributes:
        target: The worker; None for all.
        number: Under which number it answers; None where no answer is wanted.
        what: The operation: a function of `serving`.
        arguments: For that.
    """

    target: int | None
    number: int | None
    what: str
    arguments: tuple[Any, ...]


class Taken(NamedTuple):
    """Records of an output that a worker returns, and no longer keeps.

    Attributes:
        kept: The records, or batches of columns, with their times.
        refused: The reason why other records are lost; None where there are none.
    """

    kept: list[tuple[Time, Any]]
    refused: TypeError | None = None


class Commands:
    """Commands in their order, read by each worker at its own pace."""

    def __init__(self, workers: int) -> None:
        self._waiting: deque[Command] = deque()
        self._first = 0
        self._next = [0] * workers
        # Not a plain lock: the thread that puts something may run the collector, which puts something, too.
        self._changed = threading.Condition(threading.RLock())
        self._bells: list[Callable[[], None] | None] = [None] * workers
        self.ended = False

    def put(self, command: Command, *, wait: bool = True, seconds: float | None = None) -> bool:
        """Adds a command; waits while there are too many, unless `wait` is false.

        Returns:
            Whether it was added: not, where there were too many for so many seconds.
        """
        until = None if seconds is None else time.monotonic() + seconds
        with self._changed:
            while wait and len(self._waiting) >= MOST and not self.ended:
                if until is not None and time.monotonic() > until:
                    return False
                self._changed.wait(LOOK)
            self._waiting.append(command)
            self._changed.notify_all()
            bells = list(self._bells)
        for bell in bells:
            if bell is not None:
                bell()
        return True

    def answer_the_bell(self, worker: int, bell: Callable[[], None]) -> None:
        """Has a function called, on any thread, whenever something was put."""
        with self._changed:
            self._bells[worker] = bell

    def take(self, worker: int) -> Command | None:
        """The next command for a worker, if there is one."""
        with self._changed:
            while self._next[worker] < self._first + len(self._waiting):
                command = self._waiting[self._next[worker] - self._first]
                self._next[worker] += 1
                if self._first < min(self._next):
                    self._first += 1
                    self._waiting.popleft()
                    self._changed.notify_all()
                if command.target in (None, worker):
                    return command
        return None

    def wait(self, worker: int, seconds: float | None = None) -> bool:
        """Waits until there is something to read, or all has ended; whether that is so."""
        with self._changed:
            return self._changed.wait_for(
                lambda: self.ended or self._next[worker] < self._first + len(self._waiting), seconds
            )

    def end(self) -> None:
        """Notes that nothing is read any more: waiting callers continue."""
        with self._changed:
            self.ended = True
            self._bells = [None] * len(self._bells)
            self._changed.notify_all()


class Replies:
    """Answers of workers, by the number of the question."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._numbers = 0
        self._open: dict[int, tuple[Future[list[Any]], dict[int, tuple[bool, Any]], int]] = {}
        self._failure: BaseException | None = None
        self._errors: list[BaseException] = []

    def ask(self, workers: int) -> tuple[int, Future[list[Any]]]:
        """Returns a number for a question to so many workers, and the future of their answers in order."""
        future: Future[list[Any]] = Future()
        with self._lock:
            self._numbers += 1
            number = self._numbers
            self._open[number] = (future, {}, workers)
            failure = self._failure
        if failure is not None:
            self._settle(number, failure)
        return number, future

    def number_of(self, future: Future[list[Any]]) -> int | None:
        """Returns the number of a question whose answers are incomplete; None for others."""
        with self._lock:
            return next((number for number, entry in self._open.items() if entry[0] is future), None)

    def take_answer(self, worker: int, number: int | None, well: bool, value: Any) -> None:
        """Takes an answer; an error without a request is kept for the next caller."""
        with self._lock:
            if number is None:
                self._errors.append(value)
                return
            if number not in self._open:
                return
            _, answers, workers = self._open[number]
            answers[worker] = (well, value)
            if len(answers) < workers:
                return
        errors = [value for _, (well, value) in sorted(answers.items()) if not well]
        self._settle(number, errors[0] if errors else [value for _, (_, value) in sorted(answers.items())])

    def errors(self) -> list[BaseException]:
        """Takes the errors of commands that were not reported yet, in order of arrival."""
        with self._lock:
            errors, self._errors = self._errors, []
        return errors

    def fail(self, failure: BaseException) -> bool:
        """No more answers come, for this reason; whether anybody waits for one."""
        with self._lock:
            self._failure = failure
            numbers = list(self._open)
        for number in numbers:
            self._settle(number, failure)
        return bool(numbers)

    def _settle(self, number: int, outcome: BaseException | list[Any]) -> None:
        with self._lock:
            entry = self._open.pop(number, None)
        if entry is None or not entry[0].set_running_or_notify_cancel():
            return
        if isinstance(outcome, BaseException):
            entry[0].set_exception(outcome)
        else:
            entry[0].set_result(outcome)


def in_short(errors: list[BaseException]) -> str:
    """Formats the first few of some errors, and the number of others."""
    words = [f"{type(error).__name__}: {error}" for error in errors[:SHOWN]]
    if len(errors) > SHOWN:
        words.append(f"{len(errors) - SHOWN} more")
    return "; ".join(words)
