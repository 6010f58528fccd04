"""Running a program on several processes, in two ways.

`execute` makes every process a thread of this interpreter, with connections of its own over the loopback
interface: closures and lists can be looked at by the test, and it starts quickly, so that properties can be
tested. `Pool` has real processes, which run one program after another; `Program` starts real processes for
one script.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

import pointstamp as ps
from pointstamp.cluster import bind

R = TypeVar("R")

alone = ps.execute  # before `on_processes` puts another in its place

SECRET = "of the tests"
PATIENCE = 40.0
"""Seconds after which a cluster that has not ended is one that hangs."""

SHAPES = [(2, 1), (2, 2), (3, 1), (3, 2)]
"""Processes, and workers of each."""


def outcomes(
    main: Callable[[ps.Worker], R], processes: int, workers: int = 1, **options: Any
) -> list[list[R] | BaseException]:
    """What `pointstamp.execute` returns or raises in each of several processes, which are threads."""
    bound = [bind() for _ in range(processes)]
    addresses = [address for _, address in bound]
    found: list[list[R] | BaseException] = [AssertionError("it did not end")] * processes

    def process(number: int) -> None:
        try:
            config = ps.Config(
                workers=workers,
                processes=processes,
                process=number,
                addresses=addresses,
                **{"secret": SECRET, **options},
            )
            found[number] = alone(main, config=config, listener=bound[number][0])
        except BaseException as error:
            found[number] = error

    threads = [threading.Thread(target=process, args=(number,)) for number in range(processes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def execute(main: Callable[[ps.Worker], R], processes: int, workers: int = 1, **options: Any) -> list[R]:
    """As `pointstamp.execute` of as many workers; raises what was raised where it happened."""
    found = outcomes(main, processes, workers, **options)
    failures = [outcome for outcome in found if isinstance(outcome, BaseException)]
    for failure in failures:
        if not isinstance(failure, ps.ClusterError):
            raise failure
    for failure in failures:
        raise failure
    return [result for outcome in found if isinstance(outcome, list) for result in outcome]


# ------------------------------------------------------------ real processes, for one program after another


class Failure(NamedTuple):
    """How a process of a pool failed."""

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
        # Closed by `pool`.
        self._errors = [tempfile.TemporaryFile("w+") for _ in range(processes)]  # noqa: SIM115
        self._processes: list[subprocess.Popen[bytes]] = []
        self._pipes: list[Connection] = []
        for number in range(processes):
            self._start(number)

    def _start(self, number: int) -> None:
        import socket

        ours, theirs = socket.socketpair()
        with theirs:
            self._processes.append(
                subprocess.Popen(
                    [
                        sys.executable,
                        "-W",
                        "error",
                        "-c",
                        "import processes; processes.serve()",
                        *map(str, (theirs.fileno(), number)),
                        *self.addresses,
                    ],
                    stdout=self._errors[number],
                    stderr=self._errors[number],
                    pass_fds=[theirs.fileno()],
                    cwd=Path(__file__).parent,
                )
            )
        self._pipes.append(Connection(ours.detach()))

    def run(
        self, function: Callable[..., Any], *arguments: Any, workers: int = 1, **options: Any
    ) -> list[Any]:
        """Runs `function(worker, *arguments)`, a function of a module, on every worker of every process.

        Returns, for each process, the list of its workers' results, or a `Failure`.
        """
        return self._ask((function.__module__, function.__qualname__, arguments, workers, options))

    def call(self, function: Callable[[], Any]) -> list[Any]:
        """What a function of a module returns in each process, without a cluster."""
        return self._ask((function.__module__, function.__qualname__, (), 0, {}))

    def _ask(self, question: tuple[Any, ...]) -> list[Any]:
        for pipe in self._pipes:
            pipe.send(question)
        deadline = time.monotonic() + PATIENCE
        results = []
        for number, pipe in enumerate(self._pipes):
            if not pipe.poll(max(0.0, deadline - time.monotonic())):
                self.close(signal.SIGABRT)
                raise AssertionError(f"process {number} of {len(self._pipes)} hangs\n{self.errors()}")
            try:
                results.append(pipe.recv())
            except EOFError:
                raise AssertionError(f"process {number} has died\n{self.errors()}") from None
        return results

    def errors(self) -> str:
        """What the processes have printed."""
        shown = []
        for number, file in enumerate(self._errors):
            file.seek(0)
            shown.append(f"process {number}:\n{file.read()}")
        return "\n".join(shown)

    def close(self, number: int = signal.SIGKILL) -> None:
        """Ends the processes."""
        for process in self._processes:
            process.send_signal(number)
        for process in self._processes:
            process.wait()
        for pipe in self._pipes:
            pipe.close()


@contextlib.contextmanager
def pool(processes: int) -> Iterator[Pool]:
    made = Pool(processes)
    try:
        yield made
    finally:
        made.close()
        for file in made._errors:
            file.close()


def serve() -> None:
    """What a process of a pool does."""
    faulthandler.enable()
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
            **{"secret": SECRET, **options},
        )
        pipe.send(served(function, arguments, config))


def served(function: Callable[..., Any], arguments: tuple[Any, ...], config: ps.Config) -> Any:
    try:
        return ps.execute(lambda worker: function(worker, *arguments), config=config)
    except BaseException as error:
        return Failure(type(error).__name__, str(error), list(getattr(error, "__notes__", [])))


# ------------------------------------------------------------ real processes, for one script


class Program:
    """Processes that run one script, as its argument says which they are: a test may signal them.

    The script finds `config`, `listener`, `ps` and `sys` defined, and what `main(worker)` is it says itself.
    """

    PREAMBLE = """
import faulthandler, socket, sys
faulthandler.enable()
import pointstamp as ps
number, descriptor, workers, *addresses = sys.argv[1:]
listener = socket.socket(fileno=int(descriptor))
config = ps.Config(
    workers=int(workers),
    processes=len(addresses),
    process=int(number),
    addresses=addresses,
    secret="of the tests",
)
"""

    def __init__(self, script: str, processes: int, workers: int = 1) -> None:
        bound = [bind() for _ in range(processes)]
        self.addresses = [address for _, address in bound]
        self.processes = []
        for number, (listener, _) in enumerate(bound):
            arguments = [str(number), str(listener.fileno()), str(workers), *self.addresses]
            with listener:
                self.processes.append(
                    subprocess.Popen(
                        [sys.executable, "-c", self.PREAMBLE + textwrap.dedent(script), *arguments],
                        stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE,
                        text=True,
                        pass_fds=[listener.fileno()],
                        cwd=Path(__file__).parent,
                    )
                )

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> list[tuple[str, str]]:
        """Ends the processes; what they have printed."""
        for process in self.processes:
            process.kill()
        return [process.communicate() for process in self.processes]

    def line(self, number: int) -> str:
        """The next line that a process prints."""
        out: IO[str] | None = self.processes[number].stdout
        assert out is not None
        return out.readline().rstrip("\n")

    def ends(self, timeout: float = PATIENCE) -> list[tuple[int, str, str]]:
        """Waits for every process: the exit code, and the rest of its output and errors."""
        deadline = time.monotonic() + timeout
        ended = []
        for number, process in enumerate(self.processes):
            try:
                out, err = process.communicate(timeout=max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGABRT)
                out, err = process.communicate()
                raise AssertionError(f"process {number} hangs:\n{out}\n{err}") from None
            ended.append((process.returncode, out, err))
        return ended
