"""Clusters of processes for tests: each is an interpreter of its own that runs a short program.

The listening sockets are bound here and inherited, so no port is taken in between. The program of a process
is text: it defines `main(worker)`, and finds its `config` made.
"""

import ast
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Any

from pointstamp.cluster import bind

PRELUDE = """
import json, os, socket, sys, time
import pointstamp as ps

options = json.loads(sys.argv[1])
descriptor = options.pop("listener")
listener = None if descriptor is None else socket.socket(fileno=descriptor)
config = ps.Config(**options)

def say(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\\n")
    sys.stdout.flush()
"""

EXECUTE = """
for index, result in enumerate(ps.execute(main, config=config, listener=listener)):
    say("result", config.process * config.workers + index, repr(result))
"""


class Process:
    """A process of the cluster; its output goes to files, so that it never waits for us."""

    def __init__(self, command: Sequence[str], descriptors: tuple[int, ...]) -> None:
        self._files = [tempfile.TemporaryFile() for _ in range(2)]  # noqa: SIM115  # `close` closes them
        self.popen = subprocess.Popen(
            command,
            pass_fds=descriptors,
            stdin=subprocess.DEVNULL,
            stdout=self._files[0],
            stderr=self._files[1],
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )

    @property
    def out(self) -> str:
        """Returns the text that it has printed."""
        return self._read(0)

    @property
    def err(self) -> str:
        """Returns the text that it has written to its standard error."""
        return self._read(1)

    @property
    def code(self) -> int | None:
        """Its exit code; None while it runs."""
        return self.popen.poll()

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Sends it a signal."""
        self.popen.send_signal(number)

    def close(self) -> None:
        """Makes sure that it has ended."""
        self.popen.kill()
        self.popen.wait()
        for file in self._files:
            file.close()

    def _read(self, which: int) -> str:
        descriptor = self._files[which].fileno()  # its position is the process's, so it is left alone
        return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode()

    def __repr__(self) -> str:
        return f"exit code {self.code}\n{self.out}{self.err}"


class Cluster:
    """Processes that are to find each other; whatever happens, none outlives the `with` block.

    Args:
        program: The program of each process, after the prelude; `main` is executed unless `execute` is False.
        processes: The number of processes.
        start: Which are started at once; the others are by `start`.
        prefix: A command to start process i with, such as to put it into a network of its own.
        addresses: Where they are found; left out: on sockets that are bound here and handed down.
        options: For the configurations of all.
    """

    def __init__(
        self,
        program: str,
        processes: int = 2,
        *,
        start: Iterable[int] | None = None,
        execute: bool = True,
        prefix: Sequence[Sequence[str]] | None = None,
        addresses: Sequence[str] | None = None,
        **options: Any,
    ) -> None:
        self._stack = ExitStack()
        self._text = PRELUDE + textwrap.dedent(program) + (EXECUTE if execute else "")
        self._prefix = prefix or [()] * processes
        self._listeners: list[socket.socket | None] = [None] * processes
        if addresses is None:
            bound = [bind() for _ in range(processes)]
            self._listeners = [self._stack.enter_context(listener) for listener, _ in bound]
            addresses = [address for _, address in bound]
        self.addresses = list(addresses)
        self._options = {
            "processes": processes,
            "secret": secrets.token_hex(16),
            "connect_timeout": 100.0,
            "stall_timeout": 1000.0,  # the end of a process is noticed otherwise
            **options,
        }
        self.processes: dict[int, Process] = {}
        for process in range(processes) if start is None else start:
            self.start(process)

    def start(self, process: int, /, **options: Any) -> Process:
        """Starts a process of the cluster; the options replace those of the others."""
        listener = self._listeners[process]
        options = {
            "process": process,
            "addresses": self.addresses,
            "listener": None if listener is None else listener.fileno(),
            **self._options,
            **options,
        }
        python = [sys.executable, "-W", "error", "-X", "faulthandler", "-c", self._text, json.dumps(options)]
        self.processes[process] = started = Process(
            [*self._prefix[process], *python], () if listener is None else (listener.fileno(),)
        )
        if listener is not None:
            listener.close()  # it is the process's
        return started

    def wait_for(self, line: str, processes: Iterable[int] | None = None, seconds: float = 120) -> None:
        """Waits until processes have printed this line; fails if one ends first."""
        end = time.monotonic() + seconds
        for number in self.processes if processes is None else processes:
            process = self.processes[number]
            while line not in process.out.splitlines():
                assert process.code is None, self.processes
                assert time.monotonic() < end, self.processes
                time.sleep(0.005)

    def end(self, seconds: float = 350, processes: Iterable[int] | None = None) -> None:
        """Waits until processes have ended; fails if they have not within the time."""
        end = time.monotonic() + seconds
        for number in self.processes if processes is None else processes:
            try:
                self.processes[number].popen.wait(max(0.01, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.processes[number].kill(signal.SIGABRT)  # faulthandler shows where it was
                self.processes[number].popen.wait(60)
                raise AssertionError(f"process {number} runs after {seconds} s: {self.processes}") from None

    def results(self, seconds: float = 350) -> list[Any]:
        """Returns the results of the workers' `main`, in their order, where all went well."""
        self.end(seconds)
        assert all(process.code == 0 and process.err == "" for process in self.processes.values()), (
            self.processes
        )
        lines = "".join(process.out for process in self.processes.values()).splitlines()
        found = [line.split(" ", 2) for line in lines if line.startswith("result ")]
        results = {int(worker): ast.literal_eval(text) for _, worker, text in found}
        return [results[worker] for worker in range(len(results))]

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        for process in self.processes.values():
            process.close()
        self._stack.close()


def is_free(address: str) -> bool:
    """Whether a listening socket can be bound there."""
    host, _, port = address.rpartition(":")
    with suppress(OSError), socket.create_server((host, int(port))):
        return True
    return False
