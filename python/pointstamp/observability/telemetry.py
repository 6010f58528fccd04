"""Metrics for OpenTelemetry: the metrics of `/metrics` for Prometheus, through its API.

The program sets up a meter provider, as for everything else that it measures; without one nothing happens.
The instruments are made once for a program, since they cannot be taken back. They are observed for the
computations that run when a reader collects: these are asked then, once for all instruments of a collection.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from pointstamp._core import __version__
from pointstamp.errors import ConfigError
from pointstamp.observability.metrics import FAMILIES, samples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pointstamp.observability.metrics import Family

__all__ = ["observed"]

FRESH = 0.2
"""Seconds for which a state is good for another instrument of the same collection."""

State = dict[str, Any]

_running: list[_Running] = []
_made: list[Any] = []


class _Running:
    """A computation that is observed."""

    def __init__(self, ask: Callable[[], State]) -> None:
        self._ask = ask
        self._at = 0.0
        self._state: State | None = None

    def state(self) -> State:
        """Returns the state, asked now or a moment ago."""
        now = time.monotonic()
        if self._state is None or now - self._at > FRESH:
            self._state = self._ask()
            self._at = time.monotonic()
        return self._state


@contextmanager
def observed(ask: Callable[[], State]) -> Iterator[None]:
    """While the block runs, a computation is observed.

    Args:
        ask: Returns its state.

    Raises:
        ConfigError: If OpenTelemetry's API is not installed.
    """
    try:
        from opentelemetry import metrics
    except ImportError:
        raise ConfigError(
            "Config(telemetry=True) needs OpenTelemetry: pip install 'pointstamp[telemetry]', and set up a "
            "meter provider"
        ) from None
    if not _made:
        meter = metrics.get_meter("pointstamp", __version__)
        for family in FAMILIES:
            make: Any = meter.create_observable_gauge
            if family.kind == "counter":
                make = meter.create_observable_counter
            observe = partial(_observe, family, metrics.Observation)
            _made.append(make(family.telemetry, [observe], unit=family.unit or "1", description=family.about))
    running = _Running(ask)
    _running.append(running)
    try:
        yield
    finally:
        _running.remove(running)


def _observe(family: Family, observation: Any, _options: Any) -> Iterator[Any]:
    for running in list(_running):
        for labels, value in samples(family, running.state()):
            yield observation(value, labels)
