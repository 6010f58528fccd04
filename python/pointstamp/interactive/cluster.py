"""The workers of a session: threads of this program, or processes that it starts.

Owns their life. They run in the background, on a thread that is never waited for by the interpreter, and end
when they are told to; those that do not (they run the program's own code) are interrupted, and processes are
killed. What ends them by itself is kept, for who asks next.
"""

from __future__ import annotations

import os
import pickle
import secrets
import socket
import struct
import threading
import time
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Client, Listener, answer_challenge, deliver_challenge
from multiprocessing.reduction import ForkingPickler
from typing import TYPE_CHECKING, Any

from pointstamp._errors import ClusterError, PointstampError, WorkerStopped, add_note, in_words
from pointstamp._threads import Helper
from pointstamp._unpicklable import unpicklable
from pointstamp.execution import execute
from pointstamp.interactive.commands import Command, Commands, Replies, Taken
from pointstamp.interactive.serving import serve
from pointstamp.launcher.shipped import pack
from pointstamp.launcher.spawning import run_on_processes
from pointstamp.seeing.stalls import what_holds

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from multiprocessing.connection import Connection

    from pointstamp.config import Config
    from pointstamp.seeing.asking import Asking
    from pointstamp.seeing.stalls import Awaited
    from pointstamp.worker import Worker

__all__ = ["SessionWorkers"]

PATIENCE = 1.0
"""Seconds that workers have to end by themselves."""

FORCE = 5.0
"""Seconds for which those that do not are interrupted, before they are left to themselves."""

GREETING = 30.0
"""Seconds that a connection has to prove that it is a worker's."""

ADVICE = (
    "every dataflow of the session ended with it. The next session.dataflow(...) starts new workers: build "
    "the dataflows again"
)


class SessionWorkers:
    """Workers in the background, from when it is made until `close`.

    Args:
        config: How many workers there are, in each process.
        processes: How many processes to start; None for threads of this one.
    """

    def __init__(self, config: Config, processes: int | None) -> None:
        self.workers = config.workers * (processes or 1)
        self.separate = processes is not None
        self.failure: BaseException | None = None
        self._commands = Commands(self.workers)
        self._replies = Replies()
        self._asking: Asking | None = None
        self._kill: Callable[[], None] = lambda: None
        self._closing = False
        self._threads: set[int] = set()
        self._lines: list[Helper] = []
        self._connections: list[Connection] = []
        self._strangers: set[Connection] = set()
        self._leaving = False
        run = partial(self._on_threads, config)
        if processes is not None:
            run = partial(self._on_processes, config, processes)
        self._thread = Helper(partial(self._run, run), "pointstamp-interactive", daemon=True)
        try:
            self._thread.start()
        except BaseException:
            self.close()  # nobody has this object
            raise

    @property
    def ended(self) -> bool:
        """Whether no worker does anything any more."""
        return self._commands.ended

    def pack(self, function: Any) -> Any:
        """A function as workers take it.

        Raises:
            ConfigError: If it cannot be sent to other processes.
        """
        return pack(function) if self.separate else function

    def ask(self, what: str, *arguments: Any, worker: int | None = None) -> Future[list[Any]]:
        """Tells one worker or all, and returns what becomes of it.

        It does not wait, however much was told and not yet read: who waits for the answer says how long.

        Raises:
            PointstampError: On a worker of this cluster, which would wait for itself.
            BaseException: What has ended the workers, or what one of them raised since this was last asked.
        """
        if threading.get_ident() in self._threads:
            raise PointstampError(
                "a session's worker cannot wait for its session, which waits for it: what runs there "
                "uses the `worker` or `scope` that it was called with, and cells use the session"
            )
        self.raise_error()
        number, future = self._replies.ask(self.workers if worker is None else 1)
        self._commands.put(Command(worker, number, what, arguments), wait=False)
        return future

    def tell(self, what: str, *arguments: Any, worker: int | None = None, wait: bool = True) -> None:
        """Tells one worker or all, without an answer.

        Raises:
            BaseException: As `ask`, where it may wait.
        """
        if wait:
            self.raise_error()
        if threading.get_ident() in self._threads:
            wait = False  # it is what would make room
        self._commands.put(Command(worker, None, what, arguments), wait=wait)

    def raise_error(self) -> None:
        """Raises what has gone wrong since this was last asked."""
        if self.failure is not None:
            raise self.failure
        error = self._replies.error()
        if error is not None:
            raise error

    def explain(self, awaited: Awaited | None = None, seconds: float | None = None) -> str:
        """Explains what the workers wait for, also when one of them does not answer.

        Args:
            awaited: What is to be explained; None for all that they wait for.
            seconds: How long that may take; None for as long as workers usually need.
        """
        if self._asking is not None:
            return str(what_holds(self._asking, None, awaited, seconds))
        if self.ended:
            return "The workers have ended."
        number, future = self._replies.ask(1)
        self._commands.put(Command(0, number, "explain", (awaited, seconds)), wait=False)
        try:
            return str(future.result(FORCE if seconds is None else seconds)[0])
        except (TimeoutError, FutureTimeout):  # one, from Python 3.11 on
            return "Worker 0 does not answer: it runs the program's own code."

    def close(self) -> None:
        """Ends the workers. Closing twice does nothing."""
        self._closing = True
        self._commands.put(Command(None, None, "end", ()), wait=False)
        if threading.get_ident() in self._threads:
            return  # it ends when what it runs has returned
        if self._thread.ends(PATIENCE):
            return
        every = 0.1
        for _ in range(int(FORCE / every)):
            self.stop("the session was closed")
            if self._thread.ends(every):
                return

    def stop(self, reason: str) -> None:
        """Ends the workers, wherever they are: once more, if one goes on."""
        if self._asking is not None:
            self._asking.stop(reason)
        self._kill()

    # ------------------------------------------------------------ on the background's thread

    def _run(self, run: Callable[[], None]) -> None:
        failure: BaseException | None = None
        try:
            run()
        except WorkerStopped:
            pass
        except BaseException as error:
            failure = error
        if self._closing or failure is None:
            failure = PointstampError("the session is closed")
        else:
            add_note(failure, ADVICE)
        self.failure = failure
        self._replies.fail(failure)
        self._commands.end()

    def _on_threads(self, config: Config) -> None:
        def main(worker: Worker) -> None:
            self._asking = worker.asking
            ident = threading.get_ident()
            self._threads.add(ident)
            try:
                serve(worker, _Here(self._commands, self._replies, worker.index))
            finally:
                self._threads.discard(ident)  # which the next thread that is started may have

        execute(main, config=config, stall_report=False)

    def _on_processes(self, config: Config, processes: int) -> None:
        key = secrets.token_bytes(32)
        # The key is told to the processes over the sockets that they inherit: others are refused.
        with Listener(("127.0.0.1", 0), backlog=self.workers) as listener:
            accept = Helper(partial(self._accept, listener, key), "pointstamp-accept", daemon=True)
            accept.start()
            main = partial(_serve_there, listener.address, key)
            try:
                run_on_processes(main, processes, config, None, started=self._started)
            finally:
                self._leaving = True
                with suppress(OSError):
                    Client(listener.address).close()  # who accepts goes home
                accept.ends(PATIENCE)
                self._commands.end()
                for stranger in list(self._strangers):  # whose greeting ends with that
                    _cut(stranger)
                for line in self._lines:  # the processes have ended
                    line.ends(PATIENCE)
                for connection in self._connections:  # not while a thread reads from it or writes to it
                    connection.close()

    def _started(self, kill: Callable[[], None]) -> None:
        self._kill = kill

    def _accept(self, listener: Listener, key: bytes) -> None:
        """Lets connections in. Each is greeted on a thread of its own: a silent one holds up no other."""
        while True:
            try:
                connection = listener.accept()
            except OSError:  # it has gone already, or too many files are open
                if self._leaving:
                    return
                time.sleep(PATIENCE / 10)
                continue
            if self._leaving:
                connection.close()
                return
            self._strangers.add(connection)
            greet = Helper(partial(self._greet, connection, key), "pointstamp-greet", daemon=True)
            self._lines.append(greet)
            greet.start()

    def _greet(self, connection: Connection, key: bytes) -> None:
        """Has a connection prove that it is a worker's, and takes up its line; closes any other."""
        try:
            _at_once(connection)
            _bounded(connection, GREETING)
            deliver_challenge(connection, key)
            answer_challenge(connection, key)
            worker = connection.recv()
            _bounded(connection, 0)
        except Exception:  # who does not know the key, says nothing, or has gone
            self._strangers.discard(connection)
            connection.close()
            return
        self._strangers.discard(connection)
        self._connections.append(connection)
        hear = Helper(partial(self._hear, worker, connection), f"pointstamp-line-{worker}", daemon=True)
        self._lines.append(hear)
        hear.start()
        self._send(worker, connection)  # on this thread

    def _send(self, worker: int, connection: Connection) -> None:
        """Passes on what a worker of another process is told."""
        with suppress(OSError):
            while self._commands.wait(worker) and not self._commands.ended:
                command = self._commands.take(worker)
                if command is None:
                    continue
                try:
                    packed = _dumps(command)
                except Exception as error:
                    self._replies.hear(worker, command.number, False, _cannot_be_sent(command, error))
                    continue
                connection.send_bytes(pickle.dumps((command.number, command.what)))  # read in any case
                connection.send_bytes(packed)

    def _hear(self, worker: int, connection: Connection) -> None:
        """Takes what a worker of another process answers."""
        with suppress(OSError, EOFError):
            while True:
                number, well, taken = pickle.loads(connection.recv_bytes())
                packed = connection.recv_bytes()
                try:
                    value = pickle.loads(packed)
                except Exception as error:  # of the program's own classes, whatever it is
                    unread = _unreadable(worker, error)
                    well, value = taken, Taken([], unread) if taken else unread
                else:
                    value = value if well else _error_of(worker, *value)
                self._replies.hear(worker, number, well, value)


class _Here:
    """The channel of a worker of this process."""

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
        self._replies.hear(self._worker, number, well, value)


class _There:
    """The channel of a worker of a process that was started for a session."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._commands = Commands(1)
        self._ended = False
        threading.Thread(target=self._read, name="pointstamp-line", daemon=True).start()

    def _read(self) -> None:
        with suppress(OSError, EOFError):
            while not self._ended:
                number, what = pickle.loads(self._connection.recv_bytes())
                packed = self._connection.recv_bytes()
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
        if not well:
            value = _told(value)
        taken = isinstance(value, Taken)
        try:
            packed = ForkingPickler.dumps(value)
        except Exception as error:
            if taken:
                packed = ForkingPickler.dumps(_without_unsendable(value))
            else:
                well = False
                packed = ForkingPickler.dumps(_told(_unsendable("a result", value, error)))
        with suppress(OSError):
            # By itself, so that it is read where what is answered cannot be.
            self._connection.send_bytes(pickle.dumps((number, well, taken)))
            self._connection.send_bytes(packed)


def _serve_there(address: Any, key: bytes, worker: Worker) -> None:
    # It is closed with the process, whose thread reads from it to the end.
    connection = Client(address, authkey=key)
    _at_once(connection)
    connection.send(worker.index)
    serve(worker, _There(connection))


def _at_once(connection: Connection) -> None:
    """Sends small messages without a wait for the acknowledgement of those before (Nagle's algorithm).

    A command is two messages; with the delayed acknowledgements of the other end, each took 40 ms.
    """
    with socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _bounded(connection: Connection, seconds: float) -> None:
    """Lets reads of a connection take so many seconds at most; 0: any number."""
    with socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", int(seconds), 0))


def _cut(connection: Connection) -> None:
    """Ends what waits for something to read there."""
    with suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)


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


def _without_unsendable(taken: Taken) -> Taken:
    """Returns the records that can be sent, with the first error of the others."""
    kept, errors = [], []
    for time_, what in taken.kept:
        try:
            ForkingPickler.dumps((time_, what))
        except Exception as error:
            errors.append(_unsendable("a record", what, error))
        else:
            kept.append((time_, what))
    return Taken(kept, errors[0] if errors else None)


def _told(error: BaseException) -> tuple[bytes | None, str]:
    """An exception as it travels: as it is, where that can be, and in words."""
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
