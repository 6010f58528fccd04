"""Captures through named pipes: a side that waits for the other does not stop the rest of the program."""

import os
import resource
import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import pointstamp as ps
from harness import wait_until
from pointstamp.capture import Messages

RECORDS = [f"record {n}" * 20 for n in range(20_000)]  # more than a pipe holds


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def write(path: Path, records: list[str] = RECORDS) -> None:
    ps.example(lambda scope: scope.to_stream(records).capture_into(ps.EventWriter(path)))


def replayed(path: Path, workers: int = 1) -> list[Any]:
    def main(worker: ps.Worker) -> ps.Capture[Any]:
        with worker.dataflow() as scope:
            mine = [ps.EventReader(path, allow_pickle=True)] if worker.index == 0 else []
            captured: ps.Capture[Any] = scope.replay(mine).capture()
        return captured

    captures = ps.execute(main, workers=workers)
    return sorted(r for capture in captures for _, records in capture.extract() for r in records)


class Background(threading.Thread):
    """A thread that keeps what its function raises."""

    def __init__(self, target: Any, *args: Any) -> None:
        super().__init__(daemon=True)
        self._wanted: Callable[[], object] = partial(target, *args)
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._wanted()
        except BaseException as error:
            self.error = error

    def end(self) -> None:
        self.join(120)
        assert not self.is_alive()
        if self.error is not None:
            raise self.error


@pytest.mark.parametrize("workers", [1, 2])
def test_events_cross_a_pipe_whoever_comes_first(workers: int, pipe: Path) -> None:
    writing = Background(write, pipe)  # and waits for who reads
    assert replayed(pipe, workers) == sorted(RECORDS)
    writing.end()
    got: list[Any] = []
    reading = Background(lambda: got.extend(replayed(pipe, workers)))
    write(pipe)
    reading.end()
    assert got == sorted(RECORDS)


def test_a_program_with_many_open_files_uses_pipes(pipe: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 1_400 if hard == resource.RLIM_INFINITY else min(1_400, hard)
    if wanted < 1_400:
        pytest.skip(f"this system gives {hard} open files at most")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    try:
        with ExitStack() as files:
            for _ in range(1_100):
                files.enter_context(Path(os.devnull).open("rb"))
            writing = Background(write, pipe)
            assert replayed(pipe) == sorted(RECORDS)
            writing.end()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def reads() -> bool:
    """Whether a thread reads for a reader."""
    return any(thread.name == "pointstamp reader" for thread in threading.enumerate())


def test_a_reader_that_waits_answers_and_is_let_go_of(pipe: Path) -> None:
    reader = ps.EventReader(pipe, allow_pickle=True)

    def read() -> None:
        with pytest.raises(ps.CodecError, match="nothing was captured"):
            list(reader)

    reading = Background(read)
    wait_until(reads)
    assert reader.offset == 0
    assert reader.frontier == []
    reader.close()
    reading.end()
    wait_until(lambda: not reads())


def test_a_pipe_is_followed_over_several_writers(pipe: Path) -> None:
    data = Path(f"{pipe}.data")
    write(data, ["a", "b"])
    whole = data.read_bytes()
    reader = ps.EventReader(pipe, allow_pickle=True, follow=True)
    events: list[Any] = []
    reading = Background(lambda: events.extend(reader))
    for part in (whole[:20], whole[20:]):
        with pipe.open("wb") as file:
            file.write(part)
    reading.end()
    assert [event.data for event in events if isinstance(event, Messages)] == [["a", "b"]]


def test_a_writer_that_waits_is_stopped_by_the_failure_of_another_worker(pipe: Path) -> None:
    waits = threading.Event()

    def main(worker: ps.Worker) -> None:
        if worker.index == 0:
            with worker.dataflow() as scope:
                stream = scope.to_stream(["a"])
                waits.set()
                stream.capture_into(ps.EventWriter(pipe))
        else:
            waits.wait()
            raise KeyError("lost")

    with pytest.raises(KeyError, match="lost"):
        ps.execute(main, workers=2)


def test_two_writers_of_one_pipe_are_refused(pipe: Path) -> None:
    held = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(ps.GraphError, match=r"another writer is writing to .*pipe"):

            def both(scope: ps.Scope) -> None:
                for _ in range(2):
                    scope.to_stream(["a"]).capture_into(ps.EventWriter(pipe))

            ps.example(both)
    finally:
        os.close(held)


def test_a_pipe_whose_reader_goes_is_an_error(pipe: Path) -> None:
    writing = Background(write, pipe)
    descriptor = os.open(pipe, os.O_RDONLY)
    wait_until(lambda: bool(os.read(descriptor, 1)))
    os.close(descriptor)
    with pytest.raises(BrokenPipeError):
        writing.end()
