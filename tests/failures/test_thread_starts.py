"""A thread that cannot be started, or whose start is interrupted, leaves none behind, and no open file."""

import io
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pointstamp as ps
from pointstamp.connectors import JSONLinesSource


class Struck(threading.Event):
    """Raised in place of the word to `Thread.start` that the thread has begun."""

    def wait(self, timeout: float | None = None) -> bool:
        raise KeyboardInterrupt


def step(worker: ps.Worker) -> None:
    for _ in range(3):
        worker.step_or_park(0.01)


def shows(**settings: Any) -> Callable[[Path], None]:
    def run(folder: Path) -> None:
        given: dict[str, Any] = {
            name: folder / "log" if value is Path else value for name, value in settings.items()
        }
        ps.execute(step, config=ps.Config(**given))

    return run


def reads(folder: Path) -> None:
    for number in range(3):
        (folder / f"{number}.jsonl").write_text(f"{number}\n")

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            seen: list[Any] = []
            scope.read(JSONLinesSource(folder, follow=True)).inspect(seen.append)
        worker.step_while(lambda: not seen)
        worker.drop_dataflow(scope.address[0])

    ps.execute(main)


def bars(_: Path) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            probe = scope.to_stream([1]).probe()
        with ps.progress_bar(probe, total=2, file=io.StringIO()):
            worker.run()

    ps.execute(main)


def serves(_: Path) -> None:
    with ps.Interactive() as session:
        session.run(lambda worker: worker.index)


KINDS = {
    "session": serves,
    "workers": shows(workers=2),
    "page": shows(dashboard=0),
    "log": shows(log=Path),
    "page and log": shows(dashboard=0, log=Path, workers=2),
    "report": lambda _: ps.execute(step, stall_report=60.0) and None,
    "read": reads,
    "bar": bars,
}


def threads() -> set[threading.Thread]:
    return set(threading.enumerate())


def files() -> list[str]:
    return os.listdir("/proc/self/fd")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="how descriptors are listed is Linux's")
@pytest.mark.parametrize(
    "how", ["is refused", "is interrupted before it begins", "is interrupted when it has"]
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_thread_that_is_not_started_leaves_nothing(
    kind: str, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, struck, count = threading.Thread.start, 0, 0

    def start(thread: threading.Thread) -> None:
        nonlocal count
        count += 1
        if count == struck:
            if how == "is refused":
                raise RuntimeError("can't start new thread")
            if how == "is interrupted before it begins":
                raise KeyboardInterrupt
            monkeypatch.setattr(thread, "_started", Struck())
        original(thread)

    def run(name: str) -> None:
        (tmp_path / name).mkdir()
        KINDS[kind](tmp_path / name)

    run("once")  # what is made once for all computations
    monkeypatch.setattr(threading.Thread, "start", start)
    while True:
        struck, count = struck + 1, 0
        before, opened = threads(), files()
        try:
            run(str(struck))
        except (RuntimeError, KeyboardInterrupt):
            pass
        else:
            assert count < struck, "it was not noticed that a thread was not started"
            break
        # One that was kept from beginning may need a moment to find that out.
        end = time.monotonic() + 120
        while threads() - before or len(files()) > len(opened):
            assert time.monotonic() < end, (struck, threads() - before, files())
            time.sleep(0.001)
    assert struck > 1
