"""A progress bar that follows a probe, in terminals and notebooks."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pointstamp.errors import ConfigError
from pointstamp.runtime.threads import Helper, join

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pointstamp._core import ProbeHandle

__all__ = ["progress_bar"]

EVERY = 0.1
"""Seconds between two looks at the probe."""


@contextmanager
def progress_bar(probe: ProbeHandle, *, total: int, name: str = "", **options: Any) -> Iterator[Any]:
    """Shows the progress of a probe, for as long as the block runs. It needs the package `tqdm`.

    The bar counts in times: it stands where the least first coordinate of the frontier is, and at the end
    when no time is possible any more. A thread looks at the probe ten times a second; no worker is asked.

    Args:
        probe: The probe.
        total: The time at which everything is done: the number of times, where they are counted from 0.
        name: The text before the bar.
        options: For `tqdm`, such as ``unit="days"`` or ``disable=worker.index > 0``.

    Raises:
        ConfigError: If tqdm is not installed, or `total` is not a number above 0.

    Examples:
        >>> import io
        >>> import pointstamp as ps
        >>> def main(worker):
        ...     with worker.dataflow() as scope:
        ...         days, stream = scope.new_input()
        ...         probe = stream.probe()
        ...     with ps.progress_bar(probe, total=30, unit="days", file=io.StringIO()) as bar:
        ...         for day in range(30):
        ...             days.advance_to(day + 1)
        ...             worker.step_while(lambda: probe.less_than(day + 1))
        ...     return bar.n
        >>> ps.execute(main)
        [30]
    """
    try:
        from tqdm.auto import tqdm
    except ImportError:
        raise ConfigError("a progress bar is drawn by tqdm: pip install tqdm") from None
    if total < 1:
        raise ConfigError(f"the total of a progress bar is a number above 0, and is {total}")
    ended = threading.Event()

    def look() -> None:
        times = [time[0] if isinstance(time, tuple) else time for time in probe.frontier]
        bar.n = max(bar.n, min(total, min(times, default=total)))
        bar.refresh()

    def follow() -> None:
        while not ended.wait(EVERY):
            look()

    # The bar is refreshed here, and needs no thread of tqdm's for that.
    quiet = type("Bar", (tqdm,), {"monitor_interval": 0})
    with quiet(total=total, desc=name or None, **options) as bar:
        thread = Helper(follow, "pointstamp-bar", daemon=True)
        try:
            thread.start()
            yield bar
        finally:
            ended.set()
            join([thread], EVERY, ended.set)
            look()
