"""The workers of a session: threads of this program, or processes that it starts.

Owns the life of the workers. They run in the background, on a thread for which the interpreter never waits,
and end on request; workers that do not (they run the program's own code) are interrupted, and processes are
killed. The reason of the end is kept from the moment that it is known, and raised by every later call:
nothing is sent to workers that do not read it any more.
"""

from __future__ import annotations

import pickle
import threading
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from pointstamp._unpicklable import unpicklable
from pointstamp._validation import warn_usage
from pointstamp.errors import (
    CheckpointError,
    ClusterError,
    PointstampError,
    StallError,
    WorkerStopped,
    add_note,
    in_words,
)
from pointstamp.observability.stalls import what_holds
from pointstamp.runtime.execution import execute
from pointstamp.runtime.interactive.commands import MOST, Command, Commands, Replies, Taken, in_short
from pointstamp.runtime.interactive.serving import serve
from pointstamp.runtime.launcher.pickling import pack
from pointstamp.runtime.launcher.spawning import run_on_processes
from pointstamp.runtime.message_channel import MessageChannel, inherited, pair, pickled
from pointstamp.runtime.threads import Helper

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future
    from types import TracebackType

    from pointstamp.config import Config
    from pointstamp.observability.collector import Collector
    from pointstamp.observability.stalls import Awaited
    from pointstamp.runtime.worker import Worker

__all__ = ["SessionWorkers"]

PATIENCE = 1.0
"""Seconds that workers have to end by themselves."""

FORCE = 5.0
"""Seconds for which workers that do not end are interrupted, before they are abandoned."""

ADVICE = (
    "every dataflow of the session ended with it. The next session.dataflow(...) starts new workers: build "
    "the dataflows again"
)


class SessionWorkers:
    """Workers in the background, from when it is made until `close`.

    Attributes:
        workers: The number of workers.
        separate: Whether they are in processes of their own.
        recorded: Whether checkpoints are made.
        failure: Why they have ended, or are about to; None while they work.
        unrecorded: Why the last checkpoint was not made, after the request to end; None where it was.

    Args:
        config: The number of workers in each process, and further settings.
        processes: The number of processes to start; None for threads of this one.
        timeout: Seconds for which calls without a timeout wait; None for as long as it takes.
    """

    def __init__(self, config: Config, processes: int | None, timeout: float | None) -> None:
        self.timeout = timeout
        self.workers = config.workers * (processes or 1)
        self.separate = processes is not None
        self.recorded = config.checkpoint is not None
        self.failure: BaseException | None = None
        self.unrecorded: BaseException | None = None
        self._traceback: TracebackType | None = None
        self._is_reported = False
        # The latest reason that `end` was given, and the time of the first.
        self._why: str | None = None
        self._ended_at: float | None = None
        self._commands = Commands(self.workers)
        self._replies = Replies()
        self._collector: Collector | None = None
        self._kill: Callable[[], None] = lambda: None
        self._failing = threading.RLock()  # the collector may close a session within it
        self._threads: set[int] = set()
        self._lines: list[Helper] = []
        run = partial(self._on_threads, config)
        if processes is not None:
            run = partial(self._on_processes, config, processes)
        self._thread = Helper(partial(self._run, run), "pointstamp-interactive", daemon=True)
        try:
            self._thread.start()
        except BaseException as error:
            self.end(f"its workers could not be started: {error}")
            self.close()  # nobody has this object
            raise

    @property
    def over(self) -> bool:
        """Whether nothing more is to be had from the workers. They may still be about to end."""
        return self.failure is not None

    @property
    def gone(self) -> bool:
        """Whether no worker does anything any more."""
        return self._commands.ended

    def pack(self, function: Any) -> Any:
        """A function as workers take it.

        Raises:
            ConfigError: If it cannot be sent to other processes.
        """
        return pack(function) if self.separate else function

    def ask(self, what: str, *arguments: Any, worker: int | None = None) -> Future[list[Any]]:
        """Sends a command to one worker or all, and returns the future of its answers.

        It does not wait, however many commands are unread: the caller that waits for the answer decides how
        long.

        Raises:
            PointstampError: On a worker of this cluster, which would wait for itself.
            BaseException: The reason why the workers have ended, or an exception of one since the last call.
        """
        if threading.get_ident() in self._threads:
            raise PointstampError(
                "a session's worker cannot wait for its session, which waits for it: what runs there "
                "uses the `worker` or `scope` that it was called with, and cells use the session"
            )
        self.raise_error()
        number, future = self._replies.ask(self.workers if worker is None else 1)
        self._commands.put(Command(worker, number, what, arguments), wait=False)
        future.add_done_callback(lambda asked: self._forget(number) if asked.cancelled() else None)
        return future

    def forget(self, future: Future[list[Any]]) -> None:
        """Cancels a waiting request on the workers. Requests that they answer at once are answered."""
        number = self._replies.number_of(future)
        if number is not None:
            self._forget(number)

    def _forget(self, number: int) -> None:
        if not self.over:
            self.post("forget", number, wait=False)

    def post(self, what: str, *arguments: Any, worker: int | None = None, wait: bool = True) -> None:
        """Sends a command to one worker or all, without an answer.

        Raises:
            StallError: If there is no room for so long as the session's timeout says.
            BaseException: As `ask`, where it may wait.
        """
        if wait:
            self.raise_error()
        if threading.get_ident() in self._threads:
            wait = False  # this command is the one that would make room
        if not self._commands.put(Command(worker, None, what, arguments), wait=wait, seconds=self.timeout):
            raise StallError(
                f"the workers have not read {MOST} commands within {self.timeout:g} s (timeout= of the "
                f"session), and this one was not sent\n{self.explain()}"
            )

    def raise_error(self) -> None:
        """Raises errors since the last call: the first one, with a note of the others."""
        others = self._replies.errors()
        if self.failure is not None:
            error = self.failure.with_traceback(self._traceback)  # which each raising makes longer
            self._is_reported = True
        elif others:
            error = others.pop(0)
        else:
            return
        if others:
            commands = "1 more command was" if len(others) == 1 else f"{len(others)} more commands were"
            note = f"and {commands} refused: {in_short(others)}"
            if not add_note(error, note):  # Python 3.10 shows none
                warn_usage(note)
        raise error

    def unreported(self) -> list[BaseException]:
        """Takes the errors that no call has raised: of commands, and why the workers have failed."""
        errors = self._replies.errors()
        if self.failure is not None and not self._is_reported:
            errors.append(self.failure)
            self._is_reported = True
        return errors

    def explain(self, awaited: Awaited | None = None, seconds: float | None = None) -> str:
        """Explains why the workers wait, also when one of them does not answer.

        Args:
            awaited: The probes to explain; None for all.
            seconds: The time that it may take; None for the usual time of workers.
        """
        if self._collector is not None:
            return str(what_holds(self._collector, None, awaited, seconds))
        if self.over:
            return "The workers have ended."
        number, future = self._replies.ask(1)
        self._commands.put(Command(0, number, "explain", (awaited, seconds)), wait=False)
        try:
            return str(future.result(FORCE if seconds is None else seconds)[0])
        except (TimeoutError, FutureTimeout):  # one, from Python 3.11 on
            return "Worker 0 does not answer: it runs the program's own code."

    def end(self, why: str, *, abandons: bool = False) -> None:
        """Requests the end of the workers, and keeps the reason for later callers. Waits for nothing.

        Workers that make checkpoints make a last one first, unless `abandons` is set.

        The first reason for their end stays the one that is raised. It has a note of each later one.
        """
        if self._ended_at is None:
            self._ended_at = monotonic()
        if self._why != why:
            self._why = why
            with self._failing:
                is_first = self.failure is None
                if is_first:
                    self._is_reported = True  # the program itself ends them
            if is_first:
                self._fails(PointstampError(why))
            elif self.failure is not None:
                add_note(self.failure, f"since then, {why}")
        self._commands.put(Command(None, None, "end", (abandons,)), wait=False)

    def interrupt(self) -> None:
        """Interrupts workers that should end, whatever they run: once more, if one continues."""
        if self._collector is not None:
            self._collector.stop("the session has ended")
        self._kill()

    def close(self, force: float | None = None, leave: float | None = PATIENCE) -> bool:
        """Waits for workers that should end, and interrupts those that do not; returns whether they ended.

        A worker in native code cannot be interrupted. It ends when that returns.

        Args:
            force: Seconds for which they are interrupted.
            leave: Seconds after the request to end at which they are interrupted; None for never, so that
                they make a last checkpoint, or fail.
        """
        if threading.get_ident() in self._threads:
            return False  # it ends when its code has returned
        if leave is None:
            while not self._thread.ends(0.1):
                pass  # where an interruption of this thread is raised
            return True
        until = leave + (monotonic() if self._ended_at is None else self._ended_at)
        if self._thread.ends(max(0.0, until - monotonic())):
            return True
        until += FORCE if force is None else force
        while True:
            self.interrupt()
            if self._thread.ends(0.1):
                return True
            if monotonic() > until:
                return False

    def wait(self, seconds: float) -> bool:
        """Waits for the end of workers that should end; returns whether they have."""
        self.interrupt()
        return self._thread.ends(seconds)

    def _fails(self, failure: BaseException) -> None:
        """Keeps the first reason of the end, and gives it to all callers that wait for an answer."""
        with self._failing:
            if self.failure is None:
                self._traceback = failure.__traceback__
                self.failure = failure
        if self._replies.fail(self.failure):
            self._is_reported = True

    # ------------------------------------------------------------ on the background's thread

    def _run(self, run: Callable[[], None]) -> None:
        failure: BaseException | None = None
        try:
            run()
        except WorkerStopped:
            pass
        except BaseException as error:
            failure = error
        if failure is None:
            failure = PointstampError("the workers of the session have ended")
        if not self.over:
            add_note(failure, ADVICE)
        elif isinstance(failure, CheckpointError):
            self.unrecorded = failure
        self._fails(failure)
        self._commands.end()

    def _on_threads(self, config: Config) -> None:
        def main(worker: Worker) -> None:
            self._collector = worker._collector
            ident = threading.get_ident()
            self._threads.add(ident)
            try:
                serve(worker, _ThreadChannel(self._commands, self._replies, worker.index))
            finally:
                self._threads.discard(ident)  # which the next thread that is started may have

        execute(main, config=config, stall_report=False)

    def _started(self, kill: Callable[[], None]) -> None:
        self._kill = kill
        if self.over:  # it was interrupted meanwhile
            kill()

    def _on_processes(self, config: Config, processes: int) -> None:
        # Each worker inherits its end of a pair of sockets: nothing listens, so no stranger can connect.
        pairs = [pair() for _ in range(self.workers)]
        theirs = [their.fileno() for _, their in pairs]
        descriptors = [theirs[n * config.workers : (n + 1) * config.workers] for n in range(processes)]

        def started(kill: Callable[[], None]) -> None:
            self._started(kill)
            for _, their in pairs:
                their.close()

        try:
            for worker, (channel, _) in enumerate(pairs):
                for run, name in ((self._receive, "line"), (self._send, "send")):
                    thread = Helper(partial(run, worker, channel), f"pointstamp-{name}-{worker}", daemon=True)
                    self._lines.append(thread)
                    thread.start()
            main = partial(_serve_there, theirs)
            run_on_processes(main, processes, config, None, started=started, inherited=descriptors)
        finally:
            self._commands.end()
            for channel, their in pairs:
                their.close()
                channel.close()
            for thread in self._lines:  # the processes have ended
                thread.ends(PATIENCE)
            self._lines.clear()  # which releases the channels' descriptors

    def _send(self, worker: int, channel: MessageChannel) -> None:
        """Passes on commands to a worker of another process."""
        with suppress(OSError):
            # No limit: a line waits for as long as its worker is there; the end of commands ends it.
            while self._commands.wait(worker) and not self._commands.ended:
                command = self._commands.take(worker)
                if command is None:
                    continue
                try:
                    # The arguments are pickled by themselves, so that the rest is read in any case.
                    message = pickled((command.number, command.what, _dumps(command)))
                except Exception as error:
                    self._replies.take_answer(worker, command.number, False, _cannot_be_sent(command, error))
                    continue
                channel.send_pickled(message)

    def _receive(self, worker: int, channel: MessageChannel) -> None:
        """Takes the answers of a worker of another process."""
        earlier = Taken([])
        with suppress(OSError, EOFError):
            while True:
                # No limit: a worker answers when it is done, its end closes the line; calls have timeouts.
                number, well, taken, more, packed = channel.receive()
                try:
                    value = pickle.loads(packed)
                except Exception as error:  # of the program's own classes, whatever it is
                    unread = _unreadable(worker, error)
                    well, value = taken, Taken([], unread) if taken else unread
                else:
                    value = value if well else _error_of(worker, *value)
                if taken:
                    value = Taken([*earlier.kept, *value.kept], earlier.refused or value.refused)
                    earlier = value if more else Taken([])
                if not more:
                    self._replies.take_answer(worker, number, well, value)


class _ThreadChannel:
    """The commands and answers of a worker of this process."""

    def __init__(self, commands: Commands, replies: Replies, worker: int) -> None:
        self._commands = commands
        self._replies = replies
        self._worker = worker

    def take(self) -> Command | None:
        return self._commands.take(self._worker)

    def wait(self, seconds: float) -> bool:
        return self._commands.wait(self._worker, seconds)

    def ring(self, bell: Callable[[], None]) -> None:
        self._commands.answer_the_bell(self._worker, bell)

    def answer(self, number: int | None, well: bool, value: Any) -> None:
        self._replies.take_answer(self._worker, number, well, value)


class _ProcessChannel:
    """The commands and answers of a worker of a process that was started for a session."""

    def __init__(self, channel: MessageChannel) -> None:
        self._channel = channel
        self._commands = Commands(1)
        self._ended = False
        threading.Thread(target=self._read, name="pointstamp-line", daemon=True).start()

    def _read(self) -> None:
        with suppress(OSError, EOFError):
            while not self._ended:
                # No limit: a worker waits for commands for as long as its session is there.
                number, what, packed = self._channel.receive()
                try:
                    command = _loads(packed)
                except Exception as error:  # of the program's own classes, whatever it is
                    command = Command(None, number, "refuse", (_not_taken(what, error),))
                self._ended = command.what == "end"
                self._commands.put(command._replace(target=None))
        # The program has ended, or its session: so does this worker.
        self._commands.put(Command(None, None, "end", ()), wait=False)

    def take(self) -> Command | None:
        return self._commands.take(0)

    def wait(self, seconds: float) -> bool:
        return self._commands.wait(0, seconds)

    def ring(self, bell: Callable[[], None]) -> None:
        self._commands.answer_the_bell(0, bell)

    def answer(self, number: int | None, well: bool, value: Any) -> None:
        with suppress(OSError):
            for message in _answers(number, well, value if well else _error_message(value)):
                self._channel.send_pickled(message)


def _answers(number: int | None, well: bool, value: Any) -> Iterator[bytes]:
    """Pickles an answer: one message; several where it is `Taken`, and too long or in part unsendable.

    The value of each message is pickled by itself, so that the rest is read in any case.
    """

    def message(well: bool, value: Any, more: bool = False) -> bytes:
        return pickled((number, well, isinstance(value, Taken), more, pickle.dumps(value, protocol=5)))

    try:
        whole = message(well, value)
    except Exception as error:
        if not isinstance(value, Taken):
            yield message(False, _error_message(_unsendable("a result", value, error)))
            return
    else:
        yield whole
        return
    left = [value.kept]
    while left:
        kept = left.pop()
        try:
            part = message(True, Taken(kept), more=True)
        except Exception as error:
            if len(kept) > 1:
                left += [kept[len(kept) // 2 :], kept[: len(kept) // 2]]
                continue
            part = message(True, Taken([], _unsendable("a record", kept[0][1], error)), more=True)
        yield part
    yield message(True, Taken([], value.refused))


def _serve_there(descriptors: list[int], worker: Worker) -> None:
    # It is closed with the process: the process's thread reads from it to the end.
    serve(worker, _ProcessChannel(inherited(descriptors[worker.index])))


def _dumps(command: Command) -> bytes:
    try:
        import cloudpickle
    except ImportError:
        return pickle.dumps(tuple(command), protocol=5)
    packed: bytes = cloudpickle.dumps(tuple(command))
    return packed


def _loads(data: bytes) -> Command:
    return Command(*pickle.loads(data))


def _cannot_be_sent(command: Command, error: Exception) -> TypeError:
    found = unpicklable(command.arguments, lambda value: _dumps(Command(None, None, "", (value,))))
    return TypeError(
        f"what is given to {command.what} cannot be sent to another process{', because of ' if found else ''}"
        f"{found}: {error}"
    )


def _not_taken(what: str, error: Exception) -> TypeError:
    return TypeError(
        f"what is given to {what} cannot be unpickled in the worker's process: {type(error).__name__}: "
        f"{error}"
    )


def _unsendable(what: str, value: Any, error: Exception) -> TypeError:
    return TypeError(
        f"{what} of type {type(value).__name__} cannot be sent from its process: {error}. Return plain data"
    )


def _unreadable(worker: int, error: Exception) -> TypeError:
    return TypeError(
        f"what worker {worker} has answered cannot be unpickled in this process: {type(error).__name__}: "
        f"{error}. Let the dataflow give plain data, or objects of classes that this program can import"
    )


def _error_message(error: BaseException) -> tuple[bytes | None, str]:
    """An exception in transit: the object itself, where that can be pickled, and its text."""
    words = in_words(error, error.__traceback__)
    try:
        packed = pickle.dumps(error)
        pickle.loads(packed)
    except Exception:
        return None, words
    return packed, words


def _error_of(worker: int, packed: bytes | None, words: str) -> BaseException:
    error: BaseException = ClusterError(f"worker {worker}: {words}")
    if packed is not None:
        with suppress(Exception):  # a class that only the process has
            error = pickle.loads(packed)
            add_note(error, f"raised on worker {worker}")
    return error
