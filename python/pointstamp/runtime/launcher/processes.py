"""Starting the processes of a cluster on this machine, and watching over them until the last has ended.

Every process gets a listening socket on the loopback interface that is bound already, so that no port can be
taken by another program in between, and a secret made for this run. Each leads a process group of its own. So
a signal reaches it once, through the launcher, whether a terminal or a program sent it, and its child
processes get it, too.

One thread waits for everything: output, signals, and the ends of processes, which the system also reports by
a signal.
"""

from __future__ import annotations

import os
import secrets
import selectors
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import IO, TYPE_CHECKING, NamedTuple

from pointstamp.cluster import bind
from pointstamp.observability.status_line import Line
from pointstamp.runtime.launcher.output import Lines
from pointstamp.runtime.launcher.restarting import Starts, say_restart
from pointstamp.runtime.launcher.started import ECHO, Place
from pointstamp.runtime.launcher.stop_requests import REQUEST, ask_first, held_back

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pointstamp.restart import Restart

PATIENCE = 5.0
"""Seconds that the others have to end by themselves after the first failure."""

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

CHUNK = 1 << 16
"""The number of bytes that are read at once: the capacity of a pipe."""

LEFT_BEHIND = 1 << 20
"""Bytes that are still taken from a stream after every process has ended."""


class Failure(NamedTuple):
    """A process that ended badly, and whether it only followed another one."""

    process: int
    code: int
    echo: bool


def run(command: Sequence[str], processes: int, *, label: bool, restart: Restart | None = None) -> int:
    """Starts the processes, joins their output, and returns the exit code of the first that failed.

    It does not return when a signal that was passed on ended the program: then this process ends by it, too.

    Args:
        command: The command of each process, which finds its `Place` in its environment.
        processes: The number of processes.
        label: Whether each line of output is marked with its process.
        restart: When all are started again because one was lost; None for never.
    """
    starts = None if restart is None else Starts(restart)
    while True:
        with _signals() as arriving, closing(_Watch(arriving, label)) as watch:
            watch.start(command, processes)
            watch.until_all_have_ended()
        lost = watch.lost()
        wait = None if starts is None or lost is None else starts.lost()
        if lost is None or wait is None:
            return _end_as(watch.failures, watch.passed_on)
        say_restart(f"process {lost} was lost", wait)
        time.sleep(wait)


@contextmanager
def _signals() -> Iterator[socket.socket]:
    """Every signal that concerns us arrives on the socket, as its number; ignored ones stay ignored."""
    arriving, waking = socket.socketpair()
    for end in (arriving, waking):
        end.setblocking(False)
    before = {number: signal.getsignal(number) for number in (*PASSED_ON, REQUEST, signal.SIGCHLD)}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN or number == signal.SIGCHLD:
            signal.signal(number, lambda number, frame: None)
    wakeup = signal.set_wakeup_fd(waking.fileno(), warn_on_full_buffer=False)
    try:
        yield arriving
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
        arriving.close()
        waking.close()


def _end_as(failures: list[Failure], passed_on: set[int]) -> int:
    """The exit code for the failures, in order; an end by a signal is ours as well if we passed it on."""
    code = next((failure.code for failure in sorted(failures, key=lambda failure: failure.echo)), 0)
    ending = signal.SIGPIPE if signal.SIGPIPE in passed_on else -code
    if ending in passed_on - {signal.SIGKILL}:
        signal.signal(ending, signal.SIG_DFL)
        os.kill(os.getpid(), ending)
    return code if code >= 0 else 128 - code  # as shells count


class _Watch:
    """The processes, and the event sources of the launcher."""

    def __init__(self, arriving: socket.socket, label: bool) -> None:
        self.failures: list[Failure] = []
        self.passed_on: set[int] = set()
        self._label = label
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._watches: dict[int, socket.socket] = {}
        self._open: dict[IO[bytes], Lines] = {}
        self._deadline: float | None = None
        self._arriving = arriving
        self._line = Line()
        self._waiting = selectors.DefaultSelector()
        self._waiting.register(arriving, selectors.EVENT_READ, self._take_signals)

    def start(self, command: Sequence[str], processes: int) -> None:
        """Starts all processes."""
        # A terminal's input is not for processes outside of its session.
        first_input = subprocess.DEVNULL if sys.stdin is None or sys.stdin.isatty() else None
        secret = secrets.token_hex(32)
        with ExitStack() as stack:  # the listening sockets are the processes': here, they are closed
            bound = [bind() for _ in range(processes)]
            listeners = [stack.enter_context(listener) for listener, _ in bound]
            addresses = [address for _, address in bound]
            for number, listener in enumerate(listeners):
                self._watches[number], watch = socket.socketpair()
                with watch, held_back():
                    handed = (listener.fileno(), watch.fileno())
                    process = subprocess.Popen(
                        command,
                        env=os.environ
                        | Place(number, addresses, secret, *handed, self._line.is_shown).to_environment(),
                        pass_fds=handed,
                        stdin=first_input if number == 0 else subprocess.DEVNULL,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE,
                        start_new_session=True,
                    )
                self._running[number] = process
                self._join(process.stdout, 1, number)
                self._join(process.stderr, 2, number)

    def _join(self, stream: IO[bytes] | None, out: int, number: int) -> None:
        assert stream is not None  # a pipe was asked for
        os.set_blocking(stream.fileno(), False)
        self._open[stream] = Lines(out, f"[{number}] ".encode() if self._label else b"", self._line)
        self._waiting.register(stream, selectors.EVENT_READ, lambda: self._take_output(stream))

    def until_all_have_ended(self) -> None:
        """Returns when the last process has ended, and its output is passed on."""
        while self._running:
            left = None if self._deadline is None else max(0.0, self._deadline - time.monotonic())
            for key, _ in self._waiting.select(left):
                take: Callable[[], object] = key.data
                take()
            self._reap()
            if self._deadline is not None and time.monotonic() >= self._deadline:
                self._kill_the_rest()
        for stream in list(self._open):
            # Not until it ends: a child of the process may hold it open, and write on.
            for _ in range(LEFT_BEHIND // CHUNK):
                if not self._take_output(stream):
                    break

    def lost(self) -> int | None:
        """The process that was killed first, by no signal that was passed on; None where none was."""
        first = next((failure for failure in self.failures if not failure.echo), None)
        if first is None or first.code >= 0 or self.passed_on - {signal.SIGKILL}:
            return None
        return first.process

    def close(self) -> None:
        """Leaves nothing behind: neither a process that still runs, nor an open file."""
        self._send(signal.SIGKILL)
        for process in self._running.values():
            # No limit: it was killed.
            process.wait()
        for stream, lines in self._open.items():
            with suppress(BrokenPipeError):
                lines.end()
            stream.close()
        for watch in self._watches.values():
            watch.close()
        self._waiting.close()
        self._line.close()

    def _take_signals(self) -> None:
        for number in self._arriving.recv(CHUNK):
            if number == REQUEST:
                # In their order; and none of them can be another's: they have not been waited for yet.
                ask_first(self._running.values())
            elif number != signal.SIGCHLD:
                self.passed_on.add(number)
                self._send(number)

    def _take_output(self, stream: IO[bytes]) -> bool:
        """Passes on readable output; returns whether there was any."""
        if stream not in self._open:
            return False
        try:
            data = os.read(stream.fileno(), CHUNK)
        except BlockingIOError:
            return False
        lines = self._open[stream]
        try:
            if data:
                lines.feed(data)
            else:
                self._waiting.unregister(stream)
                del self._open[stream]
                stream.close()
                lines.end()
        except BrokenPipeError:
            # The reader of our output has closed, as `head` does: there is nothing left to run for.
            if signal.SIGPIPE not in self.passed_on:
                self.passed_on.add(signal.SIGPIPE)
                self._send(signal.SIGTERM)
        return bool(data)

    def _send(self, number: int) -> None:
        """Sends a signal to the processes that run, and to their children."""
        for process in self._running.values():
            # Its number cannot be another's: it has not been waited for yet.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, number)

    def _reap(self) -> None:
        """Takes note of the processes that have ended."""
        for number, process in list(self._running.items()):
            code = process.poll()
            if code is None:
                continue
            del self._running[number]
            if code == 0:
                continue
            if not self.failures:
                self._deadline = time.monotonic() + PATIENCE
            if code < 0 and -code not in self.passed_on:
                _say(f"process {number} was killed by {signal.Signals(-code).name}")
            self.failures.append(Failure(number, code, self._is_echo(number)))

    def _is_echo(self, number: int) -> bool:
        watch = self._watches[number]
        watch.setblocking(False)
        try:
            return watch.recv(1) == ECHO
        except OSError:
            return False

    def _kill_the_rest(self) -> None:
        self._deadline = None
        for number in self._running:
            _say(
                f"process {number} still ran {PATIENCE:g} seconds after process {self.failures[0].process} "
                "had failed, and is killed"
            )
        self.passed_on.add(signal.SIGKILL)
        self._send(signal.SIGKILL)


def _say(sentence: str) -> None:
    print(f"pointstamp: {sentence}", file=sys.stderr, flush=True)
