"""Pools of real processes, which form a cluster for one function of a module after another."""

from __future__ import annotations

import importlib
import signal
import socket
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import pointstamp as ps
from clusters import Process
from pointstamp.cluster import bind

PATIENCE = 40.0
"""Seconds after which a cluster that has not ended counts as hanging."""


HERE = str(Path(__file__).parent)

SERVE = "import sys; sys.path.insert(0, sys.argv.pop(1)); import pools; pools.serve()"


class Failure(NamedTuple):
    """The failure of a process of a pool."""

    kind: str
    text: str
    notes: list[str]


class Pool:
    """Processes that form a cluster for each program that they are given, at the same addresses."""

    def __init__(self, processes: int) -> None:
        self.addresses = []
        for _ in range(processes):
            listener, address = bind()
            listener.close()
            self.addresses.append(address)
        self._processes: list[Process] = []
        self._pipes: list[Connection] = []
        for number in range(processes):
            ours, theirs = socket.socketpair()
            self._pipes.append(Connection(ours.detach()))
            with theirs:
                arguments = [HERE, str(theirs.fileno()), str(number), *self.addresses]
                python = [sys.executable, "-W", "error", "-X", "faulthandler"]
                command = [*python, "-c", SERVE, *arguments]
                self._processes.append(Process(command, (theirs.fileno(),)))

    def run(
        self, function: Callable[..., Any], *arguments: Any, workers: int = 1, **options: Any
    ) -> list[Any]:
        """Runs `function(worker, *arguments)`, a function of a module, on every worker of every process.

        Returns, for each process, the list of its workers' results, or a `Failure`.
        """
        return self._ask((function.__module__, function.__qualname__, arguments, workers, options))

    def call(self, function: Callable[[], Any]) -> list[Any]:
        """Returns the result of a function of a module in each process, without a cluster."""
        return self._ask((function.__module__, function.__qualname__, (), 0, {}))

    def _ask(self, question: tuple[Any, ...]) -> list[Any]:
        for pipe in self._pipes:
            pipe.send(question)
        deadline = time.monotonic() + PATIENCE
        results = []
        for number, pipe in enumerate(self._pipes):
            process = self._processes[number]
            if not pipe.poll(max(0.0, deadline - time.monotonic())):
                process.kill(signal.SIGABRT)  # faulthandler shows where it was
                process.popen.wait(60)
                raise AssertionError(f"process {number} hangs: {self._processes}")
            try:
                results.append(pipe.recv())
            except EOFError:
                raise AssertionError(f"process {number} has died: {self._processes}") from None
        return results

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        for process, pipe in zip(self._processes, self._pipes, strict=True):
            process.close()
            pipe.close()


def serve() -> None:
    """Runs a process of a pool."""
    descriptor, number, *addresses = sys.argv[1:]
    pipe = Connection(int(descriptor))
    while True:
        try:
            module, name, arguments, workers, options = pipe.recv()
        except EOFError:
            return
        function = getattr(importlib.import_module(module), name)
        if workers == 0:
            pipe.send(function())
            continue
        config = ps.Config(
            workers=workers,
            processes=len(addresses),
            process=int(number),
            addresses=addresses,
            **{"secret": "of the tests", **options},
        )
        pipe.send(served(function, arguments, config))


def served(function: Callable[..., Any], arguments: tuple[Any, ...], config: ps.Config) -> Any:
    try:
        return ps.execute(lambda worker: function(worker, *arguments), config=config)
    except BaseException as error:
        return Failure(type(error).__name__, str(error), list(getattr(error, "__notes__", [])))
