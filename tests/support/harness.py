"""Helpers of several test files: running a program on some workers, and reading its results."""

import re
import subprocess
import sys
import textwrap
import threading
import time as clock
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pointstamp as ps

T = TypeVar("T")

WORKERS = [1, 2, 4]

Logic = Callable[..., None]
"""The result of an operator's constructor."""


class Seen(list[T]):
    """A list that several workers append to."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()

    def note(self, item: T) -> None:
        with self._lock:
            self.append(item)


def run(workers: int, build: Callable[[ps.Scope], Any]) -> list[Any]:
    """Builds the same dataflow on each worker, runs it, and returns the results of `build`, by worker."""

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            built = build(scope)
        worker.run()
        return built

    return ps.execute(main, workers=workers)


def share(scope: ps.Scope, items: Iterable[T]) -> ps.Stream[T]:
    """The items, dealt out to the workers."""
    return scope.to_stream([item for i, item in enumerate(items) if i % scope.peers == scope.index])


def merged(captures: Iterable[ps.Capture[Any]]) -> dict[ps.Time, Counter[Any]]:
    """Returns the records that all workers captured, per time."""
    result: dict[ps.Time, Counter[Any]] = {}
    for capture in captures:
        for time, records in capture.extract():
            result.setdefault(time, Counter()).update(records)
    return result


def passing(cap: ps.Capability, info: ps.OperatorInfo) -> Logic:
    """The constructor of an operator that passes everything on."""
    cap.drop()

    def logic(port: ps.InputPort[Any], output: ps.OutputPort[Any]) -> None:
        for message, records in port:
            with output.session(message) as session:
                session.give_all(records)

    return logic


def every(*calls: Callable[[], object]) -> tuple[Callable[[], object], ...]:
    """Several calls to try one after another."""
    return calls


def count_to(n: int, workers: int) -> int:
    """Sends `n` records around between workers; returns how many arrived."""

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            capture = scope.to_stream(range(worker.index, n, worker.peers)).exchange(lambda x: x).capture()
        worker.run()
        return capture.extract()

    return sum(len(records) for result in ps.execute(main, workers=workers) for _, records in result)


def notes(error: BaseException) -> list[str]:
    """Returns the notes on an exception, on every version of Python."""
    return list(getattr(error, "__notes__", []))


def wait_until(done: Callable[[], object], process: "subprocess.Popen[bytes] | None" = None) -> None:
    """Waits for something that others do, and a process, if there is one, has to live for."""
    until = clock.monotonic() + 40
    while not done():
        assert process is None or process.poll() is None, "the process has ended"
        assert clock.monotonic() < until, "it did not happen"
        clock.sleep(0.01)


@contextmanager
def running(*words: str) -> "Iterator[subprocess.Popen[bytes]]":
    """A process that is killed at the end."""
    with subprocess.Popen(words) as process:
        try:
            yield process
        finally:
            process.kill()


def code_block(chapter: str, names: str) -> str:
    """The one program of a chapter that names something and is not run with it: it needs a server."""
    text = (Path(__file__).parents[2] / "docs" / chapter).read_text(encoding="utf-8")
    found = [
        block for block in re.findall(r"```{code-block} python\n(.*?)```", text, re.DOTALL) if names in block
    ]
    assert len(found) == 1, f"{len(found)} programs of {chapter} name {names}"
    return str(found[0])


def script(program: str, *, timeout: float = 380, fails: bool = False) -> str:
    """Runs a program in an interpreter of its own; returns its output, with its errors."""
    result = subprocess.run(
        [sys.executable, "-W", "error", "-X", "faulthandler", "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        cwd=Path(__file__).parent,
    )
    output = result.stdout + result.stderr
    assert (result.returncode != 0) == fails, (result.returncode, output)
    return output
