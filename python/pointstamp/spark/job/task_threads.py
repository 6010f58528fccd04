"""The threads of a task: one feeds a dataflow, one runs it, and the task's own hands the output to Spark."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pointstamp.spark.job.feeding import Feed
    from pointstamp.spark.packing.batches import Packed

__all__ = ["outputs_of"]


def outputs_of(
    engine: Callable[[], None],
    feed: Feed,
    pieces: Iterable[Packed],
    drain: Any,
    output: Iterable[Any],
    failures: list[BaseException],
) -> Iterator[Any]:
    """Yields the output of a dataflow while it is fed and runs.

    Args:
        engine: Runs the dataflow; stops the feed and ends the drain when it has ended.
        feed: The dataflow's inputs.
        pieces: Spark's batches for the feed, in the order of times.
        drain: The dataflow's outputs.
        output: The iterator of the drain that the task hands to Spark.
        failures: The exceptions that `engine` has caught.
    """
    # The reader cannot be interrupted while Spark sends nothing: it is a daemon, and ends with its input.
    reader = threading.Thread(target=lambda: feed.fill(pieces), name="pointstamp-input", daemon=True)
    runner = threading.Thread(target=engine, name="pointstamp-dataflow", daemon=True)
    reader.start()
    runner.start()
    try:
        yield from output
    finally:
        drain.stop()
        feed.stop()
        runner.join()  # No limit: the dataflow processes the rest, or was stopped.
    if not failures:
        reader.join()  # No limit: it has read all, as the dataflow could not have ended before.
