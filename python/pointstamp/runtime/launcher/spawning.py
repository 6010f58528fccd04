"""`execute(main, processes=)`: processes of this machine for a program's own function.

Each process is an interpreter of its own. It gets a listening socket on the loopback interface that is bound
already, a secret that was made for this run, and ends of two socket pairs: over the one the function comes to
it and its results go back; by the other it watches its parent. Nothing is started before every process has
the function: a function that cannot be loaded is reported at once.

The first failure ends all, and the exception is the one that the function raised, with the traceback of its
process as its cause. No process outlives the call or the program.
"""

from __future__ import annotations

import os
import pickle
import queue
import secrets
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pointstamp._interrupts import too_early
from pointstamp.cluster import bind
from pointstamp.config import written_address
from pointstamp.errors import ClusterError, add_note
from pointstamp.runtime.launcher.pickling import pack
from pointstamp.runtime.launcher.restarting import LostProcess
from pointstamp.runtime.launcher.stop_requests import REQUEST, ask_first, held_back
from pointstamp.runtime.message_channel import MessageChannel, pair
from pointstamp.runtime.threads import Helper

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pointstamp.config import Config

__all__ = ["run_on_processes"]

R = TypeVar("R")

PATIENCE = 5.0
"""Seconds that processes have to end by themselves after the first failure, or an interruption."""

LAST_WORDS = 3.0
"""Seconds that the first process has to report why it waits, when the program is to end."""

LOOK = 0.5
"""Seconds that a wait lasts at most: a signal that comes just before it does not end it."""


def run_on_processes(
    main: Callable[..., R],
    processes: int,
    config: Config,
    stall_report: float | Literal[False] | None,
    *,
    started: Callable[[Callable[[], None]], None] | None = None,
    inherited: Sequence[Sequence[int]] = (),
) -> list[R]:
    """Runs the function on every worker of so many processes; their results, in the order of the workers.

    Args:
        main: The function.
        processes: The number of processes.
        config: The settings of each process: its number of workers, and others.
        stall_report: As for `execute`.
        started: Called once they have been started, with a function that ends them at once, from any thread.
        inherited: More descriptors that each process has, under their numbers here.

    Raises:
        ConfigError: If the function cannot be sent to other processes.
        ClusterError: If a process is lost.
        BaseException: The first exception of a worker.
    """
    packed, named = pack(main)
    running = _Processes(processes)
    with running.asked():
        try:
            task = {"main": packed, "named": named, "argv": list(sys.argv), "stall_report": stall_report}
            running.start(config, task, inherited)
            if started is not None:
                started(running.kill)
            running.until_all_have_answered()
            running.raise_failure()
        except KeyboardInterrupt as interruption:
            running.interrupt(interruption)
            raise
        finally:
            running.close()
    return [result for answer in running.answers.values() for result in answer["results"]]


class _Processes:
    """The processes of one run."""

    def __init__(self, count: int) -> None:
        self.answers: dict[int, dict[str, Any]] = {}
        self._count = count
        self._process = os.getpid()
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._channels: dict[int, MessageChannel] = {}
        self._watches: dict[int, socket.socket] = {}
        # By number, the next message of each process; None at the end of its channel.
        self._arrived: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        self._receivers: dict[int, Helper] = {}
        self._open: set[int] = set()
        self._failures: list[tuple[int, dict[str, Any]]] = []
        self._ready: set[int] = set()
        self._begun = False
        self._records = False  # whether checkpoints are made
        self._deadline: float | None = None
        self._pumps = _Pumps()

    def start(self, config: Config, task: dict[str, Any], more: Sequence[Sequence[int]]) -> None:
        """Starts the processes, and sends each its task."""
        self._records = config.checkpoint is not None
        secret = secrets.token_hex(32)
        with ExitStack() as stack:
            bound = [bind() for _ in range(self._count)]
            listeners = [stack.enter_context(listener) for listener, _ in bound]
            addresses = [address for _, address in bound]
            for number, listener in enumerate(listeners):
                self._channels[number], theirs = pair()
                self._watches[number], watch = socket.socketpair()
                with theirs, watch, held_back():
                    inherited = (
                        theirs.fileno(),
                        listener.fileno(),
                        watch.fileno(),
                        *(more[number] if more else ()),
                    )
                    self._running[number] = subprocess.Popen(
                        _command(*inherited),
                        pass_fds=inherited,
                        stdin=subprocess.DEVNULL,
                        start_new_session=True,
                        **self._pumps.streams(),
                    )
                self._pumps.take(self._running[number])
        for number, channel in self._channels.items():
            values = {
                "workers": config.workers,
                "processes": self._count,
                "process": number,
                "addresses": addresses,
                "secret": secret,
                "connect_timeout": config.connect_timeout,
                "progress_mode": config.progress_mode,
                "high_water": config.high_water,
                "tls": config.tls,
                "stall_timeout": config.stall_timeout,
                "log": config.log,
                "telemetry": config.telemetry,
                "checkpoint": config.checkpoint,
                "memory": config.memory,
                "spill": config.spill,
                "dashboard": config.dashboard and written_address(*config.dashboard),
            }
            with suppress(ConnectionError):  # it has ended already, which is found out below
                channel.send({**task, "config": values})
            self._open.add(number)
            self._receivers[number] = Helper(
                partial(self._receive, number, channel), f"pointstamp-process-{number}", daemon=True
            )
            self._receivers[number].start()

    def _receive(self, number: int, channel: MessageChannel) -> None:
        """Passes on a process's messages, on a thread of its own: a slow one does not delay the others."""
        try:
            while True:
                # No limit: the end of the process closes the channel, and so does `close`.
                try:
                    message = channel.receive()
                except (EOFError, OSError):
                    return
                except Exception as error:  # of the program's own classes, whatever it is
                    message = {"unread": error, "echo": False, "interrupted": False}
                self._arrived.put((number, message))
        finally:
            self._arrived.put((number, None))

    @contextmanager
    def asked(self) -> Iterator[None]:
        """In the block the processes report on SIGUSR1 and SIGTERM why they wait, and then continue or end.

        Only where the program has no handlers of its own.
        """
        handlers = {REQUEST: self._on_request, signal.SIGTERM: self._on_terminate}
        main = threading.current_thread() is threading.main_thread()
        before = {number: signal.getsignal(number) for number in handlers if main}
        taken = [number for number in before if before[number] in (signal.SIG_DFL, too_early)]
        for number in taken:
            signal.signal(number, handlers[number])
        try:
            yield
        finally:
            for number in taken:
                signal.signal(number, before[number])

    def _on_request(self, number: int, frame: object) -> None:
        if os.getpid() == self._process:  # and not in a process that the program has forked
            ask_first(self._running.values())

    def _on_terminate(self, number: int, frame: object) -> None:
        """Lets the first process report why it waits, and ends as the signal would have ended this program.

        The others end when this process closes their sockets. A second signal ends it at once.
        """
        signal.signal(number, signal.SIG_DFL)
        if self._begun and self._records and not self._failures and os.getpid() == self._process:
            self._send(number)  # they make a checkpoint, and end
            return
        if self._begun and not self._failures and os.getpid() == self._process:
            ask_first(self._running.values(), number)
            with suppress(subprocess.TimeoutExpired):
                next(iter(self._running.values())).wait(LAST_WORDS)
            self._pumps.drain(LAST_WORDS)
        signal.raise_signal(number)

    def until_all_have_answered(self) -> None:
        """Returns when every process has answered or ended, or has had its time after another's failure."""
        while self._open:
            left = None if self._deadline is None else self._deadline - time.monotonic()
            if left is not None and left <= 0:
                return
            with suppress(queue.Empty):
                self._take(*self._arrived.get(timeout=LOOK if left is None else min(left, LOOK)))
            if len(self._ready) == self._count and not self._begun and not self._failures:
                self._begun = True
                for channel in self._channels.values():
                    with suppress(ConnectionError):
                        channel.send("go")

    def _take(self, number: int, message: Any) -> None:
        if message is None:
            self._open.discard(number)
            if number not in self.answers:
                self._fails(number, {"lost": True, "echo": False, "interrupted": False})
        elif "ready" in message:
            self._ready.add(number)
        else:
            self.answers[number] = message
            if "results" not in message:
                self._fails(number, message)

    def _fails(self, number: int, answer: dict[str, Any]) -> None:
        self._failures.append((number, answer))
        if self._deadline is None:
            # Before all are ready none has begun, and there is nothing to wait for.
            self._deadline = time.monotonic() + (PATIENCE if self._begun else 0.0)

    def raise_failure(self) -> None:
        """Raises the exception of the first process that failed by itself."""
        for echo in (False, True):
            for number, answer in self._failures:
                if answer["echo"] == echo:
                    raise self._exception(number, answer)
        if len(self.answers) < self._count:
            raise ClusterError("the processes did not end in time, and were killed")
        self.answers = dict(sorted(self.answers.items()))

    def _exception(self, number: int, answer: dict[str, Any]) -> BaseException:
        if "lost" in answer:
            process = self._running[number]
            with suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE)
            code = process.returncode
            how = f"ended with exit code {code}"
            if code is not None and code < 0:
                how = f"was killed by {signal.Signals(-code).name}"
            return LostProcess(f"process {number}, of {self._count}, {how} before its workers had ended")
        if "unread" in answer:
            unread = answer["unread"]
            why = TypeError(
                f"the results of process {number} cannot be unpickled in this process: "
                f"{type(unread).__name__}: {unread}. Return plain data, or objects of classes that this "
                "program can import"
            )
            why.__cause__ = unread
            return why
        error: BaseException = ClusterError(f"process {number} failed: {answer['words']}")
        if answer["error"] is not None:
            try:
                error = pickle.loads(answer["error"])
            except Exception:  # a class that only the process has
                return error
            if not getattr(error, "__notes__", None):
                for note in answer["notes"]:
                    add_note(error, note)
            where = answer["words"].partition("\n\n")[2]
            with suppress(
                Exception
            ):  # of a class that refuses it: the exception is the program's all the same
                error.__cause__ = ClusterError(f"it was raised in process {number}\n\n{where}")
        return error

    def interrupt(self, interruption: KeyboardInterrupt) -> None:
        """Passes an interruption on, and adds a note with the reason why the processes were waiting."""
        if not self._begun:
            return
        self._send(signal.SIGINT)
        self._deadline = time.monotonic() + PATIENCE
        with suppress(KeyboardInterrupt):  # another: the wait is over
            self.until_all_have_answered()
        answers = [answer for _, answer in self._failures if "notes" in answer]
        notes = [note for answer in answers for note in answer["notes"] if note != answer["place"]]
        for note in dict.fromkeys(notes):
            add_note(interruption, note)

    def kill(self) -> None:
        """Ends the processes at once."""
        self._send(signal.SIGKILL)

    def close(self) -> None:
        """Leaves nothing behind: neither a process that still runs, nor an open file."""
        if self._failures or len(self.answers) < self._count:
            until = min(self._deadline or 0.0, time.monotonic() + PATIENCE)
        else:
            until = time.monotonic() + PATIENCE  # for the code at its exit
        try:
            for process in self._running.values():
                with suppress(subprocess.TimeoutExpired):
                    ends(process, max(0.0, until - time.monotonic()))
        finally:
            self._send(signal.SIGKILL)
            for process in self._running.values():
                process.wait()  # No limit: it was killed.
            for channel in self._channels.values():
                channel.close()
            for watch in self._watches.values():
                watch.close()
            for receiver in self._receivers.values():
                receiver.ends(PATIENCE)
            self._receivers.clear()
            self._channels.clear()  # which releases their descriptors
            self._pumps.close()

    def _send(self, number: int) -> None:
        for process in self._running.values():
            if process.poll() is None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, number)


def ends(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Waits until a process has ended.

    With a limit, `Popen.wait` polls, up to 50 ms apart. Linux reports the end at once.

    Raises:
        subprocess.TimeoutExpired: It has not, in so many seconds.
    """
    if sys.platform == "linux":
        with suppress(OSError):  # it has been waited for, or the system does not let this be asked
            descriptor = os.pidfd_open(process.pid)
            try:
                poll = select.poll()
                poll.register(descriptor, select.POLLIN)
                if poll.poll(seconds * 1000):
                    seconds = 0.0
            finally:
                os.close(descriptor)
    process.wait(seconds)


class _Pumps:
    """Passes on the output of processes where this program's output is not the system's, as in a notebook."""

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []
        self._needed = not (_is_system(sys.stdout, 1) and _is_system(sys.stderr, 2))

    def streams(self) -> dict[str, Any]:
        """The arguments of `Popen` for the standard streams."""
        if not self._needed:
            return {}
        return {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}

    def take(self, process: subprocess.Popen[bytes]) -> None:
        """Passes on the output of the process, line by line."""
        for stream, out in ((process.stdout, sys.stdout), (process.stderr, sys.stderr)):
            if stream is None:
                continue

            def pump(stream: Any = stream, out: Any = out) -> None:
                with stream:
                    for line in stream:
                        if out is not None:
                            out.write(line.decode(errors="replace"))

            thread = threading.Thread(target=pump, name="pointstamp-output", daemon=True)
            thread.start()
            self._threads.append(thread)

    def drain(self, seconds: float) -> None:
        """Waits for so long at most until all is passed on of the first process, which has ended."""
        for thread in self._threads[:2]:
            thread.join(seconds)

    def close(self) -> None:
        """Waits until all is passed on; the processes have ended."""
        for thread in self._threads:
            thread.join(PATIENCE)


def _is_system(stream: Any, descriptor: int) -> bool:
    try:
        return bool(stream.fileno() == descriptor)
    except (AttributeError, OSError, ValueError):
        return False


def _command(channel: int, listener: int, watch: int, *more: int) -> list[str]:
    """An interpreter like this one, with the same path to look for modules on."""
    program = (
        f"import sys; sys.path[:] = {sys.path!r}; "
        "from pointstamp.runtime.launcher.spawned import begin; "
        f"begin({channel}, {listener}, {watch}, {more})"
    )
    warnings = [f"-W{option}" for option in sys.warnoptions]
    options = [f"-X{name}" if value is True else f"-X{name}={value}" for name, value in sys._xoptions.items()]
    return [sys.executable, *warnings, *options, "-c", program]
